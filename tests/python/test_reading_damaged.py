"""Damaged files: each raises an exception with its position, and everything else is still read."""

from __future__ import annotations

import os
from pathlib import Path

import dump_writer as dw
import numpy as np
import opscope
import pytest
from dump_writer import Tensor

GOOD = Tensor(dw.FLOAT32, (2,), np.array([1, 2], np.float32).tobytes())


def folder_of(tmp_path: Path) -> Path:
    """A good file before and behind the place of a bad one."""
    dw.write_dump_file(tmp_path, "Add.first.0.0.1", [], [GOOD])
    dw.write_dump_file(tmp_path, "Add.last.9.0.3", [], [GOOD])
    return tmp_path


def truncated(n_bytes: int) -> bytes:
    content = dw.dump_file("bad", [GOOD], [GOOD])
    return content[: len(content) - n_bytes]


N_PAYLOAD = 16
N_WHOLE = len(truncated(0))


@pytest.mark.parametrize(
    ("content", "offset", "expected"),
    [
        (truncated(1), N_WHOLE - 8, "8 bytes of output 0"),
        (truncated(N_PAYLOAD), N_WHOLE - N_PAYLOAD, "8 bytes of input 0"),
        (truncated(N_PAYLOAD + 1), 0, "a header length of at most"),
        (b"", 0, "an 8-byte header length"),
        (b"\xff" * 100, 0, "a header length of at most"),
    ],
)
def test_a_damaged_dump_file(tmp_path: Path, content: bytes, offset: int, expected: str) -> None:
    bad = folder_of(tmp_path) / "Mul.bad.5.0.2"
    bad.write_bytes(content)
    dump = opscope.open(tmp_path)
    assert [(r.name, r.op_type, r.task_id, r.dtype) for r in dump] == [
        ("first", "Add", 0, "float32"),
        ("bad", "Mul", 5, None),
        ("last", "Add", 9, "float32"),
    ]
    (problem,) = dump.problems
    for read in (dump[1].numpy, dump[1].raw, dump[1].statistics):
        with pytest.raises(opscope.DamagedError) as caught:
            read()
        for error in (caught.value, problem):
            assert (error.code, error.exit_code, error.path, error.offset) == ("damaged", 3, str(bad), offset)
            assert error.expected.startswith(expected)
            assert str(bad) in str(error) and f"byte {offset}" in str(error)
    assert isinstance(problem, ValueError)
    for record in (dump[0], dump[2]):
        assert record.numpy().tolist() == [1, 2]
    assert "damaged" in repr(dump[1])
    assert dump.find(dtype="float32") == [dump[0], dump[2]]


@pytest.mark.parametrize(
    ("content", "offset"),
    [(b"", 0), (b"\x93NUMPY\x01\x00v\x00{'descr'", 10), (b"\x93NUMPY\x09\x00", 6), (b"PK\x03\x04" * 30, 0)],
)
def test_a_damaged_array(tmp_path: Path, content: bytes, offset: int) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    (tmp_path / "b.npy").write_bytes(content)
    dump = opscope.open(tmp_path)
    assert [(r.name, r.dtype, r.shape) for r in dump] == [("a", "int64", (3,)), ("b", None, None)]
    assert [(p.code, p.offset) for p in dump.problems] == [("damaged", offset)]
    with pytest.raises(opscope.DamagedError) as caught:
        dump[1].numpy()
    assert caught.value.offset == offset
    assert dump[0].numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("change", [-1, 1])
def test_an_array_of_another_size(tmp_path: Path, change: int) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    path = tmp_path / "a.npy"
    os.truncate(path, path.stat().st_size + change)
    (record,) = opscope.open(tmp_path)
    with pytest.raises(opscope.DamagedError, match="24 bytes of int64") as caught:
        record.numpy()
    assert caught.value.found == str(24 + change)


def test_damage_behind_the_header_of_a_compressed_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.random.default_rng(0).standard_normal(100_000))
    opscope.convert(tmp_path / "a.npy", tmp_path / "z", compress="zstd")
    (path,) = (tmp_path / "z").iterdir()
    content = bytearray(path.read_bytes())
    content[-1000] ^= 0xFF
    path.write_bytes(content)
    (record,) = opscope.open(path)
    assert (record.dtype, record.shape) == ("float64", (100_000,))
    with pytest.raises(opscope.DamagedError) as caught:
        record.numpy()
    assert caught.value.path == str(path)


def test_one_tensor_that_does_not_fit_its_shape(tmp_path: Path) -> None:
    bad = Tensor(dw.FLOAT32, (3,), bytes(8))
    path = dw.write_dump_file(tmp_path, "Add.a.0.0.1", [GOOD, bad], [GOOD])
    dump = opscope.open(tmp_path)
    assert dump.problems == []
    assert [dump[i].numpy().tolist() for i in (0, 2)] == [[1, 2], [1, 2]]
    with pytest.raises(opscope.DamagedError, match="takes 12 bytes, found 8") as caught:
        dump[1].numpy()
    assert (caught.value.code, caught.value.path) == ("size", str(path))
    assert dump[1].raw().tobytes() == bytes(8)


def test_an_unknown_dtype(tmp_path: Path) -> None:
    dw.write_dump_file(tmp_path, "Add.a.0.0.1", [Tensor(999, (2,), b"ab")])
    (record,) = opscope.open(tmp_path)
    assert record.dtype == "#999"
    for read in (record.numpy, record.statistics):
        with pytest.raises(opscope.UnsupportedError) as caught:
            read()
        assert caught.value.code == "unknown_dtype"


def test_shapes_that_memory_cannot_hold(tmp_path: Path) -> None:
    huge = Tensor(dw.FLOAT32, (1 << 62, 1 << 62), b"")
    dw.write_dump_file(tmp_path, "Add.a.0.0.1", [huge, GOOD])
    dump = opscope.open(tmp_path)
    for read in (dump[0].numpy, dump[0].statistics):
        with pytest.raises(opscope.OpscopeError):
            read()
    assert dump[1].numpy().tolist() == [1, 2]


def test_other_files_are_problems_and_no_records(tmp_path: Path) -> None:
    folder_of(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing of a dump")
    (tmp_path / ".hidden").write_text("nothing")
    dump = opscope.open(tmp_path)
    assert [record.name for record in dump] == ["first", "last"]
    assert [problem.path for problem in dump.problems] == [str(tmp_path / "notes.txt")]


def test_a_damaged_table_of_statistics(tmp_path: Path) -> None:
    header = "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value"
    (tmp_path / "Add.a.0.0.1.csv").write_text(f"{header}\nOutput,0,4\n")
    (tmp_path / "Add.b.1.0.2.csv").write_text(f"{header}\nOutput,0,4,DT_FLOAT,ND,1,7\n")
    dump = opscope.open(tmp_path)
    (problem,) = dump.problems
    assert (problem.code, problem.offset) == ("damaged", len(header) + 1)
    (good,) = dump
    assert good.statistics().max == 7


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    folder_of(tmp_path)
    path = dw.write_dump_file(tmp_path, "Mul.secret.5.0.2", [], [GOOD])
    path.chmod(0)
    dump = opscope.open(tmp_path)
    (problem,) = dump.problems
    assert isinstance(problem, PermissionError) and problem.code == "no_permission"
    assert len(dump) == 3
