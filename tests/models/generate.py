"""Build test models with seeded random weights, and inputs to run them with.

For each model this writes `{stem}.onnx` and, for each set of inputs, `{stem}.{label}.npz` whose keys are the names of
the model's inputs. Nothing depends on the clock or on the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from generators.control_flow import control_flow, loop, scan
from generators.corner_cases import dtypes, multi_io, nan, non_finite, overflow_six
from generators.graph import Generated
from generators.resnet import resnet18, resnet50
from generators.transformer import transformer, transformer_medium
from generators.wide import wide

SMALL_MODELS: tuple[Callable[[], Generated], ...] = (
    transformer,
    control_flow,
    multi_io,
    loop,
    scan,
    nan,
    non_finite,
    overflow_six,
    dtypes,
)
# Large; for benchmarks.
BENCH_MODELS: tuple[Callable[[], Generated], ...] = (resnet50, transformer_medium, wide)


def write(generated: Generated, stem: str, out_dir: Path) -> None:
    onnx.save(generated.model, out_dir / f"{stem}.onnx")
    for label, inputs in generated.input_sets.items():
        np.savez(out_dir / f"{stem}.{label}.npz", **inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", type=Path, metavar="OUT_DIR", help="created when missing")
    parser.add_argument(
        "--resnet-size", type=int, default=224, help="height and width of ResNet-18's input (%(default)s)"
    )
    parser.add_argument("--bench", action="store_true", help="write the large models of the benchmarks too")
    args = parser.parse_args()
    args.out_dir.mkdir(parents=True, exist_ok=True)
    write(resnet18(args.resnet_size), "resnet18", args.out_dir)
    for generate in SMALL_MODELS + (BENCH_MODELS if args.bench else ()):
        write(generate(), generate.__name__, args.out_dir)


if __name__ == "__main__":
    main()
