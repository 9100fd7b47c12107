#!/usr/bin/env python3
"""Makes `digits_cnn_transposed.onnx`: the digit classifier as a faulty converter would leave it.

The 3×3 kernels of the second convolution are stored with height and width exchanged. Shapes and operators stay the
same, so the file loads and runs; only its answers differ.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = Path(__file__).parent
WEIGHT = "conv2.weight"


def main() -> None:
    """Writes the faulty model next to the sound one."""
    model = onnx.load(FOLDER / "digits_cnn.onnx")
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == WEIGHT)
    kernels = numpy_helper.to_array(weight)
    exchanged = np.ascontiguousarray(kernels.swapaxes(2, 3))
    weight.CopyFrom(numpy_helper.from_array(exchanged, WEIGHT))
    onnx.save(model, FOLDER / "digits_cnn_transposed.onnx")


if __name__ == "__main__":
    main()
