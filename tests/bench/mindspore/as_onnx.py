"""Write the network as `network.onnx`, its images as `images.npz`, in `network.json` what a dump of a step holds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from math import prod
from pathlib import Path

import network
import numpy as np
import onnx
from network import Block
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8
# MindSpore keeps a `MatMul`'s two choices to transpose in inputs of one byte each; in ONNX there are none.
N_FLAGS_OF_MATMUL = 2


class Network:
    """The nodes so far. Each is named as its output."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.weights = network.weights(size)
        self.nodes: list[NodeProto] = []

    def node(self, op_type: str, inputs: Sequence[str], name: str, **attributes) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [f"{name}_out"], name, **attributes))
        return f"{name}_out"

    def conv(self, x: str, weight: str, stride: int = 1) -> str:
        kernel = self.weights[weight].shape[2]
        shape = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4, "strides": [stride] * 2}
        return self.node("Conv", [x, weight], f"{weight}_conv", **shape)

    def block(self, x: str, block: Block) -> str:
        y = self.node("Relu", [self.conv(x, f"{block.name}_conv1", block.stride)], f"{block.name}_relu1")
        y = self.conv(y, f"{block.name}_conv2")
        if block.stride == 2:
            x = self.conv(x, f"{block.name}_shortcut", block.stride)
        return self.node("Relu", [self.node("Add", [y, x], f"{block.name}_add")], f"{block.name}_relu2")

    def model(self) -> ModelProto:
        x = self.node("Relu", [self.conv("x", "stem")], "relu")
        for block in network.BLOCKS:
            x = self.block(x, block)
        x = self.node("MaxPool", [x], "pool", kernel_shape=[network.POOL] * 2, strides=[network.POOL] * 2)
        x = self.node("MatMul", [self.node("Flatten", [x], "flatten"), "fc"], "dense")
        y = self.node("Add", [x, "bias"], "add")
        graph = helper.make_graph(
            self.nodes,
            "residual",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, network.images(self.size).shape)],
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, (network.BATCH, network.N_CLASSES))],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets)
        onnx.checker.check_model(model, full_check=True)
        return model


def dump_of_a_step(model: ModelProto) -> dict[str, int]:
    """Files of every operator and both sides, and bytes of elements in them: operators, weights, and the images."""
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    n_bytes = {value.name: 4 * prod(dim.dim_value for dim in value.type.tensor_type.shape.dim) for value in values}
    weights = {weight.name: 4 * prod(weight.dims) for weight in graph.initializer}
    n_bytes |= weights
    names = [name for node in graph.node for name in [*node.input, *node.output]]
    names += [*weights, *(value.name for value in graph.input)]
    n_flags = N_FLAGS_OF_MATMUL * sum(node.op_type == "MatMul" for node in graph.node)
    return {
        "operators": len(graph.node),
        "files": len(names),
        "bytes": sum(n_bytes[name] for name in names),
        "mindspore_flags": n_flags,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", type=Path, metavar="OUT_DIR", help="created when missing")
    parser.add_argument("--size", type=int, required=True, help="pixels along a side of the images")
    args = parser.parse_args()
    args.out_dir.mkdir(parents=True, exist_ok=True)
    model = Network(args.size).model()
    onnx.save(model, args.out_dir / "network.onnx")
    np.savez(args.out_dir / "images.npz", x=network.images(args.size))
    (args.out_dir / "network.json").write_text(json.dumps(dump_of_a_step(model)), encoding="utf-8")


if __name__ == "__main__":
    main()
