"""NumPy ufuncs on traced arrays: promotion, broadcasting, ``out=``, ``where=``, ``reduce``, ``at``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from srcgrad.errors import ArgumentError, DTypeError, MutationError, ShapeError, UnsupportedError
from srcgrad.ir.core import Literal, literal
from srcgrad.ir.errors import nearest_hint
from srcgrad.ir.types import BOOL, INT64, ArrayType, DType
from srcgrad.tracing.affine import combined, decided
from srcgrad.tracing.asked import if_unfollowed, library_function
from srcgrad.tracing.comparing import COMPARISONS, compared_kinds, of_two_signs
from srcgrad.tracing.floating_errors import WHOLE, judged, raised_kinds
from srcgrad.tracing.magnitude import bounded
from srcgrad.tracing.subclasses import array_of
from srcgrad.tracing.tracer import (
    FUNCTIONS,
    SEQUENCES,
    Deferring,
    Tracer,
    as_tracer,
    broadcast_tracer,
    cast_value,
    contains_tracer,
    emit,
    from_value,
)
from srcgrad.tracing.ufunc_loops import ANY, Loop, Request, resolve

ELEMENTWISE: dict[np.ufunc, str] = {}
"""Ufuncs that are one op, by name; the op's operands have the dtype of the ufunc's loop."""

UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
"""Ufuncs that are several ops: a function on broadcast tracers of the loop's dtypes."""

REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
"""``ufunc.reduce`` as a NumPy function; the others are folds."""

UNTRACED: dict[np.ufunc, str] = {np.isnat: "it asks about dates, which are never traced"}
"""Ufuncs that no rule is written for, and why."""


def ufunc_rule(*ufuncs: np.ufunc) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a rule for ufuncs: it is given tracers of one shape, cast to the ufunc's loop."""

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        for ufunc in ufuncs:
            UFUNCS[ufunc] = rule
        return rule

    return register


WEAK_TYPES: dict[str, type] = {"f": float, "c": complex, "i": int}
"""The Python number that a weak tracer of this kind stands for."""


def weak_type(x: Any) -> Any:
    """What NumPy's promotion sees: a dtype, or a Python type for a weak operand."""
    if type(x) in (int, float, complex):
        return type(x)
    if isinstance(x, Tracer):
        if x.weak and x.dtype.kind in WEAK_TYPES:
            return WEAK_TYPES[x.dtype.kind]
        return x.dtype
    if isinstance(x, SEQUENCES) and contains_tracer(x):
        return as_tracer(x).dtype
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else np.asarray(x).dtype


def result_dtype(*operands: Any) -> DType:
    """NumPy 2's promotion of tracers, arrays and numbers."""
    kinds = [weak_type(operand) for operand in operands]
    representative = {int: 0, float: 0.0, complex: 0j}
    return np.result_type(*[representative[kind] if isinstance(kind, type) else kind for kind in kinds])


def operand(x: Any, dtype: DType) -> Tracer:
    """An operand of the ufunc, cast to its loop's dtype; weak numbers become literals of it."""
    if isinstance(x, Tracer):
        return x if x.dtype == dtype else from_value(cast_value(x.read(), dtype), scalar=x.scalar)
    if type(x) in (bool, int, float, complex):
        number = dtype.type(x)
        return from_value(Literal(number, ArrayType(number.dtype)), scalar=True)
    return as_tracer(array_of(x)).astype(dtype, copy=False) if not contains_tracer(x) else as_tracer(x, dtype)


def common_shape(operands: Sequence[Tracer]) -> tuple[int, ...]:
    found: tuple[int, ...] = ()
    for other in operands:
        shape = other.shape
        if shape and shape != found:
            if found:
                break
            found = shape
    else:  # of equal shapes but for numbers, which is nearly always
        return found
    try:
        return np.broadcast_shapes(*[other.shape for other in operands])
    except ValueError:
        shapes = " ".join(str(other.shape) for other in operands)
        raise ShapeError(f"operands could not be broadcast together with shapes {shapes}") from None


def call(ufunc: np.ufunc, *inputs: Any, weak: bool = False, asked: Request = ANY) -> Any:
    """Apply a ufunc; with ``weak`` the result is a Python number's (operators between Python numbers)."""
    name = ELEMENTWISE.get(ufunc)
    rule = None if name is not None else find_rule(ufunc)
    if rule is None and name is None:
        name = ELEMENTWISE[ufunc]
    kinds = tuple([weak_type(x) for x in inputs])
    if asked != ANY:
        return apply_loop(ufunc, name, rule, resolve(ufunc, kinds, asked), inputs, weak)
    if kinds[0] is int and all(kind is int for kind in kinds):  # NumPy would take Python's own unbounded integers
        known = decided(ufunc, inputs) if weak else None
        if known is not None:
            return from_value(literal(known, ArrayType(BOOL)), scalar=True, weak=True)
        found = bounded(
            ufunc, inputs, apply_loop(ufunc, name, rule, resolve(ufunc, (INT64,) * len(kinds)), inputs, weak)
        )
        if weak and isinstance(found, Tracer):
            found.affine = combined(ufunc, inputs)
        return found
    kinds = compared_kinds(kinds, inputs) if ufunc in COMPARISONS else kinds
    return apply_loop(ufunc, name, rule, resolve(ufunc, kinds), inputs, weak)


def apply_loop(
    ufunc: np.ufunc,
    name: str | None,
    rule: Callable[..., Any] | None,
    chosen: Loop,
    inputs: Sequence[Any],
    weak: bool,
) -> Any:
    """A loop of the ufunc, as an op or a rule."""
    loop, results = chosen
    operands = [operand(x, dtype) for x, dtype in zip(inputs, loop, strict=True)]
    shape = common_shape(operands)
    full = [broadcast_tracer(x, shape) for x in operands] if len(operands) > 1 else operands
    if ufunc in COMPARISONS and loop[0] != loop[1]:
        rule = partial(of_two_signs, ufunc)
    found = as_ops(ufunc, name, rule, full)
    if isinstance(found, tuple):
        parts = zip(found, results, strict=True)
        return tuple(finished(part, dtype, weak).like_ufunc(*operands) for part, dtype in parts)
    return finished(found, results[0], weak).like_ufunc(*operands)


def as_ops(ufunc: np.ufunc, name: str | None, rule: Callable[..., Any] | None, operands: Sequence[Tracer]) -> Any:
    """
    Raises:
        UnsupportedError: the ufunc has such a loop, of complex numbers, and its op has not.
    """
    try:
        return emit(name or "", *operands) if rule is None else rule(*operands)
    except DTypeError as error:
        if all(x.dtype.kind != "c" for x in operands):
            raise
        message = f"{ufunc_name(ufunc)} has no derivative rule in srcgrad for complex arguments"
        raise UnsupportedError(message) from error


def finished(result: Tracer, dtype: DType, weak: bool) -> Tracer:
    """A result in its loop's dtype; of rank 0 it is a NumPy scalar."""
    if result.dtype != dtype or result.scalar != (not result.type.shape):
        result = from_value(cast_value(result.read(), dtype), scalar=not result.type.shape)
    result.weak = weak and dtype.kind in "bifc"
    return result


def has_rule(ufunc: np.ufunc) -> bool:
    """Whether a ufunc can be traced; the rules of SciPy's are loaded once SciPy's are."""
    if ufunc not in UFUNCS and ufunc not in ELEMENTWISE and "scipy.special" in sys.modules:
        importlib.import_module("srcgrad.tracing.functions.special")
    return ufunc in UFUNCS or ufunc in ELEMENTWISE


def require_no_objects(ufunc: np.ufunc) -> None:
    """
    Raises:
        UnsupportedError: a ufunc takes objects alone, each for itself.
    """
    if all(set(signature) <= set("O->") for signature in ufunc.types):
        raise UnsupportedError(
            f"{ufunc.__name__} is a ufunc of Python objects, made by np.frompyfunc", hint="use np.vectorize(f)"
        )


def ufunc_name(ufunc: np.ufunc) -> str:
    module = "np" if getattr(np, ufunc.__name__, None) is ufunc else "scipy.special"
    return f"{module}.{ufunc.__name__}"


def find_rule(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """The rule of a ufunc that is several ops; None if it is one op.

    Raises:
        UnsupportedError: there is no rule.
    """
    if has_rule(ufunc):
        return UFUNCS.get(ufunc)
    require_no_objects(ufunc)
    name = ufunc_name(ufunc)
    if ufunc.__name__.startswith("_"):
        name = library_function(ruled=True) or name
    reason = UNTRACED.get(ufunc)
    if reason is not None:
        raise UnsupportedError(f"{name} has no derivative rule in srcgrad: {reason}")
    known = [f"np.{known.__name__}" for known in (*ELEMENTWISE, *UFUNCS) if known.__name__[0] != "_"]
    raise UnsupportedError(f"{name} has no derivative rule in srcgrad", hint=nearest_hint(name, known))


def array_ufunc(self: Tracer, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol: every ufunc call with a tracer among its operands comes here."""
    if any(isinstance(x, Deferring) for x in inputs):
        return NotImplemented
    kinds = raised_kinds()
    if not kinds:
        return applied(ufunc, method, inputs, **kwargs)
    if method not in JUDGED or getattr(np, ufunc.__name__, None) is not ufunc:
        with np.errstate(all="ignore"):
            return applied(ufunc, method, inputs, **kwargs)
    one_by_one = method in ("__call__", "outer")
    name, operands = (ufunc.__name__, inputs) if one_by_one else (method, inputs[:1])
    if method == "outer":
        operands = (from_value(as_tracer(inputs[0]).read())[(..., *[None] * np.ndim(inputs[1]))], inputs[1])
    axis = WHOLE if one_by_one else kwargs.get("axis", 0)
    return judged(
        kinds, ufunc if one_by_one else None, name, operands, lambda: applied(ufunc, method, inputs, **kwargs), axis
    )


JUDGED = frozenset({"__call__", "outer", "reduce", "accumulate"})
"""The ways of calling a ufunc in which floating-point errors may be asked for."""


def applied(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], out: Any = None, **kwargs: Any) -> Any:
    """A ufunc or one of its methods, of tracers."""
    if kwargs:
        from srcgrad.tracing.functions.options import require_options  # of a package that is built on this module

        require_options(ufunc if method == "__call__" else getattr(ufunc, method), kwargs)
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    for name in ("order", "subok"):
        kwargs.pop(name, None)
    outs = out if isinstance(out, tuple) else (out,)
    if method == "__call__" and ufunc in FUNCTIONS:  # np.matmul and the other generalised ufuncs
        casting = kwargs.pop("casting", "same_kind")
        if dtype is not None:
            inputs = tuple(as_tracer(x).astype(dtype) for x in inputs)
        return store(FUNCTIONS[ufunc](*inputs, **kwargs), outs, where, casting)
    if method in ("__call__", "outer"):
        asked = Request.of(ufunc, dtype, kwargs)
        refuse_options(ufunc, kwargs)
        if method == "outer":
            left, right = (from_value(as_tracer(x).read()) for x in inputs)  # arrays: no number is weak
            inputs = (left.reshape(left.shape + (1,) * right.ndim), right)
        return store(call(ufunc, *inputs, asked=asked), outs, where, asked.casting)
    from srcgrad.tracing.ufunc_methods import apply_method  # its rules call NumPy functions, which are built on this

    return apply_method(ufunc, method, inputs, outs, where, dtype, kwargs)


def refuse_options(ufunc: np.ufunc, options: dict[str, Any]) -> None:
    if options:
        raise UnsupportedError(f"np.{ufunc.__name__} with {', '.join(options)}= is not supported on traced arrays")


def store(
    results: Any, outs: tuple[Any, ...], where: Any, casting: str = "same_kind", broadcasts: bool = True
) -> Any:  # fmt: skip
    """Write results into ``out=`` where ``where=`` holds, as NumPy does; return them if there is no ``out``.

    Ufuncs, and functions that end with one, spread a result over a larger output array, others do not.

    Raises:
        ShapeError: the output array is no place for the result.
    """
    if outs and all(target is None for target in outs):
        if where is not True:
            raise UnsupportedError("where= without out= leaves elements undefined", hint="pass out=, or use np.where")
        return results
    values = results if isinstance(results, tuple) else (results,)
    if len(outs) != len(values):
        raise ArgumentError(f"the 'out' tuple must have exactly one entry per output, of which there are {len(values)}")
    written = []
    for value, target in zip(values, outs, strict=True):
        if target is None:
            written.append(value)
            continue
        require_traced_out(target)
        if not broadcasts and target.shape != np.shape(value):
            raise ShapeError(f"output array of shape {target.shape} is not of the result's shape, {np.shape(value)}")
        assign(target, value, where, casting)
        written.append(target)
    return tuple(written) if isinstance(results, tuple) else written[0]


def require_traced_out(target: Any) -> None:
    if not isinstance(target, Tracer):
        raise UnsupportedError(
            "a traced result cannot be written into a concrete ndarray",
            hint=if_unfollowed("make the array inside the function with np.zeros_like(x) or np.empty_like(x)"),
        )


def assign(target: Tracer, value: Any, where: Any = True, casting: str = "same_kind") -> None:
    """``target[...] = value`` with a ufunc's casting rule."""
    value = as_tracer(value)
    if not np.can_cast(value.dtype, target.dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(f"cannot cast the result from {value.dtype} to {target.dtype} with casting rule {casting!r}")
    if where is not True:
        require_mask(where)
        value = np.where(where, value, target)
    value = broadcast_tracer(value, target.shape)
    try:
        target.write(cast_value(value.read(), target.dtype))
    except MutationError:
        raise MutationError("output array is read-only", hint="write into a copy: x = x.copy()") from None


ELEMENTWISE.update(
    {
        np.add: "add",
        np.subtract: "sub",
        np.multiply: "mul",
        np.true_divide: "div",
        np.negative: "neg",
        np.equal: "equal",
        np.not_equal: "not_equal",
        np.less: "less",
        np.less_equal: "less_equal",
        np.greater: "greater",
        np.greater_equal: "greater_equal",
        np.isnan: "is_nan",
        np.isinf: "is_inf",
        np.isfinite: "is_finite",
        np.power: "pow",
        np.floor_divide: "floor_divide",
        np.remainder: "remainder",
        np.fmod: "fmod",
        np.hypot: "hypot",
        np.arctan2: "arctan2",
        np.logaddexp: "logaddexp",
        np.logaddexp2: "logaddexp2",
        np.left_shift: "left_shift",
        np.right_shift: "right_shift",
        np.bitwise_count: "bitwise_count",
        np.gcd: "gcd",
        np.lcm: "lcm",
        np.ldexp: "ldexp",
        np.nextafter: "nextafter",
        np.signbit: "sign_bit",
        np.spacing: "spacing",
        np.fabs: "abs",
        np.sign: "sign",
        np.square: "square",
    }
)
for _name in [
    "exp",
    "expm1",
    "exp2",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arcsin",
    "arccos",
    "arctan",
    "arcsinh",
    "arccosh",
    "arctanh",
    "rint",
]:
    ELEMENTWISE[getattr(np, _name)] = _name


def require_mask(where: Any) -> None:
    """NumPy takes arrays of truth values alone for ``where=``; of a list or a number it makes them.

    Raises:
        DTypeError: it is an array of something else.
    """
    if isinstance(where, (Tracer, np.ndarray)) and where.dtype != np.bool_ and not getattr(where, "weak", False):
        raise DTypeError(
            f"Cannot cast array data from {where.dtype} to bool according to the rule 'safe'",
            hint="where= takes truth values: where=(w != 0)",
        )


def as_bool(x: Tracer) -> Tracer:
    return x if x.dtype == np.bool_ else emit("not_equal", x, as_tracer(np.zeros(x.shape, x.dtype)))


def logical(name: str) -> Callable[..., Any]:
    return lambda *operands: emit(name, *map(as_bool, operands))


def bitwise(name: str) -> Callable[..., Any]:
    """Of booleans it is the logical operation."""
    return lambda *operands: emit(f"{'logical' if operands[0].dtype == np.bool_ else 'bitwise'}_{name}", *operands)


for _name in ("and", "or", "xor", "not"):
    UFUNCS[getattr(np, f"logical_{_name}")] = logical(f"logical_{_name}")
for _ufunc, _name in (
    (np.bitwise_and, "and"),
    (np.bitwise_or, "or"),
    (np.bitwise_xor, "xor"),
    (np.invert, "not"),
):
    UFUNCS[_ufunc] = bitwise(_name)


def extremum(name: str) -> Callable[..., Any]:
    """One op; complex numbers are compared by their real parts, then by their imaginary ones, as NumPy does."""

    def rule(left: Tracer, right: Tracer) -> Any:
        if left.dtype.kind == "b":
            return emit("logical_or" if name == "maximum" else "logical_and", left, right)
        if left.dtype.kind != "c":
            return emit(name, left, right)
        keep = emit("greater_equal" if name == "maximum" else "less_equal", left, right)
        return np.where(keep | np.isnan(left), left, right)

    return rule


def unless(kinds: str, name: str) -> Callable[..., Any]:
    """One op, and the operand itself for dtypes of these kinds."""
    return lambda x: positive(x) if x.dtype.kind in kinds else emit(name, x)


UFUNCS.update(
    {
        np.maximum: extremum("maximum"),
        np.minimum: extremum("minimum"),
        np.conjugate: unless("biuf", "conj"),
        np.absolute: unless("b", "abs"),
        np.floor: unless("biu", "floor"),
        np.ceil: unless("biu", "ceil"),
        np.trunc: unless("biu", "trunc"),
    }
)


@ufunc_rule(np.reciprocal)
def reciprocal(x: Any) -> Any:
    """Of integers, 1.0/x without its fraction, as NumPy computes it: of 0 what is made of infinity."""
    if x.dtype.kind in "iu":
        return emit("reciprocal", x.astype(np.float64)).astype(x.dtype)
    return emit("reciprocal", x)


@ufunc_rule(np.positive)
def positive(x: Tracer) -> Tracer:
    return from_value(x.read(), scalar=x.scalar, weak=x.weak)


@ufunc_rule(np.float_power)
def float_power(left: Tracer, right: Tracer) -> Tracer:
    return emit("pow", left, right)


@ufunc_rule(np.deg2rad, np.radians)
def deg2rad(x: Tracer) -> Any:
    return x * x.dtype.type(np.pi / 180)


@ufunc_rule(np.rad2deg, np.degrees)
def rad2deg(x: Tracer) -> Any:
    return x * x.dtype.type(180 / np.pi)


@ufunc_rule(np.divmod)
def divmod_(left: Tracer, right: Tracer) -> Any:
    """Of whole numbers with one division; a remainder by 0 is 0, and what wraps around comes back."""
    quotient: Any = left // right
    if quotient.dtype.kind not in "iu":
        return quotient, left % right
    return quotient, np.where(right == 0, quotient.dtype.type(0), left - quotient * right)


@ufunc_rule(np.modf)
def modf(x: Tracer) -> Any:
    """The fraction has the sign of x, also where it is 0, as that of an infinite number is."""
    whole: Any = np.trunc(x)
    below, zero = np.signbit(x), x.dtype.type(0)
    fraction = np.where(np.isinf(x), np.where(below, -zero, zero), np.where(below, -(whole - x), x - whole))
    return fraction, whole


@ufunc_rule(np.frexp)
def frexp(x: Tracer) -> Any:
    """The fraction is x itself where x is 0, infinite or nan: the exponent is NumPy's choice there."""
    exponent = emit("frexp_exponent", x)
    return np.where(np.isfinite(x), np.ldexp(x, -exponent), x), exponent


@ufunc_rule(np.copysign)
def copysign(left: Tracer, right: Tracer) -> Any:
    return np.where(np.signbit(left) != np.signbit(right), -left, left)


@ufunc_rule(np.heaviside)
def heaviside(x: Tracer, half: Tracer) -> Any:
    return np.where(x == 0, half, np.where(x < 0, 0.0, np.where(x > 0, 1.0, x)))


@ufunc_rule(np.fmax)
def fmax(left: Tracer, right: Tracer) -> Any:
    return np.where(np.isnan(left), right, np.where(np.isnan(right), left, np.maximum(left, right)))


@ufunc_rule(np.fmin)
def fmin(left: Tracer, right: Tracer) -> Any:
    return np.where(np.isnan(left), right, np.where(np.isnan(right), left, np.minimum(left, right)))
