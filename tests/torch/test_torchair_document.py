"""Programs written after TorchAir's document, with one import changed, and tools that are built on its options."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import opscope
import opscope.torchair as torchair
import pytest
import torch
from dump_data import parse
from torch._dynamo.backends.common import aot_autograd
from torchair_runs import compiled, configured

SOURCE = Path(opscope.__file__).resolve().parents[1]

# Every option of the document, in its order and on a model of one's own. Run as a program, as a user's would be.
PROGRAM = """
import sys
import torch
import opscope.torchair as torchair  # the line that differs

class Network(torch.nn.Module):
    def forward(self, x, y):
        total = torch.add(x, y)
        product = torch.mul(total, x)
        return torch.square(torch.sub(product, y))

where, data = sys.argv[1:]
config = torchair.CompilerConfig()
config.dump_config.enable_dump = True
config.dump_config.dump_mode = "all"
config.dump_config.dump_path = where
config.dump_config.quant_dumpable = True
config.dump_config.dump_step = "0|2-3"
config.dump_config.dump_layer = "Add mul Sub_1 Pow"
config.dump_config.dump_data = data
network = Network()
optimised = torch.compile(network, backend=torchair.get_npu_backend(compiler_config=config))
for step in range(5):
    x, y = torch.full((2, 3), float(step)), torch.arange(6.0).view(2, 3)
    assert torch.equal(optimised(x, y), network(x, y))
"""


def run(program: str, *arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{program}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def steps(path: Path) -> dict[str, list[Path]]:
    """Files of each step of the only graph, after looking at the directories above."""
    (rank,) = (folder for folder in path.iterdir() if folder.name.startswith("worldsize"))
    assert rank.name == "worldsize1_global_rank0"
    (time,) = rank.iterdir()
    assert re.fullmatch(r"\d{14}", time.name)
    (model,) = (time / "0").iterdir()
    assert model.name == "graph_1"
    (model_id,) = model.iterdir()
    assert model_id.name == "1"
    return {step.name: sorted(step.iterdir()) for step in model_id.iterdir()}


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_the_program_of_the_document(data: str, tmp_path: Path) -> None:
    said = run(PROGRAM, str(tmp_path), data, cwd=tmp_path)
    assert "Sub_1" in said, "a name that no operator has is told"
    found = steps(tmp_path)
    assert sorted(found) == ["0", "2", "3"]
    for step, files in found.items():
        names = {}
        for file in files:
            op_type, op_name, task, stream, stamp = file.name.removesuffix(".csv").split(".")
            assert stream == "0" and task.isdigit() and re.fullmatch(r"\d{16}", stamp)
            assert file.name.endswith(".csv") is (data == "stats")
            names[op_name] = op_type
        chosen = {name: op_type for name, op_type in names.items() if op_type != "Data"}
        assert chosen == {"add": "aten_add_Tensor", "mul": "aten_mul_Tensor", "pow_1": "aten_pow_Tensor_Scalar"}
        # The graph's arguments that a chosen operator reads are dumped with it.
        assert {name for name, op_type in names.items() if op_type == "Data"} == {"arg0_1", "arg1_1"}
        (add,) = (file for file in files if ".add." in file.name)
        check(add, data, float(step))


def check(file: Path, data: str, value: float) -> None:
    total = torch.full((2, 3), value) + torch.arange(6.0).view(2, 3)
    if data == "tensor":
        dumped = parse(file.read_bytes())
        assert len(dumped.inputs) == 2 and (dumped.outputs[0].array() == total.numpy()).all()
        return
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 3
    row = next(row for row in rows if "output" in " ".join(row.values()).lower())
    assert {float(total.max()), float(total.min())} <= {float(v) for v in row.values() if re.fullmatch(r"-?[\d.]+", v)}


def test_a_file_in_the_place_of_the_options(tmp_path: Path) -> None:
    dump = {"dump_path": str(tmp_path), "dump_list": [{}], "dump_mode": "output", "dump_op_switch": "off"}
    (tmp_path / "dump.json").write_text(json.dumps({"dump": dump}))
    config = configured(dump_config__dump_config_path=str(tmp_path / "dump.json"))
    with compiled(lambda x: x.sin() + 1, config) as call:
        call(torch.ones(2))
    (sin,) = tmp_path.glob("2*/0/graph_*/*/0/aten_sin_default.*")
    assert (len(parse(sin.read_bytes()).inputs), len(parse(sin.read_bytes()).outputs)) == (0, 1)
    assert not (tmp_path / "ge_dump_data_json").exists()


def test_a_scope_is_dumped_beside_the_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        total = x + y
        with torchair.scope.data_dump():
            difference = total - y
        return difference * 2

    monkeypatch.chdir(tmp_path)
    config = configured(
        dump_config__enable_dump=True, dump_config__dump_path=str(tmp_path), dump_config__dump_layer="Add"
    )
    with compiled(model, config) as call:
        call(torch.ones(2), torch.ones(2))
    files = list(tmp_path.glob("worldsize1_global_rank0/*/0/graph_*/*/0/aten*"))
    assert sorted(file.name.split(".")[1] for file in files) == ["add", "sub"]
    (options,) = tmp_path.glob("ge_dump_data_json/*")
    (graph,) = json.loads(options.read_text())["dump"]["dump_list"]
    assert graph["layer"] == ["Add", "sub"]


def test_the_options_are_left_for_tools_that_read_them(tmp_path: Path) -> None:
    program = """
import os, sys, torch
import opscope.torchair as torchair
config = torchair.CompilerConfig()
config.dump_config.enable_dump = True
config.dump_config.dump_path = "."
config.dump_config.dump_step = "0|2-3"
config.dump_config.dump_mode = "output"
print(os.getpid(), file=sys.stderr)
w = torch.ones(2, requires_grad=True)
call = torch.compile(lambda x: (x * w).sum(), backend=torchair.get_npu_backend(compiler_config=config))
call(torch.ones(2)).backward()
"""
    pid = run(program, cwd=tmp_path).splitlines()[0]
    (file,) = (tmp_path / "ge_dump_data_json").iterdir()
    assert file.name == f"dump_options_worldsize1_rank0_pid{pid}.json"
    text = file.read_text()
    assert json.loads(text) == {
        "dump": {
            "dump_path": "./worldsize1_global_rank0",
            "dump_mode": "output",
            "dump_data": "tensor",
            "dump_step": "0|2-3",
            "quant_dumpable": "0",
            "dump_list": [{"model_name": "graph_1"}, {"model_name": "graph_2"}],
        }
    }
    assert text.startswith('{\n    "dump": {\n        "dump_path"')


def test_a_compiler_of_one_graph_in_a_backend_of_ones_own(tmp_path: Path) -> None:
    config = configured(dump_config__enable_dump=True, dump_config__dump_path=str(tmp_path))
    compiler = torchair.get_compiler(config)
    backend = aot_autograd(fw_compiler=compiler, bw_compiler=compiler)
    w = torch.randn(3, requires_grad=True)
    torch.compile(lambda x: (x * w).sin().sum(), backend=backend)(torch.randn(3)).backward()
    opscope.torch.finish()
    types = {path.name.split(".")[0] for path in tmp_path.glob("worldsize1_global_rank0/*/0/graph_*/*/0/*")}
    assert {"aten_sin_default", "aten_cos_default"} <= types


def test_mutated_inputs_may_stay_outside_of_the_graph(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    for keeps in (True, False):
        path = tmp_path / str(keeps)
        path.mkdir()
        config = configured(
            dump_config__enable_dump=True,
            dump_config__dump_path=str(path),
            experimental_config__keep_inference_input_mutations=keeps,
        )
        x = torch.zeros(2)
        with compiled(model, config) as call, torch.no_grad():
            assert torch.equal(call(x), torch.full((2,), 2.0)) and torch.equal(x, torch.ones(2))
        assert bool(list(path.glob("worldsize1_global_rank0/*/0/*/*/0/aten_copy__default.*"))) is keeps


def msprobe_ge(config: Any, path: str, steps: list[int], layers: list[str]) -> None:
    """Sets the options for a dump in graph mode as a tool that is built on them does."""
    assert isinstance(config, torchair.configs.compiler_config.CompilerConfig)
    where = os.path.join(path, "msprobe_ge_dump")
    os.makedirs(where)
    config.debug.graph_dump.type = "txt"
    assert hasattr(config.debug.graph_dump, "_path")
    config.debug.graph_dump._path = where
    config.dump_config.enable_dump = True
    config.dump_config.dump_mode = "all"
    config.dump_config.dump_path = where
    config.dump_config.dump_step = "|".join(map(str, steps))
    config.dump_config.dump_layer = " ".join(layers)


def msprobe_fx(config: Any, path: str, names: list[str]) -> None:
    """The same for a dump of the FX graph."""
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = os.path.join(path, "msprobe_fx_dump")
    config.debug.data_dump.filter = lambda node: node if any(n.lower() in node.name.lower() for n in names) else None


def test_a_tool_on_top_of_the_options(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).relu().exp()

    for prepare in (
        lambda config: msprobe_ge(config, str(tmp_path), [0, 1], ["relu"]),
        lambda config: msprobe_fx(config, str(tmp_path), ["RELU"]),
    ):
        config = torchair.CompilerConfig()
        prepare(config)
        with compiled(model, config) as call:
            for _ in range(3):
                call(torch.ones(2))
    ge = list((tmp_path / "msprobe_ge_dump").glob("worldsize1_global_rank0/*/0/graph_*/*/*/*"))
    assert sorted((file.parent.name, file.name.split(".")[1]) for file in ge) == [("0", "relu"), ("1", "relu")]
    assert len(list((tmp_path / "msprobe_ge_dump").glob("dynamo_*.txt"))) == 2
    fx = list((tmp_path / "msprobe_fx_dump").glob("worldsize1_global_rank0/graph_*/*/*.npy"))
    assert {file.name.split("-")[0] for file in fx} == {"relu"}
    assert sorted({file.parent.name for file in fx}) == ["0", "1", "2"]


def test_eager_execution_is_what_there_is_anyway(tmp_path: Path) -> None:
    config = configured(
        debug__run_eagerly=True, dump_config__enable_dump=True, dump_config__dump_path=str(tmp_path)
    )
    with compiled(torch.sin, config) as call:
        call(torch.ones(2))
    assert len(list(tmp_path.glob("worldsize1_global_rank0/*/0/graph_*/*/0/aten_sin_default.*"))) == 1
