"""Which NaN or infinity is reported: masks are full of infinities that were not computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import opscope.torch
import pytest
import torch
import torch.nn.functional as F

N = 4
LOWEST = torch.finfo(torch.float32).min
BLOCKED = torch.ones(N, N, dtype=torch.bool).triu(1)
SDPA = F.scaled_dot_product_attention


def with_math(q: torch.Tensor) -> torch.Tensor:
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return SDPA(q, q, q, attn_mask=~BLOCKED)


# Ways to write a mask into scores, and how many operators have infinities at least.
MASKS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "full": lambda s: s + torch.full((N, N), -math.inf).triu(1),
    "masked_fill": lambda s: s.masked_fill(BLOCKED, -math.inf),
    "masked_fill_": lambda s: (s * 1).masked_fill_(BLOCKED, -math.inf),
    "where tensor": lambda s: torch.where(BLOCKED, torch.tensor(-math.inf), s),
    "where scalar": lambda s: torch.where(BLOCKED, -math.inf, s),
    "expand and cat": lambda s: s + torch.cat([torch.full((1, 1), -math.inf).expand(N, 1), torch.zeros(N, N - 1)], 1),
    "log": lambda s: s + torch.log((~BLOCKED).float()),
    "narrowed": lambda s: s + (BLOCKED.float() * LOWEST).half().float(),
    "added twice": lambda s: s + (BLOCKED.float() * LOWEST + BLOCKED.float() * LOWEST),
}
FINITE = {"float16": lambda s: (s.half() + BLOCKED.half() * -65504).float()}


class Attention(torch.nn.Module):
    def __init__(self, attend: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)
        self.attend = attend

    def forward(self, x: torch.Tensor, broken: torch.Tensor) -> torch.Tensor:
        q = self.inner(x)
        return self.attend(q) + torch.log(broken)


def masked(mask: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda q: torch.softmax(mask(q @ q.T), -1) @ q


ATTENTIONS = {name: (masked(mask), 1) for name, mask in MASKS.items()}
ATTENTIONS |= {name: (masked(mask), 0) for name, mask in FINITE.items()}
ATTENTIONS |= {
    "sdpa causal": (lambda q: SDPA(q[None], q[None], q[None], is_causal=True)[0], 0),
    "sdpa in parts": (lambda q: with_math(q[None])[0], 1),
    "softmax in parts": (
        lambda q: (lambda s: (s - s.amax(-1, True)).exp())((q @ q.T).masked_fill(BLOCKED, -math.inf)) @ q,
        1,
    ),
}


def dumped(engine: str, model: torch.nn.Module, path: Path, inputs: list[tuple], **options: str) -> dict:
    torch.manual_seed(0)
    if engine == "eager":
        with opscope.torch.eager(path, **options, form="acl") as dump:
            for given in inputs:
                model(*given)
                dump.step()
        return dump.finish()
    backend = opscope.torch.backend(path, **options, form="acl")
    compiled = torch.compile(model, backend=backend)
    for given in inputs:
        compiled(*given)
    return backend.finish()


@pytest.mark.parametrize("data", ["tensor", "stats"])
@pytest.mark.parametrize("engine", ["eager", "compiled"])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_mask_does_not_hide_a_nan(name: str, engine: str, data: str, tmp_path: Path) -> None:
    attend, n_deliberate = ATTENTIONS[name]
    model = Attention(attend).requires_grad_(False)
    x, good, bad = torch.randn(N, 8), torch.ones(8), torch.tensor([1.0] * 5 + [-1.0] + [1.0] * 2)
    report = dumped(engine, model, tmp_path, [(x, good), (x, good), (x, bad)], data=data)
    found = report["first_non_finite"]
    assert (found["step"], found["op_type"], found["side"], found["index"]) == (2, "aten.log.default", "output", 0)
    assert found["element"] == 5 and math.isnan(found["value"]) and found["origin"] == "computed"
    assert found["source"].endswith("forward") and __file__ in found["source"] and found["graph"]
    assert report["deliberate_infinities"]["n_operators"] >= n_deliberate
    assert report["first_fault"] is None


@pytest.mark.parametrize("engine", ["eager", "compiled"])
def test_infinities_that_are_computed_are_told(engine: str, tmp_path: Path) -> None:
    class Big(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.relu(x * 3e38) + 1

    mask = torch.full((4,), -math.inf)
    cases = {
        # A product that overflows.
        "overflow": (Big(), torch.tensor([0.0, 1.0, 2.0]), ("aten.mul.Tensor", "output", 2, math.inf, "computed")),
        # -Inf that goes to no softmax.
        "log": (Function(lambda x: torch.log(x) * 2), torch.tensor([1.0, 0.0]),
                ("aten.log.default", "output", 1, -math.inf, "computed")),
        # One more than the mask has.
        "beside a mask": (Function(lambda x: (mask.where(x > 1e38, x)) * 10), torch.tensor([1.0, 9e37, 2e38, 0.0]),
                          ("aten.mul.Tensor", "output", 1, math.inf, "computed")),
        "a NaN of the input": (Function(lambda x: x + 1), torch.tensor([1.0, math.nan]),
                               ("aten.add.Tensor", "input", 1, math.nan, "given")),
    }
    for name, (model, x, expected) in cases.items():
        torch._dynamo.reset()
        found = dumped(engine, model, tmp_path / name, [(x,)], data="stats")["first_non_finite"]
        told = tuple(found[key] for key in ("op_type", "side", "element", "value", "origin"))
        assert str(told) == str(expected), name


class Function(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)
