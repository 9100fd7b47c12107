from . import acl as acl
from . import torch as torch

__version__: str
