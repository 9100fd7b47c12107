"""Dumps of MindSpore's in the page.

OPSCOPE=target/debug/opscope OPSCOPE_BROWSER=/usr/bin/chromium pytest tests/page
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from conftest import Viewer
from mindspore_models import lenet
from page_parts import heading, rows, selected_row, tab
from playwright.sync_api import Page, expect

MODELS = Path(__file__).parents[1] / "models"
EVENTS = re.compile("events? by step and time")
COMMON = {
    "dump_mode": 0,
    "net_name": "Net",
    "iteration": "all",
    "input_output": 0,
    "kernels": [],
    "support_device": [0],
    "file_format": "npy",
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    # MindSpore allows letters, digits, `-`, `_` and `/` in paths.
    with tempfile.TemporaryDirectory(prefix="opscope-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def network(view: Callable[..., Viewer], tool: Binary, folder: Path) -> Viewer:
    """The network of a small image classifier, in the tree of MindSpore's."""
    built = lenet()
    onnx.save(built.model, folder / "lenet.onnx")
    np.savez(folder / "lenet.npz", **built.inputs)
    common = {**COMMON, "op_debug_mode": 0, "path": str(folder / "lenet")}
    config = {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (folder / "lenet.json").write_text(json.dumps(config))
    arguments = ("--inputs", folder / "lenet.npz", "--config", folder / "lenet.json", "--target", "cpu")
    tool.run("dump", folder / "lenet.onnx", *arguments)
    return view(folder / "lenet")


@pytest.fixture(scope="module")
def overflowed(view: Callable[..., Viewer], tool: Binary, folder: Path) -> Viewer:
    common = {**COMMON, "op_debug_mode": 3, "path": str(folder / "overflow")}
    (folder / "overflow.json").write_text(json.dumps({"common_dump_settings": common}))
    arguments = ("--inputs", MODELS / "overflow_six.sample.npz", "--config", folder / "overflow.json")
    tool.run("dump", MODELS / "overflow_six.onnx", *arguments, "--target", "ascend-o2")
    return view(folder / "overflow")


def test_a_sound_network_accuses_nobody(page: Page, network: Viewer) -> None:
    page.goto(network.address)
    expect(heading(page)).to_have_text(re.compile(r"^\d+ operators, all finite; the largest value is "))
    expect(rows(page, "Operators").first).to_be_visible()
    assert page.locator(".g-fault").count() == 0
    assert tab(page, "Events").count() == 0
    page.keyboard.press("/")
    page.keyboard.type("type:Conv")
    page.keyboard.press("Enter")
    expect(rows(page, "Operators")).to_have_count(2)
    expect(rows(page, "Operators").first).to_contain_text("Conv2D")
    page.get_by_role("columnheader").filter(has_text="max |x|").click()
    expect(page).to_have_url(re.compile("sort=-?max_abs"))
    rows(page, "Operators").first.click()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/tensor"))
    expect(page.locator("canvas.picture").first).to_be_visible()


def test_json_records_are_events(page: Page, overflowed: Viewer) -> None:
    page.goto(overflowed.url("events"))
    listed = rows(page, EVENTS)
    expect(listed.filter(has_text="0x400 · accumulation")).to_have_count(1)
    assert listed.filter(has_text="0x").count() == 6
    accumulated = listed.filter(has_text="0x400")
    accumulated.click()
    expect(accumulated).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("list", name="Status 0x400").locator(".is-set")).to_have_count(1)
    tab(page, "Overview").click()
    expect(selected_row(page)).to_contain_text("MatMul")
    expect(page.get_by_role("list", name="Status 0x400")).to_be_visible()
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("list", name="状态 0x400")).to_contain_text("累加")
