"""What must hold of a random program: oracles that need no right answer but NumPy's own value.

`check` runs all of them and counts what it sees in ``counts``; `check_error` is for programs that NumPy refuses.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import srcgrad as sg
from srcgrad.errors import (
    ConcretizationError,
    DTypeError,
    MissingRuleError,
    MutationError,
    SrcgradError,
    UnsupportedError,
)
from tests.fuzz.programs import Program, fresh, leaves_of, plain, program_of, projected, unseen

RELATIVE, ABSOLUTE = 1e-9, 1e-10
counts: Counter[str] = Counter()
REFUSED_DTYPES = ("complex value to a", "does not take", r"operands differ, .*\bc\d+", "cannot cast ufunc .* output")


def same(left: Any, right: Any, what: str, program: Program, loose: float = 1.0) -> None:
    """Equal to rounding errors, in values, shapes and dtypes.

    But where a condition decides whether a number is one of Python's or of NumPy's, real or complex: then it is of the
    dtype of both.
    """
    left, right = np.asarray(left), np.asarray(right)
    joined = program.branches and {left.dtype.kind, right.dtype.kind} <= set("fc") and not left.shape
    assert left.shape == right.shape and (left.dtype == right.dtype or joined), (
        f"{what}: {left.dtype}{left.shape} and {right.dtype}{right.shape}\n{program!r}"
    )
    if left.dtype != right.dtype:
        loose *= 1e3
    scale = max(1.0, float(np.max(np.abs(right[np.isfinite(right)]), initial=0.0)))
    loose = loose if program.exact else loose * 1e5
    close = np.isclose(left, right, RELATIVE * loose, ABSOLUTE * loose * scale, equal_nan=True)
    assert close.all(), f"{what}:\n{left}\nand\n{right}\n{program!r}"


def all_same(left: Any, right: Any, what: str, program: Program, loose: float = 1.0) -> None:
    if not isinstance(right, (tuple, list)):
        same(left, right, what, program, loose)
        return
    assert len(left) == len(right), f"{what}: {len(left)} and {len(right)} results\n{program!r}"
    for one, other in zip(left, right, strict=True):
        all_same(one, other, what, program, loose)


def differences(f: Callable[..., Any], args: Sequence[Any], position: int) -> tuple[Any, Any]:
    """The gradient of a scalar function by extrapolated central differences, and where they can be trusted.

    They cannot near a kink or a jump: there one-sided differences differ, or smaller steps do not agree.
    """
    flat = np.ravel(np.asarray(args[position], dtype=np.float64))
    gradient, sure = np.zeros(flat.size), np.zeros(flat.size, bool)
    middle = float(f(*fresh(args)))
    for k in range(flat.size):

        def at(step: float, k: int = k) -> float:
            moved = flat.copy()
            moved[k] += step
            given_args = fresh(args)
            given_args[position] = moved.reshape(np.shape(args[position])) if np.ndim(args[position]) else moved[0]
            return float(f(*given_args))

        table, bend = [], 0.0
        for step in (2.0**-9, 2.0**-10, 2.0**-11, 2.0**-12):
            above, below = at(step), at(-step)
            table.append((above - below) / (2 * step))
            bend = abs(above - 2 * middle + below) / step
        first = [(4 * b - a) / 3 for a, b in itertools.pairwise(table)]
        second = [(16 * b - a) / 15 for a, b in itertools.pairwise(first)]
        gradient[k] = second[-1]
        size = max(1.0, abs(second[-1]), abs(middle))
        sure[k] = abs(second[-1] - second[0]) < 1e-7 * size and bend < 0.01 * size
    return gradient.reshape(np.shape(args[position])), sure.reshape(np.shape(args[position]))


def check_values(program: Program) -> None:
    """jit gives NumPy's values and kinds of object, and writes back what the program changes in its arguments."""
    expected_args, given_args = fresh(program.args), fresh(program.args)
    with np.errstate(all="ignore"):
        expected = leaves_of(program_of(program)(*expected_args))
    found = leaves_of(sg.jit(program_of(program))(*given_args))
    assert len(found) == len(expected), repr(program)
    for one, other in zip(found, expected, strict=True):
        same(one, np.asarray(other), "jit and NumPy", program)
        if np.ndim(other):  # results of rank 0 are NumPy scalars, arrays too
            assert isinstance(one, np.ndarray) == isinstance(other, np.ndarray), (
                f"jit gives {type(one)}, NumPy {type(other)}\n{program!r}"
            )
        counts["values"] += 1
        counts["values equal in every bit"] += np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)
    for one, other in zip(given_args, expected_args, strict=True):
        same(one, other, "arguments after jit", program)


def differentiated(program: Program) -> tuple[int, ...]:
    """The real arguments."""
    return tuple(k for k, arg in enumerate(program.args) if np.asarray(arg).dtype.kind == "f")


def check_derivatives(program: Program) -> None:
    """Both modes, the four second orders and differences."""
    numbers = differentiated(program)
    f = program_of(program)
    given_args = fresh(program.args)
    forward = sg.jacfwd(f, numbers)(*given_args)
    backward = sg.jacrev(f, numbers)(*given_args)
    all_same(given_args, list(program.args), "the caller's arguments after a derivative", program)
    all_same(forward, backward, "jacfwd and jacrev", program)
    scalar = projected(program)
    value, gradient = sg.value_and_grad(scalar, numbers)(*fresh(program.args))
    with np.errstate(all="ignore"):
        same(value, np.float64(scalar(*fresh(program.args))), "the value of value_and_grad", program)
        for position, slope in zip(numbers, gradient, strict=True):
            if not program.exact:
                continue
            numeric, sure = differences(scalar, program.args, position)
            same(np.where(sure, slope, 0.0), np.where(sure, numeric, 0.0), "grad and differences", program, 1e3)
            counts["derivatives"] += sure.size
            counts["derivatives with a difference to compare"] += int(sure.sum())
    orders = [outer(inner(scalar, 0), numbers) for outer in (sg.jacfwd, sg.jacrev) for inner in (sg.jacfwd, sg.jacrev)]
    first = orders[0](*fresh(program.args))
    for other in orders[1:]:
        all_same(other(*fresh(program.args)), first, "two second orders", program, 100.0)


def scaled(arg: Any, factor: float) -> Any:
    array = np.asarray(arg)
    return array * array.dtype.type(factor) if array.dtype.kind in "fc" else array


def check_ways(program: Program) -> None:
    """A re-traced function gives what the compiled one gives, and vmap what a loop gives."""
    scalar = projected(program)
    numbers = differentiated(program)
    compiled = sg.grad(scalar, numbers)(*fresh(program.args))
    retraced = sg.grad(unseen(scalar), numbers)(*fresh(program.args))
    all_same(retraced, compiled, "re-traced and compiled", program)
    batch = [np.stack([scaled(arg, factor) for factor in (1.0, 0.9, 1.07)]) for arg in program.args]
    with np.errstate(all="ignore"):
        try:
            rows = [plain(program, [arg[k] for arg in batch]) for k in range(3)]
        except Exception:
            return  # the statements fit the first example only
    if any([np.shape(a) for a in row] != [np.shape(a) for a in rows[0]] for row in rows):
        return
    mapped = leaves_of(sg.vmap(program_of(program))(*batch))
    for one, column in zip(mapped, zip(*rows, strict=True), strict=True):
        assert len(one) == len(column), f"vmap of {len(column)} examples: {len(one)}\n{program!r}"
        for mine, row in zip(one, column, strict=True):
            same(mine, row, "vmap and a loop", program)
    counts["vmaps"] += 1


def check_directions(program: Program) -> None:
    """Along one direction: jvp, grad and differences agree, and calls of a table give the bits of the first ones."""
    numbers, args = np.random.default_rng(11), fresh(program.args)
    along = [np.asarray(numbers.uniform(-1.0, 1.0, np.shape(arg)), np.asarray(arg).dtype) for arg in args]
    scalar, places = projected(program), tuple(range(len(args)))
    slope = sg.value_and_grad(scalar, places)
    value, gradient = slope(*fresh(args))
    pushed, tangent = sg.jvp(scalar, tuple(fresh(args)), tuple(along))
    with np.errstate(all="ignore"):
        same(np.float64(value), np.float64(scalar(*fresh(args))), "the value of value_and_grad", program)
    same(np.float64(pushed), np.float64(value), "the values of jvp and grad", program)
    found = sum(np.sum(one * other, dtype=np.float64) for one, other in zip(gradient, along, strict=True))
    same(np.float64(tangent), np.float64(found), "jvp and grad", program, 10.0)
    for _ in range(6):
        again = slope(*fresh(args))
        assert all(np.array_equal(*pair) for pair in zip(again[1], gradient, strict=True)), f"again:\n{program!r}"
    if program.exact:

        def at(step: Any) -> float:
            return float(scalar(*(arg + float(step) * part for arg, part in zip(args, along, strict=True))))

        with np.errstate(all="ignore"):
            numeric, sure = differences(at, (0.0,), 0)
        same(np.where(sure, found, 0.0), np.where(sure, numeric, 0.0), "grad and differences", program, 1e3)
        counts["directions"] += 1
        counts["directions with a difference to compare"] += int(sure)


def check_curvature(program: Program) -> None:
    """The second derivative along one direction, in three orders of the modes."""
    numbers, args = np.random.default_rng(12), fresh(program.args)
    along = tuple(np.asarray(numbers.uniform(-1.0, 1.0, np.shape(arg)), np.asarray(arg).dtype) for arg in args)
    scalar, places = projected(program), tuple(range(len(args)))

    def pushed(*args: Any) -> Any:
        return sg.jvp(scalar, args, along)[1]

    def pulled(*args: Any) -> Any:
        return sum(np.sum(one * part) for one, part in zip(sg.grad(scalar, places)(*args), along, strict=True))

    first = list(sg.hvp(scalar, tuple(fresh(args)), along))
    for of in (pushed, pulled):
        all_same(list(sg.grad(of, places)(*fresh(args))), first, f"hvp and grad of {of.__name__}", program, 100.0)


def everything(program: Program) -> Callable[..., Any]:
    """One function of the value, both Jacobians, a gradient and a Hessian."""
    f, scalar, numbers = program_of(program), projected(program), differentiated(program)

    def together(*args: Any) -> Any:
        return (
            leaves_of(f(*fresh_tracers(args))),
            sg.jacfwd(f, numbers)(*args),
            sg.jacrev(f, numbers)(*args),
            sg.grad(scalar, numbers)(*args),
            sg.jacfwd(sg.grad(scalar, 0), numbers)(*args),
        )

    return together


def fresh_tracers(args: Sequence[Any]) -> list[Any]:
    """Copies, as part of the program: what one part changes in place, the others do not see."""
    return [np.array(arg) if np.ndim(arg) else arg for arg in args]


def flat(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


def check_backends(program: Program, other: str = "xla") -> None:
    """All derivative programs as one program of another backend give what they give on NumPy, but not at a kink.

    At a kink, or where a sort has equal keys up to rounding, NumPy itself gives something else for the same program
    with arguments moved by rounding errors.
    """
    if any(np.asarray(value).dtype == np.longdouble for value in (*program.args, *program.captured)):
        return
    together = everything(program)
    found = flat(sg.jit(together, backend=other)(*fresh(program.args)))
    expected = flat(sg.jit(together, backend="numpy")(*fresh(program.args)))
    try:
        all_same(found, expected, f"{other} and numpy", program, 1e3)
    except AssertionError:
        moved = [arg * (1 + 3e-14) if np.asarray(arg).dtype.kind in "fc" else arg for arg in program.args]
        moved = [np.asarray(new, np.asarray(old).dtype)[()] for new, old in zip(moved, program.args, strict=True)]
        try:
            all_same(flat(sg.jit(together, backend="numpy")(*fresh(moved))), expected, "moved", program, 1e3)
        except AssertionError:
            counts[f"programs at a kink: {other} is not compared"] += 1
            return
        raise
    counts[f"programs on {other}"] += 1


LOOPS: tuple[Callable[[Program], None], ...] = (check_values, check_directions, check_curvature, check_ways)
"""For programs of long loops, whose Jacobians take long to compile."""


def check(program: Program, xla: bool = False, oracles: Sequence[Callable[[Program], None]] = ()) -> None:
    """All oracles; what srcgrad refuses is counted, and must be refused as unsupported."""
    counts["programs"] += 1
    counts["programs that look at numbers"] += program.branches
    parts = list(oracles or (check_values, check_derivatives, check_ways))
    if xla and not program.branches and importlib.util.find_spec("jax") is not None:
        parts.append(check_backends)
    refused = set()
    for part in parts:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sg.RetraceWarning)
                part(program)
        except SrcgradError as error:
            refused.add(re.sub(r"\[[\d, ]*\]", "[]", str(error).partition("\n")[0]))
            if not documented(error):
                raise AssertionError(f"NumPy runs it, srcgrad raises {error!r}\n{program!r}") from error
    counts.update(f"refused: {kind}" for kind in refused)
    counts["programs refused in part or whole"] += bool(refused)


def documented(error: SrcgradError) -> bool:
    """Whether it is a refusal that the documents name.

    No rule, a value that Python needs, a dtype that an op has no rule for, or a complex number that would lose its
    imaginary part, where NumPy only warns. ``ufunc.at`` of NumPy casts where everything else of it refuses to, and
    writes into arrays that are read-only.
    """
    if isinstance(error, (UnsupportedError, ConcretizationError, MissingRuleError)):
        return True
    if isinstance(error, MutationError) and "read-only" in str(error):
        return True
    return isinstance(error, DTypeError) and any(re.search(text, str(error)) for text in REFUSED_DTYPES)


def check_error(program: Program) -> None:
    """Where NumPy raises, srcgrad raises an error of the same class."""
    expected = None
    try:
        plain(program, program.args)
    except Exception as error:
        expected = error
    counts["faulty programs that NumPy refuses"] += expected is not None
    for transform in (sg.jit, lambda f: sg.jacrev(f, 0)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", sg.RetraceWarning)
                transform(program_of(program))(*fresh(program.args))
        except Exception as error:
            if isinstance(error, SrcgradError) and documented(error) and not isinstance(expected, kinds_of(error)):
                counts[f"refused: {str(error).splitlines()[0]}"] += 1
                continue
            assert expected is not None, f"NumPy runs it, srcgrad raises {error!r}\n{program!r}"
            assert isinstance(error, kinds_of(expected)), f"NumPy: {expected!r}\nsrcgrad: {error!r}\n{program!r}"
        else:
            assert expected is None, f"NumPy raises {expected!r}, srcgrad does not\n{program!r}"


def kinds_of(error: Exception) -> tuple[type[Exception], ...]:
    """The built-in classes of a NumPy error: an AxisError is a ValueError and an IndexError."""
    found = tuple(base for base in (TypeError, ValueError, IndexError, NameError) if isinstance(error, base))
    return found or (type(error),)
