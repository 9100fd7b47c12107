"""One network that msProbe, `opscope.torch` and, exported, `opscope dump` recorded: sound dumps agree, a fault is named."""

from __future__ import annotations

import re
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import opscope.torch
import pytest
import torch
from binary import Binary
from comparing import FAILED, PARTIAL, PASSED, Found, compare
from onnx import NodeProto, TensorProto, helper, numpy_helper
from probed_network import FAULTS, ProbedNetwork, image
from torch import Tensor

ARCHIVE = Path(__file__).parent / "golden" / "msprobe.tar.xz"
LEVELS = ("modules", "calls", "both", "statistics")
OTHERS = ("eager", "onnx")
PAIRS = [("eager", "onnx"), ("onnx", "eager"), ("graph", "onnx"), ("eager", "graph")]

# The operators at fault: of msProbe's levels and of PyTorch, and of ONNX, whose names count from release to release.
CULPRITS = {
    "weight": r"t_10|addmm_10|Functional\.linear\.10\.forward|Module\.blocks\.1\.up\.Linear\.forward\.0",
    "epsilon": r"native_layer_norm_3|Functional\.layer_norm\.3\.forward|Module\.blocks\.1\.after\.LayerNorm\.forward\.0",
    "scale": r"mul_1|Tensor\.__mul__\.1\.forward",
    "mask": r"triu_1|masked_fill_1|Tensor\.masked_fill\.1\.forward",
    "sign": r"(node_)?sub|(node_)?add_3|Tensor\.__sub__\.0\.forward|Tensor\.__add__\.3\.forward",
}
# What a module computes in its own `forward`, modules that are recorded alone hide.
HIDDEN = ("scale", "mask", "sign")

Dumps = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def opscope_binary() -> Binary:
    return Binary.from_environment()


@pytest.fixture(scope="module")
def dumped(opscope_binary: Binary, tmp_path_factory: pytest.TempPathFactory) -> Dumps:
    """A dump by its tool, or its level of msProbe, and the fault in it, each made once."""
    root = tmp_path_factory.mktemp("dumps")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root / "msprobe", filter="data")

    def lookup(tool: str, fault: str) -> Path:
        if tool in LEVELS:
            return root / "msprobe" / fault / tool
        folder = root / tool / fault
        if not folder.exists():
            model = ProbedNetwork(None if fault == "sound" else fault).eval()
            with torch.no_grad(), warnings.catch_warnings():
                # The exporter uses what later releases of torch will lack.
                warnings.simplefilter("ignore")
                RECORDERS[tool](opscope_binary, model, folder)
        return folder

    return lookup


def record_eager(_: Binary, model: ProbedNetwork, folder: Path) -> None:
    given = image()
    with opscope.torch.eager(folder) as eager:
        model(given)
    eager.finish()


def record_graph(_: Binary, model: ProbedNetwork, folder: Path) -> None:
    torch.compile(model, backend=opscope.torch.backend(path=str(folder)))(image())
    opscope.torch.finish()


def record_onnx(binary: Binary, model: ProbedNetwork, folder: Path) -> None:
    folder.mkdir(parents=True)
    path, given = folder / "net.onnx", folder / "image.npy"
    np.save(given, image().numpy())
    torch.onnx.export(model, (image(),), path, dynamo=True, external_data=False, input_names=["image"], verbose=False)
    binary.dump(path, "--input", f"image={given}", "--out", folder)


RECORDERS = {"eager": record_eager, "graph": record_graph, "onnx": record_onnx}


def names(found: Found, index: int) -> set[str]:
    operator = found.operators[index]
    return {name["op_name"] for name in operator["target"] + operator["golden"]}


def blamed(found: Found) -> set[str]:
    """The operator at which both sides part, on either side, or the one that is named in its place."""
    first = found.summary["first_divergence"]
    if first.get("name"):
        return {first["name"]["op_name"]}
    return names(found, first["operator"])


def is_culprit(fault: str, found: set[str]) -> bool:
    return any(re.fullmatch(CULPRITS[fault], name) for name in found)


def check_sound(binary: Binary, target: Path, golden: Path, n_min: int) -> None:
    found = compare(binary, target, golden)
    assert found.summary["level"] == ("skip" if found.skips else "pass"), found.summary
    assert (found.first, found.accused, found.not_passing) == (None, [], [])
    # Neither tool shows all that the other does, and omissions are reported.
    assert found.code in (PASSED, PARTIAL)
    for side in ("target_coverage", "golden_coverage"):
        n_slots, n_compared = found.summary[side]
        assert n_min <= n_compared <= n_slots
    assert bool(found.skips) == (found.code == PARTIAL)


def check_fault(binary: Binary, target: Path, golden: Path, fault: str) -> None:
    found = compare(binary, target, golden)
    assert found.code == FAILED
    accused = [operator["index"] for operator in found.operators if operator.get("cause") == "own"]
    for index in accused:
        assert is_culprit(fault, names(found, index)), names(found, index)
    assert is_culprit(fault, blamed(found)), found.first


@pytest.mark.parametrize("tool", OTHERS)
@pytest.mark.parametrize(("level", "n_min"), [("modules", 60), ("calls", 100), ("both", 100), ("statistics", 100)])
def test_sound_dumps_of_msprobe_agree(
    opscope_binary: Binary, dumped: Dumps, level: str, n_min: int, tool: str
) -> None:
    check_sound(opscope_binary, dumped(tool, "sound"), dumped(level, "sound"), n_min)
    check_sound(opscope_binary, dumped(level, "sound"), dumped(tool, "sound"), n_min)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_sound_dumps_of_opscope_agree(opscope_binary: Binary, dumped: Dumps, target: str, golden: str) -> None:
    check_sound(opscope_binary, dumped(target, "sound"), dumped(golden, "sound"), 100)


def test_what_a_tool_does_not_record_is_told(opscope_binary: Binary, dumped: Dumps) -> None:
    found = compare(opscope_binary, dumped("eager", "sound"), dumped("calls", "sound"))
    left_out = {operator for side, operator, slot, reason in found.skips if reason == "missing" and side == "target"}
    # msProbe listens to no view, and to none of the functions that make tensors.
    assert {"view", "t", "transpose", "ones", "triu"} <= left_out
    found = compare(opscope_binary, dumped("onnx", "sound"), dumped("calls", "sound"))
    # A factor that is a number is an argument to PyTorch, and a tensor to ONNX.
    (scaled,) = (one for one in found.operators if "Tensor.__mul__.1.forward" in names(found, one["index"]))
    (name,) = (name["op_name"] for name in scaled["target"])
    assert ("target", name, "input.1", "missing_slot") in found.skips


@pytest.mark.sampled(0.25, each="level")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("tool", OTHERS)
@pytest.mark.parametrize("level", ["calls", "both", "statistics"])
def test_a_fault_is_named_beside_msprobe(
    opscope_binary: Binary, dumped: Dumps, level: str, tool: str, fault: str
) -> None:
    check_fault(opscope_binary, dumped(tool, fault), dumped(level, "sound"), fault)


@pytest.mark.sampled(0.35, each="tool")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("tool", OTHERS)
def test_a_fault_that_msprobe_recorded_is_named(opscope_binary: Binary, dumped: Dumps, tool: str, fault: str) -> None:
    check_fault(opscope_binary, dumped("both", fault), dumped(tool, "sound"), fault)


@pytest.mark.sampled(0.35, each="tool")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("tool", OTHERS)
def test_modules_name_what_they_show(opscope_binary: Binary, dumped: Dumps, tool: str, fault: str) -> None:
    target, golden = dumped(tool, fault), dumped("modules", "sound")
    if fault not in HIDDEN:
        check_fault(opscope_binary, target, golden, fault)
        return
    found = compare(opscope_binary, target, golden)
    assert (found.code, found.accused) == (FAILED, [])
    if fault == "sign":
        # The sum is the last of what the module computes, and the target shows it.
        assert is_culprit(fault, blamed(found)), found.first
        return
    # The module after it reads a value that no compared operator produced.
    assert "Module.blocks.1.out.Linear.forward.0" in blamed(found), found.first
    assert found.first[2] == "unknown" and found.suspects


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_a_fault_is_named_without_msprobe(
    opscope_binary: Binary, dumped: Dumps, target: str, golden: str, fault: str
) -> None:
    check_fault(opscope_binary, dumped(target, fault), dumped(golden, "sound"), fault)


def dump_nodes(
    binary: Binary, folder: Path, nodes: list[NodeProto], constants: dict[str, np.ndarray], x: Tensor
) -> Path:
    """A dump of the file that an exporter might have written."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, of) for name, of in (("x", x.shape), ("y", None))]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "net.onnx")
    np.savez(folder / "inputs.npz", x=x.numpy())
    binary.dump(folder / "net.onnx", "--inputs", folder / "inputs.npz", "--out", folder / "onnx")
    return folder / "onnx"


def headline(found: Found) -> str | None:
    """The operator of the first divergence, perhaps one without a partner."""
    first = found.summary.get("first_divergence")
    if first is None:
        return None
    return first["name"]["op_name"] if "name" in first else found.name(first["operator"])


@pytest.mark.parametrize(("exponent", "expected"), [(-0.5, None), (-1.0, "power")])
def test_a_number_that_operators_compute(
    opscope_binary: Binary, tmp_path: Path, exponent: float, expected: str | None
) -> None:
    """The program gives a product its factor, and the exported file computes it."""
    x, weight = torch.randn(3, 8), torch.randn(8, 8)
    with opscope.torch.eager(tmp_path / "eager") as eager:
        (x * 0.5) @ weight
    eager.finish()
    nodes = [
        helper.make_node("Pow", ["base", "exponent"], ["factor"], "power"),
        helper.make_node("Mul", ["x", "factor"], ["scaled"], "scale"),
        helper.make_node("MatMul", ["scaled", "w"], ["y"], "last"),
    ]
    constants = {"base": np.float32(4), "exponent": np.float32(exponent), "w": weight.numpy()}
    found = compare(opscope_binary, dump_nodes(opscope_binary, tmp_path, nodes, constants, x), tmp_path / "eager")
    assert headline(found) == expected


@pytest.mark.parametrize(("perm", "expected"), [([0, 3, 1, 2], None), ([0, 3, 2, 1], "order")])
def test_an_order_that_what_follows_computes_again(
    opscope_binary: Binary, tmp_path: Path, perm: list[int], expected: str | None
) -> None:
    """What is subtracted and added again leaves the values of a wrong transposition, and the convolution differs."""
    x, weight, kernel = torch.randn(3, 8), torch.randn(8, 8), torch.randn(4, 4, 2, 2)
    with opscope.torch.eager(tmp_path / "eager") as eager:
        square = torch.tanh(x.T @ x)
        base = square.view(1, 4, 4, 4)
        ordered = (square @ weight).view(1, 4, 4, 4).permute(0, 3, 1, 2)
        torch.nn.functional.conv2d(base + (ordered - base), kernel)
    eager.finish()
    nodes = [
        helper.make_node("Transpose", ["x"], ["turned"], "turn", perm=[1, 0]),
        helper.make_node("MatMul", ["turned", "x"], ["square"], "square"),
        helper.make_node("Tanh", ["square"], ["bounded"], "bound"),
        helper.make_node("Reshape", ["bounded", "shape"], ["base"], "base"),
        helper.make_node("MatMul", ["bounded", "w"], ["codes"], "code"),
        helper.make_node("Reshape", ["codes", "shape"], ["image"], "image"),
        helper.make_node("Transpose", ["image"], ["ordered"], "order", perm=perm),
        helper.make_node("Sub", ["ordered", "base"], ["distance"], "distance"),
        helper.make_node("Add", ["base", "distance"], ["sum"], "sum"),
        helper.make_node("Conv", ["sum", "kernel"], ["y"], "last"),
    ]
    constants = {"w": weight.numpy(), "kernel": kernel.numpy(), "shape": np.asarray([1, 4, 4, 4])}
    found = compare(opscope_binary, dump_nodes(opscope_binary, tmp_path, nodes, constants, x), tmp_path / "eager")
    assert headline(found) == expected


def test_a_rounded_weight_that_outputs_do_not_show(opscope_binary: Binary, tmp_path: Path) -> None:
    x, weight = torch.randn(3, 8), torch.randn(8, 8)
    with opscope.torch.eager(tmp_path / "eager") as eager:
        x + (x @ weight) * 0.01
    eager.finish()
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"], "product"),
        helper.make_node("Mul", ["product", "share"], ["part"], "part"),
        helper.make_node("Add", ["x", "part"], ["y"], "sum"),
    ]
    rounded = (weight.numpy().view(np.uint32) & 0xFFFF0000).view(np.float32)
    dump = dump_nodes(opscope_binary, tmp_path, nodes, {"w": rounded, "share": np.float32(0.01)}, x)
    found = compare(opscope_binary, dump, tmp_path / "eager", is_strict=False)
    assert (found.summary["level"], found.document["contract"]["inside"]["slot"]) == ("pass", "input.1")
    slot = next(slot for slot in found.operator("product")["slots"] if slot["slot"] == "input.1")
    assert "bfloat16" in str(slot["change"])
