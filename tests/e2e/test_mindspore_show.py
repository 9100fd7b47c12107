"""Tests of `opscope show` and `opscope convert` on each dump by MindSpore, against numpy and the recorder's list."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from binary import Binary
from numpy.typing import NDArray

GOLDEN = Path(__file__).parents[2] / "crates" / "store" / "tests" / "golden" / "mindspore"
RUNS = sorted(path.parent.name for path in GOLDEN.glob("*/manifest.jsonl"))
BFLOAT16 = "<E2"
N_FIRST = 8


def manifest(name: str) -> list[dict[str, Any]]:
    lines = (GOLDEN / name / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def payload(path: Path) -> bytes:
    data = path.read_bytes()
    return data[10 + struct.unpack("<H", data[8:10])[0] :]


def values(path: Path, entry: dict[str, Any]) -> NDArray:
    """The array of an entry, whose bytes have to be those that were recorded."""
    data = payload(path)
    assert hashlib.sha256(data).hexdigest() == entry["payload_sha256"]
    if entry["descr"] == BFLOAT16:
        array = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        array = np.frombuffer(data, np.dtype(entry["descr"]))
    return array.reshape(entry["shape"])


def test_every_run_is_here() -> None:
    assert len(RUNS) == 21


@pytest.mark.parametrize("name", RUNS)
def test_show_tells_every_tensor(tool: Binary, name: str) -> None:
    root = GOLDEN / name / "dump"
    shown = json.loads(tool.run("show", root, "--json"))
    entries = {root / entry["file"]: entry for entry in manifest(name)}
    assert shown["errors"] == []
    assert shown["files"] == len(entries)
    assert shown["parameters"] == sum(entry["op_type"] == "Parameter" for entry in entries.values())
    told = [(record, tensor) for record in shown["records"] for tensor in record["tensors"]]
    assert len(told) == len(entries)
    for record, tensor in told:
        path = Path(tensor["path"])
        entry = entries.pop(path)
        assert record["full_name"] == entry["full_name"]
        assert record["op_type"] == entry["op_type"]
        assert (record["graph_id"], record["iteration"]) == (entry["graph_id"], entry["iteration"])
        assert tensor["slot"] == f"{entry['io']}.{entry['slot']}"
        assert (tensor["original_dtype"], tensor["shape"]) == (entry["dtype"], entry["shape"])
        assert tensor["dtype"] == entry["dtype"].lower()
        assert tensor["timestamp"] == entry["timestamp"]
        assert (tensor["bytes"], tensor["problem"]) == (entry["payload_bytes"], None)
        compare_values(tensor, values(path, entry))
    assert entries == {}


def compare_values(tensor: dict[str, Any], array: NDArray) -> None:
    """The first elements, and the statistics of all of them."""
    first = array.reshape(-1)[:N_FIRST]
    np.testing.assert_allclose(np.array(tensor["first"], np.float64), first.astype(np.float64), rtol=1e-6)
    numbers = array.astype(np.float64)
    stats = tensor["stats"]
    assert stats["elements"] == array.size
    assert [stats[name] for name in ("nan", "pos_inf", "neg_inf")] == [0, 0, 0]
    assert (stats["min"], stats["max"]) == (numbers.min(), numbers.max())
    np.testing.assert_allclose(stats["mean"], numbers.mean(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(stats["l2"], np.sqrt((numbers**2).sum()), rtol=1e-9)


@pytest.mark.parametrize("name", RUNS)
def test_convert_keeps_every_value(tool: Binary, tmp_path: Path, name: str) -> None:
    root = GOLDEN / name / "dump"
    report = json.loads(tool.run("convert", "-t", "npy", "-d", root, "--out", tmp_path, "--json"))
    entries = manifest(name)
    assert (report["converted"], report["failures"]) == (len(entries), [])
    for entry in entries:
        converted = np.load(tmp_path / entry["file"])
        np.testing.assert_array_equal(converted, values(root / entry["file"], entry), strict=True)
