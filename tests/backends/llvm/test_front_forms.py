"""Calls with arguments of all kinds that decide a program are answered in machine code, and others are told apart."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.transformed import SERVED_FROM, Transformed
from tests.backends.llvm.front_support import X, needs_machine, outcome, same, served

pytest.importorskip("llvmlite")

pytestmark = needs_machine
M = np.linspace(0.1, 1.2, 12).reshape(3, 4)


class Kind(enum.Enum):
    SINE = 1
    SQUARE = 2


def of_kind(x: Any, kind: Any) -> Any:
    return np.sum(np.sin(x)) if kind is Kind.SINE or kind is np.sin or kind is True else np.sum(x * x)


def part(x: Any, where: Any) -> Any:
    return np.sum(np.sin(x[where]))


def powers(x: Any, which: Any) -> Any:
    return sum([np.sum(x**k) for k in which])


def cast(x: Any, dtype: Any) -> Any:
    return np.sum(np.sin(x.astype(dtype)))


def times(x: Any, k: Any) -> Any:
    return np.sum(np.sin(x)) * k


FORMS: dict[str, tuple[Callable[..., Any], list[Callable[[], Any]]]] = {
    "enum": (of_kind, [lambda: Kind.SINE, lambda: Kind.SQUARE, lambda: 1]),
    "ufunc": (of_kind, [lambda: np.sin, lambda: np.cos]),
    "NumPy bool": (times, [lambda: np.True_, lambda: np.False_, lambda: True]),
    "NumPy int": (times, [lambda: np.int64(3), lambda: np.int64(-3), lambda: np.int32(3), lambda: 3]),
    "long int": (times, [lambda: int("12345678901"), lambda: -12345678901, lambda: 12345678901 + (1 << 35)]),
    "slice": (
        part, [lambda: slice(1, 5), lambda: slice(0, 5), lambda: slice(1, None), lambda: slice(1, 5, 2), lambda: 3]
    ),
    "range": (powers, [lambda: range(1, 4), lambda: range(1, 3), lambda: range(0, 4, 3), lambda: [1, 2, 3]]),
    "dtype": (cast, [lambda: np.dtype("f4"), lambda: np.dtype("f8"), lambda: np.float32]),
    "class": (cast, [lambda: np.float32, lambda: float]),
    "int keys": (lambda x, p: np.sum(p[1] * x) * p[2], [lambda: {1: X, 2: 3.0}, lambda: {2: 3.0, 1: X}]),
    "rank 0": (times, [lambda: np.array(2.0), lambda: np.array(3.0), lambda: np.array(2.0, ">f8"), lambda: 2.0]),
    "rank 0 of float32": (times, [lambda: np.array(2.0, "f4"), lambda: np.array(2.0), lambda: np.float32(2.0)]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("transform", [sg.grad, sg.jit], ids=lambda t: t.__name__)
def test_arguments_that_decide_the_program_are_answered(form: str, transform: Any, asked: list[Transformed]) -> None:
    code, kinds = FORMS[form]
    f, plain = transform(code, backend="llvm"), transform(code, backend="numpy")
    served(f, X, kinds[0]())
    asked.clear()
    found = f(X, kinds[0]())
    assert not asked
    assert same(found, plain(X, kinds[0]()))
    for kind in kinds * 2:
        for _ in range(SERVED_FROM):
            assert same(outcome(f, X, kind()), outcome(plain, X, kind()))


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "Fortran order": np.asfortranarray,
    "columns": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "rows": lambda a: np.repeat(a, 3, axis=0)[::3],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
    "C order": np.array,
}


def of_two(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y)


@pytest.mark.parametrize("layout", list(LAYOUTS)[:-1])
def test_arrays_in_another_order_are_answered(layout: str, asked: list[Transformed]) -> None:
    f, given = sg.grad(of_two, (0, 1), backend="llvm"), LAYOUTS[layout](M)
    served(f, given, M)
    asked.clear()
    for x in (given, LAYOUTS[layout](M + 1.0)):
        found = f(x, M)
        assert same(found, (np.cos(x) * M, np.sin(x)))
        assert not any(np.shares_memory(each, x) for each in found)
        assert [each.flags.c_contiguous for each in found] == [True, True]
    assert not asked
    for other in LAYOUTS.values():
        for _ in range(2 * SERVED_FROM):
            x, y = other(M), other(M + 2.0)
            assert same(f(x, M), (np.cos(x) * M, np.sin(x)))
            assert same(f(M, y), (np.cos(M) * y, np.sin(M)))


def test_an_array_in_another_order_is_changed_under_jit() -> None:
    def step(u: Any, v: Any) -> Any:
        u[1:] += v[:-1]
        return np.sum(u)

    f, ours, theirs = sg.jit(step, backend="llvm"), np.asfortranarray(M), M.copy()
    for _ in range(3 * SERVED_FROM):
        np.testing.assert_allclose(f(ours, np.asfortranarray(M)), step(theirs, M))
        np.testing.assert_allclose(ours, theirs)


def test_copies_of_arrays_are_given_back() -> None:
    x, y, z = np.asfortranarray(M), np.repeat(M, 2, axis=1)[:, ::2], np.array(2.0)
    f = served(sg.grad(lambda x, y, z: np.sum(np.sin(x) * y) * z, (0, 1, 2), backend="llvm"), x, y, z)
    watched = [x, y, z, x.dtype]
    counts = list(map(sys.getrefcount, watched))
    for turn in range(20_200):
        if turn == 200:
            blocks = sys.getallocatedblocks()
        f(x, y, z)
    assert sys.getallocatedblocks() - blocks < 200
    after = list(map(sys.getrefcount, watched))
    assert [abs(new - old) < 20 for old, new in zip(counts, after, strict=True)] == [True] * len(watched)


CONSTANT: dict[str, tuple[Callable[..., Any], Any]] = {
    "arguments": (lambda a, b: np.sum(a * b + b), (0, 1)),
    "a constant": (lambda a, b: np.sum(3.0 * a), 0),
    "unused": (lambda a, b: np.sum(a), (0, 1)),
    "one value twice": (lambda a, b: np.sum(a + b), (0, 1)),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_gradients_without_operations_are_answered(name: str, asked: list[Transformed]) -> None:
    code, argnums = CONSTANT[name]
    a, b = X.copy(), X + 1.0
    f = served(sg.grad(code, argnums, backend="llvm"), a, b)
    asked.clear()
    first, second = f(a, b), f(a, b)
    assert not asked
    assert same(first, sg.grad(code, argnums, backend="numpy")(a, b))
    found = [each for result in (first, second) for each in (result if isinstance(result, tuple) else (result,))]
    for k, each in enumerate(found):
        assert each.flags.writeable
        assert not any(np.shares_memory(each, other) for other in (a, b, *found[:k]))
