"""`source` and `explain`: what srcgrad makes of a function, to read, keep and run."""

from __future__ import annotations

import functools
import inspect
import os
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from srcgrad import pictures
from srcgrad.backends.base import backend as find_backend
from srcgrad.backends.numpy.evaluate import evaluate_operation
from srcgrad.backends.numpy.module import module_source
from srcgrad.boundary import checked
from srcgrad.compiler import backend_name
from srcgrad.compiler import optimised as optimise_function
from srcgrad.errors import ArgumentError, ConcretizationError
from srcgrad.host_texts import HostTexts, given_as
from srcgrad.ir.core import Function
from srcgrad.ir.passes.pipeline import PREPARE, PassRecord, Pipeline, optimisation
from srcgrad.lowering import Input, Lowered, as_transformed, guards_of, lower, title
from srcgrad.mapped import Jit
from srcgrad.transformed import Transformed

__all__ = ["Explanation", "explain", "source"]

_DEFINITION: Final = re.compile(r"^def (\w+)\((.*)\):$", re.MULTILINE)
_FOLDER: Final = re.compile(r"\(\S.*[\\/](?=[^\\/]+:\d+\)$)")
"""The folder in a place at the end of a line: "(/home/me/demo.py:4)"."""
_MOST_PLACES: Final = 3
CALL_ONLY: Final = "the values of this call only: the function is traced again at each call"
PATH_ONLY: Final = "calls that take the path of this one through the function"
_WIDTH: Final = 116


@checked
def source(f: Callable[..., Any]) -> Callable[..., str]:
    """The program of a function for given arguments, as a NumPy module that runs without srcgrad.

    Args:
        f: a transformed function (``grad(f)``, ``vmap(grad(f))``, …), or a plain one for the program it is traced to.

    Returns:
        A function with ``f``'s arguments that returns the module's text. The module needs NumPy, and SciPy where an
        operation does. Its last function takes one array or NumPy scalar for each array and float of the arguments, in
        order, then the arrays and floats that ``f`` reads from outside; the docstring of the module lists them, says
        what is returned, and names what is compiled in (ints, strings). Every line of an adjoint stands under a comment
        that names the line of ``f`` that it is the adjoint of. What ``f`` prints, logs, draws and raises the module
        does too. Its function is given the lists, objects and generators that ``f`` reads from outside and changes, a
        number that ``f`` counts with as a list of it; what else is the user's own, as a settings object that is
        printed, is a name to be set in the module.

    Raises (when called):
        ArgumentError: ``f`` is not callable. ConcretizationError: a ``vmap`` that runs example after example.
        UnsupportedError: an operation that NumPy source cannot express. And what ``f`` raises while it is traced.

    >>> import numpy as np, srcgrad as sg
    >>> text = sg.source(sg.grad(lambda x: np.sum(np.sin(x))))(np.zeros(2))
    >>> module = {}
    >>> exec(text, module)
    >>> module["lambda_grad"](np.zeros(2))
    array([1., 1.])
    """
    as_transformed(f, "source")

    @functools.wraps(f, updated=())
    @checked
    def show(*args: Any, **kwargs: Any) -> str:
        lowered = lower(f, args, kwargs, "source")
        return module_of(lowered, optimised_of(lowered, None))

    return show


class Explanation:
    """The way of a call from its source to its program: ``str`` prints all sections; ``sections`` has them by title.

    ``functions`` has the programs that can be drawn, by the titles of their sections.
    """

    def __init__(self, heading: str, sections: dict[str, str], functions: dict[str, Function]) -> None:
        self.heading = heading
        self.sections = sections
        self.functions = functions

    def __getitem__(self, title: str) -> str:
        return self.sections[title]

    def __str__(self) -> str:
        parts = [self.heading]
        parts += [f"--- {name} {'-' * max(3, 76 - len(name))}\n{text.rstrip()}" for name, text in self.sections.items()]
        return "\n\n".join(parts) + "\n"

    __repr__ = __str__

    def dot(self, section: str = "optimised ir", limit: int = pictures.LIMIT) -> str:
        """A picture of a program as DOT text, which graphviz draws; regions are clusters.

        Args:
            section: ``"ir"``, ``"derivative ir"`` or ``"optimised ir"``.
            limit: about how many boxes there are at most; what is left out is said.

        Raises:
            ArgumentError: there is no such program, or the limit is below 8.
        """
        return pictures.dot(self.drawn(section, limit), f"{self.heading}: {section}", limit)

    def svg(self, section: str = "optimised ir", limit: int = pictures.LIMIT) -> str:
        """The picture that `dot` describes as an SVG document, laid out here; tooltips name the user's lines.

        >>> import numpy as np, srcgrad as sg
        >>> picture = sg.explain(sg.grad(lambda x: np.sum(np.tanh(x))))(np.ones(3)).svg()
        >>> picture.count("<rect ") > 5
        True
        """
        return pictures.svg(self.drawn(section, limit), f"{self.heading}: {section}", limit)

    def drawn(self, section: str, limit: int) -> Function:
        if section not in self.functions:
            have = ", ".join(map(repr, self.functions))
            raise ArgumentError(
                f"there is no program {section!r} to draw",
                span=None,
                hint=f"there are {have}" if have else "each call runs the function itself, so there is no program",
            )
        if limit < pictures.LEAST:
            raise ArgumentError(f"a picture has at least {pictures.LEAST} boxes, not {limit}", span=None)
        return self.functions[section]


@checked
def explain(f: Callable[..., Any]) -> Callable[..., Explanation]:
    """What a call of a function goes through: source, how it runs, IR, passes, derivative, the backend's program.

    Args:
        f: a transformed function, or a plain one (explained as under ``jit``).

    Returns:
        A function with ``f``'s arguments that returns an `Explanation`; print it, or take one of its sections:
        ``"source"``, ``"how it runs"``, ``"ir"``, ``"passes"``, ``"derivative ir"``, ``"optimised ir"``,
        and ``"numpy source"`` (on another backend its text: ``"xla source"``). Its methods ``dot`` and ``svg`` draw a
        program. What is shown of the numpy backend is not compiled; the function is traced as often as this needs.

    Raises (when called):
        ArgumentError: ``f`` is not callable. And what ``f`` raises while it is traced.

    >>> import numpy as np, srcgrad as sg
    >>> explanation = sg.explain(sg.grad(lambda x: x * x, backend="llvm"))(3.0)
    >>> list(explanation.sections)
    ['source', 'how it runs', 'ir', 'passes', 'derivative ir', 'optimised ir', 'llvm source']
    >>> print(explanation["how it runs"].splitlines()[0])
    One program on the llvm backend, compiled at the first call and kept for later ones.
    """
    as_transformed(f, "explain")

    @functools.wraps(f, updated=())
    @checked
    def show(*args: Any, **kwargs: Any) -> Explanation:
        transformed = as_transformed(f, "explain")
        heading = f"{title(f)}, called with {len(args) + len(kwargs)} argument{'s' * (len(args) + len(kwargs) != 1)}"
        sections = {"source": user_source(f)}
        try:
            lowered = lower(f, args, kwargs, "explain")
        except ConcretizationError as error:
            sections["how it runs"] = f"Each call runs the function itself.\n{error}"
            return Explanation(heading, sections, {})
        functions = {"ir": lowered.traced}
        sections["how it runs"] = how_it_runs(lowered)
        sections["ir"] = str(lowered.traced)
        before: list[PassRecord] = []
        prepare = Pipeline(PREPARE, log=True)
        prepare.run(lowered.traced)
        before += prepare.records
        after: list[PassRecord] = []
        optimised = optimised_of(lowered, after)
        sections["passes"] = passes_text(transformed, before, after)
        if not isinstance(transformed, Jit):
            functions["derivative ir"] = lowered.built.function
        functions["optimised ir"] = optimised
        sections |= {name: str(function) for name, function in functions.items() if name not in sections}
        backend = backend_name(transformed.backend) if lowered.retraced is None else "numpy"
        sections[f"{backend} source"] = backend_text(lowered, optimised, backend)
        return Explanation(heading, sections, functions)

    return show


def optimised_of(lowered: Lowered, records: list[PassRecord] | None) -> Function:
    pipeline = Pipeline(optimisation(evaluate_operation), log=records is not None)
    optimised = pipeline.run(lowered.built.function)
    if records is not None:
        records += pipeline.records
    return optimised


def backend_text(lowered: Lowered, optimised: Function, backend: str) -> str:
    """The program in the backend's language: a NumPy module, or what it made of the function and its stages."""
    if backend == "numpy":
        return module_of(lowered, optimised)
    compiler = find_backend(backend)
    functions = [optimised, *(optimise_function(stage) for stage in lowered.built.stages)]
    return "\n\n".join(compiler.compile(function).source.rstrip() for function in functions)


# --- the sections -----------------------------------------------------------------------------------------------------


def user_source(f: Any) -> str:
    """The text of the user's function under the transforms."""
    while True:
        inner = getattr(f, "__srcgrad_wrapped__", None)
        inner = inner[0] if isinstance(inner, tuple) else inner
        if inner is None:
            inner = f.func if isinstance(f, functools.partial) else getattr(f, "__wrapped__", None)
        if inner is None:
            break
        f = inner
    try:
        lines, first = inspect.getsourcelines(f)
        file = os.path.basename(inspect.getsourcefile(f) or "?")
    except (OSError, TypeError):
        return f"{getattr(f, '__name__', repr(f))}: its source is not available"
    text = textwrap.dedent("".join(lines)).rstrip()
    return f"# {file}:{max(first, 1)}\n{text}"


def how_it_runs(lowered: Lowered) -> str:
    transformed = lowered.transformed
    lines = []
    if lowered.retraced is None:
        backend = backend_name(transformed.backend)
        lines.append(f"One program on the {backend} backend, compiled at the first call and kept for later ones.")
        lines.append("Another call uses it if the arguments' types, what is compiled in and the guards are the same.")
        if lowered.converted:
            lines.append("Python's control flow is part of it: the functions were converted.")
        lines += [text[0].upper() + text[1:] for text in lowered.rolled]
    else:
        if lowered.path:
            lines += lowered.path
        elif isinstance(transformed, Jit):
            lines.append("Each call runs the function itself, without a program. Below is what this call is traced to.")
        else:
            lines.append("Each call is traced again, with its numbers known. Below is the trace of this call.")
        lines.append(f"Why: {lowered.retraced}")
    lines.append("inputs:")
    lines += [f"  {item.name}: {item.type}, {item.origin}" for item in lowered.inputs]
    if lowered.constants:
        lines += ["compiled in:", *(f"  {text}" for text in lowered.constants)]
    if lowered.changed:
        lines.append(f"changed in place, and written back: {', '.join(lowered.changed)}")
    if lowered.refilled:
        lines.append(f"given something else to hold: {', '.join(lowered.refilled)}")
    guards = guards_of(lowered)
    if guards:
        lines += ["guards and captures:", *(f"  {_FOLDER.sub('(', line)}" for line in guards)]
    return "\n".join(lines)


def passes_text(transformed: Transformed, before: list[PassRecord], after: list[PassRecord]) -> str:
    """A line per pass, and under it the rules that fired with the user's lines."""
    lines = [text for record in before for text in record_lines(record)]
    if not isinstance(transformed, Jit):
        lines.append(f"{transformed.kind}: the transform")
    lines += [text for record in after for text in record_lines(record)]
    return "\n".join(lines)


def record_lines(record: PassRecord) -> list[str]:
    lines = [f"{record.name}: {record.before} operations -> {record.after}"]
    places: dict[str, Counter[str]] = {}
    for rule, span in record.fired:
        places.setdefault(rule, Counter())[span.origin.label() if span is not None else "no source"] += 1
    for rule, found in places.items():
        shown = ", ".join(place for place, _ in found.most_common(_MOST_PLACES))
        more = ", …" if len(found) > _MOST_PLACES else ""
        lines.append(f"  {found.total():>3} x {rule}   at {shown}{more}")
    return lines


# --- the module -------------------------------------------------------------------------------------------------------


class Placeholder:
    """Stands for a result in the description of what a call returns."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def module_of(lowered: Lowered, function: Function) -> str:
    """The module's text, with a docstring that says how to call its function."""
    functions = [function, *lowered.built.stages]
    hosts = HostTexts(functions, lowered.sites)
    text = module_source(functions, parts=hosts.parts(), imports=sorted(hosts.imports), taken=hosts.taken())
    name, params = _DEFINITION.findall(text)[-1]
    names = params.split(", ") if params else []
    for given, item in zip(names, lowered.inputs, strict=True):
        if given_as(item.leaf) is not None:  # an object, of which a program in a call has the number
            text = re.sub(rf'(?m)^(    """\(.*\b{given}: )i64\[\]', r"\1object", text)
    doc = "\n".join([*description(lowered, name, names, len(function.results)), *hosts.description()])
    doc = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{doc}\n"""\n\n{text}'


def description(lowered: Lowered, name: str, names: list[str], results: int) -> list[str]:
    called = title(lowered.transformed.f if isinstance(lowered.transformed, Jit) else lowered.transformed)
    lines = [f"{called} as a NumPy program, written by srcgrad.", ""]
    if lowered.retraced is not None:
        lines += textwrap.wrap(
            f"It holds for {PATH_ONLY if lowered.path else CALL_ONLY}. {lowered.retraced}",
            _WIDTH,
        )
        lines.append("")
    lines.append(f"{name} takes" + (":" if names else " nothing."))
    lines += [input_line(given, item) for given, item in zip(names, lowered.inputs, strict=True)]
    if lowered.constants:
        lines += ["", "Compiled in:", *(f"    {text}" for text in lowered.constants)]
    lines += ["", *returned(lowered, name, called, results)]
    return lines


def input_line(name: str, item: Input) -> str:
    return f"    {name}: {given_as(item.leaf) or item.type}, {item.origin}"


def returned(lowered: Lowered, name: str, called: str, results: int) -> list[str]:
    """What the function returns, and how that makes up what the user's call returns."""
    items = [Placeholder("result" if results == 1 else f"result[{k}]") for k in range(results)]
    structure = lowered.built.finish(items, [])
    text = repr(structure)
    if text == "result":
        return [f"It returns what {called} returns."]
    lines = [f"With result = {name}(…), {called} returns", *(f"    {line}" for line in textwrap.wrap(text, _WIDTH))]
    if lowered.changed:
        count = len(lowered.changed)
        places = "result" if results == 1 else ", ".join(f"result[{k}]" for k in range(results - count, results))
        lines.append(f"after writing {places} into {', '.join(lowered.changed)}.")
    if lowered.refilled:
        lines.append(f"What it puts into {', '.join(lowered.refilled)} is among the results too.")
    return lines
