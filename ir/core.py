"""The language: typed SSA with regions and ordered effects.

Grammar (``text.py`` prints it, ``parser.py`` reads it, ``verify.py`` checks what it cannot say)::

    function  ::= "func" "@" name "(" [params] ")" "->" "(" [types] ")" "{" block "}"
    block     ::= {operation} ("return" | "yield") [operands]
    operation ::= [results "="] opname [operands] [attrs] {region}
    region    ::= label "(" [params] ")" "{" block "}"
    params    ::= binder {"," binder}            results, types, operands: likewise
    binder    ::= value ":" ["lin"] type
    operand   ::= value | literal
    value     ::= "%" name
    literal   ::= number [":" type] | "dense" "(" nested ")" ":" type
    number    ::= "true" | "false" | int | real | "(" real ("+" | "-") real "j" ")"
    attrs     ::= "{" name "=" attr {"," name "=" attr} "}"
    attr      ::= "none" | number | string | dtype | type | size | "[" [attr {"," attr}] "]"
    type      ::= dtype "[" [size {"," size}] "]" | "tape" "<" type ">"
    size      ::= int | name "<=" int

A line holds a header (up to ``{``), an operation up to its regions, a ``return`` or ``yield``, or a ``}``. Without its
type a literal is a ``bool[]``, ``i64[]``, ``f64[]`` or ``c128[]``. ``#`` starts a comment; alone on a line in a block,
one of the form ``# file:line | source`` or ``# adjoint of file:line`` is the source span of what follows in the block.

A *value* is defined once, as a parameter or as a result of one operation. Regions are closed: what they read comes in
as operands. Operations with an effect keep their order; all others may be merged, moved or removed. A *linear* value
(``lin``) is a tangent or cotangent: it may only be an operand at positions in which its operation is linear. A literal
zero at a linear position is a structural zero.

Everything here is immutable once built: transforms and passes map a Function to a new Function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from srcgrad.ir.source import Span
from srcgrad.ir.types import ArrayType

if TYPE_CHECKING:
    from srcgrad.ir.opdef import Op

Attrs = Mapping[str, Any]
NO_ATTRS: Final[Attrs] = {}


class Value:
    """An SSA value. ``producer`` is None for a parameter; ``name`` is cosmetic."""

    __slots__ = ("linear", "name", "producer", "type")

    def __init__(
        self, type: ArrayType, producer: Operation | None = None, name: str | None = None, linear: bool = False
    ) -> None:
        self.type = type
        self.producer = producer
        self.name = name
        self.linear = linear

    def __repr__(self) -> str:
        return f"%{self.name or '?'}: {self.type}"


class Literal(Value):
    """A constant operand: a scalar that fills its type (a *splat*) or an array of the type's shape.

    One of a tape type is a splat: it has that element at every index, whatever the length.

    Two literals of the same type and bits are equal: ``-0.0`` differs from ``0.0``, and nan equals itself.
    """

    __slots__ = ("hash", "key", "value")

    def __init__(self, value: np.ndarray[Any, Any] | np.generic, type: ArrayType) -> None:
        super().__init__(type)
        self.value = value
        self.key = (type, value.shape == (), value.tobytes())
        self.hash = hash(self.key)

    @property
    def splat(self) -> bool:
        """Whether one scalar fills the whole type."""
        return self.value.shape == ()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Literal) and self.hash == other.hash and self.key == other.key)

    def __hash__(self) -> int:
        return self.hash

    def __repr__(self) -> str:
        return f"{self.value!r}: {self.type}"


_BLOCK: Final = 1 << 15
"""The elements that are compared at once."""


def literal(value: Any, type: ArrayType) -> Literal:
    """The literal of the given type; an array whose elements have equal bits becomes a splat."""
    array = np.asarray(value, dtype=type.dtype)
    if array.ndim and array.size:
        if is_uniform(array):
            return Literal(array[(0,) * array.ndim], type)
        array = np.array(array, order="C", copy=True)
        array.flags.writeable = False
        return Literal(array, type)
    if array.ndim:
        return Literal(np.zeros((), type.dtype)[()], type)
    return Literal(array[()], type)


def is_uniform(array: np.ndarray[Any, Any]) -> bool:
    """Whether all elements have equal bits; most arrays for which it does not hold are told by their first ones."""
    if not any(stride for stride, size in zip(array.strides, array.shape, strict=True) if size > 1):
        return True
    word = min(array.dtype.itemsize, 8)
    words = np.ascontiguousarray(array).view(f"u{word}").reshape(array.size, -1)
    return all(bool((words[k : k + _BLOCK] == words[0]).all()) for k in range(0, array.size, _BLOCK))


def zeros(type: ArrayType) -> Literal:
    return Literal(np.zeros((), type.dtype)[()], type)


def is_splat(value: Value, number: complex) -> bool:
    """Whether the value is a literal filled with this number (0.0 and -0.0 count as equal)."""
    return isinstance(value, Literal) and value.splat and bool(value.value == number)


class Operation:
    """One application of an op: operands, attributes, regions, results, and the user's line it comes from."""

    __slots__ = ("attrs", "op", "operands", "regions", "results", "span")

    def __init__(
        self,
        op: Op,
        operands: tuple[Value, ...],
        attrs: Attrs,
        regions: tuple[Region, ...],
        result_types: Sequence[ArrayType],
        span: Span | None,
        linear: bool = False,
    ) -> None:
        self.op = op
        self.operands = operands
        self.attrs = attrs
        self.regions = regions
        self.span = span
        if len(result_types) == 1:
            self.results: tuple[Value, ...] = (Value(result_types[0], self, None, linear),)
        else:
            self.results = tuple([Value(type, self, None, linear) for type in result_types])

    @property
    def acts(self) -> bool:
        """Whether it has an effect, or an operation in its regions has."""
        return self.op.effect or any(region.acts for region in self.regions)

    def __repr__(self) -> str:
        return f"{', '.join(map(repr, self.results))} = {self.op.name} {', '.join(map(repr, self.operands))}"


class Region:
    """A closed block: parameters, operations in order, results (parameters, operations' results or literals)."""

    __slots__ = ("_acts", "operations", "params", "results")

    def __init__(self, params: Sequence[Value], operations: Sequence[Operation], results: Sequence[Value]) -> None:
        self.params = tuple(params)
        self.operations = tuple(operations)
        self.results = tuple(results)
        self._acts: bool | None = None

    @property
    def param_types(self) -> tuple[ArrayType, ...]:
        return tuple([param.type for param in self.params])

    @property
    def result_types(self) -> tuple[ArrayType, ...]:
        return tuple([result.type for result in self.results])

    @property
    def acts(self) -> bool:
        """Whether an operation in it, or in a region in it, has an effect: each level of nested ones asks all below."""
        if self._acts is None:
            self._acts = any(operation.acts for operation in self.operations)
        return self._acts

    def walk(self) -> Iterator[Operation]:
        """All operations, those in nested regions after the one that holds them."""
        for operation in self.operations:
            yield operation
            for region in operation.regions:
                yield from region.walk()


class Function(Region):
    """A named region: what the transforms map and the backends compile."""

    __slots__ = ("name",)

    def __init__(
        self, name: str, params: Sequence[Value], operations: Sequence[Operation], results: Sequence[Value]
    ) -> None:
        super().__init__(params, operations, results)
        self.name = name

    def __str__(self) -> str:
        from srcgrad.ir.text import show  # the printer needs the language, and only people need the printer

        return show(self)

    __repr__ = __str__


class Builder:
    """Emits operations in order. Equal pure operations are emitted once (hash-consing).

    ``span`` is the source span given to what is emitted next.
    """

    __slots__ = ("memo", "operations", "params", "span")

    def __init__(self) -> None:
        self.params: list[Value] = []
        self.operations: list[Operation] = []
        self.memo: dict[Any, Operation] = {}
        self.span: Span | None = None

    def param(self, type: ArrayType, name: str | None = None, linear: bool = False) -> Value:
        value = Value(type, None, name, linear)
        self.params.append(value)
        return value

    def emit_operation(
        self, op: Op, operands: Sequence[Value], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Operation:
        operands = tuple(operands)
        key = None
        if op.mergeable and not op.effect and not regions:
            key = (op, operands, tuple(attrs.items())) if attrs else (op, operands)
            found = self.equal(key)
            if found is not None:
                return found
        types = op.result_types([operand.type for operand in operands], attrs, regions)
        linear = False
        for operand in operands:
            if operand.linear:
                linear = True
                break
        operation = Operation(op, operands, attrs, tuple(regions), types, self.span, linear)
        self.operations.append(operation)
        if key is not None:
            self.memo[key] = operation
        return operation

    def equal(self, key: Any) -> Operation | None:
        """An operation that was emitted with this op, these operands and attributes.

        Where the op commutes, also one with the two operands the other way round. Linear operands keep their places:
        ``t * y + y * t`` as twice one product would be transposed as a doubled cotangent times ``y``, which overflows
        where the products do not.
        """
        last = self.operations[-1] if self.operations else None
        for operand in key[1]:
            if operand.producer is last and last is not None:  # of which nothing can be made yet
                return None
        found = self.memo.get(key)
        if found is not None or not key[0].commutes:
            return found
        left, right = key[1]
        if left is right or left.linear or right.linear or left.type.dtype.kind not in key[0].commutes:
            return None
        return self.memo.get((key[0], (right, left), *key[2:]))

    def emit(self, op: Op, operands: Sequence[Value], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()) -> Value:
        """Emit an op that has one result, and return it."""
        return self.emit_operation(op, operands, attrs, regions).results[0]

    def region(self, results: Sequence[Value]) -> Region:
        return Region(self.params, self.operations, results)

    def function(self, name: str, results: Sequence[Value]) -> Function:
        return Function(name, self.params, self.operations, results)
