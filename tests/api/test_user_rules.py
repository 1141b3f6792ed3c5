"""What a user's rule is given, and where its answers go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import CustomRuleError

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")


def test_arguments_that_are_not_differentiated_keep_their_places() -> None:
    @sg.custom_jvp
    def plain(x: Any, y: Any) -> Any:
        return x * y

    def f(x: Any, power: int, y: Any) -> Any:
        return x**power * y

    ruled = sg.custom_jvp(f, nondiff_argnums=(1,))

    @ruled.defjvp
    def rule(power: int, primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        return f(x, power, y), 100.0 * dx + 10.0 * dy * power

    assert sg.grad(ruled, argnums=(0, 2))(2.0, 3, 5.0) == (100.0, 30.0)
    assert ruled(2.0, 3, 5.0) == 40.0

    backward = sg.custom_vjp(f, nondiff_argnums=(1,))
    backward.defvjp(lambda x, power, y: (f(x, power, y), x), lambda power, x, ct: (ct * x, ct * power))
    assert sg.grad(backward, argnums=(0, 2))(2.0, 3, 5.0) == (2.0, 3.0)


def test_a_backward_rule_may_close_over_values() -> None:
    """Over two values of the function around it, which it tells apart; they are differentiated from outside."""

    def slope(a: Any, b: Any) -> Any:
        def f(x: Any) -> Any:
            inner = sg.custom_vjp(lambda x: x * a)
            inner.defvjp(lambda x: (x * a, x), lambda kept, ct: (ct * (a + 10.0 * b + 100.0 * kept),))
            return inner(x)

        return sg.grad(f)(1.0)

    assert slope(2.0, 3.0) == 132.0
    value, gradient = sg.value_and_grad(slope, argnums=(0, 1))(2.0, 3.0)
    assert (value, gradient) == (132.0, (1.0, 10.0))


def test_none_is_a_cotangent_of_zero() -> None:
    f = sg.custom_vjp(lambda x, tree, y: x * tree["a"] * y + tree["b"])
    f.defvjp(lambda x, tree, y: (f(x, tree, y), y), lambda y, ct: (ct * y, None, ct * 7.0))
    found = sg.grad(f, argnums=(0, 1, 2))(2.0, {"a": 3.0, "b": 4.0}, 5.0)
    assert found == (5.0, {"a": 0.0, "b": 0.0}, 7.0)


def test_a_rule_that_calls_its_function_is_followed() -> None:
    """A rule that is none of the derivative: f' = 2 f by it, so f'' = 4 f, where f itself is x."""
    f = sg.custom_jvp(lambda x: 1.0 * x)
    f.defjvp(lambda primals, tangents: (f(*primals), 2.0 * f(*primals) * tangents[0]))
    assert sg.grad(f)(3.0) == 6.0
    assert sg.grad(sg.grad(f))(3.0) == 12.0
    assert sg.jvp(sg.grad(f), (3.0,), (1.0,))[1] == 12.0


def test_a_rule_of_another_shape_is_refused() -> None:
    f = sg.custom_jvp(lambda x: np.sum(x))
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    with pytest.raises(CustomRuleError, match=r"where .* is needed"):
        sg.grad(f)(np.ones(3))


def test_a_closure_over_what_is_differentiated_is_refused() -> None:
    def f(a: Any) -> Any:
        inner = sg.custom_jvp(lambda x: x * a)
        inner.defjvp(lambda primals, tangents: (primals[0] * a, tangents[0]))
        return inner(2.0 * a)

    with pytest.raises(CustomRuleError, match="closes over"):
        sg.grad(f)(3.0)


def test_cotangents_of_what_a_batch_shares_are_summed() -> None:
    f = sg.custom_vjp(lambda w, x: w * x)
    f.defvjp(lambda w, x: (w * x, (w, x)), lambda kept, ct: (ct * 10.0 * kept[1], ct * kept[0]))
    xs = np.array([1.0, 2.0, 4.0])

    def total(w: Any, xs: Any) -> Any:
        return np.sum(sg.vmap(f, in_axes=(None, 0))(w, xs))

    by_w, by_x = sg.grad(total, argnums=(0, 1))(3.0, xs)
    assert by_w == 70.0
    np.testing.assert_array_equal(by_x, [3.0, 3.0, 3.0])


def test_stop_gradient_has_no_derivative() -> None:
    def f(x: Any) -> Any:
        return np.sum(x * sg.stop_gradient(x) + sg.stop_gradient(np.exp(x)))

    x = np.array([0.5, 2.0])
    np.testing.assert_array_equal(sg.grad(f)(x), x)
    np.testing.assert_array_equal(sg.hessian(f)(x), np.zeros((2, 2)))
