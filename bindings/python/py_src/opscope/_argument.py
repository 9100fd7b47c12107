"""Operator arguments and option values as short texts.

A value's own code (`__str__`, `__repr__`, `__iter__`) never runs: it may be slow, raise, or have
side effects. Importing this does not import torch.
"""

from __future__ import annotations

from typing import Any

# Maximum text length, number of list items, and nesting depth.
CHARACTERS_MAX = 2000
_N_ITEMS_MAX = 64
_N_LEVELS_MAX = 4
# For integers of more bits Python takes quadratic time.
_BITS_MAX = 1024
# Torch's own lists: shapes, and arguments in graphs.
_LISTS_OF_TORCH = frozenset(
    (("torch", "Size"), ("torch.fx.immutable_collections", "immutable_list"))
)
# Torch's own small types, which have their own texts.
_WORDS_OF_TORCH = frozenset(
    ("dtype", "device", "layout", "memory_format", "qscheme", "SymInt", "SymFloat", "SymBool")
)


def text(value: Any) -> str:
    """A scalar, a text, or a short list of these as in Python; for anything else its type."""
    return _cut(value[: CHARACTERS_MAX + 1]) if type(value) is str else _cut(_written(value, _N_LEVELS_MAX))


def shown(value: Any) -> str:
    """Like `text`, with texts in quotes, for messages."""
    return _cut(_written(value, _N_LEVELS_MAX))


def reason(error: BaseException) -> str:
    """An error as text, even if its own text fails."""
    try:
        message = str(error)
    except Exception as fault:  # noqa: BLE001
        message = f"(its text fails: {type(fault).__name__})"
    return f"{type(error).__name__}: {_cut(message)}"


def _written(value: Any, n_levels: int) -> str:
    kind = type(value)
    if value is None or kind in (bool, float, complex):
        return repr(value)
    if kind is int:
        n_bits = value.bit_length()
        return str(value) if n_bits <= _BITS_MAX else f"int of {n_bits} bits"
    if kind is str:
        return repr(value[: CHARACTERS_MAX + 1])
    if kind is slice:
        parts = (_written(part, n_levels - 1) for part in (value.start, value.stop, value.step))
        return f"slice({', '.join(parts)})"
    if kind in (list, tuple) or (kind.__module__, kind.__name__) in _LISTS_OF_TORCH:
        return _listed(value, n_levels)
    if kind.__module__ == "torch" and kind.__name__ in _WORDS_OF_TORCH:
        return str(value)
    if kind.__module__.startswith("torch") and hasattr(kind, "__torch_function__"):
        # The contents of a tensor are in its record.
        return kind.__name__
    return kind.__qualname__


def _listed(value: Any, n_levels: int) -> str:
    begin, end = ("(", ")") if isinstance(value, tuple) and type(value).__name__ != "Size" else ("[", "]")
    if n_levels <= 0:
        return f"{type(value).__name__} of {len(value)}"
    items = [_written(item, n_levels - 1) for item in value[:_N_ITEMS_MAX]]
    if len(value) > _N_ITEMS_MAX:
        items.append(f"... {len(value)} in all")
    return f"{begin}{', '.join(items)}{',' if begin == '(' and len(items) == 1 else ''}{end}"


def _cut(found: str) -> str:
    return found if len(found) <= CHARACTERS_MAX else found[:CHARACTERS_MAX] + " ..."
