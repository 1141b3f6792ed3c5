"""jax's own derivatives of a traced function, for `cross_check`. The only module of the tests that imports jax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np

from srcgrad.backends.xla.lowering import lower
from srcgrad.testing.policy_points import flatten_calls
from srcgrad.testing.programs import Chain, Subject

OPTIONS: Final = {"xla_backend_optimization_level": 0}
"""The program runs once: compiling is what takes time."""

Derivatives = Callable[[Sequence[Any], Sequence[Sequence[Any]]], list[list[Any]]]


def jax_derivatives(found: Subject, chains: Sequence[Chain], matrices: bool) -> Derivatives:
    """A function of the arguments and, per chain, of directions; it gives per chain the blocks of the derivative.

    All of it is one program of jax. The function is lowered as it was traced, before any pass; rules of the user are
    left out, so that jax differentiates what they are rules of.
    """
    lowered = lower(flatten_calls(found.raw))
    places = [k for k, flag in enumerate(found.active) if flag]

    def restricted(arguments: Sequence[Any]) -> Callable[..., list[Any]]:
        def primal(*active: Any) -> list[Any]:
            given = list(arguments)
            for place, value in zip(places, active, strict=True):
                given[place] = value
            return list(lowered(*given))

        return primal

    def every(arguments: Sequence[Any], directions: Sequence[Sequence[Any]]) -> list[list[Any]]:
        primal = restricted(arguments)
        active = [arguments[place] for place in places]
        results = []
        for chain, extra in zip(chains, directions, strict=True):
            if matrices:
                results.append(jax_matrix(primal, active, chain))
            else:
                results.append(jax_product(primal, active, chain, list(extra)))
        return results

    compiled = jax.jit(every, compiler_options=OPTIONS)

    def derive(arguments: Sequence[Any], directions: Sequence[Sequence[Any]]) -> list[list[Any]]:
        with jax.enable_x64(True):
            blocks = compiled(list(arguments), [list(extra) for extra in directions])
            return [[np.asarray(block) for block in found] for found in blocks]

    return derive


def jax_matrix(primal: Callable[..., list[Any]], active: Sequence[Any], chain: Chain) -> list[Any]:
    """The nested Jacobian, a block per output and input."""
    numbers = tuple(range(len(active)))
    f: Callable[..., Any] = primal
    for mode in chain:
        f = (jax.jacfwd if mode == "fwd" else jax.jacrev)(f, argnums=numbers)
    blocks: list[Any] = jax.tree_util.tree_leaves(f(*active))
    return blocks


def jax_product(
    primal: Callable[..., list[Any]], active: Sequence[Any], chain: Chain, directions: list[Any]
) -> list[Any]:
    """The nested products, as `srcgrad.testing.programs.product` has them."""
    f: Callable[..., list[Any]] = primal
    taken = 0
    for mode in chain:
        count = len(active) if mode == "fwd" else len(jax.eval_shape(f, *active))
        f = (pushed if mode == "fwd" else pulled)(f, directions[taken : taken + count])
        taken += count
    return f(*active)


def pushed(f: Callable[..., list[Any]], tangents: Sequence[Any]) -> Callable[..., list[Any]]:
    def tangent(*active: Any) -> list[Any]:
        found: list[Any] = jax.jvp(f, active, tuple(tangents))[1]
        return found

    return tangent


def pulled(f: Callable[..., list[Any]], cotangents: Sequence[Any]) -> Callable[..., list[Any]]:
    def cotangent(*active: Any) -> list[Any]:
        return list(jax.vjp(f, *active)[1](list(cotangents)))

    return cotangent
