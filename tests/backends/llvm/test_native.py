"""How Python calls a kernel: what is taken as it is, what is converted, references, threads, errors."""

from __future__ import annotations

import gc
import subprocess
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import srcgrad as sg
from srcgrad.backends.llvm import native
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.ir.errors import InternalError
from tests.backends.llvm.support import OPS, build, normal, total

CALLS = 10_000


def rule(x: Any, y: Any, s: Any) -> Any:
    return x * y + OPS["broadcast"](s, shape=x.shape, dims=()), total(x * y), OPS["less"](x, y)


def given(rows: int = 3, columns: int = 13) -> tuple[Any, Any, Any]:
    return normal(rows, columns), normal(rows, columns, seed=1), np.float64(0.5)


def compiled(*arguments: Any) -> Callable[..., Any]:
    return BACKEND.compile(build(rule, *arguments)).run


def expected(x: Any, y: Any, s: Any) -> tuple[Any, ...]:
    return x * y + s, np.sum(x * y), x < y


def check(found: Any, *arguments: Any) -> None:
    for actual, wanted in zip(found, expected(*arguments), strict=True):
        assert (
            type(actual) is type(wanted)
            and actual.dtype == wanted.dtype
            and actual.flags.writeable == (isinstance(wanted, np.ndarray))
        )
        np.testing.assert_allclose(actual, wanted, rtol=1e-12, atol=1e-14)


def misaligned(x: Any) -> Any:
    room = np.zeros(x.nbytes + 9, np.uint8)
    start = 1 + (-room.ctypes.data) % 8
    place = room[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    place[...] = x
    return place


def read_only(x: Any) -> Any:
    found = x.copy()
    found.flags.writeable = False
    return found


class Sub(np.ndarray[Any, Any]):
    pass


FORMS: dict[str, Callable[[Any], Any]] = {
    "plain": np.copy,
    "fortran order": np.asfortranarray,
    "a slice of a larger array": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "negative strides": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[0], x.shape),
    "misaligned": misaligned,
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": read_only,
    "a subclass": lambda x: x.copy().view(Sub),
    "a dtype that is another object": lambda x: x.view(np.dtype(x.dtype, metadata={"unit": "m"})),
    "a list": lambda x: x.tolist(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["built-in", "through ctypes"])
def test_every_form_of_array(form: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LAYOUT_IS_KNOWN", native.LAYOUT_IS_KNOWN and place == "built-in")
    x, y, s = given()
    run = compiled(x, y, s)
    shown = FORMS[form](x)
    before = np.array(shown, np.float64)
    check(run(shown, y, s), before, y, s)
    check(run(y, shown, float(s)), y, before, s)
    check(run(x, y, np.array(s)), x, y, s)
    np.testing.assert_array_equal(np.array(shown, np.float64), before)


def test_the_fast_way_is_a_built_in_function() -> None:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("objects are laid out in another way")
    assert native.LAYOUT_IS_KNOWN, "the layout of this Python and NumPy is not known"
    assert type(compiled(*given())) is type(len)


UNKNOWN = """
import sysconfig
known = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: 1 if name == "Py_GIL_DISABLED" else known(name)
import numpy as np
import srcgrad as sg
from srcgrad.backends.llvm import front, native
assert not native.LAYOUT_IS_KNOWN and not native.ARRAYS_ARE_KNOWN and not front.POSSIBLE
f = sg.value_and_grad(lambda x: np.sum(np.sin(x) ** 2), backend="llvm")
x = np.linspace(0.0, 1.0, 10_000)
for _ in range(20):
    value, slope = f(x)
np.testing.assert_allclose(value, np.sum(np.sin(x) ** 2))
np.testing.assert_allclose(slope, np.sin(2 * x), atol=1e-15)
print(type(sg.jit(lambda x: x[0] + x[1], backend="llvm")(x[:2])).__name__)
"""


def test_a_python_without_a_lock_takes_the_safe_way() -> None:
    """What the loading looks at is said of this Python: the objects of a true one lie in yet another way."""
    done = subprocess.run([sys.executable, "-c", UNKNOWN], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "float64"


@pytest.mark.parametrize("place", ["built-in", "through ctypes"])
def test_wrong_arguments_are_errors(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LAYOUT_IS_KNOWN", native.LAYOUT_IS_KNOWN and place == "built-in")
    x, y, s = given()
    run = compiled(x, y, s)
    for wrong in ((x, y), (x, y, s, s), ()):
        with pytest.raises(InternalError, match="takes 3 arrays"):
            run(*wrong)
    for wrong in ((x[:2], y, s), (x[:, :12].copy(), y, s), (x.ravel(), y, s), (x, y, np.ones(1)), (x.T, y, s)):
        with pytest.raises(InternalError, match="not an array of shape"):
            run(*wrong)
    with pytest.raises((TypeError, ValueError)):
        run(x, y, "no number")
    check(run(x, y, s), x, y, s)


@pytest.mark.parametrize("way", ["fast", "slow", "wrong"])
def test_references_stay_the_same(way: str) -> None:
    x, y, s = given()
    run = compiled(x, y, s)
    first = {"fast": x, "slow": np.asfortranarray(x), "wrong": x[:2]}[way]
    watched = (first, y, s, np.dtype(np.float64), np.dtype(np.bool_), np.float64, np.ndarray, run)

    def calls(count: int) -> None:
        for _ in range(count):
            try:
                run(first, y, s)
            except InternalError:
                assert way == "wrong"

    calls(10)
    gc.collect()
    before = [sys.getrefcount(item) for item in watched]
    calls(CALLS if way == "fast" else CALLS // 10)
    gc.collect()
    assert all(abs(sys.getrefcount(item) - count) <= 2 for item, count in zip(watched, before, strict=True))


def test_results_belong_to_the_caller() -> None:
    x, y, s = given()
    run = compiled(x, y, s)
    found = run(x, y, s)
    item, whole = sys.getrefcount(found[0]), sys.getrefcount(found)
    assert (item, whole) == (2, 2)
    assert not any(np.shares_memory(found[0], other) for other in (x, y, found[2]))
    gone = weakref.ref(found[0])
    del found
    assert gone() is None


def test_a_program_is_freed_with_its_last_kernel() -> None:
    executable = BACKEND.compile(build(rule, *given()))
    run, gone = executable.run, weakref.ref(executable)
    del executable
    gc.collect()
    assert gone() is None
    check(run(*given()), *given())


def test_memory_that_cannot_be_had() -> None:
    huge = 1 << 45

    def spread(x: Any) -> Any:
        wide = OPS["broadcast"](x, shape=(huge, 4), dims=(1,))
        return wide + 1.0, wide * 2.0

    run = BACKEND.compile(build(spread, normal(4))).run
    x = normal(4)

    def refused(count: int) -> None:
        for _ in range(count):
            with pytest.raises(MemoryError):
                run(x)

    refused(5)
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(np.dtype(np.float64)), sys.getallocatedblocks()
    refused(200)
    gc.collect()
    after = sys.getrefcount(x), sys.getrefcount(np.dtype(np.float64)), sys.getallocatedblocks()
    assert after[0] == before[0] and abs(after[1] - before[1]) <= 3 and after[2] - before[2] < 100


def test_threads_at_once() -> None:
    sizes = (40, 200_000)  # the larger one lets other threads run meanwhile
    inputs = [given(1, size) for size in sizes]
    runs = [compiled(*arguments) for arguments in inputs]
    wrong: list[Exception] = []

    def work() -> None:
        try:
            for k in range(30):
                check(runs[k % 2](*inputs[k % 2]), *inputs[k % 2])
        except Exception as error:  # shown by the test
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, np.uint32, np.bool_])
def test_numbers_of_every_dtype_go_in_and_come_out(dtype: Any) -> None:
    number = np.dtype(dtype).type(1)
    run = BACKEND.compile(build(lambda x: OPS["maximum"](x, x) if dtype is not np.bool_ else x & x, number)).run
    (found,) = run(number)
    assert type(found) is type(number) and found == number


# --- through the transforms --------------------------------------------------------------------------------


def loss(x: Any, w: Any) -> Any:
    return np.sum(np.tanh(x @ w) ** 2) + np.max(x)


def test_through_the_transforms() -> None:
    x, w = normal(6, 5), normal(5, 4)
    for transform in (sg.grad, sg.jit, sg.jacfwd):
        found, wanted = (transform(loss, backend=name)(x, w) for name in ("llvm", "numpy"))
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    with sg.use_backend("llvm"):
        np.testing.assert_allclose(sg.hessian(lambda x: np.sum(np.exp(x) ** 2))(x[0]), np.diag(4 * np.exp(2 * x[0])))


def test_control_flow_has_kernels_in_its_regions() -> None:
    def f(x: Any) -> Any:
        while np.max(np.abs(x)) > 0.1:
            x = np.sin(x) * x / 2
        return np.sum(x * np.exp(x))

    x = np.linspace(0.1, 1.0, 9)
    for transform in (sg.jit, sg.grad):
        np.testing.assert_allclose(transform(f, backend="llvm")(x), transform(f, backend="numpy")(x), rtol=1e-12)


def test_what_explain_shows() -> None:
    found = sg.explain(sg.grad(loss, backend="llvm"))(normal(6, 5), normal(5, 4))["llvm source"]
    assert "kernel_1(" in found and "for i0 in 0..24:" in found and "define internal void @kernel_1_loops" in found
    assert "dot_general -> f64[6,4]" in found


def test_a_user_s_name_is_no_kernel() -> None:
    """In a program of several kernels, with a line of NumPy between them."""

    def f(x: Any, kernel_1: Any) -> Any:
        kernel_2 = scipy.fft.dct(np.exp(x) * kernel_1)
        return np.sum(np.sin(kernel_2) * kernel_1)

    x = normal(5)
    np.testing.assert_allclose(sg.grad(f, backend="llvm")(x, x), sg.grad(f, backend="numpy")(x, x), rtol=1e-12)
