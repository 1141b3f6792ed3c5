"""Kernels in chunks: the same results with any number of threads, several callers at once, forks, and the end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from srcgrad.backends.llvm import workers
from srcgrad.backends.llvm.chunks import LONG, MANY, MOST, chunks_of, divided, duration
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.target import TARGET
from srcgrad.ir.errors import BackendError
from tests.backends.llvm.support import OPS, agree, groups, normal, run, total

ROOT = Path(__file__).resolve().parents[3]
TASKS = Path("/proc/self/task")
PROGRAMS = """
import hashlib, os, sys, threading
import numpy as np
from tests.backends.llvm.support import OPS, normal, run, total

def softmax(x):
    most = OPS["broadcast"](OPS["reduce_max"](x, axes=(1,)), shape=x.shape, dims=(0,))
    e = OPS["exp"](x - most)
    return e / OPS["broadcast"](total(e, 1), shape=x.shape, dims=(0,))

PROGRAMS = [
    (lambda x: (total(x), OPS["tanh"](x), OPS["reduce_max"](x, axes=(0,)), total(OPS["exp"](x))), (200_003,)),
    (lambda x: (total(x, 0), OPS["reduce_min"](x, axes=(0,))), (1201, 703)),
    (lambda x: (total(x, 1), x * 2.0), (1201, 703)),
    (lambda x: x + OPS["transpose"](x, perm=(1, 0)), (1003, 1003)),
    (lambda x: (total(x, 0, 2), total(x)), (67, 61, 131)),
    (lambda x: (OPS["reduce_and"](OPS["less"](x, x.like(9.0)), axes=(0, 1)), x), (3, 300_001)),
    (softmax, (1201, 703)),
    (lambda x: (total(softmax(x), 0), total(softmax(x))), (5001, 37)),
]

def digest():
    found = hashlib.sha256()
    for number, (rule, shape) in enumerate(PROGRAMS):
        for dtype in (np.float64, np.float32):
            for result in run(rule, normal(*shape, seed=number, dtype=dtype)):
                found.update(np.ascontiguousarray(result).tobytes())
    return found.hexdigest()
"""


def python(program: str, threads: int | str | None, *options: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != workers.VARIABLE}
    if threads is not None:
        environment[workers.VARIABLE] = str(threads)
    text = PROGRAMS + textwrap.dedent(program)
    command = [sys.executable, *options, "-c", text]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr[-3000:]
    assert not found.stderr.strip(), found.stderr[-3000:]
    return found.stdout.strip()


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    program = """
    from srcgrad.backends.llvm import workers
    print(digest(), len(workers._LIBRARIES))
    """
    found = {threads: python(program, threads).split() for threads in (1, 2, 3, 7)}
    assert len({words[0] for words in found.values()}) == 1, found
    assert {threads: int(words[1]) for threads, words in found.items()} == {1: 0, 2: 1, 3: 1, 7: 1}


def test_threads_that_sleep_without_the_system_call() -> None:
    program = """
    import time
    from srcgrad.backends.llvm import workers
    from srcgrad.backends.llvm.workers_text import needed_symbols, workers_text
    text = workers_text(False)
    assert "pthread_cond_wait" in text and "@syscall" not in text
    workers.workers_text, workers.needed_symbols = (lambda: text), (lambda: needed_symbols(False))
    first = digest()
    for pause in (0.0, 0.001, 0.02, 0.0):
        time.sleep(pause)
        assert digest() == first
    print(first)
    """
    assert python(program, 3) == python("print(digest())", 1)


def test_several_callers_at_once() -> None:
    program = """
    from concurrent.futures import ThreadPoolExecutor
    x = normal(300_003)
    rule = lambda x: (total(OPS["tanh"](x)), OPS["exp"](x))
    from srcgrad.backends.llvm.backend import BACKEND
    from tests.backends.llvm.support import build
    compiled = BACKEND.compile(build(rule, x)).run
    expected = compiled(x)
    def calls(number):
        for _ in range(40):
            for a, b in zip(compiled(x), expected):
                assert np.array_equal(a, b)
        return number
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(calls, range(12))) == list(range(12))
    print("fine")
    """
    assert python(program, 3) == "fine"


def test_the_caller_waits_for_chunks_that_others_have_begun() -> None:
    """Each of two threads has a chunk, and the other's goes on until the caller is back, or for so long."""
    program = """
    import ctypes
    from srcgrad.backends.llvm import workers
    run(lambda x: OPS["tanh"](x) * 2.0, normal(300_000))
    caller, begun, back, done = threading.get_ident(), threading.Event(), threading.Event(), []
    def chunk(block, number):
        if threading.get_ident() == caller:
            assert begun.wait(60)
        else:
            begun.set()
            back.wait(0.3)
        done.append(number)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(chunk)
    share = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(workers._CELL.value)
    share(ctypes.cast(function, ctypes.c_void_p), None, 2)
    found = sorted(done)
    back.set()
    print(found)
    """
    assert python(program, 2) == "[0, 1]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_makes_threads_of_its_own() -> None:
    program = """
    from srcgrad.backends.llvm.backend import BACKEND
    from tests.backends.llvm.support import build
    x = normal(300_003)
    compiled = BACKEND.compile(build(lambda x: (total(OPS["tanh"](x)), OPS["exp"](x)), x)).run
    expected = compiled(x)

    def same():
        return all(np.array_equal(a, b) for a, b in zip(compiled(x), expected))

    def tasks():
        return len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0

    stop = threading.Event()
    busy = threading.Thread(target=lambda: [compiled(x) for _ in iter(stop.is_set, True)])
    busy.start()
    for _ in range(10):
        child = os.fork()
        if not child:
            alone = tasks()
            fine = same() and same()
            more = tasks()
            os._exit(0 if fine and (not alone or (alone == 1 and more == 3)) else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert same()
    stop.set()
    busy.join()
    print("fine")
    """
    assert python(program, 3, "-W", "ignore") == "fine"


def test_nothing_starts_at_import_and_the_end_is_clean() -> None:
    program = """
    import time
    tasks = lambda: len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0
    import srcgrad.backends.llvm.backend
    from srcgrad.backends.llvm import workers
    before = tasks()
    run(lambda x: x * 2.0, normal(100))
    assert tasks() == before and not workers._LIBRARIES
    run(lambda x: OPS["tanh"](x) * 2.0, normal(300_000))
    assert workers._LIBRARIES and (not before or tasks() == before + 3)
    print("fine")
    """
    for _ in range(3):
        assert python(program, 4) == "fine"


@pytest.mark.skipif(not TASKS.exists(), reason="the states of threads are not known here")
def test_threads_sleep_where_there_is_nothing_to_do() -> None:
    program = """
    import time
    before = set(os.listdir("/proc/self/task"))
    run(lambda x: OPS["tanh"](x) * 2.0, normal(300_000))
    (made,) = set(os.listdir("/proc/self/task")) - before
    stat = f"/proc/self/task/{made}/stat"
    asleep = lambda: open(stat).read().rpartition(")")[2].split()[0] == "S"
    until = time.monotonic() + 60.0
    while not asleep():
        assert time.monotonic() < until
        time.sleep(0.01)
    print("fine")
    """
    assert python(program, 2) == "fine"


def test_the_number_of_threads() -> None:
    assert workers.wanted("3") == 3 and workers.wanted(" 1 ") == 1
    assert workers.wanted(None) == workers.wanted("") == workers.available_cores() >= 1
    for text in ("0", "-1", "two", "1.5"):
        with pytest.raises(BackendError, match="give a whole number from 1 on"):
            workers.wanted(text)


def test_the_share_of_a_control_group(tmp_path: Path) -> None:
    assert workers.quota(tmp_path) > 1000
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert workers.quota(tmp_path) > 1000
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("250000\n")
    assert workers.quota(tmp_path) == 3
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert workers.quota(tmp_path) > 1000
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert workers.quota(tmp_path) == 2


@pytest.mark.whole
@pytest.mark.parametrize("size", [16, 17, 31, 32, 33, 63, 64, 65, 1000, 1023])
@pytest.mark.parametrize("step", [1, 8, 16, 32])
@pytest.mark.parametrize("wanted", [1, 2, 3, 64])
def test_chunks_are_whole_steps_and_cover_the_axis(size: int, step: int, wanted: int) -> None:
    chunks = divided(0, size, step, wanted)
    if chunks is None:
        assert wanted == 1 or size < 2 * step
        return
    assert chunks.length % step == 0 and 1 < chunks.parts <= wanted
    last = size - (chunks.parts - 1) * chunks.length
    assert step <= last < chunks.length + step


def test_small_kernels_are_not_divided() -> None:
    (small,) = groups(lambda x: x * 2.0, normal(1000)).groups
    (large,) = groups(lambda x: x * 2.0, normal(1_000_000)).groups
    assert chunks_of(small, TARGET) is None
    found = chunks_of(large, TARGET)
    assert found is not None and 2 <= found.parts <= MOST


def test_long_kernels_have_long_chunks() -> None:
    """What threads read from memory in turns is not read ahead; and many cores want many chunks of the longest ones."""
    parts = {}
    for size in (100_000, 1_000_000, 10_000_000, 100_000_000):
        (group,) = groups(lambda x: OPS["tanh"](x) * OPS["exp"](x), np.broadcast_to(1.0, (size,))).groups
        found = chunks_of(group, TARGET)
        assert found is not None
        each = duration(group) / found.parts
        assert each >= LONG * 0.9 or found.parts <= MANY
        parts[size] = found.parts
    assert parts[1_000_000] == MANY and parts[100_000_000] > 3 * MANY


@pytest.mark.parametrize("size", [50_000, 50_001, 50_007, 50_008, 65_536 + 31])
def test_every_tail_of_chunks(size: int) -> None:
    x = normal(size)

    def rule(x):  # type: ignore[no-untyped-def]
        y = OPS["tanh"](x * 2.0)
        return y, total(y), OPS["reduce_max"](y, axes=(0,)), OPS["reduce_min"](x, axes=(0,))

    (group,) = groups(rule, x).groups
    assert chunks_of(group, TARGET) is not None
    agree(rule, x, rtol=1e-12)


@pytest.mark.parametrize("shape", [(1001, 67), (67, 1001), (3, 40_001), (40_001, 3), (513, 130)], ids=str)
def test_chunks_of_matrices(shape: tuple[int, int]) -> None:
    x = normal(*shape)

    def rule(x):  # type: ignore[no-untyped-def]
        y = OPS["tanh"](x)
        return total(y, 0), total(y, 1), total(y), y

    agree(rule, x, rtol=1e-11)
    agree(lambda x: total(OPS["exp"](x), 0), x, rtol=1e-12)
    agree(lambda x: (OPS["exp"](x), total(x)), x, rtol=1e-11)
    agree(lambda x: OPS["transpose"](OPS["exp"](x), perm=(1, 0)) * 2.0, x)


def test_a_nest_in_chunks() -> None:
    def rule(x):  # type: ignore[no-untyped-def]
        most = OPS["broadcast"](OPS["reduce_max"](x, axes=(1,)), shape=x.shape, dims=(0,))
        e = OPS["exp"](x - most)
        return e / OPS["broadcast"](total(e, 1), shape=x.shape, dims=(0,))

    x = normal(1031, 67)
    (nest,) = groups(rule, x).groups
    assert isinstance(nest, Nest) and chunks_of(nest, TARGET) is not None
    more = lambda x: (rule(x), total(rule(x), 0), total(x * rule(x)), OPS["reduce_max"](x, axes=(0,)))  # noqa: E731
    (nest,) = groups(more, x).groups
    assert isinstance(nest, Nest) and chunks_of(nest, TARGET) is not None
    agree(more, x, rtol=1e-11)
    np.testing.assert_allclose(run(rule, x)[0].sum(axis=1), 1.0, rtol=1e-14)
    agree(rule, x, rtol=1e-13)
