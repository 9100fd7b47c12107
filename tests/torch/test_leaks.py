"""A long training run with a dump in every step takes no more of anything than a short one."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import models
import opscope.torch
import pytest
import torch
from torch import nn
from waiting import wait_for

N_STEPS = 200
N_WARM = 40
PAGE = os.sysconf("SC_PAGESIZE")
# The memory that an allocator may keep for itself. One activation of the larger model kept in each step would be 80 MB.
RSS_GROWTH_MAX = 48 << 20


@dataclass
class Held:
    """The resources that a process holds at a moment."""

    n_tensors: int
    n_files: int
    n_threads: int
    rss: int


def held() -> Held:
    gc.collect()
    n_tensors = sum(1 for one in gc.get_objects() if type(one) in (torch.Tensor, nn.Parameter))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return Held(n_tensors, len(os.listdir("/proc/self/fd")), threading.active_count(), pages * PAGE)


class Wide(nn.Module):
    """With 512 rows a step has over 4 MB of activations and gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 8)
        self.norm = nn.BatchNorm1d(256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.norm(self.up(x)).relu())


def train(model: nn.Module, shape: tuple[int, ...], backend: Any, root: Path) -> list[Held]:
    """Trains and returns what is held after some steps and at the end, each time with nothing left to write."""
    compiled = torch.compile(model, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    found = []
    for step in range(N_STEPS):
        optimizer.zero_grad()
        compiled(torch.randn(shape)).square().mean().backward()
        optimizer.step()
        if step in (N_WARM, N_STEPS - 1):
            wait(backend)
            found.append(settled(backend))
        if step % 20 == 19:
            wait(backend)
            for folder in root.glob("*/*/0/graph_*/*/*"):
                shutil.rmtree(folder)
    return found


def wait(backend: Any) -> None:
    """Until everything is written."""

    def is_written() -> bool:
        counters = backend.counters()
        return counters["n_operators_written"] == counters["n_operators_seen"]

    wait_for(is_written, "the last record")


def settled(backend: Any) -> Held:
    """A record counts as written a little before its tensors are let go: what is held when no more of them go."""
    seen: list[Held] = []

    def is_settled() -> bool:
        backend.counters()
        seen.append(held())
        return len(seen) > 2 and len({one.n_tensors for one in seen[-3:]}) == 1

    wait_for(is_settled, "an end of letting go")
    return seen[-1]


@pytest.mark.parametrize(
    ("make", "shape", "data"),
    [
        (Wide, (512, 64), "stats"),
        (models.Cnn, (2, 3, 10, 10), "tensor"),
        (Wide, (64, 64), "tensor"),
    ],
    ids=["statistics", "tensors of a small model", "tensors"],
)
def test_nothing_is_kept_from_step_to_step(tmp_path, make: type, shape: tuple[int, ...], data: str) -> None:
    root = tmp_path / "dump"
    # The queue is bounded, or memory would depend on how far the writers fall behind.
    backend = opscope.torch.backend(root, data=data, queue_bytes_max=8 << 20, form="acl")
    early, late = train(make(), shape, backend, root)
    # One tensor kept in each step would be 160.
    assert late.n_tensors <= early.n_tensors + 40
    assert late.n_files <= early.n_files + 2
    assert late.n_threads <= early.n_threads
    assert late.rss - early.rss < RSS_GROWTH_MAX, (early, late)
    report = backend.finish()
    assert report["n_steps_active"] == report["n_steps"] == 2 * N_STEPS
    assert report["n_dropped"] == 0 and report["first_error"] is None
    assert report["n_selected"] == report["n_written"] + report["n_refused"]
    assert held().n_files <= early.n_files
    shutil.rmtree(root)
