"""Which executions are dumped, and what the others cost."""

from __future__ import annotations

import gc
import resource
import weakref
from pathlib import Path

import dumps
import models
import opscope.torch
import pytest
import torch


def test_steps_count_for_each_graph(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, steps="1|3-4", data="stats", form="acl")
    models.run(models.CASES["cnn"], backend, is_training=True, n_steps=6)
    report = backend.finish()
    forward, backward = dumps.graphs(report["root"])
    assert sorted(forward) == sorted(backward) == [1, 3, 4]
    assert (report["n_steps"], report["n_steps_active"]) == (12, 6)


def test_steps_that_the_program_counts(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, steps=(7,), mode="output", form="acl")
    compiled = torch.compile(torch.sin, backend=backend)
    for step in (5, 7, 9):
        opscope.torch.set_step(step)
        compiled(torch.full((2,), float(step)))
    (graph,) = dumps.graphs(backend.finish()["root"])
    assert list(graph) == [7]
    (output,) = graph[7]["sin"].data().outputs
    assert output.payload == models.bits(torch.full((2,), 7.0).sin())


def test_other_steps_write_nothing(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, steps=100, form="acl")
    tapped = models.run(models.CASES["cnn"], backend, is_training=True)
    torch._dynamo.reset()
    assert models.same(tapped, models.run(models.CASES["cnn"], is_training=True))
    with pytest.warns(RuntimeWarning, match="of 4 executions of graphs none was among the steps"):
        report = backend.finish()
    assert (report["n_operators_seen"], report["n_files"], report["n_bytes_written"]) == (0, 0, 0)
    files = [path for path in Path(tmp_path).rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["run.json"], "only the record of the run, made at its end"


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_memory_does_not_grow(tmp_path, data: str) -> None:
    backend = opscope.torch.backend(tmp_path, data=data, queue_bytes_max=8 << 20, form="acl")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    compiled = torch.compile(model, backend=backend)

    def train(n_steps: int) -> tuple[int, int]:
        for _ in range(n_steps):
            compiled(torch.randn(128, 64)).sum().backward()
            model.zero_grad()
        # Tensors that wait to be written are still held, and rightly so.
        counts = backend.counters()
        while counts["n_written"] < counts["n_selected"]:
            counts = backend.counters()
        gc.collect()
        tensors = sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects())
        return tensors, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    train(49)
    n_before, memory_before = train(1)
    n_after, memory_after = train(200)
    # A writer may still be letting go of its last records; one tensor kept in each step would be 200.
    assert n_after <= n_before + 40
    # In kilobytes. A step shows 1.5 MB, so that 200 that stay would be 300 MB; what waits to be written is bounded.
    assert memory_after - memory_before < 64 << 10
    report = backend.finish()
    assert report["n_dropped"] == report["n_failed"] == 0


def test_values_are_let_go_when_the_step_ends(tmp_path) -> None:
    held = []
    backend = opscope.torch.backend(tmp_path, mode="all", form="acl")

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).relu().sum()

    compiled = torch.compile(function, backend=backend)
    for _ in range(3):
        x = torch.randn(1000)
        held.append(weakref.ref(x))
        compiled(x)
        del x
    backend.finish()
    gc.collect()
    assert [reference() for reference in held] == [None, None, None]


def test_the_dump_is_over_after_finish(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, form="acl")
    compiled = torch.compile(torch.sin, backend=backend)
    x = torch.ones(2)
    compiled(x)
    report = backend.finish()
    n_files = len(list(Path(tmp_path).rglob("*")))
    assert torch.equal(compiled(x), x.sin())
    assert backend.finish() == report
    assert len(list(Path(tmp_path).rglob("*"))) == n_files
