"""The commands of the documentation's examples, run in their order, print what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from binary import TIMEOUT_SECONDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["docs/compare/examples.md", "docs/guide.md"]


def commands(page: str) -> list[tuple[str, str]]:
    """Each command with the beginning of its output. Lines that begin with `> ` continue a command.

    Blocks that need PyTorch are marked, and are run by its own tests.
    """
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```", page, re.S | re.M):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith(">"):
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
            else:
                found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_examples_are_real(page: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "opscope").symlink_to(Path(os.environ["OPSCOPE"]).resolve())
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = dict(os.environ, PATH=path)
    told = commands((ROOT / page).read_text(encoding="utf-8"))
    assert len(told) > 1
    for command, expected in told:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
        codes = (0, 1, 4) if command.startswith(("opscope compare", "opscope diff")) else (0,)
        assert done.returncode in codes, f"{command}\n{done.stderr}"
        # Lines are wrapped to the terminal, and the page has its own width.
        assert " ".join(done.stdout.split()).startswith(" ".join(expected.split())), f"{command}\n{done.stdout}"
