"""Dump trees of MindSpore's own runs and of the same configuration under Opscope keep one grammar."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import mindspore_models as models
import mindspore_tree
import numpy as np
import onnx
import pytest
from binary import Binary, input_options
from mindspore_models import Network
from mindspore_tree import Tree

GOLDEN = Path(__file__).parents[2] / "crates" / "store" / "tests" / "golden" / "mindspore"
PLACEHOLDER = "@DUMP_PATH@"
METADATA = Path("rank_0") / ".dump_metadata"
PLACE = "rank_<n>/<net>/<n>"
CONSTANTS = f"{PLACE}/constants/Parameter.<name>.0.0.<16 digits>.output.<n>.DefaultFormat.<Dtype>.npy"
PARAMETER = f"{PLACE}/<n>/Parameter.<name>.0.0.<16 digits>.output.<n>.DefaultFormat.<Dtype>.npy"


@dataclass(frozen=True)
class Case:
    """A run of MindSpore and the model that represents its network.

    `only_here` and `only_there` are the patterns of paths that one of the trees is meant to lack.
    """

    name: str
    network: Callable[[], Network] = models.lenet
    n_steps: int = 1
    n_runs: int = 1
    only_here: set[str] = field(default_factory=set)
    only_there: set[str] = field(default_factory=set)
    # Whether the operators, sides and parameters are the same too, and not only the grammar.
    is_same_network: bool = True
    # Several graphs in one process share a counter of iterations in MindSpore; here each has its own.
    has_one_graph: bool = True

    def __str__(self) -> str:
        return self.name


RELU, TANH = models.single("Relu", "Default/ReLU-op0"), models.single("Tanh", "Default/Tanh-op0")
CASES = [
    Case("lenet_all", n_steps=2),
    Case("iteration_subset", n_steps=5),
    Case("initial_iteration", n_steps=2),
    Case("kernels_by_name"),
    Case("kernels_by_type"),
    Case("kernels_by_regex"),
    Case("kernels_mixed"),
    Case("output_only"),
    Case("input_only"),
    Case("op_debug_mode_3_cpu"),
    Case("op_debug_mode_4_cpu"),
    # There is no training: the network is another, the tree has to be alike.
    Case("train_momentum", n_steps=2, is_same_network=False),
    # Opscope writes parameters of models with branches too.
    Case("control_flow", models.branches, n_steps=3, only_here={PARAMETER}, is_same_network=False, has_one_graph=False),
    Case("multi_graph_process", RELU, n_steps=3, is_same_network=False, has_one_graph=False),
    Case("rerun_same_dir", RELU, n_steps=3, n_runs=2, is_same_network=False, has_one_graph=False),
    Case("dtypes", models.dtypes, is_same_network=False),
    Case("shapes", models.shapes, is_same_network=False),
    # MindSpore's document promises `constants` on a CPU, its program never writes them.
    Case("constants_cpu", models.constants, only_here={CONSTANTS}, is_same_network=False),
    Case("long_names_mapping", models.long_names, n_steps=2, is_same_network=False),
    Case("param_name_chars", models.odd_parameter),
    Case("pynative_jit", TANH, n_steps=2, is_same_network=False),
]


def configuration(name: str) -> str:
    return (GOLDEN / name / "dump" / METADATA / "data_dump.json").read_text()


def net_name(name: str) -> str:
    return json.loads(configuration(name))["common_dump_settings"]["net_name"]


def recorded(name: str) -> Tree:
    return mindspore_tree.read(GOLDEN / name / "dump", net_name(name))


def dump(opscope: Binary, case: Case, folder: Path) -> Path:
    """Runs the case's model under its configuration; the tree."""
    tree = folder / "dump"
    config = folder / "data_dump.json"
    config.write_text(configuration(case.name).replace(PLACEHOLDER, str(tree)))
    network = case.network()
    onnx.save(network.model, folder / "net.onnx")
    inputs = input_options(network.inputs, folder / "inputs")
    for _ in range(case.n_runs):
        opscope.run("dump", folder / "net.onnx", "--config", config, "--steps", case.n_steps, "--no-baseline", *inputs)
    return tree


def differences(case: Case, here: Tree, there: Tree) -> list[str]:
    """Lists the differences between the trees that are not intended; none if they follow one grammar."""
    found = [f"broken here: {text}" for text in here.problems]
    found += [f"broken there: {text}" for text in there.problems]
    found += [f"only here: {path}" for path in here.paths - there.paths - case.only_here]
    found += [f"only there: {path}" for path in there.paths - here.paths - case.only_there]
    found += [f"not only here: {path}" for path in case.only_here - (here.paths - there.paths)]
    found += [f"not only there: {path}" for path in case.only_there - (there.paths - here.paths)]
    if here.columns != there.columns:
        found.append(f"columns {here.columns} and {there.columns}")
    if case.has_one_graph:
        compared = ["iterations", "runs", "graphs"]
        compared += ["tensors", "parameters", "orders"] if case.is_same_network else []
        for name in compared:
            a, b = getattr(here, name), getattr(there, name)
            if a != b:
                found.append(f"{name}: {a} and {b}")
    found += [
        f"dtype {name} is {here.descriptors[name]} and {there.descriptors[name]}"
        for name in here.dtypes & there.dtypes
        if here.descriptors[name] != there.descriptors[name]
    ]
    return found


def test_every_run_of_mindspore_has_a_case() -> None:
    names = {path.parent.name for path in GOLDEN.glob("*/manifest.jsonl")}
    assert len(names) == 21
    assert names == {case.name for case in CASES}


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_trees_keep_one_grammar(opscope: Binary, folder: Path, case: Case) -> None:
    tree = dump(opscope, case, folder)
    here, there = mindspore_tree.read(tree, net_name(case.name)), recorded(case.name)
    assert differences(case, here, there) == []
    copy = (tree / METADATA / "data_dump.json").read_bytes()
    assert copy == (folder / "data_dump.json").read_bytes()
    producer = (tree / METADATA / "config.json").read_bytes()
    assert producer == (GOLDEN / case.name / "dump" / METADATA / "config.json").read_bytes()


def test_graph_files_have_only_what_mindspore_writes(opscope: Binary, folder: Path) -> None:
    lines: set[str] = set()
    fields: set[str] = set()
    for case in CASES:
        tree = recorded(case.name)
        lines |= tree.ir_lines
        fields |= tree.pb_fields
    for i, network in enumerate([models.lenet, models.branches, models.constants, models.odd_parameter]):
        case = Case("lenet_all", network)
        (folder / str(i)).mkdir()
        here = mindspore_tree.read(dump(opscope, case, folder / str(i)), "Net")
        assert here.problems == []
        assert here.ir_lines <= lines
        assert here.pb_fields <= fields
        # Nothing is missing but settings of the compiler, lines of source code and values of more than one line.
        assert lines - here.ir_lines <= {"attribute", "source", "value"}


def test_runs_into_one_directory_add_up(opscope: Binary, folder: Path) -> None:
    (case,) = (case for case in CASES if case.name == "rerun_same_dir")
    tree = mindspore_tree.read(dump(opscope, case, folder), "Net")
    # Graph 0 of the recorded run ran three times in each process, too.
    assert tree.runs == {0: recorded(case.name).runs[0]} == {0: [0, 1, 2, 0, 1, 2]}
    # The input, the output and the parameter of each step of each run.
    assert tree.n_arrays == 3 * 3 * 2


def test_shapes_and_dtypes(opscope: Binary, folder: Path) -> None:
    cases = {case.name: case for case in CASES}
    here = mindspore_tree.read(dump(opscope, cases["shapes"], folder), "Net")
    there = recorded("shapes")
    # Of an array without elements there is no file.
    assert here.shapes == {(), (2, 3, 2, 2, 2)} <= there.shapes
    assert "Default_ReLU-op1" not in {name for name, _ in here.tensors | there.tensors}
    (folder / "dtypes").mkdir()
    here = mindspore_tree.read(dump(opscope, cases["dtypes"], folder / "dtypes"), "Net")
    there = recorded("dtypes")
    # bfloat16 is meant to differ: MindSpore's CPU writes a type that numpy refuses, Opscope float32. The
    # engine has no bfloat16, so that the sink's own tests have to show it.
    assert there.dtypes - here.dtypes == {"BFloat16"}
    assert here.dtypes < there.dtypes
    assert there.descriptors["BFloat16"] == "<E2"


@pytest.mark.parametrize("categories", ["default", "all", "reordered"])
def test_columns_of_statistics(opscope: Binary, folder: Path, categories: str) -> None:
    with (GOLDEN / "library" / f"statistic_{categories}.csv").open() as file:
        header = file.readline().rstrip("\n").split(",")
    names = {
        "L2Norm Value": "l2norm",
        "MD5": "md5",
        "SHA1": "hash",
        **{f"{name} Value": name.lower() for name in ("Max", "Min", "Avg")},
    }
    config = json.loads(configuration("lenet_all"))
    common = config["common_dump_settings"]
    common["path"], common["saved_data"] = str(folder / "dump"), "full"
    common["statistic_category"] = [names.get(column, column.lower()) for column in header[10:]]
    (folder / "data_dump.json").write_text(json.dumps(config))
    network = models.lenet()
    onnx.save(network.model, folder / "net.onnx")
    inputs = input_options(network.inputs, folder / "inputs")
    opscope.run("dump", folder / "net.onnx", "--config", folder / "data_dump.json", "--target", "gpu", *inputs)
    tree = mindspore_tree.read(folder / "dump", "Net")
    assert tree.problems == []
    assert tree.columns == header
    there = {path.replace("<Dtype>", "<dtype>") for path in recorded("lenet_all").paths}
    assert tree.paths - there == {f"{PLACE}/<n>/statistic.csv"}
    assert there <= tree.paths


BREAKS: dict[str, Callable[[Path], object]] = {
    "only there: rank_<n>/.dump_metadata/config.json": lambda tree: (tree / METADATA / "config.json").unlink(),
    "broken here: rank_0/stray.txt: nothing belongs here": lambda tree: (tree / "rank_0/stray.txt").write_text(""),
    "broken here: rank_0/Net/0/0/Conv.x.npy: no name of an array": lambda tree: (
        tree / "rank_0/Net/0/0/Conv.x.npy"
    ).write_bytes(b""),
    "only here: rank_<n>/<net>/<n>/<n>/mapping.csv": lambda tree: (tree / "rank_0/Net/0/0/mapping.csv").write_text(""),
    "iterations: {0, 1, 2} and {0, 1}": lambda tree: shutil.copytree(tree / "rank_0/Net/0/1", tree / "rank_0/Net/0/2"),
    "runs: {0: [0, 1, 7]} and {0: [0, 1]}": lambda tree: append(
        tree / "rank_0/execution_order/ms_global_execution_order_graph_0.csv", "7\n"
    ),
    "header": lambda tree: (tree / "rank_0/execution_order/ms_execution_order_graph_0.csv").write_text("Node\n"),
    "no line of a graph: ?": lambda tree: append(tree / "rank_0/graphs/ms_output_trace_code_graph_0.ir", "?\n"),
    "no message": lambda tree: append(tree / "rank_0/graphs/ms_output_trace_code_graph_0.pb", "\x12\x7f"),
    "only there: rank_<n>/<net>/<n>/<n>/Parameter": lambda tree: remove(tree, "Parameter.*"),
    "tensors: ": lambda tree: remove(tree, "*MaxPool-op1*.output.*"),
    "a header that is not MindSpore's": lambda tree: respace(next((tree / "rank_0/Net/0/0").glob("Conv2D*.npy"))),
}


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def remove(tree: Path, pattern: str) -> None:
    paths = list(tree.rglob(pattern))
    assert paths
    for path in paths:
        path.unlink()


def respace(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"'shape': (", b"'shape':( "))


@pytest.mark.parametrize("expected", BREAKS)
def test_the_checker_finds_what_is_broken(folder: Path, expected: str) -> None:
    tree = folder / "dump"
    shutil.copytree(GOLDEN / "lenet_all" / "dump", tree)
    case = Case("lenet_all")
    there = recorded("lenet_all")
    assert differences(case, mindspore_tree.read(tree, "Net"), there) == []
    BREAKS[expected](tree)
    found = differences(case, mindspore_tree.read(tree, "Net"), there)
    assert any(expected in text for text in found), found


def test_ranks_and_devices(opscope: Binary, folder: Path) -> None:
    config = json.loads(configuration("lenet_all"))
    common = config["common_dump_settings"]
    common["path"], common["support_device"] = str(folder / "dump"), [0, 3]
    (folder / "data_dump.json").write_text(json.dumps(config))
    network = models.lenet()
    onnx.save(network.model, folder / "net.onnx")

    def run(*args: object) -> set[str]:
        command = ["dump", folder / "net.onnx", "--config", folder / "data_dump.json", "--seed", "0", *args]
        opscope.run(*command)
        return {path.name for path in (folder / "dump").glob("rank_*")}

    assert run("--target", "gpu", "--device", "1") == set()
    assert run("--target", "gpu", "--device", "3", "--rank", "5") == {"rank_5"}
    # A CPU has no devices, and variables say nothing of ranks.
    environment = {"PATH": "/usr/bin", "RANK_ID": "7", "DEVICE_ID": "7"}
    options = ["--config", folder / "data_dump.json", "--seed", "0", "--device", "9"]
    subprocess.run(
        opscope.command("dump", folder / "net.onnx", *options), check=True, capture_output=True, env=environment
    )
    assert {path.name for path in (folder / "dump").glob("rank_*")} == {"rank_0", "rank_5"}


def whole_graph_names(folder: Path) -> set[str]:
    return {path.name.split(".")[1] for path in folder.rglob("*.npy")}


@pytest.mark.parametrize("target", ["ascend-o2", "ge"])
def test_kernels_of_whole_graphs(opscope: Binary, folder: Path, target: str) -> None:
    """Regular expressions may match a part of a name, and types are not known."""
    config = json.loads(configuration("kernels_mixed"))
    del config["e2e_dump_settings"]
    kernels = ["name-regex(fc1)", "relu", "Default/conv1-Conv2d/Conv2D-op0"]
    changed = {"path": str(folder / "dump"), "file_format": "npy", "kernels": kernels}
    config["common_dump_settings"].update(changed)
    (folder / "data_dump.json").write_text(json.dumps(config))
    onnx.save(models.lenet().model, folder / "net.onnx")
    opscope.run("dump", folder / "net.onnx", "--config", folder / "data_dump.json", "--target", target, "--seed", "0")
    assert whole_graph_names(folder) == {
        "Default_fc1-Dense_MatMul-op0",
        "Default_fc1-Dense_BiasAdd-op0",
        "Default_conv1-Conv2d_Conv2D-op0",
    }


@pytest.mark.sampled(0.4, each="target")
@pytest.mark.parametrize("file_format", ["npy", "bin"])
@pytest.mark.parametrize("target", ["cpu", "gpu", "ascend-o0", "ascend-o1", "ascend-o2", "ge"])
def test_constants_of_every_target(opscope: Binary, folder: Path, target: str, file_format: str) -> None:
    config = json.loads(configuration("constants_cpu"))
    config["common_dump_settings"].update({"path": str(folder / "dump"), "file_format": file_format})
    if target in ("ascend-o2", "ge"):
        del config["e2e_dump_settings"]
    (folder / "data_dump.json").write_text(json.dumps(config))
    network = models.constants()
    onnx.save(network.model, folder / "net.onnx")
    inputs = input_options(network.inputs, folder / "inputs")
    opscope.run(
        "dump", folder / "net.onnx", "--config", folder / "data_dump.json", "--target", target, "--steps", "2", *inputs
    )
    (path,) = (folder / "dump").rglob("constants/*")
    spelled = "Float32" if target == "cpu" else "float32"
    assert re.fullmatch(rf"Parameter\.data-0\.0\.0\.\d{{16}}\.output\.0\.DefaultFormat\.{spelled}\.npy", path.name)
    # The constant and the input have the same values.
    np.testing.assert_array_equal(np.load(path), network.inputs["x"], strict=True)
    time, device = r"\d{14}", "0/net/1"
    places = {"ascend-o2": rf"0/{time}/{device}", "ge": rf"{time}/{device}"}
    place = path.parent.parent.relative_to(folder / "dump").as_posix()
    assert re.fullmatch(places.get(target, "rank_0/Net/0"), place)
