"""Programs of transforms, convolutions, running values, order statistics, histograms, polynomials and padding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.tracing.function_inputs import F32, INTS, NAN, SC, U8, B, C, E, M, T, V, W, Z
from tests.tracing.trace_support import Case

NODES = np.array([-1.5, -0.25, 0.25, 1.0, 2.5])
SORTED = np.sort(V)
LONG = np.random.default_rng(11).standard_normal(13)
POSITIVE = np.random.default_rng(12).random(5) + 0.25
ROUNDED = np.round(LONG)


def several(*programs: Any) -> Any:
    return lambda *arrays: [program(*arrays) for program in programs]


def normed(f: Any) -> Any:
    """With all norms, cropped and padded, of odd and even lengths, along another axis."""
    return lambda x: [
        f(x),
        *(f(x, norm=norm) for norm in ("backward", "ortho", "forward")),
        *(f(x, n) for n in (1, 2, 3, 6, 7)),
        f(x, 5, axis=0),
        f(x, n=None, axis=-2, norm="ortho"),
    ]


def many(f: Any, *axes: Any) -> Any:
    return lambda x: [f(x), *(f(x, norm=norm) for norm in ("ortho", "forward")), *(f(x, **kw) for kw in axes)]


def changed_parts(x: Any) -> Any:
    """What is taken out of ``x.flat`` is no part of x any more; what is put into it is."""
    y = x.copy()
    part = y.flat[1:4]
    part += 1.0
    y.flat[5:7] = part[:2]
    return y, part


SOME_AXES: list[dict[str, Any]] = [
    {"axes": (0, 2)},
    {"s": (3, 4), "axes": (1, 0)},
    {"s": (1, 5), "axes": (-1, 1), "norm": "ortho"},
]

FOURIER: list[Case] = [
    *[(f"fft.{f.__name__}", normed(f), (M,)) for f in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.ihfft)],
    *[(f"fft.{f.__name__}", normed(f), (M,)) for f in (np.fft.irfft, np.fft.hfft)],
    *[
        (f"fft.{f.__name__} complex", normed(f), (np.vstack([C, C[:1] * 1j]),))
        for f in (np.fft.fft, np.fft.ifft, np.fft.irfft, np.fft.hfft)
    ],
    *[
        (f"fft.{f.__name__}", many(f, *SOME_AXES), (T,))
        for f in (np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn)
    ],
    *[
        (f"fft.{f.__name__}", many(f, {"s": (2, 5)}, {"axes": (0, 1)}), (T,))
        for f in (np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2)
    ],
    ("fft axis twice", lambda x: np.fft.fftn(x, axes=(1, 1, 0)), (M,)),
    ("fft no axes", lambda x: np.fft.fftn(x, axes=()), (M,)),
    ("fft of one", several(np.fft.fft, np.fft.rfft, lambda x: np.fft.irfft(x, 1)), (V[:1],)),
    ("fft empty stack", several(np.fft.fft, np.fft.rfft), (E,)),
    ("fft f32", several(np.fft.fft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.fftn), (F32,)),
    ("fft int", several(np.fft.fft, np.fft.rfft, np.fft.irfft, np.fft.ihfft), (INTS,)),
    ("fft bool", several(np.fft.fft, np.fft.rfft2), (B,)),
    ("fft out", lambda x: np.fft.fft(x, out=np.zeros_like(x, dtype=complex)), (M,)),
    ("fft of a transpose", lambda x: (np.fft.fft(x.T).ravel(), np.fft.rfft(x.T, axis=0).ravel("K")), (M,)),
    (
        "fftshift",
        several(
            np.fft.fftshift,
            np.fft.ifftshift,
            lambda x: np.fft.fftshift(x, axes=1),
            lambda x: np.fft.ifftshift(x, axes=(0, -1)),
        ),
        (T,),
    ),
    ("fftfreq", lambda d: (np.fft.fftfreq(5, d), np.fft.rfftfreq(4, d)), (np.float64(0.3),)),
]

CONVOLUTION: list[Case] = [
    ("convolve scalar", lambda x: np.convolve(x, 2.0), (V,)),
    ("convolve number modes", lambda x, y: [np.convolve(x, y[:2], mode) for mode in (0, 1, 2)], (V, W)),
    ("convolve dtypes", lambda x, y: (np.convolve(x[0], y), np.convolve(y, [1, 2])), (F32, INTS)),
    ("convolve complex", lambda x, y: (np.convolve(x, y), np.correlate(x, y, "full")), (Z, V)),
    ("convolve int", lambda x: (np.convolve(x, x), np.correlate(x, [1, 2], "same")), (INTS,)),
    (
        "sliding_window_view",
        several(
            lambda x: sliding_window_view(x, (2, 3)),
            lambda x: sliding_window_view(x, 2, axis=0),
            lambda x: sliding_window_view(x, (2, 2), axis=(1, 1)),
            lambda x: sliding_window_view(x[0], 3).sum(axis=-1),
        ),
        (M,),
    ),
]

RUNNING: list[Case] = [
    (
        "accumulate extremes",
        several(
            np.maximum.accumulate,
            np.minimum.accumulate,
            lambda x: np.maximum.accumulate(x, axis=1),
            lambda x: np.minimum.accumulate(x, axis=-1),
        ),
        (M,),
    ),
    ("accumulate extremes long", several(np.maximum.accumulate, np.minimum.accumulate), (LONG,)),
    ("accumulate extremes nan", several(np.maximum.accumulate, np.minimum.accumulate), (NAN,)),
    ("accumulate extremes int", several(np.maximum.accumulate, np.minimum.accumulate), (INTS,)),
    ("accumulate extremes f32", several(np.maximum.accumulate, np.minimum.accumulate), (F32,)),
    ("accumulate logaddexp", lambda x: (np.logaddexp.accumulate(x), np.logaddexp.accumulate(x * 500)), (LONG,)),
]

INTERPOLATION: list[Case] = [
    (
        "interp",
        lambda x, xp, fp: (
            np.interp(x, xp, fp),
            np.interp(x[0], xp, fp),
            np.interp(x, xp, fp, left=-7.0, right=fp[0]),
            np.interp(x, xp, fp * (1 + 2j)),
            np.interp(x, xp[:1], fp[:1]),
        ),
        (M, NODES, V),
    ),
    ("interp period", lambda x, xp, fp: np.interp(x * 4, xp, fp, period=3.1), (M, NODES, V)),
    ("interp equal nodes", lambda x, fp: np.interp(x, [0.0, 1.0, 1.0, 2.0, 2.0], fp), (np.linspace(-1, 3, 9), V)),
    (
        "interp infinite",
        lambda x: [
            np.interp(x, [0.0, 1.0, 2.0, 3.0], fp)
            for fp in ([np.inf, 1.0, 2.0, -np.inf], [np.inf, np.inf, 0.0, 1.0], [0.0, np.nan, 1.0, 2.0])
        ],
        (np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.nan, np.inf]),),
    ),
]

PADDING: list[Case] = [
    *[
        (
            f"pad {mode} everywhere",
            lambda x, mode=mode: (
                np.pad(x, 1, mode=mode),
                np.pad(x, ((0, 1), (2, 3)), mode=mode),
                np.pad(x, ((9, 0), (0, 7)), mode=mode),
                np.pad(x[:1], 2, mode=mode),
                np.pad(x, 0, mode=mode),
            ),
            (array,),
        )
        for mode in ("maximum", "minimum", "mean", "median", "linear_ramp", "edge", "wrap", "reflect", "symmetric")
        for array in (M, INTS.reshape(2, 2))
    ],
    *[
        (
            f"pad {mode} odd",
            lambda x, mode=mode: (
                np.pad(x, 2, mode=mode, reflect_type="odd"),
                np.pad(x, ((7, 5), (11, 1)), mode=mode, reflect_type="odd"),
            ),
            (M,),
        )
        for mode in ("reflect", "symmetric")
    ],
    *[
        (f"pad {mode} of some", lambda x, mode=mode: np.pad(x, 2, mode=mode, stat_length=((1, 2), (3, 9))), (M,))
        for mode in ("maximum", "minimum", "mean", "median")
    ],
    (
        "pad ramp ends",
        lambda x: (
            np.pad(x, (2, 3), "linear_ramp", end_values=((-1.0, 2.0), (3.0, 4.0))),
            np.pad(x[0], 2, "linear_ramp", end_values=x[1, 0]),
        ),
        (M,),
    ),
    ("pad axes", lambda x: (np.pad(x, {0: 1, -1: (2, 0)}), np.pad(x, {1: (0, 2)}, mode="edge")), (M,)),
]

METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)


def levels(function: Any, method: str) -> Any:
    scale = 100 if "percent" in function.__name__ else 1
    return lambda x: [
        function(x, np.multiply(q, scale) if np.ndim(q) else q * scale, axis=axis, method=method)
        for q in (0.37, 0.5, 0, 1.0, np.float64(0.7), [0.1, 0.75, 1.0])
        for axis in (None, 0, -1)
    ]


QUANTILES: list[Case] = [
    *[
        (f"{f.__name__} {method} {x.dtype}", levels(f, method), (x,))
        for f in (np.quantile, np.percentile, np.nanquantile)
        for method in METHODS
        for x in (M, F32, INTS.reshape(2, 2))
    ],
    *[
        (f"{f.__name__} nan {method}", levels(f, method), (NAN,))
        for f in (np.quantile, np.nanquantile, np.nanpercentile)
        for method in ("linear", "hazen", "closest_observation")
    ],
    (
        "quantile weights",
        lambda x, w: [
            *(np.quantile(x, q, axis=1, weights=w, method="inverted_cdf") for q in (0.3, [0.1, 0.9])),
            *(
                f(x, q, axis=axis, weights=np.broadcast_to(w, x.shape), method="inverted_cdf")
                for f in (np.quantile, np.nanquantile)
                for q in (0.3, [0.1, 0.9])
                for axis in (None, 1)
            ),
        ],
        (M, np.array([0.5, 0.25, 2.0, 1.0])),
    ),
    ("quantile keepdims", lambda x: np.quantile(x, [0.2, 0.4], axis=(0, 2), keepdims=True), (T,)),
    ("nanmedian", lambda x: (np.nanmedian(x), np.nanmedian(x, axis=0), np.nanmedian(x, 1, keepdims=True)), (NAN,)),
    ("quantile traced levels", lambda x, q: (np.quantile(x, q), np.quantile(x, q, axis=0)), (M, np.float64(0.3))),
]

HISTOGRAMS: list[Case] = [
    (
        "histogram",
        lambda x, w: (
            *np.histogram(x),
            *np.histogram(x, 4, weights=w),
            *np.histogram(x, [-1.0, 0.0, 0.5, 1.0]),
            *np.histogram(x, 7, (-1, 1), density=True, weights=w),
            np.histogram_bin_edges(x, 3),
            *np.histogram(x * 0 + 2.0, 3),
        ),
        (LONG, LONG**2),
    ),
    (
        "histogram weights",
        lambda x: (*np.histogram(x, 3, weights=x * 1j), *np.histogram(x, 3, (0, 1), weights=np.arange(13))),
        (LONG,),
    ),
    ("histogram int", lambda x: (*np.histogram(x, 3), *np.histogram(x, np.arange(5))), (INTS,)),
    ("histogram f32", lambda x: np.histogram(x, 5), (F32,)),
    (
        "histogram2d",
        lambda x, w: (
            *np.histogram2d(x, w),
            *np.histogram2d(x, w, [2, 3], weights=w),
            *np.histogram2d(x, w, [2, [0.0, 0.5, 2.0]], weights=w),
            *np.histogram2d(x, w, ([-1.0, 0.0, 1.0], 4)),
            *np.histogram2d(x, w, [[-1.0, 0.0, 1.0], [0.0, 0.5, 2.0]], density=True),
            *np.histogram2d(x, w, [-1.0, 0.0, 1.0, 2.0], range=[[0, 1], [0, 1]]),
        ),
        (LONG, LONG**2),
    ),
    (
        "histogramdd",
        lambda x, w: [
            [counts, *edges]
            for counts, edges in (
                np.histogramdd(np.stack([x, w], axis=1), 3),
                np.histogramdd((x, w, x + w), (2, 3, 2), density=True, weights=w),
            )
        ],
        (LONG, LONG**2),
    ),
    ("bincount", lambda w: (np.bincount([0, 3, 3, 1, 5], w), np.bincount([0, 0, 2, 2, 1], w, 7)), (V,)),
    (
        "digitize orders",
        lambda x, b: (
            np.digitize(x, np.sort(b)),
            np.digitize(x, np.sort(b)[::-1], right=True),
            np.digitize(x[0], b[:1]),
            np.digitize(x, [1.0, 0.0, -1.0]),
        ),
        (V, W),
    ),
    (
        "searchsorted options",
        lambda x, v: (
            np.searchsorted(x, v, sorter=np.argsort(x)),
            np.searchsorted(np.sort(x), v[0, 0], side="right"),
            np.searchsorted(np.sort(x).astype(np.float32), v),
            np.searchsorted(np.arange(4), v),
        ),
        (V, M),
    ),
]

POLYNOMIALS: list[Case] = [
    ("poly", lambda x: (np.poly(x), np.poly(x[:1])), (V,)),
    ("polyval and sums", lambda x, y: (np.polyval(x, y), np.polyadd(x, y[:2]), np.polysub(M, M)), (V, W)),
    (
        "polyfit",
        lambda x, y, w: (
            np.polyfit(x, y, 2),
            np.polyfit(x, y, 1, w=w),
            *np.polyfit(x, y, 1, cov=True),
            *np.polyfit(x, y, 1, cov="unscaled"),
            np.polyfit(x, np.stack([y, x], axis=1), 2),
        ),
        (V, W, POSITIVE),
    ),
    (
        "cov weights",
        lambda x, w: (
            np.cov(x, aweights=w),
            np.cov(x, fweights=[1, 2, 3, 1]),
            np.cov(x, fweights=[1, 2, 3, 1], aweights=w, ddof=2),
            np.cov(x, aweights=w, bias=True),
        ),
        (M, POSITIVE[:4]),
    ),
]

WITHOUT_NAN: list[Case] = [
    *[
        (
            f"{f.__name__} freedom {x.dtype}",
            several(f, lambda x, f=f: f(x, axis=0, ddof=2), lambda x, f=f: f(x, 1)),
            (x,),
        )
        for f in (np.nanvar, np.nanstd)
        for x in (np.vstack([NAN, NAN[:1] + 3.0]), np.vstack([NAN, NAN[:1] + 3.0]).astype(np.float32), M, INTS[:, None])
    ],
]

LAYOUT: list[Case] = [
    ("flat changed", changed_parts, (M,)),
    ("flat is a copy", lambda x: (x.flat[1:4], x.flat[2], np.sum(x.flat), x.flat[[0, 2]]), (M,)),
    (
        "concatenate in Fortran order",
        lambda x: (
            np.concatenate([x.T, x.T]).ravel("K"),
            np.concatenate([x.T, x.T], axis=1).ravel("K"),
            np.concatenate([x.T, x[:, :3]]).ravel("K"),
            np.stack([x.T, x.T], axis=-1).ravel("K"),
        ),
        (M,),
    ),
    (
        "concatenate of three axes",
        lambda x: [
            np.concatenate([x.transpose(perm), x.transpose(perm)], axis=axis).strides
            for perm in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1), (1, 2, 0))
            for axis in (0, 1, 2)
        ],
        (T,),
    ),
    (
        "ravel orders",
        lambda x: (
            [[view.ravel(order), view.flatten(order)] for view in (x, x.T, x[::-1].T, x[:, ::2]) for order in "CFAK"]
            + [x.T.reshape(2, 6, order="A"), x.reshape(2, 6, order="A")]
        ),
        (M,),
    ),
]

EINSUM: list[Case] = [
    ("einsum chain of four", lambda x, y, v: np.einsum("ij,jk,kl,l->i", x, y, x, v), (M, M.T, V[:4])),
    ("einsum shared label", lambda x, v: np.einsum("ij,j,ij,i->j", x, v[:4], x, v[:3]), (M, V)),
    ("einsum diagonals", lambda x, v: np.einsum("ii,ijk,jk,k->i", x[:, :3], np.stack([x, x, x]), x, v), (M, V[:4])),
    ("einsum stack", lambda t, x: np.einsum("...ij,kj,...k->...ik", t, x, t[:, 0, :3]), (T, M)),
    ("einsum implicit", lambda t, x: np.einsum("bca,da,bc", t, x, t[:, :, 0]), (T, M)),
]

BITS: list[Case] = [
    ("packbits", lambda x: (np.packbits(x > 1), np.packbits(x, axis=0), np.packbits(x, bitorder="little")), (INTS,)),
    (
        "unpackbits",
        lambda x: (np.unpackbits(x), np.unpackbits(x[:, None], axis=1, count=10), np.unpackbits(x, count=-3)),
        (U8,),
    ),
    (
        "unravel_index orders",
        lambda i: (
            *np.unravel_index(i, (3, 4), order="F"),
            np.ravel_multi_index((i, i), (3, 4), mode="wrap"),
            np.ravel_multi_index((i, i), (3, 4), mode=("clip", "wrap"), order="F"),
        ),
        (np.array([5, 11, 0]),),
    ),
]

KNOWN: list[Case] = [
    ("unique rows", lambda x: np.unique(x.reshape(2, 2), axis=0, return_inverse=True), (INTS,)),
    (
        "unique kin",
        lambda x: (
            *(*np.unique_all(x), *np.unique_counts(x), *np.unique_inverse(x), np.sort(np.unique_values(x))),
            np.sort(np.unique_values(x.astype(int))),
        ),
        (ROUNDED,),
    ),
    (
        "sets",
        lambda x: (
            np.union1d(x, [1.0, 7.0]),
            *np.intersect1d(x, [1.0, 7.0, 0.0], return_indices=True),
            np.setdiff1d(x, [1.0, 0.0]),
            np.setxor1d(x, [1.0, 0.0, 8.0, 8.0]),
        ),
        (ROUNDED,),
    ),
    (
        "trim_zeros axes",
        lambda x: (np.trim_zeros(x), np.trim_zeros(x[:12].reshape(3, 4)), np.trim_zeros(x, "b")),
        (np.concatenate([[0.0, 0.0], ROUNDED[2:11], [0.0, 0.0]]),),
    ),
    ("histogram rules", lambda x: (*np.histogram(x, "auto"), *np.histogram(x, "sqrt")), (LONG,)),
    ("polydiv", lambda x: (*np.polydiv(x, x[:3]), *np.polydiv(x[:2], x)), (V,)),
    ("roots", lambda x: np.sort_complex(np.roots(x)), (np.array([0.0, 1.0, -6.0, 11.0, -6.0, 0.0]),)),
    ("poly complex", lambda x: np.poly(np.array([1j, -1j]) * x), (SC,)),
]

SIGNAL: list[Case] = [
    *FOURIER,
    *CONVOLUTION,
    *RUNNING,
    *INTERPOLATION,
    *PADDING,
    *QUANTILES,
    *HISTOGRAMS,
    *POLYNOMIALS,
    *WITHOUT_NAN,
    *LAYOUT,
    *EINSUM,
    *BITS,
]

SIGNAL_NOT_SMOOTH = {
    *(case[0] for case in WITHOUT_NAN if np.isnan(case[2][0]).any()),
    "accumulate extremes nan",
    "interp infinite",
    "interp equal nodes",
    *(case[0] for case in QUANTILES if case[2][0] is NAN),
}
