"""A small network on many ranks, computed as they would, with one fault planted into it.

Ranks are numbered pipeline stage first, then data-parallel replica, then tensor-parallel part. A step goes through the
layers of all stages, averages the gradients over the replicas and updates the weights, so that a wrong value spreads
to those ranks that a real one would reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from native_dump import LARGEST, Execution, Value, rounded
from numpy.typing import NDArray

# Types of operators that are collectives, as three families of dumps have them.
COLLECTIVE_TYPES = {
    "torch": {
        "all_reduce": "_c10d_functional.all_reduce.default",
        "all_gather": "_c10d_functional.all_gather_into_tensor.default",
        "reduce_scatter": "_c10d_functional.reduce_scatter_tensor.default",
        "all_to_all": "_c10d_functional.all_to_all_single.default",
        "broadcast": "_c10d_functional.broadcast.default",
        "send": "c10d.send",
        "recv": "c10d.recv_",
    },
    "hccl": {
        "all_reduce": "HcomAllReduce",
        "all_gather": "HcomAllGather",
        "reduce_scatter": "HcomReduceScatter",
        "all_to_all": "HcomAllToAll",
        "broadcast": "HcomBroadcast",
        "send": "HcomSend",
        "recv": "HcomReceive",
    },
    "mindspore": {
        "all_reduce": "AllReduce",
        "all_gather": "AllGather",
        "reduce_scatter": "ReduceScatter",
        "all_to_all": "AlltoAll",
        "broadcast": "Broadcast",
        "send": "Send",
        "recv": "Receive",
    },
}

FAULTS = (
    "nan",
    "inf",
    "sum",
    "flip",
    "late_flip",
    "drift",
    "overwrite",
    "swap",
    "recv",
    "desync",
    "skip",
    "lost",
    "weight",
    "rename",
    "fuse",
)


@dataclass(frozen=True)
class Mesh:
    """Numbers of pipeline stages, data-parallel replicas and tensor-parallel parts."""

    pp: int = 1
    dp: int = 1
    tp: int = 1

    @property
    def n_ranks(self) -> int:
        return self.pp * self.dp * self.tp

    def rank(self, pp: int, dp: int, tp: int) -> int:
        return (pp * self.dp + dp) * self.tp + tp

    def place(self, rank: int) -> tuple[int, int, int]:
        return rank // (self.dp * self.tp), rank // self.tp % self.dp, rank % self.tp

    def groups(self, axis: str, stage: int) -> list[list[int]]:
        """The groups of ranks along an axis of the mesh, in one stage."""
        if axis == "tp":
            return [[self.rank(stage, dp, tp) for tp in range(self.tp)] for dp in range(self.dp)]
        return [[self.rank(stage, dp, tp) for dp in range(self.dp)] for tp in range(self.tp)]


@dataclass(frozen=True)
class Fault:
    """A fault, and where it is."""

    kind: str
    rank: int
    step: int
    op_name: str


@dataclass
class Simulation:
    """Runs the network and keeps what each rank executes in the step."""

    mesh: Mesh
    dtype: str = "float32"
    n_layers: int = 2
    width: int = 16
    pattern: str = "dense"
    types: str = "torch"
    seed: int = 0
    fault: Fault | None = None
    step: int = 0
    executions: list[list[Execution]] = field(default_factory=list)
    weights: list[dict[str, NDArray]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.n_rows = max(self.mesh.tp, self.mesh.dp, 4)
        self.n_hidden = 2 * self.mesh.tp
        self.weights = [{} for _ in range(self.mesh.n_ranks)]
        for stage in range(self.mesh.pp):
            for layer in range(self.n_layers):
                for name, shape in (("up", (self.width, 2)), ("down", (2, self.width))):
                    for tp in range(self.mesh.tp):
                        weight = self._random(shape, 0.5)
                        for dp in range(self.mesh.dp):
                            self.weights[self.mesh.rank(stage, dp, tp)][f"layers.{layer}.{name}"] = weight

    def run_step(self, step: int) -> list[list[Execution]]:
        """What each rank executes in the next step."""
        self.step = step
        self.executions = [[] for _ in range(self.mesh.n_ranks)]
        everybody = list(range(self.mesh.n_ranks))
        rate = self._random((4,), 0.01)
        rates = {rank: Value("rate", rate if rank == 0 else np.zeros_like(rate)) for rank in everybody}
        rates = self.broadcast("schedule/broadcast", [everybody], rates, "rate_of_step")
        batches = [self._random((self.n_rows, self.width), 1.0) for _ in range(self.mesh.dp)]
        activations: dict[int, Value] = {}
        for stage in range(self.mesh.pp):
            ranks = [r for r in everybody if self.mesh.place(r)[0] == stage]
            x = self._embed(ranks, batches) if stage == 0 else self.send(stage, ranks, activations)
            activations = self._stage(stage, ranks, x, rates)
        return self.executions

    def _embed(self, ranks: list[int], batches: list[NDArray]) -> dict[int, Value]:
        rows = "dp=S(0),tp=R"
        inputs = {rank: Value("batch", batches[self.mesh.place(rank)[1]], rows) for rank in ranks}
        return self.compute("embed", "aten.mul.Tensor", ranks, lambda r: [inputs[r]], lambda a: a * 0.5, "x", rows)

    def _stage(self, stage: int, ranks: list[int], x: dict[int, Value], rates: dict[int, Value]) -> dict[int, Value]:
        # Later stages are handed the rows of each part.
        if self.pattern == "sequence" and stage == 0:
            n = self.n_rows // self.mesh.tp
            x = self.compute(
                "scatter_rows",
                "aten.slice.Tensor",
                ranks,
                lambda r: [x[r]],
                lambda a, r: a[self.mesh.place(r)[2] * n :][:n],
                "rows",
                "dp=S(0),tp=S(0)",
            )
        kept = []
        for layer in range(self.n_layers):
            x, grads = self._layer(stage, f"layers.{layer}", ranks, x)
            kept.append(grads)
        loss = self.compute(
            "loss", "aten.mean.default", ranks, lambda r: [x[r]], lambda a: np.mean(a * a, keepdims=True), "loss"
        )
        self.all_reduce("loss/all_reduce", self.mesh.groups("dp", stage), loss, "avg", "mean_loss")
        for layer in reversed(range(self.n_layers)):
            self._update(stage, f"layers.{layer}", ranks, kept[layer], rates)
        return x

    def _layer(
        self, stage: int, name: str, ranks: list[int], x: dict[int, Value]
    ) -> tuple[dict[int, Value], tuple[dict[int, Value], dict[int, Value]]]:
        is_sequence = self.pattern == "sequence"
        rows = "dp=S(0),tp=S(0)" if is_sequence else "dp=S(0),tp=R"
        n = self.compute(f"{name}/norm", "aten.rms_norm.default", ranks, lambda r: [x[r]], _norm, f"{name}.n", rows)
        if is_sequence:
            n = self.all_gather(f"{name}/all_gather", self.mesh.groups("tp", stage), n, f"{name}.all", "dp=S(0),tp=R")
        if self.pattern == "experts":
            n = self.all_to_all(f"{name}/dispatch", self.mesh.groups("dp", stage), n, f"{name}.dispatched")
        up, down = f"{name}.up", f"{name}.down"
        hidden = "dp=S(0),tp=S(1)"
        h = self.compute(
            f"{name}/up",
            "aten.mm.default",
            ranks,
            lambda r: [n[r], self._weight(r, up, 1)],
            np.matmul,
            f"{name}.h",
            hidden,
        )
        if self._is_fused(name):
            y = self.compute(
                f"{name}/gelu_down",
                "aten.gelu_mm.default",
                ranks,
                lambda r: [h[r], self._weight(r, down, 0)],
                lambda a, w: rounded(np.tanh(a), self.dtype) @ w,
                f"{name}.part",
                "dp=S(0),tp=P(sum)",
            )
            # The fused operator keeps what the gradient needs, and does not expose it.
            a = {r: Value(f"{name}.a", rounded(np.tanh(h[r].array), self.dtype), h[r].placement) for r in ranks}
        else:
            a = self.compute(f"{name}/gelu", "aten.gelu.default", ranks, lambda r: [h[r]], np.tanh, f"{name}.a", hidden)
            y = self.compute(
                f"{name}/down",
                "aten.mm.default",
                ranks,
                lambda r: [a[r], self._weight(r, down, 0)],
                np.matmul,
                f"{name}.part",
                "dp=S(0),tp=P(sum)",
            )
        if self.pattern == "experts":
            y = self.all_to_all(f"{name}/combine", self.mesh.groups("dp", stage), y, f"{name}.combined")
        tp_groups = self.mesh.groups("tp", stage)
        if is_sequence:
            y = self.reduce_scatter(f"{name}/reduce_scatter", tp_groups, y, f"{name}.y", rows)
        else:
            y = self.all_reduce(f"{name}/all_reduce", tp_groups, y, "sum", f"{name}.y", rows)
        out = self.compute(
            f"{name}/residual", "aten.add.Tensor", ranks, lambda r: [x[r], y[r]], np.add, f"{name}.x", rows
        )
        return out, (n, a)

    def _update(
        self,
        stage: int,
        name: str,
        ranks: list[int],
        kept: tuple[dict[int, Value], dict[int, Value]],
        rates: dict[int, Value],
    ) -> None:
        n, a = kept
        part = "dp=P(avg),tp=S(1)"
        grad = self.compute(
            f"{name}/grad",
            "aten.mm.default",
            ranks,
            lambda r: [n[r], a[r]],
            lambda n, a: n.T @ a / np.float32(self.n_rows),
            f"{name}.grad",
            part,
        )
        whole = "dp=R,tp=S(1)"
        grad = self.all_reduce(
            f"{name}/grad_all_reduce", self.mesh.groups("dp", stage), grad, "avg", f"{name}.mean_grad", whole
        )
        key = f"{name}.up"
        new = self.compute(
            f"{name}/update",
            "aten.addcmul.default",
            ranks,
            lambda r: [self._weight(r, key, 1), grad[r], rates[r]],
            lambda w, g, rate: w - g * rate[0],
            f"{key}_next",
            whole,
        )
        for rank in ranks:
            self.weights[rank][key] = new[rank].array

    def _weight(self, rank: int, name: str, axis: int) -> Value:
        weight = self.weights[rank][name]
        layer, _, what = name.rpartition(".")
        if self._is_at("weight", rank, f"{layer}/{what}"):
            weight = weight.copy()
            weight.flat[0] = _flipped(weight.flat[0], self.dtype)
            self.weights[rank][name] = weight
        return Value(name, weight, f"dp=R,tp=S({axis})")

    def compute(
        self,
        name: str,
        op_type: str,
        ranks: Iterable[int],
        inputs_of: Callable[[int], list[Value]],
        work: Callable[..., NDArray],
        value: str,
        placement: str | None = None,
    ) -> dict[int, Value]:
        """An operator that each of the ranks executes by itself."""
        made = {}
        for rank in ranks:
            inputs = inputs_of(rank)
            arrays = [one.array for one in inputs]
            takes_rank = work.__code__.co_argcount > len(arrays) if hasattr(work, "__code__") else False
            with np.errstate(all="ignore"):
                out = rounded(work(*arrays, rank) if takes_rank else work(*arrays), self.dtype)
            out = self._spoiled(rank, name, out)
            shown = f"{name}_renamed" if self._is_from("rename", rank, name) else name
            made[rank] = Value(value, out, placement)
            self._record(rank, Execution(op_type, shown, inputs, [made[rank]]))
            if self._is_at("overwrite", rank, name):
                # The next reader finds other contents under its name.
                changed = out.copy()
                changed.flat[:2] = changed.flat[-1] + 1
                made[rank] = Value(value, rounded(changed, self.dtype), placement)
        return made

    def _spoiled(self, rank: int, name: str, out: NDArray) -> NDArray:
        fault = self.fault
        if not fault or fault.step > self.step or (fault.op_name != name and fault.kind != "sum"):
            return out
        out = out.copy()
        if fault.kind == "sum" and fault.step == self.step:
            # All contributions are finite, and their sum is not.
            if name == fault.op_name.replace("all_reduce", "down") and rank in self._group_of_fault():
                out.flat[0] = LARGEST[self.dtype] * np.float32(0.75)
                out = rounded(out, self.dtype)
        elif fault.kind == "drift" and rank == fault.rank:
            out.flat[0] = rounded(out.flat[0] * np.float32(1.25) + np.float32(0.0625), self.dtype)
        elif rank == fault.rank and fault.step == self.step:
            if fault.kind in ("nan", "lost"):
                out.flat[out.size // 2] = np.nan
            elif fault.kind == "inf":
                out.flat[out.size // 2] = np.inf
        return out

    def _group_of_fault(self) -> list[int]:
        stage, dp, _ = self.mesh.place(self.fault.rank)
        return self.mesh.groups("tp", stage)[dp]

    def all_reduce(
        self,
        name: str,
        groups: list[list[int]],
        values: dict[int, Value],
        reduction: str,
        value: str,
        placement: str | None = None,
    ) -> dict[int, Value]:
        return self._together(f"all_reduce({reduction})", name, groups, values, value, placement, self._reduced)

    def reduce_scatter(
        self, name: str, groups: list[list[int]], values: dict[int, Value], value: str, placement: str | None
    ) -> dict[int, Value]:
        def parts(kind: str, arrays: list[NDArray]) -> list[NDArray]:
            (whole, *_) = self._reduced(kind, arrays)
            return np.split(whole, len(arrays))

        return self._together("reduce_scatter(sum)", name, groups, values, value, placement, parts)

    def all_gather(
        self, name: str, groups: list[list[int]], values: dict[int, Value], value: str, placement: str | None
    ) -> dict[int, Value]:
        def gathered(_: str, arrays: list[NDArray]) -> list[NDArray]:
            return [np.concatenate(arrays)] * len(arrays)

        return self._together("all_gather", name, groups, values, value, placement, gathered)

    def all_to_all(self, name: str, groups: list[list[int]], values: dict[int, Value], value: str) -> dict[int, Value]:
        def exchanged(_: str, arrays: list[NDArray]) -> list[NDArray]:
            cut = [np.array_split(array, len(arrays)) for array in arrays]
            return [np.concatenate([cut[i][j] for i in range(len(arrays))]) for j in range(len(arrays))]

        return self._together("all_to_all", name, groups, values, value, None, exchanged)

    def broadcast(self, name: str, groups: list[list[int]], values: dict[int, Value], value: str) -> dict[int, Value]:
        def copies(_: str, arrays: list[NDArray]) -> list[NDArray]:
            return [arrays[0]] * len(arrays)

        return self._together("broadcast(0)", name, groups, values, value, None, copies)

    def send(self, stage: int, ranks: list[int], values: dict[int, Value]) -> dict[int, Value]:
        """Hands the activations of the stage before over."""
        got = {}
        for rank in ranks:
            _, dp, tp = self.mesh.place(rank)
            other = self.mesh.rank(stage - 1, dp, tp)
            value = values[other]
            self._record(other, self._collective(f"send({rank})", "send", [value], [], [other, rank]))
            array = value.array
            if self._is_at("recv", rank, "recv"):
                array = self._flip(array)
            got[rank] = Value("received", array, value.placement)
            self._record(rank, self._collective(f"recv({other})", "recv", [], [got[rank]], [other, rank]))
        return got

    def _reduced(self, kind: str, arrays: list[NDArray]) -> list[NDArray]:
        with np.errstate(all="ignore"):
            total = arrays[0].astype(np.float32)
            for array in arrays[1:]:
                total = total + array
            if "avg" in kind:
                total = total / np.float32(len(arrays))
        return [rounded(total, self.dtype)] * len(arrays)

    def _together(
        self,
        kind: str,
        name: str,
        groups: list[list[int]],
        values: dict[int, Value],
        value: str,
        placement: str | None,
        work: Callable[[str, list[NDArray]], list[NDArray]],
    ) -> dict[int, Value]:
        """An operator that the ranks of each group execute together."""
        made = dict(values)
        for group in groups:
            if len(group) == 1:
                continue
            taking_part = [rank for rank in group if not self._is_at("skip", rank, name)]
            # Who leaves it out goes on with what is in the place of the result.
            made |= {rank: Value(value, values[rank].array, placement) for rank in group if rank not in taking_part}
            outputs = work(kind, [values[rank].array for rank in taking_part])
            for rank, array in zip(taking_part, outputs, strict=True):
                other_kind = "broadcast(0)" if self._is_at("desync", rank, name) else kind
                if self._is_at("flip", rank, name):
                    array = self._flip(array)
                if self._is_at("swap", rank, name):
                    # The first two parts in each other's place.
                    parts = np.split(array, len(group))
                    array = np.concatenate([parts[1], parts[0], *parts[2:]])
                made[rank] = Value(value, array, placement)
                self._record(rank, self._collective(other_kind, name, [values[rank]], [made[rank]], group))
                if self._is_at("late_flip", rank, name):
                    made[rank] = Value(value, self._flip(array), placement)
        return made

    def _collective(
        self, kind: str, name: str, inputs: list[Value], outputs: list[Value], group: list[int]
    ) -> Execution:
        op_type = COLLECTIVE_TYPES[self.types][kind.partition("(")[0]]
        return Execution(op_type, name, inputs, outputs, kind, ranks_text(group))

    def _flip(self, array: NDArray) -> NDArray:
        changed = array.copy()
        changed.flat[0] = _flipped(array.flat[0], self.dtype)
        return changed

    def _is_at(self, kind: str, rank: int, op_name: str) -> bool:
        return self.fault == Fault(kind, rank, self.step, op_name)

    def _is_from(self, kind: str, rank: int, op_name: str) -> bool:
        fault = self.fault
        return fault is not None and (fault.kind, fault.op_name) == (kind, op_name) and fault.rank in (rank, -1)

    def _is_fused(self, layer: str) -> bool:
        return self.fault is not None and self.fault.kind == "fuse" and self.fault.op_name == f"{layer}/gelu"

    def _record(self, rank: int, execution: Execution) -> None:
        for value in (*execution.inputs, *execution.outputs):
            if value.placement and "/" not in value.placement:
                value.placement = self._placed(rank, value.placement)
        self.executions[rank].append(execution)

    def _placed(self, rank: int, placement: str) -> str:
        """`dp=S(0),tp=R` with the rank's place on each axis: `dp=1/2:S(0),tp=0/4:R`."""
        _, dp, tp = self.mesh.place(rank)
        places = {"dp": f"{dp}/{self.mesh.dp}", "tp": f"{tp}/{self.mesh.tp}"}
        axes = (axis.split("=") for axis in placement.split(","))
        return ",".join(f"{name}={places[name]}:{how}" for name, how in axes)

    def _random(self, shape: tuple[int, ...], scale: float) -> NDArray:
        return rounded(self.rng.standard_normal(shape).astype(np.float32) * np.float32(scale), self.dtype)


def _norm(x: NDArray) -> NDArray:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(1e-3))


def _flipped(number: np.float32, dtype: str) -> np.float32:
    """The number with the highest bit of its fraction the other way."""
    bit = {"float32": 22, "bfloat16": 22, "float16": 9}[dtype]
    if dtype == "float16":
        return np.float32((np.float16(number).view(np.uint16) ^ np.uint16(1 << bit)).view(np.float16))
    return (np.float32(number).view(np.uint32) ^ np.uint32(1 << bit)).view(np.float32)


def ranks_text(ranks: list[int]) -> str:
    """Ranks as tables have them: `0-3`, `0,2`."""
    runs = [[rank for _, rank in run] for _, run in groupby(enumerate(ranks), lambda pair: pair[1] - pair[0])]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
