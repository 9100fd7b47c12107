"""Comparing two dumps."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union

from . import _options
from ._visible import visible

if TYPE_CHECKING:
    from ._native import reading
    from ._table import ArrowTable
    from ._view import View

StrPath = Union[str, "os.PathLike[str]"]

# Operators shown in a notebook.
N_SHOWN = 20


class Comparison:
    """The result of comparing two dumps.

    Operators, slots and skips are dictionaries, as in the JSON that `save` writes.
    """

    def __init__(self, native: reading.Comparison) -> None:
        self._native = native

    @classmethod
    def load(
        cls,
        path: StrPath,
        *,
        thresholds: StrPath | None = None,
        atol: float | None = None,
        top: int = 10,
        allow_skip: Iterable[str] = (),
    ) -> Comparison:
        """Reads a result that was saved as `.json` or `.jsonl`, and judges it again.

        Raises:
            NotFoundError: There is nothing at `path`.
            DamagedError: It is no result.
            UsageError: The thresholds make no sense.
        """
        from ._native import reading

        _options.path("path", path)
        return cls(reading.judge(os.fspath(path), _judgement(thresholds, atol, top, allow_skip)))

    @property
    def level(self) -> str:
        """`pass`, `warn`, `fail`, or `skip` if nothing was compared."""
        return self._native.level()

    @property
    def verdict(self) -> str:
        """The verdict in one line, with the first divergence and its cause."""
        return self._native.verdict()

    @cached_property
    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._native.json())
        return document

    @property
    def operators(self) -> list[dict[str, Any]]:
        """Operator pairs in the target's execution order."""
        return list(self._document["operators"])

    @property
    def skips(self) -> list[dict[str, Any]]:
        """Everything that was not compared, with the reason."""
        return list(self._document["skips"])

    @property
    def summary(self) -> dict[str, Any]:
        """Counts, coverage, first divergence and ranking."""
        return dict(self._document["summary"])

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """Parameters and buffers of both sides, if the comparison was asked for its `weights`."""
        return list(self._document.get("parameters", ()))

    @property
    def weight_reads(self) -> list[dict[str, Any]]:
        """Weights that one side reads more often than the other, if the outputs differ."""
        return self._document.get("weight_reads", [])

    @property
    def first_divergence(self) -> dict[str, Any] | None:
        """The first slot beyond the limits: `operator` (from `operators`), `slot` and `cause`;
        `None` if everything agrees."""
        first = self.summary.get("first_divergence")
        if first is None:
            return None
        return {**first, "operator": self._document["operators"][first["operator"]]}

    def to_arrow(self) -> ArrowTable:
        """The table `compare` of an index, for pandas, polars, DuckDB or pyarrow.

        One row per compared slot in execution order, then one per uncompared item, with the level
        `skip`.
        """
        from ._table import ArrowTable

        return ArrowTable(self._native.table(), repr(self))

    def save(self, path: StrPath, *, force: bool = False) -> None:
        """Writes the format of the name's suffix: `.json`, `.jsonl`, `.csv`, `.xlsx`, `.html` or
        `.parquet`.

        Raises:
            UsageError: The name ends in something else.
            FileError: The file exists and `force` is not given, or it cannot be written.
        """
        _options.path("path", path)
        _options.boolean("force", force)
        self._native.save(os.fspath(path), force)

    def view(self, *, host: str = "127.0.0.1", port: int = 0, open_browser: bool | None = None) -> View:
        """Shows the result in the browser, as `opscope.view` does, with its current verdicts.

        For a comparison read from a file, the page has no elements.

        Raises:
            UsageError: The host or the port cannot be had.
            NotFoundError: A dump is no longer there.
        """
        from ._native import reading
        from ._view import shown

        return shown(
            lambda request: reading.view_comparison(self._native, request), host, port, open_browser, owner=self
        )

    def __repr__(self) -> str:
        return f"<opscope.Comparison {visible(self.verdict)}>"

    def _repr_html_(self) -> str:
        """The verdict and the operators that differ, for notebooks."""
        rows = [_row(operator) for operator in self.operators if operator["level"] in ("warn", "fail")]
        more = f"<p>{len(rows) - N_SHOWN} more</p>" if len(rows) > N_SHOWN else ""
        titles = ("#", "level", "type", "name", "inputs", "outputs", "added")
        head = "".join(f"<th>{title}</th>" for title in titles)
        table = f"<table><tr>{head}</tr>{''.join(rows[:N_SHOWN])}</table>{more}" if rows else ""
        return f"<p><b>{html.escape(visible(self.verdict))}</b></p>{table}"


def compare(
    target: StrPath,
    golden: StrPath,
    *,
    reference: StrPath | None = None,
    thresholds: StrPath | None = None,
    atol: float | None = None,
    steps: Iterable[int] = (),
    ranks: Iterable[int] = (),
    step_offset: int | None = None,
    names: Iterable[str] = (),
    op_types: Iterable[str] = (),
    outputs_only: bool = False,
    mapping: StrPath | None = None,
    whole: bool = False,
    weights: bool = False,
    kl: bool = False,
    jobs: int | None = None,
    top: int = 10,
    allow_skip: Iterable[str] = (),
) -> Comparison:
    """Compares two dumps operator by operator, as `opscope compare` does.

    `golden` is the reference side. `reference` is a dump that shows how much difference is normal.
    On both sides the `steps`, `ranks`, `names` and `op_types` (with `*` and `?`) are compared; by
    default everything. `mapping` is a file that lists matching operators, and how ranks share
    tensors. With `step_offset` N, step S + N of the target is compared with step S of the golden
    side. Differences of up to `atol` are ignored, however large in relative terms. With `whole`,
    tensors are assembled from all ranks even if both sides have the same ranks. With `weights`,
    `parameters` lists all parameters and buffers. `allow_skip` selects items that may remain
    uncompared; it only sets `is_allowed` of the skips.

    Raises:
        UsageError: The thresholds make no sense, or nothing is chosen.
        NotFoundError: There is nothing at one of the paths.
        OpscopeError: A dump has no tensors.
    """
    from ._native import reading

    request = checked(
        target,
        golden,
        reference=reference,
        thresholds=thresholds,
        atol=atol,
        steps=steps,
        ranks=ranks,
        step_offset=step_offset,
        names=names,
        op_types=op_types,
        outputs_only=outputs_only,
        mapping=mapping,
        whole=whole,
        weights=weights,
        kl=kl,
        jobs=jobs,
        top=top,
        allow_skip=allow_skip,
    )
    return Comparison(reading.compare(*request))


def checked(
    target: StrPath,
    golden: StrPath,
    *,
    reference: StrPath | None = None,
    thresholds: StrPath | None = None,
    atol: float | None = None,
    steps: Iterable[int] = (),
    ranks: Iterable[int] = (),
    step_offset: int | None = None,
    names: Iterable[str] = (),
    op_types: Iterable[str] = (),
    outputs_only: bool = False,
    mapping: StrPath | None = None,
    whole: bool = False,
    weights: bool = False,
    kl: bool = False,
    jobs: int | None = None,
    top: int = 10,
    allow_skip: Iterable[str] = (),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The request for a comparison, and its judging options; raises for options of a wrong type or
    value."""
    for name, value in (("target", target), ("golden", golden)):
        _options.path(name, value)
    _options.path("reference", reference, is_optional=True)
    _options.whole("step_offset", step_offset, -(2**63), is_optional=True)
    _options.boolean("outputs_only", outputs_only)
    _options.path("mapping", mapping, is_optional=True)
    _options.boolean("whole", whole)
    _options.boolean("weights", weights)
    _options.boolean("kl", kl)
    _options.whole("jobs", jobs, 1, is_optional=True)
    request = {
        "target": _options.place(target),
        "golden": _options.place(golden),
        "reference": None if reference is None else _options.place(reference),
        "steps": _options.wholes("steps", steps, 0),
        "ranks": _options.wholes("ranks", ranks, 0),
        "step_offset": step_offset,
        "names": _options.texts("names", names),
        "op_types": _options.texts("op_types", op_types),
        "outputs_only": outputs_only,
        "mapping": None if mapping is None else os.fspath(mapping),
        "whole": whole,
        "weights": weights,
        "kl": kl,
        "jobs": jobs,
    }
    return request, _judgement(thresholds, atol, top, allow_skip)


def _judgement(
    thresholds: StrPath | None, atol: float | None, top: int, allow_skip: Iterable[str]
) -> dict[str, Any]:
    _options.path("thresholds", thresholds, is_optional=True)
    _options.number("atol", atol, 0.0, is_optional=True)
    _options.whole("top", top, 0)
    return {
        "thresholds": None if thresholds is None else os.fspath(thresholds),
        "atol": None if atol is None else float(atol),
        "top": top,
        "allow_skip": _options.texts("allow_skip", allow_skip),
    }


def _row(operator: dict[str, Any]) -> str:
    name = (operator["target"] or operator["golden"])[-1]
    error = operator.get("error", {})
    cells = [operator["index"], operator["level"], name["op_type"], name["op_name"]]
    cells += [error.get(part, "") for part in ("inputs", "outputs", "added")]
    texts = [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells]
    return f"<tr>{''.join(f'<td>{html.escape(visible(text))}</td>' for text in texts)}</tr>"
