"""What the difference between two tensors is, as `opscope diff` reports it of a changed weight."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from binary import TIMEOUT_SECONDS, Binary
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, save

Weight = NDArray[np.float32]

RANDOM = np.random.default_rng(3)
SHAPES = {"conv.weight": (8, 4, 3, 3), "fc.weight": (72, 48), "fc.bias": (48,), "out.weight": (48, 72)}
WEIGHTS: dict[str, Weight] = {
    name: (RANDOM.standard_normal(shape) * 0.3 + 0.02).astype(np.float32) for name, shape in SHAPES.items()
}


def scaled_channel(weight: Weight) -> Weight:
    weight = weight.copy()
    weight[:, 2] *= 2
    return weight


def without_rows(weight: Weight) -> Weight:
    weight = weight.copy()
    weight[3:6] = 0
    return weight


def gates_exchanged(weight: Weight) -> Weight:
    gates = np.split(weight, 4, axis=1)
    return np.concatenate([gates[i] for i in (0, 2, 1, 3)], axis=1)


def noisy(scale: float) -> Callable[[Weight], Weight]:
    noise = np.random.default_rng(5)
    return lambda weight: weight * (1 + scale * noise.standard_normal(weight.shape))


CASES: list[tuple[str, Callable[[Weight], Weight], str | None]] = [
    ("conv.weight", lambda w: w.transpose(0, 1, 3, 2), "golden's with axes 2 and 3 exchanged"),
    ("conv.weight", lambda w: w[:, :, ::-1, ::-1], "golden's mirrored along axes 2, 3"),
    ("conv.weight", lambda w: np.roll(w, 1, 3), "golden's rolled by 1 along axis 3"),
    ("conv.weight", scaled_channel, "differs only at index 2 of axis 1; there it is golden's times 2"),
    ("conv.weight", lambda w: -w, "golden's with the opposite sign"),
    ("fc.weight", lambda w: w.T.reshape(w.shape), "golden's with axes 0 and 1 exchanged, stored under golden's shape"),
    ("fc.weight", lambda w: np.roll(w, 5), "golden's rolled by 5 elements in memory order"),
    ("fc.weight", gates_exchanged, "golden's with blocks of 12 along axis 1 in the order 0, 2, 1, 3"),
    ("fc.weight", lambda w: w * 0.5, "golden's times 0.5"),
    ("fc.weight", lambda w: w.clip(-0.25, 0.25), "golden's clipped to [-0.25, 0.25]"),
    ("fc.weight", lambda w: np.round(w / 0.0625) * 0.0625, "golden's rounded to steps of 0.0625"),
    ("fc.weight", without_rows, "differs only at indices 3 to 5 of axis 0; there all elements are 0"),
    ("fc.bias", lambda w: w + 0.125, "golden's plus 0.125"),
    ("fc.bias", lambda w: w * 0, "all elements are 0"),
    ("out.weight", lambda w: WEIGHTS["fc.weight"].reshape(w.shape), "golden's `fc.weight`"),
    ("fc.weight", noisy(1e-2), None),
    ("fc.weight", noisy(0.3), None),
    ("conv.weight", lambda w: np.random.default_rng(9).standard_normal(w.shape), None),
]


def write_model(path: Path, weights: dict[str, Weight]) -> Path:
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight"], ["a"], "conv"),
        helper.make_node("Flatten", ["a"], ["b"], "flatten"),
        helper.make_node("MatMul", ["b", "fc.weight"], ["c"], "fc"),
        helper.make_node("Add", ["c", "fc.bias"], ["d"], "add"),
        helper.make_node("MatMul", ["d", "out.weight"], ["y"], "out"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4, 5, 5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 72])
    initializers = [numpy_helper.from_array(np.ascontiguousarray(w, np.float32), name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "net", [x], [y], initializers)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


@pytest.mark.parametrize(("name", "change", "expected"), CASES)
def test_the_change_of_a_weight_is_named(
    opscope: Binary, tmp_path: Path, name: str, change: Callable[[Weight], Weight], expected: str | None
) -> None:
    golden = write_model(tmp_path / "golden.onnx", WEIGHTS)
    target = write_model(tmp_path / "target.onnx", {**WEIGHTS, name: change(WEIGHTS[name])})
    command = [opscope.path, "diff", target, golden, "--engine", "tract", "--no-replay"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    # The verdict has it, unless it is long: then a line below.
    start = f"the weight `{name}` "
    verdict, *lines = done.stdout.replace("\n      ", " ").splitlines()
    found = [line.split("tensor: ")[1] for line in lines if line.startswith("  the target's tensor: ")]
    said = [text.rsplit(" (", 1)[0].removeprefix("differs: ") for text in verdict.split(start)[1:]]
    found += [text for text in said if text != "differs"]
    assert found == ([] if expected is None else [expected]), done.stdout + done.stderr
