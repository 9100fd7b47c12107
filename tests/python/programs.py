"""Running a program in a separate Python process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("programs")
ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
# The imports that every snippet may use.
PRELUDE = "import json, sys\nimport opscope.acl as acl\n"
SECONDS_MAX = 600


def run_program(name: str, *arguments: object, **environment: str) -> Any:
    """Runs a program of `programs/` and returns the JSON that it writes to standard output."""
    return _json(_run([str(PROGRAMS / name), *map(str, arguments)], environment).stdout)


def run_snippet(code: str, *arguments: object, **environment: str) -> Any:
    """The value of `result` after running `code`, by way of JSON. `sys.argv[1:]` are the arguments."""
    return _json(run_code(code + "\nprint(json.dumps(result))", *arguments, **environment).stdout)


def run_code(code: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `code`, which ends well."""
    return _run(["-c", PRELUDE + textwrap.dedent(code), *map(str, arguments)], environment)


def _run(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr}"
    return done


def _json(text: str) -> Any:
    return json.loads(text.splitlines()[-1])
