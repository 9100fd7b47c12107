"""Reading dumps: a list of tensors, each available as a numpy array.

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
    """The dump at `path`: a directory with everything below it, a single file, or a URL.

    Accepts everything that `opscope show` reads: dump files of AscendCL and of its nano runtime,
    MindSpore's directories, numpy arrays (also compressed), and tables of statistics. The directory
    is listed on first use, on `jobs` threads; elements are read on demand.
    """
    _options.path("path", path)
    _options.whole("jobs", jobs, 1, is_optional=True)
    # Checked now rather than on first use.
    name = _options.place(path)
    if not _is_url(name):
        _check_exists(name)
    return Dump(name, jobs=jobs)


class Dump(Sequence[Record]):
    """The tensors of a dump in execution order; for each operator inputs first, then outputs."""

    def __init__(self, path: StrPath, *, jobs: int | None = None) -> None:
        self.path = os.fspath(path)
        self._jobs = jobs
        self._catalogue: Catalogue | None = None
        self._found: list[Record] | None = None

    @property
    def problems(self) -> list[OpscopeError]:
        """Files and directories that could not be read. The others are still in the list.

        A damaged file that belongs to the dump by its name is also in the list; reading it raises.
        Damage after the header of a compressed file appears only then.
        """
        return list(self._listed().problems())

    @property
    def passed_over(self) -> list[PassedOver]:
        """Files and directories that do not belong to the dump, or are skipped, each with its
        reason.

        Every file at `path` has a record, or is among the `problems`, or here.
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
        """The records that meet all conditions.

        `name`, `op_type` and `model` are glob patterns (`*`, `?`, `[…]`) for the whole text, or
        regular expressions (`re.compile(…)`) that are searched in it. `step`, `dtype` and `rank`
        may be lists.
        """
        search = Search(
            patterns={"name": name, "op_type": op_type, "model": model},
            values={"side": side, "slot": slot, "kind": kind},
            choices={"step": step, "dtype": dtype, "rank": rank},
        )
        return [record for record in self._records() if search.fits(record)]

    def to_arrow(self, *, stats: bool = False, run: str | None = None) -> ArrowTable:
        """The tensors as a table with the columns of `opscope index`, for pandas, polars, DuckDB or
        pyarrow.

        With `stats`, missing statistics and digests are computed while the rows are read. `run` is
        the value of the column `run`, by default the name of the dump's directory.

        The directory is listed again. Unreadable files are among the table's `problems`. Errors in
        the rows of a whole step are raised when these are read.
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
