"""`opscope view` returns NumPy's results for the same tensors, only to clients with the token.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_view.py
"""

from __future__ import annotations

import http.client
import io
import json
import math
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary
from onnx import TensorProto, helper, numpy_helper

HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"
PERCENTS = (0, 0.1, 1, 5, 25, 50, 75, 95, 99, 99.9, 100)


class Page:
    """A running server, and the questions of its page."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        parts = urlsplit(address)
        self.host, self.port = parts.hostname or "", parts.port or 0
        self.token = parts.path.split("/")[1]

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_SECONDS)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def raw(self, question: str, **query: object) -> tuple[int, bytes]:
        address = f"/{self.token}/api/{question}"
        status, _, content = self.get(f"{address}?{urlencode(query)}" if query else address)
        return status, content

    def ask(self, question: str, **query: object) -> Any:
        status, content = self.raw(question, **query)
        assert status == 200, (status, content)
        return json.loads(content)


@contextmanager
def served(tool: Binary, *arguments: object) -> Iterator[Page]:
    command = tool.command("view", *arguments, "--no-open")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.stderr.read()
        try:
            yield Page(process, address)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=TIMEOUT_SECONDS) == 0
            assert process.stderr.read() == ""


def network(*, factor: float) -> onnx.ModelProto:
    """Convolutions of which the second has one output channel whose weights are multiplied."""
    random = np.random.default_rng(5)
    first = random.normal(size=(4, 3, 3, 3)).astype(np.float32)
    second = random.normal(size=(6, 4, 3, 3)).astype(np.float32)
    second[2] *= np.float32(factor)
    nodes = [
        helper.make_node("Conv", ["x", "layer1.weight"], ["a"], "/layer1/Conv"),
        helper.make_node("Relu", ["a"], ["b"], "/layer1/Relu"),
        helper.make_node("Conv", ["b", "layer2.weight"], ["c"], "/layer2/Conv"),
        helper.make_node("Relu", ["c"], ["d"], HOSTILE),
        helper.make_node("Reciprocal", ["d"], ["y"], "/head/Reciprocal"),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(first, "layer1.weight"), numpy_helper.from_array(second, "layer2.weight")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module", params=["native", "acl"])
def dumps(request: pytest.FixtureRequest, tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("view")
    np.save(folder / "x.npy", np.random.default_rng(6).normal(size=(2, 3, 8, 8)).astype(np.float32))
    for name, factor in (("target", 1.5), ("golden", 1.0)):
        onnx.save(network(factor=factor), folder / f"{name}.onnx")
        options = ("--form", request.param, "--input", f"x={folder}/x.npy")
        tool.dump(folder / f"{name}.onnx", "--out", folder / name, *options)
    return [folder / "target", folder / "golden"]


@pytest.fixture(scope="module")
def both(tool: Binary, dumps: list[Path]) -> Iterator[Page]:
    with served(tool, *dumps) as page:
        yield page


@pytest.fixture(scope="module")
def alone(tool: Binary, dumps: list[Path]) -> Iterator[Page]:
    with served(tool, dumps[0]) as page:
        yield page


def array(page: Page, op: int, slot: str, side: str) -> np.ndarray:
    status, content = page.raw("npy", op=op, slot=slot, side=side)
    assert status == 200, content
    return np.load(io.BytesIO(content))


def picture(page: Page, **query: object) -> tuple[np.ndarray, tuple[int, int], np.ndarray]:
    """Pixels, full size, and the margin of row maxima."""
    status, content = page.raw("slice", **query)
    assert status == 200, content
    rows, columns, full_rows, full_columns = struct.unpack_from("<4I", content)
    numbers = np.frombuffer(content, "<f4", offset=16)
    pixels = numbers[2 : 2 + rows * columns].reshape(rows, columns)
    finite = pixels[np.isfinite(pixels)]
    if finite.size:
        assert (numbers[0], numbers[1]) == (finite.min(), finite.max())
    return pixels, (full_rows, full_columns), numbers[2 + rows * columns :]


def close(found: Any, expected: float) -> bool:
    return found is not None and bool(np.isclose(float(found), expected, rtol=1e-6, atol=0, equal_nan=True))


def test_the_verdict_names_the_weight(both: Page) -> None:
    info = both.ask("info")
    verdict = info["verdict"]
    assert (verdict["kind"], verdict["op_name"], verdict["slot"]) == ("weight", "/layer2/Conv", "in1")
    assert verdict["box"]["ranges"] == [[2, 2], [0, 3], [0, 2], [0, 2]]
    assert info["slots"]["compared"] == info["slots"]["total"]
    rows = both.ask("operators")["rows"]
    assert [row["op_name"] for row in rows if row["at_fault"]] == ["/layer2/Conv"]
    assert [row["entry"] for row in rows if row["at_fault"]] == ["weight"]
    assert rows[3]["op_name"] == HOSTILE
    assert sum(info["counts"].values()) == len(rows) == 5


def test_tensors_are_those_of_numpy(both: Page) -> None:
    for row in both.ask("operators")["rows"]:
        for slot in both.ask(f"operator/{row['id']}")["slots"]:
            target, golden = (array(both, row["id"], slot["id"], side) for side in ("target", "golden"))
            assert list(target.shape) == slot["shape"][0]
            told = both.ask("tensor", op=row["id"], slot=slot["id"])
            for side, values in (("target", target), ("golden", golden)):
                finite = values[np.isfinite(values)].astype(float)
                statistics = told["sides"][side]["statistics"]
                assert statistics["n_elements"] == values.size
                assert statistics["n_neg_inf"] == np.isneginf(values).sum()
                assert statistics["n_zero"] == (values == 0).sum()
                assert close(statistics["mean"], values.astype(float).mean()) or not np.isfinite(values).all()
                for step, percent in zip(told["percentiles"], PERCENTS, strict=True):
                    assert step["p"] == percent
                    assert close(step[side], np.percentile(finite, percent, method="inverted_cdf"))
                low, high = told["histogram"]["low"], told["histogram"]["high"]
                counts, _ = np.histogram(finite, 64, (low, high))
                # Elements on an edge may fall to either bin.
                assert sum(told["histogram"][side]) == counts.sum()
                assert np.abs(np.cumsum(told["histogram"][side]) - np.cumsum(counts)).max() <= 2
            check_difference(told["difference"], target, golden)


def check_difference(told: dict[str, Any], target: np.ndarray, golden: np.ndarray) -> None:
    is_equal = (target == golden) | (np.isnan(target) & np.isnan(golden))
    assert (told["n_equal"], told["n_differing"]) == (is_equal.sum(), (~is_equal).sum())
    with np.errstate(invalid="ignore"):
        distance = np.where(is_equal, 0, np.abs(target.astype(float) - golden.astype(float)))
    assert sum(told["powers"]["counts"]) == (~is_equal).sum()
    if is_equal.all():
        assert told["ranges"] is None
        assert told["worst"] == []
        return
    places = np.argwhere(~is_equal)
    expected = [[int(low), int(high)] for low, high in zip(places.min(0), places.max(0), strict=True)]
    assert told["ranges"] == expected
    assert close(told["max_abs"], distance.max())
    for worst in told["worst"]:
        at = tuple(worst["index"])
        assert close(worst["target"], target[at])
        assert close(worst["golden"], golden[at])
    found = [distance[tuple(worst["index"])] for worst in told["worst"]]
    assert found == sorted(distance[~is_equal].ravel(), reverse=True)[:8]


def test_slices_are_those_of_numpy(both: Page) -> None:
    weight, golden = (array(both, 2, "in1", side) for side in ("target", "golden"))
    asked: dict[str, object] = {"op": 2, "slot": "in1"}
    cases = {
        "r,c,1,2": weight[:, :, 1, 2],
        "3,1,r,c": weight[3, 1],
        "3,1,c,r": weight[3, 1].T,
        "r,c,c,c": weight.reshape(6, -1),
        "c,2,0,0": weight[:, 2, 0, 0].reshape(1, -1),
        "r,r,c,c": weight.reshape(24, 9),
        "c,0,r,c": weight[:, 0].transpose(1, 0, 2).reshape(3, -1),
    }
    for axes, expected in cases.items():
        pixels, full, margin = picture(both, **asked, side="target", axes=axes)
        assert full == expected.shape, axes
        np.testing.assert_array_equal(pixels, expected)
        np.testing.assert_array_equal(margin, np.abs(expected).max(1))
    pixels, full, _ = picture(both, **asked, side="difference", axes="r,c,c,c", rows=3, columns=4)
    assert full == (6, 36)
    difference = (weight - golden).reshape(3, 2, 4, 9).transpose(0, 2, 1, 3).reshape(3, 4, -1)
    largest = np.take_along_axis(difference, np.abs(difference).argmax(-1)[..., None], -1)[..., 0]
    np.testing.assert_allclose(pixels, largest, rtol=1e-6)
    values = both.ask("values", **asked, axes="r,c,1,2", row=5, column=0, n=3)
    assert (values["rows"], values["columns"], values["index"]) == ([3, 4, 5], [0, 1, 2], [5, 0, 1, 2])
    np.testing.assert_array_equal(np.float32(values["target"]), weight[3:6, 0:3, 1, 2])
    np.testing.assert_array_equal(np.float32(values["golden"]), golden[3:6, 0:3, 1, 2])
    for axes in ("r", "r,c,9,0", "r,c,x,0", "r,c,-1,0"):
        assert both.raw("slice", **asked, axes=axes)[0] == 400


def test_one_dump_shows_where_infinities_begin(alone: Page) -> None:
    verdict = alone.ask("info")["verdict"]
    # The reciprocal of the zeros that a Relu makes.
    assert (verdict["kind"], verdict["op_name"], verdict["slot"]) == ("makes_inf", "/head/Reciprocal", "out0")
    output = array(alone, 4, "out0", "target")
    assert (verdict["n_bad"], verdict["n_elements"]) == (np.isinf(output).sum(), output.size)
    rows = alone.ask("operators")["rows"]
    assert [row["note"] for row in rows] == [None] * 4 + ["makes_inf"]
    for row in rows:
        values = array(alone, row["id"], "out0", "target")
        assert close(row["max_abs"], np.abs(values[np.isfinite(values)]).max())
    assert [step["role"] for step in alone.ask("operator/4")["chain"]] == ["before", "makes"]
    assert alone.raw("npy", op=4, slot="out0", side="golden")[0] == 404


def test_an_overflow_says_what_was_needed(tool: Binary, tmp_path: Path) -> None:
    """Golden in float32 has the number that float16 cannot hold; one dump recomputes it from the operands."""
    weight = (np.random.default_rng(4).normal(size=(16, 8)) * 2000).astype(np.float16)
    x = np.float16([[100] * 16])
    for name, dtype, kind in (("half", np.float16, TensorProto.FLOAT16), ("single", np.float32, TensorProto.FLOAT)):
        values = [helper.make_tensor_value_info("x", kind, [1, 16]), helper.make_tensor_value_info("y", kind, [1, 8])]
        nodes = [helper.make_node("MatMul", ["x", "w"], ["z"], "product"), helper.make_node("Neg", ["z"], ["y"], "neg")]
        weights = [numpy_helper.from_array(weight.astype(dtype), "w")]
        graph = helper.make_graph(nodes, "overflow", values[:1], values[1:], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, tmp_path / f"{name}.onnx")
        np.save(tmp_path / f"{name}.npy", x.astype(dtype))
        arguments = ("--out", tmp_path / name, "--input", f"x={tmp_path / name}.npy")
        tool.dump(tmp_path / f"{name}.onnx", *arguments)
    needed = float(np.abs(x.astype(np.float64) @ weight.astype(np.float64)).max())
    with served(tool, tmp_path / "half", tmp_path / "single") as page:
        verdict = page.ask("info")["verdict"]
    assert (verdict["kind"], verdict["op_name"], verdict["dtype"]) == ("overflows", "product", "float16")
    assert verdict["limit"]["largest"] == 65504
    golden_needs = verdict["limit"]["needed"]
    assert abs(golden_needs - needed) < 1
    assert 0 < verdict["n_bad"] <= verdict["n_elements"] == 8
    with served(tool, tmp_path / "half") as page:
        verdict = page.ask("info")["verdict"]
    # The product is simple enough to recompute it from its operands.
    assert (verdict["kind"], verdict["limit"]["largest"]) == ("overflows", 65504)
    assert abs(verdict["limit"]["needed"] - needed) < 1
    traced = subprocess.run(tool.command("nan", tmp_path / "half"), capture_output=True, text=True, check=False)
    words = f"it overflows float16 (needs {math.ceil(verdict['limit']['needed']):,}, the largest is 65,504)"
    assert traced.returncode == 1 and words in traced.stdout, traced.stdout
    command = tool.command("compare", tmp_path / "half", tmp_path / "single")
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    assert done.returncode == 1, done.stderr
    told = " ".join(done.stdout.split())
    words = f"it overflows float16 (needs {math.ceil(golden_needs):,}, the largest is 65,504)"
    assert f"NaN or Inf first made by MatMul `product`: {words}" in told
    assert told.startswith("FAIL") and words in told.split("operators:")[0]


def test_a_mask_accuses_nobody(tool: Binary, tmp_path: Path) -> None:
    """-Inf of a logarithm may be intended: it is reported without a culprit."""
    nodes = [helper.make_node("Relu", ["x"], ["r"], "relu"), helper.make_node("Log", ["r"], ["y"], "log")]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph(nodes, "mask", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "mask.onnx")
    np.save(tmp_path / "x.npy", np.float32([-1, 2, 3, 4]))
    tool.dump(tmp_path / "mask.onnx", "--out", tmp_path / "dump", "--input", f"x={tmp_path}/x.npy")
    with served(tool, tmp_path / "dump") as page:
        verdict = page.ask("info")["verdict"]
        assert (verdict["kind"], verdict["status"], verdict["n_bad"]) == ("may_be_mask", "warn", 1)
        rows = page.ask("operators")["rows"]
        assert [(row["note"], row["at_fault"]) for row in rows] == [(None, False), ("may_be_mask", False)]
        assert page.ask("operator/1")["chain"] == []


def test_filters_and_orders(both: Page) -> None:
    def names(**query: object) -> list[str]:
        return [row["op_name"] for row in both.ask("operators", **query)["rows"]]

    everything = names()
    assert names(q="type:Conv") == ["/layer1/Conv", "/layer2/Conv"]
    assert names(q="type:Conv status:pass") == ["/layer1/Conv"]
    assert names(q="-name~layer") == [HOSTILE, "/head/Reciprocal"]
    assert names(q="fault:yes") == ["/layer2/Conv"]
    assert sorted(names(q="rel_l2>0")) == sorted(["/head/Reciprocal", "/layer2/Conv", HOSTILE])
    errors = [row["error"] for row in both.ask("operators", q="rel_l2>0", sort="-error")["rows"]]
    assert errors == sorted(errors, reverse=True)
    assert names(sort="guilt")[0] == "/layer2/Conv"
    assert names(sort="-order") == everything[::-1]
    assert names(offset=1, limit=2) == everything[1:3]
    page = both.ask("operators", sort="guilt", find=2, limit=1)
    assert (page["find"], page["matching"], page["total"]) == (0, 5, 5)
    mistake = both.ask("operators", q="type:Conv stauts:fail")["error"]
    assert (mistake["start"], mistake["end"], mistake["suggestion"]) == (10, 21, "status:fail")
    assert both.raw("operators", sort="colour")[0] == 400
    trace = both.ask("trace", columns=3)
    assert (trace["n"], trace["columns"], [fault for _, fault in trace["faults"]]) == (5, 3, [2])


def test_nobody_else_is_answered(both: Page) -> None:
    question = f"/{both.token}/api/info"
    assert both.get(question)[0] == 200
    for path in ("/", "/overview", "/api/info", f"/{'0' * len(both.token)}/api/info", f"/{both.token[:-1]}/api/info"):
        assert both.get(path)[0] == 404, path
    for host in ("evil.example", f"evil.example:{both.port}", f"127.0.0.1.evil.example:{both.port}", ""):
        assert both.get(question, Host=host)[0] == 403, host
    assert both.get(question, Host=f"localhost:{both.port}")[0] == 200
    assert both.get(question, Origin="http://evil.example")[0] == 403
    assert both.get(question, Origin="null")[0] == 403
    assert both.get(question, Origin=f"http://{both.host}:{both.port}")[0] == 200
    for path in ("../../../../etc/passwd", quote("../page.js", safe=""), "..%2f..%2fCargo.toml", "page.js%00"):
        assert both.get(f"/{both.token}/assets/{path}")[0] == 404, path
    connection = http.client.HTTPConnection(both.host, both.port, timeout=TIMEOUT_SECONDS)
    connection.request("POST", question, body="{}")
    assert connection.getresponse().status == 405
    connection.close()
    for path in ("overview", "tensor", "coverage", "assets/page.js", "assets/page.css"):
        status, headers, _ = both.get(f"/{both.token}/{path}?op=2")
        assert status == 200, path
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


def test_wrong_questions_are_told(both: Page) -> None:
    for question, query, status in [
        ("operator/99", {}, 404),
        ("operator/x", {}, 400),
        ("operator/-1", {}, 400),
        ("tensor", {}, 400),
        ("tensor", {"op": 2}, 400),
        ("tensor", {"op": 99, "slot": "in0"}, 404),
        ("tensor", {"op": 2, "slot": "in"}, 400),
        ("slice", {"op": 2, "slot": "in9"}, 404),
        ("slice", {"op": 2, "slot": "in0", "side": "left"}, 400),
        ("values", {"op": 2, "slot": "in1", "row": 99, "column": 0}, 400),
        ("operators", {"offset": "a"}, 400),
        ("nothing", {}, 404),
    ]:
        found, content = both.raw(question, **query)
        assert found == status, (question, query, content)
        assert json.loads(content)["error"]


def test_a_dump_that_vanishes_gives_a_message(tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "dump"
    shutil.copytree(dumps[0], copy)
    with served(tool, copy) as page:
        assert page.raw("slice", op=2, slot="out0")[0] == 200
        shutil.rmtree(copy)
        for question in ("slice", "npy"):
            status, content = page.raw(question, op=2, slot="out0")
            assert status == 410, content
            assert json.loads(content)["error"]
        told = page.ask("tensor", op=2, slot="out0")
        assert told["sides"]["target"] is None
        assert told["missing"]["target"]
        assert page.ask("operators")["matching"] == 5


def test_half_requests_do_not_keep_the_page_from_others(tool: Binary, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(100, np.float32))
    with served(tool, tmp_path) as page, ExitStack() as closed:
        files = len(os.listdir(f"/proc/{page.process.pid}/fd"))
        resource.prlimit(page.process.pid, resource.RLIMIT_NOFILE, (files + 14, files + 14))
        halves = [
            closed.enter_context(socket.create_connection((page.host, page.port), timeout=TIMEOUT_SECONDS))
            for _ in range(20)
        ]
        for half in halves[:-2]:
            half.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        # Every other waits until they are closed; among them are two that never said anything.
        assert page.ask("info")["target"]
        for half in halves:
            half.recv(1 << 16)
            assert half.recv(1) == b""


def test_what_cannot_be_shown_is_an_error(tool: Binary, tmp_path: Path) -> None:
    for arguments, code, words in [
        ([tmp_path / "missing"], 3, "missing"),
        ([tmp_path], 3, "has no tensors"),
        ([tmp_path, tmp_path], 3, ""),
    ]:
        command = tool.command("view", *arguments, "--no-open")
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        assert done.returncode == code, done.stderr
        assert words in done.stderr
        assert not done.stdout


def test_values_that_cannot_be_read_are_not_called_missing(tool: Binary, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(100, np.float32))
    os.truncate(tmp_path / "a.npy", 200)
    with served(tool, tmp_path) as page:
        info = page.ask("info")
        assert (info["verdict"]["kind"], info["verdict"]["status"]) == ("unreadable", "skip")
        assert info["n_problems"] > 0
