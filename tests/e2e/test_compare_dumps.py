"""`opscope compare` of dumps of different forms, of dumps with parts that are gone, and what its options write."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import dump_writer as dw
import faults
import numpy as np
import onnx
import pytest
import reference
import report
from binary import Binary, input_options
from cases import DIGITS_CASE
from comparing import FAILED, PARTIAL, PASSED, compare, dump, judge_anew
from dump_writer import Tensor

MODEL = onnx.load(DIGITS_CASE.model_path(Path()))
INPUTS = DIGITS_CASE.load_inputs(Path())
CULPRIT = "/fc/Gemm"
FAULTY = faults.set_attribute(MODEL, CULPRIT, alpha=1.1)
FRACTAL_NZ = 29
BLOCK = 16
N_OPERATORS = len(MODEL.graph.node)


@pytest.fixture(scope="module")
def sound(opscope: Binary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dump(opscope, tmp_path_factory.mktemp("sound"), MODEL, INPUTS)


@pytest.fixture(scope="module")
def faulty(opscope: Binary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dump(opscope, tmp_path_factory.mktemp("faulty"), FAULTY, INPUTS)


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound, tmp_path / "copy")


def in_form(opscope: Binary, folder: Path, form: str, model: onnx.ModelProto = MODEL) -> Path:
    """A dump of a model in one of the forms that `dump` writes."""
    folder.mkdir()
    onnx.save(model, folder / "net.onnx")
    out, path = folder / "dump", folder / "dump.json"
    options = input_options(INPUTS, folder / "inputs")
    if form == "acl-statistics":
        out.mkdir()
        config = {"dump": {"dump_path": str(out), "dump_list": [{}], "dump_data": "stats", "dump_mode": "all"}}
        options += ["--config", path]
    elif form == "few-tensors":
        config = {}
        options += ["--form", "acl", "--out", out, "--tensors", "type:Gemm"]
    else:
        target, _, setting = form.partition(":")
        config = mindspore_configuration(out, target, MINDSPORE_SETTINGS[setting])
        options += ["--config", path, "--target", target]
    path.write_text(json.dumps(config))
    opscope.run("dump", folder / "net.onnx", *options)
    return out


def mindspore_configuration(out: Path, target: str, settings: dict[str, str]) -> dict[str, object]:
    common = {
        "op_debug_mode": 0,
        "dump_mode": 0,
        "path": str(out),
        "net_name": "Net",
        "iteration": "all",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        **settings,
    }
    is_of_kernels = target not in ("ascend-o2", "ge")
    return {"common_dump_settings": common, **({"e2e_dump_settings": {"enable": True}} if is_of_kernels else {})}


MINDSPORE_SETTINGS = {
    "": {},
    "arrays": {"file_format": "npy"},
    "files": {"file_format": "bin"},
    "statistics": {"saved_data": "statistic"},
}
FORMS = ["cpu", "gpu", "ascend-o0", "ascend-o2:arrays", "ge:files", "gpu:statistics", "acl-statistics", "few-tensors"]


@pytest.mark.sampled(0.35, each="is_target")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_target", [True, False], ids=["target", "golden"])
def test_the_same_in_another_form(opscope: Binary, sound: Path, tmp_path: Path, form: str, is_target: bool) -> None:
    other = in_form(opscope, tmp_path / "other", form)
    found = compare(opscope, *((other, sound) if is_target else (sound, other)), "--allow-skip", "^Parameter$")
    assert (found.code, found.summary["level"], found.not_passing) == (PASSED, "pass", [])
    assert len(found.operators) == N_OPERATORS
    assert found.guessed == {}


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("form", FORMS)
def test_a_fault_in_another_form(opscope: Binary, sound: Path, tmp_path: Path, form: str) -> None:
    other = in_form(opscope, tmp_path / "other", form, FAULTY)
    found = compare(opscope, other, sound, "--allow-skip", "^Parameter$")
    (name, slot, cause), written = found.first, CULPRIT.replace("/", "_")
    assert (name.replace("/", "_"), slot, cause) == (written, "output.0", "own")
    assert [name.replace("/", "_") for name in found.accused] == [written]
    assert found.code == FAILED


def golden_folder(folder: Path, model: Path) -> Path:
    """ONNX Runtime's outputs as the vendor's tools for golden data name them."""
    folder.mkdir()
    for time, operator in enumerate(reference.run(model, INPUTS), 1_700_000_000_000_000):
        name = operator.name.replace("/", "_")
        for side, index, value in operator.slots:
            if side == "output":
                np.save(folder / f"{name}.{index}.{time}.npy", value)
    return folder


def test_golden_data_of_onnx_runtime(opscope: Binary, sound: Path, faulty: Path, tmp_path: Path) -> None:
    golden = golden_folder(tmp_path / "golden", DIGITS_CASE.model_path(Path()))
    found = compare(opscope, sound, golden, "--outputs-only")
    assert (found.code, found.summary["level"], len(found.operators)) == (PASSED, "pass", N_OPERATORS)
    found = compare(opscope, sound, golden)
    assert {reason for *_, reason in found.skips} == {"missing_slot"}
    assert (found.code, found.not_passing) == (PARTIAL, [])
    # There are no inputs, so no operator can be blamed.
    found = compare(opscope, faulty, golden)
    assert (found.first, found.accused) == ((CULPRIT, "output.0", "unknown"), [])
    assert found.name(found.summary["ranking"][0]) == CULPRIT


def to_nhwc(tensor: Tensor) -> Tensor:
    array = values(tensor).transpose(0, 2, 3, 1)
    return Tensor(dw.FLOAT32, array.shape, array.tobytes(), dw.NHWC, array.shape)


def to_nc1hwc0(tensor: Tensor) -> Tensor:
    n, c, h, w = tensor.shape
    blocks = -(-c // BLOCK)
    padded = np.zeros((n, blocks * BLOCK, h, w), np.float32)
    padded[:, :c] = values(tensor)
    array = padded.reshape(n, blocks, BLOCK, h, w).transpose(0, 1, 3, 4, 2)
    return Tensor(dw.FLOAT32, array.shape, array.tobytes(), dw.NC1HWC0, tensor.shape)


def to_fractal_nz(tensor: Tensor) -> Tensor:
    rows, columns = tensor.shape
    across, down = -(-columns // BLOCK), -(-rows // BLOCK)
    padded = np.zeros((down * BLOCK, across * BLOCK), np.float32)
    padded[:rows, :columns] = values(tensor)
    array = padded.reshape(down, BLOCK, across, BLOCK).transpose(2, 0, 1, 3)
    return Tensor(dw.FLOAT32, array.shape, array.tobytes(), FRACTAL_NZ, tensor.shape)


def values(tensor: Tensor) -> np.ndarray:
    return np.frombuffer(tensor.payload, np.float32).reshape(tensor.shape)


@pytest.mark.parametrize(
    ("operator", "stored"),
    [("/conv1/Conv", to_nhwc), ("/conv2/Conv", to_nc1hwc0), ("/pool1/MaxPool", to_nc1hwc0), (CULPRIT, to_fractal_nz)],
)
@pytest.mark.parametrize("is_target", [True, False], ids=["target", "golden"])
def test_another_layout(
    opscope: Binary, sound: Path, copy: Path, operator: str, stored: Callable, is_target: bool
) -> None:
    faults.rewrite(faults.dump_file(copy, operator), outputs=lambda tensors: [stored(tensors[0]), *tensors[1:]])
    found = compare(opscope, *((copy, sound) if is_target else (sound, copy)))
    assert (found.code, found.summary["level"], found.skips) == (PASSED, "pass", [])
    (output,) = (slot for slot in found.operator(operator)["slots"] if slot["slot"] == "output.0")
    assert (output["evidence"], output["metrics"]["n_equal"]) == ("tensor", output["metrics"]["n"])
    assert output["target"]["shape"] != output["golden"]["shape"]
    assert "layout" in output

    # A fault in a tensor that is stored in blocks is found through them.
    faults.perturb(copy, operator, "output.0", lambda array: array * 1.2)
    found = compare(opscope, copy, sound)
    assert (found.first, found.accused) == ((operator, "output.0", "own"), [operator])


@pytest.mark.parametrize("is_target", [True, False], ids=["target", "golden"])
def test_an_output_that_is_gone(opscope: Binary, sound: Path, copy: Path, is_target: bool) -> None:
    faults.rewrite(faults.dump_file(copy, "/conv2/Relu"), outputs=lambda tensors: tensors[:-1])
    found = compare(opscope, *((copy, sound) if is_target else (sound, copy)))
    side = "golden" if is_target else "target"
    assert found.skips == [(side, "/conv2/Relu", "output.0", "missing_slot")]
    assert (found.code, found.not_passing) == (PARTIAL, [])
    assert compare(opscope, copy, sound, "--allow-skip", "/conv2/Relu").code == PASSED


def test_a_file_of_a_mindspore_tree_that_is_gone(opscope: Binary, tmp_path: Path) -> None:
    target = in_form(opscope, tmp_path / "target", "cpu")
    golden = shutil.copytree(target, tmp_path / "golden")
    (gone,) = target.rglob("*_conv2_Relu*.output.0.*.npy")
    gone.unlink()
    found = compare(opscope, target, golden)
    ((side, name, slot, reason),) = found.skips
    assert (side, name.replace("/", "_"), slot, reason) == ("golden", "_conv2_Relu", "output.0", "missing_slot")
    assert (found.code, found.not_passing) == (PARTIAL, [])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scribble(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[:8] = b"\xff" * 8
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("damage", "reason"), [(cut, "damaged"), (empty, "damaged"), (scribble, "damaged"), (Path.unlink, "missing")]
)
@pytest.mark.parametrize("is_target", [True, False], ids=["target", "golden"])
def test_a_file_that_is_damaged_or_gone(
    opscope: Binary, sound: Path, copy: Path, damage: Callable, reason: str, is_target: bool
) -> None:
    path = faults.dump_file(copy, "/pool1/MaxPool")
    path.chmod(0o600)
    damage(path)
    found = compare(opscope, *((copy, sound) if is_target else (sound, copy)))
    assert (found.code, found.accused, found.not_passing) == (PARTIAL, [], [])
    assert reason in {skip[3] for skip in found.skips}
    about = {skip["operator"]["op_name"].replace("/", "_") for skip in found.document["skips"] if "operator" in skip}
    assert about <= {"_pool1_MaxPool"}
    compared = {operator["target"][0]["op_name"] for operator in found.operators if operator["level"] == "pass"}
    assert compared >= {node.name for node in MODEL.graph.node} - {"/pool1/MaxPool"}
    if reason == "damaged":
        assert any(str(path) in json.dumps(skip) for skip in found.document["skips"])


def test_damage_does_not_hide_a_fault(opscope: Binary, sound: Path, faulty: Path, tmp_path: Path) -> None:
    target = shutil.copytree(faulty, tmp_path / "target")
    path = faults.dump_file(target, "/pool1/MaxPool")
    path.chmod(0o600)
    cut(path)
    found = compare(opscope, target, sound)
    assert (found.first, found.accused, found.code) == ((CULPRIT, "output.0", "own"), [CULPRIT], PARTIAL)


def test_thresholds_and_judging_anew(opscope: Binary, sound: Path, faulty: Path, tmp_path: Path) -> None:
    saved = tmp_path / "result.json"
    found = compare(opscope, faulty, sound, "--quiet")
    saved.write_text(json.dumps(found.document))
    assert found.code == FAILED
    wide = tmp_path / "wide.yaml"
    wide.write_text("dtypes: {float: {rel_l2: false, scaled_max_abs: false, cosine: false, gain_error: false, "
                    "offset_error: false, sign_flip_share: false}}\n")  # fmt: skip
    assert judge_anew(opscope, saved).summary == found.summary
    option = ["--thresholds", wide]
    for again in (judge_anew(opscope, saved, *option), compare(opscope, faulty, sound, *option)):
        assert (again.code, again.summary["level"], again.first) == (PASSED, "pass", None)
    narrow = tmp_path / "narrow.json"
    narrow.write_text(json.dumps({"names": {"*probs*": {"max_abs": 1e-30}}, "dtypes": {"float": {"rel_l2": False}}}))
    found = judge_anew(opscope, saved, "--thresholds", narrow)
    rules = {rule["metric"] for slot in found.operator("/probs/Softmax")["slots"] for rule in slot.get("rules", [])}
    assert "max_abs" in rules


def test_a_mapping_that_was_exported(opscope: Binary, sound: Path, tmp_path: Path) -> None:
    renamed = faults.rename(FAULTY, CULPRIT, "head")
    target = dump(opscope, tmp_path, renamed, INPUTS)
    assert compare(opscope, target, sound, "--no-guesses").skips == [
        ("target", "head", None, "missing"),
        ("golden", CULPRIT, None, "missing"),
    ]
    mapping = tmp_path / "mapping.yaml"
    opscope.run("compare", target, sound, "--export-mapping", mapping)
    assert "head" in mapping.read_text() and CULPRIT in mapping.read_text()
    again = tmp_path / "again.yaml"
    assert compare(opscope, target, sound, "--export-mapping", again).code == FAILED
    assert again.read_text() == mapping.read_text()
    found = compare(opscope, target, sound, "--mapping", mapping, "--no-guesses")
    assert found.guessed == {"head": ([CULPRIT], "mapping")}
    assert (found.first, found.accused, found.skips) == (("head", "output.0", "own"), ["head"], [])


def test_reports_name_the_culprit(opscope: Binary, sound: Path, faulty: Path, tmp_path: Path) -> None:
    paths = {form: tmp_path / f"report.{form}" for form in ("html", "xlsx", "csv", "jsonl")}
    found = compare(opscope, faulty, sound, *(part for form, path in paths.items() for part in (f"--{form}", path)))
    assert found.code == FAILED
    page = report.read(paths["html"])
    (accused,) = (row for row in page["rows"] if row["at_fault"])
    assert (accused["op_name"], accused["cause"]) == (CULPRIT, "own")
    assert page["info"]["verdict"]["op_name"] == CULPRIT
    assert page["details"][str(accused["id"])]["slots"] and page["tensors"]
    with paths["csv"].open(newline="") as file:
        failed = [row for row in csv.reader(file) if "fail" in row]
    assert any(CULPRIT in row for row in failed)
    with zipfile.ZipFile(paths["xlsx"]) as book:
        assert any(CULPRIT in book.read(name).decode() for name in book.namelist() if name.endswith(".xml"))
    records = [json.loads(line) for line in paths["jsonl"].read_text().splitlines()]
    types = [record["type"] for record in records]
    assert [name for name in types if name not in ("comparison", "passed_over")] == ["config", "contract", "summary"]
    (culprit,) = (record for record in records if record.get("cause") == "own")
    assert culprit["target"][0]["op_name"] == CULPRIT
