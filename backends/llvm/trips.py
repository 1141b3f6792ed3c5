"""Loops that count, in LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from srcgrad.backends.llvm.access import INT64
from srcgrad.backends.llvm.emitter import Emitter, Number, constant_of

LONG: Final = 300
"""The number of lines from which a loop is written so that LLVM does not know it as one."""
SHORT: Final = 64
"""The trips up to which LLVM does not see that a loop counts. What it would make of all places that follow from the
count took a sixth of its time, and what these loops take to run is as long without."""
Trip = Callable[[Number, list[Number]], list[Number]]


def counted_loop(
    e: Emitter, start: Number | int, stop: Number | int, step: int, carried: list[Number], trip: Trip
) -> list[Number]:
    """A loop of at least one trip: the carried values after it. One trip is written without a loop."""
    first = e.constant(start, INT64, 1) if isinstance(start, int) else start
    last = e.constant(stop, INT64, 1) if isinstance(stop, int) else stop
    begins, ends = constant_of(first), constant_of(last)
    if begins is not None and ends is not None and begins + step >= ends:
        return trip(first, carried)
    before, head, after = e.block, e.label("loop"), e.label("after")
    e.jump(head)
    e.start(head)
    index = Number(e.fresh(), INT64, 1)
    phis = [value._replace(text=e.fresh()) for value in carried]
    position = len(e.lines)
    short = ends is not None and ends <= SHORT * step and not e.plain  # level 0 makes nothing of it
    found = trip(e.hidden(index) if short else index, phis)
    if len(e.lines) - position > LONG and not e.plain:  # level 0 moves nothing
        _enter_twice(e, position, before, (first, last, step), (index, *phis), carried, found, after)
        return found
    following = Number(e.emit(f"add nuw nsw i64 {index.text}, {step}"), INT64, 1)
    end = e.block
    lines = [f"  {index.text} = phi i64 [ {first.text}, %{before} ], [ {following.text}, %{end} ]"]
    for phi, value, result in zip(phis, carried, found, strict=True):
        lines.append(f"  {phi.text} = phi {phi.type} [ {value.text}, %{before} ], [ {result.text}, %{end} ]")
    e.lines[position:position] = lines
    e.branch(e.compare("ult", following, last), head, after)
    e.start(after)
    return found


def _enter_twice(
    e: Emitter, position: int, before: str, bounds: tuple[Number, Number, int], phis: Sequence[Number],
    carried: Sequence[Number], found: Sequence[Number], after: str,
) -> None:  # fmt: skip
    """End a loop whose body is the lines from ``position`` on, and let it seem to have a second entry.

    What has two entries is no loop to LLVM. So it does not move the constants of a long body out of it, of which there
    are more than registers: that, and where to split what then is live all the time, took a third of its time. The
    second entry goes where the next index is found, one trip too early, so that it would be right as well.
    """
    first, last, step = bounds
    lines, end, head = e.lines[position:], e.block, e.lines[position - 1][:-1]
    del e.lines[position - 2 :]
    e.block = before
    following = e.label("following")
    never = e.compare("ne", e.hidden(e.constant(0, INT64, 1)), 0)
    early = e.integer("sub", first, step)
    e.branch(never, following, head)
    e.start(following)
    ahead = [value._replace(text=e.fresh()) for value in phis]
    for value, start, result in zip(ahead, (early, *carried), (phis[0], *found), strict=True):
        e.do(f"{value.text} = phi {value.type} [ {start.text}, %{before} ], [ {result.text}, %{end} ]")
    ahead[0] = e.integer("add", ahead[0], step)
    e.jump(head)
    e.start(head)
    for value, start, result in zip(phis, (first, *carried), ahead, strict=True):
        e.do(f"{value.text} = phi {value.type} [ {start.text}, %{before} ], [ {result.text}, %{following} ]")
    e.lines += lines
    e.block = end
    e.branch(e.compare("ult", e.integer("add", phis[0], step), last), following, after)
    e.start(after)
