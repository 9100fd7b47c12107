"""Statistics of a tensor by plain torch operators, for devices that Triton does not support.

They read the elements many times and need memory for copies of a segment, so this is a fallback.
"""

from __future__ import annotations

import torch

from .rows import N_BINS
from .views import DTYPES

# The words of a line, the lines of a stripe and the multipliers are those of `kernels.py`.
_LINE = 512
_STRIPE_LINES = 16
_STRIPE_BYTES = 4 * _LINE * _STRIPE_LINES
# A segment limits how much is copied at a time.
_SEGMENT_STRIPES = 256

_FACTORS = (0x9E3779B1, 0x85EBCA6B)
_LINES = ((0xC2B2AE35, 0x27D4EB2F, 0x165667B1, 0xD3A2646D), (0xCC9E2D51, 0x1B873593, 0xE6546B65, 0x8F2B1A2D))
_KEYS = (0x9E3779B97F4A7C15 - 2**64, 0xD1342543DE82EF95 - 2**64)
_NOWHERE = 2**63 - 1

# Bits of the smallest normal and the largest float.
_FLOATS_BY_NAME = {
    "float64": (0x0010000000000000, 0x7FEFFFFFFFFFFFFF),
    "float32": (0x00800000, 0x7F7FFFFF),
    "float16": (0x0400, 0x7BFF),
    "bfloat16": (0x0080, 0x7F7F),
    "float8_e4m3fn": (0x08, 0x7E),
    "float8_e5m2": (0x04, 0x7B),
    "float8_e4m3fnuz": (0x08, 0x7F),
    "float8_e5m2fnuz": (0x04, 0x7F),
}
_FLOATS = {dtype: _FLOATS_BY_NAME[name] for dtype, name in DTYPES.items() if name in _FLOATS_BY_NAME}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def row(tensor: torch.Tensor, *, has_histogram: bool) -> torch.Tensor:
    """Computes the row of a tensor, as `int64` on its device."""
    n = tensor.numel()
    item = tensor.element_size()
    if not tensor.is_contiguous() and n <= _SEGMENT_STRIPES * _STRIPE_BYTES // item:
        tensor = tensor.contiguous()
    # Elements repeated by `expand` are copied one segment at a time.
    flat = tensor.view(-1) if tensor.is_contiguous() else None
    n_segment = _SEGMENT_STRIPES * _STRIPE_BYTES // item
    total: _Part | None = None
    for first in range(0, max(n, 1), n_segment):
        n_here = min(n_segment, n - first)
        segment = flat[first : first + n_here] if flat is not None else _gathered(tensor, first, n_here)
        part = _Part(segment, first, has_histogram)
        total = part if total is None else total.joined(part)
    assert total is not None
    return total.row(n * item)


def _gathered(tensor: torch.Tensor, first: int, n: int) -> torch.Tensor:
    """Copies `n` elements in row-major order, starting at `first`."""
    index = torch.arange(first, first + n, device=tensor.device)
    offset = torch.zeros_like(index)
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride())):
        offset += index % size * stride
        index //= size
    extent = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + 1
    memory = tensor.as_strided((extent,), (1,)).view(_BITS[tensor.element_size()])
    return memory[offset].view(tensor.dtype)


def _shifted(word: torch.Tensor, n: int) -> torch.Tensor:
    """A logical right shift."""
    return (word >> n) & ((1 << (64 - n)) - 1)


def _signed(word: int) -> int:
    """The signed value of the lowest 64 bits."""
    return (word + 2**63) % 2**64 - 2**63


def _mixed(word: torch.Tensor) -> torch.Tensor:
    word = (word ^ _shifted(word, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
    word = (word ^ _shifted(word, 27)) * (0x94D049BB133111EB - 2**64)
    return word ^ _shifted(word, 31)


def _hash(flat: torch.Tensor, first_stripe: int) -> list[torch.Tensor]:
    """The two halves of the hash of contiguous elements, before the length is mixed in."""
    memory = flat.view(torch.uint8)
    n_stripes = -(-memory.numel() // _STRIPE_BYTES)
    padded = torch.nn.functional.pad(memory, (0, n_stripes * _STRIPE_BYTES - memory.numel()))
    words = padded.view(torch.int32).view(n_stripes, _STRIPE_LINES, _LINE)
    place = torch.arange(n_stripes * _LINE, device=flat.device).view(n_stripes, _LINE) + (first_stripe * _LINE + 1)
    halves = []
    for factor, lines, key in zip(_FACTORS, _LINES, _KEYS):
        column = torch.zeros_like(place)
        for line in range(_STRIPE_LINES):
            position = line % len(lines)
            if position == 0:
                column = column * factor
            column = column + (words[:, line].to(torch.int64) & 0xFFFFFFFF) * lines[position]
        halves.append(_mixed(column + place * key).sum())
    return halves


def _exact(flat: torch.Tensor) -> torch.Tensor:
    """The values as `float64`."""
    if DTYPES[flat.dtype] == "float8_e8m0fnu":
        bits = flat.view(torch.uint8).to(torch.int64)
        value = ((bits + (1023 - 127)) << 52).view(torch.float64)
        return torch.where(bits == 0xFF, torch.nan, value)
    if DTYPES[flat.dtype] == "uint64":
        # Torch converts as if the sign bit were one.
        bits = flat.view(torch.int64)
        # Converts half of it, keeping the rounding bit, and doubles the result.
        half = (_shifted(bits, 1) | (bits & 1)).to(torch.float64) * 2.0
        return torch.where(bits < 0, half, bits.to(torch.float64))
    if flat.element_size() == 1 and flat.dtype in _FLOATS:
        return flat.to(torch.float32).to(torch.float64)
    return flat.to(torch.float64)


class _Part:
    """The statistics of a segment, as scalar tensors on the device."""

    def __init__(self, flat: torch.Tensor, first: int, has_histogram: bool) -> None:
        device = flat.device
        value = _exact(flat)
        inf = torch.full((1,), torch.inf, dtype=torch.float64, device=device)
        is_nan, is_inf = torch.isnan(value), torch.isinf(value)
        is_finite = ~(is_nan | is_inf)
        finite = torch.where(is_finite, value, 0.0)
        is_zero = value == 0.0
        is_neg_zero, is_subnormal, is_saturated = _kinds_of_bits(flat, is_zero)
        is_pos_inf, is_neg_inf = is_inf & (value > 0.0), is_inf & (value < 0.0)
        self.counts = torch.stack(
            [
                torch.full((), flat.numel(), dtype=torch.int64, device=device),
                *(
                    kind.sum()
                    for kind in (
                        is_nan,
                        is_pos_inf,
                        is_neg_inf,
                        is_zero,
                        is_neg_zero,
                        value < 0.0,
                        is_subnormal,
                        is_saturated,
                    )
                ),
            ]
        )
        # One additional element, so that nothing is empty.
        self.min = torch.cat([torch.where(is_finite, value, torch.inf), inf]).amin()
        self.max = torch.cat([torch.where(is_finite, value, -torch.inf), -inf]).amax()
        self.sum, self.l1 = finite.sum(), finite.abs().sum()
        top = torch.where(is_finite.any(), torch.maximum(self.min.abs(), self.max.abs()), 0.0)
        # The largest square is 1, so none overflows and no significant one vanishes.
        self.scale = torch.where(top > 0.0, top, 1.0)
        self.squares = (finite / self.scale).square().sum()
        self.n_finite = is_finite.sum().to(torch.float64)
        self.mean = self.sum / self.n_finite.clamp(min=1.0)
        self.deviation = torch.where(is_finite, value - self.mean, 0.0).square().sum()
        self.deviation = torch.where(self.min >= self.max, 0.0, self.deviation)
        self.places = torch.stack([_first(kind, first) for kind in (is_nan, is_pos_inf, is_neg_inf)])
        self.hash = torch.stack(_hash(flat, first * flat.element_size() // _STRIPE_BYTES))
        self.histogram = _histogram(value) if has_histogram else None

    def joined(self, after: _Part) -> _Part:
        """Combines it with the following elements."""
        n_both = (self.n_finite + after.n_finite).clamp(min=1.0)
        distance = after.mean - self.mean
        between = distance.square() * (self.n_finite * (after.n_finite / n_both))
        between = torch.where((self.n_finite > 0) & (after.n_finite > 0), between, 0.0)
        self.deviation = self.deviation + after.deviation + between
        self.counts = self.counts + after.counts
        self.min, self.max = torch.minimum(self.min, after.min), torch.maximum(self.max, after.max)
        self.sum, self.l1 = self.sum + after.sum, self.l1 + after.l1
        # A scale of 1 may come from zeros alone.
        scale = torch.where(self.squares > 0, self.scale, 0.0)
        scale = torch.maximum(scale, torch.where(after.squares > 0, after.scale, 0.0))
        scale = torch.where(scale > 0, scale, 1.0)
        self.squares = self.squares * (self.scale / scale).square() + after.squares * (after.scale / scale).square()
        self.scale = scale
        self.n_finite = self.n_finite + after.n_finite
        self.mean = self.sum / n_both
        self.places = torch.minimum(self.places, after.places)
        self.hash = self.hash + after.hash
        if self.histogram is not None:
            self.histogram = self.histogram + after.histogram
        return self

    def row(self, n_bytes: int) -> torch.Tensor:
        """Adds infinities, and assembles the words of a row."""
        n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg_zero = self.counts[:6]
        n_numbers = (n - n_nan).to(torch.float64)
        has_pos, has_neg = n_pos_inf > 0, n_neg_inf > 0
        has_infinity = has_pos | has_neg
        zero = torch.zeros_like(self.min)
        least = torch.where(self.min == 0.0, torch.where(n_neg_zero > 0, -zero, zero), self.min)
        most = torch.where(self.max == 0.0, torch.where(n_zero > n_neg_zero, zero, -zero), self.max)
        total = torch.where(has_pos, torch.inf, torch.where(has_neg, -torch.inf, self.sum))
        total = torch.where(has_pos & has_neg, torch.nan, total)
        # 0/0 is NaN, as are the mean and the deviation of no elements.
        std = (self.deviation / n_numbers).sqrt()
        reals = torch.stack(
            [
                torch.where(has_neg, -torch.inf, least),
                torch.where(has_pos, torch.inf, most),
                total,
                torch.where(has_infinity, torch.inf, self.l1),
                torch.where(has_infinity, torch.inf, self.squares.sqrt() * self.scale),
                total / n_numbers,
                torch.where(has_infinity, torch.nan, std),
            ]
        )
        places = torch.where(self.places == _NOWHERE, -1, self.places)
        # Added one by one, because a tensor of both keys would have to be copied to the device.
        halves = [half + _signed(key * n_bytes) for half, key in zip(self.hash, _KEYS)]
        words = [self.counts, reals.view(torch.int64), places, _mixed(torch.stack(halves))]
        return torch.cat(words if self.histogram is None else [*words, self.histogram])


def _kinds_of_bits(flat: torch.Tensor, is_zero: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Masks of negative zeros, subnormal and saturated elements."""
    none = torch.zeros_like(is_zero)
    bits = flat.view(_BITS[flat.element_size()])
    if flat.dtype in _FLOATS:
        n_bits = 8 * flat.element_size()
        magnitude = bits & (2 ** (n_bits - 1) - 1)
        smallest_normal, largest = _FLOATS[flat.dtype]
        has_sign = bits != magnitude
        # In dtypes without -0, its bits mean NaN.
        is_nan_code = has_sign & (magnitude == 0) & ~is_zero
        is_subnormal = (magnitude > 0) & (magnitude < smallest_normal)
        return has_sign & is_zero, is_subnormal, (magnitude == largest) & ~is_nan_code
    if flat.dtype is torch.bool:
        return none, none, none
    if DTYPES[flat.dtype] == "float8_e8m0fnu":
        return none, none, (bits == 0) | (bits == 0xFE)
    if flat.dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        bounds = torch.iinfo(flat.dtype)
        return none, none, (flat == bounds.min) | (flat == bounds.max)
    # Unsigned multi-byte integers support few operators; their extreme bits are 0 and -1.
    return none, none, (bits == 0) | (bits == (0xFF if flat.element_size() == 1 else -1))


def _first(kind: torch.Tensor, first: int) -> torch.Tensor:
    """The position of the first element of a kind, or one beyond all positions."""
    index = torch.arange(first, first + kind.numel() + 1, device=kind.device)
    index[-1] = _NOWHERE
    padded = torch.nn.functional.pad(kind, (0, 1), value=True)
    return torch.where(padded, index, _NOWHERE).amin()


def _histogram(value: torch.Tensor) -> torch.Tensor:
    """Counts by sign and power of two."""
    exponent = ((value.view(torch.int64) >> 52) & 0x7FF) - 1023
    place = (exponent + 40).clamp(0, N_BINS - 1) + torch.where(value < 0.0, N_BINS, 0)
    is_counted = torch.isfinite(value) & (value != 0.0)
    counts = torch.zeros(2 * N_BINS + 1, dtype=torch.int64, device=value.device)
    # Uncounted elements go after the last bin.
    place = torch.where(is_counted, place, 2 * N_BINS)
    return counts.scatter_add_(0, place, torch.ones_like(place))[: 2 * N_BINS]
