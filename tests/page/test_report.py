"""The page as one file, opened from a disk without a server: what is shown, clicked, typed and printed.

OPSCOPE=target/debug/opscope OPSCOPE_BROWSER=/usr/bin/chromium pytest tests/page/test_report.py
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from conftest import TIMEOUT_MS, Viewer, Witness
from onnx import TensorProto, helper
from playwright.sync_api import Browser, Page, expect
from report import with_many_operators
from test_page import CULPRIT, HOSTILE, N_BLOCKS, growing, network, rows, selected

HOSTILE_NAMES = [HOSTILE, "</script><script>alert(2)</script>", "]]><!-- <img src=x onerror=alert(3)>", "\u2028`${alert(4)}`"]


@pytest.fixture(scope="module")
def dumps(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("report")
    np.save(folder / "x.npy", np.random.default_rng(4).normal(size=(1, 8, 12, 12)).astype(np.float32))
    for name, factor in (("faulty", 1.5), ("sound", 1.0)):
        onnx.save(network(factor=factor), folder / f"{name}.onnx")
        tool.dump(folder / f"{name}.onnx", "--out", folder / name, "--input", f"x={folder}/x.npy")
    return [folder / "faulty", folder / "sound"]


def written(tool: Binary, path: Path, *arguments: object) -> Path:
    """A page as `opscope compare --html` writes it."""
    command = tool.command("compare", *arguments, "--quiet", "--html", path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return path


@pytest.fixture(scope="module")
def report(tool: Binary, dumps: list[Path]) -> str:
    return written(tool, dumps[0].parent / "report.html", *dumps).as_uri()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page without a network that must end without errors, and have asked for its own file alone."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light", locale="en-US")
    context.set_default_timeout(TIMEOUT_MS)
    context.set_offline(True)
    page = context.new_page()
    witness, asked = Witness(), set[str]()
    witness.watch(page)
    page.on("request", lambda request: asked.add(request.url.split("#")[0]))
    yield page
    context.close()
    assert witness.errors == []
    assert all(url.startswith("file:///") and url.endswith(".html") for url in asked), asked


def has_picture(page: Page) -> None:
    """Whether three slices are drawn, with more than one colour in each."""
    pictures = page.locator("canvas.picture")
    expect(pictures).to_have_count(3)
    for i in range(3):
        expect(pictures.nth(i)).to_be_visible()
        n_colours = pictures.nth(i).evaluate(
            """canvas => {
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const colours = new Set();
                for (let i = 0; i < data.length; i += 4) colours.add(data.slice(i, i + 3).join());
                return colours.size;
            }"""
        )
        assert n_colours > 3


def test_the_culprit_is_named_selected_and_shown(page: Page, report: str) -> None:
    page.goto(report)
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"The runs diverge at Conv .*conv: its weight differs\."))
    expect(page.get_by_text("Opscope report", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d\d:\d\d UTC")).first).to_be_visible()
    expect(page.get_by_role("link", name="Send as file")).to_have_count(0)
    fault = page.get_by_role("region", name="Culprit")
    expect(fault).to_contain_text("weight differs")
    expect(fault).to_contain_text("rel_l2")
    expect(fault.get_by_text(re.compile(r"^\[5, \d+, \d+, \d+\]$"))).to_have_count(3)
    has_picture(page)
    expect(fault).to_contain_text("row 5 only")
    table = page.get_by_role("region", name="Operators")
    expect(table.get_by_role("grid")).to_have_attribute("aria-rowcount", str(2 * N_BLOCKS + 2))
    expect(selected(page)).to_contain_text("weight differs")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"#/tensor\?.*op={CULPRIT}"))
    expect(page.get_by_text("Worst elements")).to_be_visible()
    has_picture(page)
    expect(page.get_by_role("table", name="Difference around the pointer")).to_be_visible()
    # What needs the dump is disabled, and says why.
    expect(page.get_by_role("button", name="Download .npy")).to_be_disabled()
    expect(page.get_by_role("combobox", name="Axes N")).to_be_disabled()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(r"#/overview"))


def test_the_table_is_filtered_and_sorted(page: Page, report: str) -> None:
    page.goto(report)
    grid = page.get_by_role("grid", name="Operators")
    # The page takes keys once it is there as a whole.
    has_picture(page)
    page.keyboard.press("/")
    page.keyboard.type("type:Conv status:pass")
    page.keyboard.press("Enter")
    expect(grid).to_have_attribute("aria-rowcount", str(CULPRIT // 2 + 1))
    expect(page).to_have_url(re.compile(r"#/overview\?.*q=type"))
    box = page.get_by_role("combobox", name="Filter")
    box.fill("type:Conv stauts:pass")
    expect(page.get_by_role("alert")).to_contain_text("stauts")
    expect(page.get_by_role("alert")).to_contain_text("status:pass")
    expect(grid).to_have_attribute("aria-rowcount", str(CULPRIT // 2 + 1))
    box.fill("")
    page.keyboard.press("Enter")
    expect(grid).to_have_attribute("aria-rowcount", str(2 * N_BLOCKS + 2))
    page.get_by_role("button", name="rel_l2 of outputs").click()
    expect(page).to_have_url(re.compile(r"sort=-error"))
    expect(rows(page).filter(has_text="inherited").first).to_be_visible()


def test_links_lead_to_a_selection(page: Page, report: str) -> None:
    page.goto(f"{report}#/overview?op=3")
    expect(selected(page)).to_contain_text("Relu")
    expect(page.get_by_role("region", name="Selected operator")).to_contain_text("#3 of 81")
    # A link that is followed in the open page leads there without reloading it.
    page.evaluate("window.is_same = true")
    page.goto(f"{report}#/tensor?op={CULPRIT}&slot=in1")
    expect(page.get_by_text("Worst elements")).to_be_visible()
    page.goto(f"{report}#coverage")
    expect(page.get_by_role("table").first).to_contain_text("compared", ignore_case=True)
    page.go_back()
    expect(page.get_by_text("Worst elements")).to_be_visible()
    assert page.evaluate("window.is_same")
    page.goto(f"{report}#/overview?name=/stage1/stage1.2/conv/Conv")
    expect(page).to_have_url(re.compile(r"op=24"))


def test_language_changes_and_the_selection_stays(page: Page, report: str) -> None:
    page.goto(f"{report}#/overview?op={CULPRIT}")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    expect(page.get_by_role("heading", level=1)).to_contain_text("权重不一致")
    expect(page).to_have_url(re.compile(rf"op={CULPRIT}.*lang=zh"))
    expect(selected(page)).to_contain_text("权重不一致")
    page.goto(f"{report}#/overview?theme=dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_groups_open_as_far_as_the_file_goes(page: Page, report: str) -> None:
    page.goto(f"{report}#/graph?op={CULPRIT}")
    tree = page.get_by_role("tree")
    branch = tree.get_by_role("treeitem", name=re.compile("stage2.0"))
    expect(branch).to_have_attribute("aria-expanded", "true")
    branch.click()
    expect(branch).to_have_attribute("aria-expanded", "false")
    expect(page).to_have_url(re.compile(r"open=stage2"))
    branch.click()
    expect(branch).to_have_attribute("aria-expanded", "true")
    other = tree.get_by_role("treeitem", name=re.compile("stage0"))
    other.first.click()
    expect(other.first).to_have_attribute("aria-expanded", "true")


def test_paper_has_every_operator(page: Page, report: str) -> None:
    page.goto(f"{report}#/overview?theme=dark")
    expect(selected(page)).to_be_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    table = page.get_by_role("region", name="Operators")
    expect(table.get_by_role("row")).to_have_count(2 * N_BLOCKS + 2)
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    tops = table.get_by_role("row").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().top)")
    assert tops == sorted(set(tops))
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def hostile(names: list[str], factor: float) -> onnx.ModelProto:
    weights = [helper.make_tensor(f"w{i}", TensorProto.FLOAT, [4], [1, 2, 3, 4 * factor]) for i in range(len(names))]
    nodes = [helper.make_node("Mul", [f"v{i}", f"w{i}"], [f"v{i + 1}"], name) for i, name in enumerate(names)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("v0", f"v{len(names)}")]
    graph = helper.make_graph(nodes, "hostile", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_names_are_text(page: Page, tool: Binary, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.float32([1, 2, 3, 4]))
    for name, factor in (("<b>faulty", 1.5), ("sound", 1.0)):
        onnx.save(hostile(HOSTILE_NAMES, factor), tmp_path / "net.onnx")
        tool.dump(tmp_path / "net.onnx", "--out", tmp_path / name, "--input", f"v0={tmp_path}/x.npy")
    path = written(tool, tmp_path / "report.html", tmp_path / "<b>faulty", tmp_path / "sound")
    page.goto(path.as_uri())
    shown = [
        "<script>alert(1)</script>⟨RLO⟩evil␛[31m",
        "</script><script>alert(2)</script>",
        "]]><!-- <img src=x onerror=alert(3)>",
        "`${alert(4)}`",
    ]
    cells = page.get_by_role("grid", name="Operators").locator(".op")
    expect(cells).to_have_count(len(HOSTILE_NAMES))
    for i, name in enumerate(shown):
        expect(cells.nth(i)).to_have_attribute("aria-description", re.compile(re.escape(name)))
    expect(page.get_by_role("banner")).to_contain_text("<b>faulty")
    for view in ("tensor", "graph", "coverage"):
        page.goto(f"{path.as_uri()}#/{view}?op=1")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.locator("script").count() == 2
    assert page.locator("img, b:has-text('faulty')").count() == 0
    assert "\u202e" not in page.locator("#page").inner_text()


def test_one_dump_is_sent_as_a_file(
    page: Page, view: Callable[..., Viewer], tool: Binary, browser: Browser, tmp_path: Path
) -> None:
    model = growing(tmp_path)
    tool.dump(model, "--out", tmp_path / "dump", "--inputs", tmp_path / "steps", "--steps", 12)
    with browser.new_context(accept_downloads=True) as context:
        served = context.new_page()
        served.goto(view(tmp_path / "dump").address)
        with served.expect_download() as download:
            served.get_by_role("link", name="Send as file").click()
        assert download.value.suggested_filename == "opscope-dump.html"
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
    page.goto(path.as_uri())
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile(r"Step \d+: Exp .* overflows float32"))
    expect(page.get_by_role("region", name="Culprit")).to_contain_text("produces Inf")
    page.get_by_role("button", name="Steps").click()
    expect(page).to_have_url(re.compile("#/steps"))
    expect(page.locator("canvas").first).to_be_visible()
    page.get_by_role("button", name="As a table").first.click()
    table = page.get_by_role("table").first
    expect(table.get_by_role("row").filter(has_text="Exp")).to_contain_text("culprit")
    expect(table.get_by_role("row").filter(has_text="Sub")).to_contain_text("NaN")


def test_a_saved_result_says_why_there_are_no_tensors(page: Page, tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    saved = tmp_path / "result.json"
    subprocess.run(tool.command("compare", *dumps, "--quiet", "--json", saved), check=False, timeout=300)
    page.goto(written(tool, tmp_path / "report.html", "--from", saved).as_uri())
    expect(page.get_by_role("heading", level=1)).to_contain_text("The runs diverge at Conv")
    expect(page.get_by_role("region", name="Culprit")).to_contain_text("without the dumps")
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_contain_text("without the dumps")


def test_what_is_left_out_is_told(page: Page, tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    saved = tmp_path / "result.json"
    subprocess.run(tool.command("compare", *dumps, "--quiet", "--json", saved), check=False, timeout=300)
    saved.write_text(json.dumps(with_many_operators(json.loads(saved.read_text()), 20_100)))
    page.goto(written(tool, tmp_path / "report.html", "--from", saved).as_uri())
    expect(page.get_by_role("note")).to_contain_text("the 20,000 worst of 20,100 operators; 100 are left out")
    expect(page.get_by_role("heading", level=1)).to_contain_text("The runs diverge at Conv")
    grid = page.get_by_role("grid", name="Operators")
    expect(grid).to_have_attribute("aria-rowcount", "20001")
    page.goto(f"{page.url.split('#')[0]}#/overview?op=15000")
    expect(page.get_by_role("region", name="Selected operator")).to_contain_text("details of the worst operators only")


@pytest.mark.parametrize("width", [1920, 1024, 420, 320])
def test_narrow_windows_do_not_scroll_sideways(page: Page, report: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for name in ("overview", "graph", "tensor", "coverage"):
        page.goto(f"{report}#/{name}?op={CULPRIT}&slot=in1")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
