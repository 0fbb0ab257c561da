"""The optimiser: closed forms of its schedules, and momentum that survives a restart."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from colocam.config import ClassifierStage, Optimisation
from colocam.training.loop import (
    learning_rate,
    make_sgd,
    momentum_tensors,
    restore_momentum,
    set_learning_rate,
)


def settings(**changes):
    return Optimisation(**{"epochs": 10, "batch": 4, "lr": 0.1, **changes})


@given(st.integers(1, 20), st.integers(1, 7), st.integers(1, 5), st.floats(0.1, 1))
def test_steps_decay_at_the_epochs_named(epochs, steps, every, decay):
    chosen = settings(epochs=epochs, decay=decay, decay_every=every)
    expected, rate = [], 0.1
    for epoch in range(epochs):
        if epoch and epoch % every == 0:
            rate *= decay
        expected += [rate] * steps
    found = [learning_rate(chosen, step, steps) for step in range(epochs * steps)]
    assert found == pytest.approx(expected)


def test_the_published_schedule():
    chosen = ClassifierStage()
    assert learning_rate(chosen, 0, 7) == learning_rate(chosen, 15 * 7 - 1, 7) == 1e-3
    assert learning_rate(chosen, 15 * 7, 7) == pytest.approx(9e-4)
    assert learning_rate(chosen, 99 * 7, 7) == pytest.approx(1e-3 * 0.9**6)


@pytest.mark.parametrize(("epochs", "steps"), [(10, 20), (30, 4), (2, 5), (1, 1), (1, 30)])
def test_cosine_warms_up_over_at_most_an_epoch_and_comes_to_rest(epochs, steps):
    chosen = settings(epochs=epochs, schedule="cosine")
    total = epochs * steps
    warm = min(steps, total // 10 + 1)
    rates = [learning_rate(chosen, step, steps) for step in range(total)]
    assert rates[:warm] == pytest.approx([0.1 * (i + 1) / warm for i in range(warm)])
    for step in range(warm, total):
        angle = math.pi * (step - warm) / (total - warm)
        assert rates[step] == pytest.approx(0.1 * math.cos(angle / 2) ** 2)  # (1 + cos a) / 2 = cos²(a/2)
    assert max(rates) == pytest.approx(0.1)
    if total - warm > 10:
        assert rates[-1] < 0.003


def data(step):
    rng = torch.Generator().manual_seed(step)
    return torch.randn(8, 3, generator=rng), torch.randn(8, 2, generator=rng)


def walk(module, optimiser, steps):
    for step in steps:
        set_learning_rate(optimiser, 0.1 / (1 + step))
        optimiser.zero_grad()
        inputs, targets = data(step)
        (module(inputs) - targets).square().mean().backward()
        optimiser.step()


def module_and_optimiser(momentum=0.9):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    groups = [(list(module[0].parameters()), 1.0), (list(module[2].parameters()), 10.0)]
    return module, make_sgd(groups, settings(momentum=momentum, weight_decay=0.01))


@pytest.mark.parametrize("momentum", [0.9, 0.0])
@pytest.mark.parametrize("stop", [0, 1, 4])
def test_a_restored_momentum_goes_on_as_if_nothing_happened(stop, momentum):
    whole, optimiser = module_and_optimiser(momentum)
    walk(whole, optimiser, range(7))
    first, optimiser = module_and_optimiser(momentum)
    walk(first, optimiser, range(stop))
    saved = {name: tensor.clone() for name, tensor in momentum_tensors(optimiser).items()}
    assert len(saved) == (4 if stop and momentum else 0)
    second, optimiser = module_and_optimiser(momentum)
    second.load_state_dict(first.state_dict())
    restore_momentum(optimiser, saved)
    walk(second, optimiser, range(stop, 7))
    for a, b in zip(whole.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


def test_it_is_torchs_nesterov_sgd_with_a_rate_for_each_group():
    _, optimiser = module_and_optimiser()
    set_learning_rate(optimiser, 0.02)
    assert isinstance(optimiser, torch.optim.SGD)
    assert [group["lr"] for group in optimiser.param_groups] == pytest.approx([0.02, 0.2])
    for group in optimiser.param_groups:
        assert (group["momentum"], group["weight_decay"], group["nesterov"]) == (0.9, 0.01, True)
