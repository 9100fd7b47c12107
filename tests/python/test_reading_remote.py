"""`opscope.open`, `compare` and `convert` of URLs: every form of dump as from the disk."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import object_servers
import opscope
import pytest

GOLDEN = Path(__file__).resolve().parents[2] / "crates/store/tests/golden"
FORMS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """All golden dumps in a bucket, for this process and those that it starts."""
    before = dict(os.environ)
    with object_servers.s3_server() as (host, port):
        object_servers.put((host, port), "golden", b"")
        object_servers.upload((host, port), GOLDEN, "golden")
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "secret-4b"}
        endpoint = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "OPSCOPE_REMOTE_RETRIES": "1"}
        os.environ.update(object_servers.environment(**keys, **endpoint))
        yield "s3://golden"
        os.environ.clear()
        os.environ.update(before)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(form: str, bucket: str) -> None:
    here, there = opscope.open(GOLDEN / form), opscope.open(f"{bucket}/{form}")
    assert [label(record) for record in here] == [label(record) for record in there]
    for a, b in zip(here, there, strict=True):
        assert str(b.path).startswith(f"{bucket}/{form}") and content(a) == content(b)
    for (a, b), root in zip(((here, there),), (GOLDEN,), strict=True):
        problems = [str(problem).replace(str(root), bucket) for problem in a.problems]
        assert problems == [str(problem) for problem in b.problems]
        passed_over = [(str(one.path).replace(str(root), bucket), one.reason) for one in a.passed_over]
        assert passed_over == [(str(one.path), one.reason) for one in b.passed_over]


def label(record: opscope.Record) -> str:
    return repr((record.name, record.op_type, record.dtype, record.shape, record.step, record.rank))


def content(record: opscope.Record) -> bytes | str:
    try:
        array = record.numpy()
    except opscope.OpscopeError as error:
        return str(error).replace(str(GOLDEN), "s3://golden")
    return np.ascontiguousarray(array).tobytes() + repr((array.dtype, array.shape)).encode()


def test_a_single_file_is_read(bucket: str) -> None:
    file = next(path for path in sorted(GOLDEN.rglob("*.npy")) if opscope.open(path))
    url = f"{bucket}/{file.relative_to(GOLDEN).as_posix()}"
    assert content(opscope.open(file)[0]) == content(opscope.open(url)[0])


def test_what_is_not_there_is_an_error(bucket: str) -> None:
    with pytest.raises(opscope.NotFoundError, match=r"s3://golden/nothing.*No such file"):
        opscope.open(f"{bucket}/nothing")
    with pytest.raises(opscope.NotFoundError, match="there is no bucket `nowhere`"):
        opscope.open("s3://nowhere/run")
    # `pathlib` makes another path of it.
    with pytest.raises(opscope.NotFoundError):
        opscope.open(pathlib.Path(f"{bucket}/npy"))
    with pytest.raises(opscope.OpscopeError) as caught:
        opscope.open("http://me:secret-4b@127.0.0.1:9/run")
    assert "secret-4b" not in str(caught.value) and "http://127.0.0.1:9/run" in str(caught.value)


def test_a_dump_that_grows_is_seen_when_it_is_opened_again(bucket: str) -> None:
    address = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://").split(":")
    arrays = sorted(GOLDEN.rglob("*.npy"))[:2]
    object_servers.put((address[0], int(address[1])), "growing", b"")
    for n, array in enumerate(arrays, 1):
        object_servers.put((address[0], int(address[1])), f"growing/run/{n}.npy", array.read_bytes())
        assert len(opscope.open("s3://growing/run")) == n


def test_a_forked_child_reads_and_nothing_stays(bucket: str, tmp_path: Path) -> None:
    code = f"""
import os, opscope
first = opscope.open("{bucket}/onnx_tensor/model")
list(first)
child = os.fork()
if child == 0:
    second = opscope.open("{bucket}/onnx_tensor/model")
    same = [a.numpy().tobytes() == b.numpy().tobytes() for a, b in zip(first, second)]
    os._exit(0 if same and all(same) else 7)
assert os.waitpid(child, 0)[1] == 0
first[0].numpy()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
    assert tempfile.gettempdir() != str(tmp_path)
