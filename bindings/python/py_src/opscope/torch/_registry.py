"""Registers `opscope` as a `torch.compile` backend, and TorchAir's backend name."""

from __future__ import annotations

from typing import Any

from .. import _backend_names
from ..torchair import npugraph_ex
from ..torchair.configs import npugraphex_config
from . import _backend

NAME = "opscope"
# Options of the other backend.
OPTIONS = npugraphex_config.OPTIONS


def register() -> None:
    """Registers the name if the package is not installed; installation provides the same entry."""
    _backend_names.add(NAME, f"{__name__}:by_name")
    npugraph_ex.register()


def __getattr__(name: str) -> Any:
    if name == "by_name":
        # Torch calls this when a program requests the backend. If it compiles nothing afterwards, a
        # warning follows.
        _backend.note_asked_for()
        return compile_graph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def compile_graph(gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
    """Compiles a graph; called by torch for each one.

    `options` are those of `opscope.torch.backend`, or those of `npugraph_ex`.
    """
    options = kwargs.pop("options", None) or {}
    if mode := kwargs.pop("mode", None):
        raise ValueError(f"the backend `{NAME}` has no mode `{mode}`; which tensors to dump is options={{'mode': ...}}")
    if theirs := OPTIONS.intersection(options):
        if ours := sorted(set(options) - OPTIONS):
            names = f"{', '.join(ours)} and {', '.join(sorted(theirs))}"
            raise ValueError(f"options of the backends `{NAME}` and `{npugraph_ex.NAME}` cannot be combined: {names}")
        _backend.note_called()
        return npugraph_ex.compile_graph(gm, example_inputs, options=options, **kwargs)
    return _backend.named(options)(gm, example_inputs, **kwargs)
