"""The walk over a jaxpr: what is known is evaluated by jax itself, what is traced goes through the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.errors import InternalError
from srcgrad.jaxprs.elementwise import converted
from srcgrad.jaxprs.table import RULES, Equation
from srcgrad.tracing.tracer import Tracer

HOLDS_PROGRAMS = frozenset(
    {
        "jit", "pjit", "closed_call", "core_call", "core_closed_call", "xla_call", "named_call", "eval_jaxpr",
        "platform_index", "stop_gradient", "copy_p",
    }
)  # fmt: skip
"""Primitives that go through the table even where all is known: what they hold may be known in part."""


def walk(jaxpr: Any, consts: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    """The results of a jaxpr: tracers, or jax and NumPy arrays where they are known."""
    import jax.extend.core

    env: dict[Any, Any] = {}
    env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, operands, strict=True))

    def read(atom: Any) -> Any:
        if isinstance(atom, jax.extend.core.Literal):
            return np.asarray(atom.val, getattr(atom.aval, "dtype", None))
        return env[atom]

    for equation in jaxpr.eqns:
        given = [read(atom) for atom in equation.invars]
        results = apply(equation, given)
        env.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def apply(equation: Any, operands: list[Any]) -> list[Any]:
    """The results of one equation."""
    name = equation.primitive.name
    types = [value.aval for value in equation.outvars]
    e = Equation(name, equation.params, operands, types, equation)
    if name not in HOLDS_PROGRAMS and not any(isinstance(value, Tracer) for value in operands):
        return evaluated(equation, operands)
    found = RULES.get(name)
    if found is None:
        raise e.unsupported(
            f"the jax primitive {name} has no counterpart in srcgrad",
            "write this part in NumPy, or differentiate with jax around srcgrad.to_jax",
        )
    results = found(e)
    listed = list(results) if isinstance(results, (list, tuple)) else [results]
    return [fitted(e, value, type) for value, type in zip(listed, types, strict=True)]


def fitted(e: Equation, value: Any, type: Any) -> Any:
    """A result with the dtype that jax gives it."""
    if not isinstance(value, Tracer):
        return value
    if value.shape != tuple(type.shape):
        raise InternalError(f"from_jax: {e.name} gives {value.type}, where jax has {type}")
    return value if value.dtype == type.dtype else converted(value, np.dtype(type.dtype))


def single(equation: Any) -> Callable[..., list[Any]]:
    """One equation as a jax function."""

    def call(*operands: Any) -> list[Any]:
        bound = equation.primitive.get_bind_params(equation.params)
        functions, params = bound if isinstance(bound, tuple) else ((), bound)
        found = equation.primitive.bind(*functions, *operands, **params)
        return list(found) if equation.primitive.multiple_results else [found]

    return call


def evaluated(equation: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of an equation all of whose operands are known."""
    import jax

    with jax.ensure_compile_time_eval():
        return single(equation)(*operands)
