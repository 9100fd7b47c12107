"""The table `compare` of an index says what the report in CSV says, to DuckDB and to `opscope sql`.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_compare_table.py
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pytest
from binary import Binary
from cases import DIGITS

# Columns of the report in CSV that the table has under other names, or in two.
OTHERWISE = {"repeat": "call", "in_verdict": None, "slot": None, "golden_slot": None}


@pytest.fixture(scope="module")
def dumps(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A faulty run of two steps, and the sound one, which has the first step only."""
    folder = tmp_path_factory.mktemp("compare_table")
    for run, model, n_steps in (("faulty", "digits_cnn_transposed", 2), ("sound", "digits_cnn", 1)):
        images = ("--input", f"image={DIGITS / 'images.npy'}", "--steps", n_steps)
        tool.dump(DIGITS / f"{model}.onnx", "--out", folder / run, *images)
    return [folder / "faulty", folder / "sound"]


@pytest.fixture(scope="module")
def tables(tool: Binary, dumps: list[Path]) -> Path:
    out = dumps[0].parent / "tables"
    tool.run("index", *dumps, "--out", out, "--compare")
    return out


def as_text(value: Any) -> str:
    """A value of DuckDB as the report has it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return str(value) if not math.isfinite(value) else repr(value)
    return str(value)


def is_same(cell: str, value: Any) -> bool:
    if isinstance(value, (int, float)) and cell not in ("", "inf", "-inf", "nan"):
        return float(cell) == value
    return cell == as_text(value)


def test_rows_are_those_of_the_report(tool: Binary, dumps: list[Path], tables: Path, tmp_path: Path) -> None:
    command = tool.command("compare", *dumps, "--csv", tmp_path / "r.csv", "--parquet", tmp_path / "r.parquet")
    # The steps that the sound run lacks are not compared, and something differs.
    assert subprocess.run(command, capture_output=True, timeout=600).returncode == 1
    with open(tmp_path / "r.csv", newline="") as file:
        report = list(csv.DictReader(file))
    part = tables / "compare" / "faulty" / "sound.parquet"
    for path in (tmp_path / "r.parquet", part):
        relation = duckdb.sql(f"select * from '{path}'")
        rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
        assert {(row["run"], row["golden_run"]) for row in rows} == {("faulty", "sound")}
        assert len(rows) == len(report)
        # The report begins with the operator at fault, and the table is in the order of execution.
        compared = sorted((row for row in report if row["index"]), key=lambda row: int(row["index"]))
        ordered = compared + [row for row in report if not row["index"]]
        for row, expected in zip(rows, ordered, strict=True):
            for name, cell in expected.items():
                column = OTHERWISE.get(name, name)
                if column is not None:
                    assert is_same(cell, row[column]), (name, cell, row[column])
            assert row["in_verdict"] == (expected["in_verdict"] == "yes")
            for end in ("", "golden_"):
                known = f"{row[end + 'side']}.{row[end + 'slot']}" if row[end + "side"] else ""
                assert known == expected[end + "slot"]
    levels = {row["level"] for row in rows}
    assert levels == {"pass", "fail", "skip"}


QUESTIONS = [
    "select run, golden_run, level, count(*) n from compare group by run, golden_run, level order by level",
    "select op_name, side, slot, rel_l2, target_max, golden_max from compare where level = 'fail' order by \"index\", side, slot",
    "select op_name, side, slot, cause from compare where in_verdict order by side, slot",
    "select c.op_name, c.max_abs, t.dtype, t.n_elements from compare c join tensors t on t.run = c.run and t.rank = c.rank and "
    "t.step = c.step and t.op_name = c.op_name and t.call = c.call and t.side = c.side and t.slot = c.slot "
    "order by t.position, t.side, t.slot",
    "select reason, count(*) n from compare where level = 'skip' group by reason order by reason",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_duckdb_and_sql_give_one_answer(question: str, tool: Binary, dumps: list[Path], tables: Path) -> None:
    with duckdb.connect() as connection:
        for statement in (tables / "views.sql").read_text().split(";"):
            if statement.strip():
                connection.execute(statement)
        found = connection.execute(question)
        names = [column[0] for column in found.description]
        expected = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    assert expected
    from_tables = ask(tool, question, tables)
    assert from_tables == [{name: finite(cell) for name, cell in row.items()} for row in expected]
    assert ask(tool, question, *dumps, "--compare") == from_tables


def finite(cell: Any) -> Any:
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else cell


def ask(tool: Binary, question: str, *arguments: object) -> list[dict[str, Any]]:
    lines = tool.run("sql", question, *arguments, "--format", "jsonl").splitlines()
    return [json.loads(line) for line in lines]


def test_what_is_there_is_not_made_again(tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    sound = tmp_path / "sound"
    shutil.copytree(dumps[1], sound)
    out = tmp_path / "tables"
    index = ("index", dumps[0], sound, "--out", out, "--compare")
    tool.run(*index)
    part = out / "compare" / "faulty" / "sound.parquet"
    first = os.stat(part)
    tool.run(*index)
    assert os.stat(part).st_ino == first.st_ino, "nothing has changed"
    (table,) = sound.rglob("step-0.parquet")
    os.utime(table, ns=(first.st_mtime_ns, first.st_mtime_ns + 10**9))
    tool.run(*index)
    assert os.stat(part).st_ino != first.st_ino, "a file of the golden dump is another one"


def test_runs_of_one_name_are_told_apart(tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    shutil.copytree(dumps[1], tmp_path / "other" / "faulty")
    question = "select distinct run, golden_run from compare"
    answer = ask(tool, question, dumps[0], tmp_path / "other" / "faulty", "--compare")
    assert answer == [{"run": "faulty", "golden_run": "faulty-2"}]
    # Two indexes that call their runs alike are asked together.
    tables = []
    for folder in ("a", "b"):
        tool.run("index", *dumps, "--out", tmp_path / folder, "--compare")
        tables.append(tmp_path / folder)
    answer = ask(tool, "select distinct run, golden_run from compare order by run", *tables)
    assert answer == [{"run": "faulty", "golden_run": "sound"}, {"run": "faulty-2", "golden_run": "sound-2"}]


@pytest.mark.parametrize("command", [("index", "--out", "tables"), ("sql", "select 1")])
def test_other_numbers_of_dumps_are_refused(command: tuple[str, ...], tool: Binary, dumps: list[Path], tmp_path: Path) -> None:
    for asked in (dumps[:1], [*dumps, dumps[0]]):
        done = subprocess.run(tool.command(*command, *asked, "--compare"), cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.returncode == 2
        assert "`--compare` takes two dumps" in done.stderr
