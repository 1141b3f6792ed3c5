"""The table of rules, and what a rule is given: one equation of a jaxpr with its operands."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from srcgrad.errors import SrcgradError, UnsupportedError
from srcgrad.ir.source import Span
from srcgrad.tracing.tracer import Tracer, as_tracer, broadcast_tracer, emit, from_value

RuleT = TypeVar("RuleT", bound=Callable[..., Any])


class Equation(NamedTuple):
    """One equation: its primitive's parameters, the operands, and the types of its results."""

    name: str
    params: dict[str, Any]
    operands: list[Any]
    """Tracers where something is traced, else the arrays themselves."""
    results: list[Any]
    """The results' types, as jax has them."""
    source: Any
    """jax's equation."""

    @property
    def x(self) -> Tracer:
        """The first operand."""
        return traced(self.operands[0])

    @property
    def tracers(self) -> list[Tracer]:
        return [traced(operand) for operand in self.operands]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return tuple(self.results[0].shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the first result."""
        return dtype_of(self.results[0])

    def unsupported(self, what: str, hint: str) -> SrcgradError:
        """The error of an equation that cannot be translated, at the user's line that made it."""
        return UnsupportedError(f"from_jax: {what}", span=user_line(self.source), hint=hint)


Rule = Callable[[Equation], Any]
RULES: Final[dict[str, Rule]] = {}
"""jax primitive -> the rule that gives its result, or a list of its results."""


def rule(*names: str) -> Callable[[RuleT], RuleT]:
    """Register the rule of primitives."""

    def register(function: RuleT) -> RuleT:
        for name in names:
            RULES[name] = function
        return function

    return register


def traced(value: Any) -> Tracer:
    """An operand as a tracer of exactly its dtype, with no memory of being a Python number."""
    tracer = as_tracer(value if isinstance(value, Tracer) else np.asarray(value))
    return from_value(tracer.read(), scalar=not tracer.shape)


def known(value: Any) -> Any:
    """The number of an operand where it is known while tracing, else None."""
    return traced(value).number() if isinstance(value, Tracer) else np.asarray(value)


def broadcast(x: Tracer, shape: Sequence[int]) -> Tracer:
    """``x``, broadcast to a shape."""
    return broadcast_tracer(x, tuple(shape))


def reshaped(x: Tracer, shape: Sequence[int]) -> Tracer:
    """The elements in C order, in another shape."""
    return x if x.shape == tuple(shape) else emit("reshape", x, shape=sizes(shape))


def permuted(x: Tracer, perm: Iterable[Any]) -> Tracer:
    """Result axis i is operand axis ``perm[i]``."""
    axes = sizes(perm)
    return x if axes == tuple(range(x.ndim)) else emit("transpose", x, perm=axes)


def dtype_of(type: Any) -> np.dtype[Any]:
    """The dtype of an abstract value of jax."""
    found: np.dtype[Any] = np.dtype(type.dtype)
    return found


def struct(shape: Any, dtype: Any, weak: bool = False) -> Any:
    """A type for jax to trace with."""
    import jax

    make: Any = jax.ShapeDtypeStruct
    return make(shape, dtype, weak_type=weak)


def sizes(numbers: Iterable[Any]) -> tuple[int, ...]:
    """Sizes or axes as ints: jax mixes in NumPy integers."""
    return tuple([int(number) for number in numbers])


def filled(value: Any, shape: Sequence[int], dtype: Any) -> Tracer:
    """A constant array."""
    return broadcast(traced(np.asarray(value).astype(dtype)), shape)


def select(predicate: Tracer, true: Tracer, false: Tracer) -> Tracer:
    """``true`` where the predicate holds; all of one shape, or a predicate of rank 0."""
    return emit("select", predicate, true, false)


def size_of(shape: Sequence[int]) -> int:
    return math.prod(shape)


def user_line(equation: Any) -> Span | None:
    """The user's line in which jax recorded an equation, as far as jax tells."""
    try:
        tools = importlib.import_module("jax._src.source_info_util")
        frame = tools.user_frame(equation.source_info.traceback)
        return None if frame is None else Span.at(frame.file_name, int(frame.start_line))
    except (ImportError, AttributeError, TypeError):  # not part of jax's public interface
        return None
