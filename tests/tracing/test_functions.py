"""Every NumPy function rule gives NumPy's value, dtype, shape and kind of object, and the right derivative."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from srcgrad.errors import ArgumentError, AxisError, DTypeError, MatrixError, ShapeError, SrcgradError, UnsupportedError
from srcgrad.tracing.trace import NeedsConcrete
from srcgrad.tracing.tracer import FUNCTIONS
from tests.tracing.array_cases import CREATION, JOINING, SELECTION, SHAPES, SORTING, WRITES
from tests.tracing.function_inputs import (
    C,
    E,
    M,
)
from tests.tracing.number_cases import CONCRETE, DIFFERENCES, LINALG, PREDICATES, PRODUCTS, REDUCTIONS
from tests.tracing.signal_cases import KNOWN, SIGNAL, SIGNAL_NOT_SMOOTH
from tests.tracing.trace_support import Case, compare, directional, run

ABSTRACT = [
    *SHAPES,
    *JOINING,
    *REDUCTIONS,
    *SELECTION,
    *CREATION,
    *WRITES,
    *SORTING,
    *PRODUCTS,
    *LINALG,
    *DIFFERENCES,
    *PREDICATES,
    *SIGNAL,
]

NOT_SMOOTH = {
    "quantile nan",
    "median nan",
    "nan",
    "nan axis",
    "max nan",
    "sort nan",
    "nan_to_num",
    "nan_to_num complex",
    "concatenate dtype",
    "sum dtype",
    "interp nodes",
    "searchsorted ties",
    "isposinf",
    "nan_to_num in place",
    "like",
    "isclose nan",
    "fill_diagonal view",
    *SIGNAL_NOT_SMOOTH,
}


@pytest.mark.parametrize("concrete", [False, True], ids=["abstract", "concrete"])
@pytest.mark.parametrize("case", ABSTRACT, ids=lambda case: case[0])
def test_function_equals_numpy(case: Case, concrete: bool) -> None:
    _, f, arrays = case
    compare(f, arrays, concrete)


@pytest.mark.parametrize("case", [*CONCRETE, *KNOWN], ids=lambda case: case[0])
def test_function_of_known_numbers(case: Case) -> None:
    _, f, arrays = case
    compare(f, arrays, concrete=True)
    with pytest.raises(NeedsConcrete):
        run(f, arrays)


DIFFERENTIABLE = [
    case
    for case in ABSTRACT
    if case[0] not in NOT_SMOOTH
    and all(np.asarray(a).dtype.name not in ("float32", "float16") for a in case[2])
    and any(np.asarray(a).dtype.kind in "fc" for a in case[2])
]


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case[0])
def test_derivative(case: Case) -> None:
    _, f, arrays = case
    directional(f, arrays)


# --- what is refused -------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, Any, tuple[Any, ...], type[Exception]]] = [
    ("axis", lambda x: np.sum(x, axis=2), (M,), AxisError),
    ("axis twice", lambda x: np.sum(x, axis=(0, 0)), (M,), AxisError),
    ("moveaxis", lambda x: np.moveaxis(x, 5, 0), (M,), AxisError),
    ("max axis", lambda x: x.max(axis=-3), (M,), AxisError),
    ("transpose", lambda x: np.transpose(x, (0, 0)), (M,), ShapeError),
    ("transpose axis", lambda x: np.transpose(x, (0, 7)), (M,), AxisError),
    ("squeeze", lambda x: np.squeeze(x, 0), (M,), ShapeError),
    ("swapaxes", lambda x: x.swapaxes(0, 2), (M,), AxisError),
    ("reshape", lambda x: x.reshape(5, 5), (M,), ShapeError),
    ("broadcast_to", lambda x: np.broadcast_to(x, (4, 3)), (M,), ShapeError),
    ("concatenate", lambda x: np.concatenate((x, x[:, :2])), (M,), ShapeError),
    ("concatenate ranks", lambda x: np.concatenate((x, x[0])), (M,), ShapeError),
    ("stack", lambda x: np.stack((x, x[:2])), (M,), ShapeError),
    ("split", lambda x: np.split(x, 5), (M,), ShapeError),
    ("max of nothing", lambda x: np.max(x), (E,), ShapeError),
    ("max where", lambda x: np.max(x, where=x > 0), (M,), ShapeError),
    ("matmul", lambda x: x @ x, (M,), ShapeError),
    ("dot", lambda x: np.dot(x, x), (M,), ShapeError),
    ("einsum", lambda x: np.einsum("ij,jk", x, x), (M,), ShapeError),
    ("einsum rank", lambda x: np.einsum("ijk", x), (M,), ShapeError),
    ("solve", lambda x: np.linalg.solve(x, x), (M,), MatrixError),
    ("quantile range", lambda x: np.quantile(x, 1.5), (M,), ShapeError),
    ("quantile method", lambda x: np.quantile(x, 0.5, method="cubic"), (M,), ShapeError),
    ("quantile weights", lambda x: np.quantile(x, 0.5, weights=x), (M,), ShapeError),
    ("complex quantile", lambda x: np.quantile(x, 0.5), (C,), DTypeError),
    ("pad function", lambda x: np.pad(x, 1, mode=lambda *parts: None), (M,), UnsupportedError),
    ("pad mode", lambda x: np.pad(x, 1, mode="other"), (M,), ShapeError),
    ("pad widths", lambda x: np.pad(x, (1, 2, 3)), (M,), ShapeError),
    ("pad option", lambda x: np.pad(x, 1, mode="edge", stat_length=1), (M,), ShapeError),
    ("pad empty", lambda x: np.pad(x, 1, mode="edge"), (E,), ShapeError),
    ("fft size", lambda x: np.fft.fft(x, 0), (M,), ShapeError),
    ("fft norm", lambda x: np.fft.fft(x, norm="other"), (M,), ShapeError),
    ("fft axis", lambda x: np.fft.fft(x, axis=2), (M,), AxisError),
    ("fft sizes", lambda x: np.fft.fftn(x, (2,), axes=(0, 1)), (M,), ShapeError),
    ("rfft of complex", lambda x: np.fft.rfft(x), (C,), DTypeError),
    ("irfft of one", lambda x: np.fft.irfft(x[:, :1]), (M,), ShapeError),
    ("convolve matrices", lambda x: np.convolve(x, x), (M,), ShapeError),
    ("convolve nothing", lambda x: np.convolve(x[0], x[0, :0]), (M,), ShapeError),
    ("convolve mode", lambda x: np.convolve(x[0], x[0], "other"), (M,), ArgumentError),
    ("window size", lambda x: np.lib.stride_tricks.sliding_window_view(x, (4, 1)), (M,), ShapeError),
    ("window write", lambda x: np.lib.stride_tricks.sliding_window_view(x, (1, 1)).fill(1.0), (M,), SrcgradError),
    ("histogram edges", lambda x: np.histogram(x, [1.0, 0.0]), (M,), ShapeError),
    ("histogram weights", lambda x: np.histogram(x, weights=x[0]), (M,), ShapeError),
    ("digitize bins", lambda x: np.digitize(x, [0.0, 2.0, 1.0]), (M,), ShapeError),
    ("searchsorted matrix", lambda x: np.searchsorted(x, 0.0), (M,), ShapeError),
    ("interp lengths", lambda x: np.interp(x, x[0], x[0, :2]), (M,), ShapeError),
    ("sort order", lambda x: np.sort(x, order="f"), (M,), UnsupportedError),
    ("sort descending", lambda x: x.copy().sort(descending=True), (M,), UnsupportedError),
    ("view", lambda x: x.view(np.int64), (M,), UnsupportedError),
    ("no rule", lambda x: np.busday_count(x, x), (M,), UnsupportedError),
    ("concrete out", lambda x: np.sum(x, axis=0, out=np.zeros(4)), (M,), UnsupportedError),
    ("diagonal write", lambda x: np.diagonal(x).__setitem__(0, 1.0), (M,), SrcgradError),
    ("broadcast write", lambda x: np.broadcast_to(x, (2, 3, 4)).__iadd__(1.0), (M,), SrcgradError),
    ("array", lambda x: np.asarray(x), (M,), SrcgradError),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_refusal(case: tuple[str, Any, tuple[Any, ...], type[Exception]]) -> None:
    _, f, arrays, error = case
    with pytest.raises(error):
        run(f, arrays)


def test_rules_have_numpys_parameters() -> None:
    """Every parameter that NumPy's function names, the rule names too, in the same place if it is positional."""
    different = []
    for function, rule in FUNCTIONS.items():
        try:
            wanted = inspect.signature(function).parameters
        except (TypeError, ValueError):
            continue
        if any(p.kind is p.VAR_POSITIONAL for p in wanted.values()):
            continue
        own = inspect.signature(rule).parameters
        open_ended = any(p.kind is p.VAR_KEYWORD for p in own.values())
        for place, (name, parameter) in enumerate(wanted.items()):
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            if parameter.kind is parameter.POSITIONAL_ONLY:
                found = place < len(own)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                found = name in own or open_ended
            else:
                found = name in own and list(own).index(name) == place
            if not found and not any(p.kind is p.VAR_POSITIONAL for p in own.values()):
                different.append((function.__name__, name))
    assert different == []
