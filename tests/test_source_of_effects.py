"""`source` of functions that print, log, draw, append and count: the module does so too, without srcgrad."""

from __future__ import annotations

import enum
import logging
import random
import re
import subprocess
import sys
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import srcgrad as sg

POINT = np.array([0.5, -1.0, 2.0])
LOGGER = logging.getLogger("tests.source")
calls = 0


class Mode(enum.Enum):
    FAST = 1


class TooLarge(ValueError):
    def __init__(self, size):
        super().__init__(f"too large: {size:.1f}")
        self.size = size


def formats(x):
    s = np.sum(x**2)
    print("s is", s, f"{s:8.3f}|{s!r}|{{}} \"quoted\" 'too'", [x[0], ("a", None, 1.5)], {"x": x}, sep=" ; ")
    print(f"{s:{8}.2f}", "%.4f and %s" % (s, x[1]), "{:.2e}|{}".format(s, 3))  # noqa: UP031, UP032
    print(", ".join([f"{s:.1f}", "z"]).upper())
    print(float(s), str(s), end="\n\n", flush=True, file=sys.stdout)
    return s


def loops(x):
    s = 0.0
    for k in range(60):
        s = s + np.sin(k * x).sum()
        if k % 20 == 0:
            print(k, f"{s:.6f}")
        if s > 1e9:
            print("far away")
    while s > 1.0:
        s = s / 2
        print("halved", s)
    return s


def raises(x):
    table = {0: 1.0, 1: 2.0}
    if x.sum() > 3.0:
        raise TooLarge(x.sum())
    if x[0] > 2.0:
        raise ValueError("the first is large")
    if x[1] > 1.0:
        raise KeyError(x[1]) from None
    return x.sum() * table[int(x[0])]


def draws(x):
    z = np.random.normal(size=3)
    return np.sum(z * x**2) + np.random.uniform(x[0], 3.0) + random.gauss(0.0, 1.0)


def makes(x):
    rng = np.random.default_rng(3)
    old = np.random.RandomState(4)
    return np.sum(rng.normal(x, 2.0) * old.rand(3) * rng.permutation(x))


def printed(capsys, call):
    capsys.readouterr()
    value = call()
    return value, capsys.readouterr().out


def module_of(f, *args):
    text = sg.source(f)(*args)
    assert "srcgrad" not in text.split('"""', 2)[2]
    names = {}
    exec(compile(text, "<module>", "exec"), names)
    names["the function"] = names[re.findall(r"^def (\w+)\(", text, re.MULTILINE)[-1]]
    return text, names


@pytest.mark.parametrize("transform", [sg.grad, sg.value_and_grad, sg.jit, sg.hessian], ids=lambda t: t.__name__)
@pytest.mark.parametrize("f", [formats, loops])
def test_a_module_prints_what_the_function_prints(f, transform, capsys):
    wanted, expected = printed(capsys, lambda: transform(f)(POINT))
    _, plain = printed(capsys, lambda: f(POINT))
    assert expected == plain
    _, names = module_of(transform(f), POINT)
    found, output = printed(capsys, lambda: names["the function"](POINT))
    assert output == expected
    found, wanted = [np.hstack(value) if type(value) is tuple else value for value in (found, wanted)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    again = printed(capsys, lambda: names["the function"](POINT / 3))[1]
    assert again == printed(capsys, lambda: f(POINT / 3))[1]


def test_a_module_runs_in_a_process_of_its_own(tmp_path):
    text = sg.source(sg.grad(formats))(POINT)
    text += "\n\nprint(formats_grad(np.array([0.5, -1.0, 2.0])))\n"
    (tmp_path / "module.py").write_text(text, "utf-8")
    ran = subprocess.run(
        [sys.executable, "-I", "module.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout.startswith("s is ; 5.25 ;    5.250|np.float64(5.25)|{} \"quoted\" 'too' ; [np.float64(0.5)")
    assert ran.stdout.endswith("[ 1. -2.  4.]\n")


@pytest.mark.parametrize("f", [draws, makes])
def test_a_module_draws_by_numpy(f):
    _, names = module_of(sg.value_and_grad(f), POINT)
    np.random.seed(5)
    random.seed(6)
    wanted = sg.value_and_grad(f)(POINT)
    plain = f(POINT) if f is makes else None
    np.random.seed(5)
    random.seed(6)
    found = names["the function"](POINT)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)
    if plain is not None:
        np.testing.assert_allclose(found[0], plain, rtol=1e-12)


def test_a_shared_generator_is_named_alike_in_each_process():
    assert re.search(r"host_call\(sites, \d+, \(np\.int64\(-1\)", sg.source(draws)(POINT))


def test_a_module_takes_generators_lists_and_objects_themselves():
    history, table, rng = [], {"loss": [], "n": 0}, np.random.default_rng(1)
    count = 0

    class Model:
        def __init__(self):
            self.n, self.last = 0, 0.0

        def loss(self, x):
            global calls
            nonlocal count
            self.n += 2
            self.last = x.sum()
            calls += 1
            count -= 1
            history.append((x[0], f"{x[1]:.2f}"))
            table["loss"].append(float(x.sum()))
            table["n"] += 1
            return np.sum(x**2) * rng.normal()

    model = Model()
    text, names = module_of(sg.grad(model.loss), POINT)
    assert history == [] and model.n == 0
    given = {
        "history": [], "table": {"loss": [], "n": 0}, "count": [0], "calls": [7], "rng": np.random.default_rng(1),
        "n": [0], "object_": SimpleNamespace(last=None),
    }  # fmt: skip
    entries = dict(re.findall(r"^    (\w+): (an? [^,]*), ", text, re.MULTILINE))
    order = re.findall(r"^def \w+\((.*)\):$", text, re.MULTILINE)[-1].split(", ")[1:]
    assert order == list(entries)
    named = {name: given[name] for name in order}
    found = names["the function"](POINT, *named.values())
    np.testing.assert_allclose(found, 2 * POINT * np.random.default_rng(1).normal(), rtol=1e-12)
    assert given["history"] == [(0.5, "-1.00")] and type(given["history"][0][0]) is np.float64
    assert given["table"] == {"loss": [1.5], "n": 1}
    assert (given["count"], given["calls"], given["n"]) == ([-1], [8], [2])
    assert given["object_"].last == 1.5


def test_a_module_says_which_of_several_texts_it_is():
    kept = SimpleNamespace(message=None)

    def f(x):
        kept.message = None
        if x > 1.0:
            kept.message = f"{x:.1f} is large"
        elif x < 0.0:
            kept.message = "negative"
        logging.getLogger("tests.source").debug("seen")
        return x * x

    f_grad = module_of(sg.grad(f), 2.0)[1]["f_grad"]
    for x, message in ((2.0, "2.0 is large"), (0.5, None), (-1.0, "negative")):
        given = SimpleNamespace(message="before")
        assert f_grad(x, given) == 2.0 * x
        assert given.message == message


@pytest.mark.parametrize("point", [POINT, POINT + 1.0, np.array([2.5, 0.0, 0.0]), np.array([0.0, 1.5, 0.0])])
def test_a_module_raises_what_the_function_raises(point):
    _, names = module_of(sg.grad(raises), POINT)
    try:
        raises(point)
    except Exception as error:
        with pytest.raises(Exception) as found:
            names["the function"](point)
        assert type(found.value).__name__ == type(error).__name__
        assert str(found.value) == str(error)
        assert vars(found.value) == vars(error)
    else:
        names["the function"](point)


def test_a_module_warns_logs_and_reads_clocks(caplog):
    def f(x):
        start = time.perf_counter()
        warnings.warn("slow", RuntimeWarning, stacklevel=2)
        LOGGER.warning("loss %s of %.2f", "a", x.sum())
        time.sleep(0.0)
        return np.sum(x**2) + 0.0 * (time.perf_counter() - start)

    _, names = module_of(sg.grad(f), POINT)
    with caplog.at_level("WARNING"), pytest.warns(RuntimeWarning, match="slow"):
        np.testing.assert_allclose(names["the function"](POINT), 2 * POINT)
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("tests.source", "loss a of 1.50")]


def test_what_a_module_cannot_hold_is_a_name_to_be_set(capsys):
    class Settings:
        def __repr__(self):
            return "Settings()"

    settings = Settings()

    def f(x):
        print(settings, x.sum(), Mode.FAST, np.float32, sep="|")
        return np.sum(x**2)

    text, names = module_of(sg.grad(f), POINT)
    assert "    the_settings: stands for an object of the class Settings\n" in text
    assert "    the_mode: stands for Mode.FAST\n" in text
    np.testing.assert_allclose(names["the function"](POINT), 2 * POINT)
    names["the_settings"], names["the_mode"] = settings, Mode.FAST
    names["the function"](POINT)
    shown = "|1.5|{}|<class 'numpy.float32'>\n"
    assert capsys.readouterr().out == "None" + shown.format(None) + "Settings()" + shown.format("Mode.FAST")
