"""`opscope.compare` says where two dumps part."""

from __future__ import annotations

import json
from pathlib import Path

import dump_writer as dw
import numpy as np
import opscope
import pytest
import report
from dump_writer import Tensor

HOSTILE = "<img src=x>"


def tensor(values: list[float]) -> Tensor:
    array = np.array(values, np.float32)
    return Tensor(dw.FLOAT32, array.shape, array.tobytes())


def dump(folder: Path, last: float = 6.0) -> Path:
    dw.write_dump_file(folder, "Add.a.0.0.1", [tensor([1, 2])], [tensor([2, 4])])
    dw.write_dump_file(folder, f"{HOSTILE}.b.1.0.2", [tensor([2, 4])], [tensor([3, last])])
    return folder


def test_equal_dumps(tmp_path: Path) -> None:
    found = opscope.compare(dump(tmp_path / "a"), dump(tmp_path / "b"))
    assert (found.level, found.first_divergence, found.skips) == ("pass", None, [])
    assert found.verdict.startswith("PASS")
    assert [operator["level"] for operator in found.operators] == ["pass", "pass"]
    assert found.summary["target_coverage"] == [4, 4]


def test_the_first_divergence_and_every_form(tmp_path: Path) -> None:
    found = opscope.compare(dump(tmp_path / "a", 60.0), dump(tmp_path / "b"), outputs_only=True, kl=True, jobs=1)
    first = found.first_divergence
    assert first is not None
    assert (found.level, first["operator"]["target"][0]["op_name"], first["slot"]) == ("fail", "b", "output.0")
    for form in ("json", "jsonl", "csv", "xlsx", "html"):
        path = tmp_path / f"result.{form}"
        found.save(path)
        before = path.read_bytes()
        with pytest.raises(opscope.FileError):
            found.save(path)
        assert path.read_bytes() == before
        found.save(path, force=True)
    saved = json.loads((tmp_path / "result.json").read_text())
    assert saved["operators"] == found.operators
    inside = report.read(tmp_path / "result.html")
    assert [row["op_name"] for row in inside["rows"]] == [op["target"][0]["op_name"] for op in found.operators]
    assert inside["info"]["verdict"]["op_name"] == "b" and inside["tensors"]
    page = found._repr_html_()
    assert HOSTILE not in page and "&lt;img src=x&gt;" in page
    with pytest.raises(opscope.UsageError):
        found.save(tmp_path / "result.txt")


def test_a_saved_result_is_judged_anew(tmp_path: Path) -> None:
    found = opscope.compare(dump(tmp_path / "a", 6.1), dump(tmp_path / "b"))
    assert found.level == "fail"
    found.save(tmp_path / "result.jsonl")
    limits = {name: {"warn": 1.0, "fail": 1.0} for name in ("rel_l2", "scaled_max_abs")}
    limits["cosine"] = {"warn": 0.0, "fail": 0.0}
    (tmp_path / "wide.json").write_text(json.dumps({"dtypes": {"float32": limits}}))
    again = opscope.Comparison.load(tmp_path / "result.jsonl", thresholds=tmp_path / "wide.json")
    assert again.level == "pass"
    again.save(tmp_path / "again.html")
    inside = report.read(tmp_path / "again.html")
    # The dumps are not available, so their tensors are unknown.
    assert inside["is_saved"] and inside["tensors"] == [] and inside["info"]["verdict"]["status"] == "pass"
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(opscope.DamagedError):
        opscope.Comparison.load(tmp_path / "bad.json")
    with pytest.raises(opscope.UsageError):
        opscope.Comparison.load(tmp_path / "result.jsonl", thresholds=tmp_path / "result.jsonl")


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    good = dump(tmp_path / "good")
    with pytest.raises(opscope.NotFoundError):
        opscope.compare(good, tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(opscope.OpscopeError):
        opscope.compare(tmp_path / "empty", good)
    with pytest.raises(opscope.UsageError):
        opscope.compare(good, good, names=["nobody"])
    other = dump(tmp_path / "other")
    (other / "Add.a.0.0.1").unlink()
    found = opscope.compare(other, good, allow_skip=["^a$"])
    assert [(skip["reason"], skip["is_allowed"]) for skip in found.skips] == [("missing", True)]
