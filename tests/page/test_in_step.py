"""Both graphs in step, and pairs made by hand, in a browser.

OPSCOPE=target/debug/opscope OPSCOPE_BROWSER=/usr/bin/chromium pytest tests/page/test_in_step.py
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from binary import Binary
from conftest import Viewer
from playwright.sync_api import Locator, Page, expect
from transformer import Transformer, tokens, with_other_bias

GEMM = "/blocks.1/attn/v/MatMul/MatMulAddFusion"
PARTS = ["/blocks.1/attn/v/MatMul", "/blocks.1/attn/v/Add"]
N_LINEAR = 18


@pytest.fixture(scope="module")
def dumps(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A transformer with fused operators, of which one reads another bias, and as it was exported."""
    folder = tmp_path_factory.mktemp("a page's graphs")
    np.save(folder / "x.npy", tokens())
    fused = with_other_bias(Transformer(is_fused=True).model(), "blocks.1/attn/v.bias")
    for name, model in (("fused", fused), ("exported", Transformer(is_fused=False).model())):
        onnx.save(model, folder / f"{name}.onnx")
        tool.dump(folder / f"{name}.onnx", "--out", folder / name, "--input", f"x={folder}/x.npy")
    return [folder / "fused", folder / "exported"]


@pytest.fixture(scope="module")
def both(view: Callable[..., Viewer], dumps: list[Path]) -> Viewer:
    return view(*dumps)


def side_button(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name="Graph shown").get_by_role("button", name=name, exact=True)


def count(page: Page, words: str) -> Locator:
    row = page.get_by_role("region", name="Pairs").get_by_role("row").filter(has_text=re.compile(f"^{words}"))
    return row.get_by_role("cell")


def graph(page: Page, **query: str) -> dict[str, Any]:
    """The graph that the page shows, asked for by the page."""
    words = "&".join(f"{name}={value}" for name, value in query.items())
    path = "/".join(page.url.split("/")[:4])
    return page.evaluate("path => fetch(path).then(answer => answer.json())", f"{path}/api/graph?side=both&{words}")


def box_named(page: Page, name: str, side: str, **query: str) -> dict[str, Any]:
    (box,) = [b for b in graph(page, **query)["boxes"] if b.get("op_name") == name and b["side"] == side]
    return box


def click_box(page: Page, name: str, side: str, **query: str) -> None:
    """Clicks a box on the canvas after all of the graph was made to fit it."""
    canvas = page.get_by_role("application")
    page.keyboard.press("f")
    area = canvas.bounding_box()
    assert area
    whole = graph(page, **query)
    (box,) = [b for b in whole["boxes"] if b.get("op_name") == name and b["side"] == side]
    scale = min(1, (area["width"] - 32) / whole["width"], (area["height"] - 32) / whole["height"])
    # The whole is in the middle.
    x = area["width"] / 2 + (box["x"] + box["width"] / 2 - whole["width"] / 2) * scale
    y = area["height"] / 2 + (box["y"] + box["height"] / 2 - whole["height"] / 2) * scale
    canvas.click(position={"x": x, "y": y})


def test_both_graphs_are_shown_in_step(page: Page, both: Viewer) -> None:
    page.goto(both.url("graph"))
    expect(side_button(page, "both, in step")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("application")).to_have_attribute("aria-label", re.compile("in step: [0-9]+ rows"))
    expect(page.get_by_text("fused, ")).to_be_visible()
    # What only one side has is counted, and listed once.
    expect(count(page, "target only")).to_have_text(str(2 * N_LINEAR))
    expect(count(page, "golden only")).to_have_text(str(N_LINEAR + 3))
    outline = page.get_by_role("tree", name="Outline")
    expect(outline.get_by_role("treeitem", name=re.compile("^attn, Identity, golden only$"))).to_be_visible()
    expect(outline.get_by_role("treeitem", name=re.compile("gemm_input.*, Reshape, target only$")).first).to_be_visible()
    expect(page.get_by_role("heading", name="Matches in exported, by")).to_be_visible()


def test_the_side_is_in_the_address(page: Page, both: Viewer) -> None:
    page.goto(both.url("graph"))
    side_button(page, "exported").click()
    expect(page).to_have_url(re.compile(r"side=golden"))
    outline = page.get_by_role("tree", name="Outline")
    expect(outline.get_by_role("treeitem", name="attn, Identity, golden only")).to_be_visible()
    expect(outline.get_by_role("treeitem", name=re.compile("gemm_input"))).to_have_count(0)
    page.reload()
    expect(side_button(page, "exported")).to_have_attribute("aria-pressed", "true")
    side_button(page, "fused").click()
    expect(outline.get_by_role("treeitem", name=re.compile("gemm_input")).first).to_be_visible()
    side_button(page, "both, in step").click()
    # The default is left out.
    expect(page).not_to_have_url(re.compile("side="))


def test_a_group_opens_on_both_sides(page: Page, both: Viewer) -> None:
    page.goto(both.url("graph"))
    outline = page.get_by_role("tree", name="Outline")
    group = outline.get_by_role("treeitem", name=re.compile(r"^blocks.0, \d+ ops$"))
    expect(group).to_have_attribute("aria-expanded", "false")
    group.click()
    expect(group).to_have_attribute("aria-expanded", "true")
    expect(page).to_have_url(re.compile("open=[^&]*blocks.0"))
    opened = graph(page, open="blocks.0")
    found = [b for b in opened["boxes"] if b["path"] == "blocks.0"]
    assert [(b["side"], b["is_open"]) for b in found] == [("target", True), ("golden", True)]
    group.click()
    expect(group).to_have_attribute("aria-expanded", "false")


def test_one_dump_has_one_graph(page: Page, view: Callable[..., Viewer], dumps: list[Path]) -> None:
    page.goto(view(dumps[1]).url("graph", side="golden"))
    expect(page.get_by_role("tree", name="Outline").get_by_role("treeitem").first).to_be_visible()
    expect(page.get_by_role("group", name="Graph shown")).to_have_count(0)
    page.keyboard.press("P")
    expect(page.get_by_text("Pairing")).to_have_count(0)


def test_a_pair_made_by_hand_is_saved_and_compared(
    page: Page, both: Viewer, tool: Binary, view: Callable[..., Viewer], dumps: list[Path], tmp_path: Path
) -> None:
    page.goto(both.url("graph"))
    panel = page.get_by_role("region", name="Paired by hand")
    expect(page.get_by_role("heading", name="Matches in exported, by")).to_be_visible()
    expect(panel).to_have_count(0)
    # By P, clicks on the other side and Enter.
    page.keyboard.press("P")
    bar = page.get_by_role("status").filter(has_text="Pairing")
    expect(bar).to_contain_text("click operators of exported")
    page.keyboard.press("Enter")
    expect(bar).to_be_visible()
    for part in PARTS:
        click_box(page, part, "golden")
    expect(bar).to_contain_text("MatMul")
    expect(bar).to_contain_text("Add")
    # A second click takes it out again.
    click_box(page, PARTS[1], "golden")
    expect(bar).not_to_contain_text("Add")
    click_box(page, PARTS[1], "golden")
    # The target's own boxes are no partners.
    click_box(page, GEMM, "target")
    page.keyboard.press("Enter")
    expect(bar).to_have_count(0)
    expect(panel).to_contain_text(f"{GEMM} ← {' + '.join(PARTS)}")
    expect(panel).to_contain_text("take effect when the comparison is repeated")
    # By keys alone, in the outline.
    reshape = page.get_by_role("treeitem", name=re.compile("gemm_output_reshape_45"))
    click_box(page, "gemm_output_reshape_45", "target")
    expect(reshape).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("heading", name="No match in exported")).to_be_visible()
    page.keyboard.press("P")
    page.get_by_role("treeitem", name="attn, Identity").focus()
    page.keyboard.press("Space")
    expect(bar).to_contain_text("Identity")
    page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    expect(page).to_have_url(re.compile("/graph"))
    expect(count(page, "by hand, not yet compared")).to_have_text("1")
    # They outlive a look at another view, and the page itself.
    page.reload()
    expect(panel).to_contain_text(GEMM)
    with page.expect_download() as download:
        panel.get_by_role("button", name="Save mapping").click()
    assert download.value.suggested_filename == "mapping.json"
    mapping = tmp_path / "mapping.json"
    download.value.save_as(mapping)
    assert json.loads(mapping.read_text()) == {"operators": [{"target": GEMM, "golden": PARTS}]}
    command = shlex.split(panel.locator("code").inner_text())
    assert command[:2] == ["opscope", "compare"] and command[-1] == "--view"
    assert [Path(part) for part in command[2:4]] == dumps
    check_comparison(tool, command[1:-1], tmp_path)
    panel.get_by_role("button", name=re.compile("^Undo")).click()
    expect(panel).to_have_count(0)


def check_comparison(tool: Binary, command: list[str], folder: Path) -> None:
    """The comparison takes the file, and pairs by it."""
    done = subprocess.run(
        [str(tool.path), *command, "--json", "-"], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 1, done.stderr
    operators = json.loads(done.stdout)["operators"]
    (pair,) = [operator for operator in operators if operator["how"] == "mapping"]
    assert [name["op_name"] for name in pair["target"]] == [GEMM]
    assert [name["op_name"] for name in pair["golden"]] == PARTS


def test_unpairing_says_that_there_is_no_partner(
    page: Page, view: Callable[..., Viewer], tool: Binary, dumps: list[Path], tmp_path: Path
) -> None:
    page.goto(view(*dumps).url("graph"))
    expect(page.get_by_role("heading", name="Matches in exported, by")).to_be_visible()
    page.get_by_role("button", name="Unpair").click()
    panel = page.get_by_role("region", name="Paired by hand")
    expect(panel).to_contain_text(f"{GEMM} ← none")
    with page.expect_download() as download:
        panel.get_by_role("button", name="Save mapping").click()
    mapping = tmp_path / "mapping.json"
    download.value.save_as(mapping)
    done = subprocess.run(
        tool.command("compare", *dumps, "--mapping", mapping, "--json", "-"), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    reasons = {s["operator"]["op_name"]: s["reason"] for s in found["skips"] if "operator" in s and "slot" not in s}
    # Both sides of the pair that the comparison had found.
    assert reasons[GEMM] == reasons[PARTS[0]] == "left_out"


def test_fused_pairs_have_marks_and_dots(
    page: Page, tool: Binary, dumps: list[Path], tmp_path: Path
) -> None:
    """All linear layers paired by a mapping: each is next to both operators that it replaces."""
    model = onnx.load(dumps[1].with_suffix(".onnx"))
    layers = [node.name.removesuffix("/MatMul") for node in model.graph.node if node.name.endswith("/MatMul")]
    layers = [layer for layer in layers if not layer.endswith("/attn")]
    assert len(layers) == N_LINEAR
    entries = [
        {"target": f"{layer}/MatMul/MatMulAddFusion", "golden": [f"{layer}/MatMul", f"{layer}/Add"]} for layer in layers
    ]
    mapping = tmp_path / "all.json"
    mapping.write_text(json.dumps({"operators": entries}))
    command = tool.command("compare", *dumps, "--mapping", mapping, "--quiet", "--view", "--no-open")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        page.goto(server.stdout.readline().strip().replace("/overview", "/graph"))
        expect(count(page, "by hand")).to_have_text(str(N_LINEAR))
        expect(page.get_by_role("heading", name="Matches in exported, by hand")).to_be_visible()
        shown = graph(page)
        fused = [mark for mark in shown["step"]["marks"] if mark["n"] == [1, 2]]
        assert fused and all(mark["is_fused"] for mark in fused)
        assert box_named(page, GEMM, "target")["height"] == 58
        assert all(box["by_hand"] for box in shown["boxes"] if box.get("op_name") in (GEMM, *PARTS))
        # What the page keeps would not be all of the mapping.
        page.get_by_role("button", name="Unpair").click()
        panel = page.get_by_role("region", name="Paired by hand")
        expect(panel).to_contain_text(f"This comparison used {mapping}")
        page.goto("about:blank")
        server.terminate()


def test_the_graph_that_onnxruntime_executes_stands_beside_its_model(
    page: Page, view: Callable[..., Viewer], tool: Binary, tmp_path: Path
) -> None:
    library = os.environ.get("ONNXRUNTIME_LIBRARY")
    if library is None:
        pytest.skip("ONNXRUNTIME_LIBRARY names no library of ONNX Runtime")
    np.save(tmp_path / "x.npy", tokens())
    model = Transformer(is_fused=False).model()
    onnx.save(model, tmp_path / "exported.onnx")
    onnx.save(with_other_bias(model, "blocks.1/attn/v.bias"), tmp_path / "changed.onnx")
    executed = ("--engine", "onnxruntime", "--engine-lib", library, "--graph", "executed")
    for name, options in (("changed", executed), ("exported", ("--engine", "tract"))):
        tool.dump(tmp_path / f"{name}.onnx", "--out", tmp_path / name, "--input", f"x={tmp_path}/x.npy", *options)
    page.goto(view(tmp_path / "changed", tmp_path / "exported").url("graph"))
    # Undescribed fusions were found, and the bias of one of them differs.
    expect(page.locator("main")).to_contain_text("its bias differs")
    expect(count(page, "fused").last).not_to_have_text("0")
    assert box_named(page, GEMM, "target")["at_fault"]
    golden = [box for box in graph(page)["boxes"] if box["side"] == "golden" and box["id"] is not None]
    of_pair = [box["op_name"] for box in golden if box["id"] == box_named(page, GEMM, "target")["id"]]
    assert of_pair == PARTS
    expect(page.get_by_role("treeitem", selected=True).first).to_contain_text("v")
