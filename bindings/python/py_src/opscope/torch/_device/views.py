"""How the elements of a tensor lie in memory, and which tensors have numbers at all."""

from __future__ import annotations

import torch

# Axes that the kernels follow by themselves, once neighbours that lie one behind the other are one.
N_DIMS_MAX = 4

DTYPES = frozenset(
    {
        torch.bool,
        torch.int8,
        torch.uint8,
        torch.int16,
        torch.uint16,
        torch.int32,
        torch.uint32,
        torch.int64,
        torch.uint64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
        torch.float8_e4m3fnuz,
        torch.float8_e5m2fnuz,
        torch.float8_e8m0fnu,
    }
)
_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def reason_against(tensor: torch.Tensor) -> str | None:
    """Says why a tensor has no numbers here, in the words of the counters of a dump; `None` if it has some."""
    if type(tensor) not in _PLAIN_TYPES:
        return f"type {type(tensor).__name__}"
    if tensor.dtype not in DTYPES:
        return f"dtype {str(tensor.dtype).removeprefix('torch.')}"
    if tensor.layout is not torch.strided or tensor.is_nested:
        return "form nested" if tensor.is_nested else f"form {str(tensor.layout).removeprefix('torch.')}"
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "form functorch"
    if tensor.is_neg():
        return "form negative"
    kind = tensor.device.type
    if kind == "meta":
        return "no memory"
    if kind == "mps":
        # Sums are of `float64`, which this device does not have.
        return "device mps"
    return None


def joined_axes(tensor: torch.Tensor) -> tuple[list[int], list[int]]:
    """Returns sizes and strides, in elements, in which axes that lie one behind the other are one.

    Of a tensor without gaps, and of one with a single element, one axis is left.
    """
    sizes: list[int] = []
    strides: list[int] = []
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if size == 1:
            continue
        if sizes and strides[-1] == stride * size:
            sizes[-1] *= size
            strides[-1] = stride
        else:
            sizes.append(size)
            strides.append(stride)
    return (sizes, strides) if sizes else ([tensor.numel()], [1])


def repeats(tensor: torch.Tensor) -> bool:
    """Whether elements share memory, as those of `expand` do: a copy may be far larger than what is there."""
    extent = sum((size - 1) * abs(stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    return tensor.numel() > extent
