"""Parses `dump_step`: numbers and ranges of steps separated by vertical bars, `0|2-5|10`.

A single pass from left to right. TorchAir matches a regular expression that takes minutes for two
dozen digits followed by a letter, and accepts some texts that later stages do not understand; they
are refused here.
"""

from __future__ import annotations

from opscope._plan import STEP_MAX, StepRange

# The same limit as AscendCL's.
ITEMS_MAX = 100
# Digits of `STEP_MAX`; a number with more is greater.
_DIGITS_MAX = 20
# Maximum length of a wrong item in an error.
_SHOWN_MAX = 40


def parse(text: str) -> tuple[StepRange, ...] | None:
    """The ranges of a text, or `None` for an empty one, which means every step. Raises
    `ValueError`."""
    if text == "":
        return None
    # One item more than the maximum suffices; the rest of a long text is not read.
    items = text.split("|", ITEMS_MAX + 1)
    if has_trailing_bar(text) and len(items) <= ITEMS_MAX + 1:
        items.pop()
    if len(items) > ITEMS_MAX:
        raise ValueError(f"more than {ITEMS_MAX} items")
    return tuple(_item(item) for item in items)


def has_trailing_bar(text: str) -> bool:
    """Whether a text has a trailing bar, which TorchAir ignores."""
    return text.endswith("|") and len(text) > 1


def _item(text: str) -> StepRange:
    first, dash, last = text.partition("-")
    low = _number(first, text)
    high = _number(last, text) if dash else low
    if low > high:
        raise ValueError(f"the range `{short(text)}` goes backwards")
    return StepRange(low, high)


def _number(digits: str, item: str) -> int:
    # `isdigit` alone accepts digits of other scripts, and `int` underscores, signs and blanks.
    if not (digits.isascii() and digits.isdigit()):
        what = "an empty item" if item == "" else f"`{short(item)}`"
        raise ValueError(f"{what} is neither a number nor a range of numbers")
    digits = digits.lstrip("0") or "0"
    return STEP_MAX if len(digits) > _DIGITS_MAX else min(int(digits), STEP_MAX)


def short(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
