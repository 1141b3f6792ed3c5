"""`torch.nn.utils`: gradients clipped, parameters as vectors, sequences padded."""

from __future__ import annotations

from srcgrad.torch.nn.utils import rnn as rnn
from srcgrad.torch.nn.utils.clipping import *  # noqa: F403
from srcgrad.torch.nn.utils.vectors import *  # noqa: F403
