"""Where user code stands: spans of source text, and the walk up the stack that finds them.

Every operation carries a `Span`, so that an error, a printed function or a generated derivative can name the line the
user wrote. A span is made once per place and is cheap: it holds a code object and an instruction offset, and reads
file, line, columns and text only when somebody asks.
"""

from __future__ import annotations

import dis
import functools
import linecache
import os
import sys
import unicodedata
from array import array
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import NamedTuple

__all__ = ["Span", "internal", "internal_frame", "is_storing", "render", "user_frames", "user_span"]

_INTERN_LIMIT = 1 << 16
_MOST_TABLES = 32
_UNKNOWN = -1
_ROLE_DEPTH = 3
_ELLIPSIS = "…"
_STORING = dis.opmap["STORE_SUBSCR"]
_PACKAGE = "srcgrad"
_TRANSPARENT_PACKAGES = (_PACKAGE, "numpy", "scipy", "jax")
_TRANSPARENT_MODULES = ("contextlib", "copy", "dataclasses", "functools")
# Source that srcgrad generates is compiled under such a name; the others are CPython's and NumPy's own.
_TRANSPARENT_PREFIXES = ("<srcgrad", "<frozen ", "<__array_function__")
_TO_SPACE = str.maketrans("\t\f\v", "   ")


class _Place(NamedTuple):
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    source: str


class Span:
    """A place in user code, and the role of what was derived from it.

    Spans are immutable and interned: the same place gives the same object, and both `==` and `hash` go by identity.
    They pickle, and copying one returns it. Lines count from 1; columns are characters (not bytes) from 0, the end
    excluded; `column == end_column` on one line means that the columns are unknown.

    >>> span = Span.at("demo.py", 4, column=4, end_column=9, text="h = x @ w")
    >>> span.label(), span.describe()
    ('demo.py:4', 'demo.py:4 | h = x @ w')
    >>> span.derive("adjoint").describe()
    'adjoint of demo.py:4'
    >>> span.derive("adjoint").origin is span
    True
    """

    __slots__ = ("_code", "_derived", "_lasti", "_origin", "_place", "_role")

    def __init__(
        self, code: CodeType | None, lasti: int, place: _Place | None, origin: Span | None = None, role: str = ""
    ) -> None:
        """Bypasses interning: use `Span.of` or `Span.at`."""
        self._code = code
        self._lasti = lasti
        self._place = place
        self._origin = origin
        self._role = role
        # One table per origin, shared by all that derives from it.
        self._derived: dict[tuple[str, str], Span] = {} if origin is None else origin._derived

    @staticmethod
    def of(code: CodeType, lasti: int) -> Span:
        """The span of the instruction at byte offset `lasti` of `code` (a frame's `f_code` and `f_lasti`)."""
        key = (id(code), lasti)
        span = _spans.get(key)
        return _intern(code, key) if span is None else span

    @staticmethod
    def at(
        file: str,
        line: int,
        column: int = 0,
        end_column: int = 0,
        function: str = "",
        text: str = "",
        *,
        end_line: int = 0,
    ) -> Span:
        """The span of a place that is given rather than observed, as in IR text; `column` counts into `text`.

        `end_line=0` means `line`.
        """
        place = _Place(file, line, column, end_line or line, end_column, function, text)
        span = _placed.get(place)
        if span is None:
            if len(_placed) >= _INTERN_LIMIT:
                _placed.clear()
            span = _placed.setdefault(place, Span(None, -1, place))
        return span

    @property
    def role(self) -> str:
        """`""` for what the user wrote, else how it was derived: `"adjoint"`, `"tangent of adjoint"`, ..."""
        return self._role

    @property
    def origin(self) -> Span:
        """The span without its role."""
        return self if self._origin is None else self._origin

    @property
    def file(self) -> str:
        return self._resolve().file

    @property
    def line(self) -> int:
        return self._resolve().line

    @property
    def column(self) -> int:
        return self._resolve().column

    @property
    def end_line(self) -> int:
        return self._resolve().end_line

    @property
    def end_column(self) -> int:
        return self._resolve().end_column

    @property
    def function(self) -> str:
        """The qualified name of the enclosing function, `"<module>"` at top level."""
        return self._resolve().function

    @property
    def source(self) -> str:
        """The first source line with its indentation, which is what the columns count into; `""` if unavailable."""
        return self._resolve().source

    @property
    def text(self) -> str:
        """The first source line, stripped; `""` if the source is unavailable."""
        return self._resolve().source.strip()

    def derive(self, role: str) -> Span:
        """The span of what a transform made from this place; beyond three roles the innermost become "…".

        >>> Span.at("demo.py", 4).derive("adjoint").derive("tangent").role
        'tangent of adjoint'
        """
        span = self._derived.get((role, self._role))
        return self._derive(role) if span is None else span

    def _derive(self, role: str) -> Span:
        # The cut keeps the number of spans bounded however often transforms are nested.
        roles = [role, *self._role.split(" of ")] if self._role else [role]
        named = [name for name in roles if name != _ELLIPSIS]
        if len(named) > _ROLE_DEPTH:
            roles = [*named[:_ROLE_DEPTH], _ELLIPSIS]
        full_role = " of ".join(roles)
        canonical = self._derived.setdefault(("", full_role), Span(None, -1, None, self.origin, full_role))
        return self._derived.setdefault((role, self._role), canonical)

    def again(self) -> Span:
        """Another span of the same place, which is not this one: of an operation that ran there once more."""
        return Span(self._code, self._lasti, self._resolve())

    def label(self) -> str:
        """The file's base name and the line: `"demo.py:4"`."""
        place = self._resolve()
        return f"{os.path.basename(place.file)}:{place.line}"

    def describe(self) -> str:
        """One line: `"demo.py:4 | h = np.sin(x @ w)"`, or `"adjoint of demo.py:4"` for what was derived."""
        if self._role:
            return f"{self._role} of {self.label()}"
        text = self.text
        return f"{self.label()} | {text}" if text else self.label()

    def __repr__(self) -> str:
        return f"<Span {self.describe()}>"

    def __copy__(self) -> Span:
        return self

    def __deepcopy__(self, memo: object) -> Span:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (*self._resolve(), self._role)

    def _resolve(self) -> _Place:
        if self._place is None:
            origin = self._origin
            self._place = origin._resolve() if origin is not None else _read(self._code, self._lasti)
        return self._place


_spans: dict[tuple[int, int], Span] = {}
_placed: dict[_Place, Span] = {}


def forget_places() -> None:
    """Let go of the code whose places are known: a place that is asked for later is found again."""
    _spans.clear()
    _placed.clear()
    _tables.clear()


def _intern(code: CodeType, key: tuple[int, int]) -> Span:
    # Keyed by identity: code objects that differ in nothing but their file compare equal. The span keeps its code
    # alive, so an id in the table is never reused. The limit is for programs that compile code without end.
    if len(_spans) >= _INTERN_LIMIT:
        _spans.clear()
    return _spans.setdefault(key, Span(code, key[1], None))


def _restore(
    file: str, line: int, column: int, end_line: int, end_column: int, function: str, source: str, role: str
) -> Span:
    span = Span.at(file, line, column, end_column, function, source, end_line=end_line)
    for name in reversed(role.split(" of ")) if role else ():
        span = span.derive(name)
    return span


def _read(code: CodeType | None, lasti: int) -> _Place:
    if code is None:
        return _Place("<unknown>", 0, 0, 0, 0, "", "")
    # Four numbers per two-byte code unit; a frame that has not started has lasti == -1.
    start = max(lasti, 0) // 2 * 4
    line, end_line, column, end_column = _positions(code)[start : start + 4] or [_UNKNOWN] * 4
    if line == _UNKNOWN:
        line = code.co_firstlineno
    source = linecache.getline(code.co_filename, line).rstrip("\n")
    if _UNKNOWN in (end_line, column, end_column):
        return _Place(code.co_filename, line, 0, line, 0, code.co_qualname, source)
    last = source if end_line == line else linecache.getline(code.co_filename, end_line)
    return _Place(
        code.co_filename,
        line,
        _characters(source, column),
        end_line,
        _characters(last, end_column),
        code.co_qualname,
        source,
    )


# By id; the code objects are kept alive, so that an id is never reused.
_tables: dict[int, tuple[CodeType, array[int]]] = {}


def _positions(code: CodeType) -> array[int]:
    """`code.co_positions()` as a flat table with -1 for None: a look-up in the iterator itself takes as long as what
    stands before it, so that all places of a long function would take quadratic time.
    """
    found = _tables.get(id(code))
    if found is None:
        if len(_tables) >= _MOST_TABLES:
            _tables.clear()
        numbers = [_UNKNOWN if number is None else number for place in code.co_positions() for number in place]
        found = _tables[id(code)] = (code, array("i", numbers))
    return found[1]


def _characters(line: str, offset: int) -> int:
    """CPython counts columns in UTF-8 bytes; without the source there is nothing to count in."""
    if not line or line.isascii():
        return offset
    return len(line.encode()[:offset].decode(errors="replace"))


# By file name: True for internal, False for user code, None where the module of the frame decides.
_verdicts: dict[str, bool | None] = {}


def internal(code: CodeType) -> bool:
    """Whether `code` is srcgrad's own or of a library it looks through (NumPy, SciPy, jax, a few standard modules)."""
    return bool(_verdict(code.co_filename))


def internal_frame(frame: FrameType) -> bool:
    """As `internal`, and also true of a method that `dataclass` generated for one of srcgrad's classes."""
    verdict = _verdict(frame.f_code.co_filename)
    if verdict is not None:
        return verdict
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and module.partition(".")[0] == _PACKAGE


def _verdict(file: str) -> bool | None:
    try:
        return _verdicts[file]
    except KeyError:
        return _verdicts.setdefault(file, _judge(file))


def _judge(file: str) -> bool | None:
    if file.startswith("<"):
        # `python -c` and generated methods share the file name "<string>".
        return True if file.startswith(_TRANSPARENT_PREFIXES) else None
    path = os.path.realpath(file)
    return path in _transparent_files() or any(path.startswith(folder) for folder in _transparent_folders())


@functools.cache
def _real_path(path: str) -> str:
    """Of our own and of libraries' folders; each name on the way is looked at, which takes a tenth of a millisecond."""
    return os.path.realpath(path)


def _transparent_folders() -> Iterator[str]:
    # Read from the loaded modules at each verdict: a frame that runs NumPy's code shows that NumPy is loaded by then.
    here = os.path.dirname(_real_path(__file__))
    yield os.path.join(here, "")
    yield os.path.join(os.path.dirname(here), "backends", "")
    for name in _TRANSPARENT_PACKAGES:
        for folder in getattr(sys.modules.get(name), "__path__", ()):
            yield os.path.join(_real_path(folder), "")


def _transparent_files() -> set[str]:
    modules = (sys.modules.get(name) for name in _TRANSPARENT_MODULES)
    files = (getattr(module, "__file__", None) for module in modules)
    return {_real_path(file) for file in files if file is not None}


def user_span(skip: int = 0) -> Span | None:
    """The span of the innermost frame of user code on this thread's stack; None if there is none.

    `skip` frames, counted from the caller, are known to be internal. Called for every traced operation: the
    look-ups are written out, and skipping saves making frame objects, which is most of the cost.
    """
    frame: FrameType | None = sys._getframe(skip + 1)
    verdicts = _verdicts
    while frame is not None:
        code = frame.f_code
        try:
            verdict = verdicts[code.co_filename]
        except KeyError:
            verdict = _verdict(code.co_filename)
        if not verdict and (verdict is False or not internal_frame(frame)):
            key = (id(code), frame.f_lasti)
            try:
                return _spans[key]
            except KeyError:
                return _intern(code, key)
        frame = frame.f_back
    return None


def is_storing(frame: FrameType | None) -> bool:
    """Whether the user's code that has come to this assigns an element or a part of something: ``x[i] = v``."""
    while frame is not None and internal_frame(frame):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == _STORING


def user_frames() -> list[Span]:
    """The spans of all frames of user code on this thread's stack, outermost last."""
    spans = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not internal_frame(frame):
            spans.append(Span.of(frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return spans


def render(span: Span, *, caret: bool = True) -> str:
    """The place, its source line and a caret under the expression; only the place where the source is unavailable.

    An expression of several lines is marked to the end of its first.

    >>> print(render(Span.at("demo.py", 4, 11, 16, "loss", "h = np.sin(x @ w)")))
      demo.py:4 in loss
          h = np.sin(x @ w)
                     ^^^^^
    """
    # The enclosing functions of a nested one say nothing that its line does not.
    function = span.function.rpartition("<locals>.")[2]
    header = f"  {span.role} of {span.label()}" if span.role else f"  {span.label()}"
    if function and function != "<module>":
        header += f" in {function}"
    source = span.source.translate(_TO_SPACE)
    shown = source.strip()
    if not shown:
        return header
    lines = [header, f"      {shown}"]
    indentation = len(source) - len(source.lstrip())
    start = max(span.column - indentation, 0)
    stop = len(shown) if span.end_line > span.line else min(span.end_column - indentation, len(shown))
    if caret and start < stop:
        lines.append("      " + " " * _cells(shown[:start]) + "^" * _cells(shown[start:stop]))
    return "\n".join(lines)


def _cells(text: str) -> int:
    """The terminal columns that `text` takes: wide East Asian characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )
