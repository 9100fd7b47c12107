"""Tests of the dumps that the modes of `acl.json` leave behind on ordinary models."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import reference
from binary import Binary, input_options
from cases import CASES, RUNS, Case, parameters


def configure(folder: Path, **dump: object) -> Path:
    """A configuration whose dump goes to `folder`/dump."""
    (folder / "dump").mkdir()
    path = folder / "acl.json"
    path.write_text(json.dumps({"dump": {"dump_path": str(folder / "dump"), **dump}}))
    return path


ORDINARY = [run for run in RUNS if run.case.stem not in ("constants", "nan")]


@pytest.mark.sampled(0.35, each="engine")
@pytest.mark.parametrize(("engine", "case"), parameters(ORDINARY), indirect=["engine"])
def test_ordinary_models_do_not_overflow(case: Case, opscope: Binary, generated: Path, tmp_path: Path) -> None:
    config = configure(tmp_path, dump_debug="on")
    inputs = input_options(case.load_inputs(generated), tmp_path / "inputs")
    report = opscope.dump(case.model_path(generated), "--config", config, *inputs)
    assert (report["operators_overflowed"], report["first_overflow"]) == (0, None)
    assert list((tmp_path / "dump").iterdir()) == []


def test_there_are_enough_ordinary_models() -> None:
    assert len(ORDINARY) >= 40


@pytest.mark.parametrize("case", [case for case in CASES if case.stem in ("digits_cnn", "char_lm")], ids=str)
def test_statistics_agree_with_onnx_runtime(case: Case, opscope: Binary, generated: Path, tmp_path: Path) -> None:
    config = configure(tmp_path, dump_list=[{}], dump_data="stats")
    inputs = case.load_inputs(generated)
    opscope.dump(case.model_path(generated), "--config", config, *input_options(inputs, tmp_path / "inputs"))
    operators = {operator.name: operator for operator in reference.run(case.model_path(generated), inputs)}
    # Operators of these types leave files where they are asked for by name only.
    operators = {name: op for name, op in operators.items() if op.op_type not in ("Concat", "Split")}
    files = [path for path in (tmp_path / "dump").rglob("*.csv") if path.name != "mapping.csv"]
    assert len(files) == len(operators)
    written = {name.replace("/", "_").replace(".", "_"): operator for name, operator in operators.items()}
    for path in files:
        operator = written[path.name.split(".")[1]]
        with path.open() as file:
            rows = list(csv.DictReader(file))
        values = [value for side, _, value in operator.slots if side == "output"]
        for row, value in zip(rows, values, strict=True):
            assert (row["Input/Output"], int(row["Count"])) == ("Output", value.size)
            assert float(row["Max Value"]) == pytest.approx(float(np.max(value)), rel=1e-4, abs=1e-5)
            assert float(row["Avg Value"]) == pytest.approx(float(np.mean(value)), rel=1e-3, abs=1e-4)
