"""A flipped bit in a dump's elements is reported with its tensor: `opscope verify` and `--verify`.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_verify.py
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from binary import TIMEOUT_SECONDS, Binary
from cases import DIGITS
from safetensors import safe_open

SETTINGS = {
    "common_dump_settings": {
        "op_debug_mode": 0,
        "dump_mode": 0,
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "full",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        "statistic_category": ["max", "md5", "hash"],
    },
    "e2e_dump_settings": {"enable": True, "trans_flag": False},
}


def run(tool: Binary, *arguments: object) -> tuple[int, str, str]:
    command = [tool.path, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr


def dump(tool: Binary, folder: Path, form: str) -> Path:
    options = ["--input", f"image={DIGITS / 'images.npy'}", "--engine", "tract"]
    if form == "mindspore":
        settings = json.loads(json.dumps(SETTINGS))
        settings["common_dump_settings"]["path"] = str(folder / "d")
        (folder / "data_dump.json").write_text(json.dumps(settings))
        options += ["--config", folder / "data_dump.json", "--target", "gpu"]
    else:
        options += ["--form", form, "--out", folder / "d"]
    code, _, errors = run(tool, "dump", DIGITS / "digits_cnn.onnx", *options)
    assert code == 0, errors
    return folder / "d"


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("form", ["native", "mindspore"])
def test_a_flipped_bit_is_told_with_its_tensor(tool: Binary, tmp_path: Path, form: str) -> None:
    path = dump(tool, tmp_path, form)
    code, told, errors = run(tool, "verify", path)
    assert (code, errors, " tensors are as written" in told) == (0, "", True)
    if form == "native":
        (elements,) = path.glob("*/rank-0/elements-0.safetensors")
        flip(elements, -3)
        with safe_open(elements, "numpy") as tensors:
            assert tensors.keys()
    else:
        (elements,) = path.rglob("Gemm.*.output.0.*.npy")
        flip(elements, -3)
    code, told, errors = run(tool, "verify", path, "--json")
    (found,) = json.loads(told)["dumps"]
    assert code == 1 and found["changed"] and found["verified"] > 10
    for changed in found["changed"]:
        kind, digest = changed["expected"].split()
        assert changed["found"].startswith(f"{kind} ") and changed["found"] != changed["expected"]
        assert kind == {"native": "xxh3", "mindspore": "md5"}[form] and len(digest) == 32
        assert f"the elements of {changed['tensor']} have changed since they were written" in errors
        assert "output.0 (step 0, rank 0)" in changed["tensor"] or "input." in changed["tensor"]


def test_commands_check_what_they_read(tool: Binary, tmp_path: Path) -> None:
    path = dump(tool, tmp_path, "native")
    commands = [["show", path], ["compare", path, path], ["convert", "-d", path, "--out", tmp_path / "arrays"]]
    for command in commands:
        assert run(tool, *command, "--verify")[0] == 0
    (elements,) = path.glob("*/rank-0/elements-0.safetensors")
    flip(elements, -3)
    for command in commands:
        code, told, errors = run(tool, *command, "--verify")
        assert (code, "have changed since they were written" in errors) == (4, True), told
        assert told == run(tool, *command)[1]


def test_a_dump_without_digests_is_not_called_sound(tool: Binary, tmp_path: Path) -> None:
    code, told, _ = run(tool, "verify", dump(tool, tmp_path, "acl"))
    assert (code, "no tensor has a digest" in told) == (4, True)
    assert run(tool, "verify", tmp_path / "nothing")[0] == 3
