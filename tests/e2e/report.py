"""The page as one file, taken apart."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

DATA = re.compile(r'<script type="application/octet-stream" id="opscope-data">([A-Za-z0-9+/=]*)</script>')


def unpacked(page: str) -> dict[str, Any]:
    """What a page has inside."""
    (data,) = DATA.findall(page)
    contents: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(data, validate=True)))
    return contents


def read(path: Path) -> dict[str, Any]:
    return unpacked(path.read_text(encoding="utf-8"))


def with_many_operators(document: dict[str, Any], n: int) -> dict[str, Any]:
    """A saved comparison with more operators behind its own, each of which agrees as the output of its first does."""
    operators = document["operators"]
    slots = [slot for slot in operators[0]["slots"] if slot["slot"].startswith("output")]
    template = json.dumps({**operators[0], "slots": slots})
    for index in range(len(operators), n):
        operator = json.loads(template)
        operator["index"] = index
        for side in ("target", "golden"):
            operator[side][0]["op_name"] = f"/more/{index // 100}/{index}"
        operators.append(operator)
    return document
