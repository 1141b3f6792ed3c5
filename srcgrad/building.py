"""How a transform of a function makes programs: it traces, transforms and compiles.

A function of which no program can be kept is traced again at each call, with its numbers known, and what comes out is
run operation by operation.
"""

from __future__ import annotations

import functools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from srcgrad.boundary import from_outside, is_fault, user_stack_level
from srcgrad.cache import CODES, PROGRAMS, Known, Learned, code_of
from srcgrad.changes import Changes, Given, Watcher, changes_of
from srcgrad.compiler import Runner, backend_name, compiled, interpreted, prepared, weight_of
from srcgrad.errors import ConcretizationError, CustomRuleError, DepthError, SrcgradError, UnsupportedError
from srcgrad.ir.collector import without_gc
from srcgrad.ir.core import Function, Value
from srcgrad.ir.ops.effects import UNFORESEEN
from srcgrad.naming import READABLE, name_assignments
from srcgrad.signatures import argument_reason, leaf_names
from srcgrad.tracing.aliasing import AliasPattern
from srcgrad.tracing.conversion.calls import run_converted
from srcgrad.tracing.conversion.convert import is_user_function
from srcgrad.tracing.conversion.effects import may_raise
from srcgrad.tracing.conversion.fresh_arrays import writes_into_constant
from srcgrad.tracing.conversion.state import Mistaken, MustRetrace
from srcgrad.tracing.conversion.trust import loses_stores, require_timely
from srcgrad.tracing.function import LeafSpec, Traced, as_array, leaf_spec, trace_function
from srcgrad.tracing.guards import Guide
from srcgrad.tracing.imports import first_imported
from srcgrad.tracing.jax_arrays import (
    JAX_TYPES,
    is_jax_array,
    to_jax_array,
    to_jax_results,
    to_numpy,
    without_jax_arrays,
)
from srcgrad.tracing.kept import require_readable
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.room import with_more_room
from srcgrad.tracing.tables import copied_table, is_table
from srcgrad.tracing.trace import CURRENT, WATCH, NeedsConcrete, RaisingSite, Refused, Unread
from srcgrad.tracing.undoing import Undo
from srcgrad.turned import orders_of, turned_back, turning
from srcgrad.users_errors import fails_again, is_the_users, went_further
from srcgrad.vectorcall import allowed
from srcgrad.ways import Failed, Retrace, Way, failed, first_lines, function_of, reason_as_it_is, require_no_handlers


class RetraceWarning(UserWarning):
    """A function is traced again at each call: said once for each function, with the reason.

    The results are right, and each call is slow. As an error, it shows where that begins:

    >>> import warnings
    >>> import srcgrad as sg
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", sg.RetraceWarning)
    ...     sg.grad(lambda x: x * x)(3.0)
    np.float64(6.0)
    """


class Job(NamedTuple):
    """One call: the arguments' leaves, which of them are differentiated, and what the transform needs besides."""

    leaves: list[Any]
    treedef: TreeDef
    active: tuple[bool, ...]
    extras: tuple[Any, ...] = ()
    """Arrays that are inputs of the transformed Function after the traced function's own: tangents."""
    detail: Hashable = None
    """What else of the call decides the program."""
    trees: tuple[TreeDef, ...] = ()
    """The structures of the differentiated arguments."""
    given: Given = ((), {})
    """The arguments themselves, if the function may change them."""
    held: Mapping[int, str] = {}
    """The leaves that are objects without a key, which are followed as what the function captures is, by their names:
    `Transformed.holding`.
    """

    def holder(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """What is looked at to find what a call reads besides its arguments: the function, and with it such objects."""
        return holding(f, self.held.values(), [self.leaves[place] for place in self.held]) if self.held else f

    def taken_apart(self, holder: Callable[..., Any], leaves: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
        """The function of a `holder` that a trace is given, and the leaves with the objects that it holds."""
        if not self.held:
            return holder, leaves
        assert isinstance(holder, functools.partial)
        found = [holder.keywords[self.held[k]] if k in self.held else leaf for k, leaf in enumerate(leaves)]
        names = {*self.held.values()}
        own = {name: value for name, value in holder.keywords.items() if name not in names}
        # A partial of a partial is one of the inner function: what the user's own holds is among its arguments.
        return functools.partial(holder.func, *holder.args, **own) if holder.args or own else holder.func, found


def holding(f: Callable[..., Any], names: Iterable[str], objects: Sequence[Any]) -> functools.partial[Any]:
    """A function together with objects that it is called with."""
    return functools.partial(f, **dict(zip(names, objects, strict=True)))


class Built(NamedTuple):
    """A transformed Function, and how its results become what the user gets.

    ``finish`` is given the results and a runner for each of ``stages`` (Functions that run later: a ``vjp_fn``).
    """

    function: Function
    finish: Callable[[Sequence[Any], Sequence[Runner]], Any]
    stages: tuple[Function, ...] = ()
    arranges: bool = False
    """Whether ``finish`` only arranges the results, in containers of Python's own, and does not look at them."""


Contents = Sequence[tuple[int, Any]]
"""Places among a program's inputs, and the numbers that the arrays there have in the calls that it is for."""


class Program(NamedTuple):
    """A compiled transform of one function for one signature. It holds no arrays of the user's."""

    run: Runner
    finish: Callable[[Sequence[Any], Sequence[Runner]], Any]
    stages: tuple[Runner, ...]
    traced: tuple[int, ...]
    """The positions of the leaves that are inputs."""
    changes: Changes | None = None
    """What it changes for the caller."""
    acts: bool = False
    """Whether it calls back into Python to do something."""
    direct: Callable[..., Sequence[Any]] | None = None
    """What runs the program where all its inputs are the call's arguments and jax arrays."""
    native: bool = False
    """Whether its backend makes machine code, which may answer whole calls."""
    arranged: int | None = None
    """The number of its results, where ``finish`` only arranges them."""
    writes: bool = False
    """Whether it is for captured arrays that share memory in one way, since the function writes into some."""
    written: tuple[int, ...] = ()
    """The inputs that it, or a function inside, writes into, which the caller's arrays do not see: read-only ones it
    cannot.
    """

    restarts: bool = False
    """Whether a call in which it fails is to be made again, as it would have stored attributes afterwards."""

    def results(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Run it.

        Raises:
            RuntimeError: the call is to be made again.
        """
        try:
            return self.run(inputs)
        except Exception as error:
            if not self.restarts or from_outside(error):
                raise
        raise RuntimeError(UNFORESEEN)

    def refuses(self, leaves: Sequence[Any]) -> bool:
        """Whether the function writes into an array among these that is read-only."""
        inputs = [leaves[self.traced[number]] for number in self.written]
        return any(isinstance(leaf, np.ndarray) and not leaf.flags.writeable for leaf in inputs)


class Rebuilding:
    """From the given leaves to the `Job.holder` with those after the arguments' in place of the hidden inputs.

    Arrays that share memory are inputs as others are, unless the function writes into one of them.
    """

    def __init__(self, captures: Known, aliases: AliasPattern | None, holder: Callable[..., Any], count: int) -> None:
        """``count``: of the arguments' leaves."""
        self.captures, self.aliases, self.holder, self.count = captures, aliases, holder, count

    def __call__(self, given: Sequence[Any]) -> Callable[..., Any]:
        stand_ins = given[self.count :]
        if self.aliases is not None:
            stand_ins = [stand_ins[group] for group in self.aliases.groups]
        function: Callable[..., Any] = self.captures.rebuild(self.holder, stand_ins)
        return function

    def require_apart(self, given: Sequence[Any]) -> None:
        """Refuse a function that has written into one of several arrays that share memory.

        Raises:
            MustRetrace: the others would have to be what they are then.
        """
        pairs = () if self.aliases is None else self.aliases.overlapping
        for storage in [given[self.count + number].storage for pair in pairs for number in pair]:
            if storage.value is not storage.made:
                raise MustRetrace("writes into captured arrays that share memory")


Result = TypeVar("Result")


class Building(ABC):
    """A function with a transform of it: what the transform says of a call, and how a program is made from that."""

    __slots__ = ()

    kind: str
    f: Callable[..., Any]
    backend: str | None
    learned: Learned
    options: tuple[Hashable, ...]
    """What else tells this transform from others of its class; equal ones are mostly one object, as guards ask."""
    writes_back: ClassVar[bool] = False
    """Whether arrays that the function changes in place are changed for the caller too."""

    @property
    def name(self) -> str:
        return getattr(self.f, "__name__", type(self.f).__name__)

    # --- what a transform says ---------------------------------------------------------------------
    @abstractmethod
    def job(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job:
        """Take a call apart; raises ArgumentError and its kin where the arguments do not fit."""

    @abstractmethod
    def build(self, traced: Traced, job: Job, active: tuple[bool, ...]) -> Built:
        """Transform the traced function; ``active`` has a flag per parameter of it."""

    def plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """For transforms that mean the function itself where it cannot be one program (``jit``)."""
        return NotImplemented

    def without_rule(self, met: UnsupportedError, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a function that meets, however it is traced, what has no rule.

        Raises:
            UnsupportedError: the transform needs the rule.
        """
        raise met

    def raises_as_it_is(self, error: Exception) -> bool:
        """Whether the function itself is to raise this error of the user's, once it has done what comes before."""
        return False

    def makes_calls_again(self) -> bool:
        """Whether a call may be made in another way where its program says that it is not for such calls."""
        return True

    def fails_again(self, job: Job) -> bool:
        """Whether a call that fails may be made again, so that it leaves what plain Python does."""
        return self.makes_calls_again()

    # --- programs -----------------------------------------------------------------------------------
    def make_program(
        self, key: Hashable, captures: Known, hidden: Sequence[Any], aliases: AliasPattern | None, job: Job, way: Way
    ) -> Any:
        """Trace, transform and compile; the verdict where that cannot be is remembered too."""
        reason = argument_reason(captures, job.leaves, job.treedef)
        if not way.converted:
            reason = reason or reason_as_it_is(job.holder(self.f), captures)
        if reason is not None:
            verdict: Any = Retrace(reason) if way.converted else Failed(reason)  # converted, it knows their methods
            PROGRAMS.put(key, verdict)
            return verdict
        leaves = [*job.leaves, *hidden]
        require_readable(hidden, backend_name(self.backend))
        specs = [leaf_spec(leaf) for leaf in leaves]
        rebuilt = self.rebuilding(captures, aliases, hidden, job)
        numbers = [None] * sum(spec is not None for spec in specs)
        try:
            with without_gc():
                traced = self.trace(job, leaves, specs, False, numbers, rebuilt, way.converted, trusting=True)
                if not way.converted and any(map(may_raise, traced.function.operations)):
                    require_no_handlers(job.holder(self.f), captures)
                built = self.build_checked(traced, job, specs)
                program: Any = self.compile_program(traced, built, specs, job, hidden)
        except Unread:
            raise
        except MustRetrace as error:
            error.with_traceback(None)
            program = Retrace(first_lines(error))
        except NeedsConcrete as error:
            error.with_traceback(None)  # its frames hold the trace, and the trace holds it
            program = Failed(first_lines(error), isinstance(error, Refused), way.converted)
        except CustomRuleError:  # of the user's rule, which is what it is in any other way
            raise
        except Exception as error:
            if is_fault(error) or from_outside(error) or not (way.converted or self.raises_as_it_is(error)):
                raise
            if isinstance(error, RecursionError):  # a call with less of the stack in use may do
                return failed(error)
            program = failed(error)
        PROGRAMS.put(key, program, weight_of(backend_name(self.backend)) if isinstance(program, Program) else 1)
        return program

    def compile_program(
        self, traced: Traced, built: Built, specs: Sequence[LeafSpec | None], job: Job, hidden: Sequence[Any]
    ) -> Program:
        backend, given = backend_name(self.backend), (*job.leaves, *hidden, *job.extras)
        native = backend == "llvm" and allowed(type(self))
        if native:
            import srcgrad.front  # noqa: F401  # a fork in the middle of a later call's import would leave it locked
        arguments = sum(spec is not None for spec in specs[: len(job.leaves)])
        placed: dict[str, Any] = {"sites": traced.sites} if traced.sites else {}
        donating: dict[str, Any] = {}
        if not JAX_TYPES.isdisjoint(map(type, given)):
            placed["given"], donating = given, {"donate": self.donated(job)}
        traced_leaves = tuple(position for position, spec in enumerate(specs) if spec is not None)
        inputs = [given[position] for position in traced_leaves] + [*job.extras]
        orders = orders_of(inputs) if backend == "llvm" else {}
        function = turned_back(built.function, orders) if orders else built.function
        run = compiled(function, backend, **placed, **donating)
        return Program(
            turning(run, orders) if orders else run,
            built.finish,
            tuple(compiled(stage, backend, **placed) for stage in built.stages),
            traced_leaves,
            changes_of(traced) if self.writes_back else None,
            any(not isinstance(site, RaisingSite) for site in traced.sites),
            native=native,
            arranged=len(built.function.results) if built.arranges else None,
            writes=any(number >= arguments for number in traced.mutated),
            written=tuple(number for number in traced.claimed if not self.writes_back or number not in traced.mutated),
            restarts=self.fails_again(job) and loses_stores(built.function, traced, may_raise),
        )

    def donated(self, job: Job) -> tuple[int, ...]:
        """The inputs of the program whose memory it may use for its results."""
        return ()

    def rebuilding(
        self, captures: Known, aliases: AliasPattern | None, hidden: Sequence[Any], job: Job
    ) -> Rebuilding | None:
        """What puts others in place of the hidden inputs; None where there is nothing of the kind."""
        if not (hidden or job.held or captures.copies or captures.asks or captures.results or captures.unreached):
            return None
        return Rebuilding(captures, aliases, job.holder(self.f), len(job.leaves))

    def trace(
        self,
        job: Job,
        leaves: Sequence[Any],
        specs: Sequence[LeafSpec | None],
        concrete: bool,
        numbers: Sequence[Any],
        rebuilt: Rebuilding | None = None,
        converting: bool = False,
        guide: Guide | None = None,
        origins: Sequence[Value] = (),
        roots: Sequence[Any] = (),
        trusting: bool = False,
    ) -> Traced:
        count = len(job.leaves)
        watcher = Watcher(job.treedef) if self.writes_back else None

        def call(given: list[Any]) -> Any:
            f, arguments = self.f, given[:count]
            if not concrete:
                pairs = zip(arguments, names, strict=False)
                arguments = [copied_table(leaf, name or "labels") if is_table(leaf) else leaf for leaf, name in pairs]
            if rebuilt is not None:
                f, arguments = job.taken_apart(rebuilt(given), arguments)
            args, kwargs = job.treedef.unflatten(arguments)
            if watcher is not None:
                watcher.watch((args, kwargs))
            result = run_converted(f, args, kwargs)
            if rebuilt is not None:
                rebuilt.require_apart(given)
            return result

        names = [*leaf_names(self.f, job.treedef), *[None] * (len(leaves) - count)]
        traced = functools.partial(
            trace_function, call, leaves, specs, names, name=self.name, concrete=concrete, numbers=numbers,
            watcher=watcher, converting=converting, guide=guide, origins=origins, roots=roots,
            trusting=trusting and self.makes_calls_again(),
        )  # fmt: skip
        if concrete or guide is not None or CURRENT.get() is not None:
            return traced(lifting=converting and self.learned.lifting)

        def picked() -> Traced:
            lifting = converting and self.learned.lifting
            try:
                return traced(picking=True, lifting=lifting)
            except Mistaken:
                return traced(lifting=lifting)

        return with_more_room(functools.partial(self.lifting, picked)) if converting else picked()

    def lifting(self, trace: Callable[[], Result]) -> Result:
        """What a trace of converted code gives: it begins again where values are written into arrays of NumPy's."""
        if not self.learned.lifting:
            try:
                return trace()
            except Exception as error:
                if not writes_into_constant(error):
                    raise
            self.learned.lifting = True
        return trace()

    def build_checked(self, traced: Traced, job: Job, specs: Sequence[LeafSpec | None]) -> Built:
        flags = [
            flag and spec is not None and spec.type.differentiable
            for flag, spec in zip(job.active, specs, strict=False)
            if spec is not None
        ]
        flags += [False] * (len(traced.function.params) - len(flags))
        if READABLE.get():
            name_assignments(traced.function)
        built = self.build(traced._replace(function=prepared(traced.function)), job, tuple(flags))
        require_timely(built.function)
        return built

    # --- without a program --------------------------------------------------------------------------
    def retrace(
        self, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str, silently: bool = False
    ) -> Any:
        """Trace with the numbers known, and run what comes out."""
        as_it_is = type(self).plainly is not Building.plainly
        if as_it_is and not silently:
            self.warn_retrace(reason)
        on_device = any(is_jax_array(value) for value in (*job.leaves, *job.extras))
        if on_device:
            leaves = [np.array(to_numpy(leaf)) if is_jax_array(leaf) else leaf for leaf in job.leaves]  # writable
            job = job._replace(leaves=leaves, extras=tuple(map(to_numpy, job.extras)))
            args, kwargs = without_jax_arrays((args, kwargs))[0] if self.writes_back else job.treedef.unflatten(leaves)
        result = self.plainly(args, kwargs)
        if result is not NotImplemented:
            return to_jax_results(result) if on_device else result
        with without_gc():
            specs, inputs, traced = self.trace_now(job)
            if not as_it_is and not silently:  # what cannot be traced at all has an error that says all
                self.warn_retrace(reason)
            built = self.build_checked(traced, job, specs)
            arguments = [*inputs, *traced.captured, *map(as_array, job.extras)]
            results = [own(result) for result in interpreted(built.function, traced.sites)(arguments)]
        if on_device:
            results = [*map(to_jax_array, results)]
        return built.finish(results, [interpreted(stage, traced.sites) for stage in built.stages])

    def trace_now(self, job: Job) -> tuple[list[LeafSpec | None], list[Any], Traced]:
        """Trace with the numbers known: converted, so that Python's questions are answered as of the numbers
        themselves, or as it is where conversion does not help, and where the function raises, so that the error comes
        from the user's own code. Each attempt finds all as it was, and so does the caller where none of them will do.
        """
        undo = Undo((self.f, *job.leaves))
        try:
            return self.trace_in_some_way(job, undo)
        finally:
            undo.puts.clear()  # an error's traceback keeps this frame

    def trace_in_some_way(self, job: Job, undo: Undo) -> tuple[list[LeafSpec | None], list[Any], Traced]:
        specs = [leaf_spec(leaf) if flag else None for leaf, flag in zip(job.leaves, job.active, strict=True)]

        def attempt(converting: bool) -> tuple[list[Any], Traced]:
            with undo.attempt():
                leaves = [copy_input(leaf) for leaf in job.leaves]
                inputs = [as_array(leaf) for leaf, spec in zip(leaves, specs, strict=True) if spec is not None]
                roots = (self.f, *leaves)
                return inputs, self.trace(job, leaves, specs, True, inputs, converting=converting, roots=roots)

        def traced(converting: bool) -> tuple[list[Any], Traced]:
            attempted = functools.partial(attempt, converting)
            lifted = functools.partial(self.lifting, attempted) if converting else attempted
            return with_more_room(lifted) if converting and CURRENT.get() is None else lifted()

        refused: SrcgradError | None = None
        raised: Exception | None = None
        place: TracebackType | None = None
        by_user = False
        ways = (True, False) if WATCH.get() is None else (False, True)  # what is watched runs in the user's own code
        for converting in ways if is_user_function(function_of(self.f)) else (False,):
            try:
                return specs, *traced(converting)
            except (ConcretizationError, UnsupportedError) as error:
                if isinstance(error, ConcretizationError) and error.of_text:
                    raise
                if refused is None or isinstance(error, UnsupportedError):  # which says what there is no rule for
                    refused = error
            except Exception as error:
                if WATCH.get() is not None or is_fault(error) or from_outside(error):
                    raise
                alike = raised is not None and (type(error), error.args) == (type(raised), raised.args)
                if not converting and refused is None and (alike or not by_user):
                    raise
                if converting:
                    by_user = is_the_users(error)
                    if undo.is_final and not isinstance(error, RecursionError) and (by_user or fails_again(error)):
                        raise
                    raised, place = error, error.__traceback__
                    error.with_traceback(None)  # the same error may be raised again
        if raised is not None and (by_user or refused is None):
            with suppress(Exception):  # the caller is to have what it has done before
                traced(True)
            raise raised.with_traceback(place)
        undo.restore()
        assert refused is not None
        if raised is not None and went_further(raised.with_traceback(place), refused):
            raise raised
        if isinstance(raised, RecursionError):
            raise DepthError(
                f"{self.name} calls itself too often to be converted: {raised}",
                span=refused.span,
                hint="set a higher limit by sys.setrecursionlimit before the call, or write a loop over a list instead",
            ) from raised
        raise refused

    def warn_retrace(self, reason: str) -> None:
        code = code_of(self.f) or type(self.f)
        if first_imported(reason) and CODES.get(("imported", code)) is None:
            CODES.put(("imported", code), True)  # the next call finds it
            return
        key = ("warned", code)
        if CODES.get(key) is None:
            CODES.put(key, True)
            warnings.warn(
                f"{self.name} is traced again at each call of {self.kind}({self.name}): {reason}",
                RetraceWarning,
                stacklevel=user_stack_level(),
            )


def copy_input(leaf: Any) -> Any:
    """An argument as user code may change it without the caller seeing that, if it may change it at all."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    copied = np.array(leaf)
    copied.flags.writeable = leaf.flags.writeable
    return copied


def own(result: Any) -> Any:
    """A result that is writable, C-ordered and aliases nothing; rank 0 is a NumPy scalar."""
    return np.array(result, order="C")[()] if isinstance(result, np.ndarray) else result
