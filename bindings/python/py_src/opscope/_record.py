"""One tensor of a dump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _options
from ._statistics import Statistics, from_columns
from ._visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ._native.reading import Array, Catalogue


class Record:
    """An input or output tensor of an operator. Unknown facts are `None`."""

    __slots__ = (
        "_catalogue",
        "_columns",
        "_index",
        "collective",
        "dtype",
        "group_ranks",
        "has_elements",
        "kind",
        "layout",
        "model",
        "model_id",
        "module",
        "name",
        "nbytes",
        "op_type",
        "original_shape",
        "path",
        "placement",
        "rank",
        "run",
        "shape",
        "side",
        "slot",
        "step",
        "stored_dtype",
        "stream_id",
        "task_id",
        "timestamp",
    )

    kind: str
    """`operator`, `parameter`, `constant` or `overflow_record`."""
    name: str
    """The operator's name; for an array with an uninformative file name, that name without its
    suffix."""
    op_type: str
    """The operator's type; empty if unknown."""
    side: str | None
    """`input` or `output`; `None` for an array whose file name does not say, and for a damaged
    file."""
    slot: int | None
    """Index of the input or output."""
    dtype: str | None
    """The tensor's original dtype, such as `bfloat16`; `None` if unknown, as for a damaged file."""
    stored_dtype: str | None
    """The dtype in the file, which differs if the writer converted it."""
    layout: str | None
    """The meaning of the axes, such as `NCHW`."""
    shape: tuple[int, ...] | None
    """Shape as stored."""
    original_shape: tuple[int, ...] | None
    """Shape before the layout was changed, if the dump has it."""
    nbytes: int | None
    """Size of the stored elements in bytes."""
    step: int | None
    """The execution of the model."""
    run: int
    """The execution of the operator within that step, from 0."""
    rank: int | None
    """The rank, or the device if there are no ranks."""
    model: str | None
    """Name of the model or network."""
    model_id: int | None
    """The load of the model, or the graph of the network."""
    task_id: int | None
    """The operator's task."""
    stream_id: int | None
    """The operator's stream."""
    timestamp: int | None
    """When it was written, in microseconds since 1970-01-01 UTC."""
    module: str | None
    """Path of the module that calls the operator; empty outside all modules."""
    collective: str | None
    """The collective, such as `all_reduce(sum)`; `None` for other operators."""
    group_ranks: tuple[int, ...] | None
    """The global ranks of the collective, in group order; empty if unknown."""
    placement: str | None
    """The distributed tensor that this is a part of, such as `dp=1/2:R,tp=0/4:S(0) of [4096,1024]`.
    """
    path: str
    """The file of the tensor, or of its statistics."""
    has_elements: bool
    """Whether there are elements, rather than only statistics."""

    def __init__(self, catalogue: Catalogue, index: int) -> None:
        self._catalogue = catalogue
        self._index = index
        known: dict[str, Any] = catalogue.item(index)
        self._columns: dict[str, str | None] = known.pop("columns")
        for name, value in known.items():
            setattr(self, name, value)

    @property
    def type(self) -> str:
        """The same as `op_type`."""
        return self.op_type

    def numpy(
        self,
        *,
        layout: str | None = None,
        shape: Sequence[int] | None = None,
        copy: bool = False,
    ) -> NDArray[Any]:
        """The elements.

        The array is read-only. If the file's bytes are the elements, the file is mapped into memory
        without copying, and its elements need not be aligned. `copy=True` returns an aligned,
        writable copy. Dtypes that numpy lacks are converted exactly: floats to float32, integers to
        int8 or uint8.

        With a `layout`, such as `NCHW`, the elements are converted to it; `shape` is the shape in
        that layout, to which larger tensors are cropped.
        """
        _options.string("layout", layout, is_optional=True)
        _options.boolean("copy", copy)
        extents = _options.wholes("shape", shape, 0, is_optional=True)
        return _to_numpy(self._catalogue.array(self._index, layout, extents), copy)

    def raw(self) -> NDArray[np.uint8] | NDArray[np.uint16]:
        """The bytes as stored, little-endian and in row-major order, as a read-only array.

        Elements of one or two bytes are returned as `uint8` or `uint16` in the tensor's shape, all
        others as one axis of `uint8`.
        """
        return _to_numpy(self._catalogue.raw(self._index), False)

    def statistics(self) -> Statistics:
        """Statistics of the elements: computed from them, or those of the dump if there are no
        elements."""
        if self.has_elements:
            return Statistics(source="elements", columns=dict(self._columns), **self._catalogue.stats(self._index))
        return from_columns(self._columns, self.shape)

    def __repr__(self) -> str:
        place = "" if self.side is None else f" {self.side}.{self.slot}"
        shape = "?" if self.shape is None else list(self.shape)
        step = "" if self.step is None else f" step {self.step}"
        return visible(f"<Record {self.op_type or '-'} {self.name}{place}: {self.dtype or 'damaged'} {shape}{step}>")


def _to_numpy(array: Array, copy: bool) -> NDArray[Any]:
    import numpy as np

    interface = array.__array_interface__
    if 0 in interface["shape"]:
        # There may be no memory at all.
        empty = np.empty(interface["shape"], interface["typestr"])
        empty.flags.writeable = copy
        return empty
    view = np.asarray(array)
    return view.copy() if copy else view
