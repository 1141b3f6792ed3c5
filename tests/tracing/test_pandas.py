"""Tables, columns and indices of pandas that a function captures or is given: one program, while they hold the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.tracing.frames import SameFrame, is_frame

pd: Any = pytest.importorskip("pandas")
SIZE = 40
P = np.array([0.1, 0.2, 0.3])


def made() -> Any:
    steps = np.arange(SIZE)
    table = pd.DataFrame(
        {
            "y": np.sin(steps),
            "a": np.cos(3.0 * steps),
            "n": steps % 5,
            "g": np.array(["u", "v", "w"])[steps % 7 % 3],
            "t": pd.date_range("2020-01-01", periods=SIZE),
            "c": pd.Categorical(np.array(["p", "q"])[steps % 3 % 2]),
            "m": pd.array([None, *steps[1:]], dtype="Int64"),
        }
    )
    table.loc[3, "a"] = np.nan
    return table


def loop(table: Any, p: Any) -> Any:
    total, y, g = 0.0, table["y"].values, table["g"].values
    for k in range(len(table)):
        total = total + (y[k] - p[0]) ** 2 * (2.0 if g[k] == "u" else 1.0)
    return total


def written(table: Any, p: Any) -> Any:
    table = table.copy()
    table["z"] = table["y"] ** 2
    return np.sum(table["z"].to_numpy() * p[0] ** 2)


USES: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda table, p: np.sum((table["y"].to_numpy() - p[0]) ** 2),
    "attribute": lambda table, p: np.sum((table.y.values - p[0]) ** 2),
    "columns": lambda table, p: np.sum((table[["y", "n"]].values @ p[:2]) ** 2),
    "arithmetic": lambda table, p: ((table["y"] - p[0] - p[1] * table["n"]) ** 2).sum(),
    "right": lambda table, p: np.sum(p[0] ** 2 * table["y"] + p[1] / (table["n"] + 1)),
    "functions": lambda table, p: np.sum(np.exp(p[0] * table["y"])),
    "where": lambda table, p: np.sum(np.where(table["g"] == "u", p[0] ** 2 * table["y"], p[1])),
    "mask": lambda table, p: np.sum((table.loc[table["g"] == "u", "y"].values - p[0]) ** 2),
    "texts": lambda table, p: np.sum((table["y"].values - p[0])[table["g"].values == "u"] ** 2),
    "groups": lambda table, p: sum(np.mean((part["y"].values - p[0]) ** 2) for _, part in table.groupby("g")),
    "means": lambda table, p: np.sum((table["y"] - table.groupby("g")["y"].transform("mean") * p[0]) ** 2),
    "codes": lambda table, p: np.sum((table["y"].values - p[table["g"].astype("category").cat.codes.values]) ** 2),
    "factorized": lambda table, p: np.sum((table["y"].values - p[pd.factorize(table["g"])[0]]) ** 2),
    "dummies": lambda table, p: np.sum((table["y"].values - pd.get_dummies(table["g"]).to_numpy(float) @ p) ** 2),
    "dates": lambda table, p: np.sum(np.sin(p[0] * table["t"].dt.day.to_numpy())),
    "missing": lambda table, p: np.sum((table["a"].fillna(0.0) * p[0] - p[1]) ** 2) + table["m"].count() * p[2] ** 2,
    "rolling": lambda table, p: np.nansum((table["y"].rolling(5).mean().to_numpy() - p[0]) ** 2),
    "merged": lambda table, p: np.sum(
        (table.merge(pd.DataFrame({"g": ["u", "v"], "w": [1.0, 2.0]}), on="g")["w"].values - p[0]) ** 2
    ),
    "rows": lambda table, p: sum((row.y - p[0] * row.n) ** 2 for row in table.itertuples()),
    "sizes": lambda table, p: p[0] ** 2 * len(table) * table.shape[1] * len(table.columns),
    "index": lambda table, p: np.sum(p[0] ** 2 * table.set_index("t").index.day.to_numpy()),
    "loop": loop,
    "written": written,
}


@pytest.mark.filterwarnings("error::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", USES)
def test_tables_are_compiled_in_while_they_hold_the_same(name: str) -> None:
    table, use = made(), USES[name]

    def captured(p: Any) -> Any:
        return use(table, p)

    slope, of_both = sg.grad(captured), sg.grad(use, 1)
    for _ in range(2):
        along = np.array([(captured(P + e) - captured(P - e)) / 2e-6 for e in 1e-6 * np.eye(3)])
        for _ in range(4):
            np.testing.assert_allclose(slope(P), along, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(of_both(table, P), along, rtol=1e-6, atol=1e-6)
        table.loc[:6, "y"] *= 3.0
        table.loc[2, ["g", "n"]] = ["w", 4]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "number": lambda table: table.__setitem__("y", table["y"] + 1.0),
    "in place": lambda table: table.loc.__setitem__((3, "y"), 7.0),
    "text": lambda table: table.loc.__setitem__((3, "g"), "v"),
    "date": lambda table: table.loc.__setitem__((3, "t"), pd.Timestamp("2021-01-01")),
    "category": lambda table: table.loc.__setitem__((0, "c"), "q"),
    "missing": lambda table: table.loc.__setitem__((3, "m"), None),
    "column": lambda table: table.__setitem__("new", 1.0),
    "name": lambda table: table.__setattr__("columns", ["y", "b", *table.columns[2:]]),
    "kind": lambda table: table.__setitem__("n", table["n"].astype(float)),
    "index": lambda table: table.__setattr__("index", np.arange(SIZE) + 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_table_that_has_been_changed_is_another_one(name: str) -> None:
    table = made()
    same, copy = SameFrame(table), table.copy()
    assert same(table) and same(copy) and same(made())
    CHANGES[name](copy)
    assert same(table) and not same(copy)
    column, index = SameFrame(table["g"]), SameFrame(table.index)
    assert column(table["g"].copy()) and not column(table["c"]) and not column(table["g"].rename("other"))
    assert index(pd.RangeIndex(SIZE)) and not index(pd.RangeIndex(SIZE + 1)) and not index(pd.Index(np.arange(SIZE)))


def test_categories_in_another_order_and_another_frequency_are_another_table() -> None:
    column = pd.Series(pd.Categorical.from_codes([0, 1, 0], ["p", "q"]))
    turned = pd.Series(pd.Categorical.from_codes([0, 1, 0], ["q", "p"]))
    assert column.dtype == turned.dtype and not SameFrame(column)(turned)
    days = pd.date_range("2020-01-01", periods=4)
    assert not SameFrame(days)(pd.DatetimeIndex(days.values))


def test_a_captured_method_of_a_table_is_no_constant() -> None:
    table = pd.DataFrame({"y": [1.0, np.nan, 3.0]})
    missing = table.isna

    def total(p: Any) -> Any:
        return p[0] * missing().to_numpy().sum()

    slope = sg.grad(total)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.RetraceWarning)
        assert slope(P)[0] == 1.0
        table.loc[0, "y"] = np.nan
        assert slope(P)[0] == 2.0


def test_columns_of_what_can_change_are_no_constants() -> None:
    assert is_frame(made()) and is_frame(made()["g"]) and is_frame(made().index)
    assert is_frame(pd.Series(["a", None, pd.NA, pd.NaT, 1.5], dtype=object))
    assert not is_frame(pd.DataFrame({"held": [[], {}]})) and not is_frame(pd.Series([[1]]))


def test_a_table_that_the_function_writes_is_written_at_each_call() -> None:
    table = made()

    def adding(p: Any) -> Any:
        table["y"] = table["y"] + 1.0
        return np.sum(table["y"].to_numpy() * p[0])

    before = table["y"].sum()
    slope = sg.grad(adding)
    with pytest.warns(sg.RetraceWarning, match="writes into table, the DataFrame"):
        np.testing.assert_allclose(slope(P)[0], before + SIZE)
    np.testing.assert_allclose(slope(P)[0], before + 2 * SIZE)


def test_results_of_pandas_are_other_ones_at_each_call() -> None:
    table = made()
    fast = sg.jit(lambda x: (2 * x, table["y"].head(2)))
    for _ in range(4):
        found = fast(1.0)[1]
        assert found.tolist() == table["y"].head(2).tolist()
        found.iloc[0] = 9.0
