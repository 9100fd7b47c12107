"""A dump with damage of several kinds: sound parts are shown, and the damage is reported.

OPSCOPE=target/debug/opscope OPSCOPE_BROWSER=/usr/bin/chromium pytest tests/page
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import Viewer
from event_dumps import block_record, write_operator, write_record
from page_parts import heading, rows, selected_row, tab
from playwright.sync_api import Page, expect

EVENTS = re.compile("events? by step and time")
TIME = 1700000000000000


@pytest.fixture(scope="module")
def damaged(view: Callable[..., Viewer], tmp_path_factory: pytest.TempPathFactory) -> Viewer:
    """Three operators of which one is cut off, two records of which one is short, and a list that is none."""
    root = tmp_path_factory.mktemp("damaged") / "broken"
    step = root / "20240102030405/0/net/1/0"
    ones = np.ones((4, 4), np.float32)
    write_operator(step, f"Abs.sound.0.0.{TIME}", [ones])
    cut = write_operator(step, f"Mul.cut.1.0.{TIME + 1}", [ones])
    cut.write_bytes(cut.read_bytes()[:30])
    write_operator(step, f"Add.wraps.2.0.{TIME + 2}", [ones])
    record = block_record(task=2, stream=0, status=0x10)
    write_record(step, record, task=2, stream=0, time=TIME + 2)
    write_record(step, record[:100], task=0, stream=0, time=TIME)
    (root / "20240102030405/overwrites.json").write_text("[1, 2")
    return view(root)


def test_what_is_sound_is_shown(page: Page, damaged: Viewer) -> None:
    page.goto(damaged.address)
    expect(heading(page)).to_contain_text("Add wraps overflows, according to its status 0x10, integer.")
    expect(page.locator(".facts")).to_contain_text("Not read")
    expect(rows(page, "Operators")).to_have_count(3)
    expect(selected_row(page)).to_contain_text("wraps")
    expect(page.locator(".facts").get_by_role("button", name="3")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("status:skip")
    page.keyboard.press("Enter")
    expect(rows(page, "Operators")).to_have_count(1)
    expect(rows(page, "Operators").first).to_contain_text("cut")


def test_each_damage_is_told_once(page: Page, damaged: Viewer) -> None:
    page.goto(damaged.address)
    expect(selected_row(page)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(tab(page, "Coverage")).to_have_attribute("aria-selected", "true")
    coverage = page.locator(".coverage")
    for name in (f"Mul.cut.1.0.{TIME + 1}", f"Opdebug.Node_OpDebug.0.0.{TIME}", "overwrites.json"):
        # As a message; skipped files are in a separate list.
        expect(coverage.locator("p.line", has=page.locator(".glyph")).filter(has_text=name)).to_have_count(1)


def test_events_tell_what_could_not_be_read(page: Page, damaged: Viewer) -> None:
    page.goto(damaged.url("events"))
    expect(rows(page, EVENTS)).to_have_count(1)
    notes = page.locator(".events-pane .note")
    expect(notes.filter(has_text="overwrites.json")).to_be_visible()
    expect(notes.filter(has_text="Opdebug.Node_OpDebug.0.0")).to_be_visible()


def test_the_tensor_of_a_damaged_file_has_a_message(page: Page, damaged: Viewer) -> None:
    page.goto(damaged.url("tensor", name="cut"))
    expect(page.get_by_text(re.compile("cut")).first).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert page.locator("canvas.picture").count() == 0
    page.goto(damaged.url("tensor", name="sound"))
    expect(page.locator("canvas.picture").first).to_be_visible()
