"""The kernels that the core has for ONNX Runtime are those of the Python package, as Triton compiles them.

`OPSCOPE_WRITE_KERNELS=1` writes the file.
"""

from __future__ import annotations

import os
import re
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

triton = pytest.importorskip("triton")

from opscope.torch._device import kernels, triton_form  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

FILE = Path(__file__).parents[2] / "crates/engine/src/onnx/ort/device/kernels.ptx.zlib"
# Every device that CUDA 12 knows compiles code for the oldest one; so does every driver that knows CUDA 12.
OPTIONS = triton_form.OPTIONS | {"ptx_version": 80}
TARGET = GPUTarget("cuda", 75, 32)

DTYPES = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float64": 8,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
}


def _compiled(kernel: Any, constants: dict[str, Any]) -> Any:
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else "i64" for name in names}
    values = {(names.index(name),): value for name, value in constants.items()}
    return triton.compile(ASTSource(kernel, signature=signature, constexprs=values), target=TARGET, options=OPTIONS)


def _stripped(ptx: str) -> str:
    """The code without comments and debug paths."""
    lines = []
    for line in ptx.splitlines():
        code = re.sub(r"//.*", "", line).strip()
        if code.startswith(".section"):
            break
        if code and not code.startswith((".loc", ".file", "$L__tmp")):
            lines.append(code)
    return "".join(f"{line}\n" for line in lines)


def _texts() -> dict[str, str]:
    made = {"join_parts": _compiled(kernels.join_parts, {"HAS_HISTOGRAM": False})}
    for name, item in DTYPES.items():
        constants = {
            "KIND": triton_form._KINDS_BY_NAME[name].value,
            "ITEM": item,
            "ELEMENT": triton_form._ELEMENTS[item],
            "N_DIMS": 1,
            "IS_DENSE": True,
        }
        made[name] = _compiled(kernels.reduce_parts, constants)
    for compiled in made.values():
        # What the core launches them with.
        assert (compiled.metadata.num_warps, compiled.metadata.shared) == (4, 32)
        assert (compiled.metadata.global_scratch_size, compiled.metadata.profile_scratch_size) == (0, 0)
    return {name: _stripped(compiled.asm["ptx"]) for name, compiled in made.items()}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return _texts()


def test_the_file_is_what_the_compiler_makes(texts: dict[str, str]) -> None:
    text = f"// triton {triton.__version__}\n" + "".join(f"// kernel {name}\n{code}" for name, code in texts.items())
    if os.environ.get("OPSCOPE_WRITE_KERNELS") == "1":
        FILE.write_bytes(zlib.compress(text.encode(), 9))
    assert zlib.decompress(FILE.read_bytes()).decode() == text


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_devices_take_the_kernels_without_spilling(texts: dict[str, str], arch: str, tmp_path: Path) -> None:
    assembler = Path(triton.__path__[0]) / "backends/nvidia/bin/ptxas"
    for name in ("float32", "float16", "int64", "join_parts"):
        code = tmp_path / f"{name}.ptx"
        code.write_text(texts[name])
        command = [str(assembler), "-v", f"-arch={arch}", str(code), "-o", str(tmp_path / "out")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        assert "0 bytes spill stores, 0 bytes spill loads" in said, name


def test_numbers_are_not_flushed_to_zero(texts: dict[str, str]) -> None:
    assert not [name for name, code in texts.items() if ".ftz" in code]
