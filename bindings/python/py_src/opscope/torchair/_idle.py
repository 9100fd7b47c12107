"""Options that are accepted and do nothing here, and telling of them."""

from __future__ import annotations

from opscope.torchair.configs._node import leaves
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.core.utils import logger

# Options that the backend looks at; a name that ends in a dot stands for all below it.
EFFECTIVE = (
    "mode",
    "dump_config.",
    "debug.data_dump.",
    "debug.graph_dump.",
    "debug.fx_summary.",
    "debug.run_eagerly",
    "experimental_config.keep_inference_input_mutations",
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
)


def idle_options(config: CompilerConfig) -> list[str]:
    """Options that were given another value than their default and have no effect on a CPU or a GPU, in order."""
    usual = dict(leaves(CompilerConfig()))
    return [
        name
        for name, value in leaves(config)
        if not any(name.startswith(one) if one.endswith(".") else name == one for one in EFFECTIVE)
        and (name not in usual or value != usual[name])
    ]


def tell(config: CompilerConfig) -> None:
    """Logs a line for each of them, at the level for debugging."""
    for name in idle_options(config):
        logger.debug("config.%s is accepted and has no effect here", name)
