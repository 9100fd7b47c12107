"""Context managers that mark operators during tracing.

Use them as `with …:` in compiled code, without a graph break inside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from opscope._plan import SCOPE_KEY

__all__ = [
    "data_dump",
    "limit_core_num",
    "npu_stream_switch",
    "npu_wait_tensor",
    "op_never_timeout",
    "super_kernel",
]


@contextlib.contextmanager
def data_dump() -> Iterator[None]:
    """Marks operators traced inside: they are dumped in addition to `dump_layer`, forward and
    backward."""
    # Imported here, because the package is imported without torch.
    from torch.fx import traceback  # type: ignore[import-not-found, unused-ignore]

    annotate = getattr(traceback, "annotate", None)
    if annotate is None:
        # Before torch 2.9. Backward operators are then not marked.
        from opscope.torch import _printing

        _printing.mark_scope(True)
        yield
        _printing.mark_scope(False)
    else:
        with annotate({SCOPE_KEY: True}):
            yield


def npu_stream_switch(
    stream_tag: str, stream_priority: int = 0, enable_inner_parallel: bool = True
) -> contextlib.AbstractContextManager[None]:
    """Accepted without effect: operators run one after the other."""
    return _nothing()


def super_kernel(scope: str, options: str = "") -> contextlib.AbstractContextManager[None]:
    """Accepted without effect: operators are not fused into one kernel."""
    return _nothing()


def limit_core_num(op_aicore_num: int, op_vectorcore_num: int) -> contextlib.AbstractContextManager[None]:
    """Accepted without effect: there are no such cores."""
    return _nothing()


def op_never_timeout(enable: bool = True) -> contextlib.AbstractContextManager[None]:
    """Accepted without effect: operators have no time limit."""
    if not isinstance(enable, bool):
        raise TypeError(f"op_never_timeout: `enable` must be bool, got {type(enable).__name__}")
    return _nothing()


def npu_wait_tensor(self: Any, dependency: Any) -> Any:
    """Returns `self`: operators run one after the other, so `dependency` is already available."""
    return self


@contextlib.contextmanager
def _nothing() -> Iterator[None]:
    yield
