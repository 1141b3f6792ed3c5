"""Where one digit counts: sums whose products are rounded before, each as NumPy rounds it.

A product and a sum that are one rounding differ from NumPy's by less than the last digit of the product. Where the sum
is far smaller than its terms, that is all there is of it. ``x * y - p`` is 0 where ``p`` is ``x * y``, and errors of
products (Dekker's, Veltkamp's) and of sums (Knuth's) are what their proofs say. Nothing in a program tells that terms
cancel; but those that do are most often computed from the same numbers. The other sums where one digit makes another
number altogether are those that are compared, rounded to a whole number, or at the end of a domain:
``sqrt(x * x - y * y)`` would be nan where ``x`` is ``y``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from srcgrad.ir.core import Literal, Operation, Value

_HANDED_ON: Final = frozenset({"add", "sub", "neg", "abs", "maximum", "minimum"})
"""Operations of which a digit of an operand is one of the result."""
_ROUNDINGS: Final = frozenset({"floor", "ceil", "trunc", "rint"})
_BOUNDED: Final = frozenset({"sqrt", "log", "log1p", "log2", "log10", "arcsin", "arccos", "arccosh", "arctanh", "pow"})
"""Functions of which the domain ends where sums of products cancel."""
_COMPARISONS: Final = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "sign"})
_NEAR: Final = 3
"""How many operations back terms of a sum are looked at: quotients in whole numbers are two, squares of sums three."""


def rounded_of(operations: Sequence[Operation]) -> set[Value]:
    """Sums that hold no product, nor do those that they are sums of, in whichever group these are computed."""
    found = set[Value]()
    for operation in reversed(operations):
        found.update(exact_of(operation))
        if operation.op.name in _HANDED_ON and operation.results[0] in found:
            found.update(operation.operands)
    return found


def is_product(operation: Operation) -> bool:
    """Whether an operation is one product, of its first operand with its last."""
    name = operation.op.name
    return name in ("mul", "square") or (name == "integer_pow" and operation.attrs["y"] == 2)


def rounds(operation: Operation) -> bool:
    """Whether an operation makes a whole number of one that may be none."""
    if operation.op.name == "cast":
        return operation.results[0].type.dtype.kind in "iu" and operation.operands[0].type.dtype.kind == "f"
    return operation.op.name in _ROUNDINGS


def exact_of(operation: Operation) -> tuple[Value, ...]:
    """The sums, at an operation, of which each product is to be rounded as NumPy's is."""
    name = operation.op.name
    if name in _COMPARISONS or name in _BOUNDED or rounds(operation):
        return operation.operands
    return operation.results if name in ("add", "sub") and cancels(operation) else ()


def cancels(operation: Operation) -> bool:
    """Whether a difference is one of two products, or of one and what is computed of the same numbers."""
    first, second = operation.operands
    products = [x.producer is not None and is_product(x.producer) for x in (first, second)]
    if not any(products) or first.type.dtype.kind != "f":
        return False
    if (operation.op.name == "sub") == (is_negative(first) != is_negative(second)):
        return False
    if all(products):
        return True
    product, other = (first, second) if products[0] else (second, first)
    assert product.producer is not None
    known = before(other, _NEAR)
    return any(not known.isdisjoint(before(x, depth_of(x, other))) for x in product.producer.operands)


def depth_of(factor: Value, other: Value) -> int:
    """How far back a factor is looked at, beside another term.

    ``(x + y) * (x - y)`` has the terms of ``x * x - y * y``, and ``np.floor(x / y) * y`` may be ``x``; but
    ``(c * x - c) * x - c``, a polynomial, may have one coefficient twice.
    """
    if factor.producer is not None and rounds(factor.producer):
        return _NEAR
    return int(other.producer is not None)


def is_negative(value: Value) -> bool:
    """Whether a number is written with a minus, or as a product with one that is."""
    producer = value.producer
    if producer is None:
        return isinstance(value, Literal) and value.splat and value.type.dtype.kind == "f" and float(value.value) < 0
    if producer.op.name == "mul":
        return is_negative(producer.operands[0]) != is_negative(producer.operands[1])
    return producer.op.name == "neg"


def before(value: Value, depth: int) -> set[Value]:
    """A value and what it is computed from, so many operations back, without constants."""
    last = [] if isinstance(value, Literal) else [value]
    found = set(last)
    for _ in range(depth):
        last = [x for x in operands_of(last) if x not in found and not isinstance(x, Literal)]
        found.update(last)
    return found


def operands_of(values: Iterable[Value]) -> list[Value]:
    return [operand for value in values if value.producer is not None for operand in value.producer.operands]
