"""Train a small digit classifier in plain numpy and export it to ONNX.

The network is two 3x3 convolutions, each followed by ReLU and 2x2 max pooling, and one fully connected layer. The
data are the 1797 8x8 images that scikit-learn carries. Everything is written next to this script:

    digits_cnn.onnx   the trained model, `image` float32 [batch, 1, 8, 8] -> `probs` float32 [batch, 10]
    images.npy        16 held-out images, float32 [16, 1, 8, 8], pixels 0..1
    labels.npy        their digits, int64 [16]
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import onnx
import onnxruntime
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 7
N_EPOCHS = 40
BATCH_SIZE = 64
LEARNING_RATE = 2e-3
N_SAMPLES = 16
N_CLASSES = 10
OPSET, IR_VERSION = 18, 9

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]


class Layer:
    """One step of the network, and one node of the exported graph."""

    op_type: ClassVar[str]

    def __init__(self, scope: str, **attributes: object) -> None:
        self.scope = scope
        self.attributes = attributes
        self.params: dict[str, Floats] = {}
        self.grads: dict[str, Floats] = {}

    def forward(self, x: Floats) -> Floats:
        raise NotImplementedError

    def backward(self, grad: Floats) -> Floats:
        """Fill `grads` and return the gradient of the input of the latest `forward`."""
        raise NotImplementedError


class Conv(Layer):
    """3x3 convolution with stride 1 and padding 1, as one matrix product over unrolled patches."""

    op_type = "Conv"

    def __init__(self, scope: str, n_in: int, n_out: int, rng: np.random.Generator) -> None:
        super().__init__(scope, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1], group=1)
        self.params = {"weight": he_normal(rng, (n_out, n_in, 3, 3)), "bias": np.zeros(n_out, np.float32)}

    def forward(self, x: Floats) -> Floats:
        n, c, h, w = self.shape = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        patches = sliding_window_view(padded, (3, 3), axis=(2, 3))
        self.columns = patches.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        weight = self.params["weight"].reshape(-1, c * 9)
        return (self.columns @ weight.T + self.params["bias"]).reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, grad: Floats) -> Floats:
        n, c, h, w = self.shape
        rows = grad.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        weight = self.params["weight"]
        self.grads = {"weight": (rows.T @ self.columns).reshape(weight.shape), "bias": rows.sum(axis=0)}
        columns = (rows @ weight.reshape(-1, c * 9)).reshape(n, h, w, c, 3, 3).transpose(0, 3, 4, 5, 1, 2)
        padded = np.zeros((n, c, h + 2, w + 2), np.float32)
        for dy in range(3):
            for dx in range(3):
                padded[:, :, dy : dy + h, dx : dx + w] += columns[:, :, dy, dx]
        return padded[:, :, 1:-1, 1:-1]


class Relu(Layer):
    op_type = "Relu"

    def forward(self, x: Floats) -> Floats:
        self.positive = x > 0
        return np.maximum(x, 0)

    def backward(self, grad: Floats) -> Floats:
        return grad * self.positive


class MaxPool(Layer):
    """2x2 max pooling with stride 2."""

    op_type = "MaxPool"

    def __init__(self, scope: str) -> None:
        super().__init__(scope, kernel_shape=[2, 2], strides=[2, 2])

    def forward(self, x: Floats) -> Floats:
        n, c, h, w = self.shape = x.shape
        windows = x.reshape(n, c, h // 2, 2, w // 2, 2)
        largest = windows.max(axis=(3, 5), keepdims=True)
        chosen = (windows == largest).astype(np.float32)
        # Equal values share the gradient; after a ReLU whole windows of zeros are common.
        self.share = chosen / chosen.sum(axis=(3, 5), keepdims=True)
        return largest[:, :, :, 0, :, 0]

    def backward(self, grad: Floats) -> Floats:
        return (self.share * grad[:, :, :, None, :, None]).reshape(self.shape)


class Flatten(Layer):
    op_type = "Flatten"

    def __init__(self, scope: str) -> None:
        super().__init__(scope, axis=1)

    def forward(self, x: Floats) -> Floats:
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, grad: Floats) -> Floats:
        return grad.reshape(self.shape)


class Gemm(Layer):
    """Fully connected layer; the weight is [n_out, n_in]."""

    op_type = "Gemm"

    def __init__(self, scope: str, n_in: int, n_out: int, rng: np.random.Generator) -> None:
        super().__init__(scope, transB=1)
        self.params = {"weight": he_normal(rng, (n_out, n_in)), "bias": np.zeros(n_out, np.float32)}

    def forward(self, x: Floats) -> Floats:
        self.x = x
        return x @ self.params["weight"].T + self.params["bias"]

    def backward(self, grad: Floats) -> Floats:
        self.grads = {"weight": grad.T @ self.x, "bias": grad.sum(axis=0)}
        return grad @ self.params["weight"]


class Adam:
    """Adam (Kingma and Ba, 2015) with its usual constants."""

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers
        self.step_count = 0
        self.moments = {
            (id(layer), key): np.zeros((2, *p.shape), np.float32) for layer in layers for key, p in layer.params.items()
        }

    def step(self, learning_rate: float, beta1: float = 0.9, beta2: float = 0.999) -> None:
        self.step_count += 1
        correction1, correction2 = 1 - beta1**self.step_count, 1 - beta2**self.step_count
        for layer in self.layers:
            for key, grad in layer.grads.items():
                moment = self.moments[id(layer), key]
                moment[0] = beta1 * moment[0] + (1 - beta1) * grad
                moment[1] = beta2 * moment[1] + (1 - beta2) * grad**2
                update = moment[0] / correction1 / (np.sqrt(moment[1] / correction2) + 1e-8)
                layer.params[key] -= np.float32(learning_rate) * update


class Data(NamedTuple):
    train_images: Floats
    train_labels: Labels
    test_images: Floats
    test_labels: Labels


def he_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape).astype(np.float32)


def load_data() -> Data:
    """Three quarters to train on, one quarter held out, every digit in proportion."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    x, held_x, y, held_y = train_test_split(images, labels, test_size=0.25, random_state=SEED, stratify=labels)
    return Data(x, y, held_x, held_y)


def build(rng: np.random.Generator) -> list[Layer]:
    return [
        Conv("conv1", 1, 16, rng), Relu("conv1"), MaxPool("pool1"),
        Conv("conv2", 16, 32, rng), Relu("conv2"), MaxPool("pool2"),
        Flatten("flatten"), Gemm("fc", 32 * 2 * 2, N_CLASSES, rng),
    ]  # fmt: skip


def forward(layers: list[Layer], images: Floats) -> Floats:
    """Class probabilities, float32 [batch, 10]."""
    x = images
    for layer in layers:
        x = layer.forward(x)
    exp = np.exp(x - x.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def batches(n: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    order = rng.permutation(n)
    for start in range(0, n, BATCH_SIZE):
        yield order[start : start + BATCH_SIZE]


def train(layers: list[Layer], images: Floats, labels: Labels, rng: np.random.Generator) -> None:
    adam = Adam(layers)
    for epoch in range(N_EPOCHS):
        learning_rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * epoch / N_EPOCHS))
        for rows in batches(len(images), rng):
            # The gradient of mean cross entropy over softmax, with respect to the logits.
            grad = (forward(layers, images[rows]) - np.eye(N_CLASSES, dtype=np.float32)[labels[rows]]) / len(rows)
            for layer in reversed(layers):
                grad = layer.backward(grad)
            adam.step(learning_rate)


def accuracy(probs: Floats, labels: Labels) -> float:
    return float((probs.argmax(axis=1) == labels).mean())


def export(layers: list[Layer]) -> onnx.ModelProto:
    nodes, initializers, value = [], [], "image"
    for layer in layers:
        name = f"/{layer.scope}/{layer.op_type}"
        weights = [f"{layer.scope}.{key}" for key in layer.params]
        initializers += [numpy_helper.from_array(p, f"{layer.scope}.{key}") for key, p in layer.params.items()]
        nodes.append(helper.make_node(layer.op_type, [value, *weights], [f"{name}_output_0"], name, **layer.attributes))
        value = f"{name}_output_0"
    nodes.append(helper.make_node("Softmax", [value], ["probs"], "/probs/Softmax", axis=1))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])
    probs = helper.make_tensor_value_info("probs", TensorProto.FLOAT, ["batch", N_CLASSES])
    graph = helper.make_graph(nodes, "digits_cnn", [image], [probs], initializers)
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])


def check(model: onnx.ModelProto, images: Floats, expected: Floats) -> Floats:
    """The probabilities from ONNX Runtime, after checking that they agree with numpy's."""
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (probs,) = session.run(["probs"], {"image": images})
    np.testing.assert_allclose(probs, expected, rtol=1e-4, atol=1e-6)
    return probs


def main() -> None:
    rng = np.random.default_rng(SEED)
    data = load_data()
    layers = build(rng)
    train(layers, data.train_images, data.train_labels, rng)
    probs = forward(layers, data.test_images)
    train_accuracy = accuracy(forward(layers, data.train_images), data.train_labels)
    print(f"train accuracy     {train_accuracy:.2%} of {len(data.train_labels)}")
    print(f"held-out accuracy  {accuracy(probs, data.test_labels):.2%} of {len(data.test_labels)}")

    model = export(layers)
    runtime_probs = check(model, data.test_images, probs)
    print(f"ONNX Runtime       {accuracy(runtime_probs, data.test_labels):.2%} of {len(data.test_labels)}")

    here = Path(__file__).resolve().parent
    onnx.save(model, here / "digits_cnn.onnx")
    np.save(here / "images.npy", data.test_images[:N_SAMPLES])
    np.save(here / "labels.npy", data.test_labels[:N_SAMPLES])


if __name__ == "__main__":
    main()
