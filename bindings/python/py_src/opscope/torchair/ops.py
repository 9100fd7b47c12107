"""Operators that TorchAir adds to PyTorch's. Those for Ascend devices can only be imported."""

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
    "save_npugraph_tensor",
    "wait",
]

_STREAMS = "operators run one after the other, without streams and events of an Ascend device"
_ATTENTION = "it is an operator of Ascend devices; torch.nn.functional.scaled_dot_product_attention runs everywhere"


def npu_print(*args: Any, summarize_size: int = 3, tensor_detail: bool = False) -> None:
    """Prints tensors, numbers and texts in one line, in a compiled graph without a graph break and
    in eager mode.

    For an axis with more than twice `summarize_size` elements, prints the first and last ones; -1
    prints all. With `tensor_detail` also prints shapes and dtypes. Prints nothing in backward.
    """
    # Imported here, because the package is imported without torch.
    from opscope.torch import _printing

    if isinstance(summarize_size, bool) or not isinstance(summarize_size, int) or summarize_size < -1:
        raise ValueError(f"summarize_size: a number of elements or -1 is expected, got {summarize_size!r}")
    _printing.npu_print(*args, summarize_size=summarize_size, tensor_detail=bool(tensor_detail))


def save_npugraph_tensor(t: Any, *, save_path: str) -> None:
    """Saves a tensor, in a compiled graph without a graph break and in eager mode.

    `x.pt` becomes `x_device_0_0.pt`, and `x_device_0_1.pt` the next time; for a name that ends in
    `.bin`, writes raw bytes. Corresponds to `torch_npu.save_npugraph_tensor` in TorchAir.
    """
    from opscope.torch import _printing

    if not save_path.endswith((".pt", ".bin")):
        raise ValueError(f"save_path: `{save_path}` ends neither in .pt nor in .bin")
    _printing.save_tensor(t, save_path)


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
