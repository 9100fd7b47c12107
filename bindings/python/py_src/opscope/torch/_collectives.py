"""Collectives in eager mode: their results are recorded once the program has waited for them.

A collective is recorded twice: its inputs when it is issued, its outputs when the wait is over. The
dump itself never waits, asks another process, or takes part in a collective. The end of a wait is
detected in three ways: `Work.wait` of `torch.distributed`, which is replaced meanwhile;
`wait_tensor` of functional collectives, also where torch calls it because an operator reads the
result; and, where C++ waits as in `DistributedDataParallel`, by polling the collective at the next
operator.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch

from .._argument import reason
from .._fork_lock import ForkLock
from .._native.capture import Call, Step
from . import _collective_kinds as kinds

try:
    from torch._C._distributed_c10d import Work
    from torch.distributed._functional_collectives import AsyncCollectiveTensor, _is_view_op
except ImportError:  # Torch without processes.
    Work = AsyncCollectiveTensor = None

_n_modes = torch._C._len_torch_dispatch_stack
# Kinds that C++ waits for. Their backends write results to their final place without a wait.
_ASKED = ("all_reduce", "broadcast")
# Those of dumps that are within a step.
_open: list[Collectives] = []
_lock = ForkLock()
_work_wait: Any = None
_resize = torch.UntypedStorage.resize_


class _OfThread(threading.local):
    """The state of one thread."""

    def __init__(self) -> None:
        # Nesting depth in torch's own code of a collective or a distributed tensor, whose operators
        # are part of the recorded one.
        self.n_inside = 0
        # Number of collectives so far.
        self.n_issued = 0
        # Whether the next operator is the one already recorded.
        self.is_repeated = False


_here = _OfThread()


class Dump(Protocol):
    """Runs operators and records them."""

    def before(self, step: Step, func: Any, args: tuple, kwargs: dict, shared: Any = None) -> Call | None:
        """Records an operator's arguments."""

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
        """Runs it, and records its results."""

    def note_fault(self, text: str) -> None:
        """Records an error in the dump itself."""

    def note_blank(self, storage: torch.UntypedStorage) -> None:
        """Reports that memory is new, with arbitrary contents."""

    def push(self) -> None:
        """Makes torch call the dump for operators inside the running one."""

    def pop(self) -> None:
        """Ends that."""


class _Pending:
    """A collective that was issued but not awaited."""

    def __init__(self, step: Step, call: Call, kind: str, results: list[torch.Tensor], work: Any) -> None:
        self.step = step
        self.is_asked = work is not None and kind.startswith(_ASKED)
        self.call = call
        self.results = results
        # `None` for one that returns its results.
        self.work = work
        # Memory of results that have not been awaited.
        self.awaited = {_storage(tensor) for tensor in results}


class Collectives:
    """The collectives of one dump."""

    def __init__(self, dump: Dump) -> None:
        self._dump = dump
        self._pending: list[_Pending] = []

    def begin(self) -> None:
        """Starts observing waits."""
        global _work_wait
        if Work is None:
            return
        with _lock:
            if self not in _open:
                _open.append(self)
            if Work.wait is not _wait:
                _work_wait = Work.wait
                Work.wait = _wait
                torch.UntypedStorage.resize_ = _resize_seen  # type: ignore[method-assign]

    def end(self) -> None:
        """Stops observing waits. Collectives without a wait keep only their inputs."""
        self._guarded(self._look_at_works)
        pending, self._pending = self._pending, []
        for collective in pending:
            collective.step.unfinished(collective.call, len(collective.results))
        with _lock:
            if self in _open:
                _open.remove(self)
            if not _open and Work is not None and Work.wait is _wait:
                Work.wait = _work_wait
                torch.UntypedStorage.resize_ = _resize  # type: ignore[method-assign]

    def leave_fork(self) -> None:
        """In a fork nothing is pending."""
        self._pending.clear()

    def run(self, step: Step, func: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        """Runs an operator of a distributed program."""
        if _here.is_repeated:
            # Torch continues with the operators of the distributed tensor.
            _here.is_repeated = False
            return NotImplemented
        if self._pending:
            self._guarded(self._look_at_works)
        is_distributed = self._wait_for(func, args, kwargs) if types else False
        if kinds.form_of(func) is not None:
            return self._issue(step, func, args, kwargs)
        if kinds.is_wait(func):
            return self._wait_in_sight(step, func, args, kwargs)
        if _here.n_inside:
            return func(*args, **kwargs)
        call = self._dump.before(step, func, args, kwargs)
        # Other modes would not be called if the operator ran a second time.
        if not is_distributed or _n_modes() > 0:
            return self._dump.run(step, call, func, args, kwargs)
        n_before = _here.n_issued

        def after(call: Call, result: Any) -> None:
            if _here.n_issued != n_before:
                step.renumber(call)
            step.after(call, result)

        return self._dump.run(step, call, func, args, kwargs, functools.partial(self._run_inside, func), after)

    def _run_inside(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs an operator of distributed tensors, and observes the collectives that it needs."""
        _here.n_inside += 1
        self._dump.push()
        _here.is_repeated = True
        try:
            return func(*args, **kwargs)
        finally:
            _here.is_repeated = False
            self._dump.pop()
            _here.n_inside -= 1

    def _issue(self, step: Step, func: Any, args: tuple, kwargs: dict) -> Any:
        _here.n_issued += 1
        shared = self._guarded(lambda: kinds.describe(func, args, kwargs))
        call = self._dump.before(step, func, args, kwargs, shared)
        if shared is None:
            return self._dump.run(step, call, func, args, kwargs)

        def after(call: Call, result: Any) -> None:
            self._guarded(lambda: self._issued(step, shared, call, result))

        return self._dump.run(step, call, func, args, kwargs, after=after)

    def _issued(self, step: Step, shared: kinds.Collective, call: Call, result: Any) -> None:
        work = None
        if shared.is_returning:
            results = kinds.tensors(result)
        else:
            results = shared.outputs if shared.is_taker else []
            boxed = result[-1] if isinstance(result, (tuple, list)) else result
            work = Work.unbox(boxed) if isinstance(boxed, torch.ScriptObject) else None
        step.issued(call, results)
        if results:
            self._pending.append(_Pending(step, call, shared.kind, results, work))
        else:
            # A collective without outputs need not be awaited.
            step.after(call, [])

    def _wait_in_sight(self, step: Step, func: Any, args: tuple, kwargs: dict) -> Any:
        result = func(*args, **kwargs)
        is_known = self._guarded(lambda: self._see_awaited(kinds.tensors(args)))
        if not is_known and not _here.n_inside:
            # Its start was not observed; the wait has the result.
            call = self._dump.before(step, func, args, kwargs)
            if call is not None:
                step.after(call, result)
        return result

    def _wait_for(self, func: Any, args: tuple, kwargs: dict) -> bool:
        """Waits for results that an operator is about to read, as torch does inside it. Returns
        whether any tensor is distributed.
        """
        is_distributed = False
        for tensor in _subclasses((args, tuple(kwargs.values()))):
            part = tensor
            if type(tensor).__name__ == "DTensor":
                is_distributed = True
                part = tensor._local_tensor
            # Views do not wait.
            if AsyncCollectiveTensor is not None and type(part) is AsyncCollectiveTensor and not _is_view_op(func):
                part.trigger_wait()
                self._guarded(functools.partial(self._see_awaited, [part.elem]))
        return is_distributed

    def _see_awaited(self, results: list[torch.Tensor]) -> bool:
        storages = {_storage(tensor) for tensor in results}
        is_known = False
        for collective in list(self._pending):
            if collective.work is None and collective.awaited & storages:
                is_known = True
                collective.awaited -= storages
                if not collective.awaited:
                    self._complete(collective)
        return is_known

    def _look_at_works(self) -> None:
        for collective in list(self._pending):
            if collective.is_asked and _is_done(collective):
                self._complete(collective)

    def see_resized(self, storage: torch.UntypedStorage) -> None:
        """Reports that memory was resized."""
        self._guarded(lambda: self._dump.note_blank(storage))

    def see_waited(self, work: Any, error: BaseException | None) -> None:
        """Reports that the program has waited for a collective."""
        self._guarded(lambda: self._see_waited(work, error))

    def _guarded(self, work: Callable[[], Any]) -> Any:
        """Errors of the dump do not stop the program."""
        try:
            return work()
        except Exception as error:
            self._dump.note_fault(reason(error))
            return None

    def _see_waited(self, work: Any, error: BaseException | None) -> None:
        for collective in list(self._pending):
            if collective.work is not work:
                continue
            if error is None:
                self._complete(collective)
            else:
                self._pending.remove(collective)
                collective.step.failed(collective.call, reason(error))

    def _complete(self, collective: _Pending) -> None:
        self._pending.remove(collective)
        results = collective.results
        collective.step.after(collective.call, results[0] if len(results) == 1 else results)


def _wait(work: Any, *args: Any, **kwargs: Any) -> Any:
    """`Work.wait`. Operators inside it, such as gloo's, belong to the collective."""
    _here.n_inside += 1
    try:
        result = _work_wait(work, *args, **kwargs)
    except BaseException as error:
        for collectives in list(_open):
            collectives.see_waited(work, error)
        raise
    finally:
        _here.n_inside -= 1
    for collectives in list(_open):
        collectives.see_waited(work, None)
    return result


def _is_done(collective: _Pending) -> bool:
    """Whether a collective has completed successfully."""
    try:
        future = collective.work.get_future()
        # On the CPU a work completes after its future; on a device the future completes too early.
        is_on_cpu = all(tensor.device.type == "cpu" for tensor in collective.results)
        if not future.done() or not (is_on_cpu or collective.work.is_completed()):
            return False
        # Raises its error, if any.
        future.value()
    except Exception:
        return False
    return True


def _resize_seen(storage: torch.UntypedStorage, size: int) -> Any:
    """`UntypedStorage.resize_`, with which `fully_shard` frees and re-allocates parameters."""
    n_before = storage.nbytes()
    result = _resize(storage, size)
    if storage.nbytes() > n_before:
        for collectives in list(_open):
            collectives.see_resized(storage)
    return result


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _subclasses(given: Any) -> Iterator[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        if type(given) not in (torch.Tensor, torch.nn.Parameter):
            yield given
    elif isinstance(given, (tuple, list)):
        for part in given:
            yield from _subclasses(part)
