"""Tests of the plans that dump options ask for, and of the place where a dump lies."""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from opscope.torchair import CompilerConfig, _layout
from opscope.torchair._layout import World
from opscope.torchair._lower import lower
from opscope._plan import STEP_MAX, DumpPlan, StepRange


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes variables about other processes from the environment."""
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)


def dumping(path: Path, **options: Any) -> CompilerConfig:
    """A configuration that dumps to a directory."""
    config = CompilerConfig()
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(path)
    for name, value in options.items():
        setattr(config.dump_config, name, value)
    return config


def test_nothing_is_dumped_by_default() -> None:
    plan = lower(CompilerConfig())
    assert plan == DumpPlan(enabled=False)
    assert (plan.enabled, plan.has_step(0)) == (False, False)


CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"dump_mode": "input"}, {"mode": "input"}),
    ({"dump_data": "stats", "quant_dumpable": 1}, {"data": "stats", "quant_dumpable": True}),
    ({"dump_step": "0|3-5|010"}, {"steps": (StepRange(0, 0), StepRange(3, 5), StepRange(10, 10))}),
    ({"dump_step": "7-7"}, {"steps": (StepRange(7, 7),)}),
    ({"dump_step": "9" * 5000}, {"steps": (StepRange(STEP_MAX, STEP_MAX),)}),
    ({"dump_step": f"{2**64 - 2}-{2**64}"}, {"steps": (StepRange(STEP_MAX - 1, STEP_MAX),)}),
    ({"dump_step": "000000000000000000000000000001"}, {"steps": (StepRange(1, 1),)}),
    ({"dump_layer": "  Add_1Mul_1  Add2 Add_1Mul_1 "}, {"layers": ("Add_1Mul_1", "Add2")}),
    ({"dump_layer": "   "}, {"layers": ()}),
]


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_options_become_a_plan(options: dict[str, Any], expected: dict[str, Any], tmp_path: Path) -> None:
    assert lower(dumping(tmp_path, **options)) == DumpPlan(enabled=True, path=str(tmp_path), **expected)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("0|3-5", [0, 3, 4, 5]),
        ("5|1-2|1", [1, 2, 5]),
        ("100", []),
    ],
)
def test_steps_of_a_plan(text: str, steps: list[int], tmp_path: Path) -> None:
    plan = lower(dumping(tmp_path, dump_step=text))
    assert [step for step in range(8) if plan.has_step(step)] == steps


def test_a_step_beyond_64_bits_counts_as_the_greatest(tmp_path: Path) -> None:
    plan = lower(dumping(tmp_path, dump_step=str(2**70)))
    assert [plan.has_step(step) for step in (0, STEP_MAX - 1, STEP_MAX, 2**65)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("mode", "sides"), [("input", (True, False)), ("output", (False, True)), ("all", (True, True))]
)
def test_sides_of_a_plan(mode: str, sides: tuple[bool, bool], tmp_path: Path) -> None:
    plan = lower(dumping(tmp_path, dump_mode=mode))
    assert (plan.has_inputs, plan.has_outputs) == sides


@pytest.mark.parametrize("mode", ["reduce-overhead", "npugraph_ex"])
def test_modes_with_captured_graphs(mode: str, tmp_path: Path) -> None:
    config = dumping(tmp_path, data_dump_stage="original")
    config.mode = mode
    assert lower(config) == DumpPlan(enabled=True, path=str(tmp_path), stage="original")
    config.dump_config.dump_step = "1"
    config.dump_config.dump_layer = "Add"
    with pytest.warns(UserWarning, match="dump_step, dump_layer of dump_config without effect"):
        plan = lower(config)
    assert plan.steps is None


def test_options_without_effect_are_warned_about(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="data_dump_stage of dump_config without effect"):
        lower(dumping(tmp_path, data_dump_stage="original"))
    config = dumping(tmp_path, dump_mode="input")
    config.dump_config.enable_dump = False
    with pytest.warns(UserWarning, match="dump_path, dump_mode .*enable_dump is False") as warned:
        assert lower(config) == DumpPlan(enabled=False)
    assert [one.filename for one in warned] == [__file__]


def test_a_directory_that_went_away(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    config = dumping(tmp_path / "out")
    (tmp_path / "out").rmdir()
    with pytest.raises(FileNotFoundError, match="dump_path"):
        lower(config)


# Files that `dump_config_path` may name; `HERE` is an existing directory. The last is the kind of dump.
FILES = [
    (
        {"dump_path": "HERE", "dump_list": [{"model_name": "graph_1", "layer": ["Add"]}, {"model_name": "b"}]},
        "operator",
    ),
    ({"dump_path": "HERE", "dump_list": [], "dump_op_switch": "on", "dump_data": "tensor"}, "operator"),
    ({"dump_path": "HERE", "dump_debug": "on"}, "overflow"),
    (
        {
            "dump_list": [{"layer": ["A", "B"], "watcher_nodes": ["C", "D"]}],
            "dump_path": "HERE",
            "dump_mode": "output",
            "dump_scene": "watcher",
        },
        "watcher",
    ),
    ({"dump_path": "HERE", "dump_scene": "aic_err_brief_dump"}, "exception_brief"),
    ({"dump_path": "HERE", "dump_scene": "aic_err_norm_dump"}, "exception_norm"),
    ({"dump_path": "HERE", "dump_scene": "aic_err_detail_dump"}, "exception_detail"),
    ({"dump_path": "HERE", "dump_scene": "lite_exception"}, "exception_brief"),
]


def with_file(folder: Path, text: str) -> CompilerConfig:
    """A configuration with a file."""
    path = folder / "dump.json"
    path.write_text(text.replace("HERE", str(folder)), encoding="utf-8")
    config = CompilerConfig()
    config.dump_config.dump_config_path = str(path)
    return config


@pytest.mark.parametrize(("dump", "kind"), FILES)
def test_a_file_says_what_is_dumped(dump: dict[str, Any], kind: str, tmp_path: Path) -> None:
    config = with_file(tmp_path, json.dumps({"dump": dump}))
    plan = lower(config)
    path = str(tmp_path / "dump.json")
    text = Path(path).read_text(encoding="utf-8")
    assert (plan.enabled, plan.acl_json) == (True, (path, text, kind))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "EP0004: not valid JSON"),
        ('{"dump": {"dump_path": "HERE", "dump_list": [{}], "dump_mode": "none"}}', "EP0002 at `/dump/dump_mode`"),
        ('{"dump": {"dump_path": "HERE/none", "dump_list": [{}]}}', "at `/dump/dump_path`"),
        ('{"dump": {"dump_path": "HERE", "dump_list": [{}], "dump_step": "5-3"}}', "at `/dump/dump_step`"),
        ('{"dump": {"dump_path": "HERE", "dump_debug": "on", "dump_op_switch": "on"}}', "dump_debug"),
        ('{"dump": {"dump_debug": "on"}}', "dump_path"),
        ("[" * 100_000, "nested deeper"),
    ],
)
def test_a_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    config = with_file(tmp_path, text)
    with pytest.raises(ValueError, match="dump_config_path") as raised:
        lower(config)
    assert message in str(raised.value)


def test_a_file_that_is_no_text_or_too_great(tmp_path: Path) -> None:
    config = with_file(tmp_path, "{}")
    (tmp_path / "dump.json").write_bytes(b'{"dump": "\xff"}')
    with pytest.raises(ValueError, match="not UTF-8 text from byte 10 on"):
        lower(config)
    (tmp_path / "dump.json").write_bytes(b" " * ((10 << 20) + 1))
    with pytest.raises(ValueError, match="greater than 10485760 bytes"):
        lower(config)
    (tmp_path / "dump.json").unlink()
    with pytest.raises(FileNotFoundError):
        lower(config)


@pytest.mark.parametrize("path", ["$HOME/below", "~/below", "~//below/"])
def test_home_is_the_users(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = CompilerConfig()
    config.dump_config.enable_dump = True
    with pytest.raises(FileNotFoundError, match="dump_path"):
        config.dump_config.dump_path = path
    (tmp_path / "below").mkdir()
    with pytest.warns(UserWarning, match="literally"):
        config.dump_config.dump_path = path
    plan = lower(config)
    assert plan.path is not None and Path(plan.path) == tmp_path / "below"


@pytest.mark.parametrize("text", ["", "{}", '{"dump": {}}', '{"dump": {"dump_path": "HERE", "dump_list": []}}'])
def test_a_file_that_asks_for_nothing(text: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="nothing is dumped") as warned:
        plan = lower(with_file(tmp_path, text))
    assert not plan.enabled
    assert [one.filename for one in warned] == [__file__]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable_dump", True),
        ("dump_path", "."),
        ("dump_mode", "input"),
        ("dump_step", "1"),
        ("dump_layer", "Add"),
        ("dump_data", "stats"),
        ("quant_dumpable", True),
        ("data_dump_stage", "original"),
    ],
)
def test_of_a_file_and_other_options_one_has_no_effect(name: str, value: Any, tmp_path: Path) -> None:
    config = with_file(tmp_path, json.dumps({"dump": FILES[0][0]}))
    setattr(config.dump_config, name, value)
    idle = "dump_config_path .*" if name == "enable_dump" else f"{name} of dump_config "
    with pytest.warns(UserWarning, match=f"^{idle}without effect"):
        plan = lower(config)
    assert plan.enabled and (plan.acl_json is None) is (name == "enable_dump")
    # An option that was set to its default counts as not set, and is not warned about.
    setattr(config.dump_config, name, getattr(config.dump_config, name).default)
    assert lower(config).enabled


def test_directories_and_files() -> None:
    alone = World()
    assert _layout.rank_name(alone) == "worldsize1_global_rank0"
    directory = _layout.data_directory("/home/dump", World(8, 3), "20240112145738", 0, "a.b/c\\d e", 1, 7)
    assert directory == "/home/dump/worldsize8_global_rank3/20240112145738/0/a_b_c_d_e/1/7"
    assert _layout.data_directory(".", alone, "t", 2, _layout.graph_name(4), 4, 0) == (
        "./worldsize1_global_rank0/t/2/graph_4/4/0"
    )
    assert _layout.fx_directory("out", alone, "graph_1", 0) == "out/worldsize1_global_rank0/graph_1/0"
    assert _layout.fx_file("add", "aten.add.Tensor", "INPUT", "0.1", "20240112145738000000") == (
        "add-aten.add.Tensor.INPUT.0.1.20240112145738000000.npy"
    )
    assert _layout.graph_file("original", 1, 0, "20240112145738000000", "py") == (
        f"dynamo_original_graph_1_rank_0_pid_{os.getpid()}_ts_20240112145738000000.py"
    )
    assert _layout.tensor_file("add", 0, 2) == "add_device_0_2.pt"
    assert _layout.summary_file(0, "1") == f"summary_rank_0_pid_{os.getpid()}_ts_1.csv"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("graph_1", "graph_1"),
        ("..", "__"),
        ("", "_"),
        ("a\nb\0c", "a_b_c"),
        ("x" * 300, "x" * 255),
        ("加" * 100, "加" * 85),
        ("a\ud800", "a_"),
    ],
)
def test_names_are_one_part_of_a_path(name: str, expected: str) -> None:
    assert _layout.sanitised(name) == expected


def test_long_names_leave_room_for_the_end() -> None:
    name = _layout.fx_file("n" * 400, "../../aten", "OUTPUT", "0", "20240112145738000000")
    assert len(name.encode()) == 255
    assert name.endswith(".OUTPUT.0.20240112145738000000.npy")
    assert "/" not in _layout.fx_file("a", "../../b", "OUTPUT", "0", "1")


def test_times() -> None:
    datetime.strptime(_layout.time_now(), "%Y%m%d%H%M%S")
    stamp = _layout.timestamp_now()
    assert len(stamp) == 20
    datetime.strptime(stamp, "%Y%m%d%H%M%S%f")


@pytest.mark.parametrize(
    ("size", "rank", "expected"),
    [
        ("4", "3", World(4, 3)),
        ("1", "0", World(1, 0)),
        ("4", None, World(1, 0)),
        (None, "1", World(1, 0)),
    ],
)
def test_processes_by_variables(
    size: str | None, rank: str | None, expected: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("WORLD_SIZE", size), ("RANK", rank)):
        if value is not None:
            monkeypatch.setenv(name, value)
    assert _layout.world() == expected


@pytest.mark.parametrize(
    ("size", "rank"), [("4", "4"), ("0", "0"), ("two", "1"), ("4", "-1"), ("", ""), ("9" * 99, "1")]
)
def test_wrong_variables_are_warned_about(size: str, rank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", size)
    monkeypatch.setenv("RANK", rank)
    with pytest.warns(UserWarning, match="WORLD_SIZE"):
        assert _layout.world() == World(1, 0)


class Distributed:
    """A stand-in for `torch.distributed` with fixed answers."""

    def __init__(self, size: int, rank: int, *, is_there: bool = True, is_ready: bool = True) -> None:
        self.is_available = lambda: is_there
        self.is_initialized = lambda: is_ready
        self.get_world_size = lambda: size
        self.get_rank = lambda: rank


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module in the place of torch."""
    module: Any = types.ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", module)
    yield module


def test_processes_of_torch_go_before_variables(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    cases = [
        (Distributed(16, 9), World(16, 9)),
        (Distributed(1, 0), World(1, 0)),
        (Distributed(16, 9, is_ready=False), World(4, 3)),
        (Distributed(16, 9, is_there=False), World(4, 3)),
    ]
    for distributed, expected in cases:
        torch.distributed = distributed
        assert _layout.world() == expected
    config = CompilerConfig()
    config.dump_config.enable_dump = True
    torch.distributed = Distributed(16, 9)
    assert config.as_dict()[1]["ge.exec.dumpPath"] == "./worldsize16_global_rank9"
