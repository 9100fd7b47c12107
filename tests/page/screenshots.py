"""Pictures of the page: `screenshots.py OUT`, with OPSCOPE and OPSCOPE_BROWSER set as for the tests.

A ResNet-18 with one weight channel multiplied is compared with the original, also as a file; a training run that goes NaN,
a dump of overflows and a model that makes a NaN are shown alone. Each view is taken at several widths, light and dark, in
both languages. The documents have the pair at 1440 px, light: `OUT/pair-{view}-1440-light.png` is
`docs/images/view-{view}.png`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
# Behind the folder of the tests of the page, which has its own `conftest`.
sys.path.append(str(ROOT / "tests/e2e"))
from event_dumps import overflow_dump
from test_training import network, write_steps

WIDTHS = {1920: 1080, 1440: 900, 1024: 768, 420: 860}
LOOKS = {"light": {}, "dark": {"theme": "dark"}, "zh": {"lang": "zh"}}
VIEWS = ("overview", "graph", "tensor", "steps", "events", "coverage")
# What is drawn behind the first frame is there by then.
PAUSE_MS = 700
# Far enough from 1 that the outputs differ.
FACTOR = np.float32(-1.6)
CHANNEL = 7


def make_dumps(out: Path, opscope: str) -> dict[str, list[Path]]:
    """Names of scenes with the dumps that they show."""
    models = out / "models"
    generate = [sys.executable, ROOT / "tests/models/generate.py", models, "--bench", "--only", "resnet18", "nan"]
    subprocess.run(generate, check=True)
    faulty = onnx.load(models / "resnet18.onnx")
    kernels = [tensor for tensor in faulty.graph.initializer if len(tensor.dims) == 4]
    kernel = kernels[len(kernels) // 2]
    weights = numpy_helper.to_array(kernel).copy()
    weights[CHANNEL] *= FACTOR
    kernel.CopyFrom(numpy_helper.from_array(weights, kernel.name))
    onnx.save(faulty, models / "resnet18_faulty.onnx")
    for stem, options in {
        "resnet18": ["--seed", "3"],
        "resnet18_faulty": ["--seed", "3"],
        "nan": ["--inputs", models / "nan.sample.npz"],
    }.items():
        command = [opscope, "dump", models / f"{stem}.onnx", "--out", out / stem, *options]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    write_steps(out / "inputs")
    onnx.save(network(), models / "training.onnx")
    command = [opscope, "dump", models / "training.onnx", "--inputs", out / "inputs", "--out", out / "training"]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    overflow_dump(out / "overflow")
    return {
        "pair": [out / "resnet18_faulty", out / "resnet18"],
        "alone": [out / "nan"],
        "training": [out / "training"],
        "overflow": [out / "overflow"],
    }


def main(out: Path) -> None:
    opscope = os.environ["OPSCOPE"]
    out.mkdir(parents=True)
    scenes = make_dumps(out, opscope)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ["OPSCOPE_BROWSER"], args=["--no-sandbox", "--disable-gpu"]
        )
        for scene, dumps in scenes.items():
            command = [opscope, "view", *dumps, "--no-open"]
            server = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
            assert server.stdout
            base = server.stdout.readline().strip().rsplit("/", 1)[0]
            photograph(browser, out / scene, base + "/", VIEWS)
            server.terminate()
            server.wait()
        report = out / "report.html"
        command = [opscope, "compare", *scenes["pair"], "--quiet", "--html", report]
        subprocess.run([str(part) for part in command], check=False)
        photograph(browser, out / "report", f"{report.as_uri()}#/", VIEWS[:1])
        browser.close()


def photograph(browser: Browser, name: Path, base: str, views: tuple[str, ...]) -> None:
    for width, height in WIDTHS.items():
        page = browser.new_page(viewport={"width": width, "height": height})
        for view in views:
            for look, query in LOOKS.items():
                words = "&".join(f"{key}={value}" for key, value in query.items())
                page.goto(f"{base}{view}?{words}")
                # The page waits for news all the time, so that it never is without a request.
                page.get_by_role("main").wait_for()
                page.wait_for_timeout(PAUSE_MS)
                page.screenshot(path=f"{name}-{view}-{width}-{look}.png")
        page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
