"""A program written for TorchAir, with one import changed."""

from __future__ import annotations

from pathlib import Path

import torch
from opscope.torchair import CompilerConfig, get_npu_backend


def test_the_chosen_steps_of_a_model_are_dumped(tmp_path: Path) -> None:
    config = CompilerConfig()
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(tmp_path)
    config.dump_config.dump_mode = "all"
    config.dump_config.dump_step = "0|2"
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    backend = get_npu_backend(compiler_config=config)
    compiled = torch.compile(model, backend=backend)
    x = torch.randn(3, 8)
    with torch.no_grad():
        results = [compiled(x) for _ in range(4)]
        assert all(torch.equal(result, model(x)) for result in results)
    (made,) = [made.backend for made in backend._made]
    report = made.finish()
    assert (report["n_steps"], report["n_steps_active"]) == (4, 2)
    (graph,) = tmp_path.glob("worldsize1_global_rank0/*/0/graph_*/*")
    assert sorted(path.name for path in graph.iterdir()) == ["0", "2"]
    types = sorted(path.name.split(".")[0] for path in (graph / "2").iterdir())
    assert types == ["aten_addmm_default"] * 2 + ["aten_relu_default"] + ["aten_t_default"] * 2
