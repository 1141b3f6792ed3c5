"""An analysis as it was before it looked at a function, so that it can look again where a block of that is passed over.

To begin anew for each block would be to look at all functions as often as there are blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from srcgrad.tracing.reach import ObjectAnalysis

OF_SETS: Final = frozenset({"inner", "noted"})
"""The attributes that are dicts of sets which grow; what else is in containers is never changed, or the user's."""


class Savepoint:
    """All that an analysis has found so far."""

    def __init__(self, analysis: ObjectAnalysis) -> None:
        parts = [analysis, analysis.plan, analysis.journals, *analysis.plan.nodes]
        self.held = [(part, [(k, x, copied(k, x)) for k, x in vars(part).items()]) for part in parts]

    def restore(self) -> None:
        """Others may know a container by identity: it is given back what it had."""
        for part, held in self.held:
            for name, value, before in held:
                setattr(part, name, value)
                if type(value) is list:
                    value[:] = before
                elif type(value) in (set, dict):
                    value.clear()
                    value.update(before)


def copied(name: str, value: Any) -> Any:
    """A copy of a container; there is none of anything else."""
    if type(value) is dict and name in OF_SETS:
        return {key: item.copy() if type(item) is set else item for key, item in value.items()}
    return value.copy() if type(value) in (list, set, dict) else None
