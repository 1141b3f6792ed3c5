"""What `torch.nn` draws: initial values, dropout, samples; and running statistics over batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcgrad.torch as torch
from srcgrad.torch import nn
from srcgrad.torch.nn import functional as F
from srcgrad.torch.nn import init


def drawn(fill: Callable[..., Any], *shape: int, **options: Any) -> Any:
    torch.manual_seed(0)
    tensor = torch.empty(*shape, dtype=torch.float64)
    assert fill(tensor, **options) is tensor
    return tensor.numpy()


@pytest.mark.parametrize(
    ("fill", "shape", "options", "deviation"),
    [
        (init.uniform_, (300, 200), {"a": -1.0, "b": 3.0}, 4 / math.sqrt(12)),
        (init.normal_, (300, 200), {"std": 0.7}, 0.7),
        (init.xavier_uniform_, (300, 200), {"gain": 2.0}, 2 * math.sqrt(2 / 500)),
        (init.xavier_normal_, (30, 20, 10, 2), {}, math.sqrt(2 / (50 * 20))),
        (init.kaiming_uniform_, (300, 200), {"nonlinearity": "relu"}, math.sqrt(2 / 200)),
        (init.kaiming_uniform_, (300, 200), {"a": math.sqrt(5)}, math.sqrt(1 / 600)),
        (init.kaiming_normal_, (300, 200), {"mode": "fan_out", "nonlinearity": "linear"}, math.sqrt(1 / 300)),
        (init.trunc_normal_, (300, 200), {"std": 0.5, "a": -5.0, "b": 5.0}, 0.5),
    ],
)
def test_initial_values_have_their_deviation(
    fill: Callable[..., Any], shape: tuple[int, ...], options: dict[str, Any], deviation: float
) -> None:
    values = drawn(fill, *shape, **options)
    assert abs(values.std() / deviation - 1) < 0.02


def test_truncated_normals_stay_inside() -> None:
    values = drawn(init.trunc_normal_, 100, 100, std=2.0, a=-1.0, b=0.5)
    assert values.min() >= -1.0
    assert values.max() <= 0.5
    assert values.std() > 0.3


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (3, 2, 2)])
def test_orthogonal_values_are_orthonormal(shape: tuple[int, ...]) -> None:
    values = drawn(init.orthogonal_, *shape, gain=2.0).reshape(shape[0], -1)
    product = values @ values.T if values.shape[0] <= values.shape[1] else values.T @ values
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_sparse_values_have_zeros_in_each_column() -> None:
    values = drawn(init.sparse_, 10, 6, sparsity=0.35)
    assert ((values == 0).sum(0) == 4).all()


@pytest.mark.parametrize(
    ("module", "bounds"),
    [
        (lambda: nn.Linear(100, 80), {"weight": 0.1, "bias": 0.1}),
        (lambda: nn.Conv2d(4, 80, 5), {"weight": 0.1, "bias": 0.1}),
        (lambda: nn.LSTM(30, 100), {"weight_ih_l0": 0.1, "weight_hh_l0": 0.1, "bias_hh_l0": 0.1}),
        (lambda: nn.GRUCell(30, 100), {"weight_ih": 0.1, "bias_ih": 0.1}),
        (lambda: nn.Bilinear(100, 10, 20), {"weight": 0.1, "bias": 0.1}),
        (lambda: nn.MultiheadAttention(30, 2), {"in_proj_weight": math.sqrt(6 / 120)}),
    ],
)
def test_default_values_are_uniform_within_their_bound(module: Callable[[], Any], bounds: dict[str, float]) -> None:
    torch.manual_seed(1)
    made = module()
    for name, bound in bounds.items():
        values = getattr(made, name).detach().numpy()
        assert np.abs(values).max() <= bound
        assert np.abs(values).max() > 0.9 * bound
        assert abs(values.mean()) < 4 * bound / math.sqrt(3 * values.size)


def test_other_default_values() -> None:
    torch.manual_seed(2)
    table = nn.Embedding(200, 50, padding_idx=3).weight.detach().numpy()
    assert (table[3] == 0).all()
    assert abs(table.std() - 1) < 0.03
    norm = nn.BatchNorm1d(3)
    assert (norm.weight.tolist(), norm.bias.tolist(), norm.running_var.tolist()) == ([1.0] * 3, [0.0] * 3, [1.0] * 3)
    assert nn.PReLU().weight.tolist() == [0.25]
    attention = nn.MultiheadAttention(4, 2)
    assert (attention.in_proj_bias.tolist(), attention.out_proj.bias.tolist()) == ([0.0] * 12, [0.0] * 4)


def test_writing_into_a_parameter_in_use_is_found() -> None:
    weight = nn.Parameter(torch.ones(2))
    y = (weight * weight).sum()
    init.zeros_(weight)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


# --- dropout ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_dropout_keeps_the_mean_and_passes_gradients_where_it_kept(p: float) -> None:
    torch.manual_seed(3)
    x = torch.ones(200, 100, requires_grad=True)
    y = F.dropout(x, p)
    values = y.detach().numpy()
    assert np.unique(values).round(5).tolist() == [0.0, round(1 / (1 - p), 5)]
    assert abs((values == 0).mean() - p) < 0.02
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)


def test_dropout_of_channels_drops_whole_channels() -> None:
    torch.manual_seed(4)
    for layer, shape in ((nn.Dropout1d(), (30, 20, 5)), (nn.Dropout2d(), (30, 20, 3, 2))):
        values = layer(torch.ones(*shape)).numpy().reshape(600, -1)
        assert (values == values[:, :1]).all()
        assert 0.4 < (values[:, 0] == 0).mean() < 0.6


def test_alpha_dropout_keeps_mean_and_deviation() -> None:
    torch.manual_seed(5)
    values = nn.AlphaDropout(0.3)(torch.randn(300, 300)).numpy()
    assert abs(values.mean()) < 0.02
    assert abs(values.std() - 1) < 0.02


def test_dropout_in_place_writes_into_its_input() -> None:
    torch.manual_seed(6)
    x = torch.ones(10)
    assert F.dropout(x, 0.5, inplace=True) is x
    assert set(x.tolist()) == {0.0, 2.0}


def test_dropout_between_recurrent_layers_is_of_training_only() -> None:
    torch.manual_seed(7)
    net = nn.LSTM(2, 3, num_layers=2, dropout=0.5)
    x = torch.randn(4, 1, 2)
    assert net(x)[0].tolist() != net(x)[0].tolist()
    net.eval()
    assert net(x)[0].tolist() == net(x)[0].tolist()
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers"):
        nn.LSTM(2, 3, dropout=0.5)


def test_gumbel_softmax_samples_the_classes() -> None:
    torch.manual_seed(8)
    logits = torch.tensor([0.2, 0.3, 0.5]).log().expand(20000, 3).clone().requires_grad_()
    hard = F.gumbel_softmax(logits, hard=True)
    np.testing.assert_allclose(hard.detach().numpy().max(1), 1, atol=1e-6)
    np.testing.assert_allclose(hard.detach().numpy().sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(hard.detach().numpy().mean(0), [0.2, 0.3, 0.5], atol=0.02)
    (hard[:, 0]).sum().backward()
    assert np.abs(logits.grad.numpy()).max() > 0


def test_rrelu_draws_slopes_while_training() -> None:
    torch.manual_seed(9)
    layer = nn.RReLU(0.1, 0.3)
    slopes = -layer(-torch.ones(1000)).numpy()
    assert 0.1 <= slopes.min() < 0.12
    assert 0.28 < slopes.max() <= 0.3
    assert layer.eval()(-torch.ones(1)).item() == pytest.approx(-0.2)


# --- statistics over batches --------------------------------------------------------------------------
def test_running_statistics_follow_the_batches() -> None:
    norm = nn.BatchNorm1d(1, momentum=0.1)
    batch = torch.tensor([[1.0], [3.0], [8.0]])
    norm(batch)
    norm(batch)
    assert norm.num_batches_tracked.item() == 2
    assert norm.running_mean.item() == pytest.approx(4 * (1 - 0.9**2))
    assert norm.running_var.item() == pytest.approx(13 + (1 - 13) * 0.9**2)
    before = norm.state_dict()["running_mean"].clone()
    norm.eval()(batch)
    assert norm.running_mean.tolist() == before.tolist()
    norm.reset_running_stats()
    assert (norm.running_mean.item(), norm.num_batches_tracked.item()) == (0.0, 0)


def test_running_statistics_without_momentum_are_means() -> None:
    norm = nn.BatchNorm1d(1, momentum=None)
    for start in (0.0, 2.0, 7.0):
        norm(torch.tensor([[start], [start + 2]]))
    assert norm.running_mean.item() == pytest.approx(4.0)
    assert norm.running_var.item() == pytest.approx(2.0)


# --- training -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), (20, 4)),
        (
            lambda: nn.Sequential(nn.Conv1d(1, 6, 2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 3)),
            (20, 1, 4),
        ),
        (lambda: nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3)), (20, 4)),
        (lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3)), (20, 4)),
    ],
)
def test_models_learn_their_targets(make: Callable[[], Any], shape: tuple[int, ...]) -> None:
    torch.manual_seed(10)
    net, x = make(), torch.randn(*shape)
    target = torch.tensor(x.numpy().reshape(len(x), -1)[:, :3].argmax(1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    loss_function = nn.CrossEntropyLoss()
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = loss_function(net(x), target)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.35 * losses[0]


def test_an_activation_in_place_after_a_layer_that_keeps_its_input() -> None:
    torch.manual_seed(11)
    x = torch.randn(2, 1, 4, 4)
    conv = nn.Conv2d(1, 2, 2)
    plain = nn.Sequential(conv, nn.MaxPool2d(2, 1), nn.ReLU())
    inplace = nn.Sequential(conv, nn.MaxPool2d(2, 1), nn.ReLU(True))
    gradients = []
    for net in (plain, inplace):
        net.zero_grad()
        net(x).sum().backward()
        gradients.append(conv.weight.grad.tolist())
    assert gradients[0] == gradients[1]
