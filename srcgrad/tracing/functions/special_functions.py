"""Rules of scipy.special's plain Python functions: they have no protocol, so a call is known by the function itself."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.special

from srcgrad.errors import DTypeError, ShapeError, UnsupportedError
from srcgrad.tracing.functions.reductions import finite_constant
from srcgrad.tracing.functions.registry import (
    Rule,
    as_array,
    axes_of,
    cast,
    filled,
    finish,
    inexact_dtype,
    scalar_if_rank0,
)
from srcgrad.tracing.tracer import FUNCTIONS, Tracer, as_tracer, broadcast_tracer, emit
from srcgrad.tracing.ufuncs import call, common_shape, result_dtype

NARROW: Final = (np.float16, np.float32, np.complex64)


def scipy_rule(name: str) -> Callable[[Rule], Rule]:
    """Register a rule for ``scipy.special.<name>``, if this SciPy has it; it has the function's own signature."""

    def register(rule: Rule) -> Rule:
        function = getattr(scipy.special, name, None)
        if function is not None:
            FUNCTIONS[function] = typed(function, rule)
        return rule

    return register


def typed(function: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule with the dtypes that this SciPy's function gives narrow floats: each has its own way to widen them.

    The function is asked, with arrays of size 1 in place of traced ones.
    """

    @functools.wraps(rule)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = rule(*args, **kwargs)
        if not any(isinstance(arg, Tracer) and arg.dtype in NARROW for arg in args):
            return found
        with np.errstate(all="ignore"):
            asked = function(*map(example, args), **{name: example(value) for name, value in kwargs.items()})
        if isinstance(found, tuple):
            return tuple(part.astype(like.dtype, copy=False) for part, like in zip(found, asked, strict=True))
        return found.astype(asked.dtype, copy=False)

    return call


def example(value: Any) -> Any:
    """An argument of the same type for `typed`, inside all domains."""
    if not isinstance(value, Tracer):
        return value
    if value.weak:
        return {"b": True, "i": 50, "f": 50.0, "c": 50j}[value.dtype.kind]
    return np.full((1,) * value.ndim, 50, value.dtype)[()]


def floating(*operands: Any) -> list[Tracer]:
    """The operands in the dtype in which SciPy computes: float32, or float64."""
    dtype = result_dtype(*operands)
    single = dtype in (np.float16, np.float32)
    target = dtype if dtype.kind == "c" else np.dtype(np.float32 if single else np.float64)
    return [as_tracer(operand).astype(target, copy=False) for operand in operands]


def elementwise(op: str, *operands: Tracer, **attrs: Any) -> Any:
    """One op on operands that are broadcast."""
    shape = common_shape(operands)
    return scalar_if_rank0(emit(op, *[broadcast_tracer(operand, shape) for operand in operands], **attrs))


def whole_numbers(value: Any, what: str) -> Any:
    """An integer argument as a concrete array of int64.

    Raises:
        UnsupportedError: it is not whole.
    """
    number = np.asarray(value.concrete(what) if isinstance(value, Tracer) else value)
    if (number != np.rint(number)).any():
        raise UnsupportedError(f"{what} must be whole, not {number}")
    return number.astype(np.int64)


def by_member(orders: Any, x: Tracer, member: Callable[[int, Tracer], Any]) -> Any:
    """``member(n, x)`` for each order in an array of orders that is known, broadcast against x."""
    shape = np.broadcast_shapes(orders.shape, x.shape)
    full = broadcast_tracer(x, shape)
    found = [int(n) for n in np.unique(orders)]
    result = member(found[-1], full)
    for n in found[:-1]:
        result = np.where(np.broadcast_to(orders == n, shape), member(n, full), result)
    return scalar_if_rank0(result)


# --- gamma and zeta ----------------------------------------------------------------------------------------------


@scipy_rule("polygamma")
def polygamma(n: Any, x: Any) -> Any:
    (argument,) = floating(x)

    def member(order: int, part: Tracer) -> Any:
        return emit("polygamma", part, n=order) if order else emit("digamma", part)

    return as_array(by_member(whole_numbers(n, "the order of scipy.special.polygamma"), argument, member))


@scipy_rule("zeta")
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """Of one argument Riemann's, also where its sum does not converge: by reflection below -1/2 (DLMF 25.4.2), as
    nearer to 0 it would be of a product of the pole with a zero.
    """
    operands = floating(x) if q is None else floating(x, q)
    if operands[0].dtype.kind == "c":
        raise DTypeError(
            "scipy.special.zeta of complex numbers has no derivative in srcgrad", hint="it has one of real numbers"
        )
    if q is not None:
        return finish(elementwise("zeta", *operands), out, broadcasts=True)
    s: Any = operands[0]
    ones: Any = np.ones_like(s)
    below = s < -0.5
    inside: Any = np.where(below | (s > 1.0), 0.5, s)
    between = emit("zeta_derivative", inside, ones, n=0)
    negative = np.where(below, s, -2.0)
    periods = np.rint(0.5 * negative)  # of the sine, by which it is 0 at the even numbers
    sine = (1.0 - 2.0 * (periods % 2.0)) * np.sin(0.5 * np.pi * (negative - 2.0 * periods))
    t: Any = 1.0 - negative
    mirrored = 2.0 * (2.0 * np.pi) ** -t * sine * scipy.special.gamma(t) * emit("zeta", t, ones)
    above = np.where(s == np.inf, 1.0, emit("zeta", s, ones))
    return finish(np.where(s <= 1.0, np.where(below, mirrored, between), above), out, broadcasts=True)


@scipy_rule("multigammaln")
def multigammaln(a: Any, d: Any) -> Any:
    dimension = whole_numbers(d, "the dimension of scipy.special.multigammaln")
    if dimension.ndim:
        raise ShapeError("d should be a positive integer (dimension)")
    (argument,) = floating(a)
    count = int(dimension)
    total: Any = count * (count - 1) * 0.25 * np.log(np.pi)
    for j in range(count):
        total = total + emit("gammaln", argument - j / 2)
    return total


@scipy_rule("factorial")
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """Gamma(n + 1), and 0 below 0."""
    if exact:
        dtype = as_tracer(n).dtype
        if dtype.kind in "fc":
            raise ShapeError(f"`exact=True` only supports integers, cannot use data type {dtype}")
        raise UnsupportedError("scipy.special.factorial with exact=True is not traced", hint="leave exact out")
    (argument,) = floating(n)
    value = elementwise("gamma", argument + 1)
    return value if extend == "complex" else np.where(argument < 0, argument.dtype.type(0), value)


@scipy_rule("comb")
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    if exact:
        raise UnsupportedError("scipy.special.comb with exact=True is not traced", hint="leave exact out")
    n, k = floating(N, k)
    if repetition:
        return np.where((k == 0) & (n >= 0), n.dtype.type(1), elementwise("binom", n + k - 1, k))
    inside: Any = (k <= n) & (n >= 0) & (k >= 0)
    return np.where(inside, elementwise("binom", n, k), n.dtype.type(0))


@scipy_rule("perm")
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    if exact:
        raise UnsupportedError("scipy.special.perm with exact=True is not traced", hint="leave exact out")
    n, k = floating(N, k)
    inside: Any = (k <= n) & (n >= 0) & (k >= 0)
    return np.where(inside, elementwise("poch", n - k + 1, k), n.dtype.type(0))


# --- logarithms of sums of exponentials -----------------------------------------------------------------------------


@scipy_rule("logsumexp")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """With a constant m near the maximum, m + log(sum(exp(a - m))), so that nothing overflows."""
    if b is None:
        x: Any = as_array(floating(a)[0])
    else:
        parts = [as_array(part) for part in floating(a, b)]
        shape = common_shape(parts)
        x, weights = (broadcast_tracer(part, shape) for part in parts)
        x = np.where(weights == 0, x.dtype.type(-np.inf), x)
    x = x if x.ndim else x.reshape(1)  # so SciPy too: a number has the axes 0 and -1
    axes = axes_of(axis, x.ndim)
    if not all(x.shape[k] for k in axes):  # of nothing it is that of one term 0
        x, b = filled(tuple(1 if k in axes else size for k, size in enumerate(x.shape)), -np.inf, x.dtype), None
    if b is None:
        total, sign = log_of_sum(x, axes)
    else:
        total, sign = log_of_weighted_sum(x, weights, axes, return_sign and x.dtype.kind != "c")
    if return_sign and x.dtype.kind == "c":
        total, sign = np.real(total), np.where(np.isneginf(np.real(total)), 0.0, np.exp(1j * np.imag(total)))
        sign = cast(sign, x.dtype)
    kept = x.shape if not axes else tuple(1 if k in axes else size for k, size in enumerate(x.shape))
    shape = kept if keepdims else tuple(size for k, size in enumerate(x.shape) if k not in axes)
    total, sign = (scalar_if_rank0(part.reshape(shape)) for part in (total, sign))
    return (total, sign) if return_sign else total


def log_of_sum(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """log(sum(exp(x))) over the axes, which are kept, and the sum's sign.

    Of the largest terms, exp(0), the ones are summed apart, and the logarithm is log1p: small terms beside one of them
    are not lost. An infinite logarithm is the largest element, so that those that tie share the derivative, as in
    logaddexp.
    """
    maxima: Any = as_array(np.max(x, axis=axes, keepdims=True))
    shift = finite_constant(maxima)
    below = x - shift
    ones = (below == 0).astype(x.dtype)
    small, many = (np.sum(part, axis=axes, keepdims=True) for part in (np.exp(below) - ones, ones))
    total = np.where(np.isinf(maxima), maxima, np.log1p(small + (many - 1)) + shift)
    return total, np.sign(np.exp(total - shift))


def log_of_weighted_sum(x: Any, weights: Any, axes: tuple[int, ...], return_sign: bool) -> tuple[Any, Any]:
    maxima: Any = as_array(np.max(x, axis=axes, keepdims=True))
    shift = finite_constant(maxima)
    weighted = np.sum(weights * np.exp(x - shift), axis=axes, keepdims=True)
    total = np.log(np.abs(weighted) if return_sign else weighted) + shift
    most = np.real(maxima)
    infinite = np.isneginf(most) | (np.isposinf(most) & (np.isinf(weighted) if return_sign else weighted == np.inf))
    return np.where(infinite, maxima, total), np.sign(weighted)


@scipy_rule("softmax")
def softmax(x: Any, axis: Any = None) -> Any:
    array: Any = as_array(floating(x)[0])
    terms = np.exp(array - emit("stop_gradient", as_array(np.max(array, axis=axis, keepdims=True))))
    return terms / np.sum(terms, axis=axis, keepdims=True)


@scipy_rule("log_softmax")
def log_softmax(x: Any, axis: Any = None) -> Any:
    array: Any = as_array(floating(x)[0])
    centred = array - finite_constant(as_array(np.max(array, axis=axis, keepdims=True)))
    return centred - np.log(np.sum(np.exp(centred), axis=axis, keepdims=True))


@scipy_rule("softplus")
def softplus(x: Any, **options: Any) -> Any:
    """log(1 + exp(x))."""
    return np.logaddexp(0, x, **options)


# --- Lambert's W, Bessel functions ------------------------------------------------------------------------------------


@scipy_rule("lambertw")
def lambertw(z: Any, k: Any = 0, tol: Any = 1e-8) -> Any:
    x = as_tracer(z)
    x = x.astype(np.complex64 if x.dtype in (np.float16, np.float32, np.complex64) else np.complex128, copy=False)
    branches = whole_numbers(k, "the branch of scipy.special.lambertw")
    return by_member(branches, x, lambda branch, part: emit("lambertw", part, k=branch))


def spherical(name: str) -> Callable[..., Any]:
    """A rule for ``scipy.special.<name>(n, z, derivative=False)`` of real z."""

    def rule(n: Any, z: Any, derivative: bool = False) -> Any:
        (x,) = floating(z)
        orders = as_tracer(n).astype(np.int64, copy=False)
        if not derivative:
            return elementwise(name, orders, x)
        below, above = {"spherical_in": (1, 1), "spherical_kn": (-1, -1)}.get(name, (1, -1))
        lower = elementwise(name, np.maximum(orders - 1, 0), x)
        upper = above * (orders + 1) * elementwise(name, orders + 1, x)
        return np.where(orders == 0, upper, below * orders * lower + upper) / (2 * orders + 1)

    return rule


for _name in ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"):
    scipy_rule(_name)(spherical(_name))


def derivative_of(ufunc: np.ufunc, phase: float, outer: float) -> Callable[..., Any]:
    """A rule for the n-th derivative of a Bessel function, a sum over neighbouring orders (DLMF 10.6.7, 10.29.5)."""

    def rule(v: Any, z: Any, n: Any = 1) -> Any:
        count = int(whole_numbers(n, "the order of a derivative"))
        total: Any = 0.0
        coefficient = (outer / 2) ** count
        for k in range(count + 1):
            total = total + coefficient * call(ufunc, v - count + 2 * k, z)
            coefficient *= phase * (count - k) / (k + 1)
        return total

    return rule


for _name, _ufunc, _phase, _outer in (
    ("jvp", scipy.special.jv, -1.0, 1.0),
    ("yvp", scipy.special.yv, -1.0, 1.0),
    ("ivp", scipy.special.iv, 1.0, 1.0),
    ("kvp", scipy.special.kv, 1.0, -1.0),
):
    scipy_rule(_name)(derivative_of(_ufunc, _phase, _outer))


@scipy_rule("diric")
def diric(x: Any, n: Any) -> Any:
    """sin(n t)/(n sin(t)) at t = x/2; next to the multiples of π, where that is 0/0, SciPy has ±1.

    Around them the slopes are those of a quotient of sincs.
    """
    angle, count = as_array(x), as_array(n)
    dtype = inexact_dtype(np.result_type(angle.dtype, count.dtype))
    half, count = cast(angle, dtype) / 2, cast(count, dtype)
    below = np.sin(half)
    turns = emit("stop_gradient", np.round(half / np.pi))
    sign = 1 - 2 * np.mod(turns * (emit("stop_gradient", count) - 1), 2)
    rest = half / np.pi - turns
    around = sign * np.sinc(count * rest) / np.sinc(rest)
    plain = np.where(
        np.abs(below) < (1e-3 if dtype == np.float32 else 1e-7), sign, np.sin(count * half) / (count * below)
    )
    sloped = emit("stop_gradient", plain) + (around - emit("stop_gradient", around))
    value = np.where(np.abs(below) < 1e-2, sloped, plain)
    return scalar_if_rank0(np.where((count <= 0) | (count != np.floor(count)), dtype.type(np.nan), value))


if getattr(scipy.special, "sinc", np.sinc) is not np.sinc:
    scipy_rule("sinc")(FUNCTIONS[np.sinc])


# --- of numbers that are known ---------------------------------------------------------------------------------------

ROOTS: Final = re.compile("roots_.*|(p|t|u|c|s|j|l|la|h|he|cg|ps|ts|us|js)_roots")
POLYNOMIALS: Final = """
    legendre chebyt chebyu chebyc chebys jacobi laguerre genlaguerre hermite hermitenorm gegenbauer
    sh_legendre sh_chebyt sh_chebyu sh_jacobi
"""
"""Polynomials of a degree, as objects."""
for _name in dir(scipy.special):
    if ROOTS.fullmatch(_name) or _name in POLYNOMIALS.split():
        FUNCTIONS[getattr(scipy.special, _name)] = getattr(scipy.special, _name)
