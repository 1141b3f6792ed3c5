"""What `cross_check` found: rows, and the table that people read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

AGREE, POLICY, DISAGREE, NOT_RUN = "agree", "policy", "DISAGREE", "not run"

QUANTITIES = {0: "value", 1: "derivative", 2: "second derivative"}


class Row(NamedTuple):
    """One comparison."""

    order: int
    """Of the derivative; 0 for the value."""
    left: str
    """What is checked: ``"numpy forward"``."""
    right: str
    """What it is checked against: ``"jax jacfwd"``, ``"differences"``."""
    ulp: float | None
    """The largest difference in units of the last place of the result's scale; None where nothing was run."""
    relative: float | None
    """The same, relative to the result's scale."""
    bound: float | None
    """What the worst entry was allowed, relative to the result's scale: for differences, their own error estimate."""
    verdict: str
    """``"agree"``, ``"policy"``, ``"DISAGREE"`` or ``"not run"``."""
    policies: tuple[str, ...] = ()
    """The sections of docs/policies.md that explain entries which differ."""
    note: str = ""


class CrossCheck(NamedTuple):
    """The result of `cross_check`; as text it is a table."""

    name: str
    rows: tuple[Row, ...]
    what: str
    """The size of the problem, and how derivatives were compared."""
    nearby: tuple[Row, ...] = ()
    """The comparisons at random points nearby, made where a policy explained a difference."""

    def __str__(self) -> str:
        lines = [f"cross_check({self.name}): {self.what}", *lines_of(self.rows)]
        if self.nearby:
            lines += ["at random points nearby:", *lines_of(self.nearby)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


HEADER = ("", "", "ulp", "relative", "bound", "")


def lines_of(rows: Sequence[Row]) -> list[str]:
    cells = [HEADER, *map(cells_of, rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(HEADER))]
    lines = []
    for row in cells:
        words = [
            word.ljust(width) if k in (0, 1, 5) else word.rjust(width)
            for k, (word, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(words)).rstrip())
    return lines


def cells_of(row: Row) -> tuple[str, ...]:
    verdict = row.verdict
    if row.policies:
        verdict += f": {', '.join(row.policies)}"
    if row.note:
        verdict += f" ({row.note})" if row.policies or row.verdict != NOT_RUN else f": {row.note}"
    return (
        QUANTITIES[row.order],
        f"{row.left} = {row.right}",
        "" if row.ulp is None else f"{row.ulp:.1f}" if row.ulp < 1e5 else f"{row.ulp:.1e}",
        "" if row.relative is None else f"{row.relative:.1e}",
        "" if row.bound is None else f"{row.bound:.1e}",
        verdict,
    )
