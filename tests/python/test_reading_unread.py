"""Every file of a tree is behind a record, among the problems, or passed over with a reason."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable
from pathlib import Path

import dump_writer as dw
import numpy as np
import opscope
import pytest
from dump_writer import Tensor

TENSOR = Tensor(dw.FLOAT32, (2,), np.array([1, 2], np.float32).tobytes())
DUMP = dw.dump_file("x", [], [TENSOR])
TABLE = b"Input/Output,Index,Data Size,Data Type,Format,Shape,Count,l2norm\nOutput,0,8,DT_FLOAT,ND,2,2,1.5\n"
TASK = '"model_id":0,"para_base":"0x0","pc_start":"0x0","status":0,"stream_id":0,"task_id":5,"task_type":0'
RECORD = (
    f'{{"AI Core":{{{TASK},"block_idx":0,"kernel_code":"0x0"}},"DHA Atomic Add":{{{TASK}}},"L2 Atomic Add":{{{TASK}}}}}'
).encode()
RECORD_NAME = "Opdebug.Node_OpDebug.5.1.18.output.0.json"


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([1, 2], np.float32))
    return file.getvalue()


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


Make = Callable[[Path], object]


@pytest.mark.parametrize("in_mindspore", [False, True])
@pytest.mark.parametrize(
    ("stored", "real", "content", "expected"),
    [
        ("Add.a.1.0.5", None, DUMP, "record"),
        ("1001", "Add.a.1.0.5", DUMP, "record"),
        ("1002", None, DUMP, "record"),
        ("Add.a.1.0.5.csv", None, TABLE, "record"),
        ("1003", "Add.a.1.0.5.csv", TABLE, "record"),
        ("1004.npy", "Add.a.1.0.5.output.0.ND.float32.npy", npy(), "record"),
        ("1005.npy", None, npy(), "record"),
        (RECORD_NAME, None, RECORD, "overflow_record"),
        ("1006", RECORD_NAME, RECORD, "overflow_record"),
        ("1007", None, b"junk", "problem"),
        ("1008", "Add.a.1.0.5.csv", b"", "problem"),
        ("Add.a.1.0.5.csv", None, b"junk", "problem"),
        (RECORD_NAME, None, b"{}", "problem"),
        ("notes.md", None, b"notes", "problem"),
        ("empty", None, b"", "problem"),
        ("Add.a.1.0.5", None, os.mkfifo, "problem"),
        ("Add.a.1.0.5", None, make_socket, "problem"),
        ("Add.a.1.0.5", None, lambda path: path.symlink_to("/dev/zero"), "problem"),
        ("links", None, lambda path: path.symlink_to("/"), "problem"),
        (".hidden", None, b"", "hidden"),
        (".opscope-tmp-1", None, b"", "unfinished"),
        ("overwrites.json", None, b"{}", "overwrites"),
        ("Add.a.1.5.txt", None, b"", "failure_text"),
    ],
)
def test_each_kind_of_file(
    tmp_path: Path, in_mindspore: bool, stored: str, real: str | None, content: bytes | Make, expected: str
) -> None:
    path = tmp_path / stored
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)
    known = set()
    if real is not None:
        (tmp_path / "mapping.csv").write_text(f"{stored},{real}\n")
        known.add("mapping.csv")
    if in_mindspore:
        (tmp_path / "acl_dump_0.json").write_text("{}")
        known.add("acl_dump_0.json")
    dump = opscope.open(tmp_path)
    problems = [problem.path for problem in dump.problems]
    reasons = {Path(one.path).name: one.reason for one in dump.passed_over}
    assert known <= set(reasons)
    kinds = {record.kind for record in dump if record.path == str(path)}
    if expected in ("record", "overflow_record"):
        assert kinds == {"operator" if expected == "record" else expected}
        assert problems == [] and stored not in reasons
    elif expected == "problem":
        assert problems == [str(path)] and stored not in reasons
    else:
        assert reasons[stored] == expected and problems == [] and not kinds


def test_convert_counts_what_it_leaves(tmp_path: Path) -> None:
    source = tmp_path / "dump"
    source.mkdir()
    (source / "Add.a.1.0.5").write_bytes(DUMP)
    (source / "Add.a.1.0.5.csv").write_bytes(TABLE)
    os.mkfifo(source / "Add.b.1.0.5")
    done = opscope.convert(source, tmp_path / "out")
    assert [(Path(one.path).name, one.reason) for one in done.passed_over] == [("Add.a.1.0.5.csv", "statistics")]
    assert [Path(str(failure.path)).name for failure in done.failures] == ["Add.b.1.0.5"]
    assert done.arrays == 1
    with pytest.raises(opscope.FileError, match="expected a regular file, found a named pipe"):
        opscope.convert(source / "Add.b.1.0.5", tmp_path / "out")
