"""Types and functions for converters to graph engine operators, which do not exist here.

The types only make annotations of such converters valid.
"""

from __future__ import annotations

from typing import Any, NoReturn

from opscope.torchair._absent import absent

__all__ = ["Cast", "Clone", "Const", "DataType", "Format", "Tensor", "TensorSpec", "custom_op"]

_ENGINE = "there is no graph engine"


class _Absent:
    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        absent(f"ge.{type(self).__name__}", _ENGINE)


class Tensor(_Absent):
    """An output of a graph engine operator."""


class TensorSpec(_Absent):
    """Type and shape of such an output."""


class DataType(_Absent):
    """Types of the graph engine."""


class Format(_Absent):
    """Layouts of the graph engine."""


def custom_op(*arguments: Any, **keywords: Any) -> NoReturn:
    """Not available."""
    absent("ge.custom_op", _ENGINE)


def Const(*arguments: Any, **keywords: Any) -> NoReturn:
    """Not available."""
    absent("ge.Const", _ENGINE)


def Cast(*arguments: Any, **keywords: Any) -> NoReturn:
    """Not available."""
    absent("ge.Cast", _ENGINE)


def Clone(*arguments: Any, **keywords: Any) -> NoReturn:
    """Not available."""
    absent("ge.Clone", _ENGINE)
