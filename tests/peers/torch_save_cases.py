"""Writes crates/store/tests/golden/torch_save: files as `torch.save` writes them, and what torch itself reads of them.

`hostile` holds pickles that are no plain data, made with Python's own module, and files that are damaged.
"""

import io
import json
import os
import pickle
import sys
import types
import warnings
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path

import torch
from torch import nn

GOLDEN = Path(__file__).parents[2] / "crates/store/tests/golden/torch_save"
# Names of dtypes here that are others there.
OTHER_NAMES = {"float8_e8m0fnu": "float8_e8m0"}
NUMBERS = "float16 float32 float64 bfloat16 uint8 uint16 uint32 uint64 int8 int16 int32 int64 complex64 complex128"
NARROW = "complex32 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"


def dtypes():
    values = torch.tensor([[1.5, -2.0, 3.25], [0.0, 100.0, -7.5]])
    tensors = {name: values.abs().to(getattr(torch, name)) for name in NUMBERS.split()}
    tensors |= {f"signed.{name}": values.to(getattr(torch, name)) for name in NUMBERS.split() if "uint" not in name}
    tensors |= {name: (values.abs() + 1).to(getattr(torch, name)) for name in NARROW.split()}
    return tensors | {"bool": values > 1}


def views():
    base = torch.arange(24.0).reshape(2, 3, 4)
    complex_ = torch.view_as_complex(torch.arange(12.0).reshape(2, 3, 2))
    return {
        "base": base,
        "transposed": base.transpose(0, 2),
        "row": base[1],
        "column": base[:, 1],
        "steps": base[:, ::2, 1::2],
        "expanded": base[0, 0, :1].expand(2, 3, 4),
        "single": base[1, 2, 3],
        "one_axis_of_one": base[:, :1, :].transpose(0, 1),
        "empty": torch.empty(0, 4),
        "empty_of_many": torch.empty(3, 0).t(),
        "image": torch.arange(24, dtype=torch.int16).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
        "overlapping": torch.arange(6, dtype=torch.int32).as_strided((4, 3), (1, 1)),
        "conjugate": complex_.conj(),
        "conjugate_transposed": complex_.mH,
        "negative": complex_.clone().conj().imag,
        "scalar": torch.tensor(2.5),
    }


def training():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    model[0].bias.note = "kept with the parameter"
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2])
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    parameters = [model[0].weight, model[0].bias, nn.Buffer(torch.ones(2))]
    return {
        "state_dict": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "lr_scheduler": scheduler.state_dict(),
        "parameters": parameters,
        "epoch": 3,
        "loss": 0.25,
        "best": None,
        "shape": torch.Size([2, 3]),
        "device": torch.device("cpu"),
        "dtype": torch.float16,
        "layout": torch.strided,
        "text": "größe",
    }


def plain():
    """Values of every kind around tensors."""
    shared = [torch.ones(1), torch.zeros(1)]
    return [
        {"conv1": {"input": (torch.ones(2), torch.ones(3)), "output": torch.ones(1)}},
        {1: torch.tensor(1), -2: torch.tensor(2), "": torch.tensor(3), "a.b": torch.tensor(4)},
        {"same": shared, "again": shared, "set": {1, 2}, "frozen": frozenset([3]), "bytes": b"ab\xff"},
        [None, True, 1 << 30, 1 << 40, 1 << 70, -(1 << 40), -3, 1.5, 1j, bytearray(b"x"), Counter("aab")],
        OrderedDict([("z", torch.ones(1)), ("größe", torch.ones(1))]),
        (),
    ]


def same_names():
    """Paths that are joined to one name."""
    return {"a": {"b": torch.ones(1), "c": [torch.ones(2)]}, "a.b": torch.ones(3), "a.c.0": torch.ones(4), "d": torch.ones(5)}


def unread():
    """Tensors that have no elements of their own, or others than plain ones, next to one that is read."""
    ones = torch.ones(2, 3)
    return {
        "plain": ones,
        "coo": ones.to_sparse(),
        "csr": ones.to_sparse_csr(),
        "meta": ones.to("meta"),
        "nested": torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
        "pairs": torch.arange(3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        "bits": torch.arange(3, dtype=torch.uint8).view(torch.bits8),
        "quint4x2": torch.quantize_per_channel(
            ones, torch.ones(2), torch.zeros(2), 0, torch.quint4x2
        ),
    }


class NpuTensor:
    """A tensor as torch_npu's sources save one of a device. There is none here, nor the package itself."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        function, (*args, _, _) = self.tensor.__reduce_ex__(2)
        assert function is torch._utils._rebuild_tensor_v2
        return rebuild_npu_tensor, (*args, False, OrderedDict(), 2)


def rebuild_npu_tensor(*args):
    return torch._utils._rebuild_tensor_v2(*args[:6])


def stand_in(module, **names):
    """A package of that name, with these names, until this program ends."""
    sys.modules[module] = types.ModuleType(module)
    for name, value in names.items():
        value.__module__, value.__name__, value.__qualname__ = module, name, name
        setattr(sys.modules[module], name, value)


def of_npu():
    stand_in("torch_npu")
    stand_in("torch_npu.utils")
    stand_in("torch_npu.utils.storage", _rebuild_npu_tensor=rebuild_npu_tensor)
    return {"weight": NpuTensor(torch.arange(6.0).reshape(2, 3).t())}


WORDS = {
    "coo": ("sparse tensor", [2, 3]),
    "csr": ("sparse tensor", [2, 3]),
    "meta": ("meta tensor", [2, 3]),
    "nested": ("nested tensor", None),
    "pairs": ("float4_e2m1fn_x2", [3]),
    "bits": ("bits8", [3]),
    "quint4x2": ("QUInt4x2Storage", [2, 3]),
}


def quantised():
    values = torch.tensor([[0.5, -1.0], [2.0, 3.0]])
    per_channel = torch.quantize_per_channel(values, torch.tensor([0.1, 0.2]), torch.tensor([0, 3]), 0, torch.qint8)
    kinds = {str(one).split(".")[1]: one for one in (torch.qint8, torch.quint8, torch.qint32)}
    tensors = {name: torch.quantize_per_tensor(values, 0.05, 2, kind) for name, kind in kinds.items()}
    return tensors | {"per_channel": per_channel, "transposed": tensors["qint8"].t()}


def facts(name, tensor):
    if name in WORDS and (tensor.layout != torch.strided or tensor.is_nested or tensor.dtype != torch.float32 or tensor.is_meta):
        word, shape = WORDS[name]
        return {"name": name, "dtype": word, "shape": shape, "values": ""}
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    values = bytes(dense.reshape(-1).view(torch.uint8).tolist())
    return {"name": name, "dtype": OTHER_NAMES.get(dtype, dtype), "shape": list(tensor.shape), "values": values.hex()}


def tensors(value, path=()):
    """Tensors by their paths."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            yield from tensors(item, (*path, position))


def name(path, others):
    joined = ".".join(str(step) for step in path)
    exact = "".join(f"[{json.dumps(step, ensure_ascii=False)}]" for step in path)
    is_alone = sum(".".join(map(str, other)) == joined for other in others) == 1
    return joined if joined and is_alone else exact


def known(path):
    found = list(tensors(torch.load(path, weights_only=False)))
    paths = [path for path, _ in found]
    return [facts(name(path, paths), tensor) for path, tensor in found]


def rezip(source, path, changes, method=zipfile.ZIP_STORED, leave=()):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", method) as new:
        for member in old.namelist():
            inner = member.partition("/")[2]
            content = old.read(member)
            if inner not in leave:
                # Members have a time: without one, files differ with each run.
                new.writestr(zipfile.ZipInfo(member), changes.get(inner, lambda same: same)(content), method)


def big_endian(source, path, width):
    """As torch on a machine of the other byte order writes it, which torch on this one reads."""

    def swap(content):
        words = [content[i : i + width][::-1] for i in range(0, len(content), width)]
        return b"".join(words)

    rezip(source, path, {"byteorder": lambda _: b"big", "data/0": swap})


def save(value, path, **options):
    """`torch.save` names the directory in a file after the file; here all have one name."""
    content = io.BytesIO()
    torch.save(value, content, **options)
    path.write_bytes(content.getvalue())


class Command:
    """Attacks that a pickle can perform when loaded with Python."""

    def __reduce__(self):
        return os.system, ("echo opened",)


class Foreign:
    pass


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def doubled(times):
    value = [torch.ones(1)]
    for _ in range(times):
        value = [value, value]
    return value


def hostile(folder):
    """Files that must be refused, with a part of the error."""
    folder.mkdir(exist_ok=True)
    seed = GOLDEN / "one.pt"
    looped = [torch.ones(1)]
    looped.append(looped)
    in_itself = {"a": torch.ones(1)}
    in_itself["again"] = in_itself
    objects = {
        "command": (Command(), "`posix.system`"),
        "foreign": ({"a": torch.ones(1), "b": Foreign()}, "`__main__.Foreign`"),
        "looped": (looped, "values inside one another"),
        "in_itself": (in_itself, "values inside one another"),
        "deep": (nested(200), "values inside one another"),
        "doubled": (doubled(40), "at most"),
        "in_a_set": ({torch.ones(1)}, "one in a set"),
        "under_a_pair": ({(1, 2): torch.ones(1)}, "under another key"),
        "lambda": ({"a": len}, "`__builtin__.len`"),
    }
    for file, (value, text) in objects.items():
        save(value, folder / f"{file}.pt")
        yield f"{file}.pt", text
    tensor = zipfile.ZipFile(seed).read("archive/data.pkl")
    size = b"K\x02K\x03\x86"
    assert tensor.count(size) == 1
    opcodes = {
        "eval": (pickle.PROTO + b"\x02cbuiltins\neval\n" + b"X\x01\0\0\x001\x85R.", "`builtins.eval`"),
        "twice": (pickle.PROTO + b"\x02" + b"}(X\x01\0\0\0aK\x01X\x01\0\0\0aK\x02u.", "`a` twice"),
        "dup": (pickle.PROTO + b"\x02" + b"]" + b"2" * 5_000 + b".", "one value"),
        "text_length": (pickle.PROTO + b"\x04\x8d" + b"\xff" * 8 + b".", "bytes of the pickle"),
        "marks": (b"(" * 2_000, "values inside one another"),
        "no_value": (b".", "a value on the stack"),
        "unset_memo": (b"h\x07.", "a value that came before"),
        "instance": (b"(ios\nsystem\n.", "an opcode of plain data"),
        "cut": (tensor[:-9], "bytes of the pickle"),
        "behind_the_end": (tensor + b"N.", "the pickle's end"),
        "protocol": (b"\x80\x09N.", "protocol 2 to 5"),
        "more_elements": (tensor.replace(size, b"K\x02K\x04\x86"), "elements inside their storage"),
        "many_elements": (tensor.replace(size, b"\x8a\x06" + b"\xff" * 5 + b"\0K\x03\x86"), "elements inside their storage"),
        "negative_extent": (tensor.replace(size, b"J\xff\xff\xff\xffK\x03\x86"), "the shape"),
        "other_storage": (tensor.replace(b"X\x01\0\0\x000", b"X\x01\0\0\x009"), "no member `data/9`"),
        "attributes": (tensor[:-1] + b"}b.", "attributes of a dictionary"),
    }
    for file, (content, text) in opcodes.items():
        rezip(seed, folder / f"{file}.pt", {"data.pkl": lambda _, content=content: content})
        yield f"{file}.pt", text
    rezip(seed, folder / "packed.pt", {}, zipfile.ZIP_DEFLATED)
    yield "packed.pt", "stored as they are"
    rezip(seed, folder / "no_storage.pt", {}, leave=("data/0",))
    yield "no_storage.pt", "no member `data/0`"
    rezip(seed, folder / "short_storage.pt", {"data/0": lambda content: content[:-4]})
    yield "short_storage.pt", "20 bytes for 6 elements"
    rezip(seed, folder / "byte_order.pt", {"byteorder": lambda _: b"middle"})
    yield "byte_order.pt", "`little` or `big`"
    (folder / "no_end.pt").write_bytes(seed.read_bytes()[:400])
    yield "no_end.pt", "zip archive"


def main():
    warnings.simplefilter("ignore")
    GOLDEN.mkdir(parents=True, exist_ok=True)
    values = {
        "dtypes.pt": dtypes(),
        "views.pt": views(),
        "training.ckpt": training(),
        "plain.pth": plain(),
        "same_names.pt": same_names(),
        "unread.pt": unread(),
        "quantised.pt": quantised(),
        "one.pt": torch.arange(6.0).reshape(2, 3),
        "pytorch_model.bin": OrderedDict(weight=torch.ones(2), bias=torch.zeros(1)),
        "conv1.output.1.pt": torch.ones(1),
        "empty.pt": {},
        "npu.pt": of_npu(),
    }
    for file, value in values.items():
        save(value, GOLDEN / file)
    for protocol in (3, 4, 5):
        save(plain(), GOLDEN / f"protocol_{protocol}.pt", pickle_protocol=protocol)
    for file, value, width in (
        ("float", torch.arange(6.0).reshape(2, 3), 4),
        ("complex", torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128), 8),
        ("byte", torch.arange(3, dtype=torch.uint8), 1),
    ):
        save({"value": value}, GOLDEN / "little.pt")
        big_endian(GOLDEN / "little.pt", GOLDEN / f"big_endian_{file}.pt", width)
    (GOLDEN / "little.pt").unlink()
    files = {path.name: known(path) for path in sorted(GOLDEN.iterdir()) if path.suffix != ".json" and path.is_file()}
    # A tensor that is the whole file has no name in it.
    (GOLDEN / "hostile").mkdir(exist_ok=True)
    save(torch.ones(2), GOLDEN / "hostile/before_1_6.pt", _use_new_zipfile_serialization=False)
    errors = {"before_1_6.pt": "the form of before 1.6"} | dict(hostile(GOLDEN / "hostile"))
    text = json.dumps({"tensors": files, "errors": errors}, separators=(",", ":"), ensure_ascii=False)
    (GOLDEN / "known.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
