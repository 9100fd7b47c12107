"""TorchAir functions without a meaning here. They can be imported, and raise when called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from opscope.torchair.core.utils import logger

F = TypeVar("F", bound=Callable[..., Any])


def absent(name: str, why: str) -> NoReturn:
    """Raises `NotImplementedError` for a function."""
    raise NotImplementedError(f"torchair.{name} is not available in opscope: {why}")


def dynamo_export(*arguments: Any, **keywords: Any) -> NoReturn:
    """Not available: its files are for Ascend devices."""
    absent("dynamo_export", "it writes models for Ascend devices; torch.onnx.export writes models that opscope runs")


def use_internal_format_weight(model: Any) -> NoReturn:
    """Not available: the layouts are those of Ascend devices."""
    absent("use_internal_format_weight", "it gives weights the memory layouts of Ascend devices")


def npu_format_cast_via_cpu(*arguments: Any, **keywords: Any) -> NoReturn:
    """Not available: the layouts are those of Ascend devices."""
    absent("npu_format_cast_via_cpu", "it gives tensors the memory layouts of Ascend devices")


def register_replacement(*arguments: Any, **keywords: Any) -> NoReturn:
    """Not available: graphs run as written."""
    absent("register_replacement", "graphs run as written, without replacing operators")


def register_fx_node_ge_converter(aten_op: Any) -> Callable[[F], F]:
    """A decorator without effect: operators are not converted to those of the graph engine."""
    logger.warning_once("a converter for %s has no effect here: there is no graph engine to convert for", aten_op)
    return lambda converter: converter


def patch_for_hcom() -> None:
    """Does nothing: PyTorch's collectives can be traced without it."""
    logger.warning("patch_for_hcom has no effect: collective operations are traced without it")
