"""Objects of libraries that a function captures and only asks: interpolants, distributions with their parameters,
rotations, sparse matrices, and what reads items or attributes.

They are compiled in. A guard compares what they hold, so that a program is not used after one has been changed.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from srcgrad.tracing.purity import static_key

__all__ = ["contents", "given_to", "makes_rotations"]

PARTS: Final = {
    "PPoly": ("c", "x", "extrapolate", "axis"),
    "BSpline": ("t", "c", "k", "extrapolate", "axis"),
    "interp1d": ("x", "y", "_kind", "axis", "bounds_error", "fill_value"),
    "UnivariateSpline": ("_eval_args", "ext"),
    "BivariateSpline": ("tck", "degrees"),
    "gaussian_kde": ("dataset", "factor", "weights"),
    "RegularGridInterpolator": ("grid", "values", "method", "bounds_error", "fill_value"),
    "RBFInterpolator": ("y", "d", "neighbors", "smoothing", "kernel", "epsilon", "powers", "_coeffs"),
    "Rbf": ("xi", "di", "nodes", "epsilon", "function", "norm"),
    "LinearNDInterpolator": ("points", "values", "fill_value", "scale", "offset", "is_complex"),
    "NearestNDInterpolator": ("points", "values", "scale", "offset"),
    "KroghInterpolator": ("xi", "c", "n", "_y_axis", "_y_extra_shape"),
    "BarycentricInterpolator": ("xi", "yi", "_y_axis", "_y_extra_shape"),
    "ShortTimeFFT": ("_win", "_dual_win", "_hop", "_fs", "_fft_mode", "_mfft", "_scaling", "_phase_shift"),
    "cKDTree": ("data", "boxsize", "leafsize"),
    "CZT": ("m", "n", "_nfft", "_Awk2", "_Fwk2", "_wk2"),
}
"""What an interpolant, an estimate or a transform holds, by the class that its own is derived from."""
ROTATIONS: Final = "scipy.spatial.transform"
HOMES: Final = (
    "scipy.interpolate.",
    "scipy.spatial._ckdtree",
    "scipy.spatial._kdtree",
    "scipy.stats._kde",
    "scipy.signal._short_time_fft",
    "scipy.signal._czt",
    ROTATIONS,
)
"""Where these classes are made."""
ASKED: Final = frozenset(
    {"ev", "derivative", "derivatives", "antiderivative", "integrate", "integral", "partial_derivative", "roots"}
    | {
        "solve",
        "design_matrix",
        "get_knots",
        "get_coeffs",
        "get_residual",
        "evaluate",
        "pdf",
        "logpdf",
        "integrate_box_1d",
    }
    | {"stft", "stft_detrend", "istft", "spectrogram", "f", "t", "delta_f", "delta_t", "f_pts", "p_num", "p_min"}
    | {"as_quat", "as_matrix", "as_rotvec", "as_euler", "as_mrp", "apply", "inv", "magnitude", "approx_equal", "single"}
    | {"mean", "times", "rotations", "query"}
    | {"p_max", "k_min", "k_max", "m_num", "m_num_mid", "hop", "mfft", "fs", "T", "win", "dual_win", "points"}
)
"""What such an object is asked for, which leaves it as it is."""
MAKERS: Final = frozenset(
    {"from_quat", "from_rotvec", "from_mrp", "from_matrix", "from_euler", "concatenate", "align_vectors", "identity"}
)
"""What a class of rotations is asked for; it draws, too."""
ELEMENTS: Final = ("data", "indices", "indptr", "coords", "row", "col", "offsets", "blocksize")
"""What a sparse matrix holds beside its shape: those of them that its format has."""
SINGLE: Final = (bool, int, str, type(None))
"""Of what no two values that are equal are different."""
GETTERS: Final = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def contents(value: Any) -> Hashable | None:
    """What decides the results of an interpolant, a sparse matrix, a frozen distribution or a getter; else None."""
    kind = type(value)
    home = str(kind.__module__)  # no text of one that Cython made
    if kind in GETTERS:
        args, kwargs = given_to(value)
        return key_of([args, sorted(kwargs.items())])
    if home.startswith(ROTATIONS):
        return quaternions(value)
    if home.startswith(HOMES):
        names = names_held(value)
        return key_of([getattr(value, name, None) for name in names]) if names else None
    if home.startswith("scipy.sparse."):
        held = {name: getattr(value, name) for name in ELEMENTS if hasattr(value, name)}
        found = key_of([*held.values()]) if hasattr(value, "shape") and held else None
        return None if found is None else (kind, value.shape, tuple(held), found)
    if home.startswith("scipy.stats.") and hasattr(value, "dist") and hasattr(value, "kwds"):
        found = key_of([value.args, sorted(value.kwds.items())])
        return None if found is None else (type(value.dist), found)
    return None


class Unchanged:
    """A guard: whether an interpolant or a sparse matrix of one class holds what another one holds now.

    It keeps numbers, and no arrays of the user's. It says what `contents` would, several times as fast: arrays are read
    where a property of SciPy's finds them.

    >>> from scipy.interpolate import CubicSpline
    >>> spline = CubicSpline([0.0, 1.0, 2.0], [1.0, 3.0, 2.0])
    >>> unchanged = Unchanged(spline)
    >>> unchanged(spline)
    True
    >>> spline.c[0, 0] += 1.0
    >>> unchanged(spline)
    False
    """

    __slots__ = ("arrays", "constants", "others")

    def __init__(self, value: Any) -> None:
        held = {name: getattr(value, name, None) for name in names_held(value)}
        arrays = {name: part for name, part in held.items() if type(part) is np.ndarray and not part.dtype.hasobject}
        own = {name: f"_{name}" if getattr(value, f"_{name}", None) is held[name] else name for name in arrays}
        constants = {name: part for name, part in held.items() if type(part) in SINGLE}
        self.arrays = [(own[name], part.dtype, part.shape, part.tobytes()) for name, part in arrays.items()]
        self.constants = [(name, type(part), part) for name, part in constants.items()]
        self.others = [(name, key_of(part)) for name, part in held.items() if name not in {*arrays, *constants}]

    def __call__(self, value: Any) -> bool:
        for name, kind, constant in self.constants:
            part = getattr(value, name, None)
            if part is not constant and (type(part) is not kind or part != constant):
                return False
        for name, dtype, shape, numbers in self.arrays:
            part = getattr(value, name, None)
            if type(part) is not np.ndarray or part.shape != shape or part.tobytes() != numbers:
                return False
            if part.dtype is not dtype and part.dtype != dtype:
                return False
        return not self.others or all(key_of(getattr(value, name, None)) == key for name, key in self.others)


class Same:
    """A guard: whether an array of texts, dates or other constants holds what another one holds now.

    >>> labels = np.array(["a", "b"])
    >>> same = Same(labels)
    >>> labels[0] = "c"
    >>> same(labels)
    False
    """

    __slots__ = ("dtype", "items", "key", "kind", "shape")

    def __init__(self, table: Any) -> None:
        self.kind, self.dtype, self.shape = type(table), table.dtype, table.shape
        self.items = table.ravel().tolist() if table.dtype.hasobject else None
        self.key = table.tobytes() if self.items is None else key_of(table)

    def __call__(self, table: Any) -> bool:
        if type(table) is not self.kind or table.shape != self.shape or table.dtype != self.dtype:
            return False
        if self.items is None:
            return bool(table.tobytes() == self.key)
        if all(map(operator.is_, table.ravel().tolist(), self.items)):  # mostly they are the very same
            return True
        return bool(key_of(table) == self.key)


def names_held(value: Any) -> tuple[str, ...]:
    """The attributes that say what an interpolant or a sparse matrix is; none of other objects."""
    kind = type(value)
    home = str(kind.__module__)
    if home.startswith(HOMES) and not home.startswith(ROTATIONS):
        return next((PARTS[base.__name__] for base in kind.__mro__ if base.__name__ in PARTS), ())
    if home.startswith("scipy.sparse."):
        return ("shape", *[name for name in ELEMENTS if hasattr(value, name)])
    return ()


def quaternions(value: Any) -> Hashable | None:
    """Those of a rotation, or of what lies between rotations."""
    kind = type(value).__name__
    if kind == "Slerp":
        return key_of([value.times, value.rotvecs, value.rotations.as_quat()])
    return key_of(value.as_quat()) if kind == "Rotation" else None


def makes_rotations(cls: Any, name: str) -> bool:
    """Whether it is what a class of SciPy's makes rotations by."""
    return isinstance(cls, type) and cls.__module__.startswith(ROTATIONS) and name in MAKERS


def given_to(getter: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a getter was made with."""
    made, args = getter.__reduce__()[:2]
    return ((*made.args, *args), made.keywords) if isinstance(made, functools.partial) else (args, {})


def key_of(part: Any) -> Hashable | None:
    """A key that is equal where no program can tell two such parts apart."""
    if isinstance(part, np.ndarray):
        if not part.dtype.hasobject:
            return (str(part.dtype), part.shape, part.tobytes())
        items = tuple(map(key_of_item, part.ravel().tolist()))
        return None if None in items else (str(part.dtype), part.shape, items)
    if isinstance(part, (list, tuple)):
        keys = tuple(map(key_of, part))
        return None if any(key is None for key in keys) else keys
    return static_key(part, lambda _: False, True)


def key_of_item(item: Any) -> Hashable | None:
    """A key of what an array of objects holds, if nobody can change that; records are tuples."""
    kind = type(item)
    if kind.__name__ in ("NAType", "NaTType"):  # pandas' own words for what is missing
        return kind.__name__
    return static_key(item, lambda _: False, True)
