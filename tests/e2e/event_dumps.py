"""Dumps with overflow records and overwritten values, made by hand, and overflow records read by hand.

Written from the description of the formats, without the tool's own code.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from dump_writer import FLOAT32, Tensor, write_dump_file
from numpy.typing import NDArray

UINT8 = 4
N_RECORD_BYTES = 2048
TASK = ("model_id", "stream_id", "task_id", "task_type", "pc_start", "para_base")
# Bits of the AI Core's status that the public document names.
BITS = (0x8, 0x10, 0x20, 0x80, 0x100, 0x400)


def block_record(*, task: int, stream: int, status: int, atomic: int = 0) -> bytes:
    """A record of the first layout: an AI Core, and by choice an atomic addition of the L2."""
    record = bytearray(N_RECORD_BYTES)
    struct.pack_into("<6Q", record, 256, 1, stream, task, 0, 0x1000, 0x2000)
    struct.pack_into("<3Q", record, 1024, 0x3000, 1, status)
    if atomic:
        struct.pack_into("<6Q", record, 128, 1, stream, task, 0, 0, 0)
        struct.pack_into("<Q", record, 768, atomic)
    return bytes(record)


def vector_record(*, task: int, stream: int, status: tuple[int, int, int, int]) -> bytes:
    """A record of the second layout, version 1: a vector core with four words of status."""
    head = struct.pack("<6I", 0x5A5A5A5A, 1, 1, 1, 0, 112)
    data = struct.pack("<10Q", 1, stream, task, 0, 0, 0, 0x1000, 0x2000, 3, 4)
    return (head + data + struct.pack("<4Q", *status)).ljust(N_RECORD_BYTES, b"\0")


def write_record(folder: Path, record: bytes, *, task: int, stream: int, time: int) -> Path:
    name = f"Opdebug.Node_OpDebug.{task}.{stream}.{time}"
    return write_dump_file(folder, name, outputs=[Tensor(UINT8, [len(record)], record)])


def write_operator(
    folder: Path, name: str, outputs: list[NDArray[np.float32]], *, inputs: tuple[NDArray[np.float32], ...] = ()
) -> Path:
    def tensor(array: NDArray[np.float32]) -> Tensor:
        return Tensor(FLOAT32, array.shape, array.astype("<f4").tobytes())

    return write_dump_file(folder, name, [tensor(array) for array in inputs], [tensor(array) for array in outputs])


def read_record(path: Path) -> dict[str, Any]:
    """Task, stream and status of a record of the first layout, in binary or JSON, with the time of its name."""
    time = int(path.name.split(".")[4])
    if path.suffix == ".json":
        core = json.loads(path.read_text())["AI Core"]
        return {"task": core["task_id"], "stream": core["stream_id"], "status": core["status"], "time": time}
    content = path.read_bytes()
    (n_header,) = struct.unpack_from("<Q", content)
    record = content[8 + n_header :]
    assert len(record) == N_RECORD_BYTES
    core = dict(zip(TASK, struct.unpack_from("<6Q", record, 256), strict=True))
    _, _, status = struct.unpack_from("<3Q", record, 1024)
    return {"task": core["task_id"], "stream": core["stream_id"], "status": status, "time": time}


def overwritten_dump(root: Path) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A watched value before and after `add2` wrote over three of its elements, and `mul4` over none."""
    before = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    after = before.copy()
    after.ravel()[[7, 8, 50]] = np.float32([1.5, np.nan, -3e38])
    step = root / "20240102030405/0/net/1/3"
    write_operator(step, "Relu.w1.1.0.1700000000000001", [before])
    write_operator(step, "Relu.add2_To_w1.2.0.1700000000000005", [after])
    write_operator(step, "Relu.mul4_To_w1.4.0.1700000000000009", [after])
    entry = {
        "step": 3,
        "seen_after": "add2",
        "seen_after_type": "Add",
        "seen_after_task_id": 2,
        "watched": "w1",
        "watched_type": "Relu",
        "output": 0,
        "byte_ranges": [[28, 36], [200, 204]],
        "n_byte_ranges": 2,
        "n_bytes": 12,
        "first_element": 7,
        "before": str(before.ravel()[7]),
        "after": "1.5",
    }
    list_file = root / "20240102030405/overwrites.json"
    list_file.write_text(json.dumps({"n_overwrites": 5, "overwrites": [entry]}))
    return before, after


OVERFLOW_STEPS = 3
OVERFLOW_TIME = 1700000000000000


def overflow_dump(root: Path) -> None:
    """Three steps: the projection leaves float32 in the last, and a counter wraps in the second."""
    for step in range(OVERFLOW_STEPS):
        folder, time = root / f"20240102030405/3/net/1/{step}", OVERFLOW_TIME + 1000 * step
        small = np.full(16, 10.0 ** (10 * step), np.float32)
        with np.errstate(over="ignore"):
            large = np.where(np.arange(16) < 12, small * np.float32(1e20), np.float32(0))
        with np.errstate(invalid="ignore"):
            norm = large - large
        counter = np.full(4, step, np.float32)
        write_operator(folder, f"Abs.embed.0.7.{time + 1}", [small], inputs=(small,))
        write_operator(folder, f"Add.counter.1.7.{time + 2}", [counter], inputs=(counter,))
        write_operator(folder, f"MatMul.project.2.7.{time + 3}", [large], inputs=(small,))
        write_operator(folder, f"Sub.norm.3.7.{time + 4}", [norm], inputs=(large,))
        if step == 1:
            record = block_record(task=1, stream=7, status=0x10)
            write_record(folder, record, task=1, stream=7, time=time + 2)
        if step == 2:
            record = block_record(task=2, stream=7, status=0x400)
            write_record(folder, record, task=2, stream=7, time=time + 3)
