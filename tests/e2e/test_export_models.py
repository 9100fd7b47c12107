"""Models and node data with the result of a comparison, for Netron and Model Explorer."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from binary import TIMEOUT_SECONDS, Binary
from faults import change_weight
from test_experiments import SOUND

OUTPUTS_DIFFER = 1
USAGE = 2
FAULTY = change_weight(SOUND, "conv2.weight", lambda weight: weight * 1.5)


def run(tool: Binary, *words: object) -> subprocess.CompletedProcess[str]:
    command = tool.command(*words)
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The faulty model, with its weights in a file next to it, and the sound one."""
    folder = tmp_path_factory.mktemp("models")
    paths = [folder / "faulty.onnx", folder / "sound.onnx"]
    faulty = onnx.ModelProto()
    faulty.CopyFrom(FAULTY)
    onnx.save(faulty, paths[0], save_as_external_data=True, location="faulty.bin", size_threshold=0)
    onnx.save(SOUND, paths[1])
    return paths


def notes(properties: object) -> dict[str, str]:
    return {entry.key: entry.value for entry in properties}


def outputs(path: Path) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(3).normal(size=(2, 3, 8, 8)).astype(np.float32)
    return session.run(None, {"x": x})


def check_noted(noted: Path, original: Path) -> onnx.ModelProto:
    """The model with notes is valid, computes the same, and differs by its notes alone."""
    onnx.checker.check_model(noted)
    for before, after in zip(outputs(original), outputs(noted), strict=True):
        np.testing.assert_array_equal(before, after)
    model, plain = (onnx.load(path, load_external_data=False) for path in (noted, original))
    stripped = onnx.ModelProto()
    stripped.CopyFrom(model)
    for properties in [stripped.metadata_props, *(node.metadata_props for node in stripped.graph.node)]:
        kept = [entry for entry in properties if not entry.key.startswith("opscope.")]
        del properties[:]
        properties.extend(kept)
    assert stripped == plain
    return model


def test_a_model_gets_the_result_of_its_operators(tool: Binary, models: list[Path]) -> None:
    faulty, sound = models
    noted = faulty.parent / "noted.onnx"
    done = run(tool, "diff", faulty, sound, "--seed", 1, "--shape", "x:1,3,8,8", "--export-onnx", noted)
    assert done.returncode == OUTPUTS_DIFFER, done.stderr
    assert stat.S_IMODE(noted.stat().st_mode) == 0o600
    model = check_noted(noted, faulty)
    about = notes(model.metadata_props)
    assert about["opscope.verdict"].startswith("FAIL: ")
    assert about["opscope.certainty"] == "proven"
    by_name = {node.name: notes(node.metadata_props) for node in model.graph.node}
    assert by_name["conv1"]["opscope.level"] == "pass"
    assert by_name["conv2"]["opscope.level"] == "fail"
    assert by_name["conv2"]["opscope.verdict"] == about["opscope.verdict"]
    assert float(by_name["conv2"]["opscope.rel_l2"]) > 0.1
    assert by_name["fc"]["opscope.cause"] == "inherited"
    assert by_name["fc"]["opscope.golden"] == "fc"
    # A second export replaces the notes of the first, and no file without `--force`.
    again = run(tool, "diff", noted, sound, "--seed", 1, "--shape", "x:1,3,8,8", "--export-onnx", noted)
    assert (again.returncode, "exists already" in again.stderr) == (USAGE, True)
    run(tool, "diff", noted, sound, "--seed", 1, "--shape", "x:1,3,8,8", "--export-onnx", noted, "--force")
    assert len(check_noted(noted, faulty).metadata_props) == len(model.metadata_props)


def test_dumps_find_their_models(tool: Binary, models: list[Path], tmp_path: Path) -> None:
    faulty, sound = models
    dumps = [tmp_path / "target", tmp_path / "golden"]
    for model, dump in zip(models, dumps, strict=True):
        tool.run("dump", model, "--seed", 1, "--shape", "x:1,3,8,8", "--out", dump)
    result, nodes, noted = (tmp_path / name for name in ("r.json", "nodes.json", "noted.onnx"))
    words = ["--json", result, "--export-model-explorer", nodes, "--export-onnx", noted, "--model", faulty]
    done = run(tool, "compare", *dumps, *words)
    assert done.returncode == OUTPUTS_DIFFER, done.stderr
    # The model alone requests no experiments.
    assert "experiments" not in json.loads(result.read_text())
    assert notes(onnx.load(noted, load_external_data=False).metadata_props)["opscope.target"] == str(dumps[0])
    (graph,) = json.loads(nodes.read_text()).items()
    assert graph[0] == "net"
    results = graph[1]["results"]
    assert set(results) == {node.name for node in SOUND.graph.node}
    assert results["conv1"]["value"] == 0
    assert results["conv2"]["value"] > 0.1
    assert len({results[name]["bgColor"] for name in ("conv1", "conv2", "fc")}) == 3
    # A saved result has the same operators, and standard output takes node data.
    saved = run(tool, "compare", "--from", result, "--model", faulty, "--export-model-explorer", "-")
    assert json.loads(saved.stdout) == json.loads(nodes.read_text())
    saved = run(tool, "compare", "--from", result, "--golden-model", sound, "--export-onnx", tmp_path / "g.onnx")
    assert saved.returncode == OUTPUTS_DIFFER, saved.stderr
    check_noted(tmp_path / "g.onnx", sound)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--export-onnx", "-"], "can be written to standard output"),
        (["--export-onnx", "noted.onnx"], "is neither in the working directory nor next to the dump"),
        (["--export-onnx", "noted.onnx", "--model", "{dump}/run.json"], "is not the model of the dump"),
    ],
)
def test_refusals(tool: Binary, models: list[Path], tmp_path: Path, words: list[str], message: str) -> None:
    dump = tmp_path / "dump"
    tool.run("dump", models[1], "--seed", 1, "--shape", "x:1,3,8,8", "--out", dump)
    (record,) = dump.rglob("run.json")
    words = [word.replace("{dump}/run.json", str(record)) for word in words]
    done = run(tool, "compare", dump, dump, *words)
    assert done.returncode == USAGE
    assert message in done.stderr
