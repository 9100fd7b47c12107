"""Collectives and parts of distributed tensors in dumps of four processes, against what numpy makes of the inputs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import opscope
import parallel_models
import pytest
import torch
from parallel_models import Fault, rank_roots
from test_ranks import run_ranks

N = 4
RANKS = range(N)


class Shared(NamedTuple):
    """A collective as a dump has it."""

    kind: str | None
    ranks: tuple[int, ...] | None
    inputs: list[Any]
    outputs: list[Any]


def shared(root: Path, name: str) -> Shared:
    """The operator of a name."""
    found = [one for one in opscope.open(root) if one.name == name]
    assert found, name
    found.sort(key=lambda one: one.slot)
    inputs, outputs = ([one.numpy() for one in found if one.side == side] for side in ("input", "output"))
    return Shared(found[0].collective, found[0].group_ranks, inputs, outputs)


def own(rank: int, n: int = 4) -> Any:
    """What a rank begins with."""
    return np.arange(n, dtype=np.float32) + 10 * rank


COLLECTIVES = """
    from torch.distributed import ReduceOp
    def own(n=4):
        return torch.arange(n, dtype=torch.float32) + 10 * rank
    pair = dist.new_group([1, 3])
    buffers = lambda: [torch.full((4,), float("nan")) for _ in range(4)]
    many = lambda: [own() + 100 * i for i in range(4)]
    with opscope.torch.eager(sys.argv[1] + "/dump") as dump:
        dist.all_reduce(own())
        if rank in (1, 3):
            value = own()
            work = dist.all_reduce(value, ReduceOp.MAX, group=pair, async_op=True)
            own() + 1
            work.wait()
            value.add_(1)
            dist.broadcast(own(), 3, group=pair)
        dist.reduce(own(), 2, ReduceOp.PRODUCT)
        dist.all_gather(buffers(), own())
        dist.all_gather_into_tensor(torch.empty(16), own())
        dist.gather(own(), buffers() if rank == 1 else None, 1)
        dist.reduce_scatter(torch.empty(4), many())
        dist.reduce_scatter_tensor(torch.empty(4), own(16))
        dist.scatter(torch.empty(4), many() if rank == 3 else None, 3)
        dist.all_to_all(buffers(), many())
        # Rank r has r + 1 elements from each.
        dist.all_to_all_single(torch.empty(4 * (rank + 1)), own(10), [rank + 1] * 4, [1, 2, 3, 4])
        if rank == 0:
            dist.send(own(), 2)
        if rank == 2:
            dist.recv(torch.empty(4), 0)
        if rank == 3:
            dist.send(own(), 1)
        if rank == 1:
            dist.recv(torch.empty(4))
        dist.all_reduce_coalesced([own(), own(2)])
        dist.barrier()
        ring = [dist.P2POp(dist.isend, own(), (rank + 1) % 4), dist.P2POp(dist.irecv, torch.empty(4), (rank - 1) % 4)]
        for work in dist.batch_isend_irecv(ring):
            work.wait()
        world = dist.group.WORLD
        # A result that is read later than it comes.
        total = collectives.all_reduce(own(), "sum", world)
        own().view(2, 2)
        assert torch.equal(total * 2, torch.arange(4) * 8.0 + 120)
        collectives.all_gather_tensor(own(), 0, world) + 1
        collectives.reduce_scatter_tensor(own(16), "max", 0, world) + 1
        collectives.all_to_all_single(own(), None, None, world) + 1
        collectives.broadcast(own(), 2, world) + 1
        for one in collectives.all_reduce_coalesced([own(), own(2)], "sum", world):
            one + 1
        # This one is not awaited before the step ends.
        left = torch.ops._c10d_functional.all_reduce(own(), "sum", world.group_name)
    torch.ops._c10d_functional.wait_tensor(left)
    report = dump.finish()
    assert not report["first_error"] and not report["first_fault"], report
    assert report["unseen"]["collective not finished"] == 1, report
    assert report["n_operators_written"] > 30, report
    assert torch._C._distributed_c10d.Work.wait.__name__ == "wait", "put back"
"""


def expected(rank: int) -> dict[str, tuple]:
    """Of each collective kind, ranks, inputs and outputs of one rank."""
    everyone, world = [own(one) for one in RANKS], tuple(RANKS)
    total, wide = sum(everyone), sum(own(one, 16) for one in RANKS)
    many = [own(rank) + 100 * i for i in RANKS]
    starts = [0, 1, 3, 6, 10]
    exchanged = np.concatenate([own(one, 10)[starts[rank] : starts[rank + 1]] for one in RANKS])
    found = {
        "allreduce_": ("all_reduce(sum)", world, [own(rank)], [total]),
        "reduce_": ("reduce(product,2)", world, [own(rank)], [np.prod(everyone, 0)] if rank == 2 else []),
        "allgather_": ("all_gather", world, [own(rank)], everyone),
        "_allgather_base_": ("all_gather", world, [own(rank)], [np.concatenate(everyone)]),
        "gather_": ("gather(1)", world, [own(rank)], everyone if rank == 1 else []),
        "reduce_scatter_": ("reduce_scatter(sum)", world, many, [total + 400 * rank]),
        "_reduce_scatter_base_": ("reduce_scatter(sum)", world, [own(rank, 16)], [wide[4 * rank : 4 * rank + 4]]),
        "scatter_": ("scatter(3)", world, many if rank == 3 else [], [own(3) + 100 * rank]),
        "alltoall_": ("all_to_all", world, many, [own(one) + 100 * rank for one in RANKS]),
        "alltoall_base_": ("all_to_all", world, [own(rank, 10)], [exchanged]),
        "allreduce_coalesced_": ("all_reduce(sum)", world, [own(rank), own(rank, 2)], [total, total[:2]]),
        "all_reduce": ("all_reduce(sum)", world, [own(rank)], [total]),
        "all_gather_into_tensor": ("all_gather", world, [own(rank)], [np.concatenate(everyone)]),
        "reduce_scatter_tensor": ("reduce_scatter(max)", world, [own(rank, 16)], [own(3, 16)[4 * rank : 4 * rank + 4]]),
        "all_to_all_single": ("all_to_all", world, [own(rank)], [np.array([one[rank] for one in everyone])]),
        "broadcast": ("broadcast(2)", world, [own(2)] if rank == 2 else [], [own(2)]),
        "all_reduce_coalesced": ("all_reduce(sum)", world, [own(rank), own(rank, 2)], [total, total[:2]]),
        "all_reduce_1": ("all_reduce(sum)", world, [own(rank)], []),
    }
    before, after = (rank - 1) % N, (rank + 1) % N
    ring = {"send": (f"send({after})", world, [own(rank)], []), "recv_": (f"recv({before})", world, [], [own(before)])}
    return found | messages(rank, ring)


def messages(rank: int, ring: dict[str, tuple]) -> dict[str, tuple]:
    """What only some ranks do, and the ring, whose operators are the first or second of their kind."""
    world = tuple(RANKS)
    if rank == 0:
        return {"send": ("send(2)", world, [own(0)], []), "send_1": ring["send"], "recv_": ring["recv_"]}
    if rank == 2:
        return {"recv_": ("recv(0)", world, [], [own(0)]), "send": ring["send"], "recv__1": ring["recv_"]}
    found = {"allreduce__1": ("all_reduce(max)", (1, 3), [own(rank)], [own(3)])}
    found["broadcast_"] = ("broadcast(3)", (1, 3), [own(3)] if rank == 3 else [], [own(3)])
    if rank == 3:
        return found | {"send": ("send(1)", world, [own(3)], []), "send_1": ring["send"], "recv_": ring["recv_"]}
    return found | {"recv_any_source_": ("recv", world, [], [own(3)])} | ring


def test_every_collective(tmp_path: Path) -> None:
    run_ranks(tmp_path, COLLECTIVES, N)
    for rank, root in rank_roots(tmp_path / "dump").items():
        wanted = expected(rank)
        record = json.loads((root / ".opscope" / "run.json").read_text(encoding="utf-8"))
        assert record["world"] == {"size": N, "rank": rank}
        names = {one.name for one in opscope.open(root) if one.collective}
        assert names == set(wanted), rank
        for name, (kind, ranks, inputs, outputs) in wanted.items():
            found = shared(root, name)
            assert (found.kind, found.ranks) == (kind, ranks), (rank, name)
            for mine, theirs in ((found.inputs, inputs), (found.outputs, outputs)):
                assert len(mine) == len(theirs), (rank, name)
                assert all(np.array_equal(one, other) for one, other in zip(mine, theirs)), (rank, name)


DATA_PARALLEL = """
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    model = DistributedDataParallel(net, gradient_as_bucket_view=True)
    torch.manual_seed(100 + rank)
    x = torch.randn(4, 6)
    model(x).sum().backward()
    with opscope.torch.eager(sys.argv[1] + "/dump") as dump:
        model.zero_grad()
        model(x).square().sum().backward()
    gradients = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    torch.save(gradients, f"{sys.argv[1]}/gradients{rank}.pt")
    report = dump.finish()
    assert not report["first_error"] and not report["first_fault"], report
"""


def test_a_reducer_that_waits_in_cpp(tmp_path: Path) -> None:
    run_ranks(tmp_path, DATA_PARALLEL, 2)
    values = []
    for rank, root in rank_roots(tmp_path / "dump").items():
        found = shared(root, "allreduce_")
        assert (found.kind, found.ranks) == ("all_reduce(sum)", (0, 1))
        gradients = torch.load(tmp_path / f"gradients{rank}.pt").numpy()
        # A bucket has the gradients in its own order.
        assert np.array_equal(np.sort(found.outputs[0]), np.sort(gradients))
        values.append(found)
    np.testing.assert_allclose(values[0].inputs[0] + values[1].inputs[0], values[0].outputs[0], rtol=1e-5, atol=1e-6)


COMPILED = """
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    def own(n=4):
        return torch.arange(n, dtype=torch.float32) + 10 * rank
    world = dist.group.WORLD
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    def function(x, wide):
        # The wait comes after operators that read and drop the same values.
        total = collectives.all_reduce(x * 2, "sum", mesh["dp"].get_group())
        other = (x * 2 + 1).sin()
        parts = collectives.all_reduce_coalesced([x + 1, wide + 1], "sum", world)
        spread = collectives.reduce_scatter_tensor(wide * 3, "sum", 0, world)
        first = collectives.all_gather_tensor(x, 0, world)
        return total + other, parts[0] + 1, parts[1] + 1, spread + 1, first + 1
    expected = function(own(), own(16))
    backend = opscope.torch.backend(sys.argv[1] + "/dump")
    found = torch.compile(function, backend=backend)(own(), own(16))
    assert all(torch.equal(one, other) for one, other in zip(expected, found))
    report = backend.finish()
    assert report["unseen"] == {} and not report["first_fault"], report
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(6, 8), torch.nn.Linear(8, 6)
        def forward(self, x):
            return self.down(self.up(x).relu())
    torch.manual_seed(0)
    net = parallelize_module(Net(), mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    x = torch.randn(5, 6)
    expected = torch.compile(net, backend="aot_eager")(x).detach()
    torch._dynamo.reset()
    backend = opscope.torch.backend(sys.argv[1] + "/net")
    result = torch.compile(net, backend=backend)(x)
    assert torch.equal(result, expected)
    result.sum().backward()
    report = backend.finish()
    assert report["unseen"] == {} and not report["first_fault"], report
"""


def test_compiled_collectives(tmp_path: Path) -> None:
    run_ranks(tmp_path, COMPILED, N)
    everyone = [own(one) for one in RANKS]
    wide = [own(one, 16) for one in RANKS]
    for rank, root in rank_roots(tmp_path / "dump").items():
        pair = (rank % 2, rank % 2 + 2)
        found = shared(root, "all_reduce")
        assert (found.kind, found.ranks) == ("all_reduce(sum)", pair)
        assert np.array_equal(found.inputs[0], 2 * own(rank))
        assert np.array_equal(found.outputs[0], 2 * (own(pair[0]) + own(pair[1])))
        found = shared(root, "all_reduce_coalesced")
        assert np.array_equal(found.inputs[1], own(rank, 16) + 1)
        assert np.array_equal(found.outputs[0], sum(everyone) + 4)
        assert np.array_equal(found.outputs[1], sum(wide) + 4)
        found = shared(root, "reduce_scatter_tensor")
        assert (found.kind, found.ranks) == ("reduce_scatter(sum)", tuple(RANKS))
        assert np.array_equal(found.outputs[0], 3 * sum(wide)[4 * rank : 4 * rank + 4])
        assert np.array_equal(shared(root, "all_gather_into_tensor").outputs[0], np.concatenate(everyone))
    for rank, root in rank_roots(tmp_path / "net").items():
        records = list(opscope.open(root))
        tp = rank % 2
        placed = {one.placement for one in records if one.placement}
        assert placed >= {f"tp={tp}/2:S(0) of [8,6]", f"tp={tp}/2:S(1) of [6,8]", f"tp={tp}/2:R of [6]"}, placed
        reduced = [one for one in records if one.collective == "all_reduce(sum)"]
        assert {one.side for one in reduced} == {"input", "output"}
        assert {one.group_ranks for one in reduced} == {(rank - tp, rank - tp + 1)}


AXIS = re.compile(r"(\w+)=(\d+)/(\d+):([RSP])(?:\((\w+)(?:,(\d+))?\))?")


def slices(placement: str) -> list[Any]:
    """Of each axis of the tensor the indices that a rank has, as the text says it."""
    axes, shape = placement.removesuffix("]").split(" of [")
    found = [np.arange(int(extent)) for extent in shape.split(",") if extent]
    parts = [axis for axis in AXIS.findall(axes) if axis[3] == "S"]
    # Those with a factor cut what later axes of the mesh have cut before.
    strided = [axis for axis in parts if axis[5]]
    for _, coordinate, size, _, axis, _ in [axis for axis in parts if not axis[5]] + strided[::-1]:
        indices = found[int(axis)]
        length = -(-len(indices) // int(size))
        found[int(axis)] = indices[length * int(coordinate) : length * (int(coordinate) + 1)]
    return found


def slice_of(whole: Any, placement: str) -> Any:
    indices = slices(placement)
    return whole[np.ix_(*indices)] if indices else whole


TENSORS = """
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
    from torch.distributed.tensor import ones
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    line = init_device_mesh("cpu", (4,))
    whole = torch.arange(35.0).reshape(5, 7)
    spread = [distribute_tensor(whole, mesh, how) for how in (
        (Shard(0), Shard(1)), (Shard(1), Replicate()), (Replicate(), Shard(0)), (Shard(0), Shard(0)),
    )] + [distribute_tensor(whole, line, (Shard(how),)) for how in (0, 1)]
    half = DTensor.from_local(torch.ones(3) * rank, mesh["tp"], (Partial("sum"),))
    with opscope.torch.eager(sys.argv[1] + "/dump") as dump:
        for one in spread:
            one * 2
        half.relu()
        half.redistribute(placements=(Replicate(),)) + 1
    report = dump.finish()
    assert not report["first_error"] and not report["first_fault"] and not report["unseen"], report
"""


def test_parts_of_distributed_tensors(tmp_path: Path) -> None:
    run_ranks(tmp_path, TENSORS, N)
    whole = np.arange(35, dtype=np.float32).reshape(5, 7)
    for rank, root in rank_roots(tmp_path / "dump").items():
        records = list(opscope.open(root))
        placed = [one for one in records if one.name.startswith("mul")]
        assert len(placed) == 12
        for one in placed:
            wanted = whole * (1 if one.side == "input" else 2)
            assert np.array_equal(one.numpy(), slice_of(wanted, one.placement)), (rank, one.placement)
        dp, tp = divmod(rank, 2)
        assert placed[0].placement == f"dp={dp}/2:S(0),tp={tp}/2:S(1) of [5,7]"
        assert placed[8].placement == f"axis0={rank}/4:S(0) of [5,7]"
        # Torch adds contributions up before an operator that is not linear; those are operators of the program too.
        relu = [one for one in records if one.name == "relu"]
        assert [one.placement for one in relu] == [f"tp={tp}/2:P(sum) of [3]", f"tp={tp}/2:R of [3]"]
        others = np.full(3, 2.0 * dp * 2 + 1, np.float32)
        (reduced,) = (one for one in records if one.name == "all_reduce" and one.side == "output")
        assert reduced.task_id < relu[0].task_id, "who gets a value comes after who gives it"
        for name in ("all_reduce", "all_reduce_1"):
            found = shared(root, name)
            assert (found.kind, found.ranks) == ("all_reduce(sum)", (2 * dp, 2 * dp + 1))
            assert np.array_equal(found.inputs[0], np.full(3, rank, np.float32))
            assert np.array_equal(found.outputs[0], others)


def whole_of(records: list[Any]) -> Any:
    """The tensor whose parts some ranks hold, all of the same operator."""
    shape = [int(extent) for extent in records[0].placement.removesuffix("]").split(" of [")[1].split(",") if extent]
    found = np.full(shape, np.nan, np.float32)
    for one in records:
        part, indices = one.numpy(), slices(one.placement)
        known = found[np.ix_(*indices)]
        # Ranks with the same part agree to the last bit.
        assert np.isnan(known).all() or np.array_equal(known, part), one.placement
        found[np.ix_(*indices)] = part
    assert not np.isnan(found).any()
    return found


def of_modules(root: Path, step: int, choose: Callable[[Any], bool]) -> list[Any]:
    return [one for one in opscope.open(root) if one.step == step and choose(one)]


def is_linear(record: Any) -> bool:
    """Results of layers, which carry a sum of contributions where a rank has a part of the rows."""
    return record.op_type == "aten.addmm.default" and record.side == "output"


def is_update(record: Any) -> bool:
    return record.op_type == "aten.add_.Tensor" and record.side == "output" and record.module == ""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    return rank_roots(parallel_models.run(folder, n_steps=2, n_layers=1))[0]


def reports(folder: Path) -> dict[int, dict]:
    paths = folder.glob("report-*.json")
    return {int(path.stem.partition("-")[2]): json.loads(path.read_text(encoding="utf-8")) for path in paths}


@pytest.mark.parametrize("mesh", [{"dp": 2, "tp": 2}, {"tp": 4}, {"dp": 4}])
def test_a_model_over_a_mesh(tmp_path: Path, alone: Path, mesh: dict[str, int]) -> None:
    dump = parallel_models.run(tmp_path, mesh=mesh, n_steps=2, n_layers=1)
    for rank, report in reports(tmp_path).items():
        assert report["is_same"], "the dump changes nothing"
        assert not report["first_error"] and not report["first_fault"], (rank, report)
        assert report["first_non_finite"] is None, rank
    roots = rank_roots(dump)
    n_tp = mesh.get("tp", 1)
    for step in (0, 1):
        mine = {rank: of_modules(root, step, is_linear) for rank, root in roots.items()}
        golden = of_modules(alone, step, is_linear)
        for ranks in ([*range(first, first + n_tp)] for first in range(0, N, n_tp)):
            part = np.array_split(np.arange(golden[0].shape[0]), N // n_tp)[ranks[0] // n_tp]
            for together, other in zip(zip(*(mine[rank] for rank in ranks), strict=True), golden, strict=True):
                assert {one.module for one in together} == {other.module}
                assert_like(linear_result(list(together)), other.numpy()[part])
        updates = {rank: of_modules(root, step, is_update) for rank, root in roots.items()}
        theirs = of_modules(alone, step, is_update)
        for together, other in zip(zip(*updates.values(), strict=True), theirs, strict=True):
            assert_like(whole_of(list(together)), other.numpy())


def linear_result(records: list[Any]) -> Any:
    placement = records[0].placement
    if placement is None:
        (one,) = records
        return one.numpy()
    if ":P(" in placement:
        return np.sum([one.numpy() for one in records], axis=0)
    return whole_of(records)


def assert_like(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_planted_fault_is_on_its_rank_alone(tmp_path: Path) -> None:
    fault = Fault("activation", "layers.0.mlp.up", rank=3, step=0, value=float("nan"))
    dump = parallel_models.run(tmp_path, mesh={"tp": 4}, n_layers=1, fault=fault)
    found = {}
    for rank, root in rank_roots(dump).items():
        spoilt = [one for one in opscope.open(root) if one.dtype == "float32" and np.isnan(one.numpy()).any()]
        found[rank] = (spoilt[0].op_type, spoilt[0].collective, spoilt[0].side)
    assert found.pop(3) == ("aten.gelu.default", None, "input")
    assert set(found.values()) == {("_c10d_functional.all_reduce.default", "all_reduce(sum)", "output")}
