"""Code that `torch.compile` made, and its original."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch import nn

# Maximum number of backends in a chain of wrappers.
_N_WRAPPERS_MAX = 16
_OURS = "opscope"
# Attributes with the wrapped backend.
_WRAPPED = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")


@dataclass(frozen=True)
class CompiledCode:
    """A compiled module or function."""

    # The callable in the program.
    call: Callable[..., Any]
    # The uncompiled original.
    original: Callable[..., Any]
    # The name of its backend.
    backend: str
    dynamic: bool | None = None
    is_whole: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether the operators run one by one, as in a dump."""
        return self.backend == _OURS


def compiled_code(call: Any) -> CompiledCode | None:
    """The compiled code of a callable; `None` if it runs as written."""
    if isinstance(call, nn.Module):
        if (original := getattr(call, "_orig_mod", None)) is not None:
            return _of_context(call, original, getattr(call, "dynamo_ctx", None))
        # `module.compile()`.
        inner = getattr(call, "_compiled_call_impl", None)
        return None if inner is None else _of_context(call, call, _context(inner))
    original = getattr(call, "_torchdynamo_orig_callable", None)
    # `torch.compiler.disable` sets the same attribute.
    if original is None or getattr(call, "_torchdynamo_disable", False):
        return None
    return _of_context(call, original, _context(call))


@contextmanager
def as_written(original: Any) -> Iterator[None]:
    """Runs a module that was compiled in place without its compiled code."""
    inner = getattr(original, "_compiled_call_impl", None)
    if inner is None:
        yield
        return
    original._compiled_call_impl = None
    try:
        yield
    finally:
        original._compiled_call_impl = inner


def apart(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls `original`, with separate code.

    Torch stores compiled code with a function's code, and stops compiling functions with many
    entries. This keeps the program's entries untouched, except for parts after a graph break, and
    ours disappear with this function.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    # Code that PyTorch 2.6 makes for outputs with a class refers to a global name `torch`.
    names = {"torch": torch, **call.__globals__}
    return FunctionType(call.__code__.replace(), names, call.__name__, None, call.__closure__)


def compiled_parts(root: nn.Module) -> list[str]:
    """Paths of the submodules that are compiled separately."""
    return [name for name, module in root.named_modules() if name and compiled_code(module) is not None]


def _of_context(call: Any, original: Any, context: Any) -> CompiledCode:
    whole = getattr(context, "fullgraph", getattr(context, "nopython", False))
    dynamic = getattr(context, "_dynamic", None)
    return CompiledCode(
        call=call,
        original=original,
        backend=_backend_name(getattr(context, "callback", None)),
        dynamic=dynamic if isinstance(dynamic, bool) else None,
        is_whole=whole is True,
    )


def _context(function: Any) -> Any:
    """The object in which torch stores how a function is compiled: a closure variable of its
    wrapper."""
    cells = getattr(function, "__closure__", None) or ()
    values = (_content(cell) for cell in cells)
    return next((value for value in values if hasattr(value, "callback") and hasattr(value, "_dynamic")), None)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # The variable is not assigned yet.
        return None


def _backend_name(backend: Any) -> str:
    """The innermost backend name."""
    name = ""
    for _ in range(_N_WRAPPERS_MAX):
        if backend is None:
            break
        found = getattr(backend, "__name__", None) or getattr(backend, "compiler_name", None)
        name = found if isinstance(found, str) else name
        backend = next((inner for mark in _WRAPPED if (inner := getattr(backend, mark, None)) is not None), None)
    return name or "of torch.compile"
