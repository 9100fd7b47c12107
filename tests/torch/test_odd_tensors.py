"""Tensors whose elements do not lie in memory in rows, or whose dtype nothing else has."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path

import dumps
import models
import opscope
import opscope.torch
import pytest
import torch
from opscope.torch import _forms
from torch import Tensor
from torch.fx import Graph, GraphModule

pytestmark = pytest.mark.filterwarnings("ignore")


def pass_on(x: Tensor) -> Tensor:
    """An operator that changes nothing, so that any tensor can be shown."""
    return x


def graph_module(function: Callable) -> GraphModule:
    """A graph of one operator, written by hand: torch compiles few of the tensors here."""
    graph = Graph()
    graph.output((graph.call_function(function, (graph.placeholder("x"),)),))
    return GraphModule(torch.nn.Module(), graph)


def dumped(tmp_path: Path, tensor: Tensor, **options: object) -> tuple[dict, list | None]:
    """The report, and the tensors that the operator read, if any. Its result must be the same."""
    backend = opscope.torch.backend(tmp_path, **options, form="acl")
    run = backend.compile_aten(graph_module(pass_on))
    assert run([tensor])[0] is tensor
    report = backend.finish()
    assert report["first_fault"] is None and report["first_error"] is None
    if report["n_files"] == 0:
        return report, None
    (graph,) = dumps.graphs(report["root"])
    content = graph[0]["pass_on"].data()
    read, given = ([(t.data_type, t.shape, t.payload) for t in side] for side in (content.inputs, content.outputs))
    assert read == given
    return report, [one[1:] for one in read]


def plain(*parts: Tensor) -> list:
    return [(tuple(part.shape), models.bits(part)) for part in parts]


def matrix() -> Tensor:
    return torch.tensor([[0.0, 1.5, 0.0, -2.0], [3.0, 0.0, 0.0, 0.0], [0.0] * 4, [0.25, 0.0, 7.0, 0.0]])


COMPRESSED = {
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}


def test_sparse_with_coordinates(tmp_path) -> None:
    x = matrix().to_sparse()
    report, read = dumped(tmp_path, x)
    assert report["unseen"] == {} and read == plain(x._indices(), x._values())


def test_sparse_that_is_not_coalesced(tmp_path) -> None:
    indices = torch.tensor([[0, 0, 2]])
    x = torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0, 3.0]), (4,))
    _, read = dumped(tmp_path, x)
    assert read == plain(indices, torch.tensor([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("form", COMPRESSED)
def test_compressed_sparse(tmp_path, form: str) -> None:
    x = COMPRESSED[form](matrix())
    report, read = dumped(tmp_path, x)
    by_row = form.endswith("sr")
    outer, inner = (x.crow_indices(), x.col_indices()) if by_row else (x.ccol_indices(), x.row_indices())
    assert report["unseen"] == {} and read == plain(outer, inner, x.values())


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8, torch.qint32], ids=str)
def test_quantised(tmp_path, dtype: torch.dtype) -> None:
    x = torch.quantize_per_tensor(matrix(), 0.125, 3, dtype)
    _, read = dumped(tmp_path, x)
    assert read == plain(x.int_repr(), torch.tensor(0.125, dtype=torch.float64), torch.tensor(3))


def test_quantised_by_channel(tmp_path) -> None:
    scales, zero_points = torch.tensor([0.5, 0.25, 1.0, 2.0]), torch.tensor([0, 1, 2, 3])
    x = torch.quantize_per_channel(matrix(), scales, zero_points, 1, torch.qint8)
    _, read = dumped(tmp_path, x)
    assert read == plain(x.int_repr(), scales.double(), zero_points, torch.tensor(1))


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
def test_mkldnn(tmp_path) -> None:
    _, read = dumped(tmp_path, matrix().to_mkldnn())
    assert read == plain(matrix())


def test_nested_with_strides(tmp_path) -> None:
    x = torch.nested.nested_tensor([matrix(), matrix()[:2]])
    _, read = dumped(tmp_path, x)
    sizes, strides = torch.tensor([[4, 4], [2, 4]]), torch.tensor([[4, 1], [4, 1]])
    assert read == plain(torch.cat([matrix(), matrix()[:2]]).flatten(), sizes, strides, torch.tensor([0, 16]))


def test_jagged(tmp_path) -> None:
    x = torch.nested.nested_tensor([matrix(), matrix()[:2]], layout=torch.jagged)
    _, read = dumped(tmp_path, x)
    assert read == plain(torch.cat([matrix(), matrix()[:2]]), torch.tensor([0, 4, 6]))


def test_parts_have_a_row_each(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, data="stats", form="acl")
    backend.compile_aten(graph_module(pass_on))([matrix().to_sparse()])
    (graph,) = dumps.graphs(backend.finish()["root"])
    rows = graph[0]["pass_on"].rows()
    assert len(rows) == 4 and [row["Data Type"] for row in rows] == ["DT_INT64", "DT_FLOAT"] * 2


def test_parts_of_an_argument_beside_a_layer(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, layers="pass_on", form="acl")
    x = matrix().to_sparse()
    backend.compile_aten(graph_module(pass_on))([x])
    (graph,) = dumps.graphs(backend.finish()["root"])
    assert set(graph[0]) == {"pass_on", "x_indices", "x_values"}
    (values,) = graph[0]["x_values"].data().outputs
    assert values.payload == models.bits(x._values())


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this torch has no floats of four bits")
@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_two_floats_in_a_byte(tmp_path, data: str) -> None:
    packed = torch.tensor([[0x10, 0x32], [0x76, 0xFE]], dtype=torch.uint8)
    x = packed.view(torch.float4_e2m1fn_x2)
    backend = opscope.torch.backend(tmp_path, data=data, form="acl")
    backend.compile_aten(graph_module(pass_on))([x])
    report = backend.finish()
    (graph,) = dumps.graphs(report["root"])
    assert report["unseen"] == {}
    if data == "stats":
        # The table has no statistics of numbers of less than a byte.
        row = graph[0]["pass_on"].rows()[0]
        assert (row["Max Value"], row["Min Value"], row["Shape"]) == ("", "", "2x4"), row
    else:
        (read,) = graph[0]["pass_on"].data().inputs
        assert (read.shape, read.payload) == ((2, 4), bytes([0x10, 0x32, 0x76, 0xFE]))


OTHER_DTYPES = [
    *(f"{sign}int{n}" for n in range(1, 8) for sign in ("", "u")),
    "bits8", "bits1x8", "bits2x4", "bits4x2", "bits16", "float8_e4m3fnuz", "float8_e5m2fnuz", "bcomplex32",
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in OTHER_DTYPES if hasattr(torch, name)])
def test_dtypes_that_nothing_else_has_are_counted_by_name(tmp_path, name: str) -> None:
    report, read = dumped(tmp_path, torch.zeros(4, dtype=torch.uint8).view(getattr(torch, name)))
    assert read is None and report["unseen"] == {f"dtype {name}": 2}
    assert report["dropped"]["not_shown"] == 2


def test_four_bits_that_are_quantised_are_counted(tmp_path) -> None:
    x = torch.quantize_per_channel(matrix(), torch.ones(4), torch.zeros(4), 0, torch.quint4x2)
    report, read = dumped(tmp_path, x)
    assert read is None and report["unseen"] == {"dtype quint4x2": 2}


def freed() -> Tensor:
    x = torch.zeros(4)
    x.untyped_storage().resize_(0)
    return x


def fake() -> Tensor:
    from torch._subclasses import FakeTensorMode

    return FakeTensorMode().from_tensor(matrix())


class Renamed(Tensor):
    """Only adds a name, and what operators do with it is torch's own."""


def test_a_subclass_with_memory_of_the_usual_kind(tmp_path) -> None:
    report, read = dumped(tmp_path, matrix().t().as_subclass(Renamed))
    assert report["unseen"] == {} and read == plain(matrix().t())


NOTHING_THERE = {"no memory": [freed, lambda: matrix().to("meta")], "type FakeTensor": [fake]}


@pytest.mark.parametrize(("reason", "make"), [(r, make) for r, all_of in NOTHING_THERE.items() for make in all_of])
def test_no_elements_to_look_at(tmp_path, reason: str, make: Callable[[], Tensor]) -> None:
    report, read = dumped(tmp_path, make())
    assert read is None and report["unseen"] == {reason: 2}


STRIDED = {
    "a scalar": lambda: torch.tensor(3.5),
    "expanded": lambda: torch.arange(3.0).expand(4, 3),
    "overlapping": lambda: torch.arange(6.0).as_strided((4, 3), (1, 1)),
    "behind an offset": lambda: torch.arange(9.0)[5:].view(2, 2).t(),
    "conjugated": lambda: torch.randn(3, dtype=torch.complex64).conj(),
    "conjugated with an offset": lambda: torch.randn(6, dtype=torch.complex64).conj()[2:].imag,
    "negated": lambda: torch._neg_view(torch.arange(3.0)),
    "complex halves": lambda: torch.tensor([1 + 2j, -0.5j], dtype=torch.complex64).to(torch.complex32),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strides(tmp_path, name: str) -> None:
    x = STRIDED[name]()
    report, read = dumped(tmp_path, x)
    assert report["unseen"] == {} and read == plain(x)


def test_an_empty_tensor_has_no_file_and_is_no_loss(tmp_path) -> None:
    report, read = dumped(tmp_path, torch.zeros(0, 3))
    assert read is None and report["unseen"] == {} and report["n_dropped"] == 0


@pytest.mark.parametrize(
    ("transform", "reason"),
    [(torch.vmap, "form batched"), (lambda f: torch.func.grad(lambda x: f(x).sum()), "form functorch")],
)
def test_what_functorch_wraps_is_counted(tmp_path, transform: Callable, reason: str) -> None:
    backend = opscope.torch.backend(tmp_path, form="acl")
    run = backend.compile_aten(graph_module(torch.sin))
    found = transform(lambda x: run([x])[0])(matrix())
    assert found.shape == matrix().shape
    report = backend.finish()
    assert report["unseen"] == {reason: 2} and report["first_fault"] is None


def test_the_description_says_shapes(tmp_path) -> None:
    backend = opscope.torch.backend(tmp_path, form="acl")
    torch.compile(lambda x: x.sin(), backend=backend)(matrix())
    report = backend.finish()
    (path,) = (Path(report["root"]) / ".opscope/graphs").iterdir()
    graph = json.loads(path.read_text())
    assert graph["values"]["sin"] == {"dtype": "float32", "shape": [4, 4], "strides": [4, 1], "device": "cpu"}


def test_how_another_device_is_asked(monkeypatch) -> None:
    """Which tensors are copied; the copy itself is tested on a separate device below."""
    x = torch.ones(2, device="meta")
    assert _forms.parts(x, "no memory") is None
    monkeypatch.setattr(_forms, "_copied", lambda tensor: ([("", tensor, True)], True))
    assert _forms.parts(matrix(), "device") is None


DEVICE_PROGRAM = """
    import json, sys
    import torch
    torch.ops.load_library(sys.argv[1])
    torch.utils.rename_privateuse1_backend("other")
    torch._register_device_module("other", type("Module", (), {
        "is_available": staticmethod(lambda: True), "device_count": staticmethod(lambda: 2),
        "current_device": staticmethod(lambda: 1), "_is_in_bad_fork": staticmethod(lambda: False),
        "manual_seed_all": staticmethod(lambda seed: None),
    }))
    import opscope.torch
    from torch.fx.experimental.proxy_tensor import make_fx

    def function(x, y):
        return (x @ y).relu() + x.t()

    x, y = torch.randn(4, 4), torch.randn(4, 4)
    there = [x.to("other"), y.to("other")]
    graph_module = make_fx(function)(*there)
    for number, data in enumerate(("tensor", "stats")):
        backend = opscope.torch.backend(sys.argv[2 + number], data=data, form="acl")
        result = backend.compile_aten(graph_module)(list(there))
        assert result.device.type == "other" and torch.equal(result.cpu(), function(x, y))
        print(json.dumps(backend.finish()))
    torch.save([x, y], sys.argv[4])
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """The device of `other_device.cpp`."""
    if sys.platform != "linux" or shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    made = tmp_path_factory.mktemp("device") / "other_device.so"
    root = Path(torch.__file__).parent
    include = [f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"]
    source = str(Path(__file__).with_name("other_device.cpp"))
    linked = [f"-L{root}/lib", "-lc10", "-ltorch_cpu", "-ltorch"]
    flags = ["-std=c++20", "-O0", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    subprocess.run(["g++", *flags, *include, source, "-o", str(made), *linked], check=True, timeout=600)
    return made


def test_another_device(tmp_path, library) -> None:
    """A device whose memory only torch reads, in a separate process, for a device cannot be taken back."""
    whole, stats, inputs = tmp_path / "whole", tmp_path / "stats", tmp_path / "inputs.pt"
    command = [sys.executable, "-c", textwrap.dedent(DEVICE_PROGRAM), library, whole, stats, inputs]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    x, y = torch.load(inputs)
    # Two arguments and four results.
    for report in (first, second):
        assert report["unseen"] == {} and report["first_fault"] is None and report["n_copied_from_device"] == 6
        assert {place.name for place in Path(report["root"]).iterdir()} == {".opscope", "1"}
    (graph,) = dumps.graphs(first["root"], device=1)
    content = graph[0]["mm"].data()
    assert [(t.shape, t.payload) for t in content.inputs] == plain(x, y)
    assert [(t.shape, t.payload) for t in content.outputs] == plain(x @ y)
    assert [(t.shape, t.payload) for t in graph[0]["t"].data().outputs] == plain(x.t())


EAGER_PROGRAM = """
    for number, data in enumerate(("tensor", "stats")):
        with opscope.torch.eager(sys.argv[2 + number], data=data) as dump:
            result = function(*there)
        assert torch.equal(result.cpu(), function(x, y))
        print(json.dumps(dump.finish()))
    torch.save([x, y], sys.argv[4])
"""


def test_another_device_in_eager_mode(tmp_path, library) -> None:
    """Torch copies what is on a device without streams, and values are recognised there as well."""
    whole, stats, inputs = tmp_path / "whole", tmp_path / "stats", tmp_path / "inputs.pt"
    head = textwrap.dedent(DEVICE_PROGRAM.partition("    graph_module")[0])
    program = head + textwrap.dedent(EAGER_PROGRAM)
    command = [sys.executable, "-c", program, library, whole, stats, inputs]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    x, y = torch.load(inputs)
    for report in (first, second):
        assert report["unseen"] == {} and report["first_fault"] is None
        assert report["n_copied_from_device"] > 0 and report["n_reduced_on_device"] == 0
    found = {(one.name, one.side, one.slot): one for one in opscope.open(first["root"])}
    assert found["mm", "output", 0].numpy().tobytes() == (x @ y).numpy().tobytes()
    assert found["relu", "input", 0].numpy().tobytes() == (x @ y).numpy().tobytes()
    assert found["t", "output", 0].numpy().tobytes() == x.t().contiguous().numpy().tobytes()
    numbers = {(one.name, one.side, one.slot): one.statistics() for one in opscope.open(second["root"])}
    assert numbers["mm", "output", 0].max == float((x @ y).max())
    (path,) = Path(first["root"]).rglob("eager_0.json")
    relu = next(one for one in json.loads(path.read_text())["operators"] if one["op_name"] == "relu")
    assert relu["inputs"] == ["mm"]


def test_no_warning_comes_of_a_dump_of_odd_tensors(tmp_path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report, _ = dumped(tmp_path, torch.sparse_coo_tensor(torch.tensor([[1]]), torch.tensor([2.0]), (3,)))
    assert report["n_written"] == 4
