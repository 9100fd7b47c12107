from . import acl as acl

__version__: str
