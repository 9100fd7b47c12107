"""Products of matrices through the C library, against numpy."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

TOOL = os.environ.get("OPSCOPE")
LIBRARY = Path(TOOL).with_name("libascendcl.so") if TOOL else None

pytestmark = pytest.mark.skipif(LIBRARY is None or not LIBRARY.is_file(), reason="the C library was not built")

NUMBERS = {np.float32: 0, np.float16: 1, np.int8: 2, np.int32: 3}
TYPES = [
    (np.float16, np.float16),
    (np.float16, np.float32),
    (np.float32, np.float32),
    (np.int8, np.float32),
    (np.int8, np.int32),
]
SHAPES = [(1, 1, 1), (3, 4, 5), (16, 1, 33), (1, 17, 64), (31, 29, 300)]


@pytest.fixture(scope="module")
def acl() -> ctypes.CDLL:
    library = ctypes.CDLL(str(LIBRARY))
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    assert library.aclInit(None) == 0
    assert library.aclrtSetDevice(0) == 0
    return library


def drawn(random: np.random.Generator, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    if np.issubdtype(dtype, np.floating):
        return random.standard_normal(shape).astype(dtype)
    return random.integers(-128, 128, shape).astype(dtype)


def address(array: NDArray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def product(a: NDArray, b: NDArray, c: NDArray, alpha: NDArray, beta: NDArray) -> NDArray:
    """As exact as numpy can be, rounded once."""
    if c.dtype == np.int32:
        total = alpha.astype(np.int64) * (a.astype(np.int64) @ b.astype(np.int64)) + beta.astype(np.int64) * c
        return total.astype(np.int32)
    wide = np.float64
    return alpha.astype(wide) * (a.astype(wide) @ b.astype(wide)) + beta.astype(wide) * c.astype(wide)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("types", TYPES, ids=lambda types: "-".join(np.dtype(dtype).name for dtype in types))
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_products_equal_those_of_numpy(
    acl: ctypes.CDLL,
    shape: tuple[int, int, int],
    types: tuple[DTypeLike, DTypeLike],
    transposed: tuple[bool, bool],
) -> None:
    m, n, k = shape
    factor, total = types
    random = np.random.default_rng([m, n, k, NUMBERS[factor], NUMBERS[total], *transposed])
    a, b, c = drawn(random, (m, k), factor), drawn(random, (k, n), factor), drawn(random, (m, n), total)
    # The second value is behind the factor, where four bytes are read whatever the type.
    alpha, beta = (np.array([value, 77], dtype=total) for value in ((3, -2) if total is np.int32 else (0.75, -0.5)))
    expected = product(a, b, c, alpha[:1], beta[:1])
    given_a = np.ascontiguousarray(a.T if transposed[0] else a)
    given_b = np.ascontiguousarray(b.T if transposed[1] else b)
    code = acl.aclblasGemmEx(
        *(int(is_transposed) for is_transposed in transposed), 0, m, n, k,
        address(alpha), address(given_a), -1, NUMBERS[factor], address(given_b), -1, NUMBERS[factor],
        address(beta), address(c), -1, NUMBERS[total], 0, None,
    )  # fmt: skip
    assert code == 0, acl.aclGetRecentErrMsg()
    if total is np.int32:
        assert np.array_equal(c, expected)
        return
    # Sums of k products in float32, whose errors grow with the root of k, and one rounding.
    scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64) + np.abs(expected) + 1
    error = np.abs(c.astype(np.float64) - expected)
    bound = scale * (np.finfo(np.float32).eps * np.sqrt(k) * 2) + np.abs(expected) * np.finfo(total).eps
    assert (error <= bound).all(), (error / bound).max()


def test_integers_wrap_around(acl: ctypes.CDLL) -> None:
    a, b = np.full((1, 4), -128, np.int8), np.full((4, 1), -128, np.int8)
    c = np.array([[5]], np.int32)
    alpha, beta = np.array([2**20], np.int32), np.array([3], np.int32)
    code = acl.aclblasS8gemm(
        0, 0, 0, 1, 1, 4, address(alpha), address(a), -1, address(b), -1, address(beta), address(c), -1, 0, None
    )
    assert code == 0, acl.aclGetRecentErrMsg()
    assert int(c[0, 0]) == (2**20 * 4 * 128 * 128 + 15 + 2**31) % 2**32 - 2**31
