"""Compiled graphs with watched values: a copy of the graph's code calls the watch after each
operator."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule, Node

from .._fork_lock import ForkLock
from . import _graph_json, _runner, _taps, _watch
from ._findings import Findings
from ._graph import Described
from ._names import Layers
from ._watch import Seen, Watcher, Write

ALL = "all"
# AOT autograd's names of program arguments, numbered from 1 and from 0.
_TRAINED = re.compile(r"^primals_(\d+)$")
_INFERRED = re.compile(r"^arg(\d+)_1$")


def watched(
    backend: Any, gm: GraphModule, described: Described, graph: tuple[str, int, str], sources: list[str]
) -> Callable[[list], Any]:
    """A graph with watched values, for a dump of that purpose. `sources` are the program's names of
    the forward graph's arguments.
    """
    name, load, phase = graph
    native = backend.dump.watch(name, load, described, _watch.storage_state)
    arguments = _arguments(described, sources)
    is_scene = backend.plan.acl_json is not None
    if is_scene:
        roles, chosen = native.roles, set()
    else:
        roles, chosen = _roles(backend.watch_layers, described, arguments)
        backend.note_watched(described, arguments.values())
    watcher = Watcher(native, backend.dump.findings, graph=name, is_scene=is_scene)

    def write_description() -> None:
        backend.dump.describe(name, _graph_json.to_json(described, name, phase))

    is_all = not is_scene and ALL in backend.watch_layers.tokens
    how = _How(described, roles, chosen, arguments, is_scene, is_all)
    return WatchedGraph(gm, how, watcher, backend.dump.findings, write_description).run


def _arguments(described: Described, sources: list[str]) -> dict[int, str]:
    """The program's arguments of a graph, by value number, with the program's names."""
    found = {}
    for number, value in enumerate(described.values):
        if value.is_input and value.node is not None:
            trained, inferred = _TRAINED.match(value.node.name), _INFERRED.match(value.node.name)
            position = int(trained[1]) - 1 if trained else int(inferred[1]) if inferred else -1
            known = sources[position] if 0 <= position < len(sources) else ""
            found[number] = known or value.name
    return found


def _roles(layers: Layers, described: Described, arguments: dict[int, str]) -> tuple[list[str | None], set[int]]:
    """Finds each operator's role, and the watched arguments."""
    if ALL in layers.tokens:
        return ["watched"] * len(described.operators), set(arguments)
    names = [operator.names for operator in described.operators]
    modules = [operator.module for operator in described.operators]
    is_watched = layers.choose(names, modules)
    own = [[name, described.values[number].name] for number, name in arguments.items()]
    is_argument_watched = layers.choose(own, [""] * len(own))
    chosen = {number for number, is_chosen in zip(arguments, is_argument_watched) if is_chosen}
    return ["watched" if is_it else "suspect" for is_it in is_watched], chosen


class _How:
    """The choice of watched values in a graph."""

    def __init__(
        self,
        described: Described,
        roles: list[str | None],
        chosen: set[int],
        arguments: dict[int, str],
        is_scene: bool,
        is_all: bool,
    ) -> None:
        self.described = described
        self.is_all = is_all
        self.roles = roles
        self.is_scene = is_scene
        # Watched arguments, by node name.
        self.arguments = {
            described.values[number].name: Seen(_watch.ARGUMENT_TYPE, arguments[number], _watch.ARGUMENT_TASK)
            for number in chosen
        }
        self.seen = [
            Seen(op.op_type.replace(".", "_"), op.op_name, task_id, dict(op.attributes).get("source", ""))
            for task_id, op in enumerate(described.operators)
        ]


class WatchedGraph:
    """A graph that runs unchanged or, if the execution is recorded, with the watch."""

    def __init__(
        self, gm: GraphModule, how: _How, watcher: Watcher, findings: Findings, on_first: Callable[[], None]
    ) -> None:
        self._gm = gm
        self._how = how
        self._watcher = watcher
        self._findings = findings
        self._on_first = on_first
        self._steps = itertools.count()
        self._plain = _taps.plain(gm)
        self._with_watch: Callable[[list], Any] | None = None
        self._writes: list[list[bool]] = []
        self._lock = ForkLock()
        self._is_broken = False

        def run(args: list) -> Any:
            return self._run(args)

        run._boxed_call = True
        self.run = run

    def _run(self, args: list) -> Any:
        count = next(self._steps)
        if not self._lock.acquire(blocking=False):
            self._findings.n_runs_overlapping += 1
            return self._plain(args)
        try:
            if not self._begin(_runner.step_or(count)):
                return self._plain(args)
            arguments = [self, *args]
            args.clear()
            try:
                return self._code()(arguments)
            finally:
                self._guarded(self._watcher.end)
        finally:
            self._lock.release()

    def _begin(self, step: int) -> bool:
        is_begun = False

        def begin() -> None:
            nonlocal is_begun
            is_begun = self._watcher.begin(step)
            if is_begun:
                self._code()

        self._guarded(begin)
        return is_begun and not self._is_broken

    def _code(self) -> Callable[[list], Any]:
        if self._with_watch is None:
            self._with_watch, self._writes = _instrumented(self._gm, self._how)
            self._on_first()
        return self._with_watch

    def _guarded(self, work: Callable[[], None]) -> None:
        """Errors end the watch, but not the model."""
        if self._is_broken:
            return
        try:
            work()
        except Exception as error:  # noqa: BLE001
            self._is_broken = True
            self._findings.note_fault(error)

    def begin_arguments(self, names: tuple[str, ...], tensors: tuple) -> None:
        """Starts watching the graph's selected arguments."""

        def note() -> None:
            for name, tensor in zip(names, tensors):
                self._watcher.note(self._how.arguments[name], [(0, tensor)], is_kept=True)

        self._guarded(note)

    def after(self, number: int, result: Any, written: tuple) -> None:
        """Called after each operator."""
        self._guarded(lambda: self._after(number, result, written))

    def _after(self, number: int, result: Any, written: tuple) -> None:
        how = self._how
        seen, role = how.seen[number], how.roles[number]
        flags = self._writes[number]
        writes = [Write(part, is_out) for tensor, is_out in zip(written, flags) for part in _tensors(tensor)]
        self._watcher.count_operator()
        self._watcher.check(seen, writes, leaves_looks=how.is_scene and role == "suspect")
        if role != "watched":
            return
        operator = how.described.operators[number]
        values = [None if value is None else how.described.values[value] for value in operator.outputs]
        outputs = [
            (position, tensor)
            for position, (value, tensor) in enumerate(zip(values, _flat(result)))
            if value is not None and _is_tensor(tensor) and _is_there(value)
        ]
        target = operator.node.target if operator.node is not None else None
        is_blank = any(value is not None and value.reason is not None for value in values)
        is_view = how.is_all and _watch.is_view(target)
        self._watcher.note(seen, outputs, is_kept=how.is_scene, is_view=is_view, is_blank=is_blank)


def _is_there(value: Any) -> bool:
    return value.reason in (None, "uninitialised") and not value.is_late


def _is_tensor(found: Any) -> bool:
    return hasattr(found, "untyped_storage")


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [item for part in result for item in _flat(part)]
    return [result]


def _tensors(given: Any) -> list[Any]:
    return [item for item in _flat(given) if _is_tensor(item)]


def _instrumented(gm: GraphModule, how: _How) -> tuple[Callable[[list], Any], list[list[bool]]]:
    """The graph with a call after each operator, and the tensors that each declares to write."""
    graph = copy.deepcopy(gm.graph)
    ours = dict(zip(gm.graph.nodes, graph.nodes))
    with graph.inserting_before(next(iter(graph.nodes))):
        run = graph.placeholder("opscope_run")
    flags = []
    for number, operator in enumerate(how.described.operators):
        if operator.body is not None:
            # An operator inside another one counts as the outer one.
            flags.append([])
            continue
        writes = list(_watch.writes_of(operator.node.target, operator.node.args, operator.node.kwargs))
        flags.append([is_out for _, is_out in writes])
        node = ours[operator.node]
        written = tuple(_ours(given, ours) for given, _ in writes)
        with graph.inserting_after(node):
            graph.call_method("after", (run, number, node, written))
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    given = [node for node in placeholders if node.name in how.arguments]
    if given:
        with graph.inserting_after(placeholders[-1]):
            graph.call_method("begin_arguments", (run, tuple(node.name for node in given), tuple(given)))
    return _taps.boxed(gm, graph), flags


def _ours(given: Any, ours: dict[Node, Node]) -> Any:
    if isinstance(given, (tuple, list)):
        return tuple(_ours(node, ours) for node in given)
    return ours.get(given, None) if isinstance(given, Node) else None
