from . import acl as acl
from . import torchair as torchair

__version__: str
