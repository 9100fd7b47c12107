"""Attributes that ONNX's operators have without naming them, as the table of the store crate lists them.

`python tests/e2e/onnx_defaults.py` rewrites the table from the installed `onnx`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, defs, helper

TABLE = Path(__file__).parents[2] / "crates" / "store" / "src" / "record" / "attribute_defaults.tsv"
_TYPES = {
    AttributeProto.FLOAT: ("float", lambda value: str(np.float32(value))),
    AttributeProto.INT: ("int", str),
    AttributeProto.STRING: ("text", lambda value: value.decode()),
    AttributeProto.INTS: ("ints", str),
    AttributeProto.STRINGS: (
        "other",
        lambda values: "[" + ", ".join(f'"{value.decode()}"' for value in values) + "]",
    ),
}


def table() -> str:
    """A line for each attribute, and one without an attribute for each version in which an operator has none."""
    found: dict[tuple[str, str, int], list[tuple[str, str, str]]] = {}
    for schema in defs.get_all_schemas_with_history():
        rows = found.setdefault((schema.domain, schema.name, schema.since_version), [])
        for name, attribute in sorted(schema.attributes.items()):
            default: Any = attribute.default_value
            if default.type:
                kind, text = _TYPES[default.type]
                rows.append((name, kind, text(helper.get_attribute_value(default))))
    of_use = {key[:2] for key, rows in found.items() if rows}
    lines = []
    for key in sorted(key for key in found if key[:2] in of_use):
        for row in found[key] or [("", "", "")]:
            lines.append("\t".join([*map(str, key), *row]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
