"""The wheel holds the package, the whole package and nothing but the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import srcgrad

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {
    "srcgrad": "srcgrad",
    "ir": "srcgrad/ir",
    "backends": "srcgrad/backends",
}  # in the repository -> in the wheel


def package_files() -> set[str]:
    """Where in the wheel each Python file of the three folders belongs."""
    found = set()
    for folder, target in FOLDERS.items():
        for file in (ROOT / folder).rglob("*.py"):
            relative = file.relative_to(ROOT / folder)
            reached_by_link = folder == "srcgrad" and relative.parts[0] in ("ir", "backends")
            if not reached_by_link:
                found.add((PurePosixPath(target) / relative.as_posix()).as_posix())
    return found


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    # Built from a copy: setuptools leaves build/ and *.egg-info beside what it builds. The copy holds all that must
    # stay out of the wheel too.
    copy = tmp_path_factory.mktemp("checkout")
    leave = shutil.ignore_patterns("__pycache__", "output")
    for folder in ("srcgrad", "ir", "backends", "tests", "examples", "benchmarks", "docs"):
        if (ROOT / folder).is_dir():
            shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    output = tmp_path_factory.mktemp("wheel")
    build = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(output), str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stdout + build.stderr
    (wheel,) = output.glob("srcgrad-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_wheel_holds_every_module_at_its_place(wheel_names: list[str]) -> None:
    assert package_files() == {name for name in wheel_names if name.endswith(".py")}


def test_wheel_holds_the_type_marker_and_nothing_else(wheel_names: list[str]) -> None:
    others = [name for name in wheel_names if not name.endswith(".py") and ".dist-info/" not in name]
    assert others == ["srcgrad/py.typed"]
    assert any(name.endswith("/licenses/LICENSE") for name in wheel_names)


def test_every_sub_package_is_listed() -> None:
    """In editable mode an unlisted sub-package works: only the wheel would lack it."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    present = {str(PurePosixPath(name).parent).replace("/", ".") for name in package_files()}
    assert sorted(listed) == sorted(present)


def test_every_package_folder_has_an_init() -> None:
    files = package_files()
    assert {f"{PurePosixPath(name).parent}/__init__.py" for name in files} <= files


@pytest.mark.parametrize("name", ["ir", "backends"])
def test_a_layer_imported_by_its_folder_name_is_refused(name: str) -> None:
    """``import ir`` from the repository root would make a second copy of every class."""
    run = subprocess.run(
        [sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode != 0
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert f"srcgrad.{name}" in last


@pytest.mark.parametrize("name", ["ir", "backends"])
def test_a_layer_imported_by_its_own_name_is_accepted(name: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", f"import srcgrad.{name}"], cwd=ROOT, check=True)


def test_the_names_of_the_package_are_the_public_ones() -> None:
    """What completion offers: not the modules that it imports, nor ``Any``."""
    named = {name for name in dir(srcgrad) if not name.startswith("__")}
    assert named - {"torch"} == set(srcgrad.__all__)
