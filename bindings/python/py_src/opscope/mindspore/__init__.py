"""MindSpore's dump configuration, for PyTorch models.

    import opscope.mindspore

    opscope.mindspore.set_dump(model.decoder)
    model = torch.compile(model, backend=opscope.mindspore.backend())

The file in `MINDSPORE_DUMP_CONFIG` says what to dump and where; without the variable nothing is
dumped. Importing this package does not import PyTorch.
"""

from __future__ import annotations

from ._backend import CONFIG_VARIABLE, backend
from ._flags import set_dump

__all__ = ["CONFIG_VARIABLE", "backend", "set_dump"]
