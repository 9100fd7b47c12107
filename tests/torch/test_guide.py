"""The guide's parts that need PyTorch: its commands print the documented output, and the rows of its tables run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import opscope
import opscope.torch
import torch
from binary import TIMEOUT_SECONDS, Binary
from console_blocks import code_rows, commands
from torch import nn

GUIDE = Path(__file__).resolve().parents[2] / "docs/guide.md"


def test_the_guide_is_real(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "opscope").symlink_to(Binary.from_environment().path)
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = dict(os.environ, PATH=path)
    told = commands(GUIDE.read_text(encoding="utf-8"), "torch")
    assert len(told) > 10
    for command, expected in told:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
        is_comparison = " diff " in command.splitlines()[0]
        assert done.returncode in ((0, 1, 4) if is_comparison else (0,)), f"{command}\n{done.stderr}"
        # Programs of the guide lie in a folder of the test's, and lines are wrapped to the terminal.
        printed = " ".join(done.stdout.replace(f"{tmp_path}/", "").split())
        assert printed.startswith(" ".join(expected.split())), f"{command}\n{done.stdout}"


def rows_of(tool: str) -> list[str]:
    return code_rows((GUIDE.parent / f"guide/from-{tool}.md").read_text(encoding="utf-8"))


def test_rows_for_torchair_are_one_program(tmp_path: Path) -> None:
    model = nn.Linear(4, 3)
    *statements, compiled, command = rows_of("torchair")
    for side in ("npu", "cpu"):
        (tmp_path / side).mkdir()
        names: dict[str, object] = {"torch": torch, "model": model}
        for statement in statements:
            exec(statement.replace("/home/dump", str(tmp_path / side)), names)
        eval(compiled, names)(torch.ones(2, 4))
        opscope.torch.finish()
        assert {record.has_elements for record in opscope.open(tmp_path / side)} == {False}
    assert list(Path.cwd().glob("*.pbtxt"))
    program, *arguments = command.split()
    assert program == "opscope"
    tool = Binary.from_environment().path
    done = subprocess.run([tool, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr


def test_rows_for_msprobe_dump_what_they_say(tmp_path: Path) -> None:
    model = nn.Linear(4, 3)
    rows = [row for row in rows_of("msprobe") if row.startswith("opscope.torch.")]
    found = []
    for i, row in enumerate(rows):
        folder = tmp_path / str(i)
        with eval(row.replace('"dump"', repr(str(folder))), {"opscope": opscope}) as dump:
            for _ in range(7):
                model(torch.ones(2, 4))
                dump.step()
        dump.finish()
        records = opscope.open(folder)
        found.append(({record.step for record in records}, {record.has_elements for record in records}))
    every = set(range(7))
    assert found == [(every, {True}), (every, {False}), ({0, 5}, {True})]
