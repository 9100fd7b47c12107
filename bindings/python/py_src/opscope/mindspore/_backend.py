"""The `torch.compile` backend for a MindSpore configuration."""

from __future__ import annotations

import os
from typing import Any

from .. import _options

# The variable with the configuration's path.
CONFIG_VARIABLE = "MINDSPORE_DUMP_CONFIG"
# If this variable is `1`, the graph engine makes the dump.
GE_VARIABLE = "ENABLE_MS_GE_DUMP"


def backend(config: str | os.PathLike | None = None, target: str | None = None, **options: Any) -> Any:
    """A backend that dumps according to a MindSpore configuration, in the tree of `target`.

    `config` is a file, or the text of one; by default it is the file in `MINDSPORE_DUMP_CONFIG`,
    and if that is unset or empty, nothing is dumped. `target` is `cpu`, `gpu`, `ascend-o0`,
    `ascend-o1`, `ascend-o2` or `ge`; by default it is `ge` if `ENABLE_MS_GE_DUMP` is `1`, otherwise
    `cpu`. Other options are those of `opscope.torch.backend`. As in MindSpore, an invalid
    configuration raises `RuntimeError`.
    """
    try:
        from .. import torch as opscope_torch
    except ImportError as error:
        raise ImportError("opscope.mindspore.backend needs PyTorch, which cannot be imported") from error
    from .._native.capture import check_mindspore_file

    _options.path("config", config, is_optional=True)
    _options.string("target", target, is_optional=True)
    found = os.environ.get(CONFIG_VARIABLE) if config is None else config
    if not found:
        return opscope_torch.backend(**{**options, "enabled": False})
    if target is None:
        target = "ge" if os.environ.get(GE_VARIABLE) == "1" else "cpu"
    try:
        if config is None:
            check_mindspore_file(os.fspath(found))
        return opscope_torch.backend(mindspore_json=found, target=target, **options)
    except ValueError as error:
        raise RuntimeError(str(error)) from error
