"""Arrays of texts, dates and records, captured or given: one program, not used after they have been changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import srcgrad as sg
from srcgrad.errors import DTypeError
from srcgrad.tracing.tables import is_table

X = np.array([0.5, 1.2, 3.3, 2.0])
TEXTS = np.array(["a", "b", "a", "c"])
MADE: dict[str, Callable[[], np.ndarray[Any, Any]]] = {
    "texts": TEXTS.copy,
    "bytes": lambda: TEXTS.astype("S"),
    "objects": lambda: TEXTS.astype(object),
    "dates": lambda: np.array(["2020-01-01", "2020-01-02", "2020-01-01", "2020-01-03"], "M8[D]"),
    "durations": lambda: np.array([1, 2, 1, 3], "m8[s]"),
    "backwards": lambda: np.array(["c", "a", "b", "a"])[::-1],
}
USES: dict[str, Callable[[Any, Any], Any]] = {
    "mask": lambda x, table: np.sum(x[table == table[0]] ** 2),
    "where": lambda x, table: np.sum(np.where(table == table[0], x, x**2)),
    "groups": lambda x, table: sum(np.mean(x[table == key]) ** 2 for key in np.unique(table)),
    "codes": lambda x, table: np.sum(np.array([1.0, 2.0, 3.0])[np.unique(table, return_inverse=True)[1]] * x),
    "loop": lambda x, table: sum(value**2 for key, value in zip(table, x, strict=True) if key == table[0]),
    "pairs": lambda x, table: np.sum((x[:, None] - x) ** 2 * (table[:, None] == table)),
}


def differences(f: Callable[[Any], Any]) -> Any:
    return np.array([(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(len(X))])


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", MADE)
def test_tables_are_compiled_in_while_they_hold_the_same(name: str, use: str) -> None:
    table, given = MADE[name](), USES[use]

    def captured(x: Any) -> Any:
        return given(x, table)

    slope, of_both = sg.grad(captured), sg.grad(given)
    for changed in (False, True):
        if changed:
            table[1] = table[0]
        expected = differences(captured)
        for _ in range(6):
            np.testing.assert_allclose(slope(X), expected, rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(of_both(X, table), expected, rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(of_both(X, table.copy()), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
def test_records_and_the_functions_of_texts_and_dates_are_constants() -> None:
    rows = np.array([(2.0, "a", "2020-01-03"), (3.0, "b", "2020-01-04")], [("u", float), ("n", "U2"), ("d", "M8[D]")])
    record = rows.view(np.recarray)

    def total(x: Any) -> Any:
        texts = np.char.upper(rows["n"]) == "A"
        days = (rows["d"] - rows["d"].min()) / np.timedelta64(1, "D")
        return np.sum(x * rows["u"] + x * texts) + np.sum(x * days * record.u) + np.sum(x[np.is_busday(rows["d"])])

    for _ in range(4):
        np.testing.assert_array_equal(sg.grad(total)(X[:2]), [4.0, 6.0])
    rows["u"] *= 2
    np.testing.assert_array_equal(sg.grad(total)(X[:2]), [6.0, 12.0])


@pytest.mark.parametrize("backend", ["numpy", "llvm", "xla"])
def test_tables_are_constants_for_all_transforms(backend: str) -> None:
    if backend == "xla":
        pytest.importorskip("jax")
    mask = USES["mask"]
    with sg.use_backend(backend):
        np.testing.assert_allclose(sg.jit(mask)(X, TEXTS), X[0] ** 2 + X[2] ** 2)
        np.testing.assert_allclose(sg.hessian(mask)(X, TEXTS), np.diag([2.0, 0.0, 2.0, 0.0]))
        np.testing.assert_allclose(sg.vmap(mask, in_axes=(0, None))(np.stack([X, 2 * X]), TEXTS), [11.14, 44.56])
        value, pullback = sg.vjp(mask, X, TEXTS)
        slope, nothing = pullback(1.0)
        np.testing.assert_allclose(slope, [1.0, 0.0, 6.6, 0.0])
        assert nothing is None
        assert sg.jvp(lambda x: mask(x, TEXTS), (X,), (X,))[1] == pytest.approx(2 * value)


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
def test_a_table_that_the_function_writes_is_written_at_each_call() -> None:
    def marking(x: Any, table: Any) -> Any:
        table[0] += "!"
        return np.sum(x[table == "a"])

    def marking_its_own(x: Any) -> Any:
        own[0] += "!"
        return np.sum(x[own == "a"])

    table, own = TEXTS.astype(object), TEXTS.astype(object)
    fast, slope = sg.jit(marking), sg.grad(marking_its_own)
    for call, args, changed, expected in ((fast, (X, table), table, 3.3), (slope, (X,), own, [0.0, 0.0, 1.0, 0.0])):
        with pytest.warns(sg.RetraceWarning, match="writes into (table|own), the array that"):
            np.testing.assert_array_equal(call(*args), expected)
        assert changed[0] == "a!"
        call(*args)
        assert changed[0] == "a!!"
    kept = TEXTS.astype(object)
    np.testing.assert_array_equal(sg.grad(marking)(X, kept), [0.0, 0.0, 1.0, 0.0])
    assert kept[0] == "a"  # what grad is given stays as it is


def test_a_table_that_is_returned_is_a_copy_for_each_call() -> None:
    def both(x: Any, table: Any) -> Any:
        return 2 * x, table, np.array(["u", "v"])

    fast = sg.jit(both)
    for _ in range(6):
        _, table, made = fast(1.0, TEXTS)
        assert table.tolist() == ["a", "b", "a", "c"]
        assert made.tolist() == ["u", "v"]
        table[0], made[0] = "z", "z"
    assert TEXTS[0] == "a"


def test_tables_of_what_can_change_and_slopes_of_texts_are_refused() -> None:
    with pytest.raises(DTypeError, match="an array of dtype object"):
        sg.grad(lambda x, things: np.sum(x))(X, np.array([[], print], object))
    held = np.empty(1, object)
    held[0] = [1]
    assert not is_table(held)
    with pytest.raises(DTypeError, match="grad of an array of dtype <U1"):
        sg.grad(USES["mask"], 1)(X, TEXTS)


def sparse(kind: str) -> Any:
    return scipy.sparse.coo_array(np.diag([1.0, 2.0, 3.0, 4.0]) + np.diag([0.5] * 3, 1)).asformat(kind)


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia"])
@pytest.mark.parametrize(
    "of",
    [
        lambda a, x: x @ (a.T @ x),
        lambda a, x: np.sum(a.dot(x) ** 2) / a.shape[0] / a.nnz,
        lambda a, x: np.sum(a.toarray() @ x) + np.sum(a.diagonal() * x),
        lambda a, x: np.sum(a.tocsr().multiply(2.0) @ x),
        lambda a, x: np.sum((a + a.T) @ x**2),
    ],
)
def test_what_captured_sparse_matrices_have_is_compiled_in(kind: str, of: Callable[[Any, Any], Any]) -> None:
    matrix = sparse(kind)

    def total(x: Any) -> Any:
        return of(matrix, x)

    slope = sg.grad(total)
    for _ in range(2):
        for _ in range(4):
            np.testing.assert_allclose(slope(X), differences(total), rtol=1e-7, atol=1e-7)
        matrix.data *= 2.0


def test_a_captured_sparse_matrix_that_the_function_writes_is_written_at_each_call() -> None:
    matrix = sparse("csr")

    def doubling(x: Any) -> Any:
        held = matrix.data
        held *= 2.0
        return np.sum(matrix @ x)

    slope = sg.grad(doubling)
    with pytest.warns(sg.RetraceWarning, match="writes into matrix, the csr_array that"):
        np.testing.assert_allclose(slope(X), [2.0, 5.0, 7.0, 9.0])
    np.testing.assert_allclose(slope(X), [4.0, 10.0, 14.0, 18.0])


# --- what traced indices pick ---------------------------------------------------------------------------------------

MANY = np.array(["a", "b", "c"])[np.arange(400) % 7 % 3]
DAYS = np.arange("2020-01-01", "2021-02-04", dtype="M8[D]")
ROWS = np.array([(0.5 * k, "x" if k % 3 else "y") for k in range(400)], [("u", float), ("n", "U1")])
SOME, EVEN = np.arange(399, 0, -2), np.arange(400) % 2 == 0
LINE = np.linspace(0.1, 1.0, 400)
PICKS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: np.sum(x[SOME] * (MANY[SOME] != "b")),
    "mask": lambda x: np.sum(x[EVEN][MANY[EVEN] == "a"]),
    "order": lambda x: np.sum(np.sort(x) * np.arange(400) * (MANY[np.argsort(x)] == "a")),
    "two": lambda x: np.sum(x[SOME] * (MANY[SOME] == MANY[SOME[::-1]])),
    "with all": lambda x: np.sum(x[:200] * (MANY[SOME] < MANY[:200])),
    "isin": lambda x: np.sum(x[SOME] * np.isin(MANY[SOME], ["a", "c"])),
    "objects": lambda x: np.sum(x[SOME] * (MANY.astype(object)[SOME] == "a")),
    "bytes": lambda x: np.sum(x[SOME] * (MANY.astype("S")[SOME] >= b"b")),
    "dates": lambda x: np.sum(x[SOME] * ((DAYS[SOME] - DAYS[0]) / np.timedelta64(1, "D"))),
    "later": lambda x: np.sum(x[SOME] * (DAYS[SOME] > DAYS[SOME[::-1]])),
    "spans": lambda x: np.sum(x[:98] * (DAYS[:200][SOME[102:]] - DAYS[:200][SOME[101:199]] < np.timedelta64(-1, "D"))),
    "months": lambda x: np.sum(x[SOME] * DAYS[SOME].astype("M8[M]").astype(int)),
    "records": lambda x: np.sum(x[SOME] * ROWS[SOME]["u"] * (ROWS["n"][SOME] == "y")),
    "one": lambda x: x[np.argmax(x)] * (2.0 if MANY[np.argmax(x)] == "a" else 3.0),
}


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", PICKS)
def test_texts_dates_and_records_that_traced_indices_pick(name: str) -> None:
    of, weights = PICKS[name], np.linspace(1.0, 2.0, 400)
    fast, slope = sg.jit(of), sg.grad(of)
    for _ in range(3):
        np.testing.assert_allclose(fast(LINE), of(LINE), rtol=1e-13)
        step = 1e-6 * weights
        along = (of(LINE + step) - of(LINE - step)) / 2e-6
        np.testing.assert_allclose(slope(LINE) @ weights, along, rtol=1e-7)


def by_index(x: Any) -> Any:
    total = 0.0
    for k in range(400):
        if MANY[k] == "a" and MANY[k] != MANY[k - 1]:
            total = total + x[k] ** 2
    return total


def by_item(x: Any) -> Any:
    total = 0.0
    for name, day, value in zip(MANY, DAYS, x, strict=False):
        if name != "b" and day > DAYS[100]:
            total = total + value**2
    return total


def by_item_of_a_list(x: Any) -> Any:
    total, names = 0.0, MANY.tolist()
    for k, name in enumerate(names):
        total = total + x[k] ** 2 * {"a": 1.0, "b": x[0], "c": 3.0}[name] + (names[k - 1] == "c")
    return total


def ratings(x: Any) -> Any:
    rating, total = dict.fromkeys("abc", 1.0), 0.0
    for k in range(399):
        winner, loser = MANY[k], MANY[k + 1]
        chance = 1 / (1 + np.exp(rating[loser] - rating[winner]))
        total = total - np.log(chance)
        rating[winner] = rating[winner] + x[k] * (1 - chance)
        rating[loser] = rating[loser] - x[k] * (1 - chance)
    return total


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("f", [by_index, by_item, by_item_of_a_list, ratings])
def test_loops_over_texts_and_dates_are_one_region(f: Callable[[Any], Any]) -> None:
    text = str(sg.explain(sg.grad(f))(LINE))
    assert "one region" in text and "unrolled" not in text
    weights = np.linspace(1.0, 2.0, 400)
    along = (f(LINE + 1e-6 * weights) - f(LINE - 1e-6 * weights)) / 2e-6
    np.testing.assert_allclose(sg.jit(f)(LINE), f(LINE), rtol=1e-13)
    np.testing.assert_allclose(sg.grad(f)(LINE) @ weights, along, rtol=1e-6)


def test_other_uses_of_picked_texts_are_numpys() -> None:
    def joined(x: Any) -> Any:
        return np.sum(x[SOME]) * len("".join(MANY[SOME]))

    with pytest.warns(sg.RetraceWarning, match="at a traced place|a traced index picks"):
        np.testing.assert_allclose(sg.jit(joined)(LINE), joined(LINE))
    with pytest.warns(sg.RetraceWarning):
        assert sg.jit(lambda x: (x * 2, MANY[SOME[:2]]))(1.0)[1].tolist() == MANY[SOME[:2]].tolist()
