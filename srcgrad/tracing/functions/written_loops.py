"""Rules that are loops of Python's, converted as the user's are: each becomes one region."""

from __future__ import annotations

from typing import Any

import numpy as np


def apply_each(ufunc: np.ufunc, elements: Any, places: Any, *values: Any) -> None:
    """``ufunc.at`` of one axis: an element for each place, in their order."""
    for k in range(len(places)):
        elements[places[k]] = ufunc(elements[places[k]], *[value[k] for value in values])
