"""Two training runs: `opscope compare` names the step at which they part, and prints the call that dumps more."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import opscope.torch
import pytest
import torch
from binary import TIMEOUT_SECONDS, Binary
from comparing import PASSED, Found, compare
from torch import nn

N_STEPS, PARTED = 12, 7
Fault = Callable[[int, nn.Module, torch.optim.Optimizer, torch.Tensor], None]


@pytest.fixture(scope="module")
def tool() -> Binary:
    return Binary.from_environment()


def train(folder: Path, fault: Fault | None = None, **options: object) -> Path:
    """Trains with an eager dump. From step `PARTED` on a fault may change what it likes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    dump = opscope.torch.eager(folder, **options)
    for step in range(N_STEPS):
        batch = torch.randn(8, 6)
        if fault is not None and step >= PARTED:
            fault(step, model, optimizer, batch)
        # What happens outside is no operator of the step. Entering again begins the next one.
        with dump:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
    return Path(dump.finish()["root"])


def other_rate(step: int, model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> None:
    optimizer.param_groups[0]["lr"] = 0.5


def other_data(step: int, model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> None:
    batch += 0.5


def broken_weight(step: int, model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> None:
    if step == PARTED:
        with torch.no_grad():
            model[2].weight[0, 0] = float("nan")


def first_of(found: Found) -> dict:
    return found.summary["steps"]["first"]


def told(tool: Binary, target: Path, golden: Path) -> str:
    command = list(map(str, (tool.path, "compare", target, golden)))
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("fault", "culprit", "where"),
    [
        (other_rate, r"add__\d+", "inside"),
        (other_data, "addmm", "before"),
        (broken_weight, "t_1", "before"),
    ],
    ids=["rate", "data", "weight"],
)
def test_steps_of_training_are_narrowed_down(
    tool: Binary, tmp_path: Path, fault: Fault, culprit: str, where: str
) -> None:
    """Few steps, then the steps between them, then elements: each dump is made by the call that was printed."""

    def both(name: str, **options: str) -> tuple[Path, Path]:
        options = {"data": "stats", "form": "acl", **options}
        return train(tmp_path / name / "target", fault, **options), train(tmp_path / name / "golden", **options)

    dumps = both("few", steps="0|4|11")
    found = compare(tool, *dumps)
    # A wrong step leaves wrong weights, so that whatever is behind it differs in what comes into it.
    assert (first_of(found)["step"], first_of(found)["before"], first_of(found)["fault"]) == (11, 4, "before")
    calls = []
    while "next" in found.summary.get("steps", {}).get("first", {}):
        (call,) = re.findall(r"`opscope\.torch\.eager\((.*?)\)`", told(tool, *dumps))
        calls.append(call)
        dumps = both(f"round-{len(calls)}", **dict(re.findall(r'(\w+)="(.*?)"', call)))
        found = compare(tool, *dumps)
        if calls[-1] == calls[0]:
            assert first_of(found)["step"] == PARTED
            assert first_of(found)["fault"] == where
    # Then elements: of the step alone where its own operator is at fault, and of the step before it otherwise.
    steps = f"{PARTED}" if where == "inside" else f"{PARTED - 1}-{PARTED}"
    assert calls == ['steps="5-10"', f'steps="{steps}", data="tensor"']
    place = found.operators[found.summary["first_failure"]["operator"]]["target"][0]
    assert place.get("step", PARTED) == PARTED
    assert re.fullmatch(culprit, place["op_name"])
    assert {slot["evidence"] for operator in found.operators for slot in operator["slots"]} == {"tensor"}


def test_runs_that_agree(tool: Binary, tmp_path: Path) -> None:
    dumps = [train(tmp_path / name, data="stats", form="acl") for name in ("target", "golden")]
    assert compare(tool, *dumps).code == PASSED
    assert f"all {N_STEPS} steps agree: 0-{N_STEPS - 1}" in told(tool, *dumps)


class Twins(nn.Module):
    """Two layers of one shape, which a restart may register in another order."""

    def __init__(self, *, is_swapped: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        first, second = nn.Linear(12, 12), nn.Linear(12, 12)
        layers = [("a", first), ("b", second)]
        for name, layer in reversed(layers) if is_swapped else layers:
            setattr(self, name, layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x).relu())


def restart(folder: Path, *, is_swapped: bool) -> Path:
    """Trains with Adam, and goes on from a saved state after two steps."""
    model = Twins()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    dump = opscope.torch.eager(folder)
    for step in range(4):
        if step == 2:
            weights, state = model.state_dict(), optimizer.state_dict()
            model = Twins(is_swapped=is_swapped)
            model.load_state_dict(weights)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
            optimizer.load_state_dict(state)
        batch = torch.randn(8, 12, generator=torch.Generator().manual_seed(step))
        with dump:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
    return Path(dump.finish()["root"])


def test_the_state_of_an_optimizer_is_named_after_its_parameter(tmp_path: Path, tool: Binary) -> None:
    target, golden = (restart(tmp_path / name, is_swapped=name == "target") for name in ("target", "golden"))
    found = compare(tool, target, golden)
    first = found.summary["first_failure"]
    operator = found.operators[first["operator"]]
    # Updates are compared by parameter: the order in which the optimizer takes them is no fault.
    assert operator["target"][-1]["step"] == 2
    assert operator["target"][-1]["op_type"] == "aten_lerp__Scalar"
    (slot,) = [slot for slot in operator["slots"] if slot["slot"] == first["slot"]]
    assert slot["parameter"] in {"a.weight.exp_avg", "b.weight.exp_avg"}
    assert "test_compared_steps.py" in operator["source"]


def test_operators_of_every_step_have_their_module(tmp_path: Path, tool: Binary) -> None:
    golden = train(tmp_path / "golden")
    target = train(tmp_path / "target", broken_weight)
    found = compare(tool, target, golden)
    first = found.operators[found.summary["first_failure"]["operator"]]
    assert (first["target"][-1]["step"], first["module"]) == (PARTED, "2")
    (slot,) = [slot for slot in first["slots"] if slot["slot"] == found.summary["first_failure"]["slot"]]
    assert slot["parameter"] == "2.weight"


class Normalised(nn.Module):
    def __init__(self, momentum: float) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6, momentum=momentum)
        self.head = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(x))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_running_statistics_are_outputs(tmp_path: Path, tool: Binary, is_compiled: bool) -> None:
    def step(name: str, momentum: float) -> Path:
        torch.manual_seed(0)
        model = Normalised(momentum)
        batch = torch.randn(8, 6)
        folder = tmp_path / name
        if is_compiled:
            torch._dynamo.reset()
            options = {"path": str(folder), "data": "tensor"}
            torch.compile(model, backend="opscope", options=options)(batch).square().mean().backward()
            # The backward graph describes a gradient of the batch, which is not computed.
            assert [report["unseen"] for report in opscope.torch.finish()] == [{}]
        else:
            with opscope.torch.eager(folder, data="tensor"):
                model(batch).square().mean().backward()
        return folder

    target, golden, other = step("target", 0.2), step("golden", 0.1), step("other", 0.1)
    # The loss and all gradients are the same: only what the next evaluation reads is wrong.
    said = told(tool, target, golden)
    assert said.startswith("FAIL: updated tensor `norm.running_mean` differs")
    assert "momentum (argument.6) is 0.2 here, 0.1 on the golden side" in said
    assert told(tool, other, golden).startswith("PASS: all ")


def test_a_gradient_is_changed_before_an_optimizer_that_hides_it(tmp_path: Path, tool: Binary) -> None:
    def train_with(name: str, factor: float) -> Path:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 3))
        optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
        with opscope.torch.eager(tmp_path / name, data="tensor"):
            for _ in range(2):
                optimizer.zero_grad()
                model(torch.ones(4, 6)).square().mean().backward()
                if factor != 1:
                    model[1].bias.grad.mul_(factor)
                optimizer.step()
        return tmp_path / name

    # Adam divides by the gradient's own size: the parameter agrees, the optimizer's state does not.
    said = told(tool, train_with("target", 1.1), train_with("golden", 1))
    assert said.startswith("FAIL: updated tensor `1.bias.exp_avg` differs")
    assert "at aten_mul__Tensor `mul_` output.0: the golden side has no such operator" in said


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_one_side_leaves_a_parameter_as_it_is(tmp_path: Path, tool: Binary, rate: float) -> None:
    def step(name: str, rate: float | None) -> Path:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 4), nn.GRU(4, 3))
        groups = [{"params": list(model[1].parameters())}]
        if rate is not None:
            groups.append({"params": list(model[0].parameters()), "lr": rate})
        optimizer = torch.optim.SGD(groups, lr=0.1)
        with opscope.torch.eager(tmp_path / name, data="tensor"):
            model(torch.ones(4, 6))[0].square().mean().backward()
            optimizer.step()
        return tmp_path / name

    frozen, updated = step("frozen", None), step("updated", rate)
    forth, back = told(tool, frozen, updated), told(tool, updated, frozen)
    if rate:
        assert forth.startswith("FAIL: no operator of the target updates `0.weight`; `0.bias` differs too. ")
        assert back.startswith("FAIL: only the target has an operator that updates `0.weight`; ")
    else:
        # It is written, and keeps its value. What autograd keeps of gates in place is no output.
        assert forth.startswith("PASS: all ") and back.startswith("PASS: all ")
        assert "detach" not in forth + back


class Plain(torch.optim.Optimizer):
    """Descends in one of several ways that are the same."""

    def __init__(self, parameters: list[nn.Parameter], way: str) -> None:
        super().__init__(parameters, {})
        self.way, self.flat, start = way, torch.empty(0), 0
        if "buffer" in way:
            self.flat = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
            for parameter in parameters:
                parameter.data = self.flat[start : start + parameter.numel()].view_as(parameter)
                start += parameter.numel()

    @torch.no_grad()
    def step(self) -> None:
        parameters = self.param_groups[0]["params"]
        if self.way == "one buffer":
            self.flat.sub_(torch.cat([parameter.grad.reshape(-1) for parameter in parameters]), alpha=0.1)
            return
        first = parameters[0]
        if self.way == "part of a buffer":
            self.flat[: first.numel()].sub_(first.grad.reshape(-1), alpha=0.1)
        elif self.way == "copies":
            first.copy_(first - 0.1 * first.grad)
        elif self.way == "view":
            first.view(-1).sub_(first.grad.view(-1), alpha=0.1)
        elif self.way == "data":
            first.data = first.data - 0.1 * first.grad
        else:
            first.sub_(first.grad, alpha=0.1)
        for parameter in parameters[1:]:
            parameter.sub_(parameter.grad, alpha=0.1)


WAYS = ["copies", "view", "data", "part of a buffer", "one buffer", {"foreach": True}]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_optimizers_that_write_in_other_ways(tmp_path: Path, tool: Binary, way: str | dict) -> None:
    def step(way: str | dict, sign: int = 1) -> Path:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4), nn.Linear(4, 3))
        parameters = list(model.parameters())
        folder = tmp_path / f"{way} {sign}"
        optimizer = Plain(parameters, way) if isinstance(way, str) else torch.optim.Adam(parameters, **way)
        with opscope.torch.eager(folder, data="tensor"):
            model(torch.ones(4, 6)).square().mean().backward()
            if sign < 0:
                parameters[0].grad.neg_()
            optimizer.step()
        return folder

    usual = "in place" if isinstance(way, str) else {"foreach": False}
    target, golden, wrong = step(way), step(usual), step(way, -1)
    # Adam creates three tensors of state for each parameter.
    n = 6 if isinstance(way, str) else 24
    for pair in ((target, golden), (golden, target)):
        assert told(tool, *pair).startswith(f"PASS: all {n} unread values and updated tensors agree")
    for pair in ((wrong, golden), (golden, wrong)):
        said = told(tool, *pair)
        assert said.startswith("FAIL: ") and "`0.weight" in said.split(" differ")[0]
        assert "`neg_`" in said


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_state_that_the_first_step_creates_counts(tmp_path: Path, tool: Binary, data: str) -> None:
    """Adam makes nearly the same step of a gradient that is twice as large; its state shows it."""

    def trained(name: str, scale: float) -> Path:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        dump = opscope.torch.eager(tmp_path / name, data=data)
        with dump:
            for part in torch.randn(4, 6).chunk(2):
                (model(part).square().mean() * scale).backward()
            optimizer.step()
        return Path(dump.finish()["root"])

    golden = trained("golden", 0.5)
    said = told(tool, trained("summed", 1.0), golden)
    assert said.startswith("FAIL: updated tensor `0.weight.exp_avg` differs")
    assert "other (argument.1) is 1.0 here, 0.5 on the golden side" in said
    assert told(tool, trained("again", 0.5), golden).startswith("PASS: all 16 unread values and updated tensors agree")
