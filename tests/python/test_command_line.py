"""`python -m opscope`: the command line of the binary, with its exit codes, streams and signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import opscope
import pytest
from onnx_models import write_linear
from programs import ROOT
from waiting import wait_for

SECONDS_MAX = 600
COMMANDS = [
    *"dump op config convert compare diff show view index sql overflow nan verify".split(),
    *"ranks replay sensitivity msaccucmp gears doctor completions mcp man".split(),
]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-X", "faulthandler", "-m", "opscope", *map(str, arguments)]


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    options = {"capture_output": True, "text": True, "timeout": SECONDS_MAX, **options}
    return subprocess.run(command(*arguments), check=False, **options)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_linear(tmp_path_factory.mktemp("model"))


def test_help_has_every_command() -> None:
    done = run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: opscope <COMMAND>" in done.stdout
    assert re.findall(r"^  (\w+) ", done.stdout, re.MULTILINE)[: len(COMMANDS)] == COMMANDS
    for name in COMMANDS:
        if name == "msaccucmp":
            continue
        assert run(name, "--help").stdout.count(f"Usage: opscope {name}") == 1


def test_doctor_checks_this_interpreter() -> None:
    done = run("doctor", "--json")
    assert done.returncode == 0, done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["python"]["path"] == sys.executable
    assert checks["python package"]["state"] == "ok", checks["python package"]
    assert checks["python package"]["version"] == opscope.__version__


def test_version_is_that_of_the_package() -> None:
    assert run("--version").stdout == f"opscope {opscope.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "Usage: opscope <COMMAND>"),
        (("dump", "--no-such-option"), 2, "unexpected argument '--no-such-option'"),
        (("show", "/nowhere/at/all"), 3, "opscope: cannot read `/nowhere/at/all`"),
        (("convert", "-d", "/nowhere"), 3, "opscope: cannot read `/nowhere`"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_overflow_is_exit_code_1(tmp_path: Path) -> None:
    stem = ROOT / "tests" / "models" / "overflow_six"
    config = tmp_path / "acl.json"
    config.write_text(json.dumps({"dump": {"dump_debug": "on", "dump_path": str(tmp_path)}}))
    done = run("dump", f"{stem}.onnx", "--inputs", f"{stem}.sample.npz", "--config", config)
    assert done.returncode == 0, done.stderr
    found = run("overflow", "-d", tmp_path, "--json")
    assert (found.returncode, found.stderr) == (1, "")
    assert {record.kind for record in opscope.open(tmp_path).find(op_type="Opdebug")} == {"overflow_record"}


def test_dump_show_and_convert(model: Path, tmp_path: Path) -> None:
    dumped = run("dump", model, "--input", f"x={model.parent / 'x.npy'}", "--out", tmp_path / "dump", "--json")
    assert dumped.returncode == 0, dumped.stderr
    assert json.loads(dumped.stdout)["records"]["written"] == 8
    shown = run("show", tmp_path / "dump", "--json")
    assert [operator["op_name"] for operator in json.loads(shown.stdout)["operators"]] == [
        "layer/matmul",
        "layer/add",
        "layer/relu",
    ]
    converted = run("convert", "-d", tmp_path / "dump", "-out", tmp_path / "npy")
    assert converted.returncode == 0, converted.stderr
    assert len(list((tmp_path / "npy").rglob("*.npy"))) == 8


def test_a_part_that_fails_is_exit_code_4(model: Path, tmp_path: Path) -> None:
    assert run("dump", model, "--seed", "0", "--form", "acl", "--out", tmp_path / "dump").returncode == 0
    next((tmp_path / "dump").rglob("Relu.*")).write_bytes(b"damaged")
    done = run("convert", "-d", tmp_path / "dump", "-out", tmp_path / "npy")
    assert done.returncode == 4
    assert "is not a valid" in done.stderr
    assert "2 of 3 files converted" in done.stdout


def test_ctrl_c_ends_a_dump_in_order(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "dump"
    place = ("--form", "acl", "--out", out)
    arguments = command("dump", model, "--seed", "0", "--steps", "100000000", *place, "--no-baseline")
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: any(out.rglob("Relu.*")), "a dump", process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "stopped" in stderr
    assert "Traceback" not in stderr and "KeyboardInterrupt" not in stderr
    assert "operators dumped" in stdout
    assert opscope.open(out).problems == []


def test_ctrl_c_ends_other_commands_at_once(model: Path, tmp_path: Path) -> None:
    assert run("dump", model, "--seed", "0", "--out", tmp_path).returncode == 0
    # Each file that is passed over is listed, which makes more than a pipe holds.
    for i in range(1500):
        (tmp_path / f"note {i}").write_text("no dump", encoding="utf-8")
    # A shell lets what it starts in the background ignore the signal.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    arguments = command("show", tmp_path, "--json")
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed)
    assert process.stdout is not None and process.stderr is not None
    try:
        # It has begun to write, and waits.
        assert os.read(process.stdout.fileno(), 1) == b"{"
        process.send_signal(signal.SIGINT)
        assert (process.wait(SECONDS_MAX), process.stderr.read()) == (-signal.SIGINT, b"")
    finally:
        process.kill()


def test_a_reader_that_goes_away_is_no_error(model: Path, tmp_path: Path) -> None:
    assert run("dump", model, "--seed", "0", "--steps", "200", "--out", tmp_path).returncode == 0
    process = subprocess.Popen(command("show", tmp_path, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    stderr = process.stderr.read()
    assert (process.wait(SECONDS_MAX), stderr) == (0, b"")


def test_closed_streams_are_no_error(model: Path, tmp_path: Path) -> None:
    line = " ".join(command("dump", model, "--seed", "0", "--out", tmp_path / "dump"))
    done = subprocess.run(["sh", "-c", f"exec {line} >&- 2>&- <&-"], timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0
    found = opscope.open(tmp_path / "dump")
    assert (len(found), found.problems) == (8, [])


def test_the_console_script_is_the_same() -> None:
    code = "import sys; from opscope.__main__ import main; sys.exit(main(['show', '/nowhere']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, run("show", "/nowhere").stderr)
    text = (ROOT / "bindings/python/pyproject.toml").read_text(encoding="utf-8")
    assert 'opscope = "opscope.__main__:main"' in text


def test_arguments_need_not_be_text() -> None:
    done = subprocess.run([*command("show"), b"/nowhere/\xff"], capture_output=True, check=False)
    assert done.returncode == 3
