"""Sections: what runs as one native function, where its arrays lie, what it gives and what it raises."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad.backends.llvm import modules, native, planning, program
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.modules import Program, data_text
from srcgrad.backends.llvm.ordering import reads_first
from srcgrad.backends.llvm.planning import Plan, Root, bytes_of
from srcgrad.backends.llvm.sections import sectioned
from srcgrad.backends.llvm.target import TARGET
from srcgrad.backends.numpy.evaluate import evaluate
from srcgrad.ir.core import Builder, Function, Value, literal
from srcgrad.ir.opdef import REGISTRY
from srcgrad.ir.types import FLOAT64, INT64, ArrayType
from tests.backends.llvm.support import OPS, agree, build, normal, run, total


def mixed(x: Any, w: Any) -> Any:
    """Products, a sort, loops, views: all native."""
    y = OPS["dot_general"](x, w, contract=((1,), (0,)), batch=((), ()))
    z = OPS["sort"](OPS["tanh"](y), axis=1)
    turned = OPS["transpose"](z, perm=(1, 0))
    return total(z * y), OPS["cumsum"](turned, axis=0, reverse=False) if "cumsum" in OPS else turned, turned


def test_a_whole_function_is_one_call() -> None:
    x, w = normal(6, 5), normal(5, 4, seed=1)
    compiled = BACKEND.compile(build(mixed, x, w))
    assert type(compiled.run) is type(len) or not native.LAYOUT_IS_KNOWN
    agree(mixed, x, w, rtol=1e-12)


def test_one_loop_with_a_small_constant_is_one_call() -> None:
    """Python gave the constant at each call, which took a microsecond."""
    known = literal(np.array([1.0, 4.0, 2.0]), ArrayType(FLOAT64, (3,)))
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (3,)))
    compiled = BACKEND.compile(builder.function("f", [builder.emit(REGISTRY["mul"], [x, known])]))
    assert type(compiled.run) is type(len) or not native.LAYOUT_IS_KNOWN
    (found,) = compiled.run(np.full(3, 2.0))
    np.testing.assert_array_equal(found, [2.0, 8.0, 4.0])


# --- results ---------------------------------------------------------------------------------------------------------


def results_of_every_kind(builder: Builder, x: Value, s: Value) -> list[Value]:
    """Inputs, literals, duplicates, views of inputs and of what is computed, numbers and empty arrays."""
    y = builder.emit(REGISTRY["sin"], [x])
    flat = builder.emit(REGISTRY["reshape"], [x], {"shape": (6,)})
    turned = builder.emit(REGISTRY["transpose"], [y], {"perm": (1, 0)})
    number = builder.emit(REGISTRY["mul"], [s, s])
    part = builder.emit(REGISTRY["slice"], [flat], {"starts": (2,), "limits": (4,), "strides": (1,)})
    none = builder.emit(REGISTRY["slice"], [flat], {"starts": (2,), "limits": (2,), "strides": (1,)})
    ones = literal(1.0, ArrayType(FLOAT64, (2, 3)))
    known = literal(np.arange(3.0), ArrayType(FLOAT64, (3,)))
    lone = builder.emit(REGISTRY["reshape"], [number], {"shape": (1,)})
    ordered = builder.emit(REGISTRY["sort"], [flat], {"axis": 0})
    head = builder.emit(REGISTRY["slice"], [ordered], {"starts": (0,), "limits": (2,), "strides": (1,)})
    return [x, y, y, flat, turned, s, number, number, part, none, ones, known, lone, x, head]


def kinds() -> Function:
    builder = Builder()
    x, s = builder.param(ArrayType(FLOAT64, (2, 3))), builder.param(ArrayType(FLOAT64))
    return builder.function("kinds", results_of_every_kind(builder, x, s))


@pytest.mark.parametrize("part", [program.PART, 1])
def test_results_of_every_kind(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "PART", part)
    function = kinds()
    x, s = normal(2, 3), np.float64(1.5)
    compiled = BACKEND.compile(function)
    assert type(compiled.run) is type(len) or not native.LAYOUT_IS_KNOWN
    before = x.copy()
    found = compiled.run(x, s)
    for actual, wanted in zip(found, evaluate(function, [x, s]), strict=True):
        np.testing.assert_array_equal(actual, wanted)
    arrays = [array for array in found if isinstance(array, np.ndarray) and array.size]
    for k, array in enumerate(arrays):
        assert array.flags.writeable and array.flags.c_contiguous
        assert not any(np.shares_memory(array, other) for other in (*arrays[:k], x))
        array[...] = -7.0
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(compiled.run(x, s)[10], np.ones((2, 3)))


def test_functions_that_compute_nothing() -> None:
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (3,)))
    function = builder.function("same", [x, literal(2.0, ArrayType(FLOAT64))])
    given = np.arange(3.0)
    same, two = BACKEND.compile(function).run(given)
    np.testing.assert_array_equal(same, given)
    assert two == 2.0 and not np.shares_memory(same, given)


def test_large_constants() -> None:
    """An array that is too long for code is an argument."""
    table = np.linspace(0.0, 1.0, 40_000)
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, table.shape))
    known = literal(table, x.type)
    function = builder.function("f", [builder.emit(REGISTRY["mul"], [x, known]), known])
    found = BACKEND.compile(function).run(table + 1.0)
    np.testing.assert_array_equal(found[0], (table + 1.0) * table)
    np.testing.assert_array_equal(found[1], table)


SIZE = 40_000


def written_into(x: Any) -> Any:
    table = np.sin(np.linspace(0.0, 1.0, SIZE))
    table[3] = x
    return np.sum(np.tanh(table * x))


def read_in_trips(x: Any) -> Any:
    total = x
    for _ in range(50):
        total = total + 0.01 * np.sum(np.sin(np.linspace(0.0, 1.0, SIZE)) * x)
    return total


def carried_in_trips(x: Any) -> Any:
    table = np.sin(np.linspace(0.0, 1.0, SIZE))
    for k in range(50):
        table = np.where(k % 7 == 0, np.cos(np.linspace(0.0, 1.0, SIZE)), table * x)
    return np.sum(table)


def given_by_a_branch(x: Any) -> Any:
    table = np.cos(np.linspace(0.0, 1.0, SIZE)) if x > 1.0 else np.ones(SIZE) * x
    for k in range(30):
        table = np.sin(np.linspace(0.0, 1.0, SIZE)) if table[k] > 0.5 else table * x
    return np.sum(table * table) * x


@pytest.mark.parametrize("f", [written_into, read_in_trips, carried_in_trips, given_by_a_branch])
def test_large_constants_are_no_part_of_the_code(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they are read: written as text they took a second for each 150,000 elements."""
    written: list[int] = []

    def noted(type: Any, splat: bool, data: bytes) -> str:
        written.append(len(data))
        return data_text(type, splat, data)

    monkeypatch.setattr(modules, "data_text", noted)
    for x in (0.7, 1.2):
        np.testing.assert_allclose(sg.jit(f)(x), f(x), rtol=1e-12)
        slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(sg.grad(f)(x), slope, rtol=1e-5)
    assert max(written, default=0) < SIZE


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.complex64, np.bool_])
def test_the_bytes_of_constants_are_written_as_they_are(dtype: Any) -> None:
    table = np.random.default_rng(0).integers(0, 255, 3000).astype(dtype)
    builder = Builder()
    x = builder.param(ArrayType(table.dtype, table.shape))
    order = builder.emit(REGISTRY["reverse"], [literal(table, x.type)], {"axes": (0,)})
    function = builder.function("f", [builder.emit(REGISTRY["reverse"], [x], {"axes": (0,)}), order])
    np.testing.assert_array_equal(BACKEND.compile(function).run(table)[1], table[::-1])


# --- places ----------------------------------------------------------------------------------------------------------


def plan_of(function: Function) -> tuple[Plan, int]:
    """The plan of a function that is one section, laid out."""
    found = sectioned(function)
    (section,) = found.sections
    plan = Plan(Program(found.partition, TARGET).planner, section.inputs, section.operations, section.outputs, ())
    for k, value in enumerate(section.outputs):
        plan.claim(value, f"output {k}")
    return plan, plan.layout()


def chain(steps: int) -> Function:
    """Sorts and sums, of which some are read late."""
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (100,)))
    values, random = [x], np.random.default_rng(3)
    for _ in range(steps):
        a, b = (values[-1 - int(random.integers(min(len(values), 6)))] for _ in range(2))
        values.append(builder.emit(REGISTRY["sort"], [builder.emit(REGISTRY["add"], [a, b])], {"axis": 0}))
    return builder.function("chain", [values[-1], values[steps // 2]])


def test_no_two_arrays_that_live_share_a_place() -> None:
    plan, size = plan_of(chain(60))
    roots = [root for root in plan.local if root.home is None]
    assert len(roots) > 60
    for k, a in enumerate(roots):
        assert a.offset >= 0 and a.offset + a.size <= size and a.offset % planning.ALIGNMENT == 0
        for b in roots[:k]:
            together = a.first <= b.last and b.first <= a.last
            apart = a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
            assert apart or not together
    assert size < 20 * 1024, "places are used again"
    x = normal(100)
    np.testing.assert_allclose(BACKEND.compile(chain(60)).run(x), evaluate(chain(60), [x]), rtol=1e-12)


def test_pieces_that_are_free_join() -> None:
    free: list[tuple[int, int]] = []
    for offset, size in ((0, 64), (128, 64), (64, 64), (320, 64), (192, 128)):
        planning.release(free, offset, size)
    assert free == [(0, 384)]
    assert planning.fitting([(0, 64), (128, 256), (512, 128)], 100) == 2


def test_results_are_written_where_they_are_returned() -> None:
    plan, _ = plan_of(build(lambda x: OPS["sort"](OPS["sin"](x), axis=0), normal(1000)))
    assert "output 0" in [root.home for root in plan.local]


def test_an_update_is_made_in_place_where_the_old_array_is_dead() -> None:
    def once(x: Any, k: Any, s: Any) -> Any:
        y = OPS["sin"](x)
        return OPS["scatter_set"](y, s, k, axis=0)

    def twice(x: Any, k: Any, s: Any) -> Any:
        y = OPS["sin"](x)
        return OPS["scatter_set"](y, s, k, axis=0), y

    def given(x: Any, k: Any, s: Any) -> Any:
        return OPS["scatter_add"](x, s, k, axis=0)

    arguments = (normal(50), np.int64(-3), np.float64(2.0))
    for rule, expected in ((once, 1), (twice, 0), (given, 0)):
        plan, _ = plan_of(build(rule, *arguments))
        assert len(plan.in_place) == expected
        before = arguments[0].copy()
        agree(rule, *arguments)
        np.testing.assert_array_equal(arguments[0], before)


def test_what_reads_an_array_runs_before_what_writes_over_it() -> None:
    builder = Builder()
    x, k = builder.param(ArrayType(FLOAT64, (4,))), builder.param(ArrayType(INT64))
    y = builder.emit(REGISTRY["sort"], [x], {"axis": 0})
    written = builder.emit(REGISTRY["scatter_set"], [y, literal(1.0, ArrayType(FLOAT64)), k], {"axis": 0})
    read = builder.emit(REGISTRY["gather"], [y, k], {"axis": 0})
    function = builder.function("f", [written, read])
    names = [operation.op.name for operation in reads_first(function.operations)]
    assert names == ["sort", "gather", "scatter_set"]
    later = builder.emit(REGISTRY["gather"], [written, k], {"axis": 0})
    moved = builder.emit(REGISTRY["scatter_set"], [y, later, k], {"axis": 0})
    function = builder.function("f", [written, moved])
    assert len(reads_first(function.operations)) == len(function.operations)
    given = [normal(4), np.int64(2)]
    for actual, wanted in zip(BACKEND.compile(function).run(*given), evaluate(function, given), strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_a_root_that_ends_and_one_that_begins_there_are_apart() -> None:
    """What an operation reads last is not where it writes."""
    plan = Plan.__new__(Plan)
    first, second = Root(100, 0, True, True), Root(100, 1, True, True)
    first.last = second.last = 1
    plan.local = [first, second]
    plan.layout()
    assert first.offset != second.offset
    assert bytes_of(ArrayType(FLOAT64, (3, 2))) == 48


# --- parts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [1, 3, 10, 40])
def test_parts(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A section in many functions: numbers, arrays and aliases that other parts read."""
    monkeypatch.setattr(program, "PART", part)

    def rule(x: Any, k: Any) -> Any:
        s = OPS["gather"](x, k, axis=0)
        row = OPS["reshape"](OPS["sort"](x, axis=0), shape=(2, 3))
        one = OPS["reshape"](s, shape=(1,))
        first = OPS["gather"](row, k, axis=0)
        t = OPS["sin"](s) * s
        y = OPS["sort"](row * OPS["broadcast"](t, shape=(2, 3), dims=()), axis=1)
        return total(y) + t, OPS["reshape"](y, shape=(6,)), one, first, OPS["greater"](t, s)

    x = normal(6)
    agree(rule, x, np.int64(1), rtol=1e-12)
    text = BACKEND.compile(build(rule, x, np.int64(1))).source
    assert part > 10 or "_part1(" in text


# --- errors ----------------------------------------------------------------------------------------------------------


def checked() -> Function:
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (3,)))
    root = builder.emit(REGISTRY["sqrt"], [x])
    positive = builder.emit(REGISTRY["greater"], [x, literal(0.0, x.type)])
    builder.emit_operation(REGISTRY["check"], [positive], {"message": "x must be positive", "kind": "ValueError"})
    small = builder.emit(REGISTRY["less"], [builder.emit(REGISTRY["reduce_sum"], [root], {"axes": (0,)}),
                                            literal(10.0, ArrayType(FLOAT64))])  # fmt: skip
    builder.emit_operation(REGISTRY["check"], [small], {"message": "too large", "kind": "OverflowError"})
    return builder.function("checked", [root])


def test_checks_raise_what_they_say() -> None:
    compiled = BACKEND.compile(checked())
    good = np.array([1.0, 4.0, 9.0])
    for _ in range(3):
        np.testing.assert_allclose(compiled.run(good)[0], [1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match=r"^x must be positive$"):
            compiled.run(np.array([1.0, -4.0, 900.0]))
        with pytest.raises(OverflowError, match=r"^too large$"):
            compiled.run(good * 100.0)
    with pytest.raises(ValueError, match="x must be positive"):
        compiled.run([1, -1, 1])


@pytest.mark.parametrize("kind", ["nothing", "called between", "an input", "a constant"])
def test_a_section_that_only_checks(kind: str) -> None:
    met: list[Any] = []
    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (3,)))
    positive = builder.emit(REGISTRY["greater"], [x, literal(0.0, x.type)])
    builder.emit_operation(REGISTRY["check"], [positive], {"message": "no", "kind": "ValueError"})
    if kind == "called between":
        builder.emit_operation(REGISTRY["host_call"], [x], {"site": 0, "results": ()})
    results = {"an input": [x], "a constant": [literal(2.0, x.type)]}.get(kind, [])
    compiled = BACKEND.compile(builder.function("f", results), [met.append])
    found = compiled.run(np.ones(3))
    assert len(found) == len(results) and len(met) == (kind == "called between")
    for array in found:
        np.testing.assert_array_equal(array, np.full(3, 2.0 if kind == "a constant" else 1.0))
    with pytest.raises(ValueError, match=r"^no$"):
        compiled.run(-np.ones(3))
    assert len(met) == (kind == "called between")


def test_a_factorisation_that_fails() -> None:
    def f(a: Any) -> Any:
        return np.sum(np.linalg.cholesky(a @ a.T - np.eye(3)))

    good, bad = 3 * np.eye(3) + 0.1, 0.1 * np.eye(3)
    compiled = sg.grad(f, backend="llvm")
    np.testing.assert_allclose(compiled(good), sg.grad(f, backend="numpy")(good), rtol=1e-10)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError) as caught:
            compiled(bad)
        with pytest.raises(np.linalg.LinAlgError) as wanted:
            sg.grad(f, backend="numpy")(bad)
        assert str(caught.value) == str(wanted.value)
    np.testing.assert_allclose(compiled(good), sg.grad(f, backend="numpy")(good), rtol=1e-10)


def test_failed_calls_leave_nothing_behind() -> None:
    compiled = BACKEND.compile(checked())
    bad = np.array([1.0, -1.0, 1.0])

    def refused(count: int) -> None:
        for _ in range(count):
            with pytest.raises(ValueError, match="positive"):
                compiled.run(bad)

    refused(10)
    gc.collect()
    before = sys.getrefcount(bad), sys.getallocatedblocks(), native.POOL.waiting
    refused(1000)
    gc.collect()
    after = sys.getrefcount(bad), sys.getallocatedblocks(), native.POOL.waiting
    assert after[0] == before[0] and after[1] - before[1] < 100 and after[2] <= before[2]


def test_an_arena_that_cannot_be_had() -> None:
    huge = 1 << 44

    def rule(x: Any) -> Any:
        wide = OPS["broadcast"](x, shape=(huge, 4), dims=(1,))
        return total(OPS["sort"](wide, axis=0)) + total(x)

    compiled = BACKEND.compile(build(rule, normal(4)))
    for _ in range(3):
        with pytest.raises(MemoryError, match=r"no memory for the \d{14,} bytes in which a program works"):
            compiled.run(normal(4))


def test_a_large_arena() -> None:
    def rule(x: Any) -> Any:
        return total(OPS["sort"](OPS["sin"](x), axis=0)) + total(OPS["sort"](x, axis=0))

    x = normal(100_000)
    agree(rule, x, rtol=1e-10)
    compiled = BACKEND.compile(build(rule, x)).run
    wanted = compiled(x)
    wrong: list[Any] = []

    def work() -> None:
        wrong.extend(found for found in (compiled(x) for _ in range(10)) if found != wanted)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- what is left to Python ------------------------------------------------------------------------------------------


def test_callbacks_stand_between_sections() -> None:
    met: list[Any] = []

    def site(x: Any) -> Any:
        met.append(x.copy())
        return x * 2.0

    builder = Builder()
    x = builder.param(ArrayType(FLOAT64, (4,)))
    y = builder.emit(REGISTRY["sort"], [builder.emit(REGISTRY["sin"], [x])], {"axis": 0})
    called = builder.emit_operation(REGISTRY["host_call"], [y], {"site": 0, "results": (y.type,)}).results[0]
    z = builder.emit(REGISTRY["sort"], [builder.emit(REGISTRY["neg"], [called])], {"axis": 0})
    function = builder.function("f", [builder.emit(REGISTRY["add"], [z, y]), x])
    given = normal(4)
    compiled = BACKEND.compile(function, [site])
    found = compiled.run(given)
    np.testing.assert_allclose(met, [np.sort(np.sin(given))])
    np.testing.assert_allclose(found[0], np.sort(-2.0 * met[0]) + met[0])
    np.testing.assert_array_equal(found[1], given)
    assert len(sectioned(function).sections) == 2


def test_what_has_no_native_form_splits_as_little_as_it_must() -> None:
    """Two operations of NumPy that do not wait for one another stand between two sections, not three."""

    def rule(x: Any) -> Any:
        a, b = (OPS["cast"](v, dtype=np.dtype(np.longdouble)) for v in (OPS["sin"](x), OPS["cos"](x)))
        back = [OPS["cast"](v, dtype=np.dtype(np.float64)) for v in (a, b)]
        return OPS["sort"](back[0], axis=0) + back[1], OPS["sort"](back[1], axis=0) * x

    x = normal(5)
    fused = [op.op.name for op in sectioned(build(rule, x)).function.operations]
    assert fused.count("fused") == 2, fused
    agree(rule, x, rtol=1e-12)


def test_views_that_numpy_shows_are_not_copied() -> None:
    def rule(x: Any) -> Any:
        wide = OPS["cast"](OPS["transpose"](x, perm=(1, 0)), dtype=np.dtype(np.longdouble))
        return OPS["transpose"](wide, perm=(1, 0)), OPS["sin"](x)

    function = build(rule, normal(3, 4))
    kept = [op.op.name for op in sectioned(function).function.operations]
    assert kept.count("transpose") == 2
    found = run(rule, normal(3, 4))
    np.testing.assert_array_equal(found[0], normal(3, 4))


def test_references_stay_the_same() -> None:
    function = kinds()
    compiled = BACKEND.compile(function).run
    x, s = normal(2, 3), np.float64(0.5)

    def counts() -> list[int]:
        return [sys.getrefcount(item) for item in (x, s, compiled)]

    for _ in range(10):
        compiled(x, s)
    before, blocks = counts(), sys.getallocatedblocks()
    for _ in range(5000):
        compiled(x, s)
    gc.collect()
    assert counts() == before and sys.getallocatedblocks() - blocks < 100


def test_callbacks_into_python_are_counted() -> None:
    """What is shown says which lines of a program are Python's."""

    def native_only(x: Any) -> Any:
        return np.sum(np.tanh(x @ x) ** 2)

    def with_lines(x: Any) -> Any:
        return np.sum(np.tanh(x) * np.linalg.matrix_power(x, 3)) + np.sum(scipy.fft.dct(x))

    shown = sg.explain(sg.jit(native_only, backend="llvm"))(np.eye(3))["llvm source"]
    assert shown.rstrip().endswith("# callbacks into Python: 0")
    shown = sg.explain(sg.jit(with_lines, backend="llvm"))(np.eye(3))["llvm source"]
    assert "# callbacks into Python: 1 (dct 1)" in shown


# --- functions without operations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["an input", "one twice", "a constant", "an empty array", "a number", "all of these"])
def test_a_function_without_operations_is_machine_code_that_copies(name: str) -> None:
    x, s = normal(3, 2), np.float64(1.5)
    none = np.empty((0, 2))

    builder = Builder()
    a, b, c = (builder.param(ArrayType(FLOAT64, np.shape(given))) for given in (x, s, none))
    known = literal(np.arange(3.0), ArrayType(FLOAT64, (3,)))
    kinds = {"an input": [a], "one twice": [a, a], "a constant": [known], "an empty array": [c], "a number": [b]}
    made = builder.function("program", kinds.get(name) or [value for values in kinds.values() for value in values])
    compiled = BACKEND.compile(made)
    assert type(compiled.run) is type(len) or not native.LAYOUT_IS_KNOWN
    results = compiled.run(x, s, none)
    for found, expected in zip(results, evaluate(made, [x, s, none]), strict=True):
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)
        assert not np.shares_memory(found, x)
    assert len({id(found) for found in results}) == len(results)


@pytest.mark.parametrize("given", [np.array(1.5), np.array(1.5, ">f8"), np.array(1.5, np.float32), np.float64(1.5)])
def test_a_number_is_read_from_arrays_of_rank_0(given: Any) -> None:
    builder = Builder()
    s = builder.param(ArrayType(FLOAT64, ()))
    (found,) = BACKEND.compile(builder.function("program", [s])).run(given)
    assert type(found) is np.float64
    assert found == 1.5


def test_long_constants_stay_out_of_code(texts: list[str], nothing_on_disk: None) -> None:
    known = literal(np.arange(float(1 << 16)), ArrayType(FLOAT64, (1 << 16,)))
    (found,) = BACKEND.compile(Builder().function("program", [known])).run()
    np.testing.assert_array_equal(found, np.arange(1 << 16))
    assert not texts
