"""Tensors whose numbers a device computes, and the program that computes them without one.

As a program it writes, into the folder that it is given, the elements of every case as `cases.safetensors` and as
`cases.json` the rows that each form computes: Triton's interpreter runs the kernels.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

# Names of dtypes in a file of safetensors; of the others there is no file.
NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.float8_e8m0fnu: "F8_E8M0",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
DTYPES = (*NAMES, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
# Elements of two stripes, which one program looks at alone, are not all that there is of the first of these.
_SIZES = {1: (0, 1, 3, 65_539), 2: (0, 1, 3, 33_001), 4: (0, 1, 2, 8_192, 8_193, 16_385), 8: (0, 1, 2, 8_197)}
# Cases with a histogram: counting takes the interpreter longer than all the rest.
HISTOGRAMS = (
    "normal float32",
    "bits of bfloat16, 33001",
    "all scales float64",
    "bits of int8, 3",
    "one repeated int64",
)


def _random_bits(n: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    item = torch.empty(0, dtype=dtype).element_size()
    codes = torch.randint(0, 2 if dtype is torch.bool else 256, (n * item,), dtype=torch.uint8, generator=generator)
    return codes.view(dtype)


def _normal(n: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def _with(tensor: torch.Tensor, values: dict[int, float]) -> torch.Tensor:
    for position, value in values.items():
        tensor[position] = value
    return tensor


def cases() -> Iterator[tuple[str, torch.Tensor]]:
    for dtype in DTYPES:
        name = str(dtype).removeprefix("torch.")
        for n in _SIZES[torch.empty(0, dtype=dtype).element_size()]:
            yield f"bits of {name}, {n}", _random_bits(n, dtype, n)
    for dtype in FLOATS:
        name = str(dtype).removeprefix("torch.")
        end, least = torch.finfo(dtype).max, torch.finfo(dtype).tiny
        yield f"normal {name}", _normal(20_000, 1, dtype)
        yield f"rectified {name}", _normal(20_000, 2, dtype).relu()
        yield f"minus zero {name}", -torch.zeros(700, dtype=dtype)
        yield f"both zeros {name}", _with(torch.zeros(5000, dtype=dtype), {17: -0.0})
        yield f"zero beside negatives {name}", _with(-_normal(900, 3, dtype).abs() - 1, {5: -0.0})
        yield f"subnormal {name}", torch.full((3000,), least / 4, dtype=dtype)
        yield f"one subnormal {name}", _with(_normal(3000, 4, dtype), {2999: -least / 2})
        # The core adds these up in another order, in which two of `float64` overflow.
        ends = {7: -end} if dtype is torch.float64 else {0: end, 7: -end, 2998: end}
        yield f"saturated {name}", _with(_normal(3000, 5, dtype), ends)
        yield f"nan {name}", _with(_normal(9000, 6, dtype), {8999: float("nan"), 8000: float("nan")})
        yield f"only nan {name}", torch.full((2000,), float("nan"), dtype=dtype)
        yield f"infinities {name}", _with(_normal(20_000, 7, dtype), {19_000: torch.inf, 19_001: -torch.inf})
        yield f"one infinity {name}", _with(_normal(20_000, 8, dtype), {3: -torch.inf})
        yield f"only infinities {name}", torch.full((70,), torch.inf, dtype=dtype)
        yield f"constant {name}", torch.full((18_000,), 0.1, dtype=dtype)
        yield f"narrow {name}", (torch.arange(30_000) % 7 * 0.25 + 100).to(dtype)
        yield f"cancelling {name}", torch.cat([_normal(9000, 9, dtype), -_normal(9000, 9, dtype)])
        yield f"scalar {name}", torch.tensor(-1.5, dtype=dtype)
    yield "tiny float32", _normal(9000, 10) * 1e-30
    yield "tiny bfloat16", (_normal(9000, 10) * 1e-30).to(torch.bfloat16)
    yield "huge float32", _normal(9000, 11) * 1e37
    yield "narrow and far float32", 1000 + _normal(20_000, 12) * 1e-3
    yield "far from one outlier float32", _with(_normal(20_000, 13), {12_345: 1e6})
    yield "huge float64", _normal(20_000, 14, torch.float64) * 1e300
    yield "tiny float64", _normal(20_000, 15, torch.float64) * 1e-300
    yield "all scales float64", torch.cat([_normal(9000, 16, torch.float64) * s for s in (1e-300, 1.0, 1e300)])
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.float64):
        name = str(dtype).removeprefix("torch.")
        base = (_normal(60 * 70 * 6, 17) * 50).abs().to(dtype).view(60, 70, 6)
        yield f"transposed {name}", base.permute(2, 0, 1)
        yield f"part {name}", base[3:50, 1:60:3, 1:]
        yield f"offset {name}", base.view(-1)[1:]
        yield f"expanded {name}", base[:1, :, :1].expand(60, 70, 6)
        yield f"one repeated {name}", base[0, 0, 0].expand(300, 100)
        yield f"five axes {name}", base.view(3, 20, 7, 10, 6).permute(4, 2, 0, 3, 1)[::2]
        yield f"empty axis {name}", base[:, :0]
    yield "channels last", _normal(2 * 16 * 9 * 9, 18).view(2, 16, 9, 9).to(memory_format=torch.channels_last)
    yield (
        "channels last, large",
        _normal(2 * 64 * 48 * 48, 19).view(2, 64, 48, 48).to(memory_format=torch.channels_last),
    )


# Tensors that are reduced together as well: more than one launch takes, of several dtypes, two that are copied first.
TOGETHER = (
    *(f"bits of float32, {n}" for n in (0, 1, 2, 8_192, 8_193)),
    "nan float32",
    "normal float32",
    "subnormal float32",
    "saturated float32",
    "infinities float32",
    "both zeros float32",
    "five axes float32",
    "transposed float32",
    "bits of int8, 3",
    "five axes bfloat16",
    "offset float32",
    "rectified float32",
    "scalar float32",
)


def _save(path: Path, found: dict[str, torch.Tensor]) -> None:
    header, parts, at = {}, [], 0
    for name, tensor in found.items():
        if tensor.dtype in NAMES:
            elements = tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            places = [at, at + len(elements)]
            header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": places}
            parts.append(elements)
            at += len(elements)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(b"".join([len(text).to_bytes(8, "little"), text, *parts]))


def main(folder: Path) -> None:
    os.environ["TRITON_INTERPRET"] = "1"
    from opscope.torch._device import torch_form, triton_form
    from opscope.torch._device.rows import row_words

    kernels = triton_form.TritonForm()
    found = dict(cases())
    rows: dict[str, dict[str, list[int]]] = {"triton": {}, "torch": {}}
    for name, tensor in found.items():
        # Words that are not written would be seen.
        has_histogram = name in HISTOGRAMS
        row = torch.full((1, row_words(has_histogram=has_histogram)), 12_345_678, dtype=torch.int64)
        kernels.reduce([tensor], row, has_histogram=has_histogram)
        rows["triton"][name] = row[0].tolist()
        rows["torch"][name] = torch_form.row(tensor, has_histogram=has_histogram).tolist()
    words = torch.zeros((len(TOGETHER), row_words(has_histogram=False)), dtype=torch.int64)
    kernels.reduce([found[name] for name in TOGETHER], words, has_histogram=False)
    rows["together"] = dict(zip(TOGETHER, words.tolist(), strict=True))
    _save(folder / "cases.safetensors", found)
    (folder / "cases.json").write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
