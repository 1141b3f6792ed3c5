from __future__ import annotations

import copy
import inspect
import pickle
import sys
import traceback
from types import CodeType
from typing import Any

import numpy as np
import pytest

import srcgrad.errors
from srcgrad.ir import errors
from srcgrad.ir.errors import InternalError, ShapeError, SrcgradError, nearest, nearest_hint, prune_traceback
from srcgrad.ir.source import Span

SPAN = Span.at("demo.py", 4, 11, 16, "loss", "h = np.sin(x @ w)")

PYTHON_BASES: dict[str, tuple[type[Exception], ...]] = {
    "ArgumentError": (TypeError, ValueError),
    "AxisError": (np.exceptions.AxisError,),
    "BackendError": (ImportError,),
    "ConcretizationError": (TypeError,),
    "CustomRuleError": (TypeError,),
    "DTypeError": (TypeError,),
    "DepthError": (RecursionError,),
    "EvaluationError": (RuntimeError,),
    "GradientCheckError": (AssertionError,),
    "HolomorphicError": (TypeError,),
    "IndexingError": (IndexError,),
    "IntegerInputError": (TypeError,),
    "InternalError": (RuntimeError,),
    "LeakedTracerError": (TypeError,),
    "MatrixError": (np.linalg.LinAlgError,),
    "MissingRuleError": (TypeError,),
    "MutationError": (ValueError,),
    "NoAttributeError": (AttributeError,),
    "NonFiniteError": (FloatingPointError,),
    "NonScalarOutputError": (TypeError,),
    "ParseError": (ValueError,),
    "RangeError": (OverflowError,),
    "ShapeError": (ValueError,),
    "SrcgradError": (),
    "StructureError": (TypeError, ValueError),
    "UnknownBackendError": (ValueError,),
    "UnsupportedError": (TypeError,),
    "VerifyError": (ValueError,),
}


def test_every_class_is_listed_and_exported() -> None:
    defined = {name for name, cls in vars(errors).items() if inspect.isclass(cls) and issubclass(cls, SrcgradError)}
    assert defined == set(PYTHON_BASES) == set(srcgrad.errors.__all__)
    assert defined | {"nearest", "nearest_hint", "prune_traceback"} == set(errors.__all__)
    for name in srcgrad.errors.__all__:
        assert getattr(srcgrad.errors, name) is getattr(errors, name)


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(PYTHON_BASES))
def test_each_class_is_the_python_error_and_pickles(name: str) -> None:
    cls = getattr(errors, name)
    assert cls.__bases__ == ((SrcgradError, *PYTHON_BASES[name]) if PYTHON_BASES[name] else (Exception,))
    assert cls.__doc__
    error = cls("it broke", span=SPAN.derive("adjoint"), hint="mend it").add_context("while tracing f")
    error.add_note("a note")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(error, protocol))
        assert type(back) is cls
        assert (str(back), back.args, back.message) == (str(error), ("it broke",), "it broke")
        assert (back.hint, back.context, back.__notes__) == ("mend it", ["while tracing f"], ["a note"])
        assert back.span.role == "adjoint"
    duplicate = copy.copy(error)
    assert (type(duplicate), str(duplicate), duplicate.span) == (cls, str(error), error.span)


def test_message_in_full() -> None:
    error = ShapeError(
        "matmul: inner sizes differ, f64[4,3] @ f64[2,3] (3 vs 2)", span=SPAN, hint="transpose w\nor x, not both"
    )
    error.add_context("while tracing grad(loss), called at main.py:12").add_context("while tracing jit(step)")
    assert str(error) == (
        "matmul: inner sizes differ, f64[4,3] @ f64[2,3] (3 vs 2)\n"
        "  demo.py:4 in loss\n"
        "      h = np.sin(x @ w)\n"
        "                 ^^^^^\n"
        "  hint: transpose w\n"
        "        or x, not both\n"
        "  while tracing grad(loss), called at main.py:12\n"
        "  while tracing jit(step)"
    )


def test_parts_that_are_absent_leave_no_line() -> None:
    assert str(SrcgradError("it broke", span=None)) == "it broke"
    assert str(SrcgradError("it broke", span=None, hint="mend it")) == "it broke\n  hint: mend it"


def test_the_span_defaults_to_the_line_of_the_user() -> None:
    error = SrcgradError("it broke")
    assert error.span is not None
    assert error.span.text == 'error = SrcgradError("it broke")'
    assert str(error).splitlines()[1].endswith("in test_the_span_defaults_to_the_line_of_the_user")


def test_unpickling_keeps_the_absence_of_a_span() -> None:
    assert pickle.loads(pickle.dumps(SrcgradError("it broke", span=None))).span is None


CANDIDATES = ["np.sin", "np.sinh", "np.cos", "np.arcsin", "np.linalg.solve", "np.fft.fft", "np.fft.fft2", "np.sum"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("np.sinn", ["np.sin", "np.sinh", "np.arcsin"]),
        ("np.Solve", ["np.linalg.solve"]),
        ("scipy.fft.fft", ["np.fft.fft", "np.fft.fft2"]),
        ("np.busday_count", []),
    ],
)
def test_nearest_compares_last_parts_first(name: str, expected: list[str]) -> None:
    assert nearest(name, CANDIDATES) == expected
    assert nearest(name, iter(reversed(CANDIDATES))) == expected
    assert nearest(name, CANDIDATES, count=1) == expected[:1]


def test_nearest_hint() -> None:
    assert nearest_hint("np.sinn", CANDIDATES) == "did you mean np.sin? also close: np.sinh, np.arcsin"
    assert nearest_hint("np.Solve", CANDIDATES) == "did you mean np.linalg.solve?"
    assert nearest_hint("np.busday_count", CANDIDATES) is None


def package_code(text: str) -> CodeType:
    return compile(text, "<srcgrad test>", "exec")


def raised(error: Exception) -> Exception:
    """The error after it went through user, package, user and package frames."""
    namespace: dict[str, Any] = {}
    exec(package_code("def call(function):\n    return function()\ndef fail(error):\n    raise error\n"), namespace)

    def user_function() -> None:
        namespace["fail"](error)

    try:
        namespace["call"](user_function)
    except Exception as caught:
        return caught
    raise RuntimeError("nothing was raised")


def names(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_pruning_keeps_the_frames_of_users() -> None:
    error = raised(ShapeError("it broke"))
    assert names(error) == ["raised", "call", "user_function", "fail"]
    lines = [entry.lineno for entry in traceback.extract_tb(error.__traceback__)]
    assert prune_traceback(error) is error
    assert names(error) == ["raised", "user_function"]
    assert [entry.lineno for entry in traceback.extract_tb(error.__traceback__)] == [lines[0], lines[2]]


def test_pruning_works_on_errors_of_others() -> None:
    assert names(prune_traceback(raised(ZeroDivisionError()))) == ["raised", "user_function"]


def test_pruning_spares_internal_errors() -> None:
    error = prune_traceback(raised(InternalError("it broke")))
    assert names(error) == ["raised", "call", "user_function", "fail"]


def test_pruning_without_frames() -> None:
    assert prune_traceback(ShapeError("it broke")).__traceback__ is None
    try:
        exec(package_code("1 / 0"))
    except ZeroDivisionError as error:
        inside = error.__traceback__
        assert inside is not None
        error.__traceback__ = inside.tb_next
        assert sys.exc_info()[1] is prune_traceback(error)
        assert error.__traceback__ is None
