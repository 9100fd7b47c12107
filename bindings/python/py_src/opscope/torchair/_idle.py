"""Options that are accepted without effect, and logging them."""

from __future__ import annotations

from opscope.torchair.configs._node import leaves
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.core.utils import logger

# Options that the backend uses; a name that ends in a dot includes everything below it.
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
    """Options that differ from their default but have no effect on a CPU or a GPU, in order."""
    usual = dict(leaves(CompilerConfig()))
    return [
        name
        for name, value in leaves(config)
        if not any(name.startswith(known) if known.endswith(".") else name == known for known in EFFECTIVE)
        and (name not in usual or value != usual[name])
    ]


def tell(config: CompilerConfig) -> None:
    """Logs a line for each of them, at debug level."""
    for name in idle_options(config):
        logger.debug("config.%s is accepted and has no effect here", name)
