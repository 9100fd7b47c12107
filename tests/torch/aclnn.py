"""Calls of aclnn's operators on torch's tensors, in this process, and what they have to give.

Parameters are those of the headers: each argument becomes what its C type asks for. Tensors are
passed as the views that they are: strides, offset and storage are torch's.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import math
import os
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "bindings/c/include/aclnnop"

DATA_TYPES = {
    torch.float32: 0,
    torch.float16: 1,
    torch.int8: 2,
    torch.int32: 3,
    torch.uint8: 4,
    torch.int16: 6,
    torch.int64: 9,
    torch.float64: 11,
    torch.bool: 12,
    torch.bfloat16: 27,
}
ND = 2

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
ALL_FLOATS = [*FLOATS, torch.float64]
INTEGERS = [torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8]
NUMBERS = [*ALL_FLOATS, *INTEGERS]
ALL = [*NUMBERS, torch.bool]


class AclnnError(Exception):
    """A code other than 0, with the newest report."""

    def __init__(self, function: str, code: int, report: str) -> None:
        super().__init__(f"{function} gives {code}: {report}")
        self.code = code
        self.report = report


def library_path() -> Path | None:
    """The C library next to the tool that `OPSCOPE` names; `None` where it was not built."""
    tool = os.environ.get("OPSCOPE")
    path = Path(tool).with_name("libascendcl.so") if tool else None
    return path if path is not None and path.is_file() else None


def engine() -> str:
    return os.environ.get("OPSCOPE_ACLNN_ENGINE", "onnxruntime")


@functools.cache
def library() -> ctypes.CDLL:
    path = library_path()
    assert path is not None, "OPSCOPE names no tool with a C library beside it"
    # The engine is chosen when the first operator is prepared.
    if engine() != "auto":
        os.environ["OPSCOPE_ENGINE"] = engine()
    if engine() == "onnxruntime":
        found = importlib.util.find_spec("onnxruntime")
        assert found is not None and found.origin is not None
        os.environ["OPSCOPE_ENGINE_LIB"] = str(Path(found.origin).parent)
    loaded = ctypes.CDLL(str(path))
    for name in ("Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList"):
        getattr(loaded, f"aclCreate{name}").restype = ctypes.c_void_p
    loaded.aclGetRecentErrMsg.restype = ctypes.c_char_p
    code = loaded.aclInit(None)
    assert code in (0, 100002), code
    return loaded


@functools.cache
def signatures() -> dict[str, list[tuple[str, str]]]:
    """The parameters of stage one of each function, as pairs of C type and name."""
    found = {}
    for header in sorted(HEADERS.glob("*.h")):
        for match in re.finditer(r"aclnnStatus (aclnn\w+)GetWorkspaceSize\(([^)]*)\);", header.read_text()):
            parameters = [" ".join(part.split()) for part in match[2].split(",")]
            pairs = [re.fullmatch(r"(.*?[ *])(\w+)", part).groups() for part in parameters]
            found[match[1]] = [(kind.removeprefix("const ").strip(" *"), name) for kind, name in pairs[:-2]]
    return found


class Objects:
    """The objects of one call, which end with it."""

    def __init__(self) -> None:
        self.made: list[tuple[str, int]] = []

    def keep(self, kind: str, handle: int | None) -> ctypes.c_void_p:
        if not handle:
            raise AclnnError(f"aclCreate{kind}", 0, report())
        self.made.append((kind, handle))
        return ctypes.c_void_p(handle)

    def end(self) -> None:
        for kind, handle in reversed(self.made):
            code = getattr(library(), f"aclDestroy{kind}")(ctypes.c_void_p(handle))
            assert code == 0, (kind, code)

    def tensor(self, tensor: torch.Tensor) -> ctypes.c_void_p:
        n = tensor.dim()
        storage = tensor.untyped_storage()
        extents = (ctypes.c_int64 * max(n, 1))(*tensor.shape)
        strides = (ctypes.c_int64 * max(n, 1))(*tensor.stride())
        n_storage = ctypes.c_int64(storage.nbytes() // tensor.element_size())
        return self.keep(
            "Tensor",
            library().aclCreateTensor(
                extents,
                ctypes.c_uint64(n),
                DATA_TYPES[tensor.dtype],
                strides,
                ctypes.c_int64(tensor.storage_offset()),
                ND,
                ctypes.byref(n_storage),
                ctypes.c_uint64(1),
                ctypes.c_void_p(storage.data_ptr()),
            ),
        )

    def scalar(self, value: object) -> ctypes.c_void_p:
        one = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=scalar_type(value))
        data = ctypes.c_void_p(one.data_ptr())
        return self.keep("Scalar", library().aclCreateScalar(data, DATA_TYPES[one.dtype]))

    def array(self, kind: str, element: type, values: Sequence[object]) -> ctypes.c_void_p:
        list_of = (element * max(len(values), 1))(*values)
        return self.keep(kind, getattr(library(), f"aclCreate{kind}")(list_of, ctypes.c_uint64(len(values))))

    def list_of(self, kind: str, handles: list[ctypes.c_void_p]) -> ctypes.c_void_p:
        array = (ctypes.c_void_p * max(len(handles), 1))(*[handle.value for handle in handles])
        made = self.keep(f"{kind}List", getattr(library(), f"aclCreate{kind}List")(array, ctypes.c_uint64(len(handles))))
        # They end with the list.
        values = {handle.value for handle in handles}
        self.made = [(known, handle) for known, handle in self.made if known != kind or handle not in values]
        return made

    def argument(self, kind: str, value: object) -> object:
        if value is None:
            return ctypes.c_void_p(None)
        match kind:
            case "aclTensor":
                return self.tensor(value)
            case "aclScalar":
                return self.scalar(value)
            case "aclTensorList":
                return self.list_of("Tensor", [self.tensor(one) for one in value])
            case "aclScalarList":
                return self.list_of("Scalar", [self.scalar(one) for one in value])
            case "aclIntArray":
                return self.array("IntArray", ctypes.c_int64, value)
            case "aclFloatArray":
                return self.array("FloatArray", ctypes.c_float, value)
            case "aclBoolArray":
                return self.array("BoolArray", ctypes.c_bool, value)
            case "int64_t":
                return ctypes.c_int64(value)
            case "int32_t":
                return ctypes.c_int32(value)
            case "int8_t":
                return ctypes.c_int8(value)
            case "uint64_t":
                return ctypes.c_uint64(value)
            case "double":
                return ctypes.c_double(value)
            case "float":
                return ctypes.c_float(value)
            case "bool":
                return ctypes.c_bool(value)
            case "aclDataType":
                return DATA_TYPES[value] if isinstance(value, torch.dtype) else value
            case "char":
                return ctypes.c_char_p(str(value).encode())
        raise AssertionError(f"no argument of the type {kind}")


def scalar_type(value: object) -> torch.dtype:
    if isinstance(value, bool):
        return torch.bool
    return torch.int64 if isinstance(value, int) else torch.float64


def report() -> str:
    text = library().aclGetRecentErrMsg()
    return text.decode() if text else ""


def call(function: str, *arguments: object) -> None:
    """Both stages of an operator. Outputs are written where the arguments say."""
    parameters = signatures()[function]
    assert len(arguments) == len(parameters), (function, parameters)
    objects = Objects()
    try:
        passed = [objects.argument(kind, value) for (kind, _), value in zip(parameters, arguments, strict=True)]
        size, executor = ctypes.c_uint64(99), ctypes.c_void_p()
        stage = f"{function}GetWorkspaceSize"
        code = getattr(library(), stage)(*passed, ctypes.byref(size), ctypes.byref(executor))
        if code != 0:
            raise AclnnError(stage, code, report())
        assert size.value == 0
        code = getattr(library(), function)(None, ctypes.c_uint64(0), executor, None)
        if code != 0:
            raise AclnnError(function, code, report())
    finally:
        objects.end()


# ---- Drawing arguments


@dataclass
class Out:
    """An output: a tensor is made for it, and has to have these values afterwards.

    `tolerance` is the distance in units of the type's precision, relative to the larger of the
    value and `scale`.
    """

    expected: torch.Tensor
    tolerance: float = 0.0
    scale: float | torch.Tensor = 0.0
    start: torch.Tensor | None = None
    """The values before the call, of an operator that works in place."""
    dense: bool = False
    """Whether its elements lie side by side, because the values make how many there are."""


class Draw:
    """Random shapes, values and views. Shapes and views have their own source, so that the same
    ones can be drawn again with other values."""

    def __init__(self, shapes: int, values: int) -> None:
        self.shapes = random.Random(shapes)
        self.values = torch.Generator().manual_seed(values)

    def choice(self, options: Sequence) -> object:
        return self.shapes.choice(options)

    def int(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, which belongs to the shapes."""
        return self.shapes.randint(low, high)

    def flag(self) -> bool:
        return self.shapes.random() < 0.5

    def number(self, low: float = -3.0, high: float = 3.0) -> float:
        """A number that belongs to the values; a float32 holds it."""
        drawn = torch.rand((), generator=self.values, dtype=torch.float32).item()
        return torch.tensor(low + (high - low) * drawn, dtype=torch.float32).item()

    def shape(self, least: int = 0, most: int = 4, low: int = 1, high: int = 5, empty: float = 0.06) -> list[int]:
        n = self.int(least, most)
        dims = [self.int(low, high) for _ in range(n)]
        if dims and self.shapes.random() < empty:
            dims[self.int(0, n - 1)] = 0
        return dims

    def shapes_to_broadcast(self, n: int, most: int = 4) -> list[list[int]]:
        """Shapes that broadcast with each other."""
        full = self.shape(most=most)
        drawn = []
        for _ in range(n):
            kept = full[self.int(0, len(full)) if self.flag() else 0 :]
            drawn.append([1 if self.shapes.random() < 0.25 else extent for extent in kept])
        return drawn

    def tensor(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        low: float = -4.0,
        high: float = 4.0,
        special: float = 0.0,
    ) -> torch.Tensor:
        """Random values, as a random view. `special` is the part of floats that are infinite or NaN."""
        if dtype == torch.bool:
            values = torch.rand(shape, generator=self.values) < 0.5
        elif dtype.is_floating_point:
            values = torch.rand(shape, generator=self.values, dtype=torch.float64) * (high - low) + low
            if special:
                chosen = torch.rand(shape, generator=self.values) < special
                odd = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0])
                index = torch.randint(0, len(odd), tuple(shape), generator=self.values)
                values = torch.where(chosen, odd[index].double(), values)
        else:
            first = max(int(low), 0) if dtype == torch.uint8 else int(low)
            values = torch.randint(first, max(int(high), first) + 1, tuple(shape), generator=self.values)
        return self.view(values.to(dtype))

    def view(self, values: torch.Tensor) -> torch.Tensor:
        """The same values with other strides and another offset, and something else in between."""
        kind = self.int(0, 3)
        if kind == 0:
            return values.clone().contiguous()
        order = list(range(values.dim()))
        self.shapes.shuffle(order)
        step = {axis: self.int(1, 2) for axis in order}
        offset = self.int(0, 3)
        strides, reach = [0] * values.dim(), 1
        for axis in order:
            strides[axis] = reach * step[axis]
            reach = strides[axis] * max(values.shape[axis], 1)
        storage = torch.full((offset + reach + self.int(0, 2),), 1, dtype=values.dtype)
        view = storage.as_strided(values.shape, strides, offset)
        view.copy_(values)
        if kind == 3 and values.dim() and 1 in values.shape:
            # An axis of one element may have any stride.
            axis = values.shape.index(1)
            strides[axis] = 0
            view = storage.as_strided(values.shape, strides, offset)
        return view


@dataclass
class Case:
    """An operator with a way to draw its arguments. `draw` returns them in the order of C, with
    [`Out`][] for outputs; `dtypes` are passed to it one after the other."""

    function: str
    draw: Callable[[Draw, torch.dtype], list[object]]
    dtypes: list[torch.dtype] = field(default_factory=lambda: list(FLOATS))
    n_draws: int = 4
    """With the embedded engine; the other one takes longer to load a graph, and gets half of them."""


def run(case: Case, dtype: torch.dtype, seed: int) -> None:
    """Draws shapes once and values twice, and compares every output."""
    for values in (1, 2):
        draw = Draw(seed, seed * 1000 + values)
        drawn = case.draw(draw, dtype)
        check(case.function, drawn, draw)


def check(function: str, drawn: list[object], draw: Draw) -> None:
    passed: list[object] = []
    outputs: list[tuple[Out, torch.Tensor, torch.Tensor]] = []

    def place(out: Out) -> torch.Tensor:
        start = out.start if out.start is not None else torch.full_like(out.expected, 1)
        values = start.to(out.expected.dtype)
        tensor = values.clone() if out.dense else draw.view(values)
        whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        outputs.append((out, tensor, whole.clone()))
        return tensor

    for one in drawn:
        if isinstance(one, Out):
            passed.append(place(one))
        elif isinstance(one, list) and one and isinstance(one[0], Out):
            passed.append([place(out) for out in one])
        else:
            passed.append(one)
    call(function, *passed)
    for i, (out, found, before) in enumerate(outputs):
        compare(f"{function}, output {i}", found, out)
        after = torch.empty(0, dtype=found.dtype).set_(found.untyped_storage())
        untouched = torch.ones(after.shape, dtype=torch.bool)
        untouched.as_strided(found.shape, found.stride(), found.storage_offset()).fill_(False)
        assert torch.equal(after[untouched].view(torch.uint8), before[untouched].view(torch.uint8)), (
            f"{function} writes beside output {i}"
        )


def compare(name: str, found: torch.Tensor, out: Out) -> None:
    expected = out.expected
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if not found.dtype.is_floating_point:
        is_bad = found != expected
    else:
        precision = torch.finfo(found.dtype).eps
        a, b = found.double(), expected.double()
        size = torch.maximum(b.abs(), torch.as_tensor(out.scale, dtype=torch.float64))
        room = out.tolerance * precision * size + out.tolerance * torch.finfo(found.dtype).smallest_normal * precision
        is_same = (a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= room)
        is_bad = ~is_same
    if is_bad.any():
        at = is_bad.nonzero()[0].tolist()
        index = tuple(at)
        raise AssertionError(
            f"{name}, {found.dtype} of shape {list(found.shape)}: {int(is_bad.sum())} elements differ, "
            f"at {at} {found[index].item()!r}, expected {expected[index].item()!r}"
        )
