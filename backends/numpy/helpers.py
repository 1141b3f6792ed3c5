"""Functions that generated programs call, where an op's meaning takes more than an expression.

A generated module holds the source text of those it calls: each is a plain, self-contained function that uses its
arguments, builtins, ``np``, ``scipy`` (written out, ``scipy.special.gammaln``; imported inside the function) and other
functions of this file. An op names the ones that its text calls in its class attribute ``helpers``.

A function with a parameter ``reuse`` returns its first argument, updated, with that argument's buffer if ``reuse`` is
true and a copy otherwise. The backend adds ``reuse=True`` to a call where the old value is owned by the program and
never read again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcgrad.backends.numpy.beta_helpers import (  # noqa: F401  programs find all helpers here
    beta_density,
    beta_log_cumulants,
    beta_log_moment,
    beta_logarithm,
    beta_tail_derivative,
    betainc_derivative,
    student_slope,
)
from srcgrad.backends.numpy.eigen_helpers import eigenvectors_by  # noqa: F401
from srcgrad.backends.numpy.profile_helpers import (  # noqa: F401
    carlson_integral,
    elliptic_incomplete_derivative,
    faddeeva_series,
    hyperu_integral,
    mathieu_function,
    noncentral_density,
    voigt_derivative,
    wofz_derivative,
)
from srcgrad.backends.numpy.special_helpers import (  # noqa: F401
    bessel_order_derivative,
    boxcox_derivative,
    complex_polygamma,
    complex_slope_of_cotangent,
    dawsn_derivative,
    digamma,
    digamma_difference,
    elliptic_derivative,
    erfcx_derivative,
    exponential_integral,
    exprel_derivative,
    fresnel_phase,
    gamma_density,
    gamma_log_moments,
    gammainc_derivative,
    gaussian_derivative,
    log1p_ratio,
    log_ratio,
    polygamma,
    rgamma_derivative,
    scaled_bessel_derivative,
    second_bessel,
    slope_of_cotangent,
)
from srcgrad.backends.numpy.zeta_helpers import zeta_derivative  # noqa: F401


def slice_set(array: Any, part: Any, region: Any, reuse: bool = False) -> Any:
    """``array`` with the slice ``region`` replaced by ``part``."""
    array = array if reuse else np.array(array)
    array[region] = part
    return array


def scatter_add(array: Any, part: Any, indices: tuple[Any, ...], axis: int, reuse: bool = False) -> Any:
    """``array`` with ``part`` added at index arrays for the axes from ``axis`` on; equal indices add up."""
    array = array if reuse else np.array(array)
    place = (slice(None),) * axis + indices
    if all(np.ndim(index) == 0 for index in indices):  # one place, which takes no search for equal ones
        array[place] += part
    else:
        np.add.at(array, place, part)
    return array


def scatter_set(array: Any, part: Any, indices: tuple[Any, ...], axis: int, reuse: bool = False) -> Any:
    """``array`` with ``part`` written at index arrays for the axes from ``axis`` on; of equal indices the last wins."""
    array = array if reuse else np.array(array)
    array[(slice(None),) * axis + indices] = part
    return array


def triangular_solve(a: Any, b: Any, lower: bool, trans: Any, unit: bool) -> Any:
    """Solve op(a) x = b for one triangle of each matrix in ``a``; op is none (N), .T (T) or .conj().T (C)."""
    import scipy.linalg

    zeros = np.argwhere(np.diagonal(a, axis1=-2, axis2=-1) == 0)
    if b.size and not unit and zeros.size:
        raise np.linalg.LinAlgError(f"singular matrix: resolution failed at diagonal {zeros[0][-1]}")
    # BLAS itself: threads of LAPACK's trtrs can cost thousands of times what a small system does.
    trsm: Any = scipy.linalg.get_blas_funcs("trsm", (a, b))
    code = "NTC".index(trans)
    x = np.empty_like(b)
    for example in np.ndindex(b.shape[:-2] if b.size else (0,)):
        x[example] = trsm(1, a[example], b[example], lower=lower, trans_a=code, diag=unit)
    return x


def banded_solve(bands: Any, right: Any, below: int, above: int, definite: bool, strict: bool) -> Any:
    """Solve A x = right for each banded matrix A; where it is singular, or not ``definite``, an error or nan."""
    import scipy.linalg

    def solved(bands: Any, right: Any) -> Any:
        """The solution, and LAPACK's status."""
        tridiagonal = below == above == 1 and bands.shape[-1] > 1
        if definite and tridiagonal and bands.dtype.kind != "c":
            return routines("ptsv")(bands[1], bands[0, 1:], right)[2:]
        if definite:
            return routines("pbsv")(bands, right)[1:]
        if tridiagonal:
            return routines("gtsv")(bands[2, :-1], bands[1], bands[0, 1:], right)[3:]
        room = np.concatenate([np.zeros((below, bands.shape[-1]), bands.dtype), bands])
        return routines("gbsv")(below, above, room, right)[2:]

    def routines(name: str) -> Any:
        return scipy.linalg.get_lapack_funcs(name, (bands, right))

    found = np.empty_like(right)
    for example in np.ndindex(right.shape[:-2] if right.size else (0,)):
        solution, status = solved(bands[example], right[example])
        if status and strict:
            kind = f"{status}th leading minor not positive definite" if definite else "singular matrix"
            raise np.linalg.LinAlgError(kind)
        found[example] = np.nan if status else solution
    return found


def sparse_solve(elements: Any, right: Any, rows: Any, columns: Any) -> Any:
    """Solve A x = right for each matrix A with these elements at these places; nan where it is singular."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    found = np.full_like(right, np.nan)
    size = right.shape[-2]
    for example in np.ndindex(right.shape[:-2] if right.size else (0,)):
        matrix = coo_array((elements[example], (rows, columns)), shape=(size, size)).tocsc()
        try:
            found[example] = splu(matrix).solve(right[example])
        except RuntimeError:  # which says that it is singular
            continue
    return found


def check(predicate: Any, message: str, kind: str) -> None:
    """Raise the error named ``kind`` unless every element of ``predicate`` is true."""
    import importlib

    if not (predicate if type(predicate) is np.bool_ else np.all(predicate)):  # np.all takes three times as long
        module = {"LinAlgError": "numpy.linalg", "StatisticsError": "statistics"}.get(kind, "builtins")
        raise getattr(importlib.import_module(module), kind)(message)


def is_indefinite(a: Any) -> Any:
    """For each matrix of a stack, whether it has no Cholesky factor."""

    def fails(matrices: Any) -> bool:
        try:
            np.linalg.cholesky(matrices)
        except np.linalg.LinAlgError:
            return True
        return False

    found = np.zeros(a.shape[:-2], np.bool_)
    if fails(a):
        for place in np.ndindex(found.shape):
            found[place] = fails(a[place])
    return found[()]


def host_call(sites: Any, site: int, operands: tuple[Any, ...], types: tuple[tuple[str, tuple[int, ...]], ...]) -> Any:
    """Call ``sites[site]``; its results must have the dtypes and shapes of ``types``."""
    found = sites[site](*operands)
    results = (found,) if len(types) == 1 else () if found is None else found
    arrays = [np.asarray(result) for result in results]
    actual = tuple([(array.dtype.name, array.shape) for array in arrays])
    if actual != types:
        raise TypeError(f"host call {site} returned {actual}, not {types}")
    return arrays[0][()] if len(types) == 1 else tuple([array[()] for array in arrays])


def filled_tape(element: Any) -> Any:
    """A tape with the same element at every index: it fits every length, and is as short as any."""

    known = vars(filled_tape)
    if "kind" not in known:  # a class is made once: it costs as much as twenty calls

        class Filled:
            fills = True

            def __init__(self, element: Any) -> None:
                self.element = element

            def __len__(self) -> int:
                return 0

            def __getitem__(self, index: Any) -> Any:
                return self.element

        known["kind"] = Filled
    return known["kind"](element)


def tape_length(*tapes: Any) -> Any:
    """The length of tapes of one length; -1 if each of them is a `filled_tape` or, as a literal, one element."""
    from collections.abc import Sequence

    return np.int64(max([len(tape) for tape in tapes if isinstance(tape, Sequence)], default=-1))


def copied_tape(tape: Any) -> Any:
    """A tape whose elements are its own."""
    if not isinstance(tape, list):
        return tape if isinstance(tape, np.generic) or not hasattr(tape, "copy") else tape.copy()
    return [copied_tape(element) for element in tape]


def make_complex(real: Any, imag: Any, dtype: Any) -> Any:
    """The complex numbers of two parts. (In ``real + 1j * imag`` an infinite part would make the other one nan.)"""
    result = np.empty(np.broadcast(real, imag).shape, dtype)
    result.real = real
    result.imag = imag
    return result[()]


def pow_log(x: Any, y: Any, n: int) -> Any:
    """x**y * log(x)**n; where x is 0 or infinite and the power is 0, the power wins."""
    power = np.power(x, y)
    logarithm = np.log(x)
    exponent = np.real(y)
    vanishes = ((x == 0) & (exponent > 0)) | (np.isinf(x) & (exponent < 0))
    return np.where(vanishes, 0, power * (logarithm if n == 1 else logarithm**n))[()]


def sinc_derivative(x: Any, n: int) -> Any:
    """The n-th derivative of sin(pi x)/(pi x), n >= 1.

    With f(u) = sin(u)/u, u f⁽ⁿ⁾ = sin⁽ⁿ⁾(u) - n f⁽ⁿ⁻¹⁾. That recurrence divides by u; near 0 the Taylor series of f⁽ⁿ⁾
    is summed instead: the sum over 2k >= n of (-1)ᵏ uᵐ / ((2k + 1) m!), m = 2k - n. The two meet where their errors do.
    """
    dtype = np.asarray(x).dtype
    u = np.pi * np.asarray(x, np.promote_types(dtype, np.float64))
    near = np.abs(u) < 1 + n / 4
    small, large = np.where(near, u, 0), np.where(near, np.inf, u)
    m = n % 2
    k = (n + m) // 2
    power = small**m
    series = np.zeros_like(small)
    for _ in range(20 + n):
        series = series + (-1.0) ** k / (2 * k + 1) * power
        power = power * small * small / ((m + 1) * (m + 2))
        k, m = k + 1, m + 2
    sine, cosine = np.sin(large), np.cos(large)
    derivatives = (sine, cosine, -sine, -cosine)
    closed = sine / large
    for order in range(1, n + 1):
        closed = (derivatives[order % 4] - order * closed) / large
    return (np.where(near, series, closed) * np.pi**n).astype(dtype)[()]


def argpartition(x: Any, kth: int, axis: int) -> Any:
    """Where what is less than the element of rank ``kth`` is, then its equals, then the rest; each in its order."""
    pivot = np.take(np.partition(x, kth, axis=axis), [kth], axis=axis)
    nan, last = x != x, pivot != pivot
    equal = (x == pivot) | (nan & last)
    side = np.where(equal, 1, np.where((x < pivot) | last, 0, 2))
    return np.argsort(side.astype(np.int8), axis=axis, kind="stable")


def add_along_axis(updates: Any, indices: Any, axis: int, size: int) -> Any:
    """Zeros to which ``updates`` are added at ``indices`` along ``axis``; of booleans, the disjunction."""
    shape = list(indices.shape)
    shape[axis] = size
    result = np.zeros(shape, updates.dtype)
    places = list(np.ogrid[tuple(slice(length) for length in indices.shape)])
    places[axis] = indices
    np.add.at(result, tuple(places), updates)
    return result


def inverse_or_nan(a: Any) -> Any:
    """The inverse of each matrix, nan for one that is singular."""
    singular = (np.linalg.slogdet(a)[0] == 0)[..., None, None]
    inverse = np.linalg.inv(np.where(singular, np.eye(a.shape[-1], dtype=a.dtype), a))
    return np.where(singular, a.dtype.type(np.nan), inverse)


def slogdet_gradient(a: Any) -> Any:
    """The transposed inverse of each matrix; of a singular one, the cofactors divided by 0."""
    singular = np.asarray(np.linalg.slogdet(a)[0] == 0)
    regular = np.where(singular[..., None, None], np.eye(a.shape[-1], dtype=a.dtype), a)
    gradient = np.swapaxes(np.linalg.inv(regular), -1, -2)
    if singular.any():
        gradient[singular] = det_derivative(a[singular]) / a.dtype.type(0)
    return gradient


def det_derivative(a: Any, *directions: Any) -> Any:
    """The array C with sum(C * h) the derivative of det at ``a`` in the directions given and h; without division.

    Up to three rows, by minors. Else with a = u s vh the directions are written in the bases of u and v, where det is a
    sum over permutations, and in a product of singular values those of the rows that the directions take are left out.
    """
    size, order = a.shape[-1], len(directions) + 1
    if order > size or not a.size:
        return np.zeros_like(a)
    if size == 1:
        return np.ones_like(a)
    if size <= 3:
        cofactors = minors(*([a] * (size - order)), *directions)
        return cofactors / a.dtype.type(2) if size == 3 and order == 1 else cofactors
    finite = np.isfinite(a).all(axis=(-2, -1))[..., None, None]
    u, s, vh = np.linalg.svd(np.where(finite, a, a.dtype.type(0)))
    rotated = [np.swapaxes(u.conj(), -1, -2) @ h @ np.swapaxes(vh.conj(), -1, -2) for h in directions]
    core = mixed_discriminant(leave_out_products(s, order), rotated).astype(a.dtype)
    phase = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return np.where(finite, phase * (u.conj() @ core @ vh.conj()), a.dtype.type(np.nan))


def minors(*factors: Any) -> Any:
    """The cofactors of a matrix of two rows; of three rows, their double as a symmetric function of two factors."""
    if len(factors) == 1:
        (x,) = factors
        return np.stack([np.stack([x[..., 1, 1], -x[..., 1, 0]], -1), np.stack([-x[..., 0, 1], x[..., 0, 0]], -1)], -2)
    x, y = factors
    pairs = [(k - 2, k - 1) for k in range(3)]
    return np.stack([np.cross(x[..., i, :], y[..., j, :]) + np.cross(y[..., i, :], x[..., j, :]) for i, j in pairs], -2)


def leave_out_products(s: Any, order: int) -> Any:
    """For each ``order`` distinct indices, the product of the elements of ``s`` at all others; 0 if two are equal."""
    size = s.shape[-1]
    between = np.zeros((*s.shape[:-1], size + 1, size + 1), s.dtype)
    for start in range(size + 1):
        between[..., start, start] = 1
        between[..., start, start + 1 :] = np.cumprod(s[..., start:], axis=-1)
    left_out = np.sort(np.indices((size,) * order), axis=0)
    products = between[..., 0, left_out[0]]
    for k in range(1, order):
        products = products * between[..., left_out[k - 1] + 1, left_out[k]]
    return products * between[..., left_out[-1] + 1, size]


def mixed_discriminant(products: Any, directions: Any) -> Any:
    """The array C for which sum(C * h) is a sum over all permutations p of rows r, and all rows.

    Its terms are sign(p) times ``products[r0, r1, …]`` times the elements of the directions, and last of h, in row r
    and column p(r).
    """
    import itertools

    order = len(directions) + 1
    rows = "abcdefghijklmnopqrstuvwxyz"[:order]
    size = products.shape[-1]
    total = np.zeros((*products.shape[: products.ndim - order], size, size), np.result_type(products, *directions))
    diagonal = np.arange(size)
    for permutation in itertools.permutations(range(order)):
        pairs = itertools.combinations(permutation, 2)
        sign = (-1) ** sum(first > second for first, second in pairs)
        columns = [rows[k] for k in permutation]
        inputs = [f"...{row}{column}" for row, column in zip(rows, columns[:-1], strict=False)]
        is_diagonal = columns[-1] == rows[-1]
        output = rows[-1] if is_diagonal else rows[-1] + columns[-1]
        term = sign * np.einsum(f"{','.join([f'...{rows}', *inputs])}->...{output}", products, *directions)
        if is_diagonal:
            total[..., diagonal, diagonal] += term
        else:
            total += term
    return total


def complex_eig(matrix: Any) -> Any:
    """Eigenvalues and eigenvectors, complex whatever their imaginary parts are."""
    dtype = np.result_type(matrix.dtype, np.complex64)
    values, vectors = np.linalg.eig(matrix)
    return values.astype(dtype), vectors.astype(dtype)


def complex_eigvals(matrix: Any) -> Any:
    """Eigenvalues, complex whatever their imaginary parts are."""
    return np.linalg.eigvals(matrix).astype(np.result_type(matrix.dtype, np.complex64))


def lu_factor(a: Any) -> Any:
    """The factors of each matrix, L below the diagonal and U on and above it, and the rows exchanged, in order."""
    import scipy.linalg

    getrf: Any = scipy.linalg.get_lapack_funcs("getrf", (a,))
    packed = np.empty_like(a)
    pivots = np.empty((*a.shape[:-2], min(a.shape[-2:])), np.int32)
    for example in np.ndindex(a.shape[:-2] if a.size else (0,)):
        packed[example], pivots[example], _ = getrf(a[example])
    return packed, pivots


def permutation_of_pivots(pivots: Any, size: int) -> Any:
    """0, 1, … ``size`` - 1 after the exchanges of element i with element ``pivots[i]``."""
    order = np.broadcast_to(np.arange(size), (*pivots.shape[:-1], size)).copy()
    for example in np.ndindex(pivots.shape[:-1]):
        for here, there in enumerate(pivots[example]):
            row = order[example]
            row[[here, there]] = row[[there, here]]
    return order


def convolve(x: Any, y: Any, starts: tuple[int, ...], sizes: tuple[int, ...]) -> Any:
    """The window of the full convolution over the last axes that begins at ``starts`` and has ``sizes``.

    The longer operand is cut and padded to what the window reads, so that the cost is the window's times the shorter
    operand's size. Examples (the first axes) are convolved one by one, or element by element of the shorter operand.
    """
    if x.dtype.kind == "b":
        return convolve(x.astype(np.int64), y.astype(np.int64), starts, sizes) > 0
    rank = len(starts)
    lengths, others = x.shape[-rank:], y.shape[-rank:]
    if np.prod(others) > np.prod(lengths):
        x, y, lengths, others = y, x, others, lengths
    examples = x.shape[:-rank]
    result: Any = np.zeros((*examples, *sizes), x.dtype)
    padded: Any = np.zeros((*examples, *(size + m - 1 for size, m in zip(sizes, others, strict=True))), x.dtype)
    target, taken = [], []
    for start, size, n, m in zip(starts, sizes, lengths, others, strict=True):
        first, last = max(start - m + 1, 0), min(start + size, n)
        if first >= last or not size:
            return result
        taken.append(slice(first, last))
        target.append(slice(first - start + m - 1, last - start + m - 1))
    padded[(..., *target)] = x[(..., *taken)]
    if np.prod(examples, dtype=int) > np.prod(others):
        for place in np.ndindex(*others):
            window = (slice(m - 1 - k, m - 1 - k + size) for k, m, size in zip(place, others, sizes, strict=True))
            result += padded[(..., *window)] * y[(..., *place)][(..., *[None] * rank)]
        return result
    for example in np.ndindex(*examples):
        if rank == 1:
            result[example] = np.convolve(padded[example], y[example], "valid")
        else:
            import scipy.signal

            result[example] = scipy.signal.convolve(padded[example], y[example], "valid", "direct")
    return result


def searchsorted(nodes: Any, values: Any, side: Any = "left") -> Any:
    """``np.searchsorted`` for each example along the axes of ``nodes`` before the last one."""
    result = np.empty(values.shape, np.int64)
    for example in np.ndindex(*nodes.shape[:-1]):
        result[example] = np.searchsorted(nodes[example], values[example], side)
    return result


def restarting_cumsum(values: Any, restart: Any, axis: int, reverse: bool, join: Any = np.add) -> Any:
    """Cumulative sums along ``axis`` that start anew where ``restart`` is true; of booleans, the disjunction.
    Of another ufunc ``join``, what it makes of the same elements.

    Doubling (Blelloch 1990): what ends at an element is joined with what ends 1, 2, 4, … elements before it, unless it
    has started since. It takes as many rounds as the logarithm of the longest sum has bits.
    """
    total = np.moveaxis(np.array(values), axis, -1)
    started = np.moveaxis(np.array(restart), axis, -1)
    if reverse:  # from the end a sum starts at the element before a mark
        total = total[..., ::-1]
        started = np.concatenate([started[..., :1] | True, started[..., :0:-1]], axis=-1)
    distance = 1
    while distance < total.shape[-1] and not started[..., distance:].all():
        joined = ~started[..., distance:]
        before = total[..., :-distance].copy()
        join(total[..., distance:], before, out=total[..., distance:], where=joined)
        started = np.concatenate([started[..., :distance], started[..., distance:] | started[..., :-distance]], axis=-1)
        distance *= 2
    result = np.moveaxis(total[..., ::-1] if reverse else total, -1, axis)
    return np.ascontiguousarray(result)


def linear_recurrence(values: Any, factors: Any, axis: int, reverse: bool) -> Any:
    """y[k] = x[k] + a[k] y[k - 1] along ``axis``, or x[k] + a[k + 1] y[k + 1], in the order of the elements."""
    y, a = np.moveaxis(np.array(values), axis, 0), np.moveaxis(np.asarray(factors), axis, 0)
    if reverse:
        y, a = y[::-1], np.roll(a[::-1], 1, axis=0)
    with np.errstate(all="ignore"):
        if y.ndim == 1 and y.dtype == np.float64:  # Python's numbers are the same ones, and quicker one by one
            carried, numbers = 0.0, list[float]()
            for number, factor in zip(y.tolist(), a.tolist(), strict=True):
                carried = number + factor * carried if numbers else number
                numbers.append(carried)
            y[...] = numbers
        else:
            for k in range(1, len(y)):
                y[k] += a[k] * y[k - 1]
    result = np.moveaxis(y[::-1] if reverse else y, 0, axis)
    return np.ascontiguousarray(result)


def least_squares(a: Any, b: Any, rcond: float) -> Any:
    """The solution of least norm of the least squares problem of each matrix."""
    x = np.zeros((*a.shape[:-2], a.shape[-1], b.shape[-1]), b.dtype)
    for example in np.ndindex(a.shape[:-2] if a.size and b.size else (0,)):
        x[example] = np.linalg.lstsq(a[example], b[example], rcond=rcond)[0]
    return x


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The matrices x with a x + x b = q (Bartels and Stewart 1972); nan where a and -b share an eigenvalue."""
    import scipy.linalg

    x = np.empty_like(q)
    trsyl: Any = scipy.linalg.get_lapack_funcs("trsyl", (a, b))
    for example in np.ndindex(q.shape[:-2] if q.size else (0,)):
        r, u = scipy.linalg.schur(a[example], check_finite=False)
        s, v = scipy.linalg.schur(b[example], check_finite=False)
        inner, scale, singular = trsyl(r, s, u.conj().T @ q[example] @ v)
        x[example] = np.nan if singular else u @ (inner / scale) @ v.conj().T
    return x


def matrix_function(a: Any, kind: str, exponent: float) -> Any:
    """The exponential, principal logarithm, square root or power of each matrix, real for a real one."""
    import scipy.linalg

    if kind == "exp":
        return scipy.linalg.expm(a).astype(a.dtype, copy=False)
    functions: dict[str, Any] = {
        "log": scipy.linalg.logm,
        "sqrt": scipy.linalg.sqrtm,
        "power": lambda x: scipy.linalg.fractional_matrix_power(x, exponent),
    }
    result = np.empty_like(a)
    for example in np.ndindex(a.shape[:-2] if a.size else (0,)):
        found = functions[kind](a[example])
        if np.iscomplexobj(found) and a.dtype.kind == "f":
            require_principal(a[example], kind)
            found = found.real
        result[example] = found
    return result


def require_principal(a: Any, kind: str) -> None:
    """LinAlgError if the real matrix has an eigenvalue below 0, in which the principal function is complex."""
    eigenvalues = np.linalg.eigvals(a)
    rounding = a.shape[-1] * np.finfo(a.dtype).eps * np.abs(eigenvalues).max()
    if ((eigenvalues.imag == 0) & (eigenvalues.real < -rounding)).any():
        raise np.linalg.LinAlgError(
            f"the {kind} of a real matrix with a negative eigenvalue is complex: pass a complex matrix, x + 0j"
        )


def matrix_function_derivative(a: Any, h: Any, kind: str, exponent: float) -> Any:
    """The derivative of the function of each matrix in the direction ``h``, from the function of [[a, h], [0, a]].

    It is linear in ``h``, which is scaled to the size of ``a``. That of the exponential has a method of its own, which
    squares no block (A. H. Al-Mohy and N. J. Higham 2009).
    """
    import scipy.linalg

    size = a.shape[-1]
    if not a.size:
        return np.zeros_like(a)
    sizes = [np.abs(x).max(axis=(-2, -1), keepdims=True) for x in (a, h)]
    if kind == "exp":
        result, wide = np.full_like(a, np.nan), np.result_type(a, np.float64)
        for example in np.ndindex(a.shape[:-2]):
            norms = [float(x[example].item()) for x in sizes]
            if np.isfinite(norms).all():
                scale = 2.0 ** np.frexp(norms[1])[1] if norms[1] < 2.0**1000 else 2.0**1000
                operands = (a[example].astype(wide), h[example].astype(wide) / scale)
                found: Any = scipy.linalg.expm_frechet(*operands, compute_expm=False, check_finite=False)
                result[example] = found * scale
        return result
    scale = np.where((sizes[0] > 0) & (sizes[1] > 0), sizes[1] / sizes[0], 1).astype(a.dtype)
    blocks = np.zeros((*a.shape[:-2], 2 * size, 2 * size), a.dtype)
    blocks[..., :size, :size] = blocks[..., size:, size:] = a
    blocks[..., :size, size:] = h / scale
    return matrix_function(blocks, kind, exponent)[..., :size, size:] * scale
