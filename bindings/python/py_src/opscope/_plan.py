"""The request of a dump configuration, as plain data.

`opscope.torch.backend` creates a `DumpPlan` from its arguments and `opscope.torchair` one from a
`CompilerConfig`; the backend in `opscope.torch` carries it out. Importing this module does not
import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

# Key in `node.meta["custom"]` of nodes traced inside `torchair.scope.data_dump()`.
SCOPE_KEY = "opscope_data_dump"

# Step numbers are compared as unsigned 64-bit integers; greater ones are clamped to this.
STEP_MAX = 2**64 - 1


class StepRange(NamedTuple):
    """Steps from `first` to `last`, inclusive; `first` is not greater than `last`."""

    first: int
    last: int


class AclJson(NamedTuple):
    """A configuration file in the form of AscendCL's `acl.json`."""

    # As given; a relative path stays relative.
    path: str
    # Accepted by the native module.
    text: str
    # `operator`, `watcher`, `overflow`, `exception_brief`, `exception_norm` or `exception_detail`;
    # `None` if the file requests nothing.
    kind: str | None


@dataclass(frozen=True)
class DumpPlan:
    """A plan of what to dump, and where.

    If `acl_json` is set, it replaces all following fields.
    """

    # Whether anything is dumped at all.
    enabled: bool = True
    # A configuration in the form of AscendCL's `acl.json`, or its text alone.
    acl_json: AclJson | str | None = None
    # The root of the dump, as given.
    path: str = "./"
    # `input`, `output` or `all`: which tensors of an operator.
    mode: str = "all"
    # Pairs of a first and a last step, inclusive, in the given order; they may overlap. `None`
    # means every step.
    steps: tuple[StepRange, ...] | None = None
    # Names of operators, modules or kinds of operators, without duplicates, in the given order.
    # Empty means every operator. Nodes marked by `scope.data_dump()` are dumped in addition.
    layers: tuple[str, ...] = ()
    # `tensor`, `stats`, or `table`: statistics in one table for each step.
    data: str = "tensor"
    # For dumps of values: `native`, a table for each step and a few files of elements, or `acl`,
    # AscendCL's tree. In `native`, `table` is the same as `stats`.
    form: str = "acl"
    # Whether to dump inputs and outputs of quantisation operators, also of those next to a chosen
    # operator.
    quant_dumpable: bool = False
    # `None` for the directories and files of graph mode (`max-autotune`). Otherwise `original` or
    # `optimized`: one `.pt` file for each tensor, from the graph of that stage; then `mode`,
    # `steps`, `layers` and `data` have their defaults.
    stage: str | None = None
    # The processes that write, as pairs like `steps`; `None` means every one.
    ranks: tuple[StepRange, ...] | None = None
    # `all`, or names of operators, modules, parameters and arguments whose values are watched,
    # instead of the dump.
    watch: str | tuple[str, ...] = ()
    # `brief`, `norm` or `detail`, or `True`, which means `norm`: only operators that raise are
    # dumped.
    exception: str | bool | None = None
    # A MindSpore configuration: its text, or a file name. It replaces everything but `enabled`, and
    # the dump has MindSpore's form for `target`, with this device number, and with this process's
    # rank or the one given.
    mindspore_json: Any | None = None
    target: str = "cpu"
    device: int = 0
    rank: int | None = None

    @property
    def has_inputs(self) -> bool:
        """Whether operators' inputs are dumped."""
        return self.mode in ("input", "all")

    @property
    def has_outputs(self) -> bool:
        """Whether operators' outputs are dumped."""
        return self.mode in ("output", "all")

    def has_step(self, step: int) -> bool:
        """Whether a step, counted from 0, is dumped."""
        if not self.enabled:
            return False
        if self.steps is None:
            return True
        step = min(step, STEP_MAX)
        return any(first <= step <= last for first, last in self.steps)
