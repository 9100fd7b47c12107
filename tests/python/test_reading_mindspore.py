"""`opscope.open` on the directories of MindSpore, made by hand and by the tool."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import opscope
from onnx_models import INPUT, linear_values, write_linear

TIME = 1_700_000_000_000_000
COLUMNS = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
COLUMNS += "Max Value,Min Value,L2Norm Value"


def save(folder: Path, name: str, array: np.ndarray) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.npy"
    np.save(path, array)
    return path


def test_a_tree_with_ranks(tmp_path: Path) -> None:
    arrays = {}
    for rank in (1, 0):
        for step in (10, 9):
            folder = tmp_path / f"rank_{rank}" / "Net" / "2" / str(step)
            for number, (name, slot) in enumerate([("Mul.b", "input.0"), ("Mul.b", "output.0"), ("Add.a", "output.1")]):
                array = np.full((2, number + 1), rank * 100 + step, np.float32)
                stem = f"{name}.0.7.{TIME + number}.{slot}.DefaultFormat.float32"
                arrays[rank, step, name, slot] = array
                save(folder, stem, array)
    dump = opscope.open(tmp_path)
    assert dump.problems == []
    found = [(r.rank, r.step, f"{r.op_type}.{r.name}", f"{r.side}.{r.slot}") for r in dump]
    assert found == sorted(arrays, key=lambda key: (key[0], key[1], key[2] != "Mul.b", key[3]))
    for record, key in zip(dump, found):
        np.testing.assert_array_equal(record.numpy(), arrays[key], strict=True)
        assert (record.model, record.model_id, record.layout) == ("Net", 2, "DefaultFormat")
        assert (record.task_id, record.stream_id, record.kind) == (0, 7, "operator")
    assert dump[0].timestamp == TIME
    assert len(dump.find(rank=1, step=9)) == 3


def test_parameters_constants_and_true_dtypes(tmp_path: Path) -> None:
    run = tmp_path / "rank_0" / "Net" / "0" / "0"
    small = np.array([[-8, 7, 3]], np.int8)
    wide = np.array([1.5, -2.25], np.float32)
    save(run, f"Parameter.fc1.weight.0.0.{TIME}.output.0.DefaultFormat.BFloat16", wide)
    save(run, f"Quant.q.0.0.{TIME}.output.0.DefaultFormat.Int4", small)
    constant = f"Parameter.data-0.0.0.{TIME}.output.0.DefaultFormat.Int8"
    save(tmp_path / "rank_0" / "Net" / "0" / "constants", constant, small)
    dump = opscope.open(tmp_path)
    assert sorted((r.kind, r.dtype, r.stored_dtype) for r in dump) == [
        ("constant", "int8", "int8"),
        ("operator", "int4", "int8"),
        ("parameter", "bfloat16", "float32"),
    ]
    (parameter,) = dump.find(kind="parameter")
    assert parameter.name == "fc1.weight"
    np.testing.assert_array_equal(parameter.numpy(), wide, strict=True)
    (quant,) = dump.find(op_type="Quant")
    np.testing.assert_array_equal(quant.raw(), small.view(np.uint8), strict=True)


def test_arrays_of_mindspores_bfloat16(tmp_path: Path) -> None:
    raw = np.array([0x3F80, 0xC000, 0x7FC0], np.uint16)
    text = "{'descr': '<E2', 'fortran_order': False, 'shape': (3,), }"
    text += " " * (64 - (10 + len(text) + 1) % 64) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + raw.tobytes()
    folder = tmp_path / "rank_0" / "Net" / "0" / "0"
    folder.mkdir(parents=True)
    (folder / f"Cast.c.0.0.{TIME}.output.0.DefaultFormat.BFloat16.npy").write_bytes(content)
    (record,) = opscope.open(tmp_path)
    assert (record.dtype, record.stored_dtype) == ("bfloat16", "bfloat16")
    np.testing.assert_array_equal(record.numpy(), np.array([1, -2, np.nan], np.float32), strict=True)
    np.testing.assert_array_equal(record.raw(), raw, strict=True)


def test_statistics_alone_and_beside_arrays(tmp_path: Path) -> None:
    folder = tmp_path / "rank_3" / "Net" / "0" / "4"
    array = np.array([3, -4], np.float32)
    save(folder, f"Add.Default_Add-op0.0.0.{TIME}.output.0.DefaultFormat.Float32", array)
    rows = [
        f'Add,Default/Add-op0,0,0,{TIME},output,0,8,float32,"[2]",3,-4,5,',
        f'ReLU,Default/ReLU-op1,0,0,{TIME + 1},output,0,8,float32,"[2]",3,0,null,',
    ]
    (folder / "statistic.csv").write_text("\n".join([COLUMNS, *rows, ""]), encoding="utf-8")
    dump = opscope.open(tmp_path)
    assert dump.problems == []
    assert [(r.name, r.has_elements, r.rank, r.step) for r in dump] == [
        ("Default/Add-op0", True, 3, 4),
        ("Default/ReLU-op1", False, 3, 4),
    ]
    first, second = (record.statistics() for record in dump)
    assert (first.source, first.max, first.l2, first.columns["L2Norm Value"]) == ("elements", 3.0, 5.0, "5")
    assert (second.source, second.max, second.min, second.l2, second.n_elements) == ("dump", 3, 0, None, 2)
    assert second.columns == {"Max Value": "3", "Min Value": "0", "L2Norm Value": None}
    assert (dump[1].dtype, dump[1].shape, dump[1].path) == ("float32", (2,), str(folder / "statistic.csv"))


def test_a_dump_of_the_tool(tmp_path: Path) -> None:
    model = write_linear(tmp_path)
    settings = {
        "common_dump_settings": {
            "op_debug_mode": 0,
            "dump_mode": 0,
            "path": str(tmp_path / "dump"),
            "net_name": "Net",
            "iteration": "all",
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }
    config = tmp_path / "data_dump.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    command = ["dump", model, "--config", config, "--input", f"x={tmp_path / 'x.npy'}", "--steps", "2"]
    command = [sys.executable, "-m", "opscope", *map(str, command)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    dump = opscope.open(tmp_path / "dump")
    assert dump.problems == []
    outputs = dump.find(side="output", kind="operator", step=1)
    assert [record.name for record in outputs] == ["layer/matmul", "layer/add", "layer/relu"]
    values = [value for (_, side, _), value in linear_values().items() if side == "output"]
    for record, value in zip(outputs, values):
        np.testing.assert_array_equal(record.numpy(), value, strict=True)
    first_input = dump.find(side="input", slot=0, step=0)[0]
    np.testing.assert_array_equal(first_input.numpy(), INPUT, strict=True)
