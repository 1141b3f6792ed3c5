"""``with srcgrad.debug()``: nothing is compiled, values are visible, and what is not finite is traced to its origin.

Inside it a transformed function is traced with its numbers known, so that the user's code runs operation by operation
and in Python's own order, and its derivative is interpreted. A value that is not finite stops at the operation that
makes it, while the user's frames are on the stack. A derivative may hold infinities that a mask takes out again
(`srcgrad.ir.transforms.linear`), so it is judged by its results: each infinity or nan is followed from operation to
operation, and one that reaches a result is reported with the operation where it arose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.backends.numpy.evaluate import OBSERVER, evaluate, evaluate_operation
from srcgrad.boundary import checked, described
from srcgrad.building import Job, own
from srcgrad.changes import changes_of
from srcgrad.compiler import Runner
from srcgrad.errors import ArgumentError, ConcretizationError, NonFiniteError, UnsupportedError
from srcgrad.ir.collector import without_gc
from srcgrad.ir.core import Function, Literal, Operation, Value
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.expand import expand
from srcgrad.ir.source import Span
from srcgrad.ir.types import ArrayType
from srcgrad.mapped import Jit, Vmap, mapping
from srcgrad.tracing.aliasing import alias_groups
from srcgrad.tracing.function import as_array
from srcgrad.tracing.jax_arrays import is_jax_array, to_jax_results, to_numpy, without_jax_arrays
from srcgrad.tracing.trace import WATCH, Refused, marked
from srcgrad.transformed import Transformed


class Options(NamedTuple):
    """What stops a program."""

    values: bool
    adjoints: bool
    nan_only: bool

    def bad(self, array: Any) -> bool:
        """Whether an array, a number or a tape holds what stops a program."""
        if is_tape(array):
            return any(map(self.bad, array))
        if array.dtype.kind not in "fc":
            return False
        return bool(np.isnan(array).any() if self.nan_only else not np.isfinite(array).all())


@checked
def debug(values: bool = True, adjoints: bool = True, *, nan_only: bool = False) -> AbstractContextManager[None]:
    """Run transformed functions operation by operation on NumPy inside a ``with`` block, in this thread or task.

    Nothing is compiled or kept, whatever the backend: the function runs with its numbers known, so that ``print`` and a
    debugger show them, and an exception leaves with the user's frames alone.

    Args:
        values: stop where an operation of the function gives inf or nan of finite operands.
        adjoints: report a derivative that is not finite, at the forward line where that begins.
        nan_only: stop at nan only.

    Raises:
        ArgumentError: an option that is no bool.

    The functions raise NonFiniteError, which names the line, the operation and its operands.

    >>> import numpy as np, srcgrad as sg
    >>> with sg.debug():
    ...     try:
    ...         sg.grad(lambda x: np.sqrt(x) * 2.0)(0.0)
    ...     except sg.errors.NonFiniteError as error:
    ...         print(error.message.splitlines()[0])
    the adjoint became non-finite: the derivative of sqrt gives inf
    """
    for name, option in (("values", values), ("adjoints", adjoints), ("nan_only", nan_only)):
        if not isinstance(option, bool):
            raise ArgumentError(
                f"debug: {name} is True or False, not {described(option)}", hint="with srcgrad.debug(nan_only=True): …"
            )
    return watching(Watch(Options(values, adjoints, nan_only)))


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    with marked():
        token = WATCH.set(watch)
        try:
            yield
        finally:
            WATCH.reset(token)


class Origin(NamedTuple):
    """Where a number that is not finite arose."""

    operation: Operation | None
    """None: it was given."""
    operands: Sequence[Any] = ()
    results: Sequence[Any] = ()
    trips: tuple[int, ...] = ()
    """The trips of the loops around it, the outermost first."""


GIVEN: Final = Origin(None)


class Flow:
    """Follows what is not finite through a program that `evaluate` runs: the observer of its operations."""

    def __init__(self, options: Options, excused: frozenset[tuple[Span | None, str]] = frozenset()) -> None:
        self.options = options
        self.excused = excused
        """The places and names of operations of the function itself whose results may be what they are."""
        self.of_value: dict[Value, Origin] = {}
        self.of_array: dict[int, tuple[Any, Origin]] = {}
        """By identity, since arrays enter regions as they are; with the array, which keeps the number its own."""
        self.found: list[Origin] = []
        self.loops: list[int] = []

    def trips(self, numbers: Iterable[int]) -> Iterator[int]:
        self.loops.append(0)
        try:
            for number in numbers:
                self.loops[-1] = number
                yield number
        finally:
            self.loops.pop()

    def ran(self, operation: Operation, operands: Sequence[Any], run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        before = len(self.found)
        results = run()
        bad = [self.options.bad(result) for result in results]
        if any(bad):
            origin = self.traced(operation, operands, results, self.found[before:])
            for value, result, flag in zip(operation.results, results, bad, strict=True):
                if flag:
                    self.of_value[value] = origin
                    self.of_array.setdefault(id(result), (result, origin))
        for value, flag in zip(operation.results, bad, strict=True):
            if not flag:
                self.of_value.pop(value, None)  # the last trip's
        return results

    def traced(
        self, operation: Operation, operands: Sequence[Any], results: Sequence[Any], inner: Sequence[Origin]
    ) -> Origin:
        """The origin of the results of an operation; ``inner``: what arose in its regions."""
        if inner:
            first = inner[0].operation
            if operation.span is None or (first is not None and first.span is not None):
                return inner[0]
            return Origin(operation, operands, results, inner[0].trips)  # an op that was written out has no place
        for value, operand in zip(operation.operands, operands, strict=True):
            if self.options.bad(operand):
                return self.known(value, operand)
        return self.new(Origin(operation, operands, results, tuple(self.loops)))

    def new(self, origin: Origin) -> Origin:
        assert origin.operation is not None
        if (origin.operation.span, origin.operation.op.name) in self.excused:
            return GIVEN
        self.found.append(origin)
        return origin

    def known(self, value: Value, array: Any) -> Origin:
        """Where what an array holds arose; of a part of a column or tape, where the first of all did."""
        if isinstance(value, Literal):
            return GIVEN
        found = self.of_value.get(value)
        if found is None:
            for part in [array, *(array if is_tape(array) else ())]:
                if id(part) in self.of_array:
                    return self.of_array[id(part)][1]
        return found or (self.found[0] if self.found else GIVEN)


@contextmanager
def observing(flow: Flow) -> Iterator[None]:
    token = OBSERVER.set(flow)
    try:
        yield
    finally:
        OBSERVER.reset(token)


class Forward(NamedTuple):
    """An operation of the function itself, as it ran."""

    operation: Operation
    operands: Sequence[Any]


class Watch:
    """What one call of a transformed function does, from its trace to the end of its derivative."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.forward: dict[Span, list[Forward]] = {}
        self.runs: dict[Span, int] = {}
        """How often the place had run an operation of the name, of spans after the first."""
        self.counts: dict[tuple[Span, str], int] = {}
        self.spans: dict[tuple[Span, int], Span] = {}
        self.excused: set[tuple[Span | None, str]] = set()

    def __call__(self, operation: Operation, numbers: Sequence[Any]) -> Sequence[Any]:
        """Run an operation of the function; `srcgrad.tracing.trace.Watch`.

        Raises:
            NonFiniteError: it gives what is not finite of finite operands, and that is to stop.
        """
        self.place(operation, numbers)
        flow = Flow(self.options)
        with observing(flow):
            results = flow.ran(operation, numbers, lambda: evaluated(operation, numbers))
        for value in operation.results:
            origin = flow.of_value.get(value, GIVEN)
            if origin.operation is not None:
                if self.options.values:
                    raise self.value_error(origin)
                self.excused.add((origin.operation.span, origin.operation.op.name))
                self.excused.add((operation.span, operation.op.name))
        return results

    def place(self, operation: Operation, numbers: Sequence[Any]) -> None:
        """Note an operation at its place; the next run of the same place gets a span of its own."""
        span = operation.span
        if span is None:
            return
        key = (span, operation.op.name)
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count > 1:
            found = self.spans.get((span, count))
            if found is None:
                found = self.spans[(span, count)] = span.again()
                self.runs[found] = count
            operation.span = span = found
        self.forward.setdefault(span, []).append(Forward(operation, numbers))

    def runner(self, function: Function, sites: Sequence[Any], flow: Flow, judged: bool) -> Runner:
        """A Function that is interpreted; if ``judged``, it raises NonFiniteError for results that are not finite."""
        live = expand(dce(function))
        derivative = "adjoint" if any("adjoint" in role(operation) for operation in function.walk()) else "tangent"

        def run(arguments: Sequence[Any]) -> Sequence[Any]:
            for argument in arguments:
                if self.options.bad(argument):
                    flow.of_array.setdefault(id(argument), (argument, GIVEN))
            flow.loops.clear()  # of a run that an error ended
            with observing(flow):
                results = evaluate(live, arguments, sites)
            owned = [own(result) for result in results]
            for value, result, given in zip(live.results, results, owned, strict=True):
                if not self.options.bad(given):
                    continue
                origin = flow.known(value, result)
                flow.of_array[id(given)] = (given, origin)
                if judged and self.options.adjoints and origin.operation is not None:
                    raise self.derivative_error(origin, derivative)
            return owned

        return run

    # --- messages ----------------------------------------------------------------------------------------------------
    def value_error(self, origin: Origin) -> NonFiniteError:
        operation = origin.operation
        assert operation is not None
        name = operation.op.name
        lines = [f"the value became non-finite: {name} gives {kinds(origin.results)} where its operands are finite"]
        lines += operand_lines(operation, origin.operands)
        lines += result_lines(origin.results)
        lines += self.when(operation.span, origin.trips)
        advice = advice_on(name, origin.operands)
        hint = f"{advice}; where np.where or the like discards it: debug(values=False)"
        return NonFiniteError("\n".join(lines), span=operation.span, hint=hint)

    def derivative_error(self, origin: Origin, derivative: str) -> NonFiniteError:
        operation = origin.operation
        assert operation is not None
        span = None if operation.span is None else operation.span.origin
        own_name = operation.op.name
        forward = self.forward_of(span)
        name = own_name if forward is None else forward.operation.op.name
        what = own_name if forward is None else f"the derivative of {name}"
        lines = [f"the {derivative} became non-finite: {what} gives {kinds(origin.results)}"]
        operands = origin.operands
        if forward is not None:
            operands = forward.operands
            lines += operand_lines(forward.operation, operands)
        lines.append(f"  it arose in {own_name} of finite operands:")
        lines += [f"  {line}" for line in operand_lines(operation, origin.operands)]
        lines += [f"  {line}" for line in result_lines(origin.results)]
        lines += self.when(span, origin.trips)
        return NonFiniteError("\n".join(lines), span=span, hint=advice_on(name, operands))

    def forward_of(self, span: Span | None) -> Forward | None:
        """The operation of the function that stands at a place: of several, one known for its singularities."""
        if span is None:
            return None
        found = self.forward.get(span, [])
        singular = [forward for forward in found if forward.operation.op.name in ADVICE]
        return next(iter(singular or found), None)

    def when(self, span: Span | None, trips: tuple[int, ...]) -> list[str]:
        if trips:
            return ["  in trip " + " of the inner loop, in trip ".join(str(trip + 1) for trip in reversed(trips))]
        count = None if span is None else self.runs.get(span)
        return [] if count is None else [f"  in run {count} of this operation"]


def role(operation: Operation) -> str:
    return "" if operation.span is None else operation.span.role


def evaluated(operation: Operation, numbers: Sequence[Any]) -> Sequence[Any]:
    types = [operand.type for operand in operation.operands]
    results = [result.type for result in operation.results]
    return evaluate_operation(operation.op, numbers, operation.attrs, types, results, operation.regions)


def kinds(results: Sequence[Any]) -> str:
    """``nan``, ``inf``, ``-inf``: which of them arrays hold."""
    arrays = [np.asarray(result) for result in leaves(results) if result.dtype.kind in "fc"]
    found = [
        name
        for name, test in (("nan", np.isnan), ("inf", np.isposinf), ("-inf", np.isneginf))
        if any(test(part).any() for array in arrays for part in (array.real, array.imag))
    ]
    return " and ".join(found)


def is_tape(result: Any) -> bool:
    """Whether this is no array or number, but what a loop has kept."""
    return isinstance(result, Sequence)


def leaves(results: Iterable[Any]) -> Iterator[Any]:
    """The arrays, and those of tapes."""
    for result in results:
        if is_tape(result):
            yield from leaves(result)
        else:
            yield result


def short(array: Any) -> str:
    """An array on one line, with its type; of large ones the ends."""
    if is_tape(array):
        return f"a tape of {len(array)} trips"
    array = np.asarray(array)
    type_ = ArrayType(array.dtype, array.shape)
    text = np.array2string(array, precision=6, threshold=8, edgeitems=3, separator=", ").split()
    return f"{type_} = {' '.join(text)}"


def operand_lines(operation: Operation, operands: Sequence[Any]) -> list[str]:
    lines = []
    for value, operand in zip(operation.operands, operands, strict=True):
        name = f" {value.name}" if value.name is not None else ""
        lines.append(f"  operand{name}: {short(operand)}")
    return lines


def result_lines(results: Sequence[Any]) -> list[str]:
    lines = []
    for result in results:
        line = f"  result: {short(result)}"
        if not is_tape(result) and result.dtype.kind in "fc" and np.ndim(result):
            places = np.argwhere(~np.isfinite(result))
            if len(places):
                line += f", first non-finite at {places[0].tolist()} ({len(places)} of {result.size})"
        lines.append(line)
    return lines


# --- advice -----------------------------------------------------------------------------------------------------------

NEAR_ZERO: Final = "keep the argument away from 0"
ADVICE: Final[dict[str, str]] = {
    "sqrt": "sqrt has an infinite slope at 0 and no real value below it: add a small positive number under the root",
    "cbrt": "cbrt has an infinite slope at 0: " + NEAR_ZERO,
    "log": "log is -inf at 0 and nan below it: np.log(np.maximum(x, tiny)), or np.log1p(x) for log(1 + x)",
    "log2": "log2 is -inf at 0 and nan below it: " + NEAR_ZERO,
    "log10": "log10 is -inf at 0 and nan below it: " + NEAR_ZERO,
    "log1p": "log1p is -inf at -1 and nan below it",
    "div": "a division by 0, or 0/0: give the divisor a lower bound, or a safe value where np.where picks the other",
    "pow": "a power of 0 with an exponent below 1 has an infinite slope, and of a negative number no real value",
    "exp": "exp overflows above 709.78 (float32: 88.72): subtract the largest argument first, or use np.logaddexp",
    "exp2": "exp2 overflows above 1024: subtract the largest argument first",
    "expm1": "expm1 overflows above 709.78 (float32: 88.72)",
    "sinh": "sinh overflows above 710.4",
    "cosh": "cosh overflows above 710.4",
    "arcsin": "arcsin has an infinite slope at -1 and 1, and no real value beyond: np.clip the argument",
    "arccos": "arccos has an infinite slope at -1 and 1, and no real value beyond: np.clip the argument",
    "arctanh": "arctanh is infinite at -1 and 1: np.clip the argument",
    "arccosh": "arccosh has an infinite slope at 1 and no real value below it",
    "hypot": "hypot has no slope where both arguments are 0",
}


def advice_on(name: str, operands: Sequence[Any]) -> str:
    """What to do about an operation that gives what is not finite."""
    if name == "div" and len(operands) == 2 and np.any((np.asarray(operands[0]) == 0) & (np.asarray(operands[1]) == 0)):
        return "0/0: " + ADVICE["div"].partition(": ")[2]
    found = ADVICE.get(name)
    if found is not None:
        return found
    return "the operands are finite, so the result overflows or does not exist there: scale them, or bound them"


# --- calls ------------------------------------------------------------------------------------------------------------


def run_debugged(transformed: Transformed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a transformed function inside `debug`."""
    outer = WATCH.get()
    assert isinstance(outer, Watch)
    on_device = any(map(is_jax_array, transformed.job(args, kwargs).leaves))
    if on_device:
        args, kwargs = without_jax_arrays((args, kwargs))[0]
    watch = Watch(outer.options)
    with watching(watch):
        result = called(watch, transformed, args, kwargs)
    return to_jax_results(result) if on_device else result


def called(watch: Watch, transformed: Transformed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    job = transformed.job(args, kwargs)
    job = job._replace(extras=tuple(map(to_numpy, job.extras)))
    if isinstance(transformed, Vmap):
        if not mapping(job)[1]:
            return transformed.dispatch(job, args, kwargs)  # no example to run
        if not isinstance(transformed.f, Transformed):
            transformed = transformed.__srcgrad_rewrap__(Jit(transformed.f, False, None))
        return transformed.plainly(args, kwargs)
    if not transformed.writes_back:
        return interpreted_call(watch, transformed, job)
    with suppress(ConcretizationError, UnsupportedError):
        return interpreted_call(watch, transformed, job)
    return transformed.plainly(args, kwargs)  # nothing is differentiated: it runs as it is


def interpreted_call(watch: Watch, transformed: Transformed, job: Job) -> Any:
    """Trace with the numbers known, transform, and interpret the result."""
    with without_gc():
        specs, inputs, traced = transformed.trace_now(job)
        built = transformed.build_checked(traced, job, specs)
    changes = changes_of(traced) if transformed.writes_back else None
    given = [leaf for leaf, spec in zip(job.leaves, specs, strict=True) if spec is not None]
    containers = [] if changes is None else changes.containers(job.given, ())
    if containers is None or (transformed.writes_back and alias_groups(given) is not None):
        raise Refused("memory that may be changed is shared")  # only NumPy itself knows how
    flow = Flow(watch.options, frozenset(watch.excused))
    run = watch.runner(built.function, traced.sites, flow, judged=not built.stages)
    results = run([*inputs, *traced.captured, *map(as_array, job.extras)])
    if changes is not None:
        changes.write(job.leaves, containers, given, results)
    return built.finish(results, [watch.runner(stage, traced.sites, flow, judged=True) for stage in built.stages])
