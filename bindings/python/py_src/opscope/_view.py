"""The page of `opscope view`, served by this process."""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

from . import _options
from ._visible import visible

if TYPE_CHECKING:
    from ._native import reading

StrPath = Union[str, "os.PathLike[str]"]

# Height in pixels of the page in a notebook.
HEIGHT = 800
PORT_MAX = 2**16 - 1


class View:
    """A page that is served until `close`, or the end of the process. Displays itself as the last
    value of a notebook cell.
    """

    def __init__(self, native: reading.Page, owner: object = None) -> None:
        self._native = native
        # Keeps the dumps, which the page still reads, from being removed.
        self._owner = owner

    @property
    def url(self) -> str:
        """The address of the page, which grants access to the dump."""
        return self._native.address()

    @property
    def is_open(self) -> bool:
        """Whether the page is served."""
        return self._native.is_open()

    def close(self) -> None:
        """Stops the server. An open page stays visible, but cannot load more."""
        self._native.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<opscope.View {visible(self.url)}{'' if self.is_open else ', closed'}>"

    def _repr_html_(self) -> str:
        address = html.escape(self.url, quote=True)
        link = f'<p><a href="{address}" target="_blank" rel="noreferrer">{address}</a></p>'
        if not self.is_open:
            return f"<p>This page is closed.</p>{link}"
        return f'<iframe src="{address}" width="100%" height="{HEIGHT}" style="border: 0"></iframe>{link}'


def view(
    dump: StrPath,
    golden: StrPath | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool | None = None,
    jobs: int | None = None,
) -> View:
    """Shows a dump, or its comparison with a golden one, in the browser, as `opscope view` does.

    Threads of this process serve the page. `port` 0 means any free port. With a `host` other than a
    loopback address, everyone who has the address and reaches this machine can see the dumps. By
    default a browser is opened, except in a notebook, which shows the page inline.

    Raises:
        UsageError: The host or the port cannot be had, or an option makes no sense.
        NotFoundError: There is nothing at one of the paths.
        OpscopeError: A dump has no tensors.
    """
    from ._native import reading

    _options.path("dump", dump)
    _options.path("golden", golden, is_optional=True)
    _options.whole("jobs", jobs, 1, is_optional=True)
    dumps = {
        "dump": _options.place(dump),
        "golden": None if golden is None else _options.place(golden),
        "jobs": jobs,
    }
    return shown(lambda request: reading.view({**dumps, **request}), host, port, open_browser)


def shown(
    serve: Callable[[dict[str, Any]], reading.Page],
    host: str,
    port: int,
    open_browser: bool | None,
    owner: object = None,
) -> View:
    """Serves a page and optionally opens a browser; `owner` lives as long as the page."""
    _options.string("host", host)
    _options.whole("port", port, 0, PORT_MAX)
    if open_browser is not None:
        _options.boolean("open_browser", open_browser)
    in_notebook = _in_notebook()
    page = View(serve({"host": host, "port": port, "may_be_framed": in_notebook}), owner)
    if open_browser or (open_browser is None and not in_notebook):
        import webbrowser

        webbrowser.open(page.url)
    return page


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this: an IPython terminal shows no HTML."""
    try:
        # IPython adds it to the builtins.
        shell = get_ipython()  # type: ignore[name-defined]
    except NameError:
        return False
    return getattr(shell, "kernel", None) is not None
