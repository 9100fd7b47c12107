"""Ways in which the binary gets to see a pair."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from case import Case, Pair, Said, saved

TIMEOUT_SECONDS = 300

# Options of `dump` for each form; `diff` needs no dump.
FORMS: dict[str, tuple[str, ...] | None] = {
    "diff": None,
    "native": (),
    "acl": ("--form", "acl"),
    "mindspore": ("--form", "mindspore"),
    "statistics": ("--content", "statistics"),
}


@dataclass(frozen=True)
class Runner:
    """The binary, the library of ONNX Runtime, and a folder for what is made."""

    binary: Path
    engine_lib: str | None
    work: Path

    def run(self, case: Case) -> Said:
        # MindSpore takes few characters in paths.
        folder = self.work / case.name.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        pair = case.make()
        try:
            return self._compare(case, pair, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _compare(self, case: Case, pair: Pair, folder: Path) -> Said:
        sides = [
            saved(model, folder / f"{name}.onnx") for name, model in (("target", pair.target), ("golden", pair.golden))
        ]
        document = folder / "result.json"
        report = ("--json", document, *pair.options)
        options = FORMS[case.form]
        if options is None:
            done = self._call("diff", *sides, *self._engine(case), *report)
        else:
            dumps = [folder / name for name in ("target", "golden")]
            for model, dump in zip(sides, dumps, strict=True):
                made = self._call(
                    "dump", model, "--out", dump, "--no-baseline", "--seed", "0", *options, *self._engine(case)
                )
                if made.returncode:
                    return Said(made.returncode, made.stderr, None)
            done = self._call("compare", *dumps, *report)
        result = json.loads(document.read_text()) if document.exists() else None
        return Said(done.returncode, done.stdout or done.stderr, result)

    def _engine(self, case: Case) -> tuple[str, ...]:
        return ("--engine", case.engine)

    def _call(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ)
        if self.engine_lib:
            environment["OPSCOPE_ENGINE_LIB"] = self.engine_lib
        command = [str(part) for part in (self.binary, *arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment)
