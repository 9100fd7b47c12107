"""A dump is a guest: it converts no argument, reads no memory that was taken away, and fails no program."""

from __future__ import annotations

import errno
import logging
import math
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import opscope.torch
import opscope.torchair
import pytest
import torch
from opscope import _argument
from opscope.torch import _storage


class Untold:
    """An object whose text must not be requested."""

    def __repr__(self) -> str:
        raise AssertionError("asked for its text")

    __str__ = __repr__
    __format__ = __repr__


def test_texts_of_arguments() -> None:
    for value, expected in [
        (None, "None"), (True, "True"), (-3, "-3"), (1.5, "1.5"), (-math.inf, "-inf"), (2j, "2j"), ("gelu", "gelu"),
        ([1, 2.0, "a"], "[1, 2.0, 'a']"), ((1,), "(1,)"), ([[1], []], "[[1], []]"), (slice(1, None), "slice(1, None, None)"),
        (torch.float32, "torch.float32"), (torch.device("cpu"), "cpu"), (torch.strided, "torch.strided"),
        (torch.fx.immutable_collections.immutable_list([4, -1]), "[4, -1]"), (torch.Size([2, 3]), "[2, 3]"),
        (Untold(), "Untold"), ([Untold()], "[Untold]"), ({"a": Untold()}, "dict"),
        (torch.arange(5).untyped_storage(), "UntypedStorage"), (torch.ones(3), "Tensor"), (np.ones(3), "ndarray"),
        (range(10**9), "range"), (10**5000, f"int of {(10**5000).bit_length()} bits"),
    ]:
        assert _argument.text(value) == expected
    assert _argument.text("x" * 10**6) == "x" * 2000 + " ..."
    assert _argument.text([0] * 10**6).endswith(", ... 1000000 in all]")
    # However lists are nested, the text has a bound.
    deep: list = []
    for _ in range(50):
        deep = [deep] * 64
    assert len(_argument.text(deep)) < 2100


def test_a_storage_is_not_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> str:
        raise AssertionError("asked for its text")

    for name in ("__str__", "__repr__"):
        monkeypatch.setattr(torch.UntypedStorage, name, refuse)
    torch.save(torch.arange(200_000.0), tmp_path / "file.pt")
    with opscope.torch.eager(tmp_path / "dump", form="acl") as dump:
        loaded = torch.load(tmp_path / "file.pt")
        torch.empty(0).set_(torch.ones(4).untyped_storage())
    report = dump.finish()
    assert loaded.sum() == torch.arange(200_000.0).sum()
    assert report["first_fault"] is None and report["n_operators_written"] > 0


class _Raised(Exception):
    def __str__(self) -> str:
        raise AssertionError("asked for its text")


def test_an_error_without_a_text_stays_the_programs(tmp_path: Path) -> None:
    @torch.library.custom_op("opscope_tests::raise_untold", mutates_args=())
    def raise_untold(x: torch.Tensor) -> torch.Tensor:
        raise _Raised

    for context in (opscope.torch.eager(tmp_path / "eager", form="acl"), opscope.torch.catch(tmp_path / "catch")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(_Raised), context:
                torch.ops.opscope_tests.raise_untold(torch.ones(2))


def test_only_what_nobody_can_reach_is_left_where_it_lies() -> None:
    """The program, hooks of autograd and operators of others may take a tensor's memory away."""
    library = torch.library.Library("opscope_tests_keep", "FRAGMENT")
    library.define("keep(Tensor x) -> Tensor")
    library.impl("keep", lambda x: x * 2, "CompositeExplicitAutograd")
    torch.library.register_fake("opscope_tests_keep::keep", lambda x: torch.empty_like(x), lib=library)
    from torch.fx.experimental.proxy_tensor import make_fx

    def function(x: torch.Tensor) -> torch.Tensor:
        inner = x.sin()
        kept = torch.ops.opscope_tests_keep.keep(inner.cos())
        return (kept + 1).tanh()

    gm = make_fx(function, tracing_mode="fake")(torch.ones(3))
    storages = _storage.Storages(gm)
    found = {node.name: storages.stability(node.meta["val"]) for node in gm.graph.nodes if node.op != "output"}
    held = {name for name, stability in found.items() if stability == _storage.HELD}
    assert held == {"sin", "add"}, found


@pytest.mark.parametrize("make", ["backend", "eager", "catch", "watch"])
def test_a_path_that_cannot_be_written_does_not_stop_the_program(make: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    path = tmp_path / "file" / "below"
    with pytest.warns(RuntimeWarning, match=r"nothing is dumped, .*\[Errno 20\].*Not a directory"):
        if make == "backend":
            dump = opscope.torch.backend(path, form="acl")
            assert torch.compile(lambda x: x + 1, backend=dump)(torch.ones(2)).sum() == 4.0
            report = dump.finish()
        else:
            with getattr(opscope.torch, make)(path) as dump:
                assert (torch.ones(2) + 1).sum() == 4.0
            report = dump.finish() if make == "eager" else dump.report
    assert report["errno"] == errno.ENOTDIR and "Not a directory" in report["first_error"]


def test_refusals_of_the_system_have_their_number(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        opscope.torch.backend(tmp_path, mindspore_json=str(tmp_path / "none.json"))
    assert raised.value.errno == errno.ENOENT and raised.value.filename == str(tmp_path / "none.json")
    assert "No such file" in raised.value.strerror


# Options of the wrong type or range, and how they are refused where they are given.
WRONG: list[tuple[dict, type[Exception], str]] = [
    ({"mode": "both"}, ValueError, "mode `both`"), ({"mode": 1}, TypeError, "mode `1`"),
    ({"data": None}, ValueError, "data `None`"), ({"enabled": "yes"}, TypeError, "enabled: True or False"),
    ({"steps": 1.5}, TypeError, "steps: a number"), ({"steps": "a"}, ValueError, "steps `a`"),
    ({"steps": True}, TypeError, "steps: a number"), ({"steps": [(3, 1)]}, ValueError, "steps 3 to 1"),
    ({"layers": [1]}, TypeError, "layers: a list of names"), ({"layers": 5}, TypeError, "layers: a list of names"),
    ({"path": 5}, TypeError, "path: a path"), ({"path": "a\0b"}, ValueError, "path: a path"),
    ({"queue_bytes_max": 0}, ValueError, "queue_bytes_max: a whole number of 1"),
    ({"queue_bytes_max": "1"}, TypeError, "queue_bytes_max"), ({"n_writers": -1}, ValueError, "n_writers"),
    ({"n_writers": 1.0}, TypeError, "n_writers"), ({"n_writers": True}, TypeError, "n_writers"),
]
OF_BACKEND: list[tuple[dict, type[Exception], str]] = [
    ({"ranks": "x"}, ValueError, "ranks `x`"), ({"device": -1}, ValueError, "device"),
    ({"rank": "0"}, TypeError, "rank"), ({"watch": 5}, TypeError, "watch: a list of names"),
    ({"exception": "all"}, ValueError, "exception `all`"), ({"exception": 3}, TypeError, "exception `3`"),
    ({"watch_bytes_max": 0}, ValueError, "watch_bytes_max"), ({"stage": "last"}, ValueError, "stage `last`"),
]


def test_wrong_options_are_refused_at_once(tmp_path: Path) -> None:
    for make, cases in ((opscope.torch.backend, WRONG + OF_BACKEND), (opscope.torch.eager, WRONG)):
        for options, kind, words in cases:
            with pytest.raises((kind, TypeError, ValueError)) as raised:
                make(**{"path": tmp_path, **options})
            assert words in str(raised.value), (make.__name__, options, str(raised.value))
    with pytest.raises(TypeError, match="hooks"):
        opscope.torch.eager(tmp_path, hooks=[5], form="acl")
    for step in (-1, 1.5, "1"):
        with pytest.raises((TypeError, ValueError), match="step: a whole number of 0"):
            opscope.torch.set_step(step)
    assert not list(tmp_path.iterdir())


def test_names_that_nothing_has_are_told(tmp_path: Path) -> None:
    config = f'{{"dump": {{"dump_path": "{tmp_path}", "dump_list": [{{"model_name": "ResNet-50"}}]}}}}'
    with pytest.warns(RuntimeWarning, match="a model `ResNet-50`, which did not occur; there are eager"):
        with opscope.torch.eager(opscope.torch.DumpPlan(acl_json=config)) as dump:
            torch.ones(2) + 1
        dump.finish()
    backend = opscope.torch.backend(tmp_path / "watch", watch="nothing", form="acl")
    torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(2))
    with pytest.warns(RuntimeWarning, match="nothing that ran is called nothing; "):
        backend.finish()


def test_operators_of_other_threads_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    begun, done = threading.Event(), threading.Event()

    def compute() -> None:
        for _ in range(5):
            torch.ones(2).sin()

    def call_module() -> None:
        begun.wait(600)
        torch.nn.ReLU()(torch.ones(2))
        done.set()

    earlier = threading.Thread(target=call_module)
    earlier.start()
    with caplog.at_level(logging.WARNING, "opscope.torch"), opscope.torch.eager(tmp_path, form="acl") as dump:
        torch.ones(2).cos()
        later = threading.Thread(target=compute)
        later.start()
        later.join()
        begun.set()
        assert done.wait(600)
        earlier.join()
        report = dump.finish()
    # Ten of the thread that began later; of the other one those of its module.
    assert report["n_operators_elsewhere"] == 11
    assert "11 operators ran in other threads" in caplog.text
    assert report["n_operators_seen"] == 2
    threading.Thread(target=compute).start()
    assert dump.finish()["n_operators_elsewhere"] == 11


def test_tensors_of_several_parts_have_them_all(tmp_path: Path) -> None:
    with opscope.torch.eager(tmp_path, form="acl") as dump:
        sparse = torch.eye(3).to_sparse()
        torch.sparse.mm(sparse, torch.ones(3, 2))
        torch.eye(2).to_sparse_csr()
        torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    report = dump.finish()
    assert not report["unseen"] or set(report["unseen"]) <= {"uninitialised", "no memory"}, report["unseen"]
    names = {one.name: [] for one in opscope.open(tmp_path)}
    for one in opscope.open(tmp_path):
        if one.side == "output":
            names[one.name].append(one.numpy())
    indices, values = names["_to_sparse"] if "_to_sparse" in names else names["to_sparse"]
    assert indices.tolist() == [[0, 1, 2], [0, 1, 2]] and values.tolist() == [1.0, 1.0, 1.0]


def test_the_options_of_the_document_win_over_its_file(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text('{"dump": {"dump_path": "/nowhere", "dump_list": [{}]}}')
    config = opscope.torchair.CompilerConfig()
    config.dump_config.enable_dump = True
    config.dump_config.dump_mode = "all"
    config.dump_config.dump_path = str(tmp_path)
    config.dump_config.quant_dumpable = True
    config.dump_config.dump_step = "0|1"
    config.dump_config.dump_layer = "Add_1Mul_1 Add2 Sin"
    config.dump_config.dump_data = "stats"
    config.dump_config.dump_config_path = str(tmp_path / "dump.json")
    with pytest.warns(UserWarning, match="dump_config_path .* without effect: enable_dump is set"):
        backend = opscope.torchair.get_npu_backend(compiler_config=config)
    call = torch.compile(lambda x: x.sin() + 1, backend=backend)
    assert torch.equal(call(torch.zeros(2)), torch.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opscope.torch.finish()
    assert list(tmp_path.glob("worldsize1_global_rank0/*/0/graph_*/*/0/aten_sin_default.*.csv"))
