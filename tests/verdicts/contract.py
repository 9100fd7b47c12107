"""The contract of a model with its callers: outputs that are exchanged, lost, doubled, reshaped, and sound rewrites.

Names, types and wiring of both models are equal but for what is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import changes
import networks
import numpy as np
from case import Case, Pair, Truth
from changes import FLOAT
from networks import NETWORKS, OPSET, Network
from onnx import ModelProto, TensorProto, helper

SET = "contract"
ENGINES = ("tract", "onnxruntime")
FORMS = ("diff", "native", "acl", "mindspore", "statistics")


@dataclass(frozen=True)
class Changed:
    """A faulty model, and golden's where it is not the network as it is."""

    target: ModelProto
    truth: Truth
    golden: ModelProto | None = None


# None where the network has nothing to be changed so.
Fault = Callable[[Network], Changed | None]
Rewrite = Callable[[Network], ModelProto | None]


def _fault(*outputs: str, says: str, culprits: tuple[str, ...] = ()) -> Truth:
    return Truth(exits=(1,), outputs=outputs, says=says, culprits=culprits)


def exchanged(net: Network) -> Changed:
    model = changes.with_names_swapped(net.model, net.first, net.second)
    # What makes both is one operator in some networks, which then makes the wrong one of each.
    makers = tuple({changes.maker(net.model, name).name for name in (net.first, net.second)})
    return Changed(model, _fault(net.first, net.second, says="exchanged", culprits=makers))


def exchanged_by_position(net: Network) -> Changed:
    names = changes.output_names(net.model)
    order = [{net.first: net.second, net.second: net.first}.get(name, name) for name in names]
    model = changes.with_outputs(net.model, order)
    model = changes.with_values_renamed(model, {name: f"output_{i}" for i, name in enumerate(order)})
    return Changed(model, _fault(net.first, net.second, says="exchanged"))


def lost(net: Network) -> Changed:
    names = [name for name in changes.output_names(net.model) if name != net.second]
    return Changed(changes.with_outputs(net.model, names), _fault(net.second, says="lost"))


def bypassed(net: Network) -> Changed | None:
    maker = changes.maker(net.model, net.first)
    if maker.op_type in ("LSTM", "TopK", "Flatten", "Transpose"):
        return None
    model = changes.without_maker(net.model, net.first)
    return Changed(model, _fault(net.first, says=r"differs|shape", culprits=(maker.name,)))


def doubled(net: Network) -> Changed | None:
    maker = changes.maker(net.model, net.second)
    if maker.op_type not in ("Softmax", "Exp", "Sigmoid"):
        return None
    node = helper.make_node(maker.op_type, ["before"], ["after"], name=f"{maker.name}_1")
    model = changes.appended(net.model, net.second, node)
    return Changed(model, _fault(net.second, says="differs", culprits=(f"{maker.name}_1",)))


def negated(net: Network) -> Changed:
    node = helper.make_node("Neg", ["before"], ["after"], name="negate")
    return Changed(
        changes.appended(net.model, net.first, node), _fault(net.first, says="differs", culprits=("negate",))
    )


def unsqueezed(net: Network) -> Changed:
    node = helper.make_node("Unsqueeze", ["before", "axis"], ["after"], name="unsqueeze")
    model = changes.appended(net.model, net.first, node)
    model = changes.with_weight(model, "axis", np.array([0], np.int64))
    return Changed(model, _fault(net.first, says="shape", culprits=("unsqueeze",)))


def flattened(net: Network) -> Changed | None:
    shape = changes.shape_of(net.model, net.first)
    # Flattening a matrix behind its last axis turns it into one column.
    node = helper.make_node("Flatten", ["before"], ["after"], name="flatten", axis=len(shape))
    return Changed(changes.appended(net.model, net.first, node), _fault(net.first, says="shape", culprits=("flatten",)))


def reshaped(net: Network) -> Changed:
    shape = changes.shape_of(net.model, net.first)
    node = helper.make_node("Reshape", ["before", "shape"], ["after"], name="reshape")

    def behind(dims: list[int]) -> ModelProto:
        return changes.with_weight(changes.appended(net.model, net.first, node), "shape", np.array(dims, np.int64))

    turned = [*shape[:-2], shape[-1], shape[-2]]
    truth = _fault(net.first, says="shape", culprits=("reshape",))
    return Changed(behind(turned), truth, behind(shape))


def transposed(net: Network) -> Changed:
    n_axes = len(changes.shape_of(net.model, net.first))
    perm = [*range(n_axes - 2), n_axes - 1, n_axes - 2]
    node = helper.make_node("Transpose", ["before"], ["after"], name="turn_output", perm=perm)
    return Changed(
        changes.appended(net.model, net.first, node), _fault(net.first, says="shape", culprits=("turn_output",))
    )


def whole_numbers(net: Network) -> Changed:
    node = helper.make_node("Cast", ["before"], ["after"], name="to_int", to=TensorProto.INT32)
    model = changes.appended(net.model, net.first, node, TensorProto.INT32)
    return Changed(model, _fault(net.first, says="int32|differs", culprits=("to_int",)))


def rolled(net: Network) -> Changed | None:
    """The rows of a batch in another order: no statistic shows it."""
    node = helper.make_node("Gather", ["before", "rows"], ["after"], name="roll", axis=0)

    def behind(rows: list[int]) -> ModelProto:
        return changes.with_weight(changes.appended(net.model, net.first, node), "rows", np.array(rows, np.int64))

    n = changes.shape_of(net.model, net.first)[0]
    if n < 2:
        return None
    rows = list(range(n))
    truth = _fault(net.first, says="differs", culprits=("roll",))
    return Changed(behind([*rows[1:], 0]), truth, behind(rows))


FAULTS: dict[str, Fault] = {
    "exchanged": exchanged,
    "exchanged by position": exchanged_by_position,
    "lost": lost,
    "bypassed": bypassed,
    "doubled": doubled,
    "negated": negated,
    "unsqueezed": unsqueezed,
    "flattened": flattened,
    "reshaped": reshaped,
    "transposed": transposed,
    "whole numbers": whole_numbers,
    "rolled": rolled,
}


def _same_order_reversed(net: Network) -> ModelProto:
    return changes.with_outputs(net.model, changes.output_names(net.model)[::-1])


def _renamed(net: Network) -> ModelProto:
    names = {name: f"output_{i}" for i, name in enumerate(changes.output_names(net.model))}
    return changes.with_values_renamed(net.model, names)


def _extra(net: Network) -> ModelProto:
    node = helper.make_node("Neg", [net.first], ["extra"], name="extra")
    model = changes.copied(net.model)
    model.graph.node.append(node)
    model.graph.output.append(helper.make_tensor_value_info("extra", FLOAT, None))
    return model


SOUND: dict[str, Rewrite] = {
    "same": lambda net: net.model,
    "output order": _same_order_reversed,
    "outputs renamed": _renamed,
    "operators renamed": lambda net: changes.with_nodes_renamed(net.model),
    "every value marked": lambda net: changes.with_every_value_marked(net.model),
    "extra output": _extra,
    "identities": lambda net: changes.with_identities(net.model),
    "linear split": lambda net: changes.with_linear_split(net.model),
    "softmax split": lambda net: changes.with_softmax_split(net.model),
    "folded": lambda net: changes.optimised(net.model, "BASIC"),
    "opset": lambda net: changes.converted(net.model, OPSET + 2),
}
# Graphs with operators that only ONNX Runtime has.
SOUND_ONNXRUNTIME: dict[str, Rewrite] = {"optimised": lambda net: changes.optimised(net.model, "EXTENDED")}


def blocks(kind: str, at: int, is_wrong: bool) -> ModelProto:
    """Five blocks with an operator each that does nothing in one of them: all names are the same."""
    random = np.random.default_rng(1)
    nodes, weights, x = [], {}, "x"
    for i in range(5):
        is_idle = is_wrong and i == at
        weights |= {
            f"w{i}": (random.standard_normal((8, 8)) * 0.6).astype(np.float32),
            f"low{i}": np.float32(-3e38 if is_idle and kind == "clip" else 0),
            f"high{i}": np.float32(3e38 if is_idle and kind == "clip" else 1),
            f"scale{i}": np.float32(1 if is_idle and kind == "scale" else 1.5),
            f"bias{i}": np.full(8, 0 if is_idle and kind == "bias" else 0.25, np.float32),
        }
        out = f"s{i}" if i < 4 else "y"
        nodes += [
            networks.node("MatMul", f"{x} w{i}", f"m{i}", f"block{i}/mm"),
            networks.node("Add", f"m{i} bias{i}", f"a{i}", f"block{i}/add"),
            networks.node("Clip", f"a{i} low{i} high{i}", f"c{i}", f"block{i}/clip"),
            networks.node("Mul", f"c{i} scale{i}", out, f"block{i}/mul"),
        ]
        x = out
    return networks.model(
        nodes, {"x": (4, 8)}, {"y": FLOAT}, {name: np.asarray(value) for name, value in weights.items()}
    )


IDLE = {"clip": "clip", "scale": "mul", "bias": "add"}


def cases() -> Iterator[Case]:
    for network, build in NETWORKS.items():
        for kind, fault in FAULTS.items():
            yield from _fault_cases(network, build, kind, fault)
        for kind, rewrite in SOUND.items():
            yield from _sound_cases(network, build, kind, rewrite, ENGINES)
        for kind, rewrite in SOUND_ONNXRUNTIME.items():
            yield from _sound_cases(network, build, kind, rewrite, ("onnxruntime",))
    for kind, operator in IDLE.items():
        for at in range(5):
            name = f"block{at}/{operator}"
            truth = _fault("y", says=f"`{name}`", culprits=(name,))
            for engine in ENGINES:
                yield Case(
                    SET,
                    "blocks",
                    f"idle {kind} {at}",
                    engine,
                    "diff",
                    truth,
                    lambda kind=kind, at=at: Pair(blocks(kind, at, True), blocks(kind, at, False)),
                )


def _fault_cases(network: str, build: Callable[[], Network], kind: str, fault: Fault) -> Iterator[Case]:
    net = build()
    found = fault(net)
    if found is None:
        return
    golden = found.golden or net.model
    for engine in ENGINES:
        for form in FORMS:
            # Statistics do not depend on the order of elements.
            if (kind, form) == ("rolled", "statistics"):
                continue
            yield Case(SET, network, kind, engine, form, found.truth, lambda: Pair(found.target, golden))


def _sound_cases(
    network: str, build: Callable[[], Network], kind: str, rewrite: Rewrite, engines: tuple[str, ...]
) -> Iterator[Case]:
    net = build()
    target = rewrite(net)
    if target is None:
        return
    for engine in engines:
        for form in FORMS:
            yield Case(SET, network, kind, engine, form, Truth(exits=(0,)), lambda: Pair(target, net.model))
