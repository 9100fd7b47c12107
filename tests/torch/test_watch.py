"""Values that operators overwrite: who is named, and who is not."""

from __future__ import annotations

import inspect
import json
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import dumps
import models
import opscope.torch
import overrun
import pytest
import torch
from torch import Tensor


@pytest.fixture(scope="module")
def cpp(tmp_path_factory: pytest.TempPathFactory) -> None:
    overrun.load(tmp_path_factory.mktemp("overrun"))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*watched values were overwritten.*")
        yield


def line_of(function: Callable, text: str) -> str:
    """`file:line function` of the only line of a function that has the text."""
    lines, first = inspect.getsourcelines(function)
    (offset,) = (i for i, line in enumerate(lines) if text in line)
    return f"{inspect.getsourcefile(function)}:{first + offset} {function.__name__}"


def by_alias(saved: Tensor) -> None:
    saved.view(-1)[2] = 7.0


def by_out(saved: Tensor) -> None:
    torch.add(torch.ones(6), 1, out=saved)


def behind_the_version(saved: Tensor) -> None:
    saved.data.mul_(2)


def by_numpy(saved: Tensor) -> None:
    first = torch.ones(1)
    saved.numpy()[3] = 99.0
    first + 1


def by_foreign_storage(saved: Tensor) -> None:
    torch.from_numpy(saved.numpy()).fill_(3)


EAGER = [
    # The function that writes, the operator, the kind of write, the first element, how many, before, after, the line.
    # Older torch fills by a copy.
    (by_alias, ("aten_fill_", "aten_copy_"), "view", 2, 1, "2", "7", "] = 7.0"),
    (by_out, "aten_add_out", "out", 0, 5, "0", "2", "out=saved"),
    (behind_the_version, "aten_mul__Tensor", "unversioned", 1, 5, "1", "2", "mul_"),
    (by_foreign_storage, "aten_fill__Scalar", "unversioned", 0, 5, "0", "3", "fill_"),
]


@pytest.mark.parametrize(("work", "op_type", "kind", "first", "n", "before", "after", "line"), EAGER)
def test_the_operator_and_its_line_are_named(
    tmp_path: Path,
    work: Callable,
    op_type: str | tuple,
    kind: str,
    first: int,
    n: int,
    before: str,
    after: str,
    line: str,
) -> None:
    with opscope.torch.watch(tmp_path) as watched:
        saved = torch.arange(6.0)
        work(saved)
    (found,) = watched.report["overwrites"]
    assert found["seen_after_type"].startswith(op_type), "its overload is torch's choice"
    assert (found["kind"], found["source"]) == (kind, line_of(work, line))
    assert (found["first_element"], found["n_elements"], found["n_bytes"]) == (first, n, 4 * n)
    assert (found["before"], found["after"]) == (before, after)
    assert found["watched_type"] == "aten_arange_default"
    text = (Path(watched.report["root"]) / "overwrites.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"n_overwrites": 1, "overwrites": [found]}


def test_a_change_between_operators_is_told_with_both(tmp_path: Path) -> None:
    with opscope.torch.watch(tmp_path) as watched:
        saved = torch.arange(6.0)
        by_numpy(saved)
    (found,) = watched.report["overwrites"]
    assert (found["kind"], found["first_element"], found["before"], found["after"]) == ("between", 3, "3", "99")
    # Asking for the array is an operator to torch.
    assert found["source"] == line_of(by_numpy, ".numpy()")
    assert (found["seen_before_type"], found["source_before"]) == ("aten_add_Tensor", line_of(by_numpy, "first + 1"))


def test_the_value_is_written_before_and_after(tmp_path: Path) -> None:
    with opscope.torch.watch(tmp_path, names=["aten.arange.default"]) as watched:
        saved = torch.arange(6.0)
        by_alias(saved)
        by_out(saved)
    ((step,),) = [list(graph.values()) for graph in _eager(watched.report["root"])]
    held = {name: one.data().outputs[0].array().tolist() for name, one in step.items()}
    held = {name.replace("copy__To", "fill__To"): values for name, values in held.items()}
    assert held == {
        "arange": [0, 1, 2, 3, 4, 5],
        "fill__To_arange": [0, 1, 7, 3, 4, 5],
        "add_To_arange": [2, 2, 2, 2, 2, 2],
    }


def _eager(root: str) -> list[dict[int, dict[str, dumps.Record]]]:
    (load,) = (Path(root) / "0" / "eager").iterdir()
    return [{int(step.name): dumps.step(step) for step in load.iterdir()}]


@pytest.mark.parametrize("name", models.CASES)
def test_training_is_not_accused(tmp_path: Path, name: str) -> None:
    case = models.CASES[name]
    torch.manual_seed(1)
    model = case.make().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with opscope.torch.watch(tmp_path, model=model) as watched:
        for _ in range(2):
            optimizer.zero_grad()
            case.loss(model(*case.inputs())).backward()
            optimizer.step()
    report = watched.report
    assert (report["overwrites"], report["first_fault"]) == ([], None)
    # At least every parameter was updated, and that was seen.
    assert report["n_updates"] >= 2 * len(list(model.parameters()))
    assert not (Path(report["root"]) / "overwrites.json").exists()


def test_clipped_gradients_and_recurrent_layers_are_not_accused(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    recurrent = torch.nn.LSTM(4, 4, batch_first=True)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    limited = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 3))
    with opscope.torch.watch(tmp_path, model=model) as watched:
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(3, 4)).square().sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            optimizer.step()
        recurrent(torch.randn(2, 3, 4))[0].sum().backward()
        limited(torch.randn(2, 3)).sum().backward()
    assert (watched.report["overwrites"], watched.report["first_fault"]) == ([], None)


def test_memory_that_is_used_again_is_not_accused(tmp_path: Path) -> None:
    with opscope.torch.watch(tmp_path) as watched:
        for i in range(200):
            torch.full((1000,), float(i)).sum()
    assert (watched.report["overwrites"], watched.report["first_fault"]) == ([], None)


def test_what_lies_between_the_elements_of_a_view_is_not_its_own(tmp_path: Path) -> None:
    buffer = torch.arange(10.0)
    with opscope.torch.watch(tmp_path, names=()) as watched:
        watched.note("even", buffer[::2])
        buffer[1::2].zero_()
        buffer[4] = -1.0
    (found,) = watched.report["overwrites"]
    assert (found["watched"], found["first_element"], found["before"], found["after"]) == ("even", 2, "4", "-1")


def test_the_limit_gives_up_the_oldest(tmp_path: Path) -> None:
    with opscope.torch.watch(tmp_path, watch_bytes_max=8192) as watched:
        kept = [torch.full((1000,), float(i)) for i in range(3)]
        kept[2].data.zero_()
        torch.zeros(3000)
    report = watched.report
    assert report["watch_gone"] == {"limit": 1}
    assert [found["watched"] for found in report["overwrites"]] == ["full_2"]
    assert report["unseen"] == {"larger than watch_bytes_max": 1}


def test_storages_that_are_resized_are_let_go_of(tmp_path: Path) -> None:
    with opscope.torch.watch(tmp_path) as watched:
        value = torch.ones(100_000)
        value.untyped_storage().resize_(0)
        torch.ones(3)
    report = watched.report
    assert (report["overwrites"], report["watch_gone"], report["first_fault"]) == ([], {"resized": 1}, None)


def test_an_operator_in_cpp_that_overruns_its_output_is_named(tmp_path: Path, cpp: None) -> None:
    with opscope.torch.watch(tmp_path, names=()) as watched:
        buffer = torch.zeros(8)
        mine, neighbour = buffer[:5], buffer[5:]
        watched.note("neighbour", neighbour)
        watched.note("mine", mine)
        torch.ops.opscope_overrun.overrun(mine, 2)
    (found,) = watched.report["overwrites"]
    assert (found["watched"], found["kind"]) == ("neighbour", "undeclared")
    assert found["seen_after_type"] == "opscope_overrun_overrun_default"
    assert found["byte_ranges"] == [[0, 8]]
    assert (found["n_elements"], found["before"], found["after"]) == (2, "0", "10")
    assert watched.report["n_updates"] == 1


def test_modules_parameters_and_kinds_can_be_named(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sigmoid(), torch.nn.Linear(3, 3))
    with opscope.torch.watch(tmp_path, names="0 2.bias sigmoid", model=model) as watched, torch.no_grad():
        hidden = model[0](torch.ones(1, 3))
        hidden.data.zero_()
        last = model(torch.ones(1, 3))
        last.data.zero_()
        model[2].bias.data.fill_(4)
        model[2].weight.data.fill_(4)
    found = [one["watched"] for one in watched.report["overwrites"]]
    assert found[-1] == "2.bias" and all(name.startswith(("addmm", "t", "linear")) for name in found[:-1])
    assert len(found) >= 2


def test_names_that_nothing_has_are_told(tmp_path: Path) -> None:
    with (
        pytest.warns(RuntimeWarning, match="nothing that ran is called nonsense"),
        opscope.torch.watch(tmp_path, names=["nonsense", "add"]),
    ):
        torch.ones(1) + 1


class Sneaky(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x).relu()
        shifted = torch.ops.opscope_overrun.sneaky(hidden)
        return self.last(shifted + hidden)


@pytest.mark.parametrize("watch", ["all", ["first", "relu"], "aten.relu.default"])
def test_an_operator_of_a_compiled_graph_is_named(tmp_path: Path, cpp: None, watch: str | list[str]) -> None:
    backend = opscope.torch.backend(tmp_path, watch=watch, form="acl")
    model = Sneaky()
    with torch.no_grad():
        torch.compile(model, backend=backend)(torch.randn(3, 4))
    report = backend.finish()
    (found,) = report["overwrites"]
    assert (found["watched_type"], found["kind"]) == ("aten_relu_default", "undeclared")
    assert (found["seen_after_type"], found["first_element"], found["after"]) == (
        "opscope_overrun_sneaky_default", 1, "-8",
    )  # fmt: skip
    assert found["source"] == line_of(Sneaky.forward, "sneaky")
    (graph,) = dumps.graphs(report["root"])
    before, after = (graph[0][name].data().outputs[0].array() for name in ("relu", "sneaky_To_relu"))
    assert before.flatten()[1] >= 0 and after.flatten()[1] == -8
    assert report["n_operators_seen"] > 5


def test_parameters_of_a_compiled_graph_are_watched_by_name(tmp_path: Path, cpp: None) -> None:
    class OnWeight(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return torch.ops.opscope_overrun.sneaky(self.inner.weight) + self.inner(x)

    model = OnWeight()
    backend = opscope.torch.backend(tmp_path, watch=["inner.weight", "x"], form="acl")
    with torch.no_grad():
        torch.compile(model, backend=backend)(torch.randn(3, 3))
    (found,) = backend.finish()["overwrites"]
    assert (found["watched"], found["watched_type"], found["first_element"]) == ("inner.weight", "Data", 1)


@pytest.mark.parametrize("name", models.CASES)
@pytest.mark.parametrize("is_training", [True, False])
def test_watching_changes_no_bit_and_accuses_nobody(tmp_path: Path, name: str, is_training: bool) -> None:
    case = models.CASES[name]
    backend = opscope.torch.backend(tmp_path, watch="all", form="acl")
    watched = models.run(case, backend, is_training=is_training)
    report = backend.finish()
    torch._dynamo.reset()
    plain = models.run(case, opscope.torch.backend(tmp_path, enabled=False, form="acl"), is_training=is_training)
    assert models.same(watched, plain)
    assert (report["overwrites"], report["first_fault"]) == ([], None)
    assert report["n_operators_seen"] > 0 and report["n_steps_active"] > 0


def test_the_watcher_scene_of_an_acl_json(tmp_path: Path, cpp: None) -> None:
    text = json.dumps({
        "dump": {
            "dump_path": str(tmp_path),
            "dump_scene": "watcher",
            "dump_mode": "output",
            "dump_list": [{"layer": ["sneaky", "add", "relu"], "watcher_nodes": ["relu"]}],
        }
    })  # fmt: skip
    backend = opscope.torch.backend(acl_json=text)
    with torch.no_grad():
        torch.compile(Sneaky(), backend=backend)(torch.randn(3, 4))
    report = backend.finish()
    (graph,) = dumps.graphs(report["root"])
    held = {name: one.data().outputs[0].array().flatten()[1] for name, one in graph[0].items()}
    assert set(held) == {"relu", "sneaky_To_relu", "add_To_relu"}
    assert held["relu"] >= 0 and held["sneaky_To_relu"] == held["add_To_relu"] == -8
    assert graph[0]["add_To_relu"].op_type == "aten_relu_default"
    (found,) = report["overwrites"]
    assert found["seen_after"] == "sneaky" and not math.isnan(found["step"])


def test_a_watch_that_breaks_does_not_break_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(opscope.torch._watch.Watcher, "check", broken)
    backend = opscope.torch.backend(tmp_path, watch="all", form="acl")
    result = torch.compile(torch.nn.Sigmoid(), backend=backend)(torch.zeros(2))
    assert result.tolist() == [0.5, 0.5]
    with pytest.warns(RuntimeWarning, match="planted"):
        assert "planted" in backend.finish()["first_fault"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"watch": "all", "exception": True}, "one of them"),
        ({"watch": "all", "acl_json": "{}"}, "watch cannot be combined with acl_json"),
        ({"exception": "loud"}, "`loud` is none of"),
    ],
)
def test_options_that_exclude_each_other(tmp_path: Path, options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        opscope.torch.backend(tmp_path, **options, form="acl")
