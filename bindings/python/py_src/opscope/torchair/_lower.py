"""From the options of `dump_config` to a plan."""

from __future__ import annotations

import os
import warnings

from opscope.torchair import _acl_json, _dump_step
from opscope.torchair._plan import DumpPlan
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.configs.dump_config import DataDumpConfig

# Options that say what is dumped, in the order of the documentation.
_WHAT = (
    "dump_path",
    "dump_mode",
    "quant_dumpable",
    "dump_step",
    "dump_layer",
    "dump_data",
    "data_dump_stage",
)


def lower(config: CompilerConfig) -> DumpPlan:
    """What the dump options of a configuration ask for.

    Raises `ValueError` for options that exclude each other and for a wrong configuration file, `OSError` for a
    directory or file that went away or cannot be used.
    """
    options = config.dump_config
    if options.dump_config_path.raw is not None:
        return _lower_file(options)
    if not options.enable_dump:
        _warn_of_idle(options)
        return DumpPlan()
    path = os.fspath(options.dump_path.raw)
    _check_directory(path)
    if config.mode.value != "max-autotune":
        return DumpPlan(enabled=True, path=path, stage=options.data_dump_stage.value)
    return DumpPlan(
        enabled=True,
        path=path,
        mode=options.dump_mode.value,
        steps=_dump_step.parse(options.dump_step.value),
        # A name that is there twice is dumped once.
        layers=tuple(dict.fromkeys(options.dump_layer.value.split())),
        data=options.dump_data.value,
        quant_dumpable=bool(options.quant_dumpable),
    )


def _lower_file(options: DataDumpConfig) -> DumpPlan:
    others = [name for name in ("enable_dump", *_WHAT) if _is_set(options, name)]
    path = os.fspath(options.dump_config_path.raw)
    if others:
        raise ValueError(
            f"dump_config_path (`{path}`) is set together with {', '.join(others)}: in TorchAir one of the two "
            "silently takes the place of the other. Say in the file what is dumped and leave the other options as "
            "they are, enable_dump too, or leave out dump_config_path"
        )
    return DumpPlan(enabled=True, acl_json=_acl_json.load(path))


def _is_set(options: DataDumpConfig, name: str) -> bool:
    option = getattr(options, name)
    return bool(option.raw != option.default)


def _warn_of_idle(options: DataDumpConfig) -> None:
    idle = [name for name in _WHAT if _is_set(options, name)]
    if idle:
        warnings.warn(
            f"nothing is dumped: {', '.join(idle)} of dump_config set, but enable_dump is False",
            stacklevel=4,
        )


def _check_directory(path: str) -> None:
    if not os.path.isdir(path):
        raise FileNotFoundError(f"dump_path: `{path}` is not found or is not a file directory")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(f"dump_path: `{path}` cannot be read and written")
