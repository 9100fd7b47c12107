"""The examples of `docs/python.md` do what they say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import opscope
import pytest
from onnx_models import write_linear
from programs import ROOT

PAGE = ROOT / "docs" / "python.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_examples_run(tmp_path: Path) -> None:
    write_linear(tmp_path)
    (commands,) = blocks("sh")
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "python"
        subprocess.run([sys.executable, *arguments], cwd=tmp_path, check=True, capture_output=True)
    code = "\n".join(blocks("python"))
    assert code.count("assert") > 10
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert f"print(dump[0])  # {first}" in code
    for part in re.search(r"print\(error\)  # `dump/…` (.*)", code)[1].split(": "):
        assert part in last


def test_the_front_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    digits = ROOT / "examples/digits"
    for model, out in (("digits_cnn", "sound"), ("digits_cnn_transposed", "faulty")):
        command = [sys.executable, "-m", "opscope", "dump", digits / f"{model}.onnx", "--out", out]
        command += ["--input", f"image={digits / 'images.npy'}"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    verdict, answers = done.stdout.splitlines()
    assert verdict in " ".join(page.split())
    assert f"print(probs.argmax(axis=1))  # {answers}" in code


@pytest.mark.parametrize("name", [name for name in opscope.__all__ if name.endswith("Error")])
def test_every_exception_is_described(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", PAGE.read_text(encoding="utf-8"))
    links = [link for link in links if not link.startswith("https://")]
    assert links
    assert [link for link in links if not os.path.exists(PAGE.parent / link)] == []
