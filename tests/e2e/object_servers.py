"""Servers on loopback that hold dumps: S3 by moto, WebDAV by WsgiDAV, and a proxy that counts and breaks requests."""

from __future__ import annotations

import email.utils
import http.client
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

HOST = "127.0.0.1"
# Headers that are of one connection, and not of what it carries.
HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "host"}


@dataclass
class Request:
    method: str
    path: str
    range: str | None
    status: int
    n_bytes: int


@dataclass
class Proxy:
    """Hands requests on, notes them, and breaks those that `fault` picks.

    `fault` returns a number of milliseconds to wait, `503`, `cut` for an answer that ends in the middle, or nothing.
    """

    target: tuple[str, int]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    fault: Callable[[str, str], str | None] = lambda method, path: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, request: Request) -> None:
        with self.lock:
            self.requests.append(request)

    def n_bytes(self, suffix: str = "") -> int:
        """Bytes that were sent of objects whose name ends so."""
        return sum(one.n_bytes for one in self.requests if one.path.split("?")[0].endswith(suffix))

    def clear(self) -> None:
        with self.lock:
            self.requests.clear()


class ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, proxy: Proxy, *args: object) -> None:
        self.proxy = proxy
        super().__init__(*args)

    def handle_any(self) -> None:
        fault = self.proxy.fault(self.command, self.path)
        n_body = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n_body)
        if fault == "503":
            self.proxy.note(Request(self.command, self.path, self.headers.get("Range"), 503, 0))
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        connection = http.client.HTTPConnection(*self.proxy.target, timeout=600)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_HEADERS}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        has_length = False
        for name, value in answer.getheaders():
            if name.lower() in HOP_HEADERS | {"date", "server"}:
                continue
            has_length |= name.lower() == "content-length"
            self.send_header(name, value)
        if not has_length:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "cut":
            content = content[: len(content) // 2]
            self.close_connection = True
        self.wfile.write(content)
        connection.close()
        self.proxy.note(Request(self.command, self.path, self.headers.get("Range"), answer.status, len(content)))

    do_GET = do_HEAD = do_PROPFIND = do_POST = handle_any

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[tuple[str, int]]:
    server = ThreadingHTTPServer((HOST, 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield HOST, server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def proxy_to(host: str, port: int) -> Iterator[Proxy]:
    proxy = Proxy((host, port))
    with serving(partial(ProxyHandler, proxy)) as (own_host, own_port):
        proxy.url = f"http://{own_host}:{own_port}"
        yield proxy


class SilentHandler(SimpleHTTPRequestHandler):
    """Files of a folder, each as a whole, and folders as pages for people."""

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def plain_server(folder: Path) -> Iterator[str]:
    with serving(partial(SilentHandler, directory=str(folder))) as (host, port):
        yield f"http://{host}:{port}"


@contextmanager
def webdav_server(folder: Path, users: dict[str, str] | None = None) -> Iterator[tuple[str, int]]:
    """WsgiDAV over a folder; with names and passwords if there are any."""
    from cheroot import wsgi
    from wsgidav.wsgidav_app import WsgiDAVApp

    mapping = {name: {"password": password} for name, password in (users or {}).items()}
    config = {
        "provider_mapping": {"/": {"root": str(folder), "readonly": True}},
        "simple_dc": {"user_mapping": {"*": mapping or True}},
        "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
        "property_manager": True,
        "verbose": 0,
        "logging": {"enable": False},
        "dir_browser": {"enable": True},
    }
    server = wsgi.Server((HOST, 0), WsgiDAVApp(config))
    server.prepare()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield HOST, server.bind_addr[1]
    finally:
        server.stop()
        thread.join()


class AzureHandler(BaseHTTPRequestHandler):
    """Lists and reads a folder as Azure's service does a container of this name, as far as its description goes."""

    protocol_version = "HTTP/1.1"

    def __init__(self, folder: Path, *args: object) -> None:
        self.folder = folder
        super().__init__(*args)

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        if query.get("comp") == ["list"]:
            self.reply(200, self.listing(query.get("prefix", [""])[0]).encode(), {"Content-Type": "application/xml"})
            return
        path = self.folder / unquote(address.path).split("/", 2)[2]
        if not path.is_file():
            self.reply(404, b"")
            return
        content, headers = path.read_bytes(), {"ETag": f'"{version(path)}"'}
        headers["Last-Modified"] = email.utils.formatdate(path.stat().st_mtime, usegmt=True)
        asked = self.headers.get("Range") or self.headers.get("x-ms-range")
        if asked is None:
            self.reply(200, content, headers)
            return
        start, end = (int(number) for number in asked.removeprefix("bytes=").split("-"))
        part = content[start : end + 1]
        headers["Content-Range"] = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
        self.reply(206, part, headers)

    do_HEAD = do_GET

    def listing(self, prefix: str) -> str:
        blobs = []
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and name.startswith(prefix):
                changed = email.utils.formatdate(path.stat().st_mtime, usegmt=True)
                blobs.append(
                    f"<Blob><Name>{name}</Name><Properties><Last-Modified>{changed}</Last-Modified>"
                    f"<Content-Length>{path.stat().st_size}</Content-Length><Content-Type>x/y</Content-Type>"
                    f"<Etag>{version(path)}</Etag></Properties></Blob>"
                )
        return f"<EnumerationResults><Blobs>{''.join(blobs)}</Blobs><NextMarker/></EnumerationResults>"

    def reply(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass


def version(path: Path) -> str:
    return f"0x{path.stat().st_mtime_ns:X}"


@contextmanager
def azure_server(folder: Path) -> Iterator[str]:
    with serving(partial(AzureHandler, folder)) as (host, port):
        yield f"http://{host}:{port}"


@contextmanager
def s3_server() -> Iterator[tuple[str, int]]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address=HOST, port=0, verbose=False)
    server.start()
    try:
        yield server.get_host_and_port()
    finally:
        server.stop()


def put(address: tuple[str, int], path: str, content: bytes) -> None:
    """Stores an object, or makes a bucket if the path has one part; moto checks no signature."""
    connection = http.client.HTTPConnection(*address, timeout=600)
    credential = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"
    # Google's client asks without a signature.
    headers = {"Authorization": credential, "x-amz-acl": "public-read"}
    connection.request("PUT", f"/{path}", content, headers)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, (path, answer.status, text)
    connection.close()


def upload(address: tuple[str, int], folder: Path, prefix: str) -> None:
    """Stores every file below a folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            put(address, f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def environment(**values: str) -> dict[str, str]:
    """The environment without the user's credentials or proxies."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(("AWS_", "GOOGLE_", "AZURE_")) and not name.lower().endswith("_proxy")
    }
    return {**kept, "HOME": "/nonexistent", "NO_PROXY": "*", **values}
