"""Operators that raise in code without `torch.compile`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from .. import _options
from . import _calls, _dump, _failure, _fork, _names
from ._graph import Described, Operator, Value
from ._plan import EXCEPTION, Config, DumpPlan
from ._storage import OPERATOR


class Failures:
    """Dumps operators that raise, for any code that calls operators itself and handles their
    errors."""

    def __init__(self, dump: _dump.Dump, model_name: str = "eager") -> None:
        self._dump = dump
        self._model_name = model_name
        self._n_counted = 0

    def tell(self, target: Any, args: Iterable[Any], kwargs: dict[str, Any], error: Exception, number: int) -> None:
        """Writes the arguments of `target` before returning. `number` is the number of operators
        before. Errors in here do not replace the program's error.
        """
        try:
            self._write(target, list(args), kwargs, error, number)
        except Exception as fault:  # noqa: BLE001
            self._dump.findings.note_fault(fault)

    def _write(self, target: Any, args: list[Any], kwargs: dict[str, Any], error: Exception, number: int) -> None:
        source = _calls.source()
        op_type = _names.target_name(target)
        name = f"{_names.base_name(op_type)}_{number}"
        tensors = _failure.tensors(args, kwargs)
        values = [Value(f"{name}.input.{i}", OPERATOR, False, None) for i in range(len(tensors))]
        operator = Operator(op_type, name, list(range(len(tensors))), [], [("source", source)], True)
        graph = self._dump.attach(self._model_name, 1, Described(values, [operator]))
        run = graph.begin_step(0)
        if run is None:
            return
        inputs = list(enumerate(tensor.resolve_conj().resolve_neg() for tensor in tensors))
        notes = _failure.notes(target, args, kwargs, error, source=source)
        notes = f"operators before: {number}\n{notes}"
        # The failing one is counted separately.
        run.fail_operator(0, number - self._n_counted, inputs, _failure.reason(error), notes)
        self._n_counted = number + 1
        where = f", called at {source}" if source else ""
        _failure.add_note(
            error, f"opscope.torch: operator {op_type}{where}; its inputs are in {self._dump.failure_dir}"
        )


class catch(TorchDispatchMode):  # noqa: N801
    """Dumps the inputs of an operator that raises inside the context.

        with opscope.torch.catch("dump", detail="norm"):
            ...
    
    The error propagates unchanged, with a note about the location of the inputs. `report` is
    available afterwards.
    """

    def __init__(self, path: str | os.PathLike = "./", detail: str | bool = "norm") -> None:
        super().__init__()
        _options.path("path", path)
        _options.word("detail", detail, (True, *EXCEPTION))
        plan = DumpPlan(path=os.fspath(path), exception=detail)
        self._dump = _dump.Dump(plan, Config(), is_enabled=True, has_graphs=False)
        self._failures = Failures(self._dump)
        self._n_operators = 0
        self._is_idle = False
        self.report: dict = {}
        _fork.follow(self)

    def leave_fork(self) -> None:
        """A fork does not catch errors."""
        self._is_idle = True

    def __enter__(self) -> Any:
        # Detects an unusable directory before anything runs.
        try:
            self._dump.begin()
        except _dump.Unwritable:
            self._is_idle = True
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.report = self._dump.finish(0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._is_idle:
            return func(*args, **kwargs)
        number, self._n_operators = self._n_operators, self._n_operators + 1
        try:
            return func(*args, **kwargs)
        except Exception as error:
            self._failures.tell(func, args, kwargs, error, number)
            raise
