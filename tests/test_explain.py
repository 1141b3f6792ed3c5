"""`source`, `explain` and the command line: what they print runs, and says where it comes from."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import srcgrad as sg
from srcgrad.compiler import backend_name
from srcgrad.ir.parser import parse
from srcgrad.ir.source import Span
from srcgrad.ir.text import show
from srcgrad.lowering import lower
from srcgrad.naming import assigned_name
from srcgrad.tracing.pytree import flatten
from tests import explained

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
POINT = np.array([0.5, -1.0, 2.0])
LINES = Path(explained.__file__).read_text("utf-8").splitlines()

TRANSFORMS = {
    "plain": lambda f: f,
    "jit": sg.jit,
    "grad": sg.grad,
    "value_and_grad": sg.value_and_grad,
    "jacobian": sg.jacobian,
    "jacfwd": sg.jacfwd,
    "jacrev": sg.jacrev,
    "hessian": sg.hessian,
}
SCALAR = {
    "logistic": (
        explained.logistic,
        (np.array([0.1, -0.2, 0.3]), np.arange(8.0).reshape(4, 2) / 8, np.array([0.0, 1, 1, 0])),
    ),
    "layer": (explained.layer, (np.ones((3, 2)) / 4, np.arange(12.0).reshape(4, 3) / 12, np.array([0.5, -0.5]))),
    "reads_globals": (explained.reads_globals, (POINT,)),
    "tree": (explained.tree, ({"a": POINT, "b": 1.5},)),
    "tree, static power": (explained.tree, ({"a": POINT, "b": 1.5}, 3)),
    "branches": (explained.branches, (np.linspace(0, 1, 100), np.arange(100.0))),
    "branches the other way": (explained.branches, (np.linspace(0, 1, 100), -np.arange(100.0))),
    "in_place": (explained.in_place, (POINT,)),
    "needs_scipy": (explained.needs_scipy, (POINT,)),
    "where": (explained.where, (np.array([0.0, -1.0, 4.0]),)),
    "method": (explained.Model().loss, (POINT,)),
    "lambda": (lambda x: np.prod(x), (POINT,)),
    "partial": (functools.partial(explained.tree, power=4), ({"a": POINT, "b": 2.0},)),
    "NumPy's own": (np.sum, (POINT,)),
    "a constant": (lambda x: 3.0, (POINT,)),
}
CASES = {f"{kind} of {name}": (TRANSFORMS[kind](f), args) for name, (f, args) in SCALAR.items() for kind in TRANSFORMS}
CASES |= {
    "grad of grad": (sg.grad(sg.grad(lambda x: x**3 * np.sin(x))), (0.7,)),
    "vmap of grad": (sg.vmap(sg.grad(lambda x: np.sin(x) * x)), (POINT,)),
    "hessian of vector": (sg.hessian(explained.vector), (POINT,)),
    "jacfwd of vector": (sg.jacfwd(explained.vector), (POINT,)),
    "jacrev of vector": (sg.jacrev(explained.vector), (POINT,)),
    "vmap, other axes": (sg.vmap(explained.vector, in_axes=1, out_axes=1), (np.arange(6.0).reshape(3, 2),)),
    "grad with aux": (sg.grad(lambda x: (np.sum(x**2), {"x": x, "n": 3}), has_aux=True), (POINT,)),
    "grad in two arguments": (sg.grad(lambda x, y: np.sum(x * y), argnums=(0, 1)), (POINT, POINT)),
    "float32": (sg.grad(lambda x: np.sum(np.exp(x))), (POINT.astype(np.float32),)),
    "complex": (sg.grad(lambda z: np.abs(z) ** 2), (1 + 2j,)),
    "grad through hvp": (sg.grad(lambda x: np.sum(sg.hvp(lambda y: np.sum(y**4), (x,), (x,)))), (POINT,)),
    "checkpoint": (sg.grad(lambda x: np.sum(sg.checkpoint(np.exp)(np.sin(x)))), (POINT,)),
    "empty": (sg.grad(np.sum), (np.zeros((0, 3)),)),
}


def run(text, values):
    """What the last function of a module returns."""
    names = {}
    exec(compile(text, "<module>", "exec"), names)
    return names[re.findall(r"^def (\w+)\(", text, re.MULTILINE)[-1]](*values)


def assert_equal(found, expected):
    found_leaves, found_tree = flatten(found)
    expected_leaves, expected_tree = flatten(expected)
    assert found_tree == expected_tree
    for one, other in zip(found_leaves, expected_leaves, strict=True):
        np.testing.assert_array_equal(one, other, strict=isinstance(other, np.ndarray))


@pytest.mark.filterwarnings("ignore::srcgrad.RetraceWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_module_gives_what_the_call_gives(name):
    f, args = CASES[name]
    with np.errstate(all="ignore"), sg.use_backend("numpy"):  # which the module is written for
        expected = f(*args)
    lowered = lower(f, args, {})
    text = sg.source(f)(*args)
    assert "import srcgrad" not in text
    results = run(text, [item.value for item in lowered.inputs])
    if len(lowered.built.function.results) == 1:
        results = (results,)
    found = lowered.built.finish(results, [])
    leaves, tree = flatten(found)
    # A re-trace runs operation by operation, without the passes of a program.
    if lowered.retraced is None and name.partition(" of ")[0] != "plain":
        assert_equal(found, expected)
    else:
        assert tree == flatten(expected)[1]
        for one, other in zip(leaves, flatten(expected)[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_every_derived_line_names_a_line_of_the_function(name):
    f, args = CASES[name]
    text = sg.source(f)(*args)
    derived = re.findall(r"^    # (?:adjoint|tangent)[^|\n]* of (\S+):(\d+) \| (.*)$", text, re.MULTILINE)
    assert len(derived) == len(re.findall(r"^    # (?:adjoint|tangent)", text, re.MULTILINE))
    for file, line, shown in derived:
        page = LINES if file == "explained.py" else Path(__file__).read_text("utf-8").splitlines()
        assert page[int(line) - 1].strip() == shown


@pytest.mark.parametrize("name", ["logistic", "layer", "branches", "in_place"])
def test_a_gradient_has_lines_of_its_adjoint(name):
    f, args = SCALAR[name]
    first = f.__code__.co_firstlineno
    text = sg.source(sg.grad(f))(*args)
    named = {int(line) for line in re.findall(r"^    # adjoint of explained.py:(\d+) \| ", text, re.MULTILINE)}
    assert named
    assert all(first < line < first + 7 for line in named)


def test_values_have_the_names_of_variables():
    f, args = SCALAR["logistic"]
    text = sg.source(sg.grad(f))(*args)
    for name in ("score", "score_bar", "weights_bar"):
        assert f"\n    {name} = " in text
    f, args = SCALAR["layer"]
    explanation = sg.explain(sg.jacfwd(f))(*args)
    assert "%h: f64[4,2] = tanh" in explanation["ir"]
    assert "%h.dot: " in explanation["derivative ir"]


def test_calls_that_nobody_reads_do_not_look_for_names(monkeypatch):
    def refuse(region):
        raise AssertionError("names were looked for")

    monkeypatch.setattr("srcgrad.building.name_assignments", refuse)
    sg.clear_caches()
    f, args = SCALAR["layer"]
    sg.grad(f)(*args)
    with pytest.raises(AssertionError):
        sg.source(sg.grad(f))(*args)


@pytest.mark.parametrize(
    ("line", "part", "name"),
    [
        ("h = np.sin(x)", "np.sin(x)", "h"),
        ("    h = np.sin(x)  # why", "np.sin(x)", "h"),
        ("h: float = a + b", "a + b", "h"),
        ("h += a", "h += a", "h"),
        ("h[0] = a", "h[0]", "h"),
        ("h = (a + b)", "a + b", "h"),
        ("h = np.sin(a + b)", "a + b", None),
        ("h = g = a + b", "a + b", None),
        ("h, g = a, b", "a, b", None),
        ("self.h = a + b", "a + b", None),
        ("return a + b", "a + b", None),
        ("h = a + b if", "a + b", None),
    ],
)
def test_the_variable_of_an_expression(line, part, name):
    start = line.index(part)
    assert assigned_name(Span.at("demo.py", 1, start, start + len(part), "f", line)) == name


# --- what the module says -------------------------------------------------------------------------


def test_hidden_inputs_are_parameters_with_their_names():
    text = sg.source(sg.grad(explained.reads_globals))(POINT)
    assert "def reads_globals_grad(x, factor, weight):" in text
    assert "    weight: f64[3,3], global weight, read at each call" in text
    found = run(text, [POINT, np.float64(explained.factor), explained.weight])
    np.testing.assert_array_equal(found, sg.grad(explained.reads_globals, backend="numpy")(POINT))


def test_arrays_met_in_a_retrace_are_parameters():
    text = sg.source(sg.grad(explained.rounds))(np.linspace(0, 1, 100), np.arange(100.0))
    assert "def rounds_grad(x, data):" in text
    assert "data: f64[100], an array equal to the argument data, as it was in this call" in text
    assert "It holds for the values of this call only" in text


def test_static_arguments_and_the_structure_returned_are_named():
    text = sg.source(sg.value_and_grad(explained.tree))({"a": POINT, "b": 1.5}, 3)
    assert "Compiled in:\n    power = 3\n" in text
    assert "    (result[0], {'a': result[2], 'b': result[1]})\n" in text or "{'a': result[1], 'b': result[2]}" in text


def test_arrays_changed_in_place_are_results():
    point = POINT.copy()
    text = sg.source(sg.jit(explained.changes))(point)
    assert "after writing result[1] into x." in text
    total, changed = run(text, [POINT])
    np.testing.assert_array_equal(changed, 3 * POINT)
    assert total == np.sum(3 * POINT)
    np.testing.assert_array_equal(point, POINT)


def test_text_of_arguments_cannot_end_the_docstring():
    f = sg.grad(lambda x, name: np.sum(x * x))
    text = sg.source(f)(POINT, 'a """ b \\')
    np.testing.assert_array_equal(run(text, [POINT]), 2 * POINT)


# --- explain --------------------------------------------------------------------------------------

SECTIONS = ["source", "how it runs", "ir", "passes", "derivative ir", "optimised ir", f"{backend_name(None)} source"]


def test_sections():
    f, args = SCALAR["layer"]
    explanation = sg.explain(sg.grad(f))(*args)
    assert list(explanation.sections) == SECTIONS
    assert explanation["source"].startswith("# explained.py:")
    assert "def layer(w, x, b):" in explanation["source"]
    assert "One program" in explanation["how it runs"]
    assert "global np: the module numpy" in explanation["how it runs"]
    for name in ("ir", "derivative ir", "optimised ir"):
        assert show(parse(explanation[name])) == explanation[name]
    on_numpy = sg.grad(f, backend="numpy")
    assert sg.explain(on_numpy)(*args)["numpy source"] == sg.source(sg.grad(f))(*args)
    text = str(explanation)
    positions = [text.index(f"--- {name} -") for name in SECTIONS]
    assert positions == sorted(positions)
    assert repr(explanation) == text
    assert "mul(x, 1) -> x" in explanation["passes"] or "fold" in explanation["passes"]


def test_a_plain_function_has_no_derivative():
    f, args = SCALAR["layer"]
    assert list(sg.explain(f)(*args).sections) == [name for name in SECTIONS if name != "derivative ir"]


def test_why_a_function_is_traced_again():
    text = sg.explain(sg.grad(explained.rounds))(np.ones(3), np.ones(3))["how it runs"]
    assert "Each call is traced again" in text
    assert "formatting needs the value of a traced" in text


def test_which_path_a_call_takes_and_why():
    derivative = sg.grad(explained.selects)
    sg.clear_caches()
    found = []
    for sign in (1.0, -1.0):
        found.append(sg.explain(derivative)(sign * np.ones(3), np.ones(3))["how it runs"])
        derivative(sign * np.ones(3), np.ones(3))
    found.append(sg.explain(derivative)(np.ones(3), np.ones(3))["how it runs"])
    assert [text.partition(" of ")[0] for text in found] == ["Path 1", "Path 2", "Path 1"]
    assert "  int(): False (explained.py:" in found[1]
    assert "int() needs the value of a traced bool[] (explained.py:" in found[1]
    text = sg.source(derivative)(np.ones(3), np.ones(3))
    assert "It holds for calls that take the path of this one through the function." in text


def test_a_vmap_without_a_program():
    f = sg.vmap(lambda x: np.sum(np.ones(3)[: int(x)]) * x)
    explanation = sg.explain(f)(POINT)
    assert list(explanation.sections) == ["source", "how it runs"]
    assert "example after example" in explanation["how it runs"]
    with pytest.raises(sg.errors.ConcretizationError, match="example after example"):
        sg.source(f)(POINT)


@pytest.mark.parametrize("tool", [sg.source, sg.explain])
def test_errors(tool):
    with pytest.raises(sg.errors.ArgumentError, match="takes a function, not 3"):
        tool(3)
    with pytest.raises(sg.errors.NonScalarOutputError):
        tool(sg.grad(explained.vector))(POINT)
    with pytest.raises(ZeroDivisionError):
        tool(lambda x: 1 // 0)(POINT)


def test_names_and_modules_do_not_collide():
    import srcgrad.explaining

    assert srcgrad.explaining.explain is sg.explain
    assert callable(sg.explain)
    assert sg.source(explained.layer).__name__ == "layer"


# --- golden files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("logistic_grad.txt", lambda: sg.source(sg.grad(explained.logistic))(*SCALAR["logistic"][1])),
        (
            "in_place_value_and_grad.txt",
            lambda: str(sg.explain(sg.value_and_grad(explained.in_place, backend="numpy"))(POINT)),
        ),
    ],
)
def test_golden(file, text, request):
    path = GOLDEN / file
    found = text()
    if request.config.getoption("--update-golden"):
        path.write_text(found, "utf-8")
    assert found == path.read_text("utf-8"), "run with --update-golden, and look at the difference as at code"


# --- the command line -----------------------------------------------------------------------------


def command(*arguments, text=""):
    return subprocess.run(
        [sys.executable, "-m", "srcgrad", *arguments], input=text, capture_output=True, text=True, cwd=ROOT, timeout=120
    )


TARGET = "tests/explained.py"
LAYER = "np.ones((3, 2)) / 4, np.arange(12.0).reshape(4, 3) / 12, b=np.array([0.5, -0.5])"


def test_source_command():
    done = command("source", f"{TARGET}:layer", "--transform", "grad", "--args", LAYER)
    assert done.returncode == 0, done.stderr
    f, args = SCALAR["layer"]
    np.testing.assert_array_equal(run(done.stdout, args), sg.grad(f, backend="numpy")(*args))


def test_explain_command():
    done = command("explain", f"{TARGET}:layer", "--args", LAYER, "--backend", "numpy")
    assert done.returncode == 0, done.stderr
    assert "--- numpy source ---" in done.stdout
    done = command("explain", f"{TARGET}:layer", "--args", LAYER, "--section", "ir")
    assert parse(done.stdout).name == "layer"


PROGRAM = """func @f(%x: f64[3]) -> (f64[3]) {
  %a: f64[3] = sin %x
  %b: f64[3] = sin %x
  %c: f64[3] = cos %x
  %y: f64[3] = add %a, %b
  return %y
}
"""


def test_opt_command(tmp_path):
    path = tmp_path / "f.ir"
    path.write_text(PROGRAM, "utf-8")
    done = command("opt", str(path), "-p", "cse,dce", "--print-between-passes")
    assert done.returncode == 0, done.stderr
    assert "# cse: 4 operations -> 3\n" in done.stdout
    assert "# dce: 3 operations -> 2\n" in done.stdout
    done = command("opt", "-", "-p", "dce,cse", text=PROGRAM)
    assert [operation.op.name for operation in parse(done.stdout).operations] == ["sin", "add"]


def test_picture_commands(tmp_path):
    f, args = SCALAR["layer"]
    explanation = sg.explain(sg.grad(f))(*args)
    target = ("explain", f"{TARGET}:layer", "--transform", "grad", "--args", LAYER, "--backend", "numpy")
    done = command(*target, "--dot", str(tmp_path / "a.dot"), "--svg", str(tmp_path / "a.svg"))
    assert done.returncode == 0, done.stderr
    assert "--- numpy source ---" in done.stdout
    heading = "grad(layer), called with 3 arguments"
    assert done.stdout.startswith(heading)
    assert (tmp_path / "a.dot").read_text("utf-8") == explanation.dot()
    assert (tmp_path / "a.svg").read_text("utf-8") == explanation.svg()
    done = command(*target, "--svg", "-", "--section", "ir", "--limit", "8")
    assert done.stdout == explanation.svg("ir", 8)
    assert "are shown)" in done.stdout


def test_backend_command():
    target = ("explain", f"{TARGET}:layer", "--transform", "grad", "--args", LAYER)
    assert command(*target, "--backend", backend_name(None)).stdout == command(*target).stdout
    done = command(*target, "--backend", "numpi")
    assert done.returncode == 1
    assert "there is no backend 'numpi'" in done.stderr


@pytest.mark.parametrize("name", ["grad of layer", "grad of branches", "vmap of grad", "jit of reads_globals"])
def test_the_program_of_a_compiled_backend_is_shown(name):
    """Its own text, of the function and of the stages that run later; a re-traced function is NumPy's."""
    pytest.importorskip("jax")
    f, args = CASES[name]
    with sg.use_backend("xla"):
        explanation = sg.explain(f)(*args)
        retraced = "traced again" in explanation["how it runs"]
        assert list(explanation.sections)[-1] == ("numpy source" if retraced else "xla source")
        if not retraced:
            assert "on the xla backend" in explanation["how it runs"]
            text = explanation["xla source"]
            assert "def " not in text.split("module", 1)[0]
            for word in ("tanh",) if "layer" in name else ("sine",) if "reads" in name else ():
                assert word in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "usage"),
        (("explain", TARGET), 1, "FILE:FUNCTION"),
        (("explain", "missing.py:f"), 1, "missing.py is not a Python file"),
        (("explain", f"{TARGET}:laier"), 1, "has no 'laier'"),
        (("source", f"{TARGET}:layer"), 1, "--args"),
        (("source", f"{TARGET}:vector", "--transform", "grad", "--args", "np.ones(2)"), 1, "NonScalarOutputError"),
        (("source", f"{TARGET}:vector", "--args", "np.ones("), 1, "SyntaxError"),
        (("explain", f"{TARGET}:vector", "--args", "np.ones(2)", "--section", "x"), 1, "there is no section 'x'"),
        (("opt", "-", "-p", "cse,nothing"), 1, "there is no pass 'nothing'"),
        (("opt", "missing.ir"), 1, "missing.ir"),
    ],
)
def test_command_errors(arguments, code, message):
    done = command(*arguments, text=PROGRAM)
    assert done.returncode == code
    assert message in done.stderr
    assert done.stdout == ""
