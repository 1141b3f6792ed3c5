"""Long programs: what is done to make one grows with it, and no faster."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.cache import is_pure
from srcgrad.testing import check_grads
from srcgrad.tracing import reached_classes, ruled_out, savepoints, trace
from srcgrad.tracing.capture import Captures, analyze
from srcgrad.tracing.conversion import branches, convert, loops, names, objects, statements, told
from srcgrad.tracing.reach import ObjectAnalysis

X = np.array([0.9, 1.3, 0.4, 0.7])
Made = Callable[[str], types.ModuleType]
LINEAR = 2.4
"""At most so many times as much is done for a program that is twice as long."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """A module of this text."""
    known: list[str] = []

    def make(text: str) -> types.ModuleType:
        name = f"long_program_{len(known)}"
        path = tmp_path / f"{name}.py"
        path.write_text(f"import math\nimport sys\nimport numpy as np\n{text}")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        known.append(name)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    yield make
    for name in known:
        del sys.modules[name]


def calls_of(monkeypatch: pytest.MonkeyPatch, holder: Any, name: str, run: Callable[[], object]) -> int:
    """How often a function is called while something runs."""
    count, inner = [0], getattr(holder, name)

    def counted(*args: Any, **options: Any) -> Any:
        count[0] += 1
        return inner(*args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(holder, name, counted)
        run()
    return count[0]


# --- tables ------------------------------------------------------------------------------


def test_a_list_of_numbers_at_a_traced_place_is_one_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    def traced(count: int) -> int:
        powers = [k % 5 for k in range(count)]

        def series(x: Any) -> Any:
            total = 0.0
            for k in range(count):
                total += x ** powers[k] * 0.1
            return total

        found = calls_of(monkeypatch, trace, "evaluate_operation", lambda: sg.jit(series, backend="numpy")(0.9))
        check_grads(series, (0.9,))
        return found

    assert traced(40) == traced(20)


@pytest.mark.parametrize(
    "table", [[1, 2, 3], [True, False, True], [0.5, -0.0, 2.5], [1j, 2.0 + 0j, 3j], [1, 2.5, True]]
)
def test_what_a_list_of_numbers_gives_at_a_traced_place(table: list[Any]) -> None:
    def picked(k: Any, x: Any) -> Any:
        return np.abs(table[k] * x) + np.copysign(1.0, np.real(table[k] * 1.0))

    for k in range(-3, 3):
        assert sg.jit(picked)(np.int64(k), 1.5) == picked(k, 1.5)


# --- recursions --------------------------------------------------------------------------


def determinant(rows: Any) -> Any:
    if len(rows) == 1:
        return rows[0][0]
    total = 0.0
    for j in range(len(rows)):
        total += (-1) ** j * rows[0][j] * determinant([row[:j] + row[j + 1 :] for row in rows[1:]])
    return total


def test_a_loop_that_is_no_region_is_not_tried_as_one_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return determinant([[np.sin(x[i % 4] * (j + 1)) + (i == j) for j in range(5)] for i in range(5)])

    assert 0 < calls_of(monkeypatch, loops, "for_region", lambda: sg.grad(f)(X)) < 5 * 4 * 3
    check_grads(f, (X,))


def summed(items: list[Any], weight: Any) -> Any:
    total = weight
    for k in range(len(items)):
        total = total + np.sum(items[k]) * np.sin(weight)
    return total


def test_a_loop_that_was_no_region_is_one_for_more_trips() -> None:
    """Arrays of other shapes cannot be one table; a hundred of one shape are."""

    def f(x: Any) -> Any:
        total = 0.0
        for n in range(12):
            total = total + summed([x[: 1 + k % 3] for k in range(17 + n % 2)], x[n % 4])
        return total + summed([x] * 100, x[0])

    check_grads(f, (X,))
    said = str(sg.explain(sg.grad(f))(X)["how it runs"]).splitlines()
    assert any("loop of 18 trips" in line and "unrolled" in line for line in said)
    assert any("loop of 100 trips" in line and line.endswith("one region") for line in said)


def test_an_iterator_in_a_loop_is_a_reason_to_write_it_out() -> None:
    def f(x: Any) -> Any:
        items, total = iter([x * k for k in range(40)]), 0.0
        for k in range(20):
            total = total + np.sum(next(items)) * k * x[0]
        return total

    check_grads(f, (X,))
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        sg.grad(f)(X)


# --- blocks that are passed over -------------------------------------------------------------


def with_blocks(count: int) -> str:
    functions = [
        f"def f{k}(x, path=None):\n"
        f"    y = math.sin(x) * {k}.5\n"
        "    if DEBUG:\n"
        "        sys.stdout.write('value')\n"
        "    if path is not None:\n"
        "        np.save(path, y)\n"
        "    return y + x\n"
        for k in range(count)
    ]
    calls = "".join(f"    total += f{k}(x[{k % 4}])\n" for k in range(count))
    return "DEBUG = False\n" + "".join(functions) + f"def cost(x):\n    total = 0.0\n{calls}    return total\n"


def test_many_blocks_are_passed_over(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    module = made(with_blocks(25))
    slope = sg.grad(module.cost)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        check_grads(module.cost, (X,))
        expected = slope(X)
    assert capsys.readouterr().out == ""
    module.DEBUG = True
    with pytest.warns(sg.RetraceWarning):
        np.testing.assert_allclose(slope(X), expected, rtol=1e-14)
    assert capsys.readouterr().out == "value" * 25
    module.DEBUG = False
    np.testing.assert_array_equal(slope(X), expected)
    module.f3 = module.f4
    np.testing.assert_allclose(slope(X)[3], expected[3] + np.cos(X[3]), rtol=1e-14)


def test_functions_with_blocks_are_looked_at_a_few_times(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_at(count: int) -> int:
        module = made(with_blocks(count))
        return calls_of(monkeypatch, ObjectAnalysis, "visit_node", lambda: sg.jit(module.cost)(X))

    assert looked_at(16) < LINEAR * looked_at(8)


class Plotted:
    """Methods of one name, attributes that only some code reads, and a closure made twice of one code."""

    shown = 0

    def __init__(self, scale: float, parts: list[Any]) -> None:
        self.scale, self.parts, self.log = scale, parts, list[Any]()

    def value(self, x: Any) -> Any:
        self.log.append(0)
        if self.shown:
            sys.stdout.write(repr(self.scale))
        if self.shown > 1:
            np.save("nowhere", x)
        return self.scale * x + sum(part.value(x) for part in self.parts)


def inner(scale: float, note: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def multiplied(x: Any) -> Any:
        if scale == 1:
            note(x)
        return x * scale

    return multiplied


FIRST, SECOND = inner(2.0, np.sin), inner(3.0, sys.stdout.write)
TREE = Plotted(2.0, [Plotted(3.0, []), Plotted(0.5, [Plotted(1.5, [])])])


def of_all(x: Any) -> Any:
    if Plotted.shown:
        sys.stdout.write("shown")
    return TREE.value(x) + FIRST(x) * SECOND(x)


SHOWN = 0


def of_one_code(x: Any) -> Any:
    if SHOWN:
        sys.stdout.write("shown")
    return FIRST(x) * SECOND(x)


@pytest.mark.parametrize("function", [of_all, of_one_code, None])
def test_an_analysis_that_goes_on_finds_what_one_that_begins_again_does(
    made: Made, monkeypatch: pytest.MonkeyPatch, function: Callable[[Any], Any] | None
) -> None:
    function = function or made(with_blocks(6)).cost

    def found() -> Captures:
        captures = analyze(function, is_pure=is_pure, kind=ObjectAnalysis)
        assert isinstance(captures, Captures), captures
        return captures

    one = found()
    monkeypatch.setattr(ruled_out, "passing_over_here", lambda *args: None)
    other = found()
    assert one.unreached and one.unreached == other.unreached
    assert (one.source, one.code_key, one.hidden) == (other.source, other.code_key, other.hidden)
    assert one.explain() == other.explain()
    assert one.local_attributes == other.local_attributes


def test_a_savepoint_gives_back_all_that_an_analysis_has() -> None:
    analysis = ObjectAnalysis(is_pure, False)
    analysis.run(of_all.__globals__["determinant"])
    parts = [analysis, analysis.plan, analysis.journals, *analysis.plan.nodes]

    def state() -> list[Any]:
        return [
            {name: repr(value) for name, value in vars(part).items() if "object at" not in repr(value)}
            for part in parts
        ]

    analysis.inner[0] = {"a"}
    before, saved = state(), savepoints.Savepoint(analysis)
    for part in parts:
        for name, value in list(vars(part).items()):
            if type(value) is list:
                value.append(None)
            elif type(value) is dict:
                value[name] = None
            elif type(value) is set:
                value.add(None)
            elif type(value) in (bool, int, str, type(None)):
                setattr(part, name, "another")
    analysis.inner[0].add("b")
    saved.restore()
    assert state() == before


# --- conversion ------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [loops, names, statements, branches, objects, told])
def test_names_of_statements_are_found_once_and_in_order(module: types.ModuleType) -> None:
    known = told.Told()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        for field in ("body", "orelse", "handlers"):
            found = getattr(node, field, None)
            if isinstance(found, list):
                assert known.bound(found) == names.bound(found)
                assert known.read(found) == names.read(found)


CHAINS = {
    "elif": "    {}if x[0] > {}.0:\n        y = x[1] * {}.0 + math.sin(x[2])\n",
    "returns": "    if x[0] > {}.0:\n        return x[1] * {}.0 + math.sin(x[2])\n",
}


@pytest.mark.parametrize("kind", CHAINS)
def test_chains_of_conditions_are_looked_through_once(made: Made, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def converted(count: int) -> int:
        lines = "".join(
            CHAINS[kind].format(*(("el" if k else "",) if kind == "elif" else ()), 90 - k, k) for k in range(count)
        )
        function = made(f"def cost(x):\n    y = x[0]\n{lines}    return y\n").cost
        check_grads(function, (X,)) if count < 20 else None
        code = function.__code__
        walked = [
            calls_of(monkeypatch, module, "children", lambda: convert.convert_code.__wrapped__(code, code.co_filename))
            for module in (names, told)
        ]
        return sum(walked)

    assert converted(40) < LINEAR * converted(20)
    converted(10)


# --- objects ---------------------------------------------------------------------------------


class Part:
    def __init__(self, limit: float) -> None:
        self.limit, self.tags, self.held = limit, [1, 2], {"slope": limit}


class Whole:
    def __init__(self, count: int) -> None:
        self.parts = [Part(0.5 * k) for k in range(count)]
        self.weight = 1.5

    def step(self, part: Part, x: Any, energy: list[Any]) -> None:
        if x > part.limit:
            energy[0] = energy[0] + self.weight * part.limit * x**2
        else:
            energy[0] = energy[0] - part.held["slope"] * x
            energy[1] = [x]


def test_conditions_compare_the_objects_that_their_blocks_leave_different(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(count: int) -> int:
        whole = Whole(count)

        def f(x: Any) -> Any:
            energy: list[Any] = [0.0, [0.0]]
            for part in whole.parts:
                whole.step(part, x[0], energy)
            return energy[0] + energy[1][0]

        found = calls_of(monkeypatch, objects, "apart", lambda: sg.grad(f)(X))
        check_grads(f, (X,))
        return found

    assert 0 < compared(12) <= LINEAR * compared(6)


def test_bases_are_asked_for_only_where_a_name_stands_twice(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = [f"class C{k}:\n    a{k} = {k}.5\n    def f(self, x):\n        return x * self.a{k}\n" for k in range(9)]
    calls = " + ".join(f"P[{k}].f(x[0])" for k in range(9))
    objects_of_all = ", ".join(f"C{k}()" for k in range(9))
    module = made(f"{''.join(classes)}P = [{objects_of_all}]\ndef cost(x):\n    return {calls}\n")
    assert calls_of(monkeypatch, reached_classes, "asks_above", lambda: sg.grad(module.cost)(X)) == 0
    check_grads(module.cost, (X,))
