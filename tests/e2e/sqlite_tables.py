"""The tables of an index in SQLite, with separate views and functions: another engine for the same questions.

SQLite has no lists and no table functions, so that a question is rewritten: shapes are JSON, and `changed('a', 'b')`
is a query. It holds no NaN either, which is a missing value there.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

TABLES = ("tensors", "operators", "edges", "events")

PAIRS = """
select a.run run_a, b.run run_b, a.rank, a.step, a.position, a.op_type, a.op_name, a.call, a.side, a.slot, a.dtype,
    a.shape, a.digest digest_a, b.digest digest_b, a.min min_a, b.min min_b, a.max max_a, b.max max_b,
    a.mean mean_a, b.mean mean_b, a.l2 l2_a, b.l2 l2_b
from tensors a, tensors b
where a.rank is b.rank and a.step is b.step and a.op_name = b.op_name and a.call is b.call and a.side is b.side
    and a.slot is b.slot and a.run <> b.run
"""
PAIR_COLUMNS = (
    "run_a, run_b, rank, step, position, op_type, op_name, call, side, slot, dtype, shape, digest_a, digest_b, "
    "min_a, min_b, max_a, max_b, mean_a, mean_b, l2_a, l2_b"
)
KEY = "rank, step, op_name, call, side, slot"


def first(columns: str, source: str, group: str, order: str) -> str:
    """The first row of each group, by what no earlier row has: without window functions, as the views have them."""
    same = " and ".join(f"x.{name} is y.{name}" for name in group.split(", "))
    x, y = (", ".join(f"{row}.{name}" for name in order.split(", ")) for row in "xy")
    earlier = f"select 1 from ({source}) y where {same} and ({y}) < ({x})"
    return f"select {columns} from ({source}) x where not exists ({earlier})"


def pairs_of(first_run: str, second_run: str) -> str:
    return f"select * from all_pairs where run_a = '{first_run}' and run_b = '{second_run}'"


def worst(pairs: str) -> str:
    return f"select *, abs(l2_a - l2_b) / max(abs(l2_a), abs(l2_b)) l2_error from ({pairs}) where l2_a <> l2_b"


def first_changed(pairs: str) -> str:
    source = f"select * from ({pairs}) where digest_a <> digest_b"
    return first(PAIR_COLUMNS, source, "run_a, run_b, rank", "step, position, side, slot")


def views() -> dict[str, str]:
    nan = "select * from tensors where side = 'output' and n_nan > 0"
    columns = "run, rank, step, position, op_type, op_name, slot, module, source, n_nan"
    made = "select * from events where event = 'made_non_finite'"
    once = "select * from all_pairs where run_a < run_b"
    return {
        "all_pairs": PAIRS,
        "first_nan": first(columns, nan, "run, rank", "step, position, slot"),
        "first_made_non_finite": first("x.*", made, "run, rank", "step, position, output"),
        "pairs": once,
        "changed": f"select * from ({once}) where digest_a <> digest_b",
        "first_changed": first_changed(once),
        "worst": worst(once),
        "unmatched": f"select {KEY}, names(run) runs from tensors group by {KEY} having count(distinct run) < 3",
    }


FUNCTIONS = {
    "pairs": pairs_of,
    "changed": lambda a, b: f"select * from ({pairs_of(a, b)}) where digest_a <> digest_b",
    "first_changed": lambda a, b: first_changed(pairs_of(a, b)),
    "worst": lambda a, b: worst(pairs_of(a, b)),
    "unmatched": lambda a, b: (
        f"select {KEY}, min(run) run from tensors where run in ('{a}', '{b}') group by {KEY} "
        "having count(distinct run) = 1"
    ),
}


class Names:
    """The different texts of a group in order, as a list."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def step(self, name: str) -> None:
        self.names.add(name)

    def finalize(self) -> str:
        return json.dumps(sorted(self.names))


class SqliteTables:
    """Takes the rows of an index, and questions in DuckDB's SQL."""

    def __init__(self, index: Path) -> None:
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.connection.create_function("sqrt", 1, math.sqrt)
        self.connection.create_function("floor", 1, lambda number: float(math.floor(number)))
        self.connection.create_aggregate("names", 1, Names)
        for table in TABLES:
            parts = [str(path) for path in sorted((index / table).glob("*/*.parquet"))]
            rows = duckdb.connect().execute("select * from read_parquet(?)", [parts])
            columns = [column[0] for column in rows.description]
            names = ", ".join(f'"{name}"' for name in columns)
            self.connection.execute(f"create table {table} ({names})")
            marks = ", ".join("?" * len(columns))
            cells = ([stored(cell) for cell in row] for row in rows.fetchall())
            self.connection.executemany(f"insert into {table} values ({marks})", cells)
        for name, query in views().items():
            self.connection.execute(f"create view {name} as {query}")

    def ask(self, question: str) -> tuple[list[str], list[list[Any]]]:
        """The names of columns and the rows."""
        answer = self.connection.execute(translated(question))
        return [column[0] for column in answer.description], [read(row) for row in answer.fetchall()]


def stored(cell: Any) -> Any:
    return json.dumps(cell) if isinstance(cell, list) else cell


def read(row: Iterable[Any]) -> list[Any]:
    return [json.loads(cell) if isinstance(cell, str) and cell.startswith("[") else cell for cell in row]


def translated(question: str) -> str:
    question = re.sub(r"(\w+)\('(\w+)', '(\w+)'\)", lambda call: f"({FUNCTIONS[call[1]](call[2], call[3])})", question)
    question = question.replace("array_agg(distinct run order by run)", "names(run)")
    # SQLite divides whole numbers as whole numbers, and its lists are JSON.
    return question.replace("shape[1]", "json_extract(shape, '$[0]')").replace("* 10 /", "* 10.0 /")
