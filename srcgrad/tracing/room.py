"""Room on the stack for a trace: converted code has several frames where the user's has one, so that a recursion which
Python would run to its end met the recursion limit a quarter of the way down.

A trace for which that is not enough is made again in a thread with a larger stack.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from srcgrad.boundary import from_outside
from srcgrad.ir.locks import new_lock

Made = TypeVar("Made")

FRAMES = 3000
"""The recursion limit of a trace: what C has beside these frames took up to 6 MB of the stack."""
STACK = 8 << 20
MORE: Final = 8
"""How many frames of converted code there may be, at most, for one of the user's."""
MOST: Final = 100_000
"""The highest recursion limit of a trace."""
BYTES: Final = 4096
"""What a frame takes of the stack, twice over."""
_LOCK = new_lock()
_USERS: list[int] = []
"""The limits that traces in progress, in any thread, have found."""
_LIMIT: list[int] = []
"""The limit that they have set last."""
_DEEP: contextvars.ContextVar[int] = contextvars.ContextVar("deep", default=0)
"""How many frames the stack of this thread has been made for."""


@contextmanager
def room() -> Iterator[None]:
    """A higher recursion limit, where the stack is known to have place for it; the outermost trace gives it back."""
    frames = _DEEP.get() or (FRAMES if is_large() else 0)
    if not frames:
        yield
        return
    with _LOCK:
        _USERS.append(sys.getrecursionlimit())
        if _USERS[-1] < frames:
            sys.setrecursionlimit(frames)
            _LIMIT[:] = [frames]
    try:
        yield
    finally:
        with _LOCK:
            found = _USERS.pop()
            if [sys.getrecursionlimit()] == _LIMIT and not _USERS:  # not if the function has set one
                sys.setrecursionlimit(found)


def with_more_room(attempt: Callable[[], Made]) -> Made:
    """What ``attempt`` gives, which is made again with a larger stack where it ends with a `RecursionError`."""
    try:
        return attempt()
    except RecursionError as error:
        if from_outside(error) or _DEEP.get():
            raise
        error.with_traceback(None)
        overflow = error
    frames = min(MOST, MORE * (_USERS[:1] or [sys.getrecursionlimit()])[0])
    found: list[Any] = []

    def run() -> None:
        _DEEP.set(frames)
        try:
            found.append((attempt(), None))
        except BaseException as error:  # which is raised where the caller waits
            found.append((None, error))

    if not started(contextvars.copy_context().run, run, STACK + BYTES * frames):
        raise overflow
    result, failure = found[0]
    if failure is not None:
        raise failure
    return result  # type: ignore[no-any-return]


def started(call: Callable[..., Any], argument: Any, size: int) -> bool:
    """Run a function to its end in a thread with a stack of that size; whether there could be one."""
    thread = threading.Thread(target=call, args=(argument,), daemon=True)
    with _LOCK:
        try:
            before = threading.stack_size(size)
        except (ValueError, RuntimeError):
            return False
        try:
            thread.start()
        except RuntimeError:
            return False
        finally:
            threading.stack_size(before)
    thread.join()
    return True


def is_large() -> bool:
    """Whether the stack of this thread has 8 MB: of threads that is only known where the program asked for it."""
    if threading.current_thread() is not threading.main_thread():
        return threading.stack_size() >= STACK
    if find_spec("resource") is None:
        return False
    import resource

    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return soft == resource.RLIM_INFINITY or soft >= STACK
