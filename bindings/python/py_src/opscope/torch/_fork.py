"""Forks of this process, such as `DataLoader` workers: dumps do not run in them.

A fork copies everything but the writer threads, and a lock held by another thread stays locked
forever. So every dump drops its work in the fork before other code runs there; the parent's dump
continues.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol

from .._native.capture import note_fork


class Follower(Protocol):
    """An object with work in one process only."""

    def leave_fork(self) -> None:
        """Drops the work in a fork, without waiting and without touching files."""


_followers: weakref.WeakSet[Any] = weakref.WeakSet()


def follow(follower: Follower) -> None:
    """Notifies `follower` of forks as long as it exists."""
    _followers.add(follower)


def _in_child() -> None:
    note_fork()
    for follower in list(_followers):
        try:
            follower.leave_fork()
        except Exception:  # noqa: BLE001, S112
            # The program's own work in the fork must not suffer.
            continue


os.register_at_fork(after_in_child=_in_child)
