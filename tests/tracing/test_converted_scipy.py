"""Functions of SciPy's that are Python on arrays have no rules: their code is converted as the user's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse.linalg
import scipy.spatial
import scipy.spatial.transform
import scipy.special
import scipy.stats

import srcgrad as sg

RNG = np.random.default_rng(3)
X = RNG.normal(size=12)
M = RNG.normal(size=(4, 4))
S = M @ M.T + 4.0 * np.eye(4)
SOS = [[1.0, 0.2, 0.0, 1.0, 0.5, 0.1]]
COUNTS = np.arange(12.0)
LABELS = np.array([[0, 0, 1, 1]] * 4)

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "istft": (lambda x: scipy.signal.istft(scipy.signal.stft(x, nperseg=4)[2], nperseg=4)[1], X),
    "coherence": (lambda x: scipy.signal.coherence(x, x**2, nperseg=4)[1], X),
    "resample": (lambda x: scipy.signal.resample(x, 7), X),
    "decimate": (lambda x: scipy.signal.decimate(np.tile(x, 4), 2, n=2), X),
    "wiener": (lambda x: scipy.signal.wiener(x, 3), X),
    "sosfiltfilt": (lambda x: scipy.signal.sosfiltfilt(SOS, x, padlen=3), X),
    "deconvolve": (lambda x: scipy.signal.deconvolve(x, [1.0, 0.5])[0], X),
    "freqs": (lambda b: np.abs(scipy.signal.freqs(b, [1.0, 0.5], worN=[1.0, 2.0])[1]), X[:4]),
    "freqz": (lambda b: np.abs(scipy.signal.freqz(b, [1.0, 0.5], worN=5)[1]), X[:4]),
    "zpk2tf": (lambda r: scipy.signal.zpk2tf(r[:2], r[2:], r[0])[1], X[:5]),
    "butter": (lambda c: scipy.signal.butter(2, c)[0], 0.4),
    "chirp": (lambda p: scipy.signal.chirp(np.arange(4.0), p[0], 1.0, p[1]), np.array([0.2, 0.4])),
    "sawtooth": (lambda x: scipy.signal.sawtooth(x), X),
    "window of a parameter": (lambda b: scipy.signal.windows.kaiser(5, b), 2.0),
    "tapered window": (lambda a: scipy.signal.windows.tukey(9, a), 0.4),
    "design of a filter": (lambda c: scipy.signal.firwin(5, c), 0.4),
    "czt": (lambda x: np.abs(scipy.signal.czt(x)), X),
    "lsim": (lambda u: scipy.signal.lsim(([1.0], [1.0, 0.5]), u, COUNTS)[1], X),
    "lsim of coefficients": (lambda c: scipy.signal.lsim((c[:2], c[2:5]), c, COUNTS * 0.1)[1], X + 3.0),
    "step of coefficients": (lambda c: scipy.signal.step((c[:1], c[1:4]), T=COUNTS * 0.1)[1], X + 3.0),
    "lsim of poles": (lambda c: scipy.signal.lsim(([-c[0]], [-c[1], -2.0], c[2]), c, COUNTS * 0.1)[1], X + 3.0),
    "dimpulse of coefficients": (lambda c: scipy.signal.dimpulse((c[:1], c[1:4], 0.5), n=4)[1][0], X + 3.0),
    "freqresp of coefficients": (lambda c: np.abs(scipy.signal.freqresp((c[:1], c[1:4]), COUNTS)[1]), X + 3.0),
    "freqresp of poles": (lambda c: np.abs(scipy.signal.freqresp((c[:1], c[1:4], c[4]), COUNTS)[1]), X + 3.0),
    "freqresp of matrices": (lambda a: np.abs(scipy.signal.freqresp((a, a[:, :1], a[:1], a[:1, :1]), COUNTS)[1]), S),
    "bode": (lambda c: np.stack(scipy.signal.bode((c[:1], c[1:4]), c[5:9] ** 2)), X + 3.0),
    "bode of a system": (lambda w: np.stack(scipy.signal.bode(scipy.signal.lti([1.0], [1.0, 0.3]), w)), X**2),
    "dbode": (lambda c: np.stack(scipy.signal.dbode((c[:1], c[1:4], 0.5), n=4)), X + 3.0),
    "a system's bode": (lambda c: scipy.signal.TransferFunction(c[:1], c[1:4]).bode(COUNTS + 0.1)[1], X + 3.0),
    "a system's step": (lambda c: scipy.signal.lti(-c[:1], -c[1:3], c[4]).step(T=COUNTS * 0.1)[1], X + 3.0),
    "a system's poles": (lambda c: np.abs(scipy.signal.lti(c[:1], c[1:4]).poles), X + 3.0),
    "a system of matrices": (
        lambda a: scipy.signal.StateSpace(-a, a[:, :1], a[:1], a[:1, :1]).impulse(T=COUNTS * 0.1)[1],
        S,
    ),
    "a discrete system": (lambda c: scipy.signal.dlti(c[:1], c[1:4], dt=0.5).step(n=4)[1][0], X + 3.0),
    "pade": (lambda c: (lambda p, q: p(0.3) / q(0.3))(*scipy.interpolate.pade(c[:5] + 3.0, 2)), X),
    "taylor": (lambda t: scipy.interpolate.approximate_taylor_polynomial(np.sin, t, 3, 1.0)(0.1), 0.3),
    "cubature": (lambda a: scipy.integrate.cubature(lambda t: np.exp(-a * t[:, 0]), [0.0], [1.0]).estimate, 1.3),
    "whiten": (lambda a: scipy.cluster.vq.whiten(a), M),
    "slerp of points": (lambda t: scipy.spatial.geometric_slerp(np.eye(3)[0], np.eye(3)[1], t), 0.3),
    "expm_multiply": (lambda a: scipy.sparse.linalg.expm_multiply(a, X[:4]), M),
    "expm of a sparse matrix": (
        lambda a: scipy.sparse.linalg.expm(scipy.sparse.diags([a[:4], a[4:7]], [0, 1], format="csc")).toarray(),
        X,
    ),
    "distance_matrix": (lambda a: scipy.spatial.distance_matrix(a, S, 3), M),
    "procrustes of shapes": (lambda a: scipy.spatial.procrustes(a, S)[1], M),
    "spectrogram": (lambda x: scipy.signal.spectrogram(x, nperseg=8)[2], X),
    "lombscargle": (lambda x: scipy.signal.lombscargle(COUNTS, x, [1.0, 2.0]), X),
    "diric": (lambda x: scipy.special.diric(x, 5), X),
    "sum of labels": (lambda a: scipy.ndimage.sum(a, LABELS, [0, 1]), M),
    "centre of mass": (lambda a: np.array(scipy.ndimage.center_of_mass(a)), S),
    "cumulative_simpson": (lambda y: scipy.integrate.cumulative_simpson(y), X),
    "procrustes": (lambda a: scipy.linalg.orthogonal_procrustes(a, S)[0], M),
    "orth": (lambda a: scipy.linalg.orth(a), M),
    "linregress": (lambda y: np.array(scipy.stats.linregress(COUNTS, y)[:3]), X),
    "pearsonr": (lambda x: scipy.stats.pearsonr(x, COUNTS).statistic, X),
    "f_oneway": (lambda x: scipy.stats.f_oneway(x[:5], x[5:]).statistic, X),
    "ttest_ind": (lambda x: scipy.stats.ttest_ind(x, x**2).statistic, X),
    "ttest_1samp": (lambda x: scipy.stats.ttest_1samp(x, 0.1).pvalue, X),
    "trim_mean": (lambda x: scipy.stats.trim_mean(x, 0.1), X),
    "circmean": (lambda x: scipy.stats.circmean(x), X),
    "median_abs_deviation": (lambda x: scipy.stats.median_abs_deviation(x), X[:11]),
    "wasserstein_distance": (lambda x: scipy.stats.wasserstein_distance(x, COUNTS), X),
    "kstat": (lambda x: scipy.stats.kstat(x, 2), X),
    "chisquare": (lambda x: scipy.stats.chisquare(x**2 / np.sum(x**2) * 12.0, np.ones(12)).statistic, X),
    "differential_entropy": (lambda x: scipy.stats.differential_entropy(x), X),
    "multivariate t": (lambda s: scipy.stats.multivariate_t.logpdf(X[:4], np.zeros(4), s, 3), S),
    "wishart": (lambda s: scipy.stats.wishart.logpdf(S, 6, s), S),
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.filterwarnings("ignore:`pade` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_slopes(name: str, backend: str) -> None:
    f, point = CASES[name]
    expected = np.asarray(f(point))
    found = sg.jit(f, backend=backend)(point)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    weights = np.cos(np.arange(expected.size) + 0.2).reshape(expected.shape)
    direction = np.random.default_rng(4).normal(size=np.shape(point))
    direction = (direction + direction.T) / 2 if np.ndim(point) == 2 else direction

    def loss(x: Any) -> Any:
        return np.sum(f(x) * weights)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        slope = (loss(point + 1e-5 * direction) - loss(point - 1e-5 * direction)) / 2e-5
    gradient = sg.grad(loss, backend=backend)(point)
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-5, atol=1e-7)
    tangent = sg.jvp(loss, (point,), (direction if np.ndim(point) else float(direction),), backend=backend)[1]
    np.testing.assert_allclose(tangent, slope, rtol=1e-5, atol=1e-7)


def test_they_are_one_program() -> None:
    for name in ("istft", "resample", "chirp", "window of a parameter", "wasserstein_distance"):
        f, point = CASES[name]
        explained = sg.explain(sg.grad(lambda x, f=f: np.sum(f(x))))(point)["how it runs"]
        assert explained.startswith("One program"), (name, explained)


@pytest.mark.parametrize("name", ["pearsonr", "linregress", "f_oneway", "circmean"])
def test_what_asks_which_arrays_it_is_given_is_not_traced_again(name: str) -> None:
    """SciPy keeps the answers, which name its modules."""
    f, point = CASES[name]
    slope = sg.grad(lambda x: np.sum(f(x)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        for k in range(3):
            slope(point + 0.01 * k)
    assert not sg.explain(slope)(point)["how it runs"].startswith("Each call")


TURNS = scipy.spatial.transform.Rotation.from_rotvec(M[:3, :3])


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda a: scipy.sparse.linalg.eigs(a, 2)[0], "eigs has no derivative rule"),
        (lambda a: scipy.sparse.linalg.onenormest(a), "onenormest has no derivative rule"),
        (lambda a: scipy.interpolate.PPoly(a[:2], np.arange(5.0)).roots(), "roots of piecewise polynomials"),
        (lambda a: scipy.spatial.transform.RotationSpline([0, 1, 2], TURNS)(a[0, 0]).as_quat(), "RotationSpline"),
    ],
)
def test_objects_that_ask_what_they_are_given_are_refused_by_name(f: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(sg.errors.UnsupportedError, match=words):
        sg.grad(lambda a: np.sum(np.real(f(a))))(S)


def test_code_without_a_rule_that_calls_c_is_refused_by_its_name() -> None:
    for f, name in ((scipy.signal.residue, "residue"), (scipy.signal.find_peaks, "find_peaks")):
        with pytest.raises(sg.SrcgradError, match=name) as caught:
            sg.grad(lambda x, f=f: np.sum(f(x, *([x[:3]] if f is scipy.signal.residue else []))[0]))(X)
        assert not isinstance(caught.value, sg.errors.InternalError)


DESIGNS: dict[str, Callable[[Any], Any]] = {
    "butter": lambda w: scipy.signal.butter(3, w),
    "butter of a band": lambda w: scipy.signal.butter(2, [w, w + 0.2], "bandpass"),
    "cheby1": lambda w: scipy.signal.cheby1(4, 1.0, w),
    "cheby2": lambda w: scipy.signal.cheby2(4, 30.0, w),
    "ellip": lambda w: scipy.signal.ellip(3, 1.0, 30.0, w),
    "bessel": lambda w: scipy.signal.bessel(3, w),
    "zpk2tf of pairs": lambda w: scipy.signal.zpk2tf([-w], [-w + 1j, -w - 1j], 2.0),
    "zpk2tf of no pairs": lambda w: scipy.signal.zpk2tf([-w], [-w + 1j, w - 0.5j], 2.0),
    "zpk2tf of no zeros": lambda w: scipy.signal.zpk2tf([], [-w + 1j, -w - 1j], 2.0),
    "zpk2tf of imaginary parts in pairs": lambda w: scipy.signal.zpk2tf([-w], [-w + 1j, w - 1j], 2.0),
    "poly": lambda w: (np.poly(np.array([w + 1j, w - 1j, w])), np.poly(np.array([w + 1j, 2.0 * w - 1j]))),
}


@pytest.mark.filterwarnings("ignore::scipy.signal.BadCoefficients")
@pytest.mark.parametrize("name", DESIGNS)
def test_polynomials_of_conjugate_roots_are_real(name: str) -> None:
    """Their coefficients were complex numbers."""
    design = DESIGNS[name]
    compiled = sg.jit(design)
    for w in (0.3, 0.35):
        with warnings.catch_warnings():
            warnings.simplefilter("error", sg.RetraceWarning)
            for found, expected in zip(compiled(w), design(w), strict=True):
                assert (found.dtype, np.shape(found)) == (expected.dtype, np.shape(expected))
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)

    def loss(w: Any) -> Any:
        return sum(np.sum(np.abs(part) ** 2) for part in design(w))

    slope = (loss(0.3 + 1e-6) - loss(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(sg.grad(loss)(0.3), slope, rtol=1e-5)
    np.testing.assert_allclose(sg.jvp(loss, (0.3,), (1.0,))[1], slope, rtol=1e-5)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a rate": (lambda x: scipy.signal.resample_poly(x, 1.5, 2), "up must be an integer"),
    "a number of points": (lambda x: scipy.signal.czt(x, m=3.5), "m must be positive and integer type"),
    "a kind of padding": (lambda x: scipy.signal.resample_poly(x, 3, 2, padtype="q"), "padtype must be one of"),
    "a window": (lambda x: scipy.signal.firwin(5, 0.1 * x[0], window="q"), "Invalid window name"),
    "an alternative": (lambda x: scipy.stats.ttest_ind(x, x**2, alternative="q")[0], "`alternative` must be"),
    "unequal steps": (lambda x: scipy.signal.lsim((x[:1], x[:3]), x, np.arange(len(x)) ** 2.0)[1], "equally spaced"),
    "a time before 0": (lambda x: scipy.signal.lsim((x[:1], x[:3]), x, np.arange(len(x)) - 1.0)[1], "nonnegative"),
    "too short an input": (lambda x: scipy.signal.lsim((x[:1], x[:3]), x[:2], np.arange(9) * 0.1)[1], "same number of"),
    "too many inputs": (
        lambda x: scipy.signal.lsim((x[:1], x[:3]), np.outer(x, x[:2]), 0.1 * np.arange(len(x)))[1],
        "does not define that many inputs",
    ),
    "shapes": (lambda x: scipy.signal.lombscargle(x, x[:3], x), "must be 1-D arrays of equal"),
}


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_scipys_code_raises_of_an_option_is_raised(name: str) -> None:
    """It was said to have no derivative rule."""
    f, message = REFUSED[name]
    for call in (lambda: f(X), lambda: sg.jvp(f, (X,), (X,))):
        with pytest.raises(ValueError, match=message):
            call()
