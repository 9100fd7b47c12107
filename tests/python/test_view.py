"""`opscope.view`: the page, served by the Python process."""

from __future__ import annotations

import builtins
import json
import re
import shutil
import urllib.request
import webbrowser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import opscope
import pytest


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    np.save(folder / "a.npy", np.array([1.0, np.nan, 3.0], np.float32))
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to open."""
    addresses: list[str] = []
    monkeypatch.setattr(webbrowser, "open", addresses.append)
    return addresses


def answer(url: str, question: str) -> Any:
    base = url.rsplit("/", 1)[0]
    with urllib.request.urlopen(f"{base}/api/{question}") as response:
        return json.load(response)


def test_the_page_tells_of_the_dump_until_it_is_closed(dump: Path, opened: list[str]) -> None:
    with opscope.view(dump) as view:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/overview", view.url)
        assert opened == [view.url]
        assert answer(view.url, "info")["verdict"]["n_bad"] == 1
        assert view.is_open
        assert view.url in repr(view)
    assert not view.is_open
    assert repr(view).endswith(", closed>")
    with pytest.raises(URLError):
        answer(view.url, "info")
    view.close()


def test_two_dumps_are_compared(dump: Path, tmp_path: Path, opened: list[str]) -> None:
    golden = tmp_path / "golden"
    golden.mkdir()
    np.save(golden / "a.npy", np.array([1.0, 2.0, 3.0], np.float32))
    with opscope.view(dump, golden, open_browser=False, jobs=1) as view:
        info = answer(view.url, "info")
        assert (info["golden"]["name"], info["verdict"]["status"]) == ("golden", "fail")
    assert opened == []


def test_a_comparison_is_shown_with_its_own_verdicts(dump: Path, tmp_path: Path, opened: list[str]) -> None:
    golden = tmp_path / "golden"
    golden.mkdir()
    np.save(golden / "a.npy", np.array([1.0, np.nan, 3.5], np.float32))
    limits = tmp_path / "limits.yaml"
    limits.write_text("dtypes: {float: {rel_l2: 1, scaled_max_abs: 1, cosine: 0, gain_error: 1, offset_error: 1}}")
    assert opscope.compare(dump, golden).level == "fail"
    found = opscope.compare(dump, golden, thresholds=limits)
    with found.view() as view:
        assert opened == [view.url]
        assert answer(view.url, "info")["verdict"]["status"] == found.level == "pass"
    found.save(tmp_path / "result.json")
    with opscope.Comparison.load(tmp_path / "result.json").view(open_browser=False) as view:
        assert answer(view.url, "info")["golden"]["name"] == "golden"
    shutil.rmtree(dump)
    with pytest.raises(opscope.NotFoundError, match="dump"):
        found.view(open_browser=False)


def test_a_notebook_shows_the_page_inline(
    dump: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        builtins, "get_ipython", lambda: SimpleNamespace(kernel=object()), raising=False
    )
    with opscope.view(dump) as view:
        assert f'<iframe src="{view.url}"' in view._repr_html_()
        policy = urllib.request.urlopen(view.url).headers["content-security-policy"]
        assert "frame-ancestors http://localhost:*" in policy
    assert "iframe" not in view._repr_html_()
    assert opened == []


def test_others_may_not_show_it_in_a_frame(dump: Path) -> None:
    with opscope.view(dump, open_browser=False) as view:
        policy = urllib.request.urlopen(view.url).headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy


def test_mistakes_are_told(dump: Path, tmp_path: Path) -> None:
    with pytest.raises(opscope.NotFoundError, match="nothing-here"):
        opscope.view(tmp_path / "nothing-here", open_browser=False)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(opscope.OpscopeError, match="no tensors"):
        opscope.view(empty, open_browser=False)
    with pytest.raises(opscope.UsageError, match="192.0.2.1"):
        opscope.view(dump, host="192.0.2.1", open_browser=False)
    with pytest.raises(opscope.UsageError, match="port"):
        opscope.view(dump, port=70_000, open_browser=False)
    with pytest.raises(TypeError, match="open_browser"):
        opscope.view(dump, open_browser="no")  # type: ignore[arg-type]
