"""The form of `dump_step`: numbers and ranges of steps with a vertical bar between them, `0|2-5|10`.

Read once from left to right. TorchAir matches a regular expression that takes minutes for two dozen digits with a
letter after them; it also lets some texts pass that nothing later understands, which are refused here.
"""

from __future__ import annotations

from opscope._plan import STEP_MAX, StepRange

# As many as AscendCL takes.
ITEMS_MAX = 100
# Digits of `STEP_MAX`; a number with more is greater.
_DIGITS_MAX = 20
# How much of a wrong item an error shows.
_SHOWN_MAX = 40


def parse(text: str) -> tuple[StepRange, ...] | None:
    """The ranges of a text, or `None` for the empty one, which means every step. Raises `ValueError`."""
    if text == "":
        return None
    # One more than the maximum is enough to know; the rest of a long text is not looked at.
    items = text.split("|", ITEMS_MAX + 1)
    if has_trailing_bar(text) and len(items) <= ITEMS_MAX + 1:
        items.pop()
    if len(items) > ITEMS_MAX:
        raise ValueError(f"more than {ITEMS_MAX} items")
    return tuple(_item(item) for item in items)


def has_trailing_bar(text: str) -> bool:
    """Whether a text ends in one bar too many, which TorchAir overlooks."""
    return text.endswith("|") and len(text) > 1


def _item(text: str) -> StepRange:
    first, dash, last = text.partition("-")
    low = _number(first, text)
    high = _number(last, text) if dash else low
    if low > high:
        raise ValueError(f"the range `{short(text)}` goes backwards")
    return StepRange(low, high)


def _number(digits: str, item: str) -> int:
    # `isdigit` alone would let digits of other scripts pass, and `int` underscores, signs and blanks.
    if not (digits.isascii() and digits.isdigit()):
        what = "an empty item" if item == "" else f"`{short(item)}`"
        raise ValueError(f"{what} is neither a number nor a range of numbers")
    digits = digits.lstrip("0") or "0"
    return STEP_MAX if len(digits) > _DIGITS_MAX else min(int(digits), STEP_MAX)


def short(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
