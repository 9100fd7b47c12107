"""What an index of many files costs, and statistics of large tensors: `index_files.py OPSCOPE OUT`.

A dump of 100,000 small files in AscendCL's tree is indexed on two threads. Arrays of float32 and float16 are indexed
with `--stats`, beside reading the same files on two threads; the counts and sums are held against NumPy's. All files come
from the page cache. Shown are the shortest of three rounds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scale import OPERATORS, chain

N_ROUNDS = 3
N_OPERATORS, N_STEPS = 5_000, 20
SECONDS_MAX = 10
N_ARRAYS, N_BYTES = 8, 256 << 20
# Of the bytes that reading takes in a second.
READING_SHARE_MIN = 0.7
BUFFER_BYTES = 1 << 20


def index(opscope: Path, dump: Path, *options: object) -> tuple[dict, float]:
    """The command's report of the dump, and its seconds. The tables are rebuilt."""
    tables = dump.with_name(f"{dump.name}.tables")
    shutil.rmtree(tables, ignore_errors=True)
    command = [opscope, "index", dump, "--out", tables, "--jobs", 2, "--json", *options]
    start = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)["dumps"]
    assert told["errors"] == []
    return told, seconds


def many_files(opscope: Path, out: Path) -> None:
    model, dump = out / "chain.onnx", out / "files"
    chain(model, N_OPERATORS)
    command = [opscope, "dump", model, "--engine", "tract", "--seed", "0", "--no-baseline", "--form", "acl", "--steps", N_STEPS]
    subprocess.run([str(part) for part in [*command, "--out", dump]], check=True, capture_output=True)
    n_files = sum(len(names) for folder, _, names in os.walk(dump) if ".opscope" not in folder)
    assert n_files == N_OPERATORS * N_STEPS, n_files
    best = float("inf")
    for _ in range(N_ROUNDS):
        told, seconds = index(opscope, dump)
        # Each has an input and an output, and each `Add` its weight.
        assert told["tensors_written"] == N_STEPS * (2 * N_OPERATORS + N_OPERATORS // len(OPERATORS)), told
        best = min(best, seconds)
    print(f"index of {n_files} files: {best:.2f} s ({best / SECONDS_MAX:.2f} of {SECONDS_MAX} s)", flush=True)
    shutil.rmtree(dump)


def read(paths: list[Path]) -> int:
    """Reads files into one buffer, and nothing else."""
    buffer, n_bytes = bytearray(BUFFER_BYTES), 0
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while n := file.readinto(buffer):
                n_bytes += n
    return n_bytes


def statistics(opscope: Path, out: Path, dtype: type) -> None:
    import duckdb

    dump, random = out / np.dtype(dtype).name, np.random.default_rng(0)
    dump.mkdir()
    expected = {}
    for i in range(N_ARRAYS):
        array = random.standard_normal(N_BYTES // np.dtype(dtype).itemsize, dtype=np.float32).astype(dtype)
        array[i] = np.nan
        np.save(dump / f"a{i}.npy", array)
        finite = array[np.isfinite(array)]
        expected[f"a{i}"] = (1, float(finite.min()), float(finite.max()), float(finite.mean(dtype=np.float64)))
    paths = sorted(dump.iterdir())
    halves = [paths[0::2], paths[1::2]]
    reading = computing = float("inf")
    for _ in range(N_ROUNDS):
        start = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            n_bytes = sum(pool.map(read, halves))
        reading = min(reading, time.perf_counter() - start)
        told, seconds = index(opscope, dump, "--stats")
        assert told["statistics_computed"] == N_ARRAYS, told
        computing = min(computing, seconds)
    tables = dump.with_name(f"{dump.name}.tables")
    found = duckdb.sql(f"select op_name, n_nan, min, max, mean from '{tables}/tensors/*/*.parquet'").fetchall()
    assert len(found) == N_ARRAYS
    for name, *numbers in found:
        np.testing.assert_allclose(numbers, expected[name], rtol=1e-6, atol=1e-9)
    share = reading / computing
    print(
        f"statistics and digests of {np.dtype(dtype).name}: {n_bytes / computing / 1e9:.2f} GB/s, reading {n_bytes / reading / 1e9:.2f} GB/s: "
        f"{share:.2f} of it, at least {READING_SHARE_MIN}",
        flush=True,
    )
    shutil.rmtree(dump)


def main(opscope: Path, out: Path) -> None:
    out.mkdir(parents=True)
    try:
        many_files(opscope, out)
        for dtype in (np.float32, np.float16):
            statistics(opscope, out, dtype)
    finally:
        shutil.rmtree(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
