"""From a function of the language to jax operations: the walk, and the table it looks ops up in.

A lowered function is a plain Python function of jax arrays that jax can trace: it can be compiled (``backend.py``), and
it can be part of a jax program. It computes in the precision that its types say, whatever jax's settings are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from jax import lax

from srcgrad.backends.xla.callbacks import CALLBACKS, call_back
from srcgrad.backends.xla.program import Application, Effect, Exceptions, Program, Recording, in_full_precision
from srcgrad.backends.xla.tables import (
    arrays,
    control,
    effects,
    elementary,
    elementwise,
    fourier,
    functions,
    indexing,
    linalg,
    solvers,
    special,
    spectral,
)
from srcgrad.ir.core import Function, Literal, Operation, Region, Value
from srcgrad.ir.errors import BackendError, DTypeError
from srcgrad.ir.types import ArrayType, TapeType

TABLES: Final = (
    elementwise.TABLE,
    elementary.TABLE,
    functions.TABLE,
    arrays.TABLE,
    indexing.TABLE,
    solvers.TABLE,
    effects.TABLE,
    control.TABLE,
    fourier.TABLE,
    linalg.TABLE,
    spectral.TABLE,
    special.TABLE,
)

LOWERINGS: Final[Mapping[str, Callable[..., Any]]] = {name: line for table in TABLES for name, line in table.items()}
"""op name -> function(*operands, **attrs) of jax arrays; those marked `contextual` are given an `Application` first."""

EXPANDED: Final[dict[str, str]] = {
    "linear_cond": "the linear part of a cond, expanded when it is transposed or pushed forward",
    "linear_for": "the linear part of a loop, expanded when it is transposed or pushed forward",
    "custom_linear": "the linear part of a custom rule, expanded when it is transposed or pushed forward",
    "coupling": "written out as svd and ordinary ops before a program is compiled",
    "singular": "written out as svd and ordinary ops before a program is compiled",
    "singular_sum": "written out as svdvals and ordinary ops before a program is compiled",
    "spectral": "written out as eigh and ordinary ops before a program is compiled",
    "spectral_sum": "written out as eigvalsh and ordinary ops before a program is compiled",
    "rematerialised": "the linear part of a checkpoint, expanded when it is transposed or pushed forward",
}
"""op -> why no program that is run holds it."""

RUNS: Final = itertools.count(1)
"""Numbers for calls."""
LARGE: Final = 1024
"""From how many elements on a literal array is an argument of the compiled program, not a constant in it."""


class Lowered:
    """A function of the language as a Python function of jax arrays: called with one array per parameter.

    The results are a tuple, one per result; with ``checks``, the status of the program's effects follows (see
    ``program.py``), and `effects` says, once it has been traced, what its rows mean.
    """

    def __init__(self, function: Function, sites: Any, checks: bool) -> None:
        refuse_long_doubles(function)
        self.function = function
        self.sites = sites
        self.checks = checks
        self.exceptions = Exceptions()
        self.effects: tuple[Effect, ...] = ()
        self.demands: tuple[Operation, ...] = ()
        self.capacities: dict[Operation, int] = {}
        self.recordings: dict[int, Recording] = {}
        self.replays = checks and replays(function)
        """Whether a call may have to run again, and what its host calls gave is to be used then: the first argument
        is the number that `recorded` gives."""
        self.__name__ = self.__qualname__ = function.name.replace(".", "_") or "function"

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        return self.run((), (), arguments)

    @contextmanager
    def recorded(self) -> Iterator[Callable[[], tuple[Any, ...]]]:
        """For one call: a function to be called whenever it runs, which gives its first arguments."""
        if not self.replays:
            yield lambda: ()
            return
        number = next(RUNS)
        recording = self.recordings[number] = Recording()

        def begin() -> tuple[Any, ...]:
            recording.position = 0
            return (np.int64(number),)

        try:
            yield begin
        finally:
            del self.recordings[number]

    def run(self, literals: Sequence[Literal], constants: Sequence[Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The results, where ``constants`` stand for ``literals``."""
        program = Program(
            self.sites, lower_region, self.checks, not self.checks, self.exceptions, capacities=self.capacities
        )
        program.recordings = self.recordings
        if self.replays:
            program.run, *arguments = arguments
        program.constants.update(zip(literals, constants, strict=True))
        with in_full_precision():
            results = lower_region(self.function, arguments, program)
            results = [control.made_solid(result) for result in results]
            if program.rows or program.demands:
                results.append(program.status())
        self.effects = tuple(program.effects)
        self.demands = tuple([operation for operation, _ in program.demands])
        return tuple(results)

    def large_literals(self) -> list[Literal]:
        """The literals that should be arguments of a compiled program, each once."""
        found: dict[Literal, None] = {}
        used: list[Value] = list(self.function.results)
        for operation in self.function.operations:
            used.extend(operation.operands)
        for value in used:
            if isinstance(value, Literal) and not value.splat and value.type.size >= LARGE:
                found[value] = None
        return list(found)


def replays(function: Function) -> bool:
    """Whether a function calls the host and keeps tapes."""
    operations = list(function.walk())
    return any(operation.op.name == "host_call" for operation in operations) and any(
        isinstance(value.type, TapeType) for operation in operations for value in operation.results
    )


def lower(function: Function, sites: Any = None, checks: bool = False) -> Lowered:
    """A function of the language as a function that jax can trace, compile, batch and differentiate.

    With ``checks``, one more result says which effects failed, and derivative rules of the user are not told to jax.
    Without, checks are left out, as jax has it: where NumPy raises LinAlgError there are nan.

    Raises:
        DTypeError: the function has long doubles, which XLA does not have.
        BackendError: when it is traced: an op that cannot run on jax's default device.
    """
    return Lowered(function, sites, checks)


def lower_region(region: Region, args: Sequence[Any], program: Program) -> list[Any]:
    """The region's results on jax arrays of its parameters' types."""
    env: dict[Value, Any] = dict(zip(region.params, args, strict=True))

    def read(value: Value) -> Any:
        found = env.get(value)
        if found is None:
            if not isinstance(value, Literal):
                return env[value]
            found = program.constants.get(value)
            if found is None:
                found = embed(value)
            env[value] = found
        return found

    for operation in region.operations:
        name = operation.op.name
        operands = [read(value) for value in operation.operands]
        line = LOWERINGS.get(name)
        if line is None:
            if name not in CALLBACKS:
                raise BackendError(f"the xla backend has no lowering for op {name!r}", span=operation.span)
            results = call_back(Application(operation, program), *operands)
        else:
            if getattr(line, "contextual", False):
                found = line(Application(operation, program), *operands)
            else:
                found = line(*operands, **operation.attrs)
            results = (found,) if len(operation.results) == 1 else found
        env.update(zip(operation.results, results, strict=True))
    return [read(value) for value in region.results]


def embed(literal: Literal) -> Any:
    """A literal as an array of its type; one of rank 0 stays a NumPy scalar, which jax takes as such."""
    if isinstance(literal.type, TapeType):
        return control.Filled(embed(Literal(literal.value, literal.type.element)))
    shape = literal.type.static_shape
    if not shape:
        return literal.value
    if literal.splat:
        filling: Any = literal.value
        return lax.full(shape, filling, literal.type.dtype)
    return np.asarray(literal.value)


def refuse_long_doubles(function: Function) -> None:
    """Raise where a type of the function has more precision than XLA has."""
    types: set[ArrayType] = {value.type for value in (*function.params, *function.results)}
    for operation in function.walk():
        types.update(value.type for value in (*operation.operands, *operation.results))
    for type in types:
        if type.dtype.kind in "fc" and type.dtype.itemsize > (16 if type.dtype.kind == "c" else 8):
            name = "clongdouble" if type.dtype.kind == "c" else "longdouble"
            raise DTypeError(f"the xla backend has no {name}", hint="use float64, or the numpy backend")
