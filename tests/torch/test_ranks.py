"""Processes that run together, under `torchrun` and by themselves, with gloo on one machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import dumps
import launch
import models
import opscope.torch
import pytest
import torch
from opscope._world import World
from opscope.torch import _ranks

HEAD = """
import json, os, sys, torch, opscope.torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as collectives
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
rank = dist.get_rank()
"""


def _program(tmp_path: Path, code: str) -> str:
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(code) + "\ndist.destroy_process_group()\n", encoding="utf-8")
    return str(program)


def run_ranks(tmp_path: Path, code: str, n: int = 2) -> None:
    """Runs a program in `n` processes; it has the folder as its only argument."""
    done = launch.launch(n, _program(tmp_path, code), tmp_path)
    assert done.returncode == 0, done.stderr


def torchrun(tmp_path: Path, code: str) -> None:
    """Runs a program in two processes as users start them."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, _program(tmp_path, code), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def roots(tmp_path: Path, size: int = 2) -> dict[int, Path]:
    """The dump of each rank that has one."""
    found = {}
    for folder in (tmp_path / "dump").iterdir():
        (root,) = folder.iterdir()
        prefix = f"worldsize{size}_global_rank"
        assert folder.name.startswith(prefix)
        found[int(folder.name.removeprefix(prefix))] = root
    return found


TRAINING = """
    import time
    class Net(torch.nn.Module):
        # Of torch's own modules only those are compiled that one of the program's calls.
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        def forward(self, x):
            return self.down(self.up(x).relu())
    def train(backend):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = torch.compile(DistributedDataParallel(Net()), backend=backend)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(100 + rank)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(4, 6)).square().sum().backward()
            optimizer.step()
        return [p.detach().clone() for p in model.parameters()]
    expected = train("aot_eager")
    # Their clocks name different seconds.
    time.sleep(1.2 * rank)
    backend = opscope.torch.backend(sys.argv[1] + "/dump", ranks=OPTION, form="acl")
    found = train(backend)
    assert all(torch.equal(a, b) for a, b in zip(expected, found))
    report = backend.finish()
    assert report.get("first_error") is None and not report.get("unseen"), report
    with open(f"{sys.argv[1]}/written{rank}.json", "w") as file:
        json.dump(report.get("n_written", 0), file)
"""


def test_data_parallel_training(tmp_path) -> None:
    torchrun(tmp_path, TRAINING.replace("OPTION", "None"))
    found = roots(tmp_path)
    assert set(found) == {0, 1}
    assert found[0].name == found[1].name, "one time for all"
    batches = []
    for root in found.values():
        graphs = dumps.graphs(str(root))
        assert [sorted(graph) for graph in graphs] == [[0, 1, 2]] * len(graphs)
        described = [json.loads(path.read_text()) for path in root.glob(".opscope/graphs/*.json")]
        names = {name.removeprefix("module.") for graph in described for name in graph["names"]}
        assert {"up.weight", "down.bias", "up.weight.grad", "down.bias.grad"} <= names, names
        first = graphs[0][0]["addmm"].data()
        batches.append([t.payload for t in first.inputs if t.shape == (4, 6)])
    assert batches[0] != batches[1]


@pytest.mark.parametrize(("option", "chosen"), [("[1]", {1}), ("'0|5-7'", {0})])
def test_chosen_ranks_only(tmp_path, option: str, chosen: set[int]) -> None:
    """The others take no part in choosing the time, and are not awaited."""
    run_ranks(tmp_path, TRAINING.replace("OPTION", option))
    assert set(roots(tmp_path)) == chosen
    written = {rank: json.loads((tmp_path / f"written{rank}.json").read_text()) for rank in (0, 1)}
    assert {rank for rank, n in written.items() if n} == chosen


def test_collectives(tmp_path) -> None:
    """They are recorded when they are done."""
    run_ranks(
        tmp_path,
        """
        backend = opscope.torch.backend(sys.argv[1] + "/dump", form="acl")
        def function(x):
            total = collectives.all_reduce(x * 2, "sum", dist.group.WORLD)
            return collectives.all_gather_tensor(total + rank, 0, dist.group.WORLD)
        result = torch.compile(function, backend=backend)(torch.full((1 << 18,), float(rank + 1)))
        assert torch.equal(result, torch.tensor([6.0, 7.0]).repeat_interleave(1 << 18)), result
        report = backend.finish()
        assert report["unseen"] == {}, report
        """,
    )
    for root in roots(tmp_path).values():
        (graph,) = dumps.graphs(str(root))
        for sum_name, gathered_name in (("wait_tensor", "wait_tensor_1"), ("all_reduce", "all_gather_into_tensor")):
            sums, gathered = (graph[0][name].data().outputs[0].payload for name in (sum_name, gathered_name))
            assert sums == models.bits(torch.full((1 << 18,), 6.0))
            assert gathered == models.bits(torch.tensor([6.0, 7.0]).repeat_interleave(1 << 18))


def test_dumps_one_after_the_other_have_a_common_time_each(tmp_path) -> None:
    run_ranks(
        tmp_path,
        """
        import time
        for i in range(3):
            torch._dynamo.reset()
            if rank == i % 2:
                time.sleep(0.7)
            backend = opscope.torch.backend(sys.argv[1] + "/dump", form="acl")
            torch.compile(torch.sin, backend=backend)(torch.ones(2))
            backend.finish()
        """,
    )
    names = [sorted(path.name for path in folder.iterdir()) for folder in sorted((tmp_path / "dump").iterdir())]
    assert len(names) == 2 and names[0] == names[1] and len(names[0]) == 3


def test_a_rank_that_dumps_alone_does_not_wait(tmp_path) -> None:
    run_ranks(
        tmp_path,
        """
        from datetime import timedelta
        from opscope.torch import _ranks
        # A rank that waited for the other one would wait for ever.
        _ranks._STORE_SECONDS_MAX = 3600.0
        store = dist.distributed_c10d._get_default_store()
        if rank == 1:
            backend = opscope.torch.backend(sys.argv[1] + "/dump", form="acl")
            torch.compile(torch.sin, backend=backend)(torch.ones(2))
            assert backend.finish()["n_operators_written"] == 1
            store.set("dumped", "")
        else:
            store.wait(["dumped"], timedelta(seconds=240))
        """,
    )
    assert set(roots(tmp_path)) == {1}


def test_without_a_process_group_the_variables_count(tmp_path) -> None:
    code = "import sys, torch, opscope.torch as o; b = o.backend(sys.argv[1]); "
    code += "torch.compile(torch.sin, backend=b)(torch.ones(2)); b.finish()"
    for rank in (0, 3):
        environment = os.environ | {"WORLD_SIZE": "4", "RANK": str(rank)}
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "dump")], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert set(roots(tmp_path, 4)) == {0, 3}


def test_a_store_that_does_not_answer_is_given_up() -> None:
    import threading

    is_over = threading.Event()

    def ask() -> str:
        is_over.wait(600)
        return ""

    with pytest.raises(TimeoutError, match="did not answer within"):
        _ranks.within(0.05, ask)
    is_over.set()


def test_a_store_that_cannot_agree_is_told(tmp_path, monkeypatch, caplog) -> None:
    """The process has its own time then."""

    class Store:
        def compare_set(self, *_: str) -> bytes:
            raise NotImplementedError("no compare_set")

    monkeypatch.setattr(_ranks, "is_initialised", lambda: True)
    monkeypatch.setattr(_ranks, "world", lambda: World(2, 1))
    monkeypatch.setattr(torch.distributed.distributed_c10d, "_get_default_store", Store)
    times = _ranks.times(str(tmp_path), 1_700_000_000.0)
    assert len(times[0]) == 14 and times == sorted(set(times))
    assert "each has its own: no compare_set" in caplog.text


def test_wrong_ranks() -> None:
    with pytest.raises(ValueError, match="ranks `0-x`"):
        opscope.torch.backend(ranks="0-x", form="acl")
