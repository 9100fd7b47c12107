"""Every operator that tract runs, with values at the edges of their types, against ONNX Runtime.

A run takes a share of `OPSCOPE_OPERATOR_SAMPLES` for each operator; `OPSCOPE_OPERATOR_SEED` makes other ones.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import sampling
from cases import ROOT
from conftest import binary
from engines import TRACT
from operators import elementwise, movement, products, reductions, sequences  # noqa: F401, they register recipes
from operators.draw import Draw, opsets_of
from operators.dumped import SPOKEN_ENDS, dumped
from operators.expected import Expected, expected
from operators.reasons import REASONS, Found, difference
from operators.recipe import RECIPES
from operators.sample import Sample

N_SAMPLES = int(os.environ.get("OPSCOPE_OPERATOR_SAMPLES", "8"))
SHARE = 0.5
SEED = int(os.environ.get("OPSCOPE_OPERATOR_SEED", "0"))
# So many operators share a process where their opset is the same.
N_TOGETHER = 8
GROUPS = [sorted(RECIPES)[i : i + N_TOGETHER] for i in range(0, len(RECIPES), N_TOGETHER)]


def samples(op_type: str) -> list[tuple[Sample, Expected]]:
    """Those that some engine can compute."""
    made = []
    for number in sampling.sample(range(N_SAMPLES), SHARE, lambda number: f"{op_type} {number}"):
        rng = np.random.default_rng([SEED, number, zlib.crc32(op_type.encode())])
        sample = RECIPES[op_type](Draw(rng, op_type))
        wanted = expected(sample)
        if wanted:
            made.append((sample, wanted))
    return made


@pytest.mark.parametrize("op_types", GROUPS, ids=lambda op_types: f"{op_types[0]}-{op_types[-1]}")
def test_values_at_the_edges(op_types: list[str], tmp_path: Path) -> None:
    opscope = binary(TRACT)
    options = [str(option) for option in TRACT.options]
    by_opset: dict[int, list[tuple[Sample, Expected]]] = defaultdict(list)
    for op_type in op_types:
        for sample, wanted in samples(op_type):
            by_opset[sample.opset].append((sample, wanted))
    problems, values = [], set()
    for opset, pairs in by_opset.items():
        found = dumped(opscope.path, options, [sample for sample, _ in pairs], tmp_path / str(opset))
        for (sample, wanted), one in zip(pairs, found, strict=True):
            if not one.steps:
                is_told = one.code in SPOKEN_ENDS and one.message
                problems += [] if is_told else [f"{sample}: exit code {one.code}: {one.message}"]
                continue
            values.add(sample.op_type)
            problems += judge(sample, wanted, one.steps)
    assert not problems, "\n".join([f"{len(problems)} samples are wrong", *problems[:20]])
    # Something ran of nearly all of them.
    assert len(values) >= len(op_types) - 2, f"nothing ran of {sorted(set(op_types) - values)}"


def judge(sample: Sample, wanted: Expected, steps: list[list[np.ndarray]]) -> list[str]:
    for step, arrays in enumerate(wanted.steps):
        for index, array in enumerate(arrays):
            problem = difference(Found(sample, step, index, steps[step][index], array))
            if problem:
                return [f"{sample} at step {step}: {problem} ({wanted.source})"]
    for index, (first, last) in enumerate(zip(steps[0], steps[-1], strict=True)):
        if first.tobytes() != last.tobytes():
            return [f"{sample}: output {index} is another one in the last execution"]
    return []


def test_reasons_are_documented() -> None:
    text = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    rows = [f"| {', '.join(f'`{name}`' for name in sorted(r.op_types))} | {r.text} |" for r in REASONS]
    assert [row for row in rows if row not in text] == []


def test_every_operator_has_samples() -> None:
    assert all(opsets_of(op_type) for op_type in RECIPES)
    unknown = {name for reason in REASONS for name in reason.op_types} - set(RECIPES)
    assert not unknown
