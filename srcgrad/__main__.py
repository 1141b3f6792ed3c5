"""``python -m srcgrad``: look at functions and IR from the command line.

- ``explain FILE:FUNCTION [--args EXPRESSION]``: the way of a call from its source to its program, and pictures of it
- ``source FILE:FUNCTION [--args EXPRESSION]``: its program as a NumPy module
- ``opt FILE.ir -p cse,dce``: IR text through passes
- ``doctor``: versions, which backends work, devices, the environment
- ``cache [--clear]``: the machine code that is kept on disk

What was asked for goes to stdout, errors to stderr. The exit code is 0, 1 where the work failed, or 2 where the command
line makes no sense.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import srcgrad as sg
import srcgrad.ir.ops  # registers the ops, which the parser looks up
from srcgrad.annotations import signature_of
from srcgrad.backends.numpy.evaluate import evaluate_operation
from srcgrad.errors import ArgumentError
from srcgrad.explaining import explain, record_lines, source
from srcgrad.ir.parser import parse
from srcgrad.ir.passes.cse import cse
from srcgrad.ir.passes.fold import fold
from srcgrad.ir.passes.pipeline import DCE, LIMITS, PREPARE, Pass, Pipeline, optimisation, simplification
from srcgrad.ir.text import show
from srcgrad.ir.verify import verify
from srcgrad.pictures import LIMIT

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": sg.grad,
    "value_and_grad": sg.value_and_grad,
    "jacobian": sg.jacobian,
    "jacfwd": sg.jacfwd,
    "jacrev": sg.jacrev,
    "hessian": sg.hessian,
    "vmap": sg.vmap,
    "jit": sg.jit,
}
PASSES: dict[str, tuple[Pass, ...]] = {
    "dce": (DCE,),
    "cse": (Pass("cse", lambda function, fired: cse(function)),),
    "limits": (LIMITS,),
    "simplify": (simplification(),),
    "fold": (Pass("fold", lambda function, fired: fold(function, evaluate_operation, fired)),),
    "prepare": PREPARE,
    "optimise": optimisation(evaluate_operation),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except Exception as error:  # srcgrad's, or one of the file that is looked at
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m srcgrad", description="Look at functions and at IR.")
    commands = found.add_subparsers(required=True, metavar="COMMAND")
    for name, command, text in (
        ("explain", run_explain, "print the way of a call from its source to its program"),
        ("source", run_source, "print the program of a call as a NumPy module"),
    ):
        sub = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        sub.add_argument("target", metavar="FILE:FUNCTION", help="a Python file and a function in it (or Class.method)")
        sub.add_argument(
            "--args", metavar="EXPRESSION", help="the arguments, with the file's names, np and sg: 'np.ones(3), 2.0'"
        )
        sub.add_argument("--transform", choices=TRANSFORMS, help="apply a transform to the function first")
        if name == "explain":
            sub.add_argument("--section", help="print one section only, such as 'numpy source', and draw that one")
            sub.add_argument("--backend", help="explain the program of this backend")
            sub.add_argument(
                "--dot", metavar="FILE", help="write a picture of the program for graphviz; - is the output"
            )
            sub.add_argument("--svg", metavar="FILE", help="write a picture of the program; - is the output")
            sub.add_argument("--limit", type=int, default=LIMIT, help="boxes of a picture, at most about; default: 200")
        sub.set_defaults(run=command)
    sub = commands.add_parser("opt", help="run passes on IR text", description="Run passes on IR text.")
    sub.add_argument("file", help="a file that holds one function; - is standard input")
    sub.add_argument("-p", "--passes", default="optimise", help=f"from {', '.join(PASSES)}; default: optimise")
    sub.add_argument("--print-between-passes", action="store_true", help="print the function after each pass")
    sub.set_defaults(run=run_opt)
    sub = commands.add_parser(
        "doctor",
        help="print versions and working backends",
        description="Check the installation; 1 if the default fails.",
    )
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub.set_defaults(run=run_doctor)
    sub = commands.add_parser(
        "cache",
        help="show or clear the machine code kept on disk",
        description="Show where machine code is kept on disk and how much; SRCGRAD_CACHE_DIR names another place.",
    )
    sub.add_argument("--clear", action="store_true", help="remove all of it")
    sub.set_defaults(run=run_cache)
    return found


# --- explain and source -----------------------------------------------------------------------------------------------


def run_explain(options: argparse.Namespace) -> int:
    function, (args, kwargs) = find(options)
    with sg.use_backend(options.backend) if options.backend is not None else nullcontext():
        explanation = explain(function)(*args, **kwargs)
    drawn = options.section if options.section in explanation.functions else "optimised ir"
    pictures = {path: draw for path, draw in ((options.dot, explanation.dot), (options.svg, explanation.svg)) if path}
    for path, draw in pictures.items():
        text = draw(drawn, options.limit)
        if path == "-":
            print(text, end="")
        else:
            Path(path).write_text(text, "utf-8")
    if "-" in pictures:
        return 0
    if options.section is None:
        print(explanation, end="")
        return 0
    if options.section not in explanation.sections:
        raise ArgumentError(
            f"there is no section {options.section!r}", span=None, hint=f"there are {', '.join(explanation.sections)}"
        )
    print(explanation[options.section])
    return 0


def run_source(options: argparse.Namespace) -> int:
    function, (args, kwargs) = find(options)
    print(source(function)(*args, **kwargs), end="")
    return 0


def find(options: argparse.Namespace) -> tuple[Any, tuple[tuple[Any, ...], dict[str, Any]]]:
    """The function that the command line names, and its arguments."""
    file, _, path = options.target.rpartition(":")
    if not file or not path:
        raise ArgumentError(f"{options.target!r} is not of the form FILE:FUNCTION", span=None)
    names = load(Path(file))
    function: Any = names.get(path.partition(".")[0])
    for part in path.split(".")[1:]:
        function = getattr(function, part, None)
    if function is None:
        defined = ", ".join(sorted(name for name in names if callable(names[name]) and not name.startswith("_")))
        raise ArgumentError(f"{file} has no {path!r}", span=None, hint=f"it has {defined}" if defined else None)
    if options.transform is not None:
        function = TRANSFORMS[options.transform](function)
    return function, arguments_of(options.args, function, names)


def load(file: Path) -> dict[str, Any]:
    """The names that a Python file defines when it is imported."""
    name = f"__srcgrad_{file.stem}__"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ArgumentError(f"{file} is not a Python file", span=None)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(file.resolve().parent))
    spec.loader.exec_module(module)
    return vars(module)


def arguments_of(
    expression: str | None, function: Any, names: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and keyword arguments that an expression such as ``np.ones(3), n=2`` stands for."""
    if expression is not None:
        scope = {"np": np, "sg": sg, **names}
        taken = "__srcgrad_arguments__"
        scope[taken] = lambda *args, **kwargs: (args, kwargs)
        found: tuple[tuple[Any, ...], dict[str, Any]] = eval(f"{taken}({expression})", scope)
        return found
    try:
        signature_of(function).bind()
    except TypeError as error:
        raise ArgumentError(
            f"the function needs arguments: {error}", span=None, hint="give them with --args 'np.ones(3), 2.0'"
        ) from None
    return (), {}


# --- opt --------------------------------------------------------------------------------------------------------------


def run_opt(options: argparse.Namespace) -> int:
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text("utf-8")
    function = parse(text)
    verify(function)
    names = [name.strip() for name in options.passes.split(",") if name.strip()]
    for name in names:
        if name not in PASSES:
            raise ArgumentError(f"there is no pass {name!r}", span=None, hint=f"there are {', '.join(PASSES)}")
    between = options.print_between_passes
    pipeline = Pipeline([step for name in names for step in PASSES[name]], log=between, verify=True, text=between)
    result = pipeline.run(function)
    if not between:
        print(show(result))
        return 0
    print(f"# input\n{show(function)}")
    for record in pipeline.records:
        print("\n".join(["", *(f"# {line}" for line in record_lines(record)), str(record.text)]))
    return 0


# --- doctor -----------------------------------------------------------------------------------------------------------


def run_doctor(options: argparse.Namespace) -> int:
    from srcgrad import doctor  # which looks at all that is installed

    found = doctor.diagnosis()
    print(json.dumps(found, indent=2) if options.json else doctor.report(found))
    return 0 if found["works"] else 1


# --- cache ------------------------------------------------------------------------------------------------------------


def run_cache(options: argparse.Namespace) -> int:
    from srcgrad.backends.llvm import objects  # which loads LLVM

    store = objects.current()
    if store.place is None:
        print(f"nothing is kept on disk ({objects.VARIABLE} is empty, or there is no home directory)")
        return 0
    kept = store.kept()
    print(f"path     {store.place}")
    print(f"entries  {len(kept)}")
    print(f"size     {sum(entry.size for entry in kept) / 1e6:.1f} MB of at most {store.limit / 1e6:.0f} MB")
    if options.clear:
        print(f"removed  {store.shrink(0)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
