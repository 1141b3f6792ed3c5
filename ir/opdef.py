"""The bases that say an op's algebra, and the registry.

An op is one class: its type rule, its meaning as NumPy text, its algebraic kind, its derivative, its batching rule, its
samples. Bases are abstract, ops are final, and one instance of each op is in ``REGISTRY``:

- `Elementwise`: one partial derivative per operand; forward and reverse both come from it.
- `Linear`: linear in some operands, jointly (``concatenate``) or one at a time (``mul``); asks for ``transpose``.
- `NonDifferentiable`: every tangent is a structural zero (``less``, ``argsort``, ``floor``).
- anything else derives from `Op` and writes ``jvp`` in terms of linear ops.

Rules are written on `Term` (a value with operators) and on tangents: `Lin` (a linear value, with the mask of where it
is not structurally zero) or `Zero`. ``docs/add_an_op.md`` shows the five steps on a real op.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

import numpy as np

from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, Operation, Region, Value, literal
from srcgrad.ir.errors import DTypeError, InternalError, MissingRuleError, ShapeError
from srcgrad.ir.registry import Registry
from srcgrad.ir.types import BOOL, ArrayType, DType, Shape, Size

REGISTRY: Final[Registry[str, Op]] = Registry()

Number = bool | int | float | complex


class Term:
    """A value inside a rule: arithmetic on it emits operations into its builder."""

    __slots__ = ("builder", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, builder: Builder, value: Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def type(self) -> ArrayType:
        return self.value.type

    @property
    def shape(self) -> Shape:
        return self.value.type.shape

    @property
    def dtype(self) -> DType:
        return self.value.type.dtype

    @property
    def rank(self) -> int:
        return len(self.value.type.shape)

    def like(self, number: Any, dtype: DType | None = None) -> Term:
        """A literal of this term's shape."""
        type = self.value.type if dtype is None else self.value.type.with_dtype(dtype)
        return Term(self.builder, literal(number, type))

    def __repr__(self) -> str:
        return f"Term({self.value!r})"

    def __add__(self, other: Operand) -> Term:
        return REGISTRY["add"](self, other)

    def __radd__(self, other: Operand) -> Term:
        return REGISTRY["add"](other, self)

    def __sub__(self, other: Operand) -> Term:
        return REGISTRY["sub"](self, other)

    def __rsub__(self, other: Operand) -> Term:
        return REGISTRY["sub"](other, self)

    def __mul__(self, other: Operand) -> Term:
        return REGISTRY["mul"](self, other)

    def __rmul__(self, other: Operand) -> Term:
        return REGISTRY["mul"](other, self)

    def __truediv__(self, other: Operand) -> Term:
        return REGISTRY["div"](self, other)

    def __rtruediv__(self, other: Operand) -> Term:
        return REGISTRY["div"](other, self)

    def __neg__(self) -> Term:
        return REGISTRY["neg"](self)

    def __eq__(self, other: Operand) -> Term:  # type: ignore[override]
        return REGISTRY["equal"](self, other)

    def __ne__(self, other: Operand) -> Term:  # type: ignore[override]
        return REGISTRY["not_equal"](self, other)

    def __lt__(self, other: Operand) -> Term:
        return REGISTRY["less"](self, other)

    def __le__(self, other: Operand) -> Term:
        return REGISTRY["less_equal"](self, other)

    def __gt__(self, other: Operand) -> Term:
        return REGISTRY["greater"](self, other)

    def __ge__(self, other: Operand) -> Term:
        return REGISTRY["greater_equal"](self, other)

    def __and__(self, other: Operand) -> Term:
        return REGISTRY["logical_and"](self, other)

    def __or__(self, other: Operand) -> Term:
        return REGISTRY["logical_or"](self, other)

    def __invert__(self) -> Term:
        return REGISTRY["logical_not"](self)


Operand = Term | Number


class Zero:
    """A structural zero: a tangent or cotangent that is absent, whatever inf or nan the partials hold."""

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type

    def __repr__(self) -> str:
        return f"Zero({self.type})"


class Lin:
    """A tangent or cotangent.

    ``mask`` is None (nowhere structurally zero) or a bool value, of ``value``'s shape or of rank 0: where it is False
    the (co)tangent is structurally zero, and ``value`` is unspecified there unless ``clean`` (then it is 0 there).
    """

    __slots__ = ("clean", "mask", "value")

    def __init__(self, value: Value, mask: Value | None = None, clean: bool = False) -> None:
        self.value = value
        self.mask = mask
        self.clean = clean

    @property
    def type(self) -> ArrayType:
        return self.value.type

    def __repr__(self) -> str:
        return f"Lin({self.value!r}, {self.mask!r})"


Tangent = Lin | Zero
LinearOperand = Term | Lin | Zero


class LinearEmitter(ABC):
    """How rules emit linear code: as ordinary operations with masks, or recorded as a linear program."""

    builder: Builder

    @abstractmethod
    def is_hermitian(self, tangent: Lin) -> bool:
        """Whether it is seen that a tangent is Hermitian wherever the matrices that are differentiated are."""

    @abstractmethod
    def assume_hermitian(self, tangents: Iterable[Tangent]) -> None:
        """Take these for tangents of Hermitian matrices, if they are matrices."""

    @abstractmethod
    def neg(self, tangent: Tangent) -> Tangent: ...

    @abstractmethod
    def add(self, left: Tangent, right: Tangent) -> Tangent: ...

    @abstractmethod
    def select(self, predicate: Term, true: Tangent, false: Tangent) -> Tangent: ...

    @abstractmethod
    def apply_all(
        self, op: Op, operands: Sequence[LinearOperand], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> list[Tangent]:
        """Apply an op that is linear in the operands that are tangents; `Term` operands are residuals."""

    def apply(self, op: Op, operands: Sequence[LinearOperand], attrs: Attrs = NO_ATTRS) -> Tangent:
        return self.apply_all(op, operands, attrs)[0]

    def scale(self, tangent: Tangent, coefficient: Operand) -> Tangent:
        """The product; a coefficient that is the number 1 or -1 costs no multiplication, 0 is a structural zero."""
        if isinstance(tangent, Zero):
            return tangent
        if isinstance(coefficient, Term):
            return self.apply(REGISTRY["mul"], [tangent, coefficient])
        if coefficient == 0:
            return Zero(tangent.type)
        if coefficient == 1:
            return tangent
        if coefficient == -1:
            return self.neg(tangent)
        return self.apply(REGISTRY["mul"], [tangent, self.literal(coefficient, tangent.type)])

    @abstractmethod
    def literal(self, number: Any, type: ArrayType) -> Term: ...

    def materialise(self, tangent: Tangent) -> Value:
        """An ordinary value: structural zeros become numbers."""
        raise InternalError(f"{type(self).__name__} does not materialise tangents")


@dataclass(frozen=True)
class Sample:
    """Inputs an op is tested on.

    ``smooth``: the op is twice differentiable there, so that finite differences are an oracle. ``symmetric``: the
    operands (all of them) that must stay symmetric when perturbed.
    """

    operands: tuple[Any, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    smooth: bool = True
    symmetric: tuple[int, ...] = ()
    label: str = ""


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Op:
    """One op. Subclasses are registered as instances unless declared with ``abstract=True``.

    It is no `ABC`, of which ``isinstance`` asks all subclasses: there are hundreds.
    """

    name: ClassVar[str]
    meaning: ClassVar[str] = ""
    """NumPy text: a dotted name (``"np.sin"``) called on the operands, or a template (``"{0} + {1}"``)."""
    effect: ClassVar[bool] = False
    mergeable: ClassVar[bool] = True
    """Whether equal applications may be computed once, or at compile time; False for what separates computations."""
    commutes: ClassVar[str] = ""
    """The dtype kinds of two operands that may be exchanged without a bit of the result changing (but for which of two
    nans it is, which no backend promises), so that both applications are one.
    """
    tapes: ClassVar[bool] = False
    """Whether operands may be tapes: all other ops compute with arrays."""
    linear: ClassVar[tuple[int, ...]] = ()
    """The positions of operands in which the op is linear."""

    separate: ClassVar[bool] = False
    """Whether it is linear in one of them at a time (``mul``) rather than in all together (``concatenate``)."""

    def linear_positions(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        """`linear`, for an application to ``arity`` operands."""
        return self.linear

    _abstract: ClassVar[tuple[str, ...]] = ("result_type",)
    """The methods that a class has to write before it is an op."""

    def __init_subclass__(cls, abstract: bool = False) -> None:
        if abstract:
            new = [name for name, value in vars(cls).items() if getattr(value, "__isabstractmethod__", False)]
            cls._abstract = (*cls._abstract, *new)
            return
        unwritten = [name for name in cls._abstract if getattr(getattr(cls, name), "__isabstractmethod__", False)]
        if unwritten:
            raise InternalError(f"{cls.__name__} is an op without {', '.join(unwritten)}")
        if "name" not in cls.__dict__:
            cls.name = snake_case(cls.__name__)
        if dict.__contains__(REGISTRY, cls.name):  # of those there are: no other is imported for the question
            raise InternalError(f"op {cls.name!r} is defined twice")
        REGISTRY[cls.name] = cls()

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (find_op, (self.name,))

    # --- types -----------------------------------------------------------------------------------
    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        return (self.result_type(types, attrs),)

    @abstractmethod
    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        """The type of the only result; raises ShapeError or DTypeError where the operands do not fit."""

    # --- meaning ---------------------------------------------------------------------------------
    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        """The NumPy expression of the result; operands are atoms (names or parenthesised literals)."""
        if "{" in self.meaning:
            return self.meaning.format(*operands, **attrs)
        return f"{self.meaning}({', '.join(operands)})"

    # --- derivatives and batching ----------------------------------------------------------------
    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        """The results' tangents; at least one of ``tangents`` is not `Zero`."""
        raise MissingRuleError(f"op {self.name!r} has no derivative: write {type(self).__name__}.jvp")

    def differentiate(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        operation: Operation,
    ) -> tuple[Sequence[Value], Sequence[Tangent]]:
        """Emit the op on ``operands`` and its linear part through ``s``; ops that hold regions override this."""
        builder = operands[0].builder
        attrs = operation.attrs
        emitted = builder.emit_operation(self, [operand.value for operand in operands], attrs, operation.regions)
        span = builder.span
        if s.builder is builder and span is not None:
            builder.span = span.derive("tangent")
        tangents = self.jvp(s, operands, tangents, [Term(builder, value) for value in emitted.results], attrs)
        return emitted.results, tangents

    def transpose(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], attrs: Attrs
    ) -> Sequence[Tangent | None]:
        """Cotangents of the operands. A linear operand is given as a `Zero` (it only has a type); None elsewhere."""
        raise MissingRuleError(f"op {self.name!r} cannot be transposed: write {type(self).__name__}.transpose")

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        """The op on operands of which the batched ones have a leading axis of ``size``; results have it too."""
        raise MissingRuleError(f"op {self.name!r} cannot be batched: write {type(self).__name__}.batch")

    def batch_operation(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], operation: Operation
    ) -> Sequence[Term]:
        """Batch one application; ops that hold regions override this."""
        results = self.batch(size, operands, batched, operation.attrs)
        return (results,) if isinstance(results, Term) else results

    def apply_linear(
        self, s: LinearEmitter, operands: Sequence[LinearOperand], attrs: Attrs, regions: Sequence[Region]
    ) -> list[Tangent]:
        """For ops whose linear maps are emitted their own way, as those that hold regions: emit the linear map on the
        tangents among the operands.
        """
        raise MissingRuleError(f"op {self.name!r} cannot be expanded: write {type(self).__name__}.apply_linear")

    def transpose_region(
        self, s: LinearEmitter, cotangents: Sequence[Tangent], operands: Sequence[Term | Zero], operation: Operation
    ) -> Sequence[Tangent | None]:
        """Transpose one application of an op that holds regions."""
        raise MissingRuleError(f"op {self.name!r} cannot be transposed: write {type(self).__name__}.transpose_region")

    def totalled(self, arity: int, attrs: Attrs) -> tuple[int, ...]:
        """The positions of linear operands whose cotangents `transpose_onto` adds to what they are so far."""
        return ()

    def transpose_onto(
        self,
        s: LinearEmitter,
        cotangents: Sequence[Tangent],
        operands: Sequence[Term | Zero],
        operation: Operation,
        totals: Mapping[int, Tangent],
    ) -> Sequence[Tangent | None]:
        """As `transpose_region`, with cotangents of some `totalled` operands to add to: in place, if that is less."""
        raise MissingRuleError(f"op {self.name!r} cannot be transposed: write {type(self).__name__}.transpose_onto")

    def samples(self) -> Iterator[Sample]:
        """Inputs on which value, derivatives to second order, transposition and batching are tested."""
        return iter(())

    # --- writing out -----------------------------------------------------------------------------
    expanded: ClassVar[bool] = False
    """Whether no backend runs the op: before a function runs, `expand` writes it out."""

    def expand(self, operands: Sequence[Term], attrs: Attrs, regions: Sequence[Region]) -> Sequence[Term]:
        """The results as ordinary operations, emitted into the operands' builder."""
        raise InternalError(f"op {self.name!r} is not written out")

    # --- emission --------------------------------------------------------------------------------
    def __call__(self, *operands: Operand, **attrs: Any) -> Term:
        """Emit the op on terms; Python numbers become literals shaped like the other operands."""
        builder, values = self.lift(operands)
        return Term(builder, builder.emit(self, values, attrs))

    def lift(self, operands: Sequence[Operand]) -> tuple[Builder, list[Value]]:
        terms = [operand for operand in operands if isinstance(operand, Term)]
        if not terms:
            raise InternalError(f"{self.name}: no operand is a term")
        dtype = next((term.dtype for term in terms if term.dtype != BOOL), BOOL)
        shape = max((term.shape for term in terms), key=len)
        builder = terms[0].builder
        values = []
        for operand in operands:
            if isinstance(operand, Term):
                values.append(operand.value)
            else:
                values.append(literal(operand, ArrayType(dtype, shape)))
        return builder, values


def written_out(op: Op, types: Sequence[ArrayType], attrs: Attrs, regions: Sequence[Region]) -> Region:
    """An application of an op that is `expanded`, as a region of its operands."""
    builder = Builder()
    operands = [Term(builder, builder.param(type)) for type in types]
    return builder.region([term.value for term in op.expand(operands, attrs, regions)])


def find_op(name: str) -> Op:
    return REGISTRY[name]


def broadcast_to(term: Term, shape: Shape, dims: tuple[int, ...] = ()) -> Term:
    """Broadcast: operand axis i becomes axis ``dims[i]`` of the result; no operation where the shape is the same."""
    if term.shape == shape:
        return term
    return REGISTRY["broadcast"](term, shape=shape, dims=dims)


def require_kinds(op: Op, type: ArrayType, kinds: str) -> None:
    if type.dtype.kind not in kinds:
        words = {"b": "boolean", "i": "integer", "u": "unsigned", "f": "floating", "c": "complex"}
        accepted = ", ".join(words[kind] for kind in kinds)
        raise DTypeError(f"{op.name} does not take {type}", hint=f"it takes {accepted} operands")


def require_same(op: Op, types: Sequence[ArrayType]) -> None:
    first = types[0]
    for other in types[1:]:
        if other is not first and other != first:
            kind = DTypeError if other.shape == first.shape else ShapeError
            raise kind(f"{op.name}: operands differ, {first} and {other}")


def require_arity(op: Op, types: Sequence[ArrayType], arity: int) -> None:
    if len(types) != arity:
        raise ShapeError(f"{op.name} takes {arity} operands, not {len(types)}")


# --- elementwise ------------------------------------------------------------------------------------------------------


class Elementwise(Op, abstract=True):
    """Operands of one type, combined element by element."""

    arity: ClassVar[int] = 1
    kinds: ClassVar[str] = "fc"
    result_kind: ClassVar[Literal["same", "bool", "real"]] = "same"
    intervals: ClassVar[tuple[tuple[float, float], ...]] = ((-2.0, 2.0),)
    """Per operand, an interval in which the op is smooth; the samples are drawn from it."""
    points: ClassVar[tuple[float, ...]] = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 5e-324)
    """Values that every operand also takes, in all pairs."""

    def result_types(
        self, types: Sequence[ArrayType], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> Sequence[ArrayType]:
        first = types[0] if len(types) == self.arity else None
        if (
            first is not None
            and self.result_kind == "same"
            and first.dtype.kind in self.kinds
            and type(self).result_type is Elementwise.result_type
        ):
            for other in types:
                if other is not first:
                    break
            else:  # the common case, without the checks that would find nothing
                return (first,)
        return (self.result_type(types, attrs),)

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        require_arity(self, types, self.arity)
        for type in types:
            require_kinds(self, type, self.kinds)
        require_same(self, types)
        if self.result_kind == "same":
            return types[0]
        return types[0].with_dtype(BOOL if self.result_kind == "bool" else np.empty(0, types[0].dtype).real.dtype)

    def lift(self, operands: Sequence[Operand]) -> tuple[Builder, list[Value]]:
        builder, values = super().lift(operands)
        shape = max((value.type.shape for value in values), key=len)
        return builder, [
            value if value.type.shape == shape else broadcast_to(Term(builder, value), shape).value for value in values
        ]

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        """The partial derivative in operand ``index``: a term, or a number if it is constant."""
        raise MissingRuleError(f"op {self.name!r} has no derivative: write {type(self).__name__}.partial")

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        total: Tangent = Zero(results[0].type)
        for index, tangent in enumerate(tangents):
            if isinstance(tangent, Lin):
                total = s.add(total, s.scale(tangent, self.partial(index, results[0], *operands)))
        return (total,)

    def batch(
        self, size: Size, operands: Sequence[Term], batched: Sequence[bool], attrs: Attrs
    ) -> Sequence[Term] | Term:
        return self(*batch_all(size, operands, batched), **attrs)

    def samples(self) -> Iterator[Sample]:
        from srcgrad.ir.samples import elementwise_samples  # which is written with ops

        yield from elementwise_samples(self)


def batch_all(size: Size, operands: Sequence[Term], batched: Sequence[bool]) -> list[Term]:
    """Give the operands that are not batched the leading axis too."""
    return [
        operand if is_batched else broadcast_to(operand, (size, *operand.shape), tuple(range(1, operand.rank + 1)))
        for operand, is_batched in zip(operands, batched, strict=True)
    ]


class Unary(Elementwise, abstract=True):
    """An elementwise op of one operand."""

    def derivative(self, result: Term, operand: Term) -> Operand:
        """The derivative at the operand."""
        raise MissingRuleError(f"op {self.name!r} has no derivative: write {type(self).__name__}.derivative")

    def partial(self, index: int, result: Term, *operands: Term) -> Operand:
        return self.derivative(result, operands[0])


class NonDifferentiable(Op, abstract=True):
    """Piecewise constant or discrete: every tangent is a structural zero."""

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        return [Zero(result.type) for result in results]


# --- linear -----------------------------------------------------------------------------------------------------------


class Linear(Op, abstract=True):
    """Linear in the operands at ``linear``: jointly, or one at a time if ``separate``.

    ``masking`` says how the mask of a (co)tangent goes through, so that structural zeros stay zeros:

    - ``pointwise``: result elements correspond to the operand's; the mask stays. ``keeps_zero``: 0 maps to 0.
    - ``move``: data movement; the same op moves the mask.
    - ``mix``: result elements are sums of operand elements; zeros are written where the mask is False and `mask` says
      which results have a contribution.
    """

    linear: ClassVar[tuple[int, ...]] = (0,)
    masking: ClassVar[Literal["pointwise", "move", "mix"]] = "move"
    keeps_zero: ClassVar[bool] = True

    def jvp(
        self,
        s: LinearEmitter,
        operands: Sequence[Term],
        tangents: Sequence[Tangent],
        results: Sequence[Term],
        attrs: Attrs,
    ) -> Sequence[Tangent]:
        if not self.separate:
            mixed: list[LinearOperand] = list(operands)
            for k in self.linear_positions(len(operands), attrs):
                mixed[k] = tangents[k]
            return s.apply_all(self, mixed, attrs)
        total: Tangent = Zero(results[0].type)
        for k in self.linear:
            if isinstance(tangents[k], Lin):
                mixed = list(operands)
                mixed[k] = tangents[k]
                total = s.add(total, s.apply(self, mixed, attrs))
        return (total,)

    def zero_stays(self, operands: Sequence[LinearOperand]) -> bool:
        """Whether 0 maps to 0 whatever the residuals hold, given those that are known."""
        return self.keeps_zero

    def leaves_zeros(self, operands: Sequence[LinearOperand], attrs: Attrs) -> bool:
        """For ``mix``: whether results may have no contribution where all elements of the linear operands have one."""
        return False

    def mask(self, operands: Sequence[Term], attrs: Attrs) -> Term:
        """For ``mix``: the result's mask, given the operands with the linear ones replaced by their full bool masks."""
        masks = [operands[k] for k in self.linear_positions(len(operands), attrs) if operands[k].dtype == BOOL]
        found = [REGISTRY["reduce_or"](mask, axes=tuple(range(mask.rank))) for mask in masks]
        total = found[0]
        for other in found[1:]:
            total = total | other
        return total
