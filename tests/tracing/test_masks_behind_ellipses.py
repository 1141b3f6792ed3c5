"""A mask in an index names the axes that NumPy finds for it, whatever stands for the axes before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from tests.tracing.trace_support import compare, directional

SHAPES = [(3,), (2, 3), (0, 3), (2, 1, 5), (2, 0, 3), (2, 3, 4), (3, 3, 3), (2, 3, 1, 3)]
KINDS = ["mask", "mask", "masks", "list", "integer", "integers", "slice", "new"]
EXAMPLES = [
    ((2, 3), (..., np.array([True, False, True]))),
    ((2, 3), (..., [True, False, True])),
    ((2, 3, 4), (..., np.array([True, False, True]), None, slice(None))),
    ((2, 3, 4), (..., np.array([True, False, True]), 0)),
    ((2, 3, 4), (0, ..., np.array([True, False, True, True]))),
    ((2, 3, 4), (..., np.arange(12).reshape(3, 4) % 3 > 0)),
    ((2, 3, 4), (..., None, np.arange(12).reshape(3, 4) % 3 > 0)),
    ((2, 3, 4), (slice(None), ..., np.arange(12).reshape(3, 4) % 3 > 0)),
    ((2, 3), (..., np.array([False, True]), np.array([True, False, False]))),
    ((2, 0, 3), (..., np.array([True, False, True]))),
    ((2, 0, 3), (..., np.zeros(0, bool), slice(None))),
]


def axes_of(random: np.random.Generator, shape: tuple[int, ...]) -> list[Any]:
    """Entries for all of these axes."""
    found: list[Any] = []
    while shape:
        kind, size = random.choice(KINDS), shape[0]
        if kind == "new":
            found.append(None)
            continue
        count = 2 if kind == "masks" and len(shape) > 1 else 1
        if kind.startswith("mask"):
            wrong = (random.random() < 0.05,) + (0,) * (count - 1)
            found.append(random.random(np.add(shape[:count], wrong)) < 0.5)
        elif kind == "list":
            found.append((random.random(size) < 0.5).tolist())
        elif kind.startswith("integer") and size:
            found.append(random.integers(-size, size, 2) if kind == "integers" else int(random.integers(size)))
        else:
            found.append(slice(int(random.integers(2)), None, int(random.choice([-1, 1]))))
        shape = shape[count:]
    return found


def generated(seed: int) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The shape of an array, and an index with an ellipsis for any number of its axes."""
    random = np.random.default_rng(seed)
    shape = SHAPES[random.integers(len(SHAPES))]
    first, last = sorted(random.integers(0, len(shape) + 1, 2))
    return shape, (*axes_of(random, shape[:first]), ..., *axes_of(random, shape[last:]))


CASES = [*EXAMPLES, *map(generated, range(150))]


def written(x: Any, index: Any) -> Any:
    y = x.copy()
    y[index] = 7.0
    return y


def rewritten(x: Any, index: Any) -> Any:
    y = x.copy()
    y[index] = 2.0 * x[index] + x[index] ** 2
    return y


def added(x: Any, index: Any) -> Any:
    y = x.copy()
    np.add.at(y, index, 1.5)
    return y


def error_of(call: Callable[[], Any]) -> str | None:
    try:
        call()
    except IndexError as error:
        return str(error).split("\n")[0]
    return None


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_mask_in_an_index_is_where_numpy_finds_it(number: int) -> None:
    shape, index = CASES[number]
    x = np.random.default_rng(number).standard_normal(shape)
    wrong = error_of(lambda: x[index])
    for program in (lambda x, index: x[index], written, rewritten, added):
        if wrong is None:
            compare(lambda x, program=program: program(x, index), (x,))
        else:
            assert error_of(lambda program=program: compare(lambda x: program(x, index), (x,)))
    if wrong is None:
        directional(lambda x: rewritten(x, index), (x,))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("number", [*range(len(EXAMPLES)), *range(20, 160, 14)])
def test_a_mask_in_an_index_may_be_captured_or_an_argument(number: int, backend: str) -> None:
    """Captured, its value is read at each call; an argument, it is one program whatever it selects, or a path."""
    shape, index = CASES[number]
    x = np.random.default_rng(number).standard_normal(shape)
    if error_of(lambda: x[index]) is not None:
        return
    masks = [k for k, entry in enumerate(index) if isinstance(entry, np.ndarray) and entry.dtype == bool]

    def total(x: Any, *given: Any) -> Any:
        rest = iter(given)
        found = tuple(next(rest) if k in masks and given else entry for k, entry in enumerate(index))
        y = rewritten(x, found)
        return np.sum(x[found] ** 2) + np.sum(y * y)

    slope = 2 * x
    places = np.zeros(shape, bool)
    places[index] = True
    y = np.where(places, 2 * x + x**2, x)
    slope = np.where(places, 2 * y * (2 + 2 * x), 2 * x)
    np.add.at(slope, index, 2 * x[index])
    for masked in ([], [index[k] for k in masks]):
        np.testing.assert_allclose(sg.jit(total, backend=backend)(x, *masked), total(x, *masked), rtol=1e-12)
        np.testing.assert_allclose(sg.grad(total, backend=backend)(x, *masked), slope, rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("index", "axis"),
    [
        (lambda m: (..., m), 2),
        (lambda m: (0, ..., m), 0),
        (lambda m: (..., m, None), 2),
        (lambda m: (slice(None), 0, m), 1),
        (lambda m: (0, slice(None), m), 0),
        (lambda m: (slice(None), 1, ..., m), 0),
        (lambda m: (None, ..., m), 3),
    ],
)
def test_masks_beside_ellipses_integers_and_new_axes_are_one_program(index: Any, axis: int, backend: str) -> None:
    """What they select comes first where integers stand apart from them."""

    def program(x: Any) -> Any:
        y = x.copy()
        y[index(x[0, 0] > 0)] *= x[index(x[0, 0] > 0)]
        sums = np.sum(x[index(x[0, 1] > 0.1)], axis=axis)
        return np.sum(np.sin(y)) + np.sum(sums * np.arange(sums.size).reshape(sums.shape))

    slope = sg.grad(program, backend=backend)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((2, 3, 4))
        step = 1e-6 * np.cos(np.arange(x.size)).reshape(x.shape)
        found = np.sum(slope(x) * step)
        np.testing.assert_allclose(found, (program(x + step) - program(x - step)) / 2, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(sg.jit(program, backend=backend)(x), program(x), rtol=1e-12)
    assert sg.explain(slope)(x)["how it runs"].startswith("One program")


def test_a_mask_is_not_stretched_along_its_axis() -> None:
    x = np.ones((2, 1, 5))
    for program in (lambda x: x[..., 0, np.array([True])], lambda x: x[..., 0, x[0, 0, :1] > 0]):
        assert error_of(lambda program=program: program(x)) is not None
        with pytest.raises(IndexError, match=r"boolean index of shape \(1,\) does not match .* at axis 2"):
            sg.grad(lambda x, program=program: np.sum(program(x)))(x)
