"""Python's constant objects that functions capture: dates, times, decimal numbers, normal distributions."""

from __future__ import annotations

import calendar
import dataclasses
import datetime
import decimal
import json
import pathlib
import re
import statistics
import textwrap
import unicodedata
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import srcgrad as sg
from tests.control_flow.traced_once import require_one_program

START, END = datetime.date(2020, 1, 1), datetime.date(2021, 6, 1)
MOMENT = datetime.datetime(2020, 1, 1, 12)
STEP = datetime.timedelta(seconds=3)
FACTOR = decimal.Decimal("1.5")
NORMAL = statistics.NormalDist(0.1, 1.2)
NAMED = {uuid.UUID(int=1): 2.0, uuid.UUID(int=2): 3.0}
KEY = uuid.UUID(int=2)
PATTERN = re.compile("(?x)" + 200 * " " + r"w(\d+)")

NOT_GIVEN = UNSET = object()
INITIAL: Any = np._NoValue
FIELD: Any = dataclasses.MISSING
ABSENT: Any = pd.NA
PLACE = pathlib.Path("data") / "rates.csv"


def discounted(x: Any) -> Any:
    return np.exp(-x[0] * (END - START).days / 365) * x[1]


def of_a_step(x: Any) -> Any:
    return np.sum(x**2) * STEP.total_seconds() * ((MOMENT + STEP) - MOMENT).seconds


def of_a_decimal(x: Any) -> Any:
    return np.sum(x**2) * float(FACTOR / 3)


def of_a_normal_law(x: Any) -> Any:
    return NORMAL.pdf(float(x[0])) + NORMAL.cdf(float(x[1])) * NORMAL.stdev


def by_a_name(x: Any) -> Any:
    return np.sum(x**2) * NAMED[KEY]


def of_a_pattern(x: Any) -> Any:
    return sum(x[int(found[1])] ** 2 for name in ("w0", "b1") if (found := PATTERN.fullmatch(name)))


def of_a_path(x: Any) -> Any:
    scaled = x.copy() * len(PLACE.name.replace("s", ""))  # what is asked of an array or a text is not asked of a path
    return np.sum(scaled**2) * (2.0 if PLACE.suffix == ".csv" else 1.0) * len((PLACE.parent / "b").parts)


def of_what_is_not_given(x: Any, scale: Any = None) -> Any:
    scale = UNSET if scale is None else scale
    return np.sum(x**2) * (2.0 if scale is NOT_GIVEN else 3.0)


def of_numpys_no_value(x: Any, initial: Any = np._NoValue) -> Any:
    scale = 2.0 if INITIAL is initial else 3.0
    return scale * np.sum(x**2, initial=INITIAL)


def of_a_missing_field(x: Any, field: Any = dataclasses.MISSING) -> Any:
    return np.sum(x**2) * (2.0 if FIELD is field else FIELD)


def of_what_is_missing_in_pandas(x: Any, absent: Any = pd.NA) -> Any:
    return np.sum(x**2) * (2.0 if ABSENT is absent and pd.isna(ABSENT) else 3.0)


def of_texts(x: Any) -> Any:
    settings = json.loads('{"scale": [1.5, 2]}')
    days = calendar.timegm((1970, 1, 3, 0, 0, 0)) / 86400 * len(unicodedata.normalize("NFKD", "\u00e9"))
    order = 2.0 if np.isfortran((x[:, None] * np.ones(3)).T) else 3.0
    size = len(re.findall("a", "banana")) * len(textwrap.dedent("  a"))
    return np.sum(x**2) * settings["scale"][0] * size * days * order


def of_made_ones(x: Any) -> Any:
    step = datetime.timedelta(days=1) * 2 + (datetime.date(2021, 1, 1) - datetime.date.fromisoformat("2020-12-01"))
    law = statistics.NormalDist.from_samples(x.tolist())
    return np.sum(x**2) * step.days * float(decimal.Decimal("1.5")) + law.stdev


CHANGED: dict[Callable[[Any], Any], tuple[str, Any]] = {
    discounted: ("END", datetime.date(2024, 1, 1)),
    of_a_step: ("STEP", datetime.timedelta(seconds=7)),
    of_a_decimal: ("FACTOR", decimal.Decimal("2.5")),
    of_a_normal_law: ("NORMAL", statistics.NormalDist(0.1, 2.2)),
    by_a_name: ("KEY", uuid.UUID(int=1)),
    of_what_is_not_given: ("UNSET", object()),
    of_numpys_no_value: ("INITIAL", 4),
    of_a_missing_field: ("FIELD", 7),
    of_what_is_missing_in_pandas: ("ABSENT", None),
    of_a_path: ("PLACE", pathlib.Path("data/more/rates.txt")),
    of_a_pattern: ("PATTERN", re.compile("(?x)" + 200 * " " + r"b(\d+)")),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("f", [*CHANGED, of_made_ones, of_texts], ids=lambda f: f.__name__)
def test_it_is_one_program(f: Callable[[Any], Any], backend: str) -> None:
    require_one_program(f, backend, np.array([0.7, 1.3]), np.array([0.2, -0.3]))


@pytest.mark.parametrize("f", CHANGED, ids=lambda f: f.__name__)
def test_another_constant_is_another_program(f: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([0.7, 1.3])
    run = sg.jit(f)
    for _ in range(6):
        assert run(x) == pytest.approx(f(x), rel=1e-14)
    before = f(x)
    monkeypatch.setitem(globals(), *CHANGED[f])
    assert abs(f(x) - before) > 1e-3
    assert run(x) == pytest.approx(f(x), rel=1e-14)


@pytest.mark.parametrize("local", [False, True])
def test_whether_a_file_is_there_is_asked_at_each_call(tmp_path: pathlib.Path, local: bool) -> None:
    place = tmp_path / "flag"

    def direct(x: Any) -> Any:
        return x**2 if place.exists() else x

    def by_a_name(x: Any) -> Any:
        found = place.parent / "flag"
        return x**2 if found.exists() else x

    slope = sg.grad(by_a_name if local else direct)
    with pytest.warns(sg.RetraceWarning, match="exists"):
        assert slope(3.0) == 1.0
    place.touch()
    assert slope(3.0) == 6.0


def test_dates_may_be_arguments() -> None:
    def f(rate: Any, start: Any, end: Any) -> Any:
        return np.exp(-rate * (end - start).days / 365)

    slope = sg.grad(f)
    for end in (END, END, END + datetime.timedelta(days=100)):
        years = (end - START).days / 365
        assert slope(0.03, START, end) == pytest.approx(-years * np.exp(-0.03 * years), rel=1e-14)


def test_the_context_of_decimal_numbers_is_that_of_the_call() -> None:
    run = sg.jit(of_a_decimal)
    x = np.ones(1)
    for _ in range(6):
        assert run(x) == of_a_decimal(x)
    with decimal.localcontext() as context:
        context.prec, context.rounding = 1, decimal.ROUND_UP
        assert run(x) == of_a_decimal(x) == 0.5
    one = decimal.Decimal(1)

    def imported(x: Any) -> Any:
        from decimal import Decimal

        return x * float(Decimal(1) / 3)

    for f in (lambda x: x * float(one / 3), lambda x: x * float(decimal.Decimal(1) / 3), imported):
        coarse = sg.jit(f)
        assert [coarse(1.0) for _ in range(6)][-1] == 1 / 3
        with decimal.localcontext() as context:
            context.prec = 2
            assert coarse(1.0) == 0.33


@pytest.mark.parametrize(
    ("f", "match"),
    [
        (lambda x: x * NORMAL.samples(1)[0], "reads the attribute 'samples'"),
        (lambda x: next(x * law.samples(1)[0] for law in (NORMAL,)), "'samples', which draws or reads the clock"),
        (lambda x: x * (datetime.datetime.now() - MOMENT).total_seconds(), "reads the attribute 'now'"),
        (lambda x: x * next(k.now() - MOMENT for k in (datetime.datetime,)).total_seconds(), "'now', which draws or"),
        (lambda x: x * (MOMENT.now() - MOMENT).total_seconds(), "reads the attribute 'now'"),
    ],
)
def test_what_they_draw_or_read_of_a_clock_is_done_at_each_call(f: Callable[[Any], Any], match: str) -> None:
    with pytest.warns(sg.RetraceWarning, match=match):
        slope = sg.grad(f)
        assert slope(1.0) != slope(1.0)
