"""`python -m opscope sql` asks the Python package `duckdb`, with the same bounds as the program.

`tests/e2e/test_sql.py` has the questions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from onnx_models import write_linear

SECONDS_MAX = 120
ENDLESS = "with recursive t as (select 1 as x union all select x + 1 from t) select count(*) from t"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sql")
    model = write_linear(folder)
    command = [sys.executable, "-m", "opscope", "dump", model, "--seed", "1", "--form", "native", "--out", folder / "it's"]
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS_MAX)
    return folder / "it's"


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opscope", "sql", *map(str, arguments)]
    # Without the program `duckdb`, the package alone can answer.
    settings = {"env": {**os.environ, "PATH": "/nowhere"}, "capture_output": True, "text": True, "timeout": SECONDS_MAX}
    return subprocess.run(command, check=False, **{**settings, **options})


def test_the_package_answers(dump: Path) -> None:
    question = (
        "select run, op_type, n_nan, 'nan'::double no_number, sum(9007199254740993::bigint) over () m, shape "
        "from tensors order by position, slot"
    )
    done = run(question, dump, "--stats", "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["run"] for row in rows} == {"it's"}
    assert {row["no_number"] for row in rows} == {"nan"}
    assert {row["m"] for row in rows} == {len(rows) * 9007199254740993}
    assert {row["n_nan"] for row in rows} == {0}
    table = run("select 1 as one, 'text' as other, null as none", dump)
    assert table.stdout.splitlines() == ["one  other  none", "  1  text   NULL"]


@pytest.mark.parametrize(
    "question",
    [
        "copy tensors to 'x.csv'",
        "attach 'x.db'",
        "install httpfs",
        "set threads = 1",
        "select 1; select 2",
        "select 1\n;\ncopy tensors to 'x.csv'",
        "select * from read_text('/etc/passwd')",
        "select * from read_csv('/dev/fd/0')",
        "select * from glob('/*')",
        "select * from connection",
        "select * from sys",
        "selec 1",
    ],
)
def test_a_question_only_reads(question: str, dump: Path, tmp_path: Path) -> None:
    done = run(question, dump, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_what_never_ends_is_ended(dump: Path, tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    start = time.monotonic()
    done = run(ENDLESS, dump, "--timeout", 3, env=env)
    assert done.returncode == 3
    assert "--timeout" in done.stderr
    assert time.monotonic() - start < SECONDS_MAX / 2
    done = run(ENDLESS.replace("union all", "union"), dump, "--memory", "32MiB", env=env)
    assert done.returncode == 3
    assert "--memory" in done.stderr
    assert not list(tmp_path.iterdir())


def test_modules_beside_the_dump_are_not_imported(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "duckdb.py").write_text("raise SystemExit('another duckdb')")
    script = "import sys; sys.path.pop(0); from opscope.__main__ import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "sql", "select 1 as n", str(dump), "--format", "csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n1\n", "")
