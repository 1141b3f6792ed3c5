"""Programs that move, choose and write elements: (label, function, arguments)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.tracing.function_inputs import (
    A0,
    F32,
    I8,
    INF,
    INTS,
    MASK,
    SC,
    SPD,
    C,
    E,
    M,
    S,
    T,
    V,
    W,
)
from tests.tracing.trace_support import Case

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
    ("concatenate mixed", lambda x, y: np.concatenate((x, y)), (INTS, V)),
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
    (
        "insert values with more axes",
        lambda x: (np.insert(x, 1, x[None, :1, None] ** 2), np.insert(x, [1], x[None, :1])),
        (V,),
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
    ("vander int", lambda x: np.vander(x, 4), (INTS,)),
    (
        "meshgrid",
        lambda x, y: (*np.meshgrid(x, y), *np.meshgrid(x, y, indexing="ij"), *np.meshgrid(x, y, sparse=True)),
        (V, INTS),
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


SELECTION: list[Case] = [
    (
        "where",
        lambda x, y: (np.where(x > 0, x, y), np.where(x > 0, x, 0.0), np.where(x > 0, 1, 2), np.where(True, x, y[0])),
        (V, W),
    ),
    ("where dtypes", lambda x, y: (np.where(x > 0, x, 1), np.where(x > 0, x, 1.5), np.where(x > 0, y, x)), (F32, M)),
    ("where int", lambda x: (np.where(x > 0, x, 1.5), np.where(x, 1, x), np.where(x > 0, 300, x)), (INTS,)),
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
    ("choose, checked", lambda i, x: np.choose(i, [x, x * 2]), (np.array([0, 1, 0, 0, 1]), V)),
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
        (F32, INTS),
    ),
    ("clip scalar", lambda x: np.clip(x, 0.0, 0.5), (SC,)),
    ("clip keywords", lambda x: np.clip(x, min=-0.5, max=0.25), (V,)),
    ("nan_to_num", lambda x: (np.nan_to_num(x), np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0)), (INF,)),
    ("nan_to_num complex", lambda x: np.nan_to_num(x), (np.array([complex(np.nan, 1), complex(2, np.inf)]),)),
    ("nan_to_num int", lambda x: np.nan_to_num(x), (INTS,)),
    ("nan_to_num scalar", lambda x: np.nan_to_num(x), (SC,)),
    (
        "round",
        lambda x: (np.round(x), np.round(x, 1), np.around(x, 2), x.round(3), np.round(x * 100, -1), np.trunc(x)),
        (M,),
    ),
    ("round int", lambda x: (np.round(x), np.round(x, -1), np.round(x, 2)), (INTS,)),
    ("round complex", lambda x: np.round(x, 1), (C,)),
    ("round scalar", lambda x: (np.round(x, 1), np.trunc(x)), (SC,)),
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
    ("like int", lambda x: (np.full_like(x, 2.7), np.zeros_like(x)), (INTS,)),
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
    ("sort int", lambda x: (np.sort(x), np.argsort(x), x.argsort()), (INTS,)),
    ("lexsort", lambda x, y: np.lexsort((x, y)), (V, np.array([1, 0, 1, 0, 0]))),
    ("linspace from a weak number", lambda x: np.linspace(0.0, np.max(x), 3), (np.float32([1.0, 2.5]),)),
    ("logspace from a weak number", lambda x: np.logspace(0, np.max(x), 3), (np.float32([1.0, 2.5]),)),
    ("repeat by an empty list", lambda x: np.repeat(x[:0], [], axis=0), (M,)),
    ("repeat by a list of floats", lambda x: np.repeat(x, [2.0, 0.0, 1.5], axis=0), (np.ones((3, 2)),)),
    ("sort_complex of float32", lambda x: np.sort_complex(x), (V.astype(np.float32),)),
    ("sort_complex of bools", lambda x: np.sort_complex(x), (V > 1.5,)),
    ("sort_complex of int16", lambda x: np.sort_complex(x), (np.array([3, 1, 2], np.int16),)),
    ("logspace of bases", lambda b: np.logspace(0.5, 1.0, 3, base=b), (np.array([2.0, 3.0]),)),
    ("logspace of one base", lambda b: np.logspace(0.5, np.float32(1.0), 3, base=b), (np.array([2.0]),)),
    ("logspace of bases along another axis", lambda b, s: np.logspace(s, 1.0, 4, base=b, axis=-1), (M[:, :1] + 9, V)),
    ("logspace of bases and ends", lambda b, s: np.logspace(s, s[:1], 2, False, b, axis=1), (M[0] + 9, M)),
    ("geomspace from a number", lambda x: np.geomspace(1.0, np.max(x), 3), (np.float32([1.0, 2.5]),)),
    ("lexsort of numbers", lambda x: x * np.lexsort((x, x)) + np.lexsort((x,), axis=0), (np.float64(2.0),)),
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
    ("isin", lambda x: (np.isin(x, [2, 3]), np.isin(x, [2], invert=True)), (INTS,)),
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
