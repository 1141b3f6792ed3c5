"""Tensors of random numbers, and random numbers written into tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from srcgrad.torch import random
from srcgrad.torch.dispatch import refuse_leaf
from srcgrad.torch.graph import moved_on
from srcgrad.torch.modes import MODE
from srcgrad.torch.ops.creation import asked, check_tensor, finished, numpy_dtype, shape_of
from srcgrad.torch.ops.define import method, store
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = [
    "bernoulli",
    "binomial",
    "get_rng_state",
    "manual_seed",
    "multinomial",
    "normal",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]

manual_seed = random.manual_seed
seed = random.seed


def get_rng_state() -> Tensor:
    """The state of the default generator, as a tensor of bytes."""
    return wrapped(random.get_rng_state())


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator back to a state that `get_rng_state` gave."""
    random.set_rng_state(new_state._data)


def rand(*size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
         device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
         **options: Any) -> Tensor:  # fmt: skip
    """Numbers drawn uniformly from [0, 1)."""
    drawn = random.uniform(asked(size, options), dtype=numpy_dtype(dtype), generator=generator)
    return finished(drawn, requires_grad, device, out)


def randn(*size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
          device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
         **options: Any) -> Tensor:  # fmt: skip
    """Numbers drawn from the normal distribution of mean 0 and variance 1."""
    drawn = random.normal(asked(size, options), dtype=numpy_dtype(dtype), generator=generator)
    return finished(drawn, requires_grad, device, out)


def randint(low: int, high: Any = None, size: Any = None, *, generator: Any = None, out: Any = None,
            dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Integers from ``low`` (0 unless given) up to ``high``, which is left out."""
    if size is None:
        low, high, size = 0, low, high
    drawn = random.integers(shape_of((size,)), low, high, numpy_dtype(dtype, np.dtype(np.int64)), generator=generator)
    return finished(drawn, requires_grad, device, out)


def randperm(n: int, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """The numbers from 0 to n - 1 in random order."""
    drawn = random.permutation(n, numpy_dtype(dtype, np.dtype(np.int64)), generator=generator)
    return finished(drawn, requires_grad, device, out)


def rand_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """`rand` of the shape and dtype of another tensor."""
    check_tensor("rand_like", input)
    return rand(input._data.shape, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad)


def randn_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """`randn` of the shape and dtype of another tensor."""
    check_tensor("randn_like", input)
    return randn(input._data.shape, dtype=input.dtype if dtype is None else dtype, requires_grad=requires_grad)


def randint_like(input: Tensor, low: int, high: int | None = None, *, dtype: Any = None, **options: Any) -> Tensor:
    """`randint` of the shape and dtype of another tensor."""
    check_tensor("randint_like", input)
    if high is None:
        low, high = 0, low
    return randint(low, high, input._data.shape, dtype=input.dtype if dtype is None else dtype)


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None, dtype: Any = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Normal numbers of means and standard deviations, each a number or a tensor."""
    given = [x for x in (mean, std) if isinstance(x, Tensor)]
    kind = numpy_dtype(dtype, np.result_type(*[x._data.dtype for x in given]) if given else None)
    means, deviations = (x._data if isinstance(x, Tensor) else x for x in (mean, std))
    shape = None if size is None else shape_of((size,))
    return finished(random.normal(shape, means, deviations, kind, generator=generator), requires_grad, out=out)


def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:
    """1 with the probability that each element gives (or ``p``), else 0."""
    if p is not None:
        return store(out, wrapped(random.bernoulli(p, input._data.shape, input._data.dtype, generator=generator)))  # type: ignore[no-any-return]
    return store(out, wrapped(random.bernoulli(input._data, generator=generator)))  # type: ignore[no-any-return]


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Poisson numbers of the rates that the elements give."""
    return wrapped(random.poisson(input._data, generator=generator))


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """How many of ``count`` trials succeed, each with probability ``prob``."""
    return wrapped(random.binomial(count._data, prob._data, generator=generator))


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Tensor:
    """Positions drawn with the weights of each row."""
    return store(out, wrapped(random.multinomial(input._data, num_samples, replacement, generator=generator)))  # type: ignore[no-any-return]


method("bernoulli")(bernoulli)
method("multinomial")(multinomial)


# --- written into a tensor --------------------------------------------------------------------------


def drawn_into(name: str, draw: Callable[..., Any]) -> None:
    """Install a method that overwrites the tensor with what ``draw(array, ...)`` gives."""

    def fill(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        if MODE.get().grad and self.requires_grad:
            refuse_leaf(self)
        self._data[...] = draw(self._data, *args, generator=generator, **kwargs)
        moved_on(self._counter)
        return self

    fill.__name__ = fill.__qualname__ = name
    fill.__doc__ = f"Overwrite the tensor with random numbers, as `torch.Tensor.{name}` does."
    method(name)(fill)


def between(x: Any, low: Any = None, high: Any = None, *, generator: Any) -> Any:
    """Integers: over the range of the dtype, up to one bound, or between two."""
    if low is None:
        bottom, top = random.full_range(x.dtype)
    else:
        bottom, top = (0, low) if high is None else (low, high)
    return random.integers(x.shape, bottom, top, x.dtype, generator=generator)


def either(x: Any, p: Any = 0.5, *, generator: Any) -> Any:
    """Bernoulli numbers of one probability, or one per element."""
    probability = p._data if isinstance(p, Tensor) else p
    return random.bernoulli(probability, x.shape, x.dtype, generator=generator)


def spread(x: Any, mean: float = 0, std: float = 1, *, generator: Any) -> Any:
    """Normal numbers."""
    return random.normal(x.shape, mean, std, x.dtype, generator=generator)


def evenly(x: Any, a: float = 0, b: float = 1, *, generator: Any) -> Any:
    """Uniform numbers from a to b."""
    return random.uniform(x.shape, a, b, x.dtype, generator=generator)


drawn_into("random_", between)
drawn_into("bernoulli_", either)
drawn_into("normal_", spread)
drawn_into("uniform_", evenly)
drawn_into(
    "exponential_", lambda x, lambd=1, *, generator: random.exponential(x.shape, lambd, x.dtype, generator=generator)
)
drawn_into(
    "cauchy_",
    lambda x, median=0, sigma=1, *, generator: random.cauchy(x.shape, median, sigma, x.dtype, generator=generator),
)
drawn_into(
    "log_normal_",
    lambda x, mean=1, std=2, *, generator: random.log_normal(x.shape, mean, std, x.dtype, generator=generator),
)
drawn_into("geometric_", lambda x, p, *, generator: random.geometric(x.shape, p, x.dtype, generator=generator))
