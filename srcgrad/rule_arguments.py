"""The arguments of functions with a rule: which of them are differentiated, and where they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcgrad.annotations import signature_of
from srcgrad.boundary import described
from srcgrad.errors import CustomRuleError
from srcgrad.tracing.function import leaf_spec
from srcgrad.tracing.pytree import flatten
from srcgrad.tracing.tracer import as_tracer


class Arguments:
    """The differentiable call of a function with a rule: the arguments' leaves, and those that are traced."""

    def __init__(self, rest: tuple[Any, ...]) -> None:
        self.leaves, self.treedef = flatten(rest)
        self.specs = [leaf_spec(leaf) for leaf in self.leaves]
        tracers = [as_tracer(leaf) for leaf, spec in zip(self.leaves, self.specs, strict=True) if spec is not None]
        self.values = [tracer.read() for tracer in tracers]
        self.numbers = [tracer.number() for tracer in tracers]
        self.active = [value.type.differentiable for value in self.values]
        self.places = [k for k, spec in enumerate(self.specs) if spec is not None and spec.type.differentiable]
        """The positions of the differentiable leaves."""


def bind_arguments(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments, keywords put in their places and defaults filled in (rules are called by position)."""
    if isinstance(f, np.ufunc) and not kwargs:
        return args  # its ``out=None`` is no argument to differentiate
    try:
        bound = signature_of(f).bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        if isinstance(error, ValueError) and not kwargs:  # no signature to be had
            return args
        raise CustomRuleError(f"{getattr(f, '__name__', f)}: {error}") from None
    given = sorted(bound.kwargs)
    if given:
        raise CustomRuleError(
            f"a function with a custom rule takes positional arguments; {given} are keyword-only",
            hint="keyword-only parameters keep their defaults: give others by functools.partial before the rule",
        )
    bound.apply_defaults()
    return bound.args


def places_of(kind: str, f: Callable[..., Any], names: str | Sequence[str]) -> list[int]:
    """The positions of parameters.

    Raises:
        CustomRuleError: the function has none of that name.
    """
    try:
        parameters = list(signature_of(f).parameters) if names else []
    except ValueError:
        parameters = []
    wanted = (names,) if isinstance(names, str) else tuple(names)
    for name in wanted:
        if name not in parameters:
            raise CustomRuleError(
                f"{kind}: nondiff_argnames names {described(name)}, which the function does not have",
                hint=f"its parameters are {', '.join(parameters)}" if parameters else "use nondiff_argnums",
            )
    return sorted(map(parameters.index, wanted))


def nondiff_places(
    kind: str, f: Callable[..., Any], numbers: int | Sequence[int], names: str | Sequence[str]
) -> tuple[int, ...]:
    """The positions that ``nondiff_argnums`` and ``nondiff_argnames`` give, in this order.

    Raises:
        CustomRuleError: a number is no int, or the function has no parameter of a name.
    """
    given = numbers if isinstance(numbers, (tuple, list)) else (numbers,)
    if not all(type(number) is int for number in given):
        raise CustomRuleError(f"{kind}: nondiff_argnums must be a tuple of ints, not {described(numbers)}")
    return tuple(dict.fromkeys((*given, *places_of(kind, f, names))))
