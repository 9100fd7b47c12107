"""Sequences of calls and what each returns, the same that the crate `opscope-acl` is tested with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from programs import ROOT, run_program

GOLDEN = json.loads((ROOT / "crates/acl/tests/golden/api_sequences.json").read_text(encoding="utf-8"))
CODES = {
    "ACL_SUCCESS": 0,
    "ACL_ERROR_INVALID_PARAM": 100000,
    "ACL_ERROR_UNINITIALIZE": 100001,
    "ACL_ERROR_REPEAT_INITIALIZE": 100002,
    "ACL_ERROR_INVALID_FILE": 100003,
    "ACL_ERROR_PARSE_FILE": 100006,
    "ACL_ERROR_INVALID_DUMP_CONFIG": 100009,
    "ACL_ERROR_REPEAT_FINALIZE": 100037,
    "ACL_ERROR_DUMP_NOT_RUN": 100045,
    "ACL_ERROR_FAILURE": 500001,
}
DUMP_TYPES = {"DATA_DUMP": 4, "OVERFLOW_DUMP": 5}


def expected(call: dict[str, Any]) -> int | None:
    """The code; a remark may follow its name."""
    name = call["returns"]
    return None if name is None else CODES[name.split()[0]]


@pytest.mark.parametrize("sequence", GOLDEN["sequences"], ids=lambda sequence: sequence["id"])
def test_sequence(sequence: dict[str, Any], tmp_path: Path) -> None:
    dumps, files = tmp_path / "dumps", tmp_path / "configs"
    dumps.mkdir()
    files.mkdir()

    def argument(value: Any) -> Any:
        if value in GOLDEN["configs"]:
            path = files / f"{value}.json"
            path.write_text(GOLDEN["configs"][value].replace("@DIR@", str(dumps)), encoding="utf-8")
            return str(path)
        return {"@DIR@": str(dumps), "@NOFILE@": str(files / "nothing.json"), **DUMP_TYPES}.get(value, value)

    calls = [[call["call"], [argument(value) for value in call["args"]]] for call in sequence["calls"]]
    returned = run_program("calls.py", json.dumps(calls))
    assert returned == [expected(call) for call in sequence["calls"]]


def test_there_are_sequences() -> None:
    assert len(GOLDEN["sequences"]) == 40
