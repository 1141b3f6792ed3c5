"""What is done so that long programs compile soon: the same results, bit by bit, as without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm import classified, expansions, modules, nests, partition, program, target, written
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.loops import Compute, Group, Load
from srcgrad.backends.llvm.natives import Natives
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.target import CPU_VARIABLE, LEVELS
from srcgrad.backends.numpy.backend import BACKEND as NUMPY
from srcgrad.ir.core import Function
from tests.backends.llvm.random_programs import check, random_function
from tests.backends.llvm.random_structured import random_structured
from tests.backends.llvm.support import OPS, build, normal, total

ROOT = Path(__file__).resolve().parents[3]


pytestmark = pytest.mark.usefixtures("nothing_on_disk")


def same(found: Any, wanted: Any) -> bool:
    """Whether results are equal bit by bit."""
    pairs = zip(map(np.asarray, found), map(np.asarray, wanted), strict=True)
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)


def chain(x: Any, w: Any) -> Any:
    """A value and what its derivatives are made of: forwards, and back again."""
    made, slope = [x], None
    for _ in range(160):
        made.append(OPS["tanh"](made[-1] * w) - made[-1] * made[-1])
    back = w
    for term in reversed(made):
        back = back - back * term * term * w
        slope = back * x if slope is None else slope + back * term
    return total(made[-1], 0), back, slope


def gradient() -> tuple[Function, list[Any]]:
    given = [np.linspace(0.1, 0.4, 203), np.linspace(0.9, 0.2, 203)]
    return build(chain, *given), given


def rows(x: Any, w: Any) -> Any:
    """Passes over the rows of a matrix, which become one nest, and chunks of it."""
    for _ in range(12):
        sums = OPS["broadcast"](total(OPS["exp"](x * w), 1), shape=(64, 40), dims=(0,))
        x = x / sums + OPS["tanh"](w)
    return total(x, 0, 1), x


def softened() -> tuple[Function, list[Any]]:
    given = [normal(64, 40), normal(64, 40, seed=1)]
    return build(rows, *given), given


def cases() -> dict[str, Callable[[], tuple[Function, list[Any]]]]:
    found: dict[str, Any] = {f"random {seed}": lambda seed=seed: random_function(seed, 40) for seed in range(12)}
    found |= {f"structured {seed}": lambda seed=seed: random_structured(seed) for seed in range(12)}
    return found | {"gradient": gradient, "rows": softened}


def require_same_bits(name: str, set_limit: Callable[[int], None], limits: tuple[int, int]) -> None:
    """A case gives the same, bit by bit, whichever of two limits is set when it is compiled."""
    function, given = of_many(100) if name == "many" else cases()[name]()
    found = []
    with np.errstate(all="ignore"):
        for limit in limits:
            set_limit(limit)
            found.append(BACKEND.compile(function).run(*given))
    assert same(*found)


# --- arrays at known places in the arena -----------------------------------------------------------------------------
@pytest.mark.parametrize("name", cases())
def test_places_in_the_arena(name: str, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nests, "_DEAREST", 100)  # so that there are many kernels, and arrays between them
    monkeypatch.setattr(modules, "LONG_PROGRAM", 1 << 40)  # and one module
    require_same_bits(name, lambda limit: monkeypatch.setattr(program, "MANY", limit), (1 << 30, 1))
    if name in ("gradient", "rows"):
        known = ["nocapture %arena" in text for text in texts]
        assert any(known[len(known) // 2 :]) and not any(known[: len(known) // 2])


def test_a_kernel_of_many_arrays_has_few_pointers(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nests, "_DEAREST", 400)
    monkeypatch.setattr(modules, "LONG_PROGRAM", 1 << 40)
    function, given = gradient()
    BACKEND.compile(function).run(*given)
    heads = re.findall(r"define internal void @kernel_\d+_loops\((.*)\)", texts[-1])
    assert len(heads) > 2 and max(head.count("ptr") for head in heads) < program.MANY + 4


# --- the order of statements -----------------------------------------------------------------------------------------
def groups_of(function: Function, natives: Natives | None = None) -> list[Group]:
    found = partition.partitioned(function, natives).groups
    return [phase for group in found for phase in (group.phases if isinstance(group, Nest) else [group])]


@pytest.mark.parametrize("name", cases())
def test_what_is_read_stands_before_what_reads_it(name: str) -> None:
    function, _ = cases()[name]()
    for group in groups_of(function):
        reads = [number for number, item in enumerate(group.statements) if isinstance(item, Load)]
        for number in reads:
            following = (item for item in group.statements[number:] if isinstance(item, Compute))
            reader = next(following, None)
            assert reader is None or number in reader.operands or not is_read(group, number)


def is_read(group: Group, number: int) -> bool:
    return any(isinstance(item, Compute) and number in item.operands for item in group.statements)


def test_groups_are_in_the_order_of_the_program() -> None:
    function, natives = gradient()[0], Natives()
    places = {operation: place for place, operation in enumerate(natives.flatten(function)[0])}
    lengths = []
    for group in groups_of(function, natives):
        found = [places[item.operation] for item in group.statements if isinstance(item, Compute)]
        assert found == sorted(found)
        lengths.append(len(found))
    assert max(lengths) > 100


# --- how code is generated -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", cases())
def test_the_level_of_long_modules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_same_bits(name, lambda limit: monkeypatch.setattr(target, "LONG_TEXT", limit), (1 << 40, 0))


CALLED = {
    "f64": (np.float64, ("tanh", "log1p", "sin", "erf", "expm1", "cbrt")),
    "f32": (np.float32, ("tanh", "log1p", "sin", "erf", "expm1", "cbrt")),
}


@pytest.mark.parametrize("dtype", CALLED)
@pytest.mark.parametrize("shape", [(), (5,), (203,)])
def test_functions_that_are_called(
    dtype: str, shape: tuple[int, ...], texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is alive across calls is there after them: 24 numbers are more than registers that calls leave alone."""
    kind, names = CALLED[dtype]
    x, y = (normal(*shape, seed=seed).astype(kind) for seed in (0, 1))

    def rule(x: Any, y: Any) -> Any:
        alive = [x * y, x - y]
        for k in range(24):
            alive.append(OPS[names[k % len(names)]](alive[-1] * alive[k // 2]))
        found = alive[0]
        for term in alive[::-1]:
            found = found * x + term
        return found, total(found, *range(len(shape))), *alive[-3:]

    function = build(rule, x, y)
    monkeypatch.setattr(partition, "INLINED", 1 << 30)
    wanted = BACKEND.compile(function).run(x, y)
    monkeypatch.setattr(partition, "INLINED", 0)
    assert same(BACKEND.compile(function).run(x, y), wanted)
    assert len(re.findall(r"call .*@srcgrad_tanh_.*", texts[-1])) >= 4


@pytest.mark.skipif(not LEVELS["x86-64-v3"] <= target.TARGET.features | {"fxsr", "cmov"}, reason="no such processor")
def test_functions_that_are_called_by_another_processor() -> None:
    """Where vectors have half the length, and a tail is numbers: their calls come while vectors are alive."""
    chosen = ["-p", "no:cacheprovider", __file__, "-k", "test_functions_that_are_called and shape"]
    command = [sys.executable, "-m", "pytest", "-q", *chosen]
    environment = {**os.environ, CPU_VARIABLE: "x86-64-v3"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]


def test_vectors_stored_around_calls() -> None:
    """A kernel whose frame is aligned, with calls of functions which store numbers in theirs."""
    check(632, 60)


# --- forks -----------------------------------------------------------------------------------------------------------
FORKS = """
import itertools, os, signal, threading
import numpy as np
import srcgrad as sg

shapes = itertools.count(1)
stop = threading.Event()

def compiled():
    x = np.ones(next(shapes))
    assert np.allclose(sg.grad(lambda x: np.sum(np.tanh(x) * x))(x), np.tanh(1.0) + 1.0 / np.cosh(1.0) ** 2)

def work():
    while not stop.is_set():
        compiled()

compiled()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for _ in range(25):
    child = os.fork()
    if not child:
        signal.alarm(60)
        compiled()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads: thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks_while_threads_compile() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr[-3000:]


# --- what LLVM would take quadratic time for ---------------------------------------------------------------------
def numbers_summed(x: Any) -> Any:
    """Terms of a sum that is written out, beside which an array is computed in one loop."""
    found = total(x, 0)
    for k in range(600):
        found = found * (1.0 + 1e-3 * k) + 0.5
    for _ in range(600):
        x = x * 0.999 + 0.001
    return found, x


def test_what_is_computed_once_is_in_short_groups() -> None:
    x = np.linspace(0.1, 0.4, 11)
    function = build(numbers_summed, x)
    groups = [group for group in partition.partitioned(function).groups if isinstance(group, Group)]
    once = [group for group in groups if not group.domain]
    (loop,) = [group for group in groups if group.domain and len(group.statements) > 100]
    assert len(once) >= 4 and max(group.cost() for group in once) <= 2 * classified.MANY_NUMBERS < loop.cost()
    found = BACKEND.compile(function)(x)
    wanted = np.sum(x)
    for k in range(600):
        wanted = wanted * (1.0 + 1e-3 * k) + 0.5
    np.testing.assert_allclose(found[0], wanted, rtol=1e-11)


@pytest.mark.parametrize("count", [64, 65, 200, 64 * 64 + 1])
def test_a_concatenation_of_many_is_one_of_several(count: int) -> None:
    x = np.arange(2.0 * count).reshape(2, count)

    def columns(x: Any) -> Any:
        parts = [OPS["slice"](x, starts=(0, k), limits=(2, k + 1), strides=(1, 1)) for k in reversed(range(count))]
        return OPS["concatenate"](*parts, axis=1)

    function = build(columns, x)
    written = expansions.written_out(function)
    widths = [len(operation.operands) for operation in written.walk() if operation.op.name == "concatenate"]
    assert max(widths) <= expansions.WIDE
    (found,) = BACKEND.compile(function)(x)
    np.testing.assert_array_equal(found, x[:, ::-1])


# --- many arrays -----------------------------------------------------------------------------------------------------
def of_many(count: int) -> tuple[Function, list[Any]]:
    """A step of an optimiser for so many arrays: what it makes of each is an output, and the sum of all is one."""

    def step(*arrays: Any) -> Any:
        slopes = [OPS["tanh"](x) * 0.5 for x in arrays]
        moved = [x - 0.1 * slope for x, slope in zip(arrays, slopes, strict=True)]
        return sum([total(x * x, 0) for x in moved], start=0.0), *moved, *slopes

    given = [normal(5, seed=k) for k in range(count)]
    return build(step, *given), given


def test_functions_have_few_parameters_however_many_arrays_there_are(texts: list[str]) -> None:
    """LLVM's time for a function, and for a call, grows with the square of their number."""
    function, given = of_many(700)
    found = BACKEND.compile(function).run(*given)
    heads = re.findall(r"^define [^@]*@\w+\((.*)\)", "\n".join(texts), re.MULTILINE)
    assert max(head.count("ptr ") for head in heads) < 350
    for result, expected in zip(found, NUMPY.compile(function).run(*given), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-13)


@pytest.mark.parametrize("name", [*cases(), "many"])
def test_pointers_that_are_read_where_they_are_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A section reads those of its inputs and results from the caller's block, or has them as parameters."""

    def set_limit(limit: int) -> None:
        monkeypatch.setattr(program, "LISTED", limit)

    require_same_bits(name, set_limit, (1 << 30, 1))


def test_results_that_are_copied_are_in_parts_that_are_short(texts: list[str]) -> None:
    """Of what is stacked the gradients are pieces of one array; arguments that are results have parts of their own."""

    def pieces(*arrays: Any) -> Any:
        whole = OPS["sin"](OPS["concatenate"](*arrays, axis=0))
        starts = range(0, 5 * len(arrays), 5)
        cut = [OPS["slice"](whole, starts=(start,), limits=(start + 5,), strides=(1,)) for start in starts]
        return *arrays, *cut, *arrays[::-1]

    given = [normal(5, seed=k) for k in range(400)]
    function = build(pieces, *given)
    found = BACKEND.compile(function).run(*given)
    functions = re.findall(r"^define .*?^}", "\n".join(texts), re.MULTILINE | re.DOTALL)
    assert max(text.count("\n") for text in functions) < program.PART
    for one, other in zip(found, [*given, *map(np.sin, given), *given[::-1]], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_groups_end_where_they_have_many_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    function, given = of_many(40)
    results = []
    for limit in (1 << 30, 8):
        monkeypatch.setattr(classified, "MANY_ARRAYS", limit)
        found = partition.partitioned(function, Natives()).groups
        assert (max(len(group.inputs) for group in found if group.domain) > 16) == (limit > 8)
        results.append(BACKEND.compile(function).run(*given))
    for first, second in zip(*results, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-14)


def test_functions_of_very_many_arrays_are_not_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack would not hold what is known of them."""
    function, given = gradient()
    expected = BACKEND.compile(function).run(*given)
    monkeypatch.setattr(written, "MOST", 4)
    executable = BACKEND.compile(function)
    assert "define" not in executable.source
    for found, wanted in zip(executable.run(*given), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert sg.jit(lambda a: [a] * 70_000)(2.0) == [2.0] * 70_000
