"""The native form as DuckDB and safetensors read it, which know nothing of Opscope, against ONNX Runtime's values.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_native.py
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import duckdb
import ml_dtypes
import numpy as np
import pytest
import safetensors
from binary import Binary, input_options
from compare import as_converted, difference
from conftest import Dumped, binary
from numpy.typing import NDArray
from reference import Operator

N_STEPS = 2
Row = dict[str, Any]


@pytest.fixture(scope="module")
def native(dumped: Dumped, generated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run in which the model ran twice."""
    folder = tmp_path_factory.mktemp("native")
    case = dumped.case
    inputs = input_options(case.load_inputs(generated), folder / "inputs")
    opscope = binary(dumped.engine)
    report = opscope.dump(case.model_path(generated), "--out", folder / "dump", "--steps", N_STEPS, *inputs)
    assert report["records"]["written"] == report["records"]["selected"] == N_STEPS * n_slots(dumped.operators)
    (run_dir,) = (folder / "dump").iterdir()
    return run_dir


def test_rows_and_elements_are_those_of_the_reference(dumped: Dumped, native: Path) -> None:
    rows = rows_of(native)
    assert {row["step"] for row in rows} == set(range(N_STEPS))
    files = {path: path.read_bytes() for path in native.rglob("*.safetensors")}
    problems = []
    for step in range(N_STEPS):
        of_step = [row for row in rows if row["step"] == step]
        assert len(of_step) == n_slots(dumped.operators)
        for row, expected in pair(dumped.operators, of_step):
            elements = elements_of(row, files[native / row["file"]])
            if problem := difference(as_converted(elements), as_converted(expected), dumped.tolerance):
                problems.append(f"step {step} {row['op_type']} `{row['op_name']}` {row['side']}.{row['slot']}: {problem}")
    assert not problems, "\n".join([f"{len(problems)} slots disagree", *problems[:20]])


def test_every_content_is_there_once(dumped: Dumped, native: Path) -> None:
    found = Counter()
    for path in native.rglob("*.safetensors"):
        # Opened by the library, so that its header is checked independently.
        for name, tensor in safetensors.deserialize(path.read_bytes()):
            if not name.startswith("padding/"):
                found[bytes(tensor["data"])] += 1
    shown = {bytes(value.tobytes()) for operator in dumped.operators for _, _, value in operator.slots}
    assert set(found.values()) == {1}
    if dumped.engine.is_reference and len(found) == len(shown):
        assert set(found) == shown


def test_order_and_places(dumped: Dumped, native: Path) -> None:
    """Executions are numbered from 0 in each step, and their rows are in order."""
    for step in range(N_STEPS):
        of_step = [row for row in rows_of(native) if row["step"] == step]
        order = [(row["position"], row["side"] == "output", row["slot"]) for row in of_step]
        assert order == sorted(order)
        with_slots = sum(1 for operator in dumped.operators if operator.slots)
        assert sorted({row["position"] for row in of_step}) == list(range(with_slots))
        times = [row["time_us"] for row in of_step]
        assert times == sorted(times)


def test_statistics_are_those_of_numpy(dumped: Dumped, generated: Path, tmp_path: Path) -> None:
    opscope = binary(dumped.engine)
    case = dumped.case
    inputs = input_options(case.load_inputs(generated), tmp_path / "inputs")
    opscope.dump(case.model_path(generated), "--out", tmp_path / "dump", "--content", "both", *inputs)
    (run_dir,) = (tmp_path / "dump").iterdir()
    files = {path: path.read_bytes() for path in run_dir.rglob("*.safetensors")}
    for row in rows_of(run_dir):
        elements = elements_of(row, files[run_dir / row["file"]])
        if elements.dtype.kind not in "fiu" or elements.size == 0:
            continue
        values = elements.astype(np.longdouble).ravel()
        real = values[~np.isnan(values)]
        name = f"{row['op_name']} {row['side']}.{row['slot']}"
        assert row["n_elements"] == values.size, name
        assert row["n_nan"] == np.isnan(values).sum(), name
        assert row["n_zero"] == (values == 0).sum(), name
        assert row["n_pos_inf"] == np.isposinf(values).sum(), name
        if real.size:
            assert (row["min"], row["max"]) == (float(real.min()), float(real.max())), name


def test_both_forms_hold_the_same(dumped: Dumped, native: Path, tool: Binary, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    tool.run("compare", native.parent, dumped.out_dir, "--steps", "0", "--json", report)
    summary = json.loads(report.read_text())["summary"]
    assert summary["target_coverage"] == summary["golden_coverage"] == [n_slots(dumped.operators)] * 2


def rows_of(run_dir: Path) -> list[Row]:
    with duckdb.connect() as connection:
        tables = f"read_parquet('{run_dir}/rank-0/*/step-*.parquet', file_row_number = true)"
        found = connection.execute(f"select * from {tables} order by step, file_row_number")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def elements_of(row: Row, file: bytes) -> NDArray:
    dtype = np.dtype(getattr(ml_dtypes, row["dtype"], row["dtype"]))
    bytes_ = file[row["offset"] : row["offset"] + row["n_bytes"]]
    return np.frombuffer(bytes_, dtype).reshape(row["shape"])


def n_slots(operators: list[Operator]) -> int:
    return sum(len(operator.slots) for operator in operators)


def pair(operators: list[Operator], rows: list[Row]) -> list[tuple[Row, NDArray]]:
    """Each row with the value of its slot; operators of one name by their order in the model."""
    waiting: dict[tuple[str, str], list[dict[tuple[str, int], Row]]] = defaultdict(list)
    executions: dict[int, dict[tuple[str, int], Row]] = defaultdict(dict)
    tasks = {}
    for row in rows:
        executions[row["position"]][row["side"], row["slot"]] = row
        tasks[row["position"]] = (row["task"], row["op_type"], row["op_name"])
    for position in sorted(executions, key=lambda position: tasks[position][0], reverse=True):
        waiting[tasks[position][1:]].append(executions[position])
    pairs = []
    for operator in operators:
        if not operator.slots:
            continue
        slots = waiting[operator.op_type, operator.name].pop()
        # Rows count absent optional inputs, which the reference leaves out.
        for side in ("input", "output"):
            rows_of_side = [row for (known, _), row in sorted(slots.items()) if known == side]
            values = [value for known, _, value in operator.slots if known == side]
            pairs += zip(rows_of_side, values, strict=True)
    assert not any(waiting.values())
    return pairs
