"""Random programs of views, changes in place and saved values, run on PyTorch and on the facade, compared step by step.

``PYTHONPATH=. python tests/torch/fuzz_views.py --programs 5000 --seed 0`` needs PyTorch; ``--record FILE`` writes
programs with what PyTorch said of them, for the tests that run without it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RESTRIDED = re.compile(r"with torch\.(no_grad|inference_mode)\(\): \w+\.(t|transpose|squeeze|unsqueeze)_\(")
LEAF_SHAPES = ((3, 4), (4,), (2, 3, 2), (3, 3), (1, 4), (), (2, 2))
MOST = 14


class Outcome(NamedTuple):
    """What a module said: per step the class of the error (or None), then all variables, then all gradients."""

    errors: list[str | None]
    steps: list[Any]
    variables: dict[str, Any]
    gradients: dict[str, Any]
    messages: dict[int, str]


# --- running ----------------------------------------------------------------------------------------------


def leaf_maker(torch: Any) -> Any:
    def leaf(number: int, shape: tuple[int, ...], requires: bool) -> Any:
        count = int(np.prod(shape))
        values = [((number * 7 + k * 5 + k * k) % 13 - 6) / 6.5 for k in range(count)]
        x = torch.tensor(values, dtype=torch.float64).reshape(shape).clone()
        return x.requires_grad_() if requires else x

    return leaf


def error_class(error: BaseException) -> str:
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins").__name__


def looked_at(x: Any) -> dict[str, Any]:
    """What can be seen of a tensor; its node, or the class of the error that asking for it raises."""
    try:
        node = x.grad_fn
        name = None if node is None else node.name()
    except Exception as error:
        name = f"raises {error_class(error)}"
    return {
        "shape": list(x.shape),
        "version": None if x.is_inference() else x._version,
        "requires": x.requires_grad,
        "view": x._is_view(),
        "node": name,
        "values": np.asarray(x.detach().clone()).ravel().tolist(),
    }


def tensors_in(scope: dict[str, Any], torch: Any) -> dict[str, Any]:
    return {name: x for name, x in scope.items() if isinstance(x, torch.Tensor)}


class Run:
    """A program in progress on one module."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.scope: dict[str, Any] = {"torch": torch, "leaf": leaf_maker(torch)}
        self.errors: list[str | None] = []
        self.messages: dict[int, str] = {}
        self.steps: list[Any] = []

    def step(self, code: str, watch: bool) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(code, self.scope)
            self.errors.append(None)
        except Exception as error:
            self.errors.append(error_class(error))
            self.messages[len(self.errors) - 1] = str(error)
        self.steps.append(
            {name: looked_at(x) for name, x in tensors_in(self.scope, self.torch).items()} if watch else None
        )

    def outcome(self) -> Outcome:
        tensors = tensors_in(self.scope, self.torch)
        variables = {name: looked_at(x) for name, x in tensors.items()}
        gradients = {}
        for name, x in tensors.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    gradient = x.grad
                except Exception:
                    gradient = None
            gradients[name] = None if gradient is None else np.asarray(gradient.detach()).ravel().tolist()
        return Outcome(self.errors, self.steps, variables, gradients, self.messages)


def run(torch: Any, program: list[str], watch: bool = True) -> Outcome:
    """A whole program."""
    running = Run(torch)
    for code in program:
        running.step(code, watch)
    return running.outcome()


# --- making programs --------------------------------------------------------------------------------------


class Maker:
    """Makes a program while PyTorch runs it, so that most of its steps make sense."""

    def __init__(self, torch: Any, seed: int, watch: bool) -> None:
        self.random = random.Random(seed)
        self.run = Run(torch)
        self.watch = watch
        self.program: list[str] = []
        self.made = 0

    def tensors(self) -> dict[str, Any]:
        return tensors_in(self.run.scope, self.run.torch)

    def fresh(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def pick(self, *, rank: int = 0) -> tuple[str, Any]:
        known = [(name, x) for name, x in self.tensors().items() if x.ndim >= rank]
        recent = known[-5:]
        return self.random.choice(
            recent if recent and self.random.random() < 0.7 else known or list(self.tensors().items())
        )

    def add(self, code: str) -> None:
        self.program.append(code)
        self.run.step(code, self.watch)

    def make(self) -> None:
        r = self.random
        for _ in range(r.randint(1, 2)):
            self.new_leaf()
        kinds = {
            self.new_leaf: 2,
            self.compute: 6,
            self.view: 8,
            self.several: 2,
            self.change: 9,
            self.restride: 1,
            self.assign: 4,
            self.read: 2,
            self.setting: 2,
            self.by_index: 2,
        }
        for _ in range(r.randint(4, MOST)):
            r.choices(list(kinds), list(kinds.values()))[0]()
        self.finish()

    # one step each
    def guarded(self, code: str) -> str:
        chance = self.random.random()
        if chance < 0.09:
            return f"with torch.no_grad(): {code}"
        return f"with torch.inference_mode(): {code}" if chance < 0.105 else code

    def new_leaf(self) -> None:
        r = self.random
        self.add(f"{self.fresh()} = leaf({r.randint(0, 50)}, {r.choice(LEAF_SHAPES)}, {r.random() < 0.6})")

    def apart(self, x: Any, y: Any) -> bool:
        """Whether PyTorch keeps two operands apart: of overlapping ones with gaps it reads what it has just written."""
        if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr() or not x.numel() or not y.numel():
            return True
        same = x.shape == y.shape and x.stride() == y.stride() and x.storage_offset() == y.storage_offset()
        return same or (x.is_contiguous() and y.is_contiguous())

    def other(self, x: Any) -> str:
        """A variable that broadcasts with the tensor, or a number."""
        fits = []
        for name, y in self.tensors().items():
            if not self.apart(x, y):
                continue
            try:
                if np.broadcast_shapes(tuple(x.shape), tuple(y.shape)) == tuple(x.shape):
                    fits.append(name)
            except ValueError:
                continue
        if self.random.random() < 0.3 or not fits:
            return self.random.choice(["2.0", "-1.5", "0.5"])
        return self.random.choice(fits)

    def compute(self) -> None:
        name, x = self.pick()
        code = self.random.choice(
            [
                f"{name} * {self.other(x)}",
                f"{name} + {self.other(x)}",
                f"{name} - {self.other(x)}",
                f"{name}.sin()",
                f"{name}.tanh()",
                f"{name}.sigmoid()",
                f"{name} * {name}",
                f"{name}.clone()",
                f"{name}.detach()",
                f"{name}.exp()",
                f"{name}.cos()",
                f"({name} * {self.other(x)}).sum()",
                f"torch.relu({name})",
            ]
        )
        self.add(self.guarded(f"{self.fresh()} = {code}"))

    def viewed(self, name: str, x: Any) -> str:
        r = self.random
        rank = x.ndim
        choices = [
            f"{name}.view(-1)",
            f"{name}.unsqueeze({r.randint(0, rank)})",
            f"{name}[...]",
            f"{name}[None]",
            f"{name}.reshape(-1)",
            f"{name}.squeeze()",
            f"{name}.view_as({name})",
            f"{name}.detach()",
        ]
        if rank:
            d, e = r.randrange(rank), r.randrange(rank)
            size = x.shape[d]
            choices += [
                f"{name}[{r.randint(-1, 2)}]",
                f"{name}[{r.randint(0, 2)}:]",
                f"{name}[:{r.randint(1, 3)}]",
                f"{name}[::2]",
                f"{name}.transpose({d}, {e})",
                f"{name}.select({d}, {r.randint(0, max(size - 1, 0))})",
                f"{name}[:]",
                f"{name}.narrow({d}, 0, {r.randint(0, size)})",
                f"{name}.flatten()",
                f"{name}.swapaxes({d}, {e})",
                f"{name}.unfold({d}, {max(size, 1)}, 1)",
                f"{name}.squeeze({d})",
                f"{name}.mT",
                f"{name}.T",
            ]
        if rank == 2:
            choices += [
                f"{name}.t()",
                f"{name}[:, {r.randint(0, 2)}]",
                f"{name}.diagonal()",
                f"{name}[1:, :2]",
                f"{name}[0, 1:]",
                f"{name}.permute(1, 0)",
                f"{name}[:, 1::2]",
            ]
        if 1 in tuple(x.shape) or not rank:
            choices += [f"{name}.expand({', '.join(str(3 if n == 1 else n) for n in x.shape) or '2'})"]
        return r.choice(choices)

    def view(self) -> None:
        name, x = self.pick()
        code = self.viewed(name, x)
        self.add(self.guarded(f"{self.fresh()} = {code}"))

    def several(self) -> None:
        name, x = self.pick(rank=1)
        d = self.random.randrange(max(x.ndim, 1))
        code = self.random.choice(
            [f"{name}.unbind({d})", f"{name}.split(1, {d})", f"{name}.chunk(2, {d})", f"{name}.tensor_split(2, {d})"]
        )
        first, last = self.fresh(), self.fresh()
        self.add(self.guarded(f"{first}, *_, {last} = {code}"))

    def change(self) -> None:
        name, x = self.pick()
        target = name if self.random.random() < 0.8 else self.viewed(name, x)
        other = self.other(x) if target == name else self.random.choice(["2.0", "0.5"])
        code = self.random.choice(
            [
                f"{target}.mul_({other})",
                f"{target}.add_({other})",
                f"{target}.sub_({other})",
                f"{target}.sin_()",
                f"{target}.tanh_()",
                f"{target}.sigmoid_()",
                f"{target}.neg_()",
                f"{target}.zero_()",
                f"{target}.fill_(0.5)",
                f"{target}.div_(2.0)",
                f"{target}.cos_()",
                f"{target}.relu_()",
                f"{target}.exp_()",
                f"{name} += {other}",
                f"{name} *= {other}",
            ]
            + ([f"{target}.copy_({other})"] if other in self.tensors() else [])
        )
        self.add(self.guarded(code))

    def restride(self) -> None:
        name, x = self.pick()
        rank = max(x.ndim, 1)
        d, e = self.random.randrange(rank), self.random.randrange(rank)
        code = self.random.choice(["t_()", f"transpose_({d}, {e})", "squeeze_()", f"unsqueeze_({d})", f"squeeze_({d})"])
        self.add(self.guarded(f"{name}.{code}"))

    def index(self, x: Any) -> str:
        r = self.random
        options = ["...", "0", "None", "1:", "::2", ":", "-1"]
        size = x.shape[0] if x.ndim else 1
        places = r.sample(range(max(size, 1)), r.randint(0, min(size, 2)))
        options += [f"torch.tensor({places}, dtype=torch.long)"] * 2
        if x.ndim:
            options.append("torch.tensor(" + str([r.random() < 0.5 for _ in range(size)]) + ", dtype=torch.bool)")
        if x.ndim >= 2:
            options += [
                "(0, slice(1, None))",
                "(slice(None), 0)",
                "(..., slice(0, 2))",
                "(0, [0, 1])",
                "([0, 1], [1, 0])",
                "(slice(None), None, [1])",
                "([1], slice(0, 1))",
            ]
        return r.choice(options)

    def assign(self) -> None:
        r = self.random
        name, x = self.pick()
        index = self.index(x)
        if r.random() < 0.1 and x.ndim and x.shape[0] > 1:
            index = "torch.tensor([0, 0])"
        code = f"{name}[{index}] = "
        own = r.choice([own for own, y in self.tensors().items() if self.apart(x, y)])
        code += r.choice(["1.5", "0.0", own, f"{own}.sum()", f"{name}[{index}] * 2.0", f"{name}[{index}].sin()"])
        self.add(self.guarded(code))

    def read(self) -> None:
        name, x = self.pick()
        self.add(self.guarded(f"{self.fresh()} = {name}[{self.index(x)}]"))

    def by_index(self) -> None:
        name, x = self.pick(rank=1)
        d = self.random.randrange(max(x.ndim, 1))
        own = self.random.choice([own for own, y in self.tensors().items() if self.apart(x, y)])
        code = self.random.choice(
            [
                f"{name}.index_fill_({d}, torch.tensor([0]), 0.5)",
                f"{name}.masked_fill_({name} > 0.2, 0.1)",
                f"{name}.index_add_({d}, torch.tensor([0, 0]), {own}[:2])",
                f"{name}.index_copy_({d}, torch.tensor([0]), {own}[:1])",
                f"{name}.masked_fill_({name}.detach() > 0, {own}.sum())",
                f"{self.fresh()} = {name}.index_select({d}, torch.tensor([0, 0]))",
            ]
        )
        self.add(self.guarded(code))

    def setting(self) -> None:
        name, _ = self.pick()
        self.add(
            self.random.choice(
                [
                    f"{name}.requires_grad_()",
                    f"{name}.requires_grad_()",
                    f"{name}.detach_()",
                    f"{name}.retain_grad()",
                    f"{name}.data.mul_(2.0)",
                    f"{name}.detach().mul_(0.5)",
                    f"with torch.no_grad(): {name}.mul_(0.5)",
                    f"del {name}" if len(self.tensors()) > 3 else f"{name}.requires_grad_(False)",
                ]
            )
        )

    def finish(self) -> None:
        names = list(self.tensors())
        chosen = self.random.sample(names, min(len(names), self.random.randint(1, 4)))
        wanted = [name for name in chosen if self.run.scope[name].requires_grad] or names
        terms = " + ".join(f"({name} * {1 + 0.5 * k}).sum()" for k, name in enumerate(wanted))
        if self.random.random() < 0.15:
            self.add(f"total = {terms}")
            self.add(f"total.backward(retain_graph={self.random.random() < 0.5})")
            self.add("total.backward()")
        else:
            self.add(f"total = {terms}")
            self.add("total.backward()")


# --- comparing --------------------------------------------------------------------------------------------


def close(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return len(a) == len(b) and bool(np.allclose(a, b, rtol=1e-9, atol=1e-11, equal_nan=True))


def seen_differences(ours: dict[str, Any], theirs: dict[str, Any], place: str) -> list[str]:
    found = []
    if list(ours) != list(theirs):
        return [f"{place}: variables {list(ours)} against {list(theirs)}"]
    for name, mine in ours.items():
        other = theirs[name]
        for key in mine:
            same = close(mine[key], other[key]) if key == "values" else mine[key] == other[key]
            if not same:
                found.append(f"{place}: {name}.{key}: ours {mine[key]}, theirs {other[key]}")
    return found


def differences(ours: Outcome, theirs: Outcome) -> list[str]:
    """The first places where two outcomes differ."""
    for k, (mine, other) in enumerate(zip(ours.errors, theirs.errors, strict=True)):
        if mine != other:
            texts = [str(outcome.messages.get(k))[:160] for outcome in (ours, theirs)]
            return [f"step {k}: ours {mine} ({texts[0]}), theirs {other} ({texts[1]})"]
        if ours.steps[k] is not None and theirs.steps[k] is not None:
            found = seen_differences(ours.steps[k], theirs.steps[k], f"step {k}")
            if found:
                return found
    found = seen_differences(ours.variables, theirs.variables, "end")
    if theirs.errors[-1] is not None:  # a backward that raises may have added some gradients before it did
        return found
    for name, gradient in theirs.gradients.items():
        if not close(ours.gradients.get(name), gradient):
            found.append(f"gradient of {name}: ours {ours.gradients.get(name)}, theirs {gradient}")
    return found


def known_difference(program: list[str], found: list[str], theirs: Outcome) -> str | None:
    """Why PyTorch is wrong and the facade right, where that is known."""
    restrided = any(RESTRIDED.match(code) for code in program)
    refused = any("invalid gradient" in text for text in theirs.messages.values())
    if restrided and (refused or "ours None" not in str(found)):
        return (
            "a tensor changes its shape in no_grad: a gradient of the old shape is an error, never summed or reshaped"
        )
    if any("Inplace update to inference" in text for text in theirs.messages.values()):
        return "PyTorch writes into an inference tensor before it refuses to"
    if any(theirs.errors[k] == "IndexError" and "] = " in code for k, code in enumerate(program)):
        return "PyTorch writes some values before it finds an index out of bounds"
    if "ours RuntimeError (unsupported operation: more than one element of the written-to" in str(found):
        return "indices or a mask written through into an expanded tensor: an error where PyTorch warns"
    if "some elements of the input tensor and the written-to" in str(found) and "ours None" in str(found):
        return "operands that share memory: all is read before anything is written, where PyTorch refuses"
    if "ours None" in str(found) and "more than one element" in theirs.messages.get(len(program) - 1, ""):
        return "the derivative of an expanded tensor that was filled: PyTorch cannot take it"
    if all(".version: ours 0, theirs 1" in text for text in found) and "inference_mode" in str(program):
        return "the clone of an inference tensor is at version 0"
    if "index_fill_" in str(program) and "size 0" in str(found):
        return "index_fill_ of an empty dimension: always an IndexError"
    by_index = "index_copy_" in str(program) or "index_add_" in str(program)
    if by_index and "ours None" in str(found) and "modified by an inplace" in str(found):
        return "index_copy_ and index_add_ need the shape of their source alone: no error if it changes"
    if "ours None" in str(found) and "saved tensor that has been detached in-place" in str(found):
        return "a saved tensor was detached in place: its place in the graph is known all the same"
    if "INTERNAL ASSERT FAILED" in str(found):
        return "an internal error of PyTorch"
    if "ours RuntimeError (Inplace update to inference tensor" in str(found):
        return "a detached inference tensor: an error where PyTorch writes"
    duplicated = any("[torch.tensor([0, 0])] =" in code for code in program)
    if duplicated and all(text.startswith("gradient") for text in found):
        return "the derivative of an assignment to one place twice: the last value counts"
    return None


def made(torch: Any, seed: int) -> tuple[list[str], bool, Outcome]:
    """A program, whether each step of it is looked at, and what PyTorch says."""
    watch = seed % 2 == 0
    maker = Maker(torch, seed, watch)
    maker.make()
    return maker.program, watch, maker.run.outcome()


def shortened(program: list[str], watch: bool, torch: Any, facade: Any) -> list[str]:
    """The program without the steps that its difference does not need."""
    k = 0
    while k < len(program):
        shorter = program[:k] + program[k + 1 :]
        theirs = run(torch, shorter, watch)
        found = differences(run(facade, shorter, watch), theirs)
        if found and known_difference(shorter, found, theirs) is None:
            program = shorter
        else:
            k += 1
    return program


def main() -> int:
    import torch

    import srcgrad.torch as facade

    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    if options.record is not None:
        record(torch, facade, options.record, options.programs, options.seed)
        return 0
    wrong, known, raised, steps = 0, Counter[str](), 0, 0
    for seed in range(options.seed, options.seed + options.programs):
        program, watch, theirs = made(torch, seed)
        steps += len(program)
        raised += sum(error is not None for error in theirs.errors)
        found = differences(run(facade, program, watch), theirs)
        if not found:
            continue
        reason = known_difference(program, found, theirs)
        if reason is not None:
            known[reason] += 1
            continue
        wrong += 1
        if wrong <= options.show:
            program = shortened(program, watch, torch, facade)
            found = differences(run(facade, program, watch), run(torch, program, watch))
            print(f"--- seed {seed}, watched {watch}", *program, *[f"    {text}"[:400] for text in found[:4]], sep="\n")
    print(f"{options.programs} programs, {steps} steps ({raised} raise): {wrong} differ; known: {dict(known)}")
    return int(wrong > 0)


def record(torch: Any, facade: Any, path: Path, count: int, seed: int) -> None:
    """Write programs with what PyTorch says of them, without those where PyTorch is known to be wrong."""
    entries = []
    while len(entries) < count:
        program, watch, outcome = made(torch, seed)
        seed += 1
        found = differences(run(facade, program, watch), outcome)
        if found and known_difference(program, found, outcome) is not None:
            continue
        entries.append({"program": program, "watch": watch, **summary(outcome)})
    path.write_text("[\n" + ",\n".join(map(json.dumps, entries)) + "\n]\n")


def weighed(values: list[float] | None) -> Any:
    """Values as one number: a weighted sum."""
    if values is None:
        return None
    total = sum((1 + k % 7) * value for k, value in enumerate(values))
    return str(total) if not np.isfinite(total) else float(f"{total:.9e}")


def summary(outcome: Outcome) -> dict[str, Any]:
    """An outcome in few words."""
    return {
        "errors": outcome.errors,
        "variables": {
            name: [x["shape"], x["version"], x["requires"], x["view"], x["node"], weighed(x["values"])]
            for name, x in outcome.variables.items()
        },
        "gradients": {name: weighed(values) for name, values in outcome.gradients.items() if values is not None},
    }


if __name__ == "__main__":
    sys.exit(main())
