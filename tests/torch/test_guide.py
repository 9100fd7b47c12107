"""The commands of the guide that need PyTorch, run in their order, print the documented output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from binary import TIMEOUT_SECONDS, Binary
from console_blocks import commands

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
