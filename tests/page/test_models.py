"""The page on whole networks: the classifier of digits, and a ResNet-18 of which a weight was changed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from conftest import Viewer
from onnx import numpy_helper
from playwright.sync_api import Page, expect

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples/digits"


@pytest.fixture(scope="module")
def digits(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The faulty and the sound network of the example."""
    folder = tmp_path_factory.mktemp("digits")
    for stem in ("digits_cnn_transposed", "digits_cnn"):
        tool.dump(DIGITS / f"{stem}.onnx", "--out", folder / stem, "--input", f"image={DIGITS}/images.npy")
    return [folder / "digits_cnn_transposed", folder / "digits_cnn"]


def test_the_digits_are_looked_at_by_keys_alone(page: Page, view: Callable[..., Viewer], digits: list[Path]) -> None:
    page.goto(view(digits[1]).address)
    expect(page.get_by_role("heading", level=1)).to_have_text("No NaN or Inf.")
    # There is no culprit.
    expect(page.get_by_role("img", name="culprit")).to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(r"op=\d"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/tensor\?"))
    expect(page.locator("canvas.picture").first).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("g")
    expect(page.get_by_role("tree")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.get_by_role("grid")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("type:Conv")
    page.keyboard.press("Enter")
    graph = onnx.load(DIGITS / "digits_cnn.onnx").graph
    n_convolutions = sum(node.op_type == "Conv" for node in graph.node)
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(n_convolutions + 1))


def test_the_transposed_kernel_of_the_digits_is_named(
    page: Page, view: Callable[..., Viewer], digits: list[Path]
) -> None:
    page.goto(view(*digits).address)
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_text(re.compile(r"The runs diverge at Conv .*: its weight differs\."))
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", re.compile("^zh"))
    expect(title).to_contain_text("权重不一致")


def test_the_changed_weight_of_a_resnet_is_found(
    page: Page, view: Callable[..., Viewer], tool: Binary, tmp_path: Path
) -> None:
    generate = [sys.executable, ROOT / "tests/models/generate.py", tmp_path / "models", "--bench", "--only", "resnet18"]
    subprocess.run([str(part) for part in generate], check=True)
    model = onnx.load(tmp_path / "models/resnet18.onnx")
    kernels = [tensor for tensor in model.graph.initializer if len(tensor.dims) == 4]
    kernel = kernels[len(kernels) // 2]
    (culprit,) = [node for node in model.graph.node if kernel.name in node.input]
    weights = numpy_helper.to_array(kernel).copy()
    weights[7] *= np.float32(40)
    kernel.CopyFrom(numpy_helper.from_array(weights, kernel.name))
    onnx.save(model, tmp_path / "models/faulty.onnx")
    for name, stem in (("faulty", "faulty"), ("sound", "resnet18")):
        tool.dump(tmp_path / f"models/{stem}.onnx", "--out", tmp_path / name, "--seed", "3")
    page.goto(view(tmp_path / "faulty", tmp_path / "sound").address)
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_text(re.compile(r"The runs diverge at Conv .*: its weight differs\."))
    link = title.get_by_role("link")
    assert culprit.name in (link.get_attribute("title") or "")
    expect(page.locator("[role=row][aria-selected=true]").first).to_contain_text("weight differs")
    page.keyboard.press("g")
    page.keyboard.press("g")
    expect(page.get_by_role("treeitem", selected=True).first).to_contain_text(culprit.name.split("/")[-2])
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"^\[7, \d+, \d+, \d+\]$")).first).to_be_visible()
