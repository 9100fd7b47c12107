"""Events and scalars of `opscope view` are those that Python reads in the files of the same dumps.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_view_events.py
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from binary import Binary
from event_dumps import BITS, block_record, overwritten_dump, read_record, vector_record, write_operator, write_record
from test_view import Page, array, close, served

MODELS = Path(__file__).parents[1] / "models"
CAUSES = {
    "/negate/Neg": 0x8,
    "/count/Add": 0x10,
    "/grow/Exp": 0x20,
    "/to_byte/Cast": 0x80,
    "/to_half/Cast": 0x100,
    "/project/MatMul": 0x400,
}


def dump_overflow(tool: Binary, config: dict[str, Any], folder: Path, *options: str) -> None:
    (folder / "dump").mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    arguments = ("--inputs", MODELS / "overflow_six.sample.npz", "--config", folder / "config.json")
    tool.run("dump", MODELS / "overflow_six.onnx", *arguments, *options)


def check_records(page: Page, records: list[Path]) -> list[dict[str, Any]]:
    """Every record is an event, in the order of time, with the fields that the file has."""
    expected = sorted((read_record(path) for path in records), key=lambda record: record["time"])
    events = [event for event in page.ask("events")["events"] if event["kind"] == "overflow"]
    assert [event["time_us"] for event in events] == [record["time"] for record in expected]
    for event, record in zip(events, expected, strict=True):
        (unit,) = event["overflow"]["units"]
        assert (unit["unit"], unit["status"]) == ("AI Core", hex(record["status"]))
        assert (event["task"], event["stream"]) == (record["task"], record["stream"])
        assert [(bit["bit"], bit["is_set"]) for bit in unit["bits"]] == [
            (bit, bool(record["status"] & bit)) for bit in BITS
        ]
        assert unit["other_bits"] == []
    return events


def test_records_of_acl_are_events(tool: Binary, folder: Path) -> None:
    dump_overflow(tool, {"dump": {"dump_path": str(folder / "dump"), "dump_debug": "on"}}, folder)
    with served(tool, folder / "dump") as page:
        events = check_records(page, list((folder / "dump").rglob("Opdebug.*")))
        assert {event["op_name"]: int(event["overflow"]["units"][0]["status"], 16) for event in events} == CAUSES
        for event in events:
            operator = page.ask(f"operator/{event['op']}")
            assert (operator["op_type"], operator["op_name"]) == (event["op_type"], event["op_name"])
            assert event in operator["events"]
            assert operator["status"] == "fail"
            assert event["step"] == operator["step"] == 0
        info = page.ask("info")
        assert "events" in info["views"]
        assert info["n_events"] == page.ask("events")["total"] >= len(CAUSES)
        assert info["first_overflow"]["op"] == events[0]["op"]
        # The verdict's operator also has its own record.
        verdict = info["verdict"]
        (own,) = [event for event in events if event["op"] == verdict["op"]]
        assert verdict["overflow"] == own["overflow"]
        # The exponential is the first that shows an infinity, others overflowed before.
        assert verdict["op_name"] == "/grow/Exp"
        assert page.raw("event/99")[0] == 404
        assert page.raw("event/x")[0] == 400
        assert [event["id"] for event in page.ask("events", offset=2, limit=3)["events"]] == [2, 3, 4]


@pytest.mark.parametrize("file_format", ["npy", "bin"])
def test_records_of_mindspore_are_events(tool: Binary, folder: Path, file_format: str) -> None:
    common = {
        "op_debug_mode": 3,
        "dump_mode": 0,
        "path": str(folder / "dump"),
        "net_name": "Net",
        "iteration": "all",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        "file_format": file_format,
    }
    dump_overflow(tool, {"common_dump_settings": common}, folder, "--target", "ascend-o2")
    with served(tool, folder / "dump") as page:
        events = check_records(page, list((folder / "dump").rglob("Opdebug.*")))
        assert len(events) == len(CAUSES)
        assert all(event["op"] is not None for event in events)


def test_a_record_of_finite_values_gives_the_verdict(tool: Binary, tmp_path: Path) -> None:
    """Integers and floats that saturate show no infinity, so that the record is all there is."""
    step = tmp_path / "dump/20240102030405/0/net/1/2"
    ones = np.ones(4, np.float32)
    write_operator(step, "Add.first.5.9.1700000000000001", [ones])
    write_operator(step, "MatMul.second.8.9.1700000000000002", [ones])
    record = block_record(task=5, stream=9, status=0x112, atomic=3)
    write_record(step, record, task=5, stream=9, time=1700000000000001)
    vector = vector_record(task=8, stream=9, status=(0x20, 0, 6, 0))
    write_record(step, vector, task=8, stream=9, time=1700000000000002)
    # The operator of this one is unknown.
    lone = block_record(task=77, stream=1, status=0x400)
    write_record(step, lone, task=77, stream=1, time=1700000000000003)
    quiet = block_record(task=8, stream=9, status=0)
    write_record(step, quiet, task=8, stream=9, time=1700000000000004)
    with served(tool, tmp_path / "dump") as page:
        first, second, third = page.ask("events")["events"]
        atomic, core = first["overflow"]["units"]
        assert (atomic["unit"], atomic["status"], atomic["bits"]) == ("L2 Atomic Add", "0x3", None)
        assert (core["unit"], core["status"], core["other_bits"]) == ("AI Core", "0x112", ["0x2"])
        assert [bit["bit"] for bit in core["bits"] if bit["is_set"]] == [0x10, 0x100]
        (unit,) = second["overflow"]["units"]
        assert (unit["unit"], unit["words"]) == ("AIV", ["0x20", "0x0", "0x6", "0x0"])
        assert [bit["bit"] for bit in unit["bits"] if bit["is_set"]] == [0x20]
        assert (third["op"], third["op_name"], third["task"], third["stream"]) == (None, "", 77, 1)
        info = page.ask("info")
        verdict = info["verdict"]
        assert (verdict["kind"], verdict["status"], verdict["op_name"]) == ("overflow_recorded", "fail", "first")
        assert (verdict["step"], verdict["n_after"]) == (2, 1)
        assert verdict["overflow"] == first["overflow"]
        rows = page.ask("operators")["rows"]
        # Later overflows may follow from the first.
        assert [(row["status"], row["at_fault"], row["note"]) for row in rows] == [
            ("fail", True, "overflowed"),
            ("fail", False, "overflowed"),
        ]
        assert info["counts"]["fail"] == 2


def test_overwritten_bytes_are_those_of_the_files(tool: Binary, tmp_path: Path) -> None:
    before, after = overwritten_dump(tmp_path / "dump")
    with served(tool, tmp_path / "dump") as page:
        answer = page.ask("events")
        (event,) = answer["events"]
        assert answer["n_unlisted"] == 4
        assert (event["kind"], event["op_type"], event["op_name"], event["step"]) == ("overwrite", "Add", "add2", 3)
        assert (event["task"], event["time_us"]) == (2, 1700000000000005)
        assert event["overwrite"]["ranges"] == [[28, 36], [200, 204]]
        assert event["overwrite"]["n_bytes"] == 12
        # What the dump has of the operator is the value after it.
        operator = page.ask(f"operator/{event['op']}")
        assert operator["op_name"] == "add2_To_w1"
        found = page.ask("event/0")["bytes"]
        old, new = before.tobytes(), after.tobytes()
        for piece in found["ranges"]:
            place = slice(piece["start"], piece["end"])
            assert (bytes.fromhex(piece["before"]), bytes.fromhex(piece["after"])) == (old[place], new[place])
        changed = np.flatnonzero(before.view(np.uint32) != after.view(np.uint32))
        assert [element["index"] for element in found["elements"]] == changed.tolist()
        for element in found["elements"]:
            assert close(element["before"], before.ravel()[element["index"]])
            assert close(element["after"], after.ravel()[element["index"]])
        for side, expected in (("before", before), ("after", after)):
            np.testing.assert_array_equal(array(page, found[side], "out0", "target"), expected)
        verdict = page.ask("info")["verdict"]
        assert (verdict["kind"], verdict["parameter"], verdict["op_name"]) == ("overwritten", "w1", "add2")
        assert (verdict["bytes"], verdict["n_after"]) == ([[28, 35], [200, 203]], 4)


def test_no_bytes_are_shown_that_do_not_fit_the_list(tool: Binary, tmp_path: Path) -> None:
    overwritten_dump(tmp_path / "dump")
    path = tmp_path / "dump/20240102030405/overwrites.json"
    listed = json.loads(path.read_text())
    for change in ({"byte_ranges": [[0, 4]]}, {"byte_ranges": [[4000, 4004]]}, {"seen_after": "mul4"}, {"step": 4}):
        path.write_text(json.dumps({"overwrites": [listed["overwrites"][0] | change]}))
        with served(tool, tmp_path / "dump") as page:
            assert page.ask("event/0")["bytes"] is None, change


def test_damaged_lists_and_records_are_told(tool: Binary, tmp_path: Path) -> None:
    overwritten_dump(tmp_path / "dump")
    step = tmp_path / "dump/20240102030405/0/net/1/3"
    sound = block_record(task=1, stream=0, status=0x20)
    write_record(step, sound, task=1, stream=0, time=1700000000000001)
    short = write_record(step, sound[:2000], task=2, stream=0, time=1700000000000002)
    (tmp_path / "dump/20240102030405/overwrites.json").write_text('{"overwrites": [{"step": "x"}]}')
    with served(tool, tmp_path / "dump") as page:
        answer = page.ask("events")
        assert [event["kind"] for event in answer["events"]] == ["overflow"]
        assert len(answer["problems"]) == 2
        assert any("overwrites.json" in problem for problem in answer["problems"])
        assert any(short.name in problem for problem in answer["problems"])
        told = [problem["message"] for problem in page.ask("coverage")["problems"]]
        assert page.ask("info")["n_problems"] == len(told)
        for name in ("overwrites.json", short.name):
            assert sum(name in message for message in told) == 1, told


def test_the_first_infinity_of_a_capture_is_an_event(tool: Binary, tmp_path: Path) -> None:
    arguments = ("--inputs", MODELS / "overflow_six.sample.npz", "--out", tmp_path / "dump")
    tool.run("dump", MODELS / "overflow_six.onnx", *arguments)
    with served(tool, tmp_path / "dump") as page:
        (event,) = page.ask("events")["events"]
        found = event["non_finite"]
        assert (event["kind"], event["op_name"], found["origin"]) == ("non_finite", "/grow/Exp", "computed")
        values = array(page, event["op"], found["slot"], "target").ravel()
        assert found["element"] == np.flatnonzero(~np.isfinite(values))[0]
        assert (found["n_nan"], found["n_pos_inf"]) == (np.isnan(values).sum(), np.isposinf(values).sum())


def test_sound_dumps_have_no_events(tool: Binary, tmp_path: Path) -> None:
    ones = np.ones(4, np.float32)
    write_operator(tmp_path / "dump/20240102030405/0/net/1/0", "Add.a.5.0.1700000000000001", [ones])
    with served(tool, tmp_path / "dump") as page:
        assert page.ask("events") == {"total": 0, "n_unlisted": 0, "events": [], "problems": []}
        info = page.ask("info")
        assert (info["n_events"], info["first_overflow"]) == (0, None)
        assert "events" not in info["views"]


LOSSES = np.float32([2.5, 1.25, 0.1, np.inf, np.nan, -7])


def training(root: Path) -> Path:
    """Six steps with a loss, a norm, and an output that has one element in some steps alone."""
    for step, loss in enumerate(LOSSES):
        folder = root / f"20240102030405/0/net/1/{step}"
        time = 1700000000000000 + 10 * step
        write_operator(folder, f"MatMul.fc.0.0.{time}", [np.ones((2, 3), np.float32)])
        write_operator(folder, f"ReduceMean.train_loss.1.0.{time + 1}", [loss.reshape(())])
        write_operator(folder, f"Norm.grad.2.0.{time + 2}", [np.float32([step])])
        write_operator(folder, f"Where.some.3.0.{time + 3}", [np.ones(1 + step // 4, np.float32)])
    return root


def test_scalars_are_those_of_the_dump(tool: Binary, tmp_path: Path) -> None:
    with served(tool, training(tmp_path / "dump")) as page:
        answer = page.ask("scalars")
        assert [choice["op_name"] for choice in answer["choices"]] == ["train_loss", "grad"]
        assert answer["chosen"] == 0
        assert answer["columns"] == page.ask("steps")["columns"] == [[step, step] for step in range(6)]
        series = answer["target"]
        finite = [None if not np.isfinite(loss) else float(loss) for loss in LOSSES]
        assert series["low"] == series["high"] == finite
        assert series["marks"] == "000in0"
        for step, id in enumerate(series["ids"]):
            operator = page.ask(f"operator/{id}")
            assert (operator["op_name"], operator["step"]) == ("train_loss", step)
        other = page.ask("scalars", scalar=1)
        assert other["chosen"] == 1
        assert other["target"]["high"] == [0, 1, 2, 3, 4, 5]
        # Steps that share a column keep the least and the most.
        narrow = page.ask("scalars", columns=2)
        assert (narrow["target"]["low"], narrow["target"]["high"]) == ([float(LOSSES[2]), -7], [2.5, -7])
        assert narrow["target"]["marks"] == "0n"
        assert page.raw("scalars", scalar=2)[0] == 404
        # Columns are those of the filtered map.
        assert page.ask("scalars", q="step:3")["columns"] == [[3, 3]]


def test_without_a_loss_the_last_scalar_is_shown(tool: Binary, tmp_path: Path) -> None:
    training(tmp_path / "dump")
    for path in (tmp_path / "dump").rglob("ReduceMean.*"):
        path.unlink()
    with served(tool, tmp_path / "dump") as page:
        answer = page.ask("scalars")
        assert [choice["op_name"] for choice in answer["choices"]] == ["grad"]
        assert answer["target"]["marks"] == "000000"
    for path in (tmp_path / "dump").rglob("Norm.*"):
        path.unlink()
    with served(tool, tmp_path / "dump") as page:
        answer = page.ask("scalars")
        assert (answer["choices"], answer["chosen"], answer["target"]) == ([], None, None)


def test_both_sides_have_their_scalars(tool: Binary, tmp_path: Path) -> None:
    target, golden = training(tmp_path / "target"), tmp_path / "golden"
    shutil.copytree(target, golden)
    changed = next(golden.rglob("1/4/ReduceMean.*"))
    write_operator(changed.parent, changed.name, [np.float32(3).reshape(())])
    with served(tool, target, golden) as page:
        answer = page.ask("scalars")
        assert answer["target"]["marks"] == "000in0"
        assert answer["golden"]["marks"] == "000i00"
        assert answer["golden"]["high"][4] == 3
