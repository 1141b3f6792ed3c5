"""All hard points."""

from __future__ import annotations

from tests.hard_points.complex_points import COMPLEX
from tests.hard_points.dtypes import DTYPES
from tests.hard_points.indexing import INDEXING
from tests.hard_points.kinks import ARRAYS, SCALARS
from tests.hard_points.linear_algebra import LINEAR_ALGEBRA
from tests.hard_points.points import Point, collected
from tests.hard_points.structure import STRUCTURE
from tests.hard_points.traps import TRAPS

POINTS: list[Point] = [
    *collected("kinks and limits", SCALARS, ARRAYS),
    *collected("linear algebra", LINEAR_ALGEBRA),
    *collected("indexing", INDEXING),
    *collected("dtype", DTYPES),
    *collected("complex", COMPLEX),
    *collected("structure", STRUCTURE, TRAPS),
]
