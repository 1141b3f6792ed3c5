"""Where a derivative is a convention: the operations of a traced program that stand at a kink, a tie, a limit …

A table says for each op at which operands its derivative is a matter of policy (`docs/policies.md` has them all).
`find` runs the program operation by operation and asks the table. What a policy may explain is decided entry by entry:

- A *marked* copy of the program multiplies the tangents of the elements concerned by nan. An entry of its derivative is
  nan where the policy reaches it, and equal to the derivative elsewhere.
- Jumps (a comparison of equal numbers, ``floor`` of an integer) and singular operations (a partial derivative that is
  inf or nan) are followed from the arguments to the outputs by dependence alone: what is masked has no tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srcgrad.backends.numpy.evaluate import evaluate, evaluate_operation
from srcgrad.ir.core import Builder, Function, Literal, Operation, Region, Value, literal
from srcgrad.ir.opdef import REGISTRY, Lin, Op, Tangent, Term, Zero
from srcgrad.ir.source import Span
from srcgrad.ir.transforms.interpret import inline, push_forward
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.types import ArrayType

Mask = NDArray[np.bool_]
Predicate = Callable[..., Any]
"""Given the operands and attributes: a bool array that broadcasts to the first result."""

KINK, TIE, LIMIT, STEP = "kinks", "ties", "limits", "steps"
SINGULAR, SYMMETRIC, DEGENERATE = "singular", "symmetric", "degenerate"
INFINITE, UNDEFINED, STRUCTURAL, RULED = "infinite", "undefined", "structural-zeros", "custom-rules"


class Policy(NamedTuple):
    """What an op's derivative is a matter of, the anchor in docs/policies.md, and where."""

    anchor: str
    where: Predicate


class Point(NamedTuple):
    """An operation that stands at a policy point."""

    anchor: str
    operation: Operation
    mask: Mask
    """Which elements of the first result."""

    @property
    def span(self) -> Span | None:
        return self.operation.span


# --- the table ----------------------------------------------------------------------------------


def zero(x: Any) -> Any:
    return x == 0


def both_zero(x: Any, y: Any) -> Any:
    return (x == 0) & (y == 0)


def same(x: Any, y: Any) -> Any:
    return x == y


def on_branch_cut(y: Any, x: Any) -> Any:
    return (y == 0) & (x <= 0)


def whole(x: Any) -> Any:
    return x == np.round(x)


def multiple(x: Any, y: Any) -> Any:
    return np.fmod(x, y) == 0


def several_extremes(extreme: Any) -> Predicate:
    def where(x: Any, axes: Sequence[int], **_: Any) -> Any:
        best = extreme(x, axis=tuple(axes), keepdims=True)
        return np.sum(x == best, axis=tuple(axes)) > 1

    return where


def zero_slice(x: Any, axes: Sequence[int], **_: Any) -> Any:
    return np.all(x == 0, axis=tuple(axes))


def zero_factor(x: Any, axes: Sequence[int], **_: Any) -> Any:
    return np.any(x == 0, axis=tuple(axes))


def any_zero(x: Any, **_: Any) -> Any:
    return np.any(x == 0)


def equal_neighbours(x: Any, axis: int = -1, **_: Any) -> Any:
    """The sorted elements that have an equal."""
    ordered = np.sort(x, axis=axis)
    equal = np.moveaxis(np.diff(ordered, axis=axis) == 0, axis, 0)
    found = np.zeros(np.moveaxis(ordered, axis, 0).shape, bool)
    found[1:] |= equal
    found[:-1] |= equal
    return np.moveaxis(found, 0, axis)


def has_equal(x: Any, **_: Any) -> Any:
    return np.any(np.diff(np.sort(np.ravel(x))) == 0)


def same_infinity(x: Any, y: Any) -> Any:
    return np.isinf(x) & (x == y)


def always(*_: Any, **__: Any) -> Any:
    return np.True_


CLOSE: Final = 2.0**-40
"""Eigenvalues or singular values this close, relative to the largest, count as equal."""


def equal_eigenvalues(a: Any, *_: Any, **__: Any) -> Any:
    """Per matrix of the stack; the last two axes of the operand are the matrix."""
    values = np.linalg.eigvalsh(a) if is_hermitian(a) else np.linalg.eigvals(a)
    return close_pair(values)


def equal_singular_values(a: Any, *_: Any, **__: Any) -> Any:
    values = np.linalg.svd(a, compute_uv=False)
    small = values[..., -1:] <= CLOSE * np.max(values, axis=-1, keepdims=True, initial=0.0)
    return close_pair(values) | bool(np.any(small))


def singular_matrix(a: Any, *_: Any, **__: Any) -> Any:
    values = np.linalg.svd(a, compute_uv=False)
    return bool(np.any(values[..., -1:] <= CLOSE * np.max(values, axis=-1, keepdims=True, initial=0.0)))


def close_pair(values: Any) -> bool:
    gaps = np.abs(values[..., :, None] - values[..., None, :])
    gaps = gaps + np.where(np.eye(values.shape[-1], dtype=bool), np.inf, 0.0)
    return bool(np.any(gaps <= CLOSE * np.max(np.abs(values), axis=-1, initial=0.0)[..., None, None]))


def is_hermitian(a: Any) -> bool:
    return a.ndim >= 2 and a.shape[-1] == a.shape[-2] and bool(np.all(a == np.conj(np.swapaxes(a, -1, -2))))


COMPARISONS: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

POLICIES: Final[dict[str, Policy]] = {
    "abs": Policy(KINK, zero),
    "hypot": Policy(KINK, both_zero),
    "reduce_norm": Policy(KINK, zero_slice),
    "kinked_sqrt": Policy(KINK, zero),
    "maximum": Policy(TIE, same),
    "minimum": Policy(TIE, same),
    "reduce_max": Policy(TIE, several_extremes(np.max)),
    "reduce_min": Policy(TIE, several_extremes(np.min)),
    "cummax": Policy(TIE, has_equal),
    "cummin": Policy(TIE, has_equal),
    "restarting_cummax": Policy(TIE, lambda x, marks, **attrs: has_equal(x, **attrs)),
    "restarting_cummin": Policy(TIE, lambda x, marks, **attrs: has_equal(x, **attrs)),
    "sort": Policy(TIE, equal_neighbours),
    "argsort": Policy(STEP, has_equal),
    "order_statistics": Policy(TIE, has_equal),
    "order_positions": Policy(STEP, has_equal),
    "partition": Policy(TIE, has_equal),
    "argpartition": Policy(STEP, has_equal),
    "argmax": Policy(STEP, has_equal),
    "argmin": Policy(STEP, has_equal),
    "pow": Policy(LIMIT, lambda x, y: x == 0),
    "integer_pow": Policy(LIMIT, lambda x, **_: x == 0),
    "reduce_prod": Policy(LIMIT, zero_factor),
    "cumprod": Policy(LIMIT, any_zero),
    "sinc": Policy(LIMIT, zero),
    "xlogy": Policy(LIMIT, lambda x, y: x == 0),
    "xlog1py": Policy(LIMIT, lambda x, y: x == 0),
    "logaddexp": Policy(LIMIT, same_infinity),
    "logaddexp2": Policy(LIMIT, same_infinity),
    "det": Policy(LIMIT, singular_matrix),
    "pinv": Policy(LIMIT, singular_matrix),
    "arctan2": Policy(STEP, on_branch_cut),
    "sign": Policy(STEP, zero),
    "slope_of_abs": Policy(STEP, lambda x, **_: x == 0),
    "floor": Policy(STEP, whole),
    "ceil": Policy(STEP, whole),
    "trunc": Policy(STEP, whole),
    "rint": Policy(STEP, lambda x: x - np.floor(x) == 0.5),
    "floor_divide": Policy(STEP, multiple),
    "remainder": Policy(STEP, multiple),
    "fmod": Policy(STEP, multiple),
    "cholesky": Policy(SYMMETRIC, always),
    "eig": Policy(DEGENERATE, equal_eigenvalues),
    "eigvals": Policy(DEGENERATE, equal_eigenvalues),
    "svd": Policy(DEGENERATE, equal_singular_values),
    "svdvals": Policy(DEGENERATE, equal_singular_values),
    **{name: Policy(STEP, same) for name in COMPARISONS},
}
"""op name -> the policy; an op that is not here has none but where its partial derivatives are inf or nan."""

ONE_TRIANGLE: Final = {"eigh": equal_eigenvalues, "eigvalsh": equal_eigenvalues}
"""Ops that read one triangle of a matrix that stands for a Hermitian one, and where they are degenerate too."""

PERMUTING: Final = frozenset({"sort", "order_statistics", "partition"})
"""Ops in which another order of ties has its derivative in other entries."""


# --- running the program ------------------------------------------------------------------------


class Step(NamedTuple):
    """One operation with the numbers it was given and those it gave."""

    operation: Operation
    operands: list[Any]
    results: list[Any]


def flatten_calls(region: Region) -> Function:
    """The program with calls (checkpoints, functions with a rule) replaced by what they compute."""
    builder = Builder()
    arguments = [builder.param(param.type, param.name) for param in region.params]
    return builder.function("flat", emit_flat(builder, region, arguments))


def emit_flat(builder: Builder, region: Region, arguments: Sequence[Value]) -> list[Value]:
    env: dict[Value, Value] = dict(zip(region.params, arguments, strict=True))
    for operation in region.operations:
        builder.span = operation.span
        operands = [value if isinstance(value, Literal) else env[value] for value in operation.operands]
        if operation.regions and getattr(operation.op, "transparent", False):
            results: Sequence[Value] = emit_flat(builder, operation.regions[0], operands)
        else:
            results = builder.emit_operation(operation.op, operands, operation.attrs, operation.regions).results
        env.update(zip(operation.results, results, strict=True))
    return [value if isinstance(value, Literal) else env[value] for value in region.results]


def run(function: Function, arguments: Sequence[Any]) -> list[Step]:
    """The operations in order, as far as the NumPy interpreter has them; what follows an unknown one is left out."""
    env: dict[Value, Any] = dict(zip(function.params, arguments, strict=True))
    steps = []
    for operation in function.operations:
        if operation.op.effect or operation.regions:
            continue
        if any(not isinstance(value, Literal) and value not in env for value in operation.operands):
            continue
        operands = [whole_literal(value) if isinstance(value, Literal) else env[value] for value in operation.operands]
        types = [value.type for value in operation.operands]
        results = evaluate_operation(operation.op, operands, operation.attrs, types)
        env.update(zip(operation.results, results, strict=True))
        steps.append(Step(operation, operands, results))
    return steps


def whole_literal(value: Literal) -> Any:
    return np.full(value.type.static_shape, value.value) if value.splat and value.type.rank else value.value


def find(function: Function, arguments: Sequence[Any]) -> list[Point]:
    """The policy points of a flat program at these arguments."""
    points = []
    for step in run(function, arguments):
        shape = step.operation.results[0].type.static_shape
        policy = POLICIES.get(step.operation.op.name)
        if policy is not None:
            with np.errstate(all="ignore"):
                mask = policy.where(*map(np.asarray, step.operands), **step.operation.attrs)
            if np.any(mask):
                points.append(Point(policy.anchor, step.operation, covering(mask, shape)))
        degenerate = ONE_TRIANGLE.get(step.operation.op.name)
        if degenerate is not None:
            points.append(Point(SYMMETRIC, step.operation, covering(True, shape)))
            if degenerate(*step.operands):
                points.append(Point(DEGENERATE, step.operation, covering(True, shape)))
        mask = singular(step)
        if mask.any():
            points.append(Point(SINGULAR, step.operation, covering(mask, shape)))
    return points


def covering(mask: Any, shape: tuple[int, ...]) -> Mask:
    """The mask in the shape of the result; one that does not fit covers all of it."""
    found: Mask = np.asarray(mask, bool)
    return found if found.shape == shape else np.full(shape, bool(found.any()))


def singular(step: Step) -> Mask:
    """Where the operation's first or second derivative along ones is inf or nan."""
    operation = step.operation
    types = tuple([value.type for value in operation.operands])
    shape = operation.results[0].type.static_shape
    mask = np.zeros(shape, bool)
    if not any(type.differentiable for type in types) or not operation.results[0].type.differentiable:
        return mask
    try:
        program = own_tangents(operation.op, types, tuple(operation.attrs.items()))
        found = evaluate(program, step.operands)
    except (TypeError, ValueError, ArithmeticError):
        return mask
    for array in found:
        if np.shape(array) == shape:
            mask |= ~np.isfinite(array)
    return mask


@lru_cache(512)
def own_tangents(op: Op, types: tuple[ArrayType, ...], attrs: tuple[tuple[str, Any], ...]) -> Function:
    """The first and second derivatives of one operation along ones."""
    inner = Builder()
    emitted = inner.emit_operation(op, [inner.param(type) for type in types], dict(attrs))
    first = along_ones(inner.function(op.name, list(emitted.results)))
    second = along_ones(first)
    builder = Builder()
    params = [builder.param(type) for type in types]
    results = [value for function in (first, second) for value in inline(builder, function, params)]
    return builder.function(op.name, results)


def along_ones(function: Function) -> Function:
    """The tangents of the results for tangents of ones."""
    builder = Builder()
    params = [builder.param(param.type) for param in function.params]
    tangents: list[Tangent] = [
        Lin(literal(1, param.type)) if param.type.differentiable else Zero(param.type) for param in function.params
    ]
    s = Masked(builder)
    _, outgoing = push_forward(builder, s, function, params, tangents)
    return builder.function(function.name, [s.materialise(tangent) for tangent in outgoing])


# --- what a policy reaches ----------------------------------------------------------------------


def marked(function: Function, points: Sequence[Point]) -> Function:
    """The program whose tangents are nan where one of these points is passed."""
    masks: dict[Operation, Mask] = {}
    for point in points:
        masks[point.operation] = masks.get(point.operation, np.False_) | point.mask
    builder = Builder()
    env: dict[Value, Value] = {}
    for param in function.params:
        env[param] = builder.param(param.type, param.name)
    for operation in function.operations:
        builder.span = operation.span
        operands = [value if isinstance(value, Literal) else env[value] for value in operation.operands]
        results: Sequence[Value] = builder.emit_operation(
            operation.op, operands, operation.attrs, operation.regions
        ).results
        if operation in masks:
            results = [with_nan_tangent(builder, value, masks[operation]) for value in results]
        env.update(zip(operation.results, results, strict=True))
    results = [value if isinstance(value, Literal) else env[value] for value in function.results]
    return builder.function(f"{function.name}.marked", results)


def with_nan_tangent(builder: Builder, value: Value, mask: Mask) -> Value:
    """The value, by an operation whose tangent is the value's times nan where the mask is set."""
    type = value.type
    if not type.differentiable:
        return value
    if mask.shape != type.static_shape:
        mask = np.full(type.static_shape, bool(mask.any()))
    body = Builder()
    primal = body.param(type)
    rule = Builder()
    given, tangent = rule.param(type), rule.param(type)
    factor = Term(rule, literal(np.where(mask, np.nan, 1.0), type))
    regions = (body.region([primal]), rule.region([given, (Term(rule, tangent) * factor).value]))
    return builder.emit(REGISTRY["custom_jvp"], [value], {"active": (True,)}, regions)


class Reach(NamedTuple):
    """The parameters that an operation depends on, and the results that depend on it, by number."""

    params: frozenset[int]
    results: frozenset[int]


def reach(function: Function, operation: Operation) -> Reach:
    """By dependence alone. Of a result that nothing uses Python code made a decision: all results depend on it."""
    users: dict[Value, list[Operation]] = {}
    for other in function.operations:
        for value in other.operands:
            if not isinstance(value, Literal):
                users.setdefault(value, []).append(other)
    below = set(operation.results)
    waiting = list(operation.results)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            new = [value for value in user.results if value not in below]
            below.update(new)
            waiting += new
    results = {k for k, value in enumerate(function.results) if value in below}
    if not results:
        results = set(range(len(function.results)))
    above: set[Value] = set()
    pending = [value for value in operation.operands if not isinstance(value, Literal)]
    while pending:
        value = pending.pop()
        if value in above:
            continue
        above.add(value)
        if value.producer is not None:
            pending += [other for other in value.producer.operands if not isinstance(other, Literal)]
    params = {k for k, value in enumerate(function.params) if value in above}
    return Reach(frozenset(params), frozenset(results))
