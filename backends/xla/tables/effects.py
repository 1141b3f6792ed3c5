"""Ops that are there for what they do, and ops that hold regions: calls, with the user's derivative rules for jax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from srcgrad.backends.xla.callbacks import call_host
from srcgrad.backends.xla.program import Application, Program, in_full_precision
from srcgrad.backends.xla.tables import Array, contextual
from srcgrad.ir.core import Region
from srcgrad.ir.errors import CustomRuleError


def results_of(application: Application, found: Sequence[Any]) -> Any:
    """What a line of an op with any number of results returns."""
    return found[0] if len(application.operation.results) == 1 else tuple(found)


@contextual
def check(application: Application, predicate: Array) -> tuple[()]:
    application.check(predicate, application.attrs["message"], application.attrs["kind"])
    return ()


@contextual
def host_call(application: Application, *operands: Array) -> Any:
    return results_of(application, call_host(application, *operands))


@contextual
def barrier(application: Application, *operands: Array) -> Any:
    found: Any = lax.optimization_barrier(operands)  # type: ignore[no-untyped-call]
    return results_of(application, found)


# --- regions ------------------------------------------------------------------------------------------


def as_function(region: Region, program: Program) -> Callable[..., tuple[Any, ...]]:
    """A region as a function that jax may trace when it likes: in full precision, whatever the settings are then."""

    def call(*arguments: Any) -> tuple[Any, ...]:
        inner = Program(program.sites, program.walk, checks=False, rules=True)
        with in_full_precision():
            return tuple(inner.walk(region, arguments, inner))

    return call


def called(application: Application, *operands: Array) -> Any:
    """The body in place of the call."""
    program = application.program
    return results_of(application, program.walk(application.operation.regions[0], operands, program))


@contextual
def checkpoint(application: Application, *operands: Array) -> Any:
    if not application.program.rules:
        return called(application, *operands)
    body = as_function(application.operation.regions[0], application.program)
    return results_of(application, jax.checkpoint(body)(*operands))


def no_tangent(array: Any) -> Any:
    """The tangent of an array of integers or booleans, as jax has it."""
    return np.zeros(array.shape, jax.dtypes.float0)


def is_differentiable(array: Any) -> bool:
    return array.dtype.kind in "fc"


@contextual
def custom_jvp(application: Application, *operands: Array) -> Any:
    """The body; under jax's derivatives, the rule: primals, tangents of the active ones -> results, tangents."""
    operation, program = application.operation, application.program
    if not program.rules:
        return called(application, *operands)
    body, rule = (as_function(region, program) for region in operation.regions)
    active = operation.attrs["active"]
    call = jax.custom_jvp(body)

    def forward(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        refuse_closures(operation.op.name, active, tangents)
        seeds = [
            lax.full(primal.shape, np.zeros((), primal.dtype)[()], primal.dtype)
            if isinstance(tangent, SymbolicZero)
            else tangent
            for primal, tangent, is_active in zip(primals, tangents, active, strict=True)
            if is_active
        ]
        found = rule(*primals, *seeds)
        count = len(operation.results)
        outgoing = [
            tangent if is_differentiable(value) else no_tangent(value)
            for value, tangent in zip(found[:count], found[count:], strict=True)
        ]
        return tuple(found[:count]), tuple(outgoing)

    call.defjvp(forward, symbolic_zeros=True)
    return results_of(application, call(*operands))


def refuse_closures(name: str, active: Sequence[bool], tangents: Sequence[Any]) -> None:
    """A rule says nothing about values that the function closes over, so they must not be differentiated."""
    for tangent, is_active in zip(tangents, active, strict=True):
        zero = isinstance(tangent, SymbolicZero) or tangent.dtype == jax.dtypes.float0
        if not is_active and not zero:
            raise CustomRuleError(
                f"{name}: the function closes over a value that is differentiated, and its rule has no tangent for it",
                hint="pass that value to the function as an argument",
            )


@contextual
def custom_vjp(application: Application, *operands: Array) -> Any:
    """The body; under jax's derivatives, the rules: operands -> results, residuals; residuals, cotangents -> …"""
    operation, program = application.operation, application.program
    if not program.rules:
        return called(application, *operands)
    body, forward, backward = (as_function(region, program) for region in operation.regions)
    active, outputs = operation.attrs["active"], operation.attrs["outputs"]
    count = len(operation.results)
    call = jax.custom_vjp(body)

    def run_forward(*primals: Any) -> tuple[Any, Any]:
        found = forward(*primals)
        return found[:count], found[count:]

    def run_backward(residuals: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        used = [cotangent for cotangent, is_output in zip(cotangents, outputs, strict=True) if is_output]
        found = iter(backward(*residuals, *used))
        return tuple([next(found) if is_active else None for is_active in active])

    call.defvjp(run_forward, run_backward)
    return results_of(application, call(*operands))


TABLE: Final[dict[str, Callable[..., Any]]] = {
    "barrier": barrier,
    "check": check,
    "checkpoint": checkpoint,
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "host_call": host_call,
}
