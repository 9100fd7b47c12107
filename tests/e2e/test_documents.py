"""What the documents of the vendors say of files and names, where another tool's file is read or a device's is written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary
from onnx import TensorProto, helper, numpy_helper

MARK = "\ufeff"


def run(opscope: Binary, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [opscope.path, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)


def save_model(path: Path) -> None:
    """`y = Relu(x w)`."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="mm"),
        helper.make_node("Relu", ["h"], ["y"], name="relu"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])]
    weight = numpy_helper.from_array(np.arange(9, dtype=np.float32).reshape(3, 3), "w")
    graph = helper.make_graph(nodes, "net", inputs, outputs, [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez(path.parent / "x.npz", x=np.ones((2, 3), np.float32))


def dump_mindspore(opscope: Binary, folder: Path, saved_data: str = "tensor") -> Path:
    save_model(folder / "net.onnx")
    settings: dict[str, Any] = {"op_debug_mode": 0, "dump_mode": 0, "path": str(folder / "dump"), "net_name": "N"}
    settings |= {"iteration": "all", "saved_data": saved_data, "input_output": 0, "kernels": [], "support_device": [0]}
    text = json.dumps({"common_dump_settings": settings, "e2e_dump_settings": {"enable": True}})
    (folder / "c.json").write_text(text)
    run(opscope, "dump", "net.onnx", "--inputs", "x.npz", "--config", "c.json", "--target", "gpu", cwd=folder)
    return folder / "dump"


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_a_tensor_keeps_its_number_next_to_a_blacklisted_one(opscope: Binary, tmp_path: Path, data: str) -> None:
    save_model(tmp_path / "net.onnx")
    for name, blacklist in (("target", [{"name": "mm", "pos": ["input0"]}]), ("golden", [])):
        (tmp_path / name).mkdir()
        entry: dict[str, Any] = {"model_name": "net"} | ({"opname_blacklist": blacklist} if blacklist else {})
        plan = {"dump_path": name, "dump_mode": "all", "dump_level": "op", "dump_data": data, "dump_list": [entry]}
        (tmp_path / "c.json").write_text(json.dumps({"dump": plan}))
        run(opscope, "dump", "net.onnx", "--inputs", "x.npz", "--config", "c.json", "--no-baseline", cwd=tmp_path)
    found = run(opscope, "compare", "target", "golden", "--json", "-", cwd=tmp_path)
    result = json.loads(found.stdout)
    assert found.returncode == 0, found.stdout
    (product,) = [one for one in result["operators"] if one["target"][0]["op_name"] == "mm"]
    assert [slot["slot"] for slot in product["slots"]] == ["input.1", "output.0"]
    assert [slot["level"] for slot in product["slots"]] == ["pass", "pass"]


def test_the_line_of_a_mindspore_program(opscope: Binary, tmp_path: Path) -> None:
    golden = dump_mindspore(opscope, tmp_path)
    (graph,) = golden.rglob("*.ir")
    lines = graph.read_text().splitlines()
    (at,) = [i for i, line in enumerate(lines) if "Fullname with scope" in line and "relu" in line]
    indent = lines[at][: lines[at].index("#")]
    frames = ("net.py:3, 4~9/    def construct(self, x):/", "/usr/lib/site-packages/mindspore/nn.py:1, 1~2/  return y/")
    lines[at + 1 : at + 1] = [f"{indent}# In file {frame}" for frame in frames]
    graph.write_text(MARK + "\n".join(lines) + "\n")
    target = tmp_path / "target"
    subprocess.run(["cp", "-r", golden, target], check=True)
    (result,) = target.rglob("*relu*.output.0.*.npy")
    np.save(result, np.load(result) + 1)
    found = run(opscope, "compare", target, golden, cwd=tmp_path)
    assert "net.py:3 def construct(self, x):" in found.stdout.splitlines()[1], found.stdout
    run(opscope, "index", golden, "--out", "tables", cwd=tmp_path)
    texts = b"".join(path.read_bytes() for path in (tmp_path / "tables").rglob("*.parquet"))
    assert b"net.py:3 def construct(self, x):" in texts


def test_a_message_beside_its_text(opscope: Binary, tmp_path: Path) -> None:
    (message,) = dump_mindspore(opscope, tmp_path).rglob("*.pb")
    shown = [json.loads(run(opscope, "show", "--json", path, cwd=tmp_path).stdout) for path in (message, message.with_suffix(".ir"))]
    assert [one["is_weight"] for one in shown[0]["parameters"]].count(True) == 1
    assert all(one["node_attributes"] is not None for one in shown[0]["operators"])
    assert [one | {"path": None} for one in shown[:1]] == [one | {"path": None} for one in shown[1:]]
    message.with_suffix(".ir").unlink()
    alone = json.loads(run(opscope, "show", "--json", message, cwd=tmp_path).stdout)
    assert {one["is_weight"] for one in alone["parameters"]} == {None}


def test_a_byte_order_mark(opscope: Binary, tmp_path: Path) -> None:
    dump = dump_mindspore(opscope, tmp_path, "statistic")
    plain = run(opscope, "show", dump, "--json", cwd=tmp_path)
    for path in dump.rglob("*.csv"):
        path.write_text(MARK + path.read_text())
    marked = run(opscope, "show", dump, "--json", cwd=tmp_path)
    assert marked.returncode == 0, marked.stderr
    counts = [json.loads(shown.stdout) for shown in (plain, marked)]
    assert counts[0]["statistics_rows"] == counts[1]["statistics_rows"] > 0
    assert counts[0]["operator_executions"] == counts[1]["operator_executions"] == 2


def test_a_configuration_in_a_dump_of_msprobe(opscope: Binary, tmp_path: Path) -> None:
    folder = tmp_path / "dump" / "step0" / "rank0"
    folder.mkdir(parents=True)
    numbers = {"Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": 2.0}
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "requires_grad": False, **numbers}
    call = {"input_args": [tensor], "input_kwargs": {}, "output": [tensor]}
    dump = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps(dump | {"data": {"Torch.relu.0.forward": call}}))
    for place in (folder, tmp_path / "dump"):
        (place / "config.json").write_text(json.dumps({"task": "statistics", "dump_path": "dump"}))
    shown = run(opscope, "show", "dump", cwd=tmp_path)
    assert (shown.returncode, "config.json" in shown.stderr) == (0, False), shown.stderr
    assert run(opscope, "compare", "dump", "dump", cwd=tmp_path).returncode == 0


def test_operators_whose_parameters_onnx_reads(opscope: Binary, tmp_path: Path) -> None:
    matrix = np.array([[1, 5, 3], [4, 2, 4]], np.float32)
    np.savez(tmp_path / "x.npz", x0=matrix)
    operand = {"type": "float32", "shape": [2, 3]}
    axis = {"type": "int32", "shape": [], "const_value": 1}
    described = {"op": "ArgMaxV2", "inputs": [operand, axis], "outputs": [{"type": "int32", "shape": [2]}]}
    (tmp_path / "op.json").write_text(json.dumps(described))
    (tmp_path / "c.json").write_text(json.dumps({"dump": {"dump_path": ".", "dump_list": []}}))
    done = run(opscope, "op", "op.json", "--inputs", "x.npz", "--config", "c.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.rglob("*.ArgMaxV2_0.*")
    run(opscope, "convert", "--dump", file, "--out", "arrays", cwd=tmp_path)
    (result,) = (tmp_path / "arrays").rglob("*output.0*.npy")
    found = np.load(result)
    assert (found.dtype, found.tolist()) == (np.int32, [1, 0])


def test_the_drop_in_quotes_paths_once(opscope: Binary, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(3, np.float32))
    command = ("msaccucmp", "file_compare", "-m", "a.npy", "-g", "a.npy", "-out", "out")
    (tmp_path / "out").mkdir()
    done = run(opscope, *command, cwd=tmp_path)
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if "have been written" in line]
    (path,) = (tmp_path / "out").glob("*.txt")
    assert line.endswith(f"""written to "'{path}'".""")


@pytest.mark.parametrize("with_numbers", [True, False])
def test_logs_of_memory_that_nobody_wrote(opscope: Binary, tmp_path: Path, with_numbers: bool) -> None:
    lines = [
        "aten::empty.memory_format([4])  ->  t$0: f32[4]",
        "aten::copy_(t$0: f32[4], t$1: f32[4])  ->  t$0: f32[4]  # {'input_hash': ((HASH, 6.0), {}), 'hash': 6.0}",
        "aten::neg(t$0: f32[4])  ->  t$2: f32[4]  # {'input_hash': ((6.0,), {}), 'hash': 6.0}",
    ]
    for name, garbage in (("target", "1e+21"), ("golden", "0.25")):
        text = "".join(f"    {line.replace('HASH', garbage)}\n" for line in lines)
        if not with_numbers:
            text = text.replace("$0", "").replace("$1", "").replace("$2", "")
        (tmp_path / f"{name}.txt").write_text(text)
    found = run(opscope, "compare", "target.txt", "golden.txt", cwd=tmp_path)
    assert (found.returncode, found.stdout.startswith("PASS")) == (0, True), found.stdout


def test_views_of_logs_go_by_more_than_their_number(opscope: Binary, tmp_path: Path) -> None:
    view = "    aten::view(t$0: f32[4, 4], [16])  ->  t$9: f32[16]  # {'input_hash': ((HASH, [None]), {}), 'hash': HASH}\n"
    rest = (
        "    aten::view(t$1: f32[4, 4], [2, 8])  ->  t$2: f32[2, 8]  # {'input_hash': ((5.0, [None, None]), {}), 'hash': 5.0}\n"
        "    aten::relu(t$2: f32[2, 8])  ->  t$3: f32[2, 8]  # {'input_hash': ((5.0,), {}), 'hash': 3.0}\n"
    )
    (tmp_path / "golden.txt").write_text(rest)
    for number in ("77.0", "5.0"):
        (tmp_path / "target.txt").write_text(view.replace("HASH", number) + rest)
        found = run(opscope, "compare", "target.txt", "golden.txt", cwd=tmp_path)
        assert (found.returncode, found.stdout.startswith("PASS")) == (0, True), found.stdout
