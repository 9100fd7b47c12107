"""Every `--json` follows its schema in `docs/schemas`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from binary import TIMEOUT_SECONDS, Binary
from faults import change_weight
from json_schema import problems
from test_experiments import SOUND

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "docs" / "schemas"
DIGITS = ROOT / "examples" / "digits"
SHAPE = ["--seed", "1", "--shape", "x:1,3,8,8"]
ADD = {"op": "Add", "inputs": [{"type": "float32", "shape": [2]}] * 2}
# The schema, and the command; a command without `--json FILE` prints the document.
COMMANDS: list[tuple[str, list[str]]] = [
    ("dump", ["dump", "sound.onnx", *SHAPE, "--json", "--out", "again"]),
    ("dump", ["dump", "sound.onnx", *SHAPE, "--json", "--stats"]),
    ("dump", ["dump", "sound.onnx", *SHAPE, "--json", "--as", "float16"]),
    ("dump", ["dump", "sound.onnx", *SHAPE, "--json", "--dry-run", "--out", "none"]),
    ("op", ["op", "add.json", "--seed", "1", "--json", "--out", "op"]),
    ("config", ["config", "check", "acl.json", "--json"]),
    ("config", ["config", "explain", "acl.json", "--json"]),
    ("convert", ["convert", "-d", "sound", "-out", "arrays", "--json"]),
    ("convert", ["convert", "-d", "sound", "-out", "tree", "--form", "acl", "--json"]),
    ("comparison", ["compare", "faulty", "sound", "--json", "r.json"]),
    ("comparison", ["diff", "faulty.onnx", "sound.onnx", *SHAPE, "--json", "r.json"]),
    ("comparison", ["compare", "sound", "sound", "--json", "-"]),
    ("repeat", ["diff", "sound.onnx", *SHAPE, "--repeat", "2", "--json", "r.json"]),
    ("show", ["show", "sound", "--json"]),
    ("show", ["show", "x.npy", "--json"]),
    ("show", ["show", "acl_tree", "--json"]),
    ("show", ["show", "acl_tree/**/Conv.conv1.*", "--json"]),
    ("show", ["show", "mindspore_tree", "--json"]),
    ("index", ["index", "sound", "--json", "--out", "tables"]),
    ("verify", ["verify", "sound", "--json"]),
    ("overflow", ["overflow", "sound", "--json"]),
    ("nan", ["nan", "sound", "--json"]),
    ("ranks", ["ranks", "sound", "--json"]),
    ("ranks", ["ranks", "sound", "--against", "faulty", "--json"]),
    ("replay", ["replay", "sound", "conv1", "--json", "r.json"]),
    ("sensitivity", ["sensitivity", "sound.onnx", *SHAPE, "--as", "bfloat16", "--limit", "0.01", "--json", "-"]),
    ("doctor", ["doctor", "--json"]),
]


@pytest.fixture(scope="module")
def folder(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, their dumps, and files for the other commands."""
    folder = tmp_path_factory.mktemp("json")
    models = {"sound": SOUND, "faulty": change_weight(SOUND, "conv2.weight", lambda weight: weight * 1.5)}
    for name, model in models.items():
        onnx.save(model, folder / f"{name}.onnx")
        tool.run("dump", f"{name}.onnx", *SHAPE, "--out", name, cwd=folder)
    for form in ("acl", "mindspore"):
        # Values of constants have no file in these forms, which makes the conversion incomplete.
        command = tool.command("convert", "-d", "sound", "-out", f"{form}_tree", "--form", form)
        subprocess.run(command, cwd=folder, capture_output=True, timeout=TIMEOUT_SECONDS)
    (folder / "add.json").write_text(json.dumps([ADD]))
    (folder / "acl.json").write_bytes((DIGITS / "acl.json").read_bytes())
    (folder / "x.npy").write_bytes((DIGITS / "labels.npy").read_bytes())
    return folder


def document(tool: Binary, words: list[str], folder: Path) -> Any:
    force = ["--force"] if "r.json" in words else []
    paths = [next(folder.glob(word)) if "*" in word else word for word in words]
    command = tool.command(*paths, *force)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode in (0, 1, 2, 4), done.stderr
    return json.loads((folder / "r.json").read_text() if force else done.stdout)


@pytest.mark.parametrize(("name", "words"), COMMANDS, ids=lambda value: value if isinstance(value, str) else value[0])
def test_output_follows_its_schema(
    tool: Binary, folder: Path, name: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # `doctor` lists the variables that are set.
    monkeypatch.setenv("OPSCOPE_ENGINE", "tract")
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    value = document(tool, words, folder)
    assert problems(value, schema) == []
    assert value["version"] == schema["properties"]["version"]["const"]


def test_every_schema_is_checked_and_listed() -> None:
    names = {path.stem for path in SCHEMAS.glob("*.json")}
    assert names == {name for name, _ in COMMANDS}
    page = (SCHEMAS / "README.md").read_text()
    assert all(f"({name}.json)" in page for name in names)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda value: value.pop("version"), "`version` is missing"),
        (lambda value: value.update(version=2), "2 is not 1"),
        (lambda value: value.update(new=1), "`new` is not described"),
        (lambda value: value["dumps"][0].update(verified="3"), "'3' is not integer"),
    ],
)
def test_the_checker_finds_mistakes(
    tool: Binary, folder: Path, change: Callable[[dict[str, Any]], None], problem: str
) -> None:
    value = document(tool, ["verify", "sound", "--json"], folder)
    change(value)
    (found,) = problems(value, json.loads((SCHEMAS / "verify.json").read_text()))
    assert problem in found
