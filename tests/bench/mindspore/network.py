"""The network that both programs dump: residual blocks over small images, without any framework.

A convolution and a Relu, then blocks of `conv1`, `relu1`, `conv2`, an addition and `relu2`; a block that halves the
image has a third convolution, `shortcut`. At the end `pool`, `flatten` and a dense layer (`fc`, `bias`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BATCH = 2
N_CHANNELS, N_CLASSES = 3, 10
N_STEM = 16
POOL = 4


class Block(NamedTuple):
    """A residual block; `stride` 2 halves the image."""

    name: str
    n_in: int
    n_out: int
    stride: int


BLOCKS = (
    Block("stage1_block1", 16, 16, 1),
    Block("stage1_block2", 16, 16, 1),
    Block("stage2_block1", 16, 32, 2),
    Block("stage2_block2", 32, 32, 1),
    Block("stage3_block1", 32, 64, 2),
    Block("stage3_block2", 64, 64, 1),
)


def weights(size: int) -> dict[str, NDArray]:
    """Weights by name, for images of `size` pixels square, a multiple of 16.

    Kernels of convolutions are `[out, in, height, width]`, that of the dense layer `[in, out]`.
    """
    rng = np.random.default_rng(7)
    return {
        name: (rng.standard_normal(shape) * np.sqrt(1 / np.prod(shape[1:]))).astype(np.float32)
        for name, shape in _shapes(size)
    }


def images(size: int) -> NDArray:
    return np.random.default_rng(8).standard_normal((BATCH, N_CHANNELS, size, size)).astype(np.float32)


def _shapes(size: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "stem", (N_STEM, N_CHANNELS, 3, 3)
    for block in BLOCKS:
        yield f"{block.name}_conv1", (block.n_out, block.n_in, 3, 3)
        yield f"{block.name}_conv2", (block.n_out, block.n_out, 3, 3)
        if block.stride == 2:
            yield f"{block.name}_shortcut", (block.n_out, block.n_in, 1, 1)
    # Two blocks halve the image before it is pooled.
    yield "fc", (BLOCKS[-1].n_out * (size // 4 // POOL) ** 2, N_CLASSES)
    yield "bias", (1, N_CLASSES)
