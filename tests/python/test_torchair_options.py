"""Tests of the options of a `CompilerConfig`: accepted and refused values, and those passed to the graph engine."""

from __future__ import annotations

import copy
import pickle
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opscope.torchair import CompilerConfig
from opscope.torchair.configs._node import leaves

# Values of `dump_config`, with what `.value` is afterwards.
ACCEPTED = [
    ("enable_dump", True, "1"),
    ("enable_dump", False, "0"),
    ("enable_dump", 1, "1"),
    ("enable_dump", 0, "0"),
    ("quant_dumpable", True, "1"),
    ("quant_dumpable", 0, "0"),
    ("dump_mode", "input", "input"),
    ("dump_mode", "output", "output"),
    ("dump_mode", "all", "all"),
    ("dump_data", "tensor", "tensor"),
    ("dump_data", "stats", "stats"),
    ("data_dump_stage", "original", "original"),
    ("data_dump_stage", "optimized", "optimized"),
    ("dump_config_path", None, None),
    ("dump_step", None, ""),
    ("dump_step", "", ""),
    ("dump_step", "0", "0"),
    ("dump_step", "12", "12"),
    ("dump_step", "02|3|4", "02|3|4"),
    ("dump_step", "0-1", "0-1"),
    ("dump_step", "0|1|2-5|6", "0|1|2-5|6"),
    ("dump_step", "0|3-5|10", "0|3-5|10"),
    ("dump_step", "3-3", "3-3"),
    ("dump_step", "00", "00"),
    ("dump_step", "99999999999999999999999", "99999999999999999999999"),
    ("dump_step", "|".join(map(str, range(100))), "|".join(map(str, range(100)))),
    ("dump_layer", "", ""),
    ("dump_layer", "Add", "Add"),
    ("dump_layer", "Add_1Mul_1 Add5", "Add_1Mul_1 Add5"),
    ("dump_layer", "a/b\\c.d", "a/b\\c.d"),
    ("dump_layer", '"x"', '"x"'),
    ("dump_layer", " Add ", " Add "),
    ("dump_layer", "Add_1Mul_1/Square\\Add_2Add_3.Add_4 Add5", "Add_1Mul_1/Square\\Add_2Add_3.Add_4 Add5"),
    ("dump_layer", "layers.0.mlp", "layers.0.mlp"),
]

REFUSED = [
    ("enable_dump", "True", ValueError),
    ("enable_dump", None, ValueError),
    ("enable_dump", 2, ValueError),
    ("enable_dump", [True], ValueError),
    ("quant_dumpable", "1", ValueError),
    ("dump_mode", "none", ValueError),
    ("dump_mode", "ALL", ValueError),
    ("dump_mode", None, ValueError),
    ("dump_data", "csv", ValueError),
    ("data_dump_stage", "fused", ValueError),
    ("dump_path", None, FileNotFoundError),
    ("dump_path", "", FileNotFoundError),
    ("dump_path", "no/such/directory", FileNotFoundError),
    ("dump_path", __file__, FileNotFoundError),
    ("dump_path", "nul\0", FileNotFoundError),
    ("dump_path", 0, TypeError),
    ("dump_path", b"/tmp", TypeError),
    ("dump_config_path", "", ValueError),
    ("dump_config_path", "missing.json", FileNotFoundError),
    ("dump_config_path", __file__, FileNotFoundError),
    ("dump_config_path", str(Path(__file__).parent), FileNotFoundError),
    ("dump_config_path", 1, TypeError),
    ("dump_layer", None, TypeError),
    ("dump_layer", ["Add"], TypeError),
    *(
        ("dump_layer", text, ValueError)
        for text in ("Add|", "a-b", "a:0", "a,b", "naïve", "加", "a\tb", "(x)", "Add\n", "\u0660")
    ),
    ("dump_step", 5, TypeError),
    ("dump_step", ["0"], TypeError),
    ("dump_step", b"0", TypeError),
    *(
        ("dump_step", text, ValueError)
        for text in (
            # Those that TorchAir refuses as well.
            *("|0", "0||1", "02||||34", "1-", "-1", "--", "1--", "1--6", "0ad", "0|2&", "0 |1", " 0", "1-2|3-"),
            *("0|5-", "|", "||", "0||", "1.5", "+1", "0x1", "1_0", "all", "0,1", " ", "0 ", "\u00b2"),
            # Those that it accepts although nothing understands them.
            *("1-23-45", "5-3", "0\n", "\u0661", "12-\u0663", "|".join(map(str, range(101)))),
            *("0|" * 101, "10-9|1"),
        )
    ),
]


@pytest.mark.parametrize(("name", "value", "kept"), ACCEPTED)
def test_dump_options_accept(name: str, value: Any, kept: Any) -> None:
    config = CompilerConfig()
    setattr(config.dump_config, name, value)
    assert getattr(config.dump_config, name).value == kept


@pytest.mark.parametrize(("name", "value", "error"), REFUSED)
def test_dump_options_refuse(name: str, value: Any, error: type[Exception]) -> None:
    config = CompilerConfig()
    with pytest.raises(error, match=name) as raised:
        setattr(config.dump_config, name, value)
    assert type(raised.value) is error
    assert config == CompilerConfig(), "a refused value was kept"


@pytest.mark.parametrize(
    ("text", "kept"), [("0|", "0"), ("1|2|", "1|2"), ("1-2|", "1-2"), ("7|" * 100, "7|" * 99 + "7")]
)
def test_a_bar_at_the_end_is_left_out_with_a_warning(text: str, kept: str) -> None:
    config = CompilerConfig()
    with pytest.warns(UserWarning, match="bar at the end") as warned:
        config.dump_config.dump_step = text
    assert config.dump_config.dump_step.value == kept
    assert [one.filename for one in warned] == [__file__], "the warning is not about the program's own line"


@pytest.mark.parametrize(
    "text",
    ["1" * 999 + "a", "1-" * 500, "12" * 500_000 + "!", "1|" * 500_000 + "x", "1-1|" * 250_000, "-" * 1_000_000],
)
def test_a_malicious_step_is_refused_at_once(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match="dump_step") as raised:
        CompilerConfig().dump_config.dump_step = text
    # A regular expression that backtracks would take longer than the universe exists.
    assert time.process_time() - start < 1
    assert len(str(raised.value)) < 200


def test_paths_are_kept_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "dump.json").write_text("{}")
    config = CompilerConfig()
    for value in ("out", "./out/", str(tmp_path), tmp_path / "out"):
        config.dump_config.dump_path = value
        assert config.dump_config.dump_path.value == str(value)
    for value in ("dump.json", tmp_path / "dump.json"):
        config.dump_config.dump_config_path = value
        assert config.dump_config.dump_config_path.value == str(value)


# Other options, with the error or what `.value` is afterwards.
OTHERS = [
    ("mode", "reduce-overhead", "reduce-overhead"),
    ("mode", "npugraph_ex", "npugraph_ex"),
    ("mode", "default", ValueError),
    ("post_grad_custom_pre_pass", None, None),
    ("post_grad_custom_pre_pass", print, print),
    ("post_grad_custom_post_pass", "print", TypeError),
    ("debug.data_dump.type", "npy", "npy"),
    ("debug.data_dump.type", None, ValueError),
    ("debug.data_dump.type", "pt", ValueError),
    ("debug.data_dump.filter", "name", TypeError),
    ("debug.graph_dump.type", "txt", "txt"),
    ("debug.graph_dump.type", "pbtxt", "pbtxt"),
    ("debug.graph_dump.type", "py", "py"),
    ("debug.graph_dump.type", "json", ValueError),
    ("debug.graph_dump.path", None, TypeError),
    ("debug.fx_summary.type", "csv", "csv"),
    ("debug.fx_summary.skip_compile", False, "0"),
    ("debug.run_eagerly", True, "1"),
    ("debug.deadlock_check", "on", ValueError),
    ("debug.aclgraph.static_capture_size_limit", 1, "1"),
    ("debug.aclgraph.static_capture_size_limit", 0, ValueError),
    ("debug.aclgraph.static_capture_size_limit", 2**63, ValueError),
    ("debug.aclgraph.clone_input", False, "0"),
    ("export.export_mode", True, "1"),
    ("export.export_mode", "yes", ValueError),
    ("export.experimental.enable_lite_export", 1, "1"),
    ("aoe_config.aoe_mode", "2", "2"),
    ("aoe_config.aoe_mode", "1", ValueError),
    ("aoe_config.work_path", None, FileNotFoundError),
    ("aoe_config.aoe_config_file", "missing.json", FileNotFoundError),
    ("fusion_config.fusion_switch_file", __file__, __file__),
    ("fusion_config.fusion_switch_file", "missing.cfg", FileNotFoundError),
    ("fusion_config.fusion_switch_file", None, None),
    ("experimental_config.static_model_ops_lower_limit", 0, "0"),
    ("experimental_config.static_model_ops_lower_limit", -1, "-1"),
    ("experimental_config.static_model_ops_lower_limit", 2**63 - 1, str(2**63 - 1)),
    ("experimental_config.static_model_ops_lower_limit", -2, ValueError),
    ("experimental_config.static_model_ops_lower_limit", "-1", ValueError),
    ("experimental_config.static_model_ops_lower_limit", None, ValueError),
    ("experimental_config.jit_compile", "1", ValueError),
    ("experimental_config.topology_sorting_strategy", "StableRDFS", "StableRDFS"),
    ("experimental_config.topology_sorting_strategy", "bfs", ValueError),
    ("experimental_config.aot_config_output_loss_index", 3, "3"),
    ("experimental_config.aclgraph._aclnn_static_shape_kernel_sym_value_range", None, []),
    ("experimental_config.aclgraph._aclnn_static_shape_kernel_sym_value_range", (1, 2), (1, 2)),
    ("experimental_config.aclgraph._aclnn_static_shape_kernel_sym_value_range", [1, "2"], TypeError),
    ("experimental_config.aclgraph._aclnn_static_shape_kernel_sym_value_range", 1, TypeError),
    ("experimental_config.aclgraph._aclnn_static_shape_kernel_build_dir", 1, TypeError),
    ("experimental_config.aclgraph._super_kernel_optimize_options", {"a": "b"}, {"a": "b"}),
    ("experimental_config.aclgraph._super_kernel_optimize_options", [], TypeError),
    ("inference_config.dynamic_gears_merge_policy", "product", "product"),
    ("inference_config.dynamic_gears_merge_policy", "sum", ValueError),
    ("ge_config.oo_level", "O1", "O1"),
    ("ge_config.oo_level", "O2", ValueError),
    ("ge_config.oo_constant_folding", True, "1"),
    ("ge_config.oo_constant_folding", None, ValueError),
    ("ge_config.export_compile_stat", 2, ValueError),
    ("ge_config.aicore_num", "2|4", "2|4"),
]


@pytest.mark.parametrize(("path", "value", "expected"), OTHERS)
def test_other_options(path: str, value: Any, expected: Any) -> None:
    config = CompilerConfig()
    *nodes, last = path.split(".")
    node: Any = config
    for name in nodes:
        node = getattr(node, name)
    if isinstance(expected, type) and issubclass(expected, Exception):
        with pytest.raises(expected, match=last):
            setattr(node, last, value)
        assert config == CompilerConfig()
    else:
        setattr(node, last, value)
        assert getattr(node, last).value == expected


NODES: dict[str, Callable[[CompilerConfig], Any]] = {
    "CompilerConfig": lambda config: config,
    "DataDumpConfig": lambda config: config.dump_config,
    "DebugConfig": lambda config: config.debug,
    "DataDump": lambda config: config.debug.data_dump,
    "GEConfig": lambda config: config.ge_config,
    "ExperimentalConfig": lambda config: config.experimental_config,
}


@pytest.mark.parametrize("name", NODES)
def test_unknown_names_are_refused(name: str) -> None:
    node = NODES[name](CompilerConfig())
    with pytest.raises(ValueError, match=f"{name} has no option dump_steps, all options") as raised:
        node.dump_steps = "0"
    assert all(known in str(raised.value) for known in node._names())
    with pytest.raises(AttributeError):
        _ = node.dump_steps


def test_nodes_are_fixed() -> None:
    config = CompilerConfig()
    for value in (None, 1, CompilerConfig(), config.debug):
        with pytest.raises(TypeError, match="dump_config"):
            config.dump_config = value  # type: ignore[assignment]
    other = CompilerConfig()
    other.dump_config.enable_dump = True
    config.dump_config = other.dump_config
    assert config.dump_config.enable_dump
    for name in ("aclgraph_config", "npugraphex_config"):
        with pytest.raises(ValueError, match=name):
            setattr(config, name, None)


def test_unchecked_attributes() -> None:
    config = CompilerConfig()
    config.aclgraph_config.use_custom_pool = (1, 2)
    config.npugraphex_config.dump_tensor_data = "anything"
    config.export.export_name = "net"
    config.export.unheard_of = 1
    assert (config.aclgraph_config.use_custom_pool, config.export.unheard_of) == ((1, 2), 1)


def test_reading_an_option() -> None:
    option = CompilerConfig().dump_config.dump_mode
    assert (option.value, option.default, option.optional, bool(option)) == (
        "all",
        "all",
        ["input", "output", "all"],
        True,
    )
    switch = CompilerConfig().dump_config.enable_dump
    assert (switch.value, bool(switch), switch == True) == ("0", False, False)  # noqa: E712


def test_debug_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    for dump in (CompilerConfig().debug.graph_dump, CompilerConfig().debug.data_dump):
        assert (dump.path, dump.directory, dump.enabled) == (None, ".", False)
        dump.path = "link/new"
        assert dump.path == dump.directory == str(tmp_path.resolve() / "new")
        # msprobe assigns to the option itself.
        assert hasattr(dump, "_path")
        dump._path = "elsewhere"
        assert dump.path == "elsewhere"


def test_a_filter_is_kept_as_it_is() -> None:
    config = CompilerConfig()
    config.debug.data_dump.filter = print
    assert config.debug.data_dump.filter is print
    config.debug.data_dump.filter = None
    assert config.debug.data_dump.filter is None


def test_representation_shows_what_was_set() -> None:
    config = CompilerConfig()
    assert repr(config) == "CompilerConfig()"
    config.dump_config.enable_dump = True
    config.dump_config.dump_step = "0|1"
    config.debug.data_dump.filter = len
    assert repr(config) == (
        "CompilerConfig(debug=DebugConfig(data_dump=DataDump(filter=<built-in function len>)), "
        "dump_config=DataDumpConfig(enable_dump=True, dump_step='0|1'))"
    )
    assert repr(config.dump_config.dump_data) == "OptionValue('tensor', default='tensor', optional=['tensor', 'stats'])"


def test_configurations_are_compared_by_values_and_copied() -> None:
    first, second = CompilerConfig(), CompilerConfig()
    assert first == second
    first.ge_config.aicore_num = 4
    assert first != second
    for twin in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert twin == first
        twin.ge_config.aicore_num = 5
        assert first.ge_config.aicore_num.value == "4"
    assert first != "a configuration"


def test_the_graph_engine_is_told_the_defaults() -> None:
    assert CompilerConfig().as_dict() == (
        {
            "mode": "max-autotune",
            "run_eagerly": "0",
            "deadlock_check": "0",
            "disable_mempool_reuse_in_same_fx": "0",
            "enable_output_clone": "0",
            "static_capture_size_limit": "64",
            "clone_input": "1",
            "remove_noop_ops": "1",
            "pattern_fusion_pass": "1",
            "frozen_parameter": "0",
            "ge.tiling_schedule_optimize": "0",
            "ge.featureBaseRefreshable": "0",
            "ge.topoSortingMode": "1",
            "ge.jit_compile": "2",
        },
        {
            "ge.exec.enableEngineParallel": "0",
            "ge.enableSingleStream": "false",
            "ge.oo.level": "O3",
            "ge.exportCompileStat": "2",
        },
    )


def dump_keys(config: CompilerConfig) -> dict[str, Any]:
    """Returns the options passed to the graph engine beyond the defaults."""
    usual = CompilerConfig().as_dict()[1]
    return {key: value for key, value in config.as_dict()[1].items() if key not in usual}


def test_the_graph_engine_is_told_of_a_dump(tmp_path: Path) -> None:
    config = CompilerConfig()
    config.dump_config.dump_path = str(tmp_path)
    assert dump_keys(config) == {}
    config.dump_config.enable_dump = True
    at = f"{tmp_path}/worldsize1_global_rank0"
    least = {
        "ge.exec.enableDump": "1",
        "ge.exec.dumpPath": at,
        "ge.exec.dumpMode": "all",
        "ge.quant_dumpable": "0",
        "ge.exec.dumpData": "tensor",
    }
    assert dump_keys(config) == least
    assert list(tmp_path.iterdir()) == [], "telling has made directories"
    config.dump_config.dump_step = "0|1"
    config.dump_config.dump_layer = "Add"
    config.dump_config.dump_mode = "input"
    config.dump_config.quant_dumpable = True
    config.dump_config.dump_data = "stats"
    assert dump_keys(config) == {
        **least,
        "ge.exec.dumpMode": "input",
        "ge.quant_dumpable": "1",
        "ge.exec.dumpData": "stats",
        "ge.exec.dumpStep": "0|1",
        "ge.exec.dumpLayer": "Add",
    }
    for mode in ("reduce-overhead", "npugraph_ex"):
        config.mode = mode
        dumped = {key: value for key, value in config.as_dict()[1].items() if key.startswith("aclgraph.")}
        assert dumped == {
            "aclgraph.enableDump": "1",
            "aclgraph.dumpPath": at,
            "aclgraph.dumpStage": "optimized",
        }


@pytest.mark.parametrize("mode", ["max-autotune", "reduce-overhead", "npugraph_ex"])
def test_the_graph_engine_is_told_of_a_file_alone(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text("{}")
    config = CompilerConfig()
    config.mode = mode
    config.dump_config.dump_config_path = str(path)
    assert dump_keys(config) == {"ge_dump_with_acl_config": str(path)}


def test_the_graph_engine_is_told_of_other_options() -> None:
    config = CompilerConfig()
    config.ge_config.oo_level = "O1"
    config.ge_config.oo_constant_folding = False
    config.experimental_config.static_model_ops_lower_limit = 0
    config.aoe_config.aoe_mode = "2"
    config.export.export_mode = True
    config.post_grad_custom_pre_pass = print
    local, of_process = config.as_dict()
    assert local["ge.topoSortingMode"] == "3"
    assert local["ge.exec.static_model_ops_lower_limit"] == "0"
    assert (local["aoe_mode"], local["work_path"], local["export_path_dir"]) == ("2", "./", "./")
    assert of_process["ge.oo.constantFolding"] == "false"
    assert not any(callable(value) for value in local.values())
    config.mode = "npugraph_ex"
    config.experimental_config.aclgraph._super_kernel_optimize = True
    local, _ = config.as_dict()
    assert local["_super_kernel_optimize"] == "1"
    assert "ge.jit_compile" not in local


def test_the_page_about_options_has_every_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "torch" / "torchair.md").read_text(encoding="utf-8")
    names = [path for path, _ in leaves(CompilerConfig()) if not path.startswith("npugraphex_config.")]
    assert len(names) > 60
    # In a row by its whole path, or after a dot behind another of the same node; `_path` represents `path`.
    written = {name.replace("debug.fx_summary._path", "type").replace("._path", ".path") for name in names}
    assert [name for name in sorted(written) if not re.search(rf"`(\S*\.)?{name.split('.')[-1]}`", page)] == []
