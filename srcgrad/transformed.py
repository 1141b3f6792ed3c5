"""The object a transform returns: how a call finds and runs its program, which `building` makes.

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
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from srcgrad.backends.base import backend as find_backend
from srcgrad.boundary import Changed, as_unsupported, described, reported
from srcgrad.building import Building, Contents, Job, Program
from srcgrad.cache import PROGRAMS, Known, find_captures, lasting, learned, the_same, watching
from srcgrad.compiler import Runner, backend_name, inlined
from srcgrad.errors import ArgumentError, SrcgradError, UnsupportedError
from srcgrad.ir.errors import prune_traceback
from srcgrad.ir.ops.effects import is_unforeseen
from srcgrad.signatures import HELD, UNKEYED, LeafFacts, leaf_key, plain_key, unread_key
from srcgrad.tracing.aliasing import AliasPattern
from srcgrad.tracing.capture import Uncacheable
from srcgrad.tracing.conversion.classes import adopt_records
from srcgrad.tracing.conversion.convert import is_user_function
from srcgrad.tracing.function import as_array, leaf_spec
from srcgrad.tracing.guards import guided
from srcgrad.tracing.hosts import numbered
from srcgrad.tracing.jax_arrays import (
    JAX_TYPES,
    without_jax_arrays,
)
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.trace import ACTIVE, CURRENT, WATCH
from srcgrad.tracing.tracer import Tracer, as_tracer, from_value
from srcgrad.vectorcall import VectorCalled, allow, set_function
from srcgrad.ways import (
    CONVERTED_FIRST,
    CONVERTED_LAST,
    Failed,
    Retrace,
    Together,
    Unsupported,
    Verdict,
    Way,
    function_of,
    prefers_conversion,
    why_retraced,
)

if TYPE_CHECKING:
    from srcgrad.paths import Answering

FAST_ENTRIES = 16
"""How many signatures of plain arrays and floats an object remembers."""
COUNTED = 64
"""Of how many programs an object counts the calls; it holds their code."""
LOOKS = 4
"""How often a call looks at what its function reads while another thread changes that."""
SERVED_FROM = 4
"""From which call on machine code answers the calls of one signature, where it can; a power of two."""
MACHINE: list[int] = []
"""The address of the function that answers calls by tables, once there is one."""


class Transformed(VectorCalled, Building):  # type: ignore[misc]
    """A function together with a transform; calling it runs the transformed program.

    It binds as a method, has the function's name, docstring and signature, pickles and deep-copies.
    """

    __slots__ = ("__dict__", "__weakref__", "_tables", "f", "options")

    _tables: tuple[Any, ...]
    """What answers calls in machine code: `front`. Unset at first."""

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
            functools.update_wrapper(self, f, updated=())
            if isinstance(f, types.FunctionType):  # an attribute of the user's may have the name of a method here
                self.__dict__.update((name, x) for name, x in vars(f).items() if not hasattr(type(self), name))
        self.f = f
        self.backend = backend
        self.options = the_same(options)
        self.learn()

    def learn(self) -> None:
        """Begin with what calls of other objects with this transform of the same code have found."""
        self.turned = False
        """Whether calls have found that what the function reads can be watched in converted code alone."""
        self.learned = found = learned(lasting(self.f), type(self), self.backend, self.options)
        self.fast: dict[tuple[Any, ...], tuple[Known | Together, Program]] = found.fast.copy()
        self.answered: dict[Runner, int] = {}
        if found.tables:
            self.answer_by(found.tables)

    def answer_by(self, tables: tuple[Any, ...]) -> None:
        """Let machine code answer the calls that fit these tables, which it has made."""
        self._tables = tables
        set_function(self, MACHINE[0])

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__call__ is Transformed.__call__:
            allow(cls)

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
            if name not in ("learned", "fast", "answered", "__wrapped__")
        }
        return (restore, (type(self), self.f, self.options, state))

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.name}>"

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
                    captures, program = found
                    if not isinstance(captures, Together):
                        if program.native:
                            self.one_call_more(args, {}, None, captures, program)
                        if program.changes is not None or (program.written and program.direct is None):
                            return self.execute(program, self.job(args, {}), (), captures)
                    direct = program.direct
                    if direct is not None:
                        return program.finish(direct(*args), program.stages)
                    return program.finish(program.results([as_array(argument) for argument in args]), program.stages)
            return self.dispatch(self.job(args, kwargs), args, kwargs)
        except Exception as error:
            if not is_unforeseen(error):
                shown = self.reported(error)
                if shown is None:
                    raise
                raise shown from shown.__cause__
        return self.made_again(args, kwargs)

    def made_again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call gives in which something fails in a ``try``, as its program has said."""
        from srcgrad.paths import run_failing  # which is written with this module

        try:
            return run_failing(self, self.job(args, kwargs), args, kwargs)
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

    def one_call_more(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job | None, captures: Known, program: Program,
        contents: Contents = (), by_paths: Answering | None = None,
    ) -> None:  # fmt: skip
        """One more call of a program in machine code; of many, the later ones are answered there as a whole.

        The first calls of objects that are made for a call each count together.
        """
        number = one_more(self.answered, program.run)
        if number == 1:
            number = one_more(self.learned.calls, program.run)
        if number >= SERVED_FROM and not number & (number - 1):
            from srcgrad.front import serve  # which is written with this module

            serve(self, args, kwargs, job or self.job(args, kwargs), captures, program, contents, by_paths)

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
        return adopt_records(built.finish(results, [inlined(stage) for stage in built.stages]))

    def dispatch(self, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        job = self.holding(job)
        for _ in range(LOOKS):
            try:
                return watching(self.f, lambda: self.dispatched(job, args, kwargs))
            except Changed:
                continue
        return self.retrace(job, args, kwargs, "what the function reads changes while it is looked at")

    def dispatched(self, job: Job, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        failures: list[Failed] = []
        unsupported: UnsupportedError | None = None
        watched: list[Way] = []
        verdicts: list[Verdict] = []
        for way in self.ways():
            found = find_captures(job.holder(self.f), way.floats_static, way.converted, job.treedef)
            if isinstance(found, Uncacheable):
                failures.append(Failed(found.reason, converted=way.converted, unwatched=True))
                continue
            watched.append(way)
            captures, (hidden, aliases) = found
            key = self.program_key(captures, hidden, aliases, job, way)
            verdicts.append(Verdict(way, captures, (*map(leaf_key, hidden),), aliases, key))
            program = PROGRAMS.get(key)
            if program is None:
                try:
                    program = self.make_program(key, captures, hidden, aliases, job, way)
                except TypeError as error:
                    known = as_unsupported(error)
                    if known is None or way.converted or not is_user_function(function_of(self.f)):
                        raise
                    PROGRAMS.put(key, Unsupported(copy.copy(known)))
                    unsupported = known
                    continue
            if isinstance(program, Unsupported):
                unsupported = program.error()
                continue
            if isinstance(program, Failed):
                failures.append(program)
                continue
            if isinstance(program, Retrace):
                return self.retrace(job, args, kwargs, program.reason)
            self.turned |= way.converted and not verdicts[:-1]
            if not hidden and not kwargs and not job.extras:
                self.remember(args, captures, program)
            if program.native:
                self.one_call_more(args, kwargs, job, captures, program)
            return self.execute(program, job, hidden, captures)
        if unsupported is not None and all(failure.unsupported for failure in failures):
            result = self.without_rule(unsupported, job, args, kwargs)
            if not kwargs and not job.extras:
                self.settle(args, job, verdicts, has_paths=False)
            return result
        from srcgrad.paths import NO_PATH, failing, run_path, shortcut  # which is written with this module

        result = run_path(self, job, watched, (args, kwargs))
        if result is not NO_PATH:
            if not kwargs and not job.extras:
                shortcut(self, args, job, verdicts)
            return result
        reason = why_retraced(failures)
        result = self.retrace(job, args, kwargs, reason, unsupported is not None or failing(self, job, watched))
        if unsupported is not None:  # which tracing again may have met too
            self.warn_retrace(reason)
        elif not kwargs and not job.extras:
            self.settle(args, job, verdicts)
        return result

    def program_key(
        self, captures: Known, hidden: Sequence[Any], aliases: AliasPattern | None, job: Job, way: Way
    ) -> tuple[Any, ...]:
        """Under which a program is remembered; the keys of the arguments' leaves come first."""
        keys = [leaf_key(leaf) for leaf in job.leaves]
        for place in self.leaf_facts(job.treedef).unread:
            keys[place] = unread_key(job.leaves[place])
        for place in job.held:
            keys[place] = HELD
        return (
            tuple(keys),
            type(self), self.options, backend_name(self.backend), captures, way.converted, job.treedef,
            tuple([leaf_key(value) for value in hidden]), aliases, job.detail,
            tuple([leaf_key(extra) for extra in job.extras]),
        )  # fmt: skip

    def holding(self, job: Job) -> Job:
        """A call in which the objects among the arguments are followed as what the function captures is.

        Of a lambda, a model or a sparse matrix no value says which program serves it: what is read of it does.
        """
        held = [place for place, leaf in enumerate(job.leaves) if self.has_no_key(leaf)]
        if not held:
            return job
        names, unread = self.leaf_facts(job.treedef)
        return job._replace(held={place: names[place] for place in held if place not in unread})

    def has_no_key(self, leaf: Any) -> bool:
        return type(leaf) not in (np.ndarray, float) and leaf_key(leaf) is UNKEYED  # most are of these

    def leaf_facts(self, tree: TreeDef) -> LeafFacts:
        """What is known of the leaves of arguments of this structure."""
        known, key = self.learned.leaves, (type(self.f), tree)
        found = known.get(key)
        if found is None:
            if len(known) >= COUNTED:
                known.clear()
            found = known[key] = LeafFacts.of(self.f, tree)
        return found

    def takes_paths(self) -> bool:
        """Whether a function that cannot be one program may be several, one for each path."""
        return True

    def ways(self) -> tuple[Way, ...]:
        """The ways in which this function is traced, the one most likely to give a program first."""
        return CONVERTED_FIRST if self.turned or prefers_conversion(self.f) else CONVERTED_LAST

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

    def remember_verdicts(
        self, args: tuple[Any, ...], verdicts: Sequence[Verdict], run: Callable[..., Any] | None = None
    ) -> bool:
        """Let ``run`` answer later calls on such arrays as long as the verdicts hold; whether that can be."""
        key = plain_key(self.backend, args)
        if key is None or len(verdicts) < len(CONVERTED_FIRST) or not JAX_TYPES.isdisjoint(map(type, args)):
            return False
        if not all(isinstance(PROGRAMS.get(verdict.key), (Failed, Unsupported)) for verdict in verdicts):
            return False
        if run is not None:
            if len(self.fast) >= FAST_ENTRIES:
                self.fast.clear()
            self.fast[key] = (Together(tuple(verdicts)), Program(run, as_it_is, (), (), direct=run))
        return True

    def settle(self, args: tuple[Any, ...], job: Job, verdicts: Sequence[Verdict], has_paths: bool = True) -> None:
        """What a transform remembers of a call that had no program, for later ones (``jit``)."""

    def execute(self, program: Program, job: Job, hidden: Sequence[Any], captures: Known) -> Any:
        leaves = [*job.leaves, *hidden] if hidden else job.leaves
        if program.written and program.refuses(leaves):  # what raises at the write, in the user's own code
            args, kwargs = job.treedef.unflatten(job.leaves)
            return self.retrace(job, args, kwargs, "writes into a read-only array", silently=True)
        arguments = [as_array(leaves[position]) for position in program.traced]
        if job.extras:
            arguments += map(as_array, job.extras)
        return program.finish(program.results(arguments), program.stages)


def as_it_is(result: Any, stages: Any) -> Any:
    return result


def debugged(transformed: Transformed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call inside ``with srcgrad.debug()``."""
    from srcgrad.debugging import run_debugged  # which is written with this module

    return run_debugged(transformed, args, kwargs)


def one_more(calls: dict[Runner, int], program: Runner) -> int:
    """Count a call; of many programs the counts of those that were called first long ago go."""
    number = calls[program] = calls.get(program, 0) + 1
    if len(calls) > COUNTED:
        with suppress(StopIteration, KeyError, RuntimeError):  # another thread counts too
            del calls[next(iter(calls))]
    return number


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
