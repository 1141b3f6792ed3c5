"""Recurrent layers and their cells."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from srcgrad.torch.errors import TensorError, TensorNotImplementedError, TensorValueError
from srcgrad.torch.nn import functional as F
from srcgrad.torch.nn import init
from srcgrad.torch.nn.functional.recurrent import GRU as GRU_OP
from srcgrad.torch.nn.functional.recurrent import LSTM as LSTM_OP
from srcgrad.torch.nn.functional.recurrent import RNN as RNN_OP
from srcgrad.torch.nn.functional.recurrent import layer, packed_layer
from srcgrad.torch.nn.linear import empty
from srcgrad.torch.nn.module import Module
from srcgrad.torch.nn.utils.rnn import PackedSequence
from srcgrad.torch.ops.joining import cat, stack
from srcgrad.torch.tensor import Tensor, wrapped

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell"]


def draw(module: Module, hidden_size: int) -> None:
    """Initial values: uniform within 1 / sqrt(hidden_size)."""
    bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


class RNNBase(Module):
    """Layers of recurrent cells, one after the other, in one direction or in both.

    Parameters are ``weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0`` of the first layer and so on, those of the
    other direction with ``_reverse``.
    """

    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise TensorValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                "num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                UserWarning,
                stacklevel=3,
            )
        if proj_size:
            raise TensorNotImplementedError(
                f"{type(self).__name__} with proj_size", hint="put a Linear layer behind it, and leave proj_size out"
            )
        for name, size in (("hidden_size", hidden_size), ("num_layers", num_layers)):
            if size <= 0:
                raise TensorValueError(f"{name} must be greater than zero")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = 0
        self._all_weights: list[list[str]] = []
        width = self.gates * hidden_size
        directions = ("", "_reverse") if bidirectional else ("",)
        for number in range(num_layers):
            given = input_size if number == 0 else hidden_size * len(directions)
            for direction in directions:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (width, given), "weight_hh": (width, hidden_size)}
                if bias:
                    shapes |= {"bias_ih": (width,), "bias_hh": (width,)}
                names = [f"{kind}_l{number}{direction}" for kind in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, empty(*shape, dtype=dtype))
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self) -> None:
        """Draw the initial values."""
        draw(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: parameters need not lie together."""

    def _op(self) -> tuple[Any, tuple[Any, ...]]:
        """The operation of a layer, and its static arguments."""
        raise TensorNotImplementedError("RNNBase has no cell", hint="use RNN, LSTM or GRU")

    def _cell(self, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        """One step, on states."""
        raise TensorNotImplementedError("RNNBase has no cell", hint="use RNN, LSTM or GRU")

    def _run(self, x: Any, states: list[Tensor], sizes: Sequence[int] | None) -> tuple[Any, list[Tensor]]:
        """All layers, of (T, N, in) or of packed rows with batch sizes: what the last gives, and the final states."""
        op, statics = self._op()
        directions = 2 if self.bidirectional else 1
        finals: list[list[Tensor]] = []
        for number in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                place = number * directions + direction
                weights = [getattr(self, name) for name in self._all_weights[place]]
                first = [state[place] for state in states]
                if sizes is None:
                    given = x.flip(0) if direction else x
                    found, final = layer(op, given, first, weights, statics)
                    outputs.append(found.flip(0) if direction else found)
                else:
                    found, final = packed_layer(self._cell, x, sizes, first, weights, bool(direction))
                    outputs.append(found)
                finals.append(final)
            x = outputs[0] if directions == 1 else cat(outputs, -1)
            if self.dropout and number + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, self.training)
        return x, [stack(list(parts)) for parts in zip(*finals, strict=True)]

    def _states(self, x: Any, batch: int, given: Any, unbatched: bool) -> list[Tensor]:
        """The states to begin with.

        Raises:
            TensorError: their sizes do not fit.
        """
        count = self.num_layers * (2 if self.bidirectional else 1)
        shape = (count, batch, self.hidden_size)
        if given is None:
            return [wrapped(np.zeros(shape, x.dtype)) for _ in range(self.states)]
        listed = list(given) if isinstance(given, (tuple, list)) else [given]
        if unbatched:
            listed = [state.unsqueeze(1) for state in listed]
        for name, state in zip(("hidden[0]", "hidden[1]") if self.states == 2 else ("hidden",), listed, strict=True):
            if state._data.shape != shape:
                text = f"Expected {name if self.states == 2 else 'hidden'} size {shape}, got {list(state._data.shape)}"
                raise TensorError(text)
        return listed

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The hidden states of the last layer at each step, and the final states of all layers.

        Args:
            input: (T, N, input_size), (N, T, input_size) with ``batch_first``, (T, input_size), or packed.
            hx: the states to begin with, (layers * directions, N, hidden_size); zeros if not given.

        Raises:
            TensorValueError: another rank. TensorError: sizes that do not fit.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        x = input._data
        name = type(self).__name__
        if x.ndim not in (2, 3):
            raise TensorValueError(f"{name}: Expected input to be 2D or 3D, got {x.ndim}D instead")
        if x.shape[-1] != self.input_size:
            raise TensorError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            )
        unbatched = x.ndim == 2
        if unbatched:
            input = input.unsqueeze(1)
        elif self.batch_first:
            input = input.transpose(0, 1)
        states = self._states(x, input._data.shape[1], hx, unbatched)
        found, finals = self._run(input, states, None)
        if unbatched:
            found, finals = found.squeeze(1), [state.squeeze(1) for state in finals]
        elif self.batch_first:
            found = found.transpose(0, 1)
        return found, tuple(finals) if self.states == 2 else finals[0]

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[Any, Any]:
        sizes = packed.batch_sizes.tolist()
        states = self._states(packed.data._data, sizes[0], hx, False)
        if hx is not None and packed.sorted_indices is not None:
            states = [state.index_select(1, packed.sorted_indices) for state in states]
        found, finals = self._run(packed.data, states, sizes)
        if packed.unsorted_indices is not None:
            finals = [state.index_select(1, packed.unsorted_indices) for state in finals]
        whole = PackedSequence(found, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
        return whole, tuple(finals) if self.states == 2 else finals[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with forget gates (Gers et al. 2000).

    The final states are a pair: the hidden states and the cells.
    """

    gates = 4
    states = 2

    def _op(self) -> tuple[Any, tuple[Any, ...]]:
        return LSTM_OP, ()

    def _cell(self, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        return list(F.lstm_cell(x, (states[0], states[1]), *weights))


class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014, arXiv:1406.1078), the reset gate behind the product."""

    gates = 3

    def _op(self) -> tuple[Any, tuple[Any, ...]]:
        return GRU_OP, ()

    def _cell(self, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        return [F.gru_cell(x, states[0], *weights)]


class RNN(RNNBase):
    """Elman's network (1990): tanh, or relu, of W_ih x + b_ih + W_hh h + b_hh."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise TensorValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype=dtype)
        self.nonlinearity = nonlinearity

    def _op(self) -> tuple[Any, tuple[Any, ...]]:
        return RNN_OP, (self.nonlinearity,)

    def _cell(self, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
        step = F.rnn_tanh_cell if self.nonlinearity == "tanh" else F.rnn_relu_cell
        return [step(x, states[0], *weights)]


# --- cells --------------------------------------------------------------------------------------------
class RNNCellBase(Module):
    """What the cells share: ``weight_ih, weight_hh, bias_ih, bias_hh``."""

    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        width = self.gates * hidden_size
        self.weight_ih = empty(width, input_size, dtype=dtype)
        self.weight_hh = empty(width, hidden_size, dtype=dtype)
        self.register_parameter("bias_ih", empty(width, dtype=dtype) if bias else None)
        self.register_parameter("bias_hh", empty(width, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values."""
        draw(self, self.hidden_size)

    def _step(self, input: Tensor, states: list[Tensor]) -> list[Tensor]:
        """The new states."""
        raise TensorNotImplementedError("RNNCellBase has no step", hint="use RNNCell, LSTMCell or GRUCell")

    def _weights(self) -> list[Any]:
        return [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """(N, input_size) or (input_size,), and the state, which is zeros if not given, to the new state."""
        x = input._data
        name = type(self).__name__
        if x.ndim not in (1, 2):
            raise TensorValueError(f"{name}: Expected input to be 1D or 2D, got {x.ndim}D instead")
        if x.shape[-1] != self.input_size:
            raise TensorError(f"input has inconsistent input_size: got {x.shape[-1]} expected {self.input_size}")
        single = x.ndim == 1
        if hx is None:
            shape = (1 if single else x.shape[0], self.hidden_size)
            states = [wrapped(np.zeros(shape, x.dtype)) for _ in range(self.states)]
        else:
            states = list(hx) if isinstance(hx, (tuple, list)) else [hx]
            for state in states:
                if state._data.ndim not in (1, 2):
                    raise TensorValueError(f"{name}: Expected hidden to be 1D or 2D, got {state._data.ndim}D instead")
                if state._data.shape[-1] != self.hidden_size:
                    raise TensorError(
                        f"hidden has inconsistent hidden_size: got {state._data.shape[-1]}, expected {self.hidden_size}"
                    )
            if single:
                states = [state.unsqueeze(0) for state in states]
        found = self._step(input.unsqueeze(0) if single else input, states)
        if single:
            found = [state.squeeze(0) for state in found]
        return tuple(found) if self.states == 2 else found[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of an `RNN`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype=dtype)
        self.nonlinearity = nonlinearity

    def _step(self, input: Tensor, states: list[Tensor]) -> list[Tensor]:
        if self.nonlinearity not in ("tanh", "relu"):
            raise TensorError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = F.rnn_tanh_cell if self.nonlinearity == "tanh" else F.rnn_relu_cell
        return [step(input, states[0], *self._weights())]


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`: the new hidden state and cell."""

    gates = 4
    states = 2

    def _step(self, input: Tensor, states: list[Tensor]) -> list[Tensor]:
        return list(F.lstm_cell(input, (states[0], states[1]), *self._weights()))


class GRUCell(RNNCellBase):
    """One step of a `GRU`."""

    gates = 3

    def _step(self, input: Tensor, states: list[Tensor]) -> list[Tensor]:
        return [F.gru_cell(input, states[0], *self._weights())]
