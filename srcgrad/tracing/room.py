"""Room on the stack for a trace: converted code has several frames where the user's has one, so that a recursion which
Python would run to its end met the recursion limit a quarter of the way down.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from srcgrad.ir.locks import new_lock

FRAMES = 3000
"""The recursion limit of a trace: what C has beside these frames took up to 6 MB of the stack."""
STACK = 8 << 20
_LOCK = new_lock()
_USERS: list[int] = []
"""The limits that traces in progress, in any thread, have found."""


@contextmanager
def room() -> Iterator[None]:
    """A higher recursion limit, where the stack is known to have place for it; the outermost trace gives it back."""
    if not is_large():
        yield
        return
    with _LOCK:
        _USERS.append(sys.getrecursionlimit())
        if _USERS[-1] < FRAMES:
            sys.setrecursionlimit(FRAMES)
    try:
        yield
    finally:
        with _LOCK:
            found = _USERS.pop()
            if sys.getrecursionlimit() == FRAMES and not _USERS:  # not if the function has set one
                sys.setrecursionlimit(found)


def is_large() -> bool:
    """Whether the stack of this thread has 8 MB: of threads that is only known where the program asked for it."""
    if threading.current_thread() is not threading.main_thread():
        return threading.stack_size() >= STACK
    if find_spec("resource") is None:
        return False
    import resource

    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return soft == resource.RLIM_INFINITY or soft >= STACK
