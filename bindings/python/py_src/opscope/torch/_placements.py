"""The part of a distributed tensor that this process holds, according to its `DTensor`."""

from __future__ import annotations

from typing import Any

_REDUCTIONS = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor"}
# Maximum number of cached placements; a model has few, unless shapes vary.
_N_KNOWN_MAX = 1 << 16
_known: dict[Any, str | None] = {}


def text(tensor: Any) -> str | None:
    """The placement of a `DTensor` in the native form's notation; `None` if not expressible."""
    spec = tensor._spec
    key = (spec.mesh, spec.placements, spec.shape)
    try:
        return _known[key]
    except KeyError:
        if len(_known) >= _N_KNOWN_MAX:
            _known.clear()
        found = _known[key] = _text(*key)
        return found


def _text(mesh: Any, placements: Any, shape: Any) -> str | None:
    coordinate = mesh.get_coordinate()
    extents = [int(extent) for extent in shape]
    # A process outside the mesh holds no part of the tensor.
    if coordinate is None:
        return None
    names = mesh_names(mesh)
    axes = []
    for name, at, size, placement in zip(names, coordinate, mesh.shape, placements):
        how = _how(placement, len(extents))
        if how is None:
            return None
        axes.append(f"{name}={int(at)}/{int(size)}:{how}")
    return f"{','.join(axes)} of [{','.join(map(str, extents))}]"


def mesh_names(mesh: Any) -> list[str]:
    """Names of a mesh's axes, which are optional."""
    names = mesh.mesh_dim_names or ()
    if len(names) == len(mesh.shape) and all(str(name).isidentifier() for name in names):
        return [str(name) for name in names]
    return [f"axis{i}" for i in range(len(mesh.shape))]


def _how(placement: Any, n_axes: int) -> str | None:
    # Derived kinds have other meanings, such as masked partial sums.
    kind = type(placement).__name__
    if kind == "Replicate":
        return "R"
    if kind == "Partial" and placement.reduce_op in _REDUCTIONS:
        return f"P({placement.reduce_op})"
    if kind in ("Shard", "_StridedShard"):
        axis = placement.dim + n_axes if placement.dim < 0 else placement.dim
        factor = int(getattr(placement, "split_factor", 1))
        return f"S({axis},{factor})" if factor > 1 else f"S({axis})"
    return None
