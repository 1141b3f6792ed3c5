"""`cross_check` accepts right derivatives, says which policy explains a difference, and rejects each planted fault."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import ArgumentError, GradientCheckError, IntegerInputError, UnknownBackendError
from srcgrad.ir.opdef import REGISTRY
from srcgrad.testing import CrossCheck, Row, bench, cross_check, policy_points, programs

X = np.array([0.3, -1.2, 0.7])
NUMPY = ["numpy"]
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")


def verdicts(table: CrossCheck, word: str = "") -> list[str]:
    return [row.verdict for row in (*table.rows, *table.nearby) if word in f"{row.left} {row.right}"]


def policies(table: CrossCheck, word: str = "") -> set[str]:
    return {name for row in table.rows if word in f"{row.left} {row.right}" for name in row.policies}


# --- right derivatives ------------------------------------------------------------------------------------------


def in_place(x: Any) -> Any:
    x[0] *= x[1]
    x += 1.0
    return x[::-1] ** 3


def branching(x: Any) -> Any:
    total = 1.0
    for _ in range(3):
        total = total * x if x > 0 else total - x
    return total


RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (np.sin, (X,)),
    "0-d": (lambda x: np.exp(x) * x, (0.4,)),
    "control flow": (branching, (1.3,)),
    "in place": (in_place, (X,)),
    "two arguments": (lambda x, y: np.hypot(x, y) @ x, (X, X[::-1] + 2.0)),
    "a tree": (lambda p, n: {"a": p["w"] @ p["x"], "b": (p["w"] ** n, "text")}, ({"w": X, "x": X[:, None]}, 3)),
    "complex to real": (lambda z: np.abs(z) ** 3, (np.array([1 + 2j, 0.5j]),)),
    "complex to complex": (lambda z: z * np.conj(z) + z**2, (np.array([1 + 2j, 0.5j]),)),
    "real to complex": (lambda x: np.exp(1j * x), (X,)),
    "single precision": (lambda x: np.sum(np.exp(x) * x), (X.astype(np.float32),)),
    "half precision": (lambda x: x * x, (np.array([0.5, 2.0], np.float16),)),
    "large scale": (lambda x: np.log(x) * 1e8, (np.array([1e6, 2e-6]),)),
    "terms that cancel": (lambda x: np.sum(np.exp(x) / np.sum(np.exp(x))), (X,)),
    "very different sizes": (lambda x: 1e8 * x[0] + np.sin(x[1]) * 1e-4, (X,)),
    "ill conditioned": (lambda x: np.linalg.solve(np.vander(np.linspace(0.1, 1, 5) * x), np.arange(5.0)), (1.1,)),
    "constant": (lambda x: np.float64(2.0), (X,)),
    "stopped": (lambda x: x * sg.stop_gradient(x) ** 2, (X,)),
    "checkpoint": (sg.checkpoint(lambda x: np.sin(x) * x), (X,)),
    "a matrix": (lambda a: np.linalg.inv(a) @ np.ones(2), (np.array([[2.0, 0.3], [0.1, 1.0]]),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_agree(name: str) -> None:
    f, args = RIGHT[name]
    table = cross_check(f, *args, backends=NUMPY, order=2)
    assert set(verdicts(table)) == {"agree"} and not table.nearby
    assert {row.order for row in table.rows} == {0, 1, 2}
    assert len(table.rows) == 1 + 3 + 4


@needs_jax
@pytest.mark.parametrize("name", ["two arguments", "complex to complex", "in place", "single precision", "stopped"])
def test_right_derivatives_agree_everywhere(name: str) -> None:
    f, args = RIGHT[name]
    table = cross_check(f, *args, backends=["numpy", "xla"])
    assert set(verdicts(table)) == {"agree"}
    pairs = [(row.left, row.right) for row in table.rows]
    assert ("xla", "numpy") in pairs
    assert ("xla forward", "numpy forward") in pairs and ("xla reverse", "numpy reverse") in pairs
    assert ("numpy forward", "jax jacfwd") in pairs and ("numpy reverse", "jax jacrev") in pairs


@needs_jax
def test_second_derivatives_everywhere() -> None:
    table = cross_check(lambda x: np.sum(np.tanh(x) * x[0]), X, order=2, backends=["numpy", "xla"])
    assert set(verdicts(table)) == {"agree"}
    assert sum(row.order == 2 for row in table.rows) == 1 + 3 + 4 + 1


def test_an_empty_problem() -> None:
    assert verdicts(cross_check(lambda x: x * 2.0, np.zeros((0, 3)), backends=NUMPY)) == ["not run"]


# --- wrong rules ------------------------------------------------------------------------------------------------


def ruled(primal: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Any:
    """A function with the slope of its forward rule given."""

    @sg.custom_jvp
    def f(x: Any) -> Any:
        return primal(x)

    f.defjvp(lambda primals, tangents: (primal(primals[0]), slope(primals[0]) * tangents[0]))
    return f


def pulled(slope: Callable[[Any], Any]) -> Any:
    @sg.custom_vjp
    def f(x: Any) -> Any:
        return x**3

    f.defvjp(lambda x: (x**3, x), lambda x, ct: (slope(x) * ct,))
    return f


def first_changed(x: Any) -> Any:
    return 3 * x**2 * np.where(np.arange(x.size) == 777, 1.001, 1.0)


wrong_abs = ruled(np.abs, lambda x: 1.001 * np.sign(x))
wrong_relu = ruled(lambda x: np.maximum(x, 0.0), lambda x: np.where(x > 0, 1.001, 0.0))
wrong_curve = ruled(lambda x: x**3, lambda x: 3 * sg.stop_gradient(x) * x)
wrong_root = ruled(np.sqrt, lambda x: 0.501 / np.sqrt(x))

WRONG: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "sign": (pulled(lambda x: -3 * x**2), (X,), 1),
    "factor": (pulled(lambda x: 1.001 * 3 * x**2), (X,), 1),
    "a small factor": (pulled(lambda x: (1 + 1e-8) * 3 * x**2), (X,), 1),
    "zero": (pulled(lambda x: 0.0 * x), (X,), 1),
    "nan": (pulled(lambda x: np.nan * x), (X,), 1),
    "infinite": (pulled(lambda x: np.inf * x), (X + 3,), 1),
    "one entry of many": (pulled(first_changed), (np.linspace(0.5, 1.0, 4000),), 1),
    "the gradient of many": (lambda x: np.sum(pulled(first_changed)(x)), (np.linspace(0.5, 1.0, 4000),), 1),
    "second order only": (wrong_curve, (X,), 2),
    "second order only, of many": (wrong_curve, (np.linspace(0.5, 1.0, 400),), 2),
    "a small output beside a large one": (lambda x: {"a": 1e8 * x, "b": WRONG["factor"][0](x)}, (X,), 1),
    "abs near its kink": (wrong_abs, (np.array([1e-3, 1.0]),), 1),
    "abs very near its kink": (wrong_abs, (1e-9,), 1),
    "abs beside its kink": (wrong_abs, (np.array([0.0, 1.0]),), 1),
    "abs at its kink": (wrong_abs, (0.0,), 2),
    "relu near its kink": (wrong_relu, (np.array([1e-3, -1.0]),), 1),
    "relu at its kink": (wrong_relu, (0.0,), 1),
    "beside a kink": (lambda x: np.abs(x) + WRONG["factor"][0](x), (np.array([0.0, 1.0]),), 1),
    "under a kink": (lambda x: np.abs(x - 1.0) * WRONG["factor"][0](x), (np.array([1.0, 2.0]),), 1),
    "behind a tie": (lambda x: np.max(WRONG["factor"][0](x)), (np.array([1.0, 1.0, 1.0]),), 1),
    "beside a stopped value": (lambda x: sg.stop_gradient(x) * WRONG["factor"][0](x), (X,), 1),
    "near a pole": (wrong_root, (np.array([1e-3, 1.0]),), 1),
    "beside a pole": (wrong_root, (np.array([0.0, 1.0]),), 1),
    "behind cholesky": (
        lambda a: np.linalg.cholesky(WRONG["factor"][0](a)),
        (np.array([[2.0, 0.5], [0.5, 1.0]]),),
        1,
    ),
    "only at a limit": (ruled(lambda x: x**2.0, lambda x: np.where(x == 0, 5.0, 2 * x)), (np.array([0.0, 1.0]),), 1),
    "nan only at a limit": (ruled(lambda x: x**2.0, lambda x: np.where(x == 0, np.nan, 2 * x)), (np.array([0.0]),), 1),
    "nan only at a kink": (ruled(np.abs, lambda x: np.where(x == 0, np.nan, np.sign(x))), (np.array([0.0, 1.0]),), 1),
    "infinite only at a kink": (ruled(np.abs, lambda x: np.where(x == 0, np.inf, np.sign(x))), (np.array([0.0]),), 1),
    "complex": (ruled(np.conj, lambda z: 1.0), (np.array([1 + 2j]),), 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_are_found_by_differences(name: str) -> None:
    f, args, order = WRONG[name]
    with pytest.raises(GradientCheckError, match="disagree"):
        cross_check(f, *args, backends=NUMPY, order=order)


@needs_jax
@pytest.mark.parametrize("name", ["abs at its kink", "relu at its kink", "behind a tie"])
def test_wrong_rules_are_found_by_jax(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """jax differentiates what the rule is a rule of: it needs no differences to find the fault."""
    f, args, _ = WRONG[name]
    monkeypatch.setattr(bench.Bench, "difference_row", agreeing)
    with pytest.raises(GradientCheckError, match=r"disagree[^\n]*\n.*jax.*\n.*nearby"):
        cross_check(f, *args, backends=["numpy", "xla"])


def agreeing(self: Any, chain: Any, found: Any) -> Row:
    return Row(1, "numpy", "differences", 0.0, 0.0, 0.0, "agree")


def test_a_fault_at_second_order_passes_at_first() -> None:
    cross_check(wrong_curve, X, backends=NUMPY)


# --- faults of one backend, of one mode -------------------------------------------------------------------------


def spoil(monkeypatch: pytest.MonkeyPatch, backend: str, chain: tuple[str, ...]) -> None:
    """Change what one backend gives by one part in a thousand."""
    call = programs.Programs.__call__
    make = programs.Programs.__init__

    def init(self: Any, found: Any, order: int, along: Any, name: Any) -> None:
        make(self, found, order, along, name)
        self.name = name

    def spoiled(self: Any, arguments: Any) -> Any:
        result = call(self, arguments)
        if self.name == backend and chain in result:
            result[chain] = result[chain] * 1.001 + 1e-3
        return result

    monkeypatch.setattr(programs.Programs, "__init__", init)
    monkeypatch.setattr(programs.Programs, "__call__", spoiled)


@pytest.mark.parametrize("chain", [("fwd",), ("rev",), ("fwd", "rev")])
@pytest.mark.parametrize("x", [X, np.zeros(3), np.linspace(0, 1, 600)], ids=["smooth", "kink", "many"])
def test_a_fault_in_one_mode(monkeypatch: pytest.MonkeyPatch, chain: tuple[str, ...], x: Any) -> None:
    spoil(monkeypatch, "numpy", chain)
    name = {"fwd": "forward", "rev": "reverse"}[chain[-1]]
    with pytest.raises(GradientCheckError, match=f"numpy {name}.*disagree") as caught:
        cross_check(lambda x: np.sum(np.abs(x)) + np.sum(x**2), x, order=len(chain), backends=NUMPY)
    assert at_the_point_itself(caught.value)


@needs_jax
@pytest.mark.parametrize(
    ("chain", "left"), [((), "xla and numpy"), (("fwd",), "xla forward"), (("rev",), "xla reverse")]
)
@pytest.mark.parametrize("x", [X, np.zeros(3)], ids=["smooth", "kink"])
def test_a_fault_in_one_backend(monkeypatch: pytest.MonkeyPatch, chain: tuple[str, ...], left: str, x: Any) -> None:
    spoil(monkeypatch, "xla", chain)
    with pytest.raises(GradientCheckError, match=f"{left}.* disagree"):
        cross_check(lambda x: np.abs(x) + x, x, backends=["numpy", "xla"])


# --- policy points ----------------------------------------------------------------------------------------------


def where_root(x: Any) -> Any:
    return np.where(x > 0, np.sqrt(x), 0.0)


POLICY: dict[str, tuple[Callable[..., Any], Any, set[str]]] = {
    "a tie of three": (np.max, np.array([1.0, 1.0, 1.0, 0.0]), {"ties"}),
    "a tie of two": (lambda x: np.maximum(x, 0.0), np.array([0.0, 1.0]), set()),
    "sort": (np.sort, np.array([2.0, 1.0, 1.0]), {"ties"}),
    "abs": (np.abs, np.array([0.0, 2.0]), set()),
    "a kink and a slope": (lambda x: np.abs(x) * np.exp(x) + x, np.array([0.0, 2.0]), set()),
    "sqrt": (np.sqrt, np.array([0.0, 2.0]), {"infinite"}),
    "sqrt squared": (lambda x: np.sqrt(x) ** 2, np.array([0.0, 2.0]), {"limits"}),
    "1 / x": (lambda x: 1 / x, np.array([0.0, 2.0]), {"undefined"}),
    "where": (where_root, np.array([0.0, 2.0]), {"steps"}),
    "a branch": (lambda x: x**2 if x > 0 else -x, 0.0, {"steps"}),
    "floor": (lambda x: np.floor(x) * x, np.array([2.0, 0.5]), {"steps"}),
    "cholesky": (np.linalg.cholesky, np.array([[2.0, 0.5], [0.5, 1.0]]), {"symmetric"}),
    "x**1.5": (lambda x: x**1.5, np.array([0.0, 1.0]), {"limits"}),
    "eigvalsh": (np.linalg.eigvalsh, np.array([[2.0, 0.5], [0.5, 1.0]]), {"symmetric"}),
    "eigvalsh at a tie": (lambda a: np.linalg.eigvalsh(a) ** 2, np.eye(2), {"degenerate"}),
    "singular values at a tie": (lambda a: np.linalg.svd(a, compute_uv=False)[:1], np.eye(2), {"degenerate"}),
}


@pytest.mark.parametrize("name", POLICY)
def test_policies_explain_differences(name: str) -> None:
    f, x, expected = POLICY[name]
    table = cross_check(f, x, backends=NUMPY)
    assert policies(table, "differences") >= expected
    assert policies(table) <= {"ties", "infinite", "undefined", "steps", "symmetric", "limits", "degenerate"} and (
        bool(policies(table)) == bool(expected)
    )
    assert bool(table.nearby) == bool(expected)
    assert "DISAGREE" not in str(table)
    for row in table.rows:
        assert (row.verdict == "policy") == bool(row.policies)


JAX_POLICY: dict[str, tuple[Callable[..., Any], Any, set[str]]] = {
    "abs": (np.abs, np.array([0.0, 2.0]), {"kinks"}),
    "norm": (np.linalg.norm, np.zeros(2), {"kinks"}),
    "hypot": (lambda x: np.hypot(x[0], x[1]), np.zeros(2), {"kinks"}),
    "std": (np.std, np.ones(3), {"kinks"}),
    "where": (where_root, np.array([0.0, 2.0]), {"structural-zeros"}),
    "x**0.": (lambda x: x**0.0, 0.0, {"limits", "structural-zeros"}),
}


@needs_jax
@pytest.mark.parametrize("name", JAX_POLICY)
def test_policies_explain_what_jax_gives(name: str) -> None:
    f, x, expected = JAX_POLICY[name]
    table = cross_check(f, x, backends=["numpy", "xla"])
    found = policies(table, "jax")
    assert found <= expected
    assert set(verdicts(table, "xla")) == {"agree"}
    if "policy" in verdicts(table, "jax"):
        assert found and table.nearby


def test_a_kink_at_second_order() -> None:
    """The second derivative is structurally 0 there, and differences of the first see the jump."""
    table = cross_check(np.abs, np.array([0.0, 2.0]), backends=NUMPY, order=2)
    assert [row.policies for row in table.rows if row.policies] == [("kinks",)]
    assert table.rows[4].note == "1 of 8 entries"


def at_the_point_itself(error: GradientCheckError) -> bool:
    """Whether what disagrees does so at the point, not at one nearby."""
    return error.message.splitlines()[2].startswith("cross_check(")


def test_only_the_entries_that_a_policy_reaches_are_explained() -> None:
    """Beside a row with a tie a wrong rule is found at the point itself, not only nearby."""
    wrong = ruled(lambda x: x, lambda x: np.array([[1.0], [1.001]]))
    x = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    with pytest.raises(GradientCheckError) as caught:
        cross_check(lambda x: np.max(wrong(x), axis=1), x, backends=NUMPY)
    assert "entry [1, 2] of the argument, entry [1] of the output: 1.001" in caught.value.message
    assert at_the_point_itself(caught.value)


def test_a_matrix_that_stands_for_a_symmetric_one_is_compared_along_symmetric_directions() -> None:
    table = cross_check(np.linalg.cholesky, np.array([[2.0, 0.5], [0.5, 1.0]]), backends=NUMPY, order=2)
    assert policies(table) == {"symmetric"}


Z = np.array([[2.0, 0.5], [0.5, 1.0]])
POINTS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("abs", (np.array([0.0, -0.0, 1e-300]),), {}, [True, True, False]),
    ("abs", (np.array([0j, 1e-300j]),), {}, [True, False]),
    ("hypot", (np.array([0.0, 0.0]), np.array([0.0, 1e-9])), {}, [True, False]),
    ("reduce_norm", (np.array([[0.0, 0.0], [0.0, 1e-9]]),), {"axes": (1,)}, [True, False]),
    ("maximum", (np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-15])), {}, [True, False]),
    ("reduce_max", (np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),), {"axes": (1,)}, [True, False]),
    ("reduce_min", (np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),), {"axes": (1,)}, [False, True]),
    ("sort", (np.array([2.0, 1.0, 3.0, 1.0]),), {"axis": 0}, [True, True, False, False]),
    ("pow", (np.array([0.0, 1.0]), np.array([2.0, 0.0])), {}, [True, False]),
    ("reduce_prod", (np.array([[0.0, 1.0], [1.0, 1e-9]]),), {"axes": (1,)}, [True, False]),
    ("sinc", (np.array([0.0, 1.0]),), {}, [True, False]),
    ("xlogy", (np.array([0.0, 1.0]), np.array([0.5, 0.5])), {}, [True, False]),
    ("arctan2", (np.array([0.0, 0.0, 1.0]), np.array([-1.0, 1.0, 0.0])), {}, [True, False, False]),
    ("floor", (np.array([2.0, 2.5]),), {}, [True, False]),
    ("rint", (np.array([2.0, 2.5]),), {}, [False, True]),
    ("remainder", (np.array([4.0, 5.0]), np.array([2.0, 2.0])), {}, [True, False]),
    ("less", (np.array([1.0, 2.0]), np.array([1.0, 3.0])), {}, [True, False]),
    ("logaddexp", (np.array([-np.inf, 0.0]), np.array([-np.inf, 0.0])), {}, [True, False]),
    ("det", (np.array([[1.0, 2.0], [2.0, 4.0]]),), {}, True),
    ("det", (Z,), {}, False),
    ("svd", (np.eye(2),), {}, True),
    ("svd", (Z,), {}, False),
    ("eig", (np.eye(2),), {}, True),
    ("eig", (np.array([[1.0, 2.0], [0.0, 3.0]]),), {}, False),
]


@pytest.mark.whole
@pytest.mark.parametrize(("name", "operands", "attrs", "expected"), POINTS)
def test_where_each_op_has_its_policy(name: str, operands: Any, attrs: Any, expected: Any) -> None:
    found = policy_points.POLICIES[name].where(*operands, **attrs)
    assert np.array_equal(np.broadcast_to(found, np.shape(expected)), expected)


def test_every_policy_belongs_to_an_op() -> None:
    assert policy_points.POLICIES.keys() | policy_points.ONE_TRIANGLE.keys() <= REGISTRY.keys()


# --- the report -------------------------------------------------------------------------------------------------


def test_the_message_names_the_pair_the_argument_the_entry_and_both_numbers() -> None:
    wrong = pulled(lambda x: 2 * x**2)

    def loss(x: Any, parameters: Any) -> Any:
        return x * wrong(parameters["w"][1])

    with pytest.raises(GradientCheckError) as caught:
        cross_check(loss, 2.0, {"w": (1.0, np.array([1.0, 2.0]))}, backends=NUMPY)
    lines = caught.value.message.splitlines()
    assert lines[0] == (
        "cross_check(loss): numpy forward and differences disagree on the derivative in argument 1['w'][1]"
    )
    assert lines[1].startswith("  entry [1] of the argument, entry [1] of the output: 16.0 (numpy forward), 2")
    assert "relative 3.3e-01, allowed 1." in lines[1]
    assert lines[2].startswith("cross_check(loss): 4 inputs, 2 outputs, whole matrices")
    assert isinstance(caught.value, AssertionError)


def test_the_table() -> None:
    table = cross_check(lambda x: np.sum(x**2), np.array([1.0, 2.0]), backends=NUMPY)
    assert str(table).splitlines() == [
        "cross_check(<lambda>): 2 inputs, 1 output, whole matrices",
        "                                             ulp  relative    bound",
        "  value       f = numpy                      0.0   0.0e+00  1.0e-10  agree",
        "  derivative  numpy forward = complex steps  0.0   0.0e+00  1.0e-10  agree",
        "  derivative  numpy reverse = complex steps  0.0   0.0e+00  1.0e-10  agree",
        "  derivative  numpy reverse = numpy forward  0.0   0.0e+00  1.0e-10  agree",
    ]
    assert repr(table) == str(table)


def test_large_problems_are_compared_along_random_directions() -> None:
    table = cross_check(lambda x: np.sum(np.exp(x) * x), np.linspace(0, 1, 3000), backends=NUMPY, seed=7)
    assert "along 3 random directions of seed=7" in str(table)
    assert set(verdicts(table)) == {"agree"}
    f, args, _ = WRONG["one entry of many"]
    with pytest.raises(GradientCheckError, match=r"entry \[777\].*along random direction \d of seed=11"):
        cross_check(f, *args, backends=NUMPY, seed=11)


def test_policies_of_large_problems() -> None:
    x = np.linspace(-1, 1, 801)
    x[400:403] = 0.0
    assert set(verdicts(cross_check(np.abs, x, backends=NUMPY))) == {"agree"}
    tied = np.concatenate([np.ones(3), np.linspace(0, 0.5, 700)])
    assert policies(cross_check(np.max, tied, backends=NUMPY)) == {"ties"}


def test_without_jax_rows_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["srcgrad.testing.cross_check"]  # the package has the function under this name
    monkeypatch.setattr(module, "available", lambda: {"numpy": True, "xla": False})
    table = cross_check(np.sin, X)
    rows = [row for row in table.rows if row.verdict == "not run"]
    assert [row.right for row in rows] == ["xla", "jax jacfwd", "jax jacrev"]
    assert "not installed" in rows[0].note and "not run: not installed" in str(table)


@needs_jax
def test_what_a_backend_cannot_run_is_said() -> None:
    table = cross_check(lambda x: x * x, np.array([1.0, 2.0], np.longdouble), backends=["numpy", "xla"])
    rows = [row for row in table.rows if "xla" in (row.left, row.right) or "jax" in row.right]
    assert rows and {row.verdict for row in rows} == {"not run"}
    assert "longdouble" in rows[0].note


def test_tolerances() -> None:
    f = pulled(lambda x: (1 + 1e-6) * 3 * x**2)
    assert "DISAGREE" not in str(cross_check(f, X, backends=NUMPY, rtol=1e-5))
    assert "DISAGREE" not in str(cross_check(f, X, backends=NUMPY, ulp=1e11))
    for options in ({"rtol": 1e-8}, {"ulp": 1e3}, {}):
        with pytest.raises(GradientCheckError):
            cross_check(f, X, backends=NUMPY, **options)


def test_arguments_that_are_not_differentiated() -> None:
    wrong = WRONG["factor"][0]

    def f(x: Any, y: Any, scale: Any = 1.0) -> Any:
        return x * wrong(y) * scale

    cross_check(f, X, X, argnums=0, backends=NUMPY)
    with pytest.raises(GradientCheckError, match="in argument 1"):
        cross_check(f, X, X, backends=NUMPY)
    table = cross_check(lambda x, scale: x * scale, X, kwargs={"scale": 3.0}, backends=NUMPY)
    assert set(verdicts(table)) == {"agree"} and "3 inputs" in str(table)


def test_arguments_are_not_changed() -> None:
    x = X.copy()
    cross_check(in_place, x, backends=NUMPY)
    assert np.array_equal(x, X)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="order"):
        cross_check(np.sin, X, order=3)
    with pytest.raises(ArgumentError, match="rtol or ulp"):
        cross_check(np.sin, X, rtol=1.0, ulp=1.0)
    with pytest.raises(ArgumentError, match="ulp must be"):
        cross_check(np.sin, X, ulp=-1.0)
    with pytest.raises(ArgumentError, match="takes a function"):
        cross_check(3, X)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="argnums=1"):
        cross_check(np.sin, X, argnums=1)
    with pytest.raises(IntegerInputError, match="float"):
        cross_check(np.sin, 3)
    with pytest.raises(UnknownBackendError, match="no backend"):
        cross_check(np.sin, X, backends=["xlaa"])
