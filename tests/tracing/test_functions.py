"""Every NumPy function rule gives NumPy's value, dtype, shape and kind of object, and the right derivative."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from srcgrad.errors import AxisError, ShapeError, SrcgradError, UnsupportedError
from srcgrad.tracing.trace import NeedsConcrete
from srcgrad.tracing.tracer import FUNCTIONS
from tests.tracing.trace_support import Case, compare, directional, run

RANDOM = np.random.default_rng(7)
V = RANDOM.standard_normal(5)
W = RANDOM.standard_normal(5)
M = RANDOM.standard_normal((3, 4))
N = RANDOM.standard_normal((4, 3))
S = RANDOM.standard_normal((3, 3))
T = RANDOM.standard_normal((2, 3, 4))
SPD = S @ S.T + 3 * np.eye(3)
C = RANDOM.standard_normal((2, 3)) + 1j * RANDOM.standard_normal((2, 3))
Z = np.array([1.5 - 0.5j, -2.0 + 1.0j, 0.5j])
I = np.array([3, -1, 2, 7], np.int32)
I8 = np.array([[3, -1], [2, 7]], np.int8)
U8 = np.array([3, 250, 7], np.uint8)
B = np.array([[True, False, True], [False, False, True]])
F32 = M.astype(np.float32)
F16 = M.astype(np.float16)
E = np.zeros((0, 3))
A0 = np.array(1.5)
SC = np.float64(0.7)
NAN = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, 2.0]])
INF = np.array([np.inf, -np.inf, np.nan, 1.0, -0.0])
MASK = np.array([True, False, True, True, False])


SHAPES: list[Case] = [
    ("reshape", lambda x: np.reshape(x, (4, 3)), (M,)),
    ("reshape -1", lambda x: np.reshape(x, -1), (T,)),
    ("reshape F", lambda x: np.reshape(x, (6, -1), order="F"), (T,)),
    ("reshape method", lambda x: x.reshape(2, 2, 3), (M,)),
    ("reshape scalar", lambda x: (np.reshape(x, ()), np.reshape(x, (1, 1))), (SC,)),
    ("ravel", lambda x: (np.ravel(x), np.ravel(x, "F"), x.T.ravel(), x.T.ravel("K").sum()), (M,)),
    ("flatten", lambda x: (x.flatten(), x.flatten("F")), (M,)),
    ("transpose", lambda x: (np.transpose(x), np.transpose(x, (1, 0, 2)), np.transpose(x, [-1, 0, 1])), (T,)),
    ("T", lambda x: (x.T, x.mT, x.swapaxes(0, -1)), (T,)),
    ("permute_dims", lambda x: np.permute_dims(x, (2, 0, 1)), (T,)),
    ("matrix_transpose", lambda x: (np.matrix_transpose(x), np.linalg.matrix_transpose(x)), (T,)),
    ("swapaxes", lambda x: np.swapaxes(x, -1, 0), (T,)),
    (
        "moveaxis",
        lambda x: (np.moveaxis(x, 0, -1), np.moveaxis(x, (0, 2), (1, 0)), np.moveaxis(x, [2, 1], [0, 2])),
        (T,),
    ),
    ("rollaxis", lambda x: (np.rollaxis(x, 2), np.rollaxis(x, 0, 3), np.rollaxis(x, 1, 1)), (T,)),
    ("expand_dims", lambda x: (np.expand_dims(x, 0), np.expand_dims(x, -1), np.expand_dims(x, (0, 2, -1))), (M,)),
    ("expand_dims scalar", lambda x: np.expand_dims(x, 0), (SC,)),
    ("squeeze", lambda x: (np.squeeze(x[:, :1]), np.squeeze(x[:1, :1]), np.squeeze(x[None], 0), x[:1].squeeze()), (M,)),
    ("squeeze scalar", lambda x: np.squeeze(x), (SC,)),
    ("broadcast_to", lambda x: (np.broadcast_to(x, (2, 3, 4)), np.broadcast_to(x[:, :1], (3, 2))), (M,)),
    ("broadcast_to scalar", lambda x: (np.broadcast_to(x, ()), np.broadcast_to(x, 3)), (SC,)),
    ("broadcast_arrays", lambda x, y: np.broadcast_arrays(x[:, None], y), (V, W)),
    ("atleast", lambda x: (np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)), (V,)),
    ("atleast scalar", lambda x: (np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)), (SC,)),
    ("atleast matrix", lambda x: (np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)), (M,)),
    ("atleast many", lambda x, y: np.atleast_1d(x, y), (A0, V)),
    ("flip", lambda x: (np.flip(x), np.flip(x, 0), np.flip(x, (0, -1))), (T,)),
    ("fliplr", lambda x: (np.fliplr(x), np.flipud(x)), (M,)),
    ("rot90", lambda x: [np.rot90(x, k) for k in range(-1, 5)], (M,)),
    ("rot90 axes", lambda x: np.rot90(x, 1, (1, 2)), (T,)),
    (
        "roll",
        lambda x: (np.roll(x, 1), np.roll(x, -5), np.roll(x, 2, axis=1), np.roll(x, (1, -1), (0, 1)), np.roll(x, 0)),
        (M,),
    ),
    ("roll both", lambda x: np.roll(x, 1, axis=(0, 1)), (M,)),
    ("roll empty", lambda x: np.roll(x, 1, axis=0), (E,)),
    ("tile", lambda x: (np.tile(x, 2), np.tile(x, (2, 1)), np.tile(x, (2, 1, 3))), (M,)),
    ("tile scalar", lambda x: np.tile(x, 3), (SC,)),
    (
        "repeat",
        lambda x: (np.repeat(x, 2), np.repeat(x, 2, axis=0), np.repeat(x, [1, 0, 2], axis=0), x.repeat(3, -1)),
        (M,),
    ),
    ("repeat scalar", lambda x: np.repeat(x, 3), (SC,)),
    ("resize", lambda x: (np.resize(x, (2, 3)), np.resize(x, 20)), (M,)),
    ("split", lambda x: (np.split(x, 2, axis=1), np.split(x, [1, 3], axis=1)), (M,)),
    ("array_split", lambda x: (np.array_split(x, 3), np.array_split(x, 2)), (V,)),
    ("hsplit", lambda x: (np.hsplit(x, 2), np.vsplit(x, 3)), (M,)),
    ("dsplit", lambda x: np.dsplit(x, 2), (T,)),
    ("hsplit 1-D", lambda x: np.hsplit(x, [2]), (V,)),
    ("trim_zeros", lambda x: x.size, (V,)),
]

JOINING: list[Case] = [
    ("concatenate", lambda x, y: (np.concatenate([x, y]), np.concatenate((x, y), axis=-1)), (S, SPD)),
    ("concatenate None", lambda x, y: np.concatenate((x, y), axis=None), (M, V)),
    ("concatenate mixed", lambda x, y: np.concatenate((x, y)), (I, V)),
    ("concatenate list", lambda x: np.concatenate((x, [1.0, 2.0], np.arange(3))), (V,)),
    ("concatenate dtype", lambda x: np.concatenate((x, x), dtype=np.float32), (V,)),
    ("concat", lambda x: np.concat((x, x)), (M,)),
    ("stack", lambda x, y: (np.stack((x, y)), np.stack([x, y], axis=-1), np.stack((x, y), 1)), (M, F32)),
    ("stack scalars", lambda x: np.stack([x[0], x[1], 2.0]), (V,)),
    ("vstack", lambda x, y: (np.vstack((x, y)), np.vstack((x[:2], y[:2]))), (V, W)),
    ("hstack", lambda x, y: (np.hstack((x, y)), np.hstack((x[:, None], y[:, None]))), (V, W)),
    ("dstack", lambda x, y: (np.dstack((x, y)), np.dstack((x[:, None], y[:, None]))), (V, W)),
    ("column_stack", lambda x, y: np.column_stack((x, y, np.ones((5, 2)))), (V, W)),
    ("block", lambda x: (np.block([[x, np.ones((3, 1))], [np.zeros((1, 5))]]), np.block([x, x]), np.block(x)), (M,)),
    ("block scalars", lambda x: np.block([[x[0], x[1]], [x[2], 1.0]]), (V,)),
    ("append", lambda x: (np.append(x, 3.0), np.append(x, x[:1], axis=0)), (M,)),
    (
        "insert",
        lambda x: (np.insert(x, 1, 9.0), np.insert(x, [0, 2], [7.0, 8.0]), np.insert(x, [3, 1], [7.0, 8.0])),
        (V,),
    ),
    (
        "insert axis",
        lambda x: (
            np.insert(x, 1, 5.0, axis=1),
            np.insert(x, 1, [1.0, 2.0, 3.0], axis=1),
            np.insert(x, [1], [[1.0], [2.0], [3.0]], axis=1),
            np.insert(x, 0, x[0], axis=0),
        ),
        (M,),
    ),
    ("insert slice", lambda x: np.insert(x, slice(1, 4, 2), 0.5), (V,)),
    (
        "delete",
        lambda x: (np.delete(x, 1), np.delete(x, [0, 2], axis=1), np.delete(x, slice(0, 2), 0), np.delete(x, -1, 0)),
        (M,),
    ),
    ("pad", lambda x: (np.pad(x, 1), np.pad(x, ((1, 2), (0, 1))), np.pad(x, (1, 0), constant_values=2.5)), (M,)),
    ("pad constants", lambda x: np.pad(x, 2, constant_values=((1.0, 2.0), (3.0, 4.0))), (M,)),
    *[
        (f"pad {mode}", lambda x, mode=mode: (np.pad(x, 2, mode=mode), np.pad(x, ((0, 1), (2, 3)), mode=mode)), (M,))
        for mode in ("edge", "reflect", "symmetric", "wrap")
    ],
    ("pad dict", lambda x: np.pad(x, 1, mode="edge"), (V,)),
    ("vander", lambda x: (np.vander(x), np.vander(x, 3), np.vander(x, 3, increasing=True)), (V,)),
    ("vander int", lambda x: np.vander(x, 4), (I,)),
    (
        "meshgrid",
        lambda x, y: (*np.meshgrid(x, y), *np.meshgrid(x, y, indexing="ij"), *np.meshgrid(x, y, sparse=True)),
        (V, I),
    ),
    ("meshgrid 3", lambda x, y: np.meshgrid(x, y, y), (V, W)),
    ("ix_", lambda x: x[np.ix_([0, 2], [1, 3])], (M,)),
    (
        "apply_along_axis",
        lambda x: (np.apply_along_axis(np.sum, 0, x), np.apply_along_axis(lambda r: r[:2] * 2, 1, x)),
        (M,),
    ),
    ("apply_over_axes", lambda x: np.apply_over_axes(np.sum, x, [0, 2]), (T,)),
]


def reduced(f: Any, **options: Any) -> Any:
    return lambda x: (
        [
            f(x, **options),
            *(f(x, axis=axis, **options) for axis in (0, -1, (0, 1))),
            f(x, axis=0, keepdims=True, **options),
        ]
    )


REDUCTIONS: list[Case] = [
    *[
        (f"{f.__name__} {x.dtype}", reduced(f), (x,))
        for f in (
            np.sum,
            np.prod,
            np.mean,
            np.max,
            np.min,
            np.amax,
            np.amin,
            np.ptp,
            np.var,
            np.std,
            np.all,
            np.any,
            np.count_nonzero,
        )
        for x in (M, F32, F16, I8, C, B)
        if not (f in (np.max, np.min, np.amax, np.amin, np.ptp) and x.dtype.kind == "c")
        and not (f is np.ptp and x.dtype.kind == "b")
    ],
    ("sum empty", lambda x: (np.sum(x), np.sum(x, axis=0), np.prod(x, axis=1), np.sum(x, axis=())), (E,)),
    ("sum scalar", lambda x: (np.sum(x), x.sum(), np.mean(x), np.std(x), np.max(x), np.cumsum(x)), (SC,)),
    ("sum 0-d", lambda x: (np.sum(x), np.sum(x, keepdims=True), np.max(x, axis=())), (A0,)),
    (
        "sum dtype",
        lambda x: (
            np.sum(x, dtype=np.float32),
            np.sum(x, dtype=complex),
            np.mean(x, dtype=np.float32),
            np.cumsum(x, dtype=np.float32),
        ),
        (M,),
    ),
    ("sum int dtypes", lambda x: (np.sum(x), np.prod(x), np.cumsum(x), np.sum(x, dtype=np.int8), np.mean(x)), (U8,)),
    ("sum bool dtype", lambda x: (np.sum(x, dtype=bool), np.sum(x, axis=0), np.cumsum(x)), (B,)),
    (
        "sum initial",
        lambda x: (
            np.sum(x, initial=2.0),
            np.prod(x, axis=0, initial=3.0),
            np.max(x, initial=0.5),
            np.min(x, axis=1, initial=0.0),
        ),
        (M,),
    ),
    (
        "sum where",
        lambda x: (
            np.sum(x, where=x > 0),
            np.prod(x, where=x > 0, axis=0),
            np.mean(x, where=[True, False, True, True]),
        ),
        (M,),
    ),
    ("max where", lambda x: (np.max(x, where=x < 1, initial=-3.0), np.min(x, axis=0, where=x > 0, initial=9.0)), (M,)),
    ("max empty initial", lambda x: (np.max(x, initial=1.0), np.max(x, axis=0, initial=1.0), np.max(x, axis=1)), (E,)),
    ("all where", lambda x: (np.all(x, where=[True, False, True]), np.any(x, axis=0, where=[[True], [False]])), (B,)),
    (
        "var options",
        lambda x: (
            np.var(x, ddof=1),
            np.std(x, axis=0, ddof=1),
            np.var(x, correction=1),
            np.var(x, axis=1, where=x > -1),
            np.std(x, where=x > -1),
        ),
        (M,),
    ),
    ("var mean", lambda x: (np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)), np.std(x, mean=0.5)), (M,)),
    (
        "average",
        lambda x: (
            np.average(x),
            np.average(x, axis=1),
            np.average(x, axis=0, weights=[1.0, 2.0, 3.0]),
            np.average(x, weights=x**2),
            np.average(x, axis=1, keepdims=True),
        ),
        (M,),
    ),
    (
        "average returned",
        lambda x: (
            *np.average(x, axis=0, returned=True),
            *np.average(x, axis=0, weights=[1.0, 2.0, 3.0], returned=True),
            *np.average(x, returned=True),
        ),
        (M,),
    ),
    ("average int", lambda x: (np.average(x), np.average(x, weights=[1, 2, 3, 4])), (I,)),
    (
        "argmax",
        lambda x: (
            np.argmax(x),
            np.argmin(x, axis=0),
            np.argmax(x, axis=-1, keepdims=True),
            np.argmin(x, keepdims=True),
            x.argmax(),
        ),
        (M,),
    ),
    ("cumsum", lambda x: (np.cumsum(x), np.cumsum(x, axis=0), np.cumprod(x, axis=1), x.cumsum(-1), x.cumprod()), (M,)),
    (
        "nan",
        lambda x: [
            f(x)
            for f in (
                np.nansum,
                np.nanprod,
                np.nanmax,
                np.nanmin,
                np.nanmean,
                np.nanvar,
                np.nanstd,
                np.nancumsum,
                np.nancumprod,
            )
        ],
        (NAN,),
    ),
    (
        "nan axis",
        lambda x: [
            f(x, axis=0) for f in (np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanstd)
        ],
        (NAN,),
    ),
    ("nanargmax", lambda x: (np.nanargmax(x), np.nanargmin(x, axis=1)), (NAN,)),
    ("max nan", lambda x: (np.max(x), np.min(x, axis=1), np.argmax(x)), (NAN,)),
    (
        "median",
        lambda x: (np.median(x), np.median(x, axis=0), np.median(x, axis=1, keepdims=True), np.median(x, axis=(0, 1))),
        (M,),
    ),
    ("median odd", lambda x: np.median(x), (V,)),
    ("median nan", lambda x: (np.median(x), np.median(x, axis=0)), (NAN,)),
    ("median int", lambda x: np.median(x), (I,)),
    ("median f32", lambda x: (np.median(x), np.median(x, axis=0)), (F32,)),
    (
        "quantile",
        lambda x: (
            np.quantile(x, 0.3),
            np.quantile(x, [0.1, 0.5, 0.9]),
            np.quantile(x, 0.3, axis=1),
            np.quantile(x, [0.2, 1.0], axis=0),
            np.quantile(x, 0.4, axis=0, keepdims=True),
        ),
        (M,),
    ),
    (
        "quantile methods",
        lambda x: [np.quantile(x, 0.37, axis=0, method=m) for m in ("lower", "higher", "midpoint", "nearest")],
        (M,),
    ),
    ("percentile", lambda x: (np.percentile(x, 30), np.percentile(x, [10, 50], axis=1), np.percentile(x, 100)), (M,)),
    ("quantile f32", lambda x: (np.quantile(x, 0.3), np.percentile(x, 30.0, axis=0)), (F32,)),
    ("quantile int", lambda x: np.quantile(x, 0.3), (I,)),
    ("quantile nan", lambda x: np.quantile(x, [0.3, 0.6], axis=0), (NAN,)),
    ("cov", lambda x: (np.cov(x), np.cov(x, rowvar=False), np.cov(x, bias=True), np.cov(x, ddof=0)), (M,)),
    ("cov two", lambda x, y: (np.cov(x, y), np.corrcoef(x, y), np.cov(x)), (V, W)),
    ("cov complex", lambda x: np.cov(x), (C,)),
    ("corrcoef", lambda x: np.corrcoef(x), (M,)),
]
if hasattr(np, "cumulative_sum"):
    REDUCTIONS += [
        (
            "cumulative_sum",
            lambda x: (
                np.cumulative_sum(x, axis=1),
                np.cumulative_sum(x, axis=0, include_initial=True),
                np.cumulative_prod(x, axis=0, include_initial=True),
            ),
            (M,),
        ),
        ("unstack", lambda x: (np.unstack(x), np.unstack(x, axis=-1)), (M,)),
    ]

SELECTION: list[Case] = [
    (
        "where",
        lambda x, y: (np.where(x > 0, x, y), np.where(x > 0, x, 0.0), np.where(x > 0, 1, 2), np.where(True, x, y[0])),
        (V, W),
    ),
    ("where dtypes", lambda x, y: (np.where(x > 0, x, 1), np.where(x > 0, x, 1.5), np.where(x > 0, y, x)), (F32, M)),
    ("where int", lambda x: (np.where(x > 0, x, 1.5), np.where(x, 1, x), np.where(x > 0, 300, x)), (I,)),
    ("where 0-d", lambda x: np.where(x > 0, x, -x), (SC,)),
    ("where broadcast", lambda x, y: np.where(x[:, None] > 0, y, x[:, None]), (V, W)),
    (
        "select",
        lambda x: (np.select([x > 1, x > 0], [x, x**2]), np.select([x > 1, x > 0], [x, 2.0], default=-1.0)),
        (V,),
    ),
    (
        "piecewise",
        lambda x: (
            np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t**2]),
            np.piecewise(x, [x > 0], [np.sin, 3.0]),
        ),
        (V,),
    ),
    ("choose", lambda i, x: np.choose(i % 3, [x, x**2, 1.0], mode="clip"), (np.array([0, 1, 2, 5, 1]), V)),
    (
        "clip",
        lambda x: (
            np.clip(x, -0.5, 0.5),
            x.clip(0),
            np.clip(x, None, 0.3),
            x.clip(max=0.2),
            np.clip(x, -1, 1),
            np.clip(x, x - 1, 0),
        ),
        (V,),
    ),
    (
        "clip dtypes",
        lambda x, i: (np.clip(x, -0.5, 0.5), np.clip(i, 0, 5), np.clip(i, 0.5, 5), np.clip(x, np.float64(0), None)),
        (F32, I),
    ),
    ("clip scalar", lambda x: np.clip(x, 0.0, 0.5), (SC,)),
    ("clip keywords", lambda x: np.clip(x, min=-0.5, max=0.25), (V,)),
    ("nan_to_num", lambda x: (np.nan_to_num(x), np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0)), (INF,)),
    ("nan_to_num complex", lambda x: np.nan_to_num(x), (np.array([complex(np.nan, 1), complex(2, np.inf)]),)),
    ("nan_to_num int", lambda x: np.nan_to_num(x), (I,)),
    ("nan_to_num scalar", lambda x: np.nan_to_num(x), (SC,)),
    (
        "round",
        lambda x: (np.round(x), np.round(x, 1), np.around(x, 2), x.round(3), np.round(x * 100, -1), np.fix(x)),
        (M,),
    ),
    ("round int", lambda x: (np.round(x), np.round(x, -1), np.round(x, 2)), (I,)),
    ("round complex", lambda x: np.round(x, 1), (C,)),
    ("round scalar", lambda x: (np.round(x, 1), np.fix(x)), (SC,)),
    ("round f32", lambda x: np.round(x, 2), (F32,)),
    ("parts", lambda x: (np.real(x), np.imag(x), np.conj(x), np.angle(x), np.abs(x), x.conj(), x.real, x.imag), (C,)),
    (
        "parts real",
        lambda x: (np.real(x), np.imag(x), np.conj(x), np.angle(x), x.conj(), x.conjugate(), np.angle(x, deg=True)),
        (M,),
    ),
    ("parts scalar", lambda x: (np.real(x), np.imag(x), x.real, x.imag), (SC,)),
    ("parts complex scalar", lambda x: (np.real(x), np.imag(x), np.angle(x), np.abs(x)), (np.complex128(1 - 2j),)),
    ("sinc", lambda x: np.sinc(x), (V,)),
    (
        "take",
        lambda x: (
            np.take(x, [0, 3]),
            np.take(x, [2, 0], axis=1),
            np.take(x, 1, axis=0),
            np.take(x, [[1, 0], [0, 1]], axis=0),
            x.take(5),
            np.take(x, [-1, 7], axis=0, mode="wrap"),
            np.take(x, [9], axis=0, mode="clip"),
        ),
        (M,),
    ),
    ("take scalar", lambda x: np.take(x, 2), (V,)),
    (
        "take_along_axis",
        lambda x: (
            np.take_along_axis(x, np.argsort(x, axis=1), axis=1),
            np.take_along_axis(x, np.argmax(x, axis=0)[None], 0),
            np.take_along_axis(x, np.array([3, 1]), None),
        ),
        (M,),
    ),
    (
        "compress",
        lambda x: (
            np.compress([True, False, True], x, axis=0),
            np.compress([False, True], x),
            x.compress([True, False, True, True], axis=1),
        ),
        (M,),
    ),
    ("extract", lambda x: np.extract(MASK, x), (V,)),
    (
        "diagonal",
        lambda x: (
            np.diagonal(x),
            np.diagonal(x, 1),
            x.diagonal(-1),
            np.trace(x),
            x.trace(1),
            np.diag(x),
            np.diag(x, -1),
        ),
        (M,),
    ),
    (
        "diagonal 3-D",
        lambda x: (
            np.diagonal(x),
            np.diagonal(x, 1, 2, 1),
            np.trace(x, axis1=1, axis2=2),
            np.linalg.diagonal(x),
            np.linalg.trace(x, offset=1),
        ),
        (T,),
    ),
    ("diagonal int", lambda x: (np.trace(x), np.diag(x)), (I8,)),
    ("diag", lambda x: (np.diag(x), np.diag(x, 1), np.diag(x, -2), np.diagflat(x)), (V,)),
    ("diagflat", lambda x: np.diagflat(x, 1), (M,)),
    ("tril", lambda x: (np.tril(x), np.triu(x), np.tril(x, 1), np.triu(x, -1)), (M,)),
    ("tril stack", lambda x: (np.tril(x), np.triu(x, 1)), (T,)),
    ("tril 1-D", lambda x: np.tril(x), (V,)),
    (
        "indices_from",
        lambda x: (x[np.diag_indices_from(x)], x[np.tril_indices_from(x)], x[np.triu_indices_from(x, 1)]),
        (S,),
    ),
    ("unravel_index", lambda i: np.unravel_index(i, (3, 4)), (np.array([5, 11]),)),
    ("ravel_multi_index", lambda i: np.ravel_multi_index((i, i), (3, 4)), (np.array([1, 2]),)),
]

CREATION: list[Case] = [
    (
        "like",
        lambda x: (np.zeros_like(x), np.ones_like(x), np.full_like(x, 2.5), np.empty_like(x) * 0, np.copy(x)),
        (M,),
    ),
    (
        "like dtype",
        lambda x: (
            np.zeros_like(x, dtype=int),
            np.ones_like(x, shape=(2,)),
            np.full_like(x, 7, dtype=np.float32),
            np.full_like(x, x[0]),
            np.zeros_like(x, shape=3),
        ),
        (M,),
    ),
    ("like int", lambda x: (np.full_like(x, 2.7), np.zeros_like(x)), (I,)),
    ("like scalar", lambda x: (np.zeros_like(x), np.ones_like(x), np.full_like(x, 3), np.copy(x)), (SC,)),
]


def writes(f: Any) -> Any:
    def program(x: Any, *rest: Any) -> Any:
        y = x.copy()
        f(y, *rest)
        return y

    return program


WRITES: list[Case] = [
    ("fill_diagonal", writes(lambda y: np.fill_diagonal(y, 9.0)), (M,)),
    ("fill_diagonal values", writes(lambda y: np.fill_diagonal(y, [1.0, 2.0])), (S,)),
    ("fill_diagonal view", writes(lambda y: np.fill_diagonal(y.T, y[0, 0])), (M,)),
    ("copyto", writes(lambda y: np.copyto(y, 2.0, where=y > 0)), (M,)),
    ("copyto view", writes(lambda y: np.copyto(y[1:], y[0])), (M,)),
    ("put", writes(lambda y: np.put(y, [0, 5, -1], [1.0, 2.0])), (M,)),
    ("put view", writes(lambda y: y.T.put([1], 7.0)), (M,)),
    ("place", writes(lambda y: np.place(y, MASK, [1.0, 2.0])), (V,)),
    ("putmask", writes(lambda y: np.putmask(y, y > 0, [1.0, 2.0])), (V,)),
    ("put_along_axis", writes(lambda y: np.put_along_axis(y, np.argmax(y, axis=1)[:, None], 0.0, axis=1)), (M,)),
    ("flat", writes(lambda y: y.flat.__setitem__(slice(None, None, 3), 0.0)), (M,)),
    ("flat view", writes(lambda y: y[:, ::2].flat.__setitem__(1, 5.0)), (M,)),
    ("fill", writes(lambda y: y[1].fill(3.0)), (M,)),
    ("sort", writes(lambda y: y.sort()), (M,)),
    ("sort view", writes(lambda y: y[:, 1].sort()), (M,)),
    ("real", writes(lambda y: y.real.__iadd__(2.0)), (C,)),
    ("imag", writes(lambda y: y.imag.__setitem__(0, 1.0)), (C,)),
    ("nan_to_num in place", writes(lambda y: np.nan_to_num(y, copy=False)), (INF,)),
    ("out", writes(lambda y: (np.sum(y, axis=0, out=y[0]), np.cumsum(y[1], out=y[2]), np.clip(y, 0, 1, out=y))), (M,)),
    ("out matmul", writes(lambda y: np.matmul(y, y.T, out=y)), (S,)),
    (
        "out mean",
        writes(
            lambda y: (np.mean(y, axis=1, out=y[:, 0]), np.std(y, axis=0, out=y[1]), np.take(y, [0, 1, 2, 3], out=y[2]))
        ),
        (M,),
    ),
]

SORTING: list[Case] = [
    (
        "sort",
        lambda x: (
            np.sort(x),
            np.sort(x, axis=0),
            np.sort(x, axis=None),
            np.argsort(x),
            np.argsort(x, axis=0, kind="stable"),
        ),
        (M,),
    ),
    ("sort nan", lambda x: (np.sort(x), np.argsort(x, kind="stable")), (INF,)),
    ("sort int", lambda x: (np.sort(x), np.argsort(x), x.argsort()), (I,)),
    ("lexsort", lambda x, y: np.lexsort((x, y)), (V, np.array([1, 0, 1, 0, 0]))),
    (
        "searchsorted",
        lambda x, v: (
            np.searchsorted(np.sort(x), v),
            np.searchsorted(np.sort(x), v, side="right"),
            np.searchsorted(np.sort(x), 0.1),
            np.sort(x).searchsorted(v),
        ),
        (V, M),
    ),
    (
        "searchsorted ties",
        lambda x, v: (np.searchsorted(x, v), np.searchsorted(x, v, "right")),
        (np.array([0.0, 1.0, 1.0, 2.0, np.nan]), np.array([1.0, 3.0, -1.0, np.nan, 2.0])),
    ),
    ("isin", lambda x: (np.isin(x, [2, 3]), np.isin(x, [2], invert=True)), (I,)),
    (
        "digitize",
        lambda x: (
            np.digitize(x, [-1.0, 0.0, 1.0]),
            np.digitize(x, [1.0, 0.0, -1.0]),
            np.digitize(x, [-1.0, 0.0], right=True),
        ),
        (V,),
    ),
]

PRODUCTS: list[Case] = [
    (
        "dot",
        lambda x, y: (
            np.dot(x, y),
            x.dot(y),
            np.dot(x, 2.0),
            np.dot(x[0], y),
            np.dot(x, y[:, 0]),
            np.dot(x[0], y[:, 0]),
        ),
        (M, N),
    ),
    ("dot stacks", lambda x, y: (np.dot(x, y), np.dot(y.T, x[0].T)), (T, N)),
    ("dot dtypes", lambda x, y: (np.dot(x, y.T), np.dot(x, 2), np.dot(x, np.float64(2))), (F32, M)),
    ("dot int", lambda x: (np.dot(x, x), np.dot(x, x[0])), (I8,)),
    ("vdot", lambda x, y: (np.vdot(x, y), np.vdot(y, x)), (C, C * 1j)),
    ("inner", lambda x, y: (np.inner(x, y), np.inner(x[0], y), np.inner(x, 2.0)), (M, M + 1)),
    (
        "outer",
        lambda x, y: (np.outer(x, y), np.linalg.outer(x, y), np.multiply.outer(x, y), np.subtract.outer(x, y)),
        (V, W),
    ),
    ("outer matrices", lambda x: np.outer(x, x), (M,)),
    (
        "matmul",
        lambda x, y: (x @ y, np.matmul(x, y), x @ y[:, 0], x[0] @ y, x[0] @ y[:, 0], np.linalg.matmul(x, y)),
        (M, N),
    ),
    (
        "matmul stacks",
        lambda x, y: (x @ y, x @ y[:, 0], y.T @ x.mT, x[0] @ x.mT, x @ x.mT, x.mT[:1] @ x, x[0, 0] @ x.mT),
        (T, N),
    ),
    ("matmul broadcast", lambda x: x[:, None] @ x.mT[None], (T,)),
    ("matmul int", lambda x: x @ x, (I8,)),
    ("matmul bool", lambda x: x @ x.T, (B,)),
    ("rmatmul", lambda y: (np.ones((2, 4)) @ y, np.ones(4) @ y), (N,)),
    ("vecdot", lambda x, y: (np.vecdot(x, y), np.vecdot(x, y, axis=0), np.linalg.vecdot(x, y[0])), (C, C * 1j)),
    (
        "tensordot",
        lambda x, y: (
            np.tensordot(x, y, 1),
            np.tensordot(x, y, axes=([2], [0])),
            np.tensordot(x, x, axes=([0, 1], [0, 1])),
            np.tensordot(x, y, 0),
        ),
        (T, N),
    ),
    ("tensordot scalar", lambda x: np.tensordot(x, x, 2), (M,)),
    ("kron", lambda x, y: (np.kron(x, y), np.kron(x, y[0]), np.kron(x[0], y), np.kron(x, 2.0)), (M, N)),
    (
        "cross",
        lambda x, y: (
            np.cross(x, y),
            np.cross(x[0], y),
            np.cross(x.T, y.T, axis=0),
            np.cross(x, y, axisc=0),
            np.linalg.cross(x, y),
        ),
        (S, SPD),
    ),
    (
        "convolve",
        lambda x, y: [
            np.convolve(p, q, mode) for p, q in ((x, y), (y, x), (x, y[:2])) for mode in ("full", "same", "valid")
        ],
        (V, np.array([1.0, -2.0, 0.5, 3.0])),
    ),
    (
        "correlate",
        lambda x, y: [
            np.correlate(p, q, mode)
            for p, q in ((x, y), (y, x), (x, y[:2]), (y[:3], x), (y[:2], x))
            for mode in ("full", "same", "valid")
        ],
        (V, np.array([1.0, -2.0, 0.5, 3.0])),
    ),
    ("correlate complex", lambda x: (np.correlate(x, x * 1j, "full"), np.correlate(x[:2], x, "same")), (Z,)),
    *[
        (f"einsum {text}", lambda *xs, text=text: np.einsum(text, *xs), arrays)
        for text, arrays in [
            ("ij->ji", (M,)),
            ("ij->", (M,)),
            ("ij->j", (M,)),
            ("ii->i", (S,)),
            ("ii", (S,)),
            ("ij", (M,)),
            ("ba", (M,)),
            ("ij,jk->ik", (M, N)),
            ("ij,jk", (M, N)),
            ("ij,jk->ki", (M, N)),
            ("ij,ij->i", (M, M + 1)),
            ("i,j->ij", (V, W)),
            ("i,i", (V, W)),
            ("i,i->i", (V, W)),
            ("aij,jk->aik", (T, N)),
            ("...ij,jk->...ik", (T, N)),
            ("...j,...j", (T, M)),
            ("ij,jk,kl->il", (M, N, M)),
            ("ij,jk,kl", (M, N, M)),
            ("i,ij,j->", (V[:3], S, V[:3])),
            ("iij->j", (np.stack([S, S + 1, S - 1]),)),
            ("ij,kl->", (M, N)),
            ("ii,ij->j", (S, S)),
            ("a,a,a->a", (V, W, V)),
            ("i...->...", (T,)),
            ("ij,j,i,ij->ij", (M, N[:, 0], N[0], M)),
            (",ij->ij", (A0, M)),
            ("i...i->...", (np.stack([T[:, :2], T[:, 1:]], -1),)),
            ("ij , jk -> ik", (M, N)),
        ]
    ],
    ("einsum lists", lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), (M, N)),
    ("einsum broadcast", lambda x, y: np.einsum("...i,...i->...", x[:1], y), (M, M + 1)),
    ("einsum int", lambda x: (np.einsum("ij,jk", x, x), np.einsum("ii", x)), (I8,)),
    ("einsum complex", lambda x, y: np.einsum("ij,kj->ik", x, y), (C, C)),
]
if hasattr(np, "matvec"):
    PRODUCTS += [
        ("matvec", lambda x, y: (np.matvec(x, y), np.vecmat(y, x.mT)), (T, M[:2])),
        ("vecmat complex", lambda x, y: np.vecmat(x, y), (C, S)),
    ]

NORMS = [(M, (None, "fro", 1, -1, np.inf, -np.inf)), (V, (None, 1, 2, 3, 0.5, np.inf, -np.inf, 0, -1, -2))]
LINALG: list[Case] = [
    *[
        (
            f"norm {x.ndim} {order}",
            lambda x, order=order: (np.linalg.norm(x, order), np.linalg.norm(x, order, keepdims=True)),
            (x,),
        )
        for x, orders in NORMS
        for order in orders
    ],
    (
        "norm axis",
        lambda x: (
            np.linalg.norm(x, axis=0),
            np.linalg.norm(x, 1, axis=1, keepdims=True),
            np.linalg.norm(x, np.inf, axis=-1),
        ),
        (M,),
    ),
    (
        "norm 3-D",
        lambda x: (
            np.linalg.norm(x),
            np.linalg.norm(x, axis=(0, 2)),
            np.linalg.norm(x, 1, axis=(2, 0)),
            np.linalg.norm(x, np.inf, axis=(1, 2), keepdims=True),
        ),
        (T,),
    ),
    ("norm complex", lambda x: (np.linalg.norm(x), np.linalg.norm(x, 1), np.linalg.norm(x, axis=0)), (C,)),
    ("norm int", lambda x: (np.linalg.norm(x), np.linalg.norm(x, 1)), (I,)),
    ("norm f32", lambda x: (np.linalg.norm(x), np.linalg.norm(x, 1), np.linalg.norm(x[0], 3)), (F32,)),
    (
        "vector_norm",
        lambda x: (
            np.linalg.vector_norm(x),
            np.linalg.vector_norm(x, ord=1, axis=(0, 1)),
            np.linalg.vector_norm(x, axis=1, keepdims=True),
        ),
        (M,),
    ),
    ("matrix_norm", lambda x: (np.linalg.matrix_norm(x), np.linalg.matrix_norm(x, ord=1)), (T,)),
    ("solve", lambda a, b: (np.linalg.solve(a, b), np.linalg.solve(a, b[:, 0]), np.linalg.solve(a, b)), (SPD, M)),
    (
        "solve stacks",
        lambda a, b: (
            np.linalg.solve(a, b),
            np.linalg.solve(a, b[0]),
            np.linalg.solve(a[0], b),
            np.linalg.solve(a, b[0, :, 0]),
        ),
        (np.stack([SPD, SPD + 1]), T),
    ),
    ("solve int", lambda a: np.linalg.solve(a, a[0]), (I8,)),
    ("inv", lambda a: (np.linalg.inv(a), np.linalg.inv(np.stack([a, a * 2]))), (SPD,)),
    (
        "cholesky",
        lambda a: (np.linalg.cholesky((a + a.T) / 2), np.linalg.cholesky(np.stack([a + a.T, a @ a.T]))),
        (SPD,),
    ),
    ("matrix_power", lambda a: [np.linalg.matrix_power(a, n) for n in (0, 1, 2, 3, 5, 6, -2)], (SPD,)),
    (
        "multi_dot",
        lambda x, y: (
            np.linalg.multi_dot([x, y, x]),
            np.linalg.multi_dot([x[0], y, x, y[:, 0]]),
            np.linalg.multi_dot([x, y]),
        ),
        (M, N),
    ),
]

DIFFERENCES: list[Case] = [
    (
        "diff",
        lambda x: (
            np.diff(x),
            np.diff(x, axis=0),
            np.diff(x, n=2),
            np.diff(x, prepend=0.0),
            np.diff(x, append=x[:, :1], axis=1),
            np.diff(x, 0),
        ),
        (M,),
    ),
    ("diff bool", lambda x: np.diff(x), (B,)),
    ("diff int", lambda x: np.diff(x), (U8,)),
    ("ediff1d", lambda x: (np.ediff1d(x), np.ediff1d(x, to_end=9.0, to_begin=[1.0, 2.0])), (M,)),
    (
        "gradient",
        lambda x: (
            np.gradient(x),
            np.gradient(x, 0.5),
            np.gradient(x, edge_order=2),
            np.gradient(x, np.array([0.0, 1.0, 1.5, 3.0, 3.5])),
        ),
        (V,),
    ),
    (
        "gradient 2-D",
        lambda x: (
            np.gradient(x),
            np.gradient(x, axis=1),
            np.gradient(x, 2.0, [0.0, 1.0, 3.0, 4.0]),
            np.gradient(x, axis=(1, 0)),
        ),
        (M,),
    ),
    ("gradient order 2", lambda x: np.gradient(x, np.array([0.0, 1.0, 1.5, 3.0, 3.5]), edge_order=2), (V,)),
    ("gradient dtypes", lambda x: np.gradient(x), (I,)),
    ("gradient f32", lambda x: np.gradient(x[0]), (F32,)),
    (
        "trapezoid",
        lambda y: (
            np.trapezoid(y),
            np.trapezoid(y, dx=0.5, axis=0),
            np.trapezoid(y, [0.0, 1.0, 3.0, 4.0]),
            np.trapezoid(y, [0.0, 1.0, 3.0], axis=0),
        ),
        (M,),
    ),
    ("trapezoid x", lambda y, x: np.trapezoid(y, x), (V, W)),
    (
        "interp",
        lambda x: (
            np.interp(x, [-1.0, 0.0, 1.0], [0.0, 1.0, 5.0]),
            np.interp(x, [-0.5, 0.5], [0.0, 1.0], left=-7.0, right=9.0),
            np.interp(x[0], [-1.0, 0.0], [1.0, 2.0]),
        ),
        (V,),
    ),
    ("interp fp", lambda x, f: np.interp(x, [-1.0, 0.0, 1.0, 2.0, 3.0], f), (V, W)),
    (
        "interp nodes",
        lambda n, x: (np.interp(n, n, n * 2), np.interp([np.nan, 9.0, 0.5], n, n), np.interp(x, n[:1], n[:1])),
        (np.array([0.0, 1.0, 2.0]), V),
    ),
    ("unwrap", lambda x: (np.unwrap(x * 4), np.unwrap(x, period=1.0), np.unwrap(x, discont=4.0)), (V,)),
    ("polyval", lambda p, x: (np.polyval(p, x), np.polyval(p, 2.0), np.polyval([1, 2, 3], x)), (V, W)),
    (
        "poly",
        lambda p, q: (
            np.polyder(p),
            np.polyder(p, 2),
            np.polyint(p),
            np.polyint(p, 2, [1.0, 2.0]),
            np.polyadd(p, q[:3]),
            np.polysub(p[:2], q),
            np.polymul(p, q),
        ),
        (V, W),
    ),
    (
        "bincount",
        lambda x: (np.bincount([0, 1, 1, 3, 0], x), np.bincount([0, 1, 1, 3, 0], weights=x, minlength=6)),
        (V,),
    ),
]

PREDICATES: list[Case] = [
    ("isclose", lambda x, y: (np.isclose(x, y), np.isclose(x, x + 1e-9), np.isclose(x, 1.0, atol=1.0)), (V, W)),
    ("isclose nan", lambda x: (np.isclose(x, x), np.isclose(x, x, equal_nan=True)), (INF,)),
    ("isposinf", lambda x: (np.isposinf(x), np.isneginf(x), np.isreal(x), np.iscomplex(x)), (INF,)),
    ("isreal", lambda x: (np.isreal(x), np.iscomplex(x)), (Z,)),
    (
        "static",
        lambda x: (
            np.shape(x),
            np.ndim(x),
            np.size(x),
            np.size(x, 0),
            np.iscomplexobj(x),
            np.isrealobj(x),
            len(x),
            x.shape,
            x.ndim,
            x.size,
            x.nbytes,
            x.itemsize,
        ),
        (M,),
    ),
    ("result_type", lambda x: str(np.result_type(x, np.float32)), (M,)),
    ("can_cast", lambda x: (np.can_cast(x.dtype, np.float32), np.common_type(x).__name__), (M,)),
    ("may_share_memory", lambda x: (np.may_share_memory(x, x[1:]), np.shares_memory(x, x.copy())), (M,)),
]

CONCRETE: list[Case] = [
    (
        "nonzero",
        lambda x: (np.nonzero(x > 0), np.flatnonzero(x > 0), np.argwhere(x > 0), np.where(x > 0), (x > 0).nonzero()),
        (M,),
    ),
    ("boolean index", lambda x: (x[x > 0], np.extract(x > 0, x), np.compress(x[0] > 0, x, axis=1)), (M,)),
    (
        "unique",
        lambda x: (np.unique(np.round(x)), *np.unique(np.round(x), return_index=True, return_counts=True)),
        (V,),
    ),
    (
        "allclose",
        lambda x: (np.allclose(x, x), np.array_equal(x, x + 1), np.array_equiv(x, x[None]), np.array_equal(x, x[0])),
        (M,),
    ),
    ("choose", lambda i, x: np.choose(i, [x, x * 2]), (np.array([0, 1, 0, 0, 1]), V)),
    ("place", writes(lambda y: np.place(y, y > 0, [1.0, 2.0])), (V,)),
    ("trim_zeros", lambda x: np.trim_zeros(x * MASK), (V,)),
    ("real_if_close", lambda x: np.real_if_close(x * 0 + 1.0), (C,)),
    ("bool", lambda x: x[0] if x.sum() > 100 else x[1], (M,)),
    ("index", lambda x: (x[int(np.argmax(x))], x[: int(np.argmax(x)) + 1]), (V,)),
]

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
}


@pytest.mark.parametrize("concrete", [False, True], ids=["abstract", "concrete"])
@pytest.mark.parametrize("case", ABSTRACT, ids=lambda case: case[0])
def test_function_equals_numpy(case: Case, concrete: bool) -> None:
    _, f, arrays = case
    compare(f, arrays, concrete)


@pytest.mark.parametrize("case", CONCRETE, ids=lambda case: case[0])
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


# --- what is refused -----------------------------------------------------------------------------------------------------

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
    ("complex max", lambda x: np.max(x), (C,), UnsupportedError),
    ("matmul", lambda x: x @ x, (M,), ShapeError),
    ("dot", lambda x: np.dot(x, x), (M,), ShapeError),
    ("einsum", lambda x: np.einsum("ij,jk", x, x), (M,), ShapeError),
    ("einsum rank", lambda x: np.einsum("ijk", x), (M,), ShapeError),
    ("solve", lambda x: np.linalg.solve(x, x), (M,), ShapeError),
    ("quantile range", lambda x: np.quantile(x, 1.5), (M,), ShapeError),
    ("quantile method", lambda x: np.quantile(x, 0.5, method="weibull"), (M,), UnsupportedError),
    ("norm 2", lambda x: np.linalg.norm(x, 2), (M,), UnsupportedError),
    ("pad mode", lambda x: np.pad(x, 1, mode="mean"), (M,), UnsupportedError),
    ("sort order", lambda x: np.sort(x, order="f"), (M,), UnsupportedError),
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
