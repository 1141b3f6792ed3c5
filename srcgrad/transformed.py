"""The object a transform returns: how a call finds, builds and runs its program.

A call goes one of four ways:

- inside another trace, the transformed Function becomes part of it;
- else a compiled program is looked up by code, argument types and guards, and built if there is none;
- a function that cannot be one program because Python code needs values is several, one for each path: `paths`;
- what reaches state that guards cannot watch, or takes too many paths, is traced again at each call, with its numbers
  known, and its derivative is run operation by operation.
"""

from __future__ import annotations

import copy
import functools
import sys
import types
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from srcgrad.backends.base import backend as find_backend
from srcgrad.boundary import described, is_fault, reported
from srcgrad.cache import CODES, PROGRAMS, Known, code_of, find_captures, learned, the_same
from srcgrad.compiler import Runner, backend_name, compiled, inlined, interpreted, prepared, without_gc
from srcgrad.errors import ArgumentError, ConcretizationError, SrcgradError, UnsupportedError
from srcgrad.ir.core import Function, Value
from srcgrad.ir.errors import prune_traceback
from srcgrad.ir.source import internal_frame
from srcgrad.naming import READABLE, name_assignments
from srcgrad.signatures import UNKEYED, leaf_key, leaf_names, plain_key
from srcgrad.tracing.aliasing import AliasPattern
from srcgrad.tracing.capture import Uncacheable
from srcgrad.tracing.conversion.calls import run_converted
from srcgrad.tracing.conversion.convert import is_user_function
from srcgrad.tracing.conversion.state import MustRetrace, may_raise
from srcgrad.tracing.function import LeafSpec, Traced, as_array, leaf_spec, trace_function
from srcgrad.tracing.guards import Guide, guided
from srcgrad.tracing.hosts import numbered
from srcgrad.tracing.jax_arrays import (
    JAX_TYPES,
    is_jax_array,
    to_jax_array,
    to_jax_results,
    to_numpy,
    without_jax_arrays,
)
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.trace import ACTIVE, CURRENT, WATCH, NeedsConcrete, Refused
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value
from srcgrad.vectorcall import VectorCalled, allow, allowed, set_function
from srcgrad.ways import (
    CONVERTED_FIRST,
    CONVERTED_LAST,
    Failed,
    Retrace,
    Way,
    failed,
    first_lines,
    function_of,
    prefers_conversion,
    require_no_handlers,
    why_retraced,
)

FAST_ENTRIES = 16
"""How many signatures of plain arrays and floats an object remembers."""
SERVED_FROM = 4
"""From which call on machine code answers the calls of one signature, where it can; a power of two."""
MACHINE: list[int] = []
"""The address of the function that answers calls by tables, once there is one."""


class RetraceWarning(UserWarning):
    """A function is traced again at each call: said once for each function, with the reason."""


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


class Built(NamedTuple):
    """A transformed Function, and how its results become what the user gets.

    ``finish`` is given the results and a runner for each of ``stages`` (Functions that run later: a ``vjp_fn``).
    """

    function: Function
    finish: Callable[[Sequence[Any], Sequence[Runner]], Any]
    stages: tuple[Function, ...] = ()
    arranges: bool = False
    """Whether ``finish`` only arranges the results, in containers of Python's own, and does not look at them."""


class Program(NamedTuple):
    """A compiled transform of one function for one signature. It holds no arrays of the user's."""

    run: Runner
    finish: Callable[[Sequence[Any], Sequence[Runner]], Any]
    stages: tuple[Runner, ...]
    traced: tuple[int, ...]
    """The positions of the leaves that are inputs."""
    mutated: tuple[int, ...] = ()
    direct: Callable[..., Sequence[Any]] | None = None
    """What runs the program where all its inputs are the call's arguments and jax arrays."""
    native: bool = False
    """Whether its backend makes machine code, which may answer whole calls."""
    arranged: int | None = None
    """The number of its results, where ``finish`` only arranges them."""


class Transformed(VectorCalled, ABC):  # type: ignore[misc]
    """A function together with a transform; calling it runs the transformed program.

    It binds as a method, has the function's name, docstring and signature, pickles and deep-copies.
    """

    __slots__ = ("__dict__", "__weakref__", "f", "options", "tables")

    kind: str
    f: Callable[..., Any]
    options: tuple[Hashable, ...]
    """What else tells this transform from others of its class; equal ones are mostly one object, as guards ask."""
    tables: tuple[Any, ...]
    """What answers calls in machine code: `front`. Unset at first."""
    writes_back: ClassVar[bool] = False
    """Whether arrays that the function changes in place are changed for the caller too."""

    def __init__(self, f: Callable[..., Any], backend: str | None, options: tuple[Hashable, ...]) -> None:
        if not callable(f):
            raise ArgumentError(
                f"{self.kind} takes a function, not {described(f)}", hint=f"{self.kind}(f) returns a function to call"
            )
        if backend is not None:
            find_backend(backend)
        # A plain function's attributes are copied, as functools.wraps does; those of a transform are its own.
        if type(f) is types.FunctionType and not f.__dict__:  # the same in half the time
            for name in functools.WRAPPER_ASSIGNMENTS:
                setattr(self, name, getattr(f, name))
            self.__dict__["__wrapped__"] = f
        else:
            functools.update_wrapper(self, f, updated=("__dict__",) if isinstance(f, types.FunctionType) else ())
        self.f = f
        self.backend = backend
        self.options = the_same(options)
        self.learn()

    def learn(self) -> None:
        """Begin with what calls of other objects with this transform of the same code have found."""
        self.learned = found = learned(code_of(self.f), type(self), self.backend, self.options)
        self.fast: dict[tuple[Any, ...], tuple[Known, Program]] = found.fast.copy()
        self.calls: dict[Runner, int] = {}
        if found.tables:
            self.answer_by(found.tables)

    def answer_by(self, tables: tuple[Any, ...]) -> None:
        """Let machine code answer the calls that fit these tables, which it has made."""
        self.tables = tables
        set_function(self, MACHINE[0])

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__call__ is Transformed.__call__:
            allow(cls)

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

    # --- a function like any other -----------------------------------------------------------------
    @property
    def __srcgrad_wrapped__(self) -> Callable[..., Any]:
        return self.f

    @property
    def __srcgrad_static__(self) -> Hashable:
        return (self.kind, self.options)

    def __srcgrad_rewrap__(self, inner: Callable[..., Any]) -> Transformed:
        other = copy.copy(self)
        other.f = inner
        other.learn()
        return other

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return self.__srcgrad_rewrap__(types.MethodType(self.f, instance))

    def __copy__(self) -> Transformed:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.f, other.options = self.f, self.options
        other.learn()
        return other

    def __deepcopy__(self, memo: Any) -> Transformed:
        return self.__srcgrad_rewrap__(copy.deepcopy(self.f, memo))

    def __reduce__(self) -> Any:
        """By name where this object is what its module calls so (a decorated function), else by its parts."""
        name = global_name(self)
        if name is not None:
            return name
        state = {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("learned", "fast", "calls", "__wrapped__")
        }
        return (restore, (type(self), self.f, self.options, state))

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.name}>"

    @property
    def name(self) -> str:
        return getattr(self.f, "__name__", type(self.f).__name__)

    # --- calling -------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if ACTIVE:
                if CURRENT.get() is not None:
                    args, kwargs = without_jax_arrays((args, kwargs))[0]
                    return self.inline(args, kwargs)
                if WATCH.get() is not None:
                    return debugged(self, args, kwargs)
            if self.fast and not kwargs:
                key = plain_key(self.backend, args)
                found = self.fast.get(key) if key is not None else None
                if found is not None and found[0].bind(self.f) is not None:
                    program = found[1]
                    if program.native:
                        self.count(args, {}, None, *found)
                    direct = program.direct
                    if direct is not None:
                        return program.finish(direct(*args), program.stages)
                    return program.finish(program.run([as_array(argument) for argument in args]), program.stages)
            return self.dispatch(self.job(args, kwargs), args, kwargs)
        except Exception as error:
            shown = self.reported(error)
            if shown is None:
                raise
            raise shown from shown.__cause__

    def reported(self, error: Exception) -> Exception | None:
        """What leaves a call in which this was raised; None for the user's own."""
        shown = reported(error, f"while tracing {self.kind}({self.name})")
        if shown is not error or isinstance(error, SrcgradError):
            return shown
        if WATCH.get() is not None:
            prune_traceback(error)
        return None

    def count(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job | None, captures: Known, program: Program
    ) -> None:
        """One more call of a program in machine code; of many, the later ones are answered there as a whole.

        The first calls of objects that are made for a call each count together.
        """
        calls = self.calls
        number = calls[program.run] = calls.get(program.run, 0) + 1
        if number == 1:
            number = self.learned.calls[program.run] = self.learned.calls.get(program.run, 0) + 1
            calls = self.learned.calls
        if number >= SERVED_FROM and not number & (number - 1):
            from srcgrad.front import serve  # which is written with this module

            serve(self, args, kwargs, job or self.job(args, kwargs), captures, program)
        elif len(calls) > FAST_ENTRIES:
            calls.clear()

    def inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Put the transformed function into the trace in progress."""
        trace = CURRENT.get()
        return self.inline_as(args, kwargs, trace is not None and trace.concrete)

    def inline_as(self, args: tuple[Any, ...], kwargs: dict[str, Any], concrete: bool) -> Any:
        job = self.job(args, kwargs)
        specs = [leaf_spec(leaf) for leaf in job.leaves]
        inputs = [numbered(leaf) for leaf, spec in zip(job.leaves, specs, strict=True) if spec is not None]
        numbers = (
            [leaf.number() if isinstance(leaf, Tracer) else as_array(leaf) for leaf in inputs] if concrete else None
        )
        origins = [as_tracer(leaf).read() for leaf in inputs] if guided(CURRENT.get()) else []
        traced = self.trace(job, job.leaves, specs, concrete, numbers or [None] * len(inputs), origins=origins)
        built = self.build_checked(traced, job, specs)
        outer = [from_value(value) for value in traced.lifted]
        results = inlined(built.function)([*inputs, *outer, *job.extras])
        return built.finish(results, [inlined(stage) for stage in built.stages])

    def dispatch(self, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        failures: list[Failed] = []
        unsupported: UnsupportedError | None = None
        for way in self.ways():
            found = find_captures(self.f, way.floats_static, way.converted)
            if isinstance(found, Uncacheable):
                failures.append(Failed(found.reason))
                continue
            captures, (hidden, aliases) = found
            if aliases is not None and aliases.overlapping:
                return self.retrace(job, args, kwargs, "captured arrays share memory")
            key = self.program_key(captures, hidden, aliases, job, way)
            if UNKEYED in key[0]:
                return self.retrace(job, args, kwargs, "an argument is an object that has no key")
            program = PROGRAMS.get(key)
            if program is None:
                try:
                    program = self.make_program(key, captures, hidden, aliases, job, way)
                except UnsupportedError as error:
                    if way.converted or not is_user_function(function_of(self.f)):
                        raise
                    unsupported = error  # converted, the function may do without what is not supported
                    continue
            if isinstance(program, Failed):
                failures.append(program)
                continue
            if isinstance(program, Retrace):
                return self.retrace(job, args, kwargs, program.reason)
            if not program.mutated:
                if not hidden and not kwargs and not job.extras:
                    self.remember(args, captures, program)
                if program.native:
                    self.count(args, kwargs, job, captures, program)
            return self.execute(program, job, hidden)
        if unsupported is not None:
            raise unsupported
        from srcgrad.paths import NO_PATH, failing, run_path  # which is written with this module

        result = run_path(self, job)
        if result is not NO_PATH:
            return result
        return self.retrace(job, args, kwargs, why_retraced(failures), failing(self, job))

    def program_key(
        self, captures: Known, hidden: Sequence[Any], aliases: AliasPattern | None, job: Job, way: Way
    ) -> tuple[Any, ...]:
        """Under which a program is remembered; the keys of the arguments' leaves come first."""
        return (
            tuple([leaf_key(leaf) for leaf in job.leaves]),
            type(self), self.options, backend_name(self.backend), captures, way.converted, job.treedef,
            tuple([leaf_key(value) for value in hidden]), aliases, job.detail,
            tuple([leaf_key(extra) for extra in job.extras]),
        )  # fmt: skip

    def takes_paths(self) -> bool:
        """Whether a function that cannot be one program may be several, one for each path."""
        return True

    def ways(self) -> tuple[Way, ...]:
        """The ways in which this function is traced, the one most likely to give a program first."""
        return CONVERTED_FIRST if prefers_conversion(self.f) else CONVERTED_LAST

    def remember(self, args: tuple[Any, ...], captures: Known, program: Program) -> None:
        """Let later calls on arrays and floats of the same types find the program without looking at structures."""
        key = plain_key(self.backend, args)
        if key is not None and all(not isinstance(a, np.ndarray) or a.dtype.isnative for a in args):
            if args and JAX_TYPES.issuperset(map(type, args)):
                program = program._replace(direct=getattr(program.run, "run_device", None))
            for fast in (self.fast, self.learned.fast):
                if len(fast) >= FAST_ENTRIES:
                    fast.clear()
                fast[key] = (captures, program)

    def execute(self, program: Program, job: Job, hidden: Sequence[Any]) -> Any:
        leaves = [*job.leaves, *hidden] if hidden else job.leaves
        arguments = [as_array(leaves[position]) for position in program.traced]
        if job.extras:
            arguments += map(as_array, job.extras)
        return program.finish(program.run(arguments), program.stages)

    def make_program(
        self, key: Hashable, captures: Known, hidden: Sequence[Any], aliases: AliasPattern | None, job: Job, way: Way
    ) -> Any:
        """Trace, transform and compile; the verdict where that cannot be is remembered too."""
        for kind in job.treedef.node_types():
            reason = captures.class_reason(kind)
            if reason is not None:
                verdict: Any = Retrace(reason)
                PROGRAMS.put(key, verdict)
                return verdict
        leaves = [*job.leaves, *hidden]
        specs = [leaf_spec(leaf) for leaf in leaves]
        rebuilt = self.rebuilding(captures, aliases, len(job.leaves)) if hidden or captures.copies else None
        numbers = [None] * sum(spec is not None for spec in specs)
        try:
            with without_gc():
                traced = self.trace(job, leaves, specs, False, numbers, rebuilt, way.converted)
                if not way.converted and any(map(may_raise, traced.function.operations)):
                    require_no_handlers(self.f, captures)
                built = self.build_checked(traced, job, specs)
                program: Any = self.compile_program(traced, built, specs, job, hidden)
        except MustRetrace as error:
            error.with_traceback(None)
            program = Retrace(first_lines(error))
        except NeedsConcrete as error:
            error.with_traceback(None)  # its frames hold the trace, and the trace holds it
            program = Failed(first_lines(error), isinstance(error, Refused), way.converted)
        except Exception as error:
            if not way.converted or is_fault(error):
                raise
            program = failed(error)
        PROGRAMS.put(key, program)
        return program

    def compile_program(
        self, traced: Traced, built: Built, specs: Sequence[LeafSpec | None], job: Job, hidden: Sequence[Any]
    ) -> Program:
        backend, given = backend_name(self.backend), (*job.leaves, *hidden, *job.extras)
        native = backend == "llvm" and allowed(type(self))
        if native:
            import srcgrad.front  # noqa: F401  # a fork in the middle of a later call's import would leave it locked
        placed: dict[str, Any] = {"sites": traced.sites} if traced.sites else {}
        donating: dict[str, Any] = {}
        if not JAX_TYPES.isdisjoint(map(type, given)):
            placed["given"], donating = given, {"donate": self.donated(job)}
        return Program(
            compiled(built.function, backend, **placed, **donating),
            built.finish,
            tuple(compiled(stage, backend, **placed) for stage in built.stages),
            tuple(position for position, spec in enumerate(specs) if spec is not None),
            traced.mutated,
            native=native,
            arranged=len(built.function.results) if built.arranges else None,
        )

    def donated(self, job: Job) -> tuple[int, ...]:
        """The inputs of the program whose memory it may use for its results."""
        return ()

    def rebuilding(
        self, captures: Known, aliases: AliasPattern | None, count: int
    ) -> Callable[[list[Any]], Callable[..., Any]]:
        """From the given leaves to the function with those after the first ``count`` in place of the hidden inputs."""

        def rebuilt(given: list[Any]) -> Callable[..., Any]:
            stand_ins = given[count:]
            if aliases is not None:
                stand_ins = [stand_ins[group] for group in aliases.groups]
            function: Callable[..., Any] = captures.rebuild(self.f, stand_ins)
            return function

        return rebuilt

    def trace(
        self,
        job: Job,
        leaves: Sequence[Any],
        specs: Sequence[LeafSpec | None],
        concrete: bool,
        numbers: Sequence[Any],
        rebuilt: Callable[[list[Any]], Callable[..., Any]] | None = None,
        converting: bool = False,
        guide: Guide | None = None,
        origins: Sequence[Value] = (),
    ) -> Traced:
        count = len(job.leaves)

        def call(given: list[Any]) -> Any:
            f = self.f if rebuilt is None else rebuilt(given)
            args, kwargs = job.treedef.unflatten(given[:count])
            return run_converted(f, args, kwargs)

        names = [*leaf_names(self.f, job.treedef), *[None] * (len(leaves) - count)]
        return trace_function(
            call, leaves, specs, names, name=self.name, concrete=concrete, numbers=numbers, writes=self.writes_back,
            converting=converting, guide=guide, origins=origins,
        )  # fmt: skip

    def build_checked(self, traced: Traced, job: Job, specs: Sequence[LeafSpec | None]) -> Built:
        flags = [
            flag and spec is not None and spec.type.differentiable
            for flag, spec in zip(job.active, specs, strict=False)
            if spec is not None
        ]
        flags += [False] * (len(traced.function.params) - len(flags))
        if READABLE.get():
            name_assignments(traced.function)
        return self.build(traced._replace(function=prepared(traced.function)), job, tuple(flags))

    def retrace(
        self, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str, silently: bool = False
    ) -> Any:
        """Trace with the numbers known, and run what comes out."""
        if not silently:
            self.warn_retrace(reason)
        on_device = any(is_jax_array(value) for value in (*job.leaves, *job.extras))
        if on_device:
            args, kwargs = without_jax_arrays((args, kwargs))[0]
            job = job._replace(leaves=[*map(to_numpy, job.leaves)], extras=tuple(map(to_numpy, job.extras)))
        result = self.plainly(args, kwargs)
        if result is not NotImplemented:
            return to_jax_results(result) if on_device else result
        with without_gc():
            specs, inputs, traced = self.trace_now(job)
            built = self.build_checked(traced, job, specs)
            arguments = [*inputs, *traced.captured, *map(as_array, job.extras)]
            results = [own(result) for result in interpreted(built.function, traced.sites)(arguments)]
        if on_device:
            results = [*map(to_jax_array, results)]
        return built.finish(results, [interpreted(stage, traced.sites) for stage in built.stages])

    def trace_now(self, job: Job) -> tuple[list[LeafSpec | None], list[Any], Traced]:
        """Trace with the numbers known: converted, so that Python's questions are answered as of the numbers
        themselves, or as it is where conversion does not help, and where the function raises, so that the error comes
        from the user's own code.
        """
        specs = [leaf_spec(leaf) if flag else None for leaf, flag in zip(job.leaves, job.active, strict=True)]
        refused: SrcgradError | None = None
        raised: Exception | None = None
        by_user = False
        ways = (True, False) if WATCH.get() is None else (False, True)  # what is watched runs in the user's own code
        for converting in ways if is_user_function(function_of(self.f)) else (False,):
            leaves = [copy_input(leaf) for leaf in job.leaves]
            inputs = [as_array(leaf) for leaf, spec in zip(leaves, specs, strict=True) if spec is not None]
            try:
                return specs, inputs, self.trace(job, leaves, specs, True, inputs, converting=converting)
            except (ConcretizationError, UnsupportedError) as error:
                if refused is None or isinstance(error, UnsupportedError):  # which says what there is no rule for
                    refused = error
            except Exception as error:
                if WATCH.get() is not None or is_fault(error):
                    raise
                if not converting and refused is None:
                    raise
                if converting:
                    by_user = isinstance(error, SrcgradError) or not raised_by_callee(error)
                    raised = error.with_traceback(None)  # the same error may be raised again
        failure = raised if raised is not None and (by_user or refused is None) else refused
        assert failure is not None
        raise failure

    def warn_retrace(self, reason: str) -> None:
        key = ("warned", code_of(self.f) or type(self.f))
        if CODES.get(key) is None:
            CODES.put(key, True)
            warnings.warn(
                f"{self.name} is traced again at each call of {self.kind}({self.name}): {reason}",
                RetraceWarning,
                stacklevel=user_stack_level(),
            )


def debugged(transformed: Transformed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call inside ``with srcgrad.debug()``."""
    from srcgrad.debugging import run_debugged  # which is written with this module

    return run_debugged(transformed, args, kwargs)


def global_name(thing: Any) -> str | None:
    """The qualified name under which the module that this object names has it: what it pickles as; None if it has
    not.
    """
    name: str = getattr(thing, "__qualname__", "<>")
    found: Any = sys.modules.get(getattr(thing, "__module__", ""))
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is thing else None


def restore(
    cls: type[Transformed], f: Callable[..., Any], options: tuple[Hashable, ...], state: dict[str, Any]
) -> Transformed:
    """Unpickle a transformed function."""
    other = object.__new__(cls)
    other.__dict__.update(state)
    other.f, other.options = f, the_same(options)
    other.__dict__["__wrapped__"] = f
    other.learn()
    return other


def raised_by_callee(error: Exception) -> bool:
    """Whether converted code called what raised this, in C: perhaps because it was given a traced value."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry is not None and internal_frame(entry.tb_frame)


def user_stack_level() -> int:
    """The stack level of the user's call, for a warning raised by the caller of the caller."""
    frame = sys._getframe(2)
    level = 2
    while frame.f_back is not None and internal_frame(frame):
        frame = frame.f_back
        level += 1
    return level


def copy_input(leaf: Any) -> Any:
    """An argument as user code may change it without the caller seeing that."""
    return np.array(leaf) if isinstance(leaf, np.ndarray) else leaf


def own(result: Any) -> Any:
    """A result that is writable, C-ordered and aliases nothing; rank 0 is a NumPy scalar."""
    return np.array(result, order="C")[()] if isinstance(result, np.ndarray) else result
