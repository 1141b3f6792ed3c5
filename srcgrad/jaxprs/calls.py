"""Primitives that hold programs: calls, custom rules, checkpoints, branches and loops."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.custom import checkpoint, closed, custom_jvp, custom_vjp, emit_call, spec_of, trace_body, union
from srcgrad.errors import UnsupportedError
from srcgrad.ir.core import Region, Value
from srcgrad.ir.types import ArrayType
from srcgrad.jaxprs.arrays import part
from srcgrad.jaxprs.table import Equation, known, reshaped, rule, select, struct, traced
from srcgrad.jaxprs.walk import single, walk
from srcgrad.tracing.function import Traced
from srcgrad.tracing.tracer import Tracer, emit

RULE_DEPTH: Final = 3
"""The rule of a function that calls itself is followed to this depth: derivatives up to this order follow it."""
DEPTH: ContextVar[int] = ContextVar("srcgrad_jax_rules", default=0)
MOST_STEPS: Final = 50_000
"""How many equations a loop may become when it is unrolled."""
WRITTEN_OUT: Final = 2_000
"""How many equations a scan becomes before it is a loop."""
INDEX: Final = ArrayType(np.dtype(np.int64), ())


@rule("jit", "pjit", "closed_call", "core_call", "core_closed_call", "xla_call", "named_call", "eval_jaxpr")
def call(e: Equation) -> list[Any]:
    body = e.params["jaxpr"] if "jaxpr" in e.params else e.params["call_jaxpr"]
    return closed_walk(body, e.operands)


def closed_walk(body: Any, operands: Sequence[Any]) -> list[Any]:
    """Walk a jaxpr with or without constants."""
    return walk(body.jaxpr, body.consts, operands) if hasattr(body, "consts") else walk(body, (), operands)


@rule("remat2", "checkpoint", "remat")
def remat(e: Equation) -> Any:
    run, given = opened(e, lambda operands: closed_walk(e.params["jaxpr"], operands))
    return list(checkpoint(run)(*given)) if given else run()


def opened(e: Equation, body: Callable[[list[Any]], list[Any]]) -> tuple[Callable[..., Any], list[Tracer]]:
    """The body as a function of the traced operands only, and these."""
    places = [k for k, operand in enumerate(e.operands) if isinstance(operand, Tracer)]

    def run(*given: Any) -> Any:
        operands = list(e.operands)
        for place, value in zip(places, given, strict=True):
            operands[place] = value
        return tuple(body(operands))

    return run, [traced(e.operands[place]) for place in places]


# --- custom rules ------------------------------------------------------------------------------------


def rule_parts(e: Equation) -> tuple[list[int], list[int], list[int], Callable[..., Any]]:
    """The traced operands, the floating ones of them and of the results; and the equation as a jax function of the
    floating operands (the others given first) that returns the floating results.
    """
    places = [k for k, operand in enumerate(e.operands) if isinstance(operand, Tracer)]
    floats = [k for k in places if np.dtype(e.source.invars[k].aval.dtype).kind in "fc"]
    outs = [k for k, type in enumerate(e.results) if np.dtype(type.dtype).kind in "fc"]
    whole = single(e.source)

    def function(others: list[Any], *given: Any) -> list[Any]:
        operands = list(others)
        for place, value in zip(floats, given, strict=True):
            operands[place] = value
        found = whole(*operands)
        return [found[k] for k in outs]

    return places, floats, outs, function


def example(e: Equation, places: Sequence[int]) -> list[Any]:
    """The types of operands, for jax to trace with."""
    return [struct(e.source.invars[k].aval.shape, e.source.invars[k].aval.dtype) for k in places]


def merged(e: Equation, places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """The operands as jax's arrays, with traced ones replaced: code of a rule may index them by what jax traces."""
    import jax.numpy as jnp

    operands = [jnp.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in e.operands]
    for place, value in zip(places, values, strict=True):
        operands[place] = value
    return operands


COUNTERPARTS: Final[dict[str, Callable[..., Any]]] = {
    "jax._src.numpy.linalg._slogdet_lu": np.linalg.slogdet,
    "jax._src.numpy.linalg._det": np.linalg.det,
    "jax._src.numpy.linalg._det_2x2": np.linalg.det,
    "jax._src.numpy.linalg._det_3x3": np.linalg.det,
    "jax._src.numpy.ufuncs._frexp": np.frexp,
    "jax._src.numpy.ufuncs.Ldexp": np.ldexp,
    "jax._src.numpy.ufuncs.Frexp": np.frexp,
}
"""Functions and primitives of jax with a rule, made of what has no counterpart (the factors of a matrix, the bits of a
number), and NumPy's functions of the same meaning.
"""


def called(body: Any) -> str:
    """The module and name of the function that a jaxpr was made from, as far as jax tells."""
    debug = getattr(body.jaxpr, "debug_info", None)
    parts = str(getattr(debug, "func_filename", "") or "").removesuffix(".py").replace("\\", "/").split("/")
    module = ".".join(parts[len(parts) - parts[::-1].index("jax") - 1 :]) if "jax" in parts else ""
    return f"{module}.{getattr(debug, 'func_name', '')}"


@rule("custom_jvp_call")
def custom_jvp_call(e: Equation) -> Any:
    """A function with a forward rule of jax: kept as one of srcgrad's."""
    body = e.params["call_jaxpr"]
    same = COUNTERPARTS.get(called(body))
    return with_forward_rule(e, body) if same is None else same(*e.tracers)


def with_forward_rule(e: Equation, body: Any) -> Any:
    """The results of ``body``, with the tangents that jax gives those of the equation."""
    import jax

    places, floats, outs, function = rule_parts(e)
    if not floats or DEPTH.get() >= RULE_DEPTH:
        return closed_walk(body, e.operands)
    run, given = opened(e, lambda operands: closed_walk(body, operands))

    def pushed(values: Any, tangents: Any) -> Any:
        others = merged(e, places, values)
        primals = [others[k] for k in floats]
        out = single(e.source)(*others)
        return out, jax.jvp(lambda *xs: function(others, *xs), primals, tangents)[1]

    ruled: Any = custom_jvp(run)

    def forward(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        token = DEPTH.set(DEPTH.get() + 1)
        try:
            closed = jax.make_jaxpr(pushed)(example(e, places), example(e, floats))
            moved = [tangents[places.index(k)] for k in floats]
            found = closed_walk(closed, [*primals, *moved])
        finally:
            DEPTH.reset(token)
        count = len(e.results)
        dots: list[Any] = [np.zeros(type.shape, type.dtype) for type in e.results]
        for place, dot in zip(outs, found[count:], strict=True):
            dots[place] = dot
        return tuple(found[:count]), tuple(dots)

    ruled.defjvp(forward)
    return list(ruled(*given))


@rule("custom_vjp_call", "custom_vjp_call_jaxpr")
def custom_vjp_call(e: Equation) -> Any:
    """A function with a reverse rule of jax: kept as one of srcgrad's, whose backward part runs jax's forward part
    once more.
    """
    return with_reverse_rule(e, e.params.get("call_jaxpr", e.params.get("fun_jaxpr")))


def with_reverse_rule(e: Equation, body: Any) -> Any:
    """The results of ``body``, with the cotangents that jax gives the equation's operands."""
    import jax

    places, floats, outs, function = rule_parts(e)
    if not floats or DEPTH.get() >= RULE_DEPTH:
        return closed_walk(body, e.operands)
    run, given = opened(e, lambda operands: closed_walk(body, operands))

    def pulled(values: Any, cotangents: Any) -> Any:
        others = merged(e, places, values)
        return jax.vjp(lambda *xs: function(others, *xs), *[others[k] for k in floats])[1](cotangents)

    ruled: Any = custom_vjp(run)

    def backward(values: Any, cotangents: Any) -> Any:
        token = DEPTH.set(DEPTH.get() + 1)
        try:
            types = [struct(e.results[k].shape, e.results[k].dtype) for k in outs]
            closed = jax.make_jaxpr(pulled)(example(e, places), types)
            found = iter(closed_walk(closed, [*values, *[cotangents[k] for k in outs]]))
        finally:
            DEPTH.reset(token)
        return tuple([next(found) if k in floats else None for k in places])

    ruled.defvjp(lambda *xs: (run(*xs), xs), backward)
    return list(ruled(*given))


@rule("call_hi_primitive")
def call_hi_primitive(e: Equation) -> Any:
    """A primitive that is defined by a function of others: that function, with the primitive's own rule if it has
    one for what has a derivative.
    """
    import jax

    without: Any = importlib.import_module("jax.experimental.hijax").HiPrim
    own = type(e.params["_prim"])
    same = COUNTERPARTS.get(f"{own.__module__}.{own.__qualname__}")
    if same is not None:
        return same(*e.tracers)
    body = jax.make_jaxpr(lambda *xs: e.source.primitive.to_lojax(*xs, **e.params))(*example(e, range(len(e.operands))))
    if not rule_parts(e)[2]:
        return closed_walk(body, e.operands)
    if own.jvp is not without.jvp:
        return with_forward_rule(e, body)
    return closed_walk(body, e.operands) if own.vjp_fwd is without.vjp_fwd else with_reverse_rule(e, body)


# --- branches and loops --------------------------------------------------------------------------------


@rule("platform_index")
def platform_index(e: Equation) -> Any:
    """The branch that is right on every platform."""
    return np.int32(list(e.params["platforms"]).index(None))


@rule("cond")
def cond(e: Equation) -> list[Any]:
    """The branch that is taken, if that is known; else all of them, and the results of one are chosen."""
    index, operands = e.operands[0], e.operands[1:]
    branches = e.params["branches"]
    number = known(index)
    if number is not None:
        return closed_walk(branches[min(max(int(number), 0), len(branches) - 1)], operands)
    found = closed_walk(branches[0], operands)
    for k, branch in enumerate(branches[1:], 1):
        here = emit("equal", traced(index), traced(np.asarray(k, traced(index).dtype)))
        if k == len(branches) - 1:
            here = emit("greater_equal", traced(index), traced(np.asarray(k, traced(index).dtype)))
        others = closed_walk(branch, operands)
        found = [select(here, traced(b), traced(a)) for a, b in zip(found, others, strict=True)]
    return found


@rule("scan")
def scan(e: Equation) -> list[Any]:
    """Unrolled where it is short, or a step cannot be one for all; else a loop."""
    length, body = int(e.params["length"]), e.params["jaxpr"]
    size = length * len(body.jaxpr.eqns)
    if size > WRITTEN_OUT:
        try:
            return rolled(e)
        except UnsupportedError:
            if size > MOST_STEPS:
                raise
    consts, carried = scan_counts(e)
    fixed, carry = e.operands[:consts], list(e.operands[consts : consts + carried])
    xs = e.operands[consts + carried :]
    rows: list[list[Any]] = []
    for k in reversed(range(length)) if e.params["reverse"] else range(length):
        found = closed_walk(body, [*fixed, *carry, *[row(x, k) for x in xs]])
        carry = found[:carried]
        rows.append(found[carried:])
    if e.params["reverse"]:
        rows.reverse()
    ys = [stacked([r[k] for r in rows], type) for k, type in enumerate(e.results[carried:])]
    return [*carry, *ys]


def rolled(e: Equation) -> list[Any]:
    """A scan as one ``for``, whose region takes the trip's number, what is carried and the elements of the columns.

    Raises:
        UnsupportedError: a step has no counterpart that is the same in all trips.
    """
    consts, carried = scan_counts(e)
    fixed = e.operands[:consts]
    require_numbers(e, consts)
    given = [traced(x) for x in e.operands[consts:]]
    types = [INDEX, *[x.type for x in given[:carried]], *[x.type.with_shape(x.shape[1:]) for x in given[carried:]]]

    def step(leaves: list[Any]) -> Any:
        return tuple(traced(x) for x in closed_walk(e.params["jaxpr"], [*fixed, *leaves[1:]]))

    specs = [spec_of(type) for type in types]
    one = trace_body(step, specs, specs, [None] * len(specs), e.name)
    lifted = union(one)
    attrs = {
        "trips": int(e.params["length"]),
        "carries": carried,
        "consts": len(lifted),
        "reverse": e.params["reverse"],
    }
    values = [x.read() for x in given]
    region = region_of(one, 1 + carried, lifted)
    return emit_call("for", [*values[:carried], *lifted, *values[carried:]], attrs, (region,))


def require_numbers(e: Equation, consts: int) -> None:
    """Raises: UnsupportedError: what a loop carries or reads row by row holds keys of random numbers."""
    if not all(isinstance(x.aval.dtype, np.dtype) for x in e.source.invars[consts:]):
        raise e.unsupported("a loop that cannot be unrolled carries keys", "use jax.random.key_data of them")


def region_of(one: Traced, front: int, lifted: Sequence[Value]) -> Region:
    """The region of a loop, with a result for each output: two of them may be one value."""
    whole = closed(one, front, lifted)
    return Region(whole.params, whole.operations, [whole.results[place] for place in one.outputs])


def scan_counts(e: Equation) -> tuple[int, int]:
    """How many operands of a scan are the same in each step, and how many it carries from step to step."""
    if "num_consts" in e.params:
        return int(e.params["num_consts"]), int(e.params["num_carry"])
    consts, carried, _ = e.params["ft_in"].unpack()  # since jax 0.12
    return len(consts), len(carried)


def row(x: Any, k: int) -> Any:
    if not isinstance(x, Tracer):
        return np.asarray(x)[k] if isinstance(x.dtype, np.dtype) else x[k]  # keys are no numbers
    starts, limits = [k] + [0] * (x.ndim - 1), [k + 1, *x.shape[1:]]
    return reshaped(part(x, starts, limits), x.shape[1:])


def stacked(values: list[Any], type: Any) -> Any:
    """The results of the steps of a scan, one after the other."""
    if not any(isinstance(value, Tracer) for value in values):
        return np.reshape(np.asarray([np.asarray(value) for value in values], type.dtype), type.shape)
    rows = [reshaped(traced(value), (1, *np.shape(value))) for value in values]
    return emit("concatenate", *rows, axis=0) if len(rows) > 1 else rows[0]


@rule("while")
def while_(e: Equation) -> list[Any]:
    """Unrolled, as long as the condition is known in each step and it is not too long; else a loop."""
    tests = e.params["cond_nconsts"]
    fixed = tests + e.params["body_nconsts"]
    loop = Loop(e, e.operands[:tests], e.operands[tests:fixed])
    given = e.operands[fixed:]
    carry, steps = list(given), 0
    while steps <= MOST_STEPS:
        number = known(loop.going(carry))
        if number is None:
            break
        if not np.any(number):
            return carry
        carry = loop.trip(carry)
        steps += 1 + len(e.params["body_jaxpr"].jaxpr.eqns)
    return loop.operation(given)


class Loop(NamedTuple):
    """The condition and the body of a ``while`` with what they read of outside.

    Under jax's vmap a condition may be an array: the loop goes on while it holds anywhere, and changes what is carried
    where it holds.
    """

    e: Equation
    test: Sequence[Any]
    body: Sequence[Any]

    def going(self, carry: Sequence[Any]) -> Any:
        (found,) = closed_walk(self.e.params["cond_jaxpr"], [*self.test, *carry])
        return found

    def trip(self, carry: Sequence[Any]) -> list[Any]:
        found = closed_walk(self.e.params["body_jaxpr"], [*self.body, *carry])
        if not self.e.params["cond_jaxpr"].out_avals[0].shape:
            return found
        where = traced(self.going(carry))
        dims = tuple(range(where.ndim))
        return [
            select(emit("broadcast", where, shape=old.shape, dims=dims), traced(new), old)
            for new, old in zip(found, map(traced, carry), strict=True)
        ]

    def operation(self, carry: Sequence[Any]) -> list[Tracer]:
        """One ``while``, whose regions are the walks over the condition and the body."""
        require_numbers(self.e, len(self.test) + len(self.body))
        first = [traced(operand) for operand in carry]

        def goes_on(leaves: list[Any]) -> Any:
            found = traced(self.going(leaves))
            return (emit("reduce_or", found, axes=tuple(range(found.ndim))) if found.ndim else found,)

        def goes(leaves: list[Any]) -> Any:
            return tuple(traced(x) for x in self.trip(leaves))

        specs = [spec_of(x.type) for x in first]
        traces = [trace_body(walked, specs, specs, [None] * len(specs), self.e.name) for walked in (goes_on, goes)]
        lifted = union(*traces)
        regions = [region_of(one, len(first), lifted) for one in traces]
        results = emit_call("while", [*[x.read() for x in first], *lifted], {"carries": len(first)}, regions)
        return results[: len(first)]
