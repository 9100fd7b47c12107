"""MobileNetV3-Large as PyTorch's exporter lays it out: depthwise convolutions, squeeze-and-excitation, HardSwish."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .graph import Generated, Graph
from .layers import conv, gemm


@dataclass(frozen=True)
class Block:
    kernel: int
    n_expanded: int
    n_out: int
    has_squeeze: bool
    activation: str
    stride: int


BLOCKS = (
    Block(3, 16, 16, False, "Relu", 1),
    Block(3, 64, 24, False, "Relu", 2),
    Block(3, 72, 24, False, "Relu", 1),
    Block(5, 72, 40, True, "Relu", 2),
    Block(5, 120, 40, True, "Relu", 1),
    Block(5, 120, 40, True, "Relu", 1),
    Block(3, 240, 80, False, "HardSwish", 2),
    Block(3, 200, 80, False, "HardSwish", 1),
    Block(3, 184, 80, False, "HardSwish", 1),
    Block(3, 184, 80, False, "HardSwish", 1),
    Block(3, 480, 112, True, "HardSwish", 1),
    Block(3, 672, 112, True, "HardSwish", 1),
    Block(5, 672, 160, True, "HardSwish", 2),
    Block(5, 960, 160, True, "HardSwish", 1),
    Block(5, 960, 160, True, "HardSwish", 1),
)
N_STEM = 16
DIVISOR = 8


def mobilenet_v3(is_full: bool) -> Generated:
    """At full size 5.5 million weights; else a quarter of the channels and an image of 64 by 64."""
    graph = Graph("main_graph", seed=3)
    share = 1 if is_full else 4
    size, n_hidden, n_classes = (224, 1280, 1000) if is_full else (64, 64, 10)
    x = graph.input("input", np.float32, ["batch", 3, size, size])
    n_in = N_STEM // share
    x = _layer(graph, x, "/features/features.0", "HardSwish", 3, n_in, 3, stride=2)
    for idx, block in enumerate(BLOCKS, 1):
        n_out = block.n_out // share
        x = _block(graph, x, f"/features/features.{idx}", block, n_in, block.n_expanded // share, n_out)
        n_in = n_out
    n_last = 6 * n_in
    x = _layer(graph, x, f"/features/features.{len(BLOCKS) + 1}", "HardSwish", n_in, n_last, 1)
    x = graph.op("GlobalAveragePool", [x], "/avgpool")
    x = graph.op("Flatten", [x], axis=1)
    x = graph.op(
        "HardSwish", [gemm(graph, x, "/classifier/classifier.0", n_last, n_hidden)], "/classifier/classifier.1"
    )
    graph.output(
        gemm(graph, x, "/classifier/classifier.3", n_hidden, n_classes, "output"), np.float32, ["batch", n_classes]
    )
    image = graph.rng.standard_normal([1, 3, size, size]).astype(np.float32)
    return Generated(graph.model(), {"sample": {"input": image}})


def _layer(
    graph: Graph,
    x: str,
    scope: str,
    activation: str,
    n_in: int,
    n_out: int,
    kernel: int,
    stride: int = 1,
    group: int = 1,
) -> str:
    x = conv(graph, x, f"{scope}/{scope.split('/')[-1]}.0", n_in, n_out, kernel, stride, kernel // 2, group)
    return graph.op(activation, [x], f"{scope}/{scope.split('/')[-1]}.2")


def _block(graph: Graph, x: str, scope: str, block: Block, n_in: int, n_expanded: int, n_out: int) -> str:
    y = x
    if n_expanded != n_in:
        y = _layer(graph, y, f"{scope}/block/expand", block.activation, n_in, n_expanded, 1)
    y = _layer(
        graph,
        y,
        f"{scope}/block/depthwise",
        block.activation,
        n_expanded,
        n_expanded,
        block.kernel,
        block.stride,
        n_expanded,
    )
    if block.has_squeeze:
        y = _squeeze(graph, y, f"{scope}/block/squeeze", n_expanded)
    y = conv(graph, y, f"{scope}/block/project", n_expanded, n_out, 1)
    return graph.op("Add", [y, x], scope) if block.stride == 1 and n_in == n_out else y


def _squeeze(graph: Graph, x: str, scope: str, n: int) -> str:
    n_squeezed = max(DIVISOR, (n // 4 + DIVISOR // 2) // DIVISOR * DIVISOR)
    y = graph.op("GlobalAveragePool", [x], f"{scope}/avgpool")
    y = graph.op("Relu", [conv(graph, y, f"{scope}/fc1", n, n_squeezed, 1)], f"{scope}/activation")
    y = conv(graph, y, f"{scope}/fc2", n_squeezed, n, 1)
    y = graph.op("HardSigmoid", [y], f"{scope}/scale_activation", alpha=1 / 6)
    return graph.op("Mul", [y, x], scope)
