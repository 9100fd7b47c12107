"""Memory of tensors that the program takes away while a dump has work left: no writer reads it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import opscope.torch
import pytest
import torch

SOURCE = Path(opscope.__file__).resolve().parents[1]
# More than any of these programs takes; one that hangs fails.
SECONDS_MAX = 600


def extremes(root: Path, name: str) -> list[tuple[float, float]]:
    """The least and the greatest output of each execution of an operator, of its elements or from a table."""
    found = [one for one in opscope.open(root) if one.name == name and one.side == "output"]
    statistics = [one.statistics() for one in found]
    return [(float(one.min), float(one.max)) for one in statistics]


@pytest.mark.parametrize("data", ["tensor", "stats"])
@pytest.mark.parametrize("engine", ["eager", "compiled"])
def test_memory_that_is_taken_away_is_not_read(engine: str, data: str, tmp_path: Path) -> None:
    """As fully sharded parameters do, and offloaded activations: nothing a writer has left to do may look there."""
    n = 1 << 18
    weight, array = torch.nn.Parameter(torch.full((n,), 2.0)), np.full(n, 3.0, np.float32)
    taken: list[torch.Tensor] = []

    def pack(saved: torch.Tensor) -> torch.Tensor:
        copied = saved.detach().clone()
        if not saved.is_leaf:
            taken.append(saved)
        return copied

    def model(x: torch.Tensor) -> torch.Tensor:
        product = x * weight
        return product.sin().exp().sum()

    dump: Any = (opscope.torch.backend if engine == "compiled" else opscope.torch.eager)(tmp_path, data=data, form="acl")
    call = torch.compile(model, backend=dump) if engine == "compiled" else model
    if engine == "eager":
        dump.__enter__()
    for step in range(4):
        x = torch.from_numpy(array)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
            result = call(x)
        del result
        for tensor in taken:
            tensor.untyped_storage().resize_(0)
        taken.clear()
        x.data = torch.zeros(1)
        array.resize(0, refcheck=False)
        size = weight.untyped_storage().nbytes()
        weight.untyped_storage().resize_(0)
        # All memory that was freed has been reused by now.
        rubbish = [torch.full((n,), -7.0) for _ in range(6)]
        weight.untyped_storage().resize_(size)
        with torch.no_grad():
            weight.fill_(2.0)
        array.resize(n, refcheck=False)
        array[:] = 3.0
        del rubbish
        if engine == "eager":
            dump.step()
    if engine == "eager":
        dump.__exit__(None, None, None)
    report = dump.finish()
    assert report["first_error"] is None and report["n_written"] > 0
    assert extremes(tmp_path, "mul") == [(6.0, 6.0)] * 4
    sine = float(torch.full((n,), 6.0).sin()[0])
    assert extremes(tmp_path, "sin") == [pytest.approx((sine, sine), rel=1e-5)] * 4


# Each returns a tensor of `N` threes in memory of another kind, and a function that takes the memory away.
MEMORY = {
    "file": """
        def make():
            path = f"{root}/numbers.bin"
            np.full(N, 3.0, np.float32).tofile(path)
            # Reading beyond the end of a truncated file raises SIGBUS.
            return torch.from_file(path, shared=True, size=N), lambda: os.truncate(path, 0)
    """,
    "mmap": """
        def make():
            memory = mmap.mmap(-1, 4 * N)
            array = np.frombuffer(memory, np.float32)
            array[:] = 3.0
            # Raises while the memory is referenced.
            return torch.from_numpy(array), memory.close
    """,
    "shared memory": """
        def make():
            memory = SharedMemory(create=True, size=4 * N)
            array = np.ndarray(N, np.float32, memory.buf)
            array[:] = 3.0

            def take():
                memory.close()
                memory.unlink()

            return torch.from_numpy(array), take
    """,
    "unmapped": """
        def make():
            memory = mmap.mmap(-1, 4 * N)
            address = np.frombuffer(memory, np.float32).ctypes.data
            numbers = (ctypes.c_float * N).from_address(address)
            tensor = torch.frombuffer(numbers, dtype=torch.float32).fill_(3.0)
            mappings.append(memory)
            return tensor, lambda: libc.mprotect(ctypes.c_void_p(address), 4 * N, 0)
    """,
    "shared tensor": """
        def make():
            return torch.full((N,), 3.0).share_memory_(), lambda: None
    """,
    "storage": """
        def make():
            tensor = torch.full((N,), 3.0)
            return tensor, lambda storage=tensor.untyped_storage(): storage.resize_(0)
    """,
}

PROGRAM = """
import ctypes, mmap, os, sys
from multiprocessing.shared_memory import SharedMemory
import numpy as np
import opscope.torch
import torch

N = 1 << 20
root, engine, data = sys.argv[1:]
libc = ctypes.CDLL(None)
# Mappings that end with the process; their memory may not be touched.
mappings = []

MAKE
def model(x):
    return (x * 2).sin() + x

dump = (opscope.torch.backend if engine == "compiled" else opscope.torch.eager)(root + "/dump", data=data, n_writers=1, form="acl")
call = torch.compile(model, backend=dump) if engine == "compiled" else model
if engine == "eager":
    dump.__enter__()
for step in range(3):
    x, take = make()
    result = call(x)
    del x
    take()
    del take
    rubbish = [torch.full((N,), -7.0) for _ in range(4)]
    if engine == "eager":
        dump.step()
if engine == "eager":
    dump.__exit__(None, None, None)
report = dump.finish()
assert report["first_error"] is None and report["first_fault"] is None, report
assert report["n_written"] > 0, report
sys.stdout.flush()
# Without destructors of what was taken away.
os._exit(0)
"""


@pytest.mark.parametrize("data", ["tensor", "stats"])
@pytest.mark.parametrize("engine", ["eager", "compiled"])
@pytest.mark.parametrize("memory", MEMORY)
def test_memory_of_every_kind(memory: str, engine: str, data: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("MAKE\n", textwrap.dedent(MEMORY[memory])))
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(program), str(tmp_path), engine, data],
        capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    dump = tmp_path / "dump"
    inputs = [one.statistics() for one in opscope.open(dump) if one.side == "input" and one.slot == 0 and "mul" in one.name]
    assert [(one.min, one.max) for one in inputs] == [(3.0, 3.0)] * 3
    assert extremes(dump, "mul") == [(6.0, 6.0)] * 3
