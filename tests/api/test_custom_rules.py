"""custom_jvp, custom_vjp, checkpoint and stop_gradient under every transform."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import CustomRuleError

X = np.array([0.5, 2.0, -1.0])
SCALE = np.array([1.0, -2.0, 0.5])


@sg.custom_jvp
def sine(x: Any) -> Any:
    return np.sin(x)


@sine.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return sine(x), 3.0 * np.cos(x) * t  # 3 marks the rule


@sg.custom_vjp
def cube(x: Any) -> Any:
    return x**3


cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (6.0 * x**2 * ct,))  # twice the derivative marks the rule


@pytest.mark.parametrize("modes", ["".join(m) for k in (1, 2, 3) for m in itertools.product("FR", repeat=k)])
def test_rules_are_used_in_both_modes_and_differentiated(modes: str) -> None:
    f, g = sine, cube
    for mode in modes:
        f, g = ((sg.jacfwd if mode == "F" else sg.grad)(h) for h in (f, g))
    np.testing.assert_allclose(f(0.4), 3 * [np.cos(0.4), -np.sin(0.4), -np.cos(0.4)][len(modes) - 1], rtol=1e-14)
    np.testing.assert_allclose(g(0.4), [6 * 0.4**2, 12 * 0.4, 12.0][len(modes) - 1], rtol=1e-14)


@pytest.mark.parametrize("function", [sine, cube])
def test_under_every_transform(function: Any) -> None:
    first = 3 * np.cos(X) if function is sine else 6 * X**2
    second = -3 * np.sin(X) if function is sine else 12 * X
    value = np.sin(X) if function is sine else X**3
    np.testing.assert_allclose(function(X), value)
    np.testing.assert_allclose(sg.jit(function)(X), value)
    np.testing.assert_allclose(sg.vmap(function)(X), value)
    np.testing.assert_allclose(sg.vmap(sg.grad(function))(X), first)
    np.testing.assert_allclose(sg.grad(lambda x: np.sum(sg.vmap(function)(x)))(X), first)
    np.testing.assert_allclose(sg.jit(sg.vmap(sg.grad(function)))(X), first)
    np.testing.assert_allclose(sg.grad(sg.jit(lambda x: np.sum(function(x))))(X), first)
    np.testing.assert_allclose(sg.jacfwd(function)(X), np.diag(first))
    np.testing.assert_allclose(sg.jacrev(function)(X), np.diag(first))
    np.testing.assert_allclose(sg.hessian(lambda x: np.sum(function(x)))(X), np.diag(second))
    np.testing.assert_allclose(sg.hvp(lambda x: np.sum(function(x)), (X,), (SCALE,)), second * SCALE)
    np.testing.assert_allclose(sg.jvp(function, (X,), (SCALE,)), (value, first * SCALE))
    np.testing.assert_allclose(sg.vjp(function, X)[1](SCALE)[0], first * SCALE)
    np.testing.assert_allclose(sg.linearize(function, X)[1](SCALE), first * SCALE)
    np.testing.assert_allclose(sg.grad(lambda x: np.sum(sg.checkpoint(function)(x) * x))(X), first * X + value)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("function", [sine, cube])
def test_in_functions_that_are_traced_at_each_call(function: Any) -> None:
    def f(x: Any) -> Any:
        return function(x) * x if x > 0 else function(x)

    value, first = (np.sin(0.4), 3 * np.cos(0.4)) if function is sine else (0.4**3, 6 * 0.4**2)
    for transform in (sg.grad, sg.jacfwd, sg.jacrev):
        np.testing.assert_allclose(transform(f)(0.4), first * 0.4 + value)
    np.testing.assert_allclose(sg.grad(f)(-0.4), 3 * np.cos(0.4) if function is sine else 6 * 0.4**2)


def test_a_rule_with_control_flow_of_its_own() -> None:
    @sg.custom_jvp
    def f(x: Any) -> Any:
        return np.abs(x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), t if x > 0 else -t

    assert [sg.grad(f)(2.0), sg.jacfwd(f)(-2.0)] == [1.0, -1.0]


def test_nondiff_argnums() -> None:
    def power(x: Any, n: int) -> Any:
        return x**n

    jvp_rule = sg.custom_jvp(power, nondiff_argnums=(1,))
    jvp_rule.defjvp(lambda n, primals, tangents: (primals[0] ** n, 10.0 * n * tangents[0]))
    vjp_rule = sg.custom_vjp(power, nondiff_argnums=(1,))
    vjp_rule.defvjp(lambda x, n: (x**n, ()), lambda n, residuals, ct: (10.0 * n * ct,))
    for function in (jvp_rule, vjp_rule):
        assert function(2.0, 3) == 8.0 and function(2.0, n=3) == 8.0
        for transform in (sg.grad, sg.jacfwd):
            assert transform(lambda x, function=function: function(x, 3))(2.0) == 30.0
            assert transform(lambda x, function=function: function(x, n=2))(2.0) == 20.0
            assert transform(function)(2.0, 4) == 40.0


def test_rules_of_pytrees() -> None:
    @sg.custom_jvp
    def f(p: Any, y: Any) -> Any:
        return {"sum": p["a"] + y, "product": (p["a"] * p["b"][0], None)}

    @f.defjvp
    def f_rule(primals: Any, tangents: Any) -> Any:
        (p, _), (dp, dy) = primals, tangents
        product = p["b"][0] * dp["a"] + p["a"] * dp["b"][0]
        return f(*primals), {"sum": dp["a"] + dy, "product": (5.0 * product, None)}

    @sg.custom_vjp
    def g(p: Any, y: Any) -> Any:
        return {"sum": p["a"] + y, "product": (p["a"] * p["b"][0], None)}

    def g_back(p: Any, ct: Any) -> Any:
        total, product = ct["sum"], ct["product"][0]
        return {"a": total + 5.0 * p["b"][0] * product, "b": [5.0 * p["a"] * product]}, total

    g.defvjp(lambda p, y: (g(p, y), p), g_back)
    for function in (f, g):

        def loss(p: Any, y: Any, function: Any = function) -> Any:
            found = function(p, y)
            return np.sum(found["sum"] * SCALE) + np.sum(found["product"][0])

        for transform in (sg.grad, sg.jacfwd):
            found, dy = transform(loss, argnums=(0, 1))({"a": X, "b": [SCALE]}, X)
            np.testing.assert_allclose(found["a"], SCALE + 5 * SCALE)
            np.testing.assert_allclose(found["b"][0], 5 * X)
            np.testing.assert_allclose(dy, SCALE)


def test_rules_that_read_arrays_from_outside() -> None:
    scale = SCALE.copy()

    @sg.custom_vjp
    def f(x: Any) -> Any:
        return x * scale

    f.defvjp(lambda x: (x * scale, None), lambda _, ct: (2.0 * ct * scale,))
    gradient = sg.grad(lambda x: np.sum(f(x)))
    np.testing.assert_allclose(gradient(X), 2 * SCALE)
    scale *= 10.0  # read anew at each call
    np.testing.assert_allclose(gradient(X), 20 * SCALE)
    np.testing.assert_allclose(sg.jacfwd(f)(X), np.diag(20 * SCALE))


def test_none_as_a_cotangent_and_defjvps() -> None:
    @sg.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))
    assert sg.grad(f, (0, 1))(2.0, 3.0) == (3.0, 0.0)

    @sg.custom_jvp
    def g(x: Any, y: Any) -> Any:
        return x * y

    g.defjvps(lambda t, out, x, y: t * y, None)
    assert sg.grad(g, (0, 1))(2.0, 3.0) == (3.0, 0.0)
    g.defjvps(None, None)
    assert sg.grad(g, (0, 1))(2.0, 3.0) == (0.0, 0.0)
    g.defjvp(lambda primals, tangents: (primals[0] * primals[1], tangents[1] * 7.0))
    assert sg.grad(g, (0, 1))(2.0, 3.0) == (0.0, 7.0)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_rules_of_arguments_are_one_program_that_reads_them_at_each_call() -> None:
    """They stand in a tuple, for which such functions were traced again at each call."""
    scale = 2.0

    @sg.custom_jvp
    def g(x: Any, y: Any) -> Any:
        return {"z": x * y}

    g.defjvps(lambda t, out, x, y: {"z": scale * t * out["z"]}, lambda t, out, x, y: {"z": 5.0 * t})
    gradient = sg.grad(lambda x, y: g(x, y)["z"], (0, 1))
    assert gradient(2.0, 3.0) == (12.0, 5.0)
    scale = 4.0
    assert gradient(2.0, 3.0) == (24.0, 5.0)
    assert sg.jvp(g, (2.0, 3.0), (1.0, 10.0))[1] == {"z": 74.0}
    assert sg.grad(lambda x: sg.grad(lambda x: g(x, 3.0)["z"])(x))(2.0) == 4.0 * 4.0 * 6.0
    g.defjvps(lambda t, out, x, y: {"z": scale * t * out["z"]}, None)
    assert gradient(2.0, 3.0) == (24.0, 0.0)


def test_one_rule_and_rules_of_arguments_are_other_programs() -> None:
    def rule(*given: Any) -> Any:
        if len(given) == 3:  # a tangent, the output, the primal
            return given[0] * 5.0
        (x,), (t,) = given
        return x * 2.0, t * 3.0

    g = sg.custom_jvp(lambda x: x * 2.0)
    gradient = sg.grad(lambda x: g(x))
    for _ in range(2):
        g.defjvp(rule)
        assert gradient(1.0) == 3.0
        g.defjvps(rule)
        assert gradient(1.0) == 5.0


def test_rules_of_arguments_that_do_not_fit_them() -> None:
    g = sg.custom_jvp(lambda x, y: x * y)
    with pytest.raises(CustomRuleError, match="a function or None for each argument, not 3"):
        g.defjvps(3, None)  # type: ignore[arg-type]
    g.defjvps(lambda t, out, x, y: t * y)
    with pytest.raises(CustomRuleError, match=r"1 rule, but it has 2 arguments"):
        sg.grad(g)(2.0, 3.0)
    with pytest.raises(CustomRuleError, match="none for those of nondiff_argnums"):
        sg.custom_jvp(lambda x, n: x**n, nondiff_argnums=(1,)).defjvps(lambda t, out, x: t)


@pytest.mark.parametrize(
    ("back", "said"),
    [
        (lambda _, ct: ({"a": ct}, {"a": ct}), "gives {'a': .*}, where .* where f64"),
        (lambda _, ct: ("ct", None), "gives a str where f64"),
        (lambda _, ct: (ct, ct), r"the cotangent of argument 1: .*expected a dict with the keys \['a'\]"),
    ],
)
def test_cotangents_of_another_structure_are_errors_of_the_rule(back: Any, said: str) -> None:
    f = sg.custom_vjp(lambda x, p: x * p["a"])
    f.defvjp(lambda x, p: (x * p["a"], None), back)
    with pytest.raises(CustomRuleError, match=said):
        sg.grad(f)(2.0, {"a": 3.0})


def test_integer_arguments_of_rules() -> None:
    @sg.custom_vjp
    def take(x: Any, k: Any) -> Any:
        return x[k]

    def back(residuals: Any, ct: Any) -> Any:
        x, k = residuals
        found = np.zeros_like(x)
        found[k] = 7.0 * ct
        return found, None

    take.defvjp(lambda x, k: (x[k], (x, k)), back)
    np.testing.assert_allclose(sg.grad(lambda x: np.sum(take(x, np.array([0, 2]))))(X), [7.0, 0.0, 7.0])


WRONG: dict[str, tuple[Any, str]] = {
    "no rule": (sg.custom_jvp(np.sin), "without a rule"),
    "no vjp rule": (sg.custom_vjp(np.sin), "without a rule"),
}


@pytest.mark.parametrize("name", WRONG)
def test_missing_rules(name: str) -> None:
    function, text = WRONG[name]
    assert function(0.5) == np.sin(0.5)
    with pytest.raises(CustomRuleError, match=text):
        sg.grad(lambda x: function(x))(0.5)


@pytest.mark.parametrize(
    "rule",
    [
        lambda primals, tangents: tangents[0],
        lambda primals, tangents: (primals[0], (tangents[0], tangents[0])),
        lambda primals, tangents: (primals[0], np.stack([tangents[0], tangents[0]])),
        lambda primals, tangents: (primals[0], 1j * tangents[0]),
    ],
)
def test_wrong_jvp_rules(rule: Any) -> None:
    f = sg.custom_jvp(lambda x: x * 2.0)
    f.defjvp(rule)
    with pytest.raises(CustomRuleError):
        sg.grad(lambda x: f(x))(0.5)


@pytest.mark.parametrize(
    ("fwd", "bwd"),
    [
        (lambda x: x, lambda r, ct: (ct,)),
        (lambda x: ((x, x), None), lambda r, ct: (ct,)),
        (lambda x: (x, None), lambda r, ct: ct),
        (lambda x: (x, None), lambda r, ct: (ct, ct)),
        (lambda x: (x, None), lambda r, ct: (np.stack([ct, ct]),)),
    ],
)
def test_wrong_vjp_rules(fwd: Any, bwd: Any) -> None:
    f = sg.custom_vjp(lambda x: x * 1.0)
    f.defvjp(fwd, bwd)
    with pytest.raises(CustomRuleError):
        sg.grad(lambda x: f(x))(0.5)


@pytest.mark.parametrize("modes", ["".join(m) for k in (1, 2, 3) for m in itertools.product("FR", repeat=k)])
def test_checkpoint_changes_no_derivative(modes: str) -> None:
    def body(x: Any, w: Any) -> Any:
        h = np.tanh(w * x)
        return np.where(h > 0, np.sqrt(np.abs(h)), h * x)

    def loss(f: Any) -> Any:
        return lambda x: np.sum(np.sin(f(f(x, 2.0) + x, SCALE)))

    plain, checked = loss(body), loss(sg.checkpoint(body))
    for mode in modes:
        plain, checked = ((sg.jacfwd if mode == "F" else sg.jacrev)(h) for h in (plain, checked))
    np.testing.assert_allclose(checked(X), plain(X), rtol=1e-11, atol=1e-12)


def test_checkpoint_as_a_decorator_of_pytrees() -> None:
    @sg.checkpoint
    def layer(p: Any, *, scale: Any) -> Any:
        return {"y": np.tanh(p["x"]) * scale, "note": "text", "none": None}

    assert layer({"x": 0.0}, scale=2.0)["note"] == "text"
    found = sg.grad(lambda x: np.sum(layer({"x": x}, scale=2.0)["y"]))(X)
    np.testing.assert_allclose(found, 2 / np.cosh(X) ** 2)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_stop_gradient() -> None:
    def f(x: Any) -> Any:
        held = sg.stop_gradient({"x": x, "n": 3, "s": "text"})
        return np.sum(x * held["x"])

    np.testing.assert_allclose(sg.grad(f)(X), X)
    np.testing.assert_allclose(sg.jacfwd(f)(X), X)
    np.testing.assert_allclose(sg.hessian(f)(X), np.zeros((3, 3)))
    np.testing.assert_allclose(sg.vmap(sg.grad(lambda x: x * sg.stop_gradient(x)))(X), X)
    assert sg.grad(lambda x: x + 0.0 * sg.stop_gradient(np.sqrt(x)))(0.0) == 1.0  # a structural zero
    assert sg.grad(lambda x: x + sg.stop_gradient(np.log(x)))(0.0) == 1.0
    assert np.array_equal(sg.stop_gradient(X), X) and sg.stop_gradient(("text", 3)) == ("text", 3)


def with_rule(rule: Any) -> Any:
    f = sg.custom_jvp(lambda x: 2.0 * x)
    f.defjvp(rule)
    return f


def repeatedly(x: Any, t: Any) -> Any:
    for _ in range(40):
        t, x = t * np.cos(x), np.sin(x)
    return t


NOT_LINEAR = {
    "a square": lambda x, t: t**2,
    "a kink": lambda x, t: np.abs(t),
    "a product of tangents": lambda x, t: t * np.sum(t),
    "a choice by the tangent": lambda x, t: np.where(t == 0.0, 0.0, 3.0 * t),
    "a branch by the tangent": lambda x, t: 3.0 * t if np.sum(t) > 0 else t,
    "a step": lambda x, t: x * np.sign(t),
    "the tangent of a loop": lambda x, t: repeatedly(t, t),
    "no tangent": lambda x, t: np.cos(x),
    "a constant": lambda x, t: np.full(3, 2.0),
    "a choice without the tangent": lambda x, t: np.where(x > 0.0, 1.0, 2.0),
    "a constant added": lambda x, t: t + 1.0,
    "what is taken from a constant": lambda x, t: 1.0 - t,
    "the primal added": lambda x, t: 2.0 * t + x,
    "a function of the primal added": lambda x, t: t * x + x * np.cos(x),
    "a sum times the primal": lambda x, t: -(t + 1.0) * x,
    "some constants": lambda x, t: np.concatenate([t[:1], np.ones(2)]),
}
LINEAR = {
    "a product": (lambda x, t: t * np.cos(x), np.cos(X)),
    "a quotient": (lambda x, t: t / x, 1.0 / X),
    "a choice by the primal": (lambda x, t: np.where(x > 0, 3.0 * t, 0.0), np.where(X > 0, 3.0, 0.0)),
    "a branch by the primal": (lambda x, t: 3.0 * t if np.sum(x) > 0 else t, 3.0 * np.ones(3)),
    "a loop": (lambda x, t: repeatedly(x, t), repeatedly(X, 1.0)),
    "a part of a checkpoint": (lambda x, t: sg.checkpoint(lambda x, t: np.sin(x) * t)(x, t), np.sin(X)),
    "zeros": (lambda x, t: np.zeros_like(x), np.zeros(3)),
    "zeros added": (lambda x, t: t + 0.0 * x, np.ones(3)),
    "a choice of nan": (lambda x, t: np.where(np.isnan(x), np.nan, t), np.ones(3)),
    "a choice of numbers added": (lambda x, t: t + np.where(x > 9.0, 1.0, 0.0), np.ones(3)),
    "zero times the primal": (lambda x, t: 0.0 * x, np.zeros(3)),
    "the primal times zeros": (lambda x, t: -2.0 * x * np.zeros(4)[1:], np.zeros(3)),
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("what", NOT_LINEAR)
def test_a_forward_rule_that_is_not_linear_in_the_tangents_is_refused(what: str, backend: Any) -> None:
    """Its derivative at the tangent 0 was taken in its stead: that of ``t**2``, and of a rule without ``t``, is 0."""
    f = with_rule(lambda primals, tangents: (2.0 * primals[0], NOT_LINEAR[what](*primals, *tangents)))
    with pytest.raises(CustomRuleError, match="not linear in the tangents"):
        sg.jvp(f, (X,), (X,), backend=backend)
    with pytest.raises(CustomRuleError, match="not linear in the tangents"):
        sg.grad(lambda x: np.sum(f(x)), backend=backend)(X)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("what", LINEAR)
def test_a_forward_rule_that_is_linear_in_the_tangents_is_not_refused(what: str) -> None:
    rule, first = LINEAR[what]
    f = with_rule(lambda primals, tangents: (2.0 * primals[0], rule(*primals, *tangents)))
    np.testing.assert_allclose(sg.grad(lambda x: np.sum(f(x)))(X), first)
    np.testing.assert_allclose(sg.jvp(f, (X,), (SCALE,))[1], first * SCALE)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_forward_mode_of_a_reverse_rule_that_is_not_linear_is_refused(backend: Any) -> None:
    """It has no transpose: where a clipped cotangent is 0 the clip is the identity, which forward mode had taken."""

    @sg.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    assert sg.grad(lambda x: 5.0 * clipped(x), backend=backend)(2.0) == 1.0
    np.testing.assert_array_equal(
        sg.hessian(lambda x: np.sum(clipped(x) ** 3), backend=backend)(X / 9), 6 / 9 * np.diag(X)
    )
    for forward in (sg.jacfwd(clipped, backend=backend), lambda x: sg.linearize(clipped, x, backend=backend)[1](x)):
        with pytest.raises(CustomRuleError, match="forward mode needs a bwd that is linear"):
            forward(X)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_forward_mode_of_a_reverse_rule_that_adds_a_constant_is_refused(backend: Any) -> None:
    """Reverse mode has the sum, and forward mode had dropped the constant: two derivatives of one function."""
    f = sg.custom_vjp(lambda x: 2.0 * x)
    f.defvjp(lambda x: (2.0 * x, None), lambda _, ct: (ct + 1.0,))
    assert sg.grad(f, backend=backend)(2.0) == 2.0
    with pytest.raises(CustomRuleError, match="forward mode needs a bwd that is linear"):
        sg.jvp(f, (2.0,), (1.0,), backend=backend)


class Cubic:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, x: Any) -> Any:
        return self.scale * x**3


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("function", [Cubic(2.0), partial(np.multiply, 2.0)])
def test_an_object_that_is_called_is_handed_to_a_rule(function: Any) -> None:
    """It was wrapped for NumPy's code anew in each call of itself, without end, and traced again at each call."""
    applied = partial(sg.custom_vjp, nondiff_argnums=(0,))(lambda f, x: f(x))
    applied.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (sg.grad(f)(x) * ct,))
    derivative = sg.grad(lambda x: applied(function, x))
    np.testing.assert_allclose(derivative(0.3), sg.grad(function)(0.3))
    np.testing.assert_allclose(sg.grad(lambda x: derivative(x))(0.3), sg.grad(sg.grad(function))(0.3))


def test_what_a_rule_lacks_is_said_and_not_what_tracing_it_again_lacks() -> None:
    """Forward mode of a fixed point by reverse iterations, whose number depends on the cotangent."""

    @partial(sg.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f: Any, a: Any, guess: Any) -> Any:
        old, x = guess, f(a, guess)
        while np.max(np.abs(old - x)) > 1e-12:
            old, x = x, f(a, x)
        return x

    def bwd(f: Any, residuals: Any, ct: Any) -> Any:
        a, x = residuals
        adjoint = fixed_point(lambda _, u: ct + sg.vjp(lambda x: f(a, x), x)[1](u)[0], 0.0, ct)
        return sg.vjp(lambda a: f(a, x), a)[1](adjoint)[0], 0.0 * x

    def fwd(f: Any, a: Any, guess: Any) -> Any:
        x = fixed_point(f, a, guess)
        return x, (a, x)

    fixed_point.defvjp(fwd, bwd)

    def root(a: Any) -> Any:
        return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)

    with pytest.raises(CustomRuleError):
        sg.jvp(root, (2.0,), (1.0,))
