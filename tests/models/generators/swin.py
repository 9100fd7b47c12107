"""A Swin transformer as PyTorch's exporter lays it out: windows by Reshape and Transpose, rolls by Slice and Concat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graph import Generated, Graph
from .layers import conv, gelu, gemm, layer_norm, linear, weight_name

PATCH = 4
HIDDEN_SCORE = -100.0


@dataclass(frozen=True)
class Size:
    image: int
    window: int
    depths: tuple[int, ...]
    n_heads: tuple[int, ...]
    n: int
    n_classes: int


@dataclass(frozen=True)
class Stage:
    """`side` patches in height and width, `n` channels."""

    side: int
    n: int
    n_heads: int
    window: int


FULL = Size(224, 7, (2, 2, 6, 2), (3, 6, 12, 24), 96, 1000)
SMALL = Size(32, 4, (2, 1), (2, 4), 16, 10)


def swin(is_full: bool) -> Generated:
    """At full size Swin-T with 28 million weights; else three layers of 16 and 32 channels on 64 patches."""
    s = FULL if is_full else SMALL
    graph = Graph("main_graph", seed=7)
    image = graph.input("input", np.float32, [1, 3, s.image, s.image])
    x = conv(graph, image, "/features/features.0/features.0.0", 3, s.n, PATCH, PATCH)
    x = layer_norm(
        graph, graph.op("Transpose", [x], "/features/features.0", perm=[0, 2, 3, 1]), "/features/features.0/norm", s.n
    )
    side, n = s.image // PATCH, s.n
    for idx, (depth, n_heads) in enumerate(zip(s.depths, s.n_heads, strict=True)):
        if idx:
            x = _merged(graph, x, f"/features/features.{2 * idx}", side, n)
            side, n = side // 2, 2 * n
        for block in range(depth):
            x = _block(
                graph,
                x,
                f"/features/features.{2 * idx + 1}/block.{block}",
                Stage(side, n, n_heads, s.window),
                block % 2,
            )
    x = graph.op("Transpose", [layer_norm(graph, x, "/norm", n)], "/permute", perm=[0, 3, 1, 2])
    x = graph.op("Flatten", [graph.op("GlobalAveragePool", [x], "/avgpool")], "/flatten", axis=1)
    graph.output(gemm(graph, x, "/head", n, s.n_classes, "output"), np.float32, [1, s.n_classes])
    pixels = graph.rng.standard_normal([1, 3, s.image, s.image]).astype(np.float32)
    return Generated(graph.model(), {"sample": {"input": pixels}})


def _merged(graph: Graph, x: str, scope: str, side: int, n: int) -> str:
    """Four neighbours become one patch of twice the channels."""

    def every_second(value: str, start: int, axis: int) -> str:
        limits = [graph.integers([number], scope) for number in (start, side, axis, 2)]
        return graph.op("Slice", [value, *limits], scope)

    corners = [every_second(every_second(x, row, 1), column, 2) for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))]
    x = layer_norm(graph, graph.op("Concat", corners, scope, axis=-1), f"{scope}/norm", 4 * n)
    weight = graph.random(weight_name(f"{scope}/reduction", "weight"), [4 * n, 2 * n], scale=(4 * n) ** -0.5)
    return graph.op("MatMul", [x, weight], f"{scope}/reduction")


def _block(graph: Graph, x: str, scope: str, stage: Stage, is_shifted: int) -> str:
    shift = stage.window // 2 if is_shifted and stage.side > stage.window else 0
    y = _attention(graph, layer_norm(graph, x, f"{scope}/norm1", stage.n), f"{scope}/attn", stage, shift)
    x = graph.op("Add", [x, y], scope)
    y = linear(graph, layer_norm(graph, x, f"{scope}/norm2", stage.n), f"{scope}/mlp/mlp.0", stage.n, 4 * stage.n)
    y = linear(graph, gelu(graph, y, f"{scope}/mlp/mlp.1"), f"{scope}/mlp/mlp.3", 4 * stage.n, stage.n)
    return graph.op("Add", [x, y], scope)


def _rolled(graph: Graph, x: str, scope: str, start: int) -> str:
    """Rows and columns from `start` on first, the others behind them."""
    for axis in (1, 2):
        axes, one = graph.integers([axis], scope), graph.integers([1], scope)
        begin, end = graph.integers([start], scope), graph.integers([np.iinfo(np.int64).max], scope)
        tail = graph.op("Slice", [x, begin, end, axes, one], scope)
        head = graph.op("Slice", [x, graph.integers([0], scope), begin, axes, one], scope)
        x = graph.op("Concat", [tail, head], scope, axis=axis)
    return x


def _attention(graph: Graph, x: str, scope: str, stage: Stage, shift: int) -> str:
    n_across, area, n_head = stage.side // stage.window, stage.window**2, stage.n // stage.n_heads
    if shift:
        x = _rolled(graph, x, scope, shift)
    x = _reshaped(graph, x, scope, [1, n_across, stage.window, n_across, stage.window, stage.n])
    x = _reshaped(
        graph, graph.op("Transpose", [x], scope, perm=[0, 1, 3, 2, 4, 5]), scope, [n_across**2, area, stage.n]
    )
    joined = linear(graph, x, f"{scope}/qkv", stage.n, 3 * stage.n)
    joined = _reshaped(graph, joined, scope, [n_across**2, area, 3, stage.n_heads, n_head])
    joined = graph.op("Transpose", [joined], scope, perm=[2, 0, 3, 1, 4])
    query, key, value = (graph.op("Gather", [joined, graph.integers(idx, scope)], scope, axis=0) for idx in range(3))
    query = graph.op("Mul", [query, graph.number(n_head**-0.5, scope)], scope)
    scores = graph.op("MatMul", [query, graph.op("Transpose", [key], scope, perm=[0, 1, 3, 2])], scope)
    scores = graph.op("Add", [scores, _position_bias(graph, scope, stage)], scope)
    if shift:
        mask = graph.initializer(weight_name(scope, "mask"), _mask(stage, shift))
        scores = _reshaped(graph, scores, scope, [1, n_across**2, stage.n_heads, area, area])
        scores = _reshaped(graph, graph.op("Add", [scores, mask], scope), scope, [-1, stage.n_heads, area, area])
    mixed = graph.op("MatMul", [graph.op("Softmax", [scores], scope, axis=-1), value], scope)
    mixed = _reshaped(
        graph, graph.op("Transpose", [mixed], scope, perm=[0, 2, 1, 3]), scope, [n_across**2, area, stage.n]
    )
    y = linear(graph, mixed, f"{scope}/proj", stage.n, stage.n)
    y = _reshaped(graph, y, scope, [1, n_across, n_across, stage.window, stage.window, stage.n])
    y = _reshaped(
        graph, graph.op("Transpose", [y], scope, perm=[0, 1, 3, 2, 4, 5]), scope, [1, stage.side, stage.side, stage.n]
    )
    return _rolled(graph, y, scope, -shift) if shift else y


def _reshaped(graph: Graph, x: str, scope: str, shape: list[int]) -> str:
    return graph.op("Reshape", [x, graph.integers(shape, scope)], scope, allowzero=0)


def _position_bias(graph: Graph, scope: str, stage: Stage) -> str:
    """float32 [1, heads, area, area], from a table of all distances within a window."""
    area, reach = stage.window**2, 2 * stage.window - 1
    table = graph.random(weight_name(scope, "relative_position_bias_table"), [reach**2, stage.n_heads], scale=0.1)
    places = np.stack(np.meshgrid(range(stage.window), range(stage.window), indexing="ij")).reshape(2, -1)
    rows, columns = places[:, :, None] - places[:, None, :] + stage.window - 1
    index = graph.initializer(weight_name(scope, "relative_position_index"), (rows * reach + columns).ravel())
    bias = _reshaped(graph, graph.op("Gather", [table, index], scope, axis=0), scope, [area, area, stage.n_heads])
    bias = graph.op("Transpose", [bias], scope, perm=[2, 0, 1])
    return graph.op("Unsqueeze", [bias, graph.integers([0], scope)], scope)


def _mask(stage: Stage, shift: int) -> NDArray:
    """float32 [1, windows, 1, area, area], which keeps apart what only the roll has made neighbours."""
    edges = np.digitize(np.arange(stage.side), [stage.side - stage.window, stage.side - shift])
    regions = edges[:, None] * 3 + edges[None, :]
    n_across = stage.side // stage.window
    windows = (
        regions.reshape(n_across, stage.window, n_across, stage.window).transpose(0, 2, 1, 3).reshape(n_across**2, -1)
    )
    is_apart = windows[:, :, None] != windows[:, None, :]
    return np.where(is_apart, HIDDEN_SCORE, 0).astype(np.float32)[None, :, None]
