"""What stands in a trace for values that are not known there, so that every use of one is refused."""

from __future__ import annotations

from typing import Any, NoReturn

from srcgrad.tracing.trace import Unread


class Refusing:
    """Stands in a trace for what is not known there: every use of it is refused."""

    __slots__ = ()

    def refuse(self) -> NoReturn:
        raise NotImplementedError

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        self.refuse()

    __getattr__ = __setattr__ = _refuse
    __call__ = __iter__ = __len__ = __bool__ = __getitem__ = __setitem__ = __contains__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = _refuse
    __rshift__ = __rrshift__ = __divmod__ = __rdivmod__ = __round__ = __complex__ = __repr__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = __int__ = _refuse
    __eq__ = __ne__ = __str__ = __format__ = __index__ = __array_ufunc__ = __array_function__ = __array__ = _refuse
    __hash__ = _refuse


class Untold(Refusing):
    """Stands in a trace for what an attribute holds that the function assigns and is not known to read before.

    Where it does, or may keep it, on a path on which it assigns nothing, the attribute has to be watched.
    """

    __slots__ = ("name",)
    __srcgrad_unfinished__ = True
    name: str

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", name)

    def refuse(self) -> NoReturn:
        raise Unread(self.name)


def require_told(x: Any) -> None:
    """Have the trace begin again if this stands for what an attribute holds, which now has to be known."""
    if type(x) is Untold:
        x.refuse()
