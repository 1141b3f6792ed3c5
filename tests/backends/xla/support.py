"""Programs for the tests of the xla backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from srcgrad.backends.xla.backend import BACKEND, XlaExecutable
from srcgrad.ir.core import Builder, Function, Literal, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.parser import parse
from srcgrad.ir.types import ArrayType


def program(text: str) -> Function:
    """A function from its text; the first line may be left at any depth."""
    return parse(text.strip() + "\n")


def one_op(name: str, *operands: Any, known: Sequence[int] = (), **attrs: Any) -> Function:
    """The function that applies one op; the operands at ``known`` are literals of it."""
    builder = Builder()
    values: list[Value] = []
    for k, operand in enumerate(map(np.asarray, operands)):
        type = ArrayType(operand.dtype, operand.shape)
        value: Value | Literal = literal(operand, type) if k in known else builder.param(type)
        values.append(value)
    return builder.function("program", builder.emit_operation(REGISTRY[name], values, attrs).results)


def compiled(function: Function, sites: Any = None) -> XlaExecutable:
    return BACKEND.compile(function, sites)


def apply(name: str, *operands: Any, known: Sequence[int] = (), **attrs: Any) -> Any:
    """The result of one op on the xla backend."""
    arrays = [np.asarray(operand) for operand in operands]
    found = compiled(one_op(name, *arrays, known=known, **attrs)).run(
        *[array for k, array in enumerate(arrays) if k not in known]
    )
    return found[0] if len(found) == 1 else found
