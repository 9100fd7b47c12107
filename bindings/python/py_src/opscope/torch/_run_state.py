"""Saving and restoring state that a run may change: random numbers, buffers, gradients."""

from __future__ import annotations

import functools
import inspect
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from .._warning import warn


class RandomState:
    """The state of torch's, Python's and numpy's global random generators."""

    def __init__(self) -> None:
        self._torch = torch.get_rng_state()
        self._devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        self._python = random.getstate()
        numpy = sys.modules.get("numpy")
        self._numpy = None if numpy is None else numpy.random.get_state()

    @classmethod
    def of_seed(cls, seed: int) -> RandomState:
        """The state right after all generators were given a seed; they stay as they are."""
        before = cls()
        try:
            torch.manual_seed(seed)
            random.seed(seed)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed(seed)
            return cls()
        finally:
            before.restore()

    def restore(self) -> None:
        """Restores the state, so that the next draw repeats."""
        torch.set_rng_state(self._torch)
        if self._devices:
            torch.cuda.set_rng_state_all(self._devices)
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)

    def is_torch_as_before(self) -> bool:
        """Whether torch has drawn no random number since."""
        now = torch.cuda.get_rng_state_all() if self._devices else []
        same = all(torch.equal(one, other) for one, other in zip(self._devices, now))
        return same and torch.equal(self._torch, torch.get_rng_state())


class ModuleState:
    """Buffers, gradients and the training mode of modules. Parameters are not copied: they may take
    most of the memory."""

    def __init__(self, roots: list[nn.Module]) -> None:
        modules = list({id(module): module for root in roots for module in root.modules()}.values())
        self._modes = [(module, module.training) for module in modules]
        self._buffers = [
            # Also copies of sparse and quantised ones; a lazy one is empty.
            (module, name, buffer, None if is_lazy(buffer) else buffer.detach().clone())
            for module in modules
            for name, buffer in module._buffers.items()
            if buffer is not None
        ]
        self._parameters = [
            (f"{type(module).__name__}.{name}", parameter, parameter.grad, _version(parameter))
            for module in modules
            for name, parameter in module._parameters.items()
            if parameter is not None and not is_lazy(parameter)
        ]

    def without_gradients(self) -> None:
        """Clears gradients before a backward pass, so that both sides start without any."""
        for _, parameter, _, _ in self._parameters:
            parameter.grad = None

    def restore(self) -> None:
        """Puts everything back."""
        for module, was_training in self._modes:
            module.training = was_training
        with torch.no_grad():
            for module, name, buffer, content in self._buffers:
                module._buffers[name] = buffer
                # Unchanged buffers are not written: an autograd graph may still need them.
                if content is not None and not _is_same(buffer, content):
                    buffer.copy_(content)
        for _, parameter, gradient, _ in self._parameters:
            parameter.grad = gradient
        if changed := [name for name, parameter, _, version in self._parameters if _version(parameter) != version]:
            warn(
                f"opscope.torch.diff: the run wrote to parameters (first to {changed[0]}), which keep their new "
                "values; only buffers are restored",
                RuntimeWarning,
            )


def modules_of(call: Any) -> list[nn.Module]:
    """The modules that a callable is, belongs to, or refers to in its code."""
    if isinstance(call, nn.Module):
        return [call]
    if isinstance(call, functools.partial):
        return [*modules_of(call.func), *(argument for argument in call.args if isinstance(argument, nn.Module))]
    return list(_named_in(call))


def _named_in(call: Any) -> Iterator[nn.Module]:
    owner = getattr(call, "__self__", None)
    if isinstance(owner, nn.Module):
        yield owner
    function = inspect.unwrap(getattr(call, "__func__", call))
    if not inspect.isfunction(function):
        return
    # `lambda x: model(x)` changes the buffers of `model` as well.
    variables = inspect.getclosurevars(function)
    for value in (*variables.nonlocals.values(), *variables.globals.values()):
        if isinstance(value, nn.Module):
            yield value


def _version(tensor: Tensor) -> int:
    # Inference tensors have no version counter.
    return -1 if tensor.is_inference() else tensor._version


def _is_same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.layout is not torch.strided or one.is_quantized:
        return False
    # NaN makes them differ, which only costs a copy.
    return torch.equal(one, other)
