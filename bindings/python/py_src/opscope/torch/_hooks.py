"""Further observers of operators in eager mode: watchers, dumps of failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._argument import reason


@dataclass
class OperatorCall:
    """One execution of an operator, as passed to a hook."""

    # The operator and its arguments as passed by torch. Hooks must not change them.
    func: Any
    args: tuple
    kwargs: dict
    # `aten.add.Tensor`.
    op_type: str
    # Its name in the dump, such as `add_1`.
    op_name: str
    # Its position among the step's operators.
    task_id: int
    step: int
    # `forward`, `backward` or `optimizer`.
    phase: str
    # Path of its module; empty if unknown.
    module: str
    # File, line and function of the call; empty if unknown.
    source: str
    # Sequence number shared by a forward operator and its backward operators.
    seq_nr: int | None
    # Names of the values that it reads, one for each tensor argument.
    inputs: list[str]
    # The operator's result; `None` before it ran.
    result: Any = None


class Hook:
    """Observes every operator inside the context, also in steps that are not dumped.

    Methods run inside torch's dispatcher, on the operator's thread; their own operators are neither
    observed nor dumped. The tensors belong to the model and must not be modified. Exceptions in a
    method are counted (`n_hook_faults` of the report, `first_hook_fault`) and do not propagate.
    """

    def before(self, call: OperatorCall) -> None:
        """Called before the operator runs, with its inputs unchanged."""

    def after(self, call: OperatorCall) -> None:
        """Called after success: `call.result` is set, and written inputs are updated."""

    def failed(self, call: OperatorCall, error: BaseException) -> None:
        """Called after it raised `error`, which the model receives next. Inputs may be partly
        written."""


class Hooks:
    """The hooks of one context."""

    def __init__(self, hooks: tuple[Hook, ...] = ()) -> None:
        self.attached = list(hooks)
        self.n_faults = 0
        self.first_fault: str | None = None

    def before(self, call: OperatorCall) -> None:
        """Calls every hook."""
        for hook in self.attached:
            try:
                hook.before(call)
            except Exception as error:
                self._note(hook, error)

    def after(self, call: OperatorCall) -> None:
        """Calls every hook."""
        for hook in self.attached:
            try:
                hook.after(call)
            except Exception as error:
                self._note(hook, error)

    def failed(self, call: OperatorCall, error: BaseException) -> None:
        """Calls every hook."""
        for hook in self.attached:
            try:
                hook.failed(call, error)
            except Exception as fault:
                self._note(hook, fault)

    def _note(self, hook: Hook, error: Exception) -> None:
        self.n_faults += 1
        self.first_fault = self.first_fault or f"{type(hook).__name__}: {reason(error)}"
