"""The text of a tensor, character for character PyTorch's, from its NumPy array.

Numbers of a tensor share one format and one width. Floating numbers are written as integers with a point where all of
them are integers, in scientific notation where they span more than three decades, exceed 1e8 or fall below 1e-4, and
with a fixed number of digits otherwise. What decides is the finite numbers other than zero; of a summarised tensor,
those shown. What is said after the numbers (dtype, `grad_fn`, ...) moves to a line of its own where it does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from srcgrad.torch.dtypes import get_default_dtype, of
from srcgrad.torch.errors import TensorTypeError, TensorValueError

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions", "tensor_text"]

Array = np.ndarray[Any, np.dtype[Any]]

_ELLIPSIS: Final = " ..."
_LARGE = 1e8
_SMALL = 1e-4
_WIDE = 1000.0


@dataclass
class PrintOptions:
    """Digits after the point; elements above which is summarised; how many are then shown at each end of an axis;
    characters per line; whether to write 1.0000e+00 (None: where the numbers call for it)."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS: Final = PrintOptions()
"""The options in force."""

_PROFILES: Final = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2),
    "full": PrintOptions(threshold=math.inf),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print: a profile ("default", "short", "full") first, then each option that is given.

    `sci_mode` is set by every call: left out, it goes back to choosing by the numbers.
    """
    chosen = PRINT_OPTS
    if profile is not None:
        if profile not in _PROFILES:
            raise TensorValueError(f"no print profile is called {profile!r}", hint=f"one of {', '.join(_PROFILES)}")
        chosen = _PROFILES[profile]
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        whole = isinstance(value, int) or (name == "threshold" and isinstance(value, float))
        if value is not None and not whole:
            raise TensorTypeError(f"{name} must be an int, not {value!r}")
    _put(replace(chosen, **{name: value for name, value in given.items() if value is not None}, sci_mode=sci_mode))


def get_printoptions() -> dict[str, Any]:
    """The options in force, by name."""
    return asdict(PRINT_OPTS)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """`set_printoptions` for a block; then the options are as before.

    >>> with printoptions(precision=2):
    ...     print(tensor_text(np.array([0.5, 2.125], np.float32)))
    tensor([0.50, 2.12])
    """
    before = replace(PRINT_OPTS)
    set_printoptions(**options)
    try:
        yield
    finally:
        _put(before)


def _put(options: PrintOptions) -> None:
    for name, value in asdict(options).items():
        setattr(PRINT_OPTS, name, value)


# --- numbers ----------------------------------------------------------------------------------------------------------

_Number = Callable[[Any], str]


def _padded(write: _Number, width: int) -> _Number:
    return lambda value: write(value).rjust(width)


def _number_format(shown: Array) -> tuple[_Number, int]:
    """How each of the numbers is written, and how wide: `shown` is real, and all that will be seen of the tensor."""
    if shown.dtype.kind != "f":
        width = max((len(str(value)) for value in shown.ravel().tolist()), default=1)
        return _padded(str, max(width, 1)), max(width, 1)
    values = shown.ravel().astype(np.float64)
    values = values[np.isfinite(values) & (values != 0)]
    whole = bool((values == np.ceil(values)).all())
    scientific = False
    if values.size:
        chosen = PRINT_OPTS.sci_mode
        scientific = _calls_for_science(np.abs(values)) if chosen is None else chosen
    write = _float_format(scientific, whole)
    width = max((len(write(value)) for value in values.tolist()), default=1)
    return _padded(write, width), width


def _calls_for_science(sizes: Array) -> bool:
    """Whether sizes of finite numbers other than zero are better read in scientific notation."""
    largest, smallest = float(sizes.max()), float(sizes.min())
    return largest / smallest > _WIDE or largest > _LARGE or smallest < _SMALL


def _float_format(scientific: bool, whole: bool) -> _Number:
    if scientific:
        return f"%.{PRINT_OPTS.precision}e".__mod__
    if whole:
        return lambda value: f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
    return f"%.{PRINT_OPTS.precision}f".__mod__


def _element_format(shown: Array) -> tuple[_Number, int]:
    """As `_number_format`, also of complex numbers: the parts have a format each."""
    if shown.dtype.kind != "c":
        return _number_format(shown)
    real, real_width = _number_format(shown.real)
    imaginary, imaginary_width = _number_format(shown.imag)

    def write(value: complex) -> str:
        second = imaginary(value.imag).lstrip()
        return f"{real(value.real)}{'' if second[0] in '+-' else '+'}{second}j"

    return write, real_width + imaginary_width + 1


# --- arrays -----------------------------------------------------------------------------------------------------------


def _edges(array: Array) -> Array:
    """The elements that a summary shows."""
    count = PRINT_OPTS.edgeitems
    shown = [
        [*range(count), *range(length - count, length)] if length > 2 * count else range(length)
        for length in array.shape
    ]
    return array[np.ix_(*(np.array(index, np.intp) for index in shown))]


def _with_gap(shown: list[str], gap: str) -> list[str]:
    """The texts of both ends of an axis with what stands for the middle."""
    count = PRINT_OPTS.edgeitems
    return [*shown[:count], gap, *shown[count:]]


def _vector_text(values: Sequence[Any], write: _Number, width: int, indent: int, hidden: bool) -> str:
    """One axis; as many numbers per line as fit."""
    texts = [write(value) for value in values]
    if hidden:
        texts = _with_gap(texts, _ELLIPSIS)
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (width + 2))
    lines = [", ".join(texts[start : start + per_line]) for start in range(0, len(texts), per_line)]
    return "[" + f",\n{' ' * (indent + 1)}".join(lines) + "]"


def _nested_text(values: Any, hidden: Sequence[bool], write: _Number, width: int, indent: int) -> str:
    """Nested lists of numbers; `hidden` says for each axis whether its middle is left out."""
    if not hidden:
        return write(values)
    if len(hidden) == 1:
        return _vector_text(values, write, width, indent, hidden[0])
    parts = [_nested_text(value, hidden[1:], write, width, indent + 1) for value in values]
    if hidden[0]:
        parts = _with_gap(parts, "...")
    return "[" + f",{chr(10) * (len(hidden) - 1)}{' ' * (indent + 1)}".join(parts) + "]"


def _array_text(array: Array, indent: int) -> str:
    if array.size == 0:
        return "[]"
    hidden = [False] * array.ndim
    if array.size > PRINT_OPTS.threshold:
        if PRINT_OPTS.edgeitems == 0:
            return "[...]"
        hidden = [length > 2 * PRINT_OPTS.edgeitems for length in array.shape]
        array = _edges(array)
    write, width = _element_format(array)
    return _nested_text(array.tolist(), hidden, write, width, indent)


# --- tensors ----------------------------------------------------------------------------------------------------------


def _default_dtypes(default: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
    """The dtypes that go without saying."""
    return (default, np.dtype("c16" if default == np.float64 else "c8"), np.dtype(np.int64), np.dtype(np.bool_))


def tensor_text(
    data: Array,
    prefix: str = "tensor(",
    *,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    is_parameter: bool = False,
    default: np.typing.DTypeLike | None = None,
    tangent: str | None = None,
    meta: bool = False,
) -> str:
    """What `repr` of a tensor gives: the numbers, then what there is to say of it.

    `grad_fn_name` is the name of its node, `tangent` its tangent in forward mode as `format` gives it. The dtype is
    said unless it is `default` (None: the default dtype in force) or one that the numbers tell. `meta`: there are no
    numbers. A subclass has its own name in `prefix`.

    >>> print(tensor_text(np.array([4.0], np.float32), requires_grad=True))
    tensor([4.], requires_grad=True)
    >>> print(tensor_text(np.array(3.14159), grad_fn_name="MulBackward0"))
    tensor(3.1416, dtype=torch.float64, grad_fn=<MulBackward0>)
    """
    floating = get_default_dtype().numpy if default is None else np.dtype(default)
    hidden = meta or data.size == 0
    suffixes = ["device='meta'"] if meta else []
    if meta or (data.ndim != 1 if hidden else PRINT_OPTS.edgeitems == 0):
        suffixes.append(f"size={tuple(data.shape)}")
    # Without numbers to tell integers by, only the default dtype goes without saying.
    if data.dtype != floating and (hidden or data.dtype not in _default_dtypes(floating)):
        suffixes.append(f"dtype={of(data.dtype)}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    body = prefix + ("..." if meta else _array_text(data, len(prefix)))
    text = _with_suffixes(body, suffixes, len(prefix))
    return f"Parameter containing:\n{text}" if is_parameter else text


def _with_suffixes(body: str, suffixes: Sequence[str], indent: int) -> str:
    """Each suffix goes on the last line if that leaves it short enough, otherwise on one of its own."""
    parts = [body]
    length = len(body) - body.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(f",\n{' ' * indent}{suffix}")
            length = indent + len(suffix)
        else:
            parts.append(f", {suffix}")
            length += len(suffix) + 2
    return "".join(parts) + ")"
