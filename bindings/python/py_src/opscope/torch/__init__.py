"""Dumps of models that `torch.compile` runs: every operator's inputs and outputs, forward and backward.

    import opscope.torch

    model = torch.compile(model, backend=opscope.torch.backend(path="dump", data="stats"))
    ...
    print(opscope.torch.finish())

`torch.compile(model, backend="opscope", options={"path": "dump"})` does the same. Code that runs without
`torch.compile` is dumped by `with opscope.torch.eager(path="dump") as dump:`.
`opscope.torch.diff(model, other, inputs)` runs two and says which operator makes them differ, and
`opscope.torch.repeat(model, inputs)` runs one several times. Importing this package
imports PyTorch.
"""

from __future__ import annotations

from ._backend import Backend, backend, finish, make_backend, set_step, step
from ._diff import diff
from ._eager import EagerDump, eager
from ._failure_eager import catch
from ._hooks import Hook, OperatorCall
from ._plan import Config, DumpPlan
from ._registry import register
from ._repeat import repeat
from ._watch_eager import watch

__all__ = [
    "Backend",
    "Config",
    "DumpPlan",
    "EagerDump",
    "Hook",
    "OperatorCall",
    "backend",
    "catch",
    "diff",
    "eager",
    "finish",
    "repeat",
    "make_backend",
    "set_step",
    "step",
    "watch",
]

register()
