"""The dump of the FX graph that `debug.data_dump` makes."""

from __future__ import annotations

import logging
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import CASES, Case, bits, run, same
from opscope.torchair import get_npu_backend
from torchair_runs import Classifier, compiled, configured

STAMP = re.compile(r"\.(\d{20})\.npy$")


def dumping(path: Path, **options: Any) -> Any:
    return configured(debug__data_dump__type="npy", debug__data_dump__path=str(path), **options)


def arrays(folder: Path) -> dict[str, np.ndarray]:
    """Files of a step by their names without the timestamps. Nothing in them is pickled."""
    return {STAMP.sub("", path.name): np.load(path, allow_pickle=False) for path in folder.iterdir()}


def test_one_operator_gives_three_files(tmp_path: Path) -> None:
    x, y = torch.randn(2, 3), torch.randn(3)
    with compiled(torch.add, dumping(tmp_path / "new")) as add:
        result = add(x, y)
        add(x, y)
    (graph,) = (tmp_path / "new").glob("worldsize1_global_rank0/graph_*")
    assert sorted(step.name for step in graph.iterdir()) == ["0", "1"]
    found = arrays(graph / "0")
    assert sorted(found) == [f"add-aten.add.Tensor.{side}" for side in ("INPUT.0", "INPUT.1", "OUTPUT.0")]
    assert np.array_equal(found["add-aten.add.Tensor.INPUT.1"], y.numpy())
    assert np.array_equal(found["add-aten.add.Tensor.OUTPUT.0"], result.numpy())
    assert len({STAMP.search(path.name)[1] for path in (graph / "0").iterdir()}) == 1  # type: ignore[index]
    assert add.reports[0]["n_files"] == 6 and add.reports[0]["left_out"] == {}


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    with compiled(torch.add, dumping(tmp_path / "new")) as add:
        add(torch.ones(2), torch.ones(2))
    for path in (tmp_path / "new").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_numbers_stay_the_same(name: str, is_training: bool, tmp_path: Path) -> None:
    case: Case = CASES[name]
    backend = get_npu_backend(compiler_config=dumping(tmp_path))
    # Compiled as well: torch's releases before 2.9 do not compute the same as in eager mode.
    expected = run(case, get_npu_backend(), is_training=is_training)
    assert same(expected, run(case, backend, is_training=is_training))
    assert len(list(tmp_path.glob("worldsize1_global_rank0/graph_*"))) == (2 if is_training else 1)


def test_every_kind_of_argument_has_a_file(tmp_path: Path) -> None:
    def model(x: torch.Tensor, i: torch.Tensor) -> Any:
        y = torch.cat([x, x * 2], 1).view(4, -1)
        z = y[:, None, i].clamp(min=0.5).sum([0, 1], dtype=torch.float64)
        return z, y.to(torch.bfloat16), torch.var_mean(y, 1, correction=0)

    x, i = torch.randn(2, 4), torch.tensor([1, 2])
    with compiled(model, dumping(tmp_path)) as call, torch.no_grad():
        call(x, i)
    (step,) = tmp_path.glob("worldsize1_global_rank0/graph_*/0")
    found = arrays(step)
    assert np.array_equal(found["cat-aten.cat.default.INPUT.0.1"], (x * 2).numpy())
    assert found["cat-aten.cat.default.INPUT.1"] == 1
    assert found["mul-aten.mul.Tensor.INPUT.1"] == 2
    assert found["view-aten.view.default.INPUT.1"].tolist() == [4, -1]
    assert str(found["sum_1-aten.sum.dim_IntList.INPUT.dtype"]) == "torch.float64"
    assert found["sum_1-aten.sum.dim_IntList.OUTPUT.0"].dtype == np.float64
    assert found["var_mean-aten.var_mean.correction.INPUT.correction"] == 0
    assert {"var_mean-aten.var_mean.correction.OUTPUT.0", "var_mean-aten.var_mean.correction.OUTPUT.1"} <= set(found)
    narrow = next(value for name, value in found.items() if name.startswith("_to_copy") and ".OUTPUT.0" in name)
    assert narrow.dtype == np.float32
    indices = [name for name in found if ".INPUT.1" in name and name.startswith("index-")]
    assert [str(found[name]) for name in sorted(indices)][:1] == ["None"]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(torch.bfloat16, np.float32), (torch.float8_e4m3fn, np.float32), (torch.float8_e5m2, np.float32),
     (torch.float16, np.float16), (torch.complex64, np.complex64), (torch.bool, np.bool_), (torch.uint8, np.uint8)],
)  # fmt: skip
def test_dtypes_that_numpy_lacks_become_wider(dtype: torch.dtype, expected: Any, tmp_path: Path) -> None:
    values = torch.tensor([0.0, 1.0, 2.0, 0.5]).to(dtype)
    with compiled(lambda x: x.clone().view(2, 2).t(), dumping(tmp_path)) as call:
        call(values)
    (step,) = tmp_path.glob("worldsize1_global_rank0/graph_*/0")
    found = arrays(step)
    given = found["clone-aten.clone.default.INPUT.0"]
    wide = values.to(torch.complex64 if dtype.is_complex else torch.float32)
    assert given.dtype == expected and given.tolist() == wide.tolist()
    transposed = found["t-aten.t.default.OUTPUT.0"]
    assert transposed.shape == (2, 2) and transposed.flags.c_contiguous
    assert transposed.tolist() == given.reshape(2, 2).T.tolist()


def test_conjugated_views_are_what_they_stand_for(tmp_path: Path) -> None:
    x = torch.tensor([1 + 2j, 3 - 4j])
    with compiled(lambda x: x.conj() * 2, dumping(tmp_path)) as call:
        assert torch.equal(call(x), x.conj() * 2)
    (step,) = tmp_path.glob("worldsize1_global_rank0/graph_*/0")
    (found,) = [value for name, value in arrays(step).items() if "conj" in name and ".OUTPUT." in name]
    assert found.tolist() == [1 - 2j, 3 + 4j]


def test_what_cannot_be_a_file_is_counted(tmp_path: Path) -> None:
    """Torch compiles no graph with sparse arguments, so the graph is made by hand."""
    from opscope.torchair._fx_dump import FxDump
    from torch.fx.experimental.proxy_tensor import make_fx

    sparse, dense = torch.eye(3).to_sparse(), torch.ones(3, 2)
    graph = make_fx(lambda a, b: torch.sparse.mm(a, b) + 1)(sparse, dense)
    dump = FxDump(str(tmp_path), None)
    assert torch.equal(torch.as_tensor(dump.compiled(graph, "graph_1")([sparse, dense])), torch.full((3, 2), 2.0))
    report = dump.report()
    assert report["left_out"] == {"form sparse_coo": 1} and report["n_files"] > 3 and report["first_error"] is None


def test_quantised_tensors_are_their_integers(tmp_path: Path) -> None:
    from opscope.torch._files import Files

    quantised = torch.quantize_per_tensor(torch.tensor([0.5, 1.0, -2.0]), 0.5, 3, torch.quint8)
    files = Files(str(tmp_path))
    files.save_npy(str(tmp_path / "q.npy"), quantised)
    files.save_npy(str(tmp_path / "meta.npy"), torch.ones(2, device="meta"))
    assert np.load(tmp_path / "q.npy").tolist() == [4, 5, 0]
    assert files.report() == {"n_files": 1, "left_out": {"no memory": 1}, "first_error": None}


def test_an_operator_that_writes_is_shown_before_and_after(tmp_path: Path) -> None:
    model = torch.nn.BatchNorm1d(2)
    before = model.running_mean.clone()
    with compiled(model, dumping(tmp_path)) as call, torch.no_grad():
        call(torch.randn(5, 2))
    found = [arrays(step) for step in tmp_path.glob("worldsize1_global_rank0/graph_*/0")][0]
    pairs = [name for name in found if name.startswith("copy_") and name.endswith("INPUT.0")]
    assert pairs
    held = [found[name] for name in pairs]
    assert any(bits(torch.from_numpy(value)) == bits(before) for value in held if value.shape == (2,))


def test_the_filter_leaves_nodes_out(tmp_path: Path) -> None:
    asked: list[str] = []

    def keeps(node: Any) -> Any:
        asked.append(node.name)
        # Another node is as good as this one: it does not take its place.
        return next(iter(node.graph.nodes)) if "relu" in node.name else None

    model, x = Classifier(), torch.randn(2, 4)
    config = dumping(tmp_path)
    config.debug.data_dump.filter = keeps
    with compiled(model, config) as call, torch.no_grad():
        assert torch.equal(call(x), model(x))
    (step,) = tmp_path.glob("worldsize1_global_rank0/graph_*/0")
    assert {name.split("-")[0] for name in arrays(step)} == {"relu"}
    assert {"addmm", "relu", "cat"} <= set(asked) and not any(name.startswith(("getitem", "arg")) for name in asked)


def test_a_path_that_names_a_file_does_not_stop_the_model(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with compiled(torch.add, dumping(path)) as add:
            assert torch.equal(add(torch.ones(2), torch.ones(2)), torch.full((2,), 2.0))
        (report,) = add.reports
        assert report["n_files"] == 0 and "[Errno " in report["first_error"]


def test_a_directory_that_cannot_be_written_does_not_stop_the_model(tmp_path: Path) -> None:
    (tmp_path / "worldsize1_global_rank0").write_text("a file where a directory should be")
    with compiled(torch.add, dumping(tmp_path)) as add:
        assert torch.equal(add(torch.ones(2), torch.ones(2)), torch.full((2,), 2.0))
    (report,) = add.reports
    assert report["n_files"] == 0 and report["first_error"] and sum(report["left_out"].values()) == 3


def test_the_other_options_are_ignored_with_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = dumping(tmp_path / "fx", dump_config__enable_dump=True, dump_config__dump_path=str(tmp_path))
    with caplog.at_level(logging.WARNING, logger="torchair"), compiled(torch.add, config) as add:
        add(torch.ones(2), torch.ones(2))
    assert any("debug.data_dump is set" in record.getMessage() for record in caplog.records)
    assert [path.name for path in tmp_path.iterdir()] == ["fx"]


def test_without_a_path_files_go_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with compiled(torch.add, configured(debug__data_dump__type="npy")) as add:
        add(torch.ones(2), torch.ones(2))
    assert len(list(tmp_path.glob("worldsize1_global_rank0/graph_*/0/*.npy"))) == 3


def test_extents_that_are_not_known_before(tmp_path: Path) -> None:
    with compiled(lambda x: x.reshape(-1) * x.shape[0], dumping(tmp_path), dynamic=True) as call:
        for n in (3, 5):
            x = torch.randn(n, 2)
            assert torch.equal(call(x), x.reshape(-1) * n)
    (graph,) = tmp_path.glob("worldsize1_global_rank0/graph_*")
    found = [arrays(graph / step) for step in "01"]
    shapes = [next(v.shape for k, v in one.items() if k.endswith("mul.Tensor.OUTPUT.0")) for one in found]
    assert shapes == [(6,), (10,)]
