"""A dump that `opscope.torch` wrote, read by the parser of the end-to-end tests."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from dump_data import DumpData, parse


@dataclass
class Record:
    """One file."""

    op_type: str
    op_name: str
    task_id: int
    path: Path

    def data(self) -> DumpData:
        return parse(self.path.read_bytes())

    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(self.path.read_text(encoding="utf-8").splitlines()))


def graphs(root: str, device: int = 0) -> list[dict[int, dict[str, Record]]]:
    """For each graph in the order of compilation its steps, and for each step the operators by name."""
    folders = sorted((Path(root) / str(device)).iterdir(), key=lambda folder: int(folder.name.removeprefix("graph_")))
    return [_graph(folder) for folder in folders]


def _graph(folder: Path) -> dict[int, dict[str, Record]]:
    (load,) = folder.iterdir()
    assert f"graph_{load.name}" == folder.name
    return {int(one.name): step(one) for one in load.iterdir()}


def step(folder: Path) -> dict[str, Record]:
    records = {}
    for path in folder.iterdir():
        op_type, op_name, task_id, stream_id, timestamp = path.name.removesuffix(".csv").split(".")
        assert stream_id == "0" and len(timestamp) == 16, path.name
        assert op_name not in records, f"two records of `{op_name}` in {folder}"
        records[op_name] = Record(op_type, op_name, int(task_id), path)
    return records
