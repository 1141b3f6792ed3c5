"""NumPy ufuncs on traced arrays: promotion, broadcasting, ``out=``, ``where=``, ``reduce``, ``at``; the operators."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from srcgrad.errors import DTypeError, ShapeError, UnsupportedError
from srcgrad.ir.core import Literal, literal
from srcgrad.ir.errors import nearest_hint
from srcgrad.ir.types import BOOL, INT64, ArrayType, DType
from srcgrad.tracing.affine import combined, decided
from srcgrad.tracing.asked import library_function
from srcgrad.tracing.comparing import COMPARISONS, compared_kinds, of_two_signs
from srcgrad.tracing.doubts import require_number
from srcgrad.tracing.jax_arrays import is_jax_array
from srcgrad.tracing.magnitude import COUNTING, bounded, counted
from srcgrad.tracing.subclasses import array_of
from srcgrad.tracing.trace import CURRENT
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
    if rule is None:
        return finished(emit(name or "", *full), results[0], weak).like_ufunc(*operands)
    found = rule(*full)
    if isinstance(found, tuple):
        parts = zip(found, results, strict=True)
        return tuple(finished(part, dtype, weak).like_ufunc(*operands) for part, dtype in parts)
    return finished(found, results[0], weak).like_ufunc(*operands)


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


def find_rule(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """The rule of a ufunc that is several ops; None if it is one op.

    Raises:
        UnsupportedError: there is no rule.
    """
    if has_rule(ufunc):
        return UFUNCS.get(ufunc)
    require_no_objects(ufunc)
    module = "np" if getattr(np, ufunc.__name__, None) is ufunc else "scipy.special"
    name = f"{module}.{ufunc.__name__}"
    if ufunc.__name__.startswith("_"):
        name = library_function(ruled=True) or name
    reason = UNTRACED.get(ufunc)
    if reason is not None:
        raise UnsupportedError(f"{name} has no derivative rule in srcgrad: {reason}")
    known = [f"np.{known.__name__}" for known in (*ELEMENTWISE, *UFUNCS) if known.__name__[0] != "_"]
    raise UnsupportedError(f"{name} has no derivative rule in srcgrad", hint=nearest_hint(name, known))


def array_ufunc(self: Tracer, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
    """NumPy's protocol: every ufunc call with a tracer among its operands comes here."""
    if any(isinstance(x, Deferring) for x in inputs):
        return NotImplemented
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


def store(results: Any, outs: tuple[Any, ...], where: Any, casting: str = "same_kind") -> Any:
    """Write results into ``out=`` where ``where=`` holds, as NumPy does; return them if there is no ``out``."""
    if all(target is None for target in outs):
        if where is not True:
            raise UnsupportedError("where= without out= leaves elements undefined", hint="pass out=, or use np.where")
        return results
    values = results if isinstance(results, tuple) else (results,)
    written = []
    for value, target in zip(values, outs, strict=True):
        if target is None:
            written.append(value)
            continue
        require_traced_out(target)
        assign(target, value, where, casting)
        written.append(target)
    return tuple(written) if isinstance(results, tuple) else written[0]


def require_traced_out(target: Any) -> None:
    if not isinstance(target, Tracer):
        raise UnsupportedError(
            "a traced result cannot be written into a concrete ndarray",
            hint="make the array inside the function with np.zeros_like(x) or np.empty_like(x)",
        )


def assign(target: Tracer, value: Any, where: Any = True, casting: str = "same_kind") -> None:
    """``target[...] = value`` with a ufunc's casting rule."""
    value = as_tracer(value)
    if not np.can_cast(value.dtype, target.dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(f"cannot cast the result from {value.dtype} to {target.dtype} with casting rule {casting!r}")
    if where is not True:
        value = np.where(where, value, target)
    value = broadcast_tracer(value, target.shape)
    target.write(cast_value(value.read(), target.dtype))


# --- operators -------------------------------------------------------------------------------------------------------

BINARY: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
COMPARE: dict[str, np.ufunc] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
UNARY: dict[str, np.ufunc] = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def binary(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """An operator: between Python numbers the result stays one."""
    if ufunc is np.matmul and not isinstance(right, Deferring):
        return FUNCTIONS[np.matmul](left, right)
    for other in (left, right):
        if not isinstance(other, Tracer) and not is_operand(other):
            return no_operand(ufunc, left, right, other)
    weak = is_weak(left) and is_weak(right)
    if weak and ufunc in COUNTING:
        left, right = counted(left), counted(right)
    if ufunc is np.power and type(right) is int and not isinstance(left, int):
        found = integer_power(left, right, weak)
    else:
        found = call(ufunc, left, right, weak=weak)
    return in_a_try(ufunc, left, right, found) if weak and ufunc in FAILING else found


FAILING = frozenset({np.true_divide, np.floor_divide, np.remainder, np.power})
"""The operators that raise errors of arithmetic between Python's numbers."""


def in_a_try(ufunc: np.ufunc, left: Any, right: Any, found: Any) -> Any:
    """What an operator gives, where a ``try`` may handle what Python raises instead."""
    trace = CURRENT.get()
    if trace is None or not trace.catching:
        return found
    from srcgrad.tracing.conversion.arithmetic import of_operator  # which is built on the operators

    return of_operator(ufunc, left, right, found)


NO_OPERANDS = (str, bytes, type(None), dict, set, type, FunctionType)


def no_operand(ufunc: np.ufunc, left: Any, right: Any, other: Any) -> Any:
    """What an operator makes of an object that is no number: its class may know the operation.

    Raises:
        UnsupportedError: it is one of Python's own that does not.
    """
    if not isinstance(other, NO_OPERANDS):
        return NotImplemented
    if ufunc in (np.equal, np.not_equal):  # of an array, NumPy compares each element: no number is None or a text
        array = right if left is other else left
        return NotImplemented if array.scalar else np.full_like(array, ufunc is np.not_equal, dtype=bool)
    texts = [str(x.type) if isinstance(x, Tracer) else type(x).__name__ for x in (left, right)]
    raise UnsupportedError(f"unsupported operands of {ufunc.__name__}: {' and '.join(texts)}")


def is_weak(x: Any) -> bool:
    return x.weak if isinstance(x, Tracer) else type(x) in (bool, int, float, complex)


def is_operand(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, np.generic, np.ndarray, list, tuple)) or is_jax_array(x)


def integer_power(base: Tracer, exponent: int, weak: bool) -> Any:
    """``x ** n`` for a Python int: exact at 0 to all orders, and defined for negative bases."""
    if base.dtype.kind in "fc" and (abs(exponent) < 2**31):
        return finished(emit("integer_pow", base, y=exponent), base.dtype, weak)
    if exponent == 2 and base.dtype.kind == "b" and not base.scalar:  # which NumPy squares, in int8
        return call(np.square, base)
    return call(np.power, base, exponent, weak=weak)


def in_place(ufunc: np.ufunc, target: Tracer, value: Any) -> Any:
    """``x += y``: a new value for a scalar, a write for an array."""
    require_number(target)
    result = binary(ufunc, target, value)
    if target.scalar or result is NotImplemented:
        return result
    if result.shape != target.shape:
        raise ShapeError(f"non-broadcastable output operand with shape {target.shape}: the result has {result.shape}")
    assign(target, result)
    return target


def install_operators() -> None:
    """Give `Tracer` its operators: each is its ufunc."""

    def forward(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
        return lambda self, other: binary(ufunc, self, other)

    def reflected(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
        return lambda self, other: binary(ufunc, other, self)

    def augmented(ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
        return lambda self, other: in_place(ufunc, self, other)

    def unary(ufunc: np.ufunc) -> Callable[[Tracer], Any]:
        return lambda self: call(ufunc, counted(self) if self.weak else self, weak=self.weak)

    for name, ufunc in BINARY.items():
        setattr(Tracer, f"__{name}__", forward(ufunc))
        setattr(Tracer, f"__r{name}__", reflected(ufunc))
        setattr(Tracer, f"__i{name}__", augmented(ufunc))
    for name, ufunc in COMPARE.items():
        setattr(Tracer, f"__{name}__", forward(ufunc))
    for name, ufunc in UNARY.items():
        setattr(Tracer, f"__{name}__", unary(ufunc))
    others: dict[str, Callable[..., Any]] = {
        "__divmod__": lambda self, other: (self // other, self % other),
        "__rdivmod__": lambda self, other: (other // self, other % self),
        "__round__": rounded,
        "__array_ufunc__": array_ufunc,
    }
    for name, method in others.items():
        setattr(Tracer, name, method)
    Tracer.__hash__ = None  # type: ignore[assignment]


def rounded(self: Tracer, digits: int | None = None) -> Any:
    """The builtin ``round``: an integer without ``digits``."""
    if digits is None:
        if self.scalar:
            from srcgrad.tracing.conversion.numbers import require_finite  # which is built on the operators

            require_finite(self)
        return np.rint(self).astype(np.int64)
    result: Any = np.round(self, digits)
    return from_value(result.read(), scalar=True, weak=True) if self.weak else result


install_operators()

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
