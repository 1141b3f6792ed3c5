"""What derivatives are where mathematics leaves a choice: srcgrad beside JAX, HIPS autograd and PyTorch, measured.

``python benchmarks/policies.py``

Prints the table of docs/policies.md; with ``--write`` it is put there, between the markers. ``xla`` is srcgrad on that
backend. A library that is not installed has no column; the name of an exception is what it raises. All run in double
precision.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import numpy

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a checkout that is not installed measures itself

PAGE = ROOT / "docs" / "policies.md"
START, END = "<!-- measured -->", "<!-- end of what was measured -->"
LIBRARIES = ("srcgrad", "xla", "jax", "autograd", "torch")


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


def matrix(*numbers: float) -> Any:
    return array(*numbers).reshape(2, 2)


def at(number: complex) -> Any:
    """A NumPy scalar: Python's own floats divide by zero in another way."""
    return numpy.asarray(number)[()]


def every(gradient: Callable[..., Any], f: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The gradient in each argument."""
    return [gradient(f, number)(*arguments) for number in range(len(arguments))]


def square_of_abs(lib: Library) -> Callable[..., Any]:
    return lambda x: lib.np.abs(x) ** 2.0


def spectral(lib: Library, f: Callable[[Any], Any]) -> Callable[..., Any]:
    """V f(w) V^T of a symmetric matrix."""

    def found(a: Any) -> Any:
        w, v = lib.np.linalg.eigh(a)
        return (v * f(w)) @ v.T

    return found


def spectrum_dtype(lib: Library) -> str:
    """The dtype that a function which is differentiated sees."""
    seen = []

    def f(a: Any) -> Any:
        values = lib.np.linalg.eigvals(a)
        seen.append(str(values.dtype))
        return lib.np.sum(lib.np.real(values))

    lib.grad(f)(matrix(2, 0, 0, 3))
    return seen[0]


def rebuilt(lib: Library) -> Callable[..., Any]:
    """U s V^T: the matrix itself."""

    def found(a: Any) -> Any:
        u, s, v = lib.np.linalg.svd(a)
        return (u * s) @ v

    return found


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
    Case("kink", "second derivative of abs(x)**2 at 0", lambda lib: lib.grad(lib.grad(square_of_abs(lib)))(at(0.0))),
    Case("kink", "abs at the complex 0", lambda lib: lib.grad(lib.np.abs)(at(0j))),
    Case("tie", "max of [1, 3, 3]", lambda lib: lib.grad(lib.np.max)(array(1, 3, 3))),
    Case("tie", "maximum(x, y) at 1, 1", lambda lib: every(lib.grad, lib.np.maximum, at(1.0), at(1.0))),
    Case("tie", "maximum(x, 0) at 0", lambda lib: lib.grad(lambda x: lib.np.maximum(x, 0.0))(at(0.0))),
    Case("tie", "clip(x, 0, 1) at 1", lambda lib: lib.grad(lambda x: lib.np.clip(x, 0.0, 1.0))(at(1.0))),
    Case("tie", "clip(x, 1, 1) at 1", lambda lib: lib.grad(lambda x: lib.np.clip(x, 1.0, 1.0))(at(1.0))),
    Case("tie", "where(x > 0, x, 0) at 0", lambda lib: lib.grad(lambda x: lib.np.where(x > 0, x, 0.0))(at(0.0))),
    Case(
        "tie",
        "Jacobian of maximum.accumulate at [1, 1]",
        lambda lib: lib.jacobian(lambda x: lib.np.maximum.accumulate(x))(array(1, 1)),
    ),
    Case("tie", "median of [1, 2, 2, 3]", lambda lib: lib.grad(lambda x: lib.np.median(x))(array(1, 2, 2, 3))),
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
    Case("limit", "x**y at 0, 2", lambda lib: every(lib.grad, lambda x, y: x**y, at(0.0), at(2.0))),
    Case("limit", "sqrt(x)**2 at 0", lambda lib: lib.grad(lambda x: lib.np.sqrt(x) ** 2)(at(0.0))),
    Case("limit", "det of [[1, 2], [2, 4]]", lambda lib: lib.grad(lambda a: lib.np.linalg.det(a))(matrix(1, 2, 2, 4))),
    Case(
        "limit",
        "Hessian of det at zeros",
        lambda lib: lib.hessian(lambda a: lib.np.linalg.det(a))(matrix(0, 0, 0, 0)),
    ),
    Case(
        "limit",
        "sum of pinv of [[2, 0], [0, 0]]",
        lambda lib: lib.grad(lambda a: lib.np.sum(lib.np.linalg.pinv(a)))(matrix(2, 0, 0, 0)),
    ),
    Case("infinite", "sqrt at 0", lambda lib: lib.grad(lib.np.sqrt)(at(0.0))),
    Case("infinite", "log at 0", lambda lib: lib.grad(lib.np.log)(at(0.0))),
    Case("infinite", "cbrt at 0", lambda lib: lib.grad(lib.np.cbrt)(at(0.0))),
    Case("infinite", "1 / x at 0", lambda lib: lib.grad(lambda x: 1 / x)(at(0.0))),
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
    Case(
        "symmetric",
        "sum of cholesky of [[1, 0], [0, 1]]",
        lambda lib: lib.grad(lambda a: lib.np.sum(lib.np.linalg.cholesky(a)))(matrix(1, 0, 0, 1)),
    ),
    Case(
        "symmetric",
        "largest of eigvalsh of [[1, 0.5], [0.5, 2]]",
        lambda lib: lib.grad(lambda a: lib.np.linalg.eigvalsh(a)[-1])(matrix(1, 0.5, 0.5, 2)),
    ),
    Case(
        "degenerate",
        "sum(exp(eigvalsh)) of [[1, 0], [0, 1]]",
        lambda lib: lib.grad(lambda a: lib.np.sum(lib.np.exp(lib.np.linalg.eigvalsh(a))))(matrix(1, 0, 0, 1)),
    ),
    Case(
        "degenerate",
        "V exp(w) V.T of [[1, 0], [0, 1]], entry [0, 1]",
        lambda lib: lib.grad(lambda a: spectral(lib, lib.np.exp)(a)[0, 1])(matrix(1, 0, 0, 1)),
    ),
    Case(
        "degenerate",
        "U s V.T of [[1, 0], [0, 1]], entry [0, 1]",
        lambda lib: lib.grad(lambda a: rebuilt(lib)(a)[0, 1])(matrix(1, 0, 0, 1)),
    ),
    Case(
        "degenerate",
        "an eigenvector's entry of [[1, 0], [0, 1]]",
        lambda lib: lib.grad(lambda a: lib.np.linalg.eigh(a)[1][0, 1])(matrix(1, 0, 0, 1)),
    ),
    Case("step", "floor at 1.5", lambda lib: lib.grad(lib.np.floor)(at(1.5))),
    Case("step", "sign at 0", lambda lib: lib.grad(lib.np.sign)(at(0.0))),
    Case("step", "x % 2 at 4", lambda lib: lib.grad(lambda x: x % 2.0)(at(4.0))),
    Case("complex", "abs(z)**2 at 1+2j", lambda lib: lib.grad(lambda z: lib.np.abs(z) ** 2)(at(1.0 + 2.0j))),
    Case("complex", "imag(z) at 1+2j", lambda lib: lib.grad(lib.np.imag)(at(1.0 + 2.0j))),
    Case("complex", "z * z at 1+2j, not declared holomorphic", lambda lib: lib.grad(lambda z: z * z)(at(1.0 + 2.0j))),
    Case("complex", "conj(z) at 1+2j", lambda lib: lib.grad(lib.np.conj)(at(1.0 + 2.0j))),
    Case(
        "complex",
        "the dtype of eigvals of a real matrix",
        spectrum_dtype,
    ),
    Case("dtype", "x * x at the integer 3", lambda lib: lib.grad(lambda x: x * x)(3)),
]


def on_xla(transform: Callable[..., Any]) -> Callable[..., Any]:
    """The transform, on the backend of that name."""

    def made(*arguments: Any, **options: Any) -> Any:
        return transform(*arguments, backend="xla", **options)

    return made


def library(name: str) -> Library | None:
    """The library, or None where it is not installed."""
    try:
        found = importlib.import_module({"xla": "jax"}.get(name, name))
        if name == "xla":
            found = importlib.import_module("srcgrad")
    except ModuleNotFoundError as error:
        if error.name in (name, "jax"):
            return None
        raise
    if name in ("srcgrad", "xla"):
        special = importlib.import_module("scipy.special")
        transforms = (found.grad, found.hessian, found.jacobian)
        return Library(numpy, special, *(map(on_xla, transforms) if name == "xla" else transforms))
    if name == "torch":
        return torch_library(found)
    special = importlib.import_module(f"{name}.scipy.special")
    jacobian = found.jacrev if name == "jax" else found.jacobian
    return Library(importlib.import_module(f"{name}.numpy"), special, found.grad, found.hessian, jacobian)


def torch_library(torch: Any) -> Library:
    """PyTorch under NumPy's names."""

    def tensor(value: Any) -> Any:
        return torch.tensor(value)

    def accepting(f: Callable[..., Any]) -> Callable[..., Any]:
        """Numbers become tensors where a function takes only those."""
        return lambda *xs, **options: f(*[x if torch.is_tensor(x) else tensor(x) for x in xs], **options)

    def grad(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
        def gradient(*arguments: Any) -> Any:
            # Inside another derivative the arguments are tensors already.
            tensors = [x if torch.is_tensor(x) else tensor(x) for x in arguments]
            x = tensors[argnums]
            tensors[argnums] = x if x.requires_grad else x.requires_grad_()
            result = f(*tensors)
            if not result.requires_grad:
                return torch.zeros_like(x)
            return torch.autograd.grad(result, tensors[argnums], create_graph=True)[0]

        return gradient

    names = types.SimpleNamespace(
        **{name: accepting(getattr(torch, name)) for name in (
            "abs", "arctan2", "exp", "floor", "hypot", "imag", "logaddexp", "maximum", "prod", "sign", "sinc", "sqrt",
            "log", "sum", "where",
        )},
        std=lambda x: torch.std(x, correction=0),
        conj=lambda x: torch.conj(x).resolve_conj(),
        max=torch.amax,
        median=torch.median,
        clip=torch.clamp,
        sort=lambda x: torch.sort(x, stable=True).values,
        linalg=torch.linalg,
    )  # fmt: skip
    names.maximum.accumulate = lambda x: torch.cummax(x, 0).values
    second = torch.autograd.functional
    return Library(
        names,
        torch.special,
        grad,
        lambda f: lambda x: second.hessian(f, tensor(x)),
        lambda f: lambda x: second.jacobian(f, tensor(x)),
    )


def text(value: Any) -> str:
    """A derivative in a few characters: ``[0, 0.5]``, ``2-4j``."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return ", ".join(map(text, value))
    found = numpy.asarray(value.detach().resolve_conj() if hasattr(value, "detach") else value)
    if found.ndim:
        return f"[{', '.join(text(part) for part in found)}]"
    if found.dtype.kind == "c":
        return f"{number(found.real)}{'' if numpy.signbit(found.imag) else '+'}{number(found.imag)}j"
    return number(found)


def number(value: Any) -> str:
    """Four digits; a rounding error is 0, and the sign of a zero is not what this table is about."""
    return f"{0.0 if abs(float(value)) < 1e-14 else float(value):.4g}"


def measure(case: Case, found: Library) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text(case.measure(found))
    except Exception as error:
        return type(error).__name__


def table(names: tuple[str, ...] = LIBRARIES) -> list[str]:
    """The lines of the table, in Markdown."""
    found = {name: lib for name in names if (lib := library(name)) is not None}
    lines = [f"| | derivative of | {' | '.join(found)} |", f"|--|--|{'--|' * len(found)}"]
    for case in CASES:
        lines.append(f"| {case.topic} | {case.what} | {' | '.join(measure(case, lib) for lib in found.values())} |")
    return lines


def write(lines: list[str]) -> None:
    """Put the table between the markers of docs/policies.md."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{chr(10).join(lines)}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write(table())
    else:
        print("\n".join(table()))
