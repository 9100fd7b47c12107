"""Dumps of values on a device, against dumps of the same values on the CPU. The device is that of `fake_device.py`."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import models
import opscope
import opscope.torch
import pytest
import torch
from device_dumps import CHECKS, check_counts, check_elements, check_numbers, dumped, in_place, on_device, rows
from eager_runs import train
from fake_device import FakeDevice, WaitedError, installed, step
from opscope.torch._device import queue
from opscope.torch._device.pinned import PinnedPool
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


@pytest.mark.parametrize("data", CHECKS)
@pytest.mark.parametrize("name", models.CASES)
def test_training(tmp_path, name: str, data: str) -> None:
    """Two steps with autograd and an optimizer: the model's bits are the same with and without, and so is the dump."""
    plain = train(name, contextlib.nullcontext())
    reports = []
    for place in ("cpu", "device"):
        device = FakeDevice()
        with installed(device) if place == "device" else contextlib.nullcontext():
            dump = opscope.torch.eager(tmp_path / place, data=data)
            with step(device):
                assert train(name, dump) == plain
            reports.append(dump.finish())
    assert CHECKS[data](*reports) > 300
    counted = "n_reduced_on_device" if data == "stats" else "n_copied_from_device"
    assert 0 < reports[1][counted] and reports[0][counted] == 0
    command = [os.environ["OPSCOPE"], "compare", reports[1]["root"], reports[0]["root"]]
    compared = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert compared.returncode == 0, compared.stdout


@pytest.mark.parametrize("data", CHECKS)
def test_a_planted_fault_is_named(tmp_path, data) -> None:
    """A wrong weight on the device is distinguished from its consequences, by elements and by statistics."""
    torch.manual_seed(3)
    layers = [torch.nn.Linear(64, 64) for _ in range(4)]
    model, x = torch.nn.Sequential(*(part for one in layers for part in (one, torch.nn.Tanh()))), torch.randn(32, 64)
    with torch.no_grad():
        with opscope.torch.eager(tmp_path / "cpu", data=data) as golden:
            model(x)
        layers[2].weight[5] *= 3
        device = FakeDevice()
        with installed(device), step(device), opscope.torch.eager(tmp_path / "device", data=data) as target:
            model(x)
        report = target.finish()
    result = tmp_path / "result.json"
    command = ["compare", report["root"], golden.finish()["root"], "--json", str(result), "--quiet"]
    done = subprocess.run([os.environ["OPSCOPE"], *command], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 1, done.stderr
    document = json.loads(result.read_text())
    first = document["summary"]["first_failure"]
    # The weight goes through a view before it is multiplied.
    named = document["operators"][first["operator"]]["target"][-1]["op_name"]
    assert named in ("t_2", "addmm_2"), (named, first)


@pytest.mark.sampled(0.35, each="data")
@pytest.mark.parametrize("form", ["native", "acl"])
@pytest.mark.parametrize("data", CHECKS)
@pytest.mark.parametrize("name", models.CASES)
def test_graphs(tmp_path, name: str, data: str, form: str) -> None:
    case = models.CASES[name]
    plain = models.run(case, is_training=True)
    expected = opscope.torch.backend(tmp_path / "cpu", data=data, form=form)
    assert models.same(models.run(case, expected, is_training=True), plain)
    device = FakeDevice()
    with installed(device):
        found = opscope.torch.backend(tmp_path / "device", data=data, form=form)
        with step(device):
            assert models.same(models.run(case, found, is_training=True), plain)
        reports = expected.finish(), found.finish()
    if form == "native":
        assert CHECKS[data](*reports) > 50
        return
    # Cells of this form are the CPU's to the last digit, as it computes them.
    assert reports[1]["n_reduced_on_device"] == 0
    check_counts(reports[1])
    files = [content_of(report["root"]) for report in reports]
    assert [name for name, _ in files[0]] == [name for name, _ in files[1]]
    if data == "stats":
        assert files[0] == files[1]


def content_of(root: str) -> list[tuple[str, bytes]]:
    """Files of a dump with their contents, except the descriptions."""
    files = [path for path in Path(root).rglob("*") if path.is_file() and ".opscope" not in path.parts]
    return sorted((plain_name(path, root), path.read_bytes()) for path in files)


def plain_name(path: Path, root: str) -> str:
    """A path without the number of its graph, and without the time in its name."""
    parts = ("/".join(path.relative_to(root).parts[3:])).split(".")
    return ".".join(part for part in parts if not (part.isdigit() and len(part) > 12))


def odd_values() -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[1.0, nan, -inf], [inf, -0.0, 1e-45]])
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.bool, torch.uint8, torch.complex64):
        y = x.nan_to_num().to(dtype) if not dtype.is_floating_point else x.to(dtype)
        y.clone()
    x.t()[::2].neg()
    torch.ones(1).expand(5, 7) + 1
    torch.zeros(0, 3).exp()
    torch.tensor(3.0).sin()
    torch.randn(3, dtype=torch.complex64).conj().imag.neg()
    torch.arange(300, dtype=torch.int64).reshape(3, 100).t() + (1 << 40)
    torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.tensor([1.0, 2.0]), (4,)).coalesce()


def checkpointed() -> None:
    torch.manual_seed(1)
    inner = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Dropout(0.5), nn.Linear(12, 6))
    x = torch.randn(3, 6, requires_grad=True)
    checkpoint(inner, x, use_reentrant=False).square().sum().backward()


def inferred() -> None:
    with torch.inference_mode():
        x = torch.randn(4, 4)
        (x @ x).relu_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (torch.ones(3, 3) @ torch.ones(3, 3)).sum()


FUNCTIONS = {one.__name__: one for one in (in_place, odd_values, checkpointed, inferred)}


@pytest.mark.parametrize("data", CHECKS)
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions(tmp_path, function: Callable[[], None], data: str) -> None:
    torch.manual_seed(2)
    expected = dumped(tmp_path / "cpu", function, data=data)
    torch.manual_seed(2)
    found = on_device(tmp_path / "device", function, data=data)
    assert CHECKS[data](expected, found) > 8
    for name in ("first_non_finite", "deliberate_infinities"):
        # As texts, for NaN is no other NaN's equal.
        assert str(found[name]) == str(expected[name])


@pytest.mark.sampled(0.35, each="data")
@pytest.mark.parametrize("data", CHECKS)
@pytest.mark.parametrize("seed", range(6))
def test_orders_of_completion(tmp_path, data: str, seed: int) -> None:
    """Whether things come at once, late, or only when the dump is finished."""
    expected = dumped(tmp_path / "cpu", in_place, data=data)
    passes: Callable[[], int] = random.Random(seed).choices([1, 2, 5, 40], k=1)[0].__int__
    if seed == 0:
        passes = lambda: 1 << 60  # noqa: E731
    elif seed == 1:
        source = random.Random(9)
        passes = lambda: source.randint(1, 12)  # noqa: E731
    device = FakeDevice(passes)
    CHECKS[data](expected, on_device(tmp_path / "device", in_place, device, data=data))
    assert device.n_waits > 0 or seed > 0


def test_many_rows(tmp_path) -> None:
    """More values than are sent together."""

    def run() -> None:
        x = torch.ones(3)
        for i in range(2 * queue.N_ROWS):
            x = x + i

    expected = dumped(tmp_path / "cpu", run, data="stats")
    device = FakeDevice()
    found = on_device(tmp_path / "device", run, device, data="stats")
    check_numbers(expected, found)
    # Each value is processed once, although two operators have it, and comes with others.
    assert found["n_reduced_on_device"] == 2 * queue.N_ROWS + 1
    assert device.n_copies < 8


def test_a_waiting_dump_is_noticed(tmp_path) -> None:
    """The device reports waits; otherwise the other tests would prove nothing."""
    device = FakeDevice()
    with installed(device), step(device), pytest.raises(WaitedError):
        device.wait(device.record(device.main))


@pytest.mark.parametrize("data", CHECKS)
def test_exception(tmp_path, data: str) -> None:
    def run() -> None:
        x = torch.ones(4, 4)
        y = x.exp()
        with pytest.raises(RuntimeError):
            y @ torch.ones(3, 3)
        y.mul_(2)

    expected = dumped(tmp_path / "cpu", run, data=data)
    CHECKS[data](expected, on_device(tmp_path / "device", run, data=data))
    device = FakeDevice()
    with installed(device):
        dump = opscope.torch.eager(tmp_path / "raised", data=data)
        with pytest.raises(ZeroDivisionError), step(device), dump:
            torch.ones(3).sin()
            raise ZeroDivisionError
        report = dump.finish()
    check_counts(report)
    assert {one.name for one in opscope.open(report["root"])} >= {"sin"}


def test_bounded_memory(tmp_path) -> None:
    """Copies beyond the limit wait for those before them, or are lost and counted."""

    def run() -> None:
        x = torch.arange(4096.0)
        for _ in range(20):
            x = x + 1

    limit = {"device_bytes_max": 100_000, "data": "tensor"}
    expected = dumped(tmp_path / "cpu", run, data="tensor")
    device = FakeDevice(lambda: 1 << 60)
    device.may_wait = True
    check_elements(expected, on_device(tmp_path / "wait", run, device, **limit))
    assert device.n_waits > 5
    device = FakeDevice(lambda: 1 << 60)
    found = on_device(tmp_path / "drop", run, device, when_behind="drop", **limit)
    check_counts(found)
    assert found["n_dropped"] > 0 and found["n_written"] > 0
    assert found["unseen"] == {"no room for copies from a device": found["n_dropped"]}
    # A tensor larger than the limit goes alone.
    device = FakeDevice()
    device.may_wait = True
    limit["device_bytes_max"] = 4096
    check_elements(expected, on_device(tmp_path / "alone", run, device, **limit))


def test_recording_of_a_graph(tmp_path) -> None:
    """Recorded operators have not run, and must not be observed."""
    device = FakeDevice()
    device.records_graph = True
    found = on_device(tmp_path, in_place, device, data="stats")
    check_counts(found)
    assert set(found["unseen"]) == {"recorded for a CUDA graph"} and found["n_written"] == 0


@pytest.mark.parametrize("data", ["stats", "tensor"])
def test_recording_between_other_operators(tmp_path, data) -> None:
    """Values that are on their way when a recording begins come behind it."""
    device = FakeDevice()
    x = torch.linspace(-1, 1, 50000)
    with installed(device), opscope.torch.eager(tmp_path, data=data) as dump:
        with step(device):
            y = x * 2
            device.records_graph = True
            for _ in range(5):
                y = y + 1
            device.records_graph = False
            y = y * 3
    found = dump.finish()
    check_counts(found)
    assert set(found["unseen"]) == {"recorded for a CUDA graph"}
    # Of both products the result, and what the first one reads.
    assert found["n_written"] >= 3


@pytest.mark.parametrize("data", CHECKS)
def test_fork(tmp_path, data: str) -> None:
    """A fork with copies under way ends as any other, and the parent's dump goes on."""
    device = FakeDevice(lambda: 1 << 60)
    with installed(device):
        dump = opscope.torch.eager(tmp_path, data=data)
        with step(device), dump:
            x = torch.ones(3).exp()
            if (child := os.fork()) == 0:
                torch.ones(3).sin()
                opscope.torch.finish()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            x.cos()
        report = dump.finish()
    check_counts(report)
    assert {one.name for one in opscope.open(report["root"])} >= {"exp", "cos"}


def test_layers_of_modes(tmp_path) -> None:
    """Operators of the dump's own are in no other mode's sight, and not in its own."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        names: list[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    device = FakeDevice()
    with installed(device), Seen() as seen, step(device), opscope.torch.eager(tmp_path, data="stats") as dump:
        torch.ones(3).exp()
        dump.step()
    report = dump.finish()
    check_counts(report)
    assert seen.names == ["aten.ones.default", "aten.exp.default"]


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    yield {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(opscope.__file__).resolve().parents[1]), *sys.path])}


def test_a_dump_of_the_cpu_loads_no_kernels(tmp_path, environment) -> None:
    program = """
        import sys, torch, opscope.torch
        with opscope.torch.eager(sys.argv[1], data="stats") as dump:
            torch.ones(3).exp()
        assert dump.finish()["n_written"] > 0
        loaded = [name for name in sys.modules if name.startswith("opscope.torch._device.")]
        assert not [name for name in loaded if name.endswith(("reducer", "form", "kernels"))], loaded
    """
    program = textwrap.dedent(program)
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, env=environment, timeout=600)


def test_steps_without_a_dump(tmp_path) -> None:
    """Nothing is asked of the device in steps that are not dumped."""
    device = FakeDevice()
    with installed(device):
        dump = opscope.torch.eager(tmp_path, data="stats", steps=1)
        n_copies = []
        with step(device), dump:
            for _ in range(3):
                torch.ones(3).exp().sin()
                dump.step()
                n_copies.append(device.n_copies)
        report = dump.finish()
    check_counts(report)
    assert n_copies == [0, 1, 1] and report["n_reduced_on_device"] == 3


def test_threads(tmp_path) -> None:
    """Compiled code in several threads at once."""
    device = FakeDevice()
    with installed(device), step(device):
        dump = opscope.torch.backend(tmp_path, data="stats")
        work = torch.compile(lambda x: (x * 2).exp().sum(0) + 1, backend=dump)
        work(torch.ones(8, 8))
        threads = [threading.Thread(target=lambda: [work(torch.ones(8, 8)) for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    report = dump.finish()
    check_counts(report)
    assert report["n_steps"] == 81 and report["unseen"] == {}
    found = [row for row in rows(report["root"]) if row["op_name"] == "exp" and row["side"] == "output"]
    assert len(found) == 81 and {row["max"] for row in found} == {float(torch.ones(1).mul(2).exp())}


def test_memory_that_is_lent() -> None:
    """Blocks return when their lease is released, and go to tensors that they fit."""
    made: list[int] = []

    def allocate(n_bytes: int) -> Tensor:
        made.append(n_bytes)
        return torch.empty(n_bytes, dtype=torch.uint8)

    pool = PinnedPool(16384, allocate)
    first, second = pool.lend(0), pool.lend(5000)
    assert made == [4096, 8192] and pool.is_scarce
    assert pool.has_room(4096) and not pool.has_room(4097)
    del first
    third = pool.lend(4096)
    assert made == [4096, 8192] and third.block.numel() == 4096
    del second, third
    assert not pool.is_scarce and pool.has_room(16384)
    pool.lend(16384)
    assert made == [4096, 8192, 16384]


@pytest.mark.parametrize("room", [None, 4096])
@pytest.mark.parametrize("name", ["float", "double", "integer", "none"])
def test_overflow(tmp_path, name: str, room: int | None) -> None:
    """Elements are copied of operators only whose numbers do not say that all is well."""

    def work(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
        found: list[Tensor] = [x]
        for i in range(20):
            found.append(found[-1] * 1.5 + i)
        if name == "float":
            found.append((found[-1] * 1e38).square())
        elif name == "double":
            found.append(found[-1].double().mul(1e300).square())
        elif name == "integer":
            found.append(n * 3)
        return tuple(found[-2:])

    args = (torch.ones(64), torch.arange(64, dtype=torch.int32))
    reports = []
    for place in ("cpu", "device"):
        (tmp_path / place).mkdir()
        text = json.dumps({"dump": {"dump_path": str(tmp_path / place), "dump_debug": "on"}})
        config = {"device_bytes_max": room}
        device = FakeDevice()
        device.may_wait = room is not None
        with installed(device) if place == "device" else contextlib.nullcontext():
            dump = opscope.torch.backend(acl_json=text, **config)
            with step(device), torch.no_grad():
                torch.compile(work, backend=dump)(*args)
            reports.append(dump.finish())
        torch._dynamo.reset()
    for key in ("n_operators_overflowed", "n_selected", "n_written", "n_operators_seen", "unseen"):
        assert reports[0][key] == reports[1][key], key
    check_counts(reports[1])
    assert reports[1]["n_operators_overflowed"] == (name in ("float", "double"))
    if name != "none":
        names = [[p.name.rsplit(".", 3)[0] for p in sorted(Path(r["root"]).rglob("*.*.*.*"))] for r in reports]
        assert names[0] == names[1]
    if room is None:
        assert reports[1]["n_copied_from_device"] <= 6 < reports[1]["n_reduced_on_device"]
