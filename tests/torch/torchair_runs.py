"""Models for the tests of `opscope.torchair`, and configurations given as names and values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from opscope.torchair import CompilerConfig, get_npu_backend


class Classifier(torch.nn.Module):
    """A linear layer, something with two results, and a list of tensors as an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x).relu()
        values, _ = y.max(1)
        return torch.cat([y, values.unsqueeze(1)], 1).sum(1) + 1.5


def configured(**options: Any) -> CompilerConfig:
    """A configuration; `debug__data_dump__type="npy"` is an option two nodes below it."""
    config = CompilerConfig()
    for name, value in options.items():
        *path, last = name.split("__")
        node: Any = config
        for part in path:
            node = getattr(node, part)
        setattr(node, last, value)
    return config


@contextlib.contextmanager
def compiled(model: Any, config: CompilerConfig, **how: Any) -> Iterator[Any]:
    """A compiled model, whose dumps are finished at the end; its reports are its attribute `reports`."""
    torch._dynamo.reset()
    backend = get_npu_backend(compiler_config=config)
    found = torch.compile(model, backend=backend, **how)

    def call(*arguments: Any) -> Any:
        return found(*arguments)

    call.reports = []  # type: ignore[attr-defined]
    yield call
    backends = [made.backend for made in backend._made if made.backend is not None]
    call.reports += [one.finish() for one in backends]  # type: ignore[attr-defined]
