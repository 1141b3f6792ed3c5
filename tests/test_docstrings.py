"""The examples in docstrings run, and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import warnings

import pytest

import srcgrad

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(srcgrad.__path__, "srcgrad.")
    if not module.name.endswith("__main__")
)
WITHOUT_EXAMPLE: dict[str, str] = {
    "RetraceWarning": "a warning",
    "SrcgradError": "the base of the errors",
    "errors": "a module",
    "testing": "a module",
}


@pytest.mark.whole
@pytest.mark.parametrize("name", ["srcgrad", *MODULES])
def test_examples_run(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", srcgrad.RetraceWarning)
        result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(set(srcgrad.__all__) - WITHOUT_EXAMPLE.keys()))
def test_every_public_name_has_an_example(name: str) -> None:
    thing = getattr(srcgrad, name)
    assert thing.__doc__
    assert ">>>" in thing.__doc__
