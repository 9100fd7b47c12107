"""With `OPSCOPE` set, and the C library beside the tool: aclnn's operators give torch's results."""

from __future__ import annotations

import zlib

import aclnn
import pytest
import torch
from aclnn_cases import all_cases

pytestmark = pytest.mark.skipif(aclnn.library_path() is None, reason="the C library was not built")

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=[case.function for case in CASES])
def test_results_are_those_of_torch(case: aclnn.Case) -> None:
    for dtype in case.dtypes:
        for i in range(case.n_draws if aclnn.engine() == "tract" else max(case.n_draws // 2, 1)):
            seed = zlib.crc32(f"{case.function} {dtype} {i}".encode())
            try:
                aclnn.run(case, dtype, seed)
            except (AssertionError, aclnn.AclnnError) as error:
                raise AssertionError(f"{dtype}, draw {i}: {error}") from error


def test_every_operator_has_a_case() -> None:
    assert {case.function for case in CASES} == set(aclnn.signatures())


def test_a_null_tensor_is_refused() -> None:
    out = torch.zeros(2)
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.call("aclnnAdd", out, None, 1, out)
    assert refused.value.code == 161001
    assert "EZ1001" in refused.value.report and "`other` is a null pointer" in refused.value.report


def test_shapes_and_types_are_checked() -> None:
    x = torch.zeros(2, 3)
    for arguments, text in [
        ((x, torch.zeros(4), 1, x), "do not broadcast"),
        ((x, x, 1, torch.zeros(3, 2)), "expected [2, 3]"),
        ((x, x, 1, torch.zeros(2, 3, dtype=torch.int32)), "cannot hold results of type float32"),
        ((x, x, 1, torch.zeros(2, 1).expand(2, 3)), "share memory"),
    ]:
        with pytest.raises(aclnn.AclnnError) as refused:
            aclnn.call("aclnnAdd", *arguments)
        assert refused.value.code == 161002, refused.value
        assert text in refused.value.report, refused.value
