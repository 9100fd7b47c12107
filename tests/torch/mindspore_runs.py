"""Configurations of MindSpore's form, and the names and arrays of the trees that they lead to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import models
import numpy as np
import opscope.torch
import torch
from reference import Seen

KERNELS = ["cpu", "gpu", "ascend-o0", "ascend-o1"]
GRAPHS = ["ascend-o2", "ge"]


def configuration(folder: Path, target: str = "cpu", e2e: dict | None = None, **settings: object) -> str:
    common = {
        "op_debug_mode": 0, "dump_mode": 0, "path": str(folder), "net_name": "Net", "iteration": "all",
        "input_output": 0, "kernels": [], "support_device": [0, 1], **settings,
    }  # fmt: skip
    sections: dict[str, Any] = {"common_dump_settings": common}
    if target not in GRAPHS:
        sections["e2e_dump_settings"] = {"enable": True, **(e2e or {})}
    return json.dumps(sections)


def backend(folder: Path, target: str = "cpu", e2e: dict | None = None, **settings: object) -> Any:
    return opscope.torch.backend(mindspore_json=configuration(folder, target, e2e, **settings), target=target)


NAME = re.compile(r"([^.]+)\.([^.]+)\.(\d+)\.\d+\.\d{16}\.(input|output)\.(\d+)\.(\w+)\.(\w+)\.npy")


def arrays(step: Path) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of an iteration by operator and then by side and slot; parameters by name."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for path in step.glob("*.npy"):
        kind, name, _, side, slot, _, _ = NAME.fullmatch(path.name).groups()
        slots = found.setdefault(f"Parameter.{name}" if kind == "Parameter" else name, {})
        assert f"{side}.{slot}" not in slots, path.name
        slots[f"{side}.{slot}"] = np.load(path)
    return found


def names(step: Path) -> set[str]:
    return {name for name in arrays(step) if not name.startswith("Parameter.")}


def graph_dirs(root: Path) -> list[Path]:
    """Directories of the graphs, in the order of compilation."""
    return sorted((root / "rank_0" / "Net").iterdir(), key=lambda path: int(path.name))


def order(root: Path, graph: Path) -> list[str]:
    path = root / "rank_0" / "execution_order" / f"ms_execution_order_graph_{graph.name}.csv"
    return path.read_text().splitlines()[1:]


def seen(array: np.ndarray) -> Seen:
    return array.shape, array.tobytes()


def in_order(slots: dict[str, np.ndarray], side: str) -> list[Seen]:
    """The tensors of a side; results that are none have a number and no tensor."""
    numbers = sorted(int(slot.split(".")[1]) for slot in slots if slot.startswith(side))
    return [seen(slots[f"{side}.{number}"]) for number in numbers]


def clean(name: str) -> str:
    return re.sub(r"[/\\. ]", "_", name)


def train(how: object, *, n_steps: int = 1, case: str = "cnn") -> models.Outcome:
    torch._dynamo.reset()
    return models.run(models.CASES[case], how, is_training=True, n_steps=n_steps)
