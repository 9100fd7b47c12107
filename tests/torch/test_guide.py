"""The commands of the guide that need PyTorch, run in their order, print what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from binary import TIMEOUT_SECONDS, Binary

GUIDE = Path(__file__).resolve().parents[2] / "docs/guide.md"


def commands(page: str) -> list[tuple[str, str]]:
    """Each command with the beginning of its output. Lines that begin with `>` continue a command."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console torch\n(.*?)^```", page, re.S | re.M):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith(">"):
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
            else:
                found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
    return found


def test_the_guide_is_real(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "opscope").symlink_to(Binary.from_environment().path)
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = dict(os.environ, PATH=path)
    told = commands(GUIDE.read_text(encoding="utf-8"))
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
