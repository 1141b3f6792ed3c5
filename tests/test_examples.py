"""The examples run, reach what they promise, save what they say and wrap nothing."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.scripts import load

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def tree(name: str) -> ast.Module:
    return ast.parse((EXAMPLES / f"{name}.py").read_text("utf-8"))


def checked(printed: str, name: str) -> int:
    """How many rows the table that `cross_check` printed has; each says that two agree, or that one is missing."""
    lines = printed.partition(f"cross_check({name}): ")[2].splitlines()[2:]
    rows = list(itertools.takewhile(lambda line: line.startswith("  "), lines))
    for row in rows:
        assert row.endswith("agree") or "not run: not installed" in row, row
    if importlib.util.find_spec("jax") is not None:
        assert any("jax jacfwd" in row for row in rows) and any("jax jacrev" in row for row in rows)
    return len(rows)


def test_quickstart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quickstart = load(EXAMPLES / "quickstart.py")
    score = quickstart.main(tmp_path / "output")
    assert 0.97 <= score <= 1
    picture = tmp_path / "output" / "quickstart.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert f"Accuracy on the 113 held-out rows: {score:.1%}" in printed
    assert "import numpy as np" in printed  # the generated module
    assert checked(printed, "loss_gradient") >= 4


def test_quickstart_gradient_is_the_one_written_by_hand() -> None:
    quickstart = load(EXAMPLES / "quickstart.py")
    features, labels, _, _ = quickstart.load()
    weights = np.random.default_rng(3).normal(size=31)
    score = features @ weights[:-1] + weights[-1]
    slope = (1 / (1 + np.exp(-score)) - labels) / len(labels)
    by_hand = np.append(features.T @ slope + 2e-3 * weights[:-1], np.sum(slope))
    np.testing.assert_allclose(quickstart.loss_gradient(weights, features, labels), by_hand, rtol=1e-11, atol=1e-14)


def test_quickstart_without_matplotlib_names_the_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quickstart = load(EXAMPLES / "quickstart.py")
    real_import = builtins.__import__

    def no_matplotlib(name: str, *rest: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real_import(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    saved = quickstart.save_plot(tmp_path / "none.png", np.zeros(31), [1.0], np.zeros((2, 30)), np.array([0.0, 1.0]))
    assert not saved
    assert "srcgrad[examples]" in capsys.readouterr().out
    assert not (tmp_path / "none.png").exists()


def test_digits_mlp(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0.95 <= load(EXAMPLES / "digits_mlp.py").main() <= 1
    assert checked(capsys.readouterr().out, "loss") >= 4


def test_ode_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 < load(EXAMPLES / "ode_fit.py").main() < 0.05
    assert checked(capsys.readouterr().out, "residuals") >= 4


def test_gaussian_process(capsys: pytest.CaptureFixture[str]) -> None:
    example = load(EXAMPLES / "gaussian_process.py")
    error = example.main()
    assert checked(capsys.readouterr().out, "negative_log_likelihood") >= 8
    # Well below the noise of one point: the process averages over its length.
    assert 0 < error < example.NOISE / 1.5


def test_gaussian_process_hands_the_derivatives_to_scipy_unwrapped() -> None:
    """The call reads minimize(f, x0, jac=sg.grad(f), hess=sg.hessian(f)) with f a plain function of the module."""
    module = tree("gaussian_process")
    functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    aliases = {
        node.targets[0].id: node.value.id
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Name)
    }
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and ast.unparse(node.func) == "minimize"]
    assert len(calls) == 1
    f = ast.unparse(calls[0].args[0])
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in calls[0].keywords}
    assert keywords["jac"] == f"sg.grad({f})"
    assert keywords["hess"] == f"sg.hessian({f})"
    assert aliases.get(f, f) in functions


@pytest.mark.parametrize("name", NAMES)
def test_examples_differentiate_plain_numpy(name: str) -> None:
    roots = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            roots.add((node.module or "").partition(".")[0])
    assert roots <= {"__future__", "pathlib", "typing", "numpy", "scipy", "matplotlib", "srcgrad"}
    assert {"numpy", "srcgrad"} <= roots


@pytest.mark.parametrize(
    ("name", "rows", "columns", "counts"),
    [
        ("breast_cancer", 569, 31, [357, 212]),
        ("digits", 1797, 65, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]),
    ],
)
def test_tables_are_whole(name: str, rows: int, columns: int, counts: list[int]) -> None:
    path = EXAMPLES / "data" / f"{name}.csv"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    assert table.shape == (rows, columns)
    assert np.all(np.isfinite(table))
    assert np.bincount(table[:, -1].astype(int)).tolist() == counts
    header = path.read_text("utf-8").partition("\n")[0].split(",")
    assert len(set(header)) == columns
    assert header[-1] == "label"
