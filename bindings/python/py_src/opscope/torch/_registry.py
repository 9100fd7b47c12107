"""The name `opscope` among the backends of `torch.compile`."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from torch._dynamo.backends import registry

from . import _backend

NAME = "opscope"
_ENTRY = EntryPoint(NAME, f"{__name__}:by_name", "torch_dynamo_backends")


def register() -> None:
    """Lets torch know the name where the package is not installed; an installed one brings the same entry itself.

    Torch has a function to register a backend, but none to register one that is looked up only when it is asked for.
    """
    registry._BACKENDS.setdefault(NAME, _ENTRY)


def __getattr__(name: str) -> Any:
    if name == "by_name":
        # Torch looks here when a program asks for the backend. If it compiles nothing afterwards, that is worth a word.
        _backend.note_asked_for()
        return compile_graph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def compile_graph(gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
    """What torch calls with each graph; `options` are arguments of `opscope.torch.backend`."""
    options = kwargs.pop("options", None) or {}
    if mode := kwargs.pop("mode", None):
        raise ValueError(f"the backend `{NAME}` has no mode `{mode}`; which tensors to dump is options={{'mode': ...}}")
    return _backend.named(options)(gm, example_inputs, **kwargs)
