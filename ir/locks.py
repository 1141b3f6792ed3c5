"""Locks of modules: for threads, and safe from forks and from what interrupts a thread."""

from __future__ import annotations

import os
import threading


def new_lock() -> threading.RLock:
    """A lock that a thread may take twice, and that is free in a forked process, whoever had it.

    Signal handlers and finalizers run between any two statements of a thread, and a fork may come there: what the lock
    guards must hold at each. The interpreter never forgets one, so objects that come and go share their module's.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock
