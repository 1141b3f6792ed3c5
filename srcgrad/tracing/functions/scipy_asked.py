"""SciPy's solvers with functions of the user's, on numbers: when the program runs, or in a trace that knows them.

A solver that is C, or that goes where values say, is no part of a program. The functions that it is given become
programs of their own, whose further parameters are the traced values that they read; the program around calls SciPy
with them (`hosts.ask`). Where that is not possible, for a function that prints or draws or whose paths a value decides,
the function around it is traced again at each call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import numpy as np
from scipy.optimize import OptimizeResult

from srcgrad.compiler import Runner, backend_name, compiled, literally
from srcgrad.tracing.conversion.calls import call
from srcgrad.tracing.conversion.texts import HostSite, Made, Text
from srcgrad.tracing.function import StaticLeaf, leaf_spec, trace_function
from srcgrad.tracing.functions.registry import as_array
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.hosts import FunctionSite, MethodSite, ask
from srcgrad.tracing.trace import NeedsConcrete, current_trace
from srcgrad.tracing.tracer import Tracer, contains_tracer, from_value

Function = Callable[..., Any]

# --- in a trace that knows its numbers -------------------------------------------------------------------------------


def numbers(x: Any) -> Any:
    """What traced values hold, in tuples, lists and dicts too."""
    if isinstance(x, Tracer):
        return np.array(x.number())[()] if not x.ndim else np.array(x.number())
    if type(x) in (tuple, list):
        return type(x)(map(numbers, x))
    return {key: numbers(value) for key, value in x.items()} if type(x) is dict else x


def apart(work: Callable[[], None]) -> None:
    """Do something in a trace of its own, of which nothing is kept."""
    trace_function(lambda _: work(), [], [], [], name="numbers", concrete=current_trace().concrete, numbers=[])


def on_numbers(f: Any) -> Any:
    """A function for SciPy, which gives it numbers and wants some; what is none as it is."""
    if not callable(f):
        return f

    def function(*places: Any) -> Any:
        found: list[Any] = []
        apart(lambda: found.append(numbers(call(f, *map(np.copy, places)))))
        return found[0]

    return function


def is_traced(f: Any, *places: Any) -> bool:
    """Whether what a function gives depends on traced values."""
    found: list[bool] = []

    def work() -> None:
        given = call(f, *places)
        parts = given if type(given) in (tuple, list) else [given]
        found.append(any(contains_tracer(part) for part in parts))

    apart(work)
    return found[0]


def require_numbers(name: str, why: str) -> None:
    """Have the function traced again at each call, with its numbers known.

    Raises:
        NeedsConcrete: they are not.
    """
    if not current_trace().concrete:
        raise NeedsConcrete(
            f"scipy.optimize.{name} runs on numbers, {why}", hint="call it outside of vmap and of jit(strict=True)"
        )


# --- in a program ----------------------------------------------------------------------------------------------------


class Asked:
    """A function of the user's as a program, whose first parameters are the places that SciPy asks for."""

    def __init__(self, f: Function, places: Sequence[Any], name: str) -> None:
        nothing = [None] * len(places)
        traced = trace_function(
            lambda given: call(f, *given), places, [leaf_spec(place) for place in places], nothing,
            name=f"asked_by_{name}", concrete=False, numbers=nothing,
        )  # fmt: skip
        self.sites = tuple(current_trace().sites)
        for operation in traced.function.walk():
            if operation.op.name == "host_call" and not runs_quietly(self.sites[operation.attrs["site"]]):
                require_numbers(name, "and what it is given does more than to compute")
        self.traced: Final = traced
        self.types: Final = [param.type for param in traced.function.params]
        self.run: Any = None

    def operands(self) -> list[Any]:
        """What it reads besides places, in the trace around: not kept, for the program outlives that."""
        return [from_value(value) for value in self.traced.lifted]

    def with_values(self, values: Sequence[Any]) -> Function:
        """The function of places alone, for these numbers of what it reads besides."""
        if self.run is None:
            self.run = self.compiled()
        run, outputs, tree = self.run, self.traced.outputs, self.traced.out_tree

        def function(*places: Any) -> Any:
            given = [np.array(x, type.dtype)[()] for x, type in zip(places, self.types, strict=False)]
            for x, type in zip(given, self.types, strict=False):
                if x.shape != type.shape:
                    raise ValueError(f"a place of the shape {x.shape} where {type.shape} was expected")
            found = run([*given, *values])
            return tree.unflatten([x.given() if isinstance(x, StaticLeaf) else found[x] for x in outputs])

        return function

    def compiled(self) -> Runner:
        """By NumPy, so that SciPy goes where it goes with the user's function; what has loops in machine code."""
        function, backend = self.traced.function, backend_name(None)
        if backend == "llvm" and any(operation.regions for operation in function.operations):
            return compiled(function, backend, sites=self.sites)
        return literally(function, self.sites)


def runs_quietly(site: Any) -> bool:
    """Whether what a program calls does nothing besides computing, or raises an error."""
    return not isinstance(site, (HostSite, MethodSite, FunctionSite))


class Asking:
    """The callable of the operation that runs a solver."""

    def __init__(self, name: str, run: Function, functions: Sequence[Any], count: int, like: Mapping[str, Any]) -> None:
        """``run`` takes the functions, then ``count`` numbers, and gives a mapping with the keys of ``like``."""
        self.name = name
        self.run, self.functions, self.count, self.like = run, functions, count, like
        self.said = Said()

    def __call__(self, *values: Any) -> Any:
        rest, functions = list(values[self.count :]), []
        for f in self.functions:
            if isinstance(f, Asked):
                count = len(f.traced.lifted)
                own, rest = rest[:count], rest[count:]
                functions.append(f.with_values(own))
            else:
                functions.append(f)
        found = self.run(*functions, *values[: self.count])
        leaves = tuple(self.leaf(found[key], like) for key, like in self.like.items())
        return leaves if len(leaves) > 1 else leaves[0]

    def leaf(self, x: Any, like: Any) -> Any:
        return self.said.number(x) if isinstance(like, str) else np.asarray(x, np.asarray(like).dtype)


class Said:
    """What a solver says, by numbers that a program works with; the texts that were said last are remembered."""

    KEPT: Final = 4096

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.numbers: dict[str, int] = {}
        self.next = 0

    def number(self, text: str) -> np.int64:
        found = self.numbers.get(text)
        if found is None:
            found, self.next = self.next, self.next + 1
            self.texts[found], self.numbers[text] = text, found
            if found >= self.KEPT:
                self.numbers.pop(self.texts.pop(found - self.KEPT))
        return np.int64(found)

    def text(self, number: Any) -> str:
        return self.texts[int(number)]


class Solution(OptimizeResult):
    """What a program knows of a solution: by names that are there the numbers, of others nothing."""

    __srcgrad_unfinished__ = True

    def __missing__(self, key: Any) -> NoReturn:
        raise NeedsConcrete(f"{key!r} of what SciPy's solver gives is known only when the program runs")

    def _all(self, *args: Any) -> NoReturn:
        raise NeedsConcrete("all that SciPy's solver gives is known only when the program runs")

    __iter__ = __len__ = __repr__ = __str__ = __eq__ = __dir__ = _all
    keys = values = items = copy = _all
    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(key) or self.__missing__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key]


@functools.cache
def attached() -> Function:
    """The function of two arguments that has the value of the first and the derivatives of the second."""
    from srcgrad.custom import custom_jvp  # which is written with the modules of tracing

    found = custom_jvp(lambda known, moving: known)
    found.defjvp(lambda primals, tangents: (found(*primals), tangents[1]))
    return found


def moving(known: Any, dependent: Any) -> Any:
    """A number that is known, with the derivatives of one that is equal to it and need not be computed for its value.

    So a solution where its equations say nothing has a value still.
    """
    return attached()(held(known), dependent)


def fields(found: Any) -> dict[str, Any]:
    """What is known of a solution, by name."""
    return dict(dict.items(found))


def solution(
    name: str, run: Function, functions: Sequence[tuple[Any, Sequence[Any]]], given: Sequence[Any],
    like: Mapping[str, Any] | None,
) -> Any:  # fmt: skip
    """What a solver finds: ``run`` takes the functions, each of which comes with places like those that it is asked
    for, and the numbers of ``given``. In a program that has the types of ``like``, texts too; None: there is none.
    """
    trace = current_trace()
    if trace.concrete:
        return run(*[on_numbers(f) for f, _ in functions], *numbers(list(given)))
    if like is None or any(around.attempts for around in trace.around()):
        require_numbers(name, "which are known only when the program runs")
    assert like is not None
    asked = [Asked(f, places, name) if callable(f) else f for f, places in functions]
    operands = [x for f in asked if isinstance(f, Asked) for x in f.operands()]
    site = Asking(f"scipy.optimize.{name}", run, asked, len(given), like)
    kinds = tuple(0 if isinstance(x, str) else x for x in like.values())
    kinds = tuple(x if isinstance(x, np.ndarray) else np.asarray(x)[()] for x in kinds)
    found = ask(site, [*map(as_array, given), *operands], kinds, site.name)
    texts = [key for key, value in like.items() if isinstance(value, str)]
    made = dict(zip(like, found, strict=True))
    found = Solution()
    found.update({**made, **{key: Text([Made(site.said.text, (made[key],), {})]) for key in texts}})
    return found
