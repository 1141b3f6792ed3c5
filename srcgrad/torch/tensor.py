"""The tensor: a NumPy array, and its place in the recorded graph."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import numpy as np

from srcgrad.torch import dtypes
from srcgrad.torch.errors import AutogradError, TensorError, TensorTypeError, TensorValueError
from srcgrad.torch.graph import AccumulateGrad, Edge, GraphNode, Hooks, RemovableHandle, dtype_of_type, type_name
from srcgrad.torch.modes import MODE
from srcgrad.torch.printing import tensor_text

if TYPE_CHECKING:
    from srcgrad.torch.operation import Op

NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the "
    "leaf Tensor instead."
)


class Tensor:
    """An array of one dtype on which gradients can be taken, as PyTorch's.

    It is made by `tensor`, `zeros` and the other functions of the module. ``_data`` is a NumPy array, or a tracer
    while a transform of `srcgrad.torch.func` runs.

    >>> import srcgrad.torch as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    _data: Any
    _node: GraphNode | None = None
    _output: int = 0
    _requires: bool = False
    _grad: Tensor | None = None
    _counter: list[Any]
    _base: Tensor | None = None
    _views: tuple[tuple[Op, tuple[Any, ...], int | None], ...] = ()
    """Of a view: how it is made of the base as that was first; of a base that was transposed in place: how."""
    _undo: tuple[tuple[Op, tuple[Any, ...], int | None], ...] = ()
    """Of a base that was transposed in place: the views that take it back."""
    _seen: int = 0
    """Of a view: the version of the memory for which ``_node`` is right."""
    _creation: int = 0
    """Of a view: why it must not be changed in place (`dispatch.REASONS`), or 0."""
    _custom_view: str | None = None
    _accumulator: weakref.ref[AccumulateGrad] | None = None
    _hooks: Hooks | None = None
    """Hooks of a leaf on its gradient."""
    _post_hooks: Hooks | None = None
    _retains: bool = False
    _inference: bool = False
    _tangent: Tensor | None = None
    _level: int = -1
    __array_priority__: ClassVar[float] = 1000.0

    def __init__(self, *data: Any) -> None:
        dtype = dtypes.get_default_dtype().numpy
        sizes = len(data) != 1 or isinstance(data[0], int)
        self._data = np.empty(data or 0, dtype) if sizes else np.array(data[0], dtype)
        self._counter = [0]

    # --- what it is --------------------------------------------------------------------------------
    @property
    def shape(self) -> dtypes.Size:
        return dtypes.Size(self._data.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dimension."""
        if dim is None:
            return dtypes.Size(self._data.shape)
        return self._data.shape[checked_dim(dim, self._data.ndim)]

    @property
    def dtype(self) -> dtypes.dtype:
        return dtypes.of(self._data.dtype)

    @property
    def ndim(self) -> int:
        return int(self._data.ndim)

    def dim(self) -> int:
        return int(self._data.ndim)

    ndimension = dim

    def numel(self) -> int:
        """How many elements it has."""
        return int(self._data.size)

    nelement = numel

    @property
    def itemsize(self) -> int:
        return int(self._data.dtype.itemsize)

    def element_size(self) -> int:
        """Bytes per element."""
        return int(self._data.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return int(self._data.nbytes)

    @property
    def device(self) -> dtypes.device:
        return dtypes.CPU

    @property
    def layout(self) -> Any:
        return dtypes.strided

    is_cuda = False
    is_sparse = False
    is_quantized = False
    is_meta = False

    def is_floating_point(self) -> bool:
        return bool(self._data.dtype.kind == "f")

    def is_complex(self) -> bool:
        return bool(self._data.dtype.kind == "c")

    def stride(self, dim: int | None = None) -> Any:
        """Steps in memory, in elements."""
        strides = tuple(step // self._data.itemsize for step in self._data.strides)
        return strides if dim is None else strides[checked_dim(dim, len(strides))]

    def storage_offset(self) -> int:
        """The position of the first element in the memory of the base, in elements."""
        if self._base is None:
            return 0
        address: int = self._data.__array_interface__["data"][0]
        return int(address - self._base._data.__array_interface__["data"][0]) // self.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._data.__array_interface__["data"][0])

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return bool(self._data.flags.c_contiguous)

    def type(self, dtype: Any = None, **options: Any) -> Any:
        """The name of its type; given a dtype (or such a name), the tensor in that dtype."""
        if dtype is None:
            return type_name(self._data.dtype)
        return self.to(dtype_of_type(dtype))

    # --- the graph ---------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        if self._requires or self._node is not None:
            return True
        return self._base is not None and self._base.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and self._data.dtype.kind not in "fc":
            raise AutogradError("only Tensors of floating point and complex dtype can require gradients")
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for gradients of this leaf.

        Raises:
            AutogradError: its dtype has none, or it is no leaf and should not require grad.
        """
        if requires_grad and self._node is not None:
            return self
        if self._node is not None:
            raise AutogradError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if requires_grad and self._data.dtype.kind not in "fc":
            raise AutogradError("only Tensors of floating point dtype can require gradients")
        if requires_grad and self._inference and not MODE.get().inference:
            raise AutogradError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self._requires = bool(requires_grad)
        return self

    @property
    def grad_fn(self) -> GraphNode | None:
        if self._base is not None and self._seen != self._counter[0]:
            from srcgrad.torch.dispatch import regenerate

            regenerate(self)
        return self._node

    @property
    def output_nr(self) -> int:
        return self._output

    @property
    def is_leaf(self) -> bool:
        return self._node is None

    @property
    def grad(self) -> Tensor | None:
        if self._grad is None and self._node is not None and not self._retains:
            warnings.warn(NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TensorTypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise AutogradError("can't assign Variable as its own grad")
            if value._data.shape != self._data.shape:
                raise AutogradError(
                    f"attempting to assign a gradient of size '{list(value._data.shape)}' to a tensor of size "
                    f"'{list(self._data.shape)}'"
                )
            if value._data.dtype != self._data.dtype:
                raise AutogradError(
                    f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor of dtype '{self.dtype}'"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        return self._retains

    def retain_grad(self) -> None:
        """Keep ``grad`` of this tensor though it is no leaf."""
        if not self.requires_grad:
            raise AutogradError("can't retain_grad on Tensor that has requires_grad=False")
        if self._node is None or self._retains:
            return
        node = self.grad_fn
        assert node is not None
        self._retains = True
        if node.retained is None:
            node.retained = {}
        node.retained[self._output] = weakref.ref(self)

    @property
    def _version(self) -> int:
        if self._inference:
            raise AutogradError("Inference tensors do not track version counter.")
        return int(self._counter[0])

    def is_inference(self) -> bool:
        """Whether it was made in `inference_mode`."""
        return self._inference

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def data(self) -> Tensor:
        """The same memory, out of the graph; changes through it are not seen by the versions."""
        return wrapped(self._data)

    @data.setter
    def data(self, value: Tensor) -> None:
        if value._data.dtype.kind not in "fc" and self._requires:
            raise AutogradError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self._data = value._data

    def detach(self) -> Tensor:
        """The same memory and version, out of the graph."""
        found = wrapped(constant_of(self._data))
        found._counter, found._inference = self._counter, self._inference
        return found

    def detach_(self) -> Tensor:
        """Take this tensor itself out of the graph, as a leaf."""
        if self._base is not None:
            raise AutogradError("Can't detach views in-place. Use detach() instead.")
        self._node, self._output, self._requires = None, 0, False
        return self

    def register_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle:
        """Call ``hook(grad)`` when the gradient of this tensor is known; what it returns replaces the gradient."""
        if not self.requires_grad:
            raise AutogradError("cannot register a hook on a tensor that doesn't require gradient")
        node = self.grad_fn
        if node is None:
            if self._hooks is None:
                self._hooks = Hooks()
            return RemovableHandle(self._hooks, hook)
        if node.result_hooks is None:
            node.result_hooks = {}
        return RemovableHandle(node.result_hooks.setdefault(self._output, Hooks()), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call ``hook(tensor)`` after a gradient was added to ``grad`` of this leaf."""
        if not self.requires_grad:
            raise AutogradError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise AutogradError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self._post_hooks is None:
            self._post_hooks = Hooks()
        return RemovableHandle(self._post_hooks, hook)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor to ``grad`` of the leaves it was computed from.

        Args:
            gradient: the cotangent, of this tensor's shape; 1 for a scalar.
            retain_graph: keep what the graph saved, for another call.
            create_graph: record the computation of the gradients, so that they can be differentiated.
            inputs: the only tensors whose ``grad`` is added to.

        Raises:
            AutogradError: no scalar and no gradient; nothing requires grad; the graph was freed.
        """
        from srcgrad.torch.engine import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    # --- values ------------------------------------------------------------------------------------
    def numpy(self, *, force: bool = False) -> Any:
        """The array itself: changes of one are changes of the other.

        Raises:
            AutogradError: it requires grad where gradients are recorded (``force=True`` detaches).
        """
        if force:
            return np.array(self._data)
        if self.requires_grad and MODE.get().grad:
            raise AutogradError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self._data

    def __delitem__(self, index: Any) -> NoReturn:
        raise TensorTypeError("Tensor does not support deleting items", hint="select what stays: x[1:]")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        return np.asarray(array, dtype) if not copy else np.array(array, dtype)

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self._data.size != 1:
            raise TensorError(f"a Tensor with {self._data.size} elements cannot be converted to Scalar")
        if not isinstance(self._data, np.ndarray):
            return self._data.concrete("item()").item()
        return self._data.item()

    def tolist(self) -> Any:
        return self._data.tolist()

    def __bool__(self) -> bool:
        if self._data.size != 1:
            if self._data.size == 0:
                raise TensorError("Boolean value of Tensor with no values is ambiguous")
            raise TensorError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self._data.reshape(()))

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self._data.size != 1 or self._data.dtype.kind not in "iub":
            raise TensorTypeError("only integer tensors of a single element can be converted to an index")
        return int(self._data.reshape(()))

    def __len__(self) -> int:
        if not self._data.ndim:
            raise TensorTypeError("len() of a 0-d tensor")
        return len(self._data)

    def __iter__(self) -> Iterator[Tensor]:
        if not self._data.ndim:
            raise TensorTypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self, **options: Any) -> str:
        return described(self)

    def __format__(self, spec: str) -> str:
        """Of one number without dimensions, the number's; a tracer has none unless digits are asked for."""
        alone = self._data.ndim == 0 and type(self) is Tensor and (bool(spec) or isinstance(self._data, np.ndarray))
        return format(self.item(), spec) if alone else object.__format__(self, spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise AutogradError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        found = object.__new__(type(self))
        memo[id(self)] = found
        found.__dict__.update({k: v for k, v in self.__dict__.items() if not k.startswith("_")})
        found._data, found._counter, found._requires = np.array(self._data), [0], self._requires
        if self._grad is not None:
            found._grad = self._grad.__deepcopy__(memo)
        return found

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            raise AutogradError("a tensor that is no leaf cannot be pickled", hint="pickle its detach()")
        return rebuilt, (type(self), np.array(self._data), self._requires)

    if TYPE_CHECKING:  # ``ops`` and ``creation`` install these, and many more

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...


def constant_of(data: Any) -> Any:
    """What a tensor holds, as a constant: of a tracer, without its derivative."""
    if isinstance(data, np.ndarray):
        return data
    from srcgrad.custom import stop_gradient

    return stop_gradient(data)


def rebuilt(kind: type[Tensor], array: Any, requires_grad: bool) -> Tensor:
    found = object.__new__(kind)
    found._data, found._counter, found._requires = array, [0], requires_grad
    return found


def described(tensor: Tensor) -> str:
    """What ``print`` shows; inside a transform, the numbers if they are known."""
    data = tensor._data
    if not isinstance(data, np.ndarray):
        number = data.number()
        if number is None:
            return f"tensor(<traced>, size={tuple(data.shape)}, dtype={tensor.dtype})"
        data = np.asarray(number)
    node = tensor.grad_fn
    return tensor_text(
        data,
        requires_grad=tensor.requires_grad,
        grad_fn_name=None if node is None else type(node).__name__,
        tangent=None if tensor._tangent is None else shown_tangent(tensor),
    )


def shown_tangent(tensor: Tensor) -> str | None:
    """The tangent as text, while its level is entered."""
    from srcgrad.torch.autograd.forward_ad import level_of, tangent_of

    level = level_of()
    return None if level < 0 or tangent_of(tensor, level) is None else repr(tensor._tangent)


def wrapped(array: Any) -> Tensor:
    """A tensor of an array (which it does not copy), of a NumPy scalar, or of a tracer."""
    found = NEW(Tensor)
    found._data = array if type(array) is np.ndarray or not isinstance(array, np.generic) else np.asarray(array)
    found._counter = [0]
    return found


NEW: Final = object.__new__


def edge_of(tensor: Tensor) -> Edge | None:
    """Where the gradient of a tensor goes."""
    node = tensor._node if tensor._base is None else tensor.grad_fn
    if node is not None:
        return node, tensor._output
    if not tensor._requires:  # a view made in no_grad requires grad as its base does, and takes none
        return None
    return accumulator(tensor), 0


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The node that adds to a leaf's gradient: one as long as a graph holds it."""
    found = None if leaf._accumulator is None else leaf._accumulator()
    if found is None:
        found = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(found)
    return found


def placed(array: Any, edge: Edge | None) -> Tensor:
    """A saved value as a tensor at its place in the graph."""
    if edge is None:
        return wrapped(array)
    node, index = edge
    if isinstance(node, AccumulateGrad):
        return node.variable
    found = wrapped(array)
    found._node, found._output = node, index
    return found


def checked_dim(dim: int, rank: int) -> int:
    """A dimension as a number that is not negative.

    Raises:
        TensorIndexError: there is no such dimension.
    """
    from srcgrad.torch.errors import TensorIndexError

    size = rank or 1
    if not -size <= dim < size:
        raise TensorIndexError(
            f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {dim})"
        )
    return dim % size


def need(condition: Any, message: str) -> None:
    """Raise a `TensorValueError` unless the condition holds."""
    if not condition:
        raise TensorValueError(message)
