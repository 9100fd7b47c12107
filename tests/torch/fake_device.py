"""A device without hardware: tensors of the CPU count as its own, and what is enqueued runs late.

Operators of the program run at once, as the CPU runs them. What the dump enqueues runs as late as the device allows: a
copy in parallel with the program only when its event is queried, after everything that the program has written
meanwhile. What a real device would then find in memory is what the copy finds here, but for memory that was given back,
which is filled with garbage first. Waiting inside a step is an error, unless the test allows it.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import opscope.torch
import torch
from opscope.torch._device import adapter, queue

POISON = 0xA5


class WaitedError(AssertionError):
    """Something waited for the device inside of a step."""


class Stream:
    """Work in order."""

    def __init__(self, name: str, device: FakeDevice) -> None:
        self.name = name
        self.device = device
        self.work: deque[Callable[[], None]] = deque()
        self.n_done = 0

    def add(self, work: Callable[[], None]) -> None:
        self.work.append(work)

    def run(self, n_until: int) -> None:
        """Does all work up to that which was the `n_until`th to be enqueued."""
        while self.n_done < n_until and self.work:
            self.n_done += 1
            self.work.popleft()()

    @property
    def n_enqueued(self) -> int:
        return self.n_done + len(self.work)


class Event:
    """A place in a stream's work."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.position = stream.n_enqueued

    def complete(self) -> None:
        self.stream.run(self.position)

    @property
    def is_complete(self) -> bool:
        return self.stream.n_done >= self.position


class FakeDevice:
    """An adapter that claims tensors of the CPU. `passes` says how many questions for an event it takes to pass it."""

    def __init__(self, passes: Callable[[], int] = lambda: 3) -> None:
        self.main = Stream("main", self)
        self.sides: list[Stream] = []
        self.current = self.main
        self.may_wait = False
        self.is_in_step = False
        self.records_graph = False
        self.n_waits = 0
        self.n_copies = 0
        self.n_kept = 0
        self.fault: Exception | None = None
        self._passes = passes
        self._asked: weakref.WeakKeyDictionary[Event, int] = weakref.WeakKeyDictionary()

    def is_capturing(self) -> bool:
        return self.records_graph

    def current_stream(self, device: torch.device) -> Stream:
        return self.current

    def new_stream(self, device: torch.device) -> Stream:
        self._refuse_while_recording()
        self.sides.append(Stream(f"side {len(self.sides)}", self))
        return self.sides[-1]

    def record(self, stream: Stream) -> Event:
        return Event(stream)

    def follow(self, stream: Stream, event: Event) -> None:
        stream.add(event.complete)

    def has_passed(self, event: Event) -> bool:
        self._refuse_while_recording()
        if self.fault is not None:
            raise self.fault
        n = self._asked[event] = self._asked.get(event, 0) + 1
        if n >= self._passes():
            event.complete()
        return event.is_complete

    def wait(self, event: Event) -> None:
        self._refuse_while_recording()
        if self.fault is not None:
            raise self.fault
        if self.is_in_step and not self.may_wait:
            raise WaitedError("the dump waits for the device inside of a step")
        self.n_waits += 1
        event.complete()

    def _refuse_while_recording(self) -> None:
        """CUDA ends the recording of a graph where a program calls these meanwhile."""
        if self.records_graph:
            raise WaitedError("the dump asks the device for something while a graph is recorded")

    @contextlib.contextmanager
    def on(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def host_memory(self, n_bytes: int) -> torch.Tensor:
        self._refuse_while_recording()
        # A reader before the copy has run finds no zeros.
        return torch.full((n_bytes,), POISON, dtype=torch.uint8)

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        self.n_copies += 1
        as_bytes(to).fill_(POISON)
        if self.current is self.main:
            # As the operators of the program do, it runs in its place.
            to.copy_(source)
            return
        alive = Borrowed(source)
        self.current.add(lambda: self._copy_late(to, alive))

    def keep(self, tensor: torch.Tensor, stream: Stream) -> None:
        """As `record_stream` does: the memory is not reused before the stream reaches this point."""
        self.n_kept += 1
        stream.add(lambda kept=tensor: None)

    def _copy_late(self, to: torch.Tensor, source: Borrowed) -> None:
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            if (tensor := source.tensor()) is None:
                # The memory was not kept, so a later tensor may have reused it.
                as_bytes(to).fill_(POISON)
            else:
                to.copy_(tensor)


class Borrowed:
    """Memory that is not kept by whoever looks at it later: only a view that dies with its storage's other owners."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._storage = tensor.untyped_storage()._weak_ref()
        self._form = (tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset())

    def tensor(self) -> torch.Tensor | None:
        if torch.UntypedStorage._expired(self._storage):
            return None
        storage = torch.UntypedStorage._new_with_weak_ptr(self._storage)
        if storage is None:
            return None
        dtype, size, stride, offset = self._form
        return torch.empty(0, dtype=dtype).set_(storage, offset, size, stride)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(-1).view(torch.uint8) if tensor.numel() else tensor.view(-1)


@contextlib.contextmanager
def installed(device: FakeDevice, forms: Any = None) -> Iterator[FakeDevice]:
    """Claims the CPU for a device. Tensors that its queue does not take are copied by torch, as those of others."""
    from opscope.torch import _forms

    def parts(tensor: torch.Tensor, reason: str) -> Any:
        if reason == "device" and _forms.is_plain(tensor):
            return _forms._copied(tensor)
        return before(tensor, reason)

    before = _forms.parts
    _forms.parts = parts
    adapter.stand_in("cpu", device)
    try:
        yield device
    finally:
        adapter.stand_in("cpu", None)
        _forms.parts = before


@contextlib.contextmanager
def step(device: FakeDevice) -> Iterator[None]:
    """Code in which the dump must not wait."""
    device.is_in_step = True
    try:
        yield
    finally:
        device.is_in_step = False


__all__ = ["POISON", "Event", "FakeDevice", "Stream", "WaitedError", "installed", "opscope", "queue", "step"]
