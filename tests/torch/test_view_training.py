"""A training run of PyTorch that goes NaN, in the page of `opscope view`.

OPSCOPE=target/debug/opscope pytest tests/torch/test_view_training.py, and OPSCOPE_BROWSER=/usr/bin/chromium where
playwright is installed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import opscope.torch
import pytest
import torch
from binary import Binary
from torch import nn

N_STEPS = 20
BROWSER = os.environ.get("OPSCOPE_BROWSER")


class Regression(nn.Module):
    """Two layers and the mean of squares."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.mse_loss(self.head(self.hidden(x)), y)


def train(path: Path) -> list[float]:
    """The losses of a training at a rate that is far too high."""
    model = Regression()
    backend = opscope.torch.backend(str(path))
    compiled = torch.compile(model, backend=backend)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    losses = []
    for _ in range(N_STEPS):
        loss = compiled(x, y)
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.9 * parameter.grad
                parameter.grad = None
        losses.append(float(loss.detach()))
    backend.finish()
    return losses


@contextmanager
def served(path: Path) -> Iterator[str]:
    """The address of the page's views."""
    command = Binary.from_environment().command("view", path, "--no-open")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    address = process.stdout.readline().strip()
    try:
        yield address.rsplit("/", 1)[0]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=600) == 0


def ask(base: str, question: str) -> Any:
    with urlopen(f"{base}/api/{question}", timeout=600) as answer:
        return json.load(answer)


@pytest.fixture
def trained(tmp_path: Path) -> Iterator[tuple[str, list[float]]]:
    losses = train(tmp_path / "dump")
    assert torch.isfinite(torch.tensor(losses[0]))
    assert not torch.isfinite(torch.tensor(losses[-1]))
    with served(tmp_path / "dump") as base:
        yield base, losses


def test_loss_and_first_bad_step_are_those_of_the_run(trained: tuple[str, list[float]]) -> None:
    base, losses = trained
    answer = ask(base, "scalars?columns=2000")
    (chosen,) = [choice for choice in answer["choices"] if choice["id"] == answer["chosen"]]
    assert "mse_loss" in chosen["op_type"] + chosen["op_name"] or "mean" in chosen["op_type"]
    bad = next(step for step, loss in enumerate(losses) if not torch.isfinite(torch.tensor(loss)))
    assert answer["target"]["marks"][:bad] == "0" * bad
    assert set(answer["target"]["marks"][bad:]) <= {"n", "i"}
    assert answer["target"]["high"][:bad] == losses[:bad]
    verdict = ask(base, "info")["verdict"]
    # Whatever made it, the loss of the same step shows it at the latest, and the backward graph after it.
    assert verdict["step"] <= bad
    assert "backward" not in verdict["op_type"]
    # The capture names the same operator, which the dump holds.
    (event,) = ask(base, "events")["events"]
    assert (event["op"], event["step"]) == (verdict["op"], verdict["step"])
    assert event["op_name"] == verdict["op_name"]


@pytest.mark.skipif(find_spec("playwright") is None or BROWSER is None, reason="there is no browser to drive")
def test_the_page_names_the_step(trained: tuple[str, list[float]]) -> None:
    from playwright import sync_api as playwright

    base, _ = trained
    step = ask(base, "info")["verdict"]["step"]
    with playwright.sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = running.chromium.launch(executable_path=BROWSER, args=arguments)
        page = browser.new_page(locale="en-US")
        page.goto(f"{base}/steps")
        playwright.expect(page.get_by_role("heading", level=1)).to_contain_text(f"Step {step}")
        curve = page.get_by_role("img", name=re.compile("over steps, from"))
        playwright.expect(curve.first).to_be_visible()
        browser.close()
