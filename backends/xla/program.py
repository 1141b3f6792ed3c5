"""What a lowering sees of the program besides its operands: effects, attributes, literals.

The effects of a program become one more result, the *status*: a row of two int64 numbers for each effect in program
order. The first is 0 where nothing went wrong. The second is a detail of what did: an index, the number of an
exception. After them comes a row for each loop that keeps a tape: the most trips that it has made. Where these are more
than there was room for, what the program returns means nothing: it is compiled again with more room.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import jax
import numpy as np
from jax import lax

from srcgrad.ir.core import Literal, Operation, Value
from srcgrad.ir.errors import BackendError
from srcgrad.ir.ops.effects import error_class
from srcgrad.ir.source import Span
from srcgrad.ir.transforms.symmetry import Parameters, Symmetry

INT64: Final = np.dtype(np.int64)
HOST: Final = "host call"
"""The kind of an effect whose detail is the number of an exception."""

FIRST_CAPACITY: Final = 16
"""The room for a tape before it is known how many trips its loop makes."""

_numbers: Final = itertools.count(1)


@contextmanager
def in_full_precision() -> Iterator[None]:
    """For jax operations: 64 bits, and products of matrices in the precision of their dtype, whatever the settings are.

    GPUs multiply matrices of float32 with 10 bits of each number unless they are told not to.
    """
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def on_cpu() -> bool:
    """Whether programs are compiled for jax's default device, and that is a CPU."""
    return bool(jax.default_backend() == "cpu")


Row = tuple[Any, Any]
"""What an effect reports: whether it failed, and a detail."""


class Effect(NamedTuple):
    """What is raised if it fails: the error ``kind`` with ``message``, in which ``{detail}`` stands for the detail."""

    kind: str
    message: str
    detailed: bool = False
    span: Span | None = None
    """Where the user wrote what fails."""


class Exceptions:
    """The exceptions of host calls on their way from the callback to the caller, by number."""

    def __init__(self) -> None:
        self.kept: dict[int, BaseException] = {}

    def keep(self, error: BaseException) -> int:
        number = next(_numbers)
        self.kept[number] = error
        return number

    def take(self, number: int) -> BaseException:
        return self.kept.pop(number)


class Recording:
    """What the host calls of one call of a program have given, for when it has to run again."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.position = 0

    def next(self, call: Callable[[], Any]) -> Any:
        """The result of the next host call, which is made if it has not been made before."""
        if self.position == len(self.results):
            self.results.append(call())
        self.position += 1
        return self.results[self.position - 1]


@dataclass
class Program:
    """One lowering in progress."""

    sites: Any
    walk: Callable[..., list[Any]]
    """Lowers a region within a program: ``walk(region, arguments, program)``."""
    checks: bool = True
    """Whether effects are reported in the status. If not, checks are left out, and host calls raise where they run."""
    rules: bool = False
    """Whether jax may differentiate the program: custom rules and checkpoints are told to jax."""
    exceptions: Exceptions = field(default_factory=Exceptions)
    constants: dict[Literal, jax.Array] = field(default_factory=dict)
    """Large literals that are arguments of the program."""
    effects: list[Effect] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    capacities: dict[Operation, int] = field(default_factory=dict)
    """How many elements the tapes of a loop have room for."""
    demands: list[tuple[Operation, Any]] = field(default_factory=list)
    """The loops that keep tapes, and the most trips that each has made."""
    explored: dict[Any, Any] = field(default_factory=dict)
    """What is known of regions that have been traced."""
    before: Any = None
    """Whether nothing had failed before the region that this is; None for a whole program."""
    sound_before: Any = None
    """The same, where tapes have lacked room too; None where nothing can have failed."""
    run: Any = None
    """The number of the call, under which its host calls are recorded; None if it never runs again."""
    recordings: dict[int, Recording] = field(default_factory=dict)

    def child(self, alive: Any, sound: Any = None) -> Program:
        """The lowering of a region: what it reports is its own."""
        return Program(
            self.sites, self.walk, self.checks, self.rules, self.exceptions, self.constants,
            capacities=self.capacities, explored=self.explored, before=alive, sound_before=sound,
            run=self.run, recordings=self.recordings,
        )  # fmt: skip

    def capacity(self, operation: Operation) -> int:
        """The room for the tapes of a loop.

        Raises:
            BackendError: the program is part of one of jax's, which cannot be compiled again.
        """
        if not self.checks:
            raise BackendError(
                "a loop whose trip count is known at run time keeps what its reverse needs in as much memory as it "
                "makes trips, and a jax program must know how much",
                span=operation.span,
                hint="give the loop a trip count that is a Python int, or call it through srcgrad",
            )
        return self.capacities.setdefault(operation, FIRST_CAPACITY)

    def report(self, failed: jax.Array, detail: jax.Array, effect: Effect) -> None:
        self.effects.append(effect)
        self.rows.append((lax.convert_element_type(failed, INT64), lax.convert_element_type(detail, INT64)))

    def alive(self) -> jax.Array:
        """Whether nothing has failed so far, and no tape lacked room: what is read from one means nothing."""
        fine = is_fine(self.rows)
        if self.demands:
            fine = lax.bitwise_and(
                fine, self.fits([op for op, _ in self.demands], [trips for _, trips in self.demands])
            )
        return fine if self.before is None else lax.bitwise_and(fine, self.before)

    def sound(self, rows: Sequence[Row] = ()) -> Any:
        """Whether nothing has failed so far, nor in these rows; None where nothing can have.

        A loop goes on only where this holds: what comes after an error might never let it end. One that lacks room
        for its tapes goes on, to say how much it needs.
        """
        found = [is_fine(reports) for reports in (self.rows, rows) if self.checks and reports]
        if self.sound_before is not None:
            found.append(self.sound_before)
        return functools.reduce(lax.bitwise_and, found) if found else None

    def fits(self, loops: Sequence[Operation], trips: Sequence[Any]) -> Any:
        """Whether there was room for the trips that loops have made."""
        found: Any = np.bool_(True)
        for operation, number in zip(loops, trips, strict=True):
            found = lax.bitwise_and(found, lax.le(number, np.int64(self.capacities.get(operation, 0))))
        return found

    def status(self) -> jax.Array:
        rows = [*self.rows, *((trips, np.int64(0)) for _, trips in self.demands)]
        flat: list[Any] = [number for row in rows for number in row]
        numbers = [lax.reshape(number, (1,)) for number in flat]
        return lax.reshape(lax.concatenate(numbers, 0), (len(rows), 2))


def is_fine(rows: Sequence[Row]) -> Any:
    """Whether nothing has failed that these say."""
    total: Any = np.int64(0)
    for failed, _ in rows:
        total = lax.bitwise_or(total, failed)
    return lax.eq(total, np.int64(0))


def raise_first(status: np.ndarray[Any, Any], effects: Sequence[Effect], exceptions: Exceptions) -> None:
    """Raise what the first failed effect of a program says; nothing if all went well."""
    failed = np.flatnonzero(status[: len(effects), 0])
    if not failed.size:
        return
    effect, detail = effects[failed[0]], int(status[failed[0], 1])
    if effect.kind == HOST:
        raise exceptions.take(detail)
    message = effect.message.format(detail=detail) if effect.detailed else effect.message
    raise error_class(effect.kind)(message)


def grown(status: np.ndarray[Any, Any], demands: Sequence[Operation], capacities: dict[Operation, int]) -> bool:
    """Whether a loop made more trips than there was room for; then there is room for the next power of two."""
    found = False
    for operation, trips in zip(demands, status[len(status) - len(demands) :, 0].tolist(), strict=True):
        if trips > capacities.get(operation, 0):
            capacities[operation] = 1 << (int(trips) - 1).bit_length()
            found = True
    return found


class Application:
    """One operation as seen by a lowering marked with `contextual`: called ``line(application, *operands)``."""

    __slots__ = ("operation", "program")

    def __init__(self, operation: Operation, program: Program) -> None:
        self.operation = operation
        self.program = program

    @property
    def attrs(self) -> Mapping[str, Any]:
        return self.operation.attrs

    def known(self, position: int) -> np.ndarray[Any, Any] | None:
        """The operand at this position as a NumPy array, where it is a literal."""
        value: Value = self.operation.operands[position]
        if not isinstance(value, Literal):
            return None
        return np.broadcast_to(value.value, value.type.static_shape)

    def from_lower(self, x: Any) -> Any:
        """The Hermitian matrices of which the lower triangle is read: for jax, which takes the Hermitian part of any
        tangent, and only where those of the operand may be others.
        """
        if not self.program.rules or Symmetry(Parameters(), {}).holds(self.operation.operands[0]):
            return x
        rows, columns = (lax.broadcasted_iota(np.int64, x.shape, axis) for axis in (x.ndim - 2, x.ndim - 1))
        adjoint = jax.numpy.conjugate(jax.numpy.swapaxes(x, -1, -2))
        below = jax.numpy.where(rows > columns, x, adjoint)
        return jax.numpy.where(rows == columns, x.real.astype(x.dtype), below)

    def check(self, predicate: Any, message: str, kind: str, detail: Any = None) -> None:
        """Raise the error ``kind`` after the call unless all of ``predicate`` is true.

        With a ``detail``, an integer array like the predicate, ``{detail}`` in the message becomes the first one at
        which the predicate is false.
        """
        if not self.program.checks or predicate.size == 0:
            return
        fine = lax.reshape(predicate, (predicate.size,))
        failed = lax.bitwise_not(lax.reduce_and(fine, (0,)))
        number: Any = np.int64(0)
        if detail is not None:
            first = lax.argmin(fine, 0, INT64) if predicate.size > 1 else np.int64(0)  # GPUs cannot search one element
            number = lax.dynamic_index_in_dim(lax.reshape(detail, (detail.size,)), first, keepdims=False)
        self.program.report(failed, number, Effect(kind, message, detail is not None, self.operation.span))

    def call_back(self, *operands: Any) -> Sequence[Any]:
        """The results by the NumPy meaning of the op, called from the compiled program."""
        from srcgrad.backends.xla.callbacks import call_back  # callbacks need programs, programs rarely callbacks

        return call_back(self, *operands)
