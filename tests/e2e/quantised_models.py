"""A small network, and what ONNX Runtime's quantiser makes of it in either form."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

N_CALIBRATION = 8


class Samples(CalibrationDataReader):
    """The same few inputs each time."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self._samples: Iterator[dict[str, NDArray]] = iter(
            [{name: sample(shape, seed)} for seed in range(N_CALIBRATION)]
        )

    def get_next(self) -> dict[str, NDArray] | None:
        return next(self._samples, None)


def sample(shape: tuple[int, ...], seed: int) -> NDArray:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


SHAPE = (1, 2, 8, 8)


def save_network(path: Path) -> None:
    """Two convolutions, pooling between them, and a matrix product: what ONNX itself has integer operators for."""
    rng = np.random.default_rng(7)

    def weight(name: str, *shape: int) -> TensorProto:
        return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["c1"], ["p1"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"], "conv2"),
        helper.make_node("Reshape", ["c2", "shape"], ["flat"], "reshape"),
        helper.make_node("MatMul", ["flat", "w3"], ["scores"], "product"),
    ]
    weights = [
        weight("w1", 4, 2, 3, 3),
        weight("b1", 4),
        weight("w2", 3, 4, 3, 3),
        weight("b2", 3),
        weight("w3", 12, 5),
        numpy_helper.from_array(np.array([1, 12]), "shape"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, (1, 5))],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def quantise(source: Path, target: Path, form: QuantFormat, input_name: str, shape: tuple[int, ...]) -> None:
    logging.disable(logging.WARNING)
    try:
        quantize_static(
            source,
            target,
            Samples(input_name, shape),
            quant_format=form,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            # Weights of 8 bits overflow ONNX Runtime's 16-bit sums on processors without VNNI.
            reduce_range=True,
        )
    finally:
        logging.disable(logging.NOTSET)
