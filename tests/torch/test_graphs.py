"""Which graphs and operators a dump has."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import dumps
import models
import opscope.torch
import pytest
import torch
from torch import Tensor


def test_a_graph_break_gives_two_graphs(tmp_path) -> None:
    def function(x: Tensor) -> Tensor:
        x = x.sin()
        torch._dynamo.graph_break()
        return x.cos()

    backend = opscope.torch.backend(tmp_path, form="acl")
    torch.compile(function, backend=backend)(torch.ones(3))
    first, second = dumps.graphs(backend.finish()["root"])
    assert (set(first[0]), set(second[0])) == ({"sin"}, {"cos"})


def names(tmp_path: Path, layers: object, model: torch.nn.Module, *inputs: Tensor) -> set[str]:
    backend = opscope.torch.backend(tmp_path, layers=layers, form="acl")
    torch.compile(model, backend=backend)(*inputs)
    (graph,) = dumps.graphs(backend.finish()["root"])
    return set(graph.get(0, {}))


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ("up", {"addmm", "t"}),
        ("addmm_1", {"addmm_1"}),
        ("Addmm_1 Gelu", {"addmm_1", "gelu"}),
        (["aten.addmm.default"], {"addmm", "addmm_1"}),
        ("addmm", {"addmm", "addmm_1"}),
    ],
)
def test_layers(tmp_path, layers: object, expected: set[str]) -> None:
    with torch.no_grad():
        found = names(tmp_path, layers, models.Mlp().eval(), torch.randn(2, 10))
    # The graph's arguments that an operator reads are dumped next to it.
    operators = {name for name in found if not name.startswith("arg")}
    assert operators == expected


def test_layers_of_modules_below(tmp_path) -> None:
    with torch.no_grad():
        found = names(tmp_path, "feeds.1.", models.Transformer().eval(), torch.randint(0, 11, (1, 3)))
    assert {"silu_1"} < found and "silu" not in found


def test_a_layer_that_is_not_there(tmp_path, caplog) -> None:
    backend = opscope.torch.backend(tmp_path, layers=["sigh", "cos"], form="acl")
    compiled = torch.compile(lambda x: x.sin().cos(), backend=backend)
    with caplog.at_level(logging.WARNING, "opscope.torch"):
        compiled(torch.ones(2))
    assert "has no operator or module `sigh`; similar names: sin" in caplog.text
    assert "`cos`" not in caplog.text


@pytest.mark.skipif(not hasattr(torch.fx.traceback, "annotate"), reason="this torch has no annotations")
def test_what_is_traced_in_a_scope(tmp_path) -> None:
    from opscope.torch._names import SCOPE_KEY

    def function(x: Tensor) -> Tensor:
        x = x.sin()
        with torch.fx.traceback.annotate({SCOPE_KEY: True}):
            x = x.cos()
        return x.tan()

    backend = opscope.torch.backend(tmp_path, form="acl")
    x = torch.ones(2, requires_grad=True)
    torch.compile(function, backend=backend)(x).sum().backward()
    forward, backward = dumps.graphs(backend.finish()["root"])
    assert set(forward[0]) == {"cos"}
    assert {record.op_type for record in backward[0].values()} >= {"aten_sin_default", "aten_neg_default"}
    assert len(backward[0]) < 5


def test_only_the_branch_that_is_taken(tmp_path) -> None:
    def function(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos(), (x,)) + 1

    backend = opscope.torch.backend(tmp_path, form="acl")
    compiled = torch.compile(function, backend=backend)
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(compiled(x), function(x))
    report = backend.finish()
    (graph,) = dumps.graphs(report["root"])
    around = {"sum_1", "gt", "cond", "add"}
    assert report["unseen"] == {} and set(graph[0]) == {*around, "cond_sin", "cond_mul"}
    assert set(graph[1]) == {*around, "cond_cos"}
    for step, branch in enumerate((torch.ones(3).sin() * 2, (-torch.ones(3)).cos())):
        (output,) = graph[step]["cond"].data().outputs
        assert output.payload == models.bits(branch)


def test_threads_that_run_one_graph(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, form="acl")
    compiled = torch.compile(lambda x: x.sin().cos().tan(), backend=backend)
    with torch.no_grad():
        compiled(torch.zeros(50_000))
    results: dict[int, bool] = {}

    def work(number: int) -> None:
        with torch.no_grad():
            for i in range(20):
                x = torch.full((50_000,), number + i / 20)
                is_same = torch.equal(compiled(x), x.sin().cos().tan())
                results[number] = results.get(number, True) and is_same

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = backend.finish()
    assert results == {0: True, 1: True, 2: True}
    assert report["n_steps_active"] == 61
    for graph in dumps.graphs(report["root"]):
        for records in graph.values():
            read = torch.frombuffer(bytearray(records["sin"].data().inputs[0].payload), dtype=torch.float32)
            given = torch.frombuffer(bytearray(records["tan"].data().outputs[0].payload), dtype=torch.float32)
            assert torch.equal(given, read.sin().cos().tan())


def test_an_operator_that_fails(tmp_path) -> None:
    @torch.library.custom_op("opscope_tests::refuse", mutates_args=())
    def refuse(x: Tensor) -> Tensor:
        raise ArithmeticError("no")

    refuse.register_fake(torch.empty_like)
    backend = opscope.torch.backend(tmp_path, form="acl")
    compiled = torch.compile(lambda x: refuse(x.sin()).cos(), backend=backend)
    for _ in range(2):
        with pytest.raises(ArithmeticError, match="no"):
            compiled(torch.ones(2))
    report = backend.finish()
    (graph,) = dumps.graphs(report["root"])
    assert [set(graph[step]) for step in (0, 1)] == [{"sin"}, {"sin"}]
    assert report["n_runs_failed"] == 2


def test_a_full_place(tmp_path) -> None:
    """The model runs on when the dump cannot be written."""
    backend = opscope.torch.backend(tmp_path, form="acl")
    compiled = torch.compile(torch.sin, backend=backend)
    compiled(torch.ones(2))
    root = Path(backend.dump._session.root)
    while backend.counters()["n_written"] < 2:
        pass
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    root.rmdir()
    root.write_text("in the way")
    assert torch.equal(compiled(torch.zeros(2)), torch.zeros(2))
    with pytest.warns(RuntimeWarning, match="the dump is not complete"):
        report = backend.finish()
    assert report["n_failed"] + report["n_dropped"] > 0


def program(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("backend", ["opscope.torch.backend('/nonexistent/never', form='acl')", "'opscope'"])
def test_a_process_without_a_graph_is_told(backend: str) -> None:
    done = program(
        f"""
        import torch, opscope.torch
        compiled = torch.compile(torch.sin, backend={backend})
        with torch.compiler.set_stance("force_eager"):
            compiled(torch.ones(2))
        """
    )
    assert done.returncode == 0, done.stderr
    assert "no graph was captured, so nothing was dumped" in done.stderr


def test_what_was_not_finished_is_finished_at_exit(tmp_path) -> None:
    done = program(
        f"""
        import torch, opscope.torch
        compiled = torch.compile(torch.sin, backend="opscope", options={{"path": {str(tmp_path)!r}, "form": "acl"}})
        for i in range(20):
            compiled(torch.full((100_000,), float(i)))
        """
    )
    assert done.returncode == 0, done.stderr
    (root,) = Path(tmp_path).glob("*/*")
    (graph,) = dumps.graphs(str(root))
    assert len(graph) == 20
    assert graph[19]["sin"].data().outputs[0].payload == models.bits(torch.full((100_000,), 19.0).sin())


def test_a_forked_process_writes_nothing_and_ends(tmp_path) -> None:
    done = program(
        f"""
        import os, torch, opscope.torch
        backend = opscope.torch.backend({str(tmp_path)!r}, form="acl")
        compiled = torch.compile(torch.sin, backend=backend)
        compiled(torch.ones(2))
        child = os.fork()
        compiled(torch.ones(2))
        if child == 0:
            raise SystemExit(0)
        assert os.waitpid(child, 0)[1] == 0
        report = backend.finish()
        assert report["n_operators_written"] == 2, report
        """
    )
    assert done.returncode == 0, done.stderr


def test_processes_that_run_together(tmp_path) -> None:
    """Each has a directory, and a collective is recorded when it is done."""
    code = f"""
        import sys, torch, opscope.torch
        import torch.distributed as dist
        from torch.distributed import _functional_collectives as collectives
        rank = int(sys.argv[1])
        dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
        backend = opscope.torch.backend({str(tmp_path)!r} + "/dump", form="acl")
        function = lambda x: collectives.all_reduce(x * 2, "sum", dist.group.WORLD) + 1
        result = torch.compile(function, backend=backend)(torch.full((1 << 18,), float(rank + 1)))
        assert torch.equal(result, torch.full((1 << 18,), 7.0)), result
        report = backend.finish()
        assert report["unseen"] == {{}}, report
        dist.destroy_process_group()
    """
    start = [sys.executable, "-c", textwrap.dedent(code)]
    ranks = [subprocess.Popen([*start, str(rank)], stderr=subprocess.PIPE, text=True) for rank in (0, 1)]
    errors = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors
    for rank in (0, 1):
        (root,) = (tmp_path / "dump" / f"worldsize2_global_rank{rank}").iterdir()
        (graph,) = dumps.graphs(str(root))
        (output,) = graph[0]["wait_tensor"].data().outputs
        assert output.payload == models.bits(torch.full((1 << 18,), 6.0))


def test_the_package_alone_does_not_load_torch() -> None:
    done = program(
        "import sys, opscope; assert 'torch' not in sys.modules; opscope.torch; assert 'torch' in sys.modules"
    )
    assert done.returncode == 0, done.stderr
