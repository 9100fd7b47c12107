"""Locks of the package are free in a fork, even if a thread held them in the parent."""

from __future__ import annotations

import re
from pathlib import Path

import opscope
from programs import run_snippet

PACKAGE = Path(opscope.__file__).parent

HELD = """
import os, signal, threading
from opscope._fork_lock import ForkLock

lock, is_held, is_over = ForkLock(), threading.Event(), threading.Event()

def hold():
    with lock, acl.util._threads_lock:
        is_held.set()
        is_over.wait()

def in_fork(work):
    child = os.fork()
    if child == 0:
        # More than a fork takes; one that hangs is killed, which its parent sees.
        signal.alarm(60)
        work()
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def start_thread():
    thread, ret = acl.util.start_thread(lambda args: None, [])
    assert ret == 0 and acl.util.stop_thread(thread) == 0

def lock_twice():
    for _ in range(2):
        with lock:
            assert not lock.acquire(blocking=False)

thread = threading.Thread(target=hold)
thread.start()
is_held.wait()
result = [in_fork(lock_twice), in_fork(start_thread), lock.acquire(blocking=False)]
is_over.set()
thread.join()
with lock:
    # The fork lets go of what it inherited, and locks its own.
    child = os.fork()
    if child == 0:
        signal.alarm(60)
if child == 0:
    lock_twice()
    os._exit(7)
result += [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lock.acquire(blocking=False)]
"""


def test_a_lock_is_free_in_a_fork() -> None:
    assert run_snippet(HELD) == [7, 7, False, 7, True]


REENTRANT = """
import os, signal, threading
from opscope._fork_lock import ForkLock

lock, is_held, is_over = ForkLock(is_reentrant=True), threading.Event(), threading.Event()

def hold():
    with lock, lock:
        is_held.set()
        is_over.wait()

thread = threading.Thread(target=hold)
thread.start()
is_held.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    with lock, lock:
        os._exit(7)
result = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lock.acquire(blocking=False)]
is_over.set()
thread.join()
with lock, lock:
    result.append(lock.acquire(blocking=False))
"""


def test_a_lock_that_its_thread_may_take_again_is_free_in_a_fork() -> None:
    assert run_snippet(REENTRANT) == [7, False, True]


def test_there_are_no_other_locks() -> None:
    sources = [path for path in PACKAGE.rglob("*.py") if path.name != "_fork_lock.py"]
    assert len(sources) > 50
    assert [path for path in sources if re.search(r"\bR?Lock\(|\bCondition\(|Semaphore\(", path.read_text())] == []
