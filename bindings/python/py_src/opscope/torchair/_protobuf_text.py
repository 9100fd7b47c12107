"""Messages in protobuf's text form.

A message is a list of (field name, value) pairs; a value is a number, a `Word` of an enumeration, a
text, or another message. A repeated field occurs several times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

Message = list["tuple[str, Value]"]


class Word(str):
    """A value of an enumeration, written without quotes."""


Value = Union[int, float, str, Word, Message]


def text_of(message: Message) -> str:
    """The text, indented by two blanks per level."""
    return "".join(f"{line}\n" for line in _lines(message, ""))


def _lines(message: Message, indent: str) -> Iterator[str]:
    for name, value in message:
        if isinstance(value, list):
            yield f"{indent}{name} {{"
            yield from _lines(value, indent + "  ")
            yield f"{indent}}}"
        else:
            yield f"{indent}{name}: {_scalar(value)}"


def _scalar(value: float | str) -> str:
    if isinstance(value, Word):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: str) -> str:
    """A quoted text on one line.
    
    >>> print(quoted('say "a"' + chr(10)))
    "say \\"a\\"\\n"
    """
    known = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    # A character that UTF-8 cannot encode, as in file names, becomes a question mark.
    sound = text.encode("utf-8", "replace").decode("utf-8")
    return '"' + "".join(known.get(c) or (c if c >= " " and c != "\x7f" else f"\\{ord(c):03o}") for c in sound) + '"'
