"""The learning rate: closed forms of its schedules."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.config import Optimization
from colocam.training.loop import learning_rate


def settings(**changes):
    return Optimization(**{"epochs": 10, "batch": 4, "lr": 0.1, **changes})


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
