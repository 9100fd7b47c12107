"""Tests of the modules that an import loads, and of the truth of the type stubs."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import opscope
import pytest
from programs import run_code, run_snippet

FOLDER = Path(opscope.__file__).parent
MODULES = {
    "opscope.acl": "acl/__init__.pyi",
    "opscope.acl.rt": "acl/rt.pyi",
    "opscope.acl.mdl": "acl/mdl.pyi",
    "opscope.acl.media": "acl/media.pyi",
    "opscope.acl.op": "acl/op.pyi",
    "opscope.acl.util": "acl/util.pyi",
}
HEAVY = ("numpy", "ctypes", "asyncio", "multiprocessing", "importlib.metadata")


def test_an_import_loads_nothing_heavy() -> None:
    loaded = run_snippet("result = sorted(sys.modules)")
    assert "opscope._native" in loaded
    assert not [name for name in HEAVY if name in loaded]


def test_the_package_alone_loads_no_extension() -> None:
    code = "import opscope\nassert 'opscope._native' not in sys.modules, 'loaded'"
    done = run_code(f"import subprocess\nsubprocess.run([sys.executable, '-c', {'import sys; ' + code!r}], check=True)")
    assert done.returncode == 0


def test_every_way_to_import() -> None:
    result = run_snippet(
        """
import opscope
from opscope import acl as other
import opscope.acl.rt as rt
result = [other is acl, opscope.acl is acl, acl.rt is rt, acl.mdl.init_dump(), bool(opscope.__version__)]
"""
    )
    assert result == [True, True, True, 100001, True]


def stubbed(name: str) -> dict[str, list[str]]:
    """Functions of a stub with the names of their parameters."""
    tree = ast.parse((FOLDER / MODULES[name]).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: [arg.arg for arg in (*node.args.args, node.args.vararg) if arg] for node in functions}


@pytest.mark.parametrize("name", MODULES)
def test_stubs_agree_with_the_module(name: str) -> None:
    module = importlib.import_module(name)
    functions = {key: value for key, value in vars(module).items() if callable(value) and not key.startswith("_")}
    found = {}
    for key, function in functions.items():
        if inspect.isclass(function):
            continue
        found[key] = [parameter.lstrip("_") for parameter in inspect.signature(function).parameters]
    assert stubbed(name) == found


def test_the_package_is_typed() -> None:
    assert (FOLDER / "py.typed").is_file()
