"""The order in which functions are simplified, before and after differentiation.

The passes that only loops have are imported when a function has one: most processes never need them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from srcgrad.ir.core import Function
from srcgrad.ir.passes.contained import has_parts, taken_from_others
from srcgrad.ir.passes.dce import dce
from srcgrad.ir.passes.expand import expand, needs_expansion
from srcgrad.ir.passes.fold import Evaluator, make_folder
from srcgrad.ir.passes.kinks import aged, has_signs, has_slopes, smoothed
from srcgrad.ir.passes.loops import has_control, has_literals, has_loops, tidy
from srcgrad.ir.passes.masks import carries_masks, without_masks
from srcgrad.ir.passes.rewrite import Fired, rewrite
from srcgrad.ir.passes.rules import FINAL, take_limits
from srcgrad.ir.verify import verify as verify_function

VERIFY_VARIABLE: Final = "SRCGRAD_VERIFY"


def always(function: Function) -> bool:
    return True


class Pass(NamedTuple):
    """A name, and a pure function that also reports the rules that fire to a list, if it is given one.

    Functions of which ``applies`` does not hold are passed on without it.
    """

    name: str
    apply: Callable[[Function, list[Fired] | None], Function]
    applies: Callable[[Function], bool] = always


class PassRecord(NamedTuple):
    """What one pass did: operations before and after (in regions too), rules that fired, the text of the result."""

    name: str
    before: int
    after: int
    fired: tuple[Fired, ...]
    text: str | None


class Pipeline:
    """Passes, one after the other.

    Args:
        passes: what to run.
        log: keep a `PassRecord` of each pass of each run in ``records``; a logging pipeline belongs to one thread.
        verify: check each result; by default, whether the environment variable ``SRCGRAD_VERIFY`` is 1.
        text: keep the text of each result in its record.

    >>> import srcgrad.ir.ops
    >>> from srcgrad.ir.core import Builder
    >>> from srcgrad.ir.opdef import Term
    >>> from srcgrad.ir.types import FLOAT64, ArrayType
    >>> builder = Builder()
    >>> x = Term(builder, builder.param(ArrayType(FLOAT64), "x"))
    >>> unused, result = x + 1.0, x * 2.0
    >>> pipeline = Pipeline([DCE], log=True)
    >>> _ = pipeline.run(builder.function("f", [result.value]))
    >>> pipeline.records
    [PassRecord(name='dce', before=2, after=1, fired=(), text=None)]
    """

    __slots__ = ("log", "passes", "records", "text", "verify")

    def __init__(
        self, passes: Iterable[Pass], log: bool = False, verify: bool | None = None, text: bool = False
    ) -> None:
        self.passes = tuple(passes)
        self.log = log
        self.verify = os.environ.get(VERIFY_VARIABLE) == "1" if verify is None else verify
        self.text = text
        self.records: list[PassRecord] = []

    def run(self, function: Function) -> Function:
        """The function after all passes.

        Raises:
            VerifyError: a pass gave a function that is not valid, and ``verify`` is on.
        """
        for name, apply, applies in self.passes:
            if not applies(function):
                continue
            fired: list[Fired] | None = [] if self.log else None
            result = apply(function, fired)
            if self.verify:
                verify_function(result)
            if fired is not None:
                text = str(result) if self.text else None
                self.records.append(PassRecord(name, count(function), count(result), tuple(fired), text))
            function = result
        return function


def count(function: Function) -> int:
    return sum(1 for _ in function.walk())


def elements_as_numbers(function: Function, fired: list[Fired] | None) -> Function:
    from srcgrad.ir.passes import elements

    return elements.elements_as_numbers(function)


def rows_apart(function: Function, fired: list[Fired] | None) -> Function:
    from srcgrad.ir.passes import at_once

    return at_once.rows_apart(function)


def as_written(function: Function, fired: list[Fired] | None) -> Function:
    from srcgrad.ir.passes import same_places

    return same_places.as_written(function)


def written_once(function: Function, fired: list[Fired] | None) -> Function:
    from srcgrad.ir.passes import same_places

    return same_places.written_once(function)


def trips_at_once(function: Function, fired: list[Fired] | None) -> Function:
    from srcgrad.ir.passes import at_once

    return at_once.trips_at_once(function)


def arrays_as_before(function: Function, fired: list[Fired] | None) -> Function:
    from srcgrad.ir.passes import at_once

    return at_once.arrays_as_before(function)


def without_moved(function: Function, evaluate_operation: Evaluator) -> Function:
    from srcgrad.ir.passes import at_once

    return at_once.without_moved(function, evaluate_operation)


def without_zeros(function: Function, fired: list[Fired] | None) -> Function:
    from srcgrad.ir.passes import zeros

    return zeros.without_zeros(function, fired)


DCE: Final = Pass("dce", lambda function, fired: dce(function))
LIVE: Final = Pass("dce", lambda function, fired: dce(function), has_loops)
EXPAND: Final = Pass("expand", lambda function, fired: expand(function), needs_expansion)
"""Ops that no backend runs are written out."""
PARTS: Final = Pass("parts", lambda function, fired: taken_from_others(function), has_parts)
"""What is part of another result is taken from it."""
LOOPS: Final = Pass("loops", lambda function, fired: tidy(function), has_control)
"""What the regions of control flow need not do leaves them."""
ELEMENTS: Final = Pass("elements", elements_as_numbers, has_loops)
"""Elements that all trips of a loop share are numbers."""
ROWS: Final = Pass("rows", rows_apart, has_loops)
"""Rows that all trips of a loop share are arrays of their own."""
AS_WRITTEN: Final = Pass("as written", as_written, has_loops)
"""What has just been written at a place is not read there."""
ONCE: Final = Pass("once", written_once, has_loops)
"""What is written, and written again, is written once."""
AT_ONCE: Final = Pass("at once", trips_at_once, has_loops)
"""Loops whose trips do not need each other are operations on arrays."""
AS_BEFORE: Final = Pass("as before", arrays_as_before, has_loops)
"""Loops whose trips can be made at once so read arrays as they were before."""
LITERALS: Final = Pass("literals", lambda function, fired: tidy(function), has_literals)
"""What has become a literal stands in the regions that read it."""
MASKS: Final = Pass("masks", without_masks, carries_masks)
"""Masks that hold wherever they are read are not read."""
ZEROS: Final = Pass("zeros", without_zeros, carries_masks)
"""Zeros are not put where there are zeros."""
AGED: Final = Pass("aged", lambda function, fired: aged(function), has_signs)
"""Slopes of abs from earlier differentiations are told from those to come."""
KINKS: Final = Pass("kinks", smoothed, has_slopes)
"""Products of two slopes of abs are what they are from either side, and others are signs."""
LIMITS_IN_LOOPS: Final = Pass("limits", take_limits, has_loops)
"""Limit rules while it is seen what the trips of loops share, which is computed before them then."""
LIMITS: Final = Pass("limits", take_limits)
"""Limit rules; equal operations are merged in the same sweep."""


def simplification(evaluate_operation: Evaluator | None = None, applies: Callable[[Function], bool] = always) -> Pass:
    """Folding (given an evaluator), the final rules, and merging of equal operations, in one sweep."""
    folder = None if evaluate_operation is None else make_folder(evaluate_operation)
    return Pass("simplify", lambda function, fired: rewrite(function, FINAL, folder, fired), applies)


def moves(evaluate_operation: Evaluator) -> Pass:
    """Loops whose trips can be made at once so hand on nothing which they only move about."""
    return Pass("moved", lambda function, fired: without_moved(function, evaluate_operation), has_loops)


def prepare(function: Function) -> Function:
    """What is done before differentiation: dead code leaves, equal operations merge, and limit rules apply."""
    return Pipeline(PREPARE).run(function)


def optimise(function: Function, evaluate_operation: Evaluator | None = None) -> Function:
    """What is done when nothing is to be differentiated any more, which also lets ``stop_gradient`` go."""
    return Pipeline(optimisation(evaluate_operation)).run(function)


PREPARE: Final = (DCE, AGED, LIMITS_IN_LOOPS, LOOPS, ELEMENTS, AS_BEFORE, ROWS, MASKS, LIMITS, AS_WRITTEN, DCE)


def optimisation(evaluate_operation: Evaluator | None = None) -> tuple[Pass, ...]:
    """The passes of `optimise`; dead code leaves first too, so that no time goes into it.

    Loops are simplified before they are looked at as a whole: masks that are known seem to depend on their trips.
    """
    simplify, simplify_loops = simplification(evaluate_operation), simplification(evaluate_operation, has_loops)
    moved = () if evaluate_operation is None else (moves(evaluate_operation),)
    loops = (LOOPS, ELEMENTS, MASKS, LITERALS, simplify_loops, ZEROS, LIVE, LOOPS, *moved, AT_ONCE, ROWS, ONCE)
    return (DCE, KINKS, EXPAND, PARTS, *loops, simplify, LITERALS, DCE)
