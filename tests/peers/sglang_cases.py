"""Writes crates/store/tests/golden/sglang: dumps that SGLang's own dumper makes, and what torch reads of them.

    pip download --no-deps -d wheels sglang==0.5.23
    pip download --no-deps -d wheels sglang==0.5.4
    python tests/peers/sglang_cases.py wheels

The dumper needs nothing of SGLang but names that it imports, so that its file is taken from the wheel and
run with stand-ins for those. Version 0.5.4 saves values alone, 0.5.23 values with what is known of them.
"""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import types
import zipfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

GOLDEN = Path(__file__).parents[2] / "crates/store/tests/golden/sglang"
TOOLS = "sglang/srt/debug_utils/"
OLD, NEW = "0.5.4", "0.5.23"
N_RANKS = 2
# Names that its files import, of which nothing is called here.
STAND_INS = {
    "zmq": [],
    "sglang": [],
    "sglang.srt": [],
    "sglang.srt.managers": [],
    "sglang.srt.managers.io_struct": ["sock_recv", "sock_send", "wrap_as_pickle"],
    "sglang.srt.runtime_context": ["get_parallel", "get_server_args", "get_serving"],
    "sglang.srt.utils": ["get_device"],
    "sglang.srt.layers": [],
    "sglang.srt.layers.logits_processor": ["LogitsProcessorOutput"],
    "sglang.srt.model_executor": [],
    "sglang.srt.model_executor.forward_batch_info": ["ForwardBatch", "PPProxyTensors"],
}


def load(wheels, version, file):
    """A module of the tool, from its wheel."""
    [wheel] = Path(wheels).glob(f"sglang-{version}-*.whl")
    for module, names in STAND_INS.items():
        sys.modules[module] = types.ModuleType(module)
        for name in names:
            setattr(sys.modules[module], name, type(name, (), {}))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(zipfile.ZipFile(wheel).extract(TOOLS + file, directory))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        # Its data classes look up the module that they are in.
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    return module


def of_old_version(wheels, out):
    """Values alone, two passes; views with all of their storage."""
    os.environ["SGLANG_DUMPER_DIR"] = str(out)
    dumper = load(wheels, OLD, "dumper.py").dumper
    for number in range(2):
        dumper.on_forward_pass_start()
        base = torch.arange(24.0).reshape(4, 6) + number
        dumper.dump("embedding", base)
        for layer_id in range(2):
            dumper.dump("attention", base[:, layer_id::2] * 2, layer_id=layer_id)
            dumper.dump("view", base.t()[1:3], layer_id=layer_id)
        dumper.dump("pair", (base[0], base[:, 0]))
        dumper.dump("text", "no tensor")
    [made] = out.iterdir()
    # Each run has another time.
    made.rename(out / "sglang_dump_1700000000.25")


def of_rank(rank, wheels, out, rendezvous):
    """Values of every kind, in a group of processes."""
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=N_RANKS)
    tool = load(wheels, NEW, "dumper.py")
    settings = {"enable": True, "dir": str(out), "exp_name": "dump_20240102_030405_006007", "enable_grad": True}
    dumper = tool._Dumper(config=tool.DumperConfig(**settings, enable_model_value=True, enable_model_grad=True))
    torch.manual_seed(rank)
    values = torch.tensor([[1.5, -2.0, 3.25], [0.0, 100.0, -7.5]]) + rank
    linear = nn.Linear(3, 2)
    for step in range(2):
        if rank == 0 and step == 0:
            for dtype in ("float16", "bfloat16", "float64", "float8_e4m3fn", "int8", "int64", "uint16", "complex64"):
                dumper.dump(f"as_{dtype}", values.abs().to(getattr(torch, dtype)))
            dumper.dump("mask", values > 1)
            dumper.dump("scalar", torch.tensor(2.5))
            dumper.dump("empty", torch.empty(0, 4))
            dumper.dump("transposed", values.t())
            dumper.dump("column", values[:, 1])
            dumper.dump("expanded", values[:1].expand(4, 3))
            dumper.dump("conjugate", torch.view_as_complex(values[:, :2].contiguous()).conj())
            dumper.dump("lazy", lambda: values * 2)
            dumper.dump("list", [values, values[0]])
            dumper.dump("nested", {"a": values, "b": {"c": [values[0], 7]}, "n": None})
            dumper.dump_dict("batch", {"ids": torch.arange(3), "n": 3})
            dumper.dump("number", 3)
            dumper.dump("words", ["a", "b"])
            dumper.dump("block/mlp", values + 1)
            dumper.dump("twice___named", values + 2)
        dumper.dump("hidden", values + step, dims="t h[tp] # packed tokens", dims_grad="t h")
        for layer_id in range(2):
            dumper.set_ctx(layer_id=layer_id)
            dumper.dump("attention", values * layer_id, phase="decode")
            dumper.dump("attention", values * layer_id + 1, phase="decode")
            dumper.set_ctx(layer_id=None)
        given = values.clone().requires_grad_()
        dumper.dump("given", given, dims="t h")
        linear.zero_grad()
        linear(given).square().sum().backward()
        dumper.dump_model(linear)
        dumper.step()
    dist.destroy_process_group()


class Block(nn.Module):
    def __init__(self, layer_id):
        super().__init__()
        self.layer_id = layer_id
        self.mlp = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, positions, hidden, residual=None):
        hidden = self.mlp(hidden) + positions[:, None]
        return self.norm(hidden), residual if residual is not None else hidden


class TinyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.layers = nn.ModuleList([Block(0), Block(1)])
        self.head = nn.Linear(4, 3)

    def forward(self, input_ids, positions):
        hidden, residual = self.embed(input_ids), None
        for layer in self.layers:
            hidden, residual = layer(positions, hidden=hidden, residual=residual)
        return self.head(hidden + residual)


class CausalModel(nn.Module):
    """A model in a model, as those of SGLang are."""

    def __init__(self):
        super().__init__()
        self.model = TinyModel()

    def forward(self, input_ids, positions):
        return self.model(input_ids, positions)


def model_with(bend):
    torch.manual_seed(7)
    model = CausalModel()
    with torch.no_grad():
        model.model.layers[1].mlp.weight[0, 0] += bend
    return model


def run(model, step):
    tokens = torch.tensor([1, 5, 2]) + step
    with torch.no_grad():
        return model(tokens, torch.arange(3, dtype=torch.float32))


def of_modules(wheels, out, bend):
    """Inputs and outputs of every module, without a line in the model."""
    tool = load(wheels, NEW, "dumper.py")
    config = tool.DumperConfig(enable=True, dir=str(out.parent), exp_name=out.name, non_intrusive_mode="all")
    dumper = tool._Dumper(config=config)
    model = model_with(bend)
    dumper.register_non_intrusive_dumper(model)
    run(model, 0)


def of_passes(wheels, out):
    """A file for each pass, as `--debug-tensor-dump-output-folder` makes them."""
    tool = load(wheels, NEW, "tensor_dump_forward_hook.py")
    model = model_with(0)
    dumper = tool.register_forward_hook_for_model(model, str(out), None, 1, 0, 0)
    # The tool writes a pass when the next one begins.
    for step in range(3):
        run(model, step)
    made = Path(dumper.get_dump_dir())
    made.rename(made.with_name("TP0_PP0_Rank0_pid1000"))


def facts(path, tensor):
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    values = bytes(dense.reshape(-1).view(torch.uint8).tolist())
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"at": list(path), "dtype": dtype, "shape": list(tensor.shape), "values": values.hex()}


def tensors(value, path=()):
    if isinstance(value, torch.Tensor):
        yield facts(path, value)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, item in items:
        yield from tensors(item, (*path, key))


def known(path):
    """What torch reads, and what the tool itself says of the value."""
    content = torch.load(path, weights_only=False)
    value, meta = (content["value"], content["meta"]) if isinstance(content, dict) and "meta" in content else (content, {})
    return {"meta": meta, "tensors": list(tensors(value))}


def main(wheels):
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir(parents=True)
    # A separate process for each, as the tools change modules and keep what they count.
    context = mp.get_context("spawn")
    jobs = [(of_old_version, GOLDEN / "plain"), (of_passes, GOLDEN / "passes")]
    jobs += [(of_modules, GOLDEN / "modules", 0.0), (of_modules, GOLDEN / "modules_bent", 0.5)]
    for function, out, *arguments in jobs:
        out.mkdir(exist_ok=True)
        process = context.Process(target=function, args=(wheels, out, *arguments))
        process.start()
        process.join()
        assert process.exitcode == 0, out
    with tempfile.TemporaryDirectory() as directory:
        mp.spawn(of_rank, (wheels, GOLDEN / "tagged", f"{directory}/rendezvous"), N_RANKS)
    files = sorted(GOLDEN.rglob("*.pt"))
    text = ",\n".join(f"{json.dumps(str(path.relative_to(GOLDEN)))}:{json.dumps(known(path))}" for path in files)
    (GOLDEN / "known.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
