"""Tests of the effects of reading on the process: imports, threads, forks."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import opscope
import pytest

FOLDER = Path(opscope.__file__).parent
SECONDS_MAX = 600


def python(code: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("code", ["", "opscope.open, opscope.convert, opscope.OpscopeError, opscope.Record"])
def test_importing_loads_neither_numpy_nor_torch_nor_the_extension(code: str) -> None:
    heavy = ["numpy", "torch", "opscope._native", "asyncio", "importlib.metadata", "ctypes"]
    program = f"import sys, opscope\n{code}\nprint([name for name in {heavy} if name in sys.modules])"
    assert python(program) == "[]"


def test_listing_loads_no_numpy_and_reading_no_torch(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3.0))
    program = """
import sys, opscope
(record,) = opscope.open(sys.argv[1])
assert record.statistics().sum == 3
assert "numpy" not in sys.modules
assert record.numpy().tolist() == [0, 1, 2]
assert "torch" not in sys.modules
"""
    python(program, tmp_path)


def test_the_interpreter_goes_on_while_a_file_is_read(tmp_path: Path) -> None:
    # No thread has to give the lock up for long enough: only one that does so itself lets another one run.
    np.save(tmp_path / "a.npy", np.zeros(4_000_000))
    program = """
import sys, threading, opscope
sys.setswitchinterval(1000)
(record,) = opscope.open(sys.argv[1])
seen = False
for _ in range(50):
    state = []

    def read():
        state.append("reading")
        record.statistics()
        state.append("done")

    reader = threading.Thread(target=read)
    reader.start()
    seen = seen or state == ["reading"]
    reader.join()
    if seen:
        break
print(seen)
"""
    assert python(program, tmp_path / "a.npy") == "True"


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npy")
    (problem,) = opscope.open(tmp_path / "a.npy").problems
    assert isinstance(problem, opscope.FileError) and "found a named pipe" in str(problem)


def test_forked_processes_read_on(tmp_path: Path) -> None:
    for number in range(20):
        np.save(tmp_path / f"{number:02}.npy", np.full(50_000, number))
    program = """
import os, sys, opscope
dump = opscope.open(sys.argv[1])
arrays = [record.numpy() for record in dump]
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        again = opscope.open(sys.argv[1], jobs=4)
        good = all((a == i).all() and (r.numpy() == i).all() for i, (a, r) in enumerate(zip(arrays, dump)))
        good = good and [r.statistics().max for r in again] == list(range(20))
        os._exit(0 if good else 1)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
"""
    assert python(program, tmp_path) == "[0, 0, 0, 0]"


def test_many_threads_read_one_dump(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    for number in range(40):
        np.save(tmp_path / f"{number:02}.npy", np.full(1000, number))
    dump = opscope.open(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: (dump[i].numpy().max(), dump[i].statistics().min), list(range(40)) * 5))
    assert found == [(i, i) for i in range(40)] * 5


def test_the_stub_names_what_there_is() -> None:
    tree = ast.parse((FOLDER / "__init__.pyi").read_text(encoding="utf-8"))
    stubbed = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert stubbed | {"__version__"} == {*opscope.__all__, "open"}
    # `opscope.torch` is there where torch is.
    for name in sorted(stubbed - {"torch"}):
        assert getattr(opscope, name) is not None


def test_the_stub_of_the_extension_tells_the_truth() -> None:
    from opscope._native import reading

    tree = ast.parse((FOLDER / "_native" / "reading.pyi").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            stubbed = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            found = {name for name in vars(getattr(reading, node.name)) if not name.startswith("__")}
            assert found == {name for name in stubbed if not name.startswith("__")}
        elif isinstance(node, ast.FunctionDef):
            assert callable(getattr(reading, node.name))


def test_a_star_import_leaves_pythons_open_alone() -> None:
    assert "open" not in opscope.__all__ and "open" in dir(opscope)
