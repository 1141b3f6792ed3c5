"""The machine that runs the tables of `front.py`, as LLVM IR: the vectorcall function of every object that has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from srcgrad.backends.llvm import entry, layout
from srcgrad.backends.llvm.front import HEADER, WORD, Code
from srcgrad.backends.llvm.front_lookups import Reader, index_text, look_text
from srcgrad.backends.llvm.front_text import Writer, release_text
from srcgrad.backends.llvm.pool_text import STRIDES_FIELD

_CONTIGUOUS_ALIGNED: Final = 0x101
_WRITABLE: Final = 0x400
_UNFIT: Final = "inttoptr (i64 1 to ptr)"
"""What a table that does not fit returns."""
_ARGUMENTS_OFFSET: Final = 1 << 63
_DECLARATIONS: Final = """\
declare ptr @PyThreadState_Get()
declare ptr @_PyObject_MakeTpCall(ptr, ptr, ptr, i64, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @srcgrad_enter(ptr, ptr, i64, ptr, ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyUnicode_Compare(ptr, ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyList_New(i64)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare i32 @PyObject_GenericSetAttr(ptr, ptr, ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)
declare void @PyErr_Clear()
declare i32 @PyErr_ExceptionMatches(ptr)
declare ptr @PyObject_GenericGetDict(ptr, ptr)
declare ptr @PyArray_NewCopy(ptr, i32)
declare void @_Py_Dealloc(ptr)
declare i32 @memcmp(ptr, ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
@PyArray_Type = external global i8
@srcgrad_front_active = external global i8
@srcgrad_front_failed = external global i8
@srcgrad_front_none = external global i8
@srcgrad_front_dict = external global i8
@srcgrad_front_text = external global i8
@srcgrad_front_empty = external global i8
@srcgrad_front_exception = external global i8
"""


def text(slot: int) -> str:
    """The module; the tuple of tables is in the slot at this offset of an object."""
    parts = [_DECLARATIONS, release_text(), index_text(), look_text(), _Machine().text(), _front(slot), _failing()]
    return "\n".join(parts)


class _Machine(Reader):
    """``@run``: the call's result by one table, null where an exception is set, or `_UNFIT`."""

    def text(self) -> str:
        first = self._beginning()
        body = Writer()
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
        self.lines = [*first, *body.lines, *operations]
        head = "internal ptr @run(ptr %words, ptr %callable, ptr %args, i64 %nargs, ptr %names, i64 %named)"
        return self.function(head)

    def _beginning(self) -> list[str]:
        self.label("entry")
        for name in ("owned", "result", "given", "top", "position", "key", "results", "filled"):
            self.do(f"%{name} = alloca i64, align 8")
        for place, name in enumerate(("registers", "argv"), 2):
            self.do(f"%{name} = alloca ptr, i64 {self.field('%words', place * WORD, 'i64')}, align 16")
        self.do("%stack = getelementptr ptr, ptr %argv, i64 0")  # for the results, once the arguments are given back
        for name in ("owned", "result", "given", "top", "filled"):
            self.do(f"store i64 0, ptr %{name}, align 8")
        self.branch(self.set(f"icmp ne i64 {self.field('%words', 0, 'i64')}, %nargs"), "unfit")
        self.branch(self.set(f"icmp ne i64 {self.field('%words', WORD, 'i64')}, %named"), "unfit")
        self.do("store ptr %callable, ptr %registers, align 8")
        self.do(f"%keys = getelementptr i8, ptr %words, i64 {HEADER * WORD}")
        self.do("%first = getelementptr i64, ptr %keys, i64 %named")
        before = self.at
        self.do("br label %naming")
        self.label("naming")
        self.do(f"%name = phi i64 [0, %{before}], [%name.next, %name.fits]")
        self.do("%named.all = icmp eq i64 %name, %named")
        self.do("br i1 %named.all, label %copy, label %compare")
        self.label("compare")
        key = self.set(f"load ptr, ptr {self.set('getelementptr ptr, ptr %keys, i64 %name')}, align 8")
        items = self.set(f"getelementptr i8, ptr %names, i64 {layout.ITEMS}")
        given = self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr {items}, i64 %name')}, align 8")
        self.do(f"br i1 {self.set(f'icmp eq ptr {key}, {given}')}, label %name.fits, label %unfit")
        self.label("name.fits")
        self.do("%name.next = add i64 %name, 1")
        self.do("br label %naming")
        self.label("copy")
        self.do("%count = add i64 %nargs, %named")
        self.do("br label %copying")
        self.label("copying")
        self.do("%number = phi i64 [0, %copy], [%following, %copied]")
        self.do("%all = icmp eq i64 %number, %count")
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

    def given(self) -> str:
        return self.set("load i64, ptr %given, align 8")

    def push(self, object: str) -> None:
        top = self.set("load i64, ptr %top, align 8")
        self.do(f"store ptr {object}, ptr {self.set(f'getelementptr ptr, ptr %stack, i64 {top}')}, align 8")
        self.do(f"store i64 {self.set(f'add i64 {top}, 1')}, ptr %top, align 8")

    @contextmanager
    def each(self, name: str, count: str) -> Iterator[str]:
        """A loop over so many numbers, one or more."""
        before = self.at
        self.do(f"br label %{name}")
        self.label(name)
        self.do(f"%{name}.k = phi i64 [0, %{before}], [%{name}.next, %{name}]")
        yield f"%{name}.k"
        self.do(f"%{name}.next = add i64 %{name}.k, 1")
        self.do(f"%{name}.more = icmp ult i64 %{name}.next, {count}")
        self.do(f"br i1 %{name}.more, label %{name}, label %{name}.done")
        self.label(f"{name}.done")

    # --- guards ------------------------------------------------------------------------------------
    def _constant(self) -> int:
        self.keep(1, self.word(2, "ptr"))
        return 3

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

    def _of_dtype_and_rank(self) -> str:
        """An array, of this very class, dtype object and rank."""
        array = self.register(1)
        self.unless(self.set(f"icmp eq ptr {self.field(array, entry.TYPE)}, @PyArray_Type"))
        self.unless(self.set(f"icmp eq ptr {self.field(array, entry.DESCR)}, {self.word(2, 'ptr')}"))
        own = self.set(f"zext i32 {self.field(array, entry.RANK, 'i32')} to i64")
        self.unless(self.set(f"icmp eq i64 {own}, {self.word(3)}"))
        return array

    def _strided(self) -> int:
        """Of this shape, with these strides."""
        array = self._of_dtype_and_rank()
        self.do(f"%turned.rank = add i64 {self.word(3)}, 0")
        self.do(f"%turned.size = mul i64 %turned.rank, {WORD}")
        self.do("%turned.sizes = getelementptr i64, ptr %pc, i64 4")
        self.do("%turned.steps = getelementptr i64, ptr %turned.sizes, i64 %turned.rank")
        for field, expected in ((entry.DIMS, "%turned.sizes"), (STRIDES_FIELD, "%turned.steps")):
            own = self.field(array, field)
            found = self.set(f"call i32 @memcmp(ptr {own}, ptr {expected}, i64 %turned.size)")
            self.unless(self.set(f"icmp eq i32 {found}, 0"))
        self.arrivals.append((self.set("getelementptr i64, ptr %turned.steps, i64 %turned.rank"), self.at))
        self.do("br label %next")
        return 0

    def _array(self) -> int:
        """Of this shape, in C order and aligned."""
        array = self._of_dtype_and_rank()
        flags = self.set(f"and i32 {self.field(array, entry.FLAGS, 'i32')}, {_CONTIGUOUS_ALIGNED}")
        self.unless(self.set(f"icmp eq i32 {flags}, {_CONTIGUOUS_ALIGNED}"))
        self.do(f"%rank = add i64 {self.word(3)}, 0")
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

    def _writable(self) -> int:
        flags = self.set(f"and i32 {self.field(self.register(1), entry.FLAGS, 'i32')}, {_WRITABLE}")
        self.unless(self.set(f"icmp ne i32 {flags}, 0"))
        return 2

    def _apart(self) -> int:
        first, other = (self.field(self.register(k), entry.DATA, "i64") for k in (1, 3))
        before = self.set(f"icmp ule i64 {self.set(f'add i64 {first}, {self.word(2)}')}, {other}")
        behind = self.set(f"icmp ule i64 {self.set(f'add i64 {other}, {self.word(4)}')}, {first}")
        self.unless(self.set(f"or i1 {before}, {behind}"))
        return 5

    def _contents(self) -> int:
        own = self.field(self.register(1), entry.DATA)
        found = self.set(f"call i32 @memcmp(ptr {own}, ptr {self.word(2, 'ptr')}, i64 {self.word(3)})")
        self.unless(self.set(f"icmp eq i32 {found}, 0"))
        return 4

    def _bind(self) -> int:
        given = self.given()
        found = self.set(f"call ptr @PyObject_Vectorcall(ptr {self.word(2, 'ptr')}, ptr %argv, i64 {given}, ptr null)")
        self.do(f"call void @release_all(ptr %argv, i64 {given})")
        self.do("store i64 0, ptr %given, align 8")
        self.branch(self.set(f"icmp eq ptr {found}, null"), "cleared")
        self.do(f"store ptr {found}, ptr %owned, align 8")
        self.unless(self.set(f"icmp ne ptr {found}, @srcgrad_front_none"))
        self.keep(1, found)
        return 3

    # --- the program -------------------------------------------------------------------------------
    def _give(self) -> int:
        number = self.given()
        first = self.register_place(1)
        target = self.set(f"getelementptr ptr, ptr %argv, i64 {number}")
        with self.each("giving", self.word(2)) as k:
            object = self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr {first}, i64 {k}')}, align 8")
            self.acquire(object)
            self.do(f"store ptr {object}, ptr {self.set(f'getelementptr ptr, ptr {target}, i64 {k}')}, align 8")
        self.do(f"store i64 {self.set(f'add i64 {number}, {self.word(2)}')}, ptr %given, align 8")
        return 3

    def _copied(self) -> int:
        place = self.set(f"getelementptr ptr, ptr %argv, i64 {self.word(1)}")
        array = self.set(f"load ptr, ptr {place}, align 8")
        made = self.set(f"call ptr @PyArray_NewCopy(ptr {array}, i32 0)")
        self.do(f"br i1 {self.set(f'icmp eq ptr {made}, null')}, label %uncopied, label %copied.one")
        self.label("uncopied")
        self._dropped()
        self.do("br label %failed")
        self.label("copied.one")
        self.do(f"store ptr {made}, ptr {place}, align 8")
        self.do(f"call void @release(ptr {array})")
        return 2

    def _dropped(self) -> None:
        self.do(f"call void @release_all(ptr %argv, i64 {self.given()})")
        self.do(f"call void @release(ptr {self.set('load ptr, ptr %owned, align 8')})")
        self.do("store i64 0, ptr %owned, align 8")

    def _native(self) -> int:
        code, own = self.word(1, "ptr"), self.word(2, "ptr")
        found = self.set(f"call ptr {code}(ptr {own}, ptr %argv, i64 {self.given()})")
        self._dropped()
        self.do(f"store ptr {found}, ptr %result, align 8")
        self.branch(self.set(f"icmp eq ptr {found}, null"), "failed")
        return 3

    def _fill(self) -> int:
        """The program's results in memory of their own, with references that are given back at the end."""
        table, own, count = self.word(1, "ptr"), self.word(2, "ptr"), self.word(3)
        self.do(f"%copies = add i64 {self.word(4)}, 0")
        self.do("%copying.any = icmp ne i64 %copies, 0")
        room = self.set(f"alloca ptr, i64 {self.set(f'add i64 {count}, 1')}, align 16")
        given = f"ptr {own}, ptr %argv, i64 {self.given()}, ptr {table}, ptr {room}"
        found = self.set(f"call ptr @srcgrad_enter({given})")
        none = self.set(f"icmp eq ptr {found}, null")
        self.do(f"br i1 {none}, label %fill.failed, label %fill.done")
        self._fill_failed()
        self.label("fill.done")
        self.do(f"br i1 {self.set(f'icmp eq ptr {found}, {room}')}, label %filled.all, label %unfilled")
        self.label("unfilled")  # Python has made a tuple instead
        self.do("br i1 %copying.any, label %fill.again, label %fill.tuple")
        self.label("fill.again")
        self._dropped()
        self.do(f"call void @release(ptr {found})")
        self.do("br label %unfit")
        self.label("fill.tuple")
        items = self.set(f"getelementptr i8, ptr {found}, i64 {layout.ITEMS}")
        with self.each("filling", count) as k:
            item = self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr {items}, i64 {k}')}, align 8")
            self.acquire(item)
            self.do(f"store ptr {item}, ptr {self.set(f'getelementptr ptr, ptr {room}, i64 {k}')}, align 8")
        self.do(f"call void @release(ptr {found})")
        self.do("br label %filled.all")
        self.label("filled.all")
        self.do(f"store ptr {room}, ptr %results, align 8")
        self.do(f"store i64 {count}, ptr %filled, align 8")
        self._copied_back(room)
        self._dropped()
        self.arrivals.append((self.set("getelementptr i64, ptr %copy.words, i64 0"), self.at))
        self.do("br label %next")
        return 0

    def _fill_failed(self) -> None:
        """What has copied nothing yet is no fit if the error is an ordinary one: the function itself raises it."""
        self.label("fill.failed")
        self._dropped()
        self.do("br i1 %copying.any, label %fill.asked, label %failed")
        self.label("fill.asked")
        ordinary = self.set("call i32 @PyErr_ExceptionMatches(ptr @srcgrad_front_exception)")
        self.do(f"br i1 {self.set(f'icmp ne i32 {ordinary}, 0')}, label %cleared, label %failed")

    def _copied_back(self, results: str) -> None:
        """Results into arguments: a number of each, and how many bytes; ``%copy.words`` is behind them."""
        self.do("%copy.first = getelementptr i64, ptr %pc, i64 5")
        self.do("br label %copy.next")
        self.label("copy.next")
        self.do("%copy.words = phi ptr [%copy.first, %filled.all], [%copy.behind, %copy.one]")
        self.do("%copy.k = phi i64 [0, %filled.all], [%copy.more, %copy.one]")
        self.do("%copy.all = icmp eq i64 %copy.k, %copies")
        self.do("br i1 %copy.all, label %copy.done, label %copy.one")
        self.label("copy.one")
        target, source = (
            self.field(self.at_number(of, self.field("%copy.words", place, "i64")), entry.DATA)
            for of, place in (("%argv", 0), (results, WORD))
        )
        size = self.field("%copy.words", 2 * WORD, "i64")
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr align 1 {target}, ptr align 1 {source}, i64 {size}, i1 false)")
        self.do("%copy.behind = getelementptr i64, ptr %copy.words, i64 3")
        self.do("%copy.more = add i64 %copy.k, 1")
        self.do("br label %copy.next")
        self.label("copy.done")

    def at_number(self, pointers: str, number: str) -> str:
        return self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr {pointers}, i64 {number}')}, align 8")

    def _filled_given_back(self) -> None:
        results, count = self.set("load ptr, ptr %results, align 8"), self.set("load i64, ptr %filled, align 8")
        self.do(f"call void @release_all(ptr {results}, i64 {count})")

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
        results = self.set("load ptr, ptr %results, align 8")
        found = self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr {results}, i64 {self.word(1)}')}, align 8")
        self.acquire(found)
        self.push(found)
        return 2

    def _move(self) -> int:
        """References to results of which nobody else needs one."""
        results, top = self.set("load ptr, ptr %results, align 8"), self.set("load i64, ptr %top, align 8")
        first = self.set(f"getelementptr ptr, ptr {results}, i64 {self.word(1)}")
        target = self.set(f"getelementptr ptr, ptr %stack, i64 {top}")
        with self.each("moving", self.word(2)) as k:
            place = self.set(f"getelementptr ptr, ptr {first}, i64 {k}")
            object = self.set(f"load ptr, ptr {place}, align 8")
            self.do(f"store ptr null, ptr {place}, align 8")
            self.do(f"store ptr {object}, ptr {self.set(f'getelementptr ptr, ptr {target}, i64 {k}')}, align 8")
        self.do(f"store i64 {self.set(f'add i64 {top}, {self.word(2)}')}, ptr %top, align 8")
        return 3

    def _rest(self) -> int:
        self._filled_given_back()
        return 1

    def _pick(self) -> int:
        found = self.word(1, "ptr")
        self.acquire(found)
        self.push(found)
        return 2

    def _container(self, make: str, is_list: bool = False, cls: bool = False) -> int:
        """The topmost objects in a container, which takes their references."""
        count = self.word(1)
        of = f"ptr {self.word(2, 'ptr')}, " if cls else ""
        made = self.set(f"call ptr @{make}({of}i64 {count})")
        self.branch(self.set(f"icmp eq ptr {made}, null"), "undo")
        if is_list:
            items = self.field(made, layout.LIST_ITEMS)
        else:
            items = self.set(f"getelementptr i8, ptr {made}, i64 {layout.ITEMS}")
        if cls and layout.HASH < layout.ITEMS:  # of a tuple: not known yet
            self.do(f"store i64 -1, ptr {self.set(f'getelementptr i8, ptr {made}, i64 {layout.HASH}')}, align 8")
        top = self.set("load i64, ptr %top, align 8")
        first = self.set(f"sub i64 {top}, {count}")
        source = self.set(f"getelementptr ptr, ptr %stack, i64 {first}")
        size = self.set(f"mul i64 {count}, {WORD}")
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {items}, ptr align 8 {source}, i64 {size}, i1 false)")
        self.do(f"store i64 {first}, ptr %top, align 8")
        self.push(made)
        return 3 if cls else 2

    def _tuple(self) -> int:
        return self._container("PyTuple_New")

    def _list(self) -> int:
        return self._container("PyList_New", is_list=True)

    def _record(self) -> int:
        return self._container("PyType_GenericAlloc", cls=True)

    def _dict(self) -> int:
        self._filled("entry", self.set("call ptr @PyDict_New()"), "PyDict_SetItem")
        return 3

    def _instance(self) -> int:
        cls = self.word(3, "ptr")
        made = self.set(f"call ptr {self.word(4, 'ptr')}(ptr {cls}, ptr @srcgrad_front_empty, ptr null)")
        self._filled("attribute", made, "PyObject_GenericSetAttr")
        return 5

    def _filled(self, what: str, made: str, store: str) -> None:
        """The topmost objects in a new container, under the keys of a tuple; they are given back."""
        n = f"{what}."
        self.do(f"%{n}count = add i64 {self.word(1)}, 0")
        self.branch(self.set(f"icmp eq ptr {made}, null"), "undo")
        self.do(f"%{n}keys = getelementptr i8, ptr {self.word(2, 'ptr')}, i64 {layout.ITEMS}")
        self.do(f"%{n}bottom = sub i64 {self.set('load i64, ptr %top, align 8')}, %{n}count")
        self.do(f"%{n}values = getelementptr ptr, ptr %stack, i64 %{n}bottom")
        before = self.at
        self.do(f"br label %{n}filling")
        self.label(f"{n}filling")
        self.do(f"%{n}k = phi i64 [0, %{before}], [%{n}next, %{n}stored]")
        self.do(f"%{n}full = icmp eq i64 %{n}k, %{n}count")
        self.do(f"br i1 %{n}full, label %{n}filled, label %{n}fill")
        self.label(f"{n}fill")
        key = self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr %{n}keys, i64 %{n}k')}, align 8")
        value = self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr %{n}values, i64 %{n}k')}, align 8")
        status = self.set(f"call i32 @{store}(ptr {made}, ptr {key}, ptr {value})")
        fails = self.set(f"icmp ne i32 {status}, 0")
        self.do(f"br i1 {fails}, label %{n}unfilled, label %{n}stored")
        self.label(f"{n}unfilled")
        self.do(f"call void @release(ptr {made})")
        self.do("br label %undo")
        self.label(f"{n}stored")
        self.do(f"%{n}next = add i64 %{n}k, 1")
        self.do(f"br label %{n}filling")
        self.label(f"{n}filled")
        self.do(f"call void @release_all(ptr %{n}values, i64 %{n}count)")
        self.do(f"store i64 %{n}bottom, ptr %top, align 8")
        self.push(made)

    def _done(self) -> int:
        self.do(f"ret ptr {self.set('load ptr, ptr %stack, align 8')}")
        return 0

    def _endings(self) -> None:
        self.label("undo")
        self.do(f"call void @release_all(ptr %stack, i64 {self.set('load i64, ptr %top, align 8')})")
        self._filled_given_back()
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
    w = Writer()
    w.label("entry")
    w.do(f"%count = and i64 %nargsf, {_ARGUMENTS_OFFSET - 1}")
    w.do("%plain = icmp eq ptr %names, null")
    w.do("br i1 %plain, label %idle, label %keywords")
    w.label("keywords")
    keywords = w.field("%names", layout.SIZE, "i64")
    w.do("br label %idle")
    w.label("idle")
    w.do(f"%named = phi i64 [0, %entry], [{keywords}, %keywords]")
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
    w.do(f"%found = call ptr @run(ptr {words}, ptr %callable, ptr %args, i64 %count, ptr %names, i64 %named)")
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
    raised = w.set("call ptr @failing(ptr %callable)")
    w.branch(w.set(f"icmp eq ptr {raised}, null"), "raised")
    w.do(f"call void @release(ptr {raised})")
    w.do("br label %slow")
    w.label("raised")
    w.do("ret ptr null")
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
    w = Writer()
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
