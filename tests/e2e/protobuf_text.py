"""An independent reader of protobuf's text form, written from its description and sharing no code with the tool.

A message becomes a dictionary from names of fields to lists of values, in the order of the text. Values are numbers,
booleans, texts, words of enumerations, and messages.
"""

from __future__ import annotations

import re
from typing import Any

Message = dict[str, list[Any]]

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|\#[^\n]*)
    | (?P<text>"(?:[^"\\\n]|\\.)*")
    | (?P<number>-?(?:\d+\.?\d*(?:[eE][-+]?\d+)?))(?![\w.])
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign>[{}:])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|(.))")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


class Word(str):
    """A value of an enumeration."""


def parse(text: str) -> Message:
    """The message. Raises `ValueError` for anything that is not in the form."""
    tokens = list(_tokens(text))
    message, end = _message(tokens, 0)
    if end != len(tokens):
        raise ValueError(f"left over: {tokens[end : end + 3]}")
    return message


def _tokens(text: str) -> Any:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"unexpected: {text[position : position + 40]!r}")
        position = found.end()
        if found.lastgroup != "blank":
            yield found.lastgroup, found.group()


def _message(tokens: list[tuple[str, str]], at: int) -> tuple[Message, int]:
    message: Message = {}
    while at < len(tokens) and tokens[at] != ("sign", "}"):
        kind, name = tokens[at]
        if kind != "word":
            raise ValueError(f"expected the name of a field, found {name!r}")
        if tokens[at + 1] == ("sign", "{"):
            value, at = _message(tokens, at + 2)
            if at >= len(tokens):
                raise ValueError(f"`{name}` has no end")
            at += 1
        elif tokens[at + 1] == ("sign", ":"):
            value, at = _scalar(*tokens[at + 2]), at + 3
        else:
            raise ValueError(f"`{name}` has no value")
        message.setdefault(name, []).append(value)
    return message, at


def _scalar(kind: str, text: str) -> Any:
    if kind == "text":
        return _ESCAPE.sub(_unescaped, text[1:-1])
    if kind == "number":
        return float(text) if re.search(r"[.eE]", text) else int(text)
    if kind != "word":
        raise ValueError(f"expected a value, found {text!r}")
    return {"true": True, "false": False}.get(text, Word(text))


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 8))
    return _ESCAPES[found[2]]
