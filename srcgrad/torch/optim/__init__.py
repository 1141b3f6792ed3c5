"""`torch.optim`: optimisers and learning-rate schedules."""

from __future__ import annotations

from srcgrad.torch.optim import lr_scheduler
from srcgrad.torch.optim.adaptive import ASGD, Adadelta, Adamax, NAdam, RAdam, Rprop
from srcgrad.torch.optim.algorithms import SGD, Adagrad, Adam, AdamW, RMSprop
from srcgrad.torch.optim.lbfgs import LBFGS
from srcgrad.torch.optim.optimizer import Optimizer

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]
