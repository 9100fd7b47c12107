"""`config.debug`: output about the compilation of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from opscope.torchair.configs._node import Node, Options, child, option
from opscope.torchair.configs._option import IntRangeValue, OptionValue, RealPathValue

INT64_MAX = 2**63 - 1


class _DebugOutput(Node):
    """An output enabled by its `type`."""

    type = option(OptionValue, None, [None])
    # Other tools assign to it, with the absolute path that `path` would compute.
    _path = option(OptionValue, None)

    @property
    def enabled(self) -> bool:
        """Whether a type was chosen."""
        return self.type.raw is not None

    @property
    def directory(self) -> str:
        """The output directory."""
        return "." if self._path.raw is None else str(self._path.raw)


class _DebugOutputWithPath(_DebugOutput):
    _properties: tuple[str, ...] = ("path",)

    @property
    def path(self) -> str | None:
        """The output directory, an absolute path, or `None` for the working directory."""
        value: str | None = self._path.value
        return value

    @path.setter
    def path(self, value: Any) -> None:
        real = RealPathValue(None)
        real._name = "path"
        real.value = value
        self._path = real.value


class GraphDump(_DebugOutputWithPath):
    """Descriptions of graphs."""

    type = option(OptionValue, None, ["txt", "pbtxt", "py"])


class DataDump(_DebugOutputWithPath):
    """Values of the operators of the FX graph, as `.npy` files."""

    type = option(OptionValue, None, ["npy"])
    _properties = ("path", "filter")

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["filter"] = None

    @property
    def filter(self) -> Callable[[Any], Any] | None:
        """Called with a node of the graph; nodes for which it returns `None` are skipped."""
        found: Callable[[Any], Any] | None = self.__dict__["filter"]
        return found

    @filter.setter
    def filter(self, value: Callable[[Any], Any] | None) -> None:
        if value is not None and not callable(value):
            raise TypeError(f"filter: a callable or None is expected, got {value.__class__}")
        self.__dict__["filter"] = value

    def _shown(self) -> Iterator[tuple[str, str]]:
        yield from super()._shown()
        if self.filter is not None:
            yield "filter", repr(self.filter)


class FxSummary(_DebugOutput):
    """A table of the operators of a graph."""

    type = option(OptionValue, None, ["csv"])
    skip_compile = option(OptionValue, True, [True, False])


class AclGraphDebugConfig(Node):
    """Options of captured graphs."""

    disable_reinplace_inplaceable_ops_pass = option(OptionValue, False, [True, False])
    disable_reinplace_input_mutated_ops_pass = option(OptionValue, False, [True, False])
    disable_mempool_reuse_in_same_fx = option(OptionValue, False, [True, False])
    enable_output_clone = option(OptionValue, False, [True, False])
    static_capture_size_limit = option(IntRangeValue, 64, 1, INT64_MAX)
    clone_input = option(OptionValue, True, [True, False])
    remove_cat_ops = option(OptionValue, True, [True, False])

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """Four of the options; the graph engine does not get the others."""
        names = ("disable_mempool_reuse_in_same_fx", "enable_output_clone", "static_capture_size_limit", "clone_input")
        return {name: getattr(self, name).value for name in names}, {}


class DebugConfig(Node):
    """Options for inspecting a compilation."""

    graph_dump = child(GraphDump)
    data_dump = child(DataDump)
    fx_summary = child(FxSummary)
    run_eagerly = option(OptionValue, False, [True, False])
    aclgraph = child(AclGraphDebugConfig)
    deadlock_check = option(OptionValue, False, [True, False])

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """Local options, except those about graph descriptions."""
        local, _ = self.aclgraph.as_dict(mode)
        local["run_eagerly"] = self.run_eagerly.value
        local["deadlock_check"] = self.deadlock_check.value
        return local, {}
