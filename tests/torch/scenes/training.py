"""Training on the digits: the loss of each of a hundred steps, from parameters that a formula gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.torch.observing import Scene

DIGITS = Path(__file__).parents[3] / "examples" / "data" / "digits.csv"
STEPS = 100


def digits(torch: Any) -> tuple[Any, Any]:
    table = np.loadtxt(DIGITS, delimiter=",", skiprows=1)
    return torch.tensor(table[:, :-1] / 16, dtype=torch.float32), torch.tensor(table[:, -1].astype(np.int64))


def set_parameters(torch: Any, model: Any) -> None:
    """Numbers between -1 and 1 over the root of the fan-in."""
    start = 0
    with torch.no_grad():
        for parameter in model.parameters():
            count, shape = parameter.numel(), tuple(parameter.shape)
            wave = np.sin(1.7 * np.arange(start, start + count) + 0.3 * np.arange(count) ** 1.5)
            values = wave.reshape(shape) / np.sqrt(shape[-1] if len(shape) > 1 else 4.0 * count)
            parameter.copy_(torch.tensor(values, dtype=torch.float32))
            start += count


def perceptron(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 24), nn.Tanh(), nn.Linear(24, 10))


def recurrent(torch: Any) -> Any:
    """An LSTM reads an image row by row; its last state is classified."""
    nn = torch.nn

    class Rows(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(8, 24, batch_first=True)
            self.head = nn.Linear(24, 10)

        def forward(self, images: Any) -> Any:
            states, _ = self.lstm(images.view(-1, 8, 8))
            return self.head(states[:, -1])

    return Rows()


def normalised(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 6, 3, padding=1),
        nn.GELU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.BatchNorm1d(96),
        nn.Linear(96, 10),
    )


def fitted(make: Any, optimizer: str, schedule: Any = None, clip: float | None = None, **options: Any) -> Scene:
    def scene(torch: Any) -> Any:
        model = make(torch)
        set_parameters(torch, model)
        stepping = getattr(torch.optim, optimizer)(model.parameters(), **options)
        rates = None if schedule is None else schedule(torch.optim.lr_scheduler, stepping)
        loss_of = torch.nn.CrossEntropyLoss()
        data = torch.utils.data
        loader = data.DataLoader(data.TensorDataset(*digits(torch)), batch_size=32, shuffle=False, drop_last=True)
        losses: list[float] = []
        while len(losses) < STEPS:
            for images, labels in loader:
                stepping.zero_grad()
                loss = loss_of(model(images), labels)
                loss.backward()
                if clip is not None:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
                stepping.step()
                if rates is not None:
                    rates.step()
                losses.append(loss.item())
                if len(losses) == STEPS:
                    break
        return losses

    return scene


SCENES: dict[str, Scene] = {
    "perceptron sgd": fitted(perceptron, "SGD", lr=0.1, momentum=0.9),
    "perceptron adam": fitted(perceptron, "Adam", lr=3e-3),
    "lstm adam": fitted(recurrent, "Adam", lr=5e-3, clip=1.0),
    "lstm sgd": fitted(recurrent, "SGD", lr=0.1, momentum=0.9),
    "convolution adamw": fitted(
        normalised, "AdamW", lambda s, o: s.CosineAnnealingLR(o, 120), lr=5e-3, weight_decay=0.1
    ),
}
