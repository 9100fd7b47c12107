"""How to carry a plan out, as plain data, and what it takes to be a plan that can be carried out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .. import _visible
from .._native.capture import check_acl_json, check_mindspore_json, read_configuration
from .._plan import STEP_MAX, DumpPlan, StepRange

__all__ = ["Config", "DumpPlan", "acl_json_text", "check", "check_acl_json", "mindspore_text", "parse_numbers"]

_log = _visible.logger()
MODES = ("input", "output", "all")
DATA = ("tensor", "stats", "table")
STAGES = ("original", "optimized")
EXCEPTION = ("brief", "norm", "detail")


@dataclass(frozen=True)
class Config:
    """How to carry a plan out."""

    # Most bytes of tensors that wait to be written; `None` leaves it to the core (256 MiB).
    queue_bytes_max: int | None = None
    # Number of threads that write; `None` leaves it to the core.
    n_writers: int | None = None
    # What the directory of a graph is called below that of its name: the graph's number, or 1 for all.
    model_id: str = "graph"
    # Most bytes of values that are watched at once; the oldest ones are given up beyond.
    watch_bytes_max: int = 1 << 30
    # Whether mutated inputs are written inside the graph, as part of what is dumped.
    keep_inference_input_mutations: bool = True
    # What AOT autograd is to decompose; nothing by default, so that the operators are those of eager mode.
    decompositions: dict | None = None


def parse_numbers(given: int | str | Iterable | None, what: str) -> tuple[StepRange, ...] | None:
    """Ranges of numbers of a number, of a text such as `0|3|5-8`, or of numbers and pairs; `None` is every number.

    >>> parse_numbers("0|5-8", "steps")
    (StepRange(first=0, last=0), StepRange(first=5, last=8))
    >>> parse_numbers([1, (3, 4)], "steps")
    (StepRange(first=1, last=1), StepRange(first=3, last=4))
    """
    if given is None or given == "":
        return None
    if isinstance(given, int):
        given = [given]
    if isinstance(given, str):
        given = [_item(item, given, what) for item in given.split("|")]
    ranges = []
    for item in given:
        first, last = (item, item) if isinstance(item, int) else item
        if not 0 <= first <= last:
            raise ValueError(f"{what} {first} to {last}: the first must be 0 or more and not behind the last")
        ranges.append(StepRange(min(first, STEP_MAX), min(last, STEP_MAX)))
    return tuple(ranges)


def _item(item: str, text: str, what: str) -> tuple[int, int]:
    numbers = item.split("-")
    if len(numbers) > 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        raise ValueError(f"{what} `{text}`: `{item}` is no number and no range such as 5-8")
    # Longer numbers are beyond any step, and slow to read.
    first, last = (
        int(number[-20:]) if len(number.lstrip("0")) <= 20 else STEP_MAX for number in (numbers[0], numbers[-1])
    )
    return first, last


def acl_json_text(plan: Any) -> str | None:
    """The text of a plan's configuration file, if it has one."""
    return getattr(plan.acl_json, "text", plan.acl_json)


def mindspore_text(plan: Any) -> str | None:
    """The text of a plan's configuration of MindSpore, if it has one."""
    found = getattr(plan, "mindspore_json", None)
    if found is None:
        return None
    if isinstance(found, str) and found.lstrip("\ufeff \t\r\n").startswith("{"):
        return found
    return read_configuration(os.fspath(found))


def is_asked_for(plan: Any) -> bool:
    """Whether a plan's configuration asks for anything, if it has one."""
    if (text := acl_json_text(plan)) is not None:
        return check_acl_json(text)
    if (text := mindspore_text(plan)) is not None:
        is_asked, warnings = check_mindspore_json(text, plan.target, plan.device)
        for warning in warnings:
            _log.warning("the configuration of MindSpore: %s", warning)
        return is_asked
    return True


def purpose(plan: Any) -> str:
    """What the options of a plan ask for; a configuration file says it itself."""
    if getattr(plan, "watch", ()):
        return "watch"
    if exception := getattr(plan, "exception", None):
        return f"exception_{'norm' if exception is True else exception}"
    return "values"


def _check_purpose(plan: Any) -> None:
    exception = getattr(plan, "exception", None)
    if exception not in (None, False, True, *EXCEPTION):
        raise ValueError(f"exception `{exception}` is none of True, {', '.join(EXCEPTION)}")
    asked = [name for name in ("watch", "exception") if getattr(plan, name, None)]
    if len(asked) > 1:
        raise ValueError("watch and exception are dumps of their own: one backend makes one of them")
    if asked and acl_json_text(plan) is not None:
        raise ValueError(f"{asked[0]} cannot be given beside acl_json, which says what is dumped")


def check(plan: Any) -> None:
    """Raises what is wrong with a plan, whichever class it is of."""
    if plan.mode not in MODES:
        raise ValueError(f"mode `{plan.mode}` is none of {', '.join(MODES)}")
    if plan.data not in DATA:
        raise ValueError(f"data `{plan.data}` is none of {', '.join(DATA)}")
    _check_purpose(plan)
    if not os.fspath(plan.path):
        raise ValueError("the path of the dump is empty")
    if (text := acl_json_text(plan)) is not None:
        check_acl_json(text)
        if getattr(plan, "mindspore_json", None) is not None:
            raise ValueError("a dump has the form of AscendCL or that of MindSpore: there is a configuration of each")
    if (text := mindspore_text(plan)) is not None:
        check_mindspore_json(text, plan.target, plan.device)
    stage = getattr(plan, "stage", None)
    if stage is not None and stage not in STAGES:
        raise ValueError(f"stage `{stage}` is none of {', '.join(STAGES)}")
