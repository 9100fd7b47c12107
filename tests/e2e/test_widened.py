"""`--golden-as float32`: what runs is what the onnx package makes of the same model, whatever holds a float16."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary, input_options
from comparing import FAILED, PARTIAL, PASSED, compare
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper
from test_diff import run_diff

F32, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
UNREADABLE = 3
# Attributes that hold a dtype, by their names; the last one is that of the function below.
DTYPE_ATTRIBUTES = {"to", "dtype", "output_dtype", "precision", "softmax_precision", "stash_type", "kind"}
RNG = np.random.default_rng(0)


def half(*dims: int) -> NDArray:
    return RNG.normal(size=dims).astype(np.float16)


@dataclass
class Case:
    """A float16 model, and its distinguishing features."""

    nodes: list[NodeProto]
    inputs: dict[str, NDArray]
    outputs: dict[str, tuple[int, list[int] | None]]
    weights: dict[str, NDArray | TensorProto] = field(default_factory=dict)
    functions: list[onnx.FunctionProto] = field(default_factory=list)
    values: list[onnx.ValueInfoProto] = field(default_factory=list)
    opset: int = 21
    is_external: bool = False

    def model(self) -> ModelProto:
        def tensor(name: str, weight: NDArray | TensorProto) -> TensorProto:
            made = weight if isinstance(weight, TensorProto) else numpy_helper.from_array(weight, name)
            made.name = name
            return made

        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "net",
            [value(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in self.inputs.items()],
            [value(name, dtype, dims) for name, (dtype, dims) in self.outputs.items()],
            [tensor(name, weight) for name, weight in self.weights.items()],
            value_info=self.values,
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("own", 1)]
        return helper.make_model(graph, functions=self.functions, opset_imports=opsets, ir_version=10)


def in_fields(*bits: int) -> TensorProto:
    return TensorProto(data_type=F16, dims=[len(bits)], int32_data=bits)


def weights_and_casts() -> Case:
    edges = np.array([0, -0.0, 6e-8, -6e-5, 65504, 2, -3, 1.5], dtype=np.float16)
    node = helper.make_node
    return Case(
        [
            node("Constant", [], ["edges"], "edges", value=numpy_helper.from_array(edges)),
            node("Constant", [], ["single"], "single", value_float=0.5),
            node("Cast", ["single"], ["narrow"], "narrow", to=F16),
            node("MatMul", ["x", "weight"], ["product"], "multiply"),
            node("Add", ["product", "edges"], ["sum"], "add"),
            node("Mul", ["sum", "narrow"], ["scaled"], "scale"),
            node("Cast", ["scaled"], ["wide"], "wide", to=F32),
            node("Cast", ["wide"], ["back"], "back", to=F16),
            node("Shape", ["x"], ["shape"], "shape"),
            node("ConstantOfShape", ["shape"], ["twos"], "twos", value=numpy_helper.from_array(half(1))),
            node("Add", ["back", "twos"], ["y0"], "shift"),
            node("Add", ["y0", "fields"], ["y"], "fields"),
        ],
        {"x": half(8, 8)},
        {"y": (F16, [8, 8])},
        {"weight": half(8, 8), "fields": in_fields(0x3C00, 0xC000, 0x0001, 0x7BFF, 0, 0x8000, 0x3555, 0xB555)},
        values=[helper.make_tensor_value_info("product", F16, [8, 8])],
    )


def bodies() -> Case:
    node, value, graph = helper.make_node, helper.make_tensor_value_info, helper.make_graph
    weight = numpy_helper.from_array(half(4), "own")
    then = graph([node("Add", ["x", "own"], ["then"], "then")], "then", [], [value("then", F16, [4])], [weight])
    other = graph(
        [
            node("Constant", [], ["held"], "held", value=numpy_helper.from_array(half(4))),
            node("Mul", ["x", "held"], ["other"], "other"),
        ],
        "other",
        [],
        [value("other", F16, [4])],
    )
    loop = graph(
        [
            node("Add", ["state", "branch"], ["next"], "next"),
            node("Identity", ["go"], ["on"], "on"),
            node("Cast", ["next"], ["shown"], "shown", to=F16),
        ],
        "loop",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("state", F16, [4])],
        [value("on", TensorProto.BOOL, []), value("next", F16, [4]), value("shown", F16, [4])],
    )
    return Case(
        [
            node("If", ["choice"], ["branch"], "if", then_branch=then, else_branch=other),
            node("Loop", ["n", "yes", "x"], ["last", "all"], "loop", body=loop),
        ],
        {"x": half(4), "choice": np.array(False)},
        {"last": (F16, [4]), "all": (F16, [3, 4])},
        {"n": np.array(3), "yes": np.array(True)},
    )


def functions() -> Case:
    cast = helper.make_node("Cast", ["a"], ["c"], "inner")
    cast.attribute.append(AttributeProto(name="to", ref_attr_name="kind", type=AttributeProto.INT))
    nodes = [cast, helper.make_node("Add", ["c", "c"], ["b"], "twice")]
    function = helper.make_function("own", "Twice", ["a"], ["b"], nodes, [helper.make_opsetid("", 21)], ["kind"])
    call = helper.make_node
    return Case(
        [
            call("Twice", ["x"], ["y"], "narrow", domain="own", kind=F16),
            call("Twice", ["x"], ["z"], "wide", domain="own", kind=F32),
        ],
        {"x": half(4)},
        {"y": (F16, [4]), "z": (F32, [4])},
        functions=[function],
    )


def sequences() -> Case:
    node = helper.make_node
    listed = helper.make_sequence_type_proto(helper.make_tensor_type_proto(F16, None))
    return Case(
        [
            node("SequenceEmpty", [], ["none"], "none", dtype=F16),
            node("SequenceInsert", ["none", "x"], ["one"], "one"),
            node("SequenceInsert", ["one", "weight"], ["two"], "two"),
            node("ConcatFromSequence", ["two"], ["y"], "join", axis=0),
        ],
        {"x": half(4)},
        {"y": (F16, [8])},
        {"weight": half(4)},
        values=[helper.make_value_info("one", listed)],
    )


def made_by_dtype() -> Case:
    node = helper.make_node
    return Case(
        [
            node("EyeLike", ["x"], ["eye"], "eye", dtype=F16),
            node("Add", ["x", "eye"], ["sum"], "add"),
            node("LayerNormalization", ["sum", "scale"], ["y"], "norm", stash_type=F32),
            node("CastLike", ["n", "x"], ["like"], "like"),
        ],
        {"x": half(4, 4)},
        {"y": (F16, [4, 4]), "like": (F16, [])},
        {"scale": half(4), "n": np.array(5)},
    )


def quantised() -> Case:
    node = helper.make_node
    return Case(
        [
            node("QuantizeLinear", ["x", "scale", "zero"], ["codes"], "quantise"),
            node("DequantizeLinear", ["codes", "scale", "zero"], ["d"], "dequantise"),
            node("Mul", ["d", "scale"], ["y"], "scale"),
        ],
        {"x": half(4)},
        {"y": (F16, [4])},
        {"scale": np.array(0.0371, dtype=np.float16), "zero": np.array(3, dtype=np.int8)},
    )


def brain() -> Case:
    node = helper.make_node
    return Case(
        [
            node("Cast", ["x"], ["narrow"], "narrow", to=BF16),
            # ONNX Runtime has no arithmetic of bfloat16 on a CPU.
            node("Concat", ["narrow", "weight"], ["joined"], "join", axis=0),
            node("Cast", ["joined"], ["y"], "wide", to=F32),
        ],
        {"x": half(4, 4).astype(np.float32)},
        {"y": (F32, [8, 4])},
        {"weight": half(4, 4).astype(ml_dtypes.bfloat16)},
    )


def outside() -> Case:
    node = helper.make_node
    return Case(
        [node("MatMul", ["x", "weight"], ["product"], "multiply"), node("Add", ["product", "bias"], ["y"], "add")],
        {"x": half(32, 64)},
        {"y": (F16, [32, 64])},
        {"weight": half(64, 64), "bias": half(32, 64)},
        is_external=True,
    )


CASES: list[Callable[[], Case]] = [
    weights_and_casts,
    bodies,
    functions,
    sequences,
    made_by_dtype,
    quantised,
    brain,
    outside,
]


def messages(message: Any) -> Iterator[Any]:
    """A message of protobuf and all inside of it, the innermost first."""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from messages(inner)
    yield message


def in_float32(model: ModelProto) -> ModelProto:
    """The same by the onnx package: whatever message holds a dtype, wherever it is."""
    wide = ModelProto()
    wide.CopyFrom(model)
    for message in messages(wide):
        match message:
            case TensorProto() if message.data_type in (F16, BF16):
                message.CopyFrom(
                    numpy_helper.from_array(numpy_helper.to_array(message).astype(np.float32), message.name)
                )
            case TypeProto.Tensor() if message.elem_type in (F16, BF16):
                message.elem_type = F32
            case AttributeProto() if message.name in DTYPE_ATTRIBUTES and message.i in (F16, BF16):
                message.i = F32
    return wide


@pytest.mark.sampled(0.5, each="engine")
@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_the_golden_side_runs_what_onnx_widens(opscope: Binary, tmp_path: Path, make: Callable[[], Case]) -> None:
    case = make()
    path, model = tmp_path / "net.onnx", case.model()
    reference = in_float32(model)
    onnx.checker.check_model(reference)
    if case.is_external:
        onnx.save(model, path, save_as_external_data=True, location="net.data", size_threshold=0)
    else:
        onnx.save(model, path)
    done = run_diff(
        opscope,
        path,
        "--golden-as",
        "float32",
        "--save",
        tmp_path / "kept",
        *input_options(case.inputs, tmp_path / "in"),
    )
    if done.returncode == UNREADABLE and not opscope.engine.is_reference:
        assert "ONNX Runtime can" in done.stderr
        return
    assert done.returncode in (PASSED, FAILED, PARTIAL), done.stderr
    (tmp_path / "wide").mkdir()
    onnx.save(reference, tmp_path / "wide" / "net.onnx")
    wide = {n: x.astype(np.float32) if x.dtype == np.float16 else x for n, x in case.inputs.items()}
    options = input_options(wide, tmp_path / "wide" / "in")
    command = opscope.command("dump", tmp_path / "wide" / "net.onnx", "--out", tmp_path / "dump", *options)
    # Sequences have no bytes to dump.
    assert subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS).returncode in (PASSED, PARTIAL)
    found = compare(opscope, tmp_path / "kept" / "golden", tmp_path / "dump")
    assert found.operators and {skip[3] for skip in found.skips} <= {"no_data"}
    for operator in found.operators:
        assert operator["how"] == "name"
        for slot in operator["slots"]:
            assert slot["target"]["dtype"] == slot["golden"]["dtype"] not in ("float16", "bfloat16")
            # The same engine has to give the same bits.
            unequal = slot["metrics"].get("n_unequal", slot["metrics"].get("share_unequal", 0))
            assert (slot["level"], unequal, slot["metrics"].get("max_abs", 0)) in [("pass", 0, 0), ("skip", 0, 0)]


def test_bits_of_a_float16_are_refused(opscope: Binary, tmp_path: Path) -> None:
    node = helper.make_node("BitCast", ["x"], ["y"], "bits", to=TensorProto.UINT16)
    case = Case([node], {"x": half(4)}, {"y": (TensorProto.UINT16, [4])}, opset=26)
    model = case.model()
    model.ir_version = 13
    onnx.save(model, tmp_path / "net.onnx")
    done = run_diff(
        opscope, tmp_path / "net.onnx", "--golden-as", "float32", *input_options(case.inputs, tmp_path / "in")
    )
    assert done.returncode == UNREADABLE
    refused = "`bits` is a `BitCast` of elements of 16 bits" in done.stderr
    # The engine may know no such operator, which the target needs before.
    assert refused or "operator `bits` of type `BitCast`" in done.stderr
