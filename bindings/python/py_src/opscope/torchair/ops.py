"""Operators that TorchAir adds to PyTorch's. Most of them are for Ascend devices only."""

from __future__ import annotations

from typing import Any, NoReturn

from opscope.torchair._absent import absent

__all__ = [
    "npu_create_tagged_event",
    "npu_fused_infer_attention_score",
    "npu_fused_infer_attention_score_v2",
    "npu_print",
    "npu_record_tagged_stream",
    "npu_tagged_event_record",
    "npu_tagged_event_wait",
    "record",
    "wait",
]

_STREAMS = "operators run one after the other, without streams and events of an Ascend device"
_ATTENTION = "it is an operator of Ascend devices; torch.nn.functional.scaled_dot_product_attention runs everywhere"


def npu_print(*args: Any, summarize_size: int = 3, tensor_detail: bool = False) -> NoReturn:
    """Not available."""
    absent("ops.npu_print", "torch.ops.higher_order.print and dumps show values of a compiled graph")


def npu_fused_infer_attention_score(*args: Any, **kwargs: Any) -> NoReturn:
    """Not available: an operator of Ascend devices."""
    absent("ops.npu_fused_infer_attention_score", _ATTENTION)


def npu_fused_infer_attention_score_v2(*args: Any, **kwargs: Any) -> NoReturn:
    """Not available: an operator of Ascend devices."""
    absent("ops.npu_fused_infer_attention_score_v2", _ATTENTION)


def npu_create_tagged_event(tag: str) -> NoReturn:
    """Not available: there are no such events."""
    absent("ops.npu_create_tagged_event", _STREAMS)


def npu_tagged_event_record(event: Any) -> NoReturn:
    """Not available: there are no such events."""
    absent("ops.npu_tagged_event_record", _STREAMS)


def npu_tagged_event_wait(event: Any) -> NoReturn:
    """Not available: there are no such events."""
    absent("ops.npu_tagged_event_wait", _STREAMS)


def npu_record_tagged_stream(input: Any, tagged_stream: str) -> NoReturn:
    """Not available: there are no such streams."""
    absent("ops.npu_record_tagged_stream", _STREAMS)


def record() -> NoReturn:
    """Not available: there are no such events."""
    absent("ops.record", _STREAMS)


def wait(tensors: Any) -> NoReturn:
    """Not available: there are no such events."""
    absent("ops.wait", _STREAMS)
