"""Converting dumps to other file formats."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Union

from . import _options
from ._argument import shown
from ._errors import OpscopeError, UsageError
from ._passed_over import PassedOver, passed_over_files

StrPath = Union[str, "os.PathLike[str]"]

DEFAULT_LEVEL = 1
COMPRESS = "compress: expected zstd, zstd:LEVEL or a level from 1 to 19"
# All permission bits.
MODE_MAX = 0o7777
PARTIAL = 4


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion."""

    out: str
    """The output directory."""
    files: int
    """Number of dump files found."""
    converted: int
    """Number of completely converted files."""
    arrays: int
    """Number of tensors written."""
    records: int
    """Number of overflow records written."""
    buffers: int
    """Number of buffers and workspaces written."""
    bytes_read: int
    bytes_written: int
    failures: list[OpscopeError]
    """Errors, one for everything that could not be converted."""
    passed_over: list[PassedOver]
    """Files without convertible content, such as tables of statistics."""

    @property
    def exit_code(self) -> int:
        """The command line's exit code: 0, or 4 if something could not be converted."""
        return PARTIAL if self.failures else 0


def convert(
    src: StrPath | Iterable[StrPath],
    out: StrPath = ".",
    *,
    type: str = "npy",
    layout: str | None = None,
    target_shape: Sequence[int] | None = None,
    only_output: int | None = None,
    only_input: int | None = None,
    compress: str | int | None = None,
    jobs: int | None = None,
    keep_existing: bool = False,
    dir_mode: int = 0o700,
    file_mode: int = 0o600,
) -> Conversion:
    """Converts dump files, or a whole directory, to files of another `type`, as `opscope convert`
    does.

    `src` is a file or directory, or several of them. The types are `npy`, `bin`, `txt`,
    `safetensors`, `msnpy` and `pt`. `layout` converts every tensor to a layout such as `NCHW`. For
    a single file, `target_shape` is the shape in that layout, and `only_output` or `only_input`
    selects one tensor. `compress` is `zstd`, `zstd:LEVEL` or a level from 1 to 19, for `npy` and
    `msnpy`.

    Failures are in `failures` of the result; the remaining files are still converted.

    Raises:
        UsageError: The arguments make no sense.
        NotFoundError: There is nothing at `src`.
        OpscopeError: There is nothing to convert, or nothing of it could be; then it is the first failure.
    """
    from ._native import reading

    paths = _options.paths("src", src)
    _options.path("out", out)
    _options.string("type", type)
    _options.string("layout", layout, is_optional=True)
    for name, number in (("only_output", only_output), ("only_input", only_input)):
        _options.whole(name, number, 0, is_optional=True)
    _options.whole("jobs", jobs, 1, is_optional=True)
    _options.boolean("keep_existing", keep_existing)
    for name, mode in (("dir_mode", dir_mode), ("file_mode", file_mode)):
        _options.whole(name, mode, 0, MODE_MAX)
    request = {
        "out": os.fspath(out),
        "kind": type,
        "layout": layout,
        "target_shape": _options.wholes("target_shape", target_shape, 0, is_optional=True),
        "only_output": only_output,
        "only_input": only_input,
        "compress": _level(compress),
        "jobs": jobs,
        "keep_existing": keep_existing,
        "dir_mode": dir_mode,
        "file_mode": file_mode,
    }
    result = reading.convert([_options.place(path) for path in paths], request)
    passed_over = passed_over_files(result.pop("passed_over"))
    done = Conversion(out=os.fspath(out), passed_over=passed_over, **result)
    if done.failures and done.arrays + done.records == 0:
        raise done.failures[0]
    return done


def _level(compress: str | int | None) -> int | None:
    if isinstance(compress, bool) or not isinstance(compress, (str, int, NoneType)):
        raise TypeError(f"{COMPRESS}, got {shown(compress)} ({type(compress).__name__})")
    if compress is None or isinstance(compress, int):
        level = compress
    elif compress == "zstd":
        level = DEFAULT_LEVEL
    else:
        name, _, digits = compress.partition(":")
        level = int(digits) if name == "zstd" and digits.isdecimal() else 0
    if level is not None and not 1 <= level <= 19:
        raise UsageError(f"{COMPRESS}, got {shown(compress)}", code="usage")
    return level
