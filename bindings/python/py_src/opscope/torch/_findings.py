"""Findings of a watch: overwritten values as a list, a table and a file."""

from __future__ import annotations

import json
from collections import Counter

from .._argument import reason

# Maximum number of stored changes; all are counted.
_N_OVERWRITES_MAX = 1000
# Maximum number of table rows.
_N_ROWS_MAX = 20
_HEADER = ("step", "after", "operator", "value of", "slot", "elements", "first", "before", "now", "how", "line")


class Findings:
    """The findings of one dump's watches, in order of detection."""

    def __init__(self) -> None:
        self.overwrites: list[dict] = []
        self.n_overwrites = 0
        # Changes that were an operator's purpose.
        self.n_updates = 0
        # Values no longer watched, by reason.
        self.gone: Counter[str] = Counter()
        self.n_runs_overlapping = 0
        self.first_fault: str | None = None

    def add(self, overwrite: dict) -> None:
        """Adds a finding, with the members of `overwrites.json`."""
        self.n_overwrites += 1
        if len(self.overwrites) < _N_OVERWRITES_MAX:
            self.overwrites.append(overwrite)

    def note_fault(self, error: BaseException) -> None:
        """Records the first error in the watch itself."""
        if self.first_fault is None:
            self.first_fault = f"a watch failed: {reason(error)}"

    def report(self) -> dict:
        """For the report of a dump."""
        return {
            "n_overwrites": self.n_overwrites,
            "overwrites": list(self.overwrites),
            "n_updates": self.n_updates,
            "watch_gone": dict(self.gone),
            "n_watched_runs_overlapping": self.n_runs_overlapping,
            "overwrite_table": self.table(),
        }

    def to_json(self) -> str | None:
        """The text of `overwrites.json`; `None` if nothing was overwritten."""
        if self.n_overwrites == 0:
            return None
        found = {"n_overwrites": self.n_overwrites, "overwrites": self.overwrites}
        return json.dumps(found, indent=2, ensure_ascii=False) + "\n"

    def table(self) -> str:
        """One line per finding, at most 20; empty if nothing was overwritten."""
        if self.n_overwrites == 0:
            return ""
        rows = [_HEADER, *(_row(overwrite) for overwrite in self.overwrites[:_N_ROWS_MAX])]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        if (n_more := self.n_overwrites - len(rows) + 1) > 0:
            lines.append(f"{n_more} more")
        return "\n".join(lines)


def _row(overwrite: dict) -> tuple[str, ...]:
    operator, line = overwrite["seen_after"], overwrite["source"]
    if overwrite["kind"] == "between":
        operator = f"{operator} and before {overwrite['seen_before']}"
        line = " to ".join(filter(None, (line, overwrite["source_before"])))
    return (
        str(overwrite["step"]),
        overwrite["seen_after_type"],
        operator,
        overwrite["watched"],
        f"output.{overwrite['output']}",
        str(overwrite["n_elements"]),
        str(overwrite["first_element"]),
        overwrite["before"],
        overwrite["after"],
        overwrite["kind"],
        line,
    )
