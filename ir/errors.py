"""What srcgrad raises: each class is also the Python error that NumPy would raise in that situation.

Code that catches `TypeError`, `ValueError` or `IndexError` around NumPy calls therefore keeps working when the calls
are traced, and `except SrcgradError` catches all that srcgrad reports.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable
from difflib import SequenceMatcher
from types import EllipsisType, TracebackType
from typing import Self, TypeVar

import numpy as np

from srcgrad.ir.source import Span, internal_frame, render, user_span

__all__ = [
    "ArgumentError",
    "AxisError",
    "BackendError",
    "ConcretizationError",
    "CustomRuleError",
    "DTypeError",
    "DepthError",
    "EvaluationError",
    "GradientCheckError",
    "HolomorphicError",
    "IndexingError",
    "IntegerInputError",
    "InternalError",
    "LeakedTracerError",
    "MatrixError",
    "MissingRuleError",
    "MutationError",
    "NoAttributeError",
    "NonFiniteError",
    "NonScalarOutputError",
    "ParseError",
    "RangeError",
    "ShapeError",
    "SrcgradError",
    "StructureError",
    "UnknownBackendError",
    "UnsupportedError",
    "VerifyError",
    "nearest",
    "nearest_hint",
    "prune_traceback",
]

_Raised = TypeVar("_Raised", bound=BaseException)

_SIMILAR_ENOUGH = 0.6


class SrcgradError(Exception):
    """The base of all errors that srcgrad raises.

    `span` is the place in user code that the error is about: the innermost line of user code on the stack unless given,
    nowhere if None. `hint` says what to do. `context` holds lines such as "while tracing grad(loss), called at
    main.py:12", innermost first. `str` gives all of them; `message` is the bare sentence. Errors pickle.

    >>> from srcgrad.ir.source import Span
    >>> span = Span.at("demo.py", 4, 11, 16, "loss", "h = np.sin(x @ w)")
    >>> error = SrcgradError("inner sizes differ, 3 vs 2", span=span, hint="transpose w")
    >>> print(error.add_context("while tracing grad(loss), called at main.py:12"))
    inner sizes differ, 3 vs 2
      demo.py:4 in loss
          h = np.sin(x @ w)
                     ^^^^^
      hint: transpose w
      while tracing grad(loss), called at main.py:12
    """

    message: str
    span: Span | None
    hint: str | None
    context: list[str]

    def __init__(self, message: str, *, span: Span | EllipsisType | None = ..., hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = user_span() if isinstance(span, EllipsisType) else span
        self.hint = hint
        self.context = []

    def add_context(self, text: str) -> Self:
        """Appends a line that says what was going on, and returns the error."""
        self.context.append(text)
        return self

    def __str__(self) -> str:
        parts = [self.message]
        if self.span is not None:
            parts.append(render(self.span))
        if self.hint is not None:
            parts.append("  hint: " + self.hint.replace("\n", "\n        "))
        parts.extend(f"  {text}" for text in self.context)
        return "\n".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call __init__ again and look for user code on the stack of whoever unpickles.
        return copyreg.__newobj__, (type(self), self.message), dict(self.__dict__)  # type: ignore[attr-defined]


class ShapeError(SrcgradError, ValueError):
    """Shapes that do not fit: `x @ w` of f64[4,3] and f64[2,3]."""


class MatrixError(SrcgradError, np.linalg.LinAlgError):
    """No matrices, or not square ones, for a function of `np.linalg` that needs them: `np.linalg.inv` of f64[2,3]."""


class DTypeError(SrcgradError, TypeError):
    """A dtype that the operation or the backend does not take: `np.sin` of strings, longdouble under llvm."""


class AxisError(SrcgradError, np.exceptions.AxisError):
    """An axis out of bounds or given twice: `np.sum(x, axis=2)` of a matrix."""


class IndexingError(SrcgradError, IndexError):
    """An index out of bounds or of a kind that does not index: `x[5]` of three elements, `x["a"]`."""


class RangeError(SrcgradError, OverflowError):
    """A Python number that a dtype has no place for: `x + 300` where `x` is of uint8."""


class DepthError(SrcgradError, RecursionError):
    """A recursion for which there is not enough stack: converted code has several frames where Python has one."""


class UnsupportedError(SrcgradError, TypeError):
    """A function or an option without a rule: a traced array given to `np.busday_count`."""


class ConcretizationError(SrcgradError, TypeError):
    """A traced value where a concrete one is needed: `math.floor(x)`, or `np.zeros(n)` with a traced `n`."""

    storing = False
    """Whether a traced value was to become an element of an array that is not."""
    of_text = False
    """Whether a number was read of the text of a traced value: where code runs as it is, that may not be seen."""


class LeakedTracerError(SrcgradError, TypeError):
    """A traced value used after its trace has ended: one that the function had stored in a global."""


class NonFiniteError(SrcgradError, FloatingPointError):
    """An operation whose operands are finite and whose result is not, found by `srcgrad.debug`: `np.log(0.0)`."""


class NonScalarOutputError(SrcgradError, TypeError):
    """A function that returns no scalar where one is needed: `grad(np.sin)(np.ones(3))`."""


class IntegerInputError(SrcgradError, TypeError):
    """A derivative with respect to an integer: `grad(f)(3)`, where `grad(f)(3.0)` was meant."""


class ArgumentError(SrcgradError, TypeError, ValueError):
    """An argument of a transform that makes no sense: `grad(f, argnums=2)` of a function of two arguments."""


class NoAttributeError(SrcgradError, AttributeError):
    """An attribute that no array has: `x.summ()`."""


class StructureError(SrcgradError, TypeError, ValueError):
    """Containers that should be alike and are not: a tangent `(dx,)` for a primal `{"x": x}`."""


class BackendError(SrcgradError, ImportError):
    """A backend that cannot run here: `backend="xla"` without jax installed."""


class UnknownBackendError(SrcgradError, ValueError):
    """A backend that does not exist: `backend="xlaa"`."""


class HolomorphicError(SrcgradError, TypeError):
    """A complex derivative that does not exist or was not asked for: `grad(np.conj)(1j)`."""


class MutationError(SrcgradError, ValueError):
    """A write that NumPy would refuse: `x[0] = 1.0` where `x` is read-only."""


class CustomRuleError(SrcgradError, TypeError):
    """A custom derivative rule that is missing or returns the wrong things: a `bwd` with two results for one input."""


class VerifyError(SrcgradError, ValueError):
    """IR that breaks a rule of the language: an operand used before its definition."""


class ParseError(SrcgradError, ValueError):
    """IR text that does not follow the grammar: `%a: f64[ = sin %x`."""


class MissingRuleError(SrcgradError, TypeError):
    """An op whose class lacks a method: the transpose of an op that declares itself linear and has none."""


class GradientCheckError(SrcgradError, AssertionError):
    """Derivatives that disagree in `check_grads`: a custom rule with a wrong sign."""


class EvaluationError(SrcgradError, RuntimeError):
    """A compiled program that fails while it runs: a `check` whose predicate is false."""


class InternalError(SrcgradError, RuntimeError):
    """A broken promise inside srcgrad: a bug to report, whatever the input."""


def nearest(name: str, candidates: Iterable[str], count: int = 3) -> list[str]:
    """The `count` candidates at most that look like `name`, best first; none if none does.

    What counts is the last part of a dotted name; the rest breaks ties (Ratcliff and Obershelp's similarity).

    >>> nearest("np.sinn", ["np.sin", "np.cos", "np.sinh", "np.linalg.solve"])
    ['np.sin', 'np.sinh']
    """
    whole = SequenceMatcher(b=name.lower())
    last = SequenceMatcher(b=name.lower().rpartition(".")[2])
    scored = []
    for candidate in sorted(set(candidates)):
        whole.set_seq1(candidate.lower())
        last.set_seq1(candidate.lower().rpartition(".")[2])
        if last.real_quick_ratio() >= _SIMILAR_ENOUGH and last.ratio() >= _SIMILAR_ENOUGH:
            scored.append((-last.ratio(), -whole.ratio(), candidate))
    return [candidate for _, _, candidate in sorted(scored)[:count]]


def nearest_hint(name: str, candidates: Iterable[str], count: int = 3) -> str | None:
    """The hint of an unknown or unsupported name; None where nothing looks like it.

    >>> nearest_hint("np.sinn", ["np.sin", "np.cos", "np.arcsin"])
    'did you mean np.sin? also close: np.arcsin'
    """
    found = nearest(name, candidates, count)
    if not found:
        return None
    hint = f"did you mean {found[0]}?"
    return hint if len(found) == 1 else f"{hint} also close: {', '.join(found[1:])}"


def prune_traceback(exc: _Raised) -> _Raised:
    """Takes srcgrad's own frames (and NumPy's) out of `exc.__traceback__` and returns `exc`; user frames stay.

    An `InternalError` keeps all of them, since they are what its report needs.
    """
    if isinstance(exc, InternalError):
        return exc
    kept = []
    entry = exc.__traceback__
    while entry is not None:
        if not internal_frame(entry.tb_frame):
            kept.append(entry)
        entry = entry.tb_next
    pruned: TracebackType | None = None
    for entry in reversed(kept):
        pruned = TracebackType(pruned, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return exc.with_traceback(pruned)
