"""Comparing and indexing on a real Ray cluster of four nodes on this machine.

OPSCOPE=target/debug/opscope PYTHONPATH=bindings/python/py_src pytest tests/ray/test_cluster.py
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import opscope
import opscope.cluster
import pytest
from conftest import TIMEOUT_SECONDS, Tool, generated
from ray.cluster_utils import Cluster
from test_shards import tables_in
from waiting import wait_for

N_NODES = 4
LOOPBACK = "127.0.0.1"
STORE_BYTES = 80 << 20
# So slow that a unit takes two seconds and a process can be killed meanwhile; in MB/s.
SLOW = 0.004


def node_options() -> dict[str, object]:
    return {"num_cpus": 1, "object_store_memory": STORE_BYTES, "node_ip_address": LOOPBACK}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    head = {**node_options(), "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(N_NODES - 1):
        cluster.add_node(**node_options())
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def on(cluster: Cluster) -> tuple[str, str]:
    return ("--on", f"ray://{cluster.address}")


def test_the_result_is_that_of_one_process(
    tool: Tool, package: Tool, on: tuple[str, str], faulty: Path, golden: Path, tmp_path: Path
) -> None:
    expected = tool.compared(tmp_path / "one", faulty, golden)
    options = (*on, "--parts", tmp_path / "parts")
    assert package.compared(tmp_path / "cluster", faulty, golden, *options) == expected
    # A second call finds all parts, and does not even ask for the cluster.
    again = ("--on", "ray://127.0.0.1:1", "--parts", tmp_path / "parts")
    assert package.compared(tmp_path / "again", faulty, golden, *again) == expected


def test_the_binary_hands_over(
    tool: Tool, on: tuple[str, str], golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setenv("OPSCOPE_PYTHON", sys.executable)
    done = tool.run("compare", golden, golden, *on, "--parts", tmp_path / "parts")
    assert done.code == 0, done.said
    assert done.out == tool.run("compare", golden, golden).out
    monkeypatch.setenv("OPSCOPE_PYTHON", "/nowhere/python")
    done = tool.run("compare", golden, golden, *on, "--parts", tmp_path / "parts")
    assert done.code == 2 and "pip install 'opscope[ray]'" in done.said


def test_python_gets_the_same(cluster: Cluster, faulty: Path, golden: Path, tmp_path: Path) -> None:
    expected = opscope.compare(faulty, golden, ranks=[0, 1])
    found = opscope.cluster.compare(faulty, golden, cluster.address, parts=tmp_path / "parts", ranks=[0, 1])
    assert found.verdict == expected.verdict
    assert (found.operators, found.summary, found.skips) == (expected.operators, expected.summary, expected.skips)


def test_an_index_is_that_of_one_process(
    tool: Tool, package: Tool, on: tuple[str, str], faulty: Path, tmp_path: Path
) -> None:
    one, shared = tmp_path / "one", tmp_path / "shared"
    assert tool.run("index", faulty, "--out", one, "--stats").code == 0
    done = package.run("index", faulty, "--out", shared, "--stats", *on)
    assert done.code == 0, done.said
    assert tables_in(shared) == tables_in(one)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of 24 units."""
    folder = tmp_path_factory.mktemp("large")
    shape = ("--dp", 4, "--tp", 2, "--steps", 3)
    return generated(folder / "target", *shape, "--fault", "nan"), generated(folder / "golden", *shape)


def test_lost_workers_and_a_lost_node(
    tool: Tool, package: Tool, cluster: Cluster, on: tuple[str, str], large: tuple[Path, Path], tmp_path: Path
) -> None:
    expected = tool.run("compare", *large, "--json", tmp_path / "one.json")
    lost = cluster.add_node(**node_options())
    parts = tmp_path / "parts"
    options = (*on, "--parts", parts, "--read-limit", SLOW, "--json", tmp_path / "result.json")
    told = tmp_path / "told"

    def two_are_repeated() -> bool:
        """Kills a worker, unless two units were lost. One that has just written its part has nothing to lose."""
        line = r"^opscope: rank-\d+\.step-\d+: lost with node \w+, process \d+; repeated on node"
        is_enough = len(re.findall(line, told.read_text(), re.M)) >= 2
        for worker in [] if is_enough else workers(cluster)[:1]:
            os.kill(worker, signal.SIGKILL)
        return is_enough

    with told.open("wb") as file, started(package, "compare", *large, *options, said=file) as driver:
        wait_for(lambda: len(parts_in(parts)) >= 2, "two parts", driver)
        wait_for(two_are_repeated, "two repeated units", driver)
        wait_for(lambda: workers_of(lost), "work on the node", driver)
        cluster.remove_node(lost, allow_graceful=False)
        out, _ = driver.communicate(timeout=TIMEOUT_SECONDS)
    assert driver.returncode == expected.code == 1, told.read_text()
    assert out == expected.out
    assert (tmp_path / "result.json").read_bytes() == (tmp_path / "one.json").read_bytes()
    # Whatever was written twice was written alike.
    assert len(parts_in(parts)) == 24
    one = tmp_path / "one"
    tool.run("compare", *large, "--parts", one)
    assert {path.name: path.read_bytes() for path in parts_in(parts)} == {path.name: path.read_bytes() for path in parts_in(one)}


def test_an_interrupted_call_leaves_its_parts(
    tool: Tool, package: Tool, cluster: Cluster, on: tuple[str, str], large: tuple[Path, Path], tmp_path: Path
) -> None:
    parts = tmp_path / "parts"
    with started(package, "compare", *large, *on, "--parts", parts, "--read-limit", SLOW) as driver:
        wait_for(lambda: len(parts_in(parts)) >= 3, "three parts", driver)
        driver.send_signal(signal.SIGINT)
        out, said = driver.communicate(timeout=TIMEOUT_SECONDS)
    assert driver.returncode == 130 and out == b"", said.decode()
    n_left = len(parts_in(parts))
    assert 3 <= n_left < 24
    # Its tasks have ended, too.
    wait_for(lambda: not workers(cluster), "the end of all tasks")
    assert len(parts_in(parts)) <= n_left + N_NODES
    done = package.run("compare", *large, *on, "--parts", parts)
    assert done.code == 1
    assert done.out == tool.run("compare", *large).out
    assert not [path for path in parts.iterdir() if path.name.startswith(".")]


def test_parts_come_back_where_no_directory_is_shared(
    cluster: Cluster, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opscope.cluster import _driver

    # Nodes that do not see the marker do not share the directory.
    monkeypatch.setattr(_driver.Driver, "_marker_of", lambda self, path: "/nowhere/marker")
    parts = tmp_path / "parts"
    found = opscope.cluster.compare(golden, golden, cluster.address, parts=parts)
    assert found.level == "pass"
    own = tmp_path / "own"
    opscope.cluster.compare(golden, golden, parts=own, address=cluster.address)
    assert {path.name: path.read_bytes() for path in parts_in(parts)} == {path.name: path.read_bytes() for path in parts_in(own)}
    with pytest.raises(opscope.cluster.ClusterError, match="shared"):
        opscope.cluster.index(golden, cluster.address, out=tmp_path / "tables")


def test_a_task_that_fits_no_node_is_an_error(cluster: Cluster, golden: Path, tmp_path: Path) -> None:
    with pytest.raises(opscope.cluster.ClusterError, match="no node of the cluster has one CPU"):
        opscope.cluster.compare(golden, golden, cluster.address, parts=tmp_path / "parts", memory_bytes=1 << 50)


def test_mistakes_are_told(package: Tool, on: tuple[str, str], golden: Path, tmp_path: Path) -> None:
    for options in (("--on", "slurm"), (*on, "--shard", "0/2"), (*on, "--read-limit", "fast")):
        assert package.run("compare", golden, golden, *options, "--parts", tmp_path).code == 2, options
    done = package.run("compare", golden, tmp_path / "nowhere", *on, "--parts", tmp_path)
    assert done.code == 3 and "nowhere" in done.said


def test_an_address_that_does_not_answer(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.cluster._driver._CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(opscope.cluster.ClusterError, match="does not answer"):
            opscope.cluster.compare(golden, golden, address, parts=tmp_path / "parts")


def started(tool: Tool, *arguments: object, said: int | IO[bytes] = subprocess.PIPE) -> subprocess.Popen[bytes]:
    words = [*tool.words, *map(str, arguments)]
    # Tests that a shell runs in the background ignore Ctrl-C, and so would the child.
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said, **heard)


def parts_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.part"))


def workers(cluster: Cluster) -> list[int]:
    """The processes of all nodes that do a unit."""
    return [worker for node in cluster.list_all_nodes() for worker in workers_of(node)]


def workers_of(node: object) -> list[int]:
    (raylet,) = node.all_processes["raylet"]  # type: ignore[attr-defined]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            title = (folder / "cmdline").read_bytes()
        except OSError:
            # It has ended meanwhile.
            continue
        if parent == raylet.process.pid and title.startswith(b"ray::run_unit"):
            found.append(int(folder.name))
    return found
