"""Processes that begin while a dump is under way: nothing of it runs in them, and the parent's dump goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import opscope
import pytest

SOURCE = Path(opscope.__file__).resolve().parents[1]
# More than any of these programs takes; one that hangs fails.
SECONDS_MAX = 600

HEAD = """
import multiprocessing, os, subprocess, sys, threading, warnings
import torch
import opscope.torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        # Operators in the worker, and what a worker must not do to its parent.
        if hasattr(self, "model"):
            self.model(torch.ones(1, 4))
        return torch.full((4,), float(i)).square().add(1).sqrt(), i

def work(x):
    return (torch.ones(64, 64) * x).sum().item()

def child(queue):
    assert opscope.torch.finish() == []
    queue.put(work(3.0))

class Errors(opscope.torch.Hook):
    def __init__(self):
        self.processes = set()

    def after(self, call):
        self.processes.add(os.getpid())
"""

LOADER = HEAD + """
def main(path, method, n_workers, n_epochs):
    data = Squares()
    hook = Errors()
    model = torch.nn.Linear(4, 2)
    with opscope.torch.eager(path, data="stats", steps="0-9", hooks=[hook], form="acl") as dump:
        for epoch in range(n_epochs):
            loader = DataLoader(
                data, batch_size=4, num_workers=n_workers, multiprocessing_context=method, timeout=200,
            )
            seen = [int(i) for x, label in loader for i in (model(x), label)[1]]
            assert seen == list(range(12)), seen
            dump.step()
    report = dump.finish()
    assert hook.processes == {os.getpid()}, hook.processes
    assert report["first_error"] is None and report["first_fault"] is None, report
    assert report["n_steps_active"] == min(n_epochs, 10) and report["n_failed"] == 0, report
    # The elements of `empty` have no meaning, so they are not compared.
    assert report["n_selected"] == report["n_written"] + report["unseen"]["uninitialised"], report

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
"""


def run(program: str, *arguments: object, cwd: Path) -> str:
    file = cwd / "program.py"
    file.write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(file), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS_MAX, cwd=cwd, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def steps(path: Path) -> list[int]:
    """Steps of the only dump, and that no process has left anything unfinished."""
    (time,) = path.glob("worldsize1_global_rank0/*")
    assert not list(path.rglob(".opscope-tmp-*"))
    return sorted(int(step.name) for step in (time / "0" / "eager" / "1").iterdir())


@pytest.mark.parametrize(
    ("method", "n_workers", "n_epochs"),
    [("fork", 2, 200), ("fork", 8, 12), ("forkserver", 2, 2), ("spawn", 2, 2)],
)
def test_workers_of_a_data_loader(method: str, n_workers: int, n_epochs: int, tmp_path: Path) -> None:
    run(LOADER, tmp_path / "dump", method, n_workers, n_epochs, cwd=tmp_path)
    assert steps(tmp_path / "dump") == list(range(min(n_epochs, 10)))


# Programs for a fork and around it; `dump` is under way.
FORKS = {
    "os.fork": """
        pid = os.fork()
        if pid == 0:
            # An interpreter that ends as usual, with everything that is registered for its end.
            assert work(2.0) == 8192.0
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    """,
    "Process": """
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        assert queue.get(timeout=200) == 12288.0
        process.join(200)
        assert process.exitcode == 0
    """,
    "subprocess": """
        done = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, preexec_fn=lambda: None)
        assert done.stdout == b"1\\n"
    """,
    "thread": """
        found = []
        thread = threading.Thread(target=lambda: found.append(subprocess.call(["true"])))
        thread.start()
        thread.join()
        assert found == [0]
    """,
}
# How the dump that is under way is begun.
DUMPS = {
    "eager": "opscope.torch.eager(path, form='acl')",
    "compiled": "Compiled(opscope.torch.backend(path, form='acl'))",
    "compiled watch": "Compiled(opscope.torch.backend(path, watch='all', form='acl'))",
    "compiled exception": "Compiled(opscope.torch.backend(path, exception='norm', form='acl'))",
    "watch": "opscope.torch.watch(path)",
    "catch": "opscope.torch.catch(path)",
}

MIXED = HEAD + """
class Compiled:
    def __init__(self, backend):
        self.backend = backend

    def __enter__(self):
        global work
        plain = lambda x: (torch.ones(64, 64) * x).sum()
        compiled = torch.compile(plain, backend=self.backend)
        work = lambda x: compiled(torch.tensor(x)).item()
        return self

    def __exit__(self, *error):
        self.finish()

    def finish(self):
        return self.backend.finish()

def main(path):
    with BEGIN as dump:
        assert work(1.0) == 4096.0
        for _ in range(2):
            FORK
            assert work(1.0) == 4096.0
    report = dump.finish() if hasattr(dump, "finish") else dump.report
    assert report.get("first_error") is None and report.get("first_fault") is None, report
    assert report["n_selected"] == report["n_written"], report

if __name__ == "__main__":
    main(sys.argv[1])
"""


@pytest.mark.parametrize("dump", DUMPS)
def test_forks_of_a_program(dump: str, tmp_path: Path) -> None:
    forks = "\n".join(textwrap.indent(textwrap.dedent(fork), " " * 12) for fork in FORKS.values())
    program = MIXED.replace("BEGIN", DUMPS[dump]).replace("            FORK", forks)
    run(program, tmp_path / "dump", cwd=tmp_path)
    if dump == "eager":
        assert steps(tmp_path / "dump") == [0]


def test_a_child_may_begin_a_dump_of_its_own(tmp_path: Path) -> None:
    program = HEAD + """
if __name__ == "__main__":
    path = sys.argv[1]
    with opscope.torch.eager(path + "/parent", form="acl") as dump:
        work(1.0)
        pid = os.fork()
        if pid == 0:
            with opscope.torch.eager(path + "/child", form="acl") as own:
                work(2.0)
            assert own.finish()["n_written"] == 6
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    assert dump.finish()["n_written"] == 6
"""
    run(program, tmp_path, cwd=tmp_path)
    assert steps(tmp_path / "parent") == steps(tmp_path / "child") == [0]
