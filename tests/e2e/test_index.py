"""The tables of `opscope index` as DuckDB reads them: the same from every form of a dump, and right.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_index.py
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import ml_dtypes
import numpy as np
import onnx
import pytest
from binary import Binary, input_options
from cases import DIGITS, DIGITS_CASE
from conftest import Dumped, binary

SIMPLE = ("digits_cnn", "multi_io", "resnet50", "transformer")
# Sums are taken in another order than numpy's.
RELATIVE = 1e-9


@pytest.fixture(scope="module")
def tables(dumped: Dumped, generated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of one model in two forms: the runs `native` and `dump`, which is AscendCL's."""
    folder = tmp_path_factory.mktemp("index")
    case, opscope = dumped.case, binary(dumped.engine)
    inputs = input_options(case.load_inputs(generated), folder / "inputs")
    opscope.dump(case.model_path(generated), "--form", "native", "--out", folder / "native", *inputs)
    out = folder / "tables"
    opscope.run("index", folder / "native", dumped.out_dir, "--out", out, "--stats", "--json")
    return out


def ask(tables: Path, question: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for statement in (tables / "views.sql").read_text().split(";"):
            if statement.strip():
                connection.execute(statement)
        return connection.execute(question).fetchall()


def test_forms_give_the_same_rows(dumped: Dumped, tables: Path) -> None:
    counts = "n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg_zero, n_negative, n_subnormal, n_saturated"
    numbers = "min, max, sum, mean, std, l1, l2"
    # AscendCL's files leave absent optional inputs out and count on, so slots are identified by their order.
    order = "row_number() over (partition by run, position, side order by slot)"
    columns = f"op_type, op_name, call, side, {order}, dtype, shape, n_elements, n_bytes, digest, {counts}, {numbers}"
    rows = {run: Counter(map(repr, found)) for run, found in by_run(tables, f"select run, {columns} from tensors").items()}
    assert set(rows) == {"native", "dump"}
    if is_repeatable(dumped):
        assert rows["native"] == rows["dump"]
    n_slots = sum(len(operator.slots) for operator in dumped.operators)
    assert {found.total() for found in rows.values()} == {n_slots}


def by_run(tables: Path, question: str) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for run, *row in ask(tables, question):
        found.setdefault(run, []).append(tuple(row))
    return found


def is_repeatable(dumped: Dumped) -> bool:
    drawing = ("RandomNormal", "RandomUniform", "Dropout", "Multinomial", "Bernoulli")
    return not any(operator.op_type.startswith(drawing) for operator in dumped.operators)


def test_statistics_are_those_of_numpy(dumped: Dumped, tables: Path) -> None:
    (run_dir,) = (tables.parent / "native").iterdir()
    columns = "file, \"offset\", n_bytes, dtype, shape, n_elements, n_nan, n_zero, min, max, sum, mean, l1, l2"
    for row in ask(tables, f"select {columns} from tensors where run = 'native'"):
        file, offset, n_bytes, dtype, shape, n_elements, n_nan, n_zero, low, high, total, mean, l1, l2 = row
        bytes_ = (run_dir / file).read_bytes()[offset : offset + n_bytes]
        values = np.frombuffer(bytes_, np.dtype(getattr(ml_dtypes, dtype, dtype))).reshape(shape)
        assert n_elements == values.size
        if values.dtype.kind not in "fiu" or not values.size:
            continue
        values = values.astype(np.longdouble).ravel()
        real = values[~np.isnan(values)]
        assert (n_nan, n_zero) == (values.size - real.size, (values == 0).sum())
        if not real.size or not np.isfinite(np.abs(real).sum()):
            continue
        assert (low, high) == (float(real.min()), float(real.max()))
        size = float(np.abs(real).sum())
        expected = [float(real.sum()), float(real.mean()), size, float(np.sqrt((real * real).sum()))]
        close = np.isclose([total, mean, l1, l2], expected, rtol=RELATIVE, atol=RELATIVE * size)
        assert close.all(), (row, expected)


def test_edges_are_those_of_the_graph(dumped: Dumped, tables: Path, generated: Path) -> None:
    if dumped.case.stem not in SIMPLE:
        pytest.skip("bodies of loops and branches have edges of their own")
    graph = onnx.load(dumped.case.model_path(generated), load_external_data=False).graph
    makers = {value: node for node in graph.node for value in node.output if value}
    names = {id(node): node.name or node.output[0] for node in graph.node}
    expected = {
        (value, names[id(makers[value])], names[id(node)])
        for node in graph.node
        for value in node.input
        if value in makers and makers[value].op_type != "Constant"
    }
    for run, found in by_run(tables, "select run, value, producer, consumer from edges").items():
        assert set(found) - {edge for edge in found if edge[0] not in makers} >= expected, run


def test_operators_sum_up_their_tensors(tables: Path) -> None:
    asked = ask(
        tables,
        "select count(*) from operators o join (select run, rank, step, position, count(*) n, sum(n_bytes) b "
        "from tensors group by all) t using (run, rank, step, position) "
        "where o.n_inputs + o.n_outputs <> n or o.input_bytes + o.output_bytes <> b",
    )
    assert asked == [(0,)]
    n_operators, n_executions = ask(
        tables,
        "select (select count(*) from operators), (select count(distinct (run, rank, step, position)) from tensors)",
    )[0]
    assert n_operators == n_executions


def test_events_are_outputs_that_are_not_finite(tables: Path) -> None:
    found = ask(tables, "select run, op_name, output, event from events")
    expected = ask(
        tables,
        "select run, op_name, slot from tensors where side = 'output' and n_nan + n_pos_inf + n_neg_inf > 0",
    )
    assert Counter(row[:3] for row in found) == Counter(expected)
    made = ask(
        tables,
        "select run, op_name, slot from tensors t where side = 'output' and n_nan + n_pos_inf + n_neg_inf > 0 and not exists "
        "(from tensors i where i.run = t.run and i.step = t.step and i.position = t.position and i.side = 'input' "
        "and i.n_nan + i.n_pos_inf + i.n_neg_inf > 0)",
    )
    assert Counter(row[:3] for row in found if row[3] == "made_non_finite") == Counter(made)


def test_what_is_there_is_not_made_again(tool: Binary, tmp_path: Path) -> None:
    """Parts follow the dump: new steps, changed files, removed ones, and statistics that are asked for later."""
    options = ("--form", "acl", "--input", f"image={DIGITS / 'images.npy'}", "--steps", 3, "--engine", "tract")
    tool.dump(DIGITS_CASE.model_path(DIGITS), "--out", tmp_path / "dump", *options)
    parts = parts_of(tool, tmp_path / "dump")
    assert (parts["parts_written"], parts["parts_current"], parts["statistics_computed"]) == (3, 0, 0)
    parts = parts_of(tool, tmp_path / "dump")
    assert (parts["parts_written"], parts["parts_current"]) == (0, 3)
    parts = parts_of(tool, tmp_path / "dump", "--stats")
    assert (parts["parts_written"], parts["statistics_computed"]) == (3, 72)
    (step,) = (tmp_path / "dump").glob("*/0/digits_cnn/1/1")
    first = min(step.iterdir())
    os.utime(first, (1, 1))
    assert parts_of(tool, tmp_path / "dump", "--stats")["parts_written"] == 1
    for file in step.iterdir():
        file.unlink()
    parts = parts_of(tool, tmp_path / "dump", "--stats")
    assert (parts["parts_written"], parts["parts_current"], parts["parts_removed"]) == (0, 2, 1)


def parts_of(tool: Binary, dump: Path, *options: str) -> dict[str, Any]:
    return json.loads(tool.run("index", dump, "--json", *options))["dumps"][0]
