"""Streams, events and memory of devices behind a common interface."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch


class Adapter(Protocol):
    """The interface of one kind of device. Only `wait` blocks."""

    def is_capturing(self) -> bool:
        """Whether operators of the current stream are recorded and not run, as for a CUDA graph."""

    def current_stream(self, device: torch.device) -> Any:
        """The current stream of this thread; equal for the same stream."""

    def new_stream(self, device: torch.device) -> Any:
        """A new stream, separate from the program's."""

    def record(self, stream: Any) -> Any:
        """An event after all work queued on a stream."""

    def follow(self, stream: Any, event: Any) -> None:
        """Makes a stream wait for an event."""

    def has_passed(self, event: Any) -> bool:
        """Whether all work before an event is done."""

    def wait(self, event: Any) -> None:
        """Waits for an event."""

    def on(self, stream: Any) -> AbstractContextManager:
        """Makes this thread's operators run on a stream."""

    def host_memory(self, n_bytes: int) -> torch.Tensor:
        """Host memory that the device can write to directly."""

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        """Enqueues a copy on the current stream."""

    def keep(self, tensor: torch.Tensor, stream: Any) -> None:
        """Keeps a tensor's memory allocated until a stream's current work is done."""


class AcceleratorAdapter:
    """A device whose module has streams and events like `torch.cuda`."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._module = torch.get_device_module(kind)
        # Other kinds do not record graphs, or have no such function.
        self._is_capturing = getattr(self._module, "is_current_stream_capturing", lambda: False)

    @staticmethod
    def fits(kind: str) -> bool:
        """Whether a device's module has the required functions."""
        try:
            module = torch.get_device_module(kind)
        except (RuntimeError, AttributeError):
            return False
        return all(hasattr(module, name) for name in ("Stream", "Event", "current_stream", "stream"))

    def is_capturing(self) -> bool:
        return self._is_capturing()

    def current_stream(self, device: torch.device) -> Any:
        return self._module.current_stream(device)

    def new_stream(self, device: torch.device) -> Any:
        return self._module.Stream(device)

    def record(self, stream: Any) -> Any:
        event = self._module.Event()
        event.record(stream)
        return event

    def follow(self, stream: Any, event: Any) -> None:
        stream.wait_event(event)

    def has_passed(self, event: Any) -> bool:
        return event.query()

    def wait(self, event: Any) -> None:
        event.synchronize()

    def on(self, stream: Any) -> AbstractContextManager:
        return self._module.stream(stream)

    def host_memory(self, n_bytes: int) -> torch.Tensor:
        try:
            return torch.empty(n_bytes, dtype=torch.uint8, device="cpu", pin_memory=True)
        except RuntimeError:
            # Without pinned memory the copy is also correct, but slower.
            return torch.empty(n_bytes, dtype=torch.uint8, device="cpu")

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        to.copy_(source, non_blocking=True)

    def keep(self, tensor: torch.Tensor, stream: Any) -> None:
        tensor.record_stream(stream)


# Adapters that replace those of devices, by kind; for tests without a device.
_stand_ins: dict[str, Adapter] = {}


def adapter_of(kind: str) -> Adapter | None:
    """The adapter of a kind of device; `None` if unsupported."""
    if kind in _stand_ins:
        return _stand_ins[kind]
    return AcceleratorAdapter(kind) if AcceleratorAdapter.fits(kind) else None


def stand_in(kind: str, adapter: Adapter | None) -> None:
    """Replaces the adapter of a kind of device; `None` restores it."""
    if adapter is None:
        _stand_ins.pop(kind, None)
    else:
        _stand_ins[kind] = adapter


def is_host_claimed() -> bool:
    """Whether CPU tensors are treated as those of a device."""
    return "cpu" in _stand_ins


def is_capturing(kind: str) -> bool:
    """Whether a graph is being recorded, so that nothing may be copied to the host."""
    if kind in _stand_ins:
        return _stand_ins[kind].is_capturing()
    if kind == "cuda" and torch.cuda.is_available():
        return torch.cuda.is_current_stream_capturing()
    return False
