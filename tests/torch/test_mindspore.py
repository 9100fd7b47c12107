"""Dumps in MindSpore's form, read by numpy and the reader of the end-to-end tests, against torch's own interpreter."""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import logging
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import mindspore_tree
import models
import numpy as np
import opscope.mindspore
import opscope.torch
import pytest
import torch
from dump_data import parse
from mindspore_runs import (
    GRAPHS,
    KERNELS,
    NAME,
    arrays,
    backend,
    clean,
    configuration,
    graph_dirs,
    in_order,
    names,
    order,
    seen,
    train,
)
from reference import Reference, Seen
from torch import Tensor, nn

OPSCOPE = os.environ.get("OPSCOPE")


@pytest.mark.parametrize("target", KERNELS)
def test_every_value_of_every_operator(folder: Path, target: str) -> None:
    reference = Reference()
    expected = train(reference, n_steps=2)
    dumping = backend(folder, target)
    assert models.same(expected, train(dumping, n_steps=2))
    report = dumping.finish()
    assert (report["n_dropped"], report["refused"], report["first_fault"]) == (0, {}, None)
    tree = mindspore_tree.read(folder, "Net")
    assert tree.problems == []
    graphs = graph_dirs(folder)
    assert len(graphs) == len(reference.graphs) == 2
    for graph, there in zip(graphs, reference.graphs):
        full_names = order(folder, graph)
        assert full_names == tree.orders[int(graph.name)]
        assert [step.name for step in sorted(graph.iterdir())] == ["0", "1"]
        for step, run in enumerate(there.runs):
            here = arrays(graph / str(step))
            assert {clean(name) for name in full_names} == {n for n in here if not n.startswith("Parameter.")}
            assert len(full_names) == len(run)
            for name, execution in zip(full_names, run.values()):
                slots = here[clean(name)]
                found = in_order(slots, "input"), in_order(slots, "output")
                assert found == (execution.inputs, execution.outputs), name
    assert bool(tree.parameters) == (target in ("cpu", "gpu"))


def test_names_have_the_scopes_of_modules(folder: Path) -> None:
    dumping = backend(folder)
    train(dumping)
    dumping.finish()
    forward, backward = (order(folder, graph) for graph in graph_dirs(folder))
    assert forward[0] == "Default/features-Sequential/0-Conv2d/Convolution-op0"
    assert "Default/features-Sequential/4-Conv2d/Convolution-op0" in forward
    assert "Default/head-Linear/Addmm-op0" in forward and "Default/Mean-op0" in forward
    assert "Gradients/Default/features-Sequential/0-Conv2d/ConvolutionBackward-op0" in backward
    assert all(name.startswith("Gradients/Default/") for name in backward)
    assert len(set(forward)) == len(forward) and len(set(backward)) == len(backward)


def test_parameters_go_by_the_names_of_the_program(folder: Path) -> None:
    torch.manual_seed(0)
    model, x = models.Cnn(), torch.randn(2, 3, 10, 10)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    dumping = backend(folder)
    torch.compile(model, backend=dumping)(x)
    dumping.finish()
    found = {name: slots["output.0"] for name, slots in arrays(graph_dirs(folder)[0] / "0").items()}
    expected = {f"Parameter.{clean(name)}": value for name, value in {**model.state_dict(), "x": x}.items()}
    assert {name for name in found if name.startswith("Parameter.")} == set(expected)
    # A value that the step has written to is dumped as it is after the step.
    assert not torch.equal(before["features.1.running_mean"], model.features[1].running_mean)
    for name, value in expected.items():
        assert seen(found[name]) == (tuple(value.shape), models.bits(value)), name
    text = next((folder / "rank_0" / "graphs").glob("*.ir")).read_text()
    assert "%para1_x:" in text and re.search(r"_features\.0\.weight: .*IsWeight: true", text)


def test_what_the_backward_graph_reads_goes_by_the_forward_operator(folder: Path) -> None:
    dumping = backend(folder)
    train(dumping)
    dumping.finish()
    forward, backward = (arrays(graph / "0") for graph in graph_dirs(folder))
    name = "Default_features-Sequential_0-Conv2d_Convolution-op0"
    saved = backward[f"Parameter.{name}_0"]["output.0"]
    assert seen(saved) == seen(forward[name]["output.0"])
    name = "Default_features-Sequential_3-MaxPool2d_MaxPool2dWithIndices-op0"
    assert seen(backward[f"Parameter.{name}_1"]["output.0"]) == seen(forward[name]["output.1"])


def test_a_tensor_in_several_places_is_one_file(folder: Path) -> None:
    dumping = backend(folder)
    x = torch.rand(100)
    torch.compile(lambda x: x.sin().cos(), backend=dumping)(x)
    assert dumping.finish()["n_linked"] == 2
    found = {path.name.split(".0.0.")[0] + path.name.split(".")[5]: path for path in folder.rglob("*.npy")}
    assert found["Sin.Default_Sin-op0output"].samefile(found["Cos.Default_Cos-op0input"])
    assert found["Sin.Default_Sin-op0input"].samefile(found["Parameter.xoutput"])
    assert not found["Sin.Default_Sin-op0input"].samefile(found["Sin.Default_Sin-op0output"])


def test_constants(folder: Path) -> None:
    def function(x: Tensor) -> Tensor:
        return x + torch.tensor([1.0, 2.0, 4.0])

    dumping = backend(folder)
    compiled = torch.compile(function, backend=dumping)
    for _ in range(2):
        compiled(torch.ones(3))
    dumping.finish()
    (graph,) = graph_dirs(folder)
    (path,) = (graph / "constants").iterdir()
    assert path.name.startswith("Parameter.data-0.0.0.")
    np.testing.assert_array_equal(np.load(path), np.float32([1, 2, 4]), strict=True)
    assert set(arrays(graph / "0")) == {"Parameter.x", *map(clean, order(folder, graph))}


@pytest.mark.parametrize(("iteration", "first", "expected"), [("0|2-3", 0, "023"), ("5|7", 5, "57"), ("9", 0, "")])
def test_iterations(folder: Path, iteration: str, first: int, expected: str) -> None:
    dumping = backend(folder, iteration=iteration, initial_iteration=first)
    compiled = torch.compile(torch.sin, backend=dumping)
    values = [torch.full((2,), float(i)) for i in range(5)]
    for value in values:
        compiled(value)
    if expected:
        dumping.finish()
    else:
        with pytest.warns(RuntimeWarning, match="none was among the steps"):
            dumping.finish()
    steps = {path.name: path for graph in (folder / "rank_0").glob("Net/*") for path in graph.iterdir()}
    assert set(steps) == set(expected)
    for number, path in steps.items():
        np.testing.assert_array_equal(arrays(path)["Default_Sin-op0"]["input.0"], values[int(number) - first].numpy())


# A type is compared with names of parameters as well; `conv` is in none of them.
KERNEL_CASES = [
    (["conv"], {"Convolution-op0"}, set()),
    (["Default/head-Linear/Addmm-op0"], {"Addmm-op0"}, set()),
    (["name-regex(Default/head-.+)"], {"Addmm-op0", "T-op0"}, set()),
    (["relu", "Default/Mean-op0"], {"Relu-op0", "Mean-op0"}, set()),
    (["head.weight"], set(), {"head.weight"}),
]


@pytest.mark.parametrize(("kernels", "expected", "parameters"), KERNEL_CASES)
def test_kernels(folder: Path, kernels: list[str], expected: set[str], parameters: set[str]) -> None:
    dumping = backend(folder, dump_mode=1, kernels=kernels)
    with torch.no_grad():
        torch.compile(models.Cnn().eval(), backend=dumping)(torch.randn(2, 3, 10, 10))
    dumping.finish()
    found = arrays(graph_dirs(folder)[0] / "0")
    assert {name.rsplit("_", 1)[-1] for name in found if not name.startswith("Parameter.")} == expected
    expected_parameters = {f"Parameter.{clean(name)}" for name in parameters}
    assert {name for name in found if name.startswith("Parameter.")} == expected_parameters


def test_kernels_that_choose_nothing_are_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    dumping = backend(folder, dump_mode=1, kernels=["sin", "Nothing"])
    torch.compile(torch.sin, backend=dumping)(torch.ones(2))
    with caplog.at_level(logging.WARNING, "opscope.torch"):
        dumping.finish()
    told = [record.getMessage() for record in caplog.records if "Unused" in record.getMessage()]
    assert told == ["[DataDump] Unused Kernel in json: Nothing"]


@pytest.mark.parametrize(("input_output", "sides"), [(0, {"input", "output"}), (1, {"input"}), (2, {"output"})])
def test_sides(folder: Path, input_output: int, sides: set[str]) -> None:
    dumping = backend(folder, "ascend-o0", input_output=input_output)
    torch.compile(torch.sin, backend=dumping)(torch.ones(2))
    dumping.finish()
    (slots,) = arrays(graph_dirs(folder)[0] / "0").values()
    assert {slot.split(".")[0] for slot in slots} == sides


@pytest.mark.parametrize("saved_data", ["statistic", "full"])
@pytest.mark.parametrize("target", ["gpu", "ascend-o1"])
def test_statistics_agree_with_numpy(folder: Path, target: str, saved_data: str) -> None:
    categories = ["max", "min", "avg", "count", "l2norm", "md5", "negative zero count"]
    reference = Reference()
    train(reference)
    dumping = backend(folder, target, saved_data=saved_data, statistic_category=categories)
    train(dumping)
    assert dumping.finish()["n_dropped"] == 0
    tree = mindspore_tree.read(folder, "Net")
    assert tree.problems == [] and (tree.n_arrays > 0) == (saved_data == "full")
    for graph, there in zip(graph_dirs(folder), reference.graphs):
        rows = list(csv.DictReader((graph / "0" / "statistic.csv").open()))
        by_side: dict[tuple[str, str], list[dict[str, str]]] = {}
        for row in sorted(rows, key=lambda row: int(row["Slot"])):
            by_side.setdefault((row["Op Name"], row["IO"]), []).append(row)
        for name, execution in zip(order(folder, graph), there.runs[0].values()):
            for side, tensors in (("input", execution.inputs), ("output", execution.outputs)):
                found = by_side[name, side]
                assert len(found) == len(tensors)
                for row, (shape, data) in zip(found, tensors):
                    compare_row(row, shape, data)


def compare_row(row: dict[str, str], shape: tuple[int, ...], data: bytes) -> None:
    array = np.frombuffer(data, row["Data Type"]).reshape(shape).astype(np.float64)
    assert row["Shape"] == "[" + ",".join(map(str, shape)) + "]"
    assert (int(row["Data Size"]), int(row["Count"])) == (len(data), array.size)
    assert int(row["Negative Zero Count"]) == (array < 0).sum()
    assert row["MD5"] == hashlib.md5(data).hexdigest()
    expected = [array.max(), array.min(), array.mean(), np.sqrt((array**2).sum())]
    columns = ["Max Value", "Min Value", "Avg Value", "L2Norm Value"]
    np.testing.assert_allclose([float(row[name]) for name in columns], expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("file_format", ["npy", "bin"])
@pytest.mark.parametrize("target", GRAPHS)
def test_whole_graphs(folder: Path, target: str, file_format: str) -> None:
    reference = Reference()
    train(reference)
    dumping = backend(folder, target, file_format=file_format)
    train(dumping)
    assert dumping.finish()["n_dropped"] == 0
    steps = [path for path in folder.glob("**/0") if any(path.glob("*.*.*.*.*"))]
    steps.sort(key=lambda path: int(path.parent.name))
    # {step}/{time}/{device}/{model}/{model id}/{iteration}, for the graph engine without the step.
    place = r"0/\d{14}/0/graph_\d+/\d+/0" if target == "ascend-o2" else r"\d{14}/0/graph_\d+/\d+/0"
    assert len(steps) == 2 and all(re.fullmatch(place, str(path.relative_to(folder))) for path in steps)
    for step, there in zip(steps, reference.graphs):
        by_task = records(step, file_format)
        executions = list(there.runs[0].values())
        assert set(by_task) == set(range(len(executions)))
        for task, execution in enumerate(executions):
            assert by_task[task] == (execution.inputs, execution.outputs)
    assert (folder / "acl_dump_0.json").exists() == (target == "ascend-o2")


def records(step: Path, file_format: str) -> dict[int, tuple[list[Seen], list[Seen]]]:
    """The tensors of each task."""
    found: dict[int, tuple[list[Seen], list[Seen]]] = {}
    if file_format == "bin":
        for path in step.iterdir():
            data = parse(path.read_bytes())
            sides = [[(tuple(one.shape), one.payload) for one in side] for side in (data.inputs, data.outputs)]
            # A result that is none has a place without elements.
            found[int(path.name.split(".")[2])] = (sides[0], [one for one in sides[1] if one[1]])
        return found
    slots: dict[int, dict[str, dict[int, Seen]]] = {}
    for path in step.glob("*.npy"):
        _, _, task, side, slot, _, _ = NAME.fullmatch(path.name).groups()
        slots.setdefault(int(task), {"input": {}, "output": {}})[side][int(slot)] = seen(np.load(path))
    for task, sides in slots.items():
        found[task] = tuple([side[i] for i in sorted(side)] for side in sides.values())
    return found


def test_kernel_arguments_and_samples(folder: Path) -> None:
    e2e = {"save_kernel_args": True, "sample_mode": 1, "sample_num": 3}
    dumping = backend(folder, "ascend-o0", e2e)
    x = torch.arange(8.0)
    torch.compile(lambda x: torch.clamp(x, 1.0, 5.0), backend=dumping)(x)
    dumping.finish()
    step = graph_dirs(folder)[0] / "0"
    np.testing.assert_array_equal(arrays(step)["Default_Clamp-op0"]["input.0"], np.float32([0, 1, 2]), strict=True)
    arguments = json.loads((step / "Clamp.Default_Clamp-op0.json").read_text())
    assert (arguments["target"], arguments["argument.1"]) == ("aten.clamp.default", "1.0")


@pytest.mark.parametrize(
    ("target", "expected"),
    [("cpu", {"Log-op0", "Exp-op0"}), ("gpu", {"Log-op0"}), ("ascend-o0", {"Log-op0"})],
)
def test_overflow(folder: Path, target: str, expected: set[str]) -> None:
    dumping = backend(folder, target, op_debug_mode=3)
    torch.compile(lambda x: x.log().exp(), backend=dumping)(torch.tensor([0.0, 1.0]))
    dumping.finish()
    assert {name.removeprefix("Default_") for name in names(graph_dirs(folder)[0] / "0")} == expected


def test_the_number_of_overflows(folder: Path) -> None:
    dumping = backend(folder, "ascend-o0", op_debug_mode=3, overflow_number=1)
    torch.compile(lambda x: x.log().neg(), backend=dumping)(torch.zeros(2))
    dumping.finish()
    assert names(graph_dirs(folder)[0] / "0") == {"Default_Log-op0"}


def failing(table: Tensor, index: Tensor) -> Tensor:
    return nn.functional.embedding(index + 1, table).sin()


def test_the_operator_of_a_whole_graph_that_fails(folder: Path) -> None:
    dumping = backend(folder, "ascend-o2", op_debug_mode=4)
    with pytest.raises(IndexError):
        torch.compile(failing, backend=dumping)(torch.zeros(4, 2), torch.tensor([0, 7]))
    dumping.finish()
    (path,) = folder.glob("extra-info/data-dump/0/*")
    # The stream is 0, the task the second of the graph.
    assert re.fullmatch(r"exception_info\.0\.1\.\d{17}", path.name)
    np.testing.assert_array_equal(parse(path.read_bytes()).inputs[1].array(), [1, 8])


@pytest.mark.parametrize(("target", "expected"), [("ascend-o0", {"Default_Embedding-op0"}), ("gpu", set())])
def test_the_operator_that_fails(folder: Path, target: str, expected: set[str]) -> None:
    dumping = backend(folder, target, op_debug_mode=4)
    compiled = torch.compile(failing, backend=dumping)
    compiled(torch.zeros(4, 2), torch.tensor([0, 1]))
    with pytest.raises(IndexError):
        compiled(torch.zeros(4, 2), torch.tensor([0, 7]))
    assert dumping.finish()["n_runs_failed"] == 1
    step = graph_dirs(folder)[0] / "1" if expected else folder / "rank_0/Net/none"
    found = arrays(step)
    assert set(found) == expected
    for slots in found.values():
        assert set(slots) == {"input.0", "input.1"}
        np.testing.assert_array_equal(slots["input.1"], [1, 8])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{}", "common_dump_settings"),
        ("{ nothing", "Parse dump json failed"),
    ],
)
def test_wrong_configurations(text: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        opscope.torch.backend(mindspore_json=text)


def test_absent_configurations_are_errors_of_the_system() -> None:
    with pytest.raises(FileNotFoundError) as error:
        opscope.torch.backend(mindspore_json="/nowhere/data_dump.json")
    assert error.value.filename == "/nowhere/data_dump.json" and error.value.errno == errno.ENOENT


def test_refusals_are_those_of_mindspore(folder: Path) -> None:
    with pytest.raises(ValueError, match="saved_data"):
        backend(folder, "cpu", saved_data="statistic")
    with pytest.raises(ValueError, match="target `npu` is none of"):
        backend(folder, "npu")
    with pytest.raises(NotImplementedError, match="op_debug_mode"):
        backend(folder, "ascend-o2", op_debug_mode=3)
    with pytest.raises(ValueError, match="both configurations are set"):
        acl_json = '{"dump": {"dump_path": "/tmp", "dump_list": [{}]}}'
        opscope.torch.backend(mindspore_json=configuration(folder), acl_json=acl_json)


def test_the_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(opscope.mindspore.CONFIG_VARIABLE, raising=False)
    undumped = opscope.mindspore.backend()
    assert torch.compile(torch.sin, backend=undumped)(torch.zeros(1)) == 0
    path = folder / "data_dump.json"
    path.write_text(configuration(folder / "dump"))
    monkeypatch.setenv(opscope.mindspore.CONFIG_VARIABLE, str(path))
    dumping = opscope.mindspore.backend()
    # It is read once.
    path.unlink()
    torch._dynamo.reset()
    torch.compile(torch.sin, backend=dumping)(torch.zeros(1))
    dumping.finish()
    assert names(graph_dirs(folder / "dump")[0] / "0") == {"Default_Sin-op0"}
    with pytest.raises(RuntimeError, match="Get dump config file failed"):
        opscope.mindspore.backend()
    wrong = folder / "data_dump.txt"
    wrong.write_text("{}")
    monkeypatch.setenv(opscope.mindspore.CONFIG_VARIABLE, str(wrong))
    with pytest.raises(RuntimeError, match="suffix only supports json"):
        opscope.mindspore.backend()


def test_a_device_that_is_left_out(folder: Path) -> None:
    text = configuration(folder, "gpu", support_device=[3])
    for device, expected in ((0, False), (3, True)):
        dumping = opscope.torch.backend(mindspore_json=text, target="gpu", device=device)
        torch._dynamo.reset()
        torch.compile(torch.sin, backend=dumping)(torch.ones(1))
        dumping.finish()
        assert (folder / "rank_0").exists() == expected


RANKED = """
import sys, torch, opscope.torch
rank, store, text = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
backend = opscope.torch.backend(mindspore_json=text)
torch.compile(torch.sin, backend=backend)(torch.full((2,), float(rank)))
torch.distributed.barrier()
backend.finish()
torch.distributed.destroy_process_group()
"""


def test_ranks(folder: Path) -> None:
    environment = {**os.environ, "RANK_ID": "7"}
    command = [sys.executable, "-c", textwrap.dedent(RANKED)]
    places = [str(folder / "store"), configuration(folder / "dump")]
    processes = [subprocess.Popen([*command, str(rank), *places], env=environment) for rank in range(2)]
    assert [process.wait(300) for process in processes] == [0, 0]
    assert {path.name for path in (folder / "dump").glob("rank_*")} == {"rank_0", "rank_1"}
    for rank in range(2):
        (step,) = (folder / "dump" / f"rank_{rank}" / "Net").glob("*/0")
        np.testing.assert_array_equal(arrays(step)["Default_Sin-op0"]["input.0"], np.float32([rank, rank]))


def test_a_rank_that_is_given(folder: Path) -> None:
    dumping = opscope.torch.backend(mindspore_json=configuration(folder), rank=5)
    torch.compile(torch.sin, backend=dumping)(torch.ones(1))
    dumping.finish()
    assert [path.name for path in folder.glob("rank_*")] == ["rank_5"]


def test_without_torch_only_use_fails() -> None:
    program = """
    import sys
    sys.modules["torch"] = None
    import opscope
    import opscope.mindspore
    for call in (lambda: opscope.mindspore.set_dump(1), lambda: opscope.mindspore.backend("x.json")):
        try:
            call()
        except ImportError as error:
            assert "needs PyTorch" in str(error), error
        else:
            raise AssertionError
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def test_bfloat16_and_what_npy_lacks(folder: Path) -> None:
    dumping = backend(folder)
    torch.compile(lambda x: x.to(torch.float8_e5m2).to(torch.bfloat16) + 1, backend=dumping)(torch.tensor([0.5, 2.0]))
    report = dumping.finish()
    found = arrays(graph_dirs(folder)[0] / "0")
    np.testing.assert_array_equal(found["Default_Add-op0"]["output.0"], np.float32([1.5, 3.0]), strict=True)
    assert sum(report["refused"].values()) == report["n_refused"] == 2


@pytest.mark.skipif(not OPSCOPE, reason="OPSCOPE does not name the binary")
@pytest.mark.parametrize("target", KERNELS + GRAPHS)
def test_the_tool_reads_it(folder: Path, target: str) -> None:
    from binary import Binary

    opscope_binary = Binary.from_environment()
    tree = folder / "dump"
    dumping = backend(tree, target, file_format="npy")
    train(dumping)
    dumping.finish()
    paths = list(tree.rglob("*.npy"))
    if target in KERNELS:
        shown = json.loads(opscope_binary.run("show", tree, "--json"))
        assert (shown["errors"], shown["files"]) == ([], len(paths))
        assert any(record["full_name"] == "Default/head-Linear/Addmm-op0" for record in shown["records"])
    report = json.loads(opscope_binary.run("convert", "-t", "npy", "-d", tree, "--out", folder / "npy", "--json"))
    assert (report["converted"], report["failures"]) == (len(paths), [])
    for path in paths:
        np.testing.assert_array_equal(np.load(folder / "npy" / path.relative_to(tree)), np.load(path), strict=True)
