"""What of a straight list of operations groups compute, what is a view, and what is left to the program around them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from srcgrad.backends.llvm import scalars
from srcgrad.backends.llvm.indices import Line, Piece, View, alias_offset, identity, strides_of, view_index, whole_view
from srcgrad.backends.llvm.loops import REDUCTIONS
from srcgrad.backends.llvm.natives import Natives, fused_kind
from srcgrad.backends.llvm.pieces import FEW, PIECED, pieces_of, wanted_updates
from srcgrad.backends.llvm.writing import is_fold
from srcgrad.ir.core import Literal, Operation, Value

LONGEST: Final = 2000
"""The cost at which a group ends: LLVM takes ever longer per instruction of a long loop."""
MANY_NUMBERS: Final = 250
"""The same for what is computed once, which is generated at a level at which that is so sooner."""
MANY_ARRAYS: Final = 64
"""The number of parameters, results and sums at which a group ends: LLVM's time for a call grows with the square of the
pointers that are given, and groups of hundreds of arrays have others beside them which are the same code. What lies in
the arena needs no pointer."""


class Classified:
    """The operations of one straight list by what becomes of them."""

    def __init__(
        self, operations: Sequence[Operation], results: Sequence[Value], natives: Natives, native: bool,
        given: Collection[Value],
    ) -> None:  # fmt: skip
        self.all = operations
        self.results = results
        self.natives = natives
        self.native = native
        """Whether the results may be handed on by native code."""
        self.views: dict[Value, View] = {}
        self.inlined: set[Value] = set()
        """What groups compute: elementwise values, reductions and iotas."""
        self.computed: list[tuple[Operation, Value, Sequence[Value]]] = []
        """These in the order of the program, each with its operation and what that reads, through views."""
        self.kept: set[Value] = set()
        self.left: list[Operation] = []
        """What the program around the groups runs."""
        self.parts: dict[Value, int] = {}
        """The part of a long program that a computed value is in: what another part reads is kept."""
        self.shown: set[Value] = set()
        """Views that are wanted as arrays in C order: groups write them."""
        self.joined: set[Value] = set()
        """Views that are read by their place in C order."""
        self.aliases: dict[Operation, tuple[Value, int]] = {}
        """Views that are whole pieces of memory of a value, from some byte on."""
        self.classify(given)

    def classify(self, given: Collection[Value]) -> None:
        arrays_of_updates = wanted_updates(self.all, self.results, fused_kind, given)
        for operation in self.all:
            kind = fused_kind(operation)
            if kind == "compute":
                (value,) = operation.results
                self.inlined.add(value)
                self.computed.append((operation, value, self.read_by(operation)))
                if operation.op.name in REDUCTIONS and operation.attrs["axes"]:
                    self.kept.add(value)
            elif kind == "view":
                self.note_view(operation)
            elif operation.op.name in PIECED and operation not in arrays_of_updates:
                self.note_pieces(operation)
        needed: set[Value] = {value for value in self.results if not isinstance(value, Literal)}
        arrays = {value for value in needed if self.is_handed_on(value)}
        """What native code reads, or hands on."""
        others = needed - arrays
        """What NumPy reads."""
        inside: set[Value] = set()
        """What loops that Python runs read."""
        needed |= self.joined
        arrays |= self.joined
        left = []
        for operation in reversed(self.all):
            first = operation.results[0] if operation.results else None
            if first in self.inlined or (first in self.views and first not in needed):
                continue
            repeated = first in inside and operation.op.name == "broadcast"  # kernels would copy it at each trip
            if first in self.views and (
                self.is_shown(operation, first, first in arrays, first in others) or (repeated and self.native)
            ):
                self.shown.add(first)
                self.kept.add(first)
                continue
            left.append(operation)
            if operation.op.name in PIECED and self.is_native(operation):
                self.natives.find_step(operation)
            if operation in self.aliases:
                needed.add(self.aliases[operation][0])
                arrays.add(self.aliases[operation][0])
                continue
            needed.update(operation.operands)
            native = self.is_native(operation)
            (arrays if native else others).update(operation.operands)
            if operation.regions and not native:
                inside.update(operation.operands)
            self.kept.update(operation.results)
        self.left = left[::-1]
        self.kept |= needed & self.inlined
        for view in self.views.values():
            for piece in view.pieces:
                if piece.places is None and piece.base in self.inlined:
                    self.kept.add(piece.base)
        self.part()

    def read_by(self, operation: Operation) -> Sequence[Value]:
        """What an operation reads, of arrays and of what groups compute."""
        operands = operation.operands
        if not self.views or self.views.keys().isdisjoint(operands):
            return operands
        return [base for operand in operands for base in self.bases(operand)]

    def bases(self, value: Value) -> Sequence[Value]:
        """What a value shows, or itself."""
        view = self.views.get(value)
        return (value,) if view is None else view.bases

    def part(self) -> None:
        once = total = ended = last = 0
        parts, given = self.parts, set(self.results)
        arrays: dict[tuple[int, ...], set[Value]] | None = {} if self.has_many_arrays() else None
        """What is given from outside, or to it, or summed, in the part, by the domain of what reads or makes it."""
        for operation, value, bases in self.computed:
            if value.type.shape or is_fold(value):
                total += scalars.cost(operation)
                if arrays is not None:
                    shown = operation.operands[0] if is_fold(value) else value
                    met = arrays.setdefault(shown.type.static_shape, set())
                    met.update([base for base in bases if (base.producer is None or base in given) and is_array(base)])
                    if value in given or is_fold(value):
                        met.add(value)
                    ended += len(met) > MANY_ARRAYS
                part = total // LONGEST + ended
                if part != last and arrays is not None:
                    arrays.clear()
                last = part
            else:
                once += scalars.cost(operation)
                part = once // MANY_NUMBERS
            parts[value] = part
            for base in bases:
                if parts.get(base, part) != part:
                    self.kept.add(base)

    def has_many_arrays(self) -> bool:
        """Whether a group could be given too many: of all that come from outside, or go there, or are summed."""
        outside = {base for _, _, bases in self.computed for base in bases if base.producer is None}
        sums = sum([is_fold(value) for _, value, _ in self.computed])
        return len(self.results) + sums + sum(map(is_array, outside)) > MANY_ARRAYS

    def is_native(self, operation: Operation) -> bool:
        return self.natives.is_native(operation)

    def is_handed_on(self, value: Value) -> bool:
        """Whether native code can hand on a result: not what is a view of an array that NumPy makes."""
        if not self.native:
            return False
        if value.producer is not None and value.producer.op.name in PIECED:
            return self.is_native(value.producer)
        return all(
            base.producer is None or base in self.inlined or self.is_native(base.producer) for base in self.bases(value)
        )

    def is_shown(self, operation: Operation, value: Value, native: bool, other: bool) -> bool:
        """Whether a group writes a view that native code or others want; or else it is left to NumPy, or an alias.

        Pieces that are arrays already are put together by a step, which copies them in less time than a loop.
        """
        view = self.views[value]
        if not native or operation.op.name in PIECED:
            return not view.is_flat and any(base in self.inlined for base in view.bases)
        offset = alias_offset(view, value)
        if offset is None or other:
            return True
        self.aliases[operation] = (view.bases[0], offset * value.type.dtype.itemsize)
        return False

    def note_view(self, operation: Operation) -> None:
        operand, result = operation.operands[0], operation.results[0]
        if isinstance(operand, Literal) and operand.splat:
            self.views[result] = whole_view(Literal(operand.value, result.type), identity(result.type))
            return
        index, rank = view_index(operation), result.type.rank
        below = self.views.get(operand)
        if index is None:
            if below is not None:  # axes of what is no array are joined: it becomes one
                self.joined.add(operand)
            self.views[result] = whole_view(operand, None, Line(0, strides_of(result.type.static_shape)))
        elif below is not None and not below.is_whole and result.type.size > operand.type.size:
            self.joined.add(operand)  # it is set together once, and read over and over
            self.views[result] = whole_view(operand, index)
        else:
            self.views[result] = whole_view(operand, index) if below is None else below.of(index, rank)

    def note_pieces(self, operation: Operation) -> None:
        view, result = pieces_of(operation, self.views.get(operation.operands[0])), operation.results[0]
        if view is not None:
            self.views[result] = self.through(view, result.type.rank)

    def through(self, view: View, rank: int) -> View:
        """Pieces of what are views themselves, as of what these show.

        What shows several pieces becomes an array, but where it is all that is left of a few: these are its own then.
        """
        pieces: list[Piece] = []
        padded = view.padded
        for piece in view.pieces:
            below = self.views.get(piece.base)
            if below is None:
                pieces.append(piece)
            elif below.is_whole:
                assert piece.places is not None
                inner = below.of(piece.places, rank).pieces[0]
                pieces.append(inner._replace(bounds=(*inner.bounds, *piece.bounds)))
            elif not piece.bounds and len(pieces) + len(below.pieces) <= FEW:
                pieces += below.pieces
                padded = below.padded
            else:
                self.joined.add(piece.base)
                pieces.append(piece)
        return View(tuple(pieces), tuple([piece.base for piece in pieces]), padded)


def is_array(value: Value) -> bool:
    """Whether a kernel that reads a value is given a pointer to more than one number."""
    return bool(value.type.shape) and not (isinstance(value, Literal) and value.splat)
