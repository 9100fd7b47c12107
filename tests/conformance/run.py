"""One case through one engine, in a process of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import judge
import onnx
import taps
import values
from cases import Case
from judge import Verdict

TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Engine:
    """An engine and the options that choose it."""

    name: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    case: Case
    verdict: Verdict
    reasons: Counter[str] = field(default_factory=Counter)
    n_operators: int = 0
    n_tensors: int = 0


def run_all(binary: Path, engine: Engine, cases: list[Case], scratch: Path, n_jobs: int) -> list[Result]:
    """Results in the order of the cases."""
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(lambda case: run(binary, engine, case, scratch / engine.name / case.name), cases))


def run(binary: Path, engine: Engine, case: Case, scratch: Path) -> Result:
    scratch.mkdir(parents=True)
    try:
        return _run(binary, engine, case, scratch)
    finally:
        shutil.rmtree(scratch)


def _run(binary: Path, engine: Engine, case: Case, scratch: Path) -> Result:
    dump, outputs = scratch / "dump", scratch / "outputs"
    command: list[str | Path] = [binary, "dump", case.model, *engine.options]
    command += ["--out", dump, "--save-outputs", outputs, "--no-baseline", "--threads", "1", "--json"]
    command += _inputs(case)
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return Result(case, Verdict(judge.CRASH, f"no end after {TIMEOUT_SECONDS} s"))
    errors = done.stderr.decode(errors="replace")
    # What an engine has no bytes for ends the run with 4, too; the rest of it is there.
    is_partly_dumped = done.returncode == 4 and "could not be dumped" in errors and (outputs / "0").exists()
    if done.returncode != 0 and not is_partly_dumped:
        return Result(case, refusal(case, done.returncode, errors))
    verdict = _judge(case, outputs / "0")
    found = taps.check(onnx.load(case.model), dump, engine.name)
    report = json.loads(done.stdout)["records"]
    n_told = report["written"]
    if n_told != found.n_tensors:
        found.problems.append(f"the report tells of {n_told} tensors, the dump has {found.n_tensors}")
    if verdict.outcome == judge.PASS and found.problems:
        verdict = Verdict(judge.UNTAPPED, "; ".join(found.problems))
    return Result(case, verdict, found.reasons, found.n_operators, found.n_tensors)


def _inputs(case: Case) -> list[str]:
    options = []
    for value in case.inputs:
        if not value.file:
            continue
        options += ["--input", f"{value.name}={case.folder / value.file}"]
        if value.file.endswith(".bin"):
            options += ["--shape", f"{value.name}:{','.join(map(str, value.shape))}"]
    return options


def _judge(case: Case, folder: Path) -> Verdict:
    entries = json.loads((folder / "outputs.json").read_text())["outputs"]
    by_name = {entry["name"]: entry for entry in entries}
    for value in case.outputs:
        if not value.file:
            continue
        if value.name not in by_name:
            return Verdict(judge.UNTAPPED, f"no output `{value.name}`")
        entry = by_name[value.name]
        if entry["dtype"] != value.dtype:
            return Verdict(judge.WRONG_DTYPE, f"`{value.name}` is {entry['dtype']}, expected {value.dtype}")
        wanted = values.expected(values.parse_proto(case.folder / value.file))
        verdict = judge.compare(value.name, values.load_output(folder, entry), wanted, case.rtol, case.atol)
        if verdict.outcome != judge.PASS:
            return verdict
    return Verdict(judge.PASS)


def refusal(case: Case, code: int, errors: str) -> Verdict:
    """How a run without results ended; every end but these two is a crash.

    An engine's panic that is told as the failure of an operator is one of the two.
    """
    lines = [line for line in errors.splitlines() if line.strip()]
    text = re.sub(r"\x1b\[[0-9;]*m", "", next((line for line in lines if "error" in line), errors.strip()))
    text = text.replace(str(case.folder), "").strip()
    if code in (2, 3) and text:
        return Verdict(judge.REFUSED, text)
    if code == 4 and text:
        return Verdict(judge.FAILED, text)
    return Verdict(judge.CRASH, f"exit code {code}: {text}")
