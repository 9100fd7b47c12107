"""With `OPSCOPE` set, and the C library next to the tool: aclnn's operators return torch's results."""

from __future__ import annotations

import os
import threading
import zlib

import aclnn
import pytest
import torch
from aclnn_cases import all_cases

pytestmark = pytest.mark.skipif(aclnn.library_path() is None, reason="the C library was not built")

CASES = all_cases()
# Any text draws others.
OTHER_DRAWS = os.environ.get("OPSCOPE_ACLNN_DRAWS", "")


@pytest.mark.sampled(0.1)
@pytest.mark.parametrize("case", CASES, ids=[case.function for case in CASES])
def test_results_are_those_of_torch(case: aclnn.Case) -> None:
    for dtype in case.dtypes:
        for i in range(case.n_draws if aclnn.engine() == "tract" else max(case.n_draws // 2, 1)):
            seed = zlib.crc32(f"{case.function} {dtype} {i}{OTHER_DRAWS}".encode())
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


def test_an_output_may_be_an_input_or_overlap_one() -> None:
    x = torch.arange(1.0, 8.0)
    expected = x.clone()
    aclnn.call("aclnnAdd", x, x, 1, x)
    assert torch.equal(x, expected * 2)
    # The output begins one element behind the input, in the same memory.
    expected[1:] = x[:-1] + x[1:]
    expected[0] = x[0]
    aclnn.call("aclnnAdd", x[:-1], x[1:].clone(), 1, x[1:])
    assert torch.equal(x, expected)
    y = torch.arange(9.0).reshape(3, 3)
    turned = y.t().clone()
    aclnn.call("aclnnMuls", y.t(), 1.0, y)
    assert torch.equal(y, turned)


def test_views_stay_in_their_storage() -> None:
    beyond = torch.zeros(4).as_strided((2, 2), (2, 1), 0)
    objects = aclnn.Objects()
    handle = objects.tensor(beyond)
    library = aclnn.library()
    dims = (aclnn.ctypes.c_int64 * 2)(2, 2)
    strides = (aclnn.ctypes.c_int64 * 2)(4, 1)
    storage = aclnn.ctypes.c_int64(4)
    arguments = (dims, aclnn.ctypes.c_uint64(2), 0, strides, aclnn.ctypes.c_int64(0))
    memory = aclnn.ctypes.c_void_p(beyond.data_ptr())
    code = library.aclInitTensor(
        handle, *arguments, 2, aclnn.ctypes.byref(storage), aclnn.ctypes.c_uint64(1), memory
    )
    assert code == 0
    size, executor = aclnn.ctypes.c_uint64(), aclnn.ctypes.c_void_p()
    out = [aclnn.ctypes.byref(size), aclnn.ctypes.byref(executor)]
    assert library.aclnnAbsGetWorkspaceSize(handle, objects.tensor(torch.zeros(2, 2)), *out) == 161002
    assert "the last element of `self` is at 5, its storage has 4" in aclnn.report()
    # Blocked formats are not read as if they were plain.
    code = library.aclInitTensor(
        handle, *arguments, 29, aclnn.ctypes.byref(storage), aclnn.ctypes.c_uint64(0), memory
    )
    assert code == 0
    assert library.aclnnAbsGetWorkspaceSize(handle, objects.tensor(torch.zeros(2, 2)), *out) == 161002
    assert "has the format 29" in aclnn.report()
    objects.end()


def test_integers_are_not_divided_by_zero() -> None:
    x, out = torch.tensor([1, 2]), torch.tensor([7, 7])
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.call("aclnnFloorDivide", x, torch.tensor([1, 0]), out)
    assert refused.value.code == 361001 and "divided by 0" in refused.value.report
    assert out.tolist() == [7, 7]
    with pytest.raises(aclnn.AclnnError) as refused:
        aclnn.call("aclnnFloorDivides", x, 0, out)
    assert refused.value.code == 161002


def test_threads_do_not_disturb_each_other() -> None:
    wrong: list[str] = []

    def work(seed: int) -> None:
        values = torch.Generator().manual_seed(seed)
        for i in range(40):
            x = torch.rand(2 + i % 3, 4, generator=values)
            out, total = torch.zeros_like(x), torch.zeros(4)
            aclnn.call("aclnnAdds", x, float(seed), 1, out)
            aclnn.call("aclnnReduceSum", x, [0], False, torch.float32, total)
            if not torch.equal(out, x + seed) or not torch.allclose(total, x.sum(0)):
                wrong.append(f"thread {seed}, call {i}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
