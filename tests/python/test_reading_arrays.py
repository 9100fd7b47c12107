"""Records as numpy's arrays: files made by numpy and by hand, every element compared."""

from __future__ import annotations

import gc
import shutil
import struct
from pathlib import Path

import dump_writer as dw
import numpy as np
import opscope
import pytest
from dump_writer import Tensor
from numpy.typing import NDArray

PLAIN = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
# More than what is read instead of mapped.
N_LARGE = 100_000


def some(dtype: str, shape: tuple[int, ...]) -> NDArray:
    rng = np.random.default_rng(len(dtype) + sum(shape))
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if dtype == "b1":
        return rng.integers(0, 2, shape).astype(bool)
    return np.frombuffer(rng.bytes(n_bytes), dtype).reshape(shape)


def only(path: Path) -> opscope.Record:
    dump = opscope.open(path)
    assert dump.problems == []
    (record,) = dump
    return record


def assert_same_bits(found: NDArray, expected: NDArray) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", PLAIN)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3, 4), (0,), (3, 0, 2), (70_001,)], ids=str)
def test_arrays_of_numpy(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    array = some(dtype, shape)
    np.save(tmp_path / "a.npy", array)
    record = only(tmp_path)
    assert (record.name, record.op_type, record.side, record.slot) == ("a", "", None, None)
    assert (record.dtype, record.shape, record.nbytes) == (array.dtype.name, shape, array.nbytes)
    assert_same_bits(record.numpy(), array)
    assert record.raw().tobytes() == array.tobytes()
    assert not record.numpy().flags.writeable


@pytest.mark.parametrize("dtype", [">u2", ">i4", ">f4", ">f8", ">c8", ">c16"])
def test_the_other_order_of_bytes(tmp_path: Path, dtype: str) -> None:
    array = some(dtype, (3, 5))
    np.save(tmp_path / "a.npy", array)
    assert_same_bits(only(tmp_path).numpy(), array.astype(array.dtype.newbyteorder("=")))


@pytest.mark.parametrize("shape", [(2, 3), (4, 5, 6), (3, 0), (300, 400)], ids=str)
def test_the_other_order_of_axes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.asfortranarray(some("f4", shape))
    np.save(tmp_path / "a.npy", array)
    assert_same_bits(only(tmp_path).numpy(), np.ascontiguousarray(array))


@pytest.mark.parametrize("level", [1, 19])
def test_compressed_arrays(tmp_path: Path, level: int) -> None:
    array = some("f4", (100, 300))
    np.save(tmp_path / "Parameter.w.npy", array)
    opscope.convert(tmp_path / "Parameter.w.npy", tmp_path / "out", compress=level)
    (path,) = (tmp_path / "out").iterdir()
    assert path.name.endswith(".npy.zst")
    assert_same_bits(only(path).numpy(), array)


def test_large_arrays_are_the_file(tmp_path: Path) -> None:
    array = some("f4", (N_LARGE,))
    np.save(tmp_path / "a.npy", array)
    found = only(tmp_path / "a.npy").numpy()
    assert not found.flags.owndata and not found.flags.writeable
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert str(tmp_path / "a.npy") in maps
    (tmp_path / "a.npy").unlink()
    gc.collect()
    part = found[5:50]
    del found
    gc.collect()
    assert_same_bits(part, array[5:50])
    del part
    gc.collect()
    assert str(tmp_path / "a.npy") not in Path("/proc/self/maps").read_text(encoding="utf-8")


def test_an_array_of_ones_own(tmp_path: Path) -> None:
    array = some("f4", (N_LARGE,)).copy()
    np.save(tmp_path / "a.npy", array)
    record = only(tmp_path)
    with pytest.raises(ValueError, match="read-only"):
        record.numpy()[0] = 1
    own = record.numpy(copy=True)
    own[0] = 1
    assert own.flags.owndata and own.flags.aligned
    assert_same_bits(record.numpy(), array)


def from_bfloat16(raw: NDArray[np.uint16]) -> NDArray[np.float32]:
    return (raw.astype(np.uint32) << 16).view(np.float32)


def from_float8(code: int, n_exponent: int, has_infinity: bool) -> float:
    n_mantissa = 7 - n_exponent
    exponent, mantissa = code >> n_mantissa & (1 << n_exponent) - 1, code & (1 << n_mantissa) - 1
    sign = -1.0 if code & 0x80 else 1.0
    if exponent == (1 << n_exponent) - 1:
        if has_infinity:
            return sign * float("inf") if mantissa == 0 else float("nan")
        if mantissa == (1 << n_mantissa) - 1:
            return float("nan")
    bias = (1 << n_exponent - 1) - 1
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - n_mantissa)
    return sign * (1 + mantissa / (1 << n_mantissa)) * 2.0 ** (exponent - bias)


def one_tensor(folder: Path, tensor: Tensor) -> opscope.Record:
    return only(dw.write_dump_file(folder, "Add.a.0.0.1700000000000000", [], [tensor]))


def test_bfloat16(tmp_path: Path) -> None:
    raw = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    record = one_tensor(tmp_path, Tensor(dw.BFLOAT16, (256, 256), raw.tobytes()))
    assert (record.dtype, record.nbytes) == ("bfloat16", 1 << 17)
    expected = from_bfloat16(raw)
    np.testing.assert_array_equal(record.numpy(), expected, strict=True)
    assert_same_bits(np.signbit(record.numpy()), np.signbit(expected))
    assert_same_bits(record.raw(), raw)
    statistics = record.statistics()
    assert statistics.n_nan == np.count_nonzero(np.isnan(expected))
    assert (statistics.n_pos_inf, statistics.n_neg_inf, statistics.n_zero) == (1, 1, 2)


@pytest.mark.parametrize(
    ("data_type", "name", "n_exponent", "has_infinity"),
    [(dw.FLOAT8_E5M2, "float8_e5m2", 5, True), (dw.FLOAT8_E4M3FN, "float8_e4m3fn", 4, False)],
)
def test_float8(tmp_path: Path, data_type: int, name: str, n_exponent: int, has_infinity: bool) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    record = one_tensor(tmp_path, Tensor(data_type, (16, 16), codes.tobytes()))
    expected = np.array([from_float8(code, n_exponent, has_infinity) for code in range(256)], np.float32)
    assert record.dtype == name
    np.testing.assert_array_equal(record.numpy(), expected.reshape(16, 16), strict=True)
    assert_same_bits(np.signbit(record.numpy()).reshape(-1)[[0, 128]], np.array([False, True]))
    assert_same_bits(record.raw(), codes)


def test_packed_integers(tmp_path: Path) -> None:
    payload = bytes([0x10, 0x32, 0x98, 0xFE, 0x07])
    record = one_tensor(tmp_path, Tensor(dw.INT4, (3, 3), payload))
    nibbles = [part for byte in payload for part in (byte & 15, byte >> 4)][:9]
    expected = np.array([n - 16 if n > 7 else n for n in nibbles], np.int8).reshape(3, 3)
    assert (record.dtype, record.shape, record.nbytes) == ("int4", (3, 3), 5)
    np.testing.assert_array_equal(record.numpy(), expected, strict=True)
    np.testing.assert_array_equal(record.raw(), np.frombuffer(payload, np.uint8), strict=True)
    statistics = record.statistics()
    assert (statistics.min, statistics.max, statistics.sum) == (expected.min(), expected.max(), expected.sum())


def test_half_complex(tmp_path: Path) -> None:
    parts = np.array([1.5, -2, 0, 65504], np.float16)
    record = one_tensor(tmp_path, Tensor(dw.COMPLEX32, (2,), parts.tobytes()))
    np.testing.assert_array_equal(record.numpy(), parts.astype(np.float32).view(np.complex64), strict=True)
    with pytest.raises(opscope.UnsupportedError) as caught:
        record.statistics()
    assert caught.value.code == "no_statistics"


def test_half_floats_stay_what_they_are(tmp_path: Path) -> None:
    array = some("f2", (7,))
    record = one_tensor(tmp_path, Tensor(dw.FLOAT16, (7,), array.tobytes()))
    assert_same_bits(record.numpy(), array)
    assert_same_bits(record.raw(), array.view(np.uint16))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)], ids=str)
def test_tensors_without_axes_or_elements(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = some("f4", shape)
    record = one_tensor(tmp_path, Tensor(dw.FLOAT32, shape, array.tobytes()))
    assert record.shape == shape
    assert_same_bits(record.numpy(), array)
    assert record.statistics().n_elements == array.size


def test_payloads_that_are_not_aligned(tmp_path: Path) -> None:
    large = some("f8", (N_LARGE,))
    first = Tensor(dw.INT8, (3,), bytes([1, 255, 3]))
    second = Tensor(12, (N_LARGE,), large.tobytes())
    dw.write_dump_file(tmp_path, "Add.a.0.0.1700000000000000", [first, second], [second])
    dump = opscope.open(tmp_path)
    np.testing.assert_array_equal(dump[0].numpy(), np.array([1, -1, 3], np.int8), strict=True)
    for record in dump[1:]:
        assert_same_bits(record.numpy(), large)
        assert record.numpy(copy=True).flags.aligned


def test_bytes_behind_a_tensor_are_left_out(tmp_path: Path) -> None:
    record = one_tensor(tmp_path, Tensor(dw.FLOAT32, (1,), struct.pack("<f", 2.5) + bytes(28)))
    assert (record.numpy().tolist(), record.statistics().max) == ([2.5], 2.5)


def test_elements_without_a_value(tmp_path: Path) -> None:
    record = one_tensor(tmp_path, Tensor(dw.STRING, (1,), b"text"))
    with pytest.raises(ValueError, match="no numeric value") as caught:
        record.numpy()
    assert caught.value.code == "no_value"
    assert record.raw().tobytes() == b"text"
    with pytest.raises(opscope.UnsupportedError):
        record.statistics()


def test_layouts(tmp_path: Path) -> None:
    image = some("f4", (2, 20, 3, 5))
    blocks = np.zeros((2, 2, 16, 3, 5), np.float32)
    blocks.reshape(2, 32, 3, 5)[:, :20] = image
    device = np.ascontiguousarray(blocks.transpose(0, 1, 3, 4, 2))
    tensor = Tensor(dw.FLOAT32, device.shape, device.tobytes(), dw.NC1HWC0, image.shape)
    record = one_tensor(tmp_path, tensor)
    assert (record.layout, record.original_shape) == ("NC1HWC0", image.shape)
    assert_same_bits(record.numpy(), device)
    assert_same_bits(record.numpy(layout="NCHW"), image)
    assert_same_bits(record.numpy(layout="nhwc"), np.ascontiguousarray(image.transpose(0, 2, 3, 1)))
    assert_same_bits(record.numpy(layout="NCHW", shape=(1, 18, 3, 5)), image[:1, :18])
    with pytest.raises(opscope.UnsupportedError) as caught:
        record.numpy(layout="NCHW", shape=(3, 20, 3, 5))
    assert caught.value.code == "layout"
    for arguments in ({"layout": "NOPE"}, {"shape": (1,)}):
        with pytest.raises(opscope.UsageError):
            record.numpy(**arguments)


def test_layouts_of_what_numpy_lacks(tmp_path: Path) -> None:
    raw = np.arange(24, dtype=np.uint16).reshape(1, 2, 3, 4) + 0x3F80
    record = one_tensor(tmp_path, Tensor(dw.BFLOAT16, raw.shape, raw.tobytes(), dw.NHWC))
    expected = np.ascontiguousarray(from_bfloat16(raw).transpose(0, 3, 1, 2))
    assert_same_bits(record.numpy(layout="NCHW"), expected)


def test_a_file_that_changes_after_it_was_listed(tmp_path: Path) -> None:
    path = dw.write_dump_file(tmp_path, "Add.a.0.0.1", [Tensor(dw.INT8, (1,), b"a")], [Tensor(dw.INT8, (1,), b"b")])
    dump = opscope.open(tmp_path)
    assert len(dump) == 2
    dw.write_dump_file(tmp_path, "Add.a.0.0.1", [Tensor(dw.INT8, (1,), b"c")])
    assert dump[0].numpy().tobytes() == b"c"
    with pytest.raises(opscope.DamagedError) as caught:
        dump[1].numpy()
    assert (caught.value.code, caught.value.path) == ("no_slot", str(path))
    shutil.rmtree(tmp_path)
    with pytest.raises(FileNotFoundError):
        dump[0].numpy()
