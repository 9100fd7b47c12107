"""Gradients of attention."""

from __future__ import annotations

from functools import partial

import torch
from aclnn import FLOATS, Case, Draw, Out

from aclnn_cases.attention import (
    EVERYTHING,
    arranged,
    attention,
    attention_of_each,
    ends,
    operands,
    packed_mask,
    packed_samples,
    placed,
    seen_by_mode,
    triangle,
)


def of_training(draw: Draw, dtype: torch.dtype, newer: bool = False) -> list[object]:
    tensors = list(operands(draw, dtype))
    query, key, _ = tensors
    layout, scale = draw.choice(["BSH", "SBH", "BSND", "BNSD"]), draw.number(0.1, 0.5)
    batch, heads, queries, keys = *query.shape[:3], key.shape[2]
    whole, mode = [batch, heads, queries, keys], draw.choice([0, 1, 2, 3, 4, 6])
    before, after = draw.choice([(EVERYTHING, EVERYTHING), (EVERYTHING, 0), (2, 1)])
    mask, masked, prefix = None, torch.zeros(queries, keys, dtype=torch.bool), None
    if mode > 1:
        mask, masked = triangle(mode), seen_by_mode(mode, queries, keys, before, after)
        if mode == 6:
            prefix = [draw.int(0, keys) for _ in range(batch)]
            masked = masked & (torch.arange(keys) >= torch.tensor(prefix)[:, None, None, None])
    elif draw.flag():
        mask = draw.tensor(draw.choice([whole, [batch, 1, queries, keys], [queries, keys]]), torch.bool)
        masked = mask | (seen_by_mode(0, queries, keys, before, after) if mode == 0 else False)
    shift = draw.tensor([draw.choice([1, batch]), *whole[1:]], dtype) if draw.flag() else None
    pse_type = draw.int(0, 1) if newer else 1
    leaves = [one.double().contiguous().requires_grad_() for one in tensors]
    result, maximum, total = attention(*leaves, scale, shift, masked, pse_type == 1)
    dy = draw.tensor(list(result.shape), dtype)
    found = torch.autograd.grad(result, leaves, dy.double())
    saved: list[torch.Tensor | None] = [None, None, None, None]
    if draw.flag():
        saved = [one.detach().float().expand(*whole[:3], 8).contiguous() for one in (maximum, total)]
        saved += [None, placed(draw, result.detach().to(dtype), layout)]
    return [
        *(placed(draw, one, layout) for one in (*tensors, dy)),
        *(shift, None, None, mask, *saved, prefix, *([None, None] if newer else [])),
        *(scale, 1.0, before, after, heads, layout, 0, mode, *([pse_type] if newer else [])),
        *(Out(arranged(one, layout).to(dtype).contiguous(), 64, 4) for one in found),
        draw.choice([None, Out(torch.zeros(whole, dtype=dtype))]),
    ]


def of_packed(draw: Draw, dtype: torch.dtype) -> list[object]:
    tensors, queries, keys = packed_samples(draw, dtype)
    scale, mode = draw.number(0.1, 0.5), draw.int(0, 4)
    before, after = draw.choice([(EVERYTHING, 0), (1, 1), (2, 1)])
    mask = packed_mask(draw, mode, queries, keys)
    leaves = [one.double().contiguous().requires_grad_() for one in tensors]
    result, maximum, total = attention_of_each(leaves, queries, keys, scale, mode, before, after, mask)
    dy = draw.tensor(list(result.shape), dtype)
    found = torch.autograd.grad(result, leaves, dy.double())
    saved: list[torch.Tensor | None] = [None, None, None, None]
    if draw.flag():
        saved = [one.detach().float().expand(-1, -1, 8).contiguous() for one in (maximum, total)]
        saved += [None, result.detach().to(dtype).contiguous()]
    return [
        *(*tensors, dy, None, None, None, mask, *saved, None, ends(queries), ends(keys)),
        *(scale, 1.0, before, after, tensors[0].shape[1], "TND", 0, mode),
        *(Out(one.to(dtype), 64, 4) for one in found),
        None,
    ]


CASES = [
    Case("aclnnFlashAttentionScoreGrad", of_training, FLOATS, n_draws=16),
    Case("aclnnFlashAttentionScoreGradV2", partial(of_training, newer=True), FLOATS, n_draws=8),
    Case("aclnnFlashAttentionUnpaddingScoreGrad", of_packed, FLOATS, n_draws=12),
]
