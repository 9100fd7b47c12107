"""Descriptions of graphs: `debug.graph_dump`, the variables of the graph engine, `debug.fx_summary`."""

from __future__ import annotations

import ast
import csv
import io
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from opscope.torchair import _ge_dump
from protobuf_text import Message, parse
from torchair_runs import Classifier, compiled, configured

NAME = re.compile(r"dynamo_(original|optimized)_graph_(\d+)_rank_(\d+)_pid_(\d+)_ts_(\d{20})\.(py|txt|pbtxt)")


def described(kind: str, path: Path, model: Any = None, inputs: Any = None, **how: Any) -> list[str]:
    """The texts of the graphs before passes, in the order of compilation, after looking at the files."""
    config = configured(debug__graph_dump__type=kind, debug__graph_dump__path=str(path))
    with compiled(model or Classifier(), config, **how) as call:
        result = call(*(inputs or (torch.randn(2, 4),)))
        if result.requires_grad:
            result.sum().backward()
    found = sorted((NAME.fullmatch(file.name) for file in path.iterdir()), key=lambda name: int(name[2]))
    by_number: dict[str, list[Any]] = {}
    for name in found:
        assert (name[3], name[4], name[6]) == ("0", str(os.getpid()), kind)
        by_number.setdefault(name[2], []).append(name)
    for names in by_number.values():
        assert sorted(name[1] for name in names) == ["optimized", "original"]
        texts = {(path / name[0]).read_text(encoding="utf-8") for name in names}
        assert len(texts) == 1, "nothing changed the graph between the two"
    return [(path / name[0]).read_text(encoding="utf-8") for name in found if name[1] == "original"]


@pytest.mark.parametrize("kind", ["py", "txt", "pbtxt"])
def test_two_files_for_each_graph_forward_and_backward(kind: str, tmp_path: Path) -> None:
    assert len(described(kind, tmp_path / "graphs" / "here")) == 2
    files = list((tmp_path / "graphs" / "here").iterdir())
    assert len(files) == 4
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o640}
    assert stat.S_IMODE((tmp_path / "graphs" / "here").stat().st_mode) == 0o750


def test_the_program_of_a_graph_can_be_read_and_compiled(tmp_path: Path) -> None:
    forward, backward = described("py", tmp_path)
    for text in (forward, backward):
        ast.parse(text)
    assert re.search(r'# File ".*torchair_runs\.py", line \d+, in forward  y = self\.layer\(x\)\.relu\(\)', forward)
    assert "## FX Code: relu: torch.float32[2, 3]cpu = aten.relu.default(addmm: torch.float32[2, 3]cpu)" in forward
    assert "relu = torch.ops.aten.relu.default(addmm)" in forward


def test_the_program_of_a_graph_computes_the_same(tmp_path: Path) -> None:
    x = torch.randn(3, 4)
    model = Classifier()
    with torch.no_grad():
        (text,) = described("py", tmp_path, model, (x,))
        space: dict[str, Any] = {}
        exec(text, space)
        (name,) = re.findall(r"^class (graph_\d+)", text, re.M)
        count = text.split("def forward(self, ")[1].split(")")[0].count(",") + 1
        found = space[name]().forward(*[*model.parameters(), x][:count])
        assert torch.equal(found[0], model(x))


def test_extents_that_are_not_known_have_short_names(tmp_path: Path) -> None:
    x = torch.randn(3, 3)
    (text,) = described("py", tmp_path, lambda x, y: torch.add(x, y), (x, x.clone()), dynamic=True)
    assert "FX Code: add: torch.float32[s0, s0]cpu = aten.add.Tensor(" in text


def ops(message: Message) -> dict[str, Message]:
    found = {op["name"][0]: op for op in message["op"]}
    assert len(found) == len(message["op"]), "a name is there twice"
    return found


def check_graph(message: Message) -> dict[str, Message]:
    """Checks that inputs are outputs of earlier operators with the same description; returns the operators by name."""
    known: dict[str, Message] = {}
    for op in message["op"]:
        inputs = op.get("input", [])
        assert len(inputs) == len(op.get("input_desc", []))
        for name, described_input in zip(inputs, op.get("input_desc", [])):
            producer, _, index = name.rpartition(":")
            given = known[producer]["output_desc"][int(index)]
            assert (given["dtype"], given["shape"]) == (described_input["dtype"], described_input["shape"])
        known[op["name"][0]] = op
    return known


def test_a_graph_of_the_graph_engine(tmp_path: Path) -> None:
    forward, backward = map(parse, described("txt", tmp_path))
    for graph in (forward, backward):
        found = check_graph(graph)
        assert found["NetOutput"]["type"] == ["NetOutput"] and found["NetOutput"]["input"] == graph["output"]
        data = [op["name"][0] for op in graph["op"] if op["type"] == ["Data"]]
        assert graph["input"] == [f"{name}:0" for name in data]
    found = ops(forward)
    relu = found["relu"]
    assert (relu["type"], relu["input"]) == (["aten.relu.default"], ["addmm:0"])
    assert relu["output_desc"][0]["dtype"] == ["DT_FLOAT"]
    assert relu["output_desc"][0]["shape"] == [{"dim": [2, 3]}]
    attributes = {one["key"][0]: one["value"][0] for one in relu["attr"]}
    assert attributes["_meta"] == {"s": ["torch.float32[2, 3]cpu"]}
    assert "torchair_runs.py" in attributes["stack"]["s"][0]
    assert {one["key"][0]: one["value"][0] for one in found["addmm"]["attr"]}["nn_module"] == {"s": ["layer"]}
    # The maximum and where it was are two outputs of one operator.
    assert not any("getitem" in name for name in found)
    assert any(name.rpartition(":")[0].startswith("max") for op in forward["op"] for name in op.get("input", []))
    assert found["cat"]["input"][0] == "relu:0" and len(found["cat"]["input"]) == 2


def test_unknown_extents_and_numbers(tmp_path: Path) -> None:
    (text,) = described("txt", tmp_path, lambda x: x.reshape(-1) * x.shape[0], (torch.randn(3, 2),), dynamic=True)
    graph = parse(text)
    check_graph(graph)
    shapes = {op["name"][0]: op["output_desc"][0]["shape"][0] for op in graph["op"] if "output_desc" in op}
    assert {"dim": [-1, 2]} in shapes.values() or {"dim": [-1, -1]} in shapes.values()


def test_nodes_for_viewers(tmp_path: Path) -> None:
    forward, _ = map(parse, described("pbtxt", tmp_path))
    nodes = {node["name"][0]: node for node in forward["node"]}
    assert nodes["relu"]["op"] == ["aten.relu.default"] and nodes["relu"]["input"] == ["addmm:0"]
    attributes = {one["key"][0]: one["value"][0]["s"][0] for one in nodes["relu"]["attr"] if "s" in one["value"][0]}
    assert attributes["[i]x0"] == attributes["[o]y0"] == "torch.float32[2, 3]cpu"
    for node in nodes.values():
        assert all(name.lstrip("^").rpartition(":")[0] in nodes for name in node.get("input", []))


@pytest.mark.parametrize("kind", ["py", "txt", "pbtxt"])
def test_a_graph_within_a_graph(kind: str, tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)) + 1

    with torch.no_grad():
        (text,) = described(kind, tmp_path, model, (torch.ones(3),))
    if kind == "py":
        ast.parse(text)
        assert text.count("class graph_") == 3 and "torch.ops.aten.sin.default" in text
    elif kind == "txt":
        (cond,) = [op for op in parse(text)["op"] if "subgraph_name" in op]
        assert len(cond["subgraph_name"]) == 2
    else:
        assert any(node["op"] == ["aten.cos.default"] for node in parse(text)["node"])


def test_a_pass_of_the_program_comes_between_the_two(tmp_path: Path) -> None:
    def change(gm: Any, example_inputs: Any, config: Any) -> None:
        assert len(example_inputs) == 1 and config.debug.graph_dump.type.raw == "py"
        for node in gm.graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default

    config = configured(
        debug__graph_dump__type="py", debug__graph_dump__path=str(tmp_path), post_grad_custom_pre_pass=change
    )
    x = torch.randn(3)
    with compiled(torch.sin, config) as call:
        assert torch.equal(call(x), x.cos())
    texts = {file.name.split("_")[1]: file.read_text() for file in tmp_path.iterdir()}
    assert "aten.sin.default" in texts["original"] and "aten.cos.default" in texts["optimized"]


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    config = configured(debug__graph_dump__type="py")
    # As other tools assign it; `path` keeps where the link leads.
    config.debug.graph_dump._path = str(tmp_path / "link")
    with compiled(torch.sin, config) as call, pytest.warns(UserWarning, match="symbolic link"):
        call(torch.ones(2))
    assert list((tmp_path / "real").iterdir()) == []


FORMATS = {"ge_proto": "ge_proto_{}_graph_{}_{}.txt", "onnx": "ge_onnx_{}_graph_{}_{}.pbtxt"}


def test_files_of_the_graph_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_GE_GRAPH", "3")
    monkeypatch.setenv("DUMP_GRAPH_PATH", str(tmp_path))
    config = configured(dump_config__enable_dump=True, dump_config__dump_path=str(tmp_path))
    with compiled(Classifier(), config) as call, torch.no_grad():
        call(torch.randn(2, 4))
    (folder,) = tmp_path.glob("pid_*_deviceid_0")
    assert folder.name == f"pid_{os.getpid()}_deviceid_0"
    found = sorted(file.name for file in folder.glob("ge_proto*"))
    assert [re.sub(r"^ge_proto_\d{8}_graph_\d+_", "", name) for name in found] == ["PreRunBegin.txt", "Build.txt"]
    assert len(list(folder.glob("ge_onnx_*.pbtxt"))) == 2
    model = parse((folder / found[1]).read_text(encoding="utf-8"))
    (graph,) = model["graph"]
    assert model["name"] == graph["name"] and re.fullmatch(r"graph_\d+", graph["name"][0])
    check_graph(graph)
    dumped = {path.name.split(".")[1] for path in tmp_path.glob("worldsize1_global_rank0/*/0/graph_*/*/0/*")}
    assert dumped and dumped <= set(ops(graph)), "names of the description are those of the dump"


def test_names_found_in_a_description_choose_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMP_GE_GRAPH", "3")
    monkeypatch.setenv("DUMP_GRAPH_PATH", str(tmp_path / "graphs"))
    model = Classifier()
    with compiled(model, configured()) as call, torch.no_grad():
        call(torch.randn(2, 4))
    (file,) = (tmp_path / "graphs").glob("*/ge_proto_*_Build.txt")
    names = ops(parse(file.read_text(encoding="utf-8"))["graph"][0])
    monkeypatch.delenv("DUMP_GE_GRAPH")
    wanted = [name for name in names if name not in ("NetOutput", "relu") and names[name]["type"] != ["Data"]]
    config = configured(
        dump_config__enable_dump=True, dump_config__dump_path=str(tmp_path), dump_config__dump_layer=" ".join(wanted)
    )
    with compiled(model, config) as call, torch.no_grad():
        call(torch.randn(2, 4))
    types = [path.name.split(".")[:2] for path in tmp_path.glob("worldsize1_global_rank0/*/0/graph_*/*/0/*")]
    assert {name for op_type, name in types if op_type != "Data"} == set(wanted)
    assert {name for op_type, name in types if op_type == "Data"} <= {n for n in names if names[n]["type"] == ["Data"]}


@pytest.mark.parametrize(
    ("environment", "stages"),
    [
        ({}, []),
        ({"DUMP_GE_GRAPH": "0"}, []),
        ({"DUMP_GE_GRAPH": "4"}, []),
        ({"DUMP_GE_GRAPH": "1"}, ["PreRunBegin", "Build"]),
        ({"DUMP_GE_GRAPH": "2", "DUMP_GRAPH_LEVEL": "1"}, ["PreRunBegin", "Build"]),
        ({"DUMP_GE_GRAPH": "3", "DUMP_GRAPH_LEVEL": "3"}, ["Build"]),
        ({"DUMP_GE_GRAPH": "3", "DUMP_GRAPH_LEVEL": "4"}, ["PreRunBegin"]),
        ({"DUMP_GE_GRAPH": "3", "DUMP_GRAPH_LEVEL": "RunBegin|AfterInfershape"}, ["PreRunBegin"]),
        ({"DUMP_GE_GRAPH": "3", "DUMP_GRAPH_LEVEL": "|"}, []),
    ],
)
def test_which_stages_the_variables_ask_for(environment: dict[str, str], stages: list[str]) -> None:
    assert [stage for stage in _ge_dump.STAGES if _ge_dump.is_asked_for(stage, environment)] == stages


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        (None, ["ge_proto", "ge_onnx"]),
        ("", ["ge_proto", "ge_onnx"]),
        ("GE_PROTO", ["ge_proto"]),
        ("readable|onnx", ["ge_onnx", "ge_readable"]),
        ("nothing", []),
    ],
)
def test_which_formats_the_variables_ask_for(text: str | None, starts: list[str]) -> None:
    environment = {} if text is None else {"DUMP_GRAPH_FORMAT": text}
    assert [start for start, _, _ in _ge_dump.formats(environment)] == starts


def test_a_readable_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"GE_GRAPH": "3", "GRAPH_PATH": str(tmp_path), "GRAPH_FORMAT": "readable"}.items():
        monkeypatch.setenv(f"DUMP_{name}", value)
    with compiled(Classifier(), configured()) as call, torch.no_grad():
        call(torch.randn(2, 4))
    (file,) = tmp_path.glob("*/ge_readable_*_Build.txt")
    lines = file.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r'graph\("graph_\d+"\):', lines[0]) and lines[-1] == "    return (output_0=%add)"
    assert any("%relu : [#users=2] = Node[type=aten.relu.default] (inputs = (x0=%addmm)" in line for line in lines)
    assert any(re.match(r"    %max_1\.0 : \[#users=1\] = get_element\[node=%max_1\]\(0\)", line) for line in lines)


def table(folder: Path) -> list[dict[str, str]]:
    (file,) = folder.glob("summary_rank_0_pid_*_ts_*.csv")
    content = file.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


@pytest.mark.parametrize("skips", [True, False])
def test_a_summary_of_the_operators(skips: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = configured(
        debug__fx_summary__type="csv",
        debug__fx_summary__skip_compile=skips,
        dump_config__enable_dump=True,
        dump_config__dump_path=str(tmp_path),
    )
    with compiled(lambda x: (x + x) + (x + 1).sin(), config) as call:
        x = torch.ones(2)
        assert torch.equal(call(x), x + x + (x + 1).sin())
    rows = {row["target"]: row for row in table(tmp_path)}
    assert set(rows) == {"aten.add.Tensor", "aten.sin.default"}
    add = rows["aten.add.Tensor"]
    assert (add["kind"], add["support"], add["calls"]) == ("aten", "supported", "3")
    assert add["outputs"] == "torch.float32[2]cpu x3"
    assert add["inputs"] == "torch.float32[2]cpu, torch.float32[2]cpu x2; torch.float32[2]cpu x1"
    assert bool(list(tmp_path.glob("worldsize*"))) is not skips, "a graph that is not compiled is not dumped"
