"""Addresses of Python objects, and threads whose ids `acl.rt.subscribe_report` accepts."""

from __future__ import annotations

import errno
import threading
import warnings
from typing import TYPE_CHECKING, Any

from opscope import _argument, _options
from opscope._fork_lock import ForkLock
from opscope._native.util import bytes_to_ptr, ptr_to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

__all__ = [
    "bytes_to_ptr",
    "numpy_contiguous_to_ptr",
    "numpy_to_ptr",
    "ptr_to_bytes",
    "ptr_to_numpy",
    "start_thread",
    "stop_thread",
]

# The system may reuse the id of an ended thread; threads are joined in order.
_threads: dict[int, list[threading.Thread]] = {}
_threads_lock = ForkLock()


class _Memory:
    """Memory at an address, through numpy's array interface."""

    def __init__(self, ptr: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.__array_interface__ = {"version": 3, "data": (ptr, False), "shape": shape, "typestr": dtype.str}


def numpy_to_ptr(data: np.ndarray) -> int:
    """The address of an array's first element, valid while the array exists."""
    array = _array(data)
    if not array.flags.c_contiguous:
        warnings.warn(
            "the array's elements are not contiguous; use acl.util.numpy_contiguous_to_ptr",
            stacklevel=2,
        )
    return int(array.__array_interface__["data"][0])


def numpy_contiguous_to_ptr(data: np.ndarray) -> tuple[int, np.ndarray]:
    """The address of the first element, and the array: a copy if the elements were not contiguous.
    """
    array = _array(data)
    if not array.flags.c_contiguous:
        array = array.copy(order="C")
    return int(array.__array_interface__["data"][0]), array


def ptr_to_numpy(ptr: int, shape: tuple[int, ...], npy_type: int) -> np.ndarray:
    """An array over the memory at an address, which must outlive it. `npy_type` is numpy's type
    number."""
    import numpy as np

    _options.whole("ptr", ptr, 0)
    if not isinstance(shape, tuple):
        raise TypeError(f"shape: a tuple is expected, got {_argument.shown(shape)} ({type(shape).__name__})")
    _options.wholes("shape", shape, 0)
    _options.whole("npy_type", npy_type, 0)
    if ptr == 0:
        raise ValueError("a null pointer has no elements")
    dtype = next((dtype for dtype in map(np.dtype, "?bBhHiIlLqQefdgFDG") if dtype.num == npy_type), None)
    if dtype is None:
        raise ValueError(f"numpy's type number {npy_type} is not numeric")
    return np.asarray(_Memory(ptr, tuple(int(extent) for extent in shape), dtype))


def _array(data: np.ndarray) -> np.ndarray:
    import numpy as np

    if not isinstance(data, np.ndarray):
        raise ValueError(f"data: a numpy.ndarray is expected, got {_argument.shown(data)} ({type(data).__name__})")
    return data


def start_thread(thr_func: Callable[[list[Any]], object], args_list: list[Any]) -> tuple[int, int]:
    """Calls `thr_func(args_list)` in a new thread: returns its id, and the code.

    The thread has no context until it sets one. A program may end without it.
    """
    if not callable(thr_func):
        raise TypeError(f"thr_func: a function is expected, got {_argument.shown(thr_func)} ({type(thr_func).__name__})")
    thread = threading.Thread(target=thr_func, args=(args_list,), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return 0, errno.EAGAIN
    assert thread.ident is not None
    with _threads_lock:
        _threads.setdefault(thread.ident, []).append(thread)
    return thread.ident, 0


def stop_thread(thr_id: int) -> int:
    """Waits until a thread of `start_thread` ends; `ESRCH` if the id is unknown."""
    _options.whole("thr_id", thr_id, -(2**63))
    with _threads_lock:
        started = _threads.get(thr_id, [])
        thread = started.pop(0) if started else None
        if not started:
            _threads.pop(thr_id, None)
    if thread is None:
        return errno.ESRCH
    if thread is threading.current_thread():
        return errno.EDEADLK
    thread.join()
    return 0
