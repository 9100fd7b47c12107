"""Several runs in one place: one of them is read, and a mixture is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from binary import TIMEOUT_SECONDS, Binary
from test_documents import dump_mindspore, save_model

GOLDEN = Path(__file__).parents[2] / "crates" / "store" / "tests" / "golden" / "mindspore"


def run(opscope: Binary, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [opscope.path, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)


def time_of(path: Path) -> int:
    return int(path.name.split(".")[-6])


def copied(tmp_path: Path, name: str) -> Path:
    place = tmp_path / name
    shutil.copytree(GOLDEN / "rerun_same_dir" / "dump", place)
    subprocess.run(["chmod", "-R", "u+w", place], check=True)
    return place


# The last run is complete, or was cut off.
@pytest.mark.parametrize("is_cut_off", [False, True])
def test_the_newest_complete_run_of_mindspore(opscope: Binary, tmp_path: Path, is_cut_off: bool) -> None:
    both, single = copied(tmp_path, "both"), copied(tmp_path, "single")
    times = sorted(map(time_of, both.rglob("*.npy")))
    boundary = times[len(times) // 2]
    for path in single.rglob("*.npy"):
        if (time_of(path) >= boundary) == is_cut_off:
            path.unlink()
    if is_cut_off:
        max(both.rglob("*.npy"), key=time_of).unlink()
    # The other run differs, which may not matter.
    for path in both.rglob("*.npy"):
        if (time_of(path) >= boundary) == is_cut_off:
            np.save(path, np.load(path) + 1)
    found = run(opscope, "compare", "both", "single", cwd=tmp_path)
    assert (found.returncode, found.stdout.startswith("PASS")) == (0, True), found.stdout
    assert "another run in the same place" in " ".join(found.stdout.split())
    assert "missing" not in found.stdout


@pytest.mark.parametrize("saved_data", ["tensor", "statistic"])
def test_the_same_command_twice(opscope: Binary, tmp_path: Path, saved_data: str) -> None:
    dump = dump_mindspore(opscope, tmp_path, saved_data)
    shutil.copytree(dump, tmp_path / "once")
    dump_mindspore(opscope, tmp_path, saved_data)
    found = run(opscope, "compare", "dump", "once", cwd=tmp_path)
    assert (found.returncode, found.stdout.startswith("PASS")) == (0, True), found.stdout
    assert "missing" not in found.stdout


def probe_dump(place: Path, largest: float, seconds: int, is_whole: bool = True) -> None:
    place.mkdir(parents=True)
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "requires_grad": False}
    tensor |= {"Max": largest, "Min": -1.0, "Mean": 0.0, "Norm": 2.0}
    call = {"input_args": [tensor], "input_kwargs": {}, "output": [tensor]}
    dump = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
    text = json.dumps(dump | {"data": {"Torch.relu.0.forward": call}})
    (place / "dump.json").write_text(text if is_whole else text[:-9])
    os.utime(place / "dump.json", (seconds, seconds))


# Where the runs are, and whether the newer one was written to its end.
PROBES = [("proc12", "proc7", True), ("proc7", "proc12", True), ("proc7", "proc12", False)]


@pytest.mark.parametrize(("old", "new", "is_whole"), PROBES)
def test_processes_of_msprobe(opscope: Binary, tmp_path: Path, old: str, new: str, is_whole: bool) -> None:
    for step in ("step0", "step1"):
        probe_dump(tmp_path / "both" / step / old, 1.0, 1_000_000)
        probe_dump(tmp_path / "both" / step / new, 5.0, 2_000_000, is_whole or step == "step0")
        probe_dump(tmp_path / "single" / step / new, 5.0 if is_whole else 1.0, 2_000_000)
    found = run(opscope, "compare", "both", "single", cwd=tmp_path)
    assert (found.returncode, found.stdout.startswith("PASS")) == (0, True), found.stdout
    assert "another run in the same place" in " ".join(found.stdout.split())
    assert "missing" not in found.stdout


def test_a_mixture_is_refused(opscope: Binary, tmp_path: Path) -> None:
    save_model(tmp_path / "net.onnx")
    (tmp_path / "c.json").write_text(json.dumps({"dump": {"dump_path": "o", "dump_mode": "all", "dump_list": [{}]}}))
    for name in ("target", "golden"):
        (tmp_path / "o").mkdir()
        done = run(opscope, "dump", "net.onnx", "--inputs", "x.npz", "--config", "c.json", "--no-baseline", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        (tmp_path / "o").rename(tmp_path / name)
    assert run(opscope, "compare", "target", "golden", cwd=tmp_path).returncode == 0
    (own,) = (tmp_path / "golden").rglob("MatMul.*")
    for path in (tmp_path / "target").rglob("*.*.*.*.*"):
        shutil.copy(path, own.parent)
    found = run(opscope, "compare", "target", "golden", cwd=tmp_path)
    assert (found.returncode, found.stdout) == (3, ""), found.stdout
    assert "files of several runs" in found.stderr
