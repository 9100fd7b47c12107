"""Counts operators in threads other than those of a context, which eager mode cannot observe.

Torch's dispatch modes are per thread. A mode that only counts is entered in every thread started
meanwhile, and in existing threads while they call a module.
"""

from __future__ import annotations

import threading
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from .._fork_lock import ForkLock

# Active counts.
_open: list[Elsewhere] = []
_lock = ForkLock()
_start = threading.Thread.start


class _OfThread(threading.local):
    """The mode entered in one thread."""

    def __init__(self) -> None:
        # Whether the thread's operators are already counted, or observed.
        self.is_known = False
        # Number of running module calls, if the mode was entered because of them.
        self.n_modules = 0
        self.mode: _Counting | None = None


_here = _OfThread()


class _Counting(TorchDispatchMode):
    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled code runs as without a dump."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        for count in _open:
            count.n_operators += 1
        return func(*args, **(kwargs or {}))


class Elsewhere:
    """The count of one context."""

    def __init__(self) -> None:
        # Concurrent additions may lose a few counts, but a nonzero count never becomes 0.
        self.n_operators = 0

    def begin(self) -> None:
        """Starts counting. The calling thread is the observed one."""
        _here.is_known = True
        with _lock:
            if self not in _open:
                _open.append(self)
            threading.Thread.start = _start_counted  # type: ignore[method-assign]

    def end(self) -> None:
        """Stops counting."""
        _here.is_known = False
        with _lock:
            if self in _open:
                _open.remove(self)
            if not _open and threading.Thread.start is _start_counted:
                threading.Thread.start = _start  # type: ignore[method-assign]

    def begin_module(self) -> None:
        """Reports the start of a module call in this thread."""
        if _here.is_known:
            return
        _here.n_modules += 1
        if _here.mode is None:
            _here.mode = _Counting()
            _here.mode.__enter__()

    def end_module(self) -> None:
        """Reports the end of a module call in this thread."""
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
    """A fork does not count."""
    _open.clear()
    threading.Thread.start = _start  # type: ignore[method-assign]
