"""The head is the one minimum of a convex loss, written out again here in NumPy."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
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


def test_another_solver_finds_the_same_head():
    x, y, weights = problem(seed=2)
    w, b = solve(x, y, weights, 1e-3)

    def flat(values):
        loss, by_w, by_b = objective(values[: w.size].reshape(w.shape), values[w.size :], x, y, weights, 1e-3)
        return loss, np.concatenate([by_w.ravel(), by_b])

    options = {"maxiter": 100_000, "gtol": 1e-10}
    found = minimize(flat, np.zeros(w.size + b.size), jac=True, method="BFGS", options=options).x
    np.testing.assert_allclose(w, found[: w.size].reshape(w.shape), atol=2e-3)
    other = x @ found[: w.size].reshape(w.shape).T + found[w.size :]
    np.testing.assert_allclose(softmax(x @ w.T + b, axis=1), softmax(other, axis=1), atol=1e-4)


def test_a_weight_of_two_is_a_sample_twice():
    x, y, _ = problem()
    weights = np.where(np.arange(len(y)) % 4 == 0, 2.0, 1.0)
    twice = np.flatnonzero(weights == 2)
    w, b = solve(x, y, weights, 1e-2)
    again = solve(np.concatenate([x, x[twice]]), np.concatenate([y, y[twice]]), np.ones(len(y) + len(twice)), 1e-2)
    np.testing.assert_allclose(w, again[0], atol=1e-4)
    np.testing.assert_allclose(b, again[1], atol=1e-3)


def test_a_shift_of_all_features_changes_the_bias_alone():
    x, y, weights = problem()
    (w, b), (shifted_w, shifted_b) = solve(x, y, weights, 1e-2), solve(x + 100, y, weights, 1e-2)
    np.testing.assert_allclose(w, shifted_w, atol=1e-6)
    np.testing.assert_allclose(b, shifted_b + 100 * w.sum(1), atol=1e-4)


def test_progress_is_reported_down_to_the_solution():
    x, y, weights = problem()
    seen = []
    tensors = (torch.from_numpy(part) for part in (x, y, weights))
    fit_logistic(*tensors, 3, 1e-2, lambda *values: seen.append(values))
    steps, losses, gradients = zip(*seen, strict=True)
    assert steps == tuple(range(len(seen)))
    assert losses[0] == pytest.approx(np.log(3))
    assert all(later <= before for before, later in pairwise(losses))
    assert gradients[-1] <= GRADIENT < gradients[0]
