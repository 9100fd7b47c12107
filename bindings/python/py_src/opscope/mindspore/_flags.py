"""Modules and operators that `set_dump` has switched on or off."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Flags:
    """A snapshot of the switched modules and operators."""

    # Modules by id, which is unique while they exist.
    modules: dict[int, bool] = field(default_factory=dict)
    # Operators by torch's printed name: with the overload, or for all of them.
    operators: dict[str, bool] = field(default_factory=dict)
    # Modules that were switched on as a whole: the type of each, and the ids of everything inside.
    roots: list[tuple[str, frozenset[int]]] = field(default_factory=list)


_modules: dict[int, tuple[weakref.ref, bool]] = {}
_operators: dict[str, bool] = {}
_roots: list[tuple[weakref.ref, frozenset[int]]] = []


def set_dump(target: Any, enabled: bool = True) -> None:
    """Switches the dump of a module with its submodules, or of an operator, on or off.

    It affects graphs compiled later under `dump_mode` 2. `target` is a `torch.nn.Module`, or an
    operator such as `torch.ops.aten.relu` or `torch.ops.aten.relu.default`; anything else raises
    `ValueError`, as does an `enabled` that is not a `bool`.
    """
    try:
        import torch
        from torch._ops import OpOverload, OpOverloadPacket
    except ImportError as error:
        raise ImportError("opscope.mindspore.set_dump needs PyTorch, which cannot be imported") from error
    is_module = isinstance(target, torch.nn.Module)
    if not is_module and not isinstance(target, (OpOverload, OpOverloadPacket)):
        raise ValueError(
            "set_dump: `target` must be a torch.nn.Module or an operator such as torch.ops.aten.relu, "
            f"but it is of the type {type(target).__name__}"
        )
    if not isinstance(enabled, bool):
        raise ValueError(f"set_dump: `enabled` must be a bool, but it is of the type {type(enabled).__name__}")
    if not is_module:
        _operators[str(target)] = enabled
        return
    for module in target.modules():
        _flag(module, enabled)
    if enabled:
        _roots[:] = [(reference, inside) for reference, inside in _roots if reference() is not None]
        _roots.append((weakref.ref(target), frozenset(id(module) for module in target.modules())))


def _flag(module: Any, enabled: bool) -> None:
    number = id(module)

    def forget(reference: weakref.ref) -> None:
        # The id may have been reused by another module.
        known = _modules.get(number)
        if known is not None and known[0] is reference:
            del _modules[number]

    _modules[number] = (weakref.ref(module, forget), enabled)


def snapshot() -> Flags:
    """Returns the currently switched modules and operators."""
    modules = {number: enabled for number, (reference, enabled) in list(_modules.items()) if reference() is not None}
    roots = [(type(root).__name__, inside) for reference, inside in _roots if (root := reference()) is not None]
    return Flags(modules, dict(_operators), roots)
