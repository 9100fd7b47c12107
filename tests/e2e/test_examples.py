"""The commands of the documentation's examples, run in their order, print the documented output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from binary import TIMEOUT_SECONDS
from console_blocks import commands, table_commands

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["docs/compare/examples.md", "docs/guide.md"]
# Their tables have commands as well.
FROM_TOOLS = [f"docs/guide/from-{tool}.md" for tool in ("mindspore", "msaccucmp", "msprobe", "polygraphy")]
WITH_TABLES = [*FROM_TOOLS, "docs/guide/zh-CN/first-dump.md"]


@pytest.mark.parametrize("page", [*PAGES, *WITH_TABLES])
def test_examples_are_real(page: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "opscope").symlink_to(Path(os.environ["OPSCOPE"]).resolve())
    for folder in ("examples", "crates"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = dict(os.environ, PATH=path)
    # The directory of a configuration, which has to be absolute, is one of this test.
    text = (ROOT / page).read_text(encoding="utf-8").replace("/tmp/opscope-guide", str(tmp_path / "written"))
    told = commands(text)
    if page in WITH_TABLES:
        told += [(command, "") for command in table_commands(text)]
    assert len(told) > 3
    for command, expected in told:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
        codes = (0, 1, 4) if command.startswith(("opscope compare", "opscope diff")) else (0,)
        assert done.returncode in codes, f"{command}\n{done.stderr}"
        # Lines are wrapped to the terminal, and the page has its own width.
        assert " ".join(done.stdout.split()).startswith(" ".join(expected.split())), f"{command}\n{done.stdout}"


def test_tables_in_chinese_have_the_code_of_those_in_english() -> None:
    def code(pages: list[str]) -> set[str]:
        text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
        rows = re.findall(r"^\|.*\|$", text, re.M)
        return {*re.findall("`([^`]+)`", "\n".join(rows)), *(command for command, _ in commands(text))}

    translated = code(["docs/guide/zh-CN/migration.md"])
    assert len(translated) > 40
    assert not translated - code([*FROM_TOOLS, "docs/guide/from-torchair.md"])
