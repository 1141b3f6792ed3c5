"""How the rules of NumPy's functions are registered, and how they read their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from srcgrad.errors import AxisError, DTypeError, ShapeError, UnsupportedError
from srcgrad.ir.types import DType, dtype_name
from srcgrad.tracing.functions.options import asking_numpy
from srcgrad.tracing.trace import current_trace
from srcgrad.tracing.tracer import FUNCTIONS, METHODS, SEQUENCES, Tracer, as_tracer, cast_value, from_value
from srcgrad.tracing.ufuncs import store

Rule = TypeVar("Rule", bound=Callable[..., Any])
Shape = tuple[int, ...]


def find_function(name: str) -> Callable[..., Any] | None:
    """``np.<name>``, or None where this NumPy has no such function."""
    owner: Any = np
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner  # type: ignore[no-any-return]


def numpy_rule(*names: str, method: str | None = None) -> Callable[[Rule], Rule]:
    """Register a rule for NumPy functions, given by their names after ``np.``, and for an ndarray method.

    The rule has NumPy's own signature. Names that this NumPy lacks are left out. Options that NumPy refuses whatever
    the array are refused before the rule runs.
    """

    def register(rule: Rule) -> Rule:
        for name in names:
            function = find_function(name)
            if function is not None:
                FUNCTIONS[function] = asking_numpy(function, rule)
        if method is not None:
            METHODS[method] = asking_numpy(getattr(np, method), rule) if hasattr(np, method) else rule
        return rule

    return register


def method_rule(name: str) -> Callable[[Rule], Rule]:
    """Register an ndarray method whose signature is not the function's."""
    return numpy_rule(method=name)


def given(value: Any, default: Any) -> Any:
    """An argument, or its default where NumPy passes its marker for "no value"."""
    return default if value is np._NoValue else value


def refuse(function: str, **options: tuple[Any, Any]) -> None:
    """Refuse options that differ from their default: ``refuse("np.sort", order=(order, None))``."""
    for name, (value, default) in options.items():
        if value is not default and value is not np._NoValue:
            shown = f"{name}=" if isinstance(value, (np.ndarray, Tracer)) else f"{name}={value!r}"
            raise UnsupportedError(
                f"{function} with {shown} is not supported on traced arrays", hint=f"leave {name} out"
            )


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that ``axis=`` names, not negative, in increasing order; all of them for None.

    Raises:
        AxisError: one is out of bounds or named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(ordered_axes(axis, ndim)))


def reduced_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """As `axes_of`; ``axis=0`` and ``axis=-1`` of a 0-d array are no error in NumPy's reductions."""
    refuse_list(axis)
    if not ndim and isinstance(axis, (int, np.integer)) and axis in (0, -1):
        return ()
    return axes_of(axis, ndim)


def refuse_list(axis: Any) -> None:
    """NumPy's reductions take tuples of axes alone, other functions take lists too."""
    if isinstance(axis, list):
        raise DTypeError("axis= takes an integer or a tuple of integers, not a list")


def ordered_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that ``axis=`` names, not negative, in the order given."""
    try:
        return tuple(normalize_axis_tuple(axis, ndim))
    except np.exceptions.AxisError as error:
        raise AxisError(str(error)) from None
    except ValueError as error:
        raise AxisError(str(error)) from None


def axis_of(axis: Any, ndim: int) -> int:
    """One axis, not negative."""
    return ordered_axes(axis, ndim)[0]


def along_axis(x: Any, axis: Any) -> tuple[Any, int]:
    """The array and the axis, not negative, that NumPy means: all elements for None, and rank 0 is one element."""
    if axis is None:
        x, axis = x.ravel(), 0
    elif not x.ndim:
        x = x.ravel()
    return x, axis_of(axis, x.ndim)


def finish(result: Any, out: Any = None, broadcasts: bool = False) -> Any:
    """The result, written into ``out=`` if there is one, which may be larger where the result ``broadcasts``."""
    return store(result, out if isinstance(out, tuple) else (out,), True, broadcasts=broadcasts)


def require(predicate: Any, kind: str, message: str) -> None:
    """Raise NumPy's error when the program runs and the predicate does not hold, or at once where that is known."""
    from srcgrad.tracing.conversion.effects import emit_check  # which is written with the modules of tracing

    emit_check(predicate, kind, message)


def require_cast(dtype: DType, target: Any, casting: Any = "safe") -> None:
    """Refuse what NumPy's C code refuses to cast, where a rule's own cast would drop a part.

    Raises:
        DTypeError: the casting rule does not allow it.
    """
    if not np.can_cast(dtype, target, casting):
        target = np.dtype(target)
        raise DTypeError(f"Cannot cast array data from {dtype} to {target} according to the rule {casting!r}")


def cast(x: Any, dtype: Any) -> Any:
    """The value in another dtype; the same object if it has it."""
    x = as_tracer(x)
    target = np.dtype(dtype)
    return x if x.dtype == target and not x.weak else from_value(cast_value(x.read(), target), scalar=x.scalar)


def filled(shape: Shape, value: Any, dtype: Any) -> Tracer:
    """A new array of one number."""
    dtype_name(np.dtype(dtype))
    scalar = np.asarray(value, dtype)[()]
    return from_value(current_trace().constant(np.broadcast_to(scalar, shape) if shape else scalar))


def scalar_if_rank0(x: Any) -> Any:
    """A 0-d array as the NumPy scalar that reductions return."""
    return from_value(x.read(), scalar=True) if not x.ndim and not x.scalar else x


def as_array(x: Any) -> Any:
    """A NumPy scalar as the 0-d array that shape functions make of it."""
    x = as_tracer(x)
    return from_value(x.read()) if x.scalar else x


def concrete_array(x: Any, what: str) -> Any:
    """An argument whose numbers decide structure, as a concrete array.

    Raises:
        NeedsConcrete: it is traced, in an abstract trace.
    """
    if isinstance(x, Tracer):
        return np.asarray(x.concrete(what))
    if isinstance(x, SEQUENCES):
        return np.asarray([concrete_array(item, what) for item in x]) if x else np.asarray(x)
    return np.asarray(x)


def known_nonzeros(x: Tracer, what: str) -> Any:
    """Which elements are not 0, as a concrete array: a mask, so that a path serves all calls with the same zeros.

    Raises:
        NeedsConcrete: they are not known, in an abstract trace.
    """
    number: Any = x.number()
    found: Any = x != 0 if number is None else np.asarray(number) != 0
    return np.asarray(found.concrete(what) if isinstance(found, Tracer) else found)


def inexact_dtype(dtype: DType) -> DType:
    """The dtype in which means and the like are computed: float64 for integers."""
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def prefix(axis: int, *index: Any) -> tuple[Any, ...]:
    """An index of one axis: ``x[:, :, index]`` for axis 2."""
    return (slice(None),) * axis + index


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(f"operands could not be broadcast together with shapes {' '.join(map(str, shapes))}") from None


def function_rule(*functions: Callable[..., Any]) -> Callable[[Rule], Rule]:
    """Register a rule for functions that do not dispatch on their arguments: it is found by the function called."""

    def register(rule: Rule) -> Rule:
        for function in functions:
            FUNCTIONS[function] = rule
        return rule

    return register
