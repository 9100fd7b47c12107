"""Where eager mode calls an operator: the line of the program, and the module."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
from torch.nn.modules import module as torch_module

# Code between the program and an operator.
_BETWEEN = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep for path in (str(torch.__file__), __file__) if path
)

_WRITERS = tuple(os.path.join(os.path.dirname(os.path.abspath(str(torch.__file__))), name) for name in ("nn", "optim"))


def source() -> str:
    """File, line and function of the innermost call in the program; empty if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_BETWEEN) and not name.startswith("<"):
            return f"{name}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    return ""


def is_of_torch() -> bool:
    """Whether the innermost call is in one of torch's modules or optimizers, which know what they
    write to."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_BETWEEN) and not name.startswith("<"):
            return False
        if name.startswith(_WRITERS) and not name.endswith("functional.py"):
            return True
        frame = frame.f_back
    return False


class Modules:
    """Tracks which of a model's modules is running, from `begin` to `end`."""

    def __init__(self, model: torch.nn.Module | None) -> None:
        self._names = {} if model is None else {id(module): name for name, module in model.named_modules()}
        self._stack: list[str] = []
        self._hooks: list[Any] = []

    @property
    def current(self) -> str:
        """The innermost module's path; empty outside all of them."""
        return self._stack[-1] if self._stack else ""

    def begin(self) -> None:
        """Starts tracking module calls."""
        if not self._names:
            return

        def enter(module: torch.nn.Module, _args: Any) -> None:
            if (name := self._names.get(id(module))) is not None:
                self._stack.append(name)

        def leave(module: torch.nn.Module, _args: Any, _result: Any) -> None:
            if id(module) in self._names and self._stack:
                self._stack.pop()

        self._hooks = [
            torch_module.register_module_forward_pre_hook(enter),
            torch_module.register_module_forward_hook(leave, always_call=True),
        ]

    def end(self) -> None:
        """Stops tracking."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._stack.clear()
