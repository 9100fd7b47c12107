"""Tensors in the memory of an Ascend device, which does not exist here."""

from __future__ import annotations

from typing import Any, NoReturn

from opscope.torchair._absent import absent

__all__ = ["create_npu_tensors"]


def create_npu_tensors(shape: Any, dtype: Any, addresses: Any) -> NoReturn:
    """Not available."""
    absent("llm_datadist.create_npu_tensors", "there is no memory of an Ascend device")
