"""Complex numbers as pairs of real ones: an elementwise operation on them is some on their parts, which are loops.

A complex value is *whole*, an array of pairs in memory, where something that is no loop gives or reads it: parameters
and results, steps, elements by index. Loops compute with its *parts*: they read these of an array through `PARTS`, the
same memory as real numbers with one more axis, and write both with ``complex``, whose stores are one vector of pairs.
So chains of complex operations are fused as others are, with reductions, views and real operations, and numbers that
loops carry are in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar, Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.complex_inverse import RULES, has_rule
from srcgrad.backends.llvm.complex_math import Parts, is_nought, pair, parts_of_literal
from srcgrad.backends.llvm.indices import VIEWS
from srcgrad.backends.llvm.kinds import is_loop_type, is_static
from srcgrad.backends.llvm.planning import is_counted
from srcgrad.ir.core import Attrs, Builder, Literal, Operation, Region, Value
from srcgrad.ir.opdef import REGISTRY, Op, Term
from srcgrad.ir.ops.generate import iota
from srcgrad.ir.passes.rewrite import AnyRegion, rebuilt
from srcgrad.ir.types import ArrayType, TapeType, real_dtype

NOTHING: Final[Mapping[Value, Parts]] = MappingProxyType({})
CONTROL: Final = frozenset({"cond", "for", "while"})
_MOVED: Final = VIEWS | {"concatenate", "slice_set"}
"""What moves numbers: of whole arrays to a whole array it is left as it is."""


class PartsOf(Op, abstract=True):
    """A complex array as real numbers, the real parts and then the imaginary ones along a last axis: the same bytes."""

    name: ClassVar[str] = "parts"

    def result_type(self, types: Sequence[ArrayType], attrs: Attrs) -> ArrayType:
        return ArrayType(real_dtype(types[0].dtype), (*types[0].shape, 2))

    def source(self, operands: Sequence[str], types: Sequence[ArrayType], result: ArrayType, attrs: Attrs) -> str:
        return f"np.stack([np.real({operands[0]}), np.imag({operands[0]})], -1)"


PARTS: Final = PartsOf()


@lru_cache(maxsize=1024)
def is_complex(type: ArrayType) -> bool:
    """Whether loops can compute with the parts of such values."""
    return type.dtype.kind == "c" and is_static(type) and scalars.is_register(real_dtype(type.dtype))


def is_carried(type: ArrayType) -> bool:
    """Whether values of the type are two in control flow: numbers, and tapes of numbers."""
    return type.dtype.kind == "c" and not type.shape and scalars.is_register(real_dtype(type.dtype))


def is_split(operation: Operation) -> bool:
    """Whether an operation is some on the parts of complex numbers."""
    if len(operation.results) != 1 or not has_rule(operation):
        return False
    types = [value.type for value in (*operation.operands, *operation.results)]
    if not any(type.dtype.kind == "c" for type in types):
        return False
    return all(is_complex(type) if type.dtype.kind == "c" else is_loop_type(type) for type in types)


def in_parts(region: AnyRegion) -> AnyRegion:
    """The region with complex numbers as pairs wherever loops compute with them, in its regions too."""
    face = (*region.params, *region.results)
    writer = _Writer(region, not any(isinstance(value.type, TapeType) and is_carried(value.type) for value in face))
    return rebuilt(region, writer.operations(), writer.results())


class _Needs:
    """Of the complex values of one region, which are needed whole and which in parts, and what is left whole."""

    def __init__(self, region: Region, writer: _Writer) -> None:
        self.is_pair = writer.is_pair
        self.arrays: set[Value] = {value for value in region.params if value not in writer.pairs}
        """What is whole where it is made."""
        self.left: set[Operation] = set()
        """What moves whole arrays."""
        self.split = {item for item in region.operations if item.op.name not in CONTROL and is_split(item)}
        for operation in region.operations:
            if operation not in self.split:
                self.arrays.update(operation.results)
            elif operation.op.name in _MOVED:
                written = operation.op.name == "slice_set" and operation.operands[0] in self.arrays
                if written or all(map(self.is_array, operation.operands)):
                    self.arrays.update(operation.results)
        self.whole: set[Value] = {value for k, value in enumerate(region.results) if k not in writer.given}
        self.parts: set[Value] = {value for k, value in enumerate(region.results) if k in writer.given}
        for operation in reversed(region.operations):
            self.visit(operation)

    def is_array(self, value: Value) -> bool:
        return value in self.arrays or isinstance(value, Literal)

    def visit(self, operation: Operation) -> None:
        result = operation.results[0] if operation.results else None
        if operation.op.name in CONTROL:
            for value in operation.operands:
                (self.parts if self.is_pair(value) else self.whole).add(value)
        elif operation not in self.split:
            self.whole.update(operation.operands)
        elif result in self.arrays and operation.op.name in _MOVED and self.is_left(operation):
            self.left.add(operation)
            self.whole.update(operation.operands)
        else:
            self.parts.update(operation.operands)

    def is_left(self, operation: Operation) -> bool:
        """Whether what moves whole arrays is to give one: nothing needs its parts, or a part is written in place."""
        result = operation.results[0]
        return result not in self.parts or (operation.op.name == "slice_set" and result in self.whole)


class _Writer:
    """The state of writing one region.

    ``pairs``: parameters that are two values, and these; ``given``: the results that are to be two.
    """

    def __init__(
        self, region: Region, carried: bool, pairs: Mapping[Value, Parts] = NOTHING, given: frozenset[int] = frozenset()
    ) -> None:
        self.region = region
        self.carried = carried
        """Whether numbers are two values in control flow."""
        self.pairs: dict[Value, Parts] = dict(pairs)
        self.given = given
        self.builder = Builder()
        self.known: dict[Value, Value] = {}
        """What is whole."""
        self.needs = _Needs(region, self)
        for param in region.params:
            if param in self.pairs:
                self.define_parts(param, self.with_builder(self.pairs[param]))
            else:
                self.define(param, param)

    def is_pair(self, value: Value) -> bool:
        """Whether control flow hands a value on as two."""
        return self.carried and is_carried(value.type)

    def with_builder(self, parts: Parts) -> Parts:
        return Parts(Term(self.builder, parts.real.value), Term(self.builder, parts.imag.value))

    # --- values ------------------------------------------------------------------------------------
    def define(self, old: Value, new: Value) -> None:
        """Note what a value is that is whole, and its parts where they are needed."""
        self.known[old] = new
        if old in self.needs.parts and is_complex(old.type) and not isinstance(old.type, TapeType):
            self.pairs[old] = self.read(new)

    def define_parts(self, old: Value, parts: Parts) -> None:
        self.pairs[old] = parts
        if old in self.needs.whole and not isinstance(old.type, TapeType):
            whole = self.builder.emit(REGISTRY["complex"], (parts.real.value, parts.imag.value))
            if whole.name is None:
                whole.name = old.name
            self.known[old] = whole

    def read(self, whole: Value) -> Parts:
        """The parts of an array."""
        array, rank = Term(self.builder, self.builder.emit(PARTS, (whole,))), whole.type.rank
        found = []
        for k in range(2):
            starts, limits = (*[0] * rank, k), (*whole.type.static_shape, k + 1)
            part = REGISTRY["slice"](array, starts=starts, limits=limits, strides=(1,) * (rank + 1))
            found.append(REGISTRY["reshape"](part, shape=whole.type.static_shape))
        return pair(*found)

    def whole(self, value: Value) -> Value:
        return value if isinstance(value, Literal) else self.known[value]

    def parts(self, value: Value) -> Parts:
        if isinstance(value, Literal):
            real, imag = (Term(self.builder, part) for part in parts_of_literal(value))
            return Parts(real, imag, is_nought(real))
        return self.pairs[value]

    def both(self, value: Value) -> list[Value]:
        """What control flow hands on for a value."""
        if not self.is_pair(value):
            return [self.whole(value)]
        return [part.value for part in self.parts(value)[:2]]

    def results(self) -> list[Value]:
        found: list[Value] = []
        for k, value in enumerate(self.region.results):
            found += [part.value for part in self.parts(value)[:2]] if k in self.given else [self.whole(value)]
        return found

    # --- operations --------------------------------------------------------------------------------
    def operations(self) -> list[Operation]:
        for operation in self.region.operations:
            self.builder.span = operation.span
            if operation.op.name in CONTROL:
                self.control(operation)
            elif operation in self.needs.split and operation not in self.needs.left:
                self.split(operation)
            else:
                self.leave(operation)
        return self.builder.operations

    def split(self, operation: Operation) -> None:
        if operation.op.name == "iota":
            type = operation.results[0].type
            part = iota(self.builder, type.with_dtype(real_dtype(type.dtype)), operation.attrs["axis"])
            self.define_parts(operation.results[0], Parts(part, part.like(0)))
            return
        given = [
            self.parts(value) if value.type.dtype.kind == "c" else Term(self.builder, self.whole(value))
            for value in operation.operands
        ]
        found, (result,) = RULES[operation.op.name](*given, **operation.attrs), operation.results
        if isinstance(found, Parts):
            self.define_parts(result, found)
        else:
            self.name(result, found.value)

    def name(self, old: Value, new: Value) -> None:
        if new.name is None and new.producer is not None:
            new.name = old.name
        self.define(old, new)

    def leave(self, operation: Operation) -> None:
        if operation.op.name == "tape_length":
            operands = [self.both(value)[0] for value in operation.operands]
        else:
            operands = [self.whole(value) for value in operation.operands]
        regions = tuple([in_parts(region) for region in operation.regions])
        found = self.builder.emit_operation(operation.op, operands, operation.attrs, regions).results
        for old, new in zip(operation.results, found, strict=True):
            self.name(old, new)

    def control(self, operation: Operation) -> None:
        """Branches and loops, in which numbers are two values, and tapes of them two tapes."""
        operands = operation.operands
        handed = operands[1:] if operation.op.name == "cond" or is_counted(operation) else operands
        taken = [self.is_pair(value) for value in handed]
        results = list(operation.results)
        if operation.op.name == "while":  # the number of trips is the loop's
            del results[operation.attrs["carries"]]
        given = frozenset(k for k, value in enumerate(results) if self.is_pair(value))
        regions = []
        for region in operation.regions:
            decides = operation.op.name == "while" and region is operation.regions[0]
            skipped = len(region.params) - len(handed)
            regions.append(self.inner(region, skipped, taken, frozenset() if decides else given))
        attrs, counts = dict(operation.attrs), operation.attrs
        if "carries" in attrs:
            attrs["carries"] += sum(taken[: counts["carries"]])
        if "consts" in attrs:
            attrs["consts"] += sum(taken[counts["carries"] : counts["carries"] + counts["consts"]])
        more = [new for value in handed for new in self.both(value)]
        first = [self.whole(value) for value in operands[: len(operands) - len(handed)]]
        made = iter(self.builder.emit_operation(operation.op, [*first, *more], attrs, regions).results)
        for old in operation.results:
            if self.is_pair(old):
                self.define_parts(old, Parts(Term(self.builder, next(made)), Term(self.builder, next(made))))
            else:
                self.name(old, next(made))

    def inner(self, region: Region, skipped: int, taken: Sequence[bool], given: frozenset[int]) -> Region:
        """A region of control flow, of whose parameters after ``skipped`` ones these are two values each."""
        params, pairs = list(region.params[:skipped]), dict[Value, Parts]()
        for param, is_taken in zip(region.params[skipped:], taken, strict=True):
            if not is_taken:
                params.append(param)
                continue
            type = param.type.with_dtype(real_dtype(param.type.dtype))
            both = [Value(type, None, param.name), Value(type, None, param.name)]
            params += both
            pairs[param] = pair(*[Term(self.builder, part) for part in both])
        writer = _Writer(region, self.carried, pairs, given)
        return Region(params, writer.operations(), writer.results())
