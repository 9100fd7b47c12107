"""The inputs and outputs of every operator, by a mode of torch's dispatcher that clones all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from models import bits
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

# Shape and bytes; `None` for what has none that could be compared.
Seen = tuple[tuple[int, ...], bytes]
_WITHOUT_COUNTERPART = (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)


@dataclass
class Execution:
    """One execution of one operator."""

    target: str
    inputs: list[Seen | None]
    outputs: list[Seen | None] = field(default_factory=list)
    # Tensors that the operator wrote to but did not return.
    changed: list[Seen | None] = field(default_factory=list)


def tensors(value: Any) -> Iterator[Tensor]:
    """Tensors in a value, lists spread out."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)


def seen(tensor: Tensor) -> Seen | None:
    """The elements as they are now."""
    is_plain = type(tensor) in (Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    if not is_plain or tensor.device.type != "cpu" or tensor.is_quantized or tensor.dtype in _WITHOUT_COUNTERPART:
        return None
    return tuple(tensor.shape), bits(tensor)


class Recorder(TorchDispatchMode):
    """Remembers everything, for each step in order."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[list[Execution]] = [[]]

    def step(self) -> None:
        """Says that a step is over."""
        self.steps.append([])

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        read = list(tensors((args, kwargs)))
        execution = Execution(str(func), [seen(tensor) for tensor in read])
        versions = [bits(tensor) if seen(tensor) else None for tensor in read]
        result = func(*args, **kwargs)
        given = list(tensors(result))
        # A tensor whose elements differ now was written to, whatever the schema says.
        changed = [
            tensor
            for tensor, before in zip(read, versions)
            if before is not None and bits(tensor) != before and all(tensor is not known for known in given)
        ]
        if read or given:
            execution.outputs = [seen(tensor) for tensor in given]
            execution.changed = [seen(tensor) for tensor in changed]
            self.steps[-1].append(execution)
        return result
