"""`opscope compare|index … --on ray`."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from .._errors import UNREADABLE, USAGE, OpscopeError, UsageError
from ._driver import Driver, parts_of, tables_of
from ._progress import tell

INTERRUPTED = 130
COMMANDS = ("compare", "index")
OPTION = "--on"
_SCHEME = "ray"
# Options for the process with the result only: option, and whether a value follows.
_OF_RESULT = {
    "--json": True,
    "--jsonl": True,
    "--csv": True,
    "--xlsx": True,
    "--html": True,
    "--parquet": True,
    "--export-onnx": True,
    "--export-model-explorer": True,
    "--thresholds": True,
    "--top": True,
    "-n": True,
    "--fail-on": True,
    "--allow-skip": True,
    "--jobs": True,
    "--force": False,
    "--quiet": False,
    "-q": False,
    "--view": False,
    "--compare": False,
}
# In `opscope index` this option takes no value.
_OF_RESULT_OF_INDEX = {**_OF_RESULT, "--json": False}
# Options that are incompatible with `--on`.
_OTHER_WAYS = ("--shard", "--unit", "--list-units", "--merge", "--from", "--export-mapping")


def is_ours(arguments: Sequence[str]) -> bool:
    """Whether a command is to run on a cluster."""
    return bool(arguments) and arguments[0] in COMMANDS and _position(arguments, OPTION) is not None


def run(arguments: Sequence[str]) -> int:
    """Runs a command; returns the exit code."""
    try:
        return _run(list(arguments))
    except OpscopeError as error:
        tell(str(error))
        return error.exit_code
    except OSError as error:
        # For example the directory of parts in a read-only dump.
        tell(str(error))
        return UNREADABLE
    except KeyboardInterrupt:
        tell("interrupted; complete parts stay, and the next call reuses them")
        return INTERRUPTED


def _run(arguments: list[str]) -> int:
    if not is_ours(arguments):
        raise UsageError("expected: compare|index … --on ray[://ADDRESS]", code="usage")
    for option in _OTHER_WAYS:
        if _position(arguments, option) is not None:
            raise UsageError(f"`{option}` and `{OPTION}` exclude each other", code="usage")
    address = _address(_taken(arguments, OPTION) or "")
    # A scheduler ends a driver by SIGTERM, and its tasks should end as well.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command, *_ = arguments
    if command == "index":
        dumps = _positional(arguments[1:])
        # As two words, in whichever form it was given.
        arguments += ["--out", tables_of(dumps, _taken(arguments, "--out"))]
        parts = None
    else:
        given = _taken(arguments, "--parts")
        targets = _positional(arguments[1:])
        if len(targets) < 2:
            raise UsageError("TARGET and GOLDEN are required", code="usage")
        parts = parts_of(targets[0], given)
    limit = _taken(arguments, "--read-limit")
    Driver(_of_tasks(arguments), parts, address, read_limit=_number(limit)).run()
    from .._native import command_line

    last = ["--merge"] if parts is None else ["--merge", "--parts", parts]
    # The rest is the program's own, and ends by Ctrl-C as it does.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return int(command_line.run(["opscope", *arguments, *last]))


def _address(text: str) -> str | None:
    scheme, _, rest = text.partition("://")
    if scheme != _SCHEME or (rest == "" and text != _SCHEME):
        raise UsageError(f"`{OPTION} {text}`: expected `ray` or `ray://HOST:PORT`", code="usage")
    return rest or None


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise UsageError(f"`--read-limit {text}`: expected a number of megabytes", code="usage") from None


def _position(arguments: Sequence[str], option: str) -> int | None:
    for at, word in enumerate(arguments):
        if word == "--":
            return None
        if word == option or word.startswith(f"{option}="):
            return at
    return None


def _taken(arguments: list[str], option: str) -> str | None:
    """Removes an option from the arguments and returns its value."""
    at = _position(arguments, option)
    if at is None:
        return None
    word = arguments.pop(at)
    if "=" in word:
        return word.partition("=")[2]
    if at == len(arguments):
        raise UsageError(f"`{option}` needs a value", code="usage")
    return arguments.pop(at)


def _of_tasks(arguments: Sequence[str]) -> list[str]:
    """The arguments without those about the result."""
    own = _OF_RESULT_OF_INDEX if arguments[0] == "index" else _OF_RESULT
    kept, words = [], iter(arguments)
    for word in words:
        name, _, value = word.partition("=")
        if name not in own:
            kept.append(word)
        elif own[name] and not value:
            next(words, None)
    return kept


# Options with a value, in addition to those of the result.
_WITH_VALUE = (
    "--reference",
    "--mapping",
    "--fusion",
    "--golden-fusion",
    "--steps",
    "--ranks",
    "--filter",
    "--op-type",
    "--parts",
    "--read-limit",
    "--out",
    "--dir-mode",
    "--file-mode",
    "--host",
    "--port",
)


def _positional(arguments: Sequence[str]) -> list[str]:
    found, words = [], iter(_of_tasks(["compare", *arguments])[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            found.append(os.fspath(word))
    return found
