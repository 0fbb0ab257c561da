"""The head is the one minimum of a convex loss, written out again here in NumPy."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax

from colocam.training.frozen_encoder import GRADIENT, fit_logistic


def problem(seed=0, samples=60, channels=7, classes=3):
    """Features far from the origin whose classes overlap, and uneven weights."""
    rng = np.random.default_rng(seed)
    y = np.arange(samples) % classes
    x = 5 + rng.normal(size=(samples, channels)) + 0.8 * rng.normal(size=(classes, channels))[y]
    return x, y, rng.uniform(0.1, 3, samples)


def objective(w, b, x, y, weights, penalty):
    """The loss and its gradients, by the formulas of the textbook."""
    share = weights / weights.sum()
    logits = x @ w.T + b
    loss = -share @ log_softmax(logits, axis=1)[np.arange(len(y)), y] + penalty / 2 * (w**2).sum()
    residual = share[:, None] * (softmax(logits, axis=1) - np.eye(len(b))[y])
    return loss, residual.T @ x + penalty * w, residual.sum(0)


def solve(x, y, weights, penalty):
    w, b = fit_logistic(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(weights), int(y.max()) + 1, penalty)
    assert w.dtype == b.dtype == torch.float64
    return w.numpy(), b.numpy()


@pytest.mark.parametrize("penalty", [1e-4, 1e-2, 1.0])
def test_the_gradient_is_zero_and_every_other_head_is_worse(penalty):
    x, y, weights = problem()
    w, b = solve(x, y, weights, penalty)
    best, by_w, by_b = objective(w, b, x, y, weights, penalty)
    scale = np.abs(x).max() + 1  # the optimiser works on centred features
    assert np.abs(by_w).max() <= scale * GRADIENT
    assert np.abs(by_b).max() <= GRADIENT * 1.01
    rng = np.random.default_rng(1)
    for size in (1e-3, 0.1, 1):
        for _ in range(20):
            other = w + size * rng.normal(size=w.shape), b + size * rng.normal(size=b.shape)
            assert objective(*other, x, y, weights, penalty)[0] > best
