"""Linear algebra as native steps: products in registers and by BLAS, and the routines of LAPACK.

Buffers hold nan bits before a step writes to them, and stand between guard zones.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from srcgrad.backends.llvm.steps import (
    banded,
    blas,
    cofactors,
    decompositions,
    determinants,
    small_products,
    step_for,
    systems,
)
from srcgrad.backends.llvm.steps.writer import LETTERS
from srcgrad.backends.llvm.target import LEVELS, TARGET, Target
from srcgrad.ir.opdef import REGISTRY
from tests.backends.llvm import steps_support
from tests.backends.llvm.steps_support import agree_or_give_up, expected, make_operation, native, target_of
from tests.backends.llvm.test_cofactors import cofactors_agree
from tests.ir.ops.harness import cases

ULPS = 16.0
"""How far results may be apart, in units of the last place of the largest element."""
NAMES = sorted(
    {
        **banded.WRITERS,
        **blas.WRITERS,
        **systems.WRITERS,
        **determinants.WRITERS,
        **cofactors.WRITERS,
        **decompositions.WRITERS,
    }
)
DTYPES = ("float64", "float32", "complex128", "complex64", "int64", "uint8", "bool", "float16")
LAPACK_DTYPES = DTYPES[:4]
WITH_BLAS = Target(TARGET.triple, "x86-64-v3", LEVELS["x86-64-v3"]) if TARGET.vector_bytes == 64 else TARGET
"""A target of this machine for which large products of real matrices are BLAS's: ``test_packed_products.py``."""
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def nan_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a result holds before is nan: a product that adds to it shows."""
    monkeypatch.setattr(steps_support, "_FILL", 0xFF)


def apart(actual: Array, wanted: Array) -> float:
    """The largest distance in units of the last place of the largest finite element; inf where kinds differ."""
    if wanted.dtype.kind not in "fc":
        return 0.0 if np.array_equal(actual, wanted) else np.inf
    scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
    is_complex = wanted.dtype.kind == "c"
    parts = [(actual.real, wanted.real), (actual.imag, wanted.imag)] if is_complex else [(actual, wanted)]
    worst = 0.0
    for a, b in parts:
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
            return np.inf
        distance = np.abs(a[finite].astype(np.longdouble) - b[finite])
        unit = np.finfo(b.dtype).eps * max(float(scale), float(np.finfo(b.dtype).tiny))
        worst = max(worst, float(distance.max(initial=0.0)) / float(unit))
    return worst


def agree(name: str, *operands: Any, ulps: float = ULPS, target: Target = TARGET, **attrs: Any) -> None:
    """The step gives what the NumPy backend gives; where that raises, the status is 1."""
    operation, function = make_operation(name, *operands, **attrs)
    compiled = native(operation, target)
    assert compiled is not None, f"{name} has no step"
    try:
        wanted = expected(function, operands)
    except np.linalg.LinAlgError:
        assert compiled(*operands)[0] == 1
        return
    status, found = compiled(*operands)
    assert status == 0
    for actual, array in zip(found, wanted, strict=True):
        assert actual.dtype == array.dtype and actual.shape == array.shape
        distance = apart(actual, array)
        assert distance <= ulps, f"{name} of {[np.shape(x) for x in operands]}: {distance} ulps\n{actual}\n{array}"


def status_of(name: str, *operands: Any, **attrs: Any) -> int:
    compiled = native(make_operation(name, *operands, **attrs)[0])
    assert compiled is not None
    return compiled(*operands)[0]


def random(*shape: int, dtype: Any = np.float64, seed: int = 0) -> Array:
    source, dtype = np.random.default_rng([seed, *shape]), np.dtype(dtype)
    if dtype.kind == "b":
        return source.random(shape) < 0.3
    if dtype.kind in "iu":
        return source.integers(0, 100, shape).astype(dtype)
    values = source.normal(size=shape)
    return (values + 1j * source.normal(size=shape) if dtype.kind == "c" else values).astype(dtype)


def matrix(n: int, dtype: Any = np.float64, stack: tuple[int, ...] = ()) -> Array:
    """Regular matrices."""
    found: Array = (random(*stack, n, n, dtype=dtype) + 2 * n**0.5 * np.eye(n)).astype(dtype)
    return found


def definite(n: int, dtype: Any = np.float64, stack: tuple[int, ...] = ()) -> Array:
    a = random(*stack, n, n, dtype=dtype)
    found: Array = (a @ a.mT.conj() + n * np.eye(n)).astype(dtype)
    return found


# --- samples -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_samples(name: str) -> None:
    checked = 0
    for case in cases(REGISTRY[name]):
        operands = [np.asarray(operand) for operand in case.sample.operands]
        operation, _ = make_operation(name, *operands, **case.sample.attrs)
        if case.constant or step_for(operation, "step", TARGET) is None:
            continue
        checked += 1
        if name == "slogdet_gradient" and case.sample.label == "singular":
            assert status_of(name, *operands, **case.sample.attrs) == 1  # cofactors are left to NumPy
            continue
        if name == "det_derivative" and len(operands) == 1 and operands[0].shape[-1] > 3:
            cofactors_agree(operands[0])
            continue
        ulps = 64.0 if name == "det" else ULPS  # NumPy's is the exponential of a logarithm
        agree(name, *operands, ulps=ulps, **case.sample.attrs)
    assert checked >= 3


# --- products ----------------------------------------------------------------------------------
def product(
    m: int, n: int, k: int, dtype: Any, stack: tuple[int, ...] = (), left: bool = False, right: bool = False
) -> tuple[Array, Array, dict[str, Any]]:
    """Operands, of which one or both may be transposed, and attributes."""
    a = random(*stack, *((k, m) if left else (m, k)), dtype=dtype)
    b = random(*stack, *((n, k) if right else (k, n)), dtype=dtype, seed=1)
    axes, first = tuple(range(len(stack))), len(stack)
    contract = (first + (0 if left else 1),), (first + (1 if right else 0),)
    return a, b, {"contract": contract, "batch": (axes, axes)}


def bound(k: int, dtype: Any) -> float:
    return 4.0 + k if np.dtype(dtype).kind in "fc" else 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_products(dtype: str) -> None:
    source = np.random.default_rng(len(dtype))
    for k in range(12):
        sizes = [int(size) for size in source.integers(1, 18, 3)]
        stack = ((), (3,), (2, 2))[k % 3]
        a, b, attrs = product(*sizes, dtype, stack, bool(k & 4), bool(k & 8))
        agree("dot_general", a, b, ulps=bound(sizes[2], dtype), **attrs)


@pytest.mark.parametrize(("left", "right"), list(itertools.product((False, True), repeat=2)))
def test_every_small_square(left: bool, right: bool) -> None:
    for n in range(1, 18):
        a, b, attrs = product(n, n, n, np.float64, (2,), left, right)
        agree("dot_general", a, b, ulps=bound(n, np.float64), **attrs)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "bool"])
@pytest.mark.parametrize("size", [1, 7, 8, 17, 75])
def test_products_with_vectors(dtype: str, size: int) -> None:
    for other in (5, 19):
        for m, n in ((1, other), (other, 1), (1, 1)):
            for transposed in (False, True):
                a, b, attrs = product(m, n, size, dtype, (), transposed, transposed)
                agree("dot_general", a, b, ulps=bound(size, dtype), **attrs)


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_other_registers(name: str) -> None:
    target = target_of(name)
    for m, n, k in ((3, 5, 7), (8, 8, 8), (13, 16, 9), (1, 11, 10), (1, 1, 77), (17, 3, 1), (40, 41, 30)):
        for dtype, both in itertools.product(("float64", "float32", "complex128", "int32", "bool"), (False, True)):
            a, b, attrs = product(m, n, k, dtype, (), both, both)
            agree("dot_general", a, b, ulps=bound(k, dtype), target=target, **attrs)
    for dtype in LAPACK_DTYPES:
        agree("cholesky", definite(9, dtype), target=target)
        agree("solve", matrix(9, dtype), random(9, 3, dtype=dtype), target=target)
        agree("solve", matrix(3, dtype, (9,)), random(9, 3, 1, dtype=dtype), target=target)
        agree("slogdet", matrix(3, dtype, (9,)), target=target)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_of_one_vector_that_is_not_full(dtype: str) -> None:
    lanes = TARGET.vector_bytes // np.dtype(dtype).itemsize
    for n in range(2, 18):
        a, b, attrs = product(n, n, 9, dtype, (3,))
        operation, _ = make_operation("dot_general", a[:2], b[:2], **attrs)
        step = step_for(operation, "step", TARGET)
        assert step is not None
        assert ("@llvm.masked.store" in step.text) == (TARGET.masked and n < lanes and n & (n - 1) != 0)
        run, c = steps_support.Native(operation, step), np.zeros((3, n, n), dtype)
        assert run.address((ctypes.c_void_p * 4)(a.ctypes.data, b.ctypes.data, c.ctypes.data, 0)) == 0
        np.testing.assert_allclose(c[:2], a[:2] @ b[:2], 1e-4 if dtype == "float32" else 1e-11, 1e-5)
        assert not c[2].any(), "what lies behind the last row"
        agree("dot_general", a, b, ulps=bound(9, dtype), **attrs)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sizes", [(16, 16, 16), (13, 13, 13), (17, 5, 30), (3, 16, 40)], ids=str)
def test_operands_of_the_next_product_are_asked_for(
    sizes: tuple[int, int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All their lines, and little beyond them, while the product before them is computed: in its loops.

    Where vectors are short, tiles of these sizes would be written without a loop; and where several blocks of columns
    are computed, the lines would be asked for with each.
    """
    monkeypatch.setattr(small_products, "UNROLLED", 0)
    vectors = 4 if TARGET.features & {"avx512f", "neon"} else 2
    in_one = sizes[1] <= vectors * TARGET.vector_bytes // np.dtype(dtype).itemsize
    count, asked = 5, []
    a, b, attrs = product(*sizes, dtype, (count,))
    operation, _ = make_operation("dot_general", a, b, **attrs)
    step = step_for(operation, "step", TARGET)
    assert step is not None and ("@llvm.prefetch.p0(" in step.text) == in_one
    if not in_one:
        return
    note = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int32] * 3)(lambda place, *_: asked.append(place))
    llvm.add_symbol("noted_places", ctypes.cast(note, ctypes.c_void_p).value)
    renamed = [text.replace("llvm.prefetch.p0", "noted_places") for text in (step.text, *step.declarations)]
    changed = dataclasses.replace(step, text=renamed[0], declarations=frozenset(renamed[1:]))
    run, c = steps_support.Native(operation, changed), np.empty((count, *sizes[:2]), dtype)
    scratch = np.empty(max(step.scratch, 1), np.uint8)
    addresses = [array.ctypes.data for array in (a, b, c, scratch)]
    assert run.address((ctypes.c_void_p * 4)(*addresses)) == 0
    np.testing.assert_allclose(c, a @ b, 1e-4 if dtype == "float32" else 1e-12)
    wanted = {place for x in (a, b) for place in range(x.ctypes.data + x[0].nbytes, x.ctypes.data + x.nbytes, 64)}
    starts = {x.ctypes.data + k * x[0].nbytes for x in (a, b) for k in range(1, count)}
    assert starts <= set(asked) and all(any(0 <= place - near < 64 for near in asked) for place in wanted)
    ends = [(x.ctypes.data, x.ctypes.data + x.nbytes + x[0].nbytes + 128) for x in (a, b)]
    assert all(any(start <= place < end for start, end in ends) for place in asked)


@pytest.mark.parametrize(
    ("sizes", "stack"),
    [((16, 16, 16), ()), ((16, 200, 16), (3,)), ((64, 16, 64), (3,)), ((2, 16, 2000), (3,)), ((2, 2, 2), (3,))],
    ids=str,
)
def test_where_no_operands_are_asked_for(sizes: tuple[int, int, int], stack: tuple[int, ...]) -> None:
    """There are none, caches have no room for them, or the product is a few instructions."""
    a, b, attrs = product(*sizes, np.float64, stack)
    step = step_for(make_operation("dot_general", a, b, **attrs)[0], "step", TARGET)
    assert step is not None and "prefetch" not in step.text


LARGE = [
    (70, 80, 90), (65, 300, 17), (300, 5, 65), (5, 300, 65), (2, 3, 30000), (1, 200, 90), (200, 1, 90), (1, 1, 10000),
    (1, 5000, 1), (20, 4, 5000), (3, 2, 4000),
]  # fmt: skip
"""Sizes for which BLAS is called, or loops are long."""


@pytest.mark.parametrize("dtype", DTYPES[:3])
@pytest.mark.parametrize("sizes", LARGE, ids=str)
def test_large_products(dtype: str, sizes: tuple[int, int, int]) -> None:
    for left, right, target in itertools.product((False, True), (False, True), (TARGET, WITH_BLAS)):
        a, b, attrs = product(*sizes, dtype, (), left, right)
        agree("dot_general", a, b, ulps=bound(sizes[2], dtype), target=target, **attrs)


def test_blas_is_called_for_large_products() -> None:
    wanted = {(70, 80, 90): "dgemm", (1, 200, 90): "dgemv", (200, 1, 90): "dgemv", (1, 1, 10000): "ddot"}
    for sizes, routine in wanted.items():
        a, b, attrs = product(*sizes, np.float64)
        step = step_for(make_operation("dot_general", a, b, **attrs)[0], "step", WITH_BLAS)
        assert step is not None and set(step.symbols) == {f"scipy_{routine}"}


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int32", "bool"])
def test_axes_in_any_order(dtype: str) -> None:
    """Operands that are no matrices in memory are copied; those that are, are not."""
    source, copied = np.random.default_rng(11), 0
    sizes = {"a": 2, "b": 3, "i": 4, "j": 1, "k": 5, "l": 2, "p": 3, "q": 2}
    for _ in range(30):
        shared = [name for name in "abkl" if source.random() < 0.6]
        batch = [name for name in shared if name in "ab"]
        summed = [name for name in shared if name in "kl"]
        left = [str(name) for name in source.permutation([*shared, *(name for name in "ij" if source.random() < 0.7)])]
        right = [str(name) for name in source.permutation([*shared, *(name for name in "pq" if source.random() < 0.7)])]
        attrs = {
            "contract": tuple(tuple(names.index(name) for name in summed) for names in (left, right)),
            "batch": tuple(tuple(names.index(name) for name in batch) for names in (left, right)),
        }
        a, b = (random(*(sizes[name] for name in names), dtype=dtype, seed=k) for k, names in enumerate((left, right)))
        agree("dot_general", a, b, ulps=bound(10, dtype), **attrs)
        step = step_for(make_operation("dot_general", a, b, **attrs)[0], "step", TARGET)
        assert step is not None
        copied += step.scratch > 0
    assert 0 < copied < 30


@pytest.mark.parametrize(("m", "n", "k"), [(2, 3, 0), (0, 3, 2), (2, 0, 2), (0, 0, 0), (1, 1, 0), (70, 70, 0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_products(m: int, n: int, k: int, dtype: str) -> None:
    for stack in ((), (2,), (0,)):
        a, b, attrs = product(m, n, k, dtype, stack)
        agree("dot_general", a, b, ulps=0.0, **attrs)


@pytest.mark.parametrize("sizes", [(3, 4, 5), (1, 9, 6), (1, 1, 20), (70, 70, 70), (1, 200, 90), (90, 1, 200)], ids=str)
@pytest.mark.parametrize("dtype", LAPACK_DTYPES)
def test_special_numbers_in_products(sizes: tuple[int, int, int], dtype: str) -> None:
    a, b, attrs = product(*sizes, dtype)
    a.flat[:: max(a.size // 3, 1)] = np.inf
    b.flat[1 :: max(b.size // 3, 1)] = 0.0
    b.flat[-1] = np.nan
    if a.dtype.kind == "c":  # whether a part is inf or nan depends on the order of sums
        operation, function = make_operation("dot_general", a, b, **attrs)
        compiled = native(operation)
        assert compiled is not None
        (found,), (wanted,) = compiled(a, b)[1], expected(function, (a, b))
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    else:
        agree("dot_general", a, b, ulps=bound(sizes[2], dtype), **attrs)


def test_zeros_keep_the_signs_of_products_that_are_not_summed() -> None:
    a, b = np.array([-0.0, 0.0, 1.0]), np.array([1.0, -1.0])
    found = native(make_operation("dot_general", a, b, contract=((), ()), batch=((), ()))[0])
    assert found is not None
    np.testing.assert_array_equal(np.signbit(found(a, b)[1][0]), np.signbit(np.multiply.outer(a, b)))
    a, b = np.array([[-0.0]]), np.array([[1.0]])
    found = native(make_operation("dot_general", a, b, contract=((1,), (0,)), batch=((), ()))[0])
    assert found is not None
    np.testing.assert_array_equal(np.signbit(found(a, b)[1][0]), np.signbit(a @ b))


def test_every_byte_but_zero_is_true() -> None:
    a = np.array([[2, 0, 255], [0, 0, 4]], np.uint8).view(np.bool_)
    b = np.array([[128], [1], [0]], np.uint8).view(np.bool_)
    for n in (1, 3):
        operands = a, np.repeat(b, n, axis=1)
        compiled = native(make_operation("dot_general", *operands, contract=((1,), (0,)), batch=((), ()))[0])
        assert compiled is not None
        found = compiled(*operands)[1][0].view(np.uint8)
        np.testing.assert_array_equal(found, np.repeat([[1], [0]], n, axis=1))


@pytest.mark.parametrize("dtype", LAPACK_DTYPES)
def test_products_with_the_transposed_matrix(dtype: str) -> None:
    """Where the memory is the same they take half of the work, and are symmetric to the last digit."""
    x, y = random(80, 90, dtype=dtype), random(80, 90, dtype=dtype, seed=1)
    for axis in (0, 1):
        operation, _ = make_operation("dot_general", x, y, contract=((axis,), (axis,)), batch=((), ()))
        compiled = native(operation, WITH_BLAS)
        assert compiled is not None
        assert set(compiled.step.symbols) == {f"scipy_{LETTERS[dtype]}{stem}" for stem in ("gemm", "syrk")}
        results = [np.full((x.shape[1 - axis],) * 2, np.nan, dtype) for _ in range(2)]
        for other, result in zip((x, y), results, strict=True):
            pointers = (ctypes.c_void_p * 4)(x.ctypes.data, other.ctypes.data, result.ctypes.data, 0)
            assert compiled.address(pointers) == 0
            assert apart(result, np.tensordot(x, other, ((axis,), (axis,)))) <= 90
        np.testing.assert_array_equal(results[0], results[0].T)
    square = random(80, 80, dtype=dtype)
    operation, _ = make_operation("dot_general", square, square, contract=((1,), (0,)), batch=((), ()))
    step = step_for(operation, "step", WITH_BLAS)
    assert step is not None and set(step.symbols) == {f"scipy_{LETTERS[dtype]}gemm"}


def test_long_sums_do_not_lose_digits() -> None:
    """Some errors of rounding stand still for a factor of 2, others would grow with the length of the sum."""
    k = 60000
    a = np.full((2, k), 0.1, np.float32)
    b = np.full((k, 2), 1.0, np.float32)
    for left in (False, True):
        given = (a.T.copy() if left else a, b)
        attrs = {"contract": ((0 if left else 1,), (0,)), "batch": ((), ())}
        compiled = native(make_operation("dot_general", *given, **attrs)[0])
        assert compiled is not None
        exact = float(np.float32(0.1)) * k
        np.testing.assert_allclose(compiled(*given)[1][0], exact, rtol=2e-5)


def test_no_product_of_long_doubles() -> None:
    a = np.ones((2, 2), np.longdouble)
    assert step_for(make_operation("dot_general", a, a, contract=((1,), (0,)), batch=((), ()))[0], "f", TARGET) is None


# --- systems -----------------------------------------------------------------------------------
SIZES = (1, 2, 5, 17)


@pytest.mark.parametrize("dtype", LAPACK_DTYPES)
@pytest.mark.parametrize("stack", [(), (3,), (2, 2), (0,)], ids=str)
def test_systems(dtype: str, stack: tuple[int, ...]) -> None:
    for n in SIZES if not stack else (1, 3):
        a = matrix(n, dtype, stack)
        agree("cholesky", definite(n, dtype, stack))
        agree("inv", a, strict=True)
        agree("inv", a, strict=False)
        agree("slogdet_gradient", a)
        agree("det", a, ulps=400.0)
        agree("slogdet", a)
        for count in (1, 5):
            agree("solve", a, random(*stack, n, count, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7])
def test_small_systems_side_by_side(n: int, dtype: str) -> None:
    """More matrices than a register has lanes, whose number is no multiple of that."""
    a, b = matrix(n, dtype, (19,))[:, ::-1].copy(), random(19, n, 3, dtype=dtype)
    agree("cholesky", definite(n, dtype, (19,)))
    agree("solve", a, b, ulps=64.0)
    agree("inv", a, ulps=64.0, strict=True)
    agree("slogdet_gradient", a, ulps=64.0)
    agree("det", a, ulps=64.0)
    agree("slogdet", a)
    for trans, lower, unit in (("N", True, False), ("T", True, False), ("N", False, True), ("C", False, False)):
        attrs = {"trans": trans, "lower": lower, "unit": unit}
        agree("triangular_solve", matrix(n, dtype, (19,)) / (n if unit else 1), b, ulps=64.0, **attrs)


@pytest.mark.parametrize("place", [0, 9, 18])
def test_one_singular_matrix_among_others(place: int) -> None:
    """LAPACK says what is right where a pivot may be 0."""
    a = matrix(3, np.float64, (19,))
    a[place] = [[4, 2, 1], [2, 1, 5], [2, 1, 5]]  # whose elimination is exact, in any order
    b = random(19, 3, 1)
    agree("det", a, ulps=400.0)
    agree("slogdet", a)
    agree("inv", a, strict=False)
    assert status_of("solve", a, b) == status_of("inv", a, strict=True) == status_of("slogdet_gradient", a) == 1
    a[place, 2, 0] += 1e-14  # nearly singular, which is not so for LAPACK
    agree("solve", a, b, ulps=1e16)
    assert status_of("solve", a, b) == 0
    broken = definite(3, np.float64, (19,))
    broken[place, 2, 2] = -1.0
    assert status_of("cholesky", broken) == 1
    broken[place, 2, 2] = np.nan
    assert status_of("cholesky", broken) == 1
    broken[place, 2, 2] = 0.0
    assert status_of("triangular_solve", broken, b, lower=True, trans="N", unit=False) == 1


def test_which_row_is_the_pivot() -> None:
    """The largest, wherever it stands: a first pivot that is small would lose all digits."""
    base = random(4, 4)
    base[:, 0] = [1e-9, 1.0, 2.0, 3.0]
    for order in itertools.permutations(range(4)):
        a = base[list(order)]
        b = random(4, 2)
        agree("solve", a, b, ulps=64.0)
        agree("det", a, ulps=64.0)
        agree("solve", np.stack([a] * 9), np.stack([b] * 9), ulps=64.0)


@pytest.mark.parametrize("dtype", LAPACK_DTYPES)
@pytest.mark.parametrize("trans", ["N", "T", "C"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangles(dtype: str, trans: str, lower: bool, unit: bool) -> None:
    """What is not read may be anything, the diagonal too if it is taken for ones."""
    for n, count, stack in ((4, 1, ()), (5, 3, (2,)), (2, 0, ())):
        a = matrix(n, dtype, stack)
        if unit:
            a = (a / (4 * n)).astype(dtype)
        read = np.tril(np.ones((n, n), bool), -int(unit))
        a = np.where(read if lower else read.T, a, np.nan).astype(dtype)
        attrs = {"trans": trans, "lower": lower, "unit": unit}
        agree("triangular_solve", a, random(*stack, n, count, dtype=dtype), **attrs)


def test_errors_are_left_to_numpy() -> None:
    singular, ones = np.array([[1.0, 2.0], [2.0, 4.0]]), np.ones((2, 1))
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    attrs = {"lower": True, "trans": "N", "unit": False}
    for dtype in LAPACK_DTYPES:
        a, b = singular.astype(dtype), ones.astype(dtype)
        assert status_of("solve", a, b) == 1
        assert status_of("inv", a, strict=True) == 1
        assert status_of("slogdet_gradient", a) == 1
        assert status_of("cholesky", indefinite.astype(dtype)) == 1
        assert status_of("cholesky", np.stack([np.eye(2), indefinite]).astype(dtype)) == 1
        assert status_of("triangular_solve", np.diag([0.0, 1.0]).astype(dtype), b, **attrs) == 1
        assert status_of("triangular_solve", np.diag([0.0, 1.0]).astype(dtype), b, **{**attrs, "unit": True}) == 0
    pivots = np.array([5, 0], np.int32)
    assert status_of("permutation_of_pivots", pivots, size=3) == 1
    assert status_of("eig", np.array([[np.nan, 1.0], [0.0, 1.0]])) == 1
    assert status_of("eigvals", np.array([[np.inf, 1.0], [0.0, 1.0]])) == 1


@pytest.mark.parametrize("dtype", LAPACK_DTYPES)
def test_inverses_that_do_not_exist_are_nan(dtype: str) -> None:
    a = np.stack([np.eye(2), np.ones((2, 2)), np.diag([2.0, 4.0]), np.zeros((2, 2))]).astype(dtype)
    agree("inv", a, strict=False)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e308, 1e-310])
def test_special_numbers_in_systems(special: float) -> None:
    """As NumPy, wherever the number stands; where the step gives up, NumPy says what is right."""
    for i, j in ((0, 0), (2, 2), (1, 0), (0, 2)):
        a = definite(3)
        a[i, j] = special
        right = random(3, 2)
        calls: list[tuple[str, tuple[Array, ...], dict[str, Any]]] = [
            ("cholesky", (a,), {}),
            ("solve", (a, right), {}),
            ("inv", (a,), {"strict": True}),
            ("det", (a,), {}),
            ("triangular_solve", (a, right), {"lower": True, "trans": "N", "unit": False}),
            ("lu", (a,), {}),
        ]
        for name, operands, attrs in calls:
            agree_or_give_up(name, *operands, **attrs)


@pytest.mark.parametrize("dtype", LAPACK_DTYPES)
def test_which_matrices_are_indefinite(dtype: str) -> None:
    a = definite(4, dtype, (5,))
    a[1, 2, 2] = -1
    a[3] = 0
    agree("is_indefinite", a)
    a[0, 1, 1] = np.nan
    assert status_of("is_indefinite", a[:1]) == 1 or expected(make_operation("is_indefinite", a[:1])[1], (a[:1],))[0][0]


@pytest.mark.parametrize("dtype", LAPACK_DTYPES[:2])
def test_derivatives_of_determinants(dtype: str) -> None:
    for n, order in itertools.product((1, 2, 3), (1, 2, 3, 4)):
        agree("det_derivative", *(random(2, n, n, dtype=dtype, seed=k) for k in range(order)))


def test_determinants_whose_partial_products_overflow() -> None:
    for numbers in (
        (1e200, 1e200, 1e-250, 1e-150),
        (1e-200, 1e-200, 1e250, 1e150),
        (1e-310, 1e300, -1.0),
        (5e-324, 2.0),
    ):
        exact = float(np.prod(np.array(numbers, np.longdouble)))
        compiled = native(make_operation("det", np.diag(numbers))[0])
        assert compiled is not None
        np.testing.assert_allclose(compiled(np.diag(numbers))[1][0], exact, rtol=1e-15)
    for numbers, wanted in (((1e300, 1e300), np.inf), ((1e-300, 1e-300), 0.0), ((-np.inf, 1.0), -np.inf)):
        compiled = native(make_operation("det", np.diag(numbers))[0])
        assert compiled is not None
        assert compiled(np.diag(numbers))[1][0] == wanted


# --- decompositions ----------------------------------------------------------------------------
RECTANGLES = [(1, 1), (1, 5), (5, 1), (7, 3), (3, 7), (40, 33)]


@pytest.mark.parametrize("dtype", LAPACK_DTYPES)
@pytest.mark.parametrize(("m", "n"), RECTANGLES)
def test_rectangles(dtype: str, m: int, n: int) -> None:
    for stack in ((), (2,)) if m < 20 else ((),):
        a = random(*stack, m, n, dtype=dtype)
        for mode in ("reduced", "complete", "r"):
            agree("qr", a, ulps=64.0, mode=mode)
        agree("lu", a, ulps=64.0)
        agree("svdvals", a, ulps=64.0)
        for full in (False, True):
            if min(m, n) == max(m, n) or not full:  # of others LAPACK chooses the further vectors, by rounding errors
                agree("svd", a, ulps=1000.0, full_matrices=full)
        agree("pinv", a, ulps=1000.0, rcond=1e-12, hermitian=False)
        agree("lstsq", a, random(*stack, m, 3, dtype=dtype), ulps=1000.0, rcond=1e-12)


def test_empty_matrices_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """LAPACK, which is asked for the size of its workspace when a step is written, prints what it does not take."""
    for a in (np.zeros((0, 0)), np.zeros((0, 3)), np.zeros((2, 0, 3)), np.zeros((3, 0))):
        for name, attrs in (
            ("pinv", {"rcond": 1e-12, "hermitian": False}),
            ("svd", {"full_matrices": False}),
            ("svdvals", {}),
            ("qr", {"mode": "reduced"}),
        ):
            native(make_operation(name, a, **attrs)[0])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("dtype", LAPACK_DTYPES)
def test_full_singular_vectors(dtype: str) -> None:
    """All vectors are orthonormal, and the product is the matrix."""
    for m, n in ((5, 2), (2, 5)):
        a = random(m, n, dtype=dtype)
        compiled = native(make_operation("svd", a, full_matrices=True)[0])
        assert compiled is not None
        status, (u, s, vh) = compiled(a)
        tolerance = 50 * np.finfo(a.dtype).eps
        assert status == 0
        np.testing.assert_allclose(u @ u.conj().T, np.eye(m), atol=tolerance)
        np.testing.assert_allclose(vh @ vh.conj().T, np.eye(n), atol=tolerance)
        np.testing.assert_allclose(u[:, :2] @ np.diag(s) @ vh[:2], a, atol=tolerance)


@pytest.mark.parametrize("dtype", LAPACK_DTYPES)
@pytest.mark.parametrize("stack", [(), (3,), (0,)], ids=str)
def test_eigenvalues(dtype: str, stack: tuple[int, ...]) -> None:
    for n in (1, 2, 5, 12) if not stack else (3,):
        a = definite(n, dtype, stack)
        agree("eigh", a, ulps=200.0)
        agree("eigvalsh", a, ulps=200.0)
        a = random(*stack, n, n, dtype=dtype)
        agree("eig", a, ulps=500.0)
        agree("eigvals", a, ulps=500.0)


def test_only_the_lower_triangle_of_a_hermitian_matrix_is_read() -> None:
    for dtype in LAPACK_DTYPES:
        a = definite(6, dtype)
        for name in ("cholesky", "eigh", "eigvalsh"):
            wanted = native(make_operation(name, a)[0])
            assert wanted is not None
            broken = np.where(np.tril(np.ones((6, 6), bool)), a, np.nan).astype(dtype)
            for one, other in zip(wanted(a)[1], wanted(broken)[1], strict=True):
                np.testing.assert_array_equal(one, other)


def test_pivots_wrap_as_indices_do() -> None:
    for pivots in ([2, 2, 2], [-1, 0, -3], [1]):
        agree("permutation_of_pivots", np.array(pivots, np.int32), size=3)
    agree("permutation_of_pivots", np.array([[3, 1], [0, -1]], np.int32), size=4)
