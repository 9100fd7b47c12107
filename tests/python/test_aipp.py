"""Pictures that AIPP prepares, in pyACL, against a slow implementation of the vendor's formulas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import opscope
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from programs import SECONDS_MAX, run_snippet
from test_gears_and_formats import ENGINES, variables

DTYPES = {
    "float32": (TensorProto.FLOAT, np.float32),
    "float16": (TensorProto.FLOAT16, np.float16),
    "uint8": (TensorProto.UINT8, np.uint8),
}
FORMATS = {"YUV420SP_U8": 1, "XRGB8888_U8": 2, "RGB888_U8": 3, "YUV400_U8": 4}
YUV_TO_BGR = [298, 516, 0, 298, -100, -208, 298, 0, 409]
RGB_TO_YUV = [66, 129, 25, -38, -74, 112, 112, -94, -18]


def picture_bytes(form: str, width: int, height: int) -> int:
    n = width * height
    return {"YUV420SP_U8": n * 3 // 2, "XRGB8888_U8": 4 * n, "RGB888_U8": 3 * n, "YUV400_U8": n}[form]


def channels_of(picture: NDArray[np.uint8], settings: dict[str, Any]) -> NDArray[np.int64]:
    """The channels of every pixel, after they have changed places."""
    form, width, height = (settings[key] for key in ("input_format", "src_image_size_w", "src_image_size_h"))
    pixels = np.zeros((height, width, 3), np.int64)
    for row in range(height):
        for column in range(width):
            if form == "YUV400_U8":
                pixels[row, column, 0] = picture[row * width + column]
            elif form == "YUV420SP_U8":
                pair = width * height + row // 2 * width + column // 2 * 2
                pixels[row, column] = [picture[row * width + column], picture[pair], picture[pair + 1]]
            else:
                size = 3 if form == "RGB888_U8" else 4
                start = (row * width + column) * size + (size == 4 and settings.get("ax_swap_switch", False))
                pixels[row, column] = picture[start : start + 3]
    if settings.get("rbuv_swap_switch"):
        pixels = pixels[..., [0, 2, 1] if form == "YUV420SP_U8" else [2, 1, 0]]
    return pixels


def converted(pixels: NDArray[np.int64], settings: dict[str, Any]) -> NDArray[np.int64]:
    """In the other colour space."""
    is_yuv = settings["input_format"] == "YUV420SP_U8"
    defaults = YUV_TO_BGR if is_yuv else RGB_TO_YUV
    matrix = [settings.get(f"matrix_r{i // 3}c{i % 3}", defaults[i]) for i in range(9)]
    biases = [settings.get(f"{'input' if is_yuv else 'output'}_bias_{i}", [16, 128, 128][i]) for i in range(3)]
    sums = (pixels - (biases if is_yuv else 0)) @ np.array(matrix).reshape(3, 3).T
    # To the nearest whole number, halves up.
    shifted = np.floor(sums / 256 + 0.5).astype(np.int64) + (0 if is_yuv else np.array(biases))
    return np.clip(shifted, 0, 255)


def prepared(picture: NDArray[np.uint8], settings: dict[str, Any], n_channels: int, dtype: type) -> NDArray[Any]:
    """One picture as the model gets it: channels, rows, columns."""
    pixels = channels_of(picture, settings)
    if settings.get("crop"):
        top, left = settings["load_start_pos_h"], settings["load_start_pos_w"]
        pixels = pixels[top : top + settings["crop_size_h"], left : left + settings["crop_size_w"]]
    if settings.get("csc_switch"):
        pixels = converted(pixels, settings)
    planes: list[NDArray[Any]] = []
    for channel in range(n_channels):
        values = pixels[..., channel].astype(np.float32)
        if dtype is not np.uint8:
            values = values - np.float32(settings.get(f"mean_chn_{channel}", 0))
            values = values - np.float32(settings.get(f"min_chn_{channel}", 0))
            values = values * np.float32(settings.get(f"var_reci_chn_{channel}", 1))
        if settings.get("padding"):
            sides = [settings.get(f"{side}_padding_size", 0) for side in ("top", "bottom", "left", "right")]
            value = settings.get("padding_value", 0)
            values = np.pad(values, (sides[:2], sides[2:]), constant_values=value)
        planes.append(values.astype(dtype))
    return np.stack(planes)


def write_model(folder: Path, shape: Sequence[int | str], dtype: str, others: int = 0) -> Path:
    """Returns its inputs; the first one is the image."""
    code, _ = DTYPES[dtype]
    names = ["image", *(f"x{i}" for i in range(others))]
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], [f"{name}_out"]) for name in names],
        "same",
        [helper.make_tensor_value_info(name, code, list(shape)) for name in names],
        [helper.make_tensor_value_info(f"{name}_out", code, list(shape)) for name in names],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "same.onnx")
    return folder / "same.onnx"


def textproto(*operators: dict[str, Any]) -> str:
    def word(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    lines = [
        "aipp_op {\n" + "".join(f"  {key}: {word(value)}\n" for key, value in op.items()) + "}\n" for op in operators
    ]
    return "# how pictures are prepared\n" + "".join(lines)


def gears(model: Path, *options: str, engine: str = "tract") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opscope", "gears", str(model), *options]
    environment = {**os.environ, **variables(engine)}
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, env=environment)


def configure(model: Path, *operators: dict[str, Any], options: tuple[str, ...] = (), engine: str = "tract") -> str:
    config = model.with_suffix(".cfg")
    config.write_text(textproto(*operators))
    result = gears(model, *options, "--insert-op-conf", str(config), engine=engine)
    assert result.returncode == 0, result.stderr
    return result.stdout


RUN = """
import os

path, picture, dtype, out = sys.argv[1:5]
dynamic = json.loads(sys.argv[5]) if len(sys.argv) > 5 else None
config = os.environ.get("ACL_CONFIG")
assert (acl.init(config) if config else acl.init()) == 0
acl.rt.set_device(0)
model, code = acl.mdl.load_from_file(path)
assert code == 0, acl.get_recent_err_msg()
desc = acl.mdl.create_desc()
assert acl.mdl.get_desc(desc, model) == 0
n = acl.mdl.get_num_inputs(desc)
shown = []
for i in range(n):
    shown.append([
        acl.mdl.get_input_name_by_index(desc, i), acl.mdl.get_input_size_by_index(desc, i),
        acl.mdl.get_input_dims(desc, i)[0]["dims"], acl.mdl.get_input_dims_v2(desc, i)[0]["dims"],
        acl.mdl.get_input_format(desc, i), acl.mdl.get_input_data_type(desc, i),
        acl.mdl.get_aipp_type(model, i), acl.mdl.get_first_aipp_info(model, i),
    ])
data = open(picture, "rb").read()


def dataset(sizes, contents):
    made = acl.mdl.create_dataset()
    for size, content in zip(sizes, contents):
        address, code = acl.rt.malloc(max(size, 64), 0)
        assert code == 0
        if content:
            acl.rt.memcpy(address, size, acl.util.bytes_to_ptr(content), len(content), 0)
        _, code = acl.mdl.add_dataset_buffer(made, acl.create_data_buffer(address, size))
        assert code == 0
    return made


inputs = dataset([shown[i][1] for i in range(n)], [data] + [None] * (n - 1))
outputs = dataset([acl.mdl.get_output_size_by_index(desc, 0)], [None])
codes = []
if dynamic is not None:
    index, code = acl.mdl.get_input_index_by_name(desc, "ascend_dynamic_aipp_data")
    assert code == 0 and acl.mdl.get_aipp_type(model, 0) == (2, index, 0)
    codes.append(acl.mdl.execute(model, inputs, outputs))
    aipp = acl.mdl.create_aipp(dynamic["n"])
    for name, arguments in dynamic["calls"]:
        assert getattr(acl.mdl, "set_aipp_" + name)(aipp, *arguments) == 0, (name, acl.get_recent_err_msg())
    setter = acl.mdl.set_aipp_by_input_index if dynamic["by_input"] else acl.mdl.set_input_aipp
    code = setter(model, inputs, 0 if dynamic["by_input"] else index, aipp)
    assert code == 0, acl.get_recent_err_msg()
    # The dataset has a copy.
    assert acl.mdl.destroy_aipp(aipp) == 0
if "GEAR" in os.environ:
    index, _ = acl.mdl.get_input_index_by_name(desc, "ascend_mbatch_shape_data")
    height, width = map(int, os.environ["GEAR"].split("x"))
    assert acl.mdl.set_dynamic_hw_size(model, inputs, index, height, width) == 0, acl.get_recent_err_msg()
assert acl.mdl.execute(model, inputs, outputs) == 0, acl.get_recent_err_msg()
buffer = acl.mdl.get_dataset_buffer(outputs, 0)
size = acl.mdl.get_output_size_by_index(desc, 0)
open(out, "wb").write(acl.util.ptr_to_bytes(acl.get_data_buffer_addr(buffer), size))
acl.finalize()
result = {"inputs": shown, "codes": codes}
"""


def sized(form: str, width: int, height: int, **more: Any) -> dict[str, Any]:
    return {"input_format": form, "src_image_size_w": width, "src_image_size_h": height, **more}


def cropped(left: int, top: int, width: int, height: int) -> dict[str, Any]:
    start = {"crop": True, "load_start_pos_w": left, "load_start_pos_h": top}
    return {**start, "crop_size_w": width, "crop_size_h": height}


def with_matrix(*elements: int) -> dict[str, Any]:
    return {"csc_switch": True, **{f"matrix_r{i // 3}c{i % 3}": element for i, element in enumerate(elements)}}


GREY = {**with_matrix(76, 150, 30, 0, 0, 0, 0, 0, 0), **{f"output_bias_{i}": 0 for i in range(3)}}
JPEG = {**with_matrix(256, 0, 359, 256, -88, -183, 256, 454, 0), "input_bias_0": 0}
NORMALISED = {"mean_chn_0": 104, "mean_chn_1": 117, "min_chn_1": 0.5, "var_reci_chn_0": 0.0039, "var_reci_chn_2": -2.25}
STATIC: list[tuple[dict[str, Any], list[int], str]] = [
    (sized("RGB888_U8", 5, 3), [2, 3, 3, 5], "float32"),
    (
        sized("RGB888_U8", 9, 8, rbuv_swap_switch=True, **cropped(3, 1, 4, 5), **NORMALISED)
        | {"padding": True, "left_padding_size": 2, "right_padding_size": 1, "top_padding_size": 3}
        | {"padding_value": -1.5},
        [2, 3, 8, 7],
        "float32",
    ),
    (sized("RGB888_U8", 6, 5, csc_switch=True), [1, 3, 5, 6], "float16"),
    (sized("RGB888_U8", 6, 5, rbuv_swap_switch=True, var_reci_chn_0=0.25, **GREY), [3, 1, 5, 6], "float32"),
    (sized("XRGB8888_U8", 3, 4, ax_swap_switch=True), [1, 3, 4, 3], "float32"),
    (sized("XRGB8888_U8", 3, 4, rbuv_swap_switch=True), [1, 3, 4, 3], "uint8"),
    (sized("YUV400_U8", 7, 3, mean_chn_0=128, var_reci_chn_0=0.0078125), [2, 1, 3, 7], "float16"),
    (sized("YUV420SP_U8", 6, 4), [2, 3, 4, 6], "float32"),
    (
        sized("YUV420SP_U8", 12, 10, csc_switch=True, rbuv_swap_switch=True, **cropped(4, 2, 7, 5))
        | {"padding": True, "bottom_padding_size": 2, "left_padding_size": 1, "padding_value": 9}
        | {"mean_chn_0": 3, "var_reci_chn_1": 0.1},
        [2, 3, 7, 8],
        "float32",
    ),
    (
        sized("YUV420SP_U8", 8, 6, padding=True, right_padding_size=3, padding_value=200, **JPEG),
        [1, 3, 6, 11],
        "uint8",
    ),
]


def pictures(settings: dict[str, Any], n: int) -> NDArray[np.uint8]:
    size = picture_bytes(settings["input_format"], settings["src_image_size_w"], settings["src_image_size_h"])
    return np.random.default_rng(size).integers(0, 256, (n, size), np.uint8)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("settings", "shape", "dtype"), STATIC)
def test_static_aipp_prepares_pictures(
    tmp_path: Path, engine: str, settings: dict[str, Any], shape: list[int], dtype: str
) -> None:
    model = write_model(tmp_path, shape, dtype)
    said = configure(model, {"aipp_mode": "static", **settings}, engine=engine)
    assert f"image: AIPP of {settings['input_format']} images" in said
    data = pictures(settings, shape[0])
    (tmp_path / "pictures").write_bytes(data.tobytes())
    out = tmp_path / "out"
    dump = tmp_path / "dump"
    dump.mkdir()
    config = tmp_path / "acl.json"
    config.write_text(
        json.dumps({"dump": {"dump_path": str(dump), "dump_mode": "all", "dump_list": [{"model_name": "same"}]}})
    )
    result = run_snippet(RUN, model, tmp_path / "pictures", dtype, out, **variables(engine), ACL_CONFIG=str(config))
    numpy_dtype = DTYPES[dtype][1]
    expected = np.stack([prepared(picture, settings, shape[1], numpy_dtype) for picture in data])
    found = np.fromfile(out, numpy_dtype).reshape(shape)
    np.testing.assert_array_equal(found, expected)
    # The dump shows what the first operator gets: the preprocessed image.
    records = [record for record in opscope.open(dump) if record.side == "input"]
    assert len(records) == 1
    np.testing.assert_array_equal(records[0].numpy(), expected)

    name, size, dims, dims_in_bytes, form, data_type, kind, (info, code) = result["inputs"][0]
    width, height = settings["src_image_size_w"], settings["src_image_size_h"]
    channels = {"YUV400_U8": 1, "XRGB8888_U8": 4}.get(settings["input_format"], 3)
    assert (name, size, form, data_type, kind) == ("image", data.size, 1, 4, [1, 0xFFFFFFFF, 0])
    assert dims == [shape[0], height, width, channels]
    assert np.prod(dims_in_bytes) == size and dims_in_bytes[2] == width
    assert code == 0
    assert info["inputFormat"] == FORMATS[settings["input_format"]]
    assert (info["srcImageSizeW"], info["srcImageSizeH"]) == (width, height)
    assert info["varReciChn0"] == pytest.approx(settings.get("var_reci_chn_0", 1))
    assert info["shapeCount"] == 1 and info["outDims"][0]["srcDims"]["dims"] == shape
    if settings.get("csc_switch"):
        defaults = YUV_TO_BGR if settings["input_format"] == "YUV420SP_U8" else RGB_TO_YUV
        for i in range(9):
            key = f"r{i // 3}c{i % 3}"
            assert info[f"matrix{key.upper()}"] == settings.get(f"matrix_{key}", defaults[i])


def as_calls(settings: dict[str, Any], items: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """The calls that set these parameters."""
    calls: list[tuple[str, list[Any]]] = [
        ("input_format", [FORMATS[settings["input_format"]]]),
        ("src_image_size", [settings["src_image_size_w"], settings["src_image_size_h"]]),
        ("rbuv_swap_switch", [int(settings.get("rbuv_swap_switch", False))]),
        ("ax_swap_switch", [int(settings.get("ax_swap_switch", False))]),
    ]
    if settings.get("csc_switch"):
        is_yuv = settings["input_format"] == "YUV420SP_U8"
        matrix = YUV_TO_BGR if is_yuv else RGB_TO_YUV
        calls.append(("csc_params", [1, *matrix, 16, 128, 128, 16, 128, 128]))
    for i, item in enumerate(items):
        crop = [item.get(key, 0) for key in ("load_start_pos_w", "load_start_pos_h", "crop_size_w", "crop_size_h")]
        sides = [item.get(f"{side}_padding_size", 0) for side in ("top", "bottom", "left", "right")]
        calls += [
            ("crop_params", [int(item.get("crop", False)), *crop, i]),
            ("padding_params", [int(item.get("padding", False)), *sides, i]),
            ("scf_params", [0, 0, 0, 0, 0, i]),
            ("dtc_pixel_mean", [*(item.get(f"mean_chn_{c}", 0) for c in range(4)), i]),
            ("dtc_pixel_min", [*(item.get(f"min_chn_{c}", 0.0) for c in range(4)), i]),
            ("pixel_var_reci", [*(item.get(f"var_reci_chn_{c}", 1.0) for c in range(4)), i]),
        ]
    return calls


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("by_input", [False, True])
def test_each_picture_has_dynamic_parameters(tmp_path: Path, engine: str, by_input: bool) -> None:
    shape = [2, 3, 6, 8]
    model = write_model(tmp_path, shape, "float32")
    configure(model, {"aipp_mode": "dynamic", "max_src_image_size": 1000}, engine=engine)
    settings = {"input_format": "YUV420SP_U8", "src_image_size_w": 10, "src_image_size_h": 8, "csc_switch": True}
    items = [
        {"crop": True, "load_start_pos_w": 2, "load_start_pos_h": 0, "crop_size_w": 8, "crop_size_h": 6,
         "mean_chn_0": 10, "min_chn_1": 2.5, "var_reci_chn_2": 0.003921568627451},
        {"crop": True, "load_start_pos_w": 4, "load_start_pos_h": 4, "crop_size_w": 5, "crop_size_h": 4,
         "padding": True, "left_padding_size": 3, "top_padding_size": 2, "var_reci_chn_0": -0.5},
    ]  # fmt: skip
    data = pictures(settings, 2)
    (tmp_path / "pictures").write_bytes(data.tobytes())
    dynamic = json.dumps({"n": 2, "calls": as_calls(settings, items), "by_input": by_input})
    result = run_snippet(RUN, model, tmp_path / "pictures", "float32", tmp_path / "out", dynamic, **variables(engine))
    # Without parameters nothing runs.
    assert result["codes"] == [145000]
    expected = np.stack(
        [prepared(picture, {**settings, **item}, 3, np.float32) for picture, item in zip(data, items, strict=True)]
    )
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out", np.float32).reshape(shape), expected)
    image, parameters = result["inputs"]
    assert image[:7] == ["image", 1000, [2, -1, -1, -1], [2, -1, -1, -1], 1, 4, [2, 1, 0]]
    assert image[7][1] == 0 and image[7][0]["srcDatatype"] == 0 and image[7][0]["srcDimNum"] == 4
    name = "ascend_dynamic_aipp_data"
    assert parameters[:7] == [name, 64 + 2 * 96, [256], [256], 2, 4, [3, 0xFFFFFFFF, 0]]


@pytest.mark.parametrize("engine", ENGINES)
def test_gears_and_aipp_go_together(tmp_path: Path, engine: str) -> None:
    model = write_model(tmp_path, ["n", 3, 4, 6], "float32")
    settings = {"aipp_mode": "static", "input_format": "RGB888_U8", "mean_chn_1": 7}
    configure(model, settings, options=("--batch", "1,3"), engine=engine)
    settings = {**settings, "src_image_size_w": 6, "src_image_size_h": 4}
    data = pictures(settings, 3)
    (tmp_path / "pictures").write_bytes(data.tobytes())
    # No gear is set, so that the largest counts.
    result = run_snippet(RUN, model, tmp_path / "pictures", "float32", tmp_path / "out", **variables(engine))
    expected = np.stack([prepared(picture, settings, 3, np.float32) for picture in data])
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out", np.float32).reshape(3, 3, 4, 6), expected)
    image, extents = result["inputs"]
    assert image[:4] == ["image", 3 * 72, [-1, 4, 6, 3], [-1, 4, 6, 3]]
    assert [shape["srcDims"]["dims"][0] for shape in image[7][0]["outDims"]] == [1, 3]
    assert extents[0] == "ascend_mbatch_shape_data" and extents[6] == [0, 0xFFFFFFFF, 0]


@pytest.mark.parametrize("size", [(4, 6), (2, 10)])
def test_pictures_have_the_size_of_the_gear(tmp_path: Path, size: tuple[int, int]) -> None:
    model = write_model(tmp_path, [1, 3, "h", "w"], "float32")
    configure(model, {"aipp_mode": "static", "input_format": "YUV420SP_U8"}, options=("--size", "4,6;2,10"))
    height, width = size
    settings = sized("YUV420SP_U8", width, height)
    data = pictures(settings, 1)
    (tmp_path / "pictures").write_bytes(data.tobytes())
    gear = {"GEAR": f"{height}x{width}"}
    result = run_snippet(RUN, model, tmp_path / "pictures", "float32", tmp_path / "out", **variables("tract"), **gear)
    found = np.fromfile(tmp_path / "out", np.float32)[: 3 * height * width]
    expected = prepared(data[0], settings, 3, np.float32)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    image = result["inputs"][0]
    assert image[:4] == ["image", 36, [1, -1, -1, 3], [1, -1, -1, 1]]
    assert [shape["srcDims"]["dims"] for shape in image[7][0]["outDims"]] == [[1, 3, 4, 6], [1, 3, 2, 10]]


def test_a_model_without_aipp_says_so(tmp_path: Path) -> None:
    model = write_model(tmp_path, [1, 3, 2, 2], "float32")
    (tmp_path / "x").write_bytes(np.zeros(12, np.float32).tobytes())
    result = run_snippet(RUN, model, tmp_path / "x", "float32", tmp_path / "out", **variables("tract"))
    assert result["inputs"][0][6:] == [[0, 0xFFFFFFFF, 0], [None, 145015]]


STATIC_BASE = {"aipp_mode": "static", "input_format": "RGB888_U8"}


@pytest.mark.parametrize(
    ("operators", "part"),
    [
        ([{}], "expected `aipp_mode` of `static` or `dynamic`"),
        ([{"aipp_mode": "static"}], "expected `input_format`"),
        ([{"aipp_mode": "dynamic"}], "expected `max_src_image_size`"),
        ([{**STATIC_BASE, "related_input_rank": 5}], "expected one of the model's 2 inputs"),
        ([STATIC_BASE, STATIC_BASE], "two for `image`, expected one `aipp` for each input"),
        (
            [STATIC_BASE, {"aipp_mode": "dynamic", "max_src_image_size": 9, "related_input_rank": 1}],
            "all static or all",
        ),
        ([{**STATIC_BASE, "src_image_size_w": 8, "src_image_size_h": 4}], "8x4, expected pictures of 6x4"),
        ([{**STATIC_BASE, "crop": True}], "expected `src_image_size_w` and `src_image_size_h` with `crop`"),
        ([{**STATIC_BASE, "resize": True}], "expected the default of `resize`"),
        ([{**STATIC_BASE, "mean_chn_0": 256}], "256, expected `mean_chn_*` from 0 to 255"),
        ([{**STATIC_BASE, "input_format": "YUV400_U8"}], "expected 1 channel for YUV400_U8"),
        ([{**STATIC_BASE, "input_format": "YUYV_U8"}], "unknown variant `YUYV_U8`"),
        ([{**STATIC_BASE, "padd": 1}], "unknown key `padd`"),
    ],
)
def test_wrong_files_are_told(tmp_path: Path, operators: list[dict[str, Any]], part: str) -> None:
    model = write_model(tmp_path, [1, 3, 4, 6], "float32", others=1)
    (tmp_path / "aipp.cfg").write_text(textproto(*operators))
    result = gears(model, "--insert-op-conf", str(tmp_path / "aipp.cfg"))
    assert result.returncode == 2
    assert part in result.stderr, result.stderr
    assert not (tmp_path / "same.onnx.gears.json").exists()


MISUSE = """
path = sys.argv[1]
acl.init()
acl.rt.set_device(0)
model, code = acl.mdl.load_from_file(path)
assert code == 0, acl.get_recent_err_msg()
aipp = acl.mdl.create_aipp(2)
address, _ = acl.rt.malloc(1000, 0)
dataset = acl.mdl.create_dataset()
for size in (1000, 256):
    acl.mdl.add_dataset_buffer(dataset, acl.create_data_buffer(address, size))
short = acl.mdl.create_dataset()
for size in (1000, 255):
    acl.mdl.add_dataset_buffer(short, acl.create_data_buffer(address, size))
result = []
for call in json.loads(sys.argv[2]):
    code = eval(call)
    result.append([call, code, acl.get_recent_err_msg() or ""])
"""


def test_misuse_is_a_code_and_a_message(tmp_path: Path) -> None:
    model = write_model(tmp_path, [2, 3, 4, 6], "float32")
    configure(model, {"aipp_mode": "dynamic", "max_src_image_size": 144})
    cases: list[tuple[str, Any, str]] = [
        ("acl.mdl.create_aipp(0)", 0, "expected 1 to 65536"),
        ("acl.mdl.create_aipp(2**63)", 0, "expected 1 to 65536"),
        ("acl.mdl.get_aipp_data_size(0)", [0, 100000], "batchSize"),
        ("acl.mdl.get_aipp_data_size(3)", [352, 0], ""),
        ("acl.mdl.get_aipp_type(model, 2)", [0, 0, 100000], "the model has 2 inputs"),
        ("acl.mdl.get_aipp_type(99, 0)", [0, 0, 145003], "no such model"),
        ("acl.mdl.get_first_aipp_info(model, -1)", [None, 100000], "the model has 2 inputs"),
        ("acl.mdl.destroy_aipp(12345)", 100000, ""),
        ("acl.mdl.set_aipp_input_format(0, 1)", 100000, ""),
        ("acl.mdl.set_aipp_input_format(dataset, 1)", 100000, ""),
        ("acl.mdl.set_aipp_input_format(aipp, 8)", 100000, "expected YUV420SP_U8 (1)"),
        ("acl.mdl.set_aipp_src_image_size(aipp, 1, 4)", 100000, "`srcImageSizeW` is invalid: expected 2 to 4096"),
        ("acl.mdl.set_aipp_rbuv_swap_switch(aipp, 2)", 100000, "expected 0 to 1"),
        ("acl.mdl.set_aipp_crop_params(aipp, 1, 0, 0, 1, 1, 2)", 100000, "the batch has 2 pictures"),
        ("acl.mdl.set_aipp_crop_params(aipp, 1, -1, 0, 1, 1, 0)", 100000, "expected 0 to 4095"),
        ("acl.mdl.set_aipp_padding_params(aipp, 1, 0, 33, 0, 0)", 100000, "expected 0 to 32"),
        ("acl.mdl.set_aipp_dtc_pixel_mean(aipp, 0, 0, 0, 256)", 100000, "expected 0 to 255"),
        ("acl.mdl.set_aipp_dtc_pixel_min(aipp, 0, float('nan'), 0, 0)", 100000, "expected 0 to 255"),
        ("acl.mdl.set_aipp_pixel_var_reci(aipp, 1, 1, 1, 70000)", 100000, "expected -65504 to 65504"),
        ("acl.mdl.set_aipp_csc_params(aipp, 1, *[-32700] * 9, *[0] * 6)", 100000, "expected -32677 to 32676"),
        ("acl.mdl.set_input_aipp(model, dataset, 1, aipp)", 100000, "no format is set"),
        ("acl.mdl.set_aipp_input_format(aipp, 3)", 0, ""),
        ("acl.mdl.set_input_aipp(model, dataset, 1, aipp)", 100000, "no size of pictures is set"),
        ("acl.mdl.set_aipp_src_image_size(aipp, 8, 4)", 0, ""),
        ("acl.mdl.set_input_aipp(model, dataset, 1, aipp)", 100000, "`max_src_image_size` is 144"),
        ("acl.mdl.set_aipp_src_image_size(aipp, 4, 6)", 0, ""),
        ("acl.mdl.set_input_aipp(model, dataset, 1, aipp)", 100000, "have 4x6 pixels, the model takes 6x4"),
        ("acl.mdl.set_aipp_scf_params(aipp, 1, 16, 16, 16, 16)", 0, ""),
        ("acl.mdl.set_input_aipp(model, dataset, 1, aipp)", 100000, "scaling is not supported"),
        ("acl.mdl.set_aipp_scf_params(aipp, 0, 0, 0, 0, 0)", 0, ""),
        ("acl.mdl.set_aipp_src_image_size(aipp, 6, 4)", 0, ""),
        ("acl.mdl.set_input_aipp(model, dataset, 0, aipp)", 100000, "expected the index of an input for parameters"),
        ("acl.mdl.set_input_aipp(model, short, 1, aipp)", 145012, "takes 256 bytes of parameters"),
        ("acl.mdl.set_input_aipp(model, 12345, 1, aipp)", 100000, ""),
        ("acl.mdl.set_input_aipp(model, dataset, 1, 12345)", 100000, ""),
        ("acl.mdl.set_aipp_by_input_index(model, dataset, 1, aipp)", 500001, "has no AIPP with parameters"),
        ("acl.mdl.set_input_aipp(model, dataset, 1, acl.mdl.create_aipp(1))", 100000, "takes 2 pictures"),
        ("acl.mdl.set_input_aipp(model, dataset, 1, aipp)", 0, ""),
        ("acl.mdl.set_aipp_by_input_index(model, dataset, 0, aipp)", 0, ""),
        ("acl.mdl.destroy_aipp(aipp)", 0, ""),
        ("acl.mdl.destroy_aipp(aipp)", 100000, ""),
        ("acl.mdl.set_aipp_by_input_index(model, dataset, 0, aipp)", 100000, ""),
    ]
    calls = json.dumps([call for call, _, _ in cases])
    result = run_snippet(MISUSE, model, calls, **variables("tract"))
    for (call, expected, part), (_, found, message) in zip(cases, result, strict=True):
        assert found == expected, (call, found, message)
        assert part in message, (call, message)


TRIALS = """
path, trials = sys.argv[1], json.load(open(sys.argv[2]))
acl.init()
acl.rt.set_device(0)
model, code = acl.mdl.load_from_file(path)
assert code == 0, acl.get_recent_err_msg()
desc = acl.mdl.create_desc()
assert acl.mdl.get_desc(desc, model) == 0


def dataset(sizes):
    made = acl.mdl.create_dataset()
    addresses = []
    for size in sizes:
        addresses.append(acl.rt.malloc(size, 0)[0])
        acl.mdl.add_dataset_buffer(made, acl.create_data_buffer(addresses[-1], size))
    return made, addresses


inputs, (picture, _) = dataset([acl.mdl.get_input_size_by_index(desc, i) for i in range(2)])
size = acl.mdl.get_output_size_by_index(desc, 0)
outputs, (out,) = dataset([size])
result = []
for trial in trials:
    data = bytes.fromhex(trial["pictures"])[: acl.mdl.get_input_size_by_index(desc, 0)]
    acl.rt.memcpy(picture, len(data), acl.util.bytes_to_ptr(data), len(data), 0)
    aipp = acl.mdl.create_aipp(2)
    for name, arguments in trial["calls"]:
        assert getattr(acl.mdl, "set_aipp_" + name)(aipp, *arguments) == 0, (name, acl.get_recent_err_msg())
    code = acl.mdl.set_input_aipp(model, inputs, 1, aipp)
    message = acl.get_recent_err_msg()
    assert acl.mdl.destroy_aipp(aipp) == 0
    values = None
    if code == 0:
        assert acl.mdl.execute(model, inputs, outputs) == 0, acl.get_recent_err_msg()
        values = acl.util.ptr_to_bytes(out, size).hex()
    result.append([code, message, values])
"""


def drawn_trial(random: np.random.Generator) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Parameters for two pictures of 6 columns and 4 rows, which are right more often than not."""
    settings: dict[str, Any] = {
        "input_format": str(random.choice(["YUV420SP_U8", "XRGB8888_U8", "RGB888_U8", "RGB888_U8", "YUV400_U8"])),
        "src_image_size_w": int(random.integers(3, 6)) * 2 + int(random.random() < 0.1),
        "src_image_size_h": int(random.integers(2, 5)) * 2,
        **{key: bool(random.random() < 0.5) for key in ("csc_switch", "rbuv_swap_switch", "ax_swap_switch")},
    }
    items = []
    for _ in range(2):
        width, height = (int(n) for n in random.integers([1, 1], [7, 5]))
        start = [int(n) for n in random.integers([0, 0], [4, 3])]
        if random.random() < 0.8:
            start = [n // 2 * 2 for n in start]
        left, top = (int(random.integers(0, n + 1)) for n in (6 - width, 4 - height))
        wrong = int(random.random() < 0.1)
        items.append({
            "crop": bool(random.random() < 0.95), "load_start_pos_w": start[0], "load_start_pos_h": start[1],
            "crop_size_w": width, "crop_size_h": height, "padding": True,
            "left_padding_size": left, "right_padding_size": 6 - width - left + wrong,
            "top_padding_size": top, "bottom_padding_size": 4 - height - top,
            **{f"mean_chn_{i}": int(random.integers(0, 256)) for i in range(3)},
            **{f"min_chn_{i}": float(np.float32(random.random())) for i in range(3)},
            **{f"var_reci_chn_{i}": float(np.float32(random.normal())) for i in range(3)},
        })  # fmt: skip
    return settings, items


def is_right(settings: dict[str, Any], items: list[dict[str, Any]]) -> bool:
    """Whether the vendor's documents allow the parameters for a model of three channels, 4 rows and 6 columns."""
    form, width, height = (settings[key] for key in ("input_format", "src_image_size_w", "src_image_size_h"))
    is_yuv = form == "YUV420SP_U8"
    if form == "YUV400_U8" or (is_yuv and (width % 2 or height % 2)):
        return False
    for item in items:
        part = [0, 0, width, height]
        if item["crop"]:
            part = [item[key] for key in ("load_start_pos_w", "load_start_pos_h", "crop_size_w", "crop_size_h")]
        if part[0] + part[2] > width or part[1] + part[3] > height or (is_yuv and (part[0] % 2 or part[1] % 2)):
            return False
        columns = part[2] + item["left_padding_size"] + item["right_padding_size"]
        rows = part[3] + item["top_padding_size"] + item["bottom_padding_size"]
        if (columns, rows) != (6, 4):
            return False
    return 2 * picture_bytes(form, width, height) <= 500


@pytest.mark.parametrize("seed", range(3))
def test_parameters_are_refused_or_carried_out(tmp_path: Path, seed: int) -> None:
    shape = [2, 3, 4, 6]
    model = write_model(tmp_path, shape, "float32")
    configure(model, {"aipp_mode": "dynamic", "max_src_image_size": 500})
    random = np.random.default_rng(seed)
    trials = [drawn_trial(random) for _ in range(150)]
    data = [pictures(settings, 2) for settings, _ in trials]
    listed = [
        {"pictures": data[i].tobytes().hex(), "calls": as_calls(settings, items)}
        for i, (settings, items) in enumerate(trials)
    ]
    (tmp_path / "trials.json").write_text(json.dumps(listed))
    results = run_snippet(TRIALS, model, tmp_path / "trials.json", **variables("tract"))
    n_right = 0
    for (settings, items), both, (code, message, values) in zip(trials, data, results, strict=True):
        expected_code = 0 if is_right(settings, items) else 100000
        assert code == expected_code, (settings, items, message)
        if code != 0:
            assert "aippParmsSet" in message
            continue
        n_right += 1
        found = np.frombuffer(bytes.fromhex(values), np.float32).reshape(shape)
        for picture, item, got in zip(both, items, found, strict=True):
            np.testing.assert_array_equal(got, prepared(picture, {**settings, **item}, 3, np.float32))
    assert 20 < n_right < 140
