"""`opscope sql` returns SQLite's answers on the same tables, in every format, and does nothing but answer.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_sql.py
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import onnx
import pytest
from binary import Binary
from onnx import TensorProto, helper
from sqlite_tables import SqliteTables

# Sums of the same numbers are taken in other orders.
RELATIVE = 1e-12

QUERIES = [
    "select count(*) from tensors",
    "select run, count(*) n from tensors group by run",
    "select count(distinct op_name), count(distinct step), count(distinct digest) from tensors",
    "select op_type, count(*) n, min(min) low, max(max) high, avg(mean) from tensors group by op_type",
    "select dtype, side, sum(n_elements), sum(n_bytes) from tensors group by dtype, side",
    "select * from tensors where side = 'output' order by run, step, position, slot limit 7",
    "select run, step, position, op_name, n_nan from tensors where n_nan > 0",
    "select * from first_nan",
    "select * from first_made_non_finite",
    "select * from events",
    "select event, count(*), sum(n_nan), sum(n_pos_inf), sum(n_neg_inf) from events group by event",
    "select * from operators",
    "select op_type, sum(output_bytes) total from operators group by op_type having sum(output_bytes) > 40",
    "select * from edges",
    "select producer, count(distinct consumer) from edges where run = 'sound' group by producer",
    "select * from pairs",
    "select * from changed",
    "select * from first_changed",
    "select * from worst",
    "select * from unmatched",
    "select * from pairs('sound', 'other')",
    "select * from changed('sound', 'other')",
    "select * from changed('other', 'sound')",
    "select * from first_changed('sound', 'other')",
    "select op_name, side, slot, l2_error from worst('sound', 'other') order by l2_error desc, op_name, side, slot",
    "select * from unmatched('sound', 'longer')",
    "select count(*) from pairs('sound', 'longer')",
    "select count(*) from pairs('sound', 'sound')",
    "select op_name, step, max_b from pairs('longer', 'other') where step > 0 and max_b > 0 and op_type <> 'Add'",
    "select run_b, step, count(distinct digest_a) from changed('other', 'longer') group by run_b, step",
    "select a.op_name, count(*) from pairs('sound', 'other') a join pairs('sound', 'longer') b using (op_name, step) group by a.op_name",
    "select run, step, op_name, shape from tensors where side = 'input' and slot = 0",
    "select op_name, shape[1] first_extent from tensors where run = 'sound' and step = 0",
    "select op_name, l2 / sqrt(n_elements) as rms from tensors where n_elements > 0 and l2 is not null",
    "select run, op_name, std from tensors where op_name like '%log%' and side = 'output'",
    "select upper(op_type) t, length(op_name) n from operators where position % 2 = 0",
    "select case when n_zero = n_elements then 'zero' else 'other' end as what, count(*) from tensors "
    "group by case when n_zero = n_elements then 'zero' else 'other' end",
    "select run, step, position, sum(n_bytes) over (partition by run, step order by position, side, slot) from tensors",
    "select op_name, rank() over (order by l2 desc nulls last) r from tensors where run = 'sound' and step = 1 and slot = 0 "
    "and side = 'output'",
    "select t.op_name, o.n_inputs from tensors t join operators o using (run, step, position) where t.slot = 1",
    "select e.producer, e.consumer, t.max from edges e left join tensors t on t.run = e.run and t.step = e.step "
    "and t.op_name = e.producer and t.slot = e.output and t.side = 'output'",
    "with big as (select * from tensors where n_elements >= 6) select run, count(*) from big group by run",
    "select op_name from tensors where run = 'longer' except select op_name from tensors where run = 'sound'",
    "select op_name from tensors where run = 'longer' union select op_type from operators",
    "select run, op_name from operators o where exists (select 1 from events v where v.run = o.run and v.op_name = o.op_name)",
    "select min(step), max(step), run from tensors where rank is null or rank >= 0 group by run",
    "select coalesce(module, source, 'unknown') place, count(*) from tensors group by coalesce(module, source, 'unknown')",
    "select array_agg(distinct run order by run) runs, op_name from operators group by op_name",
    'select "percent", count(*) from (select floor(n_zero * 10 / n_elements) "percent" from tensors where n_elements > 0) t '
    'group by "percent"',
]


@pytest.fixture(scope="module")
def dumps(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs of a model that takes logarithms, with other inputs, and one of a model that is longer."""
    folder = tmp_path_factory.mktemp("sql")
    random = np.random.default_rng(3)
    for run, n_steps, offset in (("sound", 3, 3.0), ("other", 3, 0.5), ("longer", 2, 0.0)):
        model = folder / f"{run}.onnx"
        onnx.save(logarithms(is_longer=run == "longer"), model)
        np.save(folder / f"{run}.npy", (random.normal(size=(2, 3)) + offset).astype(np.float32))
        inputs = ("--input", f"x={folder / run}.npy", "--steps", n_steps)
        tool.dump(model, "--form", "native", "--out", folder / run, *inputs)
    return [folder / run for run in ("sound", "other", "longer")]


def logarithms(*, is_longer: bool) -> onnx.ModelProto:
    weights = np.array([[1.0, -2.0, 0.5], [0.25, 1.0, -1.0], [2.0, 0.5, 1.0]], np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "matmul"),
        helper.make_node("Log", ["h"], ["l"], "log"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("Add", ["l", "r"], ["y"], "add"),
    ]
    if is_longer:
        nodes.append(helper.make_node("Exp", ["y"], ["z"], "exp"))
    output = "z" if is_longer else "y"
    graph = helper.make_graph(
        nodes,
        "logarithms",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [2, 3])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def tables(tool: Binary, dumps: list[Path]) -> Path:
    out = dumps[0].parent / "tables [1] #"
    tool.run("index", *dumps, "--out", out, "--stats")
    return out


@pytest.fixture(scope="module")
def sqlite(tables: Path) -> SqliteTables:
    return SqliteTables(tables)


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_another_engine(query: str, tool: Binary, tables: Path, sqlite: SqliteTables) -> None:
    answer = ask(tool, query, tables)
    names, expected = sqlite.ask(query)
    rows = [list(row.values()) for row in answer]
    if not any("(" in name for name in names):
        assert list(answer[0]) == names
    assert expected, "a query without an answer shows nothing"
    if "order by" not in query.rsplit(")", 1)[-1]:
        rows.sort(key=order)
        expected.sort(key=order)
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        assert len(row) == len(wanted)
        assert all(is_same(cell, other) for cell, other in zip(row, wanted, strict=True)), (row, wanted)


def order(row: list[Any]) -> str:
    """Numbers last: they may differ in their last digits, and a NaN is a missing value."""
    exact = [None if isinstance(cell, float) or cell == "nan" else cell for cell in row]
    return repr((exact, [cell for cell in row if isinstance(cell, float)]))


def ask(tool: Binary, query: str, *dumps: object) -> list[dict[str, Any]]:
    lines = tool.run("sql", query, *dumps, "--format", "jsonl").splitlines()
    return [json.loads(line) for line in lines]


def as_json(cell: Any) -> Any:
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    return cell


def is_same(cell: Any, other: Any) -> bool:
    if isinstance(cell, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(cell, other, rel_tol=RELATIVE)
    if cell == "nan":
        return other is None
    return cell == as_json(other)


def test_forms_of_answers_hold_the_same(tool: Binary, tables: Path, tmp_path: Path) -> None:
    query = (
        "select run, step, op_name, side, slot, shape, l2, cast('nan' as double) no_number, cast('-inf' as double) low, module "
        "from tensors order by run, step, position, side, slot"
    )
    rows = ask(tool, query, tables)
    assert {type(row["l2"]) for row in rows} == {float}
    assert {(row["no_number"], row["low"]) for row in rows} == {("nan", "-inf")}
    assert any(row["module"] is None for row in rows), "what is missing is told from what is not a number"
    for name in ("answer.csv", "answer.jsonl", "answer.parquet"):
        tool.run("sql", query, tables, "--out", tmp_path / name)
    assert [json.loads(line) for line in (tmp_path / "answer.jsonl").read_text().splitlines()] == rows
    assert oct((tmp_path / "answer.csv").stat().st_mode & 0o777) == "0o600"
    from_csv = list(csv.DictReader(io.StringIO((tmp_path / "answer.csv").read_text())))
    assert [row["op_name"] for row in from_csv] == [row["op_name"] for row in rows]
    assert [as_json(float(row["l2"])) for row in from_csv] == [row["l2"] for row in rows]
    assert [json.loads(row["shape"]) for row in from_csv] == [row["shape"] for row in rows]
    from_parquet = duckdb.sql(f"select * from '{tmp_path / 'answer.parquet'}'").fetchall()
    assert [[as_json(cell) for cell in row] for row in from_parquet] == [list(row.values()) for row in rows]
    table = tool.run("sql", query, tables, "--rows", 5).splitlines()
    assert table[0].split() == list(rows[0])
    assert len(table) == 1 + 5 + 1
    assert "--rows" in table[-1]


def test_dumps_are_asked_without_an_index(tool: Binary, dumps: list[Path], tables: Path, tmp_path: Path) -> None:
    query = "select run, step, op_name, side, slot, digest, n_nan from tensors order by run, step, position, side, slot"
    assert ask(tool, query, *dumps) != ask(tool, query, tables), "no statistics yet"
    assert ask(tool, query, *dumps, "--stats") == ask(tool, query, tables)
    # They stay after a query without the option.
    assert ask(tool, query, *dumps) == ask(tool, query, tables)
    # A dump of the same name is another run.
    shutil.copytree(dumps[0], tmp_path / "sound")
    counts = ask(tool, "select run, count(*) n from tensors group by run order by run", dumps[0], tmp_path / "sound")
    assert [row["run"] for row in counts] == ["sound", "sound-2"]
    assert counts[0]["n"] == counts[1]["n"]
    changed = ask(tool, "select count(*) n from changed('sound', 'sound-2')", dumps[0], tmp_path / "sound")
    assert changed == [{"n": 0}]
    # What the dump gains is in the next answer.
    (run,) = (path for path in (tmp_path / "sound").iterdir() if path.name != ".opscope")
    shutil.copytree(run, run.with_name("20200101000000"))
    (more,) = ask(tool, "select count(*) n from tensors", tmp_path / "sound")
    assert more["n"] == 2 * counts[0]["n"]


def test_missing_statistics_are_told(tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    shutil.copytree(dumps[0], tmp_path / "plain", ignore=shutil.ignore_patterns(".opscope"))
    for query in (
        "select * from first_nan",
        "select count(*) from events",
        "select max(l2) from tensors",
        "from tensors",
        "summarize tensors",
        "select t from tensors t",
        "select max_a from pairs",
        "select * from query('select min from tensors')",
    ):
        done = run(tool, query, tmp_path / "plain")
        assert done.returncode == 0
        assert "without statistics" in done.stderr, query
    for query in ("select count(*) from tensors", "select * from edges", "select count(op_name) from pairs"):
        assert not run(tool, query, tmp_path / "plain").stderr, query
    assert not run(tool, "select * from first_nan", tmp_path / "plain", "--stats").stderr


@pytest.mark.parametrize(
    ("query", "options", "code", "message"),
    [
        ("selec 1", [], 2, "selec"),
        ("select nothing from tensors", [], 2, "nothing"),
        ("select * from nowhere", [], 2, "nowhere"),
        ("select sum(op_name) from tensors", [], 2, "sum"),
        ("select * from changed('sound')", [], 2, "changed"),
        ("select 1", ["--format", "parquet"], 2, "--out"),
        ("select 1", ["--out", "answer.txt"], 2, "--format"),
        ("select * from tensors a, tensors b, tensors c order by a.l2, b.l2, c.l2", ["--memory", "8MiB"], 3, "--memory"),
    ],
)
def test_mistakes_are_told(
    query: str, options: list[str], code: int, message: str, tool: Binary, tables: Path, tmp_path: Path
) -> None:
    done = run(tool, query, tables, *options, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    # Statements around the question are not the user's.
    assert "copy" not in done.stderr
    assert "LINE" not in done.stderr
    assert not done.stdout
    assert not list(tmp_path.iterdir())


def test_exact_values(tool: Binary, tables: Path, tmp_path: Path) -> None:
    """Numbers that JSON, or Parquet, has no room for."""
    query = (
        f"select 9007199254740993 wide, sum(9007199254740993::bigint) total, {2**127 - 1}::hugeint most, "
        "'nan'::double no_number, 'inf'::double high, '-inf'::float low, [1.5::double, 'nan', null] list, "
        "'NaN\n\"' as text, '' as empty, "
        "null::int as missing, true as is_true, date '2024-02-29' as day"
    )
    expected = {
        "wide": 9007199254740993,
        "total": 9007199254740993,
        "most": 2**127 - 1,
        "no_number": "nan",
        "high": "inf",
        "low": "-inf",
        "list": [1.5, "nan", None],
        "text": 'NaN\n"',
        "empty": "",
        "missing": None,
        "is_true": True,
        "day": "2024-02-29",
    }
    assert ask(tool, query, tables) == [expected]
    text = tool.run("sql", query, tables, "--format", "csv")
    assert text.splitlines()[1].startswith(f"9007199254740993,9007199254740993,{2**127 - 1},nan,inf,-inf,")
    assert text.rstrip("\n").endswith(',"",,true,2024-02-29')
    totals = "select sum(n_bytes) n, sum(9007199254740993::bigint) m from tensors"
    tool.run("sql", totals, tables, "--out", tmp_path / "totals.parquet")
    (totals_found,) = duckdb.sql(f"select n, m from '{tmp_path / 'totals.parquet'}'").fetchall()
    assert list(totals_found) == list(ask(tool, totals, tables)[0].values())
    assert totals_found[1] % 9007199254740993 == 0
    done = run(tool, f"select {2**127 - 1}::hugeint m", tables, "--out", str(tmp_path / "wide.parquet"))
    assert done.returncode == 2, "no number is rounded"
    assert not (tmp_path / "wide.parquet").exists()


def test_damaged_tables_are_told(tool: Binary, tables: Path, tmp_path: Path) -> None:
    """A truncated table causes an error with its name, or the right answer, and never a wrong one."""
    query = "select count(*) n, sum(n_bytes) b, max(l2) m, max(digest) d from tensors where op_name is not null"
    right = ask(tool, query, tables)
    part = next(path.relative_to(tables) for path in sorted((tables / "tensors").rglob("*.parquet")))
    whole = (tables / part).read_bytes()
    shutil.copytree(tables, tmp_path / "tables")
    random = np.random.default_rng(8)
    n_errors = 0
    for _ in range(25):
        damaged = bytearray(whole)
        at = int(random.integers(len(whole)))
        damaged[at] ^= int(random.integers(1, 256))
        cut = len(whole) if random.random() < 0.7 else at
        (tmp_path / "tables" / part).write_bytes(bytes(damaged[:cut]))
        done = run(tool, query, tmp_path / "tables", "--format", "jsonl")
        assert done.returncode in (0, 3), done.stderr
        assert "panicked" not in done.stderr
        n_errors += done.returncode == 3
        if done.returncode == 0 and cut == len(whole):
            assert [json.loads(line) for line in done.stdout.splitlines()] == right
    assert n_errors


def test_parts_that_cannot_answer_stay_closed(tool: Binary, tables: Path, tmp_path: Path) -> None:
    """By the ranges stored with the parts; they are ignored for a changed part."""
    out = tmp_path / "tables"
    shutil.copytree(tables, out)
    query = "select run, step, op_name, n_nan from tensors where step = 1 and n_nan > 0 order by run, op_name, side, slot"
    right = ask(tool, query, out)
    assert right
    # A part of another step, which is empty now: opening it fails.
    part = next(path for path in (out / "tensors/sound").glob("*.parquet") if path.stem.endswith("step-0"))
    times = (part.stat().st_atime_ns, part.stat().st_mtime_ns)
    whole = part.read_bytes()
    part.write_bytes(bytes(len(whole)))
    os.utime(part, ns=times)
    assert ask(tool, query, out) == right
    assert run(tool, "select sum(n_bytes) from tensors", out).returncode == 3
    os.utime(part, ns=(times[0], times[1] + 1))
    assert run(tool, query, out).returncode == 3
    # The step that is asked for, in the place of the other one, which had no row for the question.
    other = next(path for path in (out / "tensors/sound").glob("*.parquet") if path.stem.endswith("step-1"))
    part.write_bytes(other.read_bytes())
    twice = ask(tool, query, out)
    assert len(twice) == len(right) + sum(row["run"] == "sound" for row in right)
    part.write_bytes(whole)
    for ranges in out.rglob("ranges.json"):
        ranges.write_text('{"version": 1, "parts": {"a.parquet": [')
    assert ask(tool, query, out) == right


def run(tool: Binary, query: str, dump: Path, *options: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = tool.command("sql", query, dump, *options)
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
