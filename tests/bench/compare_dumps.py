"""A benchmark of `opscope compare` on two dumps of 200 files of 4 MB each, compared with numpy and the vendor's script.

Files are in the page cache. `MSACCUCMP` names the vendor's `msaccucmp.py`, which is run by this Python; it is left out
otherwise. Results are checked: every operator is compared, and its metrics are numpy's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from dump_writer import FLOAT16, FLOAT32, Tensor, write_dump_file

N_FILES = 200
N_BYTES = 4 << 20
N_ROUNDS = 3


def main() -> None:
    """Measures both dtypes."""
    opscope, out = sys.argv[1], Path(sys.argv[2])
    for dtype, code in ((np.float32, FLOAT32), (np.float16, FLOAT16)):
        out.mkdir(parents=True)
        try:
            run(opscope, out, np.dtype(dtype), code)
        finally:
            shutil.rmtree(out)


def run(opscope: str, out: Path, dtype: np.dtype, code: int) -> None:
    """Makes two dumps, and measures."""
    pairs = make(out, dtype, code)
    n_bytes = 2 * N_FILES * N_BYTES
    print(f"{dtype.name}, 2 x {N_FILES} x {N_BYTES >> 20} MiB in the page cache, best of {N_ROUNDS}", flush=True)
    sides = [str(out / "target"), str(out / "golden")]
    result = out / "result.json"

    def compare(*options: str) -> None:
        command = [opscope, "compare", *sides, "--quiet", "--force", "--json", str(result), *options]
        done = subprocess.run(command, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"opscope ended with {done.returncode}")

    report("numpy: max abs, cosine, max rel, RMSE, in memory", n_bytes, lambda: by_numpy(pairs))
    for name, options in (
        ("opscope compare, one thread", ["--jobs", "1"]),
        ("opscope compare --kl, one thread", ["--jobs", "1", "--kl"]),
        ("opscope compare --kl, all threads", ["--kl"]),
    ):
        report(name, n_bytes, lambda options=options: compare(*options))
        check(result, pairs)
    script = os.environ.get("MSACCUCMP")
    if script is None:
        print("  the vendor's script: left out, MSACCUCMP does not name it", flush=True)
        return
    places = ["-m", sides[0], "-g", sides[1], "-out", str(out)]
    for name, command in (
        ("opscope msaccucmp compare", [opscope, "msaccucmp", "compare", *places]),
        ("msaccucmp.py compare", [sys.executable, script, "compare", *places]),
    ):
        report(name, n_bytes, lambda command=command: subprocess.run(command, check=True, capture_output=True))


def make(out: Path, dtype: np.dtype, code: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Writes the dumps; returns the contents of the first files."""
    rng = np.random.default_rng(0)
    shape = (N_BYTES // dtype.itemsize // 1024, 1024)
    base = rng.standard_normal(shape).astype(np.float32)
    noise = rng.standard_normal(shape).astype(np.float32) * np.float32(1e-5 if dtype == np.float32 else 1e-3)
    pairs = []
    for i in range(N_FILES):
        target = (base + np.float32(i)).astype(dtype)
        golden = (base + np.float32(i) + noise).astype(dtype)
        for side, values in (("target", target), ("golden", golden)):
            tensor = Tensor(code, shape, values.tobytes())
            write_dump_file(out / side, f"Add.op{i:03d}.{i}.0.{1_700_000_000_000_000 + i}", outputs=[tensor])
        if len(pairs) < 8:
            pairs.append((target, golden))
    return pairs


def by_numpy(pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Four metrics of as many arrays as there are files."""
    for i in range(N_FILES):
        metrics(*pairs[i % len(pairs)])


def metrics(target: np.ndarray, golden: np.ndarray) -> dict[str, float]:
    """In double precision."""
    a, b = target.astype(np.float64).ravel(), golden.astype(np.float64).ravel()
    distance = np.abs(a - b)
    is_measured = b != 0
    return {
        "max_abs": float(distance.max()),
        "cosine": float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))),
        "max_rel": float((distance[is_measured] / np.abs(b[is_measured])).max()),
        "rmse": float(np.sqrt(np.mean(distance * distance))),
    }


def check(result: Path, pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Every operator is there, and the first ones have numpy's numbers."""
    found = json.loads(result.read_text(encoding="utf-8"))
    if found["summary"]["target_coverage"] != [N_FILES, N_FILES]:
        raise SystemExit(f"not everything was compared: {found['summary']}")
    for operator, pair in zip(found["operators"], pairs):
        for name, expected in metrics(*pair).items():
            value = operator["slots"][0]["metrics"][name]
            if not np.isclose(value, expected, rtol=1e-9, atol=0):
                raise SystemExit(f"{operator['target'][0]['op_name']}: {name} is {value}, numpy has {expected}")


def report(name: str, n_bytes: int, work: Callable[[], object]) -> None:
    """Prints a row: the best time, and bytes of both sides per second."""
    best = float("inf")
    for _ in range(N_ROUNDS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    print(f"  {name:52}{best:9.2f} s {n_bytes / best / 1e9:8.2f} GB/s", flush=True)


if __name__ == "__main__":
    main()
