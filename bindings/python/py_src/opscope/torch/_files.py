"""Tensors and other values in single files, outside a session of the core."""

from __future__ import annotations

import io
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.fx.immutable_collections import immutable_list

from .. import _visible
from .._argument import text
from .._fork_lock import ForkLock
from .._native.capture import FileWriter

_log = _visible.logger()
# Types that numpy converts to arrays.
_ARRAYS = (bool, int, float, complex, str, np.ndarray)
_PLAIN = (torch.Tensor, torch.nn.Parameter)
# 8-bit dtypes that numpy lacks; older releases of torch lack some of them.
_FLOAT8 = frozenset(
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
    if hasattr(torch, name)
)


class Files:
    """Files below a private directory. Saving never raises; failures are counted."""

    def __init__(self, root: str) -> None:
        self._writer = FileWriter(root, list(_PLAIN))
        self._lock = ForkLock()
        self._pid = os.getpid()
        self.n_files = 0
        # Values that cannot be stored, by reason.
        self.left_out: Counter[str] = Counter()
        self.first_error: str | None = None

    def save_npy(self, path: str, value: Any) -> None:
        """A tensor or another value as a numpy array, without pickles."""
        self._try(path, self._npy, value)

    def save_pt(self, path: str, tensor: torch.Tensor) -> None:
        """A tensor in the form of `torch.save`."""
        self._try(path, self._pt, tensor)

    def save_bin(self, path: str, tensor: torch.Tensor) -> None:
        """The bytes of a tensor's elements, in row-major order."""
        self._try(path, self._bin, tensor)

    def report(self) -> dict[str, Any]:
        """The counts so far."""
        return {"n_files": self.n_files, "left_out": dict(self.left_out), "first_error": self.first_error}

    def _try(self, path: str, save: Any, value: Any) -> None:
        if os.getpid() != self._pid:
            # A fork would overwrite the parent's files.
            return
        try:
            reason = save(path, value)
        except Exception as error:  # The model goes on whatever happens to its dump.
            self._note_error(path, error)
            return
        with self._lock:
            if reason is None:
                self.n_files += 1
            else:
                self.left_out[reason] += 1

    def _note_error(self, path: str, error: Exception) -> None:
        with self._lock:
            self.left_out[f"error {type(error).__name__}"] += 1
            if self.first_error is not None:
                return
            self.first_error = f"{os.path.basename(path)}: {type(error).__name__}: {error}"
        _log.error("a file could not be written; further failures are only counted: %s", self.first_error)

    def _npy(self, path: str, value: Any) -> str | None:
        if isinstance(value, torch.Tensor):
            if type(value) not in _PLAIN:
                return f"type {type(value).__name__}"
            return self._writer.npy(path, _dense(value))
        file = io.BytesIO()
        np.save(file, as_array(value), allow_pickle=False)
        self._writer.bytes(path, file.getvalue())
        return None

    def _pt(self, path: str, tensor: torch.Tensor) -> str | None:
        if type(tensor) not in _PLAIN:
            return f"type {type(tensor).__name__}"
        if tensor.is_meta:
            return "no memory"
        file = io.BytesIO()
        torch.save(_alone(tensor), file)
        self._writer.bytes(path, file.getvalue())
        return None

    def _bin(self, path: str, tensor: torch.Tensor) -> str | None:
        if type(tensor) not in _PLAIN:
            return f"type {type(tensor).__name__}"
        if tensor.layout is not torch.strided or tensor.is_quantized:
            return f"form {'quantized' if tensor.is_quantized else str(tensor.layout).removeprefix('torch.')}"
        if tensor.is_meta:
            return "no memory"
        dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        # Empty tensors and scalars cannot be viewed as bytes.
        content = dense.flatten().view(torch.uint8).numpy().tobytes() if dense.numel() else b""
        self._writer.bytes(path, content)
        return None


def as_array(value: Any) -> np.ndarray:
    """Numbers, texts and lists of them as an array; anything else as its text."""
    if not _is_plain(value):
        # numpy would run the value's own code.
        return np.array(text(value))
    try:
        found = np.array(value)
    except Exception:  # Of a list that numpy cannot make an array of.
        return np.array(text(value))
    return np.array(text(value)) if found.dtype.hasobject else found


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, torch.Size, immutable_list):
        return all(map(_is_plain, value))
    return type(value) in _ARRAYS or isinstance(value, np.generic)


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in a readable layout, if there is one."""
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        return tensor
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype in _FLOAT8:
        tensor = tensor.to(torch.float32)
    return tensor if tensor.device.type in ("cpu", "meta") else tensor.cpu()


def _alone(tensor: torch.Tensor) -> torch.Tensor:
    """The same values without surplus memory: `torch.save` writes the whole storage of a view."""
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        return tensor.cpu()
    tensor = tensor.resolve_conj().resolve_neg().cpu()
    is_part = tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size()
    return tensor.clone() if is_part and not tensor.is_quantized else tensor


class PathCounts:
    """Use counts of names in this process, for numbered file names."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._n_used: Counter[str] = Counter()

    def next(self, path: str | Path) -> int:
        """0 for the first use."""
        with self._lock:
            self._n_used[str(path)] += 1
            return self._n_used[str(path)] - 1
