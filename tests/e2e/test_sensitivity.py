"""`opscope sensitivity` against a model with nodes that round, for each operator and dtype."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import transformer
from binary import TIMEOUT_SECONDS, Binary
from engines import ENGINES, ONNX_RUNTIME, TRACT, Engine
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quant_utils
from rounding import FORMATS, RoundedModel, constants_of, distance, nodes_of

ROOT = Path(__file__).resolve().parents[2]
# ONNX Runtime computes the same to the last bit. Where tract's last digits are others, a few elements near a tie are
# rounded the other way.
EXACT, NEAR = 1e-9, 0.08
# Distances below this are the last digits themselves.
LAST_DIGITS = 2e-6


@dataclass(frozen=True)
class Study:
    """A model and its samples."""

    name: str
    model: onnx.ModelProto
    samples: list[dict[str, NDArray]]
    engines: Sequence[Engine] = ENGINES

    def __str__(self) -> str:
        return self.name


def digits() -> Study:
    images = np.load(ROOT / "examples/digits/images.npy")
    samples = [{"image": images[i : i + 4]} for i in (0, 4, 8)]
    return Study("digits", onnx.load(ROOT / "examples/digits/digits_cnn.onnx"), samples)


def language_model() -> Study:
    ids = np.load(ROOT / "tests/models/char_lm.sample.npz")["in.ids"]
    return Study("char_lm", onnx.load(ROOT / "tests/models/char_lm.onnx"), [{"ids": ids}, {"ids": ids[:, ::-1].copy()}])


def transformer_blocks() -> Study:
    return Study("transformer", transformer.Transformer(is_fused=False).model(), [{"x": transformer.tokens()}])


def recurrent_branches() -> Study:
    """A GRU, a Scan and an If; the samples go through both branches. The operators of the Scan have no names."""
    random = np.random.default_rng(11)
    n_hidden, n_in = 6, 4

    def weight(name: str, *shape: int) -> TensorProto:
        return numpy_helper.from_array((random.normal(size=shape) / 2).astype(np.float32), name)

    def info(name: str, shape: Sequence[int | str] | None) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    weights = [
        weight("w", 1, 3 * n_hidden, n_in),
        weight("r", 1, 3 * n_hidden, n_hidden),
        weight("b", 1, 6 * n_hidden),
        weight("scale", n_hidden),
        numpy_helper.from_array(np.float32(0.0), "zero"),
        numpy_helper.from_array(np.zeros((1, n_hidden), np.float32), "start"),
        numpy_helper.from_array(np.int64([0, 1, 2]), "axes"),
        numpy_helper.from_array(np.int64([1]), "direction"),
    ]
    step = helper.make_graph(
        [
            helper.make_node("Mul", ["slice", "scale"], ["scaled"]),
            helper.make_node("Add", ["scaled", "state"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["next_state"]),
            helper.make_node("Identity", ["next_state"], ["stacked"]),
        ],
        "step",
        [info("state", [1, n_hidden]), info("slice", [1, n_hidden])],
        [info("next_state", [1, n_hidden]), info("stacked", [1, n_hidden])],
    )
    positive = helper.make_graph(
        [helper.make_node("Exp", ["means"], ["grown"], "grow"), helper.make_node("Sqrt", ["grown"], ["then"], "root")],
        "positive",
        [],
        [info("then", None)],
    )
    negative = helper.make_graph(
        [helper.make_node("Sigmoid", ["means"], ["else"], "squash")], "negative", [], [info("else", None)]
    )
    nodes = [
        helper.make_node("GRU", ["x", "w", "r", "b"], ["gru_all", "gru_last"], "gru", hidden_size=n_hidden),
        helper.make_node("Squeeze", ["gru_all", "direction"], ["steps"], "squeeze"),
        helper.make_node("Scan", ["start", "steps"], ["last", "states"], "scan", num_scan_inputs=1, body=step),
        helper.make_node("ReduceSum", ["states", "direction"], ["means"], "sum", keepdims=0),
        helper.make_node("ReduceSum", ["x", "axes"], ["total"], "total", keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["is_positive"], "compare"),
        helper.make_node("If", ["is_positive"], ["y"], "branch", then_branch=positive, else_branch=negative),
    ]
    graph = helper.make_graph(
        nodes, "recurrent", [info("x", [5, 1, n_in])], [info("y", None), info("last", [1, n_hidden])], weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    x = random.normal(size=(5, 1, n_in)).astype(np.float32)
    return Study("recurrent", model, [{"x": np.abs(x)}, {"x": -np.abs(x)}])


def loop() -> Study:
    x = np.random.default_rng(2).normal(size=(2, 3)).astype(np.float32)
    return Study("loop", onnx.load(ROOT / "tests/models/loop.onnx"), [{"x": x}], [ONNX_RUNTIME])


STUDIES = {make.__name__: cache(make) for make in (digits, language_model, transformer_blocks, recurrent_branches, loop)}
RUNS = [(name, engine) for name, make in STUDIES.items() for engine in make().engines]


@cache
def reference(name: str) -> RoundedModel:
    study = STUDIES[name]()
    model = onnx.ModelProto()
    model.CopyFrom(study.model)
    return RoundedModel.of_model(model, study.samples)


def save(study: Study, folder: Path) -> list[object]:
    """The arguments for the model and all its samples."""
    onnx.save(study.model, folder / "model.onnx")
    (folder / "samples").mkdir(exist_ok=True)
    for i, sample in enumerate(study.samples):
        np.savez(folder / "samples" / f"{i}.npz", **sample)
    return [folder / "model.onnx", "--inputs", folder / "samples"]


def run(engine: Engine, *arguments: object, codes: Sequence[int] = (0,)) -> subprocess.CompletedProcess[str]:
    command = Binary.from_environment().command("sensitivity", *engine.options, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    assert done.returncode in codes, f"{done.returncode} from {command}\n{done.stderr}"
    return done


def measure(engine: Engine, *arguments: object) -> dict[str, Any]:
    return json.loads(run(engine, *arguments, "--json", "-").stdout)


def tolerance(engine: Engine) -> tuple[float, float]:
    """Relative and absolute."""
    return (EXACT, 0.0) if engine.is_reference else (NEAR, LAST_DIGITS)


def near(found: float, expected: float, engine: Engine) -> bool:
    relative, absolute = tolerance(engine)
    return found == expected or abs(found - expected) <= relative * abs(expected) + absolute


@pytest.mark.sampled(0.35, each="dtype")
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("name", "engine"), RUNS, ids=lambda value: str(value))
def test_distances_are_those_of_a_model_that_rounds(name: str, engine: Engine, dtype: str, tmp_path: Path) -> None:
    study, rounded = STUDIES[name](), reference(name)
    (found,) = measure(engine, *save(study, tmp_path), "--as", dtype)["dtypes"]
    golden = rounded.outputs(dtype, (), study.samples)
    assert [entry["task_id"] for entry in found["ranking"]] != []
    assert {entry["task_id"] for entry in found["ranking"]} == set(rounded.floats)
    expected = {
        number: distance(rounded.outputs(dtype, [number], study.samples), golden) for number in rounded.floats
    }
    for entry in found["ranking"]:
        number, rel_l2 = entry["task_id"], entry["distance"]["rel_l2"]
        assert near(rel_l2, expected[number], engine), (entry["name"], rel_l2, expected[number])
    ranked = [entry["distance"]["rel_l2"] for entry in found["ranking"]]
    assert ranked == sorted(ranked, reverse=True)
    together = distance(rounded.outputs(dtype, rounded.floats, study.samples), golden)
    assert near(found["together"]["rel_l2"], together, engine)
    assert together > 0


@pytest.mark.sampled(0.3, each="share")
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize(("name", "engine"), RUNS, ids=lambda value: str(value))
def test_a_choice_meets_its_limit(name: str, engine: Engine, dtype: str, share: float, tmp_path: Path) -> None:
    """The limit is a share of what rounding everything does."""
    study, rounded = STUDIES[name](), reference(name)
    golden = rounded.outputs(dtype, (), study.samples)
    together = distance(rounded.outputs(dtype, rounded.floats, study.samples), golden)
    # Above what the engine's last digits may do to the whole.
    limit = together * share * (1 + 2 * tolerance(engine)[0])
    arguments = [*save(study, tmp_path), "--as", dtype, "--limit", limit, "--json", tmp_path / "result.json"]
    done = run(engine, *arguments, codes=(0, 1))
    (found,) = json.loads((tmp_path / "result.json").read_text())["dtypes"]
    choice = found["choice"]
    kept = [entry["task_id"] for entry in choice["kept"]]
    assert done.returncode == (1 if len(kept) == len(rounded.floats) else 0), done.stderr
    assert choice["is_within"]
    assert choice["distance"]["rel_l2"] <= limit
    others = set(rounded.floats) - set(kept)
    checked = distance(rounded.outputs(dtype, others, study.samples), golden)
    assert near(choice["distance"]["rel_l2"], checked, engine)
    assert (kept == []) == (share == 1.0)
    if engine.is_reference:
        assert checked <= limit


def test_a_limit_of_nothing_keeps_what_matters(tmp_path: Path) -> None:
    """A limit of 0 keeps every operator that changes anything, and no other."""
    study, rounded = STUDIES["language_model"](), reference("language_model")
    golden = rounded.outputs("bfloat16", (), study.samples)
    (found,) = measure(ONNX_RUNTIME, *save(study, tmp_path), "--as", "bfloat16", "--limit", "0")["dtypes"]
    kept = {entry["task_id"] for entry in found["choice"]["kept"]}
    alone = {number: distance(rounded.outputs("bfloat16", [number], study.samples), golden) for number in rounded.floats}
    assert {number for number, value in alone.items() if value > 0} <= kept
    assert found["choice"]["distance"]["rel_l2"] == 0
    others = set(rounded.floats) - kept
    assert others
    assert distance(rounded.outputs("bfloat16", others, study.samples), golden) == 0


def test_what_overflows_is_kept(tmp_path: Path) -> None:
    """Masks of -1e9 are infinite in float16, which no output shows."""
    study, rounded = STUDIES["language_model"](), reference("language_model")
    (found,) = measure(ONNX_RUNTIME, *save(study, tmp_path), "--limit", "1")["dtypes"]
    model = onnx.ModelProto()
    model.CopyFrom(study.model)
    nodes = dict(enumerate(model.graph.node))
    first = {number: nodes[number].output[0] for number in rounded.floats}
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in first.values())
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    large = set()
    for sample in study.samples:
        values = session.run(list(first.values()), sample)
        large |= {number for number, value in zip(first, values, strict=True) if np.abs(value).max() >= 65520}
    for name, array in constants_of(study.model.graph).items():
        if array.size and np.abs(array).max() >= 65520:
            large |= {number for number in rounded.floats if name in nodes[number].input}
    assert large
    assert {entry["task_id"] for entry in found["choice"]["kept"]} == large
    assert {entry["task_id"] for entry in found["ranking"] if entry["overflows"]} == large


def test_weights_are_rounded_as_the_quantizer_does(tmp_path: Path) -> None:
    """Codes and scales of ONNX Runtime's quantizer, for each output channel, against the outputs of one operator."""
    random = np.random.default_rng(5)
    # Channels of very different sizes, which one scale for all would lose.
    weight = (random.normal(size=(16, 8)) * 10.0 ** np.arange(-4, 4)).astype(np.float32)
    bias = random.normal(size=8).astype(np.float32)
    x = np.eye(16, dtype=np.float32)
    info = helper.make_tensor_value_info
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Gemm", ["x", "w", "b"], ["y"], "gemm"), helper.make_node("Shape", ["y"], ["n"], "shape")],
            "weights",
            [info("x", TensorProto.FLOAT, [16, 16])],
            [info("y", TensorProto.FLOAT, [16, 8]), info("n", TensorProto.INT64, [2])],
            [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    quantized = np.empty_like(weight)
    for channel in range(8):
        column = weight[:, channel].copy()
        _, scale, codes = quant_utils.quantize_data(column, TensorProto.INT8, True)
        quantized[:, channel] = codes.astype(np.float32) * np.float32(scale)
    expected = {}
    for dtype, rounded, added in (
        ("int8", quantized, bias),
        ("float16", weight.astype(np.float16).astype(np.float32), bias.astype(np.float16).astype(np.float32)),
    ):
        y = rounded + added
        if dtype == "int8":
            step = np.abs(y).max() / np.float32(127)
            y = np.round(y / step) * step
        else:
            y = y.astype(np.float16).astype(np.float32)
        golden = weight + bias
        expected[dtype] = float(np.linalg.norm((y - golden).astype(np.float64)) / np.linalg.norm(golden.astype(np.float64)))
    study = Study("weights", model, [{"x": x}])
    for engine in ENGINES:
        for one in measure(engine, *save(study, tmp_path), "--as", "int8,float16")["dtypes"]:
            found = one["ranking"][0]["distance"]["rel_l2"]
            assert abs(found - expected[one["dtype"]]) < 1e-5 * found, (engine, one["dtype"], found, expected)


def test_lists_are_those_that_converters_take(tmp_path: Path) -> None:
    """The names of the operators that are kept, in file order, in each form."""
    study = STUDIES["transformer_blocks"]()
    arguments = [*save(study, tmp_path), "--as", "int8,bfloat16", "--limit", "rel_l2=0.004"]
    files = {}
    for form in ("lines", "json", "tensorrt"):
        pattern = tmp_path / f"{form}.{{dtype}}.txt"
        document = tmp_path / f"{form}.json"
        run(TRACT, *arguments, "--list-as", form, "--keep-list", pattern, "--json", document, codes=(0, 1))
        for one in json.loads(document.read_text())["dtypes"]:
            kept = sorted(one["choice"]["kept"], key=lambda entry: entry["task_id"])
            text = Path(str(pattern).replace("{dtype}", one["dtype"])).read_text()
            files[form, one["dtype"]] = ([entry["name"] for entry in kept], text)
    assert any(names for names, _ in files.values())
    for (form, _), (names, text) in files.items():
        if form == "lines":
            assert text.splitlines() == names
        elif form == "json":
            assert json.loads(text) == names
        else:
            assert text == ",".join(f"{name}:fp32" for name in names) + "\n"


def test_operators_without_names_are_told(tmp_path: Path) -> None:
    """Nothing is put into a list that the file does not call so."""
    study = STUDIES["recurrent_branches"]()
    arguments = [*save(study, tmp_path), "--as", "int8", "--limit", "0", "--keep-list", tmp_path / "keep.txt"]
    done = run(ONNX_RUNTIME, *arguments, "--json", tmp_path / "result.json", codes=(0, 1))
    (found,) = json.loads((tmp_path / "result.json").read_text())["dtypes"]
    named = {node.name for node in nodes_of(study.model.graph) if node.name}
    listed = (tmp_path / "keep.txt").read_text().splitlines()
    assert set(listed) <= named
    unnamed = [entry for entry in found["choice"]["kept"] if not entry["is_named"]]
    assert unnamed
    assert {entry["name"] for entry in unnamed} <= {"scaled", "sum", "next_state", "stacked"}
    assert "without a name in the model" in done.stderr
    assert all(f"`{entry['name']}`" in done.stderr for entry in unnamed)


def test_overflow_comes_first(tmp_path: Path) -> None:
    """Beyond 65504 float16 is infinite; bfloat16 is not."""
    nodes = [
        helper.make_node("Mul", ["x", "many"], ["large"], "grow"),
        helper.make_node("Div", ["large", "many"], ["y"], "shrink"),
        helper.make_node("Cast", ["y"], ["n"], "whole", to=TensorProto.INT64),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "overflow",
        [info("x", TensorProto.FLOAT, [3])],
        [info("y", TensorProto.FLOAT, [3]), info("n", TensorProto.INT64, [3])],
        [numpy_helper.from_array(np.float32(1e5), "many")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    study = Study("overflow", model, [{"x": np.float32([0.7, 1.5, -2.0])}])
    for engine in ENGINES:
        result = measure(engine, *save(study, tmp_path), "--as", "float16,bfloat16")
        half, brain = result["dtypes"]
        first = half["ranking"][0]
        assert (first["name"], first["distance"]["rel_l2"]) == ("grow", "inf")
        assert first["distance"]["outputs"][0]["n_non_finite"] == 3
        assert all(isinstance(entry["distance"]["rel_l2"], float) for entry in brain["ranking"])
        assert [entry["name"] for entry in result["without_float_results"]] == ["whole"]
        assert "NaN or infinities in the outputs" in run(engine, *save(study, tmp_path)).stdout


def test_the_table_has_every_operator(tmp_path: Path) -> None:
    study = STUDIES["recurrent_branches"]()
    one_branch = Study("one branch", study.model, study.samples[:1])
    path = tmp_path / "ranking.csv"
    done = run(ONNX_RUNTIME, *save(one_branch, tmp_path), "--csv", path, "--top", "3")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    nodes = [node for node in nodes_of(study.model.graph)]
    assert sorted(int(row["task_id"]) for row in rows) == list(range(len(nodes)))
    states = {row["operator"]: row["state"] for row in rows}
    assert (states["squash"], states["compare"], states["gru"]) == ("not run", "no float results", "rounded")
    positions = [int(row["position"]) for row in rows if row["state"] == "rounded"]
    assert positions == list(range(1, len(positions) + 1))
    assert f"{len(positions) - 3} operators more; `--top 0` shows all" in done.stdout
    assert "not rounded: 1 operator without float results, 1 operator that did not run" in done.stdout


def test_mistakes(tmp_path: Path) -> None:
    model, *samples = save(STUDIES["digits"](), tmp_path)
    taken = tmp_path / "taken.json"
    taken.write_text("")
    for arguments, code, said in (
        ([model, "--as", "float4"], 2, "possible values: float16, bfloat16, float8_e4m3, int8"),
        ([model, "--limit", "cosine=1"], 2, "the metric is rel_l2, not `cosine`"),
        ([model, "--keep-list", tmp_path / "k"], 2, "--limit"),
        (
            [model, "--as", "int8,float16", "--limit", "1", "--keep-list", tmp_path / "k"],
            2,
            "expected a name with `{dtype}` in it",
        ),
        ([model, "--json", taken], 2, "`--force` replaces it"),
        ([model, "--csv", "-"], 2, "only `--json` can be written to standard output"),
        ([taken], 3, "is not a usable ONNX model"),
    ):
        done = run(TRACT, *arguments, *samples, codes=[code])
        assert said in done.stderr, done.stderr
        assert done.stdout == ""
    done = run(TRACT, model, "--shape", "image:1,1,8,8")
    assert "no inputs given: using random ones (seed 0)" in done.stderr


def test_an_interrupted_study_leaves_no_file(tmp_path: Path) -> None:
    arguments = [*save(STUDIES["language_model"](), tmp_path), "--steps", "4000", "--csv", tmp_path / "ranking.csv"]
    command = Binary.from_environment().command("sensitivity", *TRACT.options, *arguments)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Printed when signals are handled, before the first of many runs.
    line = process.stderr.readline()
    assert "engine" in line
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            continue
    stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (stdout, process.returncode) == ("", 130), stderr
    assert not (tmp_path / "ranking.csv").exists()
