"""Functions that import modules of the user's where they use them: one program, which sees what changes there."""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg

RULES = """
import numpy as np
SCALE, COUNT, TABLE, LOG = 2.0, 3, [1.0, 4.0], []
WEIGHTS = np.array([1.0, 2.0])
def helper(x):
    return np.sin(x) * SCALE
def noted(x):
    LOG.append(1.0)
    return x
class Model:
    rate = 2.0
    def __init__(self, a):
        self.a = a
    def __call__(self, x):
        return self.a * x * self.rate * SCALE
class Other(Model):
    def __call__(self, x):
        return self.a * x ** 2
"""
USERS = """
import math
def of_module(x):
    import lent.rules as rules
    return rules.helper(x) * rules.SCALE * rules.TABLE[1]
def of_package(x):
    import lent.rules
    return lent.rules.helper(x) * lent.rules.COUNT
def of_names(x):
    from lent.rules import SCALE as s, COUNT, WEIGHTS
    return x * s * COUNT * WEIGHTS[1]
def of_class(x):
    from lent.rules import Model
    return Model(3.0)(x)
def relative(x):
    from . import rules
    from .rules import TABLE
    return rules.helper(x) + TABLE[0] * x
def inside(x):
    from lent.rules import helper, SCALE
    def inner(y):
        return helper(y) * SCALE
    return inner(x)
def in_a_loop(x):
    from lent.rules import helper
    total = 0.0
    for k in range(40):
        total += helper(x + k)
    return total
def in_a_branch(x):
    if x > 0.0:
        from lent.rules import helper
        y = helper(x)
    else:
        from lent.rules import SCALE
        y = SCALE * x
    return y
def either(x):
    if math.pi > 3.0:
        from lent.rules import helper as rule
    else:
        from lent.rules import noted as rule
    return rule(x)
def asked(x):
    from lent.rules import Model
    model = Model(x)
    return model(x) if isinstance(model, Model) else x
def two_of_one_value(x):
    if math.pi > 4.0:
        from lent.others import COUNT as n
    else:
        from lent.rules import COUNT as n
    return x * n
class Holder:
    def run(self, x):
        from lent.rules import helper, Other
        return helper(x) + Other(x)(math.cos(x))
HOLDER = Holder()
def in_a_method(x):
    return HOLDER.run(x)
def through_a_module(x):
    from lent import rules
    return rules.np.sin(x) * rules.SCALE
"""
NAMES = (
    *("of_module", "of_package", "of_names", "of_class", "relative", "inside", "in_a_loop", "in_a_branch", "asked"),
    *("in_a_method", "through_a_module", "either", "two_of_one_value"),
)


@pytest.fixture
def lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A package with `rules` and `users` of them."""
    package = tmp_path / "lent"
    package.mkdir()
    for name, text in (("__init__", ""), ("rules", RULES), ("others", "COUNT = 3"), ("users", USERS)):
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield importlib.import_module("lent.users")
    for name in [name for name in sys.modules if name.partition(".")[0] == "lent"]:
        del sys.modules[name]


def slope_of(f: Callable[[Any], Any], x: float) -> float:
    return float((f(x + 1e-6) - f(x - 1e-6)) / 2e-6)


def change_scale(rules: Any) -> None:
    rules.SCALE = 5.0


def change_count(rules: Any) -> None:
    rules.COUNT = 7


def change_table(rules: Any) -> None:
    rules.TABLE[:] = [2.0, 3.0]


def change_weights(rules: Any) -> None:
    rules.WEIGHTS = np.array([3.0, 5.0])


def change_helper(rules: Any) -> None:
    rules.helper = lambda x: x**3


def change_rate(rules: Any) -> None:
    rules.Model.rate = 3.0


def change_class(rules: Any) -> None:
    rules.Model = rules.Other


def change_module(rules: Any) -> None:
    other = types.ModuleType("lent.rules")
    exec(compile(RULES.replace("2.0, 3, [1.0", "9.0, 4, [6.0"),
                 str(rules.__file__), "exec"), vars(other))  # fmt: skip
    sys.modules["lent.rules"] = sys.modules["lent"].rules = other  # type: ignore[attr-defined]


def change_the_attribute(rules: Any) -> None:
    """``import a.b as c`` reads the attribute of the package, ``from a.b import c`` asks ``sys.modules``."""
    sys.modules["lent"].rules = types.SimpleNamespace(**{**vars(rules), "SCALE": 11.0})  # type: ignore[attr-defined]


CHANGES: list[Callable[[Any], None]] = [
    *(change_scale, change_count, change_table, change_weights, change_helper, change_rate, change_class),
    *(change_module, change_the_attribute),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_that_imports_a_module_of_the_users_is_one_program(lent: Any, name: str) -> None:
    f = getattr(lent, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        slope, value = sg.grad(f), sg.jit(f, strict=True)
        for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):
            assert slope(x) == pytest.approx(slope_of(f, x), rel=1e-6)
            assert value(x) == pytest.approx(f(x), rel=1e-12)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_what_changes_in_an_imported_module_changes_the_next_call(
    lent: Any, name: str, change: Callable[[Any], None]
) -> None:
    f = getattr(lent, name)
    slope = sg.grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        for x in (0.5, 0.7, 0.9, 1.1, 1.3, 1.5):  # the last ones in machine code
            slope(x)
        change(sys.modules["lent.rules"])
        for x in (0.7, 1.3):
            assert slope(x) == pytest.approx(slope_of(f, x), rel=1e-6)


def test_a_module_that_only_a_call_imports_is_imported_where_python_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lent_late.py").write_text("rate = 3.0\n")
    (tmp_path / "lent_never.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def f(x: float, never: bool) -> Any:
        from lent_late import rate

        if never:
            import lent_never

            return lent_never.rate * x
        return rate * x

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", sg.RetraceWarning)
            slope = sg.grad(f)
            assert [slope(2.0, False) for _ in range(6)] == [3.0] * 6
            sys.modules["lent_late"].rate = 4.0  # type: ignore[attr-defined]
            assert slope(2.0, False) == 4.0
        with pytest.raises(RuntimeError, match="imported"):
            slope(2.0, True)
        del sys.modules["lent_late"]
        assert slope(2.0, False) == 3.0
    finally:
        sys.modules.pop("lent_late", None)


def test_a_name_that_a_module_no_longer_has_is_an_error_again(lent: Any) -> None:
    def f(x: float) -> Any:
        try:
            from lent.rules import SCALE
        except ImportError:
            SCALE = 10.0
        return x * SCALE

    slope = sg.grad(f)
    assert [slope(2.0) for _ in range(6)] == [2.0] * 6
    del sys.modules["lent.rules"].SCALE  # type: ignore[attr-defined]
    with pytest.warns(sg.RetraceWarning, match="does not exist"):
        assert slope(2.0) == 10.0


def test_a_variable_that_an_inner_function_assigns_is_not_what_was_imported(lent: Any) -> None:
    other = types.SimpleNamespace(SCALE=10.0)

    def f(x: float) -> Any:
        from lent import rules

        def change() -> None:
            nonlocal rules
            rules = other

        change()
        return x * rules.SCALE

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        slope = sg.grad(f)
        assert [slope(0.5) for _ in range(6)] == [10.0] * 6
        other.SCALE = 20.0
        assert slope(0.5) == 20.0


def test_a_journal_of_a_module_that_something_else_reads(lent: Any) -> None:
    def f(x: float) -> Any:
        from lent.rules import LOG, noted

        y = noted(x)
        return y * len(LOG)

    def g(x: float) -> Any:
        from lent import rules

        y = rules.noted(x)
        return y * len(rules.LOG)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        assert [sg.grad(f)(2.0) for _ in range(3)] == [1.0, 2.0, 3.0]
        assert [sg.grad(g)(2.0) for _ in range(3)] == [4.0, 5.0, 6.0]


class Standing:
    """What a package may put in the place of a module: it passes questions on."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)


class Lazy(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["module"], name)


def standing(module: types.ModuleType) -> Any:
    return Standing(module)


def lazy(module: types.ModuleType) -> Any:
    found = Lazy(module.__name__)
    vars(found)["module"] = module
    return found


def asking(module: types.ModuleType) -> Any:
    found = types.ModuleType(module.__name__)
    vars(found)["__getattr__"] = lambda name: getattr(module, name)
    return found


@pytest.mark.parametrize("made", [standing, lazy, asking])
@pytest.mark.parametrize("name", ["of_names", "of_class", "inside", "in_a_branch", "in_a_method"])
def test_what_a_module_makes_when_it_is_asked_is_never_stale(
    lent: Any, name: str, made: Callable[[types.ModuleType], Any]
) -> None:
    f, rules = getattr(lent, name), importlib.import_module("lent.rules")
    sys.modules["lent.rules"] = made(rules)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        slope = sg.grad(f)
        assert slope(0.5) == pytest.approx(slope_of(f, 0.5), rel=1e-6)
        for change in (change_scale, change_count, change_weights, change_helper, change_rate, change_class):
            change(rules)
            assert slope(0.5) == pytest.approx(slope_of(f, 0.5), rel=1e-6)
    sys.modules["lent.rules"] = types.SimpleNamespace(**{**vars(rules), "SCALE": 11.0})  # type: ignore[assignment]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        assert slope(0.5) == pytest.approx(slope_of(f, 0.5), rel=1e-6)


def test_what_a_module_makes_anew_or_with_a_warning_is_made_at_each_call(lent: Any) -> None:
    rules = importlib.import_module("lent.rules")
    rules.UNIT, count = 3.0, iter(range(100))  # type: ignore[attr-defined]

    def made(name: str) -> Any:
        if name == "OLD":
            warnings.warn("OLD goes", DeprecationWarning, stacklevel=2)
            return 2.0
        if name == "NEXT":
            return float(next(count))
        raise AttributeError(name)

    vars(rules)["__getattr__"] = made
    slope = sg.grad(lambda x: x * rules.UNIT)
    assert slope(1.0) == 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        first, second = (sg.grad(lambda x: x * rules.NEXT)(1.0) for _ in range(2))
        assert first < second
        old = sg.grad(lambda x: x * rules.OLD)
        for _ in range(2):
            with pytest.warns(DeprecationWarning, match="OLD goes"):
                assert old(1.0) == 2.0
