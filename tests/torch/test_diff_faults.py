"""`opscope.torch.diff` names the culprit, and none if both sides are the same."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opscope
import opscope.torch
import pytest
import torch
from architectures import ARCHITECTURES
from planted import FAULTS, NETWORKS, arguments, culprits, network
from probed_network import FAULTS as FAULTS_INSIDE
from probed_network import ProbedNetwork, image
from torch import nn

# What the exporter that traces cannot do with these networks.
NOT_TRACED = {"bert", "gpt2"}
# Recurrent layers are what `torch.compile` leaves to eager mode.
NOT_COMPILED = {"lstm", "gru"}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="opscope.torch")


def named(found: opscope.Comparison) -> set[str]:
    """The operator that the headline names, on either side."""
    first = found.first_divergence
    assert first is not None, found.verdict
    if first.get("name"):
        return {first["name"]["op_name"]}
    return names(first["operator"])


def names(operator: dict[str, Any]) -> set[str]:
    return {name["op_name"] for name in operator["target"] + operator["golden"]}


def check_named(found: opscope.Comparison, expected: set[str], level_inside: str = "pass") -> None:
    """The headline names one of `expected`; or what the model returns is within the limits, and inside it shows."""
    if found.level == "fail":
        assert named(found) & expected, (found.verdict, expected)
        return
    assert found.level == level_inside, found.verdict
    first = next(one for one in found.operators if one["level"] == "fail")
    assert names(first) & expected, (found.verdict, expected)


def accused(found: opscope.Comparison) -> set[str]:
    return {name for one in found.operators if one.get("cause") == "own" for name in names(one)}


def check_sound(found: opscope.Comparison, share_min: float) -> None:
    assert (found.level, found.first_divergence, accused(found)) == ("pass", None, set()), found.verdict
    for side in ("target_coverage", "golden_coverage"):
        n_slots, n_compared = found.summary[side]
        assert n_compared >= share_min * n_slots, (side, n_compared, n_slots)


@contextlib.contextmanager
def exporting() -> Any:
    with warnings.catch_warnings(), torch.no_grad():
        # The exporters use what later releases of torch will lack.
        warnings.simplefilter("ignore")
        yield


def exported(model: nn.Module, inputs: Any, path: Path, *, is_traced: bool) -> Path:
    """The model as one of PyTorch's exporters writes it."""
    args, kwargs = arguments(inputs)
    with exporting():
        if is_traced:
            torch.onnx.export(model, args, path, kwargs=kwargs, dynamo=False)
        else:
            torch.onnx.export(model, args, path, kwargs=kwargs, dynamo=True, external_data=False, verbose=False)
    return path


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("name", FAULTS)
def test_the_operator_at_fault_is_named(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    model, inputs = network(fault.network)
    faulty = fault.plant(model)
    expected = culprits(faulty, model, inputs)
    found = opscope.torch.diff(faulty, model, inputs)
    check_named(found, expected)
    assert accused(found) <= expected, (accused(found), expected)

    # Step by step, and again.
    args, kwargs = arguments(inputs)
    for side, label in ((model, "golden"), (faulty, "target")):
        with torch.no_grad(), opscope.torch.eager(tmp_path / label) as dump:
            side(*args, **kwargs)
        dump.finish()
    stepwise = opscope.compare(tmp_path / "target", tmp_path / "golden")
    # A dump alone does not say what the module returns, so other outputs may stand in the sentence.
    assert stepwise.level == "fail"
    assert named(stepwise) <= expected, (stepwise.verdict, expected)
    assert opscope.torch.diff(faulty, model, inputs).verdict == found.verdict


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_agrees_with_itself(name: str) -> None:
    model, inputs = network(name)
    check_sound(opscope.torch.diff(model, model, inputs), 1)
    # With dropout and running statistics both sides draw the same, and begin with the same.
    check_sound(opscope.torch.diff(model.train(), model, inputs), 1)


@pytest.mark.sampled(0.35, each="is_traced")
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("is_traced", [False, True], ids=["dynamo", "traced"])
def test_a_network_agrees_with_its_exported_file(name: str, is_traced: bool, tmp_path: Path) -> None:
    if is_traced and name in NOT_TRACED:
        pytest.skip("the exporter that traces cannot do this network")
    model, inputs = network(name)
    path = exported(model, inputs, tmp_path / "net.onnx", is_traced=is_traced)
    # What PyTorch does step by step, ONNX has as one operator.
    share_min = 0.02 if name == "gru" else 0.2
    check_sound(opscope.torch.diff(model, path, inputs), share_min)
    check_sound(opscope.torch.diff(path, model, inputs), share_min)


@pytest.mark.sampled(0.35)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_agrees_with_its_exported_program(name: str) -> None:
    model, inputs = network(name)
    args, kwargs = arguments(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, args, kwargs)
    check_sound(opscope.torch.diff(program, model, inputs), 0.7)
    check_sound(opscope.torch.diff(model, program, inputs), 0.7)


@pytest.mark.sampled(0.35, each="backend")
@pytest.mark.parametrize("name", sorted(NETWORKS.keys() - NOT_COMPILED))
@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
def test_a_network_agrees_with_what_is_compiled_of_it(name: str, backend: str) -> None:
    model, inputs = network(name)
    compiled = torch.compile(model, backend=backend)
    # A trace builds masks that this network does without where nothing is traced.
    share_min = 0.7 if name == "gpt2" else 0.9
    check_sound(opscope.torch.diff(compiled, model, inputs), share_min)
    check_sound(opscope.torch.diff(model, compiled, inputs), share_min)


def _has_lstm_in(dtype: torch.dtype) -> bool:
    """oneDNN computes it in short dtypes only where the CPU has instructions for them."""
    try:
        with torch.no_grad(), torch.autocast("cpu", dtype):
            nn.LSTM(6, 8)(torch.zeros(2, 1, 6))
    except RuntimeError:
        return False
    return True


@pytest.mark.sampled(0.35, each="dtype")
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_accuses_nobody(name: str, dtype: torch.dtype) -> None:
    model, inputs = network(name)
    if name == "lstm" and (dtype is torch.float16 or not _has_lstm_in(dtype)):
        pytest.skip(f"torch has no LSTM in {dtype} on every CPU")
    for how in ({"target_autocast": dtype}, {"golden_autocast": dtype}):
        found = opscope.torch.diff(model, model, inputs, **how)
        assert accused(found) == set(), found.verdict
        # Something was computed in the short dtype.
        assert any(slot["metrics"].get("max_abs") for one in found.operators for slot in one["slots"])


def test_masks_of_zeros_accuse_nobody() -> None:
    torch.manual_seed(0)
    architecture = ARCHITECTURES["swin_t"]
    model, inputs = architecture.make().eval(), architecture.inputs()
    found = opscope.torch.diff(model, model, inputs, target_autocast=torch.bfloat16)
    assert accused(found) == set()
    assert found.first_divergence is None or found.first_divergence["cause"] != "own", found.verdict


# The epsilon changes less than a few roundings of bfloat16 do.
@pytest.mark.parametrize("fault", [fault for fault in FAULTS_INSIDE if fault != "epsilon"])
def test_a_fault_shows_under_autocast(fault: str) -> None:
    faulty, model = ProbedNetwork(fault).eval(), ProbedNetwork().eval()
    how = {"target_autocast": torch.bfloat16, "golden_autocast": torch.bfloat16}
    expected = culprits(faulty, model, image(), torch.bfloat16)
    found = opscope.torch.diff(faulty, model, image(), **how)
    # A weight of the same network that differs is a warning.
    check_named(found, expected, "warn" if fault == "weight" else "pass")


# The names of the operators at fault in the exported network.
IN_ONNX = {"weight": "addmm_10", "epsilon": "layer_norm_3", "scale": "mul_1", "sign": "sub"}


@pytest.mark.parametrize("fault", IN_ONNX)
def test_a_fault_of_a_module_is_named_beside_its_exported_file(fault: str, tmp_path: Path) -> None:
    model = ProbedNetwork().eval()
    path = exported(model, image(), tmp_path / "net.onnx", is_traced=False)
    found = opscope.torch.diff(ProbedNetwork(fault).eval(), path, {"image": image()})
    assert any(IN_ONNX[fault] in name for name in named(found)) or named(found) & {"t_10"}, found.verdict
    check_sound(opscope.torch.diff(model, path, {"image": image()}), 0.4)


@pytest.mark.parametrize("fault", ["weight", "epsilon", "scale", "sign"])
@pytest.mark.parametrize("side", ["target", "golden"])
def test_a_fault_of_a_compiled_network_is_named(fault: str, side: str) -> None:
    faulty, model = ProbedNetwork(fault).eval(), ProbedNetwork().eval()
    expected = culprits(faulty, model, image())
    compiled: Callable[..., Any] = torch.compile(faulty, backend="aot_eager")
    sides = (compiled, model) if side == "target" else (model, compiled)
    found = opscope.torch.diff(*sides, image())
    assert (found.level, bool(named(found) & expected)) == ("fail", True), (found.verdict, expected)
