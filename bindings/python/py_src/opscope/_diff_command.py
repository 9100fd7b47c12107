"""`python -m opscope diff` for sides that are functions in a Python module:
`package.module:function`.

The sides are dumped here, in a private directory; the command line compares the dumps in a separate
process, which ends before they are removed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from ._argument import reason, shown
from ._child import command
from ._errors import UNREADABLE, USAGE, FileError, OpscopeError, UsageError
from ._visible import visible

COMMAND = "diff"
INTERRUPTED = 130
# Both functions start with this seed, so that they draw the same weights.
_SEED = 0
# A dotted module name, then the function, or an attribute path to it.
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_USAGE = "usage: python -m opscope diff TARGET GOLDEN [OPTIONS]"
_EXPECTED = "a module, another callable, an ExportedProgram or a path, or one of these and its inputs as a pair"
# Options that do not apply to dumps.
_OWN_OPTIONS = ("--save", "--engine")
_REPEAT = "--repeat"
_N_RUNS_MAX = 1000
# Exit codes: something varies, and not everything could be compared.
FOUND, PARTIAL = 1, 4


def is_ours(arguments: Sequence[str]) -> bool:
    """Whether a command names a function; the program handles all others."""
    return len(arguments) > 1 and arguments[0] == COMMAND and any(map(_names_function, arguments[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs the command, given without its name; returns the exit code."""
    try:
        with _interrupted_by_signals():
            return _run(list(arguments))
    except OpscopeError as error:
        return _tell(str(error), error.exit_code)
    except TypeError as error:
        # Checks the types of the sides and their inputs first.
        if _is_raised_here(error.__traceback__):
            return _tell(str(error), USAGE)
        return _tell(_told(error), UNREADABLE)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _tell(_told(error), UNREADABLE)


def _run(arguments: list[str]) -> int:
    if (n_runs := _n_runs(arguments)) is not None:
        return _repeated(arguments, n_runs)
    sides, options = arguments[:2], arguments[2:]
    if len(sides) < 2 or any(side.startswith("-") for side in sides):
        raise UsageError(f"`{COMMAND}`: the two sides are expected before any option; {_USAGE}", code="usage")
    options, own = _split(options)
    # Reports a mistake in the options before both sides run.
    if (told := _mistake_in(options)) is not None:
        sys.stderr.write(told)
        return USAGE

    # Standard output belongs to the result.
    with contextlib.redirect_stdout(sys.stderr):
        from .torch import _diff

        given = [_loaded(label, side) for label, side in zip((_diff.TARGET, _diff.GOLDEN), sides)]
        try:
            place = _diff.DumpFolder(own.get("--save"))
        except FileError as error:
            # The caller must choose a writable directory.
            return _tell(str(error), USAGE)
        with place as folder:
            paths = _diff.recorded(given[0].value, given[1].value, _shared(given), folder.path, own.get("--engine"))
            return _compared(paths, options)


def _n_runs(arguments: list[str]) -> int | None:
    """How often a single side is to run, if that is asked for."""
    for word, value in zip(arguments, [*arguments[1:], ""]):
        name, has_value, own = word.partition("=")
        if name != _REPEAT:
            continue
        text = own if has_value else value
        if not text.isascii() or not text.isdigit() or not 2 <= int(text) <= _N_RUNS_MAX:
            raise UsageError(f"`{_REPEAT}`: a number from 2 to {_N_RUNS_MAX} is expected, got `{text}`", code="usage")
        return int(text)
    return None


def _repeated(arguments: list[str], n_runs: int) -> int:
    """Runs the function's side several times, and names the operators that vary."""
    words = iter(arguments)
    sides, json_path = [], None
    for word in words:
        name, has_value, value = word.partition("=")
        if name in (_REPEAT, "--json"):
            value = value if has_value else next(words, "")
            json_path = value if name == "--json" else json_path
        elif word.startswith("-"):
            raise UsageError(f"`{word}`: expected `--json` or nothing next to `{_REPEAT}`", code="usage")
        else:
            sides.append(word)
    if len(sides) != 1:
        raise UsageError(f"`{_REPEAT}`: a single side is expected, got {len(sides)}", code="usage")
    with contextlib.redirect_stdout(sys.stderr):
        from .torch._repeat import repeat

        given = _loaded("target", sides[0])
        found = repeat(given.value, _shared([given]), n_runs)
    if json_path is not None:
        _write_json(json_path, json.dumps({"model": sides[0], **found.document()}))
    if json_path != "-":
        print(visible(found.verdict))
        for one in found.operators:
            origin = "itself" if one.n_runs_same_inputs else "inherits"
            print(visible(f"  {one.op_name}  {one.op_type}  step {one.step}  rel_l2 {one.rel_l2:.3e}  {origin}"))
    if found.operators:
        return FOUND
    return PARTIAL if found.n_not_compared else 0


def _write_json(path: str, text: str) -> None:
    if path == "-":
        print(text)
        return
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FileError(
            f"--json: cannot write `{path}`: {error.strerror}", code="io", path=path, errno=error.errno
        ) from error


def _split(options: list[str]) -> tuple[list[str], dict[str, str]]:
    """The options of comparing two dumps, and this command's own with their values."""
    rest, own = [], {}
    words = iter(options)
    for word in words:
        name, has_value, value = word.partition("=")
        if name not in _OWN_OPTIONS:
            rest.append(word)
            continue
        value = value if has_value else next(words, "")
        if not value:
            raise UsageError(f"`{name}`: a value is expected", code="usage")
        own[name] = value
    return rest, own


def _mistake_in(options: list[str]) -> str | None:
    """The program's complaints about its options. The dumps do not exist, so it reads nothing."""
    nowhere = os.path.join(os.devnull, "nowhere")
    done = subprocess.run(
        command([COMMAND, nowhere, nowhere, *options]), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.stderr.decode("utf-8", "replace") if done.returncode == USAGE else None


def _compared(paths: tuple[str, str], options: list[str]) -> int:
    child = subprocess.Popen(command([COMMAND, *paths, *options]))
    # Ctrl-C reaches the child from the terminal, and the child decides how to react.
    with _handled({signal.SIGINT: _ignored, **dict.fromkeys(_terminations(), _forwarder(child))}):
        code = child.wait()
    return code if code >= 0 else 128 - code


def _ignored(_number: int, _frame: Any) -> None:
    pass


def _forwarder(child: subprocess.Popen[bytes]) -> Callable[[int, Any], None]:
    def forward(number: int, _frame: Any) -> None:
        child.send_signal(number)

    return forward


class _Given(NamedTuple):
    """A side, with its inputs if it provides any."""

    label: str
    side: str
    value: Any
    inputs: Any = None


def _loaded(label: str, side: str) -> _Given:
    if not _names_function(side):
        return _Given(label, side, side)
    value = _called(label, side)
    if not isinstance(value, tuple):
        return _Given(label, side, _checked(label, side, value))
    if len(value) != 2:
        raise _unexpected(label, side, value)
    return _Given(label, side, _checked(label, side, value[0]), value[1])


def _called(label: str, side: str) -> Any:
    module_name, _, path = side.partition(":")
    place = os.getcwd()
    # Like `python -m`, unlike the installed program, searches the current directory first.
    if sys.path[:1] not in ([""], [place]) and not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, place)
    found: Any = _imported(label, side, module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            of = getattr(found, "__file__", None) or module_name
            raise UsageError(
                f"{label}: `{side}`: no `{name}` in `{of}`; a function without arguments is expected", code="usage"
            )
        found = getattr(found, name)
    if not callable(found):
        raise UsageError(
            f"{label}: `{side}`: a function without arguments is expected, got {shown(found)} ({type(found).__name__})",
            code="usage",
        )
    _seed()
    try:
        return found()
    except Exception as error:
        raise _raised(f"{label}: `{side}()` raised {_told(error)}; expected {_EXPECTED}") from error


def _imported(label: str, side: str, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The missing module may be an import of the module itself.
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"{label}: `{side}`: there is no module `{error.name}`; one is expected in `{os.getcwd()}` or "
                "where Python looks for modules",
                code="usage",
            ) from error
        raise _raised(f"{label}: `{side}`: importing `{name}` raised {_told(error)}") from error
    except Exception as error:
        raise _raised(f"{label}: `{side}`: importing `{name}` raised {_told(error)}") from error


def _checked(label: str, side: str, value: Any) -> Any:
    if not callable(value) and not isinstance(value, (str, os.PathLike)):
        import torch

        # An exported program is not callable.
        if not isinstance(value, torch.export.ExportedProgram):
            raise _unexpected(label, side, value)
    return value


def _unexpected(label: str, side: str, value: Any) -> UsageError:
    return UsageError(
        f"{label}: `{side}()` returned {shown(value)} ({type(value).__name__}); expected {_EXPECTED}", code="usage"
    )


def _shared(given: list[_Given]) -> Any:
    """The inputs of both sides, provided by one of them or equal on both."""
    from .torch import _call_inputs

    brought = [side for side in given if side.inputs is not None]
    if not brought:
        sides = " nor ".join(f"`{side.side}`" for side in given)
        raise UsageError(
            f"neither {sides} provides inputs: a function is expected to return a pair of a module and its inputs",
            code="usage",
        )
    if len(brought) == 2 and not _call_inputs.are_equal(*(side.inputs for side in brought)):
        raise UsageError(
            f"`{given[0].side}` and `{given[1].side}` provide different inputs: equal ones are expected, or None from "
            "one of them",
            code="usage",
        )
    return brought[0].inputs


def _seed() -> None:
    import numpy
    import torch

    torch.manual_seed(_SEED)
    random.seed(_SEED)
    numpy.random.seed(_SEED)


def _names_function(text: str) -> bool:
    # A file name may contain a colon.
    return _FUNCTION.fullmatch(text) is not None and not os.path.lexists(text)


def _raised(message: str) -> OpscopeError:
    return OpscopeError(message, code="raised")


def _told(error: BaseException) -> str:
    """An error with the line of the program that raised it."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_library(frame.filename)]
    place = (own or frames)[-1] if frames else None
    return f"{reason(error)}{f' at {place.filename}:{place.lineno}' if place else ''}{notes}"


def _is_library(path: str) -> bool:
    here = os.path.dirname(__file__) + os.sep
    return path.startswith(here) or "site-packages" in path or path.startswith("<frozen")


def _is_raised_here(place: TracebackType | None) -> bool:
    frames = traceback.extract_tb(place)
    return bool(frames) and frames[-1].filename.startswith(os.path.dirname(__file__) + os.sep)


def _tell(message: str, code: int) -> int:
    print(f"opscope: {visible(message)}", file=sys.stderr)
    return code


def _terminations() -> list[signal.Signals]:
    return [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextlib.contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Stops the work like Ctrl-C, so that no dump is left behind."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with _handled(dict.fromkeys(_terminations(), interrupt)):
        yield


@contextlib.contextmanager
def _handled(handlers: dict[Any, Any]) -> Iterator[None]:
    # Signals that `nohup` ignores stay ignored.
    before = {n: signal.getsignal(n) for n in handlers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, handlers[number])
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
