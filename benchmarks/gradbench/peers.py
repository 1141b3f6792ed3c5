"""The evals for HIPS autograd and jax: the same source with their modules in NumPy's place.

Both have no assignment to an element, so they gather instead; where jax would compile hundreds of unrolled steps, it is
given its own loop.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gradbench import evals

Function = Callable[..., Any]


def rebound(f: Function, **names: Any) -> Function:
    """The same code with other globals."""
    code: Any = f.__code__
    return types.FunctionType(code, {**vars(evals), **names}, f.__name__)


def gathering(module: Any) -> Function:
    """`evals.strict_lower` without an assignment."""

    def strict_lower(values: Any, size: int) -> Any:
        columns, rows = np.triu_indices(size, 1)
        places, below = np.zeros((size, size), dtype=int), np.zeros((size, size))
        places[rows, columns] = np.arange(len(rows))
        below[rows, columns] = 1.0
        return values[places] * below

    return strict_lower


def functions(module: Any) -> dict[str, Function]:
    """The evals' functions with another module for ``np``."""
    log_sum_exp = rebound(evals.log_sum_exp, np=module)
    found = {name: rebound(getattr(evals, name), np=module) for name in ("square", "lse", "llsq")}
    found["gmm"] = rebound(evals.gmm, np=module, log_sum_exp=log_sum_exp, strict_lower=gathering(module))
    found["ode_last"] = rebound(evals.ode_last, ode=rebound(evals.ode, np=module))
    return found


def autograd_gradients() -> dict[str, Function] | None:
    """None where autograd is not installed."""
    try:
        autograd = importlib.import_module("autograd")
    except ModuleNotFoundError:
        return None
    found = functions(importlib.import_module("autograd.numpy"))
    return {name: autograd.grad(f, (0, 1, 2, 3) if name == "gmm" else 0) for name, f in found.items()}


def jax_functions() -> dict[str, Function] | None:
    """None where jax is not installed."""
    try:
        jax = importlib.import_module("jax")
    except ModuleNotFoundError:
        return None
    jax.config.update("jax_enable_x64", True)
    jnp = importlib.import_module("jax.numpy")
    found = functions(jnp)

    def llsq(x: Any, t: Any) -> Any:
        def step(carry: Any, coefficient: Any) -> Any:
            rest, power = carry
            return (rest - coefficient * power, power * t), None

        (rest, _), _ = jax.lax.scan(step, (jnp.sign(t), jnp.ones_like(t)), x)
        return 0.5 * jnp.sum(rest * rest)

    def ode_last(x: Any, steps: int) -> Any:
        h = 2.0 / steps

        def slope(y: Any) -> Any:
            return jnp.concatenate([x[:1], x[1:] * y[:-1]])

        def step(y: Any, _: Any) -> Any:
            k1 = slope(y)
            k2 = slope(y + 0.5 * h * k1)
            k3 = slope(y + 0.5 * h * k2)
            k4 = slope(y + h * k3)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        y, _ = jax.lax.scan(step, jnp.zeros_like(x), None, length=steps)
        return y[-1]

    return found | {"llsq": llsq, "ode_last": ode_last}


def jax_gradients() -> dict[str, Function] | None:
    """Compiled gradients that wait for their results."""
    found = jax_functions()
    if found is None:
        return None
    jax: Any = importlib.import_module("jax")

    def waiting(name: str, f: Function) -> Function:
        static = {"gmm": (6,), "ode_last": (1,)}.get(name, ())
        gradient = jax.jit(jax.grad(f, (0, 1, 2, 3) if name == "gmm" else 0), static_argnums=static)
        return lambda *args: jax.block_until_ready(gradient(*args))

    return {name: waiting(name, f) for name, f in found.items()}
