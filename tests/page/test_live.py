"""A page that is open while a model runs."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from binary import Binary
from conftest import TIMEOUT_MS
from onnx import TensorProto, helper
from playwright.sync_api import Browser, expect

N_STEPS = 1500


@pytest.fixture
def run(
    tool: Binary, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[subprocess.Popen[str]]:
    """A model whose logarithm has an infinity in every step, run with `--view`."""
    names = [f"block{block}/{part}" for block in range(8) for part in ("relu", "exp", "log")]
    types = {"relu": "Relu", "exp": "Exp", "log": "Log"}
    nodes = []
    for place, name in enumerate(names):
        op_type = types[name.split("/")[1]]
        nodes.append(helper.make_node(op_type, [f"v{place}"], [f"v{place + 1}"], name))
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [64])],
        [helper.make_tensor_value_info(f"v{len(names)}", TensorProto.FLOAT, None)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.linspace(0, 1, 64, dtype=np.float32))
    arguments = ["--input", f"v0={tmp_path}/x.npy", "--out", tmp_path / "dump", "--steps", str(request.param)]
    command = tool.command("dump", tmp_path / "m.onnx", *arguments, "--no-baseline", "--view", "--no-open")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    if process.poll() is None:
        process.kill()
    process.wait()


@pytest.mark.parametrize("run", [N_STEPS], indirect=True)
def test_operators_appear_while_the_model_runs(browser: Browser, run: subprocess.Popen[str]) -> None:
    assert run.stdout and run.stderr
    # Not the page that must end without errors: its server goes before it.
    page = browser.new_page(locale="en-US")
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(run.stdout.readline().strip())
    expect(page.get_by_role("gridcell").first).to_be_visible()
    # Before the run is over there are rows, and later more of them.
    expect(page.get_by_text("The model is running: operators appear as they are written.")).to_be_visible()
    expect(page.get_by_role("grid")).to_have_attribute("aria-rowcount", str(24 * N_STEPS + 1))
    expect(page.get_by_text("The model is running")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    # A selection that was made stays through the news.
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(r"op=\d+"))
    # Ctrl-C ends the page, with the code of the run.
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=TIMEOUT_MS / 1000) == 0
    assert "operators dumped" in run.stdout.read()
    expect(page.get_by_text("This page has lost the connection to opscope. Loaded content stays.")).to_be_visible()
    expect(page.get_by_role("gridcell").first).to_be_visible()
    page.close()


# More steps than are run before it is interrupted.
@pytest.mark.parametrize("run", [1_000_000], indirect=True)
def test_an_interrupted_run_ends_with_its_page(browser: Browser, run: subprocess.Popen[str]) -> None:
    assert run.stdout
    page = browser.new_page(locale="en-US")
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(run.stdout.readline().strip())
    expect(page.get_by_role("gridcell").first).to_be_visible()
    # The bar names the model, and says how far the run is.
    expect(page.get_by_text(re.compile(r"^m: step [\d,]+ of 1,000,000, about \d+ min left$"))).to_be_visible()
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=TIMEOUT_MS / 1000) == 130
    page.close()


def test_without_a_dump_there_is_no_page(tool: Binary, tmp_path: Path) -> None:
    result = subprocess.run(
        tool.command("dump", tmp_path / "none.onnx", "--stats", "--view"), capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "--view" in result.stderr
