"""`opscope compare` between dumps that MindSpore wrote on a CPU and the same networks as ONNX models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from binary import Binary
from comparing import compare, dump
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

RECORDED = Path(__file__).resolve().parents[2] / "crates/store/tests/golden/mindspore"
LENET, LOOP = RECORDED / "lenet_all/dump", RECORDED / "control_flow/dump"
# Each parameter of LeNet, and the operators that read it in the ONNX model and in MindSpore's.
LAYERS = {
    "conv1.weight": ("/conv1/Conv", "Default/conv1-Conv2d/Conv2D-op0"),
    "conv2.weight": ("/conv2/Conv", "Default/conv2-Conv2d/Conv2D-op0"),
    "conv2.bias": ("/conv2/Conv", "Default/conv2-Conv2d/BiasAdd-op0"),
    "fc1.weight": ("/fc1/Gemm", "Default/fc1-Dense/MatMul-op0"),
    "fc1.bias": ("/fc1/Gemm", "Default/fc1-Dense/BiasAdd-op0"),
    "fc2.weight": ("/fc2/Gemm", "Default/fc2-Dense/MatMul-op0"),
    "fc2.bias": ("/fc2/Gemm", "Default/fc2-Dense/BiasAdd-op0"),
}


def recorded(pattern: str) -> NDArray:
    (path,) = (LENET / "rank_0/Net/0/0").glob(f"{pattern}.npy")
    return np.load(path)


def model(nodes: list[tuple], shapes: tuple[list[int], list[int]], weights: dict[str, NDArray]) -> ModelProto:
    made = [helper.make_node(kind, read, [name], name, **attributes) for name, kind, read, attributes in nodes]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(("x", nodes[-1][0]), shapes, strict=True)
    ]
    # An engine leaves out what nothing reads.
    conditions = [helper.make_tensor_value_info(node[0], TensorProto.BOOL, []) for node in nodes if node[1] == "Greater"]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(made, "twin", ends[:1], ends[1:] + conditions, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    checker.check_model(made)
    return made


def lenet(changed: str | None) -> ModelProto:
    weights = {name: recorded(f"Parameter.{name.replace('.', '_')}.*").copy() for name in LAYERS}
    if changed:
        array = weights[changed]
        array.flat[: max(1, array.size // 4)] += np.float32(0.2 * (np.abs(array).max() + 0.1))
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        ("/conv1/Conv", "Conv", ["x", "conv1.weight"], {}),
        ("/relu/Relu", "Relu", ["/conv1/Conv"], {}),
        ("/pool/MaxPool", "MaxPool", ["/relu/Relu"], pool),
        ("/conv2/Conv", "Conv", ["/pool/MaxPool", "conv2.weight", "conv2.bias"], {}),
        ("/relu_1/Relu", "Relu", ["/conv2/Conv"], {}),
        ("/pool_1/MaxPool", "MaxPool", ["/relu_1/Relu"], pool),
        ("/flatten/Flatten", "Flatten", ["/pool_1/MaxPool"], {}),
        ("/fc1/Gemm", "Gemm", ["/flatten/Flatten", "fc1.weight", "fc1.bias"], {"transB": 1}),
        ("/relu_2/Relu", "Relu", ["/fc1/Gemm"], {}),
        ("/fc2/Gemm", "Gemm", ["/relu_2/Relu", "fc2.weight", "fc2.bias"], {"transB": 1}),
    ]
    return model(nodes, ([2, 1, 16, 16], [2, 3]), weights)


def unrolled(factors: tuple[float, float] = (2, 2), threshold: float = 10, one: float = 1) -> ModelProto:
    """The first call of the network with the loop: two rounds, and the branch with the ReLU."""
    numbers = {"first": factors[0], "second": factors[1], "threshold": threshold, "one": one}
    nodes = [
        ("/Mul", "Mul", ["x", "first"], {}),
        ("/Mul_1", "Mul", ["/Mul", "second"], {}),
        ("/ReduceSum", "ReduceSum", ["/Mul_1"], {"keepdims": 0}),
        ("/Greater", "Greater", ["/ReduceSum", "threshold"], {}),
        ("/Relu", "Relu", ["/Mul_1"], {}),
        ("/Add", "Add", ["/Relu", "one"], {}),
    ]
    weights = {name: np.array(number, np.float32) for name, number in numbers.items()}
    return model(nodes, ([4], [4]), weights)


@pytest.fixture(params=["the ONNX model is the target", "MindSpore is the target"])
def is_onnx_target(request: pytest.FixtureRequest) -> Iterator[bool]:
    yield request.param.startswith("the ONNX")


def beside(opscope: Binary, folder: Path, twin: ModelProto, x: NDArray, recorded: Path, is_onnx_target: bool):
    sides = [dump(opscope, folder, twin, {"x": x}), recorded]
    return compare(opscope, *(sides if is_onnx_target else sides[::-1]), is_strict=False)


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("changed", [None, *LAYERS])
def test_a_network_and_its_twin(opscope: Binary, tmp_path: Path, changed: str | None, is_onnx_target: bool) -> None:
    x = recorded("Conv2D.Default_conv1*.input.0.*")
    found = beside(opscope, tmp_path, lenet(changed), x, LENET, is_onnx_target)
    if changed is None:
        # All but Flatten, which computes nothing.
        assert (found.summary["level"], found.first, found.not_passing) == ("pass", None, [])
        assert len(found.operators) == 9
        return
    operator, slot, cause = found.first
    assert (operator, cause) == (LAYERS[changed][0 if is_onnx_target else 1], "outside")
    assert slot == ("input.2" if changed.endswith("bias") and is_onnx_target else "input.1")
    assert found.accused == []


@pytest.mark.parametrize(
    ("faults", "operators"),
    [
        ({}, None),
        ({"factors": (2.5, 2.5)}, ("/Mul", "Default/Mul-op0")),
        ({"factors": (2, 2.5)}, ("/Mul_1", "Default/Mul-op0")),
        ({"threshold": 30}, ("/Greater", "Default/Greater-op0")),
        ({"one": 1.5}, ("/Add", "Default/Add-op1")),
    ],
)
def test_a_loop_and_its_rounds(
    opscope: Binary, tmp_path: Path, faults: dict, operators: tuple[str, str] | None, is_onnx_target: bool
) -> None:
    x = np.arange(4, dtype=np.float32)
    found = beside(opscope, tmp_path, unrolled(**faults), x, LOOP, is_onnx_target)
    side = "target" if is_onnx_target else "golden"
    compared = [operator["op_name"] for pair in found.operators for operator in pair[side]]
    assert sorted(compared) == ["/Add", "/Greater", "/Mul", "/Mul_1", "/ReduceSum", "/Relu"]
    if operators is None:
        assert (found.summary["level"], found.first) == ("pass", None)
        return
    operator, _, cause = found.first
    assert operator == operators[0 if is_onnx_target else 1]
    # The dump has no factors, so it is unknown whether they or the operator are wrong.
    assert cause == ("unknown" if "factors" in faults else "outside")
    assert found.accused == []
