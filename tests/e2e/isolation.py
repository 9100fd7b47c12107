"""Processes that end at once when they turn to the network, in a home directory that is watched."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 600

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_KILL_PROCESS = 0x80000000
_ALLOW = 0x7FFF0000
# The number of `socket`, by machine.
_SOCKET_CALL = {"x86_64": 41, "aarch64": 198}
# IPv4, IPv6, netlink (which resolvers ask for the machine's addresses) and raw packets. Local sockets stay allowed.
_FORBIDDEN_FAMILIES = (2, 10, 16, 17)

# Classic BPF: load a word, jump if equal, return.
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_OFFSET_OF_CALL, _OFFSET_OF_FIRST_ARGUMENT = 0, 16


class _Program(ctypes.Structure):
    _fields_ = (("n_instructions", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


@dataclass(frozen=True)
class Ended:
    """How a process ended, and what it left outside of the folder that it was given to work in."""

    returncode: int
    stdout: str
    stderr: str
    files_at_home: list[str]

    @property
    def has_asked_network(self) -> bool:
        return self.returncode == -signal.SIGSYS


def run(command: Sequence[object], folder: Path, environment: Mapping[str, str]) -> Ended:
    """Run a command in `folder` with an empty home, where opening a network socket kills the process."""
    home = folder / "home"
    home.mkdir()
    places = {name: str(home / name.lower()) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(home), **places, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        preexec_fn=_network_trap(),
    )
    files = sorted(str(path.relative_to(home)) for path in home.rglob("*"))
    return Ended(done.returncode, done.stdout, done.stderr, files)


def _network_trap() -> Callable[[], None]:
    """Called by a new process before it becomes the command. Threads and children of it inherit the trap."""
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = _filter(_SOCKET_CALL[platform.machine()])
    program = _Program(len(instructions) // 8, instructions)

    def install() -> None:
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
        if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")

    return install


def _filter(socket_call: int) -> bytes:
    n_families = len(_FORBIDDEN_FAMILIES)
    lines = [
        (_LOAD, 0, 0, _OFFSET_OF_CALL),
        (_JUMP_IF_EQUAL, 0, n_families + 1, socket_call),
        (_LOAD, 0, 0, _OFFSET_OF_FIRST_ARGUMENT),
    ]
    # Each jumps over those after it and over the permission.
    lines += [(_JUMP_IF_EQUAL, n_families - idx, 0, family) for idx, family in enumerate(_FORBIDDEN_FAMILIES)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _KILL_PROCESS)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
