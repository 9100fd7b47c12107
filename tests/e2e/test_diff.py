"""`opscope diff`: one command says what two dumps and a comparison of them say."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faults
import numpy as np
import onnx
import pytest
import sampling
from binary import TIMEOUT_SECONDS, Binary, input_options
from cases import CASES
from comparing import FAILED, PARTIAL, PASSED, compare
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper
from test_compare_faults import WRONG_OPERATORS, a_tenth_less, one_element

USAGE, UNREADABLE = 2, 3
CASES_BY_NAME = {str(case): case for case in CASES}
# Weights of each model that get a fault, spread over all of them.
N_WEIGHTS = 4


def run_diff(opscope: Binary, *args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    engine = opscope.engine.options if opscope.engine else []
    command = [str(part) for part in (opscope.path, "diff", *engine, *args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)


def diff(opscope: Binary, *args: object) -> dict[str, Any]:
    # What is inside counts as well, as in `comparing.compare`.
    done = run_diff(opscope, *args, "--json", "-", "--strict", "--no-experiments")
    assert done.returncode in (PASSED, FAILED, PARTIAL), done.stderr
    return {"code": done.returncode, **json.loads(done.stdout)}


def without_places(document: dict[str, Any]) -> dict[str, Any]:
    """A result without what says where its dumps were, and without the files that have no place in memory."""
    text = json.dumps({key: value for key, value in document.items() if key not in ("config", "passed_over")})

    def drop_path(record: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in record.items() if key != "path"}

    return json.loads(text, object_hook=drop_path)


def native_dump(opscope: Binary, model: Path, out: Path, options: list[object]) -> Path:
    opscope.dump(model, "--out", out, *options)
    return out


def float_weights(model: ModelProto) -> list[str]:
    kinds = (TensorProto.FLOAT, TensorProto.FLOAT16)
    names = [w.name for w in model.graph.initializer if w.data_type in kinds and np.prod(w.dims) > 1]
    return names[:: max(1, len(names) // N_WEIGHTS)][:N_WEIGHTS]


def planted(name: str, model: ModelProto) -> Iterator[tuple[str, ModelProto]]:
    """Faults in weights and in operators."""
    for weight in float_weights(model):
        yield f"{weight} one element", faults.change_weight(model, weight, one_element)
        yield f"{weight} a tenth less", faults.change_weight(model, weight, a_tenth_less)
    for of, wrong, plant in WRONG_OPERATORS:
        if of == name:
            yield wrong, plant(model, wrong)


@pytest.mark.parametrize("name", ["digits_cnn", "resnet18", "transformer", "shapes_cnn_f16", "shapes_cnn_qdq_int8"])
def test_faults_are_told_as_by_two_dumps(opscope: Binary, generated: Path, tmp_path: Path, name: str) -> None:
    case = CASES_BY_NAME[name]
    sound = onnx.load(case.model_path(generated))
    options = input_options(case.load_inputs(generated), tmp_path / "inputs")
    (tmp_path / "golden").mkdir()
    golden = tmp_path / "golden/net.onnx"
    onnx.save(sound, golden)
    golden_dump = native_dump(opscope, golden, tmp_path / "golden-dump", options)
    faulty = list(planted(name, sound))
    assert len(faulty) > 7
    drawn = sampling.sample(faulty, 0.25, lambda fault: f"{name}: {fault[0]}")
    for number, (fault, model) in enumerate([("none", sound), *drawn]):
        target = tmp_path / str(number) / "net.onnx"
        target.parent.mkdir()
        onnx.save(model, target)
        target_dump = native_dump(opscope, target, target.parent / "dump", options)
        expected = compare(opscope, target_dump, golden_dump)
        assert (expected.code == PASSED) == (fault == "none"), fault
        # In memory, and with no memory at all.
        for memory in ([], ["--memory", 0]):
            found = diff(opscope, target, golden, *options, *memory)
            assert found.pop("code") == expected.code, fault
            assert without_places(found) == without_places(expected.document), fault


def test_the_first_difference_ends_the_run(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    """The same operator is named, and what ran behind it is no part of the result."""
    case = CASES_BY_NAME["resnet18"]
    sound = onnx.load(case.model_path(generated))
    options = input_options(case.load_inputs(generated), tmp_path / "inputs")
    paths = [tmp_path / "target.onnx", tmp_path / "golden.onnx"]
    onnx.save(faults.replace_type(sound, "/relu/Relu", "LeakyRelu", alpha=0.2), paths[0])
    onnx.save(sound, paths[1])
    whole = diff(opscope, *paths, *options)
    results = []
    for more in ([], ["--memory", 0], ["--save", tmp_path / "kept"]):
        first = diff(opscope, *paths, *options, "--first", *more)
        results.append(without_places(first))
        assert first["code"] == FAILED
        names = [operator["target"][0]["op_name"] for operator in first["operators"]]
        assert names == ["/conv1/Conv", "/relu/Relu"], names
        assert first["summary"]["first_failure"] == whole["summary"]["first_failure"]
        assert first["skips"] == []
    assert results[0] == results[1] == results[2]


def test_a_difference_that_is_excused_does_not_end_the_run(opscope: Binary, tmp_path: Path) -> None:
    """Two sums whose terms cancel are far apart, and no fault: the target runs to its end."""
    bulk = np.full(64, 1e6, np.float32)
    model = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("Mul", ["x", "one"], ["scaled"], "scale"),
                helper.make_node("Sub", ["scaled", "bulk"], ["rest"], "subtract"),
                helper.make_node("Neg", ["rest"], ["y"], "negate"),
            ],
            "cancelling",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64])],
            [numpy_helper.from_array(bulk, "bulk"), numpy_helper.from_array(np.float32(1), "one")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=10,
    )
    paths = [tmp_path / "target.onnx", tmp_path / "golden.onnx"]
    onnx.save(model, paths[1])
    onnx.save(faults.change_weight(model, "one", lambda one: np.nextafter(one, np.float32(2))), paths[0])
    np.save(tmp_path / "x.npy", bulk + np.linspace(0, 4, 64, dtype=np.float32))
    options = ["--input", f"x={tmp_path / 'x.npy'}"]
    whole = diff(opscope, *paths, *options)
    first = diff(opscope, *paths, *options, "--first")
    assert len(first["operators"]) == len(whole["operators"]) == 3
    assert without_places(first) == without_places(whole)


def test_both_dumps_are_kept_and_say_the_same(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    case = CASES_BY_NAME["digits_cnn"]
    sound = onnx.load(case.model_path(generated))
    options = input_options(case.load_inputs(generated), tmp_path / "inputs")
    paths = [tmp_path / "target.onnx", tmp_path / "golden.onnx"]
    onnx.save(faults.change_weight(sound, "fc.weight", one_element), paths[0])
    onnx.save(sound, paths[1])
    kept = tmp_path / "kept"
    found = diff(opscope, *paths, *options, "--save", kept)
    assert (kept / "target").stat().st_mode & 0o777 == 0o700
    again = compare(opscope, kept / "target", kept / "golden")
    assert without_places(again.document) | {"code": again.code} == without_places(found)
    held = diff(opscope, *paths, *options)
    assert without_places(held) == without_places(found)
    # Nothing is written into the dumps of another comparison.
    refused = run_diff(opscope, *paths, *options, "--save", kept)
    assert (refused.returncode, "exists already" in refused.stderr) == (USAGE, True)
    # A page holds elements, so that it needs the dumps for a while, and leaves none behind.
    page = tmp_path / "page.html"
    done = run_diff(opscope, *paths, *options, "--html", page)
    assert done.returncode == FAILED
    assert "content-security-policy" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600


def test_a_model_beside_a_dump_gets_the_inputs_of_the_dump(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    case = CASES_BY_NAME["digits_cnn"]
    sound = onnx.load(case.model_path(generated))
    options = input_options(case.load_inputs(generated), tmp_path / "inputs")
    paths = [tmp_path / "target.onnx", tmp_path / "golden.onnx"]
    onnx.save(faults.change_weight(sound, "conv2.weight", one_element), paths[0])
    onnx.save(sound, paths[1])
    dumps = [native_dump(opscope, path, tmp_path / path.stem, options) for path in paths]
    expected = compare(opscope, *dumps)
    for sides in ([paths[0], dumps[1]], [dumps[0], paths[1]]):
        found = diff(opscope, *sides)
        assert without_places(found) == without_places(expected.document) | {"code": expected.code}
    # A dump of statistics has no inputs to give.
    table = tmp_path / "statistics"
    config = {"dump": {"dump_path": str(table), "dump_list": [{"model_name": "golden"}], "dump_mode": "all", "dump_data": "stats"}}
    table.mkdir()
    (tmp_path / "acl.json").write_text(json.dumps(config))
    opscope.dump(paths[1], "--config", tmp_path / "acl.json", *options)
    refused = run_diff(opscope, paths[0], table)
    assert refused.returncode == USAGE, refused.stderr
    assert "input `image`" in refused.stderr
    assert "--input" in refused.stderr


def test_steps_and_sets_of_inputs(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    case = CASES_BY_NAME["digits_cnn"]
    sound = onnx.load(case.model_path(generated))
    (image,) = case.load_inputs(generated).values()
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for step in range(3):
        np.savez(inputs / f"{step}.npz", image=image * np.float32(step + 1))
    paths = [tmp_path / "target.onnx", tmp_path / "golden.onnx"]
    onnx.save(faults.change_weight(sound, "fc.weight", one_element), paths[0])
    onnx.save(sound, paths[1])
    found = diff(opscope, *paths, "--inputs", inputs)
    steps = [operator["target"][0]["step"] for operator in found["operators"]]
    assert steps == [step for step in range(3) for _ in range(9)]
    some = diff(opscope, *paths, "--inputs", inputs, "--steps", "1-2")
    assert {operator["target"][0]["step"] for operator in some["operators"]} == {1, 2}

    # Where elements differ, and how, is looked for in the first operator of a result alone.
    def numbers(operator: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**slot, "differing": None, "change": None} for slot in operator["slots"]]

    assert list(map(numbers, some["operators"])) == list(map(numbers, found["operators"][9:]))


def random_inputs(opscope: Binary, *args: object) -> str:
    done = run_diff(opscope, *args)
    (line,) = (line for line in done.stderr.splitlines() if "inputs: random" in line)
    return line


def test_inputs_that_nobody_gives_are_told(opscope: Binary, tmp_path: Path) -> None:
    model = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("GlobalAveragePool", ["image"], ["pooled"], "pool"),
                helper.make_node("Add", ["pooled", "bias"], ["y"], "add"),
            ],
            "open",
            [
                helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, "H", "W"]),
                helper.make_tensor_value_info("bias", TensorProto.FLOAT, [1]),
            ],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=10,
    )
    paths = [tmp_path / "target.onnx", tmp_path / "golden.onnx"]
    for path in paths:
        onnx.save(model, path)
    line = random_inputs(opscope, *paths)
    assert "`image` float32 [1,3,224,224] for [N,3,H,W], `bias` float32 [1]" in line
    # What is given is not made up.
    line = random_inputs(opscope, *paths, "--shape", "image:2,3,8,8")
    assert "`image` float32 [2,3,8,8], `bias`" in line
    refused = run_diff(opscope, *paths, "--shape", "picture:2")
    assert refused.returncode == USAGE


def two_inputs(names: list[str], dtypes: list[int]) -> ModelProto:
    float_names = [name if dtype == TensorProto.FLOAT else f"{name}32" for name, dtype in zip(names, dtypes, strict=True)]
    casts = [
        helper.make_node("Cast", [name], [wide], f"widen_{i}", to=TensorProto.FLOAT)
        for i, (name, wide) in enumerate(zip(names, float_names, strict=True))
        if name != wide
    ]
    return helper.make_model(
        helper.make_graph(
            [*casts, helper.make_node("Sub", float_names, ["y"], "subtract")],
            "two",
            [helper.make_tensor_value_info(name, dtype, [4]) for name, dtype in zip(names, dtypes, strict=True)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=10,
    )


def test_both_models_get_the_same_values(opscope: Binary, tmp_path: Path) -> None:
    float32, float16 = TensorProto.FLOAT, TensorProto.FLOAT16
    paths = [tmp_path / "target.onnx", tmp_path / "golden.onnx"]
    cases = [
        (["a", "b"], [float32, float32], ["x", "y0"], [float32, float32], "other names"),
        # Values of the narrow dtype are in the wide one, whichever side has it.
        (["a", "b"], [float16, float32], ["a", "b"], [float32, float32], None),
        (["a", "b"], [float32, float32], ["a", "b"], [float16, float32], None),
        (["a", "b"], [float16, float16], ["b", "a"], [float16, float16], None),
    ]
    for target_names, target_dtypes, golden_names, golden_dtypes, told in cases:
        golden = two_inputs(golden_names, golden_dtypes)
        if golden_names == target_names[::-1]:
            # The same difference, though the inputs are declared in another order.
            subtract = golden.graph.node[-1]
            subtract.input[:] = [subtract.input[1], subtract.input[0]]
        onnx.save(two_inputs(target_names, target_dtypes), paths[0])
        onnx.save(golden, paths[1])
        done = run_diff(opscope, *paths, "--seed", 5, "--json", "-")
        (subtract,) = (o for o in json.loads(done.stdout)["operators"] if o["target"][0]["op_type"] == "Sub")
        assert subtract["level"] == "pass", done.stdout
        assert all(slot["metrics"]["max_abs"] == 0 for slot in subtract["slots"]), subtract
        assert (told is None) == ("warning" not in done.stderr), done.stderr
    onnx.save(two_inputs(["a", "b"], [float16, float32]), paths[0])
    onnx.save(two_inputs(["a", "b"], [float32, float16]), paths[1])
    refused = run_diff(opscope, *paths)
    assert (refused.returncode, "`b` is float32 in the target" in refused.stderr) == (USAGE, True)


def test_sides_that_cannot_be(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    model = CASES_BY_NAME["digits_cnn"].model_path(generated)
    same = run_diff(opscope, model)
    assert (same.returncode, "same model, run in the same way" in same.stderr) == (USAGE, True)
    missing = run_diff(opscope, model, tmp_path / "no.onnx")
    assert (missing.returncode, "no.onnx" in missing.stderr) == (UNREADABLE, True)
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(b"no model")
    assert run_diff(opscope, model, damaged).returncode == UNREADABLE
    (tmp_path / "empty").mkdir()
    assert run_diff(opscope, model, tmp_path / "empty").returncode in (USAGE, UNREADABLE)
    assert run_diff(opscope, tmp_path / "empty").returncode == USAGE


def test_one_model_in_two_engines(opscope: Binary, generated: Path) -> None:
    """Engines round otherwise, and neither is wrong."""
    from engines import library_path

    model = CASES_BY_NAME["digits_cnn"].model_path(generated)
    done = subprocess.run(
        [opscope.path, "diff", model, "--engine", "tract", "--golden-engine", "onnxruntime", "--golden-engine-lib",
         library_path(), "--json", "-"],
        capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert (done.returncode, document["summary"]["level"]) == (PASSED, "pass")
    assert document["config"]["target"].endswith("[tract]")
    assert document["config"]["golden"].endswith("[ONNX Runtime]")


def half_precision(factor: float) -> ModelProto:
    float16 = TensorProto.FLOAT16
    rng = np.random.default_rng(0)
    weights = {"weight": rng.normal(size=(8, 8)), "factor": np.array(factor), "mask": np.full(8, -65504.0)}
    return helper.make_model(
        helper.make_graph(
            [
                helper.make_node("MatMul", ["x", "weight"], ["product"], "multiply"),
                helper.make_node("Mul", ["product", "factor"], ["scaled"], "scale"),
                helper.make_node("Cast", ["scaled"], ["cast"], "cast", to=float16),
                helper.make_node("Max", ["cast", "mask"], ["y"], "mask"),
            ],
            "half",
            [helper.make_tensor_value_info("x", float16, [4, 8])],
            [helper.make_tensor_value_info("y", float16, [4, 8])],
            [numpy_helper.from_array(value.astype(np.float16), name) for name, value in weights.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=10,
    )


def test_rounding_is_told_from_faults(opscope: Binary, tmp_path: Path) -> None:
    """In float32 a model shows what its float16 costs: rounding passes, an overflow does not."""
    path, x = tmp_path / "half.onnx", np.random.default_rng(1).normal(size=(4, 8)).astype(np.float16)
    np.save(tmp_path / "x.npy", x)
    options = ["--input", f"x={tmp_path / 'x.npy'}", "--golden-as", "float32"]
    for factor, overflows in [(2.5, False), (40000.0, True)]:
        model = half_precision(factor)
        onnx.save(model, path)
        found = diff(opscope, path, *options)
        assert found["config"]["golden"].endswith("as float32]")
        first = found["summary"].get("first_failure")
        levels = {o["target"][0]["op_name"]: o["level"] for o in found["operators"]}
        if not overflows:
            assert (found["code"], first, set(levels.values())) == (PASSED, None, {"pass"})
        else:
            (name,) = (o["target"][0]["op_name"] for o in found["operators"] if o["index"] == first["operator"])
            assert (found["code"], name, first["cause"]) == (FAILED, "scale", "own"), levels
            assert levels["multiply"] == "pass"
            stopped = diff(opscope, path, *options, "--first")
            assert [o["target"][0]["op_name"] for o in stopped["operators"]] == ["multiply", "scale"]
        # The golden side computes in float32 what the model says, and nothing else.
        kept = tmp_path / f"kept-{overflows}"
        diff(opscope, path, *options, "--save", kept)
        opscope.run("convert", "-d", kept / "golden", "--out", tmp_path / f"arrays-{overflows}")
        weights = {w.name: numpy_helper.to_array(w).astype(np.float32) for w in model.graph.initializer}
        scaled = (x.astype(np.float32) @ weights["weight"]) * weights["factor"]
        (array,) = (tmp_path / f"arrays-{overflows}").rglob("*scale*output.0*.npy")
        values = np.load(array)
        assert values.dtype == np.float32
        np.testing.assert_allclose(values, scaled, rtol=1e-5)
    single = tmp_path / "single.onnx"
    onnx.save(two_inputs(["a", "b"], [TensorProto.FLOAT, TensorProto.FLOAT]), single)
    refused = run_diff(opscope, single, "--golden-as", "float32")
    assert (refused.returncode, "would change nothing" in refused.stderr) == (USAGE, True)


def test_options_without_an_effect_are_refused(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    model = CASES_BY_NAME["digits_cnn"].model_path(generated)
    dump = native_dump(opscope, model, tmp_path / "dump", ["--seed", 0, "--shape", "image:1,1,8,8"])
    for sides, options in [
        ((model, dump), ["--golden-as", "float32"]),
        ((model, dump), ["--golden-graph", "executed"]),
        ((dump, model), ["--first"]),
        ((dump, dump), ["--seed", 1]),
        ((dump, dump), ["--runs", 2]),
        ((dump, dump), ["--save", tmp_path / "kept"]),
    ]:
        command = [opscope.path, "diff", *sides, *options]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        assert (done.returncode, "running a model" in done.stderr) == (USAGE, True), (options, done.stderr)


def test_a_model_that_gives_the_same_each_time(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    """Operators that draw random numbers have a fixed seed in both engines."""
    model = CASES_BY_NAME["digits_cnn"].model_path(generated)
    done = run_diff(opscope, model, "--repeat", 4, "--repeat-threads", "1,2", "--json", tmp_path / "repeat.json")
    document = json.loads((tmp_path / "repeat.json").read_text())
    assert (document["n_runs"], document["n_operators"], document["n_not_compared"]) == (4, 9, 0)
    assert (done.returncode, document["operators"]) == (PASSED, [])
    assert done.stdout.startswith("PASS")


def test_repeated_runs_take_no_other_report(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    model = CASES_BY_NAME["digits_cnn"].model_path(generated)
    refused = run_diff(opscope, model, "--repeat", 2, "--csv", tmp_path / "table.csv")
    assert (refused.returncode, "only the report `--json`" in refused.stderr) == (USAGE, True)
    dump = native_dump(opscope, model, tmp_path / "dump", ["--seed", 0, "--shape", "image:1,1,8,8"])
    refused = run_diff(opscope, dump, "--repeat", 2)
    assert (refused.returncode, "runs a model" in refused.stderr) == (USAGE, True)


def named_files(folder: Path) -> Callable[[], list[Path]]:
    return lambda: sorted(folder.iterdir())


def test_nothing_is_left_in_the_temporary_directory(
    opscope: Binary, generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES_BY_NAME["digits_cnn"]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    files = named_files(temporary)
    model = case.model_path(generated)
    paths = [model, tmp_path / "other.onnx"]
    onnx.save(faults.change_weight(onnx.load(model), "fc.weight", one_element), paths[1])
    for more in (["--memory", 0], ["--html", tmp_path / "page.html"]):
        assert run_diff(opscope, *paths, *more).returncode == FAILED
        assert files() == []
    # An unwritable place is reported.
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    refused = run_diff(opscope, *paths, "--memory", 0)
    assert (refused.returncode, "temporary file" in refused.stderr) == (PARTIAL, True), refused.stderr


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_page_leaves_nothing_behind(
    opscope: Binary, generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    """It looks into dumps in the temporary directory, which go with it."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    model = CASES_BY_NAME["digits_cnn"].model_path(generated)
    target = tmp_path / "target.onnx"
    onnx.save(faults.change_weight(onnx.load(model), "fc.weight", one_element), target)
    engine = opscope.engine.options if opscope.engine else []
    command = list(map(str, (opscope.path, "diff", *engine, target, model, "--no-replay", "--view", "--no-open")))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        address = next(line for line in process.stdout if line.startswith("http://"))
        modes = [path.stat().st_mode & 0o777 for path in temporary.iterdir()]
        process.send_signal(end)
        assert process.wait(TIMEOUT_SECONDS) == FAILED
    assert "/overview" in address
    assert modes == [0o700]
    assert list(temporary.iterdir()) == []


def test_text_for_people(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    model = CASES_BY_NAME["digits_cnn"].model_path(generated)
    target = tmp_path / "target net.onnx"
    onnx.save(faults.set_attribute(onnx.load(model), "/fc/Gemm", alpha=1.1), target)
    done = run_diff(opscope, target, model, "--experiments", 0)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("FAIL: output `probs` differs (")
    assert " at Gemm `/fc/Gemm`" in lines[0]
    again = lines.index(next(line for line in lines if line.startswith("re-run in isolation")))
    assert "same inputs, different operator" in lines[again + 1], lines[again + 1]
    assert lines[-1].endswith("--view")
    assert "'" + str(target) + "'" in lines[-1]
    assert "run again" not in run_diff(opscope, target, model, "--no-replay").stdout
    # Once it is proven, nothing is left to be asked.
    proven = run_diff(opscope, target, model).stdout
    assert "proven: with golden's definition of Gemm `/fc/Gemm` all outputs agree" in proven.replace("\n    ", " ")
    assert "alpha is 1.1 here, 1 (default of opset" in proven
    assert "run again" not in proven


