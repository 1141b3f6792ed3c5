"""Programs as Python functions: generated, compiled, and known to tracebacks."""

from __future__ import annotations

import itertools
import linecache
import weakref
from typing import Any, Final

import numpy as np

from srcgrad.backends.base import Backend, Executable
from srcgrad.backends.numpy.codegen import generate
from srcgrad.backends.numpy.expressions import SITES
from srcgrad.ir.core import Function

_numbers: Final = itertools.count()


class NumpyBackend(Backend):
    """Runs functions as generated NumPy source: what every op means."""

    name = "numpy"

    def compile(self, function: Function, sites: Any = None) -> Executable:
        program = generate(function)
        # Frames of such a file are not the user's (ir/source.py).
        file = f"<srcgrad {next(_numbers)} {program.name}>"
        names = program.namespace()
        names[SITES] = sites
        exec(compile(program.text, file, "exec"), names)
        # As a decorator errstate costs half of what it does in a with statement.
        executable = Executable(np.errstate(all="ignore")(names[program.name]), program.text)
        linecache.cache[file] = (len(program.text), None, program.text.splitlines(keepends=True), file)
        weakref.finalize(executable, linecache.cache.pop, file, None).atexit = False
        return executable


BACKEND: Final = NumpyBackend()
