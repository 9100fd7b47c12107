"""Reads Arrow's C structures as the specification lays them out, without any library that knows Arrow."""

from __future__ import annotations

import ctypes
from typing import Any

# The flag of a field that may have no value.
NULLABLE = 2


class ArrowSchema(ctypes.Structure):
    """The description of a column, or of a table with its columns as children."""


ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class ArrowArray(ctypes.Structure):
    """A batch of rows; only how many it has is read here."""

    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    )


class ArrowStream(ctypes.Structure):
    """Functions that give one batch after the other."""

    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


def _address(capsule: object, name: bytes) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(pointer(capsule, name))


def fields(table: Any) -> list[tuple[str, str, bool]]:
    """Name, format and nullability of each column, and behind a list those of its elements."""
    # The capsule releases what it has when it goes, and not before.
    capsule = table.__arrow_c_schema__()
    schema = ArrowSchema.from_address(_address(capsule, b"arrow_schema"))
    assert schema.format == b"+s"
    found = []
    columns = [schema.children[i].contents for i in range(schema.n_children)]
    for column in columns:
        for one in (column, *(column.children[i].contents for i in range(column.n_children))):
            found.append((one.name.decode(), one.format.decode(), bool(one.flags & NULLABLE)))
    return found


def batch_lengths(table: Any) -> list[int]:
    """Rows of each batch; raises for the message of an error."""
    capsule = table.__arrow_c_stream__()
    address = _address(capsule, b"arrow_array_stream")
    stream = ArrowStream.from_address(address)
    lengths = []
    while True:
        batch = ArrowArray()
        if stream.get_next(address, ctypes.addressof(batch)):
            raise RuntimeError(stream.get_last_error(address).decode())
        # A batch without a release function is the end.
        if not batch.release:
            return lengths
        lengths.append(batch.length)
        batch.release(ctypes.addressof(batch))
