"""Long loops over lists of objects of the user's classes, all with the same attributes: columns of what these hold.

An object made of a row stands for an item in each trip. That is exact where the trip neither changes nor keeps it, nor
asks which object it is; otherwise the loop is written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from srcgrad.tracing.conversion.classes import rebuilt
from srcgrad.tracing.conversion.identity import gathered_objects, held
from srcgrad.tracing.conversion.items import Items, column_of
from srcgrad.tracing.conversion.numbers import UNROLLED
from srcgrad.tracing.conversion.objects import attributes_of
from srcgrad.tracing.conversion.standing import ITEM, may_stand, objects_in, standing
from srcgrad.tracing.conversion.state import contents, reachable, same_handle
from srcgrad.tracing.conversion.structures import constants_of, structure_of
from srcgrad.tracing.pytree import TreeDef
from srcgrad.tracing.trace import Refused, current_trace

NAME: Final = "an item"


class ListedObjects:
    """A list of objects that a loop runs over."""

    def __init__(self, things: Sequence[Any], tree: TreeDef, columns: Sequence[Callable[[Any], Any]]) -> None:
        self.things, self.before = things, list(things)
        self.tree, self.columns = tree, columns
        self.kept: Final = constants_of(tree)
        self.made: list[Any] = []
        """The object that stands for the item of the trip that is traced."""
        self.cells: list[int] = []
        """The variables that hold it at the end of the trip."""

    def items(self) -> Items:
        return Items(len(self.things), lambda k: k, [(self.things, self.before)] if type(self.things) is list else [])

    def trip(self, body: Callable[[Any], Any], get: Callable[[], tuple[Any, ...]]) -> Callable[[Any], None]:
        """The body as a function of the place of an item."""

        def run(k: Any) -> None:
            self.made = [rebuilt(self.tree, [column(k) for column in self.columns])]
            for x in objects_in(self.made, self.kept):
                object.__setattr__(x, "__class__", standing(type(x), NAME, ITEM))
                current_trace().adopted.append(x)
            then = [(x, contents(x)) for x in reachable(self.made, self.kept)]
            body(self.made[0])
            for x, (structure, values) in then:
                now, left = contents(x)
                if now != structure or not all(map(same_handle, left, values)):
                    raise Refused("an object is changed in a loop over a list of objects")
            del x, values, left, then
            self.require_given_up(get())

        return run

    def require_given_up(self, variables: tuple[Any, ...]) -> None:
        """Refuse a trip that keeps the object elsewhere than in variables, which it has from the list otherwise."""
        self.cells = [cell for cell, x in enumerate(variables) if x is self.made[0]]
        del variables
        holder = self.made
        counts = [len(self.cells)]
        gathered_objects(holder[0], holder, counts, self.kept)
        if any(held(holder, k) > count for k, count in enumerate(counts)):
            raise Refused("an object is kept in a loop over a list of objects")

    def left(self, variables: tuple[Any, ...]) -> tuple[Any, ...]:
        """The variables behind the loop."""
        return tuple(self.things[-1] if cell in self.cells else x for cell, x in enumerate(variables))


def listed_objects(things: Any) -> ListedObjects | None:
    """The objects of a long list that have the same attributes, which are columns; None where that is not so."""
    if type(things) not in (list, tuple) or len(things) <= UNROLLED or attributes_of(things[0]) is None:
        return None
    flat = [structure_of(thing) for thing in things]
    tree = flat[0][1]
    if tree is None or any(other != tree for _, other in flat):
        return None
    if not all(may_stand(type(x)) for x in objects_in(list(things[:1]), constants_of(tree))):
        return None
    columns = [column_of([leaves[k] for leaves, _ in flat], False) for k in range(len(flat[0][0]))]
    known = [column for column in columns if column is not None]
    return ListedObjects(things, tree, known) if len(known) == len(columns) else None
