"""Writes the golden dumps of msProbe under MindSpore that the tests of the store read.

    python tests/peers/msprobe_mindspore_cases.py crates/store/tests/golden/msprobe_mindspore

Needs mindspore==2.10.0, numpy==1.26.4 and pandas==2.3.3 beside `requirements.txt`. The tool takes the norm of each tensor by a kernel that MindSpore has for
NPUs alone, but for scalars, complex numbers and truth values: the cell computes with these. `{case}.expected.json` has the
bytes that numpy reads from the tensors' files, and `listed.json` what Python reads from each `dump.json`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = {
    "tensor_mix": ("tensor", "mix", "statistics"),
    "tensor_l0": ("tensor", "L0", "statistics"),
    "md5_l1": ("statistics", "L1", "md5"),
}


def record(case: str, dump: Path) -> None:
    import mindspore
    import numpy as np
    from mindspore import Tensor, nn, ops
    from msprobe.mindspore import PrecisionDebugger

    class Turn(nn.Cell):
        def construct(self, x, y, mask):
            return x * y, ops.logical_not(mask)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.turn = Turn()

        def construct(self, x, y, mask, angle):
            turned, is_hidden = self.turn(x, y, mask)
            return turned + y, ops.logical_and(is_hidden, mask), ops.sin(angle)

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    task, level, summary_mode = CASES[case]
    options = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": summary_mode}
    settings = {"task": task, "dump_path": str(dump), "rank": [], "step": [], "level": level, task: options}
    config = dump.with_suffix(".json")
    config.write_text(json.dumps(settings))
    debugger, net = PrecisionDebugger(config_path=str(config)), Net()
    x = (np.arange(6) - 2 + 1j).astype(np.complex64).reshape(2, 3)
    debugger.start(net)
    net(Tensor(x), Tensor(x * 2), Tensor(x.real > 0), Tensor(0.25, mindspore.float32))
    debugger.stop()
    debugger.step()


def write(case: str, out: Path) -> None:
    import numpy as np
    from msprobe_cases import collect

    with tempfile.TemporaryDirectory() as directory:
        dump = Path(directory) / "dump"
        subprocess.run([sys.executable, __file__, case, dump], check=True)
        collect(dump, out)
    for path in out.rglob("*.json"):
        path.write_text(path.read_text().replace(os.path.abspath(__file__), "/train/net.py"))
    arrays = {str(path.relative_to(out)): np.load(path) for path in sorted(out.rglob("*.npy"))}
    expected = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape), "bytes": array.tobytes().hex()}
        for name, array in arrays.items()
    }
    if expected:
        (out.parent / f"{case}.expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def main(root: Path) -> None:
    from msprobe_cases import list_dumps

    shutil.rmtree(root, ignore_errors=True)
    for case in CASES:
        write(case, root / case)
    list_dumps(root)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [case, dump]:
            record(case, Path(dump))
        case [root]:
            main(Path(root))
