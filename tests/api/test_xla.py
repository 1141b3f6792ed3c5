"""The xla backend from the front: every transform, jax arrays in and out, donation, threads, memory."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import srcgrad as sg
from srcgrad.cache import PROGRAMS
from srcgrad.compiler import backend_name
from srcgrad.errors import ArgumentError, DTypeError, IntegerInputError, MutationError, ShapeError, UnsupportedError

X = np.array([0.5, 2.0, -1.0])
W = np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 0.7]])
BACKENDS = ["numpy", "xla"]


def wide(x: Any) -> jax.Array:
    """A jax array of the same dtype, whatever jax's configuration says."""
    with jax.enable_x64(True):
        return jnp.array(x)


def energy(x: Any) -> Any:
    return np.sum(np.sin(x) ** 2 * np.exp(0.5 * x))


def layers(p: Any, x: Any) -> Any:
    return np.sum(np.tanh(p["w"] @ x + p["b"]))


def field(x: Any) -> Any:
    return np.sin(x) * x[::-1]


PARAMS = {"w": W, "b": np.array([0.1, -0.2])}
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "grad": (lambda p, x, **o: sg.grad(layers, **o)(p, x), (PARAMS, X)),
    "argnums": (lambda p, x, **o: sg.grad(layers, argnums=(1, 0), **o)(p, x), (PARAMS, X)),
    "value_and_grad": (lambda x, **o: sg.value_and_grad(energy, **o)(x), (X,)),
    "has_aux": (
        lambda x, **o: sg.value_and_grad(lambda x: (energy(x), {"s": np.sin(x), "k": 3}), has_aux=True, **o)(x),
        (X,),
    ),
    "jacobian": (lambda x, **o: sg.jacobian(field, **o)(x), (X,)),
    "jacfwd": (lambda x, **o: sg.jacfwd(field, **o)(x), (X,)),
    "jacrev": (lambda x, **o: sg.jacrev(field, **o)(x), (X,)),
    "hessian": (lambda x, **o: sg.hessian(energy, **o)(x), (X,)),
    "vmap": (lambda w, x, **o: sg.vmap(sg.grad(lambda r, x: energy(r * x)), in_axes=(0, None), **o)(w, x), (W, X)),
    "jit": (lambda p, x, **o: sg.jit(lambda p, x: {"y": p["w"] @ x, "n": 2}, **o)(p, x), (PARAMS, X)),
    "vjp": (lambda x, **o: (lambda out, pull: (out, pull(out)))(*sg.vjp(field, x, **o)), (X,)),
    "jvp": (lambda x, v, **o: sg.jvp(field, (x,), (v,), **o), (X, X * 2)),
    "linearize": (lambda x, v, **o: (lambda out, push: (out, push(v)))(*sg.linearize(field, x, **o)), (X, X * 2)),
    "hvp": (lambda x, v, **o: sg.hvp(energy, (x,), (v,), **o), (X, X * 2)),
    "scalar": (lambda x, **o: sg.grad(lambda x: np.sin(x) * x, **o)(x), (np.float64(0.7),)),
    "nested": (lambda x, **o: sg.grad(lambda x: np.sum(sg.grad(energy)(x) ** 2), **o)(x), (X,)),
}


def compare(found: Any, wanted: Any, kind: type) -> None:
    """The same structure and numbers; arrays are of this kind."""
    mine, tree = jax.tree.flatten(found)
    others, other_tree = jax.tree.flatten(wanted)
    assert tree == other_tree
    for one, other in zip(mine, others, strict=True):
        if isinstance(other, (np.ndarray, np.floating)):
            assert isinstance(one, kind) and np.shape(one) == np.shape(other) and one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        else:
            assert type(one) is type(other) and one == other


@pytest.mark.parametrize("name", CALLS)
def test_numpy_arrays_in_and_out(name: str) -> None:
    call, args = CALLS[name]
    wanted = call(*args)
    for _ in range(2):  # the second call is a cached one
        found = call(*args, backend="xla")
        compare(found, wanted, (np.ndarray, np.generic))  # type: ignore[arg-type]
        for leaf in jax.tree.leaves(found):
            assert not isinstance(leaf, np.ndarray) or (leaf.flags.writeable and leaf.ndim > 0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CALLS)
def test_jax_arrays_in_and_out(name: str, backend: str) -> None:
    call, args = CALLS[name]
    wanted = call(*args)
    given = jax.tree.map(wide, args)
    assert not jax.config.jax_enable_x64
    for _ in range(2):
        compare(call(*given, backend=backend), wanted, jax.Array)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_jax_array_among_others_is_enough(backend: str) -> None:
    f = sg.value_and_grad(lambda x, y, s: np.sum(x * y * s), argnums=(0, 1, 2), backend=backend)
    wanted = f(X, X + 1, 2.0)
    y = X + 1
    compare(f(wide(X), y, 2.0), wanted, jax.Array)
    compare(f(X, y, wide(2.0)), wanted, jax.Array)
    found = f(wide(X), y, 2.0)
    y[:] = 0.0  # what was given may be written to after the call
    compare(found, wanted, jax.Array)


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_precision_stays_single(backend: str) -> None:
    found = sg.grad(energy, backend=backend)(jnp.asarray(X, jnp.float32))
    assert isinstance(found, jax.Array) and found.dtype == np.float32
    np.testing.assert_allclose(found, sg.grad(energy)(X), rtol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_kind_of_the_results_is_that_of_each_call(backend: str) -> None:
    f = sg.grad(energy, backend=backend)
    for _ in range(3):
        assert type(f(X)) is np.ndarray
        assert isinstance(f(wide(X)), jax.Array)
        assert isinstance(f(jnp.asarray(X)), jax.Array) and f(jnp.asarray(X)).dtype == np.float32


@pytest.mark.parametrize("backend", BACKENDS)
def test_pullbacks_and_linear_maps_take_both_kinds(backend: str) -> None:
    wanted = sg.vjp(field, X)[1](X)[0]
    for primal in (X, wide(X)):
        pull = sg.vjp(field, primal, backend=backend)[1]
        push = sg.linearize(field, primal, backend=backend)[1]
        for seed in (X, wide(X)):
            kind = np.ndarray if primal is X and seed is X else jax.Array
            compare(pull(seed), (wanted,), kind)
            compare(push(seed), sg.jvp(field, (X,), (X,))[1], kind)


@pytest.mark.parametrize("backend", BACKENDS)
def test_tangents_are_cast_without_losing_their_kind(backend: str) -> None:
    _, dot = sg.jvp(field, (wide(X),), (jnp.asarray(X, jnp.float32),), backend=backend)
    assert isinstance(dot, jax.Array) and dot.dtype == np.float64
    compare(dot, sg.jvp(field, (X,), (X,))[1], jax.Array)
    with pytest.raises(ShapeError):
        sg.jvp(field, (wide(X),), (wide(X[:2]),), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_whole_numbers_have_zeros_for_derivatives(backend: str) -> None:
    numbers = jnp.arange(3)
    with pytest.raises(IntegerInputError):
        sg.grad(energy, backend=backend)(numbers)
    pulled = sg.vjp(lambda x, n: x * n, wide(X), numbers, backend=backend)[1](wide(X))
    assert isinstance(pulled[1], jax.Array) and pulled[1].dtype == numbers.dtype and not pulled[1].any()
    assert isinstance(sg.grad(lambda x, n: np.sum(x[n]), backend=backend)(wide(X), numbers), jax.Array)


@pytest.mark.parametrize("backend", BACKENDS)
def test_captured_arrays_are_read_at_each_call(backend: str, programs: Any) -> None:
    weights = wide(X)

    def f(x: Any) -> Any:
        return np.sum(weights * x**2)

    g = sg.grad(f, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no new trace at each call
        compare(g(X), 2 * X * X, jax.Array)
        entries = len(programs.entries)
        weights = wide(3 * X)
        compare(g(X), 6 * X * X, jax.Array)
        assert len(programs.entries) == entries  # read, not compiled in
        weights = X  # type: ignore[assignment]
        compare(g(X), 2 * X * X, np.ndarray)
        compare(g(wide(X)), 2 * X * X, jax.Array)


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_that_are_traced_again_take_jax_arrays(backend: str) -> None:
    seen = []

    def f(x: Any, data: Any) -> Any:
        seen.append(type(data["y"]))
        x[0] = x[0] * 2.0
        if x[1] > 0:
            return np.sum(x**2 * data["y"])
        return np.sum(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        x = wide(X)
        found = sg.value_and_grad(f, backend=backend)(x, {"y": wide(X + 1)})
        wanted = sg.value_and_grad(f, backend="numpy")(X.copy(), {"y": X + 1})
        compare(found, wanted, jax.Array)
        compare(x, X, jax.Array)
        plain = sg.jit(lambda x: (x * 2.0, 7) if float(np.sum(x * 1)) > 0 else x, backend=backend)
        compare(plain(wide(X)), (X * 2.0, 7), jax.Array)
        pull = sg.vjp(f, x, {"y": wide(X + 1)}, backend=backend)[1]
        compare(pull(1.0)[0], wanted[1], jax.Array)
        sg.vmap(lambda x: seen.append(type(x)) or float(str(x[0])), backend=backend)(wide(np.stack([X])))
        sg.jit(lambda x: seen.append(type(x)) or float(str(x[0])), backend=backend)(x)
    assert not any(issubclass(kind, jax.Array) for kind in seen)


def test_arrays_in_a_trace_are_constants_of_it() -> None:
    table = {"w": wide(X)}

    def inner(x: Any, w: Any) -> Any:
        return np.sum(x * w)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        found = sg.grad(lambda x: np.sum(sg.grad(inner)(x * x, table["w"]) * x) + np.sum(table["w"] * x))(X)
        mapped = sg.grad(lambda x: np.sum(sg.vmap(lambda a, b: a * b)(x, table["w"])))(X)
    np.testing.assert_allclose(found, 2 * X)
    np.testing.assert_allclose(mapped, X)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_array_of_jax_cannot_be_changed_by_jit(backend: str) -> None:
    def f(x: Any) -> Any:
        x += 1.0
        return x

    changed = X.copy()
    sg.jit(f, backend=backend)(changed)
    np.testing.assert_array_equal(changed, X + 1)
    with pytest.raises(MutationError):
        sg.jit(lambda x: f(x * np.ones((2, 3)))[0] + x.fill(0.0), backend=backend)(wide(X))


def test_donated_buffers_are_gone() -> None:
    step = sg.jit(lambda p, g, k: (p - 0.1 * g, k * 2.0), donate_argnums=(0,), backend="xla")
    p, g = wide(X), wide(X + 1)
    found = step(p, g, 1.0)
    np.testing.assert_allclose(found[0], X - 0.1 * (X + 1))
    assert p.is_deleted() and not g.is_deleted()
    for _ in range(3):  # cached calls too
        q = wide(X)
        step(q, g, 1.0)
        assert q.is_deleted() and not g.is_deleted()
    np.testing.assert_allclose(step(X, X + 1, 1.0)[0], X - 0.1 * (X + 1))  # an array of NumPy is not concerned
    kept = wide(X)
    sg.jit(lambda p: p * 2.0, donate_argnums=0, backend="numpy")(kept)
    sg.jit(lambda p: p * 2.0, backend="xla")(kept)
    assert not kept.is_deleted()


def test_donation_counts_from_the_end_and_inside_containers() -> None:
    tree = {"a": wide(X), "n": 3, "b": wide(X * 2)}
    f = sg.jit(lambda s, t: {"a": t["a"] * s, "b": t["b"] * t["n"]}, donate_argnums=-1, backend="xla")
    s = wide(2.0)
    found = f(s, tree)
    np.testing.assert_allclose(found["b"], X * 6)
    assert tree["a"].is_deleted() and tree["b"].is_deleted() and not s.is_deleted()  # type: ignore[attr-defined]
    same = sg.jit(lambda x: x, donate_argnums=0, backend="xla")
    np.testing.assert_allclose(same(wide(X)), X)


@pytest.mark.parametrize("backend", ["numpy", "xla"])
@pytest.mark.parametrize("number", [2, 5, -3, (0, 2), (0, -2), (1, 1)])
def test_donated_arguments_that_are_not_there_are_an_error(backend: str, number: Any) -> None:
    step = sg.jit(lambda p, g: p - 0.1 * g, donate_argnums=number, backend=backend)
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"donate_argnums=.*(2 positional arguments|twice)"):
            step(X, X)
    first = sg.jit(lambda p, g=2.0: p - 0.1 * g, donate_argnums=0, backend=backend)
    np.testing.assert_allclose(first(X), X - 0.2)
    np.testing.assert_allclose(first(X, g=X), 0.9 * X)
    with pytest.raises(ArgumentError, match="0 positional arguments"):
        first(p=X)


def test_tracers_of_jax_are_refused_with_the_way_out() -> None:
    def given(x: Any) -> Any:
        return sg.grad(energy)(x)

    def closed_over(x: Any) -> Any:
        return sg.grad(lambda y: np.sum(y * x))(X)

    def in_a_container(x: Any) -> Any:
        return sg.jit(lambda p: p["x"] * 2)({"x": x})

    for f in (given, closed_over, in_a_container):
        for transform in (jax.jit, jax.vmap):
            with pytest.raises(UnsupportedError, match="tracer of jax") as raised:
                transform(f)(jnp.ones(3))
            assert isinstance(raised.value, TypeError) and "to_jax" in str(raised.value.hint)


def test_types_that_numpy_has_not_are_refused() -> None:
    for x in (jnp.ones(3, jnp.bfloat16), jax.random.key(0)):
        with pytest.raises(DTypeError, match="jax array of dtype"):
            sg.grad(energy)(x)


def test_the_backend_can_be_chosen_in_each_way() -> None:
    wanted, default = sg.grad(energy)(X), executable_text()
    with sg.use_backend("xla"):
        compare(sg.grad(energy)(X), wanted, np.ndarray)
        assert "HloModule" in executable_text() or "module" in executable_text()
    assert executable_text() == default
    before = backend_name(None)
    sg.set_backend("xla")
    try:
        compare(sg.grad(energy)(X), wanted, np.ndarray)
    finally:
        sg.set_backend(before)


def executable_text() -> str:
    """The text of the program that a call makes."""
    sg.clear_caches()
    sg.grad(energy)(X)
    program: Any = next(reversed(PROGRAMS.entries.values()))
    source = program.run.executable.source
    return str(source() if callable(source) else source)


def test_checks_raise_where_arrays_stay_on_the_device() -> None:
    singular = wide(np.zeros((2, 2)))
    for matrix in (singular, np.zeros((2, 2))):
        with pytest.raises(np.linalg.LinAlgError):
            sg.jit(lambda a: np.linalg.solve(a, a[0]), backend="xla")(matrix)


def test_threads_share_programs() -> None:
    sg.clear_caches()
    f = sg.grad(energy, backend="xla")
    wanted = sg.grad(energy)(X)
    found: list[Any] = [None] * 8

    def work(k: int) -> None:
        for _ in range(5):
            found[k] = f(wide(X) if k % 2 else X)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, result in enumerate(found):
        compare(result, wanted, jax.Array if k % 2 else np.ndarray)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_jax_array_is_kept(backend: str) -> None:
    x, w = wide(X), wide(X + 1)
    f = sg.value_and_grad(lambda x, w=w: np.sum(x * w * x), backend=backend)
    out, slope = f(x)
    pull = sg.vjp(field, x, backend=backend)[1]
    pulled = pull(x)[0]
    alive = [weakref.ref(value) for value in (x, w, out, slope, pulled)]
    del x, w, out, slope, pull, pulled, f
    gc.collect()
    assert [reference() for reference in alive] == [None] * 5


def run_python(code: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd(), **environment}, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_jax_is_imported_only_where_it_is_used() -> None:
    found = run_python(
        """
        import sys
        import numpy as np, srcgrad as sg
        print("jax" in sys.modules)
        sg.grad(lambda x, n: np.sum(x ** n))(np.ones(3), 2), sg.vjp(np.sin, 1.0), sg.jit(np.sin)(2.0)
        f = sg.vmap(sg.grad(lambda x: x * x))
        f(np.ones(3))
        print("jax" in sys.modules)
        sg.grad(np.sin, backend="xla")
        print("jax" in sys.modules)
        """
    )
    assert found.split() == ["False", "False", "True"]


def test_the_environment_chooses_the_backend() -> None:
    found = run_python(
        """
        import sys
        import numpy as np, srcgrad as sg
        print(type(sg.grad(np.sin)(0.0)).__name__, "jax" in sys.modules)
        """,
        SRCGRAD_BACKEND="xla",
    )
    assert found == "float64 True"


def test_arrays_of_another_device_are_computed_there() -> None:
    found = run_python(
        """
        import jax, jax.numpy as jnp, numpy as np, srcgrad as sg
        first, second = jax.devices()
        f = sg.grad(lambda x: np.sum(np.sin(x) * x), backend="xla")
        for device in (first, second, first, second):
            x = jax.device_put(jnp.ones(4), device)
            print(list(f(x).devices())[0].id, bool(np.allclose(f(x), f(np.ones(4)))))
        sharding = jax.sharding.NamedSharding(jax.make_mesh((2,), ("i",)), jax.sharding.PartitionSpec("i"))
        x = jax.device_put(jnp.ones(4), sharding)
        print(len(f(x).devices()), bool(np.allclose(f(x), f(np.ones(4)))))
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=2", JAX_PLATFORMS="cpu",
    )  # fmt: skip
    assert found.splitlines() == ["0 True", "1 True", "0 True", "1 True", "2 True"]
