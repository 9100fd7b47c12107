"""Names of parameters and gradients, steps of a training loop, and optimizers as graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dumps
import models
import opscope.torch
import pytest
import torch
from torch import nn


def descriptions(root: str) -> list[dict[str, Any]]:
    """The descriptions of a dump's graphs, in the order of compilation."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in Path(root).glob(".opscope/graphs/*.json")]
    return sorted(found, key=lambda graph: int(graph["name"].removeprefix("graph_")))


def value(graph: dict, records: dict[str, dumps.Record], name: str) -> bytes:
    """Returns the bytes that a record has for a value: an operator's result, or an input that an operator read."""
    for side in ("outputs", "inputs"):
        for operator in graph["operators"]:
            if name in operator[side]:
                slots = getattr(records[operator["op_name"]].data(), side)
                # A result that an operator did not have to compute has no slot.
                return slots[[each for each in operator[side] if each is not None].index(name)].payload
    raise AssertionError(f"no operator reads or gives `{name}`")


@pytest.mark.parametrize("name", models.CASES)
def test_parameters_and_gradients_have_their_names(tmp_path, name: str) -> None:
    torch.manual_seed(3)
    case = models.CASES[name]
    model, inputs = case.make(), case.inputs()
    backend = opscope.torch.backend(tmp_path, form="acl")
    case.loss(torch.compile(model, backend=backend)(*inputs)).backward()
    root = backend.finish()["root"]
    forward, backward = descriptions(root)
    records = [graph[0] for graph in dumps.graphs(root)]
    for path, parameter in model.named_parameters():
        assert value(forward, records[0], forward["names"][path]) == models.bits(parameter), path
        assert value(backward, records[1], backward["names"][f"{path}.grad"]) == models.bits(parameter.grad), path
    (of_input,) = [given for path, given in forward["names"].items() if path not in model.state_dict()]
    assert value(forward, records[0], of_input) == models.bits(inputs[0])


def test_two_models_in_one_graph(tmp_path) -> None:
    one, two = nn.Linear(3, 3), nn.Linear(3, 3)
    backend = opscope.torch.backend(tmp_path, form="acl")
    torch.compile(lambda x: one(x) + two(x), backend=backend)(torch.ones(1, 3)).sum().backward()
    root = backend.finish()["root"]
    forward, backward = descriptions(root)
    records = dumps.graphs(root)[0][0]
    for name, model in (("one", one), ("two", two)):
        assert value(forward, records, forward["names"][f"{name}.weight"]) == models.bits(model.weight)
        assert f"{name}.bias.grad" in backward["names"]


def make_optimizers(parameters: list[nn.Parameter]) -> dict[str, torch.optim.Optimizer]:
    return {
        "sgd": torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        "adamw": torch.optim.AdamW(parameters, lr=torch.tensor(0.01)),
    }


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_an_optimizer_is_a_graph_of_its_own(tmp_path, kind: str) -> None:
    def train(backend: Any) -> tuple[nn.Module, list[dict[str, bytes]]]:
        torch.manual_seed(5)
        torch._dynamo.reset()
        model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
        optimizer = make_optimizers(list(model.parameters()))[kind]
        compiled = torch.compile(model, backend=backend)
        update = torch.compile(optimizer.step, backend=backend)
        states = []
        for _ in range(4):
            optimizer.zero_grad()
            compiled(torch.randn(5, 4)).square().sum().backward()
            states.append({f"{name}.grad": models.bits(p.grad) for name, p in model.named_parameters()})
            states[-1] |= {name: models.bits(p) for name, p in model.named_parameters()}
            update()
        states.append({name: models.bits(p) for name, p in model.named_parameters()})
        return model, states

    _, expected = train("aot_eager")
    backend = opscope.torch.backend(tmp_path, form="acl")
    model, states = train(backend)
    report = backend.finish()
    assert states == expected and report["first_error"] is None and report["unseen"] == {}
    graphs, written = descriptions(report["root"]), dumps.graphs(report["root"])
    updates = [(graph, steps) for graph, steps in zip(graphs, written, strict=True) if graph["phase"] == "inference"]
    graph, steps = updates[-1]
    # The last executions of the last graph are the last steps of the optimizer.
    before = states[-2]
    for path, _ in model.named_parameters():
        for name in (path, f"{path}.grad"):
            assert value(graph, steps[max(steps)], graph["names"][name]) == before[name], name
    results = {t.payload for record in steps[max(steps)].values() for t in record.data().outputs}
    assert set(states[-1].values()) <= results


def test_steps_of_a_loop(tmp_path) -> None:
    """Graphs of a step have one number, however often each of them runs."""
    model = nn.Linear(3, 2)
    backend = opscope.torch.backend(tmp_path, steps="1|3", form="acl")
    compiled = torch.compile(model, backend=backend)
    numbers = []
    for _ in range(4):
        numbers.append(opscope.torch.step())
        for _ in range(2):
            compiled(torch.randn(4, 3)).sum().backward()
        with torch.no_grad():
            compiled(torch.randn(4, 3))
    report = backend.finish()
    assert numbers == [0, 1, 2, 3]
    found = []
    for folder in sorted(Path(report["root"]).glob("0/graph_*/*/*")):
        found.append((folder.parts[-3], folder.name, len({p.name.split(".")[2] for p in folder.iterdir()})))
        n_files = len(list(folder.iterdir()))
        assert n_files % found[-1][2] == 0
    assert {step for _, step, _ in found} == {"1", "3"} and len(found) == 6
    assert report["n_files"] == report["n_operators_written"]
    opscope.torch.set_step(10)
    assert opscope.torch.step() == 11
    opscope.torch.set_step(None)
    assert opscope.torch.step() == 0
