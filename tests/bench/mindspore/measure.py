"""The cost of MindSpore's dump and of Opscope's: `measure.py OPSCOPE MINDSPORE_PYTHON OUT`.

Both run the same network with the same weights, images and dump configuration, in turn. Every tree is checked: its
steps, files, bytes, and the network's result in each step.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high

import numpy as np
from numpy.typing import NDArray

SCRIPTS = Path(__file__).parent
# Width and height of the images in pixels. Tensors of the first are a sixteenth as large.
SIZES = (16, 64)
N_ROUNDS = 7
N_STEPS = 8
# The first step compiles the graph in MindSpore, the next ones warm up.
STEPS_DUMPED = range(3, N_STEPS)
NET_NAME = "residual"
# Maximum difference of both results, relative to the largest number in them.
TOLERANCE = 1e-4
# Maximum ratio of Opscope's overhead to MindSpore's.
GOAL = 0.2
# Limits the instructions that MindSpore's oneDNN uses. With AVX-512 its convolutions fall back to plain loops, 50
# times as slow: the cost of a dump would vanish in the noise.
ISA = "ONEDNN_MAX_CPU_ISA"
# How the names of the last operator's files begin.
LAST_OF_MINDSPORE, LAST_OF_OPSCOPE = "Add.Default_Add-op0.", "Add.add."


@dataclass
class StepTimes:
    """Seconds of two runs of the same steps: without the dump, and until the last byte of it is written."""

    plain: float
    dumped: float
    n_steps: int

    @property
    def plain_step(self) -> float:
        return self.plain / self.n_steps

    @property
    def overhead(self) -> float:
        """Seconds that the dump adds to a step."""
        return (self.dumped - self.plain) / len(STEPS_DUMPED)


@dataclass
class ExpectedTree:
    """Files and bytes of elements in each step, and the network's result."""

    n_files: int
    n_bytes: int
    result: NDArray

    def check(self, steps: Path, last_operator: str) -> None:
        found = sorted(path.name for path in steps.iterdir())
        assert found == [str(step) for step in STEPS_DUMPED], f"`{steps}` holds the steps {found}"
        for step in steps.iterdir():
            # Headers are read and elements are not: the size of the file says how many there are.
            n_bytes = [np.load(path, mmap_mode="r").nbytes for path in step.iterdir()]
            assert (len(n_bytes), sum(n_bytes)) == (self.n_files, self.n_bytes), f"`{step}`: {len(n_bytes)} files"
            is_same = np.array_equal(result_in(step, last_operator), self.result)
            assert is_same, f"`{step}` has another result than a run without the dump"


def result_in(step: Path, last_operator: str) -> NDArray:
    """The output of the operator whose files begin like this."""
    (path,) = step.glob(f"{last_operator}*.output.0.*")
    return np.load(path)


def steps_dir(tree: Path) -> Path:
    return tree / "rank_0" / NET_NAME / "0"


def run(command: Sequence[str | Path], **options) -> str:
    """The standard output of a program that starts with all written data on the disk."""
    os.sync()
    ended = subprocess.run(command, capture_output=True, text=True, **options)
    assert ended.returncode == 0, f"`{command[0]}` failed ({ended.returncode}):\n{ended.stderr}"
    return ended.stdout


def write_config(out: Path, name: str, steps: range, **changes) -> tuple[Path, Path]:
    """Every operator, both sides, tensors, unless changed: the configuration and the tree that it names."""
    common = {
        "op_debug_mode": 0,
        "dump_mode": 0,
        "path": str(out / name),
        "net_name": NET_NAME,
        "iteration": f"{steps[0]}-{steps[-1]}",
        "saved_data": "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
    }
    config = {
        "common_dump_settings": common | changes,
        # Without this section MindSpore waits for three seconds.
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }
    path = out / f"{name}.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path, steps_dir(out / name)


class MindSpore:
    """MindSpore, run by a script."""

    def __init__(self, python: str, out: Path, size: int) -> None:
        self.python, self.out, self.size = python, out, size

    def run(self, name: str, config: Path | None = None) -> tuple[str, list[float], NDArray]:
        """The version, the seconds of each step, and the network's result."""
        out = self.out / f"mindspore_{name}_run"
        out.mkdir()
        env = {name: value for name, value in os.environ.items() if name != "MINDSPORE_DUMP_CONFIG"}
        env = {ISA: "AVX2", **env, "PYTHONDONTWRITEBYTECODE": "1", "GLOG_v": "3"}
        if config is not None:
            env["MINDSPORE_DUMP_CONFIG"] = str(config)
        script = SCRIPTS / "run_mindspore.py"
        # MindSpore writes files to its working directory.
        run([self.python, script, out, "--steps", str(N_STEPS), "--size", str(self.size)], cwd=out, env=env)
        report = json.loads((out / "steps.json").read_text(encoding="utf-8"))
        return report["version"], report["seconds"], np.load(out / "output.npy")

    def dump(self, number: int, plain: list[float], expected: ExpectedTree) -> StepTimes:
        config, steps = write_config(self.out, f"mindspore{number}", STEPS_DUMPED)
        _, seconds, result = self.run(f"dumped{number}", config)
        assert np.array_equal(result, expected.result), "MindSpore's network returns another result with the dump"
        expected.check(steps, LAST_OF_MINDSPORE)
        dumped = slice(STEPS_DUMPED.start, STEPS_DUMPED.stop)
        return StepTimes(sum(plain[dumped]), sum(seconds[dumped]), len(STEPS_DUMPED))


class Opscope:
    """`opscope dump`, as a user would run it."""

    def __init__(self, binary: str, out: Path) -> None:
        self.binary, self.out = binary, out

    def command(self, config: Path, steps: int, *options: str) -> dict:
        """The report of the command."""
        files = [self.out / "network.onnx", "--config", config, "--inputs", self.out / "images.npz"]
        return json.loads(run([self.binary, "dump", *files, "--target", "cpu", "--json", "--steps", str(steps), *options]))

    def result(self) -> NDArray:
        """The network's result, dumped alone."""
        last_output = {"dump_mode": 1, "iteration": "0", "input_output": 2, "kernels": ["name-regex(add)"]}
        config, steps = write_config(self.out, "result", range(1), **last_output)
        self.command(config, 1)
        return result_in(steps / "0", LAST_OF_OPSCOPE)

    def seconds(self, config: Path, links: str, n_dumped: int) -> float:
        report = self.command(config, N_STEPS, "--dedup", links)
        assert (report["steps"], report["steps_dumped"]) == (N_STEPS, n_dumped), report
        return report["seconds"]

    def run_plain(self, number: int) -> float:
        """Seconds of all steps with a dump configured for steps that never run."""
        config, steps = write_config(self.out, f"opscope_plain{number}", range(N_STEPS, N_STEPS + 1))
        seconds = self.seconds(config, "identity", 0)
        assert not steps.exists(), "steps were dumped that were not asked for"
        return seconds

    def dump(self, number: int, links: str, plain: float, expected: ExpectedTree) -> StepTimes:
        """Files outside of the steps, such as the graph, are written by both runs and so do not count, as in
        MindSpore, which writes them when it compiles."""
        config, steps = write_config(self.out, f"opscope_{links}{number}", STEPS_DUMPED)
        dumped = self.seconds(config, links, len(STEPS_DUMPED))
        expected.check(steps, LAST_OF_OPSCOPE)
        return StepTimes(plain, dumped, N_STEPS)


def measure(opscope_binary: str, python: str, out: Path, size: int) -> None:
    run([sys.executable, SCRIPTS / "as_onnx.py", out, "--size", str(size)])
    network = json.loads((out / "network.json").read_text(encoding="utf-8"))
    mindspore, opscope = MindSpore(python, out, size), Opscope(opscope_binary, out)
    own_result = opscope.result()
    expected = ExpectedTree(network["files"], network["bytes"], own_result)
    # Inputs of one byte that are attributes in ONNX, or missing there.
    n_flags = network["mindspore_flags"]
    times: dict[str, list[StepTimes]] = {"MindSpore": [], "Opscope": [], "Opscope, no links": []}
    for number in range(N_ROUNDS):
        version, plain, result = mindspore.run(f"plain{number}")
        assert result.size == own_result.size > 0
        # Phrased so that NaN fails.
        is_near = np.abs(result.ravel() - own_result.ravel()) <= TOLERANCE * np.abs(result).max()
        assert is_near.all(), f"MindSpore's network returns {result} where Opscope's returns {own_result}"
        of_mindspore = ExpectedTree(network["files"] + n_flags, network["bytes"] + n_flags, result)
        times["MindSpore"].append(mindspore.dump(number, plain, of_mindspore))
        plain_seconds = opscope.run_plain(number)
        times["Opscope"].append(opscope.dump(number, "identity", plain_seconds, expected))
        times["Opscope, no links"].append(opscope.dump(number, "off", plain_seconds, expected))
    print(
        f"MindSpore {version} and Opscope on a CPU: {network['operators']} operators, {network['files']} files and "
        f"{network['bytes'] / 1e6:.1f} MB a step; medians of {N_ROUNDS} rounds, {len(STEPS_DUMPED)} dumped steps each"
    )
    print_table(times, network["files"], network["bytes"])


def print_table(times: dict[str, list[StepTimes]], n_files: int, n_bytes: int) -> None:
    """A line for each program, and the ratios of their overheads."""
    heads = ("plain", "dumped", "overhead", "least", "µs per file", "ms per MB")
    print(f"{'ms a step':<20}{heads[0]:>9}{heads[1]:>9}{heads[2]:>10}{heads[3]:>10}{heads[4]:>13}{heads[5]:>11}")
    overheads = {}
    for name, rounds in times.items():
        plain = median_high(each.plain_step for each in rounds)
        dumped = median_high(each.plain_step + each.overhead for each in rounds)
        overhead = median_high(each.overhead for each in rounds)
        # From the shortest run with the dump and the shortest without. Other programs on the machine only ever add to
        # a time, so the shortest runs are the least disturbed.
        shortest = StepTimes(min(each.plain for each in rounds), min(each.dumped for each in rounds), N_STEPS)
        overheads[name] = (overhead, shortest.overhead)
        print(
            f"{name:<20}{1e3 * plain:>9.2f}{1e3 * dumped:>9.2f}{1e3 * overhead:>10.2f}{1e3 * shortest.overhead:>10.2f}"
            f"{1e6 * overhead / n_files:>13.1f}{1e9 * overhead / n_bytes:>11.3f}"
        )
    vendor, vendor_least = overheads.pop("MindSpore")
    assert min(vendor, vendor_least) > 0, "MindSpore's dump seems to cost nothing: other programs disturbed the measurement"
    for name, (overhead, least) in overheads.items():
        print(
            f"{name}: {overhead / vendor:.2f} of MindSpore's overhead, {least / vendor_least:.2f} by the least "
            f"overheads; the goal is {GOAL} at most"
        )


def main() -> None:
    binary, python, out = sys.argv[1:]
    # A new directory each time: creating files is slow on ext4 during and seconds after deletions. So nothing is
    # deleted before the end.
    try:
        for size in SIZES:
            measure(binary, python, Path(out).resolve() / str(size), size)
    finally:
        shutil.rmtree(out, ignore_errors=True)


if __name__ == "__main__":
    main()
