"""The outputs of `opscope dump` for samples: many in one model, each alone where the model does not run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from .sample import Sample, model_of

# The sample's own elements, others, and its own again.
N_STEPS = 3
TIMEOUT_SECONDS = 600
# Refused before anything ran, or failed while it ran; both name a reason.
SPOKEN_ENDS = (2, 3, 4)


@dataclass(frozen=True)
class Dumped:
    """Outputs by step, or how the run ended without them."""

    steps: list[list[NDArray]]
    code: int = 0
    message: str = ""


def dumped(binary: Path, options: list[str], samples: list[Sample], folder: Path) -> list[Dumped]:
    """All samples in one run; where one ends it, it is left out, or the rest is halved if the message names none."""
    found: dict[int, Dumped] = {}
    waiting = [list(range(len(samples)))]
    for run in count():
        if not waiting:
            return [found[i] for i in range(len(samples))]
        some = waiting.pop()
        starts = {f"s{i}_": samples[i] for i in some}
        code, message, results = _run(binary, options, starts, folder / str(run))
        named = {int(i) for i in re.findall(r"\bs(\d+)_", message)} & set(some)
        if code == 0:
            found |= {i: _outputs(results, samples[i], f"s{i}_") for i in some}
        elif len(some) == 1:
            found[some[0]] = Dumped([], code, message)
        elif len(named) == 1:
            found |= {i: Dumped([], code, message) for i in named}
            waiting.append([i for i in some if i not in named])
        else:
            half = len(some) // 2
            waiting += [some[:half], some[half:]]
        shutil.rmtree(folder / str(run))
    raise AssertionError("count() does not end")


def _run(binary: Path, options: list[str], starts: dict[str, Sample], folder: Path) -> tuple[int, str, Path]:
    folder.mkdir(parents=True)
    model, sets, results = folder / "model.onnx", folder / "sets", folder / "results"
    onnx.save(model_of(starts), model)
    sets.mkdir()
    for step in range(N_STEPS):
        arrays = [sample.arrays(start, step) for start, sample in starts.items()]
        np.savez(sets / f"{step}.npz", **{name: array for group in arrays for name, array in group.items()})
    has_inputs = any(sample.arrays(start) for start, sample in starts.items())
    given = ["--inputs", sets] if has_inputs else ["--steps", str(N_STEPS)]
    command = [binary, "dump", model, *options, *given, "--stats", "--json", "--save-outputs", results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return done.returncode, "\n".join(errors).replace(str(model), "MODEL") or done.stderr, results


def _outputs(results: Path, sample: Sample, start: str) -> Dumped:
    steps = []
    for step in range(N_STEPS):
        folder = results / str(step)
        entries = {entry["name"]: entry for entry in json.loads((folder / "outputs.json").read_text())["outputs"]}
        steps.append([np.load(folder / entries[name]["file"]) for name in sample.output_names(start)])
    return Dumped(steps)
