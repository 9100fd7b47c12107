"""What to dump, as plain data, and what it takes to be a plan that can be carried out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .._native.capture import check_acl_json

MODES = ("input", "output", "all")
DATA = ("tensor", "stats")
_STEP_MAX = 2**64 - 1


@dataclass(frozen=True)
class DumpPlan:
    """What to dump, and where to."""

    # Whether anything is dumped at all.
    enabled: bool = True
    # The root of the dump, which is created if need be.
    path: str = "./"
    # Which side of an operator: `input`, `output` or `all`.
    mode: str = "all"
    # Pairs of a first and a last step, both included; `None` is every step.
    steps: tuple[tuple[int, int], ...] | None = None
    # Names of operators, modules or kinds of operators; empty is every operator.
    layers: tuple[str, ...] = ()
    # `tensor` for all elements, `stats` for a table of statistics.
    data: str = "tensor"
    # Of no effect: operators run one by one here, so no value from before a quantisation is lost.
    quant_dumpable: bool = False
    # Which of the processes that run together write, as pairs like `steps`; `None` is every one.
    ranks: tuple[tuple[int, int], ...] | None = None
    # A configuration in the form of AscendCL's acl.json: its text, or an object that has it as `text`. It takes the
    # place of everything but `enabled`.
    acl_json: Any | None = None


@dataclass(frozen=True)
class Config:
    """How to carry a plan out."""

    # Most bytes of tensors that wait to be written; `None` leaves it to the core (256 MiB).
    queue_bytes_max: int | None = None
    # Number of threads that write; `None` leaves it to the core.
    n_writers: int | None = None
    # What the directory of a graph is called below that of its name: the graph's number, or 1 for all.
    model_id: str = "graph"
    # Whether mutated inputs are written inside the graph, as part of what is dumped.
    keep_inference_input_mutations: bool = True
    # What AOT autograd is to decompose; nothing by default, so that the operators are those of eager mode.
    decompositions: dict | None = None


def parse_numbers(given: int | str | Iterable | None, what: str) -> tuple[tuple[int, int], ...] | None:
    """Pairs of a number, of a text such as `0|3|5-8`, or of numbers and pairs; `None` is every number.

    >>> parse_numbers("0|5-8", "steps"), parse_numbers([1, (3, 4)], "steps"), parse_numbers(2, "steps")
    (((0, 0), (5, 8)), ((1, 1), (3, 4)), ((2, 2),))
    """
    if given is None or given == "":
        return None
    if isinstance(given, int):
        given = [given]
    if isinstance(given, str):
        given = [_item(item, given, what) for item in given.split("|")]
    pairs = []
    for item in given:
        first, last = (item, item) if isinstance(item, int) else item
        if not 0 <= first <= last:
            raise ValueError(f"{what} {first} to {last}: the first must be 0 or more and not behind the last")
        pairs.append((min(first, _STEP_MAX), min(last, _STEP_MAX)))
    return tuple(pairs)


def _item(item: str, text: str, what: str) -> tuple[int, int]:
    numbers = item.split("-")
    if len(numbers) > 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        raise ValueError(f"{what} `{text}`: `{item}` is no number and no range such as 5-8")
    # Longer numbers are beyond any step, and slow to read.
    first, last = (
        int(number[-20:]) if len(number.lstrip("0")) <= 20 else _STEP_MAX for number in (numbers[0], numbers[-1])
    )
    return first, last


def acl_json_text(plan: Any) -> str | None:
    """The text of a plan's configuration file, if it has one."""
    return getattr(plan.acl_json, "text", plan.acl_json)


def check(plan: Any) -> None:
    """Raises what is wrong with a plan, whichever class it is of."""
    if plan.mode not in MODES:
        raise ValueError(f"mode `{plan.mode}` is none of {', '.join(MODES)}")
    if plan.data not in DATA:
        raise ValueError(f"data `{plan.data}` is none of {', '.join(DATA)}")
    if not os.fspath(plan.path):
        raise ValueError("the path of the dump is empty")
    if (text := acl_json_text(plan)) is not None:
        check_acl_json(text)
    if getattr(plan, "stage", None) is not None:
        raise NotImplementedError("opscope.torch writes no `.pt` files of graph stages yet")
