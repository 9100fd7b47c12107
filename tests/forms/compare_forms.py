"""How often `opscope compare` names the culprit between forms of a network, and whether it accuses anybody in sound pairs.

    python compare_forms.py OPSCOPE_BINARY FOLDER

Needs the packages of `requirements.txt` and the `opscope` package. Networks of `networks.py` are dumped in eager mode,
compiled, and as both exporters write them, through both engines; `planted.py` plants faults into the exported files. The
tables of `docs/compare.md` are what this prints; it ends with 1 if a sound pair fails.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import networks
import numpy as np
import onnx
import onnxruntime
import opscope.torch
import planted
import torch

SEED = 7
EXPORTERS = ("dynamo", "legacy")
ENGINES = ("tract", "onnxruntime")
OPSET = 18


def main() -> None:
    """Dumps all forms, compares the sound ones, then those with faults."""
    warnings.filterwarnings("ignore")
    opscope_binary, folder = sys.argv[1], Path(sys.argv[2])
    library = Path(onnxruntime.__file__).parent / "capi"
    os.environ.setdefault("OPSCOPE_ENGINE_LIB", str(next(library.glob("libonnxruntime.so.*"))))
    runs = Runs(opscope_binary, folder)
    for name in networks.NETWORKS:
        runs.dump_forms(name)
    n_accused = runs.compare_sound()
    for golden in ("eager", "same file in ONNX Runtime"):
        runs.compare_faults(golden)
    sys.exit(int(n_accused > 0))


class Runs:
    """Dumps of all networks below a folder."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.binary, self.folder = binary, folder

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.binary, *map(str, arguments)], capture_output=True, text=True, check=False)

    def headline(self, target: Path, golden: Path) -> str:
        compared = self.run("compare", target, golden)
        if compared.returncode not in (0, 1, 4):
            raise RuntimeError(compared.stderr)
        return compared.stdout.split("\n", 1)[0]

    def dump_forms(self, name: str) -> None:
        """One network in all its forms, each in a directory of its own."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        torch.manual_seed(SEED)
        make, sample = networks.NETWORKS[name]
        network, inputs = make().eval(), sample()
        np.savez(folder / "inputs.npz", x=inputs.numpy())
        with torch.no_grad():
            with opscope.torch.eager(str(folder / "eager")):
                network(inputs)
            torch.compile(network, backend=opscope.torch.backend(str(folder / "compiled")))(inputs)
            opscope.torch.finish()
        torch._dynamo.reset()  # noqa: SLF001
        for exporter in EXPORTERS:
            file = folder / f"{exporter}.onnx"
            names = {"input_names": ["x"], "output_names": ["y"]}
            torch.onnx.export(network, (inputs,), file, dynamo=exporter == "dynamo", opset_version=OPSET, **names)
            model = onnx.load(file)
            for node in model.graph.node:
                node.name = node.name or f"n_{node.output[0]}"
            onnx.save(model, file)
            for engine in ENGINES:
                self.dump(file, folder, folder / f"{exporter}_{engine}", engine)

    def dump(self, file: Path, folder: Path, out: Path, engine: str) -> bool:
        inputs = folder / "inputs.npz"
        return self.run("dump", file, "--engine", engine, "--inputs", inputs, "--out", out).returncode == 0

    def compare_sound(self) -> int:
        """Every two forms of each network, in both directions."""
        forms = ("eager", "compiled", *(f"{exporter}_{engine}" for exporter in EXPORTERS for engine in ENGINES))
        n, accused = 0, []
        for name in networks.NETWORKS:
            for target, golden in itertools.permutations(forms, 2):
                headline = self.headline(self.folder / name / target, self.folder / name / golden)
                n += 1
                if not headline.startswith("PASS"):
                    accused.append(f"{name}: {target} against {golden}: {headline}")
        print(f"sound pairs: {n}, of which {len(accused)} fail", *accused, sep="\n")
        return len(accused)

    def compare_faults(self, golden: str) -> None:
        """Every fault against one form; a table by kind, and the misses."""
        n_all, n_named, misses = Counter(), Counter(), []
        for name, exporter in itertools.product(networks.NETWORKS, EXPORTERS):
            folder = self.folder / name
            sound = folder / ("eager" if golden == "eager" else f"{exporter}_onnxruntime")
            planter = planted.Planter(onnx.load(folder / f"{exporter}.onnx"), SEED)
            for k, fault in enumerate(planter.faults()):
                file = folder / f"{exporter}_fault_{k}.onnx"
                onnx.save(fault.model, file)
                out = file.with_suffix("")
                # What cannot run has no values to compare.
                if not out.exists() and not self.dump(file, folder, out, "tract"):
                    continue
                headline = self.headline(out, sound)
                is_named = any(f"`{culprit}`" in headline for culprit in fault.culprits)
                n_all[fault.kind] += 1
                n_named[fault.kind] += is_named
                if not is_named:
                    misses.append(f"{name} {exporter} {fault.kind} {fault.culprits}: {headline}")
        print(f"\ngolden side: {golden}\n\n| fault | named |\n| --- | --- |")
        for kind in sorted(n_all):
            print(f"| {kind} | {n_named[kind]} of {n_all[kind]} |")
        print(f"| all | {n_named.total()} of {n_all.total()} |\n", *misses, sep="\n")


main()
