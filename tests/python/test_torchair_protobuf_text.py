"""Messages in protobuf's text form, read again by an independent reader."""

from __future__ import annotations

import pytest
from opscope.torchair._protobuf_text import Message, Word, quoted, text_of
from protobuf_text import parse

MESSAGES: list[tuple[Message, dict]] = [
    ([], {}),
    ([("name", "a"), ("name", "b")], {"name": ["a", "b"]}),
    ([("i", -3), ("f", 2.5), ("b", True), ("dtype", Word("DT_FLOAT"))],
     {"i": [-3], "f": [2.5], "b": [True], "dtype": ["DT_FLOAT"]}),
    ([("shape", []), ("op", [("attr", [("key", "k"), ("value", [("s", "v")])])])],
     {"shape": [{}], "op": [{"attr": [{"key": ["k"], "value": [{"s": ["v"]}]}]}]}),
]  # fmt: skip


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_messages(message: Message, expected: dict) -> None:
    assert parse(text_of(message)) == expected


TEXTS = ["", "a b", 'say "a"\\n', "two\nlines\r\n\t", "\x00\x1f\x7f", "größer 大", "'", "#:{}"]


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_comes_back(text: str) -> None:
    line = text_of([("s", text)])
    assert line.count("\n") == 1
    assert parse(line) == {"s": [text]}


def test_what_no_utf8_can_hold_is_marked() -> None:
    assert quoted("a\udcff") == '"a?"'
