"""Whether every operator that was executed is in the dump, with all its tensors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import dump_data
import dump_tree
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

# Bodies that an engine runs inside one operator of its own, and what the documents say of them.
HIDDEN_BODIES = {"tract": {"Scan"}}
# Types of elements that an engine does not hand to operators that are not its own.
FOREIGN_TYPES = {"onnxruntime": {TensorProto.INT2, TensorProto.UINT2, TensorProto.FLOAT8E8M0}}
# Types that the files of a dump have no number for; the report of a run counts them.
TYPES_WITHOUT_NUMBER = {TensorProto.UINT4, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ}


@dataclass
class Taps:
    """The gaps without a known reason, and the number of missing slots for each known reason."""

    problems: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    n_operators: int = 0
    n_tensors: int = 0
    # Those of the other steps too.
    n_tensors_of_all: int = 0


@dataclass(frozen=True)
class Numbered:
    """A node with its task id, and its bodies by attribute."""

    task_id: int
    node: NodeProto
    bodies: list[tuple[str, list[Numbered]]]


def check(model: ModelProto, dump: Path, engine: str, n_steps: int = 1) -> Taps:
    """Read the steps below `dump` and look for each operator of the model in them. Counts are those of the first."""
    inferred = _inferred(model)
    known = Known(engine, _kinds(inferred, engine), _needed(model.graph), _empty(inferred))
    steps = [_check_step(model, dump, step, known) for step in range(n_steps)]
    taps = steps[0]
    for other in steps[1:]:
        taps.problems += other.problems
    taps.n_tensors_of_all = sum(step.n_tensors for step in steps)
    return taps


@dataclass(frozen=True)
class Known:
    """Values by the model alone: those that cannot be shown and why, that a result needs, that have no elements."""

    engine: str
    kinds: dict[str, str]
    needed: set[str]
    empty: set[str]


def _check_step(model: ModelProto, dump: Path, step: int, known: Known) -> Taps:
    records: dict[int, list[dump_data.DumpData]] = defaultdict(list)
    for folder in _step_folders(dump, step):
        for file in dump_tree.read_step(folder):
            records[file.task_id].append(dump_data.parse(file.path.read_bytes()))
    taps = Taps()
    kinds, needed, empty = known.kinds, known.needed, known.empty
    for numbered in _executed(number(model.graph), records, known.engine, taps):
        node, found = numbered.node, records[numbered.task_id]
        taps.n_operators += len(found)
        label = f"{node.op_type} `{node.name or node.output[0]}`"
        if not found and not any(name in needed for name in node.output):
            taps.reasons["operators that no result needs"] += 1
        elif not found and all(name in empty for name in (*node.input, *node.output) if name):
            # A record without a single byte has no file; the report counts its tensors.
            taps.n_tensors += len([name for name in (*node.input, *node.output) if name])
        elif not found:
            taps.problems.append(f"no record of {label}")
        for record in found:
            _check_side(label, "input", node.input, len(record.inputs), kinds, taps)
            _check_side(label, "output", node.output, len(record.outputs), kinds, taps)
    return taps


def number(graph: GraphProto) -> list[Numbered]:
    """Nodes in file order, those of bodies right after the node that they belong to."""
    counter = iter(range(1 << 32))
    return _number(graph, counter)


def _number(graph: GraphProto, counter: Iterator[int]) -> list[Numbered]:
    numbered = []
    for node in graph.node:
        task_id = next(counter)
        bodies = [(name, _number(body, counter)) for name, body in _bodies(node)]
        numbered.append(Numbered(task_id, node, bodies))
    return numbered


def _bodies(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        for body in attribute.graphs:
            yield attribute.name, body


def _executed(nodes: list[Numbered], records: dict, engine: str, taps: Taps) -> Iterator[Numbered]:
    for numbered in nodes:
        if numbered.node.op_type == "Constant":
            continue
        yield numbered
        op_type = numbered.node.op_type
        for name, body in numbered.bodies:
            if op_type in HIDDEN_BODIES.get(engine, ()):
                taps.reasons[f"operators inside {op_type}"] += len(body)
            elif _is_run(numbered, name, records):
                yield from _executed(body, records, engine, taps)


def _is_run(numbered: Numbered, name: str, records: dict) -> bool:
    """Whether the body has been run: of an If the branch that was taken; of a loop, if it went round at all."""
    if numbered.node.op_type != "If":
        own = {inner.task_id for inner in dict(numbered.bodies)[name]}
        return any(records.get(task_id) for task_id in own)
    if not records[numbered.task_id]:
        return False
    is_true = records[numbered.task_id][0].inputs[0].payload != b"\0"
    return name == ("then_branch" if is_true else "else_branch")


def _check_side(label: str, side: str, names: list[str], n_found: int, kinds: dict[str, str], taps: Taps) -> None:
    present = [name for name in names if name]
    taps.n_tensors += n_found
    missing = len(present) - n_found
    excluded = [kinds[name] for name in present if name in kinds]
    taps.reasons.update(excluded[:missing] if missing > 0 else [])
    if missing > len(excluded) or missing < 0:
        taps.problems.append(f"{n_found} of {len(present)} {side}s of {label}")


def _needed(graph: GraphProto) -> set[str]:
    """Names of values that a result depends on, in bodies too."""
    needed = {value.name for value in graph.output}
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            needed.update(node.input)
            for _, body in _bodies(node):
                needed |= _needed(body)
                needed.update(name for inner in body.node for name in inner.input)
    return needed


def _empty(inferred: ModelProto) -> set[str]:
    """Names of values that are known to have no elements."""
    graph = inferred.graph
    return {
        value.name
        for value in (*graph.input, *graph.output, *graph.value_info)
        if any(dim.HasField("dim_value") and dim.dim_value == 0 for dim in value.type.tensor_type.shape.dim)
    }


def _inferred(model: ModelProto) -> ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001, then there is what the graph itself says
        return model


def _kinds(inferred: ModelProto, engine: str) -> dict[str, str]:
    """Names of values that are no tensors, or tensors that no engine's tap can be given, and why."""
    kinds = {}
    graph = inferred.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind = value.type.WhichOneof("value")
        if kind in ("sequence_type", "optional_type", "map_type"):
            kinds[value.name] = f"values of type {kind.removesuffix('_type')}"
            continue
        elem_type = value.type.tensor_type.elem_type
        name = TensorProto.DataType.Name(elem_type).lower()
        if elem_type in FOREIGN_TYPES.get(engine, ()):
            kinds[value.name] = f"tensors of {name}, which the engine keeps to itself"
        elif elem_type in TYPES_WITHOUT_NUMBER:
            kinds[value.name] = f"tensors of {name}, which a dump's files have no number for"
    return kinds


def _step_folders(dump: Path, step: int) -> Iterator[Path]:
    """`{time}/{device}/{model}/{model id}/{step}`; nothing if no operator was executed."""
    for path in sorted(dump.glob(f"[0-9]*/*/*/*/{step}")):
        if path.is_dir():
            yield path
