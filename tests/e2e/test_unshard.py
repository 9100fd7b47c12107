"""`opscope compare` of runs whose ranks share tensors in different ways: parts are put together first."""

from __future__ import annotations

import json
import math
import re
import resource
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import ml_dtypes
import numpy as np
import pytest
from binary import Binary
from numpy.typing import NDArray
from rank_dumps import TIME, RankDump, RankOperator, Shard, chunk, copy_table

FINE, FOUND, USAGE, PARTIAL = 0, 1, 2, 4
RNG = np.random.default_rng(22)


@dataclass
class Outcome:
    code: int
    result: dict[str, Any]
    text: str

    def operator(self, name: str) -> dict[str, Any]:
        (found,) = [one for one in self.result["operators"] if one["target"][-1]["op_name"] == name]
        return found

    def slot(self, name: str, key: str = "output.0") -> dict[str, Any]:
        (found,) = [slot for slot in self.operator(name)["slots"] if slot["slot"] == key]
        return found

    def reasons(self) -> set[str]:
        return {skip["reason"] for skip in self.result["skips"]}


def compare(
    tool: Binary, folder: Path, target: RankDump | Path, golden: RankDump | Path, /, *options: str, **mapping: Any
) -> Outcome:
    """Compares two dumps; `mapping` is the part `ranks` of one."""
    sides = []
    for name, side in (("target", target), ("golden", golden)):
        path = folder / name
        sides.append(side.write(path) if isinstance(side, RankDump) and not path.exists() else path)
    arguments = [str(tool.path), "compare", *map(str, sides), "--json", str(folder / "result.json"), "--force"]
    if mapping:
        (folder / "mapping.json").write_text(json.dumps({"ranks": mapping}))
        arguments += ["--mapping", str(folder / "mapping.json")]
    run = subprocess.run([*arguments, *options], capture_output=True, text=True, check=False, timeout=600)
    text = run.stdout + run.stderr
    path = folder / "result.json"
    return Outcome(run.returncode, json.loads(path.read_text()) if path.exists() else {}, text)


def one_process(**outputs: NDArray) -> RankDump:
    return RankDump({None: [RankOperator(name, [values]) for name, values in outputs.items()]})


def values(*shape: int, dtype: Any = np.float32) -> NDArray:
    return RNG.normal(size=shape).astype(dtype)


def rel_l2(target: NDArray, golden: NDArray) -> float:
    target, golden = target.astype(np.float64), golden.astype(np.float64)
    return float(np.linalg.norm(target - golden) / np.linalg.norm(golden))


class Mlp:
    """A gated block, once by one process and once with its weights cut over `dp * tp` ranks."""

    def __init__(self) -> None:
        self.x = values(6, 16)
        self.up = values(24, 16)
        self.down = values(16, 24)
        self.hidden = self.x @ self.up.T
        self.out = self.hidden @ self.down.T

    def golden(self) -> RankDump:
        return RankDump(
            {
                None: [
                    RankOperator("up", [self.hidden], [self.x, self.up]),
                    RankOperator("down", [self.out], [self.hidden, self.down]),
                ]
            }
        )

    def sharded(self, dp: int, tp: int) -> RankDump:
        dump = RankDump()
        for rank in range(dp * tp):
            d, t = divmod(rank, tp)

            def note(how: str, shape: tuple[int, ...], d: int = d, t: int = t) -> str:
                extents = ",".join(map(str, shape))
                return f"dp={d}/{dp}:R,tp={t}/{tp}:{how} of [{extents}]"

            up, down = chunk(self.up, 0, t, tp), chunk(self.down, 1, t, tp)
            hidden = self.x @ up.T
            # What each contributes; only the sum is what one process has.
            partial = hidden @ down.T
            dump.ranks[rank] = [
                RankOperator(
                    "up",
                    [Shard(hidden, note("S(1)", (6, 24)))],
                    [Shard(self.x, note("R", (6, 16))), Shard(up, note("S(0)", (24, 16)))],
                ),
                RankOperator(
                    "down",
                    [Shard(partial, note("P(sum)", (6, 16)))],
                    [Shard(hidden, note("S(1)", (6, 24))), Shard(down, note("S(1)", (16, 24)))],
                ),
                RankOperator(
                    "reduce", [self.out], [partial], "all_reduce", collective="all_reduce(sum)", group=f"0-{tp - 1}"
                ),
            ]
        return dump


@pytest.mark.parametrize(("dp", "tp"), [(1, 2), (2, 2), (1, 4), (2, 3), (1, 5)])
def test_ranks_against_one_process(tool: Binary, tmp_path: Path, dp: int, tp: int) -> None:
    mlp = Mlp()
    found = compare(tool, tmp_path, mlp.sharded(dp, tp), mlp.golden())
    assert found.code == FINE, found.text
    # The collective is reported, but not blamed.
    assert found.reasons() == {"collective"}
    assert found.result["summary"]["operators"] == [2, 0, 0, 0]
    # Only the sum is recomputed.
    assert found.slot("up")["metrics"]["is_identical"] in (0, 1)
    assert found.slot("up", "input.1")["metrics"]["is_identical"] == 1
    assert found.slot("down")["ranks"]["n_target"] == dp * tp


def test_ranks_against_other_ranks(tool: Binary, tmp_path: Path) -> None:
    mlp = Mlp()
    found = compare(tool, tmp_path, mlp.sharded(1, 4), mlp.sharded(2, 2))
    assert found.code == FINE, found.text
    assert found.slot("up", "input.1")["ranks"] == {"n_target": 4, "n_golden": 4}


def test_equal_ranks_are_compared_rank_by_rank(tool: Binary, tmp_path: Path) -> None:
    mlp = Mlp()
    found = compare(tool, tmp_path, mlp.sharded(1, 2), mlp.sharded(1, 2))
    assert (found.code, len(found.result["operators"])) == (FINE, 6)
    found = compare(tool, tmp_path, mlp.sharded(1, 2), mlp.sharded(1, 2), "--whole")
    assert (found.code, len(found.result["operators"])) == (FINE, 3)


def test_a_fault_in_one_shard_is_named_with_its_rank(tool: Binary, tmp_path: Path) -> None:
    mlp = Mlp()
    target = mlp.sharded(1, 4)
    weight = target.ranks[2][0].inputs[1]
    weight.values[1, 5] += 7
    found = compare(tool, tmp_path, target, mlp.golden())
    assert found.code == FOUND
    slot = found.slot("up", "input.1")
    assert (slot["level"], slot["ranks"]["worst"]) == ("fail", [13, 5])
    assert slot["ranks"]["worst_parts"] == [{"side": "target", "rank": 2, "coordinates": "tp=2", "index": [1, 5]}]
    assert slot["ranks"]["apart"] == [
        {"side": "target", "ranks": [2], "coordinates": "tp=2", "region": "[12:18, :]", "n": 1}
    ]
    faulty = mlp.up.copy()
    faulty[13, 5] += 7
    assert slot["metrics"]["rel_l2"] == pytest.approx(rel_l2(faulty, mlp.up), rel=1e-12)
    assert " at mm `up` input.1 in the part of rank 2 (tp=2) alone" in found.text
    assert "largest difference, target: [1, 5] of rank 2" in found.text


def test_a_fault_in_a_contribution_names_all_that_contribute(tool: Binary, tmp_path: Path) -> None:
    mlp = Mlp()
    target = mlp.sharded(1, 2)
    target.ranks[1][1].outputs[0].values[3, 4] = np.nan
    found = compare(tool, tmp_path, target, mlp.golden())
    assert found.code == FOUND
    slot = found.slot("down")
    assert slot["metrics"]["first_bad"] == 3 * 16 + 4
    assert slot["ranks"]["apart"][0]["ranks"] == [0, 1]


@pytest.mark.parametrize(("dp", "apart"), [(2, [2]), (4, [4])])
def test_replicas_that_differ_are_named(tool: Binary, tmp_path: Path, dp: int, apart: list[int]) -> None:
    mlp = Mlp()
    target = mlp.sharded(dp, 2)
    target.ranks[apart[0]][0].inputs[1].values[0, 0] += 3
    found = compare(tool, tmp_path, target, mlp.golden())
    assert found.code == FOUND
    slot = found.slot("up", "input.1")
    # The tensor itself is that of the others, and right.
    assert slot["metrics"]["is_identical"] == 1
    (replicas,) = slot["ranks"]["replicas"]
    assert (replicas["side"], replicas["apart"]) == ("target", apart)
    # Ranks with the other part of the weight have nothing to agree with these on.
    assert replicas["others"] == [rank for rank in range(0, 2 * dp, 2) if rank not in apart]
    assert replicas.get("is_tied", False) == (dp == 2)
    assert [rule["metric"] for rule in slot["rules"]] == ["replicas"]


def test_missing_ranks_are_told_and_never_compared_half(tool: Binary, tmp_path: Path) -> None:
    mlp = Mlp()
    target = mlp.sharded(1, 4)
    del target.ranks[3]
    found = compare(tool, tmp_path, target, mlp.golden())
    assert found.code == PARTIAL
    skips = [skip for skip in found.result["skips"] if skip["reason"] == "in_parts"]
    # Both weights, both values between them and the sum.
    assert len(skips) == 5
    assert all("are not in the dump" in skip["message"] for skip in skips)
    # What each rank has by itself is compared.
    assert found.slot("up", "input.0")["level"] == "pass"


def test_ranks_without_notes(tool: Binary, tmp_path: Path) -> None:
    whole = values(4, 8)
    same = values(3)
    target = RankDump(
        {rank: [RankOperator("a", [chunk(whole, 0, rank, 2)]), RankOperator("b", [same])] for rank in (0, 1)}
    )
    # One process has the batch of both ranks, in their order.
    found = compare(tool, tmp_path, target, one_process(a=whole, b=same))
    assert (found.code, found.slot("a")["ranks"]["n_target"]) == (FINE, 2), found.text
    # In another order the sharing is unknown, and a fault would look the same.
    (tmp_path / "second").mkdir()
    found = compare(tool, tmp_path / "second", target, one_process(a=whole[::-1].copy(), b=same), "--whole")
    assert found.code == PARTIAL
    assert found.slot("a")["level"] == "skip"
    assert found.slot("b")["level"] == "pass"
    (skip,) = found.result["skips"]
    assert (skip["reason"], skip["operator"]["op_name"]) == ("in_parts", "a")


# Every rule of a mapping: the parts that ranks hold, the rule, and the whole.


@dataclass
class Rule:
    mesh: list[str]
    rule: dict[str, Any]
    parts: list[NDArray]
    whole: NDArray
    # Of the whole's elements, as the comparison has it.
    place: tuple[int, ...] = ()
    # The rank and the index of the part's element that is broken for the fault.
    broken: tuple[int, tuple[int, ...]] = (0, ())
    golden: dict[str, Any] | None = None
    golden_values: NDArray | None = None


def rows(tensor: NDArray, *ranges: tuple[int, int], axis: int = 0) -> NDArray:
    return np.concatenate([np.take(tensor, range(*one), axis=axis) for one in ranges], axis=axis)


def rules() -> dict[str, Rule]:
    found = {}
    bsh = values(2, 8, 12)
    found["sharded"] = Rule(
        ["dp=2", "tp=2"],
        {"dims": "b[dp] s h[tp]"},
        [chunk(chunk(bsh, 0, d, 2), 2, t, 2) for d in range(2) for t in range(2)],
        bsh,
        (1, 3, 8),
        (3, (0, 3, 2)),
    )
    found["uneven"] = Rule(
        ["tp=3"], {"dims": "b s h[tp]"}, [bsh[..., :5], bsh[..., 5:6], bsh[..., 6:]], bsh, (0, 1, 7), (2, (0, 1, 1))
    )
    contributions = [values(2, 8, 12) for _ in range(3)]
    found["partial"] = Rule(
        ["tp=3"],
        {"dims": "b s h[tp:partial]"},
        contributions,
        sum(part.astype(np.float64) for part in contributions).astype(np.float32),
        (1, 1, 1),
        (2, (1, 1, 1)),
    )
    found["largest"] = Rule(
        ["tp=3"],
        {"dims": "b s h[tp:partial(max)]"},
        contributions,
        np.max(contributions, axis=0),
        (1, 1, 1),
        (2, (1, 1, 1)),
    )
    halves = [values(4, 4, dtype=ml_dtypes.bfloat16) for _ in range(4)]
    found["mean of bfloat16"] = Rule(
        ["tp=4"],
        {"dims": "s h[tp:partial(avg)]"},
        halves,
        np.mean([part.astype(np.float64) for part in halves], axis=0).astype(ml_dtypes.bfloat16),
        (2, 3),
        (1, (2, 3)),
    )
    found["zigzag"] = Rule(
        ["cp=2"],
        {"dims": "b s[cp:zigzag] h"},
        [rows(bsh, (0, 2), (6, 8), axis=1), rows(bsh, (2, 6), axis=1)],
        bsh,
        (0, 7, 5),
        (0, (0, 3, 5)),
    )
    # Four heads of queries and two of keys and values, of 3 elements each, on two ranks.
    qkv = values(5, 24)
    found["fused"] = Rule(
        ["tp=2"],
        {"dims": "t h[tp]", "fused": {"h": "q*4 k*2 v*2"}},
        [rows(qkv, (0, 6), (12, 15), (18, 21), axis=1), rows(qkv, (6, 12), (15, 18), (21, 24), axis=1)],
        qkv,
        (2, 19),
        (0, (2, 10)),
    )
    # More ranks than heads of keys: each head is on two ranks.
    found["fused, fewer heads than ranks"] = Rule(
        ["tp=4"],
        {"dims": "t h[tp]", "fused": {"h": "q*4 k*2 v*2"}},
        [
            rows(
                qkv, (3 * r, 3 * r + 3), (12 + r // 2 * 3, 15 + r // 2 * 3), (18 + r // 2 * 3, 21 + r // 2 * 3), axis=1
            )
            for r in range(4)
        ],
        qkv,
        (2, 3),
        (1, (2, 0)),
    )
    # Groups of two queries, a key and a value; the other side has all queries first.
    heads = qkv.reshape(5, 8, 3)
    grouped = heads[:, [0, 1, 4, 6, 2, 3, 5, 7]].reshape(5, 24)
    found["grouped"] = Rule(
        ["tp=2"],
        {"dims": "t h[tp]", "fused": {"h": "(q*2 k v)*2"}},
        [grouped[:, :12], grouped[:, 12:]],
        qkv,
        (1, 15),
        (1, (1, 6)),
    )
    gate_up = values(3, 8)
    found["gate and up"] = Rule(
        ["tp=2"],
        {"dims": "t h[tp]", "fused": {"h": "gate up"}},
        [rows(gate_up, (0, 2), (4, 6), axis=1), rows(gate_up, (2, 4), (6, 8), axis=1)],
        gate_up,
        (0, 4),
        (0, (0, 2)),
    )
    vocabulary = values(10, 4)
    padded = np.concatenate([vocabulary, np.full((2, 4), 99, np.float32)])
    found["padded vocabulary"] = Rule(
        ["tp=4"],
        {"dims": "v[tp] h", "extents": {"v": 10}},
        [chunk(padded, 0, rank, 4) for rank in range(4)],
        vocabulary,
        (9, 2),
        (3, (0, 2)),
    )
    experts = values(6, 2, 3)
    found["experts"] = Rule(
        ["ep=3"],
        {"dims": "e[ep] d h"},
        [experts[2 * r : 2 * r + 2] for r in range(3)],
        experts,
        (4, 1, 1),
        (2, (0, 1, 1)),
    )
    found["turned"] = Rule(
        ["tp=2"],
        {"dims": "s b h[tp]", "as": "b s h"},
        [np.ascontiguousarray(chunk(bsh, 2, t, 2).transpose(1, 0, 2)) for t in range(2)],
        bsh,
        (1, 3, 8),
        (1, (3, 1, 2)),
    )
    lengths = [3, 1, 4]
    batch = values(3, 5, 2)
    packed = np.concatenate([batch[i, :n] for i, n in enumerate(lengths)])
    for name, tokens in {
        "packed": {"lengths": lengths},
        "packed by bounds": {"cu_seqlens": [0, 3, 4, 8]},
    }.items():
        found[name] = Rule(
            ["tp=2"],
            {"dims": "t h[tp]"},
            [packed[:, :1], packed[:, 1:]],
            packed,
            (4, 1),
            (1, (4, 0)),
            {"tensors": [{"operator": "*", "dims": "b s h", "tokens": tokens}]},
            batch,
        )
    left = np.zeros_like(batch)
    for i, n in enumerate(lengths):
        left[i, 5 - n :] = batch[i, :n]
    found["padded on the left, and cut by batch"] = Rule(
        ["dp=3"],
        {"dims": "b[dp] s h", "tokens": {"lengths": lengths, "padding": "left"}},
        [left[i : i + 1] for i in range(3)],
        packed,
        (7, 0),
        (2, (0, 4, 0)),
    )
    found["packed and zigzag"] = Rule(
        ["cp=2"],
        {"dims": "t[cp:zigzag] h", "tokens": {"lengths": [4, 4]}},
        [rows(packed, (0, 1), (3, 4), (4, 5), (7, 8)), rows(packed, (1, 3), (5, 7))],
        packed,
        (7, 1),
        (0, (3, 1)),
    )
    return found


RULES = rules()


def dumps_of(rule: Rule, parts: list[NDArray]) -> tuple[RankDump, RankDump, dict[str, Any]]:
    target = RankDump({rank: [RankOperator("layer.0.op", [part])] for rank, part in enumerate(parts)})
    golden = one_process(**{"layer.0.op": rule.whole if rule.golden_values is None else rule.golden_values})
    side = {"mesh": rule.mesh, "tensors": [{"operator": "layer.*", "slot": "output.0", **rule.rule}]}
    return target, golden, {"target": side, **({"golden": rule.golden} if rule.golden else {})}


@pytest.mark.sampled(0.35)
@pytest.mark.parametrize("name", RULES)
def test_rules_of_a_mapping(tool: Binary, tmp_path: Path, name: str) -> None:
    rule = RULES[name]
    target, golden, mapping = dumps_of(rule, rule.parts)
    found = compare(tool, tmp_path, target, golden, **mapping)
    assert found.code == FINE, found.text
    slot = found.slot("layer.0.op")
    assert slot["metrics"]["n"] == rule.whole.size
    assert slot["metrics"]["is_identical"] == 1, slot["metrics"]
    assert slot["target"]["shape"] == list(rule.whole.shape)


@pytest.mark.sampled(0.35)
@pytest.mark.parametrize("name", RULES)
def test_a_fault_behind_a_rule(tool: Binary, tmp_path: Path, name: str) -> None:
    rule = RULES[name]
    rank, index = rule.broken
    parts = [part.copy() for part in rule.parts]
    parts[rank][index] = parts[rank][index] + 64
    target, golden, mapping = dumps_of(rule, parts)
    found = compare(tool, tmp_path, target, golden, **mapping)
    assert found.code == FOUND, found.text
    slot = found.slot("layer.0.op")
    assert slot["metrics"]["n_equal"] == rule.whole.size - 1
    assert slot["ranks"]["worst"] == list(rule.place)
    parts_of_worst = [part for part in slot["ranks"]["worst_parts"] if part["side"] == "target"]
    assert (rank, list(index)) in [(part["rank"], part["index"]) for part in parts_of_worst]
    if "partial" not in rule.rule["dims"]:
        assert [part["rank"] for part in parts_of_worst] == [rank]
        assert slot["ranks"]["apart"][0]["ranks"] == [rank]
        assert f"of rank {rank}" in found.text
    wrong = rule.whole.astype(np.float64)
    wrong[rule.place] = slot["metrics"]["worst_target"]
    assert slot["metrics"]["rel_l2"] == pytest.approx(rel_l2(wrong, rule.whole), rel=1e-9)


def test_a_shard_in_the_wrong_order_is_named(tool: Binary, tmp_path: Path) -> None:
    rule = RULES["sharded"]
    target, golden, mapping = dumps_of(rule, [rule.parts[0], rule.parts[2], rule.parts[1], rule.parts[3]])
    found = compare(tool, tmp_path, target, golden, **mapping)
    assert found.code == FOUND
    assert sorted(part["ranks"] for part in found.slot("layer.0.op")["ranks"]["apart"]) == [[1], [2]]


def test_tokens_that_a_mask_tells(tool: Binary, tmp_path: Path) -> None:
    batch, mask = values(2, 4, 3), np.array([[1, 1, 0, 0], [0, 1, 1, 1]], np.int64)
    packed = batch[mask.astype(bool)]
    target = RankDump({None: [RankOperator("mask", [mask]), RankOperator("op", [batch])]})
    golden = one_process(op=packed)
    rule = {"operator": "op", "dims": "b s h", "tokens": {"mask": "mask:output.0"}}
    found = compare(tool, tmp_path, target, golden, target={"tensors": [rule]})
    assert found.slot("op")["metrics"]["is_identical"] == 1
    assert found.slot("op")["target"]["shape"] == [5, 3]
    assert found.reasons() == {"missing"}


def test_lengths_that_a_tensor_tells(tool: Binary, tmp_path: Path) -> None:
    batch, lengths = values(3, 4, 2), np.array([4, 0, 2], np.int32)
    packed = np.concatenate([batch[i, :n] for i, n in enumerate(lengths)])
    target = RankDump({None: [RankOperator("n", [lengths]), RankOperator("op", [batch])]})
    golden = RankDump({None: [RankOperator("n", [lengths]), RankOperator("op", [packed])]})
    rule = {"operator": "op", "dims": "b s h", "tokens": {"lengths": "n:output.0"}}
    found = compare(tool, tmp_path, target, golden, target={"tensors": [rule]})
    assert found.code == FINE, found.text


def test_layers_and_experts_count_over_all_ranks(tool: Binary, tmp_path: Path) -> None:
    outputs = {f"layers.{layer}.experts.{expert}.mm": values(3) for layer in range(4) for expert in range(4)}
    target = RankDump()
    for rank in range(4):
        pp, ep = divmod(rank, 2)
        target.ranks[rank] = [
            RankOperator(
                f"layers.{layer}.experts.{expert}.mm",
                [outputs[f"layers.{2 * pp + layer}.experts.{2 * ep + expert}.mm"]],
            )
            for layer in range(2)
            for expert in range(2)
        ]
    side = {
        "mesh": ["pp=2", "ep=2"],
        "renumber": [
            {"before": "layers.", "axis": "pp", "by": 2},
            {"before": "experts.", "axis": "ep", "by": 2},
        ],
    }
    found = compare(tool, tmp_path, target, one_process(**outputs), target=side)
    assert (found.code, found.result["summary"]["operators"]) == (FINE, [16, 0, 0, 0])


def test_stages_of_a_pipeline_are_one_model(tool: Binary, tmp_path: Path) -> None:
    outputs = {f"layer.{i}": values(4) for i in range(4)}
    target = RankDump(
        {
            rank: [RankOperator(f"layer.{i}", [outputs[f"layer.{i}"]]) for i in (2 * rank, 2 * rank + 1)]
            for rank in (0, 1)
        }
    )
    found = compare(tool, tmp_path, target, one_process(**outputs), "--whole")
    assert (found.code, found.result["summary"]["operators"]) == (FINE, [4, 0, 0, 0])


def test_ranks_of_another_order(tool: Binary, tmp_path: Path) -> None:
    whole = values(4, 6)
    # The mesh numbers along dp first, which no row-major order of `dp, tp` does.
    parts = [chunk(chunk(whole, 0, rank % 2, 2), 1, rank // 2, 2) for rank in range(4)]
    side = {
        "mesh": ["dp=2", "tp=2"],
        "ranks": {str(rank): f"dp={rank % 2},tp={rank // 2}" for rank in range(4)},
        "tensors": [{"operator": "*", "dims": "b[dp] h[tp]"}],
    }
    target = RankDump({rank: [RankOperator("op", [part])] for rank, part in enumerate(parts)})
    found = compare(tool, tmp_path, target, one_process(op=whole), target=side)
    assert found.code == FINE, found.text


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"dims": "b h[xp]"}, "`ranks.target.tensors[0].dims`: the mesh has no axis `xp`"),
        ({"dims": "b h[tp:half]"}, "`half` is none of sharded"),
        ({"dims": "b h", "fused": {"q": "q k"}}, "`ranks.target.tensors[0].fused`: `dims` has no axis `q`"),
        ({"dims": "b h", "fused": {"h": "(q k"}}, "is no list of pieces"),
        ({"dims": "b h", "slot": "out"}, "`out` is no slot"),
        ({"dims": "b h", "tokens": {"lengths": [1]}}, "neither the axes `b` and `s` nor an axis `t`"),
    ],
)
def test_rules_that_make_no_sense(tool: Binary, tmp_path: Path, rule: dict[str, Any], message: str) -> None:
    whole = values(2, 4)
    target = RankDump({0: [RankOperator("op", [whole])]})
    side = {"mesh": ["tp=2"], "tensors": [{"operator": "*", **rule}]}
    found = compare(tool, tmp_path, target, one_process(op=whole), target=side)
    assert found.code == USAGE
    assert message in found.text.replace("\n", " ")


def test_a_rule_that_does_not_fit_a_tensor(tool: Binary, tmp_path: Path) -> None:
    whole = values(2, 4)
    target = RankDump({rank: [RankOperator("op", [chunk(whole, 1, rank, 2)])] for rank in range(2)})
    for dims, message in (("b s h[tp]", "no note says"), ("b[tp] h", "should hold the same"), ("b h", "no note says")):
        side = {"mesh": ["tp=2"], "tensors": [{"operator": "*", "dims": dims}]}
        found = compare(tool, tmp_path, target, one_process(op=whole), target=side)
        if dims == "b s h[tp]":
            # A rule that no tensor of the side fits would change nothing.
            assert (found.code, "`ranks.target.tensors[0]`: no tensor fits it" in found.text) == (USAGE, True), found.text
            continue
        if dims == "b[tp] h":
            # Two tensors of [2, 2] make one of [4, 2], which the golden side does not have.
            assert found.code == FOUND
            assert found.slot("op")["rules"][0]["metric"] == "shape"
            continue
        assert found.code == PARTIAL, found.text
        assert message in found.result["skips"][0]["message"]


# A tensor of 1 GiB in two parts against the whole, with less memory than a quarter of it.
N_ROWS, N_COLUMNS = 1 << 14, 1 << 14
DATA_BYTES_MAX = 200 << 20


def sparse_dump(path: Path, rank: int, shape: tuple[int, int], placement: str | None, broken: tuple[int, int]) -> None:
    """A dump of one tensor of zeros that takes no room on the disk, with a one in it."""
    dump = RankDump({rank: [RankOperator("op", [Shard(np.zeros((1, 1), np.float32), placement)])]})
    dump.write(path)
    table = path / TIME / f"rank-{rank}/operators/step-0.parquet"
    n_bytes = math.prod(shape) * 4
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE slots AS SELECT * FROM '{table}'")
        database.execute(f"UPDATE slots SET shape = {list(shape)}, n_elements = {n_bytes // 4}, n_bytes = {n_bytes}")
        copy_table(database, table)
        (offset,) = database.execute('SELECT "offset" FROM slots').fetchone()
    with (path / TIME / f"rank-{rank}/elements-0.safetensors").open("r+b") as file:
        header = {"t": {"dtype": "F32", "shape": list(shape), "data_offsets": [0, n_bytes]}}
        text = json.dumps(header).encode().ljust(offset - 8)
        assert len(text) == offset - 8
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(offset + n_bytes)
        if broken[0] >= 0:
            file.seek(offset + (broken[0] * shape[1] + broken[1]) * 4)
            file.write(struct.pack("<f", 1.0))


def test_memory_does_not_grow_with_the_tensor(tool: Binary, tmp_path: Path) -> None:
    for rank in range(2):
        note = f"tp={rank}/2:S(0) of [{N_ROWS},{N_COLUMNS}]"
        broken = (5, 77) if rank == 1 else (-1, -1)
        sparse_dump(tmp_path / "target", rank, (N_ROWS // 2, N_COLUMNS), note, broken)
    sparse_dump(tmp_path / "golden", 0, (N_ROWS, N_COLUMNS), None, (-1, -1))

    def limited() -> None:
        # Heap and other private memory; files that are only read are not counted.
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES_MAX, DATA_BYTES_MAX))

    arguments = ["compare", tmp_path / "target", tmp_path / "golden", "--json", tmp_path / "result.json", "--jobs", "2"]
    run = subprocess.run(
        [tool.path, *arguments], preexec_fn=limited, capture_output=True, text=True, check=False, timeout=600
    )
    assert run.returncode == FOUND, run.stderr
    found = Outcome(run.returncode, json.loads((tmp_path / "result.json").read_text()), run.stdout)
    assert found.slot("op")["metrics"]["n"] == N_ROWS * N_COLUMNS
    assert found.slot("op")["ranks"]["worst"] == [N_ROWS // 2 + 5, 77]
    assert found.slot("op")["ranks"]["worst_parts"][0]["index"] == [5, 77]


SAMPLES = values(6, 4)


def counting(*, has_collective: bool = False, n: float = 3, is_read: bool = True) -> RankDump:
    """Two ranks with a part of a batch each, which count their samples."""
    dump = RankDump()
    for rank in range(2):
        x, count = SAMPLES[3 * rank :][:3], np.full((4,), n, np.float32)
        collective = {"collective": "all_reduce(sum)", "group": "0-1"} if has_collective else {}
        dump.ranks[rank] = [RankOperator("count", [count], [x], "Count", **collective)]
        if is_read:
            weight = np.arange(6, dtype=np.float32)
            dump.ranks[rank].append(RankOperator("use", [SAMPLES[rank, :2]], [count, weight], "Use"))
    return dump


def counted(n: float = 6, weight: float = 1) -> RankDump:
    count = np.full((4,), n, np.float32)
    used = SAMPLES[:2, :2].reshape(4)
    return RankDump(
        {
            None: [
                RankOperator("count", [count], [SAMPLES], "Count"),
                RankOperator("use", [used], [count, weight * np.arange(6, dtype=np.float32)], "Use"),
            ]
        }
    )


@pytest.mark.parametrize("dims", [None, "b[dp:varying] ..."])
def test_what_ranks_have_alike_of_parts_of_their_own_is_not_the_whole(
    tool: Binary, tmp_path: Path, dims: str | None
) -> None:
    mapping = {"target": {"mesh": ["dp=2"], "tensors": [{"operator": "*", "dims": dims}]}} if dims else {}
    found = compare(tool, tmp_path, counting(), counted(), "--whole", **mapping)
    # Neither the number of samples nor what reads it is wrong, as far as is known.
    for operator, key in (("count", "output.0"), ("use", "input.0")):
        assert found.slot(operator, key)["level"] == "skip", found.text
    skips = {(skip["operator"]["op_name"], skip["slot"]) for skip in found.result["skips"] if "slot" in skip}
    assert {("count", "output.0"), ("use", "input.0")} <= skips
    assert found.slot("use", "input.1")["level"] == "pass"
    assert found.code == PARTIAL, found.text


def test_a_weight_that_all_ranks_have_wrong_is_told(tool: Binary, tmp_path: Path) -> None:
    found = compare(tool, tmp_path, counting(), counted(weight=2), "--whole")
    assert found.code == FOUND
    assert found.slot("use", "input.1")["level"] == "fail", found.text


def test_a_wrong_result_of_a_collective_is_told(tool: Binary, tmp_path: Path) -> None:
    golden = counting(has_collective=True, n=6)
    found = compare(tool, tmp_path, counting(has_collective=True), golden, "--whole")
    assert found.code == FOUND
    assert found.slot("count")["level"] == "fail", found.text


def test_rules_hold_for_a_phase_of_training(tool: Binary, tmp_path: Path) -> None:
    rule = {"operator": "*", "phase": "onward", "dims": "b[dp] ..."}
    found = compare(tool, tmp_path, counting(), counted(), target={"mesh": ["dp=2"], "tensors": [rule]})
    assert found.code == USAGE
    assert "`ranks.target.tensors[0].phase`: there is no phase `onward`" in found.text
    # The phase of these operators is unknown, so the rule matches none.
    rule["phase"] = "forward"
    (tmp_path / "second").mkdir()
    found = compare(tool, tmp_path / "second", counting(), counted(), target={"mesh": ["dp=2"], "tensors": [rule]})
    assert (found.code, "no tensor fits it" in found.text) == (USAGE, True), found.text


def test_rounding_that_a_sum_leaves_behind_is_handed_on(tool: Binary, tmp_path: Path) -> None:
    def chain(noise: float, *, is_fresh: bool = False) -> RankDump:
        rng = np.random.default_rng(3)
        x = rng.normal(size=(64, 8)).astype(np.float32)
        nudged = x + np.float32(noise) * rng.normal(size=x.shape).astype(np.float32)
        rest = (noise * rng.normal(size=(1, 8))).astype(np.float32)
        turned = rest.reshape(2, 4).T.copy()
        last = (noise * rng.normal(size=(4, 2))).astype(np.float32) if is_fresh else turned
        return RankDump(
            {
                None: [
                    RankOperator("sum", [rest], [nudged], "ReduceSum"),
                    RankOperator("turn", [turned], [rest], "Transpose"),
                    RankOperator("copy", [last], [turned], "Identity"),
                ]
            }
        )

    found = compare(tool, tmp_path, chain(1e-7), chain(2e-7))
    assert found.code == FINE, found.text
    assert [one["level"] for one in found.result["operators"]] == ["warn"] * 3
    # Another difference of the same size is not that of the sum.
    (tmp_path / "second").mkdir()
    found = compare(tool, tmp_path / "second", chain(1e-7), chain(3e-7, is_fresh=True))
    assert [one["level"] for one in found.result["operators"]] == ["warn", "warn", "fail"]
    assert found.code == FOUND


def test_an_absolute_tolerance(tool: Binary, tmp_path: Path) -> None:
    small = (1e-9 * values(8)).astype(np.float32)
    large = values(8)
    target, golden = one_process(a=small, b=large), one_process(a=-small, b=large)
    found = compare(tool, tmp_path, target, golden)
    limit = float(np.abs(2 * small).max())
    assert found.code == FOUND
    text = " ".join(found.text.split())
    hint = re.search(r"all that fails differs by (\S+) or less: `--atol (\S+)` if that is nothing", text)
    assert hint and float(hint[1]) == pytest.approx(limit, rel=1e-2), text
    told = hint[2]
    assert limit <= float(told) < 2 * limit
    found = compare(tool, tmp_path, target, golden, "--atol", told)
    assert found.code == FINE and found.slot("a")["level"] == "pass", found.text
    assert float(dict(found.result["config"]["options"])["atol"]) == float(told)
    assert compare(tool, tmp_path, target, golden, "--atol", str(limit / 2)).code == FOUND
    # Saved numbers are judged again, and a file of thresholds may say the same.
    saved = [str(tool.path), "compare", "--from", str(tmp_path / "result.json")]
    (tmp_path / "limits.yaml").write_text(f"atol: {told}\n")
    for options, code in (([], FOUND), (["--atol", told], FINE), (["--thresholds", tmp_path / "limits.yaml"], FINE)):
        assert subprocess.run([*saved, *map(str, options)], capture_output=True, check=False).returncode == code
    for wrong in ("-1", "nan", "inf", "x"):
        run = subprocess.run([*saved, f"--atol={wrong}"], capture_output=True, text=True, check=False)
        assert run.returncode == USAGE and "a finite number of at least 0" in run.stderr


def test_no_tolerance_takes_a_nan_for_nothing(tool: Binary, tmp_path: Path) -> None:
    broken = np.array([np.nan, 1], np.float32)
    found = compare(tool, tmp_path, one_process(a=broken), one_process(a=np.ones(2, np.float32)), "--atol", "10")
    assert found.code == FOUND and "--atol" not in found.text
