"""Compiled graphs that dump an operator's inputs when it raises, at no cost otherwise.

The graph's code is unchanged: when it raises, its local variables are the operator's inputs,
because graph code releases a value only after its last reader.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.fx import GraphModule

from .._native.capture import Graph
from . import _failure, _runner, _taps
from ._dump import Dump
from ._graph import Described, Operator


class Guarded:
    """A graph whose failing operators are dumped."""

    def __init__(
        self, gm: GraphModule, described: Described, graph: Graph, dump: Dump, on_failure: Callable[[], None]
    ) -> None:
        self._graph = graph
        self._described = described
        self._dump = dump
        self._on_failure = on_failure
        self._steps = itertools.count()
        self._plain = _taps.plain(gm)
        self._code = _taps.code_of(self._plain)
        # Names of nodes' results, in execution order.
        self._nodes = [node for node in gm.graph.nodes if node.op == "call_function"]

        def run(args: list) -> Any:
            return self._run(args)

        run._boxed_call = True
        self.run = run

    def _run(self, args: list) -> Any:
        run = self._graph.begin_step(_runner.step_or(next(self._steps)))
        if run is None:
            return self._plain(args)
        try:
            result = self._plain(args)
        except Exception as error:
            try:
                self._tell(run, error)
            except Exception as fault:  # noqa: BLE001
                self._dump.findings.note_fault(fault)
                run.fail(_failure.reason(error))
            raise
        except BaseException as error:
            run.fail(_failure.reason(error))
            raise
        run.count_all()
        run.end()
        return result

    def _tell(self, run: Any, error: Exception) -> None:
        frame = self._frame(error)
        number = None if frame is None else self._failing(frame)
        if frame is None or number is None:
            run.fail(_failure.reason(error))
            return
        operator = self._described.operators[number]
        args, kwargs = _given(operator, frame)
        source = dict(operator.attributes).get("source", "")
        inputs = list(enumerate(tensor.resolve_conj().resolve_neg() for tensor in _failure.tensors(args, kwargs)))
        notes = _failure.notes(operator.node.target, args, kwargs, error, source=source)
        run.fail_operator(number, number, inputs, _failure.reason(error), notes)
        where = f", called at {source}" if source else ""
        _failure.add_note(
            error,
            f"opscope.torch: operator `{operator.op_name}` ({operator.op_type}){where}; "
            f"its inputs are in {self._dump.failure_dir}",
        )
        self._on_failure()

    def _frame(self, error: Exception) -> FrameType | None:
        """The frame of the graph's code where it raised."""
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is self._code:
                return trace.tb_frame
            trace = trace.tb_next
        return None

    def _failing(self, frame: FrameType) -> int | None:
        """The operator that raised: the first without a result."""
        known = frame.f_locals
        for node in self._nodes:
            if node.name not in known:
                numbers = (i for i, operator in enumerate(self._described.operators) if operator.node is node)
                return next(numbers, None)
        return None


def _given(operator: Operator, frame: FrameType) -> tuple[tuple, dict]:
    """The values of an operator's arguments."""
    node, known = operator.node, frame.f_locals

    def value(source: Any) -> Any:
        return known.get(source.name)

    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), value)
    return tuple(args), dict(kwargs)
