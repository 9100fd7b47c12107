"""MindSpore's way to ask for a dump, for models of PyTorch.

    import opscope.mindspore

    opscope.mindspore.set_dump(model.decoder)
    model = torch.compile(model, backend=opscope.mindspore.backend())

The file that `MINDSPORE_DUMP_CONFIG` names says what to dump and where to; without the variable nothing is dumped.
Importing this package does not import PyTorch.
"""

from __future__ import annotations

from ._backend import CONFIG_VARIABLE, backend
from ._flags import set_dump

__all__ = ["CONFIG_VARIABLE", "backend", "set_dump"]
