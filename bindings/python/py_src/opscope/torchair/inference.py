"""TorchAir's functions for inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from opscope.torchair._absent import absent
from opscope.torchair._backend import get_npu_backend
from opscope.torchair.configs.compiler_config import CompilerConfig
from opscope.torchair.core.utils import logger

__all__ = ["cache_compile", "readable_cache", "set_dim_gears"]


def cache_compile(
    func: Callable[..., Any],
    *,
    config: CompilerConfig | None = None,
    backend: Any | None = None,
    dynamic: bool = True,
    cache_dir: str | None = None,
    global_rank: int | None = None,
    tp_rank: int | None = None,
    pp_rank: int | None = None,
    custom_decompositions: Mapping[Any, Any] | None = None,
    ge_cache: bool = False,
    **kwargs: Any,
) -> Callable[..., Any]:
    """`torch.compile` without a cache on disk, so a new process compiles again."""
    if backend is None:
        backend = get_npu_backend(compiler_config=config, custom_decompositions=custom_decompositions)
    elif config is not None and getattr(backend, "compiler_config", config) != config:
        raise ValueError("config: differs from the configuration of the backend argument")
    # Imported here, because the package is imported without torch.
    import torch  # type: ignore[import-not-found, unused-ignore]

    logger.debug("cache_compile compiles without a cache on disk")
    compiled: Callable[..., Any] = torch.compile(func, backend=backend, dynamic=dynamic, fullgraph=True, **kwargs)
    return compiled


def readable_cache(cache_bin: str, print_output: bool = True, file: str | None = None) -> NoReturn:
    """Not available: there are no such files."""
    absent("inference.readable_cache", "compilations are not stored on disk")


def set_dim_gears(t: Any, dim_gears: Mapping[int, Sequence[int]]) -> None:
    """Accepted without effect: sizes need not be known in advance."""
    logger.debug("set_dim_gears has no effect: sizes need not be known in advance")
