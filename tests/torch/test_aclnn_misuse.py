"""With `OPSCOPE` set, and the C library next to the tool: whatever is passed to aclnn's operators, a
code comes back, and no memory stays behind."""

from __future__ import annotations

import ctypes
import random

import aclnn
import pytest
import torch

pytestmark = pytest.mark.skipif(aclnn.library_path() is None, reason="the C library was not built")

N_CALLS = 20_000
PAGE = 4096
# Nothing wrong is passed, a null pointer, a wrong argument, a failure at run time, no engine.
CODES = {0, 161001, 161002, 361001, 561000}
# Elements behind each tensor, so that every view that is made has memory.
N_ELEMENTS = 256


class Calls:
    """Random calls. Objects live for some calls, and their handles are passed after that too."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.library = aclnn.library()
        self.memory = ctypes.create_string_buffer(8 * N_ELEMENTS)
        self.live: list[tuple[str, int]] = []
        self.ended: list[int] = []
        self.codes: dict[int, int] = {}

    def make(self) -> None:
        kind = self.random.choice(["Tensor"] * 5 + ["Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList"])
        made = getattr(self, f"make_{kind.lower()}")()
        if made:
            self.live.append((kind, made))
        while len(self.live) > 40:
            self.end(self.live.pop(self.random.randrange(len(self.live))))

    def end(self, one: tuple[str, int]) -> None:
        kind, handle = one
        # A list ends what is in it, which may be among the other objects.
        code = getattr(self.library, f"aclDestroy{kind}")(ctypes.c_void_p(handle))
        assert code in CODES, (kind, code)
        self.ended = [*self.ended[-30:], handle]

    def make_tensor(self) -> int | None:
        dims = [self.random.choice([0, 1, 1, 2, 2, 3, 4]) for _ in range(self.random.randint(0, 4))]
        extents = (ctypes.c_int64 * 4)(*dims)
        storage = ctypes.c_int64(N_ELEMENTS)
        data_type = self.random.choice([*aclnn.DATA_TYPES.values(), 5, 16, -1, 77])
        address = None if self.random.random() < 0.03 else ctypes.addressof(self.memory)
        return self.library.aclCreateTensor(
            extents,
            ctypes.c_uint64(len(dims)),
            data_type,
            None,
            ctypes.c_int64(0),
            aclnn.ND,
            ctypes.byref(storage),
            ctypes.c_uint64(1),
            ctypes.c_void_p(address),
        )

    def make_scalar(self) -> int | None:
        return self.library.aclCreateScalar(self.memory, self.random.choice(list(aclnn.DATA_TYPES.values())))

    def make_intarray(self) -> int | None:
        numbers = [self.number() for _ in range(self.random.randint(0, 4))]
        return self.library.aclCreateIntArray((ctypes.c_int64 * 4)(*numbers), ctypes.c_uint64(len(numbers)))

    def make_floatarray(self) -> int | None:
        return self.library.aclCreateFloatArray((ctypes.c_float * 3)(1, 0.5, -2), ctypes.c_uint64(3))

    def make_boolarray(self) -> int | None:
        return self.library.aclCreateBoolArray((ctypes.c_bool * 2)(True, False), ctypes.c_uint64(2))

    def make_tensorlist(self) -> int | None:
        handles = [self.make_tensor() for _ in range(self.random.randint(0, 3))]
        array = (ctypes.c_void_p * 3)(*handles)
        return self.library.aclCreateTensorList(array, ctypes.c_uint64(len(handles)))

    def number(self) -> int:
        if self.random.random() < 0.05:
            return self.random.choice([2**63 - 1, -(2**63), 2**31, 2**40, -(2**31)])
        return self.random.randint(-2, 4)

    def handle(self, kind: str) -> ctypes.c_void_p:
        chance = self.random.random()
        if chance < 0.03:
            return ctypes.c_void_p(None)
        if chance < 0.06:
            return ctypes.c_void_p(self.random.choice([*self.ended, 1, 2**63 + 5]))
        fitting = [handle for known, handle in self.live if chance < 0.09 or f"acl{known}" == kind]
        return ctypes.c_void_p(self.random.choice(fitting) if fitting else None)

    def argument(self, kind: str) -> object:
        simple = {
            "int64_t": ctypes.c_int64,
            "int32_t": lambda n: ctypes.c_int32(n % 2**31),
            "int8_t": lambda n: ctypes.c_int8(n % 2**7),
            "uint64_t": lambda n: ctypes.c_uint64(n % 2**64),
            "aclDataType": lambda n: ctypes.c_int32(n % 2**31),
            "bool": lambda n: ctypes.c_bool(n % 2),
        }
        if kind in simple:
            return simple[kind](self.number())
        if kind in ("double", "float"):
            number = self.random.choice([0.0, 1.0, -1.5, 1e-3, float("inf"), float("nan"), 1e300])
            return ctypes.c_double(number) if kind == "double" else ctypes.c_float(number)
        if kind == "char":
            return self.random.choice([None, b"", b"a,b->ab", b"ab,bc->ac", b"nearest", b"\xff->"])
        return self.handle(kind)

    def call(self, function: str, kinds: list[str]) -> None:
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        passed = [self.argument(kind) for kind in kinds]
        stage_one = getattr(self.library, f"{function}GetWorkspaceSize")
        code = stage_one(*passed, ctypes.byref(size), ctypes.byref(executor))
        self.count(function, code)
        if code != 0:
            assert aclnn.report(), function
            return
        for one in [*self.live]:
            if self.random.random() < 0.02:
                # What an executor was made of may end before it runs.
                self.live.remove(one)
                self.end(one)
        self.count(function, getattr(self.library, function)(None, ctypes.c_uint64(0), executor, None))
        code = getattr(self.library, function)(None, ctypes.c_uint64(0), executor, None)
        assert code == 161002, f"{function} runs twice with one executor: {code}"

    def count(self, function: str, code: int) -> None:
        assert code in CODES, f"{function} gives {code}"
        self.codes[code] = self.codes.get(code, 0) + 1


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def test_any_argument_gives_a_code_and_leaves_no_memory() -> None:
    calls = Calls(3)
    parameters = [(name, [kind for kind, _ in pairs]) for name, pairs in aclnn.signatures().items()]
    before = 0
    for i in range(N_CALLS):
        if i == N_CALLS // 2:
            # Graphs that stay loaded are made by then.
            before = resident_bytes()
        calls.make()
        calls.call(*calls.random.choice(parameters))
    after = resident_bytes()
    assert calls.codes[0] > N_CALLS // 50 and calls.codes[161002] > N_CALLS // 10
    assert after - before < 64 << 20, (before, after)


def test_places_beyond_a_tensor_fail_at_run_time() -> None:
    x, out = torch.arange(6.0), torch.zeros(2)
    for function, arguments in [
        ("aclnnIndexSelect", (x, 0, torch.tensor([0, 6]), out)),
        ("aclnnIndexSelect", (x, 0, torch.tensor([0, -1]), out)),
        ("aclnnTake", (x, torch.tensor([9, 0]), out)),
        ("aclnnGather", (x, 0, torch.tensor([-7, 0]), out)),
        ("aclnnIndex", (x, [torch.tensor([6, 0])], out)),
        ("aclnnScatterAdd", (out, 0, torch.tensor([2, 0]), out, out)),
        ("aclnnRepeatInterleave", (x, torch.tensor([0, 0, 0, 0, 0, 3]), 2, out)),
        ("aclnnRepeatInterleave", (x, torch.tensor([0, 0, 0, 0, 1, 0]), 2, out)),
        ("aclnnMaskedSelect", (x, x > 0, out)),
    ]:
        out.fill_(7)
        with pytest.raises(aclnn.AclnnError) as refused:
            aclnn.call(function, *arguments)
        assert refused.value.code == 361001, (function, refused.value)
        assert out.tolist() == [7, 7], function


def test_arguments_that_do_not_fit_are_named() -> None:
    x = torch.zeros(2, 3)
    row, places = torch.zeros(3), torch.zeros(3, dtype=torch.int64)
    for function, arguments, text in [
        ("aclnnPermute", (x, [0, 0], x), "each axis once"),
        ("aclnnFlip", (x, [2], x), "expected an axis"),
        ("aclnnExpand", (x, [2, 2], x), "does not broadcast"),
        ("aclnnCat", ([x, row], 0, x), "the same one but for axis 0"),
        ("aclnnSplitWithSize", (x, [1, 2], 0, [x, x]), "expected 2 entries altogether"),
        ("aclnnReflectionPad1d", (x, [3, 0], x), "expected 2 at most"),
        ("aclnnTopk", (row, 4, 0, True, True, row, places), "expected 0 to 3"),
        ("aclnnKthvalue", (row, 0, 0, False, row[0], places[0]), "expected 1 to 3"),
        ("aclnnGather", (row, 0, row, row), "int32 or int64"),
        ("aclnnSlice", (row, 0, 0, 3, 0, row), "the step is 0"),
        ("aclnnScatter", (row, 0, places, row, 3, row), "expected 0 to 2"),
        ("aclnnDropout", (row, 0.5, True, 1, 0, row, torch.zeros(16, dtype=torch.uint8)), "random numbers"),
        ("aclnnEinsum", ([row, row], "a,b->abc", x), "unknown letter"),
        ("aclnnIndex", (x, [torch.zeros(3, dtype=torch.bool)], x), "booleans of the shape"),
        ("aclnnUpsampleLinear1d", (x.double(), [4], False, 0.0, x.double()), "outputSize"),
    ]:
        with pytest.raises(aclnn.AclnnError) as refused:
            aclnn.call(function, *arguments)
        assert refused.value.code == 161002, (function, refused.value)
        assert text in refused.value.report, (function, refused.value)


def test_what_attention_does_not_compute_is_named() -> None:
    x = torch.zeros(1, 2, 3, 4)
    packed, mask = torch.zeros(5, 2, 4), torch.zeros(5, 5, dtype=torch.bool)
    rest = (0, 0, 0, False, torch.zeros_like(packed), None)

    def training(**changed: object) -> tuple[object, ...]:
        given: dict[str, object] = {"drop": None, "mask": None, "keep": 1.0, "layout": "BNSD", "mode": 0} | changed
        return (
            *(x, x, x, None, given["drop"], None, given["mask"], None, 1.0, given["keep"]),
            *(9, 9, 2, given["layout"], 0, given["mode"], None, None, None, torch.zeros_like(x)),
        )

    def fused(lengths: object, mask: object, mode: int, table: object = None) -> tuple[object, ...]:
        absent = [None] * 7
        front = (packed, [packed], [packed], None, mask, lengths, lengths)
        return (*front, *absent, table, None, None, 2, 1.0, 9, 9, "TND", 2, mode, *rest)

    table = torch.zeros(1, 1, dtype=torch.int32)
    for function, arguments, text in [
        ("aclnnFlashAttentionScore", training(keep=0.5), "dropout"),
        ("aclnnFlashAttentionScore", training(layout="TND"), "not supported"),
        ("aclnnFlashAttentionScore", training(mask=mask, mode=3), "expected 2048 by 2048"),
        ("aclnnFlashAttentionScore", training(mask=mask, mode=7), "expected 0 to 6"),
        ("aclnnFusedInferAttentionScore", fused([5, 3], None, 0), "in ascending order"),
        ("aclnnFusedInferAttentionScore", fused([2, 6], None, 0), "samples end among 5 tokens"),
        ("aclnnFusedInferAttentionScore", fused(None, None, 0), "samples end among 5 tokens"),
        ("aclnnFusedInferAttentionScore", fused([5], mask, 1), "for packed samples"),
        ("aclnnFusedInferAttentionScore", fused([5], mask, 5), "expected 0 to 4"),
        ("aclnnFusedInferAttentionScore", fused([5], None, 0, table), "`blockSize` is 0"),
    ]:
        with pytest.raises(aclnn.AclnnError) as refused:
            aclnn.call(function, *arguments)
        assert refused.value.code == 161002, (function, refused.value)
        assert text in refused.value.report, (function, refused.value)
