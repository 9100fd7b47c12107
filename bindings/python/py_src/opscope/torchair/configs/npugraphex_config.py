"""`config.npugraphex_config`, and the options of `torch.compile(options=…)`.

These options have other names than those of a `CompilerConfig`, and some the opposite meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opscope.torchair.configs._node import PlainNode

# Option of `torch.compile`, option of a configuration, and whether the meaning is inverted.
_PLACES: dict[str, tuple[str, bool]] = {
    "_vllm_aclnn_static_kernel_sym_index": (
        "experimental_config.aclgraph._aclnn_static_shape_kernel_sym_index",
        False,
    ),
    "_vllm_aclnn_static_kernel_sym_range": (
        "experimental_config.aclgraph._aclnn_static_shape_kernel_sym_value_range",
        False,
    ),
    "capture_limit": ("debug.aclgraph.static_capture_size_limit", False),
    "clone_input": ("debug.aclgraph.clone_input", False),
    "clone_output": ("debug.aclgraph.enable_output_clone", False),
    "data_dump_dir": ("dump_config.dump_path", False),
    "data_dump_stage": ("dump_config.data_dump_stage", False),
    "dump_tensor_data": ("dump_config.enable_dump", False),
    "force_eager": ("debug.run_eagerly", False),
    "frozen_parameter": ("experimental_config.frozen_parameter", False),
    "inplace_pass": ("debug.aclgraph.disable_reinplace_inplaceable_ops_pass", True),
    "input_inplace_pass": ("debug.aclgraph.disable_reinplace_input_mutated_ops_pass", True),
    "pattern_fusion_pass": ("experimental_config.pattern_fusion_pass", False),
    "post_grad_custom_post_pass": ("post_grad_custom_post_pass", False),
    "post_grad_custom_pre_pass": ("post_grad_custom_pre_pass", False),
    "remove_cat_ops": ("debug.aclgraph.remove_cat_ops", False),
    "remove_noop_ops": ("experimental_config.remove_noop_ops", False),
    "reuse_graph_pool_in_same_fx": ("debug.aclgraph.disable_mempool_reuse_in_same_fx", True),
    "static_kernel_compile": ("experimental_config.aclgraph._aclnn_static_shape_kernel", False),
    "super_kernel_debug_options": ("experimental_config.aclgraph._super_kernel_debug_options", False),
    "super_kernel_optimize": ("experimental_config.aclgraph._super_kernel_optimize", False),
    "super_kernel_optimize_options": ("experimental_config.aclgraph._super_kernel_optimize_options", False),
    "use_graph_pool": ("aclgraph_config.use_custom_pool", False),
}

# Names of the options of `torch.compile`.
OPTIONS = frozenset(_PLACES)


class NpuGraphExConfig(PlainNode):
    """Unchecked options of the newer backend, which a program sets by `torch.compile(options=…)`.
    """

    def __init__(self) -> None:
        self.force_eager: Any = False
        self.use_graph_pool: Any = None
        self.reuse_graph_pool_in_same_fx: Any = True
        self.capture_limit: Any = 64
        self.clone_input: Any = True
        self.clone_output: Any = False
        self.static_kernel_compile: Any = False
        self.super_kernel_optimize: Any = False
        self.super_kernel_optimize_options: Any = None
        self.super_kernel_debug_options: Any = None
        self.frozen_parameter: Any = False
        self.remove_noop_ops: Any = True
        self.remove_cat_ops: Any = True
        self.inplace_pass: Any = True
        self.input_inplace_pass: Any = True
        self.pattern_fusion_pass: Any = True
        self.post_grad_custom_pre_pass: Any = None
        self.post_grad_custom_post_pass: Any = None
        self.dump_tensor_data: Any = False
        self.data_dump_stage: Any = "optimized"
        self.data_dump_dir: Any = "./"


def assign(config: Any, options: Mapping[str, Any]) -> None:
    """Assigns `torch.compile` options to a configuration; raises the options' errors."""
    for name, value in options.items():
        if name not in _PLACES:
            raise ValueError(f"invalid option {name!r}, allowed options: {sorted(_PLACES)}")
        path, is_opposite = _PLACES[name]
        *nodes, last = path.split(".")
        node = config
        for part in nodes:
            node = getattr(node, part)
        # A non-boolean value is passed to the option unchanged, which refuses it.
        setattr(node, last, not value if is_opposite and value in (0, 1) else value)
