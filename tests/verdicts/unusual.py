"""Models whose outputs are unusual: an input, a value that is read inside, empty, scalar, integers, text, only NaN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import changes
import networks
import numpy as np
from case import Case, Pair, Truth
from networks import node
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper

SET = "unusual"
ENGINES = ("tract", "onnxruntime")
FORMS = ("diff", "native", "acl", "mindspore", "statistics")
FLOAT, INT, INT32, HALF, BOOL, TEXT = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.INT32,
    TensorProto.FLOAT16,
    TensorProto.BOOL,
    TensorProto.STRING,
)

random = np.random.default_rng(11)
WEIGHT = random.standard_normal((8, 8)).astype(np.float32)
TABLE = random.standard_normal((10, 8)).astype(np.float32)

SOUND = Truth(exits=(0,))
INCOMPLETE = Truth(exits=(4,))


@dataclass(frozen=True)
class Unusual:
    """A pair, the right verdict, and where it can be run."""

    kind: str
    target: ModelProto
    golden: ModelProto
    truth: Truth
    engines: tuple[str, ...] = ENGINES
    forms: tuple[str, ...] = FORMS
    options: tuple[str, ...] = ()


def _fault(*outputs: str, says: str = "", culprits: tuple[str, ...] = ()) -> Truth:
    return Truth(exits=(1,), outputs=outputs, says=says, culprits=culprits)


def _model(
    nodes: list[NodeProto],
    outputs: dict[str, int],
    inputs: dict[str, tuple[int, ...]] | None = None,
    **weights: NDArray,
) -> ModelProto:
    return networks.model(nodes, inputs or {"x": (4, 8)}, outputs, {"w": WEIGHT, **weights})


PRODUCT = [node("MatMul", "x w", "a", "mm")]


def _pairs() -> Iterator[Unusual]:
    both = {"y": FLOAT, "z": FLOAT}
    yield Unusual(
        "equal outputs exchanged",
        _model([*PRODUCT, node("Relu", "a", "y", "r1"), node("Relu", "a", "z", "r2")], both),
        _model([*PRODUCT, node("Relu", "a", "z", "r1"), node("Relu", "a", "y", "r2")], both),
        SOUND,
    )
    inner = [*PRODUCT, node("Relu", "a", "y", "relu"), node("Exp", "y", "z", "exp")]
    yield Unusual("output that is read inside", _model(inner, both), _model(inner, both), SOUND)
    yield Unusual("output that is read inside is lost", _model(inner, {"z": FLOAT}), _model(inner, both), _fault("y"))
    yield from _inputs_and_constants()
    yield from _quantised()
    yield from _parts()
    yield from _numbers()
    yield from _weights()
    yield from _masks()
    yield from _orders()
    yield from _normalised()
    yield from _resized()
    split = [*PRODUCT, node("Split", "a", "y z", "split", axis=1)]
    other = [*PRODUCT, node("Split", "a", "z y", "split", axis=1)]
    yield Unusual(
        "split exchanged",
        _model(other, both),
        _model(split, both),
        _fault("y", "z", says="exchanged", culprits=("split",)),
    )


def _quantised() -> Iterator[Unusual]:
    """A model of coarse steps next to floats, without a culprit."""
    nodes = [
        node("QuantizeLinear", "x scale zero", "q", "quantise"),
        node("DequantizeLinear", "q scale zero", "r", "dequantise"),
        node("MatMul", "r w", "y", "mm"),
    ]
    coarse = _model(nodes, {"y": FLOAT}, scale=np.float32(0.05), zero=np.uint8(0))
    fine = _model([node("MatMul", "x w", "y", "mm")], {"y": FLOAT})
    apart = Truth(exits=(1,), outputs=("quantise", "dequantise", "mm"), says="QUANTISED: outputs .* % apart")
    # Statistics do not show which operator adds most.
    yield Unusual("quantised", coarse, fine, apart, forms=FORMS[:-1])
    accepted = Truth(exits=(0,))
    yield Unusual("quantised within a limit", coarse, fine, accepted, options=("--limit", "0.2"))
    yield from _faults_of_quantised()


def _faults_of_quantised() -> Iterator[Unusual]:
    """Codes that are read as others than were written, and an operator too many among quantised ones."""
    product, again = node("MatMul", "x w", "a", "mm"), node("MatMul", "b v", "y", "again")
    fine = _model([product, node("Relu", "a", "b", "relu"), again], {"y": FLOAT}, v=WEIGHT.T)

    def quantised(relu: list[NodeProto], **parameters: NDArray) -> ModelProto:
        codes = {name: np.float32(0.05) for name in ("ws", "rs")} | {name: np.uint8(3) for name in ("wz", "rz")}
        written = node("QuantizeLinear", "r ws wz", "q", "quantise")
        read = node("DequantizeLinear", "q rs rz", "b", "dequantise")
        return _model([product, *relu, written, read, again], {"y": FLOAT}, v=WEIGHT.T, **(codes | parameters))

    relu = [node("Relu", "a", "r", "relu")]
    codes = ("quantise", "dequantise")
    scale = _fault(*codes, says="scale differs from that of", culprits=codes)
    yield Unusual("codes read with another scale", quantised(relu, rs=np.float32(0.08)), fine, scale)
    zero = _fault(*codes, says="zero point differs from that of", culprits=codes)
    yield Unusual("codes written with another zero point", quantised(relu, wz=np.uint8(40)), fine, zero)
    factor = [node("Relu", "a", "s", "relu"), node("Mul", "s factor", "r", "factor")]
    more = quantised(factor, factor=np.float32(1.3))
    yield Unusual("operator inserted among quantised ones", more, fine, _fault("factor", culprits=("factor",)))


def _parts() -> Iterator[Unusual]:
    """Values from inside of what is one operator on the golden side, and operators behind all that agrees."""
    bias = np.linspace(-1, 1, 8).astype(np.float32)
    golden = [node("Gemm", "x w b", "c", "gemm"), node("Relu", "c", "r", "relu"), node("Add", "r c", "y", "sum")]
    parts = [node("MatMul", "x w", "m", "mm"), node("Add", "m b", "c", "add"), node("Add", "r c", "y", "sum")]
    one = _model(golden, {"y": FLOAT}, b=bias)
    sound = _model([*parts[:2], node("Relu", "c", "r", "relu"), parts[2]], {"y": FLOAT}, b=bias)
    yield Unusual("parts of a fused operator", sound, one, SOUND)
    wrong = _model([*parts[:2], node("Relu", "m", "r", "relu"), parts[2]], {"y": FLOAT}, b=bias)
    yield Unusual("reads a part of a fused operator", wrong, one, _fault("y", culprits=("relu",)))
    chain = [node("Sin", f"s{k - 1}" if k else "a", f"s{k}", f"sin_{k}") for k in range(20)]
    end = [node("Relu", "c", "r", "relu"), node("MatMul", "r w", "y", "end")]
    whole = _model([*PRODUCT, *chain, node("Add", "a s19", "c", "add"), *end], {"y": FLOAT})
    lost = _model([*PRODUCT, node("Relu", "a", "r", "relu"), end[1]], {"y": FLOAT})
    missing = _fault("add", says="the target has no such operator", culprits=("add", "relu"))
    yield Unusual("many operators lost", lost, whole, missing, forms=FORMS[:2])
    more = _model([*PRODUCT, node("Neg", "a", "y", "planted")], {"y": FLOAT})
    fewer = _model([node("MatMul", "x w", "y", "mm")], {"y": FLOAT})
    yield Unusual("operator inserted before the output", more, fewer, _fault("y", culprits=("planted",)))


def _inputs_and_constants() -> Iterator[Unusual]:
    inputs = {"x": (4, 8), "u": (4, 8)}
    nodes = [*PRODUCT, node("Add", "a u", "y", "add")]
    same = _model(nodes, {"y": FLOAT, "u": FLOAT}, inputs)
    yield Unusual("input as it is", same, same, SOUND)
    yield Unusual("another input as it is", _model(nodes, {"y": FLOAT, "x": FLOAT}, inputs), same, _fault("u"))
    unread = _model(PRODUCT, {"a": FLOAT, "u": FLOAT}, inputs)
    yield Unusual("input that nothing reads", unread, unread, SOUND)
    constant = _model(PRODUCT, {"a": FLOAT, "k": FLOAT}, k=np.ones(3, np.float32))
    # Nothing reads it, so that no dump shows it.
    yield Unusual("constant that nothing reads", constant, constant, INCOMPLETE)


def _numbers() -> Iterator[Unusual]:
    one = {"y": FLOAT}
    total = [*PRODUCT, node("ReduceSum", "a", "y", "sum", keepdims=0)]
    yield Unusual("scalar", _model(total, one), _model(total, one), SOUND)
    vector = [*PRODUCT, node("ReduceSum", "a", "s", "sum", keepdims=0), node("Reshape", "s shape", "y", "reshape")]
    yield Unusual(
        "vector of one for a scalar",
        _model(vector, one, shape=np.array([1], np.int64)),
        _model(total, one),
        _fault("y", says="shape", culprits=("reshape",)),
    )
    choice = [*PRODUCT, node("ArgMax", "a", "y", "choice", axis=1)]
    narrow = [
        *PRODUCT,
        node("ArgMax", "a", "c", "choice", axis=1),
        node("Cast", "c", "y", "narrow", to=INT32),
    ]
    yield Unusual("integers", _model(choice, {"y": INT}), _model(choice, {"y": INT}), SOUND)
    yield Unusual("narrower integers", _model(narrow, {"y": INT32}), _model(choice, {"y": INT}), SOUND)
    worst = [*PRODUCT, node("ArgMin", "a", "y", "choice", axis=1)]
    yield Unusual(
        "other integers", _model(worst, {"y": INT}), _model(choice, {"y": INT}), _fault("y", culprits=("choice",))
    )
    above = [*PRODUCT, node("Greater", "a zero", "y", "above")]
    mask = _model(above, {"y": BOOL}, zero=np.float32(0))
    yield Unusual("booleans", mask, mask, SOUND)
    nothing = [*PRODUCT, node("Slice", "a zero zero", "y", "slice")]
    empty = _model(nothing, one, zero=np.array([0], np.int64))
    yield Unusual("empty", empty, empty, SOUND)
    undefined = [*PRODUCT, node("Sqrt", "minus", "s", "sqrt"), node("Mul", "a s", "y", "mul")]
    only_nan = _model(undefined, one, minus=np.float32(-1))
    yield Unusual("nothing but NaN", only_nan, only_nan, INCOMPLETE)
    half = [node("Cast", "x", "h", "to_half", to=HALF), node("MatMul", "h w", "y", "mm")]
    full = [node("MatMul", "x w", "y", "mm")]
    yield Unusual(
        "output in float16",
        networks.model(half, {"x": (4, 8)}, {"y": HALF}, {"w": WEIGHT.astype(np.float16)}),
        _model(full, one),
        SOUND,
    )
    half = [half[0], node("MatMul", "h w", "s", "mm"), node("Softmax", "s", "y", "softmax", axis=1)]
    full = [node("MatMul", "x w", "s", "mm"), node("Softmax", "s", "y", "softmax", axis=0)]
    yield Unusual(
        "attribute in another dtype",
        _model(full, one),
        networks.model(half, {"x": (4, 8)}, {"y": HALF}, {"w": WEIGHT.astype(np.float16)}),
        _fault("y", says="axis is", culprits=("softmax",)),
    )
    text = [*PRODUCT, node("Cast", "a", "y", "print", to=TEXT)]
    other = [*PRODUCT, node("Neg", "a", "n", "neg"), node("Cast", "n", "y", "print", to=TEXT)]
    listed = {"y": TEXT, "a": FLOAT}
    runs = {"engines": ("onnxruntime",), "forms": ("diff", "native", "acl")}
    yield Unusual("text", _model(text, listed), _model(text, listed), SOUND, **runs)
    yield Unusual("other text", _model(other, listed), _model(text, listed), _fault("y", culprits=("neg",)), **runs)
    loop = helper.make_node("LSTM", ["t", "lw", "lr"], ["", "y"], name="lstm", hidden_size=3)
    state = networks.model(
        [loop],
        {"t": (2, 4, 8)},
        one,
        {
            "lw": random.standard_normal((1, 12, 8)).astype(np.float32),
            "lr": random.standard_normal((1, 12, 3)).astype(np.float32),
        },
    )
    yield Unusual("first output left out", state, state, SOUND)


def _masks() -> Iterator[Unusual]:
    """Scores next to the numbers of a mask, in whose norms they vanish."""

    def attention(lowest: float, axis: int = -1, factor: float = 1) -> ModelProto:
        nodes = [
            node("MatMul", "x k", "s", "scores"),
            node("Add", "s mask", "a", "masked"),
            node("Softmax", "a", "p", "softmax", axis=axis),
            node("MatMul", "p w", "y", "mm"),
        ]
        key = WEIGHT / 4
        key[:, 1] *= factor
        mask = np.triu(np.full((4, 8), lowest, np.float32), 3)
        return _model(nodes, {"y": FLOAT}, k=key, mask=mask)

    lowest = float(np.finfo(np.float32).min)
    golden = attention(lowest)
    changed = _fault("y", "k", says="`k` differs", culprits=("scores",))
    for kind, number in (("weight before a mask", -1e4), ("weight before the lowest numbers", lowest)):
        yield Unusual(kind, attention(number, factor=1.6), attention(number), changed)
    yield Unusual("mask of another number", attention(-1e4), golden, SOUND)
    wrong = _fault("y", culprits=("softmax",))
    yield Unusual("axis behind a mask of another number", attention(-1e4, axis=0), golden, wrong)
    rows, columns = (_masked_rows(axis) for axis in (1, 0))
    moved = _fault("unsqueeze", says="axis", culprits=("unsqueeze",))
    yield Unusual("mask along another axis", rows, columns, moved)


def _orders() -> Iterator[Unusual]:
    """Elements in another order, which statistics show no sooner than what is computed from them."""

    def turned(turn: NodeProto | None, **constants: NDArray) -> ModelProto:
        views = [turn] if turn else []
        rest = [node("Relu", "t" if turn else "a", "r", "relu"), node("MatMul", "r w", "y", "again")]
        return _model([*PRODUCT, *views, *rest], {"y": FLOAT}, {"x": (8, 8)}, **constants)

    golden = turned(node("Transpose", "a", "t", "turn", perm=[1, 0]))
    lacks = _fault("turn", says="the target has no such operator", culprits=("turn",))
    yield Unusual("transposition is missing", turned(None), golden, lacks, forms=FORMS[-1:])
    more = _fault("turn", says="the golden side has no such operator", culprits=("turn",))
    yield Unusual("transposition inserted", golden, turned(None), more, forms=FORMS[-1:])
    renamed = changes.with_nodes_renamed(golden)
    more = _fault("Transpose_1", says="the golden side has no such operator", culprits=("Transpose_1",))
    yield Unusual("transposition among other names", renamed, turned(None), more, forms=FORMS[:2])
    kept, exchanged = (turned(node("Einsum", "a", "t", "sum", equation=f"ij->{to}")) for to in ("ij", "ji"))
    folded = turned(node("Reshape", "a shape", "t", "turn"), shape=np.array([8, 8], np.int64))
    yield Unusual("view for a transposition", folded, golden, _fault("turn", culprits=("turn",)), forms=FORMS[-1:])
    letters = _fault("sum", says="equation is", culprits=("sum",))
    yield Unusual("letters exchanged", exchanged, kept, letters, forms=FORMS[-1:])


def _normalised() -> Iterator[Unusual]:
    """Groups that one program normalises in one operator, and another in views of other shapes."""
    scale, shift = np.linspace(0.5, 2, 8).astype(np.float32), np.linspace(-1, 1, 8).astype(np.float32)
    end = [node("Relu", "c", "r", "relu"), node("MatMul", "r k", "y", "last")]

    def model(nodes: list[NodeProto], **constants: NDArray) -> ModelProto:
        kernel = WEIGHT[:6, :6]
        made = _model(nodes, {"y": FLOAT}, {"x": (1, 8, 6)}, k=kernel, v=kernel.T, **constants)
        made.opset_import[0].version, made.ir_version = 21, 10
        return made

    def in_parts(first: str, second: str) -> ModelProto:
        nodes = [
            node("MatMul", "x v", "a", "product"),
            node("Reshape", "a wide", "g", "groups"),
            node("InstanceNormalization", f"g {first} {second}", "n", "normalise"),
            node("Reshape", "n flat", "f", "back"),
            node("Mul", "f s", "m", "scale"),
            node("Add", "m b", "c", "shift"),
            *end,
        ]
        shapes = {"wide": np.array([1, 2, 24], np.int64), "flat": np.array([1, 8, 6], np.int64)}
        affine = {"s": scale.reshape(1, 8, 1), "b": shift.reshape(1, 8, 1)}
        return model(nodes, one=np.ones(2, np.float32), zero=np.zeros(2, np.float32), **shapes, **affine)

    whole = [node("MatMul", "x v", "a", "mm"), node("GroupNormalization", "a s b", "c", "norm", num_groups=2)]
    golden = model([*whole, *end], s=scale, b=shift)
    yield Unusual("normalisation in parts", in_parts("one", "zero"), golden, SOUND, forms=FORMS[:2])
    # All that it makes is one number.
    wrong = _fault("normalise", culprits=("normalise",))
    yield Unusual("scale and shift exchanged", in_parts("zero", "one"), golden, wrong, forms=FORMS[:2])


def _resized() -> Iterator[Unusual]:
    """Inputs that differ by rounding, and an operator whose steps are not in its values."""

    def resized(mode: str, factor: float) -> ModelProto:
        nodes = [
            *PRODUCT,
            node("Reshape", "a image", "i", "reshape"),
            helper.make_node("Resize", ["i", "", "", "sizes"], ["y"], name="resize", mode=mode),
        ]
        sizes = {"image": np.array([1, 2, 4, 4], np.int64), "sizes": np.array([1, 2, 8, 8], np.int64)}
        return networks.model(nodes, {"x": (4, 8)}, {"y": FLOAT}, {"w": WEIGHT * np.float32(factor), **sizes})

    golden = resized("nearest", 1)
    mode = _fault("resize", says="ause at Resize", culprits=("resize",))
    yield Unusual("other mode of interpolation", resized("linear", 1 + 1e-6), golden, mode, forms=FORMS[:2])


def _masked_rows(axis: int) -> ModelProto:
    """Scores with a vector of masked positions, which has the same elements along either axis."""
    nodes = [
        node("MatMul", "x k", "s", "scores"),
        node("Unsqueeze", "hidden axis", "u", "unsqueeze"),
        node("Mul", "u lowest", "m", "lower"),
        node("Add", "s m", "a", "masked"),
        node("Softmax", "a", "p", "softmax", axis=-1),
        node("MatMul", "p w", "y", "mm"),
    ]
    hidden = np.array([0, 0, 0, 1, 0, 1, 0, 0], np.float32)
    constants = {"hidden": hidden, "lowest": np.float32(-3), "axis": np.array([axis], np.int64)}
    return _model(nodes, {"y": FLOAT}, {"x": (8, 8)}, k=WEIGHT / 4, **constants)


def _weights() -> Iterator[Unusual]:
    nodes = [node("Gather", "table rows", "g", "embed"), node("MatMul", "g w", "y", "mm")]
    rows = np.array([0, 1, 1], np.int64)

    def embedding(change: float | None) -> ModelProto:
        table = TABLE.copy()
        if change is not None:
            table[9, 3] = change
        return _model(nodes, {"y": FLOAT}, table=table, rows=rows)

    golden = embedding(None)
    yield Unusual("weight that nothing reads", embedding(7), golden, SOUND)
    yield Unusual(
        "infinite weight that nothing reads",
        embedding(np.inf),
        golden,
        Truth(exits=(1,), outputs=("table",), says="NaN or infinite", culprits=("embed",)),
    )


def cases() -> Iterator[Case]:
    for pair in _pairs():
        for engine in pair.engines:
            for form in pair.forms:
                make = partial(Pair, pair.target, pair.golden, pair.options)
                yield Case(SET, "small", pair.kind, engine, form, pair.truth, make)
