"""Converts tensors without plain CPU memory to tensors with it.

Called only if the core cannot read a tensor itself, so it costs models of plain tensors nothing.
"""

from __future__ import annotations

from typing import Union

import torch

from ._device.adapter import is_capturing

# The tensors that make up a tensor: for each its name, the tensor, and whether its memory is
# unshared. A single tensor for the whole has an empty name.
Parts = list[tuple[str, torch.Tensor, bool]]
# The parts and whether they were copied from another device; or a reason why there are none; or
# None if unknown.
Answer = Union[tuple[Parts, bool], str, None]

_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}
_PER_TENSOR = (torch.per_tensor_affine, torch.per_tensor_symmetric)


def parts(tensor: torch.Tensor, reason: str) -> Answer:
    """Finds substitutes for a tensor that the core refused for `reason`."""
    is_named = reason.startswith("type ")
    if is_named:
        if (jagged := _jagged(tensor)) is not None:
            return jagged
        if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            # Only the type knows the meaning of its memory, if it has any.
            return None
        try:
            with torch._C.DisableTorchFunctionSubclass():
                tensor = tensor.as_subclass(torch.Tensor)
        except (NotImplementedError, RuntimeError):
            # Torch does not support this for other memory layouts.
            return None
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "form batched" if torch._C._functorch.is_batchedtensor(tensor) else "form functorch"
    kind = tensor.device.type
    if kind == "meta":
        return None
    with torch.no_grad():
        if kind == "cpu" and is_named and is_plain(tensor):
            return [("", tensor.resolve_conj().resolve_neg(), False)], False
        if kind == "cpu":
            return _answer(_on_host(tensor, is_own=False), is_copied=False)
        return _copied(tensor)


def _copied(tensor: torch.Tensor) -> Answer:
    """Waits for the operator: torch copies on the current stream."""
    if is_capturing(tensor.device.type):
        # A copy would abort the recording.
        return "recorded for a CUDA graph"
    # On some devices torch resolves these while copying.
    host = tensor.detach().to("cpu").resolve_conj().resolve_neg()
    if is_plain(host):
        return [("", host, True)], True
    return _answer(_on_host(host, is_own=True), is_copied=True)


def _answer(found: Parts | str | None, *, is_copied: bool) -> Answer:
    return (found, is_copied) if isinstance(found, list) else found


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the core can read a CPU tensor."""
    return tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested


def _on_host(tensor: torch.Tensor, *, is_own: bool) -> Parts | str | None:
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        return [("indices", tensor._indices(), is_own), ("values", tensor._values(), is_own)]
    if tensor.layout in _COMPRESSED:
        names = (*_COMPRESSED[tensor.layout], "values")
        return [(name, getattr(tensor, name)(), is_own) for name in names]
    if str(tensor.layout) == "torch._mkldnn":
        return [("", tensor.to_dense(), True)]
    if tensor.layout is not torch.strided:
        return None
    if tensor.is_nested:
        sizes, offsets = tensor._nested_tensor_size(), tensor._nested_tensor_storage_offsets()
        strides = tensor._nested_tensor_strides()
        values = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        named = {"values": values, "sizes": sizes, "strides": strides, "offsets": offsets}
        return [(name, part, False) for name, part in named.items()]
    return _quantised(tensor) if tensor.is_quantized else None


def _quantised(tensor: torch.Tensor) -> Parts | str:
    if tensor.dtype not in (torch.qint8, torch.quint8, torch.qint32):
        # Several elements share a byte.
        return f"dtype {str(tensor.dtype).removeprefix('torch.')}"
    numbers = ("int_repr", tensor.int_repr(), True)
    if tensor.qscheme() in _PER_TENSOR:
        scale = torch.tensor(tensor.q_scale(), dtype=torch.float64)
        return [numbers, ("scale", scale, True), ("zero_point", torch.tensor(tensor.q_zero_point()), True)]
    scales, zero_points = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    axis = torch.tensor(tensor.q_per_channel_axis())
    return [numbers, ("scale", scales, False), ("zero_point", zero_points, False), ("axis", axis, True)]


def _jagged(tensor: torch.Tensor) -> Answer:
    """A jagged tensor is a subclass that contains plain tensors."""
    if getattr(tensor, "layout", None) is not torch.jagged or type(tensor).__name__ != "NestedTensor":
        return None
    found = [(name, getattr(tensor, f"_{name}", None)) for name in ("values", "offsets", "lengths")]
    return [(name, part.detach(), False) for name, part in found if isinstance(part, torch.Tensor)], False
