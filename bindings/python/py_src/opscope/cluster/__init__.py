"""Comparing and indexing dumps on a Ray cluster.

The pass over the elements is divided by ranks and steps. Each unit is a Ray task that runs on a
node with the dumps, and that Ray restarts if its worker or node dies. It writes a part: a file
whose name identifies its inputs. The result is merged from the parts, and equals that of a single
process. `pip install opscope[ray]` installs Ray.
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
    """Ray is missing or unreachable, or tasks failed."""


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
    """Compares two dumps on a cluster, with the `options` of `opscope.compare`.

    `address` is passed to `ray.init`; by default a cluster on this machine or at `RAY_ADDRESS`, or
    else a new one that ends with the call. `parts` is the directory of the parts, by default
    `.opscope/parts` in the target; existing parts are reused. Each task takes one CPU and
    `memory_bytes`, and reads at most `read_limit` MB of elements per second, if set.

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
    """Writes the tables of `opscope index` on a cluster, and returns their directory.

    `out` must be visible to all nodes under this name; by default it is `.opscope/index` in the
    dump.

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
    """The equivalent command."""
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
