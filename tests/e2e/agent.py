"""An agent in front of planted faults: `agent.py`, with OPSCOPE and PYTHONPATH set, prints a table of `docs/agents.md`.

Of a pair of ONNX models it calls the tools `verdict` and `why`, of a pair of PyTorch modules `python -m opscope diff`.
It knows an operator only from what it reads, and each byte that it reads counts.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from attention_faults import ATTENTION, ATTENTION_FAULTS
from attention_faults import SHAPE as ATTENTION_SHAPE
from binary import TIMEOUT_SECONDS, Binary
from onnx import ModelProto
from test_experiments import FAULTS, SOUND

ANSWER_BYTES_MAX = 2048
# A convolution network and a block of attention: the sound model, shapes of its inputs, and what is planted.
NETWORKS: dict[str, tuple[ModelProto, dict[str, list[int]], dict[str, Any]]] = {
    "convolutions": (SOUND, {"x": [1, 3, 8, 8]}, FAULTS),
    "attention": (ATTENTION, ATTENTION_SHAPE, ATTENTION_FAULTS),
}
ONNX_CASES = [(network, fault) for network, (_, _, faults) in NETWORKS.items() for fault in faults]
# Changes of a module, and the operator of ATen that has to be named.
MODULE = """import torch
from torch import nn
from torch.nn import functional

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.act, self.norm = nn.Conv1d(4, 6, 3, padding=1), nn.GELU(), nn.BatchNorm1d(6)
        self.query, self.outer, self.is_causal = nn.Linear(6, 6), nn.Linear(6, 3), True
    def forward(self, x):
        x = self.norm(self.act(self.inner(x))).transpose(1, 2)
        x = functional.scaled_dot_product_attention(self.query(x), x, x, is_causal=self.is_causal)
        return self.outer(x).softmax(-1)

def sound():
    torch.manual_seed(0)
    return Block().eval(), torch.randn(2, 4, 5)
"""
MODULE_FAULTS = {
    "another activation": ("block.act = nn.SiLU()", "aten_silu"),
    "training mode": ("block.norm.train()", "batch_norm"),
    # The mask is an addend of the products.
    "no causal mask": ("block.is_causal = False", "aten_add_"),
    "lost bias": ("nn.init.zeros_(block.outer.bias)", "aten_addmm"),
}


class Client:
    """A session over standard input and output."""

    def __init__(self, tool: Binary, out: Path) -> None:
        command = [str(part) for part in (tool.path, "mcp", "--out", out)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.n_requests = 0
        self.n_bytes_read = 0

    def send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        self.n_bytes_read += len(line.encode())
        return json.loads(line)

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        self.n_requests += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.n_requests, "method": method, "params": params}))
        answer = self.receive()
        assert answer["id"] == self.n_requests
        return answer

    def tool(self, name: str, is_error: bool = False, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool, which is short and names the next step."""
        answer = self.request("tools/call", name=name, arguments=arguments)
        assert "result" in answer, answer
        result = answer["result"]
        assert len(json.dumps(answer, ensure_ascii=False).encode()) < ANSWER_BYTES_MAX
        (content,) = result["content"]
        value = json.loads(content["text"])
        assert result["isError"] == is_error, value
        assert value["next"]
        return value

    def end(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(TIMEOUT_SECONDS)


@dataclass
class Found:
    """What an agent learnt of a fault."""

    n_calls: int
    n_bytes: int
    is_named: bool
    is_proven: bool
    text: str


def find_in_models(client: Client, folder: Path, network: str, fault: str, **options: Any) -> Found:
    sound, shape, faults = NETWORKS[network]
    plant, culprits = faults[fault]
    faulty = ModelProto()
    faulty.CopyFrom(sound)
    plant(faulty)
    paths = {"target": folder / "faulty.onnx", "golden": folder / "sound.onnx"}
    for path, model in zip(paths.values(), (faulty, sound), strict=True):
        onnx.save(model, path)
    n_before = client.n_bytes_read
    sides = {side: str(path) for side, path in paths.items()}
    verdict = client.tool("verdict", **sides, shape=shape, **options)
    why = client.tool("why", verdict=verdict["id"])
    causes = set(why.get("experiments", {}).get("causes", []))
    is_proven = why["certainty"] == "proven"
    return Found(2, client.n_bytes_read - n_before, bool(causes & culprits), is_proven, why["verdict"])


def find_in_modules(folder: Path, fault: str) -> Found:
    change, expected = MODULE_FAULTS[fault]
    faulty = f"def faulty():\n    block, x = sound()\n    {change}\n    return block, x\n"
    (folder / "block.py").write_text(f"{MODULE}\n{faulty}")
    command = [sys.executable, "-m", "opscope", "diff", "block:faulty", "block:sound"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    line = done.stdout.splitlines()[0]
    cause = re.search(r"\. (?:Likely c|C)ause at (\S+)", line)
    is_named = cause is not None and re.search(expected, cause[1]) is not None
    return Found(1, len(done.stdout.encode()), is_named, False, line)


def row(title: str, found: list[Found]) -> str:
    n_bytes = [one.n_bytes for one in found]
    numbers = [len(found), sum(one.is_named for one in found), sum(one.is_proven for one in found)]
    sizes = [statistics.median_low(n_bytes), max(n_bytes)]
    cells = [title, *numbers, found[0].n_calls, *(f"{size / 1000:.1f} kB" for size in sizes)]
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    tool = Binary.from_environment()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        client = Client(tool, folder / "dumps")
        tables: dict[str, list[Found]] = {}
        for network, fault in ONNX_CASES:
            found = find_in_models(client, folder, network, fault)
            tables.setdefault(f"ONNX, {network}", []).append(found)
            print(network, fault, found, file=sys.stderr)
        client.end()
        for fault in MODULE_FAULTS:
            found = find_in_modules(folder, fault)
            tables.setdefault("PyTorch", []).append(found)
            print(fault, found, file=sys.stderr)
    for title, found in tables.items():
        print(row(title, found))


if __name__ == "__main__":
    assert os.environ["OPSCOPE"]
    main()
