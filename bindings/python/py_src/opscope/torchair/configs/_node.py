"""Nodes: containers of named options and other nodes.

A class lists the contents of its nodes, in order:

    class Example(Node):
        enable = option(OptionValue, False, [False, True])
        more = child(Other)

Each node then has separate options and child nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from opscope.torchair.configs._option import OptionValue

N = TypeVar("N")
Self = TypeVar("Self", bound="Node")
Options = dict[str, Any]


class _Option:
    """The descriptor of an option in a class. Reading returns the option; assigning sets its value.
    """

    def __init__(self, make: Callable[[], OptionValue]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, owner: Any = None) -> OptionValue:
        if node is None:
            raise AttributeError(f"`{self.name}` belongs to a configuration, not to its class")
        found: OptionValue = node.__dict__[self.name]
        return found

    def __set__(self, node: Any, value: Any) -> None:
        node.__dict__[self.name].value = value

    def new(self) -> OptionValue:
        made = self.make()
        made._name = self.name
        return made


class _Child(Generic[N]):
    """The descriptor of a child node in a class."""

    def __init__(self, of: Callable[[], N]) -> None:
        self.of = of

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, node: Any, owner: Any = None) -> N:
        if node is None:
            raise AttributeError(f"`{self.name}` belongs to a configuration, not to its class")
        found: N = node.__dict__[self.name]
        return found

    def __set__(self, node: Any, value: N) -> None:
        if type(value) is not self.of:
            raise TypeError(f"{self.name}: a {getattr(self.of, '__name__', self.of)} is expected, got {type(value)}")
        node.__dict__[self.name] = value


def option(kind: Callable[..., OptionValue], *arguments: Any, **keywords: Any) -> _Option:
    """Declares an option of a node class."""
    return _Option(lambda: kind(*arguments, **keywords))


def child(of: Callable[[], N]) -> _Child[N]:
    """Declares a child node of a node class."""
    return _Child(of)


class Node:
    """Named options and nodes. No names can be added."""

    # Names of properties that can also be assigned.
    _properties: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name, place in _places(type(self)):
            self.__dict__[name] = place.new() if isinstance(place, _Option) else place.of()

    def __setattr__(self, name: str, value: Any) -> None:
        names = self._names()
        if name not in names:
            raise ValueError(f"{type(self).__name__} has no option {name}, all options {names}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted")

    def __repr__(self) -> str:
        shown = [f"{name}={what}" for name, what in self._shown()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def as_dict(self, mode: str = "max-autotune") -> tuple[Options, Options]:
        """Local and global options, with the graph engine's names."""
        local: Options = {}
        of_process: Options = {}
        for name, place in _places(type(self)):
            found = self.__dict__[name]
            if isinstance(place, _Option):
                if found.value is not None:
                    local[name] = found.value
            elif isinstance(found, Node):
                below = found.as_dict(mode)
                local.update(below[0])
                of_process.update(below[1])
        return local, of_process

    def _names(self) -> list[str]:
        return [name for name, _ in _places(type(self))] + list(self._properties)

    def _shown(self) -> Iterator[tuple[str, str]]:
        """Yields the attributes that differ from their defaults: the name, and the value as text.
        """
        for name, place in _places(type(self)):
            found = self.__dict__[name]
            if isinstance(place, _Option):
                if found.raw is not found.default and found.raw != found.default:
                    yield name, repr(found.raw)
            elif any(True for _ in found._shown()):
                yield name, repr(found)


class PlainNode:
    """Unchecked attributes."""

    def __repr__(self) -> str:
        shown = [f"{name}={what}" for name, what in self._shown()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _shown(self) -> Iterator[tuple[str, str]]:
        defaults = vars(type(self)())
        for name, value in vars(self).items():
            if name not in defaults or (value is not defaults[name] and value != defaults[name]):
                yield name, repr(value)


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value below a node, with its path of names: raw values of options, and plain
    attributes."""
    for name, found in vars(node).items():
        if isinstance(found, (Node, PlainNode)):
            yield from leaves(found, f"{path}{name}.")
        else:
            yield path + name, found.raw if isinstance(found, OptionValue) else found


def copied(node: N) -> N:
    """A copy of a node with the same values that shares no state."""
    same: Any = type(node).__new__(type(node))
    for name, found in vars(node).items():
        if isinstance(found, (Node, PlainNode)):
            same.__dict__[name] = copied(found)
        elif isinstance(found, OptionValue):
            twin: Any = type(found).__new__(type(found))
            twin.__dict__.update(vars(found))
            same.__dict__[name] = twin
        else:
            same.__dict__[name] = found
    result: N = same
    return result


def _places(of: type) -> list[tuple[str, _Option | _Child[Any]]]:
    found = {}
    for base in reversed(of.__mro__):
        found.update({name: place for name, place in vars(base).items() if isinstance(place, (_Option, _Child))})
    return list(found.items())
