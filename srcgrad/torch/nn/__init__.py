"""`torch.nn`: modules, and what they are made of."""

from __future__ import annotations

from srcgrad.torch.nn import functional as functional
from srcgrad.torch.nn import init as init
from srcgrad.torch.nn import utils as utils
from srcgrad.torch.nn.activations import *  # noqa: F403
from srcgrad.torch.nn.attention import *  # noqa: F403
from srcgrad.torch.nn.containers import *  # noqa: F403
from srcgrad.torch.nn.convolution import *  # noqa: F403
from srcgrad.torch.nn.linear import *  # noqa: F403
from srcgrad.torch.nn.losses import *  # noqa: F403
from srcgrad.torch.nn.module import Module as Module
from srcgrad.torch.nn.normalization import *  # noqa: F403
from srcgrad.torch.nn.padding import *  # noqa: F403
from srcgrad.torch.nn.parameter import Buffer as Buffer
from srcgrad.torch.nn.parameter import Parameter as Parameter
from srcgrad.torch.nn.pooling import *  # noqa: F403
from srcgrad.torch.nn.recurrent import *  # noqa: F403
from srcgrad.torch.nn.transformer import *  # noqa: F403
