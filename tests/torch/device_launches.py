"""A program that shows which kernels are launched on CUDA, without a device.

Triton compiles for sm_90 with its own assembler; a driver of its own kind takes the launches, and this prints them as
JSON: the kernel, the number of programs, and the arguments, addresses as the names of their tensors.
"""

from __future__ import annotations

import json
from typing import Any

import torch
import triton
from opscope.torch._device import rows, triton_form
from triton.backends.compiler import GPUTarget

LAUNCHES: list[tuple[str, int, tuple[Any, ...]]] = []
PTX: set[str] = set()


class Launcher:
    """Takes the place of what calls the driver."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._name = source.fn.__name__

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, *others: Any) -> None:
        # Four of Triton's own come first.
        arguments = others[4:]
        assert (y, z, stream) == (1, 1, 7)
        LAUNCHES.append((self._name, x, arguments))


class Utils:
    """Answers to what loading a kernel asks of the driver."""

    def load_binary(self, *arguments: Any) -> tuple[int, int, int, int, int]:
        return 1, 2, 100, 0, 1024

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 200_000}

    def unload_module(self, module: int) -> None:
        """Nothing was loaded."""


class Driver:
    """A device that is not there."""

    launcher_cls = Launcher
    utils = Utils()

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 7

    def get_device_interface(self) -> Any:
        return torch.cuda


def main() -> None:
    triton.runtime.driver.set_active(Driver())
    form = triton_form.TritonForm()
    axes = (2, 3, 2, 3, 2)
    tensors = {
        "small": torch.zeros(1000),
        "one": torch.zeros(1),
        "large": torch.zeros(1 << 20),
        "strided": torch.zeros(30, 40).t(),
        # Copied first: two copies must not share memory.
        "far": torch.zeros(axes).permute(4, 2, 0, 3, 1),
        "far too": torch.zeros(axes).permute(4, 2, 0, 3, 1),
    }
    words = torch.zeros((len(tensors), rows.N_WORDS), dtype=torch.int64)
    names = {tensor.data_ptr(): name for name, tensor in tensors.items()} | {words.data_ptr(): "rows"}
    for _ in range(2):
        form.reduce(list(tensors.values()), words, has_histogram=False)
    for launcher in (form._small, form._parts, form._join):
        PTX.update(kernel.asm["ptx"] for kernel in launcher._compiled.values())
    told = []
    for kernel, n_programs, arguments in LAUNCHES:
        numbers = [argument for argument in arguments if type(argument) is int]
        told.append([kernel, n_programs, [names.get(n, n) for n in numbers]])
    print(json.dumps({"launches": told, "flushes": any(".ftz" in text for text in PTX)}))


if __name__ == "__main__":
    main()
