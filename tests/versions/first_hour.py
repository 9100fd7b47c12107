"""The first steps of a new user, each with its known answer. Prints one JSON object: step -> "ok" or an error.

usage: first_hour.py OPSCOPE DIGITS WORK; OPSCOPE is the command, DIGITS the folder `examples/digits`, WORK is created.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

COMMAND, DIGITS, WORK = sys.argv[1].split(), os.path.abspath(sys.argv[2]), sys.argv[3]


def run(*arguments: str, rc: int = 0) -> str:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=WORK, timeout=300)
    assert done.returncode == rc, f"exit {done.returncode}: {(done.stderr or done.stdout).strip()[-200:]}"
    return done.stdout


def expect(text: object, *parts: str) -> None:
    missing = [part for part in parts if part not in str(text)]
    assert not missing, f"no {missing[0]!r} in {str(text)[:200]!r}"


def command_line() -> None:
    for name, file in (("sound", "digits_cnn.onnx"), ("faulty", "digits_cnn_transposed.onnx")):
        images = f"image={DIGITS}/images.npy"
        run("dump", f"{DIGITS}/{file}", "--input", images, "--out", name, "--engine", "onnxruntime")
    expect(run("compare", "faulty", "sound", rc=1), "Cause at Conv", "conv2.weight", "axes 2 and 3 exchanged")


def python() -> None:
    import opscope

    folder = lambda name: os.path.join(WORK, name)  # noqa: E731
    expect(opscope.compare(folder("faulty"), folder("sound")).verdict, "conv2.weight")
    probs = opscope.open(folder("sound")).find(op_type="Softmax", side="output")[0].numpy()
    assert probs.argmax(axis=1).tolist() == [1, 4, 6, 7, 3, 3, 8, 5, 1, 2, 5, 8, 5, 7, 3, 9]


def _networks(scale: float = 1.3) -> tuple:
    import torch
    from torch import nn

    torch.manual_seed(0)
    x = torch.randn(3, 8)
    sound, faulty = (
        nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)).eval() for _ in range(2)
    )
    faulty.load_state_dict(sound.state_dict())
    with torch.no_grad():
        faulty[1].weight.mul_(scale)
    return sound, faulty, x


def eager() -> None:
    import opscope
    import opscope.torch

    sound, faulty, x = _networks()
    for name, network in (("eager_sound", sound), ("eager_faulty", faulty)):
        with opscope.torch.eager(os.path.join(WORK, name)):
            network(x)
    found = opscope.compare(os.path.join(WORK, "eager_faulty"), os.path.join(WORK, "eager_sound"))
    expect(found.verdict, "native_layer_norm", "weight `1.weight` differs")


def compiled() -> None:
    import opscope
    import opscope.torch
    import torch

    sound, faulty, x = _networks()
    for name, network in (("compiled_sound", sound), ("compiled_faulty", faulty)):
        backend = opscope.torch.backend(os.path.join(WORK, name))
        result = torch.compile(network, backend=backend)(x)
        backend.finish()
        assert torch.allclose(result, network(x), atol=1e-5)
    found = opscope.compare(os.path.join(WORK, "compiled_faulty"), os.path.join(WORK, "compiled_sound"))
    expect(found.verdict, "layer_norm", "1.weight")


def training() -> None:
    import opscope
    import opscope.torch
    import torch

    for name, rate in (("train_sound", 0.1), ("train_faulty", 0.3)):
        network, _, x = _networks()
        optimizer = torch.optim.SGD(network.parameters(), lr=rate)
        eager_dump = opscope.torch.eager(os.path.join(WORK, name))
        with eager_dump:
            for _ in range(2):
                optimizer.zero_grad()
                network(x).square().mean().backward()
                optimizer.step()
                eager_dump.step()
    found = opscope.compare(os.path.join(WORK, "train_faulty"), os.path.join(WORK, "train_sound"))
    expect(found.verdict, "FAIL")
    expect(run("compare", "train_faulty", "train_sound", rc=1), "-0.3", "-0.1")


def exported() -> None:
    import opscope.torch
    import torch

    sound, faulty, x = _networks()
    file = os.path.join(WORK, "net.onnx")
    torch.onnx.export(faulty, (x,), file, dynamo=False, input_names=["x"])
    expect(opscope.torch.diff(file, sound, (x,)).verdict, "LayerNormalization", "1.weight")


STEPS = (command_line, python, eager, compiled, training, exported)


def main() -> None:
    os.makedirs(WORK)
    answers = {}
    for step in STEPS:
        try:
            step()
            answers[step.__name__] = "ok"
        except Exception as error:
            answers[step.__name__] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
