"""Dumps of models that `torch.compile` runs: every operator's inputs and outputs, forward and backward.

    import opscope.torch

    model = torch.compile(model, backend=opscope.torch.backend(path="dump", data="stats"))
    ...
    print(opscope.torch.finish())

`torch.compile(model, backend="opscope", options={"path": "dump"})` does the same. Importing this package imports
PyTorch.
"""

from __future__ import annotations

from ._backend import Backend, backend, finish, make_backend, set_step, step
from ._plan import Config, DumpPlan
from ._registry import register

__all__ = ["Backend", "Config", "DumpPlan", "backend", "finish", "make_backend", "set_step", "step"]

register()
