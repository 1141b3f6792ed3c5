"""Nearest neighbours and assignments: which they are SciPy is asked when a program runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial

import srcgrad as sg
from srcgrad.errors import ShapeError, UnsupportedError

POINTS = np.random.default_rng(4).normal(size=(12, 2))
PLACES = POINTS[:4] + np.array([0.1, 0.07])
STEP = np.array([1e-6, 0.0])
COSTS = np.random.default_rng(3).uniform(size=(4, 5))
TREES = {"KDTree": scipy.spatial.KDTree, "cKDTree": scipy.spatial.cKDTree}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(("p", "k"), [(1.0, 2), (2.0, 1), (2.0, 14), (3.0, [1, 3]), (np.inf, 1)])
def test_distances_of_the_nearest_points_vary_with_points_and_places(tree: str, p: float, k: Any) -> None:
    def query(points: Any, places: Any) -> Any:
        return TREES[tree](points).query(places, k=k, p=p)

    expected = query(POINTS, PLACES)
    for one, other in zip(sg.jit(query, strict=True)(POINTS, PLACES), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)
        assert one.dtype == other.dtype

    def level(points: Any, places: Any) -> Any:
        far = query(points, places)[0]
        return np.sum(np.where(np.isfinite(far), far, 0.0) ** 2)

    sg.testing.check_grads(level, (POINTS, PLACES), order=1)


def test_a_tree_that_is_captured_makes_one_program_until_its_points_are_others() -> None:
    def distance(x: Any) -> Any:
        return np.sum(tree.query(x)[0])

    tree = scipy.spatial.KDTree(POINTS)
    slope = sg.grad(distance)
    sg.jit(distance, strict=True)(PLACES)
    np.testing.assert_allclose(np.linalg.norm(slope(PLACES), axis=1), 1.0)
    np.testing.assert_array_equal(slope(POINTS), 0.0)
    tree = scipy.spatial.KDTree(POINTS + 5.0)
    expected = (distance(PLACES + STEP) - distance(PLACES - STEP)) / 2e-6
    np.testing.assert_allclose(np.sum(slope(PLACES)[:, 0]), expected, rtol=1e-7)


def test_what_trees_refuse() -> None:
    tree = scipy.spatial.KDTree(POINTS)
    with pytest.raises(UnsupportedError, match="query_ball_point has no derivative rule"):
        sg.grad(lambda x: np.sum(x) * len(tree.query_ball_point(x, 1.0)))(POINTS[0])
    with pytest.raises(UnsupportedError, match="query_ball_point of traced points"):
        sg.grad(lambda x: np.sum(x) * len(scipy.spatial.KDTree(x).query_ball_point(POINTS[0], 1.0)))(POINTS)
    with pytest.raises(ShapeError, match="vectors of length 2"):
        sg.grad(lambda x: np.sum(tree.query(x)[0]))(np.ones(3))
    with pytest.raises(UnsupportedError, match="boxsize"):
        sg.grad(lambda x: np.sum(scipy.spatial.KDTree(x, boxsize=9.0).query(x, k=2)[0]))(np.abs(POINTS))


@pytest.mark.parametrize("maximize", [False, True])
def test_the_least_cost_of_an_assignment_varies_with_the_costs_that_are_chosen(maximize: bool) -> None:
    def cost(c: Any) -> Any:
        return np.sum(c[scipy.optimize.linear_sum_assignment(c, maximize)])

    chosen = np.zeros_like(COSTS)
    chosen[scipy.optimize.linear_sum_assignment(COSTS, maximize)] = 1.0
    np.testing.assert_array_equal(sg.grad(cost)(COSTS), chosen)
    assert sg.jit(cost, strict=True)(COSTS) == pytest.approx(cost(COSTS), rel=1e-15)
    both = sg.vmap(sg.grad(cost))(np.stack([COSTS, COSTS[::-1]]))
    np.testing.assert_array_equal(both, np.stack([chosen, chosen[::-1]]))
