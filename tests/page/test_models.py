"""The page on whole networks: the classifier of digits, and a ResNet-18 of which a weight was changed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from conftest import Viewer, Witness
from onnx import numpy_helper
from playwright.sync_api import Page, expect

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples/digits"
# Rules of accessibility, a development package of the page.
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="module")
def digits(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The faulty and the sound network of the example."""
    folder = tmp_path_factory.mktemp("digits")
    for stem in ("digits_cnn_transposed", "digits_cnn"):
        tool.dump(DIGITS / f"{stem}.onnx", "--out", folder / stem, "--input", f"image={DIGITS}/images.npy")
    return [folder / "digits_cnn_transposed", folder / "digits_cnn"]


def test_the_digits_are_looked_at_by_keys_alone(page: Page, view: Callable[..., Viewer], digits: list[Path]) -> None:
    page.goto(view(digits[1]).address)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text(re.compile(r"^9 operators, all finite; the largest value is [\d.]+, at \w+ \w+\.$"))
    # The graph is next to the table, and captions have the dump's name.
    expect(page.get_by_role("region", name="Graph").get_by_role("application")).to_be_visible()
    expect(page.locator("figcaption").first).to_have_text("digits_cnn")
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


def test_exchanged_axes_are_next_to_each_other(page: Page, view: Callable[..., Viewer], digits: list[Path]) -> None:
    page.goto(view(*digits).url("tensor"))
    expect(page.get_by_text("Axes 2 and 3 are exchanged.")).to_be_visible()
    expect(page.locator("figcaption")).to_contain_text(["digits_cnn_transposed", "digits_cnn", "difference"])
    expect(page.locator(".axes-words")).to_have_text("H ↓ · W →")
    # They differ everywhere, so that no box says where.
    expect(page.get_by_text("3,072 of 4,608 elements differ.")).to_be_visible()


def test_a_third_dump_is_next_to_a_pair(page: Page, view: Callable[..., Viewer], digits: list[Path]) -> None:
    page.goto(view(*digits, "--reference", digits[1]).url("tensor"))
    captions = ["digits_cnn_transposed", "digits_cnn", "reference", "difference"]
    expect(page.locator("figcaption")).to_contain_text(captions)
    expect(page.get_by_role("columnheader", name="reference")).to_be_visible()


def test_bars_hold_all_that_they_show(page: Page, view: Callable[..., Viewer], digits: list[Path]) -> None:
    viewer = view(*digits)
    bars = ".topbar, .pane-head, .slice-tools, .tensor-head, .verdict-line"
    for name in ("overview", "graph", "tensor", "coverage"):
        page.goto(viewer.url(name))
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        cut = page.locator(bars).evaluate_all("all => all.filter(bar => bar.scrollWidth > bar.clientWidth)")
        assert cut == [], name
    # A narrow page has room for one graph at first.
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(viewer.url("graph"))
    side = page.get_by_role("group", name="Graph shown").get_by_role("button", name="digits_c…nsposed")
    expect(side).to_have_attribute("aria-pressed", "true")


def test_a_removed_dump_is_reported(
    page: Page, view: Callable[..., Viewer], digits: list[Path], tmp_path: Path, witness: Witness
) -> None:
    shutil.copytree(digits[1], tmp_path / "gone")
    page.goto(view(tmp_path / "gone").address)
    expect(page.get_by_role("gridcell").first).to_be_visible()
    shutil.rmtree(tmp_path / "gone")
    expect(page.get_by_role("alert")).to_contain_text("The dump was removed.")
    expect(page.get_by_role("gridcell").first).to_be_visible()
    # A request that was under way finds nothing.
    witness.errors = [error for error in witness.errors if "410 (Gone)" not in error]


@pytest.mark.skipif(not AXE.exists(), reason="`npm ci` in web/ installs the rules")
def test_no_view_has_a_serious_barrier(page: Page, view: Callable[..., Viewer], digits: list[Path]) -> None:
    viewer = view(*digits)
    for name in ("overview", "graph", "tensor", "coverage"):
        page.goto(viewer.url(name))
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations)")
        serious = [rule for rule in found if rule["impact"] in ("serious", "critical")]
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in serious] == [], name


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
