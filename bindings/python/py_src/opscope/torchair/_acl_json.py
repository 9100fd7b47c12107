"""The file that `dump_config_path` names, a configuration in the form of AscendCL's `acl.json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Optional

from opscope.torchair._plan import AclJson

BYTES_MAX = 10 << 20

# Judges the text of such a file, whose path is the second argument, and raises `ValueError` for one that is refused.
# The rules for its keys are those of the native module; without it only the outer form is looked at.
Check = Callable[[str, str], None]


def load(path: str, check: Optional[Check] = None) -> AclJson:
    """The file, or `ValueError` or `OSError` with the reason why it is none."""
    with open(path, "rb") as file:
        found = file.read(BYTES_MAX + 1)
    if len(found) > BYTES_MAX:
        raise ValueError(f"dump_config_path: `{path}` is greater than {BYTES_MAX} bytes")
    try:
        text = found.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"dump_config_path: `{path}` is not UTF-8 at byte {error.start}") from None
    check_form(text, path)
    if check is not None:
        check(text, path)
    return AclJson(path, text)


def check_form(text: str, path: str) -> None:
    """Refuses what is no JSON object with an object `dump` in it."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"dump_config_path: `{path}` is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"dump_config_path: `{path}` is no JSON object")
    if not isinstance(value.get("dump"), dict):
        raise ValueError(f"dump_config_path: `{path}` has no object `dump`")


def _refuse(word: str) -> None:
    raise ValueError(f"`{word}` is no JSON number")
