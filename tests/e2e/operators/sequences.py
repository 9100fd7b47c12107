"""Operators that go along a sequence: recurrent ones, transforms, attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw import Draw
from .recipe import control, data, filled, optional, recipe, sample
from .sample import SUMMED, Sample, Value

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


@recipe("GRU", "LSTM", "RNN")
def recurrent(draw: Draw) -> Sample:
    gates = GATES[draw.op_type]
    n_steps, batch, width, hidden = (draw.integer(1, 4) for _ in range(4))
    directions = draw.choice([1, 1, 2])
    layout = 1 if draw.opset >= 14 and draw.maybe(0.2) else 0
    profile = draw.profile("ordinary", "ordinary", "zeros", "large")

    def small(*shape: int) -> Value:
        array = draw.array(draw.dtype(), shape, "ordinary")
        return data(draw, (array / 4).astype(array.dtype))

    x = [batch, n_steps, width] if layout else [n_steps, batch, width]
    state = [batch, directions, hidden] if layout else [directions, batch, hidden]
    inputs: list[Value | None] = [filled(draw, x, profile=profile)]
    inputs += [small(directions, gates * hidden, width), small(directions, gates * hidden, hidden)]
    inputs.append(optional(draw, small(directions, 2 * gates * hidden)))
    inputs.append(control(draw, [n_steps] * batch, np.int32) if draw.maybe(0.15) else None)
    inputs.append(optional(draw, small(*state)))
    outputs = [draw.maybe(0.8), draw.maybe(0.8)]
    if draw.op_type == "LSTM":
        inputs.append(optional(draw, small(*state)))
        inputs.append(small(directions, 3 * hidden) if draw.maybe(0.2) else None)
        outputs.append(draw.maybe(0.6))
    if not any(outputs):
        outputs[0] = True
    more: dict[str, Any] = {"hidden_size": hidden, "layout": layout or None}
    more["direction"] = "bidirectional" if directions == 2 else optional(draw, "forward")
    if draw.op_type == "GRU":
        more["linear_before_reset"] = optional(draw, draw.integer(0, 1))
    return sample(draw, inputs, SUMMED, outputs, **more)


@recipe("DFT")
def dft(draw: Draw) -> Sample:
    dims = [*draw.shape(2, 3, extent_min=2), draw.choice([1, 2])]
    axis = draw.integer(1, len(dims) - 2)
    more = {"inverse": optional(draw, draw.integer(0, 1)), "onesided": None}
    if dims[-1] == 1 and not more["inverse"]:
        more["onesided"] = optional(draw, draw.integer(0, 1))
    x = filled(draw, dims, "T1", "ordinary")
    length = optional(draw, control(draw, draw.integer(2, 7)))
    if draw.opset < 20:
        return sample(draw, [x, length], SUMMED, axis=axis if axis != 1 else optional(draw, 1), **more)
    is_default = axis == len(dims) - 2 and draw.maybe()
    return sample(draw, [x, length, None if is_default else control(draw, axis)], SUMMED, **more)


@recipe("Attention")
def attention(draw: Draw) -> Sample:
    batch, heads, n_q, n_k, size = (draw.integer(1, 3) for _ in range(5))
    shared = draw.choice([1, heads])
    q, k = [batch, heads, n_q, size], [batch, shared, n_k, size]
    profile = draw.profile("ordinary", "zeros", "large")
    roles = ((q, "T1"), (k, "T1"), (k, "T2"))
    inputs: list[Value | None] = [filled(draw, shape, name, profile) for shape, name in roles]
    inputs.append(optional(draw, filled(draw, [n_q, n_k], "U", "ordinary")))
    more = {"is_causal": optional(draw, draw.integer(0, 1))}
    more |= {"scale": optional(draw, 0.5), "softcap": optional(draw, 2.0)}
    return sample(draw, inputs, SUMMED, **more)
