"""Dumps in object storage and behind HTTP: the same answers as on the disk, from no more bytes than they take.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_remote.py
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import isolation
import numpy as np
import object_servers
import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary
from object_servers import Proxy
from onnx import TensorProto, helper
from waiting import wait_for

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "not-a-secret-9c1f"}
N_WIDE = 1024
MIB = 1 << 20


@pytest.fixture(scope="module")
def dumps(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`run` and `golden` in our form and in AscendCL's; the weights of `run` are other ones."""
    folder = tmp_path_factory.mktemp("remote")
    random = np.random.default_rng(5)
    x = random.normal(size=(4, N_WIDE)).astype(np.float32)
    np.save(folder / "x.npy", x)
    weights = random.normal(size=(N_WIDE, 3 * N_WIDE)).astype(np.float32)
    for run, factor in (("golden", 1.0), ("run", 1.5)):
        model = folder / f"{run}.onnx"
        onnx.save(large_model(weights * np.float32(factor)), model)
        for form in ("native", "acl"):
            out = folder / form / run
            tool.dump(model, "--form", form, "--out", out, "--input", f"x={folder}/x.npy", "--steps", 2)
    return folder


def large_model(weights: np.ndarray) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w"], ["m"], "matmul"),
        helper.make_node("Tanh", ["m"], ["y"], "tanh"),
    ]
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, N_WIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 3 * N_WIDE])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def s3(dumps: Path) -> Iterator[tuple[str, int]]:
    with object_servers.s3_server() as address:
        object_servers.put(address, "runs", b"")
        for form in ("native", "acl"):
            object_servers.upload(address, dumps / form, f"runs/{form}")
        yield address


@pytest.fixture
def proxy(s3: tuple[str, int]) -> Iterator[Proxy]:
    with object_servers.proxy_to(*s3) as proxy:
        yield proxy


def settings(proxy: Proxy, **more: str) -> dict[str, str]:
    return object_servers.environment(AWS_ENDPOINT_URL=proxy.url, **{**KEYS, **more})


def ask(tool: Binary, env: dict[str, str], *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(tool.command(*args), env=env, capture_output=True, text=True, timeout=600)


def answer(tool: Binary, env: dict[str, str], *args: object, code: int = 0) -> str:
    done = ask(tool, env, *args)
    assert done.returncode == code, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def elements_size(dumps: Path, form: str, run: str) -> int:
    return sum(path.stat().st_size for path in (dumps / form / run).rglob("*") if path.is_file())


@pytest.mark.parametrize("form", ["native", "acl"])
@pytest.mark.parametrize("command", ["show", "show --json", "overflow", "compare", "compare --json -"])
def test_answers_are_those_of_the_copy_on_the_disk(
    command: str, form: str, tool: Binary, dumps: Path, proxy: Proxy, tmp_path: Path
) -> None:
    name, *options = command.split()
    runs = ["run", "golden"] if name == "compare" else ["run"]
    options += ["--dump"] if name == "overflow" else []
    env = settings(proxy)
    if options == ["--json", "-"]:
        options = ["--json", str(tmp_path / "report.json")]
    found = []
    for root in (f"{dumps}/{form}", f"s3://runs/{form}"):
        done = ask(tool, env, name, *options, *(f"{root}/{run}" for run in runs))
        report = (tmp_path / "report.json").read_text() if (tmp_path / "report.json").exists() else ""
        (tmp_path / "report.json").unlink(missing_ok=True)
        texts = (done.stdout, done.stderr, report)
        found.append((done.returncode, *(without_places(text, root, dumps) for text in texts)))
    assert found[0] == found[1]
    assert found[0][0] in (0, 1) and (found[0][1] or found[0][2])


def without_places(text: str, root: str, dumps: Path) -> str:
    text = text.replace(root, "ROOT")
    # What a path is made relative to, and how long a comparison took.
    text = re.sub(r'("(seconds|started|finished|elapsed\w*|duration\w*)": )[^,\n]+', r"\1_", text)
    return re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "TIME", text)


def test_tables_and_converted_arrays_are_the_same(tool: Binary, dumps: Path, proxy: Proxy, tmp_path: Path) -> None:
    env = settings(proxy)
    for number, root in enumerate((f"{dumps}/native", "s3://runs/native")):
        answer(tool, env, "index", f"{root}/run", "--out", tmp_path / f"tables-{number}", "--stats")
        answer(tool, env, "convert", "-d", f"{root}/run", "--out", tmp_path / f"arrays-{number}")
    for kind, pattern in (("tables", "*.parquet"), ("arrays", "*.npy")):
        here, there = (tmp_path / f"{kind}-{number}" for number in (0, 1))
        names = sorted(path.relative_to(here) for path in here.rglob(pattern))
        assert names and names == sorted(path.relative_to(there) for path in there.rglob(pattern))
        if kind == "arrays":
            assert all((here / name).read_bytes() == (there / name).read_bytes() for name in names)
    rows = [
        answer(tool, env, "sql", "select op_name, side, slot, digest, mean from tensors", tmp_path / f"tables-{n}")
        for n in (0, 1)
    ]
    assert rows[0] == rows[1]


def test_nothing_is_written_beside_a_remote_dump(tool: Binary, proxy: Proxy, tmp_path: Path) -> None:
    env = settings(proxy)
    done = subprocess.run(
        tool.command("index", "s3://runs/native/run"), env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and "`--out` is required" in done.stderr
    done = ask(tool, env, "convert", "-d", "s3://runs/native/run", "--out", "s3://runs/out")
    assert done.returncode not in (0, 1) and "never written" in done.stderr
    assert not list(tmp_path.iterdir())
    assert {request.method for request in proxy.requests} <= {"GET", "HEAD"}


def test_only_what_is_asked_for_is_read(tool: Binary, dumps: Path, proxy: Proxy) -> None:
    env = settings(proxy)
    n_all = elements_size(dumps, "native", "run")
    assert n_all > 12 * MIB
    answer(tool, env, "show", "s3://runs/native/run")
    assert proxy.n_bytes(".safetensors") == 0
    assert proxy.n_bytes() < MIB
    proxy.clear()
    # The weights are in the dump of each form, and an overview of AscendCL's takes the headers alone.
    answer(tool, env, "show", "s3://runs/acl/run")
    assert proxy.n_bytes() < 2 * MIB < elements_size(dumps, "acl", "run") / 10
    assert any(request.range == "bytes=0-65535" for request in proxy.requests)
    proxy.clear()
    question = ("compare", "s3://runs/native/run", "s3://runs/native/golden", "--op-type", "Relu")
    answer(tool, env, *question)
    # Two dumps, two steps, an input and an output of 16 KiB each, which lie in blocks.
    assert 0 <= proxy.n_bytes(".safetensors") <= 8 * MIB
    ranges = [request for request in proxy.requests if request.path.split("?")[0].endswith(".safetensors")]
    assert all(request.range for request in ranges)


@pytest.mark.parametrize("fault", ["503", "cut"])
def test_failing_requests_are_made_again(fault: str, tool: Binary, dumps: Path, proxy: Proxy) -> None:
    n_failed = {}

    def breaks(method: str, path: str) -> str | None:
        # Each object fails twice.
        n_failed[path] = n_failed.get(path, 0) + 1
        return fault if n_failed[path] <= 2 and method == "GET" else None

    proxy.fault = breaks
    env = settings(proxy)
    there = ("s3://runs/native/run", "s3://runs/native/golden")
    here = (dumps / "native/run", dumps / "native/golden")
    found = [ask(tool, env, "compare", *runs) for runs in (here, there)]
    texts = [
        without_places(done.stdout, root, dumps)
        for done, root in zip(found, (f"{dumps}/native", "s3://runs/native"), strict=True)
    ]
    assert found[0].returncode == found[1].returncode and texts[0] == texts[1]
    assert len(n_failed) > 3


def test_what_never_answers_is_an_error(tool: Binary, proxy: Proxy) -> None:
    proxy.fault = lambda method, path: "503"
    start = time.monotonic()
    done = ask(tool, settings(proxy, OPSCOPE_REMOTE_RETRIES="4"), "show", "s3://runs/native/run")
    assert done.returncode == 3 and "503" in done.stderr and "bucket `runs`" in done.stderr
    # One for the dump, one for the names next to a file.
    assert len(proxy.requests) == 2 * (1 + 4)
    # They are apart. A machine that is busy takes longer.
    assert time.monotonic() - start > 0.5


@pytest.mark.parametrize("change", ["size", "content", "removed"])
def test_an_object_that_changes_is_told(
    change: str, tool: Binary, dumps: Path, s3: tuple[str, int], proxy: Proxy
) -> None:
    bucket = f"changing-{change}"
    object_servers.put(s3, bucket, b"")
    object_servers.upload(s3, dumps / "native", bucket)
    (elements,) = {path.relative_to(dumps / "native") for path in (dumps / "native/run").rglob("*.safetensors")}
    path = f"/{bucket}/{elements.as_posix()}"
    content = bytearray((dumps / "native" / elements).read_bytes())
    seen = []

    def changes(method: str, requested: str) -> str | None:
        if requested == path:
            seen.append(method)
            if len(seen) == 1:
                content[-1] ^= 1
                if change == "removed":
                    remove(s3, path)
                else:
                    object_servers.put(s3, path[1:], bytes(content) + (b"x" if change == "size" else b""))
        return None

    proxy.fault = changes
    done = ask(tool, settings(proxy), "compare", f"s3://{bucket}/run", f"s3://{bucket}/golden")
    assert seen and done.returncode in (3, 4), (done.returncode, done.stdout)
    expected = "it was deleted after it was listed" if change == "removed" else "it has changed since it was listed"
    assert expected in " ".join((done.stdout + done.stderr).split())


def remove(address: tuple[str, int], path: str) -> None:
    import http.client

    connection = http.client.HTTPConnection(*address)
    headers = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"}
    connection.request("DELETE", path, headers=headers)
    assert connection.getresponse().status == 204


def test_what_is_missing_is_named(tool: Binary, proxy: Proxy) -> None:
    env = settings(proxy)
    for url, reason in (
        ("s3://runs/nothing", "No such file"),
        ("s3://no-such-bucket/run", "there is no bucket `no-such-bucket`"),
        ("s3://", "expected a bucket"),
    ):
        done = ask(tool, env, "show", url)
        assert done.returncode == 3 and reason in done.stderr, (url, done.stderr)
        assert f"`{url}`" in done.stderr


def test_no_credentials_are_told_and_nobody_is_asked(tool: Binary, tmp_path: Path) -> None:
    for url, variable in (
        ("s3://runs/native", "AWS_ACCESS_KEY_ID"),
        ("gs://runs/native", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("az://runs/native", "AZURE_STORAGE_SAS_TOKEN"),
    ):
        env = object_servers.environment(AZURE_STORAGE_ACCOUNT="account")
        folder = tmp_path / variable
        folder.mkdir()
        done = isolation.run(tool.command("show", url), folder, env)
        assert not done.has_asked_network
        assert done.returncode == 3, done.stderr
        assert "no credentials for `runs`" in done.stderr and variable in done.stderr
        assert "OPSCOPE_INSTANCE_METADATA=1" in done.stderr


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9000", "ftp://host", "http://"])
def test_an_endpoint_that_is_no_server_is_refused(endpoint: str, tool: Binary) -> None:
    done = ask(tool, object_servers.environment(AWS_ENDPOINT_URL=endpoint, **KEYS), "show", "s3://runs/run")
    assert done.returncode == 3 and "expected the URL of a server as endpoint" in done.stderr, done.stderr
    assert "panicked" not in done.stderr


def test_a_profile_gives_key_and_endpoint(tool: Binary, proxy: Proxy, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[lab]\naws_access_key_id = AKLAB\naws_secret_access_key = s\n")
    (tmp_path / "config").write_text(f"[profile lab]\nregion = eu-west-1\nendpoint_url = {proxy.url}\n")
    env = object_servers.environment(
        AWS_PROFILE="lab",
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "credentials"),
        AWS_CONFIG_FILE=str(tmp_path / "config"),
    )
    assert "matmul" in answer(tool, env, "show", "s3://runs/native/run").lower()
    done = ask(tool, {**env, "AWS_PROFILE": "other"}, "show", "s3://runs/native/run")
    assert done.returncode == 3 and "the profile `other` in" in done.stderr


def test_secrets_are_shown_nowhere(tool: Binary, proxy: Proxy, dumps: Path) -> None:
    proxy.fault = lambda method, path: "503"
    done = ask(tool, settings(proxy, OPSCOPE_REMOTE_RETRIES="1"), "show", "s3://runs/native/run")
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr
    with object_servers.webdav_server(dumps / "native", {"me": "pass-word-1"}) as (host, port):
        for url in (f"http://me:wrong-word@{host}:{port}/run", f"http://{host}:{port}/run/a?sig=wrong-word"):
            done = ask(tool, object_servers.environment(), "show", url)
            assert done.returncode == 3, done.stdout
            assert "wrong-word" not in done.stdout + done.stderr, done.stderr
        url = f"http://me:pass-word-1@{host}:{port}/run"
        done = ask(tool, object_servers.environment(), "show", url, "--json")
        assert done.returncode == 0, done.stderr
        assert "pass-word-1" not in done.stdout and f"http://{host}:{port}/run" in done.stdout


def test_webdav_servers_are_listed(tool: Binary, dumps: Path) -> None:
    env = object_servers.environment()
    with (
        object_servers.webdav_server(dumps / "native") as address,
        object_servers.proxy_to(*address) as proxy,
    ):
        found = [
            without_places(ask(tool, env, "compare", f"{root}/run", f"{root}/golden").stdout, root, dumps)
            for root in (f"{dumps}/native", proxy.url)
        ]
        assert found[0] == found[1] and found[0]
        ranges = [request for request in proxy.requests if request.path.endswith(".safetensors")]
        assert ranges and all(request.range and request.status == 206 for request in ranges)


def test_an_object_without_a_usable_name_is_told(tool: Binary, dumps: Path, tmp_path: Path) -> None:
    shutil.copytree(dumps / "native/run", tmp_path / "files/run")
    env = object_servers.environment()
    with object_servers.webdav_server(tmp_path / "files") as (host, port):
        expected = ask(tool, env, "show", f"http://{host}:{port}/run")
        (tmp_path / "files/run/odd\nname.npy").write_bytes(b"12345")
        found = ask(tool, env, "show", f"http://{host}:{port}/run")
    assert (found.returncode, found.stdout) == (4, expected.stdout)
    assert "illegal character" in found.stderr and "No such file" not in found.stderr


class EndlessListing(BaseHTTPRequestHandler):
    """A listing that never ends, and no file."""

    def do_HEAD(self) -> None:
        self.send_error(404)

    def do_PROPFIND(self) -> None:
        self.send_response(207)
        self.end_headers()
        self.wfile.write(b'<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">')
        with suppress(ConnectionError):
            while True:
                self.wfile.write(b" " * (1 << 20))

    def log_message(self, *args: object) -> None:
        pass


def test_a_listing_without_an_end_is_given_up(tool: Binary) -> None:
    with object_servers.serving(EndlessListing) as (host, port):
        done = ask(tool, object_servers.environment(), "show", f"http://{host}:{port}/run")
    assert (done.returncode, "bytes of a listing" in done.stderr) == (3, True), done.stderr


def test_servers_without_listing_give_single_files(tool: Binary, dumps: Path) -> None:
    env = object_servers.environment()
    with object_servers.plain_server(dumps / "acl") as url:
        done = ask(tool, env, "show", f"{url}/run")
        assert done.returncode == 3 and "does not list directories" in done.stderr, done.stderr
        file = next(path for path in (dumps / "acl/run").rglob("MatMul.*"))
        name = file.relative_to(dumps / "acl").as_posix()
        found = [answer(tool, env, "show", path, "--json") for path in (str(file), f"{url}/{name}")]
        assert found[0].replace(str(dumps / "acl"), url) == found[1]
        done = ask(tool, env, "show", f"{url}/absent.npy")
        assert done.returncode == 3 and "No such file" in done.stderr


def test_strange_names_are_told_and_not_followed(tool: Binary, dumps: Path, s3: tuple[str, int], proxy: Proxy) -> None:
    object_servers.put(s3, "strange", b"")
    object_servers.upload(s3, dumps / "native/run", "strange/run")
    # An object that a console makes for a directory, and one that no file can be named after.
    object_servers.put(s3, "strange/run/", b"")
    object_servers.put(s3, "strange/run/" + "n" * 300, b"12345")
    done = ask(tool, settings(proxy), "show", "s3://strange/run")
    assert done.returncode == 4 and "longer than 255 bytes" in done.stderr, (done.returncode, done.stderr)


def test_nothing_stays_on_the_disk(tool: Binary, proxy: Proxy, tmp_path: Path) -> None:
    env = settings(proxy, TMPDIR=str(tmp_path))
    answer(tool, env, "show", "s3://runs/native/run")
    assert not list(tmp_path.iterdir())
    proxy.fault = lambda method, path: "503" if path.endswith(".parquet") else None
    process = subprocess.Popen(
        tool.command("show", "s3://runs/native/run"), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # It tries again and again, and is amid its work.
    wait_for(lambda: any(request.status == 503 for request in proxy.requests), "a request that fails")
    (private,) = tmp_path.iterdir()
    assert private.stat().st_mode & 0o777 == 0o700
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=TIMEOUT_SECONDS) in (-signal.SIGINT, 130)
    assert not list(tmp_path.iterdir())
    process.stdout.close()
    process.stderr.close()


def test_little_is_kept_if_little_may_be(tool: Binary, dumps: Path, proxy: Proxy, tmp_path: Path) -> None:
    env = settings(proxy, OPSCOPE_REMOTE_CACHE="1", TMPDIR=str(tmp_path))
    found = [
        without_places(ask(tool, env, "compare", f"{root}/run", f"{root}/golden").stdout, root, dumps)
        for root in (f"{dumps}/acl", "s3://runs/acl")
    ]
    assert found[0] == found[1] and found[0]


def test_google_s_urls(tool: Binary, dumps: Path, proxy: Proxy) -> None:
    """Google's service answers listings and reads as S3 does, so the same server can replace it."""
    env = object_servers.environment(GOOGLE_BASE_URL=proxy.url, GOOGLE_SKIP_SIGNATURE="true")
    there = json.loads(answer(tool, env, "show", "gs://runs/native/run", "--json"))
    here = json.loads(answer(tool, env, "show", dumps / "native/run", "--json"))
    assert there["operators"] == here["operators"]


def test_azure_s_urls(tool: Binary, dumps: Path) -> None:
    with object_servers.azure_server(dumps / "native") as url:
        env = object_servers.environment(
            AZURE_STORAGE_ACCOUNT="account", AZURE_STORAGE_ENDPOINT=url, AZURE_SKIP_SIGNATURE="true"
        )
        found = [
            without_places(ask(tool, env, "compare", f"{root}/run", f"{root}/golden").stdout, root, dumps)
            for root in (f"{dumps}/native", "az://runs")
        ]
        assert found[0] == found[1] and found[0]
