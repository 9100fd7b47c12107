"""`opscope compare` of runs of several steps: the first that differs, and the dumps that it asks for."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary
from comparing import FAILED, PARTIAL, PASSED, compare, judge_anew
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

N_STEPS = 6
Sets = list[NDArray]


def network(limit: float = 1e6) -> ModelProto:
    """A product that is limited to a range, as no value is unless the input is large."""
    weight = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    return helper.make_model(
        helper.make_graph(
            [
                helper.make_node("MatMul", ["x", "weight"], ["product"], "multiply"),
                # In this version the limits are attributes, so that no input differs where they do.
                helper.make_node("Clip", ["product"], ["limited"], "limit", min=-1e6, max=limit),
                helper.make_node("LeakyRelu", ["limited"], ["y"], "bend"),
            ],
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 4])],
            [numpy_helper.from_array(weight, "weight")],
        ),
        opset_imports=[helper.make_opsetid("", 10)],
        ir_version=10,
    )


def sets(n: int, changed_from: int | None = None, size: Callable[[int], float] = lambda step: 0.3) -> Sets:
    """An input for each step; from some step on another one."""
    rng = np.random.default_rng(1)
    drawn = [(rng.normal(size=(4, 8)) * size(step)).astype(np.float32) for step in range(n)]
    changed = [] if changed_from is None else range(changed_from, n)
    for step in changed:
        drawn[step] += 0.25
    return drawn


class Run:
    """A run that can be made again with other options."""

    def __init__(self, opscope: Binary, folder: Path, inputs: Sets, model: ModelProto | None = None) -> None:
        self.opscope, self.folder, self.n_dumps = opscope, folder, 0
        (folder / "inputs").mkdir(parents=True)
        onnx.save(model or network(), folder / "net.onnx")
        for step, x in enumerate(inputs):
            np.savez(folder / "inputs" / f"{step}.npz", x=x)

    def dump(self, *options: object, keys: dict[str, str] | None = None) -> Path:
        self.n_dumps += 1
        out = self.folder / f"dump-{self.n_dumps}"
        if keys is None:
            options = ("--out", out, *options)
        else:
            out.mkdir()
            path = self.folder / "acl.json"
            dump = {"dump_path": str(out), "dump_list": [{}], "dump_mode": "all", **keys}
            path.write_text(json.dumps({"dump": dump}))
            options = ("--config", path, *options)
        self.opscope.run("dump", self.folder / "net.onnx", "--inputs", self.folder / "inputs", *options)
        return out


def told(opscope: Binary, target: Path, golden: Path) -> str:
    """The text of a comparison, in one line."""
    command = [opscope.path, "compare", target, golden]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    return " ".join(done.stdout.split())


def steps_of(opscope: Binary, target: Path, golden: Path) -> tuple[dict[str, Any], dict[int, str]]:
    """What the summary says of the first step that differs, and the level of each step."""
    steps = compare(opscope, target, golden).summary["steps"]
    return steps.get("first", {}), {step["step"]: step["level"] for step in steps["compared"]}


def test_steps_that_agree(opscope: Binary, tmp_path: Path) -> None:
    run = Run(opscope, tmp_path / "run", sets(N_STEPS))
    dumps = [run.dump() for _ in range(2)]
    found = compare(opscope, *dumps)
    assert found.code == PASSED
    assert [step["level"] for step in found.summary["steps"]["compared"]] == ["pass"] * N_STEPS
    assert "first" not in found.summary["steps"]
    assert f"all {N_STEPS} steps agree: 0-5" in told(opscope, *dumps)
    # A step alone is a comparison like any other.
    single = [run.dump("--iterations", 3) for _ in range(2)]
    assert "steps" not in compare(opscope, *single).summary
    assert "step" not in told(opscope, *single).replace("step=", "")
    assert "steps" not in compare(opscope, *dumps, "--steps", 2).summary


@pytest.mark.parametrize("changed", [0, 3, 5])
def test_changed_data_comes_from_outside(opscope: Binary, tmp_path: Path, changed: int) -> None:
    target = Run(opscope, tmp_path / "target", sets(N_STEPS, changed)).dump()
    golden = Run(opscope, tmp_path / "golden", sets(N_STEPS)).dump()
    first, levels = steps_of(opscope, target, golden)
    assert levels == {step: "fail" if step >= changed else "pass" for step in range(N_STEPS)}
    assert (first["step"], first.get("before")) == (changed, changed - 1 if changed else None)
    # All elements of all steps are there, and another dump would show nothing new.
    assert (first["fault"], "next" in first) == ("before", False)
    text = told(opscope, target, golden)
    assert f"first step that fails: {changed} of 0-5" in text
    assert f"step {changed} differs in what comes into it" in text
    # A saved result says the same.
    saved = tmp_path / "result.json"
    command = [opscope.path, "compare", target, golden, "--json", saved]
    done = subprocess.run(list(map(str, command)), capture_output=True, timeout=TIMEOUT_SECONDS)
    # Other inputs from the beginning say nothing of the models.
    assert done.returncode == (FAILED if changed else PARTIAL)
    assert judge_anew(opscope, saved).summary["steps"]["first"] == first


def test_an_operator_at_fault_in_one_step(opscope: Binary, tmp_path: Path) -> None:
    """It reads in that step what it should, so nothing before is looked for, whatever was not compared."""
    inputs = sets(N_STEPS, size=lambda step: 0.3 if step < 4 else 30)
    runs = [
        Run(opscope, tmp_path / name, inputs, network(limit)) for name, limit in [("target", 20.0), ("golden", 1e6)]
    ]
    for options in ([], ["--every", 4]):
        dumps = [run.dump(*options) for run in runs]
        found = compare(opscope, *dumps)
        first, levels = steps_of(opscope, *dumps)
        assert found.name(found.summary["first_failure"]["operator"]) == "limit"
        assert {step for step, level in levels.items() if level == "fail"} <= {4, 5}
        assert (first["step"], first["fault"], "next" in first) == (4, "inside", False)
        assert "comes into it" not in told(opscope, *dumps)


def test_gaps_are_narrowed_down_by_the_printed_command(opscope: Binary, tmp_path: Path) -> None:
    runs = [Run(opscope, tmp_path / "target", sets(150, 137)), Run(opscope, tmp_path / "golden", sets(150))]
    dumps = [run.dump("--every", 60) for run in runs]
    assert compare(opscope, *dumps).code == PASSED
    dumps = [run.dump("--iterations", "0,149") for run in runs]
    asked = []
    while "next" in (first := steps_of(opscope, *dumps)[0]):
        text = told(opscope, *dumps)
        (chosen,) = re.findall(r"`opscope dump net\.onnx (--iterations [0-9,-]+)`", text)
        asked.append((first["step"], first["next"]["n_rounds_after"]))
        assert "which were not compared; statistics will do" in text
        before, last = (str(first[key]) for key in ("before", "step"))
        dumps = [run.dump(chosen.split()[0], f"{before},{chosen.split()[1]},{last}") for run in runs]
    assert (first["step"], first["before"], first["fault"]) == (137, 136, "before")
    # As many dumps as were promised, at most.
    assert [rounds for _, rounds in asked] == sorted((rounds for _, rounds in asked), reverse=True)
    assert 1 < len(asked) <= asked[0][1] + 1


def test_statistics_lead_to_elements(opscope: Binary, tmp_path: Path) -> None:
    runs = [Run(opscope, tmp_path / "target", sets(N_STEPS, 3)), Run(opscope, tmp_path / "golden", sets(N_STEPS))]
    dumps = [run.dump(keys={"dump_data": "stats"}) for run in runs]
    first, _ = steps_of(opscope, *dumps)
    assert (first["step"], first["fault"]) == (3, "before")
    assert first["next"] == {"steps": [2, 3], "needs_elements": True, "n_rounds_after": 0}
    text = told(opscope, *dumps)
    chosen = re.findall(r"(target|golden): `(\"dump_step\": .*?)` in `", text)
    assert [side for side, _ in chosen] == ["target", "golden"]
    dumps = [run.dump(keys=json.loads(f"{{{keys}}}")) for run, (_, keys) in zip(runs, chosen, strict=True)]
    found = compare(opscope, *dumps)
    assert found.code == FAILED
    assert {slot["evidence"] for operator in found.operators for slot in operator["slots"]} == {"tensor"}
    place = found.operators[found.summary["first_failure"]["operator"]]["target"][0]
    assert (place["op_name"], place["step"]) == ("multiply", 3)
