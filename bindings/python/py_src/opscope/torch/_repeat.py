"""One side several times: which operators do not return the same from the same inputs?"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

from .. import _options
from .._compare import StrPath, compare
from .._errors import UsageError
from . import _call_inputs
from ._diff import EXACT, DumpFolder, conditions_of
from ._sides import DumpSide, make_side

_LABEL = "target"
# Fewest runs of which one can differ from another.
N_RUNS_MIN = 2
VERSION = 1


@dataclass
class VaryingOperator:
    """An operator that does not return the same in every run."""

    op_type: str
    op_name: str
    step: int
    # Runs in which it returned something else than in the first one, from the same inputs and from others.
    n_runs_same_inputs: int = 0
    n_runs_other_inputs: int = 0
    # The largest relative distance of an output.
    rel_l2: float = 0.0


@dataclass
class Repetition:
    """The operators that vary over several runs, in the order of execution."""

    n_runs: int
    n_operators: int = 0
    n_not_compared: int = 0
    operators: list[VaryingOperator] = field(default_factory=list)

    @property
    def own(self) -> list[VaryingOperator]:
        """Operators that return something else from the same inputs."""
        return [one for one in self.operators if one.n_runs_same_inputs > 0]

    @property
    def verdict(self) -> str:
        """The result in a line."""
        if own := self.own:
            first = own[0]
            return (
                f"FAIL: {first.op_type} `{first.op_name}` returns something else from the same inputs in "
                f"{first.n_runs_same_inputs} of {self.n_runs - 1} runs"
            )
        if self.operators:
            return f"FAIL: {self.n_runs} runs differ, and no operator that was seen began it: its inputs vary"
        if self.n_not_compared:
            return f"SKIP: everything that could be compared is the same in all {self.n_runs} runs, bit for bit"
        return f"PASS: all {self.n_runs} runs are the same, bit for bit: {self.n_operators} operators"

    def document(self) -> dict[str, Any]:
        """The result as `opscope diff --repeat` writes it to a file."""
        return {"version": VERSION, **asdict(self)}


def repeat(
    target: Any,
    inputs: Any = None,
    n_runs: int = N_RUNS_MIN,
    *,
    autocast: Any = None,
    grad: bool = False,
    save: StrPath | None = None,
) -> Repetition:
    """Runs a callable `n_runs` times with the same inputs and random numbers, and names operators that vary.

    `target`, `inputs`, `autocast`, `grad` and `save` are as in `diff`. Each run is compared with the first one, and no
    element may differ; NaN equals NaN.

    Raises:
        UsageError: Options or inputs make no sense.
        OpscopeError: The callable cannot be run, or nothing was dumped.
    """
    _options.whole("n_runs", n_runs, N_RUNS_MIN)
    conditions = conditions_of(grad)
    side = make_side(_LABEL, target, autocast)
    if isinstance(side, DumpSide):
        raise UsageError("target: something to run is expected, got a dump", code="usage")
    if inputs is None:
        raise UsageError("inputs: expected, to run the target with (`()` for no arguments)", code="usage")
    calls = _call_inputs.steps(inputs)
    found = Repetition(int(n_runs))
    with DumpFolder(save) as folder:
        # Names without the words of runs and ranks, which would be read as such.
        places = [os.path.join(folder.path, _LABEL, f"repeat_{n}") for n in range(n_runs)]
        first, *others = [side.record(calls, place, conditions) for place in places]
        varying: dict[tuple[Any, ...], VaryingOperator] = {}
        for other in others:
            _add(found, varying, compare(other, first, thresholds=EXACT))
    found.operators = [varying[key] for key in sorted(varying)]
    return found


def _add(found: Repetition, varying: dict[tuple[Any, ...], VaryingOperator], comparison: Any) -> None:
    found.n_operators = max(found.n_operators, len(comparison.operators))
    found.n_not_compared += sum(1 for skip in comparison.skips if not skip.get("is_allowed"))
    for position, operator in enumerate(comparison.operators):
        slots = [slot for slot in operator["slots"] if slot["level"] in ("warn", "fail")]
        outputs = [slot for slot in slots if slot["slot"].startswith("output")]
        if not slots:
            continue
        ran = operator["golden"][-1]
        step = ran.get("step") or 0
        key = (step, position, ran["op_name"])
        one = varying.setdefault(key, VaryingOperator(ran.get("op_type") or "", ran["op_name"], step))
        if len(outputs) == len(slots):
            one.n_runs_same_inputs += 1
        else:
            one.n_runs_other_inputs += 1
        distances = [_distance(slot) for slot in outputs]
        one.rel_l2 = max([one.rel_l2, *distances])


def _distance(slot: dict[str, Any]) -> float:
    # Infinite, as text, if an element is NaN or infinite in one of the runs.
    return float((slot.get("metrics") or {}).get("rel_l2") or 0.0)
