"""Facts about torch's operators that are needed before the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _graph, _names

# Operators that return before their results are ready.
_LATE = ("_c10d_functional.", "c10d_functional.", "c10d.")
# Profiler marks, barriers, and wrappers around a result.
_IGNORED = ("profiler.", "c10d.barrier", "c10d.monitored_barrier_", "_c10d_functional._wrap_tensor_autograd")
# Operators that leave results partly or fully unwritten: indices of these results.
_BLANK = {"fsdp.all_gather_copy_in.default": [1]}
# Namespaces whose operators declare all their writes.
_TRUSTED = ("aten.", "prims.", "prim.", "inductor_prims.")
# Operators that update running statistics without declaring it, if an argument is true: argument
# positions.
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
    """A kind of operator, read by Rust."""

    target: str
    base: str
    alias: str
    # Arguments that it writes to: position, name, and the position of an argument that enables the
    # write.
    written: list[tuple[int, str, int | None]]
    # Why its results cannot be observed, if so.
    reason: str | None
    # Whether it may write to any argument without declaring it.
    may_write_all: bool
    # Whether it continues writing after it has returned.
    is_late: bool
    # Indices of uninitialised results.
    blank: list[int]
    # Whether it is not part of a model.
    is_ignored: bool


def describe(func: Any) -> Kind:
    """The kind of an `OpOverload`, or of a higher-order operator."""
    target = _names.target_name(func)
    base = _names.base_name(target)
    is_late = target.startswith(_LATE) and ".wait_tensor" not in target
    return Kind(
        target=target,
        base=base,
        alias=_names.alias_base(base),
        written=_written(func, target),
        reason=_graph.reason_of(target) or ("collective not finished" if is_late else None),
        # A collective's result is a different value after the wait.
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
