"""Every dumped value against ONNX Runtime's, and every dump file against the format's description.

OPSCOPE=target/debug/opscope pytest tests/e2e
"""

from __future__ import annotations

import json
from pathlib import Path

import dump_data
import dump_tree
import numpy as np
import pytest
import reference
from binary import Binary
from cases import DIGITS, DIGITS_CASE, Tolerance
from compare import DTYPES, as_converted, difference
from conftest import Dumped
from numpy.typing import NDArray
from reference import Operator


def test_every_operator_has_one_file(dumped: Dumped) -> None:
    files = dumped.files
    assert len(dumped.pairs) == len(files)
    # The operators of a loop's body run once for each iteration, whose number is in the name.
    assert len({(file.task_id, file.op_name) for file in files}) == len(files)
    assert dumped.engine.shows_loops or len({file.task_id for file in files}) == len(files)


def test_values_agree(dumped: Dumped) -> None:
    assert_values_agree(dumped.pairs, dumped.converted, dumped.tolerance)


def test_outputs_are_those_of_a_run_that_nobody_watches(dumped: Dumped, generated: Path) -> None:
    inputs = dumped.case.load_inputs(generated)
    expected = reference.outputs(dumped.case.model_path(generated), inputs)
    names = {
        name: f"{file.full_name}.output.{idx}.npy"
        for operator, file in dumped.pairs
        for idx, name in enumerate(operator.writes)
    }
    for name, value in expected.items():
        assert difference(dumped.converted[names[name]], as_converted(value), dumped.tolerance) is None, name


def test_files_follow_the_format(dumped: Dumped) -> None:
    for operator, file in dumped.pairs:
        data = dump_data.parse(file.path.read_bytes())
        assert (data.version, data.op_name, data.other_fields) == ("2.0", operator.name, [])
        assert dumped.started_us <= data.dump_time <= file.timestamp <= dumped.finished_us
        sides = [side for side, _, _ in operator.slots]
        assert (len(data.inputs), len(data.outputs)) == (sides.count("input"), sides.count("output"))
        positions = [*range(len(data.inputs)), *range(len(data.outputs))]
        tensors = zip(operator.slots, positions, data.inputs + data.outputs, strict=True)
        for (side, idx, expected), position, tensor in tensors:
            number = operator.numbers[side][idx]
            assert tensor.slot == (None if number == position else number)
            slot = f"{operator.op_type} `{operator.name}` {side}.{idx}"
            assert DTYPES[tensor.data_type] == expected.dtype, slot
            assert tensor.shape == tensor.original_shape == expected.shape, slot
            assert tensor.size == expected.nbytes, slot
            assert tensor.format == dump_data.ND or (tensor.format == dump_data.NCHW and expected.ndim == 4), slot
            converted = dumped.converted[f"{file.full_name}.{side}.{idx}.npy"]
            payload = np.frombuffer(tensor.payload, expected.dtype).reshape(expected.shape)
            assert as_converted(payload).tobytes() == converted.tobytes(), slot


def test_counters_agree_with_the_disk(dumped: Dumped) -> None:
    files = dumped.files
    parsed = [dump_data.parse(file.path.read_bytes()) for file in files]
    n_slots = sum(len(data.inputs) + len(data.outputs) for data in parsed)
    report = dumped.report
    assert len(dumped.converted) == n_slots
    records = dict(report["records"])
    assert set(records.pop("dropped_by").values()) == {0}
    assert records == {
        "offered": n_slots,
        "selected": n_slots,
        "written": n_slots,
        "whole": n_slots,
        "dropped": 0,
        "failed": 0,
    }
    assert report["operators_seen"] == report["operators_dumped"] == len(files)
    payload_bytes = sum(tensor.size for data in parsed for tensor in data.inputs + data.outputs)
    assert payload_bytes <= report["bytes_written"] <= sum(file.path.stat().st_size for file in files)


def test_report_names_the_run(dumped: Dumped) -> None:
    assert dumped.report["engine"].split()[0] == dumped.engine.name
    assert dumped.case.stem in json.dumps(dumped.report["model"])
    assert dumped.report["dump_dirs"]
    for folder in map(Path, dumped.report["dump_dirs"]):
        assert folder.is_dir() and folder.is_relative_to(dumped.out_dir)


def test_first_non_finite_is_found(dumped: Dumped) -> None:
    # An infinity in the model's inputs is not its own.
    found = dumped.report["first_non_finite"] or dumped.report["deliberate_infinities"]["first"]
    if not (possible := reference.may_be_first_non_finite(dumped.operators)):
        assert found is None
        return
    assert found is not None
    if not dumped.engine.is_reference:
        # ONNX Runtime decides which of two branches it runs first; others follow the file.
        possible = [reference.first_non_finite(dumped.operators).name]
    assert any(json.dumps(name) in json.dumps(found) for name in possible)


def test_steps_are_counted(opscope: Binary, tmp_path: Path) -> None:
    images = np.load(DIGITS / "images.npy")
    image_option = f"image={DIGITS / 'images.npy'}"
    place = ("--form", "acl", "--out", tmp_path / "dump")
    report = opscope.dump(digits_model(), *place, "--input", image_option, "--steps", 3)
    steps = dump_tree.step_dirs(tmp_path / "dump", "digits_cnn")
    assert sorted(steps) == [0, 1, 2]
    operators = reference.run(digits_model(), {"image": images})
    for step_dir in steps.values():
        assert_dump_agrees(opscope, operators, step_dir, tmp_path / f"npy{step_dir.name}")
    assert report["records"]["written"] == 3 * sum(len(operator.slots) for operator in operators)


@pytest.mark.parametrize("kind", ["npz", "folder"])
def test_inputs_come_together(opscope: Binary, tmp_path: Path, kind: str) -> None:
    images = np.load(DIGITS / "images.npy")[:3]
    source = tmp_path / ("inputs.npz" if kind == "npz" else "inputs")
    if kind == "npz":
        np.savez(source, image=images)
    else:
        source.mkdir()
        np.save(source / "image.npy", images)
    opscope.dump(digits_model(), "--form", "acl", "--out", tmp_path / "dump", "--inputs", source)
    step_dir = dump_tree.step_dirs(tmp_path / "dump", "digits_cnn")[0]
    assert_dump_agrees(opscope, reference.run(digits_model(), {"image": images}), step_dir, tmp_path / "npy")


def test_made_up_inputs_repeat_with_the_seed(opscope: Binary, tmp_path: Path) -> None:
    images = []
    for run, seed in enumerate([5, 5, 6]):
        out_dir = tmp_path / f"dump{run}"
        opscope.dump(digits_model(), "--form", "acl", "--out", out_dir, "--shape", "image:2,1,8,8", "--seed", seed)
        step_dir = dump_tree.step_dirs(out_dir, "digits_cnn")[0]
        (first,) = (file for file in dump_tree.read_step(step_dir) if file.op_name == "_conv1_Conv")
        images.append(dump_data.parse(first.path.read_bytes()).inputs[0].array())
        operators = reference.run(digits_model(), {"image": images[-1]})
        assert_dump_agrees(opscope, operators, step_dir, tmp_path / f"npy{run}")
    assert images[0].shape == (2, 1, 8, 8)
    assert (images[0] == images[1]).all()
    assert (images[0] != images[2]).any()


def test_config_selects_operators(opscope: Binary, tmp_path: Path) -> None:
    """The example configuration names two operators and a `dump_path` relative to the current folder."""
    dump_path = tmp_path / "target" / "dump"
    dump_path.mkdir(parents=True)
    image_option = f"image={DIGITS / 'images.npy'}"
    options = ["--config", DIGITS / "acl.json", "--input", image_option]
    report = opscope.dump(digits_model(), *options, cwd=tmp_path)
    listed = json.loads((DIGITS / "acl.json").read_text())["dump"]["dump_list"][0]["layer"]
    operators = reference.run(digits_model(), {"image": np.load(DIGITS / "images.npy")})
    chosen = [operator for operator in operators if operator.name in listed]
    step_dir = dump_tree.step_dirs(dump_path, "digits_cnn")[0]
    assert_dump_agrees(opscope, chosen, step_dir, tmp_path / "npy")
    n_slots = sum(len(operator.slots) for operator in chosen)
    assert report["operators_dumped"] == len(chosen) == 2
    assert report["records"]["selected"] == report["records"]["written"] == n_slots


def test_converts_a_single_file(opscope: Binary, tmp_path: Path) -> None:
    image_option = f"image={DIGITS / 'images.npy'}"
    opscope.dump(digits_model(), "--form", "acl", "--out", tmp_path / "dump", "--input", image_option)
    step_dir = dump_tree.step_dirs(tmp_path / "dump", "digits_cnn")[0]
    (file,) = (file for file in dump_tree.read_step(step_dir) if file.op_type == "Gemm")
    opscope.convert(file.path, tmp_path / "npy")
    expected = {f"{file.path.name}.{slot}.npy" for slot in ("input.0", "input.1", "input.2", "output.0")}
    assert {path.name for path in (tmp_path / "npy").iterdir()} == expected


def digits_model() -> Path:
    return DIGITS_CASE.model_path(DIGITS)


def assert_dump_agrees(opscope: Binary, operators: list[Operator], step_dir: Path, npy_dir: Path) -> None:
    opscope.convert(step_dir, npy_dir)
    pairs = dump_tree.pair(operators, dump_tree.read_step(step_dir))
    assert_values_agree(pairs, dump_tree.read_converted(npy_dir), DIGITS_CASE.tolerance_of(opscope.engine))


def assert_values_agree(
    pairs: list[tuple[Operator, dump_tree.DumpFile]], converted: dict[str, NDArray], tolerance: Tolerance
) -> None:
    """Every slot has its array and no array is left over; all disagreements are shown together."""
    left, problems = set(converted), []
    for operator, file in pairs:
        for side, idx, expected in operator.slots:
            name = f"{file.full_name}.{side}.{idx}.npy"
            left.discard(name)
            is_there = name in converted
            problem = difference(converted[name], as_converted(expected), tolerance) if is_there else "not converted"
            if problem:
                problems.append(f"{operator.op_type} `{operator.name}` {side}.{idx}: {problem}")
    assert not problems, "\n".join([f"{len(problems)} slots disagree", *problems[:20]])
    assert not left, f"arrays of no operator: {sorted(left)[:20]}"
