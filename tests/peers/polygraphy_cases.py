"""Writes crates/store/tests/golden/polygraphy: what Polygraphy saves of a small model, and what numpy reads of it."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from polygraphy.comparator import RunResults
from polygraphy.json import load_json

GOLDEN = Path(__file__).parents[2] / "crates/store/tests/golden/polygraphy"
POLYGRAPHY = [str(Path(sys.executable).with_name("polygraphy"))]


def model():
    """Values of several dtypes and shapes; names with characters that file names and slots give a meaning, and
    that of another node."""
    weight = np.random.default_rng(1).standard_normal((3, 2)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["/fc/MatMul_output_0"], name="/fc/MatMul"),
        helper.make_node("Relu", ["/fc/MatMul_output_0"], ["relu:0"], name="relu"),
        helper.make_node("Greater", ["/fc/MatMul_output_0", "relu:0"], ["input.4"], name="n2"),
        helper.make_node("Cast", ["relu:0"], ["half"], name="input.4", to=TensorProto.FLOAT16),
        helper.make_node("Shape", ["relu:0"], ["shape"], name="n4"),
        helper.make_node("Split", ["relu:0"], ["left", "right"], name="n5", axis=1),
        helper.make_node("ReduceSum", ["relu:0"], ["output"], name="n6", keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [
            helper.make_tensor_value_info("input.4", TensorProto.BOOL, [2, 2]),
            helper.make_tensor_value_info("half", TensorProto.FLOAT16, [2, 2]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
            helper.make_tensor_value_info("left", TensorProto.FLOAT, [2, 1]),
            helper.make_tensor_value_info("right", TensorProto.FLOAT, [2, 1]),
            helper.make_tensor_value_info("output", TensorProto.FLOAT, []),
        ],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(folder, model_path, *options):
    command = [*POLYGRAPHY, "run", str(model_path), "--onnx-outputs", "*", *options]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def described(value):
    return {"dtype": value.dtype.str, "shape": list(value.shape), "bytes": value.tobytes().hex()}


def facts(path):
    """Runner, iteration, name and what numpy reads, in the order of the file."""
    content = load_json(str(path))
    if isinstance(content, RunResults):
        found = [
            (runner, step, name, value)
            for runner, iterations in content.items()
            for step, outputs in enumerate(iterations)
            for name, value in outputs.items()
        ]
    else:
        steps = content if isinstance(content, list) else [content]
        found = [(None, step, name, value) for step, one in enumerate(steps) for name, value in one.items()]
    keys = ("runner", "iteration", "name")
    return [dict(zip(keys, place, strict=True)) | described(value) for *place, value in found]


def main():
    GOLDEN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        onnx.save(model(), folder / "model.onnx")
        one = ["--onnxrt", "--save-outputs", "out.json", "--save-inputs", "in.json"]
        two = ["--onnxrt", "--onnxrt", "--iterations", "2", "--save-outputs", "two.json", "--save-inputs", "in2.json"]
        each = ["--onnxrt", "--iterations", "2", "--save-outputs", "each", "--save-inputs", "each_in"]
        for options in (one, two, each):
            run(folder, "model.onnx", *options)
        names = ["out.json", "in.json", "two.json", "in2.json"]
        names += [f"{kind}/{step:010}.json" for kind in ("each", "each_in") for step in (0, 1)]
        known = {}
        for name in names:
            target = GOLDEN / name
            target.parent.mkdir(exist_ok=True)
            # Blanks between the parts say nothing; without them the files are half as large.
            text = json.dumps(json.loads((folder / name).read_text()), separators=(",", ":"))
            # One stays as the tool wrote it.
            target.write_text((folder / name).read_text() if name == "out.json" else text)
            known[name] = facts(target)
        (GOLDEN / "known.json").write_text(json.dumps(known, separators=(",", ":")) + "\n")
        onnx.save(model(), GOLDEN / "model.onnx")


if __name__ == "__main__":
    main()
