"""Cost of dumps of `opscope.torch` on a GPU, compared with the same training steps without dumps and with other tools.

First the kernel alone: tensors of 16 MiB to 1 GiB beside a copy on the device. Then training steps of three models with
random weights: medians over rounds in which the plain step and each variant take turns. Each part checks its answers:
rows against torch's own numbers, losses to the bit against those of plain steps, dumps for completeness.

Ends with 4 if there is no GPU. `--tiny` measures nothing: it takes small models and, without a GPU, the CPU, to show
that the program runs.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Before torch: the workspace that makes cuBLAS give the same bits in each run.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import opscope
import opscope.torch
import torch
from opscope.torch._device import rows as device_rows
from opscope.torch._device.reducer import Reducer, supports
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

NO_GPU = 4
# The first is the package's choice. It is not known yet which is best.
KERNEL_OPTIONS: tuple[dict[str, int], ...] = (
    {"num_warps": 4},
    {"num_warps": 4, "maxnreg": 160},
    {"num_warps": 4, "maxnreg": 128},
    {"num_warps": 8},
)
_MIB = 1 << 20
# More distinct bytes than any cache holds, so that each reading comes from memory.
_ROTATED_BYTES = 1 << 30


@dataclass
class Sizes:
    """How large everything is."""

    kernel_mib: tuple[int, ...] = (16, 64, 256, 1024)
    n_launches: int = 50
    n_rounds: int = 7
    n_steps: int = 3
    batch: int = 64
    tokens: int = 1024
    is_tiny: bool = False


TINY = Sizes(kernel_mib=(1,), n_launches=2, n_rounds=1, n_steps=1, batch=2, tokens=16, is_tiny=True)


class Device:
    """Waiting and timing; on the CPU everything is done at once."""

    def __init__(self, name: str) -> None:
        self.device = torch.device(name)
        self.is_gpu = self.device.type == "cuda"

    def settle(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize()

    def seconds(self, enqueue: Callable[[], None]) -> float:
        """Time on the device from the first thing that is enqueued to the last."""
        if not self.is_gpu:
            start = time.perf_counter()
            enqueue()
            return time.perf_counter() - start
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.settle()
        first.record()
        enqueue()
        last.record()
        self.settle()
        return first.elapsed_time(last) / 1e3


def check_row(row: device_rows.Row, tensor: Tensor) -> None:
    """Expects the numbers that torch computes."""
    exact = tensor.double()
    magnitudes = float(exact.abs().sum())
    is_right = (
        row.n_elements == tensor.numel()
        and row.min == float(exact.min())
        and row.max == float(exact.max())
        and row.n_zero == int((exact == 0).sum())
        and row.n_negative == int((exact < 0).sum())
        and abs(row.sum - float(exact.sum())) <= 1e-6 * magnitudes
        and math.isclose(row.l2, float(exact.norm()), rel_tol=1e-6)
        and math.isclose(row.std, float(exact.std(correction=0)), rel_tol=1e-5)
    )
    if not is_right:
        raise SystemExit(f"the kernel gives other numbers for {tensor.dtype}: {row}")


def measure_kernel(device: Device, sizes: Sizes) -> None:
    """Prints how fast tensors are read and how fast they are copied."""
    print("kernel: bytes read a second; a copy reads and writes, and both count")
    reducer = Reducer(device.device)
    for options in KERNEL_OPTIONS if device.is_gpu else ({},):
        if device.is_gpu:
            from opscope.torch._device.triton_form import TritonForm

            reducer._form = TritonForm({"enable_fp_fusion": False, **options})
            print(f"  compiled with {options}")
        measure_kernel_speed(device, sizes, reducer)
    measure_launches(device, Reducer(device.device), sizes)


def measure_kernel_speed(device: Device, sizes: Sizes, reducer: Reducer) -> None:
    """Prints a row for each dtype and size."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for mib in sizes.kernel_mib:
            n = mib * _MIB // dtype.itemsize
            n_tensors = 2 if sizes.is_tiny else max(2, min(64, _ROTATED_BYTES // (mib * _MIB)))
            # One random tensor, shifted a little: creating a new one each time would take longer than the measurement.
            first = torch.randn(n, device=device.device, dtype=torch.float32).to(dtype)
            tensors = [first.roll(i) for i in range(n_tensors)]
            target = torch.empty_like(first)
            rows = torch.zeros((n_tensors, device_rows.N_WORDS), dtype=torch.int64, device=device.device)
            for i, tensor in enumerate(tensors):
                reducer.reduce([tensor], rows[i : i + 1])
            check_row(device_rows.decode(rows[-1].tolist()), tensors[-1])
            places = [i % n_tensors for i in range(sizes.n_launches)]

            def copy_all(tensors: list[Tensor] = tensors, target: Tensor = target, places: list[int] = places) -> None:
                for i in places:
                    target.copy_(tensors[i])

            def reduce_all(tensors: list[Tensor] = tensors, rows: Tensor = rows, places: list[int] = places) -> None:
                for i in places:
                    reducer.reduce([tensors[i]], rows[i : i + 1])

            n_bytes = mib * _MIB * len(places)
            copied = 2 * n_bytes / min(device.seconds(copy_all) for _ in range(3)) / 1e9
            read = n_bytes / min(device.seconds(reduce_all) for _ in range(3)) / 1e9
            name = str(dtype).removeprefix("torch.")
            print(
                f"  {name:9}{mib:6} MiB  read {read:8.1f} GB/s  copy {copied:8.1f} GB/s  {read / copied:6.2f}",
                flush=True,
            )


def measure_launches(device: Device, reducer: Reducer, sizes: Sizes) -> None:
    """Prints what a call costs the thread that runs the model."""
    for n_tensors, n, name in (
        (1, 1000, "one small"),
        (8, 1000, "eight small"),
        (1, 1 << 16 if sizes.is_tiny else 1 << 22, "one large"),
    ):
        tensors = [torch.randn(n, device=device.device) for _ in range(n_tensors)]
        rows = torch.zeros((n_tensors, device_rows.N_WORDS), dtype=torch.int64, device=device.device)
        reducer.reduce(tensors, rows)
        device.settle()
        n_calls = 200 if device.is_gpu else 2
        start = time.perf_counter()
        for _ in range(n_calls):
            reducer.reduce(tensors, rows)
        per_call = (time.perf_counter() - start) / n_calls
        device.settle()
        print(f"  a call for {name:12} {per_call * 1e6:8.1f} us of the CPU", flush=True)


@dataclass
class Workload:
    """A training step with its state. `step` returns the loss, still on the device."""

    name: str
    model: nn.Module
    step: Callable[[], Tensor]
    reset: Callable[[], None]
    # Names of operators whose tensors one variant dumps.
    chosen: list[str] = field(default_factory=list)


def resnet50(device: Device, sizes: Sizes) -> Workload:
    from torchvision.models import resnet18, resnet50

    model = (resnet18 if sizes.is_tiny else resnet50)(weights=None).to(device.device)
    extent = 32 if sizes.is_tiny else 224
    x = torch.randn(sizes.batch, 3, extent, extent, device=device.device)
    y = torch.randint(0, 1000, (sizes.batch,), device=device.device)
    return _workload("ResNet-50, batch 64, float32, SGD", model, lambda: nn.functional.cross_entropy(model(x), y))


def gpt2(device: Device, sizes: Sizes) -> Workload:
    from transformers import GPT2Config, GPT2LMHeadModel

    small = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 100} if sizes.is_tiny else {}
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, **small)
    model = GPT2LMHeadModel(config).to(device.device)
    tokens = torch.randint(0, config.vocab_size, (8, sizes.tokens), device=device.device)
    return _workload(
        "GPT-2 (124M), 8 x 1024 tokens, float32, SGD", model, lambda: model(input_ids=tokens, labels=tokens).loss
    )


def llama(device: Device, sizes: Sizes) -> Workload:
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {
        "hidden_size": 64 if sizes.is_tiny else 2048,
        "intermediate_size": 128 if sizes.is_tiny else 8192,
        "num_hidden_layers": 2 if sizes.is_tiny else 16,
        "num_attention_heads": 4 if sizes.is_tiny else 32,
        "num_key_value_heads": 2 if sizes.is_tiny else 8,
        "vocab_size": 100 if sizes.is_tiny else 32_000,
    }
    config = LlamaConfig(use_cache=False, attn_implementation="sdpa", **shape)
    model = LlamaForCausalLM(config).to(device.device, torch.bfloat16)
    tokens = torch.randint(0, config.vocab_size, (4, sizes.tokens), device=device.device)
    return _workload(
        "Llama-like (1B), 4 x 1024 tokens, bfloat16, SGD", model, lambda: model(input_ids=tokens, labels=tokens).loss
    )


def _workload(name: str, model: nn.Module, loss_of: Callable[[], Tensor]) -> Workload:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    before = {key: value.detach().clone() for key, value in model.state_dict().items()}

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def reset() -> None:
        model.load_state_dict(before)

    # A few of whichever the model has: those of all would fill the disk.
    chosen = [f"{kind}_{i}" for kind in ("convolution", "addmm", "mm") for i in (3, 7, 11, 15)]
    return Workload(name, model, step, reset, chosen)


class RowsAlone(TorchDispatchMode):
    """Computes the rows of every output and keeps them: what the kernels cost without a dump."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.reducer = Reducer(device.device)
        self.rows = torch.zeros((20_000, device_rows.N_WORDS), dtype=torch.int64, device=device.device)
        self.n = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        found = result if isinstance(result, (tuple, list)) else (result,)
        tensors = [tensor for tensor in found if isinstance(tensor, Tensor) and supports(tensor)]
        if tensors:
            if self.n + len(tensors) > len(self.rows):
                self.n = 0
            self.reducer.reduce(tensors, self.rows[self.n : self.n + len(tensors)])
            self.n += len(tensors)
        return result


class NaiveHook(TorchDispatchMode):
    """The hook that one writes in five minutes: four numbers of every output, each waited for."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.numel():
                [float(number) for number in (tensor.min(), tensor.max(), tensor.mean(), tensor.norm())]
        return result


@dataclass
class Variant:
    """A way to run steps. `entered` makes what they run in, `after_step` ends one, `close` checks what came of it."""

    name: str
    entered: Callable[[], AbstractContextManager]
    after_step: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None


def dumped(name: str, path: Path, **options: Any) -> Variant:
    """A dump of eager mode."""
    dump = opscope.torch.eager(path, **options)

    def close() -> None:
        report = dump.finish()
        # Uninitialised memory has no values.
        n_lost = report["n_dropped"] - report["unseen"].get("uninitialised", 0)
        if report["first_error"] or report["first_fault"] or n_lost:
            raise SystemExit(f"{name}: the dump is not complete: {report}")
        if "steps" not in options:
            found = opscope.open(path)
            if found.problems or not len(list(found)):
                raise SystemExit(f"{name}: the dump cannot be read, or holds nothing: {found.problems}")
            print(f"    {report['n_operators_written']} operators written, not seen: {report['unseen']}", flush=True)
        shutil.rmtree(path, ignore_errors=True)

    return Variant(name, lambda: dump, dump.step, close)


def variants(workload: Workload, device: Device, path: Path) -> Iterator[Variant]:
    yield dumped("dump on, no step chosen", path / "off", data="stats", mode="output", steps=10**9)
    yield Variant("rows of outputs, no dump", lambda: RowsAlone(device))
    yield dumped("statistics of outputs", path / "outputs", data="stats", mode="output")
    yield dumped("statistics of inputs and outputs", path / "all", data="stats", mode="all")
    yield dumped("tensors of chosen operators", path / "chosen", data="tensor", mode="output", layers=workload.chosen)
    yield Variant("naive hook", NaiveHook)
    if importlib.util.find_spec("torch.utils._debug_mode"):
        from torch.utils._debug_mode import DebugMode

        yield Variant("DebugMode", DebugMode)
    if importlib.util.find_spec("msprobe"):
        yield by_msprobe(workload, path / "msprobe")
    else:
        print("    msprobe: skipped, it is not installed (mindstudio-probe)", flush=True)


def by_msprobe(workload: Workload, path: Path) -> Variant:
    """The vendor's tool, statistics of API calls. It patches torch, and so comes last."""
    from msprobe.pytorch import PrecisionDebugger

    path.mkdir(parents=True)
    config = path / "config.json"
    settings: dict[str, Any] = {"task": "statistics", "dump_path": str(path / "dump"), "rank": [], "step": []}
    settings["level"] = "L1"
    settings["statistics"] = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    config.write_text(json.dumps(settings), encoding="utf-8")
    debugger = PrecisionDebugger(config_path=str(config))

    class Running:
        def __enter__(self) -> None:
            debugger.start(model=workload.model)

        def __exit__(self, *error: object) -> None:
            debugger.stop()

    return Variant("msprobe, statistics (L1)", Running, debugger.step)


def steps(workload: Workload, variant: Variant, device: Device, n: int) -> tuple[float, list[Tensor]]:
    """Runs steps from the same weights; returns the seconds per step and the losses."""
    workload.reset()
    losses = []
    device.settle()
    start = time.perf_counter()
    for _ in range(n):
        with variant.entered():
            losses.append(workload.step())
        variant.after_step()
    device.settle()
    return (time.perf_counter() - start) / n, losses


def measure_model(workload: Workload, device: Device, sizes: Sizes, path: Path, deadline: float) -> None:
    """Prints a row for each variant."""
    plain = Variant("plain", nullcontext)
    for _ in range(2):
        steps(workload, plain, device, sizes.n_steps)
    _, expected = steps(workload, plain, device, sizes.n_steps)
    _, again = steps(workload, plain, device, sizes.n_steps)
    is_exact = all(map(torch.equal, expected, again))
    print(f"{workload.name}{'' if is_exact else ' (plain steps differ among themselves: losses are not compared)'}")
    for variant in variants(workload, device, path):
        if time.monotonic() > deadline:
            print(f"  {variant.name:36} not measured: the time is up", flush=True)
            continue
        steps(workload, variant, device, 1)
        plain_times, ratios = [], []
        for _ in range(sizes.n_rounds):
            plain_seconds, _ = steps(workload, plain, device, sizes.n_steps)
            seconds, losses = steps(workload, variant, device, sizes.n_steps)
            plain_times.append(plain_seconds)
            ratios.append(seconds / plain_seconds)
            if is_exact and not all(map(torch.equal, losses, expected)):
                raise SystemExit(f"{variant.name}: the losses are not those of plain steps")
        ms = statistics.median(plain_times) * 1e3
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"  {variant.name:36} plain {ms:8.1f} ms  {statistics.median(ratios):7.3f} x  ({spread})", flush=True)
        variant.close()


def measure_pinned_copy(device: Device) -> None:
    """Prints how fast tensors go to pinned memory: what copies of a dump are measured against."""
    if not device.is_gpu:
        return
    source = torch.empty(256 * _MIB, dtype=torch.uint8, device=device.device)
    target = torch.empty(256 * _MIB, dtype=torch.uint8, pin_memory=True)
    seconds = min(device.seconds(lambda: target.copy_(source, non_blocking=True) and None) for _ in range(5))
    print(f"to pinned memory: {256 * _MIB / seconds / 1e9:.1f} GB/s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("path", type=Path, help="a folder for dumps that does not exist")
    parser.add_argument("--tiny", action="store_true", help="small models, on the CPU if there is no GPU")
    parser.add_argument("--seconds", type=float, default=780.0, help="no model is begun after so long (default: 780)")
    parser.add_argument("--only", nargs="*", choices=("kernel", "resnet50", "gpt2", "llama"), help="parts to run")
    options = parser.parse_args()
    if not torch.cuda.is_available() and not options.tiny:
        print("no GPU: torch sees none, so that nothing was measured", file=sys.stderr)
        return NO_GPU
    deadline = time.monotonic() + options.seconds
    device = Device("cuda" if torch.cuda.is_available() else "cpu")
    sizes = TINY if options.tiny else Sizes()
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    print_versions(device)
    wanted = options.only or ("kernel", "resnet50", "gpt2", "llama")
    if "kernel" in wanted:
        measure_kernel(device, sizes)
        measure_pinned_copy(device)
    for make in (resnet50, gpt2, llama):
        if make.__name__ in wanted and time.monotonic() < deadline:
            measure_model(make(device, sizes), device, sizes, options.path / make.__name__, deadline)
            if device.is_gpu:
                torch.cuda.empty_cache()
    return 0


def print_versions(device: Device) -> None:
    triton = importlib.util.find_spec("triton") and __import__("triton").__version__
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, triton {triton}", end=", ")
    if device.is_gpu:
        properties = torch.cuda.get_device_properties(device.device)
        driver = getattr(torch._C, "_cuda_getDriverVersion", lambda: "unknown")()
        print(f"{properties.name}, {properties.total_memory >> 30} GiB, driver's CUDA {driver}", flush=True)
    else:
        print("the CPU", flush=True)


if __name__ == "__main__":
    sys.exit(main())
