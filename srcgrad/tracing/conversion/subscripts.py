"""Elements that are read and assigned in converted code: ``container[index]``, of whatever container."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from srcgrad.errors import UnsupportedError
from srcgrad.tracing.built_on import is_view_of_dict, viewed
from srcgrad.tracing.conversion.calls import call, constant_array, deferring, listed
from srcgrad.tracing.conversion.entries import EntryTarget, pairs_of
from srcgrad.tracing.conversion.filled import filled_of
from srcgrad.tracing.conversion.identity import require_no_pick
from srcgrad.tracing.conversion.placed_texts import PlacedText, held_for, refuse
from srcgrad.tracing.guards import answer
from srcgrad.tracing.indexing import holds_tracer
from srcgrad.tracing.tables import KINDS
from srcgrad.tracing.trace import CURRENT
from srcgrad.tracing.tracer import Deferring, Tracer, as_tracer, contains_tracer

CONCATENATORS: Final = (type(np.r_), type(np.c_))


def getitem(container: Any, index: Any) -> Any:
    """``container[index]``: a real array or a list may be indexed by traced integers."""
    if isinstance(container, Tracer):
        return container[index]
    filled = filled_of(container)
    if filled is not None:
        return filled[index]
    if container is os.environ:
        return of_environment(index)
    if is_view_of_dict(container):
        container = viewed(container)
    if type(container) in CONCATENATORS and (contains_tracer(index) or deferring((index,))):
        return joined(container, index)
    if type(container) is np.ndarray and (traced_index(index) or traced_slice(index) or deferring((index,))):
        if container.dtype.kind in KINDS:
            from srcgrad.tracing.conversion.labelled import labelled  # which is written with this module

            return labelled(container)[index]
        return constant_array(container)[index]
    if type(container) is dict and isinstance(index, Deferring):
        from srcgrad.tracing.conversion.labelled import Labelled, entry

        if isinstance(index, Labelled):
            return entry(container, index)
    if type(index) is PlacedText:
        return held_for(container, index) if isinstance(container, dict) else refuse()
    if type(container) is list and isinstance(index, slice) and traced_slice(index):
        from srcgrad.tracing.conversion.choices import stretch

        return stretch(container, index)
    if not traced_index(index):
        return container[index]
    unknown = isinstance(container, (list, tuple, dict, str)) and unknown_place(index)
    if unknown and (index.scalar or index.ndim == 0):
        number = answer(index, "an index")
        if number is not None:
            return container[np.asarray(number).item()]
    if unknown:
        from srcgrad.tracing.conversion.choices import chosen  # which is written with this module

        return chosen(container, index)
    return container[index]


def of_environment(name: Any) -> str:
    """``os.environ[name]``, read at each call."""
    found: str | None = call(os.environ.get, name)
    if found is None:
        raise KeyError(name)
    return found


def joined(builder: Any, key: Any) -> Any:
    """``np.r_[x, 1.0]`` and ``np.c_[x, y]``."""
    items = list(key) if isinstance(key, tuple) else [key]
    axis, ndmin, placed = builder.axis, builder.ndmin, builder.trans1d
    if isinstance(items[0], str):
        directive = items.pop(0)
        if directive in ("r", "c"):
            raise UnsupportedError(f"np.r_[{directive!r}, …] makes a matrix", hint="leave the text out")
        said = [int(part) for part in directive.split(",")]
        axis, ndmin, placed = said + [axis, ndmin, placed][len(said) :]
    plain = [builder[item] if isinstance(item, slice) else as_tracer(item) if listed(item) else item for item in items]
    if deferring((plain,)) and builder is np.r_ and (axis, ndmin) == (0, 1):
        return np.concatenate([x if isinstance(x, Deferring) else as_tracer(np.atleast_1d(x)) for x in plain])
    dtype = np.result_type(*[x.dtype if isinstance(x, Tracer) and not x.weak else zero_like(x) for x in plain])
    return np.concatenate([raised(as_tracer(as_tracer(x), dtype), ndmin, placed) for x in plain], axis)


def zero_like(x: Any) -> Any:
    """What a number or an array says of the dtype of a result."""
    if isinstance(x, Tracer):
        return {"f": 0.0, "c": 0j, "i": 0, "b": False}[x.dtype.kind]
    return x if isinstance(x, (int, float, complex)) else np.asarray(x).dtype


def raised(x: Any, ndmin: int, placed: int) -> Any:
    """An operand of ``np.r_`` with at least that many axes, its own at the place that the directive gives."""
    new = ndmin - x.ndim
    found = x.reshape((1,) * max(new, 0) + x.shape)
    if new <= 0 or placed == -1:
        return found
    first = placed + (new + 1 if placed < 0 else 0)
    axes = list(range(ndmin))
    return found.transpose(axes[:first] + axes[new:] + axes[first:new])


def unknown_place(index: Any) -> bool:
    """Whether this is a traced integer whose number is not known."""
    return isinstance(index, Tracer) and index.number() is None and index.dtype.kind in "iub"


def target(container: Any) -> Any:
    """What an element is assigned to: a list may be given a traced place, a dict a traced key."""
    if type(container) not in (list, dict) or CURRENT.get() is None:
        return container
    require_no_pick(container)
    if type(container) is dict:
        pairs = pairs_of(container)
        if pairs is not None:
            return EntryTarget(pairs)
    from srcgrad.tracing.conversion.choices import DictTarget, ListTarget  # which are written with this module

    return DictTarget(container) if type(container) is dict else ListTarget(container)


def traced_index(index: Any) -> bool:
    if isinstance(index, tuple):
        return any(isinstance(item, Tracer) for item in index)
    return isinstance(index, Tracer)


def traced_slice(index: Any) -> bool:
    """Whether a slice among the entries of an index has a traced bound."""
    entries = index if isinstance(index, tuple) else (index,)
    return any(isinstance(entry, slice) and holds_tracer(entry) for entry in entries)
