"""An independent reader of one dump file, written from the format's description and sharing no code with the tool.

The file is a little-endian u64 header length, the header (a protobuf message, `DumpData`), and the bytes of all inputs,
then of all outputs, without padding. This reader is stricter than a reader needs to be: it refuses unknown fields,
fields out of order, and bytes left over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DATA_TYPES = {
    1: np.float32,
    2: np.float16,
    3: np.int8,
    4: np.uint8,
    5: np.int16,
    6: np.uint16,
    7: np.int32,
    8: np.int64,
    9: np.uint32,
    10: np.uint64,
    11: np.bool_,
    12: np.float64,
}

NCHW, ND = 0, 2

HEADER_FIELDS = {
    1: "version",
    2: "dump_time",
    3: "output",
    4: "input",
    5: "buffer",
    6: "op_name",
    7: "attr",
    8: "space",
    9: "dfx_message",
}
OUTPUT_FIELDS = {
    1: "data_type",
    2: "format",
    3: "shape",
    4: "original_op",
    5: "data",
    6: "size",
    7: "original_shape",
    8: "sub_format",
    9: "address",
    10: "dim_range",
    11: "offset",
    12: "arg_index",
    1000: "slot",
}
INPUT_FIELDS = {
    1: "data_type",
    2: "format",
    3: "shape",
    4: "data",
    5: "size",
    6: "original_shape",
    7: "sub_format",
    8: "address",
    9: "offset",
    10: "arg_index",
    11: "input_type",
    1000: "slot",
}
SHAPE_FIELDS = {1: "dim"}

Message = dict[str, list[int | bytes]]


@dataclass(frozen=True)
class Tensor:
    data_type: int
    format: int
    shape: tuple[int, ...]
    original_shape: tuple[int, ...] | None
    size: int
    payload: bytes
    slot: int | None

    def array(self) -> NDArray:
        return np.frombuffer(self.payload, DATA_TYPES[self.data_type]).reshape(self.shape)


@dataclass(frozen=True)
class DumpData:
    version: str
    dump_time: int
    op_name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    other_fields: list[str]


def parse(raw: bytes) -> DumpData:
    """Raise ValueError unless `raw` is exactly one well-formed file."""
    if len(raw) < 8:
        raise ValueError(f"{len(raw)} bytes, expected at least 8")
    (header_length,) = struct.unpack_from("<Q", raw)
    if header_length > len(raw) - 8:
        raise ValueError(f"header of {header_length} bytes in a file of {len(raw)}")
    header = _message(raw[8 : 8 + header_length], HEADER_FIELDS)
    entries = [_message(part, INPUT_FIELDS) for part in header.get("input", [])]
    n_inputs = len(entries)
    entries += [_message(part, OUTPUT_FIELDS) for part in header.get("output", [])]

    tensors, offset = [], 8 + header_length
    for entry in entries:
        size = _last(entry, "size", 0)
        if offset + size > len(raw):
            raise ValueError(f"tensor of {size} bytes at {offset} in a file of {len(raw)}")
        tensors.append(_tensor(entry, size, raw[offset : offset + size]))
        offset += size
    if offset != len(raw):
        raise ValueError(f"{len(raw) - offset} bytes left over")
    return DumpData(
        version=_last(header, "version", b"").decode(),
        dump_time=_last(header, "dump_time", 0),
        op_name=_last(header, "op_name", b"").decode(),
        inputs=tensors[:n_inputs],
        outputs=tensors[n_inputs:],
        other_fields=sorted(header.keys() - {"version", "dump_time", "op_name", "input", "output"}),
    )


def _tensor(entry: Message, size: int, payload: bytes) -> Tensor:
    if _last(entry, "data", b""):
        raise ValueError("tensor bytes inside the header")
    original = entry.get("original_shape")
    return Tensor(
        data_type=_last(entry, "data_type", 0),
        format=_last(entry, "format", 0),
        shape=_dims(_last(entry, "shape", b"")),
        original_shape=None if original is None else _dims(original[-1]),
        size=size,
        payload=payload,
        slot=_last(entry, "slot", None),
    )


def _dims(raw: bytes) -> tuple[int, ...]:
    dims: list[int] = []
    for value in _message(raw, SHAPE_FIELDS).get("dim", []):
        if isinstance(value, int):
            dims.append(value)
            continue
        offset = 0
        while offset < len(value):
            dim, offset = _varint(value, offset)
            dims.append(dim)
    return tuple(dims)


def _last(message: Message, field: str, default):
    return message.get(field, [default])[-1]


def _message(raw: bytes, fields: dict[int, str]) -> Message:
    message: Message = {}
    previous = 0
    for number, value in _wire_fields(raw):
        if number not in fields:
            raise ValueError(f"unknown field {number}, expected one of {fields}")
        if number < previous:
            raise ValueError(f"field {number} after field {previous}")
        message.setdefault(fields[number], []).append(value)
        previous = number
    return message


def _wire_fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    offset = 0
    while offset < len(raw):
        key, offset = _varint(raw, offset)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, offset = _varint(raw, offset)
            yield number, value
        elif wire_type == 2:
            length, offset = _varint(raw, offset)
            if offset + length > len(raw):
                raise ValueError(f"field {number} of {length} bytes at {offset} in a message of {len(raw)}")
            yield number, raw[offset : offset + length]
            offset += length
        else:
            raise ValueError(f"field {number} has wire type {wire_type}, expected 0 or 2")


def _varint(raw: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if offset >= len(raw):
            raise ValueError("number cut off at the end of the message")
        byte = raw[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
    raise ValueError(f"number longer than 10 bytes before {offset}")
