"""The two ways to emit linear code: `Masked` as ordinary operations, `Recorder` as a linear program.

`Masked` computes over the reals with an absorbing zero: a (co)tangent is a value and a mask, and what is structurally
zero
stays zero whatever inf or nan the partials hold. No op for masks exists; what comes out are ordinary operations::

    scale((v, m), c)          = (v*c, m)                        dirty, if c is not known to be finite
    select(p, (v, m), Zero)   = (v, m & p)                      no operation on v
    add, the same mask        = (v1 + v2, m)
    add, masks split by p     = (select(p, v1, v2), m1 | m2)
    add, one written to zeros = (slice_set(v1, v2, part), m1 | m2)   where v1 is zero in that part
    the same in a trip        = (slice_set(v1, v1[part] + v2, part), m1 | m2)   where v1 is an array and v2 a small part
    add otherwise             = (blend + blend, m1 | m2)        clean; blend = select(m, v, 0)
    move                      = (op(v), op(m))
    mix                       = (op(blend), any(m))             clean if op keeps zeros: 0 * inf is nan

Of masks that slices and updates make it is known where they are True (`patterns`): one that is so everywhere is none,
and with one that is so nowhere a (co)tangent is Zero.
"""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Iterable, Sequence
from typing import Any

from srcgrad.ir.core import NO_ATTRS, Attrs, Builder, Literal, Operation, Region, Value, is_splat, literal, zeros
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import REGISTRY, Lin, Linear, LinearEmitter, LinearOperand, Op, Tangent, Term, Zero, broadcast_to
from srcgrad.ir.transforms.patterns import Patterns
from srcgrad.ir.transforms.symmetry import Symmetry, are_matrices
from srcgrad.ir.types import BOOL, ArrayType, TapeType

UPDATES = frozenset({"slice_set", "scatter_set", "scatter_add"})
SMALL_PART = 4
"""What is added to at most one in so many numbers of an array is added to these alone."""
PATH_LIMIT = 8
"""How many conjuncts of a mask are looked at: a constant, so that mask algebra is O(1) per operation."""


class MaskAlgebra:
    """Conjunction, disjunction and complement of masks; None is the mask that is true everywhere.

    Masks are built as paths ``and(parent, predicate)``, which is what lets ``p | ~p`` fold away.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.and_op = REGISTRY["logical_and"]
        self.or_op = REGISTRY["logical_or"]
        self.not_op = REGISTRY["logical_not"]

    def invert(self, mask: Value) -> Value:
        producer = mask.producer
        if producer is not None and producer.op is self.not_op:
            return producer.operands[0]
        return self.builder.emit(self.not_op, [mask])

    def same_shape(self, left: Value, right: Value) -> tuple[Value, Value]:
        if left.type.shape == right.type.shape:
            return left, right
        shape = max(left.type.shape, right.type.shape, key=len)
        return self.full(left, shape), self.full(right, shape)

    def full(self, mask: Value, shape: Any) -> Value:
        return broadcast_to(Term(self.builder, mask), shape).value

    def conjuncts(self, mask: Value) -> list[Value]:
        """The last conjuncts of a path, innermost first."""
        found = []
        for _ in range(PATH_LIMIT):
            producer = mask.producer
            if producer is None or producer.op is not self.and_op:
                break
            found.append(producer.operands[1])
            mask = producer.operands[0]
        return [*found, mask]

    def both(self, parent: Value | None, predicate: Value | None) -> Value | None:
        if parent is None:
            return predicate
        if predicate is None or any(conjunct is predicate for conjunct in self.conjuncts(parent)):
            return parent
        return self.builder.emit(self.and_op, self.same_shape(parent, predicate))

    def either(self, left: Value | None, right: Value | None) -> Value | None:
        """``(c & p) | (c & ~p) = c``, ``p | ~p = None``, ``c | (c & p) = c``."""
        if left is None or right is None:
            return None
        if left is right:
            return left
        left_parent, right_parent = self.split(left)[0], self.split(right)[0]
        if self.siblings(left, right):
            return left_parent
        if left_parent is right:
            return right
        if right_parent is left:
            return left
        return self.builder.emit(self.or_op, self.same_shape(left, right))

    def siblings(self, left: Value | None, right: Value | None) -> bool:
        """Whether two masks are ``c & p`` and ``c & ~p``."""
        if left is None or right is None:
            return False
        left_parent, left_last = self.split(left)
        right_parent, right_last = self.split(right)
        return left_parent is right_parent and self.complements(left_last, right_last)

    def split(self, mask: Value) -> tuple[Value | None, Value]:
        producer = mask.producer
        if producer is not None and producer.op is self.and_op:
            return producer.operands[0], producer.operands[1]
        return None, mask

    def complements(self, left: Value, right: Value) -> bool:
        for one, other in ((left, right), (right, left)):
            producer = one.producer
            if producer is not None and producer.op is self.not_op and producer.operands[0] is other:
                return True
        return False

    def splitting(self, left: Value | None, right: Value | None) -> Value | None:
        """A predicate that holds wherever ``left`` does and nowhere where ``right`` does."""
        if left is None or right is None or left.type != right.type:
            return None
        others = self.conjuncts(right)
        for conjunct in self.conjuncts(left):
            if conjunct.type == left.type and any(self.complements(conjunct, other) for other in others):
                return conjunct
        return None


class Emitter(LinearEmitter, ABC):
    """What both know of tangents of Hermitian matrices."""

    symmetry: Symmetry

    def is_hermitian(self, tangent: Lin) -> bool:
        return self.symmetry.holds(tangent.value) and (
            tangent.mask is None or not tangent.mask.type.rank or self.symmetry.holds(tangent.mask)
        )

    def stays_hermitian(self, tangent: Tangent) -> bool:
        """`is_hermitian`, also of the tangent of a matrix that is zero."""
        return are_matrices(tangent.type) if isinstance(tangent, Zero) else self.is_hermitian(tangent)

    def assume_hermitian(self, tangents: Iterable[Tangent]) -> None:
        self.symmetry.given.update(values_and_masks(tangents))


class Masked(Emitter):
    """Emits ordinary operations into a builder; ``repeated``: that of a region which the trips of a loop run.

    ``given``: tangents that are those of Hermitian matrices, and their masks.
    """

    def __init__(self, builder: Builder, repeated: bool = False, given: Iterable[Tangent] = ()) -> None:
        self.builder = builder
        self.repeated = repeated
        self.symmetry = Symmetry(values_and_masks(given), {})
        self.masks = MaskAlgebra(builder)
        self.patterns = Patterns()
        self.add_op = REGISTRY["add"]
        self.neg_op = REGISTRY["neg"]
        self.scatter_op = REGISTRY["scatter_add"]
        self.select_op = REGISTRY["select"]
        self.write_op = REGISTRY["slice_set"]
        self.read_op = REGISTRY["slice"]

    def literal(self, number: Any, type: ArrayType) -> Term:
        return Term(self.builder, literal(number, type))

    def lin(self, value: Value, mask: Value | None, clean: bool = False) -> Tangent:
        """The tangent of a value and a mask, of which it may be known that it holds everywhere or nowhere."""
        pattern = None if mask is None else self.patterns.of(mask)
        if pattern is None:
            return Lin(value, mask, clean)
        if pattern.always:
            return Lin(value)
        return Zero(value.type) if pattern.never else Lin(value, mask, clean)

    def blend(self, tangent: Lin) -> Value:
        """The value with zeros where the mask is False."""
        if tangent.mask is None or tangent.clean:
            return tangent.value
        if isinstance(tangent.type, TapeType):
            from srcgrad.ir.transforms.structured import blend_tape  # which is written with this module

            return blend_tape(self, tangent)
        return self.builder.emit(self.select_op, [tangent.mask, tangent.value, zeros(tangent.type)])

    def materialise(self, tangent: Tangent) -> Value:
        """An ordinary value: structural zeros become numbers."""
        return zeros(tangent.type) if isinstance(tangent, Zero) else self.blend(tangent)

    def neg(self, tangent: Tangent) -> Tangent:
        if isinstance(tangent, Zero):
            return tangent
        return Lin(self.builder.emit(self.neg_op, [tangent.value]), tangent.mask, tangent.clean)

    def add(self, left: Tangent, right: Tangent) -> Tangent:
        if isinstance(left, Zero):
            return right
        if isinstance(right, Zero):
            return left
        if isinstance(left.type, TapeType):
            from srcgrad.ir.transforms.structured import add_tapes  # which is written with this module

            return add_tapes(self, left, right)
        added = self.add_into(left, right) or self.put_into(left, right) or self.put_into(right, left)
        added = added or self.add_part_into(left, right) or self.add_part_into(right, left)
        if added is not None:
            return added
        if left.mask is right.mask:
            value = self.builder.emit(self.add_op, [left.value, right.value])
            return Lin(value, left.mask, left.clean and right.clean)
        split = self.masks.splitting(left.mask, right.mask)
        mask = self.masks.either(left.mask, right.mask)
        if split is not None:
            return self.lin(self.builder.emit(self.select_op, [split, left.value, right.value]), mask)
        return self.lin(self.builder.emit(self.add_op, [self.blend(left), self.blend(right)]), mask, True)

    def add_into(self, left: Lin, right: Lin) -> Lin | None:
        """``left + scatter_add(0, part)`` as ``scatter_add(left, part)``: as many additions as ``part`` has numbers."""
        scattered = self.scattered(right.value)
        if scattered is None or not all(tangent.mask is None or tangent.clean for tangent in (left, right)):
            return None  # what a select leaves out is still in its value
        mask = None
        if left.mask is not None and right.mask is not None:
            there = self.scattered(right.mask)
            if there is None:
                return None
            base = self.masks.full(left.mask, right.mask.type.shape)
            mask = self.builder.emit(there.op, [base, *there.operands[1:]], there.attrs)
        operands = [left.value, *scattered.operands[1:]]
        return Lin(self.builder.emit(scattered.op, operands, scattered.attrs), mask, mask is not None)

    def put_into(self, left: Lin, right: Lin) -> Tangent | None:
        """``left + slice_set(0, part)`` as ``slice_set(left, part)``, where ``left`` is structurally zero there."""
        write = self.written(right.value)
        if write is None or left.mask is None or right.mask is None or left.mask.type.shape != left.type.shape:
            return None
        if not self.patterns.never_in(left.mask, write.attrs):
            return None
        value = self.builder.emit(self.write_op, [left.value, write.operands[1]], write.attrs)
        return self.lin(value, self.masks.either(left.mask, right.mask), left.clean and right.clean)

    def add_part_into(self, left: Lin, right: Lin) -> Lin | None:
        """``left + slice_set(0, part)`` as ``slice_set(left, left[…] + part)``, if ``left`` is what trips hand on.

        So a trip takes as many additions as ``part`` has numbers. What is computed all the same takes the sum with it.
        """
        write = self.written(right.value)
        if not self.repeated or write is None or not self.is_handed_on(left.value):
            return None
        part, attrs = write.operands[1], write.attrs
        if part.type.size * SMALL_PART > left.type.size or not (left.mask is None or left.clean):
            return None
        there = None if right.mask is None else self.written(right.mask)
        if right.mask is not None and (there is None or there.attrs != attrs):
            return None
        flags = None if there is None else there.operands[1]
        added = self.blend(Lin(part, flags, right.clean))
        value = self.added_to_part(self.add_op, left.value, added, attrs)
        if left.mask is None or flags is None:
            return Lin(value)
        base = self.masks.full(left.mask, left.type.shape)
        return Lin(value, self.added_to_part(self.masks.or_op, base, flags, attrs), True)

    def added_to_part(self, op: Op, whole: Value, part: Value, attrs: Attrs) -> Value:
        """The whole with the op's result of what is in a slice of it and the part there."""
        before = self.builder.emit(self.read_op, [whole], attrs)
        return self.builder.emit(self.write_op, [whole, self.builder.emit(op, [before, part])], attrs)

    def written(self, value: Value) -> Operation | None:
        """The ``slice_set`` into zeros that gives a value."""
        producer = value.producer
        if producer is None or producer.op is not self.write_op or not is_splat(producer.operands[0], 0):
            return None
        return producer

    def is_handed_on(self, value: Value) -> bool:
        """Whether a value is an array that a region was given, is updated or comes from another region."""
        producer = value.producer
        if producer is None:
            return not isinstance(value, Literal)
        if producer.op.name in UPDATES:
            return not isinstance(producer.operands[0], Literal)
        return bool(producer.regions)

    def scattered(self, value: Value) -> Operation | None:
        """The ``scatter_add`` to zeros that gives a value."""
        producer = value.producer
        if producer is None or producer.op is not self.scatter_op or not is_splat(producer.operands[0], 0):
            return None
        return producer

    def select(self, predicate: Term, true: Tangent, false: Tangent) -> Tangent:
        p = predicate.value
        if isinstance(true, Zero):
            if isinstance(false, Zero):
                return true
            return Lin(false.value, self.masks.both(false.mask, self.masks.invert(p)))
        if isinstance(false, Zero):
            return Lin(true.value, self.masks.both(true.mask, p))
        value = self.builder.emit(self.select_op, [p, true.value, false.value])
        if true.mask is None and false.mask is None:
            return Lin(value)
        if true.mask is false.mask:
            return Lin(value, true.mask, true.clean and false.clean)
        shape = max((mask.type.shape for mask in (true.mask, false.mask, p) if mask is not None), key=len)
        chosen = [p if not p.type.shape else self.masks.full(p, shape)]
        for mask in (true.mask, false.mask):
            chosen.append(literal(True, ArrayType(BOOL, shape)) if mask is None else self.masks.full(mask, shape))
        return Lin(value, self.builder.emit(self.select_op, chosen), true.clean and false.clean)

    def apply_all(
        self, op: Op, operands: Sequence[LinearOperand], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> list[Tangent]:
        tangents = [operand for operand in operands if not isinstance(operand, Term)]
        if all(isinstance(tangent, Zero) for tangent in tangents):
            types = op.result_types([operand.type for operand in operands], attrs, regions)
            return [Zero(type) for type in types]
        if op is self.add_op:
            return [self.add(*tangents)]
        if op is self.select_op and isinstance(operands[0], Term) and len(tangents) == 2:
            return [self.select(operands[0], *tangents)]
        if regions or type(op).apply_linear is not Op.apply_linear:
            return op.apply_linear(self, operands, attrs, regions)
        if not isinstance(op, Linear):
            raise InternalError(f"op {op.name!r} is not linear")
        if op.masking == "mix":
            return [self.mix(op, operands, attrs)]
        values = [zeros(operand.type) if isinstance(operand, Zero) else operand.value for operand in operands]
        result = self.builder.emit(op, values, attrs)
        if all(isinstance(tangent, Lin) and tangent.mask is None for tangent in tangents):
            return [Lin(result)]
        if len(tangents) == 1 and isinstance(tangents[0], Lin):
            tangent = tangents[0]
            mask = tangent.mask
            if op.masking == "move" and mask is not None and mask.type.shape:
                mask = self.move_masks(op, operands, attrs)
            return [self.lin(result, mask, tangent.clean and op.zero_stays(operands))]
        clean = all(isinstance(tangent, Zero) or tangent.clean or tangent.mask is None for tangent in tangents)
        return [self.lin(result, self.move_masks(op, operands, attrs), clean and op.zero_stays(operands))]

    def full_mask(self, operand: LinearOperand) -> Value:
        type = operand.type.with_dtype(BOOL)
        if isinstance(operand, Lin) and operand.mask is not None:
            return self.masks.full(operand.mask, type.shape)
        return literal(isinstance(operand, Lin), type)

    def move_masks(self, op: Op, operands: Sequence[LinearOperand], attrs: Attrs) -> Value:
        moved = [operand.value if isinstance(operand, Term) else self.full_mask(operand) for operand in operands]
        return self.builder.emit(op, moved, attrs)

    def mix(self, op: Linear, operands: Sequence[LinearOperand], attrs: Attrs) -> Tangent:
        values, masks, masked = [], [], op.leaves_zeros(operands, attrs)
        for operand in operands:
            if isinstance(operand, Term):
                values.append(operand.value)
                masks.append(operand)
                continue
            masked = masked or isinstance(operand, Zero) or operand.mask is not None
            values.append(self.materialise(operand))
            masks.append(Term(self.builder, self.full_mask(operand)))
        result = self.builder.emit(op, values, attrs)
        if not masked:
            return Lin(result)
        mask = op.mask(masks, attrs).value
        return self.lin(result, mask, op.keeps_zero)


def values_and_masks(tangents: Iterable[Tangent]) -> set[Value]:
    found = [value for tangent in tangents if isinstance(tangent, Lin) for value in (tangent.value, tangent.mask)]
    return {value for value in found if value is not None and are_matrices(value.type)}


def add_part(s: LinearEmitter, parts: list[Tangent], part: Lin) -> None:
    """Add to a sum that is kept in parts, one per mask: each is blended once, or not at all."""
    for place, known in enumerate(parts):
        if isinstance(known, Lin) and known.mask is part.mask:
            parts[place] = s.add(known, part)
            return
    if len(parts) == PATH_LIMIT:  # the oldest one is what a loop carries, into which numbers are added one by one
        parts[0] = s.add(parts[0], parts.pop(1))
    parts.append(part)


def total(s: LinearEmitter, parts: Sequence[Tangent]) -> Tangent:
    """The sum of parts: first of those whose masks together are a simpler one, as the branches of one choice are."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = itertools.combinations(range(len(parts)), 2)
        masks = [part.mask if isinstance(part, Lin) else None for part in parts]
        simpler = (pair for pair in pairs if isinstance(s, Masked) and s.masks.siblings(*(masks[k] for k in pair)))
        left, right = next(simpler, (0, 1))
        parts[left] = s.add(parts[left], parts.pop(right))
    return parts[0]


class Recorder(Emitter):
    """Records a linear program: residuals become its parameters, tangents its linear values.

    ``given``: tangents that are those of Hermitian matrices.
    """

    def __init__(self, given: Iterable[Tangent] = ()) -> None:
        self.builder = Builder()
        self.residuals: dict[Value, Value] = {}
        self.meant: dict[Value, Value] = {}
        """The primal values that the parameters for residuals stand for."""
        self.symmetry = Symmetry(values_and_masks(given), self.meant)
        self.fixed: set[Value] | None = None
        """Which values of the primal part all trips of the loops around share; None for all, outside of loops."""
        self.add_op = REGISTRY["add"]
        self.neg_op = REGISTRY["neg"]
        self.select_op = REGISTRY["select"]

    def literal(self, number: Any, type: ArrayType) -> Term:
        return Term(self.builder, literal(number, type))

    def residual(self, value: Value) -> Value:
        """The parameter that stands for a primal value; literals stand for themselves."""
        if isinstance(value, Literal):
            return value
        found = self.residuals.get(value)
        if found is None:
            found = self.residuals[value] = Value(value.type, None, value.name)
            self.meant[found] = value
        return found

    def operand(self, operand: LinearOperand) -> Value:
        if isinstance(operand, Lin):
            return operand.value
        if isinstance(operand, Zero):
            return zeros(operand.type)
        return operand.value if operand.builder is self.builder else self.residual(operand.value)

    def emit(self, op: Op, operands: Sequence[LinearOperand], attrs: Attrs, regions: Sequence[Region]) -> Operation:
        return self.builder.emit_operation(op, [self.operand(operand) for operand in operands], attrs, regions)

    def neg(self, tangent: Tangent) -> Tangent:
        return tangent if isinstance(tangent, Zero) else Lin(self.builder.emit(self.neg_op, [tangent.value]))

    def add(self, left: Tangent, right: Tangent) -> Tangent:
        if isinstance(left, Zero):
            return right
        if isinstance(right, Zero):
            return left
        return Lin(self.builder.emit(self.add_op, [left.value, right.value]))

    def select(self, predicate: Term, true: Tangent, false: Tangent) -> Tangent:
        if isinstance(true, Zero) and isinstance(false, Zero):
            return true
        return Lin(self.emit(self.select_op, [predicate, true, false], NO_ATTRS, ()).results[0])

    def apply_all(
        self, op: Op, operands: Sequence[LinearOperand], attrs: Attrs = NO_ATTRS, regions: Sequence[Region] = ()
    ) -> list[Tangent]:
        if not any(isinstance(operand, Lin) for operand in operands):
            types = op.result_types([operand.type for operand in operands], attrs, regions)
            return [Zero(type) for type in types]
        return [Lin(result) for result in self.emit(op, operands, attrs, regions).results]
