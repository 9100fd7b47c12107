"""`config.aoe_config`."""

from __future__ import annotations

from opscope.torchair.configs._node import Node, Options, option
from opscope.torchair.configs._option import FileValue, MustExistedPathValue, OptionValue


class AoeConfig(Node):
    """Options of automatic tuning."""

    aoe_mode = option(OptionValue, None, ["2"])
    work_path = option(MustExistedPathValue, "./")
    aoe_config_file = option(FileValue, None)

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """Empty unless a mode was chosen."""
        return ({}, {}) if self.aoe_mode.value is None else super().as_dict(mode)
