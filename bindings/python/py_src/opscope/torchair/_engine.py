"""The backend with all of TorchAir's options. Unlike the rest of this package it needs torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch.fx import GraphModule

from opscope._plan import DumpPlan
from opscope.torch import _interpreted, _runner
from opscope.torch._backend import Backend, opened
from opscope.torch._graph import Described
from opscope.torch._plan import Config
from opscope.torchair import _ge_dump, _layout
from opscope.torchair._fx_dump import FxDump
from opscope.torchair._fx_summary import FxSummaries
from opscope.torchair._ge_options import DumpOptions
from opscope.torchair._graph_dump import GraphDumps
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.core.utils import logger


class Engine(Backend):
    """Compiles graphs according to a `CompilerConfig`."""

    __name__ = "opscope.torchair"

    def __init__(self, plan: DumpPlan, settings: Config, options: CompilerConfig) -> None:
        self.options = options
        self.fx_dump = _fx_dump(plan, options)
        super().__init__(DumpPlan(enabled=False) if self.fx_dump else plan, settings)
        debug = options.debug
        self.graph_dumps = GraphDumps(debug.graph_dump.type.raw, debug.graph_dump.directory)
        self.summaries = FxSummaries(debug.fx_summary.directory if debug.fx_summary.enabled else None)
        self.dump_options = DumpOptions(self.plan, options)

    def compile_numbered(
        self, gm: GraphModule, phase: str, exposure: Any, example_inputs: Any, number: int, known: Any = None
    ) -> Callable[[list], Any]:
        """Compiles a graph, or less if the options say so.

        The first requested one of these applies: a summary without compilation, the dump of the FX
        graph, everything else.
        """
        if self.dump.is_left:
            return _runner.untapped(gm)
        name = _layout.graph_name(number)
        debug = self.options.debug
        self.summaries.write(gm)
        if debug.fx_summary.enabled and debug.fx_summary.skip_compile:
            logger.warning("%s is not compiled: debug.fx_summary.skip_compile is set", name)
            return _runner.untapped(gm)
        if self.fx_dump is not None:
            return self.fx_dump.compiled(gm, name)
        self.graph_dumps.write(gm, number, "original")
        has_engine = self.options.mode.value == "max-autotune"
        if has_engine:
            _ge_dump.write(gm, number, "PreRunBegin")
        before = _interpreted.copied(gm) if self.stage == "original" else gm
        self._run_passes(gm, example_inputs)
        self.graph_dumps.write(gm, number, "optimized")
        if has_engine:
            _ge_dump.write(gm, number, "Build")
        return super().compile_numbered(before, phase, exposure, example_inputs, number, known)

    def describe_graph(self, described: Described, name: str, phase: str) -> None:
        """Also writes the options for the graph engine."""
        super().describe_graph(described, name, phase)
        self.dump_options.add(name, [operator.op_name for operator in described.operators if operator.is_marked])

    def finish(self) -> dict:
        """Writes the rest and returns a summary of the dump."""
        found = super().finish()
        return found if self.fx_dump is None else {**found, **self.fx_dump.report()}

    def _run_passes(self, gm: GraphModule, example_inputs: Any) -> None:
        passes = (self.options.post_grad_custom_pre_pass, self.options.post_grad_custom_post_pass)
        for change in (option.value for option in passes):
            if change is not None:
                change(gm, example_inputs, self.options)
                gm.graph.lint()
                gm.recompile()


def make_backend(
    plan: DumpPlan, options: CompilerConfig, *, decompositions: Mapping[Any, Any] | None = None
) -> Backend:
    """A backend for a plan and all other options."""
    keeps = bool(options.experimental_config.keep_inference_input_mutations)
    settings = Config(keep_inference_input_mutations=keeps)
    if decompositions:
        settings = replace(settings, decompositions=dict(decompositions))
    return opened(Engine(plan, settings, options))


def make_compiler(plan: DumpPlan, options: CompilerConfig) -> Callable[[Any, Any], Callable[..., Any]]:
    """A compiler of single graphs of ATen operators, for backends with their own graphs."""
    made = make_backend(plan, options)
    return lambda gm, example_inputs: made.compile_aten(gm, example_inputs=example_inputs)


def _fx_dump(plan: DumpPlan, options: CompilerConfig) -> FxDump | None:
    """The dump of the FX graph, which replaces everything else."""
    dump = options.debug.data_dump
    if dump.enabled:
        logger.warning("debug.data_dump is set: graphs run node by node, and other dumps and options have no effect")
        return FxDump(dump.directory, dump.filter)
    if plan.enabled and plan.stage is not None and options.debug.run_eagerly:
        logger.warning("graphs run eagerly: tensors are dumped as debug.data_dump does it")
        return FxDump(os.path.abspath(plan.path), None)
    return None


