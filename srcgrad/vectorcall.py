"""A base class whose instances may have a function in machine code that answers calls.

The field that Python looks at in a call (``tp_vectorcall_offset``) is null at first, and then an instance is called by
its class's ``__call__`` as always. Python does not hand the flag that says so down to classes with a ``__call__``, so
that `allow` sets it. Where classes are laid out in a way that is not known here, the base class has no such field.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from srcgrad.backends.llvm import layout

_FLAGS: Final = 168
"""The offset of a class's flags."""
_FIELD: Final = 16
"""The offset of the function in an instance."""
_HAVE_VECTORCALL: Final = 1 << 11
_BASETYPE: Final = 1 << 10
_DEFAULT: Final = 1 << 18
_MEMBERS: Final = 72
_T_PYSSIZET: Final = 19
_READONLY: Final = 1


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("pointer", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


_MEMBER_TABLE: Final = (_Member * 3)(
    _Member(b"__vectorcalloffset__", _T_PYSSIZET, _FIELD, _READONLY, None),
    _Member(b"_machine", _T_PYSSIZET, _FIELD, 0, b"The address of the function that answers calls."),
)
_SLOT_TABLE: Final = (_Slot * 2)(_Slot(_MEMBERS, ctypes.addressof(_MEMBER_TABLE)))
_SPEC: Final = _Spec(b"srcgrad.vectorcall.VectorCalled", _FIELD + 8, 0, _DEFAULT | _BASETYPE, _SLOT_TABLE)


def _flags_of(cls: type) -> ctypes.c_ulong:
    return ctypes.c_ulong.from_address(id(cls) + _FLAGS)


def _layout_is_known() -> bool:
    return layout.INTERPRETER_IS_KNOWN and all(
        _flags_of(cls).value == cls.__flags__ for cls in (object, int, type, _Spec, Exception)
    )


def _base() -> type:
    """The class with the field; a plain one where there is none."""
    plain = type("VectorCalled", (), {"__slots__": (), "__module__": __name__})
    if not _layout_is_known():
        return plain
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(("PyType_FromSpec", ctypes.pythonapi))
    found: Any = make(ctypes.addressof(_SPEC))
    probe = type("probe", (found,), {"__slots__": ("first",)})
    fits = found.__basicsize__ == _FIELD + 8 and probe.__basicsize__ == _FIELD + 16
    return found if fits and not _field_of(probe()).value else plain


def _field_of(instance: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(id(instance) + _FIELD)


VectorCalled: Final[Any] = _base()
POSSIBLE: Final = VectorCalled.__basicsize__ > _FIELD


def allow(cls: type) -> None:
    """Let the instances of a subclass whose ``__call__`` needs no more than the function have one."""
    if POSSIBLE:
        _flags_of(cls).value |= _HAVE_VECTORCALL


def allowed(cls: type) -> bool:
    return POSSIBLE and bool(cls.__flags__ & _HAVE_VECTORCALL)


def set_function(instance: Any, address: int) -> None:
    """Let machine code, which must stay, answer the calls of an instance of a class that is allowed to."""
    instance._machine = address
