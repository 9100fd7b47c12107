"""The commands of a page of the documentation, with what they print."""

from __future__ import annotations

import re


def commands(page: str, kind: str = "") -> list[tuple[str, str]]:
    """Each command with the beginning of its output. Lines that begin with `>` continue a command.

    Blocks that need PyTorch are of the kind `torch`, and are run by its own tests.
    """
    found: list[tuple[str, str]] = []
    opening = f"```console {kind}".rstrip()
    for block in re.findall(rf"^{opening}\n(.*?)^```", page, re.S | re.M):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif line.startswith(">"):
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
            else:
                found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
    return found


def table_commands(page: str) -> list[str]:
    """The commands in the last column of a page's tables of two columns."""
    rows = re.findall(r"^\|[^|\n]*(?:\\\|[^|\n]*)*\| `(opscope [^`]*)` \|$", page, re.M)
    # A page stays until Ctrl-C.
    return [row for row in rows if not row.startswith("opscope view")]


def code_rows(page: str) -> list[str]:
    """The code in each row of two columns: from the last one, or from the first if the last says "the same"."""
    rows = re.findall(r"^\| ((?:[^|\n]|\\\|)*) \| ((?:[^|\n]|\\\|)*) \|$", page, re.M)
    found = (re.search("`(.*?)`", before if after == "the same" else after) for before, after in rows)
    return [code[1].replace("\\|", "|") for code in found if code]
