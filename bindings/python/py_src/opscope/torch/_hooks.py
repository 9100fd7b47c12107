"""Other observers of operators that run in eager mode: watchers, dumps of failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._argument import reason


@dataclass
class OperatorCall:
    """One execution of one operator, as a hook sees it."""

    # The operator and what it is called with, as torch hands it over. Hooks do not change them.
    func: Any
    args: tuple
    kwargs: dict
    # `aten.add.Tensor`.
    op_type: str
    # Its name in the dump, such as `add_1`.
    op_name: str
    # Its position among the operators of the step.
    task_id: int
    step: int
    # `forward`, `backward` or `optimizer`.
    phase: str
    # Path of the module that it belongs to; empty where nobody knows.
    module: str
    # File, line and function of the call; empty where nobody knows.
    source: str
    # Number that a forward operator and its backward operators share.
    seq_nr: int | None
    # Names of the values that it reads, for each tensor among its arguments in turn.
    inputs: list[str]
    # The operator's result; `None` before it ran.
    result: Any = None


class Hook:
    """Sees every operator inside the context, of steps that are not dumped as well.

    Methods run inside torch's dispatcher, on the thread that runs the operator: what they compute themselves is not
    seen by any hook and is not dumped. The tensors are those of the model, to be read only. What a method raises is
    counted (`n_hook_faults` of the report, `first_hook_fault`) and goes no further.
    """

    def before(self, call: OperatorCall) -> None:
        """The operator is about to run: its inputs are what it will read."""

    def after(self, call: OperatorCall) -> None:
        """It went well: `call.result` is there, and inputs that it writes to are written."""

    def failed(self, call: OperatorCall, error: BaseException) -> None:
        """It raised `error`, which the model gets next. Inputs may be written in part."""


class Hooks:
    """The hooks of one context."""

    def __init__(self, hooks: tuple[Hook, ...] = ()) -> None:
        self.attached = list(hooks)
        self.n_faults = 0
        self.first_fault: str | None = None

    def before(self, call: OperatorCall) -> None:
        """Tells every hook."""
        for hook in self.attached:
            try:
                hook.before(call)
            except Exception as error:
                self._note(hook, error)

    def after(self, call: OperatorCall) -> None:
        """Tells every hook."""
        for hook in self.attached:
            try:
                hook.after(call)
            except Exception as error:
                self._note(hook, error)

    def failed(self, call: OperatorCall, error: BaseException) -> None:
        """Tells every hook."""
        for hook in self.attached:
            try:
                hook.failed(call, error)
            except Exception as fault:
                self._note(hook, fault)

    def _note(self, hook: Hook, error: Exception) -> None:
        self.n_faults += 1
        self.first_fault = self.first_fault or f"{type(hook).__name__}: {reason(error)}"
