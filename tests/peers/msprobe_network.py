"""Writes the golden dumps of msProbe that those of `opscope.torch` and `opscope dump` are compared with.

    PYTHONPATH=tests/torch python tests/peers/msprobe_network.py tests/torch/golden/msprobe.tar.xz

One inference of the network that the tests of PyTorch build too, under the tool's PrecisionDebugger: sound once for each
level and task, and with each fault where the tool listens to modules and calls. Paths of this machine are replaced.
"""

import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import torch
from msprobe.pytorch import PrecisionDebugger
from probed_network import FAULTS, ProbedNetwork, image

SOUND = "sound"
CASES = {
    "modules": ("tensor", "L0"),
    "calls": ("tensor", "L1"),
    "both": ("tensor", "mix"),
    "statistics": ("statistics", "mix"),
}
PATTERNS = {
    r"/[^\" ]*/site-packages/": "/site-packages/",
    r"/[^\" ]*/(probed_network|msprobe_network).py": r"/train/\1.py",
    r"proc\d+": "proc1000",
}


def record(case: str, fault: str, folder: Path) -> None:
    task, level = CASES[case]
    section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    config = {"task": task, "dump_path": str(folder), "rank": [], "step": [], "level": level, task: section}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        debugger = PrecisionDebugger(config_path=file.name)
    model, given = ProbedNetwork(None if fault == SOUND else fault).eval(), image()
    debugger.start(model=model)
    with torch.no_grad():
        model(given)
    debugger.stop()
    debugger.step()


def replaced(text: str) -> str:
    for pattern, word in PATTERNS.items():
        text = re.sub(pattern, word, text)
    return text


def add(archive: tarfile.TarFile, path: Path, root: Path) -> None:
    content = path.read_bytes()
    if path.suffix == ".json":
        content = replaced(content.decode().replace(str(root), "")).encode()
    info = tarfile.TarInfo(replaced(str(path.relative_to(root))))
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def main(target: Path) -> None:
    wanted = [(case, SOUND) for case in CASES] + [("both", fault) for fault in FAULTS]
    with tempfile.TemporaryDirectory() as root:
        for case, fault in wanted:
            # A process for each, as the hooks of one level stay on the functions of torch.
            folder = Path(root) / fault / case
            subprocess.run([sys.executable, __file__, folder, case, fault], check=True)
        with tarfile.open(target, "w:xz") as archive:
            for path in sorted(Path(root).rglob("*")):
                if path.is_file():
                    add(archive, path, Path(root))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [target]:
            main(Path(target))
        case [folder, case, fault]:
            record(case, fault, Path(folder))
