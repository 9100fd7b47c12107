"""`opscope.convert` does what the command does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dump_writer as dw
import numpy as np
import opscope
import pytest
from dump_writer import Tensor

BF16 = np.array([[0x3F80, 0xC000], [0x0000, 0x4120]], np.uint16)
TENSOR = Tensor(dw.BFLOAT16, (2, 2), BF16.tobytes())
IMAGE = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)


def dump(folder: Path) -> Path:
    dw.write_dump_file(folder / "net/1/0", "Add.a.0.0.1", [TENSOR], [TENSOR])
    image = Tensor(dw.FLOAT32, IMAGE.shape, IMAGE.tobytes(), dw.NCHW)
    dw.write_dump_file(folder / "net/1/1", "Conv.c.0.0.2", [], [image])
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({}, []),
        ({"type": "bin"}, ["-t", "bin"]),
        ({"type": "txt", "jobs": 1}, ["-t", "txt", "--jobs", "1"]),
        ({"type": "safetensors"}, ["-t", "safetensors"]),
        ({"type": "pt"}, ["-t", "pt"]),
        ({"type": "msnpy", "compress": "zstd"}, ["-t", "msnpy", "--compress", "zstd"]),
        ({"compress": "zstd:7"}, ["--compress", "zstd:7"]),
        ({"compress": 7}, ["--compress", "zstd:7"]),
        ({"layout": "ND"}, ["-f", "ND"]),
    ],
)
def test_files_are_those_of_the_command(tmp_path: Path, options: dict[str, object], flags: list[str]) -> None:
    source = dump(tmp_path / "dump")
    done = opscope.convert(source, tmp_path / "here", **options)
    command = [sys.executable, "-m", "opscope", "convert", "-d", str(source), "--out", str(tmp_path / "there"), *flags]
    subprocess.run(command, check=True, capture_output=True)
    files = contents(tmp_path / "here")
    assert files and files == contents(tmp_path / "there")
    assert (done.files, done.converted, done.arrays, done.failures, done.exit_code) == (2, 2, 3, [], 0)
    assert done.out == str(tmp_path / "here")
    assert done.bytes_read == sum(len(content) for content in contents(source).values())
    assert done.bytes_written == sum(len(content) for content in files.values())


def test_values(tmp_path: Path) -> None:
    opscope.convert(dump(tmp_path / "dump"), tmp_path / "out")
    found = np.load(tmp_path / "out/net/1/0/Add.a.0.0.1.output.0.npy")
    np.testing.assert_array_equal(found, np.array([[1, -2], [0, 10]], np.float32), strict=True)


def test_one_tensor_in_another_layout(tmp_path: Path) -> None:
    file = dump(tmp_path) / "net/1/1/Conv.c.0.0.2"
    done = opscope.convert(file, tmp_path / "out", layout="nhwc", target_shape=(1, 3, 4, 1), only_output=0)
    assert done.arrays == 1
    (path,) = (tmp_path / "out").iterdir()
    np.testing.assert_array_equal(np.load(path), IMAGE[:, :1].transpose(0, 2, 3, 1), strict=True)


def test_several_sources(tmp_path: Path) -> None:
    dump(tmp_path / "dump")
    sources = [tmp_path / "dump/net/1/0", str(tmp_path / "dump/net/1/1/Conv.c.0.0.2")]
    assert opscope.convert(sources, tmp_path / "out").arrays == 3


def test_permissions_and_what_exists(tmp_path: Path) -> None:
    source = dump(tmp_path / "dump")
    out = tmp_path / "out"
    opscope.convert(source, out, dir_mode=0o750, file_mode=0o640)
    path = out / "net/1/0/Add.a.0.0.1.input.0.npy"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o640, 0o750)
    path.unlink()
    done = opscope.convert(source, out, keep_existing=True)
    assert (done.arrays, len(done.failures), done.exit_code) == (1, 2, 4)
    assert {failure.code for failure in done.failures} == {"exists"}


def test_what_fails_is_told_and_the_rest_is_done(tmp_path: Path) -> None:
    source = dump(tmp_path / "dump")
    bad = source / "net/1/1/Mul.bad.5.0.2"
    bad.write_bytes(b"damaged file")
    done = opscope.convert(source, tmp_path / "out")
    (failure,) = done.failures
    assert (done.converted, done.files, done.exit_code) == (2, 3, 4)
    assert isinstance(failure, opscope.DamagedError)
    assert (failure.code, failure.path, failure.offset) == ("damaged", str(bad), 0)


def test_nothing_that_could_be_converted_is_an_exception(tmp_path: Path) -> None:
    bad = tmp_path / "Mul.bad.5.0.2"
    bad.write_bytes(b"damaged file")
    with pytest.raises(opscope.DamagedError):
        opscope.convert(bad, tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(opscope.OpscopeError, match="holds no dump files") as caught:
        opscope.convert(tmp_path / "empty", tmp_path / "out")
    assert (caught.value.code, caught.value.exit_code) == ("nothing", 3)
    with pytest.raises(FileNotFoundError):
        opscope.convert(tmp_path / "absent", tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "png"}, "npy, msnpy, bin, txt, safetensors, pt"),
        ({"layout": "ABCD"}, "is not a layout"),
        ({"compress": "gzip"}, "compress"),
        ({"compress": 20}, "compress"),
        ({"compress": 300}, "compress"),
        ({"compress": "zstd:x"}, "compress"),
        ({"compress": 1, "type": "txt"}, "numpy arrays"),
        ({"only_output": 0}, "a single file"),
        ({"only_output": 0, "only_input": 0}, "excludes"),
        ({"layout": "NCHW", "target_shape": [1, 1, 1, 1]}, "a single file"),
        ({"target_shape": [1]}, "a single file"),
        ({"file_mode": 0o1777}, "file_mode"),
    ],
)
def test_arguments_that_make_no_sense(tmp_path: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(opscope.UsageError, match=said) as caught:
        opscope.convert(dump(tmp_path / "dump"), tmp_path / "out", **options)
    assert (caught.value.code, caught.value.exit_code) == ("usage", 2)
    assert not (tmp_path / "out").exists()


def test_results_of_equal_names(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        dw.write_dump_file(tmp_path / folder, "Add.a.0.0.1", [TENSOR])
    with pytest.raises(opscope.UsageError, match="the same file names"):
        opscope.convert([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
