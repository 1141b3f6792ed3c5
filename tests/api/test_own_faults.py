"""Faults of srcgrad's own are told from what users do wrong, and code in C does not hide what went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.linalg import interpolative

import srcgrad as sg
from srcgrad import building, cache, compiler, transformed
from srcgrad.tracing.function import hides

X = np.linspace(0.1, 1.0, 4)
FAULTS = [TypeError("a fault"), ValueError("a fault"), IndexError("a fault"), OverflowError("a fault"), KeyError("k")]


def loss(x: Any) -> Any:
    return np.sum(np.sin(x))


def failing(error: Exception) -> Any:
    """A function of srcgrad's, by its file and module, that raises an error."""
    names: dict[str, Any] = {"__name__": "srcgrad.fault", "error": error}
    exec(compile("def fail(*args, **kwargs):\n    raise error", transformed.__file__, "exec"), names)
    return names["fail"]


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("place", ["passes", "backend", "captures", "transform"])
def test_an_error_in_srcgrads_own_work_is_no_error_of_the_users(
    place: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    sg.clear_caches()
    if place == "passes":
        monkeypatch.setattr(compiler, "optimise", failing(error))
    elif place == "backend":
        monkeypatch.setattr(compiler, "find_backend", failing(error))
    elif place == "captures":
        monkeypatch.setattr(cache, "analyze", failing(error))
    else:
        monkeypatch.setattr(building, "prepared", failing(error))
    with pytest.raises(sg.errors.InternalError, match="fault of srcgrad") as caught:
        sg.grad(loss)(X)
    assert not isinstance(caught.value, sg.errors.ArgumentError)
    assert caught.value.__cause__ is error
    with pytest.raises(sg.errors.InternalError):
        sg.grad(lambda x: np.sum(sg.jit(loss)(x) * x))(X)


def test_an_error_where_machine_code_is_prepared_is_no_error_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    from srcgrad import front
    from srcgrad.backends.llvm.front import POSSIBLE

    if not POSSIBLE:
        pytest.skip("objects are laid out in a way that is not known")
    monkeypatch.setattr(front, "written", failing(TypeError("a fault")))
    f = sg.grad(lambda x: np.sum(np.sin(x)), backend="llvm")
    with pytest.raises(sg.errors.InternalError):
        for _ in range(transformed.SERVED_FROM):
            f(X)


CALLS: dict[str, Any] = {
    "too many": lambda: sg.grad(lambda x: x)(1.0, 2.0),
    "too few": lambda: sg.grad(lambda x, y: x)(1.0),
    "a name": lambda: sg.grad(lambda x: x)(1.0, z=2.0),
    "of a ufunc": lambda: sg.grad(np.sin)(1.0, 2.0, 3.0, 4.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_does_not_fit_the_function_is_the_users_error(name: str) -> None:
    with pytest.raises(TypeError) as caught:
        CALLS[name]()
    assert not isinstance(caught.value, sg.errors.InternalError)


# --- code in C that calls back ----------------------------------------------------------------------------------------
def test_solvers_in_c_take_transformed_functions() -> None:
    f = sg.grad(lambda x: x**4 / 4.0 - x)
    for _ in range(3):
        assert np.isclose(optimize.brentq(f, 0.1, 3.0), 1.0)
        assert np.isclose(optimize.newton(f, 2.0, fprime=sg.grad(f)), 1.0)
    distance: Any = lambda x: np.sum((x - 2.0) ** 2)  # noqa: E731
    found = optimize.minimize(distance, np.zeros(3), jac=sg.grad(distance))
    assert np.allclose(found.x, 2.0)

    def fails(x: Any) -> Any:
        raise ValueError("the user's")

    with pytest.raises(ValueError, match="the user's"):
        optimize.brentq(sg.grad(fails), 0.1, 3.0)


class Counted:
    calls = 0

    def __call__(self, x: Any) -> Any:
        type(self).calls += 1  # so that the class is looked through at the next call, while an exception is set
        return x**3 - self.a  # type: ignore[attr-defined]


class Cubed(Counted):
    def __init__(self, a: Any) -> None:
        self.a = a


LIMITS = (0.0, 5.0, 1e-12, 1e-12, 100, (), False, True)
SOLVERS: dict[str, tuple[str, Any]] = {
    "a function that reads a traced value": (
        "lose its derivative", lambda a: optimize._zeros._brentq(lambda x: x**3 - a, *LIMITS),
    ),
    "a transformed function that does": (
        "lose its derivative", lambda a: optimize._zeros._brentq(sg.jit(lambda x: x**3 - a), *LIMITS) * a,
    ),
    "an object that Python finds no __call__ of": (
        "lose its derivative", lambda a: optimize._zeros._brentq(Cubed(a), *LIMITS) * a,
    ),
    "one that asks for arrays": (
        "custom_vjp", lambda a: optimize.fmin_tnc(lambda x: (x[0] - a) ** 2, [2.0], approx_grad=True)[0][0] * a,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("transform", [sg.grad, sg.value_and_grad, sg.jacfwd], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_in_c_inside_a_traced_function_says_what_to_do(name: str, transform: Any) -> None:
    words, f = SOLVERS[name]
    with pytest.raises(sg.errors.ConcretizationError, match=words) as caught:
        transform(f)(2.0)
    assert "test_own_faults.py" in str(caught.value) and "hint: " in str(caught.value)


def test_a_system_error_is_that_from_which_it_comes() -> None:
    """Which function in C says so depends on what the interpreter has specialised by then."""
    refused, first, second = sg.errors.ConcretizationError("refused"), SystemError("first"), SystemError("second")
    first.__cause__, second.__cause__ = refused, first
    assert hides(first, refused) and hides(second, refused)
    assert not hides(SystemError("alone"), refused)
    second.__cause__ = ValueError("another")
    assert not hides(second, refused)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_error_of_scipys_own_in_a_traced_function_stays() -> None:
    with pytest.raises(ValueError, match="different signs"):
        sg.grad(lambda a: a * optimize.brentq(lambda x: x**2 + 1.0, 0.0, 5.0))(2.0)


# --- programs that fail -----------------------------------------------------------------------------------------------
def test_a_program_that_has_failed_in_machine_code_is_not_run_there_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    from srcgrad.backends.llvm import native

    if not native.LAYOUT_IS_KNOWN:
        pytest.skip("objects are laid out in a way that is not known")
    told: list[bool] = []
    make = native.python_kernel

    def watched(*args: Any) -> Any:
        call = make(*args)

        def counted(*arguments: Any, failed: bool = False) -> Any:
            told.append(failed)
            return call(*arguments, failed=failed)

        return counted

    monkeypatch.setattr(native, "python_kernel", watched)

    def f(x: Any, m: Any) -> Any:
        if np.sum(x) > 3.0:
            raise ValueError("too large")
        return np.sum(np.linalg.inv(m) * x)

    sg.clear_caches()
    g = sg.jit(f, backend="llvm")
    assert np.isclose(g(np.ones(2), np.eye(2)), 2.0)
    for _ in range(2 * transformed.SERVED_FROM):
        told.clear()
        with pytest.raises(ValueError, match="too large"):
            g(np.full(2, 2.0), np.eye(2))
        assert told == [True] or not told
        told.clear()
        with pytest.raises(np.linalg.LinAlgError):
            g(np.ones(2), np.zeros((2, 2)))
        assert told == [True]


# --- the user's own error, in code that is traced again ---------------------------------------------------------------


def no_such_item(x: Any) -> Any:
    weights = np.array([1.0, x[0]])  # which a trace of the function as it is would not take
    return weights.sum() * [1.0][len(x)]


def no_such_key(x: Any) -> Any:
    weights = np.array([1.0, x[0]])
    return weights.sum() * {"a": 1.0}[f"{len(x)}"]


@pytest.mark.parametrize("transform", [sg.grad, sg.jacfwd, sg.jit, sg.hessian])
@pytest.mark.parametrize(("f", "kind"), [(no_such_item, IndexError), (no_such_key, KeyError)])
def test_the_users_error_is_raised_and_not_one_of_an_innocent_line(f: Any, kind: type, transform: Any) -> None:
    with pytest.raises(kind) as caught:
        transform(f)(np.ones(3))
    assert type(caught.value) is kind or isinstance(caught.value, sg.errors.IndexingError)
    assert "weights.sum()" in str(caught.traceback[-1].statement)


def items(x: Any, t: Any) -> Any:
    return np.sum(x) * len(set(t.tolist()))


def test_why_a_set_of_traced_values_is_traced_again_names_its_line() -> None:
    """It was "unhashable type: 'Tracer'"."""
    with pytest.warns(sg.RetraceWarning, match=r"no item of a set.*test_own_faults.py:\d+"):
        found = sg.grad(items)(np.ones(2), np.array([1.0, 2.0, 2.0]))
    np.testing.assert_array_equal(found, [2.0, 2.0])


def test_what_scipy_asks_by_isinstance_is_a_missing_rule() -> None:
    """It was "invalid input type (must be array or LinearOperator)", and not at the user's line."""
    x = np.diag([3.0, 2.0, 1.0]) + 0.1
    f = lambda x: interpolative.svd(x, 2, rng=1)[1].sum()  # noqa: E731
    with pytest.raises(sg.errors.UnsupportedError, match=r"interpolative\.svd has no derivative rule"):
        sg.grad(f)(x)
    assert sg.jit(f)(x) == f(x)
    with pytest.raises(TypeError, match="unexpected keyword"):  # which is the user's own fault
        sg.grad(lambda x: interpolative.svd(x, 2, seeds=1)[1].sum())(x)
