"""How tables read objects: registers, and what stands in dicts and instances; part of `front_machine.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from srcgrad.backends.llvm import layout
from srcgrad.backends.llvm.front import WORD
from srcgrad.backends.llvm.front_text import Writer

UNSURE: Final = "inttoptr (i64 1 to ptr)"


def index_text() -> str:
    """``@index_of``: the place of the entry whose key is this object; ``~COUNT``, beyond all places, where none is."""
    return f"""
define internal i64 @index_of(ptr %dict, ptr %key, i64 %before) nounwind {{
entry:
  %tabled = getelementptr i8, ptr %dict, i64 {layout.TABLE}
  %keys = load ptr, ptr %tabled, align 8
  %counted = getelementptr i8, ptr %keys, i64 {layout.COUNT}
  %count = load i64, ptr %counted, align 8
  %beyond = xor i64 %count, -1
  %searched = icmp eq i64 %before, %beyond
  br i1 %searched, label %nowhere, label %next
next:
  %k = phi i64 [0, %entry], [%more, %other]
  %over = icmp eq i64 %k, %count
  br i1 %over, label %nowhere, label %one
one:
  %place = call ptr @entry_of(ptr %keys, i64 %k)
  %own = load ptr, ptr %place, align 8
  %found = icmp eq ptr %own, %key
  br i1 %found, label %here, label %other
other:
  %more = add i64 %k, 1
  br label %next
here:
  ret i64 %k
nowhere:
  ret i64 %beyond
}}

define internal ptr @entry_of(ptr %keys, i64 %k) nounwind {{
  %kind.at = getelementptr i8, ptr %keys, i64 {layout.KIND}
  %kind = load i8, ptr %kind.at, align 1
  %general = icmp eq i8 %kind, 0
  %sized = getelementptr i8, ptr %keys, i64 {layout.INDEX_BYTES}
  %log = load i8, ptr %sized, align 1
  %shift = zext i8 %log to i64
  %size = shl i64 1, %shift
  %before = select i1 %general, i64 {layout.ENTRIES + layout.GENERAL_KEY}, i64 {layout.ENTRIES}
  %first = add i64 %size, %before
  %length = select i1 %general, i64 {layout.GENERAL_ENTRY}, i64 {layout.ENTRY}
  %far = mul i64 %k, %length
  %offset = add i64 %first, %far
  %place = getelementptr i8, ptr %keys, i64 %offset
  ret ptr %place
}}
"""


def look_text() -> str:
    """``@look``: what a dict has under a key, null where there is none, and 1 where only code of the user's can tell.

    Keys of classes that are written in Python may have an ``__eq__``, which may take away what stands in registers.
    """
    return f"""
define internal i1 @is_of_users(ptr %object) nounwind {{
  %typed = getelementptr i8, ptr %object, i64 {layout.TYPE}
  %type = load ptr, ptr %typed, align 8
  %flagged = getelementptr i8, ptr %type, i64 {layout.TYPE_FLAGS}
  %flags = load i64, ptr %flagged, align 8
  %heap = and i64 %flags, {layout.HEAP}
  %users = icmp ne i64 %heap, 0
  ret i1 %users
}}

define internal ptr @look(ptr %dict, ptr %key) nounwind {{
entry:
  %strange = call i1 @is_of_users(ptr %key)
  br i1 %strange, label %unsure, label %sure
sure:
  %tabled = getelementptr i8, ptr %dict, i64 {layout.TABLE}
  %keys = load ptr, ptr %tabled, align 8
  %kind.at = getelementptr i8, ptr %keys, i64 {layout.KIND}
  %kind = load i8, ptr %kind.at, align 1
  %text = icmp ne i8 %kind, 0
  br i1 %text, label %ask, label %general
general:
  %counted = getelementptr i8, ptr %keys, i64 {layout.COUNT}
  %count = load i64, ptr %counted, align 8
  br label %next
next:
  %k = phi i64 [0, %general], [%more, %other]
  %over = icmp eq i64 %k, %count
  br i1 %over, label %ask, label %one
one:
  %more = add i64 %k, 1
  %place = call ptr @entry_of(ptr %keys, i64 %k)
  %own = load ptr, ptr %place, align 8
  %gone = icmp eq ptr %own, null
  br i1 %gone, label %other, label %some
some:
  %users = call i1 @is_of_users(ptr %own)
  br i1 %users, label %unsure, label %other
other:
  br label %next
ask:
  %found = call ptr @PyDict_GetItem(ptr %dict, ptr %key)
  ret ptr %found
unsure:
  ret ptr {UNSURE}
}}
"""


class Reader(Writer):
    """The operations that find something, or that it is not there; what differs is no fit."""

    arrivals: list[tuple[str, str]]
    """The places in a table at which the machine goes on, and the blocks that lead there."""

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

    # --- what is read -----------------------------------------------------------------------------
    def _load(self) -> int:
        found = self.field(self.register(2), self.word(3))
        self.unless(self.set(f"icmp ne ptr {found}, null"))
        if layout.VALUES is layout.Values.TAGGED:  # where a dict is asked for, there may be none yet
            self.unless(self.is_even(self.set(f"ptrtoint ptr {found} to i64")))
        self.keep(1, found)
        return 4

    def _attributes(self) -> int:
        """The dict of an instance, made where there is none yet.

        Then all begins anew: to make one may run the collector, and with it what takes away things in registers.
        """
        instance = self.register(2)
        self.count += 1
        make, had = f"make{self.count}", f"made{self.count}"
        names = self.field(instance, layout.ATTRIBUTES)
        there = self.set(f"icmp ne ptr {names}, null")
        if layout.VALUES is layout.Values.TAGGED:
            there = self.set(f"and i1 {there}, {self.is_even(self.set(f'ptrtoint ptr {names} to i64'))}")
        self.do(f"br i1 {there}, label %{had}, label %{make}")
        self.label(make)
        made = self.set(f"call ptr @PyObject_GenericGetDict(ptr {instance}, ptr null)")
        self.branch(self.set(f"icmp eq ptr {made}, null"), "cleared")
        self.do(f"call void @release(ptr {made})")
        self.arrivals.append(("%first", self.at))
        self.do("br label %next")
        self.label(had)
        self.keep(1, names)
        return 3

    def is_even(self, address: str) -> str:
        return self.set(f"icmp eq i64 {self.set(f'and i64 {address}, 1')}, 0")

    def dict(self, number: int) -> str:
        """The register that a word names has a dict, of a class of the user's too: of which one is another question."""
        dict = self.register(number)
        flags = self.field(self.field(dict, layout.TYPE), layout.TYPE_FLAGS, "i64")
        self.unless(self.set(f"icmp ne i64 {self.set(f'and i64 {flags}, {layout.IS_DICT}')}, 0"))
        return dict

    def _cached(self, number: int, value: str) -> None:
        place = self.set(f"getelementptr i64, ptr %pc, i64 {number}")
        self.do(f"store i64 {value}, ptr {place}, align 8")

    def entry(self, keys: str, values: str, index: str) -> tuple[str, str]:
        """The key and the value in this place of a dict; null where there is none."""
        entry = self.set(f"call ptr @entry_of(ptr {keys}, i64 {index})")
        split = self.set(f"getelementptr i8, ptr {values}, i64 {layout.VALUES_HEADER}")
        split = self.set(f"getelementptr ptr, ptr {split}, i64 {index}")
        beside = self.set(f"getelementptr ptr, ptr {entry}, i64 1")
        apart = self.set(f"icmp ne ptr {values}, null")
        return self.field(entry, 0), self.field(self.set(f"select i1 {apart}, ptr {split}, ptr {beside}"), 0)

    def look(self, dict: str, key: str) -> str:
        """What a dict has under a key; no fit where that is not known."""
        found = self.set(f"call ptr @look(ptr {dict}, ptr {key})")
        self.unless(self.set(f"icmp ne ptr {found}, {UNSURE}"))
        return found

    def _names(self) -> int:
        """A dict has the keys of a tuple and no others: in the same places, or else each is looked up."""
        dict, count = self.dict(1), self.word(3)
        self.unless(self.set(f"icmp eq i64 {self.field(dict, layout.SIZE, 'i64')}, {count}"))
        names = self.set(f"getelementptr i8, ptr {self.word(2, 'ptr')}, i64 {layout.ITEMS}")
        keys, values = self.field(dict, layout.TABLE), self.field(dict, layout.SPLIT)
        easy = self.set(f"icmp uge i64 {self.field(keys, layout.COUNT, 'i64')}, {count}")
        before = self.at
        self.do("br label %naming.each")
        self.label("naming.each")
        self.do(f"%name.k = phi i64 [0, %{before}], [%name.more, %name.there]")
        self.do(f"%name.done = icmp eq i64 %name.k, {count}")
        self.do("br i1 %name.done, label %name.all, label %name.one")
        self.label("name.one")
        name = self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr {names}, i64 %name.k')}, align 8")
        self.do(f"br i1 {easy}, label %name.near, label %name.look")
        self.label("name.near")
        own, value = self.entry(keys, values, "%name.k")
        there = self.set(f"icmp ne ptr {value}, null")
        here = self.set(f"and i1 {there}, {self.set(f'icmp eq ptr {own}, {name}')}")
        self.do(f"br i1 {here}, label %name.there, label %name.look")
        self.label("name.look")
        found = self.look(dict, name)
        self.do(f"br i1 {self.set(f'icmp ne ptr {found}, null')}, label %name.there, label %unfit")
        self.label("name.there")
        self.do("%name.more = add i64 %name.k, 1")
        self.do("br label %naming.each")
        self.label("name.all")
        return 4

    def _item(self) -> int:
        """What a dict has under a key: in the entry where it was last, or else it is looked for."""
        dict, key = self.dict(2), self.word(3, "ptr")
        self.count += 1
        search, look, had = (f"{name}{self.count}" for name in ("search", "look", "had"))
        keys, values, index = self.field(dict, layout.TABLE), self.field(dict, layout.SPLIT), self.word(4)
        count = self.field(keys, layout.COUNT, "i64")
        self.branch(self.set(f"icmp uge i64 {index}, {count}"), search)
        own, value = self.entry(keys, values, index)
        self.branch(self.set(f"icmp ne ptr {own}, {key}"), search)
        near = self.at
        self.do(f"br i1 {self.set(f'icmp ne ptr {value}, null')}, label %{had}, label %{search}")
        self.label(search)
        place = self.set(f"call i64 @index_of(ptr {dict}, ptr {key}, i64 {index})")
        self._cached(4, place)
        self.branch(self.set(f"icmp uge i64 {place}, {count}"), look)
        _, other = self.entry(keys, values, place)
        self.unless(self.set(f"icmp ne ptr {other}, null"))
        far = self.at
        self.do(f"br label %{had}")
        self.label(look)
        found = self.look(dict, key)
        self.unless(self.set(f"icmp ne ptr {found}, null"))
        last = self.at
        self.do(f"br label %{had}")
        self.label(had)
        self.keep(1, self.set(f"phi ptr [{value}, %{near}], [{other}, %{far}], [{found}, %{last}]"))
        return 5

    def _value(self) -> int:
        """An attribute of an instance, among its values or in its dict."""
        instance = self.register(2)
        self.count += 1
        some, none, had = (f"{name}{self.count}" for name in ("values", "names", "value"))
        values = self.set(f"getelementptr i8, ptr {instance}, i64 {self.word(3)}")
        if layout.VALUES is layout.Values.INLINE:
            there = self.set(f"icmp eq i8 {self.field(values, layout.VALID, 'i8')}, 1")
        elif layout.VALUES is layout.Values.TAGGED:
            tagged = self.field(values, 0, "i64")
            there = self.set(f"xor i1 {self.is_even(tagged)}, true")
            values = self.set(f"inttoptr i64 {self.set(f'add i64 {tagged}, 1')} to ptr")
        else:
            values = self.field(values, 0)
            there = self.set(f"icmp ne ptr {values}, null")
        self.do(f"br i1 {there}, label %{some}, label %{none}")
        self.label(some)
        kept = self.field(values, self.word(4))
        self.do(f"br label %{had}")
        self.label(none)
        names = self.field(instance, layout.ATTRIBUTES)
        self.unless(self.set(f"icmp ne ptr {names}, null"))
        self.unless(self.set(f"icmp eq ptr {self.field(names, layout.TYPE)}, @srcgrad_front_dict"))
        found = self.look(names, self.word(5, "ptr"))
        last = self.at
        self.do(f"br label %{had}")
        self.label(had)
        value = self.set(f"phi ptr [{kept}, %{some}], [{found}, %{last}]")
        self.unless(self.set(f"icmp ne ptr {value}, null"))
        self.keep(1, value)
        return 6

    @contextmanager
    def unless_same_keys(self, dict: str, number: int) -> Iterator[None]:
        """What must be done where a word is not the version of a dict's keys; it becomes that.

        Instances share the keys of a split dict, of which it may have some only.
        """
        self.count += 1
        look, same = f"look{self.count}", f"same{self.count}"
        keys = self.field(dict, layout.TABLE)
        split = self.set(f"icmp ne ptr {self.field(dict, layout.SPLIT)}, null")
        own = self.set(f"zext i32 {self.field(keys, layout.KEYS_VERSION, 'i32')} to i64")
        version = self.set(f"select i1 {split}, i64 0, i64 {own}")
        known = self.set(f"icmp eq i64 {version}, {self.word(number)}")
        asked = self.set(f"icmp ne i64 {version}, 0")
        self.do(f"br i1 {self.set(f'and i1 {known}, {asked}')}, label %{same}, label %{look}")
        self.label(look)
        yield
        self._cached(number, version)
        self.do(f"br label %{same}")
        self.label(same)

    def _absent(self) -> int:
        dict = self.dict(1)
        with self.unless_same_keys(dict, 3):
            found = self.look(dict, self.word(2, "ptr"))
            self.unless(self.set(f"icmp eq ptr {found}, null"))
        return 4

    def _order(self) -> int:
        """The keys of a dict are those of a tuple, one after the other."""
        dict, count = self.dict(1), self.word(3)
        with self.unless_same_keys(dict, 4):
            self.unless(self.set(f"icmp eq i64 {self.field(dict, layout.SIZE, 'i64')}, {count}"))
            keys = self.set(f"getelementptr i8, ptr {self.word(2, 'ptr')}, i64 {layout.ITEMS}")
            self.do("store i64 0, ptr %position, align 8")
            before = self.at
            self.do("br label %ordering")
            self.label("ordering")
            self.do(f"%order.k = phi i64 [0, %{before}], [%order.next, %order.fits]")
            self.do(f"%order.done = icmp eq i64 %order.k, {count}")
            self.do("br i1 %order.done, label %ordered, label %order")
            self.label("order")
            self.set(f"call i32 @PyDict_Next(ptr {dict}, ptr %position, ptr %key, ptr null)")
            key = self.set(f"load ptr, ptr {self.set(f'getelementptr ptr, ptr {keys}, i64 %order.k')}, align 8")
            fits = self.set(f"icmp eq ptr {key}, {self.set('load ptr, ptr %key, align 8')}")
            self.do(f"br i1 {fits}, label %order.fits, label %order.apart")
            self.label("order.apart")  # texts that a program makes at each call are no longer the same objects
            own = self.set("load ptr, ptr %key, align 8")
            for text in (key, own):
                self.unless(self.set(f"icmp eq ptr {self.field(text, layout.TYPE)}, @srcgrad_front_text"))
            alike = self.set(f"icmp eq i32 {self.set(f'call i32 @PyUnicode_Compare(ptr {key}, ptr {own})')}, 0")
            self.do(f"br i1 {alike}, label %order.fits, label %unfit")
            self.label("order.fits")
            self.do("%order.next = add i64 %order.k, 1")
            self.do("br label %ordering")
            self.label("ordered")
        return 5
