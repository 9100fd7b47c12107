"""The command line: `python -m opscope` is the program `opscope`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

PROGRAM = "opscope"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, by default this process's, and returns its exit code.

    From now on signals are handled as the program handles them, so use a separate process.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["diff"]:
        from opscope import _diff_command

        if _diff_command.is_ours(given):
            # Python code runs, so signals stay Python's.
            _open_standard_streams()
            return _diff_command.run(given[1:])
    if any(word == "--on" or word.startswith("--on=") for word in given):
        from opscope.cluster import _command

        if _command.is_ours(given):
            _open_standard_streams()
            return _command.run(given)
    if given[:1] == ["doctor"]:
        # The interpreter to check is this one; in an environment that is not active, PATH has another.
        os.environ.setdefault("OPSCOPE_PYTHON", sys.executable)
    _behave_like_a_program()
    from opscope._native import command_line

    return int(command_line.run([PROGRAM, *given]))


def _behave_like_a_program() -> None:
    """Undoes changes that the interpreter made at startup."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Python would only record the signal, and the command would continue.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGXFSZ"):
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    _open_standard_streams()


def _open_standard_streams() -> None:
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # Otherwise a file opened later would replace the closed standard stream.
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    sys.exit(main())
