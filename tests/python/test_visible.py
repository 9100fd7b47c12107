"""Text from files reaches a terminal as text: exceptions, warnings, logs and `repr`."""

from __future__ import annotations

import logging
import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import opscope
import pytest
from opscope import _visible, _warning

HOSTILE = "x\x1b[31m\x9b2J\u202e\u200b\x7f\u2028\t\r\ufeff\U000e0041\ny"


def is_plain(text: str, keep: str = "") -> bool:
    return all(c in keep or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("Conv/größe 層 😀 \\n", "Conv/größe 層 😀 \\n"),
        ("a\nb\t", "a\\u{a}b\\u{9}"),
        ("\x1b[2J\x9b\u202e\u200d", "\\u{1b}[2J\\u{9b}\\u{202e}\\u{200d}"),
        ("\udcff", "\\u{dcff}"),
    ],
)
def test_text_is_shown_and_does_nothing(text: str, expected: str) -> None:
    assert _visible.visible(text) == expected
    assert _visible.visible(expected) == expected


def test_exceptions_and_repr(tmp_path: Path) -> None:
    with pytest.raises(opscope.OpscopeError) as caught:
        opscope.open(tmp_path / HOSTILE)
    assert is_plain(str(caught.value)) and "\\u{202e}" in str(caught.value)
    directory = tmp_path / f"d{HOSTILE}"
    directory.mkdir()
    np.save(directory / f"{HOSTILE}.npy", np.zeros(2, np.float32))
    (directory / f"damaged{HOSTILE}.npy").write_bytes(b"\x93NUMPY\x01\x00" + HOSTILE.encode())
    dump = opscope.open(directory)
    shown = [repr(dump), *map(repr, dump), *map(str, dump.problems)]
    assert all(is_plain(text) for text in shown), shown
    assert any("\\u{202e}" in text for text in shown), shown
    comparison = opscope.compare(directory, directory)
    assert is_plain(repr(comparison)) and is_plain(comparison._repr_html_())


def test_warnings_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        _warning.warn(f"the model has no `{HOSTILE}`")
    assert is_plain(str(seen[0].message))
    with caplog.at_level(logging.WARNING, logger="opscope.torch"):
        _visible.logger().warning("no operator is called `%s`", HOSTILE)
    assert caplog.messages and all(is_plain(message) for message in caplog.messages)


def test_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "opscope", "show", str(tmp_path / HOSTILE)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 3
    told = found.stdout + found.stderr
    assert is_plain(told, keep="\n") and "\\u{202e}" in told
