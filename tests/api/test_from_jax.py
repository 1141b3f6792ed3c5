"""``from_jax``: values and derivatives are jax's, for what code written with jax.numpy is made of."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import srcgrad as sg
from srcgrad.errors import ArgumentError, UnsupportedError
from tests.api.from_jax_cases import CASES, MLP, B, Case, M, P, S, X, clipped, scaled

SMOOTH = (
    "special",
    "small_arguments",
    "custom_root",
    "small_dets",
    "softmax",
    "more_activations",
    "scatters",
    "solve_many",
    "cholesky",
    "slogdet",
    "custom_jvp",
    "scan",
    "long_scan",
    "transforms",
    "extremes_at_places",
    "factors",
    "stacked_systems",
)
ON_XLA = ("activations", "traced_index", "scatters", "cumulative", "solve")


def expected(case: Case) -> tuple[Any, Any]:
    """The value and the gradients by jax."""
    with jax.enable_x64(True):
        value, slopes = jax.jit(jax.value_and_grad(case.f, argnums=tuple(range(len(case.args)))))(*case.args)
    return np.asarray(value), jax.tree.map(np.asarray, slopes)


def close(found: Any, wanted: Any, scale: float = 1.0) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-9 * scale, atol=1e-11 * scale)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_jax(name: str) -> None:
    case = CASES[name]
    value, gradients = expected(case)
    f = sg.from_jax(case.f)
    found, slopes = sg.value_and_grad(f, argnums=tuple(range(len(case.args))))(*case.args)
    close(found, value)
    assert found.dtype == np.float64
    for one, other in zip(slopes, gradients, strict=True):
        close(one, other)
    generator = np.random.default_rng(7)
    tangents = tuple(generator.standard_normal(np.shape(x)) for x in case.args)
    forward = sg.jvp(f, case.args, tangents)[1]
    close(forward, sum(np.sum(g * t) for g, t in zip(gradients, tangents, strict=True)), 10)


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives_are_those_of_jax(name: str) -> None:
    case = CASES[name]
    with jax.enable_x64(True):
        wanted = jax.jit(jax.hessian(case.f))(*case.args)
    close(sg.hessian(sg.from_jax(case.f))(*case.args), wanted, 100)


@pytest.mark.parametrize("name", ON_XLA)
def test_they_run_on_xla(name: str) -> None:
    case = CASES[name]
    value, gradients = expected(case)
    found = sg.value_and_grad(sg.from_jax(case.f), argnums=tuple(range(len(case.args))), backend="xla")(*case.args)
    close(found[0], value, 10)
    for one, other in zip(found[1], gradients, strict=True):
        close(one, other, 10)


def test_a_network_with_parameters_in_containers() -> None:
    value, gradients = expected(MLP)
    found, slopes = sg.value_and_grad(sg.from_jax(MLP.f), argnums=(0, 1))(*MLP.args)
    close(found, value)
    close(slopes[1], gradients[1])
    for layer, other in zip(slopes[0], gradients[0], strict=True):
        assert sorted(layer) == ["b", "w"]
        close(layer["w"], other["w"])
        close(layer["b"], other["b"])


def test_it_is_part_of_code_written_with_numpy() -> None:
    soft = sg.from_jax(jax.nn.softplus)

    def loss(x: Any) -> Any:
        y = np.zeros_like(x)
        y[1:] = soft(x[:-1]) * x[1:]
        return np.sum(y**2)

    def same(x: Any) -> Any:
        return jnp.sum((jax.nn.softplus(x[:-1]) * x[1:]) ** 2)

    with jax.enable_x64(True):
        close(sg.grad(loss)(X), jax.grad(same)(X))
        close(sg.vmap(sg.grad(loss))(M), jax.vmap(jax.grad(same))(M))
        close(jax.grad(sg.to_jax(loss))(X), jax.grad(same)(X))


def test_what_it_returns_keeps_its_structure() -> None:
    f = sg.from_jax(lambda tree, *, k: {"a": (tree["x"] * k, jnp.arange(3)), "b": [tree["y"].sum()]})
    found = f({"x": X, "y": P}, k=2)
    close(found["a"][0], 2 * X)
    assert isinstance(found["b"], list) and type(found["a"]) is tuple
    assert found["a"][1].dtype.kind == "i" and found["a"][1].tolist() == [0, 1, 2]
    found["a"][1][0] = 7  # a constant of the program is the caller's own
    assert f({"x": X, "y": P}, k=2)["a"][1][0] == 0


def test_dtypes_are_those_of_the_arguments() -> None:
    f = sg.from_jax(lambda x: jnp.sum(x * jnp.ones(4)) * 2.5)
    assert f(X).dtype == np.float64
    assert sg.grad(f)(X.astype(np.float32)).dtype == np.float32
    assert f(X.astype(np.float32)).dtype == np.float32
    assert type(sg.from_jax(jnp.sin)(0.5)) is np.float64
    with jax.enable_x64(True):
        close(sg.from_jax(jnp.sin)(0.5), np.sin(0.5))
    assert isinstance(sg.grad(f)(jnp.ones(4)), jax.Array)


def test_a_float_beside_narrow_arrays_stays_narrow() -> None:
    f = sg.from_jax(lambda x, s: jnp.sum(x * s))
    assert sg.grad(f)(X.astype(np.float32), 2.0).dtype == np.float32


def test_each_signature_is_traced_once() -> None:
    traces = []

    def f(x: Any, n: int) -> Any:
        traces.append((x.shape, n))
        return jnp.sum(x**n)

    g = sg.from_jax(f, X, 2)
    assert traces == [((4,), 2)]
    for _ in range(3):
        close(sg.grad(g)(X, 2), 2 * X)
        close(sg.grad(g)(X, 3), 3 * X**2)
        close(sg.grad(g)(X[:2], 2), 2 * X[:2])
    assert traces == [((4,), 2), ((4,), 3), ((2,), 2)]


def test_two_of_them_never_share_a_program() -> None:
    def make(k: float) -> Any:
        return sg.from_jax(lambda x: jnp.sum(k * x * x))

    def apply(f: Any) -> Any:
        return sg.grad(lambda x: 2.0 * f(x))(X)

    for k in (1.0, 3.0, 1.0):
        close(sg.grad(make(k))(X), 2 * k * X)
        close(apply(make(k)), 4 * k * X)


def test_rules_of_jax_are_kept_to_the_third_order() -> None:
    def cubed(x: Any) -> Any:
        return jnp.sum(clipped(x) ** 3)

    def third(transform: Any, f: Any, total: Any) -> Any:
        first = transform(f)
        second = transform(lambda x: total(first(x)))
        return transform(lambda x: total(second(x)))

    with jax.enable_x64(True):
        close(third(sg.grad, sg.from_jax(cubed), np.sum)(P / 3), third(jax.grad, cubed, jnp.sum)(P / 3))
        wanted = jax.grad(lambda x: jnp.sum(scaled(x, x) * x))(P)
    close(sg.grad(sg.from_jax(lambda x: jnp.sum(scaled(x, x) * x)))(P), wanted)


def test_a_kink_has_the_derivative_that_its_rule_says() -> None:
    found = sg.grad(sg.from_jax(lambda x: jnp.sum(jax.nn.relu(x))))(np.array([-1.0, 0.0, 1.0]))
    assert found.tolist() == [0.0, 0.0, 1.0]


def test_a_branch_on_a_known_value_is_one_branch() -> None:
    f = sg.from_jax(lambda x: lax.cond(jnp.bool_(True), jnp.sin, lambda y: lax.nextafter(y, y), x))
    close(f(X), np.sin(X))


def test_a_switch_among_several_branches() -> None:
    def f(x: Any) -> Any:
        branches = [jnp.sin, jnp.cos, lambda y: y * y]
        return jnp.sum(lax.switch(jnp.argmax(x) - 1, branches, x))

    for x in (X, X[::-1].copy(), np.array([0.1, 0.9, 0.5, 0.2]), np.array([0.1, 0.2, 0.9, 0.5])):
        with jax.enable_x64(True):
            wanted = jax.value_and_grad(f)(x)
        found = sg.value_and_grad(sg.from_jax(f))(x)
        close(found[0], wanted[0])
        close(found[1], wanted[1])


def test_a_primitive_without_counterpart_says_which_and_where() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        return jnp.sum(lax.nextafter(y, x))  # the line that is named

    with pytest.raises(UnsupportedError, match="nextafter") as raised:
        sg.from_jax(f, X)
    error = raised.value
    assert isinstance(error, TypeError) and error.hint is not None and "to_jax" in error.hint
    assert error.span is not None and error.span.line == f.__code__.co_firstlineno + 2
    with pytest.raises(UnsupportedError, match="nextafter"):
        sg.grad(sg.from_jax(f))(X)


def newton(x: Any) -> Any:
    return jnp.sum(lax.while_loop(lambda r: jnp.max(jnp.abs(r * r - x)) > 1e-12, lambda r: 0.5 * (r + x / r), x))


def in_another(x: Any) -> Any:
    """Trips of the inner loop are as many as values say; what the outer one counts is an integer."""

    def grow(y: Any) -> Any:
        return lax.while_loop(lambda r: jnp.sum(r) < 3.0, lambda r: r * 1.5 + x[0], y)

    found = lax.while_loop(lambda s: s[1][0] < 9.0, lambda s: (s[0] + 1, s[1] + grow(s[1] * 0.1)), (0, x))
    return jnp.sum(found[1]) * found[0]


def of_examples(x: Any) -> Any:
    """Each example ends when its own value says."""
    return jnp.sum(jax.vmap(lambda y: lax.while_loop(lambda r: r[0] < 4.0, lambda r: r * r + 1, y * jnp.ones(2)))(x))


def in_a_long_scan(x: Any) -> Any:
    def step(c: Any, r: Any) -> Any:
        return lax.while_loop(lambda y: jnp.sum(y) > 1.0, lambda y: y * 0.7, jnp.abs(c + r)), None

    return jnp.sum(lax.scan(step, x, jnp.sin(jnp.arange(1200.0)))[0])


@pytest.mark.parametrize("f", [newton, in_another, of_examples, in_a_long_scan])
def test_a_loop_that_ends_when_a_value_says_so_is_a_loop(f: Any) -> None:
    with jax.enable_x64(True):
        wanted, slope, bend = f(P), jax.jacfwd(f)(P), jax.jacfwd(jax.jacfwd(f))(P)
    g = sg.from_jax(f)
    for backend in ("llvm", "numpy"):
        found = sg.value_and_grad(g, backend=backend)(P)
        close(found[0], wanted)
        close(found[1], slope, 10)
    close(sg.jacfwd(g)(P), slope, 10)
    close(sg.hessian(g)(P), bend, 100)
    assert " while " in str(sg.explain(g)(P)["ir"])


def test_a_long_scan_is_a_loop() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.sin(c) + jnp.cos(c), None), x, None, length=100_000)[0]

    with jax.enable_x64(True):
        wanted = jax.jit(f)(X)
    close(sg.from_jax(f)(X), wanted)
    assert " for " in str(sg.explain(sg.from_jax(f))(X)["ir"])


@pytest.mark.parametrize("solver", [jax.scipy.sparse.linalg.cg, jax.scipy.sparse.linalg.bicgstab])
def test_solvers_without_a_matrix_are_followed(solver: Any) -> None:
    def f(b: Any) -> Any:
        return jnp.sum(jnp.sin(solver(lambda v: S @ v, b, tol=1e-14)[0]))

    with jax.enable_x64(True):
        wanted = jax.value_and_grad(f)(B)
    found = sg.value_and_grad(sg.from_jax(f))(B)
    close(found[0], wanted[0], 100)
    close(found[1], wanted[1], 1e3)


@pytest.mark.slow  # XLA compiles jax's own for ten seconds
def test_the_adjoint_of_a_differential_equation_is_that_of_jax() -> None:
    from jax.experimental.ode import odeint

    def f(x: Any) -> Any:
        return jnp.sum(odeint(lambda y, t: -y * jnp.cos(t), x, jnp.array([0.0, 1.0, 2.0]))[1:])

    with jax.enable_x64(True):
        wanted = jax.value_and_grad(f)(P)
    found = sg.value_and_grad(sg.from_jax(f))(P)
    close(found[0], wanted[0], 1e3)
    close(found[1], wanted[1], 1e3)


def test_a_long_scan_whose_step_has_no_counterpart_is_refused() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (lax.nextafter(c, jnp.cos(c)), None), x, None, length=100_000)[0]

    with pytest.raises(UnsupportedError, match="nextafter"):
        sg.from_jax(f)(X)


@pytest.mark.slow  # jax compiles 2,100 random draws
def test_a_long_scan_over_keys_is_unrolled() -> None:
    def f(x: Any) -> Any:
        keys = jax.random.split(jax.random.key(0), 2_100)
        return lax.scan(lambda c, k: (c * 0.5 + jax.random.normal(k, (3,)) * x, None), jnp.zeros(3), keys)[0].sum()

    with jax.enable_x64(True):
        wanted = jax.value_and_grad(f)(np.arange(3.0))
    found = sg.value_and_grad(sg.from_jax(f))(np.arange(3.0))
    close(found[0], wanted[0])
    close(found[1], wanted[1])


def test_keys_that_a_loop_of_a_traced_length_carries_are_refused() -> None:
    def f(x: Any) -> Any:
        start = (x, jax.random.key(0))
        return lax.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] / 2, jax.random.split(s[1])[0]), start)[0]

    with pytest.raises(UnsupportedError, match="keys"):
        sg.from_jax(f)(3.0)


def test_integers_are_those_of_jax() -> None:
    def f(x: Any) -> Any:
        shifts = [lax.shift_right_logical(x, jnp.int8(k)) for k in range(8)]
        return jnp.stack([*shifts, lax.population_count(x)])

    x = np.arange(-128, 128).astype(np.int8)
    wanted = np.asarray(f(jnp.asarray(x)))
    np.testing.assert_array_equal(sg.jit(sg.from_jax(f))(x), wanted)


def test_arguments_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="takes a function"):
        sg.from_jax(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="an argument is"):
        sg.from_jax(lambda x, y: x)(X, object())


def test_threads_share_one() -> None:
    f = sg.from_jax(lambda x: jnp.sum(jax.nn.gelu(x) * jnp.sin(x)))
    with jax.enable_x64(True):
        wanted = np.asarray(jax.grad(lambda x: jnp.sum(jax.nn.gelu(x) * jnp.sin(x)))(X))
    found: list[Any] = [None] * 8

    def work(k: int) -> None:
        found[k] = sg.grad(f)(X)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in found:
        close(result, wanted)


def test_what_the_function_holds_dies_with_it() -> None:
    weights = np.arange(4.0) * 1.5
    alive = weakref.ref(weights)
    f = sg.from_jax(lambda x, w=weights: jnp.sum(x * w))
    close(sg.grad(f)(X), weights)
    del f, weights
    gc.collect()
    assert alive() is None
