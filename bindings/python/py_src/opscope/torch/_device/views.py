"""Memory layout of tensors, and which tensors have statistics."""

from __future__ import annotations

import torch

# Number of axes that the kernels support, after merging contiguous neighbours.
N_DIMS_MAX = 4

_DTYPE_NAMES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)
# Older versions of torch lack some.
DTYPES = {getattr(torch, name): name for name in _DTYPE_NAMES if hasattr(torch, name)}
_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)


def reason_against(tensor: torch.Tensor) -> str | None:
    """Returns why a tensor has no statistics here, in the words of a dump's counters; `None` if it
    has."""
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
        # Sums need `float64`, which this device lacks.
        return "device mps"
    if not tensor.is_contiguous() and repeats(tensor) and len(joined_axes(tensor)[0]) > N_DIMS_MAX:
        # The kernels do not support so many axes, and a copy may be far larger than the memory.
        return "form expanded"
    return None


def joined_axes(tensor: torch.Tensor) -> tuple[list[int], list[int]]:
    """Returns sizes and strides, in elements, after merging contiguous axes.

    A contiguous tensor, or one with a single element, has one axis left.
    """
    sizes: list[int] = []
    strides: list[int] = []
    for size, stride in zip(tensor.shape, tensor.stride()):
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
    """Whether elements share memory, as after `expand`: a copy may be far larger."""
    extent = sum((size - 1) * abs(stride) for size, stride in zip(tensor.shape, tensor.stride())) + 1
    return tensor.numel() > extent
