"""Kinds of operators: the facts about one of torch's operators that are needed before it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _graph, _names

# Operators that return before their results are there.
_LATE = ("_c10d_functional.", "c10d_functional.", "c10d.")
# Marks for a profiler, a meeting of processes without values, and a wrapper around a result.
_IGNORED = ("profiler.", "c10d.barrier", "c10d.monitored_barrier_", "_c10d_functional._wrap_tensor_autograd")
# Operators with results that they do not fill, or not all of it: positions of the results.
_BLANK = {"fsdp.all_gather_copy_in.default": [1]}
# Namespaces whose operators say truly what they write to.
_TRUSTED = ("aten.", "prims.", "prim.", "inductor_prims.")
# Operators that update running statistics without saying so, if an argument is true: positions of the arguments.
_STATISTICS = {
    "aten.native_batch_norm.default": ("running_mean", "running_var"),
    "aten.cudnn_batch_norm.default": ("running_mean", "running_var"),
    "aten.miopen_batch_norm.default": ("running_mean", "running_var"),
    "aten._batch_norm_impl_index.default": ("running_mean", "running_var"),
    "aten.batch_norm.default": ("running_mean", "running_var"),
    "aten.instance_norm.default": ("running_mean", "running_var"),
}
_WHEN = ("training", "use_input_stats")


@dataclass
class Kind:
    """A kind of operator, for Rust to read."""

    target: str
    base: str
    alias: str
    # Arguments that it writes to: position, name, and the position of an argument that has to be true for that.
    written: list[tuple[int, str, int | None]]
    # Why its results are not to be looked at, if so.
    reason: str | None
    # Whether it may write to any argument, although it does not say so.
    may_write_all: bool
    # Whether it goes on writing after it has returned.
    is_late: bool
    # Positions of results that hold whatever was in memory.
    blank: list[int]
    # Whether it is no operator of a model.
    is_ignored: bool


def describe(func: Any) -> Kind:
    """The kind of an `OpOverload`, or of an operator that has other functions as arguments."""
    target = _names.target_name(func)
    base = _names.base_name(target)
    is_late = target.startswith(_LATE) and ".wait_tensor" not in target
    return Kind(
        target=target,
        base=base,
        alias=_names.alias_base(base),
        written=_written(func, target),
        reason=_graph.reason_of(target) or ("collective not finished" if is_late else None),
        # The result of a collective is another value once it has been waited for.
        may_write_all=not target.startswith(_TRUSTED),
        is_late=is_late,
        blank=_BLANK.get(target, []),
        is_ignored=target.startswith(_IGNORED),
    )


def _written(func: Any, target: str) -> list[tuple[int, str, int | None]]:
    schema = getattr(func, "_schema", None)
    if schema is None:
        return []
    names = [argument.name for argument in schema.arguments]
    written: list[tuple[int, str, int | None]] = [
        (i, argument.name, None)
        for i, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    when = next((names.index(name) for name in _WHEN if name in names), None)
    statistics = (name for name in _STATISTICS.get(target, ()) if name in names)
    return written + [(names.index(name), name, when) for name in statistics]
