"""Where a model's computation goes wrong: dumps of every operator's inputs and outputs.

`opscope.open` reads a dump, tensor by tensor, as numpy arrays; `opscope.convert` converts it to
files of other kinds. `opscope.compare` finds where two dumps diverge, and `opscope.view` shows them
in the browser. `opscope.acl` implements Huawei's pyACL and runs ONNX models on the CPU.
`opscope.torch` dumps PyTorch models while `torch.compile` runs them. `opscope.torchair` implements
TorchAir, Huawei's backend for `torch.compile`. `opscope.mindspore` applies MindSpore's dump
configurations to PyTorch models. `opscope.cluster` compares and indexes dumps on a Ray cluster.
`python -m opscope` is the command line.

Importing this package loads nothing else; its contents load on first use.
"""

from __future__ import annotations

# `open` is missing: a star import would shadow Python's own.
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
# The module of each name.
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
