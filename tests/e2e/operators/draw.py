"""Random choices for one operator: its opset, its types, shapes and elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import defs

T = TypeVar("T")

# Before it ONNX Runtime promises nothing, and arithmetic has another form of broadcasting.
FIRST_OPSET = 7
LAST_OPSET = 24
# The types that the engine under test has, but for text.
DTYPES = {
    f"tensor({name})": np.dtype(numpy_name)
    for name, numpy_name in {
        **{name: name for name in ("float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")},
        **{"uint64": "uint64", "bool": "bool", "float": "float32", "double": "float64"},
    }.items()
}
FLOAT_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 1e-3, 10.0, 88.0, -88.0, 89.5, 104.0, -104.0)
FLOAT_EDGES += (300.0, 1000.0, -1000.0)
# How floats are chosen.
PROFILES = ("ordinary", "edges", "large", "huge", "tiny", "non_finite", "zeros")


@cache
def opsets_of(op_type: str) -> tuple[int, ...]:
    """Each opset that brought a version of the operator, from the first one on that is tried."""
    versions = sorted(
        schema.since_version
        for schema in defs.get_all_schemas_with_history()
        if schema.name == op_type and schema.domain == "" and not schema.deprecated
    )
    early = [version for version in versions if version <= FIRST_OPSET]
    return tuple(({FIRST_OPSET} if early else set()) | {v for v in versions if FIRST_OPSET < v <= LAST_OPSET})


class Draw:
    """Everything that is chosen for one sample of an operator."""

    def __init__(self, rng: np.random.Generator, op_type: str) -> None:
        self.rng = rng
        self.op_type = op_type
        starts = sorted(opsets_of(op_type))
        index = int(rng.integers(len(starts)))
        end = starts[index + 1] if index + 1 < len(starts) else LAST_OPSET + 1
        self.opset = int(rng.integers(starts[index], end))
        self.schema = defs.get_schema(op_type, self.opset)
        self._dtypes: dict[str, np.dtype] = {}

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def maybe(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def dtype(self, type_str: str = "T") -> np.dtype:
        """The type that a type parameter of the operator represents in this sample."""
        if type_str not in self._dtypes:
            (allowed,) = (c.allowed_type_strs for c in self.schema.type_constraints if c.type_param_str == type_str)
            known = [DTYPES[name] for name in allowed if name in DTYPES]
            floats = [dtype for dtype in known if dtype.kind == "f"]
            self._dtypes[type_str] = self.choice(floats if floats and self.maybe(0.6) else known)
        return self._dtypes[type_str]

    def set_dtype(self, dtype: Any, type_str: str = "T") -> None:
        self._dtypes[type_str] = np.dtype(dtype)

    def shape(self, n_axes_min: int = 0, n_axes_max: int = 4, extent_min: int = 0, extent_max: int = 5) -> list[int]:
        """Mostly without an empty axis."""
        low = 0 if extent_min == 0 and self.maybe(0.08) else max(extent_min, 1)
        return [self.integer(low, extent_max) for _ in range(self.integer(n_axes_min, n_axes_max))]

    def broadcastable(self, shape: Sequence[int]) -> list[int]:
        """A shape that broadcasts to `shape`."""
        start = self.integer(0, len(shape))
        return [1 if self.maybe(0.25) else extent for extent in shape[start:]]

    def axis(self, n_axes: int) -> int:
        return self.integer(-n_axes, n_axes - 1)

    def profile(self, *names: str) -> str:
        return self.choice(names or PROFILES)

    def array(self, dtype: Any, shape: Sequence[int], profile: str = "") -> NDArray:
        """Elements of any kind; floats by profile."""
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            return self._integers(dtype, shape, profile)
        values = self._floats(np.finfo(dtype), tuple(shape), profile or self.profile())
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(values, dtype=np.longdouble).astype(dtype)

    def _integers(self, dtype: np.dtype, shape: Sequence[int], profile: str) -> NDArray:
        info = np.iinfo(dtype)
        small = self.rng.integers(0 if info.min == 0 else -9, 10, shape)
        if profile == "ordinary" or self.maybe(0.4):
            return small.astype(dtype)
        edges = np.array([info.min, info.min + 1, 0, 1, 2, 7, info.max // 2, info.max - 1, info.max], dtype=dtype)
        return np.where(self.rng.random(shape) < 0.5, self.rng.choice(edges, shape), small.astype(dtype)).astype(dtype)

    def _floats(self, info: np.finfo, shape: tuple[int, ...], profile: str) -> NDArray:
        ordinary = self.rng.uniform(-4, 4, shape)
        top, bottom = np.longdouble(info.max), np.longdouble(info.tiny)
        match profile:
            case "ordinary":
                return ordinary
            case "large":
                return ordinary * self.choice((10, 30, 300, 5000))
            case "huge":
                return np.abs(ordinary / 4).astype(np.longdouble) * top * self.choice((1, -1))
            case "tiny":
                return ordinary.astype(np.longdouble) * bottom
            case "zeros":
                return np.where(self.rng.random(shape) < 0.5, 0.0, -0.0)
            case "non_finite":
                odd = self.rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape)
                return np.where(self.rng.random(shape) < 0.3, odd, ordinary)
            case "edges":
                extreme = [top, -top, bottom, -bottom, np.longdouble(info.smallest_subnormal), np.sqrt(top)]
                odd = [np.nan, np.inf, -np.inf]
                return self.rng.choice(np.array([*FLOAT_EDGES, *extreme, *odd], dtype=np.longdouble), shape)
        raise ValueError(f"profile `{profile}`, expected one of {PROFILES}")
