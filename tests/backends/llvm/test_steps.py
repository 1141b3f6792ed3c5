"""Single operations as native functions: every sample, strange indices, long rows, what no number should be.

Each runs on buffers between guard zones (``steps_support.py``), and in place where it may.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm.complexes import is_split
from srcgrad.backends.llvm.expansions import expands
from srcgrad.backends.llvm.factors import FACTORED, FACTORS
from srcgrad.backends.llvm.natives import fused_kind
from srcgrad.backends.llvm.steps import formulas, step_for, ufuncs, writers
from srcgrad.backends.llvm.target import TARGET, Target
from srcgrad.ir.opdef import REGISTRY
from tests.backends.llvm.steps_support import agrees, expected, make_operation, native, target_of
from tests.ir.ops.harness import Case, cases

SEED = 7
ULPS: dict[str, float] = {
    "indexing": 0.0,
    "movement": 0.0,
    "ordering": 0.0,
    "extremes": 0.0,
    "sorts": 0.0,
    "cumulative": 2.0,
    "integers": 1.0,
    "special": 1.0,
    "ufuncs": 2.0,
    "reductions": 2.0,
    "transforms": 2.0,
    "convolution": 2.0,
    "formulas": 8.0,
}
"""Per module how far its steps may be from NumPy, in units of the last place: those at 0 have the same bits."""
MODULES = {name: set(import_module(f"srcgrad.backends.llvm.steps.{name}").WRITERS) for name in ULPS}
WITHOUT_UFUNC = {
    "bitwise_not",
    "carlson_integral",
    "digamma",
    "hyperu_integral",
    "imag",
    "mathieu_function",
    "real",
    "student_slope",
    "voigt_derivative",
    "wofz_derivative",
}
"""Ops that have none, as is known when one is asked for."""
SAMPLED_IN_LOOPS = {"cast", "one_minus_square"}
"""Ops whose samples are all loops."""
NAMES = sorted(set().union(*MODULES.values()) - WITHOUT_UFUNC - SAMPLED_IN_LOOPS)
TARGETS = {
    "host": TARGET,
    "of 16 bytes": Target(TARGET.triple, TARGET.cpu, frozenset({"sse2"})),
    "of 32 bytes": Target(TARGET.triple, TARGET.cpu, frozenset({"avx", "avx2", "fma", "f16c"})),
}


def bound(name: str) -> float:
    return max(ULPS[module] for module, names in MODULES.items() if name in names)


def require(name: str, *operands: Any, literals: dict[int, Any] | None = None, ulps: float = 0.0, **attrs: Any) -> None:
    """The step of an operation exists, and gives what NumPy gives."""
    operation, function = make_operation(name, *operands, literals=literals, **attrs)
    assert agrees(operation, function, operands, ulps), f"{name} has no step"


# --- samples ------------------------------------------------------------------------------------------------------


def agreeing(name: str, chosen: list[Case]) -> int:
    """How many of the cases have a step, which then must give what NumPy gives."""
    found = 0
    for case in chosen:
        operands = [np.asarray(operand) for operand in case.sample.operands]
        found += agrees(case.function.operations[-1], case.function, operands, bound(name))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_sample(name: str) -> None:
    known = [case for case in cases(REGISTRY[name]) if step_for(case.function.operations[-1], "step", TARGET)]
    assert agreeing(name, [known[np.random.default_rng(SEED + len(name)).integers(len(known))]])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_samples(name: str) -> None:
    assert agreeing(name, cases(REGISTRY[name]))


LEFT: dict[str, str] = {
    "checkpoint": "holds a region",
    "rematerialised": "holds a region",
    "custom_jvp": "holds a region",
    "custom_vjp": "holds a region",
    "custom_linear": "holds a region",
    "cond": "control flow is the program's",
    "while": "control flow is the program's",
    "for": "control flow is the program's",
    "tape_length": "tapes are the program's",
    "check": "the program's: it ends native code",
    "host_call": "calls Python",
    "sparse_solve": "SuperLU is SciPy's, which has no pointers to its routines",
    "linear_for": "written out before a program runs",
    "linear_cond": "written out before a program runs",
    "spectral": "written out before a program runs",
    "spectral_sum": "written out before a program runs",
    "singular": "written out before a program runs",
    "singular_sum": "written out before a program runs",
    "coupling": "written out before a program runs",
    "slope_of_norm": "a number before a program runs",
    "share_of_tie": "a number before a program runs",
    "dct": "SciPy has no function for C",
    "dst": "SciPy has no function for C",
    "rgamma_derivative": "the number of its factors depends on the numbers",
    "gammainc_derivative": "integrates on arrays of nodes",
    "betainc_derivative": "integrates on arrays of nodes",
    "carlson_integral": "integrates on arrays of nodes",
    "hyperu_integral": "integrates on arrays of nodes",
    "mathieu_function": "SciPy's functions are not safe to call with nan",
    "student_slope": "integrates on arrays of nodes",
    "wofz_derivative": "formulas are of real numbers",
    "voigt_derivative": "formulas are of real numbers, and it is made of complex ones",
}
"""Ops without any native form, and why."""
PARTLY: dict[str, str] = {
    "elliptic_incomplete_derivative": "the second and later ones integrate on arrays of nodes",
    "gamma_density": "derivatives, by those of rgamma",
    "polygamma": "formulas are of real numbers",
    "eigh": "SciPy's other drivers, which may find some vectors only",
    "svd": "empty matrices with full factors",
    "qr": "empty matrices with full factors",
}
"""Ops some of whose samples have no native form, and which."""


def test_what_has_no_native_form_is_listed() -> None:
    left, partly = set(), set()
    for op in REGISTRY.values():
        forms = [native_form(case) for case in cases(op) if has_elements(case)]
        if not any(forms):
            left.add(op.name)
        elif not all(forms):
            partly.add(op.name)
    assert left == set(LEFT), f"{left ^ set(LEFT)} are listed wrongly"
    assert partly == set(PARTLY), f"{partly ^ set(PARTLY)} are listed wrongly"


def has_elements(case: Case) -> bool:
    return any(result.type.size for result in case.function.operations[-1].results)


def native_form(case: Case) -> bool:
    operation = case.function.operations[-1]
    if fused_kind(operation) != "other" or is_split(operation) or expands(operation):
        return True
    return step_for(operation, "step", TARGET) is not None


def test_only_ops_have_writers() -> None:
    own = {FACTORS.name, *(op.name for op in FACTORED.values())}
    assert set(writers()) <= set(REGISTRY) | own
    assert [ufuncs.ufunc_of(REGISTRY[name]) for name in sorted(WITHOUT_UFUNC)] == [None] * len(WITHOUT_UFUNC)


def test_scipy_is_imported_only_for_what_is_computed_by_it() -> None:
    """Its import takes longer than most first calls."""
    code = (
        "import sys, numpy as np, srcgrad as sg\n"
        "joined = lambda x: np.sum(np.concatenate([np.sin(x), x[::2]])[np.array([2, 0, 1])] ** 2)\n"
        "sg.grad(joined, backend='llvm')(np.ones(4))\n"
        "sys.exit('scipy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- indices ------------------------------------------------------------------------------------------------------

LARGE = np.iinfo(np.int64)


@pytest.mark.parametrize("index", [4, -5, 1000, LARGE.max, LARGE.min, LARGE.min + 3])
@pytest.mark.parametrize("name", ["gather", "scatter_set", "scatter_add"])
def test_an_index_out_of_bounds_is_left_to_numpy(name: str, index: int) -> None:
    array, indices = np.arange(12.0).reshape(4, 3), np.array([0, index, 1])
    operands = (array, indices) if name == "gather" else (array, array[:3] * 2, indices)
    operation, function = make_operation(name, *operands, axis=0)
    with pytest.raises(IndexError):
        expected(function, operands)
    compiled = native(operation)
    assert compiled is not None
    status, _ = compiled(*operands)
    assert status == 1
    if name != "gather":  # nothing is written over before all indices are known to be right
        _, (kept,) = compiled(*operands, shared=True)
        np.testing.assert_array_equal(kept, array)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0)])
def test_indices_of_empty_arrays_are_checked_too(shape: tuple[int, int]) -> None:
    array = np.zeros(shape)
    for axis in (0, 1):
        for indices in (np.array([2]), np.array([5]), np.zeros(0, np.int64)):
            part = np.zeros((*shape[:axis], indices.size, *shape[axis + 1 :]))
            require("gather", array, indices, axis=axis)
            require("scatter_add", array, part, indices, axis=axis)
            require("scatter_set", array, part, indices, axis=axis)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint32, np.uint64, np.int64])
def test_indices_of_every_kind(dtype: Any) -> None:
    array = np.arange(300.0)
    indices = np.array([0, 127, 3, 3, 127], dtype)
    require("gather", array, indices, axis=0)
    require("scatter_add", array, np.arange(5.0), indices, axis=0)
    require("scatter_set", array, np.arange(5.0), indices, axis=0)
    if np.dtype(dtype).kind == "i":
        require("gather", array, -indices - 1, axis=0)


def test_an_unsigned_index_that_is_too_large_is_left_to_numpy() -> None:
    operation, _ = make_operation("gather", np.arange(3.0), np.zeros(1, np.uint64), axis=0)
    compiled = native(operation)
    assert compiled is not None and compiled(np.arange(3.0), np.array([2**64 - 1], np.uint64))[0] == 1


@pytest.mark.parametrize("name", ["take_along_axis", "add_along_axis"])
def test_indices_along_an_axis(name: str) -> None:
    values = np.arange(24.0).reshape(2, 4, 3)
    attrs = {"axis": 1} if name == "take_along_axis" else {"axis": 1, "size": 4}
    fine = np.array([3, -4, 0, 1] * 6).reshape(2, 4, 3)
    require(name, values, fine, **attrs)
    require(name, values, np.where(fine == 1, 4, fine), **attrs)
    require(name, values, np.where(fine == 1, -5, fine), **attrs)


def test_sums_at_equal_places_are_in_order() -> None:
    random = np.random.default_rng(1)
    for dtype in (np.float64, np.float32, np.float16, np.complex64, np.int8, np.bool_):
        part = (random.normal(size=(500, 3)) * 100).astype(dtype)
        require("scatter_add", np.zeros((4, 3), dtype), part, random.integers(-4, 4, 500), axis=0)
        require("add_along_axis", part, random.integers(-7, 7, (500, 3)), axis=0, size=7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex128, np.int8, np.bool_])
def test_numbers_in_a_row_that_go_to_one_place_are_added_in_their_order(dtype: Any) -> None:
    """Sorted indices, negative ones among them, and random ones."""
    random = np.random.default_rng(3)
    part = (random.normal(size=203) * 100).astype(dtype)
    for indices in (np.sort(random.integers(-9, 9, 203)), random.integers(0, 2, 203), np.repeat([3, -6], 102)[:203]):
        for given in (indices, indices.astype(np.int8)):
            require("scatter_add", np.ones(9, dtype), part, given, axis=0)
        pair = np.repeat(np.arange(41), 5)[:203] % 2
        require("scatter_add", np.ones((9, 2), dtype), part, indices, pair, axis=0)
        require("scatter_add", np.ones((2, 9), dtype), np.stack([part, part[::-1]]), indices, axis=1)
    require("scatter_add", np.ones(9, dtype), part, np.full(203, 9), axis=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex128, np.int8, np.bool_])
@pytest.mark.parametrize("width", [1, 2, 4, 7, 16, 37])
def test_rows_are_added_in_vectors(width: int, dtype: Any) -> None:
    random = np.random.default_rng(width)
    part = (random.normal(size=(40, width)) * 100).astype(dtype)
    require("scatter_add", np.ones((5, width), dtype), part, random.integers(-5, 5, 40), axis=0)
    require("scatter_add", np.zeros((5, width), dtype), part, random.integers(-5, 5, 40), literals={0: 0}, axis=0)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.uint64])
@pytest.mark.parametrize("place", [0, 3, 15, 16, 20])
def test_an_index_out_of_bounds_is_found_at_every_place(place: int, dtype: Any) -> None:
    """Indices are checked a vector at a time, and what is left one by one."""
    array, indices = np.arange(9.0), np.arange(21).astype(dtype) % dtype(9)
    wrong = [9, np.iinfo(dtype).max, *([-10, np.iinfo(dtype).min] if np.dtype(dtype).kind == "i" else [])]
    for name, others in (("scatter_add", (np.arange(21.0),)), ("scatter_set", (np.arange(21.0),)), ("gather", ())):
        require(name, array, *others, indices, axis=0)
        operation, _ = make_operation(name, array, *others, indices, axis=0)
        compiled = native(operation)
        assert compiled is not None
        for number in wrong:
            given = indices.copy()
            given[place] = number
            assert compiled(array, *others, given)[0] == 1


def test_literals_are_not_read() -> None:
    """The gradient of a gather adds to zeros that no memory holds."""
    part, indices = np.arange(6.0).reshape(3, 2), np.array([1, -1, 1])
    require("scatter_add", np.zeros((4, 2)), part, indices, literals={0: 0.0}, axis=0)
    require("scatter_set", np.full((4, 2), -0.0), part, indices, literals={0: -0.0}, axis=0)
    require("scatter_add", part, np.full((3, 2), 2.5), indices, literals={1: 2.5}, axis=0)
    window = {"starts": (1, 0), "limits": (3, 2), "strides": (1, 1)}
    require("slice_set", np.full((4, 2), 1 - 2j), part[:2] * 1j, literals={0: 1 - 2j}, **window)
    require("concatenate", part, np.full((2, 2), 7.0), part, literals={1: 7.0}, axis=0)
    require("concatenate", part, np.zeros((3, 5)), literals={1: 0.0}, axis=1)
    require("select", np.array([True, False, True]), np.full(3, 1j), np.arange(3) * (1 + 2j), literals={1: 1j})
    require("mul", np.full(5, 2 - 1j), np.arange(5.0) * 1j, literals={0: 2 - 1j})
    require("take_along_axis", np.full((3, 2), 4.5), np.array([[2, 0]]), literals={0: 4.5}, axis=0)


# --- movement -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.float32, np.complex64, np.complex128])
def test_transposes_in_tiles(dtype: Any) -> None:
    for shape, perm in (
        ((70, 130), (1, 0)),
        ((3, 65, 100), (2, 0, 1)),
        ((64, 2, 64), (2, 1, 0)),
        ((5, 6, 7), (1, 0, 2)),
    ):
        values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        require("transpose", values, perm=perm)


def test_views_written_out() -> None:
    values = np.arange(24.0).reshape(2, 3, 4) * (1 + 1j)
    require("reverse", values, axes=(0, 2))
    require("reverse", values, axes=(1,))
    require("slice", values, starts=(0, 1, 1), limits=(2, 3, 4), strides=(1, 1, 2))
    require("slice", values, starts=(1, 0, 0), limits=(2, 3, 4), strides=(1, 1, 1))
    require("broadcast", values[:, :1], shape=(5, 2, 3, 4), dims=(1, 2, 3))
    require("reshape", values, shape=(6, 4))


def test_slices_are_written_row_by_row() -> None:
    values = np.arange(120.0).reshape(4, 5, 6)
    for starts, limits, strides in (
        ((1, 0, 0), (3, 5, 6), (1, 1, 1)),
        ((0, 1, 2), (4, 5, 5), (3, 2, 1)),
        ((0, 0, 1), (4, 5, 6), (1, 1, 2)),
        ((0, 2, 0), (4, 5, 6), (2, 1, 1)),
        ((0, 0, 0), (4, 5, 6), (1, 1, 1)),
    ):
        part = -values[tuple(map(slice, starts, limits, strides))]
        require("slice_set", values, part, starts=starts, limits=limits, strides=strides)


# --- cumulative ---------------------------------------------------------------------------------------------------


PAIRED = ("restarting_cumsum", "linear_recurrence")
RESTARTING = ("restarting_cummax", "restarting_cummin")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.uint32, np.bool_, np.complex128])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", *PAIRED, *RESTARTING, "cumlogsumexp"])
def test_long_rows_accumulate(name: str, dtype: Any, target: str) -> None:
    kind = np.dtype(dtype).kind
    if (name in ("cummax", "cummin", *RESTARTING) and kind == "c") or (name == "cumlogsumexp" and kind != "f"):
        return
    if name == "cumlogsumexp" and dtype == np.float16:
        return
    if (name == "cumprod" and kind == "b") or (name == "linear_recurrence" and kind not in "fc"):
        return
    random = np.random.default_rng(2)
    values = (random.normal(size=(9, 37, 41)) + 1.0).astype(dtype)
    factors = random.uniform(-0.9, 0.9, values.shape).astype(dtype)
    marks = random.random(values.shape) < 0.2
    for axis in (0, 1, 2):
        attrs: dict[str, Any] = {"axis": axis}
        for reverse in (False, True) if name in ("cumsum", *PAIRED) else (None,):
            attrs = attrs if reverse is None else {"axis": axis, "reverse": reverse}
            other = marks if name.startswith("restarting") else factors
            operands = (values, other) if name in PAIRED + RESTARTING else (values,)
            operation, function = make_operation(name, *operands, **attrs)
            compiled = native(operation, TARGETS[target])
            if compiled is None:  # float16 where the processor does not convert it
                assert dtype == np.float16 and not TARGETS[target].half
                return
            status, (found,) = compiled(*operands)
            assert status == 0
            (wanted,) = expected(function, operands)
            if kind in "fc" and name in (*PAIRED, "cumprod", "cumlogsumexp"):
                scale = 1e-5 if dtype == np.float32 else 0.05 if dtype == np.float16 else 1e-12
                np.testing.assert_allclose(found, wanted, rtol=scale, atol=scale * 10)
            else:
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_running_logarithms_are_numpys(dtype: Any) -> None:
    """By the largest so far and a recurrence: far below it, infinite, nan, zeros of both signs, rows of all axes."""
    inf, random = np.inf, np.random.default_rng(7)
    rows = [
        [-0.0], [0.0, -800.0, -900.0, 5e-324], [-inf, -inf, 1.0, -inf, 2.0, inf, 3.0, -inf], [1.0, np.nan, inf],
        np.linspace(-80, 80, 300), np.linspace(80, -80, 300), 3 * random.normal(size=500), np.zeros(0),
    ]  # fmt: skip
    for x in (*(np.array(row, dtype) for row in rows), random.normal(size=(4, 5, 6)).astype(dtype)):
        for axis in range(x.ndim):
            with np.errstate(all="ignore"):
                wanted = np.logaddexp.accumulate(x, axis)
            program = sg.jit(lambda x, axis=axis: np.logaddexp.accumulate(x, axis))
            found = program(x)
            assert found.dtype == dtype
            assert not x.size or " cumlogsumexp" not in str(sg.explain(program)(x)["llvm source"])
            np.testing.assert_allclose(found, wanted, rtol=64 * float(np.finfo(dtype).eps), atol=0.0)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


# --- ordering -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "size", [17, 100, *[pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 16, 32, 33, 1000)]]
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i1", "u2", "i4", "u8", "?", "c16", "c8"])
def test_sorting_is_stable_and_puts_nan_last(dtype: str, size: int) -> None:
    random = np.random.default_rng(size)
    values = (random.normal(size=size) * 20).round().astype(np.int64).astype(dtype)
    if dtype.startswith("c"):
        special = np.array([0.0, -0.0, 1.0, 2.0, np.nan, np.inf, -np.inf])
        values.real, values.imag = random.choice(special, size), random.choice(special, size)
    elif dtype.startswith("f"):
        for special in (np.nan, -0.0, np.inf, -np.inf):
            values[random.random(size) < 0.1] = special
    for array in (values, np.stack([values, values[::-1]], 1)):
        for name in ("sort", "argsort") if dtype.startswith("c") else ("sort", "argsort", "argmax", "argmin"):
            require(name, array, axis=0)
    for side in ("left", "right"):
        require("searchsorted", np.sort(values), random.permutation(values).reshape(1, -1), side=side)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u4", "i2"])
@pytest.mark.parametrize("size", [1, 2, 3, 11, 64])
def test_values_are_searched_side_by_side(size: int, dtype: str) -> None:
    """In whole vectors and what is left over, each row among its own nodes, at nodes and beyond all of them."""
    random = np.random.default_rng(size)
    nodes = np.sort(random.integers(0, 40, (3, size)).astype(dtype), axis=1)
    values = random.integers(0, 45, (3, 21)).astype(dtype)
    for side in ("left", "right"):
        require("searchsorted", nodes, values, side=side)
        require("searchsorted", nodes[1], values, side=side)


# --- numbers ------------------------------------------------------------------------------------------------------


def pairs(values: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    return [axis.ravel() for axis in np.meshgrid(values, values, indexing="ij")]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_whole_numbers_divide_as_in_numpy(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = [limits.min, limits.min + 1, 0, 1, 2, 3, 7, limits.max - 1, limits.max]
    values += [-1, -2, -7] if dtype[0] == "i" else []
    a, b = pairs(np.array(values, dtype))
    for name in ("floor_divide", "remainder", "fmod", "gcd", "lcm"):
        require(name, a, b)
    require("bitwise_count", a)
    require("pow", a, np.where(b < 0, 0, b).astype(dtype))
    require("pow", a, b)  # NumPy refuses negative exponents


DIVISORS = (1, 2, 3, 7, 8, 10, 64, 125, 641, 10**9 + 7, 2**31 - 1, 2**40 + 1, 2**62 + 1, -2, -3, -7)


@pytest.mark.parametrize("level", ["native", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_whole_numbers_divide_by_known_ones_as_in_numpy(dtype: str, level: str) -> None:
    """Beside multiples of the divisor, and at the limits of the dtype."""
    target, limits = TARGET if level == "native" else target_of(level), np.iinfo(dtype)
    for divisor in (d for d in (*DIVISORS, limits.max, limits.min) if d and limits.min <= d <= limits.max):
        least, most = int(limits.min), int(limits.max)
        multiples = [k * divisor for k in (-3, -1, 0, 1, 5, most // abs(divisor), -(-least // abs(divisor)))]
        values = [n + j for n in (*multiples, least, most) for j in (-1, 0, 1) if least <= n + j <= most]
        numbers = np.array(values, dtype)
        by = np.full(numbers.shape, divisor, dtype)
        for name in ("floor_divide", "remainder", "fmod"):
            operation, _ = make_operation(name, numbers, by, literals={1: by[0]})
            compiled = native(operation, target)
            assert compiled is not None
            status, (found,) = compiled(numbers, by)
            assert status == 0
            np.testing.assert_array_equal(found, getattr(np, name)(numbers, by), err_msg=f"{name} by {divisor}")


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 7.3, -7.3, np.inf, -np.inf, np.nan]
SMALL = [5e-324, -5e-324, 1e-40, 1e-310, 2.2250738585072014e-308, 1.7976931348623157e308]


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_floats_divide_as_in_numpy(dtype: str) -> None:
    with np.errstate(over="ignore"):
        values = np.array(SPECIAL + SMALL).astype(dtype)
    a, b = pairs(values)
    for name in ("floor_divide", "remainder", "fmod"):
        require(name, a, b)
    require("nextafter", a, b)
    require("spacing", values)
    for y in (5, -1, -2, -3, 10, 100):
        require("integer_pow", values, y=y, ulps=2.0)


@pytest.mark.parametrize("source", ["f8", "f4", "f2"])
@pytest.mark.parametrize("target", ["u1", "u2", "u4", "u8"])
def test_floats_become_unsigned_where_they_fit(source: str, target: str) -> None:
    fine = np.array([0.0, -0.0, 0.5, -0.5, -0.99, 1.5, 100.7, 255.5], source)
    require("cast", fine, dtype=np.dtype(target))
    operation, _ = make_operation("cast", fine, dtype=np.dtype(target))
    compiled = native(operation)
    assert compiled is not None
    for wrong in (-1.0, np.nan, np.inf, -np.inf, 2.0**64 if source != "f2" else np.inf):
        changed = fine.copy()
        changed[3] = wrong
        assert compiled(changed)[0] == 1, f"{wrong} fits no {target}"


# --- complex numbers and ufuncs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_at_special_values(dtype: Any) -> None:
    parts = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
    values = np.empty(49, dtype)
    values.real, values.imag = pairs(parts)
    a, b = pairs(values[::4])
    for name in ("add", "sub", "mul", "div", "equal", "not_equal", "pow"):
        require(name, a, b, ulps=1.0)
    for name in (
        "neg",
        "abs",
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tanh",
        "arctan",
        "sign",
        "is_nan",
    ):
        require(name, values, ulps=1.0)
    for y in (0, 1, 2, 3, -1, -2, 7):
        require("integer_pow", values, y=y, ulps=1.0)


@pytest.mark.parametrize("dtype", [np.float16, np.complex64, np.complex128])
def test_reductions_along_all_axes(dtype: Any) -> None:
    values = np.random.default_rng(5).normal(size=(7, 33, 5)).astype(dtype)
    names = (
        ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
        if dtype == np.float16
        else ("reduce_sum", "reduce_prod")
    )
    for name in names:
        for axes in ((0,), (1, 2), (0, 1), (0, 1, 2), ()):
            require(
                name, values, axes=axes, ulps=64.0 if name == "reduce_prod" else 0.0 if dtype == np.float16 else 64.0
            )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_norms_of_long_rows(dtype: Any) -> None:
    values = np.random.default_rng(6).normal(size=(3, 5000)).astype(dtype)
    for axes in ((0,), (1,), (0, 1)):
        require("reduce_norm", values, axes=axes, ulps=4.0)
    require("reduce_norm", np.array([1e-200, 0.0]).astype(dtype), axes=(0,), ulps=1.0)
    require("reduce_norm", np.zeros((0, 3), dtype), axes=(0,), ulps=0.0)


def test_loops_of_ufuncs_are_found_by_their_types() -> None:
    found = ufuncs.table(np.add)
    assert found is not None and found["dd->d"].function and found["dd->d"] != found["DD->D"]
    assert ufuncs.loop_for(np.add, [np.dtype(np.float64)] * 2) == (found["dd->d"], [np.dtype(np.float64)])
    assert ufuncs.loop_for(np.add, [np.dtype(np.longdouble)] * 2) is None
    assert ufuncs.loop_for(np.frexp, [np.dtype(np.float32)]) is not None


def test_a_ufunc_laid_out_in_another_way_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ufuncs, "_COUNTS", ufuncs._COUNTS + 4)
    ufuncs.table.cache_clear()
    assert ufuncs.table(np.subtract) is None
    ufuncs.table.cache_clear()


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(ufuncs.WRITERS))
def test_no_loop_of_an_op_may_raise(name: str) -> None:
    """Whole powers raise in NumPy's loop: they have a step of their own."""
    operand = np.arange(1, 4)
    if name == "pow":
        operation, _ = make_operation("pow", operand, operand)
        assert ufuncs.elementwise_ufunc(operation, "step", TARGET) is None


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"])
def test_spherical_bessel_functions_below_zero(name: str) -> None:
    """SciPy's functions for C are nan there, its functions for Python are not."""
    for n in (0, 1, 2, 5):
        numbers = np.array([0.0, -0.0, 1.0, 2e-8, 20.0, 500.0, np.inf, np.nan])
        orders = np.full(8, n)
        require(name, orders, numbers, ulps=1.0)
        operation, function = make_operation(name, orders, -numbers)
        compiled = native(operation)
        assert compiled is not None
        status, (found,) = compiled(orders, -numbers)
        if name == "spherical_kn":
            assert status == 1
        else:
            assert status == 0
            np.testing.assert_array_equal(found, expected(function, (orders, -numbers))[0])


# --- formulas -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("name", "attrs", "arity"),
    [
        ("gaussian", {"n": 2, "a": 0.5}, 1),
        ("pow_log", {"n": 2}, 2),
        ("sinc", {}, 1),
        ("sinc_derivative", {"n": 3}, 1),
        ("log_ratio", {}, 2),
        ("erfcx_derivative", {"n": 1}, 1),
        ("dawsn_derivative", {"n": 2}, 1),
        ("log1p_ratio", {"n": 1}, 1),
        ("polygamma", {"n": 2}, 1),
        ("fresnel_phase", {"turn": 1}, 1),
        ("boxcox_derivative", {"n": 1, "plus_one": False}, 2),
    ],
)
def test_formulas_on_vectors(name: str, attrs: dict[str, Any], arity: int, target: str) -> None:
    for size in (8, 21):
        operands = np.random.default_rng(7).uniform(0.1, 3.0, (arity, size))
        operation, function = make_operation(name, *operands, **attrs)
        compiled = native(operation, TARGETS[target])
        assert compiled is not None
        status, (found,) = compiled(*operands)
        assert status == 0
        (wanted,) = expected(function, operands)
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-14)


def test_what_a_formula_may_not_do() -> None:
    """Branches on numbers, unknown functions and arrays of nodes have no instructions."""
    operation, _ = make_operation("gaussian", np.zeros(3), n=0, a=1.0)
    run = formulas._Run(formulas.Body(operation, "step", TARGET), 1)
    x = formulas.Traced(run, run.e.constant(1.5, np.dtype(np.float64)))
    numpy = formulas._numpy(run)
    for wrong in (
        lambda: bool(x > 1.0),
        lambda: x[0],
        lambda: x.max(),
        lambda: numpy.sort(x),
        lambda: np.arange(3.0) * x,
        lambda: numpy.histogram(x),
    ):
        with pytest.raises(formulas.NotNative):
            wrong()
    assert isinstance(numpy.exp(x) * np.float64(2.0), formulas.Traced)
    assert numpy.exp(0.0) == 1.0


# --- convolution and transforms -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int16, np.bool_])
def test_convolution_of_long_rows(dtype: Any) -> None:
    random = np.random.default_rng(8)
    x, y = ((random.normal(size=shape) * 3).astype(dtype) for shape in ((2, 130), (2, 37)))
    for start, size in ((0, 166), (36, 94), (18, 130), (-5, 200), (160, 20), (300, 4)):
        require_close("convolve", x, y, starts=(start,), sizes=(size,))
        require_close("convolve", y, x, starts=(start,), sizes=(size,))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [8, 16, 17, 21, 40, 63, 64, 65, 128, 129])
def test_convolution_of_short_windows_of_long_rows(size: int, dtype: Any) -> None:
    """Held in registers up to some vectors; also where elements at the ends meet some of it, or nothing."""
    random = np.random.default_rng(size)
    x, y = (random.normal(size=shape).astype(dtype) for shape in ((2, 330), (2, 411)))
    for start in (0, 3, 300, 335, 411 - size, 420, 741 - size, 760):
        require_close("convolve", x, y, starts=(start,), sizes=(size,))
        require_close("convolve", y, x, starts=(start,), sizes=(size,))


@pytest.mark.parametrize("seed", range(24))
def test_convolution_of_windows_of_planes(seed: int) -> None:
    """Of every size against the number of elements that meet a row at a time."""
    random = np.random.default_rng(seed)
    shapes = random.integers(1, 14, (2, 2))
    starts = [int(random.integers(0, total)) for total in shapes.sum(axis=0) - 1]
    sizes = [int(random.integers(1, total - at + 1)) for total, at in zip(shapes.sum(axis=0) - 1, starts, strict=True)]
    x, y = (random.normal(size=shape) for shape in shapes)
    require_close("convolve", x, y, starts=tuple(starts), sizes=tuple(sizes))


@pytest.mark.parametrize("size", [1, 2, 3, 8, 30, 97])
def test_transforms_along_every_axis(size: int) -> None:
    random = np.random.default_rng(9)
    values = random.normal(size=(3, size, 4)) + 1j * random.normal(size=(3, size, 4))
    for norm in ("backward", "ortho", "forward"):
        for axes in ((1,), (2, 1), (0, 1, 2)):
            require_close("fft", values, axes=axes, norm=norm)
            require_close("ifft", values.astype(np.complex64), axes=axes, norm=norm)
        for dtype in (np.float64, np.float32):
            require_close("rfft", values.real.astype(dtype), axis=1, norm=norm)
        for n in (2 * size - 2, 2 * size - 1):
            if n > 0:
                require_close("irfft", values, axis=1, n=n, norm=norm)


@pytest.mark.parametrize(("size", "inner"), [(8, 4), (16, 13), (32, 8), (64, 41), (256, 11), (1024, 16), (512, 3)])
def test_transforms_side_by_side(size: int, inner: int) -> None:
    """Of columns and rows, powers of two, four points at a time or the last two; what is left one by one."""
    random = np.random.default_rng(size)
    values = random.normal(size=(2, size, inner)) + 1j * random.normal(size=(2, size, inner))
    rows = np.ascontiguousarray(values[0].T)
    for name, norm in (("fft", "backward"), ("ifft", "ortho"), ("fft", "forward"), ("ifft", "backward")):
        for dtype in (np.complex128, np.complex64):
            require_close(name, values.astype(dtype), axes=(1,), norm=norm)
            require_close(name, rows.astype(dtype), axes=(1,), norm=norm)
    require_close("fft", values, axes=(0, 1, 2), norm="backward")


@pytest.mark.parametrize("name", ["fft", "ifft"])
@pytest.mark.parametrize("axis", [0, 1])
def test_tones_are_single_lines(name: str, axis: int) -> None:
    """A tone has one line, and nothing but rounding elsewhere."""
    size, sign = 64, 1 if name == "fft" else -1
    turns = np.outer(np.arange(size), np.arange(size)) % size
    tones = np.exp(sign * 2j * np.pi * turns / size)
    compiled = native(make_operation(name, tones, axes=(axis,), norm="ortho")[0])
    assert compiled is not None
    _, (found,) = compiled(tones)
    np.testing.assert_allclose(found, np.sqrt(size) * np.eye(size), rtol=0, atol=8 * 2e-15)


def require_close(name: str, *operands: Any, **attrs: Any) -> None:
    """The step gives what NumPy gives, beside the largest number."""
    operation, function = make_operation(name, *operands, **attrs)
    compiled = native(operation)
    assert compiled is not None
    status, (found,) = compiled(*operands)
    assert status == 0
    (wanted,) = expected(function, operands)
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, wanted)
        return
    scale = 16 * np.finfo(wanted.dtype).eps * max(float(np.abs(wanted).max(initial=0.0)), 1.0)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=scale)
