"""ResNet-18 and -50 as PyTorch's exporter lays them out, 49 and 122 operators; batch norm is part of convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .graph import Generated, Graph
from .qdq import quantised

# Graph, input, scope, channels in, channels within, stride.
Block = Callable[[Graph, str, str, int, int, int], str]

N_CLASSES = 1000
EXPANSION = 4


def resnet18(size: int = 224) -> Generated:
    return _resnet(Graph("main_graph", seed=18), size, (2, 2, 2, 2), _basic_block, 1)


def resnet50(is_full: bool) -> Generated:
    """At full size 25.6 million weights; else an eighth of the channels and an image of 32 by 32."""
    graph = Graph("main_graph", seed=50)
    return _resnet(graph, 224 if is_full else 32, (3, 4, 6, 3), _bottleneck, EXPANSION, 64 if is_full else 8)


def resnet50_qdq(is_full: bool) -> Generated:
    """The same in eight bits."""
    single = resnet50(is_full)
    return Generated(quantised(single.model), single.input_sets)


def _resnet(
    graph: Graph, size: int, n_blocks: Sequence[int], make_block: Block, expansion: int, width: int = 64
) -> Generated:
    x = graph.input("input", np.float32, [1, 3, size, size])
    x = _relu(graph, _conv(graph, x, "/conv1", 3, width, kernel=7, stride=2), "/relu/Relu")
    pooling = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2], "dilations": [1, 1], "ceil_mode": 0}
    x = graph.node("MaxPool", [x], "/maxpool/MaxPool", **pooling)
    n_in = width
    for stage, n_in_stage in enumerate(n_blocks, 1):
        n_out = width << (stage - 1)
        for block in range(n_in_stage):
            stride = 2 if stage > 1 and block == 0 else 1
            x = make_block(graph, x, f"/layer{stage}/layer{stage}.{block}", n_in, n_out, stride)
            n_in = n_out * expansion
    x = graph.node("GlobalAveragePool", [x], "/avgpool/GlobalAveragePool")
    x = graph.node("Flatten", [x], "/Flatten", axis=1)
    weight = graph.random("fc.weight", [N_CLASSES, n_in])
    bias = graph.random("fc.bias", [N_CLASSES], scale=0.1)
    graph.node("Gemm", [x, weight, bias], "/fc/Gemm", output="output", alpha=1.0, beta=1.0, transB=1)
    graph.output("output", np.float32, [1, N_CLASSES])
    image = graph.rng.standard_normal([1, 3, size, size]).astype(np.float32)
    return Generated(graph.model(), {"sample": {"input": image}})


def _basic_block(graph: Graph, x: str, scope: str, n_in: int, n_out: int, stride: int) -> str:
    y = _relu(graph, _conv(graph, x, f"{scope}/conv1", n_in, n_out, kernel=3, stride=stride), f"{scope}/relu/Relu")
    y = _conv(graph, y, f"{scope}/conv2", n_out, n_out, kernel=3, stride=1)
    if stride != 1:
        x = _conv(graph, x, f"{scope}/downsample/downsample.0", n_in, n_out, kernel=1, stride=stride)
    return _relu(graph, graph.node("Add", [y, x], f"{scope}/Add"), f"{scope}/relu_1/Relu")


def _bottleneck(graph: Graph, x: str, scope: str, n_in: int, n_out: int, stride: int) -> str:
    y = _relu(graph, _conv(graph, x, f"{scope}/conv1", n_in, n_out, kernel=1, stride=1), f"{scope}/relu/Relu")
    y = _relu(graph, _conv(graph, y, f"{scope}/conv2", n_out, n_out, kernel=3, stride=stride), f"{scope}/relu_1/Relu")
    y = _conv(graph, y, f"{scope}/conv3", n_out, n_out * EXPANSION, kernel=1, stride=1)
    if n_in != n_out * EXPANSION:
        x = _conv(graph, x, f"{scope}/downsample/downsample.0", n_in, n_out * EXPANSION, kernel=1, stride=stride)
    return _relu(graph, graph.node("Add", [y, x], f"{scope}/Add"), f"{scope}/relu_2/Relu")


def _conv(graph: Graph, x: str, scope: str, n_in: int, n_out: int, kernel: int, stride: int) -> str:
    weight = graph.random(f"{scope[1:]}.weight", [n_out, n_in, kernel, kernel])
    bias = graph.random(f"{scope[1:]}.bias", [n_out], scale=0.1)
    return graph.node(
        "Conv",
        [x, weight, bias],
        f"{scope}/Conv",
        kernel_shape=[kernel, kernel],
        strides=[stride, stride],
        pads=[kernel // 2] * 4,
        dilations=[1, 1],
        group=1,
    )


def _relu(graph: Graph, x: str, name: str) -> str:
    return graph.node("Relu", [x], name)
