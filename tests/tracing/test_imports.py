"""Functions that import modules where they use them: as with those that the whole file imports, one program for all
calls.
"""

from __future__ import annotations

import subprocess
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg


def last_three(x: Any) -> Any:
    from collections import deque

    kept: deque[Any] = deque(maxlen=3)
    total = 0.0
    for value in x:
        kept.append(value)
        total = total + np.tanh(sum(kept))
    return total


def pairs(x: Any) -> Any:
    import itertools

    return sum(a * b for a, b in itertools.combinations(x, 2))


def folded(x: Any) -> Any:
    import functools as tools
    import operator

    def inner(values: Any) -> Any:
        return tools.reduce(operator.mul, values)

    return inner(x) + inner(x[1:])


def copied(x: Any) -> Any:
    import copy
    import math as m

    y = copy.deepcopy(x)
    y[0] = 0.0
    return np.sum(y * x) * m.pi


def of_scipy(x: Any) -> Any:
    import scipy.linalg as la
    from scipy.special import expit

    return la.norm(expit(x))


def quiet(x: Any) -> Any:
    import warnings
    from contextlib import nullcontext, suppress

    with warnings.catch_warnings(), suppress(ValueError), nullcontext():
        warnings.simplefilter("ignore")
        return np.sum(np.log(x))


def by_default(x: Any, xp: Any = None) -> Any:
    if xp is None:
        import numpy as xp  # type: ignore[no-redef]
    return xp.sum(xp.tanh(x) * x)


def tried(x: Any) -> Any:
    try:
        import scipy.special as special
    except ImportError:
        special = None  # type: ignore[assignment]

    def inner(y: Any) -> Any:
        return special.erf(y) if special is not None else y

    return np.sum(inner(x))


def not_installed(x: Any) -> Any:
    try:
        import no_such_package as fast
    except ImportError:
        fast = None
    return np.sum(x**2) if fast is None else fast.sum_of_squares(x)


def one_or_the_other(x: Any) -> Any:
    try:
        import no_such_package as xp
    except ImportError:
        import numpy as xp
    return xp.sum(x**2)


def of_no_package(x: Any) -> Any:
    try:
        from no_such_package.inner import scale
    except ModuleNotFoundError:
        scale = 2.0
    return np.sum(x) * scale


FUNCTIONS = [
    last_three,
    pairs,
    folded,
    copied,
    of_scipy,
    quiet,
    by_default,
    tried,
    not_installed,
    one_or_the_other,
    of_no_package,
]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_function_that_imports_what_it_uses_is_one_program(f: Callable[[Any], Any]) -> None:
    x, direction = np.linspace(0.5, 1.5, 6), np.linspace(1.0, -2.0, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        slope = sg.grad(f)
        found = [slope(x), slope(x), slope(x + 0.1)]
    for point, gradient in zip((x, x, x + 0.1), found, strict=True):
        h = 1e-6
        wanted = (f(point + h * direction) - f(point - h * direction)) / (2 * h)
        assert np.dot(gradient, direction) == pytest.approx(wanted, rel=1e-6)


def test_a_module_by_default_is_another_one_that_is_given() -> None:
    class Halves:
        sum = staticmethod(lambda x: 0.5 * np.sum(x))
        tanh = staticmethod(np.sin)

    x = np.linspace(0.5, 1.5, 3)
    slope = sg.grad(by_default)
    for _ in range(6):
        np.testing.assert_allclose(slope(x), np.tanh(x) + x / np.cosh(x) ** 2, rtol=1e-14)
    np.testing.assert_allclose(slope(x, Halves), 0.5 * (np.sin(x) + x * np.cos(x)), rtol=1e-14)
    np.testing.assert_allclose(slope(x, xp=np), np.tanh(x) + x / np.cosh(x) ** 2, rtol=1e-14)


def test_what_a_module_under_a_name_of_two_draws_is_drawn_at_each_call() -> None:
    def f(x: Any, xp: Any = None) -> Any:
        if xp is None:
            import numpy as xp  # type: ignore[no-redef]
        return xp.sum(x) * xp.random.normal()

    with pytest.warns(sg.RetraceWarning, match=r"numpy\.random\.normal draws at each call"):
        slope = sg.grad(f)
        assert slope(np.ones(2))[0] != slope(np.ones(2))[0]


@pytest.mark.parametrize("loaded", [False, True], ids=["found", "loaded"])
def test_a_package_that_is_there_later_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loaded: bool) -> None:
    x = np.linspace(0.5, 1.5, 3)
    slope = sg.grad(not_installed)
    for _ in range(6):
        np.testing.assert_allclose(slope(x), 2.0 * x, rtol=1e-14)
    text = "def sum_of_squares(x):\n    return 3.0 * (x**2).sum()\n"
    if loaded:
        module = types.ModuleType("no_such_package")
        exec(text, vars(module))
        monkeypatch.setitem(sys.modules, "no_such_package", module)
    else:
        (tmp_path / "no_such_package.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
    try:
        np.testing.assert_allclose(slope(x), 6.0 * x, rtol=1e-14)
    finally:
        sys.modules.pop("no_such_package", None)


def test_a_package_that_is_not_there_is_pythons_error() -> None:
    def f(x: Any) -> Any:
        import no_such_package

        return no_such_package.sum(x)

    for run in (sg.grad(f), sg.jit(f)):
        for _ in range(2):
            with pytest.raises(ModuleNotFoundError, match="no_such_package"):
                run(np.ones(2))


def test_draws_and_clocks_that_a_function_imports_are_made_at_each_call() -> None:
    def f(x: float) -> Any:
        import random
        from time import perf_counter

        return x * random.random(), x * perf_counter()

    g = sg.jit(f)
    (one, before), (other, after) = g(1.0), g(1.0)
    assert one != other
    assert after > before


def test_a_module_that_changes_is_not_compiled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: float) -> float:
        import sys

        return x * len(sys.argv)

    with pytest.warns(sg.RetraceWarning, match=r"sys\.argv"):
        slope = sg.grad(f)
        monkeypatch.setattr(sys, "argv", ["a"])
        assert slope(2.0) == 1.0
        monkeypatch.setattr(sys, "argv", ["a", "b", "c"])
        assert slope(2.0) == 3.0


def test_a_part_of_scipy_that_nobody_has_imported_yet(tmp_path: Path) -> None:
    script = tmp_path / "alone.py"
    script.write_text(
        "import sys, warnings, numpy as np, srcgrad as sg\n"
        "def f(x):\n    import scipy.linalg as la\n    return la.norm(np.array([x, 0.0]))\n"
        "assert 'scipy.linalg' not in sys.modules\n"
        "warnings.simplefilter('error')\n"
        "assert sg.grad(f)(2.0) == 1.0 and sg.grad(f)(-3.0) == -1.0\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert not done.returncode, done.stderr
