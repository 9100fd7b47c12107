"""Comparing and indexing dumps on a Ray cluster.

The pass over the elements is divided by ranks and steps. Each is a task of Ray, which runs where the dumps lie and is
started again by Ray when its worker or node dies, and leaves a part: a file whose name says what it was made from. The
result is made of the parts, and is the one that a single process comes to. `pip install opscope[ray]` brings Ray.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _options
from .._compare import Comparison, StrPath, checked
from .._errors import OpscopeError

__all__ = ["ClusterError", "compare", "index"]


class ClusterError(OpscopeError):
    """Ray is missing or not to be reached, or tasks failed."""


def compare(
    target: StrPath,
    golden: StrPath,
    address: str | None = None,
    *,
    parts: StrPath | None = None,
    memory_bytes: int = 1 << 30,
    read_limit: float | None = None,
    **options: Any,
) -> Comparison:
    """Compares two dumps on a cluster, as `opscope.compare` does in one process; `options` are those of it.

    `address` is what `ray.init` takes: without one a cluster that runs on this machine or that `RAY_ADDRESS` names, or
    else one that is started here and ends with the call. `parts` is the directory of the parts, `.opscope/parts` in the
    target without one; those that are there are taken. Each task takes one CPU and is given `memory_bytes`, and reads no
    more than `read_limit` MB of elements a second, if there is a limit.

    Raises:
        ClusterError: Ray is missing, or tasks failed in spite of their retries.
        UsageError: An option makes no sense.
        NotFoundError: There is nothing at one of the paths.
    """
    from .._native import reading
    from ._driver import Driver, parts_of

    _options.path("parts", parts, is_optional=True)
    request, judgement = checked(target, golden, **options)
    place = parts_of(request["target"], parts)
    driver = Driver(_words(request), place, address, memory_bytes, read_limit)
    driver.run()
    return Comparison(reading.merge_parts(request, judgement, place))


def index(
    dumps: StrPath | Sequence[StrPath],
    address: str | None = None,
    *,
    out: StrPath | None = None,
    stats: bool = False,
    memory_bytes: int = 1 << 30,
    read_limit: float | None = None,
) -> str:
    """Makes the tables of `opscope index` on a cluster, and returns their directory.

    `out` has to be seen by all nodes under this name, and is `.opscope/index` in the dump without one.

    Raises:
        ClusterError: Ray is missing, or tasks failed in spite of their retries.
        UsageError: Several dumps are given, and no `out`.
    """
    from ._driver import Driver, finish_index, tables_of

    paths: Iterable[StrPath] = [dumps] if isinstance(dumps, (str, os.PathLike)) else dumps
    texts = []
    for path in paths:
        _options.path("dumps", path)
        texts.append(os.fspath(path))
    _options.path("out", out, is_optional=True)
    _options.boolean("stats", stats)
    place = tables_of(texts, out)
    command = ["index", *texts, "--out", place, *(["--stats"] if stats else [])]
    Driver(command, None, address, memory_bytes, read_limit).run()
    finish_index(command)
    return place


def _words(request: dict[str, Any]) -> list[str]:
    """The command that asks for the same."""
    words = ["compare", request["target"], request["golden"]]
    if request["reference"] is not None:
        words += ["--reference", request["reference"]]
    for name, option in (("steps", "--steps"), ("ranks", "--ranks")):
        if request[name]:
            words += [option, ",".join(map(str, request[name]))]
    for name, option in (("names", "--filter"), ("op_types", "--op-type")):
        for pattern in request[name]:
            words.append(f"{option}={pattern}")
    words += ["--outputs-only"] * request["outputs_only"]
    words += ["--kl"] * request["kl"]
    return words
