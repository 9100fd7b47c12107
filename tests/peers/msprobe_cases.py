"""Writes the golden dumps of msProbe that the tests of the store read.

    python tests/peers/msprobe_cases.py crates/store/tests/golden/msprobe

A tiny model is trained for two steps on the CPU under the tool's PrecisionDebugger, once for each
task and level. The results are thinned: long call stacks are cut, paths of this machine are
replaced, and the directory of the process gets a fixed name. `{case}.expected.json` says what torch
reads from the tensors' files, and `listed.json` what Python reads from each `dump.json`.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from msprobe.pytorch import PrecisionDebugger
from torch.nn import functional as F

# The directory that names the process, as each run has another number.
PROCESS = "proc1000"
# Lines of a call stack inside of torch that are kept of each.
N_TORCH_LINES = 1

STATISTICS = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
CASES = {
    "statistics_mix": ("statistics", "mix", "statistics", 2),
    "md5_l1": ("statistics", "L1", "md5", 1),
    "xor_l1": ("statistics", "L1", "xor", 1),
    "tensor_l0": ("tensor", "L0", "statistics", 1),
    "structure_mix": ("structure", "mix", "statistics", 1),
}
# Those that are made a second time with one weight changed.
BENT = ("statistics_mix",)


class TinyModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = torch.nn.Linear(4, 3)
        self.norm = torch.nn.LayerNorm(3)
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(3, 3)])

    def forward(self, x, scale=None):
        hidden = F.relu(self.layer1(x))
        hidden = self.norm(hidden)
        for block in self.blocks:
            hidden = block(hidden)
        joined = torch.cat([hidden, hidden * scale], dim=1)
        return joined, joined > 0, torch.log(joined - 100)


def record(config_path: Path, n_steps: int, bend: float) -> None:
    torch.manual_seed(7)
    model = TinyModel()
    with torch.no_grad():
        model.blocks[0].weight[0, 0] += bend
    debugger = PrecisionDebugger(config_path=str(config_path))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(n_steps):
        batch = torch.arange(8, dtype=torch.float32).reshape(2, 4) / 8 + step
        debugger.start(model=model)
        optimizer.zero_grad()
        joined, *_ = model(batch, scale=2.0)
        joined.square().sum().backward()
        debugger.stop()
        optimizer.step()
        debugger.step()


def thin(text: str, root: str) -> str:
    text = re.sub(r"/[^\" ]*/site-packages/", "/site-packages/", text)
    text = text.replace(os.path.abspath(__file__), "/train/model.py")
    text = re.sub(r"proc\d+", PROCESS, text.replace(root, "/dump"))
    return text


def thin_stack(lines: list[str]) -> list[str]:
    inside = [line for line in lines if "site-packages" in line][:N_TORCH_LINES]
    own = [line for line in lines if "site-packages" not in line]
    return [line for line in lines if line in inside or line in own]


def collect(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        if path.is_dir():
            continue
        name = re.sub(r"proc\d+", PROCESS, str(path.relative_to(source)))
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".json":
            shutil.copyfile(path, place)
            continue
        content = json.loads(thin(path.read_text(), str(source)))
        if path.name == "stack.json":
            content = {key: [names, thin_stack(lines)] for key, (names, lines) in content.items()}
        place.write_text(json.dumps(content, separators=(",", ":")) + "\n")


def described(tensor: torch.Tensor) -> dict:
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "values": [float(value) for value in tensor.flatten().tolist()],
    }


TITLES = {"Max": "Max Value", "Min": "Min Value", "Mean": "Avg Value", "Norm": "L2Norm Value"}
SIDES = {
    "input": ["input_args", "input_kwargs", "input", "parameters"],
    "output": ["output"],
}


def leaves(value) -> list:
    """The values in nested containers, None among them."""
    if isinstance(value, dict) and "type" not in value and value:
        value = list(value.values())
    if isinstance(value, list) and value:
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def listed_entry(key: str, entry: dict) -> list:
    rows = []
    if "parameters_grad" in key:
        entry = {"output": entry}
    for side, sections in SIDES.items():
        found = []
        for section in sections:
            value = entry.get(section)
            if isinstance(value, dict) and (section in ("input_kwargs", "parameters") or "parameters_grad" in key):
                value = dict(sorted(value.items()))
            found += leaves(value) if value else []
        for position, leaf in enumerate(found):
            if not isinstance(leaf, dict) or "dtype" not in leaf or "shape" not in leaf:
                continue
            # As text, since JSON has no word for what is not finite.
            statistics = {
                title: None if leaf[name] is None else repr(float(leaf[name]))
                for name, title in TITLES.items()
                if name in leaf
            }
            row = {"op": key, "side": side, "position": position, "dtype": leaf["dtype"].removeprefix("torch.")}
            rows.append({**row, "shape": leaf["shape"], "statistics": statistics, "digest": leaf.get("md5")})
    return rows


def list_dumps(root: Path) -> None:
    listed = {}
    for path in sorted(root.rglob("dump.json")):
        if "_bent" in str(path.relative_to(root)):
            continue
        data = json.loads(path.read_text())["data"]
        listed[str(path.relative_to(root))] = [row for item in data.items() for row in listed_entry(*item)]
    lines = [f"{json.dumps(path)}:{json.dumps(rows, separators=(',', ':'))}" for path, rows in listed.items()]
    (root / "listed.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(case: str, out: Path, bend: float) -> None:
    task, level, summary_mode, n_steps = CASES[case]
    options = {**STATISTICS, "summary_mode": summary_mode}
    with tempfile.TemporaryDirectory() as directory:
        dump = Path(directory) / "dump"
        config = Path(directory) / "config.json"
        settings = {"task": task, "dump_path": str(dump), "rank": [], "step": [], "level": level}
        config.write_text(json.dumps({**settings, task: options}))
        record(config, n_steps, bend)
        # The tool writes what it still holds when the process ends, to the same files.
        collect(dump, out)
    expected = {
        str(path.relative_to(out)): described(torch.load(path)) for path in sorted(out.rglob("*.pt"))
    }
    if expected:
        (out.parent / f"{out.name}.expected.json").write_text(json.dumps(expected, indent=1))


if __name__ == "__main__":
    root = Path(sys.argv[1])
    if len(sys.argv) == 4:
        main(sys.argv[2], root, float(sys.argv[3]))
    else:
        # A separate process for each, as the tool changes torch when it is set up.
        for case in CASES:
            for suffix, bend in [("", "0"), ("_bent", "0.5")][: 1 + (case in BENT)]:
                place = root / f"{case}{suffix}"
                shutil.rmtree(place, ignore_errors=True)
                status = os.spawnl(os.P_WAIT, sys.executable, sys.executable, __file__, str(place), case, bend)
                if status:
                    sys.exit(f"{case}: {status}")
        list_dumps(root)
