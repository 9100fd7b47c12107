"""A training run of 20 steps that goes NaN in step 13: the loss, the heat map, the verdict.

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
from numpy.typing import NDArray
from onnx import TensorProto, helper
from page_parts import heading, rows, selected_row, tab
from playwright.sync_api import Page, expect

N_STEPS = 20
BAD_STEP = 13


def network() -> onnx.ModelProto:
    """A least-squares fit whose squares leave float32 before anything else does."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], "/block1/MatMul"),
        helper.make_node("Sub", ["p", "y"], ["d"], "/block2/Sub"),
        helper.make_node("Mul", ["d", "d"], ["s"], "/block2/Mul"),
        helper.make_node("Sub", ["s", "s"], ["z"], "/block3/Sub"),
        helper.make_node("Add", ["s", "z"], ["a"], "/block3/Add"),
        helper.make_node("ReduceMax", ["d"], ["m"], "/watch/ReduceMax", keepdims=0),
        helper.make_node("ReduceMean", ["a"], ["loss"], "/head/loss/ReduceMean", keepdims=0),
    ]
    tensor = helper.make_tensor_value_info
    inputs = [("x", [16, 4]), ("w", [4, 1]), ("y", [16, 1])]
    graph = helper.make_graph(
        nodes,
        "training",
        [tensor(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [tensor(name, TensorProto.FLOAT, []) for name in ("loss", "m")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_steps(folder: Path) -> NDArray[np.float32]:
    """Inputs of each step, with weights that NumPy trains at a rate that is far too high; returns the losses."""
    random = np.random.default_rng(7)
    x = random.normal(size=(16, 4)).astype(np.float32)
    y = (x @ np.float32([[1], [-2], [3], [0.5]])).astype(np.float32)
    # Gradients grow by about the same factor in each step: this one passes 2e19, whose square is infinite.
    gain = np.float32(10.0 ** (19.8 / (BAD_STEP - 0.5)))
    w = np.full((4, 1), 0.1, np.float32)
    losses = []
    folder.mkdir()
    for step in range(N_STEPS):
        np.savez(folder / f"{step:02}.npz", x=x, w=w, y=y)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = (x @ w - y) ** 2
            losses.append((squares + (squares - squares)).mean(dtype=np.float32))
        w = w * gain
    return np.float32(losses)


@pytest.fixture(scope="module")
def training(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, NDArray[np.float32]]:
    folder = tmp_path_factory.mktemp("training")
    losses = write_steps(folder / "steps")
    assert np.isfinite(losses[:BAD_STEP]).all()
    assert not np.isfinite(losses[BAD_STEP:]).any()
    onnx.save(network(), folder / "training.onnx")
    tool.dump(folder / "training.onnx", "--inputs", folder / "steps", "--out", folder / "train_fp32")
    return folder / "train_fp32", losses


@pytest.fixture(scope="module")
def trained(view: Callable[..., Viewer], training: tuple[Path, NDArray[np.float32]]) -> Viewer:
    return view(training[0])


def test_step_and_operator_are_named(page: Page, trained: Viewer) -> None:
    page.goto(trained.address)
    expect(heading(page)).to_contain_text(f"Step {BAD_STEP}: Mul block2 overflows float32")
    expect(selected_row(page)).to_contain_text("block2")
    links = page.get_by_role("region", name="From the first NaN or Inf to the output").get_by_role("listitem")
    words = [r"Sub.*finite", "Mul.*produces Inf: ", "Sub.*Inf becomes NaN", "Add.*propagates", "loss.*propagates"]
    expect(links).to_have_text([re.compile(word) for word in words])
    expect(page.get_by_text(f"max |x| of this output, steps 0 to {N_STEPS - 1}")).to_be_visible()
    tab(page, "Steps").click()
    map = page.get_by_role("application")
    expect(map).to_have_attribute("aria-label", re.compile(rf"First bad value: step {BAD_STEP}, Mul block2"))
    expect(page.locator(".steps-side h2").first).to_contain_text("block2")
    expect(page.locator(".side-facts")).to_contain_text(f"step {BAD_STEP}")
    steps = page.locator(".bad-steps").first.get_by_role("button")
    expect(steps.first).to_have_text(f"step {BAD_STEP}")


def test_the_loss_stands_above_the_map(page: Page, trained: Viewer, training: tuple[Path, NDArray[np.float32]]) -> None:
    losses = training[1]
    page.goto(trained.url("steps"))
    curve = page.get_by_role("img", name=re.compile("^head.loss over steps"))
    expect(curve).to_be_visible()
    expect(curve).to_have_attribute("aria-label", re.compile(f"(NaN|Inf) (from|in) step {BAD_STEP}"))
    # On one axis with the map.
    boxes = [place.bounding_box() for place in (curve, page.get_by_role("application"))]
    assert boxes[0] and boxes[1]
    assert (boxes[0]["x"], boxes[0]["width"]) == (boxes[1]["x"], boxes[1]["width"])
    page.get_by_role("button", name="As a table").click()
    cells = page.locator(".scalar-row td")
    texts = cells.all_inner_texts()
    steps = [int(head.split()[-1]) for head in page.locator("thead th").all_inner_texts()[1:]]
    assert BAD_STEP in steps
    for step, text in zip(steps, texts, strict=True):
        if np.isfinite(losses[step]):
            shown = float(text.replace("−", "-").replace(",", ""))
            assert np.isclose(shown, losses[step], rtol=1e-2), (step, text)
        else:
            assert text in ("NaN", "Inf"), (step, text)


def test_another_scalar_is_chosen(page: Page, trained: Viewer) -> None:
    page.goto(trained.url("steps"))
    choice = page.get_by_role("combobox", name="Scalar output")
    expect(choice.locator("option")).to_have_text(["watch", "head/loss"])
    choice.select_option(label="watch")
    expect(page.get_by_role("img", name=re.compile("^watch over steps"))).to_be_visible()
    # A click selects the operator in that step.
    curve = page.get_by_role("img", name=re.compile("^watch over steps"))
    box = curve.bounding_box()
    assert box
    curve.click(position={"x": box["width"] - 40, "y": 50})
    expect(page.locator(".steps-side h2").first).to_have_text("watch")
    expect(page).to_have_url(re.compile(r"step=\d+"))


def test_the_map_is_walked_by_keys_alone(page: Page, trained: Viewer) -> None:
    page.goto(trained.address)
    expect(selected_row(page)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("s")
    facts = page.locator(".side-facts")
    expect(facts).to_contain_text(f"step {BAD_STEP}")
    page.keyboard.press("ArrowLeft")
    expect(facts).to_contain_text(f"step {BAD_STEP - 1}")
    expect(page.locator(".steps-side h2").first).to_contain_text("block2")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".steps-side .type").first).to_have_text("Sub")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/tensor"))
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("/overview"))


def test_language_theme_and_link_keep_the_cell(page: Page, trained: Viewer) -> None:
    page.goto(trained.url("steps", lang="zh", theme="dark"))
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(heading(page)).to_contain_text(f"第 {BAD_STEP} 步")
    expect(page.get_by_role("img", name=re.compile("^head.loss 随步的变化"))).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile(rf"step={BAD_STEP - 1}"))
    page.goto(page.url.replace("lang=zh", "lang=en"))
    expect(page.locator(".side-facts")).to_contain_text(f"step {BAD_STEP - 1}")


def test_a_step_is_filtered_and_sorted(page: Page, trained: Viewer) -> None:
    page.goto(trained.address)
    expect(selected_row(page)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(f"step:{BAD_STEP}")
    page.keyboard.press("Enter")
    expect(rows(page, "Operators")).to_have_count(7)
    head = page.get_by_role("columnheader").filter(has_text="NaN")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(rows(page, "Operators").first).to_contain_text("block3")


def test_two_runs_have_both_losses(
    page: Page, view: Callable[..., Viewer], training: tuple[Path, NDArray[np.float32]]
) -> None:
    page.goto(view(training[0], training[0]).url("steps"))
    expect(page.get_by_role("img", name=re.compile("^head.loss over steps"))).to_be_visible()


def test_nothing_is_shown_without_a_scalar(
    page: Page, view: Callable[..., Viewer], tool: Binary, tmp_path: Path
) -> None:
    node = helper.make_node("Mul", ["x", "x"], ["y"], "/only/Mul")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph([node], "plain", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "plain.onnx")
    (tmp_path / "steps").mkdir()
    for step in range(3):
        np.savez(tmp_path / "steps" / f"{step}.npz", x=np.arange(4, dtype=np.float32) + step)
    tool.dump(tmp_path / "plain.onnx", "--inputs", tmp_path / "steps", "--out", tmp_path / "dump")
    page.goto(view(tmp_path / "dump").url("steps"))
    expect(page.get_by_role("application")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert page.locator(".scalar-canvas").count() == 0
    assert page.get_by_role("combobox", name="Scalar output").count() == 0
