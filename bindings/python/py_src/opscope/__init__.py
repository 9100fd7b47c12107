"""Where a model's computation goes wrong: dumps of every operator's inputs and outputs.

`opscope.open` reads a dump, tensor by tensor, as numpy's arrays; `opscope.convert` makes files of other kinds of it.
`opscope.compare` says where one dump stops being another, and `opscope.view` shows it as a page in the browser.
`opscope.acl` has the names of Huawei's pyACL and runs ONNX models on the CPU. `opscope.torch` dumps models of PyTorch
while `torch.compile` runs them. `opscope.torchair` has the names of TorchAir, Huawei's backend for `torch.compile`.
`opscope.mindspore` takes MindSpore's dump configurations for models of PyTorch. `opscope.cluster` compares and indexes
dumps on a Ray cluster.
`python -m opscope` is the command line.

Importing this package loads nothing else; what it offers is loaded when it is first asked for.
"""

from __future__ import annotations

# Without `open`: a star import would hide Python's own.
__all__ = [
    "AccessError",
    "ArrowTable",
    "Comparison",
    "Conversion",
    "DamagedError",
    "Dump",
    "FileError",
    "NotFoundError",
    "OpscopeError",
    "PassedOver",
    "Record",
    "Statistics",
    "UnsupportedError",
    "UsageError",
    "View",
    "__version__",
    "acl",
    "cluster",
    "compare",
    "convert",
    "mindspore",
    "torch",
    "torchair",
    "view",
]

_PACKAGES = ("acl", "cluster", "mindspore", "torch", "torchair")
# Where each name comes from.
_NAMES = {
    "AccessError": "_errors",
    "DamagedError": "_errors",
    "FileError": "_errors",
    "NotFoundError": "_errors",
    "OpscopeError": "_errors",
    "UnsupportedError": "_errors",
    "UsageError": "_errors",
    "ArrowTable": "_table",
    "Comparison": "_compare",
    "compare": "_compare",
    "Conversion": "_convert",
    "convert": "_convert",
    "Dump": "_dump",
    "open": "_dump",
    "PassedOver": "_passed_over",
    "Record": "_record",
    "Statistics": "_statistics",
    "View": "_view",
    "view": "_view",
    "__version__": "_native",
}


def __getattr__(name: str) -> object:
    import importlib

    if name in _PACKAGES:
        return importlib.import_module(f"opscope.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"opscope.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_NAMES})
