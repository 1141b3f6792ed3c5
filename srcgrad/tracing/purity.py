"""What a captured object may be if the program that reads it is to be cached: the rules about values, modules and
classes.

Nothing here looks at bytecode (that is `analysis`). A rule either says how a value is guarded or, in words, why it
cannot be.
"""

from __future__ import annotations

import abc
import builtins
import dataclasses
import enum
import functools
import re
import sys
import types
import typing
import warnings
from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol

import numpy as np

from srcgrad.tracing.alike import parts_of
from srcgrad.tracing.hosts import is_host_function, is_host_object
from srcgrad.tracing.jax_arrays import is_jax_value
from srcgrad.tracing.jitted import is_parallel_range
from srcgrad.tracing.kept import KEPT
from srcgrad.tracing.unasked import attribute, is_special

__all__ = [
    "METACLASSES",
    "TRUSTED_ROOTS",
    "WRITTEN_BY_PYTHON",
    "class_reason",
    "constructor_reason",
    "has_static_members",
    "hidden_kind",
    "impurity",
    "is_generated",
    "is_plain_type",
    "is_trusted_module",
    "is_ufunc_method",
    "makes_plain_objects",
    "members_of_metaclass",
    "module_reason",
    "static_key",
]

IsPure = Callable[[object], bool]

# Their attributes do not change while a program runs, so that only the name bound to the module is guarded.
TRUSTED_ROOTS: Final = frozenset({"numpy", "scipy", "math", "cmath"})
_PLACEHOLDER: Final = getattr(functools, "Placeholder", None)
"""What stands in a partial for an argument of the call, from Python 3.14 on."""
OF_THE_SYSTEM: Final = frozenset(map(type, (sys.float_info, sys.int_info, sys.hash_info, sys.version_info, sys.flags)))
"""The kinds of what Python says of itself: numbers and texts by name, which nobody changes."""
OF_TYPES: Final = (types.UnionType, types.GenericAlias, type(typing.Optional[int]), type(typing.List[int]))  # noqa: UP006, UP045
"""The kinds of what is written of classes: ``float | None``, ``list[int]``."""
STATIC_TYPES: Final = (
    *(int, bool, str, bytes),
    *(type(None), type(Ellipsis), type(NotImplemented), type(_PLACEHOLDER)),
    *(type(np._NoValue), type(dataclasses.MISSING)),
)
MISSING_IN_PANDAS: Final = frozenset({("pandas._libs.missing", "NAType"), ("pandas.api.typing", "NAType")})
"""The class of ``pd.NA``, which is its only object."""
OF_FILES: Final = frozenset(
    {
        *("absolute", "chmod", "copy", "copy_into", "cwd", "exists", "expanduser", "glob", "group", "hardlink_to"),
        *("home", "info", "is_block_device", "is_char_device", "is_dir", "is_fifo", "is_file", "is_junction"),
        *("is_mount", "is_socket", "is_symlink", "iterdir", "lchmod", "link_to", "lstat", "mkdir", "move", "move_into"),
        *("open", "owner", "read_bytes", "read_text", "readlink", "rename", "replace", "resolve", "rglob", "rmdir"),
        *("samefile", "stat", "symlink_to", "touch", "unlink", "walk", "write_bytes", "write_text"),
    }
)
"""What a path tells of files, or does with them."""
OF_OTHERS: Final = frozenset({"copy", "replace"})
"""What is asked of arrays and texts too, of which only what is read of a captured object itself is taken to be its."""
CONSTANTS: Final = {
    **{f"datetime.{name}": frozenset[str]() for name in ("time", "timedelta", "timezone")},
    "datetime.date": frozenset({"today"}),
    "datetime.datetime": frozenset({"today", "now", "utcnow"}),
    "decimal.Decimal": frozenset[str](),
    "statistics.NormalDist": frozenset({"samples"}),
    "uuid.UUID": frozenset[str](),
    "re.Pattern": frozenset[str](),
    **{
        f"{module}.{name}": frozenset() if name.startswith("Pure") else OF_FILES
        for module in ("pathlib", "pathlib._local")
        for name in ("PurePath", "PurePosixPath", "PureWindowsPath", "Path", "PosixPath", "WindowsPath")
    },
}
"""Python's classes of objects that stay what they are and say all of it in their representation, with those of their
methods that draw or read a clock."""
# Those that NumPy makes are pure: ``np.r_[x, 1.0]``, ``np.s_[1:]``.
_INDEXED: Final = frozenset(map(type, (np.r_, np.c_, np.s_, np.mgrid, np.ogrid)))
_UFUNC_METHODS: Final = frozenset({"reduce", "accumulate", "outer", "reduceat", "at"})
_UNWATCHED: Final = "reads what the compiled program cannot watch"
_BUILTIN_EFFECTS: Final = {
    "print": "writes at each call",
    "input": "reads at each call",
    "open": "opens a file at each call",
    "exec": "runs code that is not known here",
    "eval": "runs code that is not known here",
    "compile": "runs code that is not known here",
    "__import__": "imports at each call",
    "breakpoint": "stops at each call",
    "super": "depends on the class that it is written in",
    "setattr": "changes objects at each call",
    "delattr": "changes objects at each call",
} | dict.fromkeys(("getattr", "hasattr", "globals", "locals", "vars", "dir", "id", "hash"), _UNWATCHED)
_MODULE_EFFECTS: Final = {
    "numpy.random": "draws at each call",
    "random": "draws at each call",
    "secrets": "draws at each call",
    "scipy.stats": "may draw at each call",
    "time": "reads the clock at each call",
    "datetime": "may read the clock at each call",
}
# Methods by which ordinary expressions run a class's own code without naming it.
_PASSIVE_METHODS: Final = frozenset(
    f"__{name}__"
    for name in (
        *("repr", "str", "format", "dir", "sizeof", "copy", "deepcopy", "replace", "del"),
        *("reduce", "reduce_ex", "getstate", "setstate", "getnewargs"),
        *("init_subclass", "class_getitem", "subclasshook", "annotate", "annotate_func"),
    )
)
WRITTEN_BY_PYTHON: Final = frozenset(
    f"__{name}__" for name in ("annotations", "annotations_cache", "annotate", "annotate_func", "doc", "signature")
)
"""What may turn up in a class that nobody has changed, or says nothing about what it does."""
METACLASSES: Final = (type, type(abc.ABC), type(Protocol))
"""The classes of classes whose calls make an object and do no more."""
_NOTED: Final = ("module", "qualname", "doc", "dict", "weakref", "firstlineno", "static_attributes", "slots")
MAKING: Final = frozenset(f"__{name}__" for name in ("new", "init", "prepare", *_NOTED))
"""What a metaclass may have that runs where a class is made, or never."""
_CONSTRUCTORS: Final = frozenset({"__init__", "__new__", "__post_init__"})
_GENERATING_MODULES: Final = frozenset({"collections", "dataclasses", "typing", "reprlib", "abc", "enum", "attr._make"})
_WRITTEN_BY_ATTRS: Final = "<attrs generated"


def is_trusted_module(module: types.ModuleType, is_pure: IsPure) -> bool:
    """Whether `module` is numpy, scipy, math, a submodule of them, or one that the caller vouches for."""
    return module.__name__.partition(".")[0] in TRUSTED_ROOTS or is_pure(module)


def members_of_metaclass(cls: type) -> set[str]:
    """What the user's metaclass of a class has by names, which the class finds as if they were its own."""
    own = [base for base in type.mro(type(cls)) if base not in METACLASSES and base is not object]
    return {name for base in own for name in vars(base) if not is_special(name)}


def makes_plain_objects(metaclass: Any) -> bool:
    """Whether calling a class of this metaclass makes an object and does no more: Python's own, or one of the user's
    that does something where its classes are made.
    """
    if metaclass in METACLASSES:
        return True
    if not isinstance(metaclass.__module__, str):  # Cython's, of the classes of its functions
        return False
    if not issubclass(metaclass, METACLASSES) or metaclass.__module__ in ("enum", "typing", "ctypes", "_ctypes"):
        return False
    own = [base for base in metaclass.__mro__ if base not in METACLASSES and base is not object]
    special = {name for base in own for name in vars(base) if is_special(name)}
    return special <= MAKING | WRITTEN_BY_PYTHON


def hidden_kind(value: object) -> str | None:
    """The kind of hidden input that `value` can be ("array", "jax array", "float", "complex", "numpy scalar",
    "generator", "tape"), or None.

    Hidden inputs are read at each call. Exact types only: a subclass may do anything in its operators.
    """
    kind = type(value)
    if kind is float or kind is complex:
        return kind.__name__
    if isinstance(value, np.inexact):
        return "numpy scalar"
    if isinstance(value, np.ndarray) and kind is np.ndarray and value.dtype.kind in "biufc":
        return "array"
    if is_host_object(value):
        return "generator"
    if kind in KEPT:
        return "tape"
    if is_jax_value(value) and getattr(value, "dtype").kind in "biufc":  # noqa: B009
        return "jax array"
    return None


def static_key(value: object, is_pure: IsPure, floats: bool = False) -> Hashable | None:
    """A hashable key, equal only for values that no program can tell apart; None if `value` is not static.

    1, True and 1.0 have different keys, and so have 0.0 and -0.0 (which are static only where `floats` is true); all
    nan of one type share one.

    >>> static_key((1, "a"), lambda _: False) == static_key((True, "a"), lambda _: False)
    False
    """
    kind = type(value)
    if kind in STATIC_TYPES:
        return kind, value
    if isinstance(value, np.dtype):
        return "dtype", value
    if kind in OF_THE_SYSTEM:
        return kind, value
    if (kind.__module__, kind.__name__) in MISSING_IN_PANDAS:  # of which no == gives a truth value
        return kind, None
    if kind in OF_TYPES:
        parts = [static_key(None if part is types.NoneType else part, is_pure) for part in typing.get_args(value)]
        return None if None in parts else (kind, typing.get_origin(value), tuple(parts))
    if kind.__module__ == "fractions" and kind.__name__ == "Fraction":
        return kind, getattr(value, "numerator"), getattr(value, "denominator")  # noqa: B009
    if is_factors(value):
        return kind, value
    if isinstance(value, re.Pattern):  # whose representation ends after 200 characters
        return kind, value.pattern, value.flags
    if not isinstance(value, type) and unsteady(value) is not None:
        return kind, repr(value)
    if isinstance(value, enum.Enum):
        if not is_plain_enum(kind):
            return None
        return "enum", kind, static_key(value.value, is_pure, True)  # members of two IntEnums may be equal
    if isinstance(value, np.generic) and value.dtype.kind not in "fcVO":
        return kind, value.dtype, value.item() if value.dtype.kind in "biu" else repr(value)
    if floats and hidden_kind(value) in ("float", "complex", "numpy scalar"):
        return kind, repr(value)
    if isinstance(value, (tuple, frozenset, slice, range)) and kind in (tuple, frozenset, slice, range):
        items = parts_of(value) if isinstance(value, (slice, range)) else tuple(value)
        keys = [static_key(item, is_pure, floats) for item in items]
        if any(key is None for key in keys):
            return None
        return kind, frozenset(keys) if kind is frozenset else tuple(keys)
    if kind in _INDEXED or (callable(value) and not isinstance(value, types.ModuleType)):
        return ("object", value) if is_plain_type(value) or is_pure(value) else None
    return None


def is_factors(value: object) -> bool:
    """Whether it is what ``scipy.sparse.linalg.splu`` gives, which nobody can change."""
    return type(value).__name__ == "SuperLU" and type(value).__module__.startswith(("builtins", "scipy."))


def unsteady(value: object) -> frozenset[str] | None:
    """What one of Python's constant objects, or its class, has that is another thing at each call; None of others."""
    kind = value if isinstance(value, type) else type(value)
    return CONSTANTS.get(f"{kind.__module__}.{kind.__qualname__}")


def decimal_context() -> Hashable:
    """What decides the digits of ``decimal``."""
    from decimal import getcontext

    found = getcontext()
    limits = found.prec, found.rounding, found.Emin, found.Emax, found.capitals, found.clamp
    return (*limits, *found.traps.values())


def is_plain_type(value: object) -> bool:
    """Whether `value` is a class whose calls and attributes are constants: NumPy's scalar types, ndarray, dtype,
    built-in exceptions, abstract classes to be asked about, enumerations of static values.
    """
    if not isinstance(value, type):
        return False
    if unsteady(value) is not None or value.__module__ in ("numbers", "collections.abc", "fractions"):
        return True
    if is_parallel_range(value):
        return True
    if issubclass(value, (np.generic, np.ndarray)):
        return value.__module__.partition(".")[0] == "numpy" and value not in (np.matrix, np.memmap)
    if issubclass(value, enum.Enum):
        return is_plain_enum(value)
    return value is np.dtype or value is object or (issubclass(value, BaseException) and value.__module__ == "builtins")


def is_plain_enum(cls: Any) -> bool:
    """Whether an enumeration has static values and no code of its own."""
    for base in cls.__mro__:
        if base.__module__ in ("builtins", "enum"):
            continue
        if any(_is_code(member) and not is_generated(member) for name, member in vars(base).items() if name[:1] != "_"):
            return False
    return has_static_members(cls)


def has_static_members(cls: Any) -> bool:
    return all(static_key(member.value, lambda _: False, floats=True) is not None for member in cls)


def is_ufunc_method(value: object, attribute: str) -> bool:
    """Whether `value.attribute` is a method of a ufunc, as pure as the ufunc itself."""
    return isinstance(value, np.ufunc) and attribute in _UFUNC_METHODS


def impurity(value: Any, name: str, home: str | None = None) -> str:
    """Why a program that reads `value` under `name` cannot be cached; `home` is the module it was read from."""
    kind = type(value)
    if isinstance(value, types.ModuleType):
        return f"passes the module '{value.__name__}' around"
    if isinstance(value, functools.partial):
        return f"reads the partial '{name}'"
    owner = attribute(value, "__self__")
    if callable(value) and home is None and owner is not None and not isinstance(owner, types.ModuleType):
        home = type(owner).__module__
        if isinstance(value, types.MethodType) and not home.startswith("numpy."):
            return f"bound method reads attributes: '{name}'"
    if callable(value) and not isinstance(value, type):
        own_name = str(attribute(value, "__name__", ""))
        if getattr(builtins, own_name, None) is value:
            return f"{name} {_BUILTIN_EFFECTS.get(own_name, 'is not known to be pure')}"
        known = attribute(value, "__module__") or ("" if owner is None else type(owner).__module__)
        modules = (home or known, known)  # a home may be an alias's: np.random
        for prefix, effect in _MODULE_EFFECTS.items():
            if any(module == prefix or module.startswith(prefix + ".") for module in modules):
                return f"{name} {effect}"
        return f"{name} is not known to be pure"
    if isinstance(value, type):
        return f"{name} is a class that is not known to be pure"
    if isinstance(value, np.ndarray):
        return f"reads '{name}', an array of type {kind.__name__} and dtype {value.dtype}"
    return f"reads the {kind.__name__} '{name}'"


def module_reason(module: types.ModuleType, attributes: frozenset[str], is_pure: IsPure) -> str | None:
    """Why a program that hands a trusted module on, as ``xp`` for instance, cannot be cached; None if it can.

    `attributes` are the names that the program reads from local values, any of which may be the module or one of its
    submodules: what these have by such a name must be what the program could have read of them by its whole name.
    """
    modules = [module]
    for known in modules:
        for name in sorted(attributes):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a deprecated name warns again when the function itself reads it
                value = getattr(known, name, None)
            if isinstance(value, types.ModuleType):
                if not is_trusted_module(value, is_pure):
                    return impurity(value, name)
                if all(value is not other for other in modules):
                    modules.append(value)
            elif hidden_kind(value) in ("float", "complex", "numpy scalar"):
                continue
            elif is_host_function(value) or static_key(value, is_pure) is None:
                return f"{impurity(module, name)}: {impurity(value, f'{known.__name__}.{name}', home=known.__name__)}"
    return None


class _Pair:
    def __eq__(self, other: object) -> bool:
        return self is other


def _ordered() -> frozenset[types.CodeType]:
    """The code of the comparisons that ``functools.total_ordering`` makes of one, which call that and do no more."""
    found = []
    for name in ("__lt__", "__le__", "__gt__", "__ge__"):
        cls: Any = functools.total_ordering(type("_Ordered", (_Pair,), {name: _Pair.__eq__}))
        found += [member.__code__ for other, member in vars(cls).items() if other in _COMPARED and other != name]
    return frozenset(found)


_COMPARED: Final = frozenset({"__lt__", "__le__", "__gt__", "__ge__"})
_ORDERED: Final = _ordered()


def is_generated(member: object) -> bool:
    """Whether `member` is a function that dataclasses, attrs, namedtuple or total_ordering wrote: it only moves fields,
    or calls the class's own comparison.
    """
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    if not isinstance(member, types.FunctionType):
        return False
    home = str(member.__globals__.get("__name__", ""))
    if home == "functools" and member.__code__ in _ORDERED:
        return True
    return (
        member.__code__.co_qualname.startswith("__create_fn__.")
        or home in _GENERATING_MODULES
        or home.startswith("namedtuple_")
        or (member.__name__ in _PASSIVE_METHODS and member.__code__.co_filename.startswith(_WRITTEN_BY_ATTRS))
        or is_generated(attribute(member, "__wrapped__"))
    )


def _is_code(member: object) -> bool:
    return isinstance(member, (types.FunctionType, property, classmethod, staticmethod, functools.cached_property)) or (
        hasattr(type(member), "__get__")
        and not isinstance(member, (types.MemberDescriptorType, types.GetSetDescriptorType, type))
    )


def class_reason(cls: type, attributes: frozenset[str], constructed: bool = False) -> str | None:
    """Why instances of `cls` may run code, or read class attributes, that nobody analysed; None for a plain record.

    `attributes` are the attribute names that the program reads from local values. With `constructed`, the program may
    also call `cls`, which then must be a dataclass or namedtuple whose `__init__` is the generated one and whose
    defaults are static.
    """
    fields = frozenset(attribute(cls, "_fields", ()))
    if attribute(cls, "__dataclass_fields__") is not None:  # which a metaclass does not make up
        fields |= frozenset(field.name for field in dataclasses.fields(cls))  # a ClassVar is none
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in ("builtins", "numpy", "typing", "collections", "abc", "enum"):
            continue
        for name, member in vars(base).items():
            dunder = is_special(name)
            implicit = dunder and name not in _PASSIVE_METHODS and (constructed or name not in _CONSTRUCTORS)
            if not (implicit or name in attributes) or is_generated(member):
                continue
            if name in fields and not isinstance(member, property):  # which was put there, and runs code
                continue
            if _is_code(member):
                return f"{cls.__name__}.{name} runs code of its own"
            if not dunder and name in attributes:
                return f"reads the class attribute {cls.__name__}.{name}"
    return constructor_reason(cls) if constructed else None


def constructor_reason(cls: Any) -> str | None:
    """Why making instances of `cls` may run code that nobody analysed, or hold what can change; None if it does not."""
    if not makes_plain_objects(type(cls)):
        return f"{cls.__name__} has a metaclass"
    name = cls.__name__
    if dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            factory = field.default_factory
            if factory is not dataclasses.MISSING and factory not in (list, dict, tuple, set):
                return f"{name}.{field.name} has a default factory"
        defaults = [field.default for field in dataclasses.fields(cls) if field.default is not dataclasses.MISSING]
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        defaults = list(getattr(cls, "_field_defaults", {}).values())
    else:
        return f"{name} is a class that is not known to be pure"
    if any(static_key(value, lambda _: False, floats=True) is None for value in defaults):
        return f"{name} has a default that can change"
    return None
