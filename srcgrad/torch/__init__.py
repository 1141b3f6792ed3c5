"""PyTorch's eager tensors and autograd on srcgrad's operations: ``import srcgrad.torch as torch``.

>>> import srcgrad.torch as torch
>>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> loss = (x**2).sum()
>>> loss.backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from __future__ import annotations

import math as _math
from typing import NoReturn as _NoReturn

from srcgrad.errors import NoAttributeError as _NoAttributeError
from srcgrad.ir.errors import nearest_hint as _nearest_hint
from srcgrad.torch.dtypes import (
    Size,
    can_cast,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    device,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    get_default_device,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    layout,
    memory_format,
    preserve_format,
    promote_types,
    set_default_device,
    set_default_dtype,
    strided,
    uint8,
    uint16,
    uint32,
    uint64,
)
from srcgrad.torch.dtypes import (
    bool_ as bool,  # noqa: A004
)
from srcgrad.torch.dtypes import (
    lacking as _lacking,
)
from srcgrad.torch.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from srcgrad.torch.ops.arguments import numpy_named as _numpy_named
from srcgrad.torch.ops.arithmetic import *  # noqa: F403
from srcgrad.torch.ops.bounds import *  # noqa: F403
from srcgrad.torch.ops.comparison import *  # noqa: F403
from srcgrad.torch.ops.conversion import *  # noqa: F403
from srcgrad.torch.ops.creation import *  # noqa: F403
from srcgrad.torch.ops.cumulative import *  # noqa: F403
from srcgrad.torch.ops.elementary import *  # noqa: F403
from srcgrad.torch.ops.extremes import *  # noqa: F403
from srcgrad.torch.ops.indexing import *  # noqa: F403
from srcgrad.torch.ops.joining import *  # noqa: F403
from srcgrad.torch.ops.linalg import *  # noqa: F403
from srcgrad.torch.ops.linalg import torch_lu as lu
from srcgrad.torch.ops.matrices import *  # noqa: F403
from srcgrad.torch.ops.matrices import torch_vander as vander
from srcgrad.torch.ops.norms import *  # noqa: F403
from srcgrad.torch.ops.parts import *  # noqa: F403
from srcgrad.torch.ops.places import *  # noqa: F403
from srcgrad.torch.ops.powers import *  # noqa: F403
from srcgrad.torch.ops.products import *  # noqa: F403
from srcgrad.torch.ops.randomness import *  # noqa: F403
from srcgrad.torch.ops.reductions import *  # noqa: F403
from srcgrad.torch.ops.scatter import *  # noqa: F403
from srcgrad.torch.ops.selection import *  # noqa: F403
from srcgrad.torch.ops.shapes import *  # noqa: F403
from srcgrad.torch.ops.sorting import *  # noqa: F403
from srcgrad.torch.ops.special import *  # noqa: F403
from srcgrad.torch.ops.statistics import *  # noqa: F403
from srcgrad.torch.printing import set_printoptions
from srcgrad.torch.random import Generator, default_generator, initial_seed
from srcgrad.torch.serialization import load, save
from srcgrad.torch.tensor import Tensor

half = float16
float = float32  # noqa: A001
double = float64
cfloat = complex64
cdouble = complex128
short = int16
e, inf, nan, pi = _math.e, _math.inf, _math.nan, _math.pi
newaxis = None
detach, detach_, is_inference = Tensor.detach, Tensor.detach_, Tensor.is_inference
gcd_, lcm_, ldexp_, square_ = (getattr(Tensor, name) for name in ("gcd_", "lcm_", "ldexp_", "square_"))
int = int32  # noqa: A001
long = int64

from srcgrad.torch import autograd, cuda, distributions, fft, func, linalg, nn, optim, profiler, special, utils  # noqa: E402  # noqa: E402  they read the names above
from srcgrad.torch.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled  # noqa: E402
from srcgrad.torch.func import vmap  # noqa: E402
from srcgrad.torch.nn.functional import (  # noqa: E402
    adaptive_avg_pool1d,
    adaptive_max_pool1d,
    avg_pool1d,
    bilinear,
    celu,
    celu_,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    cosine_similarity,
    group_norm,
    hardshrink,
    layer_norm,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    pairwise_distance,
    pixel_shuffle,
    pixel_unshuffle,
    prelu,
    rms_norm,
    rrelu,
    rrelu_,
    selu,
    selu_,
    threshold,
    threshold_,
)

for _space in (globals(), dict(vars(Tensor))):  # PyTorch takes axis= wherever it takes dim=
    for _name, _known in list(_space.items()):
        _named = _known if isinstance(_known, type) else _numpy_named(_known)
        if _named is _known:
            continue
        if _space is globals():
            _space[_name] = _named
        else:
            setattr(Tensor, _name, _named)


def __getattr__(name: str) -> _NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise _lacking(name) or _NoAttributeError(
        f"module {__name__!r} has no attribute {name!r}",
        hint=_nearest_hint(name, [known for known in globals() if not known.startswith("_")]),
    )
