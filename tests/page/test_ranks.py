"""A run of eight ranks in which one makes a NaN: operators over ranks, and navigation to one of them.

OPSCOPE=target/debug/opscope OPSCOPE_BROWSER=/usr/bin/chromium pytest tests/page/test_ranks.py
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from binary import Binary
from conftest import Viewer
from page_parts import tab
from playwright.sync_api import Page, expect

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ranks"))

from generate import generate
from native_dump import DumpOptions
from network import Fault, Mesh

MESH = Mesh(pp=1, dp=4, tp=2)
FAULT = Fault("nan", 5, 1, "layers.1/gelu")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("ranks") / "run"
    generate(run, MESH, 2, FAULT, DumpOptions())
    return run


def test_ranks_stand_beside_each_other(run: Path, view: Callable[..., Viewer], page: Page) -> None:
    page.goto(view(run).url())
    tab(page, "Steps").click()
    expect(page.get_by_role("heading", name="Operator × step")).to_be_visible()
    page.get_by_role("button", name="ranks", exact=True).click()
    expect(page.get_by_role("heading", name="Operator × rank")).to_be_visible()
    expect(page).to_have_url(re.compile("by=rank"))
    page.get_by_label("all steps").select_option("step 1")
    page.get_by_role("button", name="As a table").click()
    heads = [head.split()[-1] for head in page.locator("thead th").all_inner_texts()[1:]]
    assert heads == [str(rank) for rank in range(MESH.n_ranks)]
    row = page.locator("tbody tr").filter(has_text=re.compile("layers.1.*gelu"))
    texts = row.locator("td").all_inner_texts()
    is_bad = [bool(re.search("NaN|culprit", text)) for text in texts]
    assert is_bad == [rank == FAULT.rank for rank in range(MESH.n_ranks)], texts
    # The cell of the rank leads to its execution there.
    row.locator("td").nth(FAULT.rank).click()
    expect(page.locator(".steps-side .side-facts")).to_contain_text(f"rank {FAULT.rank}")
    expect(page).to_have_url(re.compile(f"rank={FAULT.rank}"))


def test_many_ranks_open_on_their_map(tmp_path: Path, view: Callable[..., Viewer], page: Page) -> None:
    generate(tmp_path / "run", Mesh(pp=1, dp=32, tp=2), 1, None, DumpOptions())
    page.goto(view(tmp_path / "run").address)
    expect(page.get_by_role("heading", name="Operator × rank")).to_be_visible()


def test_findings_of_a_command_have_a_page(run: Path, tool: Binary, page: Page) -> None:
    command = tool.command("nan", run, "--view", "--no-open")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    address = next(line for line in process.stdout if line.startswith("http"))
    page.goto(address.strip())
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Produced by rank {FAULT.rank}, step {FAULT.step}")
    expect(page.get_by_role("grid").get_by_role("row", selected=True)).to_contain_text("from finite inputs")
    # Its operator is selected in every view.
    tab(page, "Tensor").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("gelu")
    # An open page would report the end of its server.
    page.goto("about:blank")
    process.send_signal(signal.SIGINT)
    # The code of the findings.
    assert process.wait(timeout=60) == 1


def test_ranks_are_reached_by_keys(run: Path, view: Callable[..., Viewer], page: Page) -> None:
    page.goto(view(run).url("steps", by="rank", step=1))
    canvas = page.get_by_role("application")
    expect(canvas).to_be_visible()
    canvas.focus()
    facts = page.locator(".steps-side .side-facts")
    # The operator at fault is selected where the address names none.
    expect(facts).to_contain_text(f"rank {FAULT.rank}")
    for key, rank in (("}", 6), ("{", 5), ("ArrowRight", 6), ("ArrowLeft", 5)):
        page.keyboard.press(key)
        expect(facts).to_contain_text(f"rank {rank}")
