"""`config.ge_config`."""

from __future__ import annotations

from opscope.torchair.configs._node import Node, Options, option
from opscope.torchair.configs._option import OptionValue
from opscope.torchair.configs.experimental_config import SORTING_MODES


class GEConfig(Node):
    """Options of the graph engine."""

    enable_single_stream = option(OptionValue, False, [True, False])
    oo_level = option(OptionValue, "O3", ["O1", "O3"])
    oo_constant_folding = option(OptionValue, None, [True, False])
    oo_dead_code_elimination = option(OptionValue, None, [True, False])
    export_compile_stat = option(OptionValue, "2", ["0", "1", "2"])
    aicore_num = option(OptionValue, None)
    optimization_switch = option(OptionValue, None)

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """With the graph engine's names."""
        found: Options = {
            "ge.enableSingleStream": _word(self.enable_single_stream),
            "ge.oo.level": self.oo_level.value,
            "ge.exportCompileStat": self.export_compile_stat.value,
        }
        if self.aicore_num.value is not None:
            found["ge.aicoreNum"] = self.aicore_num.value
        if self.oo_constant_folding.value is not None:
            found["ge.oo.constantFolding"] = _word(self.oo_constant_folding)
        if self.oo_dead_code_elimination.value is not None:
            found["ge.oo.deadCodeElimination"] = _word(self.oo_dead_code_elimination)
        if self.optimization_switch.value is not None:
            found["ge.optimizationSwitch"] = self.optimization_switch.value
        # Without optimisation operators keep their original order.
        is_plain = self.oo_level.value == "O1"
        return ({"ge.topoSortingMode": SORTING_MODES["StableRDFS"]} if is_plain else {}), found


def _word(value: OptionValue) -> str:
    return "true" if value else "false"
