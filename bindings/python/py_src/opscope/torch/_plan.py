"""How to carry out a plan, as plain data, and checks of plans."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import _options, _visible
from .._native.capture import check_acl_json, check_mindspore_json, read_configuration
from .._argument import shown
from .._plan import STEP_MAX, DumpPlan, StepRange

__all__ = ["Config", "DumpPlan", "acl_json_text", "check", "check_acl_json", "check_config", "mindspore_text", "parse_numbers"]

_log = _visible.logger()
MODES = ("input", "output", "all")
DATA = ("tensor", "stats", "table")
FORMS = ("native", "acl")
STAGES = ("original", "optimized")
WHEN_BEHIND = ("wait", "drop")
EXCEPTION = ("brief", "norm", "detail")


@dataclass(frozen=True)
class Config:
    """Settings for carrying out a plan."""

    # Maximum bytes of tensors that wait to be written; `None` means the core's default (256 MiB).
    queue_bytes_max: int | None = None
    # Number of writer threads; `None` means the core's default.
    n_writers: int | None = None
    # Maximum bytes of host memory for copies from devices; `None` means 256 MiB.
    device_bytes_max: int | None = None
    # What happens at these limits: the program waits (`wait`), or tensors are dropped and counted
    # (`drop`).
    when_behind: str = "wait"
    # Name of the directory inside the one named after the graph: the graph's number, or 1 for all.
    model_id: str = "graph"
    # Maximum bytes of watched values; beyond, the oldest are dropped.
    watch_bytes_max: int = 1 << 30
    # Whether mutated inputs are written inside the graph, as part of the dump.
    keep_inference_input_mutations: bool = True
    # Decompositions for AOT autograd; none by default, so that the operators are those of eager
    # mode.
    decompositions: dict | None = None


def parse_numbers(given: int | str | Iterable | None, what: str) -> tuple[StepRange, ...] | None:
    """Ranges from a number, a text such as `0|3|5-8`, or numbers and pairs; `None` means every
    number.
    
    >>> parse_numbers("0|5-8", "steps")
    (StepRange(first=0, last=0), StepRange(first=5, last=8))
    >>> parse_numbers([1, (3, 4)], "steps")
    (StepRange(first=1, last=1), StepRange(first=3, last=4))
    """
    if given is None or (isinstance(given, str) and given == ""):
        return None
    if isinstance(given, str):
        given = [_item(item, given, what) for item in given.split("|")]
    elif _is_number(given):
        given = [given]
    elif not isinstance(given, Iterable) or isinstance(given, (bytes, bytearray, Mapping)):
        raise _no_numbers(given, what)
    ranges = []
    for item in given:
        if _is_number(item):
            first = last = item
        elif isinstance(item, (tuple, list)) and len(item) == 2 and all(map(_is_number, item)):
            first, last = item
        else:
            raise _no_numbers(item, what)
        if not 0 <= first <= last:
            raise ValueError(f"{what} {shown(first)} to {shown(last)}: expected first >= 0 and last >= first")
        ranges.append(StepRange(min(first, STEP_MAX), min(last, STEP_MAX)))
    return tuple(ranges)


def _is_number(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _no_numbers(given: Any, what: str) -> TypeError:
    return TypeError(
        f"{what}: a number, a text such as `0|5-8`, or numbers and pairs of them are expected, got {shown(given)} "
        f"({type(given).__name__})"
    )


def _item(item: str, text: str, what: str) -> tuple[int, int]:
    numbers = item.split("-")
    if len(numbers) > 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        text, item = _options.quoted(text), _options.quoted(item)
        raise ValueError(f"{what} `{text}`: `{item}` is neither a number nor a range such as 5-8")
    # Longer numbers exceed any step, and are slow to parse.
    first, last = (
        int(number[-20:]) if len(number.lstrip("0")) <= 20 else STEP_MAX for number in (numbers[0], numbers[-1])
    )
    return first, last


def acl_json_text(plan: Any) -> str | None:
    """The text of a plan's configuration file, if any."""
    return getattr(plan.acl_json, "text", plan.acl_json)


def mindspore_text(plan: Any) -> str | None:
    """The text of a plan's MindSpore configuration, if any."""
    found = getattr(plan, "mindspore_json", None)
    if found is None:
        return None
    if isinstance(found, str) and found.lstrip("\ufeff \t\r\n").startswith("{"):
        return found
    return read_configuration(os.fspath(found))


def is_asked_for(plan: Any) -> bool:
    """Whether a plan's configuration requests anything, if there is one."""
    if (text := acl_json_text(plan)) is not None:
        return check_acl_json(text)
    if (text := mindspore_text(plan)) is not None:
        is_asked, warnings = check_mindspore_json(text, plan.target, plan.device)
        for warning in warnings:
            _log.warning("the configuration of MindSpore: %s", warning)
        return is_asked
    return True


def purpose(plan: Any) -> str:
    """Returns the purpose that a plan's options request; a configuration file states its own."""
    if getattr(plan, "watch", ()):
        return "watch"
    if exception := getattr(plan, "exception", None):
        return f"exception_{'norm' if exception is True else exception}"
    return "values"


def _check_purpose(plan: Any) -> None:
    exception = getattr(plan, "exception", None)
    _options.word("exception", exception, (None, False, True, *EXCEPTION))
    asked = [name for name in ("watch", "exception") if getattr(plan, name, None)]
    if len(asked) > 1:
        raise ValueError("watch and exception are separate dumps: a backend makes only one of them")
    if asked and acl_json_text(plan) is not None:
        raise ValueError(f"{asked[0]} cannot be combined with acl_json, which says what is dumped")


def check(plan: Any) -> None:
    """Raises if a plan, of any class, is invalid."""
    _options.word("mode", plan.mode, MODES)
    _options.word("data", plan.data, DATA)
    _options.word("form", getattr(plan, "form", "acl"), FORMS)
    for name in ("enabled", "quant_dumpable"):
        _options.boolean(name, getattr(plan, name, False))
    _options.names("layers", plan.layers)
    _options.names("watch", getattr(plan, "watch", ()))
    for name in ("steps", "ranks"):
        _options.ranges(name, getattr(plan, name, None))
    _options.whole("device", getattr(plan, "device", 0), 0)
    _options.whole("rank", getattr(plan, "rank", None), 0, is_optional=True)
    _options.path("path", plan.path)
    _check_purpose(plan)
    if not os.fspath(plan.path):
        raise ValueError("the path of the dump is empty")
    if (text := acl_json_text(plan)) is not None:
        check_acl_json(text)
        if getattr(plan, "mindspore_json", None) is not None:
            raise ValueError("a dump has the form of AscendCL or of MindSpore, but both configurations are set")
    if (text := mindspore_text(plan)) is not None:
        check_mindspore_json(text, plan.target, plan.device)
    stage = getattr(plan, "stage", None)
    _options.word("stage", stage, (None, *STAGES))


def check_config(config: Config) -> None:
    """Raises if the settings of a plan are invalid."""
    _options.whole("queue_bytes_max", config.queue_bytes_max, 1, is_optional=True)
    _options.whole("n_writers", config.n_writers, 1, is_optional=True)
    _options.whole("device_bytes_max", config.device_bytes_max, 1, is_optional=True)
    _options.word("when_behind", config.when_behind, WHEN_BEHIND)
    _options.whole("watch_bytes_max", config.watch_bytes_max, 1)
    _options.boolean("keep_inference_input_mutations", config.keep_inference_input_mutations)
    _options.mapping("decompositions", config.decompositions)
    if not isinstance(config.model_id, str) and config.model_id != 1:
        raise TypeError(f"model_id: `graph` or 1 is expected, got {shown(config.model_id)}")
