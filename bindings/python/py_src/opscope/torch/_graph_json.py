"""A graph's description for readers of its dump."""

from __future__ import annotations

import json
from typing import Any

import torch

from ._graph import Described, Value


def to_json(described: Described, name: str, phase: str) -> str:
    """Operators by task, values by name."""

    def called(value: int | None) -> str | None:
        return None if value is None else described.values[value].name

    operators = [
        {
            "task_id": task_id,
            "op_type": operator.op_type,
            "op_name": operator.op_name,
            "inputs": [called(value) for value in operator.inputs],
            "outputs": [called(value) for value in operator.outputs],
            "is_selected": operator.is_selected,
            "is_view": operator.is_view,
            "attributes": dict(operator.attributes),
        }
        for task_id, operator in enumerate(described.operators)
    ]
    graph = {
        "version": 1,
        "name": name,
        "phase": phase,
        "arguments": [value.name for value in described.values if value.is_input],
        "names": described.model_names,
        "values": {value.name: _described(value) for value in described.values},
        "operators": operators,
    }
    return json.dumps(graph, indent=1, ensure_ascii=False) + "\n"


def _described(value: Value) -> dict[str, Any]:
    """Describes a value as known before the graph runs. Unknown sizes are expressions."""
    known: dict[str, Any] = {"fqn": value.fqn} if value.fqn else {}
    example = value.example
    if example is None:
        return known
    known["dtype"] = str(example.dtype).removeprefix("torch.")
    known["shape"] = [_size(size) for size in example.shape]
    if example.layout is torch.strided and not example.is_nested:
        known["strides"] = [_size(stride) for stride in example.stride()]
    else:
        known["form"] = str(example.layout).removeprefix("torch.")
    known["device"] = str(example.device)
    if example.is_quantized and example.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        known |= {"scale": example.q_scale(), "zero_point": example.q_zero_point()}
    return known


def _size(size: Any) -> int | str:
    return size if type(size) is int else str(size)
