"""Values that the eager dump shows: views, aliases, writes behind its back, memory that is used again."""

from __future__ import annotations

import threading
from collections.abc import Callable

import models
import opscope.torch
import pytest
import torch
from eager_runs import check, known_dtype, records
from torch import Tensor, nn


def _in_place_of_a_view() -> Tensor:
    x = torch.arange(12.0)
    whole = x * 2
    part = whole.view(3, 4)[1]
    part.add_(100)
    return whole + 1


def _out() -> Tensor:
    x, out = torch.randn(4), torch.zeros(4)
    torch.add(x, x, out=out)
    torch.mul(x, 3, out=out)
    return out + 1


def _detached_write() -> Tensor:
    x = torch.randn(5, requires_grad=True)
    y = x * 2
    y.data.mul_(10)
    return (y + 1).detach()


def _write_through_numpy() -> Tensor:
    x = torch.ones(5) * 3
    first = x + 1
    x.numpy()[2] = 50
    return first + x


def _write_in_another_thread() -> Tensor:
    x = torch.ones(5) * 3
    first = x + 1
    thread = threading.Thread(target=x.fill_, args=(9,))
    thread.start()
    thread.join()
    return first + x


def _writes_twice() -> Tensor:
    x = torch.randn(6)
    x.relu_()
    x.add_(1)
    x.mul_(x)
    x[2:4] = 7
    return x.clone()


def _random() -> Tensor:
    x = torch.randn(8)
    x.uniform_()
    return nn.functional.dropout(x, 0.5) + torch.rand_like(x) + torch.randperm(8) + torch.bernoulli(x)


def _views() -> Tensor:
    x = torch.randn(4, 6)
    y = x.t()[1:3].unsqueeze(0).expand(3, 2, 4)
    return y.permute(2, 1, 0).reshape(-1) + torch.stack(x.unbind(1)).chunk(2)[0].flatten()[0]


def _conjugates() -> Tensor:
    x = torch.randn(3, 4, dtype=torch.complex64)
    return (x.conj().imag * 1 + x.mH.t().real + (x @ x.mH).real[0, 0]) + torch._neg_view(x.real)


def _no_grad() -> Tensor:
    model = models.Cnn().eval()
    with torch.no_grad():
        return model(torch.randn(2, 3, 10, 10))


def _inference_mode() -> Tensor:
    model = models.Cnn().train()
    with torch.inference_mode():
        first = model(torch.randn(2, 3, 10, 10))
        first.add_(1)
        return first * 2


def _freed_memory() -> Tensor:
    total = torch.zeros(1000)
    for i in range(50):
        # The next one gets the memory of the one before, with another content.
        total = total + torch.full((1000,), float(i))
    return total


def _double_backward() -> Tensor:
    x = torch.randn(4, requires_grad=True)
    (gradient,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
    gradient.square().sum().backward()
    return x.grad


def _checkpoint() -> Tensor:
    layer = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.randn(2, 4, requires_grad=True)
    torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    return x.grad


def _resized() -> Tensor:
    x = torch.ones(3)
    x.resize_(2)
    x.set_(torch.arange(4.0))
    return x + 1


def _vmapped() -> Tensor:
    return torch.vmap(lambda row: (row * 2).sum())(torch.randn(3, 4))


FUNCTIONS = [
    _in_place_of_a_view, _out, _detached_write, _write_through_numpy, _write_in_another_thread, _writes_twice, _random,
    _views, _conjugates, _no_grad, _inference_mode, _freed_memory, _double_backward, _checkpoint, _resized, _vmapped,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_values(tmp_path, function: Callable[[], Tensor]) -> None:
    report, _ = check(tmp_path, function)
    assert set(report["unseen"]) <= {"uninitialised"}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_statistics_are_those_of_what_was_read(tmp_path, function: Callable[[], Tensor]) -> None:
    """An input that was inspected as an output of another operator, and that was written to since."""
    torch.manual_seed(3)
    with opscope.torch.eager(tmp_path / "tensor", form="acl") as dump:
        function()
    whole = dump.finish()["root"]
    torch.manual_seed(3)
    with opscope.torch.eager(tmp_path / "stats", data="stats", form="acl") as dump:
        function()
    rows = records(dump.finish()["root"])
    for name, record in records(whole).items():
        content = record.data()
        for row, tensor in zip(rows[name].rows(), content.inputs + content.outputs):
            values = [float(row[key]) for key in row if key.startswith("Max") and row[key]]
            if tensor.payload and values and known_dtype(row) is not None:
                found = torch.frombuffer(bytearray(tensor.payload), dtype=known_dtype(row)).double()
                assert values[0] == pytest.approx(float(found.max()), rel=1e-5, nan_ok=True), (name, row)
