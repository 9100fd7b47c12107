"""Dumps of SGLang's dumper on several ranks: notes about axes, and the places of ranks, put their parts together."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.skipif("OPSCOPE" not in os.environ, reason="set OPSCOPE to the built binary")


def save(folder: Path, rank: int, index: int, name: str, value: torch.Tensor, dims: str, info: dict[str, int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    meta = {"name": name, "step": 0, "rank": rank, "dims": dims, "sglang_parallel_info": info}
    path = folder / f"step=0___rank={rank}___dump_index={index}___name={name}.pt"
    torch.save({"value": value, "meta": meta}, path)


def compare(folder: Path) -> tuple[int, dict[str, Any], str]:
    command = [os.environ["OPSCOPE"], "compare", folder / "target", folder / "golden"]
    done = subprocess.run(
        [*command, "--json", folder / "result.json"], capture_output=True, text=True, check=False, timeout=600
    )
    return done.returncode, json.loads((folder / "result.json").read_text()), done.stdout + done.stderr


@pytest.mark.parametrize("is_faulty", [False, True])
def test_tensor_parallel_ranks(tmp_path: Path, is_faulty: bool) -> None:
    torch.manual_seed(3)
    x, weight, down = torch.randn(5, 8), torch.randn(8, 6), torch.randn(6, 4)
    hidden = x @ weight
    save(tmp_path / "golden", 0, 1, "hidden", hidden, "t h[tp]", {"tp_rank": 0, "tp_size": 1})
    save(tmp_path / "golden", 0, 2, "out", hidden @ down, "t h[tp:partial]", {"tp_rank": 0, "tp_size": 1})
    for rank in range(2):
        info = {"tp_rank": rank, "tp_size": 2, "pp_rank": 0, "pp_size": 1}
        part, rows = hidden.chunk(2, 1)[rank].clone(), down.chunk(2)[rank]
        partial = part @ rows
        if is_faulty and rank == 1:
            part[3, 2] += 5
        save(tmp_path / "target", rank, 1, "hidden", part, "t h[tp] # heads", info)
        save(tmp_path / "target", rank, 2, "out", partial, "t h[tp:partial]", info)
    code, result, text = compare(tmp_path)
    assert [one["target"][0]["op_name"] for one in result["operators"]] == ["hidden", "out"], text
    assert [one["level"] for one in result["operators"]] == ["fail" if is_faulty else "pass", "pass"], text
    assert code == (1 if is_faulty else 0), text
    if is_faulty:
        (slot,) = result["operators"][0]["slots"]
        assert slot["ranks"]["worst"] == [3, 5]
        (part_of_worst,) = [one for one in slot["ranks"]["worst_parts"] if one["side"] == "target"]
        assert part_of_worst == {"side": "target", "rank": 1, "coordinates": "tp=1", "index": [3, 2]}
