"""Random numbers: `Generator`, the default one, and draws as NumPy arrays.

A generator is NumPy's PCG64. Seeded alike it gives the same numbers again, on every machine with this NumPy; they are
not those of PyTorch's generators. The functions that draw return arrays of the dtype asked for; the tensor functions
wrap them.
"""

from __future__ import annotations

import operator
import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from srcgrad.torch.dtypes import device as Device
from srcgrad.torch.dtypes import of, usable_device
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorTypeError, TensorValueError
from srcgrad.torch.modes import refuse_random

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]

_FIRST_SEED: Final = 67280421310721  # PyTorch's seed of a generator that was given none
_WORD: Final = 1 << 64
_STATE: Final = struct.Struct("<Q16s16sBI")  # seed; PCG64's state and increment; the half word it has left, if any


class Generator:
    """A source of random numbers.

    >>> source = Generator().manual_seed(3)
    >>> state = source.get_state()
    >>> first = uniform((4,), generator=source)
    >>> source.set_state(state)
    >>> bool((first == uniform((4,), generator=source)).all()), source.initial_seed()
    (True, 3)
    """

    __slots__ = ("_seed", "device", "draws")

    _seed: int
    device: Device
    draws: np.random.Generator
    """What the numbers come from."""

    def __init__(self, device: str | int | Device | None = "cpu") -> None:
        self.device = usable_device(device)
        self._start(_FIRST_SEED)

    def _start(self, seed: int) -> None:
        self._seed = seed
        self.draws = np.random.Generator(np.random.PCG64(seed))

    def manual_seed(self, seed: int) -> Generator:
        """Starts anew from `seed`, from -2^63 to 2^64 - 1 (a negative one counts from 2^64 down); returns itself."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise TensorError(f"manual_seed expected an int, not {type(seed).__name__} {seed!r}")
        self._start(_checked_seed(operator.index(seed)))
        return self

    def seed(self) -> int:
        """Starts anew from a seed that the operating system draws, and returns it."""
        self._start(secrets.randbits(64))
        return self._seed

    def initial_seed(self) -> int:
        """The seed it was started from, as a number from 0 to 2^64 - 1."""
        return self._seed

    def get_state(self) -> Array:
        """All that determines the numbers to come, as a uint8 array."""
        bits: Any = self.draws.bit_generator.state
        packed = _STATE.pack(
            self._seed,
            bits["state"]["state"].to_bytes(16, "little"),
            bits["state"]["inc"].to_bytes(16, "little"),
            bits["has_uint32"],
            bits["uinteger"],
        )
        return np.frombuffer(packed, np.uint8).copy()

    def set_state(self, new_state: ArrayLike) -> None:
        """Goes back to where `get_state` was called, on this generator or another."""
        state = np.asarray(new_state)
        if state.dtype != np.uint8:
            raise TensorTypeError(f"the state of a generator is a tensor of uint8, not of {state.dtype}")
        if state.shape != (_STATE.size,):
            raise TensorError(
                f"the state of a generator has shape ({_STATE.size},), not {state.shape}",
                hint="pass what get_state returned; states of PyTorch's generators do not fit",
            )
        seed, word, increment, has_half, half = _STATE.unpack(state.tobytes())
        if has_half > 1 or not increment[0] & 1:  # PCG's increment is odd
            raise TensorError("these bytes are no state of a generator", hint="pass what get_state returned")
        self._start(seed)
        self.draws.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": int.from_bytes(word, "little"), "inc": int.from_bytes(increment, "little")},
            "has_uint32": has_half,
            "uinteger": half,
        }

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.get_state(),)


def _restored(state: Array) -> Generator:
    made = Generator()
    made.set_state(state)
    return made


def _checked_seed(seed: int) -> int:
    if not -_WORD // 2 <= seed < _WORD:
        raise TensorValueError(f"a seed lies between -2**63 and 2**64 - 1, and {seed} does not")
    return seed % _WORD


# --- the default generator --------------------------------------------------------------------------------------------

default_generator: Final = Generator()
default_generator.seed()


def manual_seed(seed: Any) -> Generator:
    """Starts the default generator anew from `int(seed)` and returns it."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Starts the default generator anew from a seed that the operating system draws, and returns it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator was started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Array:
    """The state of the default generator, as a uint8 array."""
    return default_generator.get_state()


def set_rng_state(new_state: ArrayLike) -> None:
    """Puts the default generator back to a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng() -> Iterator[None]:
    """A block after which the default generator goes on as if the block had drawn nothing.

    >>> _ = manual_seed(0)
    >>> with fork_rng():
    ...     inside = uniform((2,))
    >>> bool((uniform((2,)) == inside).all())
    True
    """
    before = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(before)


# --- draws ------------------------------------------------------------------------------------------------------------


def _source(generator: Generator | None) -> np.random.Generator:
    refuse_random()
    if generator is None:
        return default_generator.draws
    if not isinstance(generator, Generator):
        raise TensorTypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    return generator.draws


def _require(dtype: np.dtype[Any], kinds: str, what: str) -> None:
    if dtype.kind not in kinds:
        raise TensorNotImplementedError(f"{what} has no values of {of(dtype)}", hint="use dtype=torch.float32")


def _working(dtype: np.dtype[Any]) -> type[np.float32] | type[np.float64]:
    """The dtype to draw in: NumPy draws no float16."""
    return np.float64 if dtype.itemsize == 8 else np.float32


def uniform(
    shape: Shape,
    low: float = 0.0,
    high: float = 1.0,
    dtype: np.typing.DTypeLike = np.float32,
    *,
    generator: Generator | None = None,
) -> Array:
    """Numbers from `low` up to but not including `high`; both parts of complex ones."""
    dtype = np.dtype(dtype)
    _require(dtype, "fc", "the uniform distribution")
    if dtype.kind == "c":
        parts = uniform((*shape, 2), low, high, f"f{dtype.itemsize // 2}", generator=generator)
        return parts.view(dtype)[..., 0]
    if not low <= high:
        raise TensorError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    limit = float(np.finfo(dtype).max)
    if not (max(abs(low), abs(high)) <= limit and high - low <= limit):
        raise TensorError(f"a uniform distribution from {low} to {high} does not fit in {of(dtype)}")
    source = _source(generator)
    if dtype.itemsize == 2:  # of 2^11 values, as many as float16 has in [1/2, 1): rounding reaches 1 from more
        unit = np.asarray(source.integers(0, 1 << 11, shape) / (1 << 11), dtype)
    else:
        unit = np.asarray(source.random(shape, _working(dtype)))
    if (low, high) == (0, 1):
        return unit
    found = unit * np.asarray(high - low, dtype) + np.asarray(low, dtype)
    top = np.nextafter(np.asarray(high, dtype), np.asarray(low, dtype))
    return np.asarray(np.minimum(found, top))  # the sum may have been rounded up to `high`


def normal(
    shape: Shape | None = None,
    mean: ArrayLike = 0.0,
    std: ArrayLike = 1.0,
    dtype: np.typing.DTypeLike = np.float32,
    *,
    generator: Generator | None = None,
) -> Array:
    """Normal numbers; of complex ones each part has half the variance. `shape` None: that of `mean` and `std`."""
    dtype = np.dtype(dtype)
    _require(dtype, "fc", "the normal distribution")
    if not bool(np.all(np.asarray(std) >= 0)):
        raise TensorError(f"normal expects std >= 0.0, but found std {np.min(std)}")
    shape = np.broadcast_shapes(np.shape(mean), np.shape(std)) if shape is None else shape
    source = _source(generator)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        parts = source.standard_normal((*shape, 2), _working(part)) * part.type(np.sqrt(0.5))
        unit = parts.view(dtype)[..., 0]
    else:
        unit = np.asarray(source.standard_normal(shape, _working(dtype)))
    found = unit * np.asarray(std, unit.real.dtype) + np.asarray(mean, unit.dtype)
    return np.asarray(found, dtype)


def integers(
    shape: Shape,
    low: int,
    high: int,
    dtype: np.typing.DTypeLike = np.int64,
    *,
    generator: Generator | None = None,
) -> Array:
    """Whole numbers from `low` up to but not including `high`, of any real dtype that holds them."""
    dtype = np.dtype(dtype)
    _require(dtype, "biuf", "a draw of integers")
    if not low < high:
        raise TensorError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    smallest, largest = _limits(dtype)
    for name, bound in (("from", low), ("to - 1", high - 1)):
        if not smallest <= bound <= largest:
            raise TensorError(f"{name} is out of bounds for {of(dtype)}: {bound}")
    drawn_as = np.uint64 if high > _WORD // 2 else np.int64
    found = np.asarray(_source(generator).integers(low, high - 1, shape, drawn_as, endpoint=True)).astype(dtype)
    return _rounded_inwards(found, low, high) if dtype.kind == "f" else found


def _rounded_inwards(found: Array, low: int, high: int) -> Array:
    """Floating numbers that rounding took out of the range, moved to its nearest value inside."""
    bottom, top = found.dtype.type(low), found.dtype.type(high - 1)
    if int(bottom) < low:
        bottom = np.nextafter(bottom, found.dtype.type(np.inf))
    if int(top) >= high:
        top = np.nextafter(top, found.dtype.type(-np.inf))
    return np.asarray(np.clip(found, bottom, top))


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype.kind == "f":
        return int(np.finfo(dtype).min), int(np.finfo(dtype).max)
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def full_range(dtype: np.typing.DTypeLike) -> tuple[int, int]:
    """The `low` and `high` of `random_()` without bounds: all of a dtype that are not negative, and of a floating one
    those up to where it no longer holds every integer."""
    dtype = np.dtype(dtype)
    _require(dtype, "biuf", "a draw of integers")
    largest = 1 << (np.finfo(dtype).nmant + 1) if dtype.kind == "f" else min(_limits(dtype)[1], _WORD // 2 - 1)
    return 0, largest + 1


def permutation(n: int, dtype: np.typing.DTypeLike = np.int64, *, generator: Generator | None = None) -> Array:
    """The numbers from 0 to n - 1 in random order."""
    dtype = np.dtype(dtype)
    _require(dtype, "iuf", "a permutation")
    if n < 0:
        raise TensorError(f"randperm expects n to be non-negative, but got n={n}")
    if n > full_range(dtype)[1]:
        raise TensorError(f"{of(dtype)} does not hold the numbers from 0 to {n - 1}", hint="use dtype=torch.int64")
    return _source(generator).permutation(n).astype(dtype)


def bernoulli(
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: np.typing.DTypeLike | None = None,
    *,
    generator: Generator | None = None,
) -> Array:
    """Ones with probability `p`, else zeros; of the shape and the dtype of `p` unless others are given."""
    probabilities = np.asarray(p)
    dtype = probabilities.dtype if dtype is None else np.dtype(dtype)
    _require(probabilities.dtype, "f", "a probability")
    if not bool(np.all((probabilities >= 0) & (probabilities <= 1))):
        raise TensorError("bernoulli expects every probability to be from 0 to 1")
    drawn = _source(generator).random(probabilities.shape if shape is None else shape)
    return np.asarray(drawn < probabilities).astype(dtype)


def exponential(
    shape: Shape, rate: float = 1.0, dtype: np.typing.DTypeLike = np.float32, *, generator: Generator | None = None
) -> Array:
    """Exponential numbers of a rate, all above zero."""
    dtype = np.dtype(dtype)
    _require(dtype, "f", "the exponential distribution")
    if not rate > 0:
        raise TensorError(f"exponential_ expects lambda > 0.0, but found lambda={rate}")
    drawn = np.asarray(_source(generator).standard_exponential(shape)) / rate
    return np.asarray(np.maximum(drawn.astype(dtype), np.finfo(dtype).smallest_normal), dtype)


def cauchy(
    shape: Shape,
    median: float = 0.0,
    sigma: float = 1.0,
    dtype: np.typing.DTypeLike = np.float32,
    *,
    generator: Generator | None = None,
) -> Array:
    """Cauchy numbers of a median and a half width at half height; what the dtype cannot hold is infinite."""
    dtype = np.dtype(dtype)
    _require(dtype, "f", "the Cauchy distribution")
    if not sigma > 0:
        raise TensorError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    with np.errstate(over="ignore"):
        return np.asarray(median + sigma * np.asarray(_source(generator).standard_cauchy(shape))).astype(dtype)


def log_normal(
    shape: Shape,
    mean: float = 1.0,
    std: float = 2.0,
    dtype: np.typing.DTypeLike = np.float32,
    *,
    generator: Generator | None = None,
) -> Array:
    """Numbers whose logarithm is normal with this mean and standard deviation."""
    dtype = np.dtype(dtype)
    _require(dtype, "f", "the log-normal distribution")
    if not std > 0:
        raise TensorError(f"log_normal_ expects std > 0.0, but found std={std}")
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(normal(shape, mean, std, np.float64, generator=generator))).astype(dtype)


def geometric(
    shape: Shape, p: float, dtype: np.typing.DTypeLike = np.float32, *, generator: Generator | None = None
) -> Array:
    """How many trials of probability `p` until the first success: 1 or more."""
    dtype = np.dtype(dtype)
    _require(dtype, "iuf", "the geometric distribution")
    if not 0 < p < 1:
        raise TensorError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    drawn = np.asarray(_source(generator).geometric(p, shape))
    return np.asarray(np.minimum(drawn, min(_limits(dtype)[1], _WORD // 2 - 1))).astype(dtype)


def poisson(rate: Array, *, generator: Generator | None = None) -> Array:
    """Poisson numbers, a rate each; of the dtype of `rate`."""
    rate = np.asarray(rate)
    _require(rate.dtype, "f", "the Poisson distribution")
    if not bool(np.all(rate >= 0)):
        raise TensorError("invalid Poisson rate, expected rate to be non-negative")
    return np.asarray(_source(generator).poisson(rate.astype(np.float64))).astype(rate.dtype)


def gamma(shape: Array, *, generator: Generator | None = None) -> Array:
    """Gamma numbers of rate 1, of a shape parameter each, all above zero; of the dtype of `shape`."""
    shape = np.asarray(shape)
    _require(shape.dtype, "f", "the gamma distribution")
    drawn = np.asarray(_source(generator).standard_gamma(shape.astype(np.float64))).astype(shape.dtype)
    return np.asarray(np.maximum(drawn, np.finfo(shape.dtype).smallest_normal), shape.dtype)


def binomial(count: Array, probability: Array, *, generator: Generator | None = None) -> Array:
    """How many of `count` trials succeed, element by element; of the dtype of `count`."""
    count, probability = np.asarray(count), np.asarray(probability)
    _require(count.dtype, "f", "the binomial distribution")
    if not bool(np.all((probability >= 0) & (probability <= 1))):
        raise TensorError("binomial expects every probability to be from 0 to 1")
    if not bool(np.all((count >= 0) & (count == np.floor(count)) & np.isfinite(count))):
        raise TensorError("binomial expects every count to be a whole number of 0 or more")
    drawn = _source(generator).binomial(count.astype(np.int64), probability.astype(np.float64))
    return np.asarray(drawn).astype(count.dtype)


# --- weighted choice --------------------------------------------------------------------------------------------------


def multinomial(
    weights: Array, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Array:
    """`num_samples` indices per row of `weights`, drawn in proportion to them; without replacement unless asked for."""
    weights = np.asarray(weights)
    if weights.dtype.kind != "f":
        raise TensorError(f"multinomial only supports floating-point dtypes for input, got: {of(weights.dtype)}")
    if weights.ndim not in (1, 2):
        raise TensorError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise TensorError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise TensorError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not bool(np.all(np.isfinite(weights) & (weights >= 0))):
        raise TensorError("probability tensor contains either `inf`, `nan` or element < 0")
    rows = np.atleast_2d(weights).astype(np.float64)
    if not bool(np.all(rows.max(axis=-1, initial=0.0) > 0)):
        raise TensorError("invalid multinomial distribution (sum of probabilities <= 0)")
    choose = _with_replacement if replacement else _without_replacement
    chosen = choose(rows, num_samples, _source(generator))
    return chosen.reshape(*weights.shape[:-1], num_samples)


def _with_replacement(rows: Array, count: int, source: np.random.Generator) -> Array:
    sums = np.cumsum(rows / rows.max(axis=-1, keepdims=True), axis=-1)  # the quotient so that no sum overflows
    drawn = source.random((len(rows), count)) * sums[:, -1:]
    # The first sum above the number drawn: never that of a zero weight, which adds nothing.
    found = [np.searchsorted(row, numbers, side="right") for row, numbers in zip(sums, drawn, strict=True)]
    # The product may be rounded up to the whole sum: then it is the last weight that is not zero.
    last = rows.shape[-1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=-1, keepdims=True)
    return np.asarray(np.minimum(np.reshape(found, (len(rows), count)), last), np.int64)


def _without_replacement(rows: Array, count: int, source: np.random.Generator) -> Array:
    """Exponential clocks, each with its weight as its rate, ring in the order of such a choice."""
    # A weight of zero never rings: its time is infinite, or nan, which is sorted last too. Logarithms keep the smallest
    # weights apart from zero.
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.log(source.standard_exponential(rows.shape)) - np.log(rows)
    return np.asarray(np.argsort(times, axis=-1, kind="stable")[:, :count], np.int64)
