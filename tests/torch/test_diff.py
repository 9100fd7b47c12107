"""`opscope.torch.diff`: kinds of sides, kinds of inputs, and that nothing is left behind or changed."""

from __future__ import annotations

import gc
import json
import logging
import os
import random
import re
import stat
import urllib.request
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import opscope
import opscope.torch
import pytest
import torch
from test_diff_faults import accused, check_sound, exported
from torch import Tensor, nn
from torch.nn import functional as F


class Stateful(nn.Module):
    """Statistics, a buffer that is replaced and one that is written to, dropout, and inputs that are written to."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop, self.head = nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4)
        self.register_buffer("n_calls", torch.zeros(()))
        self.register_buffer("total", torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        self.n_calls = self.n_calls + 1
        self.total.add_(x.sum(0))
        x.mul_(2)
        return self.head(self.drop(self.norm(x))) * self.n_calls + self.total[:4]


@dataclass
class Output:
    """As transformers have them."""

    logits: Tensor
    loss: Tensor | None = None


torch.export.register_dataclass(Output)


class Named(nn.Module):
    """Arguments by name, some without a value, and outputs in a dataclass."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(20, 6), nn.Linear(6, 3)

    def forward(self, *, ids: Tensor, weight: Tensor | None = None, scale: float = 1.0, labels: Any = None) -> Output:
        hidden = self.embed(ids) * scale
        return Output(self.head(hidden if weight is None else hidden * weight))


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="opscope.torch")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The place of temporary files, in which nothing may be left."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    yield place
    gc.collect()
    assert list(place.iterdir()) == []


def bits(module: nn.Module) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in module.state_dict().items()}


def linears(n: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, n))


@pytest.mark.parametrize("backend", [None, "aot_eager"])
def test_nothing_is_changed(backend: str | None) -> None:
    model = Stateful().train()
    state, x, buffers = bits(model), torch.randn(4, 8), (model.n_calls, model.total)
    before, seen = x.clone(), (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy())
    model.head.weight.grad = gradient = torch.ones(4, 8)
    target = model if backend is None else torch.compile(model, backend=backend)
    found = opscope.torch.diff(target, model, [x, x])
    # Dropout is not judged, so the operators after it show whether it drew the same.
    check_sound(found, 0.6)
    assert bits(model) == state and torch.equal(x, before)
    assert (model.n_calls, model.total) == buffers or all(a is b for a, b in zip((model.n_calls, model.total), buffers))
    assert model.training and model.head.weight.grad is gradient
    assert torch.equal(seen[0], torch.get_rng_state()) and seen[1] == random.getstate()
    assert (seen[2] == np.random.get_state()[1]).all()


def test_a_function_may_run_a_backward_pass() -> None:
    model = Stateful().train()

    def train(x: Tensor) -> Tensor:
        loss = model(x.clone()).square().mean()
        loss.backward()
        return loss

    found = opscope.torch.diff(train, train, torch.randn(4, 8), grad=True)
    check_sound(found, 1)
    assert any(name["op_type"].endswith("_backward_default") for one in found.operators for name in one["target"])
    assert model.head.weight.grad is None
    with pytest.raises(RuntimeError, match="does not require grad"):
        opscope.torch.diff(train, train, torch.randn(4, 8))


def test_parameters_of_both_sides_are_listed() -> None:
    model, rounded = Named().eval(), Named().eval()
    rounded.load_state_dict({name: value.bfloat16().float() for name, value in model.state_dict().items()})
    rounded.head.bias.data.copy_(model.head.bias)
    inputs = {"ids": torch.arange(6).reshape(2, 3), "weight": torch.rand(2, 3, 6)}
    found = opscope.torch.diff(rounded, model, inputs, weights=True)
    changes = {row["name"]: row.get("change") for row in found.parameters}
    assert set(changes) == set(model.state_dict()) and changes["head.bias"] is None
    assert "bfloat16" in json.dumps(changes["head.weight"])
    assert opscope.torch.diff(model, model, inputs).parameters == []


def test_inputs_by_name_by_order_and_in_steps(tmp_path: Path) -> None:
    model = Named().eval()
    inputs = {"ids": torch.arange(6).reshape(2, 3), "weight": torch.rand(2, 3, 6)}
    path = exported(model, inputs, tmp_path / "net.onnx", is_traced=False)
    check_sound(opscope.torch.diff(model, path, {**inputs, "labels": None}), 0.5)
    check_sound(opscope.torch.diff(path, model, {name: inputs[name] for name in ("weight", "ids")}), 0.5)
    found = opscope.torch.diff(model, path, [inputs, {**inputs, "ids": inputs["ids"] + 9}])
    check_sound(found, 0.5)
    assert {one["target"][0]["step"] for one in found.operators} == {0, 1}
    # An ONNX model against itself, by order, and tensors that are numpy's.
    in_order = ([inputs["ids"]], inputs["weight"].numpy())
    check_sound(opscope.torch.diff(path, path, in_order), 1)
    with pytest.warns(RuntimeWarning, match="golden: .* has no input `scale`, .* `weight` \\(float32 \\[2, 3, 6\\]\\)"):
        found = opscope.torch.diff(model, path, {**inputs, "scale": torch.tensor(3.0)})
    assert found.level == "fail"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (
            (torch.zeros(2, 3),),
            "1 tensors are passed by order, expected 2: `ids` (int64 [2, 3]), `weight` (float32 [2, 3, 6])",
        ),
        ({"ids": torch.zeros(2, 3).long()}, "no `weight` among the names of the dictionary (ids), expected `ids`"),
        (
            {"ids": torch.zeros(2, 3), "weight": torch.zeros(2, 3, 6)},
            "input `ids`: expected int64, got a tensor of float32",
        ),
        (
            (torch.zeros(2, 3).long(), torch.zeros(2, 6)),
            "input `weight`: expected the shape [2, 3, 6], got [2, 6]",
        ),
        ({"ids": [1], "weight": torch.zeros(2, 3, 6)}, "input `ids`: a tensor is expected, got [1] (list)"),
        (None, "inputs: a tensor, a tuple or a dictionary is expected to run the sides with"),
        ([], "inputs: a list has the inputs of one step in each item, and this one is empty"),
    ],
)
def test_inputs_that_do_not_fit(inputs: Any, said: str, tmp_path: Path) -> None:
    model = Named().eval()
    ran = []
    model.register_forward_hook(lambda *_: ran.append(1))
    good = {"ids": torch.zeros(2, 3).long(), "weight": torch.zeros(2, 3, 6)}
    path = exported(model, good, tmp_path / "net.onnx", is_traced=False)
    ran.clear()
    with pytest.raises(opscope.UsageError, match=re.escape(said)):
        opscope.torch.diff(path, model, inputs)
    # It is reported before anything runs.
    assert ran == []


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"inputs": 5}, TypeError, "inputs: a tensor, a tuple of arguments, a dictionary"),
        ({"inputs": {1: 2}}, TypeError, "inputs: names of arguments are expected as keys"),
        ({"target": 5}, TypeError, "target: a module, a callable, an ExportedProgram, or the path"),
        ({"golden": nn.Linear}, TypeError, "golden: a module, a callable"),
        ({"golden": "nowhere"}, opscope.NotFoundError, "cannot read `nowhere`"),
        ({"golden": "nowhere.onnx"}, opscope.NotFoundError, "nowhere.onnx"),
        ({"target_autocast": "bf16"}, TypeError, "target_autocast: a dtype such as torch.bfloat16 or None is expected"),
        ({"grad": 1}, TypeError, "grad: True or False is expected"),
        ({"engine": "cuda"}, opscope.UsageError, "engine `cuda` is none of auto, tract, onnxruntime"),
        ({"threshold": "x"}, TypeError, "threshold"),
        ({"top": -1}, opscope.UsageError, "top: a whole number of 0 or more is expected"),
        ({"save": 5}, TypeError, "save: a path is expected"),
        ({"golden": lambda x: 5}, opscope.OpscopeError, "golden: nothing was dumped: no operator of PyTorch ran in it"),
    ],
)
def test_mistakes(options: dict[str, Any], error: type[Exception], said: str) -> None:
    model = linears()
    arguments = {"target": model, "golden": model, "inputs": torch.randn(2, 8), **options}
    with pytest.raises(error, match=re.escape(said)):
        opscope.torch.diff(**arguments)


def test_a_wrong_call_is_its_error_alone() -> None:
    model = nn.Bilinear(8, 8, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match="input2"):
            opscope.torch.diff(model, model, torch.randn(2, 8))


def test_an_autocast_is_for_what_runs_here(tmp_path: Path) -> None:
    path = exported(linears().eval(), torch.randn(2, 8), tmp_path / "net.onnx", is_traced=False)
    with pytest.raises(
        opscope.UsageError, match="golden_autocast: expected a module or callable to run under autocast"
    ):
        opscope.torch.diff(linears(), path, torch.randn(2, 8), golden_autocast=torch.bfloat16)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("side", ["target", "golden"])
def test_an_error_of_a_side_is_the_programs(kind: type[BaseException], side: str, temporary: Path) -> None:
    model, error = Stateful().train(), kind("no weights")
    state = bits(model)

    def fail(x: Tensor) -> None:
        model(x)
        raise error

    sides = {"target": model, "golden": model, side: fail}
    with pytest.raises(kind) as raised:
        opscope.torch.diff(**sides, inputs=torch.randn(4, 8))
    assert raised.value is error
    if isinstance(error, Exception) and hasattr(error, "__notes__"):
        assert error.__notes__ == [f"opscope.torch.diff: while the {side} side ran"]
    assert bits(model) == state and list(temporary.iterdir()) == []


def test_dumps_are_private_and_live_as_long_as_the_result(temporary: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    found = opscope.torch.diff(linears(), linears(), torch.randn(2, 8))
    (place,) = temporary.iterdir()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    found.save(tmp_path / "page.html")
    page = found.view(open_browser=False)
    del found
    gc.collect()
    # The page still reads elements.
    base = page.url.rsplit("/", 1)[0]
    with urllib.request.urlopen(f"{base}/api/info") as answer:
        assert json.load(answer)["verdict"]["status"] == "fail"
    assert place.is_dir()
    page.close()
    del page
    gc.collect()
    assert not place.exists()


def test_a_fork_leaves_the_dumps_to_its_parent(temporary: Path) -> None:
    found = opscope.torch.diff(linears(), linears(), torch.randn(2, 8))
    child = os.fork()
    if child == 0:
        del found
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(temporary.iterdir())) == 1 and found.level == "fail"


def test_kept_dumps(tmp_path: Path) -> None:
    model, x = linears().eval(), torch.randn(2, 8)
    found = opscope.torch.diff(model, model, x, save=tmp_path / "kept")
    assert sorted(one.name for one in (tmp_path / "kept").iterdir()) == ["golden", "target"]
    again = opscope.compare(tmp_path / "kept/target", tmp_path / "kept/golden")
    assert again.verdict == found.verdict
    # A dump is a side too, and needs no inputs next to another one.
    check_sound(opscope.torch.diff(model, tmp_path / "kept/golden", x), 1)
    check_sound(opscope.torch.diff(tmp_path / "kept/target", str(tmp_path / "kept/golden")), 1)
    with pytest.raises(opscope.FileError, match="kept/target` exists already") as error:
        opscope.torch.diff(model, model, x, save=tmp_path / "kept")
    assert error.value.code == "exists"


def test_options_of_a_comparison(tmp_path: Path) -> None:
    target, golden = linears().eval(), linears().eval()
    limits = tmp_path / "limits.yaml"
    limits.write_text("dtypes: {float: {rel_l2: 99, scaled_max_abs: 99, cosine: -1, gain_error: 99, offset_error: 99}}")
    found = opscope.torch.diff(target, golden, torch.randn(2, 8), thresholds=limits, op_types=["*relu*"])
    assert [name["op_name"] for one in found.operators for name in one["target"]] == ["relu"]
    assert found.level in ("pass", "warn")


def test_what_a_backend_makes_of_graphs_that_agree() -> None:
    inductor = pytest.importorskip("torch._inductor.config")
    model, x = linears().eval(), torch.randn(4, 8)
    with inductor.patch({"cpp.inject_relu_bug_TESTING_ONLY": "accuracy", "fx_graph_cache": False}):
        compiled = torch.compile(model)
        for sides, side in (((compiled, model), "target"), ((model, compiled), "golden")):
            with pytest.warns(RuntimeWarning, match=f"{side}: its graphs agree, .* that backend `inductor` compiles"):
                found = opscope.torch.diff(*sides, x)
            assert found.level == "fail"
            assert [name["op_name"] for one in found.operators for name in one["target"]] == ["step_0_result_0"]
        # An operator at fault comes first.
        found = opscope.torch.diff(compiled, linears().eval(), x)
        assert "result" not in found.verdict
    torch._dynamo.reset()
    check_sound(opscope.torch.diff(torch.compile(model), model, x), 1)


def test_compiled_functions_modules_and_parts() -> None:
    model, x = linears().eval(), torch.randn(2, 8)

    def function(x: Tensor) -> Tensor:
        return F.softmax(model(x), -1)

    check_sound(opscope.torch.diff(torch.compile(function, backend="aot_eager"), function, x), 1)
    in_place = linears().eval()
    in_place.load_state_dict(model.state_dict())
    in_place.compile(backend="aot_eager")
    check_sound(opscope.torch.diff(in_place, model, x), 1)
    assert in_place._compiled_call_impl is not None
    # More often than torch compiles one function by itself; and the program's own may be compiled as often as before.
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for _ in range(torch._dynamo.config.recompile_limit + 2):
        check_sound(opscope.torch.diff(compiled, model, x), 1)
    torch.testing.assert_close(torch.compile(in_place, backend="eager", fullgraph=True)(x), model(x))
    with pytest.warns(RuntimeWarning, match="target: a part is compiled separately \\(0\\)"):
        opscope.torch.diff(
            nn.Sequential(torch.compile(model, backend="aot_eager"), nn.ReLU()), lambda x: F.relu(model(x)), x
        )


def test_a_compiled_side_without_a_graph() -> None:
    layer = nn.GRU(4, 6).eval()
    with (
        pytest.warns(RuntimeWarning, match="no graph"),
        pytest.raises(opscope.OpscopeError, match="target: nothing was dumped: torch.compile made no graph of it"),
    ):
        opscope.torch.diff(torch.compile(layer, backend="aot_eager"), layer, torch.randn(3, 2, 4))


def test_a_model_that_cannot_run(tmp_path: Path) -> None:
    path = exported(linears().eval(), torch.randn(2, 8), tmp_path / "net.onnx", is_traced=False)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(opscope.OpscopeError, match="net.onnx"):
        opscope.torch.diff(linears(), path, torch.randn(2, 8))


def test_dtypes_that_numpy_lacks(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    make, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto
    node = onnx.helper.make_node("Cast", ["in/x"], ["y"], name="widen", to=kind.FLOAT)
    ends = [make("in/x", kind.BFLOAT16, ["n", 2])], [make("y", kind.FLOAT, ["n", 2])]
    graph = onnx.helper.make_graph([node], "cast", *ends)
    path = tmp_path / "cast.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    x = torch.tensor([[1.0, -2.5], [3.0, float("nan")]], dtype=torch.bfloat16)
    # The embedded engine has no bfloat16.
    pytest.importorskip("onnxruntime")
    found = opscope.torch.diff(lambda x: x.float(), path, x, engine="onnxruntime")
    assert (found.level, accused(found)) == ("pass", set()), found.verdict


def test_the_example_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/torch/diff.md").read_text(encoding="utf-8")
    code, told = (re.search(rf"^```{kind}\n(.*?)^```", page, re.M | re.S)[1] for kind in ("python", "text"))
    names: dict[str, Any] = {}
    exec(code.replace("found.view()", ""), names)  # noqa: S102
    assert names["found"].verdict == told.strip()
