"""A program in the shape of pyACL's samples: it dumps two models, each with its own configuration."""

from __future__ import annotations

import json
from pathlib import Path

import dump_data
import dump_tree
import numpy as np
import pytest
import reference
from cases import CASES, DIGITS_CASE, Case
from compare import difference
from programs import DIGITS, run_program

SHAPES_CASE = next(case for case in CASES if case.stem == "shapes_cnn_f32")


def write_config(path: Path, **dump: object) -> Path:
    path.write_text(json.dumps({"dump": dump}), encoding="utf-8")
    return path


def arguments(case: Case, config: Path | str, folder: Path) -> list[Path | str]:
    """Saves the inputs of one model and returns the program's arguments for it."""
    inputs = folder / f"{case.stem}.inputs.npz"
    np.savez(inputs, **case.load_inputs(folder))
    return [case.model_path(folder), inputs, config, folder / f"{case.stem}.outputs.npz"]


def model_dirs(dump_dir: Path) -> dict[str, Path]:
    """The directory of each model of a dump, by the model's name: `{time}/{device}/{model}/{model_id}`."""
    return {path.parent.name: path for path in dump_dir.glob("*/0/*/*")}


def outputs(case: Case, folder: Path) -> list[np.ndarray]:
    with np.load(folder / f"{case.stem}.outputs.npz") as arrays:
        return [arrays[name] for name in arrays.files]


def test_a_program_dumps_two_models_with_two_configurations(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    layers = ["/conv1/Conv", "/fc/Gemm"]
    some = [{"model_name": "digits_cnn", "layer": layers}]
    of_digits = write_config(tmp_path / "acl1.json", dump_path=str(first), dump_mode="all", dump_list=some)
    of_shapes = write_config(tmp_path / "acl2.json", dump_path=str(second), dump_mode="output", dump_list=[{}])
    program = [*arguments(DIGITS_CASE, of_digits, tmp_path), *arguments(SHAPES_CASE, of_shapes, tmp_path)]
    assert run_program("classify.py", *program) == [1, len(outputs(SHAPES_CASE, tmp_path))]

    probabilities = outputs(DIGITS_CASE, tmp_path)[0]
    labels = np.load(DIGITS / "labels.npy")
    assert int((probabilities.argmax(axis=1) == labels).sum()) == 15

    dumped = model_dirs(first)
    assert list(dumped) == ["digits_cnn"]
    assert_dumped(DIGITS_CASE, dumped["digits_cnn"], tmp_path, layers=layers, sides=("input", "output"))
    dumped = model_dirs(second)
    assert list(dumped) == ["shapes_cnn_f32"]
    assert_dumped(SHAPES_CASE, dumped["shapes_cnn_f32"], tmp_path, layers=None, sides=("output",))


def assert_dumped(case: Case, model_dir: Path, folder: Path, layers: list[str] | None, sides: tuple[str, ...]) -> None:
    """Every file of the dump against ONNX Runtime's values."""
    assert [path.name for path in model_dir.iterdir()] == ["0"]
    operators = reference.run(case.model_path(folder), case.load_inputs(folder))
    wanted = [operator for operator in operators if layers is None or operator.name in layers]
    assert wanted
    files = dump_tree.read_step(model_dir / "0")
    for operator, file in dump_tree.pair(wanted, files):
        data = dump_data.parse(file.path.read_bytes())
        found = {"input": data.inputs, "output": data.outputs}
        for side in ("input", "output"):
            values = [value for at, _, value in operator.slots if at == side] if side in sides else []
            assert len(found[side]) == len(values), f"{operator.name} {side}"
            for tensor, value in zip(found[side], values, strict=True):
                assert difference(array_of(tensor), value, case.tolerance) is None, f"{operator.name} {side}"


def array_of(tensor: dump_data.Tensor) -> np.ndarray:
    return np.frombuffer(tensor.payload, dump_data.DATA_TYPES[tensor.data_type]).reshape(tensor.shape)


@pytest.mark.parametrize("case", [DIGITS_CASE, SHAPES_CASE], ids=str)
def test_results_agree_with_onnx_runtime(case: Case, tmp_path: Path) -> None:
    run_program("classify.py", *arguments(case, "-", tmp_path))
    operators = reference.run(case.model_path(tmp_path), case.load_inputs(tmp_path))
    expected = operators[-1].outputs
    found = outputs(case, tmp_path)
    assert len(found) == len(expected)
    for actual, value in zip(found, expected, strict=True):
        assert difference(actual, value, case.tolerance) is None
    assert not list(tmp_path.glob("2*"))
