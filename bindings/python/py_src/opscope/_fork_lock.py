"""Locks that are free in a forked process, even if a thread held them in the parent.

A fork has no other threads, so a lock that another thread held would stay locked forever.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any


class ForkLock:
    """A `threading.Lock`, separate in every fork; a `threading.RLock` if it `is_reentrant`."""

    def __init__(self, *, is_reentrant: bool = False) -> None:
        self._make: Callable[[], Any] = threading.RLock if is_reentrant else threading.Lock
        self._lock = self._make()
        # The lock currently held. A fork that starts inside `with` releases its parent's.
        self._held = self._lock
        _locks.add(self)

    def acquire(self, blocking: bool = True) -> bool:
        """Like `threading.Lock.acquire`."""
        lock = self._lock
        is_acquired = lock.acquire(blocking)
        if is_acquired:
            self._held = lock
        return is_acquired

    def release(self) -> None:
        """Like `threading.Lock.release`."""
        self._held.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: Any) -> None:
        self.release()


_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def _in_child() -> None:
    for lock in list(_locks):
        lock._lock = lock._make()


os.register_at_fork(after_in_child=_in_child)
