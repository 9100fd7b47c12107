"""Work that several processes share without a cluster: `--shard`, `--parts`, `--merge`.

OPSCOPE=target/debug/opscope pytest tests/ray/test_shards.py
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from conftest import N_RANKS, N_STEPS, Tool

N_SHARDS = 4
N_UNITS = N_RANKS * N_STEPS


def make_parts(tool: Tool, target: Path, golden: Path, parts: Path, *options: object) -> list[dict[str, int]]:
    """What each of several processes did."""
    found = []
    for nth in range(N_SHARDS):
        done = tool.run("compare", target, golden, "--parts", parts, "--shard", f"{nth}/{N_SHARDS}", *options)
        assert done.code == 0, done.said
        found.append(json.loads(done.out))
    return found


def test_parts_come_to_what_one_process_finds(tool: Tool, target: Path, golden: Path, tmp_path: Path) -> None:
    expected = tool.compared(tmp_path / "one", target, golden)
    made = make_parts(tool, target, golden, tmp_path / "parts")
    assert sum(shard["made"] for shard in made) == N_UNITS
    assert {shard["units"] for shard in made} == {N_UNITS // N_SHARDS}
    assert tool.compared(tmp_path / "merged", target, golden, "--parts", tmp_path / "parts", "--merge") == expected
    again = make_parts(tool, target, golden, tmp_path / "parts")
    assert [shard["made"] for shard in again] == [0] * N_SHARDS


def test_merging_reads_no_elements_again(tool: Tool, target: Path, golden: Path, tmp_path: Path) -> None:
    make_parts(tool, target, golden, tmp_path / "parts")
    done = tool.run("compare", target, golden, "--parts", tmp_path / "parts", "--merge")
    assert f"{N_UNITS} parts merged; 0 B of elements re-read" in done.said


def test_options_come_to_the_same(tool: Tool, target: Path, golden: Path, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("operators: [{target: layers.0/up, golden: layers.0/up}]\nignore: ['layers.1/gelu*']\n")
    strict = tmp_path / "strict.yaml"
    strict.write_text("dtypes: {float: {rel_l2: {fail: 1.0e-9}}}\n")
    for nth, options in enumerate(
        [
            ("--steps", "1", "--ranks", "1-2"),
            ("--kl", "--outputs-only", "--filter", "layers.0/*"),
            ("--mapping", mapping, "--no-guesses"),
            ("--reference", golden, "--thresholds", strict),
        ]
    ):
        expected = tool.compared(tmp_path / f"one-{nth}", target, golden, *options)
        parts = tmp_path / f"parts-{nth}"
        make_parts(tool, target, golden, parts, *options)
        merged = tool.compared(tmp_path / f"merged-{nth}", target, golden, *options, "--parts", parts, "--merge")
        assert merged == expected, options


def test_other_limits_take_the_same_parts(tool: Tool, target: Path, golden: Path, tmp_path: Path) -> None:
    parts, strict = tmp_path / "parts", tmp_path / "strict.yaml"
    strict.write_text("dtypes: {float: {rel_l2: {fail: 1.0e-9}}}\n")
    make_parts(tool, target, golden, parts)
    options = ("--thresholds", strict)
    expected = tool.compared(tmp_path / "one", target, golden, *options)
    assert tool.compared(tmp_path / "merged", target, golden, *options, "--parts", parts, "--merge") == expected


def test_missing_parts_are_named(tool: Tool, target: Path, golden: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    for nth in range(1, N_SHARDS):
        tool.run("compare", target, golden, "--parts", parts, "--shard", f"{nth}/{N_SHARDS}")
    units = [json.loads(line) for line in units_of(tool, target, golden, parts)]
    missing = [unit["unit"] for unit in units if unit["state"] == "missing"]
    assert len(missing) == N_UNITS // N_SHARDS
    done = tool.run("compare", target, golden, "--parts", parts, "--merge")
    assert done.code == 4 and done.out == b""
    assert f"{len(missing)} of {N_UNITS} parts are missing: {', '.join(missing)}" in done.said
    # Without the demand they are made on the way.
    expected = tool.compared(tmp_path / "one", target, golden)
    assert tool.compared(tmp_path / "merged", target, golden, "--parts", parts) == expected
    assert len(list(parts.iterdir())) == N_UNITS


def units_of(tool: Tool, target: Path, golden: Path, parts: Path) -> list[bytes]:
    done = tool.run("compare", target, golden, "--parts", parts, "--list-units")
    assert done.code == 0, done.said
    return done.out.splitlines()


def test_a_damaged_part_is_made_again(tool: Tool, golden: Path, changed: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    make_parts(tool, changed, golden, parts)
    first, second, *_ = sorted(parts.iterdir())
    whole = first.read_bytes()
    middle = len(whole) // 2
    first.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    second.write_bytes(second.read_bytes()[:-5])
    done = tool.run("compare", changed, golden, "--parts", parts, "--merge")
    assert done.code == 4 and f"`{first.name}`" in done.said and f"`{second.name}`" in done.said
    made = make_parts(tool, changed, golden, parts)
    assert sum(shard["made"] for shard in made) == 2
    assert first.read_bytes() == whole
    expected = tool.compared(tmp_path / "one", changed, golden)
    assert tool.compared(tmp_path / "merged", changed, golden, "--parts", parts, "--merge") == expected


def test_a_dump_that_changed_is_looked_at_again(tool: Tool, golden: Path, changed: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    for nth in (0, 1):
        tool.run("compare", changed, golden, "--parts", parts, "--shard", f"{nth}/2")
    elements = next(path for path in sorted(changed.rglob("*.safetensors")) if "rank-1" in str(path))
    content = bytearray(elements.read_bytes())
    content[-1] ^= 0x40
    elements.write_bytes(content)
    # Even if a file's size and time are restored, the parts of other ranks are taken.
    os.utime(elements, ns=(0, 0))
    states = [json.loads(line) for line in units_of(tool, changed, golden, parts)]
    assert {unit["unit"] for unit in states if unit["state"] == "missing"} == {"rank-1.step-0", "rank-1.step-1"}
    assert tool.run("compare", changed, golden, "--parts", parts, "--merge").code == 4
    expected = tool.compared(tmp_path / "one", changed, golden)
    assert expected[0] == 1
    assert tool.compared(tmp_path / "merged", changed, golden, "--parts", parts) == expected


def test_one_unit_makes_one_part(tool: Tool, golden: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    done = tool.run("compare", golden, golden, "--parts", parts, "--unit", "rank-2.step-1")
    answer = json.loads(done.out)
    assert answer["made"] and [path.name for path in parts.iterdir()] == [answer["part"]]
    assert stat.S_IMODE(parts.stat().st_mode) == 0o700
    assert stat.S_IMODE((parts / answer["part"]).stat().st_mode) == 0o600
    done = tool.run("compare", golden, golden, "--parts", parts, "--unit", "rank-9.step-1")
    assert done.code == 2 and "`rank-9.step-1`" in done.said


def test_a_moved_dump_takes_the_same_parts(tool: Tool, golden: Path, changed: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    make_parts(tool, changed, golden, parts)
    moved = changed.rename(tmp_path / "moved")
    # By a relative path, too.
    done = tool.run("compare", "moved", golden, "--parts", parts, "--merge", cwd=moved.parent)
    assert done.code == 0 and "0 B of elements re-read" in done.said


def test_damaged_tables_are_told_of_as_by_one_process(tool: Tool, golden: Path, changed: Path, tmp_path: Path) -> None:
    table = sorted(changed.rglob("step-1.parquet"))[2]
    table.write_bytes(table.read_bytes()[:-100])
    one = tool.run("compare", changed, golden, "--json", tmp_path / "one.json")
    make_parts(tool, changed, golden, tmp_path / "parts")
    merged = tool.run("compare", changed, golden, "--json", tmp_path / "m.json", "--parts", tmp_path / "parts", "--merge")
    assert (merged.code, merged.out) == (one.code, one.out)
    assert one.code == 4
    assert (tmp_path / "m.json").read_bytes() == (tmp_path / "one.json").read_bytes()


def test_usage(tool: Tool, golden: Path, tmp_path: Path) -> None:
    for options in (
        ("--shard", "0/4"),
        ("--parts", tmp_path, "--shard", "4/4"),
        ("--parts", tmp_path, "--shard", "0/4", "--merge"),
        ("--parts", tmp_path, "--read-limit", "0"),
        ("--merge",),
    ):
        assert tool.run("compare", golden, golden, *options).code == 2, options


def test_an_index_in_shards_is_the_index_of_one_process(tool: Tool, target: Path, tmp_path: Path) -> None:
    one, shared = tmp_path / "one", tmp_path / "shared"
    assert tool.run("index", target, "--out", one, "--stats").code == 0
    for nth in range(3):
        done = tool.run("index", target, "--out", shared, "--stats", "--shard", f"{nth}/3")
        assert done.code == 0, done.said
        if nth == 1:
            done = tool.run("index", target, "--out", shared, "--stats", "--merge")
            assert done.code == 4 and "parts missing" in done.said
    assert not (shared / "views.sql").exists()
    assert tool.run("index", target, "--out", shared, "--stats", "--merge").code == 0
    assert tables_in(shared) == tables_in(one)


def tables_in(folder: Path) -> dict[str, bytes]:
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: content_of(path, folder) for name, path in files.items()}


def content_of(path: Path, folder: Path) -> bytes:
    content = path.read_bytes().replace(str(folder).encode(), b"")
    if path.name != "ranges.json":
        return content
    # It has the times of the files.
    parts = json.loads(content)
    return json.dumps(without_times(parts), sort_keys=True).encode()


def without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_times(own) for key, own in value.items() if "modified" not in key and "time" not in key}
    return [without_times(own) for own in value] if isinstance(value, list) else value
