"""Programs of ``scipy.ndimage`` and ``scipy.signal`` for images between their elements, and for ranks in windows: each
of a vector of six positive numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import ndimage, signal

m = np.random.default_rng(4).normal(size=(5, 6))
PLACES = np.random.default_rng(5).uniform(-7.0, 12.0, size=(2, 12))
HEIGHTS = np.array([[0.1, -0.2, 0.3], [0.2, 0.0, -0.1]])

SPLINES: list[Callable[[Any], Any]] = [
    lambda x: ndimage.map_coordinates(m * x, PLACES),
    lambda x: ndimage.map_coordinates(m * x, PLACES * x[0], order=2, mode="mirror"),
    lambda x: ndimage.map_coordinates(m, [x * 0.9, x * 2.1]),
    lambda x: ndimage.map_coordinates(m * x, PLACES * x[0], order=4, mode="reflect"),
    lambda x: ndimage.map_coordinates(m, PLACES * x[0], order=5, mode="wrap"),
    lambda x: ndimage.map_coordinates(m * x, PLACES * x[0], mode="nearest"),
    lambda x: ndimage.map_coordinates(m * x, PLACES, mode="grid-constant", cval=1.3, prefilter=False),
    lambda x: ndimage.map_coordinates(m * x + 1j * m, PLACES, mode="grid-wrap"),
    lambda x: ndimage.zoom(m * x, 1.7),
    lambda x: ndimage.zoom(m * x, (0.6, 2.0), order=1, mode="nearest", grid_mode=True),
    lambda x: ndimage.zoom(x, 1.0),
    lambda x: ndimage.shift(m * x, x[:2], mode="mirror"),
    lambda x: ndimage.shift(x, x[0], order=2, cval=0.4),
    lambda x: ndimage.shift(np.tile(x, 20), 0.3),
    lambda x: ndimage.rotate(m * x, 25.0),
    lambda x: ndimage.rotate(m, 20.0 * x[0], reshape=False, mode="nearest"),
    lambda x: ndimage.rotate(np.stack([m * x, m]), 25.0, axes=(0, 2), order=1),
    lambda x: ndimage.affine_transform(m * x, np.eye(2) * x[0], offset=x[1:3], mode="wrap"),
    lambda x: ndimage.affine_transform(m * x, x[:2], offset=x[1:3], output_shape=(4, 4)),
    lambda x: ndimage.affine_transform(m, np.array([[0.9, 0.2, 0.3], [-0.1, 1.1, 0.25]]) * x[0]),
    lambda x: ndimage.spline_filter(m * x, 4),
    lambda x: ndimage.spline_filter1d(m * x, 5, axis=0, mode="grid-wrap"),
    lambda x: ndimage.gaussian_filter(m, x[0], radius=4),
    lambda x: ndimage.gaussian_filter1d(m[0], x[1], order=3, radius=4),
    lambda x: ndimage.gaussian_gradient_magnitude(m * x, 1.0, axes=(1,)),
    lambda x: ndimage.gaussian_laplace(m * x, [1.0], axes=(0,)),
    lambda x: ndimage.correlate(m * x, [[1.0, 2.0], [0.5, -1.0], [0.2, 0.1]], axes=(1, 0)),
]
RANKS: list[Callable[[Any], Any]] = [
    lambda x: ndimage.median_filter(m * x, 3),
    lambda x: ndimage.median_filter(m * x, (2, 3), mode="wrap", origin=(0, 1)),
    lambda x: ndimage.median_filter(m * x, footprint=[[0, 1, 0], [1, 1, 1], [0, 1, 1]], mode="constant", cval=0.2),
    lambda x: ndimage.rank_filter(m * x, -2, size=3, axes=(1,)),
    lambda x: ndimage.percentile_filter(m * x, 30, size=(3, 2), mode="mirror"),
    lambda x: ndimage.maximum_filter(m * x, footprint=[[0, 1, 0], [1, 1, 1], [0, 1, 1]]),
    lambda x: ndimage.minimum_filter(m * x, size=4, axes=0),
    lambda x: ndimage.maximum_filter1d(m * x, 4, axis=0, origin=1),
    lambda x: ndimage.grey_erosion(m * x, structure=HEIGHTS),
    lambda x: ndimage.grey_dilation(m * x, structure=HEIGHTS, mode="nearest"),
    lambda x: ndimage.grey_dilation(m * x, size=(2, 3), origin=(0, 1)),
    lambda x: ndimage.grey_opening(m * x, footprint=[[0, 1, 0], [1, 1, 1], [0, 1, 1]]),
    lambda x: ndimage.grey_closing(m * x, size=2),
    lambda x: ndimage.white_tophat(m * x, size=3) + ndimage.black_tophat(m * x, size=2),
    lambda x: ndimage.morphological_gradient(m * x, size=2) * ndimage.morphological_laplace(m * x, size=3),
    lambda x: signal.medfilt(m * x, [3, 5]),
    lambda x: signal.medfilt(x),
    lambda x: signal.order_filter(m * x, [[0, 1, 0], [1, 1, 1], [0, 1, 1]], 2),
]
