"""Arrays, lists and floats of a class inside of a class, which objects reach by attributes alone: inputs as of objects.

``self.Config.weights`` had the function traced again at each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([0.3, 0.7])


def made() -> Any:
    """Classes of its own for each test: they are changed."""

    class Net:
        class Config:
            weights: Any = np.array([1.0, 2.0])
            sizes: Any = [1.0, 2.0]  # noqa: RUF012
            rate = 0.5

            @classmethod
            def total(cls, x: Any) -> Any:
                return np.sum(cls.weights * x)

        class Wide(Config):
            extra: Any = np.array([3.0, 5.0])

        def by_attributes(self, x: Any) -> Any:
            return np.sum(np.tanh(self.Config.weights * x)) * self.Config.rate * self.Config.sizes[1]

        def by_a_method(self, x: Any) -> Any:
            return self.Config.total(x) ** 2

        def by_a_base(self, x: Any) -> Any:
            return np.sum(self.Wide.weights * self.Wide.extra * x**2)

        def by_a_name(self, x: Any) -> Any:
            config = self.Config
            return np.sum(config.weights * x**2)

        def made(self, x: Any) -> Any:
            return np.sum(self.Config().weights * x**2) * (type(self.Config()) is self.Config)

        def asked(self, x: Any) -> Any:
            return np.sum(getattr(self, "Config").weights * x**2)  # noqa: B009

    return Net


def differences(f: Any) -> Any:
    return np.array([(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(2)])


def changes(model: Any) -> None:
    """What may be another thing at a call: elements, arrays, floats, the class of the class and of the object."""
    cls = type(model)

    class Other:
        weights: Any = np.array([7.0, 1.0])
        extra: Any = np.array([1.0, 1.0])
        sizes: Any = [2.0, 3.0]  # noqa: RUF012
        rate = 0.1
        total = staticmethod(lambda x: np.sum(Other.weights * x) * 3)

    class Last(Other):
        weights: Any = np.array([2.0, 9.0])
        total = staticmethod(lambda x: np.sum(Last.weights * x) * 5)

    yield
    cls.Config.weights[1] = 4.0
    yield
    cls.Config.weights = np.array([5.0, 6.0])
    yield
    cls.Config.sizes[1] = 8.0
    cls.Config.rate = 0.25
    yield
    cls.Config = cls.Wide = Other
    yield
    model.Config = model.Wide = Last
    yield


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["by_attributes", "by_a_method", "by_a_base"])
@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_what_is_reached_by_attributes_alone_is_an_input(name: str, backend: str) -> None:
    model = made()()

    def f(x: Any) -> Any:
        return getattr(model, name)(x)

    slope = sg.grad(f, backend=backend)
    for _ in range(6):
        np.testing.assert_allclose(slope(X), differences(f), rtol=1e-6, atol=1e-8)
    for _ in changes(model):
        np.testing.assert_allclose(slope(X), differences(f), rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", ["by_a_name", "made", "asked"])
def test_of_a_class_that_is_handed_on_nothing_is_out_of_date(name: str) -> None:
    model = made()()

    def f(x: Any) -> Any:
        return getattr(model, name)(x)

    slope = sg.grad(f)
    for _ in changes(model):
        np.testing.assert_allclose(slope(X), differences(f), rtol=1e-6, atol=1e-8)


def test_what_is_written_into_it_is_left_as_it_is_by_derivatives_and_done_by_jit() -> None:
    model = made()()

    def f(x: Any) -> Any:
        model.Config.weights[0] += 1.0
        return np.sum(model.Config.weights * x)

    slope, run = sg.grad(f), sg.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(slope(X), [2.0, 2.0])
    assert [run(X) for _ in range(2)] == pytest.approx([2.0 * 0.3 + 1.4, 3.0 * 0.3 + 1.4], rel=1e-14)
    np.testing.assert_array_equal(model.Config.weights, [3.0, 2.0])
