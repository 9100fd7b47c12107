"""The dump of the modes with captured graphs: a file for each tensor."""

from __future__ import annotations

import itertools
import re
import stat
import warnings
from pathlib import Path
from typing import Any

import opscope.torch
import opscope.torchair as torchair
import pytest
import torch
from models import CASES, Case, run, same
from opscope.torchair import get_npu_backend
from torchair_runs import Classifier, compiled, configured

NAME = re.compile(r"([A-Za-z_]\w*)_device_(\d+)_(\d+)\.pt")


def dumping(path: Path, **options: Any) -> Any:
    return configured(
        mode="npugraph_ex", dump_config__enable_dump=True, dump_config__dump_path=str(path), **options
    )


def saved(path: Path) -> dict[str, list[torch.Tensor]]:
    """Tensors by node, in the order of their counts."""
    found: dict[str, list[tuple[int, torch.Tensor]]] = {}
    for file in (path / "worldsize1_global_rank0").iterdir():
        name = NAME.fullmatch(file.name)
        assert name is not None and name[2] == "0", file.name
        found.setdefault(name[1], []).append((int(name[3]), torch.load(file, weights_only=True)))
    for counted in found.values():
        counted.sort(key=lambda pair: pair[0])
        assert [count for count, _ in counted] == list(range(len(counted)))
    return {name: [tensor for _, tensor in counted] for name, counted in found.items()}


@pytest.mark.parametrize("stage", ["original", "optimized"])
def test_every_tensor_of_a_graph_has_a_file(stage: str, tmp_path: Path) -> None:
    model = Classifier()
    xs = [torch.randn(2, 4), torch.randn(2, 4)]
    with compiled(model, dumping(tmp_path, dump_config__data_dump_stage=stage)) as call, torch.no_grad():
        results = [call(x) for x in xs]
    found = saved(tmp_path)
    assert {"arg0_1", "arg1_1", "arg2_1", "t", "addmm", "relu", "getitem", "cat", "sum_1", "add"} <= set(found)
    assert not any(name.startswith(("max", "output")) for name in found), "a pair of tensors is no tensor"
    for i, x in enumerate(xs):
        assert torch.equal(found["relu"][i], model.layer(x).relu())
        assert torch.equal(found["add"][i], results[i]) and torch.equal(results[i], model(x))
    assert call.reports[0]["n_files"] == sum(map(len, found.values())) and call.reports[0]["left_out"] == {}


def test_files_are_for_their_owner_only_and_hold_no_more_than_the_tensor(tmp_path: Path) -> None:
    big = torch.randn(1000, 100)
    with compiled(lambda x: x[:2] + 1, dumping(tmp_path)) as call:
        call(big)
    for path in (tmp_path / "worldsize1_global_rank0").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_size < 4000 or path.name.startswith("arg"), path.name
    assert stat.S_IMODE((tmp_path / "worldsize1_global_rank0").stat().st_mode) == 0o700


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_numbers_stay_the_same(name: str, is_training: bool, tmp_path: Path) -> None:
    case: Case = CASES[name]
    backend = get_npu_backend(compiler_config=dumping(tmp_path))
    # Compiled as well: torch's releases before 2.9 do not compute the same as in eager mode.
    expected = run(case, get_npu_backend(), is_training=is_training)
    assert same(expected, run(case, backend, is_training=is_training))
    if is_training:
        assert any(path.name.startswith("tangents_1") for path in tmp_path.rglob("*.pt")), "backward is there"


@pytest.mark.parametrize(("stage", "expected"), [("original", torch.sin), ("optimized", torch.cos)])
def test_the_stage_is_before_or_after_the_passes(stage: str, expected: Any, tmp_path: Path) -> None:
    def change(gm: Any, example_inputs: Any, config: Any) -> None:
        for node in gm.graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default

    x = torch.randn(3)
    config = dumping(tmp_path, dump_config__data_dump_stage=stage, post_grad_custom_post_pass=change)
    with compiled(torch.sin, config) as call:
        assert torch.equal(call(x), expected(x))
    assert torch.equal(saved(tmp_path)["sin"][0], expected(x))


def test_with_eager_execution_the_files_are_those_of_the_fx_dump(tmp_path: Path) -> None:
    with compiled(torch.add, dumping(tmp_path, debug__run_eagerly=True)) as call:
        call(torch.ones(2), torch.ones(2))
    assert len(list(tmp_path.glob("worldsize1_global_rank0/graph_*/0/add-*.npy"))) == 3
    assert list(tmp_path.rglob("*.pt")) == []


@pytest.mark.parametrize("name", ["npugraph_ex", "opscope"])
def test_the_backend_by_its_name(name: str, tmp_path: Path) -> None:
    model, x = Classifier(), torch.randn(2, 4)
    options = {"dump_tensor_data": True, "data_dump_dir": str(tmp_path), "data_dump_stage": "original"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call = torch.compile(model, backend=name, options=options, dynamic=False)
        with torch.no_grad():
            assert torch.equal(call(x), model(x))
    (relu,) = tmp_path.glob("worldsize1_global_rank0/relu_device_0_*.pt")
    assert torch.equal(torch.load(relu, weights_only=True), model.layer(x).relu())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("npugraph_ex", {"dump": True}, "invalid option 'dump'"),
        ("npugraph_ex", {"data_dump_stage": "middle"}, "data_dump_stage"),
        ("npugraph_ex", {"data_dump_dir": "/nowhere/at/all"}, "dump_path"),
        ("opscope", {"dump_tensor_data": True, "path": "x"}, "path and dump_tensor_data"),
        ("opscope", {"dump": True}, "there is no option `dump`"),
    ],
)
def test_wrong_options_of_a_name(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        torch.compile(torch.sin, backend=name, options=options)(torch.ones(2))


def test_graphs_of_the_same_options_share_a_backend(tmp_path: Path) -> None:
    options = {"dump_tensor_data": True, "data_dump_dir": str(tmp_path)}
    first = torchair.npugraph_ex.backend_of(options)
    assert torchair.npugraph_ex.backend_of(dict(options)) is first
    assert torchair.npugraph_ex.backend_of({**options, "data_dump_stage": "original"}) is not first


def test_one_graph_by_hand(tmp_path: Path) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(3)
    graph = make_fx(lambda x: x.sin() + 1)(x)
    options = {"dump_tensor_data": True, "data_dump_dir": str(tmp_path)}
    run_graph = torchair.npugraph_ex.compile_fx(graph, [x], options)
    found = run_graph([x])
    found = found[0] if isinstance(found, (tuple, list)) else found
    assert torch.equal(found, x.sin() + 1)
    assert torch.equal(saved(tmp_path)["sin"][0], x.sin())


def test_a_directory_that_went_away_does_not_stop_the_model(tmp_path: Path) -> None:
    (tmp_path / "worldsize1_global_rank0").write_text("a file where a directory should be")
    with compiled(torch.sin, dumping(tmp_path)) as call:
        assert torch.equal(call(torch.ones(2)), torch.ones(2).sin())
    (report,) = call.reports
    assert report["n_files"] == 0 and report["first_error"]


def test_the_stage_is_an_option_of_the_other_package_too(tmp_path: Path) -> None:
    backend = opscope.torch.backend(tmp_path, stage="original", form="acl")
    torch.compile(torch.sin, backend=backend)(torch.ones(2))
    assert backend.finish()["n_files"] == len(list(itertools.chain(tmp_path.rglob("*.pt")))) == 2
    with pytest.raises(ValueError, match="stage"):
        opscope.torch.backend(tmp_path, stage="middle", form="acl")
