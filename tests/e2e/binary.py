"""Running the tool under test."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TIMEOUT_SECONDS = 120


class Binary:
    """The `opscope` executable. Every call demands success and shows what the tool said when it is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def from_environment(cls) -> Binary:
        """Raise LookupError unless the environment variable OPSCOPE names an executable file."""
        setting = os.environ.get("OPSCOPE")
        if not setting:
            raise LookupError("set OPSCOPE to the built binary, for example OPSCOPE=target/debug/opscope")
        path = Path(setting).resolve()
        if not os.access(path, os.X_OK) or not path.is_file():
            raise LookupError(f"OPSCOPE names no executable file: `{path}`")
        return cls(path)

    def run(self, *args: object, cwd: Path | None = None) -> str:
        command = [str(self.path), *map(str, args)]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        assert done.returncode == 0, f"exit code {done.returncode} from {command}\n{done.stderr}"
        return done.stdout

    def dump(self, model: Path, *args: object, cwd: Path | None = None) -> dict[str, Any]:
        """The one JSON object that `dump --json` prints."""
        return json.loads(self.run("dump", model, *args, "--json", cwd=cwd))

    def convert(self, source: Path, out_dir: Path) -> None:
        self.run("convert", "-d", source, "-out", out_dir)


def input_options(inputs: Mapping[str, NDArray], folder: Path) -> list[str]:
    """Save each array under `folder` and name it with `--input`."""
    folder.mkdir(parents=True)
    options = []
    for idx, (name, array) in enumerate(inputs.items()):
        path = folder / f"{idx}.npy"
        np.save(path, array)
        options += ["--input", f"{name}={path}"]
    return options
