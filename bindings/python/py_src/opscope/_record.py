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
    """One tensor that an operator read or produced. What nothing in the dump says is `None`."""

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
    """The operator's name; of an array whose file name says nothing else, that name without its suffix."""
    op_type: str
    """The operator's type; empty where nothing says it."""
    side: str | None
    """`input` or `output`; `None` of an array whose file name does not say, and of a damaged file."""
    slot: int | None
    """Which input or output."""
    dtype: str | None
    """The dtype that the tensor had, such as `bfloat16`; `None` if it is not known, as of a damaged file."""
    stored_dtype: str | None
    """The dtype that its file has; another one where the writer converted it."""
    layout: str | None
    """The meaning of the axes, such as `NCHW`."""
    shape: tuple[int, ...] | None
    """Extents as stored."""
    original_shape: tuple[int, ...] | None
    """Extents before the layout was changed, where the dump says."""
    nbytes: int | None
    """Bytes of the elements as stored."""
    step: int | None
    """Which execution of the model."""
    run: int
    """Which execution of the operator in that step, counted from 0."""
    rank: int | None
    """The rank, or the device where there are no ranks."""
    model: str | None
    """Name of the model or network."""
    model_id: int | None
    """Which load of the model, or which graph of the network."""
    task_id: int | None
    """The operator's task."""
    stream_id: int | None
    """The operator's stream."""
    timestamp: int | None
    """When it was written, in microseconds since 1970-01-01 UTC."""
    module: str | None
    """Path of the module that calls the operator; empty outside of all of them."""
    collective: str | None
    """The collective that the operator is, such as `all_reduce(sum)`; `None` of any other operator."""
    group_ranks: tuple[int, ...] | None
    """The global ranks that take part in the collective, in the order of their group; empty where nothing says them."""
    placement: str | None
    """Of which distributed tensor this is a part, such as `dp=1/2:R,tp=0/4:S(0) of [4096,1024]`."""
    path: str
    """The file that it is in, or that its statistics are in."""
    has_elements: bool
    """Whether there are elements, and not statistics alone."""

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

        The array is read-only. Where the file's bytes are the elements, it is the file, mapped into memory: nothing is
        copied, and its elements need not be aligned. `copy=True` gives an aligned array of your own, to write to.
        Elements that numpy has no dtype for are converted exactly: floats to float32, integers to int8 or uint8.

        With a `layout`, such as `NCHW`, the elements are brought into that; `shape` are the extents in its order, to
        which larger tensors are cut.
        """
        _options.string("layout", layout, is_optional=True)
        _options.boolean("copy", copy)
        extents = _options.wholes("shape", shape, 0, is_optional=True)
        return _to_numpy(self._catalogue.array(self._index, layout, extents), copy)

    def raw(self) -> NDArray[np.uint8] | NDArray[np.uint16]:
        """The bytes as stored, little-endian and in row-major order, as a read-only array.

        Elements of one or two bytes come as `uint8` or `uint16` in the tensor's shape, all others as one axis of
        `uint8`.
        """
        return _to_numpy(self._catalogue.raw(self._index), False)

    def statistics(self) -> Statistics:
        """Numbers that describe the elements: computed from them, or those of the dump if it has nothing else."""
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
