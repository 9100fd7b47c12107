"""Enqueues what computes the numbers of tensors where their elements are."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class Reducer:
    """Computes rows of numbers (`rows.py`) of tensors of one device.

    Nothing here waits for the device or reads from it.
    """

    def __init__(self, device: torch.device, *, has_histogram: bool = False) -> None:
        """Prepares for tensors of `device`."""
        self.device = device
        self.has_histogram = has_histogram

    def reduce(self, tensors: Sequence[torch.Tensor], rows: torch.Tensor) -> None:
        """Enqueues on the current stream what fills `rows[i]` with the numbers of `tensors[i]`.

        `rows` is a contiguous `int64` tensor of the same device, of at least as many rows, each of
        `rows.row_words(has_histogram=…)` words.

        Raises:
            ValueError: If `reason_against` has a reason against one of the tensors.
        """
        raise NotImplementedError


def supports(tensor: torch.Tensor) -> bool:
    """Whether the numbers of `tensor` can be computed on its device."""
    return reason_against(tensor) is None


def reason_against(tensor: torch.Tensor) -> str | None:
    """Says why the numbers of `tensor` cannot be computed on its device, or `None` if they can."""
    raise NotImplementedError
