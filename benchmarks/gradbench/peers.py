"""The evals for HIPS autograd and jax: the same source with their modules in NumPy's place.

Both have no assignment to an element, so they gather instead; where jax would compile hundreds of unrolled steps, it is
given its own loop.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.measure import module, rebound  # and sets one thread, before NumPy is imported

# isort: split
import numpy as np

from benchmarks.gradbench import evals

Function = Callable[..., Any]
TRIPS = 400
"""How many steps of particle its reverse mode is given: 391 are needed from w = 0.5, 352 from the answer."""


def gathering(xp: Any) -> Function:
    """`evals.strict_lower` without an assignment."""

    def strict_lower(values: Any, size: int) -> Any:
        columns, rows = np.triu_indices(size, 1)
        places, below = np.zeros((size, size), dtype=int), np.zeros((size, size))
        places[rows, columns] = np.arange(len(rows))
        below[rows, columns] = 1.0
        return values[places] * below

    return strict_lower


def functions(xp: Any) -> dict[str, Function]:
    """The evals' functions with another module for ``np``."""
    log_sum_exp = rebound(evals.log_sum_exp, np=xp)
    found = {name: rebound(getattr(evals, name), np=xp) for name in ("square", "lse", "llsq")}
    found["gmm"] = rebound(evals.gmm, np=xp, log_sum_exp=log_sum_exp, strict_lower=gathering(xp))
    found["ode_last"] = rebound(evals.ode_last, ode=rebound(evals.ode, np=xp))
    return found


def autograd_gradients() -> dict[str, Function] | None:
    """None where autograd is not installed."""
    autograd = module("autograd")
    if autograd is None:
        return None
    found = functions(importlib.import_module("autograd.numpy"))
    return {name: autograd.grad(f, (0, 1, 2, 3) if name == "gmm" else 0) for name, f in found.items()}


def jax_functions() -> dict[str, Function] | None:
    """None where jax is not installed."""
    jax = module("jax")
    if jax is None:
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


def waiting(f: Function, static: tuple[int, ...] = ()) -> Function:
    """Compiled by jax; its results are waited for."""
    jax = module("jax")
    compiled = jax.jit(f, static_argnums=static)
    return lambda *args: jax.block_until_ready(compiled(*args))


STATIC = {"gmm": (6,), "ode_last": (1,)}


def jax_values() -> dict[str, Function] | None:
    found = jax_functions()
    return found and {name: waiting(f, STATIC.get(name, ())) for name, f in found.items()}


def jax_gradients() -> dict[str, Function] | None:
    found = jax_functions()
    if found is None:
        return None
    grad = module("jax").grad
    return {
        name: waiting(grad(f, (0, 1, 2, 3) if name == "gmm" else 0), STATIC.get(name, ())) for name, f in found.items()
    }


def jax_particle(inner: str, trips: int | None) -> Function:
    """particle for jax, which has a reverse mode of loops with a known number of trips only: those that are too many
    change nothing."""
    jax = module("jax")
    jnp, lax = module("jax.numpy"), jax.lax
    derivative, dt = jax.grad if inner == "r" else jax.jacfwd, 0.1

    def distance_of_hit(w: Any) -> Any:
        def from_charge(x: Any, height: Any) -> Any:
            return 1 / jnp.sqrt((x[0] - 10) ** 2 + (x[1] - height) ** 2)

        slope = derivative(lambda x: from_charge(x, 10 - w) + from_charge(x, 0))

        def flies(state: Any) -> Any:
            x, v = state
            return x[1] + dt * v[1] > 0

        def ahead(state: Any) -> Any:
            x, v = state
            return x + dt * v, v - dt * slope(x)

        start = jnp.array([0.0, 8.0]), jnp.array([0.75, 0.0])

        def step(state: Any, _: Any) -> Any:
            return jax.tree.map(lambda new, old: jnp.where(flies(state), new, old), ahead(state), state), None

        if trips is None:
            x, v = lax.while_loop(flies, ahead, start)
        else:
            (x, v), _ = lax.scan(step, start, length=trips)
        return (x - x[1] / v[1] * v)[0] ** 2

    return distance_of_hit


def jax_particle_value(inner: str) -> Function | None:
    """None where jax is not installed."""
    if jax_functions() is None:
        return None
    return waiting(jax_particle(inner, None))


def jax_particle_slope(outer: str, inner: str) -> Function | None:
    """The value and its derivative in w; None where jax is not installed."""
    if jax_functions() is None:
        return None
    jax = module("jax")
    if outer == "r":
        return waiting(jax.value_and_grad(jax_particle(inner, TRIPS)))
    hit = jax_particle(inner, None)
    return waiting(lambda w: jax.jvp(hit, (w,), (1.0,)))
