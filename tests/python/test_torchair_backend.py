"""The names that programs import, and how a backend comes about."""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import opscope
import opscope.torchair as torchair
import pytest
from opscope.torchair import CompilerConfig, _idle, get_compiler, get_npu_backend
from opscope._plan import DumpPlan, StepRange

SOURCE = Path(opscope.__file__).resolve().parents[1]


def python(code: str) -> Any:
    """Runs code in a fresh Python and returns the JSON that it prints."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return json.loads(done.stdout)


def test_an_import_loads_nothing_heavy() -> None:
    code = """
import json
import opscope.torchair as torchair
from opscope.torchair import CompilerConfig, get_npu_backend
config = torchair.configs.compiler_config.CompilerConfig()
assert type(config) is CompilerConfig is torchair.CompilerConfig
config.dump_config.enable_dump = True
config.as_dict()
print(json.dumps(sorted(sys.modules)))
"""
    loaded = python(code)
    assert not {"torch", "numpy", "opscope._native", "opscope.acl", "asyncio", "ctypes"} & set(loaded)


def test_every_way_to_import() -> None:
    code = """
import json
import opscope
from opscope import torchair
import opscope.torchair.configs.compiler_config as module
from opscope.torchair.core.utils import EVENT_LEVEL, logger
from opscope.torchair.scope import data_dump
names = [
    opscope.torchair is torchair,
    torchair.configs.compiler_config is module,
    torchair.scope.data_dump is data_dump,
    torchair.logger is logger,
    EVENT_LEVEL == 35,
    callable(torchair.inference.set_dim_gears) and callable(torchair.ops.npu_print) and callable(torchair.get_compiler),
]
print(json.dumps(names))
"""
    assert python(code) == [True] * 6


def test_public_names_are_there() -> None:
    names = [
        "CompilerConfig",
        "get_npu_backend",
        "get_compiler",
        "dynamo_export",
        "use_internal_format_weight",
        "logger",
        "register_fx_node_ge_converter",
        "patch_for_hcom",
        "register_replacement",
        "npu_format_cast_via_cpu",
    ]
    assert [name for name in names if not hasattr(torchair, name)] == []
    assert set(names) <= set(torchair.__all__)


@pytest.mark.parametrize("make", [get_npu_backend, get_compiler])
def test_without_torch_the_error_says_so(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match="PyTorch, which is not installed"):
        make(compiler_config=CompilerConfig())


class Recorder(types.ModuleType):
    """In the place of `opscope.torchair._engine`: remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__("opscope.torchair._engine")
        self.made: list[tuple[str, DumpPlan, CompilerConfig, dict[str, Any]]] = []
        self.compiled: list[tuple[int, Any, Any, dict[str, Any]]] = []

    def make_backend(self, plan: DumpPlan, config: CompilerConfig, **keywords: Any) -> Any:
        self.made.append(("backend", plan, config, keywords))
        number = len(self.made) - 1

        def backend(gm: Any, example_inputs: Any, **others: Any) -> str:
            self.compiled.append((number, gm, example_inputs, others))
            return f"compiled {gm}"

        return backend

    def make_compiler(self, plan: DumpPlan, config: CompilerConfig, **keywords: Any) -> Any:
        self.made.append(("compiler", plan, config, keywords))
        return lambda gm, example_inputs: f"compiled {gm}"


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Replaces torch and packages built on it."""
    module = Recorder()
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "opscope.torchair._engine", module)
    return module


def dumping(path: Path, step: str = "") -> CompilerConfig:
    config = CompilerConfig()
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(path)
    config.dump_config.dump_step = step
    return config


def test_graphs_share_a_backend(recorder: Recorder, tmp_path: Path) -> None:
    config = dumping(tmp_path, "1")
    backend = get_npu_backend(compiler_config=config, custom_decompositions={"op": "way"})
    assert recorder.made == [], "nothing is needed before the first graph"
    assert backend("g", [1]) == "compiled g"
    assert backend("h", [2], extra=3) == "compiled h"
    plan = DumpPlan(enabled=True, path=str(tmp_path), steps=(StepRange(1, 1),))
    assert recorder.made == [("backend", plan, config, {"decompositions": {"op": "way"}})]
    assert recorder.compiled == [(0, "g", [1], {}), (0, "h", [2], {"extra": 3})]


def test_options_can_be_changed_before_a_graph_is_compiled(recorder: Recorder, tmp_path: Path) -> None:
    config = dumping(tmp_path)
    backend = get_npu_backend(compiler_config=config)
    config.dump_config.dump_step = "2"
    backend("g", [])
    config.dump_config.dump_step = "3"
    backend("h", [])
    config.dump_config.dump_step = "2"
    backend("i", [])
    assert [plan.steps for _, plan, _, _ in recorder.made] == [(StepRange(2, 2),), (StepRange(3, 3),)]
    assert [number for number, _, _, _ in recorder.compiled] == [0, 1, 0]


def test_options_of_torch_compile(recorder: Recorder, tmp_path: Path) -> None:
    config = CompilerConfig()
    config.mode = "npugraph_ex"
    backend = get_npu_backend(compiler_config=config)
    options = {
        "dump_tensor_data": True,
        "data_dump_dir": str(tmp_path),
        "data_dump_stage": "original",
        "inplace_pass": False,
    }
    backend("g", [], options=options)
    _, plan, used, _ = recorder.made[0]
    assert plan == DumpPlan(enabled=True, path=str(tmp_path), stage="original")
    assert used.debug.aclgraph.disable_reinplace_inplaceable_ops_pass
    assert not config.dump_config.enable_dump, "options of one compilation have changed the configuration"
    with pytest.raises(ValueError, match=r"invalid option 'dump', allowed options: .*'dump_tensor_data'"):
        backend("g", [], options={"dump": True})
    with pytest.raises(ValueError, match="enable_dump"):
        backend("g", [], options={"dump_tensor_data": "yes"})
    with pytest.raises(ValueError, match="disable_reinplace_inplaceable_ops_pass"):
        backend("g", [], options={"inplace_pass": "no"})


def test_wrong_options_are_found_at_once(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text('{"dump": {"dump_debug": "on"}}')
    config = CompilerConfig()
    config.dump_config.dump_config_path = str(tmp_path / "dump.json")
    for make in (get_npu_backend, get_compiler):
        with pytest.raises(ValueError, match="dump_config_path"):
            make(compiler_config=config)
        with pytest.raises(TypeError, match="CompilerConfig"):
            make(compiler_config={"mode": "max-autotune"})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        get_npu_backend(config)  # type: ignore[misc]


def test_a_compiler_of_one_graph(recorder: Recorder, tmp_path: Path) -> None:
    assert get_compiler()("g", []) == "compiled g"
    get_compiler(dumping(tmp_path))
    assert [(kind, plan.enabled) for kind, plan, _, _ in recorder.made] == [("compiler", False), ("compiler", True)]


def test_an_old_mode_is_warned_about(recorder: Recorder) -> None:
    config = CompilerConfig()
    config.mode = "reduce-overhead"
    for make in (get_npu_backend, get_compiler):
        with pytest.warns(DeprecationWarning, match="npugraph_ex") as warned:
            make(compiler_config=config)
        assert [one.filename for one in warned] == [__file__]


def test_options_that_do_nothing_here_are_told(recorder: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    config = CompilerConfig()
    assert _idle.idle_options(config) == []
    config.ge_config.oo_level = "O1"
    config.debug.aclgraph.clone_input = False
    config.debug.graph_dump.type = "py"
    config.aclgraph_config.use_custom_pool = 1
    config.export.unheard_of = 2
    idle = [
        "debug.aclgraph.clone_input",
        "export.unheard_of",
        "ge_config.oo_level",
        "aclgraph_config.use_custom_pool",
    ]
    assert _idle.idle_options(config) == idle
    with caplog.at_level(logging.DEBUG, logger="torchair"):
        get_npu_backend(compiler_config=config)
    assert [record.args for record in caplog.records] == [(name,) for name in idle]


def test_the_logger_knows_events(caplog: pytest.LogCaptureFixture) -> None:
    logger = torchair.logger
    assert (logger.name, logger.level, logging.getLevelName(35)) == ("torchair", logging.ERROR, "EVENT")
    with caplog.at_level(logging.WARNING, logger="torchair"):
        logger.event("graph %s", 1)
        for _ in range(2):
            logger.warning_once("only once, %s", "please")
        logger.warning_once("only once, %s", "thanks")
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (35, "graph 1"),
        (logging.WARNING, "only once, please"),
        (logging.WARNING, "only once, thanks"),
    ]


def test_what_is_for_ascend_devices_says_so() -> None:
    calls: list[Any] = [
        torchair.dynamo_export,
        lambda: torchair.use_internal_format_weight(None),
        torchair.register_replacement,
        torchair.npu_format_cast_via_cpu,
        torchair.ops.record,
        lambda: torchair.ops.wait([]),
        lambda: torchair.inference.readable_cache("x"),
        torchair.ge.Cast,
        torchair.ge.Tensor,
        lambda: torchair.llm_datadist.create_npu_tensors([], None, []),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match=r"torchair\.\S+ is not available in opscope: \S"):
            call()


def test_what_changes_nothing_is_accepted() -> None:
    @torchair.register_fx_node_ge_converter("aten.add.Tensor")
    def converter(x: torchair.ge.Tensor) -> int:
        return 1

    assert converter(None) == 1  # type: ignore[arg-type]
    torchair.patch_for_hcom()
    torchair.inference.set_dim_gears(None, {0: [1, 2]})
    scopes: list[contextlib.AbstractContextManager[None]] = [
        torchair.scope.npu_stream_switch("1", 3),
        torchair.scope.super_kernel("sp1", "stream-fusion=1"),
        torchair.scope.limit_core_num(4, 5),
        torchair.scope.op_never_timeout(True),
    ]
    for scope in scopes:
        with scope:
            pass
    assert torchair.scope.npu_wait_tensor(1, 2) == 1
    with pytest.raises(TypeError, match="enable"):
        torchair.scope.op_never_timeout(1)  # type: ignore[arg-type]
