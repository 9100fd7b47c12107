"""What an engine lacks, and dumps by one engine compared with dumps by the other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from binary import TIMEOUT_SECONDS, Binary, input_options
from cases import CASES, Case
from comparing import PASSED, compare
from conftest import binary
from engines import ONNX_RUNTIME, TRACT

UNREADABLE = 3
BEYOND_TRACT = {
    "loop": "`/Loop` of type `Loop`",
    "nested_loops": "`/Loop` of type `Loop`",
    "sequences": "`/SplitToSequence` of type `SplitToSequence`",
    "qoperator": "`/QLinearAdd` of type `QLinearAdd`",
    "bfloat16": "`/Cast` of type `Cast`: it has no type for bfloat16 (3 more like it)",
    "text": "`/LabelEncoder` of type `LabelEncoder`",
    "seq2seq": "`/decoder/Loop` of type `Loop`",
}


def test_every_case_has_an_engine() -> None:
    assert {case.stem for case in CASES if TRACT not in case.engines} == set(BEYOND_TRACT)
    assert all(ONNX_RUNTIME in case.engines for case in CASES)


@pytest.mark.parametrize("engine", [TRACT], indirect=True, ids=str)
@pytest.mark.parametrize("case", [case for case in CASES if TRACT not in case.engines], ids=str)
def test_tract_says_who_can(case: Case, opscope: Binary, generated: Path, tmp_path: Path) -> None:
    inputs = input_options(case.load_inputs(generated), tmp_path / "inputs")
    command = opscope.command("dump", case.model_path(generated), "--out", tmp_path / "dump", *inputs)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert (done.returncode, done.stdout) == (UNREADABLE, "")
    assert BEYOND_TRACT[case.stem] in done.stderr
    assert "ONNX Runtime can" in done.stderr
    assert not list(tmp_path.glob("dump/*"))


@pytest.mark.parametrize("case", [case for case in CASES if TRACT in case.engines], ids=str)
def test_engines_agree(case: Case, generated: Path, tmp_path: Path) -> None:
    inputs = input_options(case.load_inputs(generated), tmp_path / "inputs")
    dumps = {}
    for engine in (TRACT, ONNX_RUNTIME):
        dumps[engine] = tmp_path / engine.name
        binary(engine).dump(case.model_path(generated), "--out", dumps[engine], *inputs)
    for target, golden in ((TRACT, ONNX_RUNTIME), (ONNX_RUNTIME, TRACT)):
        # tract shows nothing of what a Scan runs.
        found = compare(binary(target), dumps[target], dumps[golden], "--allow-skip", "^/body/")
        assert (found.first, found.accused, found.not_passing, found.guessed) == (None, [], [], {})
        assert all(name.startswith("/body/") for _, name, _, _ in found.skips), found.skips
        assert (found.code, found.summary["level"]) == (PASSED, "pass")
