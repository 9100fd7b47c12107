"""The page of `opscope view` in a browser: what is shown, clicked and typed.

OPSCOPE=target/debug/opscope OPSCOPE_BROWSER=/usr/bin/chromium pytest tests/page
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from conftest import Viewer
from onnx import TensorProto, helper, numpy_helper
from playwright.sync_api import Locator, Page, expect

HOSTILE = "<script>alert(1)</script>\u202eevil\x1b[31m"
N_BLOCKS = 40
CULPRIT = 40


def network(*, factor: float) -> onnx.ModelProto:
    """A chain of blocks. The convolution of one of them has an output channel that is multiplied."""
    random = np.random.default_rng(2)
    nodes, weights, value = [], [], "x"
    for block in range(N_BLOCKS):
        weight = (random.normal(size=(8, 8, 3, 3)) / 8).astype(np.float32)
        if block == CULPRIT // 2:
            weight[5] *= np.float32(factor)
        name = f"stage{block // 10}.{block % 10}"
        weights.append(numpy_helper.from_array(weight, f"{name}.conv.weight"))
        path = f"/stage{block // 10}/{name}"
        conv = helper.make_node("Conv", [value, f"{name}.conv.weight"], [f"c{block}"], f"{path}/conv/Conv", pads=[1] * 4)
        relu = helper.make_node("Relu", [f"c{block}"], [f"r{block}"], f"{path}/relu/Relu")
        nodes += [conv, relu]
        value = f"r{block}"
    nodes.append(helper.make_node("Reciprocal", [value], ["y"], HOSTILE))
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 12, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def dumps(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("page")
    np.save(folder / "x.npy", np.random.default_rng(4).normal(size=(1, 8, 12, 12)).astype(np.float32))
    for name, factor in (("faulty", 1.5), ("sound", 1.0)):
        onnx.save(network(factor=factor), folder / f"{name}.onnx")
        tool.dump(folder / f"{name}.onnx", "--out", folder / name, "--input", f"x={folder}/x.npy")
    return [folder / "faulty", folder / "sound"]


@pytest.fixture(scope="module")
def both(view: Callable[..., Viewer], dumps: list[Path]) -> Viewer:
    return view(*dumps)


@pytest.fixture(scope="module")
def alone(view: Callable[..., Viewer], dumps: list[Path]) -> Viewer:
    return view(dumps[0])


def rows(page: Page) -> Locator:
    return page.get_by_role("grid").get_by_role("row").filter(has=page.get_by_role("gridcell"))


def selected(page: Page) -> Locator:
    return page.locator("[role=row][aria-selected=true]").first


def test_the_culprit_is_named_selected_and_shown(page: Page, both: Viewer) -> None:
    page.goto(both.address)
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"The runs diverge at Conv .*conv: its weight differs\."))
    expect(page.get_by_role("status").first).to_contain_text("all in [5, :, :, :]")
    expect(selected(page)).to_contain_text("weight differs")
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(2 * N_BLOCKS + 2))
    # There is no other culprit.
    expect(page.get_by_role("gridcell").filter(has_text="weight differs")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/tensor\?.*op={CULPRIT}"))
    expect(page.get_by_text("Worst elements")).to_be_visible()
    expect(page.locator("canvas.picture").first).to_be_visible()
    worst = page.get_by_text(re.compile(r"^\[5, \d+, \d+, \d+\]$"))
    expect(worst.first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(r"/overview"))


def test_the_table_is_filtered_sorted_and_walked_by_keys(page: Page, both: Viewer) -> None:
    page.goto(both.address)
    expect(selected(page)).to_be_visible()
    before = selected(page).get_attribute("aria-rowindex")
    page.keyboard.press("j")
    expect(selected(page)).not_to_have_attribute("aria-rowindex", before or "")
    page.keyboard.press("k")
    expect(selected(page)).to_have_attribute("aria-rowindex", before or "")
    page.keyboard.press("/")
    page.keyboard.type("type:Conv status:pass")
    page.keyboard.press("Enter")
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(CULPRIT // 2 + 1))
    expect(page).to_have_url(re.compile(r"q=type"))
    # The last good filter stays in force.
    box = page.get_by_role("combobox", name="Filter")
    box.fill("type:Conv stauts:pass")
    expect(page.get_by_role("alert")).to_contain_text("stauts")
    expect(page.get_by_role("alert")).to_contain_text("status:pass")
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(CULPRIT // 2 + 1))
    box.fill("")
    page.keyboard.press("Enter")
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(2 * N_BLOCKS + 2))
    page.get_by_role("columnheader").filter(has_text="rel_l2").click()
    expect(page).to_have_url(re.compile(r"sort=-?error"))


def test_links_lead_to_a_selection(page: Page, both: Viewer) -> None:
    page.goto(both.url(op=3))
    expect(selected(page)).to_contain_text("Relu")
    expect(selected(page)).to_have_attribute("aria-rowindex", "5")
    page.goto(both.url("tensor", op=CULPRIT, slot="in1", ax="r,c,1,1"))
    expect(page.get_by_text("[5, ").first).to_be_visible()
    page.goto(both.url("coverage"))
    expect(page.get_by_role("tab", name="Coverage")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("table").first).to_contain_text("compared", ignore_case=True)


def test_language_and_theme_change(page: Page, both: Viewer) -> None:
    page.goto(both.address)
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", re.compile("^zh"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("权重不一致")
    # Switching keeps the selection.
    expect(selected(page)).to_be_visible()
    page.goto(both.url(theme="dark"))
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_names_are_text(page: Page, both: Viewer) -> None:
    page.goto(both.url(op=2 * N_BLOCKS))
    name = selected(page).get_by_role("gridcell").nth(2)
    expect(name).to_have_attribute("aria-description", "Reciprocal <script>alert(1)</script>⟨RLO⟩evil␛[31m")
    expect(name).to_contain_text("script>⟨RLO⟩evil␛[31m")
    # Direction marks and control characters are made visible.
    expect(selected(page)).not_to_contain_text("\u202e")
    assert page.locator("script").count() == 1


def test_one_dump_names_what_makes_infinities(page: Page, alone: Viewer) -> None:
    page.goto(alone.address)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Reciprocal")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Inf")
    expect(selected(page)).to_contain_text("produces Inf")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search").fill("stage1.7/conv")
    page.keyboard.press("Enter")
    expect(selected(page).get_by_role("gridcell").nth(2)).to_have_attribute(
        "aria-description", re.compile("stage1.7/conv")
    )


def test_sound_dumps_accuse_nobody(page: Page, view: Callable[..., Viewer], dumps: list[Path]) -> None:
    page.goto(view(dumps[1], dumps[1]).address)
    expect(page.get_by_role("heading", level=1)).to_contain_text("The runs agree")
    expect(rows(page).first).to_be_visible()
    assert page.locator(".g-fault").count() == 0


def test_damage_is_told(page: Page, view: Callable[..., Viewer], tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    model = dumps[0].with_suffix(".onnx")
    dump = tmp_path / "dump"
    tool.dump(model, "--form", "acl", "--out", dump, "--input", f"x={model.parent}/x.npy")
    files = sorted(path for path in dump.rglob("Relu.*") if path.is_file())
    files[0].write_bytes(files[0].read_bytes()[:20])
    viewer = view(dump)
    page.goto(viewer.url("coverage"))
    expect(page.get_by_text(files[0].name).first).to_be_visible()
    page.goto(viewer.url(q="status:skip"))
    expect(rows(page)).to_have_count(1)


@pytest.mark.parametrize("width", [1024, 420, 320])
def test_narrow_windows_do_not_scroll_sideways(page: Page, both: Viewer, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for name in ("overview", "tensor", "coverage"):
        page.goto(both.url(name, op=CULPRIT, slot="in1"))
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def growing(folder: Path) -> Path:
    """A model whose exponential leaves float32 in the eighth of twelve steps."""
    nodes = [
        helper.make_node("Mul", ["x", "gain"], ["h"], "/block1/Mul"),
        helper.make_node("Exp", ["h"], ["e"], "/block2/Exp"),
        helper.make_node("Sub", ["e", "e"], ["y"], "/head/Sub"),
    ]
    graph = helper.make_graph(
        nodes,
        "growing",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(np.float32([2]), "gain")],
    )
    model = folder / "growing.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    (folder / "steps").mkdir()
    for step in range(12):
        np.savez(folder / "steps" / f"{step:02}.npz", x=np.float32([1, 2, 3, 4]) * 1.6 * (step + 1) / 1.1)
    return model


def test_the_step_and_the_operator_are_named(
    page: Page, view: Callable[..., Viewer], tool: Binary, tmp_path: Path
) -> None:
    model = growing(tmp_path)
    tool.dump(model, "--out", tmp_path / "dump", "--inputs", tmp_path / "steps", "--steps", 12)
    viewer = view(tmp_path / "dump")
    page.goto(viewer.address)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text(re.compile(r"Step \d+: Exp .* overflows float32"))
    page.get_by_role("tab", name="Steps").click()
    expect(page).to_have_url(re.compile("/steps"))
    expect(page.locator("canvas").first).to_be_visible()
    page.get_by_role("button", name="As a table").first.click()
    table = page.get_by_role("table").first
    # The exponential makes infinities from finite numbers, their difference hands NaN on.
    expect(table.get_by_role("row").filter(has_text="Exp")).to_contain_text("culprit")
    expect(table.get_by_role("row").filter(has_text="Sub")).to_contain_text("NaN")
    expect(table.get_by_role("row").filter(has_text="Sub")).not_to_contain_text("culprit")
