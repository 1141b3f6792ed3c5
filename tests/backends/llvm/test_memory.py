"""Memory that is used again: no two live arrays share it, it is bounded, and arrays are as other arrays are."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import srcgrad as sg
from srcgrad.backends.llvm import kernels, memory, native, pool_text
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.memory import DEFAULT_LIMIT, POOLED, kept_bytes
from srcgrad.backends.llvm.nests import Nest
from srcgrad.ir.errors import BackendError
from tests.backends.llvm.support import OPS, build, groups, normal, total, traced_memory

POOL = native.POOL
LARGE = 100_000
MEGABYTE = 1 << 20
STATM = Path("/proc/self/statm")
pytestmark = pytest.mark.skipif(not native.LAYOUT_IS_KNOWN, reason="arrays are NumPy's own here")


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    """Nothing waits before a test, and the limit is as it was after it."""
    limit = POOL.limit
    gc.collect()
    POOL.release()
    yield
    POOL.limit = limit


def doubled(size: int = LARGE, dtype: Any = np.float64) -> Callable[[Any], Any]:
    """A program of one array and one result, as a function."""
    run = BACKEND.compile(build(lambda x: x + x, np.ones(size, dtype))).run
    return lambda x: run(x)[0]


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def apart(blocks: dict[int, int]) -> bool:
    """Whether no block, from its address to its size, reaches into the next."""
    places = sorted(blocks.items())
    return all(start + size <= after for (start, size), (after, _) in pairwise(places))


# --- blocks ----------------------------------------------------------------------------------------
sizes = st.one_of(
    st.integers(1, 1 << 15),
    st.integers(1 << 13, 1 << 18),
    st.integers(1 << 19, 3 << 20),
    st.builds(lambda exponent, more: (1 << exponent) + more, st.integers(13, 22), st.integers(-1, 1)),
)
steps = st.lists(st.one_of(sizes, st.tuples(st.integers(0, 100), st.none() | sizes)), min_size=1, max_size=40)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(steps)
def test_live_blocks_are_apart_and_hold_what_was_written(plan: list[Any]) -> None:
    live: dict[int, tuple[int, int]] = {}
    mark = 0

    def write(place: int, size: int) -> None:
        nonlocal mark
        mark = mark % 250 + 1
        ctypes.memset(place, mark, size)
        live[place] = size, mark

    def holds(place: int, size: int, byte: int) -> bool:
        return ctypes.string_at(place, size) == bytes([byte]) * size

    for step in plan:
        if isinstance(step, int):
            place = POOL.take(step)
            assert place and place % 64 == 0 and place not in live
            write(place, step)
        elif live:
            which, after = step
            place = list(live)[which % len(live)]
            size, byte = live.pop(place)
            assert holds(place, size, byte)
            if after is None:
                POOL.give(place)
                continue
            grown = POOL.grown(place, after)
            assert grown and holds(grown, min(size, after), byte)
            write(grown, max(size, after) if grown == place else after)
        assert apart({place: size for place, (size, _) in live.items()})
    for place, (size, byte) in live.items():
        assert holds(place, size, byte)
        POOL.give(place)
    assert 0 <= POOL.waiting <= POOL.limit


@pytest.mark.parametrize("size", [1 << 14, (1 << 14) + 1, 100_000, MEGABYTE - 1, 5 * MEGABYTE])
def test_a_block_is_used_again(size: int) -> None:
    place = POOL.take(size)
    POOL.give(place)
    waiting = POOL.waiting
    assert size <= waiting <= size * 5 // 4 + 1
    assert POOL.take(size) == place
    assert POOL.waiting == 0
    POOL.give(place)
    POOL.release()
    assert POOL.waiting == 0


@pytest.mark.parametrize("size", [1 << 16, 100_000, MEGABYTE + 100, 5 * MEGABYTE])
def test_results_do_not_begin_a_line_or_two_after_other_arrays(size: int) -> None:
    """Modulo pages: loads would wait for the stores before. Large arrays of NumPy begin at the 16th byte of a page."""
    places = [POOL.take(size) for _ in range(16)]
    try:
        assert all(place % 256 == 0 for place in places)
        assert len({place % 4096 for place in places}) == 16
    finally:
        for place in places:
            POOL.give(place)
        POOL.release()


def test_small_blocks_do_not_wait() -> None:
    POOL.give(POOL.take(100))
    assert POOL.waiting == 0
    POOL.give(None)


def test_what_waits_is_bounded() -> None:
    POOL.limit = 8 * MEGABYTE
    for size in (MEGABYTE, 3 * MEGABYTE, 100_000, 6 * MEGABYTE):
        places = [POOL.take(size) for _ in range(20)]
        for place in places:
            POOL.give(place)
            assert 0 <= POOL.waiting <= POOL.limit
        assert POOL.waiting >= size, "what was given back last waits, though other sizes had filled the room"
    POOL.give(POOL.take(9 * MEGABYTE))
    assert POOL.waiting <= POOL.limit
    POOL.limit = 0
    assert POOL.waiting == 0
    POOL.give(POOL.take(MEGABYTE))
    assert POOL.waiting == 0


def test_no_more_blocks_of_a_class_wait_than_there_are_slots() -> None:
    places = [POOL.take(20_000) for _ in range(40)]
    for place in places:
        POOL.give(place)
    assert POOL.waiting == 16 * 20_480


def test_what_cannot_be_had_is_null_and_what_waits_is_freed_first() -> None:
    POOL.give(POOL.take(MEGABYTE))
    assert POOL.waiting
    for size in (1 << 55, 1 << 62, (1 << 63) - 1, (1 << 64) - 1):
        assert POOL.take(size) is None
    assert POOL.waiting == 0
    place = POOL.take(MEGABYTE)
    ctypes.memset(place, 7, MEGABYTE)
    assert POOL.grown(place, 1 << 55) is None and POOL.waiting == 0
    assert ctypes.string_at(place, MEGABYTE) == b"\7" * MEGABYTE
    POOL.give(place)


@pytest.mark.parametrize("mapped", [False, True])
def test_the_pool_where_there_are_neither_mappings_nor_arrays(mapped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not mapped:
        monkeypatch.setattr(pool_text, "_MAPPINGS", pool_text._NO_MAPPINGS)
    pool = memory.Pool(native.Library(pool_text.pool_text(arrays=False)), arrays=False)
    for size in (100, 100_000, 3 * MEGABYTE):
        place = pool.take(size)
        ctypes.memset(place, 3, size)
        place = pool.grown(place, 4 * size)
        assert place % 64 == 0 and ctypes.string_at(place, size) == b"\3" * size
        pool.give(place)
    assert pool.waiting >= 12 * MEGABYTE and type(pool.empty((LARGE,), np.dtype(np.float64))) is np.ndarray
    pool.release()
    assert pool.waiting == 0


def test_threads_never_have_the_same_block() -> None:
    live: dict[int, int] = {}
    lock, wrong = threading.Lock(), []

    def work(seed: int) -> None:
        draw = np.random.default_rng(seed)
        mine: list[tuple[int, int]] = []
        for _ in range(400):
            if mine and draw.random() < 0.5:
                place, size = mine.pop(int(draw.integers(len(mine))))
                if ctypes.string_at(place, 64) != bytes([seed]) * 64:
                    wrong.append("overwritten")
                with lock:
                    del live[place]
                POOL.give(place)
            else:
                size = int(draw.choice([20_000, 50_000, 2 * MEGABYTE]))
                place = POOL.take(size)
                with lock:
                    if place in live:
                        wrong.append("given twice")
                    live[place] = size
                ctypes.memset(place, seed, 64)
                mine.append((place, size))
        for place, _ in mine:
            with lock:
                del live[place]
            POOL.give(place)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and not live and 0 <= POOL.waiting <= POOL.limit


@pytest.mark.parametrize(
    ("text", "found"), [("0", 0), ("64", 64 * MEGABYTE), (" 3 ", 3 * MEGABYTE), ("many", None), ("-1", None)]
)
def test_the_limit_is_what_the_variable_says(text: str, found: int | None) -> None:
    if found is None:
        with pytest.raises(BackendError, match="no number of megabytes"):
            kept_bytes(text)
    else:
        assert kept_bytes(text) == found
    assert 0 < kept_bytes(None) <= DEFAULT_LIMIT


def test_the_limit_where_memory_is_confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, free, odd = (tmp_path / name for name in ("small", "free", "odd"))
    small.write_text(f"{32 * MEGABYTE}\n")
    free.write_text("max\n")
    odd.write_text("")
    monkeypatch.setattr(memory, "GROUP_LIMITS", tuple(map(str, (free, odd, tmp_path / "none"))))
    usual = kept_bytes(None)
    assert MEGABYTE < usual <= DEFAULT_LIMIT
    monkeypatch.setattr(memory, "GROUP_LIMITS", (str(free), str(small)))
    assert kept_bytes(None) == 2 * MEGABYTE
    monkeypatch.setattr(memory, "GROUP_LIMITS", ())
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert kept_bytes("") == DEFAULT_LIMIT


# --- arrays ----------------------------------------------------------------------------------------
def test_large_results_own_their_memory_and_it_is_used_again() -> None:
    run, x = doubled(), normal(LARGE)
    found = run(x)
    assert found.flags.owndata and found.flags.writeable and found.base is None and address(found) % 64 == 0
    assert np._core.multiarray.get_handler_name(found) == "srcgrad"
    place = address(found)
    del found
    assert POOL.waiting >= 8 * LARGE
    again = run(x)
    assert address(again) == place
    np.testing.assert_array_equal(again, 2 * x)


def test_the_slow_way_has_the_same_memory() -> None:
    run, x = doubled(), np.repeat(normal(LARGE), 2)[::2]
    found = run(x)
    assert found.flags.owndata and address(found) % 64 == 0
    del found
    assert POOL.waiting >= 8 * LARGE


def test_small_results_are_numpy_s() -> None:
    few = POOLED // 8 - 1
    found = doubled(few)(normal(few))
    assert found.flags.owndata
    del found
    assert POOL.waiting == 0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), min_size=1, max_size=25))
def test_live_results_never_share_memory(plan: list[tuple[int, int]]) -> None:
    counts = (5_000, 20_000, 150_000)
    live: list[tuple[np.ndarray[Any, Any], float]] = []
    for number, (which, dropped) in enumerate(plan):
        found = PROGRAMS[which](np.full(counts[which], float(number)))
        assert not any(np.shares_memory(found, other) for other, _ in live)
        live.append((found, 2.0 * number))
        if dropped < len(live):
            del live[dropped]
        assert all(np.all(array == value) for array, value in live)


PROGRAMS = [doubled(count) for count in (5_000, 20_000, 150_000)]


def test_a_view_keeps_the_memory() -> None:
    run, x = doubled(), normal(LARGE)
    view = run(x)[10:20]
    other = run(np.zeros(LARGE))
    np.testing.assert_array_equal(view, 2 * x[10:20])
    assert not np.shares_memory(view, other)
    del view
    assert POOL.waiting >= 8 * LARGE


def test_resize() -> None:
    run, x = doubled(), normal(LARGE)
    for size in (LARGE - 1, LARGE // 3, 5, 3 * LARGE, 40 * LARGE):
        found, other = run(x), run(-x)
        found.resize(size, refcheck=False)
        kept = min(size, LARGE)
        np.testing.assert_array_equal(found[:kept], 2 * x[:kept])
        assert not found[kept:].any() and found.flags.owndata
        np.testing.assert_array_equal(other, -2 * x)
    with pytest.raises(MemoryError):
        found.resize(1 << 55, refcheck=False)
    np.testing.assert_array_equal(found[:LARGE], 2 * x)


def test_pickles_and_copies() -> None:
    run, x = doubled(), normal(LARGE)
    found = run(x)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(found, protocol)), found)
    np.testing.assert_array_equal(copy.deepcopy(found), found)
    other = normal(7)
    found.__setstate__(other.__reduce__()[2])
    np.testing.assert_array_equal(found, other)
    del found
    assert POOL.waiting >= 8 * LARGE


def test_memory_is_freed_by_another_thread() -> None:
    run, x, held = doubled(), normal(LARGE), []
    thread = threading.Thread(target=lambda: held.append(run(x)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(held[0], 2 * x)
    held.clear()
    assert POOL.waiting >= 8 * LARGE


def test_a_result_outlives_its_program() -> None:
    run = BACKEND.compile(build(lambda x: x + x, np.ones(LARGE))).run
    found = run(np.ones(LARGE))[0]
    gone = weakref.ref(run.__self__)
    del run
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(found, 2.0)
    del found
    assert POOL.waiting >= 8 * LARGE


def test_tracemalloc_sees_results() -> None:
    run, x = doubled(), normal(LARGE)
    run(x)
    held, left = traced_memory(lambda: run(x))
    assert 8 * LARGE <= held < 8 * LARGE + 10_000 and left < 10_000


def test_memory_that_cannot_be_had_for_results() -> None:
    def wide(x: Any) -> Any:
        return OPS["broadcast"](x, shape=(1 << 45, 4), dims=(1,)) + 1.0, x + x

    run = BACKEND.compile(build(wide, normal(4))).run
    x = normal(4)
    before = sys.getrefcount(x)
    with pytest.raises(MemoryError, match="no memory for an array of 1125899906842624 bytes"):
        run(x)
    with pytest.raises(MemoryError, match="no memory for an array of"):
        run(np.asarray(x[::-1])[::-1].tolist())
    assert sys.getrefcount(x) == before


def test_neither_references_nor_memory_are_lost() -> None:
    def rule(x: Any, y: Any) -> Any:
        return x * y, x - y, total(x)

    x, y = normal(LARGE), normal(LARGE, seed=1)
    run = BACKEND.compile(build(rule, x, y)).run
    watched = (x, y, np.dtype(np.float64), np.ndarray)

    def resident() -> int:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if STATM.exists() else 0

    for _ in range(20):
        run(x, y)
    gc.collect()
    before, size, blocks = [sys.getrefcount(item) for item in watched], resident(), sys.getallocatedblocks()
    for _ in range(2_000):
        run(x, y)
    gc.collect()
    assert all(abs(sys.getrefcount(item) - count) <= 2 for item, count in zip(watched, before, strict=True))
    assert resident() - size < 4 * MEGABYTE and sys.getallocatedblocks() - blocks < 200


# --- processes -------------------------------------------------------------------------------------
PROGRAM = """
import numpy as np
import srcgrad as sg
f = sg.jit(lambda x: np.sin(x) * 2.0, backend="llvm")
x = np.linspace(0.0, 1.0, 200_000)
"""


def ran(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "code",
    [
        "import builtins; builtins.kept = f(x)",
        "import sys; sys.kept = f(x); del f; sys.modules['srcgrad.backends.llvm.native'].__dict__.clear()",
        "import atexit; kept = f(x); atexit.register(lambda: print(kept.sum() > 0))",
        "class Late:\n    def __del__(self): self.kept.resize(5, refcheck=False)\nlate = Late(); late.kept = f(x)",
        "kept = [f(x)]; kept.append(kept)",
    ],
)
def test_results_that_are_freed_at_the_very_end(code: str) -> None:
    ran(code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_has_the_pool_too() -> None:
    code = """
import os, threading
f(x)
stop = threading.Event()
def work():
    while not stop.is_set():
        f(x)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(8):
    child = os.fork()
    if not child:
        good = all(np.allclose(f(x + k), np.sin(x + k) * 2.0) for k in range(5))
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads: thread.join()
print("done")
"""
    assert ran(code).endswith("done\n")


def test_later_calls_import_nothing_that_a_fork_could_interrupt() -> None:
    """A child that is forked while another thread imports a module waits for ever where it needs that one."""
    code = """
import sys
f(x)
before = set(sys.modules)
for _ in range(8): f(x)
print([name for name in set(sys.modules) - before if name.startswith("srcgrad")])
"""
    assert ran(code).endswith("[]\n")


def test_clearing_the_caches_gives_back_what_waits() -> None:
    double, x = sg.jit(lambda x: x + x, backend="llvm"), normal(LARGE)
    double(x)
    assert POOL.waiting
    sg.clear_caches()
    assert not POOL.waiting
    assert np.array_equal(double(x), x + x)


@pytest.mark.skipif(not STATM.exists(), reason="the size of a process is not known here")
def test_what_waits_goes_back_to_the_system() -> None:
    code = """
import os, pathlib
from srcgrad.backends.llvm.native import POOL
size = lambda: int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
g = sg.jit(lambda x: (x + 1.0, x * 2.0), backend="llvm")
y = np.zeros(4_000_000)
g(y)
held = size()
POOL.release()
print(held - size())
"""
    assert int(ran(code)) >= 55


# --- stores past the caches ------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(1000,), (1003,), (50, 16), (50, 13), (4, 8, 24)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_stores_past_the_caches(shape: tuple[int, ...], dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "STREAMED", 1)
    x, y = normal(*shape).astype(dtype), (10 * normal(*shape, seed=1)).astype(dtype)
    transposed = tuple(reversed(range(len(shape))))

    def rule(x: Any, y: Any) -> Any:
        return x + y, OPS["maximum"](x, y), OPS["transpose"](x, perm=transposed) + OPS["transpose"](y, perm=transposed)

    function = build(rule, x, y)
    text = BACKEND.compile(function).source
    assert ("!nontemporal" in text) == (native.TARGET.vector_bytes > 16)
    for place in ("built-in", "through ctypes"):
        with monkeypatch.context() as patch:
            patch.setattr(native, "LAYOUT_IS_KNOWN", place == "built-in")
            found = BACKEND.compile(function).run(x, y)
        for actual, wanted in zip(found, (x + y, np.maximum(x, y), x.T + y.T), strict=True):
            np.testing.assert_array_equal(actual, wanted)


def test_stores_past_the_caches_where_memory_takes_a_tenth_of_the_time() -> None:
    """A gradient of 96 additions for each element and three outputs waits for memory; a long sum of terms does not."""

    def gradient(x: Any, y: Any, z: Any) -> Any:
        e = OPS["exp"](x)
        return OPS["tanh"](e * y + z), e * OPS["tanh"](x), OPS["exp"](y) * z

    def long(x: Any, y: Any, z: Any) -> Any:
        for _ in range(30):
            x = OPS["tanh"](x * y + z)
        return x

    many = np.broadcast_to(1.0, (1_000_000,))
    for rule, past in ((gradient, True), (long, False)):
        (group,) = groups(rule, many, many, many).groups
        assert bool(kernels.streamed_outputs(group, native.TARGET)) == (past and native.TARGET.vector_bytes > 16)


@pytest.mark.parametrize("shape", [(64, 40), (1031, 67), (7, 1000), (3, 5, 24)], ids=str)
def test_nests_write_past_the_caches_what_no_later_phase_reads(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    last = len(shape) - 1

    def again(value: Any, x: Any) -> Any:
        return OPS["broadcast"](value, shape=x.shape, dims=tuple(range(last)))

    def rule(x: Any) -> Any:
        e = OPS["exp"](x - again(OPS["reduce_max"](x, axes=(last,)), x))
        return e, e / again(total(e, last), x)

    x = normal(*shape)
    (nest,) = groups(rule, x).groups
    wanted = BACKEND.compile(build(rule, x)).run(x)
    assert isinstance(nest, Nest) and not kernels.streamed_outputs(nest, native.TARGET)
    monkeypatch.setattr(kernels, "STREAMED", 1)
    monkeypatch.setattr(kernels, "_LIGHT", 1000)
    read = {value for phase in nest.phases for value in phase.inputs}
    past = kernels.streamed_outputs(nest, native.TARGET)
    assert past == (
        {value for value in nest.outputs if value not in read} if native.TARGET.vector_bytes > 16 else set()
    )
    compiled = BACKEND.compile(build(rule, x))
    assert compiled.source.count("!nontemporal") >= (native.TARGET.vector_bytes == 64 and not shape[-1] % 8)
    for actual, expected in zip(compiled.run(x), wanted, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_stores_past_the_caches_where_outputs_lie_anyhow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "STREAMED", 1)
    x = normal(1000)
    run = BACKEND.compile(build(lambda x: x + x, x)).run
    library = next(cell.cell_contents for cell in run.__self__.__closure__ if hasattr(cell.cell_contents, "engine"))
    name = run.__name__
    block = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(library.address(f"{name}_block"))
    room = np.zeros(x.size + 16)
    for shift in range(9):
        room[:] = 0.0
        target = room[shift : shift + x.size]
        block(ctypes.addressof((ctypes.c_void_p * 2)(x.ctypes.data, target.ctypes.data)))
        np.testing.assert_array_equal(target, 2 * x)
        assert not room[:shift].any() and not room[shift + x.size :].any()
