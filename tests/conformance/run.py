"""One case through one engine: as it is given, and with its inputs in other forms; each time three executions."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import forms
import inputs
import judge
import onnx
import taps
import values
from cases import Case
from forms import Form
from inputs import N_STEPS, Others
from judge import Verdict
from numpy.typing import NDArray

TIMEOUT_SECONDS = 300
# Refusals that have nothing to do with where inputs come from.
WHATEVER_THE_FORM = re.compile(
    r"no such operator|has no type for|is from the domain|opset|IR version|is not a registered function"
)


@dataclass(frozen=True)
class Engine:
    """An engine and the options that choose it."""

    name: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The outcome of a case as it is given, and by the name of a form the outcome of that."""

    case: Case
    verdict: Verdict
    reasons: Counter[str] = field(default_factory=Counter)
    n_operators: int = 0
    n_tensors: int = 0
    forms: dict[str, Verdict] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """A process that has ended: with outputs of each step, or with a verdict."""

    outputs: Path
    report: str = ""
    end: Verdict | None = None
    others: Others = Others.NONE


@dataclass(frozen=True)
class Runner:
    """Runs one case in a separate folder."""

    binary: Path
    engine: Engine
    case: Case
    scratch: Path

    def run(self) -> Result:
        self.scratch.mkdir(parents=True)
        try:
            return self._run()
        finally:
            shutil.rmtree(self.scratch)

    def _run(self) -> Result:
        given = self._process("given", self.case.model, ["--form", "acl", "--out", self.scratch / "dump"], Others.ALL)
        if given.end:
            return Result(self.case, given.end, forms=self._forms(given))
        verdict = self.judge(given.outputs)
        found = taps.check(onnx.load(self.case.model), self.scratch / "dump", self.engine.name, N_STEPS)
        n_told = json.loads(given.report)["records"]["written"]
        if n_told != found.n_tensors_of_all:
            found.problems.append(f"the report tells of {n_told} tensors, the dump has {found.n_tensors_of_all}")
        if verdict.outcome == judge.PASS and found.problems:
            verdict = Verdict(judge.UNTAPPED, "; ".join(found.problems))
        return Result(
            self.case, verdict, found.reasons, found.n_operators, found.n_tensors, self._forms(given)
        )

    def _process(self, name: str, model: Path, dumps: list[str | Path], others: Others) -> Done:
        """Three executions after the baseline's. Where an operator refuses the inputs between, it gets milder ones."""
        outputs = self.scratch / f"{name}.outputs"
        command: list[str | Path] = [self.binary, "dump", model, *self.engine.options, *dumps]
        command += ["--save-outputs", outputs, "--threads", "1", "--json"]
        command += inputs.options(self.case, self.scratch / f"{name}.{others.name}", others)
        try:
            done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return Done(outputs, end=Verdict(judge.CRASH, f"no end after {TIMEOUT_SECONDS} s"))
        errors = done.stderr.decode(errors="replace")
        # A value that an engine has no bytes for ends the run with 4, too; the rest of it is there.
        is_partly_dumped = done.returncode == 4 and "could not be dumped" in errors
        if done.returncode == 0 or (is_partly_dumped and (outputs / str(N_STEPS - 1)).exists()):
            return Done(outputs, done.stdout.decode(), others=others)
        shutil.rmtree(outputs, ignore_errors=True)
        shutil.rmtree(self.scratch / "dump", ignore_errors=True)
        if "step 1: " in errors and others != Others.NONE:
            milder = Others.FLOATS if others == Others.ALL else Others.NONE
            return self._process(name, model, dumps, milder)
        return Done(outputs, end=refusal(self.case, done.returncode, errors.replace(str(model), "")))

    def _forms(self, given: Done) -> dict[str, Verdict]:
        every = forms.of_case(self.case)
        if not every:
            return {}
        found = self._try(every, given)
        if found is None and (len(every) == 1 or self._is_hopeless(given)):
            found = {form: given.end for form in every}
        if found is None:
            found = {}
            for form in every:
                alone = self._try([form], given, must_end=True)
                found[form] = alone[form]
        return {form.name: verdict for form, verdict in found.items()}

    def _is_hopeless(self, given: Done) -> bool:
        end = given.end
        return end is not None and end.outcome == judge.REFUSED and bool(WHATEVER_THE_FORM.search(end.detail))

    def _try(self, some: list[Form], given: Done, *, must_end: bool = False) -> dict[Form, Verdict] | None:
        """Verdicts on forms that run together; none where one of several does not run."""
        path = self.scratch / "forms.onnx"
        onnx.save(forms.build(self.case, some), path)
        name = "forms" if len(some) > 1 else f"form{len(list(self.scratch.iterdir()))}"
        others = given.others if not given.end else Others.ALL
        done = self._process(name, path, ["--stats"], others)
        if done.end:
            return {form: done.end for form in some} if must_end else None
        return {form: self._judge_form(form, some, done, given) for form in some}

    def _judge_form(self, form: Form, some: list[Form], done: Done, given: Done) -> Verdict:
        prefix = forms.prefix(form, some)
        verdict = self.judge(done.outputs, prefix)
        is_comparable = form.follows_inputs and not given.end and done.others == given.others
        if verdict.outcome == judge.PASS and is_comparable:
            wanted = {value.name: _load(given.outputs / "1", value.name) for value in self.case.outputs if value.file}
            verdict = self._judge_step(done.outputs / "1", prefix, wanted)
        return verdict

    def judge(self, outputs: Path, prefix: str = "") -> Verdict:
        """The first execution against what is expected, the last against the first."""
        files = {value.name: value.file for value in self.case.outputs if value.file}
        wanted = {
            name: values.expected(values.parse_proto(self.case.folder / file)) for name, file in files.items()
        }
        verdict = self._judge_step(outputs / "0", prefix, wanted)
        if verdict.outcome != judge.PASS:
            return verdict
        for name in files:
            first, last = (_raw(outputs / str(step), prefix + name) for step in (0, N_STEPS - 1))
            if first != last:
                return Verdict(judge.WRONG_VALUE, f"`{name}` is another one in the last execution")
        return verdict

    def _judge_step(self, folder: Path, prefix: str, wanted: dict[str, NDArray]) -> Verdict:
        entries = _entries(folder)
        for value in self.case.outputs:
            if not value.file:
                continue
            entry = entries.get(prefix + value.name)
            if entry is None:
                return Verdict(judge.UNTAPPED, f"no output `{value.name}`")
            if entry["dtype"] != value.dtype:
                return Verdict(judge.WRONG_DTYPE, f"`{value.name}` is {entry['dtype']}, expected {value.dtype}")
            found = values.load_output(folder, entry)
            verdict = judge.compare(value.name, found, wanted[value.name], self.case.rtol, self.case.atol)
            if verdict.outcome != judge.PASS:
                return verdict
        return Verdict(judge.PASS)


def run_all(binary: Path, engine: Engine, cases: list[Case], scratch: Path, n_jobs: int) -> list[Result]:
    """Results in the order of the cases."""
    runners = [Runner(binary, engine, case, scratch / engine.name / case.name) for case in cases]
    with ProcessPoolExecutor(n_jobs) as pool:
        return list(pool.map(Runner.run, runners, chunksize=4))


def _entries(folder: Path) -> dict[str, dict]:
    entries = json.loads((folder / "outputs.json").read_text())["outputs"]
    return {entry["name"]: entry for entry in entries}


def _load(folder: Path, name: str) -> NDArray:
    return values.load_output(folder, _entries(folder)[name])


def _raw(folder: Path, name: str) -> bytes:
    return (folder / _entries(folder)[name]["file"]).read_bytes()


def refusal(case: Case, code: int, errors: str) -> Verdict:
    """How a run without results ended; every end but these two is a crash.

    An engine's panic that is reported as the failure of an operator is one of the two.
    """
    lines = [line for line in errors.splitlines() if line.strip()]
    text = re.sub(r"\x1b\[[0-9;]*m", "", next((line for line in lines if "error" in line), errors.strip()))
    text = text.replace(str(case.folder), "").strip()
    if code in (2, 3) and text:
        return Verdict(judge.REFUSED, text)
    if code == 4 and text:
        return Verdict(judge.FAILED, text)
    return Verdict(judge.CRASH, f"exit code {code}: {text}")
