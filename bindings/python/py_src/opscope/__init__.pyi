from . import acl as acl
from . import cluster as cluster
from . import mindspore as mindspore
from . import torch as torch
from . import torchair as torchair
from ._compare import Comparison as Comparison
from ._compare import compare as compare
from ._convert import Conversion as Conversion
from ._convert import convert as convert
from ._dump import Dump as Dump
from ._dump import open as open
from ._errors import AccessError as AccessError
from ._errors import DamagedError as DamagedError
from ._errors import FileError as FileError
from ._errors import NotFoundError as NotFoundError
from ._errors import OpscopeError as OpscopeError
from ._errors import UnsupportedError as UnsupportedError
from ._errors import UsageError as UsageError
from ._passed_over import PassedOver as PassedOver
from ._record import Record as Record
from ._statistics import Statistics as Statistics
from ._table import ArrowTable as ArrowTable
from ._view import View as View
from ._view import view as view

__version__: str
