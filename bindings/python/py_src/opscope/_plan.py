"""The request that a dump configuration makes, as plain data.

`opscope.torch.backend` makes a `DumpPlan` of its arguments and `opscope.torchair` one of a `CompilerConfig`; the
backend in `opscope.torch` carries it out. Importing this module does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

# `node.meta["custom"]` of what was traced inside `torchair.scope.data_dump()` has this key.
SCOPE_KEY = "opscope_data_dump"

# Step numbers are compared as unsigned 64-bit numbers, greater ones count as this.
STEP_MAX = 2**64 - 1


class StepRange(NamedTuple):
    """Steps from `first` to `last`, both included; `first` is not greater than `last`."""

    first: int
    last: int


class AclJson(NamedTuple):
    """A configuration file in the form of AscendCL's `acl.json`."""

    # As it was given; a relative path stays relative.
    path: str
    # Accepted by the native module.
    text: str
    # `operator`, `watcher`, `overflow`, `exception_brief`, `exception_norm` or `exception_detail`; `None` if the file
    # asks for nothing.
    kind: str | None


@dataclass(frozen=True)
class DumpPlan:
    """A plan that says what to dump, and where to.

    `acl_json` takes the place of everything after it: if it is there, it says what is dumped and where to.
    """

    # Whether anything is dumped at all.
    enabled: bool = True
    # A configuration in the form of AscendCL's `acl.json`, or its text alone.
    acl_json: AclJson | str | None = None
    # The root of the dump, as it was given.
    path: str = "./"
    # `input`, `output` or `all`: which tensors of an operator.
    mode: str = "all"
    # Pairs of a first and a last step, both included, in the order given; they may overlap. `None` is every step.
    steps: tuple[StepRange, ...] | None = None
    # Names of operators, modules or kinds of operators, each once, in the order given. Empty is every operator. What
    # `scope.data_dump()` marks is dumped besides them.
    layers: tuple[str, ...] = ()
    # `tensor`, `stats`, or `table`: statistics too, in one table for each step.
    data: str = "tensor"
    # `native`, a table for each step and few files of elements, or `acl`, AscendCL's tree; of dumps of values. `table`
    # means the same as `stats` where every step has a table anyway.
    form: str = "acl"
    # Whether records of what quantises have both sides, and are there for every chosen operator next to it.
    quant_dumpable: bool = False
    # `None` for the directories and files of graph mode (`max-autotune`). Otherwise `original` or `optimized`: one
    # `.pt` file for each tensor, from the graph of that stage; then `mode`, `steps`, `layers` and `data` have their
    # defaults.
    stage: str | None = None
    # Which of the processes that run together write, as pairs like `steps`; `None` is every one.
    ranks: tuple[StepRange, ...] | None = None
    # `all`, or names of operators, modules, parameters and arguments whose values are watched, in place of the dump.
    watch: str | tuple[str, ...] = ()
    # `brief`, `norm` or `detail`, or `True`, which is `norm`: operators that raise are dumped, and nothing else.
    exception: str | bool | None = None
    # A configuration of MindSpore: its text, or the name of a file. It takes the place of everything but `enabled`,
    # and the dump has MindSpore's form: that of `target`, under this number of a device, and under the rank of this
    # process or this one.
    mindspore_json: Any | None = None
    target: str = "cpu"
    device: int = 0
    rank: int | None = None

    @property
    def has_inputs(self) -> bool:
        """Whether what operators read is dumped."""
        return self.mode in ("input", "all")

    @property
    def has_outputs(self) -> bool:
        """Whether what operators give is dumped."""
        return self.mode in ("output", "all")

    def has_step(self, step: int) -> bool:
        """Whether a step, counted from 0, is dumped."""
        if not self.enabled:
            return False
        if self.steps is None:
            return True
        step = min(step, STEP_MAX)
        return any(first <= step <= last for first, last in self.steps)
