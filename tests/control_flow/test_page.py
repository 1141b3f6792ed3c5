"""Every row of docs/control_flow.md of what is converted, or left as it is, is tested.

test_page_paths.py has the other rows.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import logging
import math
import operator
import re
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import srcgrad as sg
from srcgrad.tracing.conversion.convert import convert
from srcgrad.tracing.conversion.sources import Unconvertible
from tests.control_flow.language_corpus import errors
from tests.control_flow.page import POINTS, Function, on_the_page, table
from tests.control_flow.test_python_values import asynchronous, jump_in_finally, namespace, without_source

CONVERTED: dict[str, list[Function]] = {}


def converted(row: str) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        CONVERTED.setdefault(row, []).append(function)
        return function

    return register


LOGGER = logging.getLogger("srcgrad.tests.page")


@converted("`if`, `elif`, `else`, `x if c else y`")
def branches(x: Any) -> Any:
    if x[0] > 1:
        y = x * 2
    elif x[1] > 1:
        y = x**2
    else:
        y = -x
    return np.sum(y) + (x[0] if x[2] > 0 else x[1] ** 2)


@converted("`while` with `else` or a walrus, also behind `and` or `or`: `while ok and (n := n + 1) < 20:`")
def whiles(x: Any) -> Any:
    y, n = x[0] ** 2, 0
    while (z := y * 1.5) < 20:
        y = z + 0.1
        n += 1
    else:
        y += z
    while n < abs(x[2]) * 5 and print("again", n) is None:
        n += 1
    while y > 1.0 and (n := n + 1) < 20:
        y = y * 0.75
    return y * n


@converted(
    "`for` over an array, a list of numbers or arrays or of tuples of them, a dict, `zip`, `enumerate`, `reversed`, "
    "`product`, `combinations`, `permutations`, `pairwise`"
)
def fors(x: Any) -> Any:
    total = 0.0
    long = np.concatenate([np.sin(k * x) for k in range(1, 14)])
    for k, (v, w) in enumerate(zip(long, long[::-1])):  # noqa: B905
        total += v * w * k if v > 0 else w
    for v in reversed(long):
        total = 0.9 * total + v
    return total


@converted("a generator in `sum`, `math.prod`, `math.fsum`, `list`, `tuple`, `sorted`, `max` or `min`")
def generators(x: Any) -> Any:
    pairs = [(k % 3, 0.1 * k) for k in range(40)]
    total = sum(x[i] * w for i, w in pairs) + sum(v * w for v in x for w in x) + math.fsum(w * x[0] for _, w in pairs)
    total += math.prod(1 + w * x[i] * 0.01 for i, w in pairs) + max(np.sin(v * k) for k, v in enumerate(x))
    return total + list(v * v for v in x)[1] + tuple(v + 1 for v in x)[-1] * sorted(-v for v in x)[2]  # noqa: C400


@converted("short loops in each other, also over lists of numbers or of tuples of them")
def short_loops(x: Any) -> Any:
    total = 0.0
    for i in range(10):
        for j in range(10):
            for k in range(10):
                total += np.sin(x[0] * i + x[1] * j) * x[2] * k
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
        parts.insert(1, y[k % 3] * k)
    return sum(parts)


@converted(
    "a long loop whose first trips change what kind a variable is, fill a window or are others by their number: "
    "`last = None` before it, `deque(maxlen=5)`, `0.0 if k == 0 else x[k - 1]`"
)
def settling(x: Any) -> Any:
    last, total = None, 0.0
    for k in range(40):
        y = np.sin(x * k)
        if last is not None:
            total = total + np.sum((y - last) ** 2)
        last = y
    return total


@converted(
    "a long `while` that counts: `while i < n` with one `i += c` among its statements, Python's numbers, "
    "`n` and `c` left alone"
)
def counting(x: Any) -> Any:
    y, i, end = x.copy(), 0, 120
    while i + 1 < end:
        y[i % 3] = np.sin(y[(i + 1) % 3]) + 0.1 * i
        i += 2
    return np.sum(y) * i


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


@converted(
    "`states.append(h)` in a long loop that does no more with the list than to read `states[-1]`; "
    '`log["x"].append(h)`; `[f(t) for t in range(n)]`'
)
def appended(x: Any) -> Any:
    states, weights = [x], [np.sin(x[0] * t) for t in range(20)]
    log: dict[str, list[Any]] = {"x": []}
    for _ in range(20):
        states.append(np.cos(states[-1]) * x)
        log["x"].append(states[-1] * x[0])
    total = np.sum(np.array(states)[1:] * np.array(weights)[:, None]) + len(states) * states[3][1]
    return total + np.sum(np.array(log["x"])[::3])


@converted(
    "`rows.append([t, x, v])` in a long loop that reads `rows[-1][1]` or `t, x, v = rows[-1]`, "
    "of lists, tuples and dicts of numbers; `r = rows[-1]`"
)
def rows_that_are_read(x: Any) -> Any:
    rows, pairs = [[0.0, x[0], x[1]]], [(x[2], 1.0)]
    for _ in range(20):
        t, place, speed = rows[-1]
        rows.append([t + 0.1, place + 0.1 * speed, speed - 0.1 * place])
        pair = pairs[-1]
        pairs.append((0.9 * pair[0], pair[1] + place))
    return np.sum(np.array(rows)) + sum(a * b for a, b in pairs) + rows[7][1]


@converted("`found.insert(0, x)` in a long loop that does no more with the list")
def inserted(x: Any) -> Any:
    found, y = [], x[0]
    for _ in range(20):
        y = np.sin(y) * x[1] + x[2]
        found.insert(0, y)
    return np.sum(np.array(found) * np.arange(20)) + found[3] * len(found)


@converted(
    "`xs.append(a * xs[-1] + b * xs[-2])` in a long loop; "
    "`xs[-3:]`, and places that the number of the trip says: `xs[t]`, `xs[t : t + 2]`"
)
def recurrences(x: Any) -> Any:
    xs, ys = [x[0], 0.2, 0.1], [x, x * 2.0]
    for t in range(40):
        xs.append(np.tanh(xs[-1] * x[1] + xs[-2] + 0.1 * sum(xs[-3:]) + xs[t]))
        ys.append(np.tanh(sum(ys[t : t + 2]) * x[2]))
    return np.sum(np.array(xs[3:]) ** 2) + np.sum(np.array(ys))


@converted("`st.pop()` or `queue.pop(0)`, as often in each trip of a long loop; `while st: a = a + st.pop()`")
def stacks(x: Any) -> Any:
    st, queue, a = [], [], x[0]
    for _ in range(20):
        st.append(a)
        queue.append(np.cos(a) * x[1])
        a = np.sin(a) * np.tanh(x[2])
    for _ in range(18):
        a = a * 0.5 + queue.pop(0)
    while st:
        a = a * 0.9 + st.pop()
    return a


@converted("`row = []`, filled by a loop inside, then `rows.append(row)`")
def rows_of_a_table(x: Any) -> Any:
    rows = []
    for i in range(20):
        row = []
        for j in range(18):
            row.append(np.sin(x[0] * i) + x[1] * j)
        rows.append(row)
    row[0] = x[2]
    return np.mean(np.array(rows) ** 2)


@converted(
    "`u = [u[0]] + [u[i] + r * (u[i + 1] - u[i - 1]) for i in range(1, n - 1)] + [u[-1]]` in a long loop: a list, or "
    "lists in each other, of 17 numbers of one kind or more, made anew in each trip"
)
def lists_made_anew(x: Any) -> Any:
    u = [x[0] * np.sin(0.2 * i) for i in range(20)]
    for _ in range(30):
        u = [u[0]] + [u[i] + 0.1 * x[1] * (u[i + 1] - u[i - 1]) for i in range(1, 19)] + [u[-1]]
    return u[7] * x[2]


@converted("`states.append(h)` in some trips, which the number of the trip says: `if k % 100 == 0:`")
def appended_sometimes(x: Any) -> Any:
    states, y = [], x
    for k in range(40):
        y = np.cos(0.2 * y) * np.tanh(x)
        if k % 7 == 3:
            states.append(y)
    return np.sum(np.array(states) * np.arange(len(states))[:, None])


@converted(
    "`states[t] = h` in each trip of a long loop over the numbers of a list's items, `[None] * n` or anything before, "
    "forwards or backwards; items that trips before it have assigned are read"
)
def smoothed(x: Any) -> Any:
    filtered: list[Any] = [None] * 40
    filtered[0] = x
    for t in range(1, 40):
        filtered[t] = 0.4 * np.sin(filtered[t - 1] * x) + 0.1 * t
    smooth: list[Any] = [None] * 39 + [filtered[-1]]
    for t in range(38, -1, -1):
        smooth[t] = 0.5 * filtered[t] + 0.5 * np.tanh(smooth[t + 1])
    return np.sum(smooth[0] * smooth[7])


@converted("`kept[k] = u.copy()` in all or some trips of a long loop, a dict by keys that the number of the trip makes")
def kept_by_number(x: Any) -> Any:
    kept, y = {}, x
    for k in range(40):
        y = np.cos(0.2 * y) * np.tanh(x)
        if k % 7 == 3:
            kept[k] = y.copy()
    return np.sum(sum(k * v for k, v in kept.items()) + kept[10] * len(kept))


@converted(
    "a long loop whose array gets longer or shorter by as much in each trip: `v = p * v[1:] + q * v[:-1]`, "
    "`a = np.append(a, t)`, `while len(v) > 1`"
)
def moving(x: Any) -> Any:
    v, a, w = np.sin(np.outer(np.arange(8), x).ravel()), x[:1], np.cos(np.repeat(x, 7))
    for k in range(20):
        v = 0.6 * v[1:] + 0.5 * v[:-1]
        a = np.append(a, x[1] * np.sin(0.3 * k))
    while len(w) > 1:
        w = 0.4 * w[1:] + 0.7 * w[:-1]
    return np.sum(v) + np.sum(a * np.arange(len(a))) + w[0]


@converted(
    "a long loop whose list or tuple of numbers gets longer or shorter by as much in each trip: "
    "`v = [p * v[i + 1] + q * v[i] for i in range(j)]`, `c = [t * (b - a) for a, b in zip(c, c[1:])]`, `[a] + v`, "
    "`t = (*t, x)`; a comprehension over as many items as the number of a loop says"
)
def moving_lists(x: Any) -> Any:
    v, c, w = [x[0] * np.sin(i) for i in range(31)], [x[1] * np.cos(i) for i in range(25)], [x[0]]
    total, t = 0.0, ()
    for j in range(30, 8, -1):
        v = [0.6 * v[i + 1] + 0.5 * v[i] for i in range(j)]
        c = [0.3 * x[1] * (b - a) for a, b in zip(c, c[1:], strict=False)]  # noqa: RUF007
        w = [0.5 * v[0] for _ in range(1)] + w
        t = (*t, x[1] * w[0])
        total += sum([x[0] * i for i in range(j)])
    return np.sum(v) + c[0] + sum(w) + 0.01 * total + sum(t) * t[-1]


@converted("a slice between numbers of long loops, of one length: `x[i - 1 : i + 2]`, `a[i : i + 3, j : j + 3] += v`")
def windows(x: Any) -> Any:
    y, total = np.outer(np.repeat(x, 7), x), 0.0
    for i in range(1, 20):
        y[i - 1 : i + 2, 1:] *= 0.9
        total = total + np.prod(y[i - 1 : i + 2, 0])
    return total + np.sum(y)


@converted(
    "a slice between numbers of long loops, of a length that changes: `x[:i]`, `a[k + 1 :, k] /= v`, "
    "`x[max(0, i - 3) : i + 4]`"
)
def parts_of_axes(x: Any) -> Any:
    y = np.repeat(x, 7)
    a = np.outer(y, y) + 9 * np.eye(21)
    for k in range(20):
        a[k + 1 :, k] /= a[k, k]
        y[k] += np.tanh(np.mean(y[:k]) * y[max(0, k - 3) : k + 4].max()) if k else 0.0
    return np.sum(a) + np.sum(y)


@converted("`and`, `or`, `not`, chained comparisons, `in` a list, tuple, range, set or dict")
def logic(x: Any) -> Any:
    y = x[0] if 0 < x[0] < 1 and not x[1] > 0 else x[1]
    k = np.argmax(x)
    return y * (2.0 if k in (0, 1) or (x[2] > 3 and np.sum(np.sin(x) @ np.cos(x)) > 0) else 3.0)


converted("`assert`, `raise`")(errors)  # pytest rewrites the assertions of this file


class Journal:
    def __init__(self) -> None:
        self.history: list[Any] = []
        self.calls = 0
        self.best: Any = np.inf

    def note(self, loss: Any) -> Any:
        self.history.append(loss)
        self.calls += 1
        if loss < self.best:
            self.best = loss
        return loss


JOURNAL = Journal()


@converted("`history.append(loss)`, `calls += 1`, `self.best = loss` of what is captured")
def noted(x: Any) -> Any:
    return JOURNAL.note(np.sum(x**2))


@converted("`match` on values, and on a tuple written there: `match (x > 0, k): case (True, 1)`")
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
    "`math`, arithmetic of Python's floats ([below](#errors-of-pythons-floats)), `solve`, `inv`, `cholesky`"
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


@converted("a variable that is None or has a value: `best = None` before a loop")
def none_or_a_value(x: Any) -> Any:
    best = None
    for k in range(40):
        if np.sin(k * x[0]) > 0.3:
            best = k * x[1]
    last = x[2] if x[1] > 0 else None
    return (x[0] if best is None else best**2) + (last or x[1])


@converted("lists, dicts and attributes changed on one path, in the same structure")
def containers(x: Any) -> Any:
    values, state = [0.0, x[0]], {"n": 0}
    for v in x:
        if v > 0:
            values[0] += v
            values[1] = values[0] * v
            state["n"] += 1
    return values[0] * values[1] * state["n"]


class Pair:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


@converted(
    "a new object of a plain class on each path, with the same attributes, that nothing else holds: "
    "`return cls(a)` or `return cls(b)`"
)
def objects(x: Any) -> Any:
    pair = Pair(x[0], x) if x[1] > 0 else Pair(x[2], x[::-1])
    pair.first = pair.first * x[1]
    return pair.first * np.sum(pair.second**2)


@converted(
    "a new object of a plain class in each trip of a long loop, or of one with a traced end: "
    "`state = state.step(dt)`, `q = q * dq`, also in lists, dicts and objects"
)
def objects_of_trips(x: Any) -> Any:
    pair = Pair(x[0], x)
    for _ in range(40):
        pair = Pair(pair.first * 0.9 + x[1], np.sin(pair.second) + 0.01 * pair.first)
    while pair.first < 20.0:
        pair = Pair(pair.first + abs(x[1]) + 1.0, pair.second)
    return pair.first * np.sum(pair.second**2)


@converted("a list, tuple or dict of numbers, or of arrays of one shape, indexed by a traced integer")
def lists(x: Any) -> Any:
    rows, scales = [x, x**2, np.sin(x)], {0: 2.0, 3: x[1]}
    row = rows[np.argmin(x)] * scales[3 * int(x[0] > 0)]
    return [1.0, 3.0, 7.0][np.argmin(x)] * np.sum(row) + (x[0], x[1] ** 2)[int(x[0] > 0)]


@converted(
    "a list, tuple or dict of lists, tuples or dicts of one structure, indexed by a traced integer: "
    '`basis[i]`, `layers[k]["w"]`'
)
def picked(x: Any) -> Any:
    basis = [([1.0, 0.5], x[0]), ([0.2, 0.3], x[1]), ([0.7, 0.1], x[2])]
    layers = [{"w": x * k, "b": 0.1 * k} for k in range(3)]
    k, total = int(abs(x[2])) % 3, 0.0
    for i in range(20):
        widths, y = basis[i % 3]
        total += widths[1] * y * np.sin(i) + widths[0]
    return total + np.sum(layers[k]["w"] ** 2) * layers[k]["b"] + basis[k][1]


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


@converted("a generator in `any` or `all`")
def quantified(x: Any) -> Any:
    def positive(v: Any) -> Any:
        return v > 0

    few = any(positive(v) for v in x[::-1])
    long = all(u < v + 5 and v > -3 for u, v in zip(np.tile(x, 9), np.tile(x[::-1], 9)))  # noqa: B905
    return np.sum(x) * (2.0 if few else 3.0) + (x[0] if long else x[1])


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


@converted("what a mask selects: `y[mask] = np.sqrt(x[mask])`, `x[mask].mean()`, functions of `np.piecewise`")
def piecewise(x: Any) -> Any:
    return np.sum(np.piecewise(x, [x < 0.1, x >= 0.1], [lambda v: v * v.sum(), np.cos]) * x)


@converted("what a mask selects: `y[mask] = np.sqrt(x[mask])`, `x[mask].mean()`, functions of `np.piecewise`")
def selected(x: Any) -> Any:
    y = np.outer(x, x)
    y[y > 0.2] = np.sqrt(y[y > 0.2]) * x[1]
    return np.sum(y * np.arange(9.0).reshape(3, 3)) + x[x > -9.0].mean() * len(x[x > 0])


@converted("a list, assigned to at a traced integer")
def assigned(x: Any) -> Any:
    free, k = [x[0], x[1], 3.0], int(np.argmin(x))
    free[k] = x[2] ** 2
    free[(k + 1) % 3] += x[0]
    return free[0] * free[1] + free[2]


@converted(
    'a letter of a text by the number of a trip: `a[i - 1] == b[j - 1]`, `code[s[k]]`, `"ACGT".index(s[k])`, '
    '`s[k] in "GC"`, methods'
)
def letters(x: Any) -> Any:
    a, b, total = "GATTACAGATTACAGGCATT", "GCATGCATTACGATCCGATA", 0.0
    code = {"A": 0, "C": 1, "G": 2, "T": 0}
    for k in range(1, 20):
        total = 0.9 * total + (x[0] if a[k - 1] == b[k] else x[1]) * "ACGT".index(a[k])
        total += x[code[b[k]]] * (2.0 if a[k] in "GC" or b[k].lower() == "t" else 1.0)
    return total


@converted(
    'a text chosen by a value: `state = "high"` on one path, also in loops and attributes; `counts[state] += 1`, '
    "`weights[state]`, `match state`; a text or None, `message = None` before it and `message = "
    'f"{r} is large"` on one path'
)
def chosen_texts(x: Any) -> Any:
    state, total = "low", 0.0
    counts, sums = {"low": 0, "high": 0}, dict.fromkeys(range(4), 0.0)
    for k in range(40):
        v = np.sin(x[k % 3] * k)
        if state == "low" and v > 0.5:
            state = "high"
        elif state == "high" and v < -0.5:
            state = "low"
        counts[state] += 1
        sums[int(v + 1.0)] += v * v
        total += {"low": 0.1, "high": 1.0}[state] * v
    message = None
    if x[0] > 0.3:
        message = f"{x[0]} is large"
    return total * counts["high"] + sums[0] * sums[1] * (1.0 if message is None else 2.0)


@converted("`sorted`, `min` and `max` by a key")
def by_keys(x: Any) -> Any:
    order = sorted(range(3), key=lambda k: x[k], reverse=True)
    near = min([v * 2 for v in x], key=lambda v: abs(v - 1.0))
    return near * max(x, key=np.sin) + sum((rank + 1) * x[k] for rank, k in enumerate(order))


@converted('`print`, f-strings, `"%.3f" % x`, `str.format`, `join` and methods that give another text')
def prints(x: Any) -> Any:
    print("x is", x, f"and {x[0]:.2f}", [x[1]], end="!\n")
    print("%5.2f" % x[0], "{:.1e}".format(x[1]).upper(), ", ".join([f"{v:.3f}" for v in x]))  # noqa: UP031, UP032
    if x[0] > 0:
        print("positive")
    return np.sum(x)


@converted('random draws, clocks, `time.sleep`, `warnings.warn`, `logger.info("%d: %s", k, x)`')
def draws(x: Any) -> Any:
    rng, start = np.random.default_rng(4), time.perf_counter()
    time.sleep(0)
    LOGGER.debug("%d: %s", 1, x)
    if time.perf_counter() < start:
        warnings.warn("a clock that counts up went back", stacklevel=1)
    return np.sum(x * rng.normal(size=3))


@converted(
    "`float`, `int`, `abs`, `min`, `max`, `sum`, `round`, `any`, `all`, `sorted`, `math`, `np.allclose`, `is True`"
)
def numbers(x: Any) -> Any:
    y = float(x[0]) * int(x[2]) + abs(x[1]) + min(x) * max(x[0], x[1]) + sum(x) + round(x[2]) * x[0]
    y += 1.0 if np.allclose(x, x[0]) is True else x[1]
    y += (1.0 if any(x > 3) else 2.0) * sorted(x)[1] + (x[0] if all(x > -1) else x[1])
    return y + math.exp(x[1]) + math.atan2(x[0], x[1]) + math.floor(x[2]) * x[2] + math.hypot(*x)


@converted("`np.array([x, y])`, `asarray`, `full`, `linspace`, `np.kaiser(5, x)`, `np.float64(x)`")
def arrays(x: Any) -> Any:
    y = np.array([[x[0], 1.0], [x[1], x[2]]]) @ np.asarray([x[2], 2.0]) + np.full(2, x[0])
    return y @ np.linspace(x[0], 1.0, 2) * np.float64(x[1])


@converted("`np.zeros(n)` or what is computed from constants, as `np.sin(np.linspace(0, 3, 9))`, then `a[i] = x`")
def filled(x: Any) -> Any:
    y, z = np.zeros(3), np.eye(3)
    w = np.sin(np.linspace(0, 3, 9))
    w[1] = x[2]
    for i in range(3):
        y[i] = x[i] * i
        z[i, 0] += x[i]
    return y @ z @ y * np.sum(w)


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

    def __float__(self) -> float:
        return float(self.size)

    def __bool__(self) -> bool:
        return bool(self.x != self.y)


@dataclass
class Scaled:
    value: Any
    scale: float = 2.0

    def __post_init__(self) -> None:
        if self.value > 0.4:
            self.value = self.value * self.scale


@converted(
    "properties, operators and `__post_init__` of classes, what `float(p)`, `complex(p)`, `math.sin(p)`, `bool(p)` and "
    "`if p:` ask for"
)
def implicit(x: Any) -> Any:
    total = Speed(x[0], x[1]) + Speed(x[1], x[2])
    speed = Speed(x[1], x[2])
    last = float(speed) * math.sin(speed) if speed else 0.0
    return total.size * Scaled(x[0]).value + Scaled(x[1], x[2]).value + last


@converted(
    "`np.vectorize`, `np.nditer`, `np.ndenumerate`, `np.ndindex`; what numba has compiled (`njit`, `vectorize`); "
    "functions of `autograd.numpy`; `np.ndarray.sum(x)`"
)
def elements(x: Any) -> Any:
    total = np.sum(np.vectorize(lambda v, w: v * w if v > w else w)(np.outer(x, x), x[::-1]) * np.arange(3.0))
    for v in np.nditer(np.outer(x, x[:2])):
        total = total + np.sin(v)
    for (i,), v in np.ndenumerate(x):
        total = total + i * v * v
    for i, j in np.ndindex(2, 3):
        total = total + x[i] * x[j]
    return total * np.ndarray.sum(x)


class Cell:
    """An object that gives NumPy an array."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.rows


@converted(
    "an object with `__array__` in a call of NumPy's, beside an array or assigned to a part of one: "
    "`np.linalg.det(cell)`, `a @ cell`"
)
def array_likes(x: Any) -> Any:
    cell = Cell(np.outer(x, x) + np.eye(3))
    rows = np.zeros((2, 3, 3))
    rows[0] = cell
    return np.linalg.det(cell) + np.sum(x @ cell) + np.sum(rows * np.arange(3.0))


@converted(
    CALLED := "closures, lambdas, methods, `super()`, partials, decorators, also by `functools.wraps`, `lru_cache`, "
    "`singledispatch`, `singledispatchmethod`, `total_ordering` and `contextlib.contextmanager`, functions of "
    "`itertools`, `operator`, `heapq` and `statistics`, recursion, generators"
)
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

    def twice(f: Any) -> Any:
        @functools.wraps(f)
        def wrapper(y: Any) -> Any:
            return f(y) + f(y)

        return wrapper

    @contextlib.contextmanager
    def doubled(y: Any) -> Iterator[Any]:
        yield 2 * y

    @functools.lru_cache
    def weight(n: int) -> float:
        return 0.5**n

    @twice
    def pick(y: Any) -> Any:
        with doubled(y) as z:
            return z**2 * weight(2) if y > 0 else y

    return closure(x[0]) + closure(x[1]) + pick(x[2]) + sum(pick(p) for p in parts(3)) + halved(x[2] * 10, 4)


@functools.singledispatch
def weighed(y: Any, k: int) -> Any:
    return y * k


@weighed.register
def weighed_list(y: list, k: int) -> Any:  # type: ignore[type-arg]
    return sum(y) * k**2


@functools.total_ordering
class Ranked:
    def __init__(self, rank: float) -> None:
        self.rank = rank

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranked) and self.rank == other.rank

    def __lt__(self, other: Ranked) -> bool:
        return self.rank < other.rank


@converted(CALLED)
def of_the_standard_library(x: Any) -> Any:
    total = weighed(x[0], 2) + weighed([x[1], x[2]], 3) + statistics.mean([x[0], x[1] ** 2])
    total = total + (x[1] if Ranked(x[0]) >= Ranked(x[1]) else 2 * x[1])
    total = total + sum(heapq.nlargest(2, [x[0] ** 2, x[1], x[2]])) + operator.methodcaller("sum")(x)
    return total + sum(k * y for k, y in enumerate(itertools.chain.from_iterable([[x[0]], [x[1], x[2]]])))


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
    assert re.search(r"The loop of 40 trips at test_page\.py:\d+: unrolled, a list is read or changed as a whole", text)


# --- run as they are -------------------------------------------------------------------------------------------------
NOT_CONVERTED = {
    "one without source": without_source(),
    "an asynchronous one": asynchronous,
    "one that calls `locals()`": namespace,
    "a jump in a `finally`": jump_in_finally(),
}


@on_the_page
def test_functions_that_are_run_as_they_are() -> None:
    rows = table("Run as they are")
    assert list(rows) == list(NOT_CONVERTED)
    for row, function in NOT_CONVERTED.items():
        with pytest.raises(Unconvertible, match=re.escape(rows[row])):
            convert(function)  # type: ignore[arg-type]
