"""Values of devices on their way to the host: computed statistics, or copies.

The core requests a value just after the operator that produced it, or just before the one that
reads it. The work is enqueued on the program's stream, so that nothing can overwrite the value
first, and sent to the host on a separate stream. Nothing blocks: the core polls for arrived values.
"""

from __future__ import annotations

import weakref
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from ... import _visible
from ..._fork_lock import ForkLock
from .adapter import Adapter, adapter_of
from .pinned import Lease, PinnedPool
from .rows import N_WORDS

_log = _visible.logger()

N_ROWS = 256
"""Rows sent to the host together."""
SMALL_BYTES_MAX = 64 << 10
N_SMALL_MAX = 64
"""Maximum bytes of small tensors, which are processed in groups if nothing writes to them; and the
group size."""
BYTES_MAX = 256 << 20
"""Default limit of bytes of copies that are in flight or held by writers."""

# Errors after which a device is unusable. Before torch 2.8 they had no specific type.
_DEVICE_ERRORS = (torch.AcceleratorError,) if hasattr(torch, "AcceleratorError") else ()

# An arrival: `rows`, `copy` or `lost`; tickets; the host tensor; the lease of its memory; whether
# memory is scarce.
Completion = tuple[str, list[int], "torch.Tensor | None", "Lease | None", bool]


@dataclass
class _Batch:
    """Rows being filled on one stream."""

    adapter: Adapter
    device: torch.device
    stream: Any
    rows: torch.Tensor
    tickets: list[int]
    # Whether it processes small tensors in groups; the pending tensors.
    is_small: bool
    small: list[torch.Tensor]
    small_tickets: list[int]


@dataclass
class _Flight:
    """A transfer to the host."""

    kind: str
    tickets: list[int]
    host: torch.Tensor
    lease: Lease
    event: Any
    adapter: Adapter
    # Rows to reuse after arrival.
    rows: torch.Tensor | None = None


class Kept:
    """A tensor that is no longer written to."""

    __slots__ = ("tensor", "__weakref__")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


class DeviceQueue:
    """The device values of one dump."""

    def __init__(self, bytes_max: int | None = None, when_behind: str = "wait") -> None:
        self._bytes_max = BYTES_MAX if bytes_max is None else bytes_max
        self._drops = when_behind == "drop"
        # Several threads run operators; a signal handler may interrupt any of them here.
        self._lock = ForkLock(is_reentrant=True)
        self._last_ticket = 0
        self._adapters: dict[str, Adapter | None] = {}
        self._streams: dict[torch.device, Any] = {}
        # Tensors that may be requested again, by weak reference, and their total bytes.
        self._kept: dict[int, tuple[weakref.ref[Kept], int]] = {}
        self._kept_no_more: list[weakref.ref[Kept]] = []
        self._n_kept_bytes = 0
        # By device; `None` if statistics are not computed there.
        self._reducers: dict[torch.device, Any] = {}
        self._batches: dict[Any, _Batch] = {}
        self._free_rows: dict[torch.device, list[torch.Tensor]] = {}
        self._flights: deque[_Flight] = deque()
        self._landed: list[Completion] = []
        self._pool: PinnedPool | None = None
        self._is_lost = False

    def take(self, tensor: torch.Tensor, is_reducing: bool, is_held: bool) -> int | str | None:
        """Requests the statistics of a tensor, or a copy.

        Returns a ticket, positive for statistics and negative for a copy; 0 if there is no room
        until something arrives; a reason why the tensor cannot be observed; `None` if torch must
        copy it. `is_held` says that nothing writes to the tensor while it is referenced.
        """
        adapter = self._adapter(tensor.device.type)
        if adapter is None or not _is_plain(tensor):
            return None
        if adapter.is_capturing():
            return "recorded for a CUDA graph"
        if self._is_lost:
            return "lost with its device"
        with self._lock, _undisturbed():
            try:
                tensor = tensor.detach().resolve_conj().resolve_neg()
                if is_reducing and (ticket := self._reduce(adapter, tensor, is_held)):
                    return ticket
                return self._copy(adapter, tensor, is_held)
            except torch.OutOfMemoryError:
                # The program needs the memory more than its dump.
                self._release()
                return "no memory on the device"
            except _DEVICE_ERRORS as error:
                return self._lose(error)
            except (RuntimeError, NotImplementedError):
                # Some torch operator does not support this form.
                return None

    def take_flag(self, tensor: torch.Tensor, is_held: bool) -> int | str | None | tuple[int, Kept]:
        """Like `take` for statistics, with an object to request the elements later; a copy if there
        is no room."""
        with self._lock, _undisturbed():
            while self._kept_no_more:
                self._n_kept_bytes -= self._kept.pop(id(self._kept_no_more.pop()))[1]
            is_full = self._n_kept_bytes + tensor.nbytes > self._bytes_max
            if is_full:
                # Processing flags soon releases their tensors.
                self._send_all()
            ticket = self.take(tensor, not is_full, is_held)
            if is_full or not isinstance(ticket, int) or ticket <= 0:
                return ticket
            try:
                found = Kept(tensor.detach() if is_held else _copy_on_device(tensor))
            except torch.OutOfMemoryError:
                # The statistics will not be needed.
                return self.take(tensor, False, is_held)
            ended = weakref.ref(found, self._kept_no_more.append)
            self._kept[id(ended)] = ended, tensor.nbytes
            self._n_kept_bytes += tensor.nbytes
            return ticket, found

    def fetch(self, kept: Kept) -> int | str | None:
        """Requests the elements of a kept tensor; returns the same as `take`."""
        return self.take(kept.tensor, False, True)

    def poll(self) -> list[Completion]:
        """Returns the arrivals without waiting."""
        with self._lock, _undisturbed():
            if self._is_recording:
                return []
            self._land(is_waiting=False)
            return self._take_landed()

    def wait(self) -> list[Completion]:
        """Waits for the oldest value, and returns the arrivals."""
        with self._lock, _undisturbed():
            if self._is_recording:
                return []
            if not self._flights:
                self._send_all()
            if self._flights:
                self._wait_for(self._flights[0])
            self._land(is_waiting=False)
            return self._take_landed()

    def finish(self) -> list[Completion]:
        """Waits for everything, and returns it."""
        with self._lock, _undisturbed():
            self._send_all()
            self._land(is_waiting=True)
            return self._take_landed()

    def flush(self) -> None:
        """Sends everything computed so far, as at the end of a step."""
        with self._lock, _undisturbed():
            if not self._is_recording:
                self._send_all()

    @property
    def _is_recording(self) -> bool:
        """Whether the program records a graph, during which events cannot be queried or awaited."""
        return any(adapter is not None and adapter.is_capturing() for adapter in self._adapters.values())

    def close(self) -> None:
        """Releases all memory."""
        with self._lock:
            self._batches.clear()
            self._flights.clear()
            self._release()
            self._reducers.clear()
            self._streams.clear()
            self._pool = None

    def _adapter(self, kind: str) -> Adapter | None:
        if kind not in self._adapters:
            self._adapters[kind] = adapter_of(kind)
        return self._adapters[kind]

    def _reducer(self, tensor: torch.Tensor) -> Any:
        """The reducer for a tensor; `None` if there is none."""
        # The kernels are slow to load, and most programs have no device.
        from . import reducer

        device = tensor.device
        if device not in self._reducers:
            self._reducers[device] = reducer.Reducer(device)
        found = self._reducers[device]
        return found if found is not None and reducer.supports(tensor) else None

    def _reduce(self, adapter: Adapter, tensor: torch.Tensor, is_held: bool) -> int | None:
        device = tensor.device
        try:
            if (reducer := self._reducer(tensor)) is None:
                return None
            is_small = is_held and tensor.nbytes <= SMALL_BYTES_MAX
            batch = self._batch(adapter, device, is_small)
            if is_small:
                batch.small.append(tensor)
                batch.small_tickets.append(ticket := self._next())
            else:
                n = len(batch.tickets)
                reducer.reduce([tensor], batch.rows[n : n + 1])
                batch.tickets.append(ticket := self._next())
        except (torch.OutOfMemoryError, *_DEVICE_ERRORS):
            raise
        except Exception as error:  # noqa: BLE001
            # From now on statistics are computed on the host.
            self._give_up(device, error)
            return None
        n_small = len(batch.small)
        if n_small >= N_SMALL_MAX or len(batch.tickets) + n_small >= N_ROWS:
            self._reduce_small(batch)
        if len(batch.tickets) >= N_ROWS:
            self._send(batch)
        return ticket

    def _reduce_small(self, batch: _Batch) -> None:
        tensors, tickets = batch.small, batch.small_tickets
        batch.small, batch.small_tickets = [], []
        if not tensors:
            return
        n = len(batch.tickets)
        try:
            reducer = self._reducers.get(batch.device)
            if reducer is None:
                raise RuntimeError("numbers are not computed on this device any more")
            with batch.adapter.on(batch.stream):
                reducer.reduce(tensors, batch.rows[n : n + len(tensors)])
            batch.tickets.extend(tickets)
        except Exception as error:  # noqa: BLE001
            self._give_up(batch.device, error)
            # Nothing has written to them, so the host can still process them.
            for tensor, ticket in zip(tensors, tickets):
                self._send_copy(batch.adapter, tensor, ticket, is_held=True)

    def _give_up(self, device: torch.device, error: Exception) -> None:
        if self._reducers.get(device, error) is not None:
            self._reducers[device] = None
            _log.warning("statistics are now computed on the host because the kernel for %s failed: %s", device, error)

    def _batch(self, adapter: Adapter, device: torch.device, is_small: bool) -> _Batch:
        stream = adapter.current_stream(device)
        key = (device, stream, is_small)
        if key not in self._batches:
            free = self._free_rows.get(device)
            rows = free.pop() if free else self._new_rows(device)
            self._batches[key] = _Batch(adapter, device, stream, rows, [], is_small, [], [])
        return self._batches[key]

    @staticmethod
    def _new_rows(device: torch.device) -> torch.Tensor:
        return torch.empty(N_ROWS, N_WORDS, dtype=torch.int64, device=device)

    def _send_all(self) -> None:
        for batch in list(self._batches.values()):
            try:
                self._send(batch)
            except RuntimeError as error:
                self._lose(error)
                return

    def _send(self, batch: _Batch) -> None:
        """Sends rows to the host."""
        self._reduce_small(batch)
        del self._batches[batch.device, batch.stream, batch.is_small]
        n = len(batch.tickets)
        if n == 0:
            self._free_rows.setdefault(batch.device, []).append(batch.rows)
            return
        adapter = batch.adapter
        lease = self._pinned(adapter).lend(n * N_WORDS * 8)
        host = lease.block[: n * N_WORDS * 8].view(torch.int64).view(n, N_WORDS)
        event = self._beside(adapter, batch.device, batch.stream, host, batch.rows[:n])
        self._flights.append(_Flight("rows", batch.tickets, host, lease, event, adapter, batch.rows))

    def _beside(
        self, adapter: Adapter, device: torch.device, stream: Any, host: torch.Tensor, source: torch.Tensor
    ) -> Any:
        """Copies the stream's results so far to the host, concurrently; returns an event after the
        copy."""
        if device not in self._streams:
            self._streams[device] = adapter.new_stream(device)
        side = self._streams[device]
        adapter.follow(side, adapter.record(stream))
        with adapter.on(side):
            adapter.copy(host, source)
        return adapter.record(side)

    def _copy(self, adapter: Adapter, tensor: torch.Tensor, is_held: bool) -> int | str:
        pool = self._pinned(adapter)
        if not pool.has_room(tensor.nbytes):
            if self._drops:
                return "no room for copies from a device"
            if self._flights:
                return 0
        ticket = self._next()
        self._send_copy(adapter, tensor, ticket, is_held)
        return -ticket

    def _send_copy(self, adapter: Adapter, tensor: torch.Tensor, ticket: int, is_held: bool) -> None:
        lease = self._pinned(adapter).lend(tensor.nbytes)
        host = lease.block[: tensor.nbytes].view(tensor.dtype).view(tensor.shape)
        stream = adapter.current_stream(tensor.device)
        try:
            # The program may write to it as soon as this returns, so it is first copied on the
            # device.
            is_in_place = is_held and tensor.is_contiguous()
            source = tensor if is_in_place else _copy_on_device(tensor)
        except torch.OutOfMemoryError:
            self._release()
            # The program's own stream does the copy, and its next operator waits.
            adapter.copy(host, tensor)
            event = adapter.record(stream)
        else:
            event = self._beside(adapter, tensor.device, stream, host, source)
            adapter.keep(source, self._streams[tensor.device])
        self._flights.append(_Flight("copy", [ticket], host, lease, event, adapter))

    def _pinned(self, adapter: Adapter) -> PinnedPool:
        if self._pool is None:
            self._pool = PinnedPool(self._bytes_max, adapter.host_memory)
        return self._pool

    def _next(self) -> int:
        self._last_ticket += 1
        return self._last_ticket

    def _land(self, *, is_waiting: bool) -> None:
        """Collects arrivals; optionally waits for each."""
        while self._flights:
            flight = self._flights[0]
            try:
                if is_waiting:
                    flight.adapter.wait(flight.event)
                elif not flight.adapter.has_passed(flight.event):
                    return
            except RuntimeError as error:
                self._lose(error)
                return
            self._flights.popleft()
            if flight.rows is not None:
                self._free_rows.setdefault(flight.rows.device, []).append(flight.rows)
            is_scarce = flight.kind == "copy" and self._pool is not None and self._pool.is_scarce
            self._landed.append((flight.kind, flight.tickets, flight.host, flight.lease, is_scarce))

    def _wait_for(self, flight: _Flight) -> None:
        try:
            flight.adapter.wait(flight.event)
        except RuntimeError as error:
            self._lose(error)

    def _take_landed(self) -> list[Completion]:
        landed, self._landed = self._landed, []
        return landed

    def _release(self) -> None:
        """Releases unused memory."""
        self._free_rows.clear()
        if self._pool is not None:
            self._pool.release()

    def _lose(self, error: Exception) -> str:
        """Gives up a failed device: its values in flight are lost."""
        if not self._is_lost:
            self._is_lost = True
            _log.warning("a device failed, and its values in flight are lost: %s", error)
        tickets = [ticket for flight in self._flights for ticket in flight.tickets]
        for batch in self._batches.values():
            tickets += batch.tickets + batch.small_tickets
        self._flights.clear()
        self._batches.clear()
        if tickets:
            self._landed.append(("lost", tickets, None, None, False))
        return "lost with its device"


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested


def _copy_on_device(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)


def _undisturbed() -> ExitStack:
    """Runs operators unobserved: hidden from modes, without gradients, in their own dtypes."""
    stack = ExitStack()
    stack.enter_context(torch._C._DisableTorchDispatch())
    stack.enter_context(torch._C._DisableAutocast())
    # Memory allocated in inference mode could not be written to outside it.
    stack.enter_context(torch.inference_mode(False))
    stack.enter_context(torch.no_grad())
    return stack
