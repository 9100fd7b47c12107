"""What an index of a run of many ranks costs, and what it takes to ask it: `index_scale.py OPSCOPE DUMPS`.

DUMPS has two native dumps of statistics, `sound` and `faulty`, that `many_ranks` of opscope-store's benchmarks made.
`opscope index` makes tables of both. Three questions go to `opscope sql` and to DuckDB with `views.sql` in turn, each
in a separate process, with two threads and 4 GiB; every answer is known from how the dumps were made. Shown are the
shortest of three runs with the limit, and the peak memory of a process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb_cli

GIB = 1 << 30
N_ROUNDS = 3
INDEX_BYTES_MAX = 6 * 10**9
MEMORY_MAX = 4 * GIB
# Of each operator.
N_SLOTS = 10

DUCKDB = """
import sys, duckdb, json
connection = duckdb.connect(config={"threads": 2, "memory_limit": "4GiB"})
for statement in open(sys.argv[1]).read().split(";"):
    if statement.strip():
        connection.execute(statement)
found = connection.execute(sys.argv[2])
names = [column[0] for column in found.description]
for row in found.fetchall():
    print(json.dumps(dict(zip(names, row))))
"""

# The first two are asked of one run.
FIRST_NAN = (
    "select run, rank, step, position, op_name from tensors where side = 'output' and n_nan > 0 "
    "order by step, position, rank, slot limit 1"
)
BY_TYPE = "select op_type, count(*) n, max(max) high, avg(mean) middle from tensors group by op_type order by op_type"
FIRST_CHANGED = (
    "select rank, step, position, op_name, side, slot from first_changed('sound', 'faulty') order by rank"
)


def shape_of(dumps: Path) -> tuple[int, int, int]:
    """Numbers of ranks, steps and operators."""
    (run,) = (dumps / "sound").glob("2*")
    ranks = list(run.glob("rank-*"))
    steps = list((ranks[0] / "transformer-1").glob("step-*.parquet"))
    import duckdb

    ((n_rows,),) = duckdb.sql(f"select count(*) from '{steps[0]}'").fetchall()
    return len(ranks), len(steps), n_rows // N_SLOTS


def measured(command: list[object]) -> tuple[str, float, int]:
    """The output of a command, its seconds, and its peak memory."""
    start = time.perf_counter()
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    assert os.waitstatus_to_exitcode(status) == 0, command
    return text, seconds, usage.ru_maxrss * 1024


def show(label: str, seconds: float, limit: float, peak: int, others: str = "") -> None:
    print(f"{label:<42}{seconds:8.2f} s ({seconds / limit:5.2f} of {limit:g} s){peak / (1 << 20):8.0f} MiB{others}", flush=True)


def check_first_nan(rows: list[dict], n_ranks: int, n_steps: int, n_operators: int) -> None:
    rank = n_ranks // 2
    (row,) = rows
    assert (row["run"], row["rank"], row["step"], row["position"]) == ("faulty", rank, n_steps - 1, rank * 7 % n_operators)


def check_by_type(rows: list[dict], n_ranks: int, n_steps: int, n_operators: int) -> None:
    assert len(rows) == 12
    assert sum(row["n"] for row in rows) == n_ranks * n_steps * n_operators * N_SLOTS
    assert all(2.99 < row["high"] <= 3 and 0.49 < row["middle"] < 0.51 for row in rows)


def check_first_changed(rows: list[dict], n_ranks: int, n_steps: int, n_operators: int) -> None:
    # Inputs come before outputs.
    expected = [(rank, n_steps - 1, rank * 7 % n_operators, "input", 0) for rank in range(n_ranks)]
    assert [(row["rank"], row["step"], row["position"], row["side"], row["slot"]) for row in rows] == expected


def main(opscope: Path, dumps: Path) -> None:
    os.environ["PATH"] = os.pathsep.join([str(Path(duckdb_cli.__file__).parent), os.environ["PATH"]])
    shape = shape_of(dumps)
    n_rows = shape[0] * shape[1] * shape[2] * N_SLOTS
    tables = dumps / "tables"
    for run in ("sound", "faulty"):
        _, seconds, peak = measured([opscope, "index", dumps / run, "--out", tables / run, "--jobs", 2])
        n_bytes = sum(path.stat().st_size for path in (tables / run).rglob("*.parquet"))
        allowed = INDEX_BYTES_MAX * n_rows / 60e6
        print(
            f"index of `{run}`, {n_rows} rows: {seconds:.1f} s, {n_rows / seconds / 1e6:.2f} million rows/s, {n_bytes / 1e9:.2f} GB "
            f"({n_bytes / allowed:.2f} of the limit), {n_bytes / n_rows:.0f} bytes a row, {peak >> 20} MiB",
            flush=True,
        )
    # DuckDB's views are over one directory of tables.
    faulty, both = tables / "faulty", tables / "both"
    for table in ("tensors", "operators", "edges", "events"):
        (both / table).mkdir(parents=True, exist_ok=True)
        for run in ("sound", "faulty"):
            (both / table / run).symlink_to(tables / run / table / run)
    views = (faulty / "views.sql").read_text().replace(str(faulty), str(both))
    (both / "views.sql").write_text(views)
    questions = [
        ("first NaN over all ranks", FIRST_NAN, faulty, check_first_nan, 0.5),
        ("group by type, three aggregates", BY_TYPE, faulty, check_by_type, 2.0),
        ("first difference of two runs by rank", FIRST_CHANGED, both, check_first_changed, 15.0),
    ]
    for label, question, asked, check, limit in questions:
        found: dict[str, tuple[float, int]] = {}
        commands = {
            "opscope sql": [opscope, "sql", question, asked, "--jobs", 2, "--format", "jsonl"],
            "DuckDB": [sys.executable, "-c", DUCKDB, asked / "views.sql", question],
        }
        for _ in range(N_ROUNDS):
            for name, command in commands.items():
                text, seconds, peak = measured(command)
                check([json.loads(line) for line in text.splitlines()], *shape)
                best, highest = found.get(name, (seconds, peak))
                found[name] = min(best, seconds), max(highest, peak)
        for name, (seconds, peak) in found.items():
            show(f"{label}: {name}", seconds, limit, peak, "" if peak <= MEMORY_MAX else " (too much)")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
