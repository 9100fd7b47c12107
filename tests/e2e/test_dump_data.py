"""The independent reader, checked against a file made by the vendor's hardware."""

from __future__ import annotations

import dump_data
import numpy as np
import pytest

# Kept as literals in MindSpore's tests: `Add.Default_Add-op0`, one float16 output.
VENDOR_FILE = bytes.fromhex(
    "3100000000000000"
    "0a03322e30 1083f7ef9f99c8f302"
    "1a10 0802 1002 1a030a0102 3004 3a030a0102"
    "320f44656661756c742f4164642d6f7030"
    "ff7bff7b"
)


def test_reads_the_vendors_file() -> None:
    data = dump_data.parse(VENDOR_FILE)
    assert (data.version, data.dump_time, data.op_name) == ("2.0", 1634155934514051, "Default/Add-op0")
    assert (data.inputs, data.other_fields) == ([], [])
    (output,) = data.outputs
    assert (output.format, output.shape, output.original_shape, output.size) == (dump_data.ND, (2,), (2,), 4)
    np.testing.assert_array_equal(output.array(), np.array([65504, 65504], np.float16), strict=True)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "0 bytes"),
        (VENDOR_FILE[:7], "7 bytes"),
        (VENDOR_FILE[:56], "header of 49 bytes"),
        (VENDOR_FILE[:-1], "tensor of 4 bytes"),
        (VENDOR_FILE + b"\0", "1 bytes left over"),
        (b"\x02" + bytes(7) + b"\x50\x00", "unknown field 10"),
        (b"\x02" + bytes(7) + b"\x0d\x00", "wire type 5"),
        (b"\x01" + bytes(7) + b"\x10", "cut off"),
        (b"\x02" + bytes(7) + b"\x0a\x05", "field 1 of 5 bytes"),
        (b"\x04" + bytes(7) + b"\x10\x01\x0a\x00", "field 1 after field 2"),
    ],
)
def test_refuses_anything_else(raw: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dump_data.parse(raw)
