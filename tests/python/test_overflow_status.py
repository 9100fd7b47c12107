"""The overflow status of models and of operators on their own, on both engines, with or without a dump."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from onnx_models import write_linear
from programs import run_snippet

FOUND = importlib.util.find_spec("onnxruntime")
ENGINES = ["tract", *(["onnxruntime"] if FOUND else [])]

STATUS = """
import numpy as np
acl.init(sys.argv[1] or None)
acl.rt.set_device(0)
stream, _ = acl.rt.create_stream()
status, _ = acl.rt.malloc(64, 0)

def flag():
    assert acl.rt.get_overflow_status(status, 64, stream) == 0
    written = np.frombuffer(acl.util.ptr_to_bytes(status, 64), np.uint32)
    assert not written[1:].any()
    return int(written[0])
"""

OPERATOR = (
    STATUS
    + """
def product(a, b):
    values = [np.array([value], dtype=np.float32) for value in (a, b, 0)]
    descs = [acl.create_tensor_desc(0, [1], 2) for _ in values]
    buffers = [acl.create_data_buffer(acl.util.numpy_to_ptr(value), 4) for value in values]
    answer = acl.op.execute_v2("Mul", descs[:2], buffers[:2], descs[2:], buffers[2:], acl.op.create_attr(), stream)
    assert (answer[-1] if isinstance(answer, tuple) else answer) == 0, acl.get_recent_err_msg()

result = [flag()]
product(2, 3)
result.append(flag())
product(3e38, 3e38)
result.append(flag())
assert acl.rt.reset_overflow_status(stream) == 0
result.append(flag())
"""
)

MODEL = (
    STATUS
    + """
model, code = acl.mdl.load_from_file(sys.argv[2])
assert code == 0, acl.get_recent_err_msg()
values = np.zeros((2, 4), np.float32)
outputs = np.zeros((2, 3), np.float32)
datasets = []
for array in (values, outputs):
    dataset = acl.mdl.create_dataset()
    acl.mdl.add_dataset_buffer(dataset, acl.create_data_buffer(acl.util.numpy_to_ptr(array), array.nbytes))
    datasets.append(dataset)

def run(value):
    values[:] = value
    assert acl.mdl.execute(model, *datasets) == 0, acl.get_recent_err_msg()
    return flag()

result = [flag(), run(1), run(3e38), run(1)]
assert acl.rt.reset_overflow_status(stream) == 0
# Infinities that the model is given are handed on, not made by its arithmetic.
result += [run(1), run(np.inf), run(3e38)]
"""
)


def config(tmp_path: Path, *, dumps: bool) -> Path | str:
    """The path of a configuration that dumps everything, or none."""
    if not dumps:
        return ""
    path = tmp_path / "acl.json"
    path.write_text(json.dumps({"dump": {"dump_path": str(tmp_path), "dump_list": [{}], "dump_op_switch": "on"}}))
    return path


@pytest.mark.parametrize("dumps", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_status_of_an_operator(tmp_path: Path, engine: str, *, dumps: bool) -> None:
    result = run_snippet(OPERATOR, config(tmp_path, dumps=dumps), OPSCOPE_ENGINE=engine)
    assert result == [0, 0, 1, 0]
    assert any(tmp_path.glob("*/0/Mul.*")) == dumps


@pytest.mark.parametrize("dumps", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_status_of_a_model(tmp_path: Path, engine: str, *, dumps: bool) -> None:
    model = write_linear(tmp_path)
    result = run_snippet(MODEL, config(tmp_path, dumps=dumps), model, OPSCOPE_ENGINE=engine)
    assert result == [0, 0, 1, 1, 0, 0, 1]
    n_files = len(list(tmp_path.glob("*/0/linear/1/*/MatMul.*")))
    assert n_files == (6 if dumps else 0)
