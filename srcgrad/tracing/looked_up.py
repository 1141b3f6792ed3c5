"""The attributes between double underscores that Python, NumPy and SciPy look up by themselves.

Others are the user's own, whatever they look like: ``__type__``, ``__nice__``.
"""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Iterator
from typing import Final

__all__ = ["LOOKED_UP"]

OF_PYTHON_2: Final = frozenset(f"__{name}__" for name in ("div", "rdiv", "idiv", "nonzero", "cmp", "coerce", "unicode"))
"""What Python 2 looked up. Today's classes still have them, as methods that others call: ``return self.__div__(x)``."""

BY_PROTOCOLS: Final = """
abc_tpflags abs abstractmethods add aenter aexit aiter and anext annotate annotate_func annotations annotations_cache
args array associated_array_dtype await base bases bool bound buffer builtins bytes call callback ceil class
class_getitem classcell code complex constraints contains contravariant copy covariant ctype_be ctype_le
ctypes_from_outparam dataclass_fields dataclass_params deepcopy default defaults del delattr delete delitem dict dir
divmod doc enter eq exit fields file final firstlineno flags float floor floordiv format forward_arg forward_value
fspath func ge get getattr getattribute getformat getinitargs getitem getnewargs getnewargs_ex getslice getstate
globals gt hash iadd iand iconcat idivmod ifloordiv ilshift imatmul imod imul index infer_variance init init_subclass
instancecheck int interface invert ior ipow irshift isabstractmethod isub iter itruediv ixor kwdefaults le len
length_hint loader lshift lt match_args matmul members metadata methods missing mod module mro mro_entries mul
mutable_keys name ne neg new new_member next no_type_check notes objclass optional_keys or order orig_bases orig_class
origin package parameters path pos post_init pow prepare qualname radd rand rdivmod readonly_keys reduce reduce_ex
release_buffer replace repr required_keys reversed rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift rshift
rsub rtruediv rxor self self_class set set_name setattr setitem setmask setslice setstate signature sizeof slotnames
slots spec static_attributes str sub subclasscheck subclasshook supertype text_signature thisclass total traceback
truediv trunc type_params typing_is_unpacked_typevartuple typing_prepare_subst typing_subst typing_unpacked_tuple_args
unpacked validate_parameters value version warningregistry weakref wrapped xor
"""
"""What Python's own modules, NumPy and SciPy ask objects and classes for, without the underscores."""

PREFIXES: Final = tuple(
    f"__{name}_"
    for name in (
        *("array", "attrs", "cuda", "cython", "dataclass", "dlpack", "jax", "numpy", "pydantic", "pyx", "pandas"),
        *("reduce", "setstate", "sklearn", "pybind11", "srcgrad", "torch", "ua"),
    )
)
"""What the names begin with by which packages ask: ``__array_ufunc__``, ``__ua_function__``."""


def _of_python() -> Iterator[str]:
    """What Python's own classes have, those of newer Pythons too, and `operator` calls."""
    for thing in (*vars(builtins).values(), *vars(types).values(), operator):
        if isinstance(thing, (type, types.ModuleType)):
            yield from (name for name in vars(thing) if name.startswith("__") and name.endswith("__"))


LOOKED_UP: Final = frozenset({f"__{name}__" for name in BY_PROTOCOLS.split()} | set(_of_python())) - OF_PYTHON_2
"""The names in full; those of `PREFIXES` are looked up too."""
