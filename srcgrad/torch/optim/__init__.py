"""`torch.optim`: optimisers and learning-rate schedules."""

from __future__ import annotations

from srcgrad.torch.optim import lr_scheduler
from srcgrad.torch.optim.algorithms import SGD, Adagrad, Adam, AdamW, RMSprop
from srcgrad.torch.optim.optimizer import Optimizer

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
