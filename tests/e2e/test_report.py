"""The page as one file holds what the server of the page answers, and nothing that a browser would obey.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_report.py
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import report
from binary import Binary
from onnx import TensorProto, helper, numpy_helper
from test_view import HOSTILE, Page, network, served

# What `docs/view.md` promises of a thousand operators.
BYTES_MAX = 3_000_000


@pytest.fixture(scope="module")
def dumps(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("report")
    np.save(folder / "x.npy", np.random.default_rng(6).normal(size=(2, 3, 8, 8)).astype(np.float32))
    for name, factor in (("target", 1.5), ("golden", 1.0)):
        onnx.save(network(factor=factor), folder / f"{name}.onnx")
        tool.dump(folder / f"{name}.onnx", "--out", folder / name, "--input", f"x={folder}/x.npy")
    return [folder / "target", folder / "golden"]


@pytest.fixture(scope="module")
def both(tool: Binary, dumps: list[Path]) -> Iterator[Page]:
    with served(tool, *dumps) as page:
        yield page


def compare(tool: Binary, *arguments: object, code: int = 1) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(tool.command("compare", *arguments), capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done


def sent(page: Page) -> str:
    status, headers, content = page.get(f"/{page.token}/api/report")
    assert status == 200
    name = re.fullmatch(r'attachment; filename="([\w.-]+\.html)"', headers["content-disposition"])
    assert name, headers
    return content.decode()


def is_answered(contents: dict[str, Any], page: Page) -> None:
    """Whether everything in a file is what the server answers."""
    assert contents["info"] == page.ask("info")
    assert contents["coverage"] == page.ask("coverage")
    assert contents["trace"] == page.ask("trace", columns=1312)
    assert contents["rows"] == page.ask("operators", limit=1000)["rows"]
    assert set(contents["details"]) == {str(row["id"]) for row in contents["rows"]}
    for op, details in contents["details"].items():
        assert details == page.ask(f"operator/{op}")
    for layout in contents["graphs"]:
        graph = page.ask("graph", op=contents["rows"][0]["id"], open=",".join(layout["open"]))
        # The box that is selected depends on the operator that asks.
        assert {**layout["graph"], "selected": None} == {**graph, "selected": None}
    for op, place in contents["graph_of"].items():
        graph = page.ask("graph", op=op)
        assert contents["graphs"][place]["graph"]["boxes"] == graph["boxes"]
    for entry in contents["tensors"]:
        asked = {"op": entry["tensor"]["op"], "slot": entry["tensor"]["slot"]}
        assert entry["tensor"] == page.ask("tensor", **asked)
        axes = ",".join(entry["axes"] or [])
        for side, picture in entry["pictures"].items():
            picture = base64.b64decode(picture)
            most = int(np.frombuffer(picture, "<u4", 2).max())
            assert most <= 160
            # The slices are small enough for every element to be a pixel.
            status, slices = page.raw("slice", **asked, side=side, axes=axes, rows=160, columns=160)
            assert (status, slices) == (200, picture)
        for place in entry["values"]:
            place_asked = {"row": place["row"], "column": place["column"], "n": 7}
            assert place["values"] == page.ask("values", **asked, axes=axes, **place_asked)


def test_the_file_says_what_the_server_says(both: Page) -> None:
    contents = report.unpacked(sent(both))
    is_answered(contents, both)
    verdict = contents["info"]["verdict"]
    # The slot that the verdict names comes first.
    first = contents["tensors"][0]
    assert (first["tensor"]["op"], first["tensor"]["slot"]) == (verdict["op"], verdict["slot"]) == (2, "in1")
    assert first["axes"] == ["r", "c", *map(str, first["tensor"]["difference"]["worst"][0]["index"][2:])]
    assert set(first["pictures"]) == {"target", "golden", "difference"}
    # All slots of who is at fault, and one of each other operator.
    slots = [(entry["tensor"]["op"], entry["tensor"]["slot"]) for entry in contents["tensors"]]
    assert {(2, "in0"), (2, "in1"), (2, "out0")} < set(slots)
    assert {op for op, _ in slots} == {0, 1, 2, 3, 4}
    assert len(set(slots)) == len(slots)


def test_one_dump_is_sent_too(tool: Binary, dumps: list[Path]) -> None:
    with served(tool, dumps[0]) as page:
        contents = report.unpacked(sent(page))
        is_answered(contents, page)
    assert contents["info"]["golden"] is None
    assert all(set(entry["pictures"]) == {"target"} for entry in contents["tensors"])


def test_the_command_writes_the_same_file(tool: Binary, dumps: list[Path], both: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    done = compare(tool, *dumps, "--html", path)
    assert done.stdout.startswith("FAIL")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert report.read(path) | {"made": 0} == report.unpacked(sent(both)) | {"made": 0}
    again = compare(tool, *dumps, "--html", path, code=2)
    assert "--force" in again.stderr


def test_a_saved_result_makes_a_file_without_tensors(tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    saved, path = tmp_path / "result.json", tmp_path / "report.html"
    compare(tool, *dumps, "--json", saved)
    compare(tool, "--from", saved, "--html", path)
    contents = report.read(path)
    assert contents["is_saved"] and contents["tensors"] == []
    with served(tool, "--from", saved) as page:
        is_answered(contents, page)
        why = page.ask("tensor", op=2, slot="in1")["missing"]
        assert "without the dumps" in why["target"] and "without the dumps" in why["golden"]
    assert contents["info"]["verdict"]["op"] == 2


def test_names_mean_nothing_to_a_browser(both: Page) -> None:
    page = sent(both)
    contents = report.unpacked(page)
    assert HOSTILE in [row["op_name"] for row in contents["rows"]]
    # The script is the same whatever a dump says, and has marks of direction to look for.
    outside = re.sub(r'(<script type="module">).*(</script>)', r"\1\2", page, flags=re.DOTALL)
    assert len(outside) < len(page)
    for part in (HOSTILE, "alert(", "\u202e", "\x1b"):
        assert part not in outside
    assert len(re.findall("<script", page)) == len(re.findall("</script>", page)) == 2


def test_the_policy_names_script_and_style(both: Page) -> None:
    page = sent(both)
    policy = re.search(r'http-equiv="content-security-policy" content="([^"]*)"', page)
    assert policy
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{digests[0]}'",
        "style-src": f"'sha256-{digests[1]}'",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def long_network(*, factor: float) -> onnx.ModelProto:
    """Five hundred convolutions with their activations; of one in the middle a channel is multiplied."""
    random = np.random.default_rng(2)
    nodes, weights, value = [], [], "x"
    for block in range(500):
        weight = (random.normal(size=(8, 8, 3, 3)) / 8.5).astype(np.float32)
        if block == 250:
            weight[5] *= np.float32(factor)
        name = f"stage{block // 50}.{block % 50}"
        weights.append(numpy_helper.from_array(weight, f"{name}.conv.weight"))
        path = f"/stage{block // 50}/{name}"
        conv = helper.make_node("Conv", [value, f"{name}.conv.weight"], [f"c{block}"], f"{path}/conv/Conv", pads=[1] * 4)
        nodes += [conv, helper.make_node("Tanh", [f"c{block}"], [f"t{block}"], f"{path}/tanh/Tanh")]
        value = f"t{block}"
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 48, 48])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_thousand_operators_are_three_megabytes(tool: Binary, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(4).normal(size=(1, 8, 48, 48)).astype(np.float32))
    for name, factor in (("target", 1.5), ("golden", 1.0)):
        onnx.save(long_network(factor=factor), tmp_path / f"{name}.onnx")
        tool.dump(tmp_path / f"{name}.onnx", "--out", tmp_path / name, "--input", f"x={tmp_path}/x.npy")
    path = tmp_path / "report.html"
    compare(tool, tmp_path / "target", tmp_path / "golden", "--quiet", "--html", path)
    assert path.stat().st_size <= BYTES_MAX
    contents = report.read(path)
    assert len(contents["rows"]) == len(contents["details"]) == 1000
    assert len(contents["tensors"]) >= 8
    assert contents["tensors"][0]["tensor"]["op"] == contents["info"]["verdict"]["op"] == 500
    # The way to the operator at fault can be opened group by group.
    opened = [layout["open"] for layout in contents["graphs"]]
    for open_groups in ([], ["stage5"], ["stage5", "stage5/stage5.0"]):
        assert open_groups in opened


def test_of_too_many_operators_the_worst_are_kept(tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    saved, path = tmp_path / "result.json", tmp_path / "report.html"
    compare(tool, *dumps, "--json", saved)
    saved.write_text(json.dumps(report.with_many_operators(json.loads(saved.read_text()), 20_010)))
    compare(tool, "--from", saved, "--quiet", "--html", path)
    contents = report.read(path)
    ids = [row["id"] for row in contents["rows"]]
    # Of those that agree the last ones are left out; what is at fault and what fails is there.
    assert ids == list(range(20_000))
    assert contents["info"]["n_operators"] == contents["trace"]["n"] == 20_010
    assert len(contents["details"]) == 1000
    bad = {str(row["id"]) for row in contents["rows"] if row["status"] in ("fail", "warn")}
    assert bad and bad < set(contents["details"])
    assert contents["info"]["counts"]["pass"] + len(bad) == 20_010


def test_one_pair_has_one_distance(tool: Binary, tmp_path: Path) -> None:
    """An element that is infinite on one side alone is the largest difference, and `rel_l2` is infinite everywhere."""
    for name, dtype, kind in (("half", np.float16, TensorProto.FLOAT16), ("single", np.float32, TensorProto.FLOAT)):
        ends = [helper.make_tensor_value_info(name, kind, [2, 3]) for name in ("x", "y")]
        two = numpy_helper.from_array(np.array(2, dtype), "two")
        nodes = [helper.make_node("Pow", ["x", "two"], ["p"], "pow"), helper.make_node("Neg", ["p"], ["y"], "neg")]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [two])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, tmp_path / f"{name}.onnx")
        np.save(tmp_path / f"{name}.npy", np.array([[1, 2, 3], [800, 5, 6]], dtype))
        inputs = ("--input", f"x={tmp_path / name}.npy")
        tool.dump(tmp_path / f"{name}.onnx", "--out", tmp_path / name, *inputs)
    sides = (tmp_path / "half", tmp_path / "single")
    done = compare(tool, *sides, "--json", tmp_path / "r.json", "--csv", tmp_path / "r.csv")
    assert "largest difference, target / golden: [1, 0] inf / 640000\n" in done.stdout
    assert "(needs 640,000, the largest is 65,504)" in done.stdout
    result = json.loads((tmp_path / "r.json").read_text())
    (pow_,) = (operator for operator in result["operators"] if operator["target"][0]["op_name"] == "pow")
    output = pow_["slots"][-1]
    metrics = output["metrics"]
    assert (metrics["rel_l2"], metrics["worst_target"], metrics["worst_golden"]) == ("inf", "inf", 640000)
    # Limits apply to the elements that are finite on both sides.
    assert [rule["metric"] for rule in output["rules"]] == ["n_non_finite_mismatches"]
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if "pow" in row.values() and "output.0" in row.values()]
    assert [row["rel_l2"] for row in rows] == ["inf"]
    with served(tool, *sides) as page:
        (shown,) = (row for row in page.ask("operators", limit=10)["rows"] if row["op_name"] == "pow")
        assert shown["error"] == "inf"
        slots = page.ask(f"operator/{shown['id']}")["slots"]
    assert any(["rel_l2", "inf"] in slot["metrics"] for slot in slots)


def test_weights_of_both_sides_are_listed(tool: Binary, tmp_path: Path) -> None:
    weight = np.random.default_rng(8).normal(size=(4, 3)).astype(np.float32)
    rounded = (weight.view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32)
    for name, kernel in (("target", rounded), ("golden", weight)):
        ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, [2, size]) for end, size in (("x", 4), ("y", 3))]
        weights = [numpy_helper.from_array(kernel, "w"), numpy_helper.from_array(np.float32([1, 2, 3]), "b")]
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], "mm"), helper.make_node("Add", ["p", "b"], ["y"], "add")]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, tmp_path / f"{name}.onnx")
        tool.dump(tmp_path / f"{name}.onnx", "--out", tmp_path / name, "--seed", "1")
    sides = (tmp_path / "target", tmp_path / "golden")
    done = subprocess.run(tool.command("compare", *sides, "--weights"), capture_output=True, text=True, check=False)
    lines = [line.split() for line in done.stdout.split("2 parameters and buffers")[1].splitlines()]
    (kernel,) = (line for line in lines if line[:1] == ["w"])
    assert kernel[1] == "float32" and kernel[-4:] == ["golden's", "rounded", "to", "bfloat16"]
    assert ["b", "float32", "1", "3", "2", "0", "none"] in lines
    assert "parameters and buffers" not in compare(tool, *sides, code=done.returncode).stdout
