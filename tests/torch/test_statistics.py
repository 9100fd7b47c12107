"""Statistics files against numbers computed from what torch's own interpreter sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dumps
import models
import numpy as np
import opscope.torch
import pytest
import torch
from reference import Reference, tensors
from torch import Tensor

DTYPES = {torch.float64: np.float64, torch.float32: np.float32, torch.float16: np.float16}


def running_mean(values: np.ndarray) -> float:
    """The average by the vendor's rule, element after element in row-major order."""
    mean = 0.0
    for n, x in enumerate(values.astype(np.float64).tolist(), 1):
        mean += (x - mean) / n
    return mean


def expected_row(shape: tuple[int, ...], payload: bytes, dtype: torch.dtype) -> dict[str, str]:
    values = np.frombuffer(payload, DTYPES[dtype])
    row = {"Shape": "x".join(map(str, shape)) or "-", "Count": str(values.size)}
    for name, number in [("Max", values.max()), ("Min", values.min()), ("Avg", running_mean(values))]:
        row[f"{name} Value"] = f"{float(number):g}"
    return row


def check(tmp_path: Any, function: Callable[[Tensor], Any], inputs: list[Tensor], **options: Any) -> None:
    """Expects the statistics of every tensor of every operator, in one step for each input."""
    reference = Reference()
    compiled = torch.compile(function, backend=reference, dynamic=False)
    expected = [list(map(models.bits, tensors(compiled(x)))) for x in inputs]
    torch._dynamo.reset()
    backend = opscope.torch.backend(tmp_path, data="stats", mode="all", **options, form="acl")
    compiled = torch.compile(function, backend=backend, dynamic=False)
    assert [list(map(models.bits, tensors(compiled(x)))) for x in inputs] == expected
    report = backend.finish()
    assert report["first_fault"] is None and report["first_error"] is None and report["unseen"] == {}
    (graph,), (written,) = reference.graphs, dumps.graphs(report["root"])
    assert len(graph.runs) == len(written) == len(inputs)
    for number, run in enumerate(graph.runs):
        step = written[number]
        assert set(run) == set(step)
        for name, execution in run.items():
            rows = step[name].rows()
            seen = execution.inputs + execution.outputs
            assert len(rows) == len(seen), name
            for row, (shape, payload) in zip(rows, seen, strict=True):
                wanted = expected_row(shape, payload, inputs[0].dtype)
                assert {column: row[column] for column in wanted} == wanted, name


def centred(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Values whose mean is next to nothing, so that the order of additions decides how the average is printed."""
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (x - x.mean()).to(dtype)


VIEWS = {
    "transposed": lambda x: (x * 1).t() + 1,
    "transposed twice": lambda x: (x * 1).t().contiguous().t() + 1,
    "permuted": lambda x: (x * 1).view(4, 4, -1).permute(2, 0, 1) + 1,
    "several views": lambda x: torch.cat([(y := x * 1).view(-1), y.t().reshape(-1), y.view(4, -1).t().flatten()]),
    "parts": lambda x: [part.t() + 1 for part in (x * 1).split(4)],
    "normalised": lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]).t() @ x,
}


@pytest.mark.sampled(0.2, each="name")
@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("extents", [(16, 16), (16, 256)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_averages_of_views_follow_their_own_order(
    tmp_path: Any, name: str, extents: tuple[int, int], dtype: torch.dtype
) -> None:
    check(tmp_path, VIEWS[name], [centred(*extents, seed=seed, dtype=dtype) for seed in range(3)])


def test_averages_of_tensors_that_a_writer_takes_at_once(tmp_path: Any) -> None:
    """Tensors of different lengths and dtypes, whose averages are computed side by side."""

    def function(x: Tensor) -> list[Tensor]:
        results = [x * 1]
        for n in (1025, 1500, 2048, 3000, 4097):
            part = x[:n] - x[:n].mean()
            results += [part, part.abs() * part.sign(), part * 1e-30]
        return results

    check(tmp_path, function, [centred(5000, seed=seed) for seed in range(2)], n_writers=1)
