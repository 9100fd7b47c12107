"""TorchAir's API for PyTorch on CPUs and GPUs.

    from opscope.torchair import CompilerConfig, get_npu_backend  # instead of: from torchair import …

A program that compiles with TorchAir's backend and dumps its graphs does the same here, without an
Ascend device. Importing this package does not import torch.
"""

from __future__ import annotations

from opscope.torchair import configs, core, ge, inference, llm_datadist, npugraph_ex, ops, scope
from opscope.torchair._absent import (
    dynamo_export,
    npu_format_cast_via_cpu,
    patch_for_hcom,
    register_fx_node_ge_converter,
    register_replacement,
    use_internal_format_weight,
)
from opscope.torchair._backend import get_backend, get_compiler, get_npu_backend
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.core.utils import logger

__all__ = [
    "CompilerConfig",
    "configs",
    "core",
    "dynamo_export",
    "ge",
    "get_backend",
    "get_compiler",
    "get_npu_backend",
    "inference",
    "llm_datadist",
    "logger",
    "npu_format_cast_via_cpu",
    "npugraph_ex",
    "ops",
    "patch_for_hcom",
    "register_fx_node_ge_converter",
    "register_replacement",
    "scope",
    "use_internal_format_weight",
]

npugraph_ex.register()
