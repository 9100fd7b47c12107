"""The backend for `torch.compile`. Compilation and dumping are in `opscope.torch`, loaded on
demand."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from opscope.torchair import _idle
from opscope.torchair._lower import lower
from opscope._plan import DumpPlan
from opscope._warning import warn
from opscope.torchair.configs._node import copied
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.configs.npugraphex_config import assign

# Compiles a graph, with example inputs, to a callable.
Compiler = Callable[..., Callable[..., Any]]


class NpuBackend:
    """The backend returned by `get_npu_backend`: `torch.compile(model, backend=…)` calls it for
    each graph.

    Options may change until a graph is compiled. Graphs compiled with the same options share one
    dump.
    """

    def __init__(self, config: CompilerConfig, decompositions: Mapping[Any, Any]) -> None:
        self.compiler_config = config
        self.custom_decompositions = dict(decompositions)
        # Created at once, so that wrong options are reported where they are set.
        self._made = [_Made(config, checked(config))]
        self._engine = _engine()

    def __call__(self, gm: Any, example_inputs: Any, **keywords: Any) -> Any:
        options = keywords.pop("options", None)
        config = self.compiler_config
        if options:
            config = copied(config)
            assign(config, options)
        made = self._made_with(config)
        if made.backend is None:
            make = self._engine.make_backend
            made.backend = make(made.plan, made.config, decompositions=self.custom_decompositions)
        return made.backend(gm, example_inputs, **keywords)

    def _made_with(self, config: CompilerConfig) -> _Made:
        # Most likely the previous graph's options.
        for made in reversed(self._made):
            if made.config == config:
                return made
        self._made.append(_Made(config, checked(config)))
        return self._made[-1]


class _Made:
    """A plan, its options, and from the first graph on its backend."""

    def __init__(self, config: CompilerConfig, plan: DumpPlan) -> None:
        self.config = copied(config)
        self.plan = plan
        self.backend: Compiler | None = None


def get_npu_backend(
    *,
    compiler_config: CompilerConfig | None = None,
    custom_decompositions: Mapping[Any, Any] | None = None,
) -> NpuBackend:
    """A backend for `torch.compile`, with the options of a configuration.

    Raises `ValueError` or `OSError` for wrong options, and `ModuleNotFoundError` without torch.
    """
    return NpuBackend(_config(compiler_config), custom_decompositions or {})


# The name that other backends use.
get_backend = get_npu_backend


def get_compiler(compiler_config: CompilerConfig | None = None) -> Compiler:
    """A compiler of single graphs, for backends built on `aot_module_simplified(fw_compiler=…)`.

    Raises like `get_npu_backend`.
    """
    config = copied(_config(compiler_config))
    plan = checked(config)
    compiler: Compiler = _engine().make_compiler(plan, config)
    return compiler


def _config(given: CompilerConfig | None) -> CompilerConfig:
    if given is None:
        return CompilerConfig()
    if not isinstance(given, CompilerConfig):
        raise TypeError(f"compiler_config: a CompilerConfig of opscope.torchair is expected, got {type(given)}")
    return given


def checked(config: CompilerConfig) -> DumpPlan:
    """The plan of a configuration; warns about its other options."""
    plan = lower(config)
    if config.mode.value == "reduce-overhead":
        warn('the mode "reduce-overhead" is deprecated; TorchAir replaces it by "npugraph_ex"', DeprecationWarning)
    _idle.tell(config)
    return plan


def _engine() -> Any:
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "the backend compiles with PyTorch, which is not installed: pip install torch", name="torch"
        ) from None
    return importlib.import_module("opscope.torchair._engine")
