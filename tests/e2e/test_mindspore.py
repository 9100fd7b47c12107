"""Dumps in MindSpore's form, loaded with numpy and compared with ONNX Runtime."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from binary import Binary

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
N_TENSORS = 24
TARGETS = ["cpu", "gpu", "ascend-o0", "ascend-o1", "ascend-o2", "ge"]


def dump(opscope: Binary, folder: Path, target: str, *options: str, **settings: object) -> Path:
    common = {
        "op_debug_mode": 0,
        "dump_mode": 0,
        "path": str(folder / "dump"),
        "net_name": "Digits",
        "iteration": "all",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        "file_format": "npy",
        **settings,
    }
    config: dict[str, object] = {"common_dump_settings": common}
    if target not in ("ascend-o2", "ge"):
        config["e2e_dump_settings"] = {"enable": True}
    folder.mkdir(exist_ok=True)
    path = folder / "data_dump.json"
    path.write_text(json.dumps(config))
    images = f"image={DIGITS / 'images.npy'}"
    opscope.run("dump", DIGITS / "digits_cnn.onnx", "--input", images, "--config", path, "--target", target, *options)
    return folder / "dump"


@pytest.mark.parametrize("target", TARGETS)
def test_numpy_loads_every_array(opscope: Binary, folder: Path, target: str) -> None:
    arrays = {path.name: np.load(path) for path in dump(opscope, folder, target).rglob("*.npy")}
    operators = [name for name in arrays if not name.startswith("Parameter.")]
    assert len(operators) == N_TENSORS
    session = onnxruntime.InferenceSession(DIGITS / "digits_cnn.onnx")
    images = np.load(DIGITS / "images.npy")
    (expected,) = session.run(None, {"image": images})
    (name,) = [name for name in operators if name.startswith("Softmax.") and ".output.0." in name]
    np.testing.assert_allclose(arrays[name], expected, rtol=1e-4, atol=1e-6)
    if target in ("cpu", "gpu"):
        (name,) = [name for name in arrays if name.startswith("Parameter.image.")]
        np.testing.assert_array_equal(arrays[name], images, strict=True)


def test_statistics_agree_with_numpy(opscope: Binary, folder: Path) -> None:
    categories = ["max", "min", "avg", "count", "l2norm"]
    tree = dump(opscope, folder, "ascend-o1", saved_data="full", statistic_category=categories)
    (path,) = tree.rglob("statistic.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == N_TENSORS
    for row in rows:
        (array_path,) = path.parent.glob(f"*.{row['Timestamp']}.{row['IO']}.{row['Slot']}.*.npy")
        array = np.load(array_path).astype(np.float64)
        assert int(row["Count"]) == array.size
        expected = [array.max(), array.min(), array.mean(), np.sqrt((array**2).sum())]
        columns = ["Max Value", "Min Value", "Avg Value", "L2Norm Value"]
        np.testing.assert_allclose([float(row[name]) for name in columns], expected, rtol=1e-5, atol=1e-9)


def test_compressed_arrays_hold_what_plain_ones_hold(opscope: Binary, folder: Path) -> None:
    plain = dump(opscope, folder / "plain", "cpu")
    packed = dump(opscope, folder / "packed", "cpu", "--compress", "zstd")
    packed_names = {path.name for path in packed.rglob("*.npy*")}
    assert all(name.endswith(".npy.zst") for name in packed_names)
    opscope.convert(packed, folder / "converted")

    def arrays(tree: Path) -> dict[str, np.ndarray]:
        # Times in names differ from run to run.
        found = {re.sub(r"\.\d{16}\.", ".", path.name): np.load(path) for path in tree.rglob("*.npy")}
        assert len(found) == len(packed_names)
        return found

    expected, converted = arrays(plain), arrays(folder / "converted")
    assert sorted(expected) == sorted(converted)
    for name, array in expected.items():
        np.testing.assert_array_equal(converted[name], array, strict=True)
