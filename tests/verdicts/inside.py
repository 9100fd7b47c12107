"""Faults of one operator inside of a network: the operator has to be named, whatever names the operators have.

Names are those of modules, or a type and a counter, which one operator more shifts; in `renamed` the target has
counters and golden modules. In `masked` golden's mask is minus
infinity and the target's is -1e4: the sums differ everywhere, and nothing follows from it.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import networks
import numpy as np
from case import Case, Pair, Truth
from changes import FLOAT
from networks import node
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto

SET = "inside"
ENGINES = ("tract", "onnxruntime")
FORMS = ("diff", "acl")
N_ROWS, WIDTH, N_LAYERS = 6, 8, 3
NAMINGS = ("modules", "counters", "masked", "renamed")


@dataclass
class Layers:
    """A transformer in the making; `change` may alter the nodes of a layer."""

    nodes: list[NodeProto]
    weights: dict[str, NDArray]

    def named(self, name: str) -> NodeProto:
        (found,) = (one for one in self.nodes if one.name == name)
        return found

    def insert(self, before: str, op_type: str, name: str = "inserted") -> None:
        reader = self.named(before)
        made = node(op_type, reader.input[0], f"{name}_value", name)
        reader.input[0] = f"{name}_value"
        self.nodes.insert(self.nodes.index(reader), made)

    def bypass(self, name: str, slot: int = 0) -> None:
        gone = self.named(name)
        self.nodes.remove(gone)
        for one in self.nodes:
            one.input[:] = [gone.input[slot] if value == gone.output[0] else value for value in one.input]


def layers(mask: float) -> Layers:
    random = np.random.default_rng(7)
    made = Layers([], {"mask": np.triu(np.full((N_ROWS, N_ROWS), mask, np.float32), 1)})
    made.weights["root"] = np.float32(np.sqrt(WIDTH))
    x = "x"
    for i in range(N_LAYERS):
        at = f"layer{i}/"
        weights = {f"{at}{name}.w": (random.standard_normal((WIDTH, WIDTH)) * 0.5) for name in ("q", "k", "v", "o", "up")}
        weights |= {f"{at}norm.{name}": random.standard_normal(WIDTH) * 0.2 + (name == "scale") for name in ("scale", "shift")}
        weights |= {f"{at}up.b": random.standard_normal(WIDTH) * 0.3}
        made.weights |= {name: value.astype(np.float32) for name, value in weights.items()}
        made.nodes += [
            node("LayerNormalization", f"{x} {at}norm.scale {at}norm.shift", f"{at}n", f"{at}norm", axis=-1),
            node("MatMul", f"{at}n {at}q.w", f"{at}qv", f"{at}q"),
            node("MatMul", f"{at}n {at}k.w", f"{at}kv", f"{at}k"),
            node("MatMul", f"{at}n {at}v.w", f"{at}vv", f"{at}v"),
            node("Transpose", f"{at}kv", f"{at}kt", f"{at}turn", perm=[1, 0]),
            node("MatMul", f"{at}qv {at}kt", f"{at}s0", f"{at}scores"),
            node("Div", f"{at}s0 root", f"{at}s1", f"{at}scale"),
            node("Add", f"{at}s1 mask", f"{at}s2", f"{at}masked"),
            node("Softmax", f"{at}s2", f"{at}p", f"{at}softmax", axis=-1),
            node("MatMul", f"{at}p {at}vv", f"{at}c", f"{at}mix"),
            node("MatMul", f"{at}c {at}o.w", f"{at}ov", f"{at}o"),
            node("Add", f"{x} {at}ov", f"{at}r", f"{at}skip"),
            node("MatMul", f"{at}r {at}up.w", f"{at}u0", f"{at}up"),
            node("Add", f"{at}u0 {at}up.b", f"{at}u1", f"{at}bias"),
            node("Relu", f"{at}u1", f"{at}u2", f"{at}relu"),
            node("Add", f"{at}r {at}u2", f"{at}y" if i < N_LAYERS - 1 else "y", f"{at}end"),
        ]
        x = f"{at}y"
    return made


def _replace(made: Layers, name: str, op_type: str, **attributes: object) -> None:
    old = made.named(name)
    old.CopyFrom(node(op_type, " ".join(old.input), " ".join(old.output), name, **attributes))


def _transposed(made: Layers, name: str) -> None:
    made.weights[name] = np.ascontiguousarray(made.weights[name].T)


def _read(made: Layers, name: str, slot: int, value: str) -> None:
    made.named(name).input[slot] = value


# What is done to the target, and the operators that may be named; `inserted` is one that golden does not have.
Change = Callable[[Layers], None]
CHANGES: dict[str, tuple[Change, tuple[str, ...]]] = {
    "inserted": (lambda made: made.insert("layer1/up", "Neg"), ("inserted",)),
    "inserted twice": (
        lambda made: (made.insert("layer1/o", "Relu"), made.insert("inserted", "Neg", "before")) and None,
        ("inserted", "before"),
    ),
    "removed": (lambda made: made.bypass("layer1/relu"), ("layer1/relu",)),
    "removed norm": (lambda made: made.bypass("layer1/norm"), ("layer1/norm",)),
    "removed skip": (lambda made: made.bypass("layer1/skip", 1), ("layer1/skip",)),
    "reads another value": (lambda made: _read(made, "layer1/mix", 1, "layer1/kv"), ("layer1/mix",)),
    "reads the layer before": (lambda made: _read(made, "layer2/skip", 0, "layer0/y"), ("layer2/skip",)),
    "another axis": (lambda made: _replace(made, "layer1/softmax", "Softmax", axis=0), ("layer1/softmax",)),
    "another type": (lambda made: _replace(made, "layer1/relu", "Abs"), ("layer1/relu",)),
    "weight transposed": (lambda made: _transposed(made, "layer1/v.w"), ("layer1/v",)),
    "weight of another layer": (lambda made: made.weights.update({"layer1/q.w": made.weights["layer0/q.w"]}), ("layer1/q",)),
    "bias of zeros": (lambda made: made.weights.update({"layer1/up.b": np.zeros(WIDTH, np.float32)}), ("layer1/bias",)),
}  # fmt: skip


def _counted(nodes: list[NodeProto]) -> dict[str, str]:
    """Names of a type and a counter, by the names that the nodes have."""
    n_of: collections.Counter[str] = collections.Counter()
    names = {}
    for one in nodes:
        n = n_of[one.op_type]
        names[one.name] = f"/{one.op_type}_{n}" if n else f"/{one.op_type}"
        n_of[one.op_type] += 1
    return names


def _built(made: Layers, naming: str) -> tuple[ModelProto, dict[str, str]]:
    names = _counted(made.nodes) if naming == "counters" else {one.name: one.name for one in made.nodes}
    for one in made.nodes:
        one.name = names[one.name]
    weights = {name: np.asarray(value) for name, value in made.weights.items()}
    used = {value for one in made.nodes for value in one.input}
    kept = {name: value for name, value in weights.items() if name in used}
    return networks.model(made.nodes, {"x": (N_ROWS, WIDTH)}, {"y": FLOAT}, kept), names


def pair(kind: str, naming: str) -> tuple[Pair, tuple[str, ...]]:
    change, culprits = CHANGES[kind]
    target, golden = layers(-1e4), layers(-np.inf if naming == "masked" else -1e4)
    change(target)
    target_model, target_names = _built(target, "counters" if naming == "renamed" else naming)
    golden_model, golden_names = _built(golden, naming)
    known = {names[name] for names in (target_names, golden_names) for name in culprits if name in names}
    return Pair(target_model, golden_model), tuple(sorted(known))


def cases() -> Iterator[Case]:
    for naming in NAMINGS:
        for kind in CHANGES:
            _, culprits = pair(kind, naming)
            truth = Truth(exits=(1,), outputs=culprits, says="golden", culprits=culprits)
            for engine in ENGINES:
                for form in FORMS:
                    yield Case(SET, naming, kind, engine, form, truth, lambda k=kind, n=naming: pair(k, n)[0])
