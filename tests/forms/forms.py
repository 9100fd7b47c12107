"""The forms of a network, and a dump of each."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import networks
import numpy as np
import onnx
import onnxruntime
import opscope.torch
import torch
from onnxruntime import quantization

SEED = 7
OPSET = 18

ONNX_FORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "dynamo_tract": ("dynamo", ("--engine", "tract")),
    "dynamo_onnxruntime": ("dynamo", ("--engine", "onnxruntime")),
    "dynamo_optimised": ("dynamo", ("--engine", "onnxruntime", "--graph", "executed")),
    "legacy_tract": ("legacy", ("--engine", "tract")),
    "legacy_onnxruntime": ("legacy", ("--engine", "onnxruntime")),
    "float16": ("float16", ("--engine", "onnxruntime")),
    "qdq_tract": ("qdq", ("--engine", "tract")),
    "qdq_onnxruntime": ("qdq", ("--engine", "onnxruntime")),
    "qdq_optimised": ("qdq", ("--engine", "onnxruntime", "--graph", "executed")),
    "dynamo_statistics": ("dynamo", ("--engine", "onnxruntime")),
}
"""The exported file that each form runs, and how."""
STATISTICS = ("eager_statistics", "dynamo_statistics")
FORMS = ("eager", "compiled", "eager_statistics", *ONNX_FORMS)
EXPORTED = ("dynamo_tract", "legacy_onnxruntime", "qdq_tract")
"""Those whose files get faults."""
QUANTISED = {"quantised convolutions": "convolutions", "quantised residual": "residual"}
"""Networks that are quantised statically after their export, by what they are made of."""


class Dumper:
    """Runs the program, in a folder with a directory for each network."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.binary, self.folder = str(Path(binary).resolve()), folder.resolve()
        library = Path(onnxruntime.__file__).parent / "capi"
        os.environ.setdefault("OPSCOPE_ENGINE_LIB", str(next(library.glob("libonnxruntime.so.*"))))

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.binary, *map(str, arguments)], capture_output=True, text=True, check=False)

    def dump_of(self, name: str, form: str) -> Path:
        return self.folder / name / form

    def model_of(self, name: str, form: str) -> Path:
        file, _ = ONNX_FORMS[form]
        return self.folder / name / f"{file}.onnx"

    def dump(self, model: Path, form: tuple[str, tuple[str, ...]], name: str, out: Path) -> bool:
        """Whether the model runs."""
        file, options = form
        inputs = self.folder / name / ("inputs_float16.npz" if file == "float16" else "inputs.npz")
        done = self.run("dump", model, *options, "--inputs", inputs, *self.destination(out))
        return done.returncode == 0

    def has_effect(self, changed: Path, name: str, form: str) -> bool:
        """Whether a changed model runs and returns another result than the sound one."""
        inputs = dict(np.load(self.folder / name / "inputs.npz"))
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        results = []
        for model in (changed, self.model_of(name, form)):
            try:
                session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
                results.append(session.run(None, inputs)[0])
            except Exception:  # noqa: BLE001
                return False
        found, sound = results
        return found.shape != sound.shape or not np.allclose(found, sound, rtol=1e-5, atol=1e-6)

    def destination(self, out: Path) -> list[str]:
        if out.name not in STATISTICS:
            return ["--out", str(out)]
        out.mkdir()
        config = out.with_suffix(".json")
        dump = {"dump_path": str(out), "dump_list": [{}], "dump_mode": "all", "dump_data": "stats", "dump_level": "op"}
        config.write_text(json.dumps({"dump": dump}))
        return ["--config", str(config)]

    def dump_forms(self, name: str) -> None:
        """One network in all its forms, each in a separate directory."""
        folder = self.folder / name
        if folder.exists():
            return
        folder.mkdir(parents=True)
        torch.manual_seed(SEED)
        make, sample = networks.NETWORKS[QUANTISED.get(name, name)]
        network, inputs = make().eval(), sample()
        np.savez(folder / "inputs.npz", x=inputs.numpy())
        if name in QUANTISED:
            export(network, inputs, folder / "float.onnx", is_dynamo=True)
            quantise(folder / "float.onnx", folder / "qdq.onnx", sample)
        else:
            self.dump_sources(network, inputs, folder)
            export(network, inputs, folder / "dynamo.onnx", is_dynamo=True)
            export(network, inputs, folder / "legacy.onnx", is_dynamo=False)
            half = inputs.half() if inputs.is_floating_point() else inputs
            np.savez(folder / "inputs_float16.npz", x=half.numpy())
            export(network.half(), half, folder / "float16.onnx", is_dynamo=True)
        for form, how in ONNX_FORMS.items():
            model = self.model_of(name, form)
            out = self.dump_of(name, form)
            if model.exists() and not self.dump(model, how, name, out):
                raise RuntimeError(f"{name}: {form} does not run")

    def dump_sources(self, network: torch.nn.Module, inputs: torch.Tensor, folder: Path) -> None:
        with torch.no_grad():
            with opscope.torch.eager(str(folder / "eager")):
                network(inputs)
            with opscope.torch.eager(str(folder / "eager_statistics"), data="stats"):
                network(inputs)
            torch.compile(network, backend=opscope.torch.backend(str(folder / "compiled")))(inputs)
            opscope.torch.finish()
        torch._dynamo.reset()  # noqa: SLF001


def export(network: torch.nn.Module, inputs: torch.Tensor, file: Path, *, is_dynamo: bool) -> None:
    names = {"input_names": ["x"], "output_names": ["y"]}
    torch.onnx.export(network, (inputs,), file, dynamo=is_dynamo, opset_version=OPSET, **names)
    model = onnx.load(file)
    for node in model.graph.node:
        node.name = node.name or f"n_{node.output[0]}"
    onnx.save(model, file)


def quantise(file: Path, quantised: Path, sample) -> None:
    samples = iter([{"x": sample().numpy()} for _ in range(4)])

    class Samples(quantization.CalibrationDataReader):
        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(samples, None)

    # Weights of 8 bits overflow ONNX Runtime's 16-bit sums on processors without VNNI.
    options = {"quant_format": quantization.QuantFormat.QDQ, "per_channel": True, "reduce_range": True}
    quantization.quantize_static(file, quantised, Samples(), **options)
    model = onnx.load(quantised)
    for node in model.graph.node:
        node.name = node.name or f"n_{node.output[0]}"
    onnx.save(model, quantised)
