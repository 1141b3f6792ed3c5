"""Arrays that a function makes read-only: NumPy's errors where it writes into them or into views of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import UnsupportedError

X = np.array([1.0, 2.0, 3.0])


def locked(x: Any) -> Any:
    y = x * 2.0
    y.flags.writeable = False
    return y


def element(x: Any) -> Any:
    y = locked(x)
    y[0] = 1.0
    return y.sum()


def by_method(x: Any) -> Any:
    y = x * 2.0
    y.setflags(write=False)
    y += 1.0
    return y.sum()


def by_letter(x: Any) -> Any:
    y = x * 2.0
    y.flags["W"] = False
    np.multiply(x, 2.0, out=y)
    return y.sum()


def part(x: Any) -> Any:
    locked(x)[1:][0] = 5.0
    return x.sum()


def transposed(x: Any) -> Any:
    locked(x).reshape(3, 1).T[0] = 5.0
    return x.sum()


def method(x: Any) -> Any:
    locked(x).fill(1.0)
    return x.sum()


def in_a_loop(x: Any) -> Any:
    y = locked(x)
    for k in range(100):
        y[k % 3] = x[0] * k
    return y.sum()


def under_a_condition(x: Any) -> Any:
    y = locked(x)
    if x[0] > 0.0:
        y[0] = 0.0
    return y.sum()


def unlocked_part(x: Any) -> Any:
    y = locked(x)[1:]
    y.flags.writeable = True
    return y.sum()


def broadcast(x: Any) -> Any:
    y = np.broadcast_to(x, (2, 3))
    y[0] = 1.0
    return y.sum()


def part_of_broadcast(x: Any) -> Any:
    y = np.broadcast_to(x, (2, 3))[0]
    y += 1.0
    return y.sum()


REFUSED = [
    *(element, by_method, by_letter, part, transposed, method, in_a_loop, under_a_condition, unlocked_part),
    *(broadcast, part_of_broadcast),
]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("transform", [sg.grad, sg.jit])
@pytest.mark.parametrize("f", REFUSED)
def test_writes_into_read_only_arrays_are_refused(f: Callable[..., Any], transform: Any, backend: str) -> None:
    with pytest.raises(ValueError, match=r"read-only|WRITEABLE") as expected:
        f(X.copy())
    with pytest.raises(ValueError, match=re.escape(str(expected.value))):
        transform(f, backend=backend)(X.copy())


def view_made_before(x: Any) -> Any:
    y = x * 2.0
    before = y[1:]
    y.flags.writeable = False
    before[0] = x[0]
    return np.sum(y * x)


def unlocked(x: Any) -> Any:
    y = locked(x)
    y.flags.writeable = True
    y[0] = 5.0
    return np.sum(y * x)


def locked_view(x: Any) -> Any:
    y = x * 2.0
    view = y.view()
    view.setflags(write=False)
    y[0] = x[1]
    return np.sum(view * x) if y.flags.writeable and not view.flags["WRITEABLE"] else 0.0


def copied(x: Any) -> Any:
    y, z = locked(x).copy(), locked(x) + 1.0
    y[0], z[1] = 0.0, 1.0
    return np.sum(y * z * x)


def caught(x: Any) -> Any:
    y = locked(x)
    try:
        y[0] = 1.0
    except ValueError:
        return np.sum(y * x)
    return x[0]


def argument(x: Any) -> Any:
    x.flags.writeable = False
    return np.sum(x * x) if not x.flags.writeable else 0.0


def on_one_path(x: Any) -> Any:
    y = x * 2.0
    if x[0] > 1.5:
        y.flags.writeable = False
    if y.flags.writeable:
        y[0] = 0.0
    return np.sum(y * x)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [view_made_before, unlocked, locked_view, copied, caught, argument, on_one_path])
def test_what_may_be_read_and_written_is(f: Callable[..., Any], backend: str) -> None:
    for x in (X, X + 1.0):
        value, slope = sg.value_and_grad(f, backend=backend)(x.copy())
        assert value == f(x.copy())
        steps = 1e-6 * np.eye(3)
        differences = [(f(x + step) - f(x - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(slope, differences, rtol=1e-7, atol=1e-7)


def test_jit_makes_the_callers_array_read_only() -> None:
    x = X.copy()
    with pytest.warns(sg.RetraceWarning):
        assert sg.jit(argument)(x) == 14.0
    assert not x.flags.writeable
    x = X.copy()
    sg.grad(argument)(x)
    assert x.flags.writeable


def test_flags_of_traced_arrays_are_shown_and_set_as_numpy_does() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = locked(x)
        seen.append(repr(y.flags) == repr(locked(np.ones(3)).view().flags))
        y.flags.aligned = True
        y.flags.contiguous = True
        return y.sum()

    with pytest.raises(AttributeError):
        f(X)
    with pytest.raises(UnsupportedError, match="not writable"):
        sg.grad(f)(X)
    assert all(seen[1:])


# --- arguments and captured arrays that are read-only --------------------------------------------------------------


def doubled(x: Any) -> Any:
    x *= 2.0
    return x.sum()


WAYS = [sg.grad, sg.jacfwd, sg.hessian, lambda f: lambda x: sg.vjp(f, x), lambda f: lambda x: sg.vmap(f)(x[None])]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("transform", WAYS)
def test_a_read_only_argument_is_not_written_into_as_if_it_were_a_copy(
    transform: Callable[..., Any], backend: str
) -> None:
    """The program was made for an array that may be written into; the error shows the line that writes."""
    with sg.use_backend(backend):
        of_x = transform(doubled)
        for _ in range(5):  # the later calls are machine code's
            of_x(X.copy())
        still = X.copy()
        still.flags.writeable = False
        with pytest.raises(ValueError, match="read-only") as caught:
            of_x(still)
        of_x(X.copy())
    assert isinstance(caught.value, sg.errors.MutationError) is (transform is not WAYS[-1])  # which runs it as it is
    assert caught.value.args and (transform is WAYS[-1] or "x *= 2.0" in str(caught.value))
    assert (still == X).all()


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_read_only_captured_array_is_not_written_into(backend: str) -> None:
    table = np.ones(3)

    def f(x: Any) -> Any:
        table[0] = x
        return table.sum() * x

    g = sg.grad(f, backend=backend)
    assert [g(2.0) for _ in range(5)] == [6.0] * 5
    table.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        g(2.0)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_what_a_function_does_about_a_read_only_argument_is_done(backend: str) -> None:
    def f(x: Any) -> Any:
        try:
            x[0] = 1.0
        except ValueError:
            x = 3.0 * x
        return np.sum(x * x)

    still = X.copy()
    still.flags.writeable = False
    g = sg.grad(f, backend=backend)
    for _ in range(2):
        np.testing.assert_allclose(g(X.copy()), [0.0, 4.0, 6.0])
        np.testing.assert_allclose(g(still), 18.0 * X)


INSIDE: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "a checkpoint": (sg.grad, sg.checkpoint(doubled)),
    "a map": (sg.grad, lambda x: np.sum(sg.vmap(doubled)(x[None]))),
    "a gradient in a map": (sg.vmap, lambda x: sg.grad(doubled)(x)),
    "a gradient under jit": (sg.jit, sg.grad(doubled)),
    "a gradient of a gradient": (sg.grad, lambda x: np.sum(sg.grad(doubled)(x) * x)),
    "a pullback": (sg.jacrev, lambda x: sg.vjp(doubled, x)[1](1.0)[0]),
    "what is captured": (sg.grad, lambda x: sg.checkpoint(lambda c: doubled(x) * c)(2.0)),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("inside", INSIDE)
def test_a_transform_inside_does_not_write_into_a_read_only_argument(inside: str, backend: str) -> None:
    transform, f = INSIDE[inside]
    g = transform(f, backend=backend)
    given = X[None] if transform is sg.vmap else X
    wanted = [g(given.copy()) for _ in range(5)]
    still = given.copy()
    still.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        g(still)
    np.testing.assert_array_equal(g(given.copy()), wanted[0])
    assert (still == given).all()


@pytest.mark.parametrize("make", [locked, lambda x: np.broadcast_to(x, (2, 3))])
def test_what_a_function_makes_read_only_is_so_for_transforms_inside(make: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        sg.grad(lambda x: sg.checkpoint(doubled)(make(x)))(X)
    np.testing.assert_array_equal(sg.grad(lambda x: sg.checkpoint(doubled)(make(x).copy()))(X) > 0.0, True)


# --- diagonals ------------------------------------------------------------------------------------------------------


def diagonal(x: Any) -> Any:
    """Which NumPy hands out as a view that is read-only until one says otherwise."""
    y = np.outer(x, x)
    d = np.diagonal(y, 1)
    d.flags.writeable = True
    d[:] = np.sum(x) / x[:2]
    return np.sum(y * np.sin(y)) * (1.0 if d.flags.writeable else 2.0)


def test_a_diagonal_that_is_made_writeable_writes_into_the_matrix() -> None:
    value, slope = sg.value_and_grad(diagonal)(X)
    assert value == pytest.approx(diagonal(X), rel=1e-14)
    steps = 1e-6 * np.eye(3)
    differences = [(diagonal(X + step) - diagonal(X - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(slope, differences, rtol=1e-7)
    assert sg.jit(diagonal, strict=True)(X) == pytest.approx(value, rel=1e-14)


def test_a_view_of_a_diagonal_made_before_it_is_writeable_is_not() -> None:
    def early(x: Any) -> Any:
        d = np.diagonal(np.outer(x, x))
        part = d[:1]
        d.flags.writeable = True
        part[0] = 1.0
        return np.sum(d)

    for f in (early, sg.grad(early)):
        with pytest.raises(ValueError, match="read-only"):
            f(X)


# --- arrays that are to be written into ----------------------------------------------------------------------------


def required(x: Any) -> Any:
    y = np.require(x, np.double, ["W", "C"])
    return np.sum(np.sin(y) * x) if y.flags.writeable else 0.0


def required_and_written(x: Any) -> Any:
    """Which writes into `x`, or into a copy of it."""
    y = np.require(x, np.double, "W")
    for i in range(3):
        y[i] = y[i] * 3.0
    return np.sum(y * x)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("f", [required, required_and_written])
def test_what_is_required_to_be_writeable_is_the_argument_or_a_copy_of_it(f: Callable[..., Any], first: bool) -> None:
    compiled, slope = sg.jit(f), sg.value_and_grad(f)
    for writeable in (first, not first):
        given, expected = X.copy(), X.copy()
        given.flags.writeable = expected.flags.writeable = writeable
        value, found = slope(given)
        assert value == f(expected.copy() if writeable else expected)
        wanted = np.sin(X) + X * np.cos(X) if f is required else (18.0 if writeable else 6.0) * X
        np.testing.assert_allclose(found, wanted)
        assert compiled(given) == f(expected)
        np.testing.assert_array_equal(given, expected)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_an_argument_that_is_only_read_is_required_to_be_writeable_by_one_program() -> None:
    assert sg.jit(lambda x: np.sum(np.require(x, float, "W")), strict=True)(X) == 6.0
