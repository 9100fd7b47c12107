"""Build test models with seeded random weights, and inputs to run them with.

For each model this writes `{stem}.onnx` and, for each set of inputs, `{stem}.{label}.npz` whose keys are the names of
the model's inputs. Nothing depends on the clock or on the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from generators.bert import bert
from generators.beyond import bfloat16, nested_loops, qoperator, sequences, text
from generators.constants import constants
from generators.control_flow import control_flow, loop, scan
from generators.corner_cases import dtypes, multi_io, nan, non_finite, overflow_six
from generators.gpt2 import gpt2
from generators.graph import Generated
from generators.mobilenet import mobilenet_v3
from generators.recurrent import recurrent
from generators.resnet import resnet18, resnet50, resnet50_qdq
from generators.seq2seq import seq2seq
from generators.swin import swin
from generators.transformer import transformer, transformer_medium
from generators.vit import vit
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
    nested_loops,
    sequences,
    qoperator,
    bfloat16,
    text,
    recurrent,
    constants,
)
# Each takes whether it has its real size.
ARCHITECTURES: tuple[Callable[[bool], Generated], ...] = (
    resnet50,
    resnet50_qdq,
    mobilenet_v3,
    vit,
    bert,
    gpt2,
    swin,
    seq2seq,
)
# Large; for benchmarks.
BENCH_MODELS: tuple[Callable[[], Generated], ...] = (transformer_medium, wide)


def models(args: argparse.Namespace) -> dict[str, Callable[[], Generated]]:
    """Returns the generators of the models that the options ask for, by stem."""
    is_full = args.size == "full"
    wanted: dict[str, Callable[[], Generated]] = {"resnet18": partial(resnet18, args.resnet_size)}
    wanted |= {generate.__name__: generate for generate in SMALL_MODELS}
    wanted |= {generate.__name__: partial(generate, is_full) for generate in ARCHITECTURES}
    if args.bench or args.only:
        wanted |= {generate.__name__: generate for generate in BENCH_MODELS}
    if args.bench:
        wanted["resnet50"] = partial(resnet50, True)
    return {stem: generate for stem, generate in wanted.items() if not args.only or stem in args.only}


def write(generated: Generated, stem: str, out_dir: Path) -> None:
    onnx.save(generated.model, out_dir / f"{stem}.onnx")
    for label, inputs in generated.input_sets.items():
        np.savez(out_dir / f"{stem}.{label}.npz", **inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", type=Path, metavar="OUT_DIR", help="created when missing")
    parser.add_argument(
        "--size", choices=["small", "full"], default="small", help="of the architectures; full is real (%(default)s)"
    )
    parser.add_argument("--only", nargs="+", metavar="STEM", default=[], help="write no other models")
    parser.add_argument(
        "--resnet-size", type=int, default=224, help="height and width of ResNet-18's input (%(default)s)"
    )
    parser.add_argument(
        "--bench", action="store_true", help="write the large models of the benchmarks too, ResNet-50 among them"
    )
    args = parser.parse_args()
    wanted = models(args)
    unknown = set(args.only) - set(wanted)
    if unknown:
        parser.error(f"there are no models {', '.join(sorted(unknown))}; there are {', '.join(sorted(wanted))}")
    args.out_dir.mkdir(parents=True, exist_ok=True)
    for stem, generate in wanted.items():
        write(generate(), stem, args.out_dir)


if __name__ == "__main__":
    main()
