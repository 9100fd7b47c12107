"""What is written stays inside the place that it was given, and ends where it is complete."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from binary import TIMEOUT_SECONDS, Binary
from cases import DIGITS
from safetensors import safe_open


def run(opscope: Binary, *arguments: object, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    command = [opscope.path, *map(str, arguments)]
    limited = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, preexec_fn=limited
    )


def dump(opscope: Binary, out: Path, *options: object) -> Path:
    """Dumps the digits model; returns the directory of the run."""
    image = f"image={DIGITS / 'images.npy'}"
    opscope.dump(DIGITS / "digits_cnn.onnx", "--input", image, "--out", out, *options)
    return next(path for path in out.iterdir() if path.name != ".opscope")


LINKS = [".opscope", ".opscope/index", ".opscope/index/tensors"]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("is_run", [False, True])
def test_no_link_in_a_dump_leads_tables_out_of_it(opscope: Binary, tmp_path: Path, link: str, is_run: bool) -> None:
    run_dir = dump(opscope, tmp_path / "d")
    place = (run_dir if is_run else tmp_path / "d") / link
    victim = tmp_path / "victim"
    if place.exists():
        place.rename(victim)
    else:
        victim.mkdir()
        place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim)
    before = sorted(victim.rglob("*"))
    done = run(opscope, "index", run_dir if is_run else tmp_path / "d")
    assert done.returncode == 3
    assert "symbolic link, which is not followed inside a dump" in done.stderr
    assert sorted(victim.rglob("*")) == before


def test_no_link_leads_arrays_out_of_their_directory(opscope: Binary, tmp_path: Path) -> None:
    run_dir = dump(opscope, tmp_path / "d")
    (tmp_path / "victim").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / run_dir.name).symlink_to(tmp_path / "victim")
    done = run(opscope, "convert", "-d", tmp_path / "d", "-t", "npy", "-out", tmp_path / "out")
    assert done.returncode == 3
    assert "symbolic link, which is not followed" in done.stderr
    assert list((tmp_path / "victim").iterdir()) == []
    # A link in a given path is the user's choice.
    (tmp_path / "named").symlink_to(tmp_path / "victim")
    opscope.run("convert", "-d", tmp_path / "d", "-t", "npy", "-out", tmp_path / "named")
    assert list((tmp_path / "victim").rglob("*.npy"))


def is_whole(path: Path) -> bool:
    """Whether a file has no hole at its end."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        return file.seek(end - 1, os.SEEK_DATA) == end - 1


@pytest.mark.parametrize("n_bytes", [90_000, 150_000, 300_000])
@pytest.mark.parametrize("policy", ["stop-capture", "drop"])
def test_elements_that_do_not_fit_leave_no_hole(opscope: Binary, tmp_path: Path, n_bytes: int, policy: str) -> None:
    image = f"image={DIGITS / 'images.npy'}"
    options: list[object] = ["--steps", 3, "--no-baseline", "--on-error", policy, "--engine", "tract"]
    arguments = ["dump", DIGITS / "digits_cnn.onnx", "--input", image, *options, "--out", tmp_path / "d"]
    done = run(opscope, *arguments, limit=n_bytes)
    assert done.returncode != 0
    assert "File too large" in done.stderr
    files = list((tmp_path / "d").rglob("elements-*.safetensors"))
    assert files
    for path in files:
        assert path.stat().st_size <= n_bytes
        assert is_whole(path)
        with safe_open(path, "numpy") as tensors:
            read: Callable[[str], object] = tensors.get_tensor
            assert all(read(name) is not None for name in tensors.keys())


@pytest.mark.parametrize("n_bytes", [100, 600, 3000])
@pytest.mark.parametrize("policy", ["stop-capture", "drop", "stop-run"])
def test_the_model_runs_on_without_the_files_beside_the_tensors(
    opscope: Binary, tmp_path: Path, n_bytes: int, policy: str
) -> None:
    """No record of the run, no graph or no table can be written."""
    image = f"image={DIGITS / 'images.npy'}"
    options: list[object] = ["--steps", 3, "--content", "statistics", "--on-error", policy, "--engine", "tract", "--json"]
    arguments = ["dump", DIGITS / "digits_cnn.onnx", "--input", image, *options, "--out", tmp_path / "d"]
    done = run(opscope, *arguments, limit=n_bytes)
    assert (done.returncode, "File too large" in done.stderr) == (4, True), done.stderr
    # A step is begun before its first operator finds that it shall not run.
    assert json.loads(done.stdout)["steps"] == (1 if policy == "stop-run" else 3)


@pytest.mark.parametrize("umask", [0o777, 0o477, 0o200])
def test_a_umask_that_hides_our_own_files_ends_the_command(opscope: Binary, tmp_path: Path, umask: int) -> None:
    command = [opscope.path, "dump", DIGITS / "digits_cnn.onnx", "--engine", "tract", "--out", tmp_path / "d"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, umask=umask)
    assert (done.returncode, f"the umask {umask:03o} removes" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "d").exists()


def test_what_a_killed_process_left_goes_with_the_next_one(opscope: Binary, tmp_path: Path) -> None:
    run_dir, tables, parts = dump(opscope, tmp_path / "d"), tmp_path / "t", tmp_path / "p"
    ended = json.loads((run_dir / ".opscope/run.json").read_text())["process"]
    name = ".opscope-tmp-{pid}-{start_ticks}-{boot}-{pid_namespace}-0".format(**ended)
    for command, patterns in (
        (["index", run_dir, "--out", tables], ("t", "t/tensors/*", "t/events/*")),
        (["compare", run_dir, run_dir, "--parts", parts], ("p",)),
    ):
        assert run(opscope, *command).returncode == 0
        folders = [folder for pattern in patterns for folder in tmp_path.glob(pattern)]
        assert len(folders) == len(patterns)
        for folder in folders:
            (folder / name).write_text("half")
        assert run(opscope, *command).returncode == 0
        assert not [folder for folder in folders if (folder / name).exists()]
