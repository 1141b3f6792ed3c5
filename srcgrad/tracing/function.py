"""Tracing a Python function into a Function, and putting a Function into the trace in progress."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

import srcgrad.ir.ops
import srcgrad.tracing.functions
import srcgrad.tracing.indexing
import srcgrad.tracing.operators  # noqa: F401  the rules register themselves
from srcgrad.boundary import from_outside
from srcgrad.errors import DTypeError, LeakedTracerError, SrcgradError
from srcgrad.ir.core import Function, Value
from srcgrad.ir.source import Span, internal_frame
from srcgrad.ir.transforms.interpret import inline
from srcgrad.ir.types import DTYPE_NAMES, ArrayType, DType
from srcgrad.tracing.built_on import items_in
from srcgrad.tracing.doubts import require_dtype
from srcgrad.tracing.floating_errors import no_state_of_the_caller
from srcgrad.tracing.guards import Guide
from srcgrad.tracing.held import holding, is_slotted
from srcgrad.tracing.hosts import NUMBER, HostObject, is_host_object, numbered
from srcgrad.tracing.jax_arrays import JAX_TYPES, is_jax_array
from srcgrad.tracing.journals import JOURNALS, Journal, require_unchanged_items
from srcgrad.tracing.kept import KEPT
from srcgrad.tracing.layout import Strides, strides_of
from srcgrad.tracing.pytree import TreeDef, flatten
from srcgrad.tracing.rebound import require_bound_again
from srcgrad.tracing.refusing import require_told
from srcgrad.tracing.room import room
from srcgrad.tracing.storage import ASK, Storage
from srcgrad.tracing.tables import is_table
from srcgrad.tracing.trace import CURRENT, STORES, NeedsConcrete, Refused, Trace, Unread, tracing
from srcgrad.tracing.tracer import Deferring, Tracer, from_value
from srcgrad.tracing.unasked import attribute
from srcgrad.tracing.views import ReadOnlyView

TRACED = (np.ndarray, np.floating, np.complexfloating, float, complex, Tracer)


class LeafSpec(NamedTuple):
    """How a leaf of the arguments enters a trace: its type, and whether it is a NumPy scalar or a Python number."""

    type: ArrayType
    scalar: bool
    weak: bool
    strides: Strides | None = None
    """An array's layout where it is not in C order: it decides what user code gets as a view and what as a copy."""
    host: Any = None
    """Of an object that the program works with by its number, the kind."""


@lru_cache(maxsize=256)
def has_type(dtype: DType) -> bool:
    """Whether arrays of it can be traced; NumPy puts the name together each time that it is asked for."""
    return dtype.name in DTYPE_NAMES


def plain_array_of(kind: type) -> str:
    """What to pass in place of an array of a class of its own."""
    if issubclass(kind, np.ma.MaskedArray):  # whose mask np.asarray would drop
        return "pass x.filled(0.0) and np.ma.getmaskarray(x), and use np.where(mask, 0.0, x)"
    return "pass np.asarray(x)"


def numbers_of(dtype: np.dtype[Any]) -> str:
    """What to pass in place of an array that holds no numbers."""
    if dtype.names:
        return "pass its fields, each an array of its own: {name: x[name] for name in x.dtype.names}"
    return "use booleans, integers, floats or complex"


def leaf_spec(leaf: Any) -> LeafSpec | None:
    """The spec of a traced leaf; None for a static one.

    Raises:
        DTypeError: an array of a dtype that has no type in srcgrad (object, text, dates) or of an ndarray subclass.
    """
    kind = type(leaf)
    if kind is float:
        return LeafSpec(ArrayType(np.dtype(np.float64)), True, True)
    if kind is complex:
        return LeafSpec(ArrayType(np.dtype(np.complex128)), True, True)
    if isinstance(leaf, Tracer):
        return LeafSpec(leaf.type, leaf.scalar, leaf.weak, None if leaf.in_c_order() else leaf.ghost().strides)
    if isinstance(leaf, (np.floating, np.complexfloating)):
        return LeafSpec(ArrayType(leaf.dtype), True, False)
    if isinstance(leaf, np.ndarray):
        if kind is not np.ndarray and kind is not np.memmap:
            raise DTypeError(f"{kind.__name__} is not supported as an argument", hint=plain_array_of(kind))
        if is_table(leaf):
            return None
        if not has_type(leaf.dtype):
            raise DTypeError(f"an array of dtype {leaf.dtype} cannot be traced", hint=numbers_of(leaf.dtype))
        return LeafSpec(ArrayType(leaf.dtype.newbyteorder("="), leaf.shape), False, False, strides_of(leaf))
    if kind in JAX_TYPES or is_jax_array(leaf):
        if str(leaf.dtype) not in DTYPE_NAMES:
            raise DTypeError(
                f"a jax array of dtype {leaf.dtype} cannot be traced",
                hint="use booleans, integers, floats or complex; draw random numbers outside",
            )
        return LeafSpec(ArrayType(np.dtype(leaf.dtype), leaf.shape), not leaf.shape, False)
    if kind in KEPT:
        return LeafSpec(leaf.type, False, False)
    if kind is HostObject or is_host_object(leaf) or isinstance(leaf, Journal):
        return LeafSpec(NUMBER, True, False, None, leaf.__class__)
    if isinstance(leaf, Deferring):
        str(leaf)  # which says what it is and raises
    return None


def as_array(leaf: Any) -> Any:
    """A traced leaf as the array or NumPy scalar that a program takes; a jax array stays one."""
    kind = type(leaf)
    if kind is np.ndarray:
        return leaf if leaf.dtype.isnative else leaf.astype(leaf.dtype.newbyteorder("="))
    if kind is float:
        return np.float64(leaf)
    if kind is complex:
        return np.complex128(leaf)
    if kind in KEPT:
        return leaf.value
    if isinstance(leaf, Journal):
        return JOURNALS.number(leaf)
    return np.asarray(leaf)[()] if kind is np.memmap else numbered(leaf)


class Traced(NamedTuple):
    """A traced function. Its parameters are the traced leaves, the hidden inputs, then ``lifted`` and ``captured``."""

    function: Function
    inputs: int
    lifted: list[Value]
    captured: list[Any]
    out_tree: TreeDef
    outputs: list[Any]
    """Per output leaf: the position among the function's results, or a `StaticLeaf`."""
    mutated: tuple[int, ...]
    """The inputs that the function changed in place; their new values are the last results, if they were asked for."""
    claimed: tuple[int, ...]
    """Those and others into copies of which transforms inside write: read-only ones are an error of NumPy's."""
    numbers: list[Any]
    """The results' values, where the trace knew them."""
    sites: tuple[Any, ...] = ()
    """What the function's ``host_call`` operations call, by number."""
    rolled: tuple[str, ...] = ()
    """What became of long loops."""
    changes: Any = None
    """What the function put into containers of its arguments: `srcgrad.changes`."""
    forgets: bool = False
    """Whether it assigns attributes before it raises an error, which the program does not store."""
    rebinds: bool = False
    """Whether it may assign globals, which are what they were at its end."""


class Watcher(Protocol):
    """What sees how a traced function changes its arguments, where its caller is to have that too."""

    def changes(self, trace: Trace, given: Sequence[Any]) -> tuple[Any, list[Value]]:
        """What is put into containers, and the results that this takes; ``given``: the leaves in the trace."""


class StaticLeaf(NamedTuple):
    """An output leaf that is not an array of numbers: returned as it is, or a copy of it by each call."""

    value: Any
    copied: bool = False

    def given(self) -> Any:
        """What a call returns, whose caller may change it."""
        return copy.deepcopy(self.value) if self.copied else self.value


def trace_function(
    call: Callable[[list[Any]], Any],
    leaves: Sequence[Any],
    specs: Sequence[LeafSpec | None],
    names: Sequence[str | None],
    *,
    name: str,
    concrete: bool,
    numbers: Sequence[Any],
    watcher: Watcher | None = None,
    converting: bool = False,
    guide: Guide | None = None,
    origins: Sequence[Value] = (),
    roots: Sequence[Any] = (),
    trusting: bool = False,
    picking: bool = False,
    lifting: bool = False,
) -> Traced:
    """Trace ``call``, which takes the list of leaves with the traced ones replaced by tracers.

    ``numbers`` are the traced leaves' values, used if ``concrete``; ``watcher``: if there is one, the new values of
    changed inputs, and before them of what is put into containers, are results; ``converting``: user functions are
    converted when they are called, here and in the traces inside.
    ``guide``: what answers the questions of one path; ``origins``: the values of the trace around this one that the
    parameters stand for; ``roots``: what leads to the objects of the caller's that the function may leave values in;
    ``trusting``: the program may say that a call is to be made in another way, since something fails in a ``try``;
    ``picking``: copies may stand for one of several containers, or this raises `Mistaken`; ``lifting``: values may be
    written into all arrays that it makes.
    """
    parent = CURRENT.get()
    trace = Trace(parent, concrete, name)
    trace.converting |= converting
    trace.guide = guide
    trace.trusting |= trusting
    trace.picking |= picking
    trace.lifting |= lifting
    trace.writes_back = watcher is not None
    state: AbstractContextManager[None] = nullcontext() if parent is not None else no_state_of_the_caller()
    with tracing(trace), settling(roots), state:
        given, storages = with_tracers(trace, leaves, specs, names, numbers)
        trace.origins.update(zip(trace.builder.params, origins, strict=False))
        inputs = len(storages)
        errors = np.geterr()
        output = call_user(call, given, trace)
        require_unchanged(trace)
        if not concrete and np.geterr() != errors:
            raise Refused("np.seterr leaves another state than it finds")
        out_leaves, out_tree = flatten(output)
        outputs, results = collected(trace, out_leaves)
        mutated = tuple(k for k, (storage, first) in enumerate(storages) if storage.value is not first)
        claimed = tuple(k for k, (storage, _) in enumerate(storages) if k in mutated or storage.claimed)
        claim(trace, [leaf for leaf, spec in zip(leaves, specs, strict=True) if spec is not None], claimed)
        changes = None
        if watcher is not None:
            for leaf in out_leaves:
                if isinstance(leaf, Tracer):
                    require_dtype(leaf)
            changes, stored = watcher.changes(trace, given)
            results += [*stored, *(storages[k][0].value for k in mutated)]
        numbers = [trace.number(value) for value in results]
        if trace.failing:
            from srcgrad.tracing.conversion.state import ask_unread  # which few programs need

            ask_unread(trace, results)
    lifted = list(trace.lifted)
    params = [*trace.builder.params, *trace.lifted.values(), *(value for value, _ in trace.captured)]
    function = Function(name, params, trace.builder.operations, results)
    captured = [array for _, array in trace.captured]
    sites, rolled = tuple(trace.sites), tuple(trace.rolled)
    return Traced(
        function, inputs, lifted, captured, out_tree, outputs, mutated, claimed, numbers, sites, rolled, changes,
        trace.forgets, bool(trace.rebound),
    )  # fmt: skip


def claim(trace: Trace, inputs: Sequence[Any], claimed: Sequence[int]) -> None:
    """Say of arrays of the traces around this one that they are written into: arguments, and what is captured."""
    found = [leaf.storage for leaf in map(inputs.__getitem__, claimed) if isinstance(leaf, Tracer)]
    for storage in (*found, *trace.overlay):
        storage.claimed = True


def with_tracers(
    trace: Trace,
    leaves: Sequence[Any],
    specs: Sequence[LeafSpec | None],
    names: Sequence[str | None],
    numbers: Sequence[Any],
) -> tuple[list[Any], list[tuple[Storage, Value]]]:
    """The leaves with tracers of new parameters for those that have a spec; the storages of these, with what they hold
    first.
    """
    given, storages, known = list(leaves), [], iter(numbers)
    for position, (spec, label) in enumerate(zip(specs, names, strict=True)):
        if spec is None:
            continue
        value = trace.param(spec.type, label, next(known))
        tracer = from_value(value, spec.scalar, spec.weak)
        tracer.storage.strides, tracer.storage.given = spec.strides, True
        if trace.writes_back and type(leaves[position]) in JAX_TYPES:  # what could not be changed for the caller
            tracer.storage.writable = False
        else:
            tracer.storage.writable = is_writable(leaves[position], trace.concrete)
        if spec.host is None:
            given[position] = tracer
        elif not trace.concrete:
            journal = issubclass(spec.host, Journal)
            given[position] = spec.host.stand_in(tracer) if journal else HostObject(tracer, spec.host)
        storages.append((tracer.storage, value))
    return given, storages


def is_writable(leaf: Any, concrete: bool) -> bool:
    """Whether a function may write into an argument: in a trace inside another one, or of a call that is this one."""
    if isinstance(leaf, Tracer):
        return leaf.storage.writable and not any(isinstance(view, ReadOnlyView) for view in leaf.chain)
    return not concrete or not isinstance(leaf, np.ndarray) or leaf.flags.writeable


@contextmanager
def settling(roots: Sequence[Any]) -> Iterator[None]:
    """At the end, numbers in place of the traced values in what the caller has; the results have been read then."""
    if not roots:
        yield
        return
    from srcgrad.tracing.remains import settle, settle_error  # which only traces with numbers need

    try:
        yield
    except Exception as error:
        if not isinstance(error, (SrcgradError, Unread)):
            settle_error(error)
        raise
    finally:
        settle(roots)


def collected(trace: Trace, leaves: Sequence[Any]) -> tuple[list[Any], list[Value]]:
    """What each leaf of an output is, the position of a result or a static leaf, and the results."""
    results: list[Value] = []
    outputs: list[Any] = []
    for leaf in leaves:
        result = output_value(trace, leaf)
        if result is None:
            if attribute(type(leaf), "__srcgrad_unfinished__"):
                str(leaf)  # which says what it is and raises
            if not trace.concrete and keeps_traced(leaf, 3):
                raise Refused(f"returns a {type(leaf).__name__} that holds traced values")
            outputs.append(StaticLeaf(leaf, is_copied(trace, leaf)))
        else:
            outputs.append(len(results))
            results.append(result)
    return outputs, results


def is_copied(trace: Trace, leaf: Any) -> bool:
    """Whether each call of the program is to return a copy of an object: a set, an array of texts, one of a class.

    Raises:
        Refused: it can be changed, and has no copy.
    """
    if trace.concrete or trace.parent is not None or callable(leaf):
        return False
    try:
        return copy.deepcopy(leaf) is not leaf
    except Exception as error:
        raise Refused(f"returns a {type(leaf).__name__}, of which each call needs a copy: {error}") from error


def keeps_traced(x: Any, depth: int) -> bool:
    """Whether the attributes of an object, or the items of a container, are traced, or lead to what is."""
    if depth == 0 or isinstance(x, (type, FunctionType, ModuleType)):
        return False
    attributes = attribute(x, "__dict__")
    parts: list[Any] = [attributes] if type(attributes) is dict else []
    if isinstance(x, (dict, list, tuple, deque)):
        parts.append(list(x.values() if isinstance(x, dict) else x))
    if isinstance(x, np.ndarray) and x.dtype == object:
        parts.append(x.ravel().tolist())
    return any(isinstance(leaf, Tracer) or keeps_traced(leaf, depth - 1) for leaf in flatten(parts)[0])


def require_unchanged(trace: Trace) -> None:
    """Refuse a function that changes a captured container or object; attributes that it stores are stored at the end.

    Raises:
        Refused: one was changed; the trace has changed a copy. Or a class or function was, which will be as it was.
        Unread: attributes are stored, which the trace is to be told how to.
    """
    require_unchanged_items(trace)
    for classed in trace.classes:
        for name in classed.assigned():
            kind = "class" if isinstance(classed.cls, type) else "function"
            raise Refused(f"assigns the attribute '{name}' of the {kind} {classed.cls.__name__}")
    for watched in trace.watched:
        slotted, before = is_slotted(watched.copy), watched.before
        if callable(before):
            if not before(watched.copy):
                kind = "array" if isinstance(watched.copy, np.ndarray) else type(watched.copy).__name__
                raise Refused(f"writes into {watched.label}, the {kind} that a program has as a constant")
            continue
        held = holding(watched.copy) if slotted else items_in(watched.copy)
        if isinstance(held, dict):
            changed = [key for key, value in held.items() if before.get(key, before) is not value]
            same = before.keys() <= held.keys() if slotted else list(held)[: len(before)] == list(before)
            if same and changed:
                same = watched.owner is not None and watched.guarded.isdisjoint(changed)
                if same and watched.owner is ASK:
                    raise Unread(STORES)
                for key in changed if same else ():
                    require_told(held[key])  # it may be what another attribute held
                    watched.owner.store(key, held[key])
        else:
            same = len(held) == len(before) and all(one is other for one, other in zip(held, before, strict=True))
        if not same:
            raise Refused(f"changes {watched.label}, which is captured")
    if trace.rebound:
        require_bound_again(trace)
    if trace.chosen:
        from srcgrad.tracing.conversion.identity import require_unchanged_choices  # which needs this module

        require_unchanged_choices(trace)


def call_user(call: Callable[[list[Any]], Any], given: list[Any], trace: Trace) -> Any:
    """Call the function; what it needed and did not get decides, whatever it made of that.

    Raises:
        NeedsConcrete: user code was refused a value, even where it or NumPy caught the error.
        Unread: it read an attribute that is not watched.
    """
    try:
        with room():
            output = call(given)
    except (NeedsConcrete, Unread):
        if trace.unread is not None:
            raise trace.unread from None
        raise
    except Exception as error:
        if from_outside(error):
            raise
        if trace.unread is not None:
            raise trace.unread from None
        if trace.needed is not None:
            raise trace.needed from None
        if trace.refused is not None and hides(error, trace.refused):
            raise trace.refused from None
        raise
    if trace.unread is not None:
        raise trace.unread
    refused = trace.needed or trace.swallowed
    if refused is not None:
        raise refused
    return output


def hides(error: Exception, refused: SrcgradError) -> bool:
    """Whether NumPy or SciPy raised ``error`` instead of the error of a refused conversion, at the same instruction.

    Code in C that goes on where an exception is set ends with a SystemError, whose cause that is, or with others:
    Python itself finds no special method of a class then, if it has not found it before, and says no more than a name.
    """
    cause: BaseException | None = error
    while type(cause) is SystemError:
        cause = cause.__cause__
        if cause is refused:
            return True
    kinds: tuple[type[Exception], ...] = (TypeError, ValueError)
    if type(error) is AttributeError and error.args == ("__call__",):
        kinds = (AttributeError,)
    user, entry = None, error.__traceback__
    while entry is not None:
        if not internal_frame(entry.tb_frame):
            user = entry
        elif str(entry.tb_frame.f_globals.get("__name__")).startswith("scipy.") and entry.tb_next is None:
            kinds = (TypeError, ValueError, RuntimeError, AttributeError, SystemError)
            if type(error).__module__ == "_minpack":  # which has an error of its own
                kinds = (type(error),)
        elif entry.tb_next is None and not called_by_conversion(entry.tb_frame):
            return False
        entry = entry.tb_next
    return type(error) in kinds and user is not None and Span.of(user.tb_frame.f_code, user.tb_lasti) is refused.span


def called_by_conversion(frame: Any) -> bool:
    """Whether this is the frame of an operator of converted code, which has called what the user calls."""
    return str(frame.f_globals.get("__name__")).startswith("srcgrad.tracing.conversion.")


def output_value(trace: Trace, leaf: Any) -> Value | None:
    if isinstance(leaf, Tracer):
        if leaf.storage.pending is not None and leaf.storage.pending.none:
            raise Refused("what the function returns is a number or None, depending on a traced condition")
        return leaf.read()
    if isinstance(leaf, Deferring) and leaf.stands_for is np.matrix:  # what comes back is an array of NumPy's own class
        return output_value(trace, leaf.array)  # type: ignore[attr-defined]
    if isinstance(leaf, (float, complex, np.floating, np.complexfloating)) or (
        isinstance(leaf, np.ndarray) and has_type(leaf.dtype)
    ):
        return trace.constant(leaf)
    return None


def inline_function(function: Function, arguments: Sequence[Value]) -> list[Tracer]:
    """Emit a Function into the trace in progress; its results as tracers."""
    trace = CURRENT.get()
    if trace is None:
        raise LeakedTracerError("no trace is in progress")
    builder = trace.builder
    watch, builder.watch = builder.watch, None  # which has seen its values, and judges derivatives as a whole
    try:
        return [from_value(value, scalar=not value.type.shape) for value in inline(builder, function, arguments)]
    finally:
        builder.watch = watch
