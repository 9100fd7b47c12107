"""A dump of a million tensors, most of whose bytes are holes in their files."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import dump_writer
import pytest
from conftest import Viewer
from playwright.sync_api import Page, expect

N_OPERATORS = 100_000
N_INPUTS, N_OUTPUTS = 8, 2
N_ELEMENTS = 16


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, view: Callable[..., Viewer]) -> Viewer:
    """Dump files of AscendCL. All elements are zero, but for a NaN of the operator 77,777."""
    root = tmp_path_factory.mktemp("large") / "20240101000000" / "0" / "net" / "1"
    tensor = dump_writer.Tensor(dump_writer.FLOAT32, [N_ELEMENTS], bytes(4 * N_ELEMENTS))
    n_payload = 4 * N_ELEMENTS * (N_INPUTS + N_OUTPUTS)
    for step in range(10):
        (root / str(step)).mkdir(parents=True)
        for position in range(N_OPERATORS // 10):
            name = f"layer{position // 20}_op{position}"
            whole = dump_writer.dump_file(name, [tensor] * N_INPUTS, [tensor] * N_OUTPUTS, time=position + 1)
            with open(root / str(step) / f"MatMul.{name}.{position}.0.{position + 1}", "wb") as file:
                # A file of its size without blocks for its elements.
                file.write(whole[:-n_payload])
                file.truncate(len(whole))
                if (step, position) == (7, 7_777):
                    file.seek(len(whole) - 4)
                    file.write(struct.pack("<f", float("nan")))
    return view(root.parents[2])


def test_a_million_tensors_are_shown_sorted_and_filtered(page: Page, large: Viewer) -> None:
    page.goto(large.address)
    grid = page.get_by_role("grid")
    # The table is there before all elements are read.
    expect(grid).to_have_attribute("aria-rowcount", str(N_OPERATORS + 1))
    expect(page.get_by_role("heading", level=1)).to_contain_text("produces the first NaN", timeout=180_000)
    expect(page.get_by_text("The elements are being read")).to_have_count(0, timeout=180_000)
    page.keyboard.press("/")
    page.keyboard.type("step:7 name~op777")
    page.keyboard.press("Enter")
    # 777, 7770 to 7779.
    expect(grid).to_have_attribute("aria-rowcount", str(11 + 1))
    page.get_by_role("combobox", name="Filter").fill("nonfinite:nan")
    page.keyboard.press("Enter")
    expect(grid).to_have_attribute("aria-rowcount", "2")
    expect(page.get_by_role("gridcell").first).to_be_visible()
    page.get_by_role("combobox", name="Filter").fill("")
    page.keyboard.press("Enter")
    expect(grid).to_have_attribute("aria-rowcount", str(N_OPERATORS + 1))
    page.get_by_role("columnheader").get_by_role("button", name="NaN").click()
    expect(page).to_have_url(re.compile("sort="))
    # Only what is on the screen is in the document.
    assert page.get_by_role("row").count() < 80
    # The last row is reached by one jump of the scroll bar.
    page.goto(large.url(op=N_OPERATORS - 1))
    expect(page.locator("[role=row][aria-selected=true]").first).to_have_attribute(
        "aria-rowindex", str(N_OPERATORS + 1)
    )
