"""Tests of the names by which operators and values are found again in the model and in other runs of it."""

from __future__ import annotations

import json
from pathlib import Path

import models
import opscope.torch
import pytest
import torch
from opscope.torch import _names

needs_descriptions = pytest.mark.skipif(
    tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 9),
    reason="this torch does not say what arguments are",
)


def graphs(report: dict) -> list[dict]:
    paths = (Path(report["root"]) / ".opscope/graphs").iterdir()
    return sorted((json.loads(path.read_text()) for path in paths), key=lambda g: int(g["name"].split("_")[1]))


def trained(tmp_path: Path, model: torch.nn.Module, *inputs: torch.Tensor) -> list[dict]:
    backend = opscope.torch.backend(tmp_path, form="acl")
    result = torch.compile(model, backend=backend)(*inputs)
    (result[0] if isinstance(result, tuple) else result).sum().backward()
    report = backend.finish()
    assert report["first_fault"] is None
    return graphs(report)


KINDS = {
    "aten.add.Tensor": "add",
    "aten.add_.Scalar": "add",
    "aten.__and__.Tensor": "__and__",
    "aten.relu_.default": "relu",
    "aten._softmax.default": "_softmax",
    "aten.native_batch_norm.default": "batch_norm",
    "aten.cudnn_batch_norm.default": "batch_norm",
    "aten._native_batch_norm_legit_no_training.default": "batch_norm",
    "aten._batch_norm_with_update.default": "batch_norm",
    "aten.native_batch_norm_backward.default": "batch_norm_backward",
    "my_library.thing_.default": "thing",
    "cond": "cond",
}


@pytest.mark.parametrize("target", KINDS)
def test_kinds(target: str) -> None:
    assert _names.kind(target) == KINDS[target]


PARAMETERS = {
    "L['self']._modules['blocks']._modules['0']._modules['l1']._parameters['weight']": "blocks.0.l1.weight",
    "L['self']._parameters['scale']": "scale",
    "L['self']._modules['bn']._buffers['running_mean']": "bn.running_mean",
    "G['model']._modules[\"up\"]._parameters[\"bias\"]": "up.bias",
    "L['fn'].__closure__[0].cell_contents._modules['up']._parameters['bias']": "up.bias",
    "L['x']": "",
    "L['self']._modules['blocks']": "",
    "L['self'].table['weight']": "",
}


@pytest.mark.parametrize("source", PARAMETERS)
def test_paths_of_parameters(source: str) -> None:
    assert _names.parameter_path(source) == PARAMETERS[source]


VIEWS = {"view": True, "t": True, "detach": True, "expand": True, "split": True, "add": False, "clone": False}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    packet = getattr(torch.ops.aten, name)
    assert _names.is_view(getattr(packet, packet.overloads()[0])) is VIEWS[name]
    assert not _names.is_view(torch.ops.aten.add_.Tensor)


def test_parameters_and_their_gradients(tmp_path) -> None:
    torch.manual_seed(0)
    model = models.Cnn()
    forward, backward = trained(tmp_path, model, torch.randn(2, 3, 10, 10))
    named = dict(model.named_parameters())
    arguments = {forward["values"][name].get("fqn") for name in forward["arguments"]} - {None}
    assert arguments == set(named) | {name for name, _ in model.named_buffers()}
    for name, value in forward["values"].items():
        if name in forward["arguments"] and value.get("fqn") in named:
            assert value["shape"] == list(named[value["fqn"]].shape)
    gradients = {value["fqn"]: value for value in backward["values"].values() if value.get("fqn", "").endswith(".grad")}
    assert set(gradients) == {f"{name}.grad" for name in named}
    for name, value in gradients.items():
        assert value["shape"] == list(named[name.removesuffix(".grad")].shape)
    # The attributes of the operators that read and give these values name them as well.
    (head,) = [one for one in forward["operators"] if one["op_name"] == "addmm"]
    assert head["attributes"]["input.0.fqn"] == "head.bias"
    given = {text for one in backward["operators"] for key, text in one["attributes"].items() if "output" in key}
    assert given >= {"head.weight.grad", "features.0.weight.grad", "features.1.bias.grad"}


@needs_descriptions
def test_buffers_that_get_a_new_value(tmp_path) -> None:
    forward, _ = trained(tmp_path, models.Cnn(), torch.randn(2, 3, 10, 10))
    written = [one["attributes"] for one in forward["operators"] if one["attributes"]["kind"] == "copy"]
    updated = {attributes.get("input.0.fqn", "").removeprefix("features.") for attributes in written}
    assert updated == {f"{i}.{name}" for i in (1, 5) for name in ("running_mean", "running_var", "num_batches_tracked")}


@pytest.mark.parametrize("make", [models.Cnn, models.Mlp, models.Transformer])
def test_forward_partners(tmp_path, make: type) -> None:
    torch.manual_seed(0)
    inputs = {models.Cnn: (2, 3, 10, 10), models.Mlp: (5, 10)}
    x = torch.randn(inputs[make]) if make in inputs else torch.randint(0, 11, (2, 7))
    forward, backward = trained(tmp_path, make(), x)
    by_task = {one["task_id"]: one for one in forward["operators"]}
    n_paired = n_same_module = 0
    for one in backward["operators"]:
        found = one["attributes"]
        if "forward_task_id" not in found:
            continue
        partner = by_task[int(found["forward_task_id"])]
        assert found["forward_graph"] == forward["name"]
        assert partner["attributes"]["seq_nr"] == found["seq_nr"]
        n_paired += 1
        n_same_module += partner["attributes"].get("module") == found.get("module")
    assert n_paired >= 0.9 * len(backward["operators"]) and n_same_module >= 0.8 * n_paired
    names = {(by_task[int(one["attributes"]["forward_task_id"])]["attributes"]["kind"], one["attributes"]["kind"])
             for one in backward["operators"] if "forward_task_id" in one["attributes"]}  # fmt: skip
    expected = {
        models.Cnn: ("convolution", "convolution_backward"),
        models.Mlp: ("gelu", "gelu_backward"),
        models.Transformer: ("embedding", "embedding_dense_backward"),
    }
    assert expected[make] in names


def test_what_an_operator_says_of_itself(tmp_path) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x).view(-1).relu_()

    backend = opscope.torch.backend(tmp_path, form="acl")
    with torch.no_grad():
        torch.compile(Model(), backend=backend)(torch.ones(4, 3))
    (graph,) = graphs(backend.finish())
    operators = {one["op_name"]: one for one in graph["operators"]}
    assert operators["addmm"]["attributes"]["module"] == "inner"
    assert operators["addmm"]["attributes"]["target"] == "aten.addmm.default"
    assert "test_names.py:" in operators["relu"]["attributes"]["source"]
    assert [operators[name]["is_view"] for name in ("t", "addmm", "view", "relu")] == [True, False, True, False]
    assert operators["relu"]["attributes"]["kind"] == "relu"
    assert "forward_task_id" not in operators["addmm"]["attributes"]


def test_what_an_operator_was_before_it_was_taken_apart(tmp_path) -> None:
    table = torch._decomp.get_decompositions([torch.ops.aten.silu])
    backend = opscope.torch.backend(tmp_path, decompositions=table, form="acl")
    torch.compile(lambda x: torch.nn.functional.silu(x) + 1, backend=backend)(torch.ones(3))
    (graph,) = graphs(backend.finish())
    by_kind = {one["attributes"]["kind"]: one["attributes"] for one in graph["operators"]}
    assert by_kind["sigmoid"]["original_aten"] == "aten.silu.default"
    assert "original_aten" not in by_kind["add"]


def test_names_are_the_same_in_another_compilation(tmp_path) -> None:
    def described(folder: str) -> list:
        torch._dynamo.reset()
        torch.manual_seed(0)
        found = trained(tmp_path / folder, models.Transformer(), torch.randint(0, 11, (2, 7)))
        return [
            [(one["op_name"], one["attributes"]["kind"], one["attributes"].get("module")) for one in graph["operators"]]
            for graph in found
        ]

    assert described("first") == described("second")
