"""Objects in classes that say what reading or assigning an attribute does: descriptors of the user's, and methods that
are chosen by the class of their first argument.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from srcgrad.tracing.alike import value_key
from srcgrad.tracing.bytecode import Refusal
from srcgrad.tracing.conversion.state import slots_of
from srcgrad.tracing.held import held_by
from srcgrad.tracing.purity import static_key
from srcgrad.tracing.unasked import attribute

if TYPE_CHECKING:
    from srcgrad.tracing.reached_classes import ClassAnalysis


def is_descriptor(member: Any) -> bool:
    """Whether this is an object of a class in Python that says what reading or assigning an attribute does."""
    kind: Any = type(member)
    found = [attribute(kind, name) for name in ("__get__", "__set__", "__delete__")]
    return isinstance(found[0] or found[1], types.FunctionType) and all(
        method is None or isinstance(method, types.FunctionType) for method in found
    )


def read_descriptor(
    analysis: ClassAnalysis, index: int, value: Any, key: tuple[int, str], place: str, label: str
) -> None:
    """A descriptor that holds constants, and functions that it may call, as a property that keeps what its function has
    given; its class has the code that runs where an attribute is read or assigned.

    Raises:
        Refusal: it holds what can change.
    """
    functions = {name: held for name, held in held_by(value).items() if is_called_by_it(analysis, held)}
    others = tuple((name, None if name in functions else held) for name, held in held_by(value).items())
    if static_key(others, analysis.is_pure, True) is None:
        raise Refusal(f"reads the class attribute {label}, which holds what can change")
    held = f"{analysis.constant(held_by)}({place})" if slots_of(type(value)) else f"{place}.__dict__"
    items = f"{held}.items()"
    if functions:
        named = analysis.constant(frozenset(functions))
        items = f"(name, None if name in {named} else held) for name, held in {items}"
    same = f"value_key(tuple({items})) == {analysis.constant(value_key(others))}"
    analysis.require(f"{place} is {analysis.constant(value)} and {same}")
    analysis.read(index, "descriptor", key, type(value), f"type({place})", f"class of {label}")
    analysis.described.add(id(type(value)))
    for name, function in functions.items():
        analysis.described.add(id(function))
        analysis.methods.add(id(function))
        analysis.read(index, "described", (*key, name), function, f"{held}[{name!r}]", f"{label}.{name}")


def is_called_by_it(analysis: ClassAnalysis, held: Any) -> bool:
    return isinstance(held, types.FunctionType) and analysis.node_kind(held) == "function"


def read_dispatcher(
    analysis: ClassAnalysis,
    index: int,
    value: functools.singledispatchmethod[Any],
    key: tuple[int, str],
    place: str,
    label: str,
) -> None:
    """What a method of ``singledispatchmethod`` may call, as methods of the object."""
    analysis.require(f"{place} is {analysis.constant(value)}")
    analysis.methods.update(map(id, value.dispatcher.registry.values()))
    analysis.read(index, "dispatcher", key, value.dispatcher, f"{place}.dispatcher", label)
