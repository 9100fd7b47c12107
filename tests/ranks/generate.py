"""Makes a run of many ranks with one planted fault, or without one.

    python tests/ranks/generate.py OUT --pp 1 --dp 4 --tp 2 --steps 3 --fault nan

prints as JSON what was planted where. With `--bulk` tensors are filled up with zeros that take no room on the disk:
64 ranks of 2 steps and 500 operators are 64 GB of tensors in less than 2 GB.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
from pathlib import Path
from typing import Any

from native_dump import DumpOptions, RankDump
from network import COLLECTIVE_TYPES, FAULTS, Fault, Mesh, Simulation

# Faults that only a comparison with another run shows.
FAULTS_AGAINST_GOLDEN = ("rename", "fuse")


def generate(
    out: Path,
    mesh: Mesh,
    n_steps: int = 3,
    fault: Fault | None = None,
    options: DumpOptions | None = None,
    lost_ranks: tuple[int, ...] = (),
    **network: Any,
) -> None:
    """Writes a run below `out`, without the dumps of `lost_ranks`."""
    options = options or DumpOptions()
    simulation = Simulation(mesh, dtype=options.dtype, fault=fault, **network)
    clocks = random.Random(simulation.seed)
    ranks = [rank for rank in range(mesh.n_ranks) if rank not in lost_ranks]
    # Clocks of machines differ; nothing may depend on them.
    dumps = {rank: RankDump(out, rank, mesh.n_ranks, options, clocks.randrange(-(10**9), 10**9)) for rank in ranks}
    for step in range(n_steps):
        executions = simulation.run_step(step)
        for rank, dump in dumps.items():
            dump.write_step(step, executions[rank])
    for dump in dumps.values():
        dump.finish()


def fault_of_kind(kind: str, mesh: Mesh, n_steps: int, n_layers: int, pattern: str, seed: int) -> Fault:
    """A fault somewhere that the network has."""
    rng = random.Random(f"{kind} {seed}")
    layer = f"layers.{rng.randrange(n_layers)}"
    rank, step = rng.randrange(mesh.n_ranks), rng.randrange(n_steps)
    if kind in ("drift", "weight"):
        # Earlier equality shows that it should be equal.
        step = max(step, 1)
    operators = {
        "nan": ["norm", "up", "gelu", "down", "residual", "grad"],
        "inf": ["up", "down", "residual"],
        "lost": ["down"],
        "sum": ["all_reduce"],
        "flip": _collectives(mesh, pattern),
        "late_flip": _collectives(mesh, pattern),
        "drift": ["update"],
        "overwrite": ["norm", "up", "gelu", "down"],
        "swap": ["all_gather"] if pattern == "sequence" else ["dispatch", "combine"],
        "desync": _collectives(mesh, pattern),
        # Parts of other lengths would not fit what follows.
        "skip": [name for name in _collectives(mesh, pattern) if name.endswith("all_reduce")],
        "weight": ["down"],
        "rename": ["up", "down"],
        "fuse": ["gelu"],
    }
    if kind == "recv":
        rank = rng.randrange(mesh.dp * mesh.tp, mesh.n_ranks)
        return Fault(kind, rank, step, "recv")
    if kind in FAULTS_AGAINST_GOLDEN:
        rank = -1
    return Fault(kind, rank, step, f"{layer}/{rng.choice(operators[kind])}")


def _collectives(mesh: Mesh, pattern: str) -> list[str]:
    names = []
    if mesh.tp > 1:
        names += ["all_gather", "reduce_scatter"] if pattern == "sequence" else ["all_reduce"]
    if mesh.dp > 1:
        names.append("grad_all_reduce")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    for axis, n in (("pp", 1), ("dp", 2), ("tp", 2)):
        parser.add_argument(f"--{axis}", type=int, default=n)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--pattern", choices=["dense", "sequence", "experts"], default="dense")
    parser.add_argument("--types", choices=list(COLLECTIVE_TYPES), default="torch")
    parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], default="float32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--at", metavar="RANK,STEP,OPERATOR", help="where the fault is; somewhere without the option")
    parser.add_argument("--content", choices=["elements", "statistics", "both"], default="both")
    parser.add_argument("--without-notes", action="store_true", help="no collectives, groups and placements")
    parser.add_argument("--without-graph", action="store_true", help="no description of the graph")
    parser.add_argument("--bulk", action="store_true", help="64 GB of tensors: 500 operators, 1 MiB for each tensor")
    given = parser.parse_args()
    mesh = Mesh(given.pp, given.dp, given.tp)
    n_layers = 55 if given.bulk else given.layers
    fault = None
    if given.fault:
        fault = fault_of_kind(given.fault, mesh, given.steps, n_layers, given.pattern, given.seed)
        if given.at:
            rank, step, op_name = given.at.split(",", 2)
            fault = Fault(given.fault, int(rank), int(step), op_name)
    options = DumpOptions(
        dtype=given.dtype,
        has_elements=given.content != "statistics",
        has_statistics=given.content != "elements",
        has_notes=not given.without_notes,
        has_graph=not given.without_graph,
        padded_bytes=1 << 20 if given.bulk else 0,
    )
    lost_ranks = (fault.rank,) if fault and fault.kind == "lost" else ()
    network = {"n_layers": n_layers, "pattern": given.pattern, "types": given.types, "seed": given.seed}
    generate(given.out, mesh, given.steps, fault, options, lost_ranks, **network)
    print(json.dumps({"ranks": mesh.n_ranks, "steps": given.steps, "fault": fault and dataclasses.asdict(fault)}))


if __name__ == "__main__":
    main()
