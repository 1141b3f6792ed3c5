"""The machine that runs the tables of `front.py`, as LLVM IR: the vectorcall function of every object that has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from srcgrad.backends.llvm import entry, layout
from srcgrad.backends.llvm.front import MOST_ARGUMENTS, MOST_REGISTERS, MOST_RESULTS, WORD, Code

_CONTIGUOUS_ALIGNED: Final = 0x101
_UNFIT: Final = "inttoptr (i64 1 to ptr)"
"""What a table that does not fit returns."""
_ARGUMENTS_OFFSET: Final = 1 << 63
_DECLARATIONS: Final = """\
declare ptr @PyThreadState_Get()
declare ptr @_PyObject_MakeTpCall(ptr, ptr, ptr, i64, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyList_New(i64)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)
declare void @PyErr_Clear()
declare void @_Py_Dealloc(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
@PyArray_Type = external global i8
@srcgrad_front_active = external global i8
@srcgrad_front_failed = external global i8
@srcgrad_front_none = external global i8
@srcgrad_front_dict = external global i8
"""


def text(slot: int) -> str:
    """The module; the tuple of tables is in the slot at this offset of an object."""
    return "\n".join([_DECLARATIONS, _release(), _Machine().text(), _front(slot), _failing()])


class _Writer:
    """Instructions of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def set(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {instruction}")
        return f"%t{self.count}"

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def label(self, name: str = "") -> str:
        self.count += not name
        name = name or f"b{self.count}"
        self.lines.append(f"{name}:")
        self.at = name
        return name

    def field(self, pointer: str, offset: int | str, type: str = "ptr") -> str:
        place = self.set(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return self.set(f"load {type}, ptr {place}, align {4 if type == 'i32' else 8}")

    def branch(self, condition: str, where: str) -> None:
        """Go there if the condition holds."""
        self.count += 1
        on = f"b{self.count}"
        self.do(f"br i1 {condition}, label %{where}, label %{on}")
        self.label(on)

    def acquire(self, object: str) -> None:
        references = self.set(f"add i64 {self.set(f'load i64, ptr {object}, align 8')}, 1")
        self.do(f"store i64 {references}, ptr {object}, align 8")

    def function(self, head: str) -> str:
        return "\n".join([f"define {head} {{", *self.lines, "}", ""])


def _release() -> str:
    """``@release`` gives a reference back, if it is one; ``@release_all`` gives back those in memory."""
    return """
define internal void @release(ptr %object) {
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %some
some:
  %before = load i64, ptr %object, align 8
  %after = sub i64 %before, 1
  store i64 %after, ptr %object, align 8
  %dead = icmp eq i64 %after, 0
  br i1 %dead, label %free, label %done
free:
  call void @_Py_Dealloc(ptr %object)
  ret void
done:
  ret void
}

define internal void @release_all(ptr %objects, i64 %count) {
entry:
  br label %next
next:
  %k = phi i64 [0, %entry], [%more, %one]
  %over = icmp eq i64 %k, %count
  br i1 %over, label %done, label %one
one:
  %place = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %place, align 8
  call void @release(ptr %object)
  %more = add i64 %k, 1
  br label %next
done:
  ret void
}
"""


class _Machine(_Writer):
    """``@run``: the call's result by one table, null where an exception is set, or `_UNFIT`."""

    def text(self) -> str:
        head = self._beginning()
        body = _Writer()
        self.count, self.arrivals = 1000, [("%first", self.at)]
        for code in Code:
            self.label(f"code{code.value}")
            operation: Callable[[], int] = getattr(self, f"_{code.name.lower()}")
            length = operation()
            if length:
                self.arrivals.append((self.set(f"getelementptr i64, ptr %pc, i64 {length}"), self.at))
                self.do("br label %next")
        self._array_end()
        self._endings()
        operations, self.lines = self.lines, []
        body.label("next")
        body.do(f"%pc = phi ptr {', '.join(f'[{value}, %{label}]' for value, label in self.arrivals)}")
        body.do("%code = load i64, ptr %pc, align 8")
        cases = " ".join(f"i64 {code.value}, label %code{code.value}" for code in Code)
        body.do(f"switch i64 %code, label %unfit [{cases}]")
        self.lines = [*head, *body.lines, *operations]
        return self.function("internal ptr @run(ptr %words, ptr %callable, ptr %args, i64 %nargs)")

    def _beginning(self) -> list[str]:
        self.label("entry")
        for name, count in (
            ("registers", MOST_REGISTERS), ("argv", MOST_ARGUMENTS), ("stack", MOST_RESULTS), ("owned", 1),
            ("result", 1), ("given", 1), ("top", 1),
        ):  # fmt: skip
            self.do(f"%{name} = alloca [{count} x i64], align 16")
        for name in ("owned", "result", "given", "top"):
            self.do(f"store i64 0, ptr %{name}, align 8")
        self.branch(self.set(f"icmp ne i64 {self.field('%words', 0, 'i64')}, %nargs"), "unfit")
        self.do("store ptr %callable, ptr %registers, align 8")
        self.do("%first = getelementptr i64, ptr %words, i64 1")
        before = self.at
        self.do("br label %copying")
        self.label("copying")
        self.do(f"%number = phi i64 [0, %{before}], [%following, %copied]")
        self.do("%all = icmp eq i64 %number, %nargs")
        self.do("br i1 %all, label %begin, label %copied")
        self.label("copied")
        argument = self.set(f"load ptr, ptr {self.set('getelementptr ptr, ptr %args, i64 %number')}, align 8")
        self.do("%following = add i64 %number, 1")
        self.do(f"store ptr {argument}, ptr {self.set('getelementptr ptr, ptr %registers, i64 %following')}, align 8")
        self.do("br label %copying")
        self.label("begin")
        self.do("br label %next")
        lines, self.lines = self.lines, []
        return lines

    # --- operands ----------------------------------------------------------------------------------
    def word(self, number: int, type: str = "i64") -> str:
        return self.field("%pc", WORD * number, type)

    def register(self, number: int) -> str:
        """The object in the register that a word names."""
        return self.set(f"load ptr, ptr {self.register_place(number)}, align 8")

    def register_place(self, number: int) -> str:
        return self.set(f"getelementptr ptr, ptr %registers, i64 {self.word(number)}")

    def keep(self, number: int, object: str) -> None:
        self.do(f"store ptr {object}, ptr {self.register_place(number)}, align 8")

    def unless(self, condition: str) -> None:
        """No fit unless the condition holds."""
        self.count += 1
        on = f"b{self.count}"
        self.do(f"br i1 {condition}, label %{on}, label %unfit")
        self.label(on)

    def given(self) -> str:
        return self.set("load i64, ptr %given, align 8")

    def push(self, object: str) -> None:
        top = self.set("load i64, ptr %top, align 8")
        self.do(f"store ptr {object}, ptr {self.set(f'getelementptr ptr, ptr %stack, i64 {top}')}, align 8")
        self.do(f"store i64 {self.set(f'add i64 {top}, 1')}, ptr %top, align 8")

    # --- guards ------------------------------------------------------------------------------------
    def _constant(self) -> int:
        self.keep(1, self.word(2, "ptr"))
        return 3

    def _load(self) -> int:
        found = self.field(self.register(2), self.word(3))
        self.unless(self.set(f"icmp ne ptr {found}, null"))
        self.keep(1, found)
        return 4

    def _looked_up(self, mapping: int, key: int, version: int) -> tuple[str, str]:
        """Begin the case that a dict has changed since a word was its version: what it has, and its version now."""
        dict = self.register(mapping)
        now = self.field(dict, layout.VERSION, "i64")
        self.count += 1
        look, same = f"look{self.count}", f"same{self.count}"
        known = self.set(f"icmp eq i64 {now}, {self.word(version)}")
        self.do(f"br i1 {known}, label %{same}, label %{look}")
        self.label(look)
        kind = self.field(dict, layout.TYPE)
        self.unless(self.set(f"icmp eq ptr {kind}, @srcgrad_front_dict"))
        found = self.set(f"call ptr @PyDict_GetItem(ptr {dict}, ptr {self.word(key, 'ptr')})")
        self.same = same
        return found, now

    def _cached(self, number: int, value: str, type: str) -> None:
        place = self.set(f"getelementptr i64, ptr %pc, i64 {number}")
        self.do(f"store {type} {value}, ptr {place}, align 8")

    def _item(self) -> int:
        found, version = self._looked_up(2, 3, 4)
        self.unless(self.set(f"icmp ne ptr {found}, null"))
        self._cached(4, version, "i64")
        self._cached(5, found, "ptr")
        self.do(f"br label %{self.same}")
        self.label(self.same)
        self.keep(1, self.word(5, "ptr"))
        return 6

    def _absent(self) -> int:
        found, version = self._looked_up(1, 2, 3)
        self.unless(self.set(f"icmp eq ptr {found}, null"))
        self._cached(3, version, "i64")
        self.do(f"br label %{self.same}")
        self.label(self.same)
        return 4

    def _is(self) -> int:
        self.unless(self.set(f"icmp eq ptr {self.register(1)}, {self.word(2, 'ptr')}"))
        return 3

    def _same(self) -> int:
        self.unless(self.set(f"icmp eq ptr {self.register(1)}, {self.register(2)}"))
        return 3

    def _differ(self) -> int:
        self.unless(self.set(f"icmp ne ptr {self.register(1)}, {self.register(2)}"))
        return 3

    def _word(self) -> int:
        self.unless(self.set(f"icmp eq i64 {self.field(self.register(1), self.word(2), 'i64')}, {self.word(3)}"))
        return 4

    def _half(self) -> int:
        expected = self.set(f"trunc i64 {self.word(3)} to i32")
        self.unless(self.set(f"icmp eq i32 {self.field(self.register(1), self.word(2), 'i32')}, {expected}"))
        return 4

    def _array(self) -> int:
        """Of this very class, dtype object and shape, in C order and aligned."""
        array = self.register(1)
        self.unless(self.set(f"icmp eq ptr {self.field(array, entry.TYPE)}, @PyArray_Type"))
        self.unless(self.set(f"icmp eq ptr {self.field(array, entry.DESCR)}, {self.word(2, 'ptr')}"))
        rank = self.word(3)
        flags = self.set(f"and i32 {self.field(array, entry.FLAGS, 'i32')}, {_CONTIGUOUS_ALIGNED}")
        self.unless(self.set(f"icmp eq i32 {flags}, {_CONTIGUOUS_ALIGNED}"))
        self.do(f"%rank = add i64 {rank}, 0")
        own = self.set(f"zext i32 {self.field(array, entry.RANK, 'i32')} to i64")
        self.unless(self.set(f"icmp eq i64 {own}, %rank"))
        self.do(f"%dims = getelementptr i8, ptr {self.field(array, entry.DIMS)}, i64 0")
        self.do("%sizes = getelementptr i64, ptr %pc, i64 4")
        before = self.at
        self.do("br label %axes")
        self.label("axes")
        self.do(f"%axis = phi i64 [0, %{before}], [%after, %axis_fits]")
        self.do("%measured = icmp eq i64 %axis, %rank")
        self.do("br i1 %measured, label %array_fits, label %measure")
        self.label("measure")
        size = self.set(f"load i64, ptr {self.set('getelementptr i64, ptr %dims, i64 %axis')}, align 8")
        expected = self.set(f"load i64, ptr {self.set('getelementptr i64, ptr %sizes, i64 %axis')}, align 8")
        fits = self.set(f"icmp eq i64 {size}, {expected}")
        self.do(f"br i1 {fits}, label %axis_fits, label %unfit")
        self.label("axis_fits")
        self.do("%after = add i64 %axis, 1")
        self.do("br label %axes")
        return 0

    def _array_end(self) -> None:
        self.label("array_fits")
        self.arrivals.append((self.set("getelementptr i64, ptr %sizes, i64 %rank"), self.at))
        self.do("br label %next")

    def _bind(self) -> int:
        self.do(f"store ptr {self.register(3)}, ptr %argv, align 8")
        found = self.set(f"call ptr @PyObject_Vectorcall(ptr {self.word(2, 'ptr')}, ptr %argv, i64 1, ptr null)")
        self.branch(self.set(f"icmp eq ptr {found}, null"), "cleared")
        self.do(f"store ptr {found}, ptr %owned, align 8")
        self.unless(self.set(f"icmp ne ptr {found}, @srcgrad_front_none"))
        self.keep(1, found)
        return 4

    # --- the program -------------------------------------------------------------------------------
    def _give(self) -> int:
        object, number = self.register(1), self.given()
        self.acquire(object)
        self.do(f"store ptr {object}, ptr {self.set(f'getelementptr ptr, ptr %argv, i64 {number}')}, align 8")
        self.do(f"store i64 {self.set(f'add i64 {number}, 1')}, ptr %given, align 8")
        return 2

    def _dropped(self) -> None:
        self.do(f"call void @release_all(ptr %argv, i64 {self.given()})")
        self.do(f"call void @release(ptr {self.set('load ptr, ptr %owned, align 8')})")

    def _native(self) -> int:
        code, own = self.word(1, "ptr"), self.word(2, "ptr")
        found = self.set(f"call ptr {code}(ptr {own}, ptr %argv, i64 {self.given()})")
        self._dropped()
        self.do(f"store ptr {found}, ptr %result, align 8")
        self.branch(self.set(f"icmp eq ptr {found}, null"), "failed")
        return 3

    def _python(self) -> int:
        function, number = self.word(1, "ptr"), self.given()
        found = self.set(f"call ptr @PyObject_Vectorcall(ptr {function}, ptr %argv, i64 {number}, ptr null)")
        self._dropped()
        self.do(f"ret ptr {found}")
        return 0

    # --- the result --------------------------------------------------------------------------------
    def _result(self) -> int:
        self.do(f"ret ptr {self.set('load ptr, ptr %result, align 8')}")
        return 0

    def _finish(self) -> int:
        result = self.set("load ptr, ptr %result, align 8")
        self.do(f"store ptr {result}, ptr %argv, align 8")
        self.do(f"store ptr {self.word(2, 'ptr')}, ptr {self.set('getelementptr ptr, ptr %argv, i64 1')}, align 8")
        made = self.set(f"call ptr @PyObject_Vectorcall(ptr {self.word(1, 'ptr')}, ptr %argv, i64 2, ptr null)")
        self.do(f"call void @release(ptr {result})")
        self.do(f"ret ptr {made}")
        return 0

    def _keep(self) -> int:
        result = self.set("load ptr, ptr %result, align 8")
        items = self.set(f"getelementptr i8, ptr {result}, i64 {layout.ITEMS}")
        found = self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr {items}, i64 {self.word(1)}')}, align 8")
        self.acquire(found)
        self.push(found)
        return 2

    def _pick(self) -> int:
        found = self.word(1, "ptr")
        self.acquire(found)
        self.push(found)
        return 2

    def _container(self, make: str, is_list: bool) -> int:
        """The topmost objects in a container, which takes their references."""
        count = self.word(1)
        made = self.set(f"call ptr @{make}(i64 {count})")
        self.branch(self.set(f"icmp eq ptr {made}, null"), "undo")
        items = self.set(f"getelementptr i8, ptr {made}, i64 {layout.ITEMS}")
        if is_list:
            items = self.set(f"load ptr, ptr {items}, align 8")
        top = self.set("load i64, ptr %top, align 8")
        first = self.set(f"sub i64 {top}, {count}")
        source = self.set(f"getelementptr ptr, ptr %stack, i64 {first}")
        size = self.set(f"mul i64 {count}, {WORD}")
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {items}, ptr align 8 {source}, i64 {size}, i1 false)")
        self.do(f"store i64 {first}, ptr %top, align 8")
        self.push(made)
        return 2

    def _tuple(self) -> int:
        return self._container("PyTuple_New", False)

    def _list(self) -> int:
        return self._container("PyList_New", True)

    def _dict(self) -> int:
        self.do(f"%entries = add i64 {self.word(1)}, 0")
        made = self.set("call ptr @PyDict_New()")
        self.branch(self.set(f"icmp eq ptr {made}, null"), "undo")
        self.do(f"%keys = getelementptr i8, ptr {self.word(2, 'ptr')}, i64 {layout.ITEMS}")
        self.do(f"%bottom = sub i64 {self.set('load i64, ptr %top, align 8')}, %entries")
        self.do("%values = getelementptr ptr, ptr %stack, i64 %bottom")
        before = self.at
        self.do("br label %filling")
        self.label("filling")
        self.do(f"%filled = phi i64 [0, %{before}], [%refilled, %stored]")
        self.do("%full = icmp eq i64 %filled, %entries")
        self.do("br i1 %full, label %filled_up, label %fill")
        self.label("fill")
        key = self.set(f"load ptr, ptr {self.set('getelementptr ptr, ptr %keys, i64 %filled')}, align 8")
        value = self.set(f"load ptr, ptr {self.set('getelementptr ptr, ptr %values, i64 %filled')}, align 8")
        status = self.set(f"call i32 @PyDict_SetItem(ptr {made}, ptr {key}, ptr {value})")
        fails = self.set(f"icmp ne i32 {status}, 0")
        self.do(f"br i1 {fails}, label %unfilled, label %stored")
        self.label("unfilled")
        self.do(f"call void @release(ptr {made})")
        self.do("br label %undo")
        self.label("stored")
        self.do("%refilled = add i64 %filled, 1")
        self.do("br label %filling")
        self.label("filled_up")
        self.do("call void @release_all(ptr %values, i64 %entries)")
        self.do("store i64 %bottom, ptr %top, align 8")
        self.push(made)
        return 3

    def _done(self) -> int:
        self.do(f"call void @release(ptr {self.set('load ptr, ptr %result, align 8')})")
        self.do(f"ret ptr {self.set('load ptr, ptr %stack, align 8')}")
        return 0

    def _endings(self) -> None:
        self.label("undo")
        self.do(f"call void @release_all(ptr %stack, i64 {self.set('load i64, ptr %top, align 8')})")
        self.do(f"call void @release(ptr {self.set('load ptr, ptr %result, align 8')})")
        self.do("br label %failed")
        self.label("failed")
        self.do("ret ptr null")
        self.label("cleared")
        self.do("call void @PyErr_Clear()")
        self.do("br label %unfit")
        self.label("unfit")
        self.do(f"call void @release(ptr {self.set('load ptr, ptr %owned, align 8')})")
        self.do(f"ret ptr {_UNFIT}")


def _front(slot: int) -> str:
    """``@srcgrad_front``: the tables in turn, or else what the class does with a call."""
    w = _Writer()
    w.label("entry")
    w.do(f"%count = and i64 %nargsf, {_ARGUMENTS_OFFSET - 1}")
    w.do("%plain = icmp eq ptr %names, null")
    w.do("br i1 %plain, label %idle, label %named")
    w.label("named")
    w.branch(w.set(f"icmp ne i64 {w.field('%names', layout.SIZE, 'i64')}, 0"), "slow")
    w.do("br label %idle")
    w.label("idle")
    w.branch(w.set(f"icmp ne i64 {w.field('@srcgrad_front_active', layout.SIZE, 'i64')}, 0"), "slow")
    tables = w.field("%callable", slot)
    w.branch(w.set(f"icmp eq ptr {tables}, null"), "slow")
    w.acquire(tables)
    size = w.field(tables, layout.SIZE, "i64")
    items = w.set(f"getelementptr i8, ptr {tables}, i64 {layout.ITEMS}")
    before = w.at
    w.do("br label %trying")
    w.label("trying")
    w.do(f"%number = phi i64 [0, %{before}], [%following, %unfit]")
    w.do(f"%all = icmp uge i64 %number, {size}")
    w.do("br i1 %all, label %unserved, label %try")
    w.label("try")
    table = w.set(f"load ptr, ptr {w.set(f'getelementptr ptr, ptr {items}, i64 %number')}, align 8")
    words = w.field(table, layout.BUFFER)
    w.do(f"%found = call ptr @run(ptr {words}, ptr %callable, ptr %args, i64 %count)")
    unfit = w.set(f"icmp eq ptr %found, {_UNFIT}")
    w.do(f"br i1 {unfit}, label %unfit, label %served")
    w.label("unfit")
    w.do("%following = add i64 %number, 2")
    w.do("br label %trying")
    w.label("served")
    w.do(f"call void @release(ptr {tables})")
    fails = w.set("icmp eq ptr %found, null")
    w.do(f"br i1 {fails}, label %failing, label %done")
    w.label("done")
    w.do("ret ptr %found")
    w.label("failing")
    w.do(f"ret ptr {w.set('call ptr @failing(ptr %callable)')}")
    w.label("unserved")
    w.do(f"call void @release(ptr {tables})")
    w.do("br label %slow")
    w.label("slow")
    thread = w.set("call ptr @PyThreadState_Get()")
    call = f"call ptr @_PyObject_MakeTpCall(ptr {thread}, ptr %callable, ptr %args, i64 %count, ptr %names)"
    w.do(f"ret ptr {w.set(call)}")
    return w.function("ptr @srcgrad_front(ptr %callable, ptr %args, i64 %nargsf, ptr %names)")


def _failing() -> str:
    """``@failing``: what the Python function for failed calls makes of the exception that is set."""
    w = _Writer()
    for name in ("kind", "value", "traceback"):
        w.do(f"%{name} = alloca ptr, align 8")
    w.do("%given = alloca [2 x ptr], align 16")
    places = "ptr %kind, ptr %value, ptr %traceback"
    w.do(f"call void @PyErr_Fetch({places})")
    w.do(f"call void @PyErr_NormalizeException({places})")
    kind, value, traceback = (w.set(f"load ptr, ptr %{name}, align 8") for name in ("kind", "value", "traceback"))
    traced = w.set(f"icmp ne ptr {traceback}, null")
    w.do(f"br i1 {traced}, label %traced, label %raise")
    w.label("traced")
    w.set(f"call i32 @PyException_SetTraceback(ptr {value}, ptr {traceback})")
    w.do("br label %raise")
    w.label("raise")
    w.do("store ptr %callable, ptr %given, align 8")
    w.do(f"store ptr {value}, ptr {w.set('getelementptr ptr, ptr %given, i64 1')}, align 8")
    found = w.set("call ptr @PyObject_Vectorcall(ptr @srcgrad_front_failed, ptr %given, i64 2, ptr null)")
    for object in (kind, value, traceback):
        w.do(f"call void @release(ptr {object})")
    w.do(f"ret ptr {found}")
    return w.function("internal ptr @failing(ptr %callable)")
