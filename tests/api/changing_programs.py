"""Small programs that change what they are given: each is run as it is and compiled, and must leave the same behind.

A program is a function and what makes its arguments.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {}
RETRACED = {"of a set", "of an object without a key", "a new shape", "a cell of the user's own"}
"""Those that are run as they are, with a warning."""


def numbers(*shape: int) -> Any:
    return np.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape)


def program(name: str, *make: Callable[[], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[name] = f, lambda: tuple([one() for one in make])
        return f

    return keep


def three() -> Any:
    return numbers(3)


@dataclasses.dataclass
class Record:
    w: Any
    b: float
    n: int = 0

    def scaled(self, by: Any) -> Record:
        self.w = self.w * by
        return self


@dataclasses.dataclass(slots=True)
class Slotted:
    w: Any
    t: float


class Plain:
    def __init__(self) -> None:
        self.w = three()


Pair = namedtuple("Pair", "a items")


# --- dicts ------------------------------------------------------------------------------------------------------
@program("a new item", lambda: {"a": three()}, three)
def new_item(d: Any, x: Any) -> Any:
    d["z"] = x * 2.0
    return x.sum()


@program("an item rebound", lambda: {"w": three(), "b": 1.0}, three)
def rebound(d: Any, g: Any) -> None:
    d["w"] = d["w"] - 0.1 * g
    d["b"] -= 0.1 * g.sum()


@program("every item rebound", lambda: {"a": numbers(2), "c": 1.0}, lambda: {"a": numbers(2), "c": 2.0})
def descent(params: Any, grads: Any) -> None:
    for key in params:
        params[key] = params[key] - 0.1 * grads[key]


@program("pop, setdefault, update, del", lambda: {"a": three(), "b": 3}, three)
def dict_methods(d: Any, x: Any) -> Any:
    y = d.pop("a", 0.0) * x
    d.setdefault("a", y)
    d.update(c=y * 2)
    del d["b"]
    d["b"] = 4
    return y


@program("another order", lambda: {"a": three(), "b": numbers(2)}, three)
def another_order(d: Any, x: Any) -> None:
    d["a"] = d.pop("a")


@program("what is no array", lambda: {"flag": False, "t": np.float32(1.0)}, three)
def not_arrays(d: Any, x: Any) -> None:
    d["flag"], d["name"], d["none"], d["f"] = True, "n", None, np.sin
    d["t"] += np.float32(0.5)
    d["t64"], d["any"], d["where"] = x.sum(), x.sum() > 0, np.argmax(x)


@program("a dict in a dict", lambda: {"inner": {"l": [numbers(2)], "m": 1}}, three)
def nested(d: Any, x: Any) -> None:
    d["inner"]["l"].append(x + 1.0)
    d["inner"]["k"] = {"q": x, "r": [x * 2.0, (x, 3)]}


@program("an OrderedDict", lambda: OrderedDict(a=numbers(2), b=three()), three)
def ordered(d: Any, x: Any) -> None:
    d["z"] = x
    d.move_to_end("a")
    d["b"] += 1


@program("a defaultdict", lambda: defaultdict(list, a=[numbers(2)]), three)
def with_default(d: Any, x: Any) -> None:
    d["z"].append(x)
    d["n"]


@program("itself in itself", lambda: {"a": three()}, three)
def cyclic(d: Any, x: Any) -> None:
    d["a"] = [d, x]
    d.clear()


@program("a counter", lambda: {"t": 0, "m": three()}, three)
def counter(d: Any, x: Any) -> None:
    d["t"] += 1
    d["m"] = d["m"] * 0.9 + x / d["t"]


# --- lists ------------------------------------------------------------------------------------------------------
@program("append", lambda: [numbers(2)], three)
def append(items: Any, x: Any) -> Any:
    y = x * 2.0
    items.append(y)
    items.append(x)
    return y


@program("an item assigned", lambda: [three(), 2.0], three)
def assign(items: Any, x: Any) -> None:
    items[0] = x * items[0]
    items[-1] = 5.0


@program("items exchanged, one changed in place", lambda: [three(), 2.0 * three()], three)
def exchange(items: Any, x: Any) -> None:
    items[0], items[1] = items[1], items[0]
    items[0] *= x


@program("pop, insert, reverse", lambda: [three() * k for k in range(20)], three)
def list_methods(items: Any, x: Any) -> Any:
    y = items.pop()
    items.insert(0, y * x)
    del items[1]
    items.reverse()
    return y


@program("clear and extend", lambda: [three()], three)
def refill(items: Any, x: Any) -> None:
    items.clear()
    items.extend([x, x + 1.0, None, "a", 3])


@program("filled in a short loop", lambda: [0.0] * 3, three)
def short_loop(items: Any, x: Any) -> None:
    for k in range(len(items)):
        items[k] = x[k] * k


@program("filled in a long loop", lambda: [0.0] * 200, three)
def long_loop(items: Any, x: Any) -> None:
    for k in range(len(items)):
        items[k] = x[k % 3] * k


@program("grown in a long loop", list, three)
def grown(items: Any, x: Any) -> None:
    for k in range(100):
        items.append(x * k)


@program("carried in a long loop", lambda: {"u": three(), "t": 0.0}, three)
def carried(d: Any, x: Any) -> None:
    for _ in range(100):
        d["u"] = d["u"] + 0.01 * (x - d["u"])
        d["t"] += 0.01


@program("through *args and **kwargs", three, lambda: [1.0])
def star(x: Any, *rest: Any) -> Any:
    def inner(**given: Any) -> None:
        given["items"].append(x)
        given["x"] = x

    inner(items=rest[0])
    return len(rest[0])


@program("a namedtuple's list", lambda: Pair(three(), []), three)
def in_a_namedtuple(pair: Any, x: Any) -> None:
    pair.items.append(x)
    pair.a[:] = x


# --- objects ----------------------------------------------------------------------------------------------------
@program("attributes", lambda: Record(three(), 1.0), three)
def attributes(p: Any, x: Any) -> None:
    p.w = p.w - 0.1 * x
    p.b += x.sum()
    p.n += 1
    p.extra = x * 2.0


@program("a method that changes its object", lambda: Record(three(), 1.0), three)
def by_method(p: Any, x: Any) -> None:
    p.scaled(x).scaled(2.0)


@program("attributes in slots", lambda: Slotted(three(), 1.0), three)
def slots(p: Any, x: Any) -> None:
    p.w = x * 2.0
    p.t += 1


@program("an attribute that is no field", lambda: with_extra(), three)
def extra(p: Any, x: Any) -> Any:
    p.w = p.w + 1.0
    return x * p.extra


def with_extra() -> Record:
    found = Record(three(), 1.0)
    found.extra = 3.0  # type: ignore[attr-defined]
    return found


@program("of an object without a key", Plain, three)
def plain_object(p: Any, x: Any) -> Any:
    p.y = x * 2.0
    p.w = p.w + x
    return p.y


@program("of a set", lambda: {1, 2}, three)
def of_a_set(s: Any, x: Any) -> Any:
    s.add(3)
    return x + len(s)


@program("a cell of the user's own", dict, three)
def function_kept(d: Any, x: Any) -> None:
    d["f"] = lambda: x


# --- one memory in several places ---------------------------------------------------------------------------------
@program("a view of an argument is kept", dict, three)
def view_of_argument(d: Any, x: Any) -> None:
    d["tail"], d["x"] = x[1:], x
    x *= 2.0


@program("views of one new array are kept", dict, three)
def views_of_new(d: Any, x: Any) -> None:
    y = x * 2.0
    d["y"], d["head"], d["again"] = y, y[:2], y
    y[1] = 7.0


@program("one view is kept twice", lambda: {"a": three()}, list)
def view_twice(d: Any, items: Any) -> None:
    d["v"] = d["a"][:2]
    items.append(d["v"])
    d["a"] += 1.0


@program("several views of one kind are kept", list, three)
def equal_views(items: Any, x: Any) -> None:
    y = x * 2.0
    for _ in range(20):
        items.append(y[1:])
    items.append(y[:])
    items.append(y.reshape(-1))


@program("an array without axes is kept by a loop", list, lambda: np.array(1.0), three)
def kept_by_a_loop(items: Any, z: Any, x: Any) -> None:
    for _ in range(40):
        items.append(z)
    items.append(x[:])


@program("one array or another is kept", lambda: {"w": numbers(3)}, three)
def one_or_another(d: Any, x: Any) -> None:
    d["a"] = x if x.sum() > 100.0 else d["w"]
    x += 20.0


@program("grown on one path", list, three)
def grown_on_a_path(items: Any, x: Any) -> None:
    if x.sum() > 100.0:
        items.append(x)
    x += 20.0


@program("rebound on one path", lambda: {"a": three()}, three)
def rebound_on_a_path(d: Any, x: Any) -> None:
    if x.sum() > 100.0:
        d["a"] = x * 2.0
    x += 20.0


# --- arrays -----------------------------------------------------------------------------------------------------
@program("two arrays", lambda: numbers(10), lambda: numbers(10) ** 2)
def two_arrays(u: Any, v: Any) -> None:
    u[1:-1] += 0.1 * (v[2:] - v[:-2])
    v *= 0.9


@program("an array of no axes, on one path", lambda: np.array(1.0), three)
def zero_dimensional(c: Any, x: Any) -> Any:
    if x.sum() > 0.0:
        c += 1
    return x * c


@program("an array of no axes or a number", lambda: np.array(1.0), three)
def array_or_number(c: Any, x: Any) -> Any:
    x -= 4.0
    if x.sum() > -15.0:
        c = c + 1.0
    c += 1.0
    return c * 1.0


@program("an array of no axes or a number, in a loop", lambda: np.array(1.0), three)
def array_or_number_in_a_loop(c: Any, x: Any) -> Any:
    x -= 4.0
    while c < x.sum() + 16.0:
        c = c * 2.0
    c -= 0.5
    return c * 1.0


@program("strided", lambda: numbers(4, 4)[::2, ::-1])
def strided(x: Any) -> Any:
    x *= 2.0
    return x.sum()


@program("in Fortran's order", lambda: np.asfortranarray(numbers(3, 4)))
def fortran(x: Any) -> None:
    x *= 2.0
    x[0, 1] = 7.0


@program("big-endian", lambda: np.arange(3, dtype=">f8"))
def big_endian(x: Any) -> None:
    x *= 2.0


@program("a new shape", lambda: numbers(4))
def new_shape(x: Any) -> None:
    x.shape = (2, 2)
    x[0, 1] = 8.0


@program("overlapping itself", lambda: np.lib.stride_tricks.as_strided(numbers(6), (2, 4), (16, 8)))
def overlapping_itself(x: Any) -> None:
    x += 1.0


# --- errors on the way ------------------------------------------------------------------------------------------
def read_only() -> Any:
    x = three()
    x.flags.writeable = False
    return x


@program("read-only", three, read_only)
def write_read_only(y: Any, x: Any) -> None:
    y += 1.0
    x += 1.0


@program("raised by a value", three, list)
def raised_by_value(x: Any, items: Any) -> None:
    x += 1.0
    items.append(x * 2.0)
    if x.sum() > 0.0:
        raise ValueError("no")
    x += 1.0


@program("raised in any case", three, dict)
def raised_always(x: Any, d: Any) -> None:
    x += 1.0
    d["k"] = x * 2.0
    raise ValueError("no")


@program("raised by NumPy", three, lambda: np.zeros((3, 3)))
def raised_by_numpy(x: Any, m: Any) -> None:
    x += 1.0
    x[:] = np.linalg.solve(m, x)


@program("an index out of bounds", three, lambda: np.array([1, 7]))
def out_of_bounds(x: Any, i: Any) -> None:
    x += 1.0
    x[i] = 5.0
