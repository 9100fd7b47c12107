"""Layers that several architectures share, spelt as PyTorch's exporter spells them."""

from __future__ import annotations

import numpy as np

from .graph import Graph


def weight_name(scope: str, part: str) -> str:
    """`/blocks.0/attn` and `bias` give `blocks.0.attn.bias`."""
    return f"{scope[1:].replace('/', '.')}.{part}"


def conv(
    graph: Graph, x: str, scope: str, n_in: int, n_out: int, kernel: int, stride: int = 1, pad: int = 0, group: int = 1
) -> str:
    weight = graph.random(weight_name(scope, "weight"), [n_out, n_in // group, kernel, kernel])
    bias = graph.random(weight_name(scope, "bias"), [n_out], scale=0.1)
    sizes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4, "dilations": [1, 1]}
    return graph.op("Conv", [x, weight, bias], scope, group=group, **sizes)


def linear(graph: Graph, x: str, scope: str, n_in: int, n_out: int) -> str:
    """MatMul by the weight that the exporter has transposed, and Add."""
    weight = graph.random(weight_name(scope, "weight"), [n_in, n_out], scale=n_in**-0.5)
    bias = graph.random(weight_name(scope, "bias"), [n_out], scale=0.1)
    return graph.op("Add", [bias, graph.op("MatMul", [x, weight], scope)], scope)


def gemm(graph: Graph, x: str, scope: str, n_in: int, n_out: int, output: str | None = None) -> str:
    weight = graph.random(weight_name(scope, "weight"), [n_out, n_in], scale=n_in**-0.5)
    bias = graph.random(weight_name(scope, "bias"), [n_out], scale=0.1)
    return graph.op("Gemm", [x, weight, bias], scope, output, alpha=1.0, beta=1.0, transB=1)


def norm_weights(graph: Graph, scope: str, n: int) -> tuple[str, str]:
    """Scale and shift, near those of an untrained layer."""
    scale = 1 + 0.1 * graph.rng.standard_normal(n)
    return (
        graph.initializer(weight_name(scope, "weight"), scale.astype(np.float32)),
        graph.random(weight_name(scope, "bias"), [n], scale=0.1),
    )


def layer_norm(graph: Graph, x: str, scope: str, n: int, epsilon: float = 1e-5) -> str:
    return graph.op("LayerNormalization", [x, *norm_weights(graph, scope, n)], scope, axis=-1, epsilon=epsilon)


def gelu(graph: Graph, x: str, scope: str) -> str:
    """0.5 x (1 + erf(x / sqrt 2)), as exporters wrote it before Gelu was an operator."""
    root, one, half = (graph.number(value, scope) for value in (2**0.5, 1, 0.5))
    erf = graph.op("Erf", [graph.op("Div", [x, root], scope)], scope)
    gate = graph.op("Add", [erf, one], scope)
    return graph.op("Mul", [graph.op("Mul", [x, gate], scope), half], scope)


def gelu_by_tanh(graph: Graph, x: str, scope: str) -> str:
    """The approximation of GPT-2: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³)))."""
    half, three, factor, root, one = (graph.number(v, scope) for v in (0.5, 3, 0.044715, (2 / np.pi) ** 0.5, 1))
    halved = graph.op("Mul", [x, half], scope)
    cube = graph.op("Mul", [graph.op("Pow", [x, three], scope), factor], scope)
    inner = graph.op("Mul", [graph.op("Add", [x, cube], scope), root], scope)
    gate = graph.op("Add", [graph.op("Tanh", [inner], scope), one], scope)
    return graph.op("Mul", [halved, gate], scope)
