"""Multinomial logistic regression with an L2 penalty: a convex problem, solved by L-BFGS in float64."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

GRADIENT = 1e-6
"""The solution is found when no entry of the gradient exceeds this; the loss is of order 1."""
STEPS = 200
"""Most calls of the optimiser, each of up to :data:`ITERATIONS` iterations."""
ITERATIONS = 10


def fit_logistic(
    features: Tensor,
    classes: Tensor,
    weights: Tensor,
    count: int,
    penalty: float,
    report: Callable[[int, float, float], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """Minimise ``Σ_i ω_i CE(W x_i + b, y_i) / Σ_i ω_i + λ/2 ‖W‖²`` over W and b.

    The bias has no penalty, so that a shift of all features changes b alone. The features are therefore centred for the
    optimiser, which then needs fewer steps.

    Args:
        features: x (N, C).
        classes: y (N,) int64 in 0 … K − 1, each of them at least once.
        weights: ω (N,), not negative, with a positive sum.
        count: K.
        penalty: λ > 0.
        report: called with the number of steps, the loss and the largest entry of its gradient, from step 0 on.

    Returns:
        W (K, C) and b (K,) in float64.
    """
    share = weights.double() / weights.double().sum()
    mean = (share.to(features.dtype) @ features).double()
    x = features - mean  # in float64, without a further copy
    w = torch.zeros(count, x.shape[1], dtype=torch.float64, device=x.device, requires_grad=True)
    b = torch.zeros(count, dtype=torch.float64, device=x.device, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [w, b],
        max_iter=ITERATIONS,
        tolerance_grad=GRADIENT,
        tolerance_change=0.0,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        losses = F.cross_entropy(x @ w.T + b, classes, reduction="none")
        value = share @ losses + penalty / 2 * w.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    for step in range(STEPS + 1):
        with torch.enable_grad():
            value = float(loss().detach())
        assert w.grad is not None
        assert b.grad is not None
        gradient = max(float(w.grad.abs().max()), float(b.grad.abs().max()))
        if report is not None:
            report(step, value, gradient)
        if gradient <= GRADIENT or step == STEPS:
            break
        optimiser.step(loss)  # type: ignore[no-untyped-call]
    found = w.detach()
    return found, b.detach() - found @ mean
