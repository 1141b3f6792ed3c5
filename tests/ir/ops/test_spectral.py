"""The ops of functions of eigenvalues and singular values, as linear maps: what differentiation composes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Region
from srcgrad.ir.errors import ShapeError
from srcgrad.ir.opdef import REGISTRY, Lin, Term, Zero
from srcgrad.ir.ops.divided import Spectrum, lift
from srcgrad.ir.ops.spectral import Derivatives
from srcgrad.ir.parser import parse
from srcgrad.ir.passes.contained import taken_from_others
from srcgrad.ir.passes.expand import expand
from srcgrad.ir.passes.pipeline import optimise
from srcgrad.ir.text import show
from srcgrad.ir.transforms.batch import batch
from srcgrad.ir.transforms.linear import Masked
from srcgrad.ir.transforms.linearize import jvp, linearize
from srcgrad.ir.transforms.transpose import transpose
from srcgrad.ir.types import BOOL, FLOAT64, ArrayType
from srcgrad.ir.verify import verify

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(7)
SCALAR = ArrayType(FLOAT64)


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Every test draws the same numbers, whichever ran before it."""
    RANDOM.bit_generator.state = np.random.default_rng(8).bit_generator.state


def region(g: Callable[..., Term], params: int = 0) -> Region:
    builder = Builder()
    return builder.region([g(*(Term(builder, builder.param(SCALAR)) for _ in range(1 + params))).value])


def exp(w: Term, *params: Term) -> Term:
    for p in params:
        w = w * p
    return REGISTRY["exp"](w)


def application(name: str, operands: Sequence[Array], g: Region, **attrs: Any) -> Function:
    builder = Builder()
    values = [builder.param(ArrayType(np.asarray(a).dtype, np.shape(a))) for a in operands]
    return builder.function(name, [builder.emit(REGISTRY[name], values, attrs, (g,))])


def run(function: Function, *arguments: Any) -> list[Array]:
    verify(function)
    return [np.asarray(x) for x in evaluate(function, [np.asarray(a)[()] for a in arguments])]


def matrices(shape: Sequence[int], dtype: Any = float) -> Array:
    x = RANDOM.normal(size=shape)
    return x + 1j * RANDOM.normal(size=shape) if dtype is complex else x


def hermitian(size: int, dtype: Any = float) -> Array:
    x = matrices((size, size), dtype)
    return x + x.conj().T


SPECTRAL = {"directions": 2, "indexed": ()}


@pytest.mark.parametrize("dtype", [float, complex])
def test_spectral_is_symmetric_and_linear_in_its_directions(dtype: Any) -> None:
    a, h, k, other = (hermitian(3, dtype) if n == 0 else matrices((3, 3), dtype) for n in range(4))
    f = application("spectral", [a, h, k], region(exp), **SPECTRAL)
    (x,), (y,) = run(f, a, h, k), run(f, a, k, h)
    np.testing.assert_allclose(x, y, atol=1e-13)
    (z,), (sum_,) = run(f, a, other, k), run(f, a, 2 * h + other, k)
    np.testing.assert_allclose(sum_, 2 * x + z, atol=1e-12)


KINDS = list(itertools.product(("cross", "left", "right"), repeat=2))


def singular_case(shape: tuple[int, int], kinds: Sequence[str], block: str, dtype: Any) -> tuple[Function, list[Array]]:
    rows, columns = shape
    sizes = {"cross": shape, "left": (rows, rows), "right": (columns, columns)}
    directions = [matrices(sizes[kind], dtype) for kind in kinds]
    directions = [x if kind == "cross" else x + x.conj().T for x, kind in zip(directions, kinds, strict=True)]
    operands = [matrices(shape, dtype), *directions]
    even = (block == "cross") == (sum(kind == "cross" for kind in kinds) % 2 == 1)
    attrs = {"directions": len(kinds), "kinds": tuple(kinds), "block": block, "even": even, "indexed": ()}
    return application("singular", operands, region(exp), **attrs), operands


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(3, 3), (3, 2), (2, 3)])
def test_transposes(shape: tuple[int, int], dtype: Any) -> None:
    """<u, L h> = <L^T u, h> for each direction, Re sum without a conjugate."""
    cases = [singular_case(shape, kinds, block, dtype) for kinds in KINDS for block in ("cross", "left", "right")]
    if shape == (3, 3):
        a = hermitian(3, dtype)
        operands = [a, matrices((3, 3), dtype), matrices((3, 3), dtype)]
        cases.append((application("spectral", operands, region(exp), **SPECTRAL), operands))
    for f, operands in cases:
        for k in (1, 2):
            linear = linearize(f, [j == k for j in range(3)])
            found = run(linear.primal, *operands)
            h, residuals = operands[k], found[1:]
            (pushed,) = run(linear.linear, *residuals, h)
            np.testing.assert_allclose(pushed, found[0], atol=1e-11)
            u = matrices(pushed.shape, dtype)
            (pulled,) = run(transpose(linear.linear), *residuals, u)
            np.testing.assert_allclose(np.sum(u * pushed).real, np.sum(pulled * h).real, rtol=1e-10, atol=1e-10)


def test_masks() -> None:
    """A direction that is absent for one matrix of a stack is absent in its result, whatever stands there."""
    a, h = np.stack([np.eye(3), hermitian(3)]), matrices((2, 3, 3))
    h[0] = np.nan
    builder = Builder()
    s = Masked(builder)
    matrix, value = (builder.param(ArrayType(FLOAT64, (2, 3, 3))) for _ in range(2))
    mask = builder.param(ArrayType(BOOL, (2, 3, 3)))
    tangent = Lin(value, mask)
    attrs = {"directions": 1, "indexed": ()}
    (found,) = s.apply_all(REGISTRY["spectral"], [Term(builder, matrix), tangent], attrs, (region(exp),))
    assert isinstance(found, Lin)
    assert found.mask is not None
    f = builder.function("masked", [s.materialise(found), found.mask])
    known = np.zeros((2, 3, 3), bool)
    known[1, 0, 0] = True
    values, structure = run(f, a, h, known)
    np.testing.assert_array_equal(structure, np.broadcast_to([[[False]], [[True]]], (2, 3, 3)))
    assert not values[0].any()
    only = np.where(known[1], h[1], 0)
    (expected,) = run(application("spectral", [a[1], only], region(exp), **attrs), a[1], only)
    np.testing.assert_allclose(values[1], expected, atol=1e-13)
    (absent,) = s.apply_all(REGISTRY["spectral"], [Term(builder, matrix), Zero(value.type)], attrs, (region(exp),))
    assert isinstance(absent, Zero)


BATCHED = {
    "spectral": (
        [hermitian(3), matrices((3, 3)), matrices((3, 3)), np.array(0.5), np.array([1.0, 1.0, 2.0])],
        {"directions": 2, "indexed": (False, True)},
    ),
    "spectral_sum": ([hermitian(3), np.array(0.5), np.array([1.0, 1.0, 2.0])], {"indexed": (False, True)}),
    "singular": (
        [matrices((3, 2)), matrices((3, 2)), np.array(0.5), np.array([1.0, 2.0])],
        {"directions": 1, "kinds": ("cross",), "block": "cross", "even": False, "indexed": (False, True)},
    ),
    "singular_sum": ([matrices((3, 2)), np.array(0.5), np.array([1.0, 2.0])], {"indexed": (False, True)}),
}


@pytest.mark.parametrize("name", BATCHED)
def test_batching(name: str) -> None:
    """Of every choice of operands, and of the batched function again: a loop and a stack."""
    operands, attrs = BATCHED[name]
    f = application(name, operands, region(exp, 2), **attrs)
    others = [0.75 * x for x in operands]
    for choice in list(itertools.product((False, True), repeat=len(operands)))[1:]:
        stacked = [np.stack([x, y]) if c else x for x, y, c in zip(operands, others, choice, strict=True)]
        second = [y if c else x for x, y, c in zip(operands, others, choice, strict=True)]
        (found,) = run(batch(f, choice, 2), *stacked)
        expected = np.stack([run(f, *operands)[0], run(f, *second)[0]])
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12, err_msg=str(choice))
        again = batch(batch(f, choice, 2), [True, *[False] * (len(operands) - 1)], 2)
        matrix = np.stack([stacked[0], others[0] * np.ones_like(stacked[0])])
        (twice,) = run(again, matrix, *stacked[1:])
        one, two = (run(batch(f, choice, 2), m, *stacked[1:])[0] for m in matrix)
        np.testing.assert_allclose(twice, np.stack([one, two]), rtol=1e-11, atol=1e-12, err_msg=str(choice))


@pytest.mark.parametrize("name", BATCHED)
def test_transposes_of_batched_functions(name: str) -> None:
    """Cotangents of operands that all examples share are summed."""
    operands, attrs = BATCHED[name]
    moved = operands[:-1]  # the derivative in an indexed parameter is that of ordinary operations
    f = jvp(application(name, operands, region(exp, 2), **attrs), [*[True] * len(moved), False])
    tangents = [matrices(x.shape) for x in moved]
    arguments = [*operands, *tangents]
    for which in range(len(operands)):
        choice = [k == which for k in range(len(arguments))]
        batched = batch(f, choice, 2)
        active = [k == len(operands) for k in range(len(arguments))]
        linear = linearize(batched, active)
        stacked = [np.stack([x, 0.75 * x]) if c else x for x, c in zip(arguments, choice, strict=True)]
        residuals = run(linear.primal, *stacked)[2:]
        pushed = run(linear.linear, *residuals, tangents[0])
        u = [matrices(x.shape) for x in pushed]
        (pulled,) = run(transpose(linear.linear), *residuals, *u)
        expected = sum(np.sum(x * y) for x, y in zip(u, pushed, strict=True))
        np.testing.assert_allclose(np.sum(pulled * tangents[0]), expected, rtol=1e-10, atol=1e-11)


POINTS = [0.0, 1e-14, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2, 1.0, 4.0]
SMOOTH = {
    "exp": (lambda x: REGISTRY["exp"](x), mpmath.exp),
    "log": (lambda x: REGISTRY["log"](x), mpmath.log),
    "sqrt": (lambda x: REGISTRY["sqrt"](x), mpmath.sqrt),
    "tanh": (lambda x: REGISTRY["tanh"](x), mpmath.tanh),
    "x**-3": (lambda x: 1.0 / (x * x * x), lambda x: x**-3),
    "with cancellation": (lambda x: REGISTRY["exp"](x) - REGISTRY["exp"](x - 1e-3), None),
}


def precise_difference(g: Callable[[Any], Any], points: Sequence[float]) -> float:
    """Of points that are moved apart a little: 400 digits stand what that loses."""
    with mpmath.workdps(400):
        x = [mpmath.mpf(p) + mpmath.mpf(k) * mpmath.mpf(10) ** -40 for k, p in enumerate(points)]
        row = [g(p) for p in x]
        for level in range(1, len(x)):
            row = [(row[k + 1] - row[k]) / (x[k + level] - x[k]) for k in range(len(row) - 1)]
        return float(row[0])


@pytest.mark.parametrize("name", SMOOTH)
def test_divided_differences(name: str) -> None:
    """The relative accuracy, for points at all distances from each other, to the third order."""
    g, reference = SMOOTH[name]
    if reference is None:

        def reference(x: Any) -> Any:
            return mpmath.exp(x) - mpmath.exp(x - mpmath.mpf(1e-3))

    points = 1.0 + np.array(POINTS)
    for order, bound in ((1, 2e-13), (2, 5e-12), (3, 2e-10)):
        found = differences(g, points, order)
        if name == "with cancellation":
            bound *= 3e3  # so many digits g itself has lost
        tuples = list(itertools.combinations_with_replacement(range(len(points)), order + 1))
        for chosen in tuples[:: max(1, len(tuples) // 150)]:
            expected = precise_difference(reference, sorted(points[list(chosen)]))
            np.testing.assert_allclose(found[chosen], expected, rtol=bound, err_msg=str(points[list(chosen)]))
            np.testing.assert_allclose(found[chosen[::-1]], expected, rtol=bound)


def differences(g: Callable[[Term], Term], points: Array, order: int) -> Array:
    builder = Builder()
    x = Term(builder, builder.param(ArrayType(FLOAT64, points.shape)))
    spectrum = Spectrum(x, [], [], None, x * 1e-15, Derivatives(region(g)))
    f = builder.function("differences", [spectrum.differences(order).value])
    return run(f, points)[0]


def test_differences_of_functions_that_are_not_smooth() -> None:
    """Between points with a kink or a jump between them the quotient stands, however close they are."""
    points = np.array([-2.0, -1e-9, 1e-9, 3e-9, 1.0, 1.0])

    def step(x: Term) -> Term:
        return REGISTRY["select"](x > 0.0, x.like(1.0), x.like(0.0))

    found = differences(step, points, 1)
    np.testing.assert_allclose(found[1, 2], 5e8)
    np.testing.assert_allclose(found[1, 3], 2.5e8)
    np.testing.assert_allclose(found[0, 4], 1 / 3)
    assert found[4, 5] == 0.0
    found = differences(lambda x: REGISTRY["abs"](x), points, 1)
    np.testing.assert_allclose(found[1, 3], 0.5, rtol=1e-6)
    np.testing.assert_allclose(found[0, 4], -1 / 3, rtol=1e-14)
    np.testing.assert_allclose(found[4, 5], 1.0)


def test_values_alone_come_from_a_decomposition_that_is_there() -> None:
    a = hermitian(3)
    builder = Builder()
    matrix = builder.param(ArrayType(FLOAT64, (3, 3)))
    total = builder.emit(REGISTRY["spectral_sum"], [matrix], {"indexed": ()}, (region(exp),))
    whole = builder.emit(REGISTRY["spectral"], [matrix], {"directions": 0, "indexed": ()}, (region(exp),))
    f = builder.function("both", [total, whole])
    names = [operation.op.name for operation in taken_from_others(expand(f)).operations]
    assert names.count("eigh") == 1
    assert "eigvalsh" not in names
    np.testing.assert_allclose(run(f, a)[0], np.trace(run(f, a)[1]), rtol=1e-13)
    np.testing.assert_allclose(run(optimise(f), a)[1], run(f, a)[1], rtol=1e-13)
    written = expand(f)
    assert expand(written) is written


def test_functions_without_these_ops_are_left_alone() -> None:
    builder = Builder()
    x = Term(builder, builder.param(SCALAR))
    f = builder.function("f", [(x * x).value])
    assert expand(f) is f


def test_text() -> None:
    f = application("spectral", [hermitian(2), matrices((2, 2))], region(exp), directions=1, indexed=())
    verify(f)
    assert show(parse(show(f))) == show(f)


def test_what_does_not_fit_is_refused() -> None:
    a, one = hermitian(3), region(exp, 1)
    for operands, attrs in (
        ([a, np.ones(2)], {"directions": 0, "indexed": (True,)}),
        ([a, np.ones((2, 2)), np.array(1.0)], {"directions": 1, "indexed": (False,)}),
        ([np.stack([a, a]), np.ones(3)], {"directions": 0, "indexed": (False,)}),
    ):
        with pytest.raises(ShapeError):
            application("spectral", operands, one, **attrs)
    with pytest.raises(ShapeError, match="region takes"):
        application("spectral", [a], one, directions=0, indexed=())


def test_lifting_a_region_that_is_a_constant() -> None:
    builder = Builder()
    x = Term(builder, builder.param(ArrayType(FLOAT64, (2, 2))))
    assert lift(region(lambda w: w.like(3.0)), [x]).shape == (2, 2)
