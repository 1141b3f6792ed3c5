"""What a call of a transformed function becomes, without running it: for people who want to read it.

The decisions are those of `transformed.Transformed.dispatch`; nothing is compiled or cached.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from srcgrad.boundary import as_unsupported, described, from_outside, reported
from srcgrad.building import Built, Job, Rebuilding
from srcgrad.cache import Known, find_captures, watching
from srcgrad.changes import changes_of
from srcgrad.errors import ArgumentError, ConcretizationError, SrcgradError
from srcgrad.ir.collector import without_gc
from srcgrad.ir.core import Function, Value
from srcgrad.ir.types import ArrayType
from srcgrad.mapped import Jit, Vmap
from srcgrad.naming import readable
from srcgrad.paths import LIMIT, describe_path
from srcgrad.signatures import argument_reason, leaf_names, parameter_names
from srcgrad.tracing.capture import Captures, Uncacheable
from srcgrad.tracing.conversion.effects import may_raise
from srcgrad.tracing.conversion.state import MustRetrace
from srcgrad.tracing.function import LeafSpec, Traced, as_array, leaf_spec
from srcgrad.tracing.jax_arrays import without_jax_arrays
from srcgrad.tracing.trace import NeedsConcrete, Refused, Unread
from srcgrad.transformed import Transformed
from srcgrad.ways import Failed, Way, failed, first_lines, reason_as_it_is, require_no_handlers, why_retraced

SHOWN = 8
"""How many elements of an answer are shown."""


class Input(NamedTuple):
    """A parameter of a lowered program."""

    name: str
    type: ArrayType
    origin: str
    """What it is in the user's call: ``"the argument x"``, ``"closure W of model, read at each call"``."""
    value: Any
    """The array or NumPy scalar that this call gives."""
    leaf: Any = None
    """What that is made of."""


class Lowered(NamedTuple):
    """A call of a transformed function as programs."""

    transformed: Transformed
    traced: Function
    """The traced function, before any pass."""
    built: Built
    """The transformed function, and how its results become what the user gets."""
    inputs: tuple[Input, ...]
    constants: tuple[str, ...]
    """What of the call is compiled in."""
    changed: tuple[str, ...]
    """The inputs that the function changes in place; their new values are the last results."""
    refilled: tuple[str, ...]
    """The containers of the arguments that it lets hold something else."""
    retraced: str | None
    """Why the function is traced again at each call, if it is."""
    captures: Known | None
    converted: bool = False
    """Whether the functions were converted."""
    rolled: tuple[str, ...] = ()
    """What became of long loops."""
    sites: tuple[Any, ...] = ()
    """What the programs call in Python."""
    path: tuple[str, ...] = ()
    """Which path the call takes, and what was asked on it, if the function is a program for each path."""


class Verdict(NamedTuple):
    """How calls of one signature run: as one program with these captures, or not, for a reason."""

    reason: str | None
    captures: Known | None = None
    hidden: tuple[Any, ...] = ()
    aliases: Any = None
    paths: bool = False
    """Whether there may be a program for each path."""


def as_transformed(f: Any, what: str) -> Transformed:
    """The function itself if it is a transform, else wrapped in ``jit``, which keeps its meaning.

    Raises:
        ArgumentError: it cannot be called.
    """
    if isinstance(f, Transformed):
        return f
    if not callable(f):
        raise ArgumentError(
            f"{what} takes a function, not {described(f)}",
            hint=f"srcgrad.{what}(grad(f))(x), not srcgrad.{what}(grad(f)(x))",
        )
    return Jit(f, False, None)


def title(f: Any) -> str:
    """``grad(loss)`` for nested transforms of a function."""
    if isinstance(f, functools.partial):
        return f"partial({title(f.func)})"
    if isinstance(f, Transformed):
        kind = "value_and_grad" if getattr(f, "with_value", False) else f.kind
        return f"{kind}({title(f.f)})"
    return str(getattr(f, "__name__", type(f).__name__))


def lower(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str = "lower") -> Lowered:
    """The programs that a call of a function becomes; a plain function is lowered as under ``jit``.

    Raises:
        ArgumentError: ``f`` is not callable.
        ConcretizationError: a ``vmap`` that runs example after example has no program.
        What a call with these arguments raises while it is traced.
    """
    transformed = as_transformed(f, what)
    try:
        args, kwargs = without_jax_arrays((args, kwargs))[0]
        job = transformed.holding(transformed.job(args, kwargs))
        with readable(), without_gc():
            verdict, found = watching(transformed.f, lambda: decide(transformed, job))
            if found is None and verdict.paths:
                found = one_path(transformed, job, str(verdict.reason))
            if found is None:
                found = retraced(transformed, job, str(verdict.reason))
            return found
    except Exception as error:
        shown = reported(error, f"while tracing {title(transformed)}")
        if shown is error and not isinstance(error, SrcgradError):
            raise
        raise shown from shown.__cause__


def decide(transformed: Transformed, job: Job) -> tuple[Verdict, Lowered | None]:
    """The verdict on a call, and the program if there can be one."""
    failures: list[Failed] = []
    unsupported: Exception | None = None
    for way in transformed.ways():
        found = find_captures(job.holder(transformed.f), way.floats_static, way.converted, job.treedef)
        if isinstance(found, Uncacheable):
            failures.append(Failed(found.reason, converted=way.converted, unwatched=True))
            continue
        reason = argument_reason(found[0], job.leaves, job.treedef)
        if not way.converted:
            reason = reason or reason_as_it_is(job.holder(transformed.f), found[0])
        if reason is not None and not way.converted:
            failures.append(Failed(reason))
            continue
        verdict = captured(job, found)
        if verdict.reason is not None:
            return verdict, None
        try:
            return verdict, one_program(transformed, job, verdict, way)
        except MustRetrace as error:
            return Verdict(first_lines(error)), None
        except NeedsConcrete as error:
            failures.append(Failed(first_lines(error), isinstance(error, Refused), way.converted))
        except Unread:
            raise
        except Exception as error:
            known = as_unsupported(error)
            if known is not None and not way.converted:
                unsupported = known
            elif known is None and (not way.converted or from_outside(error)):
                raise
            else:
                failures.append(failed(known or error))
    if unsupported is not None and all(failure.unsupported for failure in failures):
        raise unsupported
    return Verdict(why_retraced(failures), paths=True), None


def captured(job: Job, found: tuple[Known, Any]) -> Verdict:
    """What the function reads besides its arguments, or why it cannot be one program."""
    captures, (hidden, aliases) = found
    reason = argument_reason(captures, job.leaves, job.treedef)
    return Verdict(None, captures, hidden, aliases) if reason is None else Verdict(reason)


def one_program(transformed: Transformed, job: Job, verdict: Verdict, way: Way) -> Lowered:
    captures, hidden = verdict.captures, verdict.hidden
    leaves = [*job.leaves, *hidden]
    specs = [leaf_spec(leaf) for leaf in leaves]
    rebuilt: Rebuilding | None = None
    if captures is not None:
        rebuilt = transformed.rebuilding(captures, verdict.aliases, hidden, job)
    numbers = [None] * sum(spec is not None for spec in specs)
    traced = transformed.trace(job, leaves, specs, False, numbers, rebuilt, way.converted, trusting=True)
    if not way.converted and captures is not None and any(map(may_raise, traced.function.operations)):
        require_no_handlers(job.holder(transformed.f), captures)
    names, origins = named_inputs(transformed, job, captures)
    found = assemble(transformed, job, specs, traced, names, origins, leaves, None, captures)
    return found._replace(converted=way.converted, rolled=traced.rolled)


def named_inputs(transformed: Transformed, job: Job, captures: Known | None) -> tuple[list[str], list[str]]:
    """A name for each leaf and hidden input, and where it comes from."""
    hidden = captures.hidden if captures is not None else ()
    paths = [found.path for found in hidden]
    origins = [f"the argument {name}" for name in leaf_names(transformed.f, job.treedef)]
    origins += [f"{path}, {'written' if kind == 'journal' else 'read'} at each call" for path, kind in hidden]
    return [*leaf_names(transformed.f, job.treedef), *map(variable_of, paths)], origins


def one_path(transformed: Transformed, job: Job, reason: str) -> Lowered | None:
    """The program of the path that this call takes; None where the call is traced again."""
    described_path = describe_path(transformed, job)
    if described_path is None:
        return None
    entry, traced, guards, specs, number = described_path
    names, origins = named_inputs(transformed, job, entry.captures)
    leaves = [*job.leaves, *entry.hidden]
    found = assemble(transformed, job, specs, traced, names, origins, leaves, reason, entry.captures)
    lines = [f"Path {number} of at most {LIMIT}: a program for the calls in which Python gets these values."]
    for guard in guards:
        place = "" if guard.span is None else f" ({guard.span.label()})"
        lines.append(f"  {guard.what}: {shown_answer(guard.answer)}{place}")
    return found._replace(converted=entry.way.converted, path=tuple(lines))


def variable_of(path: str) -> str:
    """The variable in a description of a hidden input: ``"closure W of model"`` -> ``"W"``."""
    words = path.removeprefix("attributes of ").split()
    word = words[1] if len(words) > 1 else path.rpartition(".")[2]
    return word if word.isidentifier() else "_".join(words[:2])


def retraced(transformed: Transformed, job: Job, reason: str) -> Lowered:
    """The trace of this one call, with its numbers known."""
    names = leaf_names(transformed.f, job.treedef)
    origins = [f"the argument {name}" for name in names]
    if isinstance(transformed, Vmap):
        specs = [leaf_spec(leaf) for leaf in job.leaves]
        leaves, numbers = job.leaves, [None] * sum(spec is not None for spec in specs)
        try:
            traced = transformed.trace(job, leaves, specs, False, numbers)
        except NeedsConcrete as error:
            raise ConcretizationError(
                f"vmap({transformed.name}) runs example after example, so it has no program: {first_lines(error)}",
                span=error.span,
                hint=f"look at {transformed.name} on one example",
            ) from None
        return assemble(transformed, job, specs, traced, names, origins, leaves, reason, None)
    specs, _, traced = transformed.trace_now(job)
    return assemble(transformed, job, specs, traced, names, origins, job.leaves, reason, None)


def shown_answer(answer: Any) -> str:
    """What Python got, as it writes it; of a large array its type."""
    return repr(answer.tolist()) if np.size(answer) <= SHOWN else described(answer)


def assemble(
    transformed: Transformed,
    job: Job,
    specs: Sequence[LeafSpec | None],
    traced: Traced,
    names: Sequence[str],
    origins: Sequence[str],
    leaves: Sequence[Any],
    reason: str | None,
    captures: Known | None,
) -> Lowered:
    """Name the parameters, transform, and say where each comes from."""
    given = [position for position, spec in enumerate(specs) if spec is not None]
    labels = [(names[k], origins[k], as_array(leaves[k]), leaves[k]) for k in given]
    others = [k for k, spec in enumerate(specs) if spec is None]
    for array in traced.captured:
        same = next((names[k] for k in others if same_array(leaves[k], array)), None)
        what = "an array that the function met" if same is None else f"an array equal to the argument {same}"
        labels.append(("captured" if same is None else same, f"{what}, as it was in this call", array, array))
    params = traced.function.params
    for param, (name, *_) in zip(params, labels, strict=True):
        param.name = name
    # A transform of a Function copies its parameters in order; vmap changes their types.
    built = transformed.build_checked(traced, job, specs)
    built_params: Sequence[Value] = built.function.params
    inputs = [
        Input(name, param.type, origin, value, leaf)
        for param, (name, origin, value, leaf) in zip(built_params, labels, strict=True)
    ]
    seen = {item.name for item in inputs}
    constants = [f"{names[k]} = {described(leaves[k])}" for k in others if names[k] not in seen and k not in job.held]
    changes = changes_of(traced) if transformed.writes_back else None
    changed = () if changes is None else tuple([labels[k][0] for k in changes.arrays])
    refilled = () if changes is None else tuple(changes.shown(parameter_names(transformed.f)))
    return Lowered(
        *(transformed, traced.function, built, tuple(inputs), tuple(constants), changed, refilled, reason, captures),
        sites=traced.sites,
    )


def same_array(leaf: Any, array: Any) -> bool:
    return (
        isinstance(leaf, np.ndarray)
        and leaf.dtype == array.dtype
        and leaf.shape == array.shape
        and leaf.tobytes() == array.tobytes()
    )


def guards_of(lowered: Lowered) -> list[str]:
    """The hidden inputs and guards of a function that is one program, a line each."""
    if not isinstance(lowered.captures, Captures):
        return []
    return lowered.captures.explain().splitlines()
