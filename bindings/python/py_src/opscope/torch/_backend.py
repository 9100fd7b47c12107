"""The `torch.compile` backend: AOT autograd graphs, run operator by operator, with taps."""

from __future__ import annotations

import atexit
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from torch.fx import GraphModule

from .. import _options, _visible
from .._fork_lock import ForkLock
from . import (
    _captured,
    _dump,
    _eager,
    _failure_graph,
    _fork,
    _graph,
    _graph_json,
    _mindspore,
    _model_names,
    _names,
    _origin,
    _origins,
    _plan,
    _printing,
    _quantisation,
    _ranks,
    _runner,
    _storage,
    _watch_graph,
)
from ._plan import Config, DumpPlan

_log = _visible.logger()
# Graphs are numbered per process, forward and backward ones alike.
_graph_numbers = itertools.count(1)
_backends: list[Backend] = []
_named: dict[tuple, tuple[Backend, dict]] = {}
_lock = ForkLock()
# Whether a program requested the backend by name and torch has not called it since.
_is_asked_for = False


class Known(NamedTuple):
    """Facts shared by all graphs from one graph of `torch.compile`."""

    origins: _origins.Origins | None = None
    model_names: _model_names.ModelNames | None = None
    # For dumps in MindSpore's form.
    origin: _origin.Origin | None = None


class Backend:
    """Compiles graphs so that their executions are dumped. Pass it to `torch.compile` as `backend`.
    """

    __name__ = "opscope"

    def __init__(self, plan: Any, config: Config) -> None:
        _plan.check(plan)
        _plan.check_config(config)
        self.plan = plan
        # A valid file may request nothing.
        self.is_enabled = bool(plan.enabled) and _plan.is_asked_for(plan)
        self.is_mindspore = getattr(plan, "mindspore_json", None) is not None
        self.config = config
        self.n_graphs = 0
        self.layers = _names.Layers(plan.layers)
        watch = getattr(plan, "watch", ())
        self.watch_layers = _names.Layers((watch,) if isinstance(watch, str) else watch)
        self._watchable: set[str] = set()
        self.dump = _dump.Dump(plan, config, is_enabled=self.is_enabled)
        self.stage: str | None = getattr(plan, "stage", None) if self.is_enabled else None
        self.captured = _captured.Captured(self.dump.path)
        self.marks = _mindspore.Marks()

    def __call__(self, gm: GraphModule, example_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
        """Compiles one graph of `torch.compile`."""
        # Imported here because torch's compiler takes seconds to load, even if nothing is compiled.
        from functorch.compile import default_partition
        from torch._dynamo.backends.common import aot_autograd

        if options := kwargs.pop("options", None):
            raise ValueError(f"a backend object already has its options, but `torch.compile` passes {options}")
        exposure, origins = _storage.Exposure(), _origins.Origins(gm)
        exposure.sources = _names.argument_names(gm)
        origin = _origin.of_graph(gm) if self.is_mindspore else None
        model_names = _model_names.ModelNames(gm) if self.is_enabled else None
        known = (exposure, Known(origins, model_names, origin))
        compile_with = aot_autograd(
            fw_compiler=self._compiler("forward", *known),
            bw_compiler=self._compiler("backward", *known),
            inference_compiler=self._compiler("inference", *known),
            partition_fn=default_partition,
            decompositions=self.config.decompositions,
            keep_inference_input_mutations=self.config.keep_inference_input_mutations,
        )
        return compile_with(gm, example_inputs, **kwargs)

    def _compiler(self, phase: str, exposure: _storage.Exposure, known: Known) -> Callable[..., Any]:
        def compile_phase(gm: GraphModule, example_inputs: Any) -> Callable[..., Any]:
            return self.compile_aten(gm, phase, exposure, example_inputs, known)

        return compile_phase

    def compile_aten(
        self,
        gm: GraphModule,
        phase: str = "inference",
        exposure: _storage.Exposure | None = None,
        example_inputs: Any = (),
        known: Known | None = None,
    ) -> Callable[[list], Any]:
        """Compiles an AOT autograd graph to a function that takes a list, which it empties."""
        self.n_graphs += 1
        if phase == "backward":
            _printing.leave_to_forward(gm)
        exposure = exposure or _storage.Exposure()
        return self.compile_numbered(gm, phase, exposure, example_inputs, next(_graph_numbers), known)

    def compile_numbered(
        self,
        gm: GraphModule,
        phase: str,
        exposure: _storage.Exposure,
        example_inputs: Any,
        number: int,
        known: Known | None = None,
    ) -> Callable[[list], Any]:
        """Compiles a numbered graph."""
        # Only now is this process's rank certain.
        if not self.is_enabled or self.dump.is_left or not _ranks.is_chosen(getattr(self.plan, "ranks", None)):
            return _runner.untapped(gm)
        if self.stage is not None:
            return self.captured.compiled(gm)
        try:
            self.dump.begin()
        except _dump.Unwritable:
            # The model runs without its dump; the program has been told why.
            return _runner.untapped(gm)
        known = known or Known()
        if known.origins is not None:
            known.origins.complete(gm, phase)
        described = _graph.describe(gm, phase, known.origins, f"graph_{number}")
        if known.model_names is not None:
            described.name(known.model_names.names(gm))
        if self.is_mindspore:
            return self._compile_mindspore(gm, described, phase, known.origin or _origin.Origin(), number)
        self._select(described, number)
        load = number if self.config.model_id == "graph" else 1
        if self.dump.purpose == "watch":
            sources = exposure.sources if exposure else []
            return _watch_graph.watched(self, gm, described, (f"graph_{number}", load, phase), sources)
        graph = self.dump.attach(f"graph_{number}", load, described)
        _log.debug("graph_%d: %s, %d operators, %d tapped", number, phase, len(described.operators), len(graph.tapped))

        def write_description() -> None:
            self.describe_graph(described, f"graph_{number}", phase)

        if self.dump.purpose.startswith("exception"):
            return _failure_graph.Guarded(gm, described, graph, self.dump, write_description).run
        return _runner.Runner(gm, described, graph, write_description).run

    def _compile_mindspore(
        self, gm: GraphModule, described: _graph.Described, phase: str, origin: _origin.Origin, number: int
    ) -> Callable[[list], Any]:
        _origin.note_arguments(origin, gm, phase)
        renamed = _mindspore.rename(described, phase, origin)
        beside = (_mindspore.constants(described), _mindspore.types(described), _mindspore.carried(described))
        graph = self.dump.attach(f"graph_{number}", number, renamed, *beside)
        self.dump.note_rules(graph.unused_rules)
        if graph.is_marking:
            self.marks.see(described, origin)
        return _runner.Runner(gm, described, graph, lambda: None).run

    def describe_graph(self, described: _graph.Described, name: str, phase: str) -> None:
        """Called once for each graph, before its first dumped execution."""
        self.dump.describe(name, _graph_json.to_json(described, name, phase))

    def _select(self, described: _graph.Described, number: int) -> None:
        self._select_by_name(described, number)
        if self.plan.quant_dumpable:
            _quantisation.select(described)

    def _select_by_name(self, described: _graph.Described, number: int) -> None:
        operators = described.operators
        is_any_marked = any(operator.is_marked for operator in operators)
        if not self.layers.tokens and not is_any_marked:
            return
        names = [operator.names for operator in operators]
        modules = [operator.module for operator in operators]
        for operator, is_chosen in zip(operators, self.layers.choose(names, modules)):
            operator.is_selected = is_chosen or operator.is_marked
        for token, nearest in self.layers.unmatched(names, modules):
            hint = f"; similar names: {', '.join(nearest)}" if nearest else ""
            _log.warning("graph_%d has no operator or module `%s`%s", number, token, hint)

    def note_watched(self, described: _graph.Described, arguments: Iterable[str]) -> None:
        """Records watchable names, for suggestions."""
        for operator in described.operators:
            self._watchable.update((*operator.names, operator.module))
        self._watchable.update(arguments)

    def _tell_unwatched(self) -> None:
        for token in self.watch_layers.tokens:
            if self._watchable and token not in self.watch_layers.found and token != _watch_graph.ALL:
                _dump.warn(f"nothing that ran is called {token}{_names.hint(token, self._watchable)}")
        self._watchable.clear()

    def counters(self) -> dict | None:
        """The counts so far; `None` if nothing was compiled yet."""
        return self.dump.counters()

    def finish(self) -> dict:
        """Writes the rest and returns a summary of the dump. Later runs are not dumped."""
        with _lock:
            if self in _backends:
                _backends.remove(self)
            for key in [key for key, (backend, _) in _named.items() if backend is self]:
                del _named[key]
        self._tell_unwatched()
        complaints, self.marks = self.marks.complaints(), _mindspore.Marks()
        for complaint in complaints:
            _log.warning("%s", complaint)
        return {**self.dump.finish(self.n_graphs), **self.captured.report()}


def make_backend(plan: Any, config: Any = None, *, decompositions: Mapping[Any, Any] | None = None) -> Backend:
    """A backend for a plan: a `DumpPlan`, or anything with its attributes.

    `config` is a `Config`; options of another kind, such as TorchAir's, are ignored here.
    """
    settings = config if isinstance(config, Config) else Config()
    if decompositions:
        settings = replace(settings, decompositions=dict(decompositions))
    return opened(Backend(plan, settings))


def opened(made: Backend) -> Backend:
    """Registers a backend to be finished by `finish` and at the end of the process."""
    with _lock:
        _backends.append(made)
    return made


def make_compiler(plan: Any, config: Any = None) -> Callable[[Any, Any], Callable[..., Any]]:
    """A compiler for single graphs of ATen operators, for backends with their own graphs."""
    made = make_backend(plan, config)
    return lambda gm, _example_inputs: made.compile_aten(gm)


def backend(
    path: str | os.PathLike = "./",
    *,
    steps: int | str | Iterable | None = None,
    layers: str | Iterable[str] = (),
    ranks: int | str | Iterable | None = None,
    **options: Any,
) -> Backend:
    """A backend that dumps below `path`.

    `steps` are a number, a text such as `0|5-8`, or numbers and pairs; `layers` names operators,
    modules or kinds of operators, in a list or separated by blanks. `ranks`, in the form of
    `steps`, are the processes that write. Other options are the remaining fields of `DumpPlan` and
    `Config`; the default of `form` is `native`.
    """
    _options.path("path", path)
    _options.names("layers", layers)
    names = tuple(layers.split() if isinstance(layers, str) else layers)
    if "watch" in options:
        watch = () if options["watch"] is None else options["watch"]
        _options.names("watch", watch)
        options["watch"] = tuple(watch.split() if isinstance(watch, str) else watch)
    of_plan, of_config = ({field.name for field in fields(kind)} for kind in (DumpPlan, Config))
    if unknown := sorted(set(options) - of_plan - of_config):
        known = sorted({"path", "steps", "layers", "ranks"} | of_plan | of_config)
        raise ValueError(f"there is no option `{unknown[0]}`; there are {', '.join(known)}")
    plan = DumpPlan(
        **{"form": "native"} | {name: value for name, value in options.items() if name in of_plan},
        path=os.fspath(path),
        steps=_plan.parse_numbers(steps, "steps"),
        layers=names,
        ranks=_plan.parse_numbers(ranks, "ranks"),
    )
    return make_backend(plan, Config(**{name: value for name, value in options.items() if name in of_config}))


def named(options: dict) -> Backend:
    """The backend of `torch.compile(backend="opscope", options=…)`: one for all graphs of equal
    options."""
    note_called()
    key = tuple(sorted((name, _identity(value)) for name, value in options.items()))
    with _lock:
        known = _named.get(key)
    if known is not None:
        return known[0]
    found = backend(**options)
    with _lock:
        # Keeps the options alive, so that their ids are not reused.
        _named[key] = (found, options)
    return found


def _identity(value: Any) -> str:
    """A text that identifies equal options; objects are identified by id."""
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if type(value) in (list, tuple):
        return f"[{', '.join(map(_identity, value))}]"
    if isinstance(value, os.PathLike):
        return repr(os.fspath(value))
    return f"{type(value).__name__} at {id(value)}"


def note_asked_for() -> None:
    """Records that torch was asked for the backend by name."""
    global _is_asked_for
    _is_asked_for = True


def note_called() -> None:
    """Records that torch called the requested backend."""
    global _is_asked_for
    _is_asked_for = False


def set_step(step: int | None) -> None:
    """Sets the step number for all graphs from now on; with `None`, each graph counts its own
    executions again."""
    _runner.set_step(step)


def step() -> int:
    """Begins the next step of all graphs, the first one on the first call; returns its number."""
    return _runner.next_step()


def finish() -> list[dict]:
    """Finishes the dumps of all backends and of eager mode; returns a summary of each."""
    with _lock:
        open_backends = list(_backends)
    return [backend.finish() for backend in open_backends] + _eager.finish()


class _Process:
    """The backends that this process has started."""

    def leave_fork(self) -> None:
        """A fork has started none."""
        global _is_asked_for
        _is_asked_for = False
        _backends.clear()
        _named.clear()


_process = _Process()
_fork.follow(_process)


def _finish_at_exit() -> None:
    finish()
    if _is_asked_for:
        _dump.warn_of_nothing()


atexit.register(_finish_at_exit)
