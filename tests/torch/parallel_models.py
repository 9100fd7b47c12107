"""A tiny transformer that trains in one process or in several, with the same inputs, under a dump of each.

    root = parallel_models.run(folder, mesh={"dp": 2, "tp": 2}, n_steps=2)
    alone = parallel_models.run(other, mesh={}, n_steps=2)

or, as a program, `python parallel_models.py FOLDER --mesh dp=2,tp=2 --steps 2`. Axis `dp` is `fully_shard`, whose
processes have a part of the batch each; `tp` is `parallelize_module`. `rank_roots` returns the dumps. A `Fault` changes
one element on one rank, behind the back of the dump, as a broken machine would.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import launch
import torch
from torch import Tensor, nn

N_TOKENS = 12
N_WORDS = 20
WIDTH = 16
N_HEADS = 4
# The whole batch, of which each data-parallel rank has a part.
N_SAMPLES = 4


@dataclass
class Fault:
    """One element that is something else than what was computed."""

    # `parameter`, changed before the step; `activation`, the result of a module.
    kind: str
    # The parameter or module, as the model names it.
    name: str
    rank: int
    step: int
    value: float = 1e3
    # In the memory of the part that the rank has.
    index: int = 0


class Attention(nn.Module):
    """Attention of several heads, which ranks may share."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = (-1, WIDTH // N_HEADS)
        q, k, v = (one(x).unflatten(-1, heads).transpose(1, 2) for one in (self.q, self.k, self.v))
        weights = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // N_HEADS)).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    """Two layers with another number of features between them than the processes divide."""

    def __init__(self, n_hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, n_hidden), nn.Linear(n_hidden, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


class Layer(nn.Module):
    """A layer of the transformer."""

    def __init__(self, n_hidden: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.mlp_norm, self.mlp = nn.LayerNorm(WIDTH), Mlp(n_hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """The model."""

    def __init__(self, n_layers: int = 2, n_hidden: int = 24) -> None:
        super().__init__()
        self.words = nn.Embedding(N_WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer(n_hidden) for _ in range(n_layers))
        self.head = nn.Linear(WIDTH, N_WORDS)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def parallelize(model: nn.Module, mesh: Any, *, is_sequence: bool = False, has_local_results: bool = True) -> None:
    """Spreads the model over a mesh, of which some axes are called `dp` and `tp`."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    axes = mesh.mesh_dim_names
    if "tp" in axes:
        column = ColwiseParallel(use_local_output=has_local_results)
        row = RowwiseParallel(output_layouts=Shard(1)) if is_sequence else RowwiseParallel()
        plan: dict[str, Any] = {f"attention.{name}": column for name in ("q", "k", "v")}
        plan |= {"attention.out": row, "mlp.up": column, "mlp.down": row}
        if is_sequence:
            gather = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
            plan |= {"attention_norm": SequenceParallel(), "mlp_norm": SequenceParallel()}
            plan |= {"attention": gather, "mlp": gather}
        for layer in model.layers:
            parallelize_module(layer, mesh["tp"], plan)
        ends: dict[str, Any] = {"words": RowwiseParallel(input_layouts=Replicate())}
        ends["head"] = ColwiseParallel(output_layouts=Replicate())
        if is_sequence:
            ends["words"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
            ends["head"] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
        parallelize_module(model, mesh["tp"], ends)
    if "dp" in axes:
        for layer in model.layers:
            fully_shard(layer, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])


def batch(step: int) -> tuple[Tensor, Tensor]:
    """Words and the words that come next, another batch for each step."""
    numbers = torch.Generator().manual_seed(1000 + step)
    words = torch.randint(0, N_WORDS, (N_SAMPLES, N_TOKENS + 1), generator=numbers)
    return words[:, :-1].contiguous(), words[:, 1:].contiguous()


def part(whole: Tensor, mesh: Any) -> Tensor:
    """The part of a batch that this process has."""
    if mesh is None or "dp" not in mesh.mesh_dim_names:
        return whole
    axis = mesh.mesh_dim_names.index("dp")
    return whole.chunk(mesh.shape[axis])[mesh.get_coordinate()[axis]].contiguous()


def train(mesh: Any, options: dict, rank: int, dump: Any = None) -> list[Tensor]:
    """Steps of training; loss and parameters of this process afterwards."""
    torch.manual_seed(0)
    model = Transformer(options["n_layers"], options["n_hidden"])
    if mesh is not None:
        how = {"is_sequence": options["is_sequence"], "has_local_results": options["has_local_results"]}
        parallelize(model, mesh, **how)
    fault = Fault(**options["fault"]) if options["fault"] else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    losses = []
    with nullcontext() if dump is None else dump:
        for step in range(options["n_steps"]):
            is_faulty = fault is not None and (fault.rank, fault.step) == (rank, step)
            handle = _plant(model, fault) if is_faulty else None
            with _unseen():
                words, following = (part(one, mesh) for one in batch(step))
            result = model(words)
            loss = nn.functional.cross_entropy(result.flatten(0, 1), following.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
            if handle is not None:
                handle.remove()
            if dump is not None and step + 1 < options["n_steps"]:
                dump.step()
    return losses + [local(parameter.detach()).clone() for parameter in model.parameters()]


def _unseen() -> Any:
    from torch.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


def local(tensor: Any) -> Tensor:
    """What this process has of a tensor."""
    found = getattr(tensor, "_local_tensor", tensor)
    return getattr(found, "elem", found)


def _plant(model: nn.Module, fault: Fault) -> Any:
    if fault.kind == "parameter":
        _spoil(dict(model.named_parameters())[fault.name], fault)
        return None

    def spoil(_module: Any, _args: Any, result: Any) -> Any:
        if hasattr(result, "trigger_wait"):
            result = result.trigger_wait()
        if hasattr(result, "_local_tensor"):
            _spoil(result, fault)
            return result
        # Autograd forbids writing to the local part of a distributed tensor.
        with _unseen():
            change = torch.zeros_like(result)
            change.view(-1)[fault.index] = fault.value - result.detach().reshape(-1)[fault.index]
            return result + change

    return dict(model.named_modules())[fault.name].register_forward_hook(spoil)


def _spoil(tensor: Tensor, fault: Fault) -> None:
    # An operator that only one rank has would be the fault that others find.
    with _unseen(), torch.no_grad():
        memory = local(tensor)
        memory.detach().as_strided((memory.numel(),), (1,))[fault.index] = fault.value


def run(
    folder: Path | str,
    *,
    mesh: dict[str, int] | None = None,
    n_steps: int = 1,
    n_layers: int = 2,
    n_hidden: int = 24,
    is_sequence: bool = False,
    has_local_results: bool = True,
    fault: Fault | None = None,
    data: str = "tensor",
) -> Path:
    """Makes a run below `folder`, in as many processes as the mesh has; without one in a single process.

    `n_hidden` that the ranks do not divide makes uneven parts; `is_sequence` spreads what is between layers as well;
    without `has_local_results` more operators are those of distributed tensors. Returns the folder of the dumps.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    options = {
        "mesh": mesh or {},
        "n_steps": n_steps,
        "n_layers": n_layers,
        "n_hidden": n_hidden,
        "is_sequence": is_sequence,
        "has_local_results": has_local_results,
        "fault": None if fault is None else asdict(fault),
        "data": data,
    }
    (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")
    n_processes = math.prod((mesh or {}).values())
    if mesh:
        done = launch.launch(n_processes, __file__, folder, "--as-told", timeout=600)
    else:
        command = [sys.executable, "-W", "ignore", __file__, str(folder), "--as-told"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-8000:])
    return folder / "dump"


def rank_roots(dump: Path) -> dict[int, Path]:
    """The dump of each rank of a run; that of rank 0 of a single process."""
    folders = list(Path(dump).iterdir())
    if not any(folder.name.startswith("worldsize") for folder in folders):
        (root,) = folders
        return {0: root}
    found = {}
    for folder in folders:
        (root,) = folder.iterdir()
        found[int(folder.name.partition("_global_rank")[2])] = root
    return dict(sorted(found.items()))


def _work(folder: Path) -> None:
    import opscope.torch

    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    mesh, rank = None, 0
    if options["mesh"]:
        import torch.distributed as dist

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        names = tuple(options["mesh"])
        mesh = dist.init_device_mesh("cpu", tuple(options["mesh"].values()), mesh_dim_names=names)
    expected = train(mesh, options, rank)
    dump = opscope.torch.eager(str(folder / "dump"), data=options["data"])
    found = train(mesh, options, rank, dump)
    report = dump.finish()
    same = [_bits(one) == _bits(other) for one, other in zip(expected, found, strict=True)]
    report |= {"root": str(report["root"]), "is_same": all(same)}
    (folder / f"report-{rank}.json").write_text(json.dumps(report), encoding="utf-8")
    if mesh is not None:
        torch.distributed.destroy_process_group()


def _bits(tensor: Tensor) -> bytes:
    return local(tensor).contiguous().numpy().tobytes()


def main() -> None:
    """Makes a run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mesh", default="", help="axes with sizes, such as dp=2,tp=2; none for one process")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=24)
    parser.add_argument("--sequence", action="store_true")
    parser.add_argument("--distributed-results", action="store_true")
    parser.add_argument("--fault", help='as JSON: {"kind":"parameter","name":"head.weight","rank":1,"step":0}')
    parser.add_argument("--as-told", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_told:
        _work(given.folder)
        return
    axes = [axis.split("=") for axis in given.mesh.split(",") if axis]
    root = run(
        given.folder,
        mesh={name: int(size) for name, size in axes},
        n_steps=given.steps,
        n_hidden=given.hidden,
        is_sequence=given.sequence,
        has_local_results=not given.distributed_results,
        fault=Fault(**json.loads(given.fault)) if given.fault else None,
    )
    print(root)


if __name__ == "__main__":
    main()
