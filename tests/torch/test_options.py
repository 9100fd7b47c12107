"""Options of a wrong type or range are refused where they are given, by name, with what is expected and what was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import opscope.mindspore
import opscope.torch
import pytest
import torch
from wrong_values import cases, check

PATH = {"text"}
BOOL = {"bool"}
COUNT = {"whole"}
COUNT_OR_NONE = {"none", "whole"}
NAMES = {"text", "texts", "zero"}
# A step may be beyond any that a program reaches.
NUMBERS = {"none", "whole", "wholes", "huge"}
COMMON: dict[str, set[str]] = {
    "path": PATH, "steps": NUMBERS, "layers": NAMES, "mode": set(), "data": set(), "enabled": BOOL,
    "quant_dumpable": BOOL, "ranks": NUMBERS, "device": COUNT, "rank": COUNT_OR_NONE,
    "queue_bytes_max": COUNT_OR_NONE, "n_writers": COUNT_OR_NONE,
    "device_bytes_max": COUNT_OR_NONE, "when_behind": set(),
}  # fmt: skip
# The kinds of values that an option may have, whatever becomes of them.
ACCEPTED: dict[str, dict[str, set[str]]] = {
    "backend": {
        **COMMON, "watch": NAMES | {"none"}, "exception": {"none", "bool"}, "stage": {"none"}, "watch_bytes_max": COUNT,
        "keep_inference_input_mutations": BOOL, "decompositions": {"none", "dict"},
    },
    "eager": {**COMMON, "layout": {"none"}, "trace": BOOL},
    "watch": {"path": PATH, "names": NAMES, "model": {"none"}, "data": set(), "step": COUNT, "watch_bytes_max": COUNT},
    "catch": {"path": PATH, "detail": {"bool"}},
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_options_are_refused_where_they_are_given(name: str, tmp_path: Path) -> None:
    function = getattr(opscope.torch, name)
    # `False` is no detail of a requested dump.
    wrong: list[tuple[str, Any]] = [("detail", False)] if name == "catch" else []
    for option, value in [*cases(ACCEPTED[name]), *wrong]:
        check(function, option, value, {"path": tmp_path})
    assert not list(tmp_path.iterdir())


def test_mindspores_options() -> None:
    text = {"none", "text", "zero"}
    for option, value in cases({"config": text, "target": text}):
        check(opscope.mindspore.backend, option, value, {})


def test_steps_and_notes(tmp_path: Path) -> None:
    for option, value in cases({"step": COUNT_OR_NONE}):
        check(opscope.torch.set_step, option, value, {})
    with opscope.torch.eager(tmp_path / "eager", form="acl") as dump:
        for option, value in cases({"number": COUNT_OR_NONE}):
            check(dump.step, option, value, {})
        torch.ones(2) + 1
    dump.finish()
    with opscope.torch.watch(tmp_path / "watch", names=()) as watched:
        for option, value in cases({"name": {"text", "zero"}, "tensor": set()}):
            check(watched.note, option, value, {"name": "x", "tensor": torch.ones(2)})
