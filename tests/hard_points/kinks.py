"""Kinks, ties, limits, infinite and undefined derivatives: functions, points, derivatives worked out by hand."""

from __future__ import annotations

import numpy as np
import scipy.special
from scipy.spatial import distance

from tests.hard_points.points import Case

NAN, INF = np.nan, np.inf

SCALARS: dict[str, Case] = {
    "abs": (np.abs, 0.0, (0.0, 0.0)),
    "abs at -0": (np.abs, -0.0, (0.0, 0.0)),
    "sign": (np.sign, 0.0, (0.0, 0.0)),
    "hypot": (lambda x: np.hypot(x, 0.0), 0.0, (0.0, 0.0)),
    "hypot of both": (lambda x: np.hypot(x, 2 * x), 0.0, (0.0, 0.0)),
    "norm**2": (lambda x: np.linalg.norm(x * np.ones(3)) ** 2, 0.0, (0.0, 6.0)),
    "abs**2": (lambda x: np.abs(x) ** 2, 0.0, (0.0, 2.0)),
    "abs * abs": (lambda x: np.abs(x) * np.abs(x), -0.0, (0.0, 2.0)),
    "square of a norm": (lambda x: np.square(np.linalg.norm(x * np.ones(2))), 0.0, (0.0, 4.0)),
    "abs**3": (lambda x: np.abs(x) ** 3, 0.0, (0.0, 0.0)),
    "logaddexp of equals": (lambda x: np.logaddexp(x, x), 1.0, (1.0, 0.0)),
    "(x**2)**1.5": (lambda x: (x**2) ** 1.5, 0.0, (0.0, 0.0)),
    "square(x)**1.25": (lambda x: np.square(x) ** 1.25, 0.0, (0.0, 0.0)),
    "(x**2)**2.": (lambda x: (x**2) ** 2.0, 0.0, (0.0, 0.0, 0.0, 24.0)),
    "mish where exp overflows": (lambda x: x * np.tanh(np.log1p(np.exp(x))), 800.0, (1.0, 0.0)),
    "log1p(exp(x)) where exp overflows": (lambda x: np.log1p(np.exp(x)), 800.0, (1.0, 0.0)),
    "x * tanh(exp(x)) where exp overflows": (lambda x: x * np.tanh(np.exp(x)), 800.0, (1.0, 0.0)),
    "expit(2 sinh(x) - 1) where sinh overflows": (
        lambda x: scipy.special.expit(2 * np.sinh(x) - 1),
        -800.0,
        (0.0, 0.0),
    ),
    "a Gumbel density where exp overflows": (lambda x: np.exp(-(x + np.exp(-x))), -800.0, (0.0, 0.0)),
    "1 / sinh(x) where it overflows": (lambda x: x / np.sinh(x), 800.0, (0.0, 0.0)),
    "entropy of what underflows": (lambda x: np.sum(scipy.special.entr(np.exp(x))), -800.0, (0.0, 0.0)),
    "root of what underflows": (lambda x: np.sqrt(2 * np.exp(x)), -800.0, (0.0, 0.0)),
    "power of what underflows": (lambda x: scipy.special.expit(x) ** 0.25, -800.0, (0.0, 0.0)),
    "logaddexp at -inf": (lambda x: np.logaddexp(x, 1.0), -INF, (0.0, 0.0)),
    "cbrt": (np.cbrt, 0.0, (INF, -INF)),
    "xlog1py(0, x)": (lambda x: scipy.special.xlog1py(0.0, x), -1.0, (0.0, 0.0)),
    "relu by where": (lambda x: np.where(x > 0, x, 0.0), 0.0, (0.0, 0.0)),
    "remainder at a multiple": (lambda x: np.remainder(x, 2.0), 4.0, (1.0, 0.0)),
    "floor at an integer": (np.floor, 2.0, (0.0, 0.0)),
    "1 / x": (lambda x: 1 / x, 0.0, (-INF, INF)),
    "x**2.5": (lambda x: x**2.5, 0.0, (0.0, 0.0)),
    "x**1.5": (lambda x: x**1.5, 0.0, (0.0, INF)),
    "x**0.5": (lambda x: x**0.5, 0.0, (INF, -INF)),
    "ptp of equals": (lambda x: np.ptp(x * np.ones(3)), 2.0, (0.0, 0.0)),
    "var of constants": (lambda x: np.var(x * np.array([1.0, 1.0, 1.0])), 2.0, (0.0, 0.0)),
    "x**0.": (lambda x: x**0.0, 0.0, (0.0, 0.0, 0.0, 0.0)),
    "x**1.": (lambda x: x**1.0, 0.0, (1.0, 0.0, 0.0, 0.0)),
    "x**2.": (lambda x: x**2.0, 0.0, (0.0, 2.0, 0.0, 0.0)),
    "x**3.": (lambda x: x**3.0, 0.0, (0.0, 0.0, 6.0, 0.0)),
    "x**2": (lambda x: x**2, 0.0, (0.0, 2.0, 0.0, 0.0)),
    "power(x, 4)": (lambda x: np.power(x, 4), 0.0, (0.0, 0.0, 0.0, 24.0)),
    "x**[0, 1, 2, 3]": (lambda x: np.sum(x ** np.array([0.0, 1.0, 2.0, 3.0])), 0.0, (1.0, 2.0, 6.0, 0.0)),
    "x**int array": (lambda x: np.sum(x ** np.array([0, 1, 2, 3])), 0.0, (1.0, 2.0, 6.0, 0.0)),
    "0.**x": (lambda x: 0.0**x, 2.0, (0.0, 0.0)),
    "prod, one zero": (lambda x: np.prod(np.array([2.0, 0.0, 3.0]) + x), 0.0, (6.0, 10.0, 6.0, 0.0)),
    "prod, two zeros": (lambda x: np.prod(np.array([2.0, 0.0, 0.0]) + x), 0.0, (0.0, 4.0, 6.0, 0.0)),
    "cumprod": (lambda x: np.cumprod(np.array([2.0, 0.0, 3.0]) + x)[-1], 0.0, (6.0, 10.0, 6.0, 0.0)),
    "sinc": (np.sinc, 0.0, (0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5)),
    "xlogy(0, x)": (lambda x: scipy.special.xlogy(0.0, x), 0.0, (0.0, 0.0)),
    "xlogy(0, x), x > 0": (lambda x: scipy.special.xlogy(0.0, x), 2.0, (0.0, 0.0)),
    "xlogy(x, 2)": (lambda x: scipy.special.xlogy(x, 2.0), 0.0, (np.log(2.0), 0.0)),
    "max of ties": (lambda x: np.max(np.array([1.0, 2.0, 0.0]) * x), 0.0, (1.0, 0.0)),
    "min of ties": (lambda x: np.min(np.array([1.0, 2.0, 0.0]) * x), 0.0, (1.0, 0.0)),
    "maximum": (lambda x: np.maximum(x, 0.0), 0.0, (0.5, 0.0)),
    "minimum": (lambda x: np.minimum(x, 0.0), 0.0, (0.5, 0.0)),
    "maximum of itself": (lambda x: np.maximum(x, x), 3.0, (1.0, 0.0)),
    "clip at a bound": (lambda x: np.clip(x, 0.0, 1.0), 0.0, (0.5, 0.0)),
    "clip at the other": (lambda x: np.clip(x, 0.0, 1.0), 1.0, (0.5, 0.0)),
    "sqrt": (np.sqrt, 0.0, (INF, -INF)),
    "sqrt, negative": (np.sqrt, -1.0, (NAN, NAN)),
    "log": (np.log, 0.0, (INF, -INF)),
    "arcsin": (np.arcsin, 1.0, (INF, INF)),
    "sqrt(x) * sqrt(x)": (lambda x: np.sqrt(x) * np.sqrt(x), 0.0, (NAN, NAN)),
    "sqrt(x)**2": (lambda x: np.sqrt(x) ** 2, 0.0, (NAN, NAN)),
    "sqrt(x * x)": (lambda x: np.sqrt(x * x), 0.0, (NAN, NAN)),
    "exp(log(x))": (lambda x: np.exp(np.log(x)), 0.0, (NAN, NAN)),
    "0 * inf beside a where": (lambda x: np.sqrt(x) * np.sqrt(x) + np.where(x < 1, x, 0.0), 0.0, (NAN, NAN)),
    "std of constants": (lambda x: np.std(x * np.ones(3)), 2.0, (0.0, 0.0)),
    "arctan2 at 0": (lambda x: np.arctan2(x, x), 0.0, (NAN, NAN)),
}


EYE = np.eye(3)
METRIC = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 3.0]])
ARRAYS: dict[str, Case] = {
    "norm": (np.linalg.norm, np.zeros(3), (np.zeros(3), np.zeros((3, 3)))),
    "norm**2": (lambda x: np.linalg.norm(x) ** 2, np.zeros(3), (np.zeros(3), 2 * EYE)),
    "norm of rows": (lambda x: np.linalg.norm(x, axis=1), np.zeros((2, 1)), (np.zeros((2, 2, 1)),)),
    "sum of squares, to the 1.5": (lambda x: np.sum(x**2) ** 1.5, np.zeros(3), (np.zeros(3), np.zeros((3, 3)))),
    "norm of order 3": (lambda x: np.linalg.norm(x, 3), np.zeros(3), (np.zeros(3), np.zeros((3, 3)))),
    "norm of order 4, cubed": (lambda x: np.linalg.norm(x, 4) ** 3, np.zeros(3), (np.zeros(3), np.zeros((3, 3)))),
    "norm of order 0.5": (lambda x: np.linalg.norm(x, 0.5), np.zeros(3), (np.zeros(3), np.zeros((3, 3)))),
    "norm of order -1": (lambda x: np.linalg.norm(x, -1), np.array([0.0, 1.0, 2.0]), (np.zeros(3), np.zeros((3, 3)))),
    "norm of order -2 of rows": (
        lambda x: np.linalg.norm(x, -2, axis=1),
        np.array([[0.0, 0.0], [2.0, 2.0]]),
        (np.array([[[0, 0], [0, 0]], [[0, 0], [2**-1.5] * 2]]),),
    ),
    "spectral norm": (lambda x: np.linalg.norm(x, 2), np.zeros((2, 3)), (np.zeros((2, 3)),)),
    "smallest singular value": (
        lambda x: np.linalg.norm(x, -2),
        np.array([[2.0, 0.0], [0.0, 0.0]]),
        (np.zeros((2, 2)),),
    ),
    "norm of order 1.5 of rows": (
        lambda x: np.linalg.norm(x, 1.5, axis=1),
        np.array([[0.0, 0.0], [2.0, 2.0]]),
        (np.array([[[0, 0], [0, 0]], [[0, 0], [2 ** (-1 / 3)] * 2]]),),
    ),
    "minkowski distance of equals": (
        lambda x: np.exp(-(distance.minkowski(x, [1.0, 2.0, 3.0], 3) ** 3)),
        np.arange(1.0, 4.0),
        (np.zeros(3), np.zeros((3, 3))),
    ),
    "mahalanobis distance of equals": (
        lambda x: distance.mahalanobis(x, [1.0, 2.0, 3.0], METRIC),
        np.arange(1.0, 4.0),
        (np.zeros(3), np.zeros((3, 3))),
    ),
    "square of a mahalanobis distance": (
        lambda x: distance.mahalanobis(x, [1.0, 2.0, 3.0], METRIC) ** 2,
        np.arange(1.0, 4.0),
        (np.zeros(3), 2 * METRIC),
    ),
    "mahalanobis distances of points to themselves": (
        lambda x: np.sum(np.exp(-(distance.cdist(x, x, "mahalanobis", VI=np.diag([1.0, 4.0])) ** 2))),
        np.array([[0.0, 0.0], [0.5, 0.0]]),
        (2 * np.exp(-0.25) * np.array([[1.0, 0.0], [-1.0, 0.0]]),),
    ),
    "mahalanobis distances, by the metric": (
        lambda v: np.sum(distance.cdist([[1.0, 1.0], [2.0, 3.0]], [[1.0, 1.0]], "mahalanobis", VI=v)),
        np.eye(2),
        (np.array([[1.0, 2.0], [2.0, 4.0]]) / np.sqrt(20),),
    ),
    "take_along_axis beside an infinite slope": (
        lambda x: np.sum(np.take_along_axis(np.sqrt(x), np.array([2, 1]), 0)),
        np.array([0.0, 1.0, 4.0]),
        (np.array([0.0, 0.5, 0.25]), np.diag([0.0, -0.25, -1 / 32])),
    ),
    "nanquantile beside a nan": (
        lambda x: np.nanquantile(x * x * np.array([np.nan, 1.0, 2.0, 4.0]), 0.25),
        np.ones(4),
        (np.array([0.0, 1.0, 2.0, 0.0]), np.diag([0.0, 1.0, 2.0, 0.0])),
    ),
    "nanpercentile beside a nan": (
        lambda x: np.nanpercentile(x * np.array([[np.nan, 1.0, 2.0], [3.0, 5.0, 4.0]]), 50, axis=1)[0],
        np.ones((2, 3)),
        (np.array([[0.0, 0.5, 1.0], [0.0, 0.0, 0.0]]),),
    ),
    "entropy of a masked softmax": (
        lambda x: np.sum(scipy.special.entr(scipy.special.softmax(x))),
        np.array([-INF, 0.0, 0.0, -1e9]),
        (
            np.zeros(4),
            np.diag([0, -0.25, -0.25, 0]) + 0.25 * np.array([[0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0] * 4]),
        ),
    ),
    "divergence of a masked softmax": (
        lambda x: np.sum(scipy.special.rel_entr(np.exp(x) / np.sum(np.exp(x)), [0.25, 0.5, 0.25])),
        np.array([-INF, 0.0, 0.0]),
        (np.array([0.0, -0.25, 0.25]) * np.log(2),),
    ),
    "a weighted logsumexp of an infinite element": (
        lambda x: scipy.special.logsumexp(x, b=np.array([1.0, 2.0, 3.0, 1.0])),
        np.array([1.0, INF, 0.0, INF]),
        (np.array([0.0, 0.5, 0.0, 0.5]), np.zeros((4, 4))),
    ),
    "frobenius**2": (
        lambda x: np.linalg.norm(x) ** 2,
        np.zeros((1, 2)),
        (np.zeros((1, 2)), 2 * np.eye(2).reshape(1, 2, 1, 2)),
    ),
    "std": (np.std, np.full(3, 2.0), (np.zeros(3), np.zeros((3, 3)))),
    "abs": (lambda x: np.sum(np.abs(x)), np.array([0.0, -0.0, -2.0]), (np.array([0.0, 0.0, -1.0]), np.zeros((3, 3)))),
    "hypot": (
        lambda x: np.hypot(x[0], x[1]),
        np.array([0.0, 0.0, 5.0]),
        (np.zeros(3), np.zeros((3, 3))),
    ),
    "max": (np.max, np.array([1.0, 3.0, 3.0]), (np.array([0.0, 0.5, 0.5]), np.zeros((3, 3)))),
    "min": (np.min, np.array([1.0, 1.0, 1.0]), (np.full(3, 1 / 3), np.zeros((3, 3)))),
    "maximum": (
        lambda x: np.maximum(x[0], x[1]),
        np.array([2.0, 2.0, 0.0]),
        (np.array([0.5, 0.5, 0.0]), np.zeros((3, 3))),
    ),
    "minimum": (
        lambda x: np.minimum(x[0], x[1]),
        np.array([2.0, 2.0, 0.0]),
        (np.array([0.5, 0.5, 0.0]), np.zeros((3, 3))),
    ),
    "sort": (
        lambda x: np.sort(x) @ np.array([1.0, 10.0, 100.0]),
        np.array([2.0, 1.0, 2.0]),
        (np.array([10.0, 1.0, 100.0]), np.zeros((3, 3))),
    ),
    "argsort": (
        lambda x: x[np.argsort(x, kind="stable")] @ np.array([1.0, 10.0, 100.0]),
        np.array([1.0, 1.0, 0.0]),
        (np.array([10.0, 100.0, 1.0]), np.zeros((3, 3))),
    ),
    "prod": (
        np.prod,
        np.array([2.0, 0.0, 3.0]),
        (np.array([0.0, 6.0, 0.0]), np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 2.0], [0.0, 2.0, 0.0]])),
    ),
    "cumprod": (
        lambda x: np.cumprod(x)[1:],
        np.array([0.0, 0.0, 3.0]),
        (np.zeros((2, 3)), np.array([[[0, 1, 0], [1, 0, 0], [0, 0, 0]], [[0, 3, 0], [3, 0, 0], [0, 0, 0]]])),
    ),
    "a traced exponent at (0, 0)": (lambda x: x[0] ** x[1], np.array([0.0, 0.0, 1.0]), (np.array([0.0, -INF, 0.0]),)),
    "a traced exponent at (0, 1)": (lambda x: x[0] ** x[1], np.array([0.0, 1.0, 1.0]), (np.array([1.0, 0.0, 0.0]),)),
    "a traced exponent at (0, 2)": (
        lambda x: x[0] ** x[1],
        np.array([0.0, 2.0, 1.0]),
        (np.zeros(3), np.diag([2.0, 0.0, 0.0])),
    ),
    "a part that does not contribute": (lambda x: x[1] + x[2], np.array([0.0, 1.0, 2.0]), (np.array([0.0, 1.0, 1.0]),)),
    "sqrt beside a line": (
        lambda x: x[0] + np.sqrt(x[1]) - np.log(x[1]) * np.sqrt(x[1]),
        np.array([1.0, 0.0, 1.0]),
        (np.array([1.0, NAN, 0.0]), np.array([[0.0, 0.0, 0.0], [0.0, NAN, 0.0], [0.0, 0.0, 0.0]])),
    ),
    "sqrt of another element": (
        lambda x: np.sqrt(x)[1:] + x[1:],
        np.array([0.0, 4.0, 1.0]),
        (np.array([[0.0, 1.25, 0.0], [0.0, 0.0, 1.5]]),),
    ),
    "sum of sqrt": (
        lambda x: np.sum(np.sqrt(x)),
        np.array([0.0, 4.0, 1.0]),
        (np.array([INF, 0.25, 0.5]), np.diag([-INF, -1 / 32, -0.25])),
    ),
    "sqrt and a line side by side": (
        lambda x: np.stack([np.sqrt(x[0]), 3 * x[1]]),
        np.array([0.0, 4.0]),
        (np.array([[INF, 0.0], [0.0, 3.0]]), np.array([[[-INF, 0], [0, 0]], [[0, 0], [0, 0]]])),
    ),
}
