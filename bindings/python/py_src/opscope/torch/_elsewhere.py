"""Operators of other threads than those of a context: eager mode does not see them, so they are counted.

Torch has its dispatch modes for each thread by itself. A mode that counts and does nothing else is entered in every
thread that is started meanwhile, and in threads that are there already for as long as they call a module.
"""

from __future__ import annotations

import threading
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from .._fork_lock import ForkLock

# Counts that go on now.
_open: list[Elsewhere] = []
_lock = ForkLock()
_start = threading.Thread.start


class _OfThread(threading.local):
    """The mode that is entered in one thread."""

    def __init__(self) -> None:
        # Whether operators of the thread are counted already, or are seen.
        self.is_known = False
        # Modules that are being called, where the mode was entered because of one.
        self.n_modules = 0
        self.mode: _Counting | None = None


_here = _OfThread()


class _Counting(TorchDispatchMode):
    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled code runs as it does without a dump."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        for one in _open:
            one.n_operators += 1
        return func(*args, **(kwargs or {}))


class Elsewhere:
    """The count of one context."""

    def __init__(self) -> None:
        # Several threads may add at once: then it is too low by a few, and never 0 where it should not be.
        self.n_operators = 0

    def begin(self) -> None:
        """Counts from now on. The calling thread is the one that is seen."""
        _here.is_known = True
        with _lock:
            if self not in _open:
                _open.append(self)
            threading.Thread.start = _start_counted  # type: ignore[method-assign]

    def end(self) -> None:
        """Counts no longer."""
        _here.is_known = False
        with _lock:
            if self in _open:
                _open.remove(self)
            if not _open and threading.Thread.start is _start_counted:
                threading.Thread.start = _start  # type: ignore[method-assign]

    def begin_module(self) -> None:
        """Says that a module is called in this thread."""
        if _here.is_known:
            return
        _here.n_modules += 1
        if _here.mode is None:
            _here.mode = _Counting()
            _here.mode.__enter__()

    def end_module(self) -> None:
        """Says that a call of a module has ended in this thread."""
        if _here.mode is None:
            return
        _here.n_modules -= 1
        if _here.n_modules <= 0:
            mode, _here.mode, _here.n_modules = _here.mode, None, 0
            mode.__exit__(None, None, None)


def _start_counted(thread: threading.Thread) -> None:
    run = thread.run

    def counted() -> None:
        _here.is_known = True
        with _Counting():
            run()

    thread.run = counted  # type: ignore[method-assign]
    try:
        _start(thread)
    except BaseException:
        thread.run = run  # type: ignore[method-assign]
        raise


def leave_fork() -> None:
    """In a fork nothing is counted."""
    _open.clear()
    threading.Thread.start = _start  # type: ignore[method-assign]
