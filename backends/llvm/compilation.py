"""The modules of a long program, compiled on two processors while the last of them is still being written.

A module that is ready early is handed to a second thread of Python; when all is written, the caller takes from what is
left too. The modules, and so their object files and the names of these on disk, depend on the program alone. The thread
lives no longer than the compilation, and says nothing of errors: what it has not done the caller does, and so meets the
error itself. That is also what happens in a process that is forked meanwhile, which has no second thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Sequence
from typing import Self

from srcgrad.backends.llvm import native, objects, workers
from srcgrad.backends.llvm.target import TARGET, is_long


class _Module:
    """The text of a module, and its object file once it is there."""

    __slots__ = ("code", "is_new", "key", "text")

    def __init__(self, text: str, store: objects.Store) -> None:
        self.text = text
        self.key = objects.fingerprint(text, TARGET)
        self.code = store.load(self.key)
        self.is_new = self.code is None


class Compilation:
    """The modules of one program on their way to object files; to be used in a ``with`` statement."""

    def __init__(self) -> None:
        self.store = objects.current()
        self.modules: list[_Module] = []
        self.waiting: deque[_Module] = deque()
        self.thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.waiting.clear()
        if self.thread is not None:
            self.thread.join()

    def begin(self, text: str) -> None:
        """Have a module compiled while others are written."""
        native.prepare(text)
        module = _Module(text, self.store)
        self.modules.append(module)
        if module.is_new:
            self.waiting.append(module)
            self.start()

    def finished(self, *texts: str) -> Sequence[str | bytes]:
        """All modules in their order, these the last: object files, or a text that is the only one."""
        if not self.modules and not (len(texts) > 1 and is_long(*texts)):
            return texts
        for text in texts:
            self.begin(text)
        while (module := self.next(last=self.thread is not None)) is not None:
            with native.IN_LLVM:
                module.code = native.machine_code(module.text)
        if self.thread is not None:
            self.thread.join()
        return [self.code(module) for module in self.modules]

    def code(self, module: _Module) -> bytes:
        """A module's object file, which the disk has from now on."""
        if module.code is None:
            with native.IN_LLVM:
                module.code = native.machine_code(module.text)
        if module.is_new:
            self.store.save(module.key, module.code)
        return module.code

    def next(self, last: bool) -> _Module | None:
        """A module that waits, which is now the caller's to compile: two threads begin at the two ends."""
        try:
            return self.waiting.pop() if last else self.waiting.popleft()
        except IndexError:
            return None

    # --- the second thread -------------------------------------------------------------------------
    def start(self) -> None:
        """Begin it, if it is not at work and there is a processor for it."""
        if self.thread is not None and self.thread.is_alive():
            return
        if workers.wanted(os.environ.get(workers.VARIABLE)) == 1:
            return
        self.thread = threading.Thread(target=self.aside, name="srcgrad compilation")
        try:
            self.thread.start()
        except RuntimeError:  # no more threads can be had, or the interpreter ends
            self.thread = None

    def aside(self) -> None:
        with contextlib.suppress(Exception):  # which the caller meets too
            while (module := self.next(last=False)) is not None:
                with native.ASIDE_IN_LLVM:
                    module.code = native.machine_code(module.text)
