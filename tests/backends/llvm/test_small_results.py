"""Small results are made without NumPy's help, and are the arrays that NumPy would have made."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from srcgrad.backends.llvm import native, pool_text
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.memory import POOLED, keep
from srcgrad.ir.types import DTYPES
from tests.backends.llvm.support import build, normal, total, traced_memory

pytestmark = pytest.mark.skipif(not native.ARRAYS_ARE_KNOWN, reason="small results are NumPy's own here")
SHAPES = [(1,), (7,), (3, 4), (1, 5), (5, 1), (1, 1, 1), (2, 3, 4), (1, 2, 1, 3), (2,) * 9, (POOLED // 8 - 1,)]
EMPTY = [(0,), (0, 3), (3, 0), (0, 5, 1 << 50)]
REFERENCES_TELL = sys.version_info < (3, 14)
"""Whether NumPy can say that nobody else refers to an array: later it refuses all that a variable holds."""


def doubled(shape: tuple[int, ...], dtype: Any = np.float64) -> Callable[[Any], Any]:
    run = BACKEND.compile(build(lambda x: x + x, np.zeros(shape, dtype))).run
    return lambda x: run(x)[0]


def fields(array: np.ndarray[Any, Any]) -> list[int]:
    """An array's object, but for where its memory lies."""
    size = np.ndarray.__basicsize__ // 8
    words = list((ctypes.c_int64 * size).from_address(id(array)))
    own = {pool_text.DATA_FIELD, pool_text.DIMS_FIELD, pool_text.STRIDES_FIELD, 0}
    halves = {pool_text.RANK_FIELD, pool_text.FLAGS_FIELD}
    found = [words[k] & 0xFFFFFFFF if 8 * k in halves else words[k] for k in range(size) if 8 * k not in own]
    return [*found, words[pool_text.STRIDES_FIELD // 8] - words[pool_text.DIMS_FIELD // 8]]


# --- what they are -----------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", SHAPES)
def test_the_object_is_as_numpy_makes_it(shape: tuple[int, ...]) -> None:
    found, like = doubled(shape)(np.ones(shape)), np.empty(shape)
    assert fields(found) == fields(like)
    assert (found.shape, found.strides, found.flags.num) == (like.shape, like.strides, like.flags.num)
    assert found.dtype is like.dtype and sys.getsizeof(found) == sys.getsizeof(like)
    assert sys.getrefcount(found) == sys.getrefcount(like) and not gc.is_tracked(found)
    assert found.base is None and np._core.multiarray.get_handler_name(found) == "default_allocator"
    np.testing.assert_array_equal(found, np.full(shape, 2.0))


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_of_every_dtype(dtype: np.dtype[Any]) -> None:
    found, like = doubled((3, 5), dtype)(np.ones((3, 5), dtype)), np.empty((3, 5), dtype)
    assert fields(found) == fields(like) and found.strides == like.strides
    np.testing.assert_array_equal(found, np.ones((3, 5), dtype) + np.ones((3, 5), dtype))


@pytest.mark.parametrize("shape", EMPTY)
def test_empty_results(shape: tuple[int, ...]) -> None:
    found, like = doubled(shape)(np.empty(shape)), np.empty(shape)
    assert fields(found) == fields(like) and (found.shape, found.strides) == (like.shape, like.strides)


# --- what can be done with them ----------------------------------------------------------------------
def test_they_are_used_as_other_arrays_are() -> None:
    run, x = doubled((3, 4)), normal(3, 4)
    found = run(x)
    found.resize((5, 4), refcheck=REFERENCES_TELL)  # refuses what others refer to
    np.testing.assert_array_equal(found, np.concatenate([2 * x, np.zeros((2, 4))]))
    found.resize((1,), refcheck=REFERENCES_TELL)
    assert found == 2 * x[0, 0]
    found = run(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated since NumPy 2.5
        found.shape = (2, 2, 3)
    np.testing.assert_array_equal(found, (2 * x).reshape(2, 2, 3))
    view = run(x)[1:, ::2]
    assert view.base is not None and view.base.shape == (3, 4)
    run(-x)
    np.testing.assert_array_equal(view, (2 * x)[1:, ::2])
    held = memoryview(run(x))
    assert held.shape == (3, 4) and held.strides == (32, 8) and not held.readonly
    found = run(x)
    found.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        found += 1.0
    found = run(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated since NumPy 2.5
        found.dtype = np.complex128
    assert found.shape == (3, 2)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(run(x), protocol)), 2 * x)
    np.testing.assert_array_equal(copy.deepcopy(run(x)), 2 * x)
    found = run(x)
    found.__setstate__(normal(7).__reduce__()[2])
    np.testing.assert_array_equal(found, normal(7))


def test_they_die_when_nobody_has_them() -> None:
    run, x, died = doubled((10,)), normal(10), []
    found = run(x)
    gone = weakref.ref(found, died.append)
    assert gone() is found
    del found
    assert gone() is None and died == [gone]


def test_live_ones_share_no_memory() -> None:
    run = doubled((10,))
    live = [run(np.full(10, float(k))) for k in range(100)]
    del live[10:60:3]
    live += [run(np.full(10, float(k))) for k in range(100, 150)]
    assert len({array.ctypes.data for array in live}) == len({id(array) for array in live}) == len(live)
    assert all(np.ptp(array) == 0.0 for array in live)


def test_tracemalloc_sees_them() -> None:
    run, x = doubled((3_000,)), normal(3_000)
    run(x)
    held, left = traced_memory(lambda: run(x))
    assert 24_000 <= held < 27_000 and left < 3_000


def test_neither_references_nor_memory_are_lost() -> None:
    def rule(x: Any, y: Any) -> Any:
        return x * y, x - y, total(x), -y

    x, y = normal(10), normal(10, seed=1)
    run = BACKEND.compile(build(rule, x, y)).run
    handler = native._numpy_handler()
    watched = (x, y, np.dtype(np.float64), np.ndarray, np.float64, handler)
    run(x, y)
    gc.collect()
    before, blocks = list(map(sys.getrefcount, watched)), sys.getallocatedblocks()
    for _ in range(100_000):
        run(x, y)
    gc.collect()
    assert all(abs(sys.getrefcount(item) - count) <= 2 for item, count in zip(watched, before, strict=True))
    assert sys.getallocatedblocks() - blocks < 200
    kept = run(x, y)
    assert list(map(sys.getrefcount, watched))[-1] - before[-1] == 3
    del kept


@pytest.mark.parametrize("allocator", ["malloc_debug", "pymalloc_debug", "malloc"])
def test_whatever_allocator_python_has(allocator: str) -> None:
    code = """
import numpy as np
import srcgrad as sg
f = sg.value_and_grad(lambda x, y: np.sum(np.sin(x) * y), (0, 1), backend="llvm")
x = np.ones(10)
for turn in range(100):
    value, (first, second) = f(x, x)
    first.resize(20, refcheck=False), second.resize((2, 2), refcheck=False)
    f(x, x)[1][0].shape = (5, 2)
print(value)
"""
    environment = {**os.environ, "PYTHONMALLOC": allocator}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(10 * np.sin(1.0))


# --- the function that makes them --------------------------------------------------------------------
Maker = Callable[[tuple[int, ...]], Any]


def maker(library: native.Library) -> Maker:
    new = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )(library.address("srcgrad_small"))

    def make(shape: tuple[int, ...], library: native.Library = library) -> Any:
        like = np.empty(shape, np.float64)  # without a dtype, NumPy 2.4 loses a reference to its default
        keep(like.dtype)  # this reference is the array's
        layout = (ctypes.c_int64 * (2 * like.ndim))(*like.shape, *like.strides)
        return new(like.dtype, like.ndim, layout, like.nbytes, like.flags.num)

    return make


@pytest.mark.parametrize("whole", [False, True])
def test_with_and_without_numpy(whole: bool) -> None:
    make = maker(native.Library(pool_text.pool_text(arrays=True, whole=whole)))
    for shape in SHAPES:
        assert fields(make(shape)) == fields(np.empty(shape))


@pytest.mark.parametrize("part", ["_PyObject_New", "PyMem_RawMalloc", "srcgrad_numpy_malloc"])
def test_memory_that_cannot_be_had(part: str) -> None:
    """For the object, its dims, or its data: what was made by then is given back."""
    raised = "  %raised = call ptr @PyErr_NoMemory()" if part == "_PyObject_New" else ""
    text = f"define ptr @lacking.{part}(i64 %a, i64 %b) {{\n{raised}\n  ret ptr null\n}}\n"
    lacking = native.Library(text + "declare ptr @PyErr_NoMemory()\n")
    before = llvm.address_of_symbol(part)
    llvm.add_symbol(part, lacking.address(f"lacking.{part}"))
    try:
        make = maker(native.Library(pool_text.pool_text(arrays=True, whole=True)))
        watched = (np.dtype(np.float64), native._numpy_handler())
        counts, blocks = list(map(sys.getrefcount, watched)), sys.getallocatedblocks()
        for _ in range(1_000):
            with pytest.raises(MemoryError):
                make((3, 4))
        gc.collect()
        assert all(abs(sys.getrefcount(item) - count) <= 2 for item, count in zip(watched, counts, strict=True))
        assert sys.getallocatedblocks() - blocks < 100
    finally:
        llvm.add_symbol(part, before)
