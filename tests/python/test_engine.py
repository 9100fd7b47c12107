"""Which engine models run in: the requested one, or one in this interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from onnx_models import write_linear
from programs import SECONDS_MAX, run_code, run_snippet

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the library's name is that of Linux")
LIBRARY = "onnxruntime/capi/libonnxruntime.so.1.99.0"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_linear(tmp_path_factory.mktemp("model"))


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A directory whose package `onnxruntime` can be found, but neither be imported nor loaded."""
    folder = tmp_path / "packages"
    library = folder / LIBRARY
    library.parent.mkdir(parents=True)
    library.write_text("no library")
    (folder / "onnxruntime/__init__.py").write_text("raise SystemExit('it was imported')")
    return folder


def choosing(packages: Path, **environment: str) -> dict[str, str]:
    """Variables with which the interpreter finds these packages first, and nothing else is asked for."""
    path = [str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"OPSCOPE_ENGINE": "auto", "ORT_DYLIB_PATH": "", "PYTHONPATH": os.pathsep.join(path), **environment}


@linux_only
def test_the_command_line_looks_beside_the_package(model: Path, packages: Path) -> None:
    command = [sys.executable, "-m", "opscope", "dump", str(model), "--seed", "0", "--stats"]
    options = {"capture_output": True, "text": True, "timeout": SECONDS_MAX, "check": False}
    environment = {**os.environ, **choosing(packages)}
    done = subprocess.run(command, env=environment, **options)
    assert done.returncode == 0, done.stderr
    found = f"the library `{packages / LIBRARY}`, found next to the Python package of this interpreter, cannot be used: "
    assert done.stderr.startswith(f"opscope: warning: {found}")
    assert "opscope: engine: tract " in done.stderr
    done = subprocess.run([*command, "--engine", "onnxruntime"], env=environment, **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"opscope: {found}")
    # A library that `--engine-lib` names takes precedence over the package's.
    done = subprocess.run([*command, "--engine-lib", str(packages / "absent")], env=environment, **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("opscope: --engine-lib names `")


@linux_only
def test_nothing_is_looked_for_before_a_model_is_loaded(model: Path, packages: Path) -> None:
    code = """
class Finder:
    asked = []

    def find_spec(self, name, path=None, target=None):
        self.asked.append(name)

sys.meta_path.insert(0, Finder())
import opscope.acl as acl
codes = [acl.init(), acl.rt.set_device(0)]
before = list(Finder.asked)
model, code = acl.mdl.load_from_file(sys.argv[1])
result = [[*codes, code], "onnxruntime" in before, Finder.asked.count("onnxruntime")]
again, code = acl.mdl.load_from_file(sys.argv[1])
result += [code, Finder.asked.count("onnxruntime"), "onnxruntime" in sys.modules]
print(json.dumps(result))
"""
    done = run_code(code, model, **choosing(packages))
    assert done.stdout.splitlines()[-1] == "[[0, 0, 0], false, 1, 0, 1, false]"
    assert "found next to the Python package of this interpreter, cannot be used" in done.stderr
    assert done.stderr.rstrip().endswith("; using tract")


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("onnxruntime", "OPSCOPE_ENGINE_LIB names `"),
        ("auto", "OPSCOPE_ENGINE_LIB names `"),
        ("torch", "OPSCOPE_ENGINE is `torch`: expected auto, tract or onnxruntime"),
    ],
)
def test_programs_are_told_why_there_is_no_engine(engine: str, said: str, model: Path, tmp_path: Path) -> None:
    code = """
acl.init()
acl.rt.set_device(0)
_, code = acl.mdl.load_from_file(sys.argv[1])
message = acl.get_recent_err_msg()
_, missing = acl.mdl.load_from_file(sys.argv[1] + ".absent")
result = [code, message, missing]
"""
    variables = choosing(tmp_path, OPSCOPE_ENGINE=engine, OPSCOPE_ENGINE_LIB=str(tmp_path / "absent"))
    code, message, missing = run_snippet(code, model, **variables)
    assert code == 545000
    assert said in message
    # A file that is not there has its own code, with any engine.
    assert missing not in (0, code)
