"""Writes the tables of the native form without a library: Parquet with plain pages and one row group.

Generated runs have thousands of small tables, and a library takes most of the time to begin each column.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

INT64, DOUBLE, BYTE_ARRAY = 2, 5, 6
REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
UTF8, LIST = 0, 3
PLAIN, RLE = 0, 3
# Types of Thrift's compact protocol.
I32, I64, BINARY, LIST_OF, STRUCT = 5, 6, 8, 9, 12

Cells = Sequence[object]


def table(columns: dict[str, tuple[str, Cells]], n_rows: int) -> bytes:
    """A table of columns of the kinds `int`, `double`, `text` and `list`; empty cells are None."""
    out = bytearray(b"PAR1")
    schema = [_struct([(4, BINARY, _text("slots")), (5, I32, _int(len(columns)))])]
    chunks = []
    for name, (kind, cells) in columns.items():
        physical, path = _declare(schema, name, kind)
        levels, values, n_values = _pages(kind, cells)
        page = levels + values
        start = len(out)
        out += _page_header(len(page), n_values) + page
        n_bytes = len(out) - start
        metadata = _struct(
            [
                (1, I32, _int(physical)),
                (2, LIST_OF, _list(I32, [_int(PLAIN), _int(RLE)])),
                (3, LIST_OF, _list(BINARY, [_text(part) for part in path])),
                (4, I32, _int(0)),
                (5, I64, _int(n_values)),
                (6, I64, _int(n_bytes)),
                (7, I64, _int(n_bytes)),
                (9, I64, _int(start)),
            ]
        )
        chunks.append(_struct([(2, I64, _int(start)), (3, STRUCT, metadata)]))
    n_bytes = len(out) - 4
    group = _struct([(1, LIST_OF, _list(STRUCT, chunks)), (2, I64, _int(n_bytes)), (3, I64, _int(n_rows))])
    version = _struct([(1, BINARY, _text("opscope.slot_table")), (2, BINARY, _text("1"))])
    footer = _struct(
        [
            (1, I32, _int(1)),
            (2, LIST_OF, _list(STRUCT, schema)),
            (3, I64, _int(n_rows)),
            (4, LIST_OF, _list(STRUCT, [group])),
            (5, LIST_OF, _list(STRUCT, [version])),
        ]
    )
    return bytes(out + footer + struct.pack("<I", len(footer)) + b"PAR1")


def write(path: Path, columns: dict[str, tuple[str, Cells]], n_rows: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(table(columns, n_rows))


def _declare(schema: list[bytes], name: str, kind: str) -> tuple[int, list[str]]:
    """Adds a column to the schema; its physical type and path."""
    if kind == "list":
        schema.append(_element(name, None, OPTIONAL, n_children=1, converted=LIST))
        schema.append(_element("list", None, REPEATED, n_children=1))
        schema.append(_element("element", INT64, REQUIRED))
        return INT64, [name, "list", "element"]
    physical = {"int": INT64, "double": DOUBLE, "text": BYTE_ARRAY}[kind]
    schema.append(_element(name, physical, OPTIONAL, converted=UTF8 if kind == "text" else None))
    return physical, [name]


def _element(
    name: str, physical: int | None, repetition: int, n_children: int | None = None, converted: int | None = None
) -> bytes:
    fields = [
        (1, I32, physical),
        (3, I32, repetition),
        (4, BINARY, name),
        (5, I32, n_children),
        (6, I32, converted),
    ]
    present = [(number, kind, value) for number, kind, value in fields if value is not None]
    return _struct([(n, k, _text(v) if isinstance(v, str) else _int(v)) for n, k, v in present])


def _pages(kind: str, cells: Cells) -> tuple[bytes, bytes, int]:
    """Levels, values and the number of values of a column."""
    if kind == "list":
        repetition, definition, extents = [], [], []
        for cell in cells:
            if not cell:
                repetition.append(0)
                definition.append(0 if cell is None else 1)
                continue
            repetition += [0] + [1] * (len(cell) - 1)
            definition += [2] * len(cell)
            extents += cell
        values = struct.pack(f"<{len(extents)}q", *extents)
        return _levels(repetition) + _levels(definition), values, len(definition)
    present = [cell for cell in cells if cell is not None]
    if kind == "text":
        encoded = [str(cell).encode() for cell in present]
        values = b"".join(struct.pack("<I", len(text)) + text for text in encoded)
    else:
        values = struct.pack(f"<{len(present)}{'q' if kind == 'int' else 'd'}", *present)
    return _levels([int(cell is not None) for cell in cells]), values, len(cells)


def _levels(levels: Iterable[int]) -> bytes:
    """Levels as runs of one value, each of which fits a byte."""
    runs = b"".join(_varint(sum(1 for _ in run) << 1) + bytes([level]) for level, run in groupby(levels))
    return struct.pack("<I", len(runs)) + runs


def _page_header(n_bytes: int, n_values: int) -> bytes:
    data = _struct([(1, I32, _int(n_values)), (2, I32, _int(PLAIN)), (3, I32, _int(RLE)), (4, I32, _int(RLE))])
    return _struct([(1, I32, _int(0)), (2, I32, _int(n_bytes)), (3, I32, _int(n_bytes)), (5, STRUCT, data)])


def _struct(fields: list[tuple[int, int, bytes]]) -> bytes:
    out, last = bytearray(), 0
    for number, kind, value in fields:
        out.append((number - last) << 4 | kind)
        out += value
        last = number
    out.append(0)
    return bytes(out)


def _list(kind: int, items: list[bytes]) -> bytes:
    n = len(items)
    head = bytes([n << 4 | kind]) if n < 15 else bytes([0xF0 | kind]) + _varint(n)
    return head + b"".join(items)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _varint(len(encoded)) + encoded


def _int(number: int) -> bytes:
    return _varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
