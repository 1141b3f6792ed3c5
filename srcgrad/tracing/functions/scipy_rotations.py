"""Rotations of space: ``scipy.spatial.transform.Rotation`` and ``Slerp``, by unit quaternions (x, y, z, w).

What divides by the angle of a rotation is a series in its square where that is small, so that all derivatives are
finite at the identity. Sources: J. Diebel, Representing attitude: Euler angles, unit quaternions and rotation vectors
(2006); E. Bernardes and S. Viollet, Quaternion to Euler angles conversion: a direct, general and computationally
efficient method (PLOS ONE 17, 2022). Importing this module imports SciPy.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import scipy.spatial.transform

from srcgrad.errors import ArgumentError, ShapeError, UnsupportedError
from srcgrad.tracing.conversion.calls import call_rule, traced_among
from srcgrad.tracing.functions.registry import as_array
from srcgrad.tracing.functions.scipy_interpolate import reals, require
from srcgrad.tracing.pytree import register_pytree_node

PLAIN: Final[Any] = scipy.spatial.transform.Rotation
NEAR: Final = 1e-2
"""The squares, or ratios of squares, below which a series is summed."""
HALF_SINE: Final = [(-1) ** k / (math.factorial(2 * k + 1) * 2.0 ** (2 * k + 1)) for k in range(6)]
"""sin(a/2)/a in powers of a**2."""
HALF_COSINE: Final = [(-1) ** k / (math.factorial(2 * k) * 4.0**k) for k in range(7)]
ARCTANGENT: Final = [(-1) ** k / (2 * k + 1) for k in range(10)]
"""arctan(t)/t in powers of t**2."""
LOCKED: Final = 1e-7
"""How near to 0 or pi the second of three Euler angles says nothing of the others but their sum or difference."""


def series(coefficients: Sequence[float], t: Any) -> Any:
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = coefficient + t * total
    return total


def of_square(coefficients: Sequence[float], t: Any, function: Callable[[Any], Any]) -> Any:
    """A function of the root of t, as the series where t is small."""
    near = t < NEAR
    return np.where(near, series(coefficients, t), function(np.sqrt(np.where(near, 1.0, t))))


def vectors(x: Any, size: int, name: str) -> Any:
    found = reals(x)
    if not found.ndim or found.shape[-1] != size:
        raise ShapeError(f"{name} must have a shape (..., {size}), not {found.shape}")
    return found


def normalised(quat: Any) -> Any:
    square = np.sum(quat * quat, axis=-1, keepdims=True)
    require(square > 0, "Found zero norm quaternions in `quat`.")
    return quat / np.sqrt(square)


def first_positive(quat: Any) -> Any:
    """The one of the two quaternions of a rotation whose last number that is not 0, w first, is positive."""
    x, y, z, w = (quat[..., k] for k in range(4))
    signs = np.where(w != 0, w, np.where(x != 0, x, np.where(y != 0, y, z)))
    return np.where((signs < 0)[..., None], -quat, quat)


def product(p: Any, q: Any) -> Any:
    """The quaternion of q first, then p."""
    vector = p[..., 3:] * q[..., :3] + q[..., 3:] * p[..., :3] + np.cross(p[..., :3], q[..., :3])
    scalar = p[..., 3:] * q[..., 3:] - np.sum(p[..., :3] * q[..., :3], axis=-1, keepdims=True)
    return np.concatenate([vector, scalar], axis=-1)


def of_rotvec(rotvec: Any) -> Any:
    square = np.sum(rotvec * rotvec, axis=-1, keepdims=True)
    sine = of_square(HALF_SINE, square, lambda angle: np.sin(angle / 2) / angle)
    return np.concatenate([rotvec * sine, of_square(HALF_COSINE, square, lambda angle: np.cos(angle / 2))], axis=-1)


def axes_of(seq: str, counts: Iterable[int]) -> tuple[list[int], bool]:
    """The numbers of the axes, and whether they are the body's own.

    Raises:
        ArgumentError: they are none.
    """
    if len(seq) not in counts or not re.fullmatch("[xyz]+|[XYZ]+", seq):
        raise ArgumentError(f"expected up to 3 axes of 'xyz' or of 'XYZ', not {seq!r}")
    if any(one == other for one, other in itertools.pairwise(seq)):
        raise ArgumentError(f"consecutive axes must be different, not {seq!r}")
    return ["xyz".index(axis) for axis in seq.lower()], seq.isupper()


class TracedRotation:
    """A rotation, or an array of them, of traced quaternions that have length 1."""

    def __init__(self, quat: Any) -> None:
        self.quat = quat

    @classmethod
    def of(cls, rotation: Any) -> TracedRotation:
        """What stands for SciPy's own."""
        return rotation if isinstance(rotation, TracedRotation) else cls(as_array(rotation.as_quat()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(PLAIN, name):
            raise AttributeError(f"'Rotation' object has no attribute {name!r}")
        raise UnsupportedError(f"scipy.spatial.transform.Rotation.{name} has no derivative rule in srcgrad")

    @property
    def single(self) -> bool:
        return bool(self.quat.ndim == 1)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.quat.shape[:-1])

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        if self.single:
            raise UnsupportedError("a single rotation has no len()")
        return int(self.quat.shape[0])

    def __iter__(self) -> Iterator[TracedRotation]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> TracedRotation:
        if self.single:
            raise UnsupportedError("a single rotation is not subscriptable")
        return TracedRotation(self.quat[index])

    # --- representations -------------------------------------------------------------------------------
    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        quat = first_positive(self.quat) if canonical else self.quat
        return np.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_matrix(self) -> Any:
        x, y, z, w = (self.quat[..., k] for k in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)

    def as_rotvec(self, degrees: bool = False) -> Any:
        quat = first_positive(self.quat)
        w, square = quat[..., 3:], np.sum(quat[..., :3] ** 2, axis=-1, keepdims=True)
        near = square < NEAR * w * w
        ratio = np.where(near, square, 0.0) / np.where(near, w * w, 1.0)
        length = np.sqrt(np.where(near, 1.0, square))
        slow = 2 * series(ARCTANGENT, ratio) / np.where(near, w, 1.0)
        scale = np.where(near, slow, 2 * np.arctan2(length, w) / length)
        return quat[..., :3] * (scale * (180 / np.pi) if degrees else scale)

    def as_mrp(self) -> Any:
        quat = np.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False, **options: Any) -> Any:
        axes, intrinsic = axes_of(seq, (3,))
        i, j, k = axes[::-1] if intrinsic else axes
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = float((i - j) * (j - k) * (k - i) // 2)
        parts = [self.quat[..., m] for m in range(4)]
        a, b, c, d = parts[3], parts[i], parts[j], sign * parts[k]
        if not symmetric:
            a, b, c, d = a - c, b + d, c + a, d - b
        half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
        second = 2 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
        small, large = np.abs(second) <= LOCKED, np.abs(second - np.pi) <= LOCKED
        locked = small | large
        alone = np.where(small, 2 * half_sum, 2 * half_difference * (1.0 if intrinsic else -1.0))
        outer = np.where(locked, 0.0 if intrinsic else alone, half_sum - half_difference)
        inner = np.where(locked, alone if intrinsic else 0.0, half_sum + half_difference)
        if not symmetric:
            inner, second = inner * sign, second - np.pi / 2
        order = [inner, second, outer] if intrinsic else [outer, second, inner]
        angles = np.stack(order, axis=-1)
        angles = angles - 2 * np.pi * np.floor((angles + np.pi) / (2 * np.pi))
        return angles * (180 / np.pi) if degrees else angles

    # --- operations ------------------------------------------------------------------------------------
    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        places = reals(vectors)
        if not places.ndim or places.shape[-1] != 3:
            raise ShapeError(f"vectors must have a shape (..., 3), not {places.shape}")
        matrix = self.as_matrix()
        matrix = np.swapaxes(matrix, -1, -2) if inverse else matrix
        return np.einsum("...jk,...k->...j", matrix, places)

    def inv(self) -> TracedRotation:
        return TracedRotation(self.quat * np.array([-1.0, -1.0, -1.0, 1.0]))

    def magnitude(self) -> Any:
        length = np.sqrt(np.sum(self.quat[..., :3] ** 2, axis=-1))
        return 2 * np.arctan2(length, np.abs(self.quat[..., 3]))

    def approx_equal(self, other: Any, atol: Any = None, degrees: bool = False) -> Any:
        limit = 1e-8 if atol is None else np.deg2rad(atol) if degrees else atol
        return (TracedRotation.of(other) * self.inv()).magnitude() < limit

    def mean(self, weights: Any = None) -> TracedRotation:
        """The eigenvector of the largest eigenvalue of the sum of the quaternions' squares."""
        quat = self.quat.reshape(-1, 4)
        weighted = quat if weights is None else quat * reals(weights).reshape(-1, 1)
        return TracedRotation(np.linalg.eigh(quat.T @ weighted)[1][:, -1])

    def __mul__(self, other: Any) -> TracedRotation:
        if not isinstance(other, (TracedRotation, PLAIN)):
            return NotImplemented
        return TracedRotation(normalised(product(self.quat, TracedRotation.of(other).quat)))

    def __rmul__(self, other: Any) -> TracedRotation:
        if not isinstance(other, PLAIN):
            return NotImplemented
        return TracedRotation.of(other) * self

    def __pow__(self, n: Any, modulus: Any = None) -> TracedRotation:
        if modulus is not None:
            raise UnsupportedError("powers of rotations have no modulus")
        return TracedRotation(of_rotvec(n * self.as_rotvec()))


def rebuilt(_: Any, parts: tuple[Any, ...]) -> Any:
    """SciPy's own, of numbers."""
    (quat,) = parts
    return PLAIN(quat) if isinstance(quat, np.ndarray) else TracedRotation(quat)


register_pytree_node(TracedRotation, lambda turned: ((turned.quat,), None), rebuilt)


# --- what makes them ---------------------------------------------------------------------------------------------


def from_quat(quat: Any, *, scalar_first: bool = False) -> TracedRotation:
    found = vectors(quat, 4, "quat")
    return TracedRotation(normalised(np.roll(found, -1, axis=-1) if scalar_first else found))


def rotation(quat: Any, normalize: bool = True, copy: bool = True, scalar_first: bool = False) -> TracedRotation:
    if normalize:
        return from_quat(quat, scalar_first=scalar_first)
    found = vectors(quat, 4, "quat")
    return TracedRotation(np.roll(found, -1, axis=-1) if scalar_first else found)


def from_rotvec(rotvec: Any, degrees: bool = False) -> TracedRotation:
    found = vectors(rotvec, 3, "rotvec")
    return TracedRotation(of_rotvec(found * (np.pi / 180) if degrees else found))


def from_mrp(mrp: Any) -> TracedRotation:
    found = vectors(mrp, 3, "mrp")
    square = np.sum(found * found, axis=-1, keepdims=True)
    return TracedRotation(np.concatenate([2 * found, 1 - square], axis=-1) / (1 + square))


def from_matrix(matrix: Any, *, assume_valid: bool = False) -> TracedRotation:
    """Of the nearest orthogonal matrix; of one that is orthogonal its derivatives are those of that."""
    found = reals(matrix)
    if found.shape[-2:] != (3, 3):
        raise ShapeError(f"matrix must have a shape (..., 3, 3), not {found.shape}")
    if not assume_valid:
        require(np.linalg.det(found) > 0, "Non-positive determinant (left-handed or null coordinate frame)")
        u, _, vt = np.linalg.svd(found, full_matrices=False)
        found = u @ vt
    return of_orthogonal(found)


def of_orthogonal(matrix: Any) -> TracedRotation:
    """By the largest of the four numbers, so that nothing cancels: twice its product with the quaternion."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = [[matrix[..., i, j] for j in range(3)] for i in range(3)]
    trace = xx + yy + zz
    rows = [
        [1 - trace + 2 * xx, yx + xy, zx + xz, zy - yz],
        [yx + xy, 1 - trace + 2 * yy, zy + yz, xz - zx],
        [zx + xz, zy + yz, 1 - trace + 2 * zz, yx - xy],
        [zy - yz, xz - zx, yx - xy, 1 + trace],
    ]
    choice = np.argmax(np.stack([xx, yy, zz, trace], axis=-1), axis=-1)
    quat = np.stack(rows[3], axis=-1)
    for k in range(3):
        quat = np.where((choice == k)[..., None], np.stack(rows[k], axis=-1), quat)
    return TracedRotation(normalised(quat))


def from_euler(seq: str, angles: Any, degrees: bool = False) -> TracedRotation:
    axes, intrinsic = axes_of(seq, (1, 2, 3))
    found = np.atleast_1d(reals(angles)) if np.ndim(angles) == 0 else reals(angles)
    if found.shape[-1] != len(axes):
        raise ShapeError(f"the last axis of angles must have the length {len(axes)}, not {found.shape[-1]}")
    half = found * (np.pi / 360) if degrees else found / 2
    total: Any = None
    for k, axis in enumerate(axes):
        sine, cosine = np.sin(half[..., k]), np.cos(half[..., k])
        quat = np.stack([sine if m == axis else 0.0 * sine for m in range(3)] + [cosine], axis=-1)
        total = quat if total is None else product(total, quat) if intrinsic else product(quat, total)
    return TracedRotation(total)


def concatenate(rotations: Any) -> TracedRotation:
    if isinstance(rotations, (TracedRotation, PLAIN)):
        return TracedRotation.of(rotations)
    parts = [TracedRotation.of(each).quat for each in rotations]
    return TracedRotation(np.concatenate([part[None] if part.ndim == 1 else part for part in parts]))


def align_vectors(a: Any, b: Any, weights: Any = None, return_sensitivity: bool = False) -> tuple[TracedRotation, Any]:
    """The rotation for which the weighted sum of |a - R b|**2 is least (Kabsch), and the root of that."""
    one, other = vectors(a, 3, "a"), vectors(b, 3, "b")
    if one.ndim != 2 or one.shape != other.shape or one.shape[0] < 2 or return_sensitivity:
        raise UnsupportedError("Rotation.align_vectors of traced values takes two vectors or more, and no sensitivity")
    shares = np.ones(one.shape[0]) if weights is None else reals(weights)
    u, s, vh = np.linalg.svd((shares[:, None] * one).T @ other)
    last = np.array([1.0, 1.0, -1.0])
    mirrored = np.linalg.det(u @ vh) < 0
    u, s = np.where(mirrored, u * last, u), np.where(mirrored, s * last, s)
    rest = np.sum(shares * np.sum(one * one + other * other, axis=1)) - 2 * np.sum(s)
    return of_orthogonal(u @ vh), np.sqrt(np.maximum(rest, 0.0))


class Interpolated:
    """``Slerp``: between two rotations at a steady rate about one axis."""

    def __init__(self, times: Any, rotations: Any) -> None:
        turned = TracedRotation.of(rotations)
        self.times, self.rotations = reals(times), turned[:-1]
        if turned.single or self.times.shape != (len(turned),):
            raise ShapeError("Slerp takes as many times as rotations, at least two")
        self.rotvecs = (turned[:-1].inv() * turned[1:]).as_rotvec()

    @classmethod
    def of(cls, slerp: Any) -> Interpolated:
        last = slerp.rotations[-1] * PLAIN.from_rotvec(slerp.rotvecs[-1])
        return cls(slerp.times, PLAIN.concatenate([slerp.rotations, last]))

    def __call__(self, times: Any) -> TracedRotation:
        places = reals(times)
        nodes, flat = self.times, places.reshape(-1)
        require((flat >= nodes[0]) & (flat <= nodes[-1]), "Interpolation times must be within the range of the nodes")
        index = np.maximum(np.searchsorted(nodes, flat) - 1, 0)
        share = (flat - nodes[index]) / (nodes[index + 1] - nodes[index])
        found = self.rotations[index] * TracedRotation(of_rotvec(self.rotvecs[index] * share[:, None]))
        return found[0] if not places.ndim else found


# --- what stands for SciPy's ---------------------------------------------------------------------------------------


def is_traced(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    given = [*args, *kwargs.values()]
    inner = [part for each in given if isinstance(each, (list, tuple)) for part in each]
    return traced_among(args, kwargs) or any(isinstance(each, (TracedRotation, Interpolated)) for each in given + inner)


def stands_for(original: Any, made: Callable[..., Any]) -> None:
    def rule(*args: Any, **kwargs: Any) -> Any:
        return (made if is_traced(args, kwargs) else original)(*args, **kwargs)

    call_rule(original)(rule)


def of_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a rotation of SciPy's, or of a Slerp, that is given traced values."""
    owner = method.__self__
    kind: Any = TracedRotation if isinstance(owner, PLAIN) else Interpolated
    known = isinstance(owner, (PLAIN, scipy.spatial.transform.Slerp))
    found = getattr(kind.of(owner), method.__name__, None) if known else None
    if found is None:
        name = f"{type(owner).__name__}.{method.__name__}"
        raise UnsupportedError(f"scipy.spatial.transform.{name} has no derivative rule in srcgrad")
    return found(*args, **kwargs)


stands_for(PLAIN, rotation)
stands_for(scipy.spatial.transform.Slerp, Interpolated)
for _made in (from_quat, from_rotvec, from_mrp, from_matrix, from_euler, concatenate, align_vectors):
    stands_for(getattr(PLAIN, _made.__name__), _made)
