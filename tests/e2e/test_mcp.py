"""`opscope mcp`: a client that finds a fault through the five tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from agent import ONNX_CASES, Client, find_in_models
from binary import Binary
from faults import change_weight
from test_experiments import SOUND

MESSAGE_BYTES_MAX = 16 << 20
TOOLS = ["run", "verdict", "look", "why", "try"]
SHAPE = {"x": [1, 3, 8, 8]}


@pytest.fixture
def client(tool: Binary, tmp_path: Path) -> Iterator[Client]:
    client = Client(tool, tmp_path / "out")
    yield client
    assert client.end() == 0


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    """The faulty model and the sound one."""
    paths = [tmp_path / "faulty.onnx", tmp_path / "sound.onnx"]
    faulty = change_weight(SOUND, "conv2.weight", lambda weight: weight * 1.5)
    for path, model in zip(paths, [faulty, SOUND], strict=True):
        onnx.save(model, path)
    return [str(path) for path in paths]


def test_a_client_finds_a_fault(client: Client, models: list[str], tmp_path: Path) -> None:
    faulty, sound = models
    engine = {"engine": "tract"}
    started = client.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
    assert started["result"]["protocolVersion"] == "2025-06-18"
    assert started["result"]["serverInfo"]["name"] == "opscope"
    client.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    tools = client.request("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == TOOLS
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)

    dumped = client.tool("run", model=faulty, shape=SHAPE, **engine)
    assert dumped["operators_dumped"] == len(SOUND.graph.node)
    assert dumped["inputs"].startswith("random, of seed 0")
    assert Path(dumped["dump"]).is_relative_to(tmp_path / "out")

    verdict = client.tool("verdict", target=faulty, golden=sound, shape=SHAPE, **engine)
    assert (verdict["agree"], verdict["certainty"]) == (False, "measured")
    assert verdict["verdict"].startswith("FAIL: ")
    assert verdict["operator"] == {"op_name": "conv2", "op_type": "Conv", "slot": "input.1", "step": 0}
    assert verdict["id"] in verdict["next"]
    assert verdict["inputs"] == dumped["inputs"]

    dumps = verdict["dumps"]
    looked = client.tool("look", dump=dumps["target"], golden=dumps["golden"], operator="conv2", slot="output.0")
    assert looked["shape"] == [1, 8, 8, 8]
    assert len(looked["worst"]) == 5
    assert looked["slice"]["target"] != looked["slice"]["golden"]
    alone = client.tool("look", dump=dumped["dump"], operator="conv2", slot="output.0", at=[0, 7, 0, 7])
    assert alone["slice"]["from"] == [0, 7, 0, 0]
    assert alone["statistics"] == looked["statistics"]

    why = client.tool("why", verdict=verdict["id"])
    assert why["certainty"] == "proven"
    assert why["experiments"]["causes"] == ["conv2"]
    assert why["experiments"]["outcome"] == "proven"

    tried = client.tool("try", model=faulty, golden=sound, operators=["conv2"], shape=SHAPE, **engine)
    assert tried["changed"] == ["conv2"]
    for output in tried["outputs"]:
        assert output["rel_l2_to_golden_before"] > 0.01
        assert output["rel_l2_to_golden_after"] == 0
        assert output["after"] == output["golden"]
    rounded = client.tool("try", model=sound, round="bfloat16", operators=["fc"], shape=SHAPE, **engine)
    assert 0 < rounded["outputs"][0]["rel_l2_of_the_change"] < 0.1
    assert rounded["outputs"][1]["rel_l2_of_the_change"] == 0

    # Two dumps have a verdict too, and their models prove its cause.
    verdict = client.tool("verdict", **dumps)
    assert "inputs" not in verdict
    assert verdict["operator"]["op_name"] == "conv2"
    assert "golden_model" in client.tool("why", verdict=verdict["id"])["next"]
    why = client.tool("why", verdict=verdict["id"], model=faulty, golden_model=sound)
    assert why["certainty"] == "proven"
    equal = client.tool("verdict", target=dumps["golden"], golden=dumps["golden"])
    assert equal["agree"]
    assert "nothing to do" in client.tool("why", verdict=equal["id"])["next"]
    # Nothing is written next to the models.
    assert {path.name for path in tmp_path.iterdir()} == {"faulty.onnx", "sound.onnx", "out"}


@pytest.mark.sampled(0.2, each="network")
@pytest.mark.parametrize(("network", "fault"), ONNX_CASES)
def test_two_short_answers_prove_a_fault(client: Client, tmp_path: Path, network: str, fault: str) -> None:
    found = find_in_models(client, tmp_path, network, fault, engine="tract")
    assert (found.is_named, found.is_proven) == (True, True), found.text


def test_mistakes_have_a_cause_and_an_expectation(client: Client, models: list[str], tmp_path: Path) -> None:
    parse_error, invalid, no_method, params = -32700, -32600, -32601, -32602
    for line, code in [
        ("{", parse_error),
        ("[" * 1000 + "]" * 1000, parse_error),
        (" " * (MESSAGE_BYTES_MAX + 1), parse_error),
        ("[]", invalid),
        ('{"jsonrpc": "1.0", "id": 1, "method": "ping"}', invalid),
    ]:
        client.send(line)
        error = client.receive()["error"]
        assert error["code"] == code, error
        assert error["data"]["cause"] and error["data"]["expected"]
    calls = [
        ("resources/list", {}, no_method, "there is no method"),
        ("tools/call", {"name": "delete"}, params, "there is no tool"),
        ("tools/call", {"name": "run"}, params, "missing field `model`"),
        ("tools/call", {"name": "run", "arguments": {"model": "a.onnx", "out": "/"}}, params, "no argument `out`"),
        ("tools/call", {"name": "why", "arguments": {"verdict": 1}}, params, "`verdict` is of type integer"),
        ("tools/call", {"name": "look", "arguments": {"dump": "d", "operator": "o", "slot": "x"}}, params, "no slot"),
    ]
    for method, arguments, code, cause in calls:
        error = client.request(method, **arguments)["error"]
        assert (error["code"], cause in error["data"]["cause"]) == (code, True), error
    assert client.request("ping")["result"] == {}

    faulty, sound = models
    dump = client.tool("run", model=sound, shape=SHAPE)["dump"]
    failures = [
        ("run", {"model": str(tmp_path / "none.onnx")}, "none.onnx"),
        ("run", {"model": sound, "engine": "other"}, "invalid value 'other'"),
        ("run", {"model": sound, "shape": {"x": "wide"}}, "not a list of integers"),
        ("verdict", {"target": dump}, "`golden` is required"),
        ("look", {"dump": dump, "operator": "conv9", "slot": "output.0"}, "has no operator `conv9`"),
        ("look", {"dump": dump, "operator": "conv1", "slot": "output.3"}, "has no output.3"),
        ("look", {"dump": dump, "operator": "conv1", "slot": "output.0", "at": [9]}, "outside of the shape"),
        ("why", {"verdict": "v7"}, "there is no verdict `v7`"),
        ("try", {"model": faulty}, "one change is needed"),
        ("try", {"model": faulty, "golden": sound, "operators": ["conv1"]}, "`conv1` does not exist, or"),
        ("try", {"model": sound, "round": "int8", "operators": ["fc", "fc9"]}, "operator `fc9` does not exist"),
        ("verdict", {"target": sound}, "both sides are the same model"),
        ("run", {"model": sound, "inputs": str(tmp_path)}, "holds no `.npy` files"),
    ]
    for name, arguments, cause in failures:
        error = client.tool(name, is_error=True, **arguments)
        assert cause in error["error"], error
    assert "conv1" in client.tool("look", is_error=True, dump=dump, operator="conv9", slot="output.0")["next"]
