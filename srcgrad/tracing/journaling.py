"""Which captured containers and numbers are journals: what all of the code does with them is to append, or to count.

That is known when all code has been looked at. An analysis takes a place for a journal's until it finds it read
otherwise; then another one is made that knows better (`JournalReader.read_elsewhere`). A place is the name of an
attribute, of any object, or a global or captured variable.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final

from srcgrad.tracing.journals import Appended, Celled, Counted, Journal, Named, Owned, is_count, is_own
from srcgrad.tracing.rebuild import COLLECTIONS, Edge, Hidden

if TYPE_CHECKING:
    from srcgrad.tracing.analysis import Analysis
    from srcgrad.tracing.bytecode import Scope, Step

Place = tuple[Hashable, ...]
ITEMS: Final = frozenset({"item append", "item count"})
CONTAINERS: Final = frozenset({list, dict, *COLLECTIONS})


class JournalReader:
    def __init__(self, analysis: Analysis, plain: frozenset[Place]) -> None:
        """``plain``: places that are read otherwise."""
        self.analysis: Final[Analysis] = weakref.proxy(analysis)  # which is dropped with all that it has met
        self.plain: Final = plain
        self.noted: Final[dict[str, set[str]]] = {}
        """The names of attributes that code reads only to append or to count, and which of these."""
        self.found: Final[dict[Place, str]] = {}
        """The places of journals, and what is done with them."""
        self.containers: Final[list[tuple[Any, Place]]] = []
        self.otherwise: Final = set(plain)
        """With what turned out to be read otherwise."""
        self.only = ""
        """What the name is loaded for that is being looked up."""
        kinds = (Appended, Celled, Counted, Journal, Named, Owned, is_count)
        analysis.constants.update({kind.__name__: kind for kind in kinds})

    def note(self, step: Step) -> bool:
        """Whether an attribute is read as of a journal."""
        if not step.only or ("attribute", step.name) in self.plain:
            return False
        self.noted.setdefault(step.name, set()).add(step.only)
        return True

    def settle(self, index: int, names: dict[str, Any], classes: tuple[type, ...], all_read: bool) -> bool:
        """Find the journals of an object, ``names``; a class has none. Whether there were new ones."""
        found = False
        for name in sorted(self.noted.keys() - self.analysis.local_attributes):
            key = (index, name, "journal")
            if key in self.analysis.settled:
                continue
            self.analysis.settled.add(key)
            if name in names and not all_read:
                found |= self.of_object(index, name, names[name])
            elif name in names or any(name in vars(cls) for cls in classes):
                self.otherwise.add(("attribute", name))
        return self.owned(index) or found

    def is_counted(self, function: types.FunctionType, name: str) -> bool:
        """Whether a function has an attribute with which code counts, and which none is known to read otherwise."""
        ways = self.noted.get(name) if name not in self.analysis.local_attributes else None
        return ways == {"count"} and is_count(vars(function).get(name)) and is_own(function, name)

    def of_function(self, index: int, function: types.FunctionType) -> bool:
        """Find with which attributes of a function code counts; whether there were new ones."""
        found = False
        for name in sorted(self.noted.keys() & vars(function).keys()):
            if (index, name, "journal") in self.analysis.settled:
                continue
            self.analysis.settled.add((index, name, "journal"))
            if self.is_counted(function, name):
                found |= self.of_object(index, name, vars(function)[name], "function attribute")
            else:
                self.otherwise.add(("attribute", name))
        return found

    def owned(self, index: int) -> bool:
        """The object itself, if a trace has stored attributes of one."""
        analysis, key = self.analysis, (index, None, "journal")
        node = analysis.plan.nodes[index]
        if not analysis.plan.stores or node.kind != "object":
            return False
        if key in analysis.settled:
            return False
        analysis.settled.add(key)
        self.edge(index, "owner", None, f"Owned(n{index})", f"attributes of {node.label}")
        return True

    def of_object(self, index: int, name: str, value: Any, source: str = "attribute") -> bool:
        analysis, ways = self.analysis, self.noted[name]
        place, path = f"n{index}.__dict__[{name!r}]", f"{analysis.plan.nodes[index].label}.{name}"
        if ways == {"count"}:
            counted = is_count(value) and is_own(analysis.objects[index], name)
            journal = f"Counted(n{index}, {name!r})" if counted else None
        else:
            journal = container(ways, value, place)
        if journal is None:
            self.otherwise.add(("attribute", name))
            return False
        self.journal(index, source, name, journal, ("attribute", name), value, place, path, min(ways))
        return True

    def of_name(self, holder: int, source: str, key: Any, value: Any, expression: str, path: str) -> int | None:
        """The edge to a captured variable, if that is looked up to append to it or to count with it."""
        if not self.only or source not in ("global", "cell") or expression.startswith("made("):
            return None
        where = self.where(source, holder, key)
        journal = container({self.only}, value, expression)
        if self.only == "count" and is_count(value):
            cell = f"Celled({expression.removesuffix('.cell_contents')})"
            journal = cell if source == "cell" else f"Named(g{holder}, {key!r})"
        if journal is None or where in self.plain:
            return None
        return self.journal(holder, source, key, journal, where, value, expression, path, self.only)

    def where(self, source: str, holder: int, key: Any) -> Place:
        """A global or captured variable: of which namespace, by holder, or in which cell."""
        analysis = self.analysis
        if source == "cell":
            return ("cell", id(analysis.objects[holder].__closure__[key]))
        owner = analysis.objects[analysis.plan.namespaces[holder]]
        return ("global", id(owner.__globals__ if isinstance(owner, types.FunctionType) else vars(owner)), key)

    def looked_up(self, index: int, scope: Scope, step: Step) -> None:
        """A name that code reads may be a journal's by what was read before."""
        analysis, where = self.analysis, None
        if step.kind == "global":
            where = self.where("global", analysis.plan.nodes[index].namespace, step.name)
        elif step.kind == "free" and scope.owner(step.name) is None:
            code = analysis.objects[index].__code__
            if step.name in code.co_freevars:
                where = self.where("cell", index, code.co_freevars.index(step.name))
        known = self.found.get(where) if where is not None else None
        if known is not None and known != step.only and not {known, step.only} <= ITEMS:
            self.otherwise.add(where)  # type: ignore[arg-type]

    def journal(
        self, holder: int, source: str, key: Any, expression: str, where: Place, value: Any, place: str, path: str,
        only: str,
    ) -> int:  # fmt: skip
        self.found[where] = only
        if only == "count":
            self.analysis.require(f"is_count({place})")
        else:
            self.containers.append((value, where))
            self.analysis.require(f"type({place}) is {self.analysis.constant(type(value))}")
        return self.edge(holder, source, key, expression, path)

    def edge(self, holder: int, source: str, key: Any, expression: str, path: str) -> int:
        analysis, plan = self.analysis, self.analysis.plan
        hidden = len(analysis.hidden)
        analysis.hidden.append(Hidden(path, "journal"))
        analysis.lines.append(f"v{hidden} = {expression}")
        analysis.report.append(f"{path}: written when the program runs")
        plan.edges.append(Edge(source, holder, key, hidden, None))
        if source != "global":
            plan.nodes[holder].edges.append(len(plan.edges) - 1)
        return len(plan.edges) - 1

    def read_elsewhere(self) -> frozenset[Place] | None:
        """The places that are no journals after all, with those known before; None if all are."""
        found = {*self.otherwise, *[where for value, where in self.containers if id(value) in self.analysis.node_of]}
        read = self.analysis.local_attributes
        found |= {where for where in self.found if where[0] == "attribute" and where[1] in read}
        return None if found == self.plain else frozenset(found)


def container(ways: set[str], value: Any, place: str) -> str | None:
    """The journal of a container, if that can be what is done with it."""
    if ways == {"append"} and type(value) is list:
        return f"Appended({place})"
    return f"Journal({place})" if ways <= ITEMS and type(value) in CONTAINERS else None
