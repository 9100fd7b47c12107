"""Quantising operators, and dumping the values before quantisation.

With `quant_dumpable` the record of a quantising operator has inputs and outputs, whatever the plan
dumps of others: the original values, scale and zero point among its inputs, and the integers as its
output. The record is also written if a chosen operator produces what is quantised or reads the
result, possibly with views or a dequantisation in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ._graph import Described, Operator
from ._names import base_name

# Prefixes of operator names, in any library.
_QUANTISE = ("quantize_", "fake_quant", "_fake_quant", "_fused_moving_avg_obs_fake_quant", "fused_moving_avg_obs_fake")
_DEQUANTISE = ("dequantize",)


def select(described: Described) -> None:
    """Selects quantising operators next to chosen ones, and dumps both their inputs and outputs."""
    chosen = [operator for operator in described.operators if operator.is_selected]
    by_output = {
        value: operator for operator in described.operators for value in operator.outputs if value is not None
    }
    readers: dict[int, list[Operator]] = {}
    for operator in described.operators:
        for value in operator.inputs:
            readers.setdefault(value, []).append(operator)

    def before(operator: Operator) -> Iterator[Operator]:
        yield from (by_output[value] for value in operator.inputs if value in by_output)

    def after(operator: Operator) -> Iterator[Operator]:
        for value in operator.outputs:
            yield from () if value is None else readers.get(value, ())

    for operator in chosen:
        for near in (*_beyond(operator, before), *_beyond(operator, after)):
            near.is_selected = True
    for operator in described.operators:
        operator.has_both_sides = operator.is_selected and is_quantising(operator)


def is_quantising(operator: Operator) -> bool:
    """Whether an operator reduces precision by quantisation."""
    return base_name(operator.op_type).startswith(_QUANTISE)


def _beyond(operator: Operator, step: object) -> Iterable[Operator]:
    """Quantising operators in one direction."""
    assert callable(step)
    found: list[Operator] = []
    waiting, seen = [operator], {id(operator)}
    while waiting:
        for near in step(waiting.pop()):
            if id(near) in seen:
                continue
            seen.add(id(near))
            if is_quantising(near):
                found.append(near)
            elif _hands_on(near):
                waiting.append(near)
    return found


def _hands_on(operator: Operator) -> bool:
    """Whether an operator only dequantises, or only returns a view of its input."""
    if base_name(operator.op_type).startswith(_DEQUANTISE):
        return True
    schema = getattr(getattr(operator.node, "target", None), "_schema", None)
    return schema is not None and any(
        result.alias_info is not None and not result.alias_info.is_write for result in schema.returns
    )
