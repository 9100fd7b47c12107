"""How the elements of a tensor lie in memory, and which tensors have numbers at all."""

from __future__ import annotations

import torch

# Axes that the kernels follow by themselves, once neighbours that lie one behind the other are one.
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
    if not tensor.is_contiguous() and repeats(tensor) and len(joined_axes(tensor)[0]) > N_DIMS_MAX:
        # The kernels do not follow so many axes, and a copy may be far larger than what is there.
        return "form expanded"
    return None


def joined_axes(tensor: torch.Tensor) -> tuple[list[int], list[int]]:
    """Returns sizes and strides, in elements, in which axes that lie one behind the other are one.

    Of a tensor without gaps, and of one with a single element, one axis is left.
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
    """Whether elements share memory, as those of `expand` do: a copy may be far larger than what is there."""
    extent = sum((size - 1) * abs(stride) for size, stride in zip(tensor.shape, tensor.stride())) + 1
    return tensor.numel() > extent
