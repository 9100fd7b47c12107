"""Dumps and comparisons as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from ._native.reading import ComparisonTable, TensorTable

    NativeTable = Union[TensorTable, ComparisonTable]


class ArrowTable:
    """The rows of `Dump.to_arrow` or `Comparison.to_arrow`.

    Implements Arrow's PyCapsule interface, so libraries accept it directly:
    `pyarrow.table(tensors)`, `polars.DataFrame(tensors)`, `pandas.DataFrame.from_arrow(tensors)`,
    `duckdb.sql("from tensors")`. Each reads the rows again; those of a dump are produced by rank,
    model and step.
    """

    def __init__(self, native: NativeTable, source: str) -> None:
        self._native = native
        self._source = source

    @property
    def problems(self) -> list[str]:
        """What could not be read so far: files and directories and, once the rows are read, tensors
        without statistics.

        A comparison has rows for unreadable items, and no problems.
        """
        return self._native.problems()

    def __arrow_c_schema__(self) -> object:
        return self._native.schema()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        # The types are fixed; a consumer that wants others converts, as the interface allows.
        return self._native.stream()

    def __repr__(self) -> str:
        return f"{self._source}.to_arrow()"
