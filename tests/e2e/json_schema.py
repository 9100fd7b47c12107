"""A checker for the part of JSON Schema that `docs/schemas` uses."""

from __future__ import annotations

from typing import Any

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}


def is_type(value: object, name: str) -> bool:
    if name in ("integer", "number"):
        kinds = (int,) if name == "integer" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, path: str = "$") -> list[str]:
    """Where a value breaks its schema, or has a property that the schema does not describe.

    Readers must accept properties that they do not know; a document of this version has none.
    """
    root = root or schema
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    if "const" in schema and value != schema["const"]:
        return [f"{path}: {value!r} is not {schema['const']!r}"]
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, name) for name in names):
        return [f"{path}: {value!r} is not {' or '.join(names)}"]
    found = []
    if isinstance(value, dict):
        found += [f"{path}: `{name}` is missing" for name in schema.get("required", []) if name not in value]
        for name, member in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is None:
                found.append(f"{path}: `{name}` is not described")
            else:
                found += problems(member, inner, root, f"{path}.{name}")
    if isinstance(value, list):
        for index, member in enumerate(value):
            found += problems(member, schema.get("items", {}), root, f"{path}[{index}]")
    return found
