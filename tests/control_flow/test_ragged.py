"""Slices whose length changes from trip to trip: their loops stay loops, and only what is in the slice counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.lowering import lower
from tests.control_flow.sliced import BACKENDS, Function, check, on_backends, operations


# --- algorithms as textbooks have them -----------------------------------------------------------------------------
def forward_substitution(A: Any) -> Any:
    x = np.zeros(len(A))
    for i in range(len(A)):
        x[i] = (A[i, -1] - A[i, :i] @ x[:i]) / A[i, i]
    return x


def back_substitution(A: Any) -> Any:
    n = len(A)
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (A[0, i] - np.dot(A[i, i + 1 :], x[i + 1 :])) / A[i, i]
    return x


def cholesky_by_rows(A: Any) -> Any:
    L = np.zeros_like(A)
    for i in range(len(A)):
        for j in range(i + 1):
            rest = A[i, j] + A[j, i] - np.sum(L[i, :j] * L[j, :j])
            if i == j:
                L[i, j] = np.sqrt(rest)
            else:
                L[i, j] = rest / L[j, j]
    return L


def cholesky_in_place(A: Any) -> Any:
    A = A + A.T
    for k in range(len(A)):
        A[k, k] = np.sqrt(A[k, k])
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k + 1 :, k])
    return np.diag(A)


def lu_with_pivots(A: Any) -> Any:
    A = A[::-1].copy()
    n = len(A)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        A[[k, p]] = A[[p, k]]
        A[k + 1 :, k] = A[k + 1 :, k] / A[k, k]
        A[k + 1 :, k + 1 :] -= A[k + 1 :, k, None] * A[k, None, k + 1 :]
    return np.diag(A)


def elimination(A: Any) -> Any:
    A, b = A.copy(), A[:, 0].copy()
    for k in range(len(b) - 1):
        for i in range(k + 1, len(b)):
            factor = A[i, k] / A[k, k]
            A[i, k:] -= factor * A[k, k:]
            b[i] -= factor * b[k]
    return b


def gram_schmidt(A: Any) -> Any:
    Q = np.zeros_like(A)
    for k in range(A.shape[1]):
        v = A[:, k] - Q[:, :k] @ (Q[:, :k].T @ A[:, k])
        Q[:, k] = v / np.linalg.norm(v)
    return Q


def householder(A: Any) -> Any:
    A = A.copy()
    for k in range(len(A) - 1):
        v = A[k:, k].copy()
        v[0] += np.sign(v[0]) * np.linalg.norm(v)
        v /= np.linalg.norm(v)
        A[k:, k:] -= 2 * np.outer(v, v @ A[k:, k:])
    return np.abs(np.diag(A))


def determinant_by_columns(A: Any) -> Any:
    """Indices from the end, slices of slices, rows as columns."""
    A, found = A.copy(), 1.0
    for k in range(len(A) - 1):
        part = A[k:, k:]
        found = found * part[0, 0] / 20
        part[1:, 1:] -= part[1:, 0].reshape(-1, 1) @ part[0, 1:].reshape(1, -1) / part[0, 0]
        part[-1] += 0.1 * part[0]
    return found * A[-1, -1]


MATRICES = [
    forward_substitution, back_substitution, cholesky_by_rows, cholesky_in_place, lu_with_pivots, elimination,
    gram_schmidt, householder, determinant_by_columns,
]  # fmt: skip


def prefixes(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        y[i] = np.mean(x[:i]) * np.max(x[i:]) + np.min(x[:i]) * np.prod(1 + 0.1 * x[i:])
    return y


def spread_of_prefixes(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(2, len(x)):
        y[i] = np.var(x[:i]) + x[:i].std(ddof=1) * np.linalg.norm(x[i - 2 :], 1) - np.vdot(x[:i], x[:i])
    return y


def autocorrelation(x: Any) -> Any:
    y = np.zeros_like(x)
    for k in range(len(x)):
        y[k] = np.sum(x[: len(x) - k] * x[k:])
    for k in range(1, len(x)):
        y[k] += np.dot(x[:-k], x[k:]) + np.sum(x[-k:])
    return y


def centred(x: Any) -> Any:
    """Windows that the ends cut off."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = np.mean(x[max(0, i - 3) : i + 4]) + np.sum(x[i : min(i + 5, len(x))] * x[i : min(i + 5, len(x))])
        y[i] += np.sum(x[: max(i, 0)]) + np.sum(x[i // 2 : i // 2 + 12]) * np.prod(x[i % 7 : i % 7 + 16])
        y[i] *= x[max(i - 2, 0) : i + 9].mean() + np.mean(x[i : i + 3])
    return y


def renewal(x: Any) -> Any:
    h = np.zeros_like(x)
    for i in range(1, len(x)):
        h[i] = x[i] + 0.1 * np.dot(x[:i], h[:i][::-1]) + np.sum(x[i - 1 :: -1] * x[:i]) + x[: i // 2 + 1].sum()
    return h


def levinson_durbin(x: Any) -> Any:
    r, a = np.concatenate([[20 + x[0]], x[1:]]), np.zeros(len(x))
    a[0], error = 1.0, 20 + x[0]
    for k in range(1, len(x)):
        reflection = -np.sum(a[:k] * r[k:0:-1]) / error
        a[1 : k + 1] += reflection * a[:k][::-1]
        error = error * (1 - reflection**2)
    return a * error


def written(x: Any) -> Any:
    y = x.copy()
    for i in range(1, len(x)):
        y[i:] = y[i:] * 0.5 + y[:-i] * x[i]
        y[-i:] += 1.0
        y[:i] = 0.5
        y[i:][::-1] *= np.tanh(y[:-i])
        y[: i + 1][-1] = x[i] ** 2
        y[1:i] = y[: i - 1]
        y[i:] -= y[i:].cumsum() / len(y[i:])
    return y


def counted(x: Any) -> Any:
    """Lengths as numbers, items one by one, arrays as long as a slice."""
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        v = x[:i]
        y[i] = np.sum(v) / len(v) + v[0] * v[-1] + np.sum(v[1:] * v[:-1]) + v.size * v.shape[0]
        for j in range(len(v)):
            y[i] += v[j] * 0.1 * j
        for item in x[i:]:
            y[i] += item**2
        w = np.zeros(i)
        w[:] = np.arange(i) * v
        w[1:] += np.arange(1, i)
        y[i] += np.sum(w) + sum(v) + max(v) + np.sum(np.diff(v) ** 2) + np.sum(np.clip(v, -0.5, 0.5) ** 2)
    return y


def integrated(x: Any) -> Any:
    """Integrals up to each place, of one function and of two, of which the rows are read one by one."""
    y, both = np.zeros_like(x), np.stack([x, np.sin(x)])
    for i in range(1, len(x)):
        first, second = both[:, : i + 1]
        y[i] = np.trapezoid(first * second, np.arange(i + 1) + second) + len(both[:, :i])
        y[i] += np.sum(np.trapezoid(both[:, : i + 1], x[: i + 1])) + np.trapezoid(x[: i + 1], dx=0.5)
    return y


def spaced(x: Any) -> Any:
    """Ranges by other steps than 1, whose lengths are the loop's numbers or halves of these."""
    total = x[0]
    for i in range(len(x) - 1, 0, -1):
        powers = np.abs(x[i]) ** (0.1 * np.arange(i - 1, -i, -2)) * x[:i]
        total = total + np.sum(powers) + np.sum(np.arange(0, 3 * i, 3) * x[1 : i + 1])
        total = total + np.sum(np.cos(x[i] * np.arange(1, i + 1, 2)))
    return total


def chosen(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(len(x)):
        v = x[i:]
        w = np.where(v > 0, v, 0.1 * v)
        if np.any(v > 1.0) and v.mean() > -5:
            w *= 2.0
        w[np.argmin(w)] = 0.0 if False else w[0]
        y[i] = np.sum(w) + np.count_nonzero(v > 0)
    return y


def left_early(x: Any) -> Any:
    total = 0.0
    for i in range(1, len(x)):
        total += np.sum(x[:i] ** 2)
        if total > 40:
            break
    return total * x


def counting_down(x: Any) -> Any:
    i, total = len(x) - 1, 0.0
    while i > 0:
        total = total + np.sum(x[:i]) * x[i]
        i -= 1
    return total


VECTORS = [
    prefixes, spread_of_prefixes, autocorrelation, centred, renewal, levinson_durbin, written, counted, left_early,
    counting_down, integrated, spaced,
]  # fmt: skip


def vector(size: int) -> Any:
    return np.random.default_rng(size).normal(size=size)


def matrix(size: int) -> Any:
    found = np.random.default_rng(size).normal(size=(size, size))
    return found @ found.T / size + 4 * np.eye(size)


CASES = [(f, vector(21)) for f in VECTORS] + [(f, matrix(18)) for f in MATRICES]
NAMES = [f.__name__ for f, _ in CASES]


ON_XLA = (prefixes, centred, renewal, written, lu_with_pivots, gram_schmidt)


@pytest.mark.parametrize(("f", "x", "backend"), on_backends(CASES, ON_XLA))
def test_values_and_derivatives(f: Function, x: Any, backend: str) -> None:
    check(f, x, backend, rtol=1e-5)


@pytest.mark.parametrize(("f", "x"), CASES, ids=NAMES)
def test_the_loops_are_one_region_however_long(f: Function, x: Any) -> None:
    """From 80 on, of which slices of up to 20 elements are windows."""
    assert operations(f, (100,) * x.ndim) == operations(f, (80,) * x.ndim)


SECOND_ORDER = [prefixes, renewal, centred, forward_substitution, cholesky_in_place]


@pytest.mark.parametrize("f", SECOND_ORDER, ids=lambda f: f.__name__)
def test_second_derivatives(f: Function) -> None:
    x = next(x for other, x in CASES if other is f)
    slope = sg.grad(lambda x: np.sum(f(x) ** 2))
    direction = np.sin(np.arange(x.size)).reshape(x.shape)
    found = sg.jvp(slope, (x,), (direction,))[1]
    difference = (slope(x + 1e-6 * direction) - slope(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(found, difference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("f", [prefixes, written, counted, elimination, gram_schmidt], ids=lambda f: f.__name__)
def test_a_batch_is_its_members(f: Function) -> None:
    x = next(x for other, x in CASES if other is f)
    both = np.stack([x, x + 0.1])
    np.testing.assert_allclose(sg.vmap(f)(both), np.stack([f(x), f(x + 0.1)]), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64])
def test_dtypes_are_numpys(dtype: Any) -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        for i in range(1, len(x)):
            y[i] = np.sum(x[:i]) * 2 + np.prod(x[i:])
            y[i:] += x[i:]
        return y, np.zeros(1) + y

    x = (3 * vector(20)).astype(dtype) if dtype != np.complex128 else vector(20) + 1j * vector(20)
    for found, expected in zip(sg.jit(f)(x), f(x), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == np.float32 else 1e-12)


# --- what is outside of a slice counts nowhere ---------------------------------------------------------------------
def test_values_outside_of_the_slices_are_no_numbers() -> None:
    """What is computed beside the slices is infinite or nan, and so would be its derivatives."""

    def f(x: Any) -> Any:
        y, total = np.zeros(len(x)), 0.0
        for i in range(len(x)):
            y[i] = x[i] ** 2
            part = y[: i + 1]
            total = total + np.sum(np.log(part)) + np.sum(x[: i + 1] / part) + np.max(np.sqrt(part - 0.5 * part[0]))
            total = (
                total
                + (1 / part) @ x[: i + 1]
                + np.dot(x[: i + 1], np.log(part)) / np.mean(part)
                + np.mean(np.log(part)) * np.prod(1 / part[:1])
            )
        return total

    x = np.linspace(1.0, 2.0, 20)
    difference = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
    for backend in BACKENDS:
        np.testing.assert_allclose(sg.jit(f, backend=backend)(x), f(x))
        slope = sg.grad(f, backend=backend)
        np.testing.assert_allclose(np.sum(slope(x)), difference, rtol=1e-6)
        second = sg.jvp(slope, (x,), (np.ones(20),), backend=backend)[1]
        np.testing.assert_allclose(second, (slope(x + 1e-6) - slope(x - 1e-6)) / 2e-6, rtol=1e-5)


def test_empty_slices() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            total = total + np.sum(x[:i]) * np.prod(x[i + 1 :]) + np.linalg.norm(x[:i]) + np.all(x[:i]) - np.any(x[:i])
            total = total + len(x[i:3]) * 2 + len(x[3:i])
            total = total + np.sum(x[i + 2 : i]) + np.sum(x[len(x) :][:i] if False else x[i : i // 2])
        return total

    x = 0.5 + np.abs(vector(19))
    np.testing.assert_allclose(sg.jit(f)(x), f(x))
    assert np.isfinite(sg.grad(f)(x)).all()
    said = sg.explain(sg.jit(f))(x)["how it runs"]
    assert "one region" in said and "unrolled" not in said


@pytest.mark.parametrize(
    ("function", "message"),
    [(np.max, "zero-size array to reduction operation maximum which has no identity"),
     (np.argmin, "attempt to get argmin of an empty sequence")],
)  # fmt: skip
def test_the_extreme_of_nothing_is_numpys_error(function: Any, message: str) -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            total = total + function(x[: i // 2])
        return total

    for call in (f, sg.jit(f), sg.jit(f, backend="numpy")):
        with pytest.raises(ValueError, match=message):
            call(vector(20))


def test_places_of_equal_and_infinite_elements_are_numpys() -> None:
    def f(x: Any) -> Any:
        places = np.zeros(len(x))
        for i in range(len(x)):
            places[i] = np.argmax(x[i:]) + 100 * np.argmin(x[: i + 1])
        return places

    for x in (np.zeros(20), np.full(20, -np.inf), np.full(20, np.inf), np.repeat([1.0, 2.0], 10)):
        np.testing.assert_array_equal(sg.jit(f)(x), f(x))


# --- memory ----------------------------------------------------------------------------------------------------------
def shared(x: Any) -> Any:
    """A slice shows what is written into its array later, in either order, and writes into it."""
    x, total = x.copy(), 0.0
    for i in range(1, len(x)):
        part, other = x[:i], x[:i][::-1]
        x[0] += 0.25
        total = total + part[0] * other[-1] + np.sum(other * part)
        same = part
        same += 0.1
        other[0] = 0.5
        total = total + np.sum(part) + x[i - 1]
        copied = part.copy()
        copied[:] = 7.0
        row = part[None]
        row *= 0.9
    return total + np.sum(x)


def kept(x: Any) -> Any:
    """A slice of the trip before."""
    last, total = x[:1], 0.0
    for i in range(1, len(x)):
        total = total + np.sum(last) * x[i]
        last = x[:i]
    return total + np.sum(last)


def chosen_on_a_path(x: Any) -> Any:
    x, total = x.copy(), 0.0
    for i in range(1, len(x)):
        part = x[:i] if x[i] > 0 else x[i:]
        part *= 0.9
        total = total + np.sum(part)
    return total + np.sum(x)


def in_containers(x: Any) -> Any:
    total = 0.0
    for i in range(1, len(x)):
        pair = {"head": x[:i], "tail": (x[i:], i)}
        head, (tail, place) = pair["head"], pair["tail"]
        total = total + np.sum(head) * np.sum(tail) + place + np.sum(np.multiply(x[0], head) + np.add(x[:1], head))
        total = total + np.sum(x[:1] @ head[:1]) + np.outer(x, head).sum() + np.where(x[i] > 0, x[1:2], head).sum()
    return total


def handed_on(x: Any) -> Any:
    def weighted(v: Any, w: Any = None) -> Any:
        w = np.ones_like(v) if w is None else w
        if not isinstance(v, np.ndarray):
            return 0.0
        return v.sum() if v.ndim != 1 or len(v) == 0 else (v * w).sum() / np.sqrt(len(v))

    total = 0.0
    for i in range(len(x)):
        total = total + weighted(x[:i]) + weighted(np.asarray(x[i:]), w=np.array(x[i:]))
    return total


# --- what is not known of them ---------------------------------------------------------------------------------------
def joined(x: Any) -> Any:
    total = 0.0
    for i in range(1, len(x)):
        total = total + np.sum(np.concatenate([x[:i], x[: i // 2], [1.0]]) ** 2)
    return total


def sorted_parts(x: Any) -> Any:
    total = 0.0
    for i in range(1, len(x)):
        total = total + np.sort(x[:i])[0] + np.median(x[i:]) + x[:i][x[:i] > 0].sum()
    return total


def solved(x: Any) -> Any:
    a, total = np.outer(x, x) + 9 * np.eye(len(x)), 0.0
    for i in range(1, len(x)):
        total = total + np.sum(np.linalg.solve(a[:i, :i], x[:i])) + np.linalg.norm(a[:i, :i], 1)
    return total


def of_other_steps(x: Any) -> Any:
    total = 0.0
    for i in range(1, len(x)):
        total = total + np.sum(x[::i]) + np.sum(x[i::2]) + np.sum(x[-i - 3 : i]) + np.sum(x[i : 2 * i : 3])
    return total


def of_one_length_at_times(x: Any) -> Any:
    """Slices that have as many elements as others in some trips only."""
    total = 0.0
    for i in range(17):
        total = total + np.sum(x[:1] * x[i : i + 1]) + np.sum(x[18 : 19 + i] * x[0]) + np.sum(x[i:17][:1])
        total = total + np.sum(x[:i][:3]) + np.sum(x[:i][2:] ** 2) + np.sum(x[: i // 2] * np.ones(i // 2))
    return total


def with_effects(x: Any) -> Any:
    total = 0.0
    for i in range(1, len(x)):
        text = f"{np.round(x[:i], 1)[0]:.1f} of {len(x[:i])}"
        total = total + np.sum(x[:i]) + len(text)
    return total


OTHERS = [
    shared, kept, chosen_on_a_path, in_containers, handed_on, joined, sorted_parts, solved, of_other_steps,
    of_one_length_at_times, with_effects, chosen,
]  # fmt: skip


LONG = (sorted_parts, solved)
"""Those that are unrolled to programs that LLVM takes seconds for."""


@pytest.mark.parametrize(
    ("f", "backend"),
    [
        pytest.param(f, backend, marks=[pytest.mark.slow] * (backend == "llvm" and f in LONG), id=f"{backend}-{name}")
        for f, name in ((f, f.__name__) for f in OTHERS)
        for backend in ("llvm", "numpy")
    ],
)
def test_slices_are_arrays(f: Function, backend: str) -> None:
    x = vector(22)
    with sg.use_backend(backend):
        np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-10)
        sg.testing.check_grads(lambda x: np.sum(f(x)), (x,), order=1)


@pytest.mark.parametrize("f", [shared, in_containers, handed_on], ids=lambda f: f.__name__)
def test_these_loops_are_one_region(f: Function) -> None:
    said = sg.explain(sg.jit(f))(vector(22))["how it runs"]
    assert "one region" in said and "unrolled" not in said


def test_few_slices_of_a_long_axis_are_read_as_they_are() -> None:
    def lags(x: Any) -> Any:
        found = np.zeros(20)
        for k in range(20):
            found[k] = np.dot(x[: len(x) - k], x[k:])
        return found

    x = vector(5000)
    np.testing.assert_allclose(sg.jit(lags)(x), lags(x))
    program = lower(sg.jit(lags), (x,), {}).traced
    assert not any(operation.op.name == "gather" for operation in program.walk())


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x, i: x[:i] + x[: i + 1], ValueError),
        (lambda x, i: np.dot(x[:i], x), ValueError),
        (lambda x, i: x[: 2 + i // 3] + x[: 2 + i // 2], ValueError),
        (lambda x, i: x[: max(i, 5)] + x[: max(i, 6)], ValueError),
        (lambda x, i: x[: max(i, 5)] + x[: min(i, 5)], ValueError),
        (lambda x, i: x[: i + 1] + x[: i + 2], ValueError),
        (lambda x, i: x[:i][i], IndexError),
        (lambda x, i: x[:i].__setitem__(slice(None), x), ValueError),
        (lambda x, i: x[:i].nothing, AttributeError),
        (lambda x, i: np.cumsum(x[:i], axis=1), ValueError),
    ],
)
def test_errors_are_numpys(f: Any, error: type[Exception]) -> None:
    def program(x: Any) -> Any:
        for i in range(3, len(x) - 1):
            f(x, i)
        return x

    with pytest.raises(error):
        program(vector(22))
    with pytest.raises(error):
        sg.jit(program)(vector(22))


# --- random programs -----------------------------------------------------------------------------------------------
BOUNDS: dict[str, Callable[[int, int], int | None]] = {
    "None": lambda i, n: None,
    "0": lambda i, n: 0,
    "2": lambda i, n: 2,
    "-1": lambda i, n: -1,
    "n": lambda i, n: n,
    "i": lambda i, n: i,
    "i + 1": lambda i, n: i + 1,
    "i + 3": lambda i, n: i + 3,
    "n - i": lambda i, n: n - i,
    "-i": lambda i, n: -i,
    "-i - 1": lambda i, n: -i - 1,
    "max(i - 2, 0)": lambda i, n: max(i - 2, 0),
    "min(i + 2, n)": lambda i, n: min(i + 2, n),
    "i // 2": lambda i, n: i // 2,
    "i - 1": lambda i, n: i - 1,
    "i % 5": lambda i, n: i % 5,
}
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda v, w: np.sum(v),
    "product": lambda v, w: np.prod(1 + 0.1 * v),
    "both": lambda v, w: np.sum(v * v) + 0.1 * np.sum(w),
    "last": lambda v, w: np.sum(np.cumsum(v)),
    "turned": lambda v, w: np.dot(v, v[::-1]),
    "mean": lambda v, w: np.sum(v - np.sum(v)) / (1 + len(v)),
    "outer": lambda v, w: np.sum(np.outer(v, w)),
    "columns": lambda v, w: np.sum(v[:, None] @ w[None, :]),
    "norm": lambda v, w: np.sum(np.sqrt(1 + v * v)),
    "power": lambda v, w: np.sum(v**3 - 2.0 ** (0.1 * v)),
}


def drawn(names: list[str]) -> Callable[[Any], Any]:
    start, stop, other_start, other_stop, step, target_start, target_stop = names
    a, b, c, d = BOUNDS[start], BOUNDS[stop], BOUNDS[other_start], BOUNDS[other_stop]
    s, t, what = BOUNDS[target_start], BOUNDS[target_stop], STEPS[step]

    def f(x: Any) -> Any:
        y, total, n = x.copy(), 0.0, len(x)
        for i in range(n):
            total = total + what(y[a(i, n) : b(i, n)], x[c(i, n) : d(i, n)])
            y[s(i, n) : t(i, n)] *= 0.9
            y[s(i, n) : t(i, n)] += np.tanh(0.01 * total)
        return np.tanh(0.01 * total) + 0.1 * y

    return f


bounds = st.sampled_from(list(BOUNDS))


@settings(max_examples=20, deadline=None)
@given(
    st.tuples(bounds, bounds, bounds, bounds, st.sampled_from(list(STEPS)), bounds, bounds),
    st.sampled_from(["llvm", "numpy"]),
)
def test_random_slices(names: tuple[str, ...], backend: str) -> None:
    f, x = drawn(list(names)), np.cos(np.arange(17.0))
    np.testing.assert_allclose(sg.jit(f, backend=backend)(x), f(x), rtol=1e-9, atol=1e-12)
    direction = np.sin(1 + np.arange(17.0))
    reference = f(x + 1e-30j * direction).imag / 1e-30
    np.testing.assert_allclose(sg.jvp(f, (x,), (direction,), backend=backend)[1], reference, rtol=1e-8, atol=1e-11)
    _, pull = sg.vjp(f, x, backend=backend)
    np.testing.assert_allclose(np.sum(pull(direction)[0] * direction), np.sum(reference * direction), rtol=1e-8)
