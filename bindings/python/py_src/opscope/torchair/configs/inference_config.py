"""`config.inference_config`."""

from __future__ import annotations

from opscope.torchair.configs._node import Node, Options, option
from opscope.torchair.configs._option import OptionValue


class InferenceConfig(Node):
    """Options of inference."""

    dynamic_gears_merge_policy = option(OptionValue, "zip", ["zip", "product"])

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """Empty: not passed to the graph engine."""
        return {}, {}
