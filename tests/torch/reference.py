"""The inputs and outputs of every operator of a compiled graph, by torch's own interpreter of FX graphs."""

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

# Shape and bytes.
Seen = tuple[tuple[int, ...], bytes]


@dataclass
class Execution:
    """One execution of one operator."""

    target: str
    inputs: list[Seen]
    outputs: list[Seen]
    # Whether it neither returns nor reads uninitialised memory.
    is_defined: bool


@dataclass
class Graph:
    """A compiled graph, and for each of its executions the operators by name."""

    phase: str
    runs: list[dict[str, Any]] = field(default_factory=list)


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in an operator's arguments or results."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)


def _seen(value: Any) -> list[Seen]:
    return [(tuple(tensor.shape), bits(tensor)) for tensor in tensors(value)]


class _Recorder(fx.Interpreter):
    def __init__(self, gm: fx.GraphModule, graph: Graph) -> None:
        super().__init__(gm)
        self.record = graph

    def run_node(self, node: fx.Node) -> Any:
        if node.op != "call_function" or node.target is operator.getitem:
            return super().run_node(node)
        arguments = self.fetch_args_kwargs_from_env(node)
        inputs = _seen(arguments)
        result = super().run_node(node)
        is_defined = not any(str(near.target).startswith("aten.empty") for near in (node, *node.all_input_nodes))
        self.record.runs[-1][node.name] = Execution(str(node.target), inputs, _seen(result), is_defined)
        return result


class Recording:
    """A backend whose graphs an interpreter of FX graphs runs, which writes into the last of the graph's `runs`."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []

    def interpreter(self, gm: fx.GraphModule, graph: Graph) -> fx.Interpreter:
        """Returns the interpreter that executes a graph once."""
        raise NotImplementedError

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
            graph = Graph(phase)
            self.graphs.append(graph)

            def run(*args: Any) -> Any:
                graph.runs.append({})
                with torch.no_grad():
                    return self.interpreter(gm, graph).run(*args)

            return make_boxed_func(run)

        return compile_phase


class Reference(Recording):
    """Runs graphs slowly and remembers everything."""

    def interpreter(self, gm: fx.GraphModule, graph: Graph) -> fx.Interpreter:
        """Remembers all bytes."""
        return _Recorder(gm, graph)
