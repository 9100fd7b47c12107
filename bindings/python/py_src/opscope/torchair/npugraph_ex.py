"""TorchAir's newer backend by its name: `torch.compile(model, backend="npugraph_ex", options={…})`.

Its options are assigned to a `CompilerConfig` of the mode `npugraph_ex`. Graphs compiled with the
same options share one dump. The name is registered by importing torch and then this package, or
`opscope.torch`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from opscope import _backend_names
from opscope._fork_lock import ForkLock
from opscope.torchair._backend import NpuBackend, get_compiler, get_npu_backend
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.configs.npugraphex_config import assign

NAME = "npugraph_ex"
_made: list[tuple[CompilerConfig, NpuBackend]] = []
_lock = ForkLock()


def compile_graph(gm: Any, example_inputs: Any, **keywords: Any) -> Any:
    """Compiles a graph; called by torch for each one."""
    options = keywords.pop("options", None) or {}
    return backend_of(options)(gm, example_inputs, **keywords)


def compile_fx(gm: Any, example_inputs: Any = None, options: Mapping[str, Any] | None = None) -> Any:
    """Compiles one graph of ATen operators to a function that takes a list of its inputs.

    Corresponds to `torch.npu.npugraph_ex.compile_fx` in TorchAir.
    """
    return get_compiler(configured(options or {}))(gm, example_inputs)


def configured(options: Mapping[str, Any]) -> CompilerConfig:
    """A configuration of this mode with these options; raises the options' errors."""
    config = CompilerConfig()
    config.mode = NAME
    assign(config, options)
    return config


def backend_of(options: Mapping[str, Any]) -> NpuBackend:
    """The backend for options: one for all graphs with equal ones."""
    config = configured(options)
    with _lock:
        for known, backend in _made:
            if known == config:
                return backend
        _made.append((config, get_npu_backend(compiler_config=config)))
        return _made[-1][1]


def register() -> None:
    """Registers the name with torch unless it is taken. Does nothing without torch."""
    if "torch" in sys.modules:
        _backend_names.add(NAME, f"{__name__}:compile_graph")
