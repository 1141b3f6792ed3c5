"""What a call has stored in attributes when it raises an error is there, as in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")


class Model:
    def __init__(self) -> None:
        self.last: Any = 0.0
        self.seen: list[Any] = []

    def raises(self, x: Any) -> Any:
        self.last = x
        if x < 0:
            raise ValueError("too small")
        self.last = self.twice = 2 * x
        return x * x

    def inverts(self, x: Any) -> Any:
        self.last = x
        found = np.linalg.inv(np.array([[x + 1.0, 0.0], [0.0, 1.0]]))
        self.last = found
        return np.sum(found)

    def notes(self, x: Any) -> Any:
        """The list has the number by then: the call cannot be made again."""
        self.seen.append(x)
        self.last = x
        if x < 0:
            raise ValueError("too small")
        self.last = 2 * x
        return x * x

    def in_a_branch(self, x: Any) -> Any:
        if x < 0:
            self.twice = 2 * x
            raise ValueError("too small")
        return x * x

    def in_a_branch_behind_a_note(self, x: Any) -> Any:
        self.seen.append(x)
        self.last = x
        if x < 0:
            self.twice = self.last * 2
            raise ValueError("too small")
        if x > 2.5:
            raise ValueError("too large")
        self.last = 3 * x
        return x * x

    def handles(self, x: Any) -> Any:
        try:
            found = self.raises(x)
        except ValueError:
            found = 3 * x
        self.found = found
        return found * x


def followed(transform: Callable[[Any], Any], name: str) -> list[Any]:
    """What each call raises, and what it leaves."""
    model, found = Model(), []
    f = transform(lambda x: getattr(Model, name)(model, x))
    for x in (2.0, -1.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, -1.0, 2.0):
        try:
            f(x)
        except (ValueError, np.linalg.LinAlgError) as error:
            found.append(error.args)
        found.append({key: np.asarray(value).tolist() for key, value in vars(model).items()})
    return found


NAMES = ("raises", "inverts", "notes", "in_a_branch", "in_a_branch_behind_a_note", "handles")


@pytest.mark.parametrize("name", NAMES)
def test_attributes_are_stored_as_far_as_a_call_has_come(name: str) -> None:
    expected = followed(lambda f: f, name)
    assert followed(sg.jit, name) == expected
    assert followed(sg.grad, name) == expected


@pytest.mark.parametrize("name", NAMES)
def test_so_they_are_where_there_is_to_be_one_program(name: str) -> None:
    """With strict or donated arguments, and by vmap, they were lost."""
    expected = followed(lambda f: f, name)
    if name != "handles":
        assert followed(lambda f: sg.jit(f, strict=True), name) == expected
    assert followed(lambda f: sg.jit(f, donate_argnums=0), name) == expected
    assert followed(lambda f: lambda x: sg.vmap(f)(np.array([x]))[0], name) == expected


def test_one_of_two_errors_is_raised_where_there_is_nothing_else() -> None:
    """What ends a block of the trace left it."""

    def either(x: Any) -> Any:
        if x < 0:
            raise ValueError("too small")
        else:
            raise KeyError("too large")

    for transform in (sg.jit, sg.grad, sg.jit):
        with pytest.raises(ValueError, match="too small"):
            transform(either)(-1.0)
        with pytest.raises(KeyError):
            transform(either)(1.0)


def test_no_call_is_made_again_that_has_printed_before_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    model = Model()

    @sg.jit
    def f(x: Any) -> Any:
        model.last = x
        print(x)
        if x < 0:
            raise ValueError("too small")
        return x

    assert f(1.0) == 1.0
    with pytest.raises(ValueError, match="too small"):
        f(-2.0)
    assert (capsys.readouterr().out, model.last) == ("1.0\n-2.0\n", -2.0)


def test_an_argument_written_into_and_an_attribute_are_what_they_are_before_the_error() -> None:
    model, x = Model(), np.array([-1.0, 2.0])

    @sg.jit
    def f(x: Any) -> Any:
        x[1] = 5.0
        model.last = x[1] * 2
        if x[0] < 0:
            raise ValueError("too small")
        return x

    f(np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="too small"):
        f(x)
    assert model.last == 10.0 and x[1] == 5.0
