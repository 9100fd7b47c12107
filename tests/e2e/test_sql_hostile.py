"""`opscope sql` answers, and does nothing else: questions that write, look elsewhere or never end.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_sql_hostile.py
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

import onnx
import pytest
from binary import Binary
from test_sql import logarithms

SECRET = "do not tell"
MARK = "OPSCOPE_TEST_MARK"
SECONDS_MAX = 120
ENDLESS = "with recursive t as (select 1 as x union all select x + 1 from t) select count(*) from t"

WRITING = [
    "copy tensors to 'x.csv'",
    "copy (select 1) to 'x.parquet' (format parquet)",
    "export database 'x'",
    "attach 'x.db'",
    "attach 'x.db' as x (type sqlite)",
    "install httpfs",
    "force install httpfs from 'http://127.0.0.1:1'",
    "load httpfs",
    "set memory_limit = '1TB'",
    "set enable_external_access = true",
    "reset memory_limit",
    "pragma memory_limit = '1TB'",
    "pragma enable_profiling = 'json'",
    "create table x as select 1",
    "create or replace view tensors as select 1",
    "create macro x() as 1",
    "create secret x (type s3)",
    "insert into tensors select * from tensors",
    "update tensors set step = 1",
    "delete from tensors",
    "drop view tensors",
    "checkpoint",
    "vacuum",
    "begin",
    "prepare x as select 1",
    "call pragma_version()",
    "explain select 1",
    "import database 'x'",
    "use memory",
    "select 1; select 2",
    "select 1; copy tensors to 'x.csv'",
    "select 1) to 'x.csv' (format csv); select (1",
    "select 1') to 'x.csv' (format csv) --",
    "select 1\\') to 'x.csv' (format csv) --",
    ".shell touch x",
    ".output x",
    ".read x",
    "select 1;\n.shell touch x\n",
    "select 1\n;\n.shell touch x",
    "\n.shell touch x\nselect 1",
    "select * from query('copy tensors to ''x.csv''')",
    "select * from query('select 1; select 2')",
    "",
    "-- nothing",
]

LOOKING = [
    "select * from read_csv('{file}')",
    "select * from read_csv_auto('{file}')",
    "select * from read_text('{file}')",
    "select * from read_blob('{file}')",
    "select * from read_json('{file}')",
    "select * from '{file}'",
    "select * from read_text('{folder}/*')",
    "select * from glob('{folder}/*')",
    "select * from sniff_csv('{file}')",
    "select * from read_text('/proc/self/environ')",
    "select * from read_text('/dev/fd/0')",
    "select * from read_csv('http://127.0.0.1:1/x.csv')",
    "select * from parquet_metadata('{file}')",
    "select * from read_parquet('{parquet}')",
    "select * from read_parquet('{tables}/*/*/*.parquet')",
    "select getenv('OPSCOPE_SECRET')",
    "select * from query('select * from read_text(''{file}'')')",
    "select * from json_execute_serialized_sql(json_serialize_sql('select * from read_text(''{file}'')'))",
]


@pytest.fixture(scope="module")
def dump(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    onnx.save(logarithms(is_longer=False), folder / "model.onnx")
    tool.dump(folder / "model.onnx", "--seed", 1, "--form", "native", "--out", folder / "dump")
    return folder / "dump"


@pytest.fixture(scope="module")
def tables(tool: Binary, dump: Path) -> Path:
    out = dump.parent / "tables"
    tool.run("index", dump, "--out", out, "--stats")
    return out


def run(tool: Binary, query: str, dump: Path, *options: object, **settings: object) -> subprocess.CompletedProcess[str]:
    command = tool.command("sql", query, dump, *options)
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, **settings)


@pytest.mark.parametrize("query", WRITING)
def test_questions_that_do_more_than_read_are_refused(query: str, tool: Binary, tables: Path, tmp_path: Path) -> None:
    done = run(tool, query, tables, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr
    assert not done.stdout
    assert not list(tmp_path.iterdir())
    assert run(tool, "select count(*) n from tensors", tables).returncode == 0


@pytest.mark.parametrize("query", LOOKING)
def test_nothing_but_the_tables_is_read(query: str, tool: Binary, tables: Path, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text(SECRET)
    parquet = next((tables / "tensors").rglob("*.parquet"))
    shutil.copy(parquet, tmp_path / "copy.parquet")
    query = query.format(file=tmp_path / "file.txt", folder=tmp_path, parquet=tmp_path / "copy.parquet", tables=tables)
    done = run(tool, query, tables, cwd=tmp_path, env={**os.environ, "OPSCOPE_SECRET": SECRET})
    assert done.returncode in (2, 3), done.stdout
    assert not done.stdout
    assert SECRET not in done.stderr


def test_texts_stay_texts(tool: Binary, tables: Path, tmp_path: Path) -> None:
    shell = "\n.shell touch x\n"
    for text in (shell, "'; copy tensors to 'x'; --", "\\", "a\\'b", "e'", "$$", "\r\n;\r\n", "é 漢 \u2028"):
        quoted = text.replace("'", "''")
        done = run(tool, f"select '{quoted}' as t", tables, "--format", "jsonl", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), text
        assert json.loads(done.stdout) == {"t": text}
    assert not list(tmp_path.iterdir())


def test_names_of_directories_are_names(tool: Binary, dump: Path, tmp_path: Path) -> None:
    """Quotes, patterns and line feeds in the names of dumps and of what they are in."""
    places = [tmp_path / "it's [1]*?" / "a'b\"; .x\n$1", tmp_path / "it's [1]*?" / "other" / "a'b\"; .x\n$1"]
    for place in places:
        shutil.copytree(dump, place)
    # What the first would be as a pattern.
    shutil.copytree(dump, tmp_path / "it's 1x" / "a'b\"; .x\n$1")
    done = run(tool, "select run, count(*) n from tensors group by run order by run", *places, "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    (label,) = os.listdir(places[0] / ".opscope/index/tensors")
    assert [row["run"] for row in rows] == [label, f"{label}-2"]
    assert rows[0]["n"] == rows[1]["n"] > 0


def test_deep_questions_end(tool: Binary, tables: Path) -> None:
    for query, codes in (
        ("select " + "(" * 5000 + "1" + ")" * 5000, (0, 2, 3)),
        ("select " + "+".join(["1"] * 100) + " as n", (0,)),
        ("select * from (" * 300 + "select 1" + ")" * 300, (0, 2, 3)),
        ("select " + "abs(" * 900 + "1" + ")" * 900, (0, 2, 3)),
    ):
        done = run(tool, query, tables, "--timeout", 60)
        assert done.returncode in codes, done.stderr
        assert "panicked" not in done.stderr


def processes(mark: str) -> list[str]:
    """Those that have a mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "comm").read_text().strip())
        except OSError:
            continue
    return found


def test_what_never_ends_is_ended(tool: Binary, tables: Path, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    env = {**os.environ, MARK: mark, "TMPDIR": str(tmp_path)}
    start = time.monotonic()
    done = run(tool, ENDLESS, tables, "--timeout", 2, env=env)
    assert done.returncode == 3
    assert "--timeout" in done.stderr
    assert time.monotonic() - start < SECONDS_MAX / 2
    # Rows that are kept need memory, and then room for temporary files.
    for query in (ENDLESS.replace("union all", "union"), "select * from range(1000000000000) order by random()"):
        done = run(tool, query, tables, "--memory", "32MiB", "--format", "csv", env=env)
        assert done.returncode == 3, done.stderr
        assert "--memory" in done.stderr
    assert not processes(mark)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_question(number: signal.Signals, tool: Binary, tables: Path, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    env = {**os.environ, MARK: mark, "TMPDIR": str(tmp_path)}
    command = tool.command("sql", ENDLESS, tables)
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        deadline = time.monotonic() + SECONDS_MAX
        while "duckdb" not in processes(mark) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)
        assert child.poll() is None
        child.send_signal(number)
        # A shell shows 130 for the first.
        assert child.wait(timeout=20) == -number
    assert not processes(mark)
    assert not list(tmp_path.iterdir())


def test_a_missing_or_old_duckdb_is_told(tool: Binary, dump: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PATH": str(tmp_path)}
    shutil.copytree(dump, tmp_path / "dump", ignore=shutil.ignore_patterns(".opscope"))
    done = run(tool, "select 1", tmp_path / "dump", env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install" in done.stderr
    assert str(tmp_path / "dump/.opscope/index") in done.stderr
    assert list((tmp_path / "dump/.opscope/index/tensors").rglob("*.parquet"))
    old = tmp_path / "duckdb"
    old.write_text('#!/bin/sh\nread line\necho \'{"version":"v1.1.3"}\'\nread line\n')
    old.chmod(0o755)
    done = run(tool, "select 1", tmp_path / "dump", env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "v1.1.3" in done.stderr
    assert "pip install" in done.stderr
    old.write_text("#!/bin/sh\necho 'nothing here' >&2\nexit 3\n")
    done = run(tool, "select 1", tmp_path / "dump", env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing here" in done.stderr
