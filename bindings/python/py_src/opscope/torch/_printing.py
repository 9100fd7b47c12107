"""Operators of compiled graphs with side effects: printing, saving a tensor, marking a place.

They return nothing but are not removed, and stay in program order.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule

from .._visible import visible

_library = torch.library.Library("opscope", "FRAGMENT")
# `order` has one letter per item to print: `t` for the next tensor, `n` for the next number and `s`
# for the next text.
_library.define(
    "print(Tensor[] tensors, SymInt[] numbers, str[] texts, str order, int summarize_size, bool tensor_detail) -> ()"
)
_library.define("save(Tensor tensor, str path) -> ()")
# Begin and end of a scope, for releases of torch that cannot annotate nodes.
_library.define("scope(bool is_begin) -> ()")


def _print(
    tensors: Sequence[torch.Tensor],
    numbers: Sequence[int],
    texts: Sequence[str],
    order: str,
    summarize_size: int,
    tensor_detail: bool,
) -> None:
    each = {"t": iter(tensors), "n": iter(numbers), "s": iter(texts)}
    words = [_text(next(each[kind]), summarize_size, tensor_detail) for kind in order]
    # A text may contain the program's own lines and columns.
    print(visible(" ".join(words), keep="\n\t"), flush=True)


def _save(tensor: torch.Tensor, path: str) -> None:
    from ._captured import save_counted

    save_counted(path, tensor)


def _nothing(*arguments: Any, **keywords: Any) -> None:
    return None


for _name, _function in (("print", _print), ("save", _save), ("scope", _nothing)):
    _library.impl(_name, _function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"opscope::{_name}", _nothing, lib=_library)
    torch.fx.node.has_side_effect(getattr(torch.ops.opscope, _name).default)


def leave_to_forward(gm: GraphModule) -> None:
    """Removes these operators from a backward graph: AOT autograd puts them into both graphs."""
    ours = [node for node in gm.graph.nodes if node.op == "call_function" and is_ours(node.target)]
    for node in ours:
        gm.graph.erase_node(node)
    if ours:
        gm.recompile()


def is_ours(target: Any) -> bool:
    """Whether a node's target is one of these operators."""
    return getattr(target, "namespace", None) == "opscope"


def npu_print(*args: Any, summarize_size: int = 3, tensor_detail: bool = False) -> None:
    """Prints tensors, numbers and texts in one line when the graph reaches this point."""
    tensors, numbers, texts, order = [], [], [], ""
    for argument in args:
        if isinstance(argument, torch.Tensor):
            tensors.append(argument)
            order += "t"
        elif isinstance(argument, int) and not isinstance(argument, bool):
            # It may be a dynamic dimension.
            numbers.append(argument)
            order += "n"
        else:
            texts.append(str(argument))
            order += "s"
    torch.ops.opscope.print(tensors, numbers, texts, order, summarize_size, tensor_detail)


def save_tensor(tensor: torch.Tensor, path: str) -> None:
    """Saves a tensor when the graph reaches this point."""
    torch.ops.opscope.save(tensor, os.fspath(path))


def mark_scope(is_begin: bool) -> None:
    """Marks the begin or end of a scope."""
    torch.ops.opscope.scope(is_begin)


def scope_depth(node: Any) -> int:
    """1 for a node that begins a scope, -1 for one that ends it, otherwise 0."""
    if node.op != "call_function" or node.target is not torch.ops.opscope.scope.default:
        return 0
    return 1 if node.args[0] else -1


def _text(value: Any, summarize_size: int, tensor_detail: bool) -> str:
    if not isinstance(value, torch.Tensor):
        return str(value)
    try:
        elements = _elements(value, summarize_size)
    except Exception as error:  # The model goes on.
        elements = f"<{type(error).__name__}: {error}>"
    if not tensor_detail:
        return elements
    return f"tensor({elements}, shape={list(value.shape)}, dtype={value.dtype})"


def _elements(tensor: torch.Tensor, summarize_size: int) -> str:
    """Elements in brackets; long axes show only the first and last ones."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_floating_point() and tensor.element_size() == 1:
        # Other types do not support all operations.
        tensor = tensor.to(torch.float32)
    if summarize_size >= 0:
        tensor = _ends(tensor, summarize_size)
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bool:
        tensor = tensor.to(torch.uint8)
    elif tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.to(torch.float32)
    array = tensor.numpy()
    if array.ndim == 0:
        return str(array.item()) if array.dtype != np.float32 else np.format_float_positional(array[()], trim="0")
    if array.size == 0:
        return "[]"
    return _listed(array, summarize_size)


def _ends(tensor: torch.Tensor, n: int) -> torch.Tensor:
    # One more element in the middle, to show that there are more.
    for axis, extent in enumerate(tensor.shape):
        if extent > 2 * n + 1:
            ends = torch.tensor([*range(n + 1), *range(extent - n, extent)], device=tensor.device)
            tensor = tensor.index_select(axis, ends)
    return tensor


def _listed(array: np.ndarray, summarize_size: int) -> str:
    if summarize_size < 0:
        return np.array2string(array, threshold=array.size + 1, separator=" ")
    return np.array2string(array, threshold=0, edgeitems=summarize_size, separator=" ")
