"""What of compiled programs calls Python: a few ops, listed here, in values and derivatives of all that is traced."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.llvm.partition import FUSED
from srcgrad.backends.llvm.sections import sectioned
from srcgrad.ir.core import Function
from srcgrad.ir.opdef import Op
from srcgrad.ir.passes.expand import expanded
from srcgrad.ir.passes.kinks import smoothed
from srcgrad.ir.transforms.linearize import jvp, linearize
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.tracing.trace import NeedsConcrete
from tests.ir.ops.harness import cases, ops
from tests.tracing import array_cases, linalg_cases, number_cases, signal_cases
from tests.tracing.trace_support import Case, trace_function

pytest.importorskip("jax")  # the module that makes the programs imports it

from tests.backends.xla.agreement import programs

ALLOWED: dict[str, str] = {
    "host_call": "what it calls is Python's",
    "dct": "SciPy's Fourier transforms of real numbers have no function for C",
    "dst": "SciPy's Fourier transforms of real numbers have no function for C",
    "rgamma_derivative": "special functions without a pointer",
    "gamma_density": "special functions without a pointer, in its derivatives",
    "gammainc_derivative": "special functions without a pointer",
    "betainc_derivative": "special functions without a pointer",
    "carlson_integral": "special functions without a pointer, in their derivatives",
    "elliptic_incomplete_derivative": "special functions without a pointer",
    "polygamma": "special functions without a pointer, of complex numbers",
    "hyperu_integral": "special functions without a pointer, in its derivatives",
    "mathieu_function": "special functions without a pointer",
    "student_slope": "special functions without a pointer",
    "voigt_derivative": "special functions without a pointer",
    "wofz_derivative": "special functions without a pointer",
    "sparse_solve": "SciPy's factorisations of sparse matrices have no function for C",
    "eigh": "SciPy's other drivers, which may find some vectors only",
    "pinv": "empty matrices",
    "qr": "full factors of empty matrices",
    "svd": "full factors of empty matrices",
}
"""Ops that may be lines of Python, and why."""
SEED = 3


def called(function: Function) -> set[str]:
    """The ops of a program's lines of Python, if any, where ops that no backend knows are written out."""
    known = expanded(smoothed(function, None))
    return {op.op.name for op in sectioned(known).function.walk() if op.op is not FUSED and not op.regions}


def require_listed(function: Function, what: str) -> None:
    lines = called(function)
    found = lines - set(ALLOWED)
    if lines > found:  # a view of what such a line gives or takes is nothing to compile
        found -= {"reshape", "transpose"}
    assert not found, f"{what} calls Python for {found}"


# --- ops ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
def test_all_programs_of_an_op(op: Op) -> None:
    for case in cases(op):
        for program in programs(case):
            require_listed(program.function, f"{program.check} of {case}")


# --- functions ----------------------------------------------------------------------------------------------------


def traced_cases() -> list[Case]:
    found: list[Case] = []
    for module in (array_cases, number_cases, signal_cases, linalg_cases):
        for tables in vars(module).values():
            if isinstance(tables, list):
                found += [case for case in tables if isinstance(case, tuple) and len(case) == 3 and callable(case[1])]
    return list({(case[0], id(case[1])): case for case in found}.values())


def derived(case: Case) -> Iterator[tuple[str, Function]]:
    """The program of a function, and those of its derivatives."""
    _, f, arrays = case
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function, _ = trace_function(f, arrays)
        except NeedsConcrete:
            function, _ = trace_function(f, arrays, concrete=True)
    yield "value", function
    active = [param.type.differentiable for param in function.params]
    if any(active) and any(result.type.differentiable for result in function.results):
        forward = jvp(function, active)
        yield "forward", forward
        linear = linearize(function, active)
        yield "what is kept", linear.primal
        yield "reverse", transpose(linear.linear)


def require_native(case: Case) -> None:
    for what, function in derived(case):
        require_listed(function, f"{what} of {case[0]}")


CASES = traced_cases()


def test_a_few_functions() -> None:
    chosen: Any = np.random.default_rng(SEED).choice(len(CASES), 30, replace=False)
    for k in chosen:
        require_native(CASES[k])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_every_function(case: Case) -> None:
    require_native(case)
