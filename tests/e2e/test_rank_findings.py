"""Faults that are planted into runs of many ranks, and runs without any.

`opscope nan` and `opscope ranks` have to name rank, step, operator and collective of each fault, and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import event_dumps
import numpy as np
import pytest
from binary import Binary
from cases import DIGITS, DIGITS_CASE

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ranks"))

import native_dump
from generate import fault_of_kind, generate
from native_dump import DumpOptions
from network import Fault, Mesh, Simulation, ranks_text

FOUND, FINE = 1, 0


@dataclass(frozen=True)
class RunCase:
    """A run of ranks."""

    kind: str | None
    mesh: Mesh
    pattern: str = "dense"
    dtype: str = "float32"
    content: str = "both"
    has_notes: bool = True
    has_graph: bool = True
    types: str = "torch"
    n_steps: int = 3
    n_layers: int = 2
    seed: int = 0

    def __str__(self) -> str:
        mesh = "x".join(str(n) for n in (self.mesh.pp, self.mesh.dp, self.mesh.tp))
        notes = "" if self.has_notes else "-unnoted"
        return f"{self.kind}-{mesh}-{self.pattern}-{self.dtype}-{self.content}{notes}-{self.seed}"

    @property
    def fault(self) -> Fault | None:
        if self.kind is None:
            return None
        return fault_of_kind(self.kind, self.mesh, self.n_steps, self.n_layers, self.pattern, self.seed)

    def simulation(self) -> Simulation:
        return Simulation(
            self.mesh,
            dtype=self.dtype,
            n_layers=self.n_layers,
            pattern=self.pattern,
            types=self.types,
            seed=self.seed,
            fault=self.fault,
        )

    def write(self, out: Path) -> Path:
        options = DumpOptions(
            dtype=self.dtype,
            has_elements=self.content != "statistics",
            has_statistics=self.content != "elements",
            has_notes=self.has_notes,
            has_graph=self.has_graph,
        )
        lost_ranks = (self.fault.rank,) if self.kind == "lost" else ()
        network = {"n_layers": self.n_layers, "pattern": self.pattern, "types": self.types, "seed": self.seed}
        generate(out, self.mesh, self.n_steps, self.fault, options, lost_ranks, **network)
        return out


def found(tool: Binary, command: str, run: Path, *options: object, code: int = FOUND) -> dict[str, Any]:
    arguments = tool.command(command, run, "--json", *options)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=600)
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout[:4000]}\n{done.stderr}"
    return json.loads(done.stdout)


def first_non_finite(case: RunCase) -> dict[int, tuple[int, str]]:
    """Of each rank the first execution that has a NaN or an infinity among its outputs, by the simulation."""
    simulation = case.simulation()
    first: dict[int, tuple[int, str]] = {}
    for step in range(case.n_steps):
        for rank, executions in enumerate(simulation.run_step(step)):
            for execution in executions:
                is_finite = all(np.isfinite(value.array).all() for value in execution.outputs)
                if not is_finite and rank not in first:
                    first[rank] = (step, execution.op_name)
    return first


def place(finding: dict[str, Any]) -> tuple[int, int, str]:
    return finding["rank"], finding["step"], finding["op_name"]


def as_in_files(place: tuple[int, int, str]) -> tuple[int, int, str]:
    """MindSpore's names of files have no dots and slashes."""
    return (*place[:2], place[2].replace(".", "_").replace("/", "_"))


def planted(fault: Fault) -> tuple[int, int, str]:
    return fault.rank, fault.step, fault.op_name


def group_of(case: RunCase, op_name: str, rank: int) -> list[int]:
    stage, dp, tp = case.mesh.place(rank)
    is_dp = any(word in op_name for word in ("grad", "loss", "dispatch", "combine"))
    return case.mesh.groups("dp", stage)[tp] if is_dp else case.mesh.groups("tp", stage)[dp]


MADE = [
    RunCase("nan", Mesh(dp=2, tp=2)),
    RunCase("nan", Mesh(dp=2, tp=2), seed=1, content="statistics"),
    RunCase("nan", Mesh(dp=4, tp=2), seed=2, dtype="bfloat16", pattern="sequence"),
    RunCase("nan", Mesh(dp=2, tp=4), seed=3, dtype="float16", content="elements"),
    RunCase("nan", Mesh(pp=2, dp=2, tp=2), seed=4),
    RunCase("nan", Mesh(pp=4, dp=2, tp=2), seed=5, pattern="experts"),
    RunCase("nan", Mesh(dp=4, tp=4), seed=6, has_notes=False),
    RunCase("nan", Mesh(tp=4), seed=7, has_notes=False, types="hccl"),
    RunCase("nan", Mesh(pp=2, dp=4, tp=8), seed=8, n_steps=2, content="statistics"),
    RunCase("nan", Mesh(dp=8), seed=9, types="mindspore"),
    RunCase("inf", Mesh(dp=2, tp=2), seed=1),
    RunCase("inf", Mesh(pp=2, dp=2, tp=4), seed=2, dtype="float16"),
    RunCase("inf", Mesh(dp=2, tp=4), seed=3, dtype="bfloat16", pattern="sequence"),
]


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("case", MADE, ids=str)
def test_maker_and_spread_of_nan(tool: Binary, case: RunCase, tmp_path: Path) -> None:
    fault = case.fault
    result = found(tool, "nan", case.write(tmp_path / "run"))["non_finite"]
    (origin,) = result["origins"]
    assert place(origin) == planted(fault)
    assert (origin["cause"], result["order"], result["first"]) == ("computed", "known", [0])
    expected = first_non_finite(case)
    assert expected.pop(fault.rank) == (fault.step, fault.op_name)
    assert {one["rank"]: (one["step"], one["op_name"]) for one in origin["reached"]} == expected
    for one in origin["reached"]:
        through = one["through"]
        if one["op_name"] == "recv":
            assert through["group"] == [one["from"], one["rank"]]
        else:
            assert through["op_name"] == one["op_name"]
            assert through["group"] == group_of(case, one["op_name"], one["rank"])
            assert one["from"] in through["group"]


@pytest.mark.sampled(0.4, each="content")
@pytest.mark.parametrize("content", ["both", "statistics"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_sum_that_overflows(tool: Binary, dtype: str, content: str, tmp_path: Path) -> None:
    case = RunCase("sum", Mesh(dp=2, tp=4), dtype=dtype, content=content)
    (origin,) = found(tool, "nan", case.write(tmp_path / "run"))["non_finite"]["origins"]
    # Without elements an overflow and a transmission fault look the same.
    assert origin["cause"] == ("overflow_of_reduction" if content == "both" else "collective")
    assert (origin["step"], origin["collective"]["op_name"]) == (case.fault.step, case.fault.op_name)
    assert origin["collective"]["group"] == group_of(case, "all_reduce", case.fault.rank)


@pytest.mark.parametrize("mesh", [Mesh(dp=2, tp=4), Mesh(pp=2, dp=2, tp=8)], ids=str)
def test_maker_whose_dump_is_missing(tool: Binary, mesh: Mesh, tmp_path: Path) -> None:
    case = RunCase("lost", mesh)
    result = found(tool, "nan", case.write(tmp_path / "run"))["non_finite"]
    origins = result["origins"]
    assert {origin["cause"] for origin in origins} == {"received"}
    assert all(origin["collective"]["missing_ranks"] == [case.fault.rank] for origin in origins)
    first = origins[0]["collective"]
    layer = case.fault.op_name.partition("/")[0]
    assert (first["step"], first["op_name"]) == (case.fault.step, f"{layer}/all_reduce")


def test_tensors_that_are_not_in_the_dump_are_named(tool: Binary, tmp_path: Path) -> None:
    generate(tmp_path / "run", Mesh(dp=2), 1, options=DumpOptions(has_elements=False, has_statistics=False))
    result = found(tool, "nan", tmp_path / "run", code=4)["non_finite"]
    assert result["unknown_executions"] > len(result["unknown"]) == 8
    first = result["unknown"][0]
    assert (first["rank"], first["step"], first["op_name"], first["slots"]) == (
        0,
        0,
        "schedule/broadcast",
        ["output.0"],
    )
    command = tool.command("nan", tmp_path / "run")
    printed = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False).stdout
    assert "\n  not in the dump: rank 0, step 0, schedule/broadcast" in printed
    assert f"  and of {result['unknown_executions'] - 8} more executions\n" in printed


def test_two_makers_that_nothing_orders(tool: Binary, tmp_path: Path) -> None:
    """One dump for each of two ranks that made a NaN each before they met."""
    mesh = Mesh(dp=2)
    runs = []
    for rank in range(2):
        out = tmp_path / f"made-by-{rank}"
        generate(out, mesh, 1, Fault("nan", rank, 0, f"layers.{rank}/up"), DumpOptions(), (1 - rank,))
        runs.append(out)
    result = found(tool, "nan", runs[0], runs[1])["non_finite"]
    makers = [place(origin) for origin in result["origins"]]
    assert makers == [(0, 0, "layers.0/up"), (1, 0, "layers.1/up")]
    assert (result["order"], result["first"]) == ("not_ordered", [0, 1])


WRONG_RESULTS = [
    RunCase("flip", Mesh(dp=2, tp=2)),
    RunCase("flip", Mesh(dp=4, tp=2), seed=1, dtype="float16"),
    RunCase("flip", Mesh(dp=2, tp=4), seed=2, dtype="bfloat16"),
    RunCase("flip", Mesh(dp=2, tp=4), seed=3, pattern="sequence"),
    RunCase("flip", Mesh(dp=4, tp=4), seed=4, pattern="sequence", content="elements"),
    RunCase("flip", Mesh(pp=2, dp=4, tp=8), seed=5, n_steps=2),
    RunCase("flip", Mesh(dp=4, tp=4), seed=6, has_notes=False, types="hccl"),
    RunCase("flip", Mesh(tp=4), seed=7, has_notes=False, has_graph=False, types="mindspore"),
    RunCase("recv", Mesh(pp=2, dp=2, tp=2)),
    RunCase("recv", Mesh(pp=4, dp=2), seed=1, content="statistics"),
    RunCase("recv", Mesh(pp=2, dp=2, tp=4), seed=2, dtype="float16"),
]


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("case", WRONG_RESULTS, ids=str)
def test_wrong_result_of_a_collective(tool: Binary, case: RunCase, tmp_path: Path) -> None:
    (finding,) = findings(tool, case, tmp_path)
    assert (finding["finding"], place(finding)) == ("wrong_result", planted(case.fault))
    assert finding["ranks"] == [case.fault.rank]
    if case.kind == "flip":
        assert finding["collective"]["group"] == group_of(case, case.fault.op_name, case.fault.rank)


@pytest.mark.parametrize("mesh", [Mesh(dp=4, tp=4), Mesh(dp=2, tp=8)], ids=str)
def test_unequal_results_by_digests_alone(tool: Binary, mesh: Mesh, tmp_path: Path) -> None:
    case = RunCase("flip", mesh, content="statistics", seed=3)
    (finding,) = findings(tool, case, tmp_path)
    assert (finding["finding"], place(finding)) == ("unequal_results", planted(case.fault))


ORDERS = [
    RunCase("swap", Mesh(dp=2, tp=2), pattern="sequence"),
    RunCase("swap", Mesh(dp=2, tp=8), pattern="sequence", dtype="bfloat16", seed=1),
    RunCase("swap", Mesh(dp=4, tp=4), pattern="sequence", has_notes=False, seed=2),
    RunCase("swap", Mesh(dp=4, tp=2), pattern="experts", seed=3),
    RunCase("swap", Mesh(pp=2, dp=8), pattern="experts", dtype="float16", seed=4),
]


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("case", ORDERS, ids=str)
def test_parts_in_a_wrong_order(tool: Binary, case: RunCase, tmp_path: Path) -> None:
    (finding,) = findings(tool, case, tmp_path)
    assert (finding["finding"], place(finding)) == ("wrong_order", planted(case.fault))
    group = finding["collective"]["group"]
    assert finding["order"] == [group[1], group[0], *group[2:]]


REPLICAS = [
    RunCase("drift", Mesh(dp=2, tp=2)),
    RunCase("drift", Mesh(dp=4, tp=2), seed=1, dtype="bfloat16"),
    RunCase("drift", Mesh(dp=8), seed=2, content="statistics", has_notes=False, types="hccl"),
    RunCase("drift", Mesh(pp=2, dp=4, tp=8), seed=3, n_steps=2),
    RunCase("weight", Mesh(dp=4, tp=2)),
    RunCase("weight", Mesh(dp=4, tp=4), seed=1, dtype="float16", content="statistics"),
    RunCase("weight", Mesh(pp=2, dp=4), seed=2),
    RunCase("weight", Mesh(dp=8), seed=3, has_notes=False),
    RunCase("weight", Mesh(dp=2), seed=4),
]


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("case", REPLICAS, ids=str)
def test_replica_that_drifts(tool: Binary, case: RunCase, tmp_path: Path) -> None:
    (finding,) = findings(tool, case, tmp_path)
    expected = "operator_differs" if case.kind == "drift" else "replica_differs"
    assert finding["finding"] == expected
    assert (finding["step"], finding["op_name"]) == (case.fault.step, case.fault.op_name)
    if case.mesh.dp > 2:
        assert (finding["ranks"], finding["each_rank"]) == ([case.fault.rank], True)
    else:
        # Two ranks differ, and it is unknown which is right.
        assert not finding["each_rank"] and case.fault.rank in finding["ranks"]


CHANGES = [
    RunCase("overwrite", Mesh(dp=2, tp=2)),
    RunCase("overwrite", Mesh(dp=2, tp=4), seed=1, dtype="float16", pattern="sequence"),
    RunCase("overwrite", Mesh(pp=2, dp=2, tp=2), seed=2, content="statistics"),
    RunCase("late_flip", Mesh(dp=2, tp=2)),
    RunCase("late_flip", Mesh(dp=4, tp=4), seed=1, dtype="bfloat16"),
    RunCase("late_flip", Mesh(pp=2, dp=4, tp=8), seed=2, n_steps=2),
    # Results of reduce_scatter, which nothing recomputes: of an unknown reduction, and of digests alone.
    RunCase("late_flip", Mesh(tp=4), pattern="sequence", has_notes=False, seed=1),
    RunCase("late_flip", Mesh(dp=2, tp=2), pattern="sequence", content="statistics", seed=4),
]


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("case", CHANGES, ids=str)
def test_tensor_that_changes_before_it_is_read(tool: Binary, case: RunCase, tmp_path: Path) -> None:
    (finding,) = findings(tool, case, tmp_path)
    assert (finding["finding"], place(finding["made_by"])) == ("overwritten", planted(case.fault))
    # The group of a collective is known by notes alone.
    if case.kind == "late_flip" and case.has_notes:
        assert finding["collective"]["op_name"] == case.fault.op_name


DESYNCS = [
    RunCase("desync", Mesh(dp=4, tp=2)),
    RunCase("desync", Mesh(dp=2, tp=4), seed=1, pattern="sequence"),
    RunCase("desync", Mesh(dp=2), seed=2),
    RunCase("skip", Mesh(dp=4, tp=2)),
    RunCase("skip", Mesh(dp=2, tp=8), seed=1, content="statistics"),
]


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("case", DESYNCS, ids=str)
def test_ranks_that_go_on_to_different_collectives(tool: Binary, case: RunCase, tmp_path: Path) -> None:
    (finding,) = findings(tool, case, tmp_path)
    group = group_of(case, case.fault.op_name, case.fault.rank)
    assert (finding["finding"], finding["step"]) == ("desync", case.fault.step)
    assert finding["desync"]["group"] == group
    names = {side["op_name"] for side in finding["desync"]["sides"]}
    assert case.fault.op_name in names
    if len(group) > 2:
        assert finding["ranks"] == [case.fault.rank]
    else:
        assert case.fault.rank in finding["ranks"]


def findings(tool: Binary, case: RunCase, folder: Path) -> list[dict[str, Any]]:
    return found(tool, "ranks", case.write(folder / "run"))["divergences"]["findings"]


def clean_cases() -> Iterator[RunCase]:
    meshes = [
        Mesh(dp=4),
        Mesh(tp=4),
        Mesh(dp=2, tp=2),
        Mesh(pp=2, dp=2, tp=2),
        Mesh(dp=4, tp=4),
        Mesh(pp=2, dp=4, tp=2),
    ]
    dtypes = ["float32", "float16", "bfloat16"]
    for seed, mesh in enumerate(meshes):
        for nth, pattern in enumerate(("dense", "sequence", "experts")):
            has_notes = (seed + nth) % 3 != 0
            content = ("both", "elements", "statistics")[(seed + nth) % 3]
            types = ("torch", "hccl", "mindspore")[nth]
            yield RunCase(
                None, mesh, pattern, dtypes[(seed + nth) % 3], content, has_notes, nth != 1, types, seed=seed + 20
            )
    yield RunCase(None, Mesh(pp=2, dp=4, tp=8), n_steps=2)
    yield RunCase(None, Mesh(dp=8, tp=8), "sequence", n_steps=1, dtype="bfloat16")
    yield RunCase(None, Mesh(pp=4, dp=4), has_notes=False, n_steps=2)


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("case", list(clean_cases()), ids=str)
def test_nobody_is_accused_in_a_clean_run(tool: Binary, case: RunCase, tmp_path: Path) -> None:
    run = case.write(tmp_path / "run")
    assert found(tool, "nan", run, code=FINE)["non_finite"]["origins"] == []
    result = found(tool, "ranks", run, code=FINE)
    assert result["divergences"]["findings"] == []
    assert result["run"]["unordered_collectives"] == 0
    if case.has_notes:
        assert result["run"]["unmatched_collectives"] == 0
        assert result["divergences"]["replicated_operators"] > 0


@pytest.mark.parametrize("form, types", [("acl", "hccl"), ("mindspore", "mindspore")])
def test_other_forms(tool: Binary, form: str, types: str, tmp_path: Path) -> None:
    """There, operator types identify collectives, and their results the groups."""
    for kind, command in (("nan", "nan"), ("flip", "ranks"), (None, "ranks")):
        case = RunCase(kind, Mesh(dp=2, tp=2), types=types, seed=5)
        run = case.write(tmp_path / f"{kind}-run")
        out = tmp_path / f"{kind}-{form}"
        tool.run("convert", "-d", run, "--form", form, "--out", out)
        result = found(tool, command, out, code=FOUND if kind else FINE)
        if kind == "nan":
            (origin,) = result["non_finite"]["origins"]
            assert as_in_files(place(origin)) == as_in_files(planted(case.fault))
            assert len(origin["reached"]) == len(first_non_finite(case)) - 1
        elif kind == "flip":
            (finding,) = result["divergences"]["findings"]
            assert as_in_files(place(finding)) == as_in_files(planted(case.fault))
        else:
            assert result["divergences"]["findings"] == []


def test_restart_that_goes_another_way(tool: Binary, tmp_path: Path) -> None:
    mesh = Mesh(dp=2, tp=2)
    sound = RunCase(None, mesh).write(tmp_path / "before")
    again = RunCase(None, mesh).write(tmp_path / "again")
    result = found(tool, "ranks", again, "--against", sound, code=FINE)["restart"]
    assert result["differences"] == [] and result["single_executions"] == 0
    case = RunCase("drift", mesh, seed=0)
    result = found(tool, "ranks", case.write(tmp_path / "after"), "--against", sound)["restart"]
    first, *rest = result["differences"]
    assert (place(first), first["difference"]) == (planted(case.fault), "computed")
    assert not first["may_follow"] and all(one["may_follow"] for one in rest)


def test_two_runs_in_one_directory_are_refused(tool: Binary, tmp_path: Path) -> None:
    run = RunCase(None, Mesh(dp=2)).write(tmp_path / "run")
    (first,) = (run / "worldsize2_global_rank0").iterdir()
    first.with_name("20240102030406").symlink_to(first)
    copy = first.parent / "20240102030407"
    subprocess.run(["cp", "-r", first, copy], check=True)
    done = subprocess.run(tool.command("ranks", run), capture_output=True, text=True)
    assert done.returncode == 2
    assert "several runs" in done.stderr


def test_groups_in_words() -> None:
    assert [ranks_text(group) for group in ([0, 1, 2, 3], [0, 2], [4, 5])] == ["0-3", "0,2", "4,5"]


def test_overflows_of_several_ranks(tool: Binary, tmp_path: Path) -> None:
    """Clocks say the opposite of the collective between the two."""
    run = RunCase(None, Mesh(tp=2), types="hccl", n_steps=1).write(tmp_path / "run")
    out = tmp_path / "acl"
    tool.run("convert", "-d", run, "--form", "acl", "--out", out)
    for ranks, order, first in (((1, 0), "known", [1]), ((0, 1), "known", [0])):
        dump = tmp_path / f"overflow-{ranks[0]}"
        subprocess.run(["cp", "-r", out, dump], check=True)
        # The second comes after the all_reduce of the first layer.
        for rank, layer in zip(ranks, (0, 1), strict=True):
            (path,) = dump.glob(f"*/{rank}/net/1/0/*layers_{layer}_up.*")
            *_, task, stream, _ = path.name.split(".")
            record = event_dumps.block_record(task=int(task), stream=int(stream), status=0x20)
            time = 1_700_000_000_000_000 - layer
            event_dumps.write_record(path.parent, record, task=int(task), stream=int(stream), time=time)
        result = found(tool, "overflow", dump)
        assert [shown["rank"] for shown in result["shown"]] == list(ranks)
        assert result["order_of_ranks"] == order
        assert [result["shown"][nth]["rank"] for nth in result["first"]] == first
    together = tmp_path / "together"
    subprocess.run(["cp", "-r", out, together], check=True)
    for path in list(together.rglob("*layers_0_up.*")):
        *_, task, stream, time = path.name.split(".")
        record = event_dumps.block_record(task=int(task), stream=int(stream), status=0x20)
        event_dumps.write_record(path.parent, record, task=int(task), stream=int(stream), time=int(time))
    result = found(tool, "overflow", together)
    assert (result["order_of_ranks"], len(result["first"])) == ("not_ordered", 2)


# What is inside a fused operator has no partner, and is little of the whole.
@pytest.mark.parametrize("kind", ["rename", "fuse"])
@pytest.mark.parametrize("mesh", [Mesh(dp=2, tp=2), Mesh(dp=2, tp=4)], ids=str)
def test_other_names_are_no_difference(tool: Binary, tmp_path: Path, kind: str, mesh: Mesh) -> None:
    """An operator that has another name, or is two in one, computes the same; faults next to it are found."""
    golden = RunCase(None, mesh, n_steps=2).write(tmp_path / "golden")
    changed = RunCase(kind, mesh, n_steps=2)
    done = compared(tool, changed.write(tmp_path / "changed"), golden)
    assert (done["code"], done["summary"]["level"]) == (FINE, "pass")
    flipped = Fault("nan", 3, 1, "layers.0/up")
    generate(tmp_path / "wrong", mesh, 2, flipped, DumpOptions())
    done = compared(tool, tmp_path / "wrong", golden)
    assert (done["code"], done["summary"]["level"]) == (FOUND, "fail")
    first = done["operators"][done["summary"]["first_failure"]["operator"]]["target"][0]
    assert (first["op_name"], first["rank"], first["step"]) == (flipped.op_name, flipped.rank, flipped.step)


@pytest.mark.parametrize(
    ("options", "damaged"),
    [(["--ranks", "0,2"], "rank-[13]/*/step-*"), (["--steps", "1"], "rank-*/*/step-[02].*")],
    ids=["ranks", "steps"],
)
def test_other_ranks_and_steps_are_not_read(
    tool: Binary, options: list[str], damaged: str, tmp_path: Path
) -> None:
    """Damage of files that hold other ranks and steps stays unseen."""
    target, golden = (tmp_path / name for name in ("target", "golden"))
    for run in (target, golden):
        generate(run, Mesh(dp=2, tp=2), 3)
        for table in run.rglob(damaged):
            table.write_bytes(b"damaged")
    arguments = tool.command("compare", target, golden)
    partial = subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=False)
    assert "step-" in partial.stdout, "without the option the damage is reported"
    done = subprocess.run([*arguments, *options], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    if "--ranks" in options:
        shown = tool.command("show", target, *options)
        done = subprocess.run(shown, capture_output=True, text=True, timeout=600, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.parametrize(
    ("form", "steps"),
    [("acl", "*/0/digits_cnn/1/{}"), ("mindspore", "rank_0/net/*/{}"), ("msprobe", "step{}/rank0")],
)
def test_other_steps_of_other_forms_are_not_read(tool: Binary, form: str, steps: str, tmp_path: Path) -> None:
    """Damage of the files in other steps' directories stays unseen, whichever tool wrote them."""
    dump = tmp_path / "dump"
    if form == "msprobe":
        numbers = {"Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": 2.0}
        tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "requires_grad": False, **numbers}
        call = {"Torch.relu.0.forward": {"input_args": [tensor], "input_kwargs": {}, "output": [tensor]}}
        about = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": call}
        for step in range(3):
            folder = dump / steps.format(step)
            folder.mkdir(parents=True)
            (folder / "dump.json").write_text(json.dumps(about))
    else:
        options = ("--form", form, "--input", f"image={DIGITS / 'images.npy'}", "--steps", 3, "--engine", "tract")
        tool.dump(DIGITS_CASE.model_path(DIGITS), "--out", dump, *options)
    damaged = [path for path in dump.glob(steps.format("[02]") + "/*") if path.is_file()]
    assert len(damaged) > 1
    for path in damaged:
        # Equal tensors of several steps may be one file.
        path.unlink()
        path.write_bytes(b"damaged")
    arguments = tool.command("compare", dump, dump)
    whole = subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=False)
    assert whole.returncode != FINE, "without the option the damage is reported"
    done = subprocess.run([*arguments, "--steps", "1"], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (FINE, ""), done.stdout


def test_sizes_that_no_memory_holds(tool: Binary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged table may claim any size; sums of sizes end at the largest number."""
    columns = native_dump._columns

    def enlarged(rows: list[dict[str, Any]]) -> dict[str, tuple[str, list[Any]]]:
        return columns([{**row, "n_bytes": 2**63 - 1} for row in rows])

    monkeypatch.setattr(native_dump, "_columns", enlarged)
    run = tmp_path / "run"
    generate(run, Mesh(dp=2), 1)
    for arguments in (["show", run], ["compare", run, run], ["compare", run, run, "--parts", tmp_path / "parts", "--list-units"]):
        command = tool.command(*arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode in (0, 1, 3, 4) and "panicked" not in done.stderr, (arguments, done.stderr)


def compared(tool: Binary, target: Path, golden: Path) -> dict[str, Any]:
    command = tool.command("compare", target, golden, "--json", "-", "--quiet")
    done = subprocess.run(command, capture_output=True, text=True)
    return {**json.loads(done.stdout), "code": done.returncode}
