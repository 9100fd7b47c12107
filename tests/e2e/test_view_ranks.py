"""The page's answers about a run of several ranks: operators over ranks, of one step or of all.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_view_ranks.py
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from binary import Binary
from rank_dumps import RankDump, RankOperator, Shard, chunk
from test_view import Page, served

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ranks"))

from generate import generate
from native_dump import DumpOptions
from network import Fault, Mesh

MESH = Mesh(pp=1, dp=2, tp=2)
N_STEPS = 3
FAULT = Fault("nan", 2, 1, "layers.1/gelu")


@pytest.fixture(scope="module")
def page(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    run = tmp_path_factory.mktemp("ranks") / "run"
    generate(run, MESH, N_STEPS, FAULT, DumpOptions())
    with served(tool, run) as page:
        yield page


def cells(answer: dict[str, Any], op_name: str) -> str:
    """The marks of an operator's row."""
    n = len(answer["columns"])
    row = [row["op_name"] for row in answer["rows"]].index(op_name)
    return answer["marks"][row * n : (row + 1) * n]


def test_a_column_stands_for_a_rank(page: Page) -> None:
    answer = page.ask("steps", by="rank")
    assert (answer["by"], answer["n_columns"]) == ("rank", MESH.n_ranks)
    assert answer["columns"] == [[rank, rank] for rank in range(MESH.n_ranks)]
    assert (answer["steps"], answer["ranks"]) == ([0, 1, 2], [0, 1, 2, 3])
    # Of all steps together the largest counts, and NaN before it.
    assert cells(answer, FAULT.op_name)[FAULT.rank] in "nx"
    before = page.ask("steps", by="rank", step=0)
    assert set(before["marks"]) == {"0"} and before["n_columns"] == MESH.n_ranks
    # Before ranks meet, only the one that made it has a NaN.
    one = page.ask("steps", by="rank", step=FAULT.step, q=f'name:"{FAULT.op_name}"')
    assert one["n_operators"] == 1 and [mark in "nx" for mark in one["marks"]] == [False, False, True, False]


def test_a_column_stands_for_a_step(page: Page) -> None:
    answer = page.ask("steps", rank=FAULT.rank)
    assert (answer["by"], answer["columns"]) == ("step", [[step, step] for step in range(N_STEPS)])
    assert answer == page.ask("steps", rank=FAULT.rank, by="step")
    assert [mark in "nx" for mark in cells(answer, FAULT.op_name)][: FAULT.step + 1] == [False, True]


def test_cells_name_an_execution_of_their_rank(page: Page) -> None:
    answer = page.ask("steps", by="rank", step=2)
    for i, op in enumerate(answer["ids"]):
        operator = page.ask(f"operator/{op}")
        row, rank = answer["rows"][i // MESH.n_ranks], i % MESH.n_ranks
        assert (operator["op_name"], operator["rank"], operator["step"]) == (row["op_name"], rank, 2)


def test_other_columns_are_refused(page: Page) -> None:
    status, content = page.raw("steps", by="device")
    assert status == 400 and b"`by` is `device`, expected `step` or `rank`" in content


def test_ranks_of_one_step_are_shown(tool: Binary, tmp_path: Path) -> None:
    generate(tmp_path / "run", MESH, 1, None, DumpOptions(has_statistics=False))
    with served(tool, tmp_path / "run") as page:
        assert "steps" in page.ask("info")["views"]
        assert page.ask("steps", by="rank")["n_columns"] == MESH.n_ranks
    one_rank = tmp_path / "run" / f"worldsize{MESH.n_ranks}_global_rank1"
    with served(tool, one_rank) as page:
        assert "steps" not in page.ask("info")["views"]


def test_a_tensor_in_parts_is_shown_as_the_whole(tool: Binary, tmp_path: Path) -> None:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    broken = whole.copy()
    broken[2, 4] = -50

    def run(placement: str) -> RankDump:
        note = f"{placement} of [4,6]"
        shards = [Shard(chunk(broken, 1, rank, 2), f"tp={rank}/2:{note}") for rank in range(2)]
        return RankDump({rank: [RankOperator("up", [shard])] for rank, shard in enumerate(shards)})

    golden = RankDump({None: [RankOperator("up", [whole])]}).write(tmp_path / "golden")
    with served(tool, run("S(1)").write(tmp_path / "cut"), golden) as page:
        for side, expected in (("target", broken), ("golden", whole)):
            status, content = page.raw("npy", op=0, slot="out0", side=side)
            assert status == 200, content
            np.testing.assert_array_equal(np.load(io.BytesIO(content)), expected)
    # Ranks with half of the columns each do not hold the same rows.
    with served(tool, run("S(0)").write(tmp_path / "wrong"), golden) as page:
        status, content = page.raw("npy", op=0, slot="out0", side="target")
        assert status == 404 and b"by its note it should hold 2" in content
