"""Costs of very many steps, very many operators and very large tensors: `scale.py OPSCOPE OUT [ONNXRUNTIME_LIBRARY]`.

Each command runs in a separate process, whose CPU time and peak memory are printed with the limit. Every answer is
checked: how many operators were seen, tensors written and rows printed. The values of the chain are known too.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GIB = 1 << 30
# The bytes that may wait for a writer, where nothing else is asked for.
QUEUE_BYTES = 256 << 20
# A child's peak begins with the memory of the process that starts it, so that is a small one.
MEASURE = """
import os, sys
child = os.spawnv(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
open(sys.argv[1], "w").write(f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}")
sys.exit(os.waitstatus_to_exitcode(status))
"""
OPERATORS = ("Relu", "Add", "Neg", "Neg")


def chain(path: Path, n: int) -> None:
    """`n` operators in a row, of which half have a weight as well."""
    nodes, last = [], "x"
    for i in range(n):
        given, op_type = "y" if i == n - 1 else f"v{i}", OPERATORS[i % len(OPERATORS)]
        read = [last, "w"] if op_type == "Add" else [last]
        nodes.append(helper.make_node(op_type, read, [given], name=f"n{i}"))
        last = given
    save(path, nodes, [4], [numpy_helper.from_array(np.ones(4, np.float32), "w")])


def large(path: Path, n_elements: int) -> None:
    """Three operators with outputs of so many floats, and one that reduces them."""
    shape = numpy_helper.from_array(np.array([n_elements], np.int64), "shape")
    nodes = [
        helper.make_node("Expand", ["x", "shape"], ["a"], name="expand"),
        helper.make_node("Neg", ["a"], ["b"], name="neg"),
        helper.make_node("Neg", ["b"], ["c"], name="neg_again"),
        helper.make_node("ReduceMax", ["c"], ["y"], name="max", keepdims=1),
    ]
    save(path, nodes, [1], [shape])


def save(path: Path, nodes: list, shape: list[int], weights: list) -> None:
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
    graph = helper.make_graph(nodes, "scale", [value("x")], [value("y")], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def run(label: str, command: list, seconds_max: float | None = None, bytes_max: float | None = None) -> tuple[str, int]:
    """The command's output, and its peak memory."""
    out = Path(command[-1])
    measured = out.with_suffix(".measured")
    with open(out.with_suffix(".out"), "w+") as printed:
        child = [sys.executable, "-S", "-c", MEASURE, measured, *command[:-1]]
        done = subprocess.run([str(part) for part in child], stdout=printed, stderr=subprocess.DEVNULL)
        assert done.returncode == 0, f"{label}: ended with {done.returncode}"
        printed.seek(0)
        text = printed.read()
    seconds, n_kib = (float(number) for number in measured.read_text().split())
    n_bytes = int(n_kib) * 1024
    line = f"{label:<44}{seconds:8.2f} s of CPU"
    if seconds_max is not None:
        line += f" ({seconds / seconds_max:.2f} of the limit)"
    line += f"{n_bytes / (1 << 20):10.0f} MiB"
    if bytes_max is not None:
        line += f" ({n_bytes / bytes_max:.2f} of the limit)"
    print(line, flush=True)
    return text, n_bytes


def steps(opscope: Path, out: Path) -> None:
    model, n_files = out / "steps.onnx", 20
    chain(model, n_files)
    dump = [opscope, "dump", model, "--engine", "tract", "--seed", "0", "--no-baseline"]
    # Small tensors wait for writers as large ones do, until the queue is full.
    dump += ["--queue-mib", "16"]
    dry = ["--json", "--dry-run", "--form", "acl", "--out", out / "dry"]
    for label, kind in (("--stats", ["--stats"]), ("--as float16", ["--json", "--as", "float16"]), ("dry run", dry)):
        peaks = []
        for n_steps in (2_000, 10_000):
            text, n_bytes = run(f"{label}, {n_steps} steps", [*dump, *kind, "--steps", n_steps, out / "steps"])
            if label == "dry run":
                assert json.loads(text)["files"] == n_steps * n_files
            else:
                assert text.count("\n") > n_steps * n_files, "rows are missing"
            peaks.append(n_bytes)
        print(f"  memory of 10000 steps beside 2000: {peaks[1] / peaks[0]:.2f}")


def operators(opscope: Path, out: Path, engine: str, n: int) -> None:
    model, tree = out / f"chain_{n}.onnx", out / f"tree_{n}"
    chain(model, n)
    shutil.rmtree(tree, ignore_errors=True)
    dump = [opscope, "dump", model, "--engine", engine, "--seed", "0", "--json", "--form", "acl", "--out", tree]
    dry, _ = run(f"{engine}, {n} operators, dry run", [*dump, "--dry-run", out / "dry"], 20, GIB)
    assert json.loads(dry)["files"] == n
    text, _ = run(f"{engine}, {n} operators, dump", [*dump, out / "dump"], 20, GIB)
    told = json.loads(text)
    assert told["operators_dumped"] == n and told["records"]["failed"] == 0, told["records"]
    text, _ = run(f"{engine}, {n} operators, show", [opscope, "show", told["dump_dirs"][0], out / "show"], 20, GIB)
    assert "n0" in text
    shutil.rmtree(tree)


def rows(opscope: Path, out: Path, n: int, n_steps: int) -> None:
    """A million small tensors in the native form: counted, and compared with those of a run that made the same."""
    model, label = out / f"rows_{n}.onnx", f"{n} operators, {n_steps} steps"
    chain(model, n)
    # Each has an input and an output, and each `Add` its weight.
    n_tensors = n_steps * (2 * n + n // len(OPERATORS))
    dumps = [out / name for name in ("target", "golden")]
    for dump in dumps:
        command = [opscope, "dump", model, "--engine", "tract", "--seed", "0", "--no-baseline", "--steps", n_steps]
        text, _ = run(f"{label}, dump", [*command, "--json", "--out", dump, out / "dumped"])
        assert json.loads(text)["records"]["failed"] == 0
    text, _ = run(f"{label}, show", [opscope, "show", dumps[0], out / "show"], 2, GIB)
    assert f"\n{n} operators, {n_steps} file" in text and f"{n_tensors} tensors written" in text, text[-500:]
    text, _ = run(f"{label}, compare", [opscope, "compare", *dumps, out / "compare"], 20, GIB)
    assert f"slots: {n_tensors} pass" in text, text
    for dump in dumps:
        shutil.rmtree(dump)


def tensors(opscope: Path, out: Path, engine: str) -> None:
    model, n_bytes = out / "large.onnx", 3_200_000_000
    large(model, n_bytes // 4)
    command = [opscope, "dump", model, "--engine", engine, "--seed", "0", "--json", "--no-baseline"]
    nothing = out / "nothing.json"
    nothing.write_text(json.dumps({"dump": {"dump_path": str(out), "dump_list": [{"model_name": "other"}]}}))
    label = f"{engine}, 3.2 GB tensors"
    _, plain = run(f"{label}, without a dump", [*command, "--config", nothing, out / "plain"])
    tree = out / "tensors"
    kinds = {
        "--stats": ["--stats"],
        "dry run": ["--form", "acl", "--out", tree, "--dry-run"],
        "statistics in files": ["--form", "acl", "--out", tree, "--content", "statistics"],
    }
    for kind, options in kinds.items():
        _, peak = run(f"{label}, {kind}", [*command, *options, out / "dumped"], None, plain + QUEUE_BYTES)
        assert peak <= plain + QUEUE_BYTES, "more than the plain run and the queue"


def main() -> None:
    opscope, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    try:
        steps(opscope, out)
        operators(opscope, out, "tract", 200_000)
        rows(opscope, out, 20_000, 23)
        rows(opscope, out, 448_000, 1)
        if len(sys.argv) > 3:
            os.environ["OPSCOPE_ENGINE_LIB"] = sys.argv[3]
            for n in (10_000, 20_000, 40_000):
                operators(opscope, out, "onnxruntime", n)
        tensors(opscope, out, "tract")
        if len(sys.argv) > 3:
            tensors(opscope, out, "onnxruntime")
    finally:
        shutil.rmtree(out)


if __name__ == "__main__":
    main()
