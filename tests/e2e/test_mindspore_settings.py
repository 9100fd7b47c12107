"""Every setting of MindSpore's configuration changes the dump, or is said to change nothing.

For each key there are two values. On every target the two dumps are not the same, or the command warns that the setting
has no effect, or the reason is here and in `docs/config/mindspore.md`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary
from onnx import TensorProto, helper, numpy_helper

# `ascend-o1` is `ascend-o0` under another name.
TARGETS = ["cpu", "gpu", "ascend-o0", "ascend-o2", "ge"]
KERNELS = {"ascend-o0"}
GRAPHS = {"ascend-o2", "ge"}
NOT_CPU = set(TARGETS) - {"cpu"}
DOCUMENT = Path(__file__).parents[2] / "docs" / "config" / "mindspore.md"

STATISTICS = {"saved_data": "statistic", "file_format": "npy"}
ON_DEVICE = {"enable": True, "stat_calc_mode": "device"}
OVERFLOW = {"op_debug_mode": 3, "overflow_number": 0}


@dataclass(frozen=True)
class Setting:
    """A key with two values."""

    key: str
    values: tuple[Any, Any]
    # The targets whose dumps it changes; on the others a warning says that it has no effect.
    targets: frozenset[str]
    common: dict[str, Any] = field(default_factory=dict)
    e2e: dict[str, Any] = field(default_factory=dict)
    # Targets on which nothing changes and nothing has to be said: the document does.
    documented: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.key}={self.values[1]}".replace("/", "")


EVERY, NONE = frozenset(TARGETS), frozenset()
SETTINGS = [
    Setting("op_debug_mode", (0, 3), frozenset(NOT_CPU)),
    Setting("op_debug_mode", (0, 4), EVERY - {"ge"}),
    Setting("dump_mode", (0, 1), EVERY, {"kernels": ["/half/Exp"]}),
    Setting("dump_mode", (0, 2), EVERY),
    Setting("path", ("dump", "elsewhere"), EVERY),
    # Trees of whole graphs have the model's name.
    Setting("net_name", ("Net", "Other"), EVERY - GRAPHS, documented=frozenset(GRAPHS)),
    Setting("net_name", ("Net", "n" * 300), EVERY - GRAPHS, documented=frozenset(GRAPHS)),
    Setting("iteration", ("all", "1"), EVERY),
    Setting("initial_iteration", (0, 5), EVERY),
    Setting("saved_data", ("tensor", "statistic"), frozenset(NOT_CPU), {"file_format": "npy"}),
    Setting("saved_data", ("statistic", "full"), frozenset(NOT_CPU), {"file_format": "npy"}),
    Setting("input_output", (0, 1), EVERY),
    Setting("input_output", (1, 2), EVERY),
    Setting("kernels", (["/half/Exp"], ["name-regex(/.*Sum)"]), EVERY, {"dump_mode": 1}),
    Setting("kernels", ([], ["/half/Exp"]), NONE),
    # A CPU has no devices.
    Setting("support_device", ([0], [1]), frozenset(NOT_CPU), documented=frozenset({"cpu"})),
    Setting("statistic_category", (["max"], ["max", "md5"]), frozenset(NOT_CPU), STATISTICS),
    Setting("statistic_category", (["max"], ["min"]), NONE),
    Setting("file_format", ("bin", "npy"), frozenset(GRAPHS)),
    Setting("overflow_number", (0, 1), frozenset(NOT_CPU), OVERFLOW),
    # On Ascend MindSpore waits for each operator; what is dumped is the same.
    Setting("enable", (False, True), NONE, documented=EVERY),
    Setting("enable", (False, True), frozenset(KERNELS), e2e={"save_kernel_args": True}, documented=EVERY - KERNELS),
    # Engines on a CPU have no layouts of a device: the name of the layout is what changes.
    Setting("trans_flag", (True, False), frozenset(KERNELS)),
    Setting("save_kernel_args", (False, True), frozenset(KERNELS), e2e={"enable": True}),
    Setting("save_kernel_args", (False, True), NONE),
    Setting(
        "stat_calc_mode",
        ("host", "device"),
        frozenset(KERNELS),
        {**STATISTICS, "statistic_category": ["max", "count"]},
    ),
    Setting("device_stat_precision_mode", ("high", "low"), frozenset(KERNELS), STATISTICS, ON_DEVICE),
    Setting("device_stat_precision_mode", ("high", "low"), NONE),
    Setting("sample_mode", (0, 1), frozenset(KERNELS), e2e={"sample_num": 3}),
    Setting("sample_num", (3, 4), frozenset(KERNELS), e2e={"sample_mode": 1}, documented=EVERY - KERNELS),
    Setting("sample_num", (3, 4), NONE),
]
COMMON = {
    "op_debug_mode": 0,
    "dump_mode": 0,
    "path": "dump",
    "net_name": "Net",
    "iteration": "all",
    "input_output": 0,
    "kernels": [],
    "support_device": [0],
}
E2E_KEYS = {
    "enable",
    "trans_flag",
    "save_kernel_args",
    "stat_calc_mode",
    "device_stat_precision_mode",
    "sample_mode",
    "sample_num",
}
# Parts of names and of rows that differ from run to run.
TIMES = re.compile(r"\d{14,16}")


def model(path: Path) -> Path:
    """Halves on four axes, a weight, operators that overflow and one that does not."""
    nodes = [
        helper.make_node("Abs", ["x"], ["p"], "/half/Abs"),
        helper.make_node("Exp", ["p"], ["e"], "/half/Exp"),
        helper.make_node("Mul", ["e", "w"], ["m"], "/half/Mul"),
        helper.make_node("Add", ["m", "m"], ["a"], "/half/Add"),
        helper.make_node("ReduceSum", ["a"], ["y"], "/sum/ReduceSum", keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "halves",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, 2, 2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)],
        [numpy_helper.from_array(np.array([1.001], np.float16), "w")],
    )
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(built, path)
    values = np.array([0.3, 1.7, 2.9, 11.0, 12.0, 0.1, 3.3, 11.5] * 2, np.float16)
    np.save(path.with_suffix(".npy"), values.reshape(1, 2, 2, 4))
    return path


def contents(root: Path) -> dict[str, bytes]:
    """Everything below a directory; times are left out of names and rows."""
    found: dict[str, bytes] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        parts = path.relative_to(root).parts
        if ".opscope" in parts or ".dump_metadata" in parts:
            continue
        data = path.read_bytes()
        name = TIMES.sub("T", "/".join(parts))
        if path.suffix in (".csv", ".json"):
            data = TIMES.sub("T", data.decode()).replace(str(root), "").encode()
        elif path.suffix != ".npy" and not name.endswith((".ir", ".pb")):
            # A file of the runtime, which holds its time.
            data = str(len(data)).encode()
        found[f"{name}#{sum(known.startswith(name) for known in found)}"] = data
    return found


def dump(tool: Binary, folder: Path, target: str, setting: Setting, value: Any) -> tuple[dict[str, bytes], str]:
    """The dump with this value, and its warnings."""
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    common, e2e = {**COMMON, **setting.common}, dict(setting.e2e)
    (e2e if setting.key in E2E_KEYS else common)[setting.key] = value
    common["path"] = f"{root}/{common['path']}"
    config = folder / "data_dump.json"
    # `file_format` counts on whole graphs whether the section is there or not.
    config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": e2e}))
    inputs = ["--input", f"x={folder / 'net.npy'}", "--steps", "2", "--no-baseline", "--engine", "tract"]
    command = tool.command("dump", folder / "net.onnx", "--config", config, "--target", target, *inputs)
    found = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert found.returncode in (0, 1), found.stderr
    return contents(root), found.stderr


@pytest.mark.sampled(0.35)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_settings_change_the_dump(tool: Binary, folder: Path, setting: Setting) -> None:
    model(folder / "net.onnx")
    for target in TARGETS:
        if target == "cpu" and {setting.common.get("saved_data"), *map(str, setting.values)} & {"statistic", "full"}:
            # MindSpore refuses statistics on a CPU.
            continue
        if target == "ge" and setting.key == "op_debug_mode" and 4 in setting.values:
            # The graph engine has no such dump.
            continue
        (first, _), (second, told) = (dump(tool, folder, target, setting, value) for value in setting.values)
        if target in setting.targets:
            assert first != second, target
        else:
            assert first == second, target
            told_of = any(setting.key in line and WITHOUT_EFFECT.search(line) for line in told.splitlines())
            assert told_of or target in setting.documented, (target, told)


WITHOUT_EFFECT = re.compile("has no effect|is read as|on a CPU `op_debug_mode` 3")


def test_every_key_is_here() -> None:
    _, keys = DOCUMENT.read_text(encoding="utf-8").split("## `common_dump_settings`", 1)
    rows = re.findall(r"^\| `(\w+)` \|", keys, re.MULTILINE)
    assert {setting.key for setting in SETTINGS} == set(rows)
