"""Links from AOT autograd graphs to the model: parameters, and the forward operators of backward
ones.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from torch.fx import GraphModule

from . import _names, _placements


class ParamAOTInput(NamedTuple):
    """PyTorch's class of this name, for versions without it."""

    target: str


class PlainAOTInput(NamedTuple):
    """As above."""

    idx: int


class GradAOTOutput(NamedTuple):
    """As above."""

    grad_of: ParamAOTInput | PlainAOTInput


class Origins:
    """The origins shared by all graphs from one graph of `torch.compile`."""

    def __init__(self, gm: GraphModule | None = None) -> None:
        # For each argument of `torch.compile`'s graph its parameter or buffer, or an empty text.
        arguments = [] if gm is None else [node for node in gm.graph.nodes if node.op == "placeholder"]
        self._parameters = [_parameter(node) for node in arguments]
        # Likewise the placements of distributed tensors.
        self._placements = [_placement(node) for node in arguments]
        attributes = [] if gm is None else [*gm.named_parameters(remove_duplicate=False)]
        attributes += [] if gm is None else [*gm.named_buffers(remove_duplicate=False)]
        self._in_order = [ParamAOTInput(name) for name, _ in attributes]
        self._in_order += [PlainAOTInput(index) for index in range(len(arguments))]
        self._is_in_order = False
        # For each sequence number the forward graph and the task of its first operator.
        self._first: dict[int, tuple[str, int]] = {}

    def complete(self, gm: GraphModule, phase: str) -> None:
        """Describes arguments and gradients by their order, as AOT autograd does since PyTorch 2.9.

        If it has merged or added arguments, they remain unknown.
        """
        arguments = [node for node in gm.graph.nodes if node.op == "placeholder"]
        (output,) = [node for node in gm.graph.nodes if node.op == "output"]
        if "desc" in output.meta:
            return
        if phase != "backward":
            self._is_in_order = len(arguments) == len(self._in_order)
            for node, description in zip(arguments, self._in_order if self._is_in_order else ()):
                node.meta["desc"] = description
            return
        for node in arguments if self._is_in_order else ():
            if (found := re.fullmatch(r"primals_(\d+)", node.name)) and 0 < int(found[1]) <= len(self._in_order):
                node.meta["desc"] = self._in_order[int(found[1]) - 1]
        if self._is_in_order and len(output.args[0]) == len(self._in_order):
            output.meta["desc"] = tuple(map(GradAOTOutput, self._in_order))

    def learn(self, meta: dict, graph: str, task_id: int) -> None:
        """Records a forward operator. Later ones with the same number are not differentiable."""
        seq_nr = meta.get("seq_nr")
        if isinstance(seq_nr, int):
            self._first.setdefault(seq_nr, (graph, task_id))

    def forward_partner(self, meta: dict) -> tuple[str, int] | None:
        """Graph and task of a backward operator's forward operator."""
        seq_nr = meta.get("seq_nr")
        return self._first.get(seq_nr) if isinstance(seq_nr, int) else None

    def parameter(self, description: Any) -> str:
        """The parameter or buffer of an AOT autograd argument; otherwise empty."""
        if isinstance(target := getattr(description, "target", None), str):
            return target
        index = getattr(description, "idx", None)
        if isinstance(index, int) and type(description).__name__ == "PlainAOTInput":
            return self._parameters[index] if index < len(self._parameters) else ""
        # An inner tensor of a tensor subclass.
        base, attribute = getattr(description, "base", None), getattr(description, "attr", None)
        if base is not None and isinstance(attribute, str):
            found = self.parameter(base)
            return f"{found}.{attribute}" if found else ""
        return ""

    def placement(self, description: Any) -> str:
        """The placement of an AOT autograd argument that is part of a distributed tensor; otherwise
        empty."""
        if getattr(description, "attr", None) != "_local_tensor":
            return ""
        index = getattr(getattr(description, "base", None), "idx", None)
        is_known = isinstance(index, int) and index < len(self._placements)
        return self._placements[index] if is_known else ""

    def result(self, description: Any) -> str:
        """The model's name for a result: `blocks.0.weight.grad`, or the buffer whose new value it
        is; otherwise empty.
        """
        if grad_of := getattr(description, "grad_of", None):
            found = self.parameter(grad_of)
            return f"{found}.grad" if found else ""
        return self.parameter(getattr(description, "mutated_input", None))


def _placement(node: Any) -> str:
    example = node.meta.get("example_value")
    return (_placements.text(example) or "") if type(example).__name__ == "DTensor" else ""


def _parameter(node: Any) -> str:
    source = getattr(node.meta.get("grapharg"), "source", None)
    if source is None:
        return ""
    try:
        # A function before torch 2.9.
        name = source.name() if callable(source.name) else source.name
    except NotImplementedError:
        return ""
    return _names.parameter_path(str(name))
