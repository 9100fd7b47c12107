"""Where a program calls an operator: module, line, phase."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch
from torch.nn.modules import module as _module
from torch.optim import optimizer as _optimizer

from ._elsewhere import Elsewhere

_TORCH = os.path.dirname(torch.__file__) + os.sep
_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
# Marks a module whose path has not been looked up.
_UNKNOWN: Any = object()
# Maximum number of frames to search for a line of the program.
_N_FRAMES_MAX = 100


class Lines:
    """Source lines of the program, excluding torch and this package."""

    def __init__(self) -> None:
        # The text of each line, by the code's `id` and line number; `None` for code outside the
        # program. Hashing the code itself would hash all its constants each time.
        self._texts: dict[int, dict[int, str] | None] = {}
        # Keeps the code alive, so that its `id` stays unique.
        self._codes: list[CodeType] = []

    def of(self, frame: FrameType | None) -> str:
        """`file:line function` of the innermost call in the program; empty if there is none."""
        texts = self._texts
        for _ in range(_N_FRAMES_MAX):
            if frame is None:
                break
            code = frame.f_code
            try:
                known = texts[id(code)]
            except KeyError:
                self._codes.append(code)
                known = texts[id(code)] = _program(code)
            if known is not None:
                line = frame.f_lineno
                text = known.get(line)
                if text is None:
                    text = known[line] = f"{code.co_filename}:{line} {code.co_name}"
                return text
            frame = frame.f_back
        return ""


def _program(code: CodeType) -> dict[int, str] | None:
    name = code.co_filename
    is_foreign = name.startswith((_TORCH, _OURS)) or (name.startswith("<") and "torch" in name)
    return None if is_foreign else {}


class _OfThread(threading.local):
    """One thread's state: the running modules, and whether an optimizer is running."""

    def __init__(self) -> None:
        # Running module calls with their paths, outermost first.
        self.modules: list[tuple[Any, str]] = []
        self.module = ""
        self.is_optimizing = False


class Place:
    """Tracks modules and optimizers while entered."""

    def __init__(
        self,
        on_root: Callable[[Any], None] | None,
        elsewhere: Elsewhere | None = None,
        on_optimizer: Callable[[Any], None] | None = None,
    ) -> None:
        """`on_root` is called once with each outermost module; without it modules are not tracked.

        `on_optimizer` is called with the optimizer before each of its steps.
        """
        self._elsewhere = elsewhere
        self._on_optimizer = on_optimizer
        self.of_thread = _OfThread()
        self._on_root = on_root
        self._roots: weakref.WeakSet[Any] = weakref.WeakSet()
        # Paths of the modules in each outermost module.
        self._paths: weakref.WeakKeyDictionary[Any, weakref.WeakKeyDictionary[Any, str | None]] = (
            weakref.WeakKeyDictionary()
        )
        self._handles: list[Any] = []

    def enter(self) -> None:
        """Starts tracking."""
        if self._handles:
            return
        self._handles = [
            _optimizer.register_optimizer_step_pre_hook(self._begin_optimizer),
            _optimizer.register_optimizer_step_post_hook(self._end_optimizer),
        ]
        if self._on_root is not None:
            self._handles += [
                _module.register_module_forward_pre_hook(self._begin_module),
                _module.register_module_forward_hook(self._end_module, always_call=True),
            ]

    def leave(self) -> None:
        """Stops, and clears state left by an error."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self.forget()

    def forget(self) -> None:
        """Clears the thread's state between steps."""
        here = self.of_thread
        here.modules.clear()
        here.module = ""
        here.is_optimizing = False

    def _begin_module(self, module: Any, _args: Any) -> None:
        # Compiled code contains its modules; tracing it finds nothing here.
        if torch.compiler.is_compiling():
            return
        if self._elsewhere is not None:
            self._elsewhere.begin_module()
        here = self.of_thread
        modules = here.modules
        if modules:
            path = self._path(modules[0][0], module)
            # A module outside the model keeps its caller's path.
            here.module = modules[-1][1] if path is None else path
        else:
            here.module = ""
            here.is_optimizing = False
            if self._on_root is not None and module not in self._roots:
                self._roots.add(module)
                self._on_root(module)
        modules.append((module, here.module))

    def _end_module(self, module: Any, _args: Any, _result: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if self._elsewhere is not None:
            self._elsewhere.end_module()
        here = self.of_thread
        modules = here.modules
        if any(known is module for known, _ in modules):
            # Inner modules that raised have not ended.
            while modules.pop()[0] is not module:
                pass
        here.module = modules[-1][1] if modules else ""

    def _path(self, root: Any, module: Any) -> str | None:
        paths = self._paths.get(root)
        path = _UNKNOWN if paths is None else paths.get(module, _UNKNOWN)
        if path is not _UNKNOWN:
            return path
        self._paths[root] = paths = weakref.WeakKeyDictionary({found: name for name, found in root.named_modules()})
        # Created later, or not part of it: looked up only once.
        return paths.setdefault(module, None)

    def _begin_optimizer(self, optimizer: Any, *_: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self.of_thread.is_optimizing = True
        if self._on_optimizer is not None:
            self._on_optimizer(optimizer)

    def _end_optimizer(self, *_: Any) -> None:
        if not torch.compiler.is_compiling():
            self.of_thread.is_optimizing = False
