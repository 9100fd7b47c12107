"""Names among the backends of `torch.compile`, which torch hears of when it loads its compiler.

Loading that takes seconds, which a program that only imports this package need not wait for.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint
from types import ModuleType

_REGISTRY = "torch._dynamo.backends.registry"
_entries: dict[str, EntryPoint] = {}


def add(name: str, target: str) -> None:
    """Makes a name stand for an object, unless it stands for another; `target` is `module:attribute`.

    The object is loaded when a program asks for the backend. Torch has a function to add a backend, but none to add one
    that is looked up only then.
    """
    _entries[name] = EntryPoint(name, target, "torch_dynamo_backends")
    registry = sys.modules.get(_REGISTRY)
    if registry is not None:
        _tell(registry)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _tell(registry: ModuleType) -> None:
    # A torch that keeps its backends elsewhere says that it does not know the name, when it is asked for.
    backends = getattr(registry, "_BACKENDS", {})
    for name, entry in _entries.items():
        backends.setdefault(name, entry)


class _Finder:
    """Finds torch's registry as others do, and tells it the names once it is loaded."""

    def __init__(self) -> None:
        self._is_asking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # The other finders are asked through Python, which asks this one again.
        if fullname != _REGISTRY or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_asking = False
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_tell(registry: ModuleType) -> None:
                load(registry)
                _tell(registry)

            spec.loader.exec_module = load_and_tell
        return spec
