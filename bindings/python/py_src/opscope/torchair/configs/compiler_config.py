"""`CompilerConfig`, the root of all options."""

from __future__ import annotations

from typing import Any

from opscope.torchair.configs._node import Node, Options, child, leaves, option
from opscope.torchair.configs._option import CallableValue, OptionValue
from opscope.torchair.configs.aclgraph_config import AclGraphConfig
from opscope.torchair.configs.aoe_config import AoeConfig
from opscope.torchair.configs.debug_config import DebugConfig
from opscope.torchair.configs.dump_config import DataDumpConfig
from opscope.torchair.configs.experimental_config import ExperimentalConfig
from opscope.torchair.configs.export_config import ExportConfig
from opscope.torchair.configs.fusion_config import FusionConfig
from opscope.torchair.configs.ge_config import GEConfig
from opscope.torchair.configs.inference_config import InferenceConfig
from opscope.torchair.configs.npugraphex_config import NpuGraphExConfig

__all__ = ["CompilerConfig"]


class CompilerConfig(Node):
    """All compilation options.

    Every TorchAir option is present and checks its values as there; `docs/torch/torchair.md` lists
    those with an effect on a CPU or a GPU.
    """

    debug = child(DebugConfig)
    aoe_config = child(AoeConfig)
    export = child(ExportConfig)
    dump_config = child(DataDumpConfig)
    fusion_config = child(FusionConfig)
    experimental_config = child(ExperimentalConfig)
    inference_config = child(InferenceConfig)
    ge_config = child(GEConfig)
    aclgraph_config = child(AclGraphConfig)
    npugraphex_config = child(NpuGraphExConfig)
    mode = option(OptionValue, "max-autotune", ["max-autotune", "reduce-overhead", "npugraph_ex"])
    post_grad_custom_pre_pass = option(CallableValue, None)
    post_grad_custom_post_pass = option(CallableValue, None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CompilerConfig):
            return False
        return dict(leaves(self)) == dict(leaves(other))

    # Unhashable, because equal configurations may differ later.
    __hash__ = None  # type: ignore[assignment]

    def as_dict(self, mode: Any = None) -> tuple[Options, Options]:
        """Local and global options with the graph engine's names, except callables."""
        local, of_process = super().as_dict(self.mode.value)
        for name in ("post_grad_custom_pre_pass", "post_grad_custom_post_pass"):
            local.pop(name, None)
        return local, of_process

    def _names(self) -> list[str]:
        # The two unchecked nodes cannot be replaced.
        return [name for name in super()._names() if name not in ("aclgraph_config", "npugraphex_config")]
