"""``dataclasses.asdict`` and ``astuple``: the fields of a record, by names that its class says, are watched as those
which `getattr` reads are; so are those of records inside.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from srcgrad.tracing.conversion.attributes import getattr_
from srcgrad.tracing.conversion.calls import call, call_rule


def is_record(thing: Any) -> bool:
    return dataclasses.is_dataclass(thing) and not isinstance(thing, type)


def copied(value: Any, made: Callable[[Any], Any]) -> Any:
    """A copy, in which ``made`` stands for records: it is given what `made` makes of their items."""
    if is_record(value):
        return made([(field.name, copied(getattr_(value, field.name), made)) for field in dataclasses.fields(value)])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[copied(item, made) for item in value])
    if isinstance(value, (list, tuple)):
        return type(value)([copied(item, made) for item in value])
    if isinstance(value, dict):
        pairs = [(copied(key, made), copied(item, made)) for key, item in value.items()]
        return defaultdict(value.default_factory, pairs) if isinstance(value, defaultdict) else type(value)(pairs)
    return call(copy.deepcopy, value)


@call_rule(dataclasses.asdict)
def asdict(obj: Any, *, dict_factory: Any = dict) -> Any:
    if not is_record(obj):
        return dataclasses.asdict(obj)  # which raises
    return copied(obj, lambda items: call(dict_factory, items))


@call_rule(dataclasses.astuple)
def astuple(obj: Any, *, tuple_factory: Any = tuple) -> Any:
    if not is_record(obj):
        return dataclasses.astuple(obj)
    return copied(obj, lambda items: call(tuple_factory, [item for _, item in items]))
