"""Constant folding, by an evaluator that the caller hands in: the language does not run itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.ir.core import Attrs, Function, Literal, Operation, literal
from srcgrad.ir.opdef import Elementwise, Op
from srcgrad.ir.passes.rewrite import Fired, Folder, rewrite
from srcgrad.ir.types import ArrayType

Evaluator = Callable[[Op, Sequence[Any], Attrs, Sequence[ArrayType], Sequence[ArrayType]], Sequence[Any]]
"""The results of an op on arrays or NumPy scalars, given its attributes and the types of operands and results."""

RESULT_LIMIT: Final = 64
"""The most elements of a folded result: a longer one would only move work into the program's text."""
OPERAND_LIMIT: Final = 4096
"""The most elements of an operand, which bounds the time of one evaluation."""


def fold(function: Function, evaluate_operation: Evaluator, fired: list[Fired] | None = None) -> Function:
    """Replace operations on literals by their value.

    Elementwise ops on splats of any size give a splat; else results have at most 64 elements and operands at most 4096.
    Operations without operands (``iota``), with an effect or with regions stay, and so does one whose evaluation fails:
    it fails where the program runs.
    """
    return rewrite(function, folder=make_folder(evaluate_operation), fired=fired)


def make_folder(evaluate_operation: Evaluator) -> Folder:
    """The folder that `rewrite` takes."""

    def folder(operation: Operation) -> Sequence[Literal] | None:
        op = operation.op
        operands = [value for value in operation.operands if isinstance(value, Literal)]
        types = [value.type for value in operands]
        results = [result.type for result in operation.results]
        if isinstance(op, Elementwise) and all(value.splat for value in operands):
            numbers = [value.value for value in operands]
            found = evaluate(op, numbers, operation.attrs, scalar_types(types), scalar_types(results))
        elif fits(types, OPERAND_LIMIT) and fits(results, RESULT_LIMIT):
            found = evaluate(op, list(map(array_of, operands)), operation.attrs, types, results)
        else:
            return None
        return found and [literal(value, type) for value, type in zip(found, results, strict=True)]

    def evaluate(
        op: Op, arrays: list[Any], attrs: Attrs, types: list[ArrayType], results: list[ArrayType]
    ) -> Sequence[Any] | None:
        try:
            return evaluate_operation(op, arrays, attrs, types, results)
        except (ArithmeticError, IndexError, ValueError):  # LinAlgError is a ValueError
            return None

    return folder


def scalar_types(types: Sequence[ArrayType]) -> list[ArrayType]:
    return [type.with_shape(()) for type in types]


def fits(types: Sequence[ArrayType], limit: int) -> bool:
    return all(type.size <= limit and all(isinstance(size, int) for size in type.shape) for type in types)


def array_of(value: Literal) -> Any:
    """The literal's array (of rank 0: its scalar)."""
    if not value.splat or not value.type.rank:
        return value.value
    return np.full(value.type.static_shape, value.value)
