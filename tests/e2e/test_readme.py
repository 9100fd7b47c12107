"""The front page shows real output: its two runs and its verdict are made again and compared."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import onnx
from binary import TIMEOUT_SECONDS, Binary
from cases import DIGITS
from onnx import numpy_helper

README = DIGITS.parents[1] / "README.md"


def verdict_of_the_page() -> str:
    """The lines after `opscope compare`, as one line, because the page wraps them."""
    shown = re.search(r"^\$ opscope compare .*?\n(.*?)^```", README.read_text(encoding="utf-8"), re.S | re.M)
    assert shown, "README.md shows a comparison"
    return " ".join(shown[1].split())


def test_the_verdict_of_the_front_page_is_real(opscope: Binary, tmp_path: Path) -> None:
    for model, out in (("digits_cnn", "sound"), ("digits_cnn_transposed", "faulty")):
        images = f"image={DIGITS / 'images.npy'}"
        opscope.run("dump", DIGITS / f"{model}.onnx", "--input", images, "--out", tmp_path / out)
    command = opscope.command("compare", tmp_path / "faulty", tmp_path / "sound")
    compared = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert compared.returncode == 1
    assert " ".join(compared.stdout.split()).startswith(verdict_of_the_page())


def test_both_languages_show_the_same_commands() -> None:
    pages = [README, README.with_name("README.zh-CN.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    blocks = [re.findall(r"^```.*?^```", text, re.S | re.M) for text in texts]
    assert blocks[0] == blocks[1] and len(blocks[0]) == 5
    for page, text, other in zip(pages, texts, reversed(pages)):
        assert len(text.splitlines()) <= 90
        assert f"]({other.name})" in text
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_faulty_model_is_what_its_script_makes(tmp_path: Path) -> None:
    for name in ("transpose_kernel.py", "digits_cnn.onnx"):
        (tmp_path / name).write_bytes((DIGITS / name).read_bytes())
    subprocess.run([sys.executable, tmp_path / "transpose_kernel.py"], check=True)
    made, stored = (onnx.load(folder / "digits_cnn_transposed.onnx") for folder in (tmp_path, DIGITS))
    weights = [{w.name: numpy_helper.to_array(w).tobytes() for w in model.graph.initializer} for model in (made, stored)]
    assert weights[0] == weights[1]
