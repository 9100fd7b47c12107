"""`config.fusion_config`."""

from __future__ import annotations

from opscope.torchair.configs._node import Node, Options, option
from opscope.torchair.configs._option import FileValue


class FusionConfig(Node):
    """Options of the fusion of operators."""

    fusion_switch_file = option(FileValue, None)

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """With the graph engine's name."""
        path = self.fusion_switch_file.value
        return {}, ({} if path is None else {"ge.fusionSwitchFile": path})
