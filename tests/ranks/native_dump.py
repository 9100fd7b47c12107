"""Writes runs of many ranks in the native form: `docs/formats/native.md` and `slot_table.md`."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import parquet
import xxhash
from numpy.typing import NDArray

RUN_TIME = "20240102030405"
MODEL = "net"
LARGEST = {"float32": 3.4028234663852886e38, "float16": 65504.0, "bfloat16": 3.3895313892515355e38}
SMALLEST_NORMAL = {"float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
ZEROS = bytes(1 << 20)
TEXTS = "model kind op_type op_name side value dtype digest file file_format collective group_ranks placement"
INTEGERS = "rank device load step position call task time_us slot n_elements n_bytes offset"
COUNTS = "n_nan n_pos_inf n_neg_inf n_zero n_neg_zero n_negative n_subnormal n_saturated"
NUMBERS = "min max sum mean std l1 l2"


def rounded(array: NDArray, dtype: str) -> NDArray:
    """float32 with the values that the dtype has, rounded to the nearest, ties to even."""
    array = np.asarray(array, np.float32)
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return array.astype(np.float16).astype(np.float32)
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(array).view(np.uint32)
        even = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
        # Rounding up would make an infinity of a NaN with small bits.
        return np.where(np.isnan(array), np.float32(np.nan), even.view(np.float32)).reshape(array.shape)
    return array


def stored(array: NDArray, dtype: str) -> bytes:
    """The bytes of values that the dtype has."""
    array = np.ascontiguousarray(array, np.float32)
    if dtype == "float16":
        return array.astype(np.float16).tobytes()
    if dtype == "bfloat16":
        return (array.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return array.tobytes()


@dataclass
class Value:
    """A tensor of a rank."""

    name: str
    array: NDArray
    placement: str | None = None


@dataclass
class Execution:
    """What an operator read and made on one rank in one step."""

    op_type: str
    op_name: str
    inputs: list[Value]
    outputs: list[Value]
    collective: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class DumpOptions:
    """A dump's contents in addition to names, dtypes and shapes."""

    dtype: str = "float32"
    has_elements: bool = True
    has_statistics: bool = True
    has_notes: bool = True
    has_graph: bool = True
    # Tensors of two axes and more are filled up with zeros to this many bytes, which take no room on the disk.
    padded_bytes: int = 0


@dataclass
class Contents:
    """What is known of the content of a tensor."""

    offset: int
    digest: str
    statistics: dict[str, float]


@dataclass
class RankDump:
    """The dump of one process."""

    directory: Path
    rank: int
    n_ranks: int
    options: DumpOptions
    skew_us: int = 0
    known: dict[tuple[bytes, tuple[int, ...]], Contents] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    described: dict[str, dict[str, Any]] = field(default_factory=dict)
    n_stored: int = 0

    def __post_init__(self) -> None:
        name = f"worldsize{self.n_ranks}_global_rank{self.rank}" if self.n_ranks > 1 else "."
        self.run = self.directory / name / RUN_TIME
        self.rank_dir = self.run / f"rank-{self.rank}"
        self.rank_dir.mkdir(parents=True)
        # Room for the header comes first, since its length is known last.
        self.n_head = 1 << 20 if self.options.padded_bytes else 1 << 16
        self.elements = None
        if self.options.has_elements:
            self.elements = open(self.rank_dir / "elements-0.safetensors", "wb")  # noqa: SIM115
            self.elements.seek(8 + self.n_head)

    def write_step(self, step: int, executions: list[Execution]) -> None:
        rows: list[dict[str, Any]] = []
        calls: dict[str, int] = {}
        for position, execution in enumerate(executions):
            call = calls.get(execution.op_name, 0)
            calls[execution.op_name] = call + 1
            task = self.tasks.setdefault(execution.op_name, len(self.tasks))
            self._describe(execution, task)
            common = {
                "rank": self.rank,
                "device": 0,
                "model": MODEL,
                "load": 1,
                "step": step,
                "position": position,
                "call": call,
                "kind": "operator",
                "op_type": execution.op_type,
                "op_name": execution.op_name,
                "task": task,
                "time_us": 1_704_164_645_000_000 + self.skew_us + step * 1_000_000 + position * 100,
            }
            if self.options.has_notes:
                common["collective"] = execution.collective
                common["group_ranks"] = execution.group
            for side, values in (("input", execution.inputs), ("output", execution.outputs)):
                for slot, value in enumerate(values):
                    rows.append({**common, "side": side, "slot": slot, **self._tensor(step, execution, value)})
        parquet.write(self.rank_dir / f"{MODEL}-1" / f"step-{step}.parquet", _columns(rows), len(rows))

    def finish(self) -> None:
        if self.elements:
            text = json.dumps(self.header, separators=(",", ":")).encode()
            while len(text) > self.n_head:
                # The header is for other readers; ours goes by the places in rows.
                self.header = dict(list(self.header.items())[: len(self.header) // 2])
                text = json.dumps(self.header, separators=(",", ":")).encode()
            self.elements.truncate(8 + self.n_head + self.n_stored)
            self.elements.seek(0)
            self.elements.write(struct.pack("<Q", self.n_head) + text.ljust(self.n_head))
            self.elements.close()
        if self.options.has_graph:
            graphs = self.run / ".opscope" / "graphs"
            graphs.mkdir(parents=True)
            operators = sorted(self.described.values(), key=lambda one: one["task_id"])
            text = json.dumps({"version": 1, "name": MODEL, "arguments": [], "operators": operators})
            (graphs / f"{MODEL}.json").write_text(text, encoding="utf-8")

    def _describe(self, execution: Execution, task: int) -> None:
        self.described.setdefault(
            execution.op_name,
            {
                "task_id": task,
                "op_type": execution.op_type,
                "op_name": execution.op_name,
                "inputs": [value.name for value in execution.inputs],
                "outputs": [value.name for value in execution.outputs],
            },
        )

    def _tensor(self, step: int, execution: Execution, value: Value) -> dict[str, Any]:
        dtype = self.options.dtype
        content = stored(value.array, dtype)
        shape, n_padding = self._extents(value.array.shape, len(content))
        key = (content, shape)
        contents = self.known.get(key)
        if contents is None:
            contents = self._store(f"{step}/{execution.op_name}/{value.name}", content, shape, n_padding, value.array)
            self.known[key] = contents
        cells = {
            "value": value.name,
            "dtype": dtype,
            "shape": list(shape),
            "n_elements": math.prod(shape),
            "n_bytes": len(content) + n_padding,
            "digest": contents.digest,
        }
        if self.options.has_elements:
            file = f"rank-{self.rank}/elements-0.safetensors"
            cells |= {"file": file, "file_format": "elements", "offset": contents.offset}
        if self.options.has_statistics:
            cells |= contents.statistics
        if self.options.has_notes and value.placement:
            cells["placement"] = f"{value.placement} of [{','.join(map(str, self._whole(value.placement, shape)))}]"
        return cells

    def _extents(self, shape: tuple[int, ...], n_bytes: int) -> tuple[tuple[int, ...], int]:
        """A shape with padding at the end of the first axis, and the bytes of the padding."""
        if len(shape) < 2 or self.options.padded_bytes <= n_bytes:
            return shape, 0
        factor = self.options.padded_bytes // n_bytes
        return (shape[0] * factor, *shape[1:]), n_bytes * (factor - 1)

    def _whole(self, placement: str, shape: tuple[int, ...]) -> list[int]:
        whole = list(shape)
        for axis in placement.split(","):
            place, how = axis.split(":")
            if how.startswith("S("):
                whole[int(how[2:-1])] *= int(place.split("/")[1])
        return whole

    def _store(self, name: str, content: bytes, shape: tuple[int, ...], n_padding: int, array: NDArray) -> Contents:
        digest = xxhash.xxh3_128(content)
        for start in range(0, n_padding, len(ZEROS)):
            digest.update(ZEROS[: n_padding - start])
        offset = 8 + self.n_head + self.n_stored
        if self.elements:
            self.elements.seek(offset)
            self.elements.write(content)
            places = [self.n_stored, self.n_stored + len(content) + n_padding]
            code = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}[self.options.dtype]
            self.header[name] = {"dtype": code, "shape": list(shape), "data_offsets": places}
            self.n_stored = (places[1] + 7) // 8 * 8
        statistics = statistics_of(array, self.options.dtype, math.prod(shape)) if self.options.has_statistics else {}
        return Contents(offset, digest.hexdigest(), statistics)


def statistics_of(array: NDArray, dtype: str, n_elements: int) -> dict[str, float]:
    """The statistics of a tensor of which `array` is the part that may not be zero."""
    flat = array.ravel().astype(np.float64)
    n_padding = n_elements - flat.size
    numbers = flat[~np.isnan(flat)]
    finite = numbers[np.isfinite(numbers)]
    n = numbers.size + n_padding
    magnitudes = np.abs(numbers)
    zeros = numbers == 0
    least = [0.0] if n_padding else []
    total = float(numbers.sum()) if numbers.size == finite.size else _infinite_sum(numbers)
    mean = total / n if n else math.nan
    squares = float(((finite - mean) ** 2).sum() + n_padding * mean**2) if finite.size == numbers.size else math.nan
    return {
        "n_nan": flat.size - numbers.size,
        "n_pos_inf": int((numbers == np.inf).sum()),
        "n_neg_inf": int((numbers == -np.inf).sum()),
        "n_zero": int(zeros.sum()) + n_padding,
        "n_neg_zero": int((zeros & np.signbit(numbers)).sum()),
        "n_negative": int((numbers < 0).sum()),
        "n_subnormal": int(((magnitudes > 0) & (magnitudes < SMALLEST_NORMAL[dtype])).sum()),
        "n_saturated": int((magnitudes == LARGEST[dtype]).sum()),
        "min": min([*least, float(numbers.min(initial=np.inf))]),
        "max": max([*least, float(numbers.max(initial=-np.inf))]),
        "sum": total,
        "mean": mean,
        "std": math.sqrt(squares / n) if n else math.nan,
        "l1": float(magnitudes.sum()),
        "l2": float(np.sqrt((magnitudes**2).sum())),
    }


def _infinite_sum(numbers: NDArray) -> float:
    has_both = (numbers == np.inf).any() and (numbers == -np.inf).any()
    return math.nan if has_both else float(numbers[np.isinf(numbers)][0])


def _columns(rows: list[dict[str, Any]]) -> dict[str, tuple[str, list[Any]]]:
    kinds = dict.fromkeys(TEXTS.split(), "text")
    kinds |= dict.fromkeys((*INTEGERS.split(), *COUNTS.split()), "int")
    kinds |= {"shape": "list", **dict.fromkeys(NUMBERS.split(), "double")}
    columns = {name: (kind, [row.get(name) for row in rows]) for name, kind in kinds.items()}
    return {name: column for name, column in columns.items() if any(cell is not None for cell in column[1])}
