"""Statistics of a tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Union

Number = Union[int, float, None]


@dataclass(frozen=True)
class Statistics:
    """Statistics of a tensor's elements; `None` marks a value that the dump lacks.

    If computed from elements, all values are present. NaN elements are counted and excluded from
    the other values; infinities are included. The standard deviation is that of a population.
    `docs/statistics.md` has the definitions.
    """

    source: str
    """`elements` if computed, `dump` if read from the dump."""
    n_elements: int | None = None
    n_nan: int | None = None
    n_pos_inf: int | None = None
    n_neg_inf: int | None = None
    n_zero: int | None = None
    n_neg_zero: int | None = None
    n_positive: int | None = None
    n_negative: int | None = None
    n_subnormal: int | None = None
    n_saturated: int | None = None
    min: Number = None
    max: Number = None
    sum: Number = None
    mean: Number = None
    std: Number = None
    l1: Number = None
    l2: Number = None
    columns: dict[str, str | None] = field(default_factory=dict)
    """The statistics as stored in the dump, by column title."""


# Titles in tables of AscendCL and MindSpore, without blanks and in lower case.
_TITLES = {
    "maxvalue": "max",
    "minvalue": "min",
    "avgvalue": "mean",
    "count": "n_elements",
    "nancount": "n_nan",
    "negativeinfcount": "n_neg_inf",
    "positiveinfcount": "n_pos_inf",
    "zerocount": "n_zero",
    "negativezerocount": "n_negative",
    "positivezerocount": "n_positive",
    "l2norm": "l2",
    "l2normvalue": "l2",
}


def from_columns(columns: Mapping[str, str | None], shape: Sequence[int] | None) -> Statistics:
    """The statistics in a dump."""
    known: dict[str, Number] = {}
    for title, text in columns.items():
        name = _TITLES.get(title.replace(" ", "").lower())
        if name is not None and text is not None:
            known[name] = _number(text)
    if shape is not None:
        known.setdefault("n_elements", math.prod(shape))
    return Statistics(source="dump", columns=dict(columns), **known)  # type: ignore[arg-type]


def _number(text: str) -> Number:
    try:
        return int(text)
    except ValueError:
        pass
    if text in ("True", "False", "true", "false"):
        return int(text.lower() == "true")
    try:
        return float(text)
    except ValueError:
        return None
