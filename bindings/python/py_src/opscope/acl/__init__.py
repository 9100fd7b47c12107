"""AscendCL's Python interface, compatible with pyACL: `import opscope.acl as acl`.

Functions have pyACL's arguments and results: a code, a value, or a tuple of values and a code. Code
0 means success. Handles and addresses are integers.
"""

from opscope._native.base import *  # noqa: F403

from . import mdl as mdl
from . import media as media
from . import op as op
from . import rt as rt
from . import util as util
from ._log import app_log as app_log
