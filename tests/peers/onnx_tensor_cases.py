"""Writes crates/store/tests/golden/onnx_tensor: tensors as onnx's package writes them, and what it reads of them itself.

No build of ONNX Runtime that dumps the tensors of nodes is on PyPI. The files in `debug` have the names and content that its
sources give them.
"""

import json
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GOLDEN = Path(__file__).parents[2] / "crates/store/tests/golden/onnx_tensor"
# The dtypes whose values lie in separate bytes, by their names in a reader.
RAW = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "uint16": np.uint16,
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
    "complex64": np.complex64,
    "complex128": np.complex128,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e8m0": ml_dtypes.float8_e8m0fnu,
}
NARROW = {
    "int4": (ml_dtypes.int4, [-8, 7, 1, -1, 3]),
    "uint4": (ml_dtypes.uint4, [15, 0, 9, 2, 4]),
    "int2": (ml_dtypes.int2, [-2, 1, 0, -1, 1]),
    "uint2": (ml_dtypes.uint2, [3, 1, 0, 2, 3]),
    "float4_e2m1": (ml_dtypes.float4_e2m1fn, [6, -1.5, 0.5, -0.0, 4]),
}
# Names of a model's values and their shapes.
DEBUG = {"/fc/MatMul_output_0": (2, 3), "relu:0": (3,), "input.4": (1, 2), "größe": (2,)}


def facts(tensor, dtype):
    """Values as onnx reads them: bytes of the dtype, or of a wider one where it is narrower than a byte."""
    value = numpy_helper.to_array(tensor)
    is_text = value.dtype == object
    if dtype in NARROW:
        # Codes of a few bits become numbers: they fill no byte.
        wide = {"i": np.int8, "u": np.uint8, "f": np.float16}
        value = value.astype(wide[dtype[0]])
    content = [str(text) for text in value.flat] if is_text else value.tobytes().hex()
    return {"name": tensor.name, "dtype": dtype, "shape": list(value.shape), "values": content}


def cases():
    random = np.random.default_rng(3)
    for name, dtype in RAW.items():
        values = random.normal(size=(2, 3)) * 9
        if name.startswith(("uint", "float8_e8")):
            values = np.abs(values) + 1
        array = values.astype(dtype)
        raw = numpy_helper.from_array(array, f"raw/{name}")
        yield f"raw_{name}", raw, name
        # The other way to write them: numbers in a field of their type.
        typed = helper.make_tensor(f"typed/{name}", raw.data_type, array.shape, array.flatten().tolist())
        yield f"typed_{name}", typed, name
    flags = np.array([[True], [False]])
    yield "raw_bool", numpy_helper.from_array(flags, "raw/bool"), "bool"
    yield "typed_bool", helper.make_tensor("typed/bool", TensorProto.BOOL, [2, 1], [1, 0]), "bool"
    for name, (dtype, values) in NARROW.items():
        array = np.array(values).astype(dtype)
        raw = numpy_helper.from_array(array, f"raw/{name}")
        yield f"raw_{name}", raw, name
        typed = TensorProto(name=f"typed/{name}", data_type=raw.data_type, dims=raw.dims)
        typed.int32_data.extend(raw.raw_data)
        yield f"typed_{name}", typed, name
    yield "raw_scalar", numpy_helper.from_array(np.float32(3.5), "scalar"), "float32"
    yield "raw_empty", numpy_helper.from_array(np.zeros((0, 4), np.float32), "empty"), "float32"
    yield "text", helper.make_tensor("text", TensorProto.STRING, [2], ["ab", "größe"]), "string"
    yield "no_name", numpy_helper.from_array(np.arange(3)), "int64"


def debug_files():
    """One file for each value: all but letters and digits become `_`; behind it the rank, if that is asked for."""
    for step, suffix in (("plain", ""), ("ranks", "_rank_0"), ("ranks", "_rank_1"), ("default", "_default_rank_0")):
        # One with a suffix shows what all of them do.
        for name, extents in list(DEBUG.items())[: 1 if suffix else None]:
            value = np.arange(np.prod(extents), dtype=np.float32).reshape(extents) + len(suffix)
            stem = re.sub(rb"[^0-9A-Za-z]", b"_", name.encode()).decode() + suffix
            yield f"debug/{step}/{stem}.tensorproto", numpy_helper.from_array(value, name), "float32"


def main():
    known = {}
    files = [(f"{file}.pb", tensor, dtype) for file, tensor, dtype in cases()]
    sets = [(f"model/test_data_set_{n}", np.full((2,), n, np.float32)) for n in (0, 1)]
    files += [(f"{path}/input_0.pb", numpy_helper.from_array(array, "x"), "float32") for path, array in sets]
    files += [(f"{path}/output_0.pb", numpy_helper.from_array(-array, "y"), "float32") for path, array in sets]
    for file, tensor, dtype in [*files, *debug_files()]:
        path = GOLDEN / file
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save_tensor(tensor, path)
        known[file] = facts(tensor, dtype)
    outside = numpy_helper.from_array(np.arange(3), "outside")
    onnx.external_data_helper.set_external_data(outside, location="weights.bin")
    outside.ClearField("raw_data")
    outside.data_location = TensorProto.EXTERNAL
    onnx.save_tensor(outside, GOLDEN / "external.pb")
    (GOLDEN / "known.json").write_text(json.dumps(known, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
