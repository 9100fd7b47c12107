"""Enqueues the computation of statistics on the tensors' device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from ..._warning import warn
from . import torch_form
from .rows import row_words
from .views import reason_against

__all__ = ["Reducer", "reason_against", "supports"]


def supports(tensor: torch.Tensor) -> bool:
    """Whether the statistics of `tensor` can be computed on its device."""
    return reason_against(tensor) is None


# Errors that another form would not avoid. Older versions of torch lack the second.
_ERRORS_OF_DEVICE = (torch.cuda.OutOfMemoryError, getattr(torch, "AcceleratorError", torch.cuda.OutOfMemoryError))


class _Form(Protocol):
    """A way to compute statistics."""

    def reduce(self, tensors: Sequence[torch.Tensor], rows: torch.Tensor, *, has_histogram: bool) -> None: ...


class _TorchForm:
    """Plain torch operators, for devices that Triton does not support."""

    def reduce(self, tensors: Sequence[torch.Tensor], rows: torch.Tensor, *, has_histogram: bool) -> None:
        for i, tensor in enumerate(tensors):
            rows[i].copy_(torch_form.row(tensor, has_histogram=has_histogram))


class Reducer:
    """Computes rows of statistics (`rows.py`) for tensors of one device.

    It never waits for the device or reads from it, draws random numbers or affects autograd. On
    CUDA a tensor of up to 64 KiB shares one kernel with seven others; a larger one takes two.
    """

    def __init__(self, device: torch.device, *, has_histogram: bool = False) -> None:
        """Prepares for tensors of `device`; kernels are compiled when a dtype first occurs."""
        self.device = device
        self.has_histogram = has_histogram
        self._n_words = row_words(has_histogram=has_histogram)
        self._form: _Form = _form(device)

    @torch._disable_dynamo
    def reduce(self, tensors: Sequence[torch.Tensor], rows: torch.Tensor) -> None:
        """Enqueues on the current stream the computation of the statistics of `tensors[i]` into
        `rows[i]`.

        `rows` is a contiguous `int64` tensor of the same device, with at least as many rows, each
        of `rows.row_words(has_histogram=…)` words.

        Raises:
            ValueError: If `reason_against` has a reason against one of the tensors, if one is of another device, or if
                `rows` has another form.
            torch.OutOfMemoryError: If there is no room for partial results.
        """
        self._check(tensors, rows)
        # These operators must be hidden from autograd and the modes of a dump.
        with torch._C._AutoDispatchBelowAutograd(), torch._C._DisableTorchDispatch():
            try:
                self._form.reduce(tensors, rows, has_histogram=self.has_histogram)
            except _ERRORS_OF_DEVICE:
                raise
            except Exception as error:
                if isinstance(self._form, _TorchForm):
                    raise
                # Triton needs a C compiler, and may not support the device.
                warn(
                    f"opscope.torch: the kernel for tensor statistics could not be built for {self.device} "
                    f"({type(error).__name__}: {error}); using torch's own operators, which is slower"
                )
                self._form = _TorchForm()
                self._form.reduce(tensors, rows, has_histogram=self.has_histogram)

    def _check(self, tensors: Sequence[torch.Tensor], rows: torch.Tensor) -> None:
        if rows.dtype is not torch.int64 or rows.dim() != 2 or not rows.is_contiguous():
            raise ValueError("rows: a contiguous tensor of two axes and dtype int64 is expected")
        if rows.shape[0] < len(tensors) or rows.shape[1] != self._n_words:
            wanted = f"{len(tensors)} rows of {self._n_words} words"
            raise ValueError(f"rows: {wanted} are expected, got the shape {tuple(rows.shape)}")
        for tensor in tensors:
            if (reason := reason_against(tensor)) is not None:
                raise ValueError(f"tensors: one has no numbers on its device: {reason}")
            if tensor.device != rows.device:
                raise ValueError(f"tensors: one is on {tensor.device}, and the rows are on {rows.device}")


def _form(device: torch.device) -> Any:
    """Triton if it supports the device, otherwise torch's own operators."""
    if device.type == "cuda" and torch.version.hip is None:
        try:
            from .triton_form import TritonForm
        except ImportError:
            return _TorchForm()
        return TritonForm()
    return _TorchForm()
