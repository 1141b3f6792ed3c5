"""Effects in regions run as often as Python would; checkpoints keep less, and change nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.transforms.derivatives import hvp, value_and_grad
from srcgrad.ir.verify import verify
from tests.ir.control.programs import as_float, compiled, derivative, interpreted, nestings, trace
from tests.ir.control.tracing import CURRENT, F64, at, check, cond, for_, read, sin, spread, total, vector, while_


def told(x: Any) -> None:
    CURRENT[-1].emit_operation(REGISTRY["host_call"], [read(x)], {"site": 0, "results": ()})


def in_while(x):  # type: ignore[no-untyped-def]
    def body(i, s):  # type: ignore[no-untyped-def]
        check(s < 50.0, "too large")
        told(s)
        return i + 1, s * x

    return while_(lambda i, s: i < 6, body, np.int64(0), x)[1]


def in_for(x):  # type: ignore[no-untyped-def]
    def body(i, s):  # type: ignore[no-untyped-def]
        check(s < 50.0, "too large")
        told(s)
        return s * x

    return for_(6, body, x)[0]


def in_cond(x):  # type: ignore[no-untyped-def]
    def then(y):  # type: ignore[no-untyped-def]
        check(y < 3.0, "then")
        told(y)
        return y * 2.0

    def orelse(y):  # type: ignore[no-untyped-def]
        check(y > -3.0, "else", "IndexError")
        told(y * 10.0)
        return y * 3.0

    return for_(2, lambda i, s: cond(s > 0.0, then, orelse, s)[0], x)[0]


def in_condition(x):  # type: ignore[no-untyped-def]
    def going(i, s):  # type: ignore[no-untyped-def]
        check(s < 50.0, "too large")
        told(s)
        return i < 6

    return while_(going, lambda i, s: (i + 1, s * x), np.int64(0), x)[1]


def endless(x):  # type: ignore[no-untyped-def]
    """Only the check ends the loop."""

    def body(s):  # type: ignore[no-untyped-def]
        check(s < 50.0, "too large")
        return s * 2.0

    return while_(lambda s: s > 0.0, body, x)[0]


def in_the_middle(x):  # type: ignore[no-untyped-def]
    """One trip fails, and those after it would not."""

    def body(i, s):  # type: ignore[no-untyped-def]
        check((i < 2) | (i > 2), "too large")
        return s * x

    return for_(5, body, x)[0]


EXPECTED: dict[Any, list[tuple[float, Any, list[float]]]] = {
    in_while: [(1.0, 1.0, [1.0] * 6), (3.0, "too large", [3.0, 9.0, 27.0])],
    in_for: [(1.0, 1.0, [1.0] * 6), (3.0, "too large", [3.0, 9.0, 27.0])],
    in_cond: [(1.0, 4.0, [1.0, 2.0]), (2.0, "then", [2.0]), (-1.5, "else", [-15.0])],
    in_condition: [(1.0, 1.0, [1.0] * 7), (3.0, "too large", [3.0, 9.0, 27.0])],
    in_the_middle: [(1.0, "too large", [])],
    endless: [(1.0, "too large", [])],
}


@pytest.mark.parametrize("program", EXPECTED)
@pytest.mark.parametrize("backend", ["interpreted", "numpy", "xla"])
def test_effects_run_as_python_would(program: Any, backend: str) -> None:
    if backend == "xla":
        pytest.importorskip("jax")
    seen: list[float] = []
    sites = [lambda value: seen.append(float(value))]
    function = trace(program, F64)
    programs = [function] if program is endless else [function, value_and_grad(function, [True])]
    for each in programs:
        verify(each)
        for x, result, shown in EXPECTED[program]:
            seen.clear()
            if backend == "interpreted":
                from srcgrad.backends.numpy.evaluate import evaluate

                call = lambda x, each=each: evaluate(each, [np.float64(x)], sites)  # noqa: E731
            else:
                call = compiled(each, backend, sites)
            if isinstance(result, str):
                with pytest.raises((ValueError, IndexError), match=result):
                    call(np.float64(x))
            else:
                assert call(np.float64(x))[0] == result
            assert seen == shown


# --- checkpoints ------------------------------------------------------------------------------------------------------


def step(i: Any, s: Any, x: Any) -> Any:
    return sin(s) * x + s * as_float(i) * 0.01


def loops(checkpoint: bool, trips: int) -> dict[str, Any]:
    return {
        "while": lambda x: while_(
            lambda i, s: i < trips, lambda i, s: (i + 1, step(i, s, x)), np.int64(0), x, checkpoint=checkpoint
        )[1],
        "for": lambda x: for_(trips, lambda i, s: step(i, s, x), x, checkpoint=checkpoint)[0],
        "reversed": lambda x: for_(trips, lambda i, s: step(i, s, x), x, reverse=True, checkpoint=checkpoint)[0],
        "dynamic": lambda x: for_(
            at(spread(as_count(x, trips), 1), np.int64(0)), lambda i, s: step(i, s, x), x, checkpoint=checkpoint
        )[0],
    }


def as_count(x: Any, trips: int) -> Any:
    from tests.ir.control.tracing import apply

    return apply("cast", x * 0.0 + float(trips), dtype=np.dtype(np.int64))


@pytest.mark.parametrize("name", loops(True, 1))
@pytest.mark.parametrize("trips", [0, 1, 4, 5, 23])
def test_checkpoints_change_no_derivative(name: str, trips: int) -> None:
    plain, kept = (trace(loops(checkpoint, trips)[name], F64) for checkpoint in (False, True))
    for order in (1, 2):
        for (modes, one), (_, other) in zip(nestings(plain, order), nestings(kept, order), strict=True):
            expected = interpreted(one, 0.7)[0]
            np.testing.assert_allclose(interpreted(other, 0.7)[0], expected, rtol=1e-12, err_msg=modes)
            np.testing.assert_allclose(compiled(other)(np.float64(0.7))[0], expected, rtol=1e-12, err_msg=modes)


@pytest.mark.parametrize("reverse", [False, True])
def test_checkpoints_cut_columns(reverse: bool) -> None:
    def scan(checkpoint: bool) -> Any:
        def program(x, xs):  # type: ignore[no-untyped-def]
            last, made = for_(
                11, lambda i, s, e: (sin(s) * e + step(i, s, e), s * e), x, columns=[xs], reverse=reverse,
                checkpoint=checkpoint,
            )  # fmt: skip
            return last + total(made * made * xs)

        return trace(program, F64, vector(11))

    xs = np.linspace(-1.0, 1.0, 11)
    arguments = (np.float64(0.7), xs, np.float64(1.0), np.cos(xs))
    for derive in (lambda f: value_and_grad(f, [True, True]), lambda f: hvp(f, [True, True])):
        plain, kept = derive(scan(False)), derive(scan(True))
        count = len(plain.params)
        for one, other in zip(compiled(plain)(*arguments[:count]), compiled(kept)(*arguments[:count]), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-12)


def test_checkpoints_keep_the_square_root() -> None:
    """What the forward pass keeps: 100 carries and one segment's tape, of 10,000 trips."""
    sizes = []
    for checkpoint in (False, True):
        gradient = value_and_grad(trace(loops(checkpoint, 10_000)["for"], F64), [True])
        kept = [value.type.size for operation in gradient.operations for value in operation.results]
        sizes.append(max(kept))
    assert sizes == [10_000, 100]


@pytest.mark.parametrize("kind", ["for", "while"])
def test_effects_are_never_replayed(kind: str) -> None:
    seen: list[float] = []

    def program(x):  # type: ignore[no-untyped-def]
        def trip(s):  # type: ignore[no-untyped-def]
            told(s)
            return s * x

        if kind == "for":
            return for_(9, lambda i, s: trip(s), x, checkpoint=True)[0]
        return while_(lambda i, s: i < 9, lambda i, s: (i + 1, trip(s)), np.int64(0), x, checkpoint=True)[1]

    gradient = derivative(trace(program, F64), "R")
    np.testing.assert_allclose(compiled(gradient, sites=[seen.append])(np.float64(1.1))[0], 10 * 1.1**9)
    assert len(seen) == 9
