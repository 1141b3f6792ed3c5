"""Programs on disk: found by what a function is, as they were written, and by nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import srcgrad as sg
from srcgrad.backends.llvm import native, objects, programs, workers, written
from srcgrad.backends.llvm.backend import BACKEND
from srcgrad.backends.llvm.objects import SUFFIX
from tests.backends.llvm.support import OPS, build, normal, total


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, in which programs are kept."""
    monkeypatch.setenv(objects.VARIABLE, str(tmp_path))
    monkeypatch.setattr(programs, "KEPT", True)
    yield tmp_path / "llvm"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made: a text that is written, a module that is compiled, a program that the disk has."""
    found: list[str] = []
    start, code, find = written.Written.__init__, native.machine_code, programs.found

    def counted(*given: Any) -> Any:
        program = find(*given)
        found.extend(["found"] * (program is not None))
        return program

    monkeypatch.setattr(programs, "found", counted)
    monkeypatch.setattr(
        written.Written, "__init__", lambda self, *given: found.append("written") or start(self, *given)
    )
    monkeypatch.setattr(native, "machine_code", lambda text: found.append("compiled") or code(text))
    return found


def halved(x: Any) -> Any:
    while np.sum(x * x) > 1.0:
        x = 0.5 * np.sin(x)
    return np.sum(x)


def chosen(x: Any) -> Any:
    return np.sum(np.exp(x)) if x[0] > 0 else np.sum(np.cos(x) ** 2)


def solved(x: Any) -> Any:
    return np.sum(np.linalg.solve(np.outer(x, x) + np.eye(len(x)), x))


def triangular(x: Any) -> Any:
    a = np.outer(x, x) + 3 * np.eye(len(x))
    return np.linalg.slogdet(a)[1] + np.sum(scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), x))


GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "a loop": (lambda x: np.sum(np.tanh(x) * np.exp(-x)), (1000,)),
    "long enough for threads": (lambda x: np.sum(np.tanh(x) * np.exp(-x)), (200_000,)),
    "a nest": (lambda x: np.sum(np.log(np.sum(np.exp(x), axis=1))), (40, 30)),
    "a while": (halved, (9,)),
    "a cond": (chosen, (9,)),
    "a system": (solved, (20,)),
    "a factor": (triangular, (20,)),
    "a sort": (lambda x: np.sum(np.sort(x) * np.arange(len(x))), (500,)),
    "a product": (lambda x: np.sum((x @ x.T) ** 2), (160, 170)),
    "a spherical Bessel function": (lambda x: np.sum(scipy.special.spherical_jn(2, np.abs(x) + 1)), (9,)),
    "complex numbers": (lambda x: np.sum(np.abs(np.exp(1j * x) * x)), (50,)),
    "a function of SciPy": (lambda x: np.sum(scipy.special.spence(np.abs(x) + 1)), (9,)),
    "complex functions of NumPy": (lambda x: np.sum(np.abs(np.tan(x + 0.1j))), (9,)),
    "a slice": (lambda x: np.sum(x[1:] * x[:-1]), (300,)),
}


def same(one: Any, other: Any) -> bool:
    return all(
        type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("kind", GRADIENTS)
def test_a_program_is_found_as_it_was_written(kind: str, place: Path, made: list[str]) -> None:
    function, shape = GRADIENTS[kind]
    x = normal(*shape)
    first = sg.value_and_grad(function, backend="llvm")(x)
    assert "written" in made and "compiled" in made
    made.clear()
    sg.clear_caches()
    second = sg.value_and_grad(function, backend="llvm")(x)
    assert made == ["found"]
    assert same(first, second)


def rule(x: Any, y: Any) -> Any:
    return OPS["tanh"](x) * y, total(OPS["exp"](x) + y)


def test_another_type_is_another_program(place: Path, made: list[str]) -> None:
    kinds = [normal(7), normal(8), normal(2, 4), normal(8, dtype=np.float32)]
    for x in kinds:
        BACKEND.compile(build(rule, x, x))
    assert made.count("written") == len(kinds)
    for x in kinds:
        found = BACKEND.compile(build(rule, x, x)).run(x, x)
        np.testing.assert_allclose(found[0], np.tanh(x) * x, rtol=1e-6)
        np.testing.assert_allclose(found[1], np.sum(np.exp(x) + x), rtol=1e-6)
    assert made.count("written") == len(kinds)


def several(x: Any) -> Any:
    y = np.sin(x)
    return np.sum(y * np.sum(x)), np.sum(x), y, np.linalg.inv(np.outer(x, x) + np.eye(4)), x[0]


def test_results_in_another_order_than_the_kernel_s(place: Path, made: list[str]) -> None:
    x = normal(4)
    for _ in range(2):
        sg.clear_caches()
        compiled = sg.jit(several, backend="llvm")
        for given in (x, np.asfortranarray(x[::-1])[::-1]):  # the second is none for machine code
            for found, wanted in zip(compiled(given), several(x), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert made.count("written") == 1 and made[-1] == "found"
    contents = [objects.current().load(path.stem) or b"" for path in place.glob(f"*{SUFFIX}")]
    orders = [programs.Entry.of(content).results for content in contents if content.startswith(b"[")]
    assert [sorted(order) for order in orders] == [[0, 1, 2, 3, 4]] and orders != [[0, 1, 2, 3, 4]]


def test_an_error_is_numpy_s(place: Path, made: list[str]) -> None:
    """A program from the disk goes on in NumPy where the written one would."""
    for _ in range(2):
        sg.clear_caches()
        inverse = sg.jit(lambda a: np.linalg.inv(a), backend="llvm")
        np.testing.assert_allclose(inverse(np.diag([1.0, 2.0])), np.diag([1.0, 0.5]))
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            inverse(np.zeros((2, 2)))
    assert made.count("written") == 1 and made[-1] == "found"


@pytest.mark.parametrize("what", ["the program", "its code", "both"])
@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_what_is_gone_or_damaged_is_made_again(what: str, how: str, place: Path, made: list[str]) -> None:
    x = normal(9)
    wanted = BACKEND.compile(build(rule, x, x)).run(x, x)
    program, code = sorted(place.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_size)
    kept = {path.name: path.read_bytes() for path in (program, code)}
    for path in {"the program": [program], "its code": [code], "both": [program, code]}[what]:
        if how == "gone":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-20])
    for _ in range(2):
        assert same(BACKEND.compile(build(rule, x, x)).run(x, x), wanted)
    assert made.count("written") == 2
    assert {path.name: path.read_bytes() for path in place.glob(f"*{SUFFIX}")} == kept


def test_code_that_changed_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that writes text may be under development, with a version that stays."""
    folder = tmp_path / "package"
    (folder / "inner").mkdir(parents=True)
    for name in ("__init__.py", "a.py", "inner/b.py"):
        (folder / name).write_text("x = 1\n")
    module = types.ModuleType("a_package")
    module.__file__ = str(folder / "__init__.py")
    monkeypatch.setitem(sys.modules, "a_package", module)
    monkeypatch.setattr(programs, "_PARTS", ("a_package",))

    def state() -> str | None:
        programs.code_state.cache_clear()
        return programs.code_state()

    states = [state()]
    assert state() == states[0]
    status = (folder / "inner" / "b.py").stat()
    (folder / "inner" / "b.py").write_text("x = 2\n")  # of the same size
    os.utime(folder / "inner" / "b.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    states.append(state())
    (folder / "a.py").write_text("x = 12\n")
    states.append(state())
    (folder / "inner" / "c.py").write_text("")
    states.append(state())
    assert len(set(states)) == 4 and None not in states
    module.__file__ = str(tmp_path / "package.zip" / "__init__.py")
    assert state() is None
    programs.code_state.cache_clear()


def test_the_key_holds_what_the_text_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "KEPT", True)
    function = build(rule, normal(3), normal(3))
    keys = {programs.key_of(function)}
    for name in ("LAYOUT_IS_KNOWN", "ARRAYS_ARE_KNOWN"):
        with monkeypatch.context() as patch:
            patch.setattr(native, name, not getattr(native, name))
            keys.add(programs.key_of(function))
    with monkeypatch.context() as patch:
        patch.setattr(programs, "code_state", lambda: "another")
        keys.add(programs.key_of(function))
        patch.setattr(programs, "code_state", lambda: None)
        assert programs.key_of(function) is None
    with monkeypatch.context() as patch:
        patch.setattr(objects, "versions", lambda: "others")
        keys.add(programs.key_of(function))
    assert len(keys) == 5 and None not in keys
    monkeypatch.setattr(programs, "KEPT", False)
    assert programs.key_of(function) is None


@pytest.mark.parametrize("name", ["numpy", "scipy"])
def test_the_versions_of_libraries_are_in_their_files(name: str) -> None:
    """Which are looked at, as importing SciPy takes longer than all the rest."""
    assert sys.modules[name].__version__ in Path(programs.library_file(name)).read_text()


def test_addresses_that_no_other_process_would_find_are_not_kept(
    place: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.abs(normal(9))
    find = programs.address_of
    for finds, kept in ((lambda symbol: None, 1), (lambda symbol: 8, 1), (find, 2), (find, 2)):
        monkeypatch.setattr(programs, "address_of", finds)
        found = BACKEND.compile(build(lambda a: OPS["spence"](a), x)).run(x)
        np.testing.assert_array_equal(found[0], scipy.special.spence(x))
        assert len(list(place.glob(f"*{SUFFIX}"))) == kept
    assert made.count("written") == 3


KNOWN = (
    "scipy_dgetrf", "numpy_sort_f64", "srcgrad_spherical_jn", "srcgrad_loop_numpy_cosh_c128",
    "srcgrad_loop_scipy_kv_f64_f64", "srcgrad_data_scipy_kv_f64_f64", "srcgrad_loop_scipy__zeta_f64_f64",
)  # fmt: skip
UNKNOWN = ("unknown_place", "srcgrad_loop_scipy_fft_c128_f64", "srcgrad_loop_numpy_cosh_f64_f64")


@pytest.mark.parametrize("symbol", [*KNOWN, *UNKNOWN])
def test_addresses_by_name(symbol: str) -> None:
    assert (programs.address_of(symbol) is None) == (symbol in UNKNOWN)


PROGRAM = """
import sys
import numpy as np
import srcgrad as sg
def loss(x, w):
    y = np.sin(x) * w
    for k in range(40):
        y = np.tanh(y) + 0.1 * w
    return np.sum(y * np.exp(-y * y)) + np.max(x)
x, w = np.linspace(0.1, 1.0, 50_000), np.linspace(1.0, 2.0, 50_000)
value, found = sg.value_and_grad(loss, (0, 1), backend="llvm")(x, w)
print("srcgrad.backends.llvm.written" in sys.modules, value.hex(), [hash(array.tobytes()) for array in found])
"""


def test_another_process_finds_it_without_importing_what_writes_text(tmp_path: Path) -> None:
    said = []
    for threads in ("2", "2", "1"):
        given = {**os.environ, objects.VARIABLE: str(tmp_path), workers.VARIABLE: threads, "PYTHONHASHSEED": "0"}
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=given, check=True)
        said.append(done.stdout.split(maxsplit=1))
    assert [first for first, _ in said] == ["True", "False", "False"]
    assert len({rest for _, rest in said}) == 1
