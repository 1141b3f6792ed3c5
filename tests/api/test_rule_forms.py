"""The forms in which functions with a rule, and the rules, are written: decorators, names, keywords, maps kept."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import CustomRuleError

X = np.array([1.3, 0.2, -0.4])


def branches(x: Any) -> Any:
    return np.sin(x) if x > 0 else x**3


def shrinks(x: Any) -> Any:
    while np.abs(x) > 0.1:
        x = x * 0.5 * np.cos(x)
    return x


MAPS: dict[str, Any] = {"vjp": (sg.vjp, lambda pull, ct: pull(ct)), "linearize": (sg.linearize, lambda f, ct: (f(ct),))}


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("maker", MAPS)
@pytest.mark.parametrize("f", [branches, shrinks])
def test_residuals_may_hold_a_linear_map(f: Any, maker: str) -> None:
    """It is of the trace of fwd: bwd raised a LeakedTracerError where it called it."""
    make, bwd = MAPS[maker]
    g = sg.custom_vjp(f)
    g.defvjp(lambda x: make(f, x), bwd)
    assert sg.grad(g)(1.3) == pytest.approx(sg.grad(f)(1.3))
    assert sg.jvp(g, (1.3,), (2.0,))[1] == pytest.approx(2.0 * sg.grad(f)(1.3))
    np.testing.assert_allclose(sg.vmap(sg.grad(g))(X), [sg.grad(f)(x) for x in X], atol=1e-15)
    assert sg.grad(sg.grad(lambda x: g(g(x))))(1.3) == pytest.approx(sg.grad(sg.grad(lambda x: f(f(x))))(1.3))


def test_residuals_may_hold_maps_in_containers_and_of_other_points() -> None:
    outer = sg.vjp(np.exp, 1.0)[1]

    @sg.custom_vjp
    def g(x: Any) -> Any:
        return np.sin(x) * x

    def fwd(x: Any) -> Any:
        return g(x), {"maps": [sg.vjp(np.sin, x)[1], outer], "x": x}

    g.defvjp(fwd, lambda kept, ct: (kept["maps"][0](ct)[0] + kept["maps"][1](ct)[0] * kept["x"],))
    assert sg.grad(g)(0.5) == pytest.approx(np.cos(0.5) + np.e * 0.5)


@pytest.mark.parametrize("rule", [sg.custom_jvp, sg.custom_vjp])
def test_decorators_with_parentheses_and_names(rule: Any) -> None:
    @rule(nondiff_argnames=("f",), nondiff_argnums=(2,))
    def apply(x: Any, f: Any, n: Any) -> Any:
        return f(x) * n

    assert apply.__name__ == "apply" and apply.nondiff_argnums == (2, 1)
    if rule is sg.custom_jvp:
        apply.defjvp(lambda n, f, primals, tangents: (apply(*primals, f, n), 7.0 * n * tangents[0]))
    else:
        apply.defvjp(lambda x, f, n: (apply(x, f, n), None), lambda n, f, _, ct: (7.0 * n * ct,))
    assert sg.grad(lambda x: apply(x, np.sin, 2))(0.5) == 14.0
    assert sg.grad(lambda x: apply(x, n=3, f=np.sin))(0.5) == 21.0
    with pytest.raises(CustomRuleError, match=r"names 'g', which the function does not have") as raised:
        rule(branches, nondiff_argnames="g")
    assert "its parameters are x" in str(raised.value)


def test_checkpoint_with_parentheses() -> None:
    @sg.checkpoint()
    def layer(x: Any) -> Any:
        return np.sin(x) ** 2

    assert sg.grad(layer)(0.5) == pytest.approx(np.sin(1.0))


def test_defaults_of_keywords_are_no_arguments_of_rules() -> None:
    @sg.custom_jvp
    def scaled(x: Any, *, scale: float = 2.0) -> Any:
        return scale * x

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), 5.0 * tangents[0]))
    assert sg.value_and_grad(scaled)(3.0) == (6.0, 5.0)
    with pytest.raises(CustomRuleError, match=r"\['scale'\] are keyword-only"):
        sg.grad(lambda x: scaled(x, scale=1.0))(3.0)
    other: Any = sg.custom_jvp(functools.partial(scaled.f, scale=4.0))
    other.defjvp(lambda primals, tangents: (other(*primals), 6.0 * tangents[0]))
    assert sg.value_and_grad(other)(3.0) == (12.0, 6.0)


def test_rules_of_functions_of_numpy() -> None:
    """Their keywords, and `out`, were taken for arguments of the rule."""
    sine: Any = sg.custom_jvp(np.sin)
    sine.defjvp(lambda primals, tangents: (np.sin(primals[0]), sum(3.0 * t for t in tangents)))
    assert sg.grad(lambda x: sine(x))(0.5) == 3.0
    total: Any = sg.custom_vjp(np.add)
    total.defvjp(lambda x, y: (x + y, None), lambda _, ct: (2.0 * ct, 3.0 * ct))
    assert sg.grad(lambda x, y: total(x, y), (0, 1))(0.5, 1.0) == (2.0, 3.0)


def test_pairs_may_be_lists_and_none_stands_for_a_part_of_an_argument() -> None:
    @sg.custom_vjp
    def first(tree: Any) -> Any:
        return tree[0] * tree[1]["a"]

    first.defvjp(lambda tree: [first(tree), tree[1]["a"]], lambda a, ct: [(a * ct, None)])
    assert sg.grad(first)((2.0, {"a": 3.0, "b": [4.0]})) == (3.0, {"a": 0.0, "b": [0.0]})
    double: Any = sg.custom_jvp(lambda x: 2.0 * x)
    double.defjvp(lambda primals, tangents: [2.0 * primals[0], 5.0 * tangents[0]])
    assert sg.grad(lambda x: double(x))(1.0) == 5.0


def test_a_differentiated_value_given_by_nondiff_argnums_says_so() -> None:
    scaled: Any = sg.custom_jvp(lambda n, x: n * x, nondiff_argnums=(0,))
    scaled.defjvp(lambda n, primals, tangents: (scaled(n, *primals), n * tangents[0]))
    with pytest.raises(CustomRuleError, match="given one by nondiff_argnums"):
        sg.grad(lambda x: scaled(x, x))(2.0)


def test_jit_takes_none_for_no_arguments() -> None:
    f = sg.jit(lambda x: x + 1.0, static_argnums=None, static_argnames=None, donate_argnums=None)
    assert f(1.0) == 2.0
