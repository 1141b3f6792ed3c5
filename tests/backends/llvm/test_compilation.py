"""Modules that are compiled by two threads: the same ones, awaited whatever happens, and safe from forks."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.backends.llvm import emission, modules, native, nests, objects, target, workers, written
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.loops import Group
from srcgrad.backends.llvm.target import TARGET
from tests.backends.llvm.random_structured import random_structured
from tests.backends.llvm.support import OPS, build, normal
from tests.backends.llvm.test_long_programs import gradient, same, softened

ROOT = Path(__file__).resolve().parents[3]
CHOICES = {"LONG_PROGRAM": 0, "PART_TEXT": 1, "is_straight": lambda group, target: True}
"""With these each kernel is a module that is ready early."""


@pytest.fixture(autouse=True)
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    native.prepare(f"@{workers.SYMBOL}")
    monkeypatch.setenv(objects.VARIABLE, "")
    monkeypatch.setenv(workers.VARIABLE, "2")
    monkeypatch.setattr(nests, "_DEAREST", 400)
    for name, value in CHOICES.items():
        monkeypatch.setattr(modules, name, value)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any], Any]:
    """A function, what it is called with, and what it gives where it is one module."""
    function, given = gradient()
    with monkeypatch.context() as patch:
        patch.setattr(modules, "LONG_PROGRAM", 1 << 40)
        patch.setattr(modules, "is_straight", lambda group, target: False)
        return function, given, BACKEND.compile(function).run(*given)


def others() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "srcgrad compilation"]


# --- what is compiled ------------------------------------------------------------------------------------------------
def test_modules_do_not_depend_on_threads(
    given: Any, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, arguments, wanted = given
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv(workers.VARIABLE, threads)
        monkeypatch.setenv(objects.VARIABLE, str(tmp_path / threads))
        texts.clear()
        assert same(BACKEND.compile(function).run(*arguments), wanted)
        names = {path.name: path.read_bytes() for path in (tmp_path / threads).rglob(f"*{objects.SUFFIX}")}
        found.append((sorted(texts), names))
    assert found[0] == found[1] and len(found[0][0]) == len(found[0][1]) > 3


def mixed(x: Any, w: Any) -> Any:
    """Loops, steps and constants."""
    y = np.cumsum(np.sin(x) * w) + np.linspace(0.0, 1.0, 203)[np.argsort(x)]
    return np.sum(np.sort(np.tanh(y @ np.outer(x, w)))) + np.max(np.exp(-y * y))


@pytest.mark.parametrize("case", ["gradient", "rows", *range(4)])
def test_kernels_and_steps_are_modules_of_their_own(
    case: str | int, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are many; otherwise all is one module. Each bit is the same."""
    monkeypatch.setattr(modules, "is_straight", lambda group, target: False)
    known = {"gradient": gradient, "rows": softened}
    function, given = random_structured(case) if isinstance(case, int) else known[case]()
    parted = BACKEND.compile(function).run(*given)
    in_parts = list(texts)
    texts.clear()
    monkeypatch.setattr(modules, "PART_TEXT", 1 << 40)
    assert same(parted, BACKEND.compile(function).run(*given))
    assert len(texts) == 1 and len(in_parts) > 1


def test_steps_that_wait_are_modules_too(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "is_straight", lambda group, target: False)
    given = normal(203), normal(203, seed=1)
    parted = sg.value_and_grad(mixed, (0, 1), backend="llvm")(*given)
    named = [re.findall(r"^define (?!internal)\w+ @(\w+)", text, re.MULTILINE) for text in texts]
    assert {len(names) for names in named[:-1]} == {1} and any(names[0].startswith("step") for names in named[:-1])
    monkeypatch.setattr(modules, "PART_TEXT", 1 << 40)
    whole = sg.value_and_grad(lambda *given: mixed(*given), (0, 1), backend="llvm")(*given)
    assert parted[0] == whole[0] and same(parted[1], whole[1])


def test_modules_are_of_level_1_from_a_length_on(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is a little longer than one module has the better order of instructions, as short ones have."""
    monkeypatch.setattr(modules, "is_straight", lambda group, target: False)
    function, _ = gradient()
    BACKEND.compile(function)
    assert len(texts) > 3
    monkeypatch.setattr(target, "LONG_TEXT", sum(map(len, texts)) // 2)
    texts.clear()
    BACKEND.compile(function)
    levels = [target.level_of(text) for text in texts[:-1]]
    assert set(levels) == {1, 2} and levels == sorted(levels, reverse=True)


def test_two_threads_compile_at_once(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, wanted = given
    both, made, calls = threading.Barrier(2, timeout=60), native.machine_code, list[str]()

    def together(text: str) -> bytes:
        calls.append(threading.current_thread().name)
        if calls.count(calls[-1]) == 1:
            both.wait()
        return made(text)

    monkeypatch.setattr(native, "machine_code", together)
    assert same(BACKEND.compile(function).run(*arguments), wanted)
    assert len(set(calls)) == 2 and others() == []


def test_what_is_on_disk_needs_no_thread(given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, wanted = given
    monkeypatch.setenv(objects.VARIABLE, str(tmp_path))
    BACKEND.compile(function)
    monkeypatch.setattr(native, "machine_code", lambda text: pytest.fail("compiled once more"))
    monkeypatch.setattr(threading, "Thread", lambda **given: pytest.fail("a thread is begun"))
    assert same(BACKEND.compile(function).run(*arguments), wanted)


def test_one_thread_is_one_thread(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, wanted = given
    monkeypatch.setenv(workers.VARIABLE, "1")
    monkeypatch.setattr(threading, "Thread", lambda **given: pytest.fail("a thread is begun"))
    assert same(BACKEND.compile(function).run(*arguments), wanted)


def test_where_no_more_threads_can_be_had(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    function, arguments, wanted = given
    monkeypatch.setattr(threading, "Thread", Refused)
    assert same(BACKEND.compile(function).run(*arguments), wanted)


def test_short_programs_have_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(threading, "Thread", lambda **given: pytest.fail("a thread is begun"))
    monkeypatch.setenv(objects.VARIABLE, "")
    x = normal(5)
    BACKEND.compile(build(lambda x: OPS["tanh"](x) * x, x)).run(x)


# --- errors and interruptions ----------------------------------------------------------------------------------------
def test_what_the_second_thread_cannot_do_the_caller_does(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, wanted = given
    made, caller, refused = native.machine_code, threading.get_ident(), threading.Event()

    def refuse(text: str) -> bytes:
        if threading.get_ident() != caller:
            refused.set()
            raise MemoryError
        assert refused.wait(60)
        return made(text)

    monkeypatch.setattr(native, "machine_code", refuse)
    assert same(BACKEND.compile(function).run(*arguments), wanted)
    assert others() == []


def test_errors_of_modules_are_the_callers(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str) -> bytes:
        raise RuntimeError("LLVM does not take it")

    monkeypatch.setattr(native, "machine_code", refuse)
    with pytest.raises(RuntimeError, match="does not take it"):
        BACKEND.compile(given[0])
    assert others() == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_the_thread_is_awaited_where_the_caller_is_interrupted(
    kind: type[BaseException], given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, awaited, compiled = threading.Event(), threading.Event(), list[str]()
    made, text_of = native.machine_code, written.module_text

    class Awaited(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            awaited.set()
            super().join(timeout)

    def slow(text: str) -> bytes:
        begun.set()
        awaited.wait(60)
        compiled.append(text)
        return made(text)

    def interrupted(*given: Any) -> str:
        assert begun.wait(60)
        raise kind

    with monkeypatch.context() as patch:
        patch.setattr(threading, "Thread", Awaited)
        patch.setattr(native, "machine_code", slow)
        patch.setattr(written, "module_text", interrupted)
        with pytest.raises(kind):
            BACKEND.compile(given[0])
        left = others()
        awaited.set()
    assert left == [] and len(compiled) == 1, "what waits is not begun"
    assert written.module_text is text_of and same(BACKEND.compile(given[0]).run(*given[1]), given[2])


# --- forks -----------------------------------------------------------------------------------------------------------
FORKS = """
import os, signal, sys, threading
from srcgrad.backends.llvm import modules, native, nests, objects
from srcgrad.backends.llvm.backend import BACKEND
from tests.backends.llvm.test_compilation import CHOICES, gradient, same

def parts():
    for name, value in CHOICES.items():
        setattr(modules, name, value)

function, given = gradient()
nests._DEAREST = 400
wanted = BACKEND.compile(function).run(*given)
parts()
made, main = native.machine_code, threading.get_ident()
"""
INSIDE = """
begun, children = threading.Event(), []

def forking(text):
    if threading.get_ident() != main:
        begun.set()
    elif not children:
        assert begun.wait(60)
        children.append(os.fork())
        if not children[0]:
            signal.alarm(60)
    return made(text)

native.machine_code = forking
assert same(BACKEND.compile(function).run(*given), wanted)
if not children[0]:
    os._exit(0)
assert os.waitpid(children[0], 0)[1] == 0
print("done")
"""
OUTSIDE = """
stop = threading.Event()

def work():
    while not stop.is_set():
        BACKEND.compile(function)

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
try:
    for _ in range(8):
        child = os.fork()
        if not child:
            signal.alarm(30)
            assert same(BACKEND.compile(function).run(*given), wanted)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
finally:
    stop.set()
for thread in threads: thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("program", [INSIDE, OUTSIDE], ids=["while the second thread compiles", "of a third thread"])
def test_forks_while_two_threads_compile(program: str) -> None:
    environment = {**os.environ, workers.VARIABLE: "2", objects.VARIABLE: ""}
    command = [sys.executable, "-W", "ignore", "-c", FORKS + program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr[-3000:]


# --- object files ----------------------------------------------------------------------------------------------------
TEXT = """
define i32 @found(i32 %x) {
  %y = add i32 %x, 1
  ret i32 %y
}
"""


def test_object_files_are_those_of_llvmlite(texts: list[str], given: Any) -> None:
    assert emission.FUNCTIONS is not None
    BACKEND.compile(given[0])
    for text in (*texts, TEXT):
        assert emission.object_file(text, TARGET) == emission.object_file(text, TARGET, None)


@pytest.mark.parametrize("known", [emission.FUNCTIONS, None], ids=["past the lock", "under it"])
def test_text_that_is_wrong(known: Any) -> None:
    for text in (TEXT.replace("i32 %y\n", "i64 %y\n"), TEXT.replace("add i32 %x", "add i32 %y")):
        with pytest.raises(RuntimeError):
            emission.object_file(text, TARGET, known)
    assert emission.object_file(TEXT, TARGET, known)


# --- memory ----------------------------------------------------------------------------------------------------------
def test_nothing_is_left_of_a_compilation() -> None:
    """Without the cyclic collector; so what it made need not be looked at by the next collection."""
    function, _ = gradient()
    gc.collect()
    gc.disable()
    try:
        before = {id(item) for item in gc.get_objects() if isinstance(item, Group)}
        executable = BACKEND.compile(function)
        left = [item for item in gc.get_objects() if isinstance(item, Group) and id(item) not in before]
    finally:
        gc.enable()
    assert left == []
    assert executable.source == BACKEND.compile(function).source
