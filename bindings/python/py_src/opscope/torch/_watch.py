"""Who overwrites a value: the memory of watched tensors is looked at again after each operator.

A `Watcher` is shown what operators give (`note`) and asked after each of them (`check`). It keeps a tensor of its own
for each value, which shares the memory, so that the allocator gives that memory to nobody else; once nobody but the
watch has it, the value is let go of. See `docs/torch/watch.md`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from .._native.capture import Watch
from ._findings import Findings

# Who wrote, and how that goes with what it says of itself.
IN_PLACE = "in place"
OUT = "out"
VIEW = "view"
UNVERSIONED = "unversioned"
UNDECLARED = "undeclared"
BETWEEN = "between"

# The type and the task of what no operator gives.
ARGUMENT_TYPE = "Data"
ARGUMENT_TASK = 65535
# These update their running statistics and do not say so.
_STATISTICS = ("aten.native_batch_norm", "aten.cudnn_batch_norm", "aten.miopen_batch_norm")
_RUNNING = ("running_mean", "running_var")
# Results by position that are room for the operator's backward pass to work in.
_ROOM = {"aten_mkldnn_rnn_layer_default": (3,)}


@dataclass(frozen=True)
class Seen:
    """An operator that ran, or an argument."""

    op_type: str
    op_name: str
    task_id: int
    # File, line and function that called it; empty where nobody knows.
    source: str = ""


NOTHING = Seen("", "", ARGUMENT_TASK)


class Write(NamedTuple):
    """A tensor that an operator says it writes to."""

    tensor: Any
    # Whether it was given as `out=`.
    is_out: bool = False


class Place(NamedTuple):
    """Where the elements of a tensor lie."""

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
        """Whether both have a byte between their first and last elements."""
        return self.address < other.end and other.address < self.end


@dataclass
class _Value:
    seen: Seen
    output: int
    tensor: weakref.ref
    place: Place
    # Whether it holds whatever was in memory, until somebody writes it for the first time.
    is_blank: bool
    version: int | None
    is_written: bool = False


@dataclass
class _Pending:
    change: dict
    value: _Value
    operator: Seen
    following: Seen | None
    # With the version that the tensor had when the operator was looked after.
    writes: list[tuple[Place, Write, int | None]] = field(default_factory=list)


class Watcher:
    """Values of one graph, or of code that has none."""

    def __init__(self, native: Watch, findings: Findings, *, graph: str, is_scene: bool) -> None:
        self._native = native
        self._findings = findings
        self._graph = graph
        # Whether files are written as the watcher scene of an acl.json has it: at every look, changed or not.
        self._is_scene = is_scene
        self._step = 0
        self._values: dict[int, _Value] = {}
        self._pending: list[_Pending] = []

    def begin(self, step: int) -> bool:
        """Begins an execution, with nothing watched; whether anything is kept of it."""
        self._forget_all()
        self._step = step
        return self._native.begin_step(step)

    def end(self) -> None:
        """Ends the execution. Nothing is watched any more."""
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
        """Watches values from now on: pairs of a position among the results and a tensor.

        With `is_kept` they stay when nobody else has them; with `is_view` those are left out whose memory is watched
        already; `is_blank` ones hold nothing that could be overwritten yet.
        """
        noted = []
        for output, tensor in outputs:
            if output in _ROOM.get(seen.op_type, ()):
                continue
            if tensor.is_conj() or tensor.is_neg():
                # Its memory holds something else, which is watched under another name if at all.
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
        """Looks at all values after `operator` has run, which says that it `writes` to some tensors.

        With `following`, `operator` is done for long and `following` has not begun: what changed, changed between the
        two. Without `is_settled` the versions of tensors are not there yet; `settle` comes before the next operator.
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
        """Judges the changes that were seen last, and reads all versions anew."""
        pending, self._pending = self._pending, []
        overwritten = [one for one in pending if self._is_overwritten(one)]
        if not self._is_scene:
            self._write_files(overwritten)
        for one in pending:
            self._native.forget(one.change["change"])
        for value in self._values.values():
            value.version = _version(value.tensor())

    def count_operator(self) -> None:
        """Counts an operator that has run."""
        self._native.count_operator()

    def _is_overwritten(self, one: _Pending) -> bool:
        kind = _kind(one)
        value = one.value
        if kind != UNDECLARED and value.is_blank:
            # Its first content.
            value.is_blank = False
            return False
        if kind == IN_PLACE:
            self._findings.n_updates += 1
            return False
        self._findings.add(self._overwrite(one, kind))
        return True

    def _overwrite(self, one: _Pending, kind: str) -> dict:
        """One member of `overwrites.json`."""
        change, operator, watched = one.change, one.operator, one.value.seen
        found = {
            "step": self._step,
            "seen_after": operator.op_name,
            "seen_after_type": operator.op_type,
            "seen_after_task_id": operator.task_id,
            "watched": watched.op_name,
            "watched_type": watched.op_type,
            "output": one.value.output,
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
        if one.following is not None:
            found["seen_before"] = one.following.op_name
            found["seen_before_type"] = one.following.op_type
            found["source_before"] = one.following.source
        return found

    def _write_files(self, overwritten: list[_Pending]) -> None:
        """Writes the contents of values before and after their changes, the former once."""
        for (watched, operator), group in _grouped(overwritten).items():
            first = [(one.value.output, one.change["change"]) for one in group if not one.value.is_written]
            if first:
                self._native.write_changes(watched.op_type, watched.op_name, watched.task_id, first, False)
            for one in group:
                one.value.is_written = True
            now = [(one.value.output, one.change["change"]) for one in group]
            name = f"{operator.op_name}_To_{watched.op_name}"
            self._native.write_changes(watched.op_type, name, operator.task_id, now, True)

    def _write_looks(self, operator: Seen) -> None:
        """Writes the present contents of every watched value, except those of the operator itself."""
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
            # That nobody needs a value any more is how it should be.
            if why != "freed":
                self._findings.gone[why] += 1

    def _forget_all(self) -> None:
        self._values.clear()
        self._pending.clear()


def _grouped(overwritten: list[_Pending]) -> dict[tuple[Seen, Seen], list[_Pending]]:
    groups: dict[tuple[Seen, Seen], list[_Pending]] = {}
    for one in overwritten:
        groups.setdefault((one.value.seen, one.operator), []).append(one)
    return groups


def _kind(one: _Pending) -> str:
    """How an operator came to write there."""
    if one.following is not None:
        return BETWEEN
    value = one.value
    writes = [(place, write, version) for place, write, version in one.writes if place.meets(value.place)]
    if not writes:
        return UNDECLARED
    tensor = value.tensor()
    if tensor is None:
        # Nobody has the value itself, only views of it that replaced it.
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
    """Whether torch counts writes to a tensor otherwise than those to the watched value, which did not move.

    Operators of extensions may say that they write and not be counted at all: then both stand still.
    """
    now = _version(tensor)
    return now != version_of_value or now != earlier


def writes_of(target: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yields the arguments that an operator says it writes to, each with whether it is one for results."""
    schema = getattr(target, "_schema", None)
    args = list(args)
    if schema is None:
        # Operators with graphs or kernels inside say nothing, and may write to anything that they are given.
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
    """How often torch saw it written to; `None` if nobody knows."""
    if tensor is None:
        return None
    try:
        return tensor._version
    except RuntimeError:
        # Tensors of inference mode have none.
        return None


def _has_place(tensor: Any) -> bool:
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided


def storage_state(tensor: torch.Tensor) -> tuple[int, int, int]:
    """The number of a tensor's storage, its bytes, and how many tensors and others have it."""
    storage = tensor.untyped_storage()
    number = storage._cdata
    return number, storage.nbytes(), max(torch._C._storage_Use_Count(number) - _n_beside(), 0)


_beside: int | None = None


def _n_beside() -> int:
    """References to a storage that asking for it makes."""
    global _beside
    if _beside is None:
        single = torch.empty(1)
        storage = single.untyped_storage()
        _beside = torch._C._storage_Use_Count(storage._cdata) - 1
    return _beside
