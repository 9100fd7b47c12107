"""Running `opscope compare`, and what its result says."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from binary import TIMEOUT_SECONDS, Binary, input_options
from numpy.typing import NDArray
from onnx import ModelProto, save

PASSED, FAILED, PARTIAL = 0, 1, 4


@dataclass(frozen=True)
class Found:
    """The exit code of a comparison, and its JSON."""

    code: int
    document: dict[str, Any]

    @property
    def summary(self) -> dict[str, Any]:
        return self.document["summary"]

    @property
    def operators(self) -> list[dict[str, Any]]:
        return self.document["operators"]

    @property
    def first(self) -> tuple[str, str, str] | None:
        """Operator, slot and cause of the first divergence."""
        first = self.summary.get("first_divergence")
        return first and (self.name(first["operator"]), first["slot"], first["cause"])

    @property
    def suspects(self) -> list[str]:
        first = self.summary.get("first_divergence") or {}
        return [suspect["operator"]["op_name"] for suspect in first.get("suspects", [])]

    @property
    def accused(self) -> list[str]:
        """Operators that are said to be at fault themselves."""
        return [name_of(operator) for operator in self.operators if operator.get("cause") == "own"]

    @property
    def not_passing(self) -> list[str]:
        return [name_of(operator) for operator in self.operators if operator["level"] in ("warn", "fail")]

    @property
    def skips(self) -> list[tuple[str, str | None, str | None, str]]:
        """Side, operator, slot and reason of all that was not compared."""
        return [
            (skip["side"], (skip.get("operator") or {}).get("op_name"), skip.get("slot"), skip["reason"])
            for skip in self.document["skips"]
        ]

    @property
    def guessed(self) -> dict[str, tuple[list[str], str]]:
        """Pairs that equal names did not make, by the target's name."""
        return {
            name_of(operator): ([golden["op_name"] for golden in operator["golden"]], operator["how"])
            for operator in self.operators
            if operator["how"] != "name"
        }

    def name(self, index: int) -> str:
        return name_of(self.operators[index])

    def operator(self, name: str) -> dict[str, Any]:
        (operator,) = (operator for operator in self.operators if name_of(operator) == name)
        return operator


def name_of(operator: dict[str, Any]) -> str:
    return "+".join(target["op_name"] for target in operator["target"])


def compare(opscope: Binary, target: Path, golden: Path, *args: object, is_strict: bool = True) -> Found:
    """Compares what is inside, too: a fault in a dump need not show in the outputs of the model."""
    strict = ["--strict"] if is_strict else []
    return _found([opscope.path, "compare", target, golden, "--json", "-", *strict, *args])


def judge_anew(opscope: Binary, saved: Path, *args: object) -> Found:
    return _found([opscope.path, "compare", "--from", saved, "--json", "-", "--strict", *args])


def _found(command: list[object]) -> Found:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode in (PASSED, FAILED, PARTIAL), f"exit code {done.returncode} from {command}\n{done.stderr}"
    return Found(done.returncode, json.loads(done.stdout))


def dump(opscope: Binary, folder: Path, model: ModelProto, inputs: dict[str, NDArray], *args: object) -> Path:
    """Saves the model under one name, so that dumps of its variants differ in nothing else, and dumps it."""
    options = input_options(inputs, folder / "inputs")
    path = folder / "net.onnx"
    save(model, path)
    opscope.dump(path, "--form", "acl", "--out", folder / "dump", *options, *args)
    return folder / "dump"
