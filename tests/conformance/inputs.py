"""The inputs of a case: its own, and others of the same types and shapes."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import numpy as np
import values
from cases import Case, Value
from numpy.typing import NDArray

# Inputs that the tool is given at the three steps of a run: the case's own, others, and its own again.
N_STEPS = 3


class Others(Enum):
    """How the inputs of the step between differ."""

    ALL = "every input"
    FLOATS = "floats"
    NONE = "none"


def options(case: Case, folder: Path, others: Others) -> list[str | Path]:
    """Options that give the inputs of all steps; archives are written into `folder`."""
    if others == Others.NONE or not can_differ(case):
        return [*_same_at_each_step(case), "--steps", str(N_STEPS)]
    folder.mkdir()
    own = {value.name: np.load(case.folder / value.file) for value in case.inputs if value.file}
    for step in range(N_STEPS):
        arrays = own if step != 1 else {name: _other(array, others) for name, array in own.items()}
        np.savez(folder / f"{step}.npz", **arrays)
    return ["--inputs", folder]


def can_differ(case: Case) -> bool:
    """Whether all inputs are of types that an archive of numpy's can hold."""
    has_file = [value for value in case.inputs if value.file]
    return bool(has_file) and all(_is_number(value) for value in has_file)


def _is_number(value: Value) -> bool:
    return value.file.endswith(".npy") and value.dtype != "string"


def _same_at_each_step(case: Case) -> list[str]:
    found = []
    for value in case.inputs:
        if not value.file:
            continue
        found += ["--input", f"{value.name}={case.folder / value.file}"]
        if value.file.endswith(".bin"):
            found += ["--shape", f"{value.name}:{','.join(map(str, value.shape))}"]
    return found


def _other(array: NDArray, others: Others) -> NDArray:
    """Numbers within the range of the given ones, so that indices and probabilities stay what they are."""
    turned = array.ravel()[::-1].reshape(array.shape)
    if array.dtype.kind in "fc":
        return (turned * array.dtype.type(0.5)).astype(array.dtype)
    return turned if others == Others.ALL else array


def proto(case: Case, value: Value) -> values.TensorProto:
    """An input as a constant of a model."""
    code = values.TYPE_CODES[value.dtype]
    path = case.folder / value.file
    if value.file.endswith(".bin"):
        tensor = values.TensorProto(data_type=code, dims=value.shape, raw_data=path.read_bytes())
    else:
        array = np.load(path)
        tensor = values.numpy_helper.from_array(array.astype(object) if value.dtype == "string" else array)
    tensor.name = value.name
    return tensor
