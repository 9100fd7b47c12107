"""Printing and saving inside of compiled graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import opscope.torch
import opscope.torchair as torchair
import pytest
import torch
from torchair_runs import compiled, configured

npu_print = torchair.ops.npu_print


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


DETAILS = [
    (torch.tensor(2.5), "tensor(2.5, shape=[], dtype=torch.float32)"),
    (torch.tensor(3), "tensor(3, shape=[], dtype=torch.int64)"),
    (torch.tensor(True), "tensor(1, shape=[], dtype=torch.bool)"),
    (torch.tensor([True, False]), "tensor([1 0], shape=[2], dtype=torch.bool)"),
    (torch.empty((0, 3), dtype=torch.int32), "tensor([], shape=[0, 3], dtype=torch.int32)"),
    (torch.arange(10), "tensor([0 1 2 ... 7 8 9], shape=[10], dtype=torch.int64)"),
    (torch.arange(6), "tensor([0 1 2 3 4 5], shape=[6], dtype=torch.int64)"),
    (torch.ones(2, dtype=torch.bfloat16), "tensor([1. 1.], shape=[2], dtype=torch.bfloat16)"),
    (torch.ones(1).to(torch.float8_e4m3fn), "tensor([1.], shape=[1], dtype=torch.float8_e4m3fn)"),
    (torch.tensor([1 - 2j]).conj(), "tensor([1.+2.j], shape=[1], dtype=torch.complex64)"),
    (torch.tensor([float("nan"), float("-inf")]), "tensor([ nan -inf], shape=[2], dtype=torch.float32)"),
]


@pytest.mark.parametrize(("tensor", "expected"), DETAILS)
def test_eager(tensor: torch.Tensor, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    npu_print(tensor, tensor_detail=True)
    assert printed(capsys) == [expected]


def test_axes_are_cut_in_the_middle(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.arange(100).view(10, 10)
    npu_print("x:", x, summarize_size=1)
    npu_print(x[0], summarize_size=-1)
    npu_print(x[:, 0], summarize_size=5)
    assert printed(capsys) == [
        "x: [[ 0 ...  9]",
        " ...",
        " [90 ... 99]]",
        "[0 1 2 3 4 5 6 7 8 9]",
        "[ 0 10 20 30 40 50 60 70 80 90]",
    ]


def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    npu_print("x", x, "of", x.shape[0], 0.5, True, None)
    y = (x @ w).relu()
    npu_print("y", y, tensor_detail=True)
    return y.sum()


EXPECTED = [
    "x [[1. 1.] [1. 1.]] of 2 0.5 True None",
    "y tensor([[2. 2.] [2. 2.]], shape=[2, 2], dtype=torch.float32)",
]


def one_line(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.replace("]\n [", "] [").splitlines()


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("is_training", [False, True])
def test_a_compiled_graph_prints_once_and_in_order(
    is_training: bool, is_dynamic: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    w = torch.ones(2, 2, requires_grad=is_training)
    config = configured(dump_config__enable_dump=True, dump_config__dump_path=str(tmp_path))
    with compiled(model, config, fullgraph=True, dynamic=is_dynamic) as call:
        for _ in range(2):
            loss = call(torch.ones(2, 2), w)
            if is_training:
                loss.backward()
    assert one_line(capsys) == EXPECTED * 2
    assert not list(tmp_path.rglob("*print*")), "it is no operator to be dumped"


@pytest.mark.parametrize(
    "config",
    [
        {"debug__data_dump__type": "npy"},
        {"mode": "npugraph_ex", "dump_config__enable_dump": True},
        {"debug__graph_dump__type": "txt"},
        {"debug__fx_summary__type": "csv"},
    ],
)
def test_every_way_to_run_a_graph_prints(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with compiled(model, configured(**config), fullgraph=True) as call:
        call(torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)).backward()
    assert one_line(capsys) == EXPECTED


def test_other_backends_print_in_eager_mode_and_under_aot(capsys: pytest.CaptureFixture[str]) -> None:
    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        with torch.no_grad():
            torch.compile(model, backend=backend, fullgraph=True)(torch.ones(2, 2), torch.ones(2, 2))
        assert one_line(capsys) == EXPECTED


def test_printing_changes_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, w = torch.randn(5, 5), torch.randn(5, 5, requires_grad=True)
    outcomes = []
    for function in (model, lambda x, w: (x @ w).relu().sum()):
        torch._dynamo.reset()
        w.grad = None
        backend = opscope.torch.backend(tmp_path, data="stats", form="acl")
        loss = torch.compile(function, backend=backend)(x, w)
        loss.backward()
        outcomes.append((loss.detach(), w.grad.clone()))
    assert all(torch.equal(a, b) for a, b in zip(*outcomes))


@pytest.mark.parametrize("size", [-2, 1.5, True, None])
def test_a_wrong_size_is_an_error(size: Any) -> None:
    with pytest.raises(ValueError, match="summarize_size"):
        npu_print(torch.ones(1), summarize_size=size)


def test_a_tensor_is_saved_where_the_graph_has_come_to_it(tmp_path: Path) -> None:
    path, raw = str(tmp_path / "y.pt"), str(tmp_path / "x.bin")

    def saving(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = x @ w
        torchair.ops.save_npugraph_tensor(y, save_path=path)
        torchair.ops.save_npugraph_tensor(x, save_path=raw)
        return y.relu().sum()

    w = torch.randn(2, 2, requires_grad=True)
    x = torch.arange(4.0).view(2, 2)
    with compiled(saving, configured(), fullgraph=True) as call:
        for _ in range(2):
            call(x, w).backward()
    saving(x, w)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *(f"x_device_0_{i}.bin" for i in range(3)),
        *(f"y_device_0_{i}.pt" for i in range(3)),
    ]
    for i in range(3):
        assert torch.equal(torch.load(tmp_path / f"y_device_0_{i}.pt", weights_only=True), (x @ w).detach())
    assert (tmp_path / "x_device_0_0.bin").read_bytes() == x.numpy().tobytes()
    with pytest.raises(ValueError, match="save_path"):
        torchair.ops.save_npugraph_tensor(x, save_path="x.npy")
