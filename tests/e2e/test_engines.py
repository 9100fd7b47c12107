"""Tests of the gaps of an engine, and of dumps by one engine compared with dumps by the other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import dump_data
import dump_tree
import faults
import numpy as np
import onnx
import pytest
import reference
from binary import TIMEOUT_SECONDS, Binary, input_options
from cases import CASES, SEQUENCES, TEXT, Case
from comparing import FAILED, PARTIAL, PASSED, compare, dump
from conftest import binary
from engines import ENGINES, ONNX_RUNTIME, TRACT, Engine

UNREADABLE = 3
BEYOND_TRACT = {
    "loop": "`/Loop` of type `Loop`",
    "nested_loops": "`/Loop` of type `Loop`",
    "sequences": "`/SplitToSequence` of type `SplitToSequence`",
    "qoperator": "`/QLinearAdd` of type `QLinearAdd`",
    "bfloat16": "`/Cast` of type `Cast`: it has no type for bfloat16 (1 more like it)",
    "text": "`/LabelEncoder` of type `LabelEncoder`",
    "seq2seq": "`/decoder/Loop` of type `Loop`",
}


BEYOND = [case for case in (*CASES, TEXT, SEQUENCES) if TRACT not in case.engines]


def test_every_case_has_an_engine() -> None:
    assert {case.stem for case in BEYOND} == set(BEYOND_TRACT)
    assert all(ONNX_RUNTIME in case.engines for case in CASES)


@pytest.mark.parametrize("engine", [TRACT], indirect=True, ids=str)
@pytest.mark.parametrize("case", BEYOND, ids=str)
def test_tract_says_who_can(case: Case, opscope: Binary, generated: Path, tmp_path: Path) -> None:
    inputs = input_options(case.load_inputs(generated), tmp_path / "inputs")
    command = opscope.command("dump", case.model_path(generated), "--form", "acl", "--out", tmp_path / "dump", *inputs)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert (done.returncode, done.stdout) == (UNREADABLE, "")
    assert BEYOND_TRACT[case.stem] in done.stderr
    assert "ONNX Runtime can" in done.stderr
    assert not list(tmp_path.glob("dump/*"))


@pytest.mark.sampled(0.35)
@pytest.mark.parametrize("case", [case for case in CASES if TRACT in case.engines], ids=str)
def test_engines_agree(case: Case, generated: Path, tmp_path: Path) -> None:
    inputs = input_options(case.load_inputs(generated), tmp_path / "inputs")
    dumps = {}
    for engine in (TRACT, ONNX_RUNTIME):
        dumps[engine] = tmp_path / engine.name
        binary(engine).dump(case.model_path(generated), "--form", "acl", "--out", dumps[engine], *inputs)
    for target, golden in ((TRACT, ONNX_RUNTIME), (ONNX_RUNTIME, TRACT)):
        # tract shows nothing of what a Scan runs.
        found = compare(binary(target), dumps[target], dumps[golden], "--allow-skip", "^/body/")
        assert (found.first, found.accused, found.not_passing, found.guessed) == (None, [], [], {})
        assert all(name.startswith("/body/") for _, name, _, _ in found.skips), found.skips
        assert (found.code, found.summary["level"]) == (PASSED, "pass")


FAULTS = [
    ("resnet50", "/layer2/layer2.0/Add", lambda model, name: faults.replace_type(model, name, "Sub")),
    ("vit", "/blocks/blocks.1/attn/Softmax", lambda model, name: faults.set_attribute(model, name, axis=2)),
    ("bert", "/encoder/layer.0/intermediate/act/Erf", lambda model, name: faults.replace_type(model, name, "Tanh")),
    ("gpt2", "/transformer/h.1/ln_1/LayerNormalization",
     lambda model, name: faults.set_attribute(model, name, epsilon=0.2)),
]  # fmt: skip


@pytest.mark.sampled(0.5, each="engine")
@pytest.mark.parametrize("engine", ENGINES, indirect=True, ids=str)
@pytest.mark.parametrize(("stem", "wrong", "plant"), FAULTS, ids=[stem for stem, *_ in FAULTS])
def test_a_fault_in_one_engine(
    engine: Engine, generated: Path, tmp_path: Path, stem: str, wrong: str, plant: Callable
) -> None:
    (case,) = (case for case in CASES if case.stem == stem)
    (other,) = (other for other in ENGINES if other != engine)
    model, inputs = onnx.load(case.model_path(generated)), case.load_inputs(generated)
    for folder in (tmp_path / "sound", tmp_path / "faulty"):
        folder.mkdir()
    golden = dump(binary(other), tmp_path / "sound", model, inputs)
    target = dump(binary(engine), tmp_path / "faulty", plant(model, wrong), inputs)
    found = compare(binary(engine), target, golden)
    assert (found.code, found.first, found.accused) == (FAILED, (wrong, "output.0", "own"), [wrong])
    assert (found.skips, found.guessed) == ([], {})


@pytest.mark.parametrize("engine", [ONNX_RUNTIME], indirect=True, ids=str)
def test_sequences_have_no_bytes(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    """All else is in the dump, and what is not is counted."""
    inputs = SEQUENCES.load_inputs(generated)
    options = ["--form", "acl", "--out", tmp_path / "dump", *input_options(inputs, tmp_path / "inputs"), "--json"]
    command = opscope.command("dump", SEQUENCES.model_path(generated), *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    operators = reference.run(SEQUENCES.model_path(generated), inputs)
    n_missing = sum(value is None for operator in operators for value in operator.inputs + operator.outputs)
    assert (done.returncode, n_missing) == (PARTIAL, 6)
    assert "6 tensors could not be dumped" in done.stderr
    records = json.loads(done.stdout)["records"]
    assert (records["dropped"], records["dropped_by"]["not_shown"]) == (n_missing, n_missing)
    step = dump_tree.step_dirs(tmp_path / "dump", SEQUENCES.stem)[0]
    for operator, file in dump_tree.pair(operators, dump_tree.read_step(step)):
        data = dump_data.parse(file.path.read_bytes())
        for tensors, values in ((data.inputs, operator.inputs), (data.outputs, operator.outputs)):
            expected = [value for value in values if value is not None]
            for tensor, value in zip(tensors, expected, strict=True):
                np.testing.assert_array_equal(tensor.array(), value, strict=True)


@pytest.mark.parametrize("engine", [ONNX_RUNTIME], indirect=True, ids=str)
def test_text_is_kept(opscope: Binary, generated: Path, tmp_path: Path) -> None:
    """Of each text the place and the length, then all texts."""
    inputs = TEXT.load_inputs(generated)
    options = input_options(inputs, tmp_path / "inputs")
    opscope.dump(TEXT.model_path(generated), "--form", "acl", "--out", tmp_path / "dump", *options)
    step = dump_tree.step_dirs(tmp_path / "dump", TEXT.stem)[0]
    files = {file.op_type: dump_data.parse(file.path.read_bytes()) for file in dump_tree.read_step(step)}
    for tensor in (files["Cast"].outputs[0], files["LabelEncoder"].inputs[0]):
        places = np.frombuffer(tensor.payload, "<u8", 2 * 4).reshape(4, 2)
        texts = [tensor.payload[begin : begin + n].decode() for begin, n in places]
        assert texts == [str(number) for number in inputs["numbers"]]
    (expected,) = reference.outputs(TEXT.model_path(generated), inputs).values()
    np.testing.assert_array_equal(files["Mul"].outputs[0].array(), expected, strict=True)
