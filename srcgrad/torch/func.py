"""`torch.func`: transforms of functions of tensors, by srcgrad's own transforms.

Inside a transform the tensors hold tracers, so each operation becomes part of a program of the IR, which is
differentiated, mapped and nested as every program of srcgrad. The outermost transform opens a trace in which every
number is known: it runs the program as it is written, Python control flow included. Tensors from outside that require
grad are inputs of that program, so `backward` goes on through a transform's results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

import srcgrad.api as api
from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorValueError
from srcgrad.torch.mapping import check_randomness, vmap
from srcgrad.torch.modes import MODE
from srcgrad.torch.outermost import Taken, flat, lifted_args, outermost, taken, unrecorded
from srcgrad.torch.tensor import Tensor, wrapped
from srcgrad.tracing.trace import CURRENT

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

Fn = Callable[..., Any]
Argnums = int | tuple[int, ...]


def selected(args: tuple[Any, ...], argnums: Argnums, name: str) -> list[int]:
    """The positions of the arguments that are differentiated.

    Raises:
        TensorError: there is no such argument, or argnums is no int or tuple of ints.
    """
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple) or not all(isinstance(number, int) for number in numbers):
        raise TensorError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not numbers:
        raise TensorError("argnums must be non-empty")
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise TensorError(
                f"Got argnum={number}, but only {len(args)} positional inputs", hint=f"{name}: argnums counts from 0"
            )
    found = [number % len(args) for number in numbers]
    if len(set(found)) != len(found):
        raise TensorError(f"argnums elements must be unique, got {numbers}")
    return found


class Call:
    """A function of the user's as one of arrays: those of the tensors of some of its arguments."""

    def __init__(self, f: Fn, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: Sequence[int]) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs
        self.numbers = numbers
        self.parts = [taken(args[number]) for number in numbers]
        self.output: Taken | None = None
        self.aux: Taken | None = None

    @property
    def arrays(self) -> list[Any]:
        return [array for part in self.parts for array in part.arrays]

    def arguments(self, arrays: Sequence[Any]) -> list[Any]:
        """Pytrees of the chosen arguments with other arrays."""
        rest = iter(arrays)
        return [part.put([next(rest) for _ in part.places]) for part in self.parts]

    def run(self, arrays: Sequence[Any]) -> Any:
        args = list(self.args)
        for number, argument in zip(self.numbers, self.arguments(arrays), strict=True):
            args[number] = argument
        token = MODE.set(MODE.get()._replace(grad=True))  # a no_grad() outside of the transform is not meant
        try:
            return self.f(*args, **self.kwargs)
        finally:
            MODE.reset(token)

    def split(self, found: Any, has_aux: bool, name: str) -> Any:
        """The output; the auxiliary one is kept.

        Raises:
            TensorError: ``has_aux``, and no pair was returned.
        """
        if not has_aux:
            return found
        if not isinstance(found, tuple) or len(found) != 2:
            raise TensorError(
                f"{name}_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                if name == "grad"
                else f"{name}(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True"
            )
        self.aux = taken(found[1])
        return found[0]

    def traced_output(self, arrays: Sequence[Any], has_aux: bool, name: str) -> tuple[tuple[Any, ...], Any]:
        """The output's arrays and the auxiliary ones."""
        output = self.split(self.run(arrays), has_aux, name)
        outputs = taken(output)
        if len(outputs.places) != len(outputs.leaves):
            wrong = next(x for x in outputs.leaves if not isinstance(x, Tensor))
            raise TensorError(
                f"{name}(f, *primals): Expected f to return only tensors, got unsupported type {type(wrong)}"
            )
        self.output = outputs.emptied()
        return tuple(outputs.arrays), self.aux_arrays()

    def aux_arrays(self) -> tuple[Any, ...]:
        """The arrays of the auxiliary output, whose tensors are then let go of."""
        if self.aux is None:
            return ()
        found = tuple(self.aux.arrays)
        self.aux = self.aux.emptied()
        return found

    def outputs(self, arrays: Sequence[Any]) -> Any:
        assert self.output is not None
        return self.output.put(arrays)

    def auxiliary(self, arrays: Sequence[Any]) -> Any:
        assert self.aux is not None
        return self.aux.put(arrays)


# --- the transforms ---------------------------------------------------------------------------------


def grad_and_value(func: Fn, argnums: Argnums = 0, has_aux: bool = False) -> Fn:
    """A function that returns ``(gradient, value)`` of ``func``; with ``has_aux`` ``(gradient, (value, aux))``.

    >>> import srcgrad.torch as torch
    >>> torch.func.grad_and_value(lambda x: x**2)(torch.tensor(3.0))
    (tensor(6.), tensor(9.))
    """

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return outermost(partial(gradient, func, argnums, has_aux, args, kwargs), "grad")

    return wrapper


def gradient(func: Fn, argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    numbers = selected(args, argnums, "grad")
    call = Call(func, lifted_args(args), kwargs, numbers)
    for part in call.parts:
        require_tensors(part)

    def scalar(*arrays: Any) -> Any:
        output = call.split(call.run(arrays), has_aux, "grad")
        if not isinstance(output, Tensor):
            raise TensorError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}",
                hint="return a tensor with one element",
            )
        if output.dim() != 0:
            raise TensorError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{output.dim()} "
                "dims. Maybe you'd like to use the vjp or jacrev APIs instead?"
            )
        return output._data, call.aux_arrays()

    arrays = call.arrays
    (value, aux), found = api.value_and_grad(scalar, argnums=tuple(range(len(arrays))), has_aux=True)(*arrays)
    # PyTorch's gradient of a complex argument is the conjugate of srcgrad's.
    found = [np.conj(x) if x.dtype.kind == "c" else x for x in found]
    gradients = call.arguments(found)
    result = gradients[0] if isinstance(argnums, int) else tuple(gradients)
    values = wrapped(value)
    return result, (values, call.auxiliary(aux)) if has_aux else values


def require_tensors(part: Taken, forward: str = "") -> None:
    """Refuse other leaves than tensors; ``forward`` says what they are to `jvp`."""
    for leaf in part.leaves:
        if not isinstance(leaf, Tensor):
            if forward:
                raise TensorError(
                    f"jvp(f, primals, tangents): Expected {forward} to only contain Tensors, got {type(leaf)}",
                    hint="torch.tensor(...)",
                )
            raise TensorValueError(
                f"Thing passed to transform API must be Tensor, got {type(leaf)}", hint="torch.tensor(...)"
            )


def grad(func: Fn, argnums: Argnums = 0, has_aux: bool = False) -> Fn:
    """A function that returns the gradient of ``func``, which returns a scalar tensor.

    Args:
        func: a function of pytrees of tensors. It may use Python control flow on their values.
        argnums: which positional arguments, an int or a tuple.
        has_aux: ``func`` returns ``(output, aux)``; the result is ``(gradient, aux)``.

    Raises (when called):
        TensorError: the output is no scalar tensor; there is no such argument.

    >>> import srcgrad.torch as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.5))
    tensor(-0.4794)
    """
    inner = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = inner(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


class Pullback:
    """What `vjp` returns: from cotangents of the output to those of the primals."""

    def __init__(self, pull: Fn, output: Taken, parts: Sequence[Taken]) -> None:
        self.pull, self.output, self.parts = pull, output, parts

    def __call__(self, cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """The cotangents of the primals, a tuple.

        Raises:
            TensorError: the structure is not the output's.
        """
        given = taken(cotangents)
        if not given.tree.fits(self.output.tree):
            raise TensorError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                "function. "
                f"cotangents: {given.tree!r}, primal output: {self.output.tree!r}"
            )

        def run() -> Any:
            seeds = taken(lifted_args(cotangents))
            found = iter(self.pull(tuple([conjugate(x) for x in seeds.arrays])))
            parts = [part.put([conjugate(next(found)) for _ in part.places]) for part in self.parts]
            return tuple(parts)

        return outermost(run, "vjp")


def conjugate(x: Any) -> Any:
    return np.conj(x) if x.dtype.kind == "c" else x


def vjp(func: Fn, *primals: Any, has_aux: bool = False) -> Any:
    """The output, and the function from its cotangents to those of the primals; with ``has_aux`` the aux too.

    >>> import srcgrad.torch as torch
    >>> out, pull = torch.func.vjp(torch.sin, torch.tensor(0.0))
    >>> pull(torch.tensor(2.0))
    (tensor(2.),)
    """
    kept: list[Any] = []

    def run() -> Any:
        call = Call(func, lifted_args(primals), {}, range(len(primals)))
        for part in call.parts:
            require_tensors(part)
        results = api.vjp(lambda *arrays: call.traced_output(arrays, has_aux, "vjp"), *call.arrays, has_aux=True)
        output, pull, aux = results
        kept[:] = [pull, call]
        found = call.outputs(output)
        return (found, call.auxiliary(aux)) if has_aux else (found,)

    if CURRENT.get() is not None:
        found = unrecorded(run())
        pull, call = kept
        return (found[0], Pullback(pull, call.output, call.parts), *found[1:])
    found = outermost(run, "vjp")
    again = Again(func, primals, has_aux)
    parts = [taken(primal) for primal in primals]
    return (found[0], Pullback(again.pull, taken(found[0]), parts), *found[1:])


class Again:
    """The pullback of an outermost `vjp`: its trace is over, so it is traced with each cotangent."""

    def __init__(self, func: Fn, primals: tuple[Any, ...], has_aux: bool) -> None:
        self.func, self.primals, self.has_aux = func, primals, has_aux

    def pull(self, cotangents: tuple[Any, ...]) -> Any:
        call = Call(self.func, lifted_args(self.primals), {}, range(len(self.primals)))
        _, pull, _ = api.vjp(
            lambda *arrays: call.traced_output(arrays, self.has_aux, "vjp"), *call.arrays, has_aux=True
        )
        return pull(cotangents)

    def push(self, tangents: tuple[Any, ...]) -> Any:
        call = Call(self.func, lifted_args(self.primals), {}, range(len(self.primals)))
        pushed = api.jvp(
            lambda *arrays: call.traced_output(arrays, False, "linearize")[0], tuple(call.arrays), tangents
        )
        return call.outputs(pushed[1])


def jvp(func: Fn, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The output and its tangent; with ``has_aux`` the aux too.

    >>> import srcgrad.torch as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise TensorError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )

    def run() -> Any:
        call = Call(func, lifted_args(primals), {}, range(len(primals)))
        given = taken(lifted_args(tangents))
        if not given.tree.fits(flat(primals)[1]):
            raise TensorError(
                "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For "
                "example, "
                "if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
                f"{flat(primals)[1]!r} and tangents with structure {given.tree!r}"
            )
        for part in call.parts:
            require_tensors(part, "primals")
        require_tensors(given, "tangents")
        output, tangent, aux = api.jvp(
            lambda *arrays: call.traced_output(arrays, has_aux, "jvp"),
            tuple(call.arrays),
            tuple(given.arrays),
            has_aux=True,
        )
        found = (call.outputs(output), call.outputs(tangent))
        return (*found, call.auxiliary(aux)) if has_aux else found

    return outermost(run, "jvp")


def linearize(func: Fn, *primals: Any) -> tuple[Any, Fn]:
    """The output, and the function from tangents of the primals to that of the output.

    >>> import srcgrad.torch as torch
    >>> out, push = torch.func.linearize(torch.exp, torch.tensor(0.0))
    >>> push(torch.tensor(3.0))
    tensor(3.)
    """
    again = Again(func, primals, False)
    structure = flat(primals)[1]
    require_tensors(taken(primals))

    def push(*tangents: Any) -> Any:
        given = taken(tangents)
        if not given.tree.fits(structure):
            raise TensorError(
                f"Expected the tangents {given.tree!r} to have the same argspec as the primals {structure!r}"
            )
        return outermost(lambda: again.push(tuple(taken(lifted_args(tangents)).arrays)), "linearize")

    return outermost(lambda: func(*lifted_args(primals)), "linearize"), push


def jacobian_by(maker: Fn, name: str, func: Fn, argnums: Argnums, has_aux: bool) -> Fn:
    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        def run() -> Any:
            call = Call(func, lifted_args(args), kwargs, selected(args, argnums, name))
            for part in call.parts:
                require_tensors(part)
            arrays = call.arrays
            rows, aux = maker(
                lambda *given: call.traced_output(given, has_aux, name),
                argnums=tuple(range(len(arrays))),
                has_aux=True,
            )(*arrays)
            blocks = []
            for row in rows:
                parts = call.arguments(row)
                blocks.append(parts[0] if isinstance(argnums, int) else tuple(parts))
            assert call.output is not None
            found = call.output.tree.unflatten(blocks)
            return (found, call.auxiliary(aux)) if has_aux else found

        return outermost(run, name)

    return wrapper


def jacrev(
    func: Fn,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Fn:
    """A function that returns the Jacobian of ``func`` by reverse mode, of shape ``output.shape + input.shape``.

    ``chunk_size``: accepted; all rows are computed at once. The other arguments are `grad`'s.

    >>> import srcgrad.torch as torch
    >>> torch.func.jacrev(torch.sin)(torch.tensor([0.0, 0.0]))
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_chunk(chunk_size, "jacrev")
    return jacobian_by(api.jacrev, "jacrev", func, argnums, has_aux)


def jacfwd(func: Fn, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Fn:
    """A function that returns the Jacobian of ``func`` by forward mode. See `jacrev`."""
    check_randomness(randomness)
    if randomness == "different":
        raise TensorNotImplementedError(
            "jacfwd with randomness='different': one program gives all columns, from the same numbers",
            hint="draw outside, and pass the numbers as an argument",
        )
    return jacobian_by(api.jacfwd, "jacfwd", func, argnums, has_aux)


def hessian(func: Fn, argnums: Argnums = 0) -> Fn:
    """A function that returns the second derivatives of ``func``: forward over reverse.

    >>> import srcgrad.torch as torch
    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def check_chunk(chunk_size: int | None, name: str) -> None:
    if chunk_size is not None and not chunk_size > 0:
        raise TensorValueError(f"{name}: `chunk_size` should be greater than 0.")


def functionalize(func: Fn, *, remove: str = "mutations") -> Fn:
    """Refused: what the transforms trace has no mutation to be removed."""
    raise TensorNotImplementedError(
        "functionalize is not needed here: in-place changes inside a transform are traced without mutation",
        hint="leave it out",
    )


# --- modules ----------------------------------------------------------------------------------------


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors as its parameters and buffers.

    Args:
        module: the module, which is as it was afterwards.
        parameter_and_buffer_dicts: tensors by their dotted names, or several such dictionaries.
        args, kwargs: its arguments; ``args`` may be the only one.
        tie_weights: a tensor that the module has under several names is replaced under all of them.
        strict: names that are missing or unknown are an error.
    """
    dicts = parameter_and_buffer_dicts
    if isinstance(dicts, dict):
        given = dict(dicts)
    else:
        given = {}
        for one in dicts:
            for name, value in one.items():
                if name in given:
                    raise TensorValueError(
                        f"{name} appears in multiple dictionaries; behavior of functional call is ambiguous"
                    )
                given[name] = value
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    known = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    unknown = [name for name in given if name not in known]
    missing = [name for name in known if name not in given]
    if strict and (unknown or missing):
        raise TensorError(f"Error(s) in replacing tensors: unexpected keys {unknown}, missing keys {missing}")
    if unknown:
        raise TensorError(f"the module has no parameter or buffer {unknown[0]!r}", hint=f"it has {', '.join(known)}")
    if tie_weights:
        by_tensor = {id(known[name]): value for name, value in given.items()}
        given = {name: by_tensor[id(old)] for name, old in known.items() if id(old) in by_tensor}
    before = []
    try:
        for name, value in given.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            table = owner._parameters if last in owner._parameters else owner._buffers
            before.append((table, last, table[last]))
            table[last] = value
        return module(*args, **(kwargs or {}))
    finally:
        for table, last, old in reversed(before):
            table[last] = old


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of modules of one kind, stacked: for `vmap` over `functional_call`.

    Raises:
        TensorError: no modules, of different classes, or some in training and some not.
    """
    from srcgrad.torch import stack

    if not models:
        raise TensorError("stack_module_state: Expected at least one model, got 0.")
    if any(model.training != models[0].training for model in models):
        raise TensorError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise TensorError("stack_module_state: Expected all models to be of the same class.")
    tables = [dict(model.named_parameters()) for model in models]
    parameters = {
        name: stack([table[name].detach() for table in tables]).requires_grad_(x.requires_grad)
        for name, x in tables[0].items()
    }
    tables = [dict(model.named_buffers()) for model in models]
    buffers = {name: stack([table[name].detach() for table in tables]) for name in tables[0]}
    return parameters, buffers
