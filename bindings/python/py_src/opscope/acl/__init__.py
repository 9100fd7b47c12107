"""AscendCL's Python interface, as pyACL has it: `import opscope.acl as acl`.

Functions take what pyACL's take and return what pyACL's return: a code, a value, or a tuple of values and
a code. A code of 0 is success. Handles and addresses are integers.
"""

from opscope._native.base import *  # noqa: F403

from . import mdl as mdl
from . import media as media
from . import op as op
from . import rt as rt
from . import util as util
from ._log import app_log as app_log
