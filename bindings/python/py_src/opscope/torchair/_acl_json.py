"""The file in `dump_config_path`, a configuration in the form of AscendCL's `acl.json`.

The native module validates it, by the rules of `docs/config/acl.md`.
"""

from __future__ import annotations

import importlib
from typing import Any

from opscope._plan import AclJson
from opscope._warning import warn

# The native module's size limit.
BYTES_MAX = 10 << 20


def load(path: str) -> AclJson:
    """Reads the file. Raises `ValueError` with every reason if it is refused, and `OSError` if it
    cannot be read.

    Warns of accepted oddities.
    """
    text = _text(path)
    errors, notes, kind = _check(text)
    if errors:
        raise ValueError("\n".join(f"dump_config_path: {path}:{line}" for line in errors))
    for line in notes:
        warn(f"dump_config_path: {path}:{line}")
    return AclJson(path, text, kind)


def _text(path: str) -> str:
    with open(path, "rb") as file:
        found = file.read(BYTES_MAX + 1)
    if len(found) > BYTES_MAX:
        raise ValueError(f"dump_config_path: `{path}` is greater than {BYTES_MAX} bytes")
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"dump_config_path: `{path}` is not UTF-8 text from byte {error.start} on") from None


def _check(text: str) -> tuple[list[str], list[str], str | None]:
    native: Any = importlib.import_module("opscope._native.config")
    errors, notes, kind = native.check_acl_json(text)
    return errors, notes, kind
