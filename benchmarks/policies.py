"""What derivatives are where mathematics leaves a choice: srcgrad beside HIPS autograd and JAX, measured.

``python benchmarks/policies.py``

Prints the table of docs/policies.md. A dash is a library that is not installed; the name of an exception is what it
raises. All run in double precision.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import numpy

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a checkout that is not installed measures itself

LIBRARIES = ("srcgrad", "jax", "autograd")


class Library(NamedTuple):
    """What the cases need of a library: its NumPy, its special functions, its transforms."""

    np: Any
    special: Any
    grad: Callable[..., Any]
    hessian: Callable[..., Any]
    jacobian: Callable[..., Any]


class Case(NamedTuple):
    topic: str
    what: str
    measure: Callable[[Library], Any]


def array(*numbers: float) -> Any:
    return numpy.array(numbers, float)


def at(number: complex) -> Any:
    """A NumPy scalar: Python's own floats divide by zero in another way."""
    return numpy.asarray(number)[()]


def every(gradient: Callable[..., Any], f: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The gradient in each argument."""
    return [gradient(f, number)(*arguments) for number in range(len(arguments))]


CASES = [
    Case("kink", "abs at 0", lambda lib: lib.grad(lib.np.abs)(at(0.0))),
    Case("kink", "linalg.norm at [0, 0]", lambda lib: lib.grad(lib.np.linalg.norm)(array(0, 0))),
    Case("kink", "hypot at 0, 0", lambda lib: every(lib.grad, lib.np.hypot, at(0.0), at(0.0))),
    Case("kink", "std of [1, 1]", lambda lib: lib.grad(lib.np.std)(array(1, 1))),
    Case(
        "kink",
        "Hessian of norm(x)**2 at [0, 0]",
        lambda lib: lib.hessian(lambda x: lib.np.linalg.norm(x) ** 2)(array(0, 0)),
    ),
    Case(
        "kink", "sqrt(sum(x**2)) at [0, 0]", lambda lib: lib.grad(lambda x: lib.np.sqrt(lib.np.sum(x**2)))(array(0, 0))
    ),
    Case("tie", "max of [1, 3, 3]", lambda lib: lib.grad(lib.np.max)(array(1, 3, 3))),
    Case("tie", "maximum(x, y) at 1, 1", lambda lib: every(lib.grad, lib.np.maximum, at(1.0), at(1.0))),
    Case("tie", "maximum(x, 0) at 0", lambda lib: lib.grad(lambda x: lib.np.maximum(x, 0.0))(at(0.0))),
    Case("tie", "clip(x, 0, 1) at 1", lambda lib: lib.grad(lambda x: lib.np.clip(x, 0.0, 1.0))(at(1.0))),
    Case("tie", "Jacobian of sort at [2, 1, 1]", lambda lib: lib.jacobian(lib.np.sort)(array(2, 1, 1))),
    Case("limit", "x**0. at 0", lambda lib: lib.grad(lambda x: x**0.0)(at(0.0))),
    Case("limit", "x**1. at 0", lambda lib: lib.grad(lambda x: x**1.0)(at(0.0))),
    Case("limit", "second derivative of x**2. at 0", lambda lib: lib.grad(lib.grad(lambda x: x**2.0))(at(0.0))),
    Case("limit", "prod of [0, 2, 3]", lambda lib: lib.grad(lib.np.prod)(array(0, 2, 3))),
    Case("limit", "Hessian of prod at [0, 0, 3]", lambda lib: lib.hessian(lib.np.prod)(array(0, 0, 3))),
    Case("limit", "sinc at 0", lambda lib: lib.grad(lib.np.sinc)(at(0.0))),
    Case("limit", "second derivative of sinc at 0", lambda lib: lib.grad(lib.grad(lib.np.sinc))(at(0.0))),
    Case("limit", "xlogy(x, y) at 0, 2", lambda lib: every(lib.grad, lib.special.xlogy, at(0.0), at(2.0))),
    Case(
        "limit",
        "logaddexp(x, y) at -inf, -inf",
        lambda lib: every(lib.grad, lib.np.logaddexp, at(-numpy.inf), at(-numpy.inf)),
    ),
    Case("infinite", "sqrt at 0", lambda lib: lib.grad(lib.np.sqrt)(at(0.0))),
    Case("infinite", "log at 0", lambda lib: lib.grad(lib.np.log)(at(0.0))),
    Case("undefined", "sqrt(x)**2 at 0", lambda lib: lib.grad(lambda x: lib.np.sqrt(x) ** 2)(at(0.0))),
    Case("undefined", "0 * sqrt(x) at 0", lambda lib: lib.grad(lambda x: 0.0 * lib.np.sqrt(x))(at(0.0))),
    Case("undefined", "arctan2(y, x) at 0, 0", lambda lib: every(lib.grad, lib.np.arctan2, at(0.0), at(0.0))),
    Case(
        "structural zero",
        "where(x > 0, sqrt(x), 0) at 0",
        lambda lib: lib.grad(lambda x: lib.np.where(x > 0, lib.np.sqrt(x), 0.0))(at(0.0)),
    ),
    Case(
        "structural zero",
        "Jacobian of sqrt at [0, 4]",
        lambda lib: lib.jacobian(lib.np.sqrt)(array(0, 4)),
    ),
    Case("step", "floor at 1.5", lambda lib: lib.grad(lib.np.floor)(at(1.5))),
    Case("step", "sign at 0", lambda lib: lib.grad(lib.np.sign)(at(0.0))),
    Case("complex", "abs(z)**2 at 1+2j", lambda lib: lib.grad(lambda z: lib.np.abs(z) ** 2)(at(1.0 + 2.0j))),
    Case("complex", "imag(z) at 1+2j", lambda lib: lib.grad(lib.np.imag)(at(1.0 + 2.0j))),
    Case("complex", "z * z at 1+2j, not declared holomorphic", lambda lib: lib.grad(lambda z: z * z)(at(1.0 + 2.0j))),
    Case("complex", "conj(z) at 1+2j", lambda lib: lib.grad(lib.np.conj)(at(1.0 + 2.0j))),
    Case("dtype", "x * x at the integer 3", lambda lib: lib.grad(lambda x: x * x)(3)),
]


def library(name: str) -> Library | None:
    """The library, or None where it is not installed."""
    try:
        found = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            return None
        raise
    if name == "srcgrad":
        special = importlib.import_module("scipy.special")
        return Library(numpy, special, found.grad, found.hessian, found.jacobian)
    special = importlib.import_module(f"{name}.scipy.special")
    jacobian = found.jacrev if name == "jax" else found.jacobian
    return Library(importlib.import_module(f"{name}.numpy"), special, found.grad, found.hessian, jacobian)


def text(value: Any) -> str:
    """A derivative in a few characters: ``[0, 0.5]``, ``2-4j``."""
    if isinstance(value, list):
        return ", ".join(map(text, value))
    found = numpy.asarray(value)
    if found.ndim:
        return f"[{', '.join(text(part) for part in found)}]"
    if found.dtype.kind == "c":
        return f"{number(found.real)}{'' if numpy.signbit(found.imag) else '+'}{number(found.imag)}j"
    return number(found)


def number(value: Any) -> str:
    return f"{float(value) + 0.0:.4g}"  # the sign of a zero is not what this table is about


def measure(case: Case, found: Library | None) -> str:
    if found is None:
        return "–"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text(case.measure(found))
    except Exception as error:
        return type(error).__name__


def table(names: tuple[str, ...] = LIBRARIES) -> list[str]:
    """The lines of the table, in Markdown."""
    found = [library(name) for name in names]
    lines = [f"| | derivative of | {' | '.join(names)} |", f"|--|--|{'--|' * len(names)}"]
    for case in CASES:
        lines.append(f"| {case.topic} | {case.what} | {' | '.join(measure(case, one) for one in found)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
