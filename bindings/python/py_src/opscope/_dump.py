"""Reading dumps: their tensors as a list, and each as a numpy array.

Importing this loads neither numpy nor the extension module.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union, overload

from . import _options
from ._errors import OpscopeError
from ._passed_over import PassedOver, passed_over_files
from ._record import Record
from ._search import Pattern, Search

if TYPE_CHECKING:
    from ._native.reading import Catalogue
    from ._table import ArrowTable

StrPath = Union[str, "os.PathLike[str]"]


def open(path: StrPath, *, jobs: int | None = None) -> Dump:
    """The dump at `path`: a directory with everything below it, or a single file; a URL too.

    Whatever `opscope show` reads: dump files of AscendCL and of its nano runtime, MindSpore's directories, numpy's
    arrays (compressed ones too), and tables of statistics. The directory is listed, on `jobs` threads, when the dump is
    first looked into; elements are read when they are asked for.
    """
    _options.path("path", path)
    _options.whole("jobs", jobs, 1, is_optional=True)
    # Not later, when nobody expects it.
    name = _options.place(path)
    if not _is_url(name):
        _check_exists(name)
    return Dump(name, jobs=jobs)


class Dump(Sequence[Record]):
    """The tensors of a dump in order of execution; of each operator inputs first, then outputs."""

    def __init__(self, path: StrPath, *, jobs: int | None = None) -> None:
        self.path = os.fspath(path)
        self._jobs = jobs
        self._catalogue: Catalogue | None = None
        self._found: list[Record] | None = None

    @property
    def problems(self) -> list[OpscopeError]:
        """Files and directories that could not be read. The others are in the list all the same.

        A damaged file that belongs to the dump by its name is in the list too; it raises when it is read. Damage behind
        the header of a compressed file shows only then, and not here.
        """
        return list(self._listed().problems())

    @property
    def passed_over(self) -> list[PassedOver]:
        """Files and directories that hold nothing of the dump, or are not looked into, each with its reason.

        Every file at `path` is behind a record, among the `problems`, or here.
        """
        return passed_over_files(self._listed().passed_over())

    def find(
        self,
        *,
        name: Pattern = None,
        op_type: Pattern = None,
        side: str | None = None,
        slot: int | None = None,
        step: int | Iterable[int] | None = None,
        dtype: str | Iterable[str] | None = None,
        rank: int | Iterable[int] | None = None,
        model: Pattern = None,
        kind: str | None = None,
    ) -> list[Record]:
        """The records that have all of these.

        `name`, `op_type` and `model` are glob patterns (`*`, `?`, `[…]`) that fit the whole text, or regular
        expressions (`re.compile(…)`) that are searched in it. `step`, `dtype` and `rank` may be several.
        """
        search = Search(
            patterns={"name": name, "op_type": op_type, "model": model},
            values={"side": side, "slot": slot, "kind": kind},
            choices={"step": step, "dtype": dtype, "rank": rank},
        )
        return [record for record in self._records() if search.fits(record)]

    def to_arrow(self, *, stats: bool = False, run: str | None = None) -> ArrowTable:
        """The tensors as a table with the columns of `opscope index`, for pandas, polars, DuckDB or pyarrow.

        With `stats` the statistics and digests of tensors that the dump left without are computed, as the rows are read.
        `run` is what the column `run` says; without it, it is the name of the dump's directory.

        The directory is listed again. Files that could not be read are among the `problems` of the table. What turns out
        to be unreadable with the rows of a whole step is an error of whoever reads them.
        """
        from ._native import reading
        from ._table import ArrowTable

        _options.boolean("stats", stats)
        _options.string("run", run, is_optional=True)
        return ArrowTable(reading.TensorTable(self.path, stats, run, self._jobs), repr(self))

    def __len__(self) -> int:
        return len(self._listed())

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        return self._records()[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records())

    def __repr__(self) -> str:
        return f"opscope.open({self.path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_reopen, (self.path, self._jobs))

    def _listed(self) -> Catalogue:
        if self._catalogue is None:
            from ._native.reading import Catalogue

            self._catalogue = Catalogue(self.path, self._jobs)
        return self._catalogue

    def _records(self) -> list[Record]:
        if self._found is None:
            catalogue = self._listed()
            self._found = [Record(catalogue, index) for index in range(len(catalogue))]
        return self._found


def _reopen(path: str, jobs: int | None) -> Dump:
    return Dump(path, jobs=jobs)


def _is_url(path: str) -> bool:
    return path.startswith(("s3://", "gs://", "az://", "http://", "https://"))


def _check_exists(path: str) -> None:
    from ._errors import of_native

    try:
        os.stat(path)
    except OSError as error:
        codes = {FileNotFoundError: "not_found", PermissionError: "no_permission"}
        code = codes.get(type(error), "io")
        message = f"cannot read `{path}`: {error.strerror}"
        raise of_native(code, message, path=path, errno=error.errno) from None
