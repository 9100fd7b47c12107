"""Run the network in MindSpore (graph mode, CPU) step by step and write how long each step took.

Whether it is dumped is up to `MINDSPORE_DUMP_CONFIG`. Writes `steps.json` (the version, and seconds for each step, the
first of which compiles the graph) and `output.npy` (the result, which has to be the same in every step).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import mindspore as ms
import network
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from network import Block
from numpy.typing import NDArray


class Conv(nn.Cell):
    """One convolution whose result keeps the image's size, or halves it with `stride` 2."""

    def __init__(self, weight: NDArray, name: str, stride: int = 1) -> None:
        super().__init__()
        n_out, _, kernel, _ = weight.shape
        self.weight = Parameter(Tensor(weight), name=name)
        self.conv = ops.Conv2D(n_out, kernel, pad_mode="pad", pad=kernel // 2, stride=stride)

    def construct(self, x: Tensor) -> Tensor:
        return self.conv(x, self.weight)


class Residual(nn.Cell):
    """A block; `network` chooses its layers."""

    def __init__(self, block: Block, weights: dict[str, NDArray]) -> None:
        super().__init__()
        self.conv1 = Conv(weights[f"{block.name}_conv1"], f"{block.name}_conv1", block.stride)
        self.conv2 = Conv(weights[f"{block.name}_conv2"], f"{block.name}_conv2")
        self.has_shortcut = block.stride == 2
        if self.has_shortcut:
            self.shortcut = Conv(weights[f"{block.name}_shortcut"], f"{block.name}_shortcut", block.stride)
        self.relu1, self.relu2, self.add = ops.ReLU(), ops.ReLU(), ops.Add()

    def construct(self, x: Tensor) -> Tensor:
        y = self.conv2(self.relu1(self.conv1(x)))
        if self.has_shortcut:
            x = self.shortcut(x)
        return self.relu2(self.add(y, x))


class Network(nn.Cell):
    """The whole network."""

    def __init__(self, weights: dict[str, NDArray]) -> None:
        super().__init__()
        self.stem = Conv(weights["stem"], "stem")
        self.blocks = nn.SequentialCell([Residual(block, weights) for block in network.BLOCKS])
        self.relu, self.flatten, self.matmul, self.add = ops.ReLU(), ops.Flatten(), ops.MatMul(), ops.Add()
        self.pool = ops.MaxPool(kernel_size=network.POOL, strides=network.POOL)
        self.fc = Parameter(Tensor(weights["fc"]), name="fc")
        self.bias = Parameter(Tensor(weights["bias"]), name="bias")

    def construct(self, x: Tensor) -> Tensor:
        x = self.blocks(self.relu(self.stem(x)))
        return self.add(self.matmul(self.flatten(self.pool(x)), self.fc), self.bias)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", type=Path, metavar="OUT_DIR", help="created when missing")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--size", type=int, required=True, help="pixels along a side of the images")
    args = parser.parse_args()
    args.out_dir.mkdir(parents=True, exist_ok=True)
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    net = Network(network.weights(args.size))
    net.set_train(False)
    x = Tensor(network.images(args.size))
    seconds, outputs = [], []
    for _ in range(args.steps):
        start = time.perf_counter()
        # The array is there once everything has run, and with it the dump, which runs concurrently with the operators.
        output = net(x).asnumpy()
        seconds.append(time.perf_counter() - start)
        outputs.append(output.copy())
    if not all(np.array_equal(output, outputs[0]) for output in outputs):
        raise SystemExit("steps of the same network with the same input differ")
    np.save(args.out_dir / "output.npy", outputs[0])
    report = {"version": ms.__version__, "seconds": seconds}
    (args.out_dir / "steps.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
