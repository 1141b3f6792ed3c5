"""The samples of every op on the xla backend: one compiled program per sample, against the NumPy backend.

A program holds the value, its forward and reverse derivatives, second order in the four nestings, or in those that are
asked for, and a batch of two examples. XLA sets subnormal numbers to zero: those among the operands are replaced by
numbers so small that only a few of their products are subnormal, and results may be apart by the smallest normal
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from srcgrad.backends.xla.backend import OPTIONS
from srcgrad.backends.xla.lowering import lower
from srcgrad.ir.core import Function
from srcgrad.ir.opdef import Elementwise
from srcgrad.ir.passes.expand import expand
from srcgrad.ir.transforms.batch import batch
from tests.ir.ops.harness import (
    HOLES,
    SITES,
    Array,
    Case,
    from_reals,
    other_example,
    pull_back_function,
    push_forward_function,
    reals,
    run,
    type_of,
)

ON_CPU = jax.default_backend() == "cpu"
ULPS = 8.0 if ON_CPU else 32.0
"""How far results may be apart, in units of the last place. GPUs round a product and a sum as one operation."""
OF_BOTH_SIGNS = "of zeros of both signs NumPy takes the one that its vector instructions happen to take"
OF_ANY_SIGN = ("eigh", "svd")
"""Ops whose vectors have the signs that the library gives them. The signs of LAPACK's routine that is XLA's too are
compared; of others only the sizes."""
OF_A_ROUTINE = {"driver", "upper", "select"}
"""Attributes that ask for the signs of another of LAPACK's routines, or of the other triangle, which XLA has not."""
OVERFLOWS: dict[str, str] = {
    "div": "of 1 / b**3 at 1e-300 both terms overflow: rounded as one, inf + finite is no inf - inf"
}
"""op -> why second orders that are nan in NumPy may be infinite where XLA rounds a product and a sum as one."""
NESTINGS = ("forward forward", "reverse forward", "forward reverse", "reverse reverse")
"""The second orders."""
SIGNS_OF_ZERO: dict[str, str] = dict.fromkeys(("maximum", "minimum", "reduce_max", "reduce_min"), OF_BOTH_SIGNS)
"""op -> why a zero of its value may have another sign on any compiled backend."""


class Program(NamedTuple):
    """One of the programs of a sample, and what it is called with."""

    check: str
    function: Function
    arguments: list[Array]


SMALL = 2.0**60
"""Times the smallest normal number. Callbacks run where XLA sets subnormal numbers to zero, those inside SciPy's
functions too: kolmogi's of 2**20 times that number is 5e-10 of it apart, its slope of 2**40 times 2e-13."""


def without_subnormals(operand: Any) -> Array:
    array = np.asarray(operand)
    if array.dtype.kind != "f" or array.dtype.itemsize < 4:
        return array
    tiny = float(np.finfo(array.dtype).tiny)
    return np.where((array != 0) & (np.abs(array) < tiny), np.copysign(tiny * SMALL, array), array).astype(array.dtype)


def normal(case: Case) -> Case:
    operands = tuple(without_subnormals(operand) for operand in case.sample.operands)
    return replace(case, sample=replace(case.sample, operands=operands))


def programs(case: Case, nestings: Sequence[str] = NESTINGS) -> Iterator[Program]:
    """The programs of a sample. A derivative that an op has not is left out: the op's own tests say which."""
    operands = case.operands
    yield Program("value", case.function, operands)
    if operands and (case.op.name, "batch") not in HOLES:
        stacked = [np.stack([operand, without_subnormals(other_example(operand))]) for operand in operands]
        yield Program("batched", batch(case.function, [True] * len(operands), 2), stacked)
    if not case.differentiable:
        return
    in_types = [type_of(operands[k]) for k in case.active]
    out_types = [case.function.results[k].type for k in case.outputs]
    random = np.random.default_rng(case.index)
    tangents, seconds, cotangents = (
        [from_reals(random.normal(size=reals(t.static_shape, t.dtype)), [t])[0] for t in types]
        for types in (in_types, in_types, out_types)
    )
    forward, reverse = case.program("jvp"), case.program("vjp")
    yield Program("forward", forward, [*operands, *tangents])
    yield Program("reverse", reverse, [*operands, *cotangents])
    outputs, inputs = range(len(case.outputs)), range(len(case.active))
    seeds = {
        "forward forward": [*tangents, *seconds],
        "reverse forward": [*tangents, *cotangents],
        "forward reverse": [*cotangents, *tangents],
        "reverse reverse": [*cotangents, *tangents],
    }
    for nesting in nestings:
        outer, inner = nesting.split()
        build = push_forward_function if outer == "forward" else pull_back_function
        first, results = (forward, outputs) if inner == "forward" else (reverse, inputs)
        yield Program(nesting, build(first, tuple(case.active), results, ""), [*operands, *seeds[nesting]])


def run_xla(wanted: Sequence[Program]) -> list[list[Array]]:
    """The results of programs that are compiled as one."""
    lowered = [lower(expand(program.function), SITES, checks=True) for program in wanted]

    def together(*arguments: Any) -> list[tuple[Any, ...]]:
        results, start = [], 0
        for program, function in zip(wanted, lowered, strict=True):
            stop = start + len(program.arguments)
            results.append(function(*arguments[start:stop]))
            start = stop
        return results

    arguments = [argument for program in wanted for argument in program.arguments]
    with jax.enable_x64(True):
        found = jax.jit(together).lower(*arguments).compile(compiler_options=OPTIONS)(*arguments)
    kept = []
    for program, function, results in zip(wanted, lowered, found, strict=True):
        if function.effects:
            *results, status = results
            assert not np.asarray(status)[:, 0].any(), f"{program.check}: {function.effects} {np.asarray(status)}"
        kept.append([np.asarray(result) for result in results])
    return kept


def ulps_apart(actual: Array, expected: Array, scaled: bool, least: float = 0.0) -> float:
    """The largest distance in units of the last place: of each element, or of 1 and the largest one if ``scaled``.

    A number below ``least`` is measured as if it were that.

    inf where the arrays differ in type, or in where they are nan or infinite.
    """
    if type_of(actual) != type_of(expected):
        return np.inf
    if expected.dtype.kind == "c":
        size = np.abs(expected)
        return max(distance(part(actual), part(expected), size, scaled, least) for part in (np.real, np.imag))
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(actual, expected) else np.inf
    return distance(actual, expected, np.abs(expected), scaled, least)


def distance(actual: Array, expected: Array, size: Array, scaled: bool, least: float) -> float:
    finite = np.isfinite(expected)
    if not np.array_equal(np.where(finite, 0.0, actual), np.where(finite, 0.0, expected), equal_nan=True):
        return np.inf
    if not finite.any():
        return 0.0
    limits = np.finfo(expected.dtype)
    known = size[np.isfinite(size)]
    unit = known.max(initial=1.0) if scaled else np.where(np.isfinite(size), size, 0.0)[finite]
    unit = np.maximum(np.maximum(unit, least) * float(limits.eps), float(limits.tiny))
    with np.errstate(all="ignore"):
        apart = np.abs(actual[finite].astype(np.float64) - expected[finite].astype(np.float64)) / unit
    return float(apart.max()) if np.isfinite(apart).all() else np.inf


def zeros_differ(actual: Array, expected: Array) -> bool:
    """Whether a zero has another sign."""
    if expected.dtype.kind == "c":
        return zeros_differ(actual.real, expected.real) or zeros_differ(actual.imag, expected.imag)
    if expected.dtype.kind != "f":
        return False
    zero = (expected == 0) & (actual == 0)
    return bool((np.signbit(actual) != np.signbit(expected))[zero].any())


def compare(case: Case, least: float = 0.0, nestings: Sequence[str] = NESTINGS) -> Iterator[tuple[str, float, bool]]:
    """For each program of a sample: its name, how far the results are apart, whether zeros differ in sign."""
    wanted = list(programs(normal(case), nestings))
    only_sizes = case.op.name in OF_ANY_SIGN and (not ON_CPU or bool(case.sample.attrs.keys() & OF_A_ROUTINE))
    if only_sizes:
        wanted = [program for program in wanted if program.check == "value"]
    for program, results in zip(wanted, run_xla(wanted), strict=True):
        scaled = program.check not in ("value", "batched") or not isinstance(case.op, Elementwise)
        expected = run(program.function, program.arguments)
        assert len(expected) == len(results)
        if only_sizes:
            results, expected = list(map(np.abs, results)), list(map(np.abs, expected))
        if program.check in nestings and case.op.name in OVERFLOWS:
            results = [np.where(np.isnan(b) & np.isinf(a), b, a) for a, b in zip(results, expected, strict=True)]
        apart = max((ulps_apart(a, b, scaled, least) for a, b in zip(results, expected, strict=True)), default=0.0)
        differ = any(zeros_differ(a, b) for a, b in zip(results, expected, strict=True))
        yield program.check, apart, differ
