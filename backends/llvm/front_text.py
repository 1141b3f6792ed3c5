"""How the functions of `front_machine.py` are written: instructions as text, and references given back."""

from __future__ import annotations

from typing import Final

from srcgrad.backends.llvm import layout

_SIZES: Final = {"i8": 1, "i32": 4}
REFERENCES: Final = "i32" if layout.IMMORTAL else "i64"
"""How many there are of an object."""


class Writer:
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
        return self.set(f"load {type}, ptr {place}, align {_SIZES.get(type, 8)}")

    def branch(self, condition: str, where: str) -> None:
        """Go there if the condition holds."""
        self.count += 1
        on = f"b{self.count}"
        self.do(f"br i1 {condition}, label %{where}, label %{on}")
        self.label(on)

    def acquire(self, object: str) -> None:
        before = self.field(object, 0, REFERENCES)
        more = "1"
        if layout.IMMORTAL:
            more = self.set(f"zext i1 {self.set(f'icmp sge i32 {before}, 0')} to i32")
        after = self.set(f"add {REFERENCES} {before}, {more}")
        self.do(f"store {REFERENCES} {after}, ptr {object}, align {_SIZES.get(REFERENCES, 8)}")

    def function(self, head: str) -> str:
        return "\n".join([f"define {head} nounwind {{", *self.lines, "}", ""])


def release_text() -> str:
    """``@release`` gives a reference back, if it is one; ``@release_all`` gives back those in memory."""
    return f"""
define internal void @release(ptr %object) nounwind {{
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %some
some:
  %before = load {REFERENCES}, ptr %object, align 4
  %counted = icmp sge {REFERENCES} %before, 0
  br i1 %counted, label %less, label %done
less:
  %after = sub {REFERENCES} %before, 1
  store {REFERENCES} %after, ptr %object, align 4
  %dead = icmp eq {REFERENCES} %after, 0
  br i1 %dead, label %free, label %done
free:
  call void @_Py_Dealloc(ptr %object)
  ret void
done:
  ret void
}}

define internal void @release_all(ptr %objects, i64 %count) nounwind {{
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
}}
"""
