"""Texts of traced values: what is read of them again would have no derivative."""

from __future__ import annotations

import ast
import configparser
import contextlib
import copy
import csv
import gc
import io
import json
import os
import pickle
import re
import string
import struct
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.errors import ConcretizationError, UnsupportedError
from srcgrad.tracing.shown_texts import Shown

pytestmark = pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")


@pytest.mark.parametrize("text", [str, lambda x: f"{x}", lambda x: format(x), lambda x: x.__str__()])
def test_a_float_read_of_the_text_of_a_float_is_refused_as_it_would_lose_the_derivative(
    text: Callable[[Any], str],
) -> None:
    def f(x: Any) -> Any:
        return 2.0 * float(text(x)) * x

    assert sg.jit(f)(1.5) == f(1.5) == 4.5
    with pytest.raises(ConcretizationError, match="would lose its derivative") as caught:
        sg.grad(f)(1.5)
    assert "float(text(x))" in str(caught.value)


def test_texts_of_numbers_that_a_function_leaves_are_numbers_again() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.append(str(x))
        return x * len(seen[-1].split("."))

    assert sg.grad(f)(1.5) == 2.0
    assert {*map(float, seen)} == {1.5}


def test_a_number_that_a_text_rounds_is_a_constant() -> None:
    assert sg.grad(lambda x: float(f"{x:.2f}") * x)(1.234) == 1.23
    assert sg.grad(lambda x: x ** int(str(int(x))))(3.5) == 3 * 3.5**2


NUMBER = re.compile(r"[\d.]+")
PARTS: list[Callable[[Any], Any]] = [
    lambda x: float(str(x).strip()),
    lambda x: float(str(x).split()[0]),
    lambda x: float(str(x)[0:]),
    lambda x: float("%s" % x),  # noqa: UP031
    lambda x: float("%.17g" % x),  # noqa: UP031
    lambda x: float(" {}".format(x)),  # noqa: UP032
    lambda x: float(f"1{x} "),
    lambda x: float(f"{x:.16e}".replace("e", "E")),
    lambda x: float("".join([str(x), "1"])),
    lambda x: complex("%s" % (x,)).real,  # noqa: UP031
    lambda x: float(Decimal(str(x))),
    lambda x: json.loads(repr(x)[11:-1] if repr(x).startswith("np") else repr(x)),
    lambda x: float(re.sub("a", "", str(x))),
    lambda x: float(re.findall(r"[\d.]+", f"v {x}")[0]),
    lambda x: float(NUMBER.search(f"v {x}").group()),  # type: ignore[union-attr]
    lambda x: float(re.match(r"(?P<a>[\d.]+)", str(x))["a"]),  # type: ignore[index]
    lambda x: float(next(re.finditer(r"[\d.]+", str(x))).groupdict().get("a", str(x))),
    lambda x: eval(str(x)),
    lambda x: eval(f"{x} * 2"),
    lambda x: ast.literal_eval(repr([x, 1.0]))[0],
    lambda x: np.array([str(x)]).astype(float)[0],
    lambda x: np.loadtxt(io.StringIO(str(x))),
    lambda x: float(str(x).encode()),
    lambda x: float(str(x).encode().decode()),
    lambda x: float("".join(c for c in str(x) if c != "-")),
    lambda x: float(str([x])[1:-1]),
    lambda x: float(textwrap.dedent(str(x))),
    lambda x: float(string.Template("$a").substitute(a=x)),
    lambda x: float(written(str(x)).getvalue()),
    lambda x: float(written(str(x).encode(), io.BytesIO()).getvalue()),
    lambda x: float(printed("v", x).getvalue().split()[1]),
    lambda x: sum(float(line) for line in printed(x).getvalue().splitlines()),
    lambda x: lines(printed(x)),
    lambda x: np.loadtxt(printed(x)),
    lambda x: float(Name(x)),
    lambda x: float(Name(str(x)).strip()),
    lambda x: evaluated_later(x),
    lambda x: float(rows(x)[0][0]),
    lambda x: float(again(x, "w")),
    lambda x: by_lines(x),
    lambda x: float(bytearray(f"{x}".encode())),
    lambda x: settings(x).getfloat("a", "x"),
]
FILE = Path(tempfile.gettempdir()) / f"srcgrad_texts_of_numbers_{os.getpid()}"


@pytest.fixture(autouse=True)
def no_file() -> Iterator[None]:
    yield
    FILE.unlink(missing_ok=True)


def rows(x: Any) -> list[list[str]]:
    stream = io.StringIO()
    csv.writer(stream).writerow([x, 1.0])
    stream.seek(0)
    return list(csv.reader(stream))


def again(x: Any, mode: str) -> str:
    with open(FILE, mode) as file:
        print(x, file=file)
    with open(FILE) as file:
        return file.read()


def by_lines(x: Any) -> Any:
    FILE.write_text(f"{x}")
    with open(FILE) as file:
        return lines(file)


def settings(x: Any) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read_string(f"[a]\nx={x}\n")
    return parser


class Name(str):
    pass


def written(text: Any, stream: Any = None) -> Any:
    stream = io.StringIO() if stream is None else stream
    stream.write(text)
    return stream


def printed(*things: Any) -> Any:
    stream = io.StringIO()
    print(*things, file=stream)
    stream.seek(0)
    return stream


def lines(stream: Any) -> Any:
    found = 0.0
    for line in stream:
        found = found + float(line)
    return found


def evaluated_later(x: Any) -> Any:
    texts = []
    texts.append(shown(x))
    text = texts[0] + " * 2"
    return eval(text)


def shown(x: Any) -> str:
    return f"{x}"


@pytest.mark.parametrize("number", PARTS)
def test_a_number_read_of_a_text_with_all_digits_in_it_is_refused(number: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        return number(x) * x

    assert sg.jit(f)(1.5) == f(1.5)
    with pytest.raises(ConcretizationError, match="text of a traced value would lose its derivative") as caught:
        sg.grad(f)(1.5)
    assert re.search(
        r"number\(x\)|lambda x:|float\(line\)|eval\(text\)|shown\(x\)|f\"{x}|csv.reader", str(caught.value)
    )


ROUNDED: list[Callable[[Any], Any]] = [
    lambda x: float("%.2f " % x),  # noqa: UP031
    lambda x: float("{:.2f}".format(x).strip()),  # noqa: UP032
    lambda x: float(f" {x:.3}"),
    lambda x: int(str(x).split(".")[0]) + 0.23,
    lambda x: float(str(x)[0]) + int(re.findall(r"\d", str(x))[0]) - sum(int(c) for c in str(x)[:1]) + 0.23,
    lambda x: 1.23 if NUMBER.search(str(x)) and re.match(r"\d", str(x)) else 0.0,
    lambda x: eval("x - x") + 1.23,
    lambda x: round(float(json.dumps([f"{x:.2f}"])[2:-2]), 2),
]


@pytest.mark.parametrize("number", ROUNDED)
def test_a_number_of_a_part_of_a_text_that_rounds_is_a_constant(number: Callable[[Any], Any]) -> None:
    assert sg.grad(lambda x: number(x) * x)(1.234) == 1.23


def test_numbers_of_other_files_than_the_one_that_is_written_are_constants(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("2.5 3.5")

    def f(x: Any) -> Any:
        again(x, "a")
        return x * float((tmp_path / "numbers").read_text().split()[0]) * np.loadtxt(tmp_path / "numbers")[1]

    assert sg.grad(f)(1.5) == 8.75


def test_texts_that_are_kept_or_stand_beside_code_that_is_evaluated_are_no_fault() -> None:
    def f(x: Any) -> Any:
        log = written(str(Name(x)))
        found = eval("2 * x * x")
        return found * (len(log.getvalue()) + evaluated(x))

    def evaluated(x: Any) -> Any:
        return eval("len(shown(x))")

    assert sg.grad(f)(1.5) == 2 * 2 * 1.5 * 6


def test_texts_made_of_traced_numbers_are_texts_and_are_kept_without_their_trace() -> None:
    kept: list[str] = []

    def f(x: Any) -> Any:
        kept.append(f"{x} and {x:.2f}".upper())
        assert pickle.dumps(kept) and copy.copy(kept[0]) == "1.5 AND 1.50"
        assert isinstance(kept[0], str) and kept[0] in {"1.5 AND 1.50"} and type(str(x)) is str
        return x * x * len(str(x))

    assert sg.grad(f)(1.5) == 9.0
    assert complex(kept[0].split()[0]) == 1.5 == float(kept[0].split(" ")[0])
    gc.collect()
    assert isinstance(kept[0], Shown) and kept[0].trace() is None


ASKED: list[Callable[[str], Any]] = [
    float,
    lambda text: complex(text).real,
    lambda text: float(Decimal(text)),
    json.loads,
    lambda text: len(re.sub("1", "22", text)),
    lambda text: 2.0 if text < "2" else 3.0,
    lambda text: len(2 * text),
    lambda text: 2.0 if text in "1.23456" else 3.0,
    lambda text: len("a1.235b".replace(text, "xx")),
    lambda text: getattr(Named, "a" + text.replace(".", "_")),
    lambda text: 2.0 if isinstance(text, str) else 3.0,
]


class Named:
    a1_235 = 2.0


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_of_a_text_that_is_not_known_yet_is_not_caught_by_the_user(asked: Callable[[str], Any]) -> None:
    def f(x: Any) -> Any:
        try:
            found = asked(f"{x:.3f}")
        except Exception:
            found = 100.0
        return x * found

    assert sg.jit(f)(1.2345678) == f(1.2345678)
    assert sg.grad(f)(1.2345678) == asked("1.235")


def test_a_handler_around_a_with_statement_does_not_hide_that_the_derivative_would_be_lost() -> None:
    def f(x: Any) -> Any:
        try:
            found = float(str(x))
        except Exception:
            found = 1.0
        return x * found

    def g(x: Any) -> Any:
        try:
            with contextlib.nullcontext():
                found = float(str(x))
        except Exception:
            found = 1.0
        return x * found

    for function in (f, g):
        assert sg.jit(function)(1.5) == 2.25
        with pytest.raises(ConcretizationError, match="would lose its derivative"):
            sg.grad(function)(1.5)


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (lambda x: len(x.hex()), "float.hex is not supported"),
        (lambda x: x.as_integer_ratio()[0], "float.as_integer_ratio is not supported"),
        (lambda x: float(Fraction(x)), "float.as_integer_ratio is not supported"),
        (lambda x: struct.unpack("d", struct.pack("d", x))[0], "struct.pack is not supported"),
        (lambda x: float(sys.intern(str(x))), "can't intern"),
    ],
)
def test_what_reads_the_digits_of_a_number_says_so_and_jit_runs_it(of: Callable[[Any], Any], said: str) -> None:
    """jit said that an array has no such attribute, and the errors named no line."""

    def f(x: Any) -> Any:
        return of(x) * x

    assert sg.jit(f)(1.5) == f(1.5)
    with pytest.raises(UnsupportedError, match=said) as caught:
        sg.grad(f)(1.5)
    assert "test_texts_of_numbers.py" in str(caught.value)
