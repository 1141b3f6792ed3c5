"""JAX's names of static arguments are taken by `jit`; what is static is so without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcgrad as sg

X = np.array([1.0, 2.0])


def powered(x: Any, n: int, mode: str = "power") -> Any:
    return x**n if mode == "power" else x * n


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"static_argnums": 3}, "names 3"),
        ({"static_argnums": (0, -4)}, "names -4"),
        ({"static_argnums": "n"}, "must be an int"),
        ({"static_argnames": ("n", "kind")}, "names 'kind'"),
        ({"static_argnames": 1}, "must be a name"),
    ],
)
def test_static_arguments_that_the_function_has_not_are_errors(options: dict[str, Any], text: str) -> None:
    with pytest.raises(sg.errors.ArgumentError, match=text):
        sg.jit(powered, **options)
    sg.jit(lambda *args, **kwargs: args[0], static_argnums=7, static_argnames="any")(X)


@pytest.mark.parametrize(
    "options", [{"static_argnums": (1, 2)}, {"static_argnames": ("n", "mode")}, {"static_argnums": 1}]
)
def test_static_arguments_give_what_they_give_unnamed(options: dict[str, Any]) -> None:
    found = sg.jit(powered, **options)
    np.testing.assert_array_equal(found(X, 3), X**3)
    np.testing.assert_array_equal(found(X, 2, mode="times"), X * 2)
    np.testing.assert_array_equal(sg.jit(**options)(powered)(X, 2), X**2)
