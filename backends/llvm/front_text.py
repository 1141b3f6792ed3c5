"""How the functions of `front_machine.py` are written: instructions as text, and references given back."""

from __future__ import annotations


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


def release_text() -> str:
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
