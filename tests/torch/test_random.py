"""Generators give the same numbers again, and the numbers have the distributions asked for."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from srcgrad.errors import SrcgradError
from srcgrad.torch import random
from srcgrad.torch.random import Generator

Draw = Callable[[Generator | None], np.ndarray[Any, Any]]

DRAWS: dict[str, Draw] = {
    "uniform": lambda g: random.uniform((5,), generator=g),
    "uniform of float16": lambda g: random.uniform((5,), dtype=np.float16, generator=g),
    "uniform of complex128": lambda g: random.uniform((5,), dtype=np.complex128, generator=g),
    "normal": lambda g: random.normal((5,), generator=g),
    "normal of complex64": lambda g: random.normal((5,), dtype=np.complex64, generator=g),
    "integers": lambda g: random.integers((5,), -9, 1000, generator=g),
    "integers of uint8": lambda g: random.integers((5,), 0, 256, np.uint8, generator=g),
    "permutation": lambda g: random.permutation(50, generator=g),
    "bernoulli": lambda g: random.bernoulli(0.5, (40,), generator=g),
    "exponential": lambda g: random.exponential((5,), generator=g),
    "cauchy": lambda g: random.cauchy((5,), generator=g),
    "log_normal": lambda g: random.log_normal((5,), generator=g),
    "geometric": lambda g: random.geometric((40,), 0.2, generator=g),
    "poisson": lambda g: random.poisson(np.full(20, 9.0, np.float32), generator=g),
    "binomial": lambda g: random.binomial(np.full(20, 30.0), np.full(20, 0.4), generator=g),
    "multinomial": lambda g: random.multinomial(np.ones(50), 20, generator=g),
    "multinomial with replacement": lambda g: random.multinomial(np.ones((2, 50)), 20, True, generator=g),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_a_seed_and_a_state_give_the_same_numbers_again(draw: Draw) -> None:
    source = Generator().manual_seed(7)
    source.draws.integers(0, 3, 1, np.uint8)  # leaves half a word behind, which belongs to the state
    state = source.get_state()
    first, second = draw(source), draw(source)
    assert not np.array_equal(first, second)
    other = Generator()
    other.set_state(state)
    assert np.array_equal(draw(other), first)
    assert np.array_equal(draw(pickle.loads(pickle.dumps(other))), second)
    random.manual_seed(7)
    from_default = draw(None)
    assert np.array_equal(from_default, draw(Generator().manual_seed(7)))
    assert not np.array_equal(from_default, draw(Generator().manual_seed(8)))


def test_a_generator_is_independent_of_the_default_one() -> None:
    random.manual_seed(1)
    before = random.get_rng_state()
    random.normal((9,), generator=Generator())
    assert np.array_equal(random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("seed", "expected"),
    [(0, 0), (-1, 2**64 - 1), (-5, 2**64 - 5), (2**64 - 1, 2**64 - 1), (-(2**63), 2**63), (np.int64(4), 4)],
)
def test_initial_seed_is_pytorchs(seed: int, expected: int) -> None:
    assert Generator().manual_seed(seed).initial_seed() == expected


def test_the_default_generator_takes_what_int_takes() -> None:
    """As PyTorch's `manual_seed` does, while the method of a generator wants an int."""
    for seed, expected in [(3.7, 3), ("5", 5), (True, 1)]:
        assert random.manual_seed(seed) is random.default_generator
        assert random.initial_seed() == expected
    for wrong in (1.5, "a", True):
        with pytest.raises(RuntimeError, match="manual_seed expected an int"):
            Generator().manual_seed(wrong)  # type: ignore[arg-type]
    assert Generator().initial_seed() == 67280421310721


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_a_seed_out_of_range_is_a_value_error(seed: int) -> None:
    with pytest.raises(ValueError, match="a seed lies between"):
        random.manual_seed(seed)


def test_seed_draws_another_each_time() -> None:
    source = Generator()
    first, second = source.seed(), source.seed()
    assert first != second
    assert source.initial_seed() == second
    assert random.seed() == random.initial_seed()


@pytest.mark.parametrize(
    ("state", "error"),
    [(np.zeros(3, np.uint8), RuntimeError), (np.zeros(45), TypeError), (np.zeros(45, np.uint8), RuntimeError),
     (3, TypeError)],
)  # fmt: skip
def test_what_is_no_state_is_refused_and_changes_nothing(state: Any, error: type[Exception]) -> None:
    source = Generator().manual_seed(2)
    before = source.get_state()
    with pytest.raises(error):
        source.set_state(state)
    assert np.array_equal(source.get_state(), before)


def test_fork_rng_puts_back_the_state_also_after_an_error() -> None:
    random.manual_seed(4)
    before = random.get_rng_state()
    with pytest.raises(ZeroDivisionError), random.fork_rng():
        random.uniform((3,))
        raise ZeroDivisionError
    assert np.array_equal(random.get_rng_state(), before)


def test_a_copied_generator_goes_its_own_way() -> None:
    source = Generator().manual_seed(3)
    other = copy.deepcopy(source)
    assert np.array_equal(random.normal((4,), generator=source), random.normal((4,), generator=other))
    random.normal((1,), generator=source)
    assert not np.array_equal(source.get_state(), other.get_state())


def test_a_generator_on_another_device_is_refused() -> None:
    assert str(Generator().device) == "cpu"
    with pytest.raises(RuntimeError, match="none can be made on 'cuda'"):
        Generator("cuda")


# --- distributions ----------------------------------------------------------------------------------------------------

COUNT = 20000
CONTINUOUS: dict[str, tuple[Draw, Any]] = {
    "uniform": (lambda g: random.uniform((COUNT,), -2.0, 3.0, np.float64, generator=g), stats.uniform(-2, 5)),
    "uniform of float32": (lambda g: random.uniform((COUNT,), generator=g), stats.uniform()),
    "normal": (lambda g: random.normal((COUNT,), 1.5, 0.5, generator=g), stats.norm(1.5, 0.5)),
    "part of complex": (
        lambda g: random.normal((COUNT,), dtype=np.complex64, generator=g).imag,
        stats.norm(0, math.sqrt(0.5)),
    ),
    "exponential": (lambda g: random.exponential((COUNT,), 4.0, generator=g), stats.expon(scale=0.25)),
    "cauchy": (lambda g: random.cauchy((COUNT,), 2.0, 0.5, generator=g), stats.cauchy(2.0, 0.5)),
    "log_normal": (
        lambda g: random.log_normal((COUNT,), 0.5, 0.8, generator=g),
        stats.lognorm(0.8, scale=math.exp(0.5)),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_numbers_follow_their_distribution(name: str) -> None:
    draw, distribution = CONTINUOUS[name]
    assert stats.kstest(draw(Generator().manual_seed(11)), distribution.cdf).pvalue > 1e-3


DISCRETE: dict[str, tuple[Draw, Any]] = {
    "integers": (lambda g: random.integers((COUNT,), -2, 5, generator=g), stats.randint(-2, 5)),
    "integers of float16": (lambda g: random.integers((COUNT,), 0, 4, np.float16, generator=g), stats.randint(0, 4)),
    "bernoulli": (lambda g: random.bernoulli(np.full(COUNT, 0.3, np.float32), generator=g), stats.bernoulli(0.3)),
    "geometric": (lambda g: random.geometric((COUNT,), 0.6, generator=g), stats.geom(0.6)),
    "poisson": (lambda g: random.poisson(np.full(COUNT, 1.5), generator=g), stats.poisson(1.5)),
    "binomial": (lambda g: random.binomial(np.full(COUNT, 4.0), np.full(COUNT, 0.4), generator=g), stats.binom(4, 0.4)),
    "multinomial": (
        lambda g: random.multinomial(np.tile([0.25, 0.0, 0.75], (COUNT, 1)), 1, generator=g)[:, 0],
        stats.rv_discrete(values=([0, 1, 2], [0.25, 0.0, 0.75])),
    ),
    "multinomial with replacement": (
        lambda g: random.multinomial(np.array([3.0, 0.0, 1.0, 4.0, 0.0]), COUNT, True, generator=g),
        stats.rv_discrete(values=([0, 2, 3], [0.375, 0.125, 0.5])),
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_numbers_have_their_frequencies(name: str) -> None:
    draw, distribution = DISCRETE[name]
    values, counts = np.unique(draw(Generator().manual_seed(12)), return_counts=True)
    expected = COUNT * distribution.pmf(values.astype(float))
    assert (expected > 0).all()  # nothing of probability zero was drawn
    likely = expected > 5
    excess = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    assert excess < stats.chi2(likely.sum()).isf(1e-3)


def test_without_replacement_the_order_is_that_of_one_draw_after_the_other() -> None:
    """P(first i, then j) = w_i / sum * w_j / (sum - w_i)."""
    weights = np.array([1.0, 2.0, 5.0])
    drawn = random.multinomial(np.tile(weights, (COUNT, 1)), 3, generator=Generator().manual_seed(13))
    assert (np.sort(drawn, axis=1) == [0, 1, 2]).all()
    for i in range(3):
        for j in set(range(3)) - {i}:
            share = ((drawn[:, 0] == i) & (drawn[:, 1] == j)).mean()
            expected = weights[i] / 8 * weights[j] / (8 - weights[i])
            assert share == pytest.approx(expected, abs=4 * math.sqrt(expected / COUNT))


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1.0, 1e308])
@pytest.mark.parametrize("replacement", [False, True])
def test_weights_of_any_size_are_drawn_by_their_ratios(scale: float, replacement: bool) -> None:
    weights = np.array([scale, 0.0, scale])
    source = Generator().manual_seed(5)
    drawn = random.multinomial(np.tile(weights, (400, 1)), 2, replacement, generator=source)
    assert set(np.unique(drawn)) == {0, 2}
    assert 120 < (drawn[:, 0] == 0).sum() < 280


def test_weights_far_apart_are_all_drawn_before_a_zero() -> None:
    drawn = random.multinomial(np.array([0.0, 1e-320, 1e308, 0.0]), 2, generator=Generator())
    assert drawn.tolist() == [2, 1]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_uniform_numbers_stay_below_the_end(dtype: str) -> None:
    source = Generator().manual_seed(6)
    for low, high in [(0.0, 1.0), (100.0, 101.0), (-1.0, 0.0)]:
        drawn = random.uniform((3000,), low, high, dtype, generator=source)
        assert drawn.dtype == dtype
        parts = np.stack([drawn.real, drawn.imag]) if drawn.dtype.kind == "c" else drawn
        assert parts.min() >= low
        assert parts.max() < high
    assert (random.uniform((3,), 2.0, 2.0, generator=source) == 2.0).all()


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("uint8", 0, 256), ("int8", -128, 128), ("bool", 0, 2), ("int64", -(2**63), 2**63), ("uint64", 0, 2**64),
     ("float16", 0, 4095), ("float32", 2**24 + 1, 2**24 + 40), ("float64", -(2**62), 2**62), ("uint64", 2**63, 2**64)],
)  # fmt: skip
def test_integers_stay_inside_their_bounds(dtype: str, low: int, high: int) -> None:
    drawn = random.integers((3000,), low, high, dtype, generator=Generator().manual_seed(9))
    assert drawn.dtype == dtype
    assert low <= int(drawn.min())
    assert int(drawn.max()) < high
    assert len(np.unique(drawn)) > 1


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bool", 2), ("uint8", 256), ("int64", 2**63), ("float16", 2**11 + 1), ("float32", 2**24 + 1), ("uint64", 2**63)],
)
def test_full_range_is_pytorchs(dtype: str, expected: int) -> None:
    assert random.full_range(dtype) == (0, expected)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_shapes_and_dtypes_are_those_asked_for(shape: tuple[int, ...]) -> None:
    for made, dtype in [
        (random.uniform(shape), "float32"),
        (random.uniform(shape, 0, 2, "float16"), "float16"),
        (random.normal(shape, dtype="complex128"), "complex128"),
        (random.integers(shape, 0, 3), "int64"),
        (random.bernoulli(0.5, shape, "int8"), "int8"),
        (random.bernoulli(np.full(shape, 0.5)), "float64"),
        (random.exponential(shape, dtype="float16"), "float16"),
        (random.cauchy(shape), "float32"),
        (random.log_normal(shape), "float32"),
        (random.geometric(shape, 0.1, "int8"), "int8"),
        (random.poisson(np.ones(shape, np.float16)), "float16"),
        (random.binomial(np.ones(shape), np.full(shape, 0.5)), "float64"),
    ]:
        assert isinstance(made, np.ndarray)
        assert made.shape == shape
        assert made.dtype == dtype


def test_normal_takes_its_shape_from_mean_and_std() -> None:
    mean, std = np.array([[0.0], [100.0]], np.float32), np.array([0.0, 1e-3, 0.0], np.float32)
    drawn = random.normal(mean=mean, std=std)
    assert drawn.shape == (2, 3)
    assert (drawn[:, [0, 2]] == mean).all()
    assert np.abs(drawn[:, 1] - mean[:, 0]).max() < 0.1


def test_certain_outcomes_are_certain() -> None:
    assert random.bernoulli(np.tile([0.0, 1.0], 500)).reshape(-1, 2).sum(axis=0).tolist() == [0, 500]
    assert (random.exponential((5,), math.inf) > 0).all()
    assert sorted(random.permutation(9).tolist()) == list(range(9))
    assert random.permutation(0).shape == (0,)
    assert random.multinomial(np.ones((0, 2)), 1).shape == (0, 1)
    assert random.multinomial(np.ones((0, 2)), 3, True).shape == (0, 3)


WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: random.uniform((2,), 2.0, 1.0), RuntimeError, "from=2.0 > to=1.0"),
    (lambda: random.uniform((2,), math.nan, 1.0), RuntimeError, "from=nan"),
    (lambda: random.uniform((2,), -3e38, 3e38), RuntimeError, "does not fit"),
    (lambda: random.uniform((2,), dtype=np.int64), NotImplementedError, "int64"),
    (lambda: random.normal((2,), 0.0, -1.0), RuntimeError, "std >= 0.0"),
    (lambda: random.normal(std=np.array([1.0, math.nan])), RuntimeError, "std >= 0.0"),
    (lambda: random.normal((2,), dtype=np.int32), NotImplementedError, "int32"),
    (lambda: random.integers((2,), 3, 3), RuntimeError, "from=3 >= to=3"),
    (lambda: random.integers((2,), 0, 257, np.uint8), RuntimeError, "to - 1 is out of bounds"),
    (lambda: random.integers((2,), -1, 2, np.uint8), RuntimeError, "from is out of bounds"),
    (lambda: random.integers((2,), 0, 70000, np.float16), RuntimeError, "to - 1 is out of bounds"),
    (lambda: random.integers((2,), 0, 2, np.complex64), NotImplementedError, "complex64"),
    (lambda: random.permutation(-1), RuntimeError, "non-negative"),
    (lambda: random.permutation(257, np.uint8), RuntimeError, "does not hold"),
    (lambda: random.permutation(2050, np.float16), RuntimeError, "does not hold"),
    (lambda: random.bernoulli(np.array([2.0])), RuntimeError, "from 0 to 1"),
    (lambda: random.bernoulli(np.array([math.nan])), RuntimeError, "from 0 to 1"),
    (lambda: random.bernoulli(np.array([1])), NotImplementedError, "int64"),
    (lambda: random.exponential((2,), 0.0), RuntimeError, "lambda > 0"),
    (lambda: random.cauchy((2,), 0.0, -1.0), RuntimeError, "sigma > 0"),
    (lambda: random.log_normal((2,), 0.0, 0.0), RuntimeError, "std > 0"),
    (lambda: random.geometric((2,), 1.0), RuntimeError, r"\(0, 1\)"),
    (lambda: random.poisson(np.array([-1.0])), RuntimeError, "non-negative"),
    (lambda: random.binomial(np.array([2.5]), np.array([0.5])), RuntimeError, "whole number"),
    (lambda: random.binomial(np.array([2.0]), np.array([1.5])), RuntimeError, "from 0 to 1"),
    (lambda: random.multinomial(np.zeros(2), 1), RuntimeError, "sum of probabilities <= 0"),
    (lambda: random.multinomial(np.array([[1.0], [0.0]]), 1), RuntimeError, "sum of probabilities <= 0"),
    (lambda: random.multinomial(np.array([1.0, -1.0]), 1), RuntimeError, "element < 0"),
    (lambda: random.multinomial(np.array([1.0, math.inf]), 1), RuntimeError, "inf"),
    (lambda: random.multinomial(np.ones(2), 0), RuntimeError, "n_sample <= 0"),
    (lambda: random.multinomial(np.ones(2), 3), RuntimeError, "without replacement"),
    (lambda: random.multinomial(np.ones((1, 1, 2)), 1), RuntimeError, "1 or 2 dim"),
    (lambda: random.multinomial(np.ones(2, np.int64), 1), RuntimeError, "int64"),
    (lambda: random.uniform((2,), generator=3), TypeError, r"must be a torch\.Generator"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "error", "words"), WRONG)
def test_a_draw_that_makes_no_sense_is_pytorchs_kind_of_error(
    call: Callable[[], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        call()
    assert isinstance(caught.value, SrcgradError)
