"""`config.dump_config`: what a graph dumps while it runs."""

from __future__ import annotations

import os
import re

from opscope.torchair import _dump_step, _layout
from opscope._warning import warn
from opscope.torchair.configs._node import Node, Options, option
from opscope.torchair.configs._option import MustExistedFileAddr, MustExistedPathValue, OptionValue, ParsedValue

_LAYER = re.compile(r'[0-9A-Za-z_" /\\.]*')


def _kept_step(text: str) -> str:
    _dump_step.parse(text)
    if not _dump_step.has_trailing_bar(text):
        return text
    warn(f"dump_step: the bar at the end of `{_dump_step.short(text)}` is ignored")
    return text[:-1]


def _kept_layer(text: str) -> str:
    if not _LAYER.fullmatch(text):
        wrong = next(c for c in text if not _LAYER.fullmatch(c))
        raise ValueError(
            f'{wrong!r} is not allowed: names of operators consist of letters, digits and _ . / \\ " '
            "and are separated by blanks"
        )
    return text


class DataDumpConfig(Node):
    """Options of the dump in graph mode."""

    enable_dump = option(OptionValue, False, [False, True])
    dump_path = option(MustExistedPathValue, "./")
    dump_mode = option(OptionValue, "all", ["input", "output", "all"])
    quant_dumpable = option(OptionValue, False, [False, True])
    dump_step = option(ParsedValue, "", _kept_step, "0|1|2-5|6", none_is_empty=True)
    dump_layer = option(ParsedValue, "", _kept_layer, "Mul_1 Add1 Conv2D_1")
    dump_data = option(OptionValue, "tensor", ["tensor", "stats"])
    dump_config_path = option(MustExistedFileAddr, None)
    data_dump_stage = option(OptionValue, "optimized", ["original", "optimized"])

    def full_path(self) -> str:
        """Directory of this process below `dump_path`. It is created on the first write, not here.
        """
        return _layout.rank_directory(os.fspath(self.dump_path.raw), _layout.world())

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """Global options; there are no local ones."""
        found: Options = {}
        if self.dump_config_path.value is not None:
            found["ge_dump_with_acl_config"] = self.dump_config_path.value
        if not self.enable_dump:
            return {}, found
        if mode == "max-autotune":
            found["ge.exec.enableDump"] = "1"
            found["ge.exec.dumpPath"] = self.full_path()
            found["ge.exec.dumpMode"] = self.dump_mode.value
            found["ge.quant_dumpable"] = "1" if self.quant_dumpable else "0"
            if self.dump_step.value != "":
                found["ge.exec.dumpStep"] = self.dump_step.value
            if self.dump_layer.value != "":
                found["ge.exec.dumpLayer"] = self.dump_layer.value
            found["ge.exec.dumpData"] = self.dump_data.value
        else:
            found["aclgraph.enableDump"] = "1"
            found["aclgraph.dumpPath"] = self.full_path()
            found["aclgraph.dumpStage"] = self.data_dump_stage.value
        return {}, found
