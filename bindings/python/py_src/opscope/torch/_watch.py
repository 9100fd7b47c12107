"""Finds operators that overwrite values: the memory of watched tensors is compared after each
operator.

A `Watcher` is given operators' results (`note`) and called after each of them (`check`). For each
value it keeps a tensor that shares the memory, so that the allocator does not reuse it; when only
the watch still refers to a value, it is released. See `docs/watch.md`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from .._native.capture import Watch
from ._findings import Findings

# How a write relates to the operator's declaration.
IN_PLACE = "in place"
OUT = "out"
VIEW = "view"
UNVERSIONED = "unversioned"
UNDECLARED = "undeclared"
BETWEEN = "between"

# The type and the task of values without a producer.
ARGUMENT_TYPE = "Data"
ARGUMENT_TASK = 65535
# These update running statistics without declaring it.
_STATISTICS = ("aten.native_batch_norm", "aten.cudnn_batch_norm", "aten.miopen_batch_norm")
_RUNNING = ("running_mean", "running_var")
# Indices of results that are workspace for the backward pass.
_ROOM = {"aten_mkldnn_rnn_layer_default": (3,)}


@dataclass(frozen=True)
class Seen:
    """An operator that ran, or an argument."""

    op_type: str
    op_name: str
    task_id: int
    # File, line and function of the call; empty if unknown.
    source: str = ""


NOTHING = Seen("", "", ARGUMENT_TASK)


class Write(NamedTuple):
    """A tensor that an operator declares to write."""

    tensor: Any
    # Whether it was passed as `out=`.
    is_out: bool = False


class Place(NamedTuple):
    """The memory layout of a tensor."""

    address: int
    end: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Place:
        """The place of a tensor with memory."""
        address, shape, strides = tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride())
        n = 0 if 0 in shape else 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
        return cls(address, address + n * tensor.element_size(), shape, strides)

    def meets(self, other: Place) -> bool:
        """Whether the byte ranges of both overlap."""
        return self.address < other.end and other.address < self.end


@dataclass
class _Value:
    seen: Seen
    output: int
    tensor: weakref.ref
    place: Place
    # Whether it is uninitialised until the first write.
    is_blank: bool
    version: int | None
    is_written: bool = False


@dataclass
class _Pending:
    change: dict
    value: _Value
    operator: Seen
    following: Seen | None
    # With the tensor's version when the operator was checked.
    writes: list[tuple[Place, Write, int | None]] = field(default_factory=list)


class Watcher:
    """Watches values of one graph, or of code without a graph."""

    def __init__(self, native: Watch, findings: Findings, *, graph: str, is_scene: bool) -> None:
        self._native = native
        self._findings = findings
        self._graph = graph
        # Whether to write files as in an acl.json's watcher scene: at every check, changed or not.
        self._is_scene = is_scene
        self._step = 0
        self._values: dict[int, _Value] = {}
        self._pending: list[_Pending] = []

    def begin(self, step: int) -> bool:
        """Starts an execution with nothing watched; returns whether anything is recorded."""
        self._forget_all()
        self._step = step
        return self._native.begin_step(step)

    def end(self) -> None:
        """Ends the execution and all watches."""
        self.settle()
        self._native.end_step()
        self._forget_all()

    def note(
        self,
        seen: Seen,
        outputs: Iterable[tuple[int, Any]],
        *,
        is_kept: bool = False,
        is_view: bool = False,
        is_blank: bool = False,
    ) -> None:
        """Watches values from now on: pairs of a result index and a tensor.

        With `is_kept` they are kept when otherwise unreferenced; with `is_view`, values whose
        memory is already watched are skipped; `is_blank` ones have no contents yet that could be
        overwritten.
        """
        noted = []
        for output, tensor in outputs:
            if output in _ROOM.get(seen.op_type, ()):
                continue
            if tensor.is_conj() or tensor.is_neg():
                # Its memory has other contents, which may be watched under another name.
                self._findings.gone["conjugated or negated view"] += 1
                continue
            is_plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
            # A tensor that is not plain is refused, with the reason.
            own = tensor.detach() if is_plain else tensor
            number, _reason = self._native.note(own, is_kept=is_kept, is_view=is_view)
            if number is None:
                continue
            self._values[number] = _Value(
                seen, output, weakref.ref(tensor), Place.of(own), is_blank, _version(tensor)
            )
            noted.append((output, number))
        self._forget_gone()
        if noted and self._is_scene:
            self._native.write(seen.op_type, seen.op_name, seen.task_id, noted)

    def check(
        self,
        operator: Seen,
        writes: Iterable[Write] = (),
        *,
        following: Seen | None = None,
        is_settled: bool = True,
        leaves_looks: bool = False,
    ) -> None:
        """Checks all values after `operator` has run, which `writes` to some tensors.

        With `following`, `operator` finished earlier and `following` has not started: the change
        happened in between. Without `is_settled` the tensors' versions are not updated yet;
        `settle` follows before the next operator.
        """
        found = self._native.look()
        self._forget_gone()
        places = [
            (Place.of(write.tensor), write, _version(write.tensor))
            for write in (writes if found else ())
            if _has_place(write.tensor)
        ]
        for change in found:
            if (value := self._values.get(change["id"])) is not None:
                self._pending.append(_Pending(change, value, operator, following, places))
        if is_settled:
            self.settle()
        if leaves_looks:
            self._write_looks(operator)

    def settle(self) -> None:
        """Judges the pending changes, and reads all versions again."""
        pending, self._pending = self._pending, []
        overwritten = [candidate for candidate in pending if self._is_overwritten(candidate)]
        if not self._is_scene:
            self._write_files(overwritten)
        for candidate in pending:
            self._native.forget(candidate.change["change"])
        for value in self._values.values():
            value.version = _version(value.tensor())

    def count_operator(self) -> None:
        """Counts an operator that has run."""
        self._native.count_operator()

    def _is_overwritten(self, candidate: _Pending) -> bool:
        kind = _kind(candidate)
        value = candidate.value
        if kind != UNDECLARED and value.is_blank:
            # Its first contents.
            value.is_blank = False
            return False
        if kind == IN_PLACE:
            self._findings.n_updates += 1
            return False
        self._findings.add(self._overwrite(candidate, kind))
        return True

    def _overwrite(self, candidate: _Pending, kind: str) -> dict:
        """One entry of `overwrites.json`."""
        change, operator, watched = candidate.change, candidate.operator, candidate.value.seen
        found = {
            "step": self._step,
            "seen_after": operator.op_name,
            "seen_after_type": operator.op_type,
            "seen_after_task_id": operator.task_id,
            "watched": watched.op_name,
            "watched_type": watched.op_type,
            "output": candidate.value.output,
            "byte_ranges": change["byte_ranges"],
            "n_byte_ranges": change["n_byte_ranges"],
            "n_bytes": change["n_bytes"],
            "first_element": change["first_element"],
            "before": change["before"],
            "after": change["after"],
            "n_elements": change["n_elements"],
            "graph": self._graph,
            "kind": kind,
            "source": operator.source,
            "watched_source": watched.source,
        }
        if candidate.following is not None:
            found["seen_before"] = candidate.following.op_name
            found["seen_before_type"] = candidate.following.op_type
            found["source_before"] = candidate.following.source
        return found

    def _write_files(self, overwritten: list[_Pending]) -> None:
        """Writes the contents of values before and after their changes, the former once."""
        for (watched, operator), group in _grouped(overwritten).items():
            unwritten = [candidate for candidate in group if not candidate.value.is_written]
            first = [(candidate.value.output, candidate.change["change"]) for candidate in unwritten]
            if first:
                self._native.write_changes(watched.op_type, watched.op_name, watched.task_id, first, False)
            for candidate in group:
                candidate.value.is_written = True
            now = [(candidate.value.output, candidate.change["change"]) for candidate in group]
            name = f"{operator.op_name}_To_{watched.op_name}"
            self._native.write_changes(watched.op_type, name, operator.task_id, now, True)

    def _write_looks(self, operator: Seen) -> None:
        """Writes the current contents of every watched value, except those of the operator itself.
        """
        groups: dict[Seen, list[tuple[int, int]]] = {}
        for number, value in self._values.items():
            if value.seen != operator:
                groups.setdefault(value.seen, []).append((value.output, number))
        for watched, values in groups.items():
            name = f"{operator.op_name}_To_{watched.op_name}"
            self._native.write(watched.op_type, name, operator.task_id, values)

    def _forget_gone(self) -> None:
        for number, why in self._native.take_gone():
            self._values.pop(number, None)
            # Values that are no longer needed are the normal case.
            if why != "freed":
                self._findings.gone[why] += 1

    def _forget_all(self) -> None:
        self._values.clear()
        self._pending.clear()


def _grouped(overwritten: list[_Pending]) -> dict[tuple[Seen, Seen], list[_Pending]]:
    groups: dict[tuple[Seen, Seen], list[_Pending]] = {}
    for candidate in overwritten:
        groups.setdefault((candidate.value.seen, candidate.operator), []).append(candidate)
    return groups


def _kind(candidate: _Pending) -> str:
    """How an operator came to write there."""
    if candidate.following is not None:
        return BETWEEN
    value = candidate.value
    writes = [(place, write, version) for place, write, version in candidate.writes if place.meets(value.place)]
    if not writes:
        return UNDECLARED
    tensor = value.tensor()
    if tensor is None:
        # The value itself is gone; only views that replaced it remain.
        return IN_PLACE
    now = _version(tensor)
    is_unmoved = now is not None and now == value.version
    if is_unmoved and all(_has_own_version(write.tensor, version, now) for _, write, version in writes):
        return UNVERSIONED
    same = [write for place, write, _ in writes if place == value.place]
    if not same:
        return VIEW
    return OUT if any(write.is_out for write in same) else IN_PLACE


def _has_own_version(tensor: Any, earlier: int | None, version_of_value: int | None) -> bool:
    """Whether torch's version counter of a tensor changed although the watched value's did not.

    Extension operators may declare writes without incrementing any counter: then both stay
    unchanged.
    """
    now = _version(tensor)
    return now != version_of_value or now != earlier


def writes_of(target: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yields the arguments that an operator declares to write, and whether each is an out argument.
    """
    schema = getattr(target, "_schema", None)
    args = list(args)
    if schema is None:
        # Higher-order operators declare nothing, and may write to any argument.
        for given in (*args, *kwargs.values()):
            yield given, False
        return
    keeps_statistics = str(target).startswith(_STATISTICS)
    for i, argument in enumerate(schema.arguments):
        given = args[i] if i < len(args) else kwargs.get(argument.name)
        if given is None:
            continue
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield given, bool(argument.is_out)
        elif keeps_statistics and argument.name in _RUNNING:
            yield given, False


def is_view(target: Any) -> bool:
    """Whether results of an operator share memory with its arguments."""
    schema = getattr(target, "_schema", None)
    return schema is not None and any(result.alias_info is not None for result in schema.returns)


def _version(tensor: Any) -> int | None:
    """Torch's version counter; `None` if unknown."""
    if tensor is None:
        return None
    try:
        return tensor._version
    except RuntimeError:
        # Inference tensors have none.
        return None


def _has_place(tensor: Any) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided


def storage_state(tensor: torch.Tensor) -> tuple[int, int, int]:
    """A storage's id, its bytes, and its reference count."""
    storage = tensor.untyped_storage()
    number = storage._cdata
    return number, storage.nbytes(), max(torch._C._storage_Use_Count(number) - _n_beside(), 0)


_beside: int | None = None


def _n_beside() -> int:
    """References that the query itself adds."""
    global _beside
    if _beside is None:
        single = torch.empty(1)
        storage = single.untyped_storage()
        _beside = torch._C._storage_Use_Count(storage._cdata) - 1
    return _beside
