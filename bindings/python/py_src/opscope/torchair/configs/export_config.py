"""`config.export`."""

from __future__ import annotations

from typing import Any

from opscope.torchair.configs._node import Node, Options, child, option
from opscope.torchair.configs._option import MustExistedPathValue, OptionValue


class ExportExperimentalConfig(Node):
    """Options of an export that TorchAir may change."""

    enable_record_nn_module_stack = option(OptionValue, False, [True, False])
    auto_atc_config_generated = option(OptionValue, False, [True, False])
    enable_lite_export = option(OptionValue, False, [True, False])


class ExportConfig(Node):
    """Options of an export. Unknown names can be assigned too, as in TorchAir."""

    export_mode = option(OptionValue, False, [False, True])
    export_path_dir = option(MustExistedPathValue, "./")
    experimental = child(ExportExperimentalConfig)

    def __init__(self) -> None:
        super().__init__()
        self.__dict__.update(export_name=None, weight_name=None, inputs_name=None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._names():
            super().__setattr__(name, value)
        else:
            self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        # Tells type checkers that attributes of any name exist.
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """Export path and name, if anything is exported."""
        if not self.export_mode:
            return {}, {}
        return {"export_path_dir": self.export_path_dir.value, "export_name": self.export_name}, {}
