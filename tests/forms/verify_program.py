"""How often `torch.onnx.verification.verify_onnx_program` shows the culprit, compared with `opscope compare`.

    python verify_program.py OPSCOPE_BINARY FOLDER [N]

Only every Nth fault of a network is checked, since the verification takes half a second for each value.

Both look at the same faults in the same files of the dynamo exporter, against PyTorch. The verification gives the largest
differences of values that the exported program and the ONNX model have under one name; the first value that is beyond the
tolerances counts as what it shows.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path

import networks
import onnx
import onnx_ir
import torch
from forms import OPSET, SEED, Dumper
from planted import Planter
from torch.onnx.verification import verify_onnx_program

FORM = "dynamo_tract"
ABSOLUTE, RELATIVE = 1e-4, 1e-3


def main() -> None:
    """Prints a table."""
    warnings.filterwarnings("ignore")
    dumper = Dumper(sys.argv[1], Path(sys.argv[2]))
    n, n_shown, n_named = Counter(), Counter(), Counter()
    for name, (make, sample) in networks.NETWORKS.items():
        dumper.dump_forms(name)
        torch.manual_seed(SEED)
        network, inputs = make().eval(), sample()
        names = {"input_names": ["x"], "output_names": ["y"]}
        program = torch.onnx.export(network, (inputs,), dynamo=True, opset_version=OPSET, verbose=False, **names)
        file = dumper.model_of(name, FORM)
        nth = int(sys.argv[3]) if len(sys.argv) > 3 else 1
        faults = list(enumerate(Planter(onnx.load(file), f"{SEED} {name} {FORM}").faults()))
        for k, fault in faults[::nth]:
            changed = file.with_name(f"{FORM}_fault_{k}.onnx")
            onnx.save(fault.model, changed)
            dump = changed.with_suffix("")
            tract = ("dynamo", ("--engine", "tract"))
            runs = dump.exists() or (dumper.has_effect(changed, name, FORM) and dumper.dump(changed, tract, name, dump))
            if not runs:
                continue
            headline = dumper.run("compare", dump, dumper.dump_of(name, "eager")).stdout.split("\n", 1)[0]
            n[fault.kind] += 1
            n_named[fault.kind] += any(f"`{culprit}`" in headline for culprit in fault.culprits)
            n_shown[fault.kind] += shown(program, fault.model) in fault.culprits
    print("| fault | pairs | `opscope compare` | `verify_onnx_program` |\n| --- | --- | --- | --- |")
    for kind in sorted(n):
        print(f"| {kind} | {n[kind]} | {n_named[kind]} | {n_shown[kind]} |")
    all_named, all_shown = n_named.total() / n.total(), n_shown.total() / n.total()
    print(f"| all | {n.total()} | {n_named.total()} ({all_named:.0%}) | {n_shown.total()} ({all_shown:.0%}) |")


def shown(program: torch.onnx.ONNXProgram, model: onnx.ModelProto) -> str | None:
    """The operator that makes the first value beyond the tolerances, in the order of the model."""
    program.model = onnx_ir.serde.deserialize_model(model)
    try:
        found = verify_onnx_program(program, compare_intermediates=True)
    except Exception:  # noqa: BLE001
        return None
    apart = {info.name for info in found if not (info.max_abs_diff <= ABSOLUTE or info.max_rel_diff <= RELATIVE)}
    nodes = (node for node in model.graph.node if apart.intersection(node.output))
    return next((node.name for node in nodes), None)


main()
