"""`torch.nn.functional`: the functions that the layers of `torch.nn` call."""

from __future__ import annotations

from srcgrad.torch.nn.functional.activations import *  # noqa: F403
from srcgrad.torch.nn.functional.attention import *  # noqa: F403
from srcgrad.torch.nn.functional.classification import *  # noqa: F403
from srcgrad.torch.nn.functional.convolution import *  # noqa: F403
from srcgrad.torch.nn.functional.distances import *  # noqa: F403
from srcgrad.torch.nn.functional.dropout import *  # noqa: F403
from srcgrad.torch.nn.functional.linear import *  # noqa: F403
from srcgrad.torch.nn.functional.losses import *  # noqa: F403
from srcgrad.torch.nn.functional.normalization import *  # noqa: F403
from srcgrad.torch.nn.functional.padding import *  # noqa: F403
from srcgrad.torch.nn.functional.pooling import *  # noqa: F403
from srcgrad.torch.nn.functional.recurrent import *  # noqa: F403
from srcgrad.torch.nn.functional.sampling import *  # noqa: F403
