"""Options of a wrong type or range are refused where they are given, by name, with what is expected and what was given."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import opscope
import pytest
from wrong_values import cases, check


PATH = {"text"}
PATH_OR_NONE = PATH | {"none"}
TEXT_OR_NONE = {"none", "text", "zero"}
COUNT = {"none", "whole"}
BOOL = {"bool"}
NUMBER = {"none", "whole", "float", "huge"}
TEXTS = {"texts"}
WHOLES = {"wholes"}
# The kinds of values that an option may have, whatever becomes of them.
ACCEPTED: dict[str, dict[str, set[str]]] = {
    "open": {"path": PATH, "jobs": COUNT},
    "compare": {
        "target": PATH, "golden": PATH, "reference": PATH_OR_NONE, "thresholds": PATH_OR_NONE, "atol": NUMBER, "steps": WHOLES,
        "ranks": WHOLES, "names": TEXTS, "op_types": TEXTS, "outputs_only": BOOL,
        "step_offset": COUNT | {"negative"}, "mapping": PATH_OR_NONE, "whole": BOOL, "weights": BOOL, "kl": BOOL, "jobs": COUNT, "top": {"whole"}, "allow_skip": TEXTS,
    },
    "Comparison.load": {"path": PATH, "thresholds": PATH_OR_NONE, "atol": NUMBER, "top": {"whole"}, "allow_skip": TEXTS},
    "convert": {
        "src": PATH | TEXTS, "out": PATH, "type": {"text", "zero"}, "layout": TEXT_OR_NONE,
        "target_shape": WHOLES | {"none"}, "only_output": COUNT, "only_input": COUNT, "compress": COUNT, "jobs": COUNT,
        "keep_existing": BOOL, "dir_mode": {"whole"}, "file_mode": {"whole"},
    },
    "Dump.find": {
        "name": TEXT_OR_NONE, "op_type": TEXT_OR_NONE, "side": {"none"}, "slot": COUNT, "step": COUNT | WHOLES,
        "dtype": TEXT_OR_NONE | TEXTS, "rank": COUNT | WHOLES, "model": TEXT_OR_NONE, "kind": {"none"},
    },
    "Dump.to_arrow": {"stats": BOOL, "run": TEXT_OR_NONE},
    "Record.numpy": {"layout": TEXT_OR_NONE, "shape": WHOLES | {"none"}, "copy": BOOL},
}  # fmt: skip


@pytest.fixture(scope="module")
def array(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("array") / "a.npy"
    np.save(path, np.ones((2, 3), np.float32))
    return path


@pytest.mark.parametrize("name", ACCEPTED)
def test_options_are_refused_where_they_are_given(name: str, array: Path) -> None:
    dump = opscope.open(array)
    function, arguments = {
        "open": (opscope.open, {"path": array}),
        "compare": (opscope.compare, {"target": array, "golden": array}),
        "Comparison.load": (opscope.Comparison.load, {"path": array}),
        "convert": (opscope.convert, {"src": array, "out": array.parent / "out"}),
        "Dump.find": (dump.find, {}),
        "Dump.to_arrow": (dump.to_arrow, {}),
        "Record.numpy": (dump[0].numpy, {}),
    }[name]
    # None is left out.
    assert set(ACCEPTED[name]) == set(inspect.signature(function).parameters)
    for option, value in cases(ACCEPTED[name]):
        check(function, option, value, arguments)
    assert not (array.parent / "out").exists()


def test_a_single_text_is_no_list_of_its_letters(array: Path) -> None:
    with pytest.raises(TypeError, match=r"names: a list of texts is expected, got 'conv' \(str\)"):
        opscope.compare(array, array, names="conv")


def test_numbers_of_numpy_are_numbers(array: Path) -> None:
    dump = opscope.open(array, jobs=np.int64(2))
    assert len(dump.find(slot=None, step=None)) == len(dump)
    assert opscope.compare(array, array, top=np.uint8(3)).level == "pass"
