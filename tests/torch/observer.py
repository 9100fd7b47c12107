"""A backend that runs the graphs of AOT autograd node by node, and remembers all shapes and some of the bytes.

It shares no code with Opscope's describer of graphs: what an operator reads and gives is what goes in and comes out.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from functorch.compile import default_partition, make_boxed_func
from models import bits
from torch import Tensor, fx
from torch._dynamo.backends.common import aot_autograd

# Results of these are whatever was in memory.
_UNDEFINED = ("aten.empty", "aten.new_empty")


@dataclass
class Slots:
    """Tensors on both sides of an operator."""

    inputs: list[Any]
    outputs: list[Any]


@dataclass
class Execution:
    """What an operator with tensors did in one step."""

    target: str
    shapes: Slots
    # Of sampled operators only.
    payloads: Slots | None


@dataclass
class Observed:
    """A graph, and its executions: for each the operators by name."""

    phase: str
    runs: list[dict[str, Execution]] = field(default_factory=list)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)


def _is_undefined(node: fx.Node) -> bool:
    return str(node.target).startswith(_UNDEFINED)


class _Interpreter(fx.Interpreter):
    def __init__(self, gm: fx.GraphModule, run: dict[str, Execution], every: int) -> None:
        super().__init__(gm)
        self.executions = run
        self.every = every

    def run_node(self, node: fx.Node) -> Any:
        if node.op != "call_function" or node.target is operator.getitem:
            return super().run_node(node)
        inputs = list(_tensors(self.fetch_args_kwargs_from_env(node)))
        is_defined = not any(map(_is_undefined, (node, *node.all_input_nodes)))
        is_sampled = is_defined and len(self.executions) % self.every == 0
        read = [bits(tensor) for tensor in inputs] if is_sampled else []
        shapes = [tuple(tensor.shape) for tensor in inputs]
        result = super().run_node(node)
        outputs = [] if _is_undefined(node) else list(_tensors(result))
        if inputs or outputs:
            payloads = Slots(read, [bits(tensor) for tensor in outputs]) if is_sampled else None
            given = [tuple(tensor.shape) for tensor in outputs]
            self.executions[node.name] = Execution(str(node.target), Slots(shapes, given), payloads)
        return result


class Observer:
    """The backend. Every `every`-th operator is sampled."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.graphs: list[Observed] = []

    def __call__(self, gm: fx.GraphModule, example_inputs: Any, **kwargs: Any) -> Any:
        return aot_autograd(
            fw_compiler=self._compiler("forward"),
            bw_compiler=self._compiler("backward"),
            inference_compiler=self._compiler("inference"),
            partition_fn=default_partition,
            keep_inference_input_mutations=True,
        )(gm, example_inputs)

    def _compiler(self, phase: str) -> Any:
        def compile_phase(gm: fx.GraphModule, example_inputs: Any) -> Any:
            observed = Observed(phase)
            self.graphs.append(observed)

            def run(*args: Any) -> Any:
                observed.runs.append({})
                with torch.no_grad():
                    return _Interpreter(gm, observed.runs[-1], self.every).run(*args)

            return make_boxed_func(run)

        return compile_phase
