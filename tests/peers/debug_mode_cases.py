"""Writes crates/store/tests/golden/debug_mode: logs of PyTorch's DebugMode, and what its calls really had.

    python tests/peers/debug_mode_cases.py

Each log is written as the tool saves it (`DebugMode.save_logs`) and as it prints it (`debug_string`). Paths
of this machine are replaced. `known.json` has of every call the tensors that a hook saw, and the hashes
that the tool reads back from its own file.
"""

import contextlib
import json
import re
import shutil
import sys
import types
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._debug_mode import DebugMode, _utils

GOLDEN = Path(__file__).parents[2] / "crates/store/tests/golden/debug_mode"
EVERYTHING = {"record_nn_module": True, "record_stack_trace": True, "record_ids": True}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, x, scale=1.0):
        hidden = torch.relu(self.linear(x))
        return self.norm(hidden) * scale


class TinyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x, scale=2.0)
        largest, position = self.head(x).max(dim=1)
        return torch.cat([largest, position.to(torch.bfloat16).float()])


def model_with(bend):
    torch.manual_seed(7)
    model = TinyModel()
    with torch.no_grad():
        model.blocks[1].linear.weight[0, 0] += bend
    return model


def batch():
    return torch.arange(8, dtype=torch.float32).reshape(2, 4) / 8


def infer(bend=0.0):
    model = model_with(bend)

    def run():
        with torch.no_grad():
            model(batch())

    return run


def train():
    model = model_with(0.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def run():
        model(batch()).square().sum().backward()
        optimizer.step()

    return run


def values():
    """Dtypes, views, arguments of every kind, and numbers that are not finite."""
    numbers = torch.tensor([[1.5, -2.0, 3.25], [0.0, 100.0, -7.5]])
    for name in ("float16", "bfloat16", "float64", "float8_e4m3fn", "int8", "uint16", "int64", "complex64"):
        numbers.abs().to(getattr(torch, name))
    mask = numbers > 1
    torch.stack([numbers, numbers.t().contiguous().t()])
    torch.where(mask, numbers, torch.log(numbers - 100))
    numbers.add_(1).mul_(torch.tensor(2.0))
    torch.einsum("ab,cb->ac", numbers, numbers)
    torch.full((2, 0, 3), -float("inf"))
    numbers.topk(2)
    torch.ops.aten.bucketize.Tensor(numbers, torch.arange(3.0), right=True)
    torch.nn.functional.pad(numbers, (1, 1), value=-0.5).sum()
    DebugMode._annotate("a note (with braces)")
    with torch.profiler.record_function("a part"):
        numbers / 0


def kernel():
    """As the code of a compiled graph reports its kernels, which run on GPUs alone."""
    mode = torch.utils._debug_mode.get_active_debug_mode()
    buffers = {"in_ptr0": batch(), "out_ptr0": torch.zeros(2, 4), "xnumel": 8}
    call = mode.record_triton_kernel("triton_poi_fused_add_0", buffers)
    buffers["out_ptr0"].add_(1)
    device = types.SimpleNamespace(synchronize=lambda _: None, current_device=lambda: 0)
    call.finalize(device)


def sharded():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    mesh = init_device_mesh("cpu", (8,))
    x = DTensor.from_local(torch.ones(1, 8), mesh, [Shard(0)], run_check=False)
    y = DTensor.from_local(torch.ones(1, 16), mesh, [Shard(0)], run_check=False)
    torch.mm(x, y).redistribute(mesh, [Replicate()])


def compiled():
    model = torch.compile(model_with(0.0), backend="aot_eager")

    def run():
        with torch.no_grad():
            model(batch())

    return run


def described(tree):
    tensors = [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
    return [[str(tensor.dtype).removeprefix("torch."), list(tensor.shape)] for tensor in tensors]


def seen_by_hook(func, types, args, kwargs, result):
    return {"inputs": described((args, kwargs)), "outputs": described(result)}


def hashes(call, key, n_each):
    """The hashes of each tensor, `n_each` of them. What is no tensor has none."""
    leaves = [leaf for leaf in pytree.tree_leaves((call.log or {}).get(key)) if leaf is not None]
    return [[repr(leaf) for leaf in leaves[i : i + n_each]] for i in range(0, len(leaves), n_each)]


def thin(text):
    text = re.sub(r"/[^\" ]*/site-packages/", "/site-packages/", text)
    text = re.sub(r" at 0x[0-9a-f]+", " at 0x7f0000000000", text)
    return text.replace(__file__, "/train/model.py")


def record(name, function, mode, hashing=None):
    with contextlib.ExitStack() as stack:
        # Hooks of the tool write to the log; this one writes nowhere.
        stack.enter_context(DebugMode.dispatch_hooks(record_hook=seen_by_hook))
        debug_mode = stack.enter_context(DebugMode(**mode))
        if hashing:
            stack.enter_context(DebugMode.log_tensor_hashes(**hashing))
        function()
    path = GOLDEN / f"{name}.json"
    DebugMode.save_logs(debug_mode.logs, path)
    path.write_text(thin(path.read_text()))
    (GOLDEN / f"{name}.txt").write_text(thin(debug_mode.debug_string()) + "\n")
    loaded = DebugMode.load_logs(path)
    calls = []
    for call, again in zip(debug_mode.logs, loaded, strict=True):
        if type(call).__name__ == "_OpCall":
            of_call = {"name": _utils._get_op_name(call.op), "seen": call.record}
            n_each = len(hashing["hash_fn"]) if hashing and isinstance(hashing["hash_fn"], list) else 1
            calls.append({**of_call, **{key: hashes(again, key, n_each) for key in ("input_hash", "hash")}})
    return calls


def main():
    warnings.simplefilter("ignore")
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir(parents=True)
    both = {"hash_fn": ["norm", "hash_tensor"], "hash_inputs": True}
    # Models are made before: what operators read that initialise is left over from others.
    norm, xor = {"hash_fn": "norm", "hash_inputs": True}, {"hash_fn": "hash_tensor"}
    own = {"hash_fn": lambda tensor: f"{tensor.dim()} axes"}
    cases = {
        "norm": (infer(), EVERYTHING, norm),
        "norm_bent": (infer(0.5), EVERYTHING, norm),
        "xor": (infer(), {"record_nn_module": True}, xor),
        "xor_bent": (infer(0.5), {"record_nn_module": True}, xor),
        "both": (train(), EVERYTHING, both),
        "values": (values, {"record_ids": True, "record_tensor_attributes": ["device", "requires_grad"]}, norm),
        "own": (infer(), {}, own),
        "default": (infer(), {}, None),
        "functions": (infer(), {**EVERYTHING, "record_torchfunction": True}, norm),
        "no_outputs": (infer(), {"record_output": False}, norm),
        "kernel": (kernel, {"record_ids": True}, norm),
        "sharded": (sharded, {"record_ids": True}, None),
        "compiled": (compiled(), {**EVERYTHING, "run_compile_with_interpreter": True}, norm),
        "empty": (lambda: None, {}, None),
    }
    known = {}
    for name, (function, mode, hashing) in cases.items():
        print(name, file=sys.stderr)
        known[name] = record(name, function, mode, hashing)
    abbreviations = {dtype.abbr: str(dtype).removeprefix("torch.") for dtype in torch._C._get_all_dtypes()}
    (GOLDEN / "dtypes.json").write_text(json.dumps(abbreviations, indent=1) + "\n")
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(calls, separators=(',', ':'))}" for name, calls in known.items())
    (GOLDEN / "known.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
