"""What a Python function reaches besides its arguments, and how to notice that it has changed.

`analyze` walks the bytecode of a function, and of the user functions that it reaches. Each name read from outside is
one of
 - a hidden input (float, complex, NumPy scalar, array): read anew at each call;
 - a guard (ints, strings, tuples of them, modules, pure functions): compared at each call;
 - another user function, compared by its code and searched in turn.
Whatever else it meets (containers, attributes of objects, writes to globals, calls that are not known to be pure) makes
the function `Uncacheable`, with the reason. `Captures.bind` is the generated test of all guards, which also reads the
hidden inputs; `Captures.rebuild` is the function with tracers in their place. A `Captures` holds code, modules, pure
functions and static values, and never a user's function or array.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

from srcgrad.tracing.aliasing import AliasPattern, alias_groups
from srcgrad.tracing.analysis import Analysis
from srcgrad.tracing.bytecode import Refusal
from srcgrad.tracing.purity import class_reason
from srcgrad.tracing.rebuild import COPIED, Hidden, reached, rebuild
from srcgrad.tracing.trace import CURRENT

__all__ = ["AliasPattern", "Captures", "Hidden", "Uncacheable", "alias_groups", "analyze"]


class Uncacheable(NamedTuple):
    """Why a function has to be traced at each call, with the file and line of the instruction that decided it."""

    reason: str
    reads: int = 0
    """How much was looked at until that was known."""


class Captures:
    """What a cacheable function reads from outside: see `analyze`.

    `hidden`: the hidden inputs, one per path.
    `bind(function)`: for a function of the same code, `(values, alias_pattern)`: the hidden inputs read now and
    `alias_groups(values)`; None if a guard fails. The function may be another one than was analysed: closures of one
    code each bring their own values.
    `code_key`: hashable identity of the code reached, free of `id(function)`.
    `local_attributes`: the attribute names read from arguments and other local values (see `class_reason`).
    """

    __slots__ = (
        "_followed", "_plan", "_report", "about", "asks", "bind", "came_to", "code_key", "copies", "hidden",
        "local_attributes", "results", "source", "unreached",
    )  # fmt: skip

    def __init__(self, analysis: Analysis) -> None:
        self._plan: Final = analysis.plan
        self._report: Final = tuple(analysis.report)
        self.hidden: Final[tuple[Hidden, ...]] = tuple(analysis.hidden)
        self.code_key: Final[tuple[Hashable, ...]] = tuple(analysis.identity)
        self.local_attributes: Final = frozenset(analysis.local_attributes)
        kinds = COPIED if not analysis.plan.assigned else (*COPIED, "class", "function")
        held = any(node.kind in kinds or node.kept for node in analysis.plan.nodes)
        self.copies: Final = held or bool(analysis.plan.rebound)
        """Whether a trace gets copies of containers, objects or globals, or watches what it assigns of classes and
        functions.
        """
        self.asks: Final = analysis.asks
        """Whether a trace is told which attributes are watched, and raises `Unread` where it reads others."""
        self.results: Final = analysis.results
        """What traces have asked caches for, as far as it is known."""
        self.unreached: Final = analysis.unreached
        """By code and file, the blocks that were not looked at: a trace that comes to one has no program."""
        self.came_to: Final[set[str]] = set()
        """Why those are passed over that traces have come to: in another function of this code they may not be."""
        self.about: Any = None
        """Which function was analysed, where something is passed over: `waiting.About`."""
        self._followed: Final = frozenset(analysis.followed)
        self.source: Final = analysis.generate()
        names = dict(analysis.constants)
        exec(compile(self.source, "<guards>", "exec"), names)
        self.bind: Final[Callable[[Any], tuple[tuple[Any, ...], AliasPattern | None] | None]] = names["bind"]

    def rebuild(self, function: Any, replacements: Sequence[object]) -> Any:
        """A copy of `function` (and of the helpers that lead there) in which `replacements[i]` stands for `hidden[i]`.

        `function` must just have passed `bind`. Code objects, names and line numbers are the user's; helpers that reach
        no hidden input are shared. A transformed function is copied by its `__srcgrad_rewrap__(inner)`.
        """
        trace = CURRENT.get()
        if self.asks and trace is not None:
            trace.attributes = self.local_attributes
        if trace is not None:
            trace.unreached, trace.came_to, trace.results = self.unreached, self.came_to, self.results
            trace.rebinds = self._plan.rebinds
        return rebuild(self._plan, function, replacements)

    def serves(self, function: Any) -> bool:
        """Whether a function that has passed `bind` need not be analysed for itself: of one that reads other objects,
        what traces have come to may be no reason to pass it over.
        """
        return not self.came_to or self.about is None or bool(self.about.is_about(function))

    def containers(self, function: Any) -> list[Any]:
        """The captured containers and objects of which a trace gets copies."""
        objects = reached(self._plan, function)
        return [thing for thing, node in zip(objects, self._plan.nodes, strict=True) if node.kind in COPIED]

    def class_reason(self, cls: type) -> str | None:
        """Why an argument of class `cls` would make this function uncacheable (its own methods or properties run); None
        if it does not.
        """
        return None if cls in self._followed else class_reason(cls, self.local_attributes)

    def explain(self) -> str:
        """The hidden inputs and the guards, one per line."""
        return "\n".join(self._report)


def analyze(
    function: Any,
    *,
    is_pure: Callable[[object], bool],
    floats_static: bool = False,
    kind: Callable[[Callable[[object], bool], bool], Analysis] = Analysis,
    classes: frozenset[type] = frozenset(),
) -> Captures | Uncacheable:
    """What `function` reads besides its arguments, or why a program made from it cannot be cached.

    `function` is a Python function, a partial of one, or a transformed function: an object with `__srcgrad_wrapped__`
    (the inner function, or a tuple of functions and None), `__srcgrad_static__` (a hashable description of the
    transforms) and `__srcgrad_rewrap__(*inner)` (the same transforms of other functions).
    `is_pure(object)` says whether a callable or module needs no more than a guard on its identity; the object may be
    unhashable.
    `kind`: how far the analysis goes; `classes`: those of the arguments, whose methods it follows where it follows
    those of captured objects. With `floats_static`, floats, complex numbers and NumPy scalars are guards
    instead of hidden inputs.

    >>> scale = 2.0
    >>> captures = analyze(lambda x, scale=scale: x * scale, is_pure=lambda value: False)
    >>> captures.hidden
    (Hidden(path='default scale of <lambda>', kind='float'),)
    >>> captures.rebuild(lambda x, scale=scale: x * scale, [10.0])(1.0)
    10.0
    """
    other: Analysis | None = kind(is_pure, floats_static)
    reads = 0
    while other is not None:
        analysis = other
        try:
            analysis.run(function, classes)
            other = analysis.again()
        except Refusal as refusal:
            other = analysis.without(refusal)
            reads += len(analysis.plan.edges)
            if other is None:
                return Uncacheable(str(refusal), reads)
    return Captures(analysis)
