"""Long straight bodies are generated at level 0, in a module of their own: with the same results, bit by bit."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srcgrad.backends.llvm import classified, kernels, modules, native, nests, objects, partition, program, target
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.loops import Group
from srcgrad.backends.llvm.nests import Nest
from srcgrad.backends.llvm.partition import partitioned
from srcgrad.backends.llvm.target import CPU_VARIABLE, LEVELS, STRAIGHT, TARGET
from srcgrad.ir.core import Function
from tests.backends.llvm.random_programs import random_function
from tests.backends.llvm.random_structured import random_structured
from tests.backends.llvm.support import OPS, build, normal, total
from tests.backends.llvm.test_long_programs import gradient, groups_of, same, softened

ROOT = Path(__file__).resolve().parents[3]
HAS_FMA = "fma" in TARGET.features
ELSEWHERE = pytest.mark.skipif("neon" in TARGET.features, reason="all is generated at one level there")


def polynomials(x: Any, y: Any) -> Any:
    """Products and sums, some of which others read too, powers, and what is folded."""
    made = [x, y]
    for k in range(60):
        a, b, c = made[-1], made[-2], made[k // 2]
        made.append((a * b + c, c - a * a, a * b - OPS["square"](c), OPS["one_minus_square"](a) + b)[k % 4])
        made[-1] = OPS["tanh"](made[-1])
    return made[-1], total(made[-2] * made[-3] + x, 0), made[-1] * made[-1]


def polynomial(dtype: Any) -> tuple[Function, list[Any]]:
    given = [normal(203, dtype=dtype), normal(203, seed=1, dtype=dtype)]
    return build(polynomials, *given), given


CASES: dict[str, Any] = {
    **{f"random {seed}": lambda seed=seed: random_function(seed, 40) for seed in range(8)},
    **{f"structured {seed}": lambda seed=seed: random_structured(seed) for seed in range(8)},
    "gradient": gradient,
    "rows": softened,
    "f64": lambda: polynomial(np.float64),
    "f32": lambda: polynomial(np.float32),
}


pytestmark = pytest.mark.usefixtures("nothing_on_disk")


# --- levels ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CASES)
def test_all_levels_give_the_same(name: str, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    function, given = CASES[name]()
    found = []
    with np.errstate(all="ignore"):
        for level in (2, 1, 0):
            monkeypatch.setattr(target, "LONG_TEXT", 1 << 40 if level == 2 else 0)
            monkeypatch.setattr(modules, "LONG_PROGRAM", 1 << 40 if level else 0)
            monkeypatch.setattr(modules, "is_straight", lambda group, machine: True)
            found.append(BACKEND.compile(function).run(*given))
    assert same(found[1], found[0])
    assert same(found[2], found[0])
    straight = [text for text in texts if text.startswith(STRAIGHT)]
    assert straight or name not in ("gradient", "rows", "f64", "f32")


def passed_on(dtypes: Sequence[Any], size: int) -> tuple[Function, list[Any]]:
    """Many arrays that one kernel keeps and another one reads, some of them of the other dtype."""
    given = [normal(size, seed=k, dtype=dtype) for k, dtype in enumerate(dtypes)]

    def rule(x: Any, y: Any) -> Any:
        made = [x]
        for k in range(30):
            other = OPS["cast"](y, dtype=made[-1].dtype)
            made.append(OPS["tanh"](made[-1] * other) - made[-1] * other)
            if k % 3 == 2:
                made.append(OPS["cast"](made[-1], dtype=np.dtype(dtypes[k % 2])))
        back, kept = made[-1], []
        for term in reversed(made):
            back = -back * OPS["cast"](term, dtype=back.dtype)
            kept.append(total(back, 0))
        return back, made[-1], *kept

    return build(rule, *given), given


@pytest.mark.parametrize("dtypes", [(np.float64, np.float64), (np.float32, np.float32), (np.float64, np.float32)])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 17, 203, 1003])
def test_what_lies_beyond_the_end_of_arrays_in_the_arena(
    dtypes: Sequence[Any], size: int, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors there go beyond the end; what is folded, and what is stored elsewhere, has no part of that."""
    monkeypatch.setattr(nests, "_DEAREST", 200)
    monkeypatch.setattr(classified, "LONGEST", 100)
    monkeypatch.setattr(program, "MANY", 1)
    monkeypatch.setattr(modules, "is_straight", lambda group, machine: True)
    function, given = passed_on(dtypes, size)
    found = []
    for limit in (1 << 40, 0):
        monkeypatch.setattr(modules, "LONG_PROGRAM", limit)
        found.append(BACKEND.compile(function).run(*given))
    assert same(found[1], found[0])
    if size == 1003 and TARGET.masked and dtypes[0] == dtypes[1]:
        vector = f"<{TARGET.vector_bytes // np.dtype(dtypes[0]).itemsize} x"
        assert re.search(rf"\n  store {vector}", "".join(text for text in texts if text.startswith(STRAIGHT)))


@ELSEWHERE
def test_a_sign_is_changed_once_in_a_block(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found again in the same block alone: of others it is not known whether they come first."""
    monkeypatch.setattr(modules, "LONG_PROGRAM", 0)
    monkeypatch.setattr(modules, "is_straight", lambda group, machine: True)

    def rule(x: Any, y: Any) -> Any:
        down = -x
        for k in range(12):
            y = (y + x * (k + 1.0)) * -x
        return y, down, total(y * -x, 0)

    given = [np.array([0.0, -0.0, np.nan, np.inf, 1.5] * 5), normal(25)]
    function = build(rule, *given)
    found = BACKEND.compile(function).run(*given)
    monkeypatch.setattr(modules, "LONG_PROGRAM", 1 << 40)
    wanted = BACKEND.compile(function).run(*given)
    assert same(found[1:2], wanted[1:2])
    for one, other in zip(found, wanted, strict=True):  # the sign of nan is that of the factor that comes first
        np.testing.assert_array_equal(one, other)
    (text,) = [text for text in texts if text.startswith(STRAIGHT)]
    assert "fneg <" not in text.partition("_loops(")[2] and text.count("= xor <") <= 2


@pytest.mark.skipif(not LEVELS["x86-64-v3"] <= TARGET.features | {"fxsr", "cmov"}, reason="no such processor")
def test_all_levels_give_the_same_on_another_processor() -> None:
    """Where a body is there twice: as vectors, and for the numbers that are left."""
    chosen = ["-p", "no:cacheprovider", __file__, "-k", "test_all_levels_give_the_same and not processor"]
    environment = {**os.environ, CPU_VARIABLE: "x86-64-v3"}
    command = [sys.executable, "-m", "pytest", "-q", *chosen]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:]


def all_groups(function: Function) -> Sequence[Group | Nest]:
    return partitioned(function).groups


def wide(x: Any, y: Any) -> Any:
    """Much that waits: all sums at once."""
    made = [x * (k + 1.0) + y for k in range(150)]
    found = made[0]
    for term in made[1:]:
        found = found * term - term
    for term in made:
        found = found + term * found
    return found


def steps(x: Any, w: Any) -> Any:
    """A long body in which nothing waits."""
    for _ in range(60):
        x = OPS["tanh"](x * w) - x * x * w
    return x


def stepped() -> tuple[Function, list[Any]]:
    given = [np.linspace(0.1, 0.4, 203), np.linspace(0.9, 0.2, 203)]
    return build(steps, *given), given


def short(x: Any, y: Any) -> Any:
    return OPS["exp"](x) * y + x


@ELSEWHERE
def test_which_bodies_are_straight() -> None:
    x = normal(64)
    assert all(nests.is_straight(group, TARGET) for group in all_groups(stepped()[0]))
    assert not any(nests.is_straight(group, TARGET) for group in all_groups(build(short, x, x)))
    (group,) = all_groups(build(wide, x, x))
    assert group.statements and not nests.is_straight(group, TARGET)
    assert isinstance(group, Group) and group.cost() > nests.STRAIGHT_COST


@ELSEWHERE
def test_little_text_is_one_module(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    function, given = stepped()
    BACKEND.compile(function).run(*given)
    assert len(texts) == 1 and target.level_of(texts[0]) == 2
    monkeypatch.setattr(modules, "LONG_PROGRAM", 1)
    BACKEND.compile(function).run(*given)
    assert len(texts) == 3 and [target.level_of(text) for text in texts[1:]] == [0, 2 - target.is_long(texts[2])]
    shown = BACKEND.compile(function).source
    assert all(text in shown for text in texts[1:])


@ELSEWHERE
def test_both_modules_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(objects.VARIABLE, str(tmp_path))
    monkeypatch.setattr(modules, "LONG_PROGRAM", 1)
    function, given = stepped()
    wanted = BACKEND.compile(function).run(*given)
    assert len(list(tmp_path.rglob(f"*{objects.SUFFIX}"))) == 2
    monkeypatch.setattr(native, "machine_code", lambda text: pytest.fail("compiled once more"))
    assert same(BACKEND.compile(function).run(*given), wanted)


# --- one rounding ----------------------------------------------------------------------------------------------------
def exact(*parts: float) -> np.float64:
    """``a b + c``, rounded once."""
    a, b, c = map(Fraction, parts)
    return np.float64(float(a * b + c))


ONE = 1.0 + 2.0**-30
"""Its square is no float64."""


@pytest.mark.skipif(not HAS_FMA, reason="no such instruction")
@pytest.mark.parametrize("count", [8, 5, 1])
def test_a_product_and_a_sum_are_rounded_once(count: int) -> None:
    def rule(x: Any, y: Any, z: Any) -> Any:
        return x * y + z, z + x * y, x * y - z, z - x * y, OPS["square"](x) + z, z - OPS["integer_pow"](x, y=2)

    x, y, z = np.full(count, ONE), np.full(count, 3.0 - 2.0**-29), np.full(count, -(2.0**-58))
    found = BACKEND.compile(build(rule, x, y, z)).run(x, y, z)
    a, b, c = x[0], y[0], z[0]
    wanted = [exact(a, b, c), exact(a, b, c), exact(a, b, -c), exact(-a, b, c), exact(a, a, c), exact(-a, a, c)]
    for array, number in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(array, np.full(count, number))


def test_a_product_that_is_read_twice_is_rounded() -> None:
    def rule(x: Any, z: Any) -> Any:
        product = x * x
        return product + z, product * z, OPS["neg"](z) + total(OPS["broadcast"](product, shape=(9, 8), dims=(1,)), 0)

    x, z = np.full(8, ONE), np.full(8, -1.0)
    found = BACKEND.compile(build(rule, x, z)).run(x, z)
    np.testing.assert_array_equal(found[0], x * x + z)
    np.testing.assert_array_equal(found[1], x * x * z)


def test_a_product_of_outer_axes_stays_outside() -> None:
    def rule(x: Any, y: Any) -> Any:
        spread = [OPS["broadcast"](term, shape=(4, 100), dims=(0,)) for term in (OPS["tanh"](x) * x, x)]
        return spread[0] + y, spread[1] * spread[1] + y, y - spread[0] * spread[1]

    function = build(rule, normal(4), normal(4, 100))
    assert functions_of(function) == {""}


def test_of_two_products_the_sum_holds_the_one_that_varies_as_it_does() -> None:
    """Not the one of outer axes, though that is the first; two that both vary so are one in the sum and one before.

    A difference of two holds neither."""

    def rule(x: Any, y: Any, z: Any) -> Any:
        spread = [OPS["broadcast"](x, shape=(4, 100), dims=(0,)) for _ in range(2)]
        return spread[0] * spread[1] + y * z, y * y + spread[0] * z, y * y - spread[0] * z

    function = build(rule, normal(4), normal(4, 100), normal(4, 100, seed=1))
    assert functions_of(function) == {"", "product_plus"}


def functions_of(function: Function) -> set[str]:
    """What statements compute that is not an operation of the program alone."""
    return {item.function for group in groups_of(function) for item in group.statements if hasattr(item, "function")}


@ELSEWHERE
@pytest.mark.parametrize("points", [partition.MANY_POINTS - 1, partition.MANY_POINTS])
def test_long_straight_bodies_round_twice_over_few_points(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """There an instruction for both takes longer to compile than it saves."""
    monkeypatch.setattr(partition, "LONG_PROGRAM", 0)

    def rule(x: Any, y: Any, z: Any) -> Any:
        for k in range(200):
            x = (x * y + z, x * y - z, z - x * y)[k % 3]
        return x

    start, y, z = np.random.default_rng(5).uniform(0.1, 0.9, 3)
    given = [np.full(points, number) for number in (start, y, z)]
    (found,) = BACKEND.compile(build(rule, *given)).run(*given)
    once, twice = start, start
    for k in range(200):
        signs = ((1, 1), (1, -1), (-1, 1))[k % 3]
        once = exact(signs[0] * once, y, signs[1] * z)
        twice = signs[0] * twice * y + signs[1] * z
    assert once != twice
    np.testing.assert_array_equal(
        found, np.full(points, once if points == partition.MANY_POINTS and HAS_FMA else twice)
    )


@ELSEWHERE
def test_long_straight_bodies_write_past_the_caches(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Their modules name what such a store names: 10,000 operations over 10,000 points were no program of LLVM's."""
    monkeypatch.setattr(modules, "is_straight", lambda group, machine: True)
    monkeypatch.setattr(modules, "LONG_PROGRAM", 0)
    given = [normal(256), normal(256, seed=1)]
    function = build(polynomials, *given)
    wanted = BACKEND.compile(function).run(*given)
    monkeypatch.setattr(kernels, "STREAMED", 1)
    monkeypatch.setattr(kernels, "_LIGHT", 1 << 40)
    assert same(BACKEND.compile(function).run(*given), wanted)
    past = [text for text in texts if text.startswith(STRAIGHT) and "!nontemporal" in text]
    assert past or TARGET.vector_bytes == 16


# --- blocks of nests -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_blocks_of_numbers_are_whole_vectors(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nests, "IN_CACHE", 1 << 9)
    monkeypatch.setattr("srcgrad.backends.llvm.classified.LONGEST", 400)
    function, given = gradient()
    function = build(lambda *terms: function_of(*terms), *[array.astype(dtype) for array in given])
    found = [group for group in all_groups(function) if isinstance(group, Nest)]
    assert found
    for nest in found:
        assert nest.block * np.dtype(dtype).itemsize % 64 == 0


def function_of(x: Any, w: Any) -> Any:
    """Steps forwards, all of which are read backwards."""
    made = [x]
    for _ in range(60):
        made.append(OPS["tanh"](made[-1] * w))
    back = w
    for term in reversed(made):
        back = back - back * term * term
    return back


# --- the collector ---------------------------------------------------------------------------------------------------
def test_nothing_is_collected_while_a_program_is_made() -> None:
    function, _ = gradient()
    seen: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        seen.append(phase)

    before = gc.get_threshold()
    gc.callbacks.append(note)
    try:
        gc.set_threshold(50)
        seen.clear()
        BACKEND.compile(function)
        during = len(seen)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)
    assert during <= 4 and gc.isenabled()


def test_the_sum_of_a_number_and_the_square_of_a_sech() -> None:
    """The square of a sech is one function, of the operand of the sech, and no product that a sum could hold."""
    x, y = normal(13), normal(13, seed=1)
    function = build(lambda x, y: OPS["square"](OPS["sech"](x)) + y, x, y)
    (found,) = BACKEND.compile(function)(x, y)
    np.testing.assert_allclose(found, 1 / np.cosh(x) ** 2 + y, rtol=1e-14)
