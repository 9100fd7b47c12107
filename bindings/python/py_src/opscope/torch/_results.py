"""A node's results as known before it runs."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node

# An unknown tensor.
UNKNOWN = object()


def example(node: Node) -> Any:
    """Torch's example, with tuples for several results. If torch has none, the result is inferred
    from the node's users and the operator's schema.
    """
    found = node.meta.get("val")
    if found is not None or node.op != "call_function":
        return found
    declared = _declared(node)
    parts = {
        user.args[1]: example(user)
        for user in node.users
        if user.target is operator.getitem and isinstance(user.args[1], int) and user.args[1] >= 0
    }
    if not parts:
        return declared
    known = declared if isinstance(declared, tuple) else ()
    return tuple(_or(parts.get(i), known, i) for i in range(max(len(known), max(parts) + 1)))


def _or(part: Any, known: tuple, i: int) -> Any:
    return part if part is not None or i >= len(known) else known[i]


def _declared(node: Node) -> Any:
    """For operators that run another one, without examples from torch, that one's result."""
    name = getattr(node.target, "__name__", "")
    if name in ("run_and_save_rng_state", "run_with_rng_state"):
        inner = next((arg for arg in node.args if isinstance(arg, torch._ops.OpOverload)), None)
        given = UNKNOWN if inner is None else _of_schema(inner._schema)
        return (UNKNOWN, given) if name == "run_and_save_rng_state" else given
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return UNKNOWN if "val" not in node.meta and node.target is not operator.getitem else None
    return _of_schema(schema)


def _of_schema(schema: Any) -> Any:
    found = tuple(UNKNOWN if isinstance(result.type, torch.TensorType) else None for result in schema.returns)
    return found[0] if len(found) == 1 else found
