"""`config.experimental_config`."""

from __future__ import annotations

from opscope.torchair.configs._node import Node, Options, child, option
from opscope.torchair.configs._option import (
    DictOptionValue,
    IntListValue,
    IntRangeValue,
    OptionValue,
    StrOptionValue,
)

INT64_MAX = 2**63 - 1
# The graph engine's numbers of operator orders.
SORTING_MODES = {"BFS": "0", "DFS": "1", "RDFS": "2", "StableRDFS": "3"}


class AclGraphExperimentalConfig(Node):
    """Options of captured graphs that TorchAir may change."""

    _aclnn_static_shape_kernel = option(OptionValue, False, [True, False])
    _aclnn_static_shape_kernel_build_dir = option(StrOptionValue, None)
    _aclnn_static_shape_kernel_sym_value_range = option(IntListValue, None)
    _aclnn_static_shape_kernel_sym_index = option(IntRangeValue, 0, 0, INT64_MAX)
    _super_kernel_optimize = option(OptionValue, False, [True, False])
    _super_kernel_optimize_options = option(DictOptionValue, None)
    _super_kernel_debug_options = option(DictOptionValue, None)

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """Options that belong to a switch are included only if it is on."""
        local: Options = {}
        if mode == "max-autotune":
            return local, {}
        if self._aclnn_static_shape_kernel:
            local["_aclnn_static_shape_kernel"] = "1"
            local["_aclnn_static_shape_kernel_build_dir"] = self._aclnn_static_shape_kernel_build_dir.value or ""
            for name in ("_aclnn_static_shape_kernel_sym_value_range", "_aclnn_static_shape_kernel_sym_index"):
                local[name] = getattr(self, name).value
        if self._super_kernel_optimize:
            local["_super_kernel_optimize"] = "1"
            for name in ("_super_kernel_optimize_options", "_super_kernel_debug_options"):
                if getattr(self, name).value is not None:
                    local[name] = getattr(self, name).value
        return local, {}


class ExperimentalConfig(Node):
    """Options that TorchAir may change."""

    cc_parallel_enable = option(OptionValue, False, [False, True])
    keep_inference_input_mutations = option(OptionValue, True, [True, False])
    memory_efficiency = option(OptionValue, False, [True, False])
    frozen_parameter = option(OptionValue, False, [True, False])
    static_model_ops_lower_limit = option(IntRangeValue, None, -1, INT64_MAX)
    jit_compile = option(OptionValue, "auto", ["auto"])
    npu_fx_pass = option(OptionValue, False, [True, False])
    aot_config_enable_joint_graph = option(OptionValue, False, [True, False])
    aot_config_output_loss_index = option(OptionValue, 0)
    topology_sorting_strategy = option(OptionValue, "DFS", list(SORTING_MODES))
    enable_ref_data = option(OptionValue, False, [True, False])
    enable_view_optimize = option(OptionValue, True, [True, False])
    remove_noop_ops = option(OptionValue, True, [True, False])
    tiling_schedule_optimize = option(OptionValue, False, [True, False])
    pattern_fusion_pass = option(OptionValue, True, [True, False])
    aclgraph = child(AclGraphExperimentalConfig)

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """With the graph engine's names."""
        local: Options = {
            name: getattr(self, name).value for name in ("remove_noop_ops", "pattern_fusion_pass", "frozen_parameter")
        }
        if mode != "max-autotune":
            below = self.aclgraph.as_dict(mode)
            local.update(below[0])
            return local, below[1]
        local["ge.tiling_schedule_optimize"] = "1" if self.tiling_schedule_optimize else "0"
        local["ge.featureBaseRefreshable"] = "1" if self.memory_efficiency else "0"
        local["ge.topoSortingMode"] = SORTING_MODES[self.topology_sorting_strategy.value]
        # `auto` is the only value of `jit_compile`.
        local["ge.jit_compile"] = "2"
        if self.static_model_ops_lower_limit.value is not None:
            local["ge.exec.static_model_ops_lower_limit"] = self.static_model_ops_lower_limit.value
        return local, {"ge.exec.enableEngineParallel": "1" if self.cc_parallel_enable else "0"}
