"""Every row of docs/control_flow.md is tested: what is converted, what is traced again and why, what is left alone."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad.tracing.conversion.convert import convert
from srcgrad.tracing.conversion.sources import Unconvertible
from tests.control_flow.corpus import errors
from tests.control_flow.test_python_values import asynchronous, jump_in_finally, namespace, without_source

PAGE = Path(__file__).resolve().parents[2] / "docs" / "control_flow.md"
POINTS = (np.array([0.53, -1.57, 2.43]), np.array([-0.52, 1.27, 3.47]), np.array([2.03, 0.26, -1.12]))
Function = Callable[..., Any]
CONVERTED: dict[str, list[Function]] = {}
BY_PATHS: dict[str, tuple[Function, str]] = {}
TRACED_AGAIN: dict[str, tuple[Function, str]] = {}
on_the_page = pytest.mark.skipif(not PAGE.exists(), reason="a copy without the documentation")


def table(heading: str) -> dict[str, str]:
    """The rows of the table under a heading."""
    part = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \| (.*?) \|$", part, re.MULTILINE)
    return dict(rows[1:])


def converted(row: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        CONVERTED.setdefault(row, []).append(function)
        return function

    return register


def again(row: str, reason: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        TRACED_AGAIN[row] = function, reason
        return function

    return register


def several(row: str, reason: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        BY_PATHS[row] = function, reason
        return function

    return register


@converted("`if`, `elif`, `else`, `x if c else y`")
def branches(x: Any) -> Any:
    if x[0] > 1:
        y = x * 2
    elif x[1] > 1:
        y = x**2
    else:
        y = -x
    return np.sum(y) + (x[0] if x[2] > 0 else x[1] ** 2)


@converted("`while` with `else` or a walrus")
def whiles(x: Any) -> Any:
    y, n = x[0] ** 2, 0
    while (z := y * 1.5) < 20:
        y = z + 0.1
        n += 1
    else:
        y += z
    while n < abs(x[2]) * 5 and print("again", n) is None:
        n += 1
    return y * n


@converted("`for` over an array, `zip`, `enumerate`, `reversed`")
def fors(x: Any) -> Any:
    total = 0.0
    long = np.concatenate([np.sin(k * x) for k in range(1, 14)])
    for k, (v, w) in enumerate(zip(long, long[::-1])):  # noqa: B905
        total += v * w * k if v > 0 else w
    for v in reversed(long):
        total = 0.9 * total + v
    return total


@converted("`range` of a traced number")
def ranges(x: Any) -> Any:
    total = x[1]
    for k in range(1, int(abs(x[2]) * 3), 2):
        total += k * x[0]
    return total


@converted("a long `range`")
def long_ranges(x: Any) -> Any:
    y = x.copy()
    for k in range(200):
        y[k % 3] = np.sin(y[(k + 1) % 3]) + 0.1 * k
    parts = []
    for k in range(40):
        parts.append(y[k % 3] * k)
    return sum(parts)


@converted("`break`, `continue`, `return` anywhere")
def jumps(x: Any) -> Any:
    total = 0.0
    for i in range(5):
        for v in x:
            if v < -1:
                continue
            if v * i > 6:
                break
            total += v * i
            if total > 12:
                return total**2
    return total


@converted("`and`, `or`, `not`, chained comparisons, `in`")
def logic(x: Any) -> Any:
    y = x[0] if 0 < x[0] < 1 and not x[1] > 0 else x[1]
    k = np.argmax(x)
    return y * (2.0 if k in (0, 1) or (x[2] > 3 and np.sum(np.sin(x) @ np.cos(x)) > 0) else 3.0)


converted("`assert`, `raise`")(errors)  # pytest rewrites the assertions of this file


@converted("`match` on values")
def matches(x: Any) -> Any:
    match np.argmax(x):
        case 0 | 1:
            return x[0]
        case 2 if x[0] > 0:
            return x[1] ** 2
        case _:
            return x[2] * 3


@converted("`with`, `try` around Python values")
def tries(x: Any) -> Any:
    table = {"a": 1.0}
    try:
        scale = table["b"]
    except KeyError:
        scale = 2.0
    finally:
        y = x * 2
    with np.errstate(all="ignore"):
        if x[0] > 0:
            y = y * scale
    return np.sum(y)


@converted(
    "`try` around what fails where values say so: `raise` under a condition, `assert`, an index, a key, a domain of "
    "`math`, `solve`, `inv`, `cholesky`"
)
def handlers(x: Any) -> Any:
    try:
        if x[0] > 0.5:
            raise ValueError(x[0])
        y = math.sqrt(x[1]) * x[int(x[1] * 2)]
    except (ValueError, IndexError):
        y = x[1] ** 2
    try:
        a = np.linalg.cholesky(np.outer(x, x) + x[2] * np.eye(3))
    except np.linalg.LinAlgError:
        a = np.linalg.inv(np.outer(x, x) + np.eye(3))
    return y * np.sum(a)


@converted("a variable set on one path")
def one_path(x: Any) -> Any:
    if x[0] > -10:
        y = x[1] ** 2
    n = 0
    while n < abs(x[2]):
        z = x[0] * n
        n += 1
    return y + z


@converted("lists, dicts and attributes changed on one path, in the same structure")
def containers(x: Any) -> Any:
    values, state = [0.0, x[0]], {"n": 0}
    for v in x:
        if v > 0:
            values[0] += v
            values[1] = values[0] * v
            state["n"] += 1
    return values[0] * values[1] * state["n"]


@converted("a list, tuple or dict of numbers, or of arrays of one shape, indexed by a traced integer")
def lists(x: Any) -> Any:
    rows, scales = [x, x**2, np.sin(x)], {0: 2.0, 3: x[1]}
    row = rows[np.argmin(x)] * scales[3 * int(x[0] > 0)]
    return [1.0, 3.0, 7.0][np.argmin(x)] * np.sum(row) + (x[0], x[1] ** 2)[int(x[0] > 0)]


@converted(
    "a comprehension that filters by value, in `sum`, `min`, `max`, `any`, `all`, `len`, `math.prod`, `np.sum`, "
    "`np.prod`, `np.min` or `np.max`"
)
def filtered(x: Any) -> Any:
    long = np.concatenate([np.sin(k * x) for k in range(1, 14)])
    found = sum(np.sqrt(v) for v in long if v > 0) + sum((x[k] * k for k in range(3) if x[k] > 0 and k != 2), 1.0)
    found += max(v for v in x if v < 2) + min([v * v for v in x if v > -2], default=7.0)
    found += max((v for v in x if v > 100), default=0.5) + math.prod([v for v in x if v > 0 if v < 2])
    found += np.sum([v * w for v, w in zip(x, x[::-1]) if v < w]) * len([v for v in x if v > 0])  # noqa: B905
    found += np.prod([v for v in x if v < 3]) * np.max([v for v in x if v > -9]) + np.min([v for v in x if v > -9])
    return found * (2.0 if any(v > 1 for v in x if v < 2) else 3.0) * (0.5 if all(v < 3 for v in x if v > 0) else 1.0)


@converted("memory that two variables share on one path, also as views")
def shared(x: Any) -> Any:
    y, z = x * 1.0, x * 2.0
    w = z
    if x[0] > 0:
        w = y[::-1]
    w[0] = 7.0
    z[1] += 1.0
    return np.sum(y * z * w)


@converted("memory that two variables share on one path, also as views")
def left_over(x: Any) -> Any:
    y, z = x * 1.0, x * 2.0
    if x[0] > 0:
        y = z
    z = np.sin(x)
    y[0] = 5.0
    z[1] *= y[2]
    for k in range(40):
        z = np.zeros(3)
        z += 0.5 * x
        y[1] *= 0.9 + 0.001 * k
        if x[1] > 0:
            y = z[::-1]
    return np.sum(y * x)


@converted("`x[mask] += v` and the like, for a number `v`")
def masked(x: Any) -> Any:
    y = np.outer(x, x)
    row = y[0]
    y[y > 0.2] *= 0.9
    y[(y > 0) & (y < 1)] **= 0.5
    row[row < 0] -= x[1]
    negative = y < -0.5
    y[negative] /= x[2]
    return np.sum(y * np.arange(9.0).reshape(3, 3))


@converted("a list, assigned to at a traced integer")
def assigned(x: Any) -> Any:
    free, k = [x[0], x[1], 3.0], int(np.argmin(x))
    free[k] = x[2] ** 2
    free[(k + 1) % 3] += x[0]
    return free[0] * free[1] + free[2]


@converted("`sorted`, `min` and `max` by a key")
def by_keys(x: Any) -> Any:
    order = sorted(range(3), key=lambda k: x[k], reverse=True)
    near = min([v * 2 for v in x], key=lambda v: abs(v - 1.0))
    return near * max(x, key=np.sin) + sum((rank + 1) * x[k] for rank, k in enumerate(order))


@converted("`print` and f-strings")
def prints(x: Any) -> Any:
    print("x is", x, f"and {x[0]:.2f}", [x[1]], end="!\n")
    if x[0] > 0:
        print("positive")
    return np.sum(x)


@converted("random draws, clocks, `time.sleep`")
def draws(x: Any) -> Any:
    rng, start = np.random.default_rng(4), time.perf_counter()
    time.sleep(0)
    return np.sum(x * rng.normal(size=3)) * (1.0 if time.perf_counter() >= start else 0.0)


@converted("`float`, `int`, `abs`, `min`, `max`, `sum`, `round`, `any`, `all`, `sorted`, `math`")
def numbers(x: Any) -> Any:
    y = float(x[0]) * int(x[2]) + abs(x[1]) + min(x) * max(x[0], x[1]) + sum(x) + round(x[2]) * x[0]
    y += (1.0 if any(x > 3) else 2.0) * sorted(x)[1] + (x[0] if all(x > -1) else x[1])
    return y + math.exp(x[1]) + math.atan2(x[0], x[1]) + math.floor(x[2]) * x[2] + math.hypot(*x)


@converted("`np.array([x, y])`, `asarray`, `full`, `linspace`, `np.float64(x)`")
def arrays(x: Any) -> Any:
    y = np.array([[x[0], 1.0], [x[1], x[2]]]) @ np.asarray([x[2], 2.0]) + np.full(2, x[0])
    return y @ np.linspace(x[0], 1.0, 2) * np.float64(x[1])


@converted("`np.zeros(n)`, then `a[i] = x`")
def filled(x: Any) -> Any:
    y, z = np.zeros(3), np.eye(3)
    for i in range(3):
        y[i] = x[i] * i
        z[i, 0] += x[i]
    return y @ z @ y


@converted("`isinstance` and `type`")
def asks(x: Any) -> Any:
    if isinstance(x, np.ndarray) and not isinstance(x, float) and type(x[0]) is np.float64:
        return np.sum(x) if isinstance(float(x[0]), float) else 0.0 * x[0]
    return -np.sum(x)


class Base:
    def __init__(self, x: Any) -> None:
        self.x = x

    def value(self, y: Any) -> Any:
        return self.x * y if y > 0 else y


class Speed:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    @property
    def size(self) -> Any:
        return math.hypot(self.x, self.y) if self.x > 0 else self.y

    def __add__(self, other: Any) -> Any:
        return Speed(self.x + other.x, self.y) if self < other else self.size * 2.0

    def __lt__(self, other: Any) -> Any:
        return math.sqrt(self.x**2 + 1.0) < other.size + 9.0


@dataclass
class Scaled:
    value: Any
    scale: float = 2.0

    def __post_init__(self) -> None:
        if self.value > 0.4:
            self.value = self.value * self.scale


@converted("properties, operators and `__post_init__` of classes")
def implicit(x: Any) -> Any:
    total = Speed(x[0], x[1]) + Speed(x[1], x[2])
    return total.size * Scaled(x[0]).value + Scaled(x[1], x[2]).value


@converted("`np.vectorize`")
def elements(x: Any) -> Any:
    return np.sum(np.vectorize(lambda v, w: v * w if v > w else w)(np.outer(x, x), x[::-1]) * np.arange(3.0))


@converted("closures, lambdas, methods, `super()`, partials, decorators, recursion, generators")
def functions(x: Any) -> Any:
    count = 1

    def closure(y: Any) -> Any:
        nonlocal count
        if y > 0:
            count += 1
        return y * count

    def parts(n: int) -> Any:
        for k in range(n):
            yield x[k]

    def halved(y: Any, n: int) -> Any:
        return y if n == 0 else halved(y / 2 if y > 1 else y, n - 1)

    pick = lambda y: y**2 if y > 0 else y  # noqa: E731
    return closure(x[0]) + closure(x[1]) + pick(x[2]) + sum(pick(p) for p in parts(3)) + halved(x[2] * 10, 4)


@converted("functions of SciPy that do not dispatch")
def scipys(x: Any) -> Any:
    return np.sum(scipy.linalg.solve(np.outer(x, x) + 2 * np.eye(3), x)) + scipy.linalg.det(np.diag(x))


@on_the_page
def test_the_converted_rows_are_tested() -> None:
    assert list(table("Converted")) == list(CONVERTED)


@pytest.mark.parametrize("function", [f for found in CONVERTED.values() for f in found], ids=lambda f: f.__name__)
def test_converted(function: Function, capsys: pytest.CaptureFixture[str]) -> None:
    slope, run = sg.grad(function), sg.jit(function)
    for x in POINTS:
        expected = function(x.copy())
        printed = capsys.readouterr().out
        with warnings.catch_warnings():
            warnings.simplefilter("error", sg.RetraceWarning)
            np.testing.assert_allclose(run(x.copy()), expected, rtol=1e-12)
            assert capsys.readouterr().out == printed
            found = slope(x.copy())
            assert capsys.readouterr().out == printed
        steps = 1e-6 * np.eye(3)
        differences = [(function(x + step) - function(x - step)) / 2e-6 for step in steps]
        capsys.readouterr()
        np.testing.assert_allclose(found, differences, rtol=1e-5, atol=1e-6)


def test_errors_are_raised_when_the_program_runs() -> None:
    run, slope = sg.jit(errors), sg.grad(errors)
    for call in (run, slope):
        call(POINTS[0])
        with pytest.raises(KeyError, match="too large"):
            call(np.array([101.0, 0.0, 0.0]))
        with pytest.raises(AssertionError, match="large"):
            call(np.array([0.0, 51.0, 0.0]))
        with pytest.raises(UnboundLocalError):
            sg.jit(one_path)(np.array([-11.0, 1.0, 1.0]))
        with pytest.raises(UnboundLocalError):
            sg.grad(one_path)(np.array([1.0, 1.0, 0.0]))


def test_explain_says_what_became_of_long_loops() -> None:
    text = sg.explain(sg.grad(long_ranges))(POINTS[0])["how it runs"]
    assert "the functions were converted" in text
    assert re.search(r"The loop of 200 trips at test_page\.py:\d+: one region", text)
    assert re.search(
        r"The loop of 40 trips at test_page\.py:\d+: unrolled, a list, dict or set gets another size", text
    )


# --- traced again at each call ---------------------------------------------------------------------------------------
@several("a boolean mask that selects", "a boolean index needs the value of a traced")
def mask(x: Any) -> Any:
    return np.sum(x[x > 0] ** 2)


@several("a size from a value", "needs the value of a traced i64[]")
def size(x: Any) -> Any:
    return np.sum(np.ones(round(abs(x[2])))) * np.sum(x)


@several("a slice from a value", "an index needs the value of a traced i64[]")
def part(x: Any) -> Any:
    return np.sum(x[: int(abs(x[2]))])


@several("shapes that differ between branches", "the shape of a conditional expression depends on a traced condition")
def shapes(x: Any) -> Any:
    return np.sum(x if x[0] > 0 else x[:2])


@several("dtypes that differ between branches", "the dtype of a conditional expression depends on a traced condition")
def dtypes(x: Any) -> Any:
    return (np.float32(x[0]) if x[1] > 0 else x[1]) * 2.0


@several("a truth value or a number", "is a truth value or a number, depending on a traced condition")
def truths(x: Any) -> Any:
    y = True
    if x[0] > 0:
        y = x[1]
    return y * x[2]


@several("None or a number", "what the function returns is a number or None, depending on a traced condition")
def nothing(x: Any) -> Any:
    def inner() -> Any:
        if x[0] > 0:
            return np.sum(x)

    return inner() or x[1]


@several("a text chosen by a value", "is another str depending on a traced condition")
def texts(x: Any) -> Any:
    mode = "sum" if x[0] > 0 else "product"
    return np.sum(x) if mode == "sum" else np.prod(x)


@several(
    "a list that grows on one path",
    "a list, dict or set gets another size or other keys, depending on a traced condition",
)
def grows(x: Any) -> Any:
    kept = [0.0]
    for v in x:
        if v > 0:
            kept.append(v)
    return sum(kept)


@several(
    "a write into one of two parts of an array that overlap, kept on one path",
    "may or may not share, depending on a traced condition",
)
def overlapping(x: Any) -> Any:
    y, z = x[:2] * 1, x[1:] * 2
    if x[0] > 0:
        w = x * 3
        y, z = w[:2], w[1:]
    y[1] = 7.0
    return np.sum(y * z)


@several("a write into an array whose dtype differs between branches", "whose dtype depends on a traced condition")
def other_dtypes(x: Any) -> Any:
    y = np.zeros(3)
    if x[0] > 0:
        y = np.zeros(3, np.int64)
    y[0] = 2.0
    return np.sum((y + 1) * x)


@several(
    "reshaping an array whose layout differs between branches", "whose layout in memory depends on a traced condition"
)
def other_layouts(x: Any) -> Any:
    y = np.outer(x, np.arange(3.0))
    if x[0] > 0:
        y = y.T
    flat = y.ravel()
    flat[1] = 5.0
    return np.sum(y * np.outer(np.arange(3.0), x))


@several(
    "a list, dict or object that is one of several, changed later",
    "is one of several objects, depending on a traced condition, and changed",
)
def other_lists(x: Any) -> Any:
    one, other = [x[0], 1.0], [x[1], 2.0]
    picked = one if x[2] > 0 else other
    picked[0] = picked[0] * 5.0
    return one[0] * 3 + other[0]


@several("a recursion that a traced value ends", "a recursion ends where a traced value says")
def recursion(x: Any) -> Any:
    def halved(y: Any) -> Any:
        return y if y < 1 else halved(y / 2) * y

    return halved(abs(x[2])) + x[0]


@several("an error whose message shows values", "the message of an error holds traced values")
def message(x: Any) -> Any:
    if x[0] > 100:
        raise ValueError(f"{x[0]} is large")
    return np.sum(x)


@several("a dict of texts indexed by a value", "is indexed by a traced value")
def keyed(x: Any) -> Any:
    return np.sum(x) if {0: "sum", 1: "product"}[int(x[0] > 0)] == "sum" else np.prod(x)


@again("a `try` that prints or draws before it may fail", "a try has an effect before it may fail")
def prints_first(x: Any) -> Any:
    try:
        print("tried")
        if x[0] > 0:
            raise ValueError
        return np.sum(x)
    except ValueError:
        return np.sum(x**2)


@again(
    "a `try` around `svd`, `eigh` and others that may fail in their own ways",
    "a try holds operations that may fail when the program runs",
)
def decomposed(x: Any) -> Any:
    try:
        return np.linalg.svd(np.outer(x, x) + np.eye(3))[1][0]
    except np.linalg.LinAlgError:
        return np.sum(x)


@again("a text of a value that is no f-string for `print`", "formatting needs the value of a traced")
def length(x: Any) -> Any:
    return np.sum(x) * len(f"{x[0]:.1f}")


@again("a draw of what is no number", "gives a str_ at each call")
def drawn_word(x: Any) -> Any:
    rng = np.random.default_rng(0)
    return np.sum(x) * len(str(rng.choice(["one", "three"])))


@again("a call of what is not known to be pure (a file that is read, a function in C)", "is not known to be pure")
def read_file(x: Any) -> Any:
    return np.sum(x) * np.fromfile(__file__, np.uint8).size


@several("Python integers that may exceed 64 bits", "may exceed 64 bits")
def factorials(x: Any) -> Any:
    product, y = 1, abs(x[0]) + 0.5
    while y < 1e6:
        product = product * 3
        y = y * 2.0 + product
    return y / product


@several("a `try` around a loop with a traced end that may fail", "an error inside a try depends on a traced value")
def in_the_loop(x: Any) -> Any:
    y, n = abs(x[0]) + 0.1, 0
    try:
        while y < 5:
            y = y * 2
            if n > 3:
                raise ValueError
            n += 1
    except ValueError:
        y = y * x[1]
    return y


@on_the_page
def test_the_rows_of_a_program_for_each_path_are_tested() -> None:
    assert table("A program for each path") == {row: reason for row, (_, reason) in BY_PATHS.items()}


@pytest.mark.parametrize("row", list(BY_PATHS))
def test_a_program_for_each_path(row: str) -> None:
    """No warning while the paths suffice; `explain` and ``strict`` give the page's reason."""
    function, reason = BY_PATHS[row]
    sg.clear_caches()
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for x in (*POINTS, *POINTS):
            found = sg.grad(function)(x.copy())
            differences = [(function(x + step) - function(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
            np.testing.assert_allclose(found, differences, rtol=1e-5, atol=1e-6 if row[:6] != "dtypes" else 0.2)
    text = sg.explain(sg.grad(function))(POINTS[0].copy())["how it runs"]
    assert re.match(r"Path \d of at most 8", text)
    assert reason in text
    with pytest.raises(sg.errors.ArgumentError, match=re.escape(reason)):
        sg.jit(function, strict=True)(POINTS[0].copy())


@pytest.mark.parametrize("row", list(BY_PATHS))
def test_a_program_for_each_path_on_xla(row: str) -> None:
    pytest.importorskip("jax")
    function, _ = BY_PATHS[row]
    slope = sg.grad(function, backend="xla")
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for x in (POINTS[0], POINTS[1], POINTS[0]):
            found = slope(x.copy())
            np.testing.assert_allclose(found, sg.grad(function, backend="numpy")(x.copy()), rtol=1e-9, atol=1e-12)
    assert re.match(r"Path \d of at most 8", sg.explain(slope)(POINTS[0].copy())["how it runs"])


@on_the_page
def test_the_rows_that_are_traced_again_are_tested() -> None:
    assert table("Traced again at each call") == {row: reason for row, (_, reason) in TRACED_AGAIN.items()}


@pytest.mark.parametrize("row", list(TRACED_AGAIN))
def test_traced_again(row: str) -> None:
    """The reason is the page's, in the warning and under ``strict``; the derivative is right all the same."""
    function, reason = TRACED_AGAIN[row]
    sg.clear_caches()
    with pytest.warns(sg.RetraceWarning, match=re.escape(reason)):
        sg.grad(function)(POINTS[0].copy())
    with pytest.raises(sg.errors.ArgumentError, match=re.escape(reason)):
        sg.jit(function, strict=True)(POINTS[0].copy())
    for x in POINTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sg.RetraceWarning)
            found = sg.grad(function)(x.copy())
        differences = [(function(x + step) - function(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(found, differences, rtol=1e-5, atol=1e-6)


# --- run as they are -------------------------------------------------------------------------------------------------
NOT_CONVERTED = {
    "one without source": without_source(),
    "an asynchronous one": asynchronous,
    "one that calls `locals()`": namespace,
    "a jump in a `finally`": jump_in_finally,
}


def test_what_is_run_as_it_is_and_asks_what_it_got_is_told() -> None:
    made: dict[str, Any] = {"np": np}
    exec("def f(x):\n    return np.sum(x ** 2) if isinstance(x, np.ndarray) else np.sum(x)", made)
    with pytest.warns(UserWarning, match="its source is not available; isinstance"):
        sg.grad(made["f"])(np.ones(2))


@on_the_page
def test_functions_that_are_run_as_they_are() -> None:
    rows = table("Run as they are")
    assert list(rows) == list(NOT_CONVERTED)
    for row, function in NOT_CONVERTED.items():
        with pytest.raises(Unconvertible, match=re.escape(rows[row])):
            convert(function)  # type: ignore[arg-type]
