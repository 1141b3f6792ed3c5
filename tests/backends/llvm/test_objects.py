"""Machine code on disk: found again, by the same key alone, never damaged, never too much, never an error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
import pytest

import srcgrad as sg
from srcgrad.__main__ import main
from srcgrad.backends.llvm import native, objects
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.objects import PART, SUFFIX, Store, fingerprint
from srcgrad.backends.llvm.target import TARGET, find_target
from tests.backends.llvm.support import OPS, build, normal, total

CONTENT = bytes(range(256)) * 20
KEY, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "place")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache for this process."""
    monkeypatch.setenv(objects.VARIABLE, str(tmp_path))
    yield tmp_path / "llvm"


def entries(place: Path) -> list[Path]:
    return sorted(place.glob(f"*{SUFFIX}"))


def as_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


# --- a store ---------------------------------------------------------------------------------------
def test_what_is_kept_is_found(store: Store) -> None:
    assert store.load(KEY) is None and store.kept() == []
    store.save(KEY, CONTENT)
    store.save(OTHER, b"")
    assert store.load(KEY) == CONTENT and store.load(OTHER) == b"" and store.load("c" * 64) is None
    assert len(store.kept()) == 2 and store.size() == sum(entry.size for entry in store.kept())
    store.save(KEY, CONTENT[::-1])
    assert Store(store.place).load(KEY) == CONTENT[::-1]


def spoilt(whole: bytes) -> dict[str, bytes]:
    return {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "one byte less": whole[:-1],
        "one byte more": whole + b"\0",
        "a bit of the code": whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:],
        "a bit of the digest": whole[: len(objects.FORMAT)] + bytes([whole[len(objects.FORMAT)] ^ 1]) + whole[18:],
        "another format": b"x" + whole[1:],
        "zeros": bytes(len(whole)),
    }


@pytest.mark.parametrize("how", spoilt(bytes(200)))
def test_what_is_damaged_is_removed(how: str, store: Store) -> None:
    assert store.place is not None
    store.save(KEY, CONTENT)
    (path,) = entries(store.place)
    path.write_bytes(spoilt(path.read_bytes())[how])
    assert store.load(KEY) is None
    assert entries(store.place) == []
    store.save(KEY, CONTENT)
    assert store.load(KEY) == CONTENT


def test_what_is_under_another_name_is_removed(store: Store) -> None:
    """Its code would be run for another program's."""
    assert store.place is not None
    store.save(KEY, CONTENT)
    (store.place / (KEY + SUFFIX)).rename(store.place / (OTHER + SUFFIX))
    assert store.load(OTHER) is None
    assert entries(store.place) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_in_the_place_of_an_entry(store: Store) -> None:
    """Nothing is written into it: who reads it would wait for ever."""
    assert store.place is not None
    store.place.mkdir(parents=True, exist_ok=True)
    os.mkfifo(store.place / (KEY + SUFFIX))
    assert store.load(KEY) is None


def test_a_directory_in_the_place_of_an_entry(store: Store) -> None:
    assert store.place is not None
    (store.place / (KEY + SUFFIX)).mkdir(parents=True)
    assert store.load(KEY) is None
    store.save(KEY, CONTENT)
    assert store.load(KEY) is None


def test_the_oldest_go(tmp_path: Path) -> None:
    store = Store(tmp_path, limit=100_000)
    keys = [f"{number:064d}" for number in range(60)]
    for age, key in zip(range(60, 0, -1), keys, strict=True):
        store.save(key, CONTENT)
        assert store.size() <= store.limit
        path = tmp_path / (key + SUFFIX)
        os.utime(path, (time.time() - 1000 * age,) * 2)
        store.load(keys[0])  # in use all the time: it stays
    assert store.load(keys[0]) == CONTENT and store.load(keys[-1]) == CONTENT
    assert store.load(keys[1]) is None
    kept = {entry.path.name.removesuffix(SUFFIX) for entry in store.kept()} - {keys[0]}
    assert kept == set(keys[-len(kept) :]), "the last used are kept"


def test_what_other_processes_wrote_counts(tmp_path: Path) -> None:
    for number in range(30):
        Store(tmp_path, limit=1 << 30).save(f"{number:064d}", CONTENT)
    store = Store(tmp_path, limit=50_000)
    store.save(KEY, CONTENT)
    assert store.size() <= store.limit


def test_what_alone_is_too_much_is_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path, limit=1000)
    store.save(KEY, CONTENT)
    assert store.kept() == []


def test_the_ledger_says_how_much_there_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes an entry looks at all files only where there is no ledger."""
    assert store.place is not None
    counts: list[Path] = []
    counted = Store.size
    monkeypatch.setattr(Store, "size", lambda self: counts.append(self.place) or counted(self))
    for k in range(3):
        store.save(str(k) * 64, CONTENT)
    for k in range(3, 6):
        Store(store.place).save(str(k) * 64, CONTENT)
    assert len(counts) == 1
    size = counted(store)
    others = Store(store.place, limit=size + len(CONTENT))
    others.save(KEY, b"")
    assert len(others.kept()) == 7
    others.save(OTHER, CONTENT)  # which is more than the limit
    assert counted(others) <= others.limit * 3 // 4 and others.load(OTHER) == CONTENT
    (store.place / objects.LEDGER).unlink()
    Store(store.place).save(KEY, CONTENT)
    assert len(counts) == 2
    (store.place / objects.LEDGER).write_bytes(b"\xff" * 21)  # damaged: what is too much is counted again
    damaged = Store(store.place)
    damaged.save(KEY, CONTENT)
    assert damaged.load(KEY) == CONTENT and Store(store.place)._listed() == counted(damaged)


def test_what_an_interrupted_process_left_is_cleared(store: Store) -> None:
    assert store.place is not None
    store.save(KEY, CONTENT)
    (store.place / f"{OTHER}.1.2{PART}").write_bytes(CONTENT)
    (store.place / "a note of somebody").write_text("stays")
    assert len(store.kept()) == 2
    assert store.shrink(0) == 2
    assert [path.name for path in store.place.iterdir()] == ["a note of somebody"]


@pytest.mark.parametrize("kind", ["a file", "read-only", "nothing"])
def test_where_nothing_can_be_written(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if kind == "read-only" and as_root():
        pytest.skip("the superuser writes everywhere")
    store = Store({"a file": file / "below", "read-only": closed / "below", "nothing": None}[kind])
    store.save(KEY, CONTENT)
    assert store.load(KEY) is None and store.kept() == [] and store.shrink(0) == 0


@pytest.mark.skipif(not as_root(), reason="only the superuser gives files away")
def test_another_user_s_files_are_not_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(KEY, CONTENT)
    assert store.place is not None
    os.chown(entries(store.place)[0], 12345, 12345)
    assert store.load(KEY) is None
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert store.load(KEY) == CONTENT


def test_the_directory_is_the_user_s_alone(store: Store) -> None:
    store.save(KEY, CONTENT)
    assert store.place is not None
    if os.name == "posix":
        assert store.place.stat().st_mode & 0o077 == 0


def test_threads_and_evictions_at_once(tmp_path: Path) -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        store, draw = Store(tmp_path, limit=60_000), np.random.default_rng(seed)
        for _ in range(150):
            key = f"{draw.integers(20):064d}"
            found = store.load(key)
            if found is None:
                store.save(key, key.encode() * 80)
            elif found != key.encode() * 80:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and Store(tmp_path).size() <= 60_000 + 4 * 6_000


# --- keys ------------------------------------------------------------------------------------------
def test_the_key_holds_all_that_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {fingerprint("a", TARGET), fingerprint("b", TARGET)}
    for name in ("generic", "x86-64-v3", "x86-64-v4"):
        if name == "generic" or TARGET.triple.startswith("x86_64"):
            keys.add(fingerprint("a", find_target(name)))
    count = len(keys)
    assert count >= 3
    monkeypatch.setattr(objects, "versions", lambda: "others")
    keys.add(fingerprint("a", TARGET))
    monkeypatch.setattr(objects, "OPTIONS", {"opt": 3})
    keys.add(fingerprint("a", TARGET))
    assert len(keys) == count + 2 and all(re.fullmatch("[0-9a-f]{64}", key) for key in keys)
    monkeypatch.undo()
    for version in (np.__version__, llvmlite.__version__, sg.__version__, sys.implementation.cache_tag):
        assert str(version) in objects.versions()


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({objects.VARIABLE: "/there"}, "/there/llvm"),
        ({objects.VARIABLE: ""}, None),
        ({objects.VARIABLE: "  "}, None),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/srcgrad/llvm"),
        ({"HOME": "/home/me"}, "/home/me/.cache/srcgrad/llvm"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the directories of Linux")
def test_the_directory(variables: dict[str, str], found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (objects.VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert objects.directory() == (None if found is None else Path(found))


# --- programs --------------------------------------------------------------------------------------
def rule(x: Any, y: Any) -> Any:
    return OPS["tanh"](x) * y, total(OPS["exp"](x) + y), OPS["less"](x, y)


def compiled(x: Any, y: Any) -> Any:
    return BACKEND.compile(build(rule, x, y)).run


@pytest.mark.parametrize("size", [7, 1000, 100_000])
def test_code_from_disk_gives_the_same(size: int, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = normal(size), normal(size, seed=1)
    first = compiled(x, y)(x, y)
    assert entries(place)
    monkeypatch.setattr(native, "machine_code", lambda text: pytest.fail("compiled once more"))
    second = compiled(x, y)(x, y)
    for a, b in zip(first, second, strict=True):
        assert type(a) is type(b) and a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_damaged_code_is_compiled_again(place: Path) -> None:
    x, y = normal(9), normal(9, seed=1)
    wanted = compiled(x, y)(x, y)
    (path,) = entries(place)
    whole = path.read_bytes()
    path.write_bytes(whole[:-64] + bytes(64))
    for a, b in zip(compiled(x, y)(x, y), wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert path.read_bytes() == whole


def test_nothing_is_kept_where_the_variable_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(objects.VARIABLE, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    x, y = normal(9), normal(9, seed=1)
    compiled(x, y)(x, y)
    assert list(tmp_path.iterdir()) == []


PROGRAM = """
import sys
import numpy as np
import srcgrad as sg
from srcgrad.backends.llvm import native
counted = []
code = native.machine_code
native.machine_code = lambda text: counted.append(text) or code(text)
def loss(x, w):
    y = np.sin(x) * w
    for k in range(2):
        y = np.tanh(y @ np.eye(5)) + np.cumsum(y) * w
    return np.sum(y * np.exp(-y * y)) + np.max(x)
x, w = np.linspace(0.1, 1.0, 5), np.linspace(1.0, 2.0, 5)
found = [sg.value_and_grad(loss, (0, 1), backend="llvm")(x, w), sg.hessian(loss, backend="llvm")(x, w)]
print(len(counted), repr(found), file=sys.stdout)
"""


def started(place: Path, **variables: str) -> subprocess.Popen[str]:
    given = {**os.environ, objects.VARIABLE: str(place), **variables}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=given)


def result(process: subprocess.Popen[str]) -> tuple[int, str]:
    """How often it compiled, and what it printed."""
    shown, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    count, _, rest = shown.partition(" ")
    return int(count), rest


def test_processes_share_code(tmp_path: Path) -> None:
    together = [started(tmp_path) for _ in range(3)]
    found = [result(process) for process in together]
    assert len({text for _, text in found}) == 1 and max(count for count, _ in found) > 0
    assert result(started(tmp_path)) == (0, found[0][1]), "all is found, addresses of one process in none"
    assert list((tmp_path / "llvm").glob(f"*{PART}")) == []


@pytest.mark.skipif("avx2" not in TARGET.features, reason="the machine has no other level")
def test_another_processor_has_its_own_code(tmp_path: Path) -> None:
    first = result(started(tmp_path))
    other = result(started(tmp_path, SRCGRAD_CPU="x86-64-v2"))
    assert other[0] >= first[0] > 0, "narrower registers are more text, so as many modules or more"
    assert result(started(tmp_path, SRCGRAD_CPU="x86-64-v2")) == (0, other[1])


def test_modules_hold_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    load = native.Library.__init__

    def seen(self: native.Library, text: str) -> None:
        texts.append(text)
        load(self, text)

    monkeypatch.setattr(native.Library, "__init__", seen)
    x, y = normal(6, 6), normal(6, 6, seed=1)
    compiled(x, y)(x, y)
    assert texts
    for text in texts:
        assert not re.search(r"inttoptr \(i64 \d{5,}", text)


# --- the command -----------------------------------------------------------------------------------
def test_the_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = normal(9), normal(9, seed=1)
    compiled(x, y)
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert str(place) in shown and re.search(r"entries +1\n", shown) and re.search(r"size +0\.0 MB of at most", shown)
    assert main(["cache", "--clear"]) == 0
    assert re.search(r"removed +1\n", capsys.readouterr().out) and entries(place) == []


def test_the_command_where_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(objects.VARIABLE, "")
    assert main(["cache", "--clear"]) == 0
    assert "nothing is kept" in capsys.readouterr().out


# --- what is in them -------------------------------------------------------------------------------
VARIED = """
import numpy as np
import srcgrad as sg

def until(x, n):
    while np.sum(x * x) < n:
        x = x * 1.1
    return np.sum(x)

def steps(x):
    s = np.zeros(3)
    for i in range(len(x)):
        s = np.tanh(s * x[i] + 1.0)
    return np.sum(s)

sg.grad(lambda x: np.sum(np.sin(x) * x))(np.ones(1000))
sg.grad(until)(np.ones(3), 50.0)
sg.grad(steps)(np.linspace(0.0, 1.0, 40))
sg.hessian(lambda x: np.linalg.det(np.outer(x, x) + np.eye(4)))(np.arange(4.0))
sg.grad(lambda x: np.sum(np.sort(x) * np.fft.fft(x).real))(np.arange(8.0))
sg.grad(lambda d: d["a"] * np.sum(d["b"][0] ** 2))({"a": 1.0, "b": [np.ones(3)]})
sg.grad(lambda x: np.sum(x @ x.T))(np.ones((40, 40)))
"""


def test_unwinders_are_told_nothing(tmp_path: Path) -> None:
    """Tables of frames would be registered, and looked through wherever anybody unwinds: NumPy does for large results.

    They would have to be taken back before the memory is, of every program that goes.
    """
    environment = {**os.environ, objects.VARIABLE: str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", VARIED], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = [path.read_bytes() for path in entries(tmp_path / "llvm")]
    assert len(found) > 10 and all(b"text" in code for code in found if len(code) > 1000)
    assert not any(b"eh_frame" in code for code in found)
