"""An op's meaning as text, and the names that such a text needs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from srcgrad.backends.numpy import helpers as helper_module
from srcgrad.ir.core import Attrs, Operation
from srcgrad.ir.errors import InternalError
from srcgrad.ir.opdef import Elementwise, Op
from srcgrad.ir.types import ArrayType

SITES: Final = "sites"
"""The name by which the text of an effect reaches the exceptions and callables of its program: ``sites[3]``."""

_SCIPY: Final = re.compile(r"\bscipy\.([a-z_]+)\.")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_ONE_CALL_OR_NAME: Final = re.compile(r"[\w.]+(\(.*\))?", re.DOTALL)


def takes_scalars(op: Op) -> bool:
    """Whether a scalar may stand for an operand of the op, because NumPy broadcasts it."""
    return isinstance(op, Elementwise) or op.name == "select"


_DOT: Final = re.compile(r"\S+ @ \S+")
_ELEMENT: Final = re.compile(r"\w+\[\d+(, \d+)*\]")


def _gives_scalars(op: Op, text: str) -> bool:
    """Whether the op's text gives rank-0 results as NumPy scalars; other functions may give arrays of rank 0."""
    reduces = op.name.startswith(("reduce_", "argm")) or op.name in ("gather", "fused")
    return takes_scalars(op) or reduces or any(shape.fullmatch(text) for shape in (_DOT, _ELEMENT))


def expression(
    op: Op, operands: Sequence[str], types: Sequence[ArrayType], results: Sequence[ArrayType], attrs: Attrs
) -> str:
    """The NumPy text of one application, whose rank-0 results are NumPy scalars."""
    first = results[0] if results else ArrayType(np.dtype(np.bool_))
    text = op.source(operands, types, first, attrs)
    if len(results) != 1 or first.rank or _gives_scalars(op, text):
        return text
    return f"{text}[()]" if one_call(text) else f"({text})[()]"


def one_call(text: str) -> bool:
    """Whether the text is a name or one call, to which a subscript or an argument may be added."""
    if _ONE_CALL_OR_NAME.fullmatch(text) is None:
        return False
    depth = 0
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0 and position < len(text) - 1:
                return False
    return True


class Meaning:
    """The text of an op on operands and results of certain types, as templates for ``str.format``.

    ``text`` is the expression. ``into``, where there is one, writes it into the buffer ``{out}``, which has the type of
    the result; ``updates`` says that this buffer is the first operand's, through a helper with a parameter ``reuse``.
    ``scalars``: literals may be written as scalars, and if ``weak`` as Python numbers. ``fresh``: the results share no
    memory with the operands. ``read_only``: they cannot be written. ``scipy``, ``helpers``: what the text names.
    """

    __slots__ = ("fresh", "helpers", "into", "read_only", "scalars", "scipy", "text", "updates", "weak")

    def __init__(self, operation: Operation) -> None:
        op, types = operation.op, [value.type for value in operation.operands]
        names = [f"operand_{k}_" for k in range(len(types))]
        source = expression(op, names, types, [value.type for value in operation.results], operation.attrs)
        plain = source.replace("{", "{{").replace("}", "}}")
        self.text = _PLACE.sub(r"{\1}", plain)
        self.helpers = tuple(name for name in helpers_of(op) if re.search(rf"(?<![\w.]){name}\(", source))
        self.scipy = scipy_modules([source])
        mixed = op.name != "select" and any(type.dtype != types[0].dtype for type in types)
        self.weak = not self.helpers and not self.scipy and not mixed
        self.scalars = takes_scalars(op) and not (op.name == "select" and types[0].rank == 0)
        self.updates = source.partition("(")[0] in self.helpers and one_call(source) and _has_reuse(source)
        into = f"{self.text[:-1]}, reuse=True)" if self.updates else _into(self.text, source)
        self.fresh = into is not None or _is_fresh(op, types, source)
        self.read_only = source.startswith("np.broadcast_to(")
        same = bool(types) and len(operation.results) == 1 and operation.results[0].type == types[0]
        self.into = into if same and (self.updates or isinstance(op, Elementwise)) else None


_PLACE: Final = re.compile(r"\boperand_(\d+)_(?!\w)")
_UFUNC: Final = re.compile(r"(np|scipy\.special)\.(\w+)\(")
_BINARY: Final = re.compile(r"(\{\d+\}) (\S{1,2}) (\{\d+\})")
_NEGATIVE: Final = re.compile(r"-(\{\d+\})")
# Not "**": its fast paths for the exponents 2 and 0.5 are not np.power's.
_OPERATORS: Final = {
    "+": "np.add",
    "-": "np.subtract",
    "*": "np.multiply",
    "/": "np.divide",
    "&": "np.bitwise_and",
    "|": "np.bitwise_or",
    "^": "np.bitwise_xor",
    "<": "np.less",
    "<=": "np.less_equal",
    ">": "np.greater",
    ">=": "np.greater_equal",
    "==": "np.equal",
    "!=": "np.not_equal",
}
FRESH: Final = frozenset(
    {
        "add_along_axis", "argmax", "argmin", "argpartition", "argsort", "cast", "cholesky", "complex", "concatenate",
        "convolve", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "dct", "dot_general", "dst", "fft",
        "floor_divide", "fused", "ifft", "integer_pow", "irfft", "linear_recurrence", "order_positions",
        "order_statistics", "partition", "polygamma", "pow", "pow_log", "reduce_and", "reduce_max", "reduce_min",
        "reduce_norm", "reduce_or", "reduce_prod", "reduce_sum", "remainder", "restarting_cummax", "restarting_cummin",
        "restarting_cumsum", "rfft", "searchsorted", "sinc", "sinc_derivative", "solve", "sort", "take_along_axis",
        "triangular_solve",
    }
)  # fmt: skip
"""Ops whose results never share memory with their operands, beside those that are one ufunc or one updating helper.

For any other op, the results are taken to be views of all operands: always right, and sometimes a copy too many.
"""


def _is_fresh(op: Op, types: Sequence[ArrayType], source: str) -> bool:
    if op.name == "select":
        return types[0].rank > 0  # np.where; with a predicate of rank 0, one of the branches itself
    if op.name == "gather":
        return any(index.rank > 0 for index in types[1:])  # x[i] of one integer is a view
    return op.name in FRESH or (not types and not source.startswith("np.broadcast_to("))


def _into(template: str, source: str) -> str | None:
    call = _UFUNC.match(source)
    if call is not None and one_call(source):
        library = np if call[1] == "np" else importlib.import_module(call[1])
        found = getattr(library, call[2], None)
        return f"{template[:-1]}, out={{out}})" if isinstance(found, np.ufunc) else None
    binary = _BINARY.fullmatch(template)
    if binary is not None and binary[2] in _OPERATORS:
        return f"{_OPERATORS[binary[2]]}({binary[1]}, {binary[3]}, out={{out}})"
    negative = _NEGATIVE.fullmatch(template)
    return None if negative is None else f"np.negative({negative[1]}, out={{out}})"


def _has_reuse(source: str) -> bool:
    return "reuse" in inspect.signature(helper(source.partition("(")[0])).parameters


def scipy_modules(texts: Iterable[str]) -> list[str]:
    """The SciPy modules that the texts name: ``scipy.special``, …"""
    return sorted({f"scipy.{name}" for text in texts for name in _SCIPY.findall(text)})


def helpers_of(op: Op) -> tuple[str, ...]:
    """The functions of ``helpers.py`` that the op's text calls."""
    return getattr(op, "helpers", ())


def helper(name: str) -> Callable[..., Any]:
    found = getattr(helper_module, name, None)
    if found is None:
        raise InternalError(f"backends/numpy/helpers.py has no function {name!r}")
    return found  # type: ignore[no-any-return]


HELPERS: Final = frozenset(name for name, value in vars(helper_module).items() if inspect.isfunction(value))
"""The names of all helper functions: no program is named so."""


def helper_sources(names: Iterable[str]) -> dict[str, str]:
    """The source text of the named helper functions and of those that they call, callees first."""
    found: dict[str, str] = {}
    met: set[str] = set()

    def visit(name: str) -> None:
        if name in met:
            return
        met.add(name)
        text = inspect.getsource(helper(name))
        for word in sorted(set(_WORD.findall(text)) & HELPERS):
            visit(word)
        found[name] = text

    for name in names:
        visit(name)
    return found


def namespace(modules: Iterable[str], helpers: Iterable[str]) -> dict[str, Any]:
    """The globals of a text that names these SciPy modules and helper functions."""
    names: dict[str, Any] = {"np": np}
    for module in modules:
        importlib.import_module(module)
        names["scipy"] = importlib.import_module("scipy")
    for name in helpers:
        names[name] = helper(name)
    return names
