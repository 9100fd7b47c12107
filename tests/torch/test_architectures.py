"""Real networks: the same bits with and without a dump, and every operator of their graphs in it."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import dumps
import opscope.torch
import pytest
import torch
from architectures import ARCHITECTURES, Outcome, Trainer
from observer import Observer
from reference import Graph
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

ALL = pytest.mark.parametrize("name", ARCHITECTURES)
TRAINING = pytest.mark.parametrize("is_training", [False, True], ids=["inference", "training"])
# A prime, so that other operators of repeated layers are checked each time.
EVERY = 7


def check(trainer: Trainer, path: Path, *, every: int = EVERY, step: int = 1, **options: object) -> list[Graph]:
    """Runs a network with taps and without: the results are the same, and the records of `step` complete."""
    observer = Observer(every)
    check_elements(trainer, observer, trainer.run(observer), path, step, **options)
    return observer.graphs


def check_elements(
    trainer: Trainer, observer: Observer, observed: Outcome, path: Path, step: int = 1, **options: object
) -> None:
    backend = opscope.torch.backend(path, steps=step, **options, form="acl")
    tapped = trainer.run(backend)
    report = backend.finish()
    assert_same(tapped, observed)
    for reason in ("first_error", "first_fault"):
        assert report[reason] is None
    assert report["n_dropped"] == report["dropped"]["not_shown"]
    assert set(report["unseen"]) <= {"uninitialised"}, report["unseen"]
    expected = [graph for graph in observer.graphs if len(graph.runs) > step]
    assert expected, "no graph ran often enough"
    found = [graph for graph in dumps.graphs(report["root"]) if graph]
    for graph, written in zip(expected, found, strict=True):
        assert list(written) == [step]
        assert_complete(graph.runs[step], written[step])
    shutil.rmtree(path)


def check_statistics(trainer: Trainer, observed: Outcome, path: Path) -> None:
    backend = opscope.torch.backend(path, data="stats", form="acl")
    assert_same(trainer.run(backend), observed)
    report = backend.finish()
    assert report["first_error"] is None and report["first_fault"] is None and report["n_operators_written"] > 0
    shutil.rmtree(path)


def assert_same(one: Outcome, other: Outcome) -> None:
    """Names what differs, instead of showing bytes."""
    assert [a == b for a, b in zip(one.outputs, other.outputs, strict=True)] == [True] * len(one.outputs)
    for ours, theirs in ((one.gradients, other.gradients), (one.state, other.state)):
        assert ours.keys() == theirs.keys()
        assert [name for name in ours if ours[name] != theirs[name]] == []
    assert one.random == other.random


def assert_complete(run: dict, written: dict[str, dumps.Record]) -> None:
    """Every operator has its record with all slots, and what was sampled is in them."""
    with_elements = {
        name for name, one in run.items() if any(0 not in shape for shape in one.shapes.inputs + one.shapes.outputs)
    }
    assert set(written) == with_elements
    for name in with_elements:
        execution, record = run[name], written[name]
        data = record.data()
        assert record.op_type == execution.target.replace(".", "_")
        shapes = execution.shapes
        assert [t.shape for t in data.outputs] == shapes.outputs, name
        if execution.payloads is not None:
            assert [t.shape for t in data.inputs] == shapes.inputs, name
            assert [t.payload for t in data.inputs] == execution.payloads.inputs, name
            assert [t.payload for t in data.outputs] == execution.payloads.outputs, name
        else:
            # Inputs that come from `empty` are left out.
            assert len(data.inputs) <= len(shapes.inputs), name


@pytest.mark.sampled(0.3, each="is_training")
@ALL
@TRAINING
def test_every_operator_is_there_and_nothing_else_changes(tmp_path, name: str, is_training: bool) -> None:
    """With elements and with statistics, compared with one run of the network without either."""
    trainer = Trainer(ARCHITECTURES[name], is_training)
    observer = Observer(EVERY)
    observed = trainer.run(observer)
    check_elements(trainer, observer, observed, tmp_path / "dump")
    graphs = observer.graphs
    assert {graph.phase for graph in graphs} == ({"forward", "backward"} if is_training else {"inference"})
    assert sum(len(graph.runs[1]) for graph in graphs if len(graph.runs) > 1) > 50
    check_statistics(trainer, observed, tmp_path / "statistics")


@pytest.mark.parametrize("name", ("mobilenet_v3_small", "gpt2"))
@TRAINING
def test_without_a_dump_graphs_are_those_of_aot_eager(name: str, is_training: bool) -> None:
    trainer = Trainer(ARCHITECTURES[name], is_training)
    backend = opscope.torch.backend(enabled=False, form="acl")
    assert_same(trainer.run("aot_eager"), trainer.run(backend))


def _small(name: str, **options: object) -> Trainer:
    return Trainer(ARCHITECTURES[name], True, **options)


def test_bfloat16_by_autocast(tmp_path) -> None:
    check(_small("vit", context=lambda: torch.autocast("cpu", torch.bfloat16)), tmp_path / "dump")


def test_dropout_draws_the_same_numbers(tmp_path) -> None:
    """`Outcome.random` is the number that comes next."""
    graphs = check(_small("bert"), tmp_path / "dump", every=3)
    targets = {execution.target for graph in graphs for run in graph.runs for execution in run.values()}
    assert any("dropout" in target or "bernoulli" in target or "rand" in target for target in targets), targets


class _Checkpointed(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.inner, x, use_reentrant=False)


def _recomputed_blocks(model: nn.Module) -> nn.Module:
    for name, block in model.encoder.layers.named_children():
        setattr(model.encoder.layers, name, _Checkpointed(block))
    return model


def test_activation_checkpoints(tmp_path) -> None:
    """Checks that operators computed again for the backward pass have records there."""
    plain = check(_small("vit"), tmp_path / "plain")
    graphs = check(_small("vit", prepare=_recomputed_blocks), tmp_path / "dump")

    def n_products(graphs: list[Graph], phase: str) -> int:
        runs = [graph.runs[1] for graph in graphs if graph.phase == phase]
        return sum("mm" in execution.target for run in runs for execution in run.values())

    assert n_products(graphs, "forward") == n_products(plain, "forward")
    assert n_products(graphs, "backward") > n_products(plain, "backward")


class _Broken(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        return self.inner(x)


def _broken_blocks(model: nn.Module) -> nn.Module:
    # With dropout in graphs that are parted so, torch's own `aot_eager` fails in the backward pass.
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    for name, block in model.encoder.layers.named_children():
        setattr(model.encoder.layers, name, _Broken(block))
    return model


def test_graph_breaks(tmp_path) -> None:
    graphs = check(_small("vit", prepare=_broken_blocks), tmp_path / "dump")
    assert sum(graph.phase == "forward" for graph in graphs) > 2


def test_sizes_that_change(tmp_path) -> None:
    # All shorter than the batch: its full length would have other strides, and a separate graph.
    lengths = itertools.cycle([9, 10, 11])
    trainer = _small("gpt2", n_steps=3, adapt=lambda x: x[:, : next(lengths)], compiler={"dynamic": True})
    graphs = check(trainer, tmp_path / "dump", step=2)
    assert len(graphs) == 2, "one graph has to do for all sizes"
    (shape,) = {run[name].shapes.outputs[0] for run in graphs[0].runs[2:] for name in run if name == "embedding"}
    assert shape == (2, 11, 32)


def test_gradients_of_several_batches(tmp_path) -> None:
    check(_small("gpt2", n_batches=2), tmp_path / "dump", step=3)


def test_channels_last(tmp_path) -> None:
    """Records have row-major elements, whatever the order in memory."""
    trainer = _small(
        "mobilenet_v3_small",
        prepare=lambda model: model.to(memory_format=torch.channels_last),
        adapt=lambda x: x.to(memory_format=torch.channels_last),
    )
    check(trainer, tmp_path / "dump")
