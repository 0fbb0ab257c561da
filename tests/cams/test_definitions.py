"""Every closed form against its paper's formula: derivatives by autograd, in float64, through the classifier's head."""

import pytest
import torch
from torch.func import grad, vmap

from colocam.cams import classifier_cams, extract, min_max


def derivatives(score, features):
    """First, second and third derivative of ``score`` with respect to each element of ``features`` (K, h, w)."""

    def along(direction):
        def line(t):
            return score(features + t * direction)

        zero = torch.zeros((), dtype=features.dtype)
        return grad(line)(zero), grad(grad(line))(zero), grad(grad(grad(line)))(zero)

    basis = torch.eye(features.numel(), dtype=features.dtype).view(-1, *features.shape)
    return [found.view_as(features) for found in vmap(along)(basis)]


def by_definition(method, logit, features, noisy):
    """One map; ``logit`` is a function of features (K, h, w), ``noisy`` the features of noisy copies of the frame."""

    def exponential(values):
        return logit(values).exp()

    first, _, _ = derivatives(logit, features)
    match method:
        case "cam":  # what a place adds to the logit, times the number of places
            places = features[0].numel()
            alone = torch.zeros_like(features).repeat(places, 1, 1, 1).flatten(2)
            for place in range(places):
                alone[place, :, place] = features.flatten(1)[:, place]
            nothing = logit(torch.zeros_like(features))
            added = torch.stack([logit(one.view_as(features)) - nothing for one in alone])
            return places * added.view(features.shape[1:])
        case "gradcam":
            weights = first.mean((1, 2), keepdim=True)
        case "xgradcam":
            share = (first * features).sum((1, 2), keepdim=True) / features.sum((1, 2), keepdim=True)
            weights = share.nan_to_num(0)  # 0/0 of a channel that is zero everywhere: it adds nothing to any map
        case "layercam":
            weights = first.clamp(min=0)
        case "gradcam++" | "smooth-gradcam++":
            copies = [features] if method == "gradcam++" else noisy
            orders = zip(*(derivatives(exponential, copy) for copy in copies), strict=True)
            d1, d2, d3 = (torch.stack(order).mean(0) for order in orders)
            alpha = d2 / (2 * d2 + features.sum((1, 2), keepdim=True) * d3)
            weights = (alpha * d1.clamp(min=0)).sum((1, 2), keepdim=True)
    return (weights * features).sum(0).clamp(min=0)


@pytest.mark.parametrize("method", classifier_cams())
def test_closed_form_is_the_definition(method, small):
    rng = torch.Generator().manual_seed(5)
    frames = torch.randint(256, (3, 3, 32, 32), generator=rng).float()
    noise = 0.3 * 58 * torch.randn(4, *frames.shape, generator=rng)  # 0.3 deviations of the normalised input
    classes = torch.tensor([2, 0, 3])
    found = extract(method, small, frames, classes).double()
    head = [parameter.detach().double() for parameter in (small.head.weight, small.head.bias)]
    with torch.no_grad():
        features = small(frames).features[-1].double()
        noisy = torch.stack([small(frames + one).features[-1].double() for one in noise])
    assert (noisy - features).abs().max() > 0.01
    for i, class_ in enumerate(classes):

        def logit(values, class_=class_):
            return (head[0] @ values.mean((1, 2)) + head[1])[class_]

        expected = by_definition(method, logit, features[i], noisy[:, i])
        assert float(expected.max()) > float(expected.min())
        torch.testing.assert_close(min_max(found[i][None])[0], min_max(expected[None])[0], rtol=0, atol=1e-5)
        if method != "smooth-gradcam++":  # whose factor is a mean over random copies
            exponential = float(logit(features[i]).exp()) if method == "gradcam++" else 1.0
            torch.testing.assert_close(found[i] * exponential, expected, rtol=1e-4, atol=1e-7)
