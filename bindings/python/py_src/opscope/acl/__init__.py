"""AscendCL's Python interface, as pyACL has it: `import opscope.acl as acl`.

Functions take what pyACL's take and return what pyACL's return: a code, a value, or a tuple of values and
a code. A code of 0 is success. Handles and addresses are integers.
"""

from opscope._native.base import *  # noqa: F403

from . import mdl, op, rt, util
from ._log import app_log

__all__ = [name for name in dir() if not name.startswith("_")]
