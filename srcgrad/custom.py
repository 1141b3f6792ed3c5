"""User-defined rules and control of differentiation: custom_jvp, custom_vjp, checkpoint, stop_gradient.

Outside a trace all of them are the function itself. Inside one, the function and its rules are traced into regions of
one operation, so that every transform sees them: the IR never calls Python.
"""

from __future__ import annotations

import functools
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from srcgrad.boundary import checked, described
from srcgrad.cache import PURE_FUNCTIONS
from srcgrad.carried import maps_carried
from srcgrad.differentiate import plural, rebuild, tree_text
from srcgrad.errors import ArgumentError, CustomRuleError, SrcgradError, StructureError
from srcgrad.ir.core import Region, Value, zeros
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import ArrayType
from srcgrad.rule_arguments import Arguments, bind_arguments, nondiff_places
from srcgrad.tracing.conversion.calls import callee, invoke
from srcgrad.tracing.function import LeafSpec, StaticLeaf, Traced, leaf_spec, trace_function
from srcgrad.tracing.pytree import TreeDef, flatten, flatten_up_to, tree_map
from srcgrad.tracing.trace import CURRENT, Trace, current_span
from srcgrad.tracing.tracer import Tracer, as_tracer, emit, from_value
from srcgrad.transformed import global_name

P = ParamSpec("P")
R = TypeVar("R")
Spec = LeafSpec | None
RULE_DEPTH = 4
"""A rule may call its own function: it is traced with that function's rule to this depth, and as itself beyond.

So derivatives of rules that call their own function follow the rules up to this order.
"""
ACTIVE_RULES: ContextVar[tuple[Any, ...]] = ContextVar("srcgrad_rules", default=())


def trace_body(
    call: Callable[[list[Any]], Any], leaves: Sequence[Any], specs: Sequence[Spec], numbers: Sequence[Any], name: str
) -> Traced:
    """Trace a user function for a region of an operation of the trace in progress."""
    nothing = [None] * len(leaves)
    return trace_function(call, leaves, specs, nothing, name=name, concrete=current().concrete, numbers=numbers)


def spec_of(type: ArrayType) -> LeafSpec:
    return LeafSpec(type, not type.shape, False)


def closed(traced: Traced, front: int, lifted: Sequence[Value]) -> Region:
    """The traced function as a region: its first ``front`` inputs, the operation's lifted operands, its other
    inputs.
    """
    params, inputs = traced.function.params, traced.inputs
    own = dict(zip(traced.lifted, params[inputs:], strict=False))
    middle = [own.get(value) or Value(value.type) for value in lifted]
    return Region(
        [*params[:front], *middle, *params[front:inputs]], traced.function.operations, traced.function.results
    )


def union(*bodies: Traced) -> list[Value]:
    """The outer values that any of the bodies closes over."""
    return list(dict.fromkeys(value for body in bodies for value in body.lifted))


class Ruled(ABC, Generic[P, R]):
    """A function with a rule, usable like the function."""

    kind = "custom rule"
    error: type[SrcgradError] = CustomRuleError

    def __new__(cls, *function: Any, **options: Any) -> Any:
        """Without a function, a decorator."""
        return object.__new__(cls) if function or "fun" in options else functools.partial(cls, **options)

    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
    ) -> None:
        if not callable(fun):
            raise self.error(f"{self.kind} takes a function, not {described(fun)}")
        functools.update_wrapper(self, fun)
        self.f = fun
        self.nondiff_argnums = nondiff_places(self.kind, fun, nondiff_argnums, nondiff_argnames)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        """By name where this object is what its module calls so (a decorated function), else by its parts."""
        name = global_name(self)
        if name is not None:
            return name
        return (restore_ruled, (type(self), dict(self.__dict__)))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if CURRENT.get() is None or ACTIVE_RULES.get().count(self.f) >= RULE_DEPTH:
            return invoke(self.f, *args, **kwargs)  # type: ignore[no-any-return]
        result: R = self.apply(args, kwargs)
        return result

    @contextmanager
    def tracing_rule(self) -> Iterator[None]:
        token = ACTIVE_RULES.set((*ACTIVE_RULES.get(), self.f))
        try:
            yield
        finally:
            ACTIVE_RULES.reset(token)

    @abstractmethod
    def apply(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Emit the call with its rule into the trace in progress."""

    @property
    def name(self) -> str:
        return getattr(self.f, "__name__", type(self.f).__name__)

    def trace_primal(self, fixed: list[Any], given: Arguments) -> Traced:
        def call(leaves: list[Any]) -> Any:
            return self.call_plain(self.merge(fixed, given.treedef.unflatten(leaves)))

        return trace_body(call, given.leaves, given.specs, given.numbers, self.name)

    def call_plain(self, args: Sequence[Any]) -> Any:
        return invoke(self.f, *args)

    def split(self, args: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
        """The non-differentiated arguments, and the others."""
        count = len(args)
        if any(not -count <= number < count for number in self.nondiff_argnums):
            raise CustomRuleError(
                f"{self.kind}: nondiff_argnums={self.nondiff_argnums}, but {self.name} was given "
                f"{plural(count, 'argument')}",
                hint="nondiff_argnums counts arguments from 0",
            )
        static = [number % count for number in self.nondiff_argnums]
        fixed = [args[k] for k in static]
        return fixed, tuple(argument for k, argument in enumerate(args) if k not in static)

    def merge(self, fixed: list[Any], rest: Sequence[Any]) -> list[Any]:
        count = len(fixed) + len(rest)
        static = [number % count for number in self.nondiff_argnums]
        given, others = dict(zip(static, fixed, strict=True)), iter(rest)
        return [given[k] if k in given else next(others) for k in range(count)]


def restore_ruled(cls: type[Any], state: dict[str, Any]) -> Any:
    """Unpickle a function with a rule."""
    other = object.__new__(cls)
    other.__dict__.update(state)
    return other


def current() -> Trace:
    trace = CURRENT.get()
    if trace is None:
        raise CustomRuleError("no trace is in progress")
    return trace


def called(rule: Callable[..., Any], arguments: Sequence[Any], what: str) -> Any:
    """Call a user's rule.

    Raises:
        CustomRuleError: it does not take these arguments.
    """
    rule = callee(rule)
    try:
        return rule(*arguments)
    except TypeError as error:
        entry = error.__traceback__
        if isinstance(error, SrcgradError) or entry is None or entry.tb_next is not None:
            raise
        raise CustomRuleError(f"{what} is called with {plural(len(arguments), 'argument')}: {error}") from None


def returned(found: Any) -> str:
    """What a rule returned, in a message."""
    tree = flatten(found)[1]
    return f"a {type(found).__name__}" if tree.kind is None and leaf_spec(found) is None else tree_text(tree)


def emit_call(name: str, operands: Sequence[Value], attrs: dict[str, Any], regions: Sequence[Region]) -> list[Tracer]:
    trace = current()
    trace.builder.span = current_span()
    operation = trace.builder.emit_operation(REGISTRY[name], operands, attrs, regions)
    return [from_value(value, scalar=not value.type.shape) for value in operation.results]


class custom_jvp(Ruled[P, R]):
    """A function with its own forward rule; reverse mode, higher orders and vmap come from the rule.

    Args:
        fun: the function; its arguments and results are pytrees of arrays.
        nondiff_argnums: positions of arguments that are not differentiated; the rule gets them first.
        nondiff_argnames: names of more of them.

    Give the rule with `defjvp`: ``rule(*nondiff, primals, tangents) -> (out, tangent_out)``; it must be linear in the
    tangents (JAX's convention).

    Raises:
        CustomRuleError: at the first differentiation, where there is no rule, it returns something else or it is not
            linear.

    >>> import numpy as np, srcgrad as sg
    >>> @sg.custom_jvp
    ... def log1pexp(x):
    ...     return np.log(1.0 + np.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t * (1.0 - 1.0 / (1.0 + np.exp(x)))
    >>> sg.grad(log1pexp)(1000.0)
    np.float64(1.0)
    """

    kind = "custom_jvp"

    @checked
    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.rules: tuple[Callable[..., Any] | None, ...] = (None,)
        """The rule, or one for each argument."""
        self.by_argument = False

    @checked
    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule ``jvp(*nondiff, primals, tangents) -> (out, tangent_out)``; returns it."""
        if not callable(jvp):
            raise CustomRuleError(f"defjvp takes a function, not {described(jvp)}")
        self.rules, self.by_argument = (jvp,), False
        return jvp

    @checked
    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule per argument: ``jvp(tangent, out, *primals) -> tangent_out``; None is a zero derivative."""
        for rule in jvps:
            if rule is not None and not callable(rule):
                raise CustomRuleError(f"defjvps takes a function or None for each argument, not {described(rule)}")
        if self.nondiff_argnums:
            raise CustomRuleError(
                "defjvps has a rule for every argument, and none for those of nondiff_argnums",
                hint="give one rule with defjvp, which takes these arguments first",
            )
        self.rules, self.by_argument = jvps, True

    def sum_of_rules(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        """The rule that the rules of the arguments make together."""
        out = self(*primals)  # type: ignore[call-arg]
        if len(self.rules) != len(primals):
            raise CustomRuleError(
                f"defjvps gave {self.name} {plural(len(self.rules), 'rule')}, but it has "
                f"{plural(len(primals), 'argument')}",
                hint="give a rule, or None, for each argument",
            )
        given = [(rule, tangent) for rule, tangent in zip(self.rules, tangents, strict=True) if rule is not None]
        parts = [called(rule, (t, out, *primals), f"a rule of {self.name}") for rule, t in given]
        if not parts:
            return out, tree_map(zero_tangent, out)
        return out, functools.reduce(lambda left, right: tree_map(lambda a, b: a + b, left, right), parts)

    @property
    def __srcgrad_static__(self) -> Any:
        return (self.kind, self.nondiff_argnums, self.by_argument)

    @property
    def __srcgrad_wrapped__(self) -> Any:
        return (self.f, *self.rules)

    def __srcgrad_rewrap__(self, f: Callable[..., Any], *rules: Callable[..., Any] | None) -> Any:
        other: Any = type(self)(f, self.nondiff_argnums)
        other.rules, other.by_argument = rules, self.by_argument
        return other

    def apply(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rule = self.sum_of_rules if self.by_argument else self.rules[0]
        if rule is None:
            raise CustomRuleError(
                f"{self.name} is a custom_jvp without a rule", hint=f"@{self.name}.defjvp above the rule"
            )
        fixed, rest = self.split(bind_arguments(self.f, args, kwargs))
        given = Arguments(rest)
        body = self.trace_primal(fixed, given)
        count = len(given.leaves)
        seeds = [given.specs[place] for place in given.places]

        def call(leaves: list[Any]) -> Any:
            tangents: list[Any] = [zero_tangent(leaf) for leaf in leaves[:count]]
            for place, tangent in zip(given.places, leaves[count:], strict=True):
                tangents[place] = tangent
            return self.call_rule(rule, fixed, given.treedef, leaves[:count], tangents, body)

        numbers = [*given.numbers, *[None] * len(seeds)]
        with self.tracing_rule():
            pushed = trace_body(call, [*given.leaves, *seeds], [*given.specs, *seeds], numbers, f"{self.name}.jvp")
        lifted = union(body, pushed)
        front = len(given.values)
        regions = (closed(body, front, lifted), closed(pushed, front, lifted))
        attrs = {"active": (*given.active, *[False] * len(lifted))}
        results = emit_call("custom_jvp", [*given.values, *lifted], attrs, regions)
        return rebuild(body.out_tree, body.outputs, results)

    def call_rule(
        self,
        rule: Callable[..., Any],
        fixed: list[Any],
        treedef: TreeDef,
        primals: list[Any],
        tangents: list[Any],
        traced: Traced,
    ) -> list[Any]:
        """Run the rule; the results' leaves, then a tangent for each."""
        arguments = (*fixed, treedef.unflatten(primals), treedef.unflatten(tangents))
        found = called(rule, arguments, f"the jvp rule of {self.name}")
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise CustomRuleError(
                f"the jvp rule of {self.name} must return (out, tangent_out), not {returned(found)}",
                hint="rule(primals, tangents) -> (out, tangent_out)",
            )
        out, out_tree = flatten(found[0])
        dots, dot_tree = flatten(found[1])
        if not (out_tree.fits(traced.out_tree) and dot_tree.fits(traced.out_tree)):
            raise CustomRuleError(
                f"the jvp rule of {self.name} returns {returned(found[0])} and {returned(found[1])}; "
                f"{self.name} returns {tree_text(traced.out_tree)}",
                hint="the output and its tangent both have the structure of what the function returns",
            )
        positions = [k for k, output in enumerate(traced.outputs) if not isinstance(output, StaticLeaf)]
        types = [traced.function.results[traced.outputs[k]].type for k in positions]
        values = [
            fitted(out[k], type, f"the jvp rule of {self.name}") for k, type in zip(positions, types, strict=True)
        ]
        pushed = [
            fitted(dots[k], type, f"the tangent of {self.name}") for k, type in zip(positions, types, strict=True)
        ]
        return [*values, *pushed]


def zero_tangent(leaf: Any) -> Any:
    return np.zeros_like(leaf) if isinstance(leaf, (Tracer, np.ndarray, np.generic, float, complex, int)) else None


def fitted(value: Any, type: ArrayType, what: str) -> Tracer:
    """A value a rule returned, as the type it must have.

    Raises:
        CustomRuleError: it is no array, its shape differs, or it is complex where a real value is needed.
    """
    if value is None:
        return from_value(zeros(type))
    try:
        tracer = as_tracer(value)
    except SrcgradError:
        raise CustomRuleError(f"{what} gives {returned(value)} where {type} is needed") from None
    if tracer.shape != type.shape or (tracer.dtype.kind == "c" and type.dtype.kind != "c"):
        raise CustomRuleError(f"{what} gives {tracer.type} where {type} is needed", hint="its shape must be the same")
    return tracer if tracer.dtype == type.dtype else tracer.astype(type.dtype)


class custom_vjp(Ruled[P, R]):
    """A function with its own reverse rule; forward mode is the transpose of that rule.

    Args:
        fun: the function; its arguments and results are pytrees of arrays.
        nondiff_argnums: positions of arguments that are not differentiated; ``bwd`` gets them first.
        nondiff_argnames: names of more of them.

    Give the rule with `defvjp`: ``fwd(*args) -> (out, residuals)``, ``bwd(*nondiff, residuals, cotangent) -> tuple``
    with a cotangent (or None) for each differentiated argument (JAX's convention). Residuals are a pytree of arrays and
    of what `vjp` and `linearize` return: ``lambda x: sg.vjp(f, x)`` is a ``fwd``.

    Raises:
        CustomRuleError: at the first differentiation, where there is no rule or it returns something else; in forward
            mode, where ``bwd`` is not linear in the cotangent.

    >>> import numpy as np, srcgrad as sg
    >>> @sg.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    >>> sg.grad(lambda x: 5.0 * clipped(x))(2.0)
    np.float64(1.0)
    """

    kind = "custom_vjp"

    @checked
    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    @checked
    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the rule: ``fwd(*args) -> (out, residuals)`` and ``bwd(*nondiff, residuals, cotangent) -> tuple``."""
        for rule in (fwd, bwd):
            if not callable(rule):
                raise CustomRuleError(f"defvjp takes two functions, fwd and bwd, not {described(rule)}")
        self.fwd, self.bwd = fwd, bwd

    @property
    def __srcgrad_static__(self) -> Any:
        return (self.kind, self.nondiff_argnums)

    @property
    def __srcgrad_wrapped__(self) -> Any:
        return (self.f, self.fwd, self.bwd)

    def __srcgrad_rewrap__(self, f: Callable[..., Any], fwd: Any, bwd: Any) -> Any:
        other: Any = type(self)(f, self.nondiff_argnums)
        other.fwd, other.bwd = fwd, bwd
        return other

    def apply(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise CustomRuleError(f"{self.name} is a custom_vjp without a rule", hint=f"{self.name}.defvjp(fwd, bwd)")
        fixed, rest = self.split(bind_arguments(self.f, args, kwargs))
        given = Arguments(rest)
        body = self.trace_primal(fixed, given)
        with self.tracing_rule():
            forward = trace_body(
                lambda leaves: self.call_forward(fwd, fixed, given.treedef, leaves, body),
                given.leaves,
                given.specs,
                given.numbers,
                f"{self.name}.fwd",
            )
            backward = self.trace_backward(bwd, fixed, given, body, forward)
        lifted = union(body, forward, backward)
        front, count = len(given.values), len(body.function.results)
        forward_region = closed(forward, front, lifted)
        carried = forward_region.params[front:]
        forward_region = Region(forward_region.params, forward_region.operations, [*forward_region.results, *carried])
        residuals = len(forward.function.results) - count
        attrs = {
            "active": (*given.active, *[False] * len(lifted)),
            "outputs": tuple(result.type.differentiable for result in body.function.results),
        }
        regions = (closed(body, front, lifted), forward_region, closed(backward, residuals, lifted))
        results = emit_call("custom_vjp", [*given.values, *lifted], attrs, regions)
        return rebuild(body.out_tree, body.outputs, results)

    def call_forward(
        self, fwd: Callable[..., Any], fixed: list[Any], treedef: TreeDef, given: list[Any], traced: Traced
    ) -> Any:
        found = called(fwd, self.merge(fixed, treedef.unflatten(given)), f"fwd of {self.name}")
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise CustomRuleError(
                f"fwd of {self.name} must return (out, residuals), not {returned(found)}",
                hint="return (out, None) where bwd needs nothing",
            )
        out, tree = flatten(found[0])
        if not tree.fits(traced.out_tree):
            raise CustomRuleError(
                f"fwd of {self.name} returns the output {returned(found[0])}; "
                f"{self.name} returns {tree_text(traced.out_tree)}",
                hint="fwd(*args) -> (out, residuals)",
            )
        values = [
            fitted(out[k], traced.function.results[output].type, f"fwd of {self.name}")
            for k, output in enumerate(traced.outputs)
            if not isinstance(output, StaticLeaf)
        ]
        return values, maps_carried(found[1])

    def trace_backward(
        self, bwd: Callable[..., Any], fixed: list[Any], given: Arguments, body: Traced, forward: Traced
    ) -> Traced:
        """Trace ``bwd`` on the residuals that fwd gave and a cotangent of each differentiable result."""
        count = len(body.function.results)
        tree = forward.out_tree.children[1]
        outputs = forward.outputs[forward.out_tree.children[0].num_leaves :]
        arrays = forward.function.results[count:]
        specs = [spec_of(value.type) for value in arrays]
        specs += [spec_of(result.type) for result in body.function.results if result.type.differentiable]
        numbers = [*forward.numbers[count:], *[None] * (len(specs) - len(arrays))]

        def call(leaves: list[Any]) -> list[Tracer]:
            kept = [o.value if isinstance(o, StaticLeaf) else leaves[o - count] for o in outputs]
            incoming = iter(leaves[len(arrays) :])
            cotangents = [
                None
                if isinstance(output, StaticLeaf) or not body.function.results[output].type.differentiable
                else next(incoming)
                for output in body.outputs
            ]
            arguments = (*fixed, tree.unflatten(kept), body.out_tree.unflatten(cotangents))
            found = called(bwd, arguments, f"bwd of {self.name}")
            return self.pulled(found, given)

        return trace_body(call, specs, specs, numbers, f"{self.name}.bwd")

    def pulled(self, found: Any, given: Arguments) -> list[Tracer]:
        """What ``bwd`` returned, as one cotangent per differentiable leaf of the arguments."""
        trees = given.treedef.children
        if not isinstance(found, (tuple, list)) or len(found) != len(trees):
            raise CustomRuleError(
                f"bwd of {self.name} must return a tuple of {plural(len(trees), 'cotangent')}, one per argument, not "
                f"{returned(found)}",
                hint="bwd(residuals, cotangent) -> (ct,); None stands for zero",
            )
        leaves: list[Any] = []
        for position, (cotangent, tree) in enumerate(zip(found, trees, strict=True)):
            try:
                leaves += flatten_up_to(tree, cotangent, absent=True)
            except StructureError as error:
                what = f"bwd of {self.name}: the cotangent of argument {position}"
                raise CustomRuleError(f"{what}: {error.message}", hint="give it the argument's containers") from None
        types = [spec.type for spec in (given.specs[place] for place in given.places) if spec is not None]
        return [
            fitted(leaves[place], type, f"bwd of {self.name}") for place, type in zip(given.places, types, strict=True)
        ]


class Checkpointed(Ruled[P, R]):
    """What `checkpoint` returns."""

    kind = "checkpoint"
    error = ArgumentError

    @property
    def __srcgrad_static__(self) -> Any:
        return (self.kind,)

    @property
    def __srcgrad_wrapped__(self) -> Any:
        return self.f

    def __srcgrad_rewrap__(self, f: Callable[..., Any]) -> Any:
        return type(self)(f)

    def apply(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves, treedef = flatten((args, kwargs))
        given = Arguments((leaves,))

        def call(values: list[Any]) -> Any:
            positional, keywords = treedef.unflatten(values)
            return invoke(self.f, *positional, **keywords)

        body = trace_body(call, given.leaves, given.specs, given.numbers, self.name)
        lifted = union(body)
        results = emit_call("checkpoint", [*given.values, *lifted], {}, (closed(body, len(given.values), lifted),))
        return rebuild(body.out_tree, body.outputs, results)


@overload
def checkpoint(f: Callable[P, R]) -> Callable[P, R]: ...
@overload
def checkpoint() -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@checked
def checkpoint(f: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Differentiate ``f`` without keeping its intermediate values: the reverse pass computes them again.

    Args:
        f: a function of pytrees of arrays; used as a decorator, with or without parentheses, or as ``checkpoint(f)``.

    Memory falls from all of ``f``'s intermediates to its arguments, time grows by one evaluation of ``f``
    (Griewank and Walther, Evaluating Derivatives, chapter 12).

    >>> import numpy as np, srcgrad as sg
    >>> sg.grad(lambda x: np.sin(sg.checkpoint(np.exp)(x)))(0.0)
    np.float64(0.5403023058681398)
    """
    return checkpoint if f is None else Checkpointed(f)


def stop_gradient(x: Any) -> Any:
    """The same values, as constants: their derivatives are structural zeros.

    Args:
        x: a pytree; leaves that are not floating or complex are returned as they are.

    >>> import srcgrad as sg
    >>> sg.grad(lambda x: x * sg.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return tree_map(
        lambda leaf: (
            from_value(emit("stop_gradient", leaf).read(), leaf.scalar, leaf.weak) if isinstance(leaf, Tracer) else leaf
        ),
        x,
    )


PURE_FUNCTIONS.update({checkpoint, custom_jvp, custom_vjp, stop_gradient})
