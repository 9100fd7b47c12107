"""Finding the operator that makes two models differ, in one call."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _options
from .._argument import shown
from .._compare import Comparison, StrPath, checked, compare
from .._errors import FileError, UsageError
from .._warning import warn
from . import _call_inputs
from ._run_state import RandomState
from ._sides import Conditions, DumpSide, ModelSide, TorchSide, make_side

# Names of the dumps in the directory of `save`.
TARGET, GOLDEN = "target", "golden"
_BACKEND = "backend"
# The limits under which nothing may differ.
EXACT = "exact"


def diff(
    target: Any,
    golden: Any,
    inputs: Any = None,
    *,
    target_autocast: torch.dtype | None = None,
    golden_autocast: torch.dtype | None = None,
    grad: bool = False,
    engine: str | None = None,
    save: StrPath | None = None,
    seed: int | tuple[int, int] | None = None,
    exact: bool = False,
    **options: Any,
) -> Comparison:
    """Runs two models on the same inputs, and finds the operator that makes `target` differ from
    `golden`.

    A side is a module or another callable, an `ExportedProgram`, a module or function compiled by
    `torch.compile`, the path of an ONNX model (a file whose name ends in `.onnx`), or the path of a
    dump, which is not run. `inputs` are a tensor, a tuple of arguments, a dictionary of arguments
    by name, or a list of these with one for each step. An ONNX model takes a dictionary by the
    names of its inputs, or a tuple, flattened, by their order.

    `seed` is what the generators of both sides begin with, or a pair of seeds, of target and golden side, which then draw
    different numbers. With `exact` any element that differs is a failure.

    Both sides begin with the same random numbers unless `seed` says otherwise. They are put back afterwards, as are buffers, gradients and the
    training mode of modules. Nothing needs gradients unless `grad` is given, for callables that run a backward pass.
    `target_autocast` and `golden_autocast` run a side under autocast to a dtype. `engine` runs ONNX models: `auto`,
    `tract` or `onnxruntime`. `save` is a directory that keeps the dumps as `target` and `golden`; without it they are
    in a private place until the result is no longer there. Further options are those of `opscope.compare`.

    Raises:
        UsageError: Options or inputs make no sense, or an input does not fit the ONNX model.
        OpscopeError: A model cannot be run, or nothing was dumped.
    """
    options = _exact(exact, options)
    checked(TARGET, GOLDEN, **options)
    conditions = conditions_of(grad, engine, seed)
    sides = (make_side(TARGET, target, target_autocast), make_side(GOLDEN, golden, golden_autocast))
    with DumpFolder(save) as folder:
        paths = _record(sides, inputs, folder.path, conditions)
        comparison = compare(*paths, **options)
        # Faulty operators come first: they may fully explain the code compiled from them.
        if comparison.level != "fail" and (deviation := _deviation(sides, folder.path)) is not None:
            deviation.tell()
            comparison = compare(*deviation.paths, **options)
        # The page reads elements long after this call.
        folder.keep_for(comparison)
    return comparison


def recorded(target: Any, golden: Any, inputs: Any, folder: str, engine: str | None) -> tuple[str, str]:
    """Runs both sides, as `diff` does, for whoever compares the dumps: the paths of both."""
    conditions = conditions_of(False, engine)
    sides = (make_side(TARGET, target, None), make_side(GOLDEN, golden, None))
    paths = _record(sides, inputs, folder, conditions)
    deviation = _deviation(sides, folder)
    if deviation is None or compare(*paths).level == "fail":
        return paths
    deviation.tell()
    return deviation.paths


def conditions_of(
    grad: bool, engine: str | None = None, seed: int | tuple[int, int] | None = None
) -> Conditions:
    """How callables are run; raises for options that make no sense."""
    _options.boolean("grad", grad)
    if engine is not None:
        _options.word("engine", engine, ("auto", "tract", "onnxruntime"))
    return Conditions(RandomState(), grad, engine, _seeded(seed))


def _seeded(seed: Any) -> dict[str, RandomState]:
    if seed is None:
        return {}
    seeds = seed if isinstance(seed, tuple) else (seed, seed)
    if len(seeds) != 2:
        raise UsageError(
            f"seed: a whole number, or a pair for target and golden side, is expected, got {shown(seed)}", code="usage"
        )
    for one in seeds:
        # Numpy takes no more.
        _options.whole("seed", one, 0, 2**32 - 1)
    return {label: RandomState.of_seed(int(one)) for label, one in zip((TARGET, GOLDEN), seeds)}


def _exact(exact: bool, options: dict[str, Any]) -> dict[str, Any]:
    _options.boolean("exact", exact)
    if not exact:
        return options
    if options.get("thresholds") is not None:
        raise UsageError("exact: no `thresholds` are expected next to it: nothing may differ", code="usage")
    return {**options, "thresholds": EXACT}


def _record(
    sides: tuple[TorchSide | ModelSide | DumpSide, TorchSide | ModelSide | DumpSide],
    inputs: Any,
    folder: str,
    conditions: Conditions,
) -> tuple[str, str]:
    """Runs the sides that need it, golden first; returns the dumps of target and golden."""
    calls = []
    if not all(isinstance(side, DumpSide) for side in sides):
        if inputs is None:
            raise UsageError(
                "inputs: a tensor, a tuple or a dictionary is expected to run the sides with (`()` for no arguments)",
                code="usage",
            )
        calls = _call_inputs.steps(inputs)
    for side in sides:
        # Reports an unsuitable model before the other side runs for an hour.
        if isinstance(side, ModelSide):
            for call in calls:
                side.model.inputs(call)
    target, golden = sides
    golden_path = golden.record(calls, os.path.join(folder, GOLDEN), conditions)
    return target.record(calls, os.path.join(folder, TARGET), conditions), golden_path


class _Deviation(NamedTuple):
    """Results of compiled code that differ from those of its own graphs: two paths, as target and
    golden side."""

    paths: tuple[str, str]
    label: str
    backend: str

    def tell(self) -> None:
        warn(
            f"opscope.torch.diff: {self.label}: its graphs agree, run operator by operator, but the code that "
            f"backend `{self.backend}` compiles from them returns other results; it exposes no operators, so "
            "the results are compared",
            RuntimeWarning,
        )


def _deviation(sides: tuple[Any, ...], folder: str) -> _Deviation | None:
    """The first side whose compiled code returns other results than its graphs, run operator by
    operator.

    Code compiled by a backend such as Inductor exposes no operators, so no more can be found out.
    """
    for side in sides:
        if not isinstance(side, TorchSide) or side.code is None or side.backend_results is None:
            continue
        place = os.path.join(folder, _BACKEND, side.label)
        of_code, of_graphs = (os.path.join(place, name) for name in ("code", "graphs"))
        _save(side.backend_results, of_code)
        _save(side.results, of_graphs)
        if compare(of_code, of_graphs).level == "fail":
            paths = (of_code, of_graphs) if side.label == TARGET else (of_graphs, of_code)
            return _Deviation(paths, side.label, side.code.backend)
        shutil.rmtree(place)
    shutil.rmtree(os.path.join(folder, _BACKEND), ignore_errors=True)
    return None


def _save(steps: list[list[Tensor]], folder: str) -> None:
    os.makedirs(folder)
    named = {
        f"step_{step}_result_{i}": tensor.contiguous()
        for step, tensors in enumerate(steps)
        for i, tensor in enumerate(tensors)
        if tensor.layout is torch.strided and not tensor.is_quantized
    }
    torch.save(named, os.path.join(folder, "results.pt"))


class DumpFolder:
    """The directory of both dumps: the program's, or a private temporary one."""

    def __init__(self, save: StrPath | None) -> None:
        _options.path("save", save, is_optional=True)
        self._is_private = save is None
        if save is None:
            # Readable by this user only.
            self.path = tempfile.mkdtemp(prefix="opscope-diff-")
        else:
            self.path = os.path.abspath(os.fspath(save))
            _make_kept(self.path)
        self._is_wanted = False

    def keep_for(self, owner: object) -> None:
        """Keeps a private directory until `owner` is collected, or the process ends."""
        self._is_wanted = True
        if self._is_private:
            weakref.finalize(owner, _remover(self.path))

    def __enter__(self) -> DumpFolder:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_private and not self._is_wanted:
            shutil.rmtree(self.path, ignore_errors=True)


def _make_kept(path: str) -> None:
    for name in (TARGET, GOLDEN, _BACKEND):
        if os.path.lexists(os.path.join(path, name)):
            raise FileError(
                f"save: `{os.path.join(path, name)}` exists already; a directory without `{TARGET}` and `{GOLDEN}` is "
                "expected",
                code="exists",
                path=os.path.join(path, name),
            )
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"save: cannot make the directory `{path}`: {error.strerror}", code="io", path=path, errno=error.errno
        ) from error


def _remover(path: str) -> Callable[[], None]:
    owner = os.getpid()

    def remove() -> None:
        # A fork has the object as well, but the parent still needs the files.
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)

    return remove
