"""Converts the options of `dump_config` to a plan."""

from __future__ import annotations

import os
from collections.abc import Iterable

from opscope.torchair import _acl_json, _dump_step
from opscope._plan import DumpPlan
from opscope._warning import warn
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.configs.dump_config import DataDumpConfig

# Options about the dump's contents, in the order of the documentation: those of both kinds of
# modes, those of graph mode, and those of the modes with captured graphs.
_OF_BOTH = ("dump_path",)
_OF_GRAPH_MODE = ("dump_mode", "quant_dumpable", "dump_step", "dump_layer", "dump_data")
_OF_CAPTURED = ("data_dump_stage",)


def lower(config: CompilerConfig) -> DumpPlan:
    """Converts a configuration's dump options to a plan.

    Raises `ValueError` for a wrong configuration file, `OSError` for a file that cannot be read.
    Warns of options without effect.
    """
    options = config.dump_config
    if options.dump_config_path.raw is not None:
        if not options.enable_dump:
            return _of_file(options)
        warn(
            f"dump_config_path (`{os.fspath(options.dump_config_path.raw)}`) without effect: enable_dump is set as "
            "well, so the other options of dump_config say what is dumped"
        )
    if not options.enable_dump:
        _warn_of_idle(options, (*_OF_BOTH, *_OF_GRAPH_MODE, *_OF_CAPTURED), "enable_dump is False: nothing is dumped")
        return DumpPlan(enabled=False)
    path = os.fspath(options.dump_path.raw)
    _check_directory(path)
    if config.mode.value != "max-autotune":
        _warn_of_idle(options, _OF_GRAPH_MODE, f"the mode is {config.mode.value}")
        return DumpPlan(enabled=True, path=path, stage=options.data_dump_stage.value)
    _warn_of_idle(options, _OF_CAPTURED, "the mode is max-autotune")
    return DumpPlan(
        enabled=True,
        path=path,
        mode=options.dump_mode.value,
        steps=_dump_step.parse(options.dump_step.value),
        # Duplicate names are dumped once.
        layers=tuple(dict.fromkeys(options.dump_layer.value.split())),
        data=options.dump_data.value,
        quant_dumpable=bool(options.quant_dumpable),
    )


def _of_file(options: DataDumpConfig) -> DumpPlan:
    path = os.fspath(options.dump_config_path.raw)
    others = (*_OF_BOTH, *_OF_GRAPH_MODE, *_OF_CAPTURED)
    _warn_of_idle(options, others, f"dump_config_path (`{path}`) says what is dumped, and enable_dump is False")
    file = _acl_json.load(path)
    return DumpPlan(enabled=file.kind is not None, acl_json=file)


def _set(options: DataDumpConfig, names: Iterable[str]) -> list[str]:
    return [name for name in names if getattr(options, name).raw != getattr(options, name).default]


def _warn_of_idle(options: DataDumpConfig, names: Iterable[str], why: str) -> None:
    idle = _set(options, names)
    if idle:
        warn(f"{', '.join(idle)} of dump_config without effect: {why}")


def _check_directory(path: str) -> None:
    if not os.path.isdir(path):
        raise FileNotFoundError(f"dump_path: `{path}` is not found or is not a file directory")
