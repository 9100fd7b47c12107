"""Executions of one compiled graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule

from .. import _options
from .._argument import reason
from .._native.capture import Graph
from . import _bodies, _taps
from ._graph import Described

_step: int | None = None


def set_step(step: int | None) -> None:
    """Sets the step of every graph from now on; with `None`, each counts its own executions."""
    global _step
    _options.whole("step", step, 0, is_optional=True)
    _step = step


def step_or(count: int) -> int:
    """The step set by the program, or `count`."""
    return count if _step is None else _step


def next_step() -> int:
    """Sets every graph to the number after the last one, or 0."""
    global _step
    _step = 0 if _step is None else _step + 1
    return _step


def untapped(gm: GraphModule) -> Callable[[list], Any]:
    """A graph that is not dumped."""
    forward = _taps.plain(gm)

    def run(args: list) -> Any:
        return forward(args)

    run._boxed_call = True
    return run


class Runner:
    """A graph with and without taps, one of which runs each time. `on_first` is called before the
    first dumped execution.
    """

    def __init__(self, gm: GraphModule, described: Described, graph: Graph, on_first: Callable[[], None]) -> None:
        self._graph = graph
        self._steps = itertools.count()
        self._plain = _taps.plain(gm)
        # Created on first use.
        self._tapped: Callable[[list], Any] | None = None
        self._source: tuple[GraphModule, Described, Callable[[], None]] | None = (gm, described, on_first)
        self._has_taps = bool(graph.tapped)
        self._has_bodies = bool(described.bodies)

        def run(args: list) -> Any:
            return self._run(args)

        run._boxed_call = True
        self.run = run

    def _run(self, args: list) -> Any:
        count = next(self._steps)
        run = self._graph.begin_step(step_or(count)) if self._has_taps else None
        if run is None:
            return self._plain(args)
        arguments = [run, *args]
        # Frees unshared arguments as soon as the graph is done with them.
        args.clear()
        before = _bodies.exchange(run) if self._has_bodies else None
        try:
            result = (self._tapped or self._build())(arguments)
        except BaseException as error:
            run.fail(reason(error))
            raise
        finally:
            if self._has_bodies:
                _bodies.exchange(before)
        run.end()
        return result

    def _build(self) -> Callable[[list], Any]:
        source = self._source
        if source is not None:
            gm, described, on_first = source
            on_first()
            self._tapped = _taps.tapped(gm, described, self._graph)
            self._source = None
        return self._tapped
