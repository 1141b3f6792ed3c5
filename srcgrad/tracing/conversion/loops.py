"""``while`` and ``for`` of converted code: Python's loops, or one region where a traced value decides or trips many."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from types import CodeType
from typing import Any, Final, TypeGuard

import numpy as np

from srcgrad.boundary import AS_A_KEY, UNHASHABLE
from srcgrad.ir.core import Value
from srcgrad.tracing.affine import Affine, between
from srcgrad.tracing.conversion.advancing import END, advanced, references, require_own
from srcgrad.tracing.conversion.appending import Appending
from srcgrad.tracing.conversion.attempts import Before
from srcgrad.tracing.conversion.branches import if_
from srcgrad.tracing.conversion.clocks import Clock, clock_of
from srcgrad.tracing.conversion.counting import Counter, counted
from srcgrad.tracing.conversion.entries import only_filled
from srcgrad.tracing.conversion.filled import require_fixed
from srcgrad.tracing.conversion.items import Items, index_of, items_of
from srcgrad.tracing.conversion.lengths import (
    Shapes,
    items_of_lengths,
    require_length,
    require_lengths_left_alone,
    shapes_of,
    trips_left,
)
from srcgrad.tracing.conversion.listed_objects import listed_objects
from srcgrad.tracing.conversion.loop_operations import for_region, while_region
from srcgrad.tracing.conversion.loop_regions import COUNT, FAILURES
from srcgrad.tracing.conversion.marks import Mark, withdraw
from srcgrad.tracing.conversion.numbers import UNROLLED
from srcgrad.tracing.conversion.rounds import scope_of
from srcgrad.tracing.conversion.series import Series
from srcgrad.tracing.conversion.state import (
    Inside,
    MustRetrace,
    State,
    has_effects,
    kind_of,
    same_handle,
    truth,
    unknown,
    value_as,
)
from srcgrad.tracing.conversion.structures import structure_of
from srcgrad.tracing.conversion.written_out import MOST_WRITTEN_OUT, NEVER, Growing, Much, size_of, statement_of
from srcgrad.tracing.guards import guided
from srcgrad.tracing.shown_texts import lines_of
from srcgrad.tracing.trace import CURRENT, Refused, current_span, current_trace
from srcgrad.tracing.tracer import from_value

Appended = Callable[[], tuple[tuple[Any, bool | str | None], ...]] | None
MOST_UNROLLED: Final = 20_000
"""A loop of more trips that cannot be one region is not traced trip by trip."""
MOST_ENDED: Final = 1000
"""The most trips through an iterator, which may have no end, that are written out where a value says when they end."""
FEW: Final = 4
"""After so many trips of a ``while`` it is asked whether a clock ends it, after the first where that is long."""
MOST_SETTLING: Final = 32
"""After so many trips of a loop it is not looked any longer whether their kinds settle."""


# --- while -----------------------------------------------------------------------------


def while_(
    test: Callable[[], Any], body: Callable[[], Any], get: Any, put: Any, names: tuple[str, ...], visible: Any,
    plain: bool, counter: tuple[Any, ...] | None,
) -> None:  # fmt: skip
    """The statement ``while``. ``plain``: its test only reads. ``counter``: the fields of its `Counter`, if any."""
    before = Shapes()
    clock: Timed | None = None
    for trips in itertools.count():
        trace = CURRENT.get()
        if trace is None or trace.concrete:
            if not test():
                return
            body()
            continue
        if trips == 0:
            before = shapes_of(get(), visible)
            emitted = len(trace.builder.operations)
            clock = Timed(test, body, get, put, names, visible) if plain else None
            if counter is not None and rolled_while(Counter(*counter), body, get, put, names, visible):
                return
        if trips > MOST_UNROLLED and len(trace.builder.operations) - emitted > trips:
            raise MustRetrace(f"a while makes more than {MOST_UNROLLED} trips that are no region")
        answer, rebinds = (test(), False) if plain else tested(test, State(get, put, names, visible))
        if unknown(answer):
            truth(answer)  # which raises NumPy's error where it is no single one
            del answer  # which, as the clock, would count as another reference to what a variable holds
            clock = None
            while_region(test, lambda _: body(), State(get, put, names, visible), rebinds, "while")
            return
        if not answer:
            return
        if trips == 1 and plain and rolled_lengths(test, body, before, get, put, names, visible):
            continue  # the test says that there are no more
        if clock is not None and trips in (1, FEW, UNROLLED) and (clock.rolled(trips) or clock.is_region(trips)):
            return
        body()


class Timed:
    """A ``while`` whose test Python answers, before its first trip: its other trips may be one region."""

    def __init__(
        self, test: Callable[[], Any], body: Callable[[], Any], get: Any, put: Any, names: tuple[str, ...], visible: Any
    ) -> None:
        self.test, self.body, self.get, self.put = test, body, get, put
        self.state_of = functools.partial(State, get, put, names, visible)
        self.start: tuple[Any, ...] = get()
        self.first = len(current_trace().builder.operations)
        self.asked = False

    def rolled(self, trips: int) -> bool:
        """After so many trips, try to make the others one region, if there is much to write out."""
        trace = current_trace()
        trip = size_of(trace.builder.operations[self.first :]) * trace.copies / trips
        if self.asked or (trips == 1 and trip * UNROLLED <= MOST_WRITTEN_OUT) or (trips <= FEW and not self.moved()):
            return False
        self.asked = True
        clock = self.found()
        if clock is None:
            return False
        total = clock.trips if trips == UNROLLED else clock.trips + trips
        if total <= UNROLLED and clock.trips * trip <= MOST_WRITTEN_OUT:
            return False
        if not rolled(Items(clock.trips, lambda k: None), lambda _: self.body(), self.state_of, "while"):
            return False
        self.put(tuple(clock.end.get(place, x) for place, x in enumerate(self.get())))
        return True

    def is_region(self, trips: int) -> bool:
        """After so many trips, with much written out and no clock, try to leave it to the program when to end."""
        trace = current_trace()
        written = size_of(trace.builder.operations[self.first :]) * trace.copies
        if trips < FEW or written <= MOST_WRITTEN_OUT or not self.moved():
            return False
        mark = Mark(trace)
        try:
            while_region(self.test, lambda _: self.body(), self.state_of(), False, "while")
        except MustRetrace:
            raise
        except FAILURES:
            mark.back()
            return False
        return True

    def moved(self) -> bool:
        """Whether a variable that is a float, and Python's, has changed."""
        return any(type(x) in (float, np.float64) and x is not y for x, y in zip(self.get(), self.start, strict=True))

    def found(self) -> Clock | None:
        """The clock of the other trips; nothing is left of the search."""
        trace = current_trace()
        mark, said = Mark(trace), len(trace.rolled)
        try:
            return clock_of(self.test, self.body, self.state_of())
        except (*FAILURES, Inside):
            return None
        finally:
            mark.back()
            del trace.rolled[said:]


def rolled_lengths(
    test: Callable[[], Any], body: Callable[[], Any], before: Shapes, get: Any, put: Any,
    names: tuple[str, ...], visible: Any,
) -> bool:  # fmt: skip
    """Try to make a long loop, which ends by the length of an array, one region from its second trip on."""
    trips = trips_left(test, before, get, put, visible)
    if trips <= UNROLLED:
        return False

    def trip(index: Any) -> None:
        require_length(test(), index, trips)
        body()

    return rolled(items_of_lengths(trips), trip, lambda: State(get, put, names, visible), "while")


def tested(test: Callable[[], Any], state: State) -> tuple[Any, bool]:
    """A test's answer, and whether it binds names; what it did is undone where a traced value decides."""
    trace = current_trace()
    start, sites = len(trace.builder.operations), len(trace.sites)
    lifted, overlay = dict(trace.lifted), dict(trace.overlay)
    before = state.capture()
    answer = test()
    if not unknown(answer):
        return answer, False
    rebinds = state.changed(before)
    state.restore(before)
    if has_effects(trace.builder.operations[start:]):  # which happen when the loop tests, not before
        withdraw(trace, start, sites, lifted, overlay)
    return answer, rebinds


def rolled_while(
    counter: Counter, body: Callable[[], Any], get: Any, put: Any, names: tuple[str, ...], visible: Any
) -> bool:
    """Try to make a long loop that counts one region, as one over a range is."""
    trace = current_trace()
    mark = len(trace.builder.operations)
    place = names.index(counter.name)
    found = counted(counter, get()[place])
    if len(trace.builder.operations) > mark or found is None or found.trips <= UNROLLED:
        return False
    seen = (counter.step(), counter.seen())

    def set_counter(value: Any) -> None:
        values = get()
        put((*values[:place], value, *values[place + 1 :]))

    def trip(value: Any) -> None:
        if not same_handle((counter.step(), counter.seen()), seen):
            raise Refused("a while changes a number that its test or its counter is made of")
        if value is not None:
            set_counter(value)
        body()
        require_lengths_left_alone(counter, seen[1], [*get(), *visible()])
        if value is not None:
            set_counter(found.start)

    if not rolled(found.items(), trip, lambda: State(get, put, names, visible), "while"):
        return False
    set_counter(found.end)
    return True


# --- for -----------------------------------------------------------------------------


def for_(
    iterable: Any, body: Callable[[Any], Any], go_on: Callable[[], Any] | None, get: Any, put: Any,
    names: tuple[str, ...], visible: Any, appended: Appended = None, count: int | None = None,
) -> None:  # fmt: skip
    """The statement ``for``. ``go_on``: whether no jump has ended the loop. ``appended``: see `Appending`.

    ``count``: the `references` of the iterable, where its caller has counted them.
    """
    trace = CURRENT.get()
    if trace is None or trace.concrete:
        for item in lines_of(iterable):
            body(item)
            if go_on is not None and not go_on():
                return
        return
    require_fixed(iterable)
    items, count = items_of(iterable), references(iterable) if count is None else count

    def state_of() -> State:
        return State(get, put, names, visible)

    if items is not None and not isinstance(items.count, int):
        if go_on is None:
            for_region(items.count, lambda k: body(items.at(index_of(checked(k), items.count))), state_of())
        else:
            rest_region(items, 0, body, go_on, get, put, names, visible)
        return
    long = items is not None and isinstance(items.count, int) and items.count > UNROLLED
    if items is not None and long and go_on is None and rolled(items, body, state_of, appended=appended, lenient=False):
        exhaust(iterable)
        return
    objects = listed_objects(iterable) if items is None and go_on is None else None
    if objects is not None and rolled(
        objects.items(), objects.trip(body, get), state_of, appended=appended, lenient=False
    ):
        put(objects.left(get()))
        return
    run_through(iterable, items, body, go_on, get, put, names, visible, appended, count)


def checked(value: Value | None) -> Value:
    assert value is not None
    return value


def rolled(
    items: Items, body: Callable[[Any], Any], state_of: Callable[[], State], label: str = "for",
    appended: Appended = None, lenient: bool = True,
) -> bool:  # fmt: skip
    """Try to make a long loop one region; what it did is undone where it cannot be. ``lenient``: see `LoopRegion`."""
    trace = current_trace()
    assert isinstance(items.count, int)
    mark, code, before = Mark(trace), None, NEVER
    place = current_span()
    where = "" if place is None else f" at {place.label()}"

    def trip(k: Value | int | None) -> None:
        items.require_unchanged()
        body(items.at(k if isinstance(k, int) else index_of(checked(k), items.count)))
        items.require_unchanged()

    try:
        state = state_of()
        code = statement_of(state)
        before = trace.refusals.get(code, NEVER)
        if before.are_enough(items.count):
            raise Refused(before.why)
        for_region(items.count, trip, state, label, Appending(appended), lenient)
    except MustRetrace:
        raise
    except (*FAILURES, Inside) as error:
        if isinstance(error, Inside) and error.attempt.begins_anew():
            mark.back()
            raise
        why = (getattr(error, "message", str(error)) or "a try is around it").splitlines()[0]
        why = AS_A_KEY if why == UNHASHABLE else why
        if items.count > MOST_UNROLLED:
            raise MustRetrace(f"a loop of {items.count} trips cannot be one region: {why}") from None
        mark.back()
        trace.rolled.append(f"the loop of {items.count} trips{where}: unrolled, {why}")
        if code is not None and all(around.loop is None for around in trace.around()):
            trace.refusals[code] = before.again(why, items.count)
        return False
    trace.refusals.pop(code, None)
    trace.rolled.append(f"the loop of {items.count} trips{where}: one region")
    return True


def run_through(
    iterable: Iterable[Any], items: Items | None, body: Callable[[Any], Any], go_on: Callable[[], Any] | None,
    get: Any, put: Any, names: tuple[str, ...], visible: Any, appended: Appended, references: int,
) -> None:  # fmt: skip
    """Trip by trip, until a traced condition decides whether the loop goes on, or there is much to write out."""
    trace = current_trace()
    length = len(iterable) if isinstance(iterable, Sized) else 1
    copies, operations = trace.copies, trace.builder.operations
    iterator: Iterator[Any] = iter(iterable)
    state_of = functools.partial(State, get, put, names, visible)
    code = getattr(get, "__code__", None)
    settling = Settling(items, state_of, appended) if go_on is None else None
    count = items.count if items is not None and isinstance(items.count, int) else length
    growing = Growing(count, trace) if go_on is None and is_short(items) else None
    try:
        trace.copies = copies * max(count, 1)
        for position, item in enumerate(iterator):
            start = len(operations)
            if position == 0 and go_on is None and is_short(items) and trace.outermost is None and not guided(trace):
                outermost = Outermost(Before(trace, get, put, names, visible), code)
                if outermost.is_region(items, item, body, state_of, appended):
                    exhaust(iterable)
                    return
            else:
                sized_trip(body, item, code, trace.copies // copies)
            if go_on is None:
                if position == 0 and is_short(items):
                    trip = size_of(operations[start:])
                    much = trip * trace.copies > MOST_WRITTEN_OUT
                    if much and trace.outermost is not None:
                        trace.sizes[code] = trip
                        raise Much(trace.outermost, trip * (trace.copies // copies))
                    if much and items.count != 2 and rolled(items.after(1), body, state_of, appended=appended):
                        exhaust(iterable)
                        return
                    growing = None if much else growing
                elif growing is not None and is_short(items):
                    if growing.is_much(position, start):
                        growing = None
                        if rolled(items.after(position + 1), body, state_of, appended=appended):
                            exhaust(iterable)
                            return
                elif settling is not None and settling.settled():
                    trace.copies = copies
                    if settling.rolled(position + 1, body):
                        exhaust(iterable)
                        return
                    trace.copies, settling = copies * length, settling.watching()
                continue
            answer = go_on()
            if unknown(answer):
                require_own(iterable, references)
                if items is not None and isinstance(items.count, int) and items.count - position > 3:
                    rest_region(items, position + 1, body, go_on, get, put, names, visible)
                    exhaust(iterable)
                    return
                for more, other in enumerate(iter(functools.partial(advanced, iterator), END)):
                    if more > MOST_ENDED and not isinstance(iterable, Sized):
                        raise Refused(f"a for makes more than {MOST_ENDED} trips, and a value says when it ends")
                    answer = go_on()
                    if not unknown(answer) and not answer:  # it ends here at the latest: ``if k > 50: break``
                        return
                    if_(answer, functools.partial(body, other), lambda: None, get, put, names, visible)
                return
            if not answer:
                return
    finally:
        trace.copies = copies


def sized_trip(body: Callable[[Any], Any], item: Any, code: CodeType | None, trips: int) -> None:
    """A trip of a loop in the first one of another, whose size is noted where there is too much in it."""
    try:
        body(item)
    except Much as much:
        current_trace().sizes[code] = much.size
        much.size *= trips
        raise


class Outermost:
    """The outermost of short loops in each other, in its first trip.

    Where there is much to write out, all of its trips are one region, with the loops in it. If each of the loops had
    its own first trip written out, there would be two bodies of the innermost one for each loop around it.
    """

    def __init__(self, before: Before, code: CodeType | None) -> None:
        """``code``: what tells the statement from others."""
        self.code = code
        self.trace, self.before, self.mark = before.trace, before, Mark(before.trace)
        self.said = len(self.trace.rolled)

    def is_region(
        self, items: Items, item: Any, body: Callable[[Any], Any], state_of: Callable[[], State], appended: Appended
    ) -> bool:
        """Make the first trip, or all of them as one region; whether that is so."""
        try:
            if not self.was_region(items) and not self.is_much() and self.begun(items, item, body):
                return False
            self.before.restore()
            self.mark.back()
            del self.trace.rolled[self.said :]
        finally:
            self.before.end()
        if rolled(items, body, state_of, appended=appended, lenient=False):
            return True
        body(item)
        return False

    def was_region(self, items: Items) -> bool:
        """Whether there was much to write out in the round before of a loop around it."""
        state = self.before.state
        assert isinstance(items.count, int)
        if self.before.refused is not None or state is None:
            return False
        return scope_of(self.trace).was_region(state, items.count)

    def is_much(self) -> bool:
        """Whether the first trip, made where there are more loops around it, was found to be too much here too."""
        size = self.trace.sizes.get(self.code, 0)
        return self.before.refused is None and size * self.trace.copies > MOST_WRITTEN_OUT

    def begun(self, items: Items, item: Any, body: Callable[[Any], Any]) -> bool:
        """Make the first trip; whether the others may be written out too, as far as it is known."""
        trace = self.trace
        if self.before.refused is not None:
            body(item)
            return True
        trace.outermost = self
        try:
            body(item)
        except Much as much:
            if much.loop is not self:
                raise
            trace.sizes[self.code] = much.size
            return False
        finally:
            trace.outermost = None
        if items.count == 2:  # one more copy of a body in which no loops multiply
            return True
        return size_of(trace.builder.operations[self.mark.operations :]) * trace.copies <= MOST_WRITTEN_OUT


class Settling:
    """A long loop whose first trips change the kinds of variables: ``last = None``, a window that is being filled.

    Where a trip leaves all of the kinds that it found, the rest may be one region, as the whole was not.
    """

    def __init__(self, items: Items | None, state_of: Callable[[], State], appended: Appended) -> None:
        self.items, self.state_of, self.appended = items, state_of, appended
        self.trips = 0
        self.kinds: Any = None
        long = items is not None and isinstance(items.count, int) and items.count > UNROLLED
        self.watched = long
        self.alike = True
        """Whether lists count as alike that have items of the same kinds somewhere: a trip may assign one of each."""
        self.exactly = False
        """Whether the last trip has left the kinds of each item."""
        if long:
            self.said = len(current_trace().rolled) - 1
            """The place of what was said of the whole."""
            self.kinds = self.found()

    def found(self) -> Any:
        """The kinds of the variables, and of what is in containers but for the lists that columns stand for."""
        lists = [] if self.appended is None else [pair[0] for pair in self.appended() if only_filled(*pair)]
        state = self.state_of()
        snapshot = state.capture()
        held = zip(state.containers, snapshot.structures, snapshot.elements, strict=True)
        parts = [(type(x), kept, kinds_of(items)) for x, kept, items in held if all(x is not grown for grown in lists)]
        return kinds_of(snapshot.variables), parts

    def settled(self) -> bool:
        """Whether, after trips that did not, the last trip has left all of the kinds that it found."""
        if not self.watched:
            return False
        before, self.kinds = self.kinds, self.found()
        self.trips += 1
        self.exactly = bool(before == self.kinds)
        same = self.exactly or (self.alike and without_places(before) == without_places(self.kinds))
        self.watched = not same and self.trips < MOST_SETTLING
        return same

    def watching(self) -> Settling | None:
        """Go on, if the other trips were no region though only lists were found to be alike."""
        if self.exactly or not self.alike:
            return None
        self.alike, self.watched = False, True
        return self

    def rolled(self, done: int, body: Callable[[Any], Any]) -> bool:
        """Try to make the other trips one region, which is then what is said of the loop."""
        assert self.items is not None and isinstance(self.items.count, int)
        said = current_trace().rolled
        before = len(said)
        if self.items.count - done <= UNROLLED or not rolled(
            self.items.after(done), body, self.state_of, appended=self.appended
        ):
            if not self.exactly:
                del said[before:]
            return False
        del said[self.said]
        return True


def without_places(kinds: tuple[Any, Any]) -> tuple[Any, Any]:
    """The kinds of what is in lists without the places where they are."""
    variables, parts = kinds
    return variables, [(cls, kept, distinct(found) if cls is list else found) for cls, kept, found in parts]


def distinct(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def kinds_of(values: Sequence[Any]) -> list[Any]:
    """What a region could tell apart of values: their structure, and the kinds of numbers and arrays in them."""
    found: list[Any] = []
    for value in values:
        leaves, tree = structure_of(value)
        found.append((tree, [kind_of(leaf) or type(leaf) for leaf in leaves]))
    return found


def is_short(items: Items | None) -> TypeGuard[Items]:
    """Whether a loop may be written out, and could be a region."""
    return items is not None and isinstance(items.count, int) and 2 <= items.count <= UNROLLED


def exhaust(iterable: Any) -> None:
    """Leave an iterator at its end, as a loop does."""
    if isinstance(iterable, Series):
        iterable.made = iter(())


def rest_region(
    items: Items, position: int, body: Callable[[Any], Any], go_on: Callable[[], Any], get: Any, put: Any,
    names: tuple[str, ...], visible: Any,
) -> None:  # fmt: skip
    """The items from a position on, as long as traced flags let the loop go on."""
    counter: list[Any] = [from_value(value_as(position, COUNT), True, True)]  # traced in the first trip too
    count: Any = items.count if isinstance(items.count, int) else from_value(items.count, True, True)

    def get_all() -> tuple[Any, ...]:
        return (*get(), counter[0])

    def put_all(values: tuple[Any, ...]) -> None:
        put(values[:-1])
        counter[0] = values[-1]

    def test() -> Any:
        from srcgrad.tracing.conversion.branches import and_

        return and_(counter[0] < count, go_on)

    def trip(_: Value | None) -> None:
        k = counter[0]
        if isinstance(items.count, int):
            k.affine = between(Affine({}, position), Affine({}, items.count - 1))
        body(items.at(k))
        counter[0] = k + 1

    state = State(get_all, put_all, (*names, "_sg_index"), visible)
    while_region(test, trip, state, False, "for")
