"""Tables that import what fills them when an entry is asked for."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from srcgrad.ir.registry import Registry

NAMES = ("first", "second", "third")
OF_SCIPY = {
    "distributions",
    "fits",
    "joint_distributions",
    "laws",
    "laws_at_ends",
    "laws_pearson",
    "laws_truncated",
    "matrix_functions",
    "own_laws",
    "special",
    "special_functions",
    "written_loops",
}
"""What is imported when a function of SciPy is met, besides the modules named after it."""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[str, int]:
    """A table that three modules of a package of its own fill, each with its name."""
    package = f"fills_{tmp_path.name}"
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").write_text("from srcgrad.ir.registry import Registry\nTABLE = Registry()\n")
    for number, name in enumerate(NAMES):
        (folder / f"{name}.py").write_text(f"from {package} import TABLE\nTABLE[{name!r}] = {number}\n")
    monkeypatch.syspath_prepend(tmp_path)
    found: Registry[str, int] = __import__(package).TABLE
    found.filled_by(package, NAMES)
    return found


def loaded(table: Registry[str, int]) -> list[str]:
    return [name for name in NAMES if dict.__contains__(table, name)]


def test_an_entry_imports_its_module_and_those_before_it(table):
    assert loaded(table) == []
    assert table["second"] == 1
    assert loaded(table) == ["first", "second"]
    assert "third" in table
    assert table.later == []


@pytest.mark.parametrize(
    "whole", [len, list, lambda t: list(t.items()), lambda t: list(t.values()), lambda t: list(t.keys()), dict, set]
)
def test_what_takes_all_entries_imports_all(table, whole):
    whole(table)
    assert loaded(table) == list(NAMES)
    assert len(whole(table)) == 3 if whole is not len else whole(table) == 3


def test_keys_that_no_module_may_have_import_nothing(table):
    table.may_hold = lambda key: key in NAMES  # type: ignore[misc]
    assert table.get("other") is None
    assert table.get("other", 5) == 5
    assert "other" not in table
    with pytest.raises(KeyError):
        table["other"]
    assert loaded(table) == []
    assert table.get("first") == 0


def test_a_missing_entry_is_a_key_error(table):
    with pytest.raises(KeyError, match="other"):
        table["other"]
    assert table.later == []


def in_a_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


SELDOM = (
    *("srcgrad.ir.ops.bessel", "srcgrad.ir.ops.eigen", "srcgrad.ir.transforms.record_control"),
    *("srcgrad.ir.passes.at_once", "srcgrad.ir.passes.spectral", "srcgrad.tracing.conversion.statements"),
    *("srcgrad.tracing.functions.fourier", "srcgrad.tracing.functions.ragged", "numpy.random", "scipy"),
)


def test_a_simple_gradient_does_not_read_what_it_does_not_need(tmp_path, monkeypatch):
    """Of ops, passes and rules, where its machine code is there: what starts a process costs all users."""
    monkeypatch.setenv("SRCGRAD_CACHE_DIR", str(tmp_path))
    program = f"""
        import sys
        import numpy as np, srcgrad as sg
        gradient = sg.grad(lambda x: np.sum(np.tanh(x) ** 2))(np.zeros(3))
        print(gradient.tolist(), [name for name in {SELDOM!r} if name in sys.modules])
        """
    in_a_new_process(program)
    assert in_a_new_process(program) == "[0.0, 0.0, 0.0] []"


def test_every_module_of_ops_and_rules_is_named():
    """One that nothing names would never be imported, and its entries missed."""
    printed = in_a_new_process(
        """
        import pkgutil, sys
        import srcgrad.tracing.functions as functions, srcgrad.ir.ops as ops
        from srcgrad.ir.opdef import REGISTRY
        from srcgrad.tracing.ragged import METHODS as ragged_methods, RULES as ragged_rules
        from srcgrad.tracing.tracer import FUNCTIONS, METHODS
        for table in (REGISTRY, FUNCTIONS, METHODS, ragged_methods, ragged_rules):
            list(table)
        there = [name for _, name, _ in pkgutil.iter_modules(ops.__path__, "srcgrad.ir.ops.")]
        there += [name for _, name, _ in pkgutil.iter_modules(functions.__path__, "srcgrad.tracing.functions.")]
        missed = {name.rpartition(".")[2] for name in there if name not in sys.modules}
        print(sorted(name for name in missed if not name.startswith("scipy_")))
        """
    )
    assert printed == str(sorted(OF_SCIPY))
