"""An operator in C++ that writes beyond the end of its own output, compiled once for all tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

SOURCE = """
#include <torch/library.h>
#include <ATen/ATen.h>

// Fills `out`, and `excess` elements behind its end.
void overrun(at::Tensor out, int64_t excess) {
  float* data = out.data_ptr<float>();
  for (int64_t i = 0; i < out.numel() + excess; i++) data[i] = 5.0f + i;
}

// Gives `x + 1`, and writes to `x` behind its data pointer, which it says it does not.
at::Tensor sneaky(const at::Tensor& x) {
  at::Tensor y = x + 1;
  const_cast<float*>(x.const_data_ptr<float>())[1] = -8.0f;
  return y;
}

at::Tensor refuse(const at::Tensor& x, int64_t code) {
  TORCH_CHECK(code == 0, "code ", code, " is refused");
  return x.clone();
}

TORCH_LIBRARY(opscope_overrun, m) {
  m.def("overrun(Tensor(a!) out, int excess) -> ()");
  m.def("sneaky(Tensor x) -> Tensor");
  m.def("refuse(Tensor x, int code) -> Tensor");
}

TORCH_LIBRARY_IMPL(opscope_overrun, CPU, m) {
  m.impl("overrun", overrun);
  m.impl("sneaky", sneaky);
  m.impl("refuse", refuse);
}
"""


def load(folder: Path) -> None:
    """Makes `torch.ops.opscope_overrun` known. Skips the test where there is no compiler."""
    if hasattr(torch.ops.opscope_overrun, "sneaky"):
        return
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    from torch.utils.cpp_extension import include_paths, library_paths

    source, library = folder / "overrun.cpp", folder / "liboverrun.so"
    source.write_text(SOURCE, encoding="utf-8")
    command = [compiler, "-std=c++20", "-O0", "-shared", "-fPIC", str(source), "-o", str(library)]
    command += [f"-I{path}" for path in include_paths()] + [f"-L{path}" for path in library_paths()]
    command += ["-lc10", "-ltorch_cpu", "-ltorch", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    torch.ops.load_library(str(library))
    torch.library.register_fake("opscope_overrun::sneaky", lambda x: torch.empty_like(x))
    torch.library.register_fake("opscope_overrun::refuse", lambda x, code: torch.empty_like(x))
    torch.library.register_fake("opscope_overrun::overrun", lambda out, excess: None)
