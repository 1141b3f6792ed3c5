"""Objects of the user's classes beside traced values: their own code is not run, and not lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import DTypeError, UnsupportedError


class Settings(dict[str, Any]):
    """Its keys are its attributes, and what is no key is a KeyError."""

    __getattr__ = dict.__getitem__


def raising(error: type[Exception]) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        raise error("hostile")

    return method


def guarded(self: Any, name: str) -> Any:
    if name == "__class__":
        return object.__getattribute__(self, name)
    raise RuntimeError("hostile")


OWN: dict[str, dict[str, Any]] = {
    "looks up": {"__getattr__": raising(KeyError)},
    "intercepts": {"__getattribute__": guarded},
    "has all": {"__getattr__": lambda self, name: self},
    "has no hash": {"__hash__": raising(KeyError)},
    "is equal to all": {"__hash__": lambda self: hash(len), "__eq__": lambda self, other: True},
    "is a dict": {},
}


def made(name: str) -> Any:
    return Settings(weight=2.0) if name == "is a dict" else type("Own", (), {"weight": 2.0, **OWN[name]})()


USES = [
    lambda x, thing: x * 2.0 if thing is not None else x,
    lambda x, thing: x * (2.0 if [thing][0] is thing else 3.0),
    lambda x, thing: [x * 2.0, thing][0],
]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("use", range(len(USES)))
def test_looking_at_an_object_runs_no_code_of_its_class(name: str, use: int) -> None:
    """A KeyError of a dict whose keys are its attributes was called a fault of srcgrad, which asked it for more."""
    thing, function, held = made(name), USES[use], SimpleNamespace()
    for f in (lambda x: function(x, thing), lambda x: function(x, (thing, held)[0])):
        assert sg.jit(f)(1.5) == 3.0 and sg.grad(f)(1.5) == 2.0
    if use == 0:
        assert sg.grad(function)(1.5, thing) == 2.0


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_dict_whose_keys_are_its_attributes_is_read_at_each_call() -> None:
    settings = Settings(weight=2.0, count=2)

    def f(x: Any) -> Any:
        for _ in range(settings.count):
            x = x * settings.weight
        return x

    jitted = sg.jit(f)
    assert [jitted(1.0), sg.grad(f)(1.0)] == [4.0, 4.0]
    settings.update(weight=3.0, count=3)
    assert [jitted(1.0), sg.grad(f)(1.0)] == [27.0, 27.0]


class Scaled(np.ndarray[Any, Any]):
    """An array with a factor that multiplications apply."""

    def __mul__(self, other: Any) -> Any:
        return np.asarray(self) * other * 10.0

    __rmul__ = __mul__
    __array_priority__ = 1.0


class Named(np.ndarray[Any, Any]):
    """An array that only carries a name."""

    def __array_finalize__(self, origin: Any) -> None:
        self.name = getattr(origin, "name", "")

    def __repr__(self) -> str:
        return f"Named({self.name})"


X = np.array([1.0, 2.0, 3.0])
MASKED = np.ma.masked_array(X, [0, 1, 0])
WITH_RULES: list[Any] = [(np.eye(3) + 1.0).view(np.matrix), MASKED, X.view(Scaled)]
MEETINGS: list[Callable[[Any, Any], Any]] = [
    lambda x, a: x * a,
    lambda x, a: np.multiply(x, a),
    lambda x, a: np.dot(x, a),
    lambda x, a: np.where(x > 0.0, x, a),
    lambda x, a: np.concatenate([x, np.ravel(x)] if a.ndim > 1 else [x, a]) + 0.0 * x[0] * a[0],
]


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("meet", MEETINGS)
@pytest.mark.parametrize("array", WITH_RULES, ids=lambda array: type(array).__name__)
def test_arrays_that_compute_by_rules_of_their_own_are_no_plain_ones(array: Any, meet: Callable[..., Any]) -> None:
    """The gradient of a sum times a masked array counted what is masked, that with a matrix multiplied by elements."""
    for transform in (sg.grad, sg.jacfwd):
        with pytest.raises(DTypeError, match=f"{type(array).__name__} is not supported beside traced values"):
            transform(lambda x: np.sum(meet(x, array)))(X)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_arrays_that_only_carry_something_along_are_plain_ones() -> None:
    named: Any = X.view(Named)
    with tempfile.NamedTemporaryFile() as file:
        mapped = np.memmap(file, dtype=float, shape=(3,), mode="w+")
        mapped[:] = X
        for array in (named, mapped):
            np.testing.assert_array_equal(sg.grad(lambda x, array=array: np.sum(x * array))(X), X)
    np.testing.assert_array_equal(sg.grad(lambda x: np.sum(x * MASKED.filled(0.0)))(X), [1.0, 0.0, 3.0])


def scaled_deviations(x: Any) -> Any:
    """As libraries that take masked arrays too begin."""
    if np.ma.isMaskedArray(x) or np.ma.is_masked(x) or isinstance(x, np.ma.MaskedArray):
        x = x.filled(np.nan)
    kept = ~np.ma.getmaskarray(x) if np.ma.getmask(x) is np.ma.nomask else x > 0.0
    return np.sum(kept * x**2)


def test_whether_an_array_is_masked_is_known_in_one_program() -> None:
    """Functions of astropy, which ask, were traced again at each call."""
    np.testing.assert_array_equal(sg.grad(scaled_deviations)(X), 2 * X)
    assert sg.jit(scaled_deviations, strict=True)(X) == scaled_deviations(X)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_an_index_of_a_derived_class_is_the_array_under_it() -> None:
    """A masked index left out what is masked, which NumPy does not."""
    above = MASKED > 1.0
    np.testing.assert_array_equal(X[above], [2.0, 3.0])
    np.testing.assert_array_equal(sg.grad(lambda x: np.sum(x[above]))(X), [0.0, 1.0, 1.0])


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize(
    "other", [np.array([Fraction(1, 2), 1.0, 2.0], dtype=object), Fraction(1, 2), SimpleNamespace()], ids=repr
)
def test_python_objects_in_an_operation_are_refused(other: Any) -> None:
    """They were a fault of srcgrad."""
    with pytest.raises(UnsupportedError, match=r"np\.multiply would work on Python's objects"):
        sg.grad(lambda x: np.sum(np.multiply(x, other)))(X)


class Answering(type):
    """A metaclass whose classes have an attribute of any name."""

    def __getattr__(cls, name: str) -> float:
        return 3.0

    def __call__(cls) -> float:
        return 2.0


class Answered(metaclass=Answering):
    pass


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_classes_whose_metaclass_makes_attributes_up() -> None:
    """They had fields, as dataclasses and named tuples have: an internal error."""
    assert sg.grad(lambda x: x * Answered())(1.0) == 2.0
    assert sg.grad(lambda x: x * Answered.anything)(1.0) == 3.0
