"""Dumps, the server of their page, and a browser that looks at it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
from binary import Binary

pytest_plugins = ["sampling"]

# What an interaction may take on a machine that builds something else meanwhile.
TIMEOUT_MS = 120_000
expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture(scope="session")
def tool() -> Binary:
    return Binary.from_environment()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # A container's shared memory is often too small for a page.
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options: dict[str, Any] = {"args": arguments}
        browser = playwright.chromium.launch(executable_path=os.environ["OPSCOPE_BROWSER"], **options)
        yield browser
        browser.close()


@dataclass
class Viewer:
    """A running `opscope view`."""

    address: str
    process: subprocess.Popen[str]

    def url(self, view: str = "overview", **query: object) -> str:
        base = self.address.rsplit("/", 1)[0]
        return f"{base}/{view}?{urlencode(query)}" if query else f"{base}/{view}"


@pytest.fixture(scope="session")
def view(tool: Binary) -> Iterator[Callable[..., Viewer]]:
    """Serves the page of dumps; the servers end with the session, each by itself and without a word."""
    viewers: list[Viewer] = []

    def start(*dumps: Path | str) -> Viewer:
        command = tool.command("view", *dumps, "--no-open")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout and process.stderr
        address = process.stdout.readline().strip()
        assert address, process.stderr.read()
        viewers.append(Viewer(address, process))
        return viewers[-1]

    yield start
    for viewer in viewers:
        viewer.process.send_signal(signal.SIGINT)
        assert viewer.process.wait(timeout=TIMEOUT_MS / 1000) == 0
        assert viewer.process.stderr and viewer.process.stderr.read() == ""


@dataclass
class Witness:
    """Everything that a page must not do."""

    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).hostname or ""))

        def note(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.errors.append(message.text)

        page.on("console", note)


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
def page(browser: Browser, witness: Witness, tmp_path: Path) -> Iterator[Page]:
    """A page of 1440 × 900 that must end without errors, and with requests only to its server.

    It needs `tmp_path` so that a test's dumps are removed after the page that shows them is closed.
    """
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light", locale="en-US")
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    witness.watch(page)
    yield page
    context.close()
    assert witness.errors == []
    assert witness.hosts <= {"127.0.0.1", ""}
