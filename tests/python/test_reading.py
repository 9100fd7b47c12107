"""`opscope.open`: what is in dumps, compared with what numpy computes and with readers written apart from the tool."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import dump_data
import numpy as np
import opscope
import pytest
from onnx_models import linear_values, write_linear
from opscope import Dump

N_STEPS = 12
VALUES = linear_values()


def command_line(*arguments: object) -> None:
    command = [sys.executable, "-m", "opscope", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def make_dump(folder: Path, *options: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    model = write_linear(folder)
    out = folder / "dump"
    command_line("dump", model, "--input", f"x={folder / 'x.npy'}", "--form", "acl", "--out", out, *options)
    return out


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dump(tmp_path_factory.mktemp("linear"), "--steps", N_STEPS)


@pytest.fixture
def dump(out: Path) -> Dump:
    return opscope.open(out)


def test_records_stand_in_order_of_execution(dump: Dump) -> None:
    found = [(record.step, record.name, record.side, record.slot) for record in dump]
    assert found == [(step, *key) for step in range(N_STEPS) for key in VALUES]
    assert len(dump) == N_STEPS * len(VALUES)
    assert dump.problems == []


def test_values_are_those_of_numpy_and_of_another_reader(dump: Dump) -> None:
    for record in dump:
        array = record.numpy()
        np.testing.assert_array_equal(array, VALUES[record.name, record.side, record.slot], strict=True)
        file = dump_data.parse(Path(record.path).read_bytes())
        tensor = (file.inputs if record.side == "input" else file.outputs)[record.slot]
        assert (record.name, record.shape, record.nbytes) == (file.op_name, tensor.shape, tensor.size)
        assert record.timestamp == file.dump_time
        assert record.raw().tobytes() == tensor.payload


def test_what_is_known_of_a_record(dump: Dump, out: Path) -> None:
    record = dump[3]
    (time_dir,) = (path for path in out.iterdir() if path.is_dir())
    assert Path(record.path).parent == time_dir / "0" / "linear" / "1" / "0"
    known = {name: getattr(record, name) for name in record.__slots__ if not name.startswith("_")}
    del known["path"], known["timestamp"]
    assert known == {
        "name": "layer/add",
        "op_type": "Add",
        "kind": "operator",
        "side": "input",
        "slot": 0,
        "dtype": "float32",
        "stored_dtype": "float32",
        "layout": "ND",
        "shape": (2, 3),
        "original_shape": (2, 3),
        "nbytes": 24,
        "step": 0,
        "run": 0,
        "rank": 0,
        "model": "linear",
        "model_id": 1,
        "task_id": 1,
        "stream_id": 0,
        "has_elements": True,
        "module": None,
        "collective": None,
        "group_ranks": None,
        "placement": None,
    }
    assert record.type == "Add"
    assert repr(record) == "<Record Add layer/add input.0: float32 [2, 3] step 0>"


def test_a_dump_is_a_sequence(dump: Dump) -> None:
    assert dump[-1] is dump[len(dump) - 1]
    assert [record.name for record in dump[:4:3]] == ["layer/matmul", "layer/add"]
    assert dump[5] in dump and dump.index(dump[5]) == 5
    with pytest.raises(IndexError):
        dump[len(dump)]


@pytest.mark.parametrize(
    ("wanted", "n_of_each_step"),
    [
        ({}, 8),
        ({"name": "layer/*"}, 8),
        ({"name": "layer"}, 0),
        ({"name": "LAYER/*"}, 0),
        ({"name": re.compile("m[au]|relu$")}, 5),
        ({"op_type": "[AR]*"}, 5),
        ({"side": "input"}, 5),
        ({"side": "output", "slot": 0}, 3),
        ({"slot": 1}, 2),
        ({"dtype": "float32", "op_type": "Add"}, 3),
        ({"dtype": ["int8", "float32"], "rank": 0}, 8),
        ({"dtype": "int8"}, 0),
        ({"rank": 1}, 0),
        ({"model": "lin*", "kind": "operator"}, 8),
        ({"kind": "constant"}, 0),
    ],
)
def test_searches(dump: Dump, wanted: dict[str, object], n_of_each_step: int) -> None:
    assert len(dump.find(**wanted)) == n_of_each_step * N_STEPS


def test_searches_for_steps(dump: Dump) -> None:
    assert {record.step for record in dump.find(step=10)} == {10}
    assert [record.step for record in dump.find(step=range(9, 30), op_type="Relu", side="output")] == [9, 10, 11]
    assert dump.find(step=N_STEPS) == []


@pytest.mark.parametrize("wanted", [{"side": "both"}, {"kind": "weight"}, {"name": 5}])
def test_searches_that_make_no_sense(dump: Dump, wanted: dict[str, object]) -> None:
    with pytest.raises(opscope.UsageError) as caught:
        dump.find(**wanted)
    assert (caught.value.code, caught.value.exit_code) == ("usage", 2)


def test_any_part_of_a_dump(dump: Dump, out: Path) -> None:
    record = dump.find(op_type="Add", side="output", step=7)[0]
    step = opscope.open(Path(record.path).parent)
    assert [(other.step, other.model, other.rank) for other in step] == [(7, "linear", 0)] * len(VALUES)
    file = opscope.open(record.path)
    slots = [("input", 0, 7), ("input", 1, 7), ("output", 0, 7)]
    assert [(other.side, other.slot, other.step) for other in file] == slots
    np.testing.assert_array_equal(file[2].numpy(), record.numpy())


def test_statistics_are_those_of_the_elements(dump: Dump) -> None:
    for record in dump.find(step=0):
        values = VALUES[record.name, record.side, record.slot].astype(np.float64)
        statistics = record.statistics()
        assert statistics.source == "elements"
        assert (statistics.n_elements, statistics.n_nan) == (values.size, 0)
        assert (statistics.min, statistics.max, statistics.sum) == (values.min(), values.max(), values.sum())
        assert statistics.n_zero == np.count_nonzero(values == 0)
        np.testing.assert_allclose(statistics.mean, values.mean(), rtol=1e-15)
        np.testing.assert_allclose(statistics.std, values.std(), rtol=1e-14)
        np.testing.assert_allclose(statistics.l2, np.linalg.norm(values), rtol=1e-15)


def test_a_dump_of_statistics_alone(tmp_path: Path) -> None:
    dump = opscope.open(make_dump(tmp_path, "--content", "statistics", "--steps", 2))
    values = {(name.replace("/", "_"), side, slot): value for (name, side, slot), value in VALUES.items()}
    assert [(r.step, r.name, r.side, r.slot) for r in dump] == [(step, *key) for step in range(2) for key in values]
    for record in dump:
        expected = values[record.name, record.side, record.slot]
        assert (record.dtype, record.shape, record.nbytes) == ("float32", expected.shape, expected.nbytes)
        assert not record.has_elements
        statistics = record.statistics()
        assert (statistics.source, statistics.n_elements) == ("dump", expected.size)
        assert (statistics.min, statistics.max) == (expected.min(), expected.max())
        assert (statistics.n_nan, statistics.std) == (0, None)
        assert float(statistics.columns["Avg Value"]) == pytest.approx(expected.mean(dtype=np.float64), rel=1e-5)
        with pytest.raises(opscope.UnsupportedError, match="no elements") as caught:
            record.numpy()
        assert (caught.value.code, caught.value.path) == ("no_elements", record.path)


def test_statistics_beside_tensors_are_no_records_of_their_own(tmp_path: Path) -> None:
    dump = opscope.open(make_dump(tmp_path, "--content", "both"))
    assert [(record.name, record.side, record.slot) for record in dump] == list(VALUES)
    for record in dump:
        expected = VALUES[record.name, record.side, record.slot]
        np.testing.assert_array_equal(record.numpy(), expected)
        statistics = record.statistics()
        assert statistics.source == "elements"
        assert float(statistics.columns["Max Value"]) == statistics.max == expected.max()


def test_converted_dumps_are_dumps(dump: Dump, out: Path, tmp_path: Path) -> None:
    command_line("convert", "-d", out, "-out", tmp_path)
    converted = opscope.open(tmp_path)
    assert converted.problems == []
    assert len(converted) == len(dump)
    for old, new in zip(dump, converted):
        for name in ("op_type", "side", "slot", "step", "model", "rank", "task_id", "timestamp", "shape", "dtype"):
            assert getattr(new, name) == getattr(old, name), name
        assert new.name == old.name.replace("/", "_")
        np.testing.assert_array_equal(new.numpy(), old.numpy())


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    dump = opscope.open(tmp_path)
    np.save(tmp_path / "late.npy", np.arange(3))
    assert [record.name for record in dump] == ["late"]
    assert len(opscope.open(tmp_path / "late.npy")) == 1


def test_what_is_not_there() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        opscope.open("/nowhere/at/all")
    error = caught.value
    assert isinstance(error, opscope.OpscopeError)
    assert (error.code, error.exit_code, error.path, error.errno) == ("not_found", 3, "/nowhere/at/all", 2)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.code, again.errno) == (type(error), str(error), error.code, 2)


def test_an_empty_directory_has_no_records(tmp_path: Path) -> None:
    dump = opscope.open(tmp_path)
    assert (len(dump), list(dump), dump.problems) == (0, [], [])


def test_dumps_travel_between_processes(dump: Dump) -> None:
    again = pickle.loads(pickle.dumps(dump))
    assert (again.path, len(again)) == (dump.path, len(dump))
