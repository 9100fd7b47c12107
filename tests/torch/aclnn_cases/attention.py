"""Attention and rotary positions."""

from __future__ import annotations

from functools import partial

import torch
from aclnn import FLOATS, Case, Draw, Out

EVERYTHING = 2147483647


def arranged(x: torch.Tensor, layout: str) -> torch.Tensor:
    """From batch, heads, tokens and elements."""
    match layout:
        case "BNSD":
            return x
        case "BSND":
            return x.transpose(1, 2)
        case "BSH":
            return x.transpose(1, 2).flatten(2)
    return x.permute(2, 0, 1, 3).flatten(2)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: float,
    shift: torch.Tensor | None,
    masked: torch.Tensor,
    adds_first: bool = True,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The result, and maximum and sum of each row of scores, in double precision."""
    n = query.shape[1] // key.shape[1]
    key, value = (one.double().repeat_interleave(n, 1) for one in (key, value))
    scores = query.double() @ key.transpose(2, 3)
    if shift is None:
        scores = scale * scores
    else:
        scores = scale * (scores + shift.double()) if adds_first else scale * scores + shift.double()
    scores = scores.masked_fill(masked, -torch.inf)
    maximum = scores.amax(3, keepdim=True)
    powers = torch.exp(scores - maximum.clamp(min=-1e30))
    total = powers.sum(3, keepdim=True)
    return (powers / total.clamp(min=1e-30)) @ value, maximum, total


def operands(draw: Draw, dtype: torch.dtype, tokens: int | None = None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    batch, heads, repeats, width = draw.int(1, 3), draw.int(1, 2), draw.int(1, 2), draw.choice([2, 4])
    queries, keys = tokens or draw.int(1, 5), draw.int(1, 6)
    return (
        draw.tensor([batch, heads * repeats, queries, width], dtype),
        draw.tensor([batch, heads, keys, width], dtype),
        draw.tensor([batch, heads, keys, width], dtype),
    )


def placed(draw: Draw, x: torch.Tensor, layout: str) -> torch.Tensor:
    return draw.view(arranged(x, layout).contiguous())


def in_training(draw: Draw, dtype: torch.dtype, newer: bool = False) -> list[object]:
    query, key, value = operands(draw, dtype)
    layout, scale = draw.choice(["BSH", "SBH", "BSND", "BNSD"]), draw.number(0.1, 1)
    batch, heads, queries, keys = *query.shape[:3], key.shape[2]
    whole = [batch, heads, queries, keys]
    shift = draw.tensor(draw.choice([whole, [1, *whole[1:]], [batch, heads, 1, keys]]), dtype) if draw.flag() else None
    mode, mask, masked = draw.int(0, 3), None, torch.zeros(queries, keys, dtype=torch.bool)
    before, after = draw.choice([(EVERYTHING, EVERYTHING), (EVERYTHING, 0), (1, 1), (2, -1)])
    i, j = torch.arange(queries)[:, None], torch.arange(keys)[None]
    if mode in (0, 1) and draw.int(0, 3) > 0:
        shape = draw.choice([whole, [batch, 1, queries, keys], [1, 1, queries, keys], [queries, keys]])
        mask = draw.tensor(shape, torch.bool)
        masked = mask | (j - i < -before) | (j - i > after) if mode == 0 else mask
        mask = mask if draw.flag() else draw.view(mask.to(torch.uint8))
    elif mode in (2, 3):
        mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
        masked = j - i > (keys - queries if mode == 3 else 0)
    pse_type = draw.int(0, 1) if newer else 1
    result, maximum, total = attention(query, key, value, scale, shift, masked, pse_type == 1)
    expanded = [Out(one.float().expand(*whole[:3], 8).clone(), 64, 64) for one in (maximum, total)]
    return [
        *(placed(draw, one, layout) for one in (query, key, value)),
        *(shift, None, None, mask, None, *([None, None] if newer else [])),
        *(scale, 1.0, before, after, heads, layout, 0, mode, *([pse_type] if newer else [])),
        *(expanded if draw.flag() else [None, None]),
        None,
        Out(arranged(result, layout).to(dtype).contiguous(), 64, 1),
    ]


def to_prompt(draw: Draw, dtype: torch.dtype) -> list[object]:
    query, key, value = operands(draw, dtype)
    layout, scale = draw.choice(["BSH", "BSND", "BNSD"]), draw.number(0.1, 1)
    batch, heads, queries, keys = *query.shape[:3], key.shape[2]
    masked, mask, after = torch.zeros(queries, keys, dtype=torch.bool), None, draw.choice([EVERYTHING, 0])
    if draw.flag():
        mask = draw.tensor(draw.choice([[queries, keys], [batch, queries, keys], [batch, 1, queries, keys]]), torch.bool)
        masked = mask[:, None] if mask.dim() == 3 else mask
        masked = masked | (torch.arange(keys)[None] - torch.arange(queries)[:, None] > after)
    result, _, _ = attention(query, key, value, scale, None, masked)
    key_heads = draw.choice([key.shape[1], 0]) if key.shape[1] == heads else key.shape[1]
    return [
        *(placed(draw, one, layout) for one in (query, key, value)),
        *(None, mask, draw.choice([None, [queries] * batch]), heads, scale, EVERYTHING, after, layout, key_heads),
        Out(arranged(result, layout).to(dtype).contiguous(), 64, 1),
    ]


def in_inference(draw: Draw, dtype: torch.dtype, fused: bool = False) -> list[object]:
    query, key, value = operands(draw, dtype)
    layout, scale, mode = draw.choice(["BSH", "BSND", "BNSD"]), draw.number(0.1, 1), draw.int(0, 3)
    batch, heads, queries, keys = *query.shape[:3], key.shape[2]
    i, j = torch.arange(queries)[:, None], torch.arange(keys)[None]
    masked, mask, after = torch.zeros(queries, keys, dtype=torch.bool), None, draw.choice([EVERYTHING, 0])
    if mode > 1:
        mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
        masked = j - i > (keys - queries if mode == 3 else 0)
    elif draw.flag():
        mask = draw.tensor(draw.choice([[queries, keys], [batch, 1, queries, keys]]), torch.bool)
        masked = mask | (j - i > after) if mode == 0 else mask
    lengths = None
    if mode != 3 and draw.flag():
        lengths = [draw.int(1, keys) for _ in range(batch)]
        masked = masked | (torch.arange(keys) >= torch.tensor(lengths)[:, None, None, None])
    result, _, _ = attention(query, key, value, scale, None, masked)
    pair = [placed(draw, one, layout) for one in (key, value)]
    numbers = (heads, scale, EVERYTHING, after, layout, key.shape[1], mode, 0)
    out = Out(arranged(result, layout).to(dtype).contiguous(), 64, 1)
    front = [placed(draw, query, layout), *([[one] for one in pair] if fused else pair), None, mask, None, lengths]
    if not fused:
        return [*front, *[None] * 5, *numbers, out]
    return [*front, *[None] * 20, *numbers, 0, 0, False, 0, 0, out, None]


def of_token(draw: Draw, dtype: torch.dtype, newer: bool = False) -> list[object]:
    query, key, value = operands(draw, dtype, 1)
    layout, scale = draw.choice(["BSH", "BSND", "BNSD"]), draw.number(0.1, 1)
    batch, heads, keys = *query.shape[:2], key.shape[2]
    lengths = draw.choice([None, [draw.int(1, keys)], [draw.int(0, keys) for _ in range(batch)]])
    masked, mask = torch.zeros(1, 1, 1, keys, dtype=torch.bool), None
    if lengths is not None:
        masked = torch.arange(keys)[None, None, None] >= torch.tensor(lengths)[:, None, None, None]
    if draw.flag():
        mask = draw.tensor(draw.choice([[batch, keys], [batch, 1, 1, keys]]), torch.bool)
        masked = masked | mask.reshape(batch, 1, 1, keys)
    result, _, _ = attention(query, key, value, scale, None, masked)
    return [
        placed(draw, query, layout),
        *([placed(draw, one, layout)] for one in (key, value)),
        *(None, mask, lengths, *([None] * 9 if newer else []), heads, scale, layout, key.shape[1]),
        *([0, 0] if newer else []),
        Out(arranged(result, layout).to(dtype).contiguous(), 64, 1),
    ]


def scaled_masked_softmax(draw: Draw, dtype: torch.dtype) -> list[object]:
    b, n, rows, columns = draw.int(0, 3), draw.int(1, 3), draw.int(1, 4), draw.int(1, 5)
    x, scale = draw.tensor([b, n, rows, columns], dtype), draw.number()
    mask = draw.tensor([draw.choice([b, 1]), draw.choice([n, 1]), rows, columns], torch.bool)
    expected = torch.softmax((x.double() * scale).masked_fill(mask, -10000), 3)
    return [x, mask, scale, False, Out(expected.to(dtype), 16, 0.1)]


def halves_exchanged(x: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mode: int) -> torch.Tensor:
    x, cos, sin = x.double(), cos.double(), sin.double()
    match mode:
        case 0:
            turned = halves_exchanged(x)
        case 1:
            turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
        case 2:
            turned = torch.cat([halves_exchanged(one) for one in x.chunk(2, -1)], -1)
        case _:
            x = torch.cat([x[..., ::2], x[..., 1::2]], -1)
            turned = halves_exchanged(x)
    return x * cos + turned * sin


def rotation(draw: Draw, dtype: torch.dtype) -> list[object]:
    mode = draw.int(0, 3)
    shape = [draw.int(0, 2), draw.int(1, 3), draw.int(1, 3), 4 * draw.int(1, 3)]
    x = draw.tensor(shape, dtype)
    part = draw.choice([shape, [1, 1, 1, shape[3]], [shape[0], 1, *shape[2:]], [1, shape[1], 1, shape[3]]])
    cos, sin = draw.tensor(part, dtype, -1, 1), draw.tensor(part, dtype, -1, 1)
    return [x, cos, sin, mode, Out(rotated(x, cos, sin, mode).to(dtype), 2, 8)]


def both_rotated(draw: Draw, dtype: torch.dtype) -> list[object]:
    b, s, width = draw.int(1, 2), draw.int(1, 3), 128
    query, key = draw.tensor([b, s, draw.int(1, 3), width], dtype), draw.tensor([b, s, draw.int(1, 3), width], dtype)
    cos, sin = (draw.tensor([b, s, 1, width], dtype, -1, 1) for _ in range(2))
    outs = [Out(rotated(x, cos, sin, 0).to(dtype), 2, 8, start=x) for x in (query, key)]
    return [*outs, cos, sin, 1]


PROMPT_TYPES: list[torch.dtype] = [torch.float16, torch.bfloat16]

CASES = [
    Case("aclnnFlashAttentionScore", in_training, FLOATS, n_draws=16),
    Case("aclnnFlashAttentionScoreV2", partial(in_training, newer=True), FLOATS, n_draws=8),
    Case("aclnnPromptFlashAttention", to_prompt, PROMPT_TYPES, n_draws=12),
    Case("aclnnIncreFlashAttention", of_token, PROMPT_TYPES, n_draws=12),
    Case("aclnnPromptFlashAttentionV3", in_inference, PROMPT_TYPES, n_draws=12),
    Case("aclnnIncreFlashAttentionV4", partial(of_token, newer=True), PROMPT_TYPES),
    Case("aclnnFusedInferAttentionScoreV3", partial(in_inference, fused=True), PROMPT_TYPES, n_draws=12),
    Case("aclnnScaledMaskedSoftmax", scaled_masked_softmax),
    Case("aclnnApplyRotaryPosEmb", both_rotated),
    Case("aclnnRotaryPositionEmbedding", rotation, n_draws=8),
]
