"""The two sides of `opscope.torch.diff`: their kinds, and how each is dumped."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .. import _options
from .._argument import shown
from .._dump import _check_exists
from .._errors import OpscopeError, UsageError
from .._warning import warn
from . import _backend, _eager, _runner
from ._call_inputs import CallInputs, tensors_in
from ._compiled_code import CompiledCode, apart, as_written, compiled_code, compiled_parts
from ._onnx_model import OnnxModel
from ._run_state import ModuleState, RandomState, modules_of

# Recompilation limit; beyond torch's own the function would run uncompiled and not be dumped.
_N_RECOMPILES_MAX = 1 << 20
_MODEL_SUFFIX = ".onnx"


@dataclass(frozen=True)
class Conditions:
    """How callables are run in a comparison."""

    # The generators' state before each side.
    random: RandomState
    has_gradients: bool
    # For ONNX models.
    engine: str | None = None
    # The generators that a side begins with, where it has its own seed.
    seeded: dict[str, RandomState] = field(default_factory=dict)

    def random_of(self, label: str) -> RandomState:
        """The generators that a side begins with."""
        return self.seeded.get(label, self.random)


@dataclass
class TorchSide:
    """A PyTorch callable, run eagerly or, if compiled, graph by graph."""

    label: str
    call: Callable[..., Any]
    autocast: torch.dtype | None
    code: CompiledCode | None = None
    # For a compiled side: results of its graphs, and of its own backend's code.
    results: list[list[Tensor]] = field(default_factory=list)
    backend_results: list[list[Tensor]] | None = None

    def record(self, calls: list[CallInputs], folder: str, conditions: Conditions) -> str:
        """Runs it once per call, dumps it below `folder`, and restores modules and generators."""
        if self.code is None:
            self._warn_of_parts()
            with self._kept_state(conditions):
                self._record_eager(calls, folder, conditions)
            return folder
        with self._kept_state(conditions):
            self._record_graphs(calls, folder, conditions)
            # Compiled code draws other random numbers than the operators do, so its results prove nothing then.
            is_deterministic = conditions.random_of(self.label).is_torch_as_before()
        if not self.code.is_ours and is_deterministic:
            with self._kept_state(conditions):
                self.backend_results = [_copied(self._run(self.code.call, call.copied(), conditions)) for call in calls]
        return folder

    def _record_eager(self, calls: list[CallInputs], folder: str, conditions: Conditions) -> None:
        dump = _eager.eager(folder)
        try:
            for call in calls:
                own = call.copied()
                # Entered for each step, to exclude the operators that copy inputs.
                with dump:
                    dump.note_results(tensors_in(self._run(self.call, own, conditions)))
        except BaseException:
            # The error says why the dump is incomplete or empty.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                dump.finish()
            raise
        self._check(dump.finish(), "no operator of PyTorch ran in it")

    def _record_graphs(self, calls: list[CallInputs], folder: str, conditions: Conditions) -> None:
        code = self.code
        assert code is not None
        backend = _backend.backend(folder)
        # Restores the program's own step.
        set_step = _runner.step_or(None)
        try:
            with as_written(code.original), _unlimited_recompiles():
                compiled = torch.compile(
                    apart(code.original), backend=backend, dynamic=code.dynamic, fullgraph=code.is_whole
                )
                for step, call in enumerate(calls):
                    _runner.set_step(step)
                    self.results.append(_copied(self._run(compiled, call.copied(), conditions)))
        finally:
            _runner.set_step(set_step)
            report = backend.finish()
        self._check(report, "torch.compile made no graph of it (TORCH_LOGS=dynamo says why)")

    def _run(self, call: Callable[..., Any], inputs: CallInputs, conditions: Conditions) -> Any:
        with ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(conditions.has_gradients))
            if self.autocast is not None:
                stack.enter_context(torch.autocast(self._device_type(inputs), dtype=self.autocast))
            return call(*inputs.args, **inputs.kwargs)

    def _modules(self) -> list[nn.Module]:
        return modules_of(self.call if self.code is None else self.code.original)

    def _device_type(self, inputs: CallInputs) -> str:
        parameters = (parameter for module in self._modules() for parameter in module.parameters())
        first = next(parameters, None)
        return inputs.device_type() if first is None else first.device.type

    @contextmanager
    def _kept_state(self, conditions: Conditions) -> Iterator[None]:
        state = ModuleState(self._modules())
        if conditions.has_gradients:
            state.without_gradients()
        conditions.random_of(self.label).restore()
        try:
            yield
        except Exception as error:
            # Keeps the error's type, which the program may handle, and adds its origin as a note.
            if hasattr(error, "add_note"):
                error.add_note(f"opscope.torch.diff: while the {self.label} side ran")
            raise
        finally:
            state.restore()
            conditions.random.restore()

    def _warn_of_parts(self) -> None:
        parts = [name for module in self._modules() for name in compiled_parts(module)]
        parts += ["what it calls" for module in self._modules() if module is not self.call and compiled_code(module)]
        if parts:
            warn(
                f"opscope.torch.diff: {self.label}: a part is compiled separately ({parts[0]}), so few of its "
                "operators are observed; pass the part, or compile the whole, to observe all",
                RuntimeWarning,
            )

    def _check(self, report: dict[str, Any], nothing: str) -> None:
        """Raises if a dump is incomplete, because missing tensors could not be compared."""
        if error := report.get("first_error") or report.get("first_fault"):
            raise OpscopeError(f"{self.label}: the dump is not complete: {error}", code="io", errno=report.get("errno"))
        if not report.get("n_graphs") or not report.get("n_steps_active"):
            raise OpscopeError(f"{self.label}: nothing was dumped: {nothing}", code="nothing")


@dataclass(frozen=True)
class ModelSide:
    """An ONNX model."""

    model: OnnxModel

    def record(self, calls: list[CallInputs], folder: str, conditions: Conditions) -> str:
        """Runs it once per call and dumps it below `folder`."""
        self.model.record(calls, folder, conditions.engine)
        return folder


@dataclass(frozen=True)
class DumpSide:
    """An existing dump."""

    path: str

    def record(self, calls: list[CallInputs], folder: str, conditions: Conditions) -> str:
        """Its path."""
        return self.path


def make_side(label: str, given: Any, autocast: torch.dtype | None) -> TorchSide | ModelSide | DumpSide:
    """Creates a side from the program's argument, checked as far as possible without running it."""
    _options.instance(f"{label}_autocast", autocast, torch.dtype, "a dtype such as torch.bfloat16")
    if isinstance(given, (str, os.PathLike)):
        if autocast is not None:
            raise UsageError(
                f"{label}_autocast: expected a module or callable to run under autocast, got the path "
                f"`{os.fspath(given)}`",
                code="usage",
            )
        return _of_path(label, given)
    if isinstance(given, torch.export.ExportedProgram):
        return TorchSide(label, given.module(), autocast)
    if not callable(given) or isinstance(given, type):
        raise TypeError(
            f"{label}: a module, a callable, an ExportedProgram, or the path of an ONNX model or a dump is expected, "
            f"got {shown(given)} ({type(given).__name__})"
        )
    return TorchSide(label, given, autocast, compiled_code(given))


def _of_path(label: str, given: Any) -> ModelSide | DumpSide:
    _options.path(label, given)
    path = os.fspath(given)
    _check_exists(path)
    # A directory may have any name; exporters use `.onnx` for models.
    is_model = path.lower().endswith(_MODEL_SUFFIX) and not os.path.isdir(path)
    return ModelSide(OnnxModel(label, path)) if is_model else DumpSide(path)


def _copied(result: Any) -> list[Tensor]:
    # A result may be a buffer, which is restored, or memory that the next step overwrites.
    return [tensor.detach().clone() for tensor in tensors_in(result)]


@contextmanager
def _unlimited_recompiles() -> Iterator[None]:
    config = torch._dynamo.config
    # Torch renamed these limits.
    names = ("recompile_limit", "accumulated_recompile_limit")
    if not hasattr(config, names[0]):
        names = ("cache_size_limit", "accumulated_cache_size_limit")
    with config.patch(**dict.fromkeys(names, _N_RECOMPILES_MAX)):
        yield
