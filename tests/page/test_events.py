"""Overflow records and overwritten memory in the page, by pointer and by keys alone.

OPSCOPE=target/debug/opscope OPSCOPE_BROWSER=/usr/bin/chromium pytest tests/page
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from binary import Binary
from conftest import Viewer
from event_dumps import OVERFLOW_STEPS, overflow_dump, overwritten_dump
from page_parts import heading, rows, selected_row, tab
from playwright.sync_api import Page, expect

EVENTS = re.compile("events? by step and time|个事件")
MODELS = Path(__file__).parents[1] / "models"
N_STEPS = OVERFLOW_STEPS


@pytest.fixture(scope="module")
def overflowed(view: Callable[..., Viewer], tmp_path_factory: pytest.TempPathFactory) -> Viewer:
    """Three steps: the projection leaves float32 in the last, and a counter wraps in the second."""
    root = tmp_path_factory.mktemp("overflow") / "train"
    overflow_dump(root)
    return view(root)


def status_boxes(page: Page, *, is_set: bool) -> list[str]:
    boxes = page.get_by_role("list", name=re.compile("Status|状态")).get_by_role("listitem")
    texts = [(box.inner_text().split(), box.get_attribute("class")) for box in boxes.all()]
    return [words[0] for words, look in texts if ("is-set" in (look or "")) == is_set]


def test_the_verdict_has_the_status_and_the_chain(page: Page, overflowed: Viewer) -> None:
    page.goto(overflowed.address)
    expect(heading(page)).to_contain_text("Step 2: MatMul project")
    said = page.get_by_role("status").first
    expect(said).to_contain_text("status 0x400, accumulation")
    expect(tab(page, "Events")).to_contain_text("2")
    # The first record is of another operator, whose values show nothing.
    facts = page.locator(".facts")
    expect(facts).to_contain_text("First overflow")
    expect(facts.get_by_role("button", name="counter")).to_be_visible()
    # On the right: the way of the infinity, the bits of the status, and the steps before.
    chain = page.get_by_role("region", name="From the first NaN or Inf to the output")
    expect(chain.get_by_role("listitem").first).to_contain_text("produces Inf: 12 of 16")
    expect(page.get_by_role("list", name="Status 0x400")).to_be_visible()
    assert status_boxes(page, is_set=True) == ["0x400"]
    assert status_boxes(page, is_set=False) == ["0x008", "0x010", "0x020", "0x080", "0x100"]
    expect(page.get_by_text("max |x| of this output, steps 0 to 2")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("max .x. of this output"))).to_be_visible()
    facts.get_by_role("button", name="counter").click()
    expect(selected_row(page)).to_contain_text("counter")
    expect(page.get_by_role("list", name="Status 0x10")).to_be_visible()


def test_events_are_selected_by_pointer_in_every_view(page: Page, overflowed: Viewer) -> None:
    page.goto(overflowed.address)
    tab(page, "Events").click()
    expect(page).to_have_url(re.compile("/events"))
    listed = rows(page, EVENTS)
    expect(listed).to_have_count(2)
    expect(listed.nth(0)).to_contain_text("0x10 · integer")
    expect(listed.nth(0)).to_contain_text("22:13:20.001002")
    expect(listed.nth(0)).to_contain_text("1 · 7")
    expect(listed.nth(1)).to_contain_text("0x400 · accumulation")
    listed.nth(0).click()
    expect(listed.nth(0)).to_have_attribute("aria-selected", "true")
    pane = page.get_by_role("region", name="What")
    expect(pane).to_contain_text("2023-11-14 22:13:20.001002 UTC")
    expect(pane).to_contain_text("Opdebug.Node_OpDebug.1.7.")
    expect(page).to_have_url(re.compile(r"event=0"))
    expect(page.locator(".bits .is-set")).to_have_text(re.compile("0x010"))
    address = page.url
    tab(page, "Overview").click()
    expect(selected_row(page)).to_contain_text("counter")
    expect(selected_row(page)).to_contain_text("overflowed")
    tab(page, "Steps").click()
    expect(page.locator(".steps-side h2").first).to_have_text("counter")
    # The link leads back to the same event.
    page.goto(address)
    expect(listed.nth(0)).to_have_attribute("aria-selected", "true")


def test_events_are_walked_by_keys_alone(page: Page, overflowed: Viewer) -> None:
    page.goto(overflowed.address)
    expect(selected_row(page)).to_contain_text("project")
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page).to_have_url(re.compile("/events"))
    listed = rows(page, EVENTS)
    # The event of the operator that is selected already.
    expect(listed.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("k")
    expect(listed.nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(listed.nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(listed.nth(1)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("list", name="Status 0x400")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/tensor\?.*op=10"))
    expect(page.get_by_text("project").first).to_be_visible()


def test_events_in_chinese_and_dark(page: Page, overflowed: Viewer) -> None:
    page.goto(overflowed.url("events", event=1))
    expect(page.get_by_role("list", name="Status 0x400")).to_be_visible()
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("list", name="状态 0x400")).to_contain_text("累加")
    expect(rows(page, EVENTS).nth(1)).to_have_attribute("aria-selected", "true")
    expect(tab(page, "事件")).to_be_visible()
    page.get_by_role("button", name="深色").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(rows(page, EVENTS).nth(1)).to_have_attribute("aria-selected", "true")


def test_rows_that_overflowed_are_found_by_the_filter(page: Page, overflowed: Viewer) -> None:
    page.goto(overflowed.address)
    expect(selected_row(page)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("status:fail -nonfinite:any")
    page.keyboard.press("Enter")
    listed = rows(page, "Operators")
    expect(listed).to_have_count(1)
    expect(listed.first).to_contain_text("overflowed")
    box = page.get_by_role("combobox", name="Filter")
    box.fill("name~project")
    page.keyboard.press("Enter")
    expect(listed).to_have_count(N_STEPS)
    page.get_by_role("columnheader").filter(has_text="max |x|").click()
    expect(page).to_have_url(re.compile("sort=-?max_abs"))


@pytest.fixture(scope="module")
def overwritten(view: Callable[..., Viewer], tmp_path_factory: pytest.TempPathFactory) -> Viewer:
    root = tmp_path_factory.mktemp("watch") / "watched"
    overwritten_dump(root)
    return view(root)


def test_an_overwrite_shows_its_bytes(page: Page, overwritten: Viewer) -> None:
    page.goto(overwritten.address)
    expect(heading(page)).to_have_text("w1 was overwritten: seen after Add add2, bytes 28 to 35 and 1 more range.")
    # The operator after which it was seen need not be the one that did it.
    assert page.locator(".g-fault").count() == 0
    tab(page, "Events").click()
    expect(rows(page, EVENTS)).to_have_count(1)
    expect(rows(page, EVENTS).first).to_contain_text("w1 output 0 · bytes 28 to 35 and 1 more range")
    expect(page.get_by_text("4 more overwritten values were counted and not listed.")).to_be_visible()
    pane = page.get_by_role("region", name="What")
    after = np.float32([1.5, np.nan]).tobytes().hex(" ")
    table = pane.get_by_role("table").first
    expect(table.get_by_role("row").nth(1)).to_contain_text("28")
    expect(table.get_by_role("row").nth(1).get_by_role("cell").nth(1)).to_have_text(after)
    elements = pane.get_by_role("table").nth(1)
    expect(elements.get_by_role("row").nth(1)).to_contain_text("[7]")
    expect(elements.get_by_role("row").nth(3)).to_contain_text("−3e38")
    expect(elements.get_by_role("row").nth(2)).to_contain_text("NaN")
    expect(elements.get_by_role("row")).to_have_count(4)


def test_events_that_are_not_there_are_told(page: Page, overwritten: Viewer) -> None:
    page.goto(overwritten.url("events", event=12))
    expect(page.get_by_text("There is no event 12.")).to_be_visible()
    expect(rows(page, EVENTS).first).to_be_visible()


def test_the_dump_of_opscope_itself(page: Page, view: Callable[..., Viewer], tool: Binary, tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    config = {"dump": {"dump_path": str(tmp_path / "dump"), "dump_debug": "on"}}
    (tmp_path / "acl.json").write_text(json.dumps(config))
    sample = MODELS / "overflow_six.sample.npz"
    tool.run("dump", MODELS / "overflow_six.onnx", "--inputs", sample, "--config", tmp_path / "acl.json")
    page.goto(view(tmp_path / "dump").url("events"))
    listed = rows(page, EVENTS).filter(has_text="0x")
    expect(listed).to_have_count(6)
    for row in listed.all():
        row.click()
        expect(row).to_have_attribute("aria-selected", "true")
        status = re.search("0x[0-9a-f]+", row.inner_text())
        assert status
        boxes = page.get_by_role("list", name=f"Status {status.group()}").locator(".is-set")
        expect(boxes).to_have_count(1)
        expect(boxes).to_contain_text(f"0x{int(status.group(), 16):03x}")


@pytest.mark.parametrize("width", [1920, 1024, 420, 320])
def test_narrow_windows_do_not_scroll_sideways(
    page: Page, overflowed: Viewer, overwritten: Viewer, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for viewer in (overflowed, overwritten):
        page.goto(viewer.url("events"))
        expect(rows(page, EVENTS).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
