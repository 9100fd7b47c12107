"""A tenth of the cases has the outcomes that `expected.json` has."""

from __future__ import annotations

import os
from pathlib import Path

import main
import pytest
from case import Case
from forms import Runner

SAMPLE = main.sample()


@pytest.mark.parametrize("case", SAMPLE, ids=[case.name.replace(" ", "-") for case in SAMPLE])
def test_the_outcome_is_the_stored_one(case: Case, tmp_path: Path) -> None:
    runner = Runner(Path(os.environ["OPSCOPE"]).resolve(), os.environ.get("OPSCOPE_ENGINE_LIB"), tmp_path)
    results = main.run_all([case], runner)
    assert main.changed(results, main.expected()) == [], results[0][1].text
