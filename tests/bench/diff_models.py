"""A benchmark of `opscope diff` on a sound and a faulty model, compared with running both without observing values.

Plain runs are `opscope dump` with a configuration that dumps nothing, in separate processes. One pass over the bytes
is what reading all tensors of both sides takes from memory, measured here. Answers are checked: the changed weight is
what the verdict names. Each memory limit is measured, and the memory that the process takes at most is printed.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

N_ROUNDS = 3
N_PASS_BYTES = 1 << 30


def main() -> None:
    """Measures each model, with as much memory as it takes and with a quarter of it."""
    opscope, library, out = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    speed = read_speed()
    print(f"one pass over memory: {speed / 1e9:.1f} GB/s on one thread")
    for path in map(Path, sys.argv[4:]):
        for engine in (["--engine", "tract"], ["--engine", "onnxruntime", "--engine-lib", library]):
            run(opscope, path, out, engine, speed)


def read_speed() -> float:
    array = np.ones(N_PASS_BYTES // 8)
    times = []
    for _ in range(N_ROUNDS):
        start = time.perf_counter()
        array.max()
        times.append(time.perf_counter() - start)
    return N_PASS_BYTES / min(times)


def change_last_weight(model: ModelProto) -> str:
    """Changes an element of the last large weight, and returns the weight's name."""
    weights = [w for w in model.graph.initializer if len(w.dims) >= 2 and np.prod(w.dims) > 64]
    weight = weights[-1]
    array = numpy_helper.to_array(weight).copy()
    array.flat[array.size // 2] += 10 * np.abs(array).max()
    weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    return weight.name


def timed(command: list[str]) -> tuple[float, int, subprocess.CompletedProcess[str]]:
    """Seconds, the largest resident memory in bytes, and the result."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, error = process.communicate()
    elapsed = time.perf_counter() - start
    # Of the largest child so far: only the process itself can query the kernel in time.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return elapsed, peak, subprocess.CompletedProcess(command, process.returncode, out, error)


def run(opscope: str, sound: Path, out: Path, engine: list[str], speed: float) -> None:
    faulty = out / sound.name
    model = onnx.load(sound)
    weight = change_last_weight(model)
    onnx.save(model, faulty)
    nothing = out / "nothing.json"
    nothing.write_text("{}")
    result = out / "result.json"
    inputs = ["--seed", "0", *shapes(model)]
    plain = [opscope, "dump", "--config", str(nothing), "--no-baseline", "--json", *engine, *inputs]
    diff = [opscope, "diff", str(faulty), str(sound), *engine, *inputs, "--no-replay", "--quiet", "--force"]
    print(f"\n{sound.stem}, {engine[1]}, best of {N_ROUNDS}", flush=True)
    times: dict[str, list[float]] = {"plain": [], "diff": [], "diff, quarter of the memory": []}
    n_bytes, held = 0, 0
    for _ in range(N_ROUNDS):
        # Side by side, so that other work on the machine slows all of them down.
        both = [timed([*plain, str(path)]) for path in (faulty, sound)]
        assert all(done.returncode == 0 for _, _, done in both), both[0][2].stderr
        times["plain"].append(sum(elapsed for elapsed, _, _ in both))
        elapsed, _, done = timed([*diff, "--json", str(result)])
        assert done.returncode == 1, done.stderr
        times["diff"].append(elapsed)
        n_bytes = check(result, weight)
        held = held or n_bytes // 2
        limit = str(held // 4 >> 20)
        elapsed, _, done = timed([*diff, "--json", str(result), "--memory", limit])
        assert done.returncode == 1, done.stderr
        times["diff, quarter of the memory"].append(elapsed)
        check(result, weight)
    base, one_pass = min(times["plain"]), n_bytes / speed
    print(f"  plain runs of both            {base:8.3f} s")
    for name in ("diff", "diff, quarter of the memory"):
        best = min(times[name])
        ratio = (best - one_pass) / base
        print(f"  {name:<29} {best:8.3f} s, {n_bytes / 1e9:.2f} GB compared; without one pass {ratio:.2f} x")


def check(result: Path, weight: str) -> int:
    """The bytes that were compared; the verdict has to name the operator that reads the weight."""
    document = json.loads(result.read_text())
    first = document["summary"]["first_failure"]
    slot = next(s for s in document["operators"][first["operator"]]["slots"] if s["slot"] == first["slot"])
    assert first["cause"] in ("outside", "own"), first
    assert slot.get("parameter") in (weight, None), (slot.get("parameter"), weight)
    return document["summary"]["n_bytes"]


def shapes(model: ModelProto) -> list[str]:
    """Sizes of dynamic input dimensions."""
    given = {initializer.name for initializer in model.graph.initializer}
    options = []
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in given or all(dim.HasField("dim_value") for dim in dims):
            continue
        extents = [dim.dim_value if dim.HasField("dim_value") else 1 if axis == 0 else 128 for axis, dim in enumerate(dims)]
        options += ["--shape", f"{value.name}:{','.join(map(str, extents))}"]
    return options


if __name__ == "__main__":
    os.environ.pop("OPSCOPE_ENGINE", None)
    main()
