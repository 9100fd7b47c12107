"""No command, in no engine, looks anything up on a network or writes outside of its output directory.

Every process runs with an empty home, and the kernel ends it as soon as it opens a network socket. ONNX Runtime 1.32
and newer do both unless a variable forbids it before they are loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import isolation
import onnxruntime
import pytest
from programs import DIGITS, ROOT

MODEL = DIGITS / "digits_cnn.onnx"
IMAGES = DIGITS / "images.npy"
SWITCH = "ORT_DISABLE_TELEMETRY"
C_PROGRAMS = ROOT / "bindings" / "c" / "tests" / "programs"


def library_path() -> Path:
    capi = Path(onnxruntime.__file__).parent / "capi"
    return next(capi.glob("libonnxruntime.so*"))


def binary() -> Path:
    return Path(os.environ["OPSCOPE"]).resolve()


ENGINES = {
    "tract": ["--engine", "tract"],
    "onnxruntime": ["--engine", "onnxruntime", "--engine-lib", str(library_path())],
}


def file_in(folder: Path, name: str, value: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(value))
    return path


def check(folder: Path, command: list[object], code: int = 0, **environment: str) -> None:
    folder.mkdir(exist_ok=True)
    ended = isolation.run(command, folder, environment)
    assert not ended.has_asked_network, f"{command} opened a network socket\n{ended.stderr}"
    assert ended.returncode == code, f"{command} ended with {ended.returncode}\n{ended.stderr}"
    assert ended.files_at_home == [], f"{command} wrote into the home directory"


def test_the_library_is_one_that_would_report() -> None:
    assert SWITCH.encode() in library_path().read_bytes()


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket()",
        "import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "import socket; socket.getaddrinfo('host.invalid', 443)",
        "import threading, socket; t = threading.Thread(target=socket.socket); t.start(); t.join()",
        "import os, sys, socket; os.fork() or socket.socket(); sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))",
    ],
)
def test_the_trap_catches_what_asks_the_network(tmp_path: Path, code: str) -> None:
    ended = isolation.run([sys.executable, "-c", code], tmp_path, {})
    # The last one asks in a child, whose end it passes on.
    assert ended.has_asked_network or "fork" in code and ended.returncode != 0


def test_the_trap_sees_what_is_written_and_lets_the_rest_pass(tmp_path: Path) -> None:
    code = "import pathlib, socket; socket.socket(socket.AF_UNIX); (pathlib.Path.home() / 'trace').touch()"
    ended = isolation.run([sys.executable, "-c", code], tmp_path, {})
    assert (ended.returncode, ended.files_at_home) == (0, ["trace"])


@pytest.fixture(scope="module", params=ENGINES)
def dumped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """Options of an engine, and a dump that it made, which `replay` and `compare` read."""
    options, folder = ENGINES[request.param], tmp_path_factory.mktemp("dumped")
    place = ["--form", "acl", "--out", folder / "out"]
    command = [binary(), "dump", MODEL, "--input", f"image={IMAGES}", *place, *options]
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    return options, folder / "out"


MODEL_COMMANDS: dict[str, Callable[[Path], list[object]]] = {
    "dump": lambda out: ["dump", MODEL, "--input", f"image={IMAGES}", "--out", "out"],
    "statistics": lambda out: ["dump", MODEL, "--input", f"image={IMAGES}", "--stats"],
    "dry run": lambda out: ["dump", MODEL, "--input", f"image={IMAGES}", "--out", "out", "--dry-run"],
    "replay": lambda out: ["replay", out, "--all", "--model", MODEL],
}


@pytest.mark.parametrize("engine", ENGINES)
def test_single_operators(tmp_path: Path, engine: str) -> None:
    operator = file_in(tmp_path, "op.json", {"op": "Relu", "inputs": [{"type": "float32", "shape": [2]}]})
    check(tmp_path / "run", [binary(), "op", operator, "--seed", "0", "--out", "out", *ENGINES[engine]])


@pytest.mark.parametrize("verb", ["check", "explain"])
def test_configurations(tmp_path: Path, verb: str) -> None:
    dump = {"dump_path": str(tmp_path), "dump_list": [{"model_name": "m"}], "dump_mode": "all"}
    check(tmp_path / "run", [binary(), "config", verb, file_in(tmp_path, "acl.json", {"dump": dump})])


@pytest.mark.parametrize("name", MODEL_COMMANDS)
def test_commands_that_run_models(tmp_path: Path, dumped: tuple[list[str], Path], name: str) -> None:
    options, out = dumped
    for given in ({}, {SWITCH: "0"}):
        folder = tmp_path / str(len(given))
        check(folder, [binary(), *MODEL_COMMANDS[name](out), *options], **given)


def first_file(out: Path) -> Path:
    """The drop-in takes files and directories of files, no trees."""
    return next(path for path in sorted(out.rglob("Conv.*")) if path.is_file())


READ_COMMANDS: dict[str, Callable[[Path], list[object]]] = {
    "help": lambda out: ["--help"],
    "show": lambda out: ["show", out],
    "convert": lambda out: ["convert", "-d", out, "--out", "npy"],
    "compare": lambda out: ["compare", out, out, "--html", "report.html"],
    "overflow": lambda out: ["overflow", "--dump", out],
    "nan": lambda out: ["nan", out],
    "ranks": lambda out: ["ranks", out],
    "msaccucmp": lambda out: ["msaccucmp", "convert", "-d", first_file(out), "-out", "npy"],
}


@pytest.mark.parametrize("name", READ_COMMANDS)
def test_commands_that_read(tmp_path: Path, dumped: tuple[list[str], Path], name: str) -> None:
    check(tmp_path, [binary(), *READ_COMMANDS[name](dumped[1])])


@pytest.mark.parametrize("engine", ENGINES)
def test_python(tmp_path: Path, engine: str) -> None:
    environment = {
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "OPSCOPE_ENGINE": engine,
        "OPSCOPE_ENGINE_LIB": str(library_path()),
    }
    command = [sys.executable, "-m", "opscope", "dump", MODEL, "--input", f"image={IMAGES}", "--out", "out"]
    check(tmp_path / "command", command, **environment)
    check(tmp_path / "acl", [sys.executable, "-c", LOAD_IN_PYTHON, MODEL], **environment)


LOAD_IN_PYTHON = """
import sys
import opscope.acl as acl
assert acl.init() == 0 and acl.rt.set_device(0) == 0
model, status = acl.mdl.load_from_file(sys.argv[1])
assert status == 0, status
assert acl.mdl.unload(model) == 0 and acl.finalize() == 0
"""

LOAD_IN_C = """
#include "acl/acl.h"

int main(int argc, char **argv)
{
    uint32_t model = 0;
    if (argc != 2 || aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) {
        return 1;
    }
    if (aclmdlLoadFromFile(argv[1], &model) != ACL_SUCCESS || aclmdlUnload(model) != ACL_SUCCESS) {
        return 2;
    }
    return aclFinalize() == ACL_SUCCESS ? 0 : 3;
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_c(tmp_path: Path, engine: str) -> None:
    source, program = tmp_path / "load.c", tmp_path / "load"
    source.write_text(LOAD_IN_C)
    headers, libraries = C_PROGRAMS.parents[1] / "include", binary().parent
    compiler = ["gcc", source, f"-I{headers}", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lascendcl"]
    subprocess.run([str(part) for part in [*compiler, "-o", program]], check=True)
    environment = {"OPSCOPE_ENGINE": engine, "OPSCOPE_ENGINE_LIB": str(library_path())}
    check(tmp_path / "run", [program, MODEL], **environment)
