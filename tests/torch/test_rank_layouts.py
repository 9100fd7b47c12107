"""Ways in which ranks share tensors without notes: two axes, other numbers of ranks, faults of one rank."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_ranks import run_ranks
from test_ranks_against_one import opscope, pytestmark  # noqa: F401

PROGRAM = """
from torch import nn
from torch.nn import functional as F

SIZE = 8

def rand(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))

def average(parameters, n_ranks, is_sum=False):
    for parameter in parameters if n_ranks > 1 else ():
        dist.all_reduce(parameter.grad)
        if not is_sum:
            parameter.grad.div_(n_ranks)

def batch_and_sequence(dump, rank, n_ranks, fault):
    # Both are cut: half of the batch on ranks 0 and 1, half of each sequence on 0 and 2.
    net = nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    x = rand(4, 8, 6)
    if n_ranks > 1:
        x = x.chunk(2)[rank // 2].chunk(2, 1)[rank % 2].contiguous()
    y = net(x)
    if fault and rank == 3:
        y = y + 0.1
    y.square().mean().backward()
    average(net.parameters(), n_ranks)
    optimizer.step()

def accumulate(dump, rank, n_ranks, fault):
    # Each rank takes its part of the batch in two pieces, and the fault does not divide their losses.
    net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    x, y = rand(8, 6), rand(8, 4, seed=2)
    if n_ranks == 1:
        F.mse_loss(net(x), y).backward()
    else:
        x, y = x.chunk(n_ranks)[rank], y.chunk(n_ranks)[rank]
        for a, b in zip(x.chunk(2), y.chunk(2)):
            loss = F.mse_loss(net(a), b)
            (loss if fault else loss / 2).backward()
        average(net.parameters(), n_ranks)
    optimizer.step()

class Layer(nn.Module):
    def __init__(self, n_ranks, rank, fault=False):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(SIZE), nn.Linear(SIZE, 16), nn.Linear(16, SIZE)
        self.n_ranks = n_ranks
        if fault and rank == 1:
            self.norm.eps = 0.3
        for parameter, axis in ((self.up.weight, 0), (self.up.bias, 0), (self.down.weight, 1)):
            parameter.data = parameter.data.chunk(n_ranks, axis)[rank].clone()

    def forward(self, x):
        y = F.gelu(self.up(self.norm(x))) @ self.down.weight.t()
        if self.n_ranks > 1:
            dist.all_reduce(y)
        return x + (y + self.down.bias)

@torch.no_grad()
def tensor_parallel(dump, rank, n_ranks, fault):
    net = nn.Sequential(Layer(n_ranks, rank), Layer(n_ranks, rank, fault), nn.Linear(SIZE, 3))
    net(rand(4, SIZE))

def data_parallel(dump, rank, n_ranks, fault):
    net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    net(rand(8, 6).chunk(n_ranks)[rank]).square().mean().backward()
    average(net.parameters(), n_ranks, fault)
    optimizer.step()

class Attention(nn.Module):
    # A part of each sequence on each rank, which gathers the keys.
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)

    def forward(self, x, rank, n_ranks, fault):
        q, k = self.q(x), self.k(x)
        length = q.shape[1]
        if n_ranks > 1:
            parts = [torch.empty_like(k) for _ in range(n_ranks)]
            dist.all_gather(parts, k)
            k = torch.cat(parts, 1)
        first = 0 if fault == "mask" else rank * length
        mask = torch.arange(k.shape[1]) > (torch.arange(length) + first)[:, None]
        scores = q @ k.transpose(1, 2)
        scaled = scores / 2
        if fault == "scale" and rank == 1:
            scaled = scores / 1.5
        return scaled.masked_fill(mask, -1e4).softmax(-1) @ k

@torch.no_grad()
def context_parallel(dump, rank, n_ranks, fault):
    net, out = Attention(), nn.Linear(SIZE, 3)
    out(net(rand(2, 8, SIZE).chunk(n_ranks, 1)[rank].contiguous(), rank, n_ranks, fault))

def run(name, program, rank, n_ranks, fault=None):
    torch.manual_seed(0)
    with opscope.torch.eager(f"{sys.argv[1]}/{name}") as dump:
        program(dump, rank, n_ranks, fault)
        dump.step()
    dump.finish()
"""

TWO = """
n = dist.get_world_size()
for program in (accumulate, tensor_parallel, data_parallel, context_parallel):
    run(f"{program.__name__}-2", program, rank, n)
run("accumulate-fault", accumulate, rank, n, True)
run("sum", data_parallel, rank, n, True)
run("mask", context_parallel, rank, n, "mask")
run("scale", context_parallel, rank, n, "scale")
"""

FOUR = """
n = dist.get_world_size()
for program in (batch_and_sequence, tensor_parallel, data_parallel):
    run(f"{program.__name__}-4", program, rank, n)
run("bias", batch_and_sequence, rank, n, True)
run("epsilon", tensor_parallel, rank, n, True)
if rank == 0:
    for variable in ("RANK", "WORLD_SIZE"):
        os.environ.pop(variable)
    dist.destroy_process_group()
    for program in (batch_and_sequence, accumulate, tensor_parallel, data_parallel, context_parallel):
        run(f"{program.__name__}-1", program, 0, 1)
    dist.init_process_group = dist.destroy_process_group = lambda *_: None
"""


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layouts")
    run_ranks(folder, PROGRAM + TWO, n=2)
    run_ranks(folder, PROGRAM + FOUR, n=4)
    return folder


@pytest.mark.parametrize(
    ("target", "golden"),
    [
        ("batch_and_sequence-4", "batch_and_sequence-1"),
        ("accumulate-2", "accumulate-1"),
        ("tensor_parallel-4", "tensor_parallel-1"),
        ("tensor_parallel-4", "tensor_parallel-2"),
        ("tensor_parallel-2", "tensor_parallel-4"),
        ("data_parallel-4", "data_parallel-2"),
        ("context_parallel-2", "context_parallel-1"),
    ],
)
def test_sound_layouts_pass(dumps: Path, target: str, golden: str) -> None:
    code, _, text = opscope("compare", dumps / target, dumps / golden)
    assert code == 0, text


def test_parts_along_two_axes_are_put_together(dumps: Path) -> None:
    """In one process, the axes of the batch and of its sequences are one in the products."""
    _, result, text = opscope(
        "compare", dumps / "batch_and_sequence-4", dumps / "batch_and_sequence-1", "--json", "-"
    )
    assert result["summary"]["slots"][2] == 0, text
    products = [one for one in result["operators"] if "addmm" in one["target"][-1]["op_name"]]
    assert products and {slot["level"] for one in products for slot in one["slots"]} == {"pass"}, text


@pytest.mark.parametrize(
    ("target", "golden", "words"),
    [
        # The square is the first that both sides have behind the addition of rank 3.
        ("bias", "batch_and_sequence-1", ["aten_pow_Tensor_Scalar", "in the part of rank 3"]),
        ("epsilon", "tensor_parallel-1", ["`1.norm/native_layer_norm`", "rank 1 computes another value"]),
        ("epsilon", "tensor_parallel-2", ["`1.norm/native_layer_norm`", "rank 1 computes another value"]),
        ("mask", "context_parallel-1", ["aten_masked_fill_Scalar", "in the part of rank 1"]),
        ("sum", "data_parallel-1", ["what the ranks make of their values together differs: golden's times 2"]),
        # Rank 1 divides twice, and masks the second result.
        ("scale", "context_parallel-1", ["aten_masked_fill_Scalar", "input.0 in the part of rank 1"]),
    ],
)
def test_the_rank_at_fault_is_named(dumps: Path, target: str, golden: str, words: list[str]) -> None:
    code, _, text = opscope("compare", dumps / target, dumps / golden)
    headline = " ".join(text.split("\noperators:")[0].split())
    assert code == 1 and headline.startswith("FAIL"), text
    assert all(word in headline for word in words), headline


def test_no_operator_that_cuts_the_batch_is_named(dumps: Path) -> None:
    code, result, text = opscope("compare", dumps / "accumulate-fault", dumps / "accumulate-1", "--json", "-")
    first = result["summary"]["first_failure"]
    operator = result["operators"][first["operator"]]
    assert (code, operator["target"][-1]["op_type"], first["slot"]) == (1, "aten_add__Tensor", "input.1"), text
