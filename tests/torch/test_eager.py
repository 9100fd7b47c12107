"""Eager mode: every operator, against a mode of torch's own dispatcher that clones everything."""

from __future__ import annotations

import contextlib
import gc
import json
import resource
import threading
from pathlib import Path
from typing import Any

import models
import numpy as np
import opscope.torch
import pytest
import torch
from eager_reference import Recorder
from eager_runs import check, check_rows, check_steps, is_undefined, operators, records, train
from torch import Tensor, nn


@pytest.mark.parametrize("name", models.CASES)
def test_training(tmp_path, name: str) -> None:
    plain = train(name, contextlib.nullcontext())
    recorder = Recorder()
    assert train(name, recorder) == plain
    dump = opscope.torch.eager(tmp_path, form="acl")
    assert train(name, dump) == plain, "not the same bits"
    report = dump.finish()
    assert check_steps(report, recorder) > 300
    assert (report["n_steps"], report["n_steps_active"]) == (2, 2)
    assert report["n_selected"] == report["n_written"] + report["n_dropped"]


@pytest.mark.parametrize("data", ["tensor", "stats"])
@pytest.mark.parametrize("mode", ["input", "output", "all"])
def test_sides_and_statistics(tmp_path, data: str, mode: str) -> None:
    recorder = Recorder()
    plain = train("cnn", recorder)
    dump = opscope.torch.eager(tmp_path, data=data, mode=mode, form="acl")
    assert train("cnn", dump) == plain
    root = dump.finish()["root"]
    for step, executions in enumerate(recorder.steps[:2]):
        written = records(root, step)
        for operator, expected in zip(operators(root, step), executions):
            record = written.get(operator["op_name"])
            if record is None or is_undefined(operator):
                continue
            sides = {"input": expected.inputs, "output": expected.outputs}
            wanted = [one for side in ("input", "output") if mode in (side, "all") for one in sides[side] if one]
            if data == "tensor":
                content = record.data()
                found = [(t.shape, t.payload) for t in content.inputs + content.outputs]
                assert found[: len(wanted)] == wanted
            else:
                check_rows(record.rows(), wanted)


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_optimizers(tmp_path, foreach: bool, optimizer: Any) -> None:
    def make(parameters: Any, lr: float) -> Any:
        return optimizer(parameters, lr=lr, foreach=foreach)

    plain = train("mlp", contextlib.nullcontext(), optimizer=make)
    recorder = Recorder()
    assert train("mlp", recorder, optimizer=make) == plain
    dump = opscope.torch.eager(tmp_path, form="acl")
    assert train("mlp", dump, optimizer=make) == plain
    report = dump.finish()
    check_steps(report, recorder)
    phases = {operator["attributes"]["phase"] for operator in operators(report["root"])}
    assert phases == {"forward", "backward", "optimizer"}


def test_forward_and_backward_are_linked(tmp_path) -> None:
    dump = opscope.torch.eager(tmp_path, data="stats", mode="output", form="acl")
    train("cnn", dump, n_steps=1)
    described = operators(dump.finish()["root"])
    forward = {one["op_name"]: one["attributes"] for one in described if one["attributes"]["phase"] == "forward"}
    backward = [one for one in described if one["attributes"]["phase"] == "backward"]
    pairs = {}
    for one in backward:
        attributes = one["attributes"]
        if "forward" in attributes:
            partner = forward[attributes["forward"]]
            assert partner["seq_nr"] == attributes["seq_nr"]
            assert partner.get("module") == attributes.get("module")
            assert partner["source"] == attributes["source"]
            pairs[one["op_name"]] = attributes["forward"]
    assert pairs["convolution_backward"] == "convolution_1"
    assert pairs["convolution_backward_1"] == "convolution"
    assert pairs["native_batch_norm_backward"] == "native_batch_norm_1"
    assert pairs["threshold_backward"] == "relu__1"
    unlinked = [one for one in backward if "forward" not in one["attributes"]]
    # Only what gathers gradients has no forward operator.
    assert {one["attributes"]["autograd_node"] for one in unlinked} == {"torch::autograd::AccumulateGrad"}
    numbers = [one["seq_nr"] for one in forward.values() if "seq_nr" in one]
    assert len(numbers) == len(set(numbers))


def test_modules_lines_and_names(tmp_path) -> None:
    dump = opscope.torch.eager(tmp_path, data="stats", form="acl")
    train("cnn", dump, n_steps=1)
    described = operators(dump.finish()["root"])
    by_name = {one["op_name"]: one for one in described}
    modules = {
        "convolution": "features.0", "native_batch_norm": "features.1", "relu_": "features.2", "addmm": "head",
        "convolution_backward": "features.4", "native_batch_norm_backward": "features.5",
    }  # fmt: skip
    assert {name: by_name[name]["attributes"]["module"] for name in modules} == modules
    assert "module" not in by_name["mean"]["attributes"]
    source = by_name["mean"]["attributes"]["source"]
    path, line = source.split(" ")[0].rsplit(":", 1)
    assert "self.features(x).mean" in Path(path).read_text().splitlines()[int(line) - 1]
    assert source.endswith(" forward")
    convolution = by_name["convolution"]
    assert convolution["inputs"] == ["randn", "features.0.weight", "features.0.bias"]
    assert convolution["attributes"]["argument.3"] == "[1, 1]"
    assert by_name["native_batch_norm"]["inputs"][0] == "convolution"
    # The optimizer reads what backward gave, and writes to the parameter.
    written = [one for one in described if one["op_name"].startswith("addcdiv_")]
    assert written[0]["inputs"][0] == "features.0.weight"


def test_values_are_linked(tmp_path) -> None:
    def function() -> Tensor:
        x = torch.ones(4)
        y = x + 1
        z = y.view(2, 2)
        z.mul_(5)
        return y - x

    _, described = check(tmp_path, function)
    by_name = {one["op_name"]: one for one in described}
    assert by_name["view"]["inputs"] == ["add"]
    assert by_name["mul_"]["inputs"] == ["view"]
    changed, plain = by_name["sub"]["inputs"]
    assert plain == "ones" and changed == "mul_@1"


def test_an_operator_that_fails(tmp_path) -> None:
    dump = opscope.torch.eager(tmp_path, form="acl")
    with dump:
        x = torch.ones(2, 3)
        with pytest.raises(RuntimeError, match="mat1 and mat2"):
            torch.mm(x, x)
        x + 1
    report = dump.finish()
    described = operators(report["root"])
    assert [one["op_name"] for one in described] == ["ones", "mm", "add"]
    assert set(records(report["root"])) == {"ones", "add"}
    assert report["dropped"]["operator_failed"] == 2


def test_an_error_leaves_the_context(tmp_path) -> None:
    dump = opscope.torch.eager(tmp_path, form="acl")
    with pytest.raises(ZeroDivisionError), dump:
        torch.ones(2) + 1
        raise ZeroDivisionError
    assert torch._C._len_torch_dispatch_stack() == 0
    report = dump.finish()
    assert report["n_runs_failed"] == 1 and report["n_files"] == 2


def test_what_cannot_be_looked_at_is_counted(tmp_path) -> None:
    def function() -> None:
        torch.ones(2, device="meta") + 1
        torch.ones(3).to(torch.float8_e4m3fnuz)
        torch.empty(3)

    report, _ = check(tmp_path, function)
    unseen = report["unseen"]
    assert unseen["no memory"] >= 2
    assert unseen["dtype float8_e4m3fnuz"] >= 1 and unseen["uninitialised"] >= 1
    assert report["dropped"]["not_shown"] == sum(unseen.values())


def test_tensors_of_types_of_the_program_show_their_elements(tmp_path) -> None:
    class Ours(Tensor):
        pass

    ours = Ours([1.0, 2.0])
    with opscope.torch.eager(tmp_path, form="acl") as dump:
        ours * 2
    report = dump.finish()
    assert report["unseen"] == {}
    (product,) = (record for record in records(report["root"]).values() if record.op_type == "aten_mul_Tensor")
    content = product.data()
    values = [np.frombuffer(slot.payload, np.float32).tolist() for slot in (*content.inputs, *content.outputs)]
    assert values == [[1.0, 2.0], [2.0, 4.0]]


def test_distributed_tensors_show_the_local_part(tmp_path) -> None:
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        spread = distribute_tensor(torch.arange(4.0), init_device_mesh("cpu", (1,)), [Shard(0)])
        with opscope.torch.eager(tmp_path / "dump", form="acl") as dump:
            spread * 2
        root = dump.finish()["root"]
    finally:
        distributed.destroy_process_group()
    content = records(root)["mul"].data()
    assert content.inputs[0].payload == models.bits(torch.arange(4.0))
    assert content.outputs[0].payload == models.bits(torch.arange(4.0) * 2)


def test_steps(tmp_path) -> None:
    dump = opscope.torch.eager(tmp_path, steps="1|3-4", data="stats", form="acl")
    plain = train("mlp", contextlib.nullcontext(), n_steps=6)
    assert train("mlp", dump, n_steps=6) == plain
    report = dump.finish()
    steps = sorted(int(path.name) for path in (Path(report["root"]) / "0" / "eager" / "1").iterdir())
    assert steps == [1, 3, 4]
    assert (report["n_steps"], report["n_steps_active"]) == (6, 3)
    names = [[one["op_name"] for one in operators(report["root"], step)] for step in (1, 3, 4)]
    assert names[0] == names[1] == names[2]


def test_steps_that_the_program_counts(tmp_path) -> None:
    with opscope.torch.eager(tmp_path, steps=(7,), form="acl") as dump:
        torch.ones(2)
        dump.step(7)
        torch.zeros(2)
        dump.step()
        torch.ones(2)
    assert list(records(dump.finish()["root"], 7)) == ["zeros"]


@pytest.mark.parametrize("steps", ["0|2|5", "3", "1-5"])
def test_entering_again_begins_the_next_step(tmp_path, steps: str) -> None:
    """So it does where steps in between are not dumped, and `step()` in the context does not count twice."""
    dump = opscope.torch.eager(tmp_path, steps=steps, form="acl")
    model = nn.Linear(2, 2)
    for _ in range(3):
        with dump:
            model(torch.ones(1, 2))
    with dump:
        for _ in range(2):
            model(torch.ones(1, 2))
            dump.step()
    with dump:
        model(torch.ones(1, 2))
    report = dump.finish()
    expected = {"0|2|5": [0, 2, 5], "3": [3], "1-5": [1, 2, 3, 4, 5]}[steps]
    assert sorted(int(p.name) for p in Path(report["root"]).glob("0/eager/1/*")) == expected
    assert (report["n_steps"], report["n_steps_active"]) == (6, len(expected))


def test_other_steps_are_not_seen(tmp_path) -> None:
    with opscope.torch.eager(tmp_path, steps=2, form="acl") as dump:
        assert torch._C._len_torch_dispatch_stack() == 0
        torch.ones(2)
        dump.step()
        dump.step()
        assert torch._C._len_torch_dispatch_stack() == 1
    with pytest.warns(RuntimeWarning, match="none was among the steps"):
        report = dump.finish()
    assert report["n_operators_seen"] == 0


def test_a_context_without_an_operator_warns(tmp_path) -> None:
    with opscope.torch.eager(tmp_path, form="acl") as dump:
        pass
    with pytest.warns(RuntimeWarning, match="no operator ran"):
        dump.finish()


def test_single_operators(tmp_path) -> None:
    """The directory of operators that belong to no model."""
    with opscope.torch.eager(tmp_path, layout="single", form="acl") as dump:
        torch.ones(2) + 1
        dump.step()
        torch.ones(2) + 2
    root = dump.finish()["root"]
    files = sorted(path.name for path in (Path(root) / "0").iterdir())
    assert [name.split(".")[:4] for name in files] == [
        ["aten_add_Tensor", "add", "65535", "65535"], ["aten_add_Tensor", "add_1", "65535", "65535"],
        ["aten_ones_default", "ones", "65535", "65535"], ["aten_ones_default", "ones_1", "65535", "65535"],
    ]  # fmt: skip
    assert [one["op_name"] for one in operators(root, 1)] == ["ones_1", "add_1"]


def test_acl_json(tmp_path) -> None:
    wanted = {"dump_path": str(tmp_path), "dump_op_switch": "on", "dump_list": [], "dump_mode": "output"}
    text = json.dumps({"dump": wanted})
    with opscope.torch.eager(acl_json=text) as dump:
        torch.ones(2) + 1
    root = Path(dump.finish()["root"])
    assert root.parent == tmp_path
    assert len(list((root / "0").iterdir())) == 2


def test_acl_json_names_operators(tmp_path) -> None:
    rule = {"model_name": "eager", "layer": ["add_1"]}
    text = json.dumps({"dump": {"dump_path": str(tmp_path), "dump_list": [rule]}})
    with opscope.torch.eager(opscope.torch.DumpPlan(acl_json=text)) as dump:
        x = torch.ones(2)
        (x + 1) + 2
    assert list(records(dump.finish()["root"])) == ["add_1"]


def test_choice_of_operators(tmp_path, caplog) -> None:
    dump = opscope.torch.eager(tmp_path, layers="features.5 aten.addmm.default nothing", data="stats", form="acl")
    train("cnn", dump, n_steps=1)
    root = dump.finish()["root"]
    found = set(records(root))
    assert {"native_batch_norm_1", "native_batch_norm_backward", "addmm"} <= found
    assert "convolution" not in found and "relu_" not in found
    assert "`nothing`" in caplog.text
    selected = {one["op_name"] for one in operators(root) if one["is_selected"]}
    assert found <= selected and len(selected) < len(operators(root))


def test_backward_in_another_thread(tmp_path) -> None:
    def function() -> Tensor:
        x = torch.randn(4, requires_grad=True)
        loss = (x * 3).sum()
        torch.autograd.backward(loss)
        return x.grad

    recorded: list[int] = []

    def work(dump: Any) -> None:
        with dump:
            function()

    dump = opscope.torch.eager(tmp_path, form="acl")
    thread = threading.Thread(target=work, args=(dump,))
    thread.start()
    function()
    thread.join()
    described = operators(dump.finish()["root"])
    recorded = [one for one in described if one["attributes"]["phase"] == "backward"]
    assert recorded and len(described) < 20, "the other thread is not dumped"


class _Looker(opscope.torch.Hook):
    def __init__(self) -> None:
        self.seen: list[tuple] = []

    def before(self, call: opscope.torch.OperatorCall) -> None:
        self.seen.append(("before", call.op_name, call.step, call.result is None))

    def after(self, call: opscope.torch.OperatorCall) -> None:
        self.seen.append(("after", call.op_name, call.phase, float(call.result.sum())))

    def failed(self, call: opscope.torch.OperatorCall, error: BaseException) -> None:
        self.seen.append(("failed", call.op_name, type(error).__name__))
        raise ValueError("a hook that fails")


def test_hooks(tmp_path) -> None:
    looker = _Looker()
    with opscope.torch.eager(tmp_path, steps=(5,), hooks=[looker], form="acl") as dump:
        x = torch.ones(2, 3)
        with pytest.raises(RuntimeError):
            torch.mm(x, x)
    with pytest.warns(RuntimeWarning, match="none was among the steps"):
        report = dump.finish()
    assert looker.seen == [
        ("before", "ones", 0, True), ("after", "ones", "forward", 6.0),
        ("before", "mm", 0, True), ("failed", "mm", "RuntimeError"),
    ]  # fmt: skip
    assert report["n_hook_faults"] == 1 and "a hook that fails" in report["first_hook_fault"]
    assert report["n_files"] == 0


@pytest.mark.skipif(
    not hasattr(torch.utils._python_dispatch.TorchDispatchMode, "ignore_compile_internals"),
    reason="this torch runs compiled code operator by operator inside a dispatch mode",
)
def test_compiled_code_stays_compiled(tmp_path) -> None:
    n_graphs = []

    def backend(gm: Any, inputs: Any) -> Any:
        n_graphs.append(len(gm.graph.nodes))
        return gm.forward

    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    x = torch.ones(2, 3)
    expected = torch.compile(model, backend=backend)(x)
    before = list(n_graphs)
    torch._dynamo.reset()
    n_graphs.clear()
    with opscope.torch.eager(tmp_path, form="acl") as dump:
        found = torch.compile(model, backend=backend)(x)
    dump.finish()
    assert n_graphs == before, "other graphs than without a dump"
    assert models.bits(found) == models.bits(expected)


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_memory_does_not_grow(tmp_path, data: str) -> None:
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    dump = opscope.torch.eager(tmp_path, data=data, queue_bytes_max=8 << 20, form="acl")

    def run(n_steps: int) -> tuple[int, int, int]:
        for _ in range(n_steps):
            model(torch.randn(128, 64)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            dump.step()
        counts = dump.counters()
        while counts["n_written"] + counts["n_dropped"] < counts["n_selected"]:
            counts = dump.counters()
        gc.collect()
        n_tensors = sum(isinstance(thing, Tensor) for thing in gc.get_objects())
        return n_tensors, dump._native.n_storages, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with dump:
        run(49)
        tensors_before, storages_before, memory_before = run(1)
        tensors_after, storages_after, memory_after = run(200)
    assert tensors_after <= tensors_before and storages_after <= storages_before + 8
    assert memory_after - memory_before < 64 << 10
    assert dump.finish()["n_failed"] == 0


def test_misuse(tmp_path) -> None:
    with pytest.raises(ValueError, match="no option `pfad`"):
        opscope.torch.eager(pfad="x")
    with pytest.raises(ValueError, match="layout"):
        opscope.torch.eager(tmp_path, layout="flat", form="acl")
    dump = opscope.torch.eager(tmp_path, form="acl")
    with dump, pytest.raises(RuntimeError, match="already entered"):
        dump.__enter__()
    with pytest.raises(ValueError, match="0 or more"):
        dump.step(-1)
    text = json.dumps({"dump": {"dump_path": str(tmp_path), "dump_debug": "on"}})
    with pytest.raises(NotImplementedError):
        opscope.torch.eager(acl_json=text)
