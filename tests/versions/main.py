"""Runs first_hour.py with pairs of Python, PyTorch, ONNX Runtime and numpy; prints a table in Markdown.

usage: main.py PACKAGE [ROW ...]; PACKAGE is a wheel of `cargo xtask release wheel`, or a folder with the built package
`opscope`. ROW is the version of a Python in VERSIONS; without one, every row runs. Each row needs 6 GB of disk for its
environment, which is removed afterwards. Interpreters come from PATH and from pyenv; a row without one says so.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Pairs that exist upstream, from the oldest to the newest: Python, torch, onnxruntime, numpy.
VERSIONS = (
    ("3.9", "2.6.0", "1.19.2", "1.26.4"),
    ("3.10", "2.7.1", "1.20.1", "1.26.4"),
    ("3.11", "2.9.1", "1.23.2", "2.2.6"),
    ("3.12", "2.11.0", "1.25.1", "2.3.5"),
    ("3.13", "2.13.0", "1.28.0", "2.4.6"),
    ("3.14", "2.15.0", "1.32.0", "2.4.6"),
)


def interpreter(version: str) -> str | None:
    in_pyenv = sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python")))
    return in_pyenv[-1] if in_pyenv else shutil.which(f"python{version}")


def answers(row: tuple[str, ...], package: str, folder: str) -> dict[str, str]:
    """Step -> "ok" or an error."""
    version, torch, runtime, numpy = row
    if (program := interpreter(version)) is None:
        return {"environment": f"no python{version} here"}
    python = os.path.join(folder, "venv", "bin", "python")
    subprocess.run([program, "-m", "venv", os.path.join(folder, "venv")], check=True)
    needed = [f"torch=={torch}", f"onnxruntime=={runtime}", f"numpy=={numpy}", "onnx"]
    is_wheel = package.endswith(".whl")
    needed += [package] if is_wheel else []
    done = subprocess.run([python, "-m", "pip", "install", "-q", *needed], capture_output=True, text=True)
    if done.returncode:
        return {"environment": done.stderr.strip()[-300:]}
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env["PATH"] = os.path.dirname(python) + os.pathsep + env["PATH"]
    env.update({} if is_wheel else {"PYTHONPATH": package})
    digits = os.path.join(HERE, "..", "..", "examples", "digits")
    command = [python, "-B", os.path.join(HERE, "first_hour.py"), f"{python} -m opscope", digits, f"{folder}/work"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=1200)
    return json.loads(done.stdout) if done.returncode == 0 else {"environment": done.stderr.strip()[-300:]}


def main() -> None:
    package, chosen = os.path.abspath(sys.argv[1]), sys.argv[2:]
    print("| Python | PyTorch | ONNX Runtime | numpy | |\n| --- | --- | --- | --- | --- |", flush=True)
    has_failed = False
    for row in VERSIONS:
        if chosen and row[0] not in chosen:
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = answers(row, package, folder)
        wrong = {step: text for step, text in found.items() if text != "ok"}
        has_failed |= bool(wrong)
        words = "; ".join(f"{step}: {text}" for step, text in wrong.items()) or "all steps"
        print(f"| {' | '.join(row)} | {words} |", flush=True)
        print(f"{row[0]}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    sys.exit(has_failed)


if __name__ == "__main__":
    main()
