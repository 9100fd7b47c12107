"""Finding the files of a dump and of a conversion, and the operator each one belongs to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from reference import Operator

MAPPING = "mapping.csv"
_REPLACED = str.maketrans(dict.fromkeys(" ./\\", "_"))


@dataclass(frozen=True)
class DumpFile:
    """`{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}`; `path` differs from it when that name was too long."""

    path: Path
    full_name: str
    op_type: str
    op_name: str
    task_id: int
    stream_id: int
    timestamp: int


def sanitised(name: str) -> str:
    return name.translate(_REPLACED)


def step_dirs(out_dir: Path, stem: str) -> dict[int, Path]:
    """The folders `{time}/0/{model}/1/{step}` under `out_dir`, by step."""
    times = [path.name for path in out_dir.iterdir()]
    assert len(times) == 1, f"one time folder expected in {out_dir}, found {times}"
    assert re.fullmatch(r"\d{14}", times[0]), f"14 digits expected, found {times[0]}"
    model_dir = out_dir / times[0] / "0" / sanitised(stem) / "1"
    assert model_dir.is_dir(), f"{model_dir} is missing; found {sorted(out_dir.rglob('*'))[:6]}"
    return {int(path.name): path for path in model_dir.iterdir()}


def read_step(folder: Path) -> list[DumpFile]:
    mapping = read_mapping(folder)
    return [_parse(path, mapping) for path in sorted(folder.iterdir()) if path.name != MAPPING]


def read_mapping(folder: Path) -> dict[str, str]:
    """Short name to long name; two columns and no header line."""
    path = folder / MAPPING
    if not path.exists():
        return {}
    return dict(line.split(",", 1) for line in path.read_text(encoding="utf-8").splitlines())


def pair(operators: Sequence[Operator], files: Sequence[DumpFile]) -> list[tuple[Operator, DumpFile]]:
    """Each operator with its file, by type and written name; among equal names by task id."""
    waiting: dict[tuple[str, str], list[DumpFile]] = defaultdict(list)
    for file in sorted(files, key=lambda file: file.task_id, reverse=True):
        waiting[file.op_type, file.op_name].append(file)
    pairs, missing = [], []
    for operator in operators:
        candidates = waiting[sanitised(operator.op_type), sanitised(operator.name)]
        if candidates:
            pairs.append((operator, candidates.pop()))
        else:
            missing.append(f"{operator.op_type} `{operator.name}`")
    extra = [file.path.name for files in waiting.values() for file in files]
    assert not missing and not extra, f"operators without a file: {missing}; files without an operator: {extra}"
    return pairs


def read_converted(folder: Path) -> dict[str, NDArray]:
    """The arrays in a conversion's folder, by the name each file has or would have had."""
    mapping = read_mapping(folder)
    return {mapping.get(path.name, path.name): np.load(path) for path in folder.glob("*.npy")}


def _parse(path: Path, mapping: dict[str, str]) -> DumpFile:
    name = path.name
    if name.isdecimal():
        assert name in mapping, f"{name} is not in {MAPPING}, which has {sorted(mapping)}"
        name = mapping[name]
    parts = name.split(".")
    assert len(parts) == 5, f"5 parts expected in {name}"
    assert re.fullmatch(r"\d{16}", parts[4]), f"16 digits expected at the end of {name}"
    return DumpFile(path, name, parts[0], parts[1], int(parts[2]), int(parts[3]), int(parts[4]))
