"""Forks of this process, such as workers of a `DataLoader`: nothing of a dump runs in them.

A fork has a copy of everything but of the threads that write, and a lock that another thread held stays locked for
ever. So whatever dumps lets go of its work in the fork before any other code runs there; the parent's goes on.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol

from .._native.capture import note_fork


class Follower(Protocol):
    """Something that has work in one process only."""

    def leave_fork(self) -> None:
        """Ends the work in a fork, without waiting for anybody and without touching files."""


_followers: weakref.WeakSet[Any] = weakref.WeakSet()


def follow(follower: Follower) -> None:
    """Lets `follower` know of forks, for as long as it is there."""
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
