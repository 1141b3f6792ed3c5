"""Generated functions as one complete Python module, for people to read, keep and run."""

from __future__ import annotations

from collections.abc import Sequence

from srcgrad.backends.numpy.codegen import generate
from srcgrad.backends.numpy.expressions import HELPERS, helper_sources, scipy_modules
from srcgrad.backends.numpy.literals import Names, array_text
from srcgrad.ir.core import Function


def module_source(functions: Function | Sequence[Function], title: str = "") -> str:
    """The text of a module that defines the functions and needs NumPy only, or SciPy where an op does.

    A function with one result returns it bare, another one a tuple. ``title`` becomes the module's docstring.

    Raises:
        UnsupportedError: an op that the NumPy backend cannot run.
    """
    if isinstance(functions, Function):
        functions = [functions]
    names = Names(HELPERS)
    programs = [generate(function, names, bare=True) for function in functions]
    helpers = helper_sources(dict.fromkeys(name for program in programs for name in program.helpers))
    libraries = {module for program in programs for module in program.scipy} | set(scipy_modules(helpers.values()))
    head = ["from __future__ import annotations\n"] if helpers else []
    if helpers:
        head.append("from typing import Any\n")
    head.append("import numpy as np")
    head += [f"import {module}" for module in sorted(libraries)]
    parts = ["\n".join(head)]
    constants = [f"{name} = {array_text(array)}" for program in programs for name, array in program.constants.items()]
    if constants:
        parts.append("\n".join(constants))
    parts += [text.rstrip() for text in helpers.values()]
    parts += [program.text.rstrip() for program in programs]
    docstring = f'"""{title}"""\n\n' if title else ""
    return docstring + "\n\n\n".join(parts) + "\n"
