"""Splines of basis functions: ``scipy.interpolate.BSpline``, what evaluates one, and what finds its coefficients.

Importing this module imports SciPy.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.interpolate

from srcgrad.errors import ArgumentError, ShapeError, UnsupportedError
from srcgrad.ir.opdef import REGISTRY
from srcgrad.tracing.conversion.calls import call_rule, traced_among
from srcgrad.tracing.functions.registry import as_array, axis_of
from srcgrad.tracing.functions.scipy_interpolate import (
    Grid,
    Line,
    Piecewise,
    cubic_spline,
    doubles,
    of_traced,
    prepared,
    reals,
    require,
)
from srcgrad.tracing.functions.scipy_polynomials import Barycentric, Newton
from srcgrad.tracing.functions.scipy_scattered import Linear, Next, Radial, Rbf
from srcgrad.tracing.functions.scipy_sparse import Sparse, solution
from srcgrad.tracing.functions.scipy_structured import solveh_banded
from srcgrad.tracing.functions.sorting import searchsorted
from srcgrad.tracing.trace import current_trace
from srcgrad.tracing.tracer import Tracer, contains_tracer, from_value

interpolate: Any = scipy.interpolate
MOST_PIECEWISE: Final = 5
"""The highest degree of splines that SciPy makes piecewise polynomials of: beyond, its code reads other memory."""
OUTSIDE: Final = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3, "boundary": 3}
"""What FITPACK does outside of the knots, by the names that its classes take."""


def apart(x: Tracer) -> Tracer:
    """A value that no compiler joins with what it is made of.

    XLA makes one loop of long chains of elementwise operations and of their derivatives, by a recursion that ends the
    process where the chain is longer than its stack: bases of degree 5 were.
    """
    (found,) = current_trace().builder.emit_operation(REGISTRY["barrier"], [x.read()]).results
    return from_value(found)


class Basis:
    """A spline of basis functions, evaluated by de Boor's recurrence."""

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.t, self.k, self.extrapolate = reals(t), int(k), extrapolate
        values = doubles(c)
        self.axis = axis_of(axis, values.ndim)
        size = self.t.shape[0] - self.k - 1
        if self.t.ndim != 1 or size < self.k + 1 or values.shape[self.axis] < size:
            raise ShapeError("Knots, coefficients and degree are inconsistent.")
        self.c = np.moveaxis(values, self.axis, 0)[:size]

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if nu:
            return self.derivative(nu)(x, 0, extrapolate)
        places, t, k, size = reals(x), self.t, self.k, self.c.shape[0]
        shape, flat = places.shape, places.reshape(-1)
        if extrapolate == "periodic":
            flat = t[k] + (flat - t[k]) % (t[size] - t[k])
        column = (-1,) + (1,) * (self.c.ndim - 1)
        i = np.clip(searchsorted(t, flat, "right") - 1, k, size - 1)
        parts = [self.c[i - k + j] for j in range(k + 1)]
        for r in range(1, k + 1):
            for j in range(k, r - 1, -1):
                low, high = t[i + j - k], t[i + j + 1 - r]
                share = ((flat - low) / (high - low)).reshape(column)
                parts[j] = (1.0 - share) * parts[j - 1] + share * parts[j]
            if r % 3 == 0 and r < k:
                parts = [apart(part) for part in parts]
        found = parts[k]
        if not extrapolate:
            found = np.where(((flat >= t[k]) & (flat <= t[size])).reshape(column), found, np.nan)
        found = found.reshape(shape + found.shape[1:])
        order, rank = list(range(found.ndim)), len(shape)
        return found.transpose(order[rank : rank + self.axis] + order[:rank] + order[rank + self.axis :])

    def derivative(self, nu: int = 1) -> Basis:
        """Differences of the coefficients, over those of the knots."""
        t, c, k = self.t, self.c, self.k
        for _ in range(nu):
            if k == 0:
                c = np.zeros_like(c)
                continue
            apart = t[k + 1 : -1] - t[1 : -k - 1]
            safe = np.where(apart == 0.0, 1.0, apart).reshape((-1,) + (1,) * (c.ndim - 1))
            gaps = (apart == 0.0).reshape(safe.shape)
            c = np.where(gaps, 0.0, k * (c[1:] - c[:-1]) / safe)
            t, k = t[1:-1], k - 1
        return Basis(t, np.moveaxis(c, 0, self.axis), k, self.extrapolate, self.axis)

    def antiderivative(self) -> Basis:
        """The one that is 0 at the first knot."""
        t, c, k = self.t, self.c, self.k
        width = ((t[k + 1 :] - t[: -k - 1]) / (k + 1.0)).reshape((-1,) + (1,) * (c.ndim - 1))
        sums = np.cumsum(c * width, axis=0)
        c = np.concatenate([np.zeros_like(sums[:1]), sums])
        t = np.concatenate([t[:1], t, t[-1:]])
        return Basis(t, np.moveaxis(c, 0, self.axis), k + 1, self.extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        whole = self.antiderivative()
        return whole(b, 0, extrapolate) - whole(a, 0, extrapolate)


# --- of FITPACK ------------------------------------------------------------------------------------------------------


def values_of(basis: Basis, x: Any, nu: int = 0, ext: int = 0) -> Any:
    """With FITPACK's ways outside of the knots: the last polynomial, zeros, an error, or the value at the edge."""
    places = reals(x)
    low, high = basis.t[basis.k], basis.t[basis.t.shape[0] - basis.k - 1]
    inside = (places >= low) & (places <= high)
    if ext == 2:
        require(inside, "Found x value not in the domain")
    if ext == 3:
        places = np.clip(places, low, high)
    found = basis(places, nu, True)
    return np.where(inside, found, 0.0) if ext == 1 else found


def parts_of(tck: Any) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree."""
    return (tck.t, tck.c, tck.k) if isinstance(tck, (Basis, scipy.interpolate.BSpline)) else tuple(tck)


@call_rule(scipy.interpolate.splev)
def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    t, c, k = parts_of(tck)
    if not (contains_tracer(x) or traced_among((t, c), {})):
        return interpolate.splev(x, tck, der, ext)
    if not 0 <= der <= k:
        raise ArgumentError(f"0<=der={der}<=k={k} must hold")
    if ext not in (0, 1, 2, 3):
        raise ArgumentError(f"ext = {ext} not in (0, 1, 2, 3)")
    if isinstance(c, (list, tuple)) or as_array(c).ndim > 1:  # the coordinates of a curve
        return [values_of(Basis(t, part, k), x, der, ext) for part in c]
    return values_of(Basis(t, c, k), x, der, ext)


@call_rule(scipy.interpolate.splint)
def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """Outside of the knots the spline is 0."""
    t, c, k = parts_of(tck)
    if full_output or not (contains_tracer([a, b]) or traced_among((t, c), {})):
        return interpolate.splint(a, b, tck, full_output)
    basis = Basis(t, c, k)
    low, high = basis.t[k], basis.t[basis.t.shape[0] - k - 1]
    return basis.integrate(np.clip(reals(a), low, high), np.clip(reals(b), low, high))


@call_rule(scipy.interpolate.splder)
def splder(tck: Any, n: int = 1) -> Any:
    t, c, k = parts_of(tck)
    if not traced_among((t, c), {}):
        return interpolate.splder(tck, n)
    if n < 0:
        return splantider(tck, -n)
    if n > k:
        raise ShapeError(f"Order of derivative (n = {n!r}) must be <= order of spline (k = {tck[2]!r})")
    found = Basis(t, c, k).derivative(n)
    if isinstance(tck, Basis):
        return found
    return found.t, np.concatenate([found.c, np.zeros((found.k + 1, *found.c.shape[1:]))]), found.k


@call_rule(scipy.interpolate.splantider)
def splantider(tck: Any, n: int = 1) -> Any:
    t, c, k = parts_of(tck)
    if not traced_among((t, c), {}):
        return interpolate.splantider(tck, n)
    if n < 0:
        return splder(tck, -n)
    found = Basis(t, c, k)
    for _ in range(n):
        found = found.antiderivative()
    if isinstance(tck, Basis):
        return found
    ends = found.c[-1:]
    return found.t, np.concatenate([found.c, *[ends] * (found.k + 1)]), found.k


@call_rule(scipy.interpolate.splrep)
def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0, s: Any = None,
    t: Any = None, full_output: int = 0, per: int = 0, quiet: int = 1,
) -> Any:  # fmt: skip
    """Of splines that go through all values."""
    if not traced_among((x, y, w), {}):
        return interpolate.splrep(x, y, w, xb, xe, k, task, s, t, full_output, per, quiet)
    edges = xb is not None or xe is not None
    if edges or task or per or full_output or not (s == 0 or (s is None and w is None)):
        raise UnsupportedError(
            "scipy.interpolate.splrep that smooths, or with task=, t=, per=, xb= or xe=, has no derivative rule in "
            "srcgrad",
            hint="s=0, or make_lsq_spline with knots of your own",
        )
    found = through(reals(x), doubles(y), k)
    return found.t, np.concatenate([found.c, np.zeros(k + 1)]), k


# --- coefficients ----------------------------------------------------------------------------------------------------


def through(x: Any, y: Any, k: int, t: Any = None) -> Basis:
    """The spline of odd or even degree through all values, with SciPy's own knots if none are given (not-a-knot).

    SciPy's knots are between the nodes by their order alone, so that traced nodes have known intervals.
    """
    if t is None:
        ranks = np.arange(float(x.shape[0]))
        require(x[1:] > x[:-1], "the nodes of a spline must increase")
        t, at = not_a_knot(x, k), intervals(ranks, not_a_knot(ranks, k), k)
    else:
        t = reals(t)
        at = intervals(x, t, k)
    values = y.reshape(y.shape[0], -1)
    return Basis(t, solution(design(x, t, k, at), values).reshape(y.shape), k)


def not_a_knot(x: Any, k: int) -> Any:
    """SciPy's knots: the nodes, or of an even degree what is halfway, without the outermost; and the ends."""
    inner = x[(k + 1) // 2 : -(k + 1) // 2] if k % 2 else ((x[1:] + x[:-1]) / 2.0)[k // 2 : -(k // 2)]
    return np.concatenate([x[:1]] * (k + 1) + [inner] + [x[-1:]] * (k + 1))


def intervals(x: Any, t: Any, k: int) -> Any:
    """The knot that is before each place, as numbers: of traced ones it is a question of the program."""
    found = np.clip(searchsorted(t, x, "right") - 1, k, t.shape[0] - k - 2)
    return np.asarray(found.concrete("the place of a node among the knots") if isinstance(found, Tracer) else found)


def design(x: Any, t: Any, k: int, at: Any) -> Sparse:
    """The values of the basis functions at some places, which lie behind the knots ``at``: k + 1 in each row.

    By the recurrence of Cox and de Boor, from degree 0 upwards: those of degree r that are not 0 begin r knots earlier.
    """
    values = [np.ones_like(x)]
    for r in range(1, k + 1):
        parts = [part / (t[at + j + 1] - t[at + j + 1 - r]) for j, part in enumerate(values)]
        falling = [(t[at + j + 1] - x) * part for j, part in enumerate(parts)]
        rising = [(x - t[at + j + 1 - r]) * part for j, part in enumerate(parts)]
        between = [low + high for low, high in zip(rising[:-1], falling[1:], strict=True)]
        values = [falling[0], *between, rising[-1]]
    rows, columns = np.repeat(np.arange(len(at)), k + 1), (at[:, None] - k + np.arange(k + 1)).reshape(-1)
    return Sparse(np.stack(values, axis=1).reshape(-1), rows, columns, (len(at), t.shape[0] - k - 1), False)


@call_rule(scipy.interpolate.make_lsq_spline)
def make_lsq_spline(
    x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, check_finite: bool = True, *,
    method: str = "qr",
) -> Any:  # fmt: skip
    """By the normal equations."""
    if not traced_among((x, y, t, w), {}):
        return interpolate.make_lsq_spline(x, y, t, k, w, axis, check_finite, method=method)
    places, knots = reals(x), reals(t)
    values = doubles(y)
    axis = axis_of(axis, values.ndim)
    values = np.moveaxis(values, axis, 0)
    matrix = design(places, knots, k, intervals(places, knots, k))
    weighed = matrix if w is None else matrix.like(matrix.data * (as_array(w) ** 2)[matrix.rows])
    right = weighed.T @ values.reshape(values.shape[0], -1)
    found = solution(weighed.T @ matrix, right).reshape((-1, *values.shape[1:]))
    return Basis(knots, np.moveaxis(found, 0, axis), k, True, axis)


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> Any:
    """Of degree 3 and 1 piecewise polynomials between the nodes, which may be traced; of others between knots."""
    plain = bc_type is None or isinstance(bc_type, str)
    if k == 3 and t is None and plain:
        return cubic_spline(x, y, axis, "not-a-knot" if bc_type is None else bc_type)
    if bc_type is not None and bc_type != "not-a-knot":
        raise UnsupportedError(
            f"scipy.interpolate.make_interp_spline of degree {k} with {bc_type=} is not supported on traced arrays",
            hint="leave bc_type out, or k=3",
        )
    nodes, h, values, axis = prepared(x, y, axis)
    if k == 1 and t is None:
        return Piecewise(np.stack([np.diff(values, axis=0) / h, values[:-1]]), nodes, True, axis)
    found = through(nodes, values, k, t)
    return Basis(found.t, np.moveaxis(found.c, 0, axis), k, True, axis)


def interpolated(
    x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0, check_finite: bool = False
) -> Any:
    """`scipy.interpolate.InterpolatedUnivariateSpline` of traced values."""
    if any(edge is not None for edge in bbox):
        raise UnsupportedError("scipy.interpolate.InterpolatedUnivariateSpline with bbox= has no derivative rule")
    return Fitted(through(reals(x), doubles(y), k), ext)


class Fitted:
    """A spline of FITPACK's."""

    def __init__(self, basis: Basis, ext: Any) -> None:
        self.basis, self.ext = basis, OUTSIDE.get(ext, ext)

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        return values_of(self.basis, x, nu, self.ext if ext is None else OUTSIDE.get(ext, ext))

    def derivative(self, n: int = 1) -> Fitted:
        return Fitted(self.basis.derivative(n), self.ext)

    def integral(self, a: Any, b: Any) -> Any:
        return splint(a, b, self.basis)


def make_smoothing_spline(x: Any, y: Any, w: Any = None, lam: Any = None, *, axis: int = 0) -> Any:
    """The natural spline of Reinsch's equations: second derivatives first, then by them how far it is from the values.

    Reinsch, Smoothing by spline functions, Numerische Mathematik 10 (1967).
    """
    if lam is None:
        raise UnsupportedError(
            "scipy.interpolate.make_smoothing_spline of traced values needs lam, which else is found by a search",
            hint="pass lam",
        )
    nodes, _, values, axis = prepared(x, y, axis)
    count, rest = nodes.shape[0], (-1,) + (1,) * (values.ndim - 1)
    if count < 5:
        raise ShapeError("``x`` and ``y`` length must be at least 5")
    require(nodes[1:] > nodes[:-1], "``x`` should be an ascending array")
    require(as_array(lam) >= 0.0, "Regularization parameter should be non-negative")
    share = np.ones(count) if w is None else 1.0 / reals(w)
    require(share > 0.0, "Invalid vector of weights")
    h = nodes[1:] - nodes[:-1]
    a, c = 1.0 / h[:-1], 1.0 / h[1:]
    b = -(a + c)
    middle = (h[:-1] + h[1:]) / 3.0 + lam * (a**2 * share[:-2] + b**2 * share[1:-1] + c**2 * share[2:])
    beside = h[1:-1] / 6.0 + lam * (b[:-1] * a[1:] * share[1:-2] + c[:-1] * b[1:] * share[2:-1])
    beyond = lam * c[:-2] * a[2:] * share[2:-2]
    bands = np.stack([np.concatenate([np.zeros(2), beyond]), np.concatenate([np.zeros(1), beside]), middle])
    a, b, c = a.reshape(rest), b.reshape(rest), c.reshape(rest)
    right = a * values[:-2] + b * values[1:-1] + c * values[2:]
    bends = solveh_banded(bands, right.reshape(count - 2, -1)).reshape(right.shape)
    ends = [(0, 0)] * (values.ndim - 1)
    pulls = np.pad(a * bends, [(0, 2), *ends]) + np.pad(b * bends, [(1, 1), *ends]) + np.pad(c * bends, [(2, 0), *ends])
    found = values - lam * share.reshape(rest) * pulls
    return cubic_spline(nodes, np.moveaxis(found, 0, axis), axis, "natural")


MADE: Final[dict[Any, Any]] = {
    scipy.interpolate.BSpline: Basis,
    scipy.interpolate.make_smoothing_spline: make_smoothing_spline,
    scipy.interpolate.make_interp_spline: make_interp_spline,
    scipy.interpolate.InterpolatedUnivariateSpline: interpolated,
}

# --- of two coordinates ----------------------------------------------------------------------------------------------


def basis_functions(t: Any, k: int, x: Any, nu: int = 0) -> Any:
    """All functions of a basis at some places, one row each."""
    return Basis(t, np.eye(t.shape[0] - k - 1), k)(x, nu)


class Rectangle:
    """A spline of SciPy's on a rectangle, outside of which it is what it is at the edge."""

    def __init__(self, tx: Any, ty: Any, c: Any, kx: int, ky: int) -> None:
        self.tx, self.ty, self.c, self.kx, self.ky = tx, ty, c, kx, ky

    @classmethod
    def of(cls, spline: Any) -> Rectangle:
        """One of SciPy's."""
        (tx, ty, c), (kx, ky) = spline.tck, spline.degrees
        return cls(tx, ty, np.asarray(c).reshape(len(tx) - kx - 1, len(ty) - ky - 1), kx, ky)

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        across = np.clip(reals(x), self.tx[self.kx], self.tx[-self.kx - 1])
        along = np.clip(reals(y), self.ty[self.ky], self.ty[-self.ky - 1])
        if not grid:
            across, along = np.broadcast_arrays(across, along)
        rows, columns = basis_functions(self.tx, self.kx, across, dx), basis_functions(self.ty, self.ky, along, dy)
        if grid:
            return np.atleast_2d(rows) @ self.c @ np.transpose(np.atleast_2d(columns))
        return np.sum((rows @ self.c) * columns, axis=-1)

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        return self(xi, yi, dx, dy, False)


@call_rule(scipy.interpolate.bisplev)
def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Any:
    tx, ty, c, kx, ky = tck
    if not traced_among((x, y, tx, ty, c), {}):
        return interpolate.bisplev(x, y, tck, dx, dy)
    for name, order, degree in (("x", dx, kx), ("y", dy, ky)):
        if not 0 <= order < degree:
            raise ArgumentError(f"0 <= d{name} = {order} < k{name} = {degree} must hold")
    across, along = np.atleast_1d(reals(x)), np.atleast_1d(reals(y))
    if across.ndim != 1 or along.ndim != 1:
        raise ShapeError("the first two arguments of bisplev must be vectors")
    for places in (across, along):
        require(places[1:] >= places[:-1], "Invalid input data")
    tx, ty = reals(tx), reals(ty)
    table = reals(c).reshape(tx.shape[0] - kx - 1, ty.shape[0] - ky - 1)
    found = Rectangle(tx, ty, table, kx, ky)(across, along, dx, dy)
    if len(found) > 1:
        return found
    return found[0] if found.shape[1] > 1 else found[0][0]


def rectangle(
    x: Any, y: Any, z: Any, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3, s: Any = 0, maxit: int = 20
) -> Rectangle:
    """The one that goes through all values: along one coordinate the coefficients are interpolated along the other."""
    if s != 0 or any(edge is not None for edge in bbox):
        raise UnsupportedError(
            "scipy.interpolate.RectBivariateSpline of traced values with s= or bbox= has no derivative rule in srcgrad",
            hint="leave them out",
        )
    across, along, values = reals(x).reshape(-1), reals(y).reshape(-1), reals(z)
    if values.shape != (across.shape[0], along.shape[0]):
        raise ShapeError(f"z must have as many rows and columns as x and y have elements, not {values.shape}")
    rows = through(across, values, kx)
    columns = through(along, np.transpose(rows.c), ky)
    return Rectangle(rows.t, columns.t, np.transpose(columns.c), kx, ky)


MADE[scipy.interpolate.RectBivariateSpline] = rectangle
for _original, _made in MADE.items():
    call_rule(_original)(of_traced(_original, _made))

# --- interpolants of SciPy's at traced places ------------------------------------------------------------------------

OWN: Final[dict[Any, Any]] = {
    scipy.interpolate.RBFInterpolator: Radial.of,
    scipy.interpolate.Rbf: Rbf.of,
    scipy.interpolate.LinearNDInterpolator: Linear.of,
    scipy.interpolate.NearestNDInterpolator: Next.of,
    scipy.interpolate.KroghInterpolator: Newton.of,
    scipy.interpolate.BarycentricInterpolator: Barycentric.of,
}
"""What stands for the interpolants of other modules."""


def own(interpolant: Any) -> Any:
    """What stands for an interpolant of SciPy's.

    Raises:
        UnsupportedError: it is none of the kinds that are known here.
    """
    of: Any = interpolant
    for kind, made in OWN.items():
        if isinstance(interpolant, kind):
            return made(interpolant)
    if isinstance(interpolant, scipy.interpolate.BSpline):
        if of.k > MOST_PIECEWISE:
            return Basis(of.t, of.c, of.k, of.extrapolate, of.axis)
        whole = scipy.interpolate.PPoly.from_spline(of)
        return Piecewise(whole.c, whole.x, of.extrapolate, of.axis)
    if isinstance(interpolant, scipy.interpolate.PPoly):
        return Piecewise(of.c, of.x, of.extrapolate, of.axis)
    if isinstance(interpolant, scipy.interpolate.RegularGridInterpolator):
        return Grid(of.grid, of.values, of.method, of.bounds_error, of.fill_value)
    if isinstance(interpolant, scipy.interpolate.UnivariateSpline):
        return Fitted(Basis(*of._eval_args), of.ext)
    if isinstance(interpolant, scipy.interpolate.interp1d) and of._kind != "spline":
        return Line(of.x, of.y, of._kind, of.axis, True, of.bounds_error, of.fill_value, True)
    if isinstance(interpolant, scipy.interpolate.BivariateSpline):
        return Rectangle.of(interpolant)
    raise UnsupportedError(
        f"scipy.interpolate.{type(interpolant).__name__} has no derivative rule in srcgrad",
        hint="there are CubicSpline, PchipInterpolator, Akima1DInterpolator, BSpline, UnivariateSpline, PPoly, "
        "interp1d, RegularGridInterpolator and RectBivariateSpline",
    )


def of_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an interpolant of SciPy's, or of a method of it, that is given traced values."""
    found = getattr(own(method.__self__), method.__name__, None)
    if found is None:
        kind = type(method.__self__).__name__
        raise UnsupportedError(f"scipy.interpolate.{kind}.{method.__name__} has no derivative rule in srcgrad")
    return found(*args, **kwargs)
