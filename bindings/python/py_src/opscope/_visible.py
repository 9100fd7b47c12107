"""Escaping text from files for terminals.

Names and messages may contain control characters, bidirectional marks or invisible characters. They
are shown as `\\u{202e}`, as on the command line; all other text stays.
"""

from __future__ import annotations

import logging
import unicodedata

# Controls, formatting, surrogates, and separators of lines and paragraphs.
_HIDDEN_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
# Fillers and selectors: no width although they count as letters or marks.
_HIDDEN = frozenset(map(chr, (0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10))))


def visible(text: str, keep: str = "") -> str:
    """The text on one line; the characters of `keep` are not escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or not _is_hidden(c) else f"\\u{{{ord(c):x}}}" for c in text)


def logger() -> logging.Logger:
    """The log of `opscope.torch`, whose messages are escaped to one line."""
    log = logging.getLogger("opscope.torch")
    if not any(isinstance(known, _Visible) for known in log.filters):
        log.addFilter(_Visible())
    return log


class _Visible(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = visible(record.getMessage()), ()
        return True


def _is_hidden(c: str) -> bool:
    return unicodedata.category(c) in _HIDDEN_CATEGORIES or c in _HIDDEN
