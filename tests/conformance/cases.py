"""The node cases of the ONNX backend tests, generated from the package `onnx`, which has no stored ones."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import onnx
import values

# Changes whenever what is stored for a case does.
LAYOUT = 1
N_CASES = 1884
STAMP = "generated.json"
CASE_FILE = "case.json"


@dataclass(frozen=True)
class Value:
    """A graph input or output. One that is no tensor has no file."""

    name: str
    kind: str
    dtype: str = ""
    shape: list[int] = field(default_factory=list)
    file: str = ""


@dataclass(frozen=True)
class Case:
    name: str
    op_type: str
    domain: str
    # Version of the standard operators; 0 where a model has none of them.
    opset: int
    is_expanded: bool
    rtol: float
    atol: float
    inputs: list[Value]
    outputs: list[Value]
    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "model.onnx"

    @property
    def dtypes(self) -> set[str]:
        """Types among the graph's inputs and outputs; for values that are not tensors, their kind."""
        return {value.dtype or value.kind for value in (*self.inputs, *self.outputs)}


def provide(folder: Path) -> list[Case]:
    """All cases by name; generate them into `folder` unless they are there. Takes half a minute then."""
    stamp = {"layout": LAYOUT, "onnx": onnx.__version__, "n_cases": N_CASES}
    path = folder / STAMP
    if not path.exists() or json.loads(path.read_text()) != stamp:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        n_cases = sum(1 for case in _collect() if _store(case, folder / case.name))
        if n_cases != N_CASES:
            raise SystemExit(f"onnx {onnx.__version__} has {n_cases} node cases, expected {N_CASES}")
        path.write_text(json.dumps(stamp))
    return [_load(case.parent) for case in sorted(folder.glob(f"*/{CASE_FILE}"))]


def _collect() -> Iterator[Any]:
    # Only needed where cases are generated, and slow.
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from node.collect_testcases(None)


def _store(case: Any, folder: Path) -> bool:
    folder.mkdir()
    onnx.save(case.model, folder / "model.onnx")
    graph = case.model.graph
    ((inputs, outputs),) = case.data_sets
    first = graph.node[0]
    opsets = {opset.domain.removeprefix("ai.onnx"): opset.version for opset in case.model.opset_import}
    stored = Case(
        name=case.name,
        op_type=first.op_type,
        domain=first.domain,
        opset=opsets.get("", 0),
        is_expanded="_expanded" in case.name,
        rtol=case.rtol,
        atol=case.atol,
        inputs=[
            _store_value(info, value, folder / f"input_{i}", is_input=True)
            for i, (info, value) in enumerate(zip(graph.input, inputs, strict=True))
        ],
        outputs=[
            _store_value(info, value, folder / f"output_{i}", is_input=False)
            for i, (info, value) in enumerate(zip(graph.output, outputs, strict=True))
        ],
        folder=Path(),
    )
    fields = asdict(stored)
    del fields["folder"]
    (folder / CASE_FILE).write_text(json.dumps(fields))
    return True


def _store_value(info: onnx.ValueInfoProto, value: Any, stem: Path, *, is_input: bool) -> Value:
    kind = info.type.WhichOneof("value").removesuffix("_type")
    if kind != "tensor":
        return Value(info.name, kind)
    proto = values.to_proto(value, info.name)
    if is_input:
        path = values.save_input(proto, stem)
    else:
        path = stem.with_suffix(".pb")
        onnx.save_tensor(proto, path)
    return Value(info.name, kind, values.type_name(proto.data_type), list(proto.dims), path.name)


def _load(folder: Path) -> Case:
    fields = json.loads((folder / CASE_FILE).read_text())
    for side in ("inputs", "outputs"):
        fields[side] = [Value(**value) for value in fields[side]]
    return Case(**fields, folder=folder)
