from . import acl as acl
from . import mindspore as mindspore
from . import torch as torch
from . import torchair as torchair

__version__: str
