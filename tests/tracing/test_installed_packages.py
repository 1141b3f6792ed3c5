"""Packages that are installed are converted as the user's own code is, but for those that run as they are."""

from __future__ import annotations

import importlib
import json
import os
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import srcgrad as sg
from srcgrad.errors import UnsupportedError
from srcgrad.testing import check_grads
from srcgrad.tracing.conversion import convert

X = np.array([1.0, 2.0, 3.0])
PACKAGE = """
import numpy as np

class Model:
    def __init__(self, scale):
        self.scale = scale

    def energy(self, x):
        total = np.array([x[0] * 2.0, x[1]]).sum()
        if x[2] > self.scale:
            total = total * x[2]
        for k in range(40):
            total = total + np.sin(k * x[k % 3])
        return total


def written(x):
    return np.frombuffer(x.tobytes()).sum()
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "some_installed_models.py").write_text(PACKAGE)
    monkeypatch.setattr(convert, "INSTALLED", (os.path.join(os.path.realpath(tmp_path), ""),))
    monkeypatch.setattr(convert, "STANDARD", convert.STANDARD + convert.INSTALLED)  # as without an environment
    monkeypatch.syspath_prepend(tmp_path)
    convert.library_file.cache_clear()
    monkeypatch.delitem(sys.modules, "some_installed_models", raising=False)  # of another test's folder
    yield importlib.import_module("some_installed_models")
    convert.library_file.cache_clear()


def test_an_installed_package_is_one_program(installed: Any) -> None:
    model = installed.Model(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        value, _ = sg.value_and_grad(model.energy)(X)
    np.testing.assert_allclose(value, model.energy(X), rtol=1e-12)
    check_grads(model.energy, (X,))


def test_an_error_in_an_installed_package_names_the_line_of_the_users_that_leads_there(installed: Any) -> None:
    def loss(x: Any) -> Any:
        return 2.0 * installed.written(x)

    with pytest.raises(UnsupportedError) as caught:
        sg.grad(loss)(X)
    first, _, way = str(caught.value).partition("reached from ")
    assert "some_installed_models.py:" in first and "x.tobytes()" in first
    assert way.startswith("test_installed_packages.py:") and "2.0 * installed.written(x)" in way
    with pytest.raises(UnsupportedError) as caught:
        sg.grad(installed.written)(X)
    assert "reached from" not in str(caught.value)


def test_which_files_run_as_they_are() -> None:
    packages = sysconfig.get_paths()["purelib"]
    assert convert.library_file(json.__file__) and convert.library_file(scipy.special.__file__)
    for known in ("numba", "pandas", "matplotlib"):
        assert convert.library_file(os.path.join(packages, known, "core", "types.py"))
    assert not convert.library_file(os.path.join(packages, "torch", "testing", "references.py"))
    assert not convert.library_file(os.path.join(packages, "some_package", "models.py"))
    assert not convert.library_file(os.path.join(packages, "some_module.py"))
    assert not convert.library_file("<string>")


def autograds(name: str) -> Callable[[Any], Any]:
    anp = pytest.importorskip("autograd.numpy")
    special, stats = (importlib.import_module(f"autograd.scipy.{part}") for part in ("special", "stats"))
    cases: dict[str, Callable[[Any], Any]] = {
        "ufuncs": lambda x: anp.sum(anp.exp(-x) * anp.log(x)) + anp.dot(x, x),
        "arrays": lambda x: anp.sum(anp.array([x[0] * 2, x[1]]) * anp.concatenate([x[:1], x[1:2]])),
        "branches": lambda x: anp.where(x > 1.5, anp.exp(-x), x).sum() + anp.mean([x[0], x[1]]),
        "linear algebra": lambda x: anp.linalg.solve(anp.outer(x, x) + anp.eye(3), x)[0] + anp.r_[x, x][4],
        "special": lambda x: anp.sum(special.expit(x) * special.gammaln(x)),
        "distributions": lambda x: sum(stats.norm.logpdf(v, 0.0, 1.0) for v in x),
        "handed on": lambda x: sum(map(anp.exp, x)) + anp.shape(x)[0] * x[0],
    }
    return cases[name]


@pytest.mark.parametrize(
    "name", ["ufuncs", "arrays", "branches", "linear algebra", "special", "distributions", "handed on"]
)
def test_functions_written_on_the_numpy_of_autograd_are_one_program(name: str) -> None:
    f = autograds(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.RetraceWarning)
        value, _ = sg.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    check_grads(f, (X,))


def test_another_function_of_numpys_function_is_no_function_of_autograds() -> None:
    anp = pytest.importorskip("autograd.numpy")

    def summed(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: np.sum(f(x))

    def twice(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: 2.0 * f(x)

    x = np.arange(3.0)
    np.testing.assert_allclose(sg.grad(summed(anp.sin))(x), np.cos(x))
    np.testing.assert_allclose(sg.grad(summed(twice(np.sin)))(x), 2.0 * np.cos(x))
    np.testing.assert_allclose(sg.grad(summed(lambda x: x**2))(x), 2.0 * x)
