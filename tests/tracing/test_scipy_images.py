"""What ``scipy.ndimage`` says of images beyond their edges, for every order of splines, and the errors of its rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, signal

import srcgrad as sg

IMAGE = np.random.default_rng(0).normal(size=(6, 7))
PLACES = np.random.default_rng(1).uniform(-20.0, 25.0, size=(2, 80))
MODES = ("constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror", "wrap", "grid-wrap")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(6, 7), (1, 3), (150, 2)])
def test_splines_beyond_the_edges_are_those_of_scipy(mode: str, size: tuple[int, int]) -> None:
    image = np.random.default_rng(2).normal(size=size)

    def read(x: Any, places: Any) -> Any:
        ways = [(order, cval) for order in range(6) for cval in (0.7, np.nan)]
        return [ndimage.map_coordinates(x, places, order=order, mode=mode, cval=cval) for order, cval in ways]

    for one, other in zip(sg.jit(read, strict=True)(image, PLACES), read(image, PLACES), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
def test_slopes_in_where_an_image_is_read_are_right_to_second_order(backend: str) -> None:
    def level(at: Any) -> Any:
        return np.sum(ndimage.shift(IMAGE, at, mode="mirror") ** 2)

    point, step = np.array([0.4, -1.3]), np.array([1.0, -0.5])
    slope = sg.grad(level, backend=backend)
    expected = (slope(point + 1e-5 * step) - slope(point - 1e-5 * step)) / 2e-5
    np.testing.assert_allclose(sg.hvp(level, (point,), (step,), backend=backend), expected, rtol=1e-7)
    value = (level(point + 1e-5 * step) - level(point - 1e-5 * step)) / 2e-5
    np.testing.assert_allclose(slope(point) @ step, value, rtol=1e-7)


def test_the_first_of_equal_elements_has_the_slope_of_a_median() -> None:
    x = np.array([1.0, 1.0, 1.0, 5.0, 0.0])
    found = sg.grad(lambda x: ndimage.median_filter(x, 3)[1])(x)
    np.testing.assert_array_equal(found, [0.0, 1.0, 0.0, 0.0, 0.0])  # the second of the sorted three
    shared = sg.grad(lambda x: ndimage.maximum_filter(x, 3)[1])(x)
    np.testing.assert_allclose(shared, [1 / 3, 1 / 3, 1 / 3, 0.0, 0.0])


FOOTPRINT = np.array([[0, 1, 0], [1, 1, 1]])


def test_what_decides_a_window_is_known_for_each_path() -> None:
    program = sg.grad(lambda width: np.sum(ndimage.gaussian_filter(IMAGE, width) ** 2))
    for width in (0.5, 1.5):
        ends = [np.sum(ndimage.gaussian_filter(IMAGE, width + step) ** 2) for step in (1e-6, -1e-6)]
        np.testing.assert_allclose(program(width), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
    marked = sg.grad(lambda x: np.sum(ndimage.maximum_filter(x, footprint=FOOTPRINT) ** 2))(IMAGE)
    steps = np.where(np.arange(IMAGE.size) == 8, 1e-6, 0.0).reshape(IMAGE.shape)
    ends = [np.sum(ndimage.maximum_filter(IMAGE + step, footprint=FOOTPRINT) ** 2) for step in (steps, -steps)]
    np.testing.assert_allclose(marked.flat[8], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_images_of_integers_are_rounded_and_cut_off() -> None:
    image = np.arange(30, dtype=np.uint8).reshape(5, 6) * 7 % 11 * 25
    for program in (
        lambda x: ndimage.zoom(x, 1.7),
        lambda x: ndimage.median_filter(x, 3),
        lambda x: ndimage.grey_opening(x, size=2),
    ):
        found = sg.jit(program, strict=True)(image)
        np.testing.assert_array_equal(found, program(image))
        assert found.dtype == image.dtype


REFUSED: dict[str, Callable[[Any], Any]] = {
    "an order": lambda x: ndimage.zoom(x, 2.0, order=6),
    "a mode": lambda x: ndimage.shift(x, 0.5, mode="mirrored"),
    "coordinates of another rank": lambda x: ndimage.map_coordinates(x, [[0.5]]),
    "complex coordinates": lambda x: ndimage.map_coordinates(x, [[0.5j], [1.0]]),
    "a number": lambda x: ndimage.shift(x[0, 0], 0.5),
    "rows of a matrix": lambda x: ndimage.affine_transform(x, np.eye(3)[:1]),
    "columns of a matrix": lambda x: ndimage.affine_transform(x, np.ones((2, 4))),
    "a plane of one axis": lambda x: ndimage.rotate(x, 3.0, axes=(0,)),
    "a plane that is not there": lambda x: ndimage.rotate(x, 3.0, axes=(0, 5)),
    "a rotated vector": lambda x: ndimage.rotate(x[0], 3.0),
    "no size": lambda x: ndimage.median_filter(x),
    "a footprint of another rank": lambda x: ndimage.median_filter(x, footprint=np.ones(3)),
    "a rank that is too large": lambda x: ndimage.rank_filter(x, 9, size=3),
    "a percentile that is too large": lambda x: ndimage.percentile_filter(x, 101, size=3),
    "several modes": lambda x: ndimage.correlate(x, np.ones((2, 2)), mode=["wrap", "mirror"]),
    "no structure": lambda x: ndimage.grey_erosion(x),
    "an even kernel": lambda x: signal.medfilt(x, 4),
}


OUTPUTS: dict[str, Any] = {"a narrower dtype": np.float32, "a whole dtype": np.int32, "none": None}


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize(
    "name", ["white_tophat", "black_tophat", "morphological_gradient", "morphological_laplace", "grey_opening"]
)
def test_differences_of_images_are_written_as_numpy_writes_them(name: str, kind: str) -> None:
    """SciPy looks at a dtype in top hats and openings, and has NumPy refuse to write floats into whole numbers."""
    compute, x = getattr(ndimage, name), 1.5 * IMAGE
    for output in (OUTPUTS[kind], None if OUTPUTS[kind] is None else np.zeros(x.shape, OUTPUTS[kind])):
        outcomes: list[Any] = []
        for f in (compute, sg.jit(lambda x, output: compute(x, size=3, output=output))):
            try:
                given = output if not isinstance(output, np.ndarray) else output.copy()
                outcomes.append(f(x, size=3, output=given) if f is compute else f(x, given))
            except TypeError as error:
                outcomes.append(type(error))
        if isinstance(outcomes[0], type):
            assert isinstance(outcomes[1], type)
        else:
            assert outcomes[0].dtype == outcomes[1].dtype
            np.testing.assert_allclose(outcomes[1], outcomes[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", REFUSED)
def test_what_scipy_refuses_is_refused(name: str) -> None:
    with pytest.raises(Exception) as expected:
        REFUSED[name](IMAGE)
    with pytest.raises(type(expected.value)):
        sg.jvp(REFUSED[name], (IMAGE,), (IMAGE,))


def test_what_code_in_c_writes_into_an_array_of_scipys_is_there() -> None:
    """`label` has its result written by a function in C, of whole numbers that the path knows."""

    def parts(x: Any) -> Any:
        numbers, count = ndimage.label(x > 0)
        return ndimage.sum_labels(x**2, numbers, np.arange(1, count + 1)), numbers * x

    for one, other in zip(sg.jit(parts)(IMAGE), parts(IMAGE), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    levels = ndimage.label(IMAGE > 0)[0]
    np.testing.assert_array_equal(sg.grad(lambda x: np.sum(ndimage.label(x > 0)[0] * x))(IMAGE), levels)
