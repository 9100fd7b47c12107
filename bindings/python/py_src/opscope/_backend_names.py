"""Names of `torch.compile` backends, registered when torch loads its compiler.

Loading that takes seconds, which programs that only import this package need not spend.
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
    """Registers a name for an object unless the name is taken; `target` is `module:attribute`.

    The object is loaded when a program requests the backend. Torch has a function to add a backend,
    but none to add a lazy one.
    """
    _entries[name] = EntryPoint(name, target, "torch_dynamo_backends")
    registry = sys.modules.get(_REGISTRY)
    if registry is not None:
        _tell(registry)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _tell(registry: ModuleType) -> None:
    # A torch that stores its backends elsewhere reports an unknown name when it is requested.
    backends = getattr(registry, "_BACKENDS", {})
    for name, entry in _entries.items():
        backends.setdefault(name, entry)


class _Finder:
    """Finds torch's registry like other finders, and adds the names once it is loaded."""

    def __init__(self) -> None:
        self._is_asking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # The other finders are called through Python, which calls this one again.
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
