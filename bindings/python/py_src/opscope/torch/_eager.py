"""Dumps of code that runs without `torch.compile`: every ATen operator, as torch's dispatcher calls
it."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils.weak import WeakIdKeyDictionary

from .. import _options
from .._argument import reason, shown
from .._fork_lock import ForkLock
from .._native.capture import Call, Eager, Step, acl_json_purpose
from .._world import is_initialised
from . import _dump, _elsewhere, _fork, _kinds, _names, _place, _placements, _plan
from ._hooks import Hook, Hooks, OperatorCall
from ._plan import Config, DumpPlan

_current_node = torch._C._current_autograd_node
_next_sequence_nr = torch._C._autograd._get_sequence_nr
_n_modes = torch._C._len_torch_dispatch_stack
_innermost_mode = _get_current_dispatch_mode
_frame = sys._getframe

LAYOUTS = ("steps", "single")
# Unfinished dumps.
_open: list[EagerDump] = []
_lock = ForkLock()
_WORDS = _dump.Words(
    nothing="opscope.torch: no operator ran inside the context of the eager dump, so nothing was dumped",
    steps="steps",
)


class EagerDump(TorchDispatchMode):
    """Dumps the operators that run inside the context, in this thread and in those of its backward
    passes."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled code runs as without a dump, so that its results do not change."""
        return True

    def __init__(
        self,
        plan: Any,
        config: Config,
        *,
        hooks: Iterable[Hook] = (),
        layout: str | None = None,
        is_traced: bool = True,
    ) -> None:
        super().__init__()
        _plan.check(plan)
        _plan.check_config(config)
        _options.boolean("trace", is_traced)
        hooks = tuple(hooks)
        for hook in hooks:
            if not isinstance(hook, Hook):
                raise TypeError(f"hooks: objects of opscope.torch.Hook are expected, got a {type(hook).__name__}")
        _options.word("layout", layout, (None, *LAYOUTS))
        text = _plan.acl_json_text(plan)
        self.plan = plan
        self.is_enabled = bool(plan.enabled) and (text is None or _plan.check_acl_json(text))
        # The number of the current or next step.
        self.number = 0
        self._dump = _dump.Dump(plan, config, is_enabled=self.is_enabled, words=_WORDS)
        self._hooks = Hooks(hooks)
        self._is_single = None if layout is None else layout == "single"
        self._choice = _Choice(plan.layers) if plan.layers else None
        self._elsewhere = _elsewhere.Elsewhere()
        names = (self._name_values, self._elsewhere, self._name_optimizer_state) if is_traced else (None,)
        self._place = _place.Place(*names)
        self._parameter_names = WeakIdKeyDictionary()
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._line = _place.Lines().of if is_traced else _no_line
        # For distributed runs.
        self._collectives: Any = None
        self._native: Eager | None = None
        self._step: Step | None = None
        self._is_entered = False
        # Whether the current step began when the context was entered.
        self._is_first = False
        self._is_pushed = False
        # Number of other modes when this one was entered.
        self._n_modes = 0
        self._is_finished = False
        self._is_told = False
        # Number of finished steps, and of dumped ones.
        self._n_steps = 0
        self._n_steps_active = 0
        _fork.follow(self)

    def attach(self, hook: Hook) -> Hook:
        """Calls a hook for every operator, from the next step on or from the beginning; returns the
        hook."""
        self._hooks.attached.append(hook)
        return hook

    def detach(self, hook: Hook) -> None:
        """Removes a hook."""
        self._hooks.attached.remove(hook)

    def __enter__(self) -> EagerDump:
        if self._is_entered:
            raise RuntimeError("this dump is already entered, and it cannot be nested")
        self._is_entered = self._is_first = True
        with _lock:
            if self not in _open and not self._is_finished:
                _open.append(self)
        self._n_modes = _n_modes()
        if self._is_wanted:
            self._begin_step()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._is_entered = False
        try:
            # If a step is not dumped, it is unknown whether an operator ran. A step that `step()`
            # began is usually empty, because programs call it at the end of each step.
            is_undumped = self._is_wanted and self._step is None and self._is_first
            if self._has_begun or is_undumped:
                self._end_step(None if error is None else reason(error))
                self._n_steps += 1
                self.number += 1
            self._step = None
        finally:
            self._elsewhere.end()
            self._place.leave()
            if self._is_pushed:
                self._is_pushed = False
                super().__exit__(kind, error, traceback)

    def step(self, number: int | None = None) -> None:
        """Ends a step. The next one has the next number, or this one."""
        _options.whole("number", number, 0, is_optional=True)
        self._is_first = False
        self._end_step(None)
        self._n_steps += 1
        self.number = self.number + 1 if number is None else number
        self._place.forget()
        if self._is_entered and self._is_wanted:
            self._begin_step()

    def note_results(self, tensors: Iterable[torch.Tensor]) -> None:
        """Declares that these tensors are all that the program returns in the current step."""
        if self._step is not None:
            self._step.returns(list(tensors))

    def leave_fork(self) -> None:
        """In a fork, such as a `DataLoader` worker, operators run as without the context."""
        if self._collectives is not None:
            self._collectives.leave_fork()
        self._step = self._native = self._collectives = None
        self._is_finished = True
        self._hooks.attached.clear()
        self._place.leave()
        if self._is_pushed and _innermost_mode() is self:
            self._is_pushed = False
            super().__exit__(None, None, None)

    def counters(self) -> dict | None:
        """The counts so far; `None` before the first step."""
        return self._dump.counters()

    def finish(self) -> dict:
        """Writes the rest and returns a summary of the dump. Later code is not dumped."""
        if self._has_begun:
            self._n_steps += 1
            self._end_step(None)
        self._is_finished = True
        self._native = None
        if self._choice is not None:
            self._choice.warn()
        with _lock:
            if self in _open:
                _open.remove(self)
        steps = {"n_steps": self._n_steps, "n_steps_active": self._n_steps_active, "n_graphs": int(self._n_steps > 0)}
        report = self._dump.finish(self._n_steps, steps)
        n_elsewhere = report["n_operators_elsewhere"] = self._elsewhere.n_operators
        if n_elsewhere and not self._is_told:
            self._is_told = True
            _dump.log.warning("%d operators ran in other threads, which eager mode cannot observe", n_elsewhere)
        report["n_hook_faults"] = self._hooks.n_faults
        report["first_hook_fault"] = self._hooks.first_fault
        return report

    @property
    def _is_wanted(self) -> bool:
        return (self.is_enabled and not self._is_finished) or bool(self._hooks.attached)

    @property
    def _has_begun(self) -> bool:
        """Whether there is a step to end; a step that is only for hooks counts no operators."""
        step = self._step
        return step is not None and (step.n_operators > 0 or not step.is_dumped)

    def _begin_step(self) -> None:
        if self._native is None and not self._is_finished:
            choose = None if self._choice is None else self._choice.choose
            try:
                self._native = self._dump.attach_eager(_kinds.describe, _placements.text, choose, self._is_single)
            except _dump.Unwritable:
                # The program continues without its dump, and has been told why.
                self._is_finished = True
                return
        if self._native is not None:
            self._step = self._native.begin_step(self.number, bool(self._hooks.attached))
        if self._step is not None and is_initialised():
            # Imported here because it is slow to load and only distributed programs need it.
            from . import _collectives

            self._collectives = _collectives.Collectives(self)
            self._collectives.begin()
        self._follow()

    def _end_step(self, error: str | None) -> None:
        collectives, self._collectives = self._collectives, None
        if collectives is not None:
            collectives.end()
        step, self._step = self._step, None
        if step is not None and self._dump.session is not None:
            self._n_steps_active += step.is_dumped and step.n_operators > 0
            # The program may have given a parameter other memory, by `parameter.data = …`, and an
            # optimizer creates its state within the first step.
            assigned = [(name, value) for value, name in self._parameter_names.items()]
            for optimizer in self._optimizers:
                assigned += self._optimizer_state(optimizer)
            step.note_assigned(assigned)
            step.end(self._dump.session, error)

    def _follow(self) -> None:
        """Called by torch only in dumped steps, unless another mode was entered in between."""
        wanted = self._step is not None
        if wanted:
            self._elsewhere.begin()
            self._place.enter()
        else:
            self._elsewhere.end()
            self._place.leave()
        if wanted == self._is_pushed or _n_modes() != self._n_modes + self._is_pushed:
            return
        self._is_pushed = wanted
        if wanted:
            super().__enter__()
        else:
            super().__exit__(None, None, None)

    def _name_values(self, root: Any) -> None:
        """Registers the names of a model's tensors."""
        if self._native is not None and self._step is not None:
            parameters = list(root.named_parameters())
            # For a parameter shared by several modules, the last outermost module determines the
            # name.
            self._parameter_names.update({value: name for name, value in parameters})
            named = [*parameters, *root.named_buffers()]
            self._native.name_values([(name, value) for name, value in named if value is not None])

    def _name_optimizer_state(self, optimizer: Any) -> None:
        """Names gradients and optimizer state after their parameters."""
        if self._native is not None and self._step is not None:
            self._optimizers.add(optimizer)
            self._native.name_values(self._optimizer_state(optimizer, with_gradients=True))

    def _optimizer_state(self, optimizer: Any, *, with_gradients: bool = False) -> list[tuple[str, Any]]:
        named = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name = self._parameter_names.get(parameter)
                if name is None:
                    continue
                # Before its first update a parameter has no state; `state[parameter]` would create
                # one.
                tensors = optimizer.state.get(parameter) or {}
                if with_gradients:
                    tensors = {"grad": parameter.grad, **tensors}
                named += [(f"{name}.{key}", value) for key, value in tensors.items() if torch.is_tensor(value)]
        return named

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        step = self._step
        if kwargs is None:
            kwargs = {}
        if step is None:
            return func(*args, **kwargs)
        if self._collectives is not None:
            return self._collectives.run(step, func, types, args, kwargs)
        return self.run(step, self.before(step, func, args, kwargs), func, args, kwargs)

    def before(self, step: Step, func: Any, args: tuple, kwargs: dict, shared: Any = None) -> Call | None:
        """Records an operator's arguments; `shared` is its collective, if any."""
        here = self._place.of_thread
        node = _current_node()
        if node is None:
            phase = "optimizer" if here.is_optimizing else "forward"
            source = self._line(_frame(2))
            return step.before(func, args, kwargs, phase, here.module, source, _next_sequence_nr(), None, shared)
        number = node._sequence_nr()
        # The forward operator's line is more informative than that of `backward()`.
        is_linked = self._native is not None and self._native.is_linked(number)
        source = "" if is_linked else self._line(_frame(2))
        named = (number, node.name())
        return step.before(func, args, kwargs, "backward", here.module, source, _next_sequence_nr(), named, shared)

    def run(
        self,
        step: Step,
        call: Call | None,
        func: Any,
        args: tuple,
        kwargs: dict,
        body: Callable[..., Any] | None = None,
        after: Callable[[Call, Any], None] | None = None,
    ) -> Any:
        """Runs an operator, or `body` in its place, and passes the result to `after`, or to the
        step."""
        body, after = body or func, after or step.after
        if call is None:
            return body(*args, **kwargs)
        if self._hooks.attached:
            return self._run_hooked(step, call, func, args, kwargs, (body, after))
        try:
            result = body(*args, **kwargs)
        except BaseException as error:
            step.failed(call, reason(error))
            raise
        after(call, result)
        return result

    def note_fault(self, text: str) -> None:
        """Records an error in the dump itself."""
        if self._native is not None:
            self._native.note_fault(text)

    def note_blank(self, storage: torch.UntypedStorage) -> None:
        """Reports that memory is new, with arbitrary contents."""
        if self._native is not None:
            self._native.note_blank(storage)

    def push(self) -> None:
        """Makes torch call the dump for operators inside the running one."""
        super().__enter__()

    def pop(self) -> None:
        """Ends `push`."""
        super().__exit__(None, None, None)

    def _run_hooked(self, step: Step, call: Call, func: Any, args: tuple, kwargs: dict, how: tuple) -> Any:
        """The same with hooks."""
        body, after = how
        seen = _seen(call, step.number, func, args, kwargs)
        self._hooks.before(seen)
        try:
            seen.result = body(*args, **kwargs)
        except BaseException as error:
            step.failed(call, reason(error))
            self._hooks.failed(seen, error)
            raise
        after(call, seen.result)
        self._hooks.after(seen)
        return seen.result


class _Choice:
    """A selection of operators by name, alias, kind or module."""

    def __init__(self, layers: Iterable[str]) -> None:
        self._layers = _names.Layers(layers)
        self._names: set[str] = set()
        self._modules: set[str] = set()

    def choose(self, names: list[str], module: str) -> bool:
        """Whether an operator with these names is listed."""
        self._names.update(names)
        self._modules.add(module)
        return self._layers.choose([names], [module])[0]

    def warn(self) -> None:
        """Warns of names that never matched."""
        for token, nearest in self._layers.unmatched([sorted(self._names)], sorted(self._modules)):
            hint = f"; similar names: {', '.join(nearest)}" if nearest else ""
            _dump.log.warning("no operator that ran, and no module, was called `%s`%s", token, hint)


def _seen(call: Call, step: int, func: Any, args: tuple, kwargs: dict) -> OperatorCall:
    return OperatorCall(
        func=func,
        args=args,
        kwargs=kwargs,
        op_type=call.op_type,
        op_name=call.op_name,
        task_id=call.task_id,
        step=step,
        phase=call.phase,
        module=call.module,
        source=call.source,
        seq_nr=call.seq_nr,
        inputs=call.inputs,
    )


def _no_line(_frame: Any) -> str:
    return ""


def eager(
    path: str | os.PathLike | Any = "./",
    *,
    steps: int | str | Iterable | None = None,
    layers: str | Iterable[str] = (),
    layout: str | None = None,
    trace: bool = True,
    hooks: Iterable[Hook] = (),
    **options: Any,
) -> EagerDump:
    """A context that dumps every operator below `path`, or according to a plan.

    `steps` and `layers` are as in `backend`, and so are other options: the remaining fields of
    `DumpPlan`, and those of `Config` about writing. `layout` is `steps`, with a directory for each,
    or `single`, that of operators without a model; an `acl.json` sets it itself. `trace=False`
    skips modules and source lines.
    """
    of_plan, of_config = ({field.name for field in fields(kind)} for kind in (DumpPlan, Config))
    of_config &= {"queue_bytes_max", "n_writers", "device_bytes_max", "when_behind"}
    if unknown := sorted(set(options) - of_plan - of_config):
        known = sorted({"path", "steps", "layers", "layout", "trace", "hooks"} | of_plan | of_config)
        raise ValueError(f"there is no option `{unknown[0]}`; there are {', '.join(known)}")
    config = Config(**{name: value for name, value in options.items() if name in of_config})
    if isinstance(path, (str, os.PathLike)):
        _options.names("layers", layers)
        plan: Any = DumpPlan(
            **{"form": "native"} | {name: value for name, value in options.items() if name in of_plan},
            path=os.fspath(path),
            steps=_plan.parse_numbers(steps, "steps"),
            layers=tuple(layers.split() if isinstance(layers, str) else layers),
        )
    elif steps is not None or layers or set(options) & of_plan:
        raise ValueError("with a plan, steps, layers and other options must be part of it")
    elif not hasattr(path, "acl_json"):
        raise TypeError(f"path: a path or a DumpPlan is expected, got {shown(path)} ({type(path).__name__})")
    else:
        plan = path
    _check(plan)
    return EagerDump(plan, config, hooks=hooks, layout=layout, is_traced=trace)


def _check(plan: Any) -> None:
    """Raises if a plan requests another kind of dump."""
    for name in ("watch", "exception", "mindspore_json"):
        if getattr(plan, name, None):
            raise NotImplementedError(
                f"opscope.torch.eager dumps values in the native form or AscendCL's: `{name}` is for `backend`; "
                "`watch` and `catch` are separate contexts"
            )
    text = _plan.acl_json_text(plan)
    purpose = None if text is None else acl_json_purpose(text)
    if purpose not in (None, "values"):
        raise NotImplementedError(
            f"the acl.json requests a dump of the kind `{purpose}`, which eager mode lacks; use opscope.torch.watch "
            "or opscope.torch.catch"
        )


class _Process:
    """Contexts that this process has started."""

    def leave_fork(self) -> None:
        """A fork has started none."""
        _open.clear()
        _elsewhere.leave_fork()


_process = _Process()
_fork.follow(_process)


def finish() -> list[dict]:
    """Finishes all started dumps; returns a summary of each."""
    with _lock:
        open_dumps = list(_open)
    return [dump.finish() for dump in open_dumps]
