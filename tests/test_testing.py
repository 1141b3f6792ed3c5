"""`check_grads` accepts right derivatives and rejects each planted fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad import real_derivatives
from srcgrad.errors import ArgumentError, GradientCheckError, IntegerInputError
from srcgrad.testing import check_grads

X = np.array([0.3, -1.2, 0.7])


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def branching(x: float) -> float:
    total = 1.0
    for _ in range(3):
        total = total * x if x > 0 else total - x
    return total


def in_place(x: Any) -> Any:
    x[0] *= x[1]
    x += 1.0
    return x[::-1] ** 3


RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "elementwise": (np.sin, (X,), 3),
    "0-d": (lambda x: np.exp(x) * x, (0.4,), 4),
    "rosenbrock": (rosenbrock, (X,), 2),
    "python control flow": (branching, (1.3,), 3),
    "in place": (in_place, (X,), 2),
    "two arguments": (lambda x, y: np.hypot(x, y) @ x, (X, X[::-1] + 2.0), 2),
    "pytrees": (
        lambda p, n: {"a": p["w"] @ p["x"], "b": (p["w"] ** n, None, "text", 3)},
        ({"w": X + 2.0, "x": X[:, None]}, 3),
        2,
    ),
    "where": (lambda x: np.where(x > 0, np.sqrt(np.abs(x)), x**2), (X,), 2),
    "not holomorphic": (lambda x: np.abs(x) + np.maximum(x, 0.1), (X,), 2),
    "complex to real": (lambda z: np.abs(z) ** 3, (np.array([1 + 2j, 0.5j]),), 2),
    "complex to complex": (lambda z: z * np.conj(z) + z**2, (np.array([1 + 2j, 0.5j]),), 2),
    "real to complex": (lambda x: np.exp(1j * x), (X,), 2),
    "single precision": (lambda x: np.sum(np.exp(x) * x), (X.astype(np.float32),), 2),
    "half precision": (lambda x: x * x, (np.array([0.5, 2.0], np.float16),), 1),
    "numpy scalars": (lambda x: x**2.5, (np.float64(2.0),), 3),
    "large scale": (lambda x: np.log(x) * 1e8, (np.array([1e6, 2e-6]),), 2),
    "terms that cancel": (lambda x: np.sum(np.exp(x) / np.sum(np.exp(x))), (X,), 2),
    "gradients of very different sizes": (lambda x: 1e8 * x[0] + np.sin(x[1]) * 1e-4, (X,), 2),
    "constant": (lambda x: np.float64(2.0), (X,), 2),
    "empty": (lambda x: x * 2.0, (np.zeros((0, 3)),), 2),
    "one of the parts empty": (lambda x, y: np.sum(x) + y**2, (np.zeros(0), X), 2),
    "many inputs, one output": (lambda x: np.sum(np.exp(x) * x), (np.linspace(-1, 1, 3000),), 2),
    "many inputs and outputs": (lambda x: np.exp(x) * x, (np.linspace(-1, 1, 3000),), 2),
    "many complex inputs": (lambda z: np.abs(z) ** 2 * z, (np.linspace(0.5, 1, 2000) * (1 + 0.3j),), 2),
    "custom rule": (sg.checkpoint(lambda x: np.sin(x) * x), (X,), 2),
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name: str) -> None:
    f, args, order = RIGHT[name]
    check_grads(f, args, order)


def cubed(backward: Callable[[Any, Any], Any]) -> Any:
    @sg.custom_vjp
    def f(x: Any) -> Any:
        return x**3

    f.defvjp(lambda x: (x**3, x), lambda x, ct: (backward(x, ct),))
    return f


def one_entry(x: Any, ct: Any, at: int) -> Any:
    found = 3 * x**2 * ct
    found[at] *= 1.001
    return found


@sg.custom_jvp
def wrong_at_second_order(x: Any) -> Any:
    return x**3


@wrong_at_second_order.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return x**3, 3 * sg.stop_gradient(x) * x * t


@sg.custom_jvp
def wrong_product(x: Any, y: Any) -> Any:
    return x * y


@wrong_product.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (s, t) = primals, tangents
    return x * y, x * t + 0.999 * y * s


@sg.custom_jvp
def not_conjugate(z: Any) -> Any:
    return np.conj(z)


@not_conjugate.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return np.conj(primals[0]), tangents[0]


BIG = np.linspace(0.5, 1.0, 4000)
WRONG: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "sign": (cubed(lambda x, ct: -3 * x**2 * ct), (X,), 1),
    "factor": (cubed(lambda x, ct: 1.001 * 3 * x**2 * ct), (X,), 1),
    "a factor in single precision": (cubed(lambda x, ct: 1.001 * 3 * x**2 * ct), (X.astype(np.float32),), 1),
    "missing term": (cubed(lambda x, ct: 2 * x**2 * ct), (X,), 1),
    "zero": (cubed(lambda x, ct: None), (X,), 1),
    "nan": (cubed(lambda x, ct: ct * np.nan), (X,), 1),
    "one entry": (cubed(lambda x, ct: one_entry(x, ct, 1)), (X,), 1),
    "one entry of a large array": (cubed(lambda x, ct: one_entry(x, ct, 777)), (BIG,), 1),
    "one entry of a large gradient": (lambda x: np.sum(WRONG["one entry of a large array"][0](x)), (BIG,), 1),
    "second order only": (wrong_at_second_order, (X,), 2),
    "second order only, large": (wrong_at_second_order, (BIG,), 2),
    "one argument": (wrong_product, (X, X + 2.0), 1),
    "not the conjugate": (not_conjugate, (np.array([1 + 2j]),), 1),
    "a dropped dependence": (lambda x: x * sg.stop_gradient(x), (X,), 1),
    "a small gradient beside a large one": (lambda x, y: 1e8 * np.sum(x) + np.sum(WRONG["factor"][0](y)), (X, X), 1),
    "small outputs beside large ones": (lambda x: {"a": 1e8 * x, "b": WRONG["factor"][0](x)}, (X,), 1),
}


@pytest.mark.parametrize("modes", [("fwd", "rev"), ("fwd",), ("rev",)], ids="-".join)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_derivatives_do_not_pass(name: str, modes: tuple[str, ...]) -> None:
    f, args, order = WRONG[name]
    with pytest.raises(GradientCheckError, match="disagrees"):
        check_grads(f, args, order, modes)


def test_a_fault_at_second_order_passes_at_first() -> None:
    check_grads(wrong_at_second_order, (X,), order=1)


@pytest.mark.parametrize("size", [3, 4000])
@pytest.mark.parametrize("mode", ["jacfwd", "jacrev"])
def test_a_fault_in_one_mode_only(monkeypatch: pytest.MonkeyPatch, mode: str, size: int) -> None:
    """No rule can be wrong in one mode alone, so the fault is planted in what the check is given."""
    broken = real_derivatives.Forward if mode == "jacfwd" else real_derivatives.Reverse
    build = broken.build

    def faulty(self: Any, *args: Any) -> Any:
        built = build(self, *args)
        return built._replace(finish=lambda found, stages: [1.001 * block for block in found])

    sg.clear_caches()
    monkeypatch.setattr(broken, "build", faulty)
    blamed = "the forward-mode" if mode == "jacfwd" else "the reverse-mode"
    with pytest.raises(GradientCheckError, match=blamed):
        check_grads(lambda x: np.cos(x) + x, (np.linspace(0.1, 0.7, size),), order=1)
    other = ("rev",) if mode == "jacfwd" else ("fwd",)
    check_grads(lambda x: np.cos(x) + x, (np.linspace(0.1, 0.7, size),), 1, other)
    sg.clear_caches()


@pytest.mark.parametrize(
    ("f", "x", "order"), [(np.sqrt, 0.0, 1), (np.abs, 0.0, 2), (np.log, 1e-12, 1), (np.floor, 2.0, 1)]
)
def test_where_differences_decide_nothing_the_check_says_so(f: Any, x: float, order: int) -> None:
    if f is np.log:
        check_grads(f, (x,), order)  # differences at the scale of the point decide
        return
    with pytest.raises(GradientCheckError, match="the differences do not converge there"):
        check_grads(f, (x,), order)


@dataclass
class Model:
    weights: Any
    steps: int


def test_the_message_names_the_argument_and_shows_both_matrices() -> None:
    wrong = WRONG["sign"][0]

    def loss(x: Any, model: Model) -> Any:
        return x * wrong(model.weights["a"][1]) ** model.steps

    with pytest.raises(GradientCheckError) as caught:
        check_grads(loss, (2.0, Model({"a": (1.0, X)}, 1)))
    text = str(caught.value)
    assert "check_grads(loss): the forward-mode derivative of order 1 in argument 1.weights['a'][1] disagrees" in text
    assert "derivative       [[" in text and "differences give [[" in text
    assert "of the matrix" in text and "worst entry (at [" in text
    assert "test_testing.py" in text and "hint" not in text


def test_the_message_of_a_large_check_prints_the_seed() -> None:
    f, args, order = WRONG["one entry of a large array"]
    with pytest.raises(GradientCheckError, match="along random direction 0 of seed=11") as caught:
        check_grads(f, args, order, seed=11)
    assert "worst entry (entry 777)" in str(caught.value)


def test_which_arguments_are_checked() -> None:
    wrong = WRONG["sign"][0]

    def f(x: Any, y: Any) -> Any:
        return x * wrong(y)

    check_grads(f, (X, X), argnums=0)
    check_grads(f, (X, X), argnums=(-2,))
    with pytest.raises(GradientCheckError, match="in argument 1 "):
        check_grads(f, (X, X), argnums=1)


def test_tolerances() -> None:
    f = cubed(lambda x, ct: 1.001 * 3 * x**2 * ct)
    check_grads(f, (X,), 1, rtol=1e-2)
    check_grads(f, (X,), 1, atol=1e-1)
    with pytest.raises(GradientCheckError):
        check_grads(f, (X,), 1, rtol=1e-5, atol=1e-5)
    check_grads(np.sin, (X,), 2, eps=1e-3)


def test_arguments_are_not_changed_and_nothing_is_left_behind() -> None:
    x = X.copy()
    seen = []

    def f(x: Any) -> Any:
        seen.append(type(x))
        x *= 2.0
        return np.sum(x)

    with pytest.warns(sg.RetraceWarning):
        check_grads(f, (x,), 2)
    assert np.array_equal(x, X) and len(seen) > 3


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="args must be a tuple"):
        check_grads(np.sin, X)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="modes"):
        check_grads(np.sin, (X,), modes=("forward",))
    with pytest.raises(ArgumentError, match="order"):
        check_grads(np.sin, (X,), order=0)
    with pytest.raises(ArgumentError, match="argnums=1"):
        check_grads(np.sin, (X,), argnums=1)
    with pytest.raises(ArgumentError, match="takes a function"):
        check_grads(3, (X,))  # type: ignore[arg-type]
    with pytest.raises(IntegerInputError, match="float"):
        check_grads(np.sin, (3,))
    with pytest.raises(ArgumentError, match="no floats"):
        check_grads(lambda x: "text", (X,))


def test_results_whose_size_depends_on_values() -> None:
    """Within a step of the threshold the mask has another number of elements."""
    with pytest.raises(sg.SrcgradError, match="results of another size within a step"):
        check_grads(lambda x: x[x > 0.4], (np.array([0.1, 0.4 + 1e-9, 0.9]),))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_results_whose_dtype_depends_on_values() -> None:
    coefficients = np.array([1.0, 5.0, 6.0])
    with pytest.raises(sg.SrcgradError, match="4 here") as caught:
        check_grads(np.roots, (coefficients,))
    assert "cast the result" in str(caught.value)
    check_grads(lambda x: np.roots(x).astype(complex), (coefficients,))


def ramp(x: Any) -> Any:
    """Flat where the first steps end."""
    return 0.5 * (1 + np.tanh((-np.abs(x - 35.0) + 1e-3) / 1e-3))


def narrow(x: Any) -> Any:
    """The first steps jump over what it does near the point."""
    return np.abs(x) ** 2 + np.abs(np.tanh((x - 35.0) / 1e-4))


@pytest.mark.parametrize(("f", "order"), [(ramp, 1), (narrow, 2)])
def test_steps_that_jump_over_a_feature_accuse_no_derivative(f: Any, order: int) -> None:
    check_grads(f, (35.00007,), order=order)
    many = lambda x: f(x) * np.ones(3000)  # noqa: E731 (along random directions)
    check_grads(many, (35.00007,), order=1)


@pytest.mark.parametrize("f", [ramp, narrow])
def test_a_wrong_derivative_of_a_feature_is_found(f: Any) -> None:
    @sg.custom_jvp
    def wrong(x: Any) -> Any:
        return f(x)

    wrong.defjvp(lambda primals, tangents: (f(primals[0]), tangents[0] * (1.0 + 1e-5) * sg.grad(f)(primals[0])))
    with pytest.raises(sg.errors.GradientCheckError, match="disagrees"):
        check_grads(wrong, (35.00007,), order=1)
