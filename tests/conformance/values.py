"""Arrays as the files that the tool under test takes and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

# Types that numpy itself has; all others travel as raw elements.
NUMPY_TYPES = {
    TensorProto.BOOL,
    TensorProto.COMPLEX64,
    TensorProto.COMPLEX128,
    TensorProto.DOUBLE,
    TensorProto.FLOAT,
    TensorProto.FLOAT16,
    TensorProto.INT8,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT8,
    TensorProto.UINT16,
    TensorProto.UINT32,
    TensorProto.UINT64,
}
# The tool's names of types that differ from the names in ONNX in lower case.
TOOL_NAMES = {
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0",
    "float4e2m1": "float4_e2m1",
}


def type_name(elem_type: int) -> str:
    """The tool's name of an ONNX element type."""
    name = TensorProto.DataType.Name(elem_type).lower()
    return TOOL_NAMES.get(name, name)


TYPE_CODES = {type_name(code): code for code in TensorProto.DataType.values()}


def to_proto(value: Any, name: str) -> TensorProto:
    """A tensor of a case, which may be a message already."""
    if isinstance(value, TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value), name)


def save_input(proto: TensorProto, stem: Path) -> Path:
    """Write what `--input` takes: `.npy`, or the raw elements of types that numpy lacks."""
    array = numpy_helper.to_array(proto)
    if proto.data_type == TensorProto.STRING:
        path = stem.with_suffix(".npy")
        np.save(path, as_text(array))
        return path
    if proto.data_type in NUMPY_TYPES:
        path = stem.with_suffix(".npy")
        np.save(path, array)
        return path
    path = stem.with_suffix(".bin")
    path.write_bytes(numpy_helper.from_array(array).raw_data)
    return path


def as_text(array: NDArray) -> NDArray[np.str_]:
    """Text as numpy's fixed-width type, whichever way ONNX has it."""
    decode = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel()]
    return np.array(decode, dtype=np.str_ if decode else "<U1").reshape(array.shape)


def load_output(folder: Path, entry: dict[str, Any]) -> NDArray:
    """One of the entries of `outputs.json`."""
    path = folder / entry["file"]
    if path.suffix == ".npy":
        return np.load(path)
    proto = TensorProto(data_type=TYPE_CODES[entry["dtype"]], dims=entry["shape"], raw_data=path.read_bytes())
    return numpy_helper.to_array(proto)


def expected(proto: TensorProto) -> NDArray:
    array = numpy_helper.to_array(proto)
    return as_text(array) if proto.data_type == TensorProto.STRING else array


def parse_proto(path: Path) -> TensorProto:
    return onnx.load_tensor(path)
