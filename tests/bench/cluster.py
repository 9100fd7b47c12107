"""Times a comparison on one node and on four nodes of a Ray cluster, each of which reads so many MB a second at most.

    python tests/bench/cluster.py OUT

The package has to be on the path. Prints the throughput of each, the memory of the workers, and how they compare; fails
if four nodes do less than 3.5 times the work of one.
"""

from __future__ import annotations

import os

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Without this Ray uses another of this machine's addresses instead of loopback, where nothing listens.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"

import re
import subprocess
import sys
from pathlib import Path

from ray.cluster_utils import Cluster

GENERATOR = Path(__file__).parents[1] / "ranks" / "generate.py"
MB_PER_SECOND = 50
N_NODES = 4
SPEEDUP_MIN = 3.5
LOOPBACK = {"num_cpus": 1, "object_store_memory": 80 << 20, "node_ip_address": "127.0.0.1"}
# Units of 1.3 GB each, most of which is read only once.
SHAPE = ("--dp", 2, "--tp", 2, "--steps", 1, "--bulk")


def main() -> None:
    (folder,) = map(Path, sys.argv[1:])
    runs = [folder / name for name in ("target", "golden")]
    for run in runs:
        if not run.exists():
            subprocess.run([*map(str, (sys.executable, GENERATOR, run, *SHAPE))], check=True)
    rates = {}
    for n_nodes in (1, N_NODES):
        rates[n_nodes] = rate_of(n_nodes, runs, folder / f"parts-{n_nodes}")
        print(f"{n_nodes} nodes: {rates[n_nodes]:.0f} MB/s")
    speedup = rates[N_NODES] / rates[1]
    print(f"{N_NODES} nodes do {speedup:.2f} times the work of one")
    if speedup < SPEEDUP_MIN:
        sys.exit(f"at least {SPEEDUP_MIN} times is expected")


def rate_of(n_nodes: int, runs: list[Path], parts: Path) -> float:
    """Megabytes a second, from the first task to the last part."""
    cluster = Cluster(initialize_head=True, head_node_args={**LOOPBACK, "include_dashboard": False})
    try:
        for _ in range(n_nodes - 1):
            cluster.add_node(**LOOPBACK)
        options = ("--on", f"ray://{cluster.address}", "--parts", parts, "--read-limit", MB_PER_SECOND)
        words = (sys.executable, "-m", "opscope", "compare", *runs, *options)
        done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    finally:
        cluster.shutdown()
    rate = re.search(r"(\d+)/\1 units, .* (\d+) MB/s", done.stderr)
    if rate is None:
        sys.exit(done.stderr)
    return float(rate[2])


if __name__ == "__main__":
    main()
