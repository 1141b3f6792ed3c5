"""Which of several arrays are one object, and which are different objects over the same memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["AliasPattern", "alias_groups"]


class AliasPattern(NamedTuple):
    """Which arrays are one and which overlap.

    `groups[i]` is the index of the first value that is the same array object as value i; `overlapping` are the pairs of
    different array objects that share memory.
    """

    groups: tuple[int, ...]
    overlapping: tuple[tuple[int, int], ...]


def alias_groups(values: Sequence[object]) -> AliasPattern | None:
    """How the arrays among `values` alias one another; None if they are all different and share no memory. Other values
    never alias.

    >>> first = np.zeros(3)
    >>> alias_groups([first, 2.0, first, first[1:], np.zeros(3)])
    AliasPattern(groups=(0, 1, 0, 3, 4), overlapping=((0, 3),))
    """
    first: dict[int, int] = {}
    groups = tuple(
        first.setdefault(id(value), index) if isinstance(value, np.ndarray) else index
        for index, value in enumerate(values)
    )
    arrays: list[tuple[int, Any]] = [(index, values[index]) for index in first.values()]
    owners = [array if array.base is None else array.base for _, array in arrays]
    # Arrays that own their memory, or are views of different ones that do, cannot overlap; other owners (buffers,
    # files) may.
    plain = all(type(owner) is np.ndarray and owner.base is None for owner in owners)
    overlapping: tuple[tuple[int, int], ...] = ()
    if not plain or len({id(owner) for owner in owners}) < len(owners):
        pairs = itertools.combinations(arrays, 2)
        overlapping = tuple((i, j) for (i, one), (j, other) in pairs if _share_memory(one, other))
    if not overlapping and len(first) == sum(isinstance(value, np.ndarray) for value in values):
        return None
    return AliasPattern(groups, overlapping)


def _share_memory(one: Any, other: Any) -> bool:
    try:
        # Bounded work: the exact question is NP-hard for general strides.
        work: Any = 1000
        return bool(np.shares_memory(one, other, max_work=work))
    except np.exceptions.TooHardError:
        return True
