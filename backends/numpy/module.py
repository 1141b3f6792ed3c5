"""Generated functions as one complete Python module, for people to read, keep and run."""

from __future__ import annotations

from collections.abc import Sequence

from srcgrad.backends.numpy.codegen import generate
from srcgrad.backends.numpy.expressions import HELPERS, helper_sources, scipy_modules
from srcgrad.backends.numpy.literals import Names, array_text
from srcgrad.ir.core import Function


def module_source(
    functions: Function | Sequence[Function],
    title: str = "",
    parts: Sequence[str] = (),
    imports: Sequence[str] = (),
    taken: Sequence[str] = (),
) -> str:
    """The text of a module that defines the functions and needs NumPy only, or SciPy where an op does.

    A function with one result returns it bare, another one a tuple. ``title`` becomes the module's docstring.
    ``parts``: texts that stand before the functions, with the sites that they call; they need these modules of Python's
    ``imports``, and have the names ``taken``.

    Raises:
        UnsupportedError: an op that the NumPy backend cannot run.
    """
    if isinstance(functions, Function):
        functions = [functions]
    names = Names([*HELPERS, *taken])
    programs = [generate(function, names, bare=True) for function in functions]
    helpers = helper_sources(dict.fromkeys(name for program in programs for name in program.helpers))
    libraries = {module for program in programs for module in program.scipy} | set(scipy_modules(helpers.values()))
    head = ["from __future__ import annotations\n"] if helpers else []
    plain = [f"import {module}" for module in sorted(imports)] + ["from typing import Any"] * bool(helpers)
    if plain:
        head.append("\n".join(plain) + "\n")
    head.append("import numpy as np")
    head += [f"import {module}" for module in sorted(libraries)]
    texts = ["\n".join(head)]
    constants = [f"{name} = {array_text(array)}" for program in programs for name, array in program.constants.items()]
    if constants:
        texts.append("\n".join(constants))
    texts += [text.rstrip() for text in helpers.values()]
    texts += parts
    texts += [program.text.rstrip() for program in programs]
    docstring = f'"""{title}"""\n\n' if title else ""
    return docstring + "\n\n\n".join(texts) + "\n"
