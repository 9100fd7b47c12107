"""Graphs whose names, dtypes, absent inputs and values are the hard part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .graph import Generated, Graph, tensor_type

IMAGE_SHAPE = [1, 2, 4, 4]

# A file name has at most 255 bytes: the first name does not fit, the second fits until a converter adds its suffix.
TOO_LONG_NAME = "/encoder" + "/block" * 48 + "/end"
NEARLY_TOO_LONG_NAME = "/decoder" + "/block" * 34 + "/end" + "_" * 4

AWKWARD_NAMES = (
    "/slash/ed",
    "with blank",
    "dot.ted",
    "back\\slash",
    "../../climbing",
    "größe_层",
    "a/b",
    "a.b",
    "colon:star*",
    "123",
    TOO_LONG_NAME,
    NEARLY_TOO_LONG_NAME,
)

DTYPES = (
    np.float64,
    np.float32,
    np.float16,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.bool_,
)


def multi_io() -> Generated:
    """Two inputs, two outputs, mixed dtypes, awkward and missing names, omitted optional inputs."""
    graph = Graph("multi_io", seed=5)
    image = graph.input("image", np.float32, IMAGE_SHAPE)
    counts = graph.input("counts", np.int64, [4])

    ceiling = graph.initializer("ceiling", np.array(0.75, np.float32))
    x = graph.node("Clip", [image, "", ceiling], "/clip_max_only/Clip")
    x = graph.node("Relu", [x], name="", output="unnamed/relu.output")
    sizes = graph.initializer("sizes", np.array([1, 2, 8, 8], np.int64))
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    x = graph.node("Resize", [x, "", "", sizes], "/resize/Resize", **nearest)
    for idx, name in enumerate(AWKWARD_NAMES):
        x = graph.node("Neg", [x], name, output=f"negated_{idx}")
    half = graph.node("Cast", [x], "/to_half/Cast", to=tensor_type(np.float16))
    graph.node("Cast", [half], "/to_single/Cast", output="enlarged", to=tensor_type(np.float32))

    one = graph.constant("/one", np.array([1], np.int64))
    many = graph.node("Greater", [counts, one], "/Greater")
    few = graph.node("Not", [many], "/Not")
    bytes_ = graph.node("Cast", [few], "/to_byte/Cast", to=tensor_type(np.uint8))
    wide = graph.node("Cast", [bytes_], "/to_wide/Cast", to=tensor_type(np.int64))
    graph.node("Where", [many, counts, wide], "/Where", output="chosen")

    graph.output("enlarged", np.float32, [1, 2, 8, 8])
    graph.output("chosen", np.int64, [4])
    pixels = graph.rng.standard_normal(IMAGE_SHAPE).astype(np.float32)
    return Generated(graph.model(), {"sample": {"image": pixels, "counts": np.array([0, 1, 2, -5], np.int64)}})


def nan() -> Generated:
    """Finite at both ends; NaN and infinities from `/log/Log` until `/heal/Where_1` has replaced them."""
    graph = Graph("nan")
    x = graph.input("x", np.float32, [5])
    scale = graph.initializer("scale", np.array(2, np.float32))
    zero = graph.initializer("zero", np.array(0, np.float32))
    scaled = graph.node("Mul", [x, scale], "/scale/Mul")
    logarithm = graph.node("Log", [scaled], "/log/Log")
    inverse = graph.node("Div", [scale, scaled], "/inverse/Div")
    mixed = graph.node("Add", [logarithm, inverse], "/mix/Add")
    is_nan = graph.node("IsNaN", [mixed], "/heal/IsNaN")
    no_nan = graph.node("Where", [is_nan, zero, mixed], "/heal/Where")
    is_inf = graph.node("IsInf", [no_nan], "/heal/IsInf")
    graph.node("Where", [is_inf, zero, no_nan], "/heal/Where_1", output="y")
    graph.output("y", np.float32, [5])
    return Generated(graph.model(), {"sample": {"x": np.array([1, -1, 0, 0.5, 1e-40], np.float32)}})


def non_finite() -> Generated:
    """Operators that could lose a NaN or an infinity on the way, each reading the input that holds them."""
    graph = Graph("non_finite")
    nan, inf = np.nan, np.inf
    rows = [[1, 2, 3, 0], [nan] * 4, [-inf] * 4, [inf] * 4, [inf, -inf, 0, 1], [-1, -2, -3, -4]]
    values = np.array(rows, np.float32)
    x = graph.input("x", np.float32, list(values.shape))
    axes = graph.initializer("axes", np.array([1], np.int64))
    low, high = (graph.initializer(name, np.array(v, np.float32)) for name, v in (("low", -1), ("high", 2)))
    row = graph.initializer("row", np.array([0, 1, -1, 2], np.float32))
    wide, narrow = [6, 4], [6, 1]
    nodes = [(wide, graph.node(op, [x], f"/{op}")) for op in ("Relu", "Sigmoid", "Tanh", "HardSigmoid", "LeakyRelu")]
    nodes.append((wide, graph.node("Clip", [x, low, high], "/Clip")))
    nodes += [(wide, graph.node(op, [x, row], f"/{op}")) for op in ("Max", "Min", "Add", "Mul")]
    nodes += [(narrow, graph.node(op, [x, axes], f"/{op}")) for op in ("ReduceMax", "ReduceMin", "ReduceSum")]
    image = np.zeros((1, 1, 4, 4), np.float32)
    image[0, 0, :2, 2:], image[0, 0, 3, 3] = -inf, inf
    pooled = graph.input("image", np.float32, list(image.shape))
    nodes.append(([1, 1, 2, 2], graph.node("MaxPool", [pooled], "/MaxPool", kernel_shape=[2, 2], strides=[2, 2])))
    for shape, node in nodes:
        graph.output(node, np.float32, shape)
    return Generated(graph.model(), {"sample": {"x": values, "image": image}})


def overflow_six() -> Generated:
    """One operator for each way to overflow, reading ordinary numbers, among operators that do not."""
    graph = Graph("overflow_six")
    x = graph.input("x", np.float32, [1, 4])
    counts = graph.input("counts", np.int32, [4])
    graph.output(graph.node("Neg", [counts], "/negate/Neg"), np.int32, [4])
    one = graph.initializer("one", np.array(1, np.int32))
    graph.output(graph.node("Add", [counts, one], "/count/Add"), np.int32, [4])
    graph.output(graph.node("Exp", [x], "/grow/Exp"), np.float32, [1, 4])
    graph.output(graph.node("Cast", [x], "/to_byte/Cast", to=tensor_type(np.uint8)), np.uint8, [1, 4])
    thousand = graph.initializer("thousand", np.array(1000, np.float32))
    scaled = graph.node("Mul", [x, thousand], "/scale/Mul")
    graph.output(graph.node("Cast", [scaled], "/to_half/Cast", to=tensor_type(np.float16)), np.float16, [1, 4])
    # Every product is finite, the sum of the last two in the first column is not.
    weights = graph.initializer("weights", np.array([[1, 1], [1, 1], [3e36, 1], [3e37, 1]], np.float32))
    graph.output(graph.node("MatMul", [x, weights], "/project/MatMul"), np.float32, [1, 2])
    graph.output(graph.node("Sub", [counts, counts], "/cancel/Sub"), np.int32, [4])
    info = np.iinfo(np.int32)
    inputs = {"x": np.array([[-3, 0.5, 100, 2]], np.float32), "counts": np.array([info.min, info.max, 0, 7], np.int32)}
    return Generated(graph.model(), {"sample": inputs})


def dtypes() -> Generated:
    """Each dtype's extremes through Identity, and small values through a Cast to every dtype in turn."""
    graph = Graph("dtypes")
    extremes = {}
    for dtype in DTYPES:
        name = np.dtype(dtype).name
        values = _extremes(dtype)
        extremes[f"x_{name}"] = values
        graph.input(f"x_{name}", dtype, values.shape)
        graph.node("Identity", [f"x_{name}"], f"/extremes/{name}/Identity", output=f"y_{name}")
        graph.output(f"y_{name}", dtype, values.shape)

    small = graph.input("small", np.float32, [2, 3])
    for dtype in DTYPES:
        name = np.dtype(dtype).name
        small = graph.node("Cast", [small], f"/walk/{name}/Cast", to=tensor_type(dtype))
        # ONNX Runtime adds these dtypes on the CPU.
        if dtype in (np.float64, np.float32, np.int32, np.int64):
            one = graph.initializer(f"one_{name}", np.array(1, dtype))
            small = graph.node("Add", [small, one], f"/walk/{name}/Add")
    graph.node("Identity", [small], "/walk/Identity", output="walked")
    graph.output("walked", np.bool_, [2, 3])
    values = np.array([[0, 1, 2], [3, 4, 5]], np.float32)
    return Generated(graph.model(), {"sample": {**extremes, "small": values}})


def _extremes(dtype: type) -> NDArray:
    if dtype is np.bool_:
        return np.array([False, True])
    if np.issubdtype(dtype, np.integer):
        return np.array([np.iinfo(dtype).min, 0, 1, np.iinfo(dtype).max], dtype)
    info = np.finfo(dtype)
    return np.array([info.min, -0.0, info.smallest_subnormal, info.tiny, 1 + info.eps, info.max], dtype)
