"""Both graphs of `opscope view` in step show what `opscope compare` found, and the edges that the models have.

OPSCOPE=target/debug/opscope pytest tests/e2e/test_view_in_step.py
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from binary import Binary
from comparing import Found, compare
from engines import library_path
from test_view import Page, served
from transformer import N_BLOCKS, Transformer, tokens, with_other_bias

BIAS = "blocks.1/attn/v.bias"
CULPRIT = "/blocks.1/attn/v/MatMul/MatMulAddFusion"


@pytest.fixture(scope="module")
def dumps(tool: Binary, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What ONNX Runtime makes of a transformer with one bias changed, and the transformer as it was exported."""
    folder = tmp_path_factory.mktemp("in_step")
    np.save(folder / "x.npy", tokens())
    model = Transformer(is_fused=False).model()
    onnx.save(model, folder / "golden.onnx")
    onnx.save(with_other_bias(model, BIAS), folder / "target.onnx")
    executed = ("--engine", "onnxruntime", "--engine-lib", library_path(), "--graph", "executed")
    for name, options in (("target", executed), ("golden", ("--engine", "tract"))):
        tool.dump(folder / f"{name}.onnx", "--out", folder / name, "--input", f"x={folder}/x.npy", *options)
    return [folder / "target", folder / "golden"]


@pytest.fixture(scope="module")
def found(tool: Binary, dumps: list[Path]) -> Found:
    return compare(tool, *dumps)


@pytest.fixture(scope="module")
def page(tool: Binary, dumps: list[Path]) -> Iterator[Page]:
    with served(tool, *dumps) as page:
        yield page


def opened(page: Page, **query: object) -> dict[str, Any]:
    """The graph with all groups open."""
    paths: list[str] = []
    while True:
        graph = page.ask("graph", open=",".join(paths), **query)
        closed = {box["path"] for box in graph["boxes"] if box["kind"] == "group" and not box["is_open"]}
        if not closed:
            return graph
        paths += sorted(closed)


def operators(graph: dict[str, Any], side: str) -> list[dict[str, Any]]:
    return [box for box in graph["boxes"] if box["kind"] == "op" and box["side"] == side]


def names(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["op_name"] for entry in entries]


def whole_skips(found: Found, side: str) -> dict[str, dict[str, Any]]:
    skips = [skip for skip in found.document["skips"] if skip["side"] == side and "slot" not in skip]
    return {skip["operator"]["op_name"]: skip for skip in skips if "operator" in skip}


def test_boxes_are_the_pairs_and_what_is_in_none(page: Page, found: Found) -> None:
    graph = opened(page, side="both")
    fused = 0
    for pair in found.operators:
        of_pair = {side: [b for b in operators(graph, side) if b["id"] == pair["index"]] for side in ("target", "golden")}
        for side, boxes in of_pair.items():
            assert names(boxes) == names(pair[side])
        fused += len(pair["golden"]) > 1
    assert fused >= 4 * N_BLOCKS
    for side in ("target", "golden"):
        skips = whole_skips(found, side)
        alone = [box for box in operators(graph, side) if box["id"] is None]
        assert sorted(names(alone)) == sorted(skips)
        for box in alone:
            skip = skips[box["op_name"]]
            assert (box["reason"], box["inside"]) == (skip["reason"], skip.get("inside"))
            assert box["only"] == (box["inside"] is None)
            if box["inside"] is not None:
                # What the reason calls by its name is the pair that the skip points to.
                inside = found.operators[box["inside"]]
                other = "target" if side == "golden" else "golden"
                assert f"`{inside[other][0]['op_name']}`" in skip["message"]
    # The golden graph has something that only it has, and something that a fusion took in.
    reasons = Counter(skip["reason"] for skip in whole_skips(found, "golden").values())
    assert set(reasons) == {"inside_fusion"}
    assert {skip["reason"] for skip in whole_skips(found, "target").values()} == {"missing"}


def test_pairs_stand_at_one_height(page: Page, found: Found) -> None:
    for graph in (opened(page, side="both"), page.ask("graph", side="both")):
        spine = graph["step"]["spine"]
        for box in graph["boxes"]:
            assert (box["x"] > spine) == (box["side"] == "golden")
        for pair in found.operators:
            ends = []
            for side in ("target", "golden"):
                index = pair["index"]
                boxes = [b for b in operators(graph, side) if index in (b["id"], b["inside"])]
                ends.append((min(b["y"] for b in boxes), max(b["y"] + b["height"] for b in boxes)) if boxes else None)
            assert ends[0] == ends[1], pair
        groups = {(b["side"], b["path"]): (b["y"], b["height"], b["is_open"]) for b in graph["boxes"] if b["path"]}
        for (side, path), place in groups.items():
            other = "golden" if side == "target" else "target"
            assert groups.get((other, path), place) == place
    assert page.ask("graph", side="both") == page.ask("graph", side="both")


def test_marks_tell_what_the_comparison_says(page: Page, found: Found) -> None:
    graph = opened(page, side="both")
    by_key = {box["key"]: box for box in graph["boxes"]}
    marks = graph["step"]["marks"]
    assert [mark["y"] for mark in marks] == sorted({mark["y"] for mark in marks})
    kinds = Counter()
    for mark in marks:
        kinds[mark["kind"]] += 1
        boxes = [by_key[key] for key in mark["keys"] if key]
        if mark["kind"] == "target_only":
            assert mark["keys"][1] is None and boxes[0]["only"]
            continue
        assert len(boxes) == 2
        pair = found.operators[boxes[0]["id"]]
        assert mark["status"] == pair["level"]
        assert mark["kind"] == ("agrees" if pair["level"] == "pass" else "differs")
        inside = [skip for skip in whole_skips(found, "golden").values() if skip.get("inside") == pair["index"]]
        assert mark["n"] == [len(pair["target"]), len(pair["golden"]) + len(inside)]
        if mark["slot"] is None and mark["value"] is not None:
            assert mark["value"] == pytest.approx(pair["error"]["outputs"])
    assert kinds["agrees"] > 0 and kinds["differs"] > 0 and kinds["target_only"] > 0
    at_fault = [by_key[mark["keys"][0]]["op_name"] for mark in marks if mark["at_fault"]]
    assert at_fault == [CULPRIT]
    counts = graph["step"]["pairs"]
    named = sum(p["how"] == "name" and len(p["golden"]) == len(p["target"]) == 1 for p in found.operators)
    assert counts["same_name"] == named
    assert counts["same_name"] + counts["fused"] + counts["other"] + counts["by_hand"] == len(found.operators)
    assert counts["target_only"] == len(whole_skips(found, "target"))
    assert counts["inside_fusion"] == len(whole_skips(found, "golden"))


def test_edges_are_those_of_the_model(page: Page, dumps: list[Path]) -> None:
    model = onnx.load(dumps[1].with_suffix(".onnx"))
    makers = {output: node.name for node in model.graph.node for output in node.output}
    expected = {(makers[i], node.name) for node in model.graph.node for i in node.input if i in makers}
    for side in ("both", "golden"):
        graph = opened(page, side=side)
        by_key = {box["key"]: box for box in graph["boxes"]}
        golden = [edge for edge in graph["edges"] if by_key[edge["from"]]["side"] == "golden"]
        assert {tuple(by_key[edge[end]]["op_name"] for end in ("from", "to")) for edge in golden} == expected
        assert sorted(names(operators(graph, "golden"))) == sorted(node.name for node in model.graph.node)
    # The way goes on through what has no partner.
    graph = opened(page, side="both")
    way = {box["op_name"] for box in operators(graph, "target") if box["on_way"]}
    assert CULPRIT in way and "/blocks.1/attn/v/Transpose" in way
    assert not any(box["on_way"] for box in operators(graph, "golden"))


def test_one_side_has_all_of_its_operators(page: Page, found: Found) -> None:
    target = opened(page, side="target")
    assert target == opened(page)
    assert {box["side"] for box in target["boxes"]} == {"target"}
    expected = [name for pair in found.operators for name in names(pair["target"])]
    expected += whole_skips(found, "target")
    assert sorted(names(operators(target, "target"))) == sorted(expected)


def test_wrong_sides_are_told(tool: Binary, page: Page, dumps: list[Path]) -> None:
    assert page.raw("graph", side="left")[0] == 400
    assert page.raw("graph", side="both", op=9999)[0] == 404
    with served(tool, dumps[1]) as alone:
        assert alone.raw("graph", side="golden")[0] == 400
        assert alone.raw("graph", side="both")[0] == 400
        assert alone.ask("graph")["step"] is None


def test_a_saved_comparison_shows_its_pairs(tool: Binary, found: Found, tmp_path: Path) -> None:
    saved = tmp_path / "result.json"
    saved.write_text(json.dumps(found.document))
    with served(tool, "--from", saved) as page:
        graph = opened(page, side="both")
    assert graph["edges"] == []
    for side in ("target", "golden"):
        expected = [name for pair in found.operators for name in names(pair[side])]
        assert sorted(names(operators(graph, side))) == sorted([*expected, *whole_skips(found, side)])
