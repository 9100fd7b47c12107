"""Addresses of bytes and arrays, and threads."""

from __future__ import annotations

import numpy as np
import opscope.acl as acl
import pytest


def test_bytes_come_back() -> None:
    data = b"\0\x01opscope\xff"
    ptr = acl.util.bytes_to_ptr(data)
    assert acl.util.ptr_to_bytes(ptr, len(data)) == data
    assert acl.util.ptr_to_bytes(ptr, 0) == b""


def test_an_array_over_memory_writes_through() -> None:
    array = np.arange(6, dtype=np.float32)
    view = acl.util.ptr_to_numpy(acl.util.numpy_to_ptr(array), (2, 3), np.dtype(np.float32).num)
    assert view.dtype == np.float32 and view.flags.writeable
    np.testing.assert_array_equal(view, [[0, 1, 2], [3, 4, 5]])
    view[1, 2] = 50
    assert array[5] == 50


@pytest.mark.parametrize("dtype", [bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_every_number_type(dtype: str) -> None:
    array = np.array([0, 1], dtype)
    view = acl.util.ptr_to_numpy(acl.util.numpy_to_ptr(array), (2,), array.dtype.num)
    np.testing.assert_array_equal(view, array)
    assert view.dtype == array.dtype


def test_elements_in_another_order_are_copied() -> None:
    array = np.arange(6, dtype=np.int64).reshape(2, 3).T
    with pytest.warns(UserWarning, match="numpy_contiguous_to_ptr"):
        acl.util.numpy_to_ptr(array)
    ptr, copy = acl.util.numpy_contiguous_to_ptr(array)
    assert acl.util.ptr_to_bytes(ptr, array.nbytes) == array.tobytes() == copy.tobytes()
    same = np.ascontiguousarray(array)
    assert acl.util.numpy_contiguous_to_ptr(same)[1] is same


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((0, (1,), 11), ValueError), ((8, [1], 11), TypeError), ((8, (1,), 17), ValueError), ((8, (-1,), 11), ValueError)],
)
def test_arrays_that_cannot_be(arguments: tuple, error: type[Exception]) -> None:
    with pytest.raises(error):
        acl.util.ptr_to_numpy(*arguments)


@pytest.mark.parametrize("convert", [acl.util.numpy_to_ptr, acl.util.numpy_contiguous_to_ptr])
def test_only_arrays_are_arrays(convert) -> None:
    with pytest.raises(ValueError, match="ndarray"):
        convert([1, 2])


def test_a_thread_is_joined_once() -> None:
    seen = []
    thread, ret = acl.util.start_thread(seen.append, [1, 2])
    assert ret == 0
    assert acl.util.stop_thread(thread) == 0
    assert seen == [[1, 2]]
    assert acl.util.stop_thread(thread) != 0
