"""Models that are switched between sizes, and single operators in other formats, on both engines."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import opscope
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from programs import SECONDS_MAX, run_snippet

FOUND = importlib.util.find_spec("onnxruntime")
ENGINES = ["tract", *(["onnxruntime"] if FOUND else [])]

SWITCH = """
import numpy as np

path, kind = sys.argv[1:3]
acl.init()
acl.rt.set_device(0)
model, code = acl.mdl.load_from_file(path)
assert code == 0, acl.get_recent_err_msg()
desc = acl.mdl.create_desc()
assert acl.mdl.get_desc(desc, model) == 0
index, code = acl.mdl.get_input_index_by_name(desc, "ascend_mbatch_shape_data")
assert code == 0


def dataset(n, size_of):
    made = acl.mdl.create_dataset()
    for i in range(n):
        size = size_of(desc, i)
        address, code = acl.rt.malloc(size, 0)
        assert code == 0
        if i != index or size_of is acl.mdl.get_output_size_by_index:
            values = np.arange(size // 4, dtype=np.float32)
            acl.rt.memcpy(address, size, acl.util.bytes_to_ptr(values.tobytes()), size, 0)
        _, code = acl.mdl.add_dataset_buffer(made, acl.create_data_buffer(address, size))
        assert code == 0
    return made


inputs = dataset(acl.mdl.get_num_inputs(desc), acl.mdl.get_input_size_by_index)
outputs = dataset(acl.mdl.get_num_outputs(desc), acl.mdl.get_output_size_by_index)
gears = {
    "batch": lambda: [(n,) for n in acl.mdl.get_dynamic_batch(desc)[0]["batch"]],
    "size": lambda: [tuple(size) for size in acl.mdl.get_dynamic_hw(desc, -1)[0]["hw"]],
    "dims": lambda: [
        (dims,)
        for dims in acl.mdl.get_input_dynamic_dims(desc, -1, acl.mdl.get_input_dynamic_gear_count(desc, -1)[0])[0]
    ],
}[kind]()
switch = {
    "batch": acl.mdl.set_dynamic_batch_size,
    "size": acl.mdl.set_dynamic_hw_size,
    "dims": acl.mdl.set_input_dynamic_dims,
}[kind]
result = []
for gear in gears:
    assert switch(model, inputs, index, *gear) == 0
    dims = acl.mdl.get_cur_output_dims(desc, 0)[0]["dims"]
    assert acl.mdl.execute(model, inputs, outputs) == 0, acl.get_recent_err_msg()
    buffer = acl.mdl.get_dataset_buffer(outputs, 0)
    data = acl.util.ptr_to_bytes(acl.get_data_buffer_addr(buffer), int(np.prod(dims)) * 4)
    result.append([dims, np.frombuffer(data, np.float32).tolist()])
result.append(acl.mdl.set_dynamic_batch_size(model, inputs, index, 77))
"""


def variables(engine: str) -> dict[str, str]:
    return {"OPSCOPE_ENGINE": engine, "ORT_DYLIB_PATH": "", "OPSCOPE_ENGINE_LIB": ""}


def write_model(folder: Path) -> Path:
    """The sum of each image's pixels, for each channel, times two."""
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["sum"], keepdims=0),
        helper.make_node("Add", ["sum", "sum"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "sums",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor("axes", TensorProto.INT64, [2], [2, 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "sums.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kind", "options", "shapes"),
    [
        ("batch", ["--shape", "x:-1,2,3,2", "--batch", "1,4,2"], [(1, 2, 3, 2), (4, 2, 3, 2), (2, 2, 3, 2)]),
        ("size", ["--shape", "x:1,2,-1,-1", "--size", "3,2;1,5"], [(1, 2, 3, 2), (1, 2, 1, 5)]),
        ("dims", ["--dims", "1,3,2;2,1,4"], [(1, 2, 3, 2), (2, 2, 1, 4)]),
    ],
)
def test_programs_switch_gears(
    tmp_path: Path, engine: str, kind: str, options: list[str], shapes: list[tuple[int, ...]]
) -> None:
    model = write_model(tmp_path)
    command = [sys.executable, "-m", "opscope", "gears", str(model), *options]
    environment = {**os.environ, **variables(engine)}
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS_MAX, env=environment)
    *found, refused = run_snippet(SWITCH, model, kind, **variables(engine))
    assert len(found) == len(shapes)
    for shape, (dims, values) in zip(shapes, found, strict=True):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        expected = 2 * x.sum((2, 3))
        assert tuple(dims) == expected.shape
        np.testing.assert_array_equal(np.array(values, np.float32).reshape(dims), expected)
    assert refused == 145013


OPERATOR = """
import numpy as np

NUMBERS = {"NCHW": 0, "NHWC": 1, "ND": 2, "HWCN": 16}
folder = sys.argv[1]
op_type, operands, shape, output, attributes = json.loads(sys.argv[2])
assert acl.init(folder + "/acl.json") == 0
acl.rt.set_device(0)
attr = acl.op.create_attr()
for name, value in attributes.items():
    setter = acl.op.set_attr_list_int if isinstance(value, list) else acl.op.set_attr_string
    assert setter(attr, name, value) == 0
descs, buffers, kept = [], [], []
for i, form in enumerate(operands):
    array = np.load(f"{folder}/{i}.npy")
    kept.append(array.tobytes())
    descs.append(acl.create_tensor_desc(0, list(array.shape), NUMBERS[form]))
    buffers.append(acl.create_data_buffer(acl.util.bytes_to_ptr(kept[-1]), len(kept[-1])))
size = int(np.prod(shape)) * 4
address, _ = acl.rt.malloc(size, 0)
desc, buffer = acl.create_tensor_desc(0, shape, NUMBERS[output]), acl.create_data_buffer(address, size)
for _ in range(2):
    code = acl.op.execute_v2(op_type, descs, buffers, [desc], [buffer], attr, 0)
    assert code == 0, acl.get_recent_err_msg()
data = acl.util.ptr_to_bytes(address, size)
result = np.frombuffer(data, np.float32).tolist()
acl.finalize()
"""


def convolved(x: NDArray[Any], k: NDArray[Any], strides: list[int]) -> NDArray[Any]:
    """Of an image with its channels last and a kernel with its output channels last."""
    rows, columns = k.shape[:2]
    windows = np.lib.stride_tricks.sliding_window_view(x, (rows, columns), axis=(1, 2))
    windows = windows[:, :: strides[0], :: strides[1]]
    return np.einsum("nhwcij,ijco->nhwo", windows, k)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
def test_single_operators_keep_their_format(tmp_path: Path, engine: str, form: str) -> None:
    random = np.random.default_rng(5)
    x = random.integers(-3, 4, (2, 5, 6, 3)).astype(np.float32)
    k = random.integers(-3, 4, (2, 3, 3, 4)).astype(np.float32)
    expected = convolved(x, k, [2, 1])
    strides = [1, 2, 1, 1]
    if form == "NCHW":
        x, expected, strides = x.transpose(0, 3, 1, 2), expected.transpose(0, 3, 1, 2), [1, 1, 2, 1]
    np.save(tmp_path / "0.npy", np.ascontiguousarray(x))
    np.save(tmp_path / "1.npy", k)
    dump = tmp_path / "dump"
    dump.mkdir()
    config = {"dump": {"dump_path": str(dump), "dump_op_switch": "on", "dump_mode": "all"}}
    (tmp_path / "acl.json").write_text(json.dumps(config))
    attributes = {"strides": strides, "pads": [0, 0, 0, 0], "dilations": [1, 1, 1, 1], "data_format": form}
    case = json.dumps(["Conv2D", [form, "HWCN"], list(expected.shape), form, attributes])
    values = run_snippet(OPERATOR, tmp_path, case, **variables(engine))
    np.testing.assert_array_equal(np.array(values, np.float32).reshape(expected.shape), expected)
    shown = {(record.name, record.side, record.slot): record for record in opscope.open(dump)}
    for name in ["Conv2D_0", "Conv2D_1"]:
        for side, slot, layout, array in [
            ("input", 0, form, x),
            ("input", 1, "HWCN", k),
            ("output", 0, form, expected),
        ]:
            record = shown[name, side, slot]
            assert (record.layout, record.shape) == (layout, array.shape)
            np.testing.assert_array_equal(record.numpy(), array)
    assert len(shown) == 6
