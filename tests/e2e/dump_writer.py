"""Dump files made by hand, sharing no code with the tool."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Numbers of dtypes and layouts in a header.
FLOAT32, FLOAT16, INT8, UNDEFINED, STRING, BFLOAT16, INT4, UINT1, COMPLEX32 = 1, 2, 3, 0, 13, 27, 28, 29, 32
COMPLEX64, FLOAT8_E5M2, FLOAT8_E4M3FN = 16, 34, 35
NCHW, NHWC, ND, NC1HWC0 = 0, 1, 2, 3


@dataclass(frozen=True)
class Tensor:
    """One input or output; `size` differs from the payload's only in a damaged file."""

    data_type: int
    shape: Sequence[int]
    payload: bytes
    layout: int = ND
    original_shape: Sequence[int] = ()


def dump_file(name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], time: int = 0) -> bytes:
    """The whole file of an operator."""
    header = _bytes(1, b"2.0") + _number(2, time)
    header += b"".join(_bytes(3, _entry(tensor, is_output=True)) for tensor in outputs)
    header += b"".join(_bytes(4, _entry(tensor, is_output=False)) for tensor in inputs)
    header += _bytes(6, name.encode())
    payload = b"".join(tensor.payload for tensor in (*inputs, *outputs))
    return struct.pack("<Q", len(header)) + header + payload


def write_dump_file(
    folder: Path, file_name: str, inputs: Sequence[Tensor] = (), outputs: Sequence[Tensor] = ()
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name
    path.write_bytes(dump_file(file_name.split(".")[1], inputs, outputs))
    return path


def _entry(tensor: Tensor, is_output: bool) -> bytes:
    shape = _bytes(1, b"".join(_varint(dim) for dim in tensor.shape))
    original = _bytes(1, b"".join(_varint(dim) for dim in tensor.original_shape))
    size_field, original_field = (6, 7) if is_output else (5, 6)
    entry = _number(1, tensor.data_type) + _number(2, tensor.layout) + _bytes(3, shape)
    entry += _number(size_field, len(tensor.payload))
    return entry + (_bytes(original_field, original) if tensor.original_shape else b"")


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
