"""Running the tool under test."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    # Tests elsewhere run the tool where no engine is installed.
    from engines import Engine

TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Binary:
    """The `opscope` executable, and the engine passed to `dump`, if any.

    Every call demands success and shows what the tool said when it is refused.
    """

    path: Path
    engine: Engine | None = None

    @classmethod
    def from_environment(cls, engine: Engine | None = None) -> Binary:
        """Raise LookupError unless the environment variable OPSCOPE names an executable file."""
        setting = os.environ.get("OPSCOPE")
        if not setting:
            raise LookupError("set OPSCOPE to the built binary, for example OPSCOPE=target/debug/opscope")
        path = Path(setting).resolve()
        if not os.access(path, os.X_OK) or not path.is_file():
            raise LookupError(f"OPSCOPE names no executable file: `{path}`")
        return cls(path, engine)

    def command(self, name: object, *args: object) -> list[str]:
        chosen = self.engine.options if self.engine and name == "dump" else []
        return [str(part) for part in (self.path, name, *chosen, *args)]

    def run(self, name: str, *args: object, cwd: Path | None = None) -> str:
        command = self.command(name, *args)
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
