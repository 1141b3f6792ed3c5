"""The kinds of captured objects that converted functions may reach, and how each is guarded."""

from __future__ import annotations

import enum
import inspect
import operator
import types
from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.built_on import built_on, guard_items, is_view_of_dict, items_in
from srcgrad.tracing.bytecode import Refusal
from srcgrad.tracing.conversion.scipy_rules import is_distribution
from srcgrad.tracing.conversion.state import slots_of
from srcgrad.tracing.frozen import Unchanged, contents, given_to, names_held
from srcgrad.tracing.held import holding, is_slotted
from srcgrad.tracing.hosts import is_cache, is_logger
from srcgrad.tracing.jitted import made_of
from srcgrad.tracing.kept_results import is_asked
from srcgrad.tracing.purity import constructor_reason, is_plain_type, static_key
from srcgrad.tracing.reached_classes import ClassAnalysis
from srcgrad.tracing.rebuild import COLLECTIONS, copied_set
from srcgrad.tracing.tables import is_constant, same_as
from srcgrad.tracing.unasked import attribute
from srcgrad.tracing.users_classes import is_named_tuple, is_namespace, is_user_class, is_user_enum

CONTAINERS: Final = (list, dict, tuple, set, *COLLECTIONS)
UNNAMED: Final = frozenset({"asked", "logger", "frozen", "sentinel"})
"""The kinds whose objects a program tells apart by their constants alone."""
PLACED: Final = frozenset({"pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"})
DETERMINED: Final = frozenset(
    PLACED
    | {f"_{name}" for name in PLACED}  # the formulas that they call, which code calls to have them faster
    | {"entropy", "mean", "median", "var", "std", "stats", "moment", "interval", "support", "fit"}
)
"""Methods of distributions that give the same for the same arguments: all but draws, and what calls functions."""


def held(value: Any) -> Hashable | None:
    """What decides the results of an object of SciPy's, or of the method of a distribution that is no draw."""
    if not isinstance(value, types.MethodType):
        return contents(value)
    owner = value.__self__
    if value.__name__ not in DETERMINED or not is_distribution(owner):
        return None
    found = contents(owner) if hasattr(owner, "dist") else type(owner)
    return None if found is None else (value.__name__, found)


def applied(function: np.vectorize) -> Hashable:
    """How ``np.vectorize`` applies the function that it holds."""
    return (function.otypes, function.signature, frozenset(function.excluded), function.cache)


class NodeAnalysis(ClassAnalysis):
    """The part of the analysis that tells of what kind an object is, and guards it."""

    def node_kind(self, value: Any) -> str | None:
        if made_of(value) is not None:
            return "jitted"
        kind = super().node_kind(value)
        if kind is not None:
            return kind
        if is_logger(value):
            return "logger"
        if is_cache(value):
            return "cached"
        if is_asked(value):
            return "asked"
        if type(value) is np.vectorize:
            return "vectorized"
        if is_view_of_dict(value):
            return "view"
        if type(value) is object:  # which only says that nothing was given
            return "sentinel"
        if is_constant(value):
            return "table"
        if held(value) is not None:
            return "frozen"
        if isinstance(value, types.MethodType):
            return "method" if super().node_kind(value.__func__) in ("function", "transform") else None
        if type(value) in CONTAINERS or is_named_tuple(value):
            return "container"
        if built_on(type(value)) is not None:
            return "container" if is_user_class(type(value)) and not slots_of(type(value)) else None
        if isinstance(value, type):
            return "class" if is_user_class(value) or is_user_enum(value) else None
        if isinstance(value, enum.Enum):
            return "constant" if is_user_enum(type(value)) else None
        slotted = is_slotted(value) and inspect.getattr_static(type(value), "__getattr__", None) is None
        has_some = type(attribute(value, "__dict__")) is dict or slotted
        return "object" if has_some and is_user_class(type(value)) else None

    def guard_node(self, index: int, expression: str) -> None:
        kind = self.plan.nodes[index].kind
        if kind not in GUARDS:
            super().guard_node(index, expression)
            return
        self.lines.append(f"n{index} = {expression}")
        GUARDS[kind](self, index, self.objects[index], f"n{index}", self.plan.nodes[index].label)
        if kind not in UNNAMED:
            self.identity.append((kind, type(self.objects[index])))

    def guard_asked(self, index: int, value: Any, name: str, label: str) -> None:
        self.require(f"{name} is {self.constant(value)}")
        self.report.append(f"{label}: asked at each call")

    def guard_logger(self, index: int, value: Any, name: str, label: str) -> None:
        """Its name leads to it as long as the process lives."""
        self.require(f"{name} is {self.constant(value)}")
        self.report.append(f"{label}: a logger, called when the program runs")

    def guard_frozen(self, index: int, value: Any, name: str, label: str) -> None:
        same = f"{self.constant(held)}({name}) == {self.constant(held(value))}"
        if not isinstance(value, types.MethodType) and names_held(value):
            same = f"{self.constant(Unchanged(value))}({name})"
        self.require(f"type({name}) is {self.constant(type(value))} and {same}")
        if type(value) is operator.attrgetter:
            self.local_attributes.update(part for path in value.__reduce__()[1] for part in path.split("."))
        if type(value) is operator.methodcaller:
            self.local_attributes.add(given_to(value)[0][0])
        self.report.append(f"{type(value).__name__}: compiled in, as long as it holds the same")

    def guard_table(self, index: int, value: Any, name: str, label: str) -> None:
        if type(value) is not np.ndarray:
            self.require(f"type({name}) is {self.constant(type(value))}")
        self.require(f"{self.constant(same_as(value))}({name})")
        self.report.append(f"{label}: compiled in, as long as it holds the same")

    def guard_method(self, index: int, value: Any, name: str, label: str) -> None:
        self.require(f"type({name}) is {self.constant(types.MethodType)}")

    def guard_view(self, index: int, value: Any, name: str, label: str) -> None:
        self.require(f"type({name}) is {self.constant(types.MappingProxyType)}")

    def guard_constant(self, index: int, value: Any, name: str, label: str) -> None:
        self.require(f"{name} is {self.constant(value)}")
        self.report.append(f"{label}: guard, {value!r}")

    def guard_cached(self, index: int, value: Any, name: str, label: str) -> None:
        self.require(f"type({name}) is {self.constant(type(value))}")

    def guard_vectorized(self, index: int, value: Any, name: str, label: str) -> None:
        self.require(f"type({name}) is {self.constant(np.vectorize)}")
        self.require(f"{self.constant(applied)}({name}) == {self.constant(applied(value))}")

    def guard_of_class(self, index: int, value: Any, name: str, label: str) -> None:
        if any("__del__" in vars(base) for base in value.__mro__):  # it would run for the copies of a trace too
            raise Refusal(f"{value.__name__}.__del__ runs where an object is dropped")
        self.require(f"{name} is {self.constant(value)}")
        self.require_resolution(value)
        self.report.append(f"class {value.__name__}: same methods")

    def guard_object(self, index: int, value: Any, name: str, label: str) -> None:
        names, attributes = self.constant(frozenset(holding(value))), f"{name}.__dict__"
        if is_slotted(value):
            attributes = f"{self.constant(holding)}({name})"
        self.require(f"type({name}) is {self.constant(type(value))} and {attributes}.keys() == {names}")
        self.report.append(f"object {label}: same class, its attributes as they are read")

    def guard_container(self, index: int, value: Any, name: str, label: str) -> None:
        kind = type(value)
        if isinstance(value, (dict, set)):
            self.guard_keys(index, value)
        elif built_on(kind) is not None:
            self.require(f"len({guard_items(self, index, value)}) == {list.__len__(value)}")
            self.report.append(f"{label}: guard, a {kind.__name__} of {list.__len__(value)}")
        else:
            if kind not in CONTAINERS and not is_user_class(kind):
                self.classes.add(kind)
            self.require(f"type({name}) is {self.constant(kind)} and len({name}) == {len(value)}")
            if isinstance(value, deque):
                self.require(f"{name}.maxlen == {value.maxlen}")
            if kind not in CONTAINERS:
                self.require_resolution(kind, value._fields)
            self.report.append(f"{label}: guard, a {kind.__name__} of {len(value)}")

    def guard_keys(self, index: int, value: Any) -> None:
        """The same keys of a dict, or elements of a set, in the same order."""
        name, kind, keys = f"n{index}", type(value), tuple(items_in(value))
        label = self.plan.nodes[index].label
        if any(static_key(key, self.is_pure, True) is None and not self.is_followed(key) for key in keys):
            what = "whose keys can change" if isinstance(value, dict) else "whose elements can change"
            raise Refusal(f"reads the {kind.__name__} '{label}', {what}")
        if kind is set:
            try:
                copied_set(value)
            except ValueError as error:
                raise Refusal(f"reads the set '{label}': {error}") from None
        if built_on(kind) is None:
            self.require(f"type({name}) is {kind.__name__ if kind in (dict, set) else self.constant(kind)}")
        else:
            name = guard_items(self, index, value)
        self.require(f"same_keys(tuple({name}), {self.constant(keys)})")
        if kind is defaultdict:
            self.require(f"({name}.default_factory is None) is {value.default_factory is None}")
        self.report.append(f"{label}: guard, a {kind.__name__} of {len(keys)}")

    def is_followed(self, key: Any) -> bool:
        """Whether a key of a dict is a class whose methods are looked at, since code may call it."""
        return isinstance(key, type) and self.node_kind(key) == "class"

    def guard_class(self, cls: type, expression: str, path: str) -> int | None:
        followed = is_user_class(cls) or (not is_plain_type(cls) and is_user_enum(cls))
        if not followed or (is_namespace(cls) and not expression.startswith("type(")):
            return super().guard_class(cls, expression, path)
        known = id(cls) in self.node_of
        index = self.node(cls)
        reason = constructor_reason(cls) if issubclass(cls, tuple) else None
        if reason is not None:
            raise Refusal(reason)
        if known:
            self.require(f"{expression} is n{index}")
        else:
            self.guard_node(index, expression)
        return index


GUARDS: Final[dict[str, Callable[[NodeAnalysis, int, Any, str, str], None]]] = {
    "method": NodeAnalysis.guard_method,
    "view": NodeAnalysis.guard_view,
    "container": NodeAnalysis.guard_container,
    "class": NodeAnalysis.guard_of_class,
    "object": NodeAnalysis.guard_object,
    "frozen": NodeAnalysis.guard_frozen,
    "logger": NodeAnalysis.guard_logger,
    "asked": NodeAnalysis.guard_asked,
    "cached": NodeAnalysis.guard_cached,
    "constant": NodeAnalysis.guard_constant,
    "sentinel": NodeAnalysis.guard_constant,
    "vectorized": NodeAnalysis.guard_vectorized,
    "jitted": NodeAnalysis.guard_cached,
    "table": NodeAnalysis.guard_table,
}
"""The kinds of nodes that are followed here alone, and what guards them: its number, what it is, its name in the guard
function, and its label.
"""
