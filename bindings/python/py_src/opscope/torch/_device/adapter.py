"""Streams, events and memory of devices, so that everything else here is the same for all of them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch


class Adapter(Protocol):
    """All that has to be known of one kind of device. Nothing here waits but `wait`."""

    def is_capturing(self) -> bool:
        """Whether operators of the current stream are recorded and do not run, as under a CUDA graph."""

    def current_stream(self, device: torch.device) -> Any:
        """The stream that operators of this thread run on; equal for the same stream."""

    def new_stream(self, device: torch.device) -> Any:
        """A stream beside the program's."""

    def record(self, stream: Any) -> Any:
        """An event behind all that a stream has to do so far."""

    def follow(self, stream: Any, event: Any) -> None:
        """Lets a stream go on only behind an event."""

    def has_passed(self, event: Any) -> bool:
        """Whether all before an event is done."""

    def wait(self, event: Any) -> None:
        """Waits for an event."""

    def on(self, stream: Any) -> AbstractContextManager:
        """Lets operators of this thread run on a stream."""

    def host_memory(self, n_bytes: int) -> torch.Tensor:
        """Bytes of the host that the device writes to without help."""

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        """Enqueues a copy on the current stream."""

    def keep(self, tensor: torch.Tensor, stream: Any) -> None:
        """Keeps the memory of a tensor from others until a stream has done what it has to do now."""


class AcceleratorAdapter:
    """A kind of device whose module has streams and events as `torch.cuda` has."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._module = torch.get_device_module(kind)
        # Other kinds record no graphs, or have no name for it.
        self._is_capturing = getattr(self._module, "is_current_stream_capturing", lambda: False)

    @staticmethod
    def fits(kind: str) -> bool:
        """Whether the module of a kind of device has what it takes."""
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
            # The copy is as right without, and slower.
            return torch.empty(n_bytes, dtype=torch.uint8, device="cpu")

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        to.copy_(source, non_blocking=True)

    def keep(self, tensor: torch.Tensor, stream: Any) -> None:
        tensor.record_stream(stream)


# Adapters that take the place of those of the devices, by kind; for tests without a device.
_stand_ins: dict[str, Adapter] = {}


def adapter_of(kind: str) -> Adapter | None:
    """The adapter of a kind of device; `None` if there is none."""
    if kind in _stand_ins:
        return _stand_ins[kind]
    return AcceleratorAdapter(kind) if AcceleratorAdapter.fits(kind) else None


def stand_in(kind: str, adapter: Adapter | None) -> None:
    """Lets an adapter take the place of that of a kind of device; `None` gives it back."""
    if adapter is None:
        _stand_ins.pop(kind, None)
    else:
        _stand_ins[kind] = adapter


def is_host_claimed() -> bool:
    """Whether tensors of the CPU count as those of a device."""
    return "cpu" in _stand_ins


def is_capturing(kind: str) -> bool:
    """Whether operators of a kind of device are recorded now, so that nothing may be copied to the host."""
    if kind in _stand_ins:
        return _stand_ins[kind].is_capturing()
    if kind == "cuda" and torch.cuda.is_available():
        return torch.cuda.is_current_stream_capturing()
    return False
