"""The cost of a dump of `opscope.torch` on the CPU, compared with the same graphs without taps and with other tools.

Each variant runs in turn with the plain graph, on one thread; shown are medians over the rounds, and next to each its
ratio to the plain runs: the process's CPU time, writers included; the CPU time of the thread that runs the model; and the
time until everything is written. Results have to be the plain
run's to the bit, statistics those of the values, and records as many as there are operators.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import math
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import opscope.torch
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

# Steps of more bytes than this are removed once they are timed.
_KEPT_BYTES_MAX = 1 << 30


class Transformer(nn.Module):
    """Usual blocks, four of them over 64 tokens of 256 numbers unless others are asked for."""

    def __init__(self, width: int = 256, n_blocks: int = 4) -> None:
        super().__init__()
        make = nn.TransformerEncoderLayer
        self.blocks = nn.ModuleList(make(width, 4, 4 * width, 0.0, batch_first=True) for _ in range(n_blocks))
        self.head = nn.Linear(width, 100)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            # The parts, because in inference the whole is one operator that hides them.
            x = block.norm1(x + block._sa_block(x, None, None))
            x = block.norm2(x + block._ff_block(x))
        return self.head(x)


def resnet50() -> nn.Module:
    """As torchvision has it, with random weights."""
    from torchvision.models import resnet50 as make

    return make(weights=None)


@dataclass(frozen=True)
class Model:
    """A model that the benchmark runs."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    # Executions in a row, so that a round takes long enough to be timed.
    n_steps: int


MODELS = [
    Model("resnet50, batch 8", resnet50, (8, 3, 224, 224), 1),
    Model("transformer, batch 8", Transformer, (8, 64, 256), 6),
    Model("small transformer, batch 8", lambda: Transformer(128, 2), (8, 32, 128), 60),
]


@dataclass
class Timed:
    """Seconds of one execution."""

    cpu: float
    thread: float
    wall: float


@dataclass
class Variant:
    """A way to run the model. `settle` waits until everything is done, `clear` forgets what was written."""

    name: str
    step: Callable[[Tensor], Tensor]
    settle: Callable[[], None] = lambda: None
    clear: Callable[[], None] = lambda: None
    # Bytes of all tensors of a step, as far as the tool says so.
    n_bytes: Callable[[], int] = lambda: 0
    # A folder whose growth counts as one plain file of as many bytes, which then belongs to the plain run.
    beside_file: Path | None = None
    is_exact: bool = True


def timed(variant: Variant, x: Tensor, n_steps: int, expected: Tensor) -> Timed:
    """One round of a variant; its results are compared afterwards."""
    results = []
    wall, cpu, thread = time.perf_counter(), time.process_time(), time.thread_time()
    for _ in range(n_steps):
        results.append(variant.step(x))
    thread = time.thread_time() - thread
    variant.settle()
    found = Timed(*((end / n_steps) for end in (time.process_time() - cpu, thread, time.perf_counter() - wall)))
    for result in results:
        is_same = torch.equal(result, expected) if variant.is_exact else torch.allclose(result, expected, atol=1e-3)
        if not is_same:
            raise SystemExit(f"{variant.name}: the model gives something else")
    variant.clear()
    return found


class Dumped:
    """A backend of Opscope, and what its dump has to hold."""

    def __init__(self, model: nn.Module, path: Path, **options: Any) -> None:
        self.path = path
        self.options = options
        self.backend = opscope.torch.backend(path, **{"form": "acl"} | options)
        self.compiled = torch.compile(model, backend=self.backend, dynamic=False)
        torch._dynamo.reset()

    def variant(self, name: str) -> Variant:
        return Variant(name, self.step, self.settle, self.clear, self.n_bytes)

    def step(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return self.compiled(x)

    def counters(self) -> dict:
        return self.backend.counters() or {}

    def settle(self) -> None:
        """Until the last file is written."""
        while (found := self.counters())["n_operators_written"] < found["n_operators_seen"]:
            time.sleep(0.0005)

    def n_bytes(self) -> int:
        found = self.counters()
        return found["n_bytes_selected"] // max(found["n_steps_active"], 1)

    def folders(self) -> list[Path]:
        """Of the steps, in order."""
        found = [path for path in self.path.glob("*/*/0/graph_*/*/*") if path.is_dir()]
        return sorted(found, key=lambda path: int(path.name))

    def clear(self) -> None:
        """Keeps the disk from being filled. Not for less: after a deletion ext4 creates small files slowly for a while."""
        if self.n_bytes() > _KEPT_BYTES_MAX and self.options["data"] == "tensor":
            for folder in self.folders()[:-1]:
                shutil.rmtree(folder)

    def check(self, expected: Tensor) -> None:
        """The last step on disk has every operator, and the last one the model's result."""
        report = self.backend.finish()
        if report["first_error"] or report["first_fault"] or report["unseen"] or report["n_dropped"]:
            raise SystemExit(f"the dump is not complete: {report}")
        if not report["n_steps_active"]:
            return
        (graph,) = self.path.glob("*/*/.opscope/graphs/*.json")
        operators = json.loads(graph.read_text(encoding="utf-8"))["operators"]
        if self.options["data"] == "table":
            self.check_table(operators, report, expected)
            return
        files = list(self.folders()[-1].iterdir())
        if len(files) != len(operators) or report["n_operators_written"] != len(operators) * report["n_steps_active"]:
            raise SystemExit(f"{len(files)} records of {len(operators)} operators")
        # The last operators of both models are an `addmm` and perhaps views of it.
        (last,) = [path for path in files if path.name.split(".")[2] == str(len(operators) - 1)]
        if self.options["data"] == "stats":
            is_right = is_of(list(csv.DictReader(last.read_text(encoding="utf-8").splitlines()))[-1], expected)
        else:
            is_right = last.read_bytes().endswith(expected.contiguous().numpy().tobytes())
        if not is_right:
            raise SystemExit(f"`{last.name}` does not hold what the model gives")

    def check_table(self, operators: list, report: dict, expected: Tensor) -> None:
        """The same where a step is one table."""
        (file,) = self.folders()[-1].iterdir()
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        tasks = {int(row["Task ID"]) for row in rows}
        if len(tasks) != len(operators) or report["n_operators_written"] != len(operators) * report["n_steps_active"]:
            raise SystemExit(f"{len(tasks)} operators of {len(operators)}")
        if not is_of([row for row in rows if int(row["Task ID"]) == len(operators) - 1][-1], expected):
            raise SystemExit(f"`{file}` does not hold what the model gives")


class EagerDumped(Dumped):
    """The same of eager mode."""

    def __init__(self, model: nn.Module, path: Path, **options: Any) -> None:
        self.path, self.options = path, options
        self.model = model
        self.backend = opscope.torch.eager(path, **{"form": "acl"} | options)

    def step(self, x: Tensor) -> Tensor:
        with torch.no_grad(), self.backend:
            return self.model(x)

    def clear(self) -> None:
        """Statistics are small."""

    def check_eager(self) -> None:
        """Everything that ran was written."""
        report = self.backend.finish()
        if report["first_error"] or report["first_fault"] or report["unseen"] or report["n_dropped"]:
            raise SystemExit(f"the dump is not complete: {report}")
        if not 0 < report["n_operators_seen"] == report["n_operators_written"]:
            raise SystemExit(f"operators are missing: {report}")


class NativeDumped(Dumped):
    """A dump in Opscope's own form."""

    def variant(self, name: str) -> Variant:
        beside_file = self.path if self.options["data"] == "tensor" else None
        return replace(super().variant(name), beside_file=beside_file)

    def clear(self) -> None:
        """What is written once is known to the next steps, and has to stay."""

    def check(self, expected: Tensor) -> None:
        """The last rows are those of the model's result."""
        check_native(self, expected)


class NativeEagerDumped(EagerDumped):
    """The same of eager mode."""

    def variant(self, name: str) -> Variant:
        beside_file = self.path if self.options["data"] == "tensor" else None
        return replace(super().variant(name), beside_file=beside_file)


def check_native(dumped: Dumped, expected: Tensor) -> None:
    """Every operator was written, and one tensor equals the model's output."""
    report = dumped.backend.finish()
    if report["first_error"] or report["first_fault"] or report["unseen"] or report["n_dropped"]:
        raise SystemExit(f"the dump is not complete: {report}")
    if not 0 < report["n_operators_seen"] == report["n_operators_written"]:
        raise SystemExit(f"operators are missing: {report}")
    dump = opscope.open(dumped.path)
    if dump.problems:
        raise SystemExit(f"the dump cannot be read: {dump.problems}")
    step = max(record.step for record in dump)
    outputs = [record for record in dump.find(side="output", step=step) if tuple(record.shape) == tuple(expected.shape)]
    if dumped.options["data"] == "tensor":
        is_right = any(np.array_equal(record.numpy(), expected.numpy()) for record in outputs)
    else:
        largest = float(expected.max())
        is_right = any(math.isclose(record.statistics().max, largest, rel_tol=1e-6) for record in outputs)
    if not is_right:
        raise SystemExit(f"`{dumped.path}` does not hold what the model gives")


def is_of(row: dict[str, str], expected: Tensor) -> bool:
    """Whether a row has the statistics of a tensor."""
    found = [float(row[f"{name} Value"]) for name in ("Max", "Min", "Avg")]
    wanted = [float(f(expected)) for f in (torch.max, torch.min, torch.mean)]
    is_right = all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5) for a, b in zip(found, wanted))
    return is_right and int(row["Count"]) == expected.numel()


class Saving(TorchDispatchMode):
    """The simplest tool: each result into a file by numpy."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.n, self.n_bytes = path, 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, Tensor):
                np.save(self.path / f"{self.n}.npy", tensor.detach().numpy())
                self.n_bytes += tensor.nbytes
                self.n += 1
        return result


def by_numpy(model: nn.Module, path: Path) -> Variant:
    """A dispatch mode with `np.save`."""
    path.mkdir(parents=True)
    sizes = [0]

    def step(x: Tensor) -> Tensor:
        with torch.no_grad(), Saving(path) as mode:
            result = model(x)
        sizes[0] = mode.n_bytes
        return result

    return Variant("dispatch mode, np.save of outputs", step, n_bytes=lambda: sizes[0])


def by_debug_mode(model: nn.Module) -> Variant:
    """Torch's own hashes of outputs."""
    from torch.utils._debug_mode import DebugMode

    def step(x: Tensor) -> Tensor:
        with torch.no_grad(), DebugMode() as mode, DebugMode.log_tensor_hashes("norm"):
            result = model(x)
        if len(mode.logs) < 10:
            raise SystemExit("DebugMode has no logs")
        return result

    return Variant("DebugMode, hashes of outputs", step)


def by_msprobe(model: nn.Module, path: Path) -> Variant:
    """The vendor's tool, statistics of API calls."""
    from msprobe.pytorch import PrecisionDebugger

    path.mkdir(parents=True)
    config = path / "config.json"
    settings = {"task": "statistics", "dump_path": str(path / "dump"), "rank": [], "step": [], "level": "L1"}
    settings["statistics"] = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    config.write_text(json.dumps(settings), encoding="utf-8")
    debugger = PrecisionDebugger(config_path=str(config))

    def step(x: Tensor) -> Tensor:
        debugger.start(model=model)
        with torch.no_grad():
            result = model(x)
        debugger.stop()
        debugger.step()
        return result

    def clear() -> None:
        dumps = list(path.rglob("dump.json"))
        if not dumps or not json.loads(dumps[-1].read_text(encoding="utf-8"))["data"]:
            raise SystemExit("msprobe has written nothing")

    return Variant("msprobe, statistics (L1)", step, clear=clear)


def eager(model: nn.Module) -> Variant:
    """Without a compiler."""

    def step(x: Tensor) -> Tensor:
        with torch.no_grad():
            return model(x)

    return Variant("eager mode", step)


DUMPS = [
    ("not among the steps", {"data": "stats", "steps": 10**9}),
    ("statistics of outputs", {"data": "stats", "mode": "output"}),
    ("statistics of inputs and outputs", {"data": "stats", "mode": "all"}),
    ("one table a step, outputs", {"data": "table", "mode": "output"}),
    ("one table a step, inputs and outputs", {"data": "table", "mode": "all"}),
    ("tensors of outputs, to disk", {"data": "tensor", "mode": "output"}),
    ("tensors of inputs and outputs, to disk", {"data": "tensor", "mode": "all"}),
]

# In Opscope's own form, of inputs and outputs. Of tensors also in a folder that is in memory.
NATIVE_DUMPS = [
    ("native statistics", {"data": "stats"}, None),
    ("native tensors, RAM disk", {"data": "tensor"}, Path("/dev/shm")),
    ("native tensors, to disk", {"data": "tensor"}, None),
]

EAGER_DUMPS = [
    ("statistics of outputs", {"data": "stats", "mode": "output"}),
    ("one table a step, outputs", {"data": "table", "mode": "output"}),
]


def others(model: nn.Module, path: Path) -> Iterator[Variant]:
    """Tools that are installed. The vendor's one comes last, for it patches torch."""
    yield eager(model)
    yield by_numpy(model, path / "numpy")
    if importlib.util.find_spec("torch.utils._debug_mode"):
        yield by_debug_mode(model)
    if importlib.util.find_spec("msprobe"):
        yield by_msprobe(model, path / "msprobe")
    else:
        print("  msprobe: skipped, it is not installed (mindstudio-probe)", flush=True)


def measure(variant: Variant, plain: Variant, x: Tensor, model: Model, n_rounds: int) -> None:
    """Prints a row."""
    timed(variant, x, 1, plain.step(x))
    plain_rounds, rounds = [], []
    for i in range(n_rounds):
        # Contents that came before are not written again.
        x_of_round = x + i * 1e-3
        expected = plain.step(x_of_round)
        plain_rounds.append(timed(plain, x_of_round, model.n_steps, expected))
        n_before = n_bytes_of(variant.beside_file)
        rounds.append(timed(variant, x_of_round, model.n_steps, expected))
        if variant.beside_file is not None:
            plain_rounds[-1].wall += seconds_of_file(variant.beside_file, n_bytes_of(variant.beside_file) - n_before)
    cells = []
    for name in ("cpu", "thread", "wall"):
        pairs = [(getattr(one, name), getattr(other, name)) for one, other in zip(plain_rounds, rounds)]
        ms = statistics.median(other for _, other in pairs) * 1e3
        cells.append(f"{ms:9.1f} ms {statistics.median(other / one for one, other in pairs):6.3f} x")
    size = variant.n_bytes()
    seconds = statistics.median(one.wall for one in rounds)
    rate = f"{size / 1e6:8.1f} MB {size / seconds / 1e9:6.2f} GB/s" if size else ""
    beside = "  (time beside plain + one plain file)" if variant.beside_file is not None else ""
    print(f"  {variant.name:40}{''.join(cells)}  {rate}{beside}", flush=True)


def n_bytes_of(folder: Path | None) -> int:
    """Bytes of the files in a folder and below; none without a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder is not None else 0


def seconds_of_file(folder: Path, n_bytes: int) -> float:
    """The time to write one plain file of so many bytes next to the folder."""
    content = np.ones(n_bytes, np.uint8)
    path = folder.with_name(f"{folder.name}.plain")
    start = time.perf_counter()
    with path.open("wb") as file:
        file.write(content)
    seconds = time.perf_counter() - start
    path.unlink()
    return seconds


@contextmanager
def folder(path: Path) -> Iterator[Path]:
    """A folder that is gone afterwards."""
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def run(model: Model, path: Path, n_rounds: int, only: str) -> None:
    """All variants of one model whose name has `only` in it."""
    torch.manual_seed(0)
    network = model.make().eval()
    x = torch.randn(model.shape)
    plain_backend = opscope.torch.backend(enabled=False, form="acl")
    compiled = torch.compile(network, backend=plain_backend, dynamic=False)

    def plain_step(x: Tensor) -> Tensor:
        with torch.no_grad():
            return compiled(x)

    plain = Variant("plain", plain_step)
    print(f"{model.name}: CPU time, the model's thread's, and time of a step, beside the same graph without taps")
    measure(plain, plain, x, model, n_rounds)
    for i, (name, options) in enumerate(dump for dump in DUMPS if only in dump[0]):
        dumped = Dumped(network, path / f"dump{i}", **options)
        is_large = options["data"] == "tensor"
        of_steps = replace(model, n_steps=1) if is_large else model
        measure(dumped.variant(name), plain, x, of_steps, 3 if is_large else n_rounds)
        dumped.check(plain.step(x))
    plain_eager = eager(network)
    for i, (name, options, place) in enumerate(dump for dump in NATIVE_DUMPS if only in dump[0]):
        of_steps = replace(model, n_steps=1) if options["data"] == "tensor" else model
        n = min(n_rounds, 7) if options["data"] == "tensor" else n_rounds
        with folder((place or path) / f"opscope-bench-{os.getpid()}") as out:
            options = {**options, "mode": "all", "form": "native"}
            dumped = NativeDumped(network, out / f"graph{i}", **options)
            measure(dumped.variant(name), plain, x, of_steps, n)
            dumped.check(plain.step(x))
            in_eager = NativeEagerDumped(network, out / f"calls{i}", **options)
            measure(in_eager.variant(f"eager mode, {name}"), plain_eager, x, of_steps, n)
            check_native(in_eager, plain_eager.step(x))
    for i, (name, options) in enumerate(dump for dump in EAGER_DUMPS if only in dump[0]):
        dumped = EagerDumped(network, path / f"eager{i}", **options)
        measure(dumped.variant(f"eager mode, {name}"), eager(network), x, model, n_rounds)
        dumped.check_eager()
    for variant in others(network, path / "others"):
        if only not in variant.name:
            continue
        variant.is_exact = False
        measure(variant, plain, x, replace(model, n_steps=1), max(3, n_rounds // 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", type=Path, metavar="OUT_DIR", help="a folder that is made, and removed at the end")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--model", help="only models whose name begins so")
    parser.add_argument("--only", default="", help="only variants whose name has this in it")
    args = parser.parse_args()
    torch.set_num_threads(1)
    sys.stdout.reconfigure(line_buffering=True)
    print(f"torch {torch.__version__}, one thread, {os.cpu_count()} cores, medians of {args.rounds} rounds")
    for model in MODELS:
        if model.name.startswith(args.model or ""):
            with folder(args.out_dir) as path:
                run(model, path, args.rounds, args.only)


if __name__ == "__main__":
    main()
