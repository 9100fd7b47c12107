"""Cases of the property test of aclnn's operators, a file for each family of the table."""

from __future__ import annotations

import importlib
import pkgutil

from aclnn import Case


def all_cases() -> list[Case]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return [case for module in modules for case in module.CASES]
