"""Which classes are the user's, so that their code can be looked at."""

from __future__ import annotations

import collections
import collections.abc
import enum
import inspect
import sys
import types
from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, Protocol

import numpy as np
from numpy.polynomial import Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial
from numpy.polynomial._polybase import ABCPolyBase

from srcgrad.ir.source import internal
from srcgrad.tracing.built_on import BUILT_ON
from srcgrad.tracing.conversion.calls import MANAGING
from srcgrad.tracing.conversion.convert import library_file
from srcgrad.tracing.members import wrapped
from srcgrad.tracing.purity import has_static_members, is_generated, makes_plain_objects, static_key
from srcgrad.tracing.pytree import record_fields

SERIES: Final = (Polynomial, Chebyshev, Legendre, Hermite, HermiteE, Laguerre)
KNOWN: Final[Mapping[Any, frozenset[str]]] = {
    collections.UserDict: frozenset({"data"}),
    collections.UserList: frozenset({"data"}),
    collections.ChainMap: frozenset({"maps"}),
    **dict.fromkeys([getattr(collections.abc, name) for name in collections.abc.__all__], frozenset()),
    **dict.fromkeys((ABC, Generic, Protocol, *BUILT_ON), frozenset()),
    np.poly1d: frozenset({"coeffs", "_variable"}),
    **dict.fromkeys((ABCPolyBase, *SERIES), frozenset({"coef", "domain", "window", "_symbol"})),
}
"""Bases of users' classes that need not be looked at, and the attributes that they read: all that they do is to read
and write items, by what the user's class has for it.
"""


def is_named_tuple(value: Any) -> bool:
    """Whether a value is a tuple with names, which holds nothing else; what its class may run is asked at the end."""
    return isinstance(value, tuple) and record_fields(type(value)) is not None and not hasattr(value, "__dict__")


def is_record_tuple(cls: type) -> bool:
    """Whether a class is a tuple with names, of which no code of its own makes instances."""
    return record_fields(cls) is not None and is_generated(inspect.getattr_static(cls, "__new__"))


def is_namespace(cls: type) -> bool:
    """Whether objects of a class of the standard library are attributes and nothing else."""
    return cls is types.SimpleNamespace or (cls.__module__, cls.__qualname__) == ("argparse", "Namespace")


def is_user_class(cls: type) -> bool:
    """Whether a class and its bases are plain classes or named tuples of the user's, whose code can be looked at."""
    if is_namespace(cls):
        return True
    return makes_plain_objects(type(cls)) and is_users_code(cls, cls.__mro__[:-1])


def bases_of(cls: type) -> Sequence[type]:
    """The user's own among the bases of an enumeration."""
    return [base for base in cls.__mro__ if base.__module__ not in ("builtins", "enum")]


def is_user_enum(cls: type) -> bool:
    """Whether a class is an enumeration of constants that has methods of the user's."""
    if type(cls) is not enum.EnumMeta or not issubclass(cls, enum.Enum) or not has_static_members(cls):
        return False
    states = [value for member in cls for name, value in vars(member).items() if name[:1] != "_"]
    if any(static_key(value, lambda _: False, True) is None for value in states):
        return False
    # What ``_missing_`` does is asked without its name.
    asks = any("_missing_" in vars(base) for base in bases_of(cls))
    return not asks and is_users_code(cls, bases_of(cls))


def is_users_code(cls: type, bases: Sequence[type]) -> bool:
    for base in bases:
        if base in KNOWN or (base is tuple and is_record_tuple(cls)):
            continue
        functions = [found for found in map(wrapped, list(vars(base).values())) if found is not None]
        codes = [found.function.__code__ for found in functions if not is_generated(found.function)]
        codes = [code for code in codes if code is not MANAGING]
        if base.__module__.partition(".")[0] in ("builtins", "numpy", "scipy", "jax", "srcgrad", "typing", "abc"):
            return False
        if any(library_file(code.co_filename) or internal(code) for code in codes):
            return False
        if not functions and base.__module__.partition(".")[0] in sys.stdlib_module_names:  # written in C
            return False
    return True
