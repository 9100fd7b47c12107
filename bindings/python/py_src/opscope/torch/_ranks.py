"""Processes of a distributed run: this one's rank, the ones that write, and a common time."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime

import torch

from .. import _visible
from .._fork_lock import ForkLock
from .._world import is_initialised, world

_log = _visible.logger()
_FORMAT = "%Y%m%d%H%M%S"
# Maximum number of seconds by which a dump's name may lead the clock if earlier names are taken.
_N_NAMES_MAX = 3600
# How many names there are behind the first free one, as other processes take names as well.
_N_SPARE = 32
# How long the processes' store may take to answer.
_STORE_SECONDS_MAX = 20.0
# Number of dumps per path so far: the n-th of one process belongs to the n-th of the others.
_n_of_path: dict[str, int] = {}
_lock = ForkLock()


def is_chosen(ranks: tuple[tuple[int, int], ...] | None) -> bool:
    """Whether this process writes; `None` means every one does."""
    rank = world().rank
    return ranks is None or any(first <= rank <= last for first, last in ranks)


def times(path: str, begun_at: float, parent: str | None = None) -> list[str]:
    """Names for the directory of a dump below `path`, the best first: processes that run together get the same.

    The list ends behind the first names that are free in `parent`, if that is given. An hour of names takes longer than
    the dump of a small program.
    """
    agreed = None
    if is_initialised() and world().size > 1:
        agreed = _agreed(path, time.strftime(_FORMAT, time.localtime(begun_at)))
    start = begun_at if agreed is None else datetime.strptime(agreed, _FORMAT).timestamp()
    seconds = (time.strftime(_FORMAT, time.localtime(start + i)) for i in range(_N_NAMES_MAX))
    # Where clocks are put forward or back the text does not come out of the number.
    names = seconds if agreed is None else itertools.chain([agreed], (name for name in seconds if name != agreed))
    if parent is None:
        return list(names)
    found = []
    for name in names:
        found.append(name)
        if not os.path.lexists(os.path.join(parent, name)):
            break
    return [*found, *itertools.islice(names, _N_SPARE)]


def _agreed(path: str, proposed: str) -> str | None:
    """The time of the first process to ask; no process waits for another."""
    with _lock:
        n = _n_of_path[path] = _n_of_path.get(path, 0) + 1
    key = f"opscope/torch/time/{n}/{path}"

    def ask() -> str:
        store = torch.distributed.distributed_c10d._get_default_store()
        found = store.compare_set(key, "", proposed)
        return found.decode() if isinstance(found, bytes) else str(found)

    try:
        found = within(_STORE_SECONDS_MAX, ask)
        datetime.strptime(found, _FORMAT)
        return found
    except Exception as error:
        _log.warning("the processes have no common time for their dumps, each has its own: %s", error)
        return None


def within(seconds: float, ask: Callable[[], str]) -> str:
    """Returns the answer of `ask`. Gives up after `seconds`, because a store's own timeout is half
    an hour."""
    answers: list[str] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            answers.append(ask())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="opscope-time", daemon=True)
    thread.start()
    thread.join(seconds)
    if answers:
        return answers[0]
    raise errors[0] if errors else TimeoutError(f"the store did not answer within {seconds:g} s")
