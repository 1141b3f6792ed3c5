"""Bad input gives errors of `srcgrad.errors`: their classes, places, tracebacks and, by snapshot, their words."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import os
import pickle
import re
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import srcgrad as sg
import tests.api.error_cases_calls
import tests.api.error_cases_code
import tests.api.error_cases_tools  # noqa: F401  the cases register themselves
from srcgrad.ir.source import internal_frame
from tests.api.error_table import CASES

GOLDEN = Path(__file__).parents[1] / "golden" / "errors.txt"
TABLES = ("error_cases_calls.py", "error_cases_code.py", "error_cases_tools.py")
X = np.array([1.0, 2.0, 3.0])


def failure(name: str) -> Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        try:
            result = CASES[name].run()
        except Exception as error:
            return error
    raise AssertionError(f"{name} raised nothing and returned {result!r}")


def normalised(text: str) -> str:
    """The message without folders, line numbers and memory addresses."""
    text = re.sub(r"\(/[^ )]*/", "(", text)
    text = re.sub(r"\((/[^ ]*/)", "(", text)
    return re.sub(r"0x[0-9a-f]+", "0x…", re.sub(r"(\w+\.py):\d+", r"\1:N", text))


def snapshot(name: str) -> str:
    error = failure(name)
    return f"== {name}\n{type(error).__name__}: {normalised(str(error))}\n"


def frames(error: Exception) -> list[TracebackType]:
    found, entry = [], error.__traceback__
    while entry is not None:
        found.append(entry)
        entry = entry.tb_next
    return found


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(CASES))
def test_class_place_and_remedy(name: str) -> None:
    expected = CASES[name]
    error = failure(name)
    assert isinstance(error, sg.SrcgradError), f"{type(error).__name__}: {error}"
    assert type(error).__name__ == expected.kind, str(error)
    assert isinstance(error, expected.python)
    span = error.span
    assert span is not None
    assert os.path.basename(span.file) in TABLES, str(error)
    assert span.source[span.column : span.end_column] == expected.at, str(error)
    assert "Tracer(" not in str(error)
    assert error.__cause__ is None


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(CASES))
def test_traceback_is_pruned(name: str) -> None:
    error = failure(name)
    inner = [internal_frame(entry.tb_frame) for entry in frames(error)]
    if isinstance(error, sg.errors.LeakedTracerError) and not error.context:
        return  # raised by an operator outside any call of srcgrad: nothing is there that could prune
    # Each call of srcgrad is one frame, the one that raises; below it there is user code or nothing.
    assert not any(first and second for first, second in itertools.pairwise(inner))


def test_messages(request: pytest.FixtureRequest) -> None:
    """The words, compared with ``tests/golden/errors.txt``; ``pytest --update-golden`` writes them anew."""
    found = "\n".join(snapshot(name) for name in CASES)
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text()


NEVER_FAILS = {"stop_gradient", "clear_caches"}
"""Any object is a leaf, and a leaf that is no float is its own value."""


def test_every_public_function_has_bad_calls() -> None:
    functions = {name for name in sg.__all__ if callable(getattr(sg, name)) and name[0].islower()}
    source = "\n".join((Path(__file__).parent / name).read_text() for name in TABLES)
    assert not {name for name in functions - NEVER_FAILS if not re.search(rf"at=.*sg\.{name}\(", source)}


# --- the user's own exceptions ---------------------------------------------------------------------------------------
class Stop(Exception):
    """An exception of the user's."""


def stop(x: Any, raised: Exception) -> Any:
    raise raised


TRANSFORMS: dict[str, Any] = {
    "grad": lambda f: sg.grad(f)(1.0),
    "value_and_grad": lambda f: sg.value_and_grad(f)(1.0),
    "jacfwd": lambda f: sg.jacfwd(f)(X),
    "jacrev": lambda f: sg.jacrev(f)(X),
    "jacobian": lambda f: sg.jacobian(f)(X),
    "hessian": lambda f: sg.hessian(f)(X),
    "vmap": lambda f: sg.vmap(f)(X),
    "jit": lambda f: sg.jit(f)(X),
    "vjp": lambda f: sg.vjp(f, X),
    "jvp": lambda f: sg.jvp(f, (X,), (X,)),
    "linearize": lambda f: sg.linearize(f, X),
    "hvp": lambda f: sg.hvp(f, (X,), (X,)),
    "checkpoint": lambda f: sg.grad(sg.checkpoint(f))(1.0),
    "custom_jvp": lambda f: sg.grad(sg.custom_jvp(f))(1.0),
    "nested": lambda f: sg.grad(lambda y: sg.grad(f)(y))(1.0),
    "vmap of grad": lambda f: sg.vmap(sg.grad(f))(X),
}
RAISED = [
    Stop("stop"), ValueError("bad"), TypeError("bad"), IndexError("bad"), KeyError("key"), AttributeError("none"),
    AssertionError(), ZeroDivisionError("zero"), NotImplementedError(), np.linalg.LinAlgError("singular"),
    np.exceptions.AxisError("axis"), RuntimeWarning("warned"), StopIteration(), RecursionError("deep"),
]  # fmt: skip


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("raised", RAISED, ids=lambda error: type(error).__name__)
def test_exceptions_of_user_code_pass(transform: str, raised: Exception) -> None:
    f: Any = lambda x: stop(x, raised)  # noqa: E731
    if transform == "custom_jvp":
        with pytest.raises(sg.errors.CustomRuleError):
            TRANSFORMS[transform](f)
        return
    with pytest.raises(type(raised)) as caught:
        TRANSFORMS[transform](f)
    assert caught.value is raised
    assert frames(caught.value)[-1].tb_frame.f_code is stop.__code__


def test_exceptions_of_numpy_on_concrete_arrays_pass() -> None:
    def f(x: Any) -> Any:
        return x * np.linalg.cholesky(-np.eye(2))[0, 0]

    with pytest.raises(np.linalg.LinAlgError):
        sg.grad(f)(1.0)

    def g(x: Any) -> Any:
        return x * np.ones(3)[5]

    with pytest.raises(IndexError) as caught:
        sg.grad(g)(1.0)
    assert type(caught.value) is IndexError


def test_errors_of_the_running_program_name_the_line() -> None:
    def f(a: Any) -> Any:
        return np.linalg.cholesky(a)[0, 0]

    with pytest.raises(np.linalg.LinAlgError) as caught:
        sg.grad(f)(-np.eye(2))
    assert any("return np.linalg.cholesky(a)[0, 0]" in note for note in caught.value.__notes__)


def test_errors_of_a_running_program_of_xla_name_the_line() -> None:
    pytest.importorskip("jax")

    def f(a: Any) -> Any:
        total = 0.0
        while total < 1.0:
            total = total + np.linalg.inv(a)[0, 0]
        return total

    with pytest.raises(np.linalg.LinAlgError) as caught:
        sg.grad(f, backend="xla")(np.ones((2, 2)))
    assert any("total = total + np.linalg.inv(a)[0, 0]" in note for note in caught.value.__notes__)


def test_what_user_code_catches_decides() -> None:
    def f(x: Any) -> Any:
        try:
            return np.sum(x @ np.ones(7))
        except ValueError:
            return np.sum(x * 3.0)

    assert np.array_equal(sg.grad(f)(X), [3.0, 3.0, 3.0])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_swallowed_need_of_a_value_is_not_lost() -> None:
    def f(x: Any) -> Any:
        try:
            scale = 2.0 if x > 0 else 3.0
        except Exception:
            scale = 100.0
        return x * scale

    assert sg.grad(f)(1.0) == 2.0
    assert sg.grad(f)(-1.0) == 3.0
    assert sg.grad(lambda x: sg.grad(f)(x) * x)(-1.0) == 3.0


def test_context_names_the_calls() -> None:
    def inner(x: Any) -> Any:
        return x[7]

    def outer(x: Any) -> Any:
        return sg.grad(inner)(x)[0]

    with pytest.raises(sg.errors.IndexingError) as caught:
        sg.grad(outer)(X)
    here = caught.value.context
    assert re.fullmatch(r"while tracing grad\(inner\), called at test_errors\.py:\d+", here[0])
    assert re.fullmatch(r"while tracing grad\(outer\), called at test_errors\.py:\d+", here[1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sg.grad(lambda x: None)(X), "the function returns nothing"),
        (lambda: sg.grad(np.sum)(np.ma.array(X)), r"x.filled\(0.0\) and np.ma.getmaskarray"),
        (lambda: sg.grad(np.sum)(np.zeros(3, [("a", float)])), "pass its fields"),
        (lambda: sg.grad(lambda x: np.save("x.npy", x) or np.sum(x))(X), "save what the transformed function returns"),
        (lambda: sg.grad(lambda x: math.sin(x))(X), r"np.sin\(x\) for math.sin\(x\)"),
        (lambda: sg.grad(lambda x: float(x))(X), r"x.astype\(float\) for float\(x\)"),
        (lambda: pickle.dumps(sg.vjp(np.sin, X)[1]), "call vjp or linearize again where it is needed"),
        (lambda: sg.grad(lambda x: [1.0, 2.0] * x[0])(X), "non-int of type 'numpy.float64'"),
        (lambda: sg.grad(lambda x: ([1.0] * x)[0])(3.0), "non-int of type 'float'"),
        (
            lambda: sg.grad(lambda x: scipy.interpolate.make_splprep([x, x**2])[0](0.3)[0])(X),
            "make_splprep has no derivative rule",
        ),
    ],
)
def test_a_common_slip_is_told_what_to_do(call: Any, words: str) -> None:
    with pytest.raises(sg.SrcgradError, match=words):
        call()


def test_a_pullback_is_copied_as_it_was() -> None:
    """What it says of pickling is not what `copy` asks for."""
    pullback = sg.vjp(np.sin, X)[1]
    for other in (copy.copy(pullback), copy.deepcopy(pullback)):
        np.testing.assert_array_equal(other(np.ones_like(X))[0], np.cos(X))


@dataclasses.dataclass
class Square:
    side: float

    def __post_init__(self) -> None:
        self.area = self.side**2


def test_an_attribute_of_a_dataclass_that_is_no_field_is_explained() -> None:
    with pytest.raises(AttributeError, match="'area'") as caught:
        sg.grad(lambda square: square.area)(Square(2.0))
    assert any("make area one" in note and "init=False" in note for note in caught.value.__notes__)
    with pytest.raises(AttributeError, match="'volume'") as caught:
        sg.grad(lambda square: square.volume)(Square(2.0))
    assert not hasattr(caught.value, "__notes__")
