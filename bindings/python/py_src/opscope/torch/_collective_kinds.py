"""Kinds of collectives: the inputs and outputs of torch's distributed operators."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.distributed as dist


class Form(NamedTuple):
    """One operator's form, by argument names; returned outputs have none."""

    kind: str
    inputs: str
    outputs: str = ""
    reduction: str = ""
    # The group's root rank; for a message, the peer.
    root: str = ""


# Operators of `torch.distributed`, which write to arguments.
_FILLING = {
    "allreduce_": Form("all_reduce", "tensors", "tensors", "reduce_op"),
    "allreduce_coalesced_": Form("all_reduce", "tensors", "tensors", "reduce_op"),
    "reduce_": Form("reduce", "tensors", "tensors", "reduce_op", "root_rank"),
    "allgather_": Form("all_gather", "input_tensors", "output_tensors"),
    "allgather_coalesced_": Form("all_gather", "input_list", "output_lists"),
    "allgather_into_tensor_coalesced_": Form("all_gather", "inputs", "outputs"),
    "_allgather_base_": Form("all_gather", "input_tensor", "output_tensor"),
    "gather_": Form("gather", "input_tensors", "output_tensors", root="root_rank"),
    "gather_into_tensor_": Form("gather", "input_tensor", "output_tensor", root="root_rank"),
    "reduce_scatter_": Form("reduce_scatter", "input_tensors", "output_tensors", "reduce_op"),
    "_reduce_scatter_base_": Form("reduce_scatter", "input_tensor", "output_tensor", "reduce_op"),
    "reduce_scatter_tensor_coalesced_": Form("reduce_scatter", "inputs", "outputs", "reduce_op"),
    "scatter_": Form("scatter", "input_tensors", "output_tensors", root="root_rank"),
    "broadcast_": Form("broadcast", "tensors", "tensors", root="root_rank"),
    "alltoall_": Form("all_to_all", "input_tensors", "output_tensors"),
    "alltoall_base_": Form("all_to_all", "input", "output"),
    "send": Form("send", "tensors", root="dst"),
    "recv_": Form("recv", "", "tensors", root="src"),
    "recv_any_source_": Form("recv", "", "tensors"),
}
# Functional ones, which return results to be awaited by `wait_tensor`.
_RETURNING = {
    "all_reduce": Form("all_reduce", "input", reduction="reduce_op"),
    "all_reduce_": Form("all_reduce", "input", reduction="reduce_op"),
    "all_reduce_coalesced": Form("all_reduce", "inputs", reduction="reduce_op"),
    "all_reduce_coalesced_": Form("all_reduce", "inputs", reduction="reduce_op"),
    "all_gather_into_tensor": Form("all_gather", "input"),
    "all_gather_into_tensor_out": Form("all_gather", "input"),
    "all_gather_into_tensor_coalesced": Form("all_gather", "inputs"),
    "reduce_scatter_tensor": Form("reduce_scatter", "input", reduction="reduce_op"),
    "reduce_scatter_tensor_out": Form("reduce_scatter", "input", reduction="reduce_op"),
    "reduce_scatter_tensor_coalesced": Form("reduce_scatter", "inputs", reduction="reduce_op"),
    "all_to_all_single": Form("all_to_all", "input"),
    "broadcast": Form("broadcast", "input", root="src"),
    "broadcast_": Form("broadcast", "input", root="src"),
    "isend": Form("send", "tensor", root="dst"),
    "irecv": Form("recv", "", root="src"),
}
_FORMS = {"c10d": _FILLING, "_c10d_functional": _RETURNING}
_GROUPS = ("process_group", "group_name")
_WAITS = ("_c10d_functional.wait_tensor", "_c10d_functional.wait_tensors", "c10d_functional.wait_tensor")
_REDUCTIONS = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor"}


class Collective(NamedTuple):
    """A collective that is about to begin. Rust reads the first fields by position."""

    # Such as `all_reduce(sum)`.
    kind: str
    # The group's global ranks, in order; empty if unknown.
    ranks: list[int]
    # This process's inputs.
    inputs: list[torch.Tensor]
    # The tensors that it writes to, if they are arguments.
    outputs: list[torch.Tensor]
    # Whether this process receives the result; in `reduce` and `gather` only one does.
    is_taker: bool
    # Whether it returns its results instead of writing to arguments.
    is_returning: bool


_form_of: dict[Any, tuple[Form, dict[str, int]] | None] = {}


def form_of(func: Any) -> tuple[Form, dict[str, int]] | None:
    """The form of an operator, with the positions of its arguments; `None` if it is not a
    collective."""
    try:
        return _form_of[func]
    except KeyError:
        found = _form_of[func] = _find(func)
        return found


def _find(func: Any) -> tuple[Form, dict[str, int]] | None:
    namespace, _, name = str(getattr(func, "_schema", None) and func._schema.name).partition("::")
    form = _FORMS.get(namespace, {}).get(name)
    if form is None:
        return None
    return form, {argument.name: i for i, argument in enumerate(func._schema.arguments)}


def is_wait(func: Any) -> bool:
    """Whether an operator waits for results of functional collectives."""
    return str(func).startswith(_WAITS)


def describe(func: Any, args: tuple, kwargs: dict) -> Collective | None:
    """Describes a call of an operator; `None` if it is not a collective."""
    found = form_of(func)
    if found is None:
        return None
    form, positions = found
    given = _Arguments(positions, args, kwargs)
    ranks = ranks_of(next((group for name in _GROUPS if (group := given.get(name)) is not None), None))
    root = _global(ranks, given.get(form.root)) if form.root else None
    own = dist.get_rank()
    # On other processes the buffer has arbitrary contents.
    is_giver = form.kind not in ("broadcast", "scatter") or root is None or root == own
    is_taker = form.kind not in ("reduce", "gather") or root is None or root == own
    return Collective(
        kind=_text(form, _reduction(given.get(form.reduction)), root),
        ranks=ranks,
        inputs=tensors(given.get(form.inputs)) if is_giver else [],
        outputs=tensors(given.get(form.outputs)),
        is_taker=is_taker,
        is_returning=not form.outputs and form.kind != "send",
    )


def note(name: str, get: Any) -> tuple[str, list[int]] | None:
    """Kind and ranks of a functional collective in a graph; `get` returns arguments by name."""
    form = _RETURNING.get(name)
    if form is None:
        return None
    ranks = ranks_of(get("group_name"))
    root = _global(ranks, get(form.root)) if form.root else None
    return _text(form, _reduction(get(form.reduction)) if form.reduction else None, root), ranks


class _Arguments:
    def __init__(self, positions: dict[str, int], args: tuple, kwargs: dict) -> None:
        self._positions, self._args, self._kwargs = positions, args, kwargs

    def get(self, name: str) -> Any:
        if name in self._kwargs:
            return self._kwargs[name]
        position = self._positions.get(name, len(self._args))
        return self._args[position] if position < len(self._args) else None


def ranks_of(group: Any) -> list[int]:
    """The global ranks of a group, which torch passes as an object, boxed, or by name."""
    try:
        if isinstance(group, str):
            group = dist.distributed_c10d._resolve_process_group(group)
        elif isinstance(group, torch.ScriptObject):
            group = torch._C._distributed_c10d.ProcessGroup.unbox(group)
        return [int(rank) for rank in dist.get_process_group_ranks(group)] if group is not None else []
    except Exception:
        # The process has left the group, or a test made it: its ranks are unknown.
        return []


def _global(ranks: list[int], rank: Any) -> int | None:
    is_known = type(rank) is int and 0 <= rank < len(ranks)
    return ranks[rank] if is_known else None


def _reduction(operation: Any) -> str | None:
    if isinstance(operation, torch.ScriptObject):
        try:
            operation = torch._C._distributed_c10d.ReduceOp.unbox(operation).op.name
        except Exception:
            return None
    name = str(operation).lower()
    # A sum of multiples is a reduction without a name here.
    return name if name in _REDUCTIONS else None


def _text(form: Form, reduction: str | None, root: int | None) -> str:
    arguments = [str(part) for part in (reduction, root) if part is not None]
    return f"{form.kind}({','.join(arguments)})" if arguments else form.kind


def tensors(given: Any) -> list[torch.Tensor]:
    """The tensors of an argument, which may be nested lists."""
    if isinstance(given, torch.Tensor):
        return [given]
    if isinstance(given, (tuple, list)):
        return [tensor for part in given for tensor in tensors(part)]
    return []
