"""Starts the processes of a run as `torchrun` does, but forks them from one that has imported torch.

    python launch.py N PROGRAM [ARGUMENT]...

Torch takes longer to import than most of the tests' programs run.
"""

from __future__ import annotations

import importlib
import os
import runpy
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

# What programs of tests import. The package itself is not among it: a process has to load its own.
_MODULES = (
    "torch",
    "torch._dynamo",
    "torch._functorch.aot_autograd",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "torch.distributed.tensor.parallel",
)
_HOST = "127.0.0.1"
_PORT_DIGITS = 5


def launch(n: int, program: str | Path, *arguments: object, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs a program in `n` processes that have torch's variables of ranks."""
    command = [sys.executable, "-W", "ignore", __file__, str(n), str(program), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=timeout)


def _variables(rank: int, n: int, port: int) -> dict[str, str]:
    numbers = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "ROLE_RANK": rank,
        "GROUP_RANK": 0,
        "WORLD_SIZE": n,
        "LOCAL_WORLD_SIZE": n,
        "ROLE_WORLD_SIZE": n,
        "GROUP_WORLD_SIZE": 1,
        "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
    }
    texts = {
        "ROLE_NAME": "default",
        "MASTER_ADDR": _HOST,
        # The store is the launcher's, so that no two runs choose the same port.
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": f"{os.getppid()}",
    }
    return texts | {name: str(number) for name, number in numbers.items()}


def _be_rank(rank: int, n: int, port: int, program: str, arguments: list[str]) -> None:
    os.environ |= _variables(rank, n, port)
    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).parent)
    runpy.run_path(program, run_name="__main__")


def _wait_for(children: set[int]) -> int:
    """Waits for all processes; if one fails, the others would wait for it."""
    code = 0
    while children:
        child, status = os.wait()
        children.discard(child)
        if status != 0 and code == 0:
            code = 1
            for other in children:
                os.kill(other, signal.SIGTERM)
    return code


def main() -> None:
    n, program, *arguments = sys.argv[1:]
    for module in _MODULES:
        importlib.import_module(module)
    source, sink = os.pipe()
    children = set()
    for rank in range(int(n)):
        child = os.fork()
        if child == 0:
            os.close(sink)
            # Of a launcher that failed there is nothing to read, and this ends as well.
            port = int(os.read(source, _PORT_DIGITS))
            os.close(source)
            _be_rank(rank, int(n), port, program, arguments)
            return
        children.add(child)
    _serve(children, sink)


def _serve(children: set[int], sink: int) -> NoReturn:
    # It has threads, so nothing is forked after it.
    from torch.distributed import TCPStore

    store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=60))
    os.write(sink, f"{store.port:0{_PORT_DIGITS}}".encode() * len(children))
    os.close(sink)
    sys.exit(_wait_for(children))


if __name__ == "__main__":
    main()
