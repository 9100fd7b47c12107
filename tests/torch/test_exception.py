"""Operators that raise: their inputs, the report about them, and that the error propagates unchanged."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import models
import opscope.torch
import overrun
import pytest
import torch
from dump_data import parse
from opscope.torchair import CompilerConfig, get_npu_backend
from torch import Tensor


@pytest.fixture(scope="module")
def cpp(tmp_path_factory: pytest.TempPathFactory) -> None:
    overrun.load(tmp_path_factory.mktemp("overrun"))


class Lookup(torch.nn.Module):
    """Fails for tokens that are not in its table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(5, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        shifted = tokens + 1
        return self.table(shifted).relu()


def message(path: Path) -> str:
    """The text about the failure, from the header."""
    raw = path.read_bytes()
    parse(raw)
    length = int.from_bytes(raw[:8], "little")
    header = raw[8 : 8 + length]
    start = header.index(b"failed: ")
    return header[max(0, start - 200) :].decode("utf-8", "replace")


def files(root: Path) -> list[Path]:
    folder = root / "extra-info" / "data-dump" / "0"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def raised(compiled: object, *args: Tensor) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        compiled(*args)  # type: ignore[operator]
    return caught.value


def line_of(text: str) -> str:
    """The line of this file that has the text."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = (i for i, line in enumerate(lines, 1) if text in line and "line_of" not in line)
    return f"{Path(__file__)}:{number}"


NAMES = {
    "brief": ["exception_info.0."],
    "norm": ["aten_embedding_default.embedding."],
    "detail": ["aten_embedding_default.embedding."] * 2,
}


@pytest.mark.parametrize("detail", NAMES)
@pytest.mark.parametrize("is_training", [True, False])
def test_the_failing_operator_leaves_its_inputs(tmp_path: Path, detail: str, is_training: bool) -> None:
    model = Lookup()
    backend = opscope.torch.backend(tmp_path, exception=detail, form="acl")
    compiled = torch.compile(model, backend=backend)
    with torch.set_grad_enabled(is_training):
        good = compiled(torch.tensor([0, 3]))
        assert torch.equal(good, model(torch.tensor([0, 3])))
        assert not files(next(tmp_path.iterdir()))
        error = raised(compiled, torch.tensor([1, 9]))
        assert type(error) is type(raised(model, torch.tensor([1, 9])))
        assert str(error) == str(raised(model, torch.tensor([1, 9])))
    root = next(tmp_path.iterdir())
    found = files(root)
    assert [path.name.startswith(start) for path, start in zip(found, NAMES[detail])] == [True] * len(NAMES[detail])
    weight, tokens = parse(found[0].read_bytes()).inputs
    assert weight.payload == models.bits(model.table.weight)
    assert tokens.array().tolist() == [2, 10]
    text = message(found[0])
    assert "aten.embedding.default `embedding` failed: IndexError" in text
    assert f"source: {line_of('self.table(shifted).relu()')} forward" in text
    assert "argument weight: " in text and "argument indices: Tensor int64 [2] cpu" in text
    assert "python stack (most recent call last):" in text and f"{Path(__file__).name}:" in text
    if detail == "detail":
        assert found[1].name == found[0].name + ".txt"
        assert "position in step: 1" in found[1].read_text(encoding="utf-8")
    if sys.version_info >= (3, 11):
        (note,) = error.__notes__
        assert "`embedding` (aten.embedding.default)" in note and str(root / "extra-info") in note
    report = backend.finish()
    assert report["n_runs_failed"] == 1 and report["failure_dir"] == str(root / "extra-info" / "data-dump" / "0")
    assert report["n_written"] == 2 and report["first_fault"] is None


def test_values_of_arguments_that_are_no_tensors(tmp_path: Path, cpp: None) -> None:
    def refused(x: Tensor) -> Tensor:
        return torch.ops.opscope_overrun.refuse(x.sin(), 42).cos()

    backend = opscope.torch.backend(tmp_path, exception=True, form="acl")
    x = torch.randn(3)
    error = raised(torch.compile(refused, backend=backend), x)
    assert isinstance(error, RuntimeError) and "code 42 is refused" in str(error)
    (found,) = files(next(tmp_path.iterdir()))
    (read,) = parse(found.read_bytes()).inputs
    assert read.payload == models.bits(x.sin())
    assert "argument code: 42" in message(found)


def test_a_failure_in_the_backward_graph(tmp_path: Path) -> None:
    class Picks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor, rows: Tensor) -> Tensor:
            ctx.save_for_backward(rows)  # type: ignore[attr-defined]
            return x * 2

        @staticmethod
        def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, None]:
            (rows,) = ctx.saved_tensors  # type: ignore[attr-defined]
            return gradient.cos().index_select(0, rows), None

    backend = opscope.torch.backend(tmp_path, exception="norm", form="acl")
    x, rows = torch.ones(2, requires_grad=True), torch.tensor([0, 7])
    loss = torch.compile(lambda x, rows: Picks.apply(x, rows).sum(), backend=backend)(x, rows)
    error = raised(loss.backward)
    assert isinstance(error, (IndexError, RuntimeError)) and "range" in str(error)
    (found,) = files(next(tmp_path.iterdir()))
    assert found.name.startswith("aten_index_select_default.index_select.")
    gradient, read = parse(found.read_bytes()).inputs
    assert gradient.payload == models.bits(torch.ones(2).cos()) and read.array().tolist() == [0, 7]
    assert "argument dim: 0" in message(found)


@pytest.mark.parametrize(
    ("scene", "start"),
    [
        ("lite_exception", "exception_info."),
        ("aic_err_brief_dump", "exception_info."),
        ("aic_err_norm_dump", "aten_linalg_cholesky_ex_default."),
        ("aic_err_detail_dump", "aten_linalg_cholesky_ex_default."),
    ],
)
def test_the_scenes_of_an_acl_json(
    tmp_path: Path, scene: str, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ASCEND_DUMP_PATH", "ASCEND_WORK_PATH"):
        monkeypatch.delenv(name, raising=False)
    text = json.dumps({"dump": {"dump_path": str(tmp_path), "dump_scene": scene}})
    backend = opscope.torch.backend(acl_json=text)
    compiled = torch.compile(Lookup(), backend=backend)
    with torch.no_grad():
        error = raised(compiled, torch.tensor([77]))
    assert isinstance(error, IndexError)
    found = files(tmp_path)
    assert found[0].name.startswith(start.replace("linalg_cholesky_ex", "embedding"))
    assert len(found) == (2 if "detail" in scene else 1)


def test_a_program_for_torchair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASCEND_DUMP_PATH", "ASCEND_WORK_PATH"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "acl.json"
    path.write_text(json.dumps({"dump": {"dump_path": str(tmp_path), "dump_scene": "aic_err_norm_dump"}}))
    config = CompilerConfig()
    config.dump_config.dump_config_path = str(path)
    compiled = torch.compile(Lookup(), backend=get_npu_backend(compiler_config=config))
    with torch.no_grad():
        raised(compiled, torch.tensor([77]))
    (found,) = files(tmp_path)
    assert found.name.startswith("aten_embedding_default.embedding.1.")


@pytest.mark.parametrize("name", models.CASES)
def test_what_goes_well_leaves_nothing(tmp_path: Path, name: str) -> None:
    case = models.CASES[name]
    backend = opscope.torch.backend(tmp_path, exception=True, form="acl")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        guarded = models.run(case, backend, is_training=True)
        report = backend.finish()
    torch._dynamo.reset()
    assert models.same(guarded, models.run(case, opscope.torch.backend(enabled=False, form="acl"), is_training=True))
    assert (report["n_files"], report["failure_dir"], report["n_runs_failed"]) == (0, None, 0)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_eager_code(tmp_path: Path) -> None:
    model = Lookup()
    with pytest.raises(IndexError) as caught, opscope.torch.catch(tmp_path, "detail") as guard:
        model(torch.tensor([1, 9]))
    assert guard.report["n_written"] == 2 and guard.report["first_fault"] is None
    found = files(next(tmp_path.iterdir()))
    weight, tokens = parse(found[0].read_bytes()).inputs
    assert weight.payload == models.bits(model.table.weight) and tokens.array().tolist() == [2, 10]
    text = message(found[0])
    assert f"source: {line_of('self.table(shifted).relu()')} forward" in text and "operators before: " in text
    if sys.version_info >= (3, 11):
        assert "aten.embedding.default" in caught.value.__notes__[0]


def test_an_operator_in_place_may_have_changed_its_input(tmp_path: Path) -> None:
    value = torch.zeros(3)
    with pytest.raises(IndexError), opscope.torch.catch(tmp_path):
        value.index_put_((torch.tensor([0, 7]),), torch.ones(2))
    (found,) = files(next(tmp_path.iterdir()))
    assert "argument self is written by the operator" in message(found)

