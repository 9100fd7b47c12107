"""Values before a quantisation next to its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from dumps import Record, graphs
from torchair_runs import compiled, configured

quantised = torch.ops.quantized_decomposed
SCALE, ZERO = 0.05, 3


class Quantised(torch.nn.Module):
    """Weights by channel, activations by tensor, as converted models have them, and something that is neither."""

    def __init__(self) -> None:
        super().__init__()
        weight = torch.randn(4, 6)
        self.register_buffer("scales", weight.abs().amax(1) / 127)
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))
        self.register_buffer(
            "weight", quantised.quantize_per_channel(weight, self.scales, self.zeros, 0, -128, 127, torch.int8)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.tanh()
        narrow = quantised.quantize_per_tensor(x, SCALE, ZERO, 0, 255, torch.uint8)
        wide = quantised.dequantize_per_tensor(narrow, SCALE, ZERO, 0, 255, torch.uint8)
        weight = quantised.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -128, 127, torch.int8)
        y = torch.nn.functional.linear(wide, weight).relu()
        again = quantised.quantize_per_tensor(y, SCALE, ZERO, 0, 255, torch.uint8)
        return quantised.dequantize_per_tensor(again, SCALE, ZERO, 0, 255, torch.uint8).exp()


def dumped(path: Path, model: Any, x: torch.Tensor, **options: Any) -> dict[str, Record]:
    given = {f"dump_config__{name}": value for name, value in options.items()}
    config = configured(dump_config__enable_dump=True, dump_config__dump_path=str(path), **given)
    with compiled(model, config) as call, torch.no_grad():
        assert torch.equal(call(x), model(x))
    (report,) = call.reports
    assert report["dropped"]["not_shown"] == 0 and report["first_fault"] is None
    (graph,) = graphs(report["root"])
    return {name: record for name, record in graph[0].items() if record.op_type != "Data"}


def sides(record: Record) -> tuple[int, int]:
    data = record.data()
    return len(data.inputs), len(data.outputs)


X = torch.linspace(-3, 3, 12).view(2, 6)


@pytest.mark.parametrize("mode", ["input", "output", "all"])
def test_both_sides_of_what_quantises_are_there_in_every_mode(mode: str, tmp_path: Path) -> None:
    found = dumped(tmp_path, Quantised(), X, dump_mode=mode, quant_dumpable=True)
    for name in ("quantize_per_tensor", "quantize_per_tensor_1"):
        data = found[name].data()
        assert data.inputs[0].array().dtype == "float32" and data.outputs[0].array().dtype == "uint8"
    data = found["quantize_per_tensor"].data()
    assert (data.inputs[0].array() == X.tanh().numpy()).all()
    expected = quantised.quantize_per_tensor(X.tanh(), SCALE, ZERO, 0, 255, torch.uint8)
    assert (data.outputs[0].array() == expected.numpy()).all()
    others = {"input": (1, 0), "output": (0, 1), "all": (1, 1)}
    assert sides(found["tanh"]) == sides(found["relu"]) == others[mode]


def test_without_the_option_the_mode_counts_for_all(tmp_path: Path) -> None:
    found = dumped(tmp_path, Quantised(), X, dump_mode="output")
    assert {sides(record) for record in found.values()} == {(0, 1)}


@pytest.mark.parametrize(
    ("layers", "near"),
    [
        # It reads a quantised value through a dequantisation; its output is not quantised directly.
        ("addmm mm linear", {"quantize_per_tensor"}),
        # The output of this one is quantised.
        ("relu", {"quantize_per_tensor_1"}),
        ("tanh", {"quantize_per_tensor"}),
        ("exp", {"quantize_per_tensor_1"}),
        # These are names of kinds of operators as well.
        ("dequantize_per_tensor", {"quantize_per_tensor", "quantize_per_tensor_1"}),
        ("quantize_per_tensor", {"quantize_per_tensor", "quantize_per_tensor_1"}),
        ("quantize_per_tensor_1", {"quantize_per_tensor_1"}),
    ],
)
def test_what_quantises_beside_a_chosen_operator_is_dumped(layers: str, near: set[str], tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    plain = dumped(tmp_path / "without", Quantised(), X, dump_layer=layers, dump_mode="output")
    found = dumped(tmp_path / "with", Quantised(), X, dump_layer=layers, dump_mode="output", quant_dumpable=True)
    assert plain and set(found) == set(plain) | near
    for name, record in found.items():
        assert sides(record) == ((1, 1) if name in near else (0, 1)), name


def test_fake_and_dynamic_quantisation(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        x = torch.fake_quantize_per_tensor_affine(x.tanh(), SCALE, ZERO, 0, 255)
        scale, zero = quantised.choose_qparams(x, 0, 255, 1e-6, torch.uint8)
        narrow = quantised.quantize_per_tensor(x, scale, zero, 0, 255, torch.uint8)
        return quantised.dequantize_per_tensor(narrow, scale, zero, 0, 255, torch.uint8) + 1

    found = dumped(tmp_path, model, X, dump_mode="output", quant_dumpable=True)
    fake = next(record for name, record in found.items() if name.startswith("fake_quantize"))
    assert sides(fake)[0] == 1 and sides(found["tanh"]) == (0, 1)
    dynamic = next(record for name, record in found.items() if name.startswith("quantize_per_tensor"))
    # With the values its scale and its zero point.
    assert sides(dynamic) == (3, 1)


def test_statistics_have_both_sides_too(tmp_path: Path) -> None:
    found = dumped(tmp_path, Quantised(), X, dump_mode="output", quant_dumpable=True, dump_data="stats")
    rows = found["quantize_per_tensor"].rows()
    assert len(rows) == 2 and len(found["tanh"].rows()) == 1
