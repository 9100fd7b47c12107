"""Maps a graph's arguments to the model's parameters, buffers and inputs, and its results to
gradients.

`torch.compile` knows the source of each argument of its own graph; AOT autograd maps its arguments
and gradients to these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils.weak import WeakTensorKeyDictionary

_ROOT = re.compile(r"^[LG]\[(?:'([^']*)'|\"([^\"]*)\")\]")
_STEP = re.compile(r"\._(?:modules|parameters|buffers)\[(?:'([^']*)'|\"([^\"]*)\")\]")
_OF_MODULE = ("._parameters[", "._buffers[")
# Names of all parameters so far, by which an optimizer's graph identifies them.
_known: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


class ModelNames:
    """Names of the arguments of one `torch.compile` graph."""

    def __init__(self, gm: GraphModule) -> None:
        placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self._attributes = dict(gm.named_parameters(remove_duplicate=False))
        self._attributes.update(gm.named_buffers(remove_duplicate=False))
        found = [_source(node) for node in placeholders]
        gradients = {id(t.grad): t for t in _known if t.grad is not None}
        short = [
            _name(text, tensor, gradients) if text else node.name for node, (text, tensor) in zip(placeholders, found)
        ]
        # The same path in two models of one graph: distinguished by the program's variables.
        n_of = Counter(short)
        self._of_argument = [
            _spelled(text) if text and n_of[name] > 1 else name for name, (text, _) in zip(short, found)
        ]
        for (text, tensor), name in zip(found, self._of_argument):
            if tensor is not None and any(mark in text for mark in _OF_MODULE):
                _known[tensor] = name

    def names(self, gm: GraphModule) -> Iterator[tuple[str, Node]]:
        """Names of nodes: `fc.weight` for an argument, `fc.weight.grad` for a result."""
        arguments = [node for node in gm.graph.nodes if node.op == "placeholder"]
        (results,) = [node for node in gm.graph.nodes if node.op == "output"]
        outputs = results.args[0] if isinstance(results.args[0], (tuple, list)) else [results.args[0]]
        described = results.meta.get("desc") or ()
        for node in arguments:
            if name := self._described(node.meta.get("desc")):
                yield name, node
        for node, of in zip(outputs, described):
            if isinstance(node, Node) and type(of).__name__ == "GradAOTOutput" and (name := self._described(of.grad_of)):
                yield f"{name}.grad", node

    def _described(self, of: Any) -> str | None:
        kind = type(of).__name__
        if kind == "PlainAOTInput" and of.idx < len(self._of_argument):
            return self._of_argument[of.idx]
        if kind in ("ParamAOTInput", "BufferAOTInput"):
            return self._of_attribute(of.target)
        return None

    def _of_attribute(self, target: str) -> str:
        tensor = self._attributes.get(target)
        return target if tensor is None else _known.get(tensor, target)


def _source(node: Node) -> tuple[str, torch.Tensor | None]:
    """The source of an argument as code, and the tensor."""
    argument = node.meta.get("grapharg")
    source = getattr(argument, "source", None) or getattr(node, "_dynamo_source", None)
    text = getattr(source, "name", "")
    try:
        # A method until 2.9.
        text = text() if callable(text) else text
        tensor = getattr(argument, "example", None)
    except Exception:
        return "", None
    return str(text), tensor if isinstance(tensor, torch.Tensor) else None


def _name(text: str, tensor: torch.Tensor | None, gradients: dict[int, torch.Tensor]) -> str:
    if any(mark in text for mark in _OF_MODULE):
        path = _ROOT.sub("", _STEP.sub(_of_step, text))
        return path.lstrip(".")
    if tensor is not None and (of := gradients.get(id(tensor))) is not None:
        return f"{_known[of]}.grad"
    if tensor is not None and tensor in _known:
        return _known[tensor]
    return _spelled(text)


def _spelled(text: str) -> str:
    """The complete source: `model.fc.weight` for `L['model']._modules['fc']._parameters['weight']`.
    """
    return _ROOT.sub(_of_root, _STEP.sub(_of_step, text))


def _of_step(found: re.Match) -> str:
    return "." + (found[1] or found[2] or "")


def _of_root(found: re.Match) -> str:
    return found[1] or found[2] or ""
