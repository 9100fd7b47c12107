"""An ONNX model as a side: its inputs from the program's tensors, and its dump."""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from .._argument import shown
from .._child import command
from .._errors import OpscopeError, UsageError
from .._native import reading
from .._warning import warn
from ._call_inputs import CallInputs, tensors_in

# A declared input: name, dtype, and shape, with `None` for a dynamic dimension or an unknown rank.
Declared = tuple[str, str, "list[int | None] | None"]

# Dtypes that numpy lacks, as integers of the same width; the model declares their meaning.
_OF_BYTES = {torch.bfloat16: (torch.uint16, "V2")}
for _name in ("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"):
    if (_dtype := getattr(torch, _name, None)) is not None:
        _OF_BYTES[_dtype] = (torch.uint8, "V1")
# Dtype names that differ from torch's.
_NAMES = {"float8_e8m0fnu": "float8_e8m0"}


class OnnxModel:
    """A model file. A dictionary passes tensors by name, a tuple by order."""

    def __init__(self, label: str, path: str) -> None:
        self.label = label
        self.path = path
        self._declared: list[Declared] = reading.model_inputs(path)

    def inputs(self, call: CallInputs) -> dict[str, Tensor]:
        """The tensors of a call by the graph's input names, checked against the declarations."""
        found = self._by_order(call.args) if call.args or not call.kwargs else self._by_name(call.kwargs)
        for name, dtype, extents in self._declared:
            self._check(name, dtype, extents, found[name])
        return found

    def record(self, calls: list[CallInputs], folder: str, engine: str | None) -> None:
        """Runs the model once per call in a separate process, and dumps it below `folder`."""
        with tempfile.TemporaryDirectory(prefix="opscope-inputs-") as inputs:
            for step, call in enumerate(calls):
                _write_archive(Path(inputs) / f"{step}.npz", self.inputs(call))
            arguments = ["dump", self.path, "--out", folder, "--no-baseline"]
            if self._declared:
                # A relative library path stays valid, because the child has the same working
                # directory.
                arguments += ["--inputs", inputs]
            arguments += ["--steps", str(len(calls))]
            if engine is not None:
                arguments += ["--engine", engine]
            self._run(arguments)

    def _run(self, arguments: list[str]) -> None:
        done = subprocess.run(command(arguments), stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode == 0:
            return
        lines = done.stderr.decode("utf-8", "replace").splitlines()
        told = [line.strip().removeprefix("opscope: ") for line in lines if not line.startswith("opscope: engine: ")]
        reason = "; ".join(told) or f"`opscope dump` ended with {done.returncode} without a message"
        message = f"{self.label}: cannot run `{self.path}`: {reason}"
        raise _failure(done.returncode, message, self.path)

    def _by_order(self, args: tuple) -> dict[str, Tensor]:
        # Exporters write scalars and texts into the graph, and flatten lists.
        tensors = list(tensors_in(_as_tensors(args)))
        if len(tensors) != len(self._declared):
            raise self._refused(
                f"{len(tensors)} tensors are passed by order, expected {len(self._declared)}: {self._listed()}"
            )
        return {name: tensor for (name, *_), tensor in zip(self._declared, tensors)}

    def _by_name(self, kwargs: Mapping[str, Any]) -> dict[str, Tensor]:
        given = {name: value for name, value in kwargs.items() if value is not None}
        names = [name for name, *_ in self._declared]
        if missing := [name for name in names if name not in given]:
            raise self._refused(
                f"no `{missing[0]}` among the names of the dictionary ({', '.join(given)}), expected {self._listed()}; "
                "a tuple is matched by order instead"
            )
        found = {}
        for name, dtype, _ in self._declared:
            value = _as_tensors(given[name])
            if isinstance(value, (bool, int, float)):
                value = torch.tensor(value, dtype=getattr(torch, dtype, None))
            if not isinstance(value, Tensor):
                raise self._refused(
                    f"input `{name}`: a tensor is expected, got {shown(value)} ({type(value).__name__}); a tuple is "
                    "flattened and matched by order"
                )
            found[name] = value
        # Exporters drop unused inputs; other extra ones may be a mistake.
        unused = [name for name, value in given.items() if name not in found and any(tensors_in(_as_tensors(value)))]
        if unused:
            warn(
                f"opscope.torch.diff: {self.label}: `{self.path}` has no input `{unused[0]}`, so it is ignored; "
                f"its inputs are {self._listed()}",
                RuntimeWarning,
            )
        return found

    def _check(self, name: str, dtype: str, extents: list[int | None] | None, tensor: Tensor) -> None:
        of_tensor = str(tensor.dtype).removeprefix("torch.")
        of_tensor = _NAMES.get(of_tensor, of_tensor)
        if dtype != of_tensor:
            raise self._refused(f"input `{name}`: expected {dtype}, got a tensor of {of_tensor}")
        if extents is None:
            return
        has_rank = len(extents) == tensor.dim()
        if not has_rank or any(n is not None and n != m for n, m in zip(extents, tensor.shape)):
            raise self._refused(f"input `{name}`: expected the shape {_shape_text(extents)}, got {list(tensor.shape)}")

    def _refused(self, what: str) -> UsageError:
        return UsageError(f"{self.label}: `{self.path}`: {what}", code="usage", path=self.path)

    def _listed(self) -> str:
        texts = [f"`{name}` ({dtype} {_shape_text(extents)})" for name, dtype, extents in self._declared]
        return ", ".join(texts) or "no inputs"


def _failure(exit_code: int, message: str, path: str) -> OpscopeError:
    # 2 is the command line's exit code for wrong usage.
    if exit_code == UsageError.exit_code:
        return UsageError(message, code="usage", path=path)
    return OpscopeError(message, code="not_run", path=path)


def _shape_text(extents: list[int | None] | None) -> str:
    if extents is None:
        return "of any shape"
    return f"[{', '.join('?' if n is None else str(n) for n in extents)}]"


def _as_tensors(value: Any) -> Any:
    """Replaces numpy arrays by tensors."""
    if isinstance(value, numpy.ndarray):
        return torch.from_numpy(numpy.ascontiguousarray(value))
    if isinstance(value, (tuple, list)):
        return [_as_tensors(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _as_tensors(item) for name, item in value.items()}
    return value


def _write_archive(path: Path, tensors: dict[str, Tensor]) -> None:
    # `numpy.savez` takes names as keyword arguments, some of which it reserves.
    with zipfile.ZipFile(os.fspath(path), "w", allowZip64=True) as archive:
        for name, tensor in tensors.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                numpy.lib.format.write_array(file, _as_array(tensor), allow_pickle=False)


def _as_array(tensor: Tensor) -> numpy.ndarray:
    plain = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()
    if (stored := _OF_BYTES.get(plain.dtype)) is None:
        return plain.numpy()
    as_bytes, dtype = stored
    return plain.view(as_bytes).numpy().view(dtype)
