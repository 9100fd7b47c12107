"""The backend for `torch.compile`. What compiles and dumps is in `opscope.torch`, and loaded when it is needed."""

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

# A graph and examples of its inputs, to something that can be called with its inputs.
Compiler = Callable[..., Callable[..., Any]]


class NpuBackend:
    """The backend that `get_npu_backend` returns: `torch.compile(model, backend=…)` calls it for each graph.

    Options may still be changed until a graph is compiled. Graphs that are compiled with the same options share one
    dump.
    """

    def __init__(self, config: CompilerConfig, decompositions: Mapping[Any, Any]) -> None:
        self.compiler_config = config
        self.custom_decompositions = dict(decompositions)
        # At once, so that wrong options are found where they are given.
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
        # Most likely the options of the graph before.
        for made in reversed(self._made):
            if made.config == config:
                return made
        self._made.append(_Made(config, checked(config)))
        return self._made[-1]


class _Made:
    """A plan, the options that it was made of, and from the first graph on the backend that carries it out."""

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

    Raises what is wrong with the options (`ValueError`, `OSError`), and `ModuleNotFoundError` without torch.
    """
    return NpuBackend(_config(compiler_config), custom_decompositions or {})


# Under the name of other backends.
get_backend = get_npu_backend


def get_compiler(compiler_config: CompilerConfig | None = None) -> Compiler:
    """A compiler of one graph, for a backend that is written with `aot_module_simplified(fw_compiler=…)`.

    Raises as `get_npu_backend` does.
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
    """The plan of a configuration, after saying what there is to say about the other options."""
    plan = lower(config)
    if config.mode.value == "reduce-overhead":
        warn('the mode "reduce-overhead" will go; TorchAir has "npugraph_ex" in its place', DeprecationWarning)
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
