from __future__ import annotations

import contextlib
import copy
import functools
import linecache
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

from srcgrad.ir import source
from srcgrad.ir.source import Span, internal, internal_frame, render, user_frames, user_span


class Probe:
    """Records the span of whoever applies an operator to it."""

    span: Span | None = None

    def __matmul__(self, other: object) -> Probe:
        frame = sys._getframe(1)
        self.span = Span.of(frame.f_code, frame.f_lasti)
        return self

    def __add__(self, other: object) -> Probe:
        return self.__matmul__(other)


Define = Callable[..., dict[str, Any]]


@pytest.fixture
def define() -> Iterator[Define]:
    """Runs source text as the file `name`, with its lines known to linecache unless `hidden`."""
    names: list[str] = []

    def run(text: str, name: str = "/somewhere/demo.py", hidden: bool = False, **names_known: Any) -> dict[str, Any]:
        if not hidden:
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            names.append(name)
        namespace: dict[str, Any] = {"__name__": "demo", **names_known}
        exec(compile(text, name, "exec"), namespace)
        return namespace

    yield run
    for name in names:
        linecache.cache.pop(name, None)


def test_a_span_resolves_place_and_text(define: Define) -> None:
    probe = Probe()
    define("def loss(x, w):\n\n    h = abs(len([x @ w]))\n    return h\n")["loss"](probe, 1)
    span = probe.span
    assert span is not None
    assert (span.file, span.line, span.end_line, span.function) == ("/somewhere/demo.py", 3, 3, "loss")
    assert span.source[span.column : span.end_column] == "x @ w"
    assert span.text == "h = abs(len([x @ w]))"
    assert span.label() == "demo.py:3"
    assert span.describe() == "demo.py:3 | h = abs(len([x @ w]))"
    assert repr(span) == "<Span demo.py:3 | h = abs(len([x @ w]))>"
    assert render(span) == "  demo.py:3 in loss\n      h = abs(len([x @ w]))\n                   ^^^^^"
    assert render(span, caret=False) == "  demo.py:3 in loss\n      h = abs(len([x @ w]))"


def test_spans_are_interned_per_instruction(define: Define) -> None:
    probe = Probe()
    loss = define("def loss(x):\n    x @ 1; first = x.span\n    x @ 1\n    return first\n")["loss"]
    first = loss(probe)
    second = probe.span
    assert first is not second
    assert loss(probe) is first
    assert probe.span is second


def test_equal_code_in_two_files_keeps_its_file(define: Define) -> None:
    text = "def loss(x):\n    return x @ 1\n"
    spans = []
    codes = []
    for name in ("/somewhere/one.py", "/somewhere/two.py"):
        probe = Probe()
        loss = define(text, name)["loss"]
        loss(probe)
        spans.append(probe.span)
        codes.append(loss.__code__)
    assert codes[0] == codes[1]
    assert [span.label() for span in spans if span is not None] == ["one.py:2", "two.py:2"]


def test_columns_count_characters_though_python_counts_bytes(define: Define) -> None:
    probe = Probe()
    define("def loss(x, β):\n    é = 'ñ', x @ β, 'ü'\n")["loss"](probe, 1)
    span = probe.span
    assert span is not None
    assert span.source[span.column : span.end_column] == "x @ β"
    assert render(span).splitlines()[2] == "      " + " " * 9 + "^" * 5


def test_wide_and_combining_characters_move_the_caret(define: Define) -> None:
    probe = Probe()
    define("def loss(x):\n    é = '変数e\u0301', x @ 1\n")["loss"](probe)
    assert probe.span is not None
    # Before the expression: five cells for `é = '`, four for two wide characters, one for the composed, three more.
    assert render(probe.span).splitlines()[2] == "      " + " " * 13 + "^" * 5


def test_tabs_do_not_shift_the_caret(define: Define) -> None:
    probe = Probe()
    define("def loss(x):\n\ty =\tx @\t1\n")["loss"](probe)
    assert probe.span is not None
    assert render(probe.span) == "  demo.py:2 in loss\n      y = x @ 1\n          ^^^^^"


def test_an_expression_of_several_lines_is_marked_to_the_end_of_its_first(define: Define) -> None:
    probe = Probe()
    define("def loss(x):\n    y = (x\n  @ 1)\n")["loss"](probe)
    span = probe.span
    assert span is not None
    assert (span.line, span.end_line, span.end_column) == (2, 3, 5)
    assert render(span) == "  demo.py:2 in loss\n      y = (x\n           ^"


def test_without_source_only_the_header_is_left(define: Define) -> None:
    probe = Probe()
    define("def loss(x):\n    return x @ 1\n", "/nowhere/gone.py", hidden=True)["loss"](probe)
    assert probe.span is not None
    assert probe.span.text == ""
    assert probe.span.describe() == "gone.py:2"
    assert render(probe.span) == "  gone.py:2 in loss"


def test_code_without_columns_has_no_caret(define: Define) -> None:
    probe = Probe()
    loss = define("def loss(x):\n    return x @ 1\n")["loss"]
    # The short form of the location table, without columns: what PYTHONNODEBUGRANGES leaves.
    units = len(loss.__code__.co_code) // 2
    table = b"".join(bytes([0x80 | 13 << 3, 2 if unit == 0 else 0]) for unit in range(units))
    loss.__code__ = loss.__code__.replace(co_linetable=table)
    loss(probe)
    assert probe.span is not None
    assert (probe.span.line, probe.span.column, probe.span.end_column) == (2, 0, 0)
    assert render(probe.span) == "  demo.py:2 in loss\n      return x @ 1"


def test_a_frame_that_has_not_started_stands_at_its_first_line(define: Define) -> None:
    code = define("\n\ndef loss(x):\n    return x\n")["loss"].__code__
    assert Span.of(code, -1).line == 3
    assert Span.of(code, 10**6).line == 3


def test_only_the_innermost_function_is_named(define: Define) -> None:
    probe = Probe()
    define("def make(x):\n    def loss():\n        return x @ 1\n    return loss\n")["make"](probe)()
    assert probe.span is not None
    assert probe.span.function == "make.<locals>.loss"
    assert render(probe.span).splitlines()[0] == "  demo.py:3 in loss"


def test_top_level_code_has_no_function_in_its_header(define: Define) -> None:
    probe = Probe()
    define("x @ 1\n", x=probe)
    assert probe.span is not None
    assert probe.span.function == "<module>"
    assert render(probe.span) == "  demo.py:1\n      x @ 1\n      ^^^^^"


def test_given_spans_hold_what_they_were_given() -> None:
    span = Span.at("dir/f.ir", 7, 4, 9, "main", "  %a = sin %x")
    assert (span.file, span.line, span.column, span.end_line, span.end_column) == ("dir/f.ir", 7, 4, 7, 9)
    assert (span.function, span.text, span.source, span.role) == ("main", "%a = sin %x", "  %a = sin %x", "")
    assert render(span) == "  f.ir:7 in main\n      %a = sin %x\n        ^^^^^"
    assert Span.at("dir/f.ir", 7, 4, 9, "main", "  %a = sin %x") is span
    assert Span.at("dir/f.ir", 7) is not span
    assert render(Span.at("dir/f.ir", 7)) == "  f.ir:7"
    assert render(Span.at("f.ir", 7, text="%a = sin %x")) == "  f.ir:7\n      %a = sin %x"


def test_a_caret_ends_with_its_line() -> None:
    assert render(Span.at("f.ir", 1, 5, 99, text="%a = sin")) == "  f.ir:1\n      %a = sin\n           ^^^"


def test_derived_spans_name_their_roles() -> None:
    span = Span.at("demo.py", 4, 0, 5, "loss", "x @ w")
    adjoint = span.derive("adjoint")
    assert adjoint is span.derive("adjoint")
    assert (adjoint.role, adjoint.origin, span.origin) == ("adjoint", span, span)
    assert (adjoint.line, adjoint.text, adjoint.label()) == (4, "x @ w", "demo.py:4")
    assert adjoint.describe() == "adjoint of demo.py:4"
    assert render(adjoint) == "  adjoint of demo.py:4 in loss\n      x @ w\n      ^^^^^"
    tangent = adjoint.derive("tangent")
    assert tangent.describe() == "tangent of adjoint of demo.py:4"
    assert tangent.origin is span
    assert span.derive("tangent").derive("adjoint") is not tangent


def test_deriving_is_cut_after_three_roles() -> None:
    span = Span.at("demo.py", 5)
    roles = []
    for _ in range(5):
        span = span.derive("adjoint")
        roles.append(span.role)
    assert roles[2:] == ["adjoint of adjoint of adjoint"] + ["adjoint of adjoint of adjoint of …"] * 2
    assert span.derive("adjoint") is span
    assert span.derive("tangent").role == "tangent of adjoint of adjoint of …"
    assert span.derive("tangent").origin is Span.at("demo.py", 5)


def test_spans_pickle_and_copies_are_the_span_itself(define: Define) -> None:
    probe = Probe()
    define("def loss(x):\n    y = (x\n  @ 1)\n")["loss"](probe)
    assert probe.span is not None
    for span in (probe.span, probe.span.derive("adjoint").derive("tangent"), Span.at("f.ir", 1)):
        assert copy.copy(span) is span
        assert copy.deepcopy([span])[0] is span
        back = pickle.loads(pickle.dumps(span))
        assert pickle.loads(pickle.dumps(span)) is back
        assert (render(back), back.describe(), back.role) == (render(span), span.describe(), span.role)
    deep = Span.at("f.ir", 1).derive("a").derive("b").derive("c").derive("d")
    assert pickle.loads(pickle.dumps(deep)) is deep


def test_spans_are_read_only() -> None:
    with pytest.raises(AttributeError):
        Span.at("f.ir", 1).line = 2  # type: ignore[misc]


def test_tables_stay_bounded(define: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_INTERN_LIMIT", 8)
    monkeypatch.setattr(source, "_spans", {})
    monkeypatch.setattr(source, "_placed", {})
    code = define("def loss(x):\n    return x\n")["loss"].__code__
    for index in range(20):
        assert Span.of(code, 2 * index) is Span.of(code, 2 * index)
        assert Span.at("f.ir", index).line == index
    assert len(source._spans) <= 8
    assert len(source._placed) <= 8


def test_user_code_is_this_line() -> None:
    span = user_span()
    assert span is not None
    assert span.text == "span = user_span()"
    assert span.label().startswith("test_source.py:")
    assert span.function == "test_user_code_is_this_line"
    assert render(span).splitlines()[2].strip() == "^" * len("user_span()")


def frame_of(code: CodeType) -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame


def test_libraries_are_looked_through() -> None:
    seen: list[Span | None] = []

    class Array:
        def __deepcopy__(self, memo: object) -> Array:
            # As if this method were srcgrad's: the span that its caller would get.
            frame = sys._getframe(1)
            while internal_frame(frame):
                assert frame.f_back is not None
                frame = frame.f_back
            seen.append(Span.of(frame.f_code, frame.f_lasti))
            return self

    copy.deepcopy(Array())
    assert seen[0] is not None
    assert seen[0].text == "copy.deepcopy(Array())"


@pytest.mark.parametrize(
    "function",
    [np.linalg.norm, np.roll, contextlib.ExitStack.close, functools.singledispatch, copy.deepcopy, user_span],
)
def test_library_code_is_internal(function: Any) -> None:
    assert internal(getattr(function, "__wrapped__", function).__code__)


def test_user_code_is_not_internal(define: Define) -> None:
    assert not internal(frame_of.__code__)
    assert not internal(threading.Thread.run.__code__)
    for name in ("/srcgrad/demo.py", "/home/srcgrad/ir/demo.py", "<string>", "<stdin>", "<ipython-input-1>"):
        assert not internal(define("def loss(): pass", name, hidden=True)["loss"].__code__), name


@pytest.mark.parametrize("name", ["<srcgrad loss>", "<frozen runpy>", "<__array_function__ internals>"])
def test_generated_code_is_internal(define: Define, name: str) -> None:
    find = define("def find():\n    return find_span()\n", name, hidden=True, find_span=user_span)["find"]
    assert internal(find.__code__)
    span = find()
    assert span is not None
    assert span.text == "span = find()"


def test_generated_methods_of_the_package_are_internal_and_those_of_users_are_not(define: Define) -> None:
    text = "def __init__():\n    return find_span()\n"
    spans = []
    for module in ("srcgrad.ir.types", "srcgrad_user"):
        namespace = define(text, "<string>", hidden=True, find_span=user_span)
        namespace["__name__"] = module
        spans.append(namespace["__init__"]())
    assert [span.file == __file__ for span in spans] == [True, False]
    assert spans[1].label() == "<string>:2"


def test_there_may_be_no_user_code(define: Define) -> None:
    text = "def run():\n    found.append((find_span(), find_frames()))\n"
    found: list[Any] = []
    namespace = define(text, "<srcgrad run>", hidden=True, found=found, find_span=user_span, find_frames=user_frames)
    # A thread that starts in the package: below it stands only threading, declared internal here.
    verdicts = dict.fromkeys([threading.Thread.run.__code__.co_filename], True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_verdicts", verdicts)
        thread = threading.Thread(target=namespace["run"])
        thread.start()
        thread.join()
    assert found == [(None, [])]


def test_user_frames_go_outwards() -> None:
    def inner() -> list[Span]:
        return user_frames()

    def outer() -> list[Span]:
        return functools.partial(inner)()

    spans = outer()
    assert [span.text for span in spans[:3]] == [
        "return user_frames()",
        "return functools.partial(inner)()",
        "spans = outer()",
    ]
    assert spans[-1] is not spans[0]


def test_skipped_frames_are_not_looked_at() -> None:
    def inner(skip: int) -> Span | None:
        return user_span(skip)

    spans = [inner(0), inner(1)]
    assert [span is not None and span.text for span in spans] == [
        "return user_span(skip)",
        "spans = [inner(0), inner(1)]",
    ]


def test_all_places_of_a_long_function_are_read_in_one_walk() -> None:
    """Work in proportion to the function's length, not to its square; what is read is counted."""
    length, steps = 5000, 0

    class Code:
        co_filename, co_qualname, co_firstlineno = "/somewhere/long.py", "long", 1

        def co_positions(self) -> Iterator[tuple[int | None, int | None, int | None, int | None]]:
            nonlocal steps
            for unit in range(length):
                steps += 1
                yield (unit + 1, unit + 1, 4, 9) if unit % 3 else (unit + 1, None, None, None)

    code: Any = Code()
    spans = [Span.of(code, 2 * unit) for unit in range(length)]
    assert [span.line for span in reversed(spans)] == list(range(length, 0, -1))
    assert [(span.column, span.end_column) for span in spans[:3]] == [(0, 0), (4, 9), (4, 9)]
    assert steps == length


def test_tables_of_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_MOST_TABLES", 4)
    monkeypatch.setattr(source, "_tables", {})
    for number in range(20):
        code = compile(f"value = {number}", f"/somewhere/{number}.py", "exec")
        assert Span.of(code, 2).line == 1
    assert len(source._tables) <= 4
