"""Interpolation of ``scipy.interpolate`` between scattered points: by radial functions, and by triangles.

Where a place lies among triangles, and which point is next to it, is asked of SciPy when the program runs: it has trees
for that. Everything else are operations on the values and coordinates of the few points that it names.
Importing this module imports SciPy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.interpolate
import scipy.spatial

from srcgrad.errors import ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call, call_rule
from srcgrad.tracing.conversion.convert import convert
from srcgrad.tracing.functions.registry import as_array
from srcgrad.tracing.functions.scipy_distance import cdist, pdist, squareform
from srcgrad.tracing.functions.scipy_interpolate import doubles, of_traced, reals
from srcgrad.tracing.functions.scipy_ode import held
from srcgrad.tracing.hosts import call_back
from srcgrad.tracing.tracer import as_tracer

MOST_AT_ONCE: Final = 1_000_000
"""As many numbers SciPy keeps at once of the radial functions at all places of all points."""


# --- radial functions ------------------------------------------------------------------------------------------------


def thin_plate(squares: Any) -> Any:
    """r**2 log(r): at 0 the slopes are 0 too, and those of slopes are left out, which are infinite."""
    apart = squares > 0.0
    return np.where(apart, 0.5 * squares * np.log(np.where(apart, squares, 1.0)), 0.0)


def root(squares: Any) -> Any:
    """The distance, at 0 without slopes."""
    apart = squares > 0.0
    return np.where(apart, np.sqrt(np.where(apart, squares, 1.0)), 0.0)


KERNELS: Final[dict[str, Callable[[Any], Any]]] = {
    "linear": lambda s: -root(s),
    "thin_plate_spline": thin_plate,
    "cubic": lambda s: s * root(s),
    "quintic": lambda s: -(s**2) * root(s),
    "multiquadric": lambda s: -np.sqrt(s + 1.0),
    "inverse_multiquadric": lambda s: 1.0 / np.sqrt(s + 1.0),
    "inverse_quadratic": lambda s: 1.0 / (s + 1.0),
    "gaussian": lambda s: np.exp(-s),
}
"""The radial functions, of the squares of distances."""
LEAST_DEGREES: Final = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}
SCALE_INVARIANT: Final = ("linear", "thin_plate_spline", "cubic", "quintic")


def monomials(dimension: int, degree: int) -> Any:
    """The exponents of all monomials up to a degree, one row each."""
    chosen = (
        variables
        for total in range(degree + 1)
        for variables in itertools.combinations_with_replacement(range(dimension), total)
    )
    rows = [[variables.count(k) for k in range(dimension)] for variables in chosen]
    return np.array(rows, np.int64).reshape(-1, dimension)


def squares_between(x: Any, y: Any) -> Any:
    """The squares of the distances of all places from all points."""
    total: Any = 0.0
    for k in range(x.shape[1]):
        total = total + (x[:, k, None] - y[None, :, k]) ** 2
    return total


class Radial:
    """A sum of one radial function around each point, and a polynomial."""

    def __init__(
        self, y: Any, d: Any, neighbors: Any = None, smoothing: Any = 0.0, kernel: str = "thin_plate_spline",
        epsilon: Any = None, degree: Any = None,
    ) -> None:  # fmt: skip
        refuse_neighbors(neighbors)
        self.y, values, self.kernel = reals(y), doubles(d), kernel.lower()
        if self.y.ndim != 2 or values.shape[:1] != self.y.shape[:1]:
            raise ShapeError(f"`y` must be 2-dimensional and `d` as long, not {self.y.shape} and {values.shape}")
        if self.kernel not in KERNELS:
            raise UnsupportedError(f"`kernel` must be one of {(*KERNELS,)}, not {kernel!r}")
        if epsilon is None and self.kernel not in SCALE_INVARIANT:
            raise UnsupportedError(f"`epsilon` must be specified if `kernel` is not one of {SCALE_INVARIANT}")
        self.epsilon = 1.0 if epsilon is None else epsilon
        count, dimension = self.y.shape
        least = LEAST_DEGREES.get(self.kernel, -1)
        self.powers = monomials(dimension, max(least, 0) if degree is None else int(degree))
        if len(self.powers) > count:
            raise ShapeError(f"At least {len(self.powers)} data points are required, not {count}")
        self.shape, self.is_complex = values.shape[1:], values.dtype.kind == "c"
        columns = values.reshape(count, -1)
        if self.is_complex:
            columns = np.concatenate([columns.real, columns.imag], axis=1)
        low, high = np.min(self.y, axis=0), np.max(self.y, axis=0)
        half = (high - low) / 2.0
        self.shift, self.scale = (high + low) / 2.0, np.where(half == 0.0, 1.0, half)
        self.coefficients = self.solved(columns, np.broadcast_to(as_array(smoothing), (count,)))

    def solved(self, columns: Any, smoothing: Any) -> Any:
        """The factors with which the sum has the values and no part of it is a polynomial."""
        most = len(self.powers)
        apart = np.sum((self.y[:, None] - self.y[None]) ** 2, axis=-1)
        around = KERNELS[self.kernel](apart * self.epsilon**2) + np.diag(smoothing)
        flat = self.polynomial(self.y)
        rows = [np.concatenate([around, flat], 1), np.concatenate([flat.T, np.zeros((most, most))], 1)]
        right = np.concatenate([columns, np.zeros((most, columns.shape[1]))])
        return np.linalg.solve(np.concatenate(rows), right)

    @classmethod
    def of(cls, fitted: Any) -> Radial:
        """One of SciPy's."""
        refuse_neighbors(fitted.neighbors)
        found = object.__new__(cls)
        found.y, found.kernel, found.epsilon, found.powers = fitted.y, fitted.kernel, fitted.epsilon, fitted.powers
        found.shift, found.scale = fitted._shift, fitted._scale
        found.shape, found.is_complex = tuple(fitted.d_shape), np.dtype(fitted.d_dtype).kind == "c"
        parts = fitted._coeffs
        found.coefficients = np.concatenate([parts[:, ::2], parts[:, 1::2]], 1) if found.is_complex else parts
        return found

    def polynomial(self, x: Any) -> Any:
        """The monomials at some places."""
        return np.prod(((x - self.shift) / self.scale)[:, None, :] ** self.powers, axis=-1)

    def at(self, x: Any) -> Any:
        around = KERNELS[self.kernel](squares_between(x, self.y) * self.epsilon**2)
        count = self.y.shape[0]
        return around @ self.coefficients[:count] + self.polynomial(x) @ self.coefficients[count:]

    def __call__(self, x: Any) -> Any:
        places = reals(x)
        if places.ndim != 2 or places.shape[1] != self.y.shape[1]:
            raise ShapeError(f"`x` must be 2-dimensional with {self.y.shape[1]} columns, not {places.shape}")
        found = in_parts(self.at, places, MOST_AT_ONCE // len(self.coefficients) + 1)
        if self.is_complex:
            half = found.shape[1] // 2
            found = found[:, :half] + 1j * found[:, half:]
        return found.reshape((places.shape[0], *self.shape))


def refuse_neighbors(neighbors: Any) -> None:
    if neighbors is not None:
        raise UnsupportedError(
            "scipy.interpolate.RBFInterpolator with neighbors= has no derivative rule in srcgrad: it jumps where the "
            "neighbours change",
            hint="leave neighbors out",
        )


def in_parts(f: Callable[[Any], Any], x: Any, size: int) -> Any:
    """``f(x)``, of so many rows at a time, what is computed on the way again in the reverse pass."""
    count = x.shape[0]
    if count <= size:
        return f(x)
    from srcgrad.custom import checkpoint

    parts = -(-count // size)
    size = -(-count // parts)
    filled = np.concatenate([x, np.broadcast_to(x[-1:], (parts * size - count, x.shape[1]))])
    found = convert(one_by_one)(checkpoint(f), filled.reshape(parts, size, x.shape[1]))  # type: ignore[arg-type]
    return found.reshape((parts * size, *found.shape[2:]))[:count]


def one_by_one(f: Callable[[Any], Any], parts: Any) -> Any:
    """What a function gives for each of several arrays. Converted before it is called."""
    first = f(parts[0])
    found = np.zeros((len(parts), *first.shape), first.dtype)
    found[0] = first
    for k in range(1, len(parts)):
        found[k] = f(parts[k])
    return found


RBF_NAMES: Final = {
    "inverse": "inverse_multiquadric", "inverse multiquadric": "inverse_multiquadric", "thin-plate": "thin_plate",
}  # fmt: skip
RBF: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "multiquadric": lambda r, epsilon: np.sqrt((r / epsilon) ** 2 + 1.0),
    "inverse_multiquadric": lambda r, epsilon: 1.0 / np.sqrt((r / epsilon) ** 2 + 1.0),
    "gaussian": lambda r, epsilon: np.exp(-((r / epsilon) ** 2)),
    "linear": lambda r, epsilon: r,
    "cubic": lambda r, epsilon: r**3,
    "quintic": lambda r, epsilon: r**5,
    "thin_plate": lambda r, epsilon: thin_plate(r**2),
}
"""The radial functions of `scipy.interpolate.Rbf`."""


class Rbf:
    """A sum of one radial function around each point."""

    def __init__(
        self, *args: Any, function: Any = "multiquadric", epsilon: Any = None, smooth: Any = 0.0,
        norm: Any = "euclidean", mode: str = "1-D", **options: Any,
    ) -> None:  # fmt: skip
        name = function.lower() if isinstance(function, str) else None
        name = RBF_NAMES.get(name, name) if name is not None else None
        if name not in RBF or not isinstance(norm, str) or options or mode not in ("1-D", "N-D"):
            raise UnsupportedError(
                f"scipy.interpolate.Rbf of traced values with {function=}, {norm=}, {mode=} and {(*options,)} has no "
                "derivative rule in srcgrad",
                hint=f"the functions are {', '.join(RBF)}",
            )
        self.function, self.norm = name, norm
        self.xi = np.stack([reals(x).reshape(-1) for x in args[:-1]])
        values = doubles(args[-1])
        self.di = values.reshape(-1) if mode == "1-D" else values
        self.N = self.xi.shape[1]
        if self.di.shape[0] != self.N:
            raise ShapeError("All arrays must be equal length.")
        if epsilon is None:
            edges = np.max(self.xi, axis=1) - np.min(self.xi, axis=1)
            long = edges != 0.0
            epsilon = (np.prod(np.where(long, edges, 1.0)) / self.N) ** (1.0 / np.sum(long))
        self.epsilon, self.smooth = epsilon, smooth
        matrix = RBF[self.function](squareform(pdist(self.xi.T, norm)), epsilon) - np.eye(self.N) * smooth
        self.nodes = np.linalg.solve(matrix, self.di)

    @classmethod
    def of(cls, fitted: Any) -> Rbf:
        """One of SciPy's."""
        if not isinstance(fitted.function, str) or not isinstance(fitted.norm, str):
            raise UnsupportedError("scipy.interpolate.Rbf of a function of one's own has no derivative rule in srcgrad")
        found = object.__new__(cls)
        found.function, found.norm, found.epsilon = fitted.function, fitted.norm, fitted.epsilon
        found.xi, found.di, found.nodes = fitted.xi, fitted.di, fitted.nodes
        return found

    def __call__(self, *args: Any) -> Any:
        parts = [reals(x) for x in args]
        if len({part.shape for part in parts}) != 1 or len(parts) != self.xi.shape[0]:
            raise ShapeError("Array lengths must be equal")
        away = cdist(np.stack([part.reshape(-1) for part in parts], axis=1), self.xi.T, self.norm)
        found = RBF[self.function](away, self.epsilon) @ self.nodes
        return found.reshape(parts[0].shape + self.nodes.shape[1:])


# --- triangles -------------------------------------------------------------------------------------------------------


def coordinates(points: Any, dimension: int | None = None) -> Any:
    """Coordinates along the last axis: of a tuple of arrays, or of an array of places of one coordinate."""
    if isinstance(points, tuple) and len(points) == 1 and np.ndim(points[0]) != 0:
        points = points[0]
    if isinstance(points, tuple):
        return np.stack(np.broadcast_arrays(*map(reals, points)), axis=-1)
    found = reals(points)
    if found.ndim == 1:
        return found[:, None] if dimension in (None, 1) else found.reshape(-1, dimension)
    return found


class Meeting:
    """What is asked of SciPy when the program runs: the corners of the triangle that each place lies in, -1 outside.

    ``known``: the triangles, where they are known.
    """

    def __init__(self, known: Any, rescaled: bool) -> None:
        self.known, self.rescaled = known, rescaled

    def __call__(self, points: Any, places: Any) -> Any:
        shift, scale = scaling(points, self.rescaled)
        triangles = scipy.spatial.Delaunay((points - shift) / scale) if self.known is None else self.known
        found = triangles.find_simplex((places - shift) / scale)
        return np.where((found >= 0)[:, None], triangles.simplices[found], -1).astype(np.int64)


class Nearest:
    """What is asked of SciPy when the program runs: the point next to each place."""

    def __init__(self, known: Any, rescaled: bool) -> None:
        self.known, self.rescaled = known, rescaled

    def __call__(self, points: Any, places: Any) -> Any:
        shift, scale = scaling(points, self.rescaled)
        tree = scipy.spatial.cKDTree((points - shift) / scale) if self.known is None else self.known
        return np.asarray(tree.query((places - shift) / scale)[1], np.int64)


def scaling(points: Any, rescaled: bool) -> tuple[Any, Any]:
    """By what SciPy moves and divides coordinates before it looks for triangles."""
    if not rescaled:
        return 0.0, 1.0
    extent = np.ptp(points, axis=0)
    return np.mean(points, axis=0), np.where(extent > 0.0, extent, 1.0)


class Scattered:
    """An interpolant between scattered points."""

    def __init__(self, points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False) -> None:
        self.known: Any = None
        if isinstance(points, scipy.spatial.Delaunay):
            if rescale:
                raise UnsupportedError("Rescaling is not supported when passing a Delaunay triangulation")
            self.points, self.known = points.points, points
        else:
            self.points = coordinates(points)
        self.values, self.fill_value, self.rescale = doubles(values), fill_value, rescale
        if self.points.ndim != 2 or self.values.shape[:1] != self.points.shape[:1]:
            raise ShapeError(f"as many values as points are needed, not {self.values.shape} and {self.points.shape}")

    def asked(self, site: Callable[..., Any], x: Any, columns: int) -> Any:
        like = np.zeros((x.shape[0], columns) if columns else x.shape[0], np.int64)
        return call_back(site, [held(as_tracer(self.points)), held(as_tracer(x))], like, "a search among points")

    def __call__(self, *args: Any) -> Any:
        dimension = self.points.shape[1]
        x = coordinates(args if len(args) > 1 else args[0], dimension)
        if x.shape[-1] != dimension:
            raise ShapeError(f"number of dimensions in xi does not match x: {x.shape[-1]} and {dimension}")
        flat = x.reshape(-1, dimension)
        found = self.at(flat) if flat.shape[0] else np.zeros((0, *self.values.shape[1:]), self.values.dtype)
        return found.reshape(x.shape[:-1] + self.values.shape[1:])

    def at(self, x: Any) -> Any:
        raise NotImplementedError


class Linear(Scattered):
    """Linear in each triangle."""

    @classmethod
    def of(cls, fitted: Any) -> Linear:
        """One of SciPy's."""
        found = cls(fitted.tri.points, fitted.values.reshape(-1, *fitted.values_shape), fitted.fill_value)
        found.points = fitted.points if fitted.scale is None else fitted.points * fitted.scale + fitted.offset
        found.known = fitted.tri
        found.rescale = fitted.scale is not None
        return found

    def at(self, x: Any) -> Any:
        corners = self.asked(Meeting(self.known, self.rescale), x, x.shape[1] + 1)
        inside = (corners[:, 0] >= 0).reshape((-1,) + (1,) * (self.values.ndim - 1))
        corners = np.maximum(corners, 0)
        at = as_tracer(self.points)[corners]
        edges = np.moveaxis(at[:, 1:] - at[:, :1], 1, 2)
        away = np.where(inside.reshape(-1, 1), x - at[:, 0], 0.0)
        edges = np.where(inside.reshape(-1, 1, 1), edges, np.eye(x.shape[1]))
        shares = np.linalg.solve(edges, away[..., None])
        shares = shares.reshape(shares.shape[:2] + (1,) * (self.values.ndim - 1))
        values = as_tracer(self.values)[corners]
        found = values[:, 0] + np.sum(shares * (values[:, 1:] - values[:, :1]), axis=1)
        return np.where(inside, found, self.fill_value)


class Next(Scattered):
    """The value of the point that is next."""

    def __init__(self, x: Any, y: Any, rescale: bool = False, tree_options: Any = None) -> None:
        if tree_options:
            raise UnsupportedError("scipy.interpolate.NearestNDInterpolator with tree_options= takes known values")
        super().__init__(x, y, np.nan, rescale)

    @classmethod
    def of(cls, fitted: Any) -> Next:
        """One of SciPy's."""
        points = fitted.points if fitted.scale is None else fitted.points * fitted.scale + fitted.offset
        found = cls(points, fitted.values, fitted.scale is not None)
        found.known = fitted.tree
        return found

    def at(self, x: Any) -> Any:
        return as_tracer(self.values)[self.asked(Nearest(self.known, self.rescale), x, 0)]


def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan, rescale: bool = False
) -> Any:
    found = coordinates(points)
    if found.shape[-1] == 1 and found.ndim == 2 and method in ("nearest", "linear", "cubic"):
        flat = found.reshape(-1)
        order = np.argsort(flat)
        fill = "extrapolate" if method == "nearest" else fill_value
        return call(
            scipy.interpolate.interp1d, flat[order], as_array(values)[order], kind=method, axis=0, bounds_error=False,
            fill_value=fill,
        )(xi[0] if isinstance(xi, tuple) else xi)  # fmt: skip
    if method == "nearest":
        return Next(points, values, rescale)(xi)
    if method == "linear":
        return Linear(points, values, fill_value, rescale)(xi)
    raise UnsupportedError(
        f"scipy.interpolate.griddata with {method=} of {found.shape[-1]} coordinates has no derivative rule in srcgrad",
        hint="method='linear', or scipy.interpolate.RBFInterpolator",
    )


MADE: Final[dict[Any, Any]] = {
    scipy.interpolate.RBFInterpolator: Radial,
    scipy.interpolate.Rbf: Rbf,
    scipy.interpolate.LinearNDInterpolator: Linear,
    scipy.interpolate.NearestNDInterpolator: Next,
    scipy.interpolate.griddata: griddata,
}
for _original, _made in MADE.items():
    call_rule(_original)(of_traced(_original, _made))
