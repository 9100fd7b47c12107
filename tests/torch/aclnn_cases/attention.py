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
    mode, mask, masked = draw.int(0, 6), None, torch.zeros(queries, keys, dtype=torch.bool)
    before, after = draw.choice([(EVERYTHING, EVERYTHING), (EVERYTHING, 0), (1, 1), (2, -1)])
    i, j = torch.arange(queries)[:, None], torch.arange(keys)[None]
    # A list without an effect, as the vendor's sample passes one.
    prefix = draw.choice([None, [0]])
    if mode in (0, 1) and draw.int(0, 3) > 0:
        shape = draw.choice([whole, [batch, 1, queries, keys], [1, 1, queries, keys], [queries, keys]])
        mask = draw.tensor(shape, torch.bool)
        masked = mask | (j - i < -before) | (j - i > after) if mode == 0 else mask
        mask = mask if draw.flag() else draw.view(mask.to(torch.uint8))
    elif mode > 1:
        mask, masked = triangle(mode), seen_by_mode(mode, queries, keys, before, after)
        if mode > 4:
            prefix = [draw.int(0, keys) for _ in range(batch)]
            masked = masked & (j >= torch.tensor(prefix)[:, None, None, None])
            mask = draw.view(masked) if mode == 5 else mask
    pse_type = draw.int(0, 1) if newer else 1
    result, maximum, total = attention(query, key, value, scale, shift, masked, pse_type == 1)
    expanded = [Out(one.float().expand(*whole[:3], 8).clone(), 64, 64) for one in (maximum, total)]
    return [
        *(placed(draw, one, layout) for one in (query, key, value)),
        *(shift, None, None, mask, prefix, *([None, None] if newer else [])),
        *(scale, 1.0, before, after, heads, layout, 0, mode, *([pse_type] if newer else [])),
        *(expanded if draw.flag() else [None, None]),
        None,
        Out(arranged(result, layout).to(dtype).contiguous(), 64, 1),
    ]


def triangle(mode: int) -> torch.Tensor:
    """A compressed mask that represents a larger one."""
    causal = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    if mode != 6:
        return causal
    return torch.cat([causal, (torch.arange(2048) >= 1024).expand(1024, 2048)])


def seen_by_mode(mode: int, queries: int, keys: int, before: int, after: int) -> torch.Tensor:
    """What a query does not see of a sample with these lengths."""
    i, j = torch.arange(queries)[:, None], torch.arange(keys)[None]
    corner = keys - queries
    match mode:
        case 0:
            return (j - i < -before) | (j - i > after)
        case 2:
            return j > i
        case 4:
            return (j - i - corner < -before) | (j - i - corner > after)
        case 3 | 5 | 6:
            return j - i > corner
    return torch.zeros(queries, keys, dtype=torch.bool)


def packed_samples(draw: Draw, dtype: torch.dtype, empty: bool = True) -> tuple[list[torch.Tensor], list[int], list[int]]:
    """Query, key and value of samples one after the other, and how long each is."""
    n, heads, repeats, width = draw.int(1, 3), draw.int(1, 2), draw.int(1, 2), draw.choice([2, 4])
    queries = [draw.int(0 if empty and at else 1, 3) for at in range(n)]
    keys = [draw.int(1, 4) for _ in range(n)]
    shapes = [[sum(queries), heads * repeats, width], *[[sum(keys), heads, width]] * 2]
    return [draw.tensor(shape, dtype) for shape in shapes], queries, keys


def ends(lengths: list[int]) -> list[int]:
    return torch.tensor(lengths).cumsum(0).tolist()


def packed_mask(draw: Draw, mode: int, queries: list[int], keys: list[int]) -> torch.Tensor | None:
    """A mask for all samples, of which shorter ones take the first rows and columns."""
    if mode > 1:
        return triangle(mode)
    # Without one modes have no effect, so that mode 0 needs it for its band.
    if mode == 1 and draw.flag():
        return None
    return draw.tensor([max(queries) + draw.int(0, 1), max(keys)], torch.bool)


def attention_of_each(
    tensors: list[torch.Tensor],
    queries: list[int],
    keys: list[int],
    scale: float,
    mode: int,
    before: int,
    after: int,
    mask: torch.Tensor | None = None,
) -> list[torch.Tensor]:
    """Result, maxima and sums of samples one after the other, with tokens in front."""
    found = []
    parts = zip(tensors[0].split(queries), tensors[1].split(keys), tensors[2].split(keys), strict=True)
    for query, key, value in parts:
        masked = seen_by_mode(mode, len(query), len(key), before, after)
        if mask is not None and mode < 2:
            masked = masked | mask[: len(query), : len(key)]
        sides = [one.transpose(0, 1)[None] for one in (query, key, value)]
        found.append([one[0].transpose(0, 1) for one in attention(*sides, scale, None, masked)])
    return [torch.cat(one) for one in zip(*found, strict=True)]


def of_packed(draw: Draw, dtype: torch.dtype, newer: bool = False) -> list[object]:
    tensors, queries, keys = packed_samples(draw, dtype)
    heads, scale, mode = tensors[0].shape[1], draw.number(0.1, 1), draw.int(0, 4)
    before, after = draw.choice([(EVERYTHING, 0), (1, 1), (2, 1)])
    mask = packed_mask(draw, mode, queries, keys)
    result, maximum, total = attention_of_each(tensors, queries, keys, scale, mode, before, after, mask)
    expanded = [Out(one.float().expand(-1, -1, 8).clone(), 64, 64) for one in (maximum, total)]
    pse_type = [draw.int(0, 1)] if newer else []
    return [
        *(tensors[0], tensors[1], tensors[2], None, None, None, mask, None, ends(queries), ends(keys)),
        *([None, None] if newer else []),
        *(scale, 1.0, before, after, heads, "TND", 0, mode, *pse_type),
        *(*expanded, None, Out(result.to(dtype), 64, 1)),
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
    shift = draw.tensor([draw.choice([1, batch]), heads, queries, keys], dtype) if draw.flag() else None
    lengths = draw.choice([None, [queries] * batch, [draw.int(1, queries) for _ in range(batch + 1)]])
    if lengths is not None and queries > 1:
        masked = masked | (torch.arange(queries)[:, None] >= torch.tensor(lengths[:batch])[:, None, None, None])
    # The shift is there for later use, and has no effect.
    result, _, _ = attention(query, key, value, scale, None, masked)
    key_heads = draw.choice([key.shape[1], 0]) if key.shape[1] == heads else key.shape[1]
    return [
        *(placed(draw, one, layout) for one in (query, key, value)),
        *(shift, mask, lengths, heads, scale, EVERYTHING, after, layout, key_heads),
        Out(arranged(result, layout).to(dtype).contiguous(), 64, 1),
    ]


def behind(lengths: list[int], n: int, axes: int = 3) -> torch.Tensor:
    """Which of `n` entries lie behind a length for each sample."""
    return (torch.arange(n) >= torch.tensor(lengths)[:, None]).reshape(len(lengths), *[1] * (axes - 1), n)


def with_rubbish(value: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    """The memory behind a length holds anything."""
    return value.masked_fill(behind(lengths, value.shape[2], 2)[..., None], torch.nan)


def in_inference(draw: Draw, dtype: torch.dtype, version: str = "prompt") -> list[object]:
    """`version` is `prompt` with a number, or that of the fused function."""
    is_fused = not version.startswith("prompt")
    tokens = draw.int(2, 5)
    query, key, value = operands(draw, dtype, tokens)
    layout, scale, mode = draw.choice(["BSH", "BSND", "BNSD", "BNSD_BSND"]), draw.number(0.1, 1), draw.int(0, 4)
    batch, heads, queries, keys = *query.shape[:3], key.shape[2]
    before, after = draw.choice([(EVERYTHING, EVERYTHING), (EVERYTHING, 0), (2, 1)])
    own = [draw.int(1, queries) for _ in range(batch)] if draw.flag() else [queries] * batch
    lengths = [draw.int(1, keys) for _ in range(batch)] if draw.flag() else [keys] * batch
    masked, mask = behind(lengths, keys) | behind(own, queries).transpose(2, 3), None
    if mode > 1:
        mask = triangle(mode)
        bands = [seen_by_mode(mode, a, b, before, after) for a, b in zip(own, lengths, strict=True)]
        grown = [torch.nn.functional.pad(one, (0, keys - one.shape[1], 0, queries - one.shape[0])) for one in bands]
        masked = masked | torch.stack(grown)[:, None]
    elif draw.flag():
        # Masks may be longer than the scores.
        more = draw.choice([0, 2])
        mask = draw.tensor(draw.choice([[queries, keys], [batch, 1, queries + more, keys + more]]), torch.bool)
        masked = masked | mask[..., :queries, :keys]
        masked = masked | (seen_by_mode(0, queries, keys, before, after) if mode == 0 else False)
    shift = draw.tensor([draw.choice([1, batch]), heads, queries, keys], dtype) if draw.flag() else None
    read = None if version == "prompt 2" else shift
    result, maximum, total = attention(query, key, value, scale, read, masked, adds_first=False)
    inner = layout.partition("_")[0]
    pair = [placed(draw, one, inner) for one in (key, with_rubbish(value, lengths))]
    numbers = (heads, scale, before, after, layout, key.shape[1], mode)
    out = Out(arranged(result, layout.rpartition("_")[2]).to(dtype).contiguous(), 64, 1)
    front = [placed(draw, query, inner), *([[one] for one in pair] if is_fused else pair), shift, mask, own, lengths]
    if not is_fused:
        return [*front, *[None] * 5, *numbers, *([] if version == "prompt 2" else [0]), out]
    asks = draw.flag()
    sums = torch.where(total > 0, total.log() + maximum, torch.inf).float()
    tail = [*numbers, 0, 0, 0, asks, *MODES[version], out, Out(sums, 64, 1) if asks else None]
    return [*front, *[None] * ABSENT[version], *tail]


ABSENT = {"1": 10, "2": 17, "3": 20, "4": 22}
"""How many optional arguments lie between the lengths and the numbers of the fused functions."""
MODES: dict[str, list[int]] = {"1": [], "2": [0, 0], "3": [0, 0], "4": [0, 0, 0]}


def fused(draw: Draw, dtype: torch.dtype, version: str) -> list[object]:
    """One of the ways in which a fused function finds keys."""
    ways = {"plain": None, "token": fused_token, "list": fused_list, "packed": fused_packed, "blocks": fused_blocks}
    if version in ("3", "4"):
        ways["rotated"] = fused_rotated
    way = draw.choice(list(ways))
    if way == "plain":
        return in_inference(draw, dtype, version)
    return ways[way](draw, dtype, version)


def fused_arguments(
    version: str,
    tensors: list[object],
    numbers: tuple[object, ...],
    outs: list[object],
    shift: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
    lengths: tuple[list[int] | None, list[int] | None] = (None, None),
    table: torch.Tensor | None = None,
    rotations: tuple[torch.Tensor, torch.Tensor] | None = None,
    block: int = 0,
) -> list[object]:
    heads, scale, before, after, layout, key_heads, mode = numbers
    more: list[object] = [None] * ABSENT[version]
    more[7] = table
    if rotations is not None:
        more[17:19] = rotations
    ending = [heads, scale, before, after, layout, key_heads, mode, 0, block, 0, outs[1] is not None]
    return [*tensors, shift, mask, *lengths, *more, *ending, *MODES[version], *outs]


def fused_token(draw: Draw, dtype: torch.dtype, version: str) -> list[object]:
    """A single token, for which modes have no effect."""
    query, key, value = operands(draw, dtype, 1)
    layout, scale, mode = draw.choice(["BSH", "BSND", "BNSD"]), draw.number(0.1, 1), draw.choice([0, 1, 3])
    batch, heads, keys = *query.shape[:2], key.shape[2]
    lengths = [draw.int(1, keys) for _ in range(batch)]
    masked, mask = behind(lengths, keys), None
    if mode == 3:
        mask = triangle(mode)
    elif draw.flag():
        mask = draw.tensor(draw.choice([[batch, keys], [batch, 1, keys], [batch, 1, 1, keys]]), torch.bool)
        masked = masked | mask.reshape(batch, 1, 1, keys)
    result, _, _ = attention(query, key, value, scale, None, masked)
    pair = [[placed(draw, one, layout)] for one in (key, with_rubbish(value, lengths))]
    out = Out(arranged(result, layout).to(dtype).contiguous(), 64, 1)
    numbers = (heads, scale, 0, 0, layout, key.shape[1], mode)
    return fused_arguments(
        version, [placed(draw, query, layout), *pair], numbers, [out, None], mask=mask, lengths=(None, lengths)
    )


def fused_list(draw: Draw, dtype: torch.dtype, version: str) -> list[object]:
    """A tensor of keys for each sample."""
    query, key, value = operands(draw, dtype, draw.int(2, 4))
    layout, scale = draw.choice(["BSH", "BSND", "BNSD"]), draw.number(0.1, 1)
    batch, heads, keys = *query.shape[:2], key.shape[2]
    lengths = [draw.int(1, keys) for _ in range(batch)]
    result, _, _ = attention(query, key, value, scale, None, behind(lengths, keys))
    pair = [
        [placed(draw, one[None, :, :length], layout) for one, length in zip(side, lengths, strict=True)]
        for side in (key, value)
    ]
    out = Out(arranged(result, layout).to(dtype).contiguous(), 64, 1)
    numbers = (heads, scale, EVERYTHING, EVERYTHING, layout, key.shape[1], 0)
    return fused_arguments(version, [placed(draw, query, layout), *pair], numbers, [out, None])


def fused_packed(draw: Draw, dtype: torch.dtype, version: str) -> list[object]:
    (query, key, value), queries, keys = packed_samples(draw, dtype)
    scale, mode = draw.number(0.1, 1), draw.int(1, 4)
    before, after = draw.choice([(EVERYTHING, 0), (1, 1), (2, 1)])
    mask = triangle(mode) if mode > 1 else None
    result, maximum, total = attention_of_each([query, key, value], queries, keys, scale, mode, before, after)
    sums = torch.where(total > 0, total.log() + maximum, torch.inf).float()
    numbers = (query.shape[1], scale, before, after, "TND", key.shape[1], mode)
    outs = [Out(result.to(dtype), 64, 1), Out(sums, 64, 1) if draw.flag() else None]
    return fused_arguments(
        version, [query, [key], [value]], numbers, outs, mask=mask, lengths=(ends(queries), ends(keys))
    )


def in_blocks(
    draw: Draw, sides: list[torch.Tensor], lengths: list[int], is_outside: bool, least: int = 1
) -> tuple[list[torch.Tensor], torch.Tensor, int]:
    """Keys and values, given with samples, heads and tokens in front, in blocks in any order."""
    size, n = 2, len(lengths)
    most = max(least, *(-(-length // size) for length in lengths)) + draw.int(0, 1)
    order = list(range(n * most + 1))
    draw.shapes.shuffle(order)
    table = torch.tensor(order[: n * most], dtype=torch.int32).reshape(n, most)
    stores = []
    for side in sides:
        heads, width = side.shape[1], side.shape[3]
        store = torch.full([n * most + 1, heads, size, width], torch.nan, dtype=side.dtype)
        for at, length in enumerate(lengths):
            for token in range(length):
                store[table[at, token // size], :, token % size] = side[at, :, token]
        stores.append(draw.view(store if is_outside else store.transpose(1, 2).flatten(2).contiguous()))
    # Numbers of blocks behind the length of a sample are any.
    for at, length in enumerate(lengths):
        table[at, -(-length // size) :] = draw.choice([-1, 99])
    return stores, draw.view(table), size


def fused_blocks(draw: Draw, dtype: torch.dtype, version: str) -> list[object]:
    layout, scale = draw.choice(["BSH", "BSND", "BNSD", "TND"]), draw.number(0.1, 1)
    query, key, value = operands(draw, dtype, draw.int(1, 3))
    batch, heads, tokens, keys = *query.shape[:3], key.shape[2]
    lengths = [draw.int(1, keys) for _ in range(batch)]
    result, _, _ = attention(query, key, value, scale, None, behind(lengths, keys))
    stores, table, size = in_blocks(draw, [key, value], lengths, layout in ("BNSD", "TND") and draw.flag())
    inner = "BSND" if layout == "TND" else layout
    query, result = (arranged(one, inner) for one in (query, result))
    own = None
    if layout == "TND":
        query, result, own = query.flatten(0, 1), result.flatten(0, 1), ends([tokens] * batch)
    numbers = (heads, scale, EVERYTHING, EVERYTHING, layout, key.shape[1], 0)
    return fused_arguments(
        version,
        [draw.view(query.contiguous()), *([one] for one in stores)],
        numbers,
        [Out(result.to(dtype).contiguous(), 64, 1), None],
        lengths=(own, lengths),
        table=table,
        block=size,
    )


def fused_rotated(draw: Draw, dtype: torch.dtype, version: str) -> list[object]:
    """A part of the width that is passed on its own."""
    query, key, value = operands(draw, dtype, draw.int(2, 3))
    layout, scale = draw.choice(["BSND", "BNSD", "BSH"]), draw.number(0.1, 1)
    more = [draw.tensor([*one.shape[:3], 2], dtype) for one in (query, key)]
    whole = [torch.cat(pair, 3) for pair in zip((query, key), more, strict=True)]
    result, _, _ = attention(*whole, value, scale, None, torch.tensor(False))
    out = Out(arranged(result, layout).to(dtype).contiguous(), 64, 1)
    numbers = (query.shape[1], scale, EVERYTHING, EVERYTHING, layout, key.shape[1], 0)
    tensors = [placed(draw, query, layout), *([placed(draw, one, layout)] for one in (key, value))]
    rotations = tuple(placed(draw, one, layout) for one in more)
    return fused_arguments(version, tensors, numbers, [out, None], rotations=rotations)


def of_token(draw: Draw, dtype: torch.dtype, version: int = 1) -> list[object]:
    query, key, value = operands(draw, dtype, 1)
    layout, scale = draw.choice(["BSH", "BSND", "BNSD"]), draw.number(0.1, 1)
    batch, heads, keys = *query.shape[:2], key.shape[2]
    lengths = draw.choice([None, [draw.int(1, keys)], [draw.int(0, keys) for _ in range(batch)]])
    full = [keys] * batch if lengths is None else lengths * (batch if len(lengths) == 1 else 1)
    masked, mask = behind(full, keys), None
    if draw.flag():
        mask = draw.tensor(draw.choice([[batch, keys], [batch, 1, 1, keys]]), torch.bool)
        masked = masked | mask.reshape(batch, 1, 1, keys)
    shift = draw.tensor([draw.choice([1, batch]), heads, 1, keys], dtype) if draw.flag() else None
    read = shift if version > 2 else None
    result, _, _ = attention(query, key, value, scale, read, masked, adds_first=False)
    absent: list[object] = [None] * {1: 0, 2: 5, 3: 8, 4: 9}[version]
    pair, block = [[placed(draw, one, layout)] for one in (key, with_rubbish(value, full))], 0
    if version > 2 and draw.flag():
        lengths = full
        is_outside = layout == "BNSD" and draw.flag()
        stores, absent[7], block = in_blocks(draw, [key, value], full, is_outside, -(-keys // 2))
        pair = [[one] for one in stores]
        # What belongs to keys has to be as long as all blocks of the table.
        more = absent[7].shape[1] * block - keys
        mask = mask if mask is None else torch.nn.functional.pad(mask, (0, more), value=True)
        shift = shift if shift is None else torch.nn.functional.pad(shift, (0, more))
    return [
        placed(draw, query, layout),
        *pair,
        *(shift, mask, lengths, *absent, heads, scale, layout, key.shape[1]),
        *([block, 0] if version > 2 else []),
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
    Case("aclnnFlashAttentionScore", in_training, FLOATS, n_draws=20),
    Case("aclnnFlashAttentionScoreV2", partial(in_training, newer=True), FLOATS, n_draws=8),
    Case("aclnnFlashAttentionVarLenScore", of_packed, FLOATS, n_draws=12),
    Case("aclnnFlashAttentionVarLenScoreV2", partial(of_packed, newer=True), FLOATS),
    Case("aclnnPromptFlashAttention", to_prompt, PROMPT_TYPES, n_draws=16),
    Case("aclnnPromptFlashAttentionV2", partial(in_inference, version="prompt 2"), PROMPT_TYPES),
    Case("aclnnPromptFlashAttentionV3", partial(in_inference, version="prompt 3"), PROMPT_TYPES, n_draws=16),
    Case("aclnnIncreFlashAttention", of_token, PROMPT_TYPES, n_draws=12),
    Case("aclnnIncreFlashAttentionV2", partial(of_token, version=2), PROMPT_TYPES),
    Case("aclnnIncreFlashAttentionV3", partial(of_token, version=3), PROMPT_TYPES, n_draws=12),
    Case("aclnnIncreFlashAttentionV4", partial(of_token, version=4), PROMPT_TYPES),
    Case("aclnnFusedInferAttentionScore", partial(fused, version="1"), PROMPT_TYPES, n_draws=12),
    Case("aclnnFusedInferAttentionScoreV2", partial(fused, version="2"), PROMPT_TYPES, n_draws=12),
    Case("aclnnFusedInferAttentionScoreV3", partial(fused, version="3"), PROMPT_TYPES, n_draws=24),
    Case("aclnnFusedInferAttentionScoreV4", partial(fused, version="4"), PROMPT_TYPES, n_draws=12),
    Case("aclnnScaledMaskedSoftmax", scaled_masked_softmax),
    Case("aclnnApplyRotaryPosEmb", both_rotated),
    Case("aclnnRotaryPositionEmbedding", rotation, n_draws=8),
]
