"""Ops that are there for what they do: raise, call back into Python, keep a computation from being merged.

Operations with an effect keep their order and are never removed.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

import numpy as np

from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, Region
from srcgrad.ir.errors import DTypeError, InternalError, UnsupportedError
from srcgrad.ir.opdef import (
    Lin,
    Linear,
    LinearEmitter,
    LinearOperand,
    NonDifferentiable,
    Sample,
    Tangent,
    Term,
    Zero,
    batch_all,
    require_arity,
)
from srcgrad.ir.types import BOOL, ArrayType, Size

ERROR_KINDS: Final = (
    "ArithmeticError",
    "AssertionError",
    "FloatingPointError",
    "IndexError",
    "LinAlgError",
    "OverflowError",
    "RuntimeError",
    "StatisticsError",
    "TypeError",
    "ValueError",
    "ZeroDivisionError",
)
"""The errors that a ``check`` can raise."""

ERROR_MODULES: Final = {"LinAlgError": "numpy.linalg", "StatisticsError": "statistics"}
"""Where those are that are no builtins."""


def error_class(kind: str) -> type[Exception]:
    """The class of the errors of a kind."""
    found: type[Exception] = getattr(importlib.import_module(ERROR_MODULES.get(kind, "builtins")), kind)
    return found


UNFORESEEN: Final = "something has failed in a try, and this program is for calls in which nothing does"
"""The message of a ``RuntimeError`` that is none of the user's: the call is to be made in another way."""


def is_unforeseen(error: BaseException) -> bool:
    """Whether a program says so that this call is none of those which it is for."""
    return type(error) is RuntimeError and error.args == (UNFORESEEN,)


class SeveralResults(NonDifferentiable, abstract=True):
    """An op with any number of results but one."""

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise InternalError(f"op {self.name!r} has no single result: ask for result_types")


class Check(SeveralResults):
    """Raise the error ``kind`` with ``message`` unless all elements of the operand are true. No results."""

    effect = True
    helpers: ClassVar[tuple[str, ...]] = ("check",)

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        require_arity(self, types, 1)
        if types[0].dtype != BOOL:
            raise DTypeError(f"check: the predicate is {types[0]}, not bool")
        if attrs["kind"] not in ERROR_KINDS:
            raise UnsupportedError(f"check cannot raise {attrs['kind']}", hint=f"it raises {', '.join(ERROR_KINDS)}")
        return ()

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"check({operands[0]}, message={attrs['message']!r}, kind={attrs['kind']!r})"

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        """The check of all examples at once."""
        operands[0].builder.emit_operation(self, [operands[0].value], attrs)
        return ()

    def samples(self) -> Iterator[Sample]:
        attrs = {"message": "x must be positive", "kind": "ValueError"}
        yield Sample((np.array(True),), attrs, label="0-d")
        yield Sample((np.ones((2, 3), np.bool_),), attrs, label="matrix")
        yield Sample((np.ones((0,), np.bool_),), attrs, label="empty")


class HostCall(SeveralResults):
    """Call the Python callable number ``site`` of the program; the results must have the types ``results``.

    The callables are given when the program runs: the language never holds one. Batched, it is called for one example
    after the other. ``raises``: there are no results, and all that the callable does is to raise an error where the
    first operand, a truth value, is that.
    """

    effect = True
    helpers: ClassVar[tuple[str, ...]] = ("host_call",)

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        results: tuple[ArrayType, ...] = attrs["results"]
        return results

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        expected = tuple((type.dtype.name, type.static_shape) for type in attrs["results"])
        arguments = f"({', '.join(operands)},)" if operands else "()"
        return f"host_call(sites, {attrs['site']}, {arguments}, {expected})"

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        from srcgrad.ir.transforms.batch import each_example  # which is written with ops

        if not isinstance(size, int):
            raise UnsupportedError("host_call: the number of examples is not known")
        builder, inner = operands[0].builder, Builder()
        params = [
            inner.param(operand.type.with_shape(operand.shape[1:]) if flag else operand.type)
            for operand, flag in zip(operands, batched, strict=True)
        ]
        called = inner.region(inner.emit_operation(self, params, attrs).results)
        results = each_example(builder, called, [operand.value for operand in operands], batched, size)
        return [Term(builder, value) for value in results]

    def samples(self) -> Iterator[Sample]:
        """Site 0 returns one array like its operand, site 1 two; site 2 takes anything and returns nothing."""
        for value in (np.array([0.5, -1.5]), np.array(2.5, np.float32), np.zeros((0, 2)), np.array([1 + 2j])):
            like = ArrayType(value.dtype, value.shape)
            yield Sample((value,), {"site": 0, "results": (like,)}, smooth=False, label="one result")
            yield Sample((value,), {"site": 1, "results": (like, like)}, smooth=False, label="two results")
        yield Sample((np.array(1.5), np.array([1, 2])), {"site": 2, "results": ()}, smooth=False, label="no result")
        yield Sample((), {"site": 2, "results": ()}, smooth=False, label="no operand")


class Barrier(Linear):
    """The operands themselves, as values that no pass may take for the operands or see through.

    What is computed from a barrier's results is computed again, after all its operands are there: this is how a
    checkpoint's recomputation stays apart from the first computation. Linear in all operands together.
    """

    mergeable = False
    tapes = True

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        return tuple(range(arity))

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        raise InternalError("op 'barrier' has no single result: ask for result_types")

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        return tuple(types)

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return operands[0] if len(operands) == 1 else f"({', '.join(operands)})"

    def apply_linear(
        self, s: LinearEmitter, operands: Sequence[LinearOperand], attrs: Attrs, regions: Sequence[Region]
    ) -> list[Tangent]:
        """Values pass the barrier; masks and structural zeros stay what they are."""
        lins = [operand for operand in operands if isinstance(operand, Lin)]
        passed = iter(s.builder.emit_operation(self, [lin.value for lin in lins], attrs).results)
        return [
            Lin(next(passed), operand.mask, operand.clean) if isinstance(operand, Lin) else Zero(operand.type)
            for operand in operands
        ]

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """A barrier of the tangents that are there: integer operands have none."""
        passed = iter(s.apply_all(self, [tangent for tangent in tangents if isinstance(tangent, Lin)], attrs))
        return [next(passed) if isinstance(tangent, Lin) else tangent for tangent in tangents]

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        return s.apply_all(self, cotangents, attrs)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        full = batch_all(size, operands, batched)
        emitted = full[0].builder.emit_operation(self, [operand.value for operand in full], attrs)
        return [Term(full[0].builder, value) for value in emitted.results]

    def samples(self) -> Iterator[Sample]:
        yield Sample((np.array([1.5, -2.0]),), label="one")
        yield Sample((np.array([[1.5], [-2.0]]), np.array(3.0, np.float32), np.array([1, 2])), label="several")
        yield Sample((np.array([1 + 2j]), np.zeros((0,))), label="complex and empty")
