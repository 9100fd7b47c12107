"""Watching values in code that runs without `torch.compile`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _options
from .._argument import shown
from . import _calls, _dump, _fork, _names, _watch
from ._graph import Described
from ._plan import Config, DumpPlan, check, check_config
from ._watch import Seen, Watcher, Write

_ALL = "all"
# Maximum number of names stored for suggestions.
_N_KNOWN_MAX = 10_000
_UNINITIALISED = ("aten.empty", "aten.new_empty")
# Their results become ready later, without an operator.
_COLLECTIVES = ("_c10d_functional.", "c10d_functional.", "c10d.")


class watch(TorchDispatchMode):  # noqa: N801
    """Reports which operator inside the context overwrites a value.

        with opscope.torch.watch("dump", names=["conv1", "aten.relu"], model=model) as watched:
            ...
        print(watched.report["overwrite_table"])
    
    `names` are modules, parameters and buffers of `model`, operators or kinds of operators, in a
    list or separated by blanks; `all` means every result, and every parameter and buffer of
    `model`; without names, only tensors passed to `note`. `report` is available afterwards.
    """

    def __init__(
        self,
        path: str | os.PathLike = "./",
        names: str | Iterable[str] = _ALL,
        *,
        model: torch.nn.Module | None = None,
        data: str = "tensor",
        step: int = 0,
        watch_bytes_max: int = Config.watch_bytes_max,
    ) -> None:
        super().__init__()
        _options.path("path", path)
        _options.names("names", names)
        _options.instance("model", model, torch.nn.Module, "a torch.nn.Module")
        _options.whole("step", step, 0)
        tokens = tuple(names.split() if isinstance(names, str) else names)
        # The watched values are chosen here; the plan only enables watching.
        plan = DumpPlan(path=os.fspath(path), data=data, watch=_ALL)
        config = Config(watch_bytes_max=watch_bytes_max)
        check(plan)
        check_config(config)
        self._dump = _dump.Dump(plan, config, is_enabled=True, has_graphs=False)
        self._layers = _names.Layers(tokens)
        self._is_all = _ALL in tokens
        self._model = model
        self._modules = _calls.Modules(model)
        self._step = step
        self._n_operators = 0
        self._n_of_base: dict[str, int] = {}
        self._last = _watch.NOTHING
        self._watcher: Watcher | None = None
        self._is_broken = False
        # Tensors named by the program are kept until the end.
        self._held: list[torch.Tensor] = []
        self._missing: set[str] = set(tokens) - {_ALL}
        # Names of operators and modules that ran, for suggestions.
        self._known: set[str] = set()
        self.report: dict = {}
        _fork.follow(self)

    def leave_fork(self) -> None:
        """A fork does not watch."""
        self._is_broken = True
        self._watcher = None
        self._modules.end()

    def __enter__(self) -> Any:
        try:
            native = self._dump.watch("eager", 1, Described(), _watch.storage_state)
        except _dump.Unwritable:
            # The program continues unwatched, and has been told why.
            self._is_broken = True
            return super().__enter__()
        self._watcher = Watcher(native, self._dump.findings, graph="eager", is_scene=False)
        self._is_broken = not self._watcher.begin(self._step)
        self._last = Seen("", "the beginning", _watch.ARGUMENT_TASK, _calls.source())
        self._guarded(self._note_tensors_of_model)
        self._modules.begin()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._modules.end()
        following = Seen("", "the end", _watch.ARGUMENT_TASK, _calls.source())
        self._guarded(lambda: self._between(following))
        self._guarded(lambda: self._watcher.end() if self._watcher is not None else None)
        self._held.clear()
        self.report = self._dump.finish(0)
        for token in sorted(self._missing if self.report else ()):
            _dump.warn(f"nothing that ran is called {token}{_names.hint(token, self._known)}")

    def note(self, name: str, tensor: torch.Tensor) -> None:
        """Watches one of the program's tensors from now on."""
        _options.string("name", name)
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"tensor: a torch.Tensor is expected, got {shown(tensor)} ({type(tensor).__name__})")
        seen = Seen(_watch.ARGUMENT_TYPE, name, _watch.ARGUMENT_TASK, _calls.source())
        self._held.append(tensor)
        self._guarded(lambda: self._watcher.note(seen, [(0, tensor)]) if self._watcher is not None else None)

    def _note_tensors_of_model(self) -> None:
        if self._model is None or self._watcher is None:
            return
        for name, tensor in [*self._model.named_parameters(), *self._model.named_buffers()]:
            self._known.add(name)
            if self._is_all or name in self._missing:
                self._missing.discard(name)
                seen = Seen(_watch.ARGUMENT_TYPE, name, _watch.ARGUMENT_TASK)
                self._watcher.note(seen, [(0, tensor)])

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._is_broken:
            return func(*args, **kwargs)
        seen = self._seen(func)
        self._guarded(lambda: self._between(seen))
        result = func(*args, **kwargs)
        self._guarded(lambda: self._after(seen, func, args, kwargs, result))
        self._last = seen
        return result

    def _seen(self, func: Any) -> Seen:
        target = _names.target_name(func)
        base = _names.base_name(target)
        n = self._n_of_base.get(base, 0)
        self._n_of_base[base] = n + 1
        number, self._n_operators = self._n_operators, self._n_operators + 1
        return Seen(target.replace(".", "_"), f"{base}_{n}" if n else base, number, _calls.source())

    def _between(self, following: Seen) -> None:
        """Checks for changes since the previous operator finished."""
        if self._watcher is not None:
            self._watcher.settle()
            self._watcher.check(self._last, following=following)

    def _after(self, seen: Seen, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        watcher = self._watcher
        if watcher is None:
            return
        writes = [
            Write(tensor, is_out)
            for given, is_out in _watch.writes_of(func, args, kwargs)
            for tensor in _tensors(given)
        ]
        if any(write.is_out for write in writes) and _calls.is_of_torch():
            writes = [Write(write.tensor) for write in writes]
        watcher.count_operator()
        # Torch updates version counters only after the operator has returned.
        watcher.check(seen, writes, is_settled=False)
        is_unfinished = str(func).startswith(_COLLECTIVES) and ".wait_tensor" not in str(func)
        if self._is_chosen(seen, func) and not is_unfinished:
            is_blank = str(func).startswith(_UNINITIALISED)
            is_view = self._is_all and _watch.is_view(func)
            watcher.note(seen, enumerate(_tensors(result)), is_view=is_view, is_blank=is_blank)

    def _is_chosen(self, seen: Seen, func: Any) -> bool:
        if self._is_all:
            return True
        target = _names.target_name(func)
        base = _names.base_name(target)
        alias = _names.alias_base(base) + seen.op_name[len(base) :]
        names, module = [seen.op_name, alias, target, base], self._modules.current
        if self._missing and len(self._known) < _N_KNOWN_MAX:
            self._known.update((*names, module))
        (is_chosen,) = self._layers.choose([names], [module])
        if is_chosen and self._missing:
            self._missing -= self._layers.found
        return is_chosen

    def _guarded(self, work: Any) -> None:
        """Errors end the watch, but not the program."""
        if self._is_broken:
            return
        try:
            work()
        except Exception as error:  # noqa: BLE001
            self._is_broken = True
            self._dump.findings.note_fault(error)


def _tensors(given: Any) -> list[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        return [given]
    if isinstance(given, (tuple, list)):
        return [tensor for part in given for tensor in _tensors(part)]
    return []
