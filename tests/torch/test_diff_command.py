"""`python -m opscope diff` with functions in Python modules as sides."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import opscope.torch
import pytest
import torch
from probed_network import ProbedNetwork, image
from test_diff_faults import exported
from waiting import wait_for

SECONDS_MAX = 600
FOLDER = Path(__file__).parent
NETS = f"""
import sys
import time
from pathlib import Path

sys.path.insert(0, {str(FOLDER)!r})
import torch
from probed_network import ProbedNetwork, image


def sound():
    print("a word on standard output")
    return ProbedNetwork().eval(), image()


def faulty():
    return ProbedNetwork("scale").eval()


def with_other_inputs():
    return ProbedNetwork().eval(), image() * 2


def alone():
    return ProbedNetwork().eval()


def drawn():
    return torch.nn.Linear(3, 3), {{"input": torch.randn(2, 3)}}


def raises():
    raise ValueError("no weights")


def nothing():
    pass


def three():
    return 1, 2, 3


def failing():
    return lambda image: image @ torch.ones(5, 5), image()


def waiting():
    def wait(image):
        image.relu()
        Path("waits").touch()
        # In pieces: a signal just before a call of `sleep` is noticed only behind it.
        for _ in range(100 * {SECONDS_MAX}):
            time.sleep(0.01)

    return wait, image()


def path():
    return "net.onnx", image()


class Holder:
    make = staticmethod(sound)


number = 3
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a module, and a separate place for temporary files, which is empty afterwards."""
    (tmp_path / "work/pack").mkdir(parents=True)
    (tmp_path / "temporary").mkdir()
    (tmp_path / "work/nets.py").write_text(NETS)
    (tmp_path / "work/pack/inner.py").write_text("from nets import *")
    (tmp_path / "work/broken.py").write_text("import there_is_no_such_package")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    yield tmp_path / "work"
    assert list((tmp_path / "temporary").iterdir()) == []


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "opscope", "diff", *map(str, arguments)]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=SECONDS_MAX)


def test_the_operator_at_fault_is_told_as_a_comparison_tells_it(place: Path) -> None:
    done = run("nets:faulty", "nets:sound", "--json", "result.json", "--html", "page.html")
    assert done.returncode == 1, done.stderr
    found = opscope.torch.diff(ProbedNetwork("scale").eval(), ProbedNetwork().eval(), image())
    assert done.stdout.splitlines()[0] == found.verdict
    assert "`mul_1`" in found.verdict and "a word" in done.stderr
    assert json.loads((place / "result.json").read_text())["summary"]["level"] == "fail"
    assert (place / "page.html").stat().st_size > 100_000
    # An existing report is refused before anything runs.
    done = run("nets:faulty", "nets:sound", "--json", "result.json")
    assert done.returncode == 2 and "`result.json`" in done.stderr and "a word" not in done.stderr


def test_what_a_function_may_be_and_give(place: Path) -> None:
    exported(ProbedNetwork().eval(), image(), place / "net.onnx", is_traced=False)
    for sides in (
        ("nets:sound", "net.onnx"),
        ("net.onnx", "nets:sound"),
        ("nets:path", "nets:alone"),
        ("pack.inner:Holder.make", "nets:sound"),
        # Each begins with the same random numbers.
        ("nets:drawn", "nets:drawn"),
    ):
        done = run(*sides, "--json", "-", "--quiet", "--allow-skip", "missing")
        assert done.returncode == 0, (sides, done.stderr)
        assert json.loads(done.stdout)["summary"]["level"] == "pass"
    assert run("nets:faulty", "nets:sound", "--save", "kept", "--quiet").returncode == 1
    assert sorted(os.listdir("kept")) == ["golden", "target"]
    assert run("nets:sound", "kept/golden", "--quiet").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nets:faulty", "nets:alone"), 2, "neither `nets:faulty` nor `nets:alone` provides inputs"),
        (("nets:sound", "nets:with_other_inputs"), 2, "provide different inputs: equal ones are expected, or None"),
        (("nets:raises", "nets:sound"), 3, "target: `nets:raises()` raised ValueError: no weights at "),
        (("nets:sound", "nets:nothing"), 2, "golden: `nets:nothing()` returned None (NoneType); expected a module"),
        (("nets:three", "nets:sound"), 2, "target: `nets:three()` returned (1, 2, 3) (tuple); expected a module"),
        (("nets:failing", "nets:alone"), 3, "shapes cannot be multiplied (12x6 and 5x5) at "),
        (
            ("nets:number", "nets:sound"),
            2,
            "target: `nets:number`: a function without arguments is expected, got 3 (int)",
        ),
        (("nets:nowhere", "nets:sound"), 2, "target: `nets:nowhere`: no `nowhere` in "),
        (("nowhere.at.all:f", "nets:sound"), 2, "target: `nowhere.at.all:f`: there is no module `nowhere`"),
        (("broken:f", "nets:sound"), 3, "importing `broken` raised ModuleNotFoundError"),
        (("nets:sound", "nowhere.onnx"), 3, "cannot read `nowhere.onnx`"),
        (("nets:sound", "nets:sound", "--no-such-option"), 2, "unexpected argument '--no-such-option'"),
        (("--quiet", "nets:sound", "nets:sound"), 2, "the two sides are expected before any option"),
        (("nets:sound",), 2, "the two sides are expected"),
        (("nets:sound", "nets:sound", "--save"), 2, "`--save`: a value is expected"),
        (("nets:sound", "nets:sound", "--save", "nets.py"), 2, "save: cannot make the directory"),
        (("nets:sound", "nets:sound", "--engine", "cuda"), 2, "engine `cuda` is none of auto, tract, onnxruntime"),
    ],
)
def test_mistakes(place: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_with_a_colon_is_a_file(place: Path) -> None:
    torch.save({"weight": torch.ones(3)}, place / "nets:sound")
    done = run("nets:sound", "nets:sound", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_command_leaves_nothing(place: Path, number: int) -> None:
    # Under `nohup` the tests ignore a signal, and so would the child.
    heard = {"preexec_fn": lambda: signal.signal(number, signal.SIG_DFL)}
    child = subprocess.Popen(command("nets:waiting", "nets:alone"), stderr=subprocess.PIPE, text=True, **heard)
    try:
        wait_for((place / "waits").exists, "a model that waits", child)
        child.send_signal(number)
        _, told = child.communicate(timeout=SECONDS_MAX)
    finally:
        child.kill()
    assert (child.returncode, "Traceback" in told) == (130, False)
