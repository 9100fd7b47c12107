"""Rows of results on a device: the statistics of one tensor, as words of eight bytes.

Rows are `int64` tensors. Counts and positions are integers; the other values are the bits of a
`float64`; the hash is two unsigned integers. `docs/statistics.md` has the definitions, and the
accuracy of sums compared with the CPU.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

# In the order of the core's `ElementCounts::NAMES`.
COUNTS = (
    "n_elements",
    "n_nan",
    "n_pos_inf",
    "n_neg_inf",
    "n_zero",
    "n_neg_zero",
    "n_negative",
    "n_subnormal",
    "n_saturated",
)
# Bits of `float64`, like the fields of the core's `Stats`, including infinities.
FLOATS = ("min", "max", "sum", "l1", "l2", "mean", "std")
# Positions in row-major order, -1 for none.
PLACES = ("first_nan", "first_pos_inf", "first_neg_inf")
HASH = ("hash_low", "hash_high")

NAMES = COUNTS + FLOATS + PLACES + HASH
N_WORDS = len(NAMES)
"""Words of a row without a histogram."""

N_BINS = 64
"""Bins of a histogram for each sign, positive elements first."""
N_HISTOGRAM_WORDS = 2 * N_BINS

WORD = {name: position for position, name in enumerate(NAMES)}
"""The position of each word."""


class Row(NamedTuple):
    """The statistics of one tensor."""

    n_elements: int
    n_nan: int
    n_pos_inf: int
    n_neg_inf: int
    n_zero: int
    n_neg_zero: int
    n_negative: int
    n_subnormal: int
    n_saturated: int
    min: float
    max: float
    sum: float
    l1: float
    l2: float
    mean: float
    std: float
    first_nan: int
    first_pos_inf: int
    first_neg_inf: int
    hash_low: int
    hash_high: int
    histogram: tuple[int, ...] = ()


def row_words(*, has_histogram: bool) -> int:
    """Returns the number of words in a row."""
    return N_WORDS + N_HISTOGRAM_WORDS if has_histogram else N_WORDS


def decode(words: Sequence[int]) -> Row:
    """Parses the signed words of a row.

    Raises:
        ValueError: If their number is not that of a row, with or without a histogram.
    """
    if len(words) not in (N_WORDS, N_WORDS + N_HISTOGRAM_WORDS):
        raise ValueError(f"a row has {N_WORDS} words, or {N_WORDS + N_HISTOGRAM_WORDS}; not {len(words)}")
    n_counts, n_floats = len(COUNTS), len(FLOATS)
    floats = struct.unpack(f"={n_floats}d", struct.pack(f"={n_floats}q", *words[n_counts : n_counts + n_floats]))
    hashes = (word % 2**64 for word in words[N_WORDS - len(HASH) : N_WORDS])
    places = words[n_counts + n_floats : N_WORDS - len(HASH)]
    return Row._make([*words[:n_counts], *floats, *places, *hashes, tuple(words[N_WORDS:])])
