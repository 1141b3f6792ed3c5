"""Random draws. With traced parameters: a standard draw, moved and scaled, so that the draw has a derivative.

The pathwise derivative (reparametrisation; Kingma and Welling 2014, arXiv:1312.6114): a normal number is
``loc + scale * z`` with z drawn once, and so on. The standard number comes from the generator of the call, by the same
draws, so that the values are NumPy's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.hosts import HostObject, call_method, draws_by_numpy
from srcgrad.tracing.trace import Refused
from srcgrad.tracing.tracer import Tracer, as_tracer, contains_tracer
from srcgrad.tracing.unasked import attribute


class Family(NamedTuple):
    """A family of distributions: its parameters with their defaults, a standard draw, and what makes it one of them."""

    parameters: tuple[tuple[str, float | None], ...]
    standard: Callable[[Any, Any], Any]
    """``standard(generator, size)``"""
    moved: Callable[..., Any]
    """``moved(z, *parameters)``"""


LOC_SCALE: Final = (("loc", 0.0), ("scale", 1.0))
SHAPE: Final = (("a", None),)


def located(name: str) -> Family:
    """A family of location and scale, whose standard member is drawn with 0 and 1."""
    return Family(
        LOC_SCALE, lambda rng, size: getattr(rng, name)(0.0, 1.0, size), lambda z, loc, scale: loc + scale * z
    )


FAMILIES: Final[dict[str, Family]] = {
    "normal": located("normal"),
    "laplace": located("laplace"),
    "logistic": located("logistic"),
    "gumbel": located("gumbel"),
    "uniform": Family(
        (("low", 0.0), ("high", 1.0)),
        lambda rng, size: rng.uniform(0.0, 1.0, size),
        lambda z, low, high: low + (high - low) * z,
    ),
    "exponential": Family(
        (("scale", 1.0),), lambda rng, size: rng.standard_exponential(size), lambda z, scale: scale * z
    ),
    "rayleigh": Family((("scale", 1.0),), lambda rng, size: rng.rayleigh(1.0, size), lambda z, scale: scale * z),
    "lognormal": Family(
        (("mean", 0.0), ("sigma", 1.0)),
        lambda rng, size: rng.normal(0.0, 1.0, size),
        lambda z, mean, sigma: np.exp(mean + sigma * z),
    ),
    "weibull": Family(SHAPE, lambda rng, size: rng.standard_exponential(size), lambda z, a: z ** (1.0 / a)),
    "pareto": Family(SHAPE, lambda rng, size: rng.standard_exponential(size), lambda z, a: np.expm1(z / a)),
    "power": Family(SHAPE, lambda rng, size: rng.standard_exponential(size), lambda z, a: (-np.expm1(-z)) ** (1.0 / a)),
}


def is_draw(function: Any) -> bool:
    """Whether this is a method of a generator of random numbers (``np.random.normal`` is one too)."""
    owner = attribute(function, "__self__")
    return draws_by_numpy() and isinstance(owner, (np.random.Generator, np.random.RandomState))


def drawn(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a draw gives; with traced parameters, as a function of them.

    Raises:
        UnsupportedError: a distribution that is not a smooth function of its parameters and a standard number.
    """
    name, generator = function.__name__, function.__self__
    if not any(map(contains_tracer, (*args, *kwargs.values()))):
        return (
            call_method(generator, name, args, kwargs) if type(generator) is HostObject else function(*args, **kwargs)
        )
    if name in OF_SEQUENCES and (is_of_python(generator) or (name == "shuffle" and type(args[0]) is list)):
        if type(generator) is HostObject:
            raise Refused(f"{name} moves the items of a list")
        return function(*args, **kwargs)  # which only asks how many items there are
    if name in REORDERED:
        return REORDERED[name](generator, *args, **kwargs)
    family = FAMILIES.get(name)
    if family is None:
        known = ", ".join(sorted({*FAMILIES, *REORDERED}))
        raise UnsupportedError(
            f"{name} cannot be drawn with traced parameters",
            hint=f"draw from one of {known}, or outside of the function",
        )
    names = [parameter for parameter, _ in family.parameters]
    given = dict(zip([*names, "size"], args, strict=False)) | kwargs
    values: list[Any] = [given.get(parameter, default) for parameter, default in family.parameters]
    if None in [value if not isinstance(value, Tracer) else 0 for value in values] or not given.keys() <= {
        *names,
        "size",
    }:
        raise UnsupportedError(f"{name}() does not take these arguments", hint=f"it takes {', '.join(names)} and size")
    size = given.get("size")
    if size is None:
        shape = np.broadcast_shapes(*[x.shape if isinstance(x, Tracer) else np.shape(x) for x in values])
        size = shape or None
    return family.moved(as_tracer(family.standard(generator, size)), *values)


def is_of_python(generator: Any) -> bool:
    """Whether a generator, or what stands for one, is of the module `random`."""
    return issubclass(generator.host_kind if type(generator) is HostObject else type(generator), random.Random)


# --- draws from traced arrays ---------------------------------------------------------------------


def along(x: Tracer, index: Any, axis: int) -> Any:
    return x[(slice(None),) * (axis % x.ndim) + (index,)]


def permutation(generator: Any, x: Any, axis: int = 0) -> Any:
    """The items of an array in another order: those of a permutation of their places, which takes the same draws."""
    x = as_tracer(x)
    if not x.ndim or (axis and isinstance(generator, np.random.RandomState)):
        raise UnsupportedError("permutation of a traced number", hint="permute a number that is a Python int")
    return along(x, generator.permutation(x.shape[axis]), axis)


def shuffle(generator: Any, x: Any, axis: int = 0) -> None:
    """`permutation` in place."""
    x[...] = permutation(generator, x, axis)


def choice(
    generator: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
) -> Any:
    """Items of an array, whose places are drawn."""
    if contains_tracer(p) or contains_tracer(size):
        raise UnsupportedError("choice cannot be drawn with traced probabilities", hint="draw outside of the function")
    x = as_tracer(a)
    if not x.ndim:
        raise UnsupportedError("choice among a traced number of items", hint="give it a Python int, or an array")
    options = {} if shuffle else {"shuffle": False}
    return along(x, generator.choice(x.shape[axis], size, replace, p, **options), axis)


OF_SEQUENCES: Final = frozenset({"shuffle", "choice", "choices", "sample"})
REORDERED: Final[dict[str, Callable[..., Any]]] = {"permutation": permutation, "shuffle": shuffle, "choice": choice}
