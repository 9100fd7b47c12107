"""The numbers that devices compute, by both forms, against the core's statistics of the same elements.

The kernels run in Triton's interpreter, which has to be asked for before Triton is imported: a separate program does.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import device_cases
import opscope
import pytest
import torch
from opscope.torch._device import reducer, rows, torch_form
from torch.utils._python_dispatch import TorchDispatchMode

CASES = dict(device_cases.cases())
FORMS = ("triton", "torch")
# What sums and norms may be off by, as a part of the sum of magnitudes or of the norm. `docs/statistics.md` says so.
_SUM_BOUNDS = {
    torch.float32: 4 * 2**-24,
    torch.float16: 8 * 2**-24,
    torch.bfloat16: 8 * 2**-24,
    torch.float8_e4m3fn: 16 * 2**-24,
    torch.float8_e5m2: 16 * 2**-24,
    torch.float8_e4m3fnuz: 16 * 2**-24,
    torch.float8_e5m2fnuz: 16 * 2**-24,
}
_DOUBLE_BOUND = 1e-11
_STD_BOUND = 1e-5


@pytest.fixture(autouse=True)
def fresh_compiler() -> None:
    """Nothing here is compiled by torch, and there are many tests."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the program fills."""
    folder = tmp_path_factory.mktemp("numbers")
    program = [sys.executable, "-W", "ignore", device_cases.__file__, str(folder)]
    subprocess.run(program, check=True, env={**os.environ, "TRITON_INTERPRET": "1"})
    return folder


@pytest.fixture(scope="session")
def found(folder: Path) -> dict[str, dict[str, rows.Row]]:
    """The rows of each form."""
    words = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    return {form: {name: rows.decode(row) for name, row in words[form].items()} for form in (*FORMS, "together")}


@pytest.fixture(scope="session")
def core(folder: Path) -> dict[str, Any]:
    """The core's statistics."""
    return {record.name: record.statistics() for record in opscope.open(folder / "cases.safetensors")}


def is_near(found: float, expected: float, bound: float) -> bool:
    """Whether a number is close enough; non-finite ones must be equal."""
    if not math.isfinite(expected) or not math.isfinite(found):
        return found == expected or (math.isnan(found) and math.isnan(expected))
    return abs(found - expected) <= bound


def is_same(found: float, expected: float) -> bool:
    """Whether two numbers are equal, with the sign of zero."""
    return found == expected and math.copysign(1, found) == math.copysign(1, expected)


def check_close(row: rows.Row, expected: Any, dtype: torch.dtype) -> None:
    """Expects counts and extremes to be the same, and sums within their bounds."""
    for name in rows.COUNTS:
        assert getattr(row, name) == getattr(expected, name), name
    assert is_same(row.min, expected.min) and is_same(row.max, expected.max)
    bound = _SUM_BOUNDS.get(dtype, _DOUBLE_BOUND)
    n_numbers = max(row.n_elements - row.n_nan, 1)
    assert is_near(row.l1, expected.l1, bound * expected.l1)
    assert is_near(row.sum, expected.sum, bound * expected.l1)
    assert is_near(row.mean, expected.mean, bound * expected.l1 / n_numbers)
    assert is_near(row.l2, expected.l2, bound * expected.l2)
    # The core's own `std` of equal elements may be next to zero.
    assert is_near(row.std, expected.std, _STD_BOUND * expected.std + 1e-14 * abs(expected.mean))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.dtype in device_cases.NAMES])
def test_numbers_are_those_of_the_core(found: Any, core: Any, name: str, form: str) -> None:
    check_close(found[form][name], core[name], CASES[name].dtype)


@pytest.mark.parametrize("name", CASES)
def test_both_forms_agree(found: Any, name: str) -> None:
    kernels, operators = found["triton"][name], found["torch"][name]
    for field in (*rows.COUNTS, *rows.PLACES, *rows.HASH):
        assert getattr(kernels, field) == getattr(operators, field), field
    check_close(kernels, operators, CASES[name].dtype)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.is_floating_point()])
def test_places_are_those_of_the_first(found: Any, name: str) -> None:
    flat = CASES[name].reshape(-1).to(torch.float64)
    for place, kind in zip(rows.PLACES, (flat.isnan(), flat == torch.inf, flat == -torch.inf), strict=True):
        positions = kind.nonzero()
        assert getattr(found["triton"][name], place) == (int(positions[0]) if len(positions) else -1)


@pytest.mark.parametrize("name", device_cases.HISTOGRAMS)
def test_histograms_count_by_sign_and_power_of_two(found: Any, name: str) -> None:
    expected = [0] * rows.N_HISTOGRAM_WORDS
    for value in CASES[name].reshape(-1).to(torch.float64).tolist():
        if value != 0 and math.isfinite(value):
            exponent = math.frexp(value)[1] - 1
            place = min(max(exponent + 40, 0), rows.N_BINS - 1)
            expected[place + (rows.N_BINS if value < 0 else 0)] += 1
    for form in FORMS:
        assert list(found[form][name].histogram) == expected


@pytest.mark.parametrize("name", device_cases.TOGETHER)
def test_tensors_that_share_launches_keep_their_rows(found: Any, name: str) -> None:
    alone = found["triton"][name]._replace(histogram=())
    # As text, because NaN is there as well.
    assert repr(found["together"][name]) == repr(alone)


# The core's test of its own function has the same.
HASHES = {
    0: (0x0000_0000_0000_0000, 0x0000_0000_0000_0000),
    1000: (0xFE04_617B_E88B_037C, 0x7003_793A_9FDE_C666),
    8197: (0x05C1_1BDE_1459_9CA2, 0x3FA1_A51E_2878_5F88),
    100_001: (0x92FD_63FB_4F9B_CDD9, 0x41C2_A9A0_7AC8_726D),
}


def reduced(tensors: list[torch.Tensor]) -> list[rows.Row]:
    """Rows that the reducer of the CPU computes."""
    words = torch.full((len(tensors), rows.N_WORDS), 12_345_678, dtype=torch.int64)
    reducer.Reducer(torch.device("cpu")).reduce(tensors, words)
    return [rows.decode(row) for row in words.tolist()]


@pytest.mark.parametrize("n_bytes", HASHES)
def test_the_hash_is_that_of_the_core(n_bytes: int) -> None:
    pattern = (torch.arange(n_bytes) * 131 % 251).to(torch.uint8)
    (row,) = reduced([pattern])
    assert (row.hash_low, row.hash_high) == HASHES[n_bytes]


def test_the_hash_is_of_bytes_in_order() -> None:
    x = torch.arange(40_000, dtype=torch.float32).view(200, 200)
    same, turned, bits = reduced([x.clone(), x.t(), x.view(torch.int32)])
    assert same.hash_low == bits.hash_low != turned.hash_low
    assert turned.hash_low == reduced([x.t().contiguous()])[0].hash_low


def test_segments_are_joined() -> None:
    # More than the plain form looks at in one go, the mean far from the spread.
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(3 * 2**20 + 11, dtype=torch.float64, generator=generator) + 1000
    x[2**21] = torch.nan
    for view in (x, x[:1].expand(2**20 * 3), x.view(-1, 1)[5:].t()):
        (row,) = reduced([view])
        values = view.reshape(-1)
        values = values[~values.isnan()]
        assert row.n_nan == view.numel() - values.numel()
        assert row.first_nan == (-1 if not row.n_nan else int(view.reshape(-1).isnan().nonzero()[0]))
        assert row.mean == pytest.approx(float(values.mean()), rel=1e-12)
        assert row.std == pytest.approx(float(values.std(correction=0)), rel=1e-9, abs=1e-9)
        assert row.l2 == pytest.approx(float(values.square().sum().sqrt()), rel=1e-12)


@pytest.mark.parametrize(
    "tensor, reason",
    [
        (torch.zeros(2, dtype=torch.complex64), "dtype complex64"),
        (torch.zeros(2).to_sparse(), "form sparse_coo"),
        (torch.zeros(2, device="meta"), "no memory"),
        (torch.zeros(2, dtype=torch.complex64).conj().imag, "form negative"),
        (torch.zeros(2, 2, 2, 2, 2, 1).permute(4, 3, 2, 1, 0, 5).expand(2, 2, 2, 2, 2, 9), "form expanded"),
        (torch.quantize_per_tensor(torch.zeros(2), 1.0, 0, torch.qint8), "dtype qint8"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_has_no_numbers_is_told(tensor: torch.Tensor, reason: str) -> None:
    assert not reducer.supports(tensor)
    assert reducer.reason_against(tensor) == reason
    with pytest.raises(ValueError, match=reason):
        reduced([tensor])


def test_rows_of_another_form_are_refused() -> None:
    cpu = reducer.Reducer(torch.device("cpu"))
    wrong = (torch.zeros(1, rows.N_WORDS), torch.zeros(1, 5, dtype=torch.int64), torch.zeros(21, dtype=torch.int64))
    for words in wrong:
        with pytest.raises(ValueError, match="rows: "):
            cpu.reduce([torch.zeros(3)], words)
    with pytest.raises(ValueError, match="2 rows"):
        cpu.reduce([torch.zeros(3)] * 2, torch.zeros(1, rows.N_WORDS, dtype=torch.int64))


class Seen(TorchDispatchMode):
    """Counts operators."""

    n_operators = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.n_operators += 1
        return func(*args, **(kwargs or {}))


def test_nobody_notices() -> None:
    x = torch.randn(100, requires_grad=True)
    state = torch.get_rng_state()
    words = torch.zeros((1, rows.N_WORDS), dtype=torch.int64)
    cpu = reducer.Reducer(torch.device("cpu"))
    version = x._version
    with Seen() as seen:
        cpu.reduce([x], words)
    assert seen.n_operators == 0
    assert words[0, 0] == 100 and not words.requires_grad and x._version == version and x.grad is None
    assert torch.equal(torch.get_rng_state(), state)


class Unasked(TorchDispatchMode):
    """Refuses what waits for a device: reading a number, finding elements, copying between devices."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        assert name not in ("aten::_local_scalar_dense", "aten::nonzero", "aten::lift_fresh"), name
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", device_cases.DTYPES, ids=str)
def test_plain_operators_do_not_wait(dtype: torch.dtype) -> None:
    x = torch.zeros(300, dtype=torch.uint8).view(torch.bool if dtype is torch.bool else torch.uint8)[:288].view(dtype)
    with Unasked():
        torch_form.row(x, has_histogram=True)
        torch_form.row(x.view(-1, 4).t(), has_histogram=False)


def test_rows_do_not_depend_on_neighbours() -> None:
    tensors = [torch.randn(n) for n in (3, 0, 500)] + [torch.arange(7), torch.ones(2, 2).t()]
    together = reduced(tensors)
    for tensor, row in zip(tensors, together, strict=True):
        assert repr(reduced([tensor])[0]) == repr(row)


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="21 words, or 149; not 20"):
        rows.decode([0] * 20)


@pytest.fixture(scope="session")
def launched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Launches of a program, on a device that is not there."""
    cache = str(tmp_path_factory.mktemp("kernels"))
    program = [sys.executable, "-W", "ignore", str(Path(device_cases.__file__).with_name("device_launches.py"))]
    done = subprocess.run(program, check=True, capture_output=True, env={**os.environ, "TRITON_CACHE_DIR": cache})
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_small_tensors_share_a_launch_and_large_ones_take_two(launched: dict[str, Any]) -> None:
    first, again = launched["launches"][:5], launched["launches"][5:]
    assert [(kernel, n) for kernel, n, _ in first] == [
        ("reduce_parts", 128),
        ("join_parts", 1),
        ("reduce_parts", 1),
        ("join_parts", 1),
        ("reduce_small", 4),
    ]
    parts, join, strided, _, small = (numbers for _, _, numbers in first)
    assert parts[1:4] == ["large", 1 << 20, 16] and strided[1:3] == ["strided", 1200]
    # The third row, of 128 partial results and 4 MiB.
    assert (join[0], join[1], join[3], join[4]) == ("rows", 2 * rows.N_WORDS, 128, 4 << 20)
    assert join[2] == parts[0]
    addresses, sizes, places = small[1:9], small[9:17], small[17:25]
    assert small[0] == "rows" and addresses[:2] == ["small", "one"] and sizes[:4] == [1000, 1, 72, 72]
    assert places[:4] == [i * rows.N_WORDS for i in (0, 1, 4, 5)]
    assert len(set(addresses[:4])) == 4
    # Compiled kernels are taken the second time, with the same arguments but for memory that is allocated again.
    assert [(kernel, n) for kernel, n, _ in again] == [(kernel, n) for kernel, n, _ in first]


def test_compiled_kernels_keep_subnormal_numbers(launched: dict[str, Any]) -> None:
    assert launched["flushes"] is False
