"""SciPy's functions and interpolants that have rules: its values, shapes and dtypes, derivatives in both modes, and one
program for all calls.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, interpolate, linalg, ndimage, signal, special, stats
from scipy.spatial import distance

import srcgrad as sg
from srcgrad.errors import EvaluationError, ShapeError, UnsupportedError
from tests.tracing.scipy_cases import PROGRAMS, Program, X


def name_of(program: Program) -> str:
    lines, number = inspect.getsourcelines(program)
    return f"{lines[0].strip().removeprefix('lambda x: ')[:40]} {number}"


def parts_of(result: Any) -> list[Any]:
    return [part for item in result for part in parts_of(item)] if isinstance(result, (tuple, list)) else [result]


def total(program: Program, x: Any) -> Any:
    """A number that all of the results decide."""
    found: Any = 0.0
    for part in parts_of(program(x)):
        weights = np.cos(np.arange(1.0, np.size(part) + 1.0)).reshape(np.shape(part))
        found = found + np.sum(weights * np.real(part)) + np.sum(np.sin(weights) * np.imag(part))
    return found


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_values_and_derivatives(program: Program, backend: str) -> None:
    expected, found = parts_of(program(X)), parts_of(sg.jit(program, strict=True, backend=backend)(X))
    assert [(np.shape(x), np.asarray(x).dtype) for x in found] == [(np.shape(x), np.asarray(x).dtype) for x in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    gradient = sg.grad(lambda x: total(program, x), backend=backend)(X)
    steps = 1e-5 * np.eye(X.size)
    differences = [(total(program, X + step) - total(program, X - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7 * (1.0 + np.max(np.abs(differences))))
    pushed = sg.jvp(lambda x: total(program, x), (X,), (np.sin(X),), backend=backend)[1]
    np.testing.assert_allclose(pushed, gradient @ np.sin(X), rtol=1e-9, atol=1e-10)


SINGLE: list[Program] = [
    lambda x: interpolate.CubicSpline(x, x)(x),
    lambda x: integrate.simpson(x[:5], dx=0.3),
    lambda x: integrate.trapezoid(x, x=np.arange(6.0)),
    lambda x: stats.sem(x),
    lambda x: stats.skew(x, bias=False),
    lambda x: stats.entropy(x, base=2),
    lambda x: stats.iqr(x),
    lambda x: signal.hilbert(x),
    lambda x: signal.stft(x, nperseg=4)[2],
    lambda x: signal.welch(x, nperseg=4)[1],
    lambda x: signal.lfilter([1.0, 0.5], [1.0, -0.3], x),
    lambda x: signal.detrend(x),
    lambda x: signal.savgol_filter(x, 5, 2),
    lambda x: ndimage.gaussian_filter(x, 1.0),
    lambda x: ndimage.map_coordinates(x, [[0.3, 2.2]], order=1),
    lambda x: distance.pdist(np.outer(x, x)),
    lambda x: linalg.pinvh(np.outer(x, x) + np.eye(6, dtype=x.dtype)),
]


@pytest.mark.parametrize("program", SINGLE, ids=name_of)
def test_single_precision_stays_where_it_does_in_scipy(program: Program) -> None:
    x = X.astype(np.float32)
    x.sort()
    expected = program(x)
    found = sg.jit(program, strict=True)(x)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


def test_images_of_integers_are_rounded_as_in_scipy() -> None:
    image = np.arange(30).reshape(5, 6) * 7 % 11
    for program in (
        lambda x: ndimage.map_coordinates(x, [[0.5, 1.2, 3.3], [0.3, 2.2, 4.6]], order=1),
        lambda x: ndimage.uniform_filter(x - 5, 3),
        lambda x: ndimage.correlate1d(x, [1, 2, -1]),
    ):
        found = sg.jit(program, strict=True)(image)
        np.testing.assert_array_equal(found, program(image))
        assert found.dtype == image.dtype


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: ndimage.correlate1d(x, [[1.0]]), ShapeError, "1-D"),
    (lambda x: ndimage.uniform_filter(x, 3, mode="mirrored"), EvaluationError, "boundary mode"),
    (lambda x: distance.cdist(x, x), ShapeError, "2-D"),
    (lambda x: distance.cdist(x[None], x[None], "yule"), UnsupportedError, "there are euclidean"),
    (lambda x: distance.pdist(x[None], "seuclidean"), UnsupportedError, "needs V"),
    (lambda x: distance.squareform(x[:5]), ShapeError, "binomial"),
    (lambda x: integrate.romb(x), ShapeError, "power of 2"),
    (lambda x: integrate.simpson(x, x=np.arange(3.0)), ShapeError, "3 places"),
    (lambda x: stats.rankdata(x, nan_policy="omit"), UnsupportedError, "nan_policy"),
    (lambda x: stats.skew(x / 0.0 - x / 0.0, nan_policy="raise"), ValueError, "contains nan"),
    (lambda x: interpolate.interp1d(x, x, kind="zero")(x), UnsupportedError, "kind='zero'"),
    (lambda x: interpolate.CubicSpline(x, x[:4])(x), ShapeError, "as many places"),
    (
        lambda x: interpolate.FloaterHormannInterpolator(np.arange(3.0), [0.0, 1.0, 5.0], d=1)(x),
        UnsupportedError,
        "FloaterHormannInterpolator",
    ),
    (lambda x: interpolate.interp1d(np.arange(2.0), [0.0, 1.0])(x), ValueError, "above the interpolation range"),
    (lambda x: interpolate.RegularGridInterpolator([np.arange(2.0)], x[:2])(x), ValueError, "out of bounds"),
    (lambda x: stats.boxcox(x), UnsupportedError, "lmbda"),
    (lambda x: signal.welch(x, average="median"), UnsupportedError, "average"),
    (lambda x: signal.filtfilt([1.0], [1.0, 0.5], x), ShapeError, "padlen"),
]


@pytest.mark.parametrize(("program", "kind", "words"), REFUSED)
def test_what_is_refused_says_so(program: Program, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        sg.grad(lambda x: total(program, x))(X)


WITHOUT_A_RULE: dict[str, Program] = {
    "scipy.stats.spearmanr": lambda x: stats.spearmanr(x, x**2)[0],
    "scipy.linalg.qz": lambda x: linalg.qz(np.eye(2) * x[0], np.eye(2))[0],
    "scipy.linalg.rsf2csf": lambda x: linalg.rsf2csf(np.eye(2) * x[0], np.eye(2))[0],
    "scipy.ndimage.geometric_transform": lambda x: ndimage.geometric_transform(x, lambda at: (at[0] + 0.5,)),
    "scipy.signal.residue": lambda x: signal.residue(x[:2], x[:3])[0],
    "scipy.linalg.lapack.dgeqrf": lambda x: linalg.lapack.dgeqrf(np.outer(x, x))[0],
    "scipy.linalg.lapack.dgeev": lambda x: linalg.get_lapack_funcs("geev", (x,))(np.outer(x, x))[0],
    "scipy.linalg.blas.dsbmv": lambda x: linalg.blas.dsbmv(0, 1.0, x[None], x),
    "scipy.special.sph_harm_y": lambda x: np.real(special.sph_harm_y(1, 0, x, 0.3)),
    "scipy.stats.mannwhitneyu": lambda x: stats.mannwhitneyu(x, x**2)[1],
    "np.testing.assert_allclose": lambda x: (np.testing.assert_allclose(x, x), x)[1],
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", WITHOUT_A_RULE)
def test_a_function_without_a_rule_is_named_as_it_was_called(name: str) -> None:
    with pytest.raises(sg.SrcgradError, match=f"^{re.escape(name)} has no derivative rule in srcgrad"):
        sg.grad(lambda x: np.sum(WITHOUT_A_RULE[name](x)))(X)
    with pytest.raises(sg.SrcgradError, match=f"^{re.escape(name)} has no derivative rule in srcgrad"):
        sg.grad(lambda x: np.sum(WITHOUT_A_RULE[name](x)) if len(x) else x[0])(X)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::scipy.stats._axis_nan_policy.SmallSampleWarning")
@pytest.mark.parametrize("name", ["moment", "skew", "kurtosis", "sem", "variation", "gmean", "hmean", "iqr"])
def test_samples_of_few_observations_and_nan_are_as_scipys(name: str) -> None:
    """Of the rows 0 to 4 observations are left; of some, with nan among them, there is no mean."""
    function = getattr(stats, name)
    options: dict[str, Any] = {"skew": {"bias": False}, "kurtosis": {"bias": False}, "sem": {"ddof": 0}}.get(name, {})
    sample = np.where(np.arange(4) < np.arange(5)[:, None], np.array([2.0, 1.0, 4.0, 1.5]), np.nan)
    for policy in ("omit", "propagate"):
        for axis in (0, 1, None, (0, 1)):
            expected = function(sample, axis=axis, nan_policy=policy, **options)
            found = sg.jit(lambda x, a=axis, p=policy: function(x, axis=a, nan_policy=p, **options))(sample)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
