"""`Dump.to_arrow` on every form of dump, compared with the Parquet files that `opscope index` makes of it."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import arrow
import duckdb
import numpy as np
import opscope
import pytest

GOLDEN = Path(__file__).resolve().parents[2] / "crates/store/tests/golden"
DUMPS = [
    "hdf5/h5py.h5",
    "mindspore/lenet_all",
    "mindspore/train_momentum",
    "mindspore/dtypes",
    "msprobe/statistics_mix",
    "msprobe/tensor_l0",
    "onnx_tensor/debug",
    "onnx_tensor/model",
    "ort_trace/execution-trace-pid1.db",
    "polygraphy/two.json",
    "polygraphy/each",
    "torch_save",
]
FORMATS = {"BIGINT": "l", "DOUBLE": "g", "VARCHAR": "u"}


def command(*arguments: object) -> None:
    finished = subprocess.run([sys.executable, "-m", "opscope", *map(str, arguments)], capture_output=True, text=True)
    # Unreadable files are reported, and the others are present.
    assert finished.returncode in (0, 4), finished.stdout + finished.stderr


def rows(source: str, **tables: Any) -> list[tuple[Any, ...]]:
    # DuckDB finds tables by the names of variables.
    tensors = tables.get("tensors")
    with duckdb.connect() as connection:
        found = connection.execute(f"select * from {source} order by all").fetchall()
    del tensors
    # A NaN is equal to none.
    return [tuple(map(repr, row)) for row in found]


def parquet(folder: Path) -> str:
    return f"read_parquet('{folder}/tensors/*/*.parquet')"


@pytest.mark.parametrize("has_stats", [False, True])
@pytest.mark.parametrize("name", DUMPS)
def test_rows_are_those_of_the_index(name: str, has_stats: bool, tmp_path: Path) -> None:
    command("index", GOLDEN / name, "--out", tmp_path, *(["--stats"] if has_stats else []))
    tensors = opscope.open(GOLDEN / name).to_arrow(stats=has_stats)
    expected = rows(parquet(tmp_path))
    assert len(expected) > 0
    assert rows("tensors", tensors=tensors) == expected
    # Each reading starts over.
    assert rows("tensors", tensors=tensors) == expected


@pytest.mark.parametrize("has_stats", [False, True])
def test_rows_of_the_native_form(has_stats: bool, tmp_path: Path) -> None:
    native = tmp_path / "native"
    command("convert", "--form", "native", "-d", GOLDEN / "mindspore/lenet_all", "--out", native)
    command("index", native, "--out", tmp_path / "tables", *(["--stats"] if has_stats else []))
    tensors = opscope.open(native).to_arrow(stats=has_stats)
    expected = rows(parquet(tmp_path / "tables"))
    assert len(expected) > 0
    assert rows("tensors", tensors=tensors) == expected


def test_statistics_come_from_an_index_that_is_current(tmp_path: Path) -> None:
    dump = tmp_path / "acts"
    dump.mkdir()
    path = dump / "step_0.npz"
    np.savez(path, **{"conv/output.0": np.ones(3, np.float32)})
    command("index", dump, "--stats")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns

    def means(array: np.ndarray) -> list[tuple[float]]:
        np.savez(path, **{"conv/output.0": array})
        # Other elements in a file of the same name, size and time: only reading it shows the change.
        os.utime(path, ns=times)
        found = rows("(select mean from tensors)", tensors=opscope.open(dump).to_arrow(stats=True))
        return [(float(mean),) for (mean,) in found]

    assert means(np.full(3, 2, np.float32)) == [(1.0,)]
    # One more element: the file has another size, and the index is of another one.
    assert means(np.full(4, 2, np.float32)) == [(2.0,)]


def test_what_an_index_lacks_is_told_each_time(tmp_path: Path) -> None:
    dump = tmp_path / "acts"
    dump.mkdir()
    np.save(dump / "sound.npy", np.ones(300))
    whole = (dump / "sound.npy").read_bytes()
    (dump / "cut.npy").write_bytes(whole[:-8])
    told = []
    for _ in range(2):
        arguments = ["-m", "opscope", "index", str(dump), "--stats", "--json"]
        finished = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
        assert finished.returncode == 4, finished.stderr
        (found,) = json.loads(finished.stdout)["dumps"]
        told.append(found["errors"])
    assert "cut.npy" in str(told[0])
    assert told[1] == told[0]
    # And by who reads it.
    tensors = opscope.open(dump).to_arrow(stats=True)
    assert len(rows("tensors", tensors=tensors)) > 0
    assert "cut.npy" in str(tensors.problems)


def test_columns_are_those_of_the_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "acts.npz", **{"conv/output.0": np.ones((2, 3), np.float32)})
    command("index", tmp_path / "acts.npz", "--out", tmp_path / "tables")
    with duckdb.connect() as connection:
        columns = connection.execute(f"describe select * from {parquet(tmp_path / 'tables')}").fetchall()
        levels = connection.execute(
            f"select name, repetition_type from parquet_schema('{next((tmp_path / 'tables/tensors').glob('*/*.parquet'))}')"
        ).fetchall()
    is_optional = {name: level == "OPTIONAL" for name, level in levels}
    expected: list[tuple[str, str, bool]] = []
    for name, kind, *_ in columns:
        if kind == "BIGINT[]":
            expected += [(name, "+l", is_optional[name]), ("element", "l", is_optional["element"])]
        else:
            expected.append((name, FORMATS[kind], is_optional[name]))
    assert arrow.fields(opscope.open(tmp_path / "acts.npz").to_arrow()) == expected


def test_batches_come_step_by_step(tmp_path: Path) -> None:
    for step in range(3):
        (tmp_path / f"step_{step}").mkdir()
        arrays = {f"op{i}/output.0": np.full(2, i) for i in range(step + 1)}
        np.savez(tmp_path / f"step_{step}" / "acts.npz", **arrays)
    tensors = opscope.open(tmp_path).to_arrow(run="mine")
    assert arrow.batch_lengths(tensors) == [1, 2, 3]
    with duckdb.connect() as connection:
        found = connection.execute("select distinct run, step from tensors order by step").fetchall()
    assert found == [("mine", 0), ("mine", 1), ("mine", 2)]
    # A table outlives its dump, and a stream its table.
    capsule = tensors.__arrow_c_stream__()
    del tensors
    gc.collect()
    del capsule


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "sound.npz", **{"conv/output.0": np.ones(3)})
    (tmp_path / "damaged.npz").write_bytes(b"PK\x03\x04")
    tensors = opscope.open(tmp_path).to_arrow(stats=True)
    assert len(tensors.problems) == 1
    assert "damaged.npz" in tensors.problems[0]
    with duckdb.connect() as connection:
        found = connection.execute("select op_name, mean from tensors where mean is not null").fetchall()
    assert found == [("conv", 1.0)]
    with pytest.raises(opscope.NotFoundError):
        opscope.open(tmp_path / "absent")


def test_a_native_step_that_cannot_be_read_is_an_error_of_the_reader(tmp_path: Path) -> None:
    native = tmp_path / "native"
    command("convert", "--form", "native", "-d", GOLDEN / "polygraphy/each", "--out", native)
    tensors = opscope.open(native).to_arrow()
    (step, *_) = sorted(path for path in native.rglob("*.parquet") if path.is_file())
    step.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(RuntimeError, match=step.name):
        arrow.batch_lengths(tensors)


def test_slots_of_a_comparison_are_those_of_the_parquet_report(tmp_path: Path) -> None:
    found = opscope.compare(GOLDEN / "msprobe/statistics_mix_bent", GOLDEN / "msprobe/statistics_mix")
    found.save(tmp_path / "slots.parquet")
    slots = found.to_arrow()
    assert slots.problems == []
    report = f"'{tmp_path / 'slots.parquet'}'"
    with duckdb.connect() as connection:
        described = connection.execute("describe from slots").fetchall()
        assert described == connection.execute(f"describe from {report}").fetchall()
        cells = connection.execute("from slots").fetchall()
        expected = connection.execute(f"from {report}").fetchall()
    # A NaN is equal to none.
    assert repr(cells) == repr(expected)
    assert cells
