"""A dump of two ranks in each form, and back: `opscope convert --form`.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_convert_forms.py
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from binary import Binary
from cases import DIGITS_CASE

FORMS = ("acl", "mindspore", "native")


@pytest.fixture(scope="module")
def two_ranks(tool: Binary, generated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An AscendCL tree of the devices 2 and 5, which ran the same model on different inputs."""
    folder = tmp_path_factory.mktemp("ranks")
    model, devices = DIGITS_CASE.model_path(generated), []
    for seed in (0, 1):
        run = folder / f"seed{seed}"
        tool.dump(model, "--shape", "image:2,1,8,8", "--seed", seed, "--form", "acl", "--out", run)
        devices += run.glob("*/0")
    tree = folder / "tree" / "20240102030405"
    tree.mkdir(parents=True)
    for device, number in zip(devices, (2, 5), strict=True):
        device.rename(tree / str(number))
    return folder / "tree"


def tensors(tool: Binary, dump: Path, out: Path) -> Counter[tuple[object, ...]]:
    """Rank, slot and content of each tensor. Names are left out, as MindSpore's form changes characters of them."""
    tool.run("index", dump, "--out", out, "--stats")
    with duckdb.connect() as connection:
        columns = "rank, side, slot, dtype, shape, digest, sum"
        question = f"select {columns} from read_parquet('{out}/tensors/**/*.parquet')"
        return Counter((*row[:4], tuple(row[4]), *row[5:]) for row in connection.execute(question).fetchall())


@pytest.mark.sampled(0.4, each="first")
@pytest.mark.parametrize(("first", "second"), list(itertools.product(FORMS, FORMS)))
def test_ranks_and_contents_stay(tool: Binary, two_ranks: Path, tmp_path: Path, first: str, second: str) -> None:
    expected = tensors(tool, two_ranks, tmp_path / "expected")
    assert {rank for rank, *_ in expected} == {2, 5}
    source = two_ranks
    for nth, form in enumerate((first, second)):
        out = tmp_path / f"{nth}-{form}"
        told = json.loads(tool.run("convert", "-d", source, "--form", form, "--out", out, "--json"))
        assert (told["tensors"], told["failures"], told["left_out"]) == (expected.total(), [], [])
        assert tensors(tool, out, tmp_path / f"tables{nth}") == expected
        source = out


def test_ranks_of_a_conversion_are_one_run(tool: Binary, two_ranks: Path, tmp_path: Path) -> None:
    tool.run("convert", "-d", two_ranks, "--form", "native", "--out", tmp_path)
    (run_dir,) = tmp_path.iterdir()
    assert sorted(path.name for path in run_dir.glob("rank-*")) == ["rank-2", "rank-5"]
    record = json.loads((run_dir / ".opscope" / "run.json").read_text())
    assert record["state"] == "finished"
    compared = tool.run("compare", tmp_path, two_ranks)
    assert "pass" in compared.lower()


@pytest.mark.parametrize("form", FORMS)
def test_the_record_of_a_conversion_counts_what_it_wrote(tool: Binary, generated: Path, tmp_path: Path, form: str) -> None:
    model = DIGITS_CASE.model_path(generated)
    tool.dump(model, "--shape", "image:2,1,8,8", "--seed", 1, "--steps", 3, "--out", tmp_path / "run")
    told = json.loads(tool.run("convert", "-d", tmp_path / "run", "--form", form, "--out", tmp_path / form, "--json"))
    source, converted = (
        json.loads(next((tmp_path / name).glob("**/.opscope/run.json")).read_text()) for name in ("run", form)
    )
    for name in ("plan", "engine", "engine_graph", "n_engine_threads", "models", "n_steps"):
        assert converted[name] == source[name], name
    counters = converted["counters"]
    for name in ("n_offered", "n_selected", "n_written", "n_whole", "n_operators_written", "n_steps"):
        assert counters[name] == source["counters"][name] > 0, name
    assert (counters["n_refused"], counters["n_failed"], counters["n_dropped"]) == (0, 0, 0)
    assert (counters["n_files"], counters["n_bytes_written"]) == (told["files"], told["bytes_written"])
    assert f"{counters['n_written']} tensors written" in tool.run("show", tmp_path / form)
