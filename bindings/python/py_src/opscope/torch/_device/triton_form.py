"""Selection and launch of kernels for tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton.language as tl

from . import elements, kernels, kinds, parts, views

_STRIPE_BYTES = 4 * elements.LINE.value * elements.STRIPE_LINES.value
# Maximum bytes for a single program: two stripes.
SMALL_BYTES_MAX = 2 * _STRIPE_BYTES
# Maximum number of programs per tensor; a single one joins their partial results.
N_PARTS_MAX = 2048
# Maximum stripes per program, because elements are counted in 16 bits.
_PART_STRIPES_MAX = (2**16 - 1) // elements.STRIPE_LINES.value
# Tensors per launch.
_GROUP = 8
# Maximum elements of a non-contiguous tensor to gather one by one; larger ones are copied first.
_GATHERED_MAX = 1 << 18
# Fusing multiply-add would make results depend on the compiler.
OPTIONS = {"num_warps": 4, "enable_fp_fusion": False}

_KINDS_BY_NAME = {
    "float32": kinds.F32,
    "float16": kinds.F16,
    "bfloat16": kinds.BF16,
    "float8_e4m3fn": kinds.E4M3FN,
    "float8_e5m2": kinds.E5M2,
    "float8_e4m3fnuz": kinds.E4M3FNUZ,
    "float8_e5m2fnuz": kinds.E5M2FNUZ,
    "float8_e8m0fnu": kinds.E8M0,
    "int8": kinds.I8,
    "uint8": kinds.U8,
    "bool": kinds.BOOL,
    "float64": kinds.F64,
    "int16": kinds.I16,
    "uint16": kinds.U16,
    "int32": kinds.I32,
    "uint32": kinds.U32,
    "int64": kinds.I64,
    "uint64": kinds.U64,
}
# The kernels' element types, by size.
_ELEMENTS = {1: tl.uint8, 2: tl.uint16, 4: tl.uint32, 8: tl.uint64}
_KINDS = {dtype: (_KINDS_BY_NAME[name].value, _ELEMENTS[dtype.itemsize]) for dtype, name in views.DTYPES.items()}
# The number of axes, the sizes of the last three and the strides of the last four, in elements.
_Axes = tuple[int, tuple[int, ...]]


class _Launcher:
    """Launches one kernel, without the lookups that Triton does on each call."""

    def __init__(self, kernel: Any, options: dict[str, Any]) -> None:
        self._kernel = kernel
        self._options = options
        # By device and compile-time arguments.
        self._compiled: dict[Any, Any] = {}

    def __call__(self, device: int, n_programs: int, numbers: tuple[int, ...], constants: tuple[Any, ...]) -> None:
        compiled = self._compiled.get((device, constants))
        if compiled is None:
            compiled = self._kernel[(n_programs,)](*numbers, *constants, **self._options)
            # The interpreter has nothing to cache.
            if compiled is not None:
                self._compiled[device, constants] = compiled
            return
        compiled[n_programs, 1, 1](*numbers, *constants)


class TritonForm:
    """Triton kernels, compiled with the given compiler `options`."""

    def __init__(self, options: dict[str, Any] = OPTIONS) -> None:
        self._small = _Launcher(kernels.reduce_small, options)
        self._parts = _Launcher(kernels.reduce_parts, options)
        self._join = _Launcher(kernels.join_parts, options)
        self._histogram = _Launcher(kernels.add_histogram, options)

    def reduce(self, tensors: Sequence[torch.Tensor], rows: torch.Tensor, *, has_histogram: bool) -> None:
        if rows.is_cuda and torch.cuda.current_device() != rows.get_device():
            with torch.cuda.device(rows.get_device()):
                self._reduce(tensors, rows, has_histogram)
        else:
            self._reduce(tensors, rows, has_histogram)

    def _reduce(self, tensors: Sequence[torch.Tensor], rows: torch.Tensor, has_histogram: bool) -> None:
        device, to, n_words = rows.get_device(), rows.data_ptr(), rows.shape[1]
        small: dict[Any, list[tuple[int, int, int]]] = {}
        # Freed memory may be overwritten by the next enqueued work, so copies live until all
        # kernels are enqueued.
        copies: list[torch.Tensor] = []
        for i, tensor in enumerate(tensors):
            n, item = tensor.numel(), tensor.element_size()
            kind, element = _KINDS[tensor.dtype]
            axes = _ONE_AXIS if tensor.is_contiguous() else _axes(tensor)
            if axes is None:
                tensor = tensor.contiguous()
                copies.append(tensor)
                axes = _ONE_AXIS
            address = tensor.data_ptr()
            is_dense = axes is _ONE_AXIS and address % 16 == 0
            n_dims, numbers = axes
            if n_dims == 1 and axes is _ONE_AXIS and n * item <= SMALL_BYTES_MAX:
                constants = (kind, item, element, is_dense, has_histogram)
                small.setdefault(constants, []).append((address, n, i * n_words))
            else:
                n_stripes = -(-n * item // _STRIPE_BYTES)
                n_part_stripes = min(max(1, -(-n_stripes // N_PARTS_MAX)), _PART_STRIPES_MAX)
                n_parts = max(1, -(-n_stripes // n_part_stripes))
                partial = torch.empty(n_parts * parts.PARTIAL_WORDS.value, dtype=torch.int64, device=rows.device)
                view = (partial.data_ptr(), address, n, n_part_stripes * elements.STRIPE_LINES.value, *numbers)
                self._parts(device, n_parts, view, (kind, item, element, n_dims, is_dense))
                self._join(device, 1, (to, i * n_words, partial.data_ptr(), n_parts, n * item), (has_histogram,))
        for constants, found in small.items():
            for first in range(0, len(found), _GROUP):
                self._launch_small(device, to, found[first : first + _GROUP], constants)
        if has_histogram:
            self._add_histograms(tensors, rows)

    def _launch_small(self, device: int, to: int, group: list[tuple[int, int, int]], constants: Any) -> None:
        n_programs = len(group)
        group = group + [group[0]] * (_GROUP - n_programs)
        addresses, sizes, places = zip(*group)
        self._small(device, n_programs, (to, *addresses, *sizes, *places), constants)

    def _add_histograms(self, tensors: Sequence[torch.Tensor], rows: torch.Tensor) -> None:
        for i, tensor in enumerate(tensors):
            axes = _ONE_AXIS if tensor.is_contiguous() else _axes(tensor)
            if axes is None:
                tensor = tensor.contiguous()
                axes = _ONE_AXIS
            n_dims, numbers = axes
            kind, element = _KINDS[tensor.dtype]
            n_steps = -(-tensor.numel() // elements.LINE.value)
            n_program_steps = max(16, -(-n_steps // N_PARTS_MAX))
            n_programs = -(-n_steps // n_program_steps)
            if n_programs:
                view = (tensor.data_ptr(), tensor.numel(), n_program_steps, *numbers)
                to = (rows.data_ptr(), i * rows.shape[1])
                self._histogram(rows.get_device(), n_programs, (*to, *view), (kind, element, n_dims))


_ONE_AXIS: _Axes = (1, (1, 1, 1, 0, 0, 0, 1))


def _axes(tensor: torch.Tensor) -> _Axes | None:
    """Returns how the kernels traverse a tensor, or `None` if it should be made contiguous first.
    """
    sizes, strides = views.joined_axes(tensor)
    if len(sizes) > views.N_DIMS_MAX or (tensor.numel() > _GATHERED_MAX and not views.repeats(tensor)):
        return None
    if len(sizes) == 1 and strides[0] == 1:
        return _ONE_AXIS
    missing = views.N_DIMS_MAX - len(sizes)
    sizes, strides = [1] * missing + sizes, [0] * missing + strides
    return len(sizes) - missing, (*sizes[1:], *strides)
