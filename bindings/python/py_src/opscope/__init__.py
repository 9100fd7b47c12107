"""Where a model's computation goes wrong: dumps of every operator's inputs and outputs.

`opscope.acl` has the names of Huawei's pyACL and runs ONNX models on the CPU. `opscope.torch` dumps models of PyTorch
while `torch.compile` runs them. `opscope.torchair` has the names of TorchAir, Huawei's backend for `torch.compile`.
`opscope.mindspore` takes MindSpore's dump configurations for models of PyTorch.

Importing this package loads nothing else; what it offers is loaded when it is first asked for.
"""

from __future__ import annotations

__all__ = ["__version__", "acl", "mindspore", "torch", "torchair"]


def __getattr__(name: str) -> object:
    import importlib

    if name in ("acl", "mindspore", "torch", "torchair"):
        return importlib.import_module(f"opscope.{name}")
    if name == "__version__":
        return importlib.import_module("opscope._native").__version__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
