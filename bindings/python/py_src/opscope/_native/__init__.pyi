from . import command_line as command_line
from . import reading as reading

__version__: str
