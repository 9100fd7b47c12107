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
