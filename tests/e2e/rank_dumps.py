"""Native dumps of several ranks, written without opscope: tables by DuckDB, elements by hand."""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import ml_dtypes
import numpy as np

TIME = "20240102030405"
COLUMNS = {
    "rank": "BIGINT",
    "device": "BIGINT",
    "step": "BIGINT",
    "position": "BIGINT",
    "call": "BIGINT",
    "kind": "VARCHAR",
    "op_type": "VARCHAR",
    "op_name": "VARCHAR",
    "side": "VARCHAR",
    "slot": "BIGINT",
    "dtype": "VARCHAR",
    "shape": "BIGINT[]",
    "n_elements": "BIGINT",
    "n_bytes": "BIGINT",
    "file": "VARCHAR",
    "file_format": "VARCHAR",
    "offset": "BIGINT",
    "collective": "VARCHAR",
    "group_ranks": "VARCHAR",
    "placement": "VARCHAR",
}
DTYPES = {
    np.dtype(np.float64): ("float64", "F64"),
    np.dtype(np.float32): ("float32", "F32"),
    np.dtype(np.float16): ("float16", "F16"),
    np.dtype(ml_dtypes.bfloat16): ("bfloat16", "BF16"),
    np.dtype(np.int64): ("int64", "I64"),
    np.dtype(np.int32): ("int32", "I32"),
    np.dtype(np.bool_): ("bool", "BOOL"),
}


@dataclass
class Shard:
    """A tensor on one rank, and the note of which part it is."""

    values: np.ndarray
    placement: str | None = None


@dataclass
class RankOperator:
    """An operator on one rank."""

    name: str
    outputs: Sequence[Shard | np.ndarray]
    inputs: Sequence[Shard | np.ndarray] = ()
    op_type: str = "mm"
    collective: str | None = None
    group: str | None = None
    step: int = 0


@dataclass
class RankDump:
    """A dump: the operators of each rank in the order in which they ran."""

    ranks: dict[int | None, list[RankOperator]] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        """Writes the dump, and returns its path."""
        for rank, operators in self.ranks.items():
            number = 0 if rank is None else rank
            rank_dir = path / TIME / f"rank-{number}"
            (rank_dir / "operators").mkdir(parents=True)
            by_step: dict[int, list[RankOperator]] = {}
            for operator in operators:
                by_step.setdefault(operator.step, []).append(operator)
            for step, of_step in by_step.items():
                elements = rank_dir / f"elements-{step}.safetensors"
                rows = _write_elements(elements, f"rank-{number}/{elements.name}", number, step, of_step)
                _write_table(rank_dir / "operators" / f"step-{step}.parquet", rows)
        return path


def _write_elements(path: Path, name: str, rank: int, step: int, operators: list[RankOperator]) -> list[tuple]:
    """Writes all tensors of a step, and returns a row for each."""
    slots = []
    header = {}
    n_bytes = 0
    for position, operator in enumerate(operators):
        call = sum(other.name == operator.name for other in operators[:position])
        for side, shards in (("input", operator.inputs), ("output", operator.outputs)):
            for slot, shard in enumerate(shards):
                if not isinstance(shard, Shard):
                    shard = Shard(shard)
                values = np.asarray(shard.values, order="C")
                word, code = DTYPES[values.dtype]
                end = n_bytes + values.nbytes
                header[f"{position}.{side}.{slot}"] = {
                    "dtype": code,
                    "shape": list(values.shape),
                    "data_offsets": [n_bytes, end],
                }
                slots.append((position, call, operator, side, slot, word, values, n_bytes, shard.placement))
                n_bytes = end
    text = json.dumps(header).encode()
    # Room for another header, which tests of large files put there.
    text = text.ljust(256)
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for *_, values, _, _ in slots:
            file.write(values.tobytes())
    begin = 8 + len(text)
    return [
        (
            rank,
            0,
            step,
            position,
            call,
            "operator",
            operator.op_type,
            operator.name,
            side,
            slot,
            word,
            list(values.shape),
            values.size,
            values.nbytes,
            name,
            "safetensors",
            begin + offset,
            operator.collective,
            operator.group,
            placement,
        )
        for position, call, operator, side, slot, word, values, offset, placement in slots
    ]


def _write_table(path: Path, rows: list[tuple]) -> None:
    with duckdb.connect() as database:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
        database.execute(f"CREATE TABLE slots ({columns})")
        marks = ", ".join("?" for _ in COLUMNS)
        database.executemany(f"INSERT INTO slots VALUES ({marks})", rows)
        copy_table(database, path)


def copy_table(database: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Writes the table `slots` of a database."""
    # DuckDB would see that a column has no empty cell, and make it one that cannot have any.
    columns = ", ".join(f'if(random() < 2, "{name}", NULL) AS "{name}"' for name in COLUMNS)
    options = "FORMAT parquet, KV_METADATA {\"opscope.slot_table\": '1'}"
    database.execute(f"COPY (SELECT {columns} FROM slots) TO '{path}' ({options})")


def chunk(values: np.ndarray, axis: int, coordinate: int, size: int) -> np.ndarray:
    """The part of a rank as `torch.chunk` cuts it; empty if there are not so many."""
    n = -(-values.shape[axis] // size)
    index = [slice(None)] * values.ndim
    index[axis] = slice(min(coordinate * n, values.shape[axis]), min((coordinate + 1) * n, values.shape[axis]))
    return values[tuple(index)].copy()
