"""Functions on plain Python values: converted, they must do what Python does, step for step."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Log = list[Any]
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
SCALE = 3


def case(*args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run the function below on these arguments."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, args))
        return function

    return register


@case([3, 1, 2], [])
def branches_in_loops(values: Any, log: Log) -> Any:
    total = 0
    for k, value in enumerate(values):
        if value == 1:
            log.append(("skip", k))
            continue
        elif value > 2:
            log.append("big")
        else:
            log.append("other")
        total += value
    else:
        log.append("else")
    return total


@case([1, 2, -1, 3, 2, 5])
def jumps_from_inner_blocks(values: Any) -> Any:
    log: Log = []
    for value in values:
        if value > 0:
            if value == 2:
                continue
            log.append(value)
            if value == 5:
                break
        else:
            log.append("negative")
        log.append("rest")
    else:
        log.append("else")
    return log


@case([])
def loop_with_break(log: Log) -> Any:
    for k in range(10):
        for j in range(10):
            if j == 2:
                break
            if j + k == 4:
                log.append("inner")
                continue
            log.append((k, j))
        else:
            log.append("never")
        if k > 3:
            break
    else:
        log.append("never either")
    return k, j


@case([])
def while_else(log: Log) -> Any:
    n = 0
    while n < 3:
        n += 1
        log.append(n)
    else:
        log.append("done")
    while True:
        n -= 1
        if n < 0:
            break
        if n == 1:
            continue
        log.append(-n)
    else:
        log.append("never")
    return n


@case(5)
def walrus_loop(n: int) -> Any:
    found = []
    while (n := n - 1) > 0 and n != 2:
        found.append(n)
    return found, n


@case("b")
@case("z")
def walrus_in_membership(key: str) -> Any:
    log = []
    for _ in range(2):
        if key not in (table := {"a": 1, "b": 2}):
            raise KeyError(f"{key} is none of {sorted(table)}")
        log.append(table[key])
    return log, table


@case(4)
def early_returns(n: int) -> Any:
    if n < 0:
        return "negative"
    for k in range(10):
        while True:
            k += 1
            if k > n:
                return "inside", k
            if k == 3:
                break
    return "never"


@case(0)
@case(1)
@case(2)
def returns_in_try(n: int) -> Any:
    log = []

    def inner() -> Any:
        for k in range(3):
            try:
                if k == n:
                    return k
                if k == 1:
                    raise KeyError(k)
                log.append(k)
            except KeyError as error:
                log.append(error.args)
                if n == 2:
                    continue
                return "handled"
            else:
                log.append("else")
            finally:
                log.append("finally")
        return "end"

    return inner(), log


@case()
def unbound_variables() -> Any:
    found = []
    for flag in (False, True):
        if flag:
            late = 1
        try:
            found.append(late)
        except NameError:
            found.append("unbound")
    del late
    try:
        late  # noqa: B018
    except NameError:
        found.append("deleted")
    return found


@case()
def closures_and_nonlocal() -> Any:
    count = 0
    adders = []
    for k in range(3):

        def add(step: int = k) -> int:
            nonlocal count
            if step:
                count += step
            return count

        adders.append(add)
    return [add() for add in adders], [add(10) for add in adders], count


@case()
def late_binding() -> Any:
    functions = []
    for k in range(3):
        functions.append(lambda: k)  # noqa: B023
    return [function() for function in functions]


@case(3)
def recursion(n: int) -> Any:
    return 1 if n < 1 else n * recursion(n - 1)


@case()
def short_circuits() -> Any:
    log: Log = []

    def said(value: Any) -> Any:
        log.append(value)
        return value

    results = [
        said(0) and said(1),
        said(1) and said(2) and said(""),
        said("") or said([]) or said(5),
        not said(0),
        said(1) < said(2) < said(2) < said(9),
        said(3) if said(0) else said(4),
        said(2) in [said(1), said(2)],
        said(1) not in (2, 3),
        said(1) is not None and said(None) is None,
    ]
    return results, log


@case()
def comprehensions() -> Any:
    table = [[k * j for j in range(k) if j % 2] for k in range(5)]
    mapping = {k: v for k, v in zip("abc", range(3), strict=True) if v != 1}
    unique = {k % 3 for k in range(7)}
    last = [y := k * k for k in range(4)]
    return table, mapping, sorted(unique), last, y, sum(k for k in range(4) if k), any(k > 2 for k in range(4))


@case(("point", 1, 2))
@case({"kind": "circle", "r": 2})
@case(7)
@case([1, 2, 3])
@case(None)
def matching(thing: Any) -> Any:
    for _ in range(2):
        match thing:
            case ("point", x, y) if x != y:
                return x, y
            case {"kind": kind, **rest}:
                return kind, rest
            case int() as n:
                break
            case [first, *others]:
                return first, others
            case _:
                continue
    else:
        return "none"
    return n


@case(2)
@case(3)
@case("x")
def matching_values(thing: Any) -> Any:
    match thing:
        case 1 | 2:
            found = "small"
        case 3:
            found = "three"
        case _:
            found = "other"
    return found


@contextlib.contextmanager
def logged(log: Log, name: str) -> Iterator[str]:
    log.append(f"in {name}")
    try:
        yield name
    finally:
        log.append(f"out {name}")


@case()
def contexts() -> Any:
    log: Log = []

    def inner() -> Any:
        for k in range(3):
            with logged(log, "a") as a, logged(log, "b"):
                if k == 1:
                    return a
                with contextlib.suppress(ValueError):
                    if k == 0:
                        raise ValueError
                    log.append("not reached")
                log.append("after")

    return inner(), log


class Base:
    def __init__(self, x: Any) -> None:
        self.x = x
        self.__hidden = x + 1

    def value(self, *more: Any) -> Any:
        if more:
            return self.__hidden + sum(more)
        return self.x

    @property
    def twice(self) -> Any:
        return self.x * 2

    @classmethod
    def make(cls, x: Any) -> Any:
        return cls(x)

    @staticmethod
    def helper(x: Any) -> Any:
        return x + 100 if x else -1


class Derived(Base):
    def value(self, *more: Any) -> Any:
        for _ in range(1):
            if more:
                inside = super().value(*more)
        return inside if more else super().value() + 1000

    def __call__(self, y: Any, *, z: Any = 1) -> Any:
        return [self.x + k for k in range(y) if k != z]


@case()
def classes() -> Any:
    thing = Derived.make(3)
    return thing.value(), thing.value(1, 2), thing(4), thing(4, z=0), thing.twice, thing.helper(0), Base.helper(1)


@case()
def local_class() -> Any:
    class Local:
        factor = 2

        def __init__(self, x: Any) -> None:
            self.x = x if x > 0 else -x

        def scaled(self) -> Any:
            return [self.x * self.factor for _ in range(2)]

    return Local(-3).scaled()


def counted(f: Any) -> Any:
    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        wrapper.calls = getattr(wrapper, "calls", 0) + 1  # type: ignore[attr-defined]
        return f(*args, **kwargs) if kwargs else (f(*args), "plain")

    return wrapper


@counted
def decorated(x: Any, y: Any = SCALE) -> Any:
    return x if x > y else y


@case()
def decorators_and_partials() -> Any:
    bound = functools.partial(decorated, y=1)
    return decorated(1), decorated(5), decorated(2, y=9), bound(7), functools.partial(max, 3)(2)


def keyworded(a: Any, /, b: Any = 2, *rest: Any, c: Any, d: Any = 4, **others: Any) -> Any:
    return (a, b, rest, c, d, others) if others else (a, b, rest, c, d)


@case()
def argument_kinds() -> Any:
    options = {"c": 1, "e": 5}
    return keyworded(1, c=0), keyworded(1, *[2, 3], **options), keyworded(1, 2, 3, c=9, d=8)


def countdown(n: int) -> Iterator[int]:
    while n > 0:
        got = yield n
        if got:
            n = got
        n -= 1
    return "end"  # type: ignore[return-value]


def delegating(n: int) -> Iterator[Any]:
    result = yield from countdown(n)
    yield result


@case(3)
def generators(n: int) -> Any:
    first = countdown(n)
    return list(delegating(n)), next(first), first.send(10), next(first), sum(x for x in countdown(4))  # type: ignore[attr-defined]


@case(2)
@case(0)
def errors_pass(n: int) -> Any:
    def inner(k: int) -> Any:
        if k == 0:
            raise ValueError("zero") from KeyError("cause")
        assert k < 2, f"{k} is too large"
        return k

    found = []
    for k in range(n + 1):
        try:
            found.append(inner(k))
        except (ValueError, AssertionError) as error:
            found.append((type(error).__name__, str(error), repr(error.__cause__)))
    return found


@case()
def targets() -> Any:
    data = {"a": [1, 2, 3]}
    data["a"][0], (data["b"], *rest) = data["a"][1], (7, 8, 9)
    data["a"][1:] = [5]
    first, *_ = (k for k in range(3))
    x = y = 4
    x += y
    del data["b"]
    for data["c"], k in [(1, 2), (3, 4)]:
        x += k
    return data, rest, first, x


@case(2.5, 3)
def numbers(x: float, n: int) -> Any:
    return (
        float(n), int(x), complex(x, n), bool(n), round(x), round(x, 1), abs(-x), min(x, n), max([x, n, 7]),
        max("ab", "b", key=len), min([], default=4), sum([1, 2], 10), sorted([3, 1, 2], reverse=True),
        any([0, n]), all([]), list(range(n, 0, -1)), math.sqrt(x), math.floor(x), math.log(x, 2), math.hypot(3, 4),
        isinstance(x, float), isinstance(n, (str, int)), type(x).__name__, type("Made", (), {"a": 1}).a,
        list(zip([1], [2], strict=True)), list(enumerate("ab", 1)), list(reversed([1, 2])), str(x), repr(n),
        f"{x:>8.2f}|{n!r}|{n:0{n}d}", format(x, ".1f"), divmod(7, n), pow(2, n, 5), list(map(float, [1])),
        list(filter(None, [0, 1])), functools.reduce(lambda a, b: a * 2 if b else a, [1, 0, 1]),
    )  # fmt: skip


@case(np.arange(6.0).reshape(2, 3))
def arrays(x: Any) -> Any:
    total = 0.0
    for row in x:
        for value in row[::-1]:
            if value > 1 and not value == 3:  # noqa: SIM201
                total += value
    return total, x[1, 1:], x[..., None].shape, x.T[0], x.dot([1, 2, 3]), np.float32(total), x[x > 2]


@case("a")
def annotated(x: str) -> Any:
    count: int = 0
    name: str
    for _ in x:
        count += 1
        name = x
    return count, name


@case()
def deep_nesting() -> Any:
    def outer(n: int) -> Any:
        def middle(m: int) -> Any:
            if m:
                return (lambda k: k + n + m if k else -1)(m)
            return [inner(k) for k in range(n) if inner(k)]

        def inner(k: int) -> Any:
            while k > 1:
                k -= n
            return k

        return middle(0), middle(2)

    return outer(3)


@case()
def global_name() -> Any:
    return SCALE * 2 if SCALE else None


@case()
def shadowed_builtin() -> Any:
    def print(*args: Any) -> Any:
        return args

    range = [1, 2]
    return print("a"), [k for k in range]  # noqa: C416
