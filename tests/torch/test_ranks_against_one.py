"""Data-parallel ranks without notes: against one process, and against each other."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from test_ranks import run_ranks

pytestmark = pytest.mark.skipif("OPSCOPE" not in os.environ, reason="set OPSCOPE to the built binary")

# Trains on parts of a batch, or on all of it; `unreduced` are parameters whose gradients stay those of the rank.
TRAINING = """
from torch import nn

def train(path, rank, n_ranks, is_off=False, unreduced=()):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    with opscope.torch.eager(path) as dump:
        for step in range(3):
            batch = torch.randn(8, 8, generator=torch.Generator().manual_seed(step))
            n = len(batch) // n_ranks
            x = batch[rank * n : (rank + 1) * n]
            optimizer.zero_grad()
            y = model(x)
            if is_off and rank == 1:
                y = y + 0.25
            y.square().mean().backward()
            for name, parameter in model.named_parameters():
                if n_ranks > 1 and not name.startswith(tuple(unreduced)):
                    dist.all_reduce(parameter.grad)
                    parameter.grad.div_(n_ranks)
            optimizer.step()
            dump.step()
    dump.finish()
"""


def run(folder: Path, calls: str) -> None:
    run_ranks(folder, TRAINING + "\nfolder = sys.argv[1]\n" + calls)


def opscope(*arguments: object) -> tuple[int, dict, str]:
    command = [os.environ["OPSCOPE"], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    start = done.stdout.find("{")
    return done.returncode, json.loads(done.stdout[start:]) if start >= 0 else {}, done.stdout + done.stderr


def test_ranks_against_one_process(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
train(folder + "/ranks", rank, 2)
train(folder + "/wrong", rank, 2, is_off=True)
if rank == 0:
    for variable in ("RANK", "WORLD_SIZE"):
        os.environ.pop(variable)
    dist.destroy_process_group()
    train(folder + "/one", 0, 1)
    dist.init_process_group = dist.destroy_process_group = lambda *_: None
""",
    )
    code, result, text = opscope("compare", tmp_path / "ranks", tmp_path / "one", "--json", "-")
    assert (code, result["summary"]["level"]) == (0, "pass"), text
    # Parts of the batch are put together, and so are the gradients that are reduced.
    assert {skip["reason"] for skip in result["skips"]} <= {"missing", "in_parts", "collective"}
    n_compared = sum(len(one["slots"]) for one in result["operators"] if one["level"] == "pass")
    assert n_compared > 200, text
    code, result, text = opscope("compare", tmp_path / "wrong", tmp_path / "one", "--json", "-")
    assert code == 1, text
    first = result["summary"]["first_failure"]
    operator = result["operators"][first["operator"]]
    (slot,) = [slot for slot in operator["slots"] if slot["slot"] == first["slot"]]
    # The loss and its gradient are the readers of what rank 1 alone has added to.
    assert operator["target"][-1]["op_type"] in ("aten_pow_Tensor_Scalar", "aten_mul_Scalar"), text
    assert [part["ranks"] for part in slot["ranks"]["apart"] if part["side"] == "target"] == [[1]], slot["ranks"]


@pytest.mark.parametrize("unreduced", ["1.", "3.weight"])
def test_parameters_that_drift_apart(tmp_path: Path, unreduced: str) -> None:
    run(
        tmp_path,
        f"""
train(folder + "/together", rank, 2)
train(folder + "/apart", rank, 2, unreduced=[{unreduced!r}])
""",
    )
    code, result, text = opscope("ranks", tmp_path / "together", "--json")
    assert (code, result["divergences"]["findings"]) == (0, []), text
    assert result["divergences"]["parameters"] == 6
    code, result, text = opscope("ranks", tmp_path / "apart", "--json")
    assert code == 1, text
    finding = result["divergences"]["findings"][0]
    assert finding["parameter"].startswith(unreduced), text
    assert (finding["step"], finding["equal_in_step"], finding["equal_gradients"]) == (1, 0, False), text
    assert finding["finding"] == "replica_differs"


# Half of the layer on ranks 0 and 2, the other on 1 and 3, and half of the batch on 0 and 1.
GRID = """
from torch import nn

def grid(path, rank, n_ranks, is_off=False):
    torch.manual_seed(0)
    up = nn.Linear(8, 16)
    if n_ranks > 1:
        groups = [dist.new_group([one, one + 2]) for one in range(2)]
        for parameter in up.parameters():
            parameter.data = parameter.data.chunk(2)[rank % 2].contiguous()
    optimizer = torch.optim.SGD(up.parameters(), lr=0.1, foreach=False)
    with opscope.torch.eager(path) as dump:
        for step in range(3):
            x = torch.randn(8, 8, generator=torch.Generator().manual_seed(step))
            x = x[rank // 2 * 4 :][:4] if n_ranks > 1 else x
            optimizer.zero_grad()
            y = up(x)
            y.backward(y.detach() / 32)
            for parameter in up.parameters() if n_ranks > 1 else ():
                gradient = parameter.grad.clone() if is_off and rank == 2 else parameter.grad
                dist.all_reduce(gradient, group=groups[rank % 2])
            optimizer.step()
            dump.step()
    dump.finish()
"""


def test_a_replica_of_a_part_that_drifts_apart(tmp_path: Path) -> None:
    calls = """
folder = sys.argv[1]
grid(folder + "/sound", rank, 4)
grid(folder + "/off", rank, 4, is_off=True)
if rank == 0:
    for variable in ("RANK", "WORLD_SIZE"):
        os.environ.pop(variable)
    dist.destroy_process_group()
    grid(folder + "/one", 0, 1)
    dist.init_process_group = dist.destroy_process_group = lambda *_: None
"""
    run_ranks(tmp_path, GRID + calls, n=4)
    code, _, text = opscope("compare", tmp_path / "sound", tmp_path / "one")
    assert code == 0, text
    code, result, text = opscope("compare", tmp_path / "off", tmp_path / "one", "--json", "-")
    operator = result["operators"][result["summary"]["first_failure"]["operator"]]
    replicas = [one for slot in operator["slots"] for one in slot.get("ranks", {}).get("replicas", [])]
    assert (code, [one["apart"] for one in replicas][:1]) == (1, [[2]]), text


# Tensor parallelism and a pipeline by hand, and a bias whose gradient cancels.
PROGRAMS = """
from torch import nn
from torch.nn import functional as F

SIZE = 16

class Layer(nn.Module):
    def __init__(self, n_ranks, rank, fault):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(SIZE), nn.Linear(SIZE, 32), nn.Linear(32, SIZE)
        self.n_ranks, self.rank, self.fault = n_ranks, rank, fault
        if n_ranks > 1:
            for parameter, axis in ((self.up.weight, 0), (self.up.bias, 0), (self.down.weight, 1)):
                parameter.data = parameter.data.chunk(n_ranks, axis)[rank].contiguous()

    def forward(self, x):
        h = self.up(self.norm(x))
        h = torch.relu(h) if self.fault == "relu" and self.rank == 1 else F.gelu(h)
        y = h @ self.down.weight.t()
        if self.n_ranks > 1 and self.fault != "unreduced":
            dist.all_reduce(y)
        return x + (y + self.down.bias)

def dumped(path, body, n_steps=1):
    with opscope.torch.eager(path) as dump:
        for step in range(n_steps):
            body(step)
            dump.step()
    dump.finish()

@torch.no_grad()
def infer(path, rank, n_ranks, fault=None):
    torch.manual_seed(0)
    layers = [Layer(n_ranks, rank, fault if i == 1 else None) for i in range(3)]
    model = nn.Sequential(*layers, nn.Linear(SIZE, 8))
    dumped(path, lambda step: model(torch.randn(4, SIZE, generator=torch.Generator().manual_seed(1))))

@torch.no_grad()
def pipe(path, rank, n_ranks):
    torch.manual_seed(0)
    layers = [Layer(1, 0, None) for _ in range(2)]
    def body(step):
        x = torch.randn(4, SIZE, generator=torch.Generator().manual_seed(1))
        if n_ranks == 1:
            return layers[1](layers[0](x))
        if rank == 0:
            dist.send(layers[0](x), 1)
        else:
            dist.recv(x, 0)
            layers[1](x)
    dumped(path, body)

def train_stages(path, rank, n_ranks, is_off=False):
    # Two layers on each of two ranks, whose modules have the same names.
    torch.manual_seed(0)
    layers = [Layer(1, 0, None) for _ in range(4)]
    n = len(layers) // n_ranks
    own = layers[rank * n : (rank + 1) * n]
    own = own[::-1] if is_off and rank == 1 else own
    optimizer = torch.optim.SGD([one for layer in own for one in layer.parameters()], lr=0.1, foreach=False)
    def body(step):
        optimizer.zero_grad()
        for micro in range(2):
            x = torch.randn(4, SIZE, generator=torch.Generator().manual_seed(micro))
            if rank == 1:
                dist.recv(x, 0)
            h = x.requires_grad_()
            for layer in own:
                h = layer(h)
            if rank == n_ranks - 1:
                h.square().mean().backward()
            else:
                dist.send(h.detach(), 1)
                gradient = torch.empty_like(h)
                dist.recv(gradient, 1)
                h.backward(gradient)
            if rank == 1:
                dist.send(x.grad, 0)
        optimizer.step()
    dumped(path, body)

@torch.no_grad()
def flat(path, rank, n_ranks, is_off=False):
    # Sequences in parts, flattened with the batch.
    torch.manual_seed(0)
    layer, out = Layer(1, 0, None), nn.Linear(SIZE, 8)
    def body(step):
        x = torch.randn(3, 8, SIZE, generator=torch.Generator().manual_seed(1))
        x = layer(x.chunk(n_ranks, 1)[rank].reshape(-1, SIZE))
        return out(x.roll(1, 0) if is_off and rank == 0 else x)
    dumped(path, body)

def attend(path, rank, n_ranks, broken=False):
    torch.manual_seed(0)
    q, k, v = (nn.Linear(SIZE, SIZE) for _ in range(3))
    parameters = [one for layer in (q, k, v) for one in layer.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1e-2)
    def body(step):
        x = torch.randn(8, 6, SIZE, generator=torch.Generator().manual_seed(step)).chunk(n_ranks)[rank]
        optimizer.zero_grad()
        y = (q(x) @ k(x).transpose(1, 2)).softmax(-1) @ v(x)
        y.square().mean().backward()
        for parameter in parameters if n_ranks > 1 else ():
            dist.all_reduce(parameter.grad)
            parameter.grad.div_(n_ranks)
        norm = torch.stack([one.grad.square().sum() for one in parameters]).sum().sqrt()
        for parameter in parameters:
            parameter.grad.mul_(1 / norm)
        if broken:
            k.bias.grad[:1].log_()
        optimizer.step()
    dumped(path, body, 3)
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    calls = """
for name, run, more in (
    ("sound", infer, ()), ("relu", infer, ("relu",)), ("unreduced", infer, ("unreduced",)),
    ("pipe", pipe, ()), ("attend", attend, ()), ("broken", attend, (True,)), ("flat", flat, ()), ("roll", flat, (True,)),
    ("stages", train_stages, ()), ("swapped", train_stages, (True,)),
):
    run(f"{folder}/{name}", rank, 2, *more)
if rank == 0:
    for variable in ("RANK", "WORLD_SIZE"):
        os.environ.pop(variable)
    dist.destroy_process_group()
    for name, run in (("", infer), ("-pipe", pipe), ("-attend", attend), ("-flat", flat), ("-stages", train_stages)):
        run(f"{folder}/one{name}", 0, 1)
    dist.init_process_group = dist.destroy_process_group = lambda *_: None
"""
    run_ranks(folder, PROGRAMS + "\nfolder = sys.argv[1]\n" + calls)
    return folder


def test_ranks_that_share_products_agree_with_one_process(programs: Path) -> None:
    code, _, text = opscope("compare", programs / "sound", programs / "one")
    assert code == 0, text


def test_another_operator_on_one_rank_is_named(programs: Path) -> None:
    code, result, text = opscope("compare", programs / "relu", programs / "one", "--json", "-")
    operator = result["operators"][result["summary"]["first_failure"]["operator"]]
    (output,) = [slot for slot in operator["slots"] if slot["slot"] == "output.0"]
    assert (code, operator["target"][-1]["op_type"]) == (1, "aten_gelu_default"), text
    assert [part["ranks"] for part in output["ranks"]["apart"]] == [[1]]
    own = {tuple(one["ranks"]): one["op_type"] for one in output["ranks"]["operators"]}
    assert own == {(0,): "aten_gelu_default", (1,): "aten_relu_default"}, output["ranks"]
    _, _, text = opscope("compare", programs / "relu", programs / "one")
    assert "rank 1 computes it by aten_relu_default `relu`" in " ".join(text.split()), text


def test_contributions_that_nothing_reduces_are_told(programs: Path) -> None:
    code, result, text = opscope("compare", programs / "unreduced", programs / "one", "--json", "-")
    first = result["summary"]["first_failure"]
    operator = result["operators"][first["operator"]]
    (slot,) = [slot for slot in operator["slots"] if slot["slot"] == first["slot"]]
    assert (code, first["slot"], slot["ranks"]["is_unreduced"]) == (1, "input.0", True), text
    assert operator["target"][-1]["op_type"] == "aten_add_Tensor"
    _, _, text = opscope("compare", programs / "unreduced", programs / "one")
    assert "contributions that no collective reduces" in " ".join(text.split())


def test_stages_of_a_pipeline_are_no_replicas(programs: Path) -> None:
    code, _, text = opscope("compare", programs / "pipe", programs / "one-pipe")
    assert code == 0, text


def test_stages_follow_each_other_for_each_micro_batch(programs: Path) -> None:
    """Each rank has all its operators in a row, and one process those of all stages for a micro-batch."""
    code, result, text = opscope("compare", programs / "stages", programs / "one-stages", "--json", "-")
    assert (code, result["summary"]["slots"][2]) == (0, 0), text
    assert all(skip["side"] == "target" for skip in result["skips"]), text
    code, _, text = opscope("compare", programs / "swapped", programs / "one-stages")
    assert code == 1, text
    assert any(found in text.splitlines()[0] for found in ("the weight", "reads another value")), text


def test_flattened_parts_of_sequences_are_put_together(programs: Path) -> None:
    """Of `chunk`, all ranks have the same results, of which each takes its own."""
    code, result, text = opscope("compare", programs / "flat", programs / "one-flat", "--json", "-")
    assert (code, result["summary"]["slots"][2]) == (0, 0), text
    outputs = [slot for operator in result["operators"] for slot in operator["slots"] if slot["slot"] == "output.0"]
    assert sum("ranks" in slot for slot in outputs) > 10, text
    _, _, text = opscope("compare", programs / "roll", programs / "one-flat")
    assert text.startswith("FAIL"), text
    assert "rank 0 computes it by aten_roll_default" in text.splitlines()[0], text


def test_a_gradient_that_cancels_accuses_nobody(programs: Path) -> None:
    """Adam makes whole steps of the rounding that is the gradient of the keys' bias, clipped or not."""
    code, result, text = opscope("compare", programs / "attend", programs / "one-attend", "--json", "-")
    assert code == 0, text
    slots = [slot for operator in result["operators"] for slot in operator["slots"]]
    assert any(slot.get("agreement") == "rounding" for slot in slots)
    code, _, text = opscope("compare", programs / "attend", programs / "one-attend", "--thresholds", "exact")
    assert code == 1, text


def test_nan_in_such_a_gradient_is_no_rounding(programs: Path) -> None:
    code, result, _ = opscope("compare", programs / "broken", programs / "one-attend", "--json", "-")
    assert (code, result["summary"]["first_failure"]["name"]["op_type"]) == (1, "aten_log__default")
